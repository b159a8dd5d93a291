"""Policies that are asked in bulk, by `rows`: what they say is checked, and compared with what `distribution` says."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import acegames as ace
from acegames import CCE
from acegames.cli import bench
from acegames.verifier import verify
from acegames.verifier.basics import LIMITS
from acegames.verifier.pair_keys import ExactUnits
from acegames.verifier.policy_reader import Reader, _in_units
from acegames.verifier.subgames import Subgames
from elsewhere import Elsewhere, assert_equal
from emulated_gpu import EmulatedGPU
from games import solo
from policies import Alone, Both, Singly, Spoiled, wavering

CARD = EmulatedGPU(smallest=0)
NOT_WHAT = "the policy's `rows` does not say what its `distribution` says"


def line(horizon=12, budget=9, costs=(0, 1, 3), unit=1):
    """One player, one state: cheap enough to check by hand."""
    return solo(
        lambda t, s, a: [(0.5, s, costs[a] * unit), (0.5, s, costs[-1] * unit if a else 0)],
        horizon=horizon,
        budget=budget * unit,
        reward=lambda t, s, a: float(a),
        actions=range(len(costs)),
    )


def cheapest(t, state, spent):
    return {(0,): 1.0}


def reading(game, policy):
    """Read all pairs of FS; return what was read, time by time, and the reader."""
    reader = Reader(game, policy, ExactUnits(game))
    subgames = Subgames.of(game, ExactUnits(game))
    pairs = [subgames.pairs(t) for t in range(game.horizon)]
    return [reader.read(t, *own, reader.drawn(t, len(own[0]))) for t, own in enumerate(pairs)], reader


class Wrong(Both):
    """`rows` with its answer spoiled."""

    thread_safe = True
    distribution, joint_actions = Both.distribution, Both.joint_actions  # all belong to this class

    def __init__(self, game, spoil, answer=cheapest):
        super().__init__(game, answer)
        self.spoil = spoil

    def rows(self, t, state, total):
        return self.spoil(*super().rows(t, state, total))


def doubled(ptr, row, prob, shares=(0.5, 0.5), other=0):
    """Each row twice, or another one beside it."""
    return 2 * ptr, np.repeat(row, 2) + np.resize([0, other], 2 * len(row)), np.outer(prob, shares).reshape(-1)


def wrapped(ptr, row, prob):
    """Pointers of eight bits, which wrap around."""
    return np.resize(np.array([0, 127, -2, 125], dtype=np.int8), len(ptr)), np.zeros(125, int), np.full(125, 1 / 127)


def test_pairs_are_compared_wherever_among_those_of_a_time_they_are():
    class Late(Both):
        distribution, joint_actions = Both.distribution, Both.joint_actions

        def rows(self, t, state, total):
            ptr, row, prob = super().rows(t, state, total)
            return ptr, row + ((t == 5) & (total[:, 0] > 4)), prob

    game = line()
    assert NOT_WHAT in " ".join(verify(game, Late(game, cheapest), CCE()).problems)


SPOILED = {
    "failure": lambda ptr, row, prob: 1 / 0,
    "nothing": lambda ptr, row, prob: None,
    "two arrays": lambda ptr, row, prob: (ptr, row),
    "float pointers": lambda ptr, row, prob: (ptr.astype(float), row, prob),
    "short pointers": lambda ptr, row, prob: (ptr[:-1], row, prob),
    "long pointers": lambda ptr, row, prob: (np.append(ptr, ptr[-1]), row, prob),
    "pointers from one on": lambda ptr, row, prob: (ptr + 1, row, prob),
    "pointers out of range": lambda ptr, row, prob: (ptr * 2, row, prob),
    "falling pointers": lambda ptr, row, prob: (ptr[::-1], row, prob),
    "pointers that wrap around": wrapped,
    "empty distributions": lambda ptr, row, prob: (ptr * 0, row[:0], prob[:0]),
    "rows of more": lambda ptr, row, prob: (ptr, np.append(row, 0), prob),
    "rows in columns": lambda ptr, row, prob: (ptr, row[:, None], prob[:, None]),
    "unknown rows": lambda ptr, row, prob: (ptr, row + 99, prob),
    "far rows": lambda ptr, row, prob: (ptr, row + 2**32, prob),
    "rows that wrap around": lambda ptr, row, prob: (ptr, row.astype(np.uint64) + np.uint64(2**63), prob),
    "negative rows": lambda ptr, row, prob: (ptr, row - 1, prob),
    "float rows": lambda ptr, row, prob: (ptr, row.astype(float), prob),
    "labels": lambda ptr, row, prob: (ptr, row.astype(str), prob),
    "rows twice": doubled,
    "rows twice, once hardly": partial(doubled, shares=(1e-14, 1.0)),
    "negative beside more than one": partial(doubled, shares=(1.5, -0.5), other=1),
    "negative": lambda ptr, row, prob: (ptr, row, -prob),
    "nan": lambda ptr, row, prob: (ptr, row, prob * math.nan),
    "infinite": lambda ptr, row, prob: (ptr, row, prob * math.inf),
    "half": lambda ptr, row, prob: (ptr, row, prob / 2),
    "zero": lambda ptr, row, prob: (ptr, row, prob * 0),
    "whole numbers": lambda ptr, row, prob: (ptr, row, prob.astype(int)),
    "another row": lambda ptr, row, prob: (ptr, row + 1, prob),
}
POLICIES = {"another row", "rows twice", "rows twice, once hardly"}  # these are answers, if not those of `distribution`


@pytest.mark.parametrize("kind", SPOILED)
def test_spoiled_rows_are_found_out_and_replaced(kind):
    game = line()
    certificate = verify(game, Wrong(game, SPOILED[kind]), CCE())
    assert not certificate.ok and NOT_WHAT in certificate.problems[0]
    if kind not in POLICIES:
        assert_equal(replace(certificate, problems=certificate.problems[1:]), verify(game, Singly(cheapest), CCE()))


def test_rows_of_another_state_are_not_legal():
    game = solo(lambda t, s, a: [(1.0, a, 0)], horizon=3, budget=1, initial="x")
    assert game.layer(1).row_ptr.tolist() == [0, 2, 4]

    def other(ptr, row, prob):
        return ptr, (row + 2) % 4, prob

    def answer(t, state, spent):
        return {("x",): 1.0}

    found = verify(game, Wrong(game, other, answer), CCE())
    assert NOT_WHAT in found.problems[0]
    assert_equal(replace(found, problems=()), replace(verify(game, Singly(answer), CCE()), ok=False))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("concept", [ace.CE(), ace.Nash()], ids=repr)
def test_the_pair_that_is_named_does_not_depend_on_threads_and_blocks(monkeypatch, fails, concept):
    """Nor what is compared, nor which pair is no product."""
    game = bench.random_game(3, 6, 9)
    policy = Spoiled(ace.solve(game, ace.CE()).policy, partial(wavering, fails))
    local = verify(game, policy, concept, engine=ace.LocalEngine(threads=1))
    assert NOT_WHAT in str(local) and ("do not draw independently" in str(local)) == concept.product
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.block", 64)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.least_block", 8)
    for engine in (*(ace.LocalEngine(threads=n) for n in (1, 2, 5)), Elsewhere(block=15), Elsewhere(block=60), CARD):
        assert_equal(verify(game, policy, concept, engine=engine), local)


def test_more_pairs_of_large_times_are_compared(monkeypatch):
    """One pair of a long game's times; of a time with many pairs a share, and not those of another time."""
    game = line(horizon=100, budget=80)
    reader = Reader(game, Singly(cheapest), ExactUnits(game))
    assert reader.drawn(3, 1).tolist() == [0] and len(reader.drawn(3, 10**4)) == 1
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.compared_of", 7)
    drawn = [reader.drawn(t, 1000).tolist() for t in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2] and 100 < len(drawn[0]) < 1000 / 7 + 1


