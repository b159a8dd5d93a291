"""What people see: the summary of a solve, the drawn frontier, silence, colours, completion; narrow, and with hostile labels."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pty
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

import acegames as ace
import command_line
from acegames.cli import app
from acegames.cli.result_tables import Axis, Took, plot_frontier, show_summary
from acegames.cli.screen import filled_bar, one_line, out, saying_when_it_compiles, speaking, unwatched
from acegames.system.compiling import compiling
from games import one_state
from programs import command, environment, parts, runs

HOSTILE = ("[red]", "[/]", "[bold]x[/bold]", "危険 of rain", "two\nlines", "\x1b[31mred")


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setattr(out, "_width", 80)


def run(*words, code=0, width=80):
    out.width = width
    return command_line.run(*words, code=code)


def wide_enough(shown, width):
    assert max(map(cell_len, shown.splitlines())) <= width, shown
    return shown


def sorting(first="left", second="right", weights=(1, 2, 3), budget=None, player="sorter"):
    """Each weight goes to the one side or to the other."""
    more = {"horizon": len(weights), "budget": budget or {first: 3, second: 4}, "name": player}
    sides = {"l": first, "r": second}
    return one_state([player], [("l", "r")], lambda t, a: {sides[a[0]]: weights[t]}, lambda t, a: [1.0], **more)


# -- the summary of a solve -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 40])
def test_a_solve_ends_with_one_screen(width):
    shown = wide_enough(run("solve", "drones", width=width).stdout, width)
    assert len(shown.splitlines()) <= 20
    assert all(word in shown for word in ("drones", "CERTIFIED", "stage games", "Checked"))
    assert re.search(r"red +7\b", shown) and re.search(r"blue +5\b", shown)
    red, blue = (re.search(rf"{who} battery +([█░]+) (\d of \d)", shown) for who in ("red", "blue"))
    assert (red[2], blue[2]) == ("4 of 4", "3 of 4")
    assert "░" not in red[1] and len(red[1]) == len(blue[1])
    assert blue[1].count("█") == pytest.approx(0.75 * len(blue[1]), abs=0.5)


def test_verbose_tells_everything():
    shown = " ".join(run("solve", "intersection", "--verbose").stdout.split())
    solution = ace.solve(ace.catalog.get("intersection"))
    assert str(solution.guarantee) in shown
    assert " ".join(str(ace.verify(solution.game, solution.policy, solution.concept)).split()) in shown


def fine():
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)),
        np.array([[[2.0], [1.0]]]),
        np.array([[[0.7390851332151607], [0.2679491924311227]]]),
        {"fuel": 3},
        horizon=6,
    )
    game.save("fine.yaml")
    return game


def test_an_approximation_always_shows_its_promise():
    game = fine()
    solution = ace.solve(game, epsilon=0.9)
    certificate = ace.verify(game, solution.policy, solution.concept)
    assert certificate.excess[0] > 0  # else the next lines test nothing
    shown = " ".join(re.sub("[│╭╮╰╯─]", "", run("solve", "fine.yaml", "--epsilon", "0.9").stdout).split())
    assert str(solution.guarantee) in shown
    assert str(certificate).splitlines()[0] in shown and "by a deviation that keeps the true budgets" in shown
    over, promised = map(float, re.search(r"of 3, ([\d.]+) over \(the rounding allows ([\d.]+)\)", shown).groups())
    assert certificate.excess[0] <= over <= certificate.excess[0] * 1.00001
    assert certificate.allowance[0] <= promised <= certificate.allowance[0] * 1.00001
    up = " ".join(run("solve", "fine.yaml", "--epsilon", "0.9", "--rounding", "up").stdout.split())
    assert "deviations that keep the budgets only with the true costs, which are smaller, are not covered" in up
    assert "over (the rounding allows" not in up
    assert "cut after" in run("solve", "intersection", "--gamma", "0.8", "--epsilon", "1").stdout


@pytest.mark.parametrize("more", [(), ("--verbose",)])
def test_a_failed_check_is_told_in_full(monkeypatch, more):
    true = ace.verify

    def doubting(*args, **kwargs):
        return dataclasses.replace(true(*args, **kwargs), ok=False, problems=("Something is wrong.",))

    monkeypatch.setattr(ace, "verify", doubting)
    result = run("solve", "intersection", *more, "-o", "x.ace", code=1)
    assert "nothing was written" in result.stderr and "Written to" not in result.stdout
    assert json.loads(run("solve", "intersection", "-o", "x.ace", "--json", code=1).stdout)["file"] is None
    assert os.listdir(".") == []
    assert "NOT CERTIFIED" in result.stdout and result.stdout.count("Something is wrong.") == 1
    assert "\nCERTIFIED" not in result.stdout and "Exploitability" not in result.stdout
    quiet = run("solve", "intersection", "--quiet", code=1)
    assert quiet.stdout == "" and "did not verify" in quiet.stderr


def test_what_was_not_checked_says_so():
    shown = run("solve", "intersection", "--no-verify").stdout
    assert "NOT CHECKED" in shown and "largest cumulative cost" not in shown and "Checked" not in shown


def test_budgets_that_are_no_single_number_have_no_bar():
    budget = {"left": [3, 4, 4], "right": ace.almost_sure(6), "spare": float("inf")}
    cost = {"left": 1, "right": 2, "spare": 5}
    one_state(["p"], [("l",)], lambda t, a: cost, lambda t, a: [1.0], horizon=3, budget=budget).save("g.yaml")
    shown = run("solve", "g.yaml").stdout
    assert "█" not in shown
    assert "3 at some time; the budget is [3, 4, 4]" in shown
    assert "6 at some time; the budget is 6 at the end" in shown
    assert "15, no limit" in shown


@pytest.mark.parametrize(("share", "full"), [(-1, 0), (0, 0), (1e-9, 1), (0.5, 5), (1 - 1e-9, 9), (1, 10), (1.7, 10)])
def test_bars_are_empty_only_at_nothing_and_full_only_at_the_whole(share, full):
    assert filled_bar(share, 10, "").plain == "█" * full + "░" * (10 - full)


# -- the drawn frontier ---------------------------------------------------------------------------------------------


def drawn(points, own, *, names=("x", "y"), width=80, enough=True, ascii_only=False):
    lines = plot_frontier(names, np.array(points, dtype=float), own, enough=enough, width=width, ascii_only=ascii_only)
    return [line.plain for line in lines]


def test_a_small_frontier_is_drawn_to_the_unit():
    assert drawn([(0, 2), (1, 1), (2, 0)], (2, 1)) == [
        "y",
        "2 ┤●░░░░░░░░░░",
        "  │     ░░░░░░",
        "1 ┤     ●░░░░◆",
        "  │          ░",
        "0 ┤          ●",
        "  └───────────",
        "   0    1    2",
        "             x",
        "● minimal budget   ░ suffices   ◆ the game's own budget",
    ]
    plain = drawn([(0, 2), (1, 1), (2, 0)], (0, 0), enough=False, ascii_only=True)
    assert plain[5] == "0 +X         o" and plain[-1].endswith("X own budget, too small")
    assert "".join(plain).isascii()


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("count", [1, 2, 700])
def test_every_frontier_fits(width, count):
    x = np.linspace(-5.3, 1234.5, count)
    points = np.column_stack([x, x[::-1] * 1e-3])
    for own in ((500.25, 0.5), (1e9, 0.5), (-1e9, -1e9)):
        lines = drawn(points, own, names=("first " * 20, "危険" * 30), width=width, enough=own[0] > 0)
        assert all(cell_len(line) <= width for line in lines) and len(lines) <= 24
        marks = "".join(lines[1:-4])
        assert marks.count("◆") + marks.count("✖") == 1
        assert marks.count("●") + 1 >= min(count, 12)  # a far budget does not shrink the frontier to a spot
        assert ("far outside" in "".join(lines[-3:])) == (abs(own[0]) == 1e9 and count > 1)


@pytest.mark.parametrize(
    ("low", "high", "whole"), [(0, 10, True), (3, 17, True), (0, 1, True), (-5, 995, True), (0.2, 0.9, False)]
)
def test_labels_of_an_axis_are_evenly_spaced(low, high, whole):
    axis = Axis(low, high, 61, whole)
    labels = [float(label) for _, label in axis.marks()]
    assert 2 <= len(labels) <= 6 and low <= labels[0] and labels[-1] <= high
    assert np.ptp(np.diff(labels)) == pytest.approx(0)
    assert not whole or all(label.is_integer() for label in labels)
    assert [column for column, _ in axis.marks()] == axis.at(labels).tolist()


def test_the_frontier_is_drawn_where_two_budgets_are_bounded():
    shown = run("frontier", "partition", "--no-curve").stdout
    rows = [line for line in shown.splitlines() if re.match(r" *\d* [┤│]", line) and "┃" not in line]
    assert len(rows) == 11
    assert [row.index("●" if k != 5 else "◆") for k, row in enumerate(rows)] == [4 + 5 * k for k in range(11)]
    assert "suffices" in shown and shown.count("left") >= 2
    assert "●" not in run("frontier", "intersection", "--no-curve").stdout  # one budget
    assert "●" not in run("frontier", "corridor").stdout  # none
    sorting(weights=(3, 1, 1), budget={"left": 2, "right": 2}).save("short.yaml")
    assert "✖ own budget, too small" in run("frontier", "short.yaml").stdout


def test_a_schedule_is_drawn_by_its_last_finite_entries():
    sorting(budget={"left": [1, 2, 3], "right": [5, float("inf"), 4]}).save("g.yaml")
    shown = run("frontier", "g.yaml", "--no-curve").stdout
    assert re.search(r"^4 ┤.*◆", shown, flags=re.MULTILINE) and "schedule" in shown


# -- hostile labels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("label", HOSTILE)
def test_labels_are_shown_as_they_are(label, width):
    sorting(first=label, second="other", player=label).save("g.yaml")
    shown = wide_enough(run("solve", "g.yaml", width=width).stdout, width)
    assert shown.count(one_line(label)) >= 3  # the name of the game, the player, the constraint
    assert "\x1b" not in shown
    plot = run("frontier", "g.yaml", "--no-curve", width=width).stdout.partition("┤")[2]
    assert one_line(label) in plot and "\x1b" not in plot


# -- silence and machines -------------------------------------------------------------------------------------------


def test_quiet_prints_nothing_and_exits_the_same():
    run("solve", "intersection", "-o", "s.ace", "--quiet")
    sorting(weights=(3, 1, 1), budget={"left": 2, "right": 2}).save("short.yaml")
    for words, code in [
        (("check", "intersection"), 0),
        (("check", "short.yaml"), 3),
        (("frontier", "intersection"), 0),
        (("reduce", "intersection"), 0),
        (("solve", "intersection"), 0),
        (("verify", "s.ace"), 0),
        (("verify", "s.ace", "--game", "drones"), 1),
        (("simulate", "s.ace", "--episodes", "5"), 0),
        (("bracket", "intersection", "--epsilon", "1"), 0),
        (("catalog",), 0),
    ]:
        assert run(*words, "-q", code=code).output == ""
        assert run(*words, code=code).stdout != ""  # and speaks again afterwards
    failed = run("solve", "short.yaml", "--quiet", code=3)
    assert failed.stdout == "" and failed.stderr.startswith("Error: no policy keeps every budget")
    assert json.loads(run("check", "drones", "--quiet", "--json").stdout)["feasible"]


def on_a_terminal(command, code=0, **more):
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    variables = environment(TERM="xterm-256color", COLUMNS="80", **more)
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=variables) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(leader)
    assert process.returncode == code, shown
    return shown.decode()


COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3|4|9)[0-9](?:;[0-9]+)*m")


BARS = {
    "COLUMNS=160 verify a.ace": ["checking"],
    "COLUMNS=160 prove a.ace -o a.proof": ["checking", "writing the proof"],
    "COLUMNS=160 report a.ace -o a.html": ["checking", "describing situations"],
    "COLUMNS=160 export a.ace -o a.csv": ["writing"],
    "COLUMNS=160 frontier a.ace --no-curve": ["finding minimal budgets"],
}


@pytest.fixture(scope="module")
def shown_on_a_terminal(tmp_path_factory):
    """{words: what they show}."""
    ace.solve(ace.catalog.get("drones")).save(tmp_path_factory.getbasetemp() / "a.ace")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())
        lines = ["solve drones", *BARS]
        pieces = parts(on_a_terminal(command(lines)))
    assert [code for code, _ in pieces[::2]] == [0] * len(lines)  # both streams are the terminal
    return dict(zip(lines, (shown for _, shown in pieces[::2]), strict=True))


def test_colours_and_bars_on_a_terminal(shown_on_a_terminal):
    shown = shown_on_a_terminal["solve drones"]
    assert COLOUR.search(shown) and "solving" in shown and "checking" in shown


@pytest.mark.parametrize("words", BARS)
def test_long_work_shows_a_bar(words, shown_on_a_terminal):
    shown, steps = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown_on_a_terminal[words]), BARS[words]
    assert "prove" not in words or shown.index(steps[0]) < shown.index(steps[-1])
    assert re.search(rf"{steps[-1]}\W+layer [0-9]+/[0-9]+, [0-9,]+/[0-9,]+ (situations|states)", shown), shown


def test_no_colours_where_they_are_not_wanted():
    words = [sys.executable, "-m", "acegames", "catalog", "nosuch"]
    assert COLOUR.search(on_a_terminal(words, code=2))
    assert not COLOUR.search(on_a_terminal(words, code=2, NO_COLOR="1"))
    assert b"\x1b" not in subprocess.run(words, capture_output=True, timeout=120).stderr


def test_quiet_work_shows_no_bar(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for quiet, as_json in ((False, False), (True, False), (False, True)):
        with speaking(quiet=quiet, as_json=as_json):
            assert unwatched() == (quiet or as_json)


def test_a_bar_says_when_kernels_are_compiled():
    with Progress(console=Console(file=io.StringIO())) as bar:
        with saying_when_it_compiles(bar, bar.add_task("checking")):
            bar.update(0, description="still checking")
            with compiling(), compiling():
                assert bar.tasks[0].description == "compiling kernels"
            assert bar.tasks[0].description == "still checking"
        with compiling():
            assert bar.tasks[0].description == "still checking"


def test_old_encodings_get_plain_characters():
    sorting(first="危険").save("g.yaml")
    for run in runs("solve g.yaml", "frontier g.yaml", env=environment(PYTHONIOENCODING="ascii")):
        assert run.stderr == "" and run.stdout.isascii() and "#" in run.stdout


# -- completion -----------------------------------------------------------------------------------------------------


def completed(*words):
    """What bash is offered for the last word."""
    environment = {
        "_ACEGAMES_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": f"{len(words) - 1}",
    }
    return CliRunner().invoke(app, [], env=environment, prog_name="acegames").stdout.split()


def test_words_are_completed():
    assert completed("acegames", "sol") == ["solve"]
    assert completed("acegames", "solve", "inter") == ["intersection"]
    assert set(completed("acegames", "catalog", "medium")) == {"medium_access", "medium_access_3"}
    assert completed("acegames", "solve", "drones", "--concept", "n") == ["nash"]
    assert completed("acegames", "solve", "drones", "--objective", "eg") == ["egalitarian"]


def test_game_files_are_completed():
    os.mkdir("games")
    for name in ("drum.yaml", "drum.txt", "dr.ace", "games/a.json", "games/b.npz"):
        open(name, "w").close()
    assert completed("acegames", "check", "dr") == ["drones", "dr.ace", "drum.yaml"]
    assert completed("acegames", "check", "games/") == ["games/a.json", "games/b.npz"]
    assert completed("acegames", "verify", "dr") == ["dr.ace"]
    assert completed("acegames", "verify", "dr.ace", "--game", "drum") == ["drum.yaml"]
    assert completed("acegames", "check", "gam") == []  # left to the shell, which sets no space behind a folder
    assert completed("acegames", "check", "nowhere/") == []


def test_nothing_that_a_terminal_would_obey_is_printed():
    game = sorting("\x1b[2Jfu", "\x1b]0;pwn\x07A", player="\x1b[31mme")
    game.save("g.yaml")
    run("solve", "g.yaml", "-o", "s.ace")
    for words in (
        ("check", "g.yaml"),
        ("frontier", "g.yaml"),
        ("reduce", "g.yaml"),
        ("solve", "g.yaml", "--verbose"),
        ("verify", "s.ace"),
        ("simulate", "s.ace"),
        ("bracket", "g.yaml", "--epsilon", "0.1"),
    ):
        result = run(*words)
        assert not set("\x1b\x07") & set(result.stdout + result.stderr), words


def test_labels_that_look_alike_are_told_apart_in_json():
    sorting(1, "1", budget={1: 3, "1": 4}).save("alike.json")
    assert command_line.answer("check", "alike.json")["game"]["budget"] == {"1": 3, "'1'": 4}


# -- reservoirs


def store(battery, charge=2, **others):
    """A rover that drives or charges; other constraints cost one for driving."""
    costs = dict.fromkeys(others, 1)
    spent = {"go": {"battery": 2, **costs}, "charge": {"battery": -charge}}
    more = {"horizon": 4, "budget": {"battery": battery, **others}, "name": "store"}
    return one_state(["rover"], [tuple(spent)], lambda t, a: spent[a[0]], lambda t, a: [float(a == ("go",))], **more)


def plainly(result):
    return " ".join(re.sub("[│┃]", " ", result.output).split())


@pytest.mark.parametrize(
    ("battery", "said", "data"),
    [
        (ace.reservoir(6), "battery: reservoir of 6", {"reservoir": 6, "start": 6, "reserve": 0}),
        (
            ace.reservoir(6, 4, 1),
            "battery: reservoir of 6, starts at 4, reserve 1",
            {"reservoir": 6, "start": 4, "reserve": 1},
        ),
        (
            ace.reservoir(6, reserve=[0, 0, 1, 2]),
            "battery: reservoir of 6, reserve [0, 0, 1, 2]",
            {"reservoir": 6, "start": 6, "reserve": [0, 0, 1, 2]},
        ),
    ],
)
def test_a_reservoir_is_said_in_words_and_in_json(battery, said, data):
    store(battery, fuel=9).save("store.yaml")
    assert f"Budgets: {said}; fuel <= 9" in plainly(run("check", "store.yaml"))
    pieces = json.loads(run("check", "store.yaml", "--json").stdout)["game"]
    assert pieces["budget"] == {"battery": data, "fuel": 9} and pieces["budget_is_a_schedule"] is False
    shown = run("frontier", "store.yaml", "--no-curve", width=120).stdout
    assert f"The game's own budget: {said}; fuel <= 9" in shown and "battery (capacity)" in shown
    assert "schedule" not in shown, "reserves stay as they are"


def test_the_smallest_capacity():
    store(ace.reservoir(6, 4, 1)).save("store.yaml")
    shown = run("frontier", "store.yaml", "--no-curve").stdout
    assert "Smallest capacity that suffices: 1 (you have 6)" in shown
    assert "Smallest capacity" not in run("frontier", "intersection", "--no-curve").stdout


def test_a_store_that_begins_with_too_little():
    store(ace.reservoir(6, 1), charge=-2).save("store.yaml")  # nothing fills it, and everything takes two
    shown = run("frontier", "store.yaml", "--no-curve").stdout
    assert "No capacity suffices: a reservoir must start at a higher level." in shown
    assert "which does not suffice" in " ".join(shown.split())


def test_the_lowest_level_is_shown(monkeypatch):
    game = store(ace.reservoir(6, 4, 1), fuel=9)
    solution = ace.solve(game)
    judged = ace.verify(ace.catalog.get("intersection"), ace.solve(ace.catalog.get("intersection"), ace.CE()).policy)
    certificate = dataclasses.replace(
        judged,
        constraints=game.constraints,
        max_spent=np.array([5.0, 2.0]),
        excess=np.zeros(2),
        allowance=np.zeros(2),
        counting=("exact", "exact"),
        limits=(" of 5", " of 9"),
        capacities=(6, None),
    )
    with out.capture() as seen:
        show_summary(solution, certificate, Took(0.0, 0.0), verbose=False)
    assert "largest cumulative cost, or lowest level" in seen.get()
    assert re.search(r"battery +\S+ 1 of 6 left, starts at 4, reserve 1", seen.get()), seen.get()
    assert re.search(r"fuel +\S+ 2 of 9", seen.get())
    broken = dataclasses.replace(certificate, max_spent=np.array([6.0, 2.0]), excess=np.array([1.0, 0.0]))
    with out.capture() as seen:
        show_summary(solution, broken, Took(0.0, 0.0), verbose=False)
    assert "0 of 6 left, starts at 4, reserve 1, 1 short of its reserve" in plainly(SimpleNamespace(output=seen.get()))


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_frontier_of_nothing_is_told(json):
    """Two constraints, of which a reservoir begins with too little whatever it holds."""
    store(ace.reservoir(6, 1), charge=-2, fuel=3).save("game.yaml")
    assert "No capacity suffices" in run("frontier", "game.yaml", *json).output or json
