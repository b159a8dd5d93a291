"""One HTML file from data: template, style, scripts and the charting library, all inside.

Data goes in as JSON in a script element that is not executed, with every character escaped that
could end it; the scripts put it into the page as text, never as markup. Scripts that run are named
by their hashes, so that nothing else can.

Pictures of states are made by a function of the user and shown as images: each goes into the page
as a `data:` address of an image element. There a browser runs no script of an SVG and loads nothing
for it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import io
import json
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from acegames.catalog import picture_of
from acegames.errors import InvalidOption
from acegames.model.checks import check_known, unknown
from acegames.model.game import MarkovGame
from acegames.model.words import called

SCRIPTS = "dom charts picture summary against situation why link search map budgets episodes main"
"""The scripts of the page, in this order."""
LIBRARY = "uplot.min.js"


def page(data: dict[str, Any]) -> bytes:
    """Return the page as UTF-8."""
    library, program = _asset(LIBRARY), '"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS.split())
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
    """Return JSON that can stand inside a script element: ASCII without `<`, `>` and `&`."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _only(*scripts: str) -> str:
    """Return a content security policy that lets these scripts run and nothing be loaded."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"


def _asset(name: str) -> str:
    return (files("acegames.report") / "assets" / name).read_text(encoding="utf-8")


# -- pictures of states ----------------------------------------------------------------------------

Render = Callable[[Any], Any] | Mapping[Any, Any] | str | PathLike[str]
"""A function of the state, a mapping from states, or a folder of pictures named by states."""

LONGEST_ADDRESS = 900_000
"""Characters that all pictures of a page may fill."""
PNG = b"\x89PNG\r\n\x1a\n"
ENDINGS = (".svg", ".png")
KINDS = "must be text with an <svg> element, the bytes of an SVG or PNG file, a figure of matplotlib, or None"


class Pictures:
    """Pictures of states, each drawn once and only when it is asked for."""

    def __init__(self, game: MarkovGame, render: Render | None) -> None:
        self.game, self.drawn = game, dict[int, str | None]()
        self.draw = picture_of(game) if render is None else _function(render, game)

    def of(self, state: int) -> str | None:
        """Return the address of a state's picture, None where there is none."""
        if self.draw is None:
            return None
        if state not in self.drawn:
            self.drawn[state] = self._address(self.game.states[state])
        return self.drawn[state]

    def first(self, states: Iterable[int]) -> tuple[dict[str, str], bool]:
        """Return the addresses of the first states' pictures that fit, and whether some did not."""
        addresses: dict[str, str] = {}
        left = LONGEST_ADDRESS
        for state in states:
            address = self.of(state) if left > 0 else None
            if address is not None and len(address) <= left:
                addresses[str(state)] = address
                left -= len(address)
            elif address is not None or (left <= 0 and self.draw is not None):
                return addresses, True
        return addresses, False

    def _address(self, label: Any) -> str | None:
        assert self.draw is not None
        try:
            made = self.draw(label)
        except Exception as error:
            error.add_note(f"render: raised this for the state {called(label)!r:.80}")
            raise
        return None if made is None else _encoded(made, f"render: for the state {called(label)!r:.80}")


def _function(render: Render, game: MarkovGame) -> Callable[[Any], Any]:
    if isinstance(render, Mapping):
        _check_mapping(render, game)
        return render.get
    if isinstance(render, (str, PathLike)):
        return _from_folder(Path(fspath(render)), game)
    if not callable(render):
        raise InvalidOption(
            f"render: got {type(render).__name__}, must be a function of the state, a mapping from states, or a folder"
        )
    try:
        signature = inspect.signature(render)
    except ValueError:  # some built-in functions have none
        return render
    try:
        signature.bind("state")
    except TypeError:
        raise InvalidOption(f"render: takes {signature}, must be a function of the state alone") from None
    return render


def _check_mapping(render: Mapping[Any, Any], game: MarkovGame) -> None:
    """Raise InvalidOption for a mapping without pictures, or with a label of no state while a state
    has none.
    """
    if not render:
        raise InvalidOption("render: the mapping is empty; it must hold pictures by the labels of states")
    if not set(game.states) <= set(render):
        check_known("state", render, game.states, "render: ")


def _from_folder(folder: Path, game: MarkovGame) -> Callable[[Any], bytes | None]:
    """Return a function that finds pictures STATE.svg or STATE.png of a folder by the state's
    label.
    """
    if not folder.is_dir():
        raise InvalidOption(f"render: {folder} is no folder; it must hold files such as STATE.svg or STATE.png")
    files = {path.name: path for path in sorted(folder.iterdir()) if path.suffix in ENDINGS}
    if not files:
        raise InvalidOption(f"render: {folder} holds no pictures; their names must end in {' or '.join(ENDINGS)}")
    named = {file_name(label): label for label in game.states}
    if not any(path.stem in named for path in files.values()):
        stem = next(iter(files.values())).stem
        raise InvalidOption(f"render: {folder} holds no picture of a state: {unknown('state', stem, named)}")

    def read(label: Any) -> bytes | None:
        file = next((files[name] for e in ENDINGS if (name := file_name(label) + e) in files), None)
        return None if file is None else file.read_bytes()

    return read


def file_name(label: Any) -> str:
    """Return a label as the page shows it, with `_` for characters that many systems refuse in
    names.
    """
    return "".join("_" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in called(label))


def _saved(made: Any) -> bytes | None:
    """Return the PNG file of a figure of matplotlib, or of the figure of axes; None for anything
    else.
    """
    save = getattr(getattr(made, "figure", None), "savefig", None)
    if save is None:
        return None
    file = io.BytesIO()
    save(file, format="png")
    return file.getvalue()


def _encoded(made: Any, where: str) -> str:
    """Return a picture as a `data:` address."""
    if not isinstance(made, (str, bytes)):  # what notebooks can show, such as an image of Pillow
        shown = next((f() for way in ("_repr_svg_", "_repr_png_") if (f := getattr(made, way, None))), None)
        shown = _saved(made) if shown is None else shown
        if shown is None:
            raise InvalidOption(f"{where}: got {type(made).__name__}, {KINDS}")
        made = shown
    data = made.encode(errors="replace") if isinstance(made, str) else made
    kind = "png" if data.startswith(PNG) else "svg+xml" if b"<svg" in data else None
    if kind is None:
        raise InvalidOption(f"{where}: got {made[:20]!r}, {KINDS}")
    address = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    if len(address) > LONGEST_ADDRESS:
        raise InvalidOption(
            f"{where}: the picture has {len(data):,} bytes; at most {LONGEST_ADDRESS * 3 // 4:,} fit in a page"
        )
    return address
