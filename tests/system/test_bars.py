"""`progress=True` draws a bar, on a terminal and in a notebook, and nowhere else; whatever else is given is checked."""

from __future__ import annotations

import io
import re
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

import acegames as ace
from acegames.files.tables import write_policy
from acegames.model.user_functions import Building
from acegames.system import progress
from acegames.system.compiling import compiling
from acegames.system.progress import Progress
from games import alone


@pytest.fixture(scope="module")
def solution():
    return ace.solve(ace.catalog.get("intersection"))


def build(progress):
    stepping = {"horizon": 3, "initial": 0, "actions": (0, 1), "progress": progress}
    return alone(lambda t, s, a: [(1, a[0], None)], reward=lambda t, s, a: [a[0]], **stepping)


def composed(progress):
    return ace.compose([build(None)], progress=progress)


WORK = {
    "solve": lambda s, f, x: ace.solve(s.game, progress=x),
    "bracket": lambda s, f, x: ace.bracket(s.game, epsilon=1, progress=x),
    "budget_curve": lambda s, f, x: ace.budget_curve(s.game, points=2, progress=x),
    "of a solution": lambda s, f, x: s.budget_curve(points=2, progress=x),
    "verify": lambda s, f, x: ace.verify(s.game, s.policy, progress=x),
    "prove": lambda s, f, x: ace.prove(s, f / "a.proof", progress=x),
    "report": lambda s, f, x: s.report(f / "a.html", progress=x),
    "write_policy": lambda s, f, x: write_policy(s, f / "a.csv", progress=x),
    "feasibility": lambda s, f, x: ace.feasibility(s.game, progress=x).minimal_budgets,
    "from_functions": lambda s, f, x: build(x),
    "compose": lambda s, f, x: composed(x),
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("work", WORK)
def test_true_draws_a_bar_on_a_terminal_that_goes_in_the_end(work, solution, tmp_path, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    WORK[work](solution, tmp_path, True)
    drawn = screen.getvalue()
    assert "━" in drawn and drawn.endswith(("\x1b[2K", "\x1b[?25h")), "the line is cleared"


@pytest.mark.parametrize("wanted", [True, False, None])
@pytest.mark.parametrize("work", WORK)
def test_without_a_terminal_nothing_is_drawn(work, wanted, solution, tmp_path, capsys):
    WORK[work](solution, tmp_path, wanted)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("wanted", [1, "yes", lambda: None])
def test_what_is_neither_true_nor_a_function_is_refused(work, wanted, solution, tmp_path):
    with pytest.raises(ace.InvalidOption, match=r"^progress: "):
        WORK[work](solution, tmp_path, wanted)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("work", WORK)
def test_a_function_is_told_a_share_and_words(work, solution, tmp_path):
    reports = []
    WORK[work](solution, tmp_path, reports.append)
    assert reports and reports[-1].share == 1
    assert all(0 <= x.share <= 1 and x.step and all(x.parts) for x in reports)


class Notebook:
    """As much of IPython as a bar needs."""

    def __init__(self, monkeypatch):
        self.shown = []
        shell = SimpleNamespace(kernel=object())
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=self.display))

    def display(self, what, display_id):
        assert display_id
        self.update(what)
        return self

    def update(self, what):
        self.shown.append((repr(what), what._repr_html_()))


def test_true_draws_a_bar_in_a_notebook(solution, monkeypatch, capsys):
    notebook = Notebook(monkeypatch)
    ace.verify(solution.game, solution.policy, progress=True)
    words = [text for text, _ in notebook.shown]
    assert words[0].startswith("checking: finding") and words[-1].startswith("done in ")
    assert 'value="1.0000"' in notebook.shown[-1][1] and "value" not in notebook.shown[0][1]
    assert any("53/53 situations" in text for text in words)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_is_told_of_compiling_and_not_too_often(monkeypatch):
    notebook = Notebook(monkeypatch)
    with progress.bar("solving", "beginning") as show:
        with compiling():
            assert notebook.shown[-1][0] == progress.COMPILING
        before = len(notebook.shown)
        for k in range(100):
            show(Progress(k, 1000, k, 1000, 1.0))
        assert len(notebook.shown) < before + 10
    assert notebook.shown[-1][0].startswith("done in ")


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not progress.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not progress.in_notebook()


def test_a_bar_that_the_work_broke_off_is_closed(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with pytest.raises(ZeroDivisionError), progress.bar("solving", "beginning"):
        raise ZeroDivisionError
    with progress.bar("solving", "beginning") as show:  # a second live display would be refused while one is open
        assert show is not None


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("step", ["checking", "solving", "finding minimal budgets"])
def test_bars_fit_a_narrow_terminal(step, width):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, highlight=False, color_system=None)
    with progress.terminal_bar(console, step, progress.EXPLORING) as show:
        show(Progress(1, 60, 123_456, 12_345_678, 1.0, step=step))
    shown = re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", screen.getvalue())
    assert "finding" in shown and "…" not in shown and "layer 1/60" in shown and "━" in shown


def test_building_goes_on_evenly():
    reports = [
        Building(0, 2, 1, 4, 0.1),
        Building(1, 2, 4, 4, 0.2),
        Building(1, 2, 1, 2, 0.3),
        Building(2, 2, 2, 2, 0.4),
    ]
    assert [x.share for x in reports] == [0.125, 0.5, 0.75, 1.0]
