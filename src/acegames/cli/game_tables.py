"""The resolved game on the screen and as JSON: joint actions, rewards, outcomes and costs."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

import acegames as ace
from acegames.cli.json_answers import by_label, game_data
from acegames.cli.screen import Answer, counted, escape, one_line, out, show_table
from acegames.errors import InvalidOption
from acegames.model.checks import place, unknown
from acegames.model.game import Layer
from acegames.model.numbers import plain
from acegames.model.random_costs import RandomCost
from acegames.model.words import called, listed, number


def show_game(game: ace.MarkovGame) -> None:
    """Print a game; its whole digest stands alone, never cut."""
    out.print(escape(str(game)))
    out.print(f"digest {game.digest}", soft_wrap=True)


def show_resolved(game: ace.MarkovGame, state: list[str] | None, t: int | None, most: int) -> Answer:
    """Show the named states, or all, at time t, or 0; at most so many joint actions."""
    time = 0 if t is None else t
    if time >= game.horizon:
        raise InvalidOption(f"--t {time}: must be between 0 and {game.horizon - 1}, the horizon is {game.horizon}")
    layer = game.layers[game.layer_at[time]]
    states = list(dict.fromkeys(_state(game, name) for name in state)) if state else _present(game, layer)
    every = ((s, row) for s in states for row in range(layer.row_ptr[s], layer.row_ptr[s + 1]))
    shown = list(islice(every, most))
    left = int(np.diff(layer.row_ptr)[states].sum()) - len(shown)
    show_game(game)
    begins = [_label(game.states[s]) + ("" if p == 1 else f" with probability {p:.6g}") for s, p in game.initial]
    out.print(escape(f"Play begins in {listed(begins)}."), soft_wrap=True)
    _show_times(game, time, asked=t is not None)
    _show_rows(game, layer, shown)
    for s in states:
        if state and layer.row_ptr[s] == layer.row_ptr[s + 1]:
            out.print(f"{escape(place(time, game.states[s]))}: this state cannot occur at this time.", soft_wrap=True)
    if left:
        whole = len(states) - len({s for s, _ in shown})
        among = f", among them all of {counted(whole, 'state')}" if whole else ""
        hint = "--most N shows more" if state else "--state S shows one state, --most N shows more"
        are = "is" if left == 1 else "are"
        out.print(f"{counted(left, 'more legal joint action')} {are} not shown{among}: {hint}.", soft_wrap=True)
    same = [int(u) for u in game.times[game.layer_at[time]]]
    data = {"game": game_data(game), "actions": by_label(game.players, map(list, game.actions)), "t": time}
    data |= {"same_at": same, "rows": [_data(game, layer, s, row) for s, row in shown], "left_out": left}
    return Answer(data)


def _present(game: ace.MarkovGame, layer: Layer) -> list[int]:
    """Return the states that the tables of a time have, those of the beginning first."""
    every = np.flatnonzero(np.diff(layer.row_ptr)).tolist()
    first = [s for s, _ in game.initial if layer.row_ptr[s] < layer.row_ptr[s + 1]]
    return [*first, *(s for s in every if s not in first)]


def _state(game: ace.MarkovGame, name: str) -> int:
    """Return the number of a state from its label as it is shown, in Python or in a table."""
    spellings: Any = (str, repr, called, _label, lambda label: called((label,)))  # the last has brackets
    ways = [{spell(s): k for k, s in enumerate(game.states)} for spell in spellings]
    for known in ways:
        if name in known:
            return known[name]
    raise InvalidOption(f"--state {name}: {unknown('state', name, ways[0])}")


def _show_times(game: ace.MarkovGame, time: int, *, asked: bool) -> None:
    if len(game.layers) == 1:
        out.print("The tables are the same at all times.")
        return
    same = len(game.times[game.layer_at[time]])
    others = f", as at {same} of {game.horizon:,} times" if same > 1 else ""
    hint = "" if asked else f"; --t T shows another time, up to {game.horizon - 1}"
    out.print(f"The tables change with time. This is t={time}{others}{hint}.")


def _show_rows(game: ace.MarkovGame, layer: Layer, rows: list[tuple[int, int]]) -> None:
    """Print one table per state: a line per outcome, what the joint action pays in its first line.

    Where outcomes pay, each line says what its own does.
    """
    players = ", ".join(map(_label, game.players))
    heads = (players, "reward" if len(game.players) == 1 else "rewards", "prob.", "next state")
    for s in dict.fromkeys(s for s, _ in rows):
        lines = []
        for row in (r for other, r in rows if other == s):
            action = (labels[a] for labels, a in zip(game.actions, layer.action[row].tolist(), strict=True))
            first = [", ".join(map(_label, action)), _rewards(layer.reward[row].tolist())]
            for p, after, cost, paid in _outcomes(game, layer, row):
                there = "(same)" if after == game.states[s] else _label(after)
                worth = first[1] if paid is None else _rewards(paid)
                lines.append((first[0], worth, f"{p:.6g}", there, *(number(_plain(c)) for c in cost)))
                first = ["", ""]
        costs = (f"{_label(c)} cost" for c in game.constraints)
        out.print()
        show_table((*heads, *costs), lines, title=f"state {_label(game.states[s])}", text=(0, 3))


def _rewards(amounts: list[float]) -> str:
    return ", ".join(f"{x:.6g}" for x in amounts)


def _label(label: Any) -> str:
    return one_line(called(label))


_Outcome = tuple[float, Any, list[Fraction | RandomCost], list[float] | None]
"""Probability, next state, cost, and what it pays where outcomes do, each something else."""


def _outcomes(game: ace.MarkovGame, layer: Layer, row: int) -> list[_Outcome]:
    drawn = layer.apart()
    here = drawn.outcomes(row)
    paid = drawn.paid(row, here)
    same = bool((paid == layer.reward[row]).all())
    own = [None] * (here.stop - here.start) if same else paid.tolist()
    columns = zip(
        drawn.prob[here].tolist(), drawn.next_state[here].tolist(), drawn.cost[here].tolist(), own, strict=True
    )
    return [
        (p, game.states[s], [values[c] for values, c in zip(game.cost_values, codes, strict=True)], x)
        for p, s, codes, x in columns
    ]


def _data(game: ace.MarkovGame, layer: Layer, state: int, row: int) -> dict[str, Any]:
    """Return a legal joint action for JSON."""
    action = (labels[a] for labels, a in zip(game.actions, layer.action[row].tolist(), strict=True))
    return {
        "state": game.states[state],
        "joint_action": by_label(game.players, action),
        "reward": by_label(game.players, layer.reward[row]),
        "outcomes": [
            {
                "probability": p,
                "next_state": after,
                "cost": by_label(game.constraints, map(_plain, cost)),
                "reward": by_label(game.players, layer.reward[row] if paid is None else paid),
            }
            for p, after, cost, paid in _outcomes(game, layer, row)
        ],
    }


def _plain(cost: Any) -> Any:
    return cost.key if isinstance(cost, RandomCost) else plain(cost)
