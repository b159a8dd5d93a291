"""A game played by agents that see vectors and choose numbers: `Play`, or `BatchPlay` in arrays.

An action mask is 0 or 1 for each action of an agent. Masks that keep every budget are those of a
`Shield`. Without one, and where no safe play is left because somebody did not heed the masks, they
allow what is legal. In a batch every array has a leading axis for the B episodes, and safe masks
are looked up by the number of each situation's set of safe joint actions; a set that was never met
before is asked for once.

Episodes of a batch that end begin anew by themselves, in one of Gymnasium's ways:
    NextStep   at the next step, which plays nothing there and has no reward
    SameStep   at once; `final_obs` and `final_info` hold what the end looked like
    Disabled   not at all; somebody resets them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.env_interface import MASKS, STYLES, Options, VectorLayout, constraint_names, flat
from acegames.adapters.environments.episodes import Action, Amounts, Batch, Episode, offered_masks
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.arrays import Bools, Floats, Ints
from acegames.model.checks import check_choice, check_count, show
from acegames.model.game import JointAction, Label, MarkovGame, check_game, place
from acegames.model.numbers import nearest_float
from acegames.shield.situation import joint_indices

Mask = NDArray[np.int8]
Masks = tuple[Mask, ...]

MOST_PRODUCTS = 1 << 16
"""The masks of this many situations are kept."""


class AgentsPlay:
    """A game as its agents see it: what one play and a batch of plays share.

    `masks` are the kinds of mask that may be asked for.
    """

    vector: NDArray[np.float32]  # (size,), or (B, size) of a batch
    mask: Sequence[Mask]  # N: (n_i,), or (B, n_i) of a batch
    safe: Any  # whether no budget was broken, and none has to be

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        check_game(game)
        self.game, self.options = game, options
        self.shield = options.shield_of(game, masks)
        self.rounding = self.shield.tracker.rounding if self.shield is not None else ()
        self.layout = VectorLayout(game, options.features)
        self.agents = agent_names(game.players)
        self.names = constraint_names(game.constraints)
        self.charged = options.charged(game)

    @property
    def begun(self) -> bool:
        """Whether an episode has begun."""
        return hasattr(self, "vector")

    def check_begun(self) -> None:
        """Raise InvalidOption before the first episode."""
        if not self.begun:
            raise InvalidOption("no episode has begun yet: call reset first")

    def observation(self, i: int) -> Any:
        """Return what player i sees, in every episode of a batch."""
        if self.options.observation == "vector":
            return self.vector.copy()
        style = STYLES[self.options.style]
        return {style.observation: self.vector.copy(), "action_mask": self.mask[i].astype(style.mask)}


class Play(AgentsPlay):
    """One game, episode after episode."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        super().__init__(game, options, masks)
        self.episode = Episode(game, self.rounding)
        self.running = False
        self._products: dict[tuple[int, ...], Masks | None] = {}

    # -- playing

    def begin(self, rng: np.random.Generator) -> None:
        """Begin an episode."""
        self.episode.begin(rng)
        self.running = True
        self.costs: Amounts = (0,) * len(self.game.constraints)
        self.illegal: frozenset[int] = frozenset()
        self._update()

    def step(self, action: Sequence[Any], rng: np.random.Generator) -> tuple[float, ...]:
        """Play one action number per player; return the rewards."""
        if not self.running:
            raise InvalidOption("the episode is over, or was never begun: call reset")
        chosen = tuple(self.number(i, a) for i, a in enumerate(action))
        if chosen in self.episode.legal:
            step = self.episode.play(chosen, rng)
            self.costs, rewards = step.costs, step.rewards
            self.running = not self.episode.over
        else:
            rewards = self._refuse(chosen)
        self._update()
        return rewards

    def _refuse(self, chosen: Action) -> tuple[float, ...]:
        """End the episode at a joint action that is not legal."""
        offered = self.offered()
        wrong = [i for i, k in enumerate(chosen) if not offered[i][k]] or list(range(len(chosen)))
        if self.options.illegal is None:
            legal = ", ".join(str(self.game.joint_action(a)) for a in list(self.episode.legal)[:8])
            rule = f"must be one of {legal}{', ...' if len(self.episode.legal) > 8 else ''}"
            joint = self.game.joint_action(chosen)
            raise InvalidOption(f"{self.episode.place}: the joint action {joint!r} is not offered, {rule}")
        self.running, self.illegal = False, frozenset(wrong)
        self.costs = (0,) * len(self.game.constraints)
        return tuple(float(self.options.illegal) if i in self.illegal else 0.0 for i in range(len(chosen)))

    def number(self, i: int, action: Any) -> int:
        """Return the number of an action that player i chose, checked."""
        n = len(self.game.actions[i])
        if isinstance(action, np.ndarray) and action.ndim == 0:
            action = action[()]
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or not 0 <= action < n:
            where, rule = f"{self.episode.place}: " if self.running else "", f"must be a whole number from 0 to {n - 1}"
            raise InvalidOption(f"{where}agent {self.agents[i]!r} chose {action!r}, {rule}")
        return int(action)

    def _update(self) -> None:
        episode = self.episode
        self.spent, self.remaining = episode.spent, episode.remaining
        self.vector = self.layout.vector(episode.t, episode.state, self.remaining)
        product = self._product() if self.running else None
        self.safe = not episode.violated and (product is not None if self.running else not self.illegal)
        # Nothing is chosen at the end, but with zeros averages over allowed actions would be 0 / 0.
        self.mask = product or self.offered() if self.running else self._every(1)

    # -- masks

    def _every(self, allowed: int) -> Masks:
        return tuple(np.full(len(labels), allowed, dtype=np.int8) for labels in self.game.actions)

    def offered(self) -> Masks:
        """Return the actions of each player that are part of some legal joint action."""
        masks, layer = self._every(0), self.game.layer(self.episode.t)
        rows = layer.rows(self.episode.state)
        for mask, used in zip(masks, layer.action[rows.start : rows.stop].T, strict=True):
            mask[used] = 1
        return masks

    def _product(self) -> Masks | None:
        """Return masks within which players choose alone; None without a shield or safe play."""
        if self.shield is None:
            return None
        key = self.episode.key
        if key not in self._products:
            if len(self._products) >= MOST_PRODUCTS:
                self._products.clear()
            try:
                self._products[key] = tuple(x.astype(np.int8) for x in self.shield.product(*self.episode.counted_pair))
            except UnknownPair:
                self._products[key] = None
        return self._products[key]

    def turn(self, chosen: Action) -> Mask | None:
        """Return the next player's mask after the choices before it; None where no safe choice is
        left.
        """
        assert self.shield is not None
        labels = tuple(names[k] for names, k in zip(self.game.actions, chosen, strict=False))
        try:
            return self.shield.turn(*self.episode.counted_pair, labels).astype(np.int8)
        except (UnknownPair, InvalidOption):  # nothing is safe here, or not after these choices
            return None

    # -- infos

    def info(self, i: int) -> dict[str, Any]:
        """Return the info of player i, with floats: vectors of environments need one type."""
        return {
            "action_mask": self.mask[i].copy(),
            "cost": math.fsum(nearest_float(self.costs[m]) for m in self.charged[i]),
            **self._amounts(),
            "violated": self.episode.violated,
            "safe": self.safe,
            "illegal": i in self.illegal,
        }

    def _amounts(self) -> dict[str, Any]:
        if self.options.infos == "flat":
            return flat(self.names, {"cost": self.costs, "spent": self.spent, "remaining": self.remaining})
        return {
            "costs": self._floats(self.costs),
            "spent": self._floats(self.spent),
            "remaining": self._floats(self.remaining),
        }

    def _floats(self, amounts: Amounts) -> dict[Label, float]:
        return {label: nearest_float(amount) for label, amount in zip(self.game.constraints, amounts, strict=True)}

    # -- words and numbers

    def encode(self, action: Sequence[Label]) -> Action:
        """Return numbers of a joint action given in the words of the game."""
        return joint_indices(self.game, action)

    def decode(self, action: Sequence[Any]) -> JointAction:
        """Return a joint action in the words of the game, given by numbers."""
        return self.game.joint_action(self.number(i, a) for i, a in enumerate(action))


