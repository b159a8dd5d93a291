"""Gymnasium in: environments read as games, by the law that they carry or by playing them."""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium import spaces, wrappers
from gymnasium.envs.toy_text import blackjack

import acegames as ace
from acegames.adapters.environments import env_reader
from acegames.adapters.gymnasium import from_env
from acegames.learn import END
from gym_envs import Corridor, DrawsAside, FaceDown, Forgetful, Keeping, Liar, Recorded, Tiring, TwoSwitches, Urn


def law(game, t, state, action):
    """{(next state, costs): probability} of an action."""
    row = game.legal(t, state)[(action,)]
    return {(s, tuple(map(int, cost))): p for p, s, cost in game.outcomes(t, row)}


def reward(game, t, state, action):
    return float(game.layer(t).reward[game.legal(t, state)[(action,)], 0])


def everywhere(game):
    """Every (t, state, action) of a game but for episodes that are over."""
    for t in range(game.horizon):
        for state in game.states:
            for (action,) in game.legal(t, state) if state != END else ():
                yield t, state, action


def same(one, two):
    """Whether two games have the same actions, possible outcomes, and (up to rounding) numbers."""
    assert set(one.states) == set(two.states)
    assert {one.states[s]: p for s, p in one.initial} == pytest.approx({two.states[s]: p for s, p in two.initial})
    assert set(everywhere(one)) == set(everywhere(two))
    for at in everywhere(one):
        assert law(one, *at) == pytest.approx(law(two, *at)), at
        assert reward(one, *at) == pytest.approx(reward(two, *at)), at
    return True


def toy(name, **options):
    """One of Gymnasium's toys in its newest version, of which older ones give warnings."""
    newest = max(key for key in gymnasium.registry if key.rpartition("-v")[0] == name)
    return gymnasium.make(newest, **options)


def holes_of(env):
    return {k for k, cell in enumerate(env.unwrapped.desc.ravel()) if cell == b"H"}


# -- the law that an environment carries


def test_a_law_is_read_as_it_is_written():
    env = toy("FrozenLake")
    game, table, holes = (
        from_env(env, 6, budget={"holes": 1}, cost=lambda x: x.next_state in holes_of(env)),
        env.unwrapped.P,
        holes_of(env),
    )
    assert game.players == ("agent",) and game.initial == ((0, 1.0),) and game.name == env.spec.id
    for t, state, action in everywhere(game):
        expected = Counter()
        for p, following, _, end in table[state][action]:
            expected[END if end else following, (int(following in holes),)] += p
        assert law(game, t, state, action) == pytest.approx(dict(expected))
        assert reward(game, t, state, action) == pytest.approx(sum(p * r for p, _, r, _ in table[state][action]))
    assert law(game, 5, END, "(none)") == {(END, (0,)): 1} and reward(game, 5, END, "(none)") == 0


def safest(env, horizon):
    """What a frozen lake is worth without ever falling into a hole, by hand; -inf where it is not possible."""
    table, holes = env.unwrapped.P, holes_of(env)
    values = dict.fromkeys(table, 0.0)
    for _ in range(horizon):
        values = {
            s: max(
                sum(p * (r + (0 if end else values[n])) for p, n, r, end in outcomes)
                if not any(n in holes or (not end and values[n] == -math.inf) for _, n, _, end in outcomes)
                else -math.inf
                for outcomes in moves.values()
            )
            for s, moves in table.items()
        }
    return values[0]


@pytest.mark.parametrize(("size", "horizon"), [("8x8", 100), ("8x8", 40)])
def test_a_frozen_lake_without_a_fall(size, horizon):
    env = toy("FrozenLake", map_name=size)
    holes = holes_of(env)
    game = from_env(env, horizon, budget={"holes": 0}, cost=lambda x: x.next_state in holes)
    value = ace.solve(game).values[0]
    assert value == pytest.approx(safest(env, horizon), abs=1e-9)
    assert horizon != 100 or round(value, 3) == 0.514


@pytest.mark.parametrize(
    ("name", "options"), [("FrozenLake", {}), ("FrozenLake", {"is_slippery": False}), ("CliffWalking", {})]
)
def test_playing_finds_the_law(name, options):
    read = from_env(toy(name, **options), 3)
    assert same(read, from_env(toy(name, **options), 3, law=False))
    assert same(read, from_env(toy(name, **options), 3, law=False, stationary=True, repeats=1))


