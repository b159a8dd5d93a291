"""The explorer in a real browser: opened from disk with the network off, every control moved, numbers read and compared."""

from __future__ import annotations

import functools
import json
import re
from urllib.parse import quote

import numpy as np
import pytest

import acegames as ace
from chromium import MISSING, Chromium, find
from games import alone, one_state, rover
from shares import some

pytestmark = pytest.mark.skipif(find() is None, reason=MISSING)

HOSTILE = "</script><img src=x onerror=\"alert('in')\"><b>&amp;"


def three_budgets():
    return ace.MarkovGame.from_functions(
        name="three budgets",
        players=["one", "two", "three"],
        horizon=3,
        initial="x",
        budget={"a": 7, "b": 8, "c": 9},
        actions=lambda t, s: [("p", "q", "r"), ("p", "q", "r"), ("u",)],
        outcomes=lambda t, s, a: [
            (0.5, "x", [2 * a.count("p"), 2 * a.count("q"), 2 * a.count("r")]),
            (0.5, "y", [a.count("p"), a.count("q"), a.count("r") + 1]),
        ],
        reward=lambda t, s, a: [a.count("p"), a.count("q") + 0.7 * (a[0] == "r"), a.count("r")],
    )


def blanks():
    """Names with blanks, a state whose label looks like a condition, and one smallest budget."""
    costs = {"far": 2, "near": 1}
    return one_state(
        ["one", "two"],
        [("far", "near")] * 2,
        lambda t, a: [costs[a[0]], costs[a[1]], t == 1],
        lambda t, a: [costs[a[0]], costs[a[1]]],
        horizon=3,
        budget={"fuel north": 4, "fuel south": 4, "noise": 5},
        state="x=1",
        name="blanks",
    )


def hostile():
    return one_state(
        [HOSTILE, "you"],
        [(HOSTILE, "b"), ("c",)],
        lambda t, a: 2 * (a[0] == "b"),
        lambda t, a: [1, 2],
        horizon=2,
        budget={HOSTILE: 1},
        state=HOSTILE,
        name=HOSTILE,
    )


def fine():
    costs = {"drive": (0.7390851332, 0.5671432904), "rest": (0, -0.1618033989)}
    return alone(
        lambda s, a: [(0.5, s, cost) for cost in costs[a[0]]],
        actions=tuple(costs),
        reward={"drive": 1},
        horizon=4,
        budget={"battery": 2},
        name="fine",
    )


def scheduled():
    return alone(
        lambda t, s, a: [(1, s, {"dear": 2, "cheap": 1, "go": 2 * (t == 1)}[a[0]])],
        actions=lambda t, s: [("dear", "cheap") if t == 0 else ("go",)],
        reward={"dear": 1},
        horizon=3,
        initial="field",
        budget={"fuel": [100, 3, 10]},
        name="scheduled",
    )


def amounts(cost, budget, reward):
    return one_state(
        ["rover"],
        [("go", "stay")],
        lambda t, a: cost * (a[0] == "go"),
        lambda t, a: [reward * (a[0] == "go")],
        horizon=2,
        budget={"fuel": budget},
        state="field",
        name="amounts",
    )


def large():
    rng = np.random.default_rng(0)
    shape = (6, 3, 3)
    return ace.MarkovGame.from_arrays(
        rng.dirichlet(np.ones(6), shape),
        rng.normal(size=(*shape, 2)),
        rng.integers(0, 9, (*shape, 2)),
        [40, 40],
        horizon=10,
        name="large",
        constraints=["fuel", "risk"],
    )


SOLUTIONS = {
    "ce": lambda: ace.solve(ace.catalog.get("intersection"), ace.CE()),
    "two budgets": lambda: ace.solve(ace.catalog.get("drones"), ace.CCE()),
    "three budgets": lambda: ace.solve(three_budgets()),
    "blanks": lambda: ace.solve(blanks()),
    "nash": lambda: ace.solve(ace.catalog.get("medium_access"), ace.Nash()),
    "no budgets": lambda: ace.solve(ace.catalog.get("corridor")),
    "almost sure": lambda: ace.solve(ace.catalog.get("net_zero")),
    "rounded": lambda: ace.solve(fine(), epsilon=0.5),
    "hostile": lambda: ace.solve(hostile()),
    "scheduled": lambda: ace.solve(scheduled()),
    "reservoirs": lambda: ace.solve(ace.catalog.get("electric_fleet"), ace.CE()),
    "a battery": lambda: ace.solve(rover(ace.reservoir(6, start=4, reserve=1), name="a battery")),
    "huge": lambda: ace.solve(amounts(1234567.25, 1234568, 123456)),
    "tiny": lambda: ace.solve(amounts(1.5e-10, 2e-10, 1e-11)),
    "large": lambda: ace.solve(large()),
    "pictures": lambda: ace.solve(ace.catalog.get("corridor", horizon=3)),
    "compared": lambda: ace.solve(ace.catalog.get("intersection"), ace.CE()),
}
OPTIONS = {
    "compared": lambda: {"against": ace.solve(ace.catalog.get("intersection", horizon=5, budget=4), ace.CCE())},
    "hostile": lambda: {"render": lambda state: "<svg onload='alert(1)'><script>alert(2)</script></svg>"},
    "large": lambda: {"render": lambda state: None},
}


@pytest.fixture(scope="module")
def browser():
    made = Chromium(find())
    yield made
    made.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The solution of that name and its page, each made once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def get(name):
        if name not in made:
            path = folder / f"{name.replace(' ', '-')}.html"
            solution = SOLUTIONS[name]()
            solution.report(path, episodes=200, rng=1, **OPTIONS.get(name, dict)())
            made[name] = solution, path
        return made[name]

    return get


@pytest.fixture
def opened(browser, shown):
    pages = []

    def get(name, **options):
        solution, path = shown(name)
        pages.append(browser.open(path, **options))
        return solution, pages[-1]

    yield get
    for page in pages:
        assert page.troubles() == []
        page.close()


