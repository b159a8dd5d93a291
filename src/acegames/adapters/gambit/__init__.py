"""Strategic games of Gambit, NashPy and QuantEcon, to read and to write.

A *stage game* of a solution is what the players face in one situation (t, state, spent): each
feasible joint action is worth its reward plus the expected value of what follows under the
solution. Gambit's `.nfg` files are read and written without Gambit.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.gambit.nfg import format_nfg, parse_nfg
from acegames.errors import InvalidGame, InvalidOption
from acegames.model.arrays import Bools, Floats
from acegames.model.budgets import read_budget
from acegames.model.checks import (
    check_count,
    check_horizon,
    check_known,
    check_labels,
    check_name,
    counted,
    float_array,
    show,
)
from acegames.model.from_functions import read_vector
from acegames.model.game import Label, MarkovGame, check_game, place
from acegames.model.numbers import real
from acegames.model.user_functions import BUILDING, check_function, public
from acegames.model.words import read_text
from acegames.policy.situations import View, stages
from acegames.safety.feasible import feasibility
from acegames.safety.frontier import infeasible
from acegames.solving.pipeline import Solution
from acegames.stage.nash import quantecon_game
from acegames.system.atomic import write_text
from acegames.system.container import naming_file
from acegames.system.extras import optional

__all__ = ["StageGame", "from_gambit", "from_nashpy", "from_quantecon", "read_nfg", "stage_game", "write_nfg"]

TEXT_BEGINS = re.compile(r"\ufeff?\s*NFG\s+[0-9]+\s")  # what no path does

Labels = tuple[Label, ...]
Costs = Callable[[Labels], Any] | Mapping[Labels, Any] | Sequence[Any] | NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class StageGame:
    """A one-shot game: what each feasible joint action is worth to each player."""

    players: Labels  # N
    actions: tuple[Labels, ...]  # N tuples: the actions that are part of some feasible joint action
    payoffs: Floats  # (N, n1..nN); NaN where infeasible
    feasible: Bools  # (n1..nN) True: may be played
    title: str = ""

    @property
    def is_product(self) -> bool:
        """Whether all combinations of the actions are feasible, as other libraries assume."""
        return bool(self.feasible.all())

    def filled(self, outside: Any = None) -> Floats:
        """Return the payoffs (N, n1..nN), with `outside` where infeasible: a number, or one each.

        Other libraries have no infeasible joint actions; to them these are possible at that payoff.

        Raises:
            InvalidOption: `outside` is needed and not given, or a feasible payoff is not finite.
        """
        if not np.isfinite(self.payoffs[:, self.feasible]).all():
            raise InvalidOption("payoffs: those of feasible joint actions must be finite numbers")
        if self.is_product:
            return self.payoffs
        if outside is None:
            missing = np.argwhere(~self.feasible)
            labels = tuple(own[k] for own, k in zip(self.actions, missing[0].tolist(), strict=True))
            raise InvalidOption(
                f"the feasible joint actions are no product: {len(missing)} combinations such as {labels!r} are infeasible, which a "
                "normal-form game cannot say; give outside=, the payoff there (one number, or one per player), low enough that nobody "
                "wants it"
            )
        try:
            price = np.broadcast_to(np.asarray(outside, dtype=np.float64), len(self.players))
        except (TypeError, ValueError):
            price = np.array([np.nan])
        if not np.isfinite(price).all():
            raise InvalidOption(f"outside: got {outside!r:.60}, must be a finite number, or one for each player")
        return np.where(self.feasible, self.payoffs, price.reshape(-1, *(1,) * len(self.players)))

    def to_nfg(self, path: str | PathLike[str] | None = None, *, outside: Any = None) -> str:
        """Return the text of an `.nfg` file, also written to `path`; `outside`: see `filled`."""
        text = format_nfg(self.title, self.players, self.actions, self.filled(outside))
        if path is not None:
            write_text(path, text)
        return text

    def to_gambit(self, *, outside: Any = None) -> Any:
        """Return the stage game as a `pygambit.Game`; `outside` as in `filled`."""
        pygambit = optional("pygambit", "games of Gambit", "gambit")
        self.to_nfg(outside=outside)  # says what is wrong with the labels, if anything
        game = pygambit.read_nfg(io.StringIO(self._unlabelled().to_nfg(outside=outside)))
        for player, label, own in zip(game.players, self.players, self.actions, strict=True):
            player.label = str(label)
            for strategy, action in zip(player.strategies, own, strict=True):
                strategy.label = str(action)
        return game

    def _unlabelled(self) -> StageGame:
        """Return this game with labels that no label of it equals.

        Gambit 16.7 sets labels one by one, and refuses one that another action still has.
        """
        mark = "~"
        while any(str(x).startswith(mark) for labels in (self.players, *self.actions) for x in labels):
            mark += "~"
        players, *actions = (tuple(f"{mark}{k}" for k in range(len(x))) for x in (self.players, *self.actions))
        return replace(self, players=players, actions=tuple(actions))

    def to_nashpy(self, *, outside: Any = None) -> Any:
        """Return the stage game as a `nashpy.Game`, for two players; `outside` as in `filled`."""
        if len(self.players) != 2:
            raise InvalidOption(f"a game of NashPy has 2 players, this one has {len(self.players)}")
        nashpy = optional("nashpy", "games of NashPy", "nashpy")
        return nashpy.Game(*self.filled(outside).copy())

    def to_quantecon(self, *, outside: Any = None) -> Any:
        """Return the stage game as QuantEcon's `NormalFormGame`; `outside`: see `filled`."""
        theory = optional("quantecon.game_theory", "games of QuantEcon", "quantecon")
        return quantecon_game(theory, self.filled(outside))

    def to_game(self, *, cost: Costs = None, budget: Any = None, horizon: int = 1) -> MarkovGame:
        """Make a Markov game with the one state 0, in which this is played `horizon` times.

        Args:
            cost: what each joint action costs: {joint action: cost}, in which those left out cost
                nothing, or a function of the joint action, where a cost is a number, M numbers or
                {constraint: number}; or an array (n1..nN) or (n1..nN, M).
            budget: as in `MarkovGame.from_arrays`.
            horizon: how often it is played.
        """
        return MarkovGame.from_arrays(
            np.ones((1, *self.feasible.shape, 1)),
            np.where(self.feasible[..., None], np.moveaxis(self.payoffs, 0, -1), 0.0)[None],
            self._costs(cost, budget, horizon),
            budget,
            horizon=horizon,
            legal=self.feasible[None],
            players=self.players,
            actions=self.actions,
            name=self.title,
        )

    def _costs(self, cost: Costs, budget: Any, horizon: int) -> Any:
        """Return costs as `from_arrays` takes them."""
        shape = self.feasible.shape
        if cost is None:
            return None
        joint_actions = list(itertools.product(*self.actions))
        if isinstance(cost, Mapping):
            check_known("joint action", cost, joint_actions, "cost: ", InvalidGame)
            costs = [cost.get(joint, {}) for joint in joint_actions]
        elif callable(cost):
            check_function("cost", cost, ("action",))
            costs = [cost(joint) for joint in joint_actions]
        else:
            table = np.array(cost, dtype=object) if isinstance(cost, (list, tuple)) else np.asarray(cost)
            return table.reshape(1, *table.shape, *(1,) * (table.ndim == len(shape)))
        labels = tuple(read_budget(budget, None, check_horizon(horizon)))
        rows = [
            read_vector(entries, labels, lambda entry: entry, place(action=joint), "cost", "constraint")
            for joint, entries in zip(joint_actions, costs, strict=True)
        ]
        return np.array(rows, dtype=object).reshape(1, *shape, len(labels))


