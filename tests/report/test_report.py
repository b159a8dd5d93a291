"""The explorer's data: every number in the page is the policy's, the verifier's or the simulator's own."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import acegames as ace
from acegames.model.words import shown, spelled
from acegames.policy.situations import View, stages
from acegames.report import write_report
from acegames.report.budget_view import in_shell
from acegames.report.chosen_situations import round_off
from acegames.report.page import json_for_script
from acegames.report.reasons import deviations
from acegames.report.summary import percent
from acegames.report.write import collect
from command_line import answer, refused, run
from games import alone, one_state

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<!--\u2028\ud800"


def chicken(cost=1, budget=3, horizon=4, epsilon=None, concept=None, less=0):
    pay = {("dare", "dare"): (0, 0), ("dare", "yield"): (7, 2), ("yield", "dare"): (2, 7), ("yield", "yield"): (6, 6)}
    game = ace.MarkovGame.from_functions(
        name="chicken",
        players=["red", "blue"],
        horizon=horizon,
        initial="road",
        budget={"risk": budget},
        actions=lambda t, s: [("dare", "yield"), ("dare", "yield")],
        outcomes=lambda t, s, a: [(0.5, "road", a.count("dare") * cost), (0.5, "road", a.count("dare") * less)],
        reward=lambda t, s, a: pay[a],
    )
    return ace.solve(game, concept or ace.CE(), epsilon=epsilon)


GAMES = {
    "ce": lambda: ace.solve(ace.catalog.get("intersection"), ace.CE()),
    "cce": lambda: ace.solve(ace.catalog.get("medium_access"), ace.CCE()),
    "nash": lambda: ace.solve(ace.catalog.get("medium_access"), ace.Nash()),
    "two budgets": lambda: ace.solve(ace.catalog.get("drones", horizon=3), ace.CE()),
    "three players": lambda: ace.solve(ace.catalog.get("medium_access_3"), ace.CE()),
    "one player": lambda: ace.solve(ace.catalog.get("knapsack")),
    "no budgets": lambda: ace.solve(ace.catalog.get("corridor")),
    "almost sure": lambda: ace.solve(ace.catalog.get("net_zero")),
    "schedule": lambda: chicken(budget=[1, np.inf, 2, 3]),
    "reservoirs": lambda: ace.solve(ace.catalog.get("electric_fleet"), ace.CE()),
    "rounded": lambda: chicken(cost=0.777, less=0.5671, budget=2, epsilon=0.5),
    "random": lambda: chicken(cost=Uniform(), budget=2, epsilon=0.5),
}


class Uniform:
    """A cost that is uniform between 0 and 1."""

    lower, upper = 0, 1

    def cdf(self, x):
        return np.clip(x, 0, 1)

    def ppf(self, q):
        return q

    def __rmul__(self, times):
        return self if times else 0


@pytest.fixture(scope="module", params=GAMES)
def solved(request):
    solution = GAMES[request.param]()
    data, chosen, certificate = collect(solution, episodes=200, rng=3, most=None)
    return SimpleNamespace(solution=solution, data=data, chosen=chosen, certificate=certificate)


def situations(solved):
    """Each record with its time, its labels and the counted spending."""
    game = solved.solution.game
    for t, records in enumerate(solved.data["situations"]):
        for record in records:
            yield t, game.states[record[0]], record[1], record


def actions_of(solved, t, record):
    data, game = solved.data, solved.solution.game
    return [game.joint_action(row) for row in data["rows"][f"{data['layer_at'][t]},{record[0]}"]]


def close(result, expected):
    return np.testing.assert_allclose(np.array(result, dtype=float), expected, rtol=1e-7, atol=1e-8)


def test_every_situation_is_there_with_the_values_and_the_distribution_of_the_policy(solved):
    policy = solved.solution.policy
    assert solved.chosen.shown == solved.chosen.number == solved.certificate.pairs
    for t, state, spent, record in situations(solved):
        close(record[2], policy.values(t, state, spent))
        rows = actions_of(solved, t, record)
        played = {rows[r]: p for r, p in record[3]}
        expected = policy.distribution(t, state, spent)
        assert played.keys() == expected.keys()
        close([played[a] for a in expected], list(expected.values()))


def test_safe_joint_actions_are_those_of_feasibility_and_the_rest_has_a_true_reason(solved):
    view = View.of(solved.solution.game, solved.solution.policy)
    result = ace.feasibility(view.counted)
    for t, state, spent, record in situations(solved):
        rows = actions_of(solved, t, record)
        assert {rows[entry[0]] for entry in record[4]} == set(result.actions(t, state, spent))
        assert sorted(entry[0] for entry in [*record[4], *record[5]]) == list(range(len(rows)))
        for row, kind, probability, following, after, over in record[5]:
            assert 0 < probability <= 1
            limits = [float(b) for b in view.counted.budgets[t]]
            broken = [m for m, (c, b) in enumerate(zip(after, limits, strict=True)) if c > b + 1e-9]
            assert broken == over
            assert bool(over) == (kind == 0)
            if kind == 1:
                reached = (view.counted.states[following], tuple(after))
                assert reached not in {(s, tuple(map(float, c))) for s, c in result.states(t + 1)}
                left = [r - c for r, c in zip(solved.data["reference"], after, strict=True)]
                needs = solved.data["needs"][f"{t + 1},{following}"]
                assert all(
                    any(x is not None and x > y + 1e-9 for x, y in zip(n, left, strict=True)) for n in needs if n
                )
            assert rows[row] not in result.actions(t, state, spent)


def test_worth_is_reward_plus_what_follows(solved):
    view = View.of(solved.solution.game, solved.solution.policy)
    for t, _, spent, record in situations(solved):
        layer = view.counted.layer(t)
        for r, *worth in record[4]:
            row = int(layer.row_ptr[record[0]]) + r
            expected = layer.reward[row].copy()
            outs = layer.outcomes(row)
            for k in range(outs.start, outs.stop) if t + 1 < view.game.horizon else ():
                cost = [v[c] for v, c in zip(view.counted.cost_values, layer.cost[k], strict=True)]
                after = [round(float(c) + x, 9) for c, x in zip(cost, spent, strict=True)]
                kept = zip(after, view.counted.reservoirs, strict=True)
                after = [x if reservoir is None else max(x, 0) for x, reservoir in kept]
                following = view.game.states[layer.next_state[k]]
                expected += layer.prob[k] * view.policy.values(t + 1, following, after)
            close(worth, expected)


def test_nobody_gains_more_than_the_verifier_says(solved):
    """A one-step gain is no more than the best deviation, and here that is nothing."""
    for *_, record in situations(solved):
        for player, _, chance, _, loss, *_ in record[6]:
            if loss is not None:
                assert -loss * chance <= solved.certificate.regret[player] + 1e-7


def test_the_summary_has_the_verifiers_and_the_simulators_numbers(solved):
    summary, certificate = solved.data["summary"], solved.certificate
    assert summary["ok"] is certificate.ok is True
    assert "\n".join(summary["certificate"]) == str(certificate)
    close(summary["values"], certificate.values)
    game, policy = solved.solution.game, solved.solution.policy
    rollouts = ace.simulate(game, policy, episodes=200, rng=np.random.default_rng(3))
    close(summary["mean"], rollouts.returns.mean(axis=0))
    assert summary["violations"] == rollouts.violations
    for entry in summary["budgets"]:
        close(entry["worst"], float(certificate.max_spent[entry["constraint"]]))
    for m, final in enumerate(solved.data["final"]):
        assert sum(bar[2] for bar in final["bars"]) == 200
        close(final["most"], rollouts.spent[:, -1, m].max())
    for e, episode in enumerate(solved.data["episodes"][:3]):
        assert episode["state"] == rollouts.state[e].tolist()
        assert episode["action"] == rollouts.action[e].tolist()
        close(np.sum(episode["reward"], axis=0), rollouts.returns[e])
        close(episode["spent"], rollouts.spent[e])


def test_frontier_and_curve_are_those_of_the_library(solved):
    game, data = solved.solution.game, solved.data
    if not game.constraints:
        assert not data["frontier"]["rows"] and not data["curves"]
        return
    view = View.of(game, solved.solution.policy)
    close(data["frontier"]["rows"], ace.feasibility(view.counted).minimal_budgets.astype(float))
    for curve in data["curves"]:
        expected = solved.solution.budget_curve(game.constraints[curve["constraint"]], points=61)
        close(curve["values"], expected.values)
        close(curve["values"][-1], solved.solution.values)


def test_maps_have_the_values_of_the_policy(solved):
    policy, game = solved.solution.policy, solved.solution.game
    for t, states in enumerate(solved.data["maps"]):
        for s, cells in states.items():
            assert len(cells["a"]) == cells["of"]
            for k in range(0, len(cells["a"]), 7):
                spent = [column[k] for column in cells["c"]]
                values = policy.values(t, game.states[int(s)], spent)
                np.testing.assert_allclose([column[k] for column in cells["v"]], values, rtol=1e-4, atol=1e-9)


def spread(game, weights):
    """A policy that plays the feasible joint actions with these weights, in turn: no equilibrium."""
    result = ace.feasibility(game)

    def distribution(t, state, spent):
        options = result.actions(t, state, spent)
        chosen = weights[: len(options)]
        return {a: w / sum(chosen) for a, w in zip(options, chosen, strict=False) if w}

    return SimpleNamespace(distribution=distribution)


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()])
def test_deviations_at_the_last_step_gain_what_the_verifier_finds(concept):
    """With one step a deviation is one choice, so the largest gains are the verifier's regrets exactly."""
    solution = chicken(horizon=1, budget=1, concept=concept)
    game, policy = solution.game, spread(solution.game, (0.5, 0, 0.5))  # not both dare
    certificate = ace.verify(game, policy, concept)
    assert not certificate.ok
    view = View.of(game, solution.policy)
    (stage,) = stages(view, 0, np.array([0]), np.array([[0]]))
    played = {game.joint_action(a): r for r, a in enumerate(game.layer(0).action)}
    weights = {played[a]: p for a, p in policy.distribution(0, "road", [0]).items()}
    result = deviations(view, stage, 0, weights)
    assert any(d.loss is None for d in result)
    gains = np.zeros(2)
    for i in range(2):
        best = {}
        for d in result:
            if d.player == i and d.loss is not None:
                best[d.signal] = max(best.get(d.signal, 0.0), -d.loss * d.chance)
        gains[i] = sum(best.values())
    assert gains.max() > 0.1
    np.testing.assert_allclose(gains, certificate.regret, atol=1e-12)


