"""Budgets on the total alone, and schedules in general, with costs of both signs: from the builder to the command line."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.model.layers import with_fields
from acegames.safety.frontier import last_finite
from acegames.verifier.pair_keys import Ceilings, ExactUnits
from command_line import answer, run
from game_files import CHICKEN, load_text
from games import ByFunction, alone

INF = math.inf


def at_end(game, slack=0):
    """The game with budgets on the totals alone, at what its own budgets were plus some."""
    last = tuple(last_finite(column) + slack for column in zip(*game.budgets, strict=True))
    return with_fields(game, budgets=((INF,) * len(last),) * (game.horizon - 1) + (last,))


def random_games(number, seed, **fixed):
    """Random games with both signs: half of them almost sure, half with any schedule."""
    for k in range(number):
        rng = np.random.default_rng([seed, k])
        signed = {
            "costs": str(rng.choice(["signed", "thirds"])),
            "constraints": int(rng.integers(1, 3)),
            "reservoirs": False,
            **fixed,
        }
        if k % 2:
            yield at_end(oracle.random_game(rng, horizon=int(rng.integers(2, 5)), **signed), int(rng.integers(-1, 2)))
        else:
            yield oracle.random_game(rng, schedule=True, **signed)


def budget_of(budget, *, width=1):
    cost = np.zeros((1, 1, width), dtype=int)
    return ace.MarkovGame.from_arrays(np.ones((1, 1, 1)), np.zeros((1, 1, 1)), cost, budget, horizon=3).budgets


# -- saying it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "width", "meant"),
    [
        (ace.almost_sure(5), 1, [(INF,), (INF,), (5,)]),
        ([ace.almost_sure(5)], 1, [(INF,), (INF,), (5,)]),
        ({"fuel": ace.almost_sure(0.1)}, 1, [(INF,), (INF,), (Fraction(1, 10),)]),
        ([ace.almost_sure(-1), 3], 2, [(INF, 3), (INF, 3), (-1, 3)]),
        ({"fuel": ace.almost_sure(5), "risk": [1, 2, INF]}, 2, [(INF, 1), (INF, 2), (5, INF)]),
        (ace.almost_sure(INF), 1, [(INF,)] * 3),
    ],
)
def test_almost_sure_is_a_schedule(given, width, meant):
    assert budget_of(given, width=width) == tuple(meant)


def test_in_every_builder():
    budget = {"fuel": ace.almost_sure(2)}
    by_functions = alone(lambda s, a: [(1.0, "s", 1)], budget=budget)
    by_table = ace.MarkovGame.from_table(
        [{"state": "s", "p": "go", "probability": 1, "next_state": "s", "fuel": 1, "reward_p": 0}],
        players=["p"], horizon=2, initial="s", budget=budget,
    )  # fmt: skip
    by_arrays = ace.MarkovGame.from_arrays(
        np.ones((1, 1, 1)), np.zeros((1, 1, 1)), np.ones((1, 1, 1), dtype=int), budget,
        horizon=2, initial="s", players=["p"], states=["s"], actions=[["go"]],
    )  # fmt: skip
    assert by_functions.budgets == ((INF,), (Fraction(2),))
    assert by_functions.digest == by_table.digest == by_arrays.digest


@pytest.mark.parametrize("wrong", [ace.almost_sure("x"), ace.almost_sure([1, 2]), ace.almost_sure(ace.almost_sure(1))])
def test_a_wrong_bound_is_named(wrong):
    with pytest.raises(ace.InvalidGame, match=r"budget of 0: .* is not a number; must be a finite number or inf"):
        budget_of(wrong)
    with pytest.raises(ace.InvalidGame, match="budget of 0 at t=0"):
        budget_of([[wrong]] * 3)


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["{risk: {at_end: 2}}", "[{at_end: 2}]", "{risk: {at_end: '2'}}", "[[.inf], [inf], [2]]"]
)
def test_at_end_in_a_file(tmp_path, text):
    game = load_text(tmp_path, CHICKEN.replace("{risk: 2}", text, 1))
    assert game.budgets == ((INF,), (INF,), (2,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{risk: {at_the_end: 2}}", "budget of 'risk': unknown key 'at_the_end', did you mean 'at_end'"),
        ("{risk: {at_end: two}}", "budget of 'risk': at_end: 'two' is not a finite number"),
        ("{risk: {at_end: [1, 2]}}", "budget of 'risk': at_end: "),
        ("{risk: {}}", "must be a number, or have a key reservoir, between or at_end"),
        ("{at_end: 2}", "unknown constraint 'at_end'"),
        ("[[{at_end: 2}], [1], [1]]", "budget of 'risk' at t=0"),
    ],
)
def test_wrong_budgets_in_a_file(tmp_path, text, words):
    with pytest.raises(ace.InvalidGame, match=words):
        load_text(tmp_path, CHICKEN.replace("{risk: 2}", text, 1))


def test_files_say_at_end(tmp_path):
    game = ace.catalog.get("net_zero")
    game.save(tmp_path / "game.json")
    assert json.loads((tmp_path / "game.json").read_text())["budget"] == {"net import": {"at_end": 0}}
    unnamed = with_fields(game, constraints=(0,))
    unnamed.save(tmp_path / "unnamed.json")
    assert json.loads((tmp_path / "unnamed.json").read_text())["budget"] == [{"at_end": 0}]


# -- against the oracle -------------------------------------------------------------------------------------------


def by_state(found, game):
    return [
        {(game.state_index(s), tuple(map(Fraction, map(str, c)))) for s, c in found.states(t)}
        for t in range(game.horizon)
    ]


@pytest.mark.parametrize("number", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_feasibility_is_the_oracles(number):
    verdicts, above = [], 0
    for game in random_games(number, 2):
        feasible, reached, actions = oracle.feasible_sets(game)
        found = ace.feasibility(game)
        verdicts.append(feasible)
        assert found.feasible == feasible
        if feasible:
            assert by_state(found, game) == reached
            for (t, s, c), expected in actions.items():
                listed = found.actions(t, game.states[s], c)
                assert {game.action_indices(a) for a in listed} == set(expected)
            last = game.budgets[-1]
            above += any(any(x > b for x, b in zip(c, last, strict=True)) for layer in reached for _, c in layer)
    assert number / 4 < sum(verdicts) < 0.95 * number
    assert above > number / 12  # running totals beyond what the end allows do occur


@pytest.mark.parametrize("number", [16, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [ace.CE, ace.CCE])
def test_solved_verified_played_and_kept(kind, number, tmp_path):
    done = 0
    for k, game in enumerate(random_games(number, 3, players=2)):
        expected = oracle.root_values(game, kind())
        if expected is None:
            with pytest.raises(ace.Infeasible):
                ace.solve(game, kind())
            continue
        solution = ace.solve(game, kind())
        np.testing.assert_allclose(solution.values, [float(v) for v in expected], atol=1e-7)
        certificate = ace.verify(game, solution.policy, kind())
        assert certificate.ok, str(certificate)
        assert certificate.pairs == ace.feasibility(game).pairs
        listed = ace.solve(game, kind(), engine=ace.LocalEngine(dense=False))
        np.testing.assert_allclose(listed.values, solution.values, atol=1e-9)
        assert ace.simulate(game, solution.policy, episodes=50, rng=k).violations == 0
        solution.save(tmp_path / "x.ace")
        kept = ace.Solution.load(tmp_path / "x.ace")
        assert kept.game.digest == game.digest
        assert ace.verify(kept.game, kept.policy, kind()).ok
        done += 1
    assert done > 0.375 * number


def test_a_policy_that_does_not_come_back_is_caught():
    game, feast = ace.catalog.get("net_zero"), ByFunction(lambda t, state, spent: {("feast", "feast"): 1.0})
    certificate = ace.verify(game, feast, ace.CE())
    assert not certificate.ok
    assert certificate.witness.history[-1].t == game.horizon - 1
    assert ace.simulate(game, feast, episodes=20, rng=0).violations == 20


# -- what can still be recovered --------------------------------------------------------------------------------


def test_ceilings_hold_and_cut():
    cut = 0
    for game in random_games(60, 4):
        _, reached, _ = oracle.feasible_sets(game)
        units = ExactUnits(game)
        ceilings = Ceilings(game, units)
        for t, layer in enumerate(reached):
            for s, c in layer:
                assert all(int(x * k) <= top for x, k, top in zip(c, units.scale, ceilings.at[t][s], strict=True))
        cut += any((ceilings.at[t] < units.beyond).any() for t in range(game.horizon))
    assert cut > 30


def test_one_constraint_ceilings_are_exact():
    """With one constraint a total that can occur is below the ceiling exactly when the rest can be kept."""
    verdicts = []
    for game in random_games(60, 5, constraints=1):
        spelled, units = oracle.spell_out(game), ExactUnits(game)
        node, _ = oracle.truth(spelled, spelled.budgets)
        ratio = Fraction(spelled.unit[0], units.scale[0])  # the oracle counts in units of its own
        ceilings, largest = Ceilings(game, units), units.beyond // (game.horizon + 1)
        for t in range(game.horizon):
            for s in range(len(game.states)):
                for total in range(-t * largest, t * largest + 1) if spelled.moves[t][s] else ():
                    verdicts.append(node(t, s, (total * ratio,)))
                    assert (total <= ceilings.at[t][s, 0]) == verdicts[-1]
    assert 100 < sum(verdicts) < len(verdicts) - 100


def test_the_verifier_does_not_look_at_what_cannot_come_back():
    """A long game whose totals could run to thousands and must end low: only the few that can come back are listed."""
    from acegames.verifier.subgames import Subgames

    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.array([[[1.0], [0.0]]]), np.array([[[50], [-1]]]), ace.almost_sure(0), horizon=60
    )
    subgames = Subgames.of(game, ExactUnits(game))
    assert sum(map(len, subgames.keys)) == ace.feasibility(game).pairs
    assert subgames.packed.size[0] <= 200


# -- the command line ---------------------------------------------------------------------------------------------


def test_the_command_line_says_at_the_end(tmp_path):
    file = tmp_path / "x.ace"
    for words, said in (
        (["check", "net_zero"], "0 at the end"),
        (["frontier", "net_zero"], "0 at the end"),
        (["solve", "net_zero", "-o", file], "the budget is 0 at the end"),
        (["solve", "net_zero", "--verbose"], "(the budget of 0 holds at the end only)"),
        (["verify", file], "(the budget of 0 holds at the end only)"),
        (["simulate", file, "--episodes", 200, "--seed", 1], "net import 3, at the end 0 (budget 0 at the end)"),
    ):
        assert said in " ".join(run(*words).stdout.split())
    told = answer("simulate", file, "--episodes", 200, "--seed", 1)
    assert told["largest_spending_at_end"]["net import"] <= 0 < told["largest_spending"]["net import"]
    told = answer("frontier", "net_zero", "--curve")
    assert told["minimal_budgets"] == [{"net import": -3}]
    assert [p["budget"]["net import"] for p in told["curve"]["points"]] == [-3, -2, -1, 0]
    assert answer("check", "net_zero")["game"]["budget"]["net import"] == ["inf"] * 5 + [0]
