"""OpenSpiel's games and states in the words of a Markov game.

All players see a Markov game's state, and it tells everything that matters for the future.
OpenSpiel promises neither of a state's text (`str(state)`), whatever the information type of the
game: the board of Go does not tell which positions are forbidden, and that of 2048 not who moves.
Its history always does. So states are labelled by their history, except in the games of
`LABELLED_BY`, whose sources were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from acegames.errors import InvalidGame, InvalidOption
from acegames.model.game import Label
from acegames.model.user_functions import check_optional
from acegames.system.extras import optional

Key = Callable[[Any], Label]

END = "end"
"""The state after the last move: nothing happens there any more."""

WAIT = "-"
"""The only action of a player who is not to move."""

BY_TEXT = "breakthrough catch cliff_walking connect_four goofspiel markov_soccer nim oshi_zumo pig tic_tac_toe"
LABELLED_BY: dict[str, Key] = {"repeated_game": lambda state: "round", **dict.fromkeys(BY_TEXT.split(), str)}
"""Games in which less than the history, with the number of moves made, determines the future."""


def openspiel(module: str = "pyspiel") -> Any:
    """Return a module of OpenSpiel; MissingExtra without it."""
    optional("open_spiel", "OpenSpiel's games and policies", "openspiel")
    return optional(module, "OpenSpiel's games and policies", "openspiel")


def load(game: Any) -> Any:
    """Return an OpenSpiel game from itself or its name, as "tic_tac_toe" or
    "goofspiel(num_cards=4)".
    """
    pyspiel = openspiel()
    if isinstance(game, pyspiel.Game):
        return game
    if not isinstance(game, str):
        raise InvalidOption(f"game {game!r}: must be an OpenSpiel game or the name of one")
    if game.startswith("python_"):
        openspiel("open_spiel.python.games")  # registers them
    try:
        return pyspiel.load_game(game)
    except pyspiel.SpielError as error:
        reason = str(error).partition(" Available")[0]
        raise InvalidOption(f"game {game!r}: OpenSpiel does not load it: {reason}") from None


def check_kind(game: Any) -> None:
    """Raise InvalidGame for a game that is not a Markov game with listed chances."""
    kind, kinds = game.get_type(), openspiel().GameType
    if kind.dynamics == kinds.Dynamics.MEAN_FIELD:
        raise InvalidGame(f"{game}: a mean-field game has no finite list of players")
    if kind.information == kinds.Information.IMPERFECT_INFORMATION:
        rule = "must be one of perfect information (or simultaneous moves): all players see a Markov game's state"
        raise InvalidGame(f"{game}: an imperfect-information game, {rule}")
    if kind.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        raise InvalidGame(f"{game}: its chances are drawn inside and not listed, so they cannot be enumerated")


def label_rule(game: Any, key: Key | None) -> Key:
    """Return the function that labels the states of a game."""
    check_optional("key", key, ("state",))
    return key or LABELLED_BY.get(game.get_type().short_name, lambda state: str(state.history_str()) or "start")


def state_label(state: Any, key: Key | None = None) -> Label:
    """Return the label that `from_openspiel` gives to a state where somebody is to move, or that is
    over.

    Args:
        state: an OpenSpiel state.
        key: what `from_openspiel` was given.
    """
    if state.is_chance_node():
        raise _no_one_moves(state)
    return END if state.is_terminal() else label_rule(state.get_game(), key)(state)


def _no_one_moves(state: Any) -> InvalidOption:
    why = "is over" if state.is_terminal() else "waits for chance: apply one of state.chance_outcomes() first"
    return InvalidOption(f"state {str(state)!r:.100}: must be one where somebody is to move, but {why}")


def choices(state: Any) -> tuple[dict[str, int], ...]:
    """For each player the labels of its actions and OpenSpiel's numbers for them."""
    found = []
    for player in range(state.num_players()):
        moves = state.is_simultaneous_node() or state.current_player() == player
        legal = state.legal_actions(player) if moves else []
        names = [state.action_to_string(player, action) for action in legal]
        if len(set(names)) < len(names) or WAIT in names:
            names = [f"{name} ({action})" for name, action in zip(names, legal, strict=True)]
        # where others choose at once, OpenSpiel takes 0 for a player without a choice
        found.append(dict(zip(names, legal, strict=True)) or {WAIT: 0})
    return tuple(found)


def play(state: Any, action: Sequence[Label]) -> None:
    """Apply a joint action of the Markov game, one label per player, to an OpenSpiel state."""
    if state.is_chance_node() or state.is_terminal():
        raise _no_one_moves(state)
    known = choices(state)
    if len(action) != len(known) or any(a not in own for a, own in zip(action, known, strict=False)):
        raise InvalidOption(f"action {action!r}: must be one of these for each player: {list(map(list, known))!r}")
    apply(state, [own[str(a)] for a, own in zip(action, known, strict=True)])


def apply(state: Any, numbers: Sequence[int]) -> None:
    """Apply one action number per player."""
    if state.is_simultaneous_node():
        state.apply_actions(list(numbers))
    else:
        state.apply_action(numbers[state.current_player()])


def after_chance(*states: Any) -> Iterator[tuple[float, tuple[Any, ...]]]:
    """Yield the states after all chance moves, with their probabilities.

    Of several states, the first one's chances are played in all of them.
    """
    first = states[0]
    if first.is_terminal() or not first.is_chance_node():
        yield 1.0, states
        return
    for outcome, chance in first.chance_outcomes():
        if chance > 0:
            for further, leaves in after_chance(*(state.child(outcome) for state in states)):
                yield chance * further, leaves
