"""A checkpoint folder that the nodes of a cluster may see, and that they know by a file in it."""

from __future__ import annotations

import logging
import os
import re
import secrets
from contextlib import suppress

from acegames.engines.checkpoint import Checkpoint, unwritable

log = logging.getLogger("acegames")


def sees(sign: str) -> bool:
    """Return whether this machine sees the folder of this file."""
    return os.path.exists(sign)


def remove_signs(run: str) -> None:
    """Remove the signs of solves of this folder that were killed."""
    folder, own = os.path.split(os.path.abspath(run))
    shape = re.compile(rf"{re.escape(own)}\.[0-9a-f]{{16}}")
    try:
        names = [name for name in os.listdir(folder) if shape.fullmatch(name)]
    except OSError as error:
        raise unwritable(folder, error) from None
    for name in names:
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))


class Folder:
    """A checkpoint folder that other machines may see; they know it by a file in it."""

    def __init__(self, store: Checkpoint) -> None:
        self.store, self.run = store, os.path.abspath(store.run)
        self.sign = f"{self.run}.{secrets.token_hex(8)}"
        try:
            with open(self.sign, "x"):
                pass
        except OSError as error:
            raise unwritable(self.sign, error) from None

    def file_of(self, t: int) -> str:
        """Return the file of a layer, as all machines name it."""
        return os.path.abspath(self.store.alone(t))

    def tell_unseen(self) -> None:
        """Say once that a machine does not see the folder."""
        if not self.told:
            self.told = True
            told = "acegames: not all machines see %s; layers that they cannot write there come to this process, which writes them"
            log.warning(told, os.path.dirname(self.run))

    told = False

    def close(self) -> None:
        """Remove that file."""
        with suppress(OSError):
            os.unlink(self.sign)
