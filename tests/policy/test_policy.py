"""The policy as it is used: asked, drawn from, run step by step, saved and loaded, and what happens at wrong questions."""

from __future__ import annotations

import itertools
import math
import re
import zipfile
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

import acegames as ace
import oracle
from acegames import BadFile, InvalidOption, UnknownPair
from acegames.model.numbers import exact
from damaged_files import DAMAGES, behaves, contents, rewritten
from games import alone, crossing, one_state, pairs


def chicken(horizon=3, budget=2, initial="road", player="red"):
    """Mixed stages: two drivers, daring twice may cost two units of a shared risk budget."""
    pay = {"dd": (0, 0), "dy": (7, 2), "yd": (2, 7), "yy": (6, 6)}
    return ace.MarkovGame.from_functions(
        players=[player, "blue"],
        horizon=horizon,
        initial=initial,
        budget={"risk": budget},
        actions=lambda t, s: [("d", "y"), ("d", "y")],
        outcomes=lambda t, s, a: [(0.5, "road", {"risk": 2 * (a == ("d", "d"))}), (0.5, "hill", {"risk": 0})],
        reward=lambda t, s, a: pay["".join(a)],
    )


def tenths(horizon=3):
    """One player, a tenth per step of work, and a budget of three tenths."""
    return one_state(
        ["me"],
        [("work", "rest")],
        lambda t, a: {"fuel": 0.1 if a == ("work",) else 0},
        lambda t, a: [float(a == ("work",))],
        horizon=horizon,
        budget={"fuel": 0.3},
    )


def two_starts():
    return chicken(initial={"road": 0.25, "hill": 0.75})


def free():
    return ace.catalog.get("six_cycle")


@pytest.fixture(scope="module")
def mixed():
    return ace.solve(chicken(), ace.CE())


FEASIBLE = 25


@cache
def feasible_games():
    games = (oracle.random_game(np.random.default_rng(seed)) for seed in itertools.count())
    return list(itertools.islice((game for game in games if ace.feasibility(game).feasible), FEASIBLE))


# -- asking ---------------------------------------------------------------------------------------------------------


def test_values_are_a_copy(mixed):
    mixed.policy.values(0, "road", [0])[:] = 99
    assert (mixed.policy.values(0, "road", [0]) < 99).all()


def test_a_number_is_enough_with_one_constraint(mixed):
    asked = [0, [0], (0,), 0.0, np.zeros(1), np.int64(0), Fraction(0), [np.float32(0)]]
    first = mixed.policy.distribution(1, "road", 0)
    assert all(mixed.policy.distribution(1, "road", spent) == first for spent in asked)


def test_act_draws_the_distribution(mixed):
    expected = mixed.policy.distribution(2, "road", [0])
    assert len(expected) > 1, "the test needs a mixed stage"
    rng, episodes = np.random.default_rng(7), 4000
    drawn = [mixed.policy.act(2, "road", [0], rng) for _ in range(episodes)]
    assert set(drawn) == set(expected)
    for action, p in expected.items():
        assert abs(drawn.count(action) - episodes * p) <= 5 * math.sqrt(episodes * p * (1 - p))
    again = np.random.default_rng(7)
    assert drawn == [mixed.policy.act(2, "road", [0], again) for _ in range(episodes)]


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_the_unit_interval_draw_the_support(mixed, uniform):
    class Fixed:
        def random(self):
            return uniform

    for t, s, c in pairs(mixed.game):
        assert mixed.policy.act(t, s, c, Fixed()) in mixed.policy.distribution(t, s, c)


WRONG = [
    (-1, "road", [0]),
    (3, "road", [0]),
    (10**9, "road", [0]),
    (0.5, "road", [0]),
    (None, "road", [0]),
    (0, "hill", [0]),  # a state of the game, not at this time
    (0, "sea", [0]),
    (0, ["road"], [0]),
    (0, None, [0]),
    (1, "road", [1]),  # no play spends an odd amount
    (1, "road", [0.5]),
    (1, "road", [4]),
    (1, "hill", [2]),
    (1, "road", [-2]),
    (1, "road", []),
    (1, "road", [0, 0]),
    (1, "road", None),
    (1, "road", "nothing"),
    (1, "road", [math.nan]),
    (1, "road", [math.inf]),
    (1, "road", {"risk": 0.5}),
]


