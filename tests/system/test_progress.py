"""Progress is told alike by everything that takes long; what will be refused is refused before the work."""

from __future__ import annotations

import os
from itertools import groupby

import pytest

import acegames as ace
from acegames.cli.bench import random_game
from acegames.files.tables import write_policy
from acegames.system.progress import Progress, ProgressReporter
from command_line import run

GAMES = {"small": lambda: ace.catalog.get("intersection"), "large": lambda: random_game(6, 10, 30)}


@pytest.fixture(scope="module", params=GAMES)
def solution(request):
    return ace.solve(GAMES[request.param]())


WORK = {
    "verify": (["checking"], lambda s, f, tell: ace.verify(s.game, s.policy, progress=tell)),
    "prove": (["checking", "writing the proof"], lambda s, f, tell: ace.prove(s, f / "a.proof", progress=tell)),
    "frontier": (
        ["finding minimal budgets"],
        lambda s, f, tell: ace.feasibility(s.game, progress=tell).minimal_budgets,
    ),
    "write_policy": (["writing"], lambda s, f, tell: write_policy(s, f / "a.csv", progress=tell)),
    "report": (
        ["checking", "finding minimal budgets", "solving", "describing situations"],
        lambda s, f, tell: s.report(f / "a.html", progress=tell),
    ),
}


@pytest.mark.parametrize("work", WORK)
def test_every_step_is_told_from_its_beginning_to_its_end(work, solution, tmp_path):
    steps, call = WORK[work]
    reports = []
    call(solution, tmp_path, reports.append)
    assert list(dict.fromkeys(state.step for state in reports)) == steps
    for state in reports:
        assert 0 < state.layers_done <= state.layers and 0 < state.pairs_done <= state.pairs and state.seconds >= 0
    for step in steps:
        mine = [state for state in reports if state.step == step]
        assert (mine[-1].layers_done, mine[-1].pairs_done) == (mine[-1].layers, mine[-1].pairs)
        for _, states in groupby(mine, key=lambda state: (state.layers, state.pairs)):
            done = [state.pairs_done for state in states]
            assert work == "report" or done == sorted(done)


def test_what_is_found_does_not_depend_on_being_watched(solution, tmp_path):
    for work, name in zip(("prove", "report", "write_policy"), ("a.proof", "a.html", "a.csv"), strict=True):
        written = []
        for tell in (None, lambda state: None):
            WORK[work][1](solution, tmp_path, tell)
            written.append((tmp_path / name).read_bytes())
        assert written[0] == written[1], work
    judged = ace.verify(solution.game, solution.policy, progress=lambda state: None)
    assert str(judged) == str(ace.verify(solution.game, solution.policy))


def test_a_layer_that_takes_long_is_told_of_now_and_then(monkeypatch):
    reports = []
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    teller = ProgressReporter(reports.append, "working", 2, 5)
    teller.pair()
    teller.layer(2)
    monkeypatch.setattr("acegames.system.progress.PAUSE", 1e9)
    teller.pair()
    teller.layer(1)
    assert [(state.layers_done, state.pairs_done) for state in reports] == [(0, 1), (1, 3), (2, 5)]
    assert isinstance(reports[0], Progress) and reports[0].step == "working"


def never(*_, **__):
    raise AssertionError("the work has begun")


def test_a_proof_that_is_too_large_is_refused_before_it_is_checked(solution, tmp_path, monkeypatch):
    monkeypatch.setattr("acegames.proofs.verify", never)
    monkeypatch.setattr("acegames.proofs.MOST_ENTRIES", 3)
    with pytest.raises(ace.TooLarge, match="at most 3 joint actions"):
        ace.prove(solution, tmp_path / "a.proof")


def test_a_bad_tolerance_is_refused_before_situations_are_listed(solution, tmp_path, monkeypatch):
    monkeypatch.setattr("acegames.proofs.Situations.of", never)
    with pytest.raises(ace.InvalidOption, match="tol"):
        ace.prove(solution, tmp_path / "a.proof", tol=-1)


PLACES = {"missing/a": FileNotFoundError, "folder": IsADirectoryError, "closed/a": PermissionError}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(place, solution, tmp_path, monkeypatch):
    if place.startswith("closed") and hasattr(os, "geteuid") and os.geteuid() == 0:
        pytest.skip("the superuser may write anywhere")
    (tmp_path / "folder").mkdir()
    (tmp_path / "closed").mkdir(mode=0o500)
    for room in ("report.write", "proofs"):
        monkeypatch.setattr(f"acegames.{room}.verify", never)
    for call in (solution.report, lambda path: ace.prove(solution, path)):
        with pytest.raises(PLACES[place], match=f"path .*{place}"):
            call(tmp_path / place)


REFUSED = {
    "solve": ("intersection", "-o", "missing/a.ace"),
    "report": ("FILE", "-o", "missing/a.html"),
    "prove": ("FILE", "-o", "missing/a.proof"),
    "export": ("FILE", "-o", "missing/a.csv"),
    "reduce": ("intersection", "-o", "missing/a.yaml"),
    "catalog": ("intersection", "-o", "missing/a.yaml"),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_the_program_looks_at_the_destination_first(verb, solution, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for reading in ("Solution.load", "Policy.load", "reduce", "solve"):
        monkeypatch.setattr(f"acegames.{reading}", never)
    words = [str(tmp_path / "a.ace") if word == "FILE" else word for word in REFUSED[verb]]
    solution.save(tmp_path / "a.ace")
    assert "the folder missing does not exist" in run(verb, *words, code=2).output


def test_an_ending_that_holds_no_game_is_refused_before_reducing(tmp_path, monkeypatch):
    monkeypatch.setattr(ace, "reduce", never)
    assert "must be one of .yaml" in run("reduce", "intersection", "-o", tmp_path / "a.txt", code=2).output


def test_a_report_finds_minimal_budgets_once(tmp_path, monkeypatch):
    from acegames.safety.frontier import Frontier

    built, begin = [], Frontier.__init__

    def count(self, *args):
        built.append(self)
        begin(self, *args)

    solution = ace.solve(GAMES["large"]())
    assert len(solution.game.constraints) == 2
    monkeypatch.setattr(Frontier, "__init__", count)
    solution.report(tmp_path / "a.html")
    assert len(built) == 1
