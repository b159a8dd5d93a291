"""Connecting to Ray leaves the program its own way to end."""

import signal
import threading

import pytest

from acegames.system import ray_cluster


class Taking:
    """Stands for Ray, which takes SIGTERM for itself."""

    connected = False

    def is_initialized(self):
        return False

    def init(self, **options):
        self.connected = True
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: None)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_end_of_the_program_stays_its_own(elsewhere, monkeypatch):
    ray, before = Taking(), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray_cluster, "optional", lambda *_: ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if elsewhere:
        thread = threading.Thread(target=ray_cluster.connect, args=("auto",))
        thread.start()
        thread.join()
    else:
        ray_cluster.connect("auto")
    assert ray.connected
    assert signal.getsignal(signal.SIGTERM) is before