@pytest.mark.parametrize("where", WRONG, ids=repr)
@pytest.mark.parametrize("method", ["distribution", "act", "values"])
def test_pairs_that_cannot_occur(mixed, method, where):
    t, state, spent = where
    more = (np.random.default_rng(0),) if method == "act" else ()
    with pytest.raises(UnknownPair) as caught:
        getattr(mixed.policy, method)(t, state, spent, *more)
    assert isinstance(caught.value, KeyError)
    words = str(caught.value)
    assert repr(spent) in words
    if t is not None:
        assert f"t={t}" in words
    if state is not None:
        assert repr(state) in words


@pytest.mark.parametrize("spent", [[0], 0, [0, 0], [1.5], "nothing"])
def test_without_constraints_nothing_is_spent(spent):
    policy = ace.solve(free()).policy
    assert policy.distribution(0, "table", ())
    with pytest.raises(UnknownPair, match="spent"):
        policy.distribution(0, "table", spent)


def test_true_pairs_that_only_unsafe_play_reaches_are_unknown():
    """Spec 2: p is fine but reached only beside the dead end q."""
    after = {"x": [(0.5, "p", 0), (0.5, "q", 0)], "y": [(1.0, "r", 0)]}
    game = alone(
        lambda t, s, a: after[a[0]] if t == 0 else [(1.0, s, int(s == "q"))],
        actions=lambda t, s: [("x", "y") if t == 0 else ("z",)],
        initial="start",
        budget={"c": 0},
    )
    policy = ace.solve(game).policy
    assert policy.distribution(1, "r", [0]) == {("z",): 1.0}
    for state in "pq":
        with pytest.raises(UnknownPair, match=f"t=1.*'{state}'"):
            policy.distribution(1, state, [0])


def answers(policy, t, state, spent):
    try:
        policy.distribution(t, state, spent)
    except UnknownPair:
        return False
    return True


@pytest.mark.parametrize("budget", [7, 14, 100, math.inf])
def test_what_no_play_spends_is_unknown(budget):
    """Costs 0, 3 or 7 at each of two steps: more than 7 or less than 0 after one of them, whatever the budget."""
    game = one_state(["me"], [(0, 3, 7)], lambda t, a: a[0], lambda t, a: [float(a[0])], horizon=2, budget=[budget])
    policy = ace.solve(game).policy
    assert all(answers(policy, 1, "s", [c]) for c in (0, 3, 7))
    assert not any(answers(policy, 1, "s", [c]) for c in (-50, -1, 8, 50, 10**30))
    assert not any(answers(policy, 0, "s", [c]) for c in (-1, 1, 3))


def test_random_policies_answer_nothing_beyond_the_extremes():
    for game in feasible_games():
        policy, found = ace.solve(game).policy, ace.feasibility(game)
        extent = [game.horizon * max(map(abs, values)) + 1 for values in game.cost_values]
        units = found.lattice.units
        for t in range(game.horizon):
            for state, spent in found.states(t):
                assert answers(policy, t, state, spent)
                for m, (far, unit) in enumerate(zip(extent, units, strict=True)):
                    for sign in (-1, 1):
                        wrong = list(spent)
                        wrong[m] = sign * unit * math.ceil(far / unit)
                        assert not answers(policy, t, state, wrong), (t, state, wrong)


# -- running --------------------------------------------------------------------------------------------------------


def test_runner_plays_an_episode(mixed):
    runner = mixed.policy.start(rng=3)
    for t in range(3):
        assert (runner.t, runner.done, runner.spent) == (t, False, (0,))
        assert runner.act() in mixed.policy.distribution(t, runner.state, runner.spent)
        runner.observe(("d", "d"), {"risk": 0}, "hill")
    assert runner.done
    assert repr(runner) == "<Runner: done, t=3, state 'hill', spent (0,)>"
    assert "Runner:</b> done, t=3" in runner._repr_html_()
    assert runner.state == "hill"
    with pytest.raises(InvalidOption, match="over"):
        runner.act()
    with pytest.raises(InvalidOption, match="over"):
        runner.observe(("d", "d"), 0, "road")
    assert runner.t == 3


def test_runner_is_seeded_and_takes_a_generator(mixed):
    def play(rng):
        runner, played = mixed.policy.start(rng), []
        while not runner.done:
            played.append(runner.act())
            runner.observe(played[-1], 0, "road")
        return played

    episodes = [play(seed) for seed in range(30)]
    assert episodes == [play(np.random.default_rng(seed)) for seed in range(30)]
    assert len(set(map(tuple, episodes))) > 1


