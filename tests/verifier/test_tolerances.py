"""Every tolerance is in `acegames.numerics`, with its reason."""

import ast
from pathlib import Path

import pytest

from acegames import numerics

SOURCE = Path(numerics.__file__).parent
SMALL = 1e-4  # floats below this are tolerances, unless they are listed here
ALLOWED = {
    "system/progress.py": {1e-9},  # seconds, not to divide by none
    # seconds of a stage, or of an entry
    "engines/forecast.py": {1e-9, 2e-9, 12e-9, 30e-9, 70e-9, 1e-7, 0.2e-6, 0.5e-6},
}
COMPARING = {"isclose", "allclose"}
WITH_OURS = {"adapters/openspiel/openspiel_games.py"}  # math.isclose with TIE


def small_floats(tree):
    """Positive float literals that are small."""
    return {
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and type(n.value) is float and 0 < n.value < SMALL
    }


def comparisons(tree):
    """Names of functions that bring a tolerance of their own."""
    names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return (names | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}) & COMPARING


def modules():
    return sorted(p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if p.name != "numerics.py")


@pytest.mark.parametrize("name", modules())
def test_no_tolerance_elsewhere(name):
    tree = ast.parse((SOURCE / name).read_text())
    assert small_floats(tree) <= ALLOWED.get(name, set())
    assert not comparisons(tree) or name in WITH_OURS


def test_the_scan_sees_them():
    tree = ast.parse("x = abs(a) < 1e-9 or np.isclose(a, b)\ny = 0.5")
    assert small_floats(tree) == {1e-9} and comparisons(tree) == {"isclose"}


def test_every_tolerance_has_its_reason():
    body = ast.parse(Path(numerics.__file__).read_text()).body[1:]
    for number, reason in zip(body[::2], body[1::2], strict=True):
        assert isinstance(number, ast.Assign) and isinstance(reason.value, ast.Constant)
        assert len(reason.value.value) > 60, number.targets[0].id
