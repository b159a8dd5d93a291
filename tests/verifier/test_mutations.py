"""The verifier must catch damage: correct policies, damaged at one random pair, judged by brute force (spec 7).

The judge is `oracle.deviation_gains`: exact, by recursion from the definition, and it shares nothing with the verifier.
"""

from __future__ import annotations

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import CCE, CE
from games import Changed
from shares import blocks

SEEDS, BLOCK, DAMAGES = 300, 30, 8


def move_some(rng, sigma, feasible, legal):
    """A share of the probability, or all of it, to another feasible joint action."""
    share = float(rng.choice([rng.uniform(0.05, 0.9), 1.0]))
    out = {a: p * (1 - share) for a, p in sigma.items() if share < 1}
    target = pick(rng, feasible)
    out[target] = out.get(target, 0.0) + share
    return out


def unsafe(rng, sigma, feasible, legal):
    """A little probability on a joint action that is legal but not feasible, if there is one."""
    bad = sorted(set(legal) - set(feasible))
    if not bad:
        return move_some(rng, sigma, feasible, legal)
    share = float(rng.choice([1e-6, 0.01, 1.0]))
    out = {a: p * (1 - share) for a, p in sigma.items() if share < 1}
    out[pick(rng, bad)] = share
    return out


def drop(rng, sigma, feasible, legal):
    """One joint action of the support left out, the rest scaled up."""
    if len(sigma) == 1:
        return move_some(rng, sigma, feasible, legal)
    gone = pick(rng, list(sigma))
    rest = {a: p for a, p in sigma.items() if a != gone}
    return {a: p / sum(rest.values()) for a, p in rest.items()}


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


KINDS = [move_some, unsafe, drop]


def cases(seeds):
    """Yield (game, concept, damaged policy, safe, gains) for many random damages."""
    for seed in seeds:
        rng = np.random.default_rng([seed, 99])
        game = oracle.random_game(rng, players=int(rng.integers(1, 4)), rewards=["integers", "dyadic"][seed % 2])
        feasible, _, fa = oracle.feasible_sets(game)
        if not feasible:
            continue
        concept = [CE(), CCE(), CE("egalitarian"), CCE("fair")][seed % 4]
        policy = ace.solve(game, concept).policy
        table = oracle.table_of(game, policy)
        pairs = sorted(table, key=repr)
        for k in range(DAMAGES):
            t, s, c = pick(rng, pairs)
            layer = game.layer(t)
            legal = [tuple(map(int, layer.action[r])) for r in layer.rows(s)]
            damage = KINDS[(seed + k) % len(KINDS)]
            changed = damage(rng, table[t, s, c], sorted(fa[t, s, c]), legal)
            safe, gains = oracle.deviation_gains(game, table | {(t, s, c): changed}, type(concept).__name__)
            labelled = {game.joint_action(a): p for a, p in changed.items()}
            yield game, concept, Changed(policy, (t, game.states[s], c), labelled), safe, gains


@blocks(SEEDS, BLOCK, of=5)
def test_damage_is_caught(first):
    count = {"unsafe": 0, "unstable": 0, "harmless": 0}
    for game, concept, damaged, safe, gains in cases(range(first, first + BLOCK)):
        certificate = ace.verify(game, damaged, concept)
        where = (game, damaged.where, damaged.answer, concept)
        if not safe:
            assert not certificate.ok, where
            count["unsafe"] += 1
            continue
        expected = np.maximum(np.array(gains, float), 0)
        assert np.asarray(certificate.regret) == pytest.approx(expected, abs=1e-9), where
        if expected.max() > 1e-4:
            assert not certificate.ok, where
            count["unstable"] += 1
        elif expected.max() < 1e-9:
            assert certificate.ok, where
            count["harmless"] += 1
    assert count["unsafe"] >= 10, count
    assert count["unstable"] >= 30, count
    assert count["harmless"] >= 30, count


@pytest.mark.parametrize("kind", [CE, CCE])
def test_undamaged_policies_pass_the_judge(kind):
    for seed in range(500, 540):
        game = oracle.random_game(np.random.default_rng(seed))
        if oracle.feasible_sets(game)[0]:
            policy = ace.solve(game, kind()).policy
            safe, gains = oracle.deviation_gains(game, oracle.table_of(game, policy), kind.__name__)
            assert safe
            assert max(gains) < 1e-7
