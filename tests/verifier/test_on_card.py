"""Policies judged on a GPU that is emulated: the certificate must be that of the processors, in every field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames import CCE, CE, Nash
from acegames.cli.bench import random_game
from acegames.model.layers import with_fields
from acegames.system.cuda_code import kind_of
from acegames.verifier.basics import LIMITS
from acegames.verifier.on_gpu import KERNELS, STRIP, Gaining, example_arguments
from acegames.verifier.pair_kernels import extremes
from elsewhere import assert_equal
from emulated_gpu import EmulatedCard, EmulatedGPU, MeasuredCard, Recording, verify_gain
from policies import Both, RandomAnswers, drawn
from ways import drawn_game


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


def solved(game):
    return game, {concept: ace.solve(game, concept).policy for concept in (CE(), CCE())}


@pytest.fixture(scope="module")
def dense():
    return solved(random_game(4, 6, 12))


@pytest.fixture(scope="module")
def small():
    """What interpreted kernels (`reliability/mutate.py`) judge in a second."""
    return solved(random_game(3, 3, 6))


@pytest.mark.parametrize("chunk", [64, 2**22])
@pytest.mark.parametrize("concept", [CE(), CCE()], ids=repr)
def test_many_pairs(on_both, monkeypatch, dense, concept, chunk):
    """Several strips and chunks of answers."""
    monkeypatch.setattr(LIMITS, "chunk", chunk)
    game, policies = dense
    card = EmulatedCard()
    found, where = on_both(game, policies[concept], card=card)
    assert where == ON_CARD and found.ok and found.pairs > 2_000
    assert (card.launched.count("verify_judge") > game.horizon) == (chunk == 64)
    wrong, where = on_both(game, played_otherwise(policies[concept], np.random.default_rng(5)))
    assert where == ON_CARD and not wrong.ok


def test_gains_are_found_on_the_card(on_both, small):
    """Another correlated equilibrium's policy is stable under one concept, and not under the other."""
    game, policies = small
    found, where = on_both(game, policies[CCE()], CE())
    assert where == ON_CARD and not found.ok and found.regret.max() > 1e-3


