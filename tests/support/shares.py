"""Many alike cases: the first share of them runs with `make test`, the rest only with `make test-all`."""

import pytest

quick = False
"""Whether slow tests are left out, as `make test` does; `conftest.py` says so."""


def some(values, of=4):
    """The values as parameters of a test, all but the first of `of` shares marked slow; a tuple is several parameters."""
    values = list(values)
    first = -(-len(values) // of)
    return [*values[:first], *map(_slow, values[first:])]


def _slow(value):
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)


def blocks(count, size, of=4):
    """The seeds 0 .. count in blocks, so that workers share them out; all but the first share marked slow."""
    starts = some(range(0, count, size), of)
    return pytest.mark.parametrize("first", starts, ids=lambda first: f"{first}+{size}")


def examples(number):
    """How many random cases to draw, by hypothesis or otherwise: a third of the number where slow tests are left out."""
    return -(-number // 3) if quick else number
