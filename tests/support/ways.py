"""Every way in which the verifier works, and small games of every kind: whatever the way, the certificate is the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.system.compiled import running
from acegames.verifier import verify
from acegames.verifier.pair_keys import ExactUnits, PairKeys, unroll
from elsewhere import Elsewhere
from emulated_gpu import EmulatedGPU
from random_games import changing_game

LIMITS = "acegames.verifier.basics.LIMITS"
WINDOWS = {"long_line": 0, "keys_per_pair": 10**9}
INDEX = {"keys_per_pair": 0, "few_keys": -1}
SINGLY, ALIKE = {"merged": 10**9}, {"merged": 0}
SMALL = {"block": 3, "least_block": 1}


class Way(NamedTuple):
    """How pairs are looked at, and by whom."""

    limits: dict[str, int]
    engine: Any = None
    unrolled: bool = False  # as if no pairs fitted into 64 bits
    interpreted: bool = False  # kernels are interpreted, where an index beyond what was allocated is an error


WAYS = {
    "windows": Way(WINDOWS | SINGLY, ace.LocalEngine(threads=1)),
    "windows of what is alike": Way(WINDOWS | ALIKE | SMALL, ace.LocalEngine(threads=2)),
    "index": Way(INDEX | SINGLY | SMALL, ace.LocalEngine(threads=2)),
    "index of what is alike": Way(INDEX | ALIKE, ace.LocalEngine(threads=3)),
    "windows, unrolled": Way(WINDOWS | SMALL, unrolled=True),
    "index, unrolled": Way(INDEX, unrolled=True),
    "windows elsewhere": Way(WINDOWS, Elsewhere(block=3)),
    "index elsewhere": Way(INDEX, Elsewhere(block=1)),
    "interpreted": Way({}, ace.LocalEngine(threads=2, compiled=False)),
    "card": Way(WINDOWS | {"chunk": 5, "least_chunk": 1}, EmulatedGPU(smallest=0)),
}
INTERPRETED = {f"{how}, interpreted": WAYS[how]._replace(interpreted=True) for how in WAYS if how != "card"}


def judged(how, game, policy, concept=None, **keywords):
    """The certificate, found in one of these ways."""
    way = (WAYS | INTERPRETED)[how]
    with pytest.MonkeyPatch.context() as patch, running(compiled=False if way.interpreted else None):
        for name, value in way.limits.items():
            patch.setattr(f"{LIMITS}.{name}", value)
        if way.unrolled:
            patch.setattr(PairKeys, "of", staticmethod(_unrolled(PairKeys.of)))
        return verify(game, policy, concept, engine=way.engine, **keywords)


def _unrolled(packed):
    def of(game, units, unrolled=None):
        if unrolled is not None:
            return packed(game, units, unrolled)
        listed = unroll(game, units)
        return packed(listed.game, ExactUnits(listed.game), listed)

    return of


def drawn_game(seed):
    """One to three players, no to three constraints, reservoirs, schedules, costs of both signs, layers that change."""
    rng = np.random.default_rng([seed, 11])
    return [
        lambda: oracle.random_game(rng, rewards="dyadic", stationary=False),
        lambda: oracle.random_game(rng, reservoirs=True, rewards="integers"),
        lambda: changing_game(rng),
        lambda: oracle.random_game(rng, players=int(rng.integers(1, 4)), constraints=1, rewards="dyadic"),
        lambda: oracle.random_game(rng, horizon=4, constraints=2, players=2, costs="signed", rewards="integers"),
        lambda: oracle.random_game(rng, horizon=3, constraints=2, costs="signed", reservoirs=True, rewards="dyadic"),
    ][seed % 6]()


def kind_of(found):
    """What a certificate says, in a word."""
    if not found.pairs:
        return "infeasible"
    if found.witness is not None:
        return "witness"
    return "ok" if found.ok else "off the path" if np.isnan(found.regret).any() else "unstable"
