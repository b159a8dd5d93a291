"""Normal-form games in and out, stage games against the solution's own values, and the solvers of other libraries behind Nash."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames.adapters import gambit
from acegames.adapters.gambit.nfg import format_nfg, parse_nfg
from acegames.stage.nash import polished, share_of_regret
from shares import examples

PAYOFFS = st.floats(allow_nan=False, allow_infinity=False, width=64)
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\"), min_size=1, max_size=5)

CHICKEN = """NFG 1 R "A game of \\"chicken\\"" { "red" "blue" }
{ { "dare" "yield" } { "dare" "yield" } }
"a comment { with } braces and 17 numbers"

0 -1/3  .5 7   7.0e0,0.1   1e-3 -6"""

BY_OUTCOME = """NFG 1 D "outcomes" { "a" "b" } { 2 3 }
{ { "" 1, 2 } { "best" 3/4 4 } }
1 2 0 1 2 2
"""


@st.composite
def normal_forms(draw):
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    size = len(shape) * math.prod(shape)
    payoffs = np.array(draw(st.lists(PAYOFFS, min_size=size, max_size=size))).reshape(len(shape), *shape)
    labels = [tuple(draw(st.lists(NAMES, min_size=k, max_size=k, unique=True))) for k in [len(shape), *shape]]
    return labels[0], tuple(labels[1:]), payoffs


@given(normal_forms())
@settings(max_examples=examples(60), deadline=None)
def test_nfg_text_comes_back_to_the_last_bit(form):
    players, actions, payoffs = form
    back = parse_nfg(format_nfg('a "title"', players, actions, payoffs))
    assert (back.title, back.players, back.actions) == ('a "title"', players, actions)
    assert np.array_equal(back.payoffs, payoffs)


def test_payoffs_by_joint_action_are_read_exactly_first_player_fastest():
    game = gambit.read_nfg(CHICKEN)
    assert game.players == ("red", "blue") and game.name == 'A game of "chicken"'
    payoffs = {game.joint_action(a): tuple(r) for a, r in zip(game.layer(0).action, game.layer(0).reward, strict=True)}
    assert payoffs == {
        ("dare", "dare"): (0.0, -1 / 3),
        ("yield", "dare"): (0.5, 7.0),
        ("dare", "yield"): (7.0, 0.1),
        ("yield", "yield"): (0.001, -6.0),
    }


def test_payoffs_by_outcome():
    parsed = parse_nfg(BY_OUTCOME)
    assert parsed.actions == (("1", "2"), ("1", "2", "3"))
    assert parsed.payoffs[:, 0, 0].tolist() == [1, 2] and parsed.payoffs[:, 1, 0].tolist() == [0.75, 4]
    assert parsed.payoffs[:, 0, 1].tolist() == [0, 0]  # no outcome


def test_labels_that_are_missing_or_repeated_get_numbers():
    text = 'NFG 1 R "" { "p" "p" } { { "" "x" } { "x" "x" } } 1 2 3 4 5 6 7 8'
    assert parse_nfg(text).players == ("p_1", "p_2")
    assert parse_nfg(text).actions == (("_1", "x"), ("x_1", "x_2"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: the file ends"),
        ("EFG 2 R", "'NFG 1 R'"),
        ("NFG 2 R", "'NFG 1 R'"),
        ('NFG 1 R "t', "the end of the text"),
        ('NFG 1 R "t" { } { }', "between 1 and 30 players"),
        ('NFG 1 R "t" { ' + '"p" ' * 31 + "} {", "between 1 and 30 players"),
        ('NFG 1 R "t" { "a" "b" } { 2 } 1 2', "the actions of each player"),
        ('NFG 1 R "t" { "a" "b" } { 0 2 } 1', "the number of a player's actions"),
        ('NFG 1 R "t" { "a" "b" } { 999999999 999999999 } 1 2', "the number of a player's actions"),
        ('NFG 1 R "t" { "a" "b" } { 9999999999999 2 } 1 2', "the number of a player's actions"),
        ('NFG 1 R "t" { "a" "b" "c" "d" } { 9 9 9 9 }' + " 1" * 99, "more than the rest of the file can hold"),
        ('NFG 1 R "' + "t" * 10**6, "the end of the text"),
        ('NFG 1 R "t" { "a" } { 2 }\n1 x', "line 2: there is 'x'"),
        ('NFG 1 R "t" { "a" } { 2 }\n1 1/0', "a float can hold"),
        ('NFG 1 R "t" { "a" } { 2 }\n1 1e999', "a float can hold"),
        ('NFG 1 R "t" { "a" } { 2 }\n1 2 3', "nothing more"),
        ('NFG 1 R "t" { "a" } { 2 }\n{ { "o" 1 } } 1 2', "at most 1"),
        ('NFG 1 R "t" { "a" } { 2 }\n{ { "o" 1 } } 1 -1', "the number of an outcome"),
        ('NFG 1 R "t" { "a" } { 2 }\n1 ' + "9" * 5000 + "/7", "a float can hold"),
    ],
)
def test_hostile_and_damaged_text_is_refused(text, says):
    with pytest.raises(ace.BadFile, match=r"line \d+") as error:
        parse_nfg(text)
    assert says in str(error.value)


@given(st.text(alphabet='NFG1R "{}0,./e\n-\\', max_size=60))
@settings(max_examples=examples(200), deadline=None)
def test_any_text_is_read_or_refused(text):
    for body in (text, 'NFG 1 R "t" { "a" "b" } { 2 2 } ' + text):
        with contextlib.suppress(ace.BadFile):
            parse_nfg(body)


def test_what_a_file_announces_is_added_up_before_labels_are_made():
    import tracemalloc

    many = 'NFG 1 R "t" { ' + '"p" ' * 30 + "} { " + "300000 " * 30 + "}" + " 1" * 200_000
    tracemalloc.start()
    with pytest.raises(ace.BadFile, match=r"2\.1e\+164 joint actions, more than the rest of the file can hold"):
        parse_nfg(many)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_a_path_may_begin_like_the_text_and_the_text_with_a_byte_order_mark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "NFG 1.nfg").write_text(CHICKEN)
    assert gambit.read_nfg("NFG 1.nfg").digest == gambit.read_nfg("\ufeff" + CHICKEN).digest


def test_files_that_are_no_text_are_refused_with_their_name(tmp_path):
    path = tmp_path / "game.nfg"
    path.write_bytes(b"NFG 1 R \xff\xfe")
    with pytest.raises(ace.BadFile, match=r"game\.nfg: line 1: not UTF-8"):
        gambit.read_nfg(path)
    with pytest.raises(ace.BadFile, match=r"game\.nfg"):
        ace.load(path)


def test_load_reads_nfg_files(tmp_path):
    path = tmp_path / "chicken.nfg"
    path.write_text(CHICKEN)
    assert ace.load(path).digest == gambit.read_nfg(path).digest == gambit.read_nfg(CHICKEN).digest


@pytest.mark.parametrize(
    "cost",
    [
        lambda a: Fraction(1, 10) if a == ("dare", "dare") else 0,
        lambda a: {"risk": Fraction(1, 10)} if a == ("dare", "dare") else {},
        [[Fraction(1, 10), 0], [0, 0]],
        np.array([[[0.1], [0]], [[0], [0]]]),
    ],
)
def test_costs_and_budgets_of_a_game_that_is_repeated(cost):
    game = gambit.read_nfg(CHICKEN, cost=cost, budget={"risk": Fraction(2, 10)}, horizon=4)
    assert game.horizon == 4 and game.cost_values == ((Fraction(0), Fraction(1, 10)),)
    assert len(ace.feasibility(game).actions(2, 0, Fraction(2, 10))) == 3


def test_costs_of_an_unknown_constraint_are_refused():
    with pytest.raises(ace.InvalidGame, match="cost names the unknown constraint 'fuel'"):
        gambit.read_nfg(CHICKEN, cost=lambda a: {"fuel": 1}, budget={"risk": 1})


def test_costs_by_constraint_need_budgets():
    with pytest.raises(ace.InvalidGame, match=r"action \('dare', 'dare'\).*give budget=\{constraint: number\}"):
        gambit.read_nfg(CHICKEN, cost=lambda a: {"risk": 1})


def test_a_game_of_one_step_goes_out_and_comes_back(tmp_path):
    game = gambit.read_nfg(CHICKEN)
    gambit.write_nfg(game, tmp_path / "out.nfg")
    assert gambit.read_nfg(tmp_path / "out.nfg").digest == game.digest
    with pytest.raises(ace.InvalidOption, match="horizon 3"):
        gambit.write_nfg(gambit.read_nfg(CHICKEN, horizon=3), tmp_path / "more.nfg")
    assert not (tmp_path / "more.nfg").exists()


def test_joint_actions_that_are_infeasible_need_a_price(tmp_path):
    game = gambit.read_nfg(CHICKEN, cost=lambda a: int(a == ("dare", "dare")), budget=0)
    with pytest.raises(ace.InvalidOption, match=r"no product: 1 combinations such as \('dare', 'dare'\)"):
        gambit.write_nfg(game, tmp_path / "out.nfg")
    gambit.write_nfg(game, tmp_path / "out.nfg", outside=[-50, -60])
    assert parse_nfg((tmp_path / "out.nfg").read_text()).payoffs[:, 0, 0].tolist() == [-50, -60]


@pytest.mark.parametrize("outside", [[1, 2, 3], "x", {"a": 1}, math.nan, [[1], [2]]])
def test_prices_that_are_none_are_refused(outside):
    feasible = np.array([[False, True], [True, True]])
    stage = gambit.StageGame(("a", "b"), ((0, 1), (0, 1)), np.zeros((2, 2, 2)), feasible)
    with pytest.raises(ace.InvalidOption, match=r"outside: got .* one for each player"):
        stage.to_nfg(outside=outside)


@pytest.mark.parametrize("payoff", [math.nan, math.inf])
def test_payoffs_that_are_not_finite_are_not_written(payoff):
    stage = gambit.StageGame(("a",), ((0, 1),), np.array([[payoff, 1.0]]), np.ones(2, dtype=bool))
    with pytest.raises(ace.InvalidOption, match="must be finite"):
        stage.to_nfg()


def test_actions_that_are_never_feasible_are_left_out(tmp_path):
    game = gambit.read_nfg(CHICKEN, cost=lambda a: int(a[0] == "dare"), budget=0)
    gambit.write_nfg(game, tmp_path / "out.nfg")
    assert parse_nfg((tmp_path / "out.nfg").read_text()).actions == (("yield",), ("dare", "yield"))


@pytest.mark.parametrize("label", ["back\\slash", "line\nend", "", "x", "ü", " x", "a  b"])
def test_labels_that_a_file_cannot_hold_are_refused(label):
    with pytest.raises(ace.InvalidOption, match="actions of player 'a'"):
        format_nfg("", ["a"], [[label, "x"]], np.zeros((1, 2)))


# -- stage games -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE(), ace.Nash()])
@pytest.mark.parametrize("name", ["intersection", "corridor", "medium_access"])
def test_the_policy_earns_its_value_in_the_stage_game(name, concept):
    game = ace.catalog.get(name)
    solution, safe = ace.solve(game, concept), ace.feasibility(game)
    for t in range(game.horizon):
        for state, spent in safe.states(t):
            stage = gambit.stage_game(solution, t, state, spent)
            index = [{a: k for k, a in enumerate(own)} for own in stage.actions]
            joint = {tuple(index[i][x] for i, x in enumerate(a)): a for a in safe.actions(t, state, spent)}
            assert {tuple(at) for at in np.argwhere(stage.feasible).tolist()} == set(joint)
            played = solution.policy.distribution(t, state, spent)
            worth = sum(p * stage.payoffs[(slice(None), *at)] for at, a in joint.items() if (p := played.get(a)))
            np.testing.assert_allclose(worth, solution.policy.values(t, state, spent), atol=1e-9)


def test_stage_games_of_policies_that_round_costs():
    game = ace.catalog.get("drones")
    solution = ace.solve(game, epsilon=1)
    stage = gambit.stage_game(solution, 0, game.states[game.initial[0][0]], [0] * len(game.constraints))
    best = np.nanmax(stage.payoffs.sum(axis=0))
    assert best >= solution.values.sum() - 1e-9


def test_places_that_cannot_occur_are_refused():
    solution = ace.solve(ace.catalog.get("intersection"))
    with pytest.raises(ace.UnknownPair, match="not reachable under feasible play"):
        gambit.stage_game(solution, 0, "dry", 1)


def test_a_policy_is_not_a_solution():
    policy = ace.solve(ace.catalog.get("intersection")).policy
    with pytest.raises(ace.InvalidOption, match="solution: got Policy"):
        gambit.stage_game(policy, 0, "dry", 0)


@pytest.mark.parametrize("state", ["new\nline", "back\\slash", "\u00e9"])
def test_titles_are_made_plain(state):
    reward = np.random.default_rng(0).random((1, 2, 2, 2))
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 2, 1)), reward, horizon=1, states=[state], initial=state, name="n")
    stage = gambit.stage_game(ace.solve(game), 0, state, ())
    title = f"n, t=0, state {state[:3] if len(state) > 4 else ''}"
    assert parse_nfg(stage.to_nfg()).title.startswith(title) and "?" in parse_nfg(stage.to_nfg()).title
    with contextlib.suppress(ace.MissingExtra):
        assert "?" in stage.to_gambit().title


# -- other libraries ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stage():
    rng = np.random.default_rng(1)
    actions = tuple(tuple(f"{p}{k}" for k in range(n)) for p, n in zip("abc", (2, 3, 4), strict=True))
    payoffs = rng.normal(size=(3, 2, 3, 4)) * 10.0 ** rng.integers(-9, 9, size=(3, 2, 3, 4))
    return gambit.StageGame(("a", "b", "c"), actions, payoffs, np.ones((2, 3, 4), dtype=bool), "three")


def test_quantecon_games_go_out_and_come_back(stage):
    theory = pytest.importorskip("quantecon.game_theory")
    game = stage.to_quantecon()
    assert isinstance(game, theory.NormalFormGame)
    for at in np.ndindex(2, 3, 4):
        assert game[at].tolist() == stage.payoffs[(slice(None), *at)].tolist()
    assert np.array_equal(gambit.from_quantecon(game).layer(0).reward, stage.to_game().layer(0).reward)


def test_nashpy_games_go_out_and_come_back():
    nashpy = pytest.importorskip("nashpy")
    rng = np.random.default_rng(2)
    one, two = rng.random((2, 3, 2))
    game = gambit.from_nashpy(nashpy.Game(one, two))
    solution = ace.solve(game, ace.Nash(objective=None))
    faced = gambit.stage_game(solution, 0, 0, ()).to_nashpy()
    assert np.array_equal(faced.payoff_matrices[0], one) and np.array_equal(faced.payoff_matrices[1], two)
    ours = [
        [own.get(a, 0.0) for a in labels]
        for own, labels in zip(solution.policy.strategies(0, 0, ()), game.actions, strict=True)
    ]
    assert any(np.allclose(x, ours[0]) and np.allclose(y, ours[1]) for x, y in faced.support_enumeration())


def test_nashpy_has_two_players(stage):
    with pytest.raises(ace.InvalidOption, match="has 2 players, this one has 3"):
        stage.to_nashpy()


def test_gambit_games_go_out_and_come_back(stage):
    pytest.importorskip("pygambit")
    game = stage.to_gambit()
    assert [p.label for p in game.players] == ["a", "b", "c"] and game.title == "three"
    arrays = np.array([np.asarray(a, dtype=np.float64) for a in game.to_arrays(float)])
    assert np.array_equal(arrays, stage.payoffs)
    assert gambit.from_gambit(game).digest == stage.to_game().digest


@given(normal_forms())
@settings(max_examples=examples(30), deadline=None)
def test_gambit_reads_what_is_written(form):
    pygambit = pytest.importorskip("pygambit")
    players, actions, payoffs = form
    stage = gambit.StageGame(players, actions, payoffs, np.ones(payoffs.shape[1:], dtype=bool))
    game = stage.to_gambit()
    assert isinstance(game, pygambit.Game)
    arrays = np.array([np.asarray(a, dtype=np.float64) for a in game.to_arrays(float)])
    np.testing.assert_allclose(arrays, payoffs, rtol=1e-15)
    assert tuple(p.label for p in game.players) == players


# -- the solvers of other libraries --------------------------------------------------------------------------------------


def random_game(seed, shape, *, whole=False, legal=None):
    rng = np.random.default_rng(seed)
    size = (2, *shape)
    reward = rng.integers(0, 4, (*size, len(shape))).astype(float) if whole else rng.random((*size, len(shape)))
    moves = rng.dirichlet(np.ones(2), size=size)
    return ace.MarkovGame.from_arrays(moves, reward, rng.integers(0, 2, (*size, 1)), [9], horizon=2, legal=legal)


@pytest.fixture(params=["quantecon", "gambit"])
def backend(request):
    pytest.importorskip({"quantecon": "quantecon", "gambit": "pygambit"}[request.param])
    return request.param


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 2, 3), (2, 2, 2, 2)])
def test_a_backend_finds_mixed_equilibria_of_three_and_more_players(backend, shape):
    helped = 0
    for seed in range(8):
        game = random_game(seed, shape)
        solution = ace.solve(game, ace.Nash(backend=backend))
        assert ace.verify(game, solution.policy, ace.Nash()).ok
        try:
            ace.solve(game, ace.Nash())
        except ace.NoEquilibrium:
            helped += 1
    assert helped >= 2


@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
@pytest.mark.parametrize("objective", ["welfare", 0, "egalitarian"])
def test_a_backend_agrees_with_our_own_on_two_players(backend, shape, objective):
    for seed in range(2):
        game = random_game(seed, shape)
        own, other = (ace.solve(game, ace.Nash(objective, b)) for b in (None, backend))
        np.testing.assert_allclose(own.values, other.values, atol=1e-9)
        assert ace.verify(game, other.policy, ace.Nash()).ok


def test_both_engines_ask_the_backend_and_answers_repeat(backend):
    game = random_game(3, (2, 2, 2))
    engines = (ace.LocalEngine(), ace.LocalEngine(threads=1, dense=False), ace.ReferenceEngine())
    answers = [ace.solve(game, ace.Nash(backend=backend), engine=engine).values for engine in engines]
    assert np.array_equal(answers[0], answers[1])
    np.testing.assert_allclose(answers[0], answers[2], atol=1e-12)


def test_the_concept_of_a_saved_solution_keeps_its_backend(tmp_path, backend):
    game = random_game(5, (2, 2))
    solution = ace.solve(game, ace.Nash(None, backend))
    solution.save(tmp_path / "s.ace")
    assert ace.Solution.load(tmp_path / "s.ace").concept == ace.Nash(None, backend)


def test_where_the_stage_is_no_product_two_players_are_solved_as_ever():
    pytest.importorskip("quantecon")
    with pytest.raises(ace.NoEquilibrium, match="exact arithmetic"):
        ace.solve(ace.catalog.get("six_cycle"), ace.Nash(backend="quantecon"))


def broken(payoffs, every):
    raise RuntimeError("out of order")
    yield


@pytest.mark.parametrize(
    "answer", [[math.nan, math.nan], [0.0, 0.0], [1.0], [[1.0, 0.0]], ["a", "b"], None, [1.0, 0.0]]
)
@pytest.mark.filterwarnings("ignore:quantecon failed")
def test_answers_that_are_no_mixtures_or_no_equilibria_are_dropped(monkeypatch, answer):
    pytest.importorskip("quantecon")
    from acegames.stage import nash as module

    monkeypatch.setitem(module.CANDIDATES, "quantecon", lambda payoffs, every: iter([[answer] * 3]))
    game = next(g for g in (random_game(s, (2, 2, 2)) for s in range(50)) if not has_pure(g))
    with pytest.raises(ace.NoEquilibrium, match="quantecon is used only where") as error:
        ace.solve(game, ace.Nash(backend="quantecon"))
    assert error.value.t is not None


@pytest.mark.parametrize("engine", [ace.LocalEngine(), ace.ReferenceEngine()])
def test_a_library_that_fails_is_done_without(monkeypatch, engine):
    pytest.importorskip("quantecon")
    from acegames.stage import nash as module

    monkeypatch.setitem(module.CANDIDATES, "quantecon", broken)
    two = random_game(0, (3, 3))
    with pytest.warns(RuntimeWarning, match="quantecon failed at a stage .RuntimeError: out of order"):
        solution = ace.solve(two, ace.Nash(backend="quantecon"), engine=engine)
    np.testing.assert_allclose(solution.values, ace.solve(two, ace.Nash(), engine=engine).values)
    three = next(g for g in (random_game(s, (2, 2, 2)) for s in range(50)) if not has_pure(g))
    with pytest.warns(RuntimeWarning, match="out of order"), pytest.raises(ace.NoEquilibrium):
        ace.solve(three, ace.Nash(backend="quantecon"), engine=engine)


def test_stages_with_too_many_supports_for_a_library_are_solved_as_without_it(backend):
    reward = np.random.default_rng(0).random((1, 9, 9, 2))
    game = ace.MarkovGame.from_arrays(np.ones((1, 9, 9, 1)), reward, horizon=1)
    own, other = (ace.solve(game, ace.Nash(backend=b)) for b in (None, backend))
    assert np.array_equal(own.values, other.values)


def has_pure(game):
    try:
        return bool(ace.solve(game, ace.Nash()))
    except ace.NoEquilibrium:
        return False


def test_newton_makes_an_approximate_equilibrium_exact():
    pennies = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    exact = polished(pennies, [np.array([0.49, 0.51]), np.array([0.52, 0.48])])
    assert share_of_regret(pennies, exact) == 0.0
    assert polished(np.array([[[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]), [[0.5, 0.5], [0.0, 1.0]]) is None


def test_unknown_backends_are_refused():
    with pytest.raises(ace.InvalidOption, match="backend: got 'gurobi'"):
        ace.Nash(backend="gurobi")


@pytest.mark.parametrize("missing", ["quantecon", "pygambit", "nashpy"])
def test_what_is_missing_is_named(monkeypatch, missing):
    import sys

    monkeypatch.setitem(sys.modules, missing, None)
    chicken = parse_nfg(CHICKEN)
    stage = gambit.StageGame(chicken.players, chicken.actions, chicken.payoffs, np.ones((2, 2), dtype=bool))
    call = {"quantecon": stage.to_quantecon, "pygambit": stage.to_gambit, "nashpy": stage.to_nashpy}[missing]
    with pytest.raises(ace.MissingExtra, match=r"pip install 'acegames\["):
        call()
    if missing != "nashpy":
        with pytest.raises(ace.MissingExtra, match="backend"):
            ace.solve(random_game(0, (2, 2)), ace.Nash(backend={"pygambit": "gambit"}.get(missing, missing)))
