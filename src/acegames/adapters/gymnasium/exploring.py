"""A Gymnasium environment read by playing every action, with everything that chance can do.

    reset, with all that it can draw  ->  states at t = 0;  for each: go back to it, play an action
    with all that it can draw  ->  (probability, next state, cost, reward), states at t + 1;  ...

A situation is reached in several *ways*, by other actions and other draws; what happens must not
depend on the way, else the state does not tell everything. Whatever chance can do after the same
actions is a way of its own, as far as the environment is in another condition then: what only rare
draws hide is found, too. What the state does not tell can be named
(`hidden`). Then a situation has a *belief*: how likely each hidden value is. It must be the same
whatever led there, because a policy knows only the state.

Time O(situations * hidden values * actions * ways * what chance can do) steps of the environment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from acegames.adapters.environments.places import Places
from acegames.adapters.environments.spaces import MASK
from acegames.adapters.gymnasium.branching import Branching, TooManyBranches
from acegames.adapters.gymnasium.conventions import Conventions, GymStep, step_of
from acegames.adapters.gymnasium.drawn import CannotEnumerate
from acegames.adapters.gymnasium.elsewhere import global_generators_rest, own_generators_rest
from acegames.adapters.gymnasium.resets import check_resets
from acegames.adapters.gymnasium.ways import Belief, Situation, Way, one_more
from acegames.errors import InvalidOption, TooLarge
from acegames.learn.facts import END, NO_ACTION
from acegames.model.checks import read_initial
from acegames.model.game import JointAction, Label, place
from acegames.model.written import show

OFTEN, CLOSELY = 8, 20
"""The first situations, CLOSELY, are played OFTEN times each, to meet numbers drawn elsewhere."""

Outcomes = list[tuple[Fraction, "Played"]]


class Played(NamedTuple):
    """What one play of an action led to."""

    next_state: Label
    hidden: Label
    cost: Any
    reward: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells plays apart; costs may be arrays."""
        return self.next_state, self.hidden, repr(self.cost), repr(self.reward)


