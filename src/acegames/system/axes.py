"""Records of arrays whose types name their axes, as in `utility: Annotated[Floats, "rows 2N G"]`.

An array whose axes are not named has one. What a record says of its arrays is enough to allocate
them, in memory or on a GPU, to know how many bytes that takes, and to compile what is given
such records before there are any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Record = TypeVar("Record")


@cache
def _arrays(record: Any) -> dict[str, tuple[tuple[str, ...], np.dtype[Any]] | type]:
    """Return the axes and the kind of numbers of each field; of one that is no array, its type."""
    fields = dict[str, Any]()
    for name, hint in get_type_hints(record, include_extras=True).items():
        kind, axes = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, "n")
        kind = _meant(kind)
        if get_origin(kind) is np.ndarray:
            fields[name] = tuple(axes.split()), np.dtype(get_args(get_args(kind)[1])[0])
        else:
            fields[name] = kind
    return fields


def _meant(kind: Any) -> Any:
    """Return what a type stands for: in newer releases of numpy NDArray[...] is the name of
    another.
    """
    while hasattr(alias := get_origin(kind) or kind, "__value__"):
        kind = alias.__value__[get_args(kind)] if get_args(kind) else alias.__value__
    return kind


def _shapes(record: type, lengths: Mapping[str, int]) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and kind of each field of a record that has arrays only; an axis may be a
    number.
    """
    shapes = list[tuple[tuple[int, ...], np.dtype[Any]]]()
    for said in _arrays(record).values():
        assert isinstance(said, tuple)
        axes, dtype = said
        shapes.append((tuple(int(x) if x.isdigit() else lengths[x] for x in axes), dtype))
    return shapes


def allocate(record: type[Record], lengths: Mapping[str, int], make: Callable[..., Any] = np.empty) -> Record:
    """Return a record of arrays whose axes are this long; `make` makes each from shape and kind."""
    return record(*(make(*said) for said in _shapes(record, lengths)))


def padded(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return zeros apart from other arrays, so that threads do not share lines of the cache."""
    length = math.prod(shape)
    return np.zeros(max(length, 4096), dtype=dtype)[:length].reshape(shape)


def allocated_bytes(record: type, lengths: Mapping[str, int]) -> int:
    """Return how many bytes `allocate` takes."""
    return sum(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in _shapes(record, lengths))


def example(record: Any) -> Any:
    """Return a record of the same types; each array has one number."""

    def one(said: Any) -> Any:
        if isinstance(said, tuple):
            return np.zeros((1,) * len(said[0]), said[1])
        return example(said) if hasattr(said, "_fields") else said(1)

    return record(*map(one, _arrays(record).values()))
