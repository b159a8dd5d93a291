"""Build hook of the documentation site: the notebooks of examples/notebooks become pages, with what they stored.

A page links to `../examples/notebooks/first_game.ipynb`, which leads there in a checkout. In the site the link leads to the page
made of it, from which the notebook itself can be downloaded. This hook comes after `_hooks.py`, which reads the pages of docs/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

FOLDER = "examples/notebooks"
LINK = re.compile(rf"({FOLDER}/\w+)\.ipynb\)")
STYLE = re.compile(r"<style>.*?</style>", flags=re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook, and the notebook itself."""
    for path in sorted((Path(config.docs_dir).parent / FOLDER).glob("*.ipynb")):
        where = f"{FOLDER}/{path.name}"
        if not files.get_file_from_path(where):
            files.append(File.generated(config, where, abs_src_path=str(path)))
        content = page_of(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links to notebooks to their pages."""
    return LINK.sub(r"\1.md)", markdown)


def page_of(notebook: dict[str, Any], name: str) -> str:
    """A notebook as Markdown, under its own title."""
    title, *cells = notebook["cells"]
    head, _, rest = "".join(title["source"]).partition("\n")
    parts = [head, f"[Download this notebook]({name}){{ download }}", rest.strip()]
    for cell in cells:
        text = "".join(cell["source"])
        parts += [text] if cell["cell_type"] == "markdown" else [fenced("python", text), *map(result, cell["outputs"])]
    return with_one_style("\n\n".join(parts)) + "\n"


def result(output: dict[str, Any]) -> str:
    """What a cell showed: as HTML where there is any, else as text."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    html = "".join(data.get("text/html", ""))
    inside = "\n".join(lines(html)) if html else fenced("text", "".join(data["text/plain"]))
    return f'<div class="result" markdown>\n\n{inside}\n\n</div>'


def lines(html: str) -> Iterator[str]:
    """The lines of HTML that are not blank: a blank one would end it, in Markdown."""
    return (line for line in html.splitlines() if line.strip())


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def with_one_style(page: str) -> str:
    """Of a style that every output brings along, the first."""
    first = STYLE.search(page)
    return page if first is None else page[: first.end()] + STYLE.sub("", page[first.end() :])