def test_taxi_is_read_with_its_many_starts_and_play_stays_in_the_game():
    env = toy("Taxi")
    game = from_env(env, 4)
    starts = {game.states[s]: p for s, p in game.initial}
    assert len(starts) == 300 and all(p == pytest.approx(1 / 300) for p in starts.values())
    rng = np.random.default_rng(0)
    for seed in range(20):
        state, _ = env.reset(seed=seed)
        for t in range(4):
            action = int(rng.integers(6))
            following, paid, end, _, _ = env.step(action)
            assert (END if end else following, ()) in law(game, t, state, action)
            assert reward(game, t, state, action) == paid
            if end:
                break
            state = following
    one = from_env(env, 3, initial=328)
    assert [one.states[s] for s, _ in one.initial] == [328]


def test_an_environment_that_does_not_follow_its_own_law_is_refused():
    assert same(from_env(Liar(0.0), 5), from_env(Corridor(0.0), 5))
    with pytest.raises(ace.InvalidOption, match=r"which P excludes; with law=False"):
        from_env(Liar(0.25), 5)
    assert same(from_env(Liar(0.25), 5, law=False), from_env(Corridor(0.25), 5))


def test_a_law_is_compared_beyond_the_horizon():
    with pytest.raises(ace.InvalidOption, match=r"which P excludes; with law=False"):
        from_env(toy("Taxi", fickle_passenger=True), 5)


def test_starts_of_a_law_belong_to_the_states_by_their_numbers():
    env = Corridor(0.0)
    env.P = {c: {a: [(1.0, c + a, float(c + a == 4), c + a == 4)] for a in (0, 1)} for c in (3, 1, 0, 2)}
    env.isd = [1.0, 0, 0, 0]
    game = from_env(env, 2)
    assert {game.states[s]: p for s, p in game.initial} == {0: 1}
    env.isd = [0.5, 0.5]
    with pytest.raises(ace.InvalidOption, match=r"isd: got \[0.5, 0.5\], must be one probability for each state of P"):
        from_env(env, 2)


def test_a_law_that_breaks_a_rule_is_named():
    env = toy("FrozenLake")
    env.unwrapped.P[3][2] = [(1.0, 99, 0.0, False)]
    with pytest.raises(ace.InvalidOption, match=r"P\[3\]\[2\]: the next state 99 is no state of P"):
        from_env(env, 3)
    env.unwrapped.P[3][2] = [(1.0, "x", None, False)]
    with pytest.raises(ace.InvalidOption, match=r"P\[3\]\[2\]: .*must be \(probability, next_state, reward"):
        from_env(env, 3)


