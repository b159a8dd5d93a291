"""A policy of an estimated game, made safe for the true game, where unseen costs may occur.

The policy of the estimated game answers at the feasible (t, s, c) of that game. In the true game,
cumulative costs c may occur that are not among them. Then the answer is that of a *larger* c: the
lexicographically first feasible one of at least c in every constraint, which is c if feasible.

Why this never breaks a budget. Let every true cost at (t, s, a) be at most some w in W(t, s, a) in
every constraint, let every true next state be in N(t, s, a), and let the estimated game have the
outcome (s', w) for every such s' and w (the conservative option makes it so). Write c + x for the
cumulative cost after one more: of a reservoir, max(c + x, 0). It does not decrease in c or x, which
is all that is used of it. Claim: at every (t, s, c) that is reached, some feasible c^ >= c exists.
At t = 0, c is that of the estimated game, which is feasible: nothing is spent, or what a reservoir
lacks. Suppose that the answer at (t, s, c) was that of c^ >= c, and that a cost x <= w and a next
state s' follow. The action is feasible at c^, so c^ + w is within the budgets of t, and so is
c + x <= c^ + w; and (t+1, s', c^ + w) is feasible, so a feasible c^ >= c + x exists. By induction
every budget holds at every step with probability one, whatever the probabilities. `policy_support`
bounds how likely a cost above every such w, or another next state, is.

The proof also covers policies that round costs up, in the game with rounded costs. A cost x <= w
counts as x^ <= w^, an outcome of that game, so the counted costs keep every budget, and the true
ones are at most those, again as c + x does not decrease (a constraint that is not counted at all
cannot bind under costs up to w).

`rollout` runs a learned policy in the environment, the model or the true game.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding, rounded_by
from acegames.errors import InvalidOption, UnknownPair
from acegames.learn.env_protocol import END
from acegames.learn.known import Facts, drawn, facts_of, facts_of_source
from acegames.learn.sources import GameModel, World, world_of
from acegames.model.arrays import in_pair_order
from acegames.model.budgets import read_amounts
from acegames.model.checks import UNSAID, check_count, check_rng, first_state, read_at
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import LARGEST, plain
from acegames.model.user_functions import SEED, check_function, public
from acegames.policy.tracker import CostTracker, Spending, Spent
from acegames.safety.feasible import Feasibility, feasibility
from acegames.system.display import Shown


@dataclass(frozen=True, eq=False, repr=False)
class SafePolicy(Shown):
    """A policy that reads an unknown cumulative cost as the next larger one that it knows.

    `spent` is the total cost, or the sum of costs rounded up if the policy rounds.
    """

    game: MarkovGame  # the estimated game
    inner: Any  # its policy
    feasibility: Feasibility  # of the game with costs as the policy counts them
    rounding: tuple[Rounding | None, ...] = ()
    _cache: dict[int, dict[Label, NDArray[np.int64]]] = field(default_factory=dict)

    @property
    def tracker(self) -> CostTracker:
        """How costs are counted."""
        return CostTracker(self.game.constraints, self.feasibility.lattice.units, self.rounding, self.game.reservoirs)

    def distribution(self, t: int, state: Label, spent: Any) -> dict[JointAction, float]:
        """Return each joint action's probability; UnknownPair if no safe action is known."""
        chances: dict[JointAction, float] = self.inner.distribution(t, state, self.counted(t, state, spent))
        return chances

    def values(self, t: int, state: Label, spent: Any) -> Any:
        """Return each player's expected reward from here on, as estimated."""
        return self.inner.values(t, state, self.counted(t, state, spent))

    def counted(self, t: int, state: Label, spent: Any) -> Spent:
        """Return what `spent` is read as: itself if feasible, else a larger cumulative cost."""
        units = self.feasibility.lattice.units
        where = f"t={t!r}, state {state!r}, spent {spent!r}"
        amounts = read_at(where, partial(read_amounts, self.game.constraints), spent, error=UnknownPair)
        whole = [math.ceil(x / u) for x, u in zip(amounts, units, strict=True)]
        # no feasible total exceeds LARGEST
        at_least = np.array([min(max(w, -LARGEST), LARGEST) for w in whole], dtype=np.int64)
        known = self.known(t).get(state)
        if known is None:
            rule = "this state is not reachable under feasible play of the estimated game; the data did not show it"
            raise UnknownPair(f"{place(t, state)}: {rule}")
        enough = np.flatnonzero((known >= at_least).all(axis=1))
        if not len(enough):
            rule = "no feasible play of the estimated game spends so much by then"
            raise UnknownPair(f"{place(t, state)}, spent {tuple(map(plain, amounts))!r}: {rule}")
        return self.feasibility.lattice.spent(known[enough[0]].tolist())

    def start(self, rng: np.random.Generator | int | None = None, *, state: Label = UNSAID) -> SafeRunner:
        """Begin an episode.

        Args:
            rng: a Generator, a seed, or None for fresh randomness.
            state: the initial state; needed if the game has several.
        """
        generator = check_rng(rng, "; an initial state is given as state=, such as start(rng=0, state=...)")
        return SafeRunner(self, generator, first_state(self.game.states, self.game.initial, state))

    def known(self, t: int) -> dict[Label, NDArray[np.int64]]:
        """Return the feasible total costs of each state at t, in whole units, ascending."""
        if isinstance(t, bool) or not isinstance(t, (int, np.integer)) or not 0 <= t < self.game.horizon:
            raise UnknownPair(f"t={t!r}: must be a whole number between 0 and {self.game.horizon - 1}")
        if t not in self._cache:
            state, spent = in_pair_order(*self.feasibility.listed(int(t)))
            first = np.flatnonzero(np.diff(state, prepend=-1))
            parts = np.split(spent, first[1:])
            self._cache[t] = {self.game.states[int(state[k])]: part for k, part in zip(first, parts, strict=True)}
        return self._cache[t]

    def __str__(self) -> str:
        return f"Safe policy: also where costs occur that the data has not shown.\n{self.inner}"

    def __repr__(self) -> str:
        return f"<SafePolicy of {self.inner!r}>"


