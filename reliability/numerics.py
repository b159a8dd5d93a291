"""Solve games that are made to hurt floating point, thousands of each family, and let the independent verifier judge every one.

    python reliability/numerics.py --games 10000

Each game is small, drawn from its family and its seed alone, and solved under CE, CCE or Nash with one of the objectives, by the compiled
engine with dense layers and with lists, whose answers must be the same to the last bit, and now and then by the reference
engine. Whether the budgets can be kept at all is decided a second time, in fractions and over what is possible, whatever its
probability. Exit status 1 if anything is wrong; the seeds are listed.

    python reliability/numerics.py --family near_ties --seed 17 --games 1 -v     # look at one game
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import acegames as ace
from acegames.engines.reference import ReferenceEngine

REFERENCE_EVERY = 25  # games between those that the reference engine solves too
LONG = 100  # steps of a game that is solved in one of the ways alone, unless it is one of those
PLAYERS = ("p", "q", "r")
UNIQUE = {"penalties": 1e-6, "crashes": 1e-6, "met_exactly": 1e-6, "last_unit": 1e-6}
"""Families without near ties: there two engines must choose equilibria of the same worth, up to so much."""

OBJECTIVES = ("welfare", "egalitarian", "fair", None, "p")


# -- games, written down --------------------------------------------------------------------------------------------


@dataclass
class Drawn:
    """A stationary game as its family writes it; costs and budgets are numbers of any kind, to be read by their decimal text."""

    moves: dict[tuple[int, tuple[int, ...]], tuple[tuple[float, ...], list[tuple[float, int, tuple[Any, ...]]]]]
    actions: tuple[int, ...]  # how many each player has, in every state
    budget: list[Any]  # one number per constraint
    horizon: int
    without: Drawn | None = None  # a game with the same gains, in which nothing large is paid whatever is played

    def game(self) -> ace.MarkovGame:
        """The game of the library."""
        players, constraints = PLAYERS[: len(self.actions)], [f"c{m}" for m in range(len(self.budget))]
        outcomes, rewards = [], []
        for (state, action), (reward, found) in self.moves.items():
            place = {"state": state, **dict(zip(players, action, strict=True))}
            rewards.append(place | {f"reward_{p}": r for p, r in zip(players, reward, strict=True)})
            for probability, following, cost in found:
                spent = dict(zip(constraints, cost, strict=True))
                outcomes.append(place | {"probability": probability, "next_state": following, **spent})
        budget = dict(zip(constraints, self.budget, strict=True))
        told = {"players": players, "horizon": self.horizon, "initial": 0, "budget": budget}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ace.GameWarning)  # floats beside a decimal are what it is about
            return ace.MarkovGame.from_table(outcomes, rewards, **told)


def written(number: Any) -> Fraction:
    """What a number says in decimal: 0.1 is one tenth."""
    return Fraction(Decimal(str(number))) if isinstance(number, float) else Fraction(number)


def least_budget(drawn: Drawn) -> Fraction:
    """The smallest budget that can be kept at every moment, for one constraint: by fractions, over what is possible."""
    states = {s for s, _ in drawn.moves}
    left = dict.fromkeys(states, Fraction(0))
    for _ in range(drawn.horizon):
        needs: dict[int, list[Fraction]] = {s: [] for s in states}
        for (s, _), (_, outcomes) in drawn.moves.items():
            needs[s].append(max(written(c[0]) + max(left[n], Fraction(0)) for _, n, c in outcomes))
        left = {s: min(found) for s, found in needs.items()}
    return left[0]


def can_be_kept(drawn: Drawn) -> bool:
    """Whether some policy keeps every budget whatever happens, however improbable."""
    if len(drawn.budget) == 1:
        return least_budget(drawn) <= written(drawn.budget[0])
    budget = [written(b) for b in drawn.budget]
    states: dict[int, list[list[tuple[int, list[Fraction]]]]] = {}
    for (s, _), (_, outcomes) in drawn.moves.items():
        states.setdefault(s, []).append([(n, [written(x) for x in c]) for _, n, c in outcomes])

    @functools.cache
    def safe(t: int, s: int, spent: tuple[Fraction, ...]) -> bool:
        return t == drawn.horizon or any(all(stays(t, spent, *o) for o in outcomes) for outcomes in states[s])

    def stays(t: int, spent: tuple[Fraction, ...], n: int, cost: list[Fraction]) -> bool:
        total = tuple(x + y for x, y in zip(spent, cost, strict=True))
        return all(x <= b for x, b in zip(total, budget, strict=True)) and safe(t + 1, n, total)

    return safe(0, 0, (Fraction(0),) * len(budget))


# -- families -------------------------------------------------------------------------------------------------------


def draw(
    rng: np.random.Generator,
    *,
    reward: Callable[[], float],
    cost: Callable[[], Any],
    probability: Callable[[], float] | None = None,
    states: int | None = None,
    horizon: int | None = None,
    constraints: int = 1,
) -> Drawn:
    """Two players, now and then three, with two or three actions; one or two outcomes, budgets still to be set."""
    players = 3 if horizon is None and rng.random() < 0.1 else 2
    actions = tuple(int(x) for x in rng.integers(2, 4 if players == 2 and horizon is None else 3, size=players))
    states = int(rng.integers(1, 4)) if states is None else states
    moves = {}
    for s in range(states):
        for a in itertools.product(*map(range, actions)):
            p = 1.0 if rng.random() < 0.4 else (rng.random() if probability is None else probability())
            chances = [1.0] if p >= 1 else [p, 1 - p]
            outcomes = [(x, int(rng.integers(states)), tuple(cost() for _ in range(constraints))) for x in chances]
            moves[s, a] = (tuple(float(reward()) for _ in actions), outcomes)
    return Drawn(moves, actions, [], int(rng.integers(3, 7)) if horizon is None else horizon)


def whole(rng: np.random.Generator) -> Callable[[], int]:
    """Costs of a few units, often none."""
    return lambda: int(rng.choice([0, 0, 1, 1, 2, 3]))


def spread_budget(rng: np.random.Generator, drawn: Drawn, least: float = 0.0) -> Drawn:
    """Budgets between nothing and what a play can cost."""
    drawn.budget = [int(b) for b in rng.integers(int(least), 2 * drawn.horizon, size=drawn_constraints(drawn))]
    return drawn


def drawn_constraints(drawn: Drawn) -> int:
    """How many constraints the costs have."""
    return len(next(iter(drawn.moves.values()))[1][0][2])


def near_ties(rng: np.random.Generator) -> Drawn:
    """Rewards from a coarse grid, moved by 1e-16 to 1e-8."""

    def reward() -> float:
        moved = 10.0 ** -rng.integers(8, 17) * rng.integers(-3, 4) if rng.random() < 0.7 else 0.0
        return float(rng.integers(-1, 3)) + moved

    halves = functools.partial(rng.choice, [0.5, 0.25, 1 / 3, 0.1])
    return spread_budget(rng, draw(rng, reward=reward, cost=whole(rng), probability=halves))


def one_near_tie(rng: np.random.Generator) -> Drawn:
    """All differences of one size between 1e-16 and 1e-8 around rewards of one: everything hangs on the last digits."""
    size = 10.0 ** -rng.uniform(8, 16)
    drawn = draw(rng, reward=lambda: 1.0 + size * rng.integers(-4, 5), cost=whole(rng))
    return spread_budget(rng, drawn)


def tiny_probabilities(rng: np.random.Generator) -> Drawn:
    """Outcomes of probability 1e-300 to 1e-1 that cost much: they are possible, so they count in full."""
    drawn = draw(
        rng, reward=rng.normal, cost=whole(rng), probability=lambda: 10.0 ** -rng.uniform(1, 300), constraints=1
    )
    for (s, a), (reward, outcomes) in drawn.moves.items():
        if len(outcomes) == 2 and rng.random() < 0.6:
            p, n, _ = outcomes[0]
            outcomes[0] = (p, n, (int(rng.choice([20, 50, 10**6])),))
            drawn.moves[s, a] = (reward, outcomes)
    drawn.budget = [int(rng.choice([3, 8, 19, 20, 50, 10**6]))]
    return drawn


def last_unit(rng: np.random.Generator) -> Drawn:
    """Costs that differ in the last digit: 0.1 + 0.2 and 0.3, multiples of 1e-12; budgets that are sums of them, or one unit off."""
    lattices: list[list[Any]] = [
        [0.1, 0.2, 0.3, 0.1 + 0.2, Decimal("0.3"), 0.0],
        [1.0, 1.000000000001, 0.999999999999, 0.000000000001, 0],
        [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7), 0],
        [Decimal("1e-15"), Decimal("0.1"), Decimal("0.100000000000001"), 0.0],
        [10**15, 10**15 + 1, 10**15 - 1, 1, 0],
    ]
    cost = lattices[rng.integers(len(lattices))]
    constraints = 2 if cost is lattices[2] and rng.random() < 0.5 else 1
    drawn = draw(rng, reward=rng.normal, cost=lambda: cost[rng.integers(len(cost))], constraints=constraints)
    unit = min(abs(written(x) - written(y)) for x, y in itertools.combinations(cost, 2) if written(x) != written(y))
    drawn.budget = [
        sum((written(cost[k]) for k in rng.integers(len(cost), size=3)), Fraction(0)) + int(rng.integers(-1, 2)) * unit
        for _ in range(constraints)
    ]
    return drawn


def huge_and_tiny(rng: np.random.Generator) -> Drawn:
    """Rewards of sizes from 1e-150 to 1e150: by player, by state or all mixed."""
    kind = rng.integers(3)
    low, high = (-150, 150) if kind < 2 else (-8, 8)
    drawn = draw(rng, reward=rng.normal, cost=whole(rng))
    by_player, by_state = (10.0 ** rng.uniform(low, high, 3) for _ in range(2))
    for (s, a), (reward, outcomes) in drawn.moves.items():
        scale = by_player if kind == 0 else np.full(3, by_state[s])
        scale = 10.0 ** rng.uniform(-150, 150, 3) if kind == 2 and rng.random() < 0.5 else scale
        drawn.moves[s, a] = (tuple(float(r * x) for r, x in zip(reward, scale, strict=False)), outcomes)
    return spread_budget(rng, drawn)


def two_hundred_steps(rng: np.random.Generator) -> Drawn:
    """Long and small: rewards that differ by little add up, and the budget ends on the way."""
    states = int(rng.integers(1, 3))
    tie = 10.0 ** -rng.uniform(0, 12)
    drawn = draw(
        rng, reward=lambda: 1 + tie * rng.normal(), cost=lambda: int(rng.random() < 0.3), states=states, horizon=200
    )
    least = least_budget(drawn)
    drawn.budget = [int(least + rng.integers(-1, 4))]
    return drawn


def met_exactly(rng: np.random.Generator) -> Drawn:
    """The smallest budget that can be kept, to the last unit, or one unit less."""
    unit = [1, 0.1, Fraction(1, 3), Decimal("1e-12"), 1e-9, 10**9][rng.integers(6)]
    cost = whole(rng)
    drawn = draw(rng, reward=rng.normal, cost=lambda: written(unit) * (cost() - int(rng.random() < 0.1)))
    least = least_budget(drawn)
    drawn.budget = [
        least
        if rng.random() < 0.7
        else least - written(unit) * (Fraction(1) if rng.random() < 0.5 else Fraction(1, 10**6))
    ]
    return drawn


def all_at_once(rng: np.random.Generator) -> Drawn:
    """Near ties at several scales, tiny probabilities, fine costs, and the budget met exactly."""
    scale = 10.0 ** rng.uniform(-100, 100)
    cost = [0, Decimal("1e-9"), 0.1, 0.100000001, 0.3]
    drawn = draw(
        rng,
        reward=lambda: scale * (rng.integers(-1, 3) + 10.0 ** -rng.uniform(6, 16) * rng.normal()),
        cost=lambda: cost[rng.integers(len(cost))],
        probability=lambda: 10.0 ** -rng.uniform(0, 300),
    )
    drawn.budget = [least_budget(drawn) + [Fraction(0), Fraction(1, 10), -Fraction(1, 10**9)][rng.integers(3)]]
    return drawn


def unequal_levels(rng: np.random.Generator) -> Drawn:
    """Each player has rewards of a size and with differences of its own, 1 to 1e-15 of that size: one's all is another's rounding."""
    size, tie = 10.0 ** rng.uniform(-3, 3, 3), 10.0 ** -rng.uniform(0, 15, 3)
    base, drawn = rng.integers(-2, 3, 3), draw(rng, reward=lambda: 0.0, cost=whole(rng))
    for place, (_, outcomes) in drawn.moves.items():
        reward = size * (base + tie * rng.integers(-4, 5, 3))
        drawn.moves[place] = (tuple(reward[: len(drawn.actions)].tolist()), outcomes)
    return spread_budget(rng, drawn)


def penalties(rng: np.random.Generator) -> Drawn:
    """Rewards between 0 and 1, and in most states an action that is safe and worth -1e3 to -1e15 to a player, or to all."""
    drawn = draw(rng, reward=rng.random, cost=whole(rng))
    for s in {s for s, _ in drawn.moves}:
        size, i = -(10.0 ** rng.uniform(3, 15)), int(rng.integers(len(drawn.actions)))
        never, all_pay, alike = int(rng.integers(drawn.actions[i])), rng.random() < 0.5, rng.random() < 0.5
        for a in (a for (state, a) in drawn.moves if state == s and a[i] == never and rng.random() < 0.9):
            reward, outcomes = drawn.moves[s, a]
            paid = (size * (1 if alike else 1 + rng.random()) if all_pay or j == i else r for j, r in enumerate(reward))
            drawn.moves[s, a] = (tuple(paid), outcomes)
    return spread_budget(rng, drawn)


def crashes(rng: np.random.Generator) -> Drawn:
    """Rewards between 0 and 1, and joint actions worth -1e3 to -1e15 to all of their players: what deters must be possible."""
    drawn = draw(rng, reward=lambda: round(10 * rng.random()) / 10, cost=whole(rng))
    for place, (reward, outcomes) in drawn.moves.items():
        if rng.random() < 0.25:
            drawn.moves[place] = (tuple(-(10.0 ** rng.uniform(3, 15)) for _ in reward), outcomes)
    return spread_budget(rng, drawn)


def wages(rng: np.random.Generator) -> Drawn:
    """A wage of up to 1e12 at every step, everywhere or by state and player, and rewards of a few units or tie-breaks on top of it.

    Now and then something worth ten wages happens. One to three players, 5 to 300 steps.
    """
    horizon, players, states = (
        int(rng.choice([5, 10, 30, 100, 300])),
        int(rng.choice([1, 1, 2, 2, 3])),
        int(rng.integers(1, 4)),
    )
    actions = tuple(int(x) for x in rng.integers(2, 4 if players < 3 and horizon < 100 else 3, size=players))
    wage = np.full((states, players), float(rng.choice([0.0, *10.0 ** np.arange(2, 13)])))
    if rng.random() < 0.4:
        wage *= rng.choice([1.0, 1.0, 2.0, 3.7, -1.5], size=(states, 1))
    if rng.random() < 0.3:
        wage *= rng.choice([1.0, 1.0, 0.3, -2.0], size=(1, players))
    event, tie = float(rng.choice([0.0, 0.0, 0.05, 0.15])), float(rng.choice([1.0, 1.0, 1e-3, 1e-6, 1e-9, 1e-12]))
    settled = rng.random() < 0.5  # whether the next state does not depend on what is played
    moves, without = {}, {}
    for s in range(states):
        after, chances = rng.integers(states, size=3), [1 / 3, 1 / 3, 1 / 3]
        for a in itertools.product(*map(range, actions)):
            if not settled:
                after, chances = rng.integers(states, size=3), chances if rng.random() < 0.7 else [1.0]
            outcomes = [(p, int(n), (int(rng.random() < 0.3),)) for p, n in zip(chances, after, strict=False)]
            more = rng.integers(0, 4, players) * np.where(rng.random(players) < 0.5, 1.0, tie)
            paid = wage[s] + more - 10 * np.abs(wage[s]) * (rng.random(players) < event)
            moves[s, a] = (tuple(paid.tolist()), outcomes)
            without[s, a] = (tuple((paid - wage[s]).tolist()), outcomes)
    budget = [int(least_budget(Drawn(moves, actions, [], horizon)) + rng.integers(0, 5))]
    alike = event == 0 and (settled or (wage == wage[0]).all())
    return Drawn(moves, actions, budget, horizon, Drawn(without, actions, budget, horizon) if alike else None)


FAMILIES: dict[str, Callable[[np.random.Generator], Drawn]] = {
    f.__name__: f
    for f in (
        near_ties,
        one_near_tie,
        tiny_probabilities,
        last_unit,
        huge_and_tiny,
        two_hundred_steps,
        met_exactly,
        all_at_once,
        unequal_levels,
        penalties,
        crashes,
        wages,
    )
}


# -- judging --------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What became of the games of one family."""

    family: str
    counts: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0  # gain beyond rounding, as a share of what is at stake in its situation
    worst_seed: int | None = None
    failures: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> str:
        """A row of the table."""
        c = self.counts
        shown = [c["games"], c["solved"], c["infeasible"], c["none"], c["programs"], c["repaired"], f"{self.worst:.1e}"]
        shown.append(self.worst_seed)
        return f"| {self.family} | " + " | ".join(map(str, [*shown, len(self.failures), f"{self.seconds:.0f}"])) + " |"


