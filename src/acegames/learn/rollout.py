"""Running a learned policy in the environment, the model or the true game."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.learn.facts import END, Facts, facts_of
from acegames.learn.safe_policy import SafePolicy, SafeRunner
from acegames.learn.sources import GameModel, World, conventions, world_of
from acegames.model.checks import check_count, check_rng
from acegames.model.game import MarkovGame
from acegames.model.user_functions import SEED, public
from acegames.system.showing import Shown


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


@public("rollout", **SEED)
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
    initial = conventions(model).initial or facts.initial
    world = world_of(model, replace(facts, initial=initial), state, cost)
    played = [_play(world, policy, facts, generator) for _ in range(check_count("episodes", episodes))]
    returns, spent, broken, surprises = zip(*played, strict=True)
    return Episodes(np.array(returns), np.array(spent), sum(broken), tuple(s for s in surprises if s is not None))


def _play(
    world: World, policy: SafePolicy, facts: Facts, rng: np.random.Generator
) -> tuple[list[float], list[float], bool, str | None]:
    """Return one episode: returns, costs, whether a budget was exceeded, and what was not foreseen."""
    total, broken, surprise = np.zeros(len(facts.players)), False, None
    runner = SafeRunner(policy, rng, world.reset(rng))
    try:
        while not runner.done and runner.state != END:
            t, action = runner.t, runner.act()
            next_state, cost, reward = world.step(t, action)
            runner.observe(action, cost, next_state)
            total += facts.read_reward(reward, f"t={t}, action {action!r}")
            broken |= any(x > b for x, b in zip(runner.total, facts.budgets.rows[t], strict=True))
    except UnknownPair as error:
        surprise = str(error)
    return total.tolist(), [float(x) for x in runner.total], broken, surprise
