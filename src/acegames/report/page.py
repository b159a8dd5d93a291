"""One HTML file from data: template, style, scripts and the charting library, all inside.

Data goes in as JSON in a script element that is not executed, with every character escaped that
could end it; the scripts put it into the page as text, never as markup. Scripts that run are named
by their hashes, so that nothing else can.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

SCRIPTS = (
    *(
        "dom.js",
        "charts.js",
        "picture.js",
        "summary.js",
        "against.js",
        "situation.js",
        "why.js",
        "link.js",
        "search.js",
    ),
    *("map.js", "budgets.js", "episodes.js", "main.js"),
)
LIBRARY = "uplot.min.js"


def page(data: dict[str, Any]) -> bytes:
    """Return the page as UTF-8."""
    library, program = _asset(LIBRARY), '"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "title": html.escape("".join(c if c.isprintable() else " " for c in str(data["name"]))),
        "policy": _only(library, program),
        "style": _asset("uplot.min.css") + _asset("style.css"),
        "data": json_for_script(data),
        "licence": html.escape(_asset("uplot.LICENSE.txt").strip()),
        "library": library,
        "program": program,
    }
    pieces = _asset("page.html").split("%%")
    filled = [parts[piece] if k % 2 else piece for k, piece in enumerate(pieces)]
    return "".join(filled).encode("utf-8", "xmlcharrefreplace")


def json_for_script(data: Any) -> str:
    """JSON that can stand inside a script element: ASCII without `<`, `>` and `&`."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _only(*scripts: str) -> str:
    """Return a content security policy that lets these scripts run and nothing be loaded."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"


def _asset(name: str) -> str:
    return (files("acegames.report") / "assets" / name).read_text(encoding="utf-8")
