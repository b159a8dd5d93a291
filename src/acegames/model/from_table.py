"""Games from long tables, one line per outcome and one per reward, or both in one.

Made for large sparse games and data frames. Labels are numbered by one pass of a dict over each
column, and lines are brought together by sorting: O(L log L) for L lines, times the horizon where
only one of the two tables depends on time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Floats, Ints, alike
from acegames.model.assemble import Names, RawLayer, assemble
from acegames.model.budgets import read_budget
from acegames.model.building import SMALLER_GAME
from acegames.model.checks import Label, check_horizon, check_labels
from acegames.model.table_columns import Columns, Numbering, cost_columns
from acegames.model.user_functions import public
from acegames.model.written import are, counted
from acegames.system.memory import within_memory

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


@public("MarkovGame.from_table")
@within_memory("building the game", SMALLER_GAME)
def game_from_table(
    outcomes: Any,
    rewards: Any = None,
    *,
    players: Sequence[Label],
    horizon: int,
    initial: Any,
    budget: Any = None,
    constraints: Sequence[Label] | None = None,
    states: Sequence[Label] | None = None,
    actions: Sequence[Sequence[Label]] | None = None,
    name: str = "",
) -> MarkovGame:
    """Build a game from long tables: data frames, {column: values}, or sequences of records.

    Args:
        outcomes: one line per outcome, with the columns `state`, one per player (named as the
            player; its action), `probability`, `next_state`, one per constraint (its cost; named as
            the constraint, after `cost_` where another column has that name), and `t` when the game
            depends on time. A joint action is legal where it has outcomes.
        rewards: one line per legal joint action, with `state`, one column per player (its action),
            one per player named `reward_` and the player, and `t` when rewards depend on time. Left
            out, these columns are in the one table: each line says what its outcome pays. Play
            pays what is drawn, and solving takes the mean.
        players, horizon, initial, budget, constraints, name: as in `from_functions`.
        states, actions: labels in the order wanted; by default in order of first appearance.

    Raises:
        InvalidGame: naming the place, the value and the rule.
    """
    horizon = check_horizon(horizon)
    who = check_labels("players", players)
    if not who:
        raise InvalidGame("players: a game needs at least one player")
    if actions is not None and len(actions) != len(who):
        raise InvalidGame(
            f"actions: label lists for {counted(len(actions), 'player')}, there {are(len(who), 'player')}"
        )
    limits, budgets = read_budget(budget, constraints, horizon)
    prizes = [f"reward_{p}" for p in who]
    others = ["state", *who, "probability", "next_state", *(prizes if rewards is None else [])]
    spendings = cost_columns(others, limits)
    happen = Columns("outcomes", outcomes, [*others, *spendings])
    worth = happen if rewards is None else Columns("rewards", rewards, ["state", *who, *prizes])
    by_state = Numbering("states", states)
    by_action = [Numbering(f"actions of player {p!r}", actions[i] if actions else None) for i, p in enumerate(who)]

    def places(table: Columns) -> Ints:
        acts = (own.number(table, p) for own, p in zip(by_action, who, strict=True))
        return np.stack([by_state.number(table, "state"), *acts], axis=1)

    keys, next_state = places(happen), by_state.number(happen, "next_state")
    keys = keys if worth is happen else np.concatenate([keys, places(worth)])
    names = Names(who, by_state.labels(), tuple(index.labels() for index in by_action), limits)
    joint = alike(list(keys.T))
    L = happen.length
    spoken = _Lines(names, happen.times(horizon), keys[:L], joint[:L])
    valued = spoken if worth is happen else _Lines(names, worth.times(horizon), keys[L:], joint[L:])
    reward = np.stack([worth.floats(prize) for prize in prizes], axis=1)
    paid = None
    if rewards is None:
        valued, reward, paid = _once(valued, reward)
    costs = [happen.costs(c) for c in spendings]
    codes = np.array([codes for _, codes in costs], dtype=np.int64).reshape(len(costs), happen.length).T
    outcome = {"prob": happen.probabilities("probability"), "next_state": next_state, "cost": codes}
    outcome |= {} if paid is None else {"paid": paid}
    layers = _raw_layers(horizon, spoken, valued, reward, outcome)
    values = [found for found, _ in costs]
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


@dataclass(frozen=True)
class _Lines:
    """Which (t, state, joint action) each line of a table speaks of."""

    names: Names
    t: Ints | None  # (L,) None when the table holds at every time
    key: Ints  # (L, 1+N) state and joint action
    joint: Ints  # (L,) one number for each key, the same in both tables

    def by_time(self, horizon: int) -> list[Ints]:
        """Return the lines that hold at each t."""
        if self.t is None:
            return [np.arange(len(self.key))] * horizon
        order = np.argsort(self.t, kind="stable")
        return np.split(order, np.searchsorted(self.t[order], np.arange(1, horizon)))

    def place(self, line: int, times: tuple[int, ...] = ()) -> str:
        t = int(self.t[line]) if self.t is not None else times[0] if times else None
        every = self.t is None and len(times) != 1
        return self.names.place(t, self.key[line, 0], self.key[line, 1:], every_t=every)


def _once(lines: _Lines, reward: Floats) -> tuple[_Lines, Floats, Floats | None]:
    """Return the first line of each joint action, and what each line pays where others pay
    differently.
    """
    key = lines.joint if lines.t is None else lines.t * (int(lines.joint.max(initial=0)) + 1) + lines.joint
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    before = reward[first[which.reshape(-1)]]
    t = None if lines.t is None else lines.t[first]
    once = _Lines(lines.names, t, lines.key[first], lines.joint[first])
    return once, reward[first], None if np.array_equal(reward, before) else reward


def _raw_layers(
    horizon: int, spoken: _Lines, valued: _Lines, reward: Floats, outcome: dict[str, NDArray[Any]]
) -> list[RawLayer]:
    """Bring lines of outcomes and of rewards together: one raw layer per time, or one for all."""
    timed = spoken.t is not None or valued.t is not None
    each_time = [(t,) for t in range(horizon)] if timed else [tuple(range(horizon))]
    used = np.zeros(len(reward), dtype=bool)
    layers = []
    for times, lines, worth in zip(each_time, spoken.by_time(horizon), valued.by_time(horizon), strict=False):
        rows, first, out_row = np.unique(spoken.joint[lines], return_index=True, return_inverse=True)
        worth = worth[np.argsort(valued.joint[worth], kind="stable")]
        known = valued.joint[worth]
        twice = np.flatnonzero(known[1:] == known[:-1])
        if len(twice):
            one, two = (int(worth[twice[0] + k]) for k in (0, 1))
            raise InvalidGame(f"{valued.place(two)}: rewards: given twice, in lines {one} and {two}")
        at = np.searchsorted(known, rows)
        missing = np.flatnonzero(np.append(known, -1)[at] != rows)
        if len(missing):
            spot = spoken.place(int(lines[first[missing[0]]]), times)
            raise InvalidGame(f"{spot}: no line of rewards, each legal action needs one")
        used[worth[at]] = True
        key = spoken.key[lines[first]]
        outs: dict[str, Any] = {what: values[lines] for what, values in outcome.items()}
        layers.append(RawLayer(times, key[:, 0], key[:, 1:], reward[worth[at]], out_row.reshape(-1), **outs))
    if not used.all():
        line = int(np.argmin(used))
        raise InvalidGame(f"{valued.place(line)}: rewards, line {line}: there are no outcomes for it")
    return layers
