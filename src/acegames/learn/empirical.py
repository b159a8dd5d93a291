"""The estimated game, and what the data behind it supports (spec 8).

At each pair (t, s, a) with N samples the estimated game has the outcomes that were seen, with their
frequencies, and the mean reward. Only the support of the costs decides what is feasible, so the
statement that goes with the game is about outcomes never seen: which probabilities the data rules
out, pair by pair and for all pairs at once.

A joint action without samples is not legal in the estimated game, nor is one that may lead to a
state in which nothing was sampled.

The conservative option adds, at each pair, every possible next state with the known worst cost
(shared probability 1 - (1-confidence)^(1/N), all else scaled down), unless the data rules out that
it has more than a negligible probability.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from acegames.errors import InvalidGame
from acegames.learn.confidence import PolicySupport, policy_support, ruled_out
from acegames.learn.env_protocol import END
from acegames.learn.known import Cost, Facts, Known, Place, dominated, per_player
from acegames.learn.safe_policy import SafePolicy, safe_policy
from acegames.learn.tally import Key, Tally
from acegames.model.checks import counted
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.system.display import Shown


@dataclass(frozen=True, repr=False)
class PairSupport(Shown):
    """The data about one (t, state, joint action); `t` is None if all times count together."""

    t: int | None
    state: Label
    action: JointAction
    samples: int
    outcomes: int  # number of different (next state, cost) seen
    # A given outcome of this probability or more would have been seen: for this one alone, and at
    # once for all pairs sampled.
    ruled_out: float
    ruled_out_together: float
    reward: tuple[float, ...]  # each player's mean
    reward_error: tuple[float, ...]  # standard errors of the means; NaN with one sample

    def __str__(self) -> str:
        where = place(self.t, self.state, self.action)
        samples = "1 sample rules" if self.samples == 1 else f"{self.samples:,} samples rule"
        return f"{where}: {samples} out an unseen outcome of probability {self.ruled_out:.3g} or more"


@dataclass(frozen=True)
class PossibleOutcomes:
    """The outcomes and rewards of the estimated game at one (t, state, joint action)."""

    outcomes: tuple[tuple[float, Label, Cost], ...]
    reward: tuple[float, ...]
    added: int  # outcomes that were not seen


@dataclass(frozen=True, eq=False, repr=False)
class Empirical(Shown):
    """A game estimated from samples. `print` it to read what the data supports."""

    tally: Tally
    confidence: float = 0.95
    caution: Known = field(default_factory=Known)

    def __post_init__(self) -> None:
        """Raise InvalidGame when the samples contradict the bounds given."""
        if self.caution.bounds:
            _ = self._reached

    @property
    def facts(self) -> Facts:
        """What was known before any sample."""
        return self.tally.facts

    @cached_property
    def counts(self) -> dict[Key, int]:
        """Samples of each (t, state, joint action); t is None if all times count together."""
        return {key: pair.count for key, pair in self.tally.pairs.items()}

    @cached_property
    def support(self) -> tuple[PairSupport, ...]:
        """What the data supports, one entry for each (t, state, joint action) that was sampled."""
        entries = []
        for key, pair in self.tally.pairs.items():
            alone, together = (ruled_out(pair.count, self.confidence, among=k) for k in (1, self.among(key.t)))
            mean, outcomes = tuple(pair.mean), len(pair.outcomes)
            entries.append(PairSupport(*key, pair.count, outcomes, alone, together, mean, pair.errors()))
        return tuple(entries)

    @cached_property
    def game(self) -> MarkovGame:
        """The estimated game.

        Raises:
            InvalidGame: no play of the whole horizon is covered by samples.
        """
        facts, usable = self.facts, self._usable
        for state in self.tally.initial():
            if not usable[0].get(state):
                where = self.blind[0] if self.blind else (0, state)
                raise InvalidGame(
                    f"{place(0, state)}: no play of {facts.horizon} steps from here is covered by samples (nothing was "
                    f"sampled at {place(*where)}, for instance); sample more, or let learn.explore choose where"
                )
        return MarkovGame.from_functions(
            players=facts.players,
            actions=lambda t, s: per_player(usable[t][s]),
            legal=lambda t, s, a: a in usable[t][s],
            outcomes=lambda t, s, a: usable[t][s][a].outcomes,
            reward=lambda t, s, a: usable[t][s][a].reward,
            horizon=facts.horizon,
            initial=self.tally.initial(),
            budget=facts.budgets,
            name=facts.name,
        )

    @cached_property
    def unseen(self) -> tuple[Key, ...]:
        """Legal joint actions never sampled, of states that occurred; empty without `actions`."""
        return tuple(key for key, n in self.tally.counts(self._reached).items() if not n)

    @cached_property
    def blind(self) -> tuple[tuple[int, Label], ...]:
        """The (t, state) that can occur but where nothing was sampled."""
        return tuple((t, s) for t, here in enumerate(self._reached) for s, playable in here.items() if not playable)

    @cached_property
    def left_out(self) -> tuple[Key, ...]:
        """Joint actions that were sampled but are left out, as they may lead to `blind` states."""
        return tuple(
            Key(t, s, a)
            for t, (here, usable) in enumerate(zip(self._reached, self._usable, strict=True))
            for s, playable in here.items()
            for a in playable
            if a not in usable[s]
        )

    def policy(self, solution: Any) -> SafePolicy:
        """Turn a solution (or policy) of the estimated game into one that handles unseen costs."""
        return safe_policy(solution, self.game)

    def support_of(self, solution: Any) -> PolicySupport:
        """Return what the data says of the joint actions that a solution (or policy) can play."""
        return policy_support(self, self.policy(solution))

    def table(self) -> dict[str, list[Any]]:
        """Return `support` as columns, for a data frame."""
        support, players = self.support, self.facts.players
        columns: dict[str, list[Any]] = {name: [getattr(p, name) for p in support] for name in ("t", "state")}
        columns |= {str(player): [p.action[i] for p in support] for i, player in enumerate(players)}
        for name in ("samples", "outcomes", "ruled_out", "ruled_out_together"):
            columns[name] = [getattr(p, name) for p in support]
        for i, player in enumerate(players):
            columns[f"reward_{player}"] = [p.reward[i] for p in support]
            columns[f"reward_error_{player}"] = [p.reward_error[i] for p in support]
        return columns

    def possible(self, t: int, state: Label, action: JointAction) -> PossibleOutcomes | None:
        """Return what the estimated game holds possible at a pair; None where nothing is known."""
        if state == END:
            free: Cost = (Fraction(0),) * len(self.facts.constraints)
            return PossibleOutcomes(((1.0, END, free),), (0.0,) * len(self.facts.players), 0)
        pair = self.tally.at(t, state, action)
        if pair is None and self.caution.unseen_reward is None:
            return None
        seen, count = (pair.outcomes, pair.count) if pair else ({}, 0)
        chances = {outcome: n / count for outcome, n in seen.items()}
        missing = self._not_excluded((t, state, action), set(seen), count)
        if missing:
            extra = ruled_out(count, self.confidence)
            chances = {outcome: p * (1 - extra) for outcome, p in chances.items()}
            chances |= dict.fromkeys(missing, extra / len(missing))
        reward = tuple(pair.mean) if pair else self.caution.reward_unseen(self.facts, t, state, action)
        return PossibleOutcomes(tuple((p, s, c) for (s, c), p in chances.items()), reward, len(missing))

    def guarded(self, samples: int) -> bool:
        """Return whether the worst cost is held possible at a pair with this number of samples."""
        return self.caution.conservative and ruled_out(samples, self.confidence) > self.caution.negligible

    def among(self, t: int | None) -> int:
        """Return in how many parts 1 - confidence is divided to speak of all pairs of t at once.

        Which pairs of a time are sampled may depend on what earlier times showed. So each time has
        a part of its own, which its pairs share.
        """
        return self.parts * self._pairs_at[t]

    @property
    def parts(self) -> int:
        """One part for each time counted apart, and one for first states where they are as seen."""
        return (1 if self.tally.stationary else self.facts.horizon) + (self.facts.starts is None)

    @cached_property
    def _pairs_at(self) -> Counter[int | None]:
        return Counter(key.t for key in self.tally.pairs)

    def _not_excluded(self, key: Place, seen: set[tuple[Label, Cost]], samples: int) -> list[tuple[Label, Cost]]:
        """Return the outcomes of worst cost that were not seen and that the data does not exclude.

        Raises InvalidGame where what was seen contradicts the bounds given.
        """
        worst = self.caution.worst(self.facts, *key)
        for _, cost in seen:
            if worst is not None and not any(dominated(cost, w) for w in worst):
                shown = {c: str(x) for c, x in zip(self.facts.constraints, cost, strict=True)}
                raise InvalidGame(f"{place(*key)}: the cost {shown} was seen, worst_cost says it cannot occur")
        reached = self.caution.next_states(*key, {s for s, _ in seen})
        worst = worst if self.guarded(samples) else None
        return [(s, w) for s in reached for w in worst or () if (s, w) not in seen]

    @cached_property
    def _reached(self) -> list[dict[Label, dict[JointAction, PossibleOutcomes]]]:
        """For each t and each state that can be reached, what each joint action can lead to."""
        sampled: dict[tuple[int | None, Label], list[JointAction]] = {}
        for t, s, a in self.tally.pairs:
            sampled.setdefault((t, s), []).append(a)
        here: dict[Label, None] = dict.fromkeys(self.tally.initial())
        layers = []
        for t in range(self.facts.horizon):
            layer: dict[Label, dict[JointAction, PossibleOutcomes]] = {}
            for s in here:
                legal = self.facts.joint_actions(t, s)
                actions = sampled.get((None if self.tally.stationary else t, s), ()) if legal is None else legal
                layer[s] = {a: held for a in actions if (held := self.possible(t, s, a)) is not None}
            layers.append(layer)
            here = {s: None for row in layer.values() for p in row.values() for _, s, _ in p.outcomes}
        return layers

    @cached_property
    def _usable(self) -> list[dict[Label, dict[JointAction, PossibleOutcomes]]]:
        """The joint actions of `_reached` that lead, whatever happens, to playable states only."""
        alive: set[Label] | None = None  # None at the end: nothing needs to be played any more
        layers = []
        for layer in reversed(self._reached):
            playable = {
                s: {a: p for a, p in row.items() if alive is None or all(nxt in alive for _, nxt, _ in p.outcomes)}
                for s, row in layer.items()
            }
            alive = {s for s, row in playable.items() if row}
            layers.append(playable)
        return layers[::-1]

    def __str__(self) -> str:
        counts = [p.samples for p in self.support]
        if not counts:
            return "No samples."
        least = min(self.support, key=lambda p: p.samples)
        errors = [e for p in self.support for e in p.reward_error if not math.isnan(e)]
        each = f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"
        lines = [
            f"{counted(sum(counts), 'sample')} of {counted(len(counts), 'state-action pair')} (t, state, joint action), "
            f"{each} of each; confidence {self.confidence:g}.",
            f"The samples rule out that a state-action pair has an unseen outcome of probability {least.ruled_out:.3g} or "
            f"more; for all pairs at once, of {least.ruled_out_together:.3g} or more. The fewest samples are of "
            f"{place(least.t, least.state, least.action)}.",
            self._unseen_text(),
            f"Nothing was sampled at {len(self.blind)} (t, state) that can occur, such as {place(*self.blind[0])}; "
            f"{len(self.left_out)} sampled joint actions that may lead there are left out of the estimated game."
            if self.blind
            else "",
            self._caution_text(),
            f"Largest standard error of a mean reward: {max(errors):.3g}."
            if errors
            else "Every state-action pair has one sample, so the errors of mean rewards are unknown.",
        ]
        return "\n".join(line for line in lines if line)

    def _unseen_text(self) -> str:
        if self.facts.actions is None:
            return "The legal joint actions were not given, so those that were sampled are taken as legal."
        if not self.unseen:
            return "Every legal joint action of every state that occurred was sampled."
        illegal = self.caution.unseen_reward is None
        how = (
            "they are not legal in the estimated game"
            if illegal
            else "they are taken to lead to every possible state at the worst cost"
        )
        count = f"{len(self.unseen)} legal joint actions of states that occurred were never sampled"
        return f"{count}, such as {self.unseen[0]}; {how}."

    def _caution_text(self) -> str:
        caution = self.caution
        if not caution.conservative:
            return "Not conservative: budgets hold only as long as no cost is larger than those seen with the same next state."
        added = sum(p.added > 0 for layer in self._reached for row in layer.values() for p in row.values())
        where = "seen" if caution.possible_next is None else "listed as possible"
        small = caution.negligible
        spared = f", except where the data rules out that it has probability {small:g} or more" if small else ""
        return (
            f"Conservative: the worst cost was added as a possible outcome at {added:,} (t, state, joint action){spared}, "
            f"with the next states {where}. If no cost is larger and no other state follows or starts an episode, "
            f"budgets hold{' up to these probabilities' if spared else ''}."
        )

    def __repr__(self) -> str:
        pairs = f"{len(self.tally.pairs):,} state-action pairs, confidence {self.confidence:g}"
        return f"<Empirical: {self.tally.samples:,} samples of {pairs}>"
