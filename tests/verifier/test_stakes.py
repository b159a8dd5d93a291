"""What a deviator may do, and how large a gain is accepted: verifier, checker and brute force say the same (spec 7)."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import CCE, CE, Nash
from acegames.model.layers import with_fields
from acegames.model.numbers import exact
from acegames.numerics import UNIT_ROUNDOFF, VERIFY
from acegames.verifier import verify
from games import ByFunction, Table, solo
from proof_checker import check, claimed
from ways import INDEX, LIMITS, WINDOWS

PACKAGE = sys.modules["acegames.verifier"]  # the name itself is the function
CHICKEN = {("y", "y"): (6, 6), ("y", "d"): (2, 7), ("d", "y"): (7, 2), ("d", "d"): (0, 0)}


@pytest.fixture(params=[WINDOWS, INDEX], ids=["windows", "index"])
def way(request, monkeypatch):
    """Both ways to look pairs up."""
    for name, value in request.param.items():
        monkeypatch.setattr(f"{LIMITS}.{name}", value)


def game_of(pay, start, players=("p", "q"), leads=lambda t, s, a: "s"):
    """A game without budgets from pay[t][state][joint action] = rewards; it is over when nothing is left."""
    return ace.MarkovGame.from_functions(
        players=players,
        actions=lambda t, s: [sorted({a[i] for a in pay[t][s]}) for i in range(len(players))],
        legal=lambda t, s, a: a in pay[t][s],
        outcomes=lambda t, s, a: [(1.0, leads(t, s, a), ())],
        reward=lambda t, s, a: pay[t][s][a],
        horizon=len(pay),
        initial=start,
    )


def judged(game, table, concept, path, ok):
    """The certificate of a policy, and what the checker prints with floats and exactly: all three accept it, or none."""
    policy = Table(table) if isinstance(table, dict) else table
    certificate = verify(game, policy, concept)
    claimed(game, policy, concept, path)
    checked = [check(path, *options) for options in ([], ["--exact"])]
    assert (certificate.ok, [done.returncode for done in checked]) == (ok, [1 - ok] * 2), checked[0].stdout
    return certificate, [done.stdout for done in checked]


# -- coarse deviators -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("way")
def test_a_coarse_deviator_may_follow_where_it_has_no_feasible_action_of_its_own(tmp_path):
    """Afterwards only (0, 0) and (1, 1) are legal, half and half: no constant action is feasible, and 1000 is thrown away before."""
    pay = [{"s": {("keep", "-"): (1000, 0), ("throw", "-"): (0, 0)}}, {"s": {(0, 0): (1, 1), (1, 1): (1, 1)}}]
    halves = {(0, 0): 0.5, (1, 1): 0.5}
    game = game_of(pay, "s")
    table = {(0, "s"): ("throw", "-"), (1, "s"): halves}
    certificate, printed = judged(game, table, CCE(), tmp_path / "a.proof", ok=False)
    assert certificate.regret.tolist() == [1000, 0] and certificate.where == ((0, "s", ()), None)
    assert certificate.share == pytest.approx([1, 0])
    assert all("may gain 1000" in text for text in printed)
    judged(game, {(0, "s"): ("keep", "-"), (1, "s"): halves}, CCE(), tmp_path / "b.proof", ok=True)


@pytest.mark.usefixtures("way")
def test_a_coarse_deviator_may_follow_where_following_is_better(tmp_path):
    """Chicken, uniform on three cells, is worth 5, the best constant action 14/3: who takes a free 0.3 before will follow then."""
    pay = [{"s": {("take", "-"): (0.3, 0), ("leave", "-"): (0, 0)}}, {"s": CHICKEN}]
    thirds = {("y", "y"): 1 / 3, ("y", "d"): 1 / 3, ("d", "y"): 1 / 3}
    table = {(0, "s"): ("leave", "-"), (1, "s"): thirds}
    certificate, printed = judged(game_of(pay, "s"), table, CCE(), tmp_path / "a.proof", ok=False)
    assert certificate.regret == pytest.approx([0.3, 0], abs=1e-12)
    assert certificate.share == pytest.approx([0.3 / 5.3, 0], abs=1e-12)  # 7.3 at best, 2 at worst
    assert all("at t=0, state 's'" in text for text in printed)


@pytest.mark.usefixtures("way")
def test_who_follows_now_may_deviate_later():
    """Following is worth W of what comes next and not V: a gain at t=1 is one at t=0 too."""
    pay = [{"s": {(0, 0): (1, 1), (1, 1): (1, 1)}}, {"s": {("x", "-"): (0, 0), ("y", "-"): (5, 0)}}]
    certificate = verify(game_of(pay, "s"), Table({(0, "s"): {(0, 0): 0.5, (1, 1): 0.5}, (1, "s"): ("x", "-")}), CCE())
    assert certificate.where[0] == (0, "s", ()) and certificate.regret.tolist() == [5, 0]


# -- random policies: verifier, checker and brute force -----------------------------------------------------------------


def product_inside(rng, feasible, players):
    """Some sets of own actions whose every combination is feasible."""
    own = [{x} for x in feasible[int(rng.integers(len(feasible)))]]
    for i in rng.permutation(players).tolist():
        for b in rng.permutation(sorted({a[i] for a in feasible})).tolist():
            wider = [*own[:i], own[i] | {b}, *own[i + 1 :]]
            if set(itertools.product(*wider)) <= set(feasible):
                own = wider
    return [sorted(x) for x in own]


def random_table(rng, fa, players, concept):
    """Any distribution over feasible joint actions, everywhere; for Nash a product."""
    table = {}
    for key in sorted(fa):
        feasible = sorted(fa[key])
        if isinstance(concept, Nash):
            own = product_inside(rng, feasible, players)
            shares = [dict(zip(x, rng.dirichlet(np.ones(len(x))).tolist(), strict=True)) for x in own]
            table[key] = {a: math.prod(p[x] for p, x in zip(shares, a, strict=True)) for a in itertools.product(*own)}
        else:
            chosen = [feasible[k] for k in rng.permutation(len(feasible))[: int(rng.integers(1, 5))]]
            table[key] = dict(zip(chosen, rng.dirichlet(np.ones(len(chosen))).tolist(), strict=True))
    return table


def labelled(game, table):
    """The policy that a table by indices stands for."""
    return Table(
        {(t, game.states[s], c): {game.joint_action(a): p for a, p in x.items()} for (t, s, c), x in table.items()}
    )


def random_cases(number, seed, concept):
    """Feasible random games: most depend on time, some have two initial states, half have legal sets that are no product."""
    feasible_games = 0
    for k in itertools.count():
        rng = np.random.default_rng([seed, k])
        game = oracle.random_game(rng, stationary=k % 3 == 0, rewards=["integers", "dyadic"][k % 2])
        feasible, _, fa = oracle.feasible_sets(game)
        if feasible and len(fa) < 60:
            yield rng, game, fa
            feasible_games += 1
        if feasible_games == number:
            return


@pytest.mark.parametrize("games", [20, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("concept", [CE(), CCE(), Nash()], ids=repr)
@pytest.mark.usefixtures("way")
def test_random_policies_are_judged_alike(concept, games, tmp_path):
    """Not only solved ones: the same gains, the same shares in the same places, and the same verdict."""
    seen = {"ok": 0, "refused": 0, "times": 0, "starts": 0, "no product": 0}
    for rng, game, fa in random_cases(games, 11, concept):
        table = random_table(rng, fa, len(game.players), concept)
        truth = oracle.gains_and_stakes(game, table, type(concept).__name__)
        accepted = all(gain <= stake / 10**8 + oracle.Fraction(1, 10**12) for x in truth for gain, stake in x.values())
        certificate, _ = judged(game, labelled(game, table), concept, tmp_path / "a.proof", ok=accepted)
        for i, each in enumerate(truth):
            gain = max(float(g) for g, _ in each.values())
            share = max(float(g / stake) if g else 0.0 for g, stake in each.values())
            assert certificate.regret[i] == pytest.approx(gain, abs=1e-12)
            assert certificate.share[i] == pytest.approx(share, abs=1e-11)
            for place, at in ((certificate.where[i], gain), (certificate.share_where[i], None)):
                if place is not None:
                    t, state, spent = place
                    here = each[t, game.state_index(state), tuple(map(exact, spent))]
                    assert float(here[0]) == pytest.approx(at, abs=1e-12) or at is None
                    assert at is not None or float(here[0] / here[1]) == pytest.approx(share, abs=1e-11)
        seen["ok" if accepted else "refused"] += 1
        seen["times"] += len(game.layers) > 1
        seen["starts"] += len(game.initial) > 1
        seen["no product"] += any(
            len(x) < math.prod(len({a[i] for a in x}) for i in range(len(game.players))) for x in fa.values()
        )
    assert min(seen.values()) >= 3, seen


def damaged(rng, played, safe, legal):
    """Other play in one situation: some probability moved, or all; one joint action left out; some that is not safe, however little."""
    kind = rng.choice(
        ["moved", "dropped" if len(played) > 1 else "moved", "unsafe" if set(legal) - set(safe) else "moved"]
    )
    if kind == "dropped":
        rest = {a: p for a, p in played.items() if a != min(played, key=played.get)}
        return {a: p / sum(rest.values()) for a, p in rest.items()}
    pool = sorted(set(legal) - set(safe)) if kind == "unsafe" else safe
    target = pool[int(rng.integers(len(pool)))]
    share = float(rng.choice([10.0 ** rng.uniform(-10, -5), rng.uniform(0.05, 0.9), 1.0]))
    left = {a: p * (1 - share) for a, p in played.items() if share < 1}
    return left | {target: left.get(target, 0.0) + share}


@pytest.mark.parametrize("games", [24, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("concept", [CE(), CCE(), CE("egalitarian"), CCE("fair")], ids=repr)
def test_damaged_solutions_are_judged_alike(concept, games, tmp_path):
    """Solved, then damaged in one situation: unsafe, just accepted or just not, by all three alike."""
    seen = {"unsafe": 0, "just refused": 0, "refused": 0, "accepted": 0}
    for rng, game, fa in random_cases(games, 12, concept):
        solved = oracle.table_of(game, ace.solve(game, concept).policy)
        for k in range(8):
            t, s, _ = key = sorted(fa)[int(rng.integers(len(fa)))]
            legal = [tuple(game.layer(t).action[r].tolist()) for r in game.layer(t).rows(s)]
            table = solved | {key: damaged(rng, solved[key], sorted(fa[key]), legal)}
            truth = oracle.gains_and_stakes(game, table, type(concept).__name__)
            if truth is None:
                assert not verify(game, labelled(game, table), concept).ok
                seen["unsafe"] += 1
                continue
            every = [pair for each in truth for pair in each.values() if pair[0] > oracle.Fraction(1, 10**14)]
            share = max((float(gain / stake) if stake else math.inf for gain, stake in every), default=0.0)
            if abs(share / VERIFY - 1) < 0.01:
                continue
            certificate = verify(game, labelled(game, table), concept)
            assert certificate.ok == (share <= VERIFY)
            for i, each in enumerate(truth):
                assert certificate.regret[i] == pytest.approx(max(0.0, *(float(g) for g, _ in each.values())), abs=1e-9)
            if k == 0:
                judged(game, labelled(game, table), concept, tmp_path / "a.proof", ok=certificate.ok)
            seen["accepted" if share <= VERIFY else "just refused" if share < 1e-4 else "refused"] += 1
    assert min(seen.values()) >= 5, seen


# -- penalties --------------------------------------------------------------------------------------------------------


BEST = {("no",): (0,), ("yes",): (9,)}


def on_or_never(penalty):
    return {("on",): (0,), ("never",): (-penalty,)}


NINE = {  # {kind: what follows from a penalty: a game in which nine may be had in the end, and play that forgoes it}
    "an earlier time": lambda penalty: (
        game_of([{"s": on_or_never(penalty)}, {"s": BEST}], "s", ("p",)),
        {(0, "s"): ("on",), (1, "s"): ("no",)},
    ),
    "another start": lambda penalty: (
        game_of([{"s": BEST, "r": on_or_never(penalty)}], {"s": 0.5, "r": 0.5}, ("p",), lambda t, s, a: s),
        {(0, "s"): ("no",), (0, "r"): ("on",)},
    ),
    "another start that cannot avoid it": lambda penalty: (
        game_of([{"s": BEST, "r": {("never",): (-penalty,)}}], {"s": 0.5, "r": 0.5}, ("p",), lambda t, s, a: s),
        {(0, "s"): ("no",), (0, "r"): ("never",)},
    ),
    "an action that is never played": lambda penalty: (
        game_of([{"s": BEST | {("never",): (-penalty,)}}], "s", ("p",)),
        {(0, "s"): ("no",)},
    ),
    "a joint action that is never played": lambda penalty: (
        game_of(
            [{"s": {("no", 0): (0, 0), ("yes", 0): (9, 0), ("no", 1): (0, -1), ("yes", 1): (-penalty, -penalty)}}], "s"
        ),
        {(0, "s"): ("no", 0)},
    ),
    "a time before that cannot avoid it": lambda penalty: (
        game_of([{"s": {("never",): (-penalty,)}}, {"s": BEST}], "s", ("p",)),
        {(0, "s"): ("never",), (1, "s"): ("no",)},
    ),
}


@pytest.mark.parametrize("penalty", [0, 1e9, 1e15])
@pytest.mark.parametrize("kind", NINE)
@pytest.mark.parametrize("concept", [CE(), CCE(), Nash()], ids=repr)
@pytest.mark.usefixtures("way")
def test_a_penalty_that_is_past_elsewhere_or_never_played_hides_no_gain(concept, kind, penalty, tmp_path):
    game, table = NINE[kind](penalty)
    certificate, printed = judged(game, table, concept, tmp_path / "a.proof", ok=False)
    assert certificate.regret[0] == 9 and certificate.share[0] == pytest.approx(1)
    assert "what is at stake there is 9, and a gain of up to" in certificate.problems[0]
    assert (
        certificate.tol[0] == pytest.approx(9e-8) or kind == "a time before that cannot avoid it"
    )  # its last digit counts
    assert all("may gain 9" in text for text in printed)
    better = {key: ("yes", *a[1:]) if a[0] == "no" else a for key, a in table.items()}
    judged(game, better, concept, tmp_path / "b.proof", ok=True)


@pytest.mark.parametrize("penalty", [1e3, 1e9, 1e15])
@pytest.mark.usefixtures("way")
def test_what_is_far_below_the_best_does_not_widen_rounding(penalty, tmp_path):
    """A thousandth of a stake of 1 is lost beside a safe action worth -P, which a deviator never takes."""
    pay = [{"s": {("a",): (1.0,), ("b",): (0.0,), ("never",): (-penalty,)}}] * 3
    mixed = {("a",): 0.999, ("b",): 0.001}
    table = {(t, "s"): mixed for t in range(3)}
    certificate, _ = judged(game_of(pay, "s", ("p",)), table, CCE(), tmp_path / "a.proof", ok=False)
    assert certificate.rounding[0] < 1e-12 and certificate.share == pytest.approx([0.001], rel=1e-9)


def rounding_by_hand(pay, played, i, *, told):
    """What a player's V and W of one stage can be off by, together: the bound of spec 7, term by term."""

    def of(terms):
        return UNIT_ROUNDOFF * max(16, 2 * terms + 6)

    off = {a: (2 * UNIT_ROUNDOFF + of(0)) * abs(x[i]) for a, x in pay.items()}
    total = sum(p * off[a] for a, p in played.items()) + of(len(played)) * sum(
        p * abs(pay[a][i]) for a, p in played.items()
    )
    groups = [
        [a for a in played if not told or a[i] == own] for own in (sorted({a[i] for a in played}) if told else [None])
    ]
    size = 0.0
    for group in groups:
        choices = [{a: (*a[:i], b, *a[i + 1 :]) for a in group} for b in sorted({a[i] for a in pay})]
        choices += [] if told else [{a: a for a in group}]
        worth, spare = [], []
        for switch in choices:
            worth.append(sum(played[a] * pay[b][i] for a, b in switch.items()))
            spare.append(sum(played[a] * (off[b] + of(len(group)) * abs(pay[b][i])) for a, b in switch.items()))
        total += max(0.0, *(w - max(worth) + x for w, x in zip(worth, spare, strict=True)))
        size += abs(max(worth))
    return total + of(len(groups)) * size * (len(groups) > 1)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("cells", [1, 2, 5, 9])
