"""Vectors of eight numbers for kernels: what the operations mean, in Python.

The vector units of a processor work on eight lanes at a time, see `lanes_llvm`, and round as they
do on single numbers. Here there is one lane, a float, as on a GPU, where every thread is a lane by
itself. Memory is an array of shape (places, lanes): place i holds a number of each lane.
"""

from __future__ import annotations

import numpy as np

from acegames.system.compiled import instruction

LANES = 8


@instruction
def vectorized():
    """Return whether vector units are at hand: programs are solved in lockstep only then."""
    return False


@instruction
def broadcast(x):
    """Return a number in all lanes."""
    return np.float64(x)


@instruction
def where(chosen, a, b):
    """Return, in each lane, a where chosen, else b."""
    return np.float64(a if chosen else b)


@instruction
def absolute(x):
    """Return the absolute value in each lane."""
    return abs(x)


@instruction
def opaque(x):
    """Return x, hidden from the optimiser of a GPU's compiler.

    So what was found from it is found anew instead of being kept, for which there are too few
    registers; and what must not be divided by is not, because the quotient is not used.
    """
    return x


@instruction
def any_lane(chosen):
    """Return whether any lane is chosen."""
    return bool(chosen)


@instruction
def lane_count(memory):
    """Return how many lanes there are; known when it is compiled."""
    return 1


@instruction
def get(memory, place):
    """Return the lanes at a place; whole numbers become floats."""
    return np.float64(memory[place, 0])


@instruction
def put(memory, place, x):
    """Store lanes at a place; floats become whole numbers in a memory of these."""
    memory[place, 0] = x


@instruction
def gather(memory, where_to, row, begin):
    """Return each lane from a place of its own."""
    return memory[where_to[row, 0] + begin, 0]


@instruction
def scatter(memory, where_to, row, begin, x):
    """Store each lane at its own place."""
    memory[where_to[row, 0] + begin, 0] = x
