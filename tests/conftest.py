"""Collect without solving anything, and compile the kernels once before anything is tested, so that no test meets the notice about it."""

import importlib
import sys
from pathlib import Path

import pytest

import acegames as ace
import shares
import two_nodes as cluster
from acegames.safety import space as spaces
from acegames.system import compiled
from collecting import nothing_built
from kernels_first import compile_kernels
from surroundings import settle

settle()


def pytest_configure(config):
    """Before any test file is imported, whose decorators ask for it."""
    shares.quick = "not slow" in config.option.markexpr


def pytest_sessionstart(session):
    """With several workers, the one that starts them compiles for all."""
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        compile_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    with nothing_built():
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    """Compile also what is so small that it would be interpreted."""
    compiled.LARGE = 0
    for concept in (ace.CCE(), ace.Nash()):
        ace.solve(ace.catalog.get("intersection"), concept)


@pytest.fixture(params=["dense", "sparse"])
def either_way(request, monkeypatch):
    """Store cells of layers in both ways."""
    if request.param == "sparse":
        monkeypatch.setattr(spaces, "_prefer_dense", lambda _: False)


@pytest.fixture
def example(monkeypatch):
    """Import a script of the examples, anew in every test."""
    folder, before = Path(__file__).parents[1] / "examples", set(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def two_nodes():
    """The address of a Ray cluster of two nodes, one for all tests that ask for it."""
    return cluster.address()


@pytest.fixture
def start_cluster():
    """Starts clusters of a test's own, and ends them after it."""
    import ray

    cluster.end()
    begun = []

    def one(*arguments, **options):
        begun.append(cluster.start(*arguments, **options))
        return begun[-1]

    yield one
    ray.shutdown()
    for each in begun:
        each.shutdown()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    cluster.together(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if cluster.asks(item) and not cluster.asks(nextitem):
        cluster.end()


def pytest_terminal_summary(terminalreporter):
    """Say plainly when the browser tests did not run."""
    from chromium import MISSING

    skipped = sum(MISSING in str(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.write_line(f"{skipped} browser tests of the explorer were skipped: {MISSING}", yellow=True)
