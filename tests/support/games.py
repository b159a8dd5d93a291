"""Small games that several test files play, and small things that they ask of games and policies."""

from __future__ import annotations

import functools

import numpy as np

import acegames as ace
from acegames.model.numbers import exact


class ByFunction:
    """A policy that is a function of (t, state, spent)."""

    def __init__(self, function):
        self.distribution = function


class Changed:
    """A policy with another distribution at one pair."""

    def __init__(self, policy, where, distribution):
        self.policy, self.where, self.answer = policy, where, distribution
        self.tracker = getattr(policy, "tracker", None)

    def distribution(self, t, state, spent):
        changed = (t, state, tuple(map(exact, spent))) == self.where
        return dict(self.answer) if changed else self.policy.distribution(t, state, spent)


class Singly:
    """A policy that is asked pair by pair."""

    def __init__(self, policy):
        self.policy, self.tracker = policy, policy.tracker

    def distribution(self, t, state, spent):
        return self.policy.distribution(t, state, spent)


class Table:
    """A policy from {(t, state) or (t, state, spent): a joint action or a distribution}."""

    def __init__(self, table):
        self.table = table

    def distribution(self, t, state, spent):
        key = (t, state, tuple(map(exact, spent)))
        answer = self.table[key] if key in self.table else self.table[t, state]
        return answer if isinstance(answer, dict) else {answer: 1.0}


def anything_safe(game):
    """A policy that plays every feasible joint action with the same probability."""
    reached = ace.feasibility(game)
    return ByFunction(lambda t, s, c: dict.fromkeys(safe := reached.actions(t, s, c), 1 / len(safe)))


def pairs(game):
    """Every (t, state, spent) that safe play reaches."""
    reached = ace.feasibility(game)
    return [(t, s, c) for t in range(game.horizon) for s, c in reached.states(t)]


def solo(outcomes, *, horizon, budget, initial="s", reward=lambda t, s, a: 0.0, actions=("x", "y")):
    """One player; outcomes(t, s, a) and reward(t, s, a) get a bare label a."""
    return ace.MarkovGame.from_functions(
        players=["me"],
        actions=lambda t, s: [actions],
        outcomes=lambda t, s, a: outcomes(t, s, a[0]),
        reward=lambda t, s, a: [reward(t, s, a[0])],
        budget=budget,
        horizon=horizon,
        initial=initial,
    )


def one_state(players, actions, cost, reward, *, horizon=1, budget=None, state="s", **more):
    """Play that stays in one state: each player's own actions, cost(t, a) and reward(t, a)."""
    return ace.MarkovGame.from_functions(
        players=players,
        horizon=horizon,
        initial=state,
        budget=budget,
        actions=lambda t, s: actions,
        outcomes=lambda t, s, a: [(1.0, s, cost(t, a))],
        reward=lambda t, s, a: reward(t, a),
        **more,
    )


def one_stage(cells, cost=None, budget=None):
    """Two players who play once, from {joint action: rewards} and perhaps {joint action: cost}."""
    own = [sorted({a[i] for a in cells}) for i in (0, 1)]
    spending = (cost or {}).get
    return one_state(
        ["p", "q"],
        own,
        lambda t, a: spending(a),
        lambda t, a: cells[a],
        budget=budget,
        legal=lambda t, s, a: a in cells,
    )


def delivery(reward=lambda t, s, a: [a[0] == "drive"]):
    """What can be done depends on the state; a gust costs more; the depot refuels; the budget changes."""
    return ace.MarkovGame.from_functions(
        players=["van"],
        horizon=5,
        initial={"depot": 0.5, "town": 0.5},
        budget={"fuel": [3, 2, 3, 3, 2]},
        actions=lambda t, s: [("rest", "fill", "drive")] if s == "depot" else [("rest", "drive")],
        outcomes=lambda t, s, a: (
            [(0.75, "town", 1), (0.25, "depot", 2)] if a[0] == "drive" else [(1, s, -2 if a[0] == "fill" else 0)]
        ),
        reward=reward,
    )


OWN = object()


