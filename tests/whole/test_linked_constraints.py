"""Constraints whose costs are sums of others' costs, such as both sides of a limit: boxes count the others only, and every part
says of them what the oracle says."""

from __future__ import annotations

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.files.tables.policies import policy_pieces
from acegames.policy.situations import View
from acegames.safety import space as spaces
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from random_games import linked_game
from shares import some


@pytest.fixture
def always_linked(monkeypatch):
    """Also small boxes leave out what follows from others."""
    monkeypatch.setattr(spaces, "DENSE_IF_BELOW", 0)
    monkeypatch.setattr(spaces, "DENSE_OCCUPANCY", 0)


@pytest.fixture
def never_clipped(always_linked, monkeypatch):
    """As where the clipped boxes cannot be numbered."""
    laid_out = spaces._laid_out

    def refusing(*arguments, clip):
        if clip:
            raise ace.TooLarge("clipped boxes")
        return laid_out(*arguments, clip=clip)

    monkeypatch.setattr(spaces, "_laid_out", refusing)


def others(game, known):
    """Situations beside those that are reached: a unit more or less of one constraint."""
    near = set()
    for s, spent in known:
        for m, unit in enumerate(lattice(game).units):
            near |= {(s, (*spent[:m], spent[m] + by, *spent[m + 1 :])) for by in (-unit, unit)}
    return near - known


def labelled(game, situations):
    return {(game.states[s], spent) for s, spent in situations}


SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_feasible_situations_and_actions(always_linked, seed):
    game = linked_game(seed)
    space = plan(game, lattice(game), clip=False)
    assert space.sums is not None and space.dense is False
    assert sorted((*space.dims, *space.sums.of)) == list(range(len(game.constraints)))
    assert not any(game.reservoirs[m] for m in space.sums.of)
    feasible, situations, _ = oracle.check_feasible(game)
    answer = ace.feasibility(game)
    for t in range(game.horizon if feasible else 0):
        for state, spent in others(game, labelled(game, situations[t])):
            with pytest.raises(KeyError):
                answer.actions(t, state, spent)


@pytest.mark.parametrize("seed", SEEDS)
def test_shield(always_linked, seed):
    game = linked_game(seed)
    feasible, situations, actions = oracle.feasible_sets(game)
    if not feasible:
        with pytest.raises(ace.Infeasible):
            ace.Shield(game)
        return
    shield = ace.Shield(game)
    for t in range(game.horizon):
        known = labelled(game, situations[t])
        for s, spent in situations[t]:
            mask = shield.joint(t, game.states[s], spent)
            assert set(map(tuple, np.argwhere(mask).tolist())) == actions[t, s, spent]
        pairs = np.arange(shield.first[t], shield.first[t + 1])
        time, state, units = shield.situations(pairs)
        assert (time == t).all() and shield.pairs(t, state, units).tolist() == pairs.tolist()
        said = {(game.states[s], shield.amounts(own)) for s, own in zip(state, units.tolist(), strict=True)}
        assert said == known and len(pairs) == len(known)
        for state, spent in others(game, known):
            with pytest.raises(KeyError):
                shield.joint(t, state, spent)


def same_policy(game, policy, situations, values):
    for t in range(game.horizon):
        known = labelled(game, situations[t])
        for s, spent in situations[t]:
            want = [float(x) for x in values[t, s, spent]]
            assert policy.values(t, game.states[s], spent) == pytest.approx(want, abs=1e-9)
            assert policy.distribution(t, game.states[s], spent)
        for state, spent in others(game, known):
            with pytest.raises(KeyError):
                policy.distribution(t, state, spent)
            total = policy.tracker.total(spent)
            assert policy.internals.pairs(t, np.array([game.state_index(state)]), np.atleast_2d(total)).tolist() == [-1]


@pytest.mark.parametrize("how", ["always_linked", "never_clipped"])
@pytest.mark.parametrize("seed", some(SEEDS, of=3))
def test_solutions_and_their_files(request, tmp_path, how, seed):
    request.getfixturevalue(how)
    game, concept = linked_game(seed), ace.CCE()
    feasible, situations, _ = oracle.feasible_sets(game)
    if not feasible:
        with pytest.raises(ace.Infeasible):
            ace.solve(game, concept)
        return
    solution, values = ace.solve(game, concept), oracle.all_values(game, concept)
    assert solution.policy.reached is not None and solution.policy.reached.sums is not None
    same_policy(game, solution.policy, situations, values)
    assert ace.verify(game, solution.policy).ok
    solution.save(tmp_path / "x.ace")
    same_policy(game, ace.Solution.load(tmp_path / "x.ace").policy, situations, values)


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_answers_and_tables_are_those_of_clipped_boxes(request, seed):
    game = linked_game(seed)
    if not oracle.feasible_sets(game)[0]:
        return
    plain = ace.solve(game)
    request.getfixturevalue("never_clipped")
    linked = ace.solve(game)
    assert plain.policy.reached.sums is None and linked.values.tobytes() == plain.values.tobytes()
    pieces = [list(policy_pieces(x.policy, labels=True)) for x in (plain, linked)]
    one, other = ([tuple(map(str, row)) for own in piece for row in zip(*own, strict=True)] for piece in pieces)
    assert sorted(one) == sorted(other) and len(one) == len(other) > 0
    views = [View.of(game, x.policy) for x in (plain, linked)]
    for t in range(game.horizon):
        first, second = (sorted(zip(*(x.tolist() for x in view.listed(t)), strict=True)) for view in views)
        assert first == second


def tanks(horizon=5, top=1500):
    """Four tanks, each with limits on both sides, and steps of any size."""
    rng = np.random.default_rng(7)
    step = rng.integers(-900, 901, (horizon, 2, 2, 4)).tolist()
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        horizon=horizon,
        initial="s",
        budget={f"tank {k}": ace.between(-top, top) for k in range(4)},
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1.0, "s", {f"tank {k}": step[t][a[0]][a[1]][k] for k in range(4)})],
        reward=lambda t, s, a: [float(sum(step[t][a[0]][a[1]])), float(step[t][a[0]][a[1]][0] - a[0])],
    )


def test_eight_constraints_with_ranges_of_thousands(tmp_path):
    """All boxes together would have more cells than 62 bits can number."""
    game = tanks()
    whole = lattice(game)
    clipped = plan(game, whole, clip=True)
    assert clipped.sums is not None and len(clipped.dims) <= 4
    size = plan(game, whole, clip=False).arrivals
    assert np.prod((size.most - size.least + 1.0)[-1]) > 2.0**62
    (feasible, situations, _), values = oracle.check_feasible(game), oracle.all_values(game, ace.CCE())
    assert feasible
    solution = ace.solve(game, ace.CCE())
    same_policy(game, solution.policy, situations, values)
    assert ace.verify(game, solution.policy).ok
    assert len(ace.Shield(game).first) == game.horizon + 2
    assert ace.estimate(game).pairs >= solution.stats.pairs
    solution.save(tmp_path / "x.ace")
    same_policy(game, ace.Solution.load(tmp_path / "x.ace").policy, situations, values)
