"""OpenSpiel: its games in, with costs and budgets; policies out, as its tabular policies.

>>> from acegames.adapters.openspiel import from_openspiel, repeated, to_tabular_policy
>>> game = repeated("matrix_pd", 3)  # the prisoner's dilemma, three times
>>> cost = lambda state, action, after: action.count("Defect")
>>> markov_game = from_openspiel(game, budget={"defections": 2}, cost=cost)
>>> policy = to_tabular_policy(acegames.solve(markov_game, acegames.Nash()), game, turn_based=True)
"""

from acegames.adapters.openspiel.openspiel_games import from_openspiel, play, repeated, state_label
from acegames.adapters.openspiel.openspiel_policies import to_tabular_policy

__all__ = ["from_openspiel", "play", "repeated", "state_label", "to_tabular_policy"]