class SafeRunner(Spending):
    """Plays one episode in the true game: `act` draws an action, `observe` takes its outcome."""

    def __init__(self, policy: SafePolicy, rng: np.random.Generator, state: Label) -> None:
        super().__init__(policy.game.horizon, policy.tracker, state, policy.game.budgets)
        self.policy, self.rng = policy, rng

    @property
    def counted(self) -> Spent:
        """The cumulative cost that the policy reads: above `spent` after unseen, rounded costs."""
        return self.policy.counted(self.t, self.state, self.total_counted)

    def act(self) -> JointAction:
        """Draw the joint action to play now; UnknownPair if the data shows no safe one."""
        self.check_running()
        return drawn(self.policy.distribution(self.t, self.state, self.total_counted), self.rng)

    def observe(self, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Tell the runner what was played, what it cost and which state followed.

        The data need not have shown them.

        Args:
            action: the joint action that was played, one label per player.
            cost: what it cost, as in `MarkovGame.from_functions`.
            next_state: the state that followed.
        """
        self.check_running()
        self.move(self.after(cost, whole=False), next_state)

    def __repr__(self) -> str:
        at = "over" if self.done else place(self.t, self.state)
        return f"<SafeRunner: {at}, spent {self.spent!r}>"


def safe_policy(solution: Any, game: MarkovGame | None = None) -> SafePolicy:
    """Make a solution of an estimated game safe for the true game, where unseen costs may occur.

    `Empirical.policy` does this. To keep a learned policy, save its solution and call
    `safe_policy(acegames.Solution.load(path))`.

    Args:
        solution: a solution or a policy, either exact or with costs rounded up.
        game: the estimated game, if `solution` is a policy.

    Raises:
        InvalidOption: the policy belongs to another game, or rounds costs down.
    """
    policy = getattr(solution, "policy", solution)
    if not callable(getattr(policy, "distribution", None)):
        raise InvalidOption(f"policy: got {policy!r:.60}, must be a Solution, or have distribution(t, state, spent)")
    check_function("policy.distribution", policy.distribution, ("t", "state", "spent"))
    game = getattr(solution, "game", None) if game is None else game
    if game is None:
        raise InvalidOption(f"game: missing; give safe_policy(policy, game), or the solution instead of {policy!r:.60}")
    owner = policy.game.digest if isinstance(policy, SafePolicy) else getattr(policy, "game_digest", game.digest)
    if owner != game.digest:
        raise InvalidOption("policy: was computed for another game; solve this one: ace.solve(empirical.game)")
    if isinstance(policy, SafePolicy):
        return policy
    rounding = getattr(getattr(policy, "tracker", None), "rounding", ())
    if any(rule is not None and rule.direction == "down" for rule in rounding):
        raise InvalidOption(
            "policy: rounds costs down, so it may spend more than it counts; round up: "
            "ace.solve(empirical.game, epsilon=..., rounding='up')"
        )
    return SafePolicy(game, policy, feasibility(rounded_by(game, rounding) if any(rounding) else game), rounding)


# -- running a learned policy


@dataclass(frozen=True, eq=False, repr=False)
class Episodes(Shown):
    """E episodes of a learned policy in the true game."""

    returns: NDArray[np.float64]
    """(E, N) total reward of each player, up to the surprise where there was one."""
    spent: NDArray[np.float64]
    """(E, M) total cost, of a reservoir what is missing to its capacity at the end; rounded to
    floats."""
    violations: int
    """Number of episodes that exceeded some budget at some time; decided exactly."""
    surprises: tuple[str, ...]
    """One sentence per episode that ended early where the policy knows no safe action."""

    def __str__(self) -> str:
        means = ", ".join(f"{x:.4g}" for x in self.returns.mean(axis=0))
        said = f"; the first: {self.surprises[0]}" if self.surprises else ""
        return (
            f"{len(self.returns):,} episodes, mean returns {means}; {self.violations:,} exceeded a budget, "
            f"{len(self.surprises):,} ended early, in a situation without a known safe action{said}."
        )


@public("rollout", instead=SEED)
def rollout(
    source: Any,
    policy: SafePolicy,
    *,
    episodes: int,
    state: Any = None,
    cost: Any = None,
    rng: np.random.Generator | int | None = None,
) -> Episodes:
    """Play a learned policy (`empirical.policy(solution)`) and count exceeded budgets.

    Args:
        source: an environment or a generative model, as in `estimate`, or the true game.
        policy: what `Empirical.policy` gives.
        episodes: number of episodes.
        state, cost: for an environment, as in `estimate`.
        rng: a Generator, a seed, or None for fresh randomness.
    """
    if not isinstance(policy, SafePolicy):
        raise InvalidOption(f"policy: got {policy!r:.60}, must come from Empirical.policy(solution)")
    facts, generator = facts_of(policy.game), check_rng(rng)
    model = GameModel(source) if isinstance(source, MarkovGame) else source
    initial = facts_of_source(model).initial or facts.initial
    world = world_of(model, replace(facts, initial=initial), state, cost)
    played = [_play(world, policy, facts, generator) for _ in range(check_count("episodes", episodes))]
    returns, spent, broken, surprises = zip(*played, strict=True)
    return Episodes(np.array(returns), np.array(spent), sum(broken), tuple(s for s in surprises if s is not None))


def _play(
    world: World, policy: SafePolicy, facts: Facts, rng: np.random.Generator
) -> tuple[list[float], list[float], bool, str | None]:
    """Play one episode; return returns, costs, whether a budget was exceeded, and a surprise."""
    total, broken, surprise = np.zeros(len(facts.players)), False, None
    runner = SafeRunner(policy, rng, world.reset(rng))
    try:
        while not runner.done and runner.state != END:
            t, action = runner.t, runner.act()
            next_state, cost, reward = world.step(t, action)
            runner.observe(action, cost, next_state)
            total += facts.read_reward(reward, f"t={t}, action {action!r}")
            broken |= any(x > b for x, b in zip(runner.total, policy.game.budgets[t], strict=True))
    except UnknownPair as error:
        surprise = str(error)
    return total.tolist(), [float(x) for x in runner.total], broken, surprise
