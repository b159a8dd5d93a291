"""What is said of compiling is true: only what is not kept yet is announced, and once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = "import acegames as ace; ace.solve(ace.catalog.get('intersection'), ace.{}())"


def said(concept, folder):
    """What a fresh process says when it solves, with compiled code kept in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(concept)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )
    return done.stderr.count("compiling its")


@pytest.mark.slow
def test_each_kernel_is_announced_once(tmp_path):
    assert said("Nash", tmp_path) == 2  # the others, and those for Nash equilibria
    assert said("Nash", tmp_path) == 0
    assert said("CE", tmp_path) == 1  # the others are kept
    assert said("CE", tmp_path) == 0
