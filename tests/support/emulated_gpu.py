"""A card that is none: its memory is numpy's, and its kernels are loops over blocks and threads.

The phases are those that a GPU runs (`kernels/device.py`, `verifier/on_gpu.py`), compiled, and at
full size. Blocks run one after the other, last first, and so do threads, so that nothing can rest
on their order. A warp that works together is one thread here, which goes through all seats between
two barriers, in an order that changes from kernel to kernel (`kernels/intrinsics.py`). What a GPU would
leave undefined is poisoned, and what travels to the host is copied as late as possible.
"""

import weakref
from dataclasses import dataclass

import numpy as np

from acegames.engines.gpu import GPUEngine
from acegames.kernels import device
from acegames.kernels.intrinsics import WARP, Warp
from acegames.kernels.lockstep import allocate_group
from acegames.system.compiled import inlined, kernel
from acegames.verifier import on_gpu

POISON = 0xFF  # of each byte: floats are no numbers then


@inlined
def _forget(group):
    """No game may rest on what the one before has left; deviations are part of a kernel's code."""
    group.memory[:] = np.nan
    group.fixed[:] = np.nan
    group.table[:] = np.nan
    group.point[:] = np.nan
    group.A[:] = np.nan
    group.row[:] = np.nan
    group.whole[:] = -1
    group.games[:] = -1


@inlined
def forget_and_solve(thread, block, threads, blocks, shared, own, given):
    _forget(own.group)
    device.solve_regular_by_thread(thread, block, threads, blocks, shared, own, given)


PHASES = {
    "cells": [device.prepare_cell_rows, device.solve_pure_cell],
    "plain": [forget_and_solve],
    "left": [device.solve_fallback_games],
    "read_open": [device.read_open_game],
    "mend": [device.apply_repair],
    "strips": [device.count_strip],
    "numbers": [device.sum_strips, device.prefix_sums, device.number_strips],
    "file_cells": [device.encode_cell],
    "file_records": [device.encode_mixed],
    "verify_judge": [on_gpu.judge_thread],
    "verify_gain": [on_gpu.gain_thread],
}
"""What the threads of each kernel do between two barriers."""

DRIVE = """
@kernel
def {name}(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
"""
PHASE = """\
        for thread in range(threads - 1, -1, -1):
            {name}_{k}(thread, block, threads, blocks, shared, own, given)
"""
for name, phases in PHASES.items():  # as text, because compiled closures cannot be kept on disk
    globals().update({f"{name}_{k}": phase for k, phase in enumerate(phases)})
    code = DRIVE.format(name=name) + "".join(PHASE.format(name=name, k=k) for k in range(len(phases)))
    exec(compile(code, __file__, "exec"))


@kernel
def warp(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        _forget(shared.group)
        device.solve_regular_by_warp(0, block, threads, blocks, shared, own, given)


def poison(array):
    """Fill an array with what no computation may use."""
    array.reshape(-1).view(np.uint8)[:] = POISON


def poisoned(room, constants=(), name=""):
    """The same room for a kernel, filled so, but for fields that are constants (`KernelSpec.constants`)."""
    if isinstance(room, np.ndarray):
        if name in constants:
            return room
        room = np.empty_like(room)
        poison(room)
    elif isinstance(room, tuple):
        fields = zip(room._fields, room, strict=True)
        return type(room)(*(poisoned(x, constants, f"{name}.{field}" if name else field) for field, x in fields))
    return room


class EmulatedCard:
    """What `system.cuda_card.Card` offers."""

    name, capability, processors = "emulated", (0, 0), 1
    total = 2**34

    def __init__(self, free=2**34):
        self.free, self.launched, self.recipes, self.rng = free, [], set(), np.random.default_rng(0)

    def enter(self):
        pass

    synchronise = enter

    def empty(self, shape, dtype):
        found = np.empty(shape, dtype)
        poison(found)
        return found

    def upload(self, array):
        return np.array(array)

    def write(self, there, array):
        assert there.shape == array.shape
        there[...] = array

    def zero(self, there):
        there[...] = 0

    def fetch(self, there):
        return there.copy()

    def launch(self, recipe, blocks, given):
        self.launched.append(recipe.name)
        self.recipes.add(recipe)
        if blocks <= 0:
            return
        own, shared, drive = recipe.own, recipe.shared, globals()[recipe.name]
        if recipe.name == "plain":
            if shared is None:
                own = self.eight_lanes(own, given, None)
            else:
                order = Warp(int(self.rng.integers(WARP)))
                shared, drive = self.eight_lanes(shared, given, order), warp
        shared, own = poisoned(shared, recipe.constants), poisoned(own, recipe.constants)
        drive(recipe.threads, blocks, shared, own, given)

    def plain_kinds(self):
        """Of the kernels of plain games: whether they knew all joint actions, and kept what deviations gain."""
        rooms = [x.own if x.shared is None else x.shared for x in self.recipes if x.name == "plain"]
        return {(len(room.choices.action) > 0, len(room.group.A) > 0) for room in rooms}

    def eight_lanes(self, room, given, team):
        """The same room for a processor, which has eight lanes; the order of seats is another one each time."""
        actions, n, kept = np.diff(given.choices.first_action), len(room.group.row) - 1, len(room.group.A) > 0
        how = {"warp": team, "keep_gains": kept}
        return room._replace(group=allocate_group(n, len(actions), actions, given.goal.correlated, **how))

    def send(self, parts):
        waiting = list(parts)

        def receive():
            for there, here in waiting:
                here[...] = there
            waiting.clear()

        return receive


class Recording(EmulatedCard):
    """Remembers what kernels are given."""

    def __init__(self):
        super().__init__()
        self.given = {}

    def launch(self, recipe, blocks, given):
        self.given[recipe.name] = recipe, given
        super().launch(recipe, blocks, given)


class MeasuredCard(EmulatedCard):
    """Knows how much memory was taken at once."""

    taken = most = 0

    def empty(self, shape, dtype):
        found = super().empty(shape, dtype)
        self.taken += found.nbytes
        self.most = max(self.most, self.taken)
        weakref.finalize(found, self._free, found.nbytes)
        return found

    def upload(self, array):
        found = self.empty(array.shape, array.dtype)
        found[...] = array
        return found

    def _free(self, count):
        self.taken -= count


@dataclass(frozen=True)
class EmulatedGPU(GPUEngine):
    """The engine on such a card."""

    card: EmulatedCard | None = None

    def open_card(self):
        return EmulatedCard() if self.card is None else self.card
