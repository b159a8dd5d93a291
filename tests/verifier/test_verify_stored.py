"""Policies that show how they number pairs: read from their tables, and judged as if they were asked."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames.cli import bench
from acegames.safety.cells import Cells
from acegames.verifier import key_kernels, verify
from acegames.verifier.pair_keys import ExactUnits
from acegames.verifier.policy_reader import Reader
from policies import Declares, Shows
from shares import some


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Tables are read however few pairs there are, in small blocks."""
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", -1)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.many", 0)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.block", 16)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.least_block", 4)


@pytest.fixture
def read(monkeypatch):
    """How many pairs were read from tables."""
    count, kernel = [0], key_kernels.read_entries

    def counting(keys, *rest):
        count[0] += len(keys)
        return kernel(keys, *rest)

    monkeypatch.setattr(key_kernels, "read_entries", counting)
    return count


@functools.cache
def solved(seed=0, concept=None):
    game = bench.random_game(3, 6, 10, seed=seed)
    return game, ace.solve(game, concept or ace.CE()).policy


def listed(policy):
    """The same with cells in lists instead of bits."""

    def of(space):
        return replace(space, cells=Cells.from_keys(space.cells.listed(space.total)))

    layers = tuple(replace(x, space=of(x.space)) for x in policy.layers)
    reached = policy.reached and replace(policy.reached, layers=tuple(map(of, policy.reached.layers)))
    return replace(policy, layers=layers, reached=reached)


def everything(certificate):
    names = ("regret", "share", "values", "tol", "rounding", "max_spent")
    numbers = tuple(np.asarray(getattr(certificate, name), dtype=float).tobytes() for name in names)
    return str(certificate), certificate.problems, certificate.where, certificate.share_where, numbers


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE("egalitarian")], ids=["CE", "CCE"])
@pytest.mark.parametrize("kind", ["bits", "lists", "all that lie between"])
def test_tables_say_what_the_policy_says(read, seed, concept, kind):
    game, policy = solved(seed, concept)
    if kind == "lists":
        policy = listed(policy)
    if kind == "all that lie between":
        policy = replace(policy, reached=None)
    found = verify(game, policy)
    assert found.ok and read[0] > 50
    read[0] = 0
    assert everything(found) == everything(verify(game, Declares(policy)))
    assert read[0] == 0


def test_tables_that_count_nothing_are_read(read):
    """No budget can bind, so that all spendings of a state are one cell."""
    game = bench.random_game(3, 6, 999)
    policy = ace.solve(game, ace.CE()).policy
    found = verify(game, policy)
    assert not policy.dims and found.ok and read[0] > 10
    assert everything(found) == everything(verify(game, Declares(policy)))


def other_code(layer, rng):
    return {"code": rng.integers(1, 10, size=len(layer.code)).astype(layer.code.dtype)}


def code_beyond(layer, _):
    return {"code": np.where(layer.code > 0, 200, 0).astype(layer.code.dtype)}


def fewer_codes(layer, _):
    return {"code": layer.code[: len(layer.code) // 2]}


def other_chances(layer, rng):
    return {"mixed_prob": layer.mixed_prob * rng.uniform(0.5, 1.5, size=len(layer.mixed_prob))}


def no_chances(layer, _):
    return {"mixed_prob": np.zeros_like(layer.mixed_prob)}


def fewer_cells(layer, rng):
    bits = layer.cells.bits & rng.integers(0, 256, size=layer.cells.bits.shape, dtype=np.uint8)
    return {"space": replace(layer.space, cells=Cells.from_bits(bits))}


def smaller_boxes(layer, _):
    return {"space": replace(layer.space, size=np.maximum(layer.space.size - 1, 1))}


def narrower_bounds(layer, _):
    return {"space": replace(layer.space, most=layer.space.least)}


def far_boxes(layer, _):
    return {"space": replace(layer.space, base=layer.space.base + 10**9)}


SPOILED = [
    other_code, code_beyond, fewer_codes, other_chances, no_chances, fewer_cells, smaller_boxes, narrower_bounds, far_boxes,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda x: x.__name__)
@pytest.mark.parametrize("seed", some(range(2), of=2))
def test_spoiled_tables_are_found_out(spoil, seed):
    """Whatever is wrong in the arrays, the verdict is that on the policy's own answers."""
    game, policy = solved(seed)
    layers = list(policy.layers)
    layers[3] = replace(layers[3], **spoil(layers[3], np.random.default_rng(seed)))
    spoiled = replace(policy, layers=tuple(layers))
    found = [verify(game, spoiled, engine=ace.LocalEngine(threads=n)) for n in (1, 2, 5)]
    assert not found[0].ok
    assert len({everything(x) for x in found}) == 1
    assert everything(found[0]) == everything(verify(game, Declares(spoiled)))


def changes(policy):
    def table(**fields):
        def numbering(t):
            first, *others = policy.internals.numbering(t)
            return (first._replace(**fields), *others)

        return {"numbering": numbering}

    def answers(*found):
        return {"answers": lambda t, state, pair: found}

    return {
        "nothing": {"numbering": lambda t: None},
        "fails": {"numbering": lambda t: 1 // 0},
        "too few": {"numbering": lambda t: (1, 2)},
        "other rows": {
            "numbering": lambda t: (*policy.internals.numbering(t)[:3], policy.internals.numbering(t)[3][::-1])
        },
        "small integers": table(lo=np.zeros((3, 2), dtype=np.int32)),
        "constraints beyond": table(dims=np.array([0, 7])),
        "no bytes": table(bits=np.zeros((4, 0), dtype=np.uint8)),
        "no counts": table(counts=np.zeros(0, dtype=np.int64)),
        "no answers": answers(None, None, None),
        "rows beyond": {"answers": lambda t, s, p: (np.arange(len(p) + 1), np.full(len(p), 10**6), np.ones(len(p)))},
        "pointers beyond": {
            "answers": lambda t, s, p: (np.arange(len(p) + 1) * 2, np.zeros(len(p), dtype=np.int64), np.ones(len(p)))
        },
    }


@pytest.mark.parametrize("change", changes(None))
def test_tables_that_are_no_tables_are_not_read(change):
    game, policy = solved()
    found = verify(game, Shows(policy, **changes(policy)[change]))
    assert everything(found) == everything(verify(game, Declares(policy)))


def test_answers_that_lookup_contradicts_are_named():
    """Wherever that is seen, and whatever is found about the answers."""
    game, policy = solved()

    def first(t, s, p):
        return np.arange(len(p) + 1), policy.layers[t].row_ptr[s], np.ones(len(p))

    found = [verify(game, Shows(policy, answers=first), engine=ace.LocalEngine(threads=n)) for n in (1, 3)]
    assert not found[0].ok and "`answers` do not say what its `lookup` says" in str(found[0])
    assert everything(found[0]) == everything(found[1])


def test_a_class_that_replaces_an_answer_is_not_read_from_tables(read):
    game, policy = solved()

    class Own(ace.Policy):
        def distribution(self, t, state, spent):
            return super().distribution(t, state, spent)

        def lookup(self, t, state, total):
            return super().lookup(t, state, total)

    class Half(ace.Policy):
        pass

    class Tables(ace.Policy):
        @property
        def internals(self):
            return super().internals

    for kind in (Own, Half, Tables):
        mine = kind(**{name: getattr(policy, name) for name in policy.__dataclass_fields__})
        assert verify(game, mine).ok
        assert read[0] == 0
    assert Reader(game, policy, ExactUnits(game))._bulk.numbering(0) is not None
