"""Products inside a set of safe joint actions: sound, maximal, and by their criterion the best that enumeration finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from acegames.shield.product_sets import CRITERIA, _greedily, product_sets


def all_products(safe, shape):
    """Every product of non-empty sets inside the safe joint actions."""
    subsets = [[c for k in range(1, n + 1) for c in itertools.combinations(range(n), k)] for n in shape]
    return [sets for sets in itertools.product(*subsets) if all(a in safe for a in itertools.product(*sets))]


def by_criterion(criterion, shape):
    """A key whose smallest is the best product, ties to the earlier actions."""

    def key(sets):
        sizes = [len(own) for own in sets]
        missing = [a not in own for own, n in zip(sets, shape, strict=True) for a in range(n)]
        return (-min(sizes) if criterion == "fair" else 0, -math.prod(sizes), missing)

    return key


SHAPES = [(1,), (4,), (2, 2), (3, 3), (2, 4), (4, 2), (2, 2, 2), (3, 2, 3), (2, 2, 2, 2)]


@settings(max_examples=200, deadline=None)
@given(
    shape=some.sampled_from(SHAPES), seed=some.integers(0, 2**32 - 1), criterion=some.sampled_from(["largest", "fair"])
)
def test_products_are_the_best_there_are(shape, seed, criterion):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < rng.choice([0.3, 0.6, 0.85, 1.0])
    mask.flat[rng.integers(mask.size)] = True
    safe = np.argwhere(mask).astype(np.int32)
    found = tuple(tuple(np.flatnonzero(m).tolist()) for m in product_sets(safe, shape, criterion))
    products = all_products(set(map(tuple, safe.tolist())), shape)
    assert found == min(products, key=by_criterion(criterion, shape))


def check_maximal(mask, sets):
    assert mask[np.ix_(*sets)].all() and all(own.any() for own in sets)
    for i, own in enumerate(sets):
        for a in np.flatnonzero(~own):
            more = [m.copy() for m in sets]
            more[i][a] = True
            assert not mask[np.ix_(*more)].all()


@settings(max_examples=100, deadline=None)
@given(shape=some.sampled_from([*SHAPES, (9, 9), (5, 5, 5)]), seed=some.integers(0, 2**32 - 1))
def test_greedy_products_are_maximal_too(shape, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < rng.choice([0.3, 0.6, 0.85, 1.0])
    mask.flat[rng.integers(mask.size)] = True
    safe = np.argwhere(mask)
    best = math.prod(int(m.sum()) for m in product_sets(safe.astype(np.int32), shape, "largest"))
    used = [np.unique(safe[:, i], return_inverse=True) for i in range(len(shape))]
    small = np.column_stack([inverse for _, inverse in used])
    sizes = tuple(len(own) for own, _ in used)
    for criterion in CRITERIA:
        found = _greedily(small, sizes, criterion)
        inner = mask[np.ix_(*(own for own, _ in used))]
        check_maximal(inner, found)
        assert math.prod(int(m.sum()) for m in found) <= best


def test_a_product_of_many_actions():
    """Beyond the limit of the exact search; actions of one kind count once, which keeps regular games exact."""
    rng = np.random.default_rng(0)
    scattered = rng.random((40, 40)) < 0.7
    safe = np.argwhere(scattered).astype(np.int32)
    check_maximal(scattered, product_sets(safe, (40, 40), "largest"))
    steps = np.add.outer(np.arange(60) // 6, np.arange(60) // 6) < 10  # only ten kinds of actions each
    sets = product_sets(np.argwhere(steps).astype(np.int32), (60, 60), "largest")
    assert sorted(int(m.sum()) for m in sets) == [30, 36]  # five kinds and six
    check_maximal(steps, sets)
