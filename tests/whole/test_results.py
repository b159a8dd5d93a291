"""Every public result: a short repr, words for people, and the same words in a notebook, where no label can become markup."""

from __future__ import annotations

import inspect
from html.parser import HTMLParser

import pytest

import acegames as ace
from acegames.report import ReportResult

BAD = "<script>alert('&')</script>"
NOT_RESULTS = {
    *("CE", "CCE", "Nash", "GPUEngine", "LocalEngine", "RayEngine", "ReferenceEngine"),
    *("Known", "GameEnv", "GameModel", "game_env", "game_model", "Building", "Progress"),
    *("Runner", "MemoryRunner", "ShieldRunner", "SafeRunner", "CostTracker", "RandomCost", "CatalogEntry", "Key"),
}
"""What users give, what callbacks are given, and what goes along with an episode."""


def public_classes():
    for module in (ace, ace.baselines, ace.learn, ace.plot, ace.catalog):
        for name in getattr(module, "__all__", dir(module)):
            kind = getattr(module, name)
            if inspect.isclass(kind) and not issubclass(kind, BaseException) and kind.__module__.startswith("acegames"):
                yield name, kind


RESULTS = {name: kind for name, kind in public_classes() if name not in NOT_RESULTS} | {"ReportResult": ReportResult}


def hostile(horizon=2):
    """A game whose every label looks like markup."""
    labels = {what: f"{what}{BAD}" for what in ("player", "state", "go", "stay", "risk")}
    return ace.MarkovGame.from_functions(
        name=f"game{BAD}",
        players=[labels["player"], "other"],
        horizon=horizon,
        initial=labels["state"],
        budget={labels["risk"]: 2},
        actions=lambda t, s: [(labels["go"], labels["stay"])] * 2,
        outcomes=lambda t, s, a: [(1, s, a.count(labels["go"]))],
        reward=lambda t, s, a: [x == labels["go"] for x in a],
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder, game = tmp_path_factory.mktemp("results"), hostile()
    solution = ace.solve(game)
    learned = ace.learn.estimate(game, samples_per_pair=3, rng=0)
    answer = ace.solve(learned.game)
    policy = learned.policy(answer)
    compared = ace.baselines.compare(game, episodes=5)
    shown = [game, solution, solution.guarantee, solution.stats, solution.policy, ace.verify(game, solution.policy)]
    shown += [ace.feasibility(game), ace.reduce(game), ace.round_costs(game, 0.5), ace.Shield(game)]
    shown += [ace.budget_curve(game, budgets=[1, 2]), ace.bracket(game, epsilon=1), ace.estimate(game)]
    shown += [ace.prove(solution, folder / BAD.replace("/", "")), ace.simulate(game, solution.policy, episodes=3)]
    shown += [compared, compared.rows[0], ace.baselines.team_optimum(game), ace.baselines.expected_budgets(game)]
    shown += [learned, learned.support[0], policy, learned.support_of(answer)]
    shown += [ace.learn.rollout(game, policy, episodes=2, rng=0), ace.learn.explore(game, samples_per_pair=2, rng=0)]
    shown += [
        solution.report(folder / "a.html"),
        payoffs := ace.payoffs(game),
        payoffs.policy(),
        payoffs.at(0, game.states[0], 0),
    ]
    return {type(result).__name__: result for result in shown}


def test_every_public_result_is_shown(results):
    assert len(RESULTS) > 20
    assert set(results) == set(RESULTS), "add a new result to `results`, or say in NOT_RESULTS that it is none"


class Text(HTMLParser):
    """The words of HTML, and its tags; styles and pictures are no words."""

    def __init__(self, html):
        super().__init__()
        self.words, self.tags, self.open = "", [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes = dict(attrs)
        if tag not in ("progress", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag == "progress" or self.open.pop() == tag
        self.words += " " if tag in ("p", "td", "th") else ""

    def handle_data(self, data):
        self.words += "" if {"style", "svg"} & set(self.open) else data


OURS = {"div", "style", "p", "b", "table", "tr", "th", "td"}


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_shows_the_words_of_print(name, results):
    shown = results[name]
    text = Text(shown._repr_html_())
    printed = str(shown).replace("|", " ") if name == "Comparison" else str(shown)
    rules = {word for word in printed.split() if name == "Comparison" and set(word) <= set("-:")}
    assert text.words.split() == [word for word in printed.split() if word not in rules]
    assert not text.open, "every tag is closed"
    if name not in ("BudgetCurve", "Payoffs", "PayoffSet"):
        assert set(text.tags) <= OURS
    assert "script" not in text.tags


@pytest.mark.parametrize("name", RESULTS)
def test_repr_is_one_short_line_and_print_is_for_people(name, results):
    said = repr(results[name])
    assert "\n" not in said and len(said) < 400 and said.startswith(f"<{name}")
    assert not str(results[name]).startswith(("<", f"{name}("))


def test_a_long_table_scrolls_so_that_notes_are_in_sight(results):
    long = ace.budget_curve(ace.catalog.get("knapsack"))
    assert 'class="tall"' in long._repr_html_() and 'class="tall"' not in results["BudgetCurve"]._repr_html_()
    assert long._repr_html_().rindex("<p>") > long._repr_html_().index("</table></div>")


def test_without_matplotlib_a_curve_is_a_table(results, monkeypatch):
    import sys

    curve = results["BudgetCurve"]
    assert "<svg" in curve._repr_html_()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<svg" not in curve._repr_html_() and "<table" in curve._repr_html_()


def test_a_picture_has_no_colour_of_the_page(results):
    drawn = results["BudgetCurve"].picture()
    assert "currentColor" in drawn and "#222222" not in drawn and "#ffffff" not in drawn


def test_a_report_without_a_path_is_a_page_in_a_frame(results):
    solution = results["Solution"]
    shown = solution.report()
    assert shown.path is None and "report(path)" in repr(shown)
    frame = Text(shown._repr_html_())
    assert frame.tags == ["iframe"] and frame.attributes["srcdoc"].encode() == shown.page
    assert len(shown.page) == shown.size
    written = results["ReportResult"]
    assert written.path.read_bytes() == shown.page and not written.page