def test_without_binding_budgets_safety_takes_nothing_and_with_tight_ones_it_does():
    loose, tight = (collect(chicken(budget=b), episodes=50, rng=0, most=None)[0]["summary"] for b in (99, 0))
    assert loose["removed"] == [0, 0]
    assert loose["values"] == loose["without"]
    # with nothing to spend both yield, and each would rather dare
    assert tight["removed"] == [1, 1]
    assert "100\u00a0%" in tight["freedom"][0]


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1234567.25, "1,234,567.25"),
        (-12345678901, "-12,345,678,901"),
        (1e5, "100,000"),
        (0.1234567, "0.123457"),
        (1.5e-10, "1.5e-10"),
        (0, "0"),
    ],
)
def test_numbers_keep_the_digits_left_of_the_point(x, text):
    assert spelled(x) == text
    assert shown(x) == x and shown(Fraction(x)) == x
    assert spelled(1e-17, 1) == "0"
    assert round_off(123456.7) == 123457 and round_off(0.1234567) == 0.12346


@pytest.mark.parametrize(("share", "said"), [(0, "0_%"), (1e-5, "less than 0.1_%"), (0.5, "50.0_%"), (1, "100_%")])
def test_shares_in_words(share, said):
    assert percent(share) == said.replace("_", "\u00a0"), "no line breaks before the sign"


