"""`import acegames`: nothing is loaded before a name is used, and then all names are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import acegames as ace


def run(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_nothing_is_loaded_before_a_name_is_used():
    run("import acegames, sys; assert 'numpy' not in sys.modules; acegames.solve; assert 'numpy' in sys.modules")


def test_every_way_to_a_name():
    run("import acegames; assert set(acegames.__all__) <= set(dir(acegames))")
    run("from acegames import *; assert callable(solve) and catalog.names() and issubclass(BadFile, AceError)")
    run("import acegames.errors; assert acegames.MarkovGame.__module__ == 'acegames.model.game'")
    run("import acegames; assert acegames.errors.BadFile is acegames.BadFile")


def test_only_names_of_ours_are_shown():
    run(
        "import acegames, types\n"
        "strange = [name for name in dir(acegames) if name not in acegames.__all__ and not name.startswith('_')]\n"
        "assert all(isinstance(getattr(acegames, name), types.ModuleType) for name in strange), strange"
    )


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError, match="module 'acegames' has no attribute 'solv'"):
        ace.solv  # noqa: B018
    with pytest.raises(ImportError):
        from acegames import solv  # noqa: F401
