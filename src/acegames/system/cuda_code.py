"""Compile phases (`kernels/device.py`, `verifier/gpu_functions.py`) for a GPU.

This is the only module that knows numba-cuda.

Functions are compiled as they are: numba-cuda takes what numba compiles for the processor.
Multiplications and additions are not fused, so that results are the processor's to the last bit;
numba-cuda has no option for that, but the linker has. Kernels are kept on disk, under a key of all
that they are made of.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from acegames.errors import MissingExtra
from acegames.system.atomic import write_parts
from acegames.system.compiling import compiling
from acegames.system.extras import optional
from acegames.system.machine import processors
from acegames.system.machine_code import (
    KernelCache,
    bound_for,
    can_start_python,
    python_process,
    sources_stamp,
    whole_file,
)

PACKAGES = ("numba", "llvmlite", "numba-cuda", "cuda-bindings")
METADATA = 1_000_000  # numbers of LLVM's metadata from here on are free
SHARED, CONSTANT = 3, 4  # address spaces: what the threads of a block share, and constants


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """A kernel: what its threads do, and the memory they need. Arrays stand for their shapes."""

    name: str
    phases: tuple[Any, ...]  # at least one
    threads: int  # of a block
    shared: Any = None  # an array, or a record of arrays, of each block
    own: Any = None  # the same of each thread
    shared_fields: tuple[str, ...] = ()  # fields of `own` that lie in shared memory, number beside number
    unroll: tuple[tuple[str, str], ...] = ()  # modules whose loops are unrolled ("full"), or are not ("disable")
    constants: tuple[str, ...] = ()  # fields of `shared` and `own` that are constants, which the compiler may look into
    scalar_types: tuple[tuple[Any, Any], ...] = ()  # classes of numba types that are one number on a GPU, and which

    @cached_property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        together = [x.nbytes for field, x in _arrays(self.shared) if field not in self.constants]
        together += [self.threads * x.nbytes for field, x in _arrays(self.own) if field in self.shared_fields]
        return sum(map(_aligned, together))

    @property
    def stack_bytes(self) -> int:
        """Memory of its own that a thread needs at least."""
        return sum(x.nbytes for field, x in _arrays(self.own) if field not in (*self.shared_fields, *self.constants))


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


def cubin(spec: KernelSpec, arguments: Any, capability: tuple[int, int]) -> tuple[str, bytes]:
    """Return the name and the machine code of a kernel, compiled or from the disk."""
    file = _kept_in(spec, arguments, capability)
    code = None
    if file is not None:
        with contextlib.suppress(OSError, ValueError):
            code = whole_file(str(file))
    if code is None:
        code = link(compile_ltoir(spec, arguments, capability), capability)
        if file is not None:
            with contextlib.suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                write_parts(file, [code, hashlib.sha256(code).digest()])
    section = re.search(rb"\.text\.([\w$]+)", code)
    assert section is not None
    return section[1].decode(), code


def is_kept(spec: KernelSpec, arguments: Any, capability: tuple[int, int]) -> bool:
    """Return whether a kernel need not be compiled, or could not be kept."""
    file = _kept_in(spec, arguments, capability)
    return file is None or file.exists()


def _kept_in(spec: KernelSpec, arguments: Any, capability: tuple[int, int]) -> Path | None:
    """Return the file of a kernel; None where none can be kept."""
    phases = spec.phases
    try:
        folder = Path(KernelCache(phases[0]).cache_path)
    except Exception:  # numba has moved what this rests on, or knows no such folder
        return None
    made_of = [*map(sources_stamp, (*phases, _assembled)), spec.name, *_versions()]
    made_of += [repr(kind_of(arguments)), repr(capability)]
    made_of += [repr((spec.threads, spec.shared_fields, spec.constants, spec.unroll))]
    for arrays in (spec.shared, spec.own):
        made_of += [repr((name, x.shape, x.dtype)) for name, x in _arrays(arrays)] + [repr(_numbers(arrays))]
        made_of += [repr(x.tolist()) for name, x in _arrays(arrays) if name in spec.constants]
    key = hashlib.sha256("\n".join(made_of).encode()).hexdigest()
    return folder / f"gpu-{spec.name}-{key[:40]}.cubin"


def _numbers(pattern: Any) -> Any:
    """Return the numbers among the arrays of a record."""
    if isinstance(pattern, tuple):
        return tuple(map(_numbers, pattern))
    return None if isinstance(pattern, np.ndarray) else pattern


@cache
def _versions() -> list[str]:
    """Return the versions of all that compiles."""
    try:
        linker = optional("cuda.bindings.nvjitlink", "GPU engines", "gpu").version()
    except RuntimeError as error:  # its library is in a package of its own
        raise MissingExtra("GPU engines need nvidia-nvjitlink: pip install 'acegames[gpu]'") from error
    return [f"{package} {version(package)}" for package in PACKAGES] + ["nvjitlink {}.{}".format(*linker)]


# -- compiling ------------------------------------------------------------------------------------


def compile_ltoir(spec: KernelSpec, arguments: Any, capability: tuple[int, int]) -> bytes:
    """Return the code of a kernel before it is linked."""
    with compiling(), _compiling_for(capability, spec.unroll) as cuda:
        for kind, number in spec.scalar_types:
            _make_single(kind, number)
        function = _assembled(cuda, spec)
        signature = types.void(kind_of(arguments))
        how = {"device": False, "abi": "numba", "cc": capability, "output": "ltoir", "opt": True}
        return bytes(cuda.compile(function, signature, launch_bounds=spec.threads, **how)[0])


def link(code: bytes, capability: tuple[int, int], *, ptx: bool = False) -> bytes:
    """Return machine code, or what it is made from, without fused multiplications and additions."""
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


_patching = RLock()


@contextlib.contextmanager
def _compiling_for(capability: tuple[int, int], loops: tuple[tuple[str, str], ...] = ()) -> Iterator[Any]:
    """Give numba-cuda, made to compile for a card, whether it is there or not.

    It asks the present card for its capability where a kernel calls what is compiled for the
    processor too, and numpy for `row_stack`, which newer releases do not have. It has no word for
    loops that are to be unrolled. So for the time that takes these are put in the place of its own,
    by one thread at a time.
    """
    with _patching:
        yield from _patched(capability, loops)


def _patched(capability: tuple[int, int], loops: tuple[tuple[str, str], ...]) -> Iterator[Any]:
    added = not hasattr(np, "row_stack")
    if added:
        np.row_stack = np.vstack
    try:
        optional("numba_cuda", "GPU engines", "gpu")
        cuda = optional("numba.cuda", "GPU engines", "gpu")
        from numba.cuda import dispatcher
        from numba.cuda.cudadrv import nvvm
        from numba.cuda.descriptor import cuda_target

        asked, dispatcher.get_current_device = dispatcher.get_current_device, lambda: _AbsentCard(capability)
        compiled = nvvm.compile_ir
        if loops:
            nvvm.compile_ir = lambda codes, **how: compiled([_unrolling(code, loops) for code in codes], **how)
        try:
            with bound_for(cuda_target.typing_context):
                yield cuda
        finally:
            dispatcher.get_current_device, nvvm.compile_ir = asked, compiled
    finally:
        if added:
            del np.row_stack


def _unrolling(code: str, loops: tuple[tuple[str, str], ...]) -> str:
    """Return LLVM's code that says which loops are to be unrolled.

    Numba's blocks have the numbers of what they are made from: a jump to none that is larger goes
    back to the head of a loop.
    """
    hows = {"_ZN" + "".join(f"{len(name)}{name}" for name in module.split(".")): how for module, how in loops}
    lines, metadata, block, ours = list[str](), list[str](), 0, ""
    for line in code.splitlines():
        if line.startswith("define"):
            ours = next((how for module, how in hows.items() if module in line), "")
        begins, jumps = re.match(r'"?B(\d+)[\w.]*"?:', line), re.fullmatch(r'\s+br label %"B(\d+)"', line)
        block = int(begins[1]) if begins else block
        if ours and jumps and int(jumps[1]) <= block:
            k = METADATA + 2 * len(metadata)
            metadata.append(f'!{k} = distinct !{{!{k}, !{k + 1}}}\n!{k + 1} = !{{!"llvm.loop.unroll.{ours}"}}')
            line += f", !llvm.loop !{k}"
        lines.append(line)
    return "\n".join(lines + metadata)


@dataclass(frozen=True)
class _AbsentCard:
    compute_capability: tuple[int, int]


@cache
def _make_single(kind: Any, number: Any) -> None:
    """Let numba types of this class be one such number on a GPU."""
    from numba.cuda.datamodel import PrimitiveModel
    from numba.cuda.models import register_model

    class Single(PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, number)

    register_model(kind)(Single)


def _assembled(cuda: Any, spec: KernelSpec) -> Any:
    """Return the function that runs the phases, with a barrier between them."""
    places = _Places(spec)
    make_shared, make_own = places.maker(spec.shared, shared=True), places.maker(spec.own, shared=False)
    run, threads, whole = reduce(partial(_joined, cuda), spec.phases), spec.threads, types.int64

    def kernel(arguments):  # type: ignore[no-untyped-def]
        thread, block, blocks = whole(cuda.threadIdx.x), whole(cuda.blockIdx.x), whole(cuda.gridDim.x)
        run(thread, block, threads, blocks, make_shared(), make_own(), arguments)

    return kernel


def _joined(cuda: Any, first: Any, second: Any) -> Any:
    """Return the function that runs one phase, waits for the whole block, and runs another."""

    def both(thread, block, threads, blocks, shared, own, arguments):  # type: ignore[no-untyped-def]
        first(thread, block, threads, blocks, shared, own, arguments)
        cuda.syncthreads()
        second(thread, block, threads, blocks, shared, own, arguments)

    return cuda.jit(both, device=True)


class _Places:
    """Where the arrays of a kernel lie: shared ones end to end, others in each thread's memory."""

    def __init__(self, spec: KernelSpec) -> None:
        self.spec, self.used = spec, 0

    def maker(self, pattern: Any, *, shared: bool) -> Any:
        """Return a function for kernels that makes arrays like those of the pattern."""
        from numba.cuda.extending import intrinsic

        interleaved = {name for name, _ in _arrays(pattern) if not shared and name in self.spec.shared_fields}
        kind = kind_of(pattern, dict.fromkeys(interleaved, "A"))
        offsets = dict[str, int]()
        for name, x in _arrays(pattern):
            if name not in self.spec.constants and (shared or name in interleaved):
                offsets[name] = self.used
                self.used += _aligned(x.nbytes * (1 if shared else self.spec.threads))

        @intrinsic
        def make(context):  # type: ignore[no-untyped-def]
            def emit(context, builder, signature, values):  # type: ignore[no-untyped-def]
                emitting = _Emitting(context, builder, offsets, interleaved, self.spec.constants, self.spec.threads)
                return emitting.value("", pattern, kind)

            return kind(), emit

        return make


