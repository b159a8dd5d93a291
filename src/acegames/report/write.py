"""From a solution to the page: collect, fit, write."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.checks import check_count, check_rng
from acegames.model.game import MarkovGame, check_game
from acegames.model.user_functions import public
from acegames.model.words import called, constraint_called, shown
from acegames.policy.layer import NO_VALUES
from acegames.policy.policy import Policy
from acegames.policy.policy_file import count_pairs
from acegames.policy.simulation import simulate
from acegames.policy.situations import View
from acegames.report.against import check_comparable, check_counting, comparison, other_records
from acegames.report.budget_view import Hints, Note, curves, frontier_data, in_python, minimal
from acegames.report.chosen_situations import CELLS_PER_SITUATION, Chosen, Key, choose, describe, maps, visited
from acegames.report.page import Pictures, Render, json_for_script, page
from acegames.report.reasons import objective_data
from acegames.report.summary import episode_data, final_costs, freedom, sample, summary_data
from acegames.safety.frontier import Frontier
from acegames.solving.pipeline import Solution, Stats
from acegames.solving.solution import guarantee
from acegames.system.atomic import check_place, write_parts
from acegames.system.display import Shown, frame_html
from acegames.system.limits import PAGES
from acegames.system.progress import OnProgress
from acegames.verifier import Certificate, verify

FITS = 2_700_000
"""Characters of data that situations may fill up to by default; with the scripts that is 3 MB."""
LEAST_ROOM = 0.05
"""The share of these that is for situations, however much the rest takes."""
AT_FIRST = 3_000
"""Situations tried first where no number is asked for."""


@dataclass(frozen=True, repr=False)
class ReportResult(Shown):
    """What was written: where, how large, and how much of the game it shows."""

    path: Path | None  # None where it was not written to a file
    size: int  # bytes
    situations: int  # in the page
    of: int  # that there are
    ok: bool  # whether the policy was certified
    notes: tuple[str, ...]  # what was left out, one sentence each
    page: bytes = b""  # the page itself, where it was not written to a file

    def __str__(self) -> str:
        size, held = f"{self.size / 1e6:.2f} MB", f"{self.situations:,} of {self.of:,} situations are in it."
        if self.path is None:
            how = f"The explorer ({size}), for a notebook to show; report(path) writes it to a file."
            return "\n".join([how, held, *self.notes])
        return "\n".join([f"Written to {self.path} ({size}); open it in a browser.", held, *self.notes])

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self.path is not None else frame_html(self.page)


@public(progress="checking", memory=("the report", "fewer episodes (episodes=) and situations (most=) take less"))
def write_report(
    answer: Solution | Policy,
    path: str | PathLike[str] | None = None,
    *,
    game: MarkovGame | None = None,
    episodes: int = 1000,
    rng: np.random.Generator | int | None = 0,
    most: int | None = None,
    render: Render | None = None,
    against: Solution | None = None,
    hints: Hints | None = None,
    progress: OnProgress | bool | None = None,
) -> ReportResult:
    """Write one HTML page that shows a solution, or a policy of a game. It needs no network.

    The policy is verified and simulated for it; for small games the value of each budget is
    computed too (one more solve per constraint).

    Args:
        answer: the solution; or a policy, with `game`.
        path: where to write the page; without it, a notebook shows the page as a cell's result.
        game: the game of the policy, where `answer` is one.
        episodes: how many episodes to simulate.
        rng: a Generator or a seed; the same seed gives the same page.
        most: show at most this many situations (t, state, spent). By default as many as keep the
            page below 3 MB. The page says what is left out.
        render: pictures of states: a function of the state, or a mapping from states, to an SVG
            text, the bytes of an SVG or PNG file, a figure of matplotlib, or None; or a folder of
            files STATE.svg or STATE.png. Some catalog games bring their own. They are shown as
            images: no script in them runs.
        against: another solution of the same game to compare with. Its concept, budgets and horizon
            may differ.
        hints: what the page says to type for more than it shows; by default Python code.
        progress: True for a bar, or a function that is called with a `Progress` after each layer of
            the check, of the minimal budgets, of the solves for the values of budgets, and of the
            description; its `step` says which.

    Raises:
        InvalidOption: naming the option and the rule.
        TooLarge: there is not enough memory.
        OSError: no file can be written at `path`.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    if path is not None:
        check_place(path)
        if (ending := Path(path).suffix.lower()) not in ("", *PAGES):
            raise InvalidOption(
                f"path {fspath(path)}: the report is a page for a browser, not a {ending} file; end in .html"
            )
    solution = _as_solution(answer, game)
    if against is not None and not isinstance(against, Solution):
        raise InvalidOption(f"against: got {type(against).__name__}, must be a Solution")
    for one in filter(None, (solution, against)):
        if not one.policy.keeps_values:
            raise InvalidOption(f"report: shows what every situation is worth. {NO_VALUES}")
    most = None if most is None else check_count("most", most)
    episodes, drawn = check_count("episodes", episodes), check_rng(rng)
    data, chosen, certificate = collect(
        solution,
        episodes=episodes,
        rng=drawn,
        most=most,
        render=render,
        against=against,
        hints=hints or in_python(None if path is None else str(fspath(path))),
        progress=progress,
    )
    text = page(data)
    result = ReportResult(
        None, len(text), chosen.shown, chosen.number, certificate.ok, tuple(map(str, data["notes"])), text
    )
    if path is None:
        return result
    target = Path(fspath(path))
    write_parts(target, [text])
    return replace(result, path=target, page=b"")


