"""From samples, a generative model or an environment to the estimated game.

Exploring collects samples where they are needed, until every pair that can be reached has enough.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.confidence import samples_needed
from acegames.learn.empirical import Empirical
from acegames.learn.env_protocol import END, Offer
from acegames.learn.known import check_share, is_env, read_known
from acegames.learn.sources import EnvWorld, GameModel, ModelWorld, World, world_of
from acegames.learn.tally import Key, Sample, Tally, read_samples
from acegames.model.checks import check_count, check_rng
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.user_functions import SEED, public
from acegames.system.display import Shown


@public("estimate", instead=SEED)
def estimate(
    source: Any,
    *,
    samples_per_pair: int | None = None,
    episodes: int | None = None,
    rng: np.random.Generator | int | None = None,
    **known: Any,
) -> Empirical:
    """Estimate a game from samples; solve its `.game`, and run the solution through its `.policy`.

    Args:
        source: one of
            *samples*: a data frame, {column: values}, or an iterable of records with `state`,
            `action`, `next_state`, `cost`, `reward` and perhaps `t`, or of tuples ([t,] state,
            action, next_state, cost, reward). Instead of `action`, `cost` and `reward` there may be
            columns as in `MarkovGame.from_table`: one named as each player, one named as each
            constraint, `reward_` and the player.
            *a generative model*: `model(t, state, action, rng) -> (next_state, cost, rewards)`,
            drawn from `samples_per_pair` times at every (t, state, joint action) that can occur; a
            `MarkovGame` serves as one.
            *an environment*: `reset(seed=...) -> (observations, infos)` and `step({agent: action})
            -> (observations, rewards, terminations, truncations, infos)`, as in PettingZoo's
            parallel interface, or its AEC interface, where one turn is one step; `episodes` are
            played at random, within the masks (`action_mask` in observations or infos).
        samples_per_pair: for a model, the number of samples of each (t, state, joint action).
        episodes: for an environment, the number of episodes.
        rng: a Generator, a seed, or None for fresh randomness. The same seed gives the same
            estimate.
        known: what is known beside the samples, as `players`, `horizon`, `initial`, `budget`,
            `actions`, `confidence`, `conservative`: see `Known`.

    Raises:
        InvalidGame: naming the sample or the place, the value and the rule.
        InvalidOption: options contradict each other.
    """
    source = GameModel(source) if isinstance(source, MarkovGame) else source
    said = read_known("estimate", ("samples_per_pair", "episodes", "rng"), known)
    facts = said.facts(source)
    kind = "an environment" if is_env(source) else "a model" if callable(source) else "samples"
    needed = {"an environment": "episodes", "a model": "samples_per_pair"}.get(kind)
    for option, value in (("episodes", episodes), ("samples_per_pair", samples_per_pair)):
        if (value is None) == (option == needed):
            rule = "needs it" if option == needed else "does not use it"
            raise InvalidOption(f"{option}: got {value!r}, but estimating from {kind} {rule}")
    if kind == "samples":
        tally = read_samples(source, facts, said.stationary)
        tally.initial()  # a missing one fails here
        return Empirical(tally, said.confidence, said)
    tally, generator = Tally(facts, stationary=bool(said.stationary)), check_rng(rng)
    world = world_of(source, facts, said.state, said.cost)
    if isinstance(world, ModelWorld):
        sample_everywhere(world, tally, check_count("samples_per_pair", samples_per_pair), generator)
    else:
        for _ in range(check_count("episodes", episodes)):
            play_episode(world, tally, lambda t, s, legal: legal[int(generator.integers(len(legal)))], generator)
    return Empirical(tally, said.confidence, said)


def sample_everywhere(
    world: ModelWorld, tally: Tally, each: int, rng: np.random.Generator, limit: int | None = None
) -> None:
    """Draw until every pair that can be reached has `each` samples, or `limit` are drawn."""
    tally.initial()  # a missing one fails here
    drawn = 0
    for t, here in enumerate(tally.reached()):
        for key in ((t, s, a) for s in here for a in tally.facts.to_sample(t, s)):
            for _ in range(each - tally.count(*key)):
                if drawn == limit:
                    return
                tally.add(place(*key), Sample(*key, *world.ask(*key, rng)))
                drawn += 1


Choice = Callable[[int, Label, tuple[JointAction, ...]], JointAction]
"""Chooses among the legal joint actions of (t, state)."""


def play_episode(world: World, tally: Tally, choose: Choice, rng: np.random.Generator) -> None:
    """Play one episode and count what happens."""
    facts = tally.facts
    state = world.reset(rng)
    if facts.starts is not None and state not in facts.starts:
        raise InvalidGame(f"initial: the environment started in {state!r}, which is not an initial state")
    tally.starts[state] = tally.starts.get(state, 0) + 1
    episode = sum(tally.starts.values()) - 1
    for t in range(facts.horizon):
        if world.offers is not None:
            facts.offer(None if tally.stationary else t, state, world.offers)
        action = choose(t, state, _offered(t, state, facts.to_sample(t, state), world.offers))
        state = tally.add(f"episode {episode}, t={t}", Sample(t, state, action, *world.step(t, action)))
        if state == END:
            return


def _offered(
    t: int, state: Label, legal: tuple[JointAction, ...], offers: Sequence[Offer] | None
) -> tuple[JointAction, ...]:
    """Return the legal joint actions that the environment's masks allow at the moment."""
    if offers is None or not any(offers):
        return legal
    allowed = tuple(a for a in legal if all(o is None or x in o for x, o in zip(a, offers, strict=True)))
    if not allowed:
        rule = "the environment's masks leave none of the legal joint actions"
        raise InvalidGame(f"{place(t, state)}: {rule}, such as {legal[0]!r}")
    return allowed


# -- exploring


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


@public("explore", instead=SEED)
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
    plan, replan = _VisitPlan(tally, needed, rng), 1
    for episode in range(most):
        if episode >= replan:
            plan = _VisitPlan(tally, needed, rng)
            if plan.covered >= coverage:
                return episode
            replan = episode + max(1, episode // 20)
        play_episode(world, tally, plan.choose, rng)
    return most


class _VisitPlan:
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
        pair = self.tally.at(t, state, action)
        if pair is None:
            return 1.0
        ahead = sum(n * self.value[t + 1].get(s, 0.0) for (s, _), n in pair.outcomes.items())
        return (pair.count < self.needed) + ahead / pair.count

    def choose(self, t: int, state: Label, legal: tuple[JointAction, ...]) -> JointAction:
        """Draw one of the least sampled of the most useful joint actions."""
        use = [(self._worth(t, state, a), -self.tally.count(t, state, a)) for a in legal]
        best = max(use)
        equal = [a for a, worth in zip(legal, use, strict=True) if worth == best]
        return equal[int(self.rng.integers(len(equal)))]
