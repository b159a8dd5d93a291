"""The tests mirror the source: a folder for each room, and what several of them share in `support`."""

import ast
import itertools
from pathlib import Path

import pytest

import acegames
from collecting import nothing_built

TESTS = Path(__file__).parents[1]
ROOMS = {path.name for path in Path(acegames.__file__).parent.iterdir() if (path / "__init__.py").is_file()}
OTHERS = {"whole", "support", "samples", "corpus"}
FILES = sorted(TESTS.rglob("*.py"))


def test_every_folder_is_a_room():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir()} - {"__pycache__"}
    assert len(ROOMS) > 10
    assert folders <= ROOMS | OTHERS, folders - ROOMS - OTHERS


def test_every_room_has_tests():
    tested = {path.parent.name for path in FILES if path.name.startswith("test_")}
    assert tested == ROOMS | {"whole"}


def test_test_files_lie_in_their_folders_and_helpers_in_support():
    for path in FILES:
        folder = path.relative_to(TESTS).parts[0]
        assert path.name.startswith("test_") == (folder in ROOMS | {"whole"}) or path.name == "conftest.py", path


def imported(path):
    """The first part of the name of every module that a file imports, inside functions and in code for children too."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            words = node.value.split()
            modules |= {b for a, b in itertools.pairwise(words) if a in ("import", "from")}
    return {name.split(".")[0] for name in modules}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_test_file_is_imported(path):
    assert not imported(path) & {other.stem for other in FILES if other.name.startswith("test_")}


def test_a_game_that_is_built_while_tests_are_collected_is_refused():
    """`conftest.py` holds every file to this."""
    with nothing_built(), pytest.raises(AssertionError, match="use a fixture"):
        acegames.catalog.get("intersection")
    assert acegames.catalog.get("intersection").horizon
