"""Compiles phases (`kernels/phases.py`, `verifier/phases.py`) for a GPU. The only module that knows
numba-cuda.

Functions are compiled as they are: numba-cuda takes what numba compiles for the processor.
Multiplications and additions are not fused, so that results are the processor's to the last bit;
numba-cuda has no option for that, but the linker has. Kernels are kept on disk, under a key of all
that they are made of.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from acegames.errors import MissingExtra
from acegames.system.atomic import write_parts
from acegames.system.compiled import KernelCache, sources_stamp, whole_file
from acegames.system.compiling import compiling
from acegames.system.extras import optional

PACKAGES = ("numba", "llvmlite", "numba-cuda", "cuda-bindings")
METADATA = 1_000_000  # numbers of LLVM's metadata from here on are free
SHARED, CONSTANT = 3, 4  # address spaces: what the threads of a block share, and constants


@dataclass(frozen=True, eq=False)
class Recipe:
    """A kernel: what its threads do, and the room that they need. Arrays stand for their shapes."""

    name: str
    phases: tuple[Any, ...]  # one to three
    threads: int  # of a block
    shared: Any = None  # an array, or a record of arrays, of each block
    own: Any = None  # the same of each thread
    beside: tuple[str, ...] = ()  # fields of `own` that lie in shared memory, number beside number
    loops: tuple[tuple[str, str], ...] = ()  # modules whose loops are unrolled ("full"), or are not ("disable")
    known: tuple[str, ...] = ()  # fields of `shared` and `own` that are constants, which the compiler may look into
    single: tuple[tuple[Any, Any], ...] = ()  # classes of numba types that are one number on a GPU, and which

    @cached_property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        together = [x.nbytes for field, x in _arrays(self.shared) if field not in self.known]
        together += [self.threads * x.nbytes for field, x in _arrays(self.own) if field in self.beside]
        return sum(map(_aligned, together))

    @property
    def stack_bytes(self) -> int:
        """Memory of its own that a thread needs at least."""
        return sum(x.nbytes for field, x in _arrays(self.own) if field not in (*self.beside, *self.known))


def _arrays(pattern: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a record by the names of their fields, as in "group.memory"."""
    if isinstance(pattern, np.ndarray):
        yield name, pattern
    elif isinstance(pattern, tuple):
        for field, x in zip(pattern._fields, pattern, strict=True):  # type: ignore[attr-defined]
            yield from _arrays(x, f"{name}.{field}" if name else field)


