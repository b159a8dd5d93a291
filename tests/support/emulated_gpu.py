"""A card that is none: its memory is numpy's, and its kernels are loops over blocks and threads.

The phases are those that a GPU runs (`kernels/device.py`, `verifier/gpu_functions.py`), compiled, and at
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
from acegames.verifier.gpu_functions import (
    draw_thread,
    gain_thread,
    judge_thread,
    number_thread,
    pack_thread,
    pass_thread,
)

POISON = 0xFF  # of each byte: floats are no numbers then


# Each is a function of its own, because compiled closures cannot be kept on disk.


@kernel
def heights(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.find_height(thread, block, threads, blocks, shared, own, given)


@kernel
def reach(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.prepare_reached_rows(thread, block, threads, blocks, shared, own, given)
        for thread in range(threads - 1, -1, -1):
            device.mark_successors(thread, block, threads, blocks, shared, own, given)


@kernel
def pack(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.pack_marks(thread, block, threads, blocks, shared, own, given)


@kernel
def cells(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.prepare_cell_rows(thread, block, threads, blocks, shared, own, given)
        for thread in range(threads - 1, -1, -1):
            device.solve_pure_cell(thread, block, threads, blocks, shared, own, given)


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


@kernel
def plain(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            _forget(own.group)
            device.solve_regular_by_thread(thread, block, threads, blocks, shared, own, given)


@kernel
def warp(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        _forget(shared.group)
        device.solve_regular_by_warp(0, block, threads, blocks, shared, own, given)


@kernel
def left(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.solve_fallback_games(thread, block, threads, blocks, shared, own, given)


@kernel
def read_open(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.read_open_game(thread, block, threads, blocks, shared, own, given)


@kernel
def mend(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.apply_repair(thread, block, threads, blocks, shared, own, given)


@kernel
def strips(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.count_strip(thread, block, threads, blocks, shared, own, given)


@kernel
def numbers(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.sum_strips(thread, block, threads, blocks, shared, own, given)
        for thread in range(threads - 1, -1, -1):
            device.prefix_sums(thread, block, threads, blocks, shared, own, given)
        for thread in range(threads - 1, -1, -1):
            device.number_strips(thread, block, threads, blocks, shared, own, given)


@kernel
def file_cells(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.encode_cell(thread, block, threads, blocks, shared, own, given)


@kernel
def file_records(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            device.encode_mixed(thread, block, threads, blocks, shared, own, given)


@kernel
def verify_pass(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            pass_thread(thread, block, threads, blocks, shared, own, given)


@kernel
def verify_pack(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            pack_thread(thread, block, threads, blocks, shared, own, given)


@kernel
def verify_number(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            number_thread(thread, block, threads, blocks, shared, own, given)


@kernel
def verify_draw(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            draw_thread(thread, block, threads, blocks, shared, own, given)


@kernel
def verify_judge(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            judge_thread(thread, block, threads, blocks, shared, own, given)


@kernel
def verify_gain(threads, blocks, shared, own, given):
    for block in range(blocks - 1, -1, -1):
        for thread in range(threads - 1, -1, -1):
            gain_thread(thread, block, threads, blocks, shared, own, given)


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
        return room._replace(group=allocate_group.py_func(n, len(actions), actions, given.goal.correlated, **how))

    def send(self, parts):
        waiting = list(parts)

        def receive():
            for there, here in waiting:
                here[...] = there
            waiting.clear()

        return receive


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