@pytest.mark.usefixtures("way")
def test_the_rounding_is_no_more_and_no_less_than_the_bound_says(cells, told):
    rng = np.random.default_rng(cells)
    pay = {a: tuple(rng.normal(size=2)) for a in itertools.product("abc", "xyz")}
    pay["a", "x"] = pay["c", "z"] = (-1e7, -1e9)  # far below the best
    for _ in range(20):
        chosen = rng.permutation(9)[:cells]
        played = dict(zip([sorted(pay)[k] for k in chosen], rng.dirichlet(np.ones(cells)).tolist(), strict=True))
        found = verify(game_of([{"s": pay}], "s"), Table({(0, "s"): played}), CE() if told else CCE())
        wanted = [rounding_by_hand(pay, played, i, told=told) for i in range(2)]
        assert found.rounding == pytest.approx(wanted, rel=1e-12, abs=0)


@pytest.mark.parametrize("chance", [1e-300, 1e-30, 9e-9])
@pytest.mark.usefixtures("way")
def test_a_penalty_that_hardly_ever_comes_buys_no_tolerance(chance, tmp_path):
    """The worst action is played, 30 of 30 are given up, and a chance of nothing on -1e9 would have been worth a tolerance of 10."""
    pay = [{"s": {("best",): (10.0,), ("worst",): (0.0,), ("never",): (-1e9,)}}] * 3
    table = {(t, "s"): {("worst",): 1.0 - chance, ("never",): chance} for t in range(3)}
    certificate, _ = judged(game_of(pay, "s", ("p",)), table, CCE(), tmp_path / "a.proof", ok=False)
    assert certificate.regret[0] >= 30


