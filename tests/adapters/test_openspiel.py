"""OpenSpiel's games in, policies out, compared with what OpenSpiel itself says."""

from __future__ import annotations

import itertools
import sys
from collections import Counter

import numpy as np
import pytest

import acegames as ace
from acegames.adapters.openspiel import from_openspiel, play, repeated, state_label, to_tabular_policy
from acegames.adapters.openspiel.openspiel_games import LABELLED_BY, after_chance, apply, choices

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not made for this system")
expected_game_score = pytest.importorskip("open_spiel.python.algorithms.expected_game_score")
exploitability = pytest.importorskip("open_spiel.python.algorithms.exploitability")
minimax = pytest.importorskip("open_spiel.python.algorithms.minimax")
scipy_stats = pytest.importorskip("scipy.stats")


def history(state):
    return state.history_str() or "start"


def nash(game, **options):
    return ace.solve(from_openspiel(game, **options), ace.Nash())


def defections(state, action, after):
    return {"defections": action.count("Defect")}


def corners_of_o(state, action, after):
    return {"corners": action[1] in ("o(0,0)", "o(0,2)", "o(2,0)", "o(2,2)")}


# -- values, compared with OpenSpiel's own ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tic_tac_toe():
    return nash("tic_tac_toe")


def test_tic_tac_toe_has_the_minimax_value_in_every_state(tic_tac_toe):
    solver = pytest.importorskip("open_spiel.python.algorithms.minimax_solver", reason="came with OpenSpiel 2")
    table = solver.MinimaxSolver("tic_tac_toe").solve()
    game, policy = tic_tac_toe.game, tic_tac_toe.policy
    assert set(game.states) == {*table, "end"}
    for board, entry in table.items():
        moves = sum(board.count(mark) for mark in "xo")
        assert policy.values(moves, board, ())[moves % 2] == entry.value
    assert tic_tac_toe.values.tolist() == [0, 0]
    assert ace.verify(game, policy, ace.Nash()).ok


@pytest.mark.parametrize("winscore", [4, 5])
def test_a_game_with_dice_has_the_value_of_expectiminimax(winscore):
    name = f"pig(winscore={winscore},horizon=6,diceoutcomes=3)"
    value, _ = minimax.expectiminimax(pyspiel.load_game(name).new_initial_state(), 10, None, 0)
    assert value not in (0, 1)
    assert nash(name).values == pytest.approx([value, -value], abs=1e-12)


@pytest.mark.parametrize("name", ["matrix_mp", "matrix_rps", "matrix_brps", "matrix_rpsw"])
def test_zero_sum_matrix_games_have_the_value_that_openspiels_solver_finds(name):
    from open_spiel.python.algorithms.matrix_nash import lemke_howson_solve

    game = pyspiel.load_matrix_game(name)
    rows, columns = np.array(game.row_utilities()), np.array(game.col_utilities())
    x, y = next(iter(lemke_howson_solve(rows, columns)))
    assert nash(name).values == pytest.approx([x @ rows @ y, x @ columns @ y], abs=1e-9)


EXPORTED = [  # matrix games, games of simultaneous moves and games of perfect information
    *("matrix_pd", "matrix_bos", "matrix_sh", "matrix_cd", "matrix_brps", "matrix_shapleys_game"),
    "blotto(coins=3,fields=2)",
    "goofspiel(num_cards=3)",
    "goofspiel(num_cards=4,points_order=descending)",
    "goofspiel(num_cards=3,returns_type=total_points)",
    "oshi_zumo(coins=4,size=1,horizon=3)",
    "oshi_zumo(coins=3,size=1,horizon=4,min_bid=1)",
    *("nim(pile_sizes=1;2;3)", "mnk(m=3,n=2)", "misere(game=nim(pile_sizes=2;2))"),
]


@pytest.mark.parametrize("name", EXPORTED)
def test_nobody_gains_by_leaving_an_exported_nash_policy(name):
    solution = nash(name)
    table = to_tabular_policy(solution, name, turn_based=name.startswith(("goofspiel", "oshi_zumo")))
    assert exploitability.nash_conv(table.game, table) == pytest.approx(0, abs=1e-9)
    root = table.game.new_initial_state()
    value = expected_game_score.policy_value(root, table if root.is_simultaneous_node() else [table] * 2)
    assert value == pytest.approx(solution.values, abs=1e-9)


