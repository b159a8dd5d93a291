"""The program `acegames`. Loading it takes a moment, in which Ctrl-C must end it as at any other time: without a traceback, with 130.

It is no part of the package, because importing that is what takes the moment.
"""

import os
import signal
from typing import Any


def main() -> None:
    """Load the program and run it."""
    unchanged = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a program in the background ignores it
    if unchanged:
        signal.signal(signal.SIGINT, _leave)
    from acegames.cli import main as run

    if unchanged:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(*_: Any) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
