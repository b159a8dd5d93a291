"""What is known of a game before any sample: who plays, for how long, from where, under which budgets, and what is legal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acegames.errors import InvalidGame
from acegames.model.budgets import read_budget
from acegames.model.checks import check_horizon, check_labels, read_initial
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import Bound
from acegames.model.user_functions import check_function

END = "(episode over)"
"""The state after an environment has terminated. Nothing costs or pays there, and it is never left. A sample may have it as next state."""

NO_ACTION = "(none)"
"""Every player's only action once the episode is over."""

Cost = tuple[Fraction, ...]
Legal = Callable[[int, Any, JointAction], bool]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known for certain."""

    players: tuple[Label, ...]
    constraints: tuple[Label, ...]
    budgets: tuple[tuple[Bound, ...], ...]  # H rows of M
    horizon: int
    initial: dict[Label, float] | None  # None: taken from where episodes were seen to start
    actions: Callable[[int, Any], Sequence[Iterable[Label]]] | None  # None: legal is what was sampled
    legal: Legal | None
    name: str = ""
    may_start: tuple[Label, ...] | None = None  # where episodes can start, when that is known but not how often
    _known: dict[tuple[int, Label], tuple[JointAction, ...]] = field(default_factory=dict, repr=False)

    def joint_actions(self, t: int, state: Label) -> tuple[JointAction, ...] | None:
        """The legal joint actions, None when nobody said which they are."""
        if state == END:
            return (self.no_action,)
        if self.actions is None:
            return None
        if (t, state) not in self._known:
            self._known[t, state] = self._ask(t, state)
        return self._known[t, state]

    @property
    def starts(self) -> tuple[Label, ...] | None:
        """Every state where play can start; None when nobody said which they are."""
        return self.may_start if self.initial is None else tuple(self.initial)

    @property
    def no_action(self) -> JointAction:
        """What is played when the episode is over."""
        return (NO_ACTION,) * len(self.players)

    @property
    def zero(self) -> Cost:
        """No cost."""
        return (Fraction(0),) * len(self.constraints)

    def _ask(self, t: int, state: Label) -> tuple[JointAction, ...]:
        assert self.actions is not None
        spot = place(t, state)
        given: Any = self.actions(t, state)
        choices = [given[p] for p in self.players] if isinstance(given, Mapping) else list(given)
        if len(choices) != len(self.players):
            raise InvalidGame(f"{spot}: actions for {len(choices)} players, there are {len(self.players)}")
        sets = [check_labels(f"{spot}: actions of player {p!r}", c) for p, c in zip(self.players, choices, strict=True)]
        found = tuple(a for a in itertools.product(*sets) if self.legal is None or self.legal(t, state, a))
        if not found:
            raise InvalidGame(f"{spot}: no legal joint action, every state that can occur needs one")
        return found


def read_facts(
    known: Facts | None,
    *,
    players: Any,
    horizon: Any,
    initial: Any,
    budget: Any,
    constraints: Any,
    actions: Any,
    legal: Legal | None,
    name: str,
) -> Facts:
    """Check what the user says; what is left out is taken from `known` (a source that knows its own game)."""
    if players is None and known is None:
        raise InvalidGame("players: missing, give one label per player")
    if horizon is None and known is None:
        raise InvalidGame("horizon: missing, give the number of steps of an episode")
    who = known.players if players is None and known else check_labels("players", players)
    if not who:
        raise InvalidGame("players: a game needs at least one player")
    steps = known.horizon if horizon is None and known else check_horizon(horizon)
    if known is not None and steps > known.horizon:
        raise InvalidGame(f"horizon: got {steps}, the source has {known.horizon} steps")
    if budget is None and constraints is None and known is not None:
        limits, budgets = known.constraints, known.budgets[:steps]
    else:
        limits, budgets = read_budget(budget, constraints, steps)
    if actions is None and legal is not None and known is None:
        raise InvalidGame("legal: needs actions too, the labels among which it says what is allowed")
    if callable(actions):
        check_function("actions", actions, ("t", "state"), error=InvalidGame)
    if legal is not None:
        check_function("legal", legal, ("t", "state", "action"), error=InvalidGame)
    listed = tuple(check_labels("initial", initial)) if isinstance(initial, list) and initial else None
    return Facts(
        who,
        limits,
        budgets,
        steps,
        None if listed else (known.initial if known else None) if initial is None else read_initial(initial),
        (known.actions if known else None) if actions is None else as_function(actions),
        (known.legal if known else None) if legal is None else legal,
        name or (known.name if known else ""),
        listed,
    )


def as_function(actions: Any) -> Callable[[int, Any], Any]:
    """Action sets as a function of (t, state), from one or from sets that are the same everywhere."""
    return actions if callable(actions) else lambda t, s: actions


def facts_of(game: MarkovGame) -> Facts:
    """What a game itself says, besides its outcomes and rewards."""
    tables: list[dict[Label, tuple[JointAction, ...]]] = [
        {s: tuple(game.joint_action(layer.action[r]) for r in layer.rows(i)) for i, s in enumerate(game.states)}
        for layer in game.layers
    ]

    def here(t: int, state: Label) -> tuple[JointAction, ...]:
        return tables[game.layer_at[t]].get(state, ())

    return Facts(
        game.players,
        game.constraints,
        game.budgets,
        game.horizon,
        {game.states[s]: p for s, p in game.initial},
        lambda t, s: (
            [tuple(dict.fromkeys(column)) for column in zip(*here(t, s), strict=True)] or [()] * len(game.players)
        ),
        lambda t, s, a: a in here(t, s),
        game.name,
    )
