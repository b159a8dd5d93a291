"""What whoever judges blocks of pairs must know: the game as counted, the policy, the concept.

This much is given out once. What follows from it is worked out once by each process that is given
it, and kept there: keys, ceilings, tables, numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from acegames.concepts import Concept
from acegames.model.arrays import frozen
from acegames.model.game import LAYER_FIELDS, MarkovGame
from acegames.model.record import with_fields
from acegames.verifier.alike import floors
from acegames.verifier.arrays import Ints
from acegames.verifier.deviations import numbers_of
from acegames.verifier.near import Box, Near, Ways
from acegames.verifier.packed import Packed
from acegames.verifier.reading import Reader
from acegames.verifier.records import Numbers
from acegames.verifier.units import Units


@dataclass(frozen=True, eq=False)
class Setting:
    """Given out to all that judge."""

    game: MarkovGame  # as counted
    policy: Any
    concept: Concept
    rounded: bool
    by_file: bool = False  # of the policy's layers only the name of their file is sent

    def __reduce__(self) -> tuple[Any, ...]:
        return received, (self.game, self.policy, self.concept, self.rounded, self.by_file)

    def with_names_of_files(self) -> Setting:
        """The same, to be sent; of a policy that has a file, its name in place of layers."""
        named = getattr(self.policy, "by_file", None)
        policy = named() if callable(named) else None
        return self if policy is None else replace(self, policy=policy, by_file=True)

    @cached_property
    def packed(self) -> Packed:
        """Pairs as keys."""
        return Packed.of(self.game, Units(self.game))

    @cached_property
    def ways(self) -> Ways:
        """Where blocks lead."""
        return Ways(self.packed)

    @cached_property
    def reader(self) -> Reader:
        """Asks the policy."""
        product = self.concept.product
        return Reader(self.game, self.policy, self.packed.units, rounded=self.rounded, product=product)

    @cached_property
    def floors(self) -> Ints | None:
        """Up to where pairs are alike, if the policy says so."""
        return floors(self.packed, self.reader.declared())

    @cached_property
    def _numbers(self) -> dict[int, Numbers]:
        return {}

    def numbers(self, t: int) -> Numbers:
        """Return the numbers of one time."""
        at, packed = self.game.layer_at[t], self.packed
        if at not in self._numbers:
            layer, cost = packed.game.layers[at], packed.costs[at]
            self._numbers[at] = numbers_of(packed.game, layer, cost, packed.units.stored, self.concept)
        return self._numbers[at]

    def near(self, t: int, box: Box | None) -> Near:
        """Return the next time, seen from pairs in a box."""
        return Near.seen_from(self.ways, t, box)

    def box(self, keys: Ints) -> Box | None:
        """Return the box of some keys; None where there are none."""
        return Box.around(keys, self.packed.span) if len(keys) else None

    @cached_property
    def seen(self) -> bool:
        """Whether this process sees the policy's file, if it must."""
        return not self.by_file or bool(self.policy.layers.source.unchanged)

    def alike_by_number(self, t: int) -> bool:
        """Return whether pairs that count as alike have the same number in the policy's tables.

        Then pairs may be judged as one wherever their blocks are: they have the same answer.
        """
        stored = None if self.floors is None else self.reader.stored(t, self.packed)
        return stored is not None and self.floors is not None and stored.below(self.floors[t])


def received(game: MarkovGame, policy: Any, concept: Concept, rounded: bool, by_file: bool) -> Setting:
    """Return what came from another process; arrays are read-only again, as they were there."""
    arrays: list[dict[str, Any]] = [{name: frozen(getattr(x, name)) for name in LAYER_FIELDS} for x in game.layers]
    layers = tuple(replace(x, **own) for x, own in zip(game.layers, arrays, strict=True))
    return Setting(with_fields(game, layers=layers), policy, concept, rounded, by_file)
