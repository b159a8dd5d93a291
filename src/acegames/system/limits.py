"""What a file may ask for, in one place. Files may come from strangers: each size is held against its limit before memory is taken.

A limit stands well above what games in use need, and low enough that what it lets through fits into an ordinary machine. What
is bounded by the size of the file itself (uncompressed arrays) has no limit: whoever could store it can load it.
"""

from __future__ import annotations

TEXT_BYTES = 2**26
"""Of a text file. Parsed values take up to thirty times the room of their text."""

NESTING = 32
"""Levels of lists and mappings in a text file; a game needs eight. Readers call themselves once per level."""

LABEL_NESTING = 16
"""Levels of lists in one label."""

DIGITS = 3900
"""Of a whole number, a numerator or a denominator. Python takes quadratic time for much longer ones, and refuses to write them."""

DECIMAL_LENGTH = 2000
"""Characters of a decimal number; with exponents of three digits, for the exact value of 1e999999999 would fill the memory."""

DENOMINATOR_BITS = 2**16
"""Of the common denominator of a constraint's costs: a thousand costs with denominators of 64 bits that have nothing in
common. Numbers of that length are added exactly in a moment, and those of a million bits, which a small file can ask for, not."""

HORIZON = 1_000_000
"""Steps of a game in a file, so that a few written digits cannot ask for all the memory."""

EXPANDED = 2**25
"""Numbers in the tables that the rules of one file make (by wildcards, several outcomes, several times); above this a game
belongs in arrays. They take a quarter of a GiB, and about three times that while they are made. Also the budgets of
all constraints at all times, of which a file may write down one for all times."""

OUTCOMES = 2**21
"""That the arrays of a plain numpy file stand for (applied at several times, or to several costs), besides one per byte of the file:
about two hundred bytes are taken for each while the game is made."""

LAYER_OUTCOMES = 128
"""That the making of one more layer (a time with tables of its own) counts as, however small it is."""

LAYERED, LAYERED_SHARE = 2**31, 100
"""Numbers in the tables of all layers of an archive, where layers share arrays, besides so many per number that is stored. A discounted
game has a layer for each step, all with the same outcomes. What this lets through takes minutes to check, not memory."""

REACH_WORK = 2**32
"""Steps from a state to a next one that are looked at to find which states can occur; sets that come again are not counted."""

SAME_HASH = 1000
"""Labels with one hash value. Python numbers that differ by a multiple of 2^61 - 1 have; tables of them take quadratic time."""

COMPRESSED = 2**31
"""Bytes that the compressed members of an archive may unfold to in total, whatever they declare. Larger content is stored
uncompressed."""

STORED_ABOVE = COMPRESSED // 2
"""Bytes of arrays above which an archive is written uncompressed; the other half is room for the header and the names."""

PACKED, PACKED_SHARE = 2**27, 50
"""Bytes that the compressed members of an archive may unfold to, besides so many per byte of the file: a kilobyte may unfold to a
megabyte. An entry of an array counts as `ENTRY` bytes at least, which is what is made of it, and a text as `TEXT_ENTRY` more."""

PACKED_HEADER, PACKED_HEADER_SHARE = 2**24, 16
"""Of these, bytes of a compressed header, besides so many per byte of the file. One rare character makes all of it four times as long."""

ENTRY, TEXT_ENTRY = 8, 128
"""Bytes that an entry of an array counts as, whatever its type, and those of a text besides its characters."""

NPY_HEADER = 2**16
"""Bytes of the head of one array, which says its type and its shape."""

LISTED = 2**20
"""Entries of an array of a plain numpy file that becomes Python objects: labels, budgets, the start."""

UNFOLDED, UNFOLDED_SHARE = 2**26, 100
"""Bytes that a Parquet table may unfold to, besides so many per byte of the file: it packs lines that are alike without bound."""

HEADER = 2**29
"""Bytes of the header of an archive."""

HEADER_VALUES = 2**22
"""Values in the header of an archive, besides one per byte of the file: each takes up to a hundred bytes of memory, and a
thousand of them may be packed into three bytes of file."""

DISCRETE_COUNT = 10**6
"""Largest shape, by size, of a distribution on the integers."""

MESSAGE = 4000
"""Characters of an error that the command-line program prints: labels are quoted in messages, and may be as long as the file."""