@pytest.mark.parametrize("concept", [CE(), CCE()], ids=repr)
@pytest.mark.usefixtures("way")
def test_no_wrong_policy_is_certified_by_adding_probabilities_of_penalties(concept, tmp_path):
    """Any damage stays seen when a chance below 1e-8 of a penalty of 1e3 to 1e15 is added, everywhere or in one situation."""
    forged = 0
    for rng, game, fa in random_cases(40, 13, concept):
        never = {}  # (t, s): a joint action that is feasible there now and then, and becomes a penalty to all
        for t, s, c in sorted(fa):
            never.setdefault((game.layer_at[t], s), sorted(fa[t, s, c])[-1])
        layers = []
        for k, layer in enumerate(game.layers):
            reward = np.array(layer.reward)
            for s in (s for index, s in never if index == k):
                reward[layer.row_of(s, never[k, s])] = -(10.0 ** rng.uniform(3, 15))
            layers.append(replace(layer, reward=reward))
        penalised = with_fields(game, layers=tuple(layers))
        table = {
            key: {a: p for a, p in x.items() if a != never[game.layer_at[key[0]], key[1]]}
            for key, x in random_table(rng, fa, len(game.players), concept).items()
        }
        table = {
            key: {a: p / sum(x.values()) for a, p in x.items()} if x else {sorted(fa[key])[0]: 1.0}
            for key, x in table.items()
        }
        if verify(penalised, labelled(penalised, table), concept).ok:
            continue
        before = oracle.gains_and_stakes(penalised, table, type(concept).__name__)
        chance = float(rng.choice([1e-300, 1e-100, 1e-20, 1e-10, 9.9e-9]))
        for key in sorted(table) if rng.random() < 0.5 else [sorted(table)[int(rng.integers(len(table)))]]:
            rare = never[game.layer_at[key[0]], key[1]]
            if rare in fa[key] and rare not in table[key]:
                table[key] = {a: p * (1 - chance) for a, p in table[key].items()} | {rare: chance}
        truth = oracle.gains_and_stakes(penalised, table, type(concept).__name__)
        if not any(gain > before[i][x][1] / 10**6 for i, each in enumerate(truth) for x, (gain, _) in each.items()):
            continue  # what is played now and then leaves no feasible deviation that gains
        assert not verify(penalised, labelled(penalised, table), concept).ok
        forged += 1
        if forged % 7 == 0:
            judged(penalised, labelled(penalised, table), concept, tmp_path / "a.proof", ok=False)
    assert forged >= 15, forged


