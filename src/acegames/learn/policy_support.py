"""What the data says about the pairs that one policy can play.

A budget is broken at a step only where a cost exceeds, in some constraint, every cost that the estimated game has at
that pair: the policy keeps the budgets for all of those. With N samples the probability q of such a cost is below 1 -
(d / (P M))^(1/N) in each of the M constraints, at all P sampled pairs at once, with probability 1 - d over the samples.
So an episode breaks a budget with probability at most 1 - (1-q_0)...(1-q_{H-1}), q_t the largest bound among the pairs
that can be played at t. Where the known worst cost is a possible outcome, q is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acegames.learn.confidence import ruled_out
from acegames.learn.facts import END
from acegames.learn.safe_policy import SafePolicy
from acegames.model.game import JointAction, Label, place

if TYPE_CHECKING:
    from acegames.learn.empirical import Empirical


@dataclass(frozen=True)
class PlayedPair:
    """One joint action that the policy may play."""

    t: int
    state: Label
    action: JointAction
    samples: int
    ruled_out: float  # an unseen outcome of this probability or more is ruled out, for this pair alone
    excess: float  # bound on the probability of a cost beyond what the policy allows for, at once for all pairs


@dataclass(frozen=True)
class PolicySupport:
    """What the data says about a policy. `print` says it in words."""

    pairs: tuple[PlayedPair, ...]
    violation: float  # bound on the probability that an episode breaks a budget
    confidence: float  # with which the bound holds, over the samples

    @property
    def weakest(self) -> PlayedPair:
        """The pair with the fewest samples."""
        return min(self.pairs, key=lambda p: p.samples)

    def __str__(self) -> str:
        least = self.weakest
        chance = (
            "never breaks a budget"
            if self.violation == 0
            else f"breaks a budget with probability at most {self.violation:.3g}"
        )
        given = "if the bounds on costs are true" if self.violation == 0 else f"at confidence {self.confidence:g}"
        return (
            f"The policy may play {len(self.pairs):,} (t, state, joint action). The least is known of "
            f"{place(least.t, least.state, least.action)}: {least.samples:,} samples, "
            f"which rule out an unseen outcome of probability {least.ruled_out:.3g} or more.\n"
            f"An episode {chance}, {given}, as long as next states are among those seen or listed."
        )


def policy_support(empirical: Empirical, policy: SafePolicy) -> PolicySupport:
    """Collect the pairs that a policy may play at any feasible spending of a state that it can come to, whatever the costs."""
    facts, tally = empirical.facts, empirical.tally
    checked = max(1, len(tally.pairs) * len(facts.constraints))
    states: dict[Label, None] = dict.fromkeys(tally.initial())
    pairs, safe = [], 1.0
    for t in range(facts.horizon):
        there: dict[Label, None] = {}
        risk = 0.0
        for s in states:
            for a in _played(policy, t, s):
                found, samples = empirical.possible(t, s, a), tally.count(t, s, a)
                assert found is not None
                there |= dict.fromkeys(nxt for _, nxt, _ in found.outcomes)
                beyond = len(facts.constraints) * ruled_out(samples, empirical.confidence, among=checked)
                excess = 0.0 if found.covered or not facts.constraints else min(1.0, beyond)
                risk = max(risk, excess)
                if s != END:
                    alone = ruled_out(samples, empirical.confidence)
                    pairs.append(PlayedPair(t, s, a, samples, alone, excess))
        safe *= 1 - risk
        states = there
    return PolicySupport(tuple(pairs), 1 - safe, empirical.confidence)


def _played(policy: SafePolicy, t: int, state: Label) -> list[JointAction]:
    """The joint actions that the policy may play in a state, at any feasible spending."""
    lattice = policy.feasibility.lattice
    known = policy.known(t).get(state)
    rows = [] if known is None else known.tolist()
    found: dict[JointAction, None] = {}
    for row in rows:
        found |= {a: None for a, p in policy.inner.distribution(t, state, lattice.spent(row)).items() if p > 0}
    return list(found)
