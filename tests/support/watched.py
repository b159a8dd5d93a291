"""Kernels of a warp as plain Python, which watches every access to memory.

The functions are those of the product, with Python's own `get`, `put` and so on, and one lane. Two
lanes *race* where they come to one place between two calls of syncwarp and one of them writes: on a GPU, whose
threads do not go through the lanes one after the other, anything could happen.
"""

import sys
from collections import namedtuple
from types import FunctionType, SimpleNamespace

import numpy as np

from acegames.kernels import batches, device, lockstep, regular
from acegames.kernels.intrinsics import ACROSS, SCANNERS, WARP

EVERYONE = -1  # between device functions all threads do the same
Access = namedtuple("Access", "lane writes line")


class Watch:
    """Which lanes have come to which places since the last syncwarp, and the races among them."""

    def __init__(self, without=None):
        self.lane, self.without = EVERYONE, without  # the line of a syncwarp that is left out
        self.seen, self.races, self.syncs, self.places = {}, [], set(), 0

    def syncwarp(self, warp):
        """Everyone is here, and goes on."""
        self.lane, line = EVERYONE, _line(1)
        self.syncs.add(line)
        if line != self.without:
            self.seen = {}

    def lane_id_of(self, k, warp):
        """The lane that works from now on."""
        self.lane = k ^ warp.order
        return self.lane

    def come_to(self, place, *, writes):
        """An access by the present lane."""
        before = self.seen.setdefault(place, [])
        mine = Access(self.lane, writes, _line(2))
        if mine in before:
            return
        if writes and self.lane == EVERYONE:
            self.races.append((mine, mine))
        self.races += ((x, mine) for x in before if x.lane != self.lane and (x.writes or writes))
        before.append(mine)


def _line(up):
    """Where in the product this is called: the function and the number of the line."""
    frame = sys._getframe(up + 1)
    while "acegames" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_code.co_name, frame.f_lineno


class Watched:
    """An array whose places are watched; parts of it are too."""

    def __init__(self, watch, values, places=None):
        if places is None:
            places = watch.places + np.arange(values.size).reshape(values.shape)
            watch.places += values.size
        self.watch, self.values, self.places, self.shape = watch, values, places, values.shape

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        place = self.places[key]
        if isinstance(place, np.ndarray):
            return Watched(self.watch, self.values[key], place)
        self.watch.come_to(place, writes=False)
        return self.values[key]

    def __setitem__(self, key, x):
        self.watch.come_to(self.places[key], writes=True)
        self.values[key] = x


def watched(watch, record):
    """A record whose arrays are watched."""
    if isinstance(record, np.ndarray):
        return Watched(watch, record)
    return type(record)(*(watched(watch, x) for x in record)) if isinstance(record, tuple) else record


def fetch_add(counter, count):
    """Add and return what was there, as `intrinsics.fetch_add`: atomic, so that nobody races."""
    counter.values[0] += count
    return counter.values[0] - count


def _scatter(memory, where_to, row, begin, x):
    memory[where_to[row, 0] + begin, 0] = x


IN_PYTHON = {
    "broadcast": np.float64,
    "where": lambda chosen, a, b: np.float64(a if chosen else b),
    "absolute": lambda x: np.float64(abs(x)),
    "opaque": np.float64,
    "any_lane": bool,
    "lane_count": lambda memory: 1,
    "get": lambda memory, place: np.float64(memory[place, 0]),
    "put": lambda memory, place, x: memory.__setitem__((place, 0), x),
    "gather": lambda memory, where_to, row, begin: memory[where_to[row, 0] + begin, 0],
    "scatter": _scatter,
    "max": lambda a, b: a if a > b else b,  # as compiled: which of two equal zeros it is
    "min": lambda a, b: a if a < b else b,
    "own_lanes": lambda warp: WARP,
    "lane_index": lambda lane_id: lane_id,
    "warp_size": lambda lane_id: WARP,
    "scanners": lambda lane_id: SCANNERS,
    "strided": lambda lane_id, count: range(lane_id, count, WARP),
    "is_lane0": lambda lane_id: lane_id == 0,
    "strided_rows": lambda lane_id, count: range(lane_id // ACROSS, count, WARP // ACROSS),
    "strided_fours": lambda lane_id, count: range(lane_id % ACROSS, count, 4 * ACROSS),
    "syncthreads": lambda warp: None,
    "popcount": lambda word: int(word).bit_count(),
    "fetch_add": fetch_add,
}


def in_python(watch):
    """What `device.solve_regular_by_warp` is, and calls, in Python."""
    given = IN_PYTHON | {"syncwarp": watch.syncwarp, "lane_id_of": watch.lane_id_of}
    found = {}
    for module in (regular, lockstep, batches, device):
        space = {name: x for name, x in vars(module).items() if not hasattr(x, "py_func")}
        for name, x in vars(module).items():
            if hasattr(x, "py_func") and x.__module__ == module.__name__:
                space[name] = found[name] = FunctionType(x.py_func.__code__, space, name, x.py_func.__defaults__)
            elif hasattr(x, "py_func") and name in found:
                space[name] = found[name]
        called = {name: SimpleNamespace(**vars(regular) | found) for name, x in space.items() if x is regular}
        space.update(called)
        space.update((name, x) for name, x in given.items() if name in vars(module) or name in ("max", "min"))
    return SimpleNamespace(**found)
