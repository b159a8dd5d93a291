"""Solved layers in a file, so that a solve that was broken off goes on, and a policy larger than
memory stays on disk.

    FOLDER/run-0123456789abcdef.layers       one solve: a game, a concept, a rounding, a version
    FOLDER/run-0123456789abcdef-12.layers    a layer of it, that of t = 12, written on a cluster

The digest of all that is the name, so layers of other solves are never mixed up. The file is a
sequence of blocks (see `container`). The first says what is solved, for people. Each of the others
holds a group of layers; groups are appended, from the last time to the first, and synced to disk.
What is not a whole block of this solve is skipped: half a group at the end, left by a process that
was killed, and anything damaged. Its layers are solved again and appended. On a cluster whose
machines share the folder, each layer is written there by one of them, whole or not at all, as a
file of its own; such a layer counts like any other.

Reading holds every layer against the game's own pairs before it is used. Arrays are mapped, not
loaded. A file that the system does not let us read is an error, and nothing is touched.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import math
import mmap
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines import ExploredSpace, SolvedLayer, without_values
from acegames.engines.forecast import WAITING_BYTES
from acegames.errors import BadFile, CheckpointError
from acegames.policy.layer import PolicyLayer, action_offsets, answers
from acegames.policy.policy_file import LAYER_ARRAYS, check_layer
from acegames.system.atomic import BINARY, Path, replacing, sync_folder, try_lock
from acegames.system.container import (
    MAGIC,
    PrefixedArrays,
    StoredBlock,
    fill_block,
    little_bytes,
    read_block,
    write_block,
)
from acegames.version import __version__

VERSION = 1
"""The version of the files; raised with every change: what another version wrote is solved anew."""

EVERY_BYTES = WAITING_BYTES  # a group is written when it is this large,
EVERY_SECONDS = 5.0  # or this old,
EVERY_SHARE = 0.01  # or this share of the time of the whole solve

SOLVE, LAYERS = "acegames-checkpoint", "acegames-layers"
RUN = re.compile(r"run-[0-9a-f]{16}\.layers")
ALONE = re.compile(r"(run-[0-9a-f]{16})-([0-9]{1,9})\.layers")  # layers with a file of their own

OTHER_FILES = 512  # that a process may have open besides layers

NO_LINKS = getattr(os, "O_NOFOLLOW", 0)

log = logging.getLogger("acegames")


class Checkpoint:
    """Stores the layers of one solve on disk. Leaving its `with` statement stores the rest."""

    in_memory = False

    def __init__(self, folder: Path, concept: Concept, facts: Mapping[str, Any], *, keep_values: bool = True) -> None:
        """Prepare the folder; `open` takes the file.

        `facts` tell the solve from others, besides the concept and the engine's space. The file
        holds values in any case: a solve goes on from them, also one that does not keep them.
        """
        self.keep_values = keep_values
        self.folder = self.run = os.fspath(folder)  # `run` is the file, once it is open
        self.concept = concept
        self.facts = {"version": VERSION, "acegames": __version__, **facts, "concept": repr(concept)}
        self.facts["byteorder"] = sys.byteorder
        self._waiting: list[SolvedLayer] = []  # for the next group
        self._size = 0  # bytes of these
        self._groups: list[int] = []  # where the blocks of layers begin
        self._alone: list[str] = []  # the files of layers that have one of their own
        self._end = 0  # of the last whole block
        self._handle = -1
        self._full = False
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._waiting and not self._full:
                self._write()
        finally:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def open(self, space: ExploredSpace) -> list[SolvedLayer]:
        """Take the file for this process; return earlier runs' layers, the last time first."""
        self._space = space
        self.facts |= {"dims": list(space.dims), "pairs": space.pairs}
        digest = hashlib.blake2b(json.dumps(self.facts, sort_keys=True).encode(), digest_size=32).hexdigest()
        self._digest, self.run = digest, os.path.join(self.folder, f"run-{digest[:16]}.layers")
        allow_files(2 * space.game.horizon + OTHER_FILES)
        try:
            self._take()
            layers = _last_first([*self._scan(), *self._scan_alone()])
            if not self._end:
                self._tell_of_others()
                self._append(SOLVE, {"solve": self.facts}, {})
                sync_folder(self.folder)
        except OSError as error:
            raise self._unusable(error) from None
        self._began = self._written = time.monotonic()
        if layers:
            message = "acegames: %d of %d layers are in %s from an earlier run%s"
            rest = "" if len(layers) == space.game.horizon else "; going on with the rest"
            log.warning(message, len(layers), space.game.horizon, self.folder, rest)
        return layers

    def put(self, solved: SolvedLayer) -> None:
        """Take a layer. It is stored when its group is large or old enough, or `with` is left."""
        abs_total = None if solved.abs_total is None else np.ascontiguousarray(solved.abs_total)
        solved = replace(solved, abs_total=abs_total)  # a view would keep the values of all cells
        self._waiting.append(solved)
        self._size += sum(array.nbytes for array in _arrays(solved).values())
        now = time.monotonic()
        if self._size >= EVERY_BYTES or now - self._written >= max(EVERY_SECONDS, EVERY_SHARE * (now - self._began)):
            self._write()

    def close(self) -> list[SolvedLayer]:
        """Store the rest; return all layers, mapped from disk."""
        if self._waiting:
            self._write()
        try:
            solved = list[SolvedLayer]()
            for path, places in [(self.run, self._groups), *((alone, [0]) for alone in self._alone)]:
                for block in _blocks(path, places):  # which this process has checked or written
                    solved += self._layers(block, check=False)
        except OSError as error:
            raise self._unusable(error) from None
        layers = _last_first(solved if self.keep_values else list(map(without_values, solved)))
        if len(layers) != self._space.game.horizon:
            raise CheckpointError(
                f"{self.folder}: layers were removed or changed while they were used; run the same again"
            )
        return layers

    def keep(self, arrays: Iterable[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return the arrays, mapped from a file without a name, which is gone when they are."""
        shapes = []
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                for array in arrays:
                    file.write(little_bytes(array))
                    shapes.append(array.shape)
                file.flush()
                content = np.frombuffer(_mapped(file), "<f8")
        except OSError as error:
            raise self._unusable(error, 8 * sum(map(math.prod, shapes))) from error
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(content, ends[:-1]), shapes, strict=True)]

    # -- layers that others write

    @property
    def run_digest(self) -> str:
        """What the layers of this solve are known by."""
        return self._digest

    def alone(self, t: int) -> str:
        """Return the file of its own that a layer may have."""
        return f"{self.run.removesuffix('.layers')}-{t}.layers"

    def adopt(self, t: int) -> None:
        """Take the layer that another process has written to that file."""
        self._alone.append(self.alone(t))

    # -- the file

    def _take(self) -> None:
        """Open and lock the file; links are not followed."""
        self._handle = os.open(self.run, os.O_RDWR | os.O_CREAT | NO_LINKS | BINARY, 0o666)
        if not stat.S_ISREG(os.fstat(self._handle).st_mode):
            raise CheckpointError(f"{self.run}: is no ordinary file; remove it, or give another folder")
        locked = try_lock(self._handle)
        if locked is False:
            raise CheckpointError(
                f"{self.folder}: another process is solving the same game with this checkpoint folder; "
                "wait for it, or give another folder"
            )
        if locked is None:
            message = "acegames: %s is on a file system without locks; let no two processes use it at once"
            log.warning(message, self.folder)

    def _append(self, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write a block behind the last whole one, over whatever is there, and sync it to disk."""
        with suppress(OSError):  # where a mapped file cannot be cut, what is left is skipped by readers
            os.ftruncate(self._handle, self._end)
        with open(os.dup(self._handle), "r+b") as file:
            file.seek(self._end)
            write_block(file, kind, header, arrays)
            file.flush()
            os.fsync(file.fileno())
            self._end = file.tell()

    def _write(self) -> None:
        """Append the waiting layers as one block."""
        begin, counts = self._end, [[x.t, x.programs, x.repaired] for x in self._waiting]
        arrays = {f"{x.t}/{name}": array for x in self._waiting for name, array in _arrays(x).items()}
        try:
            self._append(LAYERS, {"run": self._digest, "layers": counts}, arrays)
        except OSError as error:
            self._full = True
            with suppress(OSError):
                os.ftruncate(self._handle, begin)
            raise self._unusable(error, self._size) from error
        self._groups.append(begin)
        self._waiting, self._size, self._written = [], 0, time.monotonic()

    def _scan(self) -> list[SolvedLayer]:
        """Check the file from end to end; return its whole layers, mapped, the last time first."""
        solved: list[SolvedLayer] = []
        with _reading(self.run) as file:
            size, at = os.fstat(file.fileno()).st_size, 0
            content = _mapped(file) if size else None
            while content is not None and 0 <= at < size:
                try:
                    block = read_block(file, at, self.run)
                    block.check_in(file)
                    if block.kind == LAYERS:
                        block.map(content)
                        solved += list(self._layers(block, check=True))
                        self._groups.append(at)
                    self._end = at = block.end
                except OSError:  # which says nothing about what the file holds
                    raise
                except Exception as error:  # a header may hold anything
                    log.warning("acegames: %s: no whole layers at byte %d (%s)", self.run, at, error)
                    at = content.find(MAGIC, at + 1)
        return solved

    def _scan_alone(self) -> list[SolvedLayer]:
        """Check the files of single layers; return those that are whole, mapped."""
        solved: list[SolvedLayer] = []
        for name in sorted(os.listdir(self.folder)):
            match = ALONE.fullmatch(name)
            if match is None or match[1] != os.path.basename(self.run).removesuffix(".layers"):
                continue
            path = os.path.join(self.folder, name)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise CheckpointError(f"{path}: is no ordinary file; remove it, or give another folder")
            try:
                (block,) = _blocks(path, [0], check=True)
                layers = list(self._layers(block, check=True))
                if [x.t for x in layers] != [int(match[2])]:
                    raise BadFile(f"holds the layers of the times {[x.t for x in layers]}")
                solved += layers
                self._alone.append(path)
            except OSError:
                raise
            except Exception as error:
                log.warning("acegames: %s: no whole layer (%s)", path, error)
        return solved

    def _layers(self, block: StoredBlock, *, check: bool) -> Iterator[SolvedLayer]:
        """Yield the layers of a group; BadFile where one does not fit the game."""
        if block.header.get("run") != self._digest:
            raise BadFile("layers of another solve")
        space, game = self._space, self._space.game
        offsets = action_offsets(game) if self.concept.product else None
        for t, programs, repaired in block.header["layers"]:
            here, table, arrays = space.layers[t], game.layer(t), PrefixedArrays(block, f"{t}/")
            layer = PolicyLayer(here, table.row_ptr, table.action, *(arrays[name] for name in LAYER_ARRAYS))
            abs_total = arrays["abs_total"] if len(game.players) > 1 else None
            if check:
                assert here.cells is not None
                check_layer(replace(layer, offsets=offsets), game, space.dims)
                filed = len(layer.code) == answers(here.cells.number, here.total)
                counted = all(type(n) is int for n in (t, programs, repaired))
                counted = counted and 0 <= repaired <= programs <= len(layer)
                stored = layer.values
                assert stored is not None
                same_form = abs_total is None or (abs_total.shape == stored.shape and abs_total.dtype == stored.dtype)
                if t < 0 or not (filed and counted and same_form):
                    raise BadFile(f"its layer of time {t} is not one of this game")
            yield SolvedLayer(t, layer, programs, repaired, abs_total)

    # -- what is said

    def _tell_of_others(self) -> None:
        """Say how other solves in the folder differ from this one; they may be hours of work."""
        for name in other_runs(self.run):
            solve: Any = None
            with suppress(Exception), _reading(os.path.join(self.folder, name)) as file:  # it may hold anything
                solve = read_block(file, 0, name).header.get("solve")
            readable = isinstance(solve, dict)
            other = ", ".join(k for k in self.facts if solve.get(k) != self.facts[k]) if readable else "not readable"
            message = (
                "acegames: %s holds layers of another solve (%s), which cannot be used for this one and are left as "
                "they are; this one starts from the beginning. Delete %s if nobody needs it"
            )
            log.warning(message, self.folder, other, os.path.join(self.folder, name))

    def _unusable(self, error: OSError, needed: int = 2**16) -> CheckpointError:
        """Return the error that says what the system refuses, and what helps."""
        name, why = error.filename or self.run, error.strerror or error
        stored, again = "The layers stored before are", "run the same again"
        if error.errno == errno.EFBIG:
            reason = (
                f"{name}: the system allows no file with the {needed:,} bytes more that the next layers take ({why})"
            )
            remedy = f"{stored} whole; raise that limit (ulimit -f) and {again} to go on"
        elif error.errno == errno.EMFILE:
            reason = f"{self.folder}: the system lets this process open no more files ({why}), and each layer that a cluster wrote has one"
            remedy = f"{stored} left as they are; raise that limit (ulimit -n) and {again} to go on"
        elif error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", -1)):
            free = ""
            with suppress(OSError):
                free = f", {shutil.disk_usage(self.folder).free:,} are free"
            reason = f"{self.folder}: no room for the next layers ({why}): at least {needed:,} bytes are needed{free}"
            remedy = f"{stored} whole; make room and {again} to go on"
        else:
            reason = f"{name}: cannot be used for a checkpoint ({why})"
            remedy = f"{stored} left as they are; mend that and {again}, or give another folder"
        return CheckpointError(f"{reason}. {remedy}")


def write_alone(path: str, run_digest: str, counted: tuple[int, int, int], shapes: Any, fill: Any) -> None:
    """Write a layer to a file of its own, whole or not at all; `fill` fills its arrays.

    `counted` are its time, its programs and its repairs, `shapes` those of its arrays by name.
    """
    t = counted[0]
    named = {f"{t}/{name}": shape for name, shape in shapes.items()}
    header = {"run": run_digest, "layers": [list(counted)]}
    try:
        with replacing(path) as file:
            fill_block(
                file, LAYERS, header, named, lambda arrays: fill({k.partition("/")[2]: x for k, x in arrays.items()})
            )
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: str, error: OSError) -> CheckpointError:
    """Return the error for a file of a checkpoint folder that one of the machines cannot write."""
    return CheckpointError(
        f"{path}: cannot be written ({error.strerror or error}). The layers stored before are whole; mend that and run the "
        "same again to go on"
    )


def _blocks(path: str, places: Iterable[int], *, check: bool = False) -> Iterator[StoredBlock]:
    """Yield the blocks at some places of a file, mapped."""
    with _reading(path) as file:
        content = _mapped(file)
        for at in places:
            block = read_block(file, at, path)
            if check:
                block.check_in(file)
            block.map(content)
            yield block


def allow_files(number: int) -> None:
    """Raise the limit of open files, as far as the system lets us: each mapped layer has one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def other_runs(run: str) -> list[str]:
    """Return names of the solves that are in the same folder as this one."""
    folder, own = os.path.split(run)
    return sorted(name for name in os.listdir(folder) if RUN.fullmatch(name) and name != own)


def _arrays(solved: SolvedLayer) -> dict[str, NDArray[Any]]:
    """Return the arrays that are stored; boxes, cells and joint actions come from the game."""
    abs_total = {} if solved.abs_total is None else {"abs_total": solved.abs_total}
    return {name: getattr(solved.layer, name) for name in LAYER_ARRAYS} | abs_total


def _last_first(solved: list[SolvedLayer]) -> list[SolvedLayer]:
    """Sort layers, the last time first; of two of one time the first is taken."""
    return sorted({x.t: x for x in reversed(solved)}.values(), key=attrgetter("t"), reverse=True)


def _reading(path: str) -> IO[bytes]:
    """Open a file to map it: a mapping keeps the lock of its handle. Links are not followed."""
    return open(os.open(path, os.O_RDONLY | NO_LINKS | getattr(os, "O_NONBLOCK", 0) | BINARY), "rb")


def _mapped(file: IO[bytes]) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
