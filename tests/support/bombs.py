"""Files that ask for more than they hold: archives with arrays that stand for large tables, and a few words that do.

`BOMBS` is {name: function that writes it}. `python tests/support/bombs.py` writes those that are documents into the corpus anew.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np

CORPUS = Path(__file__).parents[1] / "corpus"
SMALL = {"transition": np.ones((1, 1, 1)), "reward": np.ones((1, 1, 1)), "horizon": np.array(1)}


def head(dtype, shape):
    """The head of an array, whatever follows it."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def plain(path, **arrays):
    """Write a plain numpy file of a small game, with these arrays in it."""
    np.savez(path, **{**SMALL, **arrays})


def headed(path, value):
    """Write an archive with a header that has this value in it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", f'{{"format": "acegames-game", "version": 1, "members": [], "y": {value}}}')


BOMBS = {
    "compressed.npz": lambda p: np.savez_compressed(p, **{**SMALL, "states": np.zeros(2**26, np.uint8)}),
    "states.npz": lambda p: plain(p, states=np.zeros(2**24, np.uint8)),
    "initial.npz": lambda p: plain(p, initial=np.zeros(2**24, np.uint8)),
    "no_columns.npz": lambda p: plain(p, states=np.zeros((10**9, 0), np.uint8)),
    "no_outcomes.npz": lambda p: plain(p, transition=np.zeros((2**20, 2**10, 0))),
    "times.npz": lambda p: plain(p, transition=np.ones((10**6, 1, 1, 1)), horizon=np.array(10**6)),
    "budgets.npz": lambda p: plain(p, budget=np.ones(2000), cost=np.ones((1, 1, 2000)), horizon=np.array(10**6)),
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