def choose(page, name, value):
    """Choose from a list, as its change event tells the page."""
    page.get(
        f"(() => {{ const s = document.getElementById('{name}'); s.value = {value}; s.dispatchEvent(new Event('change')); }})()"
    )


def numbers(page, holder):
    """Open the table behind a chart and read its lines."""
    page.click(f"{holder} figure summary")
    page.wait(f"document.querySelectorAll('{holder} figure tbody tr').length > 0")
    return page.get(
        f"[...document.querySelectorAll('{holder} figure tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
    )


def read(text):
    return float(text.replace("−", "-").replace(",", "").replace("\u00a0%", ""))


def situation(page, game):
    """Time, state and spending as the controls say."""
    t = int(re.match(r"t = (\d+)", page.get("document.getElementById('time').getAttribute('aria-valuetext')"))[1])
    state = page.get("document.getElementById('state').selectedOptions[0].textContent")
    label = next(s for s in game.states if (s if isinstance(s, str) else str(s)) == state or spelled(s) == state)
    amounts = [
        page.get(f"document.getElementById('spent-{m}').getAttribute('aria-valuetext')")
        for m in range(len(game.constraints))
    ]
    return t, label, [_spent(a, reservoir) for a, reservoir in zip(amounts, game.reservoirs, strict=True)]


def _spent(text, reservoir):
    """What a slider says, as spending: of a reservoir, what is missing to its capacity."""
    if reservoir is None:
        return read(text.split(" spent")[0])
    left, whole = re.fullmatch(r"(\S+) of (\S+) left", text).groups()
    assert read(whole) == float(reservoir.capacity)
    return read(whole) - read(left)


@functools.cache
def feasible(game):
    return ace.feasibility(game)


def spelled(state):
    def part(x):
        return "(" + ", ".join(map(part, x)) + ")" if isinstance(x, tuple) else str(x)

    return " · ".join(map(part, state)) if isinstance(state, tuple) else str(state)


def check_situation(page, solution):
    """What the page says here is what the policy and the feasible joint actions say."""
    game, policy = solution.game, solution.policy
    t, state, spent = situation(page, game)
    np.testing.assert_allclose(
        [read(x) for x in page.texts(".situation-value")], policy.values(t, state, spent), rtol=1e-5, atol=1e-9
    )
    rows = page.get(
        "[...document.querySelectorAll('#joint-actions tbody tr[data-row]')].map((r) => "
        "[r.children[0].textContent, r.className, r.querySelector('.probability')?.textContent ?? null])"
    )
    safe = feasible(game).actions(t, state, spent)
    assert sorted(name for name, kind, _ in rows if kind != "unsafe") == sorted(", ".join(map(str, a)) for a in safe)
    expected = {", ".join(map(str, a)): p for a, p in policy.distribution(t, state, spent).items()}
    played = {name: p for name, _, p in rows if p is not None}
    assert played.keys() == expected.keys()
    for name, p in played.items():
        assert read(p) == pytest.approx(100 * expected[name], abs=0.051)
    assert f"t = {t} in state {spelled(state)}" in page.text("#here")


def worth(solution, t, state, spent, action):
    """Reward plus the policy's expected value of what follows."""
    game = solution.game
    layer = game.layer(t)
    row = next(r for r in layer.rows(game.state_index(state)) if game.joint_action(layer.action[r]) == action)
    total = layer.reward[row].copy()
    for k in range(layer.out_ptr[row], layer.out_ptr[row + 1]) if t + 1 < game.horizon else ():
        cost = [values[c] for values, c in zip(game.cost_values, layer.cost[k], strict=True)]
        after = [float(c) + x for c, x in zip(cost, spent, strict=True)]
        total += layer.prob[k] * solution.policy.values(t + 1, game.states[layer.next_state[k]], after)
    return total


WIDE = {"width": 1280, "dark": False}
NARROW = {"width": 390, "dark": True}


@pytest.mark.parametrize(
    ("name", "how"),
    [*some(((name, NARROW) for name in SOLUTIONS), of=4), *some(((name, WIDE) for name in SOLUTIONS), of=6)],
    ids=lambda value: value if isinstance(value, str) else str(value["width"]),
)
def test_opens_from_disk_with_the_network_off(opened, name, how):
    solution, page = opened(name, **how)
    assert page.get("document.documentElement.scrollWidth") <= how["width"], "something is wider than the window"
    assert page.text("#title") == (solution.game.name or "A game")
    assert "✓ certified" in page.text("#verdict")
    np.testing.assert_allclose([read(x) for x in page.texts("#summary .value")], solution.values, rtol=1e-5, atol=1e-9)
    assert str(solution.guarantee) == page.text("#guarantee")


@pytest.mark.parametrize(
    "name", some(["two budgets", "a battery", "nash", "ce", "three budgets", "no budgets", "reservoirs"], of=3)
)
def test_the_keyboard_moves_every_control(opened, name):
    solution, page = opened(name)
    page.press_at("#time", "Home")
    for t in range(solution.game.horizon):
        assert situation(page, solution.game)[0] == t
        check_situation(page, solution)
        for m in range(len(solution.game.constraints)):
            if page.get(f"document.getElementById('spent-{m}').disabled"):  # there is one amount only
                continue
            page.press_at(f"#spent-{m}", "End")
            check_situation(page, solution)
            page.press("ArrowLeft")
            check_situation(page, solution)
        page.press_at("#state", "ArrowDown")
        check_situation(page, solution)
        page.press_at("#time", "ArrowRight")
    assert page.get("document.activeElement.id") == "time", "the focus stays where the keys are pressed"