def agent_names(players: Sequence[Label]) -> list[str]:
    """Return agents' names: players that are text as they are, others as player_0, player_1, ..."""
    names = [p if isinstance(p, str) else f"player_{i}" for i, p in enumerate(players)]
    return names if len(set(names)) == len(names) else [f"player_{i}" for i in range(len(names))]


# -- a batch of episodes

AUTORESET = ("NextStep", "SameStep", "Disabled")


@dataclass(frozen=True, eq=False)
class Stepped:
    """What a step of the batch gave."""

    rewards: Floats  # (B, N)
    ended: Bools  # (B,)
    last: Bools  # (B,) where `final` tells how an episode ended; SameStep alone
    final: list[tuple[Any, dict[str, Any]]]  # observations and infos of each player before the new beginning


class BatchPlay(AgentsPlay):
    """One game, B episodes at a time, again and again."""

    def __init__(self, game: MarkovGame, num_envs: int, options: Options, autoreset_mode: Any = "NextStep") -> None:
        self.size = check_count("num_envs", num_envs)
        self.autoreset = getattr(autoreset_mode, "value", autoreset_mode)  # Gymnasium's enumeration, or its words
        check_choice("autoreset_mode", self.autoreset, AUTORESET)
        super().__init__(game, options)
        self.batch = Batch(game, self.size, self.rounding)
        self._offered = offered_masks(self.batch.layer, game.actions)
        # the masks of the sets of safe joint actions that were met, and the row that each set has
        self._products = tuple(np.zeros((0, len(labels)), dtype=bool) for labels in game.actions)
        self._product_of: dict[int, int] = {}

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
            rule = f"the joint action {joint!r} is not offered"
            raise InvalidOption(f"environment {b}, {place(t, state)}, spent {spent!r}: {rule}")
        at = self.batch.place[wrong]
        mine = np.stack([~mask[at, own] for mask, own in zip(self._offered, chosen[wrong].T, strict=True)], axis=1)
        self.illegal[wrong] = mine | ~mine.any(axis=1, keepdims=True)
        return np.where(self.illegal[wrong], float(self.options.illegal), 0.0)

    def _numbers(self, i: int, action: Any, going: Bools) -> Ints:
        """Return the action numbers of player i, (B,), checked where an episode goes on."""
        numbers, n, who = np.asarray(action), len(self.game.actions[i]), f"agent {self.agents[i]!r}"
        if numbers.shape != (self.size,) or numbers.dtype.kind not in "iu":
            got = f"{numbers.dtype} of the shape {numbers.shape}" if isinstance(action, np.ndarray) else show(action)
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
        """Return where safe play goes on, (B,), and the rows of `_products` there."""
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
            products = [shield.product(*batch.counted_pair(b)) for _, b in new]
            self._product_of |= {d: len(self._product_of) + k for k, (d, _) in enumerate(new)}
            self._products = tuple(
                np.concatenate([held, np.stack([sets[i] for sets in products])])
                for i, held in enumerate(self._products)
            )
        rows = np.zeros(self.size, dtype=np.int64)
        rows[known] = np.array([self._product_of[int(d)] for d in met])[code.reshape(-1)]
        return known, rows

    # -- infos

    def info(self, i: int) -> dict[str, NDArray[Any]]:
        """Return the infos of player i: arrays with one entry per environment."""
        costs = self.batch.costs.in_user_units(self.costs)
        amounts = {"cost": costs, "spent": self.spent, "remaining": self.remaining}
        named = {
            f"{what}_{name}": columns[:, m].copy()
            for what, columns in amounts.items()
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