COLUMNS = (
    "games",
    "solved",
    "infeasible",
    "no equilibrium",
    "programs",
    "repaired",
    "worst share",
    "its seed",
    "failures",
    "s",
)


def a_concept(rng: np.random.Generator) -> Any:
    """CE, CCE or Nash with an objective."""
    objective = OBJECTIVES[rng.integers(len(OBJECTIVES))]
    return (ace.CE, ace.CCE, ace.Nash)[rng.integers(3)](objective)


def answer(game: ace.MarkovGame, concept: Any, engine: Any) -> ace.Solution | str:
    """The solution, or why there is none."""
    try:
        return ace.solve(game, concept, engine=engine)
    except ace.Infeasible:
        return "infeasible"
    except ace.NoEquilibrium:
        return "none"


def same(one: ace.Solution, other: ace.Solution) -> bool:
    """Whether two solutions have the same values and play the same, bit by bit."""
    return one.values.tobytes() == other.values.tobytes() and all(
        x.mixed_prob.tobytes() == y.mixed_prob.tobytes() and x.mixed_row.tobytes() == y.mixed_row.tobytes()
        for x, y in zip(one.policy.layers, other.policy.layers, strict=True)
    )


class Played:
    """A policy by what it plays alone; it does not say for which game."""

    def __init__(self, policy: ace.Policy) -> None:
        self.distribution = policy.distribution


