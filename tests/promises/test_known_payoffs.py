"""Payoff sets that are known: published games, the cases of spec 12, and the catalog."""

import itertools

import numpy as np
import pytest

import acegames as ace
from games import one_stage, one_state

BOTH = pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()], ids=["CE", "CCE"])


def repeated(pay, times):
    """A game of {joint action: payoffs} that is played so many times, without discounting."""
    own = [sorted({a[i] for a in pay}) for i in (0, 1)]
    return one_state(["p", "q"], own, lambda t, a: (), lambda t, a: pay[a], horizon=times)


def table(text, *payoffs):
    """{joint action: payoffs} by rows, of two players with these actions."""
    return dict(zip(itertools.product(text, repeat=2), payoffs, strict=True))


CHICKEN = table("dc", (0, 0), (7, 2), (2, 7), (6, 6))
DILEMMA = table("cd", (2, 2), (0, 3), (3, 0), (1, 1))
BATTLE = table("ab", (2, 1), (0, 0), (0, 0), (1, 2))
GIBBONS = table("lmr", (1, 1), (5, 0), (0, 0), (0, 5), (4, 4), (0, 0), (0, 0), (0, 0), (3, 3))


def corners(game, concept):
    return {tuple(v) for v in ace.payoffs(game, concept, tol=0).vertices.round(7).tolist()}


def test_aumanns_chicken():
    """The pure equilibria, 1/2 (6, 6) + 1/4 (7, 2) + 1/4 (2, 7), and 2/5 (7, 2) + 2/5 (2, 7), by hand."""
    assert corners(one_stage(CHICKEN), ace.CE()) == {(7, 2), (2, 7), (5.25, 5.25), (3.6, 3.6)}


def test_battle_of_the_sexes():
    """Between the pure equilibria and the mixed one."""
    assert corners(one_stage(BATTLE), ace.CE()) == {(2, 1), (1, 2), (round(2 / 3, 7),) * 2}


@BOTH
def test_a_finitely_repeated_dilemma_has_one_outcome(concept):
    for times in (1, 2, 4):
        found = ace.payoffs(repeated(DILEMMA, times), concept, tol=0)
        assert found.vertices == pytest.approx(np.full((1, 2), times), abs=1e-9)
        assert found.gap() <= 1e-7


@BOTH
def test_zero_sum_games_have_a_value(concept):
    assert corners(repeated(table("ht", (1, -1), (-1, 1), (-1, 1), (1, -1)), 3), concept) == {(0, 0)}


def test_two_equilibria_of_a_stage_pay_for_a_better_one_before():
    """Gibbons, 2.3.A: (4, 4) once and then (3, 3); coarse deviators allow more."""
    for concept, each in ((ace.CE(), 7), (ace.CCE(), 31 / 4)):
        found = ace.payoffs(repeated(GIBBONS, 2), concept, tol=0)
        assert found.best("egalitarian") == pytest.approx([each] * 2, abs=1e-9)
        assert found.best("welfare").sum() == pytest.approx(2 * each, abs=1e-9)
    assert corners(one_stage(GIBBONS), ace.CE()) == {(3, 3), (0.75, 0.75)}


def test_the_average_of_what_pays_nears_everything_that_is_individually_rational():
    """Benoit and Krishna (1985): each step with two equilibria behind it can be a better one, but not the last few."""
    last = [0.0, 0.0]
    for times in (1, 2, 3, 4):
        best = ace.payoffs(repeated(GIBBONS, times), ace.CE(), tol=0).best("egalitarian")
        assert best == pytest.approx([4 * times - 1] * 2, abs=1e-8)
        assert (best / times >= last).all()
        last = best / times


def test_a_segment_is_bounded_by_a_segment():
    """Two joint actions, and nobody can go from one to the other."""
    found = ace.payoffs(one_stage({("a", "b"): (-3.0, 4.0), ("b", "a"): (-1.0, 5.0)}))
    assert found.support((1, -2)) == pytest.approx(-11) == (found.bound @ (1, -2)).max()
    assert found.support((-1, 2)) == pytest.approx(11) == (found.bound @ (-1, 2)).max()


def last_unit():
    """First a dilemma: who works gives the other 20 for 4. Then one unit is left of a shared budget, worth 10 to its user."""
    work, use = ("work", "rest"), ("use", "leave")
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        horizon=2,
        initial="s",
        budget={"unit": 1},
        actions=lambda t, s: [use if t else work] * 2,
        outcomes=lambda t, s, a: [(1, s, a.count("use"))],
        reward=lambda t, s, a: [
            20 * (a[1 - i] == "work") - 4 * (a[i] == "work") + 10 * (a[i] == "use") for i in (0, 1)
        ],
    )


@BOTH
def test_last_unit(concept):
    found, by_stage = ace.payoffs(last_unit(), concept, tol=0), ace.solve(last_unit(), type(concept)("egalitarian"))
    assert (found.best("welfare").sum(), found.best("egalitarian").min()) == pytest.approx((42, 21), abs=1e-9)
    assert ace.solve(last_unit(), concept).values.sum() == pytest.approx(10) and by_stage.values.min() == pytest.approx(
        5
    )
    assert found.policy("bargaining").values_at_start == pytest.approx([21, 21], abs=1e-9)


def test_the_chicken_of_the_readme():
    """Three steps with a shared risk of 2."""
    pay = {("dare", "dare"): (0, 0), ("dare", "yield"): (7, 2), ("yield", "dare"): (2, 7), ("yield", "yield"): (6, 6)}
    game = ace.MarkovGame.from_functions(
        players=["red", "blue"],
        horizon=3,
        initial="road",
        budget={"risk": 2},
        actions=lambda t, state: [("dare", "yield")] * 2,
        outcomes=lambda t, state, action: [(0.5, state, action.count("dare")), (0.5, state, 0)],
        reward=lambda t, state, action: pay[action],
    )
    found = ace.payoffs(game, tol=0)
    assert found.best() == pytest.approx([69 / 4] * 2, abs=1e-9)
    certificate = ace.verify(game, found.policy(), best="welfare")
    assert certificate.ok and certificate.optimality.bound == pytest.approx(34.5, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "concept", "welfare"),
    [
        ("intersection", ace.CE(), 70.5),
        ("intersection", ace.CCE(), 70.5),
        ("net_zero", ace.CE(), 19.434),
        pytest.param("electric_fleet", ace.CE(), 16.092, marks=pytest.mark.slow),
        pytest.param("electric_fleet", ace.CCE(), 16.168, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_games_of_the_catalog(name, concept, welfare):
    game = ace.catalog.get(name)
    found = ace.payoffs(game, concept)
    assert found.best().sum() == pytest.approx(welfare, rel=2e-4)
    certificate = ace.verify(game, found.policy(), concept, best="welfare")
    assert certificate.ok and certificate.values == pytest.approx(found.best(), rel=1e-9)
    assert certificate.optimality.gap < 0.01 * welfare
