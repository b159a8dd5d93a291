"""PRISM's explicit files as games, without any package: chains, decision processes, turn-based and concurrent games."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import acegames as ace
from acegames.adapters.storm import from_storm, read_model, storm_game
from acegames.adapters.storm.prism_explicit import read_explicit
from acegames.adapters.storm.storm_game import Model, Rewards, distinct, moves, player_names
from acegames.cli import app
from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption, MissingExtra, TooLarge
from model_oracle import best
from shares import examples

MODELS = Path(__file__).parents[2] / "examples" / "models"
PUBLIC_GOOD = MODELS / "public_good.tra"
QUICK = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

CSG = {
    "tra": "# Transitions (CSG)\n3:2 6 8\n0 0 1 1/3 [a,x]\n0 0 2 2/3 [a,x]\n0 1 1 1 [a,y]\n0 2 2 1 [b,x]\n0 3 0 0.25 [b,y]\n"
    "0 3 2 0.75 [b,y]\n1 0 1 1 [-,-]\n2 0 0 1 [b,-]\n",
    "lab": '# Labels\n0="init" 1="deadlock" 2="won"\n0: 0\n2: 2\n',
    "sta": "# States\n(s,ok)\n0:(0,true)\n1:(1,false)\n2:(2,true)\n",
    "srew": '# Reward structure "time"\n# State rewards\n3 2\n0 1\n2 0.5\n',
    "trew": '# Reward structure "time"\n# Transition rewards\n3 6 2\n0 0 1 1/3\n0 0 2 -2\n',
}


def written(folder, name="model", **files):
    """Write the files of a model, by ending; returns that of the transitions."""
    for ending, text in files.items():
        number = ending.lstrip("srewtalb") if ending[-1].isdigit() else ""
        folder.joinpath(f"{name}{number}.{ending.removesuffix(number)}").write_text(text)
    return folder / f"{name}.tra"


def outcomes(game, state, action):
    """{next state: (probability, exact costs)} of a joint action."""
    layer = game.layer(0)
    at = layer.outcomes(game.legal(0, state)[action])
    costs = [[values[c] for values, c in zip(game.cost_values, codes, strict=True)] for codes in layer.cost[at]]
    return {
        game.states[s]: (p, c) for s, p, c in zip(layer.next_state[at], layer.prob[at].tolist(), costs, strict=True)
    }


# -- what is read


def test_a_concurrent_game_has_its_players_states_actions_rewards_and_costs(tmp_path):
    game = read_model(written(tmp_path, **CSG), horizon=3, reward={"player2": "-time"}, budget={"time": 2})
    assert game.players == ("player1", "player2") and game.states == ("s=0,ok=true", "s=1,ok=false", "s=2,ok=true")
    assert set(game.legal(0, "s=0,ok=true")) == {("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")}
    assert outcomes(game, "s=0,ok=true", ("a", "x")) == {
        "s=1,ok=false": (pytest.approx(1 / 3), [Fraction(4, 3)]),  # 1 for the state, 1/3 for the transition
        "s=2,ok=true": (pytest.approx(2 / 3), [Fraction(-1)]),
    }
    assert outcomes(game, "s=2,ok=true", ("b", "-"))["s=0,ok=true"][1] == [Fraction(1, 2)]
    reward = game.layer(0).reward[game.legal(0, "s=0,ok=true")[("a", "x")]]
    assert reward == pytest.approx([0, -(4 / 9 - 2 / 3)])
    assert game.initial == ((0, 1.0),) and game.name == "model"


def test_a_turn_based_game_gives_the_others_nothing_to_choose(tmp_path):
    text = "# Transitions (SMG)\n3:2 5 5\n0:0 0 1 1 go\n0:0 1 2 1\n0:0 2 0 1 go\n1:1 0 1 1 stay\n2:-1 0 2 1 end\n"
    game = read_model(written(tmp_path, tra=text), horizon=2)
    assert game.states == (0, 1, 2)
    assert set(game.legal(0, 0)) == {("go", "-"), ("tau", "-"), ("go#2", "-")}
    assert set(game.legal(0, 1)) == {("-", "stay")} and set(game.legal(0, 2)) == {("-", "-")}


def test_a_chain_has_one_player_with_nothing_to_choose_and_deadlocks_stay(tmp_path):
    game = read_model(written(tmp_path, tra="3 3\n0 1 .5\n0 2 0.5\n1 0 1\n"), horizon=5)
    assert game.players == ("player",) and game.actions == (("-",),)
    assert outcomes(game, 2, ("-",)) == {2: (1.0, [])}


def test_several_reward_structures_lie_in_numbered_files(tmp_path):
    path = written(
        tmp_path,
        tra="2 2 2\n0 0 1 1 a\n1 0 1 1 a\n",
        srew1='# Reward structure "one"\n2 1\n0 1\n',
        trew2="2 2 1\n0 0 1 7/2\n",
        srew3="2 1\n1 1e-3\n",
    )
    assert {name: (r.of_state, r.of_outcome) for name, r in read_explicit(path).rewards.items()} == {
        "one": ({0: 1}, {}),
        "reward2": ({}, {0: Fraction(7, 2)}),
        "reward3": ({1: Fraction(1, 1000)}, {}),
    }
    tmp_path.joinpath("model1.tra").write_text("1 1\n0 0 1\n")  # to which model1.srew belongs then
    assert read_explicit(path).rewards == {}


def test_tabs_part_numbers_and_a_model_may_have_no_variables(tmp_path):
    path = written(tmp_path, tra="1\t1  1\n0\t0 0 1\ta\n", sta="()\n0:()\n")
    assert read_model(path, horizon=1).states == (0,)
    path = written(tmp_path, tra="2 2\n0 1 1\n1 0 1\n", sta="()\n")
    assert read_model(path, horizon=1).states == (0, 1)
    path = written(tmp_path, tra="2 2\n0 1 1\n1 0 1\n", sta="()\n0:()\n1:()\n")
    with pytest.raises(BadFile, match="two states have the same values of all variables"):
        read_model(path, horizon=1)


@st.composite
def models(draw):
    """Small models of one to three players, as the reader would return them."""
    n, states = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    row_state, row_action, out_row, chance, next_state = [], [], [], [], []
    for s in range(states):
        menu = [draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)) for _ in range(n)]
        for joint in itertools.product(*menu):
            row_state.append(s)
            row_action.append(joint)
            targets = draw(st.lists(st.integers(0, states - 1), min_size=1, max_size=3, unique=True))
            weights = [draw(st.integers(1, 5)) for _ in targets]
            out_row += [len(row_state) - 1] * len(targets)
            chance += [Fraction(w, sum(weights)) for w in weights]
            next_state += targets
    numbers = st.fractions(-3, 3, max_denominator=7).filter(bool)
    of_state = draw(st.dictionaries(st.integers(0, states - 1), numbers))
    of_outcome = draw(st.dictionaries(st.integers(0, len(out_row) - 1), numbers))
    labels = {"init": frozenset({0}), "goal": frozenset(draw(st.sets(st.integers(1, states), max_size=2))) - {states}}
    names = tuple(f"x={k}" for k in range(states))
    tables = (row_state, row_action, out_row, chance, next_state)
    return Model(player_names(n), names, (0,), *tables, labels, {"r": Rewards(of_state, {}, of_outcome)}, "model")


def as_files(model):
    """The files of a model, as PRISM-games writes them."""
    n, states, rows = len(model.players), len(model.states), len(model.row_state)
    number = [sum(other == s for other in model.row_state[:r]) for r, s in enumerate(model.row_state)]

    def place(k):
        row = model.out_row[k]
        return f"{model.row_state[row]} {number[row]} {model.next_state[k]}"

    actions = [",".join(joint) if n == 1 else f"[{','.join(joint)}]" for joint in model.row_action]
    lines = [f"{place(k)} {p} {actions[model.out_row[k]]}" for k, p in enumerate(model.chance)]
    structure = model.rewards["r"]
    names = list(model.labels)
    where = {s: [str(k) for k, name in enumerate(names) if s in model.labels[name]] for s in range(states)}
    heads = [f"{states}{f':{n}' if n > 1 else ''} {rows} {len(lines)}"]
    return {
        "tra": "\n".join(heads + lines),
        "sta": "\n".join(["(x)", *(f"{k}:({k})" for k in range(states))]),
        "lab": "\n".join(
            [
                " ".join(f'{k}="{x}"' for k, x in enumerate(names)),
                *(f"{s}: {' '.join(x)}" for s, x in where.items() if x),
            ]
        ),
        "srew": "\n".join(
            [
                '# Reward structure "r"',
                f"{states} {len(structure.of_state)}",
                *(f"{s} {x}" for s, x in structure.of_state.items()),
            ]
        ),
        "trew": "\n".join(
            [
                '# Reward structure "r"',
                f"{states} {rows} {len(structure.of_outcome)}",
                *(f"{place(k)} {x}" for k, x in structure.of_outcome.items()),
            ]
        ),
    }


@given(models())
@QUICK
def test_what_is_written_is_read_back_exactly(tmp_path, model):
    read = read_explicit(written(tmp_path, **as_files(model)))
    for field in ("players", "states", "initial", "row_state", "row_action", "labels", "name"):
        assert getattr(read, field) == getattr(model, field), field
    assert list(zip(read.out_row, read.next_state, read.chance, strict=True)) == list(
        zip(model.out_row, model.next_state, model.chance, strict=True)
    )
    assert read.rewards == model.rewards


# -- the question that is asked


@given(models().filter(lambda m: len(m.players) == 1), st.fractions(0, 4, max_denominator=3), st.integers(1, 3))
@QUICK
@pytest.mark.filterwarnings("ignore:no outcome of the game has a cost")
def test_a_budget_holds_with_probability_one_as_by_brute_force(model, budget, horizon):
    game = storm_game.game_of(model, storm_game.Question(horizon, reward="r", budget={"r": budget}))
    wanted = best(model, horizon, reward="r", cost="r", budget=budget)
    if wanted is None:
        with pytest.raises(ace.Infeasible):
            ace.solve(game)
    else:
        assert ace.solve(game).values[0] == pytest.approx(float(wanted), abs=1e-9)


@given(models().filter(lambda m: len(m.players) == 1), st.integers(1, 3))
@QUICK
def test_play_is_over_in_states_with_the_label(model, horizon):
    game = storm_game.game_of(model, storm_game.Question(horizon, reward="r", until="goal"))
    wanted = best(model, horizon, reward="r", over=model.labels["goal"])
    assert ace.solve(game).values[0] == pytest.approx(float(wanted), abs=1e-9)


def test_reaching_a_label_pays_once_and_a_minus_sign_turns_it_round(tmp_path):
    chain = {"tra": "3 4\n0 0 0.5\n0 1 0.5\n1 2 1\n2 1 1\n", "lab": '0="init" 1="goal"\n0: 0\n1: 1\n'}
    path = written(tmp_path, **chain)
    for steps in (1, 2, 5):
        assert ace.solve(read_model(path, horizon=steps, reach="goal")).values[0] == pytest.approx(1 - 0.5**steps)
        assert ace.solve(read_model(path, horizon=steps, reach="-goal")).values[0] == pytest.approx(0.5**steps - 1)
    played = ace.solve(read_model(path, horizon=3, reach="goal")).simulate(2000, rng=0)
    assert set(played.returns[:, 0]) == {0.0, 1.0}  # the goal is reached or not
    with pytest.raises(InvalidOption, match="reach: play begins in 0, which has this label already"):
        read_model(path, horizon=1, reach="init")


def test_rewards_are_weighed_added_up_and_given_to_players(tmp_path):
    path = written(tmp_path, **CSG)

    def first(**asked):
        game = read_model(path, horizon=1, **asked)
        return game.layer(0).reward[game.legal(0, "s=2,ok=true")[("b", "-")]].tolist()

    with pytest.warns(
        ace.GameWarning, match="No reward was chosen, .* the reward structure 'time' and the label 'won'"
    ):
        assert first() == [0, 0]
    assert first(reward="time") == [0.5, 0.5] and first(reward="-time") == [-0.5, -0.5]
    assert first(reward=["time", "2*time"]) == first(reward={"time": 3}) == [1.5, 1.5]
    assert first(reward={"player2": {"time": "-1/2"}}) == [0, -0.25]
    assert first(reward={"player1": "-0.5*time", "player2": "time"}) == [-0.25, 0.5]


def test_a_constraint_may_count_something_else(tmp_path):
    path = written(tmp_path, **CSG)
    game = read_model(path, horizon=2, reward="time", budget={"clock": 5, "time": 9}, cost={"clock": "-1/3*time"})
    assert outcomes(game, "s=2,ok=true", ("b", "-"))["s=0,ok=true"][1] == [Fraction(-1, 6), Fraction(1, 2)]


def test_play_may_begin_elsewhere_or_by_chance(tmp_path):
    path = written(tmp_path, tra="2 2\n0 1 1\n1 0 1\n", lab='0="init"\n0: 0\n1: 0\n')
    with pytest.raises(InvalidOption, match="has 2 initial states"):
        read_model(path, horizon=1)
    assert read_model(path, horizon=1, initial=1).initial == ((1, 1.0),)
    assert read_model(path, horizon=1, initial={0: 0.5, 1: 0.5}).initial == ((0, 0.5), (1, 0.5))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "horizon: missing"),
        ({"horizon": 0}, "horizon: got 0"),
        ({"horizon": 2, "reward": "tim"}, "reward: unknown reward structure 'tim', did you mean 'time'"),
        ({"horizon": 2, "reward": "x*time"}, "reward: unknown reward structure 'x\\*time'"),
        ({"horizon": 2, "reward": "1/0*time"}, "divides by zero"),
        ({"horizon": 2, "reward": 3}, "reward"),
        ({"horizon": 2, "reward": {"player3": "time"}}, "reward: unknown player 'player3'"),
        ({"horizon": 2, "budget": {"energy": 2}}, "budget: unknown reward structure 'energy'"),
        ({"horizon": 2, "budget": 3}, "budget"),
        ({"horizon": 2, "budget": {"time": 3}, "cost": {"tim": "time"}}, "cost: unknown constraint 'tim'"),
        ({"horizon": 2, "reach": "win"}, "reach: unknown label 'win', did you mean 'won'"),
        ({"horizon": 2, "until": 3}, "until: unknown label 3"),
        ({"horizon": 2, "initial": "s=9"}, "initial: unknown state"),
        ({"horizon": 2, "constants": {"N": 3}}, "constants: 'N': only programs"),
        ({"horizon": 2, "constants": "N=3"}, "constants: got 'N=3', must be {name: value}"),
    ],
)
def test_what_a_model_does_not_have_is_refused_by_name(tmp_path, asked, said):
    with pytest.raises((InvalidOption, InvalidGame), match=said):
        read_model(written(tmp_path, **CSG), **asked)


# -- files from strangers


@pytest.mark.parametrize(
    ("ending", "old", "new", "said"),
    [
        ("tra", CSG["tra"], "", r"model\.tra: there is nothing in it"),
        ("tra", "3:2 6 8", "3:2 6 8 9", "line 2: .* a POMDP cannot be read"),
        (
            "tra",
            "3:2 6 8",
            "3:2 6 9",
            "has 6 choices and 8 transitions, but its first line says '3:2 6 9'; is it cut off",
        ),
        ("tra", "3:2 6 8", "3:2 7 8", "is it cut off"),
        ("tra", "3:2 6 8", "3:99 6 8", "line 2: .* between 1 and 30 players"),
        ("tra", "3:2 6 8", "999999999:2 6 8", "line 2: .* as many as the file has characters"),
        ("tra", "3:2 6 8", "0:2 6 8", "line 2: .* between 1 state"),
        ("tra", "(CSG)", "(CTMC)", "line 1: holds a model of kind CTMC"),
        ("tra", "0 1 1 1 [a,y]", "0 1 7 1 [a,y]", "line 5: there is '0 1 7 1 .a,y.', expected the number of a state"),
        ("tra", "0 1 1 1 [a,y]", "0 1 1 one [a,y]", "line 5: .* expected a probability such as 0.25 or 1/3"),
        ("tra", "0 1 1 1 [a,y]", "0 1 1 2 [a,y]", "line 5: .* above 0 and at most 1"),
        (
            "tra",
            "0 1 1 1 [a,y]",
            "0 1 1 0.5 [a,y]",
            "line 5: state 0: the probabilities of a choice sum to 0.5, must be 1",
        ),
        ("tra", "0 1 1 1 [a,y]", "0 1 1 1 [a]", "line 5: .* the actions of 2 players, as .a,b."),
        ("tra", "0 1 1 1 [a,y]", "0 1 1 1 [b,x]", "line 6: .* different actions in each choice of state 0"),
        ("tra", "0 1 1 1 [a,y]", "0 1 1 [0.9,1] [a,y]", "line 5: .* a probability"),
        ("tra", "0 0 2 2/3 [a,x]", "0 0 2 2/3 [a,z]", "line 4: .* the action of line 3"),
        ("lab", '0="init"', "#DECLARATION", "expected the labels"),
        ("lab", "2: 2", "9: 2", r"model\.lab: line 4: .* number of a state"),
        ("lab", "2: 2", "2: 5", "line 4: .* numbers of labels"),
        ("sta", "(s,ok)", "s,ok", r"model\.sta: line 2: .* the variables"),
        ("sta", "1:(1,false)", "1:(1)", "line 4: .* 2 variables"),
        ("sta", "1:(1,false)\n", "", "has 2 states, the transitions have 3"),
        ("sta", "1:(1,false)", "1:(0,true)", "two states have the same values"),
        ("srew", "3 2\n", "4 2\n", r"model\.srew: line 3: there is '4 2', expected 3"),
        ("srew", "2 0.5", "2 much", "line 5: .* a reward such as"),
        ("trew", "0 0 1 1/3", "0 1 2 1/3", r"model\.trew: line 4: .* a transition of the model"),
        ("trew", "0 0 1 1/3", "0 0 1/3", "line 4: .* state choice target number"),
        ("trew", '"time"', '"other"', "has another name"),
        ("trew", "0 0 2 -2\n", "", r"model\.trew: line 3: announces 2 rewards, the file has 1; is it cut off"),
        ("trew", "0 0 1 1/3\n0 0 2 -2\n", "", "line 3: announces 2 rewards, the file has 0"),
        ("trew", "0 0 2 -2", "0 0 1 1/3", "line 5: there is '0 0 1 1/3', expected each transition once"),
        ("srew", "3 2\n", "3 5\n", r"model\.srew: line 3: announces 5 rewards, the file has 2"),
        ("srew", "2 0.5", "0 1", "line 5: there is '0 1', expected each state once"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(tmp_path, ending, old, new, said):
    assert old in CSG[ending]
    with pytest.raises(BadFile, match=said):
        read_model(written(tmp_path, **{**CSG, ending: CSG[ending].replace(old, new, 1)}), horizon=2)


def test_the_rates_of_a_ctmc_are_no_probabilities(tmp_path):
    with pytest.raises(BadFile, match=r"sum to 3\.5, must be 1; are these the rates of a CTMC"):
        read_model(written(tmp_path, tra="2 2\n0 1 3.5\n1 0 1\n"), horizon=1)


@given(st.sampled_from(sorted(CSG)), st.integers(0, 300), st.integers(0, 12), st.binary(max_size=8))
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_a_file_it_is_read_or_refused(tmp_path, ending, at, cut, put):
    path = written(tmp_path, **CSG)
    file = path.with_suffix(f".{ending}")
    raw = file.read_bytes()
    file.write_bytes(raw[:at] + put + raw[at + cut :])
    with contextlib.suppress(BadFile, InvalidGame, InvalidOption, TooLarge):
        read_model(path, horizon=2, reward="time", budget={"time": 3}, until="won")


@given(st.lists(st.sampled_from(["go", "go#2", "stop", ""]), max_size=6))
def test_choices_of_the_same_name_get_different_ones(names):
    different = distinct(names)
    assert len(different) == len(set(different)) == len(names)
    assert all(new == old for new, old in zip(different, names, strict=True) if names.count(old) == 1)


def test_nobody_moves_where_nobody_does():
    assert moves(None, 2, "go") == ("-", "-") and moves(1, 2, "go") == ("-", "go")


# -- the bundled game, the command line, and what is missing


def test_the_public_good_is_what_its_script_writes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(MODELS))
    import public_good

    public_good.main(tmp_path)
    written_files = sorted(path.name for path in tmp_path.iterdir())
    assert len(written_files) == 5
    for name in written_files:
        assert (tmp_path / name).read_text() == (MODELS / name).read_text(), name


def test_the_command_line_asks_the_same_question():
    words = ["--horizon", "3", "--cost", "paid1=2", "--cost", "paid2=1/2", "--reward", "player1=-paid1"]
    words += ["--reward", "player2=-paid2", "--json"]
    shown = CliRunner().invoke(app, ["solve", str(PUBLIC_GOOD), *words])
    assert shown.exit_code == 0, shown.output
    rewards = {"player1": "-paid1", "player2": "-paid2"}
    game = read_model(PUBLIC_GOOD, horizon=3, budget={"paid1": 2, "paid2": Fraction(1, 2)}, reward=rewards)
    values = json.loads(shown.stdout)["values"]
    assert list(values.values()) == pytest.approx(ace.solve(game).values.tolist())
    assert np.allclose(ace.load(PUBLIC_GOOD, horizon=3, reward=rewards).layer(0).reward, game.layer(0).reward)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--horizon: missing"),
        (["--horizon", "2", "--cost", "paid1"], "--cost paid1: must be NAME=VALUE, such as energy=20"),
        (["--horizon", "2", "--cost", "paid1=x"], "--cost paid1=x: 'x' is not a finite number"),
        (["--horizon", "2", "--cost", "paid1=1", "--cost", "paid1=2"], "paid1 is given twice"),
        (["--horizon", "2", "--cost", "paid=1"], "--cost: unknown reward structure 'paid'"),
        (["--horizon", "2", "--reward", "paid1", "--reward", "player1=paid2"], "--reward: name the player each time"),
        (["--horizon", "2", "--reach", "initt"], "--reach: unknown label 'initt', did you mean 'init'"),
        (["--horizon", "2", "-p", "N=3"], "-p: 'N': only programs"),
        (["--horizon", "none"], "none is no whole number"),
    ],
)
def test_what_is_wrong_is_said_as_it_is_typed(words, said):
    shown = CliRunner().invoke(app, ["check", str(PUBLIC_GOOD), *words])
    assert shown.exit_code == 2 and said in " ".join(shown.output.replace("│", " ").split())


def test_other_games_do_not_take_the_options_of_models(tmp_path):
    shown = CliRunner().invoke(app, ["check", "knapsack", "--horizon", "3"])
    assert shown.exit_code == 2 and "--horizon: goes with a model of PRISM or Storm" in shown.output
    ace.catalog.get("knapsack").save(tmp_path / "game.yaml")
    shown = CliRunner().invoke(app, ["check", str(tmp_path / "game.yaml"), "--cost", "weight=3"])
    assert shown.exit_code == 2 and "--cost:" in shown.output and "only models of PRISM and Storm" in shown.output
    with pytest.raises(InvalidOption, match="horizon: goes with a model"):
        ace.load(tmp_path / "game.yaml", horizon=3)


def test_words_that_are_nearly_right_are_answered_with_the_right_ones(tmp_path):
    def said(*words):
        shown = CliRunner().invoke(app, ["solve", *map(str, words)])
        assert shown.exit_code == 2
        return " ".join(shown.output.replace("│", " ").split())

    for words in (["--budget", "paid1=2"], ["--budget=paid1=2"]):
        assert "of a model, --cost paid1=2 bounds" in said("public_good.tra", "--horizon", 3, *words)
    assert "which is part of the game" in said("knapsack", "--budget", "weight=2")
    path = written(tmp_path, **CSG)
    tmp_path.joinpath("model1.srew").write_text("3 0\n")
    for ending in (".lab", ".sta", ".trew", "1.srew"):
        for words in ([], ["--horizon", 3]):
            assert f"by its transitions: give {path}" in said(tmp_path / f"model{ending}", *words)


@pytest.mark.parametrize(
    ("ending", "package"), [("prism", "stormpy"), ("jani", "stormpy"), ("drn", "stormpy"), ("umb", "umbi")]
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, ending, package):
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"model.{ending}"
    path.write_text("mdp")
    with pytest.raises(MissingExtra, match=f"need {package}: pip install 'acegames\\[storm\\]'"):
        read_model(path, horizon=2)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InvalidOption, match=r"the ending must be one of \.prism"):
        read_model(tmp_path / "model.txt", horizon=2)
    with pytest.raises(InvalidOption, match="must be a sparse model of stormpy"):
        from_storm(object(), horizon=2)
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "model.tra", horizon=2)
    assert issubclass(BadFile, AceError)
