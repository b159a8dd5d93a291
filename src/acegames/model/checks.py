"""Checks of what users say (labels, options, where play begins) and the sentences of errors."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import AceError, InvalidGame, InvalidOption, UnknownPair
from acegames.model.numbers import probability
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM
from acegames.system.limits import SAME_HASH

Label = Hashable
JointAction = tuple[Label, ...]

UNORDERED = (set, frozenset)  # iterated differently from run to run
UNSAID: Any = object()  # an argument that was left out, where None may be a label


def place(
    t: int | None = None, state: Any = None, action: Iterable[Any] | None = None, *, every_t: bool = False
) -> str:
    """Return `t=2, state 'road', action ('dare', 'yield')` for an error message."""
    parts = ["every t"] if every_t else ([] if t is None else [f"t={t}"])
    if state is not None:
        parts.append(f"state {state!r}")
    if action is not None:
        parts.append(f"action {tuple(action)!r}")
    return ", ".join(parts)


def check_count(what: str, value: Any, least: int = 1, error: type[AceError] = InvalidOption) -> int:
    """Check and return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise error(f"{what}: got {value!r}, must be a whole number of at least {least}")
    return int(value)


def check_horizon(horizon: Any) -> int:
    """Check and return a horizon, which is at least one."""
    return check_count("horizon", horizon, error=InvalidGame)


def check_name(name: Any) -> str:
    """Check and return the name of a game, which is text."""
    if not isinstance(name, str):
        raise InvalidGame(f"name: got {name!r:.60}, must be text")
    return name


def check_flag(what: str, value: Any, error: type[AceError] = InvalidOption) -> bool:
    """Check and return True or False, also numpy's."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"{what}: got {value!r:.60}, must be True or False")
    return bool(value)


def check_choice(what: str, choice: Any, known: Sequence[str | None]) -> None:
    """Raise InvalidOption for a word that is not among the known ones."""
    if not isinstance(choice, (str, type(None))) or choice not in known:
        raise InvalidOption(f"{what}: got {show(choice)}, must be one of {', '.join(map(repr, known))}")


def check_rng(rng: Any, hint: str = "") -> np.random.Generator:
    """Return a Generator from one, from a seed, or from None for fresh randomness."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        rule = "must be a Generator, a seed (whole, at least 0) or None"
        raise InvalidOption(f"rng: got {rng!r:.60}, {rule}{hint}") from None