def test_large_games_are_thinned_and_say_so(tmp_path):
    solution = ace.solve(ace.catalog.get("drones"), ace.CE())
    written = solution.report(tmp_path / "r.html", episodes=50, most=100)
    assert (written.situations, written.of) == (100, 1305)
    assert "100 of 1,305 situations" in written.notes[0]
    assert f"solution.report({str(tmp_path / 'r.html')!r}, most=1000)" in written.notes[0]
    inline = solution.report(episodes=50, most=100)  # in a notebook there is no file
    assert "solution.report(most=1000)" in inline.notes[0]
    assert "box-sizing:border-box" in inline._repr_html_()  # the border would make it wider than its place
    data = json.loads(re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.DOTALL)[1])
    assert sum(map(len, data["situations"])) == 100
    assert data["situations"][0][0][:2] == [0, [0, 0]]
    shown = {(t, r[0], tuple(r[1])) for t, at in enumerate(data["situations"]) for r in at}
    for episode in data["episodes"]:
        for t in range(1, 5):
            assert (t, episode["state"][t], tuple(episode["spent"][t - 1])) in shown


def test_what_does_not_fit_is_left_out_by_itself(monkeypatch):
    monkeypatch.setattr("acegames.report.write.FITS", 60_000)
    data, chosen, _ = collect(ace.solve(ace.catalog.get("drones")), episodes=20, rng=0, most=None)
    assert chosen.thinned and data["thinned"] and 0 < chosen.shown < chosen.number
    assert len(json_for_script({k: data[k] for k in ("situations", "states", "maps", "rows", "needs")})) <= 60_000


