"""The checker of proofs as tests run it: loaded from its file, in this process, since starting one takes long."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "checker" / "ace_check.py"


def load(path):
    """A script that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


CHECK = load(CHECKER)


def check(path, *options):
    """Exit status and output of the checker."""
    before, sys.argv = sys.argv, [str(CHECKER), str(path), *options]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out):
            code = CHECK.main()
    finally:
        sys.argv = before
    out.flush()
    return SimpleNamespace(returncode=code, stdout=out.buffer.getvalue().decode())


def claimed(game, policy, concept, path):
    """Write a proof of any policy, with claims so wide that only the policy itself is judged."""
    from acegames import proofs

    listed = proofs.Situations.of(game, policy)
    n, m = len(game.players), len(game.constraints)
    wide = {"gain": [1e300] * n, "values": [[-1e300, 1e300]] * n, "spent": ["1000000"] * m, "excess": ["0"] * m}
    header = {"name": game.name, **proofs.header_of(game, concept, listed.rules), "claims": wide}
    with path.open("wb") as file:
        proofs._write(file, header, listed, None)
