"""From a solution to the page: collect, fit, write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.game import MarkovGame, check_game
from acegames.model.words import called, shown
from acegames.policy.policy import Policy
from acegames.policy.simulation import Rollouts, simulate
from acegames.policy.situations import View
from acegames.report.budgets import Minimal, curves, frontier_data, minimal
from acegames.report.episodes import episode_data, final_spending, sample
from acegames.report.freedom import freedom
from acegames.report.page import json_for_script, page
from acegames.report.situations import CELLS_PER_SITUATION, Chosen, Describer, Key, choose, maps, visited
from acegames.report.summary import summary_data
from acegames.solving.guarantee import guarantee
from acegames.solving.pipeline import Solution, Stats
from acegames.system.atomic import write_parts
from acegames.verifier import Certificate, verify

FITS = 2_700_000
"""Characters of data up to which situations are put into the page unless a number is asked for: with the scripts it stays below 3 MB."""
LEAST_ROOM = 0.05
"""Of these, for situations, however much the rest takes."""
AT_FIRST = 3_000
"""Situations tried first where no number is asked for."""


@dataclass(frozen=True)
class Written:
    """What was written: where, how large, and how much of the game it shows."""

    path: Path
    size: int  # bytes
    situations: int  # in the page
    of: int  # that there are
    ok: bool  # whether the policy was certified
    notes: tuple[str, ...]  # what was left out, one sentence each


def write_report(
    answer: Solution | Policy,
    path: str | PathLike[str],
    *,
    game: MarkovGame | None = None,
    episodes: int = 1000,
    seed: int = 0,
    most: int | None = None,
) -> Written:
    """Write one HTML page that shows a solution, or a policy of a game. It needs no network and opens from disk.

    The policy is verified and simulated for it; for small games the value of each budget is computed too (one more solve per constraint).

    Args:
        answer: the solution; or a policy, with `game`.
        path: where to write the page.
        game: the game of the policy, where `answer` is one.
        episodes: how many episodes to simulate.
        seed: of the random numbers; the same seed gives the same page.
        most: show at most so many situations (t, state, spent). By default as many as keep the page below 3 MB. What is left out is said.

    Raises:
        InvalidOption: naming the option and the rule.
    """
    solution = _as_solution(answer, game)
    if isinstance(most, bool) or (most is not None and (not isinstance(most, (int, np.integer)) or most < 1)):
        raise InvalidOption(f"most: got {most!r}, must be a whole number of at least 1")
    if isinstance(episodes, bool) or not isinstance(episodes, (int, np.integer)) or episodes < 1:
        raise InvalidOption(f"episodes: got {episodes!r}, must be a whole number of at least 1")
    data, chosen, certificate = collect(solution, episodes=int(episodes), seed=seed, most=most)
    text = page(data)
    target = Path(fspath(path))
    write_parts(target, [text])
    return Written(target, len(text), chosen.shown, chosen.number, certificate.ok, tuple(data["notes"]))


def _as_solution(answer: Solution | Policy, game: MarkovGame | None) -> Solution:
    """A policy with its game as a solution."""
    if isinstance(answer, Solution):
        if game is not None and game.digest != answer.game.digest:
            raise InvalidOption("game: the solution has a game of its own, and this is another one")
        return answer
    if not isinstance(answer, Policy):
        raise InvalidOption(f"report: got {type(answer).__name__}, must be a Solution or a Policy")
    if game is None:
        raise InvalidOption("game: a policy does not contain its game; give it too")
    check_game(game)
    View.of(game, answer)  # refuses a policy of another game before anything is made of it
    zero = (0,) * len(game.constraints)
    values = sum(p * answer.values(0, game.states[s], zero) for s, p in game.initial)
    promise = guarantee(game, answer.concept, answer.tracker.rounding, "" if answer.tracker.exact else "costs rounded")
    stats = Stats(sum(map(len, answer.layers)), 0, 0)
    return Solution(game, answer.concept, np.asarray(values), answer, stats, promise)


def collect(
    solution: Solution, *, episodes: int, seed: int, most: int | None
) -> tuple[dict[str, Any], Chosen, Certificate]:
    """Everything that the page shows, ready for JSON."""
    view = View.of(solution.game, solution.policy)
    certificate = verify(view.game, view.policy, solution.concept)
    rollouts = simulate(view.game, view.policy, episodes=episodes, rng=np.random.default_rng(seed))
    found = minimal(view)
    played = sample(view, rollouts)
    fixed = {
        "summary": summary_data(
            view, solution, certificate, rollouts, freedom(view, rollouts) if view.game.constraints else None
        ),
        "frontier": frontier_data(view, found),
        "curves": curves(view, solution),
        "episodes": episode_data(view, rollouts, played),
        "final": final_spending(view, rollouts),
        **_labels(view, found),
    }
    first = _wanted_most(view, certificate, rollouts, list(played))
    told = {s for episode in fixed["episodes"] for s in episode["state"]}
    room = max(LEAST_ROOM * FITS, FITS - len(json_for_script(fixed)))
    shown_here, chosen = _situations(view, found, first, visited(view, rollouts), most, told, room)
    notes = _notes(view, chosen, shown_here["maps"])
    return {**fixed, **shown_here, "notes": notes, "thinned": chosen.thinned}, chosen, certificate


def _situations(
    view: View,
    found: Minimal,
    first: list[list[Key]],
    visits: dict[Key, int],
    most: int | None,
    told: set[int],
    room: float,
) -> tuple[dict[str, Any], Chosen]:
    """Situations and maps: so many as asked for, or as fit. And the labels of their states, and of those told of elsewhere."""
    limit = AT_FIRST if most is None else most
    while True:
        chosen = choose(view, limit, first, visits)
        describer = Describer(view, found.frontier)
        records = describer.records(chosen)
        named = {s for at in records for record in at for s in (record[0], *(reason[3] for reason in record[5]))}
        data = {
            "situations": records,
            "states": {str(s): called(view.game.states[s]) for s in sorted(named | told)},
            "maps": maps(view, chosen, CELLS_PER_SITUATION * limit),
            "rows": describer.rows,
            "needs": describer.reasons.needs,
        }
        size = len(json_for_script(data))
        if most is not None or size <= room or limit < 10:
            return data, chosen
        limit = int(min(limit, chosen.shown) * min(0.8, 0.9 * room / size))


def _wanted_most(view: View, certificate: Certificate, rollouts: Rollouts, played: list[int]) -> list[list[Key]]:
    """The start, where the certificate found the largest gains, and what the sample episodes come to."""
    zero = (0,) * len(view.game.constraints)
    start = [(0, s, *zero) for s, _ in view.game.initial]
    named = [
        (t, view.game.state_index(state), *view.policy.tracker.total(spent))
        for t, state, spent in filter(None, (*certificate.where, *certificate.share_where))
    ]
    return [start, named, list(visited(view, rollouts, played))]


def _labels(view: View, found: Minimal) -> dict[str, Any]:
    """Names, times and budgets."""
    game = view.game
    reference = [shown(x) for x in found.frontier.reference] if found.frontier else [None] * len(game.constraints)
    return {
        "name": game.name or "A game",
        "digest": game.digest,
        "players": list(map(called, game.players)),
        "actions": [list(map(called, labels)) for labels in game.actions],
        "constraints": list(map(called, game.constraints)),
        "horizon": game.horizon,
        "layer_at": list(game.layer_at),
        "budgets": [[shown(x) for x in row] for row in game.budgets],
        "reference": reference,
        "exact": view.policy.tracker.exact,
        "concept": type(view.policy.concept).__name__,
    }


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}{',' * (len(words) > 2)} and {words[-1]}"


def _notes(view: View, chosen: Chosen, drawn: list[dict[str, dict[str, Any]]]) -> list[str]:
    """What the page leaves out, in sentences."""
    said = []
    if chosen.thinned:
        said.append(
            f"Thinned: {chosen.shown:,} of {chosen.number:,} situations (time, state, spent) are in this page: "
            f"{_listed(chosen.kinds or ('none of them fits',))}. "
            f"`acegames report FILE --most {min(chosen.number, 10 * chosen.shown)}` shows more, in a larger file."
        )
    cells, of = (sum(f(x) for at in drawn for x in at.values()) for f in (lambda x: len(x["a"]), lambda x: x["of"]))
    if cells < of:
        said.append(f"Maps are drawn from every few amounts only: {cells:,} of the {of:,} situations of their states.")
    if view.policy.reached is None:
        said.append("Spending so low that a budget cannot bind any more is all alike and is shown once.")
    return said
