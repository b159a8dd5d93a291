"""Optional packages: what is missing is named, with what to install; other errors pass through."""

from __future__ import annotations

import sys

import pytest

from acegames.errors import MissingExtra
from acegames.system.extras import optional


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A namespace `parts` with one part, and a package that misses something of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "parts" / "one").mkdir(parents=True)
    (tmp_path / "parts" / "one" / "__init__.py").write_text("here = 1")
    (tmp_path / "hurt.py").write_text("import gone")
    yield
    for name in [x for x in sys.modules if x.split(".")[0] in ("parts", "hurt")]:
        del sys.modules[name]


def test_what_is_there_is_imported(packages):
    assert optional("parts.one", "plots", "plot").here == 1


@pytest.mark.parametrize(
    ("module", "named"), [("nowhere", "nowhere"), ("nowhere.inside", "nowhere"), ("parts.two.inside", "parts.two")]
)
def test_what_is_missing_is_named(packages, module, named):
    """Also a part of a namespace that other packages have parts in."""
    with pytest.raises(MissingExtra, match=rf"^plots need {named}: pip install 'acegames\[plot\]'$"):
        optional(module, "plots", "plot")


def test_errors_inside_pass_through(packages):
    with pytest.raises(ModuleNotFoundError, match="gone"):
        optional("hurt", "plots", "plot")
