"""Is a policy safe, and is it stable? Answered from the game and the policy alone (spec 7).

    safe    no budget is broken on any history that the policy can realise, however small its probability;
    stable  for each player i and every subgame (t, s, c) in FS, the best feasible deviation W_i gains over the policy's own
            value V_i no more than a hundred-millionth of what is at stake there, and rounding (`tolerance`). FS are the
            subgames that some feasible policy reaches.

Both together certify a subgame-perfect anytime-constrained equilibrium. At every step a deviator under CCE commits to an action before
the recommendation is drawn, or follows it; under CE it may answer each recommendation with another action (`deviations`). For Nash the
policy must also be a product: the players draw independently in every subgame. Then what a player is told says nothing
about the others, so a deviation is one action b for all of its own, feasible against every joint action that the others may play: the
deviations of CCE, and with them the same recursion (a mixed deviation is no better than the best b it mixes, and feasible
only if all of them are). Nothing is shared with the solver but
the game itself: feasibility is counted in money spent (not left) and pair by pair (not by height maps), and
deviations are found by dynamic programming (not by linear programs), so a mistake there is not repeated here.

A policy that rounds costs (its `tracker.rounding` says how) is asked by what it counts, and judged by what is truly spent:

    safe    the largest true total, found by a forward maximum over what the policy counts (`rounded_walk`), exceeds no budget
            by more than the rounding allows: a cell per step where costs are rounded down, else nothing;
    stable  as above in the game with costs as counted (`counted`). Rounding down makes no deviation infeasible, so the gains
            found there bound the gains of every deviation that keeps the true budgets.

There are two ways to the same verdict. Small games take plain numpy passes over the graph of pairs (`feasible`,
`deviations`); large ones take compiled passes that recompute successors (`compiled`). Time is linear in the edges of
the feasible graph, plus one question to the policy per subgame, in bulk where it has a `lookup`: about a microsecond per
subgame of two players with three actions each. Memory is eight bytes per subgame and some hundred per subgame of the
largest time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CE, Concept, Nash
from acegames.model.game import MarkovGame, check_game
from acegames.numerics import VERIFY
from acegames.verifier.certificate import Certificate, limit_phrases
from acegames.verifier.compiled import FAULTS_SHOWN, evaluate_keys, feasible_keys
from acegames.verifier.counted import Counted
from acegames.verifier.deviations import Evaluated, evaluate
from acegames.verifier.feasible import feasible_stages
from acegames.verifier.packed import Packed
from acegames.verifier.reading import Reader
from acegames.verifier.rounded_walk import walk_rounded
from acegames.verifier.rounding import EXACT, read_rules, unsound
from acegames.verifier.tolerance import Gain, judged, safe_rows
from acegames.verifier.units import Units
from acegames.verifier.walk import Step, Walked, Witness, amounts, walk

__all__ = ["Certificate", "Step", "Witness", "verify"]

_PLAIN = 100_000
"""Joint actions of pairs up to which the plain passes are taken: a fraction of a second, with nothing to compile."""


def verify(game: MarkovGame, policy: Any, concept: Concept, *, tol: float | None = None) -> Certificate:
    """Check a policy against a game, independently of how the policy was found.

    Args:
        game: the game.
        policy: any object with `distribution(t, state, spent) -> {joint action: probability}`, in the user's
            labels and units. It must answer at every (t, state, spent) that some feasible play reaches. A `lookup` as
            in `acegames.Policy`, of the same class, is used and compared with `distribution` at some pairs. Where it has a
            `tracker.rounding` as in `acegames.CostTracker`, `spent` is what it counts by that.
        concept: `CE()`, `CCE()` or `Nash()`: which deviations count. Its objective plays no part.
        tol: the largest gain by a deviation that is accepted anywhere, in units of reward. By default a gain is accepted up to
            `numerics.VERIFY` times what is at stake for the player in that situation, the best total that safe play from
            there can bring less the worst that the policy itself can bring, and what rounding can have changed.

    Returns:
        A certificate; `print` it. A policy that is wrong in any way gives one with `ok` False, no exception.

    Raises:
        TypeError: `concept` is none of CE, CCE and Nash, or `policy` has no `distribution`.
        ValueError: `tol` is not a finite number of at least 0.
        InvalidOption: costs of the game are random, and the policy counts costs as they are.
        TooLarge: random costs fall into too many cells.
    """
    _check_arguments(policy, concept, tol)
    check_game(game)
    rules, nonsense = read_rules(game, policy)
    if nonsense:
        return _unjudged(game, concept, tol, nonsense)
    counted = None if all(rule is EXACT for rule in rules) else Counted.of(game, rules)
    seen = game if counted is None else counted.game
    units = Units(seen)
    reader = Reader(seen, policy, units, rounded=counted is not None, product=isinstance(concept, Nash))
    found, walked = _judge(seen, units, reader, counted, coarse=not isinstance(concept, CE))
    problems = _problems(game, policy, reader, walked, found, tol)
    if counted is not None:
        problems = (*unsound(game, policy, rules), *problems)
    return Certificate(
        ok=not problems,
        **_gains(found, len(game.players), tol),
        max_spent=walked.max_spent,
        values=found.values,
        witness=walked.witness,
        problems=problems,
        pairs=found.pairs,
        concept=concept,
        game_digest=game.digest,
        players=game.players,
        constraints=game.constraints,
        limits=limit_phrases(game.budgets),
        counting=tuple(rule.direction for rule in rules),
        allowance=np.zeros(len(rules)) if counted is None else amounts(counted.allowances(), len(rules)),
        excess=walked.excess,
    )


def _gains(found: Evaluated | None, n: int, tol: float | None) -> dict[str, Any]:
    """The fields of a certificate on gains; not a number where the policy is at fault."""
    largest = share = (Gain(np.nan, np.nan, np.nan, None),) * n
    off: NDArray[np.float64] = np.full(n, np.nan)
    if found is not None and found.largest:
        largest, share, off = found.largest, found.share, found.off
    return {
        "regret": np.array([x.gain for x in largest]),
        "where": tuple(x.place for x in largest),
        "share": np.array([x.share for x in share]),
        "share_where": tuple(x.place for x in share),
        "tol": np.array([x.accepted for x in largest]) if tol is None else np.full(n, float(tol)),
        "accepted_share": VERIFY if tol is None else None,
        "rounding": off,
    }


def _unjudged(game: MarkovGame, concept: Concept, tol: float | None, problems: list[str]) -> Certificate:
    """The certificate of a policy that does not say how it counts."""
    n, m = len(game.players), len(game.constraints)
    return Certificate(
        ok=False,
        **_gains(None, n, tol),
        max_spent=np.full(m, np.nan),
        values=np.full(n, np.nan),
        witness=None,
        problems=tuple(problems),
        pairs=0,
        concept=concept,
        game_digest=game.digest,
        players=game.players,
        constraints=game.constraints,
        limits=limit_phrases(game.budgets),
        counting=("unclear",) * m,
        allowance=np.full(m, np.nan),
        excess=np.full(m, np.nan),
    )


def _judge(
    game: MarkovGame, units: Units, reader: Reader, counted: Counted | None, *, coarse: bool
) -> tuple[Evaluated, Walked]:
    """Find what the policy is worth and what deviations gain, then what the policy realises."""
    packed = Packed.of(game, units)
    stages = feasible_stages(game, units, math.inf if packed is None else _PLAIN)
    walked = None
    if stages is not None:
        numbers = judged(game, safe_rows(stages))
        found = evaluate(numbers, stages, reader, coarse=coarse)
    else:
        assert packed is not None
        keys, rows = feasible_keys(packed)
        numbers = judged(game, rows)
        found, walked = evaluate_keys(packed, numbers, keys, reader, coarse=coarse)
    with np.errstate(over="ignore", invalid="ignore"):
        found = replace(found, values=found.values + numbers.base.sum(axis=0))
    if counted is not None:
        walked = walk_rounded(counted, reader, units)
    return found, walked or walk(game, reader, units)


def _check_arguments(policy: Any, concept: Any, tol: Any) -> None:
    if not isinstance(concept, Concept):
        hint = "; write it with brackets" if isinstance(concept, type) and issubclass(concept, Concept) else ""
        raise TypeError(f"concept: got {concept!r}, must be CE(), CCE() or Nash(){hint}")
    if not callable(getattr(policy, "distribution", None)):
        raise TypeError(f"policy: {type(policy).__name__} has no method distribution(t, state, spent)")
    if tol is not None and not (isinstance(tol, (int, float, np.number)) and 0 <= float(tol) < math.inf):
        raise ValueError(f"tol: got {tol!r}, must be a finite number of at least 0")


def _problems(
    game: MarkovGame, policy: Any, reader: Reader, walked: Walked, found: Evaluated, tol: float | None
) -> tuple[str, ...]:
    """Return a sentence for each reason not to certify the policy."""
    problems: list[str] = []
    digest = getattr(policy, "game_digest", None)
    if digest is not None and digest != game.digest:
        problems.append(
            f"The policy was computed for another game (digest {str(digest)[:12]}, not {game.digest[:12]})."
        )
    if reader.disagreement is not None:
        problems.append(reader.disagreement)
    if reader.correlation is not None:
        problems.append(reader.correlation.sentence())
    if not found.pairs:
        counting = ", as this policy counts costs" if reader.rounded else ""
        problems.append(f"No policy keeps every budget of this game with probability one{counting}.")
    if walked.witness is not None:
        problems.append(walked.witness.reason)
    problems += found.faults[:FAULTS_SHOWN]
    if found.n_faults > FAULTS_SHOWN:
        problems.append(f"The policy is at fault in {found.n_faults - FAULTS_SHOWN:,} more situations.")
    for player, largest, share in zip(game.players, found.largest, found.share, strict=False):
        worst = _refused(largest, share, tol)
        if worst is not None:
            problems.append(
                _gain_sentence(player, worst, worst.accepted if tol is None else tol, rounded=reader.rounded)
            )
    if found.pairs and not found.n_faults and not np.isfinite(found.values).all():
        problems.append("The values of the policy overflow; scale the rewards down.")
    return tuple(dict.fromkeys(problems))


def _refused(largest: Gain, share: Gain, tol: float | None) -> Gain | None:
    """The gain that is too much, if there is one: the largest, or else the largest as a share of its stake."""
    if tol is not None:
        return None if largest.gain <= tol else largest
    if not largest.share <= VERIFY:
        return largest
    return None if share.share <= VERIFY else share


def _gain_sentence(player: Any, found: Gain, accepted: float, *, rounded: bool) -> str:
    t, state, spent = found.place or (None, None, None)
    how = "deviation that keeps the budgets as the policy counts costs," if rounded else "safe deviation"
    return (
        f"Player {player!r} gains {found.gain:.6g} by a {how} at t={t}, state {state!r}, "
        f"{'counted' if rounded else 'spent'} {spent!r}; {found.stake:.6g} is at stake there, accepted is {accepted:.3g}."
    )