def test_small_games_of_every_kind(on_both):
    """Rows that keep the budgets may lead to where no pair is, or only such as are stuck later."""
    where = []
    for seed in range(12):
        game = drawn_game(seed)
        where.append(on_both(game, Both(game, RandomAnswers(game, seed)), [CE(), CCE()][seed // 6 % 2])[1])
    assert where.count(ON_CARD) > 6


@pytest.mark.parametrize("pairs", [1, STRIP, 3 * STRIP, 3 * STRIP + 1])
def test_largest_gains_of_strips(pairs):
    """The first of all by state and then by what was spent, wherever it is; of many that are equal, too."""
    states, line = 3, 10
    keys = 5 + np.sort(np.random.default_rng(pairs).permutation(2 * pairs)[:pairs])
    order = np.lexsort((keys, keys // line % states))
    for at in {0, pairs // 2, min(STRIP - 1, pairs - 1), pairs - 1}:
        values = np.random.default_rng(at).integers(0, 2, (12, pairs)).astype(float)
        values[2, at] = 9.0
        strips, by_key = -(-pairs // STRIP), np.full((12, 2 * pairs), np.nan)
        by_key[:, keys - 5] = values
        outputs = np.zeros((strips, 4), int), np.zeros((strips, 2)), np.zeros((12, strips, 4))
        found = Gaining(keys, by_key, 5, states, line, *outputs)
        verify_gain(128, 1, np.int64(0), np.int64(0), found)
        numbers = np.unique(found.numbers)
        numbers = numbers[numbers >= 0]
        whole, some = ((np.zeros(2, int), np.zeros(2, int), np.zeros(2)) for _ in range(2))
        extremes(values, keys, states, line, 0, pairs, *whole)
        extremes(values[:, numbers], keys[numbers], states, line, 0, len(numbers), *some)
        assert whole[0].tolist() == numbers[some[0]].tolist() and whole[0][0] == at
        assert whole[1].tolist() == np.where(some[1] < 0, -1, numbers[some[1]]).tolist()
        assert whole[2].tolist() == found.off.max(axis=0).tolist()
        other = values[3] - values[1]
        best = order[other[order] == max(other)][0]
        assert whole[0][1] == best or max(other) <= 0
        for number, picked in zip(found.numbers.reshape(-1), found.picked.reshape(12, -1).T, strict=True):
            assert number < 0 or picked.tolist() == values[:, number].tolist()


def test_rounded_costs_and_large_rewards(on_both, small):
    """The game as the policy counts it; and a common part of the rewards, which is taken out."""
    game, _ = small
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


def test_policies_at_fault(on_both, small):
    """A budget is broken, probabilities do not sum to one, pairs are missing: the words are those of the processors."""
    game, policies = small
    policy = policies[CE()]
    found, where = on_both(game, at_fault(policy, 1))
    assert not found.ok and "after which no policy keeps every budget" in str(found)
    assert where == "verifying on the processors: the policy is at fault, or its values overflow"
    layer = next(x for x in policy.layers[1:] if len(x.mixed_prob))
    less = replace(layer, mixed_prob=layer.mixed_prob * 0.5)
    halved = replace(policy, layers=tuple(less if x is layer else x for x in policy.layers))
    found, where = on_both(game, halved)
    assert "must sum to 1" in str(found) and where.startswith("verifying on the processors")


def test_values_that_overflow(on_both):
    game = random_game(2, 3, 6)
    layers = tuple(replace(layer, reward=np.sign(layer.reward) * 1.7e308) for layer in game.layers)
    huge = with_fields(game, layers=layers)
    assert on_both(game, drawn(game, 3))[1] == ON_CARD
    assert (
        on_both(huge, drawn(huge, 3))[1]
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
def test_what_the_card_does_not_do(small, caplog, change, words):
    caplog.set_level("INFO", logger="acegames")
    game, policies = small
    found = ace.verify(game, policies[CE()], engine=EmulatedGPU(**{"smallest": 0, **change}))
    assert f"acegames: verifying on the processors: {words}" in caplog.messages
    assert_equal(found, ace.verify(game, policies[CE()]))


def test_memory_is_kept_to(on_both, small, monkeypatch):
    """With less of it, answers come in smaller chunks; where times are many and pairs few, ceilings of rows are most of it."""
    monkeypatch.setattr(LIMITS, "least_chunk", 1)
    long, seen = random_game(1, 40, 1, actions=4), set()
    for game, policy, most in ((small[0], small[1][CE()], 90_000), (long, ace.solve(long, CE()).policy, 24_000)):
        for memory in range(most // 4, most, most // 8):
            card = MeasuredCard()
            assert (on_both(game, policy, card=card, memory=memory)[1] == ON_CARD) == bool(card.launched)
            assert card.most <= memory
            seen.add(np.sign(card.launched.count("verify_judge") - game.horizon))
    assert seen == {-1, 0, 1}


def test_independent_play_and_large_stage_games(on_both):
    game = ace.catalog.get("intersection")
    assert "independently" in on_both(game, ace.solve(game, Nash()).policy)[1]
    wide = random_game(2, 2, 5, actions=9)
    assert "large stage games" in on_both(wide, ace.solve(wide, CCE()).policy)[1]


def test_progress_is_told_of_every_time(small):
    game, policies = small
    told = []
    ace.verify(game, policies[CE()], engine=EmulatedGPU(smallest=0), progress=told.append)
    assert [x.layers_done for x in told] == list(range(1, game.horizon + 1))
    assert told[-1].pairs_done == ace.verify(game, policies[CE()]).pairs


def test_kernels_are_compiled_ahead_for_what_they_are_given(small):
    game, policies = small
    ace.verify(game, policies[CE()], engine=EmulatedGPU(smallest=0, card=(card := Recording())))
    for name in KERNELS:
        assert kind_of(card.given[f"verify_{name}"][1]) == kind_of(example_arguments(name))


def test_engines_that_are_none(small):
    game, policies = small
    with pytest.raises(ace.InvalidOption, match="call it"):
        ace.verify(game, policies[CE()], engine=ace.GPUEngine)
