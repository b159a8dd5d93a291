"""Certificates in exact arithmetic: what floats find is theirs up to rounding, and nothing is left to rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import acegames as ace
import oracle
from acegames import CCE, CE, Nash
from command_line import answer
from games import Changed, one_state
from random_games import pairs


@pytest.mark.parametrize("concept", [CE(), CCE(), Nash()], ids=repr)
def test_floats_find_the_same_up_to_rounding(concept):
    """Of solved policies and of damaged ones, with reservoirs and schedules."""
    seen = set()
    for seed in range(14):
        rng = np.random.default_rng(seed)
        game = oracle.random_game(rng, players=2, reservoirs=seed % 2 == 0)
        try:
            policy = ace.solve(game, concept).policy
        except ace.AceError:
            continue
        t, state, spent = list(pairs(game, policy))[int(rng.integers(len(list(pairs(game, policy)))))]
        legal = list(game.legal(t, state))
        other = {legal[int(rng.integers(len(legal)))]: 1.0}
        for judged in (policy, Changed(policy, (t, state, tuple(map(oracle.exact, spent))), other)):
            floats, exact = (ace.verify(game, judged, concept, exact=how) for how in (False, True))
            assert floats.ok == exact.ok and floats.pairs == exact.pairs and not floats.exact
            seen.add((exact.ok, exact.exact))
            if not exact.exact:  # the policy is at fault
                assert exact.problems == floats.problems
                continue
            room = floats.rounding + 1e-300
            assert (np.abs(floats.regret - exact.regret) <= room).all()
            assert (np.abs(floats.values - exact.values) <= room + 1e-15 * np.abs(exact.values)).all()
    assert {(True, True), (False, True)} <= seen


def test_nothing_is_tolerated_where_that_is_asked_for():
    """Pure play of whole numbers gains exactly nothing; mixed play a billionth of a billionth."""
    pure = one_state(["a", "b"], [("x", "y")] * 2, lambda t, a: 0, lambda t, a: (int(a[0] == "x"), int(a[1] == "y")))
    assert ace.verify(pure, ace.solve(pure, CE()).policy, exact=True, tol=0).ok
    game = ace.catalog.get("intersection")
    policy = ace.solve(game, CE()).policy
    certificate = ace.verify(game, policy, exact=True, tol=0)
    assert not certificate.ok and 0 < certificate.regret.max() < 1e-14
    assert "NOT CERTIFIED in exact arithmetic" in str(certificate)


def test_a_gain_that_floats_cannot_tell_from_rounding():
    """Rewards of 1e17 that depend on the state swallow a gain of one."""

    def reward(t, s, a):
        return [(1e17 if s == "rich" else -1e17) if t == 0 else float(a[0] == "one")]

    def outcomes(t, s, a):
        return [(0.5, "rich", 0), (0.5, "poor", 0)]

    game = ace.MarkovGame.from_functions(
        players=["p"],
        horizon=2,
        initial={"rich": 0.5, "poor": 0.5},
        budget=[0],
        actions=lambda t, s: [("nothing", "one")],
        outcomes=outcomes,
        reward=reward,
    )

    class Idle:
        def distribution(self, t, state, spent):
            return {("nothing",): 1.0}

    exact = ace.verify(game, Idle(), CE(), exact=True)
    assert not exact.ok and exact.regret.tolist() == [1.0]
    assert Fraction(float(exact.values[0])) == 0


def test_what_sums_of_large_wages_lose_is_no_other_answer():
    """Wages are taken out and added in the end, in floats; exactly they are part of the value."""
    pays = {"low": 0.1, "high": 0.3}
    game = one_state(
        ["p"], [("low", "high")], lambda t, a: 0, lambda t, a: [1e9 / (t + 3) - 1e8 * t + pays[a[0]]], horizon=60
    )
    solution = ace.solve(game, CE())
    exact, floats = solution.verify(exact=True), solution.verify()
    assert exact.ok and exact.exact and exact.values == pytest.approx(floats.values, rel=1e-12)
    assert exact.values[0] != floats.values[0]


def test_values_that_overflow():
    game = one_state(["p"], [("go",)], lambda t, a: 0, lambda t, a: [1.5e308], horizon=2)
    certificate = ace.verify(game, Always(), CE(), exact=True)
    assert not certificate.ok and "The values of the policy overflow" in str(certificate)


class Always:
    """Goes."""

    def distribution(self, t, state, spent):
        return {("go",): 1.0}


@pytest.mark.parametrize("then", ["another", "none"])
def test_a_policy_that_changes_its_mind_is_at_fault(then):
    """It is asked twice; the verdict is about one policy."""
    pays = {"low": 0.0, "high": 1.0}
    game = one_state(["p"], [("low", "high")], lambda t, a: 0, lambda t, a: [pays[a[0]]])

    class Fickle:
        asked = 0

        def distribution(self, t, state, spent):
            self.asked += 1
            if self.asked > 1 and then == "none":
                raise RuntimeError("hush")
            return {("low" if self.asked == 1 else "high",): 1.0}

    certificate = ace.verify(game, Fickle(), CE(), exact=True)
    assert not certificate.ok and not certificate.exact
    assert "gives different answers when it is asked again" in str(certificate)


def test_what_is_refused(monkeypatch):
    game = ace.catalog.get("intersection")
    policy = ace.solve(game).policy
    monkeypatch.setattr("acegames.proofs.exactly.MOST_PAIRS", 52)
    with pytest.raises(ace.TooLarge, match="there are 53 situations, at most 52 are judged in rational numbers"):
        ace.verify(game, policy, exact=True)
    with pytest.raises(ace.InvalidOption, match="exact: got 'yes', must be True or False"):
        ace.verify(game, policy, exact="yes")
    with pytest.raises(ace.InvalidOption, match="exact: Mine is no concept that the checker knows"):
        ace.verify(game, policy, type("Mine", (CE,), {})(), exact=True)
    drawn = one_state(["p"], [("go",)], lambda t, a: ace.random_cost(stats.uniform()), lambda t, a: [1], budget=2)
    with pytest.raises(ace.InvalidOption, match="exact: costs of 0 are drawn from a distribution"):
        ace.verify(drawn, ace.solve(drawn, epsilon=0.5).policy, exact=True)


def test_the_program_says_so(tmp_path):
    ace.solve(ace.catalog.get("intersection"), CE()).save(tmp_path / "a.ace")
    reply = answer("verify", tmp_path / "a.ace", "--exact")
    assert reply["ok"] and reply["certificate"]["exact"] and reply["certificate"]["rounding"]
    assert not answer("verify", tmp_path / "a.ace")["certificate"]["exact"]
