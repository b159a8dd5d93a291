"""Models that Storm builds and that umbi reads, as games: the same answers as Storm's. `make test-storm` installs what these need."""

from __future__ import annotations

import contextlib
import io
import json
import random
import tarfile
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

import acegames as ace
from acegames.adapters import storm
from acegames.adapters.storm.prism_explicit import read_explicit
from acegames.adapters.storm.storm_programs import read_drn, read_program
from acegames.adapters.storm.umb import read_umb
from acegames.cli import app
from acegames.errors import BadFile, InvalidGame, InvalidOption, TooLarge
from model_oracle import best

stormpy = pytest.importorskip("stormpy", reason="needs stormpy: make test-storm")
pytest.importorskip("umbi", reason="needs umbi: make test-storm")

MODELS = Path(__file__).parents[2] / "examples" / "models"

WALK = """mdp
const int N;
const double p = 0.1;
const bool quick;
module walk
  x : [0..N] init 0;
  tired : bool init false;
  [go] x < N -> p : true + 1 - p : (x' = x + 1) & (tired' = !tired);
  [] x < N & tired -> 1/3 : (tired' = false) + 2/3 : true;
  [go] x < N & quick -> (x' = min(N, x + 2));
endmodule
label "there" = x = N;
rewards "time" true : 0.1; [go] true : 1/3; [] x = 1 : 2; endrewards
rewards "effort" [go] tired : 0.3; [go] !tired : 0.1; endrewards
"""


@pytest.fixture
def walk(tmp_path):
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    return path


def storm_says(path, constants, formula):
    """The value that Storm computes."""
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(path)), constants)
    properties = stormpy.parse_properties(formula, program)
    model = stormpy.build_model(program, properties)
    return stormpy.model_checking(model, properties[0], only_initial_states=True).get_value(model.initial_states[0])


# -- the same answers


@pytest.mark.parametrize("name", ["time", "effort"])
@pytest.mark.parametrize("steps", [1, 4, 9])
@pytest.mark.parametrize("sign", ["max", "min"])
def test_expected_totals_are_those_of_storm(walk, name, steps, sign):
    constants = {"N": 3, "quick": True}
    wanted = storm_says(walk, constants, f'R{{"{name}"}}{sign}=? [C<={steps}]')
    reward = name if sign == "max" else f"-{name}"
    game = storm.read_model(walk, horizon=steps, reward=reward, constants=constants)
    assert ace.solve(game).values[0] == pytest.approx(wanted if sign == "max" else -wanted, abs=1e-9)


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_probabilities_of_reaching_are_those_of_storm(walk, steps):
    constants = {"N": 3, "quick": False}
    most, least = (storm_says(walk, constants, f'P{s}=? [F<={steps} "there"]') for s in ("max", "min"))
    for label, wanted in (("there", most), ("-there", -least)):
        game = storm.read_model(walk, horizon=steps, reach=label, constants=constants)
        assert ace.solve(game).values[0] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("budget", [5, 6, 8])
def test_a_hard_budget_is_stricter_than_a_bound_on_the_runs_that_count(budget):
    """Storm maximises over all policies, also those that may exceed the bound in runs that then do not count."""
    constants = {"N": 5}
    bounded = storm_says(MODELS / "robot.prism", constants, f'Pmax=? [F{{"energy"}}<={budget},{{"time"}}<=30 "goal"]')
    game = storm.read_model(
        MODELS / "robot.prism", horizon=30, budget={"energy": budget}, reach="goal", constants=constants
    )
    solution = ace.solve(game)
    assert solution.values[0] < bounded and ace.verify(game, solution.policy).ok
    model = read_program(MODELS / "robot.prism", constants)
    optimum = best(model, 30, goal=model.labels["goal"], cost="energy", budget=budget)
    assert solution.values[0] == pytest.approx(float(optimum), abs=1e-9)


def test_coin4_has_the_states_of_the_benchmark():
    model = read_program(MODELS / "coin4.prism", {"K": 2})
    assert len(model.states) == 22_656 and model.states[0].startswith("counter=12,at1=0,coin1=0,at2=0")
    assert set(model.row_action) == {("turn1",), ("turn2",), ("turn3",), ("turn4",), ("tau",)}


# -- every format


def test_numbers_are_exact_and_states_and_actions_readable(walk):
    model = read_program(walk, {"N": 2, "quick": "true"})
    assert set(model.chance) == {Fraction(1, 10), Fraction(9, 10), Fraction(1, 3), Fraction(2, 3), Fraction(1)}
    assert set(model.rewards["time"].of_row.values()) == {Fraction(1, 3), Fraction(2)}
    assert set(model.rewards["effort"].of_row.values()) == {Fraction(1, 10), Fraction(3, 10)}
    assert model.states[0] == "x=0,tired=false" and {a for (a,) in model.row_action} == {"go", "go#2", "tau"}
    assert model.labels["there"] == {s for s, name in enumerate(model.states) if name.startswith("x=2")}


