"""Compiles the kernels of usual games, so that nobody has to wait for them later."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from threading import Thread

import acegames as ace
from acegames.cli.bench import random_game
from acegames.system.atomic import one_process_at_a_time
from acegames.system.compiled import running
from acegames.system.machine import processors
from acegames.system.machine_code import background, can_start_python, python_process


def warm(*, helping: bool = False) -> None:
    """Compile the kernels that most games need, unless they are kept on disk already.

    One process of a user does so at a time. One that is helping another leaves it the processors,
    and ends with it.
    """
    if helping:
        background.helping = True
        Thread(target=_end_with_input, daemon=True).start()
        if hasattr(os, "nice"):
            os.nice(19)
    with one_process_at_a_time("kernels", wait=not helping) as alone:
        if helping and not alone:
            return
        other = None
        if processors() > 1 and not helping and can_start_python():
            with suppress(OSError):
                other = subprocess.Popen(**python_process(f"from {__name__} import correlated; correlated()"))
        nash_and_lists()
        correlated()
        if other is not None:
            other.wait()


def _end_with_input() -> None:
    """End this process once the one that began it is gone, which holds the other end of a pipe."""
    sys.stdin.buffer.read()
    os._exit(0)


def correlated() -> None:
    """Solve, verify and shield games whose situations lie in boxes, of one player and of two."""
    boxes, crossing = ace.LocalEngine(compiled=True, dense=True), ace.catalog.get("intersection")
    with running(compiled=True):
        for concept in (ace.CCE(), ace.CE("egalitarian")):
            solution = ace.solve(crossing, concept, engine=boxes)
        solution.simulate(episodes=10)
        ace.Shield(crossing).start().joint()
        ace.solve(ace.catalog.get("knapsack"), engine=boxes)


def nash_and_lists() -> None:
    """Solve and verify Nash equilibria of a game whose situations are listed, and find payoffs."""
    game, crossing = random_game(4, 8, 20), ace.catalog.get("intersection")
    with running(compiled=True):
        solution = ace.solve(game, ace.Nash(), engine=ace.LocalEngine(compiled=True, dense=False))
        ace.verify(game, solution.policy, solution.concept)
        ace.verify(crossing, ace.payoffs(crossing).policy(), best="welfare")
