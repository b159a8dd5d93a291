"""The notebooks run without an error, show what they have stored, and say no number that no cell shows."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NAMED = {"ids": lambda path: path.stem}
VARIES = [
    (r"<svg.*?</svg>", "picture"),  # drawn by this or that version of matplotlib
    (r"done in [0-9.]+ s", "done"),
    (r"\b[0-9.]+e-[0-9]+", "tiny"),  # rounding
    (r"[0-9,]+ bytes", "bytes"),
    (r"[0-9.]+ MB", "MB"),
]


@pytest.fixture
def script(example):
    pytest.importorskip("pettingzoo")
    return example("run_notebooks")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def shown(cell):
    """What a cell shows, without what may differ from run to run."""
    texts = []
    for output in cell.get("outputs", ()):
        assert output["output_type"] != "error"
        data = output.get("data", {"text/plain": output.get("text")})
        text = {kind: "".join(said) for kind, said in data.items()}
        for pattern, word in VARIES:
            text = {kind: re.sub(pattern, word, said, flags=re.DOTALL) for kind, said in text.items()}
        texts.append(text)
    return texts


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """What runs cells, without a kernel."""
    pytest.importorskip("ipykernel")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()


def printed(outputs):
    """What a cell prints, and what its last line is worth; bars come and go where there is no kernel."""
    text = "".join("".join(x["text"]) for x in outputs if x.get("name") == "stdout")
    return shown({"outputs": [{"output_type": "stream", "text": text}]}), shown(
        {"outputs": [x for x in outputs if x["output_type"] == "execute_result"]}
    )


@pytest.mark.parametrize("path", NOTEBOOKS, **NAMED)
@pytest.mark.filterwarnings("default")
def test_cells_show_what_is_stored(path, shell, script):
    from IPython.utils.capture import capture_output

    for cell in read(path)["cells"]:
        if cell["cell_type"] == "code":
            values = []
            shell.display_trap.hook = values.append
            with capture_output() as caught:
                shell.run_cell("".join(cell["source"])).raise_error()
            data = [shell.display_formatter.format(value)[0] for value in values if value is not None]
            outputs = [{"output_type": "stream", "name": "stdout", "text": caught.stdout}]
            for x in data:  # whatever the checkout is called
                here = {kind: said.replace(f"{ROOT}/", "") for kind, said in x.items()}
                outputs.append({"output_type": "execute_result", "data": here})
            now = script.tidied({"cell_type": "code", "metadata": {}, "outputs": outputs})
            assert printed(cell["outputs"]) == printed(now["outputs"]), "".join(cell["source"])


@pytest.mark.parametrize(
    "path", [x if x.stem == "first_game" else pytest.param(x, marks=pytest.mark.slow) for x in NOTEBOOKS], **NAMED
)
@pytest.mark.filterwarnings("default")
def test_a_notebook_runs_and_shows_what_it_has_stored(path, script):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    stored, now = read(path)["cells"], script.executed(path)["cells"]
    for before, made in zip(stored, now, strict=True):
        assert shown(before) == shown(made), (
            f"{path.name}: `make notebooks` stores what is shown now\n{''.join(before['source'])}"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, **NAMED)
def test_a_notebook_is_stored_with_its_outputs_and_small(path):
    assert path.stat().st_size < 150_000
    code = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell["outputs"]) for cell in code) > len(code) / 2


NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w.]*\w)")


@pytest.mark.parametrize("path", NOTEBOOKS, **NAMED)
def test_numbers_in_the_text_are_shown_by_a_cell(path):
    cells = read(path)["cells"]
    code = "".join("".join(cell["source"]) + json.dumps(shown(cell)) for cell in cells if cell["cell_type"] == "code")
    for cell in cells:
        if cell["cell_type"] == "markdown":
            assert set(NUMBER.findall("".join(cell["source"]))) <= set(NUMBER.findall(code))


def test_the_page_on_notebooks_lists_them_all():
    page = (ROOT / "docs" / "howto" / "in-a-notebook.md").read_text()
    listed = re.findall(r"examples/notebooks/(\w+)\.ipynb", page)
    assert sorted(listed) == sorted(path.stem for path in NOTEBOOKS) and len(listed) == 4


def test_a_page_is_made_of_each(monkeypatch):
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pages = importlib.import_module("_notebooks")
    for path in NOTEBOOKS:
        page = pages.page_of(read(path), path.name)
        assert page.startswith("# ") and f"({path.name})" in page and page.count("<style>") <= 1
        assert page.count("```python") == sum(cell["cell_type"] == "code" for cell in read(path)["cells"])
