"""Games from any file that holds one."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from acegames.files.games import TABLE_FILES, load_game
from acegames.model.game import MarkovGame


def load(path: str | PathLike[str]) -> MarkovGame:
    """Read a game from a text file, an archive, a solution file, a numpy file of plain arrays, Gambit's `.nfg` (one step, no budgets),
    or a table that `acegames.adapters.tables.write_game` wrote (`.csv`, `.parquet`).

    Raises:
        BadFile: a damaged, truncated, foreign or newer file.
        InvalidGame: a text file or plain arrays that break a rule of the model, naming the place and the value.
    """
    if Path(path).suffix.lower() not in TABLE_FILES:
        return load_game(path)
    from acegames.files.tables import read_game

    return read_game(path)
