"""An environment read as a game by playing every joint action, with everything that chance can do.

    reset, with all that it can draw  ->  states at t = 0;  for each: go back to it, play a joint
    action with all that it can draw  ->  (probability, next state, cost, rewards), states at t + 1

The environment has PettingZoo's parallel interface; agents who take turns are shown in it by
`Turns`, an environment of Gymnasium by `OneAgent`. What is random is drawn from an
`EnumeratingRNG`, which stands in the place of its generators.

There are several ways (`Arrival`) into a situation, by other actions and other draws; what happens
must not depend on the way, else the state does not tell everything. Whatever chance can do after
the same actions is a way of its own, as far as the environment is in another state then: what only
rare draws hide is found, too. What the state does not tell can be named (`hidden`). Then a
situation has a *belief*: how likely each hidden value is. It must be the same whatever led there,
because a policy knows only the state.

Time O(situations * hidden values * joint actions * ways * what chance can do) steps of the
environment; memory a copy of it for each way into the situations of two times.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from acegames.adapters.environments.enumerating_rng import (
    EnumeratingRNG,
    TooManyBranches,
    check_made,
    global_generators_rest,
    own_generators_rest,
    with_enumerating_rng,
)
from acegames.adapters.environments.env_conventions import Conventions
from acegames.adapters.environments.snapshots import Snapshots, constant_parts, entropy_of, generators_in, is_fresh
from acegames.adapters.environments.symbolic_uniform import CannotEnumerate
from acegames.errors import InvalidOption, TooLarge
from acegames.learn.env_protocol import END, MASK, NO_ACTION, EnvAnswer, agents_of, reset_env, step_env
from acegames.model.budgets import warn_of_costless
from acegames.model.checks import check_count, check_flag, check_horizon, read_initial, show
from acegames.model.from_functions import ask_functions, too_many_states
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.user_functions import SUGGESTION, BuildingReporter, OnBuilding, check_optional, note_of_place

OFTEN, CLOSELY = 8, 20
"""The first situations, CLOSELY, are played OFTEN times each, to meet numbers drawn elsewhere."""

SEEDS = (7, 8)
"""With these `reset` is tried, to find out what draws by its seed; in plays it has none."""

LESS = (
    "A state that says less (state=), a shorter horizon and repeats=1 take fewer plays; set_state=, or a copy that is "
    "made faster (__deepcopy__), makes each play faster"
)
FEWER = "A state that says less (state=), a shorter horizon, or a larger most="

Outcomes = list[tuple[Fraction, "PlayOutcome"]]
Choices = tuple[tuple[Label, ...], ...]  # N: the allowed actions of each player


@dataclass(frozen=True, eq=False)
class ReadingOptions:
    """How an environment is to be read; what the options mean is said where users give them."""

    horizon: int
    budget: Any
    constraints: Any
    set_state: Any
    legal: Any
    initial: Any
    stationary: Any
    repeats: int
    most: int
    branches: int
    time_limit: float | None
    progress: OnBuilding | None
    name: str
    timeless: bool = False  # whether `stationary` is the default
    limit: int | None = None  # steps after which a TimeLimit cuts episodes off

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        for what in ("repeats", "most", "branches"):
            check_count(what, getattr(self, what))
        check_optional("set_state", self.set_state, ("env", "state"))
        check_optional("legal", self.legal, ("t", "state", "action"))
        if self.set_state is not None and self.stationary is not None and not self.stationary:
            raise InvalidOption("set_state: cannot be used together with stationary=False: it knows no time")

    @classmethod
    def of(cls, said: Mapping[str, Any], **more: Any) -> ReadingOptions:
        """Return the options among the arguments of a public function, and `more`."""
        return cls(**{f.name: said[f.name] for f in fields(cls) if f.name in said} | more)

    @property
    def pooled(self) -> bool:
        """Whether all times are read at once."""
        by_default = self.timeless or self.set_state is not None
        return by_default if self.stationary is None else check_flag("stationary", self.stationary)


def read_game(env: Any, rules: Conventions, options: ReadingOptions, law_of: Any = None) -> MarkovGame:
    """Return the game of an environment.

    Args:
        env: the environment, with the parallel interface.
        rules: how it is read.
        options: the user's options.
        law_of: `law_of(world)` gives where play begins, or None, and who answers the questions in
            place of an `EnvReader`, for a copy of the environment.
    """
    if options.set_state is not None and rules.hidden_of is not None:
        raise InvalidOption("set_state: cannot be used together with hidden=: it knows the state alone")
    generator = EnumeratingRNG(options.branches)
    reporter = BuildingReporter(
        options.progress, options.horizon, name=options.name, time_limit=options.time_limit, less=LESS
    )
    reporter.suggests = not options.pooled
    with with_enumerating_rng(env, generator, itself=options.set_state is not None) as world:
        shared = [*constant_parts(world), *rules.constant(world)] if options.set_state is None else []
        reader = EnvReader(rules, Snapshots(world, options.set_state, shared), generator, options, reporter)
        answers, start = (reader, None) if law_of is None else law_of(world)
        legal = options.legal
        game = ask_functions(
            players=rules.players,
            horizon=options.horizon,
            initial=reader.begin(options.initial) if start is None else start,
            budget=options.budget,
            constraints=options.constraints,
            actions=answers.actions,
            outcomes=answers.outcomes,
            reward=None,  # it comes with the outcomes
            legal=None if legal is None else lambda t, s, a: s == END or legal(t, s, a),
            stationary=answers is not reader
            and options.pooled
            and legal is None
            and options.horizon < (options.limit or math.inf),
            name=options.name,
            offered=rules.actions,
            reporter=reporter,
        )
    warn_of_costless(game)
    return game


class PlayOutcome(NamedTuple):
    """What one play of a joint action led to."""

    next_state: Label
    hidden: Label
    cost: Any
    rewards: tuple[float, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells plays apart; costs may be arrays."""
        return self.next_state, self.hidden, repr(self.cost), repr(self.rewards)