@pytest.mark.slow
def test_the_whole_table_of_tic_tac_toe(tic_tac_toe):
    table = to_tabular_policy(tic_tac_toe, "tic_tac_toe")
    assert len(table.states) == 294_778
    assert exploitability.nash_conv(table.game, table) == 0


def test_rewards_on_the_way_are_paid_with_the_moves():
    """Cliff walking: minus one a step, up and over to the goal in width + 1 steps, whatever is left of the horizon."""
    solution = ace.solve(from_openspiel("cliff_walking(height=2,width=4,horizon=7)"))
    assert solution.values.tolist() == [-5]
    stuck = ace.solve(from_openspiel("cliff_walking(height=2,width=4,horizon=3)"))
    assert stuck.values.tolist() == [-3]


# -- labels that tell enough --------------------------------------------------------------------------------------------

LATE_IN_CONNECT_FOUR = "0;2;5;4;1;4;3;6;0;1;0;3;1;0;5;1;3;5;4;5;3;4;6;1;5;6;5;4;3;1;6;0;4"
SMALL = {
    "breakthrough": ["breakthrough(rows=3,columns=3)", "breakthrough(rows=4,columns=2)"],
    "catch": ["catch(rows=4,columns=3)"],
    "cliff_walking": ["cliff_walking(height=2,width=3,horizon=5)"],
    "connect_four": [f"start_at(history={LATE_IN_CONNECT_FOUR},game=connect_four())"],
    "goofspiel": [
        "goofspiel(num_cards=3)",
        "goofspiel(num_cards=4,num_turns=2)",
        "goofspiel(num_cards=3,returns_type=total_points)",
    ],
    "markov_soccer": ["markov_soccer(horizon=3)"],
    "nim": ["nim(pile_sizes=1;2;3)", "nim(pile_sizes=2;2,is_misere=False)"],
    "oshi_zumo": ["oshi_zumo(coins=3,size=1,horizon=4)", "oshi_zumo(coins=4,size=1,horizon=4,alesia=True)"],
    "pig": [
        "pig(horizon=6,winscore=5,diceoutcomes=2)",
        "pig(horizon=5,winscore=8,diceoutcomes=2,piglet=True,players=3)",
    ],
    "repeated_game": ["repeated_game(stage_game=matrix_pd(),num_repetitions=3)"],
    "tic_tac_toe": ["start_at(history=0;4;8,game=tic_tac_toe())"],
}


def test_every_game_with_short_labels_is_looked_at():
    assert set(SMALL) == set(LABELLED_BY)


def futures(game, key):
    """For each (number of moves, label) the different futures that its histories have."""
    numbers, reached = {}, {}

    def future(state, t):
        if state.is_terminal():
            return "over"
        says = []
        known = choices(state)
        for action in itertools.product(*known):
            moved = state.clone()
            apply(moved, [own[a] for own, a in zip(known, action, strict=True)])
            chances = Counter()
            for chance, (after,) in after_chance(moved):
                paid = tuple(round(b - a, 9) for a, b in zip(state.returns(), after.returns(), strict=True))
                chances[paid, future(after, t + 1)] += chance
            says.append((action, frozenset((what, round(p, 9)) for what, p in chances.items())))
        number = numbers.setdefault(tuple(says), len(numbers))
        reached.setdefault((t, key(state)), set()).add(number)
        return number

    for _, (state,) in after_chance(game.new_initial_state()):
        future(state, 0)
    return reached


@pytest.mark.parametrize(("short_name", "name"), [(short, name) for short, names in SMALL.items() for name in names])
def test_states_with_the_same_short_label_have_the_same_future(short_name, name):
    reached = futures(pyspiel.load_game(name), LABELLED_BY[short_name])
    assert len(reached) > 2
    assert all(len(different) == 1 for different in reached.values())


def test_the_check_of_labels_notices_one_that_tells_too_little():
    reached = futures(pyspiel.load_game("go(board_size=2)"), str)
    assert any(len(different) > 1 for different in reached.values())


def test_a_key_that_tells_too_little_is_noticed():
    with pytest.raises(ace.InvalidGame, match=r"t=3, state .*the histories '.*' and '.*' have this label"):
        from_openspiel("go(board_size=2)", key=str)
    from_openspiel("go(board_size=2)")  # by default the history is the label