def judge(tally: Tally, seed: int, *, reference: bool) -> None:
    """Solve one game in every way, and note what is wrong."""
    rng = np.random.default_rng([list(FAMILIES).index(tally.family), seed])
    drawn = FAMILIES[tally.family](rng)
    game, concept = drawn.game(), a_concept(rng)
    tally.counts["games"] += 1
    dense, lists = ace.LocalEngine(threads=1), ace.LocalEngine(threads=1, dense=False)
    both = [dense, lists] if game.horizon < LONG or reference else [dense if seed % 2 else lists]
    engines = both + [ReferenceEngine()] * (reference and game.horizon < LONG)
    found = [answer(game, concept, engine) for engine in engines]
    kinds = [x if isinstance(x, str) else "solved" for x in found]
    tally.counts[kinds[0]] += 1
    wrong = set()
    if len(set(kinds)) > 1:
        wrong.add(f"the engines differ: {kinds}")
    if (kinds[0] != "infeasible") != can_be_kept(drawn):
        wrong.add(f"{kinds[0]}, and by fractions it is otherwise")
    solutions = [x for x in found if isinstance(x, ace.Solution)]
    if len(solutions) > 1 and not same(*solutions[:2]):
        wrong.add("dense layers and lists differ")
    for solution in solutions[::2]:
        wrong |= set(certify(tally, seed, game, solution))
        if drawn.without is not None:
            certificate = ace.verify(drawn.without.game(), Played(solution.policy), concept)
            wrong |= {f"without what is always paid: {sentence}" for sentence in certificate.problems}
    if len(solutions) > 2 and tally.family in UNIQUE and concept.objective is not None:
        apart = np.abs(solutions[0].values - solutions[2].values)
        if (apart > UNIQUE[tally.family] * np.maximum(1.0, np.abs(solutions[0].values))).any():
            wrong.add(f"values {solutions[0].values}, by the reference engine {solutions[2].values}")
    tally.failures += [(seed, f"{concept}: {sentence}") for sentence in sorted(wrong)]