@pytest.mark.parametrize("name", ["ce", "two budgets", "rounded"])
def test_the_mouse_moves_every_slider(opened, name):
    solution, page = opened(name)
    page.click("#time", x=0.5)
    assert 0 < situation(page, solution.game)[0] < solution.game.horizon - 1
    for m in range(len(solution.game.constraints)):
        before = situation(page, solution.game)[2][m]
        page.click(f"#spent-{m}", x=0.98)
        after = situation(page, solution.game)[2][m]
        page.click(f"#spent-{m}", x=0.02)
        assert before <= after and situation(page, solution.game)[2][m] < after
    if name == "rounded":
        t, state, spent = situation(page, solution.game)
        assert read(page.text(".situation-value")) == pytest.approx(
            float(solution.policy.values(t, state, spent)[0]), rel=1e-5
        )
        assert "rounded costs" in page.text("#notes") and "counted as spent" in page.text("#here")
    else:
        check_situation(page, solution)


def test_losses_are_those_of_the_policys_own_values(opened):
    solution, page = opened("ce")
    game, policy = solution.game, solution.policy
    certificate = ace.verify(game, policy, solution.concept)
    barred = seen = 0
    page.press_at("#time", "Home")
    for _ in range(game.horizon):
        page.press_at("#spent-0", "Home")
        while True:
            t, state, spent = situation(page, game)
            plan, safe = policy.distribution(t, state, spent), feasible(game).actions(t, state, spent)
            lines = page.get(
                "[...document.querySelectorAll('#deviations tbody tr')].map((r) => [+r.dataset.player, +r.dataset.told, "
                "+r.dataset.action, r.querySelector('.loss')?.textContent ?? null])"
            )
            for i, signal, b, loss in lines:
                part = {a: p for a, p in plan.items() if a[i] == game.actions[i][signal]}
                swapped = {a: tuple(game.actions[i][b] if k == i else x for k, x in enumerate(a)) for a in part}
                assert (loss is None) == (not set(swapped.values()) <= set(safe))
                if loss is None:
                    barred += 1
                    continue
                gap = sum(
                    p * (worth(solution, t, state, spent, a) - worth(solution, t, state, spent, swapped[a]))[i]
                    for a, p in part.items()
                ) / sum(part.values())
                assert read(loss) == pytest.approx(gap, rel=1e-5, abs=1e-6)
                assert -read(loss) <= certificate.regret[i] + 1e-6
                seen += 1
            page.press("ArrowRight")
            if situation(page, game)[2] == spent:
                break
        page.press_at("#time", "ArrowRight")
    assert barred and seen > 40


def test_reasons_name_the_outcome_and_the_budget(opened):
    solution, page = opened("ce")
    page.press_at("#time", "End")
    page.press_at("#spent-0", "End")
    _, _, spent = situation(page, solution.game)
    now = page.texts("#joint-actions .reason")
    assert now and all(re.search(r"infeasible now: .*it brings risk to \d+, over its budget of 6\.", x) for x in now)
    assert spent == [6] or spent == [5]
    page.press_at("#time", "ArrowLeft", 2)
    page.press_at("#spent-0", "End")
    later = [x for x in page.texts("#joint-actions .reason") if "infeasible later" in x]
    assert later and all(
        re.search(r"leads to state \w+ \(spent by then: risk \d+\), where risk needs \d+ more and has \d+ left\.", x)
        for x in later
    )


def test_reasons_tell_no_amounts_where_the_budget_changes_with_time(opened):
    _, page = opened("scheduled")
    page.press_at("#time", "Home")
    (said,) = page.texts("#joint-actions .reason")
    assert said == (
        "infeasible later: for certain it leads to state field (spent by then: fuel 2), "
        "where fuel needs more than its budgets leave."
    )


@pytest.mark.parametrize(
    ("name", "spent", "over", "budget", "value"),
    [("huge", "1,234,567.25", "2,469,134.5", "1,234,568", "123,456"), ("tiny", "1.5e−10", "3e−10", "2e−10", "1e−11")],
)
def test_no_digit_that_matters_is_rounded_away(opened, name, spent, over, budget, value):
    _, page = opened(name)
    page.press_at("#time", "End")
    page.press_at("#spent-0", "End")
    assert page.get("document.getElementById('spent-0').getAttribute('aria-valuetext')") == f"{spent} spent of {budget}"
    assert f"it brings fuel to {over}, over its budget of {budget}." in page.text("#joint-actions .reason")
    assert page.texts("#summary tbody tr td")[:2] == [value, f"{value} ± 0"]
    assert page.text("#summary .worst").startswith(f"{spent} of {budget} (")
    assert f"mean {spent}, from {spent} to {spent} (budget {budget})" in page.text("#spending-body figcaption")
    page.press_at("#spent-0", "Home")
    assert numbers(page, "#map-body")[0][:2] == ["0", value]


def test_the_map_follows_and_opens_situations(opened):
    solution, page = opened("two budgets")
    page.press_at("#time", "End")
    for choice in range(4):  # red, blue, sum, joint action
        choose(page, "map-what", choice)
        wanted = ("Value of red", "Value of blue", "Sum of values", "Recommended joint action")[choice]
        assert page.text("#map-body figcaption").startswith(wanted)
        assert "cells. The table below" in page.get(
            "document.querySelector('#map-body .plot').getAttribute('aria-label')"
        )
    lines = numbers(page, "#map-body")
    t, state, _ = situation(page, solution.game)
    assert len(lines) == sum(1 for s, _ in ace.feasibility(solution.game).states(t) if s == state)
    for a, b, red, blue, *_ in lines:
        expected = solution.policy.values(t, state, [read(a), read(b)])
        np.testing.assert_allclose([read(red), read(blue)], expected, rtol=1e-4, atol=1e-9)
    places = set()
    for x in (0.05, 0.5, 0.95):
        for y in (0.1, 0.9):
            page.click("#map-body .u-over", x, y)
            places.add(tuple(situation(page, solution.game)[2]))
            check_situation(page, solution)
    assert len(places) > 1


