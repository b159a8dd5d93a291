"""The program several times in a row: every run is a process of its own, forked from one that has loaded what takes long."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from dataclasses import dataclass

PARENT = """
import contextlib, os, shlex, sys
import numba, numpy, rich.console, rich.progress, rich.table, typer, yaml
import acegames as ace  # but not its command line, which looks at the terminal when it is loaded
solution = ace.solve(ace.catalog.get("intersection"), engine=ace.LocalEngine(threads=1))
ace.verify(solution.game, solution.policy)
for line in sys.argv[1:]:
    if not (child := os.fork()):
        words = shlex.split(line)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            os.environ[name] = value
        sys.argv[1:] = words
        from acegames.__main__ import main
        main()
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # which is full, or closed
            os.write(stream, f"\\f{code}\\f".encode())
"""


@dataclass(frozen=True)
class Run:
    """How a run ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str


def command(lines):
    """What to start: lines are words of the program, after variables of the environment if there are any."""
    return [sys.executable, "-W", "error", "-c", PARENT, *lines]


def environment(**more):
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", **more}  # one that forks has no threads


def parts(written):
    """[(exit code, what was written)] of each run."""
    return [(int(code), said) for said, code in re.findall(r"(.*?)\f(-?\d+)\f", written, flags=re.DOTALL)]


def runs(*lines, stdout=subprocess.PIPE, **keywords):
    """Run the lines one after the other, with pipes for what they write, or another standard output."""
    options = {"env": environment(), "timeout": 300, "text": True, **keywords}
    if not hasattr(os, "fork"):
        return [_alone(line, stdout, options) for line in lines]
    done = subprocess.run(command(lines), stdout=stdout, stderr=subprocess.PIPE, **options)
    errors = parts(done.stderr)
    assert done.returncode == 0 and len(errors) == len(lines), done.stderr
    outputs = parts(done.stdout) if stdout == subprocess.PIPE else [(code, "") for code, _ in errors]
    return [Run(code, said, wrong) for (code, wrong), (_, said) in zip(errors, outputs, strict=True)]


def _alone(line, stdout, options):
    """A run where nothing can be forked."""
    words = line.split()
    variables = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, words))
    start = [sys.executable, "-W", "error", "-m", "acegames", *words[len(variables) :]]
    done = subprocess.run(start, stdout=stdout, stderr=subprocess.PIPE, **options | {"env": options["env"] | variables})
    return Run(done.returncode, done.stdout or "", done.stderr)
