"""OpenSpiel's games as Markov games, by listing their states move by move.

Step t is the t-th move, one player's or all players' at once. Players who are not to move have one
action, `-`. Chance moves are folded into the probabilities of the next state. The end of the game
is one state that is never left. The reward of a move is the change of `state.returns()`, which
OpenSpiel defines as the sum of the rewards so far.

All players see a Markov game's state, and it tells everything that matters for the future.
OpenSpiel promises neither of a state's text (`str(state)`), whatever the information type of the
game: the board of Go does not tell which positions are forbidden, and that of 2048 not who moves.
Its history always does. So states are labelled by their history, except in the games of
`LABELLED_BY`, whose sources were read.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from acegames.errors import InvalidGame, InvalidOption, TooLarge
from acegames.learn.known import per_player
from acegames.model.budgets import warn_of_costless
from acegames.model.checks import check_horizon, plain_label
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import is_scalar
from acegames.model.random_costs import is_distribution
from acegames.model.user_functions import check_optional
from acegames.numerics import TIE
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
    """Return an OpenSpiel game from itself or its name, as "goofspiel(num_cards=4)"."""
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
    """Return the label that `from_openspiel` gives to a state: somebody moves there, or it is over.

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
    """Return for each player the labels of its actions and OpenSpiel's numbers for them."""
    numbers = []
    for player in range(state.num_players()):
        moves = state.is_simultaneous_node() or state.current_player() == player
        legal = state.legal_actions(player) if moves else []
        names = [state.action_to_string(player, action) for action in legal]
        if len(set(names)) < len(names) or WAIT in names:
            names = [f"{name} ({action})" for name, action in zip(names, legal, strict=True)]
        # where others choose at once, OpenSpiel takes 0 for a player without a choice
        numbers.append(dict(zip(names, legal, strict=True)) or {WAIT: 0})
    return tuple(numbers)


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


# -- states, listed move by move

Cost = Callable[[Any, JointAction, Any], Any]
Outcomes = list[tuple[float, Label, Any, tuple[float, ...]]]
Moves = dict[JointAction, Outcomes]
"""The outcomes of each joint action of one state, with their rewards."""

MOST_STATES = 1_000_000
WAYS_COMPARED = 2
"""Histories with the same label that are compared; comparing all of them can take far too long."""


def from_openspiel(
    game: Any,
    *,
    cost: Cost | None = None,
    budget: Any = None,
    horizon: int | None = None,
    key: Key | None = None,
    limit: int = MOST_STATES,
) -> MarkovGame:
    """Build a Markov game from an OpenSpiel game of perfect information or with simultaneous moves.

    Every state that can occur is visited: time and memory grow with their number times the joint
    actions of each.

    Args:
        game: an OpenSpiel game or its name, as "tic_tac_toe" or "goofspiel(num_cards=4)"; see also
            `repeated`.
        cost: `cost(state, action, after)` gives the cost of a move, as in
            `MarkovGame.from_functions`: the OpenSpiel state before it, the joint action (labels,
            `-` for players who are not to move), and the OpenSpiel state in which somebody is to
            move next. It may depend on what the label of the state tells (see `key`) and on what
            the move does.
        budget: as in `MarkovGame.from_functions`; leave out, with `cost`, for a game without
            budgets.
        horizon: number of moves; a game that is not over then stops, and nothing more is paid. By
            default that of the longest play.
        key: `key(state)` labels a state. It must tell, with the number of moves made, everything
            about the future, costs included: two states with the same label at the same time are
            one. By default what is known to suffice for the game (often the board, `str`), else
            the whole history, which always suffices.
        limit: the largest number of states, those of different times counted apart.

    Raises:
        InvalidGame: the game has hidden information, chances that are not listed, or is a
            mean-field game; or states with the same label were found to differ.
        TooLarge: there are more states than `limit`.
        MissingExtra: OpenSpiel is not installed.
    """
    game = load(game)
    check_kind(game)
    if (cost is None) != (budget is None):
        raise InvalidOption("from_openspiel: give cost and budget together, or neither for a game without budgets")
    check_optional("cost", cost, ("state", "action", "after"))
    trusted = key is None and cost is None
    walk = _StateLister(game, cost, label_rule(game, key), limit, ways=1 if trusted else WAYS_COMPARED)
    stages = walk.stages(None if horizon is None else check_horizon(horizon))
    markov_game = MarkovGame.from_functions(
        players=range(game.num_players()),
        actions=lambda t, state: per_player(stages[t][state]),
        outcomes=lambda t, state, action: stages[t][state][action],
        budget=budget,
        horizon=len(stages),
        initial=walk.initial,
        name=str(game),
    )
    warn_of_costless(markov_game)
    return markov_game


def repeated(game: Any, times: int) -> Any:
    """Return an OpenSpiel game that plays a matrix game several times; all see all moves.

    As a Markov game it has one state and `times` steps. Its information states tell the whole
    history.
    """
    stage, pyspiel = load(game), openspiel()
    if stage.get_type().information != pyspiel.GameType.Information.ONE_SHOT:
        raise InvalidOption(f"repeated: {stage} is no matrix game; only those are played again from the start")
    return pyspiel.create_repeated_game(stage, {"num_repetitions": check_horizon(times), "enable_infostate": True})


