"""Engines whose tasks run in this process, with nothing shared between them but what they are given."""

from __future__ import annotations

import pickle
from dataclasses import fields
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

import oracle
from acegames.model.numbers import exact
from acegames.verifier.pair_keys import ExactUnits
from declaring import Declares
from serial_tasks import Held, SerialTasks


def sent(content: Any) -> Any:
    """A copy as it arrives in another process; its arrays are read-only, as in a store that processes share."""
    buffers: list[pickle.PickleBuffer] = []
    packed = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(packed, buffers=[bytes(buffer.raw()) for buffer in buffers])


class Sending(SerialTasks):
    """Runs each task at once, on copies of what it is given."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, int]] = []
        self.shared: list[Any] = []

    def share(self, content):
        self.shared.append(sent(content))
        return Held(self.shared[-1])

    def put(self, content):
        return Held(sent(content))

    def run(self, function, shared, what, blocks=(), *, made=1, on_done=None, at=None, work=1.0):
        self.asked.append((function.__name__, what, sum(map(_bytes, (block.fetch() for block in blocks)))))
        found = SerialTasks.run(
            self, function, shared, sent(what), blocks, made=made, on_done=on_done and (lambda x: on_done(sent(x)))
        )
        return [Held(sent(block.fetch())) for block in found]


def _bytes(content: Any) -> int:
    return content.nbytes if isinstance(content, np.ndarray) else sum(x.nbytes for x in content if x is not None)


class Elsewhere:
    """An engine with tasks."""

    def __init__(self, kind: type[SerialTasks] = Sending, block: int | None = None) -> None:
        self.kind, self.block, self.begun = kind, block, []

    def check_installed(self) -> None:
        """Nothing is needed."""

    def tasks(self) -> SerialTasks:
        self.begun.append(self.kind())
        return self.begun[-1]


def assert_equal(found, local):
    """Two certificates agree field by field, numbers bit for bit."""
    for field in fields(local):
        one, two = getattr(found, field.name), getattr(local, field.name)
        if isinstance(two, np.ndarray):
            assert (one.dtype, one.shape) == (two.dtype, two.shape)
            assert [repr(x) for x in one.tolist()] == [repr(x) for x in two.tolist()], field.name
        else:
            assert repr(one) == repr(two), field.name
    assert str(found) == str(local)


class Drawn:
    """A policy of random answers, some of them wrong; it can be sent, and asked by several at once."""

    thread_safe = True

    def __init__(self, game, seed, *, faults=0.0):
        self.game, self.seed, self.faults = game, seed, faults
        self.states, self.actions = game.states, game.actions
        self.tracker = SimpleNamespace(units=[Fraction(1, k) for k in ExactUnits(game).scale])
        self.feasible, _, self.safe = oracle.feasible_sets(game)

    def answer(self, t, s, spent):
        game, rng = self.game, np.random.default_rng([self.seed, t, s, *(int(abs(c) * 30) for c in spent)])
        legal = [tuple(map(int, game.layer(t).action[r])) for r in game.layer(t).rows(s)]
        good = sorted(self.safe.get((t, s, spent), ())) if self.feasible else legal
        wrong = rng.random() < self.faults
        if not good or (wrong and rng.random() < 0.3):
            raise KeyError("nothing to say")
        pool = legal if wrong else good
        chosen = [pool[k] for k in rng.permutation(len(pool))[: int(rng.choice([1, 2, 3]))]]
        probs = {1: [1.0], 2: [0.25, 0.75], 3: [0.5, 0.25, 0.25]}[len(chosen)]
        if wrong and rng.random() < 0.2:
            probs[0] *= -1 if rng.random() < 0.5 else 0.5
        return dict(zip(chosen, probs, strict=True))

    def distribution(self, t, state, spent):
        found = self.answer(t, self.game.state_index(state), tuple(exact(c) for c in spent))
        return {self.game.joint_action(a): p for a, p in found.items()}

    def lookup(self, t, state, total):
        ptr, action, prob = [0], [], []
        for s, row in zip(state.tolist(), total.tolist(), strict=True):
            found = self.answer(t, s, tuple(c * u for c, u in zip(row, self.tracker.units, strict=True)))
            action += found
            prob += found.values()
            ptr.append(len(prob))
        return np.array(ptr), np.array(action, dtype=np.int32).reshape(len(prob), len(self.actions)), np.array(prob)


class Safe(Declares):
    """A solved policy without its tables, which several may ask at once."""

    thread_safe = True
    distribution, lookup = Declares.distribution, Declares.lookup


class Damaged(Declares):
    """The same with another answer in one situation."""

    thread_safe = True

    def __init__(self, policy, place, answer):
        super().__init__(policy)
        self.place, self.answer = place, answer

    def distribution(self, t, state, spent):
        return dict(self.answer) if (t, state, tuple(spent)) == self.place else super().distribution(t, state, spent)

    def lookup(self, t, state, total):
        ptr, action, prob = super().lookup(t, state, total)
        wrong = [
            (t, self.states[s], tuple(c)) == self.place for s, c in zip(state.tolist(), total.tolist(), strict=True)
        ]
        for q in np.flatnonzero(wrong).tolist():
            new = [[labels.index(a) for labels, a in zip(self.actions, x, strict=True)] for x in self.answer]
            first, end = ptr[q : q + 2]
            action = np.concatenate([action[:first], np.array(new, dtype=np.int32), action[end:]])
            prob = np.concatenate([prob[:first], list(self.answer.values()), prob[end:]])
            ptr = np.concatenate([ptr[: q + 1], ptr[q + 1 :] + len(new) - (end - first)])
        return ptr, action, prob


class Wavering(Declares):
    """A solved policy whose `lookup` now and then has no answer, or another one than `distribution`."""

    thread_safe = True

    def __init__(self, policy, fails):
        super().__init__(policy)
        self.fails = fails

    def distribution(self, t, state, spent):
        return super().distribution(t, state, spent)

    def lookup(self, t, state, total):
        ptr, action, prob = super().lookup(t, state, total)
        odd = total.sum(axis=1) % 5 == 3
        if self.fails and odd.any():
            raise KeyError("odd")
        action[ptr[:-1][odd & (np.diff(ptr) == 1)]] = 0
        return ptr, action, prob