def _as_solution(answer: Solution | Policy, game: MarkovGame | None) -> Solution:
    """Return the answer as a solution; a policy needs its game."""
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
    values = sum(p * answer.values(0, game.states[s], game.spent_at_start) for s, p in game.initial)
    promise = guarantee(game, answer.concept, answer.tracker.rounding, "" if answer.tracker.exact else "costs rounded")
    stats = Stats(count_pairs(answer.layers), 0, 0)
    return Solution(game, answer.concept, np.asarray(values), answer, stats, promise)


def collect(
    solution: Solution,
    *,
    episodes: int,
    rng: np.random.Generator,
    most: int | None,
    render: Render | None = None,
    against: Solution | None = None,
    hints: Hints | None = None,
    progress: OnProgress | None = None,
) -> tuple[dict[str, Any], Chosen, Certificate]:
    """Return everything that the page shows, ready for JSON; `hints` say how to get more of it."""
    hints = hints or in_python()
    view, pictures = View.of(solution.game, solution.policy), Pictures(solution.game, render)
    other = None if against is None else _other(view, against)
    certificate = verify(view.game, view.policy, solution.concept, progress=progress)
    rollouts = simulate(view.game, view.policy, episodes=episodes, rng=rng)
    frontier, note = minimal(view, hints, progress)
    played = sample(view, rollouts)
    free = freedom(view, rollouts, progress) if view.game.constraints else None
    fixed = {
        "summary": summary_data(view, solution, certificate, rollouts, free),
        "frontier": frontier_data(view, frontier, note),
        "curves": curves(solution, frontier, note, hints, progress),
        "episodes": episode_data(view, rollouts, played),
        "final": final_costs(view, rollouts),
        "against": None,
        **_labels(view, frontier),
    }
    if other is not None:
        second = verify(other.game, other.policy, other.policy.concept, progress=progress)
        fixed["against"] = comparison(view, other, (certificate, second))
    wanted = [*_wanted_most(view, certificate), list(visited(view, rollouts, list(played)))]
    mentioned = {s for episode in fixed["episodes"] for s in episode["state"]}
    most_characters = max(LEAST_ROOM * FITS, FITS - len(json_for_script(fixed)))
    limit, visits = AT_FIRST if most is None else most, visited(view, rollouts)
    while True:
        chosen = choose(view, limit, wanted, visits)
        described = _described(view, frontier, chosen, limit, mentioned, progress)
        described["pictures"], short = pictures.first(
            dict.fromkeys([*sorted(mentioned), *map(int, described["states"])])
        )
        described["beside"] = None if other is None else other_records(view, other, chosen)
        size = len(json_for_script(described))
        if most is not None or size <= most_characters or limit < 10:
            break
        limit = int(min(limit, chosen.shown) * min(0.8, 0.9 * most_characters / size))
    notes = _notes(view, chosen, described["maps"], hints)
    if short:
        notes.append(
            Note(f"Pictures of {len(described['pictures']):,} states are in this page; the others do not fit.")
        )
    return {**fixed, **described, "notes": notes, "thinned": chosen.thinned}, chosen, certificate


