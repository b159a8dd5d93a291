"""Games of agents that move on their own: the product of their games, with joint rules.

The states are the tuples of the agents' states that `possible` allows. The joint actions are the
tuples of their actions that `legal` allows. The agents' outcomes are drawn independently. All of it
is worked out by numpy in blocks, so memory is little more than that of the game itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame, TooLarge
from acegames.model.arrays import Bools, Growing, Ints, code_type, distinct, pointer_type, spans
from acegames.model.assemble import Names, OrderedLayer, assemble, read_costs
from acegames.model.budgets import Budgets, budgets_of, negated, read_budget
from acegames.model.checks import Label, did_you_mean, place, unknown
from acegames.model.game import MarkovGame, check_game
from acegames.model.layers import Layer, times_of
from acegames.model.numbers import TINIEST
from acegames.model.random_costs import Cost, RandomCost
from acegames.model.user_functions import BUILDING, DISCOVERING, BuildingReporter, OnBuilding, check_function, public
from acegames.system.machine import available_memory, check_memory

__all__ = ["compose"]

Rule = Callable[..., Any] | Mapping[tuple[Label, Label], Any]
Cases = dict[Label, NDArray[Any]]
"""For each player its state, or its action, in every case of a block."""

_BLOCK = 2**16
"""Outcomes, about, that are worked out at once."""
_RESERVED = 2**28
"""Rows or outcomes, at most, for which there is room before they are known."""
_CASE_BYTES = 48
"""Of one outcome while it is worked out, for each player: its action, reward, state and so on."""

_MOST_STATES = 2**31 - 1


@public("compose", progress="building", begins=DISCOVERING, memory=BUILDING)
def compose(
    agents: Iterable[MarkovGame],
    *,
    possible: Rule | None = None,
    legal: Rule | None = None,
    reward: Callable[[Cases, Cases], Any] | None = None,
    cost: Callable[[Cases, Cases, Cases], Mapping[Label, Any]] | None = None,
    budget: Mapping[Label, Any] | None = None,
    name: str = "",
    progress: OnBuilding | bool | None = None,
) -> MarkovGame:
    """Build the joint game of agents that move on their own.

    Each agent is a game of one player, built in any way, with its own states, actions, outcomes,
    rewards, costs and budgets. A state of the joint game is the tuple of the agents' states.

    Joint rules are functions of many cases at once: `s`, `a` and `next_s` are dicts that hold, for
    each player, an array with the label of its state or action in every case. Labels that are
    tuples of numbers are the rows of an array with two axes; `(s["a"] != s["b"]).any(axis=1)` then
    says where two robots are in different cells.

    Args:
        agents: games of one player each, with different players and the same horizon.
        possible: `possible(s)` is True where the agents may be in these states together. A joint
            action that leads elsewhere with any probability is not legal. Or a mask for each pair
            of players that matters: {(player, other): (S_player, S_other) bools}, in the order of
            the agents' `states`.
        legal: `legal(s, a)` is True where the joint action is allowed. Or masks: {(player, other):
            (S_player, A_player, S_other, A_other) bools}, in the order of `states`, `actions[0]`.
        reward: `reward(s, a)` gives {player: numbers}, which are added to the agents' own rewards.
        cost: `cost(s, a, next_s)` gives {constraint: numbers}, which are added to the agents' own
            costs.
        budget: {constraint: budget}, for every constraint that several agents have (their costs
            add up) or that only `cost` knows. The agents bring the other budgets.
        name: a name for people.
        progress: True for a bar, or a function that is called with a `Building` now and then, and
            after each time.

    Raises:
        InvalidGame: naming the place, the value and the rule.
        TooLarge: there are more than 2**31 joint states, or one of them has more joint actions than
            fit into memory.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    agents = _read_agents(agents)
    reporter = BuildingReporter(progress, agents[0].horizon)
    budgets = _budgets(agents, budget)
    rules = _read_rules(agents, {"possible": possible, "legal": legal, "reward": reward, "cost": cost})
    product = _Product(tuple(agents), rules)
    coders = [_Coder.of(agents, label) for label in budgets]
    for coder in coders:
        if not coder.sources and cost is None:
            meant = did_you_mean(coder.label, {str(c): c for agent in agents for c in agent.constraints})
            hint = f"; budget names {coder.label!r}{meant}" if meant else ""
            raise InvalidGame(f"constraint {coder.label!r}: no agent has costs for it; give them in cost={hint}")
    players = tuple(agent.players[0] for agent in agents)
    names = Names(players, product.labels(), tuple(agent.actions[0] for agent in agents), tuple(budgets))
    initial = product.initial(names.states)  # which is possible, so some state is
    layers: list[OrderedLayer] = []
    for numbers, times in times_of(zip(*(agent.layer_at for agent in agents), strict=True)).items():
        local = [agent.layers[k] for agent, k in zip(agents, numbers, strict=True)]
        layers.append(product.layer(times, local, coders, partial(reporter.states, times=len(times))))
    return assemble(
        names,
        layers,
        [coder.values for coder in coders],
        horizon=agents[0].horizon,
        initial=initial,
        budgets=budgets,
        name=name,
    )


