"""The answers of 300 games, to the last bit, against digests in `samples/digests.json`.

Equilibria are not unique and rounding is free to differ, so a digest that changes is no proof of an error. But a change that is meant to
move code and not answers must not move a bit, and one that moves bits should know it. After such a change:

    PYTHONPATH=tests/support python tests/whole/test_same_bits.py          # writes the digests anew; say in the commit why they changed
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.model.record import with_fields
from random_games import changing_game, pairs
from shares import some

DIGESTS = Path(__file__).parents[1] / "samples" / "digests.json"
GAMES, BLOCK = 300, 20
OBJECTIVES: tuple[Any, ...] = ("welfare", "egalitarian", "fair", None, "p0", (1.0, 0.25, 0.5))


def _drawn(k: int) -> tuple[ace.MarkovGame, ace.CE | ace.CCE | ace.Nash, dict[str, Any]]:
    """Game number k, its concept, and options: every concept, objective and shape, boxes and lists, rounded, one player, penalties."""
    rng = np.random.default_rng([14, k])
    players = 1 if k % 10 == 9 else 3 if k % 10 == 8 else 2
    while True:
        if k % 3 == 0:
            game = changing_game(rng, players=players, reservoirs=False)
        else:
            horizon = 6 if k % 15 == 1 and players == 2 else None
            game = oracle.random_game(rng, players=players, stationary=bool(k % 2), horizon=horizon, reservoirs=False)
        if ace.feasibility(game).feasible:
            break
    if k % 7 == 5:
        game = _penalised(game, 10.0 ** (3 * (k % 4 + 1)), rng)
    concept: Any = (ace.CE, ace.CCE, ace.Nash)[k % 3 if k % 2 else k // 2 % 3]
    objective = OBJECTIVES[k // 3 % len(OBJECTIVES)]
    if isinstance(objective, tuple):
        objective = objective[:players]
    options: dict[str, Any] = {"engine": ace.LocalEngine(threads=1, dense=(None, True, False)[k // 5 % 3])}
    if k % 11 == 3:
        options = {"engine": ace.ReferenceEngine()}
    if k % 13 == 6 and game.constraints:
        options["epsilon"] = 0.5
    return game, concept(objective), options


def _penalised(game: ace.MarkovGame, size: float, rng: np.random.Generator) -> ace.MarkovGame:
    """The same game in which some joint actions pay a player far less."""
    layers = []
    for layer in game.layers:
        reward = np.array(layer.reward)
        reward[rng.random(reward.shape) < 0.15] -= size
        layers.append(replace(layer, reward=reward))
    return with_fields(game, layers=tuple(layers))


def digest(k: int) -> str:
    """What is to stay the same: values, distributions at every pair, or that there is none."""
    game, concept, options = _drawn(k)
    try:
        solution = ace.solve(game, concept, **options)
    except ace.NoEquilibrium as error:
        return type(error).__name__
    hashed = hashlib.sha256(np.ascontiguousarray(solution.values).tobytes())
    for line in _lines(game, solution.policy):
        hashed.update(line.encode())
    return hashed.hexdigest()[:20]


def _lines(game: ace.MarkovGame, policy: ace.Policy) -> Iterator[str]:
    for t, state, spent in pairs(game, policy):
        played = [(str(a), p.hex()) for a, p in policy.distribution(t, state, spent).items()]
        yield f"{t} {state} {spent} {played} {[x.hex() for x in policy.values(t, state, spent).tolist()]}\n"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="made on this kind of processor")
@pytest.mark.parametrize("first", some(range(0, GAMES, BLOCK), of=3))
def test_answers_are_the_same_to_the_last_bit(first: int) -> None:
    stored = json.loads(DIGESTS.read_text())
    changed = [k for k in range(first, first + BLOCK) if digest(k) != stored[k]]
    assert not changed, f"games {changed} have other answers than in {DIGESTS.name}"


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps([digest(k) for k in range(GAMES)], indent=0) + "\n")
