"""Engines that the command line chooses, and when `check` mentions clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import acegames as ace
import command_line
from acegames.cli import options, verbs_safety
from acegames.cli.game_options import offered
from acegames.cli.verbs_solving import _not_needed
from command_line import answer, refused

GB = 10**9


@pytest.fixture(autouse=True)
def _on_a_wide_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("TERM", "dumb")


def run(*words):
    """What is said, in one line: it may be as wide as another test said."""
    return " ".join(command_line.run(*words).stdout.split())


# -- engines


@dataclass(frozen=True)
class Elsewhere:
    """Takes the place of the cluster engine: solves here, and remembers that it was asked to."""

    address: str = "auto"
    threads, compiled = 1, None
    asked = []  # noqa: RUF012

    def solve(self, *args):
        self.asked.append(("solve", self.address))
        return ace.LocalEngine().solve(*args)


@pytest.fixture
def asked(monkeypatch):
    """What the engine was asked for."""
    verify = ace.verify

    def verified(*args, engine=None, **options):
        if isinstance(engine, Elsewhere):
            engine.asked.append(("verify", engine.address))
        return verify(*args, engine=engine, **options)

    monkeypatch.setattr(ace, "RayEngine", Elsewhere)
    monkeypatch.setattr(ace, "verify", verified)
    Elsewhere.asked.clear()
    return Elsewhere.asked


def test_a_solve_on_a_cluster_is_verified_there(asked):
    run("solve", "intersection", "--engine", "ray", "--address", "10.0.0.1:6379", "-o", "there.ace")
    assert asked == [("solve", "10.0.0.1:6379"), ("verify", "10.0.0.1:6379")]
    run("verify", "there.ace", "--engine", "ray")
    assert asked[2:] == [("verify", "auto")]
    run("solve", "intersection", "-o", "here.ace")
    run("verify", "here.ace")
    assert len(asked) == 3


WRONG = {
    "solve intersection --engine rya": "--engine rya: must be local, interpreted, gpu, ray or reference (did you mean ray?)",
    "solve intersection --address auto": "--address auto: goes with --engine ray",
    "solve intersection --engine reference --address a:1": "--address a:1: goes with --engine ray",
    "solve intersection --engine ray --threads 2": "--threads: goes with --engine local, the limits of a cluster",
    "solve intersection --engine ray --memory 4GB": "--memory: goes with --engine local, the limits of a cluster",
    "solve intersection --engine reference --threads 2": "--threads: goes with --engine local, the reference engine",
    "verify s.ace --engine reference": "--engine reference: must be local, interpreted, gpu or ray",
    "verify s.ace --address a:1": "--address a:1: goes with --engine ray",
    "verify s.ace --engine ray --threads 2": "--threads: goes with --engine local, the limits of a cluster",
}


@pytest.mark.parametrize("words", WRONG)
def test_options_that_do_not_go_together(words, asked):
    assert refused(*words.split()).startswith(f"Error: {WRONG[words]}")
    assert asked == []


def test_engines_are_completed():
    assert offered(lambda: options.ENGINES)("r") == ["ray", "reference"]
    assert offered(lambda: options.JUDGES)("") == ["local", "interpreted", "gpu", "ray"]


# -- check


def huge(**changed):
    needs = ace.estimate(ace.catalog.get("intersection"))
    large = {"pairs": 10**10, "working": 100 * GB, "policy": 300 * GB, "stored": 300 * GB, "seconds": 1e5, "threads": 2}
    large |= {"dense": True, "cells": 10**10, "horizon": 1000}
    return replace(needs, **{**large, "counted": False, **changed})


@pytest.fixture
def estimated(monkeypatch):
    """Makes `check` believe in an estimate, on a machine of 16 GB."""
    for module in (options, verbs_safety):
        monkeypatch.setattr(module, "available_memory", lambda: 16 * GB)
    monkeypatch.setattr("acegames.engines.forecast.available_memory", lambda: 16 * GB)
    return lambda reply: monkeypatch.setattr(ace, "estimate", lambda *_, **__: reply)


def test_a_game_too_large_for_this_machine(estimated):
    estimated(huge())
    assert "and several machines can share it (--engine ray)" in refused("check", "intersection", code=5)
    assert "--engine ray" not in refused("check", "intersection", "--memory", "1GB", code=5)
    said = run("check", "intersection", "--memory", "500GB")
    assert "too large for this machine to find out whether it is feasible" in said
    reply = answer("check", "intersection", "--memory", "500GB")
    assert reply["feasible"] is None and reply["sure"] is False and "too large for this machine" in reply["why"]
    assert reply["situations"] is None


def test_clusters_are_mentioned_where_a_solve_is_too_large_or_takes_days(estimated):
    said = "Several machines can share it (--engine ray)."
    estimated(huge(counted=True))
    assert said in run("check", "intersection")
    small = {"working": GB, "policy": GB, "stored": GB, "counted": True}
    estimated(huge(**small, seconds=10 * 86_400.0))
    assert said in run("check", "intersection")
    estimated(huge(**small, seconds=60.0))
    assert "--engine ray" not in run("check", "intersection")


def test_layers_that_a_cluster_wrote_are_named_when_they_are_no_longer_needed(tmp_path):
    said = run("solve", "intersection", "--no-verify", "--checkpoint", "[layers]", "-o", "s.ace")
    (stored,) = tmp_path.joinpath("[layers]").iterdir()
    assert f"{stored.name} is no longer needed" in said
    path = f"[layers]/{stored.stem}"
    tmp_path.joinpath(f"{path}-3.layers").touch()
    assert _not_needed(f"{path}.layers").startswith(f"{path}.layers and {path}-*.layers are no longer needed")
    tmp_path.joinpath(f"{path}.layers.{'0f' * 8}").touch()
    said = _not_needed(f"{path}.layers")
    assert said.startswith(f"{path}.layers and {path}-*.layers and {path}.layers.* are no longer needed")