@pytest.mark.parametrize(
    ("action", "cost", "state", "word"),
    [
        (("d", "d"), 1, "road", "cost"),  # not a multiple of the unit
        (("d", "d"), math.nan, "road", "cost"),
        (("d", "d"), math.inf, "road", "cost"),
        (("d", "d"), "two", "road", "cost"),
        (("d", "d"), [0, 0], "road", "cost"),
        (("d", "d"), [], "road", "cost"),
        (("d", "d"), {"fuel": 1}, "road", "fuel"),
        (("d", "d"), 0, "sea", "sea"),
        (("d",), 0, "road", "action"),
        (("d", "x"), 0, "road", "x"),
        (("d", "d", "d"), 0, "road", "action"),
        (None, 0, "road", "action None: must be one known action per player"),
        (3, 0, "road", "action 3: must be one known action per player"),
    ],
    ids=repr,
)
def test_runner_refuses_what_cannot_happen(mixed, action, cost, state, word):
    runner = mixed.policy.start(rng=0)
    with pytest.raises(InvalidOption, match=word):
        runner.observe(action, cost, state)
    assert (runner.t, runner.state, runner.spent) == (0, "road", (0,))
    runner.act()


@pytest.mark.parametrize(("cost", "state"), [(4, "road"), (2, "hill"), (0, "road"), (None, "road")])
def test_runner_refuses_an_outcome_that_the_game_does_not_have(mixed, cost, state):
    """Each is a multiple of the unit; what is possible is named, and nothing has changed."""
    runner = mixed.policy.start(rng=0)
    named = re.escape("possible are 'road' at a cost of {'risk': 2}; 'hill' at a cost of {'risk': 0}")
    with pytest.raises(UnknownPair, match=rf"t=0.*'road'.*leads to '{state}' at a cost of {cost}; {named}"):
        runner.observe(("d", "d"), cost, state)
    assert (runner.t, runner.state, runner.spent) == (0, "road", (0,))


def test_runner_without_a_game_after_an_impossible_history_says_where(mixed, tmp_path):
    mixed.policy.save(tmp_path / "policy")
    runner = ace.Policy.load(tmp_path / "policy").start(rng=0)
    runner.observe(("d", "d"), 4, "road")  # a policy file has no game to compare with; it is beyond the budget
    with pytest.raises(UnknownPair, match=r"t=1.*'road'.*4"):
        runner.act()
    with pytest.raises(InvalidOption, match="left: a policy file holds no budgets"):
        _ = runner.left


def test_runner_takes_costs_as_the_builder_does(mixed):
    for cost, spent in [*((c, 2) for c in (2, [2], (2,), {"risk": 2}, np.array([2]), Fraction(2))), (None, 0), ({}, 0)]:
        runner = mixed.policy.start(rng=0)
        runner.observe(("d", "d"), cost, "road" if spent else "hill")
        assert runner.spent == (spent,)


def test_every_outcome_of_the_game_is_taken_and_others_are_not(tmp_path):
    """At the start of random games, also from a file, where costs are moved by a unit or another state is said."""
    refused = broken = 0
    for number, game in enumerate(feasible_games()):
        solution, spelled = ace.solve(game), oracle.spell_out(game)
        solution.save(tmp_path / str(number))
        for policy in (solution.policy, ace.Solution.load(tmp_path / str(number)).policy):
            start = game.states[game.initial[0][0]]
            for action, row in game.legal(0, start).items():
                outcomes = {(s, cost) for _, s, cost in game.outcomes(0, row)}
                known = {cost for _, cost in outcomes}
                moved = {tuple(c + u for c, u in zip(cost, policy.tracker.units, strict=True)) for cost in known}
                for state, cost in itertools.product(game.states, known | moved):
                    runner = policy.start(rng=0, state=start)
                    after = spelled.after(game.spent_at_start, cost)
                    if (state, cost) in outcomes and any(x > b for x, b in zip(after, game.budgets[0], strict=True)):
                        broken += 1
                        with pytest.raises(UnknownPair, match=r"the step brought .* its budget at t=0 is"):
                            runner.observe(action, cost, state)
                        assert runner.t == 0
                    elif (state, cost) in outcomes:
                        runner.observe(action, cost, state)
                        bounds = game.budgets[min(1, game.horizon - 1)]
                        left = [b if b == math.inf else b - c for b, c in zip(bounds, runner.total, strict=True)]
                        assert [x if x == math.inf else exact(x) for x in runner.left] == left
                    else:
                        refused += 1
                        with pytest.raises(UnknownPair, match="no outcome of the game"):
                            runner.observe(action, cost, state)
    assert refused > 100
    assert broken > 10


