"""The kernels of the GPU engine as code: compiled without a GPU and without a driver, where `acegames[gpu]` is installed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from acegames.engines.gpu import recipes
from acegames.engines.gpu.recipes import Shape
from acegames.kernels import phases
from acegames.kernels.records import Boxes, Choices, Following, Goal, Steps
from acegames.system import cuda_code
from gpu_code import CARD, resources

pytest.importorskip("numba_cuda")
pytestmark = pytest.mark.filterwarnings("ignore")  # numba-cuda's own
SHAPE = Shape(9, 32, 2, 2, (3, 3), correlated=True)
KERNELS = (
    *("heights", "reach", "pack", "bounds", "cells", "plain", "left"),
    *("read_open", "mend", "strips", "numbers", "file_cells", "file_records"),
)


def given_to(name):
    """Arrays of the types that a kernel takes."""
    whole, floats, small, byte, code = (np.zeros(1, t) for t in (np.int64, float, np.int32, np.uint8, np.uint16))
    wholes, floats2, smalls, bytes2 = (np.zeros((1, 1), t) for t in (np.int64, float, np.int32, np.uint8))
    step = Steps(whole, whole, small, wholes, floats, whole)
    after = Following(small, wholes, wholes, whole, whole, small, wholes, wholes)
    layer = phases.Layer(Boxes(whole, wholes, wholes, whole, whole), whole, byte, step, after)
    listed = (np.zeros((1, 1, 1)), small, bytes2, floats2, small, small, smalls)
    waiting = phases.Waiting(whole, small, whole, small, whole, *listed)
    goal = Goal(True, 1.0, 0, floats)
    chosen = (Choices(smalls, smalls, whole), goal, True)
    solving = phases.Solving(layer, 0, 0, floats2, floats2, *chosen, floats2, code, waiting)
    packing = phases.Packing(byte, byte, 0, 0, byte, floats2, floats2)
    mended = (np.zeros((1, 1, 1)), floats2, code, small, bytes2, floats2, floats2, code)
    mending = phases.Mending(waiting, 0, whole, whole, whole, *mended)
    counting = phases.Counting(waiting, 0, smalls)
    filed = (smalls, floats2, code, floats2, byte, byte, byte, floats)
    filing = phases.Filing(waiting, 0, 0, True, 0, np.zeros(1, np.uint64), whole, *filed)
    solved = dict.fromkeys(("cells", "plain", "left"), solving)
    others = {"heights": phases.Heights(layer, small), "reach": phases.Reaching(layer, 0, byte, byte)}
    more = {"read_open": mending, "mend": mending, "strips": counting, "numbers": counting}
    return {
        **solved,
        **others,
        **more,
        "pack": packing,
        "bounds": packing,
        "file_cells": filing,
        "file_records": filing,
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_fused(name):
    """Multiplications and additions are rounded one by one; registers and stack are within limits."""
    recipe = getattr(recipes, name)(SHAPE)
    code = cuda_code.compile_ltoir(recipe, given_to(name), CARD)
    ptx = cuda_code.link(code, CARD, ptx=True).decode(errors="replace")
    assert ".entry" in ptx and ".target sm_90" in ptx
    assert not re.search(r"\bfma\.rn\.f64|\bmad\.f64", ptx)
    registers, stack = resources(code)
    assert registers <= 255 and stack <= {"cells": 1024, "plain": 4096, "left": 8192}.get(name, 64)
    assert recipe.shared_bytes * 2 <= 227 * 1024


@pytest.mark.slow
def test_fused_operations_would_be_found():
    from numba import cuda, float64, types

    def kernel(x):
        x[0] = x[1] * x[2] + x[3]

    with cuda_code._compiling_for(CARD):
        ptx, _ = cuda.compile(kernel, types.void(float64[::1]), device=False, abi="numba", cc=CARD, output="ptx")
    assert "fma.rn.f64" in ptx


@pytest.mark.slow
def test_kernels_are_kept(tmp_path, monkeypatch):
    """The second time nothing is compiled; a damaged file costs a compilation."""
    monkeypatch.setattr(cuda_code, "_kept_in", lambda *_: tmp_path / "kept.cubin")
    recipe = recipes.pack(SHAPE)
    name, code = cuda_code.cubin(recipe, given_to("pack"), CARD)
    compiled = []
    real = cuda_code.compile_ltoir
    monkeypatch.setattr(cuda_code, "compile_ltoir", lambda *x: compiled.append(x) or real(*x))
    assert cuda_code.cubin(recipe, given_to("pack"), CARD) == (name, code) and not compiled
    (tmp_path / "kept.cubin").write_bytes(b"damaged" * 100)
    assert cuda_code.cubin(recipe, given_to("pack"), CARD)[1][:4] == b"\x7fELF" and compiled


def test_a_key_for_each_kernel():
    """Shapes, cards and types have kernels of their own."""
    recipe, given = recipes.cells(SHAPE), given_to("cells")
    usual = cuda_code._kept_in(recipe, given, CARD)
    wider = recipes.cells(Shape(16, 32, 2, 2, (4, 4), correlated=True))
    others = (recipe, given, (8, 0)), (wider, given, CARD), (recipe, given._replace(first=0.5), CARD)
    assert len({usual, *(cuda_code._kept_in(*x) for x in others)}) == 4
    assert cuda_code._kept_in(recipes.cells(SHAPE), given_to("cells"), CARD) == usual
