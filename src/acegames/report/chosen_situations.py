"""Which situations (t, state, spent) are in the page, and everything that is said about each.

All of them where they fit. Else a share of each: the start, the places named in the certificate,
the sample episodes, the extremes of cumulative cost of each state that play visits, what play
visits most often, and an even sample of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from typing import Any

import numpy as np

from acegames.model.arrays import Ints, in_order, in_pair_order, number_rows
from acegames.model.words import shown
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import SituationStage, View, stages
from acegames.report.reasons import NOT_LEGAL, Deviation, Reasons, alternatives, best_deviations, deviations
from acegames.safety.frontier import Frontier
from acegames.solving.curve_budgets import spread
from acegames.system.progress import OnProgress, ProgressReporter

Key = tuple[int, ...]  # t, state, whole units spent
CELLS_PER_SITUATION = 10
"""Cells of maps for each situation shown in full; each takes a twentieth of its room."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The situations in the page: states (P,) and units spent (P, M) of each time, in order."""

    at: tuple[tuple[Ints, Ints], ...]
    number: int  # of all situations there are
    shown: int
    kinds: tuple[str, ...] = ()  # what was kept, in words, where some were left out

    @property
    def thinned(self) -> bool:
        """Whether some were left out."""
        return self.shown < self.number


def visited(view: View, rollouts: Rollouts, episodes: Iterable[int] | None = None) -> dict[Key, int]:
    """Return how often play came to each situation, over the given episodes or all of them."""
    some = slice(None) if episodes is None else list(episodes)
    state, counted = rollouts.state[some], rollouts.counted[some]
    visits: dict[Key, int] = {}
    for t in range(view.game.horizon):
        total = view.whole(counted[:, t - 1]) if t else np.tile(view.lattice.start, (len(state), 1))
        keys, count = np.unique(np.column_stack([state[:, t], total]), axis=0, return_counts=True)
        visits |= {(t, *key): n for key, n in zip(keys.tolist(), count.tolist(), strict=True)}
    return visits


SHARES = (
    (0.2, "the start", "some of the initial states"),
    (0.1, "the places named in the certificate", "some places named in the certificate"),
    (0.25, "the sample episodes", "parts of the sample episodes"),
    (0.2, "the extremes of cumulative cost", "some extremes of cumulative cost"),
    (0.15, "what play visits", "what play visits most often"),
)
"""Of the room, and what to call all or some of them. The rest is for an even sample."""


def choose(view: View, most: int, first: Sequence[list[Key]], visits: dict[Key, int]) -> Chosen:
    """Choose at most `most` situations: all of them, or a share of each kind in `SHARES`."""
    horizon = view.game.horizon
    number = sum(view.number(t) for t in range(horizon))
    if number <= most:
        return Chosen(tuple(in_pair_order(*view.listed(t)) for t in range(horizon)), number, number)
    picked: set[Key] = set()
    kinds, often = [], _often(view, visits)
    for (share, every, some), keys in zip(SHARES, [*first, _extremes(view, visits), often], strict=True):
        others = [key for key in dict.fromkeys(keys) if key not in picked]
        allowed = min(most - len(picked), max(1, int(share * most)))
        picked |= set(others[:allowed] if keys is often else (others[k] for k in spread(0, len(others) - 1, allowed)))
        if allowed and others:
            kinds.append(every if len(others) <= allowed else some)
    before = len(picked)
    picked |= set(_spread(view, most - len(picked), picked, number))
    kinds += ["an even sample of the rest"] * (len(picked) > before)
    picked |= set([key for key in often if key not in picked][: most - len(picked)])
    table = np.array(sorted(picked), dtype=np.int64).reshape(len(picked), 2 + len(view.game.constraints))
    at = np.split(table[:, 1:], np.searchsorted(table[:, 0], range(1, horizon)))
    return Chosen(tuple((part[:, 0], part[:, 1:]) for part in at), number, len(picked), tuple(kinds))


