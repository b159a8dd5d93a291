"""Writing files: whole or not at all, wherever they go."""

import errno
import os
import stat
import sys
import threading

import pytest

from acegames.system.atomic import replacing, write_parts, write_text, writing

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and devices of POSIX")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.file"
    path.write_text("old")
    return path


def test_errors_of_the_system_pass_through(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_text(tmp_path / "nowhere" / "x.txt", "x")


def test_nothing_is_half_written(path, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match=rf"No space left on device: '.*{path.name}'$"):
            write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_the_number_of_bytes_is_told(path):
    assert write_parts(path, [b"ab", b"", b"c"]) == 3
    assert path.read_bytes() == b"abc"


@posix
def test_a_pipe_stays_a_pipe(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with writing(pipe) as file:
        file.write(b"0000")
        file.seek(1)  # as containers do, though a pipe cannot
        file.write(b"12")
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert read == [b"0120"]


@posix
def test_a_device_stays_a_device(tmp_path):
    link = tmp_path / "nowhere"
    link.symlink_to(os.devnull)
    for target in (os.devnull, link):
        write_text(target, "x")
        assert stat.S_ISCHR(os.stat(target).st_mode)
    assert link.is_symlink()
    assert os.listdir(tmp_path) == ["nowhere"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_device_that_takes_nothing_is_named():
    with pytest.raises(OSError, match="/dev/full"):
        write_text("/dev/full", "x" * 10**6)


@posix
@pytest.mark.parametrize("before", ["old", None])
def test_a_link_is_followed(tmp_path, before):
    place = tmp_path / "place"
    place.mkdir()
    target, link = place / "target", tmp_path / "link"
    link.symlink_to("place/target")
    if before:
        target.write_text(before)
        old = target.stat().st_ino
    write_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["link", "place"] and os.listdir(place) == ["target"]
    if before:
        assert target.stat().st_ino != old  # replaced, not written over


@posix
def test_a_link_is_replaced_where_links_are_not_followed(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "target").read_text() == "old" and not (tmp_path / "link").is_symlink()


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_a_file_stays(path, mode, monkeypatch):
    path.chmod(mode)
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(stat.S_IMODE(os.fstat(handle).st_mode)))
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert seen[0] == mode  # also while it is written


def test_text_is_written_as_given(tmp_path):
    path = tmp_path / "no_suffix"
    write_text(path, "ü\n")
    write_text(path, "ö\n")
    assert path.read_bytes() == "ö\n".encode()
    assert os.listdir(tmp_path) == ["no_suffix"]
