"""Public functions as users call them, and the functions that users hand over.

These are the rules of a game and callbacks of progress. They are checked before their first call.
Only signatures are looked at, so a TypeError from inside a user's function passes through as it is.
"""

from __future__ import annotations

import functools
import inspect
import logging
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from acegames.errors import AceError, GameWarning, InvalidGame, InvalidOption, TooLarge
from acegames.model.checks import counted, show, unknown
from acegames.system.machine import memory_guard
from acegames.system.progress import EXPLORING, ProgressReporter, bar

log = logging.getLogger("acegames")

P = ParamSpec("P")
R = TypeVar("R")

OF_SOLVING = {
    "threads": "engine=LocalEngine(threads=...) says how many threads to use",
    "objective": "it belongs to the concept, such as CCE(objective='welfare')",
    "floor": "it belongs to the concept, such as CCE(floor=2)",
    "backend": "it belongs to the concept, such as Nash(backend='gambit')",
}
SEED = {"seed": "rng=... takes a seed, or a Generator"}
TOLERANCE = {"tolerance": "tol=... is the largest gain that is accepted"}


def public(
    name: str = "",
    *,
    progress: str = "",
    begins: str = EXPLORING,
    memory: tuple[str, str] | None = None,
    instead: Mapping[str, str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function that users call, of which tracebacks show no line.

    Args:
        name: the public name, which TypeErrors about arguments use; none where a public function
            that has checked them calls it. An object that has a method of this name is said to
            have it.
        progress: the first step of the work, such as "checking", where the function takes
            `progress`: what the user gives becomes a callback, or None for silence.
        begins: what is done before the work tells anything.
        memory: what memory may run out for, such as "building the game", and a clause on what takes
            less.
        instead: what to write in place of an argument that the function does not have.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            __tracebackhide__ = True  # notebooks and pytest leave this frame out
            if name:
                _check_arguments(name, signature, instead or {}, args, kwargs)
            with memory_guard(*memory) if memory else nullcontext():
                if not progress:
                    return function(*args, **kwargs)
                with progress_callback(kwargs.get("progress"), progress, begins) as callback:
                    kwargs["progress"] = callback
                    return function(*args, **kwargs)

        return called

    return decorate


def _check_arguments(
    name: str, signature: inspect.Signature, instead: Mapping[str, str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Raise a TypeError with the public name where a function does not take these arguments."""
    __tracebackhide__ = True
    any_name = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for given_name in kwargs:
        if given_name in instead:
            raise TypeError(f"{name}: unknown argument {given_name!r}; {instead[given_name]}")
        if given_name not in signature.parameters and not any_name:
            known = [known for known in signature.parameters if known != "self"]
            raise TypeError(f"{name}: {unknown('argument', given_name, known)}")
    try:
        signature.bind(*args, **kwargs)
    except TypeError as wrong:
        kind = type(args[0]).__name__ if args else ""
        own = f"; a {kind} has a method of its own: {kind.lower()}.{name}()"
        raise TypeError(f"{name}: {wrong}{own if args and hasattr(args[0], name) else ''}") from None


def policy_of(policy: Any) -> Any:
    """Return the policy of a solution; a policy, which has a `distribution`, as it is."""
    own = policy if hasattr(policy, "distribution") else getattr(policy, "policy", policy)
    return policy if inspect.ismethod(own) else own


def check_engine(engine: Any, *, fits: bool, what: str = "an engine") -> None:
    """Refuse what lacks the methods of an engine (`fits`), and a class that was not called."""
    if fits and isinstance(engine, type):
        raise InvalidOption(f"engine: got the class {engine.__name__}, must be an engine; call it: {engine.__name__}()")
    if not fits:
        raise InvalidOption(
            f"engine: got {engine!r:.60}, must be {what} such as LocalEngine(), RayEngine() or GPUEngine()"
        )


def read_spaces(env: Any, agents: Sequence[Any]) -> list[Any]:
    """Return the action spaces of agents; an environment that makes them in `reset` is reset."""
    try:
        return [env.action_space(agent) for agent in agents]
    except AttributeError:
        env.reset()
        return [env.action_space(agent) for agent in agents]


def check_function(
    name: str,
    function: Any,
    takes: Sequence[str] = (),
    *,
    keywords: Sequence[str] = (),
    error: type[AceError] = InvalidOption,
    rule: str = "it must accept these arguments",
) -> None:
    """Refuse what is not a function, or cannot be called with the arguments that it will get.

    Args:
        name: what the user calls it, as "reward" or "policy.distribution".
        function: what the user gave. It is accepted where Python does not know its signature.
        takes: names of the arguments that it gets by position.
        keywords: names of those that it gets by keyword.
        error: InvalidGame where the function describes a game.
        rule: what the error says in the end.
    """
    call = f"{name}({', '.join([*takes, *(f'{k}=...' for k in keywords)])})"
    if not callable(function):
        raise error(f"{name}: got {function!r:.60}, must be a function that can be called as {call}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*takes, **dict.fromkeys(keywords))
    except TypeError as reason:
        own = ", ".join(str(p.replace(annotation=inspect.Parameter.empty)) for p in signature.parameters.values())
        mismatch = f"takes ({own:.100}), but is called as {call} ({reason})"
        raise error(f"{name}: {mismatch}; {rule}") from None


def check_optional(name: str, function: Any, takes: Sequence[str], error: type[AceError] = InvalidOption) -> None:
    """Check a function as `check_function` does, where one is given."""
    if function is not None:
        check_function(name, function, takes, error=error)


def roles(what: str, function: Any, outcomes: Any = None) -> tuple[str, ...]:
    """Return which of (t, state, action, next_state) a function of a game gets, in order.

    How many arguments it needs decides. For a reward of three their names do; if they are those of
    `outcomes`, they mean the same.

    Raises:
        InvalidGame: it is no function, cannot be called so, or a name says that an argument is in
            the wrong place.
    """
    names, more = needed_arguments(function)
    own = f"{what}: takes ({', '.join([*names, *['...'] * more])})"
    late = [name for name in names[1:] if name.lstrip("_") in CLOCK]
    if late:
        right = ", ".join([late[0], *(name for name in names if name != late[0])])
        raise InvalidGame(f"{own}, but the time is the first argument: write {what}({right})")
    needed = [] if more else [name.lstrip("_") for name in names]
    takes: tuple[str, ...] = ROLES[:2] if what == "actions" else ROLES[:3]
    if what == "reward" and (
        len(needed) == 4
        or (len(needed) == 3 and names != needed_arguments(outcomes)[0] and _is_given_next(own, needed))
    ):
        takes = ROLES
    if len(needed) == len(takes) - 1 and needed[0] not in CLOCK:
        takes = takes[1:]
    check_function(what, function, takes, error=InvalidGame, rule=_forms(what))
    swapped = dict(zip(takes, names, strict=False))
    if (swapped.get("state"), swapped.get("action")) == ("a", "s"):
        raise InvalidGame(f"{own}, but is called as {what}({', '.join(takes)}): the state stands before the action")
    for name, role in zip(names, takes, strict=False):
        means = "next_state" if name == "next_s" else "state" if name == "s" and role == "t" else name
        if means in ROLES and means != role:
            call = f"{what}({', '.join(takes)})"
            got = "the time" if role == "t" else f"the {role.replace('_', ' ')}"
            raise InvalidGame(f"{own}, but is called as {call}, so that {name!r} would be {got}; {_forms(what)}")
    return takes


def _forms(what: str) -> str:
    """Return how such a function may be written."""
    takes = ROLES[:2] if what == "actions" else ROLES[:3]
    ways = [f"{what}({', '.join(some)})" for some in (takes, takes[1:])]
    if what == "reward":
        ways += [f"{what}({', '.join(some)})" for some in (ROLES, ROLES[1:])]
    one = "" if what == "actions" else "; action is one tuple, with the action of each player"
    return f"write {', '.join(ways[:-1])} or {ways[-1]}{one}"


ROLES = ("t", "state", "action", "next_state")
CLOCK = ("t", "time")
_STATE = ("s", "state")
_TIME = re.compile(r"t\d*|tau|time\w*|step|stage|period|hour|day")
_MAYBE_TIME = ("", "h", "k")  # the first one was only underscores
_ACTION = re.compile(r"a_?\d*|acts?|actions?_?\d*|joint\w*")
_NEXT = re.compile(
    r"(next|nxt|after|succ|new_)\w*|\w+_(next|new|prime|after)|new|later|following|s_|s1|sp|sprime|ns|\w+2"
)


def _is_given_next(own: str, names: list[str]) -> bool:
    """Return whether names say that a reward of three arguments is (state, action, next_state).

    It is one of (t, state, action) where names do not decide, and a GameWarning says so.
    """
    first, second, last = names
    if _ACTION.fullmatch(last):
        return False
    if last.startswith("next") or first in _STATE:
        return True
    if _TIME.fullmatch(first) or second in _STATE:
        return False
    acts = _ACTION.fullmatch(second) is not None
    if _NEXT.fullmatch(last) or (acts and (first or second != "a")):
        return True
    if acts or first not in _MAYBE_TIME:
        warn_of_game(
            f"{own}, which is read as (t, state, action). To say so, call the first argument t; "
            "for (state, action, next_state), call the last one next_state"
        )
    return False


def needed_arguments(function: Any) -> tuple[list[str], bool]:
    """Return the arguments by position that have no default, and whether any number may follow.

    Where Python does not know the signature, there are none, and any number may follow.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [], True
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in by_position and p.default is inspect.Parameter.empty]
    return names, any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)


RAISED_BY = "raised by"


def note_of_place(error: BaseException, what: str, t: int, *where: Any) -> None:
    """Add a note that says in which function an error was raised, and where in the game.

    The first who knows says it. Errors of acegames name their place themselves.

    Args:
        error: what was raised.
        what: what the user calls the function, as "reward" or "env.step".
        t: the time.
        where: the state, the joint action and the next state, as many as the function is given.
    """
    noted = any(note.startswith(RAISED_BY) for note in getattr(error, "__notes__", ()))
    if not noted and not isinstance(error, AceError):
        names = ("state", "action", "next state")
        spot = [f"{name} {show(value)}" for name, value in zip(names, where, strict=False)]
        error.add_note(f"{RAISED_BY} {what} at {', '.join([f't={t}', *spot])}")


def warn_of_game(said: str) -> None:
    """Warn of a game, at the line outside of acegames that led here."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("acegames", "contextlib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(said, GameWarning, stacklevel=level)


# Callbacks of progress.


def check_progress(progress: Any) -> None:
    """Raise InvalidOption for what is neither a callback nor True, False or None."""
    if progress is None or isinstance(progress, bool):
        return
    if not callable(progress):
        rule = "must be True for a bar, False, or a function that can be called as progress(progress)"
        raise InvalidOption(f"progress: got {progress!r:.60}, {rule}")
    check_function("progress", progress, ("progress",))


@contextmanager
def progress_callback(progress: Any, step: str, begins: str = EXPLORING) -> Iterator[Callable[[Any], None] | None]:
    """Yield the callback that `progress` asks for, while the work goes on; None for silence.

    Args:
        progress: what the user gave.
        step: the first step of the work, such as "checking".
        begins: what is done before the work tells anything.
    """
    check_progress(progress)
    if progress is True:
        with bar(step, begins) as show:
            yield show
    else:
        yield progress or None


BUILDING = ("building the game", "fewer states, joint actions or outcomes take less, as does a shorter horizon")
"""What memory may run out for, and what takes less of it."""
DISCOVERING = "finding the states that can occur"
"""What is done before the building of a game tells anything."""


@dataclass(frozen=True)
class Building:
    """How far the building of a game has got; passed to the `progress` callback now and then.

    Functions and environments tell it before each time, with the states that there are then; all
    builders after each time.
    """

    times_done: int
    times: int  # the horizon
    states_done: int  # of the states at this time
    states: int
    seconds: float
    asked: int = 0  # joint actions whose outcomes were asked for, or played, so far
    repeats: bool = False  # whether all that was asked at several times was answered alike
    step = "building"

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1, as if all times had as many states."""
        within = self.states_done / self.states if self.states_done < self.states else 0.0
        return (self.times_done + within) / self.times

    @property
    def parts(self) -> list[str]:
        """What there is to say, the most important first."""
        states = f"{self.states_done:,}/{self.states:,} states of a time"
        asked = [f"{self.asked:,} joint actions"] if self.asked else []
        return [f"time {self.times_done:,}/{self.times:,}", states, *asked, *[SUGGESTION] * self.repeats]


OnBuilding = Callable[[Building], None]
"""The type of `progress=` of builders: a function that is called with a `Building` now and then."""

SUGGESTION = "stationary=True asks once for each state, where no answer depends on the time"
PATIENCE = 3
"""What takes this many times as long as the limit of time is not waited for."""
TRIED, SELDOM = 50, 32
"""Joint actions after which the pace is known, and from one report to another, where they are
quick."""


def check_time_limit(seconds: Any) -> float:
    """Return a number of seconds, infinite for None; InvalidOption for anything else."""
    if seconds is None:
        return math.inf
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not float(seconds) > 0:
        raise InvalidOption(f"time_limit: got {seconds!r}, must be a positive number of seconds, or None")
    return float(seconds)


class BuildingReporter(ProgressReporter):
    """Calls the callback with a `Building`, not too often, and stops when time is up.

    Args:
        progress: the callback.
        times: the horizon.
        name: of the game, for messages.
        time_limit: the most seconds to take.
        less: a sentence on what takes less time.
    """

    def __init__(
        self,
        progress: OnBuilding | None,
        times: int,
        *,
        name: str = "",
        time_limit: float | None = None,
        less: str = "",
    ) -> None:
        super().__init__(None, "building", times, 0)  # `report` gives a Building in place of a Progress
        self.on_building, self.limit, self.less = progress, check_time_limit(time_limit), less
        self.called = f"{name}: " if name else ""
        self.asked, self.time_begun = 0, self.begun
        self.repeats, self.suggests = False, True  # whether all was answered as before, and that is worth saying

    def repeated(self, answered_alike: bool, met_again: bool) -> None:
        """Say whether a time was answered as earlier ones, and shares a state with them."""
        self.repeats = self.suggests and answered_alike and (self.repeats or met_again)

    def time(self, states: int) -> None:
        """Say how many states there are at a time, of which nothing was asked yet."""
        self.pairs_done, self.pairs, self.time_begun = 0, states, time.perf_counter()
        t = self.layers_done
        log.info(
            f"{self.called}t={t} of {self.layers}: {counted(states, 'state')}; {self.asked:,} joint actions so far"
        )
        self.report()

    def states(self, done: int, states: int, times: int = 1) -> None:
        """Count the states that are done; with the last of them, so many times are done."""
        self.pairs_done, self.pairs = done, states
        if done == states:
            self.layers_done += times
            self.report()
        else:
            self._now_and_then()

    def joint_action(self) -> None:
        """Count a joint action that is asked about; TooLarge when time is up."""
        self.asked += 1
        if not self.asked % SELDOM or time.perf_counter() - self.begun > self.limit:
            self.check()

    def check(self) -> None:
        """Call the callback now and then; TooLarge when time is up."""
        if time.perf_counter() - self.begun > self.limit:
            raise self._too_slow(f" within the time_limit of {self.limit:g} seconds")
        self._now_and_then()

    def report(self) -> None:
        """Call the callback."""
        self.reported = time.perf_counter()
        if self.on_building is not None:
            done = self.layers_done, self.layers, self.pairs_done, self.pairs
            self.on_building(Building(*done, self.reported - self.begun, self.asked, self.repeats))

    def _now_and_then(self) -> None:
        if not self.due:
            return
        self.report()
        if not self.pairs_done or self.asked < TRIED or math.isinf(self.limit):
            return
        left = (self.reported - self.time_begun) / self.pairs_done * (self.pairs - self.pairs_done)
        if left > PATIENCE * self.limit:
            rest = f"the rest of this time alone would take about {left:,.0f} seconds"
            raise self._too_slow(f"; {rest}, the time_limit is {self.limit:g}")

    def _too_slow(self, why: str) -> TooLarge:
        """Return an error that says how far it came, and what takes less."""
        t, done = self.layers_done, f"{self.pairs_done:,} of {counted(self.pairs, 'state')} were done"
        hint = f". {SUGGESTION}" if self.repeats else ""
        asked = counted(self.asked, "joint action")
        return TooLarge(
            f"{self.called}came to t={t} of {self.layers}, where {done} ({asked}){why}. {self.less}{hint}", t=t
        )
