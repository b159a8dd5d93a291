"""Ask the policy, and check that each answer is a distribution over legal joint actions.

Pairs are asked in bulk where the policy can answer so:

    rows(t, state (Q,), total (Q, M)) -> ptr (Q+1,), row (E,), probability (E,)

with states by index, totals in whole `tracker.units` and joint actions as rows of what
`joint_actions(t)` gives, which must be those of the game; else one by one (`distribution`). It must
say what `distribution` says: some pairs of each time are asked both ways. Where `rows` has no
proper answer at some of the pairs that it is asked for, it is asked for each half of them, and
where it has none at a single pair, `distribution` is asked. So answers do not depend on what is
asked together. Under Nash the players must draw independently: every joint action is as probable as
the players' own probabilities say.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import getitem
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats, Ints
from acegames.model.game import JointAction, MarkovGame
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM, PRODUCT
from acegames.verifier.basics import ALONE, BELOW, LIMITS, BlockThreads, offsets, owners
from acegames.verifier.pair_keys import ExactUnits, Number, Spent


class PairAnswer(NamedTuple):
    """What the policy says at one pair. A row is in the support however small its probability."""

    rows: tuple[int, ...]  # rows of the layer with positive probability
    probs: tuple[float, ...]  # sums to one
    fault: str | None = None  # a sentence when the answer is no distribution over legal joint actions


@dataclass(frozen=True, eq=False)
class PolicyAnswers:
    """What the policy says at P pairs. Those where it is at fault have no entries."""

    ptr: Ints  # (P+1,) entries of pair p are ptr[p] : ptr[p+1]
    row: Ints  # (Z,)
    prob: Floats  # (Z,)
    faults: dict[int, str]  # a sentence for each pair at fault, ascending


class _Fault(Exception):
    """Why an answer is no distribution over legal joint actions."""


class Reader:
    """Puts each question to the policy once, unless there are very many."""

    def __init__(
        self, game: MarkovGame, policy: Any, units: ExactUnits, *, rounded: bool = False, product: bool = False
    ) -> None:
        self.game, self.policy, self.units, self.rounded, self.product = game, policy, units, rounded, product
        # the first pair, and a sentence, where players who must be independent are not ("product"),
        # and, of the last time, where `rows` contradicts `distribution` ("rows")
        self.noted: dict[str, tuple[Any, str]] = {}
        self._lock = threading.Lock()
        self._answers: dict[tuple[int, int, Spent], PairAnswer] = {}
        self._rows: dict[tuple[int, int], dict[JointAction, int]] = {}
        self.lacking = _lacking(game, policy, units)  # why it is not asked in bulk, in words
        self._ratios = _ratios(policy, units) if self.lacking is None else []
        self._same_rows: dict[int, bool] = {}  # by time

    def ask(self, t: int, state: int, spent: Spent) -> PairAnswer:
        """Return the policy's checked answer; never raises."""
        key = (t, state, spent)
        answer = self._answers.get(key)
        if answer is None:
            try:
                answer = self._checked(t, state, spent)
            except _Fault as fault:
                answer = PairAnswer((), (), f"At {self.place(t, state, spent)}: {fault}.")
            if len(self._answers) < LIMITS.remembered:
                self._answers[key] = answer
        return answer

    @cached_property
    def alone(self) -> str | None:
        """Why only one may ask the policy at a time, in words; None where several threads may."""
        if self.lacking is not None:
            return f"the policy, of class {type(self.policy).__name__}, {self.lacking}"
        owner = _owner(self.policy)
        if vars(owner).get("thread_safe") is not True:
            return f"the class {owner.__name__}, which has the policy's distribution and rows, does not say thread_safe = True"
        try:
            safe = self.policy.thread_safe is True
        except Exception:  # a judge must not fall over what it judges
            safe = False
        return None if safe else f"the policy, of class {type(self.policy).__name__}, has another thread_safe than True"

    def drawn(self, t: int, pairs: int) -> Ints:
        """Draw pairs, by number, at which `rows` is compared with `distribution`, of so many."""
        count = max(1, LIMITS.compared // self.game.horizon) * -(-pairs // LIMITS.compared_of)
        rng = Random(t)
        return np.array(sorted({rng.randrange(pairs) for _ in range(count)}), dtype=np.int64)

    def read(self, t: int, state: Ints, spent: Ints, compared: Ints) -> PolicyAnswers:
        """Return the checked answers at pairs (P,), (P, M); never raises.

        At pairs of these numbers `rows` is compared with `distribution`.
        """
        answers, _ = self._read(t, state, spent)
        for p in compared.tolist() if self.lacking is None else []:
            self._compare(t, int(state[p]), tuple(spent[p].tolist()), answers, p)

        def pair_of(p: int) -> tuple[int, Spent]:
            return int(state[p]), tuple(spent[p].tolist())

        wrong = correlated(self.game.layer(t).action, answers, pair_of) if self.product else None
        if wrong is not None:
            p, action, prob, apart = wrong
            pair = pair_of(p)
            sentence = (
                f"At {self.place(t, *pair)}: the players do not draw independently: {self.game.joint_action(action)!r} is "
                f"played with probability {prob:.6g}, and would be with {apart:.6g} if they did."
            )
            self.take({"product": ((t, *pair), sentence)})
        return answers

    def _read(self, t: int, state: Ints, spent: Ints) -> tuple[PolicyAnswers, bool]:
        """Return the checked answers at pairs, and whether `rows` has no proper ones."""
        if self.lacking is not None or not self._numbers_as_the_game(t) or not len(state):
            return self._read_singly(t, state, spent), False
        answers, half = self._bulk(t, state, spent), len(state) // 2
        if answers is not None:
            return answers, False
        if half:
            one, two = (self._read(t, state[part], spent[part]) for part in (slice(half), slice(half, None)))
            answers, known = joined_answers([one[0], two[0]], ALONE), one[1] or two[1]
        else:
            answers, known = self._read_singly(t, state, spent), False
        if not answers.faults and not known:  # it says something else, or fails only together
            self._note(t, int(state[0]), tuple(spent[0].tolist()), nearby=" or beside it" if half else "")
        return answers, True

    def _numbers_as_the_game(self, t: int) -> bool:
        """Return whether the rows of the policy's answers are those of the game."""
        if t not in self._same_rows:
            layer = self.game.layer(t)
            try:
                row_ptr, action = self.policy.joint_actions(t)
                same = np.array_equal(row_ptr, layer.row_ptr) and np.array_equal(action, layer.action)
            except Exception:  # a judge must not fall over what it judges
                same = False
            self._same_rows[t] = same
        return self._same_rows[t]

    def _bulk(self, t: int, state: Ints, spent: Ints) -> PolicyAnswers | None:
        """Return what `rows` says at pairs; None where that is not an answer at each of them."""
        from acegames.verifier.pair_kernels import check_answers

        total = _in_units(spent, self._ratios)
        if total is None:
            return None
        try:  # the policy may write into what it is given
            ptr, row, prob = (np.asarray(x) for x in self.policy.rows(t, state.copy(), total.copy()))
        except Exception:
            return None
        if not _well_formed(ptr, row, prob, len(state)):
            return None
        ptr, row = (np.array(x, dtype=np.int64) for x in (ptr, row))  # they may be the policy's own
        prob = np.ascontiguousarray(prob, dtype=np.float64)
        if not prob.all():  # what is not played may be said, too
            if (np.diff(ptr) < 0).any():
                return None
            played = prob != 0
            ptr, row, prob = offsets(played)[ptr], row[played], prob[played]
        chance, (row_ptr, *_) = np.empty(len(prob)), self.units.steps[self.game.layer_at[t]]
        right = check_answers(state, row_ptr, ptr, row, prob, chance)
        return PolicyAnswers(ptr, row, chance, {}) if right else None

    def _read_singly(self, t: int, state: Ints, spent: Ints) -> PolicyAnswers:
        pairs = zip(state.tolist(), map(tuple, spent.tolist()), strict=True)
        answers = [self.ask(t, s, c) for s, c in pairs]
        return PolicyAnswers(
            offsets(np.array([len(answer.rows) for answer in answers], dtype=np.int64)),
            np.array([row for answer in answers for row in answer.rows], dtype=np.int64),
            np.array([prob for answer in answers for prob in answer.probs], dtype=np.float64),
            {p: answer.fault for p, answer in enumerate(answers) if answer.fault},
        )

    def _compare(self, t: int, state: int, spent: Spent, answers: PolicyAnswers, p: int) -> None:
        """Ask again, singly, at one pair."""
        single = self.ask(t, state, spent)
        begin, end = answers.ptr[p : p + 2].tolist()
        rows, probs = answers.row[begin:end].tolist(), answers.prob[begin:end].tolist()
        bulk = dict(zip(rows, probs, strict=True))
        same_support = bulk.keys() == set(single.rows) and len(bulk) == len(rows)
        if not same_support or any(
            abs(bulk[r] - q) > PROBABILITY_RENORMALISE for r, q in zip(single.rows, single.probs, strict=True)
        ):
            self._note(t, state, spent)

    def _note(self, t: int, state: int, spent: Spent, nearby: str = "") -> None:
        where = self.place(t, state, spent) + nearby
        sentence = f"At {where}: the policy's `rows` does not say what its `distribution` says."
        self.take({"rows": ((-t, state, spent), sentence)})

    def take(self, noted: Mapping[str, tuple[Any, str]]) -> None:
        """Take in what this reader, or another one, has found."""
        with self._lock:
            for what, first in noted.items():
                self.noted[what] = min(self.noted.get(what, first), first)

    def user(self, t: int, state: int, spent: Spent) -> tuple[int, Any, tuple[Number, ...]]:
        """Return a pair in the user's labels and units."""
        return t, self.game.states[state], self.units.user(spent)

    def place(self, t: int, state: int, spent: Spent) -> str:
        """Return a pair as words for a sentence."""
        rounded = " in rounded costs" if self.rounded else ""
        return f"t={t}, state {self.game.states[state]!r}, spent {self.units.user(spent)!r}{rounded}"

    def unsafe(self, t: int, state: int, spent: Spent, row: int) -> str:
        """Return the sentence for a joint action that is played and is not in FA."""
        action = self.game.joint_action(self.game.layer(t).action[row])
        counting = ", with costs rounded as the policy rounds them" if self.rounded else ""
        return (
            f"At {self.place(t, state, spent)}: the policy may play {action!r}, "
            f"after which no policy keeps every budget with probability one{counting}."
        )

    def rows(self, t: int, state: int) -> dict[JointAction, int]:
        """Return the legal joint actions of a state by their labels."""
        key = (self.game.layer_at[t], state)
        if key not in self._rows:
            layer, labels = self.game.layer(t), self.game.actions
            first, end = layer.row_ptr[state : state + 2].tolist()
            legal = enumerate(layer.action[first:end].tolist(), first)
            self._rows[key] = {tuple(map(getitem, labels, action)): row for row, action in legal}
        return self._rows[key]

    def _checked(self, t: int, state: int, spent: Spent) -> PairAnswer:
        try:
            answer = self.policy.distribution(*self.user(t, state, spent))
        except KeyError as error:
            raise _Fault(f"the policy has no answer there ({error})") from None
        except Exception as error:  # a judge must not fall over what it judges
            raise _Fault(f"the policy failed with {type(error).__name__}: {error}") from None
        if not isinstance(answer, Mapping):
            raise _Fault(f"the policy answered {answer!r}, must be {{joint action: probability}}")
        legal = self.rows(t, state)
        rows, probs = [], []
        for action, p in answer.items():
            try:
                prob, positive, zero = float(p), bool(p > 0), bool(p == 0)
            except (TypeError, ValueError, OverflowError):
                raise _Fault(f"action {action!r} has probability {p!r}, which is not a number") from None
            if zero:
                continue
            if not positive:
                raise _Fault(f"action {action!r} has probability {p!r}, must be at least 0")
            if action not in legal:
                raise _Fault(f"action {action!r} has probability {prob:.3g} and is not legal")
            rows.append(legal[action])
            probs.append(prob)
        total = math.fsum(probs) if all(map(math.isfinite, probs)) else math.inf
        if not abs(total - 1) <= PROBABILITY_SUM:
            raise _Fault(f"probabilities sum to {total!r}, must sum to 1")
        return PairAnswer(tuple(rows), tuple(p / total for p in probs))


def joined_answers(parts: list[PolicyAnswers], threads: BlockThreads) -> PolicyAnswers:
    """Return the answers of all parts, one after the other."""
    faults, pointers, pairs, entries = dict[int, str](), [parts[0].ptr[:1]], 0, 0
    for part in parts:
        faults |= {pairs + p: fault for p, fault in part.faults.items()}
        pointers.append(part.ptr[1:] + entries)
        pairs, entries = pairs + len(part.ptr) - 1, entries + len(part.row)
    ptr = threads.joined(pointers)
    row, prob = (threads.joined(each) for each in ([x.row for x in parts], [x.prob for x in parts]))
    return PolicyAnswers(ptr, row, prob, faults)


def correlated(
    action: NDArray[Any], answers: PolicyAnswers, order: Callable[[int], Any]
) -> tuple[int, tuple[int, ...], float, float] | None:
    """Return the first pair that is no product, an action there, its probability, and the product.

    Pairs come in the order of what `order` says of their numbers.

    None where every pair is one. `action` is that of the layer's rows, (R, N). The support must be
    a product exactly, however small its probabilities: which deviations are feasible depends on it.
    """
    size, pair = np.diff(answers.ptr), owners(answers.ptr)
    some = size[pair] > 1
    pair, row, prob = pair[some], answers.row[some], answers.prob[some]
    apart, cells = np.ones(len(pair)), np.ones(len(size))  # cells of the pairs that are left
    for own in action[row].T.astype(np.int64):
        actions = int(own.max(initial=0)) + 1
        key, at = np.unique(pair * actions + own, return_inverse=True)
        apart *= np.bincount(at.reshape(-1), weights=prob, minlength=len(key))[at.reshape(-1)]
        cells *= np.bincount(key // actions, minlength=len(size))
    off = np.abs(apart - prob)
    wrong = np.flatnonzero((off > PRODUCT) | (cells[pair] != size[pair]))
    if not len(wrong):
        return None
    first = wrong[pair[wrong] == min(np.unique(pair[wrong]).tolist(), key=order)]
    e = int(first[off[first].argmax()])  # the entry that is furthest off
    if off[e] > PRODUCT:
        return int(pair[e]), tuple(action[row[e]].tolist()), float(prob[e]), float(apart[e])
    return int(pair[e]), *_missing(action[row[first]], prob[first])


def _missing(played: NDArray[Any], prob: Floats) -> tuple[tuple[int, ...], float, float]:
    """Return the first actions that are all played, but not together; then 0 and their product."""
    own = [np.unique(column) for column in played.T]
    together = set(map(tuple, played.tolist()))
    gap = next(a for a in itertools.product(*(x.tolist() for x in own)) if a not in together)
    return gap, 0.0, math.prod(float(prob[played[:, i] == a].sum()) for i, a in enumerate(gap))


# -- whether a policy can be asked in bulk --------------------------------------------------------


def _lacking(game: MarkovGame, policy: Any, units: ExactUnits) -> str | None:
    """Return why the `rows` of a policy are not used, in words; None where they are."""
    if not units.small:
        return "is for costs that do not fit into 64 bits"
    own: dict[str, Callable[[], bool]] = {
        "has no method rows": lambda: hasattr(type(policy), "rows"),
        "does not have distribution, rows and joint_actions from the same class": lambda: _owner(policy) is not object,
        "has no states that equal those of the game": lambda: tuple(policy.states) == game.states,
        "has no actions that equal those of the game": lambda: tuple(map(tuple, policy.actions)) == game.actions,
        "has no tracker.units, a number for each constraint": lambda: len(_ratios(policy, units)) == len(units.start),
    }
    for lacking, fine in own.items():
        try:
            if not fine():
                return lacking
        except Exception:  # a judge must not fall over what it judges: `distribution` is asked instead
            return lacking
    return None


def _ratios(policy: Any, units: ExactUnits) -> list[Fraction]:
    """Return units of the policy per unit of ours."""
    theirs = [Fraction(u) for u in policy.tracker.units]
    return [1 / (k * u) for k, u in zip(units.scale, theirs, strict=True)]


def _in_units(spent: Ints, ratios: list[Fraction]) -> Ints | None:
    """Return amounts (P, M) in the policy's units; None when one is not whole, or too large."""
    if all(ratio == 1 for ratio in ratios):
        return spent
    total = np.empty(spent.shape, dtype=np.int64)
    for m, ratio in enumerate(ratios):
        column, (up, down) = spent[:, m], ratio.as_integer_ratio()
        if down >= BELOW or (up != 1 and int(np.abs(column).max(initial=0)) * up >= BELOW):
            return None
        total[:, m] = column * up // down
        if not np.array_equal(total[:, m] * down, column * up):
            return None
    return total


def _owner(policy: Any) -> type:
    """Return the class that gives all of these methods, `object` if none does.

    A `rows` of another class, or of the object itself, may say otherwise.
    """
    methods = {"distribution", "rows", "joint_actions"}
    if methods & set(getattr(policy, "__dict__", ())):
        return object
    owner = next((c for c in type(policy).__mro__ if methods & set(vars(c))), object)
    return owner if methods <= set(vars(owner)) else object


def _well_formed(ptr: NDArray[Any], row: NDArray[Any], prob: NDArray[Any], pairs: int) -> bool:
    """Return whether these have the types and shapes of an answer."""
    return bool(
        (ptr.dtype.kind, prob.dtype.kind) == ("i", "f")
        and row.dtype.kind in "iu"
        and ptr.shape == (pairs + 1,)
        and prob.ndim == 1
        and row.shape == prob.shape
        and ptr[0] == 0
        and ptr[-1] == len(prob)  # and they ascend (`check_answers`)
    )
