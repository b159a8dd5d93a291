"""Games from functions: which questions are asked, how often, and that the answers make the same game."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames import MarkovGame
from acegames.errors import TooLarge
from games import alone, one_state
from shares import examples


class Rules:
    """Random rules of two players that count how often they are asked."""

    def __init__(self, seed, *, timed=()):
        self.seed, self.timed, self.asked = seed, timed, Counter()

    def _rng(self, what, t, *place):
        self.asked[(what, t, place)] += 1
        return np.random.default_rng([self.seed, t if what in self.timed else 0, *map(ord, repr((what, place)))])

    def actions(self, t, s):
        rng = self._rng("actions", t, s)
        return [["x", "y"][: int(rng.integers(1, 3))], ["u", "v"]]

    def legal(self, t, s, a):
        return a[1] == "u" or bool(self._rng("legal", t, s, a).random() < 0.5)

    def outcomes(self, t, s, a):
        rng = self._rng("outcomes", t, s, a)
        costs = [1, 0.5, Fraction(1, 3), np.int64(2), True]
        return [(0.25, int(rng.integers(3)), {"fuel": costs[int(rng.integers(5))]}) for _ in range(4)]

    def reward(self, t, s, a):
        return self._rng("reward", t, s, a).normal(size=2)


FUNCTIONS = ("actions", "legal", "outcomes", "reward")


def without_time(function):
    return (lambda s: function(0, s)) if function.__name__ == "actions" else (lambda s, a: function(0, s, a))


def built(rules, *, without=(), **options):
    functions = {name: getattr(rules, name) for name in FUNCTIONS}
    functions |= {name: without_time(functions[name]) for name in without}
    return MarkovGame.from_functions(
        players=["a", "b"], horizon=4, initial=0, budget={"fuel": 6}, **functions, **options
    )


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 2**20), timed=st.sets(st.sampled_from(FUNCTIONS)), without=st.sets(st.sampled_from(FUNCTIONS))
)
def test_functions_that_do_not_take_the_time_make_the_same_game(seed, timed, without):
    rules = Rules(seed, timed=timed - without)
    asked_each = built(rules)
    few = Rules(seed, timed=timed - without)
    game = built(few, without=without)
    assert game.digest == asked_each.digest
    assert max(few.asked.values()) == 1
    assert all(t == 0 for (what, t, _) in few.asked if what in without)


def test_a_stationary_game_is_asked_once():
    rules = Rules(3)
    game = built(rules, stationary=True)
    assert game.digest == built(Rules(3)).digest
    assert max(Counter((what, place) for what, _, place in rules.asked).values()) == 1


def test_arguments_with_defaults_do_not_count():
    game = alone(
        lambda s, a, size=3: [(1.0, (s + a[0]) % size, a[0])],
        actions=lambda s, k=2: [list(range(k))],
        reward=lambda t, s, a, goal=2: [float(s == goal)],
        horizon=3,
        initial=0,
        budget=2,
    )
    assert ace.verify(game, ace.solve(game).policy).ok
    assert game.states == (0, 1, 2)


def test_numbers_that_are_equal_but_read_apart_stay_apart():
    """The float 1e23 is read as ten to the 23rd; the whole number that equals it is another."""
    costs = [1e23, int(1e23), 2, 2.0]
    game = alone(lambda s, a: [(1.0, s, costs[a[0]])], actions=range(len(costs)), budget=10**24)
    assert game.cost_values == ((Fraction(2), Fraction(int(1e23)), Fraction(10**23)),)


@pytest.mark.parametrize("label", [np.int64(1), (np.int64(0), "x"), 1.0, True])
def test_next_states_are_plain(label):
    game = alone(lambda s, a: [(1.0, label, 0)], initial="start", budget=1)
    assert not any(isinstance(x, np.generic) for s in game.states for x in (s if isinstance(s, tuple) else (s,)))


def test_a_first_argument_called_t_is_the_time():
    """However many of the others have defaults: such functions were always given the time."""
    asked = []

    def reward(t, s, a=None):
        asked.append((t, s, a))
        return [float(t)]

    game = alone(lambda s, a: [(1.0, s, None)], actions=lambda t, s="nowhere": [[t]], reward=reward, horizon=3)
    assert asked == [(t, "s", (t,)) for t in range(3)]
    assert game.actions == ((0, 1, 2),)


def test_joint_actions_that_do_not_fit_are_refused_beforehand():
    with pytest.raises(TooLarge, match=r"t=0, state 's': 30,517,578,125 joint actions of 15 players take"):
        one_state(range(15), [range(5)] * 15, lambda t, a: None, lambda t, a: [0] * 15)


# -- functions that fail --------------------------------------------------------------------------------------------


RIGHT = {
    "actions": lambda t, s: [["x"]],
    "outcomes": lambda t, s, a: [(1.0, s, 0)],
    "reward": lambda t, s, a: 1.0,
    "legal": lambda t, s, a: True,
}


def with_one_changed(name, function):
    """One player's game in which this function stands for the right one."""
    return alone(budget={"c": 1}, horizon=3, **RIGHT | {name: function})


