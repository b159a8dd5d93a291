"""Proofs: a solution in a file that a stranger can check, with `checker/ace_check.py` and numpy.

    line 1   acegames-proof 1                 the kind of file and its version
    line 2   SHA-256 of every byte that follows, so that no byte can change unnoticed
    line 3   JSON: the game but for its arrays (its digest is taken of this), the concept, what each
             cost counts as, the claims, and the arrays [name, type, *shape] in their order
    then     the arrays, little-endian, one after another

This is simpler than the container of other files, so that the checker's own reader stays short.

The arrays are those of the game's layers, and `policy.prob`: for each situation (t, state, spent)
reachable under feasible play, in this order, one probability for each joint action of the state.
The checker finds these situations itself.

Whoever changes a proof and its digest makes another claim about another game or policy, and the
checker judges that. So the checker prints the game's digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from shlex import quote
from typing import IO, Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Floats, Ints
from acegames.model.game import STATED_TYPES, MarkovGame
from acegames.model.numbers import exact, text
from acegames.model.random_costs import RandomCost
from acegames.model.user_functions import TOLERANCE, public
from acegames.solving.pipeline import Solution
from acegames.system.atomic import check_place, writing
from acegames.system.compiled import running
from acegames.system.container import little_bytes
from acegames.system.display import Shown
from acegames.system.npz import Arrays, array_types
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.verifier import Certificate, read_arguments, verify
from acegames.verifier.basics import BlockThreads, offsets, owners
from acegames.verifier.counting import Counted, CountingRule, read_rules
from acegames.verifier.pair_keys import ExactUnits
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames

__all__ = ["Proof", "prove"]

MOST_ENTRIES = 250_000_000
"""Joint actions of situations in a proof: a file of 2 GB, and an hour to check."""

NOT_CERTIFIED = "solution: `verify` does not certify it, so there is nothing to prove."

_MARGIN = 8.0
"""Claims leave room for this many times the rounding that the verifier allows for: the checker
moves its bounds outward with every mean, also where nothing is added up."""


@dataclass(frozen=True, eq=False, repr=False)
class Proof(Shown):
    """The proof that was written: where it is, which game it is about, and what it claims."""

    path: Path
    size: int  # bytes
    game_digest: str
    situations: int  # (t, state, spent) that are reachable under feasible play
    gain: Floats  # (N,) no player gains more by a safe deviation, in any of them
    values: Floats  # (N, 2) bounds on each player's expected total reward
    spent: tuple[str, ...]  # M exact numbers as text: the largest true cumulative costs
    # M: the most by which a budget is truly exceeded; 0 unless the policy rounds costs down
    excess: tuple[str, ...]
    rounded: bool  # whether the policy rounds costs, which the checker must be told to accept

    def __str__(self) -> str:
        return self.summary(checker_file())

    def summary(self, checker: Path) -> str:
        """Return what was written, what it shows, and how this copy of the checker is run."""
        return (
            f"The proof was written to {self.path} ({self.size:,} bytes). It shows that no player gains more than about "
            f"{float(self.gain.max()):.3g} by a safe deviation, "
            f"in any of the {self.situations:,} situations reachable under feasible play.\n"
            f"It is about the game with the digest {self.game_digest}.\n"
            f"To check it, run: python {quote(str(checker))} {quote(str(self.path))} --game {self.game_digest}"
            + (" --rounded" if self.rounded else "")
        )


def checker_file() -> Path:
    """Return the checker, one Python file: beside this module in the wheel, else in the source
    tree.
    """
    installed = Path(__file__).with_name("ace_check.py")
    return installed if installed.exists() else Path(__file__).parents[3] / "checker" / "ace_check.py"


@public(
    "prove",
    progress="checking",
    memory=("the proof", "it lists every situation, of which there are fewer with coarser costs (epsilon=)"),
    instead=TOLERANCE,
)
def prove(
    solution: Solution,
    path: str | PathLike[str],
    *,
    tol: float | None = None,
    progress: OnProgress | bool | None = None,
) -> Proof:
    """Write a proof of a solution, which `python checker/ace_check.py PROOF` checks on its own.

    The solution is verified first, once it is clear that a proof of this size can be written. The
    claims are about the game with its true costs, also if the policy rounds them.

    Args:
        solution: what `solve` found, or `Solution.load` read.
        path: where to write the proof.
        tol: the largest gain by a deviation that is accepted anywhere, as in `verify`. The checker
            has a limit of its own.
        progress: True for a bar, or a function that is called with a `Progress` after each time
            that is checked, and then written; its `step` says which.

    Raises:
        InvalidOption: costs of the game are drawn from distributions, or the solution does not pass
            `verify`; or an option breaks its rule.
        TooLarge: there are too many situations to be listed, or there is not enough memory.
        OSError: no file can be written at `path`.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    if not isinstance(solution, Solution):
        raise InvalidOption(
            f"solution: got {type(solution).__name__}, must be what solve(...) or Solution.load(...) gives"
        )
    game = solution.game
    _check_costs(game)
    read_arguments(solution.policy, solution.concept, tol, None)
    check_place(path)
    listed = Situations.of(game, solution.policy)
    if listed.entries > MOST_ENTRIES:
        raise TooLarge(
            f"a proof lists every situation, and holds at most {MOST_ENTRIES:,} joint actions of situations; there are {listed.entries:,}"
        )
    certificate = verify(game, solution.policy, solution.concept, tol=tol, progress=progress)
    if not certificate.ok:
        raise InvalidOption(f"{NOT_CERTIFIED} {certificate.problems[0]}")
    header, claims = header_of(game, solution.concept, listed.rules), _claims(certificate)
    with writing(path) as file:
        size = _write(file, {"name": game.name, **header, "claims": claims}, listed, progress)
    return Proof(
        path=Path(fspath(path)),
        size=size,
        game_digest=game.digest,
        situations=certificate.pairs,
        gain=np.array(claims["gain"]),
        values=np.array(claims["values"]),
        spent=tuple(claims["spent"]),
        excess=tuple(claims["excess"]),
        rounded=header["counted"] != header["game"]["cost_values"],
    )