def test_a_cost_that_sees_more_than_the_label_is_noticed():
    def first_move(state, action, after):
        return {"luck": after.history()[0] == 4}

    with pytest.raises(ace.InvalidGame, match="have this label"):
        from_openspiel("tic_tac_toe", cost=first_move, budget={"luck": 9})


def test_costs_drawn_from_distributions_are_not_compared():
    """They are made anew at each call, so that two that are alike look different."""

    def fatigue(state, action, after):
        return {"fatigue": scipy_stats.uniform(0, 1)}

    game = from_openspiel("nim(pile_sizes=1;2;3)", cost=fatigue, budget={"fatigue": 9})
    solution = ace.solve(game, ace.Nash(), epsilon=0.5)
    with pytest.raises(ace.InvalidOption, match="several costs are possible"):
        to_tabular_policy(solution, "nim(pile_sizes=1;2;3)")


def test_a_key_must_give_labels():
    with pytest.raises(ace.InvalidGame, match=r"key: the label \[.*\] cannot be hashed"):
        from_openspiel("matrix_pd", key=lambda state: [str(state)])


def test_a_key_must_not_use_the_label_of_the_end():
    with pytest.raises(ace.InvalidOption, match=r"'end'.*label of the end"):
        from_openspiel("nim(pile_sizes=2;2)", key=lambda state: "end")


# -- how a game is told -------------------------------------------------------------------------------------------------


def test_players_who_are_not_to_move_wait_and_the_end_is_not_left():
    game = from_openspiel("nim(pile_sizes=1;2)", horizon=5)
    assert game.players == (0, 1) and game.horizon == 5
    assert game.actions[1][0] == "-"
    policy = ace.solve(game, ace.Nash()).policy
    assert list(policy.distribution(4, "end", ())) == [("-", "-")]
    assert policy.values(4, "end", ()).tolist() == [0, 0]
    (action,) = policy.distribution(0, "(0): 1 2", ())
    assert action == ("pile:2, take:2;", "-")  # misère: one is left for the other


def test_chance_before_the_first_move_is_the_initial_distribution():
    game = from_openspiel("catch(rows=3,columns=3)")
    assert [p for _, p in game.initial] == pytest.approx([1 / 3] * 3)
    assert ace.solve(game).values == pytest.approx([1])


def test_play_that_is_not_over_at_the_horizon_pays_nothing_more():
    assert from_openspiel("tic_tac_toe", horizon=4).horizon == 4
    assert nash("tic_tac_toe", horizon=4).values.tolist() == [0, 0]
    assert set(from_openspiel("tic_tac_toe", horizon=4).states).isdisjoint({"end"})


def test_a_game_written_in_python_with_chance_and_rewards():
    """It goes on with probability 7/8 after each round, whatever was played: one state is enough."""
    name = "python_iterated_prisoners_dilemma(termination_probability=0.125)"
    solution = nash(name, horizon=3, key=lambda state: "round")
    assert solution.game.states == ("round", "end")
    assert solution.values == pytest.approx([1 + 7 / 8 + 49 / 64] * 2)
    assert nash(name, horizon=3).values == pytest.approx(solution.values)  # histories


def test_a_game_object_is_taken_as_well_as_a_name():
    game = pyspiel.create_matrix_game([[2, -1, 3], [0, 4, -2]], [[-2, 1, -3], [0, -4, 2]])
    solution = nash(game)
    assert solution.values == pytest.approx([1, -1])
    assert solution.game.states == ("start", "end")


# -- budgets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("corners", "value"), [(1, 1), pytest.param(2, 0, marks=pytest.mark.slow)])
def test_a_budget_on_moves_changes_the_value_of_tic_tac_toe(corners, value):
    solution = nash("tic_tac_toe", cost=corners_of_o, budget={"corners": corners})
    assert solution.values.tolist() == [value, -value]
    assert ace.verify(solution.game, solution.policy, ace.Nash()).ok


def test_a_repeated_matrix_game_with_a_budget_on_defections():
    game = repeated("matrix_pd", 3)
    free = nash(game)
    assert free.game.states == ("round", "end") and free.game.horizon == 3
    assert free.values.tolist() == [3, 3]  # all defect
    solution = nash(game, cost=defections, budget={"defections": 2})
    assert solution.values.sum() > free.values.sum()
    table = to_tabular_policy(solution, game, turn_based=True)
    root = table.game.new_initial_state()
    assert expected_game_score.policy_value(root, [table] * 2) == pytest.approx(solution.values)
    assert most_defections(table, root) == 2


