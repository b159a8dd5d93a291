"""acegames: equilibria of Markov games whose hard budgets hold at every moment, with probability one.

    game  (-> rounded costs, or infinite play cut short)  ->  feasibility  ->  solve  ->  policy  ->  verify / simulate

    >>> import acegames as ace
    >>> game = ace.catalog.get("intersection")
    >>> solution = ace.solve(game, ace.CE())
    >>> ace.verify(game, solution.policy, ace.CE()).ok
    True

A newcomer needs four names: `MarkovGame`, `solve`, `verify`, `simulate`.
"""

from acegames import baselines, catalog, learn, plot
from acegames.approximate import Rounded, discount, round_costs
from acegames.concepts import CCE, CE, Nash
from acegames.engines import Progress, Report
from acegames.engines.forecast import Estimate
from acegames.engines.local import LocalEngine
from acegames.engines.reference import ReferenceEngine
from acegames.errors import (
    AceError,
    BadFile,
    CheckpointError,
    Infeasible,
    InvalidGame,
    InvalidOption,
    MissingExtra,
    NoEquilibrium,
    TooLarge,
    UnknownPair,
)
from acegames.files.loading import load
from acegames.model.budgets import almost_sure
from acegames.model.costs.random import RandomCost, random_cost
from acegames.model.game import MarkovGame
from acegames.policy.policy import Policy, Runner
from acegames.policy.simulation import Rollouts, simulate
from acegames.policy.tracker import CostTracker
from acegames.safety.feasible import Feasibility, feasibility
from acegames.safety.reduction import Reduction, reduce
from acegames.shield import Shield, ShieldRunner
from acegames.solving.bracketing import Bracket, bracket
from acegames.solving.curve import BudgetCurve, budget_curve
from acegames.solving.guarantee import Guarantee
from acegames.solving.pipeline import Solution, Stats, estimate, solve
from acegames.verifier import Certificate, verify
from acegames.verifier.proof import Proof, certify, prove
from acegames.version import __version__ as __version__

__all__ = [
    # the game
    "MarkovGame",
    "almost_sure",
    "random_cost",
    "RandomCost",
    "load",
    "catalog",
    # made easier, with a bound
    "round_costs",
    "Rounded",
    "discount",
    # can it be played safely
    "feasibility",
    "Feasibility",
    "reduce",
    "Reduction",
    "Shield",
    "ShieldRunner",
    # an equilibrium
    "CE",
    "CCE",
    "Nash",
    "solve",
    "estimate",
    "Estimate",
    "Solution",
    "Guarantee",
    "budget_curve",
    "BudgetCurve",
    "Stats",
    "bracket",
    "Bracket",
    "Progress",
    "Report",
    "LocalEngine",
    "ReferenceEngine",
    # what it hands over
    "Policy",
    "CostTracker",
    "Runner",
    # checks
    "verify",
    "Certificate",
    "prove",
    "certify",
    "Proof",
    "simulate",
    "Rollouts",
    # to compare with, and to look at
    "baselines",
    "plot",
    # from samples
    "learn",
    # errors
    "AceError",
    "InvalidGame",
    "InvalidOption",
    "Infeasible",
    "NoEquilibrium",
    "TooLarge",
    "BadFile",
    "CheckpointError",
    "MissingExtra",
    "UnknownPair",
]
