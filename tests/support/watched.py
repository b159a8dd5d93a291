"""Kernels of a team as plain Python, which watches every access to memory.

The functions are those of the product, with Python's own `get`, `put` and so on, and one lane. Two
seats *race* where they come to one place between two waits and one of them writes: on a GPU, whose
threads do not go through the seats one after the other, anything could happen.
"""

import sys
from collections import namedtuple
from types import FunctionType, SimpleNamespace

import numpy as np

from acegames.kernels import batches, device, lockstep, regular
from acegames.kernels.intrinsics import ACROSS, SCANNERS, WARP

EVERYONE = -1  # between phases all threads do the same
Access = namedtuple("Access", "seat writes line")


class Watch:
    """Which seats have come to which places since the last wait, and the races among them."""

    def __init__(self, without=None):
        self.seat, self.without = EVERYONE, without  # the line of a wait that is left out
        self.seen, self.races, self.waits, self.places = {}, [], set(), 0

    def wait(self, team):
        """Everyone is here, and goes on."""
        self.seat, line = EVERYONE, _line(1)
        self.waits.add(line)
        if line != self.without:
            self.seen = {}

    def seat_of(self, k, team):
        """The seat that works from now on."""
        self.seat = k ^ team.order
        return self.seat

    def come_to(self, place, *, writes):
        """An access by the present seat."""
        before = self.seen.setdefault(place, [])
        mine = Access(self.seat, writes, _line(2))
        if mine in before:
            return
        if writes and self.seat == EVERYONE:
            self.races.append((mine, mine))
        self.races += ((x, mine) for x in before if x.seat != self.seat and (x.writes or writes))
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


def take(counter, count):
    """As `sharing.take`: atomic, so that nobody races."""
    counter.values[0] += count
    return counter.values[0] - count


def _scatter(memory, where_to, row, begin, x):
    memory[where_to[row, 0] + begin, 0] = x


IN_PYTHON = {
    "spread": np.float64,
    "where": lambda chosen, a, b: np.float64(a if chosen else b),
    "magnitude": lambda x: np.float64(abs(x)),
    "again": np.float64,
    "anywhere": bool,
    "lane_count": lambda memory: 1,
    "get": lambda memory, place: np.float64(memory[place, 0]),
    "put": lambda memory, place, x: memory.__setitem__((place, 0), x),
    "gather": lambda memory, where_to, row, begin: memory[where_to[row, 0] + begin, 0],
    "scatter": _scatter,
    "max": lambda a, b: a if a > b else b,  # as compiled: which of two equal zeros it is
    "min": lambda a, b: a if a < b else b,
    "seats": lambda team: WARP,
    "rank": lambda seat: seat,
    "size_of": lambda seat: WARP,
    "scanners": lambda seat: SCANNERS,
    "mine": lambda seat, count: range(seat, count, WARP),
    "leads": lambda seat: seat == 0,
    "my_rows": lambda seat, count: range(seat // ACROSS, count, WARP // ACROSS),
    "my_fours": lambda seat, count: range(seat % ACROSS, count, 4 * ACROSS),
    "meet": lambda team: None,
    "ones": lambda word: int(word).bit_count(),
    "take": take,
}


def in_python(watch):
    """What `phases.warp_phase` is, and calls, in Python."""
    given = IN_PYTHON | {"wait": watch.wait, "seat_of": watch.seat_of}
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