def most_defections(table, state):
    if state.is_terminal():
        return sum(state.history())
    player = state.current_player()
    played = [a for a, p in table.action_probabilities(state, player).items() if p > 0]
    return max(most_defections(table, state.child(a)) for a in played)


def test_where_no_feasible_play_comes_the_table_is_uniform():
    game = repeated("matrix_pd", 2)
    table = to_tabular_policy(nash(game, cost=defections, budget={"defections": 0}), game)
    assert table.policy_for_key("").tolist() == [1, 0]
    assert table.policy_for_key("Cooperate Cooperate ;").tolist() == [1, 0]
    assert table.policy_for_key("Defect Cooperate ;").tolist() == [0.5, 0.5]


def test_a_policy_without_its_solution_needs_the_game_to_know_the_spending():
    game = repeated("matrix_pd", 2)
    solution = nash(game, cost=defections, budget={"defections": 1})
    by_solution = to_tabular_policy(solution, game, turn_based=True)
    by_policy = to_tabular_policy(solution.policy, game, turn_based=True, markov_game=solution.game)
    assert np.array_equal(by_policy.action_probability_array, by_solution.action_probability_array)
    with pytest.raises(ace.InvalidOption, match="needs markov_game"):
        to_tabular_policy(solution.policy, game)
    with pytest.raises(ace.InvalidOption, match="another game"):
        to_tabular_policy(solution.policy, game, markov_game=from_openspiel(game))


def test_the_policy_itself_is_played_on_openspiels_states():
    """A correlated policy, which no table can hold."""
    game = pyspiel.create_repeated_game(chicken(), {"num_repetitions": 3})
    markov_game = from_openspiel(game, cost=crashes, budget={"crashes": 1})
    policy = ace.solve(markov_game, ace.CE()).policy
    with pytest.raises(ace.InvalidOption, match=r"t=., state 'round', spent .* draw .* together"):
        to_tabular_policy(policy, game, markov_game=markov_game)
    totals = set()
    for seed in range(20):
        runner, state = policy.start(seed), game.new_initial_state()
        while not state.is_terminal():
            action, before = runner.act(), state.clone()
            play(state, action)
            runner.observe(action, crashes(before, action, state), state_label(state))
        totals.add(runner.spent)
    assert max(totals) <= (1,) and len(totals) > 0


def chicken():
    return pyspiel.create_matrix_game([[0, 7], [2, 6]], [[0, 2], [7, 6]])


def crashes(state, action, after):
    return {"crashes": action == ("row0", "col0")}


# -- what cannot be done is said ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kuhn_poker", "imperfect-information"),
        ("goofspiel(num_cards=3,imp_info=True)", "imperfect-information"),
        ("turn_based_simultaneous_game(game=matrix_pd())", "imperfect-information"),
        ("mfg_crowd_modelling", "mean-field"),
        ("stones_and_gems", "not listed"),
    ],
)
def test_games_that_are_no_markov_games_are_refused(name, reason):
    with pytest.raises(ace.InvalidGame, match=reason):
        from_openspiel(name)


def test_names_and_options_that_are_wrong_are_refused(capfd):
    with pytest.raises(ace.InvalidOption, match=r"OpenSpiel does not load it: Unknown game 'no_such_game'\.$"):
        from_openspiel("no_such_game")
    for wrong in (3, None, ace.catalog.get("six_cycle")):
        with pytest.raises(ace.InvalidOption, match="must be an OpenSpiel game"):
            from_openspiel(wrong)
    with pytest.raises(ace.InvalidOption, match="cost and budget together"):
        from_openspiel("matrix_pd", budget={"defections": 1})
    with pytest.raises(ace.InvalidOption, match="no matrix game"):
        repeated("tic_tac_toe", 2)
    with pytest.raises(ace.InvalidGame, match="horizon"):
        repeated("matrix_pd", 0)
    with pytest.raises(ace.InvalidOption, match="Solution or a Policy"):
        to_tabular_policy("matrix_pd", "matrix_pd")
    with pytest.raises(ace.InvalidOption, match=r"'Cheat'.*one of these for each player: \[\['Cooperate', 'Defect'\]"):
        play(pyspiel.load_game("matrix_pd").new_initial_state(), ("Cheat", "Defect"))