@dataclass(eq=False)
class EnvReader:
    """Answers the questions of `MarkovGame.from_functions`, time after time, by playing."""

    rules: Conventions
    snapshots: Snapshots
    generator: EnumeratingRNG
    options: ReadingOptions
    reporter: BuildingReporter
    known: dict[int, dict[Label, ReachedSituation]] = field(default_factory=lambda: {0: {}})  # all at 0 if stationary
    # what joint actions lead to, by what is hidden, and in how many ways they were played
    played: dict[tuple[int, Label, JointAction], dict[Label, tuple[int, Outcomes]]] = field(default_factory=dict)
    count: int = 0  # of situations
    plays: int = 0
    now: int = 0
    masked: bool = False
    fixed: set[Any] = field(default_factory=set)  # entropy of generators that are the same in every episode
    histories: dict[Any, int] = field(default_factory=dict)  # the number of each

    @property
    def stationary(self) -> bool:
        """Whether all times are read at once."""
        return self.options.pooled

    @property
    def last(self) -> int:
        """The number of steps of an episode; what comes after the last one does not matter."""
        return min(self.options.horizon, self.options.limit or self.options.horizon)

    # -- the questions

    def begin(self, initial: Any) -> dict[Label, Fraction | float]:
        """Find the states after `reset`; those that the user gives must be among them."""
        wanted = None if initial is None else read_initial(initial)
        shares: dict[Label, Belief] = {}
        env, repeats = self.snapshots.env, self.options.repeats
        with _enumerating("reset"), global_generators_rest():
            self._look_at_seeds()
            for n, leaf in enumerate(self.generator.leaves(lambda: None, self.reset)):
                self.reporter.check()
                state, hidden, choices = leaf.answer
                if wanted is None or state in wanted:
                    self._arrive(env, 0, (state, hidden), choices, 0)
                    belief = shares.setdefault(state, {})
                    belief[hidden] = belief.get(hidden, Fraction(0)) + leaf.chance
                for k in range(OFTEN if n < CLOSELY and repeats > 1 else 0):
                    again = self.generator.replay(leaf.script, lambda: None, self.reset)
                    self._same("reset", "the state, and what is hidden, was", leaf.answer[:2], again[:2])
                    if state in shares:  # what reset may have drawn elsewhere, and no state tells
                        self._arrive(env, 0, (state, hidden), choices, -k - 1)
        if self.snapshots.set_state is not None and not self.masked:
            for state in (s for s in wanted or () if s not in shares):
                self._arrive(env, 0, (state, None), tuple(map(tuple, self.rules.actions)), 0)
                shares[state] = {None: Fraction(1)}
        for state, belief in shares.items():
            self.known[0][state].belief = _normalised(belief)
        if repeats > 1:
            with _enumerating("episodes from reset on"):
                check_resets(self)
        missing = None if wanted is None else next((s for s in wanted if s not in shares), None)
        if missing is not None:
            raise InvalidOption(f"initial: {missing!r} is no state in which reset leaves the environment")
        return dict(wanted) if wanted is not None else {s: sum(b.values(), Fraction(0)) for s, b in shares.items()}

    def actions(self, t: int, state: Label) -> Choices:
        """Return the actions of each player."""
        return ((NO_ACTION,),) * len(self.rules.players) if state == END else self._at(t)[state].choices

    def outcomes(self, t: int, state: Label, action: JointAction) -> list[tuple[Any, Label, Any, tuple[float, ...]]]:
        """Return (probability, next state, cost, rewards) of everything that can happen."""
        if state == END:
            return [(Fraction(1), END, {}, (0.0,) * len(action))]
        limit = self.options.limit
        cut = self.stationary and limit is not None and t + 1 >= limit
        merged: dict[tuple[Label, str, str], tuple[Fraction, Label, Any, tuple[float, ...]]] = {}
        for chance, outcome in self._law(t, state, action):
            following = END if cut else outcome.next_state
            key = following, repr(outcome.cost), repr(outcome.rewards)
            before = merged[key][0] if key in merged else Fraction(0)
            merged[key] = before + chance, following, outcome.cost, outcome.rewards
        return list(merged.values())

    # -- playing

    def _at(self, t: int) -> dict[Label, ReachedSituation]:
        """Return the situations of a time; those of times before it are forgotten."""
        if not self.stationary and t > self.now:
            self.now, self.known, self.played = t, {k: v for k, v in self.known.items() if k >= t}, {}
        return self._known_at(t)

    def _known_at(self, t: int) -> dict[Label, ReachedSituation]:
        return self.known.setdefault(0 if self.stationary else t, {})

    def _law(self, t: int, state: Label, action: JointAction) -> Outcomes:
        """Return what a joint action can lead to, the hidden values averaged over."""
        here, where = self._at(t)[state], place(t, state, action)
        laws = self.played.setdefault((0 if self.stationary else t, state, action), {})
        fresh = False
        for hidden in here.belief:
            known, law = laws.get(hidden, (0, []))
            arrivals = here.arrivals[hidden]
            if known < len(arrivals):  # or every time is read at once, and there is a new way since
                laws[hidden] = len(arrivals), self._agreed(where, state, action, arrivals[known:], law)
                fresh = True
        outcomes = [(share * p, x) for hidden, share in here.belief.items() for p, x in laws[hidden][1]]
        if fresh and (self.stationary or t + 1 < self.options.horizon):
            self._believe(t + 1, where, outcomes)
        return outcomes

    def _agreed(
        self, where: str, state: Label, action: JointAction, arrivals: Sequence[Arrival], law: Outcomes
    ) -> Outcomes:
        """Return what follows, the same in all ways and whenever it is played."""
        repeats = self.options.repeats
        least = OFTEN if self.count <= CLOSELY and repeats > 1 else repeats
        for k in range(max(least, len(arrivals)) if not law else len(arrivals)):
            arrival = arrivals[k % len(arrivals)]
            outcomes = self._play(where, state, action, arrival, again=k >= len(arrivals))
            law = law or outcomes
            self._compare(where, law, outcomes, at_end=self.stationary and arrival.t + 1 >= self.last)
        return law

    def _play(self, where: str, state: Label, action: JointAction, arrival: Arrival, again: bool) -> Outcomes:
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

    def reset(self, _: None) -> tuple[Label, Label, Choices]:
        """Begin an episode; return the state, what is hidden, and the actions."""
        env = self.snapshots.env
        with self._own_rest(env):
            observations, infos = reset_env(env, self.generator.seed)
        there = agents_of(env, self.rules.players)
        choices = self.rules.choices(there, observations, infos)
        entries = [x for part in (observations, infos) if isinstance(part, Mapping) for x in part.values()]
        self.masked = self.masked or any(isinstance(x, Mapping) and MASK in x for x in entries)
        return self.rules.state(env, observations, "reset"), self.rules.hidden(env, "reset"), choices

    def _look_at_seeds(self) -> None:
        """Find out which generators `reset` makes, and refuse where it has drawn from one."""
        made = {}
        for seed in (*SEEDS, None):
            self.generator.seed = seed
            try:
                self.generator.replay((), lambda: None, self.reset)
            finally:
                self.generator.seed = None
            made[seed] = copy.deepcopy(generators_in(self.snapshots.env, self.snapshots.shared))
        own = [set(map(entropy_of, made[seed])) for seed in SEEDS]
        self.fixed = set.intersection(*own)
        check_made(made[SEEDS[0]], made[SEEDS[1]], SEEDS[0])
        unseeded = [x for x in made[None] if entropy_of(x) not in {None, *self.fixed}]
        check_made(unseeded, [None] * len(unseeded), 0)

    def _snapshot(self, env: Any, t: int, state: Label) -> Any:
        """Return what is needed to come back; generators made by `reset` are replaced there."""
        if self.snapshots.set_state is not None:
            return state
        if t > 0:
            return env  # what was played is a copy already
        made = [x for x in generators_in(env, self.snapshots.shared) if type(x) is np.random.Generator]
        fresh = [x for x in made if is_fresh(x, 0) and entropy_of(x) not in self.fixed]
        return self.snapshots.keep(env, {id(x): self.generator for x in fresh})

    def _back(self, arrival: Arrival) -> Any:
        self.plays += 1  # every play has a seed of its own: what is drawn elsewhere shows somewhere
        self.reporter.check()
        return self.snapshots.back(arrival.snapshot, self.plays)

    def step(self, t: int, state: Label, action: JointAction, env: Any) -> tuple[Any, PlayOutcome, Choices]:
        """Play an action; return the environment, the outcome, and the actions that may follow."""
        rules, where = self.rules, place(t, state, action)
        answer = self._answer(t, state, action, env)
        if answer.cut and self.stationary and self.snapshots.set_state is None and t + 1 < self.last:
            raise InvalidOption(
                f"{where}: the environment cuts the episode off after {t + 1} steps, so that it depends on time: leave out "
                f"stationary=True, or take a shorter horizon than {self.options.horizon}"
            )
        rewards = answer.rewards_of(rules.players)
        after, cost = rules.read(env, None if self.stationary else t, state, action, answer, f"t={t + 1}")
        if after == END:
            return env, PlayOutcome(END, None, cost, rewards), ()
        choices = rules.choices(agents_of(env, rules.players), answer.observations, answer.infos)
        return env, PlayOutcome(after, rules.hidden(env, f"t={t + 1}"), cost, rewards), choices

    def _answer(self, t: int, state: Label, action: JointAction, env: Any) -> EnvAnswer:
        """Return what the environment says to a joint action."""
        try:
            with self._own_rest(env):
                return step_env(env, self.rules.env_actions(action), t)
        except Exception as error:
            note_of_place(error, "env.step", t, state, action)
            raise

    def _own_rest(self, env: Any) -> contextlib.AbstractContextManager[None]:
        """Refuse draws from generators that the environment holds."""
        return own_generators_rest([self.generator, *self.snapshots.generators(env)])

    # -- what is known

    def _arrive(self, env: Any, t: int, at: tuple[Label, Label], choices: Choices, history: int) -> None:
        """Remember a situation and the way into it."""
        state, hidden = at
        options = self.options
        known = self._known_at(t)
        if state not in known:
            self.count += 1
            if self.count > options.most:
                earlier = known if self.stationary else self.known.get(t - 1, {})
                advice = FEWER + (f". {SUGGESTION}" if self.reporter.repeats else "")
                raise too_many_states(options.most, self.stationary, t, options.horizon, earlier, known, advice)
            known[state] = ReachedSituation(choices)
        if () in choices:
            raise InvalidOption(f"{place(t, state)}: the action mask allows nothing, must allow an action")
        if known[state].choices != choices:
            raise InvalidOption(
                f"{place(t, state)}: met twice, the actions were {show(known[state].choices)} and {show(choices)}: the "
                f"state does not tell everything that matters; give state=, a function of (env, {self.rules.takes}) that does"
            )
        arrivals = known[state].arrivals.setdefault(hidden, [])
        if t < options.horizon and (options.repeats > 1 or not arrivals):
            look = self.snapshots.digest(env)
            closely = self.count <= CLOSELY
            if is_to_be_played(arrivals, t, history, look, options.repeats, closely, place(t, state)):
                arrivals.append(Arrival(t, history, look, self._snapshot(env, t, state)))

    def _believe(self, t: int, by: str, outcomes: Outcomes) -> None:
        """Raise InvalidOption where hidden values are not as likely as after other actions."""
        shares: dict[tuple[Label, str], Belief] = {}
        for chance, x in outcomes:
            if x.next_state != END:  # a policy knows the state and what was spent
                belief = shares.setdefault((x.next_state, repr(x.cost)), {})
                belief[x.hidden] = belief.get(x.hidden, Fraction(0)) + chance
        for (state, _), belief in shares.items():
            situation = self._known_at(t)[state]
            new = _normalised(belief)
            situation.belief = situation.belief or new
            if situation.belief != new:
                value = next(v for v in (*new, *situation.belief) if new.get(v) != situation.belief.get(v))
                raise InvalidOption(
                    f"{place(t, state)}: the hidden value {show(value)} has probability {situation.belief.get(value, 0)} after "
                    f"one way there and {new.get(value, 0)} after another ({by}), so that what is hidden depends on more than "
                    "the state: a state that says more (state=) makes it a game"
                )

    def _compare(self, where: str, one: Outcomes, other: Outcomes, at_end: bool) -> None:
        """Raise InvalidOption where two plays differ; at the end what follows does not matter."""
        if len(one) == len(other) == 1:
            for what in ("cost", "rewards") if at_end else PlayOutcome._fields:
                before, now = (getattr(law[0][1], what) for law in (one, other))
                if repr(before) != repr(now):
                    self._same(
                        where, f"the {what.replace('_', ' ')} {'were' if what == 'rewards' else 'was'}", before, now
                    )
        laws: list[dict[Any, Fraction]] = [{}, {}]
        for law, outcomes in zip(laws, (one, other), strict=True):
            for chance, x in outcomes:
                key = (None, None, *x.key[2:]) if at_end else x.key
                law[key] = law.get(key, Fraction(0)) + chance
        for key in (*laws[0], *laws[1]):
            had = [law.get(key, Fraction(0)) for law in laws]
            if had[0] != had[1]:
                following, hidden, cost, rewards = key
                more = f", hidden {hidden!r}" if self.rules.hidden_of else ""
                priced = f", cost {cost}" if self.rules.constraints else ""
                event = f"the probability of the next state {following!r} with the rewards {rewards}{priced}{more}"
                self._same(where, f"{event} was", *(float(p) for p in had))

    def _same(self, where: str, what: str, one: Any, other: Any) -> None:
        if show(one) != show(other) or one != other:
            late = " (if time matters, leave out stationary=True)" if self.stationary else ""
            raise InvalidOption(
                f"{where}: played twice, {what} {show(one)} and {show(other)}{late}. Either random numbers come from "
                "elsewhere than self.np_random, which alone can be listed. Or the state does not tell everything that matters: "
                f"then give state=, a function of (env, {self.rules.takes}) that does, or hidden=, a function of env that tells "
                "the rest"
            )


