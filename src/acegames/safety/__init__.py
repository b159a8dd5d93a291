"""Where safe play can go: the lattice of costs, the space of pairs, minimal budgets."""