def _check_costs(game: MarkovGame) -> None:
    for label, values in zip(game.constraints, game.cost_values, strict=True):
        if any(isinstance(cost, RandomCost) for cost in values):
            raise InvalidOption(
                f"solution: costs of {label!r} are drawn from a distribution, which a proof cannot hold. A proof about the game with "
                "rounded costs is possible: rounded = round_costs(game, epsilon).game, then prove(solve(rounded), path)"
            )


def header_of(game: MarkovGame, concept: Concept, rules: tuple[CountingRule, ...]) -> dict[str, Any]:
    """Return the header but for the name, the claims and the arrays."""
    counted = [
        [text(rule.counted(exact(cost))) for cost in values]
        for rule, values in zip(rules, game.cost_values, strict=True)
    ]
    return {"concept": type(concept).__name__, "game": game.content(), "counted": counted}


class Situations(NamedTuple):
    """The situations that a proof lists."""

    game: MarkovGame
    policy: Any
    rules: tuple[CountingRule, ...]
    counted: Counted
    units: ExactUnits
    subgames: Subgames
    entries: int  # joint actions in all of them

    @staticmethod
    def of(game: MarkovGame, policy: Any) -> Situations:
        """Find the situations."""
        rules, nonsense = read_rules(game, policy)
        if nonsense:
            raise InvalidOption(f"{NOT_CERTIFIED} {nonsense[0]}")
        counted = Counted.of(game, rules)
        units = ExactUnits(counted.game)
        with running(compiled=None), BlockThreads() as threads:
            subgames = Subgames.of(counted.game, units, threads)
        times = range(len(subgames.keys) - 1)
        entries = sum(int(np.diff(game.layer(t).row_ptr)[subgames.pairs(t)[0]].sum()) for t in times)
        return Situations(game, policy, rules, counted, units, subgames, entries)

    def arrays(self) -> Arrays:
        """Return the arrays of the game."""
        return {
            f"{k}.{field}": getattr(layer, field).astype(dtype, copy=False)
            for k, layer in enumerate(self.game.layers)
            for field, dtype in STATED_TYPES.items()
        }

    def probabilities(self, progress: OnProgress | None) -> Iterator[Floats]:
        """Yield the probabilities of all joint actions, one time after another."""
        game, keys = self.game, self.subgames.keys
        reader = Reader(self.counted.game, self.policy, self.units, rounded=not self.counted.exact)
        reporter = ProgressReporter(progress, "writing the proof", game.horizon, sum(map(len, keys)))
        for t in range(game.horizon):
            yield _probabilities(game, t, *self.subgames.pairs(t), reader)
            reporter.layer(len(keys[t]))


def _probabilities(game: MarkovGame, t: int, state: Ints, spent: Ints, reader: Reader) -> Floats:
    """Return probabilities of joint actions, situation by situation of a time, in order."""
    order = np.lexsort((*spent.T[::-1], state))
    state = state[order]
    answers, row_ptr = reader.read(t, state, spent[order], reader.drawn(t, len(state))), game.layer(t).row_ptr
    first, pair = offsets(np.diff(row_ptr)[state]), owners(answers.ptr)
    prob = np.zeros(int(first[-1]))
    prob[first[pair] + answers.row - row_ptr[state[pair]]] = answers.prob
    return prob


def _claims(certificate: Certificate) -> dict[str, Any]:
    """Return what the checker is to confirm. Its bounds are wider than those of the verifier."""
    float64 = np.finfo(np.float64)
    off = _MARGIN * certificate.rounding + float64.eps * np.abs(certificate.values) + float64.tiny
    gain = certificate.regret + off
    return {
        "spent": [text(exact(x)) for x in certificate.max_spent.tolist()],
        "excess": [text(exact(x)) for x in certificate.excess.tolist()],
        "values": [[float(v - e), float(v + g)] for v, e, g in zip(certificate.values, off, gain, strict=True)],
        "gain": gain.tolist(),
    }


def _write(file: IO[bytes], header: dict[str, Any], listed: Situations, progress: OnProgress | None) -> int:
    """Write a proof whose probabilities need not all be in memory; return its size."""
    first, digest = b"acegames-proof 1\n", hashlib.sha256()
    arrays = listed.arrays()
    every = [*array_types(arrays), ["policy.prob", "<f8", listed.entries]]
    line = json.dumps({**header, "arrays": every}, allow_nan=False).encode() + b"\n"
    file.write(first + bytes(2 * digest.digest_size) + b"\n")  # the digest is known in the end
    parts: Iterator[Any] = chain([line], map(little_bytes, chain(arrays.values(), listed.probabilities(progress))))
    for part in parts:
        digest.update(part)
        file.write(part)
    size = file.tell()
    file.seek(len(first))
    file.write(digest.hexdigest().encode())
    return size
