"""The kernels of the GPU engine as code: compiled without a GPU and without a driver, where `acegames[gpu]` is installed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from acegames.engines.gpu.kernel_specs import KERNELS, ROLLED, SHARED, UNROLLED, Shape, example_arguments, kernel_spec
from acegames.system import cuda_code
from gpu_code import CARD, resources

pytest.importorskip("numba_cuda")
pytestmark = pytest.mark.filterwarnings("ignore")  # numba-cuda's own
SHAPE = Shape(9, 32, 2, 2, (3, 3), correlated=True, shared=SHARED[CARD])
LARGER = {
    "5x5": Shape(25, 32, 2, 2, (5, 5), correlated=True, shared=SHARED[CARD]),
    "3x3x3": Shape(27, 32, 2, 3, (3, 3, 3), correlated=False, shared=SHARED[CARD]),
}
SHAPES = {"3x3": SHAPE} | {name: replace(shape, warp=shape.wants_warp) for name, shape in LARGER.items()}
ALIKE = {f"{name} alike": replace(shape, uniform_actions=True) for name, shape in SHAPES.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *((name, "3x3") for name in KERNELS),
        *((name, x) for name in ("plain", "left") for x in SHAPES),
        *(("plain", x) for x in ALIKE),
    ],
)
def test_nothing_is_fused(name, shape):
    """Multiplications and additions are rounded one by one; registers and stack are within limits."""
    of = (SHAPES | ALIKE)[shape]
    made = kernel_spec(name, of)
    code = cuda_code.compile_ltoir(made, example_arguments(name), CARD)
    ptx = cuda_code.link(code, CARD, ptx=True).decode(errors="replace")
    assert ".entry" in ptx and ".target sm_90" in ptx
    assert not re.search(r"\bfma\.rn\.f64|\bmad\.f64", ptx)
    registers, stack = resources(code)
    spilled = {"cells": 512, "plain": 1024, "left": 2048}.get(name, 64)
    assert registers <= 255 and stack <= made.stack_bytes + spilled
    several = 1 if name == "plain" and not of.warp else 2  # blocks of a multiprocessor
    assert several * made.shared_bytes <= SHARED[CARD] * 1024
    waits, warp = re.findall(r"bar\.warp\.sync\s+(\S+);", ptx), name == "plain" and of.warp
    assert set(waits) == ({"-1"} if warp else set()), "all threads of a warp wait for each other"
    pivots = re.findall(r"\.func[^;{]*?(\S*pivot\S*)\([^;{]*\{", ptx)
    ours = {pivot.partition("$")[0] for pivot in pivots}  # the linker may add a clone of its own, "...$1"
    assert len(ours) == (name == "left") and len(pivots) <= 2 * len(ours), "what is large is there once"
    if warp:
        assert "ld.shared" in ptx and ".local" not in ptx, "a warp works in shared memory"
    if made.unroll == UNROLLED:
        assert ".const" not in ptx and stack < made.stack_bytes, "tables and memory have gone into the code"


def test_loops_that_are_unrolled():
    """Jumps back to the head of a loop say so, or that they are not, in the functions of modules."""
    back, on = '  br label %"B10"', '  br label %"B30"'
    body = f"B10:\n{on}\nB20.if:\n{back}\nB30:\n  ret void\n}}"
    code = "\n".join(f'define void @"_ZN1a1{module}3fooE"() {{\n{body}' for module in "bcd")
    found = cuda_code._unrolling(code, (("a.b", "full"), ("a.d", "disable"))).splitlines()
    lines, told = found[: len(code.splitlines())], "\n".join(found[len(code.splitlines()) :])
    assert [line.partition(", !llvm.loop")[0] for line in lines] == code.splitlines()
    first, other, last = (line.removeprefix(back) for line in lines if line.startswith(back))
    assert other == "" and lines.count(on) == 3
    for loop, how in ((first, "full"), (last, "disable")):
        number = loop.removeprefix(", !llvm.loop !")
        says = re.search(rf"^!{number} = distinct !{{!{number}, !(\d+)}}$", told, flags=re.MULTILINE)[1]
        assert f'!{says} = !{{!"llvm.loop.unroll.{how}"}}' in told


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
    made = kernel_spec("strips", SHAPE)
    name, code = cuda_code.cubin(made, example_arguments("strips"), CARD)
    compiled = []
    real = cuda_code.compile_ltoir
    monkeypatch.setattr(cuda_code, "compile_ltoir", lambda *x: compiled.append(x) or real(*x))
    assert cuda_code.cubin(made, example_arguments("strips"), CARD) == (name, code) and not compiled
    (tmp_path / "kept.cubin").write_bytes(b"damaged" * 100)
    assert cuda_code.cubin(made, example_arguments("strips"), CARD)[1][:4] == b"\x7fELF" and compiled


def test_a_key_for_each_kernel():
    """Shapes, cards and types have kernels of their own."""
    made, given = kernel_spec("cells", SHAPE), example_arguments("cells")
    usual = cuda_code._kept_in(made, given, CARD)
    wider = kernel_spec("cells", Shape(16, 32, 2, 2, (4, 4), correlated=True))
    others = (made, given, (8, 0)), (wider, given, CARD), (made, given._replace(first=0.5), CARD)
    assert len({usual, *(cuda_code._kept_in(*x) for x in others)}) == 4
    assert cuda_code._kept_in(kernel_spec("cells", SHAPE), example_arguments("cells"), CARD) == usual


def test_a_key_for_what_kernels_know():
    """Tables that are constants, and loops that are unrolled, are part of the code."""
    made, given = kernel_spec("plain", ALIKE["3x3 alike"]), example_arguments("plain")
    room = made.own
    action, told = room.choices.action.copy(), room.group.recommended.copy()
    action[0, 0], told[0] = 2, 2
    others = [
        kernel_spec("plain", SHAPE),
        replace(made, unroll=ROLLED),
        replace(made, constants=made.constants[:3]),
        replace(made, own=room._replace(choices=room.choices._replace(action=action))),
        replace(made, own=room._replace(group=room.group._replace(recommended=told))),
    ]
    assert len({cuda_code._kept_in(x, given, CARD) for x in (made, *others)}) == 6
    same = room._replace(choices=room.choices._replace(action=room.choices.action.copy()))
    assert cuda_code._kept_in(replace(made, own=same), given, CARD) == cuda_code._kept_in(made, given, CARD)
