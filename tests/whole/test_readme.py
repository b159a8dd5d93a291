"""Everything printed in the README runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from acegames.cli import app

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [body for language, body in BLOCKS if language == "python"]
COMMANDS = re.findall(
    r"^acegames .*$", "".join(body for language, body in BLOCKS if language == "console"), flags=re.MULTILINE
)


def test_there_is_something_to_run():
    assert len(PYTHON) >= 3
    assert {shlex.split(line)[1] for line in COMMANDS} >= {
        *["catalog", "check", "frontier", "solve", "verify", "simulate"]
    }


def test_python_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "readme"}
    for number, block in enumerate(PYTHON):
        exec(compile(block, f"README.md, python block {number}", "exec"), namespace)
    printed = capsys.readouterr().out
    promised = re.findall(r"^print\(.*?\)  # ([\[({].*[\])}])(?:: |$)", "\n".join(PYTHON), flags=re.MULTILINE)
    assert "[15.75782773 15.75782773]" in promised and "[[False, True], [True, True]]" in promised
    promised += [body for language, body in BLOCKS if language == "text"]
    assert "(largest cumulative cost: risk 2 of 2)" in promised[-1]
    for shown in promised:
        assert shown in printed, f"the README promises {shown}"
    assert re.search(r"^\[.*\] 0$", printed, flags=re.MULTILINE), "no budget is violated"


def test_console_block_runs_in_order(tmp_path, monkeypatch):
    """In one process, where a warning is an error; `test_cli.py` starts the program itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for line in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}"
        assert done.stdout.strip(), line
        assert done.stderr == "", line
