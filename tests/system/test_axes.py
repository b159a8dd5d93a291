"""Records whose types name their axes."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.system.axes import example, room, room_bytes

Floats = NDArray[np.float64]


class Room(NamedTuple):
    value: Annotated[Floats, "2 N cells"]
    code: Annotated[NDArray[np.uint16], "cells"]


class Given(NamedTuple):
    room: Room
    budget: NDArray[np.int64]
    first: int
    all: bool
    floor: float


def test_room_has_the_shapes_that_are_said():
    found = room(Room, {"N": 3, "cells": 5}, np.zeros)
    assert isinstance(found, Room) and [x.shape for x in found] == [(2, 3, 5), (5,)]
    assert [x.dtype for x in found] == [np.float64, np.uint16]
    assert room_bytes(Room, {"N": 3, "cells": 5}) == sum(x.nbytes for x in found)


def test_an_example_has_the_types():
    found = example(Given)
    assert [type(x) for x in found[2:]] == [int, bool, float]
    assert found.room.value.ndim == 3 and found.budget.dtype == np.int64 and found.budget.ndim == 1
