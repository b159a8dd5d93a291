"""The tables that the rules of a game file make: at (t, state, action), the last rule counts.

Places are numbered `state * A + joint action`, A being the number of joint actions. A rule covers a
set of places. Times at which the same rules apply share one table. Cost: the places that rules
cover, sorted, per distinct table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from acegames.errors import InvalidGame
from acegames.files.rules import PARTS, STAY, Rule, Vocabulary
from acegames.model.arrays import Bools, Ints, owners, pointers, spans
from acegames.model.assemble import RawLayer, code_costs
from acegames.model.checks import place
from acegames.model.costs.random import Cost
from acegames.model.layers import Moves, changes, follow
from acegames.system.limits import EXPANDED


@dataclass(frozen=True)
class _Table:
    """The rows of times with the same rules, and the states for which rules are missing."""

    places: Ints  # every place that some rule speaks of, sorted
    legal: Bools  # per place
    outcomes: Ints  # per place, the rule that gives it, or -1
    reward: Ints
    lacking: Bools  # per state

    @property
    def complete(self) -> Bools:
        return self.legal & (self.outcomes >= 0) & (self.reward >= 0)


_TOO_MANY = f"too large for rules (more than {EXPANDED} numbers); use arrays"


class RuleTables:
    """Turns rules into raw layers for `assemble`."""

    def __init__(self, rules: Sequence[Rule], words: Vocabulary, *, default_legal: bool) -> None:
        self.rules, self.words, self.default_legal = rules, words, default_legal
        self.shape = (len(words.states), *map(len, words.actions))
        self.joint = math.prod(self.shape[1:])
        if math.prod(self.shape) >= 2**62:
            raise InvalidGame(f"{self.shape} states and actions are too many for rules; use arrays")
        self.groups = self._equal_times(self._count())
        self.places = [self._places(rule) for rule in rules]
        self.gives = {part: np.array([part in rule.parts for rule in rules], dtype=bool) for part in PARTS}
        self.legal_value = np.array([*(rule.legal is True for rule in rules), False])  # -1, no rule, takes the last
        self.reward_value = np.array([rule.reward or (0.0,) * len(words.players) for rule in rules])
        # The outcomes of all rules, end to end.
        lists = [rule.outcomes or () for rule in rules]
        flat = [outcome for outcomes in lists for outcome in outcomes]
        self.out_ptr = pointers([len(outcomes) for outcomes in lists])
        self.out_prob = np.array([p for p, _, _ in flat], dtype=np.float64)
        self.out_next = np.array([s for _, s, _ in flat], dtype=np.int64)
        self.cost_values, self.out_cost = code_costs((c for _, _, c in flat), len(words.constraints))

    def layers(self, start: Bools) -> tuple[list[RawLayer], list[list[Cost]]]:
        """Return raw layers that cover every time, and the cost values that they are coded by.

        Raises:
            InvalidGame: a legal joint action of a state that can occur lacks outcomes or rewards.
        """
        tables = [self._table(active) for active in self.groups]
        raw = [self._raw(table, times) for table, times in zip(tables, self.groups.values(), strict=True)]
        layer_at = [0] * self.words.horizon
        for k, times in enumerate(self.groups.values()):
            for t in times:
                layer_at[t] = k

        def moves(k: int) -> Moves:
            possible = raw[k].prob > 0
            state = raw[k].row_state[raw[k].out_row[possible]]
            return np.searchsorted(state, np.arange(self.shape[0] + 1)), raw[k].next_state[possible]

        for t, k, here in changes(follow(start, layer_at, moves), layer_at):
            if (here & tables[k].lacking).any():
                self._report(t, int(np.argmax(here & tables[k].lacking)), tables[k])
        return raw, self.cost_values

    def _sides(self, rule: Rule) -> list[Sequence[int]]:
        """The states and each player's actions that a rule speaks of."""
        chosen = (rule.states, *rule.actions)
        return [range(size) if own is None else own for own, size in zip(chosen, self.shape, strict=True)]

    def _count(self) -> list[int]:
        """How many numbers each rule puts into a table; InvalidGame where they are too many."""
        wide, deep = 2 + len(self.words.players), 3 + len(self.words.constraints)
        found = []
        for rule in self.rules:
            places = math.prod(map(len, self._sides(rule)))
            found.append(places * (wide + deep * len(rule.outcomes or ())))
            if found[-1] > EXPANDED:
                raise InvalidGame(f"rule {rule.number}: speaks of {places} joint actions, {_TOO_MANY}")
        return found

    def _places(self, rule: Rule) -> Ints:
        codes = np.zeros(1, dtype=np.int64)
        for side, size in zip(self._sides(rule), self.shape, strict=True):
            codes = (codes[:, None] * size + np.array(side)).reshape(-1)
        return codes

    def _equal_times(self, numbers: list[int]) -> dict[tuple[int, ...], list[int]]:
        """Return the times with the same rules, keyed by those rules that depend on time."""
        always = self.shape[0] + sum(size for size, rule in zip(numbers, self.rules, strict=True) if rule.times is None)
        switch: dict[int, list[int]] = {0: []}
        for k, rule in enumerate(self.rules):
            for low, high in rule.times or ():
                switch.setdefault(low, []).append(k)
                switch.setdefault(high + 1, []).append(k)
        ends = [*sorted(t for t in switch if t < self.words.horizon), self.words.horizon]
        groups: dict[tuple[int, ...], list[int]] = {}
        active: set[int] = set()
        total = 0
        for begin, end in pairwise(ends):
            active ^= set(switch[begin])
            total += len(active)
            key = tuple(sorted(active))
            if key not in groups:
                total += always + sum(numbers[k] for k in key)
            if total > EXPANDED:
                raise InvalidGame(f"rules: the tables of the times up to {end - 1} are {_TOO_MANY}")
            groups.setdefault(key, []).extend(range(begin, end))
        return groups

    def _table(self, active: tuple[int, ...]) -> _Table:
        applying = sorted([*(k for k, rule in enumerate(self.rules) if rule.times is None), *active])
        covered = [np.empty(0, dtype=np.int64), *(self.places[k] for k in applying)]
        places, at = np.unique(np.concatenate(covered), return_inverse=True)
        rule = np.repeat(np.array(applying, dtype=np.int64), list(map(len, covered[1:])))
        owner = {part: np.full(len(places), -1) for part in PARTS}
        for part, gives in self.gives.items():
            np.maximum.at(owner[part], at[gives[rule]], rule[gives[rule]])  # the last rule counts
        default = np.full(len(places), True) if self.default_legal else owner["outcomes"] >= 0
        legal = np.where(owner["legal"] >= 0, self.legal_value[owner["legal"]], default)
        lacking = np.zeros(self.shape[0], dtype=bool)
        if self.default_legal:
            lacking = np.bincount(places // self.joint, minlength=self.shape[0]) < self.joint
        table = _Table(places, legal, owner["outcomes"], owner["reward"], lacking)
        lacking[places[legal & ~table.complete] // self.joint] = True
        return table

    def _raw(self, table: _Table, times: list[int]) -> RawLayer:
        keep = table.complete
        state, *acts = self._split(table.places[keep])
        rule = table.outcomes[keep]
        k, ptr = spans(self.out_ptr[rule], self.out_ptr[rule + 1])
        out_row = owners(ptr)
        return RawLayer(
            times=tuple(times),
            row_state=state,
            row_action=np.stack(acts, axis=1),
            reward=self.reward_value[table.reward[keep]] if len(rule) else np.zeros((0, len(acts))),
            out_row=out_row,
            prob=self.out_prob[k],
            next_state=np.where(self.out_next[k] == STAY, state[out_row], self.out_next[k]),
            cost=self.out_cost[k],
        )

    def _split(self, codes: Ints) -> list[Ints]:
        """State and actions of places; numpy does it for at most 64 players."""
        found = []
        for size in reversed(self.shape):
            codes, part = np.divmod(codes, size)
            found.append(part)
        return found[::-1]

    def _report(self, t: int, state: int, table: _Table) -> None:
        first = state * self.joint
        here = np.flatnonzero((table.places >= first) & (table.places < first + self.joint))
        half = [i for i in here if table.legal[i] and not table.complete[i]]
        if half:
            code = int(table.places[half[0]])
            missing = [p for p in ("outcomes", "reward") if getattr(table, p)[half[0]] < 0]
        else:
            taken = table.places[here] - first
            code = first + int(np.flatnonzero(np.append(taken, -1) != np.arange(len(taken) + 1))[0])
            missing = ["outcomes", "reward"]
        _, *acts = self._split(np.array(code))
        labels = [index[int(a)] for index, a in zip(self.words.names.actions, acts, strict=True)]
        spot = place(t, self.words.names.states[state], labels)
        raise InvalidGame(f"{spot}: no rule gives {' and '.join(missing)}, every legal joint action needs both")