def by_chance(unit):
    """What the second player draws decides whether action "a" brings the first a unit or nothing; "b" brings nothing."""
    return {("a", "h"): (unit, 0.0), ("a", "t"): (0.0, 0.0), ("b", "h"): (0.0, 0.0), ("b", "t"): (0.0, 0.0)}


def throwing(share):
    """The first player throws away a share of what is at stake: half of what it does not play "a" with."""
    return {("a", "h"): 0.5 - share, ("a", "t"): 0.5 - share, ("b", "h"): share, ("b", "t"): share}


@pytest.mark.parametrize(("chance", "ok"), [(1e-9, False), (1e-8, True), (1e-7, False)])
def test_what_is_hardly_ever_played_is_no_stake(chance, ok, tmp_path):
    """Whoever throws a unit away with a chance of 1e-8 has a stake of a unit; with less, none."""
    game = game_of([{"s": {("a",): (1.0,), ("b",): (0.0,)}}], "s", ("p",))
    judged(game, {(0, "s"): {("a",): 1 - chance, ("b",): chance}}, CE(), tmp_path / "a.proof", ok=ok)


@pytest.mark.usefixtures("way")
def test_the_problem_names_the_place_where_the_share_is_too_large():
    """A gain of a thousandth is nothing where a million is at stake, and a smaller one is too much where only one is."""
    game = game_of(
        [{"rich": by_chance(1e6), "poor": by_chance(1.0)}], {"rich": 0.5, "poor": 0.5}, leads=lambda t, s, a: s
    )
    policy = Table({(0, "rich"): throwing(1e-9), (0, "poor"): throwing(1e-6)})
    certificate = verify(game, policy, CE())
    assert certificate.where[0] == (0, "rich", ()) and certificate.share_where[0] == (0, "poor", ())
    assert certificate.regret == pytest.approx([1e-3, 0], rel=1e-6) and certificate.tol[0] == pytest.approx(1e-2)
    assert certificate.share == pytest.approx([1e-6, 0], rel=1e-6)
    assert len(certificate.problems) == 1
    assert (
        "gains 1e-06 by a safe deviation at t=0, state 'poor', spent (); what is at stake there is 1,"
        in certificate.problems[0]
    )
    assert "a gain is at most 1e-06 (accepted: 1e-08), at t=0, state 'poor', spent ()" in str(certificate)
    assert verify(game, policy, CE(), tol=1.1e-3).ok and not verify(game, policy, CE(), tol=0.9e-3).ok


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize(("thrown_away", "ok"), [(1e-9, True), (1e-7, False)])
def test_shares_are_judged_and_not_amounts(unit, thrown_away, ok, tmp_path):
    """What is little in one unit is much in another."""
    game, table = game_of([{"s": by_chance(unit)}], "s"), {(0, "s"): throwing(thrown_away)}
    judged(game, table, CE(), tmp_path / "a.proof", ok=ok)