def _read_agents(games: Iterable[MarkovGame]) -> tuple[MarkovGame, ...]:
    if isinstance(games, (MarkovGame, Mapping)) or not isinstance(games, Iterable):
        raise InvalidGame(f"agents: got {type(games).__name__}, must be a list of games of one player each")
    agents = tuple(games)
    if not agents:
        raise InvalidGame("agents: a game needs at least one agent")
    for k, agent in enumerate(agents):
        check_game(agent)
        if len(agent.players) != 1:
            raise InvalidGame(f"agents: game {k} has {len(agent.players)} players, an agent is a game of one player")
        if agent.tails is not None:
            raise InvalidGame(f"agents: game {k} was cut short; compose the agents first, then cut the joint game")
        if agent.horizon != agents[0].horizon:
            raise InvalidGame(f"agents: game {k} has horizon {agent.horizon}, game 0 has {agents[0].horizon}")
        if agent.players[0] in [other.players[0] for other in agents[:k]]:
            raise InvalidGame(f"agents: two games have the player {agent.players[0]!r}; give each agent's game its own")
    if math.prod(len(agent.states) for agent in agents) > _MOST_STATES:
        raise TooLarge("agents: there are more than 2**31 tuples of their states")
    return agents


def _budgets(agents: Sequence[MarkovGame], budget: Mapping[Label, Any] | None) -> Budgets:
    """Return the budgets of all constraints, those that only `budget` names last."""
    if budget is not None and not isinstance(budget, Mapping):
        raise InvalidGame(f"budget: got {budget!r}, must be {{constraint: budget}}")
    joint = read_budget(budget or {}, None, agents[0].horizon)
    again = {negated(label) for label, limit in joint.items() if limit.lower is not None}
    merged: Budgets = {}
    for agent in agents:
        for label, own in budgets_of(agent).items():
            if label in again:  # it is made again, for the sum of the costs
                continue
            if label in merged and label not in joint:
                given_names = [repr(c) + did_you_mean(c, {str(label): label}) for c in joint]
                named = f"; budget names {', '.join(given_names)}" if given_names else ""
                raise InvalidGame(
                    f"constraint {label!r}: several agents have it; rename it so that each has a budget of its own, or "
                    f"give budget={{{label!r}: ...}} for the sum of their costs{named}"
                )
            merged[label] = joint.get(label, own)
    return merged | joint


def _array(labels: tuple[Label, ...]) -> NDArray[Any]:
    """Return labels as rules get them.

    Numbers, texts and tuples of numbers (as rows) make such arrays, others arrays of objects.
    """
    plain = {type(x) for x in labels}
    if plain == {tuple}:
        parts = {type(x) for label in labels for x in label}  # type: ignore[attr-defined]
        if parts <= {int, float} and len({len(label) for label in labels}) == 1:  # type: ignore[arg-type]
            return np.array(labels)
    elif plain <= {int, float} or plain in ({str}, {bool}):
        return np.array(labels)
    objects = np.empty(len(labels), dtype=object)
    for k, label in enumerate(labels):  # a tuple is one entry
        objects[k] = label
    return objects


_Rules = dict[str, Callable[..., Any] | None]
"""The joint rules, as functions of the agents' numbers: a list of arrays for each argument."""


def _read_rules(agents: Sequence[MarkovGame], rules: Mapping[str, Any]) -> _Rules:
    states, actions = [agent.states for agent in agents], [agent.actions[0] for agent in agents]
    arguments = {
        "possible": [states],
        "legal": [states, actions],
        "reward": [states, actions],
        "cost": [states, actions, states],
    }
    players = [agent.players[0] for agent in agents]
    return {what: _rule(what, rules[what], players, takes) for what, takes in arguments.items()}


