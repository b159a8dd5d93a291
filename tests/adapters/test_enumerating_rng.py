"""The generator that lists what can be drawn, against known laws and against numpy's own draws.

Every way to draw is listed rightly or refused, alone and in environments of every kind.
"""

from __future__ import annotations

import bisect
import math
import random
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

import acegames as ace
from acegames.adapters import pettingzoo as pz
from acegames.adapters.environments.enumerating_rng import EnumeratingRNG, TooManyBranches
from acegames.adapters.environments.symbolic_uniform import CannotEnumerate
from acegames.adapters.gymnasium import from_env
from drawing_envs import DrawsAlone, DrawsAtOnce, DrawsInTurn

CUMULATED = np.array([0.2, 0.5, 1.0])
DRAWS = {
    "integers": lambda g: int(g.integers(3)),
    "integers between": lambda g: int(g.integers(-1, 2, endpoint=True)),
    "integers, several": lambda g: tuple(g.integers(0, [2, 3]).tolist()),
    "integers, size": lambda g: tuple(g.integers(2, size=3).tolist()),
    "choice of a number": lambda g: int(g.choice(4)),
    "choice of equal entries": lambda g: str(g.choice(["a", "b", "b"])),
    "choice with probabilities": lambda g: int(g.choice([5, 6, 7], p=[0.1, 0.0, 0.9])),
    "choice of several": lambda g: tuple(g.choice(["x", "y"], size=2).tolist()),
    "choice of rows": lambda g: tuple(g.choice([[1, 2], [3, 4], [3, 4]]).tolist()),
    "choice without replacement": lambda g: tuple(g.choice(3, 2, replace=False).tolist()),
    "choice without replacement, weighted": lambda g: tuple(g.choice(3, 2, replace=False, p=[0.5, 0.3, 0.2]).tolist()),
    "permutation": lambda g: tuple(g.permutation(3).tolist()),
    "permutation of rows": lambda g: tuple(map(tuple, g.permutation([[1, 2], [3, 4]]).tolist())),
    "permuted": lambda g: tuple(g.permuted([1, 1, 2]).tolist()),
    "shuffle": lambda g: shuffled(g, [1, 2, 3]),
    "shuffle an array": lambda g: shuffled(g, np.array([1, 2, 2])),
    "random below": lambda g: bool(g.random() < 0.1),
    "random above numpy's number": lambda g: bool(np.float64(0.3) > g.random()),
    "random against an array": lambda g: int(np.argmax(g.random() < CUMULATED)),
    "an array against random": lambda g: int(np.argmax(g.random() < CUMULATED)),
    "random, searched": lambda g: int(np.searchsorted(CUMULATED, g.random())),
    "random, bisected": lambda g: bisect.bisect(CUMULATED.tolist(), g.random()),
    "random, asked twice": lambda g: asked(g.random()),
    "random, several": lambda g: int((g.random(3) < 0.25).sum()),
    "random, turned around": lambda g: bool(1 - g.random() < 0.2),
    "random, cut": lambda g: int(3 * g.random()),
    "uniform": lambda g: bool(g.uniform(-1, 3) < 0),
    "uniform, cut": lambda g: int(g.uniform(-1.5, 1.5)),
    "uniform, floor": lambda g: math.floor(g.uniform(-1.5, 1.5)),
    "uniform, ceil": lambda g: math.ceil(g.uniform(-1.5, 1.5)),
    "uniform, several bounds": lambda g: tuple((g.uniform([0, 1], 2) < 1.5).tolist()),
    "binomial": lambda g: int(g.binomial(3, 0.25)),
    "two draws": lambda g: (int(g.integers(2)), bool(g.random() < 0.5)),
    "one draw decides about the next": lambda g: int(g.integers(3)) if g.random() < 0.5 else -1,
}


def shuffled(g, entries):
    g.shuffle(entries)
    return tuple(int(x) for x in entries)


def asked(x):
    return "low" if x < 0.25 else "middle" if x <= 0.5 else "high" if x > 0.75 else "upper"


def law(draw, most=10_000):
    generator, chances = EnumeratingRNG(most), {}
    for leaf in generator.leaves(lambda: generator, draw):
        chances[leaf.answer] = chances.get(leaf.answer, 0) + leaf.chance
    return chances


@pytest.mark.parametrize("name", DRAWS)
def test_what_can_be_drawn_is_what_numpy_draws_as_often(name):
    chances, rng, number = law(DRAWS[name]), np.random.default_rng(7), 2000
    assert sum(chances.values()) == 1 and all(isinstance(p, Fraction) and p > 0 for p in chances.values())
    seen = Counter(DRAWS[name](rng) for _ in range(number))
    assert set(seen) == set(chances)
    for event, p in chances.items():  # five standard deviations
        assert abs(seen[event] - number * p) < 5 * math.sqrt(number * p * (1 - p)) + 1e-9, event


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("random below", {True: "1/10", False: "9/10"}),
        ("choice with probabilities", {5: "1/10", 7: "9/10"}),
        ("choice of equal entries", {"a": "1/3", "b": "2/3"}),
        ("random against an array", {0: "1/5", 1: "3/10", 2: "1/2"}),
        ("random, asked twice", dict.fromkeys(["low", "middle", "upper", "high"], "1/4")),
        ("random, several", {0: "27/64", 1: "27/64", 2: "9/64", 3: "1/64"}),
        ("permutation", dict.fromkeys([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)], "1/6")),
    ],
)
def test_probabilities_are_exact(name, expected):
    assert law(DRAWS[name]) == {event: Fraction(p) for event, p in expected.items()}