def test_a_tie_that_only_the_last_digit_breaks_is_a_tie(tmp_path):
    """0.1 and then 0.2, or 0.3 and then nothing: as floats the first is more, by all that is at stake."""
    pay = [{"s": {("first",): (0.1,), ("second",): (0.3,)}}, {"one": {("go",): (0.2,)}, "two": {("go",): (0.0,)}}]
    game = game_of(pay, "s", ("p",), lambda t, s, a: "one" if a == ("first",) else "two")
    for choice in ("first", "second"):
        table = {(0, "s"): (choice,), (1, "one"): ("go",), (1, "two"): ("go",)}
        judged(game, table, CE(), tmp_path / "a.proof", ok=True)


# -- shift and scale --------------------------------------------------------------------------------------------------


def changed(game, change):
    """The same game with other rewards; every time has its own."""
    layers = tuple(replace(game.layer(t), reward=change(t, game.layer(t).reward)) for t in range(game.horizon))
    return with_fields(game, layers=layers, layer_at=tuple(range(game.horizon)))


@pytest.mark.usefixtures("way")
def test_verdicts_do_not_change_with_the_unit_or_the_zero_of_rewards():
    """Scaled by powers of two to the last bit; shifted, time by time, up to rounding."""
    for concept in (CE(), CCE(), Nash()):
        for rng, game, fa in random_cases(12, 13, concept):
            policy = labelled(game, random_table(rng, fa, len(game.players), concept))
            one = verify(game, policy, concept)
            for power in (-300, -3, 40, 300):
                two = verify(changed(game, lambda t, x, k=power: x * 2.0**k), policy, concept)
                assert two.ok == one.ok and two.share.tolist() == one.share.tolist()
                assert (two.where, two.share_where) == (one.where, one.share_where)
                assert two.tol.tolist() == (one.tol * 2.0**power).tolist()
            for shift in (1.0, -1000.0, 2.0**30):
                two = verify(changed(game, lambda t, x, c=shift: x + c * (1 + t % 3)), policy, concept)
                assert two.ok == one.ok
                np.testing.assert_allclose(two.share, one.share, atol=1e-5)  # last digits of 2**30


