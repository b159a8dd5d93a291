"""Stage games in which best replies go in circles, so that many have no Nash equilibrium: the six-cycle (spec 4) in many guises.

Cells are {joint action: utilities in whole numbers}. What exists in them is for an oracle to say: some kinds have none by
construction, some have one, and of the others about half do.
"""

from __future__ import annotations

import itertools

import numpy as np


def ring(rng, n, width=2):
    """Row k has the columns k .. k + width - 1, around: player 1 is drawn to the first row of a column, player 2 to the last of a row."""
    cells = {}
    for k, step in itertools.product(range(n), range(width)):
        up = [int(rng.integers(0, 4)) + 5 * drawn for drawn in (step == 0, step == width - 1)]
        cells[k, (k + step) % n] = tuple(up)
    return cells


def pennies(rng):
    """Two by two with one equilibrium, in which both mix."""
    high, low = rng.integers(4, 9, size=(2, 2, 2)), rng.integers(0, 4, size=(2, 2, 2))
    return {
        (a, b): tuple(int((high if (a == b) == (i == 0) else low)[i, a, b]) for i in (0, 1))
        for a, b in itertools.product(range(2), repeat=2)
    }


def beside(one, other):
    """Both on actions of their own: no move leads from one to the other."""
    first = [1 + max(a[i] for a in one) for i in (0, 1)]
    return one | {(a + first[0], b + first[1]): u for (a, b), u in other.items()}


def with_more(rng, cells, number, size, *, low=0, high=9):
    """Some more joint actions, on up to `size` actions of each; `high` below what is there makes most of them unattractive."""
    free = [a for a in itertools.product(range(size), repeat=2) if a not in cells]
    chosen = rng.permutation(len(free))[:number]
    return cells | {free[k]: tuple(rng.integers(low, high, 2).tolist()) for k in chosen}


def with_a_rival(rng, cells):
    """One more row of player 1, or column of player 2, against all actions of a pair of the other's that some row has."""
    i = int(rng.integers(2))
    lines = {}
    for a in cells:
        lines.setdefault(a[i], []).append(a[1 - i])
    wide = [sorted(others) for others in lines.values() if len(others) > 1]
    others = wide[rng.integers(len(wide))]
    new = 1 + max(lines)
    level = int(rng.integers(0, 9))
    added = {(new, k)[:: 1 - 2 * i]: (level + int(rng.integers(0, 2)), int(rng.integers(0, 9))) for k in others}
    return cells | {a: u[:: 1 - 2 * i] for a, u in added.items()}


def drained(rng):
    """Pennies beside a cycle one of whose rows is feasible there too: where it is worth more than mixing, it leads into the cycle."""
    n = 3
    cells = beside(ring(rng, n), pennies(rng))
    level = int(rng.integers(0, 9))
    return cells | {(0, n + k): (level + int(rng.integers(0, 2)), -1 - int(rng.integers(0, 2))) for k in (0, 1)}


def with_ties(rng, cells, share):
    """Each utility is with this chance the same as another of the player's."""
    cells = dict(cells)
    values = [[u[i] for u in cells.values()] for i in (0, 1)]
    for a, u in cells.items():
        cells[a] = tuple(int(rng.choice(values[i])) if rng.random() < share else x for i, x in enumerate(u))
    return cells


