"""Policies as OpenSpiel's tabular policies: action probabilities at each information state.

Such a table holds less than a policy of ours. It has no joint draws, and it knows of time, state
and spending only what the information state tells. So every history of the game is walked and the
policy's answer there is written down; where two different answers would stand at one entry of the
table, the export is refused. A history itself always tells what was spent.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.openspiel import openspiel_games
from acegames.adapters.openspiel.openspiel_games import MOST_STATES, WAIT, Key
from acegames.errors import InvalidOption, TooLarge, UnknownPair
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.random_costs import Cost, RandomCost
from acegames.numerics import PRODUCT
from acegames.policy.policy import Policy
from acegames.solving.pipeline import Solution

Total = tuple[int, ...]
Row = NDArray[np.float64]  # by action number
Strategies = tuple[dict[Label, float], ...]  # N


def to_tabular_policy(
    solution: Solution | Policy,
    game: Any,
    *,
    markov_game: MarkovGame | None = None,
    key: Key | None = None,
    turn_based: bool = False,
    limit: int = MOST_STATES,
) -> Any:
    """Write a policy as an `open_spiel.python.policy.TabularPolicy` of its OpenSpiel game.

    At information states that are not reachable under feasible play, and after the horizon, it is
    uniform over the legal actions, as OpenSpiel's tables are by default: nothing is promised there.
    Time and memory grow with the number of histories of the game.

    Args:
        solution: a solution, or its policy.
        game: the OpenSpiel game or its name.
        markov_game: the game of the policy, which tells what was spent; needed where `solution` is
            a policy and there are budgets.
        key: what `from_openspiel` was given.
        turn_based: make the table for `pyspiel.convert_to_turn_based(game)`, where players who move
            at once choose one after the other without seeing it. Needed where OpenSpiel gives the
            information states of players who move at once the same text.
        limit: the largest number of histories.

    Raises:
        InvalidOption: a table cannot hold the policy, because players draw together or because an
            information state covers situations that the policy tells apart; or it is not a policy
            of this game.
        TooLarge: there are more histories than `limit`.
        MissingExtra: OpenSpiel is not installed.
    """
    game = openspiel_games.load(game)
    openspiel_games.check_kind(game)
    if turn_based and not _at_once(game):
        raise InvalidOption(f"to_tabular_policy: turn_based=True: players of {game} move in turn already; leave it out")
    plan = _PolicyAnswers(*_policy_and_game(solution, markov_game), openspiel_games.label_rule(game, key))
    table = _TableWriter(openspiel_games.openspiel().convert_to_turn_based(game) if turn_based else game, limit)
    begin = [g.new_initial_state() for g in ([game, table.game] if turn_based else [game])]
    todo: list[tuple[tuple[Any, ...], int, Total | None]]
    todo = [(states, 0, plan.start) for _, states in openspiel_games.after_chance(*begin)]
    while todo:
        states, t, total = todo.pop()
        if states[0].is_terminal():
            continue
        write = partial(table.write, plan.rows(t, states[0], total), place(t, plan.key(states[0])))
        for action, moved in _moves(states, write):
            for _, leaves in openspiel_games.after_chance(*moved):
                todo.append((leaves, t + 1, plan.total_after(t, states[0], action, leaves[0], total)))
    return table.finished()


def _policy_and_game(solution: Solution | Policy, game: MarkovGame | None) -> tuple[Policy, MarkovGame | None]:
    if isinstance(solution, Solution):
        return solution.policy, solution.game
    if not isinstance(solution, Policy):
        raise InvalidOption(f"to_tabular_policy: {solution!r}: must be a Solution or a Policy")
    if game is None and solution.constraints:
        raise InvalidOption("to_tabular_policy: a policy with budgets needs markov_game=..., to know what was spent")
    if game is not None and game.digest != solution.game_digest:
        raise InvalidOption("to_tabular_policy: the policy was made for another game than markov_game")
    return solution, game


def _moves(states: tuple[Any, ...], write: Callable[[Any, int], None]) -> Iterator[tuple[JointAction, tuple[Any, ...]]]:
    """Yield every joint action with the states after it; call `write(state, player)` at choices.

    A second state is the same state of the turn-based game, where those who move at once choose one
    after the other.
    """
    known = openspiel_games.choices(states[0])
    movers = [player for player, own in enumerate(known) if WAIT not in own]
    if len(states) == 1:
        for player in movers:
            write(states[0], player)
    for action in itertools.product(*known):
        numbers = [own[a] for own, a in zip(known, action, strict=True)]
        moved = tuple(state.clone() for state in states)
        openspiel_games.apply(moved[0], numbers)
        for twin in moved[1:]:
            for player in movers:
                write(twin, player)
                twin.apply_action(numbers[player])
        yield action, moved


class _PolicyAnswers:
    """The policy's answers at OpenSpiel's states, and what was spent on the way to them."""

    def __init__(self, policy: Policy, game: MarkovGame | None, key: Key) -> None:
        self.policy, self.game, self.key = policy, game, key
        self.start: Total | None = policy.tracker.start()
        self.states = set(policy.states)
        self.strategies, self.costs = cache(self._strategies), cache(self._costs)

    def rows(self, t: int, state: Any, total: Total | None) -> list[Row] | None:
        """Return each player's probabilities (actions,); None where no feasible play gets."""
        if t >= self.policy.horizon or total is None:
            return None
        label = self.key(state)
        rows = []
        for strategy, numbers in zip(self.strategies(t, label, total), openspiel_games.choices(state), strict=False):
            row = np.zeros(state.num_distinct_actions())
            for action, chance in strategy.items():
                if action not in numbers:
                    raise _stranger(t, label, f"plays {action!r}, OpenSpiel offers {list(numbers)!r}")
                row[numbers[str(action)]] = chance
            rows.append(row)
        return rows or None

    def total_after(self, t: int, state: Any, action: JointAction, after: Any, total: Total | None) -> Total | None:
        """Return the total cost after a step; None where the policy is not asked any more."""
        if total is None or after.is_terminal() or t + 1 >= self.policy.horizon:
            return None
        if not self.policy.constraints:
            return total
        label, there = self.key(state), self.key(after)
        costs = self.costs(t, label, action)[there]
        if not costs:
            raise _stranger(t, label, f"knows no way from here by {action!r} to {there!r}")
        if len(costs) > 1 or any(isinstance(c, RandomCost) for cost in costs for c in cost):
            several = f"several costs are possible on the way to {there!r}"
            rule = "so OpenSpiel's histories do not tell what was spent"
            raise InvalidOption(f"to_tabular_policy: {place(t, label, action)}: {several}, {rule}")
        return self.policy.tracker.add(total, *costs)

    def _strategies(self, t: int, label: Label, total: Total) -> Strategies:
        """Return each player's own strategy; none where no feasible play gets."""
        if label not in self.states:
            raise _stranger(t, label, "does not know this state")
        spent = self.policy.tracker.spent(total)
        try:
            return _independent(self.policy.distribution(t, label, spent), f"{place(t, label)}, spent {spent!r}")
        except UnknownPair:
            return ()

    def _costs(self, t: int, label: Label, action: JointAction) -> dict[Label, set[tuple[Cost, ...]]]:
        """Return the possible costs of a joint action on the way to each next state."""
        assert self.game is not None
        row = self.game.legal(t, label).get(action)
        costs: dict[Label, set[tuple[Cost, ...]]] = defaultdict(set)
        for _, following, cost in () if row is None else self.game.outcomes(t, row):
            costs[following].add(cost)
        return costs