def wide(states, label, horizon=3):
    """Many equally likely initial states, from each of which the next one follows."""
    return alone(
        lambda s, a: [(1, s, int(a[0] == "go"))],
        actions=("go", "stay"),
        reward={"go": 1},
        horizon=horizon,
        initial=dict.fromkeys((f"{k}{label}" for k in range(states)), Fraction(1, states)),
        budget={"fuel": 2},
    )


def test_many_initial_states_leave_room_for_later_times_and_the_note_says_what_was_kept():
    data, chosen, _ = collect(ace.solve(wide(1500, "")), episodes=100, rng=0, most=500)
    assert chosen.shown == 500 and all(len(at) > 50 for at in data["situations"])
    note = data["notes"][0].words
    assert "some of the initial states, the sample episodes" in note and "an even sample of the rest" in note
    shown_here = {(t, r[0], *r[1]) for t, at in enumerate(data["situations"]) for r in at}
    for episode in data["episodes"]:
        for t in range(1, 3):
            assert (t, episode["state"][t], *episode["spent"][t - 1]) in shown_here


def test_long_labels_keep_the_page_small(tmp_path):
    written = ace.solve(wide(20_000, "x" * 150, horizon=1)).report(tmp_path / "r.html", episodes=100)
    assert 1000 < written.situations < written.of and written.size < 3_000_000
    data = json.loads(re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.DOTALL)[1])
    used = {r[0] for at in data["situations"] for r in at} | {s for e in data["episodes"] for s in e["state"]}
    assert used <= set(map(int, data["states"])) and len(data["states"]) < 5000


def test_budgets_are_listed_with_the_tightest_first():
    game = one_state(
        ["rover"],
        [("go",)],
        lambda t, a: [1, 0, -1, 9, 1, -4],
        lambda t, a: [1],
        budget={"third": 3, "zero": 0, "debt": -1, "free": np.inf, "most": 1.25, "low": 0},
        state="x",
    )
    data, *_ = collect(ace.solve(game), episodes=5, rng=0, most=None)
    order = [data["constraints"][b["constraint"]] for b in data["summary"]["budgets"]]
    assert order == ["zero", "debt", "most", "third", "low", "free"]


def test_hostile_labels_do_not_get_into_the_markup(tmp_path):
    game = one_state(
        [HOSTILE],
        [(HOSTILE, "b")],
        lambda t, a: 2 * (a[0] == "b"),
        lambda t, a: [1],
        budget={HOSTILE: 1},
        state=HOSTILE,
        name=HOSTILE,
    )
    ace.solve(game).report(tmp_path / "r.html", episodes=5)
    text = (tmp_path / "r.html").read_text()
    assert text.count("</script>") == 3 and text.count("<script") == 3
    assert "<img" not in text and "<!--" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["players"] == [HOSTILE]
    assert not re.search(r"[<>&]|[^\x00-\x7f]", json_for_script({HOSTILE: HOSTILE}))


