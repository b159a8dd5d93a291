"""Policies with memory against a dynamic program over (situation, memory) by definition, and `verify` against both."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames.kernels import payoff_program
from games import one_stage, one_state, pairs
from promise_judge import Promises
from promising_games import CONCEPTS, any_game, scale
from shares import some


@pytest.mark.parametrize("seed", some(range(60), of=5))
def test_policies_keep_their_promises(seed):
    """What was asked for is what they are worth, nobody gains anywhere, and verify says just that."""
    (game, rng), concept = any_game(seed), CONCEPTS[seed % 6]
    found = ace.payoffs(game, concept, tol=1e-3 * (seed % 2 or len(game.players) > 2))
    inside = rng.dirichlet(np.ones(len(found.vertices))) @ found.vertices
    point = dict(zip(game.players, inside.tolist(), strict=True))
    for objective in ("welfare", "egalitarian", "fair", "bargaining", game.players[-1], point):
        policy = found.policy(point=point) if objective is point else found.policy(objective)
        wanted = inside if objective is point else found.best(objective)
        assert found.contains(wanted)
        judged, certificate = Promises(game, policy, concept), ace.verify(game, policy, concept)
        assert judged.values == pytest.approx(wanted, abs=1e-9 * scale(found))
        assert max(judged.gains) <= 1e-9 * scale(found)
        assert certificate.ok, certificate.problems
        assert certificate.values == pytest.approx(wanted, abs=1e-9 * scale(found))
        assert certificate.regret == pytest.approx(judged.gains, abs=1e-9 * scale(found))
        assert certificate.pairs == len(judged.reached)


@pytest.mark.parametrize("seed", some(range(60), of=5))
def test_the_best_of_all(seed):
    """No vertex, and no mixture of them, is better in the objective; what lies beyond is not contained."""
    game, rng = any_game(seed)
    found = ace.payoffs(game, CONCEPTS[seed % 6])
    points = np.concatenate([found.vertices, rng.dirichlet(np.full(len(found.vertices), 0.5), 200) @ found.vertices])
    least, small = found.vertices.min(axis=0), 1e-9 * scale(found)
    assert [found.worst(p) for p in game.players] == least.tolist()
    measures = {
        "welfare": lambda v: v.sum(axis=-1),
        "egalitarian": lambda v: v.min(axis=-1),
        "fair": lambda v: -np.ptp(v, axis=-1),
        "p1" if "p1" in game.players else "q": lambda v: v[..., 1],
    }
    for objective, measure in measures.items():
        assert measure(found.best(objective)) >= measure(points).max() - small
    gains = (np.vstack([points, found.best("bargaining")]) - least)[:, np.ptp(found.vertices, axis=0) > small]
    product = (gains / gains.max(axis=0, initial=small)).prod(axis=1)
    assert product[-1] >= product.max() - 1e-8
    beyond = found.vertices[found.vertices[:, 0].argmax()] + 1e-4 * scale(found) * np.eye(len(game.players))[0]
    assert not found.contains(beyond)


@pytest.mark.parametrize("seed", some(range(30), of=5))
def test_what_is_found_is_inside_what_bounds_it(seed):
    """In every situation, in every direction."""
    game, rng = any_game(seed)
    n = len(game.players)
    directions = np.concatenate([np.eye(n), -np.eye(n), rng.normal(size=(100, n))])
    for tol in (1e-3, 0)[: 4 - n]:
        found = ace.payoffs(game, CONCEPTS[seed % 6], tol=tol)
        for t, s, c in pairs(game):
            here = found.at(t, s, c)
            inner, outer = ((points @ directions.T).max(axis=0) for points in (here.vertices, here.bound))
            assert (inner <= outer + 1e-9 * scale(here)).all()


@pytest.mark.parametrize("concept", CONCEPTS[2:4])
def test_the_same_bits_by_any_number_of_threads_and_without_the_compiler(concept):
    for seed in (1, 5, 7):
        game, _ = any_game(seed)
        ways = [{"threads": 1}, {"threads": 2}, {"threads": 1, "compiled": False}]
        all_found = [ace.payoffs(game, concept, engine=ace.LocalEngine(**way)) for way in ways]
        for field in ("vertices", "bound"):
            assert len({getattr(found, field).tobytes() for found in all_found}) == 1
        told = {b"".join(x.prob.tobytes() + x.to.tobytes() for x in found.policy().layers) for found in all_found}
        assert len(told) == 1


@pytest.mark.parametrize("power", [-60, 60])
def test_units_of_rewards_do_not_matter(power):
    """With powers of two not a bit changes."""
    pay = {("a", "a"): (6, 6), ("a", "b"): (2, 7), ("b", "a"): (7, 2), ("b", "b"): (0, 1)}

    def payoffs(unit):
        rewards = {a: [unit * x for x in pay[a]] for a in pay}
        return ace.payoffs(one_state(["p", "q"], [("a", "b")] * 2, lambda t, a: (), lambda t, a: rewards[a], horizon=2))

    plain, scaled = payoffs(1.0), payoffs(2.0**power)
    assert scaled.vertices.tolist() == (2.0**power * plain.vertices).tolist()
    for objective in ("welfare", "egalitarian", "fair", "bargaining", (1, -2)):
        assert scaled.best(objective) == pytest.approx(2.0**power * plain.best(objective), rel=1e-9, abs=0)


def test_correlated_play_is_no_nash_equilibrium():
    """Chicken at its best, 1/2 (c, c), 1/4 (c, d), 1/4 (d, c), draws both at once: it is not judged as Nash."""
    pay = {("d", "d"): (0, 0), ("d", "c"): (7, 2), ("c", "d"): (2, 7), ("c", "c"): (6, 6)}
    found = ace.payoffs(one_stage(pay), ace.CE(), tol=0)
    with pytest.raises(ace.InvalidOption, match="draws joint actions together"):
        ace.verify(found.game, found.policy("egalitarian"), ace.Nash())


def test_who_tells_what_is_not_safe_is_not_called_safe():
    both = {a: (float(a[0] == "use"), float(a[1] == "use")) for a in itertools.product(("use", "leave"), repeat=2)}
    game = one_stage(both, {a: a.count("use") for a in both}, budget=1)
    policy = ace.payoffs(game).policy()
    row = np.full_like(policy.layers[0].row, game.legal(0, "s")["use", "use"])
    certificate = ace.verify(game, replace(policy, layers=(replace(policy.layers[0], row=row),), _tables={}))
    assert not certificate.ok and "('use', 'use')" in certificate.problems[0]
    assert "every budget holds" not in str(certificate)


def damage(policy, rng):
    """The policy with one thing changed at random, and perhaps for the worse."""
    layers = list(policy.layers)
    t = int(rng.integers(len(layers)))
    layer = layers[t]
    e, q = int(rng.integers(len(layer.row))), int(rng.integers(len(layer.cell)))
    what = ["prob", "row", "to", "worst", "ptr", "begin"][int(rng.integers(6))]
    array = np.array(getattr(layer, what, policy.begin[0][0]))
    if what == "begin":
        weights = policy.begin[0][1] * (rng.random() < 0.5) + 0.5
        first = (array + rng.integers(-1, 2), weights / (weights.sum() if rng.random() < 0.5 else 1))
        return replace(policy, begin=(first, *policy.begin[1:]), _tables={})
    if what == "prob":
        array[e] = rng.choice([0, -0.1, np.nan, array[e] * 0.9, array[e] + 1e-6, 1])
        if rng.random() < 0.7:
            total = np.add.reduceat(array, layer.ptr[:-1])
            array /= np.repeat(np.where(total > 0, total, 1), np.diff(layer.ptr))
    elif what == "ptr":
        array[q] += rng.integers(-1, 2)
    elif what == "worst":
        i = int(rng.integers(array.shape[1]))
        array[:, i] = (
            rng.integers(-1, len(layer.cell) + 1, len(array)) if rng.random() < 0.3 else other(array[:, i], layer, rng)
        )
    elif what == "to":
        after = layers[t + 1] if t + 1 < len(layers) else layer
        array[e] = other(array[e], after, rng) if rng.random() < 0.7 else array[e] + 1
    else:
        array[e] = rng.integers(-1, policy.game.layer(t).row_ptr[-1] + 1)
    layers[t] = replace(layer, **{what: array})
    return replace(policy, layers=tuple(layers), _tables={})


def other(promises, layer, rng):
    """For each promise one of the same situation, at random."""
    return np.array(
        [rng.choice(np.flatnonzero(layer.cell == layer.cell[q])) if 0 <= q < len(layer.cell) else q for q in promises]
    )


@pytest.mark.parametrize("seed", some(range(200), of=5))
def test_verify_judges_damaged_policies(seed):
    """It never raises, says what is wrong, and accepts only what the definition does, with its values and gains."""
    (game, rng), concept = any_game(seed), CONCEPTS[2 + seed % 2]
    found = ace.payoffs(game, concept)
    for objective in ("egalitarian", "bargaining", found.vertices.mean(axis=0).tolist()):
        policy = damage(found.policy(objective) if isinstance(objective, str) else found.policy(point=objective), rng)
        certificate = ace.verify(game, policy, concept)
        assert certificate.ok != bool(certificate.problems)
        assert all(len(said) > 20 and said[0].isupper() and said.endswith(".") for said in certificate.problems)
        if np.isfinite(certificate.values).all():
            judged = Promises(game, policy, concept)
            assert certificate.values == pytest.approx(judged.values, abs=1e-9 * scale(found))
            assert certificate.regret == pytest.approx(judged.gains, abs=1e-8 * scale(found))
        assert not certificate.ok or max(judged.gains) <= 1e-7 * scale(found)


def test_a_policy_serves_its_own_game_and_brings_a_proof_of_its_own_concept(tmp_path):
    game, other = ace.catalog.get("intersection"), ace.catalog.get("net_zero")
    policy = ace.payoffs(game, ace.CE()).policy("egalitarian")
    for with_proof in (True, False):
        policy.save(tmp_path / "best.ace", proof=with_proof)
        loaded = ace.MemoryPolicy.load(tmp_path / "best.ace")
        assert loaded.concept == ace.CE("egalitarian") and ace.verify(game, loaded).ok
        if with_proof:
            own, read = (ace.verify(game, x, best="egalitarian").optimality for x in (policy, loaded))
            assert own == read and own.gap < 1e-6
        else:
            with pytest.raises(ace.InvalidOption, match="saved without its proof"):
                ace.verify(game, loaded, best="egalitarian")
    with pytest.raises(ace.InvalidOption, match="cannot say anything of CCE"):
        ace.verify(game, policy, ace.CCE(), best="egalitarian")
    with pytest.raises(ace.InvalidOption, match="serves only the game"):
        ace.simulate(other, policy, episodes=1)
    assert "another game" in ace.verify(other, policy).problems[0]
    assert pickle.loads(pickle.dumps(policy)).values_at_start.tolist() == policy.values_at_start.tolist()


def test_a_program_that_is_given_up_still_bounds_all_payoffs(monkeypatch):
    """Then no incentive counts: the bound is the hull of what joint actions pay, and what is found is still an equilibrium."""
    monkeypatch.setattr(payoff_program, "TURNS", 0)
    pay = {("c", "c"): (3, 3), ("c", "d"): (0, 5), ("d", "c"): (5, 0), ("d", "d"): (1, 1)}
    found = ace.payoffs(one_stage(pay), ace.CE(), tol=0, engine=ace.LocalEngine(compiled=False))
    assert found.vertices.tolist() == [[1, 1]]
    for direction in ((1, 0), (0, 1), (1, 1), (-1, 0), (0, -1)):
        assert (found.bound @ direction).max() == pytest.approx(max(np.dot(x, direction) for x in pay.values()))