def _rule(what: str, function: Any, players: list[Label], labels: list[list[tuple[Label, ...]]]) -> Any:
    if function is None:
        return None
    if isinstance(function, Mapping) and what in ("possible", "legal"):
        return _masked(what, function, players, labels)
    if not callable(function):
        masks = " or masks for pairs of players" if what in ("possible", "legal") else ""
        raise InvalidGame(f"{what}: got {type(function).__name__}, must be a function{masks}")
    check_function(what, function, ("s", "a", "next_s")[: len(labels)], error=InvalidGame)
    arrays = [[_array(own) for own in argument] for argument in labels]

    def rule(*numbers: list[NDArray[Any]]) -> Any:
        arguments = (
            _ByPlayer({player: own[k] for player, own, k in zip(players, argument, which, strict=True)})
            for argument, which in zip(arrays, numbers, strict=True)
        )
        try:
            return function(*arguments)
        except Exception as error:
            many = "; it gets arrays of many cases: write & and | for `and` and `or`, and no `if`"
            hint = many if isinstance(error, ValueError) and "truth value of an array" in str(error) else ""
            error.add_note(f"raised by the joint rule {what}{hint}")
            raise

    return rule


class _ByPlayer(dict[Label, NDArray[Any]]):
    """What a rule gets for each player."""

    def __missing__(self, player: Any) -> Any:
        raise InvalidGame(unknown("player", player, self))


def _masked(
    what: str, masks: Mapping[Any, Any], players: list[Label], labels: list[list[tuple[Label, ...]]]
) -> Callable[..., Bools]:
    """Return a rule that holds where every mask is True."""
    read = {}
    for pair, entries in masks.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(player in players for player in pair)):
            raise InvalidGame(f"{what}: the key {pair!r}, must be a pair of players among {players!r}")
        both = [players.index(player) for player in pair]
        mask, shape = (
            _as_array(f"{what} of {pair!r}", entries),
            tuple(len(argument[i]) for i in both for argument in labels),
        )
        if mask.dtype != bool or mask.shape != shape:
            raise InvalidGame(f"{what} of {pair!r} has type {mask.dtype}, shape {mask.shape}, must be bool, {shape}")
        read[tuple(both)] = mask

    def rule(*numbers: list[NDArray[Any]]) -> Bools:
        allowed = np.ones(len(numbers[0][0]), dtype=bool)
        for both, mask in read.items():
            allowed &= mask[tuple(argument[i] for i in both for argument in numbers)]
        return allowed

    return rule


