"""A parallel environment read as a game: every joint action is played in every (t, state).

    reset  ->  states at t = 0;  for each: go back to it, play a joint action,
               read (next state, cost, rewards)  ->  states at t + 1;  ...

What the state does not tell, such as something drawn at `reset`, is found by coming to a situation
in several *ways*: after other seeds, by other actions, at other times. The outcome of an action
must not depend on the way.

Time O(situations * joint actions * ways) steps of the environment; memory a copy of it for each way
into the situations of two times. There are `repeats` ways into a situation, into each of the first
CLOSELY about FEW.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from acegames.adapters.environments.snapshots import Snapshots, check_count_of_states
from acegames.adapters.pettingzoo.pace import OnReading, Pace, check_time_limit
from acegames.adapters.pettingzoo.pz_conventions import Conventions, CostRule
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import (
    END,
    NO_ACTION,
    EnvAnswer,
    Turns,
    agents_of,
    check_parallel,
    reset_env,
    step_env,
    takes_turns,
    user_env,
)
from acegames.model.budgets import read_budget, warn_of_costless
from acegames.model.checks import check_count, check_horizon, read_initial, show
from acegames.model.from_functions import ask_functions
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.user_functions import check_optional, note_of_place, public

FEW, SEEDS = 8, 1000
"""`reset` is tried with FEW seeds, or with up to SEEDS to find all initial states given."""

CLOSELY = 20
"""The first situations, this many, are played in FEW ways, which is quick; others in `repeats`."""

Chance = tuple[float, Callable[[Any], Any] | None]
"""A probability, and a function of the environment that makes its next step go that way."""

Chances = Sequence[Chance] | Callable[[int, Any, JointAction], Sequence[Chance]]


class Transition(NamedTuple):
    """The outcome of one joint action."""

    next_state: Label
    cost: Any
    rewards: tuple[float, ...]
    t: int


class Way(NamedTuple):
    """One of the ways in which a situation was reached."""

    t: int
    seed: int  # with which the episode was reset
    snapshot: Any  # what is needed to come back


class ReachedState(NamedTuple):
    """One (t, state): who may do what there, and how to get back to it."""

    choices: tuple[tuple[Label, ...], ...]  # N: the allowed actions; NO_ACTION where there is nothing to do
    ways: list[Way]  # the first of them is not later than the others


@public(progress="playing", begins="resetting the environment")
def from_parallel_env(
    env: Any,
    *,
    horizon: int,
    budget: Any = None,
    cost: CostRule = "cost",
    constraints: Any = None,
    state: Callable[[Any, Any], Any] | None = None,
    set_state: Callable[[Any, Any], Any] | None = None,
    legal: Callable[[int, Any, JointAction], bool] | None = None,
    chances: Chances | None = None,
    initial: Any = None,
    stationary: bool = False,
    repeats: int = 2,
    most: int = 100_000,
    time_limit: float | None = None,
    progress: OnReading | bool | None = None,
    name: str = "",
) -> MarkovGame:
    """Build a game from a parallel environment by playing every joint action in every (t, state).

    Players are `possible_agents`, actions the numbers of their discrete spaces (tuples for
    `MultiDiscrete`), all of them and in their order. Actions that an `action_mask`, in the
    observation or in `infos`, excludes are not legal. Once all agents are terminated or truncated
    the state is "(episode over)": nothing costs or pays there. An agent that has nothing to do has
    the one action "(none)": one that is gone while others play on, and one whose mask allows
    nothing, as where agents take turns. (The environment is then given the agent's first action, as
    a learner would.)

    How many states there are shows only while playing. Before each time, `progress` and the log
    (`logging.getLogger("acegames")`, level INFO) are told how much there is to play then.

    Args:
        env: the environment. It is reset, and left where the last play ended.
        horizon: number of steps; an environment that goes on is cut off there.
        budget, constraints: as in `MarkovGame.from_functions`.
        cost: a key, so that costs are `infos[agent][key]`, read as `learn.estimate` reads them; or
            `cost(step)`, a function of a record with `.t`, `.state`, `.action`, `.next_state` and
            `.infos`, that gives a number, one per constraint, or {constraint: number}.
        state: `state(env, observations)` gives the state, anything hashable. It must tell
            everything that the future depends on, besides the time. By default `env.state()`, else
            the tuple of all observations.
        set_state: `set_state(env, state)` puts an environment that was just reset into a state. By
            default the environment is copied instead, which is slower (a copy for every play) and
            needs memory, but is right also where the state does not tell everything that `step`
            changes, such as a count of steps. With `set_state` plays do not depend on the time.
        legal: `legal(t, state, action)` is True where the joint action is allowed, besides the
            masks.
        chances: for an environment that is random, what chance can do: (probability, force) pairs,
            where `force(env)` makes the next step go that way; or a function of (t, state, action)
            that gives them.
        initial: {state: probability} where the environment starts at random; by default the one
            state in which it starts.
        stationary: True says that time does not matter: each state is played once, not once for
            each time, whatever else differs. That is your promise; plays at one later time, or at
            a few, are compared, and no more.
        repeats: how often each action is played, with different seeds; more often at the first
            times, to meet what `reset` draws. Plays that differ are an error; with 1 the
            environment is trusted to be deterministic.
        most: the most (t, state) to visit, or states if `stationary`.
        time_limit: the most seconds to play. What takes longer is an error that says how far it
            came, as soon as that can be foreseen.
        progress: True for a bar, or a function that is called with a `Reading` now and then, and
            before each time.
        name: a name for people; by default that of the environment.

    Raises:
        InvalidOption: the environment does not fit, or is random although `chances` is not given.
        InvalidGame: the environment breaks a rule of the model; the message names place and value.
        TooLarge: there are more (t, state) than `most`, far too many joint actions, or the
            `time_limit` does not suffice.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    horizon = check_horizon(horizon)
    labels, _ = read_budget(budget, constraints, horizon)
    rules = Conventions(env, labels, state, cost)
    check_count("repeats", repeats)
    check_count("most", most)
    check_optional("set_state", set_state, ("env", "state"))
    check_optional("legal", legal, ("t", "state", "action"))
    check_optional("chances", chances if callable(chances) else None, ("t", "state", "action"))
    stationary = stationary or set_state is not None
    pace = Pace(name or str(env), horizon, progress, check_time_limit(time_limit))
    said = (chances or [(1.0, None)], repeats, most)
    reader = _ParallelReader(rules, Snapshots(env, set_state), horizon, stationary, *said, pace)
    game = ask_functions(
        players=rules.players,
        horizon=horizon,
        initial=reader.begin(env, initial),
        budget=budget,
        constraints=constraints,
        actions=reader.actions,
        outcomes=reader.outcomes,
        reward=None,  # it comes with the outcomes
        legal=None if legal is None else lambda t, s, a: s == END or legal(t, s, a),
        name=name or str(env),
        offered=rules.actions,
    )
    pace.finish()
    warn_of_costless(game)
    return game


