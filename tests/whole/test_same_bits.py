"""Answers, files, certificates, proofs and shields of 420 games, to the last bit, against digests in `samples/digests.json`.

Equilibria are not unique and rounding is free to differ, so a digest that changes is no proof of an error. But a change that is meant to
move code and not answers must not move a bit, and one that moves bits should know it. After such a change:

    PYTHONPATH=tests/support python tests/whole/test_same_bits.py          # writes the digests anew; say in the commit why they changed
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.model.layers import with_fields
from acegames.safety import space as spaces
from acegames.system.compiled import running
from games import Changed
from random_games import changing_game, linked_game, pairs
from shares import some

DIGESTS = Path(__file__).parents[1] / "samples" / "digests.json"
GAMES, BLOCK, PLAIN = 420, 20, 300
SHARES = 12  # of the games are interpreted in a test each
OBJECTIVES: tuple[Any, ...] = ("welfare", "egalitarian", "fair", None, "p0", (1.0, 0.25, 0.5))
KINDS = ("answers", "file", "certificates", "proof", "shield")
DAMAGED = 3  # policies of a game that are damaged and judged


# -- games --------------------------------------------------------------------------------------------------------


def _drawn(k: int) -> tuple[ace.MarkovGame, ace.CE | ace.CCE | ace.Nash, dict[str, Any]]:
    """Game number k, its concept and options: every concept, objective and shape, boxes and lists, one player, penalties.

    From PLAIN on: reservoirs, constraints that follow from others, costs rounded up and down, wages.
    """
    rng = np.random.default_rng([14, k])
    players = 1 if k % 10 == 9 else 3 if k % 10 == 8 else 2
    while True:
        game = _plain(k, players, rng) if k < PLAIN else _special(k, players, rng)
        if ace.feasibility(game).feasible:
            break
    if k % 7 == 5:
        game = _penalised(game, 10.0 ** (3 * (k % 4 + 1)), rng)
    if k >= PLAIN and k % 4 == 3:
        game = _with_rewards(game, lambda reward: reward + 10.0 ** rng.integers(2, 13))
    concept: Any = (ace.CE, ace.CCE, ace.Nash)[k % 3 if k % 2 else k // 2 % 3]
    objective = OBJECTIVES[k // 3 % len(OBJECTIVES)]
    if isinstance(objective, tuple):
        objective = objective[: len(game.players)]
    elif objective == "p0":
        objective = game.players[0]
    options: dict[str, Any] = {"engine": ace.LocalEngine(threads=1, dense=(None, True, False)[k // 5 % 3])}
    if k % 11 == 3:
        options = {"engine": ace.ReferenceEngine()}
    if k % 13 == 6 and game.constraints:
        options["epsilon"] = 0.5
    if k >= PLAIN and k % 4 == 2 and game.constraints:
        options |= {"epsilon": 1.5, "rounding": "up" if k % 8 == 2 else "down"}
    return game, concept(objective), options


def _plain(k: int, players: int, rng: np.random.Generator) -> ace.MarkovGame:
    if k % 3 == 0:
        return changing_game(rng, players=players, reservoirs=False)
    horizon = 6 if k % 15 == 1 and players == 2 else None
    return oracle.random_game(rng, players=players, stationary=bool(k % 2), horizon=horizon, reservoirs=False)


def _special(k: int, players: int, rng: np.random.Generator) -> ace.MarkovGame:
    if k % 4 == 1:
        return linked_game(int(rng.integers(2**32)))
    if k % 3 == 0:
        return changing_game(rng, players=players, reservoirs=k % 4 == 0)
    return oracle.random_game(rng, players=players, constraints=1 + k % 2, reservoirs=k % 4 == 0)


def _penalised(game: ace.MarkovGame, size: float, rng: np.random.Generator) -> ace.MarkovGame:
    """The same game in which some joint actions pay a player far less."""

    def penalise(reward: Any) -> Any:
        reward[rng.random(reward.shape) < 0.15] -= size
        return reward

    return _with_rewards(game, penalise)


def _with_rewards(game: ace.MarkovGame, change: Callable[[Any], Any]) -> ace.MarkovGame:
    return with_fields(game, layers=tuple(replace(x, reward=change(np.array(x.reward))) for x in game.layers))


@contextmanager
def _linked(k: int) -> Iterator[None]:
    """Of games of linked constraints also small boxes leave out what follows from others."""
    kept = spaces.DENSE_IF_BELOW, spaces.DENSE_OCCUPANCY
    if k >= PLAIN and k % 4 == 1:
        spaces.DENSE_IF_BELOW = spaces.DENSE_OCCUPANCY = 0
    try:
        yield
    finally:
        spaces.DENSE_IF_BELOW, spaces.DENSE_OCCUPANCY = kept


# -- what is to stay the same -------------------------------------------------------------------------------------


def digests(k: int) -> list[str]:
    """The digests of game k, by KINDS; where there is no answer, why, and no others."""
    with _linked(k), tempfile.TemporaryDirectory() as folder:
        game, concept, options = _drawn(k)
        try:
            solution = ace.solve(game, concept, **options)
        except (ace.NoEquilibrium, ace.Infeasible) as error:
            return [type(error).__name__, *[""] * (len(KINDS) - 1)]
        answers = hashlib.sha256(np.ascontiguousarray(solution.values).tobytes())
        for line in _lines(game, solution.policy):
            answers.update(line.encode())
        stored = _stored(solution, Path(folder))
        if isinstance(options["engine"], ace.LocalEngine):
            options["engine"] = replace(options["engine"], threads=2)
            assert _stored(ace.solve(game, concept, **options), Path(folder)) == stored, "two threads"
        found = ["".join(_certificates(k, game, solution)).encode(), _proof(solution, Path(folder)), _shield(game)]
        parts = [answers.hexdigest(), *(hashlib.sha256(x).hexdigest() for x in (stored, *found))]
    return [parts[0][:20], *(x[:12] for x in parts[1:])]


def _lines(game: ace.MarkovGame, policy: ace.Policy) -> Iterator[str]:
    """Distributions and values at every pair."""
    for t, state, spent in pairs(game, policy):
        played = [(str(a), p.hex()) for a, p in policy.distribution(t, state, spent).items()]
        yield f"{t} {state} {spent} {played} {[x.hex() for x in policy.values(t, state, spent).tolist()]}\n"


def _stored(solution: ace.Solution, folder: Path) -> bytes:
    solution.save(folder / "a.ace")
    return (folder / "a.ace").read_bytes()


def _proof(solution: ace.Solution, folder: Path) -> bytes:
    """The proof's bytes, or why there is none."""
    try:
        ace.prove(solution, folder / "a.proof")
    except ace.AceError as error:
        return str(error).encode()
    return (folder / "a.proof").read_bytes()


