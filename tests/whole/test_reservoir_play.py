"""Reservoirs wherever play is followed: every runner, shield, environment and file counts as the oracle does.

The oracle's `after` says what a step makes of what is missing: never less than nothing. Games have reservoirs beside plain budgets,
full or not at the beginning, with a reserve or without, and costs of both signs.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import learn
from acegames.adapters.environments.episodes import Episode
from acegames.baselines import compare, expected_budgets, team_optimum, without_budgets
from acegames.files.solution_file import check_played
from acegames.files.tables import read_policy, write_policy
from acegames.model.layers import with_fields
from acegames.model.numbers import exact
from acegames.policy.simulation import simulate
from acegames.system.container import read_archive, write_archive
from command_line import answer, run
from games import ByFunction, one_state, solo
from random_games import changing_game

GAMES = 24


@cache
def games():
    """Feasible games with reservoirs, of which some waste something and some are not full at the beginning."""

    def drawn(k):
        rng = np.random.default_rng([k, 11])
        if k % 3 == 0:
            return changing_game(rng, reservoirs=True)
        size = {"constraints": 1 + k % 2, "horizon": 3, "players": 1 + k % 3 % 2}
        return oracle.random_game(rng, costs=["signed", "thirds"][k % 2], reservoirs=True, **size)

    feasible = (
        game for game in map(drawn, itertools.count()) if any(game.reservoirs) and ace.feasibility(game).feasible
    )
    return list(itertools.islice(feasible, GAMES))


@cache
def solved(number):
    return ace.solve(games()[number])


def exactly(amounts):
    return tuple(map(exact, amounts))


def moves_of(g, t, state, action):
    return next(m for m in g.moves[t][state] if m.action == action)


def drawn_outcome(g, game, t, state, action, rng):
    """An outcome of a joint action: next state and cost."""
    outcomes = moves_of(g, t, game.state_index(state), game.action_indices(action)).outcomes
    _, s, whole = outcomes[int(rng.integers(len(outcomes)))]
    return game.states[s], g.cost(whole)


def first_state(game, rng):
    return game.states[game.initial[int(rng.integers(len(game.initial)))][0]]


def test_the_games_are_of_every_kind():
    starts = [x for game in games() for x in game.spent_at_start]
    assert sum(x > 0 for x in starts) > 3
    assert sum(None in game.reservoirs for game in games()) > 2
    assert sum(len(set(row)) > 1 for game in games() for row in zip(*game.budgets, strict=True)) > 3
    played = [simulate(game, solved(k).policy, episodes=20, rng=k) for k, game in enumerate(games())]
    assert sum(bool(rollouts.wasted.any()) for rollouts in played) > 3


# -- runners ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(GAMES))
def test_runners_count_as_the_oracle_does(number, tmp_path):
    """The policy's, that of the policy from a file and from a table, the shield's and that of a learned policy."""
    game, solution = games()[number], solved(number)
    solution.policy.save(tmp_path / "p.ace")
    solution.save(tmp_path / "s.ace")
    write_policy(solution.policy, tmp_path / "p.csv")
    policies = {
        "own": solution.policy,
        "policy file": ace.Policy.load(tmp_path / "p.ace"),
        "solution file": ace.Solution.load(tmp_path / "s.ace").policy,
        "table": read_policy(tmp_path / "p.csv", game),
        "learned": learn.safe_policy(solution),
    }
    shield, g, rng = ace.Shield(game), oracle.spell_out(game), np.random.default_rng(number)
    assert all(p.tracker == policies["own"].tracker for p in policies.values())
    for _ in range(6):
        state = first_state(game, rng)
        runners = {name: policy.start(rng, state=state) for name, policy in policies.items()}
        guarded, spent = shield.start(state=state), game.spent_at_start
        pair = shield.pair(0, state, spent)
        for t in range(game.horizon):
            assert all(exactly(r.spent) == spent for r in (*runners.values(), guarded))
            assert exactly(guarded.left) == tuple(b - c for b, c in zip(game.budgets[t], spent, strict=True))
            played = [policy.distribution(t, state, spent) for policy in policies.values()]
            assert all(p == played[0] for p in played)
            action = runners["own"].act()
            assert action in played[0] and guarded.safe(action)
            here, (state, cost) = (t, state), drawn_outcome(g, game, t, state, action, rng)
            assert shield.explains(*here, action, cost, state)
            spent = g.after(spent, cost)
            assert oracle.within(spent, game.budgets[t])
            for runner in (*runners.values(), guarded):
                runner.observe(action, cost, state)
            step = [game.action_indices(action)], [shield.cost_units(cost)], [game.state_index(state)]
            pair = shield.next_pairs([pair], *step)[0]
            assert pair == shield.pair(t + 1, state, spent)
        assert all(exactly(r.spent) == spent for r in (*runners.values(), guarded))


# -- simulation -----------------------------------------------------------------------------------------------------------


def battery(**options):
    """Driving takes 2, charging gives 3; capacity 6, four steps; driving pays."""
    budget, cost = {"battery": ace.reservoir(6, **options)}, {"drive": 2, "charge": -3}
    pay = {"drive": [1.0], "charge": [0.0]}
    return one_state(
        ["robot"], [tuple(cost)], lambda t, a: cost[a[0]], lambda t, a: pay[a[0]], horizon=4, budget=budget
    )


def plan(*actions):
    """A policy that plays a list of actions."""
    return ByFunction(lambda t, state, spent: {(actions[t],): 1.0})


def test_what_is_wasted_by_hand():
    game = battery(start=4)
    played = simulate(game, plan("charge", "drive", "charge", "charge"), episodes=2, rng=0)
    assert played.spent[0, :, 0].tolist() == [0, 2, 0, 0]
    assert played.wasted.tolist() == [[1 + 1 + 3]] * 2
    assert played.violations == 0
    assert "on average 5 did not fit" in repr(played)
    assert "Lowest level: battery 4 of 6." in str(played)
    assert "Wasted on average: battery 5." in str(played)
    assert played.summary()["wasted"].tolist() == [5]
    dry = simulate(game, plan("drive", "drive", "drive", "charge"), episodes=2, rng=0)
    assert dry.spent[0, :, 0].tolist() == [4, 6, 8, 5]
    assert (dry.violations, dry.excess.tolist()) == (2, [2])
    assert not dry.wasted.any() and "wasted" not in repr(dry)


@pytest.mark.parametrize("number", range(GAMES))
def test_simulated_episodes_can_happen(number):
    """What was spent and wasted follows from the states and actions of the episode by the oracle's update."""
    game = games()[number]
    g = oracle.spell_out(game)
    played = simulate(game, solved(number).policy, episodes=60, rng=number)
    assert played.violations == 0
    check_played(solved(number), played)
    for e in range(60):
        lost = {(Fraction(0),) * g.width}  # all that may have been wasted
        spent = game.spent_at_start
        for t in range(game.horizon):
            move = moves_of(g, t, played.state[e, t], tuple(played.action[e, t].tolist()))
            costs = [g.cost(c) for _, s, c in move.outcomes if s == played.state[e, t + 1]]
            fits = [c for c in costs if np.allclose([float(x) for x in g.after(spent, c)], played.spent[e, t])]
            assert fits
            lost = {oracle.add(x, minus(g.after(spent, c), oracle.add(spent, c))) for x in lost for c in fits}
            spent = g.after(spent, fits[0])
        assert any(np.allclose([float(v) for v in x], played.wasted[e]) for x in lost)
    assert not played.wasted[:, [x is None for x in game.reservoirs]].any()


