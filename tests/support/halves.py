"""Seed ranges in two halves: the first runs with `make test`, the second only with `make test-all`."""

import pytest


def halved(values):
    """The values as parameters of a test, those of the second half marked slow."""
    values = list(values)
    middle = (len(values) + 1) // 2
    return [*values[:middle], *(pytest.param(value, marks=pytest.mark.slow) for value in values[middle:])]


def blocks(count, size):
    """The seeds 0 .. count in blocks, so that workers share them out; the second half of the blocks marked slow."""
    starts = halved(range(0, count, size))
    return pytest.mark.parametrize("first", starts, ids=lambda first: f"{first}+{size}")