@pytest.mark.parametrize("level", [0.0, 1e9, 1e14])
@pytest.mark.usefixtures("way")
def test_a_level_of_one_player_hides_no_gain_and_a_penalty_does_not_switch_that_off(level, tmp_path):
    """One of two players has huge rewards that differ by one, and a safe action that is never played and worth nothing."""
    worth = {"better": level + 1, "good": level, "never": 0.0}
    pay = [{"s": {(a, b): (x, float(b == "yes")) for a, x in worth.items() for b in ("yes", "no")}}] * 2
    for choice, ok in (("better", True), ("good", False)):
        table = {(0, "s"): (choice, "yes"), (1, "s"): ("better", "yes")}
        certificate, _ = judged(game_of(pay, "s"), table, CE(), tmp_path / "a.proof", ok=ok)
        assert certificate.regret.tolist() == [float(not ok), 0.0]


@pytest.mark.usefixtures("way")
def test_probabilities_that_do_not_quite_sum_to_one_lose_nothing(tmp_path):
    """A millionth of a millionth less than one: that is no reason to take the sure way to the same million."""
    ways = {
        "sure": [(1.0, "rich", ())],
        "split": [(0.5, "rich", ()), (0.5 - 9e-13, "also", ())],
        "lose": [(1.0, "poor", ())],
    }
    game = solo(
        lambda t, s, a: [(1.0, s, ())] if t else ways[a],
        horizon=2,
        budget=None,
        reward=lambda t, s, a: 1e6 * (t == 1 and s != "poor"),
        actions=tuple(ways),
    )
    assert game.layer(0).prob.min() == 0.5 - 9e-13
    judged(game, ByFunction(lambda t, s, c: {("split",): 1.0}), CE(), tmp_path / "a.proof", ok=True)


