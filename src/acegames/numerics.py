"""Every tolerance of acegames, with its reason, and the letters used for array axes.

Axes: T time, S state, A joint action, N player, M constraint, R row (one legal joint action of one
state), K outcome (one entry of a row's distribution), P pair (state, spent).

No tolerance touches a budget: cumulative costs are integers and are compared exactly. The *unit* of
a stage is what a player's utilities are measured in there (see OUTLIER and COARSE).
"""

PROBABILITY_SUM = 1e-8
"""Largest error of a distribution's sum: eight written digits of 1/3 pass, 0.333 does not."""

PROBABILITY_RENORMALISE = 1e-12
"""Distributions whose sum is further from one than this are divided by it. Smaller errors are
rounding and stay, so that loading a saved game reproduces it to the last bit."""

LP_CERTIFICATE = 1e-9
"""Largest dual infeasibility or duality gap of an accepted stage program, in units of the stage.
Programs that miss it are solved again in exact arithmetic."""

LARGE_CERTIFICATE = 16 * LP_CERTIFICATE
"""LP_CERTIFICATE for stage programs with many joint actions: exact arithmetic takes seconds there,
and their duals are sums of more rounded terms."""

DUAL_INFEASIBILITY = 1e-10
"""How much of an objective may rest on rows that are violated by rounding (violations times duals).
A tenth of TIE, so that ties can still be seen."""

HIGH_DUAL = 100.0
"""Duals above this are checked again: pivots' rounding times such a dual could hide a tie."""

STABLE = 1e-10
"""Largest gain by a deviation at an accepted stage, as a share of the most that the deviation can
gain there, and of the distance between the answer and the player's best. A hundredth of VERIFY,
because the gains of many steps add up."""

TIE = 1e-9
"""Utilities closer than this, in units of the stage, count as tied, so that the lexicographic
choice does not follow rounding errors of 1e-16."""

NOISE = 2 * 2.0**-52
"""Utilities are equal if they differ by less than this share of their sum of absolute rewards
(`abs_total` in the kernels): adding up in another order changes as much. Without this rule the
rounding errors of an indifferent player would pass for incentives. The verifier allows the same
amount (the last digit of each reward on both sides of a comparison), so it does not call a gain
what the solver calls rounding."""

OUTLIER = 64.0
"""Utilities this many times as far below a player's best as its best quarter do not count for the
unit of a stage: they are penalties, and in units of a penalty nothing else would matter."""

COARSE = 1e3
"""A stage is solved again in a finer unit if its unit is more than this many times what the answer
leaves a player to gain. TIE and LP_CERTIFICATE are then at most a millionth of what matters."""

BASELINE = 64.0
"""A baseline is taken out of rewards whose total size is more than this many times the smallest
amount that rewards differ by: NOISE is a share of the size and VERIFY a share of the
difference, and over thousands of steps the first must stay below the second."""

INDIFFERENT = 1e-13
"""A player is indifferent (Nash) if its mixed utilities differ by less than this, in units of the
range of utilities: solving the linear systems of a support in floats is off by as much. Differences
between this and TIE are decided in exact arithmetic."""

LEAST_PROBABILITY = 1e-8
"""Nash equilibria are first searched among supports whose probabilities are all at least this: a
smaller probability may be rounding. Only if there are none, smaller ones are searched, in exact
arithmetic."""

LARGEST_TOTAL = 1e300
"""Largest size of a player's total reward, the floor of deviations included. Differences and
weighted sums of utilities must not overflow, or an overflow would pass for an incentive."""

PRODUCT = 1e-10
"""The verifier says that players do not draw independently if a joint probability differs from the
product by more than this: far above rounding, and a hundredth of what VERIFY notices in values."""

ROW_FEASIBLE = 1e-14
"""Rows of a stage program that are violated by less, in units of the stage, hold while pivoting: a
pivot of such small programs rounds as much. The answer is checked against STABLE afterwards."""

PIVOT = 1e-12
"""Smaller entries of a simplex table are rounding, never pivots. The certificate notices damage."""

HARRIS = 1e-11
"""How far a ratio test looks beyond the tightest row for a larger pivot: 1000 ROW_FEASIBLE."""

NASH_CLEAR = 1e-9
"""Larger differences of unit utilities are not rounding (Nash). Smaller ones that are not ties are
decided in exact arithmetic."""

NASH_ZERO = 1e-14
"""Right-hand sides of a support's equations that are negative by less count as zero, and ratios
that differ by less as equal (Nash)."""

NASH_PIVOT = 1e-11
"""PIVOT for the equations of a support. They are eliminated without a second look at their rows."""

HIGHS = 1e-10
"""The tightest feasibility tolerance of HiGHS. Its answers are certified to LP_CERTIFICATE."""

AVERAGE_KEPT = 1e-7
"""The baseline that keeps budgets on average is refused if it exceeds one by more than this share:
HiGHS leaves as much over some hundred steps."""

SAME_SIZE = 1e6
"""Budgets and costs that differ by more than this factor get units of their own (baseline on
average), because HIGHS would not see the smaller ones."""

POLICY_SUM = 1e-9
"""How far from one a strategy may sum, stored or in a table, which has nine written digits. Solvers
divide by the sum, so more is damage."""

