"""Policies judged on a GPU that is emulated: the certificate must be that of the processors, in every field."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from acegames.verifier.gpu_functions import STRIP, Gaining

import acegames as ace
import oracle
from acegames import CCE, CE, Nash
from acegames.cli.bench import random_game
from acegames.model.layers import with_fields
from acegames.safety.cells import Cells
from acegames.verifier.basics import LIMITS
from acegames.verifier.pair_kernels import extremes
from acegames.verifier.pair_keys import ExactUnits, PairKeys
from acegames.verifier.policy_reader import Reader
from elsewhere import assert_equal
from emulated_gpu import EmulatedCard, EmulatedGPU, MeasuredCard, verify_gain
from policies import Drawn, Safe, Shows, Wavering
from random_games import changing_game

MANY = "acegames.verifier.basics.LIMITS.many"


@pytest.fixture(autouse=True)
def not_together(monkeypatch):
    """The processors judge the times of small games one by one, as they do those of large ones."""
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", -1)


@pytest.fixture
def on_both(caplog):
    """verify(game, policy, concept) on the card and on processors, which agree; and what is said of where it ran."""
    caplog.set_level("INFO", logger="acegames")

    def run(game, policy, concept=None, *, card=None, **options):
        caplog.clear()
        engine = EmulatedGPU(smallest=0, card=card, **options)
        found = ace.verify(game, policy, concept, engine=engine)
        said = [x for x in caplog.messages if "verified on" in x or "verifying on" in x]
        assert_equal(found, ace.verify(game, policy, concept))
        return found, said[-1].removeprefix("acegames: ")

    return run


ON_CARD = "verified on the GPU (emulated)"


def drawn_game(seed):
    rng = np.random.default_rng([seed, 11])
    return [
        lambda: oracle.random_game(rng, rewards="dyadic", stationary=False),
        lambda: oracle.random_game(rng, reservoirs=True),
        lambda: changing_game(rng),
        lambda: oracle.random_game(rng, players=int(rng.integers(1, 4)), constraints=1),
        lambda: oracle.random_game(rng, horizon=4, constraints=2, players=2),
    ][seed % 5]()


def played_otherwise(policy, rng):
    """Other probabilities in some records, and another joint action at some pairs."""
    layers = []
    for layer in policy.layers:
        prob, code = layer.mixed_prob.copy(), layer.code.copy()
        for end, size in zip(np.cumsum(layer.mixed_size), layer.mixed_size, strict=True):
            if rng.random() < 0.3:
                own = prob[end - size : end] * rng.random(size)
                prob[end - size : end] = own / own.sum()
        if len(code) and rng.random() < 0.2:
            k = int(rng.integers(len(code)))
            code[k] = min(code[k], 1)
        layers.append(replace(layer, mixed_prob=prob, code=code))
    return replace(policy, layers=tuple(layers))


FEW = (4, 9, 12, 14, 29, 70)
MORE = [pytest.param(range(k, k + 50), marks=pytest.mark.slow, id=f"{k}+50") for k in range(0, 200, 50)]


@pytest.mark.parametrize("seeds", [pytest.param(FEW, id="few"), *MORE])
def test_random_games(on_both, monkeypatch, seeds):
    """One to three players, reservoirs, schedules, layers that change; policies that are solved, drawn and wrong."""
    seen, passes = set(), set()
    for seed in seeds:
        game, rng, concept = drawn_game(seed), np.random.default_rng(seed), [CE(), CCE()][seed // 5 % 2]
        policies = [Drawn(game, seed, faults=float(rng.choice([0.0, 0.02, 0.3])))]
        with suppress(ace.AceError):
            solved = ace.solve(game, concept).policy
            policies += [solved, played_otherwise(solved, rng), Wavering(solved, fails=False), Safe(solved)]
        for policy in policies:
            monkeypatch.setattr(MANY, int(rng.choice([0, 4, 512])))
            card = EmulatedCard()
            found, where = on_both(game, policy, concept, card=card)
            seen.add((where == ON_CARD, bool(found.ok)))
            if where == ON_CARD:
                full = bool(PairKeys.of(game, ExactUnits(game)).aliased)  # reservoirs that may be charged beyond full
                passes.add((full, card.launched.count("verify_pass") > 2 * game.horizon))
    assert len(seen) == 4 and len(passes) >= 3, (seen, passes)


@pytest.fixture(scope="module")
def dense():
    game = random_game(4, 6, 12)
    return game, {concept: ace.solve(game, concept).policy for concept in (CE(), CCE())}


@pytest.mark.parametrize("chunk", [64, 2**22])
@pytest.mark.parametrize("concept", [CE(), CCE()], ids=repr)
def test_many_pairs(on_both, monkeypatch, dense, concept, chunk):
    """Several words, strips and chunks of answers; small times are asked, large ones read from tables."""
    monkeypatch.setattr(LIMITS, "chunk", chunk)
    monkeypatch.setattr(LIMITS, "asked", 50)
    game, policies = dense
    card = EmulatedCard()
    found, where = on_both(game, policies[concept], card=card)
    assert where == ON_CARD and found.ok and found.pairs > 2_000
    assert (card.launched.count("verify_judge") > game.horizon) == (chunk == 64)
    wrong, where = on_both(game, played_otherwise(policies[concept], np.random.default_rng(5)))
    assert not wrong.ok


def test_gains_are_found_on_the_card(on_both, dense):
    """Another correlated equilibrium's policy is stable under one concept, and not under the other."""
    game, policies = dense
    found, where = on_both(game, policies[CCE()], CE())
    assert where == ON_CARD and not found.ok and found.regret.max() > 1e-3