def test_a_frozen_lake_needs_no_pygame(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    assert from_env(toy("FrozenLake"), 3).horizon == 3


# -- what np_random draws


def test_sampled_play_is_as_often_as_the_game_says():
    env, number = Corridor(wind=0.25), 4000
    game = from_env(env, 3, budget={"fuel": 3})
    seen = Counter()
    env.reset(seed=3)
    for _ in range(number):
        env.cell = 1
        following, _, _, _, info = env.step(1)
        seen[following, (info["cost"]["fuel"],)] += 1
    expected = law(game, 1, 1, 1)
    assert set(seen) == set(expected) == {(1, (1,)), (2, (1,))}
    for event, p in expected.items():
        assert abs(seen[event] - number * p) < 5 * math.sqrt(number * p * (1 - p))


def test_continuous_starts_are_refused():
    with pytest.raises(
        ace.InvalidOption, match=r"reset: a number drawn by np_random.uniform\(-0.05, 0.05\) is used as a number"
    ):
        from_env(gymnasium.make("CartPole-v1"), 3)


def test_a_number_that_is_kept_for_later_is_refused():
    with pytest.raises(
        ace.InvalidOption, match=r"reset: a number drawn by np_random.random\(\) is kept by the environment"
    ):
        from_env(Keeping(), 3)


def test_spaces_and_generators_made_before_reset_are_listed_and_given_back():
    env = DrawsAside(lambda env: 0)
    env.action_space = spaces.Discrete(2, seed=3)
    env.spare = np.random.default_rng(5)
    env.draw = lambda env: 2 * int(env.action_space.sample()) + int(env.spare.random() < 0.25)
    before = env.action_space._np_random, env.action_space._np_random.bit_generator.state
    for options in ({}, {"set_state": lambda env, state: None}):
        env.draw = (lambda env: 2 * int(env.action_space.sample())) if options else env.draw
        game = from_env(env, 1, **options)
        expected = {0: 0.5, 2: 0.5} if options else {0: 3 / 8, 1: 1 / 8, 2: 3 / 8, 3: 1 / 8}
        assert {s: p for (s, _), p in law(game, 0, 0, 0).items()} == expected
    assert (env.action_space._np_random, env.action_space._np_random.bit_generator.state) == before
    shared = Corridor.action_space._np_random
    from_env(Corridor(), 2)
    assert Corridor.action_space._np_random is shared


@pytest.mark.parametrize("when", ["step", "reset", "waiting", "rare", "third action"])
def test_what_draws_hide_is_found(when):
    with pytest.raises(ace.InvalidOption, match=r"played twice.*give state=.*or hidden="):
        from_env(FaceDown(when), 3, budget=0)


def test_what_draws_hide_can_be_named():
    game = from_env(FaceDown("waiting"), 3, budget=0, hidden=lambda env: env.card)
    assert ace.solve(game).values == [0]


def test_more_than_can_be_played_is_not_passed_over():
    with pytest.raises(ace.TooLarge, match=r"more than 1,000 conditions .*hidden=.*repeats=1 trusts"):
        from_env(FaceDown("reset", cards=1002), 2, budget=0)


@pytest.mark.parametrize("survivor", ["counter", "iterator", "parity"])
def test_what_survives_reset_is_refused(survivor):
    with pytest.raises(ace.InvalidOption, match=r"played again after reset.*survives reset"):
        from_env(Recorded(survivor), 4)


def test_the_environment_itself_is_not_touched():
    env = toy("FrozenLake")
    env.reset(seed=5)
    generator, drawn, at = env.unwrapped.np_random, env.unwrapped.np_random.bit_generator.state, env.unwrapped.s
    from_env(env, 3)
    from_env(env, 3, law=False)
    inner = env.unwrapped
    assert inner.np_random is generator and generator.bit_generator.state == drawn and inner.s == at


# -- Blackjack, with a card face down


DECK = [1, 10, 10]


@cache
def dealt(dealer):
    """{final points: probability} of the dealer, who draws up to 17, by hand."""
    if blackjack.sum_hand(dealer) >= 17:
        return {blackjack.score(dealer): Fraction(1)}
    hands = Counter()
    for card in DECK:
        for points, p in dealt((*dealer, card)).items():
            hands[points] += p / len(DECK)
    return hands


def best(player, shown, steps):
    """What the best play is worth from a hand, by hand; a natural wins unless the dealer has one."""
    stick = Fraction(0)
    for card in DECK:
        for points, p in dealt((shown, card)).items():
            mine = blackjack.score(player)
            wins = sorted(player) == [1, 10] and sorted([shown, card]) != [1, 10]
            stick += p * (1 if wins else (mine > points) - (mine < points)) / len(DECK)
    if steps == 1:
        return (
            stick if stick > 0 else max(stick, -Fraction(sum(blackjack.is_bust([*player, c]) for c in DECK), len(DECK)))
        )
    hit = sum(
        -1 if blackjack.is_bust([*player, card]) else best((*player, card), shown, steps - 1) for card in DECK
    ) / Fraction(len(DECK))
    return max(stick, hit)


def test_blackjack_is_read_exactly_with_the_card_that_lies_face_down(monkeypatch):
    monkeypatch.setattr(blackjack, "deck", DECK)
    env, steps = gymnasium.make("Blackjack-v1"), 2
    game = from_env(env, steps, hidden=lambda env: env.unwrapped.dealer)
    assert game.states.count(END) == 1
    expected = sum(best((a, b), c, steps) for a in DECK for b in DECK for c in DECK) / Fraction(len(DECK) ** 3)
    assert ace.solve(game).values[0] == pytest.approx(float(expected), abs=1e-12)
    chance = {game.states[s]: p for s, p in game.initial}
    assert chance[20, 1, 0] == pytest.approx(4 / 9 * 1 / 3) and sum(chance.values()) == pytest.approx(1)


def test_blackjack_without_what_is_hidden_is_refused(monkeypatch):
    monkeypatch.setattr(blackjack, "deck", DECK)
    with pytest.raises(ace.InvalidOption, match=r"played twice, the probability .*hidden=, a function of env"):
        from_env(gymnasium.make("Blackjack-v1"), 2)


def test_what_is_hidden_is_averaged_over():
    game = from_env(Urn(), 3, hidden=lambda env: env.coin)
    assert all(reward(game, t, 0, 1) == pytest.approx(-0.25) and reward(game, t, 0, 0) == 0 for t in range(3))


def test_seen_peeking_is_a_state_and_unseen_peeking_is_refused():
    with pytest.raises(
        ace.InvalidOption, match=r"t=1, state 0: the hidden value 'heads' has probability .* after another"
    ):
        from_env(Urn(peeking=True), 3, hidden=lambda env: env.coin)
    with pytest.raises(ace.InvalidOption, match=r"the hidden value '.*' has probability"):
        from_env(Forgetful(), 3, hidden=lambda env: env.coin)


# -- deterministic environments, by copies and set_state


def put(env, state):
    env.unwrapped.cell = state


@pytest.mark.parametrize("wind", [0.0, 0.25])
def test_copies_set_state_and_stationary_read_the_same_game(wind):
    options = {"budget": {"fuel": 3}}
    games = [
        from_env(Corridor(wind), 6, **options),
        from_env(Corridor(wind), 6, **options, stationary=True),
        from_env(Corridor(wind), 6, **options, set_state=put),
        from_env(Corridor(wind), 6, **options, cost=lambda x: x.action),
    ]
    assert len({game.digest for game in games}) == 1
    assert law(games[0], 3, 3, 1) == ({(END, (1,)): 1} if not wind else {(END, (1,)): 0.75, (3, (1,)): 0.25})


def test_time_that_matters_is_found_where_all_times_are_read_at_once():
    with pytest.raises(ace.InvalidOption, match="played twice"):
        from_env(Tiring(), 4, stationary=True)
    assert law(from_env(Tiring(), 4), 2, 1, 1) == {(1, ()): 1}


def test_set_state_gives_the_generator_back():
    env = Corridor(0.25)
    env.reset(seed=1)
    generator = env.np_random
    from_env(env, 3, set_state=put)
    assert env.np_random is generator


def test_masks_and_legal_forbid_actions():
    env = Corridor(masked=True)
    game = from_env(env, 4, legal=lambda t, state, action: not (t == 0 and action == 0))
    assert set(game.legal(0, 0)) == {(1,)} and set(game.legal(1, 1)) == {(0,), (1,)} and set(game.legal(2, 2)) == {(1,)}


def test_set_state_begins_anywhere():
    game = from_env(Corridor(), 2, initial=2, set_state=put)
    assert [game.states[s] for s, _ in game.initial] == [2] and law(game, 1, 3, 1) == {(END, ()): 1}
    with pytest.raises(ace.InvalidOption, match="initial: 2 is no state in which reset leaves"):
        from_env(Corridor(masked=True), 2, initial=2, set_state=put)  # what its mask allows there is not known


def test_actions_of_several_parts_are_tuples():
    game = from_env(TwoSwitches(), 2, state=lambda env, observation: int(observation.sum()))
    assert game.actions[0] == ((0, 0), (0, 1), (1, 0), (1, 1)) and reward(game, 0, 0, (1, 1)) == 1
    assert from_env(TwoSwitches(), 2).states[0] == (0, 0)


# -- wrappers and the end of an episode


@pytest.mark.parametrize("options", [{}, {"law": False}, {"law": False, "stationary": True}])
def test_a_time_limit_below_the_horizon_ends_the_episode(options):
    game = from_env(toy("FrozenLake", max_episode_steps=2, is_slippery=False), 4, **options)
    assert set(law(game, 0, 0, 1)) == {(4, ())} and set(law(game, 1, 4, 1)) == {(END, ())}
    assert law(game, 2, END, "(none)") == {(END, ()): 1}


@pytest.mark.parametrize("options", [{}, {"law": False, "stationary": True}])
def test_a_policy_plays_to_the_end_of_a_time_limit_at_and_below_the_horizon(options):
    env = toy("FrozenLake", max_episode_steps=3)
    for horizon in (3, 5):
        runner = ace.solve(from_env(env, horizon, **options)).policy.start(rng=0)
        env.reset(seed=0)
        over = False
        while not (over or runner.done):
            (action,) = runner.act()
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            runner.observe((action,), (), END if over else observation)
        assert over


def test_wrappers_that_change_what_happens_are_played():
    env = wrappers.TransformReward(toy("FrozenLake"), lambda r: 2 * r + 1)
    assert reward(from_env(env, 2), 0, 0, 0) == 1
    sticky = wrappers.StickyAction(toy("FrozenLake", is_slippery=False), 0.25)
    with pytest.raises(ace.InvalidOption, match="played twice"):
        from_env(sticky, 4)
    game = from_env(sticky, 3, state=lambda env, observation: (observation, env.last_action))
    assert law(game, 1, (4, 1), 3) == {((8, 1), ()): 0.25, ((0, 3), ()): 0.75}


# -- costs


def test_costs_by_key_by_function_and_at_the_end():
    steps = []
    game = from_env(
        Corridor(), 5, budget={"end": 0}, cost=lambda x: steps.append(x) or (x.next_state == 4 and x.terminated)
    )
    assert law(game, 3, 3, 1) == {(END, (1,)): 1}
    assert {x.t for x in steps} == set(range(5)) and {x.info["cost"]["fuel"] for x in steps} == {0, 1}
    assert ace.solve(game).values == [0]
    assert ace.solve(from_env(Corridor(), 4, budget={"fuel": 3})).values == [0]
    assert ace.solve(from_env(Corridor(), 4, budget={"fuel": 4})).values == [1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"budget": {"x": 1}}, r"cost: got the key 'cost', but P says nothing of costs"),
        ({"budget": {"x": 1}, "law": False}, r'info\["cost"\] is missing; give cost='),
        ({"budget": {"x": 1}, "cost": lambda x: x.t}, "stationary=False"),
        ({"budget": {"x": 1}, "cost": lambda x: x.infos}, r"it is given one step, with .t, .state, .action"),
        ({"budget": {"x": 1}, "cost": 3}, "must be a key of info, or a function of a step"),
        ({"budget": {"x": 1}, "cost": lambda: 3}, r"cost: takes \(\)"),
        ({"state": lambda x: x}, r"state: takes"),
        ({"state": lambda env, observation: None}, "gave None"),
        ({"initial": 77}, "initial: 77 is no state of P"),
        ({"initial": 77, "law": False}, "initial: 77 is no state in which reset leaves"),
        ({"law": False, "most": 2}, "more than 2 situations"),
        ({"set_state": put, "hidden": lambda env: 0}, "cannot be used together with hidden="),
        ({"repeats": 0}, "repeats: got 0"),
        ({"branches": 0}, "branches: got 0"),
        ({"law": "P"}, "law: got 'P', must be True or False"),
    ],
)
def test_wrong_options_are_named(options, reason):
    with pytest.raises((ace.InvalidOption, ace.TooLarge), match=reason):
        from_env(toy("FrozenLake"), 3, **options)