def test_no_more_is_accepted_than_was():
    """A stake is never more than what safe rewards can differ by over all steps, of which 1e-8 was accepted before."""
    for rng, game, fa in random_cases(40, 14, CE()):
        certificate = verify(game, labelled(game, random_table(rng, fa, len(game.players), CE())), CE())
        spread = 0
        for t in range(game.horizon):
            layer, safe = game.layer(t), {(s, a) for (time, s, _), x in fa.items() if time == t for a in x}
            state = np.repeat(np.arange(len(game.states)), np.diff(layer.row_ptr)).tolist()
            rows = [r for r, s in enumerate(state) if (s, tuple(layer.action[r].tolist())) in safe]
            spread = spread + np.ptp(layer.reward[rows], axis=0)
        assert (certificate.tol <= VERIFY * spread * (1 + 1e-9) + certificate.rounding).all()


def test_numbers_that_overflow_are_not_accepted():
    """The best total is infinite, and so would be a share of it."""
    pay = [
        {"s": {("a", "x"): (0.0, 0.0), ("b", "x"): (1.0, 0.0), ("b", "y"): (1.7e308, 0.0), ("a", "y"): (0.0, 0.0)}}
    ] * 2
    certificate = verify(game_of(pay, "s"), Table({(t, "s"): ("a", "x") for t in range(2)}), CE())
    assert not certificate.ok and certificate.regret[0] == 2


