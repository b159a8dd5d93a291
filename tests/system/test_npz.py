"""Zip archives: what goes in comes out, numpy opens them, and hostile bytes are refused with a sentence."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest

from acegames.system import npz as module
from acegames.system.container import read_archive
from acegames.system.limits import Limit
from acegames.system.npz import PLAIN, write_npz
from stored_arrays import ARRAYS, HEADER, KIND, check, refused


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.file"
    write_npz(path, KIND, HEADER, ARRAYS)
    return path


def rewrite(path, members):
    """Write a zip of (name, bytes) members by hand."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)


def header(**changes):
    return json.dumps({"format": KIND, "version": 1, "members": ["x"], **changes}).encode()


def npy(array, **keywords):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **keywords)
    return file.getvalue()


def test_round_trip(path):
    check(path)


def test_numpy_opens_it(path):
    with np.load(path) as head:
        assert np.array_equal(head["game/row_ptr"], ARRAYS["game/row_ptr"])


def test_same_content_same_bytes(path, tmp_path):
    again = tmp_path / "again"
    write_npz(again, KIND, HEADER, ARRAYS)
    assert again.read_bytes() == path.read_bytes()


def test_fortran_and_big_endian_arrays(tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    path = tmp_path / "x.npz"
    rewrite(path, [("header.json", header()), ("x.npy", npy(array))])
    head = read_archive(path, KIND)[2]["x"]
    assert np.array_equal(head, array)
    assert head.dtype == np.dtype("i4")


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("x.npy", npy(np.arange(3)))], "holds 'npz'"),
        ([("word/document.xml", b"<xml/>")], "unexpected member"),
        ([("header.json", b"{")], "not valid JSON"),
        ([("header.json", header(format="acegames-policy"))], "'acegames-policy'"),
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
    assert "Header info length" in refused(path)


@pytest.mark.parametrize("shape", [(500, 0), (0, 500)])
def test_rows_without_entries_are_bounded(tmp_path, monkeypatch, shape):
    path = tmp_path / "bomb"
    rewrite(path, [("header.json", header()), ("x.npy", npy(np.zeros(shape)))])
    monkeypatch.setattr(module, "EMPTY_ROWS", Limit(500, 0))
    read_archive(path, KIND)
    monkeypatch.setattr(module, "EMPTY_ROWS", Limit(499, 0))
    assert "500 rows without entries" in refused(path)


def test_compressed_and_encrypted_archives(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros(5))
    assert "'x.npy' is compressed; store it uncompressed, with numpy.savez" in refused(path, PLAIN)
    rewrite(path, [("header.json", header()), ("x.npy", npy(np.zeros(1)))])
    content = path.read_bytes()
    at = content.rindex(b"PK\x01\x02") + 8  # the flags of the last member
    path.write_bytes(content[:at] + b"\x01" + content[at + 1 :])
    assert "'x.npy' is encrypted" in refused(path)


def test_a_long_header(path, monkeypatch):
    monkeypatch.setattr(module, "HEADER", 20)
    assert "at most 20 are allowed" in refused(path)


def test_members_that_are_larger_than_the_file(path):
    content = path.read_bytes()
    at = content.rindex(b"PK\x01\x02") + 24  # the size of the last member
    path.write_bytes(content[:at] + struct.pack("<I", 10**6) + content[at + 4 :])
    assert "bytes of arrays in a file of" in refused(path)


def test_duplicate_member(tmp_path):
    path = tmp_path / "twice"
    with pytest.warns(UserWarning, match="Duplicate"):
        rewrite(path, [("header.json", header()), ("x.npy", npy(np.zeros(1))), ("x.npy", npy(np.ones(1)))])
    assert "'x.npy' occurs twice" in refused(path)


def test_text_arrays_only_in_plain_files(tmp_path):
    path = tmp_path / "plain.npz"
    np.savez(path, names=np.array(["a", "b"]))
    kind, head, arrays = read_archive(path, (KIND, PLAIN))
    assert (kind, head, arrays["names"].tolist()) == (PLAIN, {"bytes": path.stat().st_size}, ["a", "b"])
    bad = np.array([0x110000], dtype="<u4").view("<U1")
    np.savez(path, names=bad)
    assert "not text" in refused(path, PLAIN)