def test_only_pairs_without_a_proper_answer_are_asked_again(monkeypatch):
    game = line(horizon=60, budget=150)

    def silent(t, state, spent):
        return {(0,): 1.0} if spent[0] != 70 else {(0,): 0.5}

    alone, _ = reading(game, Singly(silent))
    asked, policy = [], Both(game, silent)
    monkeypatch.setattr(Both, "distribution", lambda p, *x: asked.append(x) or silent(*x))
    answers, reader = reading(game, policy)
    assert not reader.noted and any(a.faults for a in answers)
    assert len(asked) < 4 * game.horizon < sum(len(a.ptr) for a in answers) / 20
    for one, two in zip(answers, alone, strict=True):
        assert one.faults == two.faults and list(one.faults) == sorted(one.faults)
        for name in ("ptr", "row", "prob"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_rows_that_fail_only_together_are_named():
    """Each pair has an answer, and no two of them."""
    game = line()

    def alone(question, answer):
        if len(question[1]) > 1:
            raise ValueError("one by one")
        return answer

    found = verify(game, Spoiled(ace.solve(game).policy, alone))
    assert [p.endswith(f"or beside it: {NOT_WHAT}.") for p in found.problems] == [True]


def test_rows_may_write_into_what_they_are_asked():
    game = line(horizon=3, budget=100)

    class Writing(Both):
        distribution, joint_actions = Both.distribution, Both.joint_actions

        def rows(self, t, state, total):
            state[:], total[:] = 7, 2
            raise KeyError

    found = verify(game, Writing(game, lambda t, s, c: {(7 if c[0] == 3 else 0,): 1.0}))
    assert "spent (3,): action (7,) has probability 1 and is not legal" in str(found), str(found)


@pytest.mark.parametrize(
    ("ratio", "spent", "expected"),
    [
        (Fraction(3), [1, 2], [3, 6]),
        (Fraction(1), [1, 2**62], [1, 2**62]),
        (Fraction(3), [1, 2**62], None),
        (Fraction(3), [1, -(2**62)], None),
        (Fraction(1, 2), [2, 4], [1, 2]),
        (Fraction(1, 2), [2, 3], None),
        (Fraction(3, 2), [2, 4], [3, 6]),
        (Fraction(3, 2), [2, 2**62], None),
        (Fraction(1, 2**70), [0, 0], None),
    ],
)
def test_spending_in_the_units_of_a_policy(ratio, spent, expected):
    """The verifier asks a policy in the policy's own units, exactly or not at all."""
    total = _in_units(np.array(spent, dtype=np.int64).reshape(-1, 1), [ratio])
    assert (None if total is None else total[:, 0].tolist()) == expected


def test_totals_in_other_units_are_converted_exactly_or_asked_singly():
    game = line(horizon=6, unit=Fraction(1, 3))  # units of 1/3
    for unit in (Fraction(1, 3), Fraction(1, 15), Fraction(1, 3 * 10**17)):
        policy = Both(game, cheapest, [unit])
        assert not reading(game, policy)[1].noted and policy.asked > 0
    coarse = Both(game, cheapest, [Fraction(2, 3)])
    assert reading(game, coarse)[1].noted  # an odd number of thirds: `rows` cannot even be asked
    even = line(horizon=6, budget=8, costs=(0, 2, 4))
    policy = Both(even, cheapest, [Fraction(2)])
    assert not reading(even, policy)[1].noted and policy.asked > 0


def test_probabilities_of_zero_and_rounded_ones_are_read_alike():
    game = line(horizon=3)
    rounded = {(0,): 0.33333333, (1,): 0.0, (2,): 0.66666667}

    def answer(t, state, spent):
        return rounded if t == 0 else {(0,): 1.0}

    both, reader = reading(game, Both(game, answer))
    single, _ = reading(game, Singly(answer))
    assert not reader.noted
    assert both[0].row.tolist() == single[0].row.tolist() == [0, 2]
    np.testing.assert_allclose(both[0].prob, single[0].prob, rtol=1e-15)
    both, _ = reading(game, Both(game, lambda t, state, spent: {(0,): 0.3333333, (1,): 0.0, (2,): 0.66666667 - 1e-7}))
    assert "sum to" in both[0].faults[0]


def test_a_policy_without_rows_is_asked_again_only_beyond_what_is_remembered(monkeypatch):
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.remembered", 3)
    game, asked = line(horizon=2), []
    policy = Singly(lambda t, state, spent: asked.append(spent) or {(0,): 1.0})
    reader = Reader(game, policy, ExactUnits(game))
    state, spent = np.zeros(5, dtype=np.int64), np.arange(5)[:, None]
    for _ in range(2):
        reader.read(1, state, spent, np.arange(2))
    assert [int(c[0]) for c in asked] == [0, 1, 2, 3, 4, 3, 4]


def test_a_solved_policy_is_read_in_bulk(monkeypatch):
    game = line(horizon=400, budget=300)
    solution, asked, single = ace.solve(game), [], []
    rows, distribution = ace.Policy.rows, ace.Policy.distribution
    monkeypatch.setattr(ace.Policy, "rows", lambda p, t, *x: asked.append(t) or rows(p, t, *x))
    monkeypatch.setattr(ace.Policy, "distribution", lambda p, t, *x: single.append(t) or distribution(p, t, *x))
    certificate = verify(game, solution.policy, CCE())
    assert certificate.ok and certificate.pairs > 50_000 and certificate.max_spent.tolist() == [300.0], str(certificate)
    np.testing.assert_allclose(certificate.values, solution.values)
    assert sorted(set(asked)) == list(range(400)) and len(single) <= 1000


# -- whose `rows` are asked, and by whom ------------------------------------------------------------------------------


class Inherits(Both):
    """Its `rows` is that of another class."""

    thread_safe = True

    def distribution(self, t, state, spent):
        return cheapest(t, state, spent)


class NotThreads(Both):
    """It does not say that several may ask it."""

    distribution, rows, joint_actions = Both.distribution, Both.rows, Both.joint_actions


def other_distribution(policy):
    policy.distribution = cheapest


LACKING = {
    "has no states that equal those of the game": [lambda policy: setattr(policy, "states", ("t",))],
    "has no actions that equal those of the game": [
        lambda policy: setattr(policy, "actions", ((2, 1, 0),)),
        lambda policy: delattr(policy, "actions"),
    ],
    "has no tracker.units, a number for each constraint": [
        lambda policy: setattr(policy, "tracker", None),
        lambda policy: setattr(policy.tracker, "units", []),
    ],
    "does not have distribution, rows and joint_actions from the same class": [
        lambda policy: setattr(policy, "__class__", Inherits),
        other_distribution,
    ],
    "has no method rows": [lambda policy: setattr(policy, "__class__", Singly)],
}


@pytest.mark.parametrize(("lacking", "change"), [(words, x) for words, several in LACKING.items() for x in several])
def test_what_a_policy_lacks_to_be_asked_in_bulk_is_named(lacking, change):
    """It is judged by its `distribution`."""
    game = line()
    policy = Both(game, lambda t, s, c: {(1,): 1.0} if c[0] <= 3 else {(0,): 1.0})
    units, heir = ExactUnits(game), type("Heir", (Both,), {})(game, cheapest)
    assert Reader(game, policy, units).alone is None and Reader(game, heir, units).alone is None
    change(policy)
    assert Reader(game, policy, units).alone == f"the policy, of class {type(policy).__name__}, {lacking}"
    certificate = verify(game, policy, CCE())
    single = verify(game, Singly(policy.distribution), CCE())
    assert_equal(certificate, single)
    assert policy.asked == 0


OTHER_ROWS = {
    "turned": lambda ptr, action: (ptr, action[::-1]),
    "other states": lambda ptr, action: (ptr + 1, action),
    "fewer": lambda ptr, action: (ptr, action[1:]),
    "nothing": lambda ptr, action: None,
    "failure": lambda ptr, action: 1 / 0,
}


@pytest.mark.parametrize("kind", OTHER_ROWS)
def test_rows_that_are_not_those_of_the_game_are_not_asked(kind):
    """At the times at which they are not."""

    class Other(Both):
        distribution, rows = Both.distribution, Both.rows

        def joint_actions(self, t):
            return OTHER_ROWS[kind](*super().joint_actions(t)) if t < 10 else super().joint_actions(t)

    game = line()
    policy = Other(game, cheapest)
    assert_equal(verify(game, policy, CCE()), verify(game, Singly(cheapest), CCE()))
    pairs = Subgames.of(game, ExactUnits(game))
    assert policy.asked == sum(map(len, pairs.keys[10:]))


def test_a_class_that_does_not_say_that_several_may_ask_it():
    game = line()
    policy = NotThreads(game, cheapest)
    reader = Reader(game, policy, ExactUnits(game))
    words = "the class NotThreads, which has the policy's distribution and rows, does not say thread_safe = True"
    assert reader.lacking is None and reader.alone == words
    policy = Both(game, cheapest)
    policy.thread_safe = False
    reader = Reader(game, policy, ExactUnits(game))
    assert reader.lacking is None
    assert reader.alone == "the policy, of class Both, has another thread_safe than True"


@pytest.mark.parametrize("kind", [Alone, Spoiled])
def test_several_threads_ask_only_who_says_so(monkeypatch, kind):
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.block", 64)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.least_block", 8)
    game, asked, met = bench.random_game(3, 6, 9), [], threading.Event()

    def note(question, answer):
        asked.append((threading.get_ident(), len(question[1])))
        if len({own for own, _ in asked}) > 1:
            met.set()
        elif kind is Spoiled:
            met.wait(30)  # for another thread
        return answer

    policy = kind(ace.solve(game).policy, *([lambda _, answer: answer] * (kind is Spoiled)))
    policy.policy = Spoiled(policy.policy, note)
    assert verify(game, policy, engine=ace.LocalEngine(threads=4)).ok
    assert met.is_set() == (kind is Spoiled)
    assert max(many for _, many in asked) <= 64