@dataclass(frozen=True, eq=False)
class _Emitting:
    """Emits the code that makes arrays."""

    context: Any
    builder: Any
    offsets: dict[str, int]  # of arrays in shared memory
    shared_fields: set[str]
    constants: tuple[str, ...]
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
        if name in self.constants:
            data = self._constant(pattern, item)
        elif name in self.offsets:
            many = self.threads if name in self.shared_fields else 1
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
        """Return a place in shared memory; each thread's is `each` bytes from the one before."""
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


# -- compiling several kernels at once ------------------------------------------------------------


NO_CODE = (0, 0)  # compute capability of a card that runs the processor's code: one that tests stand in for
MOST = 4  # processes: the longest takes about as long as all others together on the remaining ones


@cache  # what is kept, or was tried, is not looked for again: that takes a tenth of a second
def compile_together(
    spec_of: Callable[[str, Any], KernelSpec],
    arguments_of: Callable[[str], Any],
    names: tuple[str, ...],
    shape: Any,
    capability: tuple[int, int],
) -> None:
    """Compile those of the kernels, the longest first, that are not kept on disk.

    `spec_of` makes a kernel for a shape, and `arguments_of` what it takes; both are of one module,
    which knows the shape's class. What fails here is compiled again where it is needed, and fails
    there, with its error.
    """
    if capability == NO_CODE or not can_start_python():
        return
    missing = [name for name in names if not is_kept(spec_of(name, shape), arguments_of(name), capability)]
    together = min(MOST, processors(), len(missing))
    if together > 1:
        begin = f"from {__name__} import compile_one; from {spec_of.__module__} import *; "
        begin += f"compile_one({spec_of.__name__}, {arguments_of.__name__}, "
        with compiling(), ThreadPoolExecutor(together) as pool:
            list(pool.map(lambda name: _run_quietly(f"{begin}{name!r}, {shape!r}, {capability!r})"), missing))


def _run_quietly(code: str) -> None:
    with suppress(OSError):
        subprocess.run(**python_process(code), check=False)


def compile_one(spec_of: Any, arguments_of: Any, name: str, shape: Any, capability: tuple[int, int]) -> None:
    """Compile a kernel, and keep it."""
    cubin(spec_of(name, shape), arguments_of(name), capability)