@pytest.mark.parametrize("label", ["\u202eabc\u2066", "]]><script>", "\x00\x1b[2J\u2029", "{{x}}${x}`\\", "<" * 20_000])
def test_labels_that_turn_break_or_never_end(tmp_path, label):
    labels = [label, "b"]
    game = one_state(
        labels, [labels, labels], lambda t, a: 0, lambda t, a: [1, 0], budget={label: 1}, state=label, name=label
    )
    ace.solve(game).report(tmp_path / "r.html", episodes=2)
    text = (tmp_path / "r.html").read_text()
    assert text.count("</script>") == text.count("<script") == 3 and len(text) < 4_000_000
    shown = re.search(r"<title>(.*?)</title>", text, re.DOTALL)[1]
    assert not set(shown) & set("<>\x00\x1b")
    assert not re.search("[\u2028\u2029\u202e\u2066]", text.partition('id="data">')[2].partition("</script>")[0])


def test_the_page_loads_nothing_and_keeps_the_licence(tmp_path):
    chicken().report(tmp_path / "r.html", episodes=5)
    text = (tmp_path / "r.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=[\"'](?!data:)", text)
    assert "Copyright (c) 2022 Leon Sorokin" in text and "uPlot 1.6.32" in text
    again = tmp_path / "again.html"
    chicken().report(again, episodes=5)
    assert again.read_bytes() == (tmp_path / "r.html").read_bytes()


def test_a_policy_alone_gives_the_same_page_but_for_what_it_does_not_know(tmp_path):
    solution = chicken()
    write_report(solution, tmp_path / "s.html", episodes=5)
    write_report(solution.policy, tmp_path / "p.html", game=solution.game, episodes=5)
    assert (tmp_path / "s.html").read_bytes() == (tmp_path / "p.html").read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"most": 0}, "most: got 0"),
        ({"episodes": 0}, "episodes: got 0"),
        ({"game": lambda: chicken(budget=2).game}, "another one"),
    ],
)
def test_wrong_options_are_refused(options, said, tmp_path):
    options = {name: x() if callable(x) else x for name, x in options.items()}
    with pytest.raises(ace.InvalidOption, match=said):
        write_report(chicken(), tmp_path / "r.html", **options)


def test_a_policy_of_another_game_or_without_one_is_refused(tmp_path):
    for game, said in ((chicken(budget=2).game, "another game"), (None, "give it too")):
        with pytest.raises(ace.InvalidOption, match=said):
            write_report(chicken().policy, tmp_path / "r.html", game=game)


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solution = chicken()
    solution.save("s.ace")
    solution.policy.save("p.ace")
    solution.game.save("g.yaml")
    assert "Written to s.html" in run("report", "s.ace", "-o", "s.html", "--episodes", "5").stdout
    told = answer("report", "p.ace", "--game", "g.yaml", "-o", "p.html", "--episodes", "5", "--most", "7")
    assert told["situations"] == 7 and told["ok"] is True and told["file"] == "p.html"
    assert told["size"] == (tmp_path / "p.html").stat().st_size
    refused("report", "p.ace", "-o", "q.html")


def test_simulated_spending_as_counted():
    rounded = chicken(cost=0.777, less=0.5671, budget=2, epsilon=0.5)
    rollouts = ace.simulate(rounded.game, rounded.policy, episodes=50, rng=0)
    cell = float(rounded.policy.tracker.rounding[0].cell)
    np.testing.assert_allclose(np.round(rollouts.counted / cell) * cell, rollouts.counted)
    assert (rollouts.counted <= rollouts.spent + 1e-12).all() and (rollouts.counted < rollouts.spent).any()
    exact = chicken()
    played = ace.simulate(exact.game, exact.policy, episodes=5, rng=0)
    assert played.counted is played.spent


@pytest.mark.parametrize("most", [None, 20])
def test_a_policy_that_does_not_list_what_cannot_bind_is_shown_with_one_of_each(most):
    solution = chicken(budget=6)
    alike = replace(solution, policy=replace(solution.policy, reached=None))
    data, chosen, certificate = collect(alike, episodes=50, rng=0, most=most)
    assert certificate.ok and any("all alike" in note.words for note in data["notes"])
    assert chosen.shown <= solution.stats.pairs + (50 if most else 0)
    for t, at in enumerate(data["situations"]):
        for record in at:
            close(record[2], alike.policy.values(t, "road", record[1]))
            assert record[4]


