"""What play of a model of a model checker can bring one player, by brute force."""

from fractions import Fraction
from functools import cache


def best(model, horizon, *, reward="", goal=frozenset(), cost="", budget=0, over=frozenset()):
    """The largest expectation of a reward, and of coming to a goal, when no run may cost more than the budget.

    None where no play keeps the budget; play is over at a goal and in the states `over`.
    """
    rows, outs = {}, {}
    for row, state in enumerate(model.row_state):
        rows.setdefault(state, []).append(row)
    for k, row in enumerate(model.out_row):
        outs.setdefault(row, []).append(k)

    def amount(name, row, k):
        if not name:
            return 0
        structure = model.rewards[name]
        of_state = structure.of_state.get(model.row_state[row], 0)
        return of_state + structure.of_row.get(row, 0) + structure.of_outcome.get(k, 0)

    def worth(t, row, left):
        total = Fraction(0)
        for k in outs[row]:
            spent, after = amount(cost, row, k), model.next_state[k]
            later = None if spent > left else value(t + 1, after, left - spent)
            if later is None:
                return None
            total += model.chance[k] * (amount(reward, row, k) + (after in goal) + later)
        return total

    @cache
    def value(t, state, left):
        if t == horizon or state in over | goal:
            return Fraction(0)
        return max((x for row in rows[state] if (x := worth(t, row, left)) is not None), default=None)

    return value(0, model.initial[0], budget)
