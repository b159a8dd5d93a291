"""Compiles the kernels before the workers of pytest begin: each once, in two processes, instead of each in every worker."""

import os
import subprocess
import sys

BEGIN = """
import contextlib
import acegames as ace
from acegames.cli.bench import random_game
crossing = ace.catalog.get("intersection")
"""
SHARES = (
    """
ace.solve(crossing, ace.CCE(), engine=ace.LocalEngine(dense=True))
ace.Shield(crossing).start().joint()
ace.solve(ace.catalog.get("knapsack"), engine=ace.LocalEngine(dense=True))
with contextlib.suppress(ace.MissingExtra):
    ace.solve(crossing, ace.Nash(backend="quantecon"))
""",
    """
game = random_game(4, 8, 20)
solution = ace.solve(game, ace.Nash(), engine=ace.LocalEngine(dense=False))
ace.verify(game, solution.policy, solution.concept)
""",
)
"""What to run so that most kernels are compiled, in two shares of about equal length."""


def compile_kernels():
    """Run the shares at the same time, and return when both have ended."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    running = [
        subprocess.Popen([sys.executable, "-c", BEGIN + share], env=environment, stderr=subprocess.PIPE, text=True)
        for share in SHARES
    ]
    for process in running:
        _, said = process.communicate()
        assert process.returncode == 0, said
