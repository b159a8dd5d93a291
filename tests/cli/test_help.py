"""Help for everything, and completion that is quick and offers what fits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import typer

import acegames as ace
from acegames.cli import EXAMPLES, app, game_options
from acegames.files import formats
from acegames.system import limits
from command_line import run

COMMANDS = typer.main.get_command(app).commands
PARAMETERS = [(verb, param) for verb, command in COMMANDS.items() for param in command.params]


@pytest.mark.parametrize(("verb", "param"), PARAMETERS, ids=lambda x: getattr(x, "name", x))
def test_every_option_and_argument_has_help(verb, param):
    assert param.help and param.help.endswith("."), f"{verb} {param.name}"


@pytest.mark.parametrize("verb", COMMANDS)
def test_help_names_no_types_of_python(verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "dumb")
    shown = run(verb, "--help").stdout
    assert run(verb, "-h").stdout == shown and "--json" in shown
    assert f"acegames {verb}" in shown.partition("Example:")[2]
    assert not [word for word in ("<bool>", "<str>", "<path>", "<int", "<float>", "<list") if word in shown]


def test_the_program_names_every_verb_and_its_version():
    shown = run("--help").stdout
    assert all(verb in shown for verb in COMMANDS) and len(COMMANDS) == len(EXAMPLES)
    assert "acegames" in run("--version").stdout
    assert run(code=None).exit_code in (0, 2)  # no words: the help


HEAVY = ("numpy", "numba", "highspy", "yaml", "acegames.front", "acegames.model.game")


@pytest.mark.parametrize(
    "words", ["acegames so", "acegames solve inter", "acegames verify s", "acegames check x --rou"]
)
def test_completion_loads_nothing_heavy(words, tmp_path):
    code = (
        "import sys, atexit; sys.argv = ['acegames']; from acegames.__main__ import main\n"
        f"atexit.register(lambda: print('LOADED', [m for m in {HEAVY!r} if m in sys.modules]))\nmain()"
    )
    reply = {"_ACEGAMES_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    (tmp_path / "s.ace").touch()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **reply},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert "LOADED []" in done.stdout, done.stdout + done.stderr
    assert done.stdout.split()[0] in ("solve", "intersection", "s.ace", "--rounding")


def test_completion_knows_the_catalog_and_the_formats():
    assert game_options.catalog_names() == sorted(ace.catalog.names())
    assert sorted(limits.GAMES) == sorted(formats.endings())


@pytest.mark.parametrize("verb", COMMANDS)
def test_narrow_help_names_every_option_in_full(verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = run(verb, "--help").stdout
    assert all(name in shown for param in COMMANDS[verb].params for name in param.opts if name.startswith("-"))
    assert "…" not in shown


def test_usage_names_what_is_required():
    shown = run("prove", "--help").stdout
    assert "acegames prove SOLUTION -o PROOF [OPTIONS]" in shown
    assert "acegames catalog [NAME] [OPTIONS]" in run("catalog", "--help").stdout
