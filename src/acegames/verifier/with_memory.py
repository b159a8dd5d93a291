"""Judges a policy with memory: values and best deviations at each (pair, memory) (spec 12).

    q(e, a) = r_i(a) + E[W_i(x', memory after e was drawn and a was played)]

    CE   W_i(x, m) = sum over told of max over b of sum over e with told_i of prob(e) q(e, b)
    CCE  W_i(x, m) = max over b, or following, of sum over e of prob(e) q(e, b)

where q(e, b) is that of b in the place of what i is told, -inf where that is not safe.

An *entry* is what the policy draws: a joint action that it tells, maybe the same as another
entry, with other promises behind it. Where a is what was told, nobody has deviated. All (x, m) are
judged that any feasible play can lead to, whoever deviates, so that a punishment is an equilibrium
like any other. What is accepted is that of `tolerance`, with the stake at (x, m).

Whoever is to be judged so has `beginnings`, `recommendations` and `memory_after`, besides the
`distribution` and `tracker` of every policy, as `acegames.MemoryPolicy`. It is asked by times, for
all nodes at once, and whatever it does wrong is a fault, no exception.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.model.arrays import Bools, Floats, Ints
from acegames.numerics import PROBABILITY_SUM, UNIT_ROUNDOFF, VERIFY
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.verifier.basics import BELOW, Numbers, Small, number_pairs, numbers_of, offsets, owners, spans
from acegames.verifier.judgement import FAULTS_SHOWN, Evaluated
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames
from acegames.verifier.tolerance import Extremes, Gains, common_part


class SafeGraph(NamedTuple):
    """The safe rows at the pairs of one time, and where they lead."""

    ptr: Ints  # (P+1,) the safe rows of each pair
    row: Ints  # (R,)
    out_ptr: Ints  # (R+1,)
    out: Ints  # (K,) the outcome
    to: Ints  # (K,) the pair of the next time; 0 after the last
    state: Ints  # (K,) its state ...
    total: Ints  # (K, M) ... and what is spent then


class Nodes(NamedTuple):
    """The (pair, memory) of one time, what is told there, and every play that is possible then.

    A *play* is an entry and a safe row that is played in answer.
    """

    pair: Ints  # (Q,)
    memory: Ints  # (Q,)
    own: Bools  # (Q,) whether the policy itself leads here
    ptr: Ints  # (Q+1,) entries
    advised: Ints  # (E,)
    prob: Floats  # (E,)
    play_ptr: Ints  # (E+1,)
    safe: Ints  # (L,) the safe row that is played, by its number in `SafeGraph`
    to_ptr: Ints  # (L+1,)
    to: Ints  # (.,) the node of the next time after each outcome


def is_with_memory(policy: Any) -> bool:
    """Return whether a policy is asked with what it remembers."""
    return all(callable(getattr(policy, name, None)) for name in ("beginnings", "recommendations", "memory_after"))


def evaluate_with_memory(
    subgames: Subgames, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated:
    """Return root values and the largest gains over all nodes, and the most that is spent."""
    judge, nothing = MemoryJudge(subgames, reader, concept), np.full(len(reader.game.players), np.nan)
    if not subgames.keys:
        return Evaluated(0, nothing, None, [], 0, None)
    reporter = ProgressReporter(progress, "checking", reader.game.horizon, judge.pairs)
    try:
        first = judge.find()
    except _MemoryFault as fault:
        faults = judge.faults or [str(fault)]
        return Evaluated(judge.pairs, nothing, None, faults, len(faults), None)
    return judge.judged(first, reporter)


class _MemoryFault(Exception):
    """Why the policy cannot be judged further."""


class MemoryJudge:
    """Finds all nodes from the first time on, then judges them from the last back."""

    def __init__(self, subgames: Subgames, reader: Reader, concept: Concept) -> None:
        self.subgames, self.reader, self.concept = subgames, reader, concept
        self.game, self.units, self.policy = reader.game, reader.units, reader.policy
        self.pairs = sum(map(len, subgames.keys))
        self.most: Ints = self.units.start.copy()
        self.faults = list[str]()
        self.graphs, self.nodes = list[SafeGraph](), list[Nodes]()
        self.moves: list[Numbers] = [numbers_of(self.game, layer, concept) for layer in self.game.layers]

    def find(self) -> list[tuple[Ints, Floats]]:
        """List the nodes of all times; return those that play begins in, by initial state."""
        begins = list[tuple[Ints, Floats]]()
        pairs = self.subgames.pairs(0)
        states = np.array([s for s, _ in self.game.initial], dtype=np.int64)
        at = _places(pairs, (states, np.tile(self.units.start, (len(states), 1))))
        pair, memory = list[Ints](), list[Ints]()
        for k, state in enumerate(states.tolist()):
            numbers, weight = self._beginning(state)
            begins.append((np.arange(len(numbers)) + sum(map(len, memory)), weight))
            memory.append(numbers)
            pair.append(np.full(len(numbers), at[k]))
        every, chosen = number_pairs(np.concatenate(pair), np.concatenate(memory)[:, None])
        here = np.concatenate(pair)[chosen], np.concatenate(memory)[chosen], np.ones(len(chosen), dtype=bool)
        for t in range(self.game.horizon):
            following = self.subgames.pairs(t + 1) if t + 1 < self.game.horizon else None
            graph = self.graph(t, pairs, following)
            self.graphs.append(graph)
            here = self._follow(t, graph, pairs, *here)
            if self.faults:
                raise _MemoryFault("the policy is at fault")
            assert following is not None or t + 1 == self.game.horizon
            pairs = pairs if following is None else following
        return [(every[places], weight) for places, weight in begins]

    def judged(self, begins: list[tuple[Ints, Floats]], reporter: ProgressReporter) -> Evaluated:
        """Return the values and gains of all nodes."""
        n, packed = len(self.game.players), self.subgames.packed
        base, gains = common_part(self.game, self.subgames.safe_rows), Gains(self.reader)
        values, high = np.zeros((6 * n, 1)), np.zeros((n, 1))
        for t in reversed(range(self.game.horizon)):
            values, high = self._judge(t, values, high, base[t])
            keys = self.subgames.keys[t][self.nodes[t].pair]
            gains.add(packed, t, [Extremes.of(packed, keys, values, slice(0, len(keys)))])
            reporter.layer(len(self.subgames.keys[t]))
        gains.at_start(values)
        start = np.zeros(n)
        chances = np.array([p for _, p in self.game.initial])
        for chance, (nodes, weight) in zip(chances / chances.sum(), begins, strict=True):
            start += chance * (values[:n, nodes] @ weight)
        judged = sum(len(x.pair) for x in self.nodes)
        return Evaluated(judged, start + base.sum(axis=0), gains, [], 0, tuple(self.most.tolist()))

    def _beginning(self, state: int) -> tuple[Ints, Floats]:
        """Return the memories that play may begin with, and their probabilities."""
        try:
            first, chance = self.policy.beginnings(state)
            memory, weight = one_column(first, np.int64), one_column(chance, np.float64)
        except Exception as error:  # a judge must not fall over what it judges
            raise _MemoryFault(f"The policy failed with {type(error).__name__} at the start: {error}.") from None
        if len(memory) != len(weight) or not (weight > 0).all() or not abs(weight.sum() - 1) <= PROBABILITY_SUM:
            raise _MemoryFault("At the start: the policy's memories have no probabilities that sum to 1.")
        return memory, weight / weight.sum()

    def graph(self, t: int, pairs: tuple[Ints, Ints], following: tuple[Ints, Ints] | None) -> SafeGraph:
        """Find the safe rows at pairs of time t."""
        layer, at = self.game.layer(t), self.game.layer_at[t]
        state, spent = pairs
        row, ptr = _lists(layer.row_ptr[state], layer.row_ptr[state + 1])
        out, out_ptr = _lists(layer.out_ptr[row], layer.out_ptr[row + 1])
        pair = owners(ptr)[owners(out_ptr)]
        total = self.units.add(spent[pair], self.units.costs[at][out])
        state = layer.next_state[out].astype(np.int64)
        fine, to = (total <= self.units.bounds[t]).all(axis=1), np.zeros(len(out), dtype=np.int64)
        if following is not None:
            to = _places(following, (state, total))
            fine &= to >= 0
        safe = np.logical_and.reduceat(fine, out_ptr[:-1])
        safe_outcomes = np.repeat(safe, np.diff(out_ptr))
        counts = np.bincount(owners(ptr)[safe], minlength=len(ptr) - 1)
        lengths = np.diff(out_ptr)[safe]
        return SafeGraph(
            offsets(counts),
            row[safe],
            offsets(lengths),
            out[safe_outcomes],
            to[safe_outcomes],
            state[safe_outcomes],
            total[safe_outcomes],
        )

    def _follow(
        self, t: int, graph: SafeGraph, pairs: tuple[Ints, Ints], pair: Ints, memory: Ints, own: Bools
    ) -> tuple[Ints, Ints, Bools]:
        """Ask what is told at nodes, and list where each play leads, the nodes of the next time."""
        state, spent = pairs
        ptr, advised, prob = self._asked(t, state[pair], spent[pair], memory)
        node = owners(ptr)
        entry_of, play_ptr = _lists(graph.ptr[pair[node]], graph.ptr[pair[node] + 1])
        entry, played = owners(play_ptr), graph.row[entry_of]
        follows = played == advised[entry]
        unsafe = np.flatnonzero(np.bincount(entry[follows], minlength=len(advised)) == 0)
        for e in unsafe[:FAULTS_SHOWN].tolist():
            q = int(pair[node[e]])
            self.faults.append(self.reader.unsafe(t, int(state[q]), tuple(spent[q].tolist()), int(advised[e])))
        out, to_ptr = _lists(graph.out_ptr[entry_of], graph.out_ptr[entry_of + 1])
        play, to = owners(to_ptr), np.zeros(len(out), dtype=np.int64)
        after = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        mine = (follows & own[node[entry]])[play]
        if mine.any():
            self.most = np.maximum(self.most, graph.total[out[mine]].max(axis=0))
        if t + 1 < self.game.horizon and not self.faults:
            e = entry[play]
            asked = (memory[node[e]], e - ptr[node[e]], played[play], graph.state[out], self.whole(graph.total[out]))
            remembered = self._remembered(t, *asked)
            to, chosen = number_pairs(graph.to[out], remembered[:, None])
            reached = np.zeros(len(chosen), dtype=bool)
            reached[to[mine]] = True
            after = graph.to[out][chosen], remembered[chosen], reached
        self.nodes.append(Nodes(pair, memory, own, ptr, advised, prob, play_ptr, entry_of, to_ptr, to))
        return after

    def _asked(self, t: int, state: Ints, spent: Ints, memory: Ints) -> tuple[Ints, Ints, Floats]:
        """Return what is told at nodes, checked."""
        where = self.reader.place(t, int(state[0]), tuple(spent[0].tolist()))
        try:
            asked = self.policy.recommendations(t, state.copy(), self.whole(spent), memory.copy())
            ptr, advised = (one_column(x, np.int64) for x in asked[:2])
            prob = one_column(asked[2], np.float64)
        except Exception as error:  # a judge must not fall over what it judges
            raise _MemoryFault(f"At t={t}: the policy failed with {type(error).__name__}: {error}.") from None
        if len(ptr) != len(state) + 1 or ptr[0] != 0 or ptr[-1] != len(advised) or len(advised) != len(prob):
            raise _MemoryFault(f"At {where} or beside it: the policy gave no list of recommendations.")
        row_ptr, empty = self.game.layer(t).row_ptr, np.diff(ptr) < 1
        wrong = np.ones(len(state), dtype=bool)
        if not empty.any():
            own = state[owners(ptr)]
            good = (row_ptr[own] <= advised) & (advised < row_ptr[own + 1]) & (prob > 0)
            total = np.add.reduceat(prob, ptr[:-1])
            wrong = ~(np.logical_and.reduceat(good, ptr[:-1]) & (np.abs(total - 1) <= PROBABILITY_SUM))
        if wrong.any():
            q = int(np.argmax(wrong))
            where = self.reader.place(t, int(state[q]), tuple(spent[q].tolist()))
            raise _MemoryFault(f"At {where}: what is told is no distribution over legal joint actions.")
        return ptr, advised, prob / np.repeat(total, np.diff(ptr))

    def whole(self, spent: Ints) -> Ints:
        """Return totals in the units that the policy counts in."""
        whole = np.empty(spent.shape, dtype=np.int64)
        for m, (scale, unit) in enumerate(zip(self.units.scale, self.policy.tracker.units, strict=True)):
            ratio = 1 / (scale * Fraction(unit))
            whole[:, m] = spent[:, m] * ratio.numerator // ratio.denominator
        return whole

    def _remembered(self, t: int, *asked: Ints) -> Ints:
        try:
            after: Ints = one_column(self.policy.memory_after(t, *(x.copy() for x in asked)), np.int64)
        except Exception as error:  # a judge must not fall over what it judges
            raise _MemoryFault(f"At t={t}: the policy failed with {type(error).__name__}: {error}.") from None
        if after.shape != asked[0].shape:
            raise _MemoryFault(f"At t={t}: the policy does not say what it remembers after every step.")
        return after

    def _judge(self, t: int, after: Floats, high: Floats, base: Floats) -> tuple[Floats, Floats]:
        """Return the numbers of nodes, as in `LayerValues`, and the best of safe play at pairs."""
        game, graph, nodes = self.game, self.graphs[t], self.nodes[t]
        n, layer, numbers = len(game.players), game.layer(t), self.moves[game.layer_at[t]]
        chance = numbers.prob[graph.out]
        out, _ = _lists(graph.out_ptr[nodes.safe], graph.out_ptr[nodes.safe + 1])
        p = chance[out]
        row, entry = graph.row[nodes.safe], owners(nodes.play_ptr)
        advised = nodes.advised[entry] == row
        result, best = np.zeros((6 * n, len(nodes.pair))), np.zeros((n, len(graph.ptr) - 1))
        noise = _rounding(np.diff(nodes.to_ptr))
        for i in range(n):
            pay, digit = layer.reward[row, i] - base[i], 2.0 * UNIT_ROUNDOFF * np.abs(layer.reward[row, i])
            ahead = np.add.reduceat(chance * high[i, graph.to], graph.out_ptr[:-1])
            best[i] = np.maximum.reduceat(layer.reward[graph.row, i] - base[i] + ahead, graph.ptr[:-1])

            def mean(values: Floats, off: Floats, own: Floats = pay, last: Floats = digit) -> tuple[Floats, Floats]:
                terms = p * values[nodes.to]
                sums = np.add.reduceat(terms, nodes.to_ptr[:-1])
                size = np.add.reduceat(np.abs(terms), nodes.to_ptr[:-1])
                further = np.add.reduceat(p * off[nodes.to], nodes.to_ptr[:-1])
                return own + sums, further + last + noise * (np.abs(own) + size)

            value, off = mean(after[i], after[2 * n + i])
            least, _ = mean(after[5 * n + i], after[2 * n + i])
            result[i], result[2 * n + i] = _expected(value[advised], off[advised], nodes.prob, nodes.ptr)
            played = np.where(nodes.prob >= VERIFY, least[advised], np.inf)
            result[5 * n + i] = np.minimum.reduceat(played, nodes.ptr[:-1])
            result[4 * n + i] = best[i, nodes.pair]
            gained, spare = mean(after[n + i], after[3 * n + i])
            move = numbers.move[nodes.advised, numbers.offset[i] : numbers.offset[i + 1]]
            result[n + i], result[3 * n + i] = self._deviation(
                i, nodes, layer.action, row, gained, spare, move, advised
            )
        return result, best

    def _deviation(
        self, i: int, nodes: Nodes, action: Small, row: Ints, gained: Floats, spare: Floats, move: Small, advised: Bools
    ) -> tuple[Floats, Floats]:
        """Return W_i at nodes, and what it can be off by."""
        node, rows = owners(nodes.ptr), int(row.max()) + 1
        key = owners(nodes.play_ptr) * rows + row  # in order, as rows of a pair are
        heard = action[nodes.advised, i].astype(np.int64) * self.concept.interim
        group, chosen = number_pairs(node, heard[:, None])
        order = np.argsort(group, kind="stable")
        ptr = offsets(np.bincount(group, minlength=len(chosen)))
        choices = []
        for b in range(move.shape[1]):
            wanted = np.where(move[:, b] >= 0, np.arange(len(move)) * rows + np.minimum(move[:, b], rows - 1), -1)
            at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            there = (key[at] == wanted) & (move[:, b] < rows)
            value = np.where(there, gained[at], -np.inf)
            choices.append(_expected(value[order], np.where(there, spare[at], 0.0)[order], nodes.prob[order], ptr))
        if not self.concept.interim:
            choices.append(_expected(gained[advised][order], spare[advised][order], nodes.prob[order], ptr))
        values, offs = (np.array(x) for x in zip(*choices, strict=True))
        best = values.max(axis=0)
        more = np.max(np.where(values > -np.inf, values - best + offs, 0.0), axis=0).clip(min=0.0)
        of = node[chosen]
        count = np.bincount(of, minlength=len(nodes.pair))
        size = np.bincount(of, weights=np.abs(best), minlength=len(nodes.pair))
        total: Floats = np.bincount(of, weights=best, minlength=len(nodes.pair)).astype(np.float64)
        off: Floats = np.bincount(of, weights=more, minlength=len(nodes.pair)).astype(np.float64)
        return total, off + np.where(count > 1, _rounding(count) * size, 0.0)


def one_column(answer: Any, kind: type) -> Any:
    """Return what a policy answers as an array of one axis; ValueError where it is none."""
    array = np.asarray(answer)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ValueError("an answer must be a list of numbers")
    if not (np.abs(array.astype(np.float64)) < BELOW).all():
        raise ValueError("an answer is not a number, or too large")
    return array.astype(kind)


def _expected(value: Floats, off: Floats, prob: Floats, ptr: Ints) -> tuple[Floats, Floats]:
    """Return means over lists, and what they can be off by; -inf where a term is."""
    terms = prob * value
    with np.errstate(invalid="ignore"):
        sums = np.add.reduceat(terms, ptr[:-1])
        size = np.add.reduceat(np.abs(terms), ptr[:-1])
    further = np.add.reduceat(prob * off, ptr[:-1])
    return sums, np.where(np.isfinite(size), further + _rounding(np.diff(ptr)) * size, 0.0)


def _rounding(terms: Ints) -> Floats:
    """Return how far means of so many terms can be off, in units of their size."""
    share: Floats = UNIT_ROUNDOFF * np.maximum(16.0, 2.0 * terms + 6.0)
    return share


def _lists(first: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the numbers first .. end-1 of each list end to end, and pointers to the lists."""
    return spans(first, end), offsets((end - first).astype(np.int64))


def _places(pairs: tuple[Ints, Ints], asked: tuple[Ints, Ints]) -> Ints:
    """Return the number of each asked (state, total) among pairs, -1 for none."""
    many = len(pairs[0])
    number, _ = number_pairs(np.concatenate([pairs[0], asked[0]]), np.concatenate([pairs[1], asked[1]]))
    place = np.full(int(number.max(initial=-1)) + 1, -1)
    place[number[:many]] = np.arange(many)
    return place[number[many:]]
