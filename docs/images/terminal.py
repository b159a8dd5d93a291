"""Make terminal.svg, the program in a terminal: `python docs/images/terminal.py`."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

from acegames.cli import app
from acegames.cli.screen import out

FILE = Path(__file__).resolve().with_name("terminal.svg")
COMMANDS = ("solve drones --concept ce -o drones.ace", "frontier partition --no-curve --most 3")


def main() -> None:
    """Run the commands twice, because the first run compiles, and draw what the second prints."""
    out.file, out.width = io.StringIO(), 80
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for out.record in (False, True):
            for command in COMMANDS:
                out.print(f"[bold green]$[/] [bold]acegames {command}[/]")
                app(command.split(), standalone_mode=False)
                out.print()
        os.chdir("/")
    FILE.write_text(out.export_svg(title="acegames"))


if __name__ == "__main__":
    main()