@dataclass(eq=False)
class Explorer:
    """Answers the questions of `MarkovGame.from_functions`, time after time, by playing."""

    rules: Conventions
    places: Places
    generator: Branching
    horizon: int
    stationary: bool
    limit: int | None  # steps after which a TimeLimit cuts episodes off
    repeats: int
    most: int
    known: dict[int, dict[Label, Situation]] = field(default_factory=lambda: {0: {}})  # all at 0 if stationary
    # what each action leads to, by what is hidden, and the number of ways in which it was played
    played: dict[tuple[int, Label, Label], dict[Label, tuple[int, Outcomes]]] = field(default_factory=dict)
    count: int = 0  # of situations
    plays: int = 0
    now: int = 0
    masked: bool = False
    histories: dict[Any, int] = field(default_factory=dict)  # the number of each

    # -- the questions

    def begin(self, initial: Any) -> dict[Label, Fraction | float]:
        """Find the states after `reset`; those that the user gives must be among them."""
        wanted = None if initial is None else read_initial(initial)
        shares: dict[Label, Belief] = {}
        env = self.places.env
        with _enumerating("reset"), global_generators_rest():
            for n, leaf in enumerate(self.generator.leaves(lambda: None, self.reset)):
                state, hidden, choices = leaf.answer
                for _ in range(OFTEN if n < CLOSELY and self.repeats > 1 else 0):
                    again = self.generator.replay(leaf.script, lambda: None, self.reset)
                    self._same("reset", "the state, and what is hidden,", leaf.answer[:2], again[:2])
                if wanted is None or state in wanted:
                    self._arrive(env, 0, (state, hidden), choices, 0)
                    belief = shares.setdefault(state, {})
                    belief[hidden] = belief.get(hidden, Fraction(0)) + leaf.chance
        if self.places.set_state is not None and not self.masked:
            for state in (s for s in wanted or () if s not in shares):
                self._arrive(env, 0, (state, None), tuple(self.rules.actions), 0)
                shares[state] = {None: Fraction(1)}
        for state, belief in shares.items():
            self.known[0][state].belief = _normalised(belief)
        if self.repeats > 1:
            with _enumerating("episodes from reset on"):
                check_resets(self)
        missing = None if wanted is None else next((s for s in wanted if s not in shares), None)
        if missing is not None:
            raise InvalidOption(f"initial: {missing!r} is no state in which reset leaves the environment")
        return dict(wanted) if wanted is not None else {s: sum(b.values(), Fraction(0)) for s, b in shares.items()}

    def actions(self, t: int, state: Label) -> tuple[tuple[Label, ...]]:
        """Return the actions that may be chosen."""
        return ((NO_ACTION,),) if state == END else (self._at(t)[state].choices,)

    def outcomes(self, t: int, state: Label, action: JointAction) -> list[tuple[Any, Label, Any, tuple[float]]]:
        """Return (probability, next state, cost, reward) of everything that can happen."""
        if state == END:
            return [(Fraction(1), END, {}, (0.0,))]
        cut = self.stationary and self.limit is not None and t + 1 >= self.limit
        merged: dict[tuple[Label, str, str], tuple[Fraction, Label, Any, tuple[float]]] = {}
        for chance, found in self._law(t, state, action[0]):
            following = END if cut else found.next_state
            key = following, repr(found.cost), repr(found.reward)
            before = merged[key][0] if key in merged else Fraction(0)
            merged[key] = before + chance, following, found.cost, (found.reward,)
        return list(merged.values())

    # -- playing

    def _at(self, t: int) -> dict[Label, Situation]:
        """Return the situations of a time; those of times before it are forgotten."""
        if self.stationary:
            return self.known[0]
        if t > self.now:
            self.now, self.known, self.played = t, {k: v for k, v in self.known.items() if k >= t}, {}
        return self.known.setdefault(t, {})

    def _law(self, t: int, state: Label, action: Label) -> Outcomes:
        """Return what an action can lead to, the hidden values averaged over."""
        here, where = self._at(t)[state], place(t, state, (action,))
        laws = self.played.setdefault((0 if self.stationary else t, state, action), {})
        fresh = False
        for hidden in here.belief:
            known, law = laws.get(hidden, (0, []))
            ways = here.ways[hidden]
            if known < len(ways):  # or every time is read at once, and there is a new way since
                laws[hidden] = len(ways), self._agreed(where, state, action, ways[known:], law)
                fresh = True
        found = [(share * p, x) for hidden, share in here.belief.items() for p, x in laws[hidden][1]]
        if fresh:
            self._believe(t + 1, where, found)
        return found

    def _agreed(self, where: str, state: Label, action: Label, ways: Sequence[Way], law: Outcomes) -> Outcomes:
        """Return what follows, the same in all ways and whenever it is played."""
        least = OFTEN if self.count <= CLOSELY and self.repeats > 1 else self.repeats
        for k in range(max(least, len(ways)) if not law else len(ways)):
            found = self._play(where, state, action, ways[k % len(ways)], again=k >= len(ways))
            law = law or found
            self._compare(where, law, found)
        return law

    def _play(self, where: str, state: Label, action: Label, way: Way, again: bool) -> Outcomes:
        """Return everything that follows an action in one way; `again` is the same way once more."""
        found = []
        history = self.histories.setdefault((way.history, state, action), len(self.histories) + 1)
        with _enumerating(where), global_generators_rest():
            for leaf in self.generator.leaves(partial(self._back, way), partial(self.step, way.t, state, action)):
                env, step, choices = leaf.answer
                if step.next_state != END and not again:
                    self._arrive(env, way.t + 1, (step.next_state, step.hidden), choices, history)
                found.append((leaf.chance, step))
        return found

    def reset(self, _: None) -> tuple[Label, Label, tuple[Label, ...]]:
        """Begin an episode of the environment itself: the state, what is hidden, the actions."""
        env = self.places.env
        with own_generators_rest([self.generator, *self.places.generators(env)]):
            answer = env.reset()
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InvalidOption(f"reset of the environment answered {show(answer)}, must be (observation, info)")
        choices = self.rules.choices(*answer)
        self.masked = self.masked or any(isinstance(x, Mapping) and MASK in x for x in answer)
        return self.rules.state(env, answer[0], "reset"), self.rules.hidden(env, "reset"), choices

    def _back(self, way: Way) -> Any:
        self.plays += 1  # every play has a seed of its own: what is drawn elsewhere shows somewhere
        return self.places.back(way.kept, self.plays)

    def step(self, t: int, state: Label, action: Label, env: Any) -> tuple[Any, Played, tuple[Label, ...]]:
        """Play an action: the environment, what came of it, the actions that may follow."""
        rules, where = self.rules, place(t, state, (action,))
        with own_generators_rest([self.generator, *self.places.generators(env)]):
            observation, reward, end, cut, info = step_of(env, rules.actions[action], where)
        early = self.limit is None or t + 1 < self.limit  # else it is the TimeLimit, which `outcomes` heeds
        if cut and not end and self.stationary and t + 1 < self.horizon and early:
            raise InvalidOption(
                f"{where}: the environment cuts the episode off after {t + 1} steps, so that it depends on time: leave out "
                f"stationary=True, or take a shorter horizon than {self.horizon}"
            )
        following = rules.state(env, observation, f"t={t + 1}")
        at = None if self.stationary else t
        cost = rules.cost(GymStep(at, state, action, following, reward, end, cut, info))
        if end or (cut and not self.stationary):
            return env, Played(END, None, cost, reward), ()
        hidden, choices = rules.hidden(env, f"t={t + 1}"), rules.choices(observation, info)
        return env, Played(following, hidden, cost, reward), choices

    # -- what is known

    def _arrive(self, env: Any, t: int, at: tuple[Label, Label], choices: tuple[Label, ...], history: int) -> None:
        """Remember a situation and the way into it."""
        state, hidden = at
        known = self.known[0] if self.stationary else self.known.setdefault(t, {})
        if state not in known:
            self.count += 1
            if self.count > self.most:
                what = "states" if self.stationary else "situations (t, state)"
                here = f", where there are {len(known):,} states so far, such as {show(state)}" if known else ""
                rule = "A state that says less (state=), a shorter horizon, or a larger most="
                raise TooLarge(f"more than {self.most:,} {what}: stopped at t={t} of {self.horizon}{here}. {rule}")
            known[state] = Situation(choices)
        if not choices:
            raise InvalidOption(f"{place(t, state)}: the action mask allows nothing, must allow an action")
        if known[state].choices != choices:
            self._same(place(t, state), "the tuple of actions", known[state].choices, choices)
        ways = known[state].ways.setdefault(hidden, [])
        if t < self.horizon and (self.repeats > 1 or not ways):
            look = self.places.condition(env)
            if one_more(ways, t, history, look, self.repeats, place(t, state)):
                ways.append(Way(t, history, look, self.places.keep(env, state)))

    def _believe(self, t: int, by: str, found: Outcomes) -> None:
        """The hidden values that follow must be as likely as after other actions."""
        shares: dict[tuple[Label, str], Belief] = {}
        for chance, x in found:
            if x.next_state != END:  # a policy knows the state and what was spent
                belief = shares.setdefault((x.next_state, repr(x.cost)), {})
                belief[x.hidden] = belief.get(x.hidden, Fraction(0)) + chance
        for (state, _), belief in shares.items():
            situation = (self.known[0] if self.stationary else self.known[t])[state]
            new = _normalised(belief)
            situation.belief = situation.belief or new
            if situation.belief != new:
                value = next(v for v in (*new, *situation.belief) if new.get(v) != situation.belief.get(v))
                raise InvalidOption(
                    f"{place(t, state)}: the hidden value {show(value)} has probability {situation.belief.get(value, 0)} after "
                    f"one way there and {new.get(value, 0)} after another ({by}), so that what is hidden depends on more than "
                    "the state: a state that says more (state=) makes it a game"
                )

    def _compare(self, where: str, one: Outcomes, other: Outcomes) -> None:
        laws: list[dict[Any, Fraction]] = [{}, {}]
        for law, found in zip(laws, (one, other), strict=True):
            for chance, x in found:
                law[x.key] = law.get(x.key, Fraction(0)) + chance
        for key in (*laws[0], *laws[1]):
            had = [law.get(key, Fraction(0)) for law in laws]
            if had[0] != had[1]:
                following, hidden, cost, reward = key
                more = f", hidden {hidden!r}" if self.rules.hidden_of else ""
                priced = f", cost {cost}" if self.rules.constraints else ""
                event = f"the probability of the next state {following!r} with the reward {reward}{priced}{more}"
                self._same(where, event, *(float(p) for p in had))

    def _same(self, where: str, what: str, one: Any, other: Any) -> None:
        if one != other:
            raise InvalidOption(
                f"{where}: played twice, {what} was {show(one)} and {show(other)}. Either random numbers come from elsewhere "
                "than self.np_random, which alone can be listed. Or the state does not tell everything that matters: then "
                "give state=, a function of (env, observation) that does, or hidden=, a function of env that tells the rest"
            )


@contextlib.contextmanager
def _enumerating(where: str) -> Iterator[None]:
    """Make errors about what cannot be listed say where."""
    try:
        yield
    except CannotEnumerate as reason:
        raise CannotEnumerate(f"{where}: {reason}. {INSTEAD}") from None
    except TooManyBranches as reason:
        rule = "a larger branches= takes longer; or an environment that draws less (such as for pictures alone)"
        raise TooManyBranches(f"{where}: {reason}; {rule}") from None


def _normalised(belief: Belief) -> Belief:
    total = sum(belief.values())
    return {value: share / total for value, share in belief.items()}


INSTEAD = (
    "Write the law down (MarkovGame.from_functions), or estimate it from recorded steps (acegames.learn.estimate takes "
    "(state, action, next_state, cost, reward) records)"
)
