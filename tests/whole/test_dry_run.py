"""A dry run of the seam: a concept that the library does not know, added by one class and one entry of a table.

`OneSided` is correlated equilibrium in agent form for one player: only that player may deviate, after it has heard
its recommendation. Both engines, the estimate, the verifier, files, the report and the command line work with it: the
record says which players deviate, and the tables of switches that kernels and verifier read hold none of the others.

What a real concept of this kind touches: `concepts.py` (its class and its entry in `CONCEPTS`), the front (its name) and
`checker/ace_check.py`, which shares no code and refuses proofs of concepts that it does not know. Deviations of a new
kind, neither after the recommendation nor committed beforehand, touch besides: the incentive rows in `stage/program.py`
and `kernels/stage.py`, and the best deviation in `verifier/judgement.py` and `verifier/pair_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

import acegames as ace
import oracle
import proof_checker
from acegames.concepts import CONCEPTS, OBJECTIVES, Words
from acegames.kernels import records
from games import anything_safe, one_state

ACTIONS = (("a", "b"), ("c", "d"))
PAYOFF = {("a", "c"): (4, 1), ("a", "d"): (0, 3), ("b", "c"): (3, 0), ("b", "d"): (1, 2)}
COST = {("a", "c"): 2, ("a", "d"): 1, ("b", "c"): 1, ("b", "d"): 0}


@dataclass(frozen=True)
class OneSided(ace.CE):
    """Correlated equilibrium in which only `player` must be kept from deviating."""

    player: Hashable = "row"
    words = Words("one-sided correlated", "Only one player must be kept from answering what it is told otherwise.")

    def deviators(self, players):
        return tuple(p == self.player for p in players)


@pytest.fixture
def known(monkeypatch):
    """The registration: what a real concept would write into `concepts.py`."""
    monkeypatch.setitem(CONCEPTS, "onesided", OneSided)


@pytest.fixture
def game():
    return one_state(["row", "column"], ACTIONS, lambda t, a: COST[a], lambda t, a: PAYOFF[a], horizon=3, budget=4)


def gains(game, policy, player):
    """What the best deviation after what a player is told gains in each situation, by brute force."""
    judged = oracle.gains_and_stakes(game, oracle.table_of(game, policy), "CE")
    return [float(gain) for gain, _ in judged[player].values()]


@pytest.mark.parametrize("engine", [ace.LocalEngine, ace.ReferenceEngine])
@pytest.mark.parametrize("objective", ["welfare", "egalitarian", None])
def test_both_engines_solve_it(game, known, engine, objective):
    concept = OneSided(objective)
    solution = ace.solve(game, concept, engine=engine())
    certificate = ace.verify(game, solution.policy)
    assert certificate.ok and certificate.concept == concept
    assert max(gains(game, solution.policy, 0)) < 1e-9
    if objective == "welfare":
        assert max(gains(game, solution.policy, 1)) > 0.5, "the other player would gain"
        assert not ace.verify(game, solution.policy, ace.CE()).ok
        assert solution.values.sum() > ace.solve(game, ace.CE()).values.sum() + 0.5


def test_the_regret_is_that_of_the_chosen_player(game, known):
    """Of a policy that is an equilibrium for neither player, against brute force; the other never deviates."""
    policy = anything_safe(game)
    for i, player in enumerate(game.players):
        certificate = ace.verify(game, policy, OneSided(player=player))
        assert not certificate.ok and certificate.regret[i] > 0.1
        assert abs(certificate.regret[i] - max(gains(game, policy, i))) < 1e-12
        assert certificate.regret[1 - i] < 1e-12


def test_words_estimate_files_and_report(game, known, tmp_path):
    concept = OneSided()
    solution = ace.solve(game, concept)
    assert ace.estimate(game, concept).pairs == solution.stats.pairs
    assert "a safe one-sided correlated equilibrium" in str(ace.verify(game, solution.policy))
    assert "anytime-constrained one-sided correlated equilibrium" in str(solution.guarantee)
    solution.save(tmp_path / "solution.ace")
    loaded = ace.Solution.load(tmp_path / "solution.ace")
    assert loaded.concept == concept and (loaded.values == solution.values).all()
    written = loaded.report(tmp_path / "page.html", episodes=20)
    page = written.path.read_text()
    assert written.ok and "One-sided correlated equilibrium, chosen for the largest sum of values" in page
    assert concept.words.meaning in page


def test_the_command_line_knows_its_word(game, known, tmp_path):
    from acegames.cli import app, options

    assert options.concepts("one") == ["onesided"]
    game.save(tmp_path / "game.json")
    said = CliRunner().invoke(app, ["solve", str(tmp_path / "game.json"), "--concept", "OneSided"])
    assert said.exit_code == 0, said.output
    assert "One-sided correlated equilibrium, objective welfare" in said.output


def test_the_checker_refuses_what_it_does_not_know(game, known, tmp_path):
    ace.prove(ace.solve(game, OneSided()), tmp_path / "proof")
    said = proof_checker.check(tmp_path / "proof")
    assert said.returncode == 2 and "NOT READ: 'OneSided' is a kind of equilibrium" in said.stdout


def test_objectives_and_kernels_share_their_numbers():
    numbers = {"welfare": records.LINEAR, "egalitarian": records.EGALITARIAN, "fair": records.FAIR, None: records.ANY}
    assert {word: x.kernel for word, x in OBJECTIVES.items()} == numbers
    assert {word for word, x in OBJECTIVES.items() if x.compares} == {"egalitarian", "fair"}


@dataclass(frozen=True)
class OneSidedNash(ace.Nash):
    """Independent play in which one player alone may deviate."""

    player: Hashable = "nobody"
    words = Words("one-sided Nash", "Only one player may deviate.")
    deviators = OneSided.deviators


def test_a_product_concept_with_other_deviators_is_refused():
    """The search for independent play knows no others: it would solve another concept."""
    crossing = ace.catalog.get("intersection")
    with pytest.raises(ace.InvalidOption, match="all must be able to deviate"):
        ace.solve(crossing, OneSidedNash(player="north"))
