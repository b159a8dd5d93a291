"""Imports point one way, and `import acegames` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import acegames

ROOT = Path(acegames.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py"))


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imports(name):
    """Every module that a file imports, inside functions too; `from package import module` counts as the module."""
    found = set()
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in MODULES else base)
    return found


def ours(name):
    return {m for m in imports(name) if m.split(".")[0] == "acegames"}


def within(module, part):
    return module == part or module.startswith(f"{part}.")


def modules_of(part):
    found = [name for name in MODULES if within(name, part)]
    assert found, f"there is no {part}"
    return found


ALLOWED = {
    "acegames.errors": (),
    "acegames.numerics": (),
    "acegames.limits": (),
    "acegames.extras": ("errors",),
    "acegames.concepts": ("errors",),
    "acegames.version": (),
    "acegames.locks": (),
    "acegames.machine": (),
    "acegames.mapped_files": (),
    "acegames.store": ("errors", "limits", "locks", "machine"),
    "acegames.model": ("model", "errors", "extras", "limits", "numerics", "store"),
    "acegames.feasibility": ("feasibility", "model", "errors", "numerics", "kernels", "system", "machine"),
    "acegames.stage": ("stage", "concepts", "errors", "extras", "numerics", "kernels"),
    "acegames.system": ("system", "numerics"),
    "acegames.kernels": ("kernels", "system", "numerics"),
    "acegames.verify": ("verify", "model", "concepts", "errors", "numerics", "system"),
    "acegames.episode_costs": ("model", "numerics"),
    "acegames.simulate": ("episode_costs", "model", "concepts", "errors", "numerics"),
    "acegames.catalog": ("catalog", "model", "errors"),
    "acegames.tracker": ("feasibility", "model", "errors"),
    "acegames.guarantee": ("tracker", "model", "concepts"),
    "acegames.approximate": ("approximate", "tracker", "feasibility", "model", "errors"),
    "acegames.proof": ("verify", "solve", "store", "model", "errors"),
    "acegames.reduction": ("feasibility", "model", "errors", "numerics"),
    "acegames.counting": ("approximate", "reduction", "tracker", "feasibility", "model", "errors"),
    "acegames.shield": (
        "shield",
        "counting",
        "tracker",
        "feasibility",
        "model",
        "errors",
        "numerics",
        "machine",
        "kernels",
        "system",
    ),
    "acegames.plot": ("plot", "curve", "simulate", "policy", "feasibility", "model", "errors", "extras", "numerics"),
    "acegames.baselines.average": ("tracker", "model", "concepts", "errors", "numerics"),
    "acegames.adapters.openspiel": ("adapters.openspiel", "solve", "policy", "model", "errors", "extras", "numerics"),
    "acegames.adapters.pettingzoo": (
        "adapters",
        "learn",
        "shield",
        "tracker",
        "feasibility",
        "model",
        "errors",
        "extras",
    ),
    "acegames.adapters.gambit": ("solve", "report", "reduction", "feasibility", "model", "errors", "extras", "store"),
    "acegames.adapters.table_files": ("model", "errors", "extras", "limits", "store"),
    "acegames.adapters.policy_table": (
        *("adapters.table_files", "engines.reference", "policy", "product", "tracker", "approximate"),
        *("feasibility", "model", "concepts", "errors", "numerics"),
    ),
    "acegames.adapters.tables": (
        *("adapters.table_files", "adapters.policy_table", "solve", "policy", "model", "concepts"),
        *("errors", "extras", "limits", "store"),
    ),
    "acegames.loading": ("adapters.tables", "model"),
    "acegames.exporting": ("adapters", "policy", "model", "errors"),
    "acegames.learn": ("learn", "approximate", "tracker", "feasibility", "model", "errors", "numerics"),
    "acegames.adapters.episode": ("episode_costs", "model"),
    "acegames.adapters.observing": ("adapters.episode", "model", "errors"),
    "acegames.adapters.masks": ("adapters.episode", "shield", "model", "errors"),
    "acegames.adapters.play": ("adapters.episode", "adapters.observing", "adapters.masks", "model", "errors", "extras"),
    "acegames.adapters.showing": ("adapters.play", "plot", "model"),
    "acegames.adapters.spaces": ("adapters.play",),
    "acegames.adapters.gymnasium": ("adapters", "model", "errors", "extras"),
    "acegames.adapters.safety_gymnasium": ("adapters", "model", "errors", "extras"),
}


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_comes_before_it(part):
    for name in modules_of(part):
        wrong = {m for m in ours(name) if not any(within(m, f"acegames.{a}") for a in ALLOWED[part])}
        assert not wrong, f"{name} imports {sorted(wrong)}"


def test_only_the_program_imports_the_command_line():
    importers = {name for name in MODULES if any(within(m, "acegames.cli") for m in imports(name))}
    assert importers == {"acegames.__main__"}


def test_only_the_front_imports_the_front():
    """`import acegames` inside the package would make a circle; the command line is outside of it."""
    importers = {name for name in MODULES if "acegames" in imports(name)}
    assert importers <= {"acegames.cli", "acegames.terminal", "acegames.summary", "acegames.completion"}


def test_heavy_packages_are_imported_where_they_are_used():
    """At the top of a module only the standard library and numpy; what is optional or slow comes inside functions."""
    heavy = {"highspy", "scipy", "numba", "typer", "rich", "matplotlib"}
    heavy |= {
        "gymnasium",
        "pettingzoo",
        "pyspiel",
        "open_spiel",
        "pandas",
        "pyarrow",
        "pygambit",
        "nashpy",
        "quantecon",
    }
    own_place = {"acegames.cli": {"typer", "rich"}, "acegames.terminal": {"rich"}}
    own_place |= {"acegames.summary": {"rich"}, "acegames.text_plot": {"rich"}}
    own_place |= {"acegames.adapters.pettingzoo.shielding": {"pettingzoo", "gymnasium"}}  # loaded when it is used
    own_place |= {"acegames.adapters.spaces": {"gymnasium"}, "acegames.adapters.gymnasium.playing": {"gymnasium"}}
    own_place |= {"acegames.adapters.pettingzoo.playing": {"gymnasium", "pettingzoo"}}
    own_place |= {f"acegames.{name}": {"numba"} for name in ("system.compiled",)}
    for name, path in MODULES.items():
        top = {
            alias.split(".")[0]
            for node in ast.parse(path.read_text()).body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        }
        assert not (top & heavy) - own_place.get(name, set()), f"{name} imports {top & heavy} at the top"


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
    before, after = loaded("import numpy"), loaded("import acegames")
    assert "acegames" in after
    return after - before


def test_every_public_name_is_there():
    assert len(set(acegames.__all__)) == len(acegames.__all__)
    assert all(hasattr(acegames, name) for name in acegames.__all__)