def rest_of(game, t=0, state=None, budget=OWN, cost=None):
    """The game from `t` on, begun in `state`, built anew from what it says of itself; by default with its own budgets.

    `cost(layer, outcome)`, by their numbers, may say what outcomes cost now.
    """

    def own_cost(k, out):
        return [v[code] for v, code in zip(game.cost_values, game.layers[k].cost[out], strict=True)]

    budget = [list(row) for row in game.budgets[t:]] if budget is OWN else budget
    budget = budget if game.constraints else None
    moves = {
        (u, s): {game.joint_action(game.layer(u).action[r]): r for r in game.layer(u).rows(k)}
        for u in range(t, game.horizon)
        for k, s in enumerate(game.states)
    }

    def outcomes(u, s, a):
        layer = game.layer(t + u)
        for k in range(*layer.outcomes(moves[t + u, s][a]).indices(len(layer.prob))):
            paid = (cost or own_cost)(game.layer_at[t + u], k) if budget else None
            yield layer.prob[k], game.states[layer.next_state[k]], paid

    return ace.MarkovGame.from_functions(
        players=game.players,
        horizon=game.horizon - t,
        initial={game.states[s]: p for s, p in game.initial} if state is None else state,
        actions=lambda u, s: game.actions,
        legal=lambda u, s, a: a in moves[t + u, s],
        outcomes=outcomes,
        reward=lambda u, s, a: game.layer(t + u).reward[moves[t + u, s][a]],
        budget=budget,
    )


def with_budget(game, budget, cost=None):
    """The game with another budget, or with no constraints at all; see `rest_of`."""
    return rest_of(game, budget=budget, cost=cost)


@functools.cache
def crossing():
    """A solved game in which both players mix."""
    return ace.solve(ace.catalog.get("intersection"), ace.Nash())


def doubling(horizon):
    """Costs double each step and only the end counts: of 2**horizon totals a few can still be kept."""
    return one_state(
        ["me"],
        [("spend", "save")],
        lambda t, a: 2**t * (a[0] == "spend"),
        lambda t, a: [a[0] == "spend"],
        horizon=horizon,
        budget={"c": ace.almost_sure(3)},
    )


def spending(*choices, budget, horizon, cost=sum, players=("p",), reward=lambda action: [0.0] * len(action)):
    """Play that stays in one state, in which `choices` are each player's actions and `cost(action)` what they cost."""
    return one_state(players, choices, lambda t, a: cost(a), lambda t, a: reward(a), horizon=horizon, budget=budget)


def alone(outcomes, *, actions=("go",), reward=None, **changed):
    """One player who chooses among `actions` in one state, for two steps; what is given replaces any of it.

    `actions` may be a function, too; so may `reward`, or it is {action: what it pays}, or None where there is nothing to win.
    """
    offered = actions if callable(actions) else lambda s: [actions]
    paid = reward if callable(reward) else lambda s, a: [float((reward or {}).get(a[0], 0))]
    rules = {"players": ["p"], "horizon": 2, "initial": "s", "actions": offered, "reward": paid}
    return ace.MarkovGame.from_functions(outcomes=outcomes, **rules | changed)


def rover(battery, **more):
    """One who drives, which drains one or two, charges two, or waits."""
    spent = {"go": (1, 2), "charge": (-2, -2), "wait": (0, 0)}
    rules = {"players": ["rover"], "initial": "field", "horizon": 5, "budget": {"battery": battery}, **more}
    return alone(lambda s, a: [(0.5, s, c) for c in spent[a[0]]], actions=tuple(spent), reward={"go": 1}, **rules)


class Frame:
    """As little of a data frame as is asked for."""

    def __init__(self, columns):
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name):
        return self._columns[name]


def deliveries(*, timed=False):
    """Who delivers is paid and the state says so; a bonus comes with the same next state or does not."""

    def outcomes(t, s, a):
        scale = t + 1 if timed else 1
        won = [(0.25, 1, 1, (10 * scale,) * 2), (0.25, 0, 0, (3,) * 2), (0.5, 0, 0, (0,) * 2)]
        return won if s == 0 else [(1, 0, 0, (-scale,) * 2)]

    return ace.MarkovGame.from_functions(
        players=["p0", "p1"],
        actions=lambda t, s: [["x", "y"]] * 2,
        outcomes=outcomes,
        horizon=4,
        initial=0,
        budget={"c": 4},
    )


def check_maximal(mask, sets):
    """A product of sets of actions is safe, no player is without an action, and no action can be added."""
    assert mask[np.ix_(*sets)].all() and all(own.any() for own in sets)
    for i, own in enumerate(sets):
        for a in np.flatnonzero(~own):
            more = [m.copy() for m in sets]
            more[i][a] = True
            assert not mask[np.ix_(*more)].all()