@dataclass(eq=False)
class _ParallelReader:
    """Answers the questions of `MarkovGame.from_functions`, time after time, by playing."""

    rules: Conventions
    snapshots: Snapshots
    horizon: int
    stationary: bool
    chances: Chances
    repeats: int
    most: int
    pace: Pace
    known: dict[int, dict[Label, ReachedState]] = field(default_factory=lambda: {0: {}})  # all at 0 if stationary
    played: dict[tuple[int, Label, JointAction], tuple[int, list[tuple[float, Transition]]]] = field(
        default_factory=dict  # the number of ways in which it was played, and its outcomes
    )
    count: int = 0  # of situations
    now: int = -1  # the time that is played

    def begin(self, env: Any, initial: Any) -> dict[Label, float]:
        """Find the initial states by `reset` with many seeds, and compare them with `initial`."""
        wanted = None if initial is None else read_initial(initial)
        for seed in range(FEW if wanted is None else SEEDS):
            self.pace.check()
            observations, infos = reset_env(env, seed)
            label = self.rules.state(env, observations, "reset")
            choices = self.rules.choices(agents_of(env, self.rules.players), observations, infos)
            self._reach(label, choices, Way(0, seed, self.snapshots.keep(env, label)))
            if wanted is not None and label not in wanted:
                raise InvalidOption(
                    f"initial: the environment started in {label!r}, which is not among {list(wanted)!r}"
                )
            if wanted is not None and seed >= FEW and len(self.known[0]) == len(wanted):
                return wanted
        starts = list(self.known[0])
        if wanted is not None:
            missing = next(s for s in wanted if s not in starts)
            raise InvalidOption(f"initial: {missing!r} was not seen after reset with {SEEDS} seeds")
        if len(starts) > 1:
            rule = "give initial={state: probability}, with every state where it can start"
            raise InvalidOption(f"the environment starts at random, as in {show(starts[:3])}; {rule}")
        return {starts[0]: 1.0}

    def actions(self, t: int, state: Label) -> tuple[tuple[Label, ...], ...]:
        """Return the actions of each player."""
        return ((NO_ACTION,),) * len(self.rules.players) if state == END else self._at(t)[state].choices

    def outcomes(self, t: int, state: Label, action: JointAction) -> list[tuple[float, Label, Any, tuple[float, ...]]]:
        """Return (probability, next state, cost, rewards) of everything that can happen."""
        return [(p, after.next_state, after.cost, after.rewards) for p, after in self._play(t, state, action)]

    # -- playing

    def _at(self, t: int) -> dict[Label, ReachedState]:
        """Return the situations of a time; those of times before it are forgotten."""
        if t > self.now:
            self.now = t
            if not self.stationary:
                self.known, self.played = {k: v for k, v in self.known.items() if k >= t}, {}
            self._begin_time(t)
        return self.known[0] if self.stationary else self.known.setdefault(t, {})

    def _begin_time(self, t: int) -> None:
        """Say what there is to play at a time, all states of which are known now."""
        here = self.known[0 if self.stationary else t].values()
        new = [math.prod(map(len, x.choices)) for x in here if x.ways[0].t == t]
        self.pace.begin(t, len(new), sum(new), self.repeats)

    def _play(self, t: int, state: Label, action: JointAction) -> list[tuple[float, Transition]]:
        """Return the outcomes of a joint action, one for everything that chance can do."""
        if state == END:
            return [(1.0, Transition(END, {}, (0.0,) * len(action), t))]
        here, key = self._at(t)[state], (0 if self.stationary else t, state, action)
        ways, outcomes = self.played.get(key, (0, []))
        if ways < len(here.ways):  # or it is stationary and was reached in a new way since
            where, now = place(t, state, action), len(here.ways)
            listed = _chances(where, self.chances(t, state, action) if callable(self.chances) else self.chances)
            tried = [self._agreed(where, state, action, here.ways[ways:now], force) for _, force in listed]
            for (_, before), new in zip(outcomes, tried, strict=False):
                self._compare(where, before, new)
            if not outcomes:
                outcomes = [(p, new) for (p, _), new in zip(listed, tried, strict=True)]
                self.pace.pair()
            self.played[key] = now, outcomes
        return outcomes

    def _agreed(self, where: str, state: Label, action: JointAction, ways: list[Way], force: Any) -> Transition:
        """Return the outcome of a joint action, one in all ways and at least `repeats` plays."""
        first, tries = self.pace.plays, []
        for k in range(max(self.repeats, len(ways))):  # another way first each time: what it leads to is kept
            again = k > 0 if self.count > CLOSELY else k >= len(ways)
            tries.append(self._try(ways[(first + k) % len(ways)], state, action, force, again))
        earliest = min(tries, key=lambda played: played.t)
        for other in tries:
            self._compare(where, earliest, other)
        return earliest

    def _compare(self, where: str, one: Transition, other: Transition) -> None:
        late = one.t != other.t
        times = f" (at t={one.t} and t={other.t}: if time matters, leave out stationary=True)" if late else ""
        at_end = late and max(one.t, other.t) == self.horizon - 1  # what comes after the horizon does not matter
        for what in ("cost", "rewards") if at_end else ("next_state", "cost", "rewards"):
            a, b = getattr(one, what), getattr(other, what)
            if repr(a) != repr(b):  # costs may be arrays
                raise InvalidOption(
                    f"{where}: played twice, the {what.replace('_', ' ')} was {show(a)} and {show(b)}{times}. Either the "
                    "environment is random: then say what chance can do (chances=), or estimate the game from samples "
                    "(acegames.learn.estimate). Or its state does not tell everything that matters: then give state=, "
                    "a function of (env, observations) that does"
                )

    def _try(self, way: Way, state: Label, action: JointAction, force: Any, again: bool) -> Transition:
        """Play a joint action, and remember what it leads to."""
        self.pace.play()  # every play has a seed of its own: rare luck shows somewhere
        t, rules, env = way.t, self.rules, self.snapshots.back(way.snapshot, self.pace.plays)
        answer = self._step(env, force, t, state, action)
        if answer.cut and self.stationary and self.snapshots.set_state is None and t < self.horizon - 1:
            raise InvalidOption(
                f"{place(t, state, action)}: the environment cuts the episode off after {t + 1} steps, so that it depends "
                f"on time: leave out stationary=True, or take a shorter horizon than {self.horizon}"
            )
        next_state, cost = rules.read(env, t, state, action, answer)
        if not answer.over:
            snapshot = env if self.snapshots.set_state is None else next_state  # what was played is a copy already
            choices = rules.choices(agents_of(env, rules.players), answer.observations, answer.infos)
            self._reach(next_state, choices, Way(t + 1, way.seed, snapshot), again)
        return Transition(next_state, cost, answer.rewards_of(rules.players), t)

    def _step(self, env: Any, force: Any, t: int, state: Label, action: JointAction) -> EnvAnswer:
        what = "a force of chances"
        try:
            if force is not None:
                force(user_env(env))
            what = "env.step"
            return step_env(env, self.rules.env_actions(action), t)
        except Exception as error:
            note_of_place(error, what, t, state, action)
            raise

    def _reach(self, state: Label, choices: tuple[tuple[Label, ...], ...], way: Way, again: bool = False) -> None:
        """Remember a situation and the way into it; `again` is the same way once more."""
        t = way.t
        known = self.known[0] if self.stationary else self.known.setdefault(t, {})
        if state not in known:
            self.count += 1
            check_count_of_states(state, len(known), self.count, self.most, t, self.horizon, self.stationary)
            known[state] = ReachedState(choices, [way])
            return
        if known[state].choices != choices:
            raise InvalidOption(
                f"{place(t, state)}: met twice, the actions were {show(known[state].choices)} and {show(choices)}: the "
                "state does not tell everything that matters; give state=, a function of (env, observations) that does"
            )
        if t < known[state].ways[0].t:  # a later way was tried before it
            known[state].ways.insert(0, way)
        elif not again and t < self.horizon and self._one_more(known[state].ways, t, way.seed):
            known[state].ways.append(way)

    def _one_more(self, ways: list[Way], t: int, seed: int) -> bool:
        """Return whether to keep a way at another time, of another seed or by another action."""
        closely, times = self.count <= CLOSELY, [way.t for way in ways]
        if self.repeats == 1:
            return False
        if t > times[0]:
            return t not in times if closely else times[-1] == times[0]
        seeds = [way.seed for way in ways if way.t == t]
        if not closely:
            return len(seeds) < self.repeats
        return len(set(seeds)) < max(FEW, self.repeats) if seed not in seeds else len(set(seeds)) == len(seeds)