def certify(tally: Tally, seed: int, game: ace.MarkovGame, solution: ace.Solution) -> list[str]:
    """Ask the verifier, and keep the largest gain as a share of what is at stake."""
    tally.counts["programs"] += solution.stats.programs
    tally.counts["repaired"] += solution.stats.repaired
    certificate = ace.verify(game, solution.policy, solution.concept)
    wrong = list(certificate.problems)
    share = float(np.nan_to_num(certificate.share, nan=np.inf).max())
    rounding = certificate.rounding + 4 * game.horizon * np.finfo(float).eps * np.abs(solution.values)
    if (np.abs(certificate.values - solution.values) > rounding).any():
        wrong.append(f"values {solution.values}, by the verifier {certificate.values}")
    if share > tally.worst:
        tally.worst, tally.worst_seed = share, seed
    return wrong


def run(family: str, games: int, first: int = 0) -> Tally:
    """Judge so many games of a family."""
    tally, began = Tally(family), time.monotonic()
    for seed in range(first, first + games):
        try:
            judge(tally, seed, reference=seed % REFERENCE_EVERY == 0)
        except Exception as error:  # whatever it is, it is a finding, and the other games go on
            tally.failures.append((seed, f"{type(error).__name__}: {error}"))
    tally.seconds = time.monotonic() - began
    return tally


