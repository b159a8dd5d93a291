"""Small files that ask for much: archives that unfold to far more than they hold, and a few words that stand for large tables.

`BOMBS` is {name: function that writes it}. `python tests/support/bombs.py` writes those that are documents into the corpus anew.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from pathlib import Path

import numpy as np

CORPUS = Path(__file__).parents[1] / "corpus"
ONE = np.float64(1).tobytes()
MEGABYTE = 2**20
HEADER = '{"format": "acegames-game", "version": 1, "members": [], "y": '
SMALL = {"transition": np.ones((1, 1, 1)), "reward": np.ones((1, 1, 1)), "horizon": np.array(1)}


def head(dtype, shape):
    """The head of an array, whatever follows it."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def repeated(member, unit, count):
    """Write so many bytes, a unit again and again."""
    piece = unit * (MEGABYTE // len(unit))
    for _ in range(count // len(piece)):
        member.write(piece)
    member.write(piece[: count % len(piece)])


def plain(path, large, compression=zipfile.ZIP_DEFLATED, **small):
    """A plain numpy file: {name: (type, shape)} or (type, shape, unit) of what is large, filled with the unit."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, (dtype, shape, *unit) in large.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(head(dtype, shape))
                repeated(member, unit[0] if unit else b"\0", math.prod(shape) * np.dtype(dtype).itemsize)
        for name, array in {**SMALL, **small}.items():
            if name not in large:
                stream = io.BytesIO()
                np.save(stream, array)
                archive.writestr(f"{name}.npy", stream.getvalue())


def long_head(path, length):
    """An array whose head declares itself so long."""
    file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
    with file as archive, archive.open("transition.npy", "w", force_zip64=True) as member:
        member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", length))
        repeated(member, b" ", length)


def headed(path, value):
    """An archive with a header that has this value in it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", f"{HEADER}{value}}}")


LARGE, ROOMY = 2**28, 2**24 - 2**12  # beyond what a small file may unfold to; entries that take just less than that

BOMBS = {
    "states.npz": lambda p: plain(p, {"states": ("|u1", (LARGE,))}),
    "some_states.npz": lambda p: plain(p, {"states": ("|u1", (ROOMY,))}),
    "texts.npz": lambda p: plain(p, {"states": ("<U1", (ROOMY,))}),
    "small_entries.npz": lambda p: plain(p, {"reward": ("|u1", (1, 2**27 - 2**12))}),
    "initial.npz": lambda p: plain(p, {"initial": ("|u1", (ROOMY,))}),
    "budget.npz": lambda p: plain(p, {"budget": ("<f8", (ROOMY,))}),
    "no_columns.npz": lambda p: plain(p, {"states": ("|u1", (10**9, 0))}),
    "no_columns_stored.npz": lambda p: plain(p, {"states": ("|u1", (10**9, 0))}, zipfile.ZIP_STORED),
    "actions.npz": lambda p: plain(p, {"transition": ("<f8", (1, 2**22, 1), ONE), "reward": ("<f8", (1, 2**22, 1))}),
    "outcomes.npz": lambda p: plain(p, {"transition": ("<f8", (4000, 1, 4000), ONE)}, reward=np.ones((4000, 1, 1))),
    "times.npz": lambda p: plain(p, {"transition": ("<f8", (10**6, 1, 1, 1), ONE)}, horizon=np.array(10**6)),
    "budgets.npz": lambda p: plain(p, {}, budget=np.ones(2000), cost=np.ones((1, 1, 2000)), horizon=np.array(10**6)),
    "head.npz": lambda p: long_head(p, 2**28),
    "long_head.npz": lambda p: long_head(p, 2**26),
    "text.npz": lambda p: headed(p, '"' + "a" * 2**26 + '"'),
    "rare_character.npz": lambda p: headed(p, '"\U00010000' + "a" * (2**24 - 200) + '"'),
    "digits.npz": lambda p: headed(p, "1" * (2**24 - 200)),
}


def documents():
    """{path in the corpus: document} of those that are small even when spelled out."""
    one = ["<f8", [1, 1, 1], [1.0]]
    many = {"players": ["p"], "actions": [[0]], "states": [0], "initial": 0, "rules": [{"reward": [0], "next": 0}]}
    many |= {"format": "acegames-game", "version": 1, "horizon": 10**6, "budget": [1] * 99}
    game = json.loads((CORPUS / "game" / "random.json").read_text())
    header = game["header"]
    twice = {**header, "layers": header["layers"] * 2, "horizon": 2 * header["horizon"]}
    twice["layer_at"] = [k + len(header["layers"]) * again for again in (0, 1) for k in header["layer_at"]]
    twice["budgets"] = header["budgets"][:1]
    return {
        "plain/no_columns.json": {
            "arrays": {"transition": one, "reward": one, "horizon": ["<i8", [], [1]], "states": ["|u1", [10**9, 0], []]}
        },
        "json/no_end_of_budgets.json": many,
        "game/bad_layers_twice.json": {**game, "header": twice},
    }


if __name__ == "__main__":
    for name, document in documents().items():
        (CORPUS / name).write_text(json.dumps(document) + "\n")
