"""The blocks of a checkpoint's file, to look at them, to take some out and to damage them."""

from __future__ import annotations

from typing import NamedTuple

from acegames.system.container import read_block


class Group(NamedTuple):
    """A block of layers: its place in the file, where its data begins, and its times."""

    begin: int
    data: int
    end: int
    times: tuple[int, ...]


def groups(path):
    """The groups of layers in a file, in its order."""
    layers, at, size = [], 0, path.stat().st_size
    with open(path, "rb") as file:
        while at < size:
            block = read_block(file, at, str(path))
            if "layers" in block.header:
                layers.append(Group(at, block.begin, block.end, tuple(t for t, *_ in block.header["layers"])))
            at = block.end
    return layers


def remove(path, chosen):
    """Take groups out of a file."""
    content = path.read_bytes()
    for group in sorted(chosen, reverse=True):
        content = content[: group.begin] + content[group.end :]
    path.write_bytes(content)