class _StateLister:
    """Lists the states of a game, move by move."""

    def __init__(self, game: Any, cost: Cost | None, key: Key, limit: int, ways: int) -> None:
        self.game, self.cost, self.key, self.limit, self.ways = game, cost, key, limit, ways
        self.count = 0
        self.pays_at_end = game.get_type().reward_model == openspiel().GameType.RewardModel.TERMINAL
        self.first: dict[Label, list[Any]] = {}
        self.initial: dict[Label, float] = {}
        for chance, (state,) in after_chance(game.new_initial_state()):
            if any(state.returns()):
                raise InvalidGame(f"{game}: pays {state.returns()} before the first move, which a Markov game cannot")
            label = self._arrive(self.first, state)
            self.initial[label] = self.initial.get(label, 0.0) + chance
        self.nothing = (0.0,) * game.num_players()

    def stages(self, horizon: int | None) -> list[dict[Label, Moves]]:
        """Return the states that can occur at each time, until the end or the horizon."""
        layers: list[dict[Label, Moves]] = []
        here = self.first
        while len(layers) < horizon if horizon is not None else set(here) - {END}:
            there: dict[Label, list[Any]] = {}
            layers.append({label: self._stage(len(layers), label, ways, there) for label, ways in here.items()})
            here = there
        if not layers:
            raise InvalidGame(f"{self.game}: is over before the first move")
        return layers

    def _label(self, state: Any) -> Label:
        if state.is_terminal():
            return END
        label = plain_label("key", self.key(state))
        if label == END:
            where = f"at the history {state.history_str()!r}"
            raise InvalidOption(f"key: gives {END!r} {where}; that is the label of the end")
        return label

    def _arrive(self, there: dict[Label, list[Any]], state: Any) -> Label:
        """Note that a state can come next; return its label."""
        label = self._label(state)
        if label not in there:
            there[label] = []
            self.count += label != END
            if self.count > self.limit:
                raise TooLarge(
                    f"{self.game}: more than {self.limit:,} states within {state.move_number()} moves; choose a smaller "
                    "game or horizon, a key that tells fewer of them apart (see from_openspiel), or a larger limit"
                )
        if len(there[label]) < self.ways:
            there[label].append(state)
        return label

    def _stage(self, t: int, label: Label, ways: list[Any], there: dict[Label, list[Any]]) -> Moves:
        if label == END:
            there.setdefault(END, ways)
            return {(WAIT,) * len(self.nothing): [(1.0, END, {}, self.nothing)]}
        stage = self._read(ways[0], there)  # notes the next states as well
        for other in ways[1:]:
            if not _equal_moves(stage, self._read(other, None)):
                histories = f"the histories {ways[0].history_str()!r} and {other.history_str()!r}"
                rule = "their moves, rewards, costs or next states differ; give a key that tells them apart"
                raise InvalidGame(f"{place(t, label)}: {histories} have this label, but {rule}")
        return stage

    def _read(self, state: Any, there: dict[Label, list[Any]] | None) -> Moves:
        known = choices(state)
        moves: Moves = {}
        for action in itertools.product(*known):
            moved = state.clone()
            apply(moved, [own[a] for own, a in zip(known, action, strict=True)])
            outcomes: Outcomes = []
            for chance, (after,) in after_chance(moved):
                label = self._label(after) if there is None else self._arrive(there, after)
                cost = {} if self.cost is None else self.cost(state, action, after)
                outcomes.append((chance, label, cost, self._gains(state, after)))
            moves[action] = outcomes
        return moves

    def _gains(self, state: Any, after: Any) -> tuple[float, ...]:
        """Return each player's reward between two states."""
        if self.pays_at_end:
            return tuple(after.returns()) if after.is_terminal() else self.nothing
        changes = [new - old for old, new in zip(state.returns(), after.returns(), strict=True)]
        # `rewards` says the same without the rounding of a sum, unless chance has paid in between
        return tuple(paid if abs(paid - x) <= TIE else x for paid, x in zip(after.rewards(), changes, strict=True))


def _equal_moves(one: Moves, other: Moves) -> bool:
    """Return whether two states have the same moves, up to the rounding of sums of floats."""
    close = partial(math.isclose, rel_tol=TIE, abs_tol=TIE)
    return list(one) == list(other) and all(
        _merged(outcomes) == _merged(other[action]) and all(map(close, _mean(outcomes), _mean(other[action])))
        for action, outcomes in one.items()
    )


def _mean(outcomes: Outcomes) -> list[float]:
    """Return the expected rewards of a move."""
    return [math.fsum(own) for own in zip(*([p * x for x in paid] for p, _, _, paid in outcomes), strict=True)]


def _merged(outcomes: Outcomes) -> dict[tuple[Label, str], float]:
    """Return the probability of each next state and cost, to nine digits."""
    chances: dict[tuple[Label, str], float] = defaultdict(float)
    for chance, label, cost, _ in outcomes:
        chances[label, _cost_text(cost)] += chance
    return {what: round(chance, 9) for what, chance in chances.items()}


def _cost_text(cost: Any) -> str:
    """Return a cost as text, to be compared; all distributions alike, as equal ones may differ."""
    if isinstance(cost, Mapping):
        return str({label: _cost_text(part) for label, part in cost.items()})
    if is_distribution(cost):
        return "drawn"
    return repr(cost) if cost is None or is_scalar(cost) else str([_cost_text(part) for part in cost])