@pytest.mark.usefixtures("way")
def test_what_overflows_off_the_path_is_neither_accepted_nor_forgotten():
    """Nobody goes to the abyss, whose total is no float; before it a thousand-millionth is gained, which would be accepted."""
    pay = [
        {"s": {("stay",): (1.0,), ("sit",): (0.0,), ("go",): (0.0,)}},
        *([{"s": {("stay",): (0.0,)}, "abyss": {("fall",): (-1.7e308,)}}] * 2),
    ]
    game = game_of(pay, "s", ("p",), lambda t, s, a: "abyss" if a[0] in ("go", "fall") else "s")
    table = {(t, s): ("stay" if s == "s" else "fall",) for t in (1, 2) for s in ("s", "abyss")}
    certificate = verify(game, Table({**table, (0, "s"): {("stay",): 1 - 1e-9, ("sit",): 1e-9}}), CCE())
    assert not certificate.ok and certificate.values[0] == pytest.approx(1)
    assert np.isnan(certificate.regret).all() and np.isnan(certificate.share).all()
    assert certificate.where == certificate.share_where == ((1, "abyss", ()),)


def test_a_gain_says_its_share():
    from acegames.verifier.tolerance import Gain

    assert Gain(1.0, 4.0, 0.0, None).share == 0.25
    assert Gain(1.0, 4.0, 0.5, None).share == 0.125
    assert Gain(1.0, 4.0, 1.0, None).share == 0
    assert Gain(1.0, 0.0, 0.0, None).share == Gain(1.0, math.inf, 0.0, None).share == math.inf
    assert math.isnan(Gain(math.nan, 1.0, 0.0, None).share)
    assert Gain(1.0, math.inf, 0.0, None).accepted == Gain(1.0, 1.0, math.inf, None).accepted == 0


def test_a_gain_is_accepted_up_to_the_bound_and_with_it():
    from acegames.verifier.tolerance import Gain

    at, over = Gain(VERIFY, 1.0, 0.0, None), Gain(2 * VERIFY, 1.0, 0.0, None)
    assert PACKAGE._refused(at, at, None) is None and PACKAGE._refused(at, at, at.accepted) is None
    assert PACKAGE._refused(over, at, None) is PACKAGE._refused(at, over, None) is over
    assert PACKAGE._refused(over, over, at.accepted) is over
