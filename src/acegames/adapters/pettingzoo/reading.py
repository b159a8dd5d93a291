"""A parallel environment read as a game: every joint action is played in every situation (t, state) that can occur.

    reset  ->  states at t = 0;   for each: go back to it, play a joint action, read (next state, cost, rewards)  ->  states at t + 1; ...

What the state does not tell, such as something drawn at `reset`, is found by coming to a situation in several *ways*: after other seeds, by
other actions, at other times. What an action leads to must not depend on the way.

Time O(situations * joint actions * ways) steps of the environment, memory a copy of it for each way into the situations of two times. There
are `repeats` ways into a situation, into each of the first CLOSELY about FEW.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from acegames.adapters.pettingzoo.conventions import Conventions, CostRule, conventions
from acegames.adapters.pettingzoo.places import Copies, Places, Settings
from acegames.errors import InvalidOption, TooLarge
from acegames.learn.facts import END, NO_ACTION
from acegames.learn.stepping import agents_of, reset_env, step_env
from acegames.model.budgets import read_budget
from acegames.model.checks import check_horizon, read_initial
from acegames.model.costless import warn_of_costless
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.user_functions import check_function
from acegames.model.written import show

FEW, SEEDS = 8, 1000
"""How many seeds `reset` is tried with: at least, and at most until all initial states are found."""

CLOSELY = 20
"""So many situations are played in FEW ways, which takes hardly any time; the others in `repeats`."""

Chance = tuple[float, Callable[[Any], Any] | None]
"""A probability, and a function of the environment that makes its next step go that way."""

Chances = Sequence[Chance] | Callable[[int, Any, JointAction], Sequence[Chance]]

CERTAIN: tuple[Chance, ...] = ((1.0, None),)


@dataclass(frozen=True, eq=False)
class Played:
    """What one joint action led to."""

    next_state: Label
    cost: Any
    rewards: tuple[float, ...]
    t: int


@dataclass(frozen=True, eq=False)
class Way:
    """One of the ways in which a situation was reached."""

    t: int  # when
    seed: int  # with which `reset` the episode began
    kept: Any  # what is needed to come back


@dataclass(frozen=True, eq=False)
class Situation:
    """One (t, state): who may do what there, and how to get back to it."""

    choices: tuple[
        tuple[Label, ...], ...
    ]  # N: the actions that the environment allows; NO_ACTION alone for one who is gone
    ways: list[Way]  # the first of them is not later than the others


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
    name: str = "",
) -> MarkovGame:
    """See `acegames.adapters.pettingzoo.from_parallel_env`."""
    horizon = check_horizon(horizon)
    labels, _ = read_budget(budget, constraints, horizon)
    rules = conventions(env, labels, state, cost)
    for what, number in (("repeats", repeats), ("most", most)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidOption(f"{what}: got {show(number)}, must be a whole number of at least 1")
    for what, function, takes in (
        ("set_state", set_state, ("env", "state")),
        ("legal", legal, ("t", "state", "action")),
    ):
        if function is not None:
            check_function(what, function, takes)
    if callable(chances):
        check_function("chances", chances, ("t", "state", "action"))
    places = Copies() if set_state is None else Settings(env, set_state)
    reader = _Reader(rules, places, horizon, stationary or set_state is not None, chances or CERTAIN, repeats, most)
    starts = reader.begin(env, initial)
    game = MarkovGame.from_functions(
        players=rules.players,
        horizon=horizon,
        initial=starts,
        budget=budget,
        constraints=constraints,
        actions=reader.actions,
        outcomes=reader.outcomes,
        reward=reader.reward,
        legal=None if legal is None else lambda t, s, a: s == END or legal(t, s, a),
        name=name or str(env),
    )
    warn_of_costless(game)
    return game


class _Reader:
    """Answers what `MarkovGame.from_functions` asks, time after time, by playing."""

    def __init__(
        self,
        rules: Conventions,
        places: Places,
        horizon: int,
        stationary: bool,
        chances: Chances,
        repeats: int,
        most: int,
    ) -> None:
        self.rules, self.places, self.horizon, self.chances = rules, places, horizon, chances
        self.stationary, self.repeats, self.most = stationary, repeats, most
        self.known: dict[int, dict[Label, Situation]] = {0: {}}  # by time; all under 0 when stationary
        self.played: dict[tuple[int, Label, JointAction], tuple[int, list[tuple[float, Played]]]] = {}  # with the ways
        self.count, self.now, self.plays = 0, 0, 0

    def begin(self, env: Any, initial: Any) -> dict[Label, float]:
        """Find the initial states by `reset` with many seeds; InvalidOption when they are not those of `initial`."""
        wanted = None if initial is None else read_initial(initial)
        for seed in range(FEW if wanted is None else SEEDS):
            observations, infos = reset_env(env, seed)
            label = self.rules.state(env, observations, "reset")
            self._reach(env, 0, seed, label, observations, infos)
            if wanted is not None and label not in wanted:
                raise InvalidOption(
                    f"initial: the environment started in {label!r}, which is not among {list(wanted)!r}"
                )
            if wanted is not None and seed >= FEW and len(self.known[0]) == len(wanted):
                return wanted
        found = list(self.known[0])
        if wanted is not None:
            missing = next(s for s in wanted if s not in found)
            raise InvalidOption(f"initial: {missing!r} was not seen after reset with {SEEDS} seeds")
        if len(found) > 1:
            raise InvalidOption(
                f"the environment starts at random, as in {show(found[:3])}; give initial={{state: probability}}, with every state "
                "where it can start"
            )
        return {found[0]: 1.0}

    def actions(self, t: int, state: Label) -> tuple[tuple[Label, ...], ...]:
        """What each player may do."""
        return ((NO_ACTION,),) * len(self.rules.players) if state == END else self._at(t)[state].choices

    def outcomes(self, t: int, state: Label, action: JointAction) -> list[tuple[float, Label, Any]]:
        """What can happen."""
        return [(p, found.next_state, found.cost) for p, found in self._play(t, state, action)]

    def reward(self, t: int, state: Label, action: JointAction) -> tuple[float, ...]:
        """What each player gets, on average."""
        found = self._play(t, state, action)
        return tuple(math.fsum(p * x.rewards[i] for p, x in found) for i in range(len(action)))

    # -- playing ---------------------------------------------------------------------------------------------------

    def _at(self, t: int) -> dict[Label, Situation]:
        """The situations of a time; those of times before it are forgotten."""
        if self.stationary:
            return self.known[0]
        if t > self.now:
            self.now, self.known, self.played = t, {k: v for k, v in self.known.items() if k >= t}, {}
        return self.known.setdefault(t, {})

    def _play(self, t: int, state: Label, action: JointAction) -> list[tuple[float, Played]]:
        """What a joint action leads to, for everything that chance can do."""
        if state == END:
            return [(1.0, Played(END, None, (0.0,) * len(action), t))]
        here, key = self._at(t)[state], (0 if self.stationary else t, state, action)
        ways, found = self.played.get(key, (0, []))
        if ways < len(here.ways):  # or it is stationary and was reached in a new way since
            where, now = place(t, state, action), len(here.ways)
            listed = self.chances(t, state, action) if callable(self.chances) else self.chances
            tried = [
                self._agreed(where, state, action, here.ways[ways:now], force) for _, force in _chances(where, listed)
            ]
            for (_, before), new in zip(found, tried, strict=False):
                self._compare(where, before, new)
            found = found or [(p, new) for (p, _), new in zip(_chances(where, listed), tried, strict=True)]
            self.played[key] = now, found
        return found

    def _agreed(self, where: str, state: Label, action: JointAction, ways: list[Way], force: Any) -> Played:
        """What a joint action leads to, played in all these ways, `repeats` times at least, and found the same each time."""
        first, tries = self.plays, []
        for k in range(max(self.repeats, len(ways))):  # another way first each time: what it leads to is kept
            again = k > 0 if self.count > CLOSELY else k >= len(ways)
            tries.append(self._try(ways[(first + k) % len(ways)], state, action, force, again))
        earliest = min(tries, key=lambda played: played.t)
        for other in tries:
            self._compare(where, earliest, other)
        return earliest

    def _compare(self, where: str, one: Played, other: Played) -> None:
        late = (
            "" if one.t == other.t else f" (at t={one.t} and t={other.t}: if time matters, leave out stationary=True)"
        )
        at_end = late and max(one.t, other.t) == self.horizon - 1  # what comes after the horizon does not matter
        for what in ("cost", "rewards") if at_end else ("next_state", "cost", "rewards"):
            a, b = getattr(one, what), getattr(other, what)
            if repr(a) != repr(b):  # costs may be arrays
                raise InvalidOption(
                    f"{where}: played twice, the {what.replace('_', ' ')} was {show(a)} and {show(b)}{late}. Either the environment is "
                    "random: then say what chance can do (chances=), or estimate the game from samples (acegames.learn.estimate). Or its "
                    "state does not tell everything that matters: then give state=, a function of (env, observations) that does"
                )

    def _try(self, way: Way, state: Label, action: JointAction, force: Any, again: bool) -> Played:
        self.plays += 1  # every play has a seed of its own: rare luck shows somewhere
        t, rules, env = way.t, self.rules, self.places.back(way.kept, self.plays)
        if force is not None:
            force(env)
        there = agents_of(env, rules.players)
        given = {p: acts[a] for p, acts, a in zip(rules.players, rules.actions, action, strict=True) if p in there}
        answer = step_env(env, given, t)
        if answer.cut and self.stationary and isinstance(self.places, Copies) and t < self.horizon - 1:
            raise InvalidOption(
                f"{place(t, state, action)}: the environment cuts the episode off after {t + 1} steps, so that it depends on time: "
                f"leave out stationary=True, or take a shorter horizon than {self.horizon}"
            )
        step = rules.step(env, t, state, action, answer)
        if step.next_state != END:
            self._reach(env, t + 1, way.seed, step.next_state, answer.observations, answer.infos, again)
        rewards = tuple(float(answer.rewards.get(p, 0.0)) for p in rules.players)
        return Played(step.next_state, rules.cost_of(step, list(given)), rewards, t)

    def _reach(
        self, env: Any, t: int, seed: int, state: Label, observations: Any, infos: Any, again: bool = False
    ) -> None:
        """Remember a situation, and the way in which it was reached; `again` is the same way once more."""
        there = agents_of(env, self.rules.players)
        masks = self.rules.masks(observations, infos)
        choices = tuple(
            tuple(a for a, free in zip(acts, mask, strict=True) if free) if p in there else (NO_ACTION,)
            for p, acts, mask in zip(self.rules.players, self.rules.actions, masks, strict=True)
        )
        known = self.known[0] if self.stationary else self.known.setdefault(t, {})
        if state not in known:
            self._count(t, known)
            known[state] = Situation(choices, [Way(t, seed, self.places.keep(env, state))])
            return
        if known[state].choices != choices:
            raise InvalidOption(
                f"{place(t, state)}: reached twice, the actions were {show(known[state].choices)} and {show(choices)}: the state does not "
                "tell everything that matters; give state=, a function of (env, observations) that does"
            )
        if not again and t < self.horizon and self._one_more(known[state].ways, t, seed):
            known[state].ways.append(Way(t, seed, self.places.keep(env, state)))

    def _one_more(self, ways: list[Way], t: int, seed: int) -> bool:
        """Whether a situation is to be played in one more way: reached at another time, after another seed, or by another action."""
        closely, times = self.count <= CLOSELY, [way.t for way in ways]
        if self.repeats == 1:
            return False
        if t > times[0]:
            return t not in times if closely else times[-1] == times[0]
        seeds = [way.seed for way in ways if way.t == t]
        if not closely:
            return len(seeds) < self.repeats
        return len(set(seeds)) < max(FEW, self.repeats) if seed not in seeds else len(set(seeds)) == len(seeds)

    def _count(self, t: int, known: dict[Label, Situation]) -> None:
        self.count += 1
        if self.count > self.most:
            what = "states" if self.stationary else "situations (t, state)"
            there = (
                f", where there are {len(known):,} states so far, such as {show(next(reversed(known)))}"
                if known
                else ""
            )
            raise TooLarge(
                f"more than {self.most:,} {what}: reached t={t} of {self.horizon}{there}. A state that says less (state=), a shorter "
                "horizon, or a larger most="
            )


def _chances(where: str, listed: Any) -> list[Chance]:
    """Check what the user says chance can do."""
    found = list(listed)
    if not found or not all(isinstance(c, tuple) and len(c) == 2 and (c[1] is None or callable(c[1])) for c in found):
        raise InvalidOption(
            f"{where}: chances {show(listed)}, must be (probability, function of the environment) pairs"
        )
    for _, force in found:
        if force is not None:
            check_function(f"{where}: force in chances", force, ("env",))
    return found
