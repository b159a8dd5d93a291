"""How the pairs of a time are cut into blocks: boxes of about as many pairs, which lead to few.

What is known of a time before it is cut are samples of what each block before leads to. Pairs are
cut into groups of states, and each group into ranges of keys within a state. How many groups there
are is decided by how many blocks of the next time a block would lead to: few groups where every
state leads to all others and little is spent at once, many where spending is coarse and states are
neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from acegames.verifier.arrays import Floats, Ints
from acegames.verifier.near import Box, Ways
from acegames.verifier.passes import Went

PAIRS = 2**18
"""Pairs of a block, about: a tenth of a second."""


class Cutter:
    """Cuts the pairs of one time after another."""

    def __init__(self, ways: Ways, pairs: int | None = None) -> None:
        self._ways, self._span = ways, ways.packed.span
        self._states = len(ways.packed.game.states)
        self._pairs = PAIRS if pairs is None else pairs
        self._expected, self._scale = 0.0, 1.0  # pairs of the last time, and by what that was wrong

    def learn(self, pairs: int) -> None:
        """The time that was cut last has so many pairs in truth."""
        if self._expected:
            self._scale = pairs / self._expected

    def cut(self, t: int, before: Sequence[Went]) -> list[Box]:
        """Return boxes that hold all pairs of a time, given the blocks of the time before."""
        before = [went for went in before if went.led]
        if not before:
            return []
        state, within = np.divmod(np.concatenate([went.sample for went in before]), self._span)
        weight = np.concatenate([np.full(len(went.sample), went.led / len(went.sample)) for went in before])
        weight /= _covered(within, [went.led_box for went in before if went.led_box is not None])
        self._expected = float(weight.sum())
        blocks = max(round(self._expected * self._scale / self._pairs), 1)
        groups = self._groups(t, blocks, int(within.max() - within.min()) + 1)
        ends = _quantiles(state, weight, groups, self._states)
        found = []
        for first, end in zip([0, *ends], [*ends, self._states], strict=True):
            mine = (state >= first) & (state < end)
            share = max(round(blocks * float(weight[mine].sum() / weight.sum())), 1)
            cuts = [x - x % self._even(share) for x in _quantiles(within[mine], weight[mine], share, self._span)]
            cuts = sorted({x for x in cuts if x > 0})
            found += [Box(first, end, *ends) for ends in zip([0, *cuts], [*cuts, self._span], strict=True)]
        return found

    def _even(self, parts: int) -> int:
        """Cuts are at multiples of this: between lines, if there are many."""
        line = int(self._ways.packed.size[-1]) if len(self._ways.packed.size) else 1
        return line if self._span // line >= 4 * parts else 1

    def _groups(self, t: int, blocks: int, width: int) -> int:
        """In how many groups of states so many blocks lead to the fewest others."""
        best, least = 1, np.inf
        groups = 1
        while groups <= min(blocks, self._states):
            ranges = -(-blocks // groups)
            if ranges <= width:
                leads, spread = self._led(self._ways.packed.game.layer_at[t], groups)
                needed = leads * min(spread * ranges / width + 2, ranges)
                if needed < least:
                    best, least = groups, needed
            groups *= 2
        return best

    def _led(self, layer: int, groups: int) -> tuple[float, int]:
        """To how many groups a group leads, on average, and how far steps differ."""
        if (layer, groups) not in self._known:
            ends = np.linspace(0, self._states, groups + 1).astype(np.int64)
            to, far = 0, 0
            for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
                _, following, step = self._ways.outcomes(layer, first, end)
                to += len(np.unique(np.searchsorted(ends, following, "right")))
                far = max(far, int(step.max() - step.min()) if len(step) else 0)
            self._known[layer, groups] = to / groups, far
        return self._known[layer, groups]

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[float, int]]:
        return {}


def _covered(within: Ints, boxes: Sequence[Box]) -> Ints:
    """In how many boxes keys lie, whatever their states: a pair may have been found by as many."""
    begin, end = np.sort([box.low for box in boxes]), np.sort([box.high for box in boxes])
    count: Ints = np.searchsorted(begin, within, "right") - np.searchsorted(end, within, "right")
    return np.maximum(count, 1)


def _quantiles(values: Ints, weight: Floats, parts: int, end: int) -> list[int]:
    """Return where to cut 0 .. end so that about as much lies in each part, ascending."""
    if parts <= 1 or not len(values):
        return []
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    at = np.searchsorted(total, total[-1] * np.arange(1, parts) / parts)
    cuts = set((values[order][at] + 1).tolist())
    return sorted(x for x in cuts if 0 < x < end)
