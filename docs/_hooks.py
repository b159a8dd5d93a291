"""Build hooks of the documentation site.

- Files outside docs/ that pages link to become part of the site. A page links to
  `../benchmarks/README.md`, which leads there in a checkout. In the site, whose pages are the files
  of docs/, the same file is put at `benchmarks/README.md`, and the link is turned to it.
- The version of the package is shown in the header and in the footer.
- Formulas (`$...$` and `$$...$$`) become MathML, which browsers draw without a script or a font.
- The first use of a word of the glossary on a page becomes a link to its entry.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _glossary import entries, linked
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

LINK = re.compile(r"(?<=\]\()([^)#:\s]+)")
"""Where a link or picture leads, without its anchor; addresses with a scheme are left out."""

GLOSSARY = "glossary.md"


def on_config(config: Any) -> Any:
    """Show the version."""
    project = tomllib.loads((Path(config.docs_dir).parent / "pyproject.toml").read_text())["project"]
    config.site_name += f" {project['version']}"
    config.copyright = f"acegames {project['version']}, {project['license']} licence"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add every file outside docs/ that a page, or a file added so, links to."""
    docs = Path(config.docs_dir)
    root = docs.parent
    waiting = [(f.src_uri, docs) for f in files.documentation_pages()]
    while waiting:
        page, home = waiting.pop()
        for target in _targets((home / page).read_text(), page if home == root else f"{docs.name}/{page}"):
            if target.startswith(f"{docs.name}/") or not (root / target).is_file() or files.get_file_from_path(target):
                continue
            files.append(File.generated(config, target, abs_src_path=str(root / target)))
            if target.endswith(".md"):
                waiting.append((target, root))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links between docs/ and files outside of it to their places in the site."""
    docs = Path(config.docs_dir)
    here = page.file.src_uri
    source = f"{docs.name}/{here}" if (docs / here).is_file() else here

    def turned(link: re.Match[str]) -> str:
        (target,) = _targets(f"]({link[1]})", source)
        place = target.removeprefix(f"{docs.name}/")
        known = files.get_file_from_path(place)
        return os.path.relpath(place, posixpath.dirname(here) or ".") if known else link[1]

    return LINK.sub(turned, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Draw the formulas, and link the words of the glossary."""
    content = FORMULA.sub(lambda found: _mathml(found, page.file.src_uri), content)
    if page.file.src_uri == GLOSSARY:
        return content
    address = files.get_file_from_path(GLOSSARY).page.url
    path = os.path.relpath(address, posixpath.dirname(page.url) or ".")
    return linked(content, entries((Path(config.docs_dir) / GLOSSARY).read_text()), path)


def _targets(markdown: str, page: str) -> Iterator[str]:
    """Where the links of a page lead, as paths in the repository."""
    for link in LINK.findall(markdown):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)
"""A formula as pymdownx.arithmatex leaves it."""


def _mathml(found: re.Match[str], page: str) -> str:
    tag, latex = found[1], html.unescape(found[2]).strip()
    try:
        mathml = convert(latex, display="block" if tag == "div" else "inline")
    except Exception as problem:
        raise PluginError(f"{page}: {latex}: {problem!r}") from problem
    if "\\" in mathml:  # the converter passes on what it does not know
        raise PluginError(f"{page}: {latex}: not understood by latex2mathml")
    return f'<{tag} class="formula">{mathml}</{tag}>'