def test_runner_refuses_a_joint_action_that_is_not_legal_here():
    one = np.ones((1, 2, 1))
    solution = ace.solve(ace.MarkovGame.from_arrays(one, one, legal=np.array([[True, False]]), horizon=2))
    with pytest.raises(UnknownPair, match="not legal here"):
        solution.policy.start().observe((1,), None, 0)


def test_runner_tells_a_broken_budget_at_once():
    """Whoever goes twice breaks the budget, though the policy would not have gone."""
    game = one_state(
        ["p"], [["go", "stay"]], lambda t, a: int(a == ("go",)), lambda t, a: 1.0, horizon=3, budget={"risk": 1}
    )
    runner = ace.solve(game).policy.start(0)
    runner.observe(("go",), {"risk": 1}, "s")
    with pytest.raises(
        UnknownPair, match=r"t=1, state 's', spent \(1,\): the step brought 'risk' to 2, its budget at t=1 is 1"
    ):
        runner.observe(("go",), {"risk": 1}, "s")
    assert (runner.t, runner.spent, runner.left) == (1, (1,), (0,))


@pytest.mark.parametrize("rounding", ["down", "up"])
def test_runner_knows_what_rounding_allows(rounding):
    """Rounded down, three costs of 0.25 count as nothing and may exceed 0.6; rounded up, none is exceeded."""
    game = one_state(
        ["p"],
        [["go", "stay"]],
        lambda t, a: Fraction(1, 4) if a == ("go",) else 0,
        lambda t, a: float(a == ("go",)),
        horizon=3,
        budget={"c": Fraction(3, 5)},
    )
    runner = ace.solve(game, epsilon=1.2, rounding=rounding).policy.start(0)  # cells of 0.4
    assert runner.policy.tracker.rounding[0].cell == Fraction(2, 5)
    if rounding == "down":
        while not runner.done:
            assert runner.act() == ("go",)
            runner.observe(("go",), 0.25, "s")
        assert runner.spent == (0.75,) and runner.counted == (0,)
    else:
        runner.observe(("go",), 0.25, "s")
        runner.observe(("go",), 0.25, "s")  # counts as 0.8, but only 0.5 was spent
        assert runner.spent == (0.5,) and runner.counted == (0.8,)
        with pytest.raises(UnknownPair, match="not reachable under feasible play"):
            runner.act()
        with pytest.raises(UnknownPair, match=r"the step brought 'c' to 0.75, its budget at t=2 is 0.6"):
            runner.observe(("go",), 0.25, "s")


def test_a_policy_that_is_attached_to_another_game_is_not_compared_with_its_own(mixed):
    other = replace(mixed.policy, game_digest="0" * 64)
    assert mixed.policy.possible is not None and other.possible is None


def test_an_approximate_policy_takes_true_costs():
    """Fine costs by their exact values, random ones anywhere in their range, and no others."""
    solution = ace.solve(tenths(), epsilon=0.6)
    assert not solution.policy.tracker.exact
    for cost in (0.1, 0.1 + 1e-12, Fraction(1, 10)):
        solution.policy.start().observe(("work",), cost, "s")
    with pytest.raises(UnknownPair, match="possible are"):
        solution.policy.start().observe(("work",), 2.1, "s")
    drawn = one_state(
        ["p"], [["go"]], lambda t, a: stats.uniform(0.1, 0.5), lambda t, a: 1.0, horizon=3, budget={"c": 1.9}
    )
    policy = ace.solve(drawn, epsilon=0.5).policy
    for x in np.linspace(0.1, 0.6, 21)[1:-1]:
        policy.start().observe(("go",), x, "s")
    for x in (0, 0.09, 0.61, 7):
        with pytest.raises(UnknownPair, match="no outcome"):
            policy.start().observe(("go",), x, "s")


def test_a_question_at_the_start_is_told_what_is_spent_there():
    game = ace.catalog.get("electric_fleet")
    with pytest.raises(UnknownPair, match=r"at t=0 spent is \(2, 2, 0\)"):
        ace.solve(game).policy.distribution(0, game.states[0], (0, 0, 0))
    with pytest.raises(UnknownPair, match=r"at t=0 spent is \(2, 2, 0\)"):
        ace.Shield(game).joint(0, game.states[0], (0, 0, 0))


