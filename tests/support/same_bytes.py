"""Whether two engines give the same answer, to the last byte of its file."""

from __future__ import annotations

import numpy as np

import acegames as ace
from oracle import random_game
from random_games import changing_game

CONCEPTS = (ace.CE(), ace.CCE("egalitarian"), ace.Nash(), ace.CCE(None))


def outcome(game, concept, path, **options):
    """The bytes of the solution's file, or the error."""
    try:
        ace.solve(game, concept, **options).save(path)
    except ace.AceError as error:
        return type(error), str(error)
    return path.read_bytes()


def drawn(seed):
    """A game: of the oracle's, or one in which everything changes with time."""
    rng = np.random.default_rng([19, seed])
    return random_game(rng) if seed % 2 else changing_game(rng)


class Enough(Exception):
    """Break a solve off."""


def stop_after(layers):
    def progress(told):
        if told.layers_done >= layers:
            raise Enough

    return progress
