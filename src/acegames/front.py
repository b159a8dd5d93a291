"""The public names, in the order of the pipeline; `acegames` loads them when the first is used."""

import acegames.baselines as baselines
import acegames.catalog as catalog
import acegames.learn as learn
import acegames.plot as plot
from acegames.adapters.gambit import repeat
from acegames.approximate import Rounded, discount, round_costs
from acegames.concepts import CCE, CE, Nash
from acegames.engines import OnProgress, Progress
from acegames.engines.cluster import RayEngine
from acegames.engines.forecast import Estimate
from acegames.engines.gpu import GPUEngine
from acegames.engines.local import LocalEngine
from acegames.engines.reference import ReferenceEngine
from acegames.errors import (
    AceError,
    BadFile,
    CheckpointError,
    ClusterError,
    GameWarning,
    Infeasible,
    InvalidGame,
    InvalidOption,
    MissingExtra,
    NoEquilibrium,
    TooLarge,
    UnknownPair,
)
from acegames.files.formats import load
from acegames.model.budgets import almost_sure, between, reservoir
from acegames.model.composing import compose
from acegames.model.game import MarkovGame
from acegames.model.random_costs import RandomCost, random_cost
from acegames.model.user_functions import Building, OnBuilding
from acegames.policy.memory import MemoryPolicy, MemoryRunner
from acegames.policy.policy import Policy, Runner
from acegames.policy.simulation import Rollouts, simulate
from acegames.policy.tracker import CostTracker
from acegames.promises.equilibrium_payoffs import Payoffs, PayoffSet, payoffs
from acegames.proofs import Proof, prove
from acegames.safety.feasible import Feasibility, feasibility
from acegames.safety.reduction import Reduction, reduce
from acegames.shield import Shield, ShieldRunner
from acegames.solving.curve import BudgetCurve, budget_curve
from acegames.solving.pipeline import Bracket, Solution, Stats, bracket, estimate, solve
from acegames.solving.solution import Guarantee
from acegames.verifier import Certificate, verify

# the game
__all__ = [
    "MarkovGame",
    "compose",
    "repeat",
    "almost_sure",
    "reservoir",
    "between",
    "random_cost",
    "RandomCost",
    "load",
    "catalog",
]
__all__ += ["Building", "OnBuilding"]
# made easier, with a bound
__all__ += ["round_costs", "Rounded", "discount"]
# can it be played safely
__all__ += ["feasibility", "Feasibility", "reduce", "Reduction", "Shield", "ShieldRunner"]
# an equilibrium
__all__ += ["CE", "CCE", "Nash", "solve", "Solution", "Guarantee", "Stats", "budget_curve", "BudgetCurve"]
__all__ += ["payoffs", "Payoffs", "PayoffSet"]
__all__ += ["bracket", "Bracket", "estimate", "Estimate"]
# where it is computed
__all__ += ["LocalEngine", "GPUEngine", "RayEngine", "ReferenceEngine", "Progress", "OnProgress"]
# the policy that it hands over
__all__ += ["Policy", "CostTracker", "Runner", "MemoryPolicy", "MemoryRunner"]
# checks
__all__ += ["verify", "Certificate", "prove", "Proof", "simulate", "Rollouts"]
# to compare with, to look at, and to learn from samples
__all__ += ["baselines", "plot", "learn"]
# errors
__all__ += ["AceError", "InvalidGame", "InvalidOption", "Infeasible", "NoEquilibrium", "TooLarge"]
__all__ += ["BadFile", "CheckpointError", "ClusterError", "MissingExtra", "UnknownPair", "GameWarning"]