def test_a_bound_that_excludes_an_event_leaves_it_out():
    assert law(lambda g: bool(g.random() < 0)) == {False: 1}
    assert law(lambda g: bool(g.random() < 1)) == {True: 1}
    assert law(lambda g: bool(g.random() < math.inf)) == {True: 1}
    assert law(lambda g: bool(g.random() < 1e-300)) == {True: Fraction(1, 10**300), False: 1 - Fraction(1, 10**300)}


REFUSED = [
    (lambda g: g.normal(0, 1), r"np_random.normal\(0, 1\)"),
    (lambda g: g.standard_normal(size=3), r"np_random.standard_normal\(size=3\)"),
    (lambda g: g.poisson(2), r"np_random.poisson"),
    (lambda g: g.bytes(2), r"np_random.bytes"),
    (lambda g: float(g.random()), "used as a number"),
    (lambda g: np.array([g.uniform(0, 1)], dtype=np.float32), r"np_random.uniform\(0, 1\) is used as a number"),
    (lambda g: np.sin(g.random()), "numpy's sin"),
    (lambda g: g.random() ** 2, "__pow__"),
    (lambda g: g.random() + g.random(), "added to another number that was drawn"),
    (lambda g: g.random() < g.random(), "compared with another number that was drawn"),
    (lambda g: g.random(3).sum(), "added to another number that was drawn"),
    (lambda g: {g.random(): 1}, "label or a key"),
    (lambda g: str(g.random()), r"written as text; .*int\(...\), math.floor"),
    (lambda g: f"{g.random():.2f}", "written as text"),
    (lambda g: str([g.random()]), "written as text"),
    (lambda g: bool(g.random()), "truth value"),
    (lambda g: g.random() == 0.5, "equal"),
    (lambda g: g.choice(3, 2, replace=False, shuffle=False), "shuffle=False"),
]
KINDS = ["Gymnasium", "at once", "in turns"]


@pytest.mark.parametrize(("draw", "reason"), REFUSED)
def test_what_cannot_be_listed_is_refused_with_the_reason(draw, reason):
    with pytest.raises(CannotEnumerate, match=reason):
        law(draw)


def read(kind, draw, made=None, **options):
    """The game of an environment that draws so."""
    kinds = {"Gymnasium": (DrawsAlone, from_env), "at once": (DrawsAtOnce, pz.from_parallel_env)}
    env, door = kinds.get(kind, (DrawsInTurn, pz.from_aec_env))
    said = {"horizon": 1, "state": lambda env, seen: env.unwrapped.drawn, "repeats": 1, **options}
    return door(env(draw, **(made or {})), **said)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DRAWS)
def test_every_kind_of_environment_is_read_with_what_it_draws(kind, name):
    game = read(kind, DRAWS[name])
    assert {s: p for p, s, _ in game.outcomes(0, 0)} == pytest.approx(
        {s: float(p) for s, p in law(DRAWS[name]).items()}
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("draw", "reason"), REFUSED)
def test_in_every_kind_of_environment_what_cannot_be_listed_is_refused(kind, draw, reason):
    with pytest.raises(ace.InvalidOption, match=rf"t=0, state 'start', .*{reason}"):
        read(kind, draw)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["integers", "random, cut", "permutation"])
def test_in_every_kind_of_environment_what_reset_draws_is_listed(kind, name):
    game = read(kind, DRAWS[name], {"at_reset": True})
    starts = {game.states[s]: p for s, p in game.initial}
    assert starts == pytest.approx({s: float(p) for s, p in law(DRAWS[name]).items()})


