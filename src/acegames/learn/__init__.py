"""Learning a game from samples (spec 8): estimate it, solve it, see what the data supports.

    samples / model / environment  ->  estimate  ->  Empirical: .game to solve, .support, .unseen
    solution of the estimated game ->  .policy(solution), to run in the true game

    >>> import acegames as ace
    >>> true = ace.catalog.get("intersection", horizon=3)
    >>> known = {"conservative": True, "worst_cost": lambda t, road, a: 2 * max(a.count("dare"), 1)}
    >>> learned = ace.learn.estimate(true, samples_per_pair=5, rng=0, **known)
    >>> policy = learned.policy(ace.solve(learned.game))
    >>> ace.learn.rollout(true, policy, episodes=100, rng=0).violations
    0

Only the support of the costs decides which joint actions are feasible, so the statements are about
the support: after N samples of a (t, state, joint action), an outcome of probability p has been
missed with probability (1-p)^N.
`confidence` bounds all outcomes together that a policy can meet.
"""

from acegames.learn.confidence import PolicySupport, ruled_out, samples_needed
from acegames.learn.empirical import Empirical, PairSupport
from acegames.learn.env_protocol import END
from acegames.learn.estimating import estimate
from acegames.learn.known import Known
from acegames.learn.safe_policy import Episodes, SafePolicy, SafeRunner, rollout, safe_policy
from acegames.learn.sources import GameModel, game_model
from acegames.learn.tally import Key

__all__ = ["END", "Empirical", "Episodes", "GameModel", "Key", "Known", "PairSupport"]
__all__ += ["PolicySupport", "SafePolicy", "SafeRunner", "estimate", "game_model"]
__all__ += ["rollout", "ruled_out", "safe_policy", "samples_needed"]
