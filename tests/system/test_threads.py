"""Work shared out among threads: results in order, the first error, nothing begun after it, and no thread left behind."""

from __future__ import annotations

import threading
import time

import pytest

from acegames.system.tasks import Team


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("number", [0, 1, 2, 7, 100])
def test_results_come_in_the_order_of_the_pieces(threads, number):
    with Team(threads) as team:
        for _ in range(3):
            assert team.each(lambda k: k * k, range(number)) == [k * k for k in range(number)]


def test_every_thread_takes_part():
    together = threading.Barrier(3, timeout=30)
    with Team(3) as team:
        names = team.each(lambda _: (together.wait(), threading.get_ident())[1], range(3))
    assert len(set(names)) == 3 and threading.get_ident() in names


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_error_of_the_first_piece_is_raised(threads):
    begun = []

    def fail(k):
        begun.append(k)
        if k >= 3:
            time.sleep(0.01 if k == 3 else 0)  # a later one fails sooner
            raise ValueError(k)

    with Team(threads) as team:
        with pytest.raises(ValueError, match=r"^3$"):
            team.each(fail, range(1000))
        assert len(begun) <= 4 + threads
        assert team.each(str, range(3)) == ["0", "1", "2"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_an_interrupt_goes_through(threads):
    def interrupted(k):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Team(threads) as team:
        team.each(interrupted, range(10))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_later_work_runs_beside_pieces_and_its_error_is_raised_when_it_is_asked_for(threads):
    def fail():
        raise ValueError("later")

    with Team(threads) as team:
        one, two = team.later(lambda: "one"), team.later(fail)
        assert team.each(str, range(20)) == [str(k) for k in range(20)]
        with pytest.raises(ValueError, match="later"):
            two()
        assert one() == "one"


def test_later_work_is_done_before_the_team_is_dismissed():
    done = []
    with Team(2) as team:
        team.later(lambda: (time.sleep(0.05), done.append(1)))
    assert done == [1]


def test_threads_are_begun_for_work_only_and_end_with_the_team():
    before = threading.active_count()
    with Team(4) as team:
        team.each(str, [1])
        assert threading.active_count() == before
        team.each(str, [1, 2])
        assert threading.active_count() == before + 2
        team.each(str, range(10))
        assert threading.active_count() == before + 3
    assert threading.active_count() == before


def test_an_interrupt_while_threads_begin_is_passed_on_and_leaves_none_behind(monkeypatch):
    begin, begun, before = threading.Thread.start, [], threading.active_count()

    def start(thread):
        begun.append(thread)
        if len(begun) == 2:
            raise KeyboardInterrupt
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt), Team(5) as team:
        team.each(lambda k: k, range(100))
    begun[0].join(timeout=30)
    assert threading.active_count() == before
