"""All equilibrium payoffs of a game, the best one, and policies that attain it (spec 12)."""