def test_with_three_budgets_any_two_can_be_chosen(opened):
    solution, page = opened("three budgets")
    page.press_at("#time", "End")
    for across, up in ((0, 2), (2, 1), (1, 0)):
        for which, value in (("x", across), ("y", up)):
            for holder in ("map", "pareto"):
                choose(page, f"{holder}-{which}", value)
        assert [page.get(f"+document.getElementById('map-{k}').value") for k in "xy"] == [across, up]
        names = solution.game.constraints
        assert f"cumulative cost of {names[across]} and cumulative cost of {names[up]}:" in page.get(
            "document.querySelector('#map-body .plot').getAttribute('aria-label')"
        )
        assert f"Budgets of {names[across]} and {names[up]}" in page.text("#frontier-body figcaption")


def test_smallest_budgets_and_the_value_of_budget(opened):
    solution, page = opened("ce")
    least = ace.feasibility(solution.game).minimal_budgets
    assert f"suffice: risk {least[0, 0]:g}." in page.text("#minimal")
    lines = numbers(page, "#curve-body")
    curve = solution.budget_curve()
    np.testing.assert_allclose(
        [[read(x) for x in line] for line in lines], np.column_stack([curve.budgets, curve.values]), rtol=1e-5
    )


def rollouts_reward(game, rollouts, t):
    """Reward of the first episode's step."""
    layer = game.layer(t)
    row = next(r for r in layer.rows(rollouts.state[0, t]) if (layer.action[r] == rollouts.action[0, t]).all())
    return layer.reward[row]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_titles_of_episodes_are_not_clipped(opened, width):
    _, page = opened("two budgets", width=width)
    long = page.get(
        "(() => { const s = document.getElementById('episode-which'), c = document.createElement('canvas').getContext('2d'); "
        "c.font = getComputedStyle(s).font; "
        "return Math.max(...[...s.options].map((o) => c.measureText(o.textContent).width)) - s.clientWidth + 50; })()"
    )
    assert any("least left" in x for x in page.texts("#episode-which option")) and long < 0


def test_an_episode_is_played_back(opened):
    solution, page = opened("ce")
    rollouts = ace.simulate(solution.game, solution.policy, episodes=200, rng=np.random.default_rng(1))
    game = solution.game
    at = "+document.getElementById('episode-at').value"
    for t in range(game.horizon):
        said = page.text("#episode-step")
        action = ", ".join(map(str, game.joint_action(rollouts.action[0, t])))
        before = rollouts.spent[0, t - 1, 0] if t else 0
        assert (
            f"t = {t}: in state {game.states[rollouts.state[0, t]]} (spent so far: risk {before:g}), they play {action}."
            in said
        )
        reward = rollouts_reward(game, rollouts, t)
        assert f"Reward of this step: north {reward[0]:g}, east {reward[1]:g}; before it:" in said
        page.click("#episode-next")
    assert page.get(at) == game.horizon
    end = page.text("#episode-step")
    assert "The end" in end and f"north {rollouts.returns[0, 0]:g}, east {rollouts.returns[0, 1]:g}" in end
    page.press_at("#episode-back", "Enter")
    page.press(" ")
    assert page.get(at) == game.horizon - 2
    page.click("#episode-open")
    t, state, spent = situation(page, game)
    assert (t, state, spent) == (game.horizon - 2, game.states[rollouts.state[0, t]], [rollouts.spent[0, t - 1, 0]])
    page.click("#episode-first")
    page.click("#episode-play")
    assert page.text("#episode-play") == "Pause"
    page.wait(f"{at} >= 1")
    page.click("#episode-play")
    assert page.text("#episode-play") == "Play"
    page.press_at("#episode-at", "End")
    assert page.get(at) == game.horizon
    choose(page, "episode-which", 1)
    assert page.get(at) == 0 and str(game.states[rollouts.state[1, 0]]) in page.text("#episode-step")


def test_final_spending(opened):
    solution, page = opened("ce")
    rollouts = ace.simulate(solution.game, solution.policy, episodes=200, rng=np.random.default_rng(1))
    assert "Of 200 simulated episodes, none broke a budget." in page.text("#violations")
    lines = numbers(page, "#spending-body")
    amounts, count = np.unique(rollouts.spent[:, -1, 0], return_counts=True)
    assert [(read(a), read(n)) for a, n, _ in lines] == list(zip(amounts.tolist(), count.tolist(), strict=True))


@pytest.mark.parametrize("name", ["ce", "three budgets", "rounded", "almost sure", "a battery"])
def test_every_chart_has_words_and_numbers_and_every_control_a_name(opened, name):
    _, page = opened(name, width=390)
    figures = page.get(
        "[...document.querySelectorAll('figure')].map((f) => { f.querySelector('details').open = true; "
        "return [f.querySelector('.plot').getAttribute('role'), f.querySelector('.plot').getAttribute('aria-label').length, "
        "f.querySelectorAll('canvas').length]; })"
    )
    assert len(figures) >= 4 and all(role == "img" and length > 20 and drawn for role, length, drawn in figures)
    page.wait("[...document.querySelectorAll('figure')].every((f) => f.querySelectorAll('tbody tr').length > 0)")
    nameless = page.get(
        "[...document.querySelectorAll('input, select, button')].filter((c) => "
        "!(c.labels && c.labels.length) && !c.getAttribute('aria-label') && !c.textContent.trim()).length"
    )
    assert nameless == 0
    assert page.get("document.documentElement.scrollWidth") <= 390


def drawn_level(page, holder):
    """Words and shares of the batteries in a part of the page."""
    return page.get(
        f"[...document.querySelectorAll('{holder} .battery')].map((b) => [b.getAttribute('aria-label'), "
        "b.querySelector('.level').style.width, b.querySelector('.reserve')?.style.left])"
    )


