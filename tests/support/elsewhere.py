"""Engines whose tasks run in this process, with nothing shared between them but what they are given."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import numpy as np

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

    def run(self, function, shared, what, blocks=(), *, made=1, on_done=None):
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