@dataclass
class _Coder:
    """Numbers the costs of one constraint: sums of what the agents and the joint rule say."""

    label: Label
    sources: list[tuple[int, int]]  # agent, and its number of this constraint
    tables: list[tuple[Cost, ...]]  # the costs of each source
    values: list[Cost] = field(default_factory=list)
    number: dict[Any, int] = field(default_factory=dict)

    @staticmethod
    def of(agents: Sequence[MarkovGame], label: Label) -> _Coder:
        sources = [(i, agent.constraints.index(label)) for i, agent in enumerate(agents) if label in agent.constraints]
        return _Coder(label, sources, [agents[i].cost_values[m] for i, m in sources])

    def codes(self, local: list[Layer], out: list[Ints], joint: Any, where: Callable[[int], str]) -> NDArray[np.int32]:
        """Return the code of each outcome, from the agents' codes and the numbers of the rule.

        `where` names the place of an outcome.
        """
        if len(self.sources) == 1 and joint is None:  # each outcome of the agent has a code of its own
            i, m = self.sources[0]
            own = np.array([self._code(cost) for cost in self.tables[0]], dtype=np.int32)[local[i].cost[:, m]]
            return np.asarray(own[out[i]])
        parts: list[NDArray[Any]] = [local[i].cost[:, m][out[i]] for i, m in self.sources]
        tables: list[Sequence[Cost]] = list(self.tables)
        if joint is not None:
            what = f"cost of {self.label!r}"
            joint_costs, codes = read_costs(joint, lambda k, problem: InvalidGame(f"{where(k)}: {what}: {problem}"))
            tables.append(joint_costs)
            parts.append(codes)
        which = np.zeros(len(out[0]), dtype=np.int64)  # of the sums so far each outcome has
        sums: list[Cost] = [Fraction(0)]
        for part, table in zip(parts, tables, strict=True):
            which *= len(table)
            which += part
            pairs, which = _occurring(which, len(sums) * len(table))
            sums = [self._plus(sums[k // len(table)], table[k % len(table)]) for k in pairs.tolist()]
        return np.array([self._code(total) for total in sums], dtype=np.int32)[which]

    def _plus(self, total: Cost, part: Cost) -> Cost:
        if total == 0 or part == 0:
            return part if total == 0 else total
        if isinstance(total, RandomCost) or isinstance(part, RandomCost):
            raise InvalidGame(f"cost of {self.label!r}: a cost that is drawn cannot be added to another")
        return total + part

    def _code(self, total: Cost) -> int:
        key = str(total) if isinstance(total, Fraction) else total
        if key not in self.number:
            self.number[key] = len(self.values)
            self.values.append(total)
        return self.number[key]


class _Product:
    """The product of the agents' games."""

    def __init__(self, agents: tuple[MarkovGame, ...], rules: _Rules) -> None:
        self.agents, self.rules = agents, rules
        self.sizes = [len(agent.states) for agent in agents]
        self.players = [agent.players[0] for agent in agents]
        self.states = self._possible_states()
        self.number = np.full(math.prod(self.sizes), -1, dtype=np.int32)  # of each tuple among the possible
        self.number[self.states] = np.arange(len(self.states), dtype=np.int32)

    def _possible_states(self) -> Ints:
        """Return the possible tuples of states, as numbers in mixed radix."""
        total = math.prod(self.sizes)
        if self.rules["possible"] is None:
            return np.arange(total)
        blocks = []
        for begin in range(0, total, _BLOCK):
            tuples = np.arange(begin, min(begin + _BLOCK, total))
            blocks.append(tuples[_bools("possible", self.rules["possible"](self.local(tuples)), len(tuples))])
        return np.concatenate(blocks)

    def local(self, tuples: Ints) -> list[Ints]:
        """Return each agent's state in these tuples."""
        return list(np.unravel_index(tuples, self.sizes))

    def labels(self) -> tuple[Label, ...]:
        """Return the labels of the possible states."""
        every = itertools.product(*(agent.states for agent in self.agents))
        return tuple(every) if self.rules["possible"] is None else tuple(itertools.compress(every, self.number >= 0))

    def initial(self, labels: tuple[Label, ...]) -> dict[Label, float]:
        """Return where the joint game begins: the agents begin independently."""
        chances: dict[Label, float] = {}
        for start in itertools.product(*(agent.initial for agent in self.agents)):
            at = int(self.number[np.ravel_multi_index([s for s, _ in start], self.sizes)])
            if at < 0:
                names = tuple(agent.states[s] for agent, (s, _) in zip(self.agents, start, strict=True))
                raise InvalidGame(f"initial: the agents begin in {names!r}, which `possible` rules out")
            chances[labels[at]] = max(math.prod(p for _, p in start), TINIEST)
        return chances

    def layer(
        self,
        times: tuple[int, ...],
        local: list[Layer],
        coders: list[_Coder],
        tell: Callable[[int, int], None],
    ) -> OrderedLayer:
        """Return what can happen at these times.

        The agents' rows are in order, so the joint ones are too.
        """
        local = [layer.apart() for layer in local]
        rows = self._at_most([layer.row_ptr for layer in local])[-1]
        work = self._at_most([layer.out_ptr[layer.row_ptr] for layer in local])
        together = int(np.diff(work, prepend=0).max(initial=0))  # of one joint state, which no block cuts
        players = len(local)
        if together > _BLOCK:
            what = f"compose: {together:,} outcomes of the joint actions of {players} players in one joint state"
            check_memory(what, _CASE_BYTES * players * together, "agents with fewer actions would help")
        if rows > _BLOCK and self.rules["legal"] is None and self.rules["possible"] is None:
            advice = "fewer states or actions would help, or rules: `possible`, `legal`"
            check_memory(f"compose: {int(rows):,} joint actions in all joint states", int(rows) * 12 * players, advice)
        cuts = np.flatnonzero(np.diff(work // _BLOCK, prepend=0))
        reserved = min(_RESERVED, available_memory() // (_CASE_BYTES * players))
        most, deep = int(min(rows, reserved)), int(min(work[-1], reserved))
        fields = {
            "row_ptr": Growing(np.int64, capacity=len(self.states) + 1),
            "action": Growing(np.int32, len(local), capacity=most),
            "reward": Growing(np.float64, len(local), capacity=most),
            "out_ptr": Growing(pointer_type(int(work[-1])), capacity=most + 1),
            "prob": Growing(np.float64, capacity=deep),
            "next_state": Growing(np.int32, capacity=deep),
            "cost": Growing(np.int8, len(coders), capacity=deep),
        }
        if any(layer.payments is not None for layer in local):
            fields["paid"] = Growing(np.float64, len(local), capacity=deep)
        for name in ("row_ptr", "out_ptr"):
            fields[name].add(np.zeros(1))
        for begin, end in itertools.pairwise(np.unique([0, *(cut + 1 for cut in cuts), len(self.states)])):
            block = _JointStates(self, local, self.local(self.states[begin:end])).arrays(times, coders)
            block["row_ptr"] += fields["action"].length
            block["out_ptr"] += fields["prob"].length
            if block["cost"].dtype.itemsize > fields["cost"].array.itemsize:
                fields["cost"].widen(block["cost"].dtype)
            for name, array in block.items():
                fields[name].add(array)
            tell(int(end), len(self.states))
        return OrderedLayer(times, **{name: grown.whole() for name, grown in fields.items()})

    def _at_most(self, ptrs: list[Ints]) -> NDArray[np.float64]:
        """Count tuples of entries as if all were allowed, cumulated over the joint states."""
        counts, after = np.ones(len(self.states)), math.prod(self.sizes)
        for ptr, size in zip(ptrs, self.sizes, strict=True):
            after //= size
            counts *= np.diff(ptr)[self.states // after % size]
        return np.cumsum(counts, out=counts)


class _JointStates:
    """The joint actions of some joint states, and their outcomes."""

    def __init__(self, product: _Product, local: list[Layer], numbers: list[Ints]) -> None:
        self.product, self.layers, self.size = product, local, len(numbers[0])
        self.state, self.row = _expand([layer.row_ptr for layer in local], numbers)  # states from 0
        self.states = [s[self.state] for s in numbers]
        if product.rules["legal"] is not None:
            allowed = product.rules["legal"](self.states, self.actions())
            self._keep(_bools("legal", allowed, len(self.state)))
        self.owner, self.out = _expand([layer.out_ptr for layer in local], self.row)
        self.next_state = self._next_states()
        if product.rules["possible"] is not None:
            impossible = self.next_state < 0
            if impossible.any():
                keep = np.ones(len(self.state), dtype=bool)
                keep[self.owner[impossible]] = False
                self._keep(keep)
                left = np.flatnonzero(keep[self.owner])
                self.owner = (np.cumsum(keep) - 1)[self.owner[left]]
                self.out = [out[left] for out in self.out]
                self.next_state = self.next_state[left]

    def _keep(self, keep: Bools) -> None:
        self.state, self.row = self.state[keep], [row[keep] for row in self.row]
        self.states = [s[keep] for s in self.states]

    def actions(self) -> list[NDArray[np.int32]]:
        """Return each agent's action in every row."""
        return [layer.action[row, 0] for layer, row in zip(self.layers, self.row, strict=True)]

    def _following(self) -> list[NDArray[np.int32]]:
        return [layer.next_state[out] for layer, out in zip(self.layers, self.out, strict=True)]

    def _next_states(self) -> NDArray[np.int32]:
        """Return the number of each outcome's next joint state; -1 where it is not possible."""
        tuples = np.zeros(len(self.owner), dtype=np.int64)
        for size, after in zip(self.product.sizes, self._following(), strict=True):
            tuples *= size
            tuples += after
        return self.product.number[tuples]

    def arrays(self, times: tuple[int, ...], coders: list[_Coder]) -> dict[str, NDArray[Any]]:
        """Return the arrays of `OrderedLayer`, without the zeros that pointers begin with."""
        prob = np.ones(len(self.owner))
        for layer, out in zip(self.layers, self.out, strict=True):
            prob *= layer.prob[out]
        own = np.stack([layer.reward[row, 0] for layer, row in zip(self.layers, self.row, strict=True)], axis=1)
        joint = self._joint_rewards()
        paid = {} if all(layer.payments is None for layer in self.layers) else {"paid": self._paid(joint)}
        return {
            **paid,
            "row_ptr": np.cumsum(np.bincount(self.state, minlength=self.size)),
            "action": np.stack(self.actions(), axis=1),
            "reward": own if joint is None else own + joint,
            "out_ptr": np.cumsum(np.bincount(self.owner, minlength=len(self.state))),
            "prob": np.maximum(prob, TINIEST),
            "next_state": self.next_state,
            "cost": self._costs(coders, partial(self._place, times)),
        }

    def _place(self, times: tuple[int, ...], outcome: int) -> str:
        """Return where an outcome belongs, for an error message."""
        row, agents = self.owner[outcome], self.product.agents
        state = tuple(agent.states[s[row]] for agent, s in zip(agents, self.states, strict=True))
        action = [agent.actions[0][a[row]] for agent, a in zip(agents, self.actions(), strict=True)]
        return place(times[0], state, action, every_t=len(times) == agents[0].horizon)

    def _joint_rewards(self) -> NDArray[np.float64] | None:
        """Return what the joint rule adds to the agents' own rewards, (R, N)."""
        if self.product.rules["reward"] is None or not len(self.state):
            return None
        rewards = np.zeros((len(self.state), len(self.layers)))
        more = self.product.rules["reward"](self.states, self.actions())
        by_player = _by_name("reward", more, self.product.players, len(rewards))
        for player, numbers in by_player.items():
            try:
                rewards[:, self.product.players.index(player)] = numbers.astype(np.float64)
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidGame(f"reward of {player!r}: not numbers ({error})") from None
        return rewards

    def _paid(self, joint: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return what each outcome pays, (K, N): the agents' own outcomes and the joint rule."""
        agents = zip(self.layers, self.row, self.out, strict=True)
        own = np.stack([layer.paid(row[self.owner], out)[:, 0] for layer, row, out in agents], axis=1)
        return own if joint is None else own + joint[self.owner]

    def _costs(self, coders: list[_Coder], where: Callable[[int], str]) -> NDArray[Any]:
        joint: Mapping[Label, Any] = {}
        if self.product.rules["cost"] is not None and len(self.owner):
            before, actions = ([x[self.owner] for x in numbers] for numbers in (self.states, self.actions()))
            answer = self.product.rules["cost"](before, actions, self._following())
            joint = _by_name("cost", answer, [coder.label for coder in coders], len(self.owner))
        columns = [coder.codes(self.layers, self.out, joint.get(coder.label), where) for coder in coders]
        table = np.empty((len(self.owner), len(coders)), code_type(max((len(c.values) for c in coders), default=0)))
        for m, column in enumerate(columns):
            table[:, m] = column
        return table


def _occurring(numbers: Ints, below: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers, in order, and which of them each number is."""
    if below > _BLOCK:  # too many to list them
        return distinct(numbers)
    occurs = np.zeros(below, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _expand(ptrs: list[Ints], lists: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """List, for each k, all tuples of entries of its lists.

    List x of agent i has the entries ptrs[i][x : x+2].

    Returns the k of each tuple, and its entries; the last entry changes fastest.
    """
    owner, entries = np.arange(len(lists[0])), list[Ints]()
    for ptr, x in zip(ptrs, lists, strict=True):
        own, first = spans(ptr[x][owner], ptr[x + 1][owner])
        owner, *entries = (np.repeat(known, np.diff(first)) for known in (owner, *entries))
        entries.append(own)
    return owner, entries


def _as_array(what: str, values: Any, dtype: Any = None) -> NDArray[Any]:
    try:
        return np.asarray(values, dtype=dtype)
    except ValueError as error:  # of lists of different lengths
        raise InvalidGame(f"{what}: not an array ({error})") from None


def _bools(what: str, answer: Any, cases: int) -> Bools:
    bools = _as_array(what, answer)
    if bools.dtype != bool or bools.shape != (cases,):
        raise InvalidGame(
            f"{what}: gave type {bools.dtype}, shape {bools.shape}, must be one True or False for each of {cases} cases"
        )
    return bools


def _by_name(what: str, answer: Any, names: Sequence[Label], cases: int) -> dict[Label, NDArray[Any]]:
    """Check {label: numbers}; a single number stands for all cases."""
    if not isinstance(answer, Mapping):
        raise InvalidGame(f"{what}: gave {type(answer).__name__}, must be a dict from {list(names)!r} to numbers")
    arrays = {}
    for label, numbers in answer.items():
        if label not in names:
            raise InvalidGame(f"{what}: gave numbers for {label!r}, there are {list(names)!r}")
        # an array of whole numbers beside floats would round them
        array = _as_array(f"{what} of {label!r}", numbers, object if isinstance(numbers, (list, tuple)) else None)
        if array.shape not in ((), (cases,)) or array.dtype.kind not in "biufO":
            raise InvalidGame(
                f"{what} of {label!r}: gave type {array.dtype}, shape {array.shape}, must be {cases} numbers, one per case"
            )
        arrays[label] = np.broadcast_to(array, (cases,))
    return arrays