def test_a_reservoir_is_drawn_as_a_battery(opened):
    solution, page = opened("a battery")
    page.press_at("#time", "Home")
    assert "in state field (battery at 4 of 6)," in page.text("#here")
    ((said, width, line),) = drawn_level(page, "#controls")
    assert said == "battery: 4 of 6 left, reserve 1"
    assert (float(width[:-1]), float(line[:-1])) == pytest.approx((200 / 3, 50 / 3), rel=1e-4)
    page.press("ArrowRight", 2)
    page.press_at("#spent-0", "Home")
    assert page.get("document.getElementById('spent-0').getAttribute('aria-valuetext')") == "1 of 6 left"
    assert "below its reserve of 1" in page.text("#joint-actions .reason")
    page.press("End")
    assert drawn_level(page, "#controls")[0][0] == "battery: 6 of 6 left, reserve 1"
    levels = [read(line[0]) for line in numbers(page, "#map-body")]
    assert sorted(levels) == sorted(6 - float(c[0]) for _, c in ace.feasibility(solution.game).states(2))
    assert "capacity of battery 6" in page.text("#minimal") and "capacity of battery" in page.text("#curve-body")
    assert page.text("#spending-title") == "Levels at the end"


def test_batteries_as_an_episode_is_played(opened):
    solution, page = opened("reservoirs")
    game = solution.game
    rollouts = ace.simulate(game, solution.policy, episodes=200, rng=np.random.default_rng(1))
    assert [said for said, *_ in drawn_level(page, "#episode-levels")] == [
        f"{name}: 3 of 5 left, reserve 1" for name in game.constraints[:2]
    ]
    for t in range(1, game.horizon + 1):
        page.click("#episode-next")
        left = [5 - float(rollouts.spent[0, t - 1, m]) for m in (0, 1)]
        assert [said for said, *_ in drawn_level(page, "#episode-levels")] == [
            f"{name}: {x:g} of 5 left, reserve 1" for name, x in zip(game.constraints, left, strict=False)
        ]
        assert f"cab battery at {left[0]:g} of 5" in page.text("#episode-step")
    assert page.text("#spending-title") == "Cumulative costs and levels at the end"
    last = 5 - rollouts.spent[:, -1, 0]
    amounts, count = np.unique(last, return_counts=True)
    lines = numbers(page, "#spending-body")
    assert [(read(a), read(n)) for a, n, _ in lines][: len(amounts)] == list(
        zip(amounts.tolist(), count.tolist(), strict=True)
    )


def test_a_large_game_stays_responsive_and_says_what_is_left_out(opened, shown):
    solution, page = opened("large")
    path = shown("large")[1]
    assert path.stat().st_size < 3_000_000
    assert "Thinned: " in page.text("#notes") and "most=" in page.text("#notes code")
    page.press_at("#time", "End")
    moved = page.get(
        "(async () => { const s = document.getElementById('spent-0'), took = []; "
        "for (let k = 0; k <= +s.max; k++) { const t = performance.now(); s.value = k; s.dispatchEvent(new Event('input')); "
        "took.push(performance.now() - t); await new Promise(requestAnimationFrame); } return took; })()"
    )
    print(f"slider moves: {len(moved)}, median {np.median(moved):.1f} ms, longest {max(moved):.1f} ms")
    assert len(moved) > 5 and max(moved) < 5000
    check_situation(page, solution)


def test_hostile_labels_stay_text(opened):
    _, page = opened("hostile")
    assert page.get("document.querySelectorAll('img:not(.picture), main b').length") == 0
    assert page.get("document.querySelectorAll('img.picture').length") == 2
    assert HOSTILE in page.text("#game") and HOSTILE in page.text("#here")
    page.press_at("#time", "End")
    assert page.text("#state option") == HOSTILE
    assert json.loads(page.text("#data"))["players"][0] == HOSTILE


def test_the_page_opens_at_the_start(opened):
    for name in ("ce", "reservoirs", "a battery"):
        solution, page = opened(name)
        game = solution.game
        assert situation(page, game) == (0, game.states[game.initial[0][0]], [float(c) for c in game.spent_at_start])


def test_it_says_why_the_best_joint_action_is_not_recommended_for_sure(opened):
    solution, page = opened("ce")
    best = worth(solution, 0, "dry", [0], ("yield", "yield"))
    gain = worth(solution, 0, "dry", [0], ("dare", "yield"))[0] - best[0]
    said = page.text("#why")
    assert said.startswith("Why not always yield, yield?") and f"north would gain {gain:.6g} by playing dare" in said
    assert f"is {best.sum():.6g}, and that of the recommended draw {solution.values.sum():.6g}." in said
    lines = dict(
        page.get(
            "[...document.querySelectorAll('#joint-actions tr[data-row]')].map((r) => "
            "[r.children[0].textContent, r.querySelector('.why').textContent])"
        )
    )
    assert "no equilibrium on its own: north would gain" in lines["yield, yield"]
    assert "east would gain" in lines["dare, dare"]
    lone = worth(solution, 0, "dry", [0], ("yield", "dare")).sum()
    assert f"but worth less: sum of values {lone:.6g}, not {solution.values.sum():.6g}" in lines["yield, dare"]


def test_under_cce_a_player_commits_beforehand(opened):
    _, page = opened("two budgets")
    page.wait("document.querySelectorAll('#joint-actions .why').length > 0")
    said = [x for x in page.texts("#joint-actions .why") if "would gain" in x and "no equilibrium" in x]
    assert said and all("by committing beforehand to" in x for x in said)


def test_a_situation_has_a_link_and_the_back_button_goes_back(opened):
    solution, page = opened("ce")
    assert page.get("location.hash") == ""
    page.press_at("#time", "ArrowRight", 3)
    page.wait("location.hash !== ''")
    first = page.get("location.hash")
    assert first == f"#t=3&s={situation(page, solution.game)[1]}&c=0"
    page.press_at("#spent-0", "End")
    page.wait(f"location.hash !== {json.dumps(first)}")
    second, there = page.get("location.hash"), situation(page, solution.game)
    page.get("history.back()")
    page.wait(f"location.hash === {json.dumps(first)}")
    page.wait("document.getElementById('spent-0').value === '0'")
    assert situation(page, solution.game)[0] == 3 and situation(page, solution.game) != there
    page.get(f"location.hash = {json.dumps(second)}")
    page.wait("document.getElementById('spent-0').value !== '0'")
    assert situation(page, solution.game) == there
    for wrong in ("#t=99&s=0&c=0", "#t=1&s=0", "#t=1&s=0&c=x", "#summary", "#t=1&s=77&c=0"):
        page.get(f"location.hash = {json.dumps(wrong)}")
        assert situation(page, solution.game) == there
    page.wait("document.getElementById('not-here')?.textContent.includes('not in this page')")
    assert page.get("address()") == second
    page.get("location.hash = '#t=3&s=0&c=99'")
    page.wait("document.getElementById('not-here')?.textContent.includes('the nearest one')")
    assert situation(page, solution.game)[0] == 3
    page.press_at("#time", "ArrowRight")
    assert page.text("#not-here") == ""


