"""What `acegames export` does: policies and games to files that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from acegames.adapters import gambit
from acegames.errors import InvalidOption
from acegames.files import tables
from acegames.model.game import MarkovGame
from acegames.policy.policy import Policy

GAMES = (".yaml", ".yml", ".json", ".npz", ".nfg", ".csv", ".parquet")
NFG = ".nfg"


def export_file(
    source: str, output: Path, load: Callable[[str], MarkovGame], *, game: bool = False, outside: float | None = None
) -> tuple[str, int]:
    """Write what `source` names and return what it was, "policy" or "game", and the number of lines."""
    is_game = game or not Path(source).is_file() or Path(source).suffix.lower() in GAMES
    if output.suffix.lower() == NFG:
        if not is_game:
            raise InvalidOption(f"-o {output}: a policy is no normal-form game; --game writes the game of the solution")
        return "game", len(gambit.write_nfg(load(source), output, outside=outside).splitlines())
    if outside is not None:
        raise InvalidOption("--outside: goes with an output that ends in .nfg")
    if is_game:
        return "game", tables.write_game(load(source), output)
    return "policy", tables.write_policy(Policy.load(source), output)
