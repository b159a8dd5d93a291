"""A shield around a parallel environment of PettingZoo."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import BaseParallelWrapper

from acegames.adapters.environments.guarding import Guarded, Price, any_state, check_shield, knows_only_actions
from acegames.adapters.pettingzoo.conventions import Conventions, CostRule
from acegames.shield import Shield


class ShieldedParallelEnv(Guarded, BaseParallelWrapper):  # type: ignore[misc]
    """The environment that `acegames.adapters.pettingzoo.shielded` makes, with its options."""

    def __init__(
        self, env: Any, shield: Shield, *, state: Any, cost: CostRule | None, actions: Any, **handling: str
    ) -> None:
        check_shield(shield)
        if knows_only_actions(shield):
            state, cost = state or any_state, cost or Price(shield)
        rules = Conventions(env, shield.game.constraints, state, "cost" if cost is None else cost, shield.players)
        BaseParallelWrapper.__init__(self, env)
        Guarded.__init__(self, env, shield, rules, actions, **handling)
