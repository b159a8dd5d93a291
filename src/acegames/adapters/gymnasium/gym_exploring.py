"""A Gymnasium environment read by playing every action, with everything that chance can do.

    reset, with all that it can draw  ->  states at t = 0;  for each: go back to it, play an action
    with all that it can draw  ->  (probability, next state, cost, reward), states at t + 1;  ...

There are several ways (`Arrival`) into a situation, by other actions and other draws; what happens
must not depend on the way, else the state does not tell everything. Whatever chance can do after
the same actions is a way of its own, as far as the environment is in another state then: what only
rare draws hide is found, too. What the state does not tell can be named (`hidden`). Then a
situation has a *belief*: how likely each hidden value is. It must be the same whatever led there,
because a policy knows only the state.

Time O(situations * hidden values * actions * ways * what chance can do) steps of the environment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from acegames.adapters.environments.snapshots import Snapshots, check_count_of_states
from acegames.adapters.gymnasium.enumerating_rng import (
    EnumeratingRNG,
    TooManyBranches,
    global_generators_rest,
    own_generators_rest,
)
from acegames.adapters.gymnasium.gym_conventions import GymConventions, GymStep, step_of
from acegames.adapters.gymnasium.symbolic_uniform import CannotEnumerate
from acegames.errors import InvalidOption, TooLarge
from acegames.learn.env_protocol import END, MASK, NO_ACTION
from acegames.model.checks import read_initial, show
from acegames.model.game import JointAction, Label, place

OFTEN, CLOSELY = 8, 20
"""The first situations, CLOSELY, are played OFTEN times each, to meet numbers drawn elsewhere."""

Outcomes = list[tuple[Fraction, "PlayOutcome"]]


class PlayOutcome(NamedTuple):
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

    rules: GymConventions
    snapshots: Snapshots
    generator: EnumeratingRNG
    horizon: int
    stationary: bool
    limit: int | None  # steps after which a TimeLimit cuts episodes off
    repeats: int
    most: int
    known: dict[int, dict[Label, ReachedSituation]] = field(default_factory=lambda: {0: {}})  # all at 0 if stationary
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
        env = self.snapshots.env
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
        if self.snapshots.set_state is not None and not self.masked:
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
        for chance, outcome in self._law(t, state, action[0]):
            following = END if cut else outcome.next_state
            key = following, repr(outcome.cost), repr(outcome.reward)
            before = merged[key][0] if key in merged else Fraction(0)
            merged[key] = before + chance, following, outcome.cost, (outcome.reward,)
        return list(merged.values())

    # -- playing

    def _at(self, t: int) -> dict[Label, ReachedSituation]:
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
            arrivals = here.arrivals[hidden]
            if known < len(arrivals):  # or every time is read at once, and there is a new way since
                laws[hidden] = len(arrivals), self._agreed(where, state, action, arrivals[known:], law)
                fresh = True
        outcomes = [(share * p, x) for hidden, share in here.belief.items() for p, x in laws[hidden][1]]
        if fresh:
            self._believe(t + 1, where, outcomes)
        return outcomes

    def _agreed(self, where: str, state: Label, action: Label, arrivals: Sequence[Arrival], law: Outcomes) -> Outcomes:
        """Return what follows, the same in all ways and whenever it is played."""
        least = OFTEN if self.count <= CLOSELY and self.repeats > 1 else self.repeats
        for k in range(max(least, len(arrivals)) if not law else len(arrivals)):
            outcomes = self._play(where, state, action, arrivals[k % len(arrivals)], again=k >= len(arrivals))
            law = law or outcomes
            self._compare(where, law, outcomes)
        return law

    def _play(self, where: str, state: Label, action: Label, arrival: Arrival, again: bool) -> Outcomes:
        """Return everything that follows an action; `again` repeats a way that was played."""
        outcomes = []
        history = self.histories.setdefault((arrival.history, state, action), len(self.histories) + 1)
        with _enumerating(where), global_generators_rest():
            for leaf in self.generator.leaves(
                partial(self._back, arrival), partial(self.step, arrival.t, state, action)
            ):
                env, step, choices = leaf.answer
                if step.next_state != END and not again:
                    self._arrive(env, arrival.t + 1, (step.next_state, step.hidden), choices, history)
                outcomes.append((leaf.chance, step))
        return outcomes

    def reset(self, _: None) -> tuple[Label, Label, tuple[Label, ...]]:
        """Begin an episode; return the state, what is hidden, and the actions."""
        env = self.snapshots.env
        with own_generators_rest([self.generator, *self.snapshots.generators(env)]):
            answer = env.reset()
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InvalidOption(f"reset of the environment answered {show(answer)}, must be (observation, info)")
        choices = self.rules.choices(*answer)
        self.masked = self.masked or any(isinstance(x, Mapping) and MASK in x for x in answer)
        return self.rules.state(env, answer[0], "reset"), self.rules.hidden(env, "reset"), choices

    def _back(self, arrival: Arrival) -> Any:
        self.plays += 1  # every play has a seed of its own: what is drawn elsewhere shows somewhere
        return self.snapshots.back(arrival.snapshot, self.plays)

    def step(self, t: int, state: Label, action: Label, env: Any) -> tuple[Any, PlayOutcome, tuple[Label, ...]]:
        """Play an action; return the environment, the outcome, and the actions that may follow."""
        rules, where = self.rules, place(t, state, (action,))
        with own_generators_rest([self.generator, *self.snapshots.generators(env)]):
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
            return env, PlayOutcome(END, None, cost, reward), ()
        hidden, choices = rules.hidden(env, f"t={t + 1}"), rules.choices(observation, info)
        return env, PlayOutcome(following, hidden, cost, reward), choices

    # -- what is known

    def _arrive(self, env: Any, t: int, at: tuple[Label, Label], choices: tuple[Label, ...], history: int) -> None:
        """Remember a situation and the way into it."""
        state, hidden = at
        known = self.known[0] if self.stationary else self.known.setdefault(t, {})
        if state not in known:
            self.count += 1
            check_count_of_states(state, len(known), self.count, self.most, t, self.horizon, self.stationary)
            known[state] = ReachedSituation(choices)
        if not choices:
            raise InvalidOption(f"{place(t, state)}: the action mask allows nothing, must allow an action")
        if known[state].choices != choices:
            self._same(place(t, state), "the tuple of actions", known[state].choices, choices)
        arrivals = known[state].arrivals.setdefault(hidden, [])
        if t < self.horizon and (self.repeats > 1 or not arrivals):
            look = self.snapshots.digest(env)
            if is_to_be_played(arrivals, t, history, look, self.repeats, place(t, state)):
                arrivals.append(Arrival(t, history, look, self.snapshots.keep(env, state)))

    def _believe(self, t: int, by: str, outcomes: Outcomes) -> None:
        """Raise InvalidOption where hidden values are not as likely as after other actions."""
        shares: dict[tuple[Label, str], Belief] = {}
        for chance, x in outcomes:
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
        for law, outcomes in zip(laws, (one, other), strict=True):
            for chance, x in outcomes:
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


# -- arrivals in a situation, and which of them are played

FEW_ARRIVALS, MOST_ARRIVALS = 4, 1000
"""Ways of a situation by other actions that are played, and the most by other draws, all played."""

Belief = dict[Label, Fraction]


class Arrival(NamedTuple):
    """One of the ways in which a situation was reached."""

    t: int
    history: int  # the states and actions before, numbered
    look: bytes | None  # the condition of the environment, None if it is not known
    snapshot: Any  # what is needed to come back


@dataclass(eq=False)
class ReachedSituation:
    """One (t, state): what may be done there, what is hidden, and how to get back."""

    choices: tuple[Label, ...]
    arrivals: dict[Label, list[Arrival]] = field(default_factory=dict)  # by hidden value
    belief: Belief = field(default_factory=dict)


def is_to_be_played(
    arrivals: list[Arrival], t: int, history: int, look: bytes | None, repeats: int, where: str
) -> bool:
    """Return whether another way into a situation is to be played.

    It is not where the environment is in a condition that is played already. Of the rest, those
    that differ in draws alone from one that is played are all played; of those by other actions, or
    at other times, some.

    Raises:
        TooLarge: draws alone make too many ways.
    """
    if not arrivals:
        return True
    if look is not None and any(arrival.look == look for arrival in arrivals):
        return False
    histories = {arrival.history for arrival in arrivals}
    if history in histories:
        if len(arrivals) >= MOST_ARRIVALS:
            why = " (it holds something that cannot be compared, such as an iterator)" if look is None else ""
            raise TooLarge(
                f"{where}: after the same states and actions, draws leave the environment in more than {MOST_ARRIVALS:,} conditions "
                f"that the state does not tell apart{why}, and each would have to be played. A state that says more (state=), "
                "or what matters besides (hidden=), tells them apart; repeats=1 trusts that they make no difference"
            )
        return True
    if t > arrivals[0].t and arrivals[-1].t == arrivals[0].t:
        return True  # the first at a later time, where all times are read at once
    return len(histories) < repeats or (look is not None and len(arrivals) < FEW_ARRIVALS)


# -- whether reset begins anew

REPLAYED_STEPS, REPLAYED_EPISODES = 50, 2
"""The most steps of an episode that is played again, and how many such episodes there are."""


def check_resets(explorer: Explorer) -> None:
    """Raise InvalidOption where an episode, played again with the same draws, goes another way."""
    for kind in range(REPLAYED_EPISODES):
        with global_generators_rest():
            first = _episode(explorer, kind)
        again = _episode(explorer, kind)
        if again == first:  # once more after a short one, for what comes round after every episode
            _episode(explorer, kind, most=1)
            again = _episode(explorer, kind)
        if again != first:
            at = next((k for k, pair in enumerate(zip(first, again, strict=False)) if pair[0] != pair[1]), len(first))
            was = " and ".join(show(events[at]) if at < len(events) else "nothing" for events in (first, again))
            raise InvalidOption(
                f"{f'step {at} after reset' if at else 'reset'}: an episode was played again after reset, with the same "
                f"actions and draws, and what happened was {was}. Something of an episode survives reset, as a place in "
                "recorded data or a count of episodes; a reset that begins anew makes it a game"
            )


def _episode(explorer: Explorer, kind: int, most: int = REPLAYED_STEPS) -> list[Any]:
    """Return what happens from `reset` on, with the first event of each draw, up to an error."""
    generator, env = explorer.generator, explorer.snapshots.env
    events: list[Any] = []
    steps = min(most, explorer.horizon, explorer.limit or most)
    try:
        state, hidden, choices = generator.replay((), lambda: None, explorer.reset)
        events.append((state, hidden, choices))
        for t in range(steps):
            action = choices[(t * kind + kind) % len(choices)]
            play = partial(explorer.step, t, state, action)
            _, played, choices = generator.replay((), lambda: env, play)
            events.append((action, *played.key, choices))
            if played.next_state == END:
                break
            state = played.next_state
    except Exception as error:  # any that the environment raises; where it always does, playing tells of it
        events.append(type(error).__name__)
    return events