def test_all_formats_hold_the_same_game(walk, tmp_path):
    constants = {"N": 2, "quick": True}
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(walk)), constants)
    full = stormpy.BuilderOptions(build_full=True)
    exact = stormpy.build_model[stormpy.Rational](program, options=full)
    stormpy.io.export_to_drn(exact, str(tmp_path / "walk.drn"))
    stormpy.io.export_to_umb(stormpy.build_model(program, options=full), str(tmp_path / "walk.umb"))
    jani, _ = stormpy.parse_prism_program(str(walk)).to_jani([])
    (tmp_path / "walk.jani").write_text(str(jani))
    asked = {"horizon": 5, "reward": "-time", "budget": {"effort": Fraction(1, 2)}, "until": "there"}
    games = [
        storm.read_model(walk, constants=constants, **asked),
        storm.read_model(tmp_path / "walk.jani", constants=constants, **asked),
        storm.read_model(tmp_path / "walk.drn", **asked),
        storm.read_model(tmp_path / "walk.umb", **asked),
        storm.from_storm(exact, **asked),
    ]
    values = [ace.solve(game).values[0] for game in games]
    assert values == pytest.approx([values[0]] * len(games), abs=1e-9)
    assert [set(map(str, game.cost_values[0])) for game in games] == [{"0", "1/10", "3/10"}] * len(games)
    assert sorted(games[1].states) == sorted(games[3].states) and "tired=false,x=0" in games[3].states
    assert read_drn(tmp_path / "walk.drn").rewards.keys() == {"time", "effort"}
    assert read_umb(tmp_path / "walk.umb").labels["there"] and games[4].states == games[3].states


def test_explicit_files_are_read_as_storm_reads_them(tmp_path):
    """Storm's own example of a decision process, in PRISM's language and written out by hand."""
    program = (
        "mdp\nmodule m\ns : [0..1] init 0;\n[a] s = 0 -> 0.5 : (s' = 1) + 0.5 : true;\n[b] s = 0 -> true;\nendmodule\n"
    )
    (tmp_path / "two.prism").write_text(program)
    (tmp_path / "two.tra").write_text("2 3 4\n0 0 0 0.5 a\n0 0 1 0.5 a\n0 1 0 1 b\n1 0 1 1\n")
    built, explicit = read_program(tmp_path / "two.prism", {}), read_explicit(tmp_path / "two.tra")
    assert (explicit.row_state, explicit.row_action) == (built.row_state, built.row_action)
    assert (explicit.out_row, explicit.next_state, explicit.chance) == (built.out_row, built.next_state, built.chance)


def test_a_turn_based_game_has_several_players(tmp_path):
    path = tmp_path / "turns.prism"
    path.write_text(
        "smg\nplayer one [a], [b] endplayer\nplayer two [c] endplayer\nmodule m\ns : [0..2] init 0;\n"
        "[a] s = 0 -> (s' = 1);\n[b] s = 0 -> (s' = 2);\n[c] s = 1 -> (s' = 2);\n[b] s = 2 -> true;\nendmodule\n"
    )
    game = storm.read_model(path, horizon=2)
    assert game.players == ("player1", "player2")
    assert set(game.legal(0, "s=0")) == {("a", "-"), ("b", "-")} and set(game.legal(0, "s=1")) == {("-", "c")}


# -- what is refused


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({}, "constants: N, quick must be given"),
        ({"N": 2, "quick": True, "M": 2}, "constants: unknown constant 'M', there are 'N', 'quick'"),
        ({"N": 2, "quick": True, "p": 2}, "constants: p has a value in the program already"),
        ({"N": "2.5", "quick": True}, "constants: N: got '2.5', must be a whole number"),
        ({"N": "two", "quick": True}, "constants: N: 'two' is not a finite number"),
        ({"N": 2, "quick": 1}, "constants: quick: got 1, must be true or false"),
    ],
)
def test_constants_are_given_once_and_fit(walk, constants, said):
    with pytest.raises(InvalidOption, match=said):
        storm.read_model(walk, horizon=2, constants=constants)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("ctmc", "time goes on continuously"),
        ("pomdp", "states are hidden"),
        ("csg", r"prism model\.prism -exportmodel model\.all"),
    ],
)
def test_kinds_that_are_no_games_of_steps_are_refused_with_the_reason(tmp_path, kind, reason):
    observables = "observables x endobservables\n" if kind == "pomdp" else ""
    path = tmp_path / "model.prism"
    path.write_text(
        f"// a model\n{kind}\n{observables}module m\nx : [0..1] init 0;\n[a] true -> 1 : (x' = 0);\nendmodule\n"
    )
    with pytest.raises(InvalidGame, match=reason):
        storm.read_model(path, horizon=2)


