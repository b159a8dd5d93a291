"""The solver's bits do not depend on the machine: nothing is reassociated or fused, and no library adds up for it."""

import ast
import re
from pathlib import Path

import numba
import pytest

import acegames as ace
from acegames.kernels import batches, nash_stages

SOURCES = Path(ace.__file__).parent
FUSED = re.compile(r"\bv?fn?m(add|sub)|\bfml[as]\b|llvm\.(fma|fmuladd)")
LOOSE = re.compile(r"\bf(add|sub|mul|div|neg|cmp)\s+(?:\w+\s+)*?(fast|reassoc|contract|arcp|afn|nnan|ninf)\b")


def small_game():
    return ace.catalog.get("intersection")


@pytest.fixture(scope="module")
def solved():
    """Solve, so that the kernels know what types they are compiled for."""
    ace.solve(small_game(), ace.CE(), engine=ace.LocalEngine(dense=True))
    ace.solve(small_game(), ace.CE(), engine=ace.LocalEngine(dense=False))
    ace.solve(small_game(), ace.Nash())


def compiled_code(kernel):
    """The assembly and the optimised LLVM code of a kernel. Numba keeps the latter in its cache, so nothing is compiled."""
    library = next(iter(kernel.overloads.values())).library
    linked = library._get_module_for_linking()
    return library._codegen._tm.emit_assembly(linked), str(linked)


@pytest.mark.parametrize(
    ("module", "name"), [(batches, "solve_cells"), (batches, "write_cells"), (nash_stages, "solve_nash")]
)
def test_no_fused_or_reassociated_arithmetic(solved, module, name):
    """The code that runs, whether compiled just now or loaded from the cache; what it calls is part of it."""
    assembly, code = compiled_code(getattr(module, name).machine_code)
    assert name in code
    assert len(assembly) > 5_000 and "double" in code
    assert not FUSED.search(assembly) and not FUSED.search(code)
    assert not LOOSE.search(code)


def test_what_would_be_found():
    assert FUSED.search("\tvfmadd213sd\t%xmm0, %xmm1, %xmm2") and FUSED.search("call double @llvm.fmuladd.f64(")
    assert LOOSE.search("%1 = fadd fast double %a, %b") and not LOOSE.search("%1 = fadd double %a, %b")

    @numba.njit(fastmath=True)
    def dot(x, y):
        return x[0] * y[0] + x[1] * y[1]

    dot.compile("float64(float64[::1], float64[::1])")
    assembly, code = compiled_code(dot)
    assert LOOSE.search(code) and "ret" in assembly


@pytest.mark.parametrize(
    "path",
    [
        *(str(path.relative_to(SOURCES)) for path in sorted((SOURCES / "kernels").rglob("*.py"))),
        *("engines/local.py", "engines/stages.py", "engines/baseline.py", "engines/answers.py"),
        *("stage/exact.py", "stage/nash.py", "stage/program.py", "stage/units.py"),
    ],
)
def test_no_library_adds_up(path):
    """`@` and its like go to BLAS, whose order of adding depends on the processor; numpy's sums depend on its version."""
    tree = ast.parse((SOURCES / path).read_text())
    products = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult)]
    calls = [
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("dot", "einsum", "matmul", "vdot")
    ]
    options = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg in ("fastmath", "parallel")]
    assert not [*products, *calls, *options]