def follow(browser, path, fragment, **options):
    """Open the page anew, by a link."""
    page = browser.open(path, **options)
    page.call("Page.navigate", url=f"{path.absolute().as_uri()}?{fragment}")
    page.wait("location.search === '?' || location.href.includes('?#')")
    page.wait("document.documentElement?.hasAttribute('data-ready')")
    return page


def in_view(page, selector):
    box = f"document.querySelector('{selector}').getBoundingClientRect()"
    return page.get(f"{box}.top >= 0 && {box}.top < innerHeight / 2")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("by", ["label", "index"])
def test_a_link_opens_its_situation(browser, shown, by, width):
    solution, path = shown("two budgets")
    place = next((t, s, c) for t, s, c in reversed(list(pairs_of(solution))) if t == 3)
    state = quote(spelled(place[1])) if by == "label" else solution.game.state_index(place[1])
    linked = follow(
        browser,
        path,
        f"#t=3&{'s' if by == 'label' else 'n'}={state}&c={','.join(f'{x:g}' for x in place[2])}",
        width=width,
    )
    assert situation(linked, solution.game) == place
    assert linked.text("#not-here") == "" and in_view(linked, "#situation-title")
    linked.close()


@pytest.mark.parametrize(
    "wrong", ["#t=99&s=ice&c=0", "#t=1&s=snow&c=0", "#t=1&s=%zz&c=0", "#t=x", "#t=1&s=ice", "#abc"]
)
def test_a_link_to_nowhere_says_so(browser, shown, wrong):
    solution, path = shown("ce")
    linked = follow(browser, path, wrong)
    assert linked.text("#not-here") == "The situation of the link is not in this page. The start is shown."
    assert situation(linked, solution.game)[0] == 0 and in_view(linked, "#not-here")
    linked.close()


def test_states_with_the_same_label_have_links_of_their_own(browser, tmp_path):
    """A number as a label, and the number of a state, are two things."""
    start = {1: 0.25, "1": 0.25, 0: 0.25, "": 0.25}
    game = alone(lambda s, a: [(1, s, None)], actions=("x", "y"), initial=start)
    path = tmp_path / "alike.html"
    ace.solve(game).report(path, episodes=2)
    for link, state in (("n=0", 1), ("n=1", "1"), ("s=0", 0), ("n=2", 0), ("s=", "")):
        page = follow(browser, path, f"#t=1&{link}")
        assert page.text("#not-here") == ""
        assert page.get("open.record[STATE]") == game.state_index(state), link
        assert page.get("named(address()).state") == game.state_index(state)
        page.close()


def test_hostile_labels_have_links_too(browser, shown):
    solution, path = shown("hostile")
    first = browser.open(path)
    first.press_at("#time", "End")
    address, place = first.get("address()"), situation(first, solution.game)
    assert not set(address) & set("<>\"'() ")
    linked = follow(browser, path, address)
    assert situation(linked, solution.game) == place and linked.text("#not-here") == ""
    first.close()
    linked.close()


def pairs_of(solution):
    result = ace.feasibility(solution.game)
    for t in range(solution.game.horizon):
        for state, spent in result.states(t):
            yield t, state, [float(c) for c in spent]


def search(page, text):
    page.get(
        f"(() => {{ const s = document.getElementById('search'); s.value = {json.dumps(text)}; s.dispatchEvent(new Event('input')); }})()"
    )
    return page.texts("#found li")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("t=2 risk>=3", lambda t, s, c: t == 2 and c[0] >= 3),
        ("ICE", lambda t, s, c: s == "ice"),
        ("ice risk<2 t>3", lambda t, s, c: s == "ice" and c[0] < 2 and t > 3),
        ("risk = 5", lambda t, s, c: c[0] == 5),
        ("no such state", lambda t, s, c: False),
    ],
)
def test_situations_are_found(opened, text, fits):
    solution, page = opened("ce")
    result = search(page, text)
    expected = [x for x in pairs_of(solution) if fits(*x)]
    assert len(result) == len(expected) and len(result) < 30
    if not result:
        assert "No situation" in page.text("#found")
        return
    page.click("#found li button")
    assert situation(page, solution.game) in expected


@pytest.mark.parametrize(
    "text", ["fuelnorth=2", "fuel north = 2", "fuel-north=2", "fuel_North =2", '"fuel north"=2', "'Fuel north' =2"]
)
def test_names_with_blanks_are_found(opened, text):
    solution, page = opened("blanks")
    expected = [x for x in pairs_of(solution) if x[2][0] == 2]
    assert len(search(page, text)) == len(expected) > 0
    assert f"t = {expected[0][0]}, x=1, fuel north 2, fuel south " in page.text("#found li")


def test_names_with_hyphens_are_found_without_them_and_signs_are_kept(opened):
    _, page = opened("ce")
    forms = page.get("['crew-hours', 'a_b c', '-risk'].map(loosely)")
    assert forms == ["crew[\\s_-]*hours", "a[\\s_-]*b[\\s_-]*c", "-risk"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("iec", 'No situation fits. No state has "iec" in its name; did you mean ice?'),
        ("zebra ice", 'No situation fits. No state has "zebra" in its name.'),
        ("ice t=7", "No situation fits. t goes from 0 to 5."),
        ("ice risk>99", "No situation fits."),
    ],
)
def test_a_search_that_finds_nothing_says_what_may_be_wrong(opened, text, said):
    _, page = opened("ce")
    assert search(page, text) == []
    assert page.text("#found") == said


