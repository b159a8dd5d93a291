"""The archive: what goes in comes out, half a file is never left, and hostile bytes are refused with a sentence."""

import io
import json
import os
import stat
import struct
import sys
import threading
import zipfile

import numpy as np
import pytest

from acegames.errors import BadFile
from acegames.system import container as store
from acegames.system.container import PLAIN, read_archive, replacing, write_archive, write_text

KIND = "acegames-test"
HEADER = {"labels": ["a", "ü"], "n": 3}
ARRAYS = {
    "x": np.arange(12.0).reshape(3, 4),
    "game/row_ptr": np.array([0, 2, 5], dtype=np.int64),
    "mask": np.array([True, False]),
    "small": np.array([1, 2], dtype=np.uint8),
    "scalar": np.array(7, dtype=np.int32),
    "empty": np.empty((0, 3), dtype=np.float32),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.file"
    write_archive(path, KIND, HEADER, ARRAYS)
    return path


def rewrite(path, members):
    """Write a zip of (name, bytes) members by hand."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)


def header(**changes):
    return json.dumps({"format": KIND, "version": 1, "members": ["x"], **changes}).encode()


def npy(array, **keywords):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **keywords)
    return file.getvalue()


def refused(path, kinds=KIND):
    with pytest.raises(BadFile) as caught:
        read_archive(path, kinds)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_round_trip(path):
    kind, found, arrays = read_archive(path, [KIND, "other"])
    assert kind == KIND
    assert found == {"format": KIND, "version": 1, **HEADER}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array)


def test_numpy_opens_it(path):
    with np.load(path) as found:
        assert np.array_equal(found["game/row_ptr"], ARRAYS["game/row_ptr"])


def test_same_content_same_bytes(path, tmp_path):
    again = tmp_path / "again"
    write_archive(again, KIND, HEADER, ARRAYS)
    assert again.read_bytes() == path.read_bytes()


def test_large_content_is_stored_uncompressed(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "STORE_ABOVE", 1000)
    monkeypatch.setattr(store, "COMPRESSED_LIMIT", 2000)
    path = tmp_path / "large"
    zeros = np.zeros(10_000)
    write_archive(path, KIND, {}, {"x": zeros})
    assert path.stat().st_size > zeros.nbytes
    assert np.array_equal(read_archive(path, KIND)[2]["x"], zeros)


def test_fortran_and_big_endian_arrays(tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    path = tmp_path / "x.npz"
    rewrite(path, [("header.json", header()), ("x.npy", npy(array))])
    found = read_archive(path, KIND)[2]["x"]
    assert np.array_equal(found, array)
    assert found.dtype == np.dtype("i4")


def test_truncation(path, tmp_path):
    whole = path.read_bytes()
    cut = tmp_path / "cut"
    for length in sorted({*range(0, len(whole), 5), *range(len(whole) - 100, len(whole))}):
        cut.write_bytes(whole[:length])
        refused(cut)


def test_byte_flips_are_refused_or_harmless(path, tmp_path):
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    flipped = tmp_path / "flipped"
    refusals = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        flipped.write_bytes(damaged)
        try:
            kind, found, arrays = read_archive(flipped, KIND)
        except BadFile:
            refusals += 1
        else:
            assert (kind, found["labels"]) == (KIND, HEADER["labels"])
            assert all(np.array_equal(arrays[name], array) for name, array in ARRAYS.items())
    assert refusals > len(whole) / 2


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("x.npy", npy(np.arange(3)))], "no acegames header"),
        ([("word/document.xml", b"<xml/>")], "unexpected member"),
        ([("header.json", b"{")], "not valid JSON"),
        ([("header.json", b'{"format": "a", "format": "b"}')], "'format' occurs twice"),
        ([("header.json", b'{"format": "acegames-test", "version": NaN}')], "NaN"),
        ([("header.json", b"[" * 100_000)], "not valid JSON"),
        ([("header.json", b"[]")], "names no format"),
        ([("header.json", header(format="acegames-policy"))], "'acegames-policy'"),
        ([("header.json", header(version=2))], "version 2"),
        ([("header.json", header(version="1"))], "version is '1'"),
        ([("header.json", header(version=True))], "version is True"),
        ([("header.json", header())], "some are missing"),
        ([("header.json", header()), ("y.npy", npy(np.arange(3)))], "some are missing or foreign"),
        ([("header.json", header(members=None)), ("x.npy", npy(np.arange(3)))], "missing or foreign"),
        ([("header.json", header()), ("../x.npy", b"no array")], "missing or foreign"),
        ([("header.json", header()), ("x.npy", npy(np.array(["a"])))], "must be numbers"),
        ([("header.json", header()), ("x.npy", npy(np.array([{}]), allow_pickle=True))], "must be numbers"),
        ([("header.json", header()), ("x.npy", npy(np.zeros(2, dtype="i4,f8")))], "must be numbers"),
        ([("header.json", header()), ("x.npy", npy(np.arange(3)) + b"more")], "holds 28 bytes"),
    ],
)
def test_foreign_content(tmp_path, members, words):
    path = tmp_path / "foreign.npz"
    rewrite(path, members)
    assert words in refused(path)


def test_declared_shape_takes_no_memory(tmp_path):
    content = npy(np.zeros(4)).replace(b"(4,), }" + b" " * 14, b"(400000000000000,), }")
    assert b"400000000000000" in content
    path = tmp_path / "bomb"
    rewrite(path, [("header.json", header()), ("x.npy", content)])
    assert "declares shape (400000000000000,)" in refused(path)


def test_a_head_without_end_is_not_read(tmp_path):
    path = tmp_path / "bomb"
    length = 2**17
    rewrite(
        path, [("header.json", header()), ("x.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", length) + b" " * length)]
    )
    assert "declares a head of 131072 bytes" in refused(path)


@pytest.mark.parametrize(
    ("array", "taken"),
    [(np.zeros(500, dtype=np.uint8), 4000), (np.zeros((500, 0)), 4000), (np.zeros((0, 500)), 4000)],
)
def test_entries_count_as_eight_bytes(tmp_path, monkeypatch, array, taken):
    path = tmp_path / "bomb"
    rewrite(path, [("header.json", header()), ("x.npy", npy(array))])
    monkeypatch.setattr(store, "PACKED_SHARE", 0)
    monkeypatch.setattr(store, "PACKED", taken)
    read_archive(path, KIND)
    monkeypatch.setattr(store, "PACKED", taken - 1)
    assert f"would take {taken} bytes" in refused(path)


def test_texts_count_as_objects(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, names=np.array(["a"] * 100))
    monkeypatch.setattr(store, "PACKED_SHARE", 0)
    monkeypatch.setattr(store, "PACKED", 100 * 132 - 1)
    assert "would take 13200 bytes" in refused(path, PLAIN)


def test_arrays_are_counted_together(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, **{f"x{k}": np.zeros(100, dtype=np.uint8) for k in range(5)})
    monkeypatch.setattr(store, "PACKED_SHARE", 0)
    monkeypatch.setattr(store, "PACKED", 3000)
    assert "up to 'x3.npy'" in refused(path, PLAIN)
    np.savez(path, **{f"x{k}": np.zeros(100, dtype=np.uint8) for k in range(5)})  # the file itself is that large
    assert len(read_archive(path, PLAIN)[2]) == 5


def test_a_header_that_unfolds_to_much(tmp_path, monkeypatch):
    path = tmp_path / "bomb"
    rewrite(path, [("header.json", header(members=[], more="a" * 10_000))])
    monkeypatch.setattr(store, "PACKED_HEADER", 5000)
    monkeypatch.setattr(store, "PACKED_HEADER_SHARE", 1)
    assert "header.json has 10" in refused(path)


@pytest.mark.parametrize("limits", [{"PACKED": 20_000}, {"PACKED_HEADER": 20_000}, {"PACKED": 90_000}])
def test_what_would_be_taken_for_a_bomb_is_written_uncompressed(tmp_path, monkeypatch, limits):
    for name, value in {"PACKED_SHARE": 1, "PACKED_HEADER_SHARE": 1, **limits}.items():
        monkeypatch.setattr(store, name, value)
    path, bits = tmp_path / "dense", np.zeros(20_000, dtype=np.uint8)
    write_archive(path, KIND, {"more": "a" * 40_000}, {"x": bits})
    assert path.stat().st_size > 60_000
    assert read_archive(path, KIND)[1]["more"] == "a" * 40_000
    assert np.array_equal(read_archive(path, KIND)[2]["x"], bits)


def test_zip_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "COMPRESSED_LIMIT", 10_000)
    path = tmp_path / "bomb"
    rewrite(path, [("header.json", header()), ("x.npy", npy(np.zeros(5000)))])
    assert "would unfold to" in refused(path)


def test_duplicate_member(tmp_path):
    path = tmp_path / "twice"
    with pytest.warns(UserWarning, match="Duplicate"):
        rewrite(path, [("header.json", header()), ("x.npy", npy(np.zeros(1))), ("x.npy", npy(np.ones(1)))])
    assert "'x.npy' occurs twice" in refused(path)


def test_text_arrays_only_in_plain_files(tmp_path):
    path = tmp_path / "plain.npz"
    np.savez(path, names=np.array(["a", "b"]))
    kind, found, arrays = read_archive(path, (KIND, PLAIN))
    assert (kind, found, arrays["names"].tolist()) == (PLAIN, {"bytes": path.stat().st_size}, ["a", "b"])
    bad = np.array([0x110000], dtype="<u4").view("<U1")
    np.savez(path, names=bad)
    assert "not text" in refused(path, PLAIN)


def test_errors_of_the_system_pass_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none", KIND)
    with pytest.raises(IsADirectoryError):
        read_archive(tmp_path, KIND)
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_text(tmp_path / "nowhere" / "x.txt", "x")


def test_nothing_is_half_written(path, tmp_path, monkeypatch):
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_archive(path, KIND, {}, {})
        with pytest.raises(OSError, match="disk full"):
            write_text(path, "new")
    with pytest.raises(TypeError, match="numbers and bools"):
        write_archive(path, KIND, {}, {"x": np.array([None])})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_archive(path, KIND, {"x": float("nan")}, {})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


# -- where it goes


posix = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and devices of POSIX")


@posix
def test_a_pipe_stays_a_pipe(path, tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_archive(pipe, KIND, HEADER, ARRAYS)
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert found == [path.read_bytes()]


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


def test_many_labels_that_pack_well_are_written_so_that_they_can_be_read(tmp_path, monkeypatch):
    """More values than a compressed file of that size may hold: stored as they are."""
    monkeypatch.setattr(store, "HEADER_VALUES", 100)
    header = {"labels": [[0] * 36] * 1000}
    store.write_archive(tmp_path / "a.ace", "game", header, {"x": np.zeros(3)})
    _, found, _ = store.read_archive(tmp_path / "a.ace", "game")
    assert found["labels"] == header["labels"]
