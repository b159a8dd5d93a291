"""From samples, a generative model or an environment to the estimated game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.caution import Caution
from acegames.learn.confidence import check_count, check_share
from acegames.learn.empirical import Empirical
from acegames.learn.facts import END, Facts, Legal, read_facts
from acegames.learn.sources import EnvWorld, GameModel, Model, World, ask, check_model, conventions, is_env
from acegames.learn.tally import Tally, read_samples
from acegames.model.game import JointAction, Label, MarkovGame, place


def estimate(
    source: Any,
    *,
    players: Sequence[Label] | None = None,
    horizon: int | None = None,
    initial: Any = None,
    budget: Any = None,
    constraints: Sequence[Label] | None = None,
    actions: Any = None,
    legal: Legal | None = None,
    stationary: bool | None = None,
    samples_per_pair: int | None = None,
    episodes: int | None = None,
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
) -> Empirical:
    """Estimate a game from samples; solve its `.game`, and run the solution through its `.policy`.

    Args:
        source: one of
            *samples*: a data frame, {column: values}, or an iterable of records with `state`, `action`, `next_state`, `cost`, `reward` and
            perhaps `t`, or of tuples ([t,] state, action, next_state, cost, reward). Instead of `action`, `cost` and `reward` there may be
            columns as in `MarkovGame.from_table`: one named as each player, one named as each constraint, `reward_` and the player.
            *a generative model*: `model(t, state, action, rng) -> (next_state, cost, rewards)`, drawn from `samples_per_pair`
            times at every pair that can be reached; a `MarkovGame` serves as one.
            *an environment*: `reset(seed=...) -> (observations, infos)` and `step({agent: action}) -> (observations, rewards, terminations,
            truncations, infos)`, as in PettingZoo's parallel interface; `episodes` are played at random.
        players: one label per player; of an environment, `possible_agents` by default.
        horizon: number of steps.
        initial: a state, or {state: probability}. Of an environment also a list of all states where its episodes can start, how
            often being as seen; by default those where they were seen to start.
        budget, constraints: as in `MarkovGame.from_functions`.
        actions: one sequence of labels per player, or a function of (t, state) that gives them; `legal(t, state, action)` says which joint
            ones are allowed. With samples they may be left out: then what was sampled is legal. Of an environment whose
            `action_space(agent)` is discrete, its numbers by default.
        legal: see `actions`.
        stationary: True counts all times together. By default so for samples without `t`, and not otherwise.
        samples_per_pair: for a model, how many samples of each pair.
        episodes: for an environment, how many episodes.
        state: for an environment, `state(env, observations)` gives the state, anything hashable; by default `env.state()`, else
            the tuple of all observations.
        cost: for an environment, `cost(infos)` gives the step's cost: a number, one per constraint, or {constraint: number}. By default
            it is read from `infos[agent]["cost"]`: {constraint: number}, where a constraint that several agents report must have the
            same number from all and counts once; or a number, where there are as many constraints as agents, in the same order.
        rng: a Generator, a seed, or None for fresh randomness. The same seed gives the same estimate.
        confidence: with which unseen outcomes are ruled out.
        conservative: True adds the worst cost as a possible outcome wherever the data cannot exclude it.
        worst_cost: the largest cost that a step can have, or a function of (t, state, action) that gives it. Where the largest
            costs of several constraints never come together, a list of costs such that whatever occurs is at most one of them.
        possible_next: `possible_next(t, state, action)` lists every state that can follow; by default those seen, and then the
            conservative promise is about costs alone.
        negligible: a worst cost is not added where the samples rule out, at the confidence, that it has this probability or more.
        unseen_reward: with `conservative` and `possible_next`, what a pair never sampled is taken to pay (a number, one per
            player, or a function of (t, state, action)); it can then be played as if only the worst could happen. By default
            it is not legal.
        name: a name for people.

    Raises:
        InvalidGame: naming the sample or the place, the value and the rule.
        InvalidOption: when options contradict each other.
    """
    source = GameModel(source) if isinstance(source, MarkovGame) else source
    caution = Caution(conservative, worst_cost, possible_next, negligible, unseen_reward).check()
    check_share("confidence", confidence)
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
    kind = "an environment" if is_env(source) else "a model" if callable(source) else "samples"
    needed = {"an environment": "episodes", "a model": "samples_per_pair"}.get(kind)
    for option, value in (("episodes", episodes), ("samples_per_pair", samples_per_pair)):
        if (value is None) == (option == needed):
            rule = "needs it" if option == needed else "has no use for it"
            raise InvalidOption(f"{option}: got {value!r}, but estimating from {kind} {rule}")
    generator = np.random.default_rng(rng)
    if kind == "samples":
        tally = read_samples(source, facts, stationary)
        tally.initial()  # a missing one fails here
    elif kind == "a model":
        check_model(source)
        tally = Tally(facts, stationary=bool(stationary))
        sample_everywhere(source, tally, check_count("samples_per_pair", samples_per_pair), generator)
    else:
        tally = Tally(facts, stationary=bool(stationary))
        world = EnvWorld(source, facts, state, cost)
        for _ in range(check_count("episodes", episodes)):
            play_episode(world, tally, at_random, generator)
    return Empirical(tally, confidence, caution).checked()


def facts_for(source: Any, **given: Any) -> Facts:
    """What is known of a source: as said, else as it says itself."""
    known = getattr(source, "facts", None)
    known = known if isinstance(known, Facts) else None
    if known is None and is_env(source):
        players, actions = conventions(source)
        given["players"] = players if given["players"] is None else given["players"]
        given["actions"] = actions if given["actions"] is None else given["actions"]
    facts = read_facts(known, **given)
    if facts.actions is None and (is_env(source) or callable(source)):
        raise InvalidGame("actions: missing; to sample, it must be known which joint actions there are")
    return facts


def sample_everywhere(
    model: Model, tally: Tally, each: int, rng: np.random.Generator, limit: int | None = None
) -> None:
    """Draw from a model until every pair that can be reached has `each` samples, or `limit` samples are drawn."""
    facts, drawn = tally.facts, tally.samples
    here: dict[Label, None] = dict.fromkeys(tally.initial())
    for t in range(facts.horizon):
        there: dict[Label, None] = {}
        for s in here:
            for a in () if s == END else facts.joint_actions(t, s) or ():
                for _ in range(each - tally.count(t, s, a)):
                    if limit is not None and drawn >= limit:
                        return
                    tally.add(place(t, s, a), t, s, a, *ask(model, t, s, a, rng))
                    drawn += 1
                found = tally.at(t, s, a)
                there |= dict.fromkeys(nxt for nxt, _ in found.outcomes) if found else {}
        here = there


Choice = Callable[[Tally, int, Label, tuple[JointAction, ...], np.random.Generator], JointAction]
"""Chooses among the legal joint actions of (t, state)."""


def at_random(
    tally: Tally, t: int, state: Label, legal: tuple[JointAction, ...], rng: np.random.Generator
) -> JointAction:
    """Each legal joint action alike."""
    return legal[int(rng.integers(len(legal)))]


def play_episode(world: World, tally: Tally, choose: Choice, rng: np.random.Generator) -> None:
    """Play one episode and count what happens."""
    facts = tally.facts
    state = world.reset(rng)
    if facts.starts is not None and state not in facts.starts:
        raise InvalidGame(f"initial: the environment started in {state!r}, which is not an initial state")
    tally.starts[state] = tally.starts.get(state, 0) + 1
    for t in range(facts.horizon):
        legal = facts.joint_actions(t, state)
        assert legal is not None
        action = choose(tally, t, state, legal, rng)
        next_state, cost, reward = world.step(t, action)
        state = tally.add(
            f"episode {sum(tally.starts.values()) - 1}, t={t}", t, state, action, next_state, cost, reward
        )
        if state == END:
            return