def test_drn_of_other_kinds_is_refused(tmp_path):
    path = tmp_path / "model.drn"
    path.write_text(
        "@type: CTMC\n@parameters\n\n@reward_models\n\n@nr_states\n1\n@model\nstate 0 init\n\taction 0\n\t\t0 : 1\n"
    )
    with pytest.raises(InvalidGame, match="of kind CTMC cannot be read"):
        storm.read_model(path, horizon=2)


@pytest.mark.parametrize("ending", ["prism", "jani", "drn", "umb"])
def test_a_damaged_file_is_refused_and_storm_prints_nothing(tmp_path, capfd, ending):
    path = tmp_path / f"model.{ending}"
    path.write_text("mdp\nmodule m\nx : [0..2] init 0\n[a] x=0 -> 0.5:(x=1);\nendmodule\n")
    with pytest.raises(BadFile, match=rf"model\.{ending}: .+"):
        storm.read_model(path, horizon=2)
    assert capfd.readouterr() == ("", "")


def test_an_error_of_storm_names_its_place(tmp_path):
    path = tmp_path / "model.prism"
    path.write_text("mdp\nmodule m\nx : [0..2] init 0\n[a] x=0 -> true;\nendmodule\n")
    with pytest.raises(BadFile, match="at line 4, column 1"):
        storm.read_model(path, horizon=2)


def test_several_initial_states_are_refused_unless_one_is_named(tmp_path):
    path = tmp_path / "model.prism"
    path.write_text("dtmc\nmodule m\nx : [0..1];\n[] true -> true;\nendmodule\ninit true endinit\n")
    with pytest.raises(InvalidOption, match="has 2 initial states"):
        storm.read_model(path, horizon=2)
    assert storm.read_model(path, horizon=2, initial="x=1").initial == ((1, 1.0),)


def test_the_command_line_takes_constants(walk):
    words = ["solve", str(walk), "-p", "N=2", "-p", "quick=false", "--cost", "effort=0.4", "--reward", "-time"]
    shown = CliRunner().invoke(app, [*words, "--horizon", "4", "--json"])
    assert shown.exit_code == 0, shown.output
    constants = {"N": 2, "quick": False}
    game = storm.read_model(walk, horizon=4, reward="-time", budget={"effort": Fraction(2, 5)}, constants=constants)
    assert list(json.loads(shown.stdout)["values"].values()) == pytest.approx(ace.solve(game).values.tolist())
    shown = CliRunner().invoke(app, [*words, "--horizon", "4", "-p", "p=1"])
    assert shown.exit_code == 2 and "-p: p has a value in the program already" in shown.output


@pytest.fixture
def members(walk, tmp_path):
    """The files inside a `.umb` file."""
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(walk)), {"N": 2, "quick": True})
    path = tmp_path / "walk.umb"
    stormpy.io.export_to_umb(stormpy.build_model(program, options=stormpy.BuilderOptions(build_full=True)), str(path))
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}


def packed(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return path


def test_a_umb_file_cannot_ask_for_more_than_it_holds(members, tmp_path):
    index = json.loads(members["index.json"])
    index["transition-system"]["#states"] = 10**12
    path = packed(tmp_path / "large.umb", {**members, "index.json": json.dumps(index).encode()})
    with pytest.raises(BadFile, match="#states is 1000000000000, must be a number of things that the file can hold"):
        storm.read_model(path, horizon=2)
    with pytest.raises(TooLarge, match="unfolds to more than"):
        storm.read_model(packed(tmp_path / "bomb.umb", {**members, "more": bytes(2**27)}), horizon=2)


def test_whatever_is_in_a_umb_file_it_is_read_or_refused(members, tmp_path):
    draw = random.Random(7)
    for _ in range(60):
        name = draw.choice(sorted(members))
        data = bytearray(members[name])
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        cut = draw.choice([len(data), draw.randrange(len(data))])
        path = packed(tmp_path / "damaged.umb", {**members, name: bytes(data[:cut])})
        with contextlib.suppress(BadFile, InvalidGame, InvalidOption, TooLarge):
            storm.read_model(path, horizon=2, reward="time", budget={"effort": 3})