def _described(
    view: View, frontier: Frontier | None, chosen: Chosen, limit: int, mentioned: set[int], progress: OnProgress | None
) -> dict[str, Any]:
    """Return situations, maps, and the labels of all states that the page names."""
    described = describe(view, frontier, chosen, progress)
    records = itertools.chain(*described["situations"])
    named = {s for record in records for s in (record[0], *(reason[3] for reason in record[5]))}
    states = {str(s): called(view.game.states[s]) for s in sorted(named | mentioned)}
    return {**described, "states": states, "maps": maps(view, chosen, CELLS_PER_SITUATION * limit)}


def _other(view: View, against: Solution) -> View:
    check_comparable(view.game, against.game)
    other = View.of(against.game, against.policy)
    check_counting(view, other)
    return other


def _wanted_most(view: View, certificate: Certificate) -> list[list[Key]]:
    """Return the situations at the start, and those where the certificate found the largest
    gains.
    """
    named = [
        (t, view.game.state_index(state), *view.policy.tracker.total(spent))
        for t, state, spent in filter(None, (*certificate.where, *certificate.share_where))
    ]
    return [[(0, s, *view.lattice.start.tolist()) for s, _ in view.game.initial], named]


def _labels(view: View, frontier: Frontier | None) -> dict[str, Any]:
    """Return the names, times and budgets of the game."""
    game = view.game
    return {
        "name": game.name or "A game",
        "digest": game.digest,
        "players": [x if isinstance(x, str) else f"player {called(x)}" for x in game.players],
        "actions": [list(map(called, labels)) for labels in game.actions],
        "constraints": list(map(constraint_called, game.constraints)),
        "horizon": game.horizon,
        "layer_at": list(game.layer_at),
        "budgets": [[shown(x) for x in row] for row in game.budgets],
        "capacities": [None if reservoir is None else shown(reservoir.capacity) for reservoir in game.reservoirs],
        "start": list(map(shown, game.spent_at_start)),
        "reference": list(map(shown, frontier.reference)) if frontier else [None] * len(game.constraints),
        "exact": view.policy.tracker.exact,
        "alike": view.policy.reached is None,
        "objective": objective_data(view),
        "interim": view.policy.concept.interim,
        "product": view.policy.concept.product,
    }


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}{',' * (len(words) > 2)} and {words[-1]}"


def _notes(view: View, chosen: Chosen, drawn: list[dict[str, dict[str, Any]]], hints: Hints) -> list[Note]:
    """Return sentences on what the page leaves out."""
    said = []
    if chosen.thinned:
        words = (
            f"Thinned: {chosen.shown:,} of {chosen.number:,} situations (time, state, cumulative cost) are in this page: "
            f"{_listed(chosen.kinds or ('none of them fits',))}. This makes a larger page:"
        )
        said.append(Note(words, hints.larger(min(chosen.number, 10 * chosen.shown))))
    cells, of = (sum(f(x) for at in drawn for x in at.values()) for f in (lambda x: len(x["a"]), lambda x: x["of"]))
    if cells < of:
        said.append(Note(f"The maps have {cells:,} cells for the {of:,} situations of their states."))
    if view.policy.reached is None:
        said.append(
            Note("Cumulative costs so low that no budget can bind any more are all alike, and one of them is shown.")
        )
    return said
