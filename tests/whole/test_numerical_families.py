"""Games that hurt floating point, judged by the verifier; `reliability/numerics.py` runs ten thousand of each family."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.engines import baseline as taken_out
from acegames.engines import local, reference
from acegames.engines.baseline import Baseline, baseline
from acegames.model.layers import with_fields
from acegames.safety.explore import explore
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from games import ByFunction, one_state
from proof_checker import ROOT, load

families = load(ROOT / "reliability" / "numerics.py")


ENGINES = (ace.LocalEngine(), families.ReferenceEngine())


@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_family(family):
    games = 3 if family == "two_hundred_steps" else 12
    tally = families.run(family, games)
    assert not tally.failures
    assert tally.counts["games"] == games
    assert tally.counts["solved"] > games // 3
    assert 0 <= tally.worst <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_family_for_long(family):
    assert not families.run(family, 50 if family == "two_hundred_steps" else 1000, first=10_000).failures


@pytest.mark.parametrize(("family", "seed"), [("one_near_tie", 13), ("one_near_tie", 58)])
def test_without_a_baseline_they_fail(family, seed, monkeypatch):
    """The judge sees it when rounding is taken for indifference."""
    assert not families.run(family, 1, seed).failures
    for engine in (local, reference):
        monkeypatch.setattr(engine, "baseline", lambda game, played: Baseline(game))
    assert any("gains" in sentence for _, sentence in families.run(family, 1, seed).failures)


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        ("near_ties", 5618),  # every other step pays one and leaves no choice; in between 3e-15 is at stake
        ("huge_and_tiny", 92),  # what cannot be played has no say in the baseline of a time
        (
            "two_hundred_steps",
            10_019,
        ),  # a level of 1, differences of 1e-7: sums of 200 are rounded more than tolerances
    ],
)
def test_games_that_once_failed(family, seed):
    assert not families.run(family, 1, seed).failures


def test_the_judge_sees_a_wrong_verdict(monkeypatch):
    monkeypatch.setattr(families, "can_be_kept", lambda drawn: False)
    assert families.run("tiny_probabilities", 3).failures


def risky(probability, cost, budget, *, horizon=3, players=2):
    """In one state: stay at no cost for little, or take a chance that costs."""
    moves = {}
    for a in np.ndindex(*(2,) * players):
        chance = [(probability, 0, (cost,)), (1 - probability, 0, (0,))] if any(a) else [(1.0, 0, (0,))]
        moves[0, a] = ((float(any(a)),) * players, chance)
    return families.Drawn(moves, (2,) * players, [budget], horizon)


@pytest.mark.parametrize("probability", [0.5, 1e-8, 1e-13, 1e-16, 1e-100, 1e-300, 5e-324])
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE(), ace.Nash()])
def test_what_is_possible_counts_however_improbable(probability, concept):
    for budget, plays in ((9, 0), (10, 1), (29, 2), (30, 3)):
        drawn = risky(probability, 10, budget)
        reached = ace.feasibility(drawn.game())
        assert reached.feasible and families.can_be_kept(drawn)
        assert len(reached.actions(0, 0, [0])) == (4 if plays else 1)
        solution = ace.solve(drawn.game(), concept)
        assert ace.verify(drawn.game(), solution.policy, concept).ok
        played = [dict(solution.policy.distribution(0, 0, [0]))]
        assert (played == [{(0, 0): 1.0}]) == (plays == 0)
    only = risky(probability, 10, 9)
    only.moves = {key: risky(probability, 10, 9).moves[0, (1, 1)] for key in only.moves}
    with pytest.raises(ace.Infeasible):
        ace.solve(only.game(), concept)
    only.budget = [29]  # three times running: the probability may underflow, and it is possible all the same
    assert not families.can_be_kept(only) and not ace.feasibility(only.game()).feasible
    only.budget = [30]
    assert ace.feasibility(only.game()).feasible and ace.solve(only.game(), concept).verify().ok


# -- levels


def exactly_lowered(game, potential, t):
    """r - phi(t, s) + E[phi(t+1, s')] of each row in fractions, with probabilities that sum to one."""
    layer, rewards = game.layer(t), []
    for s in range(len(game.states)):
        for row in layer.rows(s):
            outs = layer.outcomes(row)
            chance = [Fraction(p) for p in layer.prob[outs].tolist()]
            after = [[Fraction(x) for x in potential[t + 1, n].tolist()] for n in layer.next_state[outs].tolist()]
            mean = [
                sum(p * x[i] for p, x in zip(chance, after, strict=True)) / sum(chance)
                for i in range(len(game.players))
            ]
            paid = zip(layer.reward[row].tolist(), potential[t, s].tolist(), mean, strict=True)
            rewards.append([Fraction(r) - Fraction(phi) + x for r, phi, x in paid])
    return rewards


@pytest.mark.parametrize("seed", range(30))
def test_what_is_left_of_rewards_is_rounded_once(seed):
    """As a potential takes it out: otherwise the game that is solved would be another one."""
    rng = np.random.default_rng(seed)
    drawn = families.wages(rng)
    drawn.horizon = min(drawn.horizon, 12)
    game = drawn.game()
    potential = rng.normal(size=(game.horizon + 1, len(game.states), len(game.players))) * 10.0 ** rng.uniform(0, 15)
    potential[-1] = 0
    every_row = [np.full(-(-len(game.layer(t).reward) // 8), 255, dtype=np.uint8) for t in range(game.horizon)]
    for t in range(game.horizon):
        left, true = Baseline(game, potential, every_row).rewards(t), exactly_lowered(game, potential, t)
        for got, exact in zip(left.ravel().tolist(), [x for row in true for x in row], strict=True):
            assert (
                abs(Fraction(got) - exact)
                <= abs(exact) * Fraction(2) ** -50 + Fraction(float(np.abs(potential).max())) * Fraction(2) ** -98
            )


@pytest.mark.parametrize(
    "concept", [ace.CE(), ace.CCE("fair"), ace.CCE("egalitarian"), ace.Nash("egalitarian"), ace.CCE(None)]
)
@pytest.mark.parametrize("engine", [ace.LocalEngine(dense=True), ace.LocalEngine(dense=False), ENGINES[1]])
@pytest.mark.parametrize("wage", [0.0, 1e3, 1e7, 1e12, 1e15])
def test_wages_by_state_and_player_hide_nothing(concept, engine, wage):
    """What is played is judged in the game without the wages, which has the same gains: nobody chooses where play goes."""
    rng = np.random.default_rng(7)
    for players in (1, 2) if wage != 1e3 else (3,):
        shape = (3, *(2,) * players)
        small = rng.integers(0, 4, size=(*shape, players)).astype(float)
        wages = wage * rng.integers(-2, 5, size=(3, players)).reshape(3, *(1,) * players, players)
        transition = np.broadcast_to(
            np.array([[1, 1, 1], [0, 1, 2], [3, 0, 0]]).reshape(3, *(1,) * players, 3) / 3, (*shape, 3)
        )
        cost = rng.integers(0, 2, size=(*shape, 1))
        cost[(slice(None), *(0,) * players)] = 0
        plain, paid = (
            ace.MarkovGame.from_arrays(transition, reward, cost, [4], horizon=10) for reward in (small, small + wages)
        )
        try:
            solution = ace.solve(paid, concept, engine=engine)
        except ace.NoEquilibrium:
            continue
        assert ace.verify(paid, solution.policy, concept).ok
        assert ace.verify(plain, ByFunction(solution.policy.distribution), concept).ok  # which names no game
        assert solution.values == pytest.approx(ace.verify(paid, solution.policy, concept).values, rel=1e-14)


def test_the_best_action_is_played_beside_a_wage_of_1e15():
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 3, 1)), 1e15 + np.arange(3.0).reshape(1, 3, 1), np.zeros((1, 3, 1)), [1], horizon=50
    )
    solution = ace.solve(game)
    assert all(solution.policy.distribution(t, 0, [0]) == {(2,): 1.0} for t in range(50))
    assert ace.verify(game, solution.policy).ok


def test_what_can_be_played_decides_what_is_taken():
    """A jackpot that no budget allows leaves the wages as they are, and so do penalties, be they most of what can be played."""
    reward = np.array([[1000.0, 1003.0, 1e9, -1e4, -1e4, -1e4, -1e4]])[..., None]
    cost = np.array([[0, 1, 99, 0, 0, 0, 0]])[..., None]
    for most in (4, 7):
        game = ace.MarkovGame.from_arrays(np.ones((1, most, 1)), reward[:, :most], cost[:, :most], [2], horizon=6)
        assert levelled(game).potential[:, 0, 0].tolist() == [6018.0, 5015.0, 4012.0, 3009.0, 2006.0, 1003.0, 0.0]


def test_nothing_is_taken_where_play_may_be_paid_nothing():
    """Working pays 1000 and uses the budget up; what is at stake afterwards are millionths, and 1000 would hide them."""
    reward, cost = np.array([[1000.0, 0.0, 1e-6]])[..., None], np.array([[1, 0, 0]])[..., None]
    game = ace.MarkovGame.from_arrays(np.ones((1, 3, 1)), reward, cost, [2], horizon=50)
    assert levelled(game).potential is None


def levelled(game):
    """What an engine takes from a game before it solves it; the same of boxes and of lists."""
    space = plan(game, lattice(game), clip=True)
    boxes, lists = (explore(replace(space, dense=dense)).played for dense in (True, False))
    assert all(np.array_equal(a, b) for a, b in zip(boxes, lists, strict=True))
    return baseline(game, boxes)


def near(base, size, seed=0):
    """Rewards at a level, with differences of a given size."""
    rng = np.random.default_rng(seed)
    shape = (2, 3, 3)
    reward = base + size * rng.integers(-4, 5, size=(*shape, 2))
    transition = np.eye(2)[rng.integers(2, size=shape)]
    return ace.MarkovGame.from_arrays(transition, reward, rng.integers(0, 3, size=(*shape, 1)), [4], horizon=4)


@pytest.mark.parametrize(
    "concept", [ace.CE(), ace.CCE("fair"), ace.CE("egalitarian"), ace.CCE([1, 2]), ace.Nash(), ace.Nash("fair")]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_level_changes_no_choice(concept, engine):
    """2**-40 is exact beside 1, so both games are the same but for the level."""
    plain, high = near(0.0, 2.0**-40), near(1.0, 2.0**-40)
    one, other = (ace.solve(game, concept, engine=engine) for game in (plain, high))
    assert levelled(plain).potential is None
    assert (levelled(high).potential[:-1] > 0).all()
    assert np.abs(other.values - 4 - one.values).max() <= 1e-15 * 8
    for t, layer in enumerate(other.policy.layers):
        assert layer.code.tobytes() == one.policy.layers[t].code.tobytes()
        assert layer.mixed_prob.tobytes() == one.policy.layers[t].mixed_prob.tobytes()
    state = high.states[high.initial[0][0]]
    assert np.allclose(other.policy.values(0, state, [0]), other.values, rtol=1e-15)


@pytest.mark.parametrize("kind", [ace.CE, ace.CCE])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(4))
def test_players_are_compared_with_their_levels(kind, engine, seed):
    """Where the second player always has more, "egalitarian" means the first player, and "fair" the first less the second."""
    plain = near(0.0, 2.0**-40, seed)
    high = with_fields(plain, layers=tuple(replace(x, reward=x.reward + np.array([0.0, 1.0])) for x in plain.layers))
    for objective, weights in (("egalitarian", [1, 0]), ("fair", [1, -1])):
        solution = ace.solve(high, kind(objective), engine=engine)
        best = ace.solve(plain, kind(weights), engine=engine).values @ weights
        assert (solution.values - [0, 4]) @ weights == pytest.approx(best, abs=2.0**-48)
        assert ace.verify(high, solution.policy, kind(objective)).ok


@pytest.mark.parametrize("concept", [ace.CE("fair"), ace.CCE("egalitarian"), ace.Nash("fair")])
def test_levels_that_change_with_time_are_compared_as_they_add_up(concept):
    """The players take turns in having one more: over two steps both have the same, over the last one of them has more."""
    plain = near(0.0, 2.0**-40, 5)
    shared = plain.layers[0]
    turns = tuple(replace(shared, reward=shared.reward + up) for up in ([1.0, 0.0], [0.0, 1.0]))
    game = with_fields(plain, layers=turns, layer_at=(0, 1, 0, 1))
    solutions = [ace.solve(game, concept, engine=engine) for engine in ENGINES]
    taken, above = levelled(game).potential, [levelled(game).above_states(t) for t in range(4)]
    assert np.abs(taken[:-1] - np.array([[[2, 2]], [[1, 2]], [[1, 1]], [[0, 1]]])).max() <= 2.0**-36
    assert np.abs(above - np.array([[[0, 0]], [[0, 1]], [[0, 0]], [[0, 1]]])).max() <= 2.0**-36
    assert np.abs(solutions[0].values - solutions[1].values).max() <= 2.0**-48
    assert all(ace.verify(game, x.policy, concept).ok for x in solutions)


def test_large_levels_are_compared_exactly():
    """Sums of 300 levels of 1e14 and a bit round by hundreds, which must not pass for a difference between the players."""
    rng = np.random.default_rng(0)
    reward, transition = rng.integers(0, 9, size=(2, 2, 2, 2)), np.eye(2)[rng.integers(2, size=(2, 2, 2))]
    cost = rng.integers(0, 2, size=(2, 2, 2, 1))
    plain, high = (
        ace.MarkovGame.from_arrays(transition, reward + base, cost, [100], horizon=300) for base in (0.0, 1e14)
    )
    one, other = (ace.solve(game, ace.CCE("fair")) for game in (plain, high))
    assert 3e16 <= levelled(high).potential[0].min() <= levelled(high).potential[0].max() <= 3e16 + 9 * 300
    assert abs(np.diff(ace.verify(plain, other.policy, ace.CCE("fair")).values) - np.diff(one.values)) <= 8


@pytest.mark.parametrize("name", ["intersection", "drones", "rendezvous", "medium_access"])
def test_levelling_leaves_the_catalog_as_it_is(name):
    assert levelled(ace.catalog.get(name)).potential is None


def test_joint_actions_that_break_a_budget_have_no_say():
    cost = np.zeros((2, 3, 3, 1), dtype=int)
    cost[:, 2, 2] = 9
    reward = np.array(near(0.0, 1.0).layers[0].reward).reshape(2, 3, 3, 2)
    reward[:, 2, 2] = 1e60
    wild = ace.MarkovGame.from_arrays(np.full((2, 3, 3, 2), 0.5), reward, cost, [4], horizon=4)
    assert levelled(wild).potential is None
    assert ace.solve(wild, ace.CE()).verify().ok


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE("fair"), ace.Nash()])
@pytest.mark.parametrize("dense", [True, False])
def test_what_no_safe_play_can_take_has_no_say(concept, dense):
    """The third action can be afforded now, but not what must follow: a penalty on it changes no answer and no tolerance."""

    def penalised(penalty):
        def reward(t, a):
            return penalty if a[0] == 2 else float(a[0] == 1), 100.0 * (a[0] != 1)

        own = [[0, 1, 2], [0, 1]]
        return one_state(["p", "q"], own, lambda t, a: 4 if a[0] == 2 else 1, reward, horizon=3, budget={"c": 5})

    plain = ace.solve(penalised(0.0), concept)
    for penalty in (-1e9, -1e15, 1e30):
        game = penalised(penalty)
        solution = ace.solve(game, concept, engine=ace.LocalEngine(dense=dense))
        assert solution.values.tolist() == plain.values.tolist() == [3, 0]
        certificate = ace.verify(game, solution.policy, concept)
        assert certificate.ok
        assert certificate.tol == pytest.approx([0, 3e-6], rel=1e-5, abs=1e-13)  # all that p can get it gets


