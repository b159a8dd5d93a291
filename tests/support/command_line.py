"""The program in this process: what a verb prints, its answer in JSON, and what it refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from acegames.cli import app


def run(*words, code=0):
    """Run a command; anything but a clean exit with this code is a bug."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert "Traceback" not in result.output
    assert code is None or result.exit_code == code, result.output
    return result


def answer(*words, code=0):
    """The answer to a command with --json."""
    reply = run(*words, "--json", code=code).stdout
    return json.loads(reply, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def refused(*words, code=2):
    """One clear line on stderr, and nothing on stdout."""
    result = run(*words, code=code)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr
