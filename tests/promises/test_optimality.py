"""What `verify(..., best=...)` says that nothing exceeds, against programs over histories, with honest and damaged proofs."""

from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from histories import Histories
from promising_games import CONCEPTS, made, small
from shares import some


def asked(seed, most=1):
    """A game of one or two players, its concept, and how far payoffs are apart."""
    game, rng = (
        made(["ties", "common", "two scales"][seed % 9 // 3], seed)
        if seed % 3 == 2
        else small(seed, 2 - (seed % 12 == 0))
    )
    return game, rng, CONCEPTS[seed % 6]


def truth(game, concept, objective):
    """The best that any equilibrium can have in an objective."""
    histories, n = Histories(game, concept), len(game.players)
    size = max(map(histories.range, range(n)))
    if objective == "egalitarian":  # at least what the best mixtures of weights leave
        weights = [(w, 1 - w)[:n] if n == 2 else (1.0,) for w in np.linspace(0, 1, 41)]
        return min(map(histories.support, weights)), size
    weights = np.ones(n) if objective == "welfare" else np.array(objective)
    return histories.support(weights), size * np.abs(weights).sum()


@pytest.mark.parametrize("seed", some(range(60), of=4))
def test_no_equilibrium_exceeds_the_bound_and_little_is_left_open(seed):
    game, rng, concept = asked(seed)
    found = ace.payoffs(game, concept, tol=1e-3 * (seed % 2))
    for objective in ("welfare", "egalitarian", tuple(rng.normal(size=len(game.players)).tolist())):
        best, size = truth(game, concept, objective)
        certificate = ace.verify(game, found.policy(objective), concept, best=objective)
        assert certificate.ok, certificate.problems
        said, noise = certificate.optimality, 1e-9 * (size + abs(best))
        assert said.bound >= best - noise or objective == "egalitarian"
        assert said.bound >= said.value - noise
        assert said.gap <= (0.05 if seed % 2 else 1e-5) * size + noise


def spoil(half_planes, rng, what):
    """Half-planes that are changed at random."""

    def changed(t):
        ptr, direction, dual = (x.copy() for x in half_planes(t))
        rows = rng.random(len(direction)) < 0.3
        if what == "directions":
            direction[rows] += rng.normal(size=direction[rows].shape) * rng.choice([1e-9, 1e-2, 1.0])
        elif what == "multipliers":
            dual[rows] *= rng.choice([0, 0.5, 1.1, 1e6], size=dual[rows].shape)
            dual[rows] += rng.random(dual[rows].shape) * rng.choice([0, 1e-9, 1.0])
        elif what == "order":
            dual[rows] = rng.permutation(dual[rows], axis=1)
        elif what == "negative":
            dual[rows] -= 1e-3
        elif what == "no number":
            (direction if rng.random() < 0.5 else dual)[rows] = np.nan
        elif what == "pointers":
            ptr[rng.integers(len(ptr))] += rng.integers(-2, 3)
        return ptr, direction, dual

    return changed


@pytest.mark.parametrize("what", ["directions", "multipliers", "order", "negative", "no number", "pointers"])
def test_a_bad_proof_gives_no_false_bound(what):
    """But a weak one, or none, and a sentence."""
    for seed in (1, 2, 5, 8, 10, 13, 14, 20):
        game, rng, concept = asked(seed)
        policy = ace.payoffs(game, concept).policy()
        policy = replace(policy, half_planes=spoil(policy.half_planes, rng, what), _tables={})
        best, size = truth(game, concept, "welfare")
        certificate = ace.verify(game, policy, concept, best="welfare")
        assert certificate.optimality.bound >= best - 1e-9 * (size + abs(best))
        assert certificate.ok == np.isfinite(certificate.optimality.bound) == (not certificate.problems)
        assert all(said.startswith("At t=") and said.endswith(".") for said in certificate.problems)
