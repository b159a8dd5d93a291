"""What the data says about the pairs that one policy can play.

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

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acegames.learn.confidence import ruled_out, uncovered
from acegames.learn.facts import END, Cost, Place, dominated
from acegames.learn.safe_policy import SafePolicy
from acegames.model.game import JointAction, Label, place
from acegames.system.showing import Shown

if TYPE_CHECKING:
    from acegames.learn.empirical import Empirical, Possible


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
        given = ", if the bounds that were given are true" if self.assumed else ""
        return (
            f"The policy may play {len(self.pairs):,} (t, state, joint action). The fewest samples are of "
            f"{place(least.t, least.state, least.action)}: {least.samples:,} samples, "
            f"which rule out an unseen outcome of probability {least.ruled_out:.3g} or more.\n"
            f"An episode {chance}{given}."
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
                found, samples = empirical.possible(t, s, a), tally.count(t, s, a)
                assert found is not None
                there |= dict.fromkeys(nxt for _, nxt, _ in found.outcomes)
                excess = _excess(empirical, (t, s, a), found)
                risk = max(risk, excess)
                if s != END:
                    pairs.append(PlayedPair(t, s, a, samples, ruled_out(samples, empirical.confidence), excess))
        safe *= 1 - risk
        states = there
    return PolicySupport(tuple(pairs), 1 - safe, empirical.confidence, empirical.caution.bounds)


def _excess(empirical: Empirical, key: Place, found: Possible) -> float:
    """Bound on the probability of all outcomes that those held possible do not cover."""
    facts, tally, caution = empirical.facts, empirical.tally, empirical.caution
    pair, last = tally.at(*key), key[0] == facts.horizon - 1
    if key[1] == END or pair is None:
        return 0.0
    worst = caution.worst(facts, *key) if facts.constraints else ((),)
    if worst is not None and (last or caution.possible_next is not None):
        following = [None] if last else caution.next_states(*key, set())
        covers = [(n, c) for _, n, c in found.outcomes]
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
    kept: dict[Label, list[Cost]] = {}
    counts = []
    for (following, cost), n in sorted(kinds.items(), key=lambda item: item[0][1], reverse=True):
        above = kept.setdefault(following, [])
        if not any(dominated(cost, by) for by in above):
            above.append(cost)
            counts.append(n)
    return counts


def _played(policy: SafePolicy, t: int, state: Label) -> list[JointAction]:
    """Return the joint actions that the policy may play in a state, at any feasible cumulative
    cost.
    """
    known = policy.known(t).get(state)
    spent = map(policy.feasibility.lattice.spent, [] if known is None else known.tolist())
    drawn = (policy.inner.distribution(t, state, c) for c in spent)
    return list(dict.fromkeys(a for chances in drawn for a, p in chances.items() if p > 0))
