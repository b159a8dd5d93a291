"""Pictures of the states of catalog games that have a place in space, as SVG.

`picture_of(game)` gives a function of the state, or None for games without one. What a picture
shows is read from the game itself, so that it is true whatever the parameters are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acegames.catalog import corridor, drones
from acegames.model.arrays import owners
from acegames.model.game import MarkovGame
from acegames.model.random_costs import RandomCost

Picture = Callable[[Any], str]
SIZE = 60  # of a cell
RED_AND_BLUE = ("#b3261e", "#1f5fa8")
OTHERS = ("#2a7d55", "#8a3d8f")
FONT = "font-family='system-ui, sans-serif' text-anchor='middle'"


def picture_of(game: MarkovGame) -> Picture | None:
    """Return a function that draws the states of this catalog game; None where there is none."""
    drawing = DRAWINGS.get(game.name or "")
    if drawing is None:
        return None
    try:
        draw = drawing(game)
        draw(game.states[0])
    except (TypeError, ValueError, IndexError, KeyError):  # another game that has the same name
        return None
    return draw


def _svg(width: float, height: float, *parts: str) -> str:
    frame = f"<rect width='{width}' height='{height}' rx='6' fill='#f7f7f4'/>"
    size = f"viewBox='0 0 {width} {height}' width='{width}' height='{height}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{frame}{''.join(parts)}</svg>"


def _cell(x: float, y: float, colour: str, label: str = "") -> str:
    """Return a cell of a grid, by its upper left corner."""
    box = f"<rect x='{x + 1}' y='{y + 1}' width='{SIZE - 2}' height='{SIZE - 2}' rx='3' fill='{colour}' stroke='#c9ced3'/>"
    return box + _text(x + SIZE / 2, y + SIZE - 6, label, 11)


def _text(x: float, y: float, text: str, size: int, colour: str = "#3c444c") -> str:
    return f"<text x='{x}' y='{y}' font-size='{size}' fill='{colour}' {FONT}>{text}</text>" if text else ""


def _robot(x: float, y: float, colour: str, letter: str, parcel: bool = False) -> str:
    """Return a round robot with a letter, with or without a parcel, by the corner of its cell."""
    cx, cy = x + SIZE / 2, y + SIZE / 2 - 5
    disc = f"<circle cx='{cx}' cy='{cy}' r='17' fill='{colour}'/>"
    box = f"<rect x='{cx + 6}' y='{cy - 20}' width='13' height='13' fill='#d9a441' stroke='#6b4e12'/>" if parcel else ""
    return disc + _text(cx, cy + 6, letter, 16, "#ffffff") + box


def _warehouse(game: MarkovGame) -> Picture:
    cells = {tuple(place[:2]) for state in _places(game) for place in state}
    width, height = (1 + max(cell[k] for cell in cells) for k in (0, 1))
    pads, rack, door = _pads(game), (width // 2, height - 1), (width // 2, 0)

    def draw(state: Any) -> str:
        parts = []
        for x, y in sorted(cells):
            name = "rack" if (x, y) == rack else "door" if (x, y) == door else "pad" if (x, y) in pads else ""
            colour = {"rack": "#efe3c8", "door": "#dcebdc", "pad": "#fbf3b4"}.get(name, "#ffffff")
            parts.append(_cell(SIZE * x, SIZE * (height - 1 - y), colour, name))
        for player, (x, y, parcel) in enumerate(state):
            parts.append(_robot(SIZE * x, SIZE * (height - 1 - y), RED_AND_BLUE[player], "RB"[player], bool(parcel)))
        return _svg(SIZE * width, SIZE * height, *parts)

    return draw


def _pads(game: MarkovGame) -> set[tuple[int, int]]:
    """Return the cells in which waiting fills a battery."""
    layer, pads = game.layer(0), set()
    state = owners(layer.row_ptr)
    for i, actions in enumerate(game.actions):
        fills = np.array([not isinstance(cost, RandomCost) and cost < 0 for cost in game.cost_values[i]])[
            layer.cost[layer.out_ptr[:-1], i]
        ]
        places = np.unique(state[fills & (layer.action[:, i] == actions.index("wait"))])
        pads |= {_places(game)[s][i][:2] for s in places.tolist()}
    return pads


def _places(game: MarkovGame) -> Sequence[Any]:
    """Return the states, which in this catalog game are tuples of places."""
    return game.states


def _drones(game: MarkovGame) -> Picture:
    def draw(state: Any) -> str:
        *places, waiting, pack = state
        parts = []
        for x in range(drones.WIDTH):
            for y in range(drones.HEIGHT):
                village = drones.VILLAGES.get((x, y), "")
                name = village if village in waiting else f"{village} ✓" if village else ""
                if (x, y) == drones.DEPOT:
                    name = "spare pack" if pack == "pack" else "depot"
                colour = "#dbe8f6" if y else "#efe9d8"
                parts.append(_cell(SIZE * x, SIZE * (drones.HEIGHT - 1 - y), colour, name))
        for player, (x, y) in enumerate(places):
            parts.append(_robot(SIZE * x, SIZE * (drones.HEIGHT - 1 - y), RED_AND_BLUE[player], "RB"[player]))
        return _svg(SIZE * drones.WIDTH, SIZE * drones.HEIGHT, *parts)

    return draw


def _corridor(game: MarkovGame) -> Picture:
    corner = {cell: (SIZE, 0) if cell == "bay" else (SIZE * int(cell), SIZE) for cell in corridor.DOORS}

    def draw(state: Any) -> str:
        goals = {cell: f"goal {'EW'[k]}" for k, cell in enumerate(corridor.GOALS)}
        names = {"bay": "bay", **goals}
        parts = [_cell(*at, "#ffffff", names.get(cell, "")) for cell, at in corner.items()]
        parts += [_robot(*corner[cell], OTHERS[player], "EW"[player]) for player, cell in enumerate(state)]
        return _svg(4 * SIZE, 2 * SIZE, *parts)

    return draw


def _intersection(game: MarkovGame) -> Picture:
    def draw(state: Any) -> str:
        road = {"dry": "#8d9399", "ice": "#b9d7ec"}[state]
        ways = (
            f"<rect x='70' width='40' height='180' fill='{road}'/><rect y='70' width='180' height='40' fill='{road}'/>"
        )
        flakes = "".join(
            _text(x, y, "❄", 18, "#ffffff") for x, y in ((90, 50), (90, 97), (40, 97), (140, 97), (90, 150))
        )
        north = _robot(60, 2, OTHERS[0], "N")
        east = _robot(118, 65, OTHERS[1], "E")
        word = _text(35, 165, "ice" if state == "ice" else "dry road", 13)
        return _svg(180, 180, ways, flakes if state == "ice" else "", north, east, word)

    return draw


DRAWINGS: dict[str, Callable[[MarkovGame], Picture]] = {
    "warehouse": _warehouse,
    "drones": _drones,
    "corridor": _corridor,
    "intersection": _intersection,
}
"""Games with a picture, by their names."""
