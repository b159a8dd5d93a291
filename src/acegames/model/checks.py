"""Checks of what users say about a game: labels, the horizon, where play begins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import AceError, InvalidGame, InvalidOption, UnknownPair
from acegames.model.numbers import probability
from acegames.model.written import check_known, show
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
    """Return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise error(f"{what}: got {value!r}, must be a whole number of at least {least}")
    return int(value)


def check_horizon(horizon: Any) -> int:
    """Return the horizon as an int of at least one."""
    return check_count("horizon", horizon, error=InvalidGame)


def check_name(name: Any) -> str:
    """Return the name of a game, which is text."""
    if not isinstance(name, str):
        raise InvalidGame(f"name: got {name!r:.60}, must be text")
    return name


def check_flag(what: str, value: Any, error: type[AceError] = InvalidOption) -> bool:
    """Return True or False, which may be numpy's."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"{what}: got {value!r:.60}, must be True or False")
    return bool(value)


def check_choice(what: str, given: Any, known: Sequence[str | None]) -> None:
    """Raise InvalidOption for a word that is not among the known ones."""
    if not isinstance(given, (str, type(None))) or given not in known:
        raise InvalidOption(f"{what}: got {show(given)}, must be one of {', '.join(map(repr, known))}")


def check_rng(rng: Any, hint: str = "") -> np.random.Generator:
    """Return a Generator from one, from a seed, or from None for fresh randomness."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        rule = "must be a Generator, a seed (whole, at least 0) or None"
        raise InvalidOption(f"rng: got {rng!r:.60}, {rule}{hint}") from None


def float_array(what: str, given: Any) -> NDArray[np.float64]:
    """Return an array of floats; InvalidGame for text, complex numbers and masks."""
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"entries of type {array.dtype}")
        if np.ma.isMaskedArray(given):
            raise TypeError("masked")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidGame(f"{what}: not an array of numbers ({error})") from None


def check_labels(kind: str, labels: Iterable[Any]) -> tuple[Label, ...]:
    """Return labels as plain hashable Python values, each once."""
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


def is_iterable(given: Any) -> bool:
    """Return whether a value can be gone through."""
    try:
        iter(given)
    except TypeError:
        return False
    return True


def check_hashes(kind: str, labels: Sequence[Label]) -> Sequence[Label]:
    """Return the labels; InvalidGame where so many share a hash that dicts of them get slow."""
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
    if type(label) is tuple:
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
    given = dict(initial) if isinstance(initial, Mapping) else {plain_label("initial", initial): 1.0}
    found: dict[Label, float] = {}
    for raw, p in given.items():
        state = plain_label("initial", raw)
        try:
            prob = probability(p)
        except (TypeError, ValueError):
            raise InvalidGame(f"initial: state {state!r} has probability {p!r}, which is not a number") from None
        if not 0.0 <= prob < math.inf:
            raise InvalidGame(f"initial: state {state!r} has probability {prob}, must be at least 0")
        if prob > 0:
            found[state] = prob
    return found


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
