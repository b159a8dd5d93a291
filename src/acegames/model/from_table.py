"""Games from long tables, one line per outcome and one per reward, or both in one.

Made for large sparse games and data frames. Labels are numbered by one pass of a dict over each
column, and lines are brought together by sorting: O(L log L) for L lines, times the horizon where
only one of the two tables depends on time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.errors import InvalidGame
from acegames.model.arrays import Bools, Floats, Ints
from acegames.model.assemble import Names, RawLayer, assemble
from acegames.model.budgets import read_budget
from acegames.model.checks import Label, check_horizon, check_labels, place, read_initial
from acegames.model.table_columns import Columns, Numbering, cost_columns
from acegames.model.written import unknown

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


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
            out, these columns are in the one table, the same in all lines of a joint action.
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
        raise InvalidGame(f"actions: label lists for {len(actions)} players, there are {len(who)}")
    limits, budgets = read_budget(budget, constraints, horizon)
    prizes = [f"reward_{p}" for p in who]
    in_one = prizes if rewards is None else []
    others = ["state", *who, "probability", "next_state", *in_one]
    spendings = cost_columns(others, limits)
    happen = Columns("outcomes", outcomes, [*others, *spendings])
    worth = happen if rewards is None else Columns("rewards", rewards, ["state", *who, *prizes])
    by_state = Numbering("states", states)
    by_action = [Numbering(f"actions of player {p!r}", actions[i] if actions else None) for i, p in enumerate(who)]
    state, next_state = by_state.number(happen, "state"), by_state.number(happen, "next_state")
    spoken = _Lines(happen.times(horizon), state, _actions(happen, who, by_action))
    valued = _Lines(worth.times(horizon), by_state.number(worth, "state"), _actions(worth, who, by_action))
    reward = np.stack([worth.floats(prize) for prize in prizes], axis=1)
    names = Names(who, by_state.labels(), tuple(index.labels() for index in by_action), limits)
    for start in read_initial(initial):
        if start not in by_state.index:
            raise InvalidGame(f"initial: {unknown('state', start, names.states)}")
    if rewards is None:
        valued, reward = _once(names, valued, reward, worth, prizes)
    costs = [happen.costs(c) for c in spendings]
    merge = _Merge(
        names,
        horizon,
        spoken,
        valued,
        prob=happen.probabilities("probability"),
        next_state=next_state,
        cost=np.stack([codes for _, codes in costs], axis=1) if costs else np.empty((happen.length, 0), dtype=np.int64),
        reward=reward,
    )
    values = [found for found, _ in costs]
    return assemble(names, merge.layers(), values, horizon=horizon, initial=initial, budgets=budgets, name=name)


def _actions(table: Columns, players: tuple[Label, ...], by_action: list[Numbering]) -> Ints:
    return np.stack([index.number(table, p) for p, index in zip(players, by_action, strict=True)], axis=1)


@dataclass(frozen=True)
class _Lines:
    """Which (t, state, joint action) each line of a table speaks of."""

    t: Ints | None  # (L,) None when the table holds at every time
    state: Ints  # (L,)
    action: Ints  # (L, N)

    def by_time(self, horizon: int) -> list[Ints]:
        """Return the lines that hold at each t; all of them, once, if the table has no times."""
        if self.t is None:
            return [np.arange(len(self.state))]
        order = np.argsort(self.t, kind="stable")
        return np.split(order, np.searchsorted(self.t[order], np.arange(1, horizon)))


def _once(names: Names, lines: _Lines, reward: Floats, table: Columns, prizes: list[str]) -> tuple[_Lines, Floats]:
    """The first line of each joint action; InvalidGame if others give another reward."""
    joint = _joint_numbers(names, lines)
    key = joint if lines.t is None else lines.t * (int(joint.max(initial=0)) + 1) + joint
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    other = np.argwhere((reward != reward[first[which.reshape(-1)]]) & ~np.isnan(reward))
    if len(other):
        line, i = map(int, other[0])
        before = int(first[which.reshape(-1)[line]])
        other_line = f"line {table.line(before)} of the same joint action"
        raise table.wrong(prizes[i], line, f"{reward[line, i]}, but {other_line} says {reward[before, i]}")
    return _Lines(None if lines.t is None else lines.t[first], lines.state[first], lines.action[first]), reward[first]


@dataclass(frozen=True)
class _Merge:
    """Brings outcome lines and reward lines of the same place together."""

    names: Names
    horizon: int
    spoken: _Lines  # of outcomes
    valued: _Lines  # of rewards
    prob: Floats
    next_state: Ints
    cost: Ints
    reward: Floats

    @cached_property
    def joint(self) -> tuple[Ints, Ints]:
        """The joint number of each line of outcomes and of rewards."""
        both = _joint_numbers(self.names, self.spoken, self.valued)
        return both[: len(self.prob)], both[len(self.prob) :]

    def layers(self) -> list[RawLayer]:
        """Return one raw layer per time, or one for all."""
        lines, reward_lines = self.spoken.by_time(self.horizon), self.valued.by_time(self.horizon)
        timed = self.spoken.t is not None or self.valued.t is not None
        used = np.zeros(len(self.reward), dtype=bool)
        layers = []
        for t in range(self.horizon if timed else 1):
            times = (t,) if timed else tuple(range(self.horizon))
            here = lines[t if self.spoken.t is not None else 0]
            there = reward_lines[t if self.valued.t is not None else 0]
            layers.append(self._layer(times, here, there, used))
        if not used.all():
            line = int(np.argmin(used))
            raise InvalidGame(f"{self._place(self.valued, line)}: rewards, line {line}: there are no outcomes for it")
        return layers

    def _layer(self, times: tuple[int, ...], lines: Ints, reward_lines: Ints, used: Bools) -> RawLayer:
        rows, first, out_row = np.unique(self.joint[0][lines], return_index=True, return_inverse=True)
        reward_lines = reward_lines[np.argsort(self.joint[1][reward_lines], kind="stable")]
        known = self.joint[1][reward_lines]
        twice = np.flatnonzero(known[1:] == known[:-1])
        if len(twice):
            one, two = (int(reward_lines[twice[0] + k]) for k in (0, 1))
            raise InvalidGame(f"{self._place(self.valued, two)}: rewards: given twice, in lines {one} and {two}")
        at = np.searchsorted(known, rows)
        missing = np.flatnonzero(np.append(known, -1)[at] != rows)
        if len(missing):
            spot = self._place(self.spoken, int(lines[first[missing[0]]]), times)
            raise InvalidGame(f"{spot}: no line of rewards, each legal action needs one")
        chosen = reward_lines[at]
        used[chosen] = True
        return RawLayer(
            times=times,
            row_state=self.spoken.state[lines[first]],
            row_action=self.spoken.action[lines[first]],
            reward=self.reward[chosen],
            out_row=out_row.reshape(-1),
            prob=self.prob[lines],
            next_state=self.next_state[lines],
            cost=self.cost[lines],
        )

    def _place(self, lines: _Lines, line: int, times: tuple[int, ...] = ()) -> str:
        labels = [known[int(a)] for known, a in zip(self.names.actions, lines.action[line], strict=True)]
        t = int(lines.t[line]) if lines.t is not None else times[0] if times else None
        every = lines.t is None and len(times) != 1
        return place(t, self.names.states[int(lines.state[line])], labels, every_t=every)


def _joint_numbers(names: Names, *tables: _Lines) -> Ints:
    """Return one number per line, equal where state and joint action are, small by renumbering."""
    joint = np.concatenate([table.state for table in tables])
    acts = np.concatenate([table.action for table in tables])
    for i, labels in enumerate(names.actions):
        _, joint = np.unique(joint * len(labels) + acts[:, i], return_inverse=True)
    return joint.reshape(-1).astype(np.int64)