CDF_ROUNDING = 1e-12
"""How far a cumulative distribution function may be off at its bounds, or fall, by rounding."""

RARE = 1e-18
"""A cost without a lower bound is taken to be above the quantile of this probability when it is
drawn. Only simulations draw; budgets count everything that is possible."""

SHOWN_AS_ZERO = 1e-9
"""Numbers below this share of those beside them are reported as zero: equal values' differences."""

DRAWN_OVER = 1e-12
"""A picture marks a total that exceeds a budget by more than this share; both are floats."""

SUPPORT = 1e-12
"""Smaller probabilities in the answer of a float stage solver are rounding and become zero,
unless a deviation would gain without them. (Probabilities of the game are never cut: 1e-300 is
possible.)"""

VERIFY = 1e-8
"""Largest gain by a deviation that the verifier accepts in a situation, as a share of the stake
there: the best total that safe play can bring the player, less the worst that the policy itself can
bring by what it plays with at least this probability. Ten times what the stage certificates may add
up to."""

UNIT_ROUNDOFF = 2.0**-53
"""How far one operation on floats can be off, as a share of its result. From this the verifier adds
up how far its sums can be off, and accepts gains up to that as well."""

COMMON = 64.0
"""The common part of a player's rewards is taken out if it is more than this many times what
typical rewards differ by. A smaller one costs only a few bits. Solver and verifier have the same
limit, so that neither sees what is too fine for the other."""

STATED = 1e-9
"""How far a value stored in a solution may be from the verifier's, as a share of it, beyond the
rounding that the verifier allows for itself: over very many steps, adding up in another order
changes as much. The same share bounds how far a value may be from the sum of the values that are
stored for the situations after it."""

WRITTEN_PRODUCT = 1e-12
"""How far a joint probability that is written in a table may be from the product that it stands for
under Nash. Multiplying and writing rounds."""

OBSERVED_COST = 1e-9
"""How far an observed cost may be from a cost of the game, as a share of it, where the policy
rounds costs and both count the same: simulators add floats up. Exact policies take exact costs."""

BACKEND_COARSE = 1e-4
"""How far from an equilibrium another library's candidate may be. Newton's method does the rest."""

LEAST_STAKE = 1e-5
"""Smallest stake of a player in units of the stage: Newton's method leaves errors of 1e-15."""

BACKEND_SHAKE = 1e-3
"""Noise on payoffs for such a search: some solvers do not end where players are indifferent."""

BACKEND_CUTS = (3e-2, 3e-3, 1e-4, 1e-6, 1e-9)
"""Probabilities of a candidate below this are tried as zero, the largest cut first."""

NEWTON_DONE = 1e-15
"""Newton's method on a support ends when the equations hold to the last digit."""

NEWTON_RANK = 1e-12
"""Directions of Newton's linear system weaker than the strongest by this factor are rounding."""

PROMISE_INDIFFERENT = 1e-10
"""What a deviation may gain while programs over promises are solved, in units of the range of
promises: promises that make a player indifferent would not survive rounding without. Solutions are
read without it wherever that leaves probabilities."""

PROMISE_REDUCED = 1e-12
"""A reduced payoff below this is rounding, in units of the range of promises."""

PROMISE_PIVOT = 1e-9
"""Smaller entries of a column are no pivots of a program over promises."""

PROMISE_OVERSTEP = 1e-13
"""How far the first pass of the ratio test of such a program oversteps a bound."""

PROMISE_ACCURATE = 1e-13
"""How far its rows may be off by rounding; else the inverse of the basis is computed anew."""

PROMISE_CLIPPED = 1e-12
"""A negative probability above minus this is rounding, as is a positive one of a tenth of it."""

PROMISE_SINGULAR = 1e-14
"""A basis whose largest entry to eliminate is smaller has no inverse."""

PROMISE_BLUR = 1e-7
"""Promises that differ by less, as a share of their range, say nothing of what matters: outer sets
are a little too large."""

PROMISE_CLOSE = 1e-9
"""Nothing is asked between points or directions closer than this, in the same units: both ends are
known. Directions whose determinant is smaller meet in no corner."""

PROMISE_SAME = 1e-11
"""Points closer than this are one, in the same units, and `tol` is no less: it is less than
PROMISE_INDIFFERENT, or what is left out would break indifferences."""

PAYOFF_INSIDE = 1e-9
"""How far outside a set of payoffs a point may lie to count as inside, as a share of its size."""

PAYOFF_ROUNDED = 1e-5
"""What a payoff's range counts as at least, as a share of the payoff: the rest may be rounding."""

NEAREST_GAP = 1e-12
"""The search for the nearest point of a hull ends when no corner lies further ahead by more than
this share of the distance's square."""

NEAREST_WEIGHT = 1e-14
"""Corners of a smaller weight drop out of the search for the nearest point of a hull."""

BARGAINING_RISE = 1e-13
"""The search for the largest product of gains ends when no exchange of corners raises the sum of
logarithms faster than this, times their number."""

FULL_TURN = 1e-6
"""How far the half-planes of a proof may be from going around once, in radians: a half-plane that
is lacking makes a difference of half a turn."""
