"""What files are called and what they may ask for, in one place. Files may come from strangers.

A limit is checked before memory is taken. It stands well above what real games need, and low enough
that an ordinary machine survives what it lets through. Arrays have no limit: they are stored
uncompressed, and whoever could store them can load them.

This loads nothing, so that the completion of the command line is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

# -- endings of files
TEXT = (".yaml", ".yml", ".json")
ARRAYS = (".npz",)
GAMBIT = (".nfg",)
TABLES = (".csv", ".parquet")
PROGRAMS = (".prism", ".nm", ".pm", ".jani")
MODELS = (*PROGRAMS, ".drn", ".umb", ".tra")
REWARDS_OF_STATES, REWARDS_OF_TRANSITIONS = (".srew", ".rews"), (".trew", ".rewt")
BESIDE_TRANSITIONS = (".lab", ".sta", *REWARDS_OF_STATES, *REWARDS_OF_TRANSITIONS)
SOLUTIONS = (".ace",)
C_HEADER = (".h",)
PAGES = (".html", ".htm")
READABLE = (*PAGES, ".txt", ".md", ".tex", ".pdf", ".png", ".svg", ".ipynb", ".py", ".log", ".xlsx")
"""Those that promise something to read or to look at, which no archive is."""

GAMES = [*TEXT, *ARRAYS, *GAMBIT, *TABLES, *MODELS, *SOLUTIONS]
"""Those of files from which a game can be read; `files.formats.register` adds to them."""


def transitions_instead(path: Path) -> str:
    """Say which file to give instead of one beside a model; "" for files of other kinds."""
    if path.suffix.lower() not in BESIDE_TRANSITIONS:
        return ""
    named = [path.with_name(f"{stem}.tra") for stem in (path.stem, path.stem.rstrip("0123456789"))]
    model = next((file for file in named if file.is_file()), named[0])
    return f"it belongs to a model of PRISM, which is read by its transitions: give {model}"


# -- limits


class Limit(NamedTuple):
    """A limit that grows with the size of what is there: base + share * size."""

    base: int
    share: int

    def at(self, size: int) -> int:
        """Return the limit for this size."""
        return self.base + self.share * size


# -- text files and numbers
TEXT_BYTES = 2**26  # bytes of a text file; parsed values take up to thirty times the room of their text
NESTING = 32  # levels of lists and mappings in a text file, of which a game needs eight
LABEL_NESTING = 16  # levels of lists in one label
DIGITS = 3900  # digits of a number; Python is slow with much longer ones, and refuses to print them
DECIMAL_LENGTH = 2000  # characters of a decimal number; exponents have three digits: see 1e999999999
DENOMINATOR_BITS = 2**16  # bits of the common denominator of a constraint's costs, all added exactly
MESSAGE = 4000  # characters of an error message that the program prints: labels may be long

# -- games
HORIZON = 1_000_000  # steps of a game in a file, so that a few digits cannot ask for all the memory
EXPANDED = 2**25  # numbers in the tables that the rules of a file expand to; also budgets at all times
SUMS = 2**18  # different sums of costs, and of rewards, that the rules of a file which add may make
LAYER_OUTCOMES = 128  # a time with tables of its own counts as at least this many outcomes
REACH_WORK = 2**32  # transitions followed to find which states can occur
SAME_HASH = 1000  # labels with the same hash; tables of such labels take quadratic time
DISCRETE_COUNT = 10**6  # the largest shape parameter of a distribution on the integers
LISTED = 2**20  # entries of a plain numpy array that become Python objects: labels, budgets, start

# Outcomes that a plain numpy file may describe, by bytes of the file: an array may apply at several
# times or to several costs. Each outcome takes about two hundred bytes while the game is made.
OUTCOMES = Limit(2**21, 1)

# States that an explicit model may announce, by characters of its transitions: those without any
# are deadlocks, and need no character.
ANNOUNCED = Limit(2**16, 1)

# Numbers in the tables of all layers of an archive, by numbers stored: layers may share arrays, as
# those of a discounted game do. The limit bounds minutes, not memory.
LAYERED = Limit(2**31, 100)

# -- archives
HEADER = 2**29  # bytes of a header
EMPTY_ROWS = Limit(2**24, 6)  # rows of an array without columns, which takes no room, by bytes of the file
UNFOLDED = Limit(2**26, 100)  # bytes that a Parquet table may unfold to, by bytes of the file
