"""The product of agents, against the same product worked out case by case."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames import MarkovGame, compose
from acegames.errors import InvalidGame, TooLarge
from acegames.model import composing
from acegames.model.layers import LAYER_FIELDS
from acegames.system import machine
from games import alone
from shares import examples


def agent(rng, player, *, horizon=3, limits=("battery",), timed=False, start=None):
    """A small random game of one player; costs are halves."""
    states = [f"{player}{k}" for k in range(int(rng.integers(1, 4)))]
    actions = ["x", "y", "z"][: int(rng.integers(1, 4))]
    rules = {}
    for t, s, a in itertools.product(range(horizon if timed else 1), states, actions):
        after = list(rng.choice(len(states), size=int(rng.integers(1, len(states) + 1)), replace=False))
        chance = rng.dirichlet(np.ones(len(after)))
        costs = [{m: Fraction(int(rng.integers(0, 4)), 2) for m in limits} for _ in after]
        rules[t, s, a] = ([(p, states[k], c) for p, k, c in zip(chance, after, costs, strict=True)], rng.normal())
    return alone(
        lambda t, s, a: rules[t if timed else 0, s, a[0]][0],
        actions=actions,
        reward=lambda t, s, a: [rules[t if timed else 0, s, a[0]][1]],
        players=[player],
        horizon=horizon,
        initial=start or dict(zip(states, rng.dirichlet(np.ones(len(states))), strict=True)),
        budget=dict.fromkeys(limits, 3) or None,
    )


def rows(game, t):
    """{(state, joint action): (reward, {(next state, cost): probability})} at a time."""
    layer, found = game.layer(t), {}
    for s, state in enumerate(game.states):
        for r in layer.rows(s):
            outs: dict = {}
            span = layer.outcomes(r)
            for p, k, codes in zip(layer.prob[span], layer.next_state[span], layer.cost[span], strict=True):
                spent = {c: game.cost_values[m][codes[m]] for m, c in enumerate(game.constraints)}
                outs[game.states[k], tuple(sorted(spent.items()))] = float(p)
            found[state, game.joint_action(layer.action[r])] = (tuple(layer.reward[r]), outs)
    return found


def product(agents, t, possible=None, legal=None, reward=None, cost=None):
    """What `rows` of the composed game must be."""
    found = {}
    local = [rows(a, t) for a in agents]
    for state in itertools.product(*(a.states for a in agents)):
        if possible and not possible(state):
            continue
        choices = [[row for row in rules if row[0] == s] for rules, s in zip(local, state, strict=True)]
        for picked in itertools.product(*choices):
            action = tuple(a[0] for _, a in picked)
            if legal and not legal(state, action):
                continue
            own = [rules[row] for rules, row in zip(local, picked, strict=True)]
            outs: dict = {}
            for combined in itertools.product(*(o.items() for _, o in own)):
                after = tuple(key[0] for key, _ in combined)
                total: dict = {}
                for (_, spent), _ in combined:
                    for c, x in spent:
                        total[c] = total.get(c, 0) + x
                for c, x in (cost(state, action, after) if cost else {}).items():
                    total[c] = total.get(c, 0) + x
                key = after, tuple(sorted(total.items()))
                outs[key] = outs.get(key, 0.0) + math.prod(p for _, p in combined)
            if possible and not all(possible(after) for after, _ in outs):
                continue
            worth = [r[0] for r, _ in own]
            for i, more in (reward(state, action) if reward else {}).items():
                worth[i] += more
            found[state, action] = (tuple(worth), outs)
    return found


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for row, (worth, outs) in wanted.items():
        assert found[row][0] == pytest.approx(worth, abs=1e-12)
        assert found[row][1].keys() == outs.keys()
        assert [found[row][1][k] for k in outs] == pytest.approx(list(outs.values()), abs=1e-12)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 3), timed=st.booleans())
def test_the_product_case_by_case(seed, count, timed):
    rng = np.random.default_rng(seed)
    agents = [agent(rng, f"p{i}", limits=(f"m{i}",), timed=timed and i == 0) for i in range(count)]
    game = compose(agents)
    for t in range(game.horizon):
        assert_same(rows(game, t), product(agents, t))
    assert sum(p for _, p in game.initial) == pytest.approx(1)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32), masks=st.booleans())
def test_joint_rules(seed, masks):
    rng = np.random.default_rng(seed)
    a, b = (agent(rng, p, limits=("shared",), start=f"{p}0") for p in "ab")
    together = rng.random((len(a.states), len(b.states))) < 0.8
    together[0, 0] = True
    allowed = rng.random((len(a.states), len(a.actions[0]), len(b.states), len(b.actions[0]))) < 0.9
    bonus, toll = rng.normal(size=together.shape), rng.integers(0, 3, size=together.shape) * 0.1

    def at(state):
        return a.state_index(state[0]), b.state_index(state[1])

    def full(state, action):
        (sa, sb), (xa, xb) = at(state), ("xyz".index(action[0]), "xyz".index(action[1]))
        return sa, xa, sb, xb

    def numbers(s):
        return tuple(np.array([g.state_index(x) for x in s[p]]) for g, p in ((a, "a"), (b, "b")))

    def cases(s, x):
        (sa, sb), (xa, xb) = numbers(s), (np.array(["xyz".index(label) for label in x[p]]) for p in "ab")
        return sa, xa, sb, xb

    wanted = product(
        [a, b],
        0,
        possible=lambda s: together[at(s)],
        legal=lambda s, x: allowed[full(s, x)],
        reward=lambda s, x: {1: bonus[at(s)]},
        cost=lambda s, x, n: {"shared": Fraction(repr(float(toll[at(n)]))), "toll": int(at(s)[0])},
    )
    options = {
        "possible": {("a", "b"): together} if masks else lambda s: together[numbers(s)],
        "legal": {("a", "b"): allowed} if masks else lambda s, x: allowed[cases(s, x)],
        "reward": lambda s, x: {"b": bonus[numbers(s)]},
        "cost": lambda s, x, n: {"shared": toll[numbers(n)], "toll": numbers(s)[0]},
        "budget": {"shared": 5, "toll": 9},
    }
    if stuck(wanted, ("a0", "b0"), a.horizon):
        with pytest.raises(InvalidGame, match="no legal joint action"):
            compose([a, b], **options)
    else:
        assert_same(rows(compose([a, b], **options), 0), wanted)


def stuck(rules, start, horizon):
    """Whether play comes to a state without a legal joint action."""
    here = {start}
    for _ in range(horizon):
        if not here <= {state for state, _ in rules}:
            return True
        here = {after for (state, _), (_, outs) in rules.items() if state in here for after, _ in outs}
    return False


def robots(size=4, horizon=6, name=lambda k: k):
    cells = {name(k): k for k in range(size)}
    moves = {"stay": 0, "left": -1, "right": 1}
    return [
        alone(
            lambda s, a: [(1.0, name(min(max(cells[s] + moves[a[0]], 0), size - 1)), int(a[0] != "stay"))],
            actions=tuple(moves),
            reward=lambda t, s, a, goal=goal: [float(cells[s] == goal)],
            players=[player],
            horizon=horizon,
            initial=name(size - 1 - goal),
            budget={f"battery {player}": 4},
        )
        for player, goal in (("a", size - 1), ("b", 0))
    ]


@pytest.mark.parametrize("kind", ["tuples", "texts", "objects"])
def test_rules_get_labels_of_every_kind(kind):
    name = {"tuples": lambda k: (k, 0), "texts": str, "objects": lambda k: ("cell", k)}[kind]
    a, b = robots(name=name)
    numbered = compose(robots(), possible=lambda s: s["a"] != s["b"])
    different = {
        "tuples": lambda s: (s["a"] != s["b"]).any(axis=1),
        "texts": lambda s: s["a"] != s["b"],
        "objects": lambda s: s["a"] != s["b"],
    }[kind]
    game = compose([a, b], possible=different)
    assert game.states == tuple((name(x), name(y)) for x, y in numbered.states)
    assert np.array_equal(game.layers[0].next_state, numbered.layers[0].next_state)


@pytest.mark.parametrize(
    "limits",
    [
        {"composing._BLOCK": 1, "raw_layers.BLOCK": 3},
        {"composing._BLOCK": 5, "raw_layers.BLOCK": 7},
        {"composing._BLOCK": 4, "composing._RESERVED": 3},
    ],
    ids=str,
)
def test_blocks_and_what_is_reserved_make_no_difference(limits, monkeypatch):
    agents = robots()
    rules = {"possible": lambda s: s["a"] != s["b"]}, {"cost": lambda s, a, n: {"battery a": (n["a"] + n["b"]) * 0.25}}
    whole = [compose(agents, **rule).digest for rule in rules]
    for name, limit in limits.items():
        monkeypatch.setattr(f"acegames.model.{name}", limit)
    assert [compose(agents, **rule).digest for rule in rules] == whole


def test_outcomes_that_become_equal_are_one(monkeypatch):
    """Two agents that spend 0 or 1 spend 0, 1 or 2 together; the arrays shrink where they lie."""

    def spender(player):
        return alone(
            lambda s, a: [(0.5, "s", 0), (0.5, "s", 1)], players=[player], actions=["x", "y"], budget={"shared": 4}
        )

    for size in (3, 2**18):
        monkeypatch.setattr("acegames.model.raw_layers.BLOCK", size)
        (layer,) = compose([spender("a"), spender("b")], budget={"shared": 4}).layers
        assert layer.prob.tolist() == [0.25, 0.5, 0.25] * 4
        assert layer.cost[:, 0].tolist() == [0, 1, 2] * 4
        assert layer.out_ptr.tolist() == [0, 3, 6, 9, 12] and layer.next_state.tolist() == [0] * 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"possible": lambda s: s["a"] == s["b"]},
            r"initial: the agents begin in \(0, 3\), which `possible` rules out",
        ),
        (
            {"possible": lambda s: [True]},
            "possible: gave type bool, shape \\(1,\\), must be one True or False for each of 16",
        ),
        (
            {"legal": {("a", "c"): np.ones((4, 3, 4, 3), bool)}},
            r"legal: the key \('a', 'c'\), must be a pair of players",
        ),
        ({"legal": {("a", "b"): np.ones((4, 3), bool)}}, r"shape \(4, 3\), must be bool, \(4, 3, 4, 3\)"),
        ({"legal": lambda s: [True]}, r"legal: takes \(s\), but is called as legal\(s, a\)"),
        ({"legal": lambda s, a: [[True], [True, False]]}, "legal: not an array"),
        ({"possible": {("a", "b"): [[True], [True, False]]}}, r"possible of \('a', 'b'\): not an array"),
        ({"possible": lambda s: np.zeros(len(s["a"]), bool)}, "initial: the agents begin in .* rules out"),
        ({"reward": lambda s, a: {"a": ["much"] * len(s["a"])}}, "reward of 'a': not numbers"),
        ({"legal": 3}, "legal: got int, must be a function or masks for pairs of players"),
        ({"reward": {"a": 3}}, "reward: got dict, must be a function$"),
        ({"possible": lambda t, s: True}, r"possible: takes \(t, s\), but is called as possible\(s\)"),
        ({"cost": lambda s, a: {}}, r"cost: takes \(s, a\), but is called as cost\(s, a, next_s\)"),
        ({"legal": lambda s, a: np.zeros(len(s["a"]), bool)}, "no legal joint action"),
        ({"reward": lambda s, a: {"c": 1}}, r"reward: gave numbers for 'c', there are \['a', 'b'\]"),
        ({"reward": lambda s, a: {"a": np.full(len(s["a"]), np.nan)}}, "reward of player 'a' is nan"),
        ({"cost": lambda s, a, n: {"toll": 1}}, "cost: gave numbers for 'toll'"),
        ({"cost": lambda s, a, n: {"battery a": "much"}}, "cost of 'battery a': gave type <U4"),
        (
            {"cost": lambda s, a, n: {"battery a": [0.0] * (len(s["a"]) - 1) + [np.nan]}},
            r"every t, state \(.*\), action \(.*\): cost of 'battery a': nan is not a finite number",
        ),
        ({"budget": {"toll": 3}}, "constraint 'toll': no agent has costs for it; give them in cost="),
        ({"budget": {"batery a": 3}}, "no agent has costs for it.*budget names 'batery a', did you mean 'battery a'"),
        ({"budget": 3}, "budget: got 3, must be"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises(InvalidGame, match=message):
        compose(robots(), **options)


def test_agents_that_do_not_fit_together():
    a, b = robots()
    with pytest.raises(InvalidGame, match="two games have the player 'a'"):
        compose([a, a])
    with pytest.raises(InvalidGame, match="game 1 has horizon 5, game 0 has 6"):
        compose([a, robots(horizon=5)[1]])
    with pytest.raises(InvalidGame, match="has 2 players"):
        compose([compose([a, b])])
    with pytest.raises(InvalidGame, match="agents: got MarkovGame, must be a list"):
        compose(a)
    with pytest.raises(InvalidGame, match="at least one agent"):
        compose([])
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidGame, match="constraint 'battery': several agents have it"):
        compose([agent(rng, "a"), agent(rng, "b")])
    with pytest.raises(InvalidGame, match=r"several agents have it.*budget names 'batery', did you mean 'battery'"):
        compose([agent(rng, "a"), agent(rng, "b")], budget={"batery": 3})


def test_agents_may_come_one_after_another_and_not_by_name():
    games = robots()
    assert compose(x for x in games).digest == compose(games).digest
    with pytest.raises(InvalidGame, match="agents: got dict, must be a list of games"):
        compose(dict(zip("ab", games, strict=True)))


def test_sums_of_many_costs_of_many_agents():
    """The combinations of their costs are more than 64 bits can number."""
    agents = [
        alone(
            lambda t, s, a, i=i: [(1.0, 0, {"fuel": (t + 1) * (i + 1)})],
            players=[f"p{i}"],
            horizon=300,
            initial=0,
            budget={"fuel": 10**6},
        )
        for i in range(8)
    ]
    game = compose(agents, budget={"fuel": 10**6})
    assert [game.cost_values[0][game.layer(t).cost[0, 0]] for t in range(300)] == [36 * (t + 1) for t in range(300)]


def test_joint_numbers_of_every_type():
    """Fractions are rewards, too, and whole numbers beside floats stay exact costs."""
    rng = np.random.default_rng(0)
    agents = [agent(rng, player, limits=()) for player in "ab"]
    joint = compose(
        agents,
        reward=lambda s, a: {"a": [Fraction(1, 2)] * len(s["a"]), "b": 10**30},
        cost=lambda s, a, after: {"toll": [2**53 + 1] + [0.5] * (len(s["a"]) - 1)},
        budget={"toll": 2**60},
    )
    assert set(joint.cost_values[0]) == {Fraction(1, 2), Fraction(2**53 + 1)}
    assert np.ptp(joint.layers[0].reward[:, 0] - compose(agents).layers[0].reward[:, 0]) < 1e-12
    assert (joint.layers[0].reward[:, 1] == 1e30).all()


@pytest.mark.parametrize("costs", [1, 126, 127, 128, 300, pytest.param(2**15 - 1, marks=pytest.mark.slow), 2**15])
def test_codes_of_costs_take_as_little_room_as_they_can(costs, tmp_path):
    """Whatever the types in memory, the game is the same: by other builders, and from a file."""
    walker = alone(
        lambda s, a: [(1.0, (s + 1) % costs, 0)],
        players=["a"],
        actions=["on"],
        reward=lambda s, a: [float(s)],
        initial=dict.fromkeys(range(costs), 1 / costs),
        budget={"energy": 10 * costs},
    )
    game = compose([walker], cost=lambda s, a, n: {"energy": n["a"]})
    (layer,) = game.layers
    assert layer.cost.dtype == (np.int8 if costs < 128 else np.int16 if costs < 2**15 else np.int32)
    assert layer.cost.tolist() == [[(s + 1) % costs] for s in range(costs)]
    state = np.arange(costs)
    after = (state + 1) % costs
    again = MarkovGame.from_sparse(
        row_state=state,
        row_action=np.zeros((costs, 1), dtype=int),
        reward=layer.reward,
        out_row=state,
        prob=np.ones(costs),
        next_state=after,
        cost=after[:, None],
        horizon=2,
        players=["a"],
        states=game.states,
        actions=[["on"]],
        initial=dict.fromkeys(game.states, 1 / costs),
        budget={"energy": 10 * costs},
    )
    assert again.digest == game.digest
    assert again.layers[0].cost.dtype == layer.cost.dtype and again.layers[0].out_ptr.dtype == np.int32
    game.save(tmp_path / "game.npz")
    back = ace.load(tmp_path / "game.npz")
    assert back.digest == game.digest and back.layers[0].cost.dtype == layer.cost.dtype


def test_little_memory_is_taken_besides_the_game_itself(monkeypatch):
    """Three walkers on a ring: what is held at the peak is hardly more than the arrays and the labels of the states."""

    def walker(player):
        rules = {"players": [player], "horizon": 40, "initial": 0, "budget": {f"steps of {player}": 9}}
        rules["reward"] = lambda s, a: [float(s)]
        return alone(lambda s, a: [(1.0, (s + a[0]) % 30, abs(a[0]))], actions=(-1, 0, 1), **rules)

    agents = [walker(player) for player in "abc"]
    compose(agents[:1])  # what is loaded once
    for name in ("composing._BLOCK", "raw_layers.BLOCK", "layers.FOLLOW_BLOCK"):
        monkeypatch.setattr(f"acegames.model.{name}", 2**12)
    tracemalloc.start()
    game = compose(agents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (layer,) = game.layers
    rows, arrays = len(layer.reward), sum(getattr(layer, f).nbytes for f in LAYER_FIELDS)
    assert rows == 30**3 * 27 and arrays / rows < 56
    assert peak < arrays + 200 * len(game.states) + 2 * rows


def many_agents(number):
    return [
        alone(
            lambda t, s, a: [(1.0, 0, {"sum": a[0]})],
            players=[f"p{i}"],
            horizon=1,
            initial=0,
            budget={"sum": 4},
            actions=range(5),
        )
        for i in range(number)
    ]


@pytest.mark.parametrize("players", [15, 20, 30])
def test_joint_actions_that_do_not_fit_are_refused_beforehand(players):
    with pytest.raises(TooLarge, match=rf"joint actions of {players} players in one joint state take .* TiB"):
        ace.compose(many_agents(players), budget={"sum": 4})


def test_joint_states_that_do_not_fit_are_refused_beforehand(monkeypatch):
    monkeypatch.setattr(composing, "_BLOCK", 8)
    monkeypatch.setattr(machine, "available_memory", lambda: 10_000)
    agents = [
        alone(
            lambda t, s, a: [(1.0, (s + a[0]) % 9, None)],
            players=[name],
            initial=dict.fromkeys(range(9), 1 / 9),
            actions=range(3),
        )
        for name in "pq"
    ]
    with pytest.raises(TooLarge, match="729 joint actions in all joint states"):
        ace.compose(agents)
    ruled = ace.compose(agents, legal=lambda s, a: a["p"] == a["q"])  # how many there are is not known before
    assert len(ruled.layers[0].action) == 243


def test_rules_that_fail_say_which_and_suggest_a_player():
    rng = np.random.default_rng(0)
    games = agent(rng, "left", limits=("l",)), agent(rng, "right", limits=("r",))
    with pytest.raises(InvalidGame, match="unknown player 'rigth', did you mean 'right'") as caught:
        ace.compose(games, legal=lambda s, a: s["rigth"] == 1)
    assert caught.value.__notes__ == ["raised by the joint rule legal"]
    with pytest.raises(ZeroDivisionError) as divided:
        ace.compose(games, reward=lambda s, a: {"left": 1 / 0})
    assert divided.value.__notes__ == ["raised by the joint rule reward"]
    with pytest.raises(ValueError, match="ambiguous") as unsure:
        ace.compose(games, legal=lambda s, a: s["left"] == 1 and s["right"] == 1)
    assert unsure.value.__notes__[0].startswith("raised by the joint rule legal; it gets arrays of many cases: write &")
    with pytest.raises(InvalidGame, match="name: got 3, must be text"):
        ace.compose(games, name=3)