def stage_game(solution: Solution, t: int, state: Label, spent: Any) -> StageGame:
    """Return the stage game that a solution faces at (t, state, spent).

    Args:
        solution: what `solve` returned; its policy gives the value of what follows.
        t: the time, from 0.
        state: the state.
        spent: the cumulative cost as the policy counts it: a number, one per constraint, or
            {constraint: number}.

    Raises:
        UnknownPair: (t, state, spent) is not reachable under feasible play.
    """
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution: got {type(solution).__name__}, must be what `solve` returned")
    policy, game = solution.policy, solution.game
    policy.distribution(t, state, spent)  # says what is wrong with the place, if anything
    total = np.array([policy.tracker.total(spent)], dtype=np.int64)
    view = View.of(game, policy)
    stage = next(iter(stages(view, t, np.array([game.state_index(state)]), total)))
    action = view.counted.layer(t).action[stage.row[stage.feasible]]
    title = f"{game.name or 'game'}, t={t}, state {state}, spent {spent}"
    return _compact(game, action, stage.worth[stage.feasible], title)


def _compact(game: MarkovGame, action: NDArray[np.int32], worth: Floats, title: str) -> StageGame:
    """Return the game over the given joint actions (R, N), with the actions that occur in them."""
    own = [np.unique(column).tolist() for column in action.T]
    at = tuple(np.searchsorted(used, column) for used, column in zip(own, action.T, strict=True))
    feasible = np.zeros(tuple(map(len, own)), dtype=bool)
    feasible[at] = True
    payoffs = np.full((len(own), *feasible.shape), np.nan)
    payoffs[(slice(None), *at)] = worth.T
    labels = tuple(tuple(names[k] for k in used) for names, used in zip(game.actions, own, strict=True))
    return StageGame(game.players, labels, payoffs, feasible, title)


