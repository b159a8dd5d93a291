"""Distributions in game files: written, read back, and nothing but numbers and known names let in."""

from __future__ import annotations

import dataclasses
import json
import sys
from fractions import Fraction

import numpy as np
import pytest
import yaml
from scipy import stats

import acegames as ace
from acegames.errors import BadFile, InvalidGame, MissingExtra
from acegames.files import games as files
from acegames.files.game_archive import game_from_archive, game_to_archive
from game_files import SUFFIXES, changed, load_text
from games import alone

SOURCES = [
    stats.uniform(0.1, 0.2),
    stats.beta(2, 0.5, loc=-1),
    stats.truncnorm(-np.inf, 1, loc=3, scale=0.1),
    stats.weibull_max(1),
    stats.randint(0, 4),
    stats.binom(5, 0.25, loc=0.1),
]


def mixed_game(sources=SOURCES, scale=None):
    def cost(k):
        one = ace.random_cost(sources[k % len(sources)])
        if scale is not None:
            one = dataclasses.replace(one, scale=scale, upper=one.upper * scale, lower=one.lower * scale)
        return one

    return alone(
        lambda t, s, a: (
            [(1, s, {"fuel": Fraction(1, 3), "risk": 0.5})]
            if a == (len(sources),)
            else [(0.5, s, {"fuel": cost(a[0])}), (0.5, "end", {"fuel": t, "risk": cost(a[0] + 1)})]
        ),
        actions=range(len(sources) + 1),
        reward=lambda t, s, a: [float(a[0])],
        budget={"fuel": 9, "risk": 9.5},
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("scale", [None, Fraction(9, 10)])
def test_what_is_saved_comes_back(tmp_path, suffix, scale):
    game = mixed_game(scale=scale)
    game.save(tmp_path / f"game{suffix}")
    again = ace.load(tmp_path / f"game{suffix}")
    assert again.digest == game.digest
    assert again.cost_values == game.cost_values
    for one, other in zip(game.cost_values[0], again.cost_values[0], strict=True):
        if isinstance(one, ace.RandomCost):
            assert (one.upper, one.lower, one.scale) == (other.upper, other.lower, other.scale)
            rngs = np.random.default_rng(1), np.random.default_rng(1)
            assert one.sample(3, rngs[0]).tolist() == other.sample(3, rngs[1]).tolist()


def test_tables_beside_a_text_hold_distributions_too(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TEXT_LIMIT", 1)
    game = mixed_game()
    game.save(tmp_path / "game.yaml")
    assert len(list(tmp_path.iterdir())) == 2
    assert ace.load(tmp_path / "game.yaml").digest == game.digest


def with_cost(cost, **more):
    return changed(rules=[{"reward": [0, 0], "next": "road", "cost": cost}], **more)


@pytest.mark.parametrize("name", ["game.yaml", "game.json"])
@pytest.mark.parametrize("short", [True, False])
def test_a_distribution_as_people_write_it(tmp_path, name, short):
    entry = {"distribution": "uniform", "loc": 0.1, "scale": 0.2}
    game = load_text(tmp_path, with_cost(entry if short else {"risk": entry}), name)
    (cost,) = game.cost_values[0]
    assert cost == ace.random_cost(stats.uniform(0.1, 0.2))
    assert (cost.lower, cost.upper) == (Fraction(1, 10), Fraction(3, 10))


def test_infinite_parameters(tmp_path):
    text = with_cost({"distribution": "truncnorm", "a": "-inf", "b": 1})
    assert load_text(tmp_path, text).cost_values[0][0].lower == -np.inf
    document = yaml.safe_load(text)
    document["rules"][0]["cost"]["a"] = -np.inf
    assert load_text(tmp_path, yaml.safe_dump(document)).digest == load_text(tmp_path, text).digest


def test_a_constraint_may_be_called_distribution(tmp_path):
    text = with_cost({"distribution": 1}, constraints=["distribution"], budget={"distribution": 9})
    assert load_text(tmp_path, text).cost_values == ((1,),)
    text = with_cost(
        {"distribution": {"distribution": "uniform"}}, constraints=["distribution"], budget={"distribution": 9}
    )
    assert load_text(tmp_path, text).cost_values[0][0] == ace.random_cost(stats.uniform())


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ({"distribution": "unifrom"}, "unknown distribution 'unifrom', did you mean 'uniform'"),
        ({"distribution": "rv_histogram"}, "unknown distribution"),
        ({"distribution": "gaussian_kde"}, "unknown distribution"),
        ({"distribution": "__class__"}, "unknown distribution"),
        ({"distribution": "os.system"}, "unknown distribution"),
        ({"distribution": ["uniform"]}, "must be the name"),
        ({"distribution": {"distribution": "uniform"}}, "must be the name"),
        ({"distribution": "uniform", "scale": "2"}, "scale: '2', must be a number"),
        ({"distribution": "uniform", "scale": "__import__('os')"}, "must be a number"),
        ({"distribution": "uniform", "scale": [1] * 100_000}, "must be a number"),
        ({"distribution": "uniform", "scale": True}, "must be a number"),
        ({"distribution": "uniform", "scale": None}, "must be a number"),
        ({"distribution": "uniform", "scale": 10**400}, "too large"),
        ({"distribution": "uniform", "scale": -1}, "are its parameters valid"),
        ({"distribution": "uniform", "scale": "inf"}, "upper bound"),
        ({"distribution": "uniform", "size": 10**9}, "unknown key 'size'"),
        ({"distribution": "uniform", "times": 0}, "must be above 0"),
        ({"distribution": "uniform", "times": "x"}, "is not a finite number"),
        ({"distribution": "beta", "a": 1}, "the key 'b' is missing"),
        ({"distribution": "genhalflogistic", "c": 0}, "parameters are refused"),
        ({"distribution": "betabinom", "n": 10**15, "a": 1, "b": 3.7}, "unknown distribution"),
        ({"distribution": "norm"}, "no finite upper bound.*no budget could hold"),
        ({"distribution": "expon", "scale": 2}, "no finite upper bound"),
        ([{"distribution": "uniform"}] * 1000, "has 1,000 entries"),
    ],
)
def test_hostile_entries_are_refused(tmp_path, cost, message):
    with pytest.raises(InvalidGame, match=rf"(?s)rule 1: cost.*{message}") as caught:
        load_text(tmp_path, with_cost(cost), "game.json")
    assert len(str(caught.value)) < 1000


def test_a_damaged_archive_is_refused():
    header, arrays = game_to_archive(mixed_game())
    for entry in ({"distribution": "uniform", "scale": 3.0}, {"distribution": "norm"}, {"x": 1}, None, [1]):
        values = json.loads(json.dumps(header["cost_values"]))
        values[0][-1] = entry
        with pytest.raises(BadFile, match="damaged"):
            game_from_archive({**header, "cost_values": values}, arrays)


class Mine:
    upper, lower = 1, 0

    def cdf(self, x):
        return np.clip(x, 0, 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_object_of_its_own_cannot_be_written(tmp_path, suffix):
    with pytest.raises(InvalidGame, match=r"Mine.*cannot be written to a file; only distributions of scipy.stats can"):
        mixed_game([Mine()]).save(tmp_path / f"game{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_without_scipy_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtra, match=r"pip install 'acegames\[continuous\]'"):
        load_text(tmp_path, with_cost({"distribution": "uniform"}))
    assert load_text(tmp_path, with_cost(1)).cost_values == ((1,),)