@pytest.mark.parametrize("pairs", [1, STRIP, 3 * STRIP, 3 * STRIP + 1])
def test_largest_gains_of_strips(pairs):
    """The first of all, wherever it is; of many that are equal, too."""
    for at in {0, pairs // 2, min(STRIP - 1, pairs - 1), pairs - 1}:
        values = np.random.default_rng(at).integers(0, 2, (pairs, 12)).astype(float)
        values[at, 2] = 9.0
        strips = -(-pairs // STRIP)
        found = Gaining(values, np.zeros((strips, 4), int), np.zeros((strips, 2)), np.zeros((strips, 4, 12)))
        verify_gain(128, 1, np.int64(0), np.int64(0), found)
        numbers = np.unique(found.numbers)
        numbers = numbers[numbers >= 0]
        whole, some = ((np.zeros(2, int), np.zeros(2, int), np.zeros(2)) for _ in range(2))
        extremes(values, *whole)
        extremes(values[numbers], *some)
        assert whole[0].tolist() == numbers[some[0]].tolist() and whole[0][0] == at
        assert whole[1].tolist() == np.where(some[1] < 0, -1, numbers[some[1]]).tolist()
        assert whole[2].tolist() == found.off.max(axis=0).tolist()
        for number, picked in zip(found.numbers.reshape(-1), found.picked.reshape(-1, 12), strict=True):
            assert number < 0 or picked.tolist() == values[number].tolist()


def listed(policy):
    def of(space):
        return replace(space, cells=Cells.from_keys(space.cells.listed(space.total)))

    layers = tuple(replace(x, space=of(x.space)) for x in policy.layers)
    return replace(policy, layers=layers, reached=None)


def test_tables_of_every_kind(on_both, monkeypatch, dense):
    """Cells in lists, and policies that answer everything between; answers by cell and by number."""
    monkeypatch.setattr(MANY, 0)
    game, policies = dense
    for policy in (listed(policies[CE()]), replace(policies[CE()], reached=None)):
        assert on_both(game, policy)[1] == ON_CARD
    by_cell = {layer.by_cell for layer in policies[CE()].layers}
    assert by_cell == {True, False}


def test_rounded_costs_and_large_rewards(on_both, dense):
    """The game as the policy counts it; and a common part of the rewards, which is taken out."""
    game, _ = dense
    rounded = ace.solve(game, CE(), epsilon=4).policy
    assert on_both(game, rounded)[1] == ON_CARD
    layers = tuple(replace(layer, reward=layer.reward + np.array([1e9, -3e8])) for layer in game.layers)
    raised = with_fields(game, layers=layers)
    assert on_both(raised, ace.solve(raised, CE()).policy)[1] == ON_CARD


# -- what is left to the processors ---------------------------------------------------------------


def at_fault(policy, t):
    """The first joint action everywhere at one time, whether it is safe or not; the last where it is the first."""
    layer = policy.layers[t]
    code = np.where(layer.code == 1, layer.row_ptr[1], 1).astype(layer.code.dtype)
    nothing = layer.mixed_size[:0], layer.mixed_row[:0], layer.mixed_prob[:0]
    size, row, prob = nothing
    changed = replace(layer, code=code, mixed_size=size, mixed_row=row, mixed_prob=prob)
    return replace(policy, layers=(*policy.layers[:t], changed, *policy.layers[t + 1 :]))


def test_policies_at_fault(on_both, dense):
    """A budget is broken, probabilities do not sum to one, pairs are missing: the words are those of the processors."""
    game, policies = dense
    policy = policies[CE()]
    found, where = on_both(game, at_fault(policy, 3))
    assert not found.ok and "after which no policy keeps every budget" in str(found)
    assert where == "verifying on the processors: the policy is at fault, or its values overflow"
    layer = next(x for x in policy.layers[3:] if len(x.mixed_prob))
    less = replace(layer, mixed_prob=layer.mixed_prob * 0.5)
    halved = replace(policy, layers=tuple(less if x is layer else x for x in policy.layers))
    found, where = on_both(game, halved)
    assert "must sum to 1" in str(found) and where.startswith("verifying on the processors")


@pytest.mark.parametrize("t", [1, 4])
@pytest.mark.parametrize("kept", ["answers", "reached"])
def test_pairs_that_are_missing(on_both, monkeypatch, dense, kept, t):
    """In the table of answers, or in the other one that must have them too: all but the first of one time."""
    monkeypatch.setattr(MANY, 0)
    monkeypatch.setattr(Reader, "limit", lambda *_: 0)  # so that none is asked for before
    game, policies = dense
    policy = policies[CE()]
    layers = list(policy.layers if kept == "answers" else policy.reached.layers)
    space = layers[t].space if kept == "answers" else layers[t]
    fewer = replace(space, cells=Cells.from_keys(space.cells.listed(space.total)[:1]))
    layers[t] = replace(layers[t], space=fewer) if kept == "answers" else fewer
    changed = {"layers": tuple(layers)} if kept == "answers" else {"reached": replace(policy.reached, layers=layers)}
    found, where = on_both(game, replace(policy, **changed))
    assert not found.ok and where.startswith("verifying on the processors")


def test_tables_that_contradict_the_policy(on_both, monkeypatch, dense):
    """What they say is judged, and the sentence is about the same pair."""
    monkeypatch.setattr(MANY, 0)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.compared", 400)
    game, policies = dense
    policy = policies[CE()]

    def turned_around(t, state, pair):
        ptr, row, prob = policy.internals.answers(t, state, pair)
        return ptr, row, np.concatenate([prob[begin:end][::-1] for begin, end in pairwise(ptr)])

    found, where = on_both(game, Shows(policy, answers=turned_around))
    assert where == ON_CARD and "`answers` do not say what its `lookup` says" in str(found)


def test_values_that_overflow(on_both):
    game = random_game(2, 3, 6)
    layers = tuple(replace(layer, reward=np.sign(layer.reward) * 1.7e308) for layer in game.layers)
    huge = with_fields(game, layers=layers)
    assert on_both(game, Drawn(game, 3))[1] == ON_CARD
    assert (
        on_both(huge, Drawn(huge, 3))[1]
        == "verifying on the processors: the policy is at fault, or its values overflow"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"smallest": 10**6}, "a small game"),
        ({"memory": 10**4}, "the GPU's memory is too small"),
        ({"memory": 4 * 10**5}, "the GPU's memory is too small"),
    ],
)
def test_what_the_card_does_not_do(dense, caplog, change, words):
    caplog.set_level("INFO", logger="acegames")
    game, policies = dense
    found = ace.verify(game, policies[CE()], engine=EmulatedGPU(**{"smallest": 0, **change}))
    assert f"acegames: verifying on the processors: {words}" in caplog.messages
    assert_equal(found, ace.verify(game, policies[CE()]))


