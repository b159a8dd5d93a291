"""Policies of Nash equilibria: products of the players' strategies, their records and their files."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import acegames as ace
from acegames.errors import BadFile
from damaged_files import rewritten
from games import crossing, one_state, pairs


def test_strategies_multiply_to_the_distribution():
    mixed = 0
    for where in pairs(crossing().game):
        own, together = crossing().policy.strategies(*where), crossing().policy.distribution(*where)
        assert [sum(p.values()) for p in own] == pytest.approx([1.0] * len(own), abs=1e-15)
        products = {a: np.prod([p[x] for p, x in zip(own, a, strict=True)]) for a in itertools.product(*own)}
        assert together == pytest.approx(products, abs=1e-15)
        mixed += len(together) > 1
    assert mixed


def test_records_are_by_player():
    for layer in crossing().policy.layers:
        assert layer.offsets is not None
        assert layer.mixed_row.max(initial=0) < layer.offsets[-1]


def test_a_correlated_policy_has_no_strategies():
    solution = ace.solve(ace.catalog.get("intersection"), ace.CE())
    with pytest.raises(ace.InvalidOption, match="drawn together"):
        solution.policy.strategies(*pairs(solution.game)[0])


def test_it_runs_and_simulates():
    rollouts = ace.simulate(crossing().game, crossing().policy, episodes=4000, rng=np.random.default_rng(0))
    assert rollouts.violations == 0
    error = rollouts.returns.std(axis=0) / np.sqrt(4000)
    assert (np.abs(rollouts.returns.mean(axis=0) - crossing().values) < 5 * error + 1e-12).all()
    runner = crossing().policy.start(1)
    assert runner.act() in crossing().policy.distribution(*pairs(crossing().game)[0])


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("nash") / "p"
    crossing().policy.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: np.zeros_like(a),  # one player only
        lambda a: a[::-1].copy(),  # out of order
        lambda a: a + 1,  # beyond the last action
    ],
)
def test_records_that_are_no_strategies_are_refused(tmp_path, content, change):
    (tmp_path / "p").write_bytes(rewritten(content, arrays={"0/mixed_row": change}))
    with pytest.raises(BadFile, match="out of range"):
        ace.Policy.load(tmp_path / "p")


def test_records_that_leave_the_joint_actions_are_refused(tmp_path):
    """Two players who may only match: a product of two actions each is no set of legal joint actions."""
    game = one_state(
        ["a", "b"],
        [(0, 1), (0, 1)],
        lambda t, a: None,
        lambda t, a: (a[1], a[0] - 0.5 * a[1]),
        legal=lambda t, s, a: a != (1, 1),
    )
    solution = ace.solve(game, ace.Nash(), engine=ace.ReferenceEngine())
    solution.policy.save(tmp_path / "p")
    arrays = {
        "0/code": lambda a: np.zeros_like(a),
        "0/mixed_size": lambda a: np.array([4], dtype=np.uint8),
        "0/mixed_row": lambda a: np.arange(4, dtype=np.uint32),
        "0/mixed_prob": lambda a: np.full(4, 0.5),
    }
    (tmp_path / "q").write_bytes(rewritten((tmp_path / "p").read_bytes(), arrays=arrays))
    with pytest.raises(BadFile, match="out of range"):
        ace.Policy.load(tmp_path / "q")


def test_a_file_of_joint_records_cannot_pass_for_a_product(tmp_path):
    ace.solve(ace.catalog.get("intersection"), ace.CE()).policy.save(tmp_path / "p")
    change = rewritten((tmp_path / "p").read_bytes(), lambda h: h["concept"].update(kind="Nash"))
    (tmp_path / "q").write_bytes(change)
    with pytest.raises(BadFile):
        ace.Policy.load(tmp_path / "q")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["actions"].__setitem__(0, [h["actions"][0][0]] * len(h["actions"][0])), "occurs twice"),
        (lambda h: h["concept"].update(objective="nobody"), "objective: got 'nobody'"),
    ],
)
def test_labels_and_objectives_of_files_are_checked(tmp_path, content, change, words):
    (tmp_path / "p").write_bytes(rewritten(content, change))
    with pytest.raises(BadFile, match=words):
        ace.Policy.load(tmp_path / "p")