class Reusing:
    """Answers with arrays of its own that it keeps: pointers by length, which are read-only, and one room for rows."""

    thread_safe = False

    def __init__(self, policy):
        self.policy, self.pointers, self.room = policy, {}, np.zeros(0, dtype=np.int64)
        self.states, self.actions, self.tracker, self.concept = (
            policy.states,
            policy.actions,
            policy.tracker,
            policy.concept,
        )

    def distribution(self, t, state, spent):
        return self.policy.distribution(t, state, spent)

    def joint_actions(self, t):
        return self.policy.joint_actions(t)

    def rows(self, t, state, total):
        ptr, row, prob = self.policy.rows(t, state, total)
        same = self.pointers.setdefault(len(state), ptr)
        same.setflags(write=False)
        if len(self.room) < len(row):
            self.room = np.zeros(2 * len(row), dtype=np.int64)
        self.room[: len(row)] = row
        return same if np.array_equal(same, ptr) else ptr, self.room[: len(row)], prob


@pytest.mark.parametrize("name", ["intersection", "drones"])
def test_arrays_that_belong_to_the_policy_are_left_alone(name, monkeypatch):
    monkeypatch.setattr(LIMITS, "least_block", 16)
    monkeypatch.setattr(LIMITS, "block", 16)
    game = ace.catalog.get(name)
    policy = ace.solve(game).policy
    expected = str(ace.verify(game, policy))
    for threads in (1, 3):
        assert str(ace.verify(game, Reusing(policy), engine=ace.LocalEngine(threads=threads))) == expected
