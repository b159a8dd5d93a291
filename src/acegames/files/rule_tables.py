"""The tables that the rules of a game file make: at (t, state, action), the last rule counts.

What rules `add` comes on top, wherever in the file they stand (`rule_sums`).

Places are numbered `state * A + joint action`, A being the number of joint actions. A rule covers a
set of places. Times at which the same rules apply share one table. Cost: the places that rules
cover, sorted, per distinct table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from acegames.errors import InvalidGame
from acegames.files.rule_overlaps import Overlap, Overlaps
from acegames.files.rule_sums import Sums, summed_floats
from acegames.files.rules import PARTS, STAY, Rule, Vocabulary
from acegames.model.arrays import Bools, Floats, Ints, owners, pointers, spans
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
    pays: Bools  # per place, whether its outcomes have rewards of their own
    lacking: Bools  # per state

    @property
    def complete(self) -> Bools:
        return self.legal & (self.outcomes >= 0) & ((self.reward >= 0) | self.pays)


class _Draft(NamedTuple):
    """The rows of a table, with rewards and costs by the numbers of their sums."""

    places: Ints
    reward: Ints  # per row
    out_ptr: Ints  # the outcomes of each row
    outcome: Ints  # per outcome, its number among those of all rules
    out_row: Ints
    next_state: Ints
    cost: Ints  # per outcome
    pays: Ints  # per outcome: its own reward


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
        nothing = (0.0,) * len(words.players)
        self.reward_value = np.array([*(rule.reward or nothing for rule in rules), nothing])
        # The outcomes of all rules, end to end.
        lists = [rule.outcomes or () for rule in rules]
        flat = [outcome for outcomes in lists for outcome in outcomes]
        self.out_ptr = pointers([len(outcomes) for outcomes in lists])
        self.out_prob = np.array([outcome.probability for outcome in flat], dtype=np.float64)
        self.out_next = np.array([outcome.next for outcome in flat], dtype=np.int64)
        self.out_cost = [outcome.cost for outcome in flat]
        self.out_pays = np.array([outcome.reward or nothing for outcome in flat]).reshape(len(flat), len(nothing))
        self.pays = np.array([any(o.reward is not None for o in outcomes) for outcomes in (*lists, ())])
        self.sums = {
            "reward": Sums("reward", len(rules) + 1),
            "cost": Sums("cost", len(flat)),
            "pays": Sums("reward", len(flat)),
        }
        self.found = Overlaps(rules, self.shape, words.horizon)
        self.adding_nothing = {k for k, rule in enumerate(rules) if rule.add is not None}  # once `layers` was called
        self.never_entered: set[int] = set()  # states that nothing leads to, likewise

    @property
    def overlaps(self) -> list[Overlap]:
        """The overlaps that are probably not meant, once `layers` has been called."""
        return list(self.found.found.values())

    def described(self, overlap: Overlap) -> str:
        """Return the place of an overlap, for people."""
        return self._place(overlap.time, overlap.place)

    def layers(self, start: Bools) -> tuple[list[RawLayer], list[list[Cost]]]:
        """Return raw layers that cover every time, and the cost values that they are coded by.

        Raises:
            InvalidGame: a legal joint action of a state that can occur lacks outcomes or rewards.
        """
        applying = [self._applying(active) for active in self.groups]
        tables = [self._table(rules, times[0]) for rules, times in zip(applying, self.groups.values(), strict=True)]
        drafts = [self._draft(table, rules) for table, rules in zip(tables, applying, strict=True)]
        reward = summed_floats(self.sums["reward"], self.reward_value, self.rules, [d.reward for d in drafts])
        pays = summed_floats(self.sums["pays"], self.out_pays, self.rules, [d.pays for d in drafts])
        costs = [*self.out_cost, *self.sums["cost"].vectors(self.out_cost, self.rules, [d.cost for d in drafts])]
        cost_values, cost = code_costs(costs, len(self.words.constraints))
        raw = [
            self._raw(draft, times, reward, pays, cost)
            for draft, times in zip(drafts, self.groups.values(), strict=True)
        ]
        self.never_entered = self._not_entered(start, raw)
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
        return raw, cost_values

    def _not_entered(self, start: Bools, raw: list[RawLayer]) -> set[int]:
        entered = start.copy()
        for layer in raw:
            moves = (layer.prob > 0) & (layer.next_state != layer.row_state[layer.out_row])
            entered[layer.next_state[moves]] = True
        return set(np.flatnonzero(~entered).tolist())

    def _sides(self, rule: Rule) -> list[Sequence[int]]:
        """Return the states and each player's actions that a rule speaks of."""
        chosen = (rule.states, *rule.actions)
        return [range(size) if own is None else own for own, size in zip(chosen, self.shape, strict=True)]

    def _count(self) -> list[int]:
        """Return how many numbers each rule puts into a table; InvalidGame where they are too many."""
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

    def _applying(self, active: tuple[int, ...]) -> list[int]:
        return sorted([*(k for k, rule in enumerate(self.rules) if rule.times is None), *active])

    def _table(self, applying: list[int], time: int) -> _Table:
        covered = [np.empty(0, dtype=np.int64), *(self.places[k] for k in applying)]
        places, at = np.unique(np.concatenate(covered), return_inverse=True)
        rule = np.repeat(np.array(applying, dtype=np.int64), list(map(len, covered[1:])))
        owner = {part: np.full(len(places), -1) for part in PARTS}
        for part, gives in self.gives.items():
            own, there = rule[gives[rule]], at[gives[rule]]
            np.maximum.at(owner[part], there, own)  # the last rule counts
            self.found.look(part, own, owner[part][there], places[there], time)
        default = np.full(len(places), True) if self.default_legal else owner["outcomes"] >= 0
        legal = np.where(owner["legal"] >= 0, self.legal_value[owner["legal"]], default)
        lacking = np.zeros(self.shape[0], dtype=bool)
        if self.default_legal:
            lacking = np.bincount(places // self.joint, minlength=self.shape[0]) < self.joint
        pays = self.pays[owner["outcomes"]]
        table = _Table(places, legal, owner["outcomes"], owner["reward"], pays, lacking)
        lacking[places[legal & ~table.complete] // self.joint] = True
        return table

    def _draft(self, table: _Table, applying: list[int]) -> _Draft:
        keep = table.complete
        places, rule = table.places[keep], table.outcomes[keep]
        k, ptr = spans(self.out_ptr[rule], self.out_ptr[rule + 1])
        out_row = owners(ptr)
        stays = self.out_next[k] == STAY
        next_state = np.where(stays, places[out_row] // self.joint, self.out_next[k])
        reward = table.reward[keep] % len(self.reward_value)  # -1, no rule, is the last
        draft = _Draft(places, reward, ptr, k, out_row, next_state, k.copy(), k.copy())
        for number in applying:
            self._add(number, draft)
        return draft

    def _add(self, number: int, draft: _Draft) -> None:
        """Count what a rule adds, in place."""
        add = self.rules[number].add
        if add is None:
            return
        own = self.places[number]
        at = np.searchsorted(draft.places, own)
        rows = at[np.take(draft.places, at, mode="clip") == own] if len(draft.places) else at[:0]
        out, _ = spans(draft.out_ptr[rows], draft.out_ptr[rows + 1])
        if add.nexts is not None:
            out = out[np.isin(draft.next_state[out], add.nexts)]
        if len(out):
            self.adding_nothing.discard(number)
        if add.cost is not None:
            draft.cost[out] = self.sums["cost"].add(number, draft.cost[out])
        if add.reward is not None and add.nexts is None:
            draft.reward[rows] = self.sums["reward"].add(number, draft.reward[rows])
        elif add.reward is not None:
            draft.pays[out] = self.sums["pays"].add(number, draft.pays[out])

    def _raw(self, draft: _Draft, times: list[int], reward: Floats, pays: Floats, cost: Ints) -> RawLayer:
        state, *acts = self._split(draft.places)
        found, own = reward[draft.reward], pays[draft.pays]
        return RawLayer(
            times=tuple(times),
            row_state=state,
            row_action=np.stack(acts, axis=1),
            reward=found,
            out_row=draft.out_row,
            prob=self.out_prob[draft.outcome],
            next_state=draft.next_state,
            cost=cost[draft.cost],
            paid=found[draft.out_row] + own if own.any() else None,
        )

    def _split(self, codes: Ints) -> list[Ints]:
        """Return state and actions of places; numpy does it for at most 64 players."""
        found = []
        for size in reversed(self.shape):
            codes, part = np.divmod(codes, size)
            found.append(part)
        return found[::-1]

    def _place(self, t: int, code: int) -> str:
        state, *acts = self._split(np.array(code))
        labels = [index[int(a)] for index, a in zip(self.words.names.actions, acts, strict=True)]
        return place(t, self.words.names.states[int(state)], labels)

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
        hint = ""
        if any(rule.add is not None for rule in self.rules):
            hint = "; rules that add need something to add to, such as a first rule with reward and next for all"
        said = f"no rule gives {' and '.join(missing)}, every legal joint action needs both"
        raise InvalidGame(f"{self._place(t, code)}: {said}{hint}")
