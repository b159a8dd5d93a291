"""A brute-force oracle: slow, obvious code, independent of the solver. It reads only the `MarkovGame` record.

Everything is exact. Costs are rationals, made whole numbers by the common denominator of their constraint. Rewards and
probabilities are the simple rationals that their floats stand for (0.1 is one tenth), so that ties are ties: which equilibria
a stage has can hang on one.

    feasible_sets     truth by recursion over (t, s, spent), then a forward walk through TRUE actions     (spec 2)
    check_feasible    whether the library says the same
    minimal_budgets   by testing candidate budgets, not by the antichain recursion                        (spec 2)
    stage_value       the stage program of spec 4, lexicographically                                      (spec 4)
    root_values       backward induction with it
    deviation_gains   the largest gains by feasible deviations from a given policy, by definition         (spec 7)
    gains_and_stakes  the same in every situation, and what is at stake there                             (spec 7)
    counting          the game whose states remember what a policy counts instead of true costs           (spec 5)
    realised          where play by a given policy can be
    is_history        whether play by a given policy can go a certain way
    random_game       small games that cover the model; `games()` wraps it for hypothesis
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import acegames as ace
from acegames.model.budgets import reservoir
from acegames.model.game import MarkovGame
from acegames.model.numbers import exact

INF = math.inf
NOTHING = Fraction(1, 2**80)  # reduced costs below this are what `shorten` left of a tie


# -- the game, spelled out --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    action: tuple  # indices, one per player
    reward: tuple  # Fractions, one per player
    outcomes: tuple  # (probability, next state, cost in whole units)


@dataclass(frozen=True)
class Spelled:
    moves: list  # [t][s] -> list of Move
    budgets: list  # [t] -> tuple of ints or inf
    unit: tuple  # cost = whole number / unit, per constraint
    initial: tuple  # (state, probability)
    horizon: int
    width: int  # number of constraints
    players: int
    start: tuple  # spent at the beginning, whole units
    stored: tuple  # whether the constraint is a reservoir (spec 11)

    def cost(self, whole):
        return tuple(Fraction(c, u) for c, u in zip(whole, self.unit, strict=True))

    def after(self, spent, cost):
        """What is spent after one more cost, in any unit: a reservoir is never more than full."""
        total = add(spent, cost)
        return tuple(max(x, 0) if full else x for x, full in zip(total, self.stored, strict=True))


def spell_out(game: MarkovGame) -> Spelled:
    width = len(game.constraints)
    unit = []
    for m in range(width):
        numbers = [*game.cost_values[m], *(row[m] for row in game.budgets if row[m] != INF), game.spent_at_start[m]]
        numbers += [reservoir.capacity for reservoir in game.reservoirs[m : m + 1] if reservoir]
        unit.append(math.lcm(*(x.denominator for x in numbers)))

    def whole(x, m):
        return INF if x == INF else int(x * unit[m])

    def layer_moves(layer):
        moves = []
        for s in range(len(game.states)):
            moves.append([])
            for r in layer.rows(s):
                outs = []
                for k in range(int(layer.out_ptr[r]), int(layer.out_ptr[r + 1])):
                    cost = tuple(whole(game.cost_values[m][layer.cost[k, m]], m) for m in range(width))
                    outs.append((rational(float(layer.prob[k])), int(layer.next_state[k]), cost))
                action = tuple(int(a) for a in layer.action[r])
                reward = tuple(rational(float(x)) for x in layer.reward[r])
                moves[-1].append(Move(action, reward, tuple(outs)))
        return moves

    spelled = [layer_moves(layer) for layer in game.layers]
    budgets = [tuple(whole(b, m) for m, b in enumerate(row)) for row in game.budgets]
    start = tuple((s, rational(p)) for s, p in game.initial)
    moves = [spelled[k] for k in game.layer_at]
    spent = tuple(whole(x, m) for m, x in enumerate(game.spent_at_start))
    stored = tuple(x is not None for x in game.reservoirs)
    return Spelled(moves, budgets, tuple(unit), start, game.horizon, width, len(game.players), spent, stored)


def counting(g: Spelled, count) -> Spelled:
    """Return the game of the states (s, counted), where a policy takes a true cost for `count(cost)`."""

    class States(dict):
        def __init__(self, moves):
            self.of = moves

        def __missing__(self, state):
            s, counted = state
            self[state] = [
                replace(m, outcomes=tuple((p, (s2, g.after(counted, count(g.cost(d)))), d) for p, s2, d in m.outcomes))
                for m in self.of[s]
            ]
            return self[state]

    initial = tuple(((s, g.cost(g.start)), p) for s, p in g.initial)
    return replace(g, moves=[States(moves) for moves in g.moves], initial=initial)


def rational(x: float) -> Fraction:
    """Return the simple fraction that a float stands for, or else what it is."""
    simple = Fraction(x).limit_denominator(10**6)
    return simple if abs(simple - Fraction(x)) < 1e-13 else Fraction(x)


def add(c, d):
    return tuple(x + y for x, y in zip(c, d, strict=True))


def within(c, b):
    return all(x <= y for x, y in zip(c, b, strict=True))


# -- feasibility ------------------------------------------------------------------------------------------------


def truth(g: Spelled, budgets):
    """Return `node(t, s, c)` and `move(t, c, m)`: is the OR node TRUE, is the AND node TRUE."""

    @functools.cache
    def node(t, s, c):
        return t == g.horizon or any(move(t, c, m) for m in g.moves[t][s])

    def move(t, c, m):
        return all(within(g.after(c, d), budgets[t]) for _, _, d in m.outcomes) and all(
            node(t + 1, s, g.after(c, d)) for _, s, d in m.outcomes
        )

    return node, move


def feasible_nodes(g: Spelled):
    """Return {(t, s, c): list of TRUE moves} over what feasible policies reach; None when infeasible."""
    node, move = truth(g, g.budgets)
    if not all(node(0, s, g.start) for s, _ in g.initial):
        return None
    nodes = {}
    here = {(s, g.start) for s, _ in g.initial}
    for t in range(g.horizon):
        for s, c in here:
            nodes[t, s, c] = [m for m in g.moves[t][s] if move(t, c, m)]
        here = {(s2, g.after(c, d)) for s, c in here for m in nodes[t, s, c] for _, s2, d in m.outcomes}
    return nodes


def feasible_sets(game: MarkovGame):
    """Return (feasible, FS, FA): FS[t] a set of (state index, cost), FA[t, s, c] a frozenset of joint action indices."""
    g = spell_out(game)
    nodes = feasible_nodes(g)
    fs = [set() for _ in range(g.horizon)]
    fa = {}
    for (t, s, c), moves in (nodes or {}).items():
        fs[t].add((s, g.cost(c)))
        fa[t, s, g.cost(c)] = frozenset(m.action for m in moves)
    return nodes is not None, fs, fa


def check_feasible(game: MarkovGame):
    """Assert that `acegames.feasibility` finds the same situations and actions, each once; return what `feasible_sets` does."""
    (feasible, fs, fa), answer = feasible_sets(game), ace.feasibility(game)
    assert (answer.feasible, answer.pairs) == (feasible, sum(map(len, fs)))
    for t in range(game.horizon + (not feasible)):
        listed = [(game.state_index(s), tuple(map(exact, c))) for s, c in answer.states(t)]
        assert len(listed) == len(set(listed)) and set(listed) == (fs[t] if feasible else set())
        for s, c in listed:
            joint = [game.action_indices(a) for a in answer.actions(t, game.states[s], c)]
            assert len(joint) == len(set(joint)) and set(joint) == fa[t, s, c]
    return feasible, fs, fa


def minimal_budgets(game: MarkovGame) -> set:
    """Return the minimal b such that b + (B_t - B_ref) is feasible, B_ref the last finite entry of each constraint.

    Of a reservoir, B_ref is the capacity; one that starts full starts full with any capacity, else at the level that is
    given, or full where the capacity is smaller.
    """
    g = spell_out(game)
    finite = [[row[m] for row in g.budgets if row[m] != INF] for m in range(g.width)]
    ref = [f[-1] if f else None for f in finite]
    for m, full in enumerate(game.reservoirs):
        if full:
            ref[m] = int(full.capacity * g.unit[m])

    def start(b):
        missing = [max(b[m] - (ref[m] - g.start[m]), 0) if g.start[m] else 0 for m in range(g.width)]
        return tuple(x if full else 0 for x, full in zip(missing, g.stored, strict=True))

    def feasible(b):
        shifted = [
            tuple(INF if g.budgets[t][m] == INF else b[m] + g.budgets[t][m] - ref[m] for m in range(g.width))
            for t in range(g.horizon)
        ]
        node, _ = truth(g, shifted)
        return all(node(0, s, start(b)) for s, _ in g.initial)

    candidates = [set() for _ in range(g.width)]  # a minimal b is tight somewhere: b + B_t - B_ref = a total cost
    here = {(s, g.start) for s, _ in g.initial}
    for t in range(g.horizon):
        here = {(s2, g.after(c, d)) for s, c in here for m in g.moves[t][s] for _, s2, d in m.outcomes}
        for _, c in here:
            for m in range(g.width):
                if g.budgets[t][m] != INF:
                    candidates[m].add(c[m] - (g.budgets[t][m] - ref[m]))
    for m in range(g.width):
        if g.stored[m]:  # the least one may depend on the level at the beginning: try all
            reserve = max(ref[m] - row[m] for row in g.budgets)
            candidates[m] = set(range(reserve, max(ref[m], 0, *candidates[m]) + 1))
    sorted_candidates = [sorted(c) if c else [INF] for c in candidates]
    most = tuple(c[-1] for c in sorted_candidates)
    for m in range(g.width):  # what is infeasible even with plenty of everything else is no candidate
        while sorted_candidates[m] and not feasible((*most[:m], sorted_candidates[m][0], *most[m + 1 :])):
            sorted_candidates[m].pop(0)
    good = []
    for b in itertools.product(*sorted_candidates):  # lexicographic order: what is below b comes before b
        if not any(within(x, b) for x in good) and feasible(b):
            good.append(b)
    return {tuple(x if x == INF else Fraction(x, u) for x, u in zip(b, g.unit, strict=True)) for b in good}


# -- stage games ------------------------------------------------------------------------------------------------


def incentive_rows(X, u, kind, floor):
    """Rows of expected gains over sigma on X, each to be <= 0: one per deviation (spec 4, with the finite floor)."""
    n = len(X[0])
    utilities = dict(zip(X, u, strict=True))
    rows = []
    for i in range(n):
        low = min(v[i] for v in u) - floor * (max(v[i] for v in u) - min(v[i] for v in u))
        own = sorted({a[i] for a in X})

        def gain(a, b, i=i, low=low):
            other = (*a[:i], b, *a[i + 1 :])
            return (utilities[other][i] if other in utilities else low) - utilities[a][i]

        for b in own:
            if kind == "CCE":
                rows.append([gain(a, b) for a in X])
            else:
                rows += [[gain(a, b) if a[i] == heard else 0 for a in X] for heard in own if heard != b]
    return rows


def program(X, u, kind, objective, floor):
    """Return (levels, rows): maximise the levels in turn over sigma (and one extra variable) >= 0, rows <= 0, sigma sums to 1."""
    n = len(X[0])
    rows = [[*row, 0] for row in incentive_rows(X, u, kind, floor)]
    by_player = [[v[i] for v in u] for i in range(n)]
    ties = [[*by_player[i], 0] for i in range(n)]
    if objective == "egalitarian":  # extra = worst utility - least utility anywhere; extra <= u_i - least
        least = min(min(x) for x in by_player)
        rows += [[*(least - x for x in by_player[i]), 1] for i in range(n)]
        first = [0] * len(X) + [1]
    elif objective == "fair":  # extra = gap; u_i - u_j <= extra
        rows += [
            [*(x - y for x, y in zip(by_player[i], by_player[j], strict=True)), -1]
            for i in range(n)
            for j in range(n)
            if i != j
        ]
        first = [0] * len(X) + [-1]
    else:  # N weights
        first = [sum(w * x for w, x in zip(objective, v, strict=True)) for v in u] + [0]
    return [first, *ties], rows


def lexicographic_simplex(levels, rows, size):
    """Exact tableau simplex with Bland's rule; reduced costs are vectors compared lexicographically, so one run does all levels.

    Columns: `size` probabilities, the extra variable, one slack per row, one artificial for "sums to one", whose removal is level 0.
    """
    cols = size + 1
    total = cols + len(rows) + 1
    table = [
        [Fraction(x) for x in row] + [Fraction(int(k == j)) for j in range(len(rows))] + [Fraction(0)] * 2
        for k, row in enumerate(rows)
    ]
    table.append([Fraction(1)] * size + [Fraction(0)] * (1 + len(rows)) + [Fraction(1), Fraction(1)])
    basis = [*range(cols, cols + len(rows)), total - 1]
    costs = [[*table[-1][:-2], Fraction(0), Fraction(1)]]  # minus the artificial, priced out
    costs += [[Fraction(x) for x in level] + [Fraction(0)] * (len(rows) + 2) for level in levels]
    zero = [0] * len(costs)
    while True:
        enter = next((j for j in range(total - 1) if [c[j] if abs(c[j]) > NOTHING else 0 for c in costs] > zero), None)
        if enter is None:
            break
        ratios = [(row[-1] / row[enter], basis[k], k) for k, row in enumerate(table) if row[enter] > 0]
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        table[leave] = [x / pivot for x in table[leave]]
        for row in [*table[:leave], *table[leave + 1 :], *costs]:
            factor = row[enter]
            if factor:
                row[:] = [x - factor * y if y else x for x, y in zip(row, table[leave], strict=True)]
        basis[leave] = enter
    sigma = [Fraction(0)] * total
    for k, j in enumerate(basis):
        sigma[j] = table[k][-1]
    assert sigma[total - 1] == 0, "the stage program has no solution, against spec 4"
    return sigma[:size]


def stage_value(X, u, kind, objective, floor=1):
    """Return (utilities, sigma) of the stage equilibrium that spec 4 selects.

    X: joint actions (tuples); u: one utility vector per joint action; kind: "CE" or "CCE"; objective: "welfare",
    "egalitarian", "fair" or N weights.
    """
    n = len(X[0])
    if isinstance(objective, str) and objective == "welfare":
        objective = (1,) * n
    levels, rows = program(X, u, kind, objective, Fraction(floor))
    sigma = lexicographic_simplex(levels, rows, len(X))
    return tuple(sum(p * v[i] for p, v in zip(sigma, u, strict=True)) for i in range(n)), sigma


# -- the whole game ---------------------------------------------------------------------------------------------


def read_concept(game, concept):
    """Return (kind, objective, floor) of a concept record, with a player made weights."""
    objective = concept.objective
    if objective in ("welfare", "egalitarian", "fair"):
        return type(concept).__name__, objective, Fraction(concept.floor)
    if objective in game.players:
        objective = [int(p == objective) for p in game.players]
    return type(concept).__name__, tuple(Fraction(w) for w in objective), Fraction(concept.floor)


def all_values(game: MarkovGame, concept) -> dict:
    """Return {(t, s, c): the players' values} over FS; empty when infeasible."""
    kind, objective, floor = read_concept(game, concept)
    g = spell_out(game)
    nodes = feasible_nodes(g) or {}
    value = {}
    for t, s, c in sorted(nodes, key=lambda key: -key[0]):
        moves = nodes[t, s, c]
        u = [q_value(g, value, t, c, m) for m in moves]
        chosen, _ = stage_value([m.action for m in moves], u, kind, objective, floor)
        value[t, s, c] = tuple(shorten(x) for x in chosen)
    return {(t, s, g.cost(c)): v for (t, s, c), v in value.items()}


def shorten(x: Fraction) -> Fraction:
    """Return x, or, where its digits have grown past all use, the nearest multiple of 2^-120."""
    return x if x.denominator < 2**240 else Fraction(round(x * 2**120), 2**120)


def q_value(g, value, t, c, m):
    """Reward plus expected continuation, per player."""
    q = list(m.reward)
    if t + 1 < g.horizon:
        for p, s2, d in m.outcomes:
            q = [x + p * y for x, y in zip(q, value[t + 1, s2, g.after(c, d)], strict=True)]
    return tuple(q)


def root_values(game: MarkovGame, concept):
    """Return the players' values at the start, averaged over initial states; None when infeasible."""
    value = all_values(game, concept)
    if not value:
        return None
    start = game.spent_at_start
    return tuple(sum(rational(p) * value[0, s, start][i] for s, p in game.initial) for i in range(len(game.players)))


def deviation_gains(game: MarkovGame, policy: dict, kind: str):
    """Judge a policy {(t, s, c): {joint action indices: probability}} given on all of FS, by the definitions of spec 7.

    Return (safe, gains): whether it stays inside FA everywhere on FS, and, if so, each player's largest W_i - V_i over FS.
    """
    players = gains_and_stakes(game, policy, kind)
    return (True, [max(gain for gain, _ in each.values()) for each in players]) if players else (False, None)


def gains_and_stakes(game: MarkovGame, policy: dict, kind: str):
    """The same situation by situation: for each player {(t, s, c): (W_i - V_i, stake_i)}, exact; None where the policy leaves FA."""
    g = spell_out(game)
    nodes = feasible_nodes(g)
    if not all(
        a in {m.action for m in moves} for (t, s, c), moves in nodes.items() for a in played(policy[t, s, g.cost(c)])
    ):
        return None
    found = judge(g, nodes, lambda t, s, c: policy[t, s, g.cost(c)], kind)
    return [{(t, s, g.cost(c)): pair for (t, s, c), pair in each.items()} for each in found]


def table_of(game: MarkovGame, policy) -> dict:
    """Return what a policy plays on all of FS, by indices of states and joint actions."""
    _, reached, _ = feasible_sets(game)
    return {(t, s, c): by_indices(game, policy, t, s, c) for t, here in enumerate(reached) for s, c in here}


def by_indices(game: MarkovGame, policy, t, s, c) -> dict:
    """Return a policy's distribution over indices of joint actions, at the number of a state."""
    return {game.action_indices(a): p for a, p in policy.distribution(t, game.states[s], c).items()}


def played(answer):
    """Return an answer without what is not played, summing to one, exactly."""
    heard = {a: Fraction(p) for a, p in answer.items() if p > 0}
    return {a: p / sum(heard.values()) for a, p in heard.items()}


def judge(g: Spelled, nodes, policy, kind: str):
    """Return for each player {node: (W_i - V_i, stake_i)} of a policy, asked by (t, s, c), that may leave the safe moves of the nodes.

    W_i is the best value of a deviation that is feasible now and ever after, -inf where there is none. At each step the deviator
    follows, or plays, under CCE and Nash, one action whatever is recommended; under CE it may choose an action for each
    recommendation. The stake is the best total that safe play can bring, less the worst that the policy can by what it plays with
    at least 1e-8.
    """
    sigma = functools.cache(lambda *key: played(policy(*key)))

    def legal(key, a):
        return next(m for m in g.moves[key[0]][key[1]] if m.action == a)

    def safe(key, a):
        return next((m for m in nodes[key] if m.action == a), None)

    def expected(key, m, i, after):
        """Reward plus the expected value of `after`."""
        t, _, c = key
        total = sum(p for p, _, _ in m.outcomes)
        return m.reward[i] + sum(p / total * after(i, (t + 1, s2, g.after(c, d))) for p, s2, d in m.outcomes)

    def from_the_end(step):
        return functools.cache(lambda i, key: 0 if key[0] == g.horizon else step(i, key))

    @from_the_end
    def obey(i, key):
        return sum(p * expected(key, legal(key, a), i, obey) for a, p in sigma(*key).items())

    @from_the_end
    def deviate(i, key):
        total = 0
        for heard in {a[i] for a in sigma(*key)} if kind == "CE" else {None}:
            group = {a: p for a, p in sigma(*key).items() if heard in (None, a[i])}
            plans = [{a: safe(key, a) for a in group}]
            plans += [
                {a: safe(key, (*a[:i], b, *a[i + 1 :])) for a in group} for b in {m.action[i] for m in nodes[key]}
            ]
            values = (
                sum(p * expected(key, plan[a], i, deviate) for a, p in group.items())
                for plan in plans
                if None not in plan.values()
            )
            total += max(values, default=-INF)
        return total

    @from_the_end
    def best(i, key):
        return max(expected(key, m, i, best) for m in nodes[key])

    @from_the_end
    def worst(i, key):
        return min(expected(key, legal(key, a), i, worst) for a, p in sigma(*key).items() if p >= Fraction(1, 10**8))

    return [{x: (deviate(i, x) - obey(i, x), best(i, x) - worst(i, x)) for x in nodes} for i in range(g.players)]


# -- histories --------------------------------------------------------------------------------------------------


def realised(g: Spelled, policy):
    """Yield for each time where play by a policy, asked by (t, s, c), can be before and after it: two sets of (s, c)."""
    after = {(s, g.start) for s, _ in g.initial}
    for t in range(g.horizon):
        here, after = after, set()
        for s, c in here:
            answer = policy(t, s, c)
            after |= {(s2, g.after(c, d)) for m in g.moves[t][s] if m.action in answer for _, s2, d in m.outcomes}
        yield here, after


def is_history(game: MarkovGame, policy, history, count=lambda cost: cost) -> bool:
    """Whether play from the start can go this way, by a policy that is asked by what it counts of true costs."""
    g, here = spell_out(game), {s for s, _ in game.initial}
    spent = counted = game.spent_at_start
    for t, step in enumerate(history):
        state, cost = game.state_index(step.state), tuple(map(exact, step.cost))
        moves = [m for m in g.moves[t][state] if game.joint_action(m.action) == step.action]
        results = {(s, g.cost(whole)) for m in moves for _, s, whole in m.outcomes}
        after = game.state_index(step.next_state)
        if (step.t, tuple(map(exact, step.spent))) != (t, spent) or state not in here or (after, cost) not in results:
            return False
        if not policy(t, step.state, counted).get(step.action, 0):
            return False
        here, spent, counted = {after}, g.after(spent, cost), g.after(counted, count(cost))
    return True


# -- random games -----------------------------------------------------------------------------------------------


def random_game(
    rng: np.random.Generator,
    *,
    players: int | None = None,
    states: int | None = None,
    actions: int | None = None,
    constraints: int | None = None,
    horizon: int | None = None,
    stationary: bool | None = None,
    rewards: str | None = None,
    costs: str | None = None,
    schedule: bool | None = None,
    reservoirs: bool | None = None,
) -> MarkovGame:
    """Return a small random game; what is left out is drawn. About two in three are feasible, most with a binding budget.

    actions: the largest number per player;  rewards: "integers" | "dyadic" | "floats";
    costs: "whole" | "signed" | "tenths" | "thirds";  schedule: budgets that change with time, some of them inf;
    reservoirs: some budgets are reservoirs.
    """
    pick = rng.choice
    n = players or int(pick([1, 2, 2, 2, 3]))
    m = int(pick([0, 1, 1, 1, 2, 2, 2, 3])) if constraints is None else constraints
    n_states = states or int(rng.integers(1, 4))
    most = actions or (3 if n < 3 else 2)
    h = horizon or int(rng.integers(1, 5 if m < 3 and n < 3 else 4))
    stationary = bool(rng.random() < 0.5) if stationary is None else stationary
    rewards = rewards or str(pick(["integers", "dyadic", "floats"]))
    costs = costs or str(pick(["whole", "signed", "tenths", "thirds"]))
    schedule = bool(rng.random() < 0.35) if schedule is None else schedule
    masked = rng.random() < 0.5
    labels = [f"s{k}" if rng.random() < 0.5 else ("s", k) for k in range(n_states)]
    names = [f"p{i}" for i in range(n)]

    def number_of_actions():
        return [int(rng.integers(1 if rng.random() < 0.2 else 2, most + 1)) if most > 1 else 1 for _ in range(n)]

    def one_reward():
        if rewards == "integers":
            return rng.integers(-2, 3, size=n).astype(float).tolist()
        return (rng.integers(-600, 600, size=n) / 64 if rewards == "dyadic" else rng.normal(size=n).round(3)).tolist()

    def one_cost():
        level = {
            "whole": lambda: int(pick([0, 0, 1, 2])),
            "signed": lambda: int(pick([-2, -1, 0, 1, 1, 2])),
            "tenths": lambda: float(pick([0.0, 0.1, 0.2, 0.3])),
            "thirds": lambda: Fraction(int(pick([-1, 0, 1, 2])), 3),
        }[costs]
        return tuple(level() for _ in range(m))

    def probabilities():
        k = int(pick([1, 1, 1, 2, 2, 3]))
        if rewards == "floats":
            return {1: [1.0], 2: pick([[0.1, 0.9], [1 / 3, 2 / 3]]).tolist(), 3: [0.1, 0.2, 0.7]}[k]
        return {1: [1.0], 2: pick([[0.5, 0.5], [0.25, 0.75]]).tolist(), 3: [0.25, 0.25, 0.5]}[k]

    def table():
        rules = {}
        for s in labels:
            joint = list(itertools.product(*(range(k) for k in number_of_actions())))
            chosen = [a for a in joint if not masked or rng.random() < 0.7] or [joint[int(rng.integers(len(joint)))]]
            rules[s] = {
                tuple("abc"[x] for x in a): (
                    one_reward(),
                    [(p, labels[int(rng.integers(n_states))], one_cost()) for p in probabilities()],
                )
                for a in chosen
            }
        return rules

    tables = [table()] * h if stationary else [table() for _ in range(h)]
    start = labels[0]
    if n_states > 1 and rng.random() < 0.2:
        start = {labels[0]: 0.25, labels[1]: 0.75}
    return from_tables(
        tables,
        players=names,
        actions=lambda t, s: [sorted({a[i] for a in tables[t][s]}) for i in range(n)],
        initial=start,
        budget=random_budget(rng, tables, start, m, schedule, reservoirs),
        name="random",
    )


def from_tables(tables, **rest) -> MarkovGame:
    """Return the game of these rules, {state: {joint action: (rewards, outcomes)}} for each time."""
    return MarkovGame.from_functions(
        legal=lambda t, s, a: a in tables[t][s],
        outcomes=lambda t, s, a: tables[t][s][a][1],
        reward=lambda t, s, a: tables[t][s][a][0],
        horizon=len(tables),
        **rest,
    )


def random_budget(rng, tables, start, m, schedule, reservoirs):
    """Return what the best of a few random policies needs in the worst case, sometimes a little less; some of it in reservoirs."""
    if not m:
        return None
    totals = []
    for _ in range(int(rng.integers(1, 4))):
        here = {(s, (Fraction(0),) * m) for s in (start if isinstance(start, dict) else [start])}
        totals.append([])
        for table in tables:
            choice = {s: list(rows)[int(rng.integers(len(rows)))] for s, rows in table.items()}
            here = {
                (s2, tuple(x + Fraction(str(y)) for x, y in zip(c, d, strict=True)))
                for s, c in here
                for _, s2, d in table[s][choice[s]][1]
            }
            totals[-1].append([max(c[k] for _, c in here) for k in range(m)])
    worst = min(totals, key=lambda rows: [max(col) for col in zip(*rows, strict=True)])
    outcomes = [o for table in tables for rows in table.values() for _, outs in rows.values() for o in outs]
    step = min((abs(Fraction(str(x))) for *_, cost in outcomes for x in cost if x), default=1)
    cut = [int(rng.choice([0, 1])) for _ in range(m)]
    budget = [max(col) - k * step for col, k in zip(zip(*worst, strict=True), cut, strict=True)]
    if schedule:
        budget = [
            [INF if rng.random() < 0.3 else row[k] + (int(rng.integers(0, 2)) - cut[k]) * step for k in range(m)]
            for row in worst
        ]
    stored = rng.random() < 0.3 if reservoirs is None else reservoirs
    return _with_reservoirs(rng, budget, len(tables)) if stored else budget


def _with_reservoirs(rng, budget, horizon):
    """Budgets of which some are held by reservoirs, full at the beginning or not, with a reserve or without."""
    rows = [budget] * horizon if not isinstance(budget[0], list) else budget
    columns = [list(column) for column in zip(*rows, strict=True)]
    chosen = rng.random(len(columns)) < 0.6
    chosen[int(rng.integers(len(columns)))] = True
    for m in np.flatnonzero(chosen).tolist():
        finite = [max(x, Fraction(0)) for x in columns[m] if x != INF] or [Fraction(1)]
        capacity = max(finite)
        missing = capacity * Fraction(int(rng.choice([0, 0, 0, 1, 2])), 4)
        reserve = Fraction(0)
        if len(set(columns[m])) > 1:
            reserve = [capacity - min(max(x, Fraction(0)), capacity) for x in columns[m]]
        columns[m] = reservoir(capacity, capacity - missing, reserve)
    return dict(enumerate(columns))


def games(**fixed):
    """A hypothesis strategy of `random_game`s, by seed."""
    return st.integers(0, 2**32 - 1).map(lambda seed: random_game(np.random.default_rng(seed), **fixed))