def test_a_label_that_no_address_can_hold_is_linked_by_its_number(opened):
    _, page = opened("ce")
    result = page.get(
        "(() => { const s = open.record[STATE], before = DATA.states[s]; DATA.states[s] = 'a\\ud800'; "
        "labelled.set(DATA.states[s], s); const found = nameOf(s); DATA.states[s] = before; return [found, nameOf(s), s]; })()"
    )
    assert result[0] == f"n={result[2]}" and result[1].startswith("s=")


def test_a_constraint_that_does_not_exist_is_named(opened):
    solution, page = opened("blanks")
    assert search(page, "fuel>=2 t=1") == []
    assert page.text("#found") == 'No constraint "fuel". There are fuel north, fuel south, noise, and t for the time.'
    assert len(search(page, "x=1 t=1")) == sum(1 for t, _, _ in pairs_of(solution) if t == 1) > 0, (
        "a state is called so"
    )


def test_more_situations_than_fit_are_shown_on_demand(opened):
    solution, page = opened("two budgets")
    number = sum(1 for t, _, _ in pairs_of(solution) if t == 3)
    assert number > 60 and len(search(page, "t=3")) == 30
    assert page.text("#more-found") == f"Show 30 more ({number - 30:,} are not shown)"
    page.click("#more-found")
    assert len(page.texts("#found li")) == 60
    while page.get("document.getElementById('more-found') !== null"):
        page.get("document.getElementById('more-found').click()")
    assert len(set(page.texts("#found li"))) == len(page.texts("#found li")) == number


def test_where_one_situation_is_open_the_map_shows_another_time(opened):
    solution, page = opened("two budgets")
    shown_at = int(re.search(r"only, so the map shows t = (\d+), state", page.text("#map-hint"))[1])
    assert situation(page, solution.game)[0] == 0 < shown_at
    assert "everywhere" not in page.text("#map-body .key") and "thick frame" not in page.text("#map-body .key")
    lines = numbers(page, "#map-body")
    assert len({tuple(line[2:4]) for line in lines}) > 1
    page.click("#map-body .u-over", 0.05, 0.95)
    assert situation(page, solution.game)[0] == shown_at
    check_situation(page, solution)
    assert "thick frame" in page.text("#map-body .key") and "chosen above" in page.text("#map-hint")


def test_one_smallest_budget_needs_no_axes(opened):
    _, page = opened("blanks")
    assert page.get("DATA.frontier.rows.length") == 1
    assert page.get("document.getElementById('frontier-controls').children.length") == 0
    _, page = opened("three budgets")
    assert page.get("document.getElementById('frontier-controls').children.length") == 2


@pytest.mark.parametrize("name", ["ce", "nash", "rounded", "reservoirs", "a battery"])
def test_a_bar_is_drawn_beyond_the_budget_only_if_an_episode_is(opened, name):
    """Pixels right of the budget line (left of the reserve): none of a bar, unless rounded costs allow it."""
    _, page = opened(name)
    beyond = page.get(
        "held['spending-body'].map((c, m) => { const u = c.chart, at = u.valToPos(level(DATA.budgets[H - 1][m], m), 'x', true); "
        "const from = Math.round(stored(m) ? u.bbox.left : at + 4), to = Math.round(stored(m) ? at - 4 : u.bbox.left + u.bbox.width); "
        "if (to <= from) return 0; const fill = channels(colour('--accent-soft')); "
        "const { data } = u.ctx.getImageData(from, Math.round(u.bbox.top), to - from, Math.round(u.bbox.height)); let found = 0; "
        "for (let k = 0; k < data.length; k += 4) if (data[k + 3] === 255 && fill.every((c, j) => data[k + j] === c)) found++; "
        "return found; })"
    )
    over = page.get("DATA.final.map((final, m) => final.most > DATA.budgets[H - 1][m])")
    assert [pixels > 0 for pixels in beyond] == over and any(over) == (name == "rounded")


@pytest.mark.parametrize("name", ["ce", "nash", "a battery"])
def test_the_values_at_the_games_own_budget_are_drawn_above_its_line(opened, name):
    solution, page = opened(name)
    seen = page.get(
        "(() => { const u = held['curve-body'][0].chart, curve = DATA.curves[0], k = curve.budgets.indexOf(ownBudget(0)); "
        "const { width, height } = u.ctx.canvas, { data } = u.ctx.getImageData(0, 0, width, height); "
        "return curve.values[k].map((v, i) => { const x = u.valToPos(curve.budgets[k], 'x', true), y = u.valToPos(v, 'y', true); "
        "const from = 4 * (Math.round(y) * width + Math.round(x)), at = data.slice(from, from + 3); "
        "return channels(seriesColour(i)).every((c, j) => Math.abs(at[j] - c) < 3); }); })()"
    )
    assert len(seen) == len(solution.game.players) and seen[-1]  # the last is above the others


@pytest.mark.parametrize("top", [7, 130, 435, 826, 980, 9000])
def test_axes_have_more_than_two_ticks(opened, top):
    _, page = opened("ce")
    page.get(f"DATA.final[0].bars.forEach((bar) => {{ bar[2] = {top}; }}); showFinal();")
    ticks = page.get("held['spending-body'][0].chart.axes[1]._splits")
    assert 3 <= len(ticks) <= 9 and all(x == int(x) for x in ticks)


def test_what_is_recommended_for_sure_is_said_to_be(opened):
    _, page = opened("blanks")
    rows = page.get(
        "[...document.querySelectorAll('#joint-actions tr.safe')].map((r) => [r.querySelector('.probability')?.textContent, "
        "r.querySelector('.why').textContent])"
    )
    assert tuple(rows[0]) == ("100\u00a0%", "recommended for sure")
    assert all(share is None and said.startswith("feasible: ") for share, said in rows[1:])


