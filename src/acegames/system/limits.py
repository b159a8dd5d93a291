"""What a file may ask for, in one place. Files may come from strangers.

A limit is checked before memory is taken. It stands well above what real games need, and low enough
that an ordinary machine survives what it lets through. Uncompressed arrays have no limit: whoever
could store them can load them.
"""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A limit that grows with the size of what is there: base + share * size."""

    base: int
    share: int

    def at(self, size: int) -> int:
        """The limit for this size."""
        return self.base + self.share * size


TEXT_BYTES = 2**26
"""Bytes of a text file. Parsed values take up to thirty times the room of their text."""

NESTING = 32
"""Levels of lists and mappings in a text file; a game needs eight. Parsers recurse once per level."""

LABEL_NESTING = 16
"""Levels of lists in one label."""

DIGITS = 3900
"""Digits of a whole number, a numerator or a denominator. Python takes quadratic time for much longer
ones, and refuses to print them."""

DECIMAL_LENGTH = 2000
"""Characters of a decimal number. Its exponent has at most three digits: the exact value of
1e999999999 would fill the memory."""

DENOMINATOR_BITS = 2**16
"""Bits of the common denominator of a constraint's costs. A thousand costs with unrelated
denominators of 64 bits fit. A small file could ask for a million bits, which are slow to add."""

HORIZON = 1_000_000
"""Steps of a game in a file, so that a few digits cannot ask for all the memory."""

EXPANDED = 2**25
"""Numbers in the tables that the rules of one file expand to (wildcards, outcomes, times), and also
budgets of all constraints at all times. They take 256 MiB, and three times that while they are made."""

OUTCOMES = Limit(2**21, 1)
"""Outcomes that a plain numpy file may describe, by bytes of the file: one array may apply at several
times or to several costs. Each outcome takes about two hundred bytes while the game is made."""

LAYER_OUTCOMES = 128
"""A time with tables of its own counts as at least this many outcomes, however small it is."""

LAYERED = Limit(2**31, 100)
"""Numbers in the tables of all layers of an archive, by numbers stored, where layers share arrays. A
discounted game has a layer per step, all with the same outcomes. The limit bounds minutes, not memory."""

REACH_WORK = 2**32
"""Transitions followed to find which states can occur; a set of states seen before costs nothing."""

SAME_HASH = 1000
"""Labels with the same hash, as Python numbers that differ by a multiple of 2^61 - 1 have: tables of
such labels take quadratic time."""

COMPRESSED = 2**31
"""Bytes that the compressed members of a zip archive may unfold to, whatever its size."""

PACKED = Limit(2**27, 50)
"""Bytes that the compressed members of a zip archive may unfold to, by bytes of the file: a kilobyte
may unfold to a megabyte. An entry of an array counts as at least `ENTRY` bytes, since Python makes
that much of it, and a text as `TEXT_ENTRY` more."""

PACKED_HEADER = Limit(2**24, 16)
"""Bytes of a compressed header, by bytes of the file. One rare character makes it four times as long
in memory."""

ENTRY, TEXT_ENTRY = 8, 128

LISTED = 2**20
"""Entries of an array of a plain numpy file that become Python objects: labels, budgets, the start."""

UNFOLDED = Limit(2**26, 100)
"""Bytes that a Parquet table may unfold to, by bytes of the file: equal lines pack without bound."""

HEADER = 2**29
"""Bytes of a header."""

HEADER_VALUES = Limit(2**22, 1)
"""Values in the header of a zip archive, by bytes of the file. Each takes up to a hundred bytes of
memory, and a thousand of them may be packed into three bytes."""

DISCRETE_COUNT = 10**6
"""The largest shape parameter of a distribution on the integers."""

MESSAGE = 4000
"""Characters of an error message that the program prints: labels are quoted, however long they are."""
