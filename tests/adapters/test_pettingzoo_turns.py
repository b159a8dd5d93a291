"""PettingZoo in: environments in which agents take turns, against the real package."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

import gymnasium
from gymnasium import spaces
from pettingzoo.utils.conversions import parallel_to_aec, turn_based_aec_to_parallel

import acegames as ace
from acegames.adapters import pettingzoo as pz
from parallel_envs import Rovers
from turn_envs import Sticks, sticks_game, whose_pile


@pytest.mark.filterwarnings("ignore")
def test_the_environment_of_these_tests_is_a_proper_one():
    pytest.importorskip("pygame")
    from pettingzoo.test import api_test

    api_test(Sticks(), num_cycles=50)


@pytest.mark.parametrize("budget", [None, {"effort": 5}])
def test_a_turn_is_a_step(budget):
    """Rewards of those who wait, agents that leave, and costs of who acted, against the rules written down."""
    read = pz.from_aec_env(Sticks(), horizon=5, budget=budget, state=whose_pile)
    assert read.digest == sticks_game(budget=budget).digest
    if budget:
        certificate = ace.verify(read, ace.solve(read).policy)
        assert certificate.ok and certificate.max_spent[0] == 5


def test_by_default_the_state_tells_whose_turn_it_is():
    read = pz.from_aec_env(Sticks(), horizon=5)
    assert read.states[0][0] == "ann"
    assert ace.solve(read).values == pytest.approx(ace.solve(sticks_game()).values)
    with pytest.raises(ace.InvalidOption, match="met twice, the actions were"):
        pz.from_aec_env(Sticks(), horizon=5, state=lambda env, seen: env.pile, stationary=True)


def test_actions_are_numbered_as_in_the_environment():
    """Also of those who wait first, and where a mask forbids the first action at first."""
    read = pz.from_aec_env(Sticks(), horizon=3, state=whose_pile)
    assert read.actions == ((0, 1, "(none)"),) * 3
    read = pz.from_parallel_env(Picky(), horizon=2, repeats=1)
    assert read.actions == ((0, 1, 2), (0, 1, 2))


class Picky(Rovers):
    """At the start, only what is numbered last is allowed."""

    def reset(self, seed=None, options=None):
        seen, _ = super().reset(seed, options)
        return seen, {a: {"action_mask": np.array([0, 0, 1])} for a in seen}


class Broken(Rovers):
    def step(self, actions):
        return 1 / 0


def broken(step):
    return 1 / 0


def test_errors_say_which_function_raised_them():
    with pytest.raises(ZeroDivisionError) as error:
        pz.from_parallel_env(Broken(), horizon=2)
    assert error.value.__notes__ == ["raised by env.step at t=0, state (0, 0), action (0, 0)"]
    with pytest.raises(ZeroDivisionError) as error:
        pz.from_parallel_env(Rovers(), horizon=2, budget={"battery": 8}, cost=broken)
    assert error.value.__notes__ == ["raised by cost at t=0, state (0, 0), action (0, 0), next state (0, 0)"]
    with pytest.raises(ZeroDivisionError) as error:
        pz.from_parallel_env(Broken(), horizon=2, state=lambda env, seen: "x" * 500)
    assert len(error.value.__notes__[0]) < 200
    with pytest.raises(ace.TooLarge) as error:
        pz.from_parallel_env(Rovers(), horizon=2, most=2)
    assert not hasattr(error.value, "__notes__")


def test_functions_are_given_the_environment_itself():
    def put(env, state):
        assert isinstance(env, Sticks)
        env.agent_selection, env.pile, there = state
        for gone in set(env.agents) - set(there):
            env.agents.remove(gone)
            for entries in (env.rewards, env.terminations, env.truncations, env.infos, env._cumulative_rewards):
                del entries[gone]

    read = pz.from_aec_env(Sticks(), horizon=5, state=whose_pile, set_state=put)
    assert read.digest == sticks_game().digest


def test_a_mask_of_zeros_means_nothing_to_do():
    env = turn_based_aec_to_parallel(Sticks(3))  # nobody drops out, which this conversion tells too late
    read = pz.from_parallel_env(env, horizon=4, state=lambda env, seen: state_of(env))
    assert read.digest == sticks_game(3, horizon=4).digest


def state_of(env):
    return whose_pile(env.aec_env, None)


class Careful(Rovers):
    """A parallel environment that wants an action of everybody, also of one whose mask allows none."""

    @functools.cache  # noqa: B019
    def observation_space(self, agent):
        return spaces.Dict({"observation": spaces.Discrete(9), "action_mask": spaces.Box(0, 1, (3,), np.int8)})

    def reset(self, seed=None, options=None):
        return super().reset(seed, options)[0], self._told()

    def step(self, actions):
        assert all(self.action_space(a).contains(x) for a, x in actions.items()) and len(actions) == 2
        moved = {a: x if self._told()[a]["action_mask"].any() else 0 for a, x in actions.items()}
        *answer, infos = super().step(moved)
        return *answer, {a: {**info, **self._told()[a]} for a, info in infos.items()}

    def _told(self):
        turn = int(self.at.sum()) % 2
        return {a: {"action_mask": np.full(3, k == turn, dtype=np.int8)} for k, a in enumerate(self.possible_agents)}


def test_who_has_nothing_to_do_still_hands_in_an_action():
    game = pz.from_parallel_env(Careful(), horizon=3, budget={"battery": 6})
    for t in range(3):
        layer = game.layer(t)
        for s in np.flatnonzero(ace.model.game.reachable_states(game)[t]):
            rows = [game.joint_action(layer.action[r]) for r in layer.rows(s)]
            assert all(row.count("(none)") == 1 for row in rows) and len(rows) == 3


def test_errors_name_the_right_door():
    turns, at_once = Sticks(), parallel_to_aec(Rovers())
    with pytest.raises(
        ace.InvalidOption, match=r"AEC environment sticks.*from_aec_env reads it as a game, turn by turn"
    ):
        pz.from_parallel_env(turns, horizon=2)
    with pytest.raises(
        ace.InvalidOption, match=r"AEC environment sticks, must be a parallel one; .*runner\.turn\(player=agent\)"
    ):
        pz.shielded(turns, ace.Shield(sticks_game(budget={"effort": 5})))
    with pytest.raises(ace.InvalidOption, match=r"rovers choose at once.*give pettingzoo.*aec_to_parallel\(env\)"):
        pz.from_aec_env(at_once, horizon=2)
    with pytest.raises(ace.InvalidOption, match="from_parallel_env reads a parallel one"):
        pz.from_aec_env(Rovers(), horizon=2)
    with pytest.raises(ace.InvalidOption, match=r"environment of Gymnasium.*gymnasium\.from_env reads it"):
        pz.from_aec_env(Alone(), horizon=2)
    with pytest.raises(ace.InvalidOption, match=r"got the class Sticks, must be an environment: Sticks\(...\)"):
        pz.from_aec_env(Sticks, horizon=2)


class Alone(gymnasium.Env):
    action_space = spaces.Discrete(2)


class Plain(Sticks):
    """Costs are numbers; those of agents that wait are of their last turns."""

    def step(self, action):
        super().step(action)
        for agent, info in self.infos.items():
            self.infos[agent] = {"cost": info["cost"]["effort"] if isinstance(info.get("cost"), dict) else 0}


def test_the_advice_for_a_shared_budget_counts_who_acted():
    with pytest.raises(ace.InvalidOption, match="for a shared budget say cost=") as error:
        pz.from_aec_env(Plain(), horizon=2, state=whose_pile, budget={"effort": 5})
    advice = eval(str(error.value).split("say cost=")[1])  # what the user would paste
    read = pz.from_aec_env(Plain(), horizon=2, state=whose_pile, budget={"effort": 5}, cost=advice)
    assert read.digest == sticks_game(horizon=2, budget={"effort": 5}).digest


def test_a_cost_without_a_budget_says_what_to_do():
    with pytest.raises(ace.InvalidGame, match=r"unknown constraint 'effort'.*give it a budget too \(math.inf"):
        pz.from_aec_env(Sticks(), horizon=2, state=whose_pile, budget={"time": 5})
    pz.from_aec_env(Sticks(), horizon=2, state=whose_pile, budget={"effort": math.inf})


# -- PettingZoo's own

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def board(env, observations):
    return "".join("_XO"[x] for x in env.unwrapped.board.squares)


@functools.cache
def minimax(squares):
    """What the position is worth to X, by the rules."""
    for who, worth in (("X", 1), ("O", -1)):
        if any(all(squares[k] == who for k in line) for line in LINES):
            return worth
    free = [k for k in range(9) if squares[k] == "_"]
    mine = "XO"[(9 - len(free)) % 2]
    after = [minimax(squares[:k] + mine + squares[k + 1 :]) for k in free]
    return (max if mine == "X" else min)(after) if after else 0


def tictactoe(squares="_" * 9):
    pytest.importorskip("pygame")
    from pettingzoo.classic.tictactoe import tictactoe as tictactoe_v3

    class Begun(tictactoe_v3.raw_env):
        def reset(self, seed=None, options=None):
            super().reset(seed, options)
            put(self, squares)

    return Begun()


def put(env, squares):
    raw = env.unwrapped
    raw.board.squares = ["_XO".index(x) for x in squares]
    if squares.count("_") % 2 == 0:
        raw.agent_selection = raw._agent_selector.next()


@pytest.mark.parametrize("squares", ["XO__X__O_", "X_O_X____", "XX__O____", "X_OOX____"])
def test_tictactoe_from_a_position_on(squares):
    game = pz.from_aec_env(tictactoe(squares), horizon=9, state=board, repeats=1)
    assert game.players == ("player_1", "player_2")
    solution = ace.solve(game, ace.Nash())
    worth = minimax(squares)
    assert solution.values == pytest.approx([worth, -worth])
    assert ace.verify(game, solution.policy).ok


def test_tictactoe_in_its_wrappers_and_as_a_parallel_environment():
    pytest.importorskip("pygame")
    from pettingzoo.classic.tictactoe import tictactoe as tictactoe_v3

    def same(env, observations):
        return board(env, observations)

    said = {"horizon": 2, "repeats": 1, "state": same}
    wrapped = pz.from_aec_env(tictactoe_v3.env(), **said)
    assert wrapped.digest == pz.from_aec_env(tictactoe_v3.raw_env(), **said).digest
    assert wrapped.digest == pz.from_parallel_env(turn_based_aec_to_parallel(tictactoe_v3.env()), **said).digest
    assert len(wrapped.states) == 1 + 9 + 72
