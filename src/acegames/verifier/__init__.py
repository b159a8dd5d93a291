"""Is a policy safe, and is it stable? Answered from the game and the policy alone (spec 7).

    safe    no budget is broken on any history of the policy, however small its probability;
    stable  for each player i and every subgame (t, s, c) in FS, the best feasible deviation W_i
            gains over the policy's own value V_i no more than a hundred-millionth of what is at
            stake there, and rounding. FS are the subgames that some feasible policy reaches.

Both together certify a subgame-perfect anytime-constrained equilibrium. The verifier shares only
the game model with the solver (and the record of the concept): feasibility is counted in money
spent (not left) and pair by pair (not by height maps), and deviations are found by dynamic
programming (not by linear programs), so a mistake there is not repeated here.

What is checked, in this order, and in which file:

    counting         how the policy counts costs, the game with costs as counted, and the largest
                     true cost of each outcome
    pair_keys        cumulative costs as exact integers; subgames as 64-bit numbers
    subgames         FS, and the joint actions FA that are safe in each subgame
    policy_reader    the policy's answers, checked
    judgement        V, W and the gains, from the last step back, in blocks on several threads
    tolerance        what is at stake in a subgame, what rounding can have changed, what is accepted
    walk             what the policy can truly spend, and a history that breaks a rule
    certificate      the verdict, for programs and in words
    pair_kernels     the compiled loops of all of these
    on_cluster       judging in blocks, by tasks that run elsewhere
    on_gpu           judging on a GPU, a thread for each subgame
    basics           lists end to end, records, thresholds and threads, which all of these use

`acegames.proofs` writes the same as a file that a stranger can check.

Time is linear in the edges of the feasible graph, plus one question to the policy per subgame: half
a microsecond of one core per subgame of two players with three actions each. Memory is eight bytes
per subgame, and some hundred per subgame of the largest time, up to a thousand where every eighth
key is a subgame.

For Nash the policy must be a product: the players draw independently in every subgame. Then what a
player is told says nothing about the others, so a deviation is one action b for all of its own,
feasible against every joint action that the others may play: the deviations of CCE, and with them
the same recursion (a mixed deviation is no better than the best b it mixes, and feasible only if
all of them are).

A policy that rounds costs is queried with the sum of the rounded costs, and its safety is judged by
the true costs: no budget may be exceeded by more than the rounding allows, a cell per step where
costs are rounded down, else nothing. It must be stable in the game with rounded costs. Rounding
down makes no deviation infeasible, so the gains found there bound the gains of every deviation that
keeps the true budgets.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from acegames.concepts import CCE, Concept, check_concept
from acegames.errors import InvalidOption
from acegames.model.checks import check_flag
from acegames.model.game import MarkovGame, check_game
from acegames.model.numbers import plain
from acegames.model.user_functions import OF_SOLVING, TOLERANCE, check_engine, policy_of, public
from acegames.model.words import limit_phrase
from acegames.numerics import VERIFY
from acegames.system.compiled import running
from acegames.system.progress import OnProgress
from acegames.system.tasks import Tasks
from acegames.verifier.basics import BlockThreads
from acegames.verifier.certificate import Certificate
from acegames.verifier.counting import Counted, read_rules, unsound
from acegames.verifier.judgement import FAULTS_SHOWN, Evaluated, Judge, evaluate
from acegames.verifier.optimality import bound_of, check_best, optimality_of
from acegames.verifier.pair_keys import ExactUnits
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames
from acegames.verifier.tolerance import Gain
from acegames.verifier.walk import Step, Walked, Witness, follow, plain_row
from acegames.verifier.with_memory import evaluate_with_memory, is_with_memory

NOT_ASKED: Any = object()
"""The default of `best`, for which None is an objective."""
__all__ = ["Certificate", "Step", "Witness", "verify"]


@runtime_checkable
class JudgesByTasks(Protocol):
    """An engine whose tasks judge blocks of situations, maybe on many machines."""

    block: int | None  # situations of a task, about; None to let the verifier choose

    def tasks(self) -> Tasks:
        """Return where tasks run."""

    def check_installed(self) -> None:
        """Raise MissingExtra where a package is missing, before any work."""


@runtime_checkable
class JudgesOnCard(Protocol):
    """An engine with a GPU, and threads for what the card does not do."""

    memory: int | None  # bytes of the card that may be used; None for what is free
    smallest: int  # keys of all times up to which the processors are as fast
    threads: int | None  # of this process; None for all processors

    def open_card(self) -> Any:
        """Return the card (`system.cuda_card.Card`), made the one that this thread talks to."""


@runtime_checkable
class JudgesOnThreads(Protocol):
    """An engine that says how many threads to use, None for all processors, and whether kernels are
    compiled, None for whichever is sooner.
    """

    threads: int | None
    compiled: bool | None


@public(
    "verify",
    progress="checking",
    memory=(
        "verifying the policy",
        "fewer threads (engine=LocalEngine(threads=1)) take less, a cluster (engine=RayEngine()) has more",
    ),
    instead=OF_SOLVING | TOLERANCE,
)
def verify(
    game: MarkovGame,
    policy: Any,
    concept: Concept | None = None,
    *,
    tol: float | None = None,
    exact: bool = False,
    best: Any = NOT_ASKED,
    engine: Any = None,
    progress: OnProgress | bool | None = None,
) -> Certificate:
    """Check a policy against a game, independently of how the policy was found.

    It shares only the game model with the solver.

    Args:
        game: the game.
        policy: a solution, or any object with `distribution(t, state, spent) -> {joint action:
            probability}`, in the user's labels and units. It must answer in every situation (t,
            state, spent) that is reachable under feasible play. `rows` and `joint_actions` as in
            `acegames.Policy`, of the same class, are used, and compared with `distribution` in some
            situations. If the policy has a `tracker.rounding` as in `acegames.CostTracker`, `spent`
            is the sum of the costs that are rounded by it.
        concept: `CCE()`, `CE()` or `Nash()`: which deviations are checked; by default the policy's
            own `concept`, and `CCE()` where it has none. The certificate says which. Its objective
            plays no part.
        tol: the largest gain by a deviation that is accepted anywhere, in units of reward. By
            default a gain is accepted up to `numerics.VERIFY` times what is at stake for the player
            in that situation (the best total that safe play from there can bring, less the worst
            that the policy itself can bring), plus what floating-point errors can explain.
        exact: True for values and gains in rational numbers, found by the code of the standalone
            checker in this process, for CE, CCE and Nash: a minute or two for 20,000 situations,
            of which there may be 250,000. The policy is asked twice. A gain is accepted as ever,
            because policies are found in floats, in which 0.1 + 0.2 and 0.3 tie; with `tol=0` only
            if there is none.
        best: an objective, as in `CE`: the certificate then says how much better another
            equilibrium with this floor can be at most, from half-planes with multipliers that the
            policy brings (that of `Payoffs.policy` does), for one and two players. No program is
            solved for it.
        engine: a `LocalEngine(threads=..., compiled=...)` says how many threads to use, by default
            all processors, and with `compiled=False` that the verifier's kernels are interpreted,
            for those who trust no compiler; nothing else of it is used. A `RayEngine` runs on a
            cluster if the game is large, a `GPUEngine` on a GPU. The certificate does not depend on
            it. A policy is called from several threads, and sent to the processes of a cluster, if
            one class has its `distribution`, `rows` and `joint_actions` and says `thread_safe =
            True`, and it has `states` and `actions` equal to those of the game and `tracker.units`,
            the units in which `rows` is given totals; each process has its own copy: a live object
            goes through Ray's own serialization between your processes, a policy that was read from
            a file as the name of that file. Any other policy is asked in this process, and the
            cluster is not used; a warning in the log says what is missing. A policy with memory is
            judged by one thread of this process.
        progress: True for a bar, or a function that is called with a `Progress` after each time
            that is checked, the last time first.

    Returns: A certificate; `print` it. A policy that is wrong in any way gives one with `ok` False,
        no exception.

    Raises:
        InvalidOption: `concept` is no concept; `policy` has no `distribution`; `tol` is not a
            finite number of at least 0; `engine` is none of these; `progress` is no function of one
            argument; costs of the game are drawn from distributions, and the policy does not round
            them, or `exact` is True; or the policy cannot be sent to a cluster.
        TooLarge: random costs fall into too many cells, there are too many situations for `exact`,
            or there is not enough memory.
        ClusterError: the cluster cannot be used, or lost more than it could make up for.
        MissingExtra: `engine` is a `RayEngine`, and Ray is not installed; or a `GPUEngine`, and a
            package, the driver or a card is missing.
    """
    policy, exact = policy_of(policy), check_flag("exact", exact)
    concept = read_arguments(policy, concept, tol, engine)
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    check_game(game)
    with_memory = is_with_memory(policy)
    if with_memory:
        if concept.product:
            raise InvalidOption(f"concept: got {concept!r:.60}, but a policy with memory draws joint actions together")
        if exact:
            raise InvalidOption("exact: a policy with memory is verified in floats only")
    if best is not NOT_ASKED:
        check_best(policy, concept, best, game.players)
    rules, nonsense = read_rules(game, policy)
    if nonsense:
        n, m = (np.full(len(labels), np.nan) for labels in (game.players, game.constraints))
        nothing = Evaluated(pairs=0, values=n, gains=None, faults=[], n_faults=0, worst=None)
        return _certificate(game, concept, tol, False, nonsense, ["unclear"] * len(m), m, nothing, Walked(m, m, None))
    counted = Counted.of(game, rules)
    reader = Reader(counted.game, policy, ExactUnits(counted.game), rounded=not counted.exact, product=concept.product)
    optimality, unproved = None, ""
    with running(engine.compiled if isinstance(engine, JudgesOnThreads) else None):
        if with_memory:
            subgames = Subgames.of(counted.game, reader.units)
            evaluated = evaluate_with_memory(subgames, reader, concept, progress)
            if best is not NOT_ASKED and np.isfinite(evaluated.values).all():
                bound, unproved = bound_of(subgames, reader, concept, best)
                optimality = optimality_of(concept, best, game.players, evaluated.values, bound)
        else:
            evaluated = _judge(engine, reader, concept, progress)
        if with_memory and evaluated.worst is None:
            unknown = np.full(len(game.constraints), np.nan)
            walked = Walked(unknown, unknown, None)
        elif evaluated.worst is None or not counted.exact:
            walked = follow(counted, reader, reader.units)
        else:
            walked = Walked(plain_row(reader.units.amounts(evaluated.worst)), np.zeros(len(evaluated.worst)), None)
        if exact and evaluated.gains is not None:
            evaluated = _exactly(game, policy, concept, reader, evaluated, progress)
    exact = exact and evaluated.gains is not None
    problems = [] if counted.exact else unsound(game, policy, rules)
    problems += [unproved] * bool(unproved)
    problems += _problems(game, policy, reader, walked, evaluated, tol)
    counting, allowance = [rule.direction for rule in rules], plain_row(counted.allowances())
    certificate = _certificate(game, concept, tol, exact, problems, counting, allowance, evaluated, walked)
    return certificate if optimality is None else replace(certificate, optimality=optimality)


def _certificate(
    game: MarkovGame,
    concept: Concept,
    tol: float | None,
    exact: bool,
    problems: list[str],
    counting: list[str],
    allowance: Any,
    evaluated: Evaluated,
    walked: Walked,
) -> Certificate:
    """Put together what was found; not a number where nothing is known."""
    n = len(game.players)
    largest = share = [Gain(np.nan, np.nan, np.nan, None)] * n
    if evaluated.gains is not None:
        largest, share = evaluated.gains.largest, evaluated.gains.share
    return Certificate(
        ok=not problems,
        regret=np.array([x.gain for x in largest]),
        where=tuple(x.place for x in largest),
        share=np.array([x.share for x in share]),
        share_where=tuple(x.place for x in share),
        max_spent=walked.max_spent,
        values=evaluated.values,
        witness=walked.witness,
        problems=tuple(dict.fromkeys(problems)),
        tol=np.array([x.accepted for x in largest]) if tol is None else np.full(n, float(tol)),
        accepted_share=VERIFY if tol is None else None,
        rounding=np.full(n, np.nan) if evaluated.gains is None else evaluated.gains.off,
        pairs=evaluated.pairs,
        concept=concept,
        game_digest=game.digest,
        players=game.players,
        constraints=game.constraints,
        limits=tuple(map(limit_phrase, zip(*game.budgets, strict=True), game.reservoirs)),
        counting=tuple(counting),
        allowance=allowance,
        excess=walked.excess,
        capacities=tuple(None if stored is None else plain(stored.capacity) for stored in game.reservoirs),
        exact=exact,
    )


def _exactly(*judged: Any) -> Evaluated:
    """Return what was found, in exact arithmetic."""
    from acegames.proofs.exactly import evaluate_exactly

    return evaluate_exactly(*judged)


def _judge(engine: Any, reader: Reader, concept: Concept, progress: OnProgress | None) -> Evaluated:
    """Judge where the engine says, in this process where that cannot be done there."""
    evaluated, card = None, engine.open_card() if isinstance(engine, JudgesOnCard) else None
    with BlockThreads(engine.threads if isinstance(engine, JudgesOnThreads | JudgesOnCard) else None) as threads:
        subgames = Subgames.of(reader.game, reader.units, threads)
        judge = Judge(subgames.packed, reader, concept)
        if card is not None:
            from acegames.verifier.on_gpu import evaluate_on_gpu

            evaluated = evaluate_on_gpu(engine, card, subgames, judge, threads, progress)
        elif isinstance(engine, JudgesByTasks):
            from acegames.verifier.on_cluster import evaluate_on_cluster

            evaluated = evaluate_on_cluster(engine, subgames, reader, concept, progress)
        return evaluate(subgames, judge, threads, progress) if evaluated is None else evaluated


def read_arguments(policy: Any, concept: Any, tol: Any, engine: Any) -> Concept:
    """Return the concept to judge by; refuse options that break a rule."""
    if engine is not None:
        fits = isinstance(engine, JudgesByTasks | JudgesOnCard | JudgesOnThreads)
        check_engine(engine, fits=fits, what="an engine that verifies,")
    if isinstance(engine, JudgesByTasks):
        engine.check_installed()
    if not callable(getattr(policy, "distribution", None)):
        raise InvalidOption(f"policy: {type(policy).__name__} has no method distribution(t, state, spent)")
    if tol is not None and not (isinstance(tol, (int, float, np.number)) and 0 <= float(tol) < math.inf):
        raise InvalidOption(f"tol: got {tol!r}, must be a finite number of at least 0")
    own = getattr(policy, "concept", None) if concept is None else concept
    return CCE() if own is None else check_concept(own)


def _problems(
    game: MarkovGame, policy: Any, reader: Reader, walked: Walked, evaluated: Evaluated, tol: float | None
) -> list[str]:
    """Return a sentence for each reason not to certify the policy."""
    problems: list[str] = []
    digest = getattr(policy, "game_digest", None)
    if digest is not None and digest != game.digest:
        problems.append(
            f"The policy was computed for another game (digest {str(digest)[:12]}, not {game.digest[:12]})."
        )
    problems += [reader.noted[what][1] for what in ("rows", "product") if what in reader.noted]
    if not evaluated.pairs:
        counting = ", with costs rounded as the policy rounds them" if reader.rounded else ""
        problems.append(f"No policy keeps every budget of this game with probability one{counting}.")
    if walked.witness is not None:
        problems.append(walked.witness.reason)
    problems += evaluated.faults
    if evaluated.n_faults > FAULTS_SHOWN:
        more = evaluated.n_faults - FAULTS_SHOWN
        problems.append(f"The policy is faulty in {more:,} more situation{'s' * (more > 1)}.")
    gains = evaluated.gains
    for player, largest, share in zip(game.players, gains.largest, gains.share, strict=True) if gains else []:
        worst = _refused(largest, share, tol)
        if worst is not None:
            accepted = worst.accepted if tol is None else tol
            problems.append(_gain_sentence(player, worst, accepted, rounded=reader.rounded))
    if evaluated.pairs and not evaluated.n_faults and not np.isfinite(evaluated.values).all():
        problems.append("The values of the policy overflow; scale the rewards down.")
    return problems


def _refused(largest: Gain, share: Gain, tol: float | None) -> Gain | None:
    """Return the gain that is too much, if any: the largest, or the largest share of a stake."""
    if tol is not None:
        return None if largest.gain <= tol else largest
    return next((gain for gain in (largest, share) if not gain.share <= VERIFY), None)


def _gain_sentence(player: Any, gain: Gain, accepted: float, *, rounded: bool) -> str:
    t, state, spent = gain.place or (None, None, None)
    how = "deviation that keeps the budgets in the policy's rounded costs," if rounded else "safe deviation"
    return (
        f"Player {player!r} gains {gain.gain:.6g} by a {how} at t={t}, state {state!r}, "
        f"spent {spent!r}{' in rounded costs' * rounded}; "
        f"what is at stake there is {gain.stake:.6g}, and a gain of up to {accepted:.3g} is accepted."
    )
