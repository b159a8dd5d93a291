"""Whether two environments are in the same condition: told by values and by which objects are the same, never guessed."""

from __future__ import annotations

import numpy as np
import pytest

from acegames.adapters.environments.snapshots import generators_in, state_digest


class World:
    """An object with these attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def test_equal_graphs_are_alike_and_others_not():
    same = [World(x=[1, 2], y={"a": (3.0,)}) for _ in range(2)]
    assert state_digest(same[0]) == state_digest(same[1]) is not None
    assert state_digest(World(x=[1, 3], y={"a": (3.0,)})) != state_digest(same[0])


def test_which_objects_are_the_same_counts():
    one, other = [0], [0]
    assert state_digest(World(a=one, b=other, turn=one)) != state_digest(World(a=one, b=other, turn=other))


def test_where_things_are_is_part_of_the_condition():
    pygame = pytest.importorskip("pygame")
    places = [state_digest(World(at=pygame.Rect(x, 0, 1, 1))) for x in (0, 1)]
    assert places[0] is None or places[0] != places[1]


@pytest.mark.parametrize("carries", [lambda n: lambda: n, lambda n: lambda n=n: n])
def test_what_functions_carry_counts(carries):
    one, same, other = (World(f=carries(n)) for n in ([1], [1], [2]))
    assert state_digest(one) == state_digest(same) != state_digest(other)


def test_what_may_hide_something_is_not_compared():
    assert state_digest(World(f=iter([1]))) is None


def test_an_empty_cell_hides_no_generator():
    def later():
        return unset

    generator = np.random.default_rng(0)
    world = World(f=later, rng=generator)
    assert generators_in(world) == [generator] and state_digest(world) is None
    unset = 1
    assert state_digest(world) is not None