def _chances(where: str, listed: Any) -> list[Chance]:
    """Check what the user says chance can do."""
    pairs = list(listed)
    if not pairs or not all(isinstance(c, tuple) and len(c) == 2 and (c[1] is None or callable(c[1])) for c in pairs):
        raise InvalidOption(
            f"{where}: chances {show(listed)}, must be (probability, function of the environment) pairs"
        )
    for _, force in pairs:
        check_optional(f"{where}: force in chances", force, ("env",))
    return pairs


# -- agents who take turns


def from_aec_env(env: Any, *, horizon: int, **options: Any) -> MarkovGame:
    """Build a game from an environment in which agents take turns, as tic-tac-toe or chess.

    One turn is one step of the game. The agent whose turn it is (`env.agent_selection`) has the
    actions that its mask allows, every other agent the one action "(none)". Each agent's reward of
    the step is its entry of `env.rewards` after it. Agents that are terminated or truncated leave
    without a step of the game.

    All players of a Markov game know its state: hidden cards, or choices that are made secretly one
    after the other, become open ones.

    Args:
        env: the environment, with PettingZoo's AEC interface. It is reset, and left where the last
            play ended.
        horizon: number of turns, those of all agents together.
        options: as for `from_parallel_env`, with these differences: the functions are given the AEC
            environment, and observations of all agents that are still there; the state is by
            default `(env.agent_selection, state)`, with the state of `from_parallel_env`; costs
            that are a key are read from the info of the agent that acted.

    Raises:
        InvalidOption: the environment does not fit; also if its agents choose at once in truth
            (`is_parallelizable` in its metadata), as a turn would reveal the choices before it.
        InvalidGame, TooLarge: as for `from_parallel_env`.
    """
    check_parallel(env)
    if not takes_turns(env):
        rule = "must be an AEC environment, in which agents take turns; from_parallel_env reads a parallel one"
        raise InvalidOption(f"env: got {show(env)}, {rule}")
    return from_parallel_env(Turns(env), horizon=horizon, **options)