def test_memory_is_kept_to(on_both, dense, monkeypatch):
    """With less of it, answers come in smaller chunks."""
    monkeypatch.setattr(LIMITS, "least_chunk", 1)
    game, policies = dense
    for memory, chunks in ((200_000, True), (10**8, False)):
        card = MeasuredCard()
        assert on_both(game, policies[CE()], card=card, memory=memory)[1] == ON_CARD
        assert card.most <= memory
        assert (card.launched.count("verify_judge") > game.horizon) == chunks


def test_independent_play_and_large_stage_games(on_both):
    game = ace.catalog.get("intersection")
    assert "independently" in on_both(game, ace.solve(game, Nash()).policy)[1]
    wide = random_game(2, 2, 5, actions=9)
    assert "large stage games" in on_both(wide, ace.solve(wide, CCE()).policy)[1]


def test_progress_is_told_of_every_time(dense):
    game, policies = dense
    told = []
    ace.verify(game, policies[CE()], engine=EmulatedGPU(smallest=0), progress=told.append)
    assert [x.layers_done for x in told] == list(range(1, game.horizon + 1))
    assert told[-1].pairs_done == ace.verify(game, policies[CE()]).pairs


def test_engines_that_are_none(dense):
    game, policies = dense
    with pytest.raises(ace.InvalidOption, match="call it"):
        ace.verify(game, policies[CE()], engine=ace.GPUEngine)
