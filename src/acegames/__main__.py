"""The program `acegames`, which `python -m acegames` runs too.

Loading it takes a moment, in which Ctrl-C must end it as at any other time: without a traceback,
with exit code 130. `import acegames` loads nothing by itself, so `main` can see to that first.
"""

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Load the program and run it."""
    _open_streams()
    unchanged = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it is ignored
    if unchanged:
        signal.signal(signal.SIGINT, _leave)
    from acegames.cli import main as run

    if unchanged:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _open_streams() -> None:
    """Give the program all three standard streams, also where it is started with some closed.

    Otherwise a file that is opened later gets the free number, and what is told goes into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(nowhere, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _leave(*_: Any) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