def _aligned(count: int) -> int:
    return -(-count // 16) * 16


def kind_of(x: Any, layouts: dict[str, str] | None = None, name: str = "") -> Any:
    """Return the type by which kernels know an array, a number, None, or a record of these."""
    if x is None:
        return types.none
    if isinstance(x, tuple):
        fields = zip(x._fields, x, strict=True)  # type: ignore[attr-defined]
        kinds = tuple(kind_of(value, layouts, f"{name}.{field}" if name else field) for field, value in fields)
        return types.NamedTuple(kinds, type(x))
    if hasattr(x, "dtype") and hasattr(x, "shape") and x.shape != ():
        from numba.np.numpy_support import from_dtype

        return types.Array(from_dtype(np.dtype(x.dtype)), len(x.shape), (layouts or {}).get(name, "C"))
    return types.boolean if isinstance(x, (bool, np.bool_)) else types.float64 if isinstance(x, float) else types.int64


# -- kernels that are kept ------------------------------------------------------------------------


def cubin(recipe: Recipe, given: Any, capability: tuple[int, int]) -> tuple[str, bytes]:
    """Return the name and the machine code of a kernel, compiled or from the disk."""
    file = _kept_in(recipe, given, capability)
    code = None
    if file is not None:
        with contextlib.suppress(OSError, ValueError):
            code = whole_file(str(file))
    if code is None:
        code = link(compile_ltoir(recipe, given, capability), capability)
        if file is not None:
            with contextlib.suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                write_parts(file, [code, hashlib.sha256(code).digest()])
    found = re.search(rb"\.text\.([\w$]+)", code)
    assert found is not None
    return found[1].decode(), code


def is_kept(recipe: Recipe, given: Any, capability: tuple[int, int]) -> bool:
    """Return whether a kernel need not be compiled, or could not be kept."""
    file = _kept_in(recipe, given, capability)
    return file is None or file.exists()


def _kept_in(recipe: Recipe, given: Any, capability: tuple[int, int]) -> Path | None:
    """Return the file of a kernel; None where none can be kept."""
    phases = [phase.py_func for phase in recipe.phases]
    try:
        folder = Path(KernelCache(phases[0]).cache_path)
    except Exception:  # numba has moved what this rests on, or knows no such folder
        return None
    made_of = [*map(sources_stamp, (*phases, _assembled)), recipe.name, *_versions()]
    made_of += [repr(kind_of(given)), repr(capability)]
    made_of += [repr((recipe.threads, recipe.beside, recipe.known, recipe.loops))]
    for room in (recipe.shared, recipe.own):
        made_of += [repr((name, x.shape, x.dtype)) for name, x in _arrays(room)] + [repr(_numbers(room))]
        made_of += [repr(x.tolist()) for name, x in _arrays(room) if name in recipe.known]
    key = hashlib.sha256("\n".join(made_of).encode()).hexdigest()
    return folder / f"gpu-{recipe.name}-{key[:40]}.cubin"


def _numbers(pattern: Any) -> Any:
    """Return the numbers among the arrays of a record."""
    if isinstance(pattern, tuple):
        return tuple(map(_numbers, pattern))
    return None if isinstance(pattern, np.ndarray) else pattern


@cache
def _versions() -> list[str]:
    """Return those of all that compiles."""
    try:
        linker = optional("cuda.bindings.nvjitlink", "GPU engines", "gpu").version()
    except RuntimeError as error:  # its library is in a package of its own
        raise MissingExtra("GPU engines need nvidia-nvjitlink: pip install 'acegames[gpu]'") from error
    return [f"{package} {version(package)}" for package in PACKAGES] + ["nvjitlink {}.{}".format(*linker)]


# -- compiling ------------------------------------------------------------------------------------


def compile_ltoir(recipe: Recipe, given: Any, capability: tuple[int, int]) -> bytes:
    """Return the code of a kernel before it is linked."""
    with compiling(), _compiling_for(capability, recipe.loops) as cuda:
        for kind, number in recipe.single:
            _make_single(kind, number)
        function = _assembled(cuda, recipe)
        signature = types.void(kind_of(given))
        how = {"device": False, "abi": "numba", "cc": capability, "output": "ltoir", "opt": True}
        return bytes(cuda.compile(function, signature, launch_bounds=recipe.threads, **how)[0])


def link(code: bytes, capability: tuple[int, int], *, ptx: bool = False) -> bytes:
    """Machine code, or what it is made from, without fused multiplications and additions."""
    linker = optional("cuda.bindings.nvjitlink", "GPU engines", "gpu")
    options = [
        "-arch=sm_{}{}".format(*capability),
        "-lto",
        "-fma=0",
        "-O3",
        "-split-compile=0",
        *(["-ptx"] if ptx else []),
    ]
    handle = linker.create(len(options), options)
    try:
        linker.add_data(handle, linker.InputType.LTOIR, code, len(code), "kernel")
        linker.complete(handle)
        size, read = (
            (linker.get_linked_ptx_size, linker.get_linked_ptx)
            if ptx
            else (linker.get_linked_cubin_size, linker.get_linked_cubin)
        )
        linked = bytearray(size(handle))
        read(handle, linked)
        return bytes(linked)
    finally:
        linker.destroy(handle)


@contextlib.contextmanager
def _compiling_for(capability: tuple[int, int], loops: tuple[tuple[str, str], ...] = ()) -> Iterator[Any]:
    """numba-cuda, made to compile for a card, whether it is there or not.

    It asks the present card for its capability where a kernel calls what is compiled for the
    processor too, and numpy for `row_stack`, which newer releases do not have. It has no word for
    loops that are to be unrolled.
    """
    added = not hasattr(np, "row_stack")
    if added:
        np.row_stack = np.vstack
    try:
        optional("numba_cuda", "GPU engines", "gpu")
        cuda = optional("numba.cuda", "GPU engines", "gpu")
        from numba.cuda import dispatcher
        from numba.cuda.cudadrv import nvvm

        asked, dispatcher.get_current_device = dispatcher.get_current_device, lambda: _Card(capability)
        compiled = nvvm.compile_ir
        if loops:
            nvvm.compile_ir = lambda codes, **how: compiled([_unrolling(code, loops) for code in codes], **how)
        try:
            yield cuda
        finally:
            dispatcher.get_current_device, nvvm.compile_ir = asked, compiled
    finally:
        if added:
            del np.row_stack


def _unrolling(code: str, loops: tuple[tuple[str, str], ...]) -> str:
    """LLVM's code that says which loops are to be unrolled.

    Numba's blocks have the numbers of what they are made from: a jump to none that is larger goes
    back to the head of a loop.
    """
    hows = {"_ZN" + "".join(f"{len(name)}{name}" for name in module.split(".")): how for module, how in loops}
    lines, found, block, ours = list[str](), list[str](), 0, ""
    for line in code.splitlines():
        if line.startswith("define"):
            ours = next((how for module, how in hows.items() if module in line), "")
        begins, jumps = re.match(r'"?B(\d+)[\w.]*"?:', line), re.fullmatch(r'\s+br label %"B(\d+)"', line)
        block = int(begins[1]) if begins else block
        if ours and jumps and int(jumps[1]) <= block:
            k = METADATA + 2 * len(found)
            found.append(f'!{k} = distinct !{{!{k}, !{k + 1}}}\n!{k + 1} = !{{!"llvm.loop.unroll.{ours}"}}')
            line += f", !llvm.loop !{k}"
        lines.append(line)
    return "\n".join(lines + found)


@dataclass(frozen=True)
class _Card:
    compute_capability: tuple[int, int]


@cache
def _make_single(kind: Any, number: Any) -> None:
    """Types of this class are one such number on a GPU."""
    from numba.cuda.datamodel import PrimitiveModel
    from numba.cuda.models import register_model

    class Single(PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, number)

    register_model(kind)(Single)


def _assembled(cuda: Any, recipe: Recipe) -> Any:
    """Return the function that runs the phases, with a barrier between them."""
    places = _Places(recipe)
    make_shared, make_own = places.maker(recipe.shared, shared=True), places.maker(recipe.own, shared=False)
    first, second, third = (*recipe.phases, None, None)[:3]
    threads, whole = recipe.threads, types.int64

    def one(given):  # type: ignore[no-untyped-def]
        thread, block, blocks = whole(cuda.threadIdx.x), whole(cuda.blockIdx.x), whole(cuda.gridDim.x)
        first(thread, block, threads, blocks, make_shared(), make_own(), given)

    def two(given):  # type: ignore[no-untyped-def]
        thread, block, blocks = whole(cuda.threadIdx.x), whole(cuda.blockIdx.x), whole(cuda.gridDim.x)
        shared, own = make_shared(), make_own()
        first(thread, block, threads, blocks, shared, own, given)
        cuda.syncthreads()
        second(thread, block, threads, blocks, shared, own, given)

    def three(given):  # type: ignore[no-untyped-def]
        thread, block, blocks = whole(cuda.threadIdx.x), whole(cuda.blockIdx.x), whole(cuda.gridDim.x)
        shared, own = make_shared(), make_own()
        first(thread, block, threads, blocks, shared, own, given)
        cuda.syncthreads()
        second(thread, block, threads, blocks, shared, own, given)
        cuda.syncthreads()
        third(thread, block, threads, blocks, shared, own, given)

    return (one, two, three)[len(recipe.phases) - 1]


class _Places:
    """Where the arrays of a kernel lie: shared ones end to end, others in each thread's memory."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.used = recipe, 0

    def maker(self, pattern: Any, *, shared: bool) -> Any:
        """Return a function for kernels that makes arrays like those of the pattern."""
        from numba.cuda.extending import intrinsic

        beside = {name for name, _ in _arrays(pattern) if not shared and name in self.recipe.beside}
        kind = kind_of(pattern, dict.fromkeys(beside, "A"))
        offsets = dict[str, int]()
        for name, x in _arrays(pattern):
            if name not in self.recipe.known and (shared or name in beside):
                offsets[name] = self.used
                self.used += _aligned(x.nbytes * (1 if shared else self.recipe.threads))

        @intrinsic
        def make(context):  # type: ignore[no-untyped-def]
            def emit(context, builder, signature, values):  # type: ignore[no-untyped-def]
                emitting = _Emitting(context, builder, offsets, beside, self.recipe.known, self.recipe.threads)
                return emitting.value("", pattern, kind)

            return kind(), emit

        return make


@dataclass(frozen=True, eq=False)
class _Emitting:
    """Emits the code that makes arrays."""

    context: Any
    builder: Any
    offsets: dict[str, int]  # of arrays in shared memory
    beside: set[str]
    known: tuple[str, ...]
    threads: int

    def value(self, name: str, pattern: Any, kind: Any) -> Any:
        """Return an array, a number, None, or a record of these."""
        if pattern is None:
            return self.context.get_dummy_value()
        if isinstance(pattern, np.ndarray):
            return self._array(name, pattern, kind)
        if isinstance(pattern, tuple):
            fields = zip(pattern._fields, pattern, kind.types, strict=True)  # type: ignore[attr-defined]
            parts = [self.value(f"{name}.{field}" if name else field, x, k) for field, x, k in fields]
            return self.context.make_tuple(self.builder, kind, parts)
        return self.context.get_constant(kind, pattern)

    def _array(self, name: str, pattern: Any, kind: Any) -> Any:
        from numba.cuda import cgutils
        from numba.cuda.np.arrayobj import populate_array

        item = self.context.get_data_type(kind.dtype)
        many, strides = 1, pattern.strides
        if name in self.known:
            data = self._constant(pattern, item)
        elif name in self.offsets:
            many = self.threads if name in self.beside else 1
            data = self._shared(self.offsets[name], pattern.itemsize if many > 1 else 0)
        else:
            data = cgutils.alloca_once(self.builder, ir.ArrayType(item, max(pattern.size, 1)))
        whole = ir.IntType(64)
        array = self.context.make_array(kind)(self.context, self.builder)
        populate_array(
            array,
            data=self.builder.bitcast(data, array.data.type),
            shape=[whole(n) for n in pattern.shape],
            strides=[whole(n * many) for n in strides],
            itemsize=whole(pattern.itemsize),
            meminfo=None,
        )
        return array._getvalue()

    def _constant(self, pattern: Any, item: Any) -> Any:
        """Return a table whose numbers are part of the code."""
        table = ir.Constant(ir.ArrayType(item, pattern.size), [item(int(x)) for x in pattern.reshape(-1)])
        name = self.builder.module.get_unique_name("acegames_known")
        memory = ir.GlobalVariable(self.builder.module, table.type, name, CONSTANT)
        memory.linkage, memory.global_constant, memory.initializer = "internal", True, table
        return self.builder.addrspacecast(memory, ir.PointerType(table.type), "generic")

    def _shared(self, offset: int, each: int) -> Any:
        """Return a place in shared memory; `each` thread has its own, this far from the one before."""
        from numba.cuda import nvvmutils

        byte, module = ir.IntType(8), self.builder.module
        if "acegames_shared" in module.globals:
            memory = module.globals["acegames_shared"]
        else:
            memory = ir.GlobalVariable(module, ir.ArrayType(byte, 0), "acegames_shared", SHARED)
            memory.align, memory.linkage = 16, "external"
        at = self.builder.addrspacecast(memory, byte.as_pointer(), "generic")
        place = ir.IntType(64)(offset)
        if each:
            thread = self.builder.zext(nvvmutils.SRegBuilder(self.builder).tid("x"), ir.IntType(64))
            place = self.builder.add(place, self.builder.mul(thread, ir.IntType(64)(each)))
        return self.builder.gep(at, [place])
