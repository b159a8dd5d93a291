"""What N samples say about outcomes that they did not show (spec 8).

An outcome of probability p is missed by N independent samples with probability (1-p)^N. So after N
samples that did not show it, every

    p >= 1 - (1 - confidence)^(1/N)

is ruled out at that confidence. This is a statement about one given outcome.

The policy of an estimated game needs more: a bound for the set U of all outcomes that no seen
outcome *covers* (same next state, and a cost at least as large in every constraint). U is chosen by
the samples themselves, so (1 - Pr U)^N says nothing about it: of a thousand outcomes of probability
1/1000 nearly all are missing after N = 30. But U is determined by few samples, one of each of the k
largest outcomes seen, and W = n_1 ... n_k choices of k samples determine it alike, n_i being how
often the i-th was seen. Whichever k samples are looked at first, the other N - k all avoid the set
which these determine with probability (1 - its probability)^(N-k). Sum this over the C(N,k)
choices: on the event that k samples determine U, W / (1 - Pr U)^(N-k) has an expectation of at most
C(N,k). With the weight 2^-k for each k = 1, 2, ... and Markov's inequality, with probability 1 - d
over the samples, whatever the game,

    Pr U  <  1 - (d 2^-k W / C(N,k))^(1/(N-k)).

Both hold for independent samples whose number did not depend on what these samples showed.

The second half is what the data says about the pairs that one policy can play.

As long as what happens is *covered* by an outcome of the estimated game at the same pair (same next
state, and a cost at least as large in every constraint), every budget holds and the policy knows a
safe action (the proof is in `safe_policy`). At the last step the next state does not matter. Let
q_t bound the probability of what is not covered at any pair that can be played at t, for all pairs
at once with probability 1 - d over the samples (see `confidence`), and q that of a first state
never seen. Then an episode breaks a budget, or comes to where no safe action is known, with
probability at most 1 - (1-q)(1-q_0)...(1-q_{H-1}).

The user's bounds leave less to miss. Where the worst costs are held possible, only next states can
be unforeseen; where the next states are listed too, nothing can, and q_t is zero.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acegames.learn.env_protocol import END
from acegames.learn.known import Cost, Place, check_share, dominated
from acegames.learn.safe_policy import SafePolicy
from acegames.model.checks import check_count
from acegames.model.game import JointAction, Label, place
from acegames.system.display import Shown

if TYPE_CHECKING:
    from acegames.learn.empirical import Empirical, PossibleOutcomes


def ruled_out(samples: int, confidence: float = 0.95, *, among: int = 1) -> float:
    """Return the smallest probability that samples rule out for an outcome never seen.

    Without samples it is 1.

    Args:
        samples: number of samples.
        confidence: of the statement.
        among: k makes the statement hold for k state-action pairs at once (a union bound).
    """
    rest = _log_rest(confidence, among)
    return 1.0 if samples < 1 else -math.expm1(rest / samples)


def uncovered(largest: Sequence[int], samples: int, confidence: float = 0.95, *, among: int = 1) -> float:
    """Return a bound on Pr U; `largest` are n_1 ... n_k, counts of the k largest outcomes seen."""
    rest, k = _log_rest(confidence, among), len(largest)
    if samples <= k:
        return 1.0
    choices = math.log(math.comb(samples, k)) - sum(map(math.log, largest))
    return -math.expm1((rest - k * math.log(2) - choices) / (samples - k))


def samples_needed(probability: float, confidence: float = 0.95, *, among: int = 1) -> int:
    """Return the fewest samples that rule out an unseen outcome of this probability.

    Args:
        probability: of the outcome.
        confidence: of the statement.
        among: as in `ruled_out`.
    """
    rest = _log_rest(confidence, among)
    check_share("probability", probability)
    count = max(1, math.ceil(rest / math.log1p(-probability)))
    while ruled_out(count, confidence, among=among) > probability:  # the quotient of two logarithms was rounded
        count += 1
    return count


def _log_rest(confidence: float, among: int) -> float:
    """Return the logarithm of the part of 1 - confidence that one of `among` pairs has."""
    check_share("confidence", confidence)
    return math.log((1 - confidence) / check_count("among", among))


# -- what the data says about a policy


@dataclass(frozen=True)
class PlayedPair:
    """One joint action that the policy may play."""

    t: int
    state: Label
    action: JointAction
    samples: int
    ruled_out: float  # an outcome of this probability or more would have been seen, at this pair alone
    excess: float  # bound on the probability of what the policy does not allow for, for all pairs at once


@dataclass(frozen=True, repr=False)
class PolicySupport(Shown):
    """What the data says about a policy. `print` it to read it in words."""

    pairs: tuple[PlayedPair, ...]
    # Bound on the probability that an episode breaks a budget or meets no known safe action; the
    # confidence with which it holds, over the samples; whether it rests on the user's bounds.
    violation: float
    confidence: float
    assumed: bool

    @property
    def weakest(self) -> PlayedPair:
        """The joint action with the fewest samples."""
        return min(self.pairs, key=lambda p: p.samples)

    def __str__(self) -> str:
        least, bound = self.weakest, f"{self.violation:.3g}, at confidence {self.confidence:g}"
        chance = "never exceeds a budget, and never comes to a situation without a known safe action"
        if self.violation:
            chance = f"exceeds a budget, or comes to a situation without a known safe action, with probability at most {bound}"
        condition = ", if the bounds that were given are true" if self.assumed else ""
        return (
            f"The policy may play {len(self.pairs):,} (t, state, joint action). The fewest samples are of "
            f"{place(least.t, least.state, least.action)}: {least.samples:,} samples, "
            f"which rule out an unseen outcome of probability {least.ruled_out:.3g} or more.\n"
            f"An episode {chance}{condition}."
        )


def policy_support(empirical: Empirical, policy: SafePolicy) -> PolicySupport:
    """Collect the pairs that a policy may play, at any feasible cost of a reachable state."""
    facts, tally = empirical.facts, empirical.tally
    states: dict[Label, None] = dict.fromkeys(tally.initial())
    pairs, safe = [], 1.0
    if facts.starts is None:
        seen = list(tally.starts.values())
        safe -= uncovered(seen, sum(seen), empirical.confidence, among=empirical.parts)
    for t in range(facts.horizon):
        there: dict[Label, None] = {}
        risk = 0.0
        for s in states:
            for a in _played(policy, t, s):
                held, samples = empirical.possible(t, s, a), tally.count(t, s, a)
                assert held is not None
                there |= dict.fromkeys(nxt for _, nxt, _ in held.outcomes)
                excess = _excess(empirical, (t, s, a), held)
                risk = max(risk, excess)
                if s != END:
                    pairs.append(PlayedPair(t, s, a, samples, ruled_out(samples, empirical.confidence), excess))
        safe *= 1 - risk
        states = there
    return PolicySupport(tuple(pairs), 1 - safe, empirical.confidence, empirical.caution.bounds)


def _excess(empirical: Empirical, key: Place, possible: PossibleOutcomes) -> float:
    """Bound the probability of all outcomes that those held possible do not cover."""
    facts, tally, caution = empirical.facts, empirical.tally, empirical.caution
    pair, last = tally.at(*key), key[0] == facts.horizon - 1
    if key[1] == END or pair is None:
        return 0.0
    worst = caution.worst(facts, *key) if facts.constraints else ((),)
    if worst is not None and (last or caution.possible_next is not None):
        following = [None] if last else caution.next_states(*key, set())
        covers = [(n, c) for _, n, c in possible.outcomes]
        if all(any((last or s == n) and dominated(w, c) for n, c in covers) for s in following for w in worst):
            return 0.0
    costs_known = empirical.guarded(pair.count)
    apart = last and not tally.stationary  # where times are pooled, one statement serves them all
    kinds: Counter[tuple[Label, Cost]] = Counter()
    for (next_state, cost), n in pair.outcomes.items():
        kinds[None if apart else next_state, () if costs_known else cost] += n
    among = empirical.among(tally.key(*key).t)
    return uncovered(_largest(kinds), pair.count, empirical.confidence, among=among)


def _largest(kinds: Counter[tuple[Label, Cost]]) -> list[int]:
    """Return the counts of the kinds that no other kind with the same next state covers."""
    uncovered_costs: dict[Label, list[Cost]] = {}
    counts = []
    for (following, cost), n in sorted(kinds.items(), key=lambda item: item[0][1], reverse=True):
        above = uncovered_costs.setdefault(following, [])
        if not any(dominated(cost, by) for by in above):
            above.append(cost)
            counts.append(n)
    return counts


def _played(policy: SafePolicy, t: int, state: Label) -> list[JointAction]:
    """Return the joint actions that the policy may play in a state, at any feasible total cost."""
    known = policy.known(t).get(state)
    spent = map(policy.feasibility.lattice.spent, [] if known is None else known.tolist())
    drawn = (policy.inner.distribution(t, state, c) for c in spent)
    return list(dict.fromkeys(a for chances in drawn for a, p in chances.items() if p > 0))
