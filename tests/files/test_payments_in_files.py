"""Rewards that come with outcomes, in every file format and back; rules that say them."""

from __future__ import annotations

import sys
from subprocess import run

import numpy as np
import pytest

import acegames as ace
from acegames.files import games
from acegames.files.formats import endings
from acegames.proofs import checker_file
from paying_games import paying_game


def saved(game, path):
    """The game, written to a file and read back."""
    game.save(path)
    return ace.load(path)


@pytest.mark.parametrize("ending", endings("save"))
@pytest.mark.parametrize("seed", [*range(6), "thirds"])
def test_a_game_that_is_saved_pays_the_same(ending, seed, tmp_path):
    game = thirds() if seed == "thirds" else paying_game(seed, players=1 + seed % 3, stationary=bool(seed % 2)).game
    result = saved(game, tmp_path / f"game{ending}")
    assert result.digest == game.digest
    assert any(layer.payments is not None for layer in game.layers)
    for t in range(game.horizon):
        assert (result.layer(t).payments is None) == (game.layer(t).payments is None)
        for row in range(len(game.layer(t).reward)):
            assert result.payments(t, row) == game.payments(t, row)


def thirds():
    """Probabilities and rewards that no binary number is, and several payments of one outcome."""
    law = [(1 / 3, 0, 0.1, 0.1), (1 / 3, 0, 0.1, 0.7), (1 / 6, 1, 0, 1 / 7), (1 / 6, 0, 0, -1e-9)]
    return ace.MarkovGame.from_functions(
        players=["me"],
        actions=lambda s: [["x", "y"]],
        outcomes=lambda s, a: law if a == ("x",) else [(1, s, 0, 0.3)],
        reward=lambda s, a, next_s: [0.1 * next_s],
        horizon=3,
        initial=0,
        budget={"c": 2},
    )


def test_a_text_file_with_an_archive_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(games, "TEXT_LIMIT", 0)
    game = thirds()
    assert saved(game, tmp_path / "game.yaml").digest == game.digest
    assert len(list(tmp_path.glob("*.npz"))) == 1


def test_a_solution_keeps_the_game_that_it_is_played_in(tmp_path):
    solution = ace.solve(thirds())
    solution.save(tmp_path / "solution.ace")
    found = ace.Solution.load(tmp_path / "solution.ace")
    assert found.game.digest == solution.game.digest
    ours, theirs = (x.simulate(50, rng=3) for x in (solution, found))
    assert np.array_equal(ours.returns, theirs.returns) and len(np.unique(ours.returns)) > 3


def test_a_proof_is_about_the_game_with_its_payments(tmp_path):
    """The checker finds the same digest, though it reads the mean alone."""
    proof = ace.prove(ace.solve(thirds()), tmp_path / "proof")
    command = [sys.executable, checker_file(), proof.path, "--game", thirds().digest]
    checked = run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


RULES = """
format: acegames-game
version: 1
players: [a, b]
states: [here, there]
actions: [[go], [go]]
horizon: 2
initial: here
constraints: [fuel]
budget: {fuel: 9}
rules:
  - reward: [1, 0]
    outcomes:
      - {probability: 0.25, next: here, cost: {fuel: 1}, reward: {a: 10}}
      - {probability: 0.25, next: here, cost: {fuel: 1}}
      - {probability: 0.5, next: there, reward: {b: 4}}
"""


def test_rules_with_rewards_on_outcomes(tmp_path):
    (tmp_path / "game.yaml").write_text(RULES)
    game = ace.load(tmp_path / "game.yaml")
    results = [(p, s, paid) for p, s, _, paid in game.payments(0, 0)]
    assert results == [(0.25, "here", (1.0, 0.0)), (0.25, "here", (11.0, 0.0)), (0.5, "there", (1.0, 4.0))]
    assert game.layer(0).reward[0].tolist() == [3.5, 2.0]
    adding = RULES + "  - {when: {next: there}, add: {reward: {a: 6}}}\n"
    (tmp_path / "adding.yaml").write_text(adding)
    more = ace.load(tmp_path / "adding.yaml")
    assert [paid for *_, paid in more.payments(0, 0)] == [(1.0, 0.0), (11.0, 0.0), (7.0, 4.0)]


@pytest.mark.parametrize("damage", ["reward", "ptr", "prob", "shape"])
def test_damaged_payments_are_refused(damage, tmp_path):
    game = thirds()
    header, arrays = games.game_to_archive(game)
    name = header["layers"][0]["payments"]["reward" if damage == "shape" else damage]
    array = np.array(arrays[name])
    arrays[name] = array[:-1] if damage == "shape" else array + (1 if damage == "ptr" else 0.25)
    with pytest.raises(ace.BadFile):
        games.game_from_archive(header, arrays)


def test_archives_of_games_without_payments_say_nothing_of_them():
    header, arrays = games.game_to_archive(ace.catalog.get("intersection"))
    assert "payments" not in header["layers"][0]
    assert not any("paid" in name for name in arrays)
