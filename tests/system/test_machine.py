"""How much memory there is, on systems that tell it in files and on those that are asked."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import psutil
import pytest

from acegames.system import machine


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch):
    monkeypatch.setattr(machine, "_asked", None)


def hide_files(monkeypatch):
    monkeypatch.setattr(machine, "_number", lambda path, key="": None)


def test_files_and_the_system_tell_about_the_same(monkeypatch):
    here = machine.available_memory()
    hide_files(monkeypatch)
    there = machine._free_memory()
    assert 0 < here <= psutil.virtual_memory().total
    assert 0.5 < there / psutil.virtual_memory().available < 2


def test_what_the_system_tells_is_used_where_there_are_no_files(monkeypatch):
    hide_files(monkeypatch)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=12345))
    assert machine.available_memory() == 12345


def test_without_files_and_psutil_it_is_all_of_the_memory(monkeypatch):
    hide_files(monkeypatch)
    total = psutil.virtual_memory().total
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert machine.available_memory() == total


def test_the_peak_of_this_process(monkeypatch):
    held = machine.memory_used()
    assert held >= 0.5 * psutil.Process().memory_info().rss
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    monkeypatch.setattr(
        psutil, "Process", lambda: SimpleNamespace(memory_info=lambda: SimpleNamespace(peak_wset=67890))
    )
    assert machine.memory_used() == 67890
