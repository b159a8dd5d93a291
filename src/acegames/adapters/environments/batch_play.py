"""A batch of episodes played by agents that see vectors and choose numbers: `Play`, in arrays.

Masks, observations, rewards and infos are those of `Play`, each with a leading axis for the B
episodes. The masks of a shield are looked up by the number of each situation's set of safe joint
actions; a set that was never met before is asked for once.

Episodes that end begin anew by themselves, in one of Gymnasium's ways:
    NextStep   at the next step, which plays nothing there and has no reward
    SameStep   at once; `final_obs` and `final_info` hold what the end looked like
    Disabled   not at all; somebody resets them
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.batch import Batch, floats, offered_masks
from acegames.adapters.environments.keys import constraint_names
from acegames.adapters.environments.observing import Layout
from acegames.adapters.environments.options import MASKS, Options
from acegames.adapters.environments.play import agent_names
from acegames.errors import InvalidOption
from acegames.model.arrays import Bools, Floats, Ints
from acegames.model.checks import check_choice, check_count
from acegames.model.game import MarkovGame, check_game, place
from acegames.model.written import check_known, show

OPTIONS = ("mask", "shield", "illegal", "owners", "features", "observation")
AUTORESET = ("NextStep", "SameStep", "Disabled")


@dataclass(frozen=True, eq=False)
class Stepped:
    """What a step of the batch gave."""

    rewards: Floats  # (B, N)
    ended: Bools  # (B,)
    last: Bools  # (B,) where `final` tells how an episode ended; SameStep alone
    final: list[tuple[Any, dict[str, Any]]]  # observations and infos of each player before the new beginning


def read_vector_options(given: Mapping[str, Any]) -> Options:
    """Return the options of a batch; a batch is not shown, so that there is no `render_mode`."""
    check_known("option", given, OPTIONS)
    return Options(**given)


class BatchPlay:
    """One game, B episodes at a time, again and again."""

    def __init__(self, game: MarkovGame, num_envs: int, options: Options, autoreset_mode: Any = "NextStep") -> None:
        check_game(game)
        self.size = check_count("num_envs", num_envs)
        self.autoreset = getattr(autoreset_mode, "value", autoreset_mode)  # Gymnasium's enumeration, or its words
        check_choice("autoreset_mode", self.autoreset, AUTORESET)
        self.game, self.options = game, options
        self.shield = options.shield_of(game, MASKS)
        self.layout = Layout(game, options.features)
        self.batch = Batch(game, self.size, self.shield.tracker.rounding if self.shield is not None else ())
        self.agents, self.charged = agent_names(game.players), options.charged(game)
        self.names = constraint_names(game.constraints)
        self._offered = offered_masks(self.batch.layer, game.actions)
        # the masks of the sets of safe joint actions that were met, and the row that each set has
        self._products = tuple(np.zeros((0, len(labels)), dtype=bool) for labels in game.actions)
        self._product_of: dict[int, int] = {}
        self.begun = False

    # -- playing

    def reset(self, rng: np.random.Generator, which: Bools | None = None) -> None:
        """Begin all episodes anew, or some of them."""
        if which is not None and not self.begun:
            raise InvalidOption("reset_mask: no episode has begun yet; call reset without it first")
        if which is None:
            which = np.ones(self.size, dtype=bool)
            self.ended = np.zeros(self.size, dtype=bool)
            self.illegal = np.zeros((self.size, len(self.agents)), dtype=bool)
            self.costs = self.batch.costs.nothing(self.size)
            self.begun = True
        self._begin(which, rng)
        self._update()

    def step(self, actions: list[Any], rng: np.random.Generator) -> Stepped:
        """Play one array of action numbers per player."""
        if not self.begun:
            raise InvalidOption("step: call reset before the first step")
        if self.autoreset == "Disabled" and self.ended.any():
            rule = 'reset it: reset(options={"reset_mask": terminations})'
            raise InvalidOption(f"environment {int(np.argmax(self.ended))}: the episode is over; {rule}")
        going = ~self.ended
        chosen = np.stack([self._numbers(i, a, going) for i, a in enumerate(actions)], axis=1)
        rewards = self._play(chosen, going, rng)
        if self.autoreset == "NextStep":
            self._begin(~going, rng)
        self._update()
        ended, final = self.ended.copy(), []
        if self.autoreset == "SameStep" and ended.any():
            final = [(self.observation(i), self.info(i)) for i in range(len(self.agents))]
            self._begin(ended, rng)
            self._update()
        return Stepped(rewards, ended, ended if final else np.zeros_like(ended), final)

    def _begin(self, which: Bools, rng: np.random.Generator) -> None:
        if which.any():
            self.batch.begin(np.flatnonzero(which), rng)
            self.ended[which], self.illegal[which], self.costs[which] = False, False, 0

    def _play(self, chosen: Ints, going: Bools, rng: np.random.Generator) -> Floats:
        """Play where episodes go on; one with a joint action that is not legal ends. (B, N)"""
        rewards = np.zeros(chosen.shape)
        rows = np.where(going, self.batch.rows(chosen), -1)
        wrong = going & (rows < 0)
        if wrong.any():
            rewards[wrong] = self._refuse(chosen, wrong)
        which = np.flatnonzero(rows >= 0)
        self.costs[going] = 0
        self.costs[which], rewards[which] = self.batch.play(which, rows[which], rng)
        self.ended = wrong | (self.batch.t >= self.game.horizon)
        return rewards

    def _refuse(self, chosen: Ints, wrong: Bools) -> Floats:
        """Mark who chose what is not offered: all, where only the combination is not legal."""
        if self.options.illegal is None:
            b = int(np.argmax(wrong))
            t, state, spent = self.batch.situation(b)
            joint = self.game.joint_action(chosen[b])
            told = f"the joint action {joint!r} is not offered"
            raise InvalidOption(f"environment {b}, {place(t, state)}, spent {spent!r}: {told}")
        at = self.batch.place[wrong]
        mine = np.stack([~mask[at, own] for mask, own in zip(self._offered, chosen[wrong].T, strict=True)], axis=1)
        self.illegal[wrong] = mine | ~mine.any(axis=1, keepdims=True)
        return np.where(self.illegal[wrong], float(self.options.illegal), 0.0)

    def _numbers(self, i: int, given: Any, going: Bools) -> Ints:
        """Return the action numbers of player i, (B,), checked where an episode goes on."""
        numbers, n, who = np.asarray(given), len(self.game.actions[i]), f"agent {self.agents[i]!r}"
        if numbers.shape != (self.size,) or numbers.dtype.kind not in "iu":
            got = f"{numbers.dtype} of the shape {numbers.shape}" if isinstance(given, np.ndarray) else show(given)
            raise InvalidOption(f"actions of {who}: got {got}, must be {self.size} whole numbers, one per environment")
        outside = going & ((numbers < 0) | (numbers >= n))
        if outside.any():
            b = int(np.argmax(outside))
            rule = f"must be a whole number from 0 to {n - 1}"
            raise InvalidOption(f"environment {b}: {who} chose {numbers[b]}, {rule}")
        return np.where(going, numbers, 0).astype(np.int64)

    # -- what is seen

    def _update(self) -> None:
        batch = self.batch
        self.spent, self.remaining = batch.spent, batch.remaining
        self.vector = self.layout.vectors(batch.t, batch.state, self.remaining)
        known, number = self._safe_sets()
        self.safe = ~batch.violated & np.where(self.ended, ~self.illegal.any(axis=1), known)
        at = np.where(self.ended, 0, batch.place)
        self.mask = []
        for product, offered in zip(self._products, self._offered, strict=True):
            mask = offered[at]
            mask[known] = product[number[known]]
            mask[self.ended] = True  # nothing is chosen there, but with zeros averages would be 0 / 0
            self.mask.append(mask.view(np.int8))

    def _safe_sets(self) -> tuple[Bools, Ints]:
        """Return which episodes go on where safe play is possible, and the row of `_products` of
        each.
        """
        nothing = np.zeros(self.size, dtype=bool), np.zeros(self.size, dtype=np.int64)
        if self.shield is None:
            return nothing
        batch, shield = self.batch, self.shield
        pairs = shield.pairs(batch.t, batch.state, batch.counted_units(shield.tracker.units))
        known = (pairs >= 0) & ~self.ended
        if not known.any():
            return nothing
        met, first, code = np.unique(shield.mask_of[pairs[known]], return_index=True, return_inverse=True)
        some = np.flatnonzero(known)[first]
        new = [(int(d), int(b)) for d, b in zip(met, some, strict=True) if int(d) not in self._product_of]
        if new:
            found = [shield.product(*batch.counted_pair(b)) for _, b in new]
            self._product_of |= {d: len(self._product_of) + k for k, (d, _) in enumerate(new)}
            self._products = tuple(
                np.concatenate([held, np.stack([sets[i] for sets in found])]) for i, held in enumerate(self._products)
            )
        rows = np.zeros(self.size, dtype=np.int64)
        rows[known] = np.array([self._product_of[int(d)] for d in met])[code.reshape(-1)]
        return known, rows

    # -- what agents are told

    def observation(self, i: int) -> Any:
        """Return the observations of player i."""
        if self.options.observation == "vector":
            return self.vector.copy()
        return {"observation": self.vector.copy(), "action_mask": self.mask[i].copy()}

    def info(self, i: int) -> dict[str, NDArray[Any]]:
        """Return the infos of player i: arrays with one entry per environment."""
        costs = np.stack(
            [floats(self.costs[:, m], k) for m, k in enumerate(self.batch.costs.scale)] or [np.zeros(self.size)], axis=1
        )
        amounts = {"cost": costs, "spent": self.spent, "remaining": self.remaining}
        named = {
            f"{what}_{name}": found[:, m].copy()
            for what, found in amounts.items()
            for m, name in enumerate(self.names.values())
        }
        return {
            "action_mask": self.mask[i].copy(),
            "cost": costs[:, self.charged[i]].sum(axis=1),
            **named,
            "violated": self.batch.violated.copy(),
            "safe": self.safe.copy(),
            "illegal": self.illegal[:, i].copy(),
        }


def one_of(observations: Any, b: int) -> Any:
    """Return the observation of one environment of a batch."""
    return {key: x[b] for key, x in observations.items()} if isinstance(observations, dict) else observations[b]


def final_entries(stepped: Stepped, i: int) -> dict[str, Any]:
    """Return what infos say of episodes that ended and began anew in the same step."""
    if not stepped.final:
        return {}
    observations, info = stepped.final[i]
    shown = np.full(len(stepped.last), None, dtype=object)
    for b in np.flatnonzero(stepped.last).tolist():
        shown[b] = one_of(observations, b)
    own = {**info, **{f"_{key}": stepped.last.copy() for key in info}}
    return {
        "final_obs": shown,
        "final_info": own,
        "_final_obs": stepped.last.copy(),
        "_final_info": stepped.last.copy(),
    }
