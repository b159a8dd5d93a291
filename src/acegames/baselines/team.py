"""One planner in place of the players, and the game with its budgets taken away."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.approximate.rounding import upper
from acegames.concepts import CCE
from acegames.errors import InvalidOption
from acegames.model.assemble import RawLayer, rebuilt
from acegames.model.budgets import Reservoir
from acegames.model.game import JointAction, Label, MarkovGame, check_game
from acegames.model.record import with_fields
from acegames.policy.tracker import CostTracker
from acegames.solving.pipeline import Solution, solve
from acegames.system.showing import Shown


def without_budgets(game: MarkovGame) -> MarkovGame:
    """The same game with infinite budgets; its costs are still counted.

    A reservoir gets a capacity that no play can run dry.
    """
    check_game(game)
    reservoirs = tuple(kept and _bottomless(game, m, kept) for m, kept in enumerate(game.reservoirs))
    endless = tuple(math.inf if kept is None else kept.capacity for kept in reservoirs)
    name = f"{game.name or 'game'} without budgets"
    return with_fields(game, budgets=(endless,) * game.horizon, reservoirs=reservoirs, name=name)


def _bottomless(game: MarkovGame, m: int, kept: Reservoir) -> Reservoir:
    """Return the reservoir with room for the largest costs at every time; as much is missing as
    before.
    """
    capacity = kept.missing + game.horizon * max([Fraction(0), *map(upper, game.cost_values[m])])
    return Reservoir(capacity, capacity - kept.missing)


def weights_of(game: MarkovGame, objective: Any) -> tuple[float, ...]:
    """Return the weights of an objective; InvalidOption where it is no weighted sum of values."""
    check_game(game)
    weights = CCE(objective).weights(game.players)
    if weights is None:
        raise InvalidOption(f"objective: got {objective!r}, must be 'welfare', a player or one weight per player")
    return weights


def team_game(game: MarkovGame, objective: Any = "welfare") -> MarkovGame:
    """The same game with one player, who chooses joint actions and earns the weighted rewards.

    Args:
        game: the game.
        objective: "welfare", a player, or one weight per player.
    """
    weights = weights_of(game, objective)
    known, code = np.unique(np.concatenate([layer.action for layer in game.layers]), axis=0, return_inverse=True)
    ends = np.cumsum([len(layer.action) for layer in game.layers])[:-1]
    layers = tuple(
        replace(layer, action=own.reshape(-1, 1).astype(np.int32), reward=layer.reward @ np.array(weights)[:, None])
        for layer, own in zip(game.layers, np.split(code.reshape(-1), ends), strict=True)
    )
    actions = (tuple(game.joint_action(row) for row in known),)
    labels: dict[str, Any] = {"players": ("team",), "actions": actions, "name": f"{game.name or 'game'} as a team"}
    if all(layer.payments is None for layer in layers):
        return with_fields(game, layers=layers, **labels)
    raw = [RawLayer.of(layer, times) for layer, times in zip(layers, game.times, strict=True)]
    paid = [x if x.paid is None else replace(x, paid=x.paid @ np.array(weights)[:, None]) for x in raw]
    return rebuilt(with_fields(game, **labels), paid, game.cost_values, horizon=game.horizon)


@dataclass(frozen=True, eq=False, repr=False)
class TeamOptimum(Shown):
    """The best joint play that keeps every budget always; its players may gain by deviating."""

    solution: Solution  # of the team's game

    def __str__(self) -> str:
        return f"Team optimum: worth {self.value:.6g} in all; its players may gain by deviating.\n{self.solution.stats}"

    @property
    def value(self) -> float:
        """The weighted sum of values that was maximised."""
        return float(self.solution.values[0])

    @property
    def tracker(self) -> CostTracker:
        """What the policy counts as spent."""
        return self.solution.policy.tracker

    def distribution(self, t: int, state: Label, spent: Any) -> dict[JointAction, float]:
        """Return probability of each joint action; UnknownPair if not reachable under feasible
        play.
        """
        found: dict[Any, float] = self.solution.policy.distribution(t, state, spent)
        return {joint: p for (joint,), p in found.items()}


def team_optimum(game: MarkovGame, objective: Any = "welfare", **options: Any) -> TeamOptimum:
    """Find the best play for one planner who keeps every budget at every moment.

    Args:
        game: the game.
        objective: what is maximised: "welfare", a player, or one weight per player.
        options: further ones of `solve`, such as `epsilon`.

    Raises:
        Infeasible, TooLarge, InvalidOption: as in `solve`.
    """
    return TeamOptimum(solve(team_game(game, objective), **options))