ELSEWHERE = {
    "Python's random": (lambda g: random.random() < 0.5, None),
    "numpy.random, which everybody shares": (lambda g: np.random.random() < 0.5, None),
    r"own \(random.Random\)": (lambda g: g.random() < 0.5, random.Random),
    r"own \(numpy.random.RandomState\)": (lambda g: g.random_sample() < 0.5, np.random.RandomState),
    r"own \(numpy.random.Generator\)": (
        lambda g: g.random() < 0.5,
        lambda seed: np.random.Generator(np.random.PCG64(seed)),
    ),
    "the bits of its bit_generator": (lambda g: g.bit_generator.random_raw() % 2, None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at_reset", [False, True])
@pytest.mark.parametrize("source", ELSEWHERE)
def test_in_every_kind_of_environment_draws_from_elsewhere_are_refused(kind, at_reset, source):
    """What `reset` draws by chance, with the seed that it was given: also where nothing shows of it."""
    draw, make = ELSEWHERE[source]
    if make and not at_reset and "Generator" in source:

        def make(seed):
            return np.random.default_rng(5)  # it draws the same in every episode

    made = {"at_reset": at_reset, **({"make": make} if make else {})}
    for state in (lambda env, seen: "always", lambda env, seen: env.unwrapped.drawn):
        with pytest.raises(ace.InvalidOption, match=rf"elsewhere than self.np_random.*{source}|played twice"):
            read(kind, draw, made, repeats=2, state=state, horizon=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [np.random.default_rng, lambda seed: np.random.Generator(np.random.PCG64(seed))])
def test_in_every_kind_of_environment_generators_made_in_other_ways_are_replaced(kind, make):
    """As by a `default_rng` that was imported by its name: the draws of steps are listed."""
    game = read(kind, DRAWS["random below"], {"make": make}, repeats=2)
    assert {s: p for p, s, _ in game.outcomes(0, 0)} == pytest.approx({True: 0.1, False: 0.9})


def test_a_generator_with_a_seed_of_the_environments_own_is_no_chance():
    """It draws the same in every episode, as a map that is made by its number."""
    made = {"make": lambda seed: int(np.random.default_rng(5).integers(1000)), "at_reset": True}
    game = read("at once", lambda number: number, made, repeats=2)
    assert [(game.states[s], p) for s, p in game.initial] == [(made["make"](None), 1.0)]


@pytest.mark.parametrize("seeds", [[1], [2, 3]])
def test_a_seed_of_its_own_only_where_there_is_none_is_no_way_around(seeds):
    """`reset` draws by such a seed if it is given none, and that would always be the same."""

    def make(seed):
        return np.random.default_rng(seeds if seed is None else seed)

    with pytest.raises(
        ace.InvalidOption, match=r"reset: random numbers come from elsewhere.*own \(numpy.random.Generator"
    ):
        read("at once", lambda g: int(g.integers(3)), {"make": make, "at_reset": True})
    assert len(read("at once", lambda g: int(g.integers(3)), {"make": make}).outcomes(0, 0)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_in_every_kind_of_environment_too_many_branches_are_refused(kind):
    with pytest.raises(ace.TooLarge, match=r"t=0, state 'start'.* chance can go more than 100 ways.*branches="):
        read(kind, lambda g: int(g.integers(101)), branches=100)


def rejected(generator):
    """Draws until something fits."""
    while (drawn := int(generator.integers(4))) < 3:
        pass
    return drawn


@pytest.mark.parametrize("at_reset", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_in_every_kind_of_environment_draws_without_end_are_refused_at_once(kind, at_reset):
    with pytest.raises(
        ace.TooLarge, match=r"chance can go more than 100,000 ways.*until something fits: that has no end"
    ):
        read(kind, rejected, {"at_reset": at_reset})


@pytest.mark.parametrize(
    "draw", [lambda g: g.integers(10**9), lambda g: tuple(g.permutation(8)), lambda g: g.choice(101), rejected]
)
def test_too_many_branches_are_refused(draw):
    with pytest.raises(TooManyBranches, match="more than 100 ways"):
        law(draw, most=100)


@pytest.mark.parametrize(
    "options",
    [{"a": 2, "size": 3, "replace": False}, {"a": 0}, {"a": []}, {"a": 2, "p": [0.5, 0.6]}, {"a": 2, "p": [1]}],
)
def test_wrong_choices_are_refused_as_numpy_refuses_them(options):
    with pytest.raises(ValueError, match=r".") as numpys:
        np.random.default_rng(0).choice(**options)
    with pytest.raises(ValueError, match=re.escape(str(numpys.value))):
        law(lambda g: g.choice(**options))


def test_a_choice_of_nothing_is_empty():
    assert law(lambda g: g.choice(10, size=0).shape) == {(0,): 1}


def test_a_number_of_one_play_is_refused_in_the_next():
    drawn, generator = [], EnumeratingRNG(10)
    generator.replay((), lambda: generator, lambda g: drawn.append(g.random()))
    with pytest.raises(CannotEnumerate, match="drawn in an earlier step is compared only now"):
        generator.replay((), lambda: generator, lambda g: drawn[0] < 0.5)


def test_outside_of_plays_it_draws_as_numpy_does():
    generator, plain = EnumeratingRNG(10), np.random.Generator(np.random.PCG64(0))
    for draw in ("random", "normal", "standard_exponential"):
        assert getattr(generator, draw)() == getattr(plain, draw)()
    assert generator.integers(1000) == plain.integers(1000)
    assert isinstance(generator, np.random.Generator)


def test_every_method_of_numpys_generator_is_listed_or_refused():
    names = [name for name in dir(np.random.Generator) if not name.startswith("_") and name != "bit_generator"]
    assert len(names) > 30 and not [name for name in names if name not in vars(EnumeratingRNG)]