@contextlib.contextmanager
def _enumerating(where: str) -> Iterator[None]:
    """Make errors about what cannot be listed say where."""
    try:
        yield
    except CannotEnumerate as reason:
        raise CannotEnumerate(f"{where}: {reason}. {INSTEAD}") from None
    except TooManyBranches as reason:
        rule = (
            "a larger branches= takes longer; or an environment that draws less, as for pictures alone, or until something fits: that "
            "has no end, a layout that is fixed has"
        )
        raise TooManyBranches(f"{where}: {reason}; {rule}") from None


def _normalised(belief: Belief) -> Belief:
    total = sum(belief.values())
    return {value: share / total for value, share in belief.items()}


INSTEAD = (
    "Else write the law down (MarkovGame.from_functions), or estimate it from recorded steps (acegames.learn.estimate takes "
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

    choices: Choices
    arrivals: dict[Label, list[Arrival]] = field(default_factory=dict)  # by hidden value
    belief: Belief = field(default_factory=dict)


def is_to_be_played(
    arrivals: list[Arrival], t: int, history: int, look: bytes | None, repeats: int, closely: bool, where: str
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
    times = {arrival.t for arrival in arrivals}
    if t not in times and (closely or len(times) == 1):
        return True  # the first at a later time, where all times are read at once
    return len(histories) < repeats or (look is not None and len(arrivals) < FEW_ARRIVALS)


# -- whether reset begins anew

REPLAYED_STEPS, REPLAYED_EPISODES = 50, 2
"""The most steps of an episode that is played again, and how many such episodes there are."""


def check_resets(reader: EnvReader) -> None:
    """Raise InvalidOption where an episode, played again with the same draws, goes another way."""
    for kind in range(REPLAYED_EPISODES):
        with global_generators_rest():
            first = _episode(reader, kind)
        again = _episode(reader, kind)
        if again == first:  # once more after a short one, for what comes round after every episode
            _episode(reader, kind, most=1)
            again = _episode(reader, kind)
        if again != first:
            at = next((k for k, pair in enumerate(zip(first, again, strict=False)) if pair[0] != pair[1]), len(first))
            was = " and ".join(show(events[at]) if at < len(events) else "nothing" for events in (first, again))
            raise InvalidOption(
                f"{f'step {at} after reset' if at else 'reset'}: an episode was played again after reset, with the same "
                f"actions and draws, and what happened was {was}. Something of an episode survives reset, as a place in "
                "recorded data or a count of episodes; a reset that begins anew makes it a game"
            )


def _episode(reader: EnvReader, kind: int, most: int = REPLAYED_STEPS) -> list[Any]:
    """Return what happens from `reset` on, with the first event of each draw, up to an error."""
    generator, env = reader.generator, reader.snapshots.env
    events: list[Any] = []
    try:
        state, hidden, choices = generator.replay((), lambda: None, reader.reset)
        events.append((state, hidden, choices))
        for t in range(min(most, reader.last)):
            action = tuple(own[(t * kind + kind) % len(own)] for own in choices)
            _, played, choices = generator.replay((), lambda: env, partial(reader.step, t, state, action))
            events.append((action, *played.key, choices))
            if played.next_state == END:
                break
            state = played.next_state
    except Exception as error:  # any that the environment raises; where it always does, playing tells of it
        events.append(type(error).__name__)
    return events
