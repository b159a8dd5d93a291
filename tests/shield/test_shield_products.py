"""Products inside a set of safe joint actions: sound, maximal, and by their criterion the best that enumeration finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from acegames.shield import product_sets as product_sets_module
from acegames.shield.product_sets import CRITERIA, _greedily, product_sets
from games import check_maximal
from shares import examples


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


@settings(max_examples=examples(200), deadline=None)
@given(
    shape=some.sampled_from(SHAPES), seed=some.integers(0, 2**32 - 1), criterion=some.sampled_from(["largest", "fair"])
)
def test_products_are_the_best_there_are(shape, seed, criterion):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < rng.choice([0.3, 0.6, 0.85, 1.0])
    mask.flat[rng.integers(mask.size)] = True
    safe = np.argwhere(mask).astype(np.int32)
    result = tuple(tuple(np.flatnonzero(m).tolist()) for m in product_sets(safe, shape, criterion))
    products = all_products(set(map(tuple, safe.tolist())), shape)
    assert result == min(products, key=by_criterion(criterion, shape))


def test_fair_comes_before_large():
    """Seven joint actions with one action of the first player, or four with two of each."""
    safe = np.array([(0, k) for k in range(7)] + [(1, 0), (1, 1)], dtype=np.int32)
    sizes = {c: [int(own.sum()) for own in product_sets(safe, (2, 7), c)] for c in ("largest", "fair")}
    assert sizes == {"largest": [1, 7], "fair": [2, 2]}


@settings(max_examples=examples(100), deadline=None)
@given(
    shape=some.sampled_from([*(s for s in SHAPES if len(s) > 1), (9, 9), (5, 5, 5)]), seed=some.integers(0, 2**32 - 1)
)
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
        result = _greedily(small, sizes, criterion)
        inner = mask[np.ix_(*(own for own, _ in used))]
        check_maximal(inner, result)
        assert math.prod(int(m.sum()) for m in result) <= best


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


@pytest.mark.parametrize(("kinds", "takes"), [([3, 3], 24), ([2, 2], 8), ([4, 2], 16), ([2, 3, 4], 128), ([5], 5)])
def test_the_exact_way_is_taken_while_its_bytes_are_allowed(kinds, takes, monkeypatch):
    """As many different kinds of actions as that take 2 ** (all but the most) * (the most) bytes."""
    most = max(kinds)
    safe = [a for a in itertools.product(*map(range, kinds)) if sum(a) % most == 0 or 0 in a[:-1]]
    safe += [tuple(min(k, n - 1) for n in kinds) for k in range(most)]
    used = []
    monkeypatch.setattr(product_sets_module, "_exactly", lambda *given: used.append("exactly") or given[0])
    monkeypatch.setattr(product_sets_module, "_greedily", lambda *given: used.append("greedily") or given[0])
    table = np.unique(np.array(safe, dtype=np.int32), axis=0)
    monkeypatch.setattr(product_sets_module, "_kinds", lambda allowed, i: np.arange(kinds[i]))
    for allowed in (takes, takes - 1):
        monkeypatch.setattr(product_sets_module, "MOST_CELLS", max(allowed, math.prod(kinds)))
        product_sets_module._best(table, tuple(kinds), "largest")
    assert used[0] == "exactly" and (used[1] == "greedily") == (takes > math.prod(kinds))
    assert product_sets_module._cells(kinds) == takes