@pytest.mark.parametrize("name", list(RIGHT))
def test_what_a_function_raises_is_kept_and_says_where(name):
    class Own(Exception):
        pass

    def fails(t, *place):
        if t == 1:
            raise Own("mine")
        return RIGHT[name](t, *place)

    with pytest.raises(Own, match="mine") as caught:
        with_one_changed(name, (lambda t, s: fails(t, s)) if name == "actions" else lambda t, s, a: fails(t, s, a))
    action = "" if name == "actions" else ", action ('x',)"
    assert caught.value.__notes__ == [f"raised by {name} at t=1, state 's'{action}"]


def test_what_a_generator_raises_says_where():
    def outcomes(t, s, a):
        yield 0.5, s, None
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way") as caught:
        alone(outcomes)
    assert caught.value.__notes__ == ["raised by outcomes at t=0, state 's', action ('go',)"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("actions", "one sequence of labels per player"),
        ("outcomes", r"\(probability, next_state, cost\) triples"),
        ("reward", "one number per player"),
        ("legal", "True or False"),
    ],
)
def test_a_function_that_gives_none_is_told_what_to_give(name, what):
    with pytest.raises(ace.InvalidGame, match=rf"t=0, state 's'.*: {name} gave None, must give {what}; .*`return`"):
        with_one_changed(name, (lambda t, s: None) if name == "actions" else lambda t, s, a: None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"initial": [0, 1]}, r"initial: got \[0, 1\], must be a state.*write it as a tuple"),
        ({"initial": (0, [1])}, r"initial: the label \[1\] cannot be hashed"),
        ({"stationary": "yes"}, "stationary: got 'yes', must be True or False"),
        ({"name": 3}, "name: got 3, must be text"),
        ({"reward": lambda s, a: {"q": 1}}, "reward names the unknown player 'q', there are 'p'"),
        (
            {"outcomes": lambda s, a: [(1.0, s, {"feul": 1})]},
            "cost names the unknown constraint 'feul', did you mean 'fuel'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(change, said):
    with pytest.raises(ace.InvalidGame, match=said):
        alone(**{"outcomes": lambda s, a: [(1.0, s, 0)], "budget": {"fuel": 1}} | change)


def test_an_unknown_argument_is_refused_under_the_public_name():
    said = r"^MarkovGame\.from_functions: unknown argument 'rewards', did you mean 'reward'\?"
    with pytest.raises(TypeError, match=said):
        alone(lambda s, a: [(1.0, s, 0)], rewards=1)


def test_actions_may_be_given_by_player():
    given = {"players": ["p", "q"], "outcomes": lambda s, a: [(1.0, s, None)], "reward": lambda s, a: [0, 1]}
    by_name = alone(actions=lambda s: {"q": ["u", "v"], "p": ["x"]}, **given)
    assert by_name.digest == alone(actions=lambda s: [["x"], ["u", "v"]], **given).digest


def test_a_state_none_is_probably_a_mistake():
    """It may be a label, as null in a file, but most often a function forgot to return."""

    def built(initial, following):
        return alone(lambda s, a: [(1.0, following, None)], actions=("x",), initial=initial)

    with pytest.warns(ace.GameWarning, match="initial: the state is None; is a `return` missing") as said:
        assert built(None, None).states == (None,)
    assert len(said) == 1
    with pytest.warns(ace.GameWarning, match=r"t=0, state 's', action \('x',\): the next state is None") as said:
        assert built("s", None).states == ("s", None)
    assert len(said) == 1 and said[0].filename == alone.__code__.co_filename


@pytest.mark.parametrize("budget", [{"fuel": 1}, {"fuel": 1, "time": 2}, None])
def test_a_cost_none_is_probably_a_mistake(budget):
    """A cost that a helper forgot to return would be lost; without budgets there is nothing to lose."""

    def cost(action):
        {"fuel": 1}  # noqa: B018

    def built():
        return alone(lambda s, a: [(0.5, s, cost(a)), (0.5, "u", cost(a))], actions=("x",), budget=budget)

    if budget is None:
        assert built().states == ("s", "u")  # warnings are errors here
        return
    with pytest.warns(ace.GameWarning, match=r"t=0, state 's', action \('x',\): the cost is None.*`return`") as said:
        built()
    assert len(said) == 1 and said[0].filename == alone.__code__.co_filename


def test_outcomes_of_a_joint_action_say_how_to_get_its_row():
    game = ace.catalog.get("intersection")
    with pytest.raises(ace.InvalidOption, match=r"row: got \('dare', 'yield'\).*game\.legal\(t, state\)\[action\]"):
        game.outcomes(0, ("dare", "yield"))
    assert game.outcomes(0, game.legal(0, "dry")["dare", "yield"])


def test_unknown_labels_of_a_game_suggest_the_nearest():
    game = ace.catalog.get("intersection")
    with pytest.raises(KeyError, match="unknown state 'drry', did you mean 'dry'"):
        game.legal(0, "drry")
    with pytest.raises(ace.UnknownPair, match="unknown action of player 'east' 'yeld', did you mean 'yield'"):
        game.action_indices(("dare", "yeld"))
    with pytest.raises(ace.UnknownPair, match="one action per player"):
        game.action_indices(("dare",))
    with pytest.raises(ace.UnknownPair, match="unknown state"):
        game.state_index([])
