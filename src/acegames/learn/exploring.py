"""Collecting samples where they are needed, until every pair that can be reached has enough.

A pair *lacks* samples while it has fewer than N. A generative model is asked directly, time after
time. In an environment one must get there: the estimated transitions, with a reward of one for each
visit to a pair that lacks samples (a pair never sampled counts as such a visit and leads nowhere),
are planned over by backward induction,

    V_t(s) = max over legal a of [pair lacks samples] + sum over s' of frequency(s') V_{t+1}(s'),

and episodes follow the best action, with counts as they are at the moment. A new plan is made each
time the number of episodes has grown by a twentieth. A listed initial state that was not drawn yet
may still be drawn: only the limit ends the wait for it.

Budgets are NOT kept while exploring: to learn what an action costs, it must be played.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.learn.confidence import check_share, samples_needed
from acegames.learn.empirical import Empirical
from acegames.learn.estimating import play_episode, sample_everywhere
from acegames.learn.known import read_known
from acegames.learn.sources import EnvWorld, GameModel, ModelWorld, world_of
from acegames.learn.tally import Key, Tally
from acegames.model.checks import check_count, check_rng
from acegames.model.game import JointAction, Label, MarkovGame
from acegames.model.user_functions import SEED, public
from acegames.system.showing import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Shown):
    """What was sampled and what is still missing. `print` it to read it in words."""

    empirical: Empirical
    needed: int  # samples per pair
    pairs: int  # legal pairs of the states that were reached
    lacking: dict[Key, int]  # samples of the pairs that have fewer than needed
    episodes: int  # 0 with a generative model
    coverage: float  # the share of pairs that must be covered

    @property
    def covered(self) -> float:
        """Share of the state-action pairs that have enough samples."""
        return 1 - len(self.lacking) / self.pairs

    @property
    def complete(self) -> bool:
        """Whether the coverage is as large as the option `coverage` says."""
        return self.covered >= self.coverage

    def __str__(self) -> str:
        played = f"{self.episodes:,} episodes, " if self.episodes else ""
        verdict = "Coverage complete" if self.complete else "Coverage NOT complete"
        lines = [
            f"{verdict}: {self.pairs - len(self.lacking):,} of {self.pairs:,} state-action pairs that can occur have "
            f"{self.needed:,} samples or more ({played}{self.empirical.tally.samples:,} samples)."
        ]
        if self.lacking:
            fewest = sorted(self.lacking.items(), key=lambda item: item[1])[:5]
            end = "; ..." if len(self.lacking) > 5 else "."
            lines.append("Too few samples: " + "; ".join(f"{key} has {n}" for key, n in fewest) + end)
        return "\n".join([*lines, str(self.empirical)])


@public("explore", **SEED)
def explore(
    source: Any,
    *,
    rule_out: float = 0.05,
    samples_per_pair: int | None = None,
    coverage: float = 1.0,
    max_episodes: int = 10_000,
    max_samples: int = 1_000_000,
    rng: np.random.Generator | int | None = None,
    **known: Any,
) -> Exploration:
    """Sample until every state-action pair that can occur has enough samples, or a limit is met.

    Budgets are not kept while exploring.

    Args:
        source: an environment or a generative model, as in `estimate`; a `MarkovGame` serves as the
            latter.
        rule_out: a state-action pair has enough samples if they rule out, at the confidence, an
            unseen outcome of this probability.
        samples_per_pair: the number of samples that suffices, in place of `rule_out`.
        coverage: the share of the state-action pairs that must have enough; 1 for all.
        max_episodes: for an environment, the most episodes to play.
        max_samples: for a generative model, the most samples to draw.
        rng, known: as in `estimate`.

    Raises:
        InvalidGame: naming the place, the value and the rule.
        InvalidOption: options contradict each other.
    """
    source = GameModel(source) if isinstance(source, MarkovGame) else source
    own = ("rule_out", "samples_per_pair", "coverage", "max_episodes", "max_samples", "rng")
    said = read_known("explore", own, known)
    if coverage != 1:
        check_share("coverage", coverage)
    needed = samples_needed(rule_out, said.confidence)
    if samples_per_pair is not None:
        needed = check_count("samples_per_pair", samples_per_pair)
    facts, generator, episodes = said.facts(source), check_rng(rng), 0
    tally, world = Tally(facts, stationary=bool(said.stationary)), world_of(source, facts, said.state, said.cost)
    if isinstance(world, ModelWorld):
        sample_everywhere(world, tally, needed, generator, check_count("max_samples", max_samples))
    else:
        episodes = _explore_env(world, tally, needed, coverage, check_count("max_episodes", max_episodes), generator)
    counts = tally.counts(tally.reached())
    lacking = {key: n for key, n in counts.items() if n < needed}
    return Exploration(Empirical(tally, said.confidence, said), needed, len(counts), lacking, episodes, float(coverage))


def _explore_env(
    world: EnvWorld, tally: Tally, needed: int, coverage: float, most: int, rng: np.random.Generator
) -> int:
    """Play until enough pairs are covered or `most` episodes are played; return how many were."""
    plan, replan = _Plan(tally, needed, rng), 1
    for episode in range(most):
        if episode >= replan:
            plan = _Plan(tally, needed, rng)
            if plan.covered >= coverage:
                return episode
            replan = episode + max(1, episode // 20)
        play_episode(world, tally, plan.choose, rng)
    return most


class _Plan:
    """The values V_t(s): the expected number of visits to come to pairs that lack samples."""

    def __init__(self, tally: Tally, needed: int, rng: np.random.Generator) -> None:
        self.tally, self.needed, self.rng = tally, needed, rng
        reached = list(tally.reached()) if tally.starts else []
        counts = tally.counts(reached)
        self.covered = sum(n >= needed for n in counts.values()) / max(1, len(counts))
        self.value: list[dict[Label, float]] = [{} for _ in range(tally.facts.horizon + 1)]
        for t in reversed(range(len(reached))):
            for s in reached[t]:
                self.value[t][s] = max((self._worth(t, s, a) for a in tally.facts.to_sample(t, s)), default=0.0)

    def _worth(self, t: int, state: Label, action: JointAction) -> float:
        found = self.tally.at(t, state, action)
        if found is None:
            return 1.0
        ahead = sum(n * self.value[t + 1].get(s, 0.0) for (s, _), n in found.outcomes.items())
        return (found.count < self.needed) + ahead / found.count

    def choose(self, t: int, state: Label, legal: tuple[JointAction, ...]) -> JointAction:
        """Return the most useful joint action; of equally useful ones the least sampled, of these
        any.
        """
        use = [(self._worth(t, state, a), -self.tally.count(t, state, a)) for a in legal]
        best = max(use)
        alike = [a for a, worth in zip(legal, use, strict=True) if worth == best]
        return alike[int(self.rng.integers(len(alike)))]
