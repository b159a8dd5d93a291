"""Functions that users hand over: one that cannot be called as it will be is refused by name before it is called.

A TypeError of a function that can be called is its author's own and passes through.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import acegames as ace
from acegames import learn
from acegames.model.user_functions import check_function

RIGHT = {
    "actions": lambda t, state: [["go", "stay"]],
    "outcomes": lambda t, state, action: [(1.0, state, 1)],
    "reward": lambda t, state, action: 1.0,
    "legal": lambda t, state, action: True,
}


def described(**changed):
    return ace.MarkovGame.from_functions(
        players=["one"], horizon=2, initial="s", budget={"fuel": 2}, **{**RIGHT, **changed}
    )


WRONG = [
    lambda: None,
    lambda a: None,
    lambda a, b: None,
    lambda a, b, c: None,
    lambda a, b, c, d: None,
    lambda a, *, needed: None,
]


def fits(function, count):
    try:
        function(*range(count))
    except TypeError:
        return False
    return True


def refuses(name, count, call, error=ace.InvalidOption, or_fewer=0):
    """`call(function)` refuses every function that does not take `count` arguments, and what is no function is not called."""
    for wrong in [f for f in WRONG if not any(fits(f, count - k) for k in range(or_fewer + 1))]:
        with pytest.raises(error, match=rf"{re.escape(name)}: takes \(.*\), but is called as ") as caught:
            call(wrong)
        assert type(caught.value) is error


# -- the helper -----------------------------------------------------------------------------------------------------


def test_functions_that_fit():
    check_function("f", lambda a, b: 0, ("t", "state"))
    check_function("f", lambda *all: 0, ("t", "state"))
    check_function("f", lambda a, b=3, c=4: 0, ("t", "state"))
    check_function("f", lambda size, random_state: 0, keywords=("size", "random_state"))
    check_function("f", SimpleNamespace, ())
    check_function("f", str, ("state",))  # Python does not know its signature
    check_function("f", max, ("state",))


def test_the_message_says_what_it_takes_and_how_it_is_called():
    def law(size: int) -> int:
        return size

    with pytest.raises(ace.InvalidOption) as caught:
        check_function("rvs", law, keywords=("size", "random_state"))
    assert str(caught.value).startswith("rvs: takes (size), but is called as rvs(size=..., random_state=...) (got an")
    with pytest.raises(ace.InvalidGame, match=r"^reward: got 3, must be .* as reward\(t, state\)$"):
        check_function("reward", 3, ("t", "state"), error=ace.InvalidGame)


# -- games ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RIGHT)
def test_functions_that_describe_a_game(name):
    most = {"actions": 2, "reward": 4}.get(name, 3)  # a reward may take the next state too
    refuses(name, most, lambda f: described(**{name: f}), ace.InvalidGame, or_fewer=2 if name == "reward" else 1)
    with pytest.raises(ace.InvalidGame, match=f"{name}: got 3, must be a function"):
        described(**{name: 3})


@pytest.mark.parametrize("name", RIGHT)
def test_a_type_error_inside_a_right_function_passes_through(name):
    def fails(*given):
        return 1 + "x"

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        described(**{name: fails})
    assert not isinstance(caught.value, ace.AceError)


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("reward", lambda s, a, t: 0, r"but the time is the first argument: write reward\(t, s, a\)"),
        ("reward", lambda s, a, next_s, time: 0, r"write reward\(time, s, a, next_s\)"),
        ("reward", lambda s, t, *more: 0, r"write reward\(t, s\)"),
        ("outcomes", lambda state, action, t: 0, r"write outcomes\(t, state, action\)"),
        ("actions", lambda state, t: 0, r"write actions\(t, state\)"),
        ("legal", lambda s, time, a: 0, r"write legal\(time, s, a\)"),
        ("actions", lambda time: 0, r"is called as actions\(t, state\)"),
        ("actions", lambda state, player: 0, r"is called as actions\(t, state\), so that 'state' would be the time"),
        ("outcomes", lambda s, a1, a2: 0, r"is called as outcomes\(t, state, action\), so that 's' would be the time"),
        ("reward", lambda s, a1, a2: 0, "'s' would be the time"),
        ("reward", lambda action, state: 0, "'action' would be the state"),
        ("reward", lambda state, next_state: 0, "'next_state' would be the action"),
        ("reward", lambda s, next_s: 0, "'next_s' would be the action"),
        ("reward", lambda t, s, next_s: 0, r"is called as reward\(t, state, action, next_state\)"),
    ],
)
def test_names_that_are_in_the_wrong_place_are_refused(name, function, said):
    """A wrong guess would give a wrong game without a word."""
    with pytest.raises(ace.InvalidGame, match=f"^{name}: takes .*{said}"):
        described(**{name: function})


class Given:
    def __call__(self, state, action, /):
        return float(action == ("go",))


@pytest.mark.parametrize(
    "reward",
    [
        Given(),
        Given().__call__,
        functools.partial(lambda scale, s, a: scale * (a == ("go",)), 1.0),
        functools.partial(lambda s, a, t: t * (a == ("go",)), t=1.0),  # it is called with (s, a) only
        lambda *given: float(given[-1] == ("go",)),
        lambda s, a, t=1.0: t * (a == ("go",)),
    ],
)
def test_whatever_can_be_called_is_called(reward):
    assert described(reward=reward).digest == described(reward=lambda s, a: float(a == ("go",))).digest


class Law:
    """Uniform on [0, 1]."""

    def support(self):
        return 0, 1

    def cdf(self, x):
        return min(1.0, max(0.0, x))


@pytest.mark.parametrize("name", ["cdf", "sf", "logcdf", "logsf", "logpdf", "pdf", "logpmf", "pmf", "support", "rvs"])
def test_methods_of_a_distribution(name):
    law = type("Mine", (Law,), {name: lambda self, one, two, three: 0.0})()
    with pytest.raises(ace.InvalidGame, match=rf"Mine\.{name}: takes \(one, two, three\), but is called as"):
        ace.random_cost(law)
    assert ace.random_cost(Law()).upper == 1


# -- solving and playing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [ace.solve, ace.budget_curve])
def test_progress_and_engine(solver):
    refuses("progress", 1, lambda f: solver(described(), progress=f))
    refuses("engine.solve", 4, lambda f: solver(described(), engine=SimpleNamespace(solve=f)))
    with pytest.raises(ace.InvalidOption, match="progress: got 3"):
        solver(described(), progress=3)
    with pytest.raises(TypeError, match="unsupported"):
        solver(described(), progress=lambda p: 1 + "x")


def test_an_engine_must_take_a_store_only_where_layers_are_stored(tmp_path):
    class Half:
        def solve(self, game, lattice, concept, progress):
            return ace.ReferenceEngine().solve(game, lattice, concept, progress)

    assert ace.solve(described(), engine=Half()).values == pytest.approx([2.0])
    with pytest.raises(ace.InvalidOption, match=r"engine\.solve: takes .* is called as .*store"):
        ace.solve(described(), engine=Half(), checkpoint=tmp_path / "run")


@pytest.mark.parametrize("game", [3, "knapsack", None, object()])
def test_only_games_are_simulated(game):
    with pytest.raises(ace.InvalidGame, match=r"^game: got .*must be a MarkovGame"):
        ace.simulate(game, ace.solve(described()).policy, episodes=1)


@pytest.mark.parametrize("function", [ace.Shield, ace.feasibility, ace.budget_curve, ace.solve])
def test_a_solution_in_place_of_its_game_says_where_the_game_is(function):
    solution = ace.solve(described())
    with pytest.raises(ace.InvalidGame, match=r"^game: got Solution, must be a MarkovGame; solution\.game is one$"):
        function(solution)
    assert function(solution.game)


@pytest.mark.parametrize("rng", ["x", -1, 1.5, object()])
def test_wrong_seeds(rng):
    solution = ace.solve(described())
    for call in (solution.simulate, solution.policy.start, lambda rng: solution.policy.act(0, "s", 0, rng)):
        with pytest.raises(ace.InvalidOption, match=r"^rng: got .*must be a Generator, a seed .* or None"):
            call(rng=rng)


def test_policies_to_simulate():
    refuses("policy.distribution", 3, lambda f: ace.simulate(described(), SimpleNamespace(distribution=f), episodes=1))
    for wrong in (3, None, SimpleNamespace(distribution=3)):
        with pytest.raises(ace.InvalidOption, match=r"policy: got .* must have a method distribution"):
            ace.simulate(described(), wrong, episodes=1)

    class Policy:
        def distribution(self, t, state, spent):
            return 1 + "x"

    with pytest.raises(TypeError, match="unsupported"):
        ace.simulate(described(), Policy(), episodes=1)
    Policy.states = Policy.actions = ()
    Policy.rows = Policy.joint_actions = lambda self, t: None
    with pytest.raises(ace.InvalidOption, match=r"policy\.rows: takes \(t\), but is called as"):
        ace.simulate(described(), Policy(), episodes=1)


# -- learning -------------------------------------------------------------------------------------------------------

KNOWN = {"players": ["one"], "horizon": 2, "initial": "s", "budget": {"fuel": 2}, "actions": [["go", "stay"]]}


def drawn(t, state, action, rng):
    return "s", 1, (1.0,)


def test_models():
    refuses("model", 4, lambda f: learn.estimate(f, samples_per_pair=1, **KNOWN))
    refuses("model", 4, lambda f: learn.explore(f, samples_per_pair=1, **KNOWN))
    empirical = learn.estimate(drawn, samples_per_pair=1, **KNOWN)
    policy = empirical.policy(ace.solve(empirical.game))
    refuses("model", 4, lambda f: learn.rollout(f, policy, episodes=1))
    assert learn.rollout(drawn, policy, episodes=1).violations == 0


@pytest.mark.parametrize("learns", [learn.estimate, learn.explore])
def test_what_is_known_of_a_model(learns):
    def call(**changed):
        return learns(drawn, samples_per_pair=1, **{**KNOWN, **changed})

    refuses("actions", 2, lambda f: call(actions=f), ace.InvalidGame)
    refuses("legal", 3, lambda f: call(legal=f), ace.InvalidGame)
    safe = {"conservative": True, "worst_cost": 1}
    refuses("worst_cost", 3, lambda f: call(**{**safe, "worst_cost": f}))
    refuses("possible_next", 3, lambda f: call(**safe, possible_next=f))
    refuses("unseen_reward", 3, lambda f: call(**safe, possible_next=lambda t, s, a: ["s"], unseen_reward=f))


def test_environments_of_learners():
    def call(env=None, **changed):
        return learn.estimate(env or learn.game_env(described()), episodes=2, **changed)

    refuses("state", 2, lambda f: call(state=f))
    refuses("cost", 1, lambda f: call(cost=f))
    for name, wrong in (("reset", lambda: None), ("step", lambda: None)):
        env = learn.game_env(described())
        setattr(env, name, wrong)
        with pytest.raises(ace.InvalidOption, match=rf"env\.{name}: takes \(\), but is called as"):
            call(env)


def test_policies_of_estimated_games():
    refuses("policy.distribution", 3, lambda f: learn.safe_policy(SimpleNamespace(distribution=f), described()))


# -- adapters -------------------------------------------------------------------------------------------------------


def test_environments_read_as_games():
    pz = pytest.importorskip("acegames.adapters.pettingzoo")
    pytest.importorskip("pettingzoo")
    game = ace.catalog.get("intersection")

    def call(**changed):
        return pz.from_parallel_env(pz.parallel_env(game), horizon=1, **changed)

    refuses("state", 2, lambda f: call(state=f))
    refuses("cost", 1, lambda f: call(cost=f))
    refuses("set_state", 2, lambda f: call(set_state=f))
    refuses("legal", 3, lambda f: call(legal=f))
    with pytest.raises(ace.InvalidOption, match="legal: got 3"):
        call(legal=3)
    shield = ace.Shield(game)
    refuses("state", 2, lambda f: pz.shielded(pz.parallel_env(game), shield, state=f))
    refuses("cost", 1, lambda f: pz.shielded(pz.parallel_env(game), shield, cost=f))
    refuses("features", 1, lambda f: pz.parallel_env(game, features=f))


def test_functions_for_openspiel():
    pytest.importorskip("pyspiel")
    from acegames.adapters import openspiel

    refuses("cost", 3, lambda f: openspiel.from_openspiel("matrix_pd", cost=f, budget=1))
    refuses("key", 1, lambda f: openspiel.from_openspiel("matrix_pd", key=f))


@pytest.mark.parametrize("wrong", [3, None, "game", [[1, 2], [3, 4]], object, described])
def test_objects_of_other_libraries_that_are_none(wrong):
    from acegames.adapters import gambit

    wrong = described() if wrong is described else wrong
    for read in (gambit.from_nashpy, gambit.from_quantecon, gambit.from_gambit):
        with pytest.raises(ace.InvalidOption, match=r"^game: got .*must be a "):
            read(wrong)


def test_costs_of_strategic_games():
    from acegames.adapters import gambit

    stage = gambit.stage_game(ace.solve(described()), 0, "s", 0)
    refuses("cost", 1, lambda f: stage.to_game(cost=f, budget=1))
    with pytest.raises(ace.InvalidOption, match=r"StageGame\.to_game"):
        gambit.from_gambit(stage)


@pytest.mark.parametrize(
    ("call", "first"),
    [
        (lambda: ace.solve(ace.catalog.get("intersection"), 3), "solve"),
        (lambda: ace.simulate(ace.catalog.get("intersection"), 3, episodes=1), "simulate"),
        (lambda: described(reward=lambda t, state, action: unknown_name), "game_from_functions"),  # noqa: F821
    ],
)
def test_wrappers_are_left_out_of_tracebacks(call, first):
    """Notebooks skip frames that say so; the first one shown is the function that the user called."""
    with pytest.raises(Exception) as told:  # noqa: PT011, each is another one
        call()
    frames = [entry.frame for entry in told.traceback]
    shown = [frame.code.name for frame in frames if "__tracebackhide__" not in frame.f_locals]
    assert first in shown and "contextlib" not in {Path(str(frame.code.path)).stem for frame in frames}
    assert shown[shown.index(first) - 1] in ("<lambda>", "described")


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("outcomes", lambda state, a, b: 0, ["outcomes(t, state, action) or outcomes(state, action);", "one tuple"]),
        ("legal", lambda state: True, ["legal(t, state, action) or legal(state, action);", "one tuple"]),
        (
            "reward",
            lambda a, b, c, d, e: 0,
            ["reward(state, action)", "reward(state, action, next_state)", "one tuple"],
        ),
        ("reward", lambda s, a, *, next_state: 0, ["reward(t, state, action, next_state)"]),
        ("actions", lambda a, b, c: [], ["actions(t, state) or actions(state)"]),
    ],
)
def test_every_form_of_a_function_is_said(name, function, said):
    """One argument per player is a common guess, and a form without the time may be what is meant."""
    with pytest.raises(ace.InvalidGame) as caught:
        described(**{name: function})
    assert all(words in str(caught.value) for words in said), caught.value
    assert ("one tuple" in str(caught.value)) == (name != "actions")


# -- public functions -----------------------------------------------------------------------------------------------

PUBLIC = ["solve", "verify", "simulate", "estimate", "bracket", "budget_curve", "feasibility", "reduce", "Shield"]
PUBLIC += ["prove", "round_costs", "discount", "compose"]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions_name_themselves_and_no_inner_function(name):
    game = described()
    with pytest.raises(TypeError, match=rf"^{name}: unknown argument 'foo', there are '(?!self)"):
        getattr(ace, name)(game, foo=1)
    with pytest.raises(TypeError, match=rf"^{name}: "):
        getattr(ace, name)(game, *range(20))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda game, made: ace.solve(game, objective="one"), r"belongs to the concept, such as CCE\(objective="),
        (lambda game, made: ace.budget_curve(game, floor=2), "belongs to the concept"),
        (lambda game, made: ace.bracket(game, backend="gambit", epsilon=1), r"Nash\(backend="),
        (lambda game, made: ace.budget_curve(game, constraints=["fuel"]), "did you mean 'constraint'"),
        (lambda game, made: ace.verify(game, made, tolerance=1), "tol=... is the largest gain"),
        (lambda game, made: ace.verify(made), r"missing .*'policy'; a Solution has .*: solution\.verify\(\)"),
        (lambda game, made: ace.simulate(made, episodes=2), r"solution\.simulate\(\)"),
        (lambda game, made: ace.verify(game), "missing a required argument: 'policy'$"),
    ],
)
def test_calls_that_are_wrong_say_what_to_write(call, said):
    game = described()
    with pytest.raises(TypeError, match=said):
        call(game, ace.solve(game))


@pytest.mark.parametrize(
    ("concept", "said"),
    [
        ("cce", r"write: ace\.CCE\(\), or with an objective ace\.CCE\(objective='welfare'\)$"),
        ("NASH", r"write: ace\.Nash\(\)"),
        (ace.CE, r"with parentheses: ace\.CE\(\)"),
        ("nsah", r"must be CE\(\), CCE\(\) or Nash\(\)$"),
        (3, "concept: got 3, must be"),
    ],
)
def test_what_is_no_concept_is_told_how_to_write_it(concept, said):
    for ask in (ace.solve, ace.estimate, ace.budget_curve, functools.partial(ace.bracket, epsilon=0.5)):
        with pytest.raises(ace.InvalidOption, match=said):
            ask(described(), concept)


def test_numbers_of_things_are_in_grammar():
    with pytest.raises(ace.InvalidGame, match=r"has 2 entries, there is 1 player$"):
        described(reward=lambda s, a: [1, 2])
    with pytest.raises(ace.InvalidGame, match=r"actions for 2 players, there is 1 player$"):
        described(actions=lambda s: [["go"], ["go"]])
    with pytest.raises(ace.InvalidGame, match=r"has 2 entries, there is 1 constraint$"):
        described(outcomes=lambda s, a: [(1, s, [1, 2])])
    with pytest.raises(ace.UnknownPair, match="2 numbers given, there is 1 constraint"):
        ace.solve(described()).policy.distribution(0, "s", [0, 0])