KINDS = {
    "six-cycle": lambda rng: ring(rng, 3),
    "longer cycle": lambda rng: ring(rng, int(rng.integers(4, 6))),
    "wide cycle": lambda rng: ring(rng, 4, 3),
    "two cycles": lambda rng: beside(ring(rng, 3), ring(rng, 3)),
    "cycle in a larger game": lambda rng: with_more(rng, ring(rng, 3), int(rng.integers(1, 7)), 4),
    "cycle among dominated ones": lambda rng: with_more(rng, ring(rng, 3), int(rng.integers(1, 6)), 4, low=-9, high=0),
    "cycle with a rival": lambda rng: with_a_rival(rng, ring(rng, 3)),
    "cycle with ties": lambda rng: with_ties(rng, ring(rng, int(rng.integers(3, 5))), 0.15),
    "cycle beside pennies": lambda rng: beside(ring(rng, 3), pennies(rng)),
    "cycle that drains pennies": drained,
    "pennies with a rival": lambda rng: with_a_rival(rng, with_a_rival(rng, beside(pennies(rng), ring(rng, 3)))),
    "wide cycle with ties": lambda rng: with_ties(rng, with_more(rng, ring(rng, 4, 3), 2, 4), 0.2),
}
"""Games of two players."""


def two_players(rng, kind):
    """A game of this kind with its actions, and perhaps the players, in another order."""
    return shuffled(rng, KINDS[kind](rng))


def shuffled(rng, cells):
    """The same game under other names of actions and of players."""
    n = len(next(iter(cells)))
    order = rng.permutation(n).tolist()
    names = [rng.permutation(1 + max(a[i] for a in cells)).tolist() for i in range(n)]
    moved = {tuple(names[i][a[i]] for i in order): tuple(u[i] for i in order) for a, u in cells.items()}
    return dict(sorted(moved.items()))


def with_an_onlooker(rng, cells):
    """A third player without a choice."""
    return {(*a, 0): (*u, int(rng.integers(9))) for a, u in cells.items()}


def with_a_switch(rng, cells, keep):
    """A third player with two actions, one of which is there only with this chance; under it the first two may want the opposite."""
    switched, turned = with_an_onlooker(rng, cells), rng.random() < 0.5
    for a, u in cells.items():
        if rng.random() < keep:
            switched[*a, 1] = (*(u[::-1] if turned else u), int(rng.integers(9)))
    return switched


def walk_of_three(rng, size=3):
    """A closed walk of single moves, never two in a row by the same player, each of which its mover wants."""
    while True:
        path, mover = [(0, 0, 0)], -1
        while len(path) < 16:
            i = int(rng.choice([i for i in range(3) if i != mover]))
            to = (*path[-1][:i], int(rng.integers(size)), *path[-1][i + 1 :])
            if to == path[0] and len(path) > 3:
                movers = [next(i for i in range(3) if a[i] != b[i]) for a, b in itertools.pairwise([*path, to])]
                if movers[0] != movers[-1]:
                    return _drawn(rng, path, movers)
            if to in path:
                break
            path, mover = [*path, to], i


def _drawn(rng, path, movers):
    cells = {}
    for k, a in enumerate(path):
        u = rng.integers(0, 9, 3)
        u[movers[k - 1]], u[movers[k]] = 5 + rng.integers(4), rng.integers(4)
        cells[a] = tuple(u.tolist())
    return cells


THREE = {
    "cycle and onlooker": lambda rng: with_an_onlooker(rng, two_players(rng, rng.choice(list(KINDS)))),
    "cycle and switch": lambda rng: with_a_switch(rng, ring(rng, int(rng.integers(3, 5))), 1.0),
    "some cycle and switch at some": lambda rng: with_a_switch(rng, two_players(rng, rng.choice(list(KINDS))), 0.5),
    "walk": walk_of_three,
    "walk and more": lambda rng: _and_more(rng, walk_of_three(rng)),
}
"""Games of three players."""


def _and_more(rng, cells):
    free = [a for a in itertools.product(range(3), repeat=3) if a not in cells]
    chosen = rng.permutation(len(free))[: int(rng.integers(1, 5))]
    return cells | {free[k]: tuple(rng.integers(0, 9, 3).tolist()) for k in chosen}


def three_players(rng, kind):
    """A game of this kind under other names."""
    return shuffled(rng, THREE[kind](rng))


def as_stage(cells):
    """Joint actions (R, N) and utilities (R, N)."""
    return np.array(list(cells), dtype=np.int32), np.array(list(cells.values()), dtype=float)
