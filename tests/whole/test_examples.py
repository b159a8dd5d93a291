"""The gallery: every example runs, and its page shows what it computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "gallery").glob("*.md"))
SMALL = {
    "drone_relief": {"horizon": 4},
    "warehouse": {"horizon": 8},
    "medium_access": {"horizon": 6},
    "intersection": {"horizon": 5},
    "dose_scheduling": {"weeks": 4},
    "network_slicing": {"epsilon": 1.2},
    "frozen_lake": {"horizon": 40},
    "last_unit": {},
}
ALONE = ("frozen_lake",)  # one player, and a budget of zero: a team and averages say nothing new


@pytest.mark.parametrize("name", SMALL)
def test_an_example_runs_and_draws(name, example, tmp_path, capsys):
    module = example(name)
    comparison = module.main(tmp_path, episodes=100, **SMALL[name])
    printed = capsys.readouterr().out
    assert str(comparison) in printed
    assert "NOT CERTIFIED" not in printed and "certified" in printed
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    by_name = {row.name: row for row in comparison.rows}
    safe = by_name["at every moment, in equilibrium"]
    assert safe.rollouts.beyond == 0 and "Run: python examples/" in module.__doc__
    if name in ALONE:
        assert safe.total < max(row.total for row in comparison.rows)
        return
    assert by_name["at every moment, as a team"].rollouts.beyond == 0
    assert ("budgets kept on average" in by_name) == (not any(comparison.game.reservoirs))
    if "budgets kept on average" in by_name:
        assert by_name["budgets kept on average"].total >= by_name["at every moment, as a team"].total - 1e-6


@pytest.mark.parametrize("name", [name for name in SMALL if name != "network_slicing"])
def test_a_page_shows_what_its_example_computes(name, example, capsys):
    assert totals(example(name).main(episodes=2)) == totals_on(name)


def test_the_page_of_continuous_costs_shows_what_is_computed(example):
    from acegames import CE, baselines

    comparison = baselines.compare(example("network_slicing").slices(), CE(), epsilon=0.2, episodes=2)
    assert totals(comparison) == totals_on("network_slicing")[:4]


def test_robots_put_together_never_collide(example, tmp_path, capsys):
    solution = example("robots").main(tmp_path, episodes=400, size=3, horizon=7)
    printed = capsys.readouterr().out
    assert "; certified" in printed and "\n0 collisions, 0 batteries run down\n" in printed
    assert solution.values == pytest.approx(solution.values[::-1], abs=0.2) and solution.values.min() > 1
    assert (tmp_path / "robots.png").stat().st_size > 5_000


def totals(comparison):
    return [f"{row.total:.2f}" for row in comparison.rows]


def totals_on(name):
    """The column of totals in the table of a page."""
    text = (ROOT / "docs" / "gallery" / f"{name}.md").read_text()
    lines = re.search(r"<!-- table: .*?-->\n(.*?)<!-- end", text, flags=re.DOTALL)[1].strip().splitlines()
    column = [head.strip() for head in lines[0].split("|")].index("total")
    return [line.split("|")[column].strip() for line in lines[2:] if "|" in line]


def test_every_example_has_a_page_and_is_made_by_make_gallery(example):
    assert set(example("make_gallery").EXAMPLES) == set(SMALL) == {page.stem for page in PAGES} - {"README"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_are_there_and_small(page):
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert any(target.endswith(".png") for target in targets)
    for target in targets:
        there = page.parent / target
        assert there.exists(), target
        assert there.suffix != ".png" or there.stat().st_size < 150_000, target
