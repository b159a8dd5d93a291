"""Every page of the documentation: what it shows runs and prints what it says, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import acegames

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference" / "python.md"
PAGES = sorted(DOCS.rglob("*.md"))
NAMED = {"ids": lambda page: str(page.relative_to(DOCS))}

BLOCK = re.compile(r"^(?:<!-- example: (\S+) -->\n)?```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
"""A code block with its language; an example is also a file that later blocks may read."""


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_what_a_page_shows_runs_in_order_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(), page.name)


def run_page(text, name):
    """Run the blocks of a page. A text block right behind one that runs is what it prints, `...` standing for anything."""
    namespace = {"__name__": "docs"}
    printed, end = None, 0
    for block in BLOCK.finditer(text):
        file, language, body = block.groups()
        if text[end : block.start()].strip():
            printed = None
        end = block.end()
        if file:
            Path(file).write_text(body)
        if language == "python":
            printed = run_python(body, name, namespace)
        elif language == "console":
            printed = "".join(map(run_command, body.splitlines()))
        elif language == "text" and printed is not None:
            assert says(body, printed), f"{name} shows\n{body}\nbut this is printed:\n{printed}"


def run_python(body, name, namespace):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, name, "exec"), namespace)
    return out.getvalue()


def run_command(line):
    from typer.testing import CliRunner

    from acegames.cli import app

    words = shlex.split(line, comments=True)
    assert words[0] == "acegames", f"console blocks are run: {line}"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.output


def says(shown, printed):
    pattern = ".*".join(map(re.escape, shown.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


def test_a_page_that_is_wrong_is_noticed():
    right = "```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n"
    run_page(right, "right")
    with pytest.raises(AssertionError, match="but this is printed"):
        run_page(right.replace("42", "43"), "wrong")
    with pytest.raises(AssertionError, match="nothing_of_this_name"):
        run_page("```console\nacegames solve nothing_of_this_name\n```\n", "wrong")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "wrong")


LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_links_lead_somewhere(page):
    for link in LINK.findall(without_code(page.read_text())):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {link}"
        assert file.is_relative_to(ROOT), f"{page.name}: {link} leads out of the repository"
        if anchor and file != REFERENCE:  # its anchors are made from docstrings
            assert anchor in anchors(file), f"{page.name}: {link}"


ITEM = re.compile(r"([-*]|\d+\.) ")


def swallowed_items(text):
    """List items right behind an indented paragraph, of which Markdown makes a part of that paragraph."""
    for part in BLOCK.sub("", text).split("\n\n"):
        first, *rest = part.split("\n")
        if first.startswith("    ") and not ITEM.match(first.lstrip()):
            yield from filter(ITEM.match, rest)


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_list_items_are_items(page):
    assert list(swallowed_items(page.read_text())) == []


def test_an_item_that_is_swallowed_is_noticed():
    right = "* one\n\n    more of it\n\n* two\n"
    assert list(swallowed_items(right)) == []
    assert list(swallowed_items(right.replace("it\n\n*", "it\n*"))) == ["* two"]


def without_code(text):
    return re.sub(r"`[^`\n]+`", "", BLOCK.sub("", text))


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def nav_files(entry):
    if isinstance(entry, str):
        return [entry]
    return [file for part in (entry if isinstance(entry, list) else entry.values()) for file in nav_files(part)]


def test_the_navigation_leads_to_every_page():
    listed = nav_files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(listed) == len(set(listed))
    sources = [[DOCS / file, ROOT / file, (ROOT / file).with_suffix(".ipynb")] for file in listed]
    missing = [file for file, there in zip(listed, sources, strict=True) if not any(x.is_file() for x in there)]
    assert missing == []
    own = {str(page.relative_to(DOCS)) for page in PAGES}
    assert sorted(own - set(listed)) == [], "pages that the navigation in mkdocs.yml does not list"


def test_the_reference_lists_every_public_name():
    listed = re.findall(r"^::: acegames\.(\w+)$", REFERENCE.read_text(), flags=re.MULTILINE)
    assert listed == acegames.__all__


NAMED_FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")


@pytest.mark.parametrize(
    "page", [*(DOCS / "inside").glob("*.md"), ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_files_that_the_map_names_exist(page):
    """A path begins at the root of the repository or at that of the package."""
    homes, named = (ROOT, ROOT / "src" / "acegames"), set(NAMED_FILE.findall(page.read_text()))
    assert sorted(x for x in named if not any((home / x).is_file() for home in homes)) == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="pip install '.[docs]' to build the site")
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]*)"', page.read_text())
        fetched += re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(https?:[^"]*)"', page.read_text())
        assert fetched == [], page.name
    assert (tmp_path / "benchmarks" / "growth.png").exists()
    assert "solve" in (tmp_path / "search" / "search_index.js").read_text()