def _shield(game: ace.MarkovGame) -> bytes:
    """Which joint actions are safe, what each player may do alone, and what replaces the others."""
    shield = ace.Shield(game)
    numbers = shield.mask_of, shield.masks, shield.repairs, shield.first, *shield.turns, *shield.products
    return b"".join(str((x.dtype, x.shape)).encode() + x.tobytes() for x in map(np.ascontiguousarray, numbers))


def _certificates(k: int, game: ace.MarkovGame, solution: ace.Solution) -> Iterator[str]:
    """Every field and sentence, of the policy and of damaged ones, with one thread and with two."""
    rng, policy = np.random.default_rng([15, k]), solution.policy
    judged: list[Any] = [policy]
    places = list(pairs(game, policy))
    for _ in range(DAMAGED):
        t, state, spent = places[int(rng.integers(len(places)))]
        legal = list(game.legal(t, state))
        other, share = legal[int(rng.integers(len(legal)))], float(rng.choice([1.0, 0.25, 1e-6, 1e-300]))
        played = {a: p * (1 - share) for a, p in policy.distribution(t, state, spent).items() if share < 1}
        played[other] = played.get(other, 0.0) + share
        judged.append(Changed(policy, (t, state, tuple(map(oracle.exact, spent))), played))
    judged.append(_other_code(policy, rng))
    for each in judged:
        one, two = (ace.verify(game, each, solution.concept, engine=ace.LocalEngine(threads=n)) for n in (1, 2))
        shown = _shown(one)
        assert shown == _shown(two), "two threads"
        yield shown