@pytest.mark.parametrize("cost", [None, (), [], {}], ids=repr)
def test_runner_without_constraints(cost):
    runner = ace.solve(free()).policy.start(rng=0)
    runner.observe(runner.act(), cost, "table")
    assert runner.done
    assert runner.spent == ()


def test_tenths_add_up_exactly():
    solution = ace.solve(tenths())
    runner = solution.policy.start(rng=0)
    while not runner.done:
        assert runner.act() == ("work",)
        runner.observe(("work",), 0.1, "s")
    assert solution.values == pytest.approx([3.0])
    assert runner.spent == (0.3,)
    assert runner.spent != (0.1 + 0.1 + 0.1,)  # what floats would have said
    for spent in (0.2, Fraction(1, 5), [np.float64(0.2)]):
        assert solution.policy.distribution(2, "s", spent) == {("work",): 1.0}
    with pytest.raises(UnknownPair):
        solution.policy.distribution(2, "s", 0.1 + 0.2)


def test_several_initial_states():
    solution = ace.solve(two_starts(), ace.CE())
    policy = solution.policy
    with pytest.raises(InvalidOption, match="initial"):
        policy.start(rng=0)
    with pytest.raises(KeyError, match="sea"):
        policy.start(rng=0, state="sea")
    for state in ("road", "hill"):
        runner = policy.start(rng=0, state=state)
        assert runner.state == state
        assert runner.act() in policy.distribution(0, state, 0)
    expected = 0.25 * policy.values(0, "road", 0) + 0.75 * policy.values(0, "hill", 0)
    assert solution.values == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rng", ["road", -1, 0.5, {}], ids=repr)
def test_what_is_no_rng_is_refused(mixed, rng):
    with pytest.raises(InvalidOption, match=r"rng: got .* must be a Generator, .* initial state is given as state="):
        mixed.policy.start(rng)


def test_only_initial_states_start(mixed):
    assert mixed.policy.start(state="road").state == "road"
    with pytest.raises(KeyError, match="hill"):
        mixed.policy.start(state="hill")


def test_tracker():
    tracker = ace.solve(tenths()).policy.tracker
    total = tracker.start()
    for _ in range(1000):
        total = tracker.add(total, {"fuel": 0.1})
    assert tracker.spent(total) == (100,)
    assert tracker.total(100) == total
    with pytest.raises(ValueError, match="multiple of 1/10"):
        tracker.total(0.05)
    with pytest.raises(ValueError, match="2 numbers"):
        tracker.total([1, 1])
    before = total
    with pytest.raises(InvalidOption, match="1/10"):
        tracker.add(total, 0.05)
    assert total == before


# -- files ----------------------------------------------------------------------------------------------------------


FACTS = ("players", "states", "actions", "initial", "tracker", "concept", "game_digest", "horizon")


def same_policy(left, right, game):
    """Equal facts, and at every feasible pair the same probabilities and values to the last bit."""
    assert [getattr(left, x) for x in FACTS] == [getattr(right, x) for x in FACTS]
    for where in pairs(game):
        assert list(left.distribution(*where).items()) == list(right.distribution(*where).items())
        assert left.values(*where).tobytes() == right.values(*where).tobytes()
        if left.concept.product:
            assert left.strategies(*where) == right.strategies(*where)


CONCEPTS = [
    ace.CE(),
    ace.CCE(objective=None, floor=0.1),
    ace.CE(objective="fair", floor=0),
    ace.CCE(objective=(0.1, 1 / 3)),
    ace.CE(objective=("team", 1)),
    ace.Nash(objective="fair"),
]


@pytest.mark.parametrize("concept", CONCEPTS, ids=repr)
def test_save_and_load_bit_for_bit(tmp_path, concept):
    game = chicken(player=("team", 1))
    solution = ace.solve(game, concept)
    one, two = tmp_path / "policy", tmp_path / "solution.ace"
    solution.policy.save(one)
    solution.save(two)
    same_policy(ace.Policy.load(one), solution.policy, game)
    same_policy(ace.Policy.load(two), solution.policy, game)
    back = ace.Solution.load(two)
    same_policy(back.policy, solution.policy, game)
    assert back.game.digest == game.digest == ace.load(two).digest
    assert back.values.tobytes() == solution.values.tobytes()
    untimed = replace(solution.stats, seconds=None)  # the same solve gives the same bytes, however long it took
    assert (back.concept, back.stats, back.guarantee) == (concept, untimed, solution.guarantee)
    again = tmp_path / "again.ace"
    back.save(again)
    assert again.read_bytes() == two.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.ace", "policy", "solution.ace"]


