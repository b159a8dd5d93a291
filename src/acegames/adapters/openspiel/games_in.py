"""OpenSpiel's games as Markov games, by listing their states move by move.

Step t is the t-th move, one player's or all players' at once. Players who are not to move have one
action, `-`. Chance moves are folded into the probabilities of the next state. The end of the game
is one state that is never left. The reward of a move is the change of `state.returns()`, which
OpenSpiel defines as the sum of the rewards so far.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from acegames.adapters.openspiel import reading
from acegames.adapters.openspiel.reading import END, WAIT, Key
from acegames.errors import InvalidGame, InvalidOption, TooLarge
from acegames.learn.facts import per_player
from acegames.model.budgets import warn_of_costless
from acegames.model.checks import check_horizon, plain_label
from acegames.model.costs.random import is_distribution
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_optional
from acegames.numerics import TIE

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
    game = reading.load(game)
    reading.check_kind(game)
    if (cost is None) != (budget is None):
        raise InvalidOption("from_openspiel: give cost and budget together, or neither for a game without budgets")
    check_optional("cost", cost, ("state", "action", "after"))
    trusted = key is None and cost is None
    walk = _Walk(game, cost, reading.label_rule(game, key), limit, ways=1 if trusted else WAYS_COMPARED)
    stages = walk.stages(None if horizon is None else check_horizon(horizon))
    found = MarkovGame.from_functions(
        players=range(game.num_players()),
        actions=lambda t, state: per_player(stages[t][state]),
        outcomes=lambda t, state, action: stages[t][state][action],
        budget=budget,
        horizon=len(stages),
        initial=walk.initial,
        name=str(game),
    )
    warn_of_costless(found)
    return found


def repeated(game: Any, times: int) -> Any:
    """Return an OpenSpiel game in which a matrix game is played several times, all moves seen by
    all.

    As a Markov game it has one state and `times` steps. Its information states tell the whole
    history.
    """
    stage, pyspiel = reading.load(game), reading.openspiel()
    if stage.get_type().information != pyspiel.GameType.Information.ONE_SHOT:
        raise InvalidOption(f"repeated: {stage} is no matrix game; only those are played again from the start")
    return pyspiel.create_repeated_game(stage, {"num_repetitions": check_horizon(times), "enable_infostate": True})


class _Walk:
    """Lists the states of a game, move by move."""

    def __init__(self, game: Any, cost: Cost | None, key: Key, limit: int, ways: int) -> None:
        self.game, self.cost, self.key, self.limit, self.ways = game, cost, key, limit, ways
        self.found = 0
        self.pays_at_end = game.get_type().reward_model == reading.openspiel().GameType.RewardModel.TERMINAL
        self.first: dict[Label, list[Any]] = {}
        self.initial: dict[Label, float] = {}
        for chance, (state,) in reading.after_chance(game.new_initial_state()):
            if any(state.returns()):
                raise InvalidGame(f"{game}: pays {state.returns()} before the first move, which a Markov game cannot")
            label = self._arrive(self.first, state)
            self.initial[label] = self.initial.get(label, 0.0) + chance
        self.nothing = (0.0,) * game.num_players()

    def stages(self, horizon: int | None) -> list[dict[Label, Moves]]:
        """Return the states that can occur at each time, until all is over or the horizon is
        reached.
        """
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
            self.found += label != END
            if self.found > self.limit:
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
            if not _alike(stage, self._read(other, None)):
                histories = f"the histories {ways[0].history_str()!r} and {other.history_str()!r}"
                rule = "their moves, rewards, costs or next states differ; give a key that tells them apart"
                raise InvalidGame(f"{place(t, label)}: {histories} have this label, but {rule}")
        return stage

    def _read(self, state: Any, there: dict[Label, list[Any]] | None) -> Moves:
        known = reading.choices(state)
        moves: Moves = {}
        for action in itertools.product(*known):
            moved = state.clone()
            reading.apply(moved, [own[a] for own, a in zip(known, action, strict=True)])
            outcomes: Outcomes = []
            for chance, (after,) in reading.after_chance(moved):
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


def _alike(one: Moves, other: Moves) -> bool:
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
    """Return probability of each next state and cost, to nine digits."""
    chances: dict[tuple[Label, str], float] = defaultdict(float)
    for chance, label, cost, _ in outcomes:
        chances[label, _cost_text(cost)] += chance
    return {what: round(chance, 9) for what, chance in chances.items()}


def _cost_text(cost: Any) -> str:
    """Return a cost as text, to be compared; distributions are not, as equal ones look different."""
    if isinstance(cost, Mapping):
        return str({label: _cost_text(part) for label, part in cost.items()})
    if is_distribution(cost):
        return "drawn"
    return repr(cost) if cost is None or is_scalar(cost) else str([_cost_text(part) for part in cost])