def test_a_cost_may_depend_on_time_where_each_time_is_read():
    game = from_env(toy("FrozenLake"), 3, budget={"x": 9}, cost=lambda x: x.t, stationary=False)
    assert {cost for t in range(3) for _, cost in law(game, t, 0, 0)} == {(0,), (1,), (2,)}


def test_a_game_is_named_after_the_environment():
    assert from_env(Corridor(), 1).name == "Corridor" and from_env(toy("CliffWalking"), 1).name.startswith("Cliff")


# -- the right door


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        (gymnasium.Env, "got the class Env"),
        ("FrozenLake-v1", r"gymnasium.make\('FrozenLake-v1'\)"),
        (object(), "must be an environment with reset, step and action_space"),
    ],
)
def test_what_is_no_environment_is_refused(env, reason):
    with pytest.raises(ace.InvalidOption, match=reason):
        from_env(env, 3)


def test_every_door_names_the_other():
    pz = pytest.importorskip("acegames.adapters.pettingzoo")
    pytest.importorskip("pettingzoo")
    with pytest.raises(ace.InvalidOption, match=r"acegames.adapters.pettingzoo.from_parallel_env reads it"):
        from_env(pz.parallel_env(ace.catalog.get("drones")), 3)
    for door in (pz.from_parallel_env, ace.learn.estimate):
        with pytest.raises(ace.InvalidOption, match=r"acegames.adapters.gymnasium.from_env reads it"):
            door(toy("FrozenLake"), horizon=3)


def test_a_vector_of_environments_is_refused():
    with pytest.raises(ace.InvalidOption, match="a vector of environments; give one"):
        from_env(gymnasium.make_vec("CartPole-v1", 2), 3)


class Die(gymnasium.Env):
    """Pays what it shows, and nothing of it stays."""

    observation_space = action_space = gymnasium.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(self.np_random.integers(6)), False, False, {}


def test_wrappers_that_hold_functions_are_no_hindrance(monkeypatch):
    monkeypatch.setattr(env_reader, "MOST_ARRIVALS", 8)  # each draw would be a way of its own, were they not compared
    game = from_env(wrappers.ClipReward(Die(), 0, 9), 4)
    assert ace.solve(game).values == pytest.approx([4 * 2.5])
