"""Build hooks of the documentation site: files outside docs/ that pages link to become part of it, where they are in the repository.

A page links to `../benchmarks/README.md`, which leads there in a checkout. In the site, whose pages are the files of docs/,
the same file is put at `benchmarks/README.md`, and the link is turned to it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

LINK = re.compile(r"(?<=\]\()([^)#:\s]+)")
"""Where a link or picture leads, without its anchor; addresses with a scheme are left out."""


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
    """Turn links to files outside docs/ to their places in the site."""
    docs = Path(config.docs_dir)
    here = page.file.src_uri
    if not (docs / here).is_file():
        return markdown

    def turned(link: re.Match[str]) -> str:
        (target,) = _targets(f"]({link[1]})", f"{docs.name}/{here}")
        outside = not target.startswith(f"{docs.name}/") and files.get_file_from_path(target)
        return os.path.relpath(target, posixpath.dirname(here) or ".") if outside else link[1]

    return LINK.sub(turned, markdown)


def _targets(markdown: str, page: str) -> Iterator[str]:
    """Where the links of a page lead, as paths in the repository."""
    for link in LINK.findall(markdown):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
