"""Compiles the kernels before the workers of pytest begin: each once, in two processes, instead of each in every worker."""

import os
import subprocess
import sys

QUANTECON = """
import contextlib
import acegames as ace
with contextlib.suppress(ace.MissingExtra):
    ace.solve(ace.catalog.get("intersection"), ace.Nash(backend="quantecon"))
"""


def compile_kernels():
    """Run both at the same time, and return when they have ended."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    running = [
        subprocess.Popen(
            [sys.executable, *words], env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for words in (("-m", "acegames", "warm"), ("-c", QUANTECON))
    ]
    for process in running:
        _, said = process.communicate()
        assert process.returncode == 0, said
