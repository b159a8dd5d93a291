"""Imports point one way, and `import acegames` stays light."""

from __future__ import annotations

import ast
import functools
import inspect
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import acegames

ROOT = Path(acegames.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py"))


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def within(module, part):
    return module == part or module.startswith(f"{part}.")


def imported(node):
    """The modules that a statement imports; `from package import module` counts as the module."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute"
        return {x if (x := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names}
    return set()


@functools.cache
def tree_of(name):
    return ast.parse(MODULES[name].read_text())


@functools.cache
def nodes_of(name):
    return tuple(ast.walk(tree_of(name)))


def imports(name):
    """Every module that a file imports, inside functions too."""
    return {m for node in nodes_of(name) for m in imported(node)}


def room(module):
    """The folder below the package that a module lies in, or the module itself at the top."""
    return module.split(".")[1] if "." in module else ""


ORDER = (
    *("errors", "numerics", "concepts", "version", "system", "kernels", "model", "approximate", "safety", "stage"),
    *("policy", "engines", "solving", "promises", "verifier", "proofs"),
    *("shield", "learn", "baselines", "catalog", "plot", "adapters", "files", "report", "front", "cli"),
)
"""A room imports itself and rooms before it. `acegames` itself stands for `front`, its public names."""


def is_door(function):
    """Whether a function only opens a later room: a docstring, imports, one call or return, at most a warning before it."""
    rest = [x for x in function.body if not isinstance(x, (ast.ImportFrom, ast.Expr))]
    return len(function.body) <= 4 and (
        not rest or (len(rest) == 1 and rest[0] is function.body[-1] and isinstance(rest[0], ast.Return))
    )


def for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_but_doors(name):
    """What a module imports, at the top and inside functions, except through doors and for types."""
    apart = [x for x in nodes_of(name) if for_types(x) or (isinstance(x, ast.FunctionDef) and is_door(x))]
    through = {id(inner) for x in apart for inner in ast.walk(x)}
    return {m for node in nodes_of(name) if id(node) not in through for m in imported(node)}


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) in ORDER])
def test_imports_point_one_way(name):
    here = ORDER.index(room(name))
    for other in imports_but_doors(name):
        if within(other, "acegames"):
            assert other == "acegames" or room(other) in ORDER, other
            before = room(name) == "cli" if other == "acegames" else ORDER.index(room(other)) <= here
            assert before, f"{name} imports {other}"


APART = ("kernels", "safety", "stage", "engines", "approximate", "policy", "solving", "shield")


def test_the_verifier_shares_no_code_with_the_solver():
    """Not even what runs on a GPU: what is about CUDA is in `system`, which knows of neither."""
    shared = {(name, m) for name in MODULES if room(name) == "verifier" for m in imports(name) if room(m) in APART}
    assert not shared
    assert not {
        m for name in MODULES if room(name) == "system" for m in imports(name) if room(m) in (*APART, "verifier")
    }


def ancestors(module):
    """The packages that a module lies in, which are loaded before it."""
    parts = module.split(".")
    return {".".join(parts[:k]) for k in range(1, len(parts))}


def at_loading(statements):
    """The statements that run while a module is loaded, those of classes and branches too."""
    for node in statements:
        if for_types(node):
            yield from at_loading(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            yield from at_loading(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def loads(name):
    """What must be loaded before a module is, except the packages that it lies in, which are there already."""
    modules = set()
    for node in at_loading(tree_of(name).body):
        modules |= {m for m in imported(node) if m in MODULES}
        if isinstance(node, ast.ImportFrom) and node.module == "acegames":
            modules.add("acegames.front")  # which any name of the package loads
    modules |= {outer for m in modules for outer in ancestors(m)}
    return modules - ancestors(name) - {name}


def test_every_module_can_be_the_first_that_is_imported():
    """No module waits for itself. The tests run in one process, where what comes first is always the same."""
    TopologicalSorter({name: loads(name) for name in MODULES}).prepare()  # CycleError names the circle


def test_every_module_is_in_a_room():
    at_top = {name for name in MODULES if name.count(".") == 1 and MODULES[name].name != "__init__.py"}
    assert at_top == {f"acegames.{x}" for x in ("__main__", "errors", "numerics", "concepts", "version", "front")}
    assert {room(name) for name in MODULES} == {"", "__main__", *ORDER}


def test_no_module_has_the_name_of_a_public_function():
    functions = {name for name in acegames.__all__ if inspect.isfunction(getattr(acegames, name))}
    assert functions
    assert not {name for name in MODULES if name.rpartition(".")[2] in functions}


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def test_no_private_name_of_one_room_is_used_in_another():
    for name in MODULES:
        for node in nodes_of(name):
            if isinstance(node, ast.ImportFrom) and within(node.module or "", "acegames"):
                private = [x for x in [*node.module.split("."), *(a.name for a in node.names)] if is_private(x)]
                assert not private or room(node.module) == room(name), f"{name} imports {private} of {node.module}"


def test_private_attributes_stay_in_their_room():
    """An attribute with an underscore is used where a class or a module of the same room gives it a meaning."""
    meanings = {}
    for name in MODULES:
        for node in nodes_of(name):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                meanings.setdefault(room(name), set()).add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                meanings.setdefault(room(name), set()).add(node.attr)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                meanings.setdefault(room(name), set()).add(node.target.id)
    for name in MODULES:
        for node in nodes_of(name):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                elsewhere = any(node.attr in names for other, names in meanings.items() if other != room(name))
                assert node.attr in meanings.get(room(name), set()) or not elsewhere, f"{name} uses {node.attr}"


def test_only_the_program_imports_the_command_line():
    importers = {name for name in MODULES if any(within(m, "acegames.cli") for m in imports(name))}
    assert {name for name in importers if room(name) != "cli"} == {"acegames.__main__"}


def test_heavy_packages_are_imported_where_they_are_used():
    """At the top of a module only the standard library and numpy; what is optional or slow comes inside functions."""
    heavy = {"highspy", "scipy", "numba", "typer", "rich", "matplotlib", "gymnasium", "pettingzoo", "pyspiel"}
    heavy |= {"open_spiel", "pandas", "pyarrow", "pygambit", "nashpy", "quantecon", "ray", "llvmlite"}
    own_place = {name: {"typer", "rich"} for name in MODULES if room(name) == "cli"}  # loaded by the program alone
    used = ("environments.game_environments", "environments.guard", "gymnasium.gym_environments")  # loaded when used
    own_place |= {f"acegames.adapters.{name}": {"gymnasium"} for name in used}
    own_place |= {"acegames.adapters.pettingzoo.pz_environments": {"gymnasium", "pettingzoo"}}
    compiling = ("system.machine_code", "system.linking", "system.cuda_code")  # themselves imported inside functions
    compiling += tuple(f"kernels.{name}_llvm" for name in ("intrinsics", "lanes"))
    own_place |= {f"acegames.{name}": {"numba", "llvmlite"} for name in compiling}
    for name in MODULES:
        top = {module.split(".")[0] for node in tree_of(name).body for module in imported(node)}
        assert not (top & heavy) - own_place.get(name, set()), f"{name} imports {top & heavy} at the top"


# -- `import acegames`: nothing is loaded before a name is used, and then all names are there -----------------------------


def loaded(code):
    """The top-level packages in a fresh interpreter after running the code."""
    listing = "import sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["highspy", "scipy", "numba", "typer", "rich", "yaml", "matplotlib"])
def test_import_acegames_is_light(package, light):
    assert package not in light


@pytest.fixture(scope="module")
def light():
    before, after = loaded("import numpy"), loaded("from acegames import solve")
    assert "acegames" in after
    return after - before


def test_nothing_is_loaded_before_a_name_is_used():
    assert "numpy" not in loaded("import acegames") and "numpy" in loaded("import acegames; acegames.solve")


def run(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_every_way_to_a_name():
    run("from acegames import *; assert callable(solve) and catalog.names() and issubclass(BadFile, AceError)")
    run("import acegames.errors; assert acegames.MarkovGame.__module__ == 'acegames.model.game'")


def test_the_names_that_are_shown_are_ours():
    run(
        "import acegames, types\n"
        "assert set(acegames.__all__) <= set(dir(acegames))\n"
        "assert acegames.errors.BadFile is acegames.BadFile\n"
        "strange = [name for name in dir(acegames) if name not in acegames.__all__ and not name.startswith('_')]\n"
        "assert all(isinstance(getattr(acegames, name), types.ModuleType) for name in strange), strange"
    )


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError, match="module 'acegames' has no attribute 'solv'"):
        acegames.solv  # noqa: B018
    with pytest.raises(ImportError):
        from acegames import solv  # noqa: F401


def test_every_public_name_is_there():
    assert len(set(acegames.__all__)) == len(acegames.__all__)
    assert all(hasattr(acegames, name) for name in acegames.__all__)
