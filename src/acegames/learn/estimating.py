"""From samples, a generative model or an environment to the estimated game.

Budgets are NOT kept while sampling: to learn what an action costs, it must be played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.empirical import Empirical
from acegames.learn.env_protocol import END, Offer
from acegames.learn.known import Known, is_env
from acegames.learn.sources import GameModel, ModelWorld, World, world_of
from acegames.learn.tally import Sample, Tally, read_samples
from acegames.model.checks import check_count, check_rng, unknown
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.user_functions import SEED, check_call


@check_call("estimate", **SEED)
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
    options = [option.name for option in fields(Known)]
    for name in known:
        if name not in options:
            raise TypeError(f"estimate: {unknown('argument', name, ['samples_per_pair', 'episodes', 'rng', *options])}")
    said = Known(**known).check()
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


def sample_everywhere(world: ModelWorld, tally: Tally, each: int, rng: np.random.Generator) -> None:
    """Draw until every pair that can be reached has `each` samples."""
    tally.initial()  # a missing one fails here
    for t, here in enumerate(tally.reached()):
        for key in ((t, s, a) for s in here for a in tally.facts.to_sample(t, s)):
            for _ in range(each - tally.count(*key)):
                tally.add(place(*key), Sample(*key, *world.ask(*key, rng)))


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
            tally.offer(t, state, world.offers)
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
