"""Policies and games as tables: what goes out comes back, whatever the format, and what is wrong is named."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames.files import tables
from command_line import run
from games import solo
from shares import examples

ENDINGS = [".csv", ".parquet"]
COSTS = st.sampled_from([0, 1, -1, Fraction(1, 3), Fraction(1, 10), 2**70, Fraction(1, 7)])
LABELS = [("s0", 's"1', "s,2"), (0, 1, 2), ((0, "a"), (1, "b"), None), ("ü", "1", True)]

pytestmark = pytest.mark.filterwarnings("ignore:.*state is None:acegames.errors.GameWarning")  # one of the labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@st.composite
def games(draw, costs=COSTS):
    players, states, horizon = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    constraints = draw(st.integers(0, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = draw(st.sampled_from(LABELS))[:states]
    acts = [tuple(f"{'xyz'[i]}{k}" for k in range(draw(st.integers(1, 2)))) for i in range(players)]
    timed = draw(st.booleans())
    menu = [[draw(costs) for _ in range(constraints)] for _ in range(3)]

    def outcomes(t, s, a):
        local = np.random.default_rng([t * timed, names.index(s), *map(ord, "".join(a)), 7])
        p = local.dirichlet(np.ones(states * 3))
        return [(p[i * 3 + j], names[i], menu[j] if constraints else None) for i in range(states) for j in range(3)]

    return ace.MarkovGame.from_functions(
        players=["p", "q", "r"][:players],
        actions=lambda t, s: acts,
        outcomes=outcomes,
        reward=lambda t, s, a: np.random.default_rng([t * timed, *map(ord, "".join(a))]).normal(size=players),
        horizon=horizon,
        initial=dict.fromkeys(names, 1 / states),
        budget={f"c{m}": float(rng.integers(0, 5)) if m else [float("inf")] * horizon for m in range(constraints)}
        or None,
        name="random",
    )


@given(games())
@settings(max_examples=examples(40), deadline=None)
def test_a_game_as_one_long_table_is_the_same_game(game):
    table, rest = game.to_table()
    assert ace.MarkovGame.from_table(table, **rest).digest == game.digest
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table).sample(frac=1, random_state=0)
    assert ace.MarkovGame.from_table(frame, **rest).digest == game.digest


@pytest.mark.parametrize("ending", ENDINGS)
@given(game=games())
@settings(max_examples=examples(25), deadline=None)
def test_a_game_in_a_file_is_the_same_game(folder, ending, game):
    path = folder / f"game{ending}"
    tables.write_game(game, path)
    back = tables.read_game(path)
    assert back.digest == game.digest and back.name == game.name


def test_random_costs_and_discounted_games_go_through_files(folder):
    scipy = pytest.importorskip("scipy.stats")
    drawn = scipy.uniform(0, 1)
    game = solo(lambda t, s, a: [(1.0, s, drawn if a == "x" else Fraction(1, 3))], horizon=2, budget={"c": 3})
    for ending in ENDINGS:
        tables.write_game(game, folder / f"drawn{ending}")
        assert tables.read_game(folder / f"drawn{ending}").digest == game.digest
    table, rest = game.to_table()
    assert ace.MarkovGame.from_table(table, **rest).digest == game.digest
    forever = ace.discount(ace.catalog.get("intersection"), 0.9, epsilon=1)
    tables.write_game(forever, folder / "forever.csv")
    assert tables.read_game(folder / "forever.csv").digest == forever.digest
    with pytest.raises(ace.InvalidOption, match="cut short by `discount`"):
        forever.to_table()


def test_lines_of_one_table_say_what_their_outcomes_pay():
    game = ace.catalog.get("intersection")
    table, rest = game.to_table()
    joint = list(zip(table["state"], table["north"], table["east"], strict=True))
    line = next(k for k in range(1, len(joint)) if joint[k] in joint[:k])
    state, *action = joint[line]
    before = table["reward_north"][line]
    table["reward_north"][line] += 1
    changed = ace.MarkovGame.from_table(table, **rest)
    row = changed.legal(0, state)[tuple(action)]
    share = sum(p for p, *_, (north, _) in changed.payments(0, row) if north == before + 1)
    assert 0 < share < 1 and share == table["probability"][line]
    assert changed.layer(0).reward[row, 0] == pytest.approx(before + share)
    assert game.layers[0].payments is None and changed.layers[0].payments is not None


def small(states=("a", "b"), players=("p", "q"), constraint="c", actions=((0, 1), (0, 1)), **more):
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.ones(len(states)), size=(len(states), 2, 2))
    reward, cost = rng.random((len(states), 2, 2, 2)), rng.integers(0, 2, (len(states), 2, 2, 1))
    labels = {
        "players": players,
        "states": states,
        "actions": actions,
        "initial": dict.fromkeys(states, 1 / len(states)),
    }
    return ace.MarkovGame.from_arrays(moves, reward, cost, {constraint: 2}, horizon=2, **labels | more)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("constraint", [0, "t", "state", "reward_1", "c"])
def test_costs_whose_column_would_have_two_meanings(folder, ending, constraint):
    game = small(players=(0, 1), constraint=constraint)
    column = "c" if constraint == "c" else f"cost_{constraint}"
    table, rest = game.to_table()
    assert list(table)[-1] == column
    assert ace.MarkovGame.from_table(table, **rest).digest == game.digest
    tables.write_game(game, folder / f"columns{ending}")
    assert tables.read_game(folder / f"columns{ending}").digest == game.digest


def test_default_labels_make_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 2, 1)), np.zeros((1, 2, 2, 2)), np.ones((1, 2, 2, 1)), [2], horizon=2
    )
    game.save("game.yaml")
    run("export", "game.yaml", "-o", "game.csv")
    assert tables.read_game("game.csv").digest == ace.load("game.csv").digest == game.digest
    run("solve", "game.csv")
    (tmp_path / "game.txt").write_text("x")
    with pytest.raises(ace.InvalidOption, match=r"\.npz .*\.nfg .*\.csv, \.parquet"):
        ace.load("game.txt")


def test_a_player_called_t_is_refused_before_writing(folder):
    with pytest.raises(ace.InvalidGame, match="'t' would have two meanings"):
        tables.write_game(small(players=("t", "q")), folder / "t.csv")


@pytest.mark.parametrize("label", ["a\rb", "a\nb", "a\r\nb", "\r", 'a"\r', " a ", "a,b"])
def test_labels_with_line_ends_come_back(folder, label):
    game = small(states=(label, "b"), actions=((label, "x"), (0, 1)), players=(f"p{label}", "q"))
    tables.write_game(game, folder / "ends.csv")
    assert tables.read_game(folder / "ends.csv").digest == game.digest
    policy = ace.solve(game).policy
    tables.write_policy(policy, folder / "ends.csv")
    same_play(game, policy, tables.read_policy(folder / "ends.csv", game))


def test_lines_end_in_a_line_feed(folder):
    tables.write_game(small(), folder / "feed.csv")
    content = (folder / "feed.csv").read_bytes()
    assert b"\r" not in content and content.endswith(b"\n")


def test_entries_that_csv_cannot_hold_are_refused(folder):
    game = small(states=("x" * 140_000, "b"))
    for write, what in ((tables.write_game, game), (tables.write_policy, ace.solve(game))):
        with pytest.raises(ace.InvalidOption, match=r"140000 characters, CSV allows 131072; write \.parquet"):
            write(what, folder / "long.csv")
    assert not (folder / "long.csv").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ((-4, "x"), "line 4, column 'probability': 'x' is not a number"),
        ((-3, "x"), "line 4, column 'reward_p': 'x' is not a number"),
        ((-3, "9"), "the game in it has another digest"),
        ((-1, "x"), "line 4, column 'c': 'x' is not a finite number"),
        ((0, "z"), "line 4, column 'state': unknown state 'z'"),
    ],
)
def test_what_is_wrong_with_a_game_is_named_by_its_line(folder, change, says):
    tables.write_game(small(), folder / "named.csv")
    lines = (folder / "named.csv").read_text().splitlines()
    entries = lines[2].split(",")
    entries[change[0]] = change[1]
    (folder / "named.csv").write_text("\n".join([*lines[:2], "", ",".join(entries), *lines[3:]]))
    with pytest.raises(ace.BadFile, match=says):
        tables.read_game(folder / "named.csv")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": 3}, "name: 3, must be text"),
        ({"initial": [[-2, 1.0]]}, "initial: .*is not the number of a state"),
        ({"initial": [[0, 0.5], [0, 0.5]]}, "or comes twice"),
        ({"horizon": 10**7}, "at most 1000000"),
    ],
)
def test_what_belongs_to_a_table_is_checked(folder, change, says):
    tables.write_game(small(), folder / "head.csv")
    head = json.loads((folder / "head.csv.json").read_text())
    (folder / "head.csv.json").write_text(json.dumps(head | change))
    with pytest.raises(ace.BadFile, match=says):
        tables.read_game(folder / "head.csv")


def test_a_policy_over_a_game_takes_what_belonged_to_the_game(folder):
    game = small()
    tables.write_game(game, folder / "over.csv")
    tables.write_policy(ace.solve(game), folder / "over.csv")
    assert not (folder / "over.csv.json").exists()
    (folder / "over.csv.json").write_text("{}")  # somebody else's
    tables.write_policy(ace.solve(game), folder / "over.csv")
    assert (folder / "over.csv.json").exists()


def test_labels_that_look_alike_are_refused(folder):
    game = solo(lambda t, s, a: [(1.0, s, None)], horizon=1, actions=(1, "1"), budget=None)
    with pytest.raises(ace.InvalidGame, match="1 and '1' look alike"):
        tables.write_game(game, folder / "alike.csv")
    assert not (folder / "alike.csv").exists()


# -- policies ----------------------------------------------------------------------------------------------------------


def same_play(game, one, other):
    for t in range(game.horizon):
        for state, spent in ace.feasibility(game).states(t):
            a, b = one.distribution(t, state, spent), other.distribution(t, state, spent)
            assert a == b and list(a) == list(b)
            np.testing.assert_allclose(one.values(t, state, spent), other.values(t, state, spent), atol=1e-9)


SMALL = st.sampled_from([0, 1, -1, Fraction(1, 3), Fraction(1, 10)])


@pytest.mark.parametrize("ending", [*ENDINGS, "frame"])
@given(game=games(costs=SMALL))
@settings(max_examples=15, deadline=None)
def test_a_policy_comes_back_with_the_same_play(folder, ending, game):
    try:
        policy = ace.solve(game, ace.CE()).policy
    except ace.Infeasible:
        return
    table = folder / f"policy{ending}"
    if ending == "frame":
        pytest.importorskip("pandas")
        table = tables.policy_frame(policy).sample(frac=1, random_state=1).sort_index()
    else:
        lines = tables.write_policy(policy, table)
        assert lines >= sum(len(ace.feasibility(game).states(t)) for t in range(game.horizon))
    back = tables.read_policy(table, game, ace.CE())
    same_play(game, policy, back)
    assert ace.verify(game, back, ace.CE()).ok
    again = folder / "again.policy"
    back.save(again)
    same_play(game, back, ace.Policy.load(again))


def test_a_policy_without_the_list_of_its_pairs_is_not_written(folder):
    policy = replace(ace.solve(ace.catalog.get("intersection")).policy, reached=None)
    with pytest.raises(ace.TooLarge, match="does not hold the list of its situations"):
        tables.write_policy(policy, folder / "none.csv")
    assert not (folder / "none.csv").exists()


def test_pieces_make_no_difference(folder, monkeypatch):
    from acegames.files.tables import csv_parquet as table_files
    from acegames.files.tables import policies as policy_table

    game = ace.catalog.get("knapsack")
    policy = ace.solve(game).policy
    tables.write_policy(policy, folder / "whole.csv")
    for module in (policy_table, table_files):
        monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(policy_table, "OUTCOMES", 5)
    tables.write_policy(policy, folder / "pieces.csv")
    assert (folder / "whole.csv").read_bytes() == (folder / "pieces.csv").read_bytes()
    same_play(game, policy, tables.read_policy(folder / "pieces.csv", game))


MIXED_UP = np.array([[[6, 6], [2, 7]], [[7, 2], [0, 0]]], dtype=float)


@pytest.mark.parametrize("legal", [True, False])
def test_players_who_do_not_draw_independently_are_no_nash_equilibrium(legal):
    mask = np.array([[[legal, True], [True, True]]])
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 2, 1)), MIXED_UP[None], horizon=1, legal=mask)
    table = {"t": [0, 0], "state": [0, 0], "0": [0, 1], "1": [1, 0], "probability": [0.5, 0.5]}
    with pytest.raises(ace.InvalidOption, match=r"t=0, state 0, spent \(\): the players do not draw independently"):
        tables.read_policy(table, game, ace.Nash())
    assert tables.read_policy(table, game, ace.CE()).distribution(0, 0, ()) == {(0, 1): 0.5, (1, 0): 0.5}


@pytest.mark.parametrize(
    ("share", "fine"),
    [([0.06, 0.14, 0.24, 0.56], True), ([0.07, 0.13, 0.23, 0.57], False), ([1 - 2e-7, 1e-7, 1e-7], False)],
)
def test_draws_of_all_combinations_are_independent_up_to_rounding(share, fine):
    """A combination that is left out counts, however rare it would be."""
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 2, 1)), MIXED_UP[None], horizon=1)
    joint = {"t": [0] * 4, "state": [0] * 4, "0": [0, 0, 1, 1], "1": [0, 1, 0, 1]}
    table = {name: column[: len(share)] for name, column in joint.items()} | {"probability": share}
    if fine:
        played = tables.read_policy(table, game, ace.Nash()).distribution(0, 0, ())
        np.testing.assert_allclose([*played.values()], share, rtol=1e-14)
    else:
        with pytest.raises(ace.InvalidOption, match="do not draw independently"):
            tables.read_policy(table, game, ace.Nash())


def test_every_initial_state_needs_a_line():
    pytest.importorskip("pandas")
    game = small()
    frame = tables.policy_frame(ace.solve(game))
    with pytest.raises(ace.InvalidOption, match="t=0, state 'b': play can begin there"):
        tables.read_policy(frame[~((frame.t == 0) & (frame.state == "b"))], game)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("horizon", [1, 2])
def test_amounts_beyond_whole_numbers_of_64_bits(folder, ending, horizon):
    cost = np.array([0, 10**20], dtype=object).reshape(1, 2, 1)
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.ones((1, 2, 1)), cost, {"c": 10**20}, horizon=horizon)
    policy = ace.solve(game).policy
    tables.write_policy(policy, folder / f"huge{ending}")
    same_play(game, policy, tables.read_policy(folder / f"huge{ending}", game))


def test_labels_that_are_no_text_of_files_stay_in_memory(folder):
    import enum

    pytest.importorskip("pandas")
    Way = enum.Enum("Way", ["LEFT", "RIGHT"])
    for states in [("\ud800", "b"), (None, "b"), (True, "true"), (Way.LEFT, Way.RIGHT), (Fraction(1, 3), 1)]:
        game = small(states=states)
        policy = ace.solve(game).policy
        same_play(game, policy, tables.read_policy(tables.policy_frame(policy), game))
        rest = game.to_table()[1]
        assert ace.MarkovGame.from_table(tables.game_frame(game), **rest).digest == game.digest
        if None not in states:
            with pytest.raises(ace.InvalidGame, match=r"not valid Unicode|look alike|cannot be written"):
                tables.write_policy(policy, folder / "labels.csv")
    odd = ace.solve(small(players=("\ud800", "q"))).policy
    for write in (tables.policy_frame, lambda policy: tables.write_policy(policy, folder / "labels.csv")):
        with pytest.raises(ace.InvalidGame, match=r"column: .*not valid Unicode"):
            write(odd)
    assert not (folder / "labels.csv").exists()


def test_what_other_programs_made_of_a_file_is_read(folder):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    game = small(states=(("a", 1), ("b", 2)))
    solution = ace.solve(game)
    tables.write_policy(solution, folder / "other.csv")
    same_play(game, solution.policy, tables.read_policy(pandas.read_csv(folder / "other.csv"), game))
    table = arrow.table(pandas.read_csv(folder / "other.csv"))
    same_play(game, solution.policy, tables.read_policy(table, game))
    lines = (folder / "other.csv").read_text().splitlines()
    (folder / "other.csv").write_text("\n\n".join([*lines, ",,,,,"]) + "\n\n")
    same_play(game, solution.policy, tables.read_policy(folder / "other.csv", game))
    (folder / "other.csv").write_text("\n".join(lines).replace(",", ";"))
    with pytest.raises(ace.BadFile, match="column 't' is missing: there are 't;state;spent_c;p;q;probability'"):
        tables.read_policy(folder / "other.csv", game)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"spent_c": [[1]]}, r"line 0, column 'spent_c': \[1\] is not a number"),
        ({"t": [[0]]}, r"line 0, column 't': \[0\] is not a number"),
        ({"state": [["a"]]}, "line 0, column 'state': unknown state"),
        ({"probability": 1.0}, "column 'probability' is 1.0, must be a list of values"),
        ({"probability": "1"}, "column 'probability' is '1', must be a list of values"),
        ({"t": [10**400]}, "line 0, column 't'"),
    ],
)
def test_what_is_wrong_with_a_table_in_memory_is_named(change, says):
    base = {"t": [0], "state": ["a"], "spent_c": [0], "p": [0], "q": [0], "probability": [1.0]}
    with pytest.raises(ace.InvalidOption, match=says):
        tables.read_policy(base | change, small())


def test_what_is_no_policy_concept_or_tracker_is_refused(folder):
    game = small()
    tables.write_policy(ace.solve(game), folder / "kinds.csv")
    for concept in ("CE", ace.CCE):
        with pytest.raises(ace.InvalidOption, match="concept: got"):
            tables.read_policy(folder / "kinds.csv", game, concept)
    with pytest.raises(ace.InvalidOption, match="tracker: got 'x'"):
        tables.read_policy(folder / "kinds.csv", game, tracker="x")
    with pytest.raises(ace.InvalidOption, match="policy: got MarkovGame"):
        tables.write_policy(game, folder / "kinds.csv")


def test_amounts_that_lie_far_apart_are_too_large_for_a_reason():
    cost = np.random.default_rng(0).integers(0, 2, (1, 2, 2, 2))
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 2, 1)), np.zeros((1, 2, 2, 2)), cost, {"c": 2, "d": 2}, horizon=1, players=("p", "q")
    )
    far = 2**40
    table = {
        "t": [0] * 3,
        "state": [0] * 3,
        "spent_c": [0, far, -far],
        "spent_d": [0, -far, far],
        "p": [0] * 3,
        "q": [0] * 3,
    }
    with pytest.raises(ace.TooLarge, match="t=0: the amounts spent lie too far apart"):
        tables.read_policy({**table, "probability": [1.0] * 3}, game)


@pytest.fixture
def chicken(folder):
    game = ace.catalog.get("intersection")
    tables.write_policy(ace.solve(game).policy, folder / "good.csv")
    return game, (folder / "good.csv").read_text().splitlines()


@pytest.mark.parametrize(
    ("line", "change", "says"),
    [
        (0, ("spent_risk", "risk"), "the column 'spent_risk' is missing: there are 't', 'state', 'risk'"),
        (0, ("state", "t"), "each once"),
        (1, ("0,dry", "9,dry"), "line 2, column 't': 9, must be a whole number from 0 to 5"),
        (1, ("0,dry", "x,dry"), "line 2, column 't': 'x' is not a number"),
        (1, ("dry", "dri"), "unknown state 'dri', did you mean 'dry'"),
        (1, ("dry,0", "dry,1/2"), "no whole multiple of 1"),
        (1, ("dry,0", "dry,much"), "column 'spent_risk': 'much' is not a finite number"),
        (1, ("yield", "wait"), "unknown action of player 'north' 'wait'"),
        (1, ("yield,yield,0", "yield,yield,1"), "must be between 0 and 1|sum to"),
        (1, (",0.", ",-0."), "must be between 0 and 1"),
        (1, (",yield", ""), "line 2: 5 entries, there are 6 columns"),
        (1, ("yield,yield", "yield,dare"), "is given twice"),
        (1, ("dry,0", "dry,1"), "sum to"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(folder, chicken, line, change, says):
    game, lines = chicken
    lines[line] = lines[line].replace(*change, 1)
    path = folder / "bad.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(ace.BadFile, match=says) as caught:
        tables.read_policy(path, game)
    assert "bad.csv" in str(caught.value)


def test_a_table_that_ends_early_says_where_play_would_be_lost(folder, chicken):
    game, lines = chicken
    path = folder / "short.csv"
    path.write_text("\n".join(lines[:-1]))
    with pytest.raises(ace.BadFile, match=r"for which the table has no line|sum to"):
        tables.read_policy(path, game)
    path.write_text("\n".join(line for line in lines if not line.startswith("3")))
    with pytest.raises(ace.BadFile, match="t=3: the table has no lines"):
        tables.read_policy(path, game)
    path.write_text("")
    with pytest.raises(ace.BadFile, match="line 1"):
        tables.read_policy(path, game)


def test_a_policy_that_was_changed_is_worth_what_it_plays():
    pytest.importorskip("pandas")
    game = ace.catalog.get("intersection")
    frame = tables.policy_frame(ace.solve(game).policy)
    first = frame[(frame.t == 0)].index
    frame.loc[first, "probability"] = [1.0] + [0.0] * (len(first) - 1)
    changed = tables.read_policy(frame, game)
    certificate = ace.verify(game, changed, ace.CCE())
    assert not np.allclose(certificate.values, ace.solve(game).values)
    np.testing.assert_allclose(changed.values(0, "dry", 0), certificate.values)


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_files_are_refused(folder, ending):
    game = ace.catalog.get("intersection")
    path = folder / f"damaged{ending}"
    tables.write_game(game, path)
    content = path.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"\x00\xff" * 50, content.replace(b"dry", b"wet", 1)):
        path.write_bytes(broken)
        with pytest.raises(ace.BadFile, match="damaged"):
            tables.read_game(path)
        with pytest.raises(ace.BadFile, match="damaged"):
            tables.read_policy(path, game)


def test_a_table_without_the_file_beside_it_says_what_to_do(folder):
    (folder / "alone.csv").write_text("state\n")
    with pytest.raises(ace.BadFile, match=r"from_table"):
        tables.read_game(folder / "alone.csv")
    with pytest.raises(ace.InvalidOption, match=r"must be \.csv or \.parquet"):
        tables.read_game(folder / "game.xlsx")


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_what_is_missing_is_named_and_csv_needs_nothing(folder, monkeypatch, missing):
    import sys

    monkeypatch.setitem(sys.modules, missing, None)
    game = ace.catalog.get("six_cycle")
    policy = ace.solve(game).policy
    with pytest.raises(ace.MissingExtra, match=r"pip install 'acegames\[tables\]'"):
        tables.policy_frame(policy) if missing == "pandas" else tables.write_policy(policy, folder / "x.parquet")
    tables.write_policy(policy, folder / "x.csv")
    assert not (folder / "x.parquet").exists()


# -- the command line ----------------------------------------------------------------------------------------------------


def test_the_program_exports_policies_games_and_nfg(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    game = ace.catalog.get("intersection")
    ace.solve(game).save("s.ace")
    run("export", "s.ace", "-o", "policy.csv")
    assert ace.verify(game, tables.read_policy("policy.csv", game), ace.CCE()).ok
    run("export", "s.ace", "--game", "-o", "game.parquet")
    assert tables.read_game("game.parquet").digest == game.digest
    run("export", "intersection", "-o", "game.csv")
    assert tables.read_game("game.csv").digest == game.digest
    run("export", "six_cycle", "-o", "six.nfg", "--outside", "-9")
    run("solve", "six.nfg", "--concept", "nash")
    for source, output in (("s.ace", "x.nfg"), ("six_cycle", "x.nfg"), ("s.ace", "x.txt"), ("intersection", "x.nfg")):
        run("export", source, "-o", output, code=2)


def test_a_table_changed_on_purpose_is_read_when_asked(tmp_path):
    going = {"initial": (0, "ok"), "reward": lambda t, s, a: 7 * (a == "x")}
    game = solo(lambda t, s, a: [(1, s, {"fuel": a == "x"})], horizon=2, budget={"fuel": 2}, **going)
    path = tmp_path / "game.csv"
    tables.write_game(game, path)
    path.write_text(path.read_text().replace("7.0", "9.0"))
    with pytest.raises(ace.BadFile, match="edited=True"):
        tables.read_game(path)
    assert ace.solve(tables.read_game(path, edited=True)).values == 18
