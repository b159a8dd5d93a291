"""Collecting samples where they are needed, until every pair that can be reached has enough.

A pair *lacks* samples while it has fewer than N. A generative model is asked directly, time after time. In an
environment one must get there: the estimated transitions, with a reward of one for each visit to a pair that lacks
samples (what was never sampled counts as such a visit and leads nowhere), are planned over by backward induction,

    V_t(s) = max over legal a of  [pair lacks samples] + sum over s' seen of  frequency(s') V_{t+1}(s'),

and episodes follow the best action, with counts as they are at the moment. The plan is made anew after every twentieth
part of the episodes. A listed initial state that was not drawn yet may still be: only the limit ends the wait for it.

Budgets are NOT kept while exploring: to learn what an action costs, it must be played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.learn.caution import Caution
from acegames.learn.confidence import check_count, check_share, samples_needed
from acegames.learn.empirical import Empirical
from acegames.learn.estimating import facts_for, play_episode, sample_everywhere
from acegames.learn.facts import END, Legal
from acegames.learn.sources import EnvWorld, GameModel, check_model, is_env
from acegames.learn.tally import Key, Tally
from acegames.model.game import JointAction, Label, MarkovGame


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """What was collected and what is still missing. `print` says it in words."""

    empirical: Empirical
    needed: int  # samples per pair
    pairs: int  # legal pairs of the states that were reached
    lacking: dict[Key, int]  # those with fewer samples than needed, and how many they have
    episodes: int  # played; 0 with a generative model
    coverage: float  # the share of pairs that was asked for

    @property
    def covered(self) -> float:
        """Share of the pairs that have enough samples."""
        return 1 - len(self.lacking) / self.pairs

    @property
    def complete(self) -> bool:
        """Whether the coverage asked for was reached."""
        return self.covered >= self.coverage

    def __str__(self) -> str:
        played = f"{self.episodes:,} episodes, " if self.episodes else ""
        verdict = "Coverage reached" if self.complete else "Coverage NOT reached"
        lines = [
            f"{verdict}: {self.pairs - len(self.lacking):,} of {self.pairs:,} pairs of reached states have {self.needed:,} samples or more "
            f"({played}{self.empirical.tally.samples:,} samples)."
        ]
        if self.lacking:
            fewest = sorted(self.lacking.items(), key=lambda item: item[1])[:5]
            lines.append(
                "Lacking: "
                + "; ".join(f"{key} has {n}" for key, n in fewest)
                + ("; ..." if len(self.lacking) > 5 else ".")
            )
        return "\n".join([*lines, str(self.empirical)])


def explore(
    source: Any,
    *,
    rule_out: float = 0.05,
    samples_per_pair: int | None = None,
    coverage: float = 1.0,
    max_episodes: int = 10_000,
    max_samples: int = 1_000_000,
    players: Sequence[Label] | None = None,
    horizon: int | None = None,
    initial: Any = None,
    budget: Any = None,
    constraints: Sequence[Label] | None = None,
    actions: Any = None,
    legal: Legal | None = None,
    stationary: bool = False,
    state: Callable[[Any, Any], Any] | None = None,
    cost: str | Callable[[Any], Any] | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: float = 0.95,
    conservative: bool = False,
    worst_cost: Any = None,
    possible_next: Callable[[int, Any, JointAction], Any] | None = None,
    negligible: float = 0.0,
    unseen_reward: Any = None,
    name: str = "",
) -> Exploration:
    """Collect samples until every pair that can be reached has enough of them, or the limit is used up.

    Budgets are not kept while exploring.

    Args:
        source: an environment or a generative model, as in `estimate`; a `MarkovGame` serves as the latter.
        rule_out: enough are so many samples that an unseen outcome of this probability is ruled out at the confidence.
        samples_per_pair: or so many, whatever they rule out.
        coverage: the share of the pairs that must have enough; 1 for all.
        max_episodes: of an environment, the most episodes to play.
        max_samples: of a generative model, the most samples to draw.
        players, horizon, initial, budget, constraints, actions, legal, stationary, state, cost, rng, confidence, conservative, worst_cost,
        possible_next, negligible, unseen_reward, name: as in `estimate`.

    Raises:
        InvalidGame: naming the place, the value and the rule.
        InvalidOption: when options contradict each other.
    """
    source = GameModel(source) if isinstance(source, MarkovGame) else source
    if not is_env(source) and not callable(source):
        raise InvalidOption(
            f"source: got {source!r:.60}, must be an environment or a generative model; estimate() takes samples"
        )
    caution = Caution(conservative, worst_cost, possible_next, negligible, unseen_reward).check()
    check_share("confidence", confidence)
    if coverage != 1:
        check_share("coverage", coverage)
    needed = (
        samples_needed(rule_out, confidence)
        if samples_per_pair is None
        else check_count("samples_per_pair", samples_per_pair)
    )
    facts = facts_for(
        source,
        players=players,
        horizon=horizon,
        initial=initial,
        budget=budget,
        constraints=constraints,
        actions=actions,
        legal=legal,
        name=name,
    )
    tally, generator, episodes = Tally(facts, stationary=stationary), np.random.default_rng(rng), 0
    if is_env(source):
        world = EnvWorld(source, facts, state, cost)
        episodes = _explore_env(world, tally, needed, coverage, check_count("max_episodes", max_episodes), generator)
    else:
        check_model(source)
        sample_everywhere(source, tally, needed, generator, check_count("max_samples", max_samples))
    counts = _pairs(tally, _reached(tally))
    lacking = {key: n for key, n in counts.items() if n < needed}
    found = Empirical(tally, confidence, caution).checked()
    return Exploration(found, needed, len(counts), lacking, episodes, float(coverage))


def _explore_env(
    world: EnvWorld, tally: Tally, needed: int, coverage: float, most: int, rng: np.random.Generator
) -> int:
    """Play until enough pairs are covered or `most` episodes are played; return how many were."""
    plan = _Plan(tally, needed)
    replan = 1
    for episode in range(most):
        if episode >= replan:
            plan = _Plan(tally, needed)
            if plan.covered >= coverage:
                return episode
            replan = episode + max(1, episode // 20)
        play_episode(world, tally, plan.choose, rng)
    return most


class _Plan:
    """How useful it is to be in each state at each time: the expected number of visits to pairs that lack samples."""

    def __init__(self, tally: Tally, needed: int) -> None:
        self.needed = needed
        reached = _reached(tally) if tally.starts else []
        counts = _pairs(tally, reached)
        self.covered = sum(n >= needed for n in counts.values()) / max(1, len(counts))
        self.value: list[dict[Label, float]] = [{} for _ in range(tally.facts.horizon + 1)]
        for t in reversed(range(len(reached))):
            for s in reached[t]:
                legal = tally.facts.joint_actions(t, s) if s != END else ()
                self.value[t][s] = max((self._worth(tally, t, s, a) for a in legal or ()), default=0.0)

    def _worth(self, tally: Tally, t: int, state: Label, action: JointAction) -> float:
        found = tally.at(t, state, action)
        if found is None:
            return 1.0
        later = self.value[t + 1]
        ahead = sum(n * later.get(s, 0.0) for (s, _), n in found.outcomes.items()) if later else 0.0
        return (found.count < self.needed) + ahead / found.count

    def choose(
        self, tally: Tally, t: int, state: Label, legal: tuple[JointAction, ...], rng: np.random.Generator
    ) -> JointAction:
        """The most useful joint action; of equally useful ones the least sampled, of these any."""
        best = max(
            range(len(legal)), key=lambda k: (self._worth(tally, t, state, legal[k]), -tally.count(t, state, legal[k]))
        )
        top = self._worth(tally, t, state, legal[best]), tally.count(t, state, legal[best])
        alike = [a for a in legal if (self._worth(tally, t, state, a), tally.count(t, state, a)) == top]
        return alike[int(rng.integers(len(alike)))]


def _reached(tally: Tally) -> list[dict[Label, None]]:
    """For each t the states that the samples show can be reached."""
    facts = tally.facts
    here: dict[Label, None] = dict.fromkeys([*tally.starts, *(facts.starts or ())])
    layers = []
    for t in range(facts.horizon):
        layers.append(here)
        pairs = [tally.at(t, s, a) for s in here if s != END for a in facts.joint_actions(t, s) or ()]
        here = {s: None for pair in pairs if pair is not None for s, _ in pair.outcomes}
    return layers


def _pairs(tally: Tally, reached: list[dict[Label, None]]) -> dict[Key, int]:
    """Number of samples of every legal pair of the states reached."""
    return {
        tally.key(t, s, a): tally.count(t, s, a)
        for t, here in enumerate(reached)
        for s in here
        if s != END
        for a in tally.facts.joint_actions(t, s) or ()
    }
