"""Ask the policy, and check that each answer is a distribution over legal joint actions.

Pairs are asked in bulk where the policy can answer so, else one by one. A bulk that is not in order
is halved until the pairs at fault are found, and these are asked singly, so that answers and
sentences do not depend on what is asked together. Some pairs of each time are asked singly too, for
comparison. Under Nash the players must draw independently: every joint action is as probable as the
players' own probabilities say.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import JointAction, MarkovGame
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM, PRODUCT
from acegames.verifier.basics import LIMITS, Floats, Ints, offsets, owners
from acegames.verifier.pair_keys import ExactUnits, Number, PairKeys, Spent
from acegames.verifier.policy_tables import BulkLookup, PolicyTables

_CONTRADICTED = "`lookup` does not say what its `distribution` says"

Entries = tuple[Ints, Ints, Floats]
"""Pointers, rows and probabilities, as in `PolicyAnswers`."""


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
        # the first pair and a sentence where players who must draw independently do not
        self.correlation: tuple[Any, str] | None = None
        # of the last time the first pair, and a sentence, where `lookup` contradicts `distribution`
        self.disagreement: tuple[Any, str] | None = None
        self._lock, self._rng = threading.Lock(), np.random.default_rng(0)
        self._answers: dict[tuple[int, int, Spent], PairAnswer] = {}
        self._rows: dict[tuple[int, int], dict[JointAction, int]] = {}
        self._bulk = BulkLookup.of(game, policy, units)

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

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may ask at once."""
        return self._bulk is not None and self._bulk.thread_safe

    def declared(self) -> list[Ints] | None:
        """Return up to where the policy says that it answers alike, (S, M) at each time."""
        return None if self._bulk is None else self._bulk.declared()

    def in_bulk(self, t: int, state: Ints, spent: Ints) -> Entries | None:
        """Return pointers, rows and probabilities; None where they cannot be had at once."""
        return None if self._bulk is None else self._bulk.read(t, state, spent)

    def stored(self, t: int, packed: PairKeys) -> PolicyTables | None:
        """Return the policy's tables of one time; None where it shows none, or not of this game."""
        if self._bulk is None or self.product or packed.unrolled is not None:
            return None
        return PolicyTables.of(packed, self.policy, t, self._bulk.numbering(t))

    def confirmed(self, t: int, entries: Entries, state: Ints, spent: Ints) -> bool:
        """Compare what was read from tables with what `lookup` and `distribution` say.

        Return whether `lookup` has answers.
        """
        said, answers = self.in_bulk(t, state, spent), PolicyAnswers(*entries, {})
        if said is None:
            return False
        for p in range(len(state)):
            if not _same_answer(PolicyAnswers(*said, {}), answers, p):
                self._note(t, int(state[p]), tuple(spent[p].tolist()), "`answers` do not say what its `lookup` says")
        self._compare(t, state, spent, answers, np.arange(len(state)))
        return True

    def compare(self, t: int, state: Ints, spent: Ints) -> None:
        """Compare `lookup` with `distribution` at these pairs, where it has answers."""
        said = self.in_bulk(t, state, spent) if len(state) else None
        if said is not None:
            self._compare(t, state, spent, PolicyAnswers(*said, {}), np.arange(len(state)))

    def some(self, pairs: int) -> Ints:
        """Draw pairs, by number, at which to compare `lookup` with `distribution`."""
        return self._rng.integers(pairs, size=max(1, LIMITS.compared // self.game.horizon))

    def drawn(self, t: int, keys: Ints, pairs: int) -> Ints:
        """Draw pairs to compare among those of these keys, some of a time that has so many.

        What is drawn does not depend on which others are given.
        """
        from acegames.verifier.pair_kernels import draw

        numbers = np.empty(len(keys), dtype=np.int64)
        return numbers[: draw(keys, t, self.limit(pairs), numbers)].copy()

    def limit(self, pairs: int) -> int:
        """Return how many of 2**32 keys are drawn at a time that has so many pairs."""
        return min(
            2**32 * max(1, LIMITS.compared // self.game.horizon) // min(max(pairs, 1), LIMITS.compared_of), 2**32
        )

    def read(self, t: int, state: Ints, spent: Ints, compared: Ints | None = None) -> PolicyAnswers:
        """Return the checked answers at pairs (P,), (P, M); never raises.

        At pairs of these numbers, or else at some, `lookup` is compared with `distribution`.
        """
        if compared is None:
            compared = self.some(len(state)) if len(state) else np.zeros(0, dtype=np.int64)
        answers = self._read(t, state, spent, compared)

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
            with self._lock:
                self.correlation = min(self.correlation or ((t, *pair), sentence), ((t, *pair), sentence))
        return answers

    def _read(self, t: int, state: Ints, spent: Ints, compared: Ints) -> PolicyAnswers:
        entries = None if self._bulk is None or not len(state) else self._bulk.read(t, state, spent)
        if entries is not None:
            answers = PolicyAnswers(*entries, {})
            self._compare(t, state[compared], spent[compared], answers, compared)
            return answers
        if self._bulk is not None and len(state) > LIMITS.singly:
            half = 1 << ((len(state) - 1).bit_length() - 1)  # so that the last parts are those of any larger block
            one = self._read(t, state[:half], spent[:half], compared[compared < half])
            return _joined([one, self._read(t, state[half:], spent[half:], compared[compared >= half] - half)])
        if self._bulk is None or not len(state):
            return self._read_singly(t, state, spent)
        return self._read_each(t, state, spent)

    def _read_each(self, t: int, state: Ints, spent: Ints) -> PolicyAnswers:
        """Return what `lookup` says of each pair alone or, where it has no answer, `distribution`.

        So answers do not depend on what else is asked.
        """
        assert self._bulk is not None
        parts, failing = [], False
        for p in range(len(state)):
            mine = state[p : p + 1], spent[p : p + 1]
            entries = self._bulk.read(t, *mine)
            if entries is None:
                failing = True
                answers = self._read_singly(t, *mine)
                if not answers.faults:
                    self._note(t, int(state[p]), tuple(spent[p].tolist()))
                parts.append(answers)
            else:
                parts.append(PolicyAnswers(*entries, {}))
        if not failing:  # only together
            self._note(t, int(state[0]), tuple(spent[0].tolist()), nearby="or beside it")
        return _joined(parts)

    def _read_singly(self, t: int, state: Ints, spent: Ints) -> PolicyAnswers:
        count: list[int] = []
        rows: list[int] = []
        probs: list[float] = []
        faults: dict[int, str] = {}
        for p, (s, c) in enumerate(zip(state.tolist(), map(tuple, spent.tolist()), strict=True)):
            answer = self.ask(t, s, c)
            if answer.fault:
                faults[p] = answer.fault
            count.append(len(answer.rows))
            rows += answer.rows
            probs += answer.probs
        ptr = offsets(np.array(count, dtype=np.int64))
        return PolicyAnswers(ptr, np.array(rows, dtype=np.int64), np.array(probs, dtype=np.float64), faults)

    def _compare(self, t: int, state: Ints, spent: Ints, answers: PolicyAnswers, compared: Ints) -> None:
        """Ask again, singly, at a few pairs of these numbers."""
        several = zip(compared.tolist(), state.tolist(), map(tuple, spent.tolist()), strict=True)
        for p, at, total in dict.fromkeys(several):
            single = self.ask(t, at, total)
            begin, end = answers.ptr[p : p + 2].tolist()
            rows, probs = answers.row[begin:end].tolist(), answers.prob[begin:end].tolist()
            if single == (tuple(rows), tuple(probs), None):
                continue
            bulk = dict(zip(rows, probs, strict=True))
            same_support = bulk.keys() == set(single.rows) and len(bulk) == len(rows)
            if not same_support or any(
                abs(bulk[r] - q) > PROBABILITY_RENORMALISE for r, q in zip(single.rows, single.probs, strict=True)
            ):
                self._note(t, at, total)

    def _note(self, t: int, state: int, spent: Spent, what: str = _CONTRADICTED, nearby: str = "") -> None:
        where = " ".join([self.place(t, state, spent), nearby]).strip()
        noted = (-t, state, spent), f"At {where}: the policy's {what}."
        with self._lock:
            self.disagreement = min(self.disagreement or noted, noted)

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


def _same_answer(one: PolicyAnswers, two: PolicyAnswers, p: int) -> bool:
    """Return whether a pair has the very same answer in both."""
    mine, other = slice(*one.ptr[p : p + 2]), slice(*two.ptr[p : p + 2])
    return np.array_equal(one.row[mine], two.row[other]) and np.array_equal(one.prob[mine], two.prob[other])


def _joined(parts: list[PolicyAnswers]) -> PolicyAnswers:
    """Return the answers of all parts, one after the other."""
    first = offsets(np.array([len(part.ptr) - 1 for part in parts], dtype=np.int64)).tolist()
    return PolicyAnswers(
        offsets(np.concatenate([np.diff(part.ptr) for part in parts])),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.prob for part in parts]),
        {begin + p: fault for part, begin in zip(parts, first, strict=False) for p, fault in part.faults.items()},
    )


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