def test_reservoirs_are_told_by_their_levels():
    battery = ace.reservoir(6, start=4, reserve=[1, 1, 1, 2])
    game = one_state(
        ["one"],
        [("go", "charge")],
        lambda t, a: [2, 1, 1] if a == ("go",) else [-3, -1, 0],
        lambda t, a: [a == ("go",)],
        horizon=4,
        budget={"battery": battery, "tank": ace.reservoir(3), "fuel": 9},
        name="store",
    )
    data, _, _ = collect(ace.solve(game), episodes=50, rng=0, most=None)
    assert data["capacities"] == [6, 3, None] and data["start"] == [2, 0, 0]
    said = data["summary"]["game"]
    assert "battery: reservoir of 6, starts at 4, reserve by step 1, 1, 1, 2; tank: reservoir of 3; fuel <= 9" in said
    assert data["situations"][0][0][1] == [2, 0, 0], "the first situation is the start"
    assert not data["frontier"]["notes"], "reserves are not shifted"
    assert [entry["constraint"] for entry in data["summary"]["budgets"]] != []
    for entry in data["summary"]["budgets"]:
        if entry["constraint"] < 2 and entry["worst"] is not None:
            assert entry["level"] + entry["worst"] == data["capacities"][entry["constraint"]]
            assert f"falls to {entry['level']} of {entry['limit']}" in entry["words"]


def test_what_reservoirs_waste_is_told():
    """Charges a full battery: one unit is lost in each of the first two steps."""
    game = alone(lambda t, s, a: [(1, s, -1 if t < 2 else 1)], horizon=3, budget={"battery": ace.reservoir(2)})
    data, *_ = collect(ace.solve(game), episodes=5, rng=0, most=None)
    (entry,) = data["summary"]["budgets"]
    assert "2 was wasted on average because it was full, at most 2 in one episode" in entry["wasted"]
    assert data["episodes"][0]["wasted"] == [2]


def test_the_name_is_said_once_and_hints_are_in_python_or_quoted_for_a_shell(monkeypatch):
    data, *_ = collect(chicken(), episodes=5, rng=0, most=None)
    assert data["name"] == "chicken" and "chicken" not in data["summary"]["game"]
    monkeypatch.setattr("acegames.report.budget_view.MOST_PAIRS", 1)
    monkeypatch.setattr("acegames.report.budget_view.FRONTIER_PAIRS", 1)
    drones = ace.solve(ace.catalog.get("drones"))
    shell = in_shell(["s.ace"], ["my game.yaml"])
    spoken, typed = (collect(drones, episodes=5, rng=0, most=None, hints=hints)[0] for hints in (None, shell))
    assert spoken["curves"][0]["notes"][0].command == "solution.budget_curve('red battery')"
    named = ["acegames", "frontier", "my game.yaml"]
    assert shlex.split(typed["curves"][0]["notes"][0].command) == [*named, "--curve", "--constraint", "red battery"]
    assert shlex.split(typed["frontier"]["notes"][0].command) == named
    assert spoken["frontier"]["notes"][0].command == "acegames.feasibility(solution.game).minimal_budgets"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_a_place_that_takes_no_files_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("acegames.report.write.collect", lambda *a, **k: pytest.fail("the work was begun"))
    with pytest.raises(PermissionError, match=r"/proc/x\.html"):
        chicken().report("/proc/x.html")


def test_boxes_of_a_thinned_map_leave_no_reachable_situation_blank(monkeypatch):
    solution = ace.solve(ace.catalog.get("drones"), ace.CE())
    monkeypatch.setattr("acegames.report.write.CELLS_PER_SITUATION", 0)  # at most 20 cells a state
    data, *_ = collect(solution, episodes=20, rng=0, most=None)
    result, thinned = ace.feasibility(solution.game), 0
    for t, maps in enumerate(data["maps"]):
        for s, cells in maps.items():
            here = [c for state, c in result.states(t) if state == solution.game.states[int(s)]]
            assert len(here) == cells["of"]
            if "r" not in cells:
                assert len(cells["a"]) == len(here)
                continue
            thinned += 1

            def box(spent, ranges=cells["r"]):
                return tuple(
                    next(k for k, (low, high) in enumerate(side) if low <= x <= high)
                    for x, side in zip(spent, ranges, strict=True)
                )

            drawn = [box(spent) for spent in zip(*cells["c"], strict=True)]
            assert len(drawn) <= 20 and len(set(drawn)) == len(drawn)
            assert {box(map(float, c)) for c in here} == set(drawn)
    assert thinned