def _one_shot(game: MarkovGame) -> StageGame:
    """Return a game of a single step as a stage game."""
    check_game(game)
    if game.horizon != 1 or len(game.initial) != 1:
        raise InvalidOption(
            f"the game has horizon {game.horizon} and {len(game.initial)} initial states, a normal-form game is one step from "
            "one state; solve it and write what is faced at one place: stage_game(solution, t, state, spent).to_nfg(path)"
        )
    safe = feasibility(game)
    if not safe.feasible:
        raise infeasible(game)
    start, layer = game.states[game.initial[0][0]], game.layer(0)
    rows = [game.legal(0, start)[joint] for joint in safe.actions(0, start, game.spent_at_start)]
    return _compact(game, layer.action[rows], layer.reward[rows], game.name)


def read_nfg(source: str | PathLike[str], *, cost: Costs = None, budget: Any = None, horizon: int = 1) -> MarkovGame:
    """Read a game from a `.nfg` file, or from its text (which begins with NFG 1 R).

    Args:
        source: the file or its text; payoffs by joint action or by outcome.
        cost: what each joint action costs; see `StageGame.to_game`.
        budget: as in `MarkovGame.from_arrays`.
        horizon: how often the game is played.

    Raises:
        BadFile: naming the line and what was expected.
    """
    if isinstance(source, str) and TEXT_BEGINS.match(source):
        normal_form = parse_nfg(source.removeprefix("\ufeff"))
    else:
        with naming_file(source):
            normal_form = parse_nfg(read_text(source))
    return _everywhere(*normal_form).to_game(cost=cost, budget=budget, horizon=horizon)


def write_nfg(game: MarkovGame | StageGame, path: str | PathLike[str], *, outside: Any = None) -> str:
    """Write a stage game, or a game of one step from one state, as `.nfg`; returns the text.

    Args:
        game: a stage game, or a game with horizon 1 and one initial state.
        path: where to write the file.
        outside: the payoff of infeasible joint actions; see `StageGame.filled`.
    """
    return (game if isinstance(game, StageGame) else _one_shot(game)).to_nfg(Path(path), outside=outside)


def from_nashpy(game: Any, *, cost: Costs = None, budget: Any = None, horizon: int = 1) -> MarkovGame:
    """Make a game from a `nashpy.Game`, with numbers as labels; options as in `read_nfg`."""
    if not hasattr(game, "payoff_matrices"):
        raise _other_kind(game, "nashpy.Game")
    return _numbered(game.payoff_matrices).to_game(cost=cost, budget=budget, horizon=horizon)


def from_quantecon(game: Any, *, cost: Costs = None, budget: Any = None, horizon: int = 1) -> MarkovGame:
    """Make a game from QuantEcon's `NormalFormGame`, with numbers as labels; see `read_nfg`."""
    if not all(hasattr(player, "payoff_array") for player in getattr(game, "players", [None])):
        raise _other_kind(game, "quantecon.game_theory.NormalFormGame")
    n = len(game.players)
    payoffs = [np.transpose(p.payoff_array, (*range(n - i, n), *range(n - i))) for i, p in enumerate(game.players)]
    return _numbered(payoffs).to_game(cost=cost, budget=budget, horizon=horizon)


def from_gambit(game: Any, *, cost: Costs = None, budget: Any = None, horizon: int = 1) -> MarkovGame:
    """Make a game from a `pygambit.Game`, also from a tree; options as in `read_nfg`."""
    if isinstance(game, (type, StageGame)) or not callable(getattr(game, "to_nfg", None)):
        raise _other_kind(game, "pygambit.Game")
    return read_nfg(game.to_nfg(), cost=cost, budget=budget, horizon=horizon)


def _other_kind(game: Any, wanted: str) -> InvalidOption:
    hint = "; write StageGame.to_game() for the game itself" if isinstance(game, StageGame) else ""
    return InvalidOption(f"game: got {type(game).__name__} {game!r:.60}, must be a {wanted}{hint}")


def _everywhere(players: Labels, actions: tuple[Labels, ...], payoffs: Floats, title: str = "") -> StageGame:
    """Return a game in which every joint action is feasible."""
    return StageGame(players, actions, payoffs, np.ones(payoffs.shape[1:], dtype=bool), title)


def _numbered(payoffs: Sequence[Any] | Floats) -> StageGame:
    table = np.array([np.asarray(p, dtype=np.float64) for p in payoffs])
    return _everywhere(tuple(range(len(table))), tuple(tuple(range(k)) for k in table.shape[1:]), table)


# -- repeated games, from a table of payoffs in any usual form


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
    return _numbered(np.moveaxis(table, -1, 0))
