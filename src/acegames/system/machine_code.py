"""Compiles kernels, and keeps them between processes: numba's cache, made safe for several
processes and for hurt folders.

Numba keeps one index and one data file per kernel, beside the source, in the user's cache folder,
or where `NUMBA_CACHE_DIR` says. Changed here:

- A kernel is compiled again when `acegames.numerics` changed, a file whose functions it calls, they
  or those that they call, or, of the solver's own, any file of `acegames.kernels`: these are part
  of the machine code, but numba looks at the kernel's own file only.
- The data is written before the index that names it, so that no index ever names the machine code
  of older sources, whoever else compiles at the time or is killed.
- Both files end with a checksum, and the data names what it was compiled from and for: nothing is
  unpickled, and no machine code run, that is not what was written.
- Files that cannot be read or written (damaged, disk full, rights withdrawn) cost a compilation,
  never the work.

All this rests on classes that numba does not promise to keep. Where a release has moved them,
numba's own cache is used, with a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from acegames import numerics
from acegames.system.compiled import Kernel, registered
from acegames.system.compiling import check_wanted, compile_notice, compiling, loading
from acegames.system.machine import processors

try:
    from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
    from numba.core.options import DefaultOptions
except ImportError:
    FunctionCache = IndexDataCacheFile = NullCache = DefaultOptions = object
WHOLE: dict[str, Any] = {}
LINKED: dict[str, Any] = {}
with contextlib.suppress(ImportError):
    from acegames.system.linking import KernelCompiler, LinkedCompiler

    WHOLE, LINKED = {"pipeline_class": KernelCompiler}, {"pipeline_class": LinkedCompiler}


log = logging.getLogger("acegames")
CHECKSUM = 32  # bytes of SHA-256
_SOLVER = str(Path(numerics.__file__).parent / "kernels" / "_")[:-1]  # the folder of its kernels
UNCOUNTED: dict[str, bool] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def compiled_kernel(function: Callable[..., Any]) -> Any:
    """Return what compiles a kernel, once per installation if a cache can be written."""
    if not WHOLE:  # nobody binds when compiling begins
        bind()
    compiled: Any = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **WHOLE)(function)
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError:  # no such folder: compile in each process
        compiled._cache = NoCache()
    except Exception as error:  # numba has moved what this rests on
        _warn_moved(repr(error))
        compiled.enable_caching()
    return compiled


def bind() -> None:
    """Tell numba what the functions are that kernels call, which are plain ones in Python."""
    for function in registered[len(_bound) :]:
        _bound.append(_as_numba_knows(function, **function.compile_options))
        function._numba_type_ = cpu_target.typing_context.resolve_value_type(_bound[-1])


_bound: list[Any] = []  # dispatchers and intrinsics of numba, in the order of `registered`


def _as_numba_knows(function: Any, *, counted: bool = True, emitted: bool = False, **options: bool) -> Any:
    if emitted:
        emitter = getattr(import_module(f"{function.__module__}_llvm"), function.__name__)
        cpu_target.typing_context.refresh()
        return emitter
    how = {**LINKED, **({} if counted else UNCOUNTED), **options}
    compiler: Any = numba.njit
    return compiler(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, **how)(function)


@contextlib.contextmanager
def bound_for(typing_context: Any) -> Iterator[None]:
    """Let the functions be what another compiler makes of them, while nothing else is compiled."""
    with global_compiler_lock:
        bind()
        typing_context.refresh()
        before = [function._numba_type_ for function in registered]
        for function, known in zip(registered, _bound, strict=True):
            function._numba_type_ = typing_context.resolve_value_type(known)
        try:
            yield
        finally:
            for function, kind in zip(registered, before, strict=True):
                function._numba_type_ = kind


def is_kept(kernel: Kernel, arguments: tuple[Any, ...]) -> bool:
    """Return whether machine code of a kernel is on disk, for such arguments."""
    compiled = kernel.machine_code
    if not hasattr(compiled._cache, "holds"):  # numba's own, or none
        return False
    types = tuple(map(compiled.typeof_pyval, arguments))
    return bool(compiled._cache.holds(compiled._cache._index_key(types, compiled.targetctx.codegen())))


def compile_in_subprocess(kernel: Kernel, code: str) -> None:
    """Have another process run this code, which compiles a kernel, unless it is kept already.

    This process waits for it where it needs the kernel, and compiles by itself if that process
    fails.
    """
    compiled = kernel.machine_code
    cache = getattr(compiled, "_cache", None)
    if not isinstance(cache, KernelCache) or cache.cache_path is None or cache.holds():
        return
    if background.helping or processors() < 2 or not can_start_python():
        return
    with contextlib.suppress(OSError):
        cache.compiling_process = _GoesOn(**python_process(code))


class Background:
    """The process that compiles the usual kernels at low priority, begun at most once."""

    helping = False  # whether this is that process, which begins no other

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: a forked child has no helper, and must not wait for a lock that nobody gives
        back.
        """
        self._process: subprocess.Popen[bytes] | None = None
        self._changing = Lock()

    def begin(self, kernel: Kernel) -> None:
        """Begin to compile, if what this kernel becomes can be kept.

        The process ends with this one, because it reads to the end of a pipe.
        """
        if not hasattr(kernel.machine_code._cache, "holds"):
            return
        with self._changing:
            if self._process is None and can_start_python():
                how = python_process("from acegames.cli.warming import warm; warm(helping=True)")
                how |= {"stdin": subprocess.PIPE, "creationflags": getattr(subprocess, "IDLE_PRIORITY_CLASS", 0)}
                with contextlib.suppress(OSError, RuntimeError):
                    self._process = _GoesOn(**how)
                    Thread(target=self._process.wait, daemon=True).start()  # so that it is no zombie when it has ended

    def end(self) -> None:
        """End the process; the kernels that it has compiled are kept."""
        with self._changing:
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()


background = Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.forget)


def can_start_python() -> bool:
    """Return whether there is a Python to run code in; that of a frozen program is the program
    itself.
    """
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def python_process(code: str) -> dict[str, Any]:
    """Return what starts a silent process that runs code of these sources."""
    source = str(Path(numerics.__file__).parents[1])
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    return {"args": [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"], **silent}


@cache
def _warn_moved(why: str) -> None:
    warnings.warn(
        f"acegames does not know this release of numba ({numba.__version__}: {why}) and uses its plain cache of compiled code; "
        "after changes of acegames' own sources, delete the cache",
        RuntimeWarning,
        stacklevel=3,
    )


@cache
def sources_stamp(function: Callable[..., Any]) -> str:
    """Return a digest of the sources that may be part of the machine code; see `kernel`."""
    files, waiting = set[str](), [function]
    while waiting:
        last = waiting.pop()
        if (name := last.__code__.co_filename) not in files:
            files.add(name)
            if name.startswith(_SOLVER):  # which counts as a whole
                continue
            called = (getattr(x, "py_func", x) for x in last.__globals__.values() if _is_called(x))
            waiting += [f for f in called if f.__globals__ is not last.__globals__]
    return hashlib.sha256("".join(sorted(source_digest(Path(x)) for x in files)).encode()).hexdigest()


def _is_called(x: Any) -> bool:
    return isinstance(x, Kernel) or hasattr(x, "compile_options")


@cache
def source_digest(file: Path) -> str:
    """Return a digest of a source and the tolerances; of all the solver's kernels if it is one."""
    sources = sorted(Path(_SOLVER).rglob("*.py")) if str(file).startswith(_SOLVER) else [file]
    return hashlib.sha256(b"".join(x.read_bytes() for x in (Path(numerics.__file__), *sources))).hexdigest()


class _GoesOn(subprocess.Popen[bytes]):
    """A process that may go on when this one ends; nobody is warned of that."""

    def __del__(self) -> None:
        """Warn of nothing."""


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. What goes wrong with its files is told to the log at most."""

    compiling_process: subprocess.Popen[bytes] | None = None  # the process that compiles it now

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), sources_stamp(function))
        self._cache_file = DataFirst(self.cache_path, self._impl.filename_base, stamp)

    def holds(self, key: Any = None) -> bool:
        """Return whether the kernel was compiled from these sources, for whatever arguments or for
        those of a key."""
        names = self._cache_file._load_index()
        return bool(names) if key is None else key in names

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel, or None where there is none that can be read."""
        overload = self._read_overload(signature, target)
        if overload is None:
            check_wanted(repr(self))
            background.end()  # both would compile the same
            compile_notice(cached=True)
        if overload is None and self.compiling_process is not None:
            with compiling():
                self.compiling_process.wait()
            self.compiling_process = None
            overload = self._read_overload(signature, target)
        return overload

    def _read_overload(self, signature: Any, target: Any) -> Any:
        try:
            with loading():
                return super().load_overload(signature, target)
        except Exception as error:  # whatever unpickling damaged bytes raises
            log.debug("acegames: a compiled kernel in %s cannot be read (%r)", self.cache_path, error)
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled kernel, where it can be written."""
        try:
            super().save_overload(signature, result)
        except OSError as error:
            log.debug("acegames: a compiled kernel cannot be kept in %s (%r)", self.cache_path, error)


class NoCache(NullCache):  # type: ignore[misc]
    """Of a kernel that cannot be kept."""

    def load_overload(self, signature: Any, target: Any) -> None:
        """Return nothing, as nothing is kept; raise NotCompiled where nothing shall be compiled."""
        check_wanted(repr(self))
        compile_notice(cached=False)


class DataFirst(IndexDataCacheFile):  # type: ignore[misc]
    """Index and data file of one kernel; the data is written first, both have checksums."""

    def save(self, key: Any, data: Any) -> None:
        """Write the machine code, then the index that names it."""
        known = self._load_index()
        taken = set(known.values())
        name = known.get(key) or next(n for n in map(self._data_name, range(1, len(taken) + 2)) if n not in taken)
        self._save_data(name, (self._source_stamp, key, data))
        self._save_index({**known, key: name})

    def load(self, key: Any) -> Any:
        """Return what was saved under a key, or None where there is nothing or something else."""
        name = self._load_index().get(key)
        if name is None:
            return None
        *whose, data = pickle.loads(whole_file(self._data_path(name)))
        return data if whose == [self._source_stamp, key] else None

    def _load_index(self) -> Any:
        try:
            version, stamp, names = pickle.loads(whole_file(self._index_path))
        except Exception:  # there is none, or it is damaged: begin a new one
            return {}
        return names if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, names: Any) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._version, self._source_stamp, names)))

    def _dump(self, content: Any) -> bytes:
        written: bytes = super()._dump(content)
        return written + hashlib.sha256(written).digest()


def whole_file(path: str) -> bytes:
    """Return the content of a file without the checksum at its end, which must be right."""
    written = Path(path).read_bytes()
    content, checksum = written[:-CHECKSUM], written[-CHECKSUM:]
    if hashlib.sha256(content).digest() != checksum:
        raise ValueError(f"{path}: the checksum is wrong")
    return content