def test_a_curve_of_a_game_with_a_level():
    plain, high = (ace.budget_curve(near(base, 2.0**-40), ace.CE()) for base in (0.0, 1.0))
    assert np.nanmax(np.abs(high.values - 4 - plain.values)) <= 1e-14


def test_budgets_in_fractions_are_met_exactly():
    drawn = risky(0.5, Fraction(1, 10**12), Fraction(3, 10**12))
    short = replace(drawn, budget=[Fraction(3, 10**12) - Fraction(1, 10**20)])
    assert ace.solve(drawn.game()).values[0] == 3
    assert ace.solve(short.game()).values[0] < 3


def test_rewards_are_lowered_where_play_can_be(monkeypatch):
    """States that say the time: each of them is looked at in its own step only, to the same bits."""
    rng, steps, wide = np.random.default_rng(0), 40, 5
    row = np.arange(2 * steps * wide)
    state, out_row = row // 2, np.repeat(row, 2)
    following = np.minimum(out_row // (2 * wide) + 1, steps - 1) * wide + rng.integers(wide, size=len(out_row))
    game = ace.MarkovGame.from_sparse(
        row_state=state,
        row_action=(row % 2)[:, None],
        reward=1e6 + rng.integers(4, size=(len(row), 1)),
        out_row=out_row,
        prob=np.full(len(out_row), 0.5),
        next_state=following,
        cost=(rng.random((len(out_row), 1)) < 0.1).astype(int),
        budget=3 * steps,
        horizon=steps,
        initial=0,
    )
    space = explore(plan(game, lattice(game), clip=True))
    base, lowered, lookups = baseline(game, space.played), taken_out._lowered, []
    assert base.potential is not None

    def counted(layer, here, after):
        lookups.append(len(layer.reward))
        return lowered(layer, here, after)

    monkeypatch.setattr(taken_out, "_lowered", counted)
    for t in range(steps):
        layer = game.layer(t)
        rows = np.flatnonzero(np.unpackbits(space.played[t], count=len(row), bitorder="little"))
        whole = lowered(layer, base.potential[t], base.potential[t + 1])
        assert 0 < len(rows) <= 2 * wide and base.rewards(t)[rows].tobytes() == whole[rows].tobytes()
    assert sum(lookups) <= len(row)
    assert ace.solve(game).verify().ok