@pytest.fixture(scope="module")
def files(tmp_path_factory, mixed):
    folder = tmp_path_factory.mktemp("files")
    mixed.policy.save(folder / "policy")
    mixed.save(folder / "solution")
    crossing().policy.save(folder / "product")
    return {name: (folder / name).read_bytes() for name in ("policy", "solution", "product")}


def accepted(read, path):
    """What is read, or None for a BadFile that names the file; every other exception is a bug."""
    try:
        return read(path)
    except BadFile as error:
        words = str(error)
    assert path.name in words
    return None


def put(key, value):
    return lambda header: header.__setitem__(key, value)


def drop(key):
    return lambda header: header.pop(key)


HEADERS = {
    "foreign format": put("format", "somebody-else"),
    "no format": drop("format"),
    "no arrays": drop("arrays"),
    "no units": drop("units"),
    "no concept": drop("concept"),
    "unknown concept": put("concept", {"kind": "NE", "objective": None, "floor": 1}),
    "negative floor": put("concept", {"kind": "CE", "objective": None, "floor": -1}),
    "floor as text": put("concept", {"kind": "CE", "objective": None, "floor": "high"}),
    "unit of zero": put("units", ["0"]),
    "negative unit": put("units", ["-2"]),
    "unit that is no number": put("units", ["two"]),
    "unit divided by zero": put("units", ["1/0"]),
    "too many units": put("units", ["2", "2"]),
    "too few units": put("units", []),
    "missing state": put("states", ["road"]),
    "state that is an object": put("states", [{"a": 1}, "hill"]),
    "states twice": put("states", ["road", "road"]),
    "one player": put("players", ["red"]),
    "players twice": put("players", ["red", "red"]),
    "actions of a player twice": put("actions", [["d", "y"], ["y", "y"]]),
    "missing action": put("actions", [["d"], ["d", "y"]]),
    "initial out of range": put("initial", [[7, 1.0]]),
    "initial just out of range": put("initial", [[2, 1.0]]),
    "negative initial": put("initial", [[-1, 1.0]]),
    "no initial": put("initial", []),
    "initial that is a number": put("initial", 0),
    "digest missing": drop("game_digest"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers(tmp_path, files, name):
    path = tmp_path / "hostile"
    path.write_bytes(rewritten(files["policy"]))
    ace.Policy.load(path)  # the rewriting itself is harmless
    path.write_bytes(rewritten(files["policy"], HEADERS[name]))
    with pytest.raises(BadFile, match="hostile"):
        ace.Policy.load(path)


@pytest.mark.parametrize("kind", ["policy", "product"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_arrays(tmp_path, files, mixed, kind, damage):
    """Each array of the file in turn: refused, or what is left is still a policy (of other values, say)."""
    path, asked, refused = tmp_path / "hostile", pairs((mixed if kind == "policy" else crossing()).game), 0
    names = [name for name in contents(files[kind])[1] if kind == "policy" or name.startswith(("0/", "1/"))]
    assert any("mixed_row" in name for name in names)
    for name in names:
        with np.errstate(invalid="ignore"):
            path.write_bytes(rewritten(files[kind], arrays={name: DAMAGES[damage]}))
        loaded = accepted(ace.Policy.load, path)
        refused += loaded is None
        if loaded is not None:
            behaves(loaded, asked)
    assert refused


@pytest.mark.parametrize("junk", [None, True, -1, 0.5, 10**30, "x", [], {}, [[]], [None], [-1], ["x", "x"]], ids=repr)
def test_junk_in_the_header(tmp_path, files, mixed, junk):
    path, asked, refused = tmp_path / "hostile", pairs(mixed.game), 0
    keys = [*contents(files["policy"])[0], "arrays"]
    for key in keys:
        path.write_bytes(rewritten(files["policy"], put(key, junk)))
        loaded = accepted(ace.Policy.load, path)
        refused += loaded is None
        if loaded is not None:
            behaves(loaded, asked)
    assert refused > len(keys) / 2


def test_a_solution_of_mixed_parts_is_refused(tmp_path, files):
    """The policy inside names another game than the one inside."""
    path = tmp_path / "mixed"
    path.write_bytes(rewritten(files["solution"], lambda header: header["policy"].update(game_digest="0" * 64)))
    with pytest.raises(BadFile, match="another game"):
        ace.Solution.load(path)


@pytest.mark.parametrize(
    "change",
    [
        drop("game"),
        drop("policy"),
        drop("stats"),
        drop("guarantee"),
        put("guarantee", 5),
        put("stats", {"pairs": 1}),
        put("stats", {"pairs": 1, "programs": 0, "repaired": 0, "seconds": 0.0, "more": 1}),
        put("stats", [1, 2]),
        put("game", []),
        put("policy", None),
    ],
)
def test_hostile_solutions(tmp_path, files, change):
    path = tmp_path / "hostile"
    path.write_bytes(rewritten(files["solution"], change))
    with pytest.raises(BadFile, match="hostile"):
        ace.Solution.load(path)


@pytest.mark.parametrize("values", [lambda a: a[:1], lambda a: np.append(a, 1.0), lambda a: a[:, None]])
def test_values_of_the_wrong_shape(tmp_path, files, values):
    path = tmp_path / "hostile"
    path.write_bytes(rewritten(files["solution"], arrays={"values": values}))
    with pytest.raises(BadFile, match="values"):
        ace.Solution.load(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"PK\x03\x04", b"players: [a]\n", b"{}", b"\x80\x04K\x01.", bytes(range(256))],
    ids=["empty", "PK", "zip head", "yaml", "json", "pickle", "bytes"],
)
def test_foreign_files(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    for read in (ace.Policy.load, ace.Solution.load, ace.load):
        with pytest.raises(BadFile, match="foreign"):
            read(path)


def test_files_of_another_kind(tmp_path, mixed):
    game, policy, numpy_file, zipped = (tmp_path / n for n in ("game.npz", "policy", "plain.npz", "zip"))
    mixed.game.save(game)
    mixed.policy.save(policy)
    np.savez(numpy_file, a=np.zeros(3))
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("readme.txt", "hello")
    for path in (game, numpy_file, zipped):
        for read in (ace.Policy.load, ace.Solution.load):
            with pytest.raises(BadFile, match=path.name):
                read(path)
    for read in (ace.Solution.load, ace.load):
        with pytest.raises(BadFile, match="acegames-policy"):
            read(policy)


# -- nothing half-written -------------------------------------------------------------------------------------------


def test_a_label_that_cannot_be_written_writes_nothing(tmp_path):
    game = chicken(player=frozenset({"red"}))
    solution = ace.solve(game)
    for writer in (solution, solution.policy):
        with pytest.raises(ace.AceError, match="red"):
            writer.save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_an_initial_state_may_be_called_none():
    game = ace.MarkovGame.from_arrays(
        np.full((2, 1, 2), 0.5),
        np.zeros((2, 1, 1)),
        horizon=1,
        states=[None, "there"],
        initial={None: 0.5, "there": 0.5},
    )
    policy = ace.solve(game).policy
    assert policy.start(state=None).state is None and policy.start(state="there").state == "there"
    with pytest.raises(ace.InvalidOption, match="2 initial states"):
        policy.start()
    with pytest.raises(ace.UnknownPair, match="'elsewhere' is not an initial state"):
        policy.start(state="elsewhere")


@pytest.mark.parametrize("spoiled", ["no record", "too few codes", "a record beyond the end"])
def test_answers_that_are_not_stored_are_an_error(spoiled):
    """Compiled code does not notice an index out of bounds by itself, and would read and write anywhere."""
    solved = ace.solve(chicken(), ace.CE())
    layer = solved.policy.layers[0]
    if spoiled == "no record":
        layer = replace(layer, code=np.zeros_like(layer.code), mixed_size=layer.mixed_size[:0])
    elif spoiled == "too few codes":
        layer = replace(layer, code=layer.code[:0])
    else:
        sizes = np.full(len(layer.code), 10**9, dtype=np.uint32)
        layer = replace(layer, code=np.zeros_like(layer.code), mixed_size=sizes)
    policy = replace(solved.policy, layers=(layer, *solved.policy.layers[1:]))
    found = ace.verify(solved.game, policy)
    assert not found.ok and "failed with IndexError" in str(found), str(found)