class _TableWriter:
    """The entry of each information state, and the states behind it."""

    def __init__(self, game: Any, limit: int) -> None:
        self.game, self.limit = game, limit
        self.states: dict[str, Any] = {}
        self.entries: dict[str, tuple[Row, int, str]] = {}  # with the player and the place that wrote it

    def write(self, rows: list[Row] | None, where: str, state: Any, player: int) -> None:
        """Note a state, and the player's row of probabilities at its information state."""
        history = state.history_str()
        if history not in self.states:
            if len(self.states) >= self.limit:
                many = f"more than {self.limit:,} histories in which somebody moves"
                raise TooLarge(f"to_tabular_policy: {self.game}: {many}")
            self.states[history] = state.clone()
        if rows is None:
            return
        information, row = _information(state, player), rows[player]
        before, writer, place_before = self.entries.setdefault(information, (row, player, where))
        if np.abs(before - row).max() <= PRODUCT:
            return
        if writer == player:
            raise InvalidOption(
                f"to_tabular_policy: {where}: the information state {information!r} of player {player} does not tell this "
                f"situation from {place_before}, but the policy does, so no table can hold it"
            )
        advice = "ask for turn_based=True" if _at_once(self.game) else "no table can hold it, run the policy itself"
        raise InvalidOption(
            f"to_tabular_policy: {where}: OpenSpiel gives the information states of players {writer} and {player} the same "
            f"text, {information!r}, so the table has one place for both, but they play differently; {advice}"
        )

    def finished(self) -> Any:
        """Return the tabular policy."""
        tabular = openspiel_games.openspiel("open_spiel.python.policy").TabularPolicy(self.game, states=self.states)
        for information, (row, _, _) in self.entries.items():
            tabular.policy_for_key(information)[:] = row
        return tabular


def _at_once(game: Any) -> bool:
    """Return whether players move at once."""
    return bool(game.get_type().dynamics == openspiel_games.openspiel().GameType.Dynamics.SIMULTANEOUS)


def _information(state: Any, player: int) -> str:
    """Return the text by which OpenSpiel's tables know a state of a player."""
    kind = state.get_game().get_type()
    if kind.provides_information_state_string:
        return str(state.information_state_string(player))
    if kind.provides_observation_string:
        return str(state.observation_string(player))
    return str(state)


def _independent(joint: dict[JointAction, float], where: str) -> Strategies:
    """Return each player's own strategy; InvalidOption where players draw together."""
    own: Strategies = tuple({} for _ in next(iter(joint)))
    for action, chance in joint.items():
        for mine, label in zip(own, action, strict=True):
            mine[label] = mine.get(label, 0.0) + chance
    for action in itertools.product(*own):
        if abs(joint.get(action, 0.0) - math.prod(mine[a] for mine, a in zip(own, action, strict=True))) > PRODUCT:
            raise InvalidOption(
                f"to_tabular_policy: {where}: the players draw {action!r} together, not each by itself, which no table can "
                "hold; solve with Nash(), or run the policy itself (see acegames.adapters.openspiel.play)"
            )
    return own


def _stranger(t: int, label: Label, what: str) -> InvalidOption:
    rule = "give the game (and the key) that from_openspiel was given"
    return InvalidOption(f"to_tabular_policy: {place(t, label)}: the policy {what}; {rule}")