def test_ties_are_explained_beside_values_without_budgets(opened):
    _, page = opened("ce")
    assert "ties go to the value of north first" in page.text("#ties")
    for name in ("no budgets", "a battery"):  # no such values; one player
        assert opened(name)[1].get("document.getElementById('ties')") is None


def test_reservoirs_are_searched_by_their_levels(opened):
    solution, page = opened("a battery")
    result = search(page, "battery<=1 t=3")
    assert len(result) == sum(1 for t, _, c in pairs_of(solution) if t == 3 and 6 - c[0] <= 1) > 0


def test_pictures_follow_the_situation_and_the_episode(opened):
    solution, page = opened("pictures")
    alt = "document.querySelector('#{} .picture').alt"
    assert page.get(alt.format("situation-body")) == "Picture of state 0 · 3"
    assert page.get("document.querySelector('#situation-body .picture').naturalWidth") == 240, "it was drawn"
    rollouts = ace.simulate(solution.game, solution.policy, episodes=200, rng=np.random.default_rng(1))
    page.focus("#scene")
    for t in range(solution.game.horizon + 1):
        state = spelled(solution.game.states[rollouts.state[0, t]])
        assert page.get(alt.format("episode-picture")) == f"Picture of state {state}"
        page.press("ArrowRight")
    page.press("Home")
    assert page.get("+document.getElementById('episode-at').value") == 0
    page.press(" ")
    assert page.text("#episode-play") == "Pause"
    page.wait("+document.getElementById('episode-at').value >= 1")
    page.press(" ")
    assert page.text("#episode-play") == "Play"
    page.press("End")
    assert "The end" in page.text("#episode-step")


def test_two_solutions_side_by_side(opened):
    solution, page = opened("compared")
    second = OPTIONS["compared"]()["against"]
    lines = page.get(
        "[...document.querySelectorAll('#comparison tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
    )
    table = {what: (a, b) for what, a, b in lines}
    assert table["steps"] == ("6", "5") and table["budget of risk"] == ("6", "4")
    gain = re.search(r"exploitability (\S+)\. ", page.text("#summary"))[1]
    assert table["exploitability"][0] == (f"0 ({gain})" if float(gain) else "0")
    assert read(table["value of north"][1]) == pytest.approx(float(second.values[0]), rel=1e-5)
    for _ in range(5):
        t, state, spent = situation(page, solution.game)
        here = page.get(
            "[...document.querySelectorAll('#beside tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
        )
        shown_there = {a: read(b) / 100 for a, _, b in here if "value of" not in a and b != "–"}
        expected = {", ".join(a): p for a, p in second.policy.distribution(t, state, spent).items()}
        assert shown_there == pytest.approx(expected, abs=0.00051)
        page.press_at("#time", "ArrowRight")
    assert "it is over before this time" in page.text("#beside")
    page.press("ArrowLeft")
    page.press_at("#spent-0", "End")
    assert "not reachable under feasible play" in page.text("#beside")


@pytest.mark.parametrize("name", ["large", "two budgets", "three budgets", "reservoirs"])
def test_the_frame_is_around_a_drawn_cell_and_the_axes_reach_the_budget(opened, name):
    _, page = opened(name)
    wrong = page.get(
        "DATA.situations.flatMap((at, t) => at.filter((_, k) => k % 37 === 0).map((r) => { "
        "const { drawn, xs, ys } = cells({ t, record: r }), own = r[SPENT].map(level); "
        "const x = rangeOf(xs.sides, own[view.x]), y = rangeOf(ys.sides, own[view.y]); "
        "const inside = xs.of[x][0] <= own[view.x] && own[view.x] <= xs.of[x][1] && "
        "ys.of[y][0] <= own[view.y] && own[view.y] <= ys.of[y][1]; "
        "const ends = [[xs, view.x], [ys, view.y]].every(([side, m]) => stored(m) || DATA.budgets[0][m] <= side.most); "
        "return inside && ends && drawn.some((c) => c.x === x && c.y === y); })).filter((ok) => !ok).length"
    )
    assert wrong == 0


def test_commands_can_be_copied(opened):
    _, page = opened("large")
    command = page.text("#notes code")
    assert command.startswith("solution.report('") and "most=" in command
    page.get("window.copied = null; navigator.clipboard.writeText = async (x) => { window.copied = x; }; null")
    page.click("#notes .copy")
    page.wait("window.copied !== null")
    assert page.get("window.copied") == command and page.text("#notes .copy") == "Copied"
    page.get(
        "navigator.clipboard.writeText = async () => { throw new Error('no'); }; document.execCommand = () => false; null"
    )
    page.click(
        "#curve-body .copy" if page.get("document.querySelector('#curve-body .copy') !== null") else "#notes .copy"
    )
    page.wait("[...document.querySelectorAll('.copy')].some((b) => b.textContent.startsWith('Not copied: copy'))")
    assert page.get("getSelection().toString()").startswith("solution."), "the command is selected"
    page.click("#copy-link")
    page.wait("document.activeElement.closest('#here-link') !== null")
    assert page.get("getSelection().toString()") == page.get("location.href.split('#')[0] + address()")
    assert page.get("document.activeElement.offsetHeight") > 0
    page.get("navigator.clipboard.writeText = async () => {}; null")
    page.click("#copy-link")
    page.wait("document.getElementById('copy-link').textContent === 'Copied'")
    assert page.get("document.querySelector('#here-link .by-hand').offsetHeight") == 0


def test_what_is_wasted_is_in_the_page(opened):
    solution, page = opened("reservoirs")
    rollouts = ace.simulate(solution.game, solution.policy, episodes=200, rng=np.random.default_rng(1))
    said = page.texts("#summary .wasted")
    assert len(said) == 2
    for m, text in enumerate(said):
        lost = rollouts.wasted[:, m]
        assert ("Nothing was wasted" in text) if not lost.any() else f"{lost.mean():.6g} was wasted" in " ".join(said)