def test_too_many_states_are_refused_with_their_number(tic_tac_toe):
    with pytest.raises(ace.TooLarge, match=r"connect_four\(\): more than 1,000 states within 4 moves"):
        from_openspiel("connect_four", limit=1000)
    nim = "nim(pile_sizes=1;2;3)"
    states = sum(len(layer) for layer in labels_by_time(nim))
    for options in ({}, {"key": str}):  # states that are compared count once
        from_openspiel(nim, limit=states, **options)
        with pytest.raises(ace.TooLarge):
            from_openspiel(nim, limit=states - 1, **options)
    with pytest.raises(ace.TooLarge, match="more than 1,000 histories"):
        to_tabular_policy(tic_tac_toe, "tic_tac_toe", limit=1000)


def labels_by_time(name):
    root = pyspiel.load_game(name).new_initial_state()
    layers = [{str(root): root}]
    while layers[-1]:
        children = [state.child(a) for state in layers[-1].values() for a in state.legal_actions()]
        layers.append({str(child): child for child in children if not child.is_terminal()})
    return layers


def test_the_same_text_for_two_players_is_refused():
    with pytest.raises(ace.InvalidOption, match=r"players 0 and 1 the same text.*turn_based=True"):
        to_tabular_policy(nash("goofspiel(num_cards=3)"), "goofspiel(num_cards=3)")


def test_turns_are_not_advised_or_made_where_there_are_some():
    name = "breakthrough(rows=4,columns=2)"
    solution = nash(name)
    with pytest.raises(ace.InvalidOption, match=r"turn_based=True: players of breakthrough.* move in turn already"):
        to_tabular_policy(solution, name, turn_based=True)
    with pytest.raises(ace.InvalidOption, match=r"the same text.*no table can hold it, run the policy itself$"):
        to_tabular_policy(solution, name)


def test_only_where_somebody_moves_there_is_something_to_play():
    game = pyspiel.load_game("pig(winscore=4,horizon=6,diceoutcomes=3)")
    state = game.new_initial_state()
    play(state, ("roll", "-"))
    assert state.is_chance_node()
    for ask in (state_label, lambda state: play(state, ("roll", "-"))):
        with pytest.raises(ace.InvalidOption, match="must be one where somebody is to move, but waits for chance"):
            ask(state)
    over = pyspiel.load_game("matrix_pd").new_initial_state()
    play(over, ("Cooperate", "Defect"))
    assert state_label(over) == "end"
    with pytest.raises(ace.InvalidOption, match="but is over"):
        play(over, ("Cooperate", "Defect"))


def test_information_states_that_do_not_tell_the_spending_are_refused():
    """OpenSpiel's repeated games show only the last round by default; what was spent before decides here."""
    game = pyspiel.create_repeated_game("matrix_pd", {"num_repetitions": 3})
    solution = nash(game, cost=defections, budget={"defections": 3})
    with pytest.raises(ace.InvalidOption, match=r"does not tell this situation from t=.*no table can hold it"):
        to_tabular_policy(solution, game, turn_based=True)


def test_costs_that_histories_do_not_tell_are_refused():
    def who_came_first(state, action, after):
        return {"luck": after.history()[-1] == 1}

    game = "markov_soccer(horizon=4)"
    solution = nash(game, cost=who_came_first, budget={"luck": 3})
    with pytest.raises(ace.InvalidOption, match="several costs are possible on the way to"):
        to_tabular_policy(solution, game, turn_based=True)


def test_a_policy_of_another_game_is_refused():
    solution = nash("nim(pile_sizes=1;2)")
    with pytest.raises(ace.InvalidOption, match="does not know this state"):
        to_tabular_policy(solution, "nim(pile_sizes=2;2)")
    with pytest.raises(ace.InvalidOption, match="the key"):
        to_tabular_policy(nash("nim(pile_sizes=1;2)", key=history), "nim(pile_sizes=1;2)")
    with pytest.raises(ace.InvalidOption, match="plays 'Defect', OpenSpiel offers"):
        to_tabular_policy(nash("matrix_pd"), "matrix_rps")


def test_without_openspiel_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_spiel", None)
    with pytest.raises(ace.MissingExtra, match=r"need open_spiel: pip install 'acegames\[openspiel\]'"):
        from_openspiel("matrix_pd")