def _other_code(policy: ace.Policy, rng: np.random.Generator) -> ace.Policy:
    """The policy with another pure joint action of the same state stored somewhere: its tables are read as they are."""
    layers, t = list(policy.layers), int(rng.integers(len(policy.layers)))
    layer = layers[t]
    pure = np.flatnonzero(layer.code > 0)
    if len(pure):
        code, at = np.array(layer.code), pure[int(rng.integers(len(pure)))]
        code[at] = 1 if code[at] > 1 else 2 if np.diff(layer.row_ptr).min() > 1 else 1
        layers[t] = replace(layer, code=code)
    return replace(policy, layers=tuple(layers))


def _shown(certificate: ace.Certificate) -> str:
    assert not certificate.exact  # `tests/proofs/test_exactly.py` is about the others
    values = (
        (f.name, getattr(certificate, f.name)) for f in fields(certificate) if f.name not in ("exact", "optimality")
    )
    exact = ((name, [repr(y) for y in x.ravel().tolist()] if isinstance(x, np.ndarray) else x) for name, x in values)
    return "".join(f"{name} {x}\n" for name, x in exact) + str(certificate)


# -- the test -----------------------------------------------------------------------------------------------------


@cache
def _known() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(DIGESTS.read_text())
    return found


def _assert_known(games: Iterable[int], found: Iterable[list[str]]) -> None:
    changed: dict[str, list[int]] = {}
    for k, by_kind in zip(games, found, strict=True):
        for kind, x in zip(KINDS, by_kind, strict=True):
            if x != _known()[kind][k]:
                changed.setdefault(kind, []).append(k)
    assert not changed, f"games have other digests than in {DIGESTS.name}: {changed}"


pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="made on this kind of processor")


@pytest.mark.parametrize("first", range(0, GAMES, BLOCK))
def test_answers_are_the_same_to_the_last_bit(first: int) -> None:
    games = range(first, first + BLOCK)
    _assert_known(games, map(digests, games))


@pytest.mark.parametrize("first", some(range(SHARES), of=SHARES))
def test_interpreted_answers_are_the_same_to_the_last_bit(first: int) -> None:
    """Verdicts on damaged policies are among them."""
    games = np.random.default_rng(37).permutation(GAMES)[first::SHARES].tolist()
    with running(compiled=False):
        _assert_known(games, map(digests, games))


PLAIN_NUMBA = """
import json, runpy, sys
from acegames.system import compiled, machine_code
machine_code.WHOLE = machine_code.LINKED = machine_code.UNCOUNTED = {}
compiled.LARGE = 0
digests = runpy.run_path(sys.argv[1])["digests"]
print(json.dumps([digests(k) for k in map(int, sys.argv[2:])]))
"""


@pytest.mark.slow
def test_numba_as_it_is_gives_the_same_bits(tmp_path: Path) -> None:
    """Without what `system.linking` changes in it, and with references counted."""
    games = range(1, GAMES, 29)
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_NUMBA, __file__, *map(str, games)],
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    _assert_known(games, json.loads(done.stdout))


if __name__ == "__main__":
    by_game = [digests(k) for k in range(GAMES)]
    DIGESTS.write_text(
        json.dumps(dict(zip(KINDS, map(list, zip(*by_game, strict=True)), strict=True)), indent=0) + "\n"
    )
