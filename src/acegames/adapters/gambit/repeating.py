"""Repeated games in one line, from a table of payoffs in any usual form."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from acegames.adapters.gambit import Costs, StageGame, read_nfg
from acegames.errors import InvalidGame, InvalidOption
from acegames.model.checks import check_count, check_labels, check_name, counted, float_array, place, show
from acegames.model.from_functions import read_vector
from acegames.model.game import MarkovGame
from acegames.model.numbers import real
from acegames.model.user_functions import BUILDING, public

__all__ = ["repeat"]


@public("repeat", memory=BUILDING)
def repeat(stage_game: Any, times: int, *, cost: Costs = None, budget: Any = None, name: str = "") -> MarkovGame:
    """Build the game in which a stage game is played several times.

    Args:
        stage_game: {joint action: payoffs}, where payoffs are {player: number} or one number per
            player, and joint actions that are left out are not legal; or an array of payoffs
            (A1..An, N), such as [[(2, 2), (0, 3)], [(3, 0), (1, 1)]]; or an `.nfg` file; or a
            `MarkovGame` that never leaves its state.
        times: how often it is played.
        cost: what each joint action costs: {joint action: cost}, in which those left out cost
            nothing, or a function of the joint action, where a cost is a number, M numbers or
            {constraint: number}; or an array (A1..An) or (A1..An, M). A `MarkovGame` has its own.
        budget: for all rounds together: {constraint: budget}, or one number where there is one
            constraint; as in `MarkovGame.from_arrays`.
        name: a name for people.

    Raises:
        InvalidGame: naming the joint action, the value and the rule.
        BadFile: naming the line of the file and what was expected.

    Example:
        >>> import acegames as ace
        >>> hunt = {("stag", "stag"): (4, 4), ("stag", "hare"): (0, 3),
        ...         ("hare", "stag"): (3, 0), ("hare", "hare"): (2, 2)}
        >>> game = ace.repeat(hunt, 3, cost={("stag", "stag"): {"arrows": 1}}, budget={"arrows": 2})
        >>> game.horizon
        3
    """
    times = check_count("times", times, error=InvalidGame)
    if isinstance(stage_game, MarkovGame):
        if cost is not None:
            raise InvalidOption("cost: a MarkovGame has its own costs; leave it out, or give a table of payoffs")
        if len(stage_game.states) > 1:
            raise InvalidGame(
                f"stage_game: the game has {len(stage_game.states)} states, one that is repeated has one; "
                "game.with_horizon(...) plays it for longer"
            )
        repeated = stage_game.with_horizon(times, budget)
    elif isinstance(stage_game, (str, PathLike)):
        repeated = read_nfg(stage_game, cost=cost, budget=budget, horizon=times)
    else:
        table = _of_joint_actions(stage_game) if isinstance(stage_game, Mapping) else _of_array(stage_game)
        repeated = table.to_game(cost=cost, budget=budget, horizon=times)
    return repeated.with_name(name) if check_name(name) else repeated


def _of_joint_actions(payoffs: Mapping[Any, Any]) -> StageGame:
    """Return the stage game of {joint action: payoffs}."""
    if not payoffs:
        raise InvalidGame("stage_game: there is no joint action in it")
    example, first = next(iter(payoffs.items()))
    n = len(example) if isinstance(example, tuple) else 0
    for joint in payoffs:
        if not isinstance(joint, tuple) or not n or len(joint) != n:
            wanted = f"as {show(example)} has" if n else "one per player"
            raise InvalidGame(f"stage_game: the joint action {show(joint)} must be a tuple of actions, {wanted}")
    players = check_labels("players", first if isinstance(first, Mapping) else range(n))
    if len(players) != n:
        raise InvalidGame(
            f"{place(action=example)}: payoffs of {counted(len(players), 'player')}, {counted(n, 'action')}"
        )
    columns = zip(players, zip(*payoffs, strict=True), strict=True)
    actions = tuple(check_labels(f"actions of player {player!r}", dict.fromkeys(own)) for player, own in columns)
    legal = np.zeros(tuple(map(len, actions)), dtype=bool)
    worth = np.zeros((*legal.shape, n))
    for joint, entries in payoffs.items():
        at = tuple(own.index(label) for own, label in zip(actions, joint, strict=True))
        worth[at] = read_vector(entries, players, real, place(action=joint), "payoffs", "player")
        legal[at] = True
    return StageGame(players, actions, np.moveaxis(worth, -1, 0), legal)


def _of_array(payoffs: Any) -> StageGame:
    """Return the stage game of an array (A1..An, N), with numbers as labels."""
    table = float_array("stage_game", payoffs)
    n = table.ndim - 1
    if n < 1 or table.shape[-1] != n or 0 in table.shape:
        raise InvalidGame(
            f"stage_game: an array of payoffs has shape (A1..An, N), with an axis for the actions of each of N players and "
            f"their payoffs last; this one has shape {table.shape}"
        )
    actions = tuple(tuple(range(k)) for k in table.shape[:-1])
    return StageGame(tuple(range(n)), actions, np.moveaxis(table, -1, 0), np.ones(table.shape[:-1], dtype=bool))