def minus(one, two):
    return tuple(a - b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("rounding", ["down", "up"])
def test_totals_that_are_counted_have_the_floor_too(rounding):
    """Costs of tenths rounded to cells of a quarter: both totals by the oracle's update, in fractions."""
    costs, budget = {"drive": (1, 4), "charge": (-3, -8)}, ace.reservoir(Fraction(7, 5), start=Fraction(11, 10))
    game = solo(
        lambda t, s, a: [(0.5, s, Fraction(k, 10)) for k in costs[a]], horizon=5, budget={"battery": budget},
        initial="hall", reward=lambda t, s, a: float(a == "drive"), actions=tuple(costs),
    )  # fmt: skip
    shield = ace.Shield(game, epsilon=Fraction(5, 4), rounding=rounding)
    assert not shield.tracker.exact
    g, rng = oracle.spell_out(game), np.random.default_rng(3)
    episode = Episode(game, shield.tracker.rounding)
    for _ in range(40):
        runner, spent, counted = shield.start(), game.spent_at_start, game.spent_at_start
        episode.begin(rng)
        while not runner.done:
            assert (exactly(runner.spent), exactly(runner.counted)) == (spent, counted)
            assert exactly(episode.counted_pair[2]) == counted
            action = tuple(rng.permutation(np.argwhere(runner.joint()))[0].tolist())
            step = episode.play(action, rng)
            runner.observe(game.joint_action(action), step.costs, "hall")
            spent = g.after(spent, exactly(step.costs))
            counted = g.after(counted, shield.tracker.counted(step.costs))
            assert rounding == "down" or oracle.within(spent, counted)
        assert exactly(episode.spent) == spent


# -- environments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(GAMES))
def test_environments_count_as_the_oracle_does(number):
    pytest.importorskip("pettingzoo")
    from acegames.adapters.pettingzoo import parallel_env

    game = games()[number]
    env, g, rng = parallel_env(game), oracle.spell_out(game), np.random.default_rng(number)
    for seed in range(8):
        observations, infos = env.reset(seed=seed)
        spent = game.spent_at_start
        while env.agents:
            t, info = env.situation[0], infos[env.agents[0]]
            assert exactly(env.situation[2]) == spent
            amounts = [info[f"spent_{name}"] for name in env.constraint_names.values()]
            assert amounts == pytest.approx([float(x) for x in spent])
            for agent, seen in observations.items():
                assert env.observation_space(agent).contains(seen)
            chosen = {a: int(rng.choice(np.flatnonzero(observations[a]["action_mask"]))) for a in env.agents}
            observations, *_, infos = env.step(chosen)
            spent = g.after(spent, exactly(env.costs.values()))
            assert oracle.within(spent, game.budgets[t])
        assert not env.play.episode.violated and exactly(env.situation[2]) == spent


@pytest.mark.parametrize("number", range(0, GAMES, 2))
def test_a_shielded_environment_counts_as_the_oracle_does(number):
    pytest.importorskip("pettingzoo")
    from acegames.adapters.pettingzoo import shielded
    from parallel_envs import Table

    game = games()[number]
    g, rng = oracle.spell_out(game), np.random.default_rng(number)
    table = Table(game)
    numbers = dict(zip(game.players, game.actions, strict=True))
    env = shielded(table, ace.Shield(game), state=lambda env, seen: env.label(), actions=numbers, infos="nested")
    for seed in range(8):
        _, infos = env.reset(seed=seed)
        spent = game.spent_at_start
        while env.agents:
            info = infos[env.agents[0]]
            bounds = game.budgets[info["t"]]
            assert exactly(info["spent"].values()) == spent
            assert exactly(info["remaining"].values()) == tuple(b - c for b, c in zip(bounds, spent, strict=True))
            # what is not safe together is repaired
            chosen = {a: int(rng.choice(np.flatnonzero(infos[a]["action_mask"]))) for a in env.agents}
            *_, infos = env.step(chosen)
            cost = next(iter(infos.values()))["cost"]
            spent = g.after(spent, exactly(cost[c] for c in game.constraints))
            assert oracle.within(spent, bounds)


def test_an_openspiel_table_counts_what_is_stored():
    pytest.importorskip("pyspiel")
    from open_spiel.python.algorithms import expected_game_score

    from acegames.adapters.openspiel import from_openspiel, repeated, to_tabular_policy

    game = repeated("matrix_pd", 4)

    def patience(state, action, after):
        return {"patience": 1 if "Defect" in action else -1}

    for stored in (ace.reservoir(2), ace.reservoir(2, start=1), 2):
        solution = ace.solve(from_openspiel(game, cost=patience, budget={"patience": stored}), ace.Nash())
        table = to_tabular_policy(solution, game, turn_based=True)
        root = table.game.new_initial_state()
        assert expected_game_score.policy_value(root, [table] * 2) == pytest.approx(solution.values)


def test_the_stage_game_of_one_step_begins_with_what_is_missing(tmp_path):
    from acegames.adapters.gambit import read_nfg, stage_game, write_nfg

    for level, actions in ((1, ("charge",)), (2, ("drive", "charge"))):
        game = battery(start=level)
        first_step = with_fields(game, horizon=1, budgets=game.budgets[:1], layer_at=game.layer_at[:1])
        write_nfg(first_step, tmp_path / "one.nfg")
        assert read_nfg(tmp_path / "one.nfg").actions == (actions,)
    for number in range(GAMES):
        game, (_, _, actions) = games()[number], oracle.feasible_sets(games()[number])
        for (t, s, spent), wanted in actions.items():
            assert stage_game(solved(number), t, game.states[s], spent).feasible.sum() == len(wanted)


def test_an_environment_shows_the_level():
    pytest.importorskip("gymnasium")
    from acegames.adapters.gymnasium import env as single

    env = single(battery(start=4, reserve=1), mask="available", render_mode="ansi")
    seen, info = env.reset(seed=0)
    assert info["remaining_battery"] == 3.0
    assert seen["observation"][-1] == np.float32(3 / 5)
    assert "█████████████░░░░░░░ 4 left of 6, reserve 1\n" in env.render()
    env.step(1)
    env.step(0)
    assert "4 left of 6" in env.render()
    env.step(0)
    env.step(0)
    assert "0 left of 6, reserve 1, below the reserve" in env.render()


# -- files ------------------------------------------------------------------------------------------------------------------


def test_a_file_with_another_reservoir_is_refused(tmp_path):
    path = tmp_path / "p.ace"
    ace.solve(battery(start=4)).policy.save(path)
    kind, header, arrays = read_archive(path, "acegames-policy")
    assert header["reservoirs"] == [["6", "4"]]
    arrays = {name: arrays[name] for name in arrays}
    own = {key: value for key, value in header.items() if key not in ("format", "version", "arrays")}
    for wrong, said in {
        "several": ([["6", "4"], None], "2 entries"),
        "more than full": ([["6", "7"]], "must start between 0 and its capacity"),
        "no units": ([["6", "7/2"]], "must be a multiple of"),
        "no list": (["6"], "where a list belongs"),
    }.values():
        write_archive(path, kind, {**own, "reservoirs": wrong}, arrays)
        with pytest.raises(ace.BadFile, match=said):
            ace.Policy.load(path)


def test_a_table_that_does_not_begin_where_play_does_is_refused(tmp_path):
    game, full = battery(start=4), battery()
    write_policy(ace.solve(full).policy, tmp_path / "full.csv")
    with pytest.raises(ace.BadFile, match=r"the table has no line with \(2,\) spent"):
        read_policy(tmp_path / "full.csv", game)
    with pytest.raises(ace.BadFile, match="tracker: has other reservoirs than the game"):
        read_policy(tmp_path / "full.csv", full, tracker=replace(ace.solve(full).policy.tracker, reservoirs=()))


@pytest.mark.parametrize("name", ["g.yaml", "g.json", "g.npz"])
def test_constraints_without_names_keep_their_reservoirs_beside_schedules(name, tmp_path):
    budget = [ace.reservoir(3, start=2), [4, 5]]
    game = one_state(["a"], [("x",)], lambda t, a: (1, -1), lambda t, a: [0.0], horizon=2, budget=budget)
    game.save(tmp_path / name)
    assert ace.load(tmp_path / name).reservoirs == game.reservoirs


# -- learning and baselines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(0, GAMES, 4))
def test_learned_play_keeps_what_is_stored(number):
    game = games()[number]
    learned = learn.estimate(game, samples_per_pair=60, rng=number)
    assert learned.game.reservoirs == game.reservoirs
    try:
        policy = learned.policy(ace.solve(learned.game))
    except ace.Infeasible:
        return
    played = learn.rollout(game, policy, episodes=30, rng=number)
    assert played.violations == 0 or played.surprises


def test_a_reservoir_is_not_kept_on_average():
    game = battery(start=4)
    with pytest.raises(ace.InvalidOption, match=r"budget of 'battery': a reservoir cannot be kept on average"):
        expected_budgets(game)
    comparison = compare(game, episodes=50)
    assert [row.name for row in comparison.rows] == ["no budgets", "at every moment, in equilibrium"]
    assert comparison["no budgets"].broken == 1 and comparison["at every moment, in equilibrium"].broken == 0
    assert "most missing: battery" in str(comparison)


@pytest.mark.parametrize("number", range(GAMES))
def test_baselines_play_with_reservoirs(number, tmp_path):
    game = games()[number]
    team, free = team_optimum(game), ace.solve(without_budgets(game))
    assert simulate(game, team, episodes=40, rng=1).violations == 0
    assert team.value <= sum(free.values) + 1e-9 or len(game.players) > 1
    simulate(game, free.policy, episodes=40, rng=1)  # it answers wherever its play comes
    free.save(tmp_path / "free.ace")
    assert ace.Solution.load(tmp_path / "free.ace").game.digest == free.game.digest


# -- the program ----------------------------------------------------------------------------------------------------------------


def test_the_program_says_what_was_wasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ace.solve(battery(start=4)).save("s.ace")
    rollouts = simulate(battery(start=4), ace.Policy.load("s.ace"), episodes=20, rng=0)
    asked = "simulate", "s.ace", "--episodes", 20, "--seed", 0
    assert answer(*asked)["mean_wasted"] == {"battery": rollouts.wasted.mean()}
    words = run(*asked).output
    assert words == f"{rollouts}\n" and f"Lowest level: battery {6 - rollouts.spent.max():g} of 6.\n" in words
