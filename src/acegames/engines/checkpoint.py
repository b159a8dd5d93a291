"""Solved layers in a folder, so that a solve that was broken off goes on, and a policy larger than memory stays on disk.

    FOLDER/run-0123456789abcdef/          one solve: a game, a concept, a rounding, a version; the digest of all that is its name
        manifest.json                     the same in words, for people
        lock                              held by the process that writes
        layers-00000040-00000063.bin      the layers of times 40 .. 63

Layers are written in groups, from the last time to the first, each group in a file that is whole or not there: written beside,
synced, renamed, and closed by a checksum of all its bytes. Another game or version has another name and so is never mixed up.
A file whose content is wrong is set aside (`.damaged`) and only its layers are solved again; one that the system does not let us
read is no reason to touch anything.

A group: MAGIC, digest of the run, first and last time, one row of numbers per layer from the last time down (`COLUMNS`), the
arrays of these layers in the same order (`_arrays`), the checksum. Sizes follow from the rows, and rows are held against the
game's own pairs before anything is made of them. Arrays are mapped, not loaded.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import math
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines.forecast import WAITING_BYTES
from acegames.engines.layer_store import ExploredSpace, SolvedLayer
from acegames.errors import BadFile, CheckpointError
from acegames.policy.checks import check_layer
from acegames.policy.layer import PolicyLayer, action_offsets, answers
from acegames.system.container import CHUNK, TEMPORARY, Path, remove_leftovers, replacing, strict_json, sync_folder
from acegames.system.locks import try_lock
from acegames.system.mapped_files import map_file
from acegames.version import __version__

VERSION = 3
"""Of the files; raised whenever they change, because what another version wrote is computed anew."""

EVERY_BYTES = WAITING_BYTES  # a group is written when it is this large,
EVERY_SECONDS = 5.0  # or this old,
EVERY_SHARE = 0.01  # or this share of the whole solve, so that long ones do not leave thousands of files

MAGIC = b"acegames-layers\n"
COLUMNS = ("programs", "repaired", "pairs", "mixed", "entries", "code bytes", "row bytes")
HEAD = len(MAGIC) + 32 + 16
CHECKSUM = 32
MANIFEST, MANIFEST_LIMIT, LOCK = "manifest.json", 2**16, "lock"
ASIDE = ".damaged"  # how the names of files end whose content is wrong
RUN = re.compile(r"run-[0-9a-f]{16}")
GROUP = re.compile(r"layers-([0-9]{8,18})-([0-9]{8,18})\.bin")

log = logging.getLogger("acegames")


class Checkpoint:
    """A shelf for the layers of one solve; see `engines.shelf`. Use it in a `with` statement: leaving it stores what is not stored yet."""

    in_memory = False

    def __init__(self, folder: Path, concept: Concept, facts: Mapping[str, Any]) -> None:
        """`facts` tell the solve from others, besides the concept and what the engine's space says."""
        self.folder, self.concept = os.fspath(folder), concept
        self.facts = {"format": "acegames-checkpoint", "version": VERSION, "acegames": __version__, **facts}
        self.facts |= {"concept": repr(concept), "byteorder": sys.byteorder}
        self._stored: dict[int, SolvedLayer] = {}  # by time
        self._waiting: list[SolvedLayer] = []  # for the next file
        self._size = 0  # bytes of these
        self._lock = -1
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
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def open(self, space: ExploredSpace) -> list[SolvedLayer]:
        """Take the folder for this process and read the layers of an earlier run, but for those that are missing or damaged."""
        self._space = space
        self.facts |= {"dims": list(space.dims), "pairs": space.pairs}
        self._digest = hashlib.blake2b(json.dumps(self.facts, sort_keys=True).encode(), digest_size=32).digest()
        self.run = os.path.join(self.folder, f"run-{self._digest.hex()[:16]}")
        try:
            self._begin()
            self._stored = self._read_all()
        except OSError as error:
            raise self._unusable(error) from None
        self._began = self._written = time.monotonic()
        if self._stored:
            self._tell_resumed(len(self._stored), space.game.horizon)
        return self._found()

    def put(self, solved: SolvedLayer) -> None:
        """Take a layer; it is on disk at the latest when its group is large or old enough, or when the `with` statement is left."""
        if self._waiting and solved.t != self._waiting[-1].t - 1:  # those in between are on disk
            self._write()
        gross = None if solved.gross is None else np.ascontiguousarray(solved.gross)
        solved = replace(solved, gross=gross)  # a view would keep the values of all cells
        self._waiting.append(solved)
        self._size += sum(array.nbytes for array in _arrays(solved))
        now = time.monotonic()
        if self._size >= EVERY_BYTES or now - self._written >= max(EVERY_SECONDS, EVERY_SHARE * (now - self._began)):
            self._write()

    def close(self) -> list[SolvedLayer]:
        """Store what is not stored yet; all layers, mapped from disk."""
        if self._waiting:
            self._write()
        return self._found()

    def keep(self, arrays: Iterable[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """The arrays, mapped from a file without a name, which is gone when they are."""
        shapes = []
        try:
            with tempfile.TemporaryFile(dir=self.run) as file:
                for array in arrays:
                    file.write(_bytes(array))
                    shapes.append(array.shape)
                file.flush()
                content = np.frombuffer(map_file(file.fileno()))
        except OSError as error:
            raise self._unusable(error, 8 * sum(map(math.prod, shapes))) from error
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(content, ends[:-1]), shapes, strict=True)]

    def _found(self) -> list[SolvedLayer]:
        return sorted(self._stored.values(), key=attrgetter("t"), reverse=True)

    def _tell_resumed(self, found: int, layers: int) -> None:
        if found == layers:
            log.warning("acegames: all %d layers are in %s from an earlier run", layers, self.folder)
        else:
            log.warning(
                "acegames: %d of %d layers are in %s from an earlier run; going on with the rest",
                found,
                layers,
                self.folder,
            )

    # -- the folder

    def _begin(self) -> None:
        new = self._make_run()
        if new:
            self._tell_of_others()
        self._lock = os.open(os.path.join(self.run, LOCK), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        locked = try_lock(self._lock)
        if locked is False:
            raise CheckpointError(
                f"{self.folder}: another process is solving the same game with this checkpoint folder; wait for it, or give another folder"
            )
        if locked is None:
            log.warning(
                "acegames: %s is on a file system without locks; let no two processes use it at once", self.folder
            )
        remove_leftovers(self.run, TEMPORARY)
        if self._own_manifest() != self.facts:
            if not new:
                log.warning("acegames: %s was missing or damaged; it is written anew", os.path.join(self.run, MANIFEST))
            with replacing(os.path.join(self.run, MANIFEST)) as file:
                file.write(json.dumps(self.facts, indent=1).encode())

    def _make_run(self) -> bool:
        """Make the folder of this solve; whether it is new."""
        try:
            os.mkdir(self.run)
        except FileExistsError:
            if stat.S_ISDIR(os.lstat(self.run).st_mode):
                return False
            raise CheckpointError(
                f"{self.run}: is a link or a file, must be a folder (links are not followed out of {self.folder}); remove it, or give "
                "another folder"
            ) from None
        sync_folder(self.folder)
        return True

    def _tell_of_others(self) -> None:
        """Say how what is in the folder differs from this solve; it is left alone, because it may be hours of work."""
        for name in other_runs(self.run):
            found: dict[str, Any] = {}
            with suppress(OSError, BadFile):
                found = _manifest_of(os.path.join(self.folder, name))
            other = (
                ", ".join(k for k in self.facts if found.get(k) != self.facts[k]) if found else "no readable manifest"
            )
            log.warning(
                "acegames: %s holds layers of another solve (%s), which cannot be used for this one and are left as they are; "
                "this one starts from the beginning. Delete %s if nobody needs it",
                self.folder,
                other,
                os.path.join(self.folder, name),
            )

    def _own_manifest(self) -> dict[str, Any]:
        with suppress(FileNotFoundError, BadFile):
            return _manifest_of(self.run)
        return {}

    def _unusable(self, error: OSError, needed: int = MANIFEST_LIMIT) -> CheckpointError:
        """The error that says what the system refuses, and what helps."""
        if error.errno == errno.EFBIG:
            return CheckpointError(
                f"{error.filename or self.folder}: the system allows no file of the {needed:,} bytes that the next layers take "
                f"({error.strerror}). The layers stored before are whole; raise that limit (ulimit -f) and run the same again to go on"
            )
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", -1)):
            free = ""
            with suppress(OSError):
                free = f", {shutil.disk_usage(self.folder).free:,} are free"
            return CheckpointError(
                f"{self.folder}: no room for the next layers ({error.strerror}): at least {needed:,} bytes are needed{free}. "
                "The layers stored before are whole; make room and run the same again to go on"
            )
        return CheckpointError(
            f"{error.filename or self.folder}: cannot be used for a checkpoint ({error.strerror or error}). The layers stored before are "
            "left as they are; mend that and run the same again, or give another folder"
        )

    # -- groups of layers

    def _groups(self) -> list[tuple[int, int, str]]:
        """Last time, first time and path of each file of layers, the last time first; names that are not ours are not looked at."""
        matches = filter(None, map(GROUP.fullmatch, os.listdir(self.run)))
        return sorted(((int(m[2]), int(m[1]), os.path.join(self.run, m[0])) for m in matches), reverse=True)

    def _read_all(self) -> dict[int, SolvedLayer]:
        """The layers of all files that are in order. Others are set aside, once every file could be read."""
        found: dict[int, SolvedLayer] = {}
        wrong = []
        for last, first, path in self._groups():
            try:
                layers = self._read(path, first, last)
                if layers[0].t in found:
                    raise BadFile(f"{path}: holds layers that another file holds too")
                found |= {x.t: x for x in layers}
            except BadFile as error:
                wrong.append((path, str(error)))
        for path, problem in wrong:
            log.warning("acegames: %s; set aside as %s", problem, os.path.basename(path) + ASIDE)
            os.replace(path, path + ASIDE)
        return found

    def _read(self, path: str, first: int, last: int) -> list[SolvedLayer]:
        """Check a file from end to end and map its layers; BadFile, naming it, where what it holds is wrong."""
        try:
            with _regular(path) as file:
                self._check_bytes(file, first, last)
                return list(self._mapped(file, first, last, check=True))
        except OSError as error:  # which says nothing about what it holds
            error.filename = path
            raise
        except BadFile as error:
            raise BadFile(f"{path}: {error}") from None

    def _check_bytes(self, file: Any, first: int, last: int) -> None:
        size = os.fstat(file.fileno()).st_size
        if not 0 <= first <= last < self._space.game.horizon or size < HEAD + CHECKSUM:
            raise BadFile("damaged: too short, or of times that the game has not")
        if file.read(HEAD) != self._head(first, last):
            raise BadFile("damaged, or of another solve: it does not begin as its name says")
        file.seek(0)
        checksum, left = hashlib.blake2b(digest_size=CHECKSUM), size - CHECKSUM
        while left:
            piece = file.read(min(CHUNK, left))
            if not piece:
                raise BadFile("truncated")
            checksum.update(piece)
            left -= len(piece)
        if file.read(CHECKSUM + 1) != checksum.digest():
            raise BadFile("damaged: its checksum is wrong")

    def _head(self, first: int, last: int) -> bytes:
        return MAGIC + self._digest + np.array([first, last], dtype=np.int64).tobytes()

    def _write(self) -> None:
        """Write the waiting layers to one file, and hold them mapped from there instead of in memory."""
        first, last = self._waiting[-1].t, self._waiting[0].t
        path = os.path.join(self.run, f"layers-{first:08d}-{last:08d}.bin")
        rows = np.array([_row(x) for x in self._waiting], dtype=np.int64)
        pieces = [array for x in self._waiting for array in _arrays(x)]
        needed = HEAD + rows.nbytes + CHECKSUM + sum(_padded(array.nbytes) for array in pieces)
        checksum = hashlib.blake2b(digest_size=CHECKSUM)
        try:
            with replacing(path) as file:
                for piece in (self._head(first, last), rows.tobytes(), *map(_bytes, pieces)):
                    for part in (piece, bytes(_padded(len(piece)) - len(piece))):
                        checksum.update(part)
                        file.write(part)
                file.write(checksum.digest())
            with _regular(path) as file:
                self._stored |= {x.t: x for x in self._mapped(file, first, last, check=False)}
        except OSError as error:
            self._full = True
            raise self._unusable(error, needed) from error
        self._waiting, self._size, self._written = [], 0, time.monotonic()

    def _mapped(self, file: Any, first: int, last: int, *, check: bool) -> Iterator[SolvedLayer]:
        """The layers of a file, from its last time down."""
        content = map_file(file.fileno())
        times, width, end = range(last, first - 1, -1), len(COLUMNS), len(content) - CHECKSUM
        if HEAD + len(times) * width * 8 > end:
            raise BadFile("damaged: it has no room for its layers")
        rows = np.frombuffer(content, np.int64, len(times) * width, HEAD).reshape(-1, width).tolist()
        at = HEAD + len(times) * width * 8
        for t, row in zip(times, rows, strict=True):
            self._check_row(t, row)
            parts = []
            for dtype, shape in _shapes(row, len(self._space.game.players)):
                size = math.prod(shape) * dtype.itemsize
                if at + size > end:
                    raise BadFile("damaged: its arrays are larger than the file")
                parts.append(np.frombuffer(content, dtype, size // dtype.itemsize, at).reshape(shape))
                at += _padded(size)
            solved = self._solved(t, row, parts)
            if check:
                self._check_layer(solved.layer)
            yield solved
        if at != end:
            raise BadFile("damaged: it is longer than its layers")

    def _check_row(self, t: int, row: list[int]) -> None:
        """Sizes must be those of the game's own layer, before anything is made of them."""
        here, game = self._space.layers[t], self._space.game
        assert here.cells is not None
        programs, repaired, pairs, mixed, entries, *widths = row
        most = max(int(np.diff(game.layer(t).row_ptr).max()), sum(map(len, game.actions)))
        fits = (
            pairs == answers(here.cells.number, here.total)
            and 0 <= mixed <= pairs
            and 0 <= entries <= mixed * most
            and 0 <= min(programs, repaired) <= max(programs, repaired) <= pairs
            and set(widths) <= {1, 2, 4}
        )
        if not fits:
            raise BadFile(f"damaged: its layer of time {t} is not one of this game")

    def _solved(self, t: int, row: list[int], parts: list[NDArray[Any]]) -> SolvedLayer:
        table = self._space.game.layer(t)
        *gross, values, mixed_prob, mixed_pair, mixed_ptr, code, mixed_row = parts
        rest = (code, values, mixed_pair, mixed_ptr, mixed_row, mixed_prob)
        layer = PolicyLayer(self._space.layers[t], table.row_ptr, table.action, *rest)
        return SolvedLayer(t, layer, row[0], row[1], gross[0] if gross else None)

    def _check_layer(self, layer: PolicyLayer) -> None:
        """Every index is in range, as in any other file."""
        game = self._space.game
        if self.concept.product:
            layer = replace(layer, offsets=action_offsets(game))
        check_layer(layer, game, self._space.dims)


def other_runs(run: str) -> list[str]:
    """Names of the solves that are in the same folder as this one."""
    folder, own = os.path.split(run)
    return sorted(name for name in os.listdir(folder) if RUN.fullmatch(name) and name != own)


def _manifest_of(run: str) -> dict[str, Any]:
    """What a manifest says; BadFile where that is nothing."""
    if not stat.S_ISDIR(os.lstat(run).st_mode):
        raise BadFile(f"{run}: not a folder")
    with _regular(os.path.join(run, MANIFEST)) as file:
        try:
            found = strict_json(file.read(MANIFEST_LIMIT))
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, dict):
        raise BadFile(f"{run}: no manifest")
    return found


def _row(solved: SolvedLayer) -> list[int]:
    layer = solved.layer
    sizes = [len(layer.code), len(layer.mixed_pair), len(layer.mixed_prob)]
    return [solved.programs, solved.repaired, *sizes, layer.code.itemsize, layer.mixed_row.itemsize]


def _arrays(solved: SolvedLayer) -> list[NDArray[Any]]:
    """The arrays that a file holds, in its order; boxes, cells and joint actions come from the game."""
    layer, gross = solved.layer, [] if solved.gross is None else [solved.gross]
    return [*gross, layer.values, layer.mixed_prob, layer.mixed_pair, layer.mixed_ptr, layer.code, layer.mixed_row]


def _shapes(row: list[int], players: int) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Type and shape of each of `_arrays`."""
    _, _, pairs, mixed, entries, code, wide = row
    real, whole = np.dtype(np.float64), np.dtype(np.int64)
    floats = [(real, (pairs, players))] * (1 + (players > 1)) + [(real, (entries,))]
    return [
        *floats,
        (whole, (mixed,)),
        (whole, (mixed + 1,)),
        (np.dtype(f"u{code}"), (pairs,)),
        (np.dtype(f"u{wide}"), (entries,)),
    ]


def _bytes(array: NDArray[Any]) -> Any:
    """The bytes themselves, not a copy."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _padded(size: int) -> int:
    """Arrays begin at multiples of eight bytes."""
    return -(-size // 8) * 8


def _regular(path: str) -> Any:
    """Open an ordinary file: no link out of the folder, and nothing that would never end or answer."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise BadFile("not an ordinary file, links included")
    return open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb")
