"""The tables that the rules of a game file make: at (t, state, action), the last rule counts.

Places are numbered `state * A + joint action`, A being the number of joint actions. A rule covers a
set of places. Times at which the same rules apply share one table. Cost: the places that rules
cover, sorted, per distinct table.

What rules `add` comes on top, wherever in the file they stand. A sum is a vector to begin with (a
*base*: the cost of an outcome, a reward) and the rules that add to it. Sums are exact and do not
depend on the order of the rules: only what all rules have made of a place is judged, and a reward
is rounded to a float then. Cost: one addition per different sum, however many places have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import InvalidGame
from acegames.files.rule_doubts import Overlaps
from acegames.files.rules import PARTS, STAY, Rule, Vocabulary
from acegames.model.arrays import Bools, Floats, Ints, owners, pointers, spans
from acegames.model.assemble import RawLayer, code_costs
from acegames.model.checks import place
from acegames.model.layers import Moves, changes, follow
from acegames.model.numbers import exact
from acegames.model.random_costs import Cost, RandomCost
from acegames.system.limits import DIGITS, EXPANDED, SUMS


@dataclass(frozen=True)
class _RuleTable:
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
            "reward": RuleSums("reward", len(rules) + 1),
            "cost": RuleSums("cost", len(flat)),
            "pays": RuleSums("reward", len(flat)),
        }
        self.replaced = Overlaps(rules, self.shape, words.horizon)
        self.adding_nothing = {k for k, rule in enumerate(rules) if rule.add is not None}  # once `layers` was called
        self.never_entered: set[int] = set()  # states that nothing leads to, likewise

    def layers(self, start: Bools) -> tuple[list[RawLayer], list[list[Cost]]]:
        """Return raw layers that cover every time, and the cost values that they are coded by.

        Raises:
            InvalidGame: a legal joint action of a state that can occur lacks outcomes or rewards.
        """
        always = [k for k, rule in enumerate(self.rules) if rule.times is None]
        applying = [sorted([*always, *active]) for active in self.groups]
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
        """Return how many numbers each rule puts into a table; InvalidGame where they are too
        many.
        """
        wide, deep = 2 + len(self.words.players), 3 + len(self.words.constraints)
        numbers = []
        for rule in self.rules:
            places = math.prod(map(len, self._sides(rule)))
            numbers.append(places * (wide + deep * len(rule.outcomes or ())))
            if numbers[-1] > EXPANDED:
                raise InvalidGame(f"rule {rule.number}: speaks of {places} joint actions, {_TOO_MANY}")
        return numbers

    def _places(self, rule: Rule) -> Ints:
        codes = np.zeros(1, dtype=np.int64)
        for side, size in zip(self._sides(rule), self.shape, strict=True):
            codes = (codes[:, None] * size + np.array(side)).reshape(-1)
        return codes

    def _equal_times(self, numbers: list[int]) -> dict[tuple[int, ...], list[int]]:
        """Return the times at which the same rules apply, by the numbers of those that depend on
        time.
        """
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

    def _table(self, applying: list[int], time: int) -> _RuleTable:
        covered = [np.empty(0, dtype=np.int64), *(self.places[k] for k in applying)]
        places, at = np.unique(np.concatenate(covered), return_inverse=True)
        rule = np.repeat(np.array(applying, dtype=np.int64), list(map(len, covered[1:])))
        owner = {part: np.full(len(places), -1) for part in PARTS}
        for part, gives in self.gives.items():
            own, there = rule[gives[rule]], at[gives[rule]]
            np.maximum.at(owner[part], there, own)  # the last rule counts
            self.replaced.look(part, own, owner[part][there], places[there], time)
        default = np.full(len(places), True) if self.default_legal else owner["outcomes"] >= 0
        legal = np.where(owner["legal"] >= 0, self.legal_value[owner["legal"]], default)
        lacking = np.zeros(self.shape[0], dtype=bool)
        if self.default_legal:
            lacking = np.bincount(places // self.joint, minlength=self.shape[0]) < self.joint
        pays = self.pays[owner["outcomes"]]
        table = _RuleTable(places, legal, owner["outcomes"], owner["reward"], pays, lacking)
        lacking[places[legal & ~table.complete] // self.joint] = True
        return table

    def _draft(self, table: _RuleTable, applying: list[int]) -> _Draft:
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
        """Add what a rule adds to a draft, in place."""
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
        base, own = reward[draft.reward], pays[draft.pays]
        return RawLayer(
            times=tuple(times),
            row_state=state,
            row_action=np.stack(acts, axis=1),
            reward=base,
            out_row=draft.out_row,
            prob=self.out_prob[draft.outcome],
            next_state=draft.next_state,
            cost=cost[draft.cost],
            paid=base[draft.out_row] + own if own.any() else None,
        )

    def _split(self, codes: Ints) -> list[Ints]:
        """Split the numbers of places into state and actions; numpy does it for at most 64
        players.
        """
        parts = []
        for size in reversed(self.shape):
            codes, part = np.divmod(codes, size)
            parts.append(part)
        return parts[::-1]

    def place(self, t: int, code: int) -> str:
        """Return a place as messages name it."""
        state, *acts = self._split(np.array(code))
        labels = [index[int(a)] for index, a in zip(self.words.names.actions, acts, strict=True)]
        return place(t, self.words.names.states[int(state)], labels)

    def _report(self, t: int, state: int, table: _RuleTable) -> None:
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
        raise InvalidGame(f"{self.place(t, code)}: {said}{hint}")


# -- sums of what rules add ------------------------------------------------------------------------


class RuleSums:
    """The numbers of the sums of one kind: bases come first, then sums as they are found."""

    def __init__(self, kind: str, bases: int) -> None:
        self.kind, self.bases = kind, bases
        self.after: dict[tuple[int, int], int] = {}  # {(a sum, the rule that adds to it): the new sum}

    def add(self, rule: int, sums: Ints) -> Ints:
        """Return the numbers of the sums that result where a rule adds to these."""
        before, which = np.unique(sums, return_inverse=True)
        after = [self.after.setdefault((k, rule), self.bases + len(self.after)) for k in before.tolist()]
        if len(self.after) > SUMS:
            raise InvalidGame(f"rules: what they add makes more than {SUMS} different sums; use arrays")
        return np.array(after, dtype=np.int64)[which]

    def vectors(
        self, bases: Sequence[Sequence[Any]], rules: Sequence[Rule], used: Iterable[Ints]
    ) -> list[tuple[Cost, ...]]:
        """Return the vector of each sum that is not a base, in their order; zeros where no place
        has it.

        `used`: the sums that places have when every rule has been counted.
        """
        known: dict[int, tuple[_PartialSum, ...]] = {}
        for (before, k), number in self.after.items():
            start = known[before] if before in known else tuple(_NOTHING.plus(x, None) for x in bases[before])
            added = getattr(rules[k].add, self.kind)
            known[number] = tuple(own.plus(x, rules[k].number) for own, x in zip(start, added, strict=True))
        final = np.zeros(self.bases + len(known), dtype=bool)
        for sums in used:
            final[sums] = True
        return [
            tuple(part.settled(self.kind) if final[number] else Fraction(0) for part in parts)
            for number, parts in known.items()
        ]


def summed_floats(sums: RuleSums, bases: Floats, rules: Sequence[Rule], used: Iterable[Ints]) -> Floats:
    """Return the bases, followed by the nearest floats of all sums."""
    if not sums.after:
        return bases
    vectors: Any = sums.vectors(bases.tolist(), rules, used)
    try:
        return np.concatenate([bases, np.array([[float(x) for x in vector] for vector in vectors])])
    except OverflowError:
        raise InvalidGame("rules: what they add makes a reward that is too large for a float") from None


class _PartialSum(NamedTuple):
    """One component of a sum that is not complete yet."""

    number: Fraction
    denominator: int  # a common one of all numbers, to refuse sums that grow without end
    drawn: tuple[RandomCost, ...]  # two stand for more
    rule: int | None  # the last one that added something

    def plus(self, amount: Any, rule: int | None) -> _PartialSum:
        """Add a number or a distribution."""
        if amount == 0 or self.denominator > _LONGEST:
            return self
        if isinstance(amount, RandomCost):
            return self._replace(drawn=(*self.drawn[:1], amount), rule=rule)
        added = exact(amount)
        return _PartialSum(self.number + added, math.lcm(self.denominator, added.denominator), self.drawn, rule)

    def settled(self, kind: str) -> Cost:
        """Return the complete sum; InvalidGame where there is none."""
        try:
            if self.drawn and (self.number or len(self.drawn) > 1):
                raise ValueError(
                    "meets another cost; one given by a distribution cannot be added up, set it in one rule"
                )
            if self.denominator > _LONGEST:
                raise ValueError(f"the common denominator has more than {DIGITS} digits")
            return self.drawn[0] if self.drawn else exact(self.number)
        except ValueError as error:
            raise InvalidGame(f"rule {self.rule}: add: {kind}: {error}") from None


_NOTHING = _PartialSum(Fraction(0), 1, (), None)
_LONGEST = 10**DIGITS
