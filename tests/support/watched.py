"""Kernels of a warp as plain Python, which watches every access to memory.

Two lanes *race* where they come to one place between two calls of syncwarp and one of them writes: on a GPU, whose
threads do not go through the lanes one after the other, anything could happen.
"""

import sys
from collections import namedtuple
from contextlib import contextmanager

import numpy as np
import pytest

from acegames.kernels import batches, device, lockstep, regular
from acegames.kernels.intrinsics import fetch_add

MODULES = batches, device, lockstep, regular
FILES = {module.__file__ for module in MODULES}
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
    while frame.f_code.co_filename not in FILES:
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


@contextmanager
def watching(watch):
    """Have `device.solve_regular_by_warp`, and what it calls, say where a lane begins and where all wait."""
    given = {
        "syncwarp": watch.syncwarp,
        "lane_id_of": watch.lane_id_of,
        "fetch_add": lambda counter, count: fetch_add(counter.values, count),  # atomic, so that nobody races
        "max": lambda a, b: a if a > b else b,  # as compiled: which of two equal zeros it is
        "min": lambda a, b: a if a < b else b,
    }
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            for name in given:
                if name in vars(module) or name in ("max", "min"):
                    patch.setattr(module, name, given[name], raising=False)
        yield
