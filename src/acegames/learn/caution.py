"""What the user knows about costs and next states beyond the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.facts import Cost, Facts
from acegames.model.checks import plain_label
from acegames.model.from_functions import read_vector
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import exact, is_scalar
from acegames.model.user_functions import check_function
from acegames.model.written import show


@dataclass(frozen=True)
class Caution:
    """Bounds on costs and next states. What they allow is held possible if `conservative`."""

    conservative: bool = False
    worst_cost: Any = None  # one cost, several costs, or a function of (t, state, action) that gives them
    possible_next: Callable[[int, Any, JointAction], Any] | None = None
    negligible: float = 0.0  # outcomes of at most this probability are not guarded against
    unseen_reward: Any = None  # of a pair never sampled: a number, one per player, or a function

    def check(self) -> Caution:
        """Return itself; InvalidOption when the options contradict each other."""
        if self.conservative and self.worst_cost is None:
            raise InvalidOption("conservative: needs worst_cost, the largest cost that any step can have")
        if not self.conservative and (self.negligible or self.unseen_reward is not None):
            raise InvalidOption("negligible and unseen_reward: need conservative=True")
        if self.unseen_reward is not None and self.possible_next is None:
            raise InvalidOption("unseen_reward: needs possible_next, where a pair never sampled can lead")
        for name in ("worst_cost", "possible_next", "unseen_reward"):
            given = getattr(self, name)
            if callable(given) or (name == "possible_next" and given is not None):
                check_function(name, given, ("t", "state", "action"))
        if isinstance(self.negligible, bool) or not 0 <= self.negligible < 1:
            raise InvalidOption(f"negligible: got {self.negligible!r}, must be a probability of at least 0 and below 1")
        return self

    def worst(self, facts: Facts, t: int, state: Label, action: JointAction) -> tuple[Cost, ...] | None:
        """Costs such that each that can occur is at most one of them; None when not known."""
        if self.worst_cost is None:
            return None
        given = self.worst_cost(t, state, action) if callable(self.worst_cost) else self.worst_cost
        several = isinstance(given, (list, tuple)) and any(isinstance(c, Mapping) or not is_scalar(c) for c in given)
        spot = f"{place(t, state, action)}: worst_cost"
        return tuple(dict.fromkeys(read_cost(c, facts, spot) for c in (given if several else [given])))

    def next_states(self, t: int, state: Label, action: JointAction, seen: set[Label]) -> list[Label]:
        """The states that can follow: those that the user lists, else those seen."""
        if self.possible_next is None:
            return sorted(seen, key=repr)
        spot = place(t, state, action)
        given = self.possible_next(t, state, action)
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise InvalidGame(f"{spot}: possible_next gives {show(given)}, must be a list of states")
        listed = list(dict.fromkeys(plain_label(f"{spot}: possible_next", s) for s in given))
        missing = sorted(seen - set(listed), key=repr)
        if missing:
            raise InvalidGame(f"{spot}: next state {missing[0]!r} was seen, but possible_next does not list it")
        if not listed:
            raise InvalidGame(f"{spot}: possible_next is empty, must list at least one state")
        return listed

    def reward_unseen(self, facts: Facts, t: int, state: Label, action: JointAction) -> tuple[float, ...]:
        """The rewards of a pair that was never sampled."""
        given = self.unseen_reward(t, state, action) if callable(self.unseen_reward) else self.unseen_reward
        given = [given] * len(facts.players) if is_scalar(given) and not isinstance(given, Mapping) else given
        return read_reward(given, facts, f"{place(t, state, action)}: unseen_reward")


def read_cost(given: Any, facts: Facts, spot: str) -> Cost:
    """A cost in the exact numbers of the constraints; None is no cost."""
    found: Cost = read_vector({} if given is None else given, facts.constraints, exact, spot, "cost", "constraint")
    return found


def read_reward(given: Any, facts: Facts, spot: str) -> tuple[float, ...]:
    """One reward per player."""
    found: tuple[float, ...] = read_vector(given, facts.players, float, spot, "reward", "player")
    return found


def dominated(cost: Cost, by: Cost) -> bool:
    """Whether a cost is at most another one in every constraint."""
    return all(c <= w for c, w in zip(cost, by, strict=True))
