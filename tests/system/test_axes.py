"""Records whose types name their axes."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from acegames.system.axes import allocate, allocated_bytes, example

Floats = NDArray[np.float64]


class Room(NamedTuple):
    value: Annotated[Floats, "2 N cells"]
    code: Annotated[NDArray[np.uint16], "cells"]


class Given(NamedTuple):
    allocate: Room
    budget: NDArray[np.int64]
    first: int
    all: bool
    floor: float


def test_room_has_the_shapes_that_are_said():
    made = allocate(Room, {"N": 3, "cells": 5}, np.zeros)
    assert isinstance(made, Room) and [x.shape for x in made] == [(2, 3, 5), (5,)]
    assert [x.dtype for x in made] == [np.float64, np.uint16]
    assert allocated_bytes(Room, {"N": 3, "cells": 5}) == sum(x.nbytes for x in made)


def test_an_example_has_the_types():
    made = example(Given)
    assert [type(x) for x in made[2:]] == [int, bool, float]
    assert made.allocate.value.ndim == 3 and made.budget.dtype == np.int64 and made.budget.ndim == 1


def test_names_of_types_are_understood():
    """Newer releases of numpy write NDArray[...] as a name for another type."""
    extensions = pytest.importorskip("typing_extensions")
    kind = TypeVar("kind", bound=np.generic)
    array = extensions.TypeAliasType("array", np.ndarray[tuple[Any, ...], np.dtype[kind]], type_params=(kind,))
    small = extensions.TypeAliasType("small", array[np.int32])
    record = NamedTuple("record", [("a", array[np.float64]), ("b", Annotated[small, "x 3"]), ("n", int)])  # noqa: UP014
    made = example(record)
    assert (made.a.shape, made.a.dtype, made.b.shape, made.b.dtype) == ((1,), float, (1, 1), np.int32)
    only = NamedTuple("only", [("b", Annotated[small, "x 3"])])  # noqa: UP014
    assert made.n == 1 and allocated_bytes(only, {"x": 5}) == 60
