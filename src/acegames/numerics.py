"""Every tolerance of acegames, with its reason, and the letters used for array axes.

Axes: T time, S state, A joint action, N player, M constraint, R row (one legal joint action of one state),
K outcome (one entry of a row's distribution), P pair (state, spent).

No tolerance here touches a budget: cumulative costs are integers and are compared exactly.
"""

PROBABILITY_SUM = 1e-8
"""How far from one a distribution may sum before it is refused: eight written digits of 1/3 pass, 0.333 does not."""

PROBABILITY_RENORMALISE = 1e-12
"""Sums further from one than this are divided out. Smaller errors are rounding; leaving them makes loading a
saved game reproduce it to the last bit."""

LP_CERTIFICATE = 1e-9
"""Largest dual infeasibility or duality gap of an accepted stage program, in units of the stage (see OUTLIER and COARSE). Programs
that miss it are solved again in exact arithmetic."""

LARGE_CERTIFICATE = 16 * LP_CERTIFICATE
"""The same for stage programs of many joint actions: rational numbers take seconds there, and prices have more sums to round in."""

LEVER = 1e-10
"""How much an objective may owe to rows that rounding violates (violations times prices): a tenth of TIE, so that ties can be told."""

HIGH_PRICE = 100.0
"""Prices of a stage program above this are looked at twice: what pivots rounded off, times such a price, may pass for no tie."""

STABLE = 1e-10
"""Largest gain by a deviation at an accepted stage, as a share of the most that it can gain there, and of how far the answer is below the
player's best. A hundredth of VERIFY: over as many steps they may add up."""

TIE = 1e-9
"""Utilities closer than this, in units of the stage, count as tied, so that the lexicographic choice does not follow rounding
errors of 1e-16."""

NOISE = 2 * 2.0**-52
"""Utilities that differ by less than this share of their gross utility (the same sum of rewards, without signs) are equal: the
difference is what adding up in another order would change. Without this rule the rounding errors of a player who is indifferent would
pass for incentives. The verifier allows for as much, the last digit of each reward on both sides of a comparison, so that it does not
call a gain what the solver calls rounding."""

OUTLIER = 64.0
"""Utilities that are this many times as far below a player's best as its best quarter are left out of the stage's unit: they are
penalties, and in units of a penalty nothing else would count."""

COARSE = 1e3
"""A stage whose unit is more than this many times what its answer leaves a player to gain is solved again in a finer one: TIE and
LP_CERTIFICATE are then a millionth of what matters, at most."""

LEVEL = 64.0
"""Rewards whose size in total is more than this many times what they can differ by are solved without their common level: NOISE counts
against the size, VERIFY against the difference, and over some thousand steps the first must stay below the second."""

INDIFFERENT = 1e-13
"""A player whose mixed utilities differ by less than this, in units of the stage's utility range, is indifferent (Nash): solving the small
linear systems of the supports in floats is off by this much. Differences between this and TIE are decided in exact arithmetic."""

LEAST_PROBABILITY = 1e-8
"""Nash equilibria are first looked for with no smaller probability in their supports: a support that only rounding can fill is none.
Where there are no such equilibria, smaller ones count too, in exact arithmetic."""

LARGEST_TOTAL = 1e300
"""The most that a player's rewards may come to in total, in size, the floor of deviations included: differences and weighted sums
of utilities must stay far inside the range of floats, or an overflow would pass for an incentive."""

PRODUCT = 1e-10
"""How far a joint probability may be from the product of the players' own before the verifier says that they do not draw independently:
far above the rounding of a product, and a hundredth of what VERIFY would notice in the values."""

ROW_FEASIBLE = 1e-14
"""Rows of a stage program that are violated by less, in units of the stage, hold while pivoting: what a pivot of such small
programs rounds off. The answer is held against STABLE afterwards."""

PIVOT = 1e-12
"""Smaller entries of a simplex table are rounding and no pivots; what a small pivot spoils, the certificate notices."""

HARRIS = 1e-11
"""How far a ratio test may look beyond the tightest row for a larger pivot; a thousand times what ROW_FEASIBLE forgives."""