def run_shared(family: str, games: int, first: int, jobs: int) -> Tally:
    """`run` in several processes, which take a hundred games at a time."""
    began, whole, starts = time.monotonic(), Tally(family), range(first, first + games, 100)
    with ProcessPoolExecutor(jobs) as pool:
        sizes = [min(100, first + games - start) for start in starts]
        for part in pool.map(run, itertools.repeat(family), sizes, starts):
            whole.counts.update(part.counts)
            whole.failures += part.failures
            if part.worst > whole.worst:
                whole.worst, whole.worst_seed = part.worst, part.worst_seed
    whole.seconds = time.monotonic() - began
    return whole


def main() -> int:
    """Judge the games asked for, print the table and the failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=10_000, help="of each family")
    parser.add_argument("--seed", type=int, default=0, help="of the first game")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="all by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the games")
    given = parser.parse_args()
    print("| family | " + " | ".join(COLUMNS) + " |\n| --- |" + " ---: |" * len(COLUMNS), flush=True)
    tallies = []
    for family in given.family or FAMILIES:
        if given.verbose:
            print(FAMILIES[family](np.random.default_rng([list(FAMILIES).index(family), given.seed])))
        tallies.append(run_shared(family, given.games, given.seed, given.jobs))
        print(tallies[-1].row(), flush=True)
    for tally in tallies:
        for seed, sentence in tally.failures[:50]:
            print(f"{tally.family} {seed}: {sentence}")
    bad = sum(len(tally.failures) for tally in tallies)
    print(f"{bad} failures" if bad else "all is well")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
