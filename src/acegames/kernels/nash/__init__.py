"""Nash equilibria of written stage games. `acegames.stage.nash_exact` has the mathematics.

    records      what the search works on, by name
    scale        utilities in units, scores, and pure equilibria
    simplex      the small programs
    mixtures     how one player may mix over its support, so that the other's is optimal
    supports     the search through pairs of supports
    two_players  a stage of two players: by minimax, or by its supports
    stages       all written stages

For supports S_1 x S_2 the conditions on one player's mixture are linear: all actions of the other's
support are worth the same (equations, solved by elimination), and no feasible action is worth more.
Where the equations leave one mixture, it is checked; where they leave more, a small simplex finds
the one that is best for the objective and positive throughout.

Floats decide only what is clear: a quantity within the player's `tie` of zero is zero, one beyond
`NASH_CLEAR` is not, and what lies between makes the stage UNSURE, to be solved again exactly.
Stages in which nothing was found, or whose answer misses the certificate, are solved exactly too.
"""

from __future__ import annotations

from acegames.kernels.nash.records import MIXED, TOO_MANY, UNSURE, Equilibria
from acegames.kernels.nash.stages import solve_nash

__all__ = ["MIXED", "TOO_MANY", "UNSURE", "Equilibria", "solve_nash"]