def _often(view: View, visits: dict[Key, int]) -> list[Key]:
    """Return the situations that play visits, the most frequent of each time in turn."""
    by_time: list[list[Key]] = [[] for _ in range(view.game.horizon)]
    for key in sorted(visits, key=lambda key: (-visits[key], key)):
        by_time[key[0]].append(key)
    return [key for row in zip_longest(*by_time) for key in row if key is not None]


def _spread(view: View, wanted: int, known: set[Key], number: int) -> list[Key]:
    """Return further situations, evenly over times and, in each, over states and amounts."""
    others: list[Key] = []
    for t in range(view.game.horizon if wanted else 0):
        state, total = view.listed(t)
        some = spread(0, len(state) - 1, 2 + int(len(state) * (wanted + len(known)) / number))
        others += [key for k in some if (key := (t, int(state[k]), *total[k].tolist())) not in known]
    return [others[k] for k in spread(0, len(others) - 1, wanted)]


def _extremes(view: View, visits: dict[Key, int]) -> list[Key]:
    """Return the least and the largest cumulative cost of each constraint, by visited time and
    state.
    """
    keys: list[Key] = []
    for t, places in groupby(sorted({key[:2] for key in visits}), key=lambda place: place[0]):
        state, total = view.listed(t)
        for _, s in places:
            here = total[slice(*np.searchsorted(state, [s, s + 1]))]
            for column in here.T:
                keys += [(t, s, *here[k].tolist()) for k in (column.argmin(), column.argmax())]
    return keys


def describe(
    view: View, frontier: Frontier | None, chosen: Chosen, progress: OnProgress | None = None
) -> dict[str, Any]:
    """Return records of the situations, a list per time, and what they refer to.

    "rows" are the legal joint actions of "layer,state", by action numbers; "needs" the least
    amounts left that suffice at "t,state".
    """
    reasons, rows = Reasons(view, frontier), {}
    records: list[list[list[Any]]] = []
    teller = ProgressReporter(progress, "describing situations", view.game.horizon, chosen.shown)
    for t, at in enumerate(chosen.at):
        layer = view.counted.layer(t)
        for s in np.unique(at[0]).tolist():
            rows[f"{view.game.layer_at[t]},{s}"] = [layer.action[r].tolist() for r in layer.rows(s)]
        records.append([record for stage in stages(view, t, *at) for record in _of_stage(view, stage, reasons)])
        teller.layer(len(at[0]))
    return {"situations": records, "rows": rows, "needs": reasons.needs}


def _of_stage(view: View, stage: SituationStage, reasons: Reasons) -> list[list[Any]]:
    layer = view.counted.layer(stage.t)
    values = view.values(stage.t, stage.state, stage.total)
    pair = view.policy.internals.pairs(stage.t, stage.state, stage.total)
    ptr, row, prob = view.policy.layers[stage.t].strategies(stage.state, pair)
    records, leaving = [], best_deviations(view, stage)
    for p, s in enumerate(stage.state.tolist()):
        begin, here = int(layer.row_ptr[s]), slice(ptr[p], ptr[p + 1])
        played = dict(zip(row[here].tolist(), prob[here].tolist(), strict=True))
        good = [e for e in stage.entries(p) if stage.feasible[e]]
        bad = [e for e in stage.entries(p) if not stage.feasible[e]]
        records.append(
            [
                s,
                view.spent(stage.total[p]),
                [shown(v) for v in values[p].tolist()],
                [[r - begin, shown(x)] for r, x in played.items()],
                [[int(stage.row[e]) - begin, *map(shown, stage.worth[e].tolist())] for e in good],
                [[int(stage.row[e]) - begin, *reasons.of(stage, e)] for e in bad],
                [
                    [d.player, d.signal, shown(d.chance), d.action, *_outcome(d, begin)]
                    for d in deviations(view, stage, p, played)
                ],
                [
                    [
                        int(stage.row[e]) - begin,
                        *(x if isinstance(x, int) else [*x[:2], shown(float(f"{x[2]:.6g}"))] for x in said),
                    ]
                    for e, *said in alternatives(view, stage, p, values[p], leaving)
                    if played.keys() != {int(stage.row[e])}
                ],
            ]
        )
    return records