def float_array(what: str, values: Any) -> NDArray[np.float64]:
    """Return an array of floats; InvalidGame for text, complex numbers and masks."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"entries of type {array.dtype}")
        if np.ma.isMaskedArray(values):
            raise TypeError("masked")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidGame(f"{what}: not an array of numbers ({error})") from None


def check_labels(kind: str, labels: Iterable[Any]) -> tuple[Label, ...]:
    """Check labels: return them as plain hashable Python values, of which none occurs twice."""
    if isinstance(labels, str):
        raise InvalidGame(f"{kind}: {labels!r}, must be a sequence of labels such as [{labels!r}], not text")
    if isinstance(labels, UNORDERED):
        raise InvalidGame(f"{kind}: got the set {labels!r:.60}, which has no order; give a list, such as sorted(...)")
    if not is_iterable(labels):
        raise InvalidGame(f"{kind}: got {labels!r:.60}, must be a sequence of labels")
    seen: dict[Label, None] = {}
    for label in check_hashes(kind, [plain_label(kind, raw) for raw in labels]):
        if label in seen:
            raise InvalidGame(f"{kind}: the label {label!r} occurs twice")
        seen[label] = None
    return tuple(seen)


def is_iterable(value: Any) -> bool:
    """Return whether a value can be iterated over."""
    try:
        iter(value)
    except TypeError:
        return False
    return True


def check_hashes(kind: str, labels: Sequence[Label]) -> Sequence[Label]:
    """Return the labels; InvalidGame where so many share a hash that dicts get slow."""
    if (
        len(labels) > SAME_HASH
        and max(Counter(map(hash, labels)).values()) > SAME_HASH
        and len(set(map(repr, labels))) > SAME_HASH
    ):
        raise InvalidGame(f"{kind}: more than {SAME_HASH} labels differ by multiples of 2^61 - 1; use text")
    return labels


def plain_label(kind: str, label: Any) -> Label:
    """Return a label with numpy scalars made plain Python; InvalidGame when it cannot be hashed."""
    if isinstance(label, np.generic):
        label = label.item()
    if type(label) is tuple and not {int, str}.issuperset(map(type, label)):
        return tuple(plain_label(kind, part) for part in label)
    if isinstance(label, float) and math.isnan(label):
        raise InvalidGame(f"{kind}: NaN cannot be a label")
    try:
        hash(label)
    except TypeError:
        raise InvalidGame(f"{kind}: the label {label!r} cannot be hashed; use a string, a number or a tuple") from None
    return label  # type: ignore[no-any-return]


def read_initial(initial: Any) -> dict[Label, float]:
    """Return {state: positive probability} from a state or a mapping."""
    if isinstance(initial, (list, np.ndarray)):
        hint = "; a state must be hashable: write it as a tuple"
        raise InvalidGame(f"initial: got {initial!r:.60}, must be a state, or {{state: probability}}{hint}")
    entries = dict(initial) if isinstance(initial, Mapping) else {plain_label("initial", initial): 1.0}
    chances: dict[Label, float] = {}
    for raw, p in entries.items():
        state = plain_label("initial", raw)
        try:
            prob = probability(p)
        except (TypeError, ValueError):
            raise InvalidGame(f"initial: state {state!r} has probability {p!r}, which is not a number") from None
        if not 0.0 <= prob < math.inf:
            raise InvalidGame(f"initial: state {state!r} has probability {prob}, must be at least 0")
        if prob > 0:
            chances[state] = prob
    return chances


def initial_distribution(initial: Any, states: Sequence[Label]) -> tuple[tuple[int, float], ...]:
    """Return (state index, probability) pairs that sum to 1, sorted."""
    start = read_initial(initial)
    index = {s: i for i, s in enumerate(states) if s in start}  # of all of a large game, it would be large
    if len(index) < len(start):
        check_known("state", start, dict.fromkeys(states), "initial: ", InvalidGame)
    total = math.fsum(start.values())
    if abs(total - 1) > PROBABILITY_SUM:
        raise InvalidGame(f"initial: probabilities sum to {total!r}, must sum to 1 within 1e-8")
    scale = total if abs(total - 1) > PROBABILITY_RENORMALISE else 1.0
    return tuple(sorted((index[s], p / scale) for s, p in start.items()))


def first_state(states: Sequence[Label], initial: Iterable[tuple[int, float]], said: Label) -> Label:
    """Return the initial state that was said to have occurred, or the only one there is."""
    starts = [states[s] for s, _ in initial]
    if said is UNSAID:
        if len(starts) > 1:
            raise InvalidOption(f"start: {len(starts)} initial states, say which one occurred: start(state=...)")
        return starts[0]
    if said not in starts:
        raise UnknownPair(f"start: {said!r} is not an initial state of the game: {show(starts)}")
    return said


def show(value: Any) -> str:
    """Return a value for a message, shortened where it is long."""
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:90]}...{shown[-7:]}"


def unknown(kind: str, value: Any, known: Iterable[Any]) -> str:
    """Return `unknown state 'raod', did you mean 'road'?`, or the list of what there is."""
    by_text = {str(k): k for k in known}
    meant = did_you_mean(value, by_text)
    if meant:
        return f"unknown {kind} {show(value)}{meant}"
    shown = [show(k) for k in list(by_text.values())[:10]] + (["..."] if len(by_text) > 10 else [])
    return f"unknown {kind} {show(value)}, there are {', '.join(shown) or 'none'}"


def did_you_mean(value: Any, by_text: Mapping[str, Any]) -> str:
    """Return `, did you mean 'road'?`, or nothing where no text of what there is comes close."""
    close = difflib.get_close_matches(str(value)[:200], list(by_text)[:10_000], n=1)
    return f", did you mean {by_text[close[0]]!r}?" if close else ""


def counted(number: int, noun: str) -> str:
    """Return a number of things, as `1 entry` or `2 entries`."""
    several = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def are(number: int, noun: str) -> str:
    """Return a number of things after `there`, as `is 1 player` or `are 2 players`."""
    return f"{'is' if number == 1 else 'are'} {counted(number, noun)}"


def check_known(
    kind: str, labels: Iterable[Any], known: Collection[Any], where: str = "", error: type[Exception] = InvalidOption
) -> None:
    """Raise an error for the first label that is not among the known ones."""
    for label in labels:
        if label not in known:
            raise error(where + unknown(kind, label, known))


def read_at(
    where: str, read: Callable[[Any], Any], value: Any, rule: str = "", error: type[AceError] = InvalidGame
) -> Any:
    """Return what `read` makes of a value; its ValueError becomes an error that says where."""
    try:
        return read(value)
    except ValueError as wrong:
        raise error(f"{where}: {wrong}{rule}") from None


def check_keys(where: str, data: Any, known: Sequence[str], required: Sequence[str] = ()) -> None:
    """Raise InvalidGame unless `given` is a mapping with known keys and all the required ones."""
    if not isinstance(data, Mapping):
        raise InvalidGame(f"{where}: {show(data)}, must be a mapping with keys among {', '.join(known)}")
    check_known("key", data, known, f"{where}: ", InvalidGame)
    missing = [key for key in required if key not in data]
    if missing:
        raise InvalidGame(f"{where}: the key {missing[0]!r} is missing")
