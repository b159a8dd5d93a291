"""One situation of a shield, in the user's labels, and the runner of an episode through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.arrays import Bools, Floats
from acegames.model.checks import UNSAID, check_known, unknown
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import plain
from acegames.policy.tracker import AT_AN_END, Possible, Spending
from acegames.shield.shield_sets import sealed
from acegames.system.display import Shown, lines_html

if TYPE_CHECKING:
    from acegames.shield.shield import Shield


Chosen = Sequence[Label] | Mapping[Label, Label]

NAMED = 8
"""Safe joint actions that are shown, at most."""


@dataclass(frozen=True, eq=False, repr=False)
class Situation(Shown):
    """A situation that is reachable under feasible play, and its safe joint actions."""

    game: MarkovGame
    t: int
    state: Label
    spent: Any
    number: int  # of the set among the distinct ones
    safe: NDArray[np.int32]  # (E, N) indices, in lexicographic order; at least one where t < H

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of actions of each player."""
        return tuple(map(len, self.game.actions))

    def joint(self) -> Bools:
        """Return the safe joint actions as a mask of `shape`."""
        mask = np.zeros(self.shape, dtype=bool)
        mask[tuple(self.safe.T)] = True
        return sealed(mask)

    def allows(self, action: Sequence[Label]) -> bool:
        """Return whether a joint action is safe."""
        return bool((self.safe == joint_indices(self.game, action)).all(axis=1).any())

    def turn(self, chosen: Chosen, player: Label) -> Bools:
        """Return the next player's actions that complete what was chosen to a safe joint action."""
        played, following = self._played(chosen), self.safe
        for i, a in played.items():
            following = following[following[:, i] == a]
        if not len(following):
            raise InvalidOption(f"{self}: no safe joint action has the actions {chosen!r} that were chosen")
        asked = None if player is UNSAID else self._player(player)
        waiting = [i for i in range(len(self.shape)) if i not in played and asked in (None, i)]
        if not waiting:
            who = "every player" if asked is None else f"player {player!r}"
            raise InvalidOption(f"chosen: {who} has chosen already")
        mask = np.zeros(self.shape[waiting[0]], dtype=bool)
        mask[following[:, waiting[0]]] = True
        return sealed(mask)

    def repair(self, action: Sequence[Label], prefer: Any) -> JointAction:
        """Return the safe joint action in which the fewest players change, the preferred one of
        several.
        """
        nearest = self.nearest(np.array(joint_indices(self.game, action)))
        return self.game.joint_action(nearest[int(np.argmax(self._scores(prefer, nearest)))])

    def nearest(self, action: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the safe joint actions in which the fewest players change; -1 is an unknown
        action.
        """
        changed = (self.safe != action).sum(axis=1)
        return np.asarray(self.safe[changed == changed.min()])

    def _player(self, player: Label) -> int:
        check_known("player", [player], self.game.players)
        return self.game.players.index(player)

    def _played(self, chosen: Chosen) -> dict[int, int]:
        """Return the action index of each player who has chosen, by player index."""
        players = self.game.players
        if isinstance(chosen, Mapping):
            played = {self._player(p): a for p, a in chosen.items()}
        elif _listed(chosen) and len(chosen) <= len(players):
            played = dict(enumerate(chosen))
        else:
            rule = f"must be the actions of the first of the players {list(players)!r}, or {{player: action}}"
            raise InvalidOption(f"chosen: got {chosen!r}, {rule}")
        return {i: _index(self.game, i, a) for i, a in played.items()}

    def _scores(self, prefer: Any, safe: NDArray[np.int32]) -> Floats:
        """Return the score of each joint action."""
        if prefer is None:
            return np.zeros(len(safe))
        joint = isinstance(prefer, np.ndarray)
        listed = [prefer] if joint else self._own_scores(prefer)
        try:
            scores = [np.asarray(x, dtype=np.float64) for x in listed]
        except (TypeError, ValueError):
            scores = []
        shapes = [self.shape] if joint else [(n,) for n in self.shape]
        if [x.shape for x in scores] != shapes or any(np.isnan(x).any() for x in scores):
            raise InvalidOption(
                f"prefer: got {prefer!r:.100}, must be an array of the shape {self.shape}, or scores of each player's own actions, as "
                "many as it has: a sequence of arrays in the order of players, or {player: scores}; none of them NaN"
            )
        if joint:
            return np.asarray(scores[0][tuple(safe.T)])
        return np.asarray(np.sum([x[own] for x, own in zip(scores, safe.T, strict=True)], axis=0))

    def _own_scores(self, prefer: Any) -> list[Any]:
        """Return one array of scores per player."""
        if isinstance(prefer, Mapping):
            by_player = {self._player(p): scores for p, scores in prefer.items()}
            return [by_player.get(i, np.zeros(n)) for i, n in enumerate(self.shape)]
        own = list(prefer) if _listed(prefer) else []
        if self.shape == (2, 2) and not any(isinstance(scores, np.ndarray) for scores in own):
            raise InvalidOption(
                f"prefer: {prefer!r} could be scores of joint actions or of each player's own; make the former one array, give the "
                "latter as {player: scores}"
            )
        return own

    def __str__(self) -> str:
        return f"{place(self.t, self.state)}, spent {self.spent!r}"

    def __repr__(self) -> str:
        return f"<Situation: {self}; {self._safe_text()}>"

    def _repr_html_(self) -> str:
        return lines_html([f"Situation: {self}.", f"Safe joint actions: {self._safe_text()}."])

    def _safe_text(self) -> str:
        """Return how many joint actions are safe, and some of them."""
        if not len(self.safe):
            return "the episode is over"
        named = ", ".join(repr(self.game.joint_action(a)) for a in self.safe[:NAMED])
        return f"{len(self.safe):,} safe: {named}{', ...' * (len(self.safe) > NAMED)}"


def joint_indices(game: MarkovGame, action: Sequence[Label]) -> tuple[int, ...]:
    """Return the action numbers of a joint action given by labels; InvalidOption where it is
    none.
    """
    players = game.players
    if not _listed(action) or len(action) != len(players):
        raise InvalidOption(f"action {action!r}: must be one action per player {list(players)!r}, in this order")
    return tuple(_index(game, i, a) for i, a in enumerate(action))


def _index(game: MarkovGame, player: int, action: Label) -> int:
    try:
        return game.action_numbers[player][action]
    except (KeyError, TypeError):
        said = unknown("action", action, game.actions[player])
        raise InvalidOption(f"player {game.players[player]!r}: {said}") from None


def _listed(value: Any) -> bool:
    """Return whether an object is a sequence, or an array with one axis."""
    return (
        np.ndim(value) == 1
        if isinstance(value, np.ndarray)
        else isinstance(value, Sequence) and not isinstance(value, str)
    )


# -- one episode -----------------------------------------------------------------------------------


class ShieldRunner(Spending):
    """Follows one episode: adds up the costs and gives the shield's masks for where it is."""

    def __init__(self, shield: Shield, state: Label) -> None:
        super().__init__(shield.game.horizon, shield.tracker, state, shield.game.budgets)
        self.shield = shield
        self._situation = shield.at(0, state, self.counted)

    def joint(self) -> Bools:
        """Return which joint actions are safe here; see `Shield.joint`."""
        return self.situation.joint()

    def turn(self, chosen: Chosen = (), *, player: Label = UNSAID) -> Bools:
        """Return the mask of the player who chooses next; `chosen` and `player` as in
        `Shield.turn`.
        """
        return self.situation.turn(chosen, player)

    def product(self) -> tuple[Bools, ...]:
        """Return one mask per player here; see `Shield.product`."""
        return self.shield._product(self.situation.number)

    def repair(self, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """Return the nearest safe joint action here; `action` and `prefer` as in
        `Shield.repair`.
        """
        return self.situation.repair(action, prefer)

    def safe(self, action: Sequence[Label]) -> bool:
        """Return whether a joint action is safe here."""
        return self.situation.allows(action)

    def observe(self, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Tell the runner what was played, what it cost and which state followed.

        Args:
            action: the joint action that was played, one label per player.
            cost: what it cost, as in `MarkovGame.from_functions`.
            next_state: the state that followed.

        Raises:
            InvalidOption: the joint action is not safe here, or the game has no such cost or state.
                The runner stays where it is.
            UnknownPair: no outcome of the joint action has this cost and next state, so the game
                does not describe what happened. The message names the possible outcomes.
        """
        here, shield = self.situation, self.shield
        if not here.allows(action):
            raise InvalidOption(
                f"{here}: the joint action {tuple(action)!r} is not safe; `repair` gives the nearest safe one"
            )
        self.check_next_state(shield.game.state_numbers, next_state)
        after = self.after(cost)
        if not shield.explains(self.t, self.state, action, cost, next_state):
            hint = "" if shield.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(
                f"{here}: the joint action {tuple(action)!r} is safe, but it led to {next_state!r} at a cost of "
                f"{cost!r}, and the game has no such outcome{hint}; "
                f"{Possible(shield.game, shield.tracker).named(self.t, self.state, action)}"
            )
        there = shield.at(self.t + 1, next_state, tuple(map(plain, after[1])))
        self.move(after, next_state)
        self._situation = there

    @property
    def situation(self) -> Situation:
        """The present situation with its safe joint actions; InvalidOption at the end."""
        self.check_running()
        return self._situation