NASH_CLEAR = 1e-9
"""In unit utilities: what is larger is no rounding, what is smaller but no tie is left to exact arithmetic (Nash)."""

NASH_ZERO = 1e-14
"""Right-hand sides of a support's equations that are negative by less are zero; ratios that differ by less are equal (Nash)."""

NASH_PIVOT = 1e-11
"""As PIVOT, for the equations of a support, which are eliminated with no second look at their rows."""

HIGHS = 1e-10
"""Feasibility asked of HiGHS, the tightest that it takes: its answers are certified to LP_CERTIFICATE afterwards."""

AVERAGE_KEPT = 1e-7
"""How far the baseline on average may be above a budget, in units of that budget, before it is refused: what HiGHS leaves over some
hundred steps."""

SAME_SIZE = 1e6
"""Budgets and costs that differ by more than this factor are not counted in one unit (baseline on average): HIGHS would be blind to the
smaller ones."""

POLICY_SUM = 1e-9
"""How far from one the probabilities of a stored strategy may sum: solvers divide by the sum, so more is damage."""

CDF_ROUNDING = 1e-12
"""How far a cumulative distribution function may be off by its own rounding at the bounds, or fall from one point to the next."""

RARE = 1e-18
"""Probability of what is not drawn in practice: a cost without lower bound is taken to be above that quantile when drawing. Only
simulations draw; budgets count what is possible."""

SHOWN_AS_ZERO = 1e-9
"""Numbers smaller than this share of those beside them are written as zero in reports: the differences of equal values."""

DRAWN_OVER = 1e-12
"""Share by which a spending must exceed a budget to be marked in a picture, where both are floats already."""

SUPPORT = 1e-12
"""Probabilities below this in the answer of a float stage solver are its rounding noise and are set to zero, unless a deviation would gain
without them. (Probabilities of the game itself are never cut: 1e-300 is still possible.)"""

VERIFY = 1e-8
"""Largest gain by a deviation that the verifier accepts in a situation, as a share of the stake there: of the best total that safe play
can bring the player, less the worst that the policy itself can bring. Ten times what the stage certificates may add up to."""

UNIT_ROUNDOFF = 2.0**-53
"""How far one operation on floats can be off, as a share of its result. The verifier adds up from this what its sums can be off by, and
accepts gains up to that as well."""

COMMON = 64.0
"""The verifier takes the common part out of a player's rewards where it is more than this many times what typical rewards differ by.
Smaller ones cost a few bits, which nobody misses."""

STATED = 1e-9
"""How far a value stored in a solution may be from what the verifier finds, as a share of it, beyond the rounding that the verifier
allows for itself: what adding up in another order changes over very many steps. Also how far it may be from what the values stored for its
situations add up to, as a share of the size of what is added up."""

TABLE_SUM = 1e-9
"""How far from one the probabilities of a pair in a policy's table may sum: nine written digits."""

TABLE_PRODUCT = 1e-12
"""How far a joint probability in a table may be from the product of the players' own under Nash: what writing it down can change."""

ARRAY_PRODUCT = 1e-12
"""How far a probability may be from the product of those of the next state and of the cost, in a game written as arrays: its rounding."""

BACKEND_COARSE = 1e-4
"""How far from an equilibrium a candidate of another library's Nash solver may be; Newton's method does the rest."""

LEAST_STAKE = 1e-5
"""In units of the stage: what a player who is closer to its best has at stake, as far as Newton's method can tell, which leaves 1e-15."""

BACKEND_SHAKE = 1e-3
"""Noise added to payoffs for such a search, because some do not end where players are indifferent by accident."""

BACKEND_CUTS = (3e-2, 3e-3, 1e-4, 1e-6, 1e-9)
"""Probabilities of a candidate below this are tried as zero, the largest first."""

NEWTON_DONE = 1e-15
"""Newton's method on a support ends when the equations hold to the last digit."""

NEWTON_RANK = 1e-12
"""Directions of Newton's linear system this much weaker than the strongest are rounding."""