def _outcome(deviation: Deviation, begin: int) -> list[Any]:
    """Return the loss; or None and the row, counted from the state's first, that bars the
    deviation.
    """
    if deviation.barred_by is None:
        return [shown(deviation.loss)]
    return [None, deviation.barred_by - begin if deviation.barred_by >= 0 else NOT_LEGAL]


def maps(view: View, chosen: Chosen, most: int) -> list[dict[str, dict[str, Any]]]:
    """Return cumulative costs, values and the likeliest joint action for each time and state in the
    page.
    """
    groups = sum(len(np.unique(state)) for state, _ in chosen.at)
    most_cells = max(20, most // max(1, groups))
    by_time = []
    for t, (here, _) in enumerate(chosen.at):
        state, total = view.listed(t)
        shares = {}
        for s in np.unique(here).tolist():
            of_state = total[slice(*np.searchsorted(state, [s, s + 1]))]
            cells, ranges = _coarser(of_state, most_cells)
            shares[str(s)] = _cells(view, t, s, cells) | {"of": len(of_state)}
            if ranges is not None:
                shares[str(s)]["r"] = _in_amounts(view, ranges)
        by_time.append(shares)
    return by_time


def _coarser(total: Ints, most: int) -> tuple[Ints, list[Ints] | None]:
    """Return one situation of each box of k amounts in each constraint, with k such that at most
    `most` boxes remain.

    A box is left out only if none of its situations can occur. Also the least and the largest
    amount (B, 2) of each range that makes the boxes, by constraint; None where nothing is left out.
    """
    if len(total) <= most or not total.shape[1]:
        return total, None
    place = np.column_stack([number_rows([column]) for column in total.T])
    stride = max(2, int((len(total) / most) ** (1 / total.shape[1])))  # a smaller one leaves more
    while True:
        order, begins = in_order(list((place // stride).T))
        if begins.sum() <= most:
            break
        stride += max(1, stride // 8)
    ranges = []
    for column, rank in zip(total.T, place.T, strict=True):
        amounts = np.empty(int(rank.max()) + 1, dtype=np.int64)
        amounts[rank] = column
        low = np.arange(0, len(amounts), stride)
        ranges.append(np.column_stack([amounts[low], amounts[np.minimum(low + stride, len(amounts)) - 1]]))
    return total[np.sort(order[begins])], ranges


def _in_amounts(view: View, ranges: list[Ints]) -> list[list[list[float]]]:
    """Convert ranges of whole units to the user's own units."""
    lattice = np.zeros((max(map(len, ranges)), 2, len(ranges)), dtype=np.int64)
    for m, part in enumerate(ranges):
        lattice[: len(part), :, m] = part
    return [[[view.spent(x)[m] for x in lattice[k]] for k in range(len(part))] for m, part in enumerate(ranges)]


def _cells(view: View, t: int, state: int, total: Ints) -> dict[str, Any]:
    states = np.full(len(total), state)
    pair = view.policy.internals.pairs(t, states, total)
    layer = view.policy.layers[t]
    ptr, row, prob = layer.strategies(states, pair)
    likeliest = [int(a + np.argmax(prob[a:b])) for a, b in pairwise(ptr.tolist())]
    return {
        "c": [list(column) for column in zip(*map(view.spent, total), strict=True)],
        "v": [list(map(round_off, column)) for column in layer.values_at(pair).T.tolist()],
        "a": (row[likeliest] - layer.row_ptr[state]).tolist(),
        "p": list(map(round_off, prob[likeliest].tolist())),
    }


def round_off(x: float) -> Any:
    """Round to five digits, or to all left of the point: enough for a colour and the table behind
    it.
    """
    return shown(round(x) if abs(x) >= 1e5 else float(f"{x:.5g}"))
