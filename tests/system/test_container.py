"""Blocks: what goes in comes out, mapped or read, and no damaged byte is ever used."""

import json
import mmap
import os

import numpy as np
import pytest

from acegames.errors import BadFile
from acegames.system import container, npz
from acegames.system.container import PrefixedArrays, is_mapped, read_archive, read_block, write_archive, write_block
from stored_arrays import ARRAYS, HEADER, KIND, check, refused


@pytest.fixture(params=["read", "mapped"])
def way(request, monkeypatch):
    """Small files are read at once, large ones mapped; here they are of several pages."""
    monkeypatch.setattr(container, "PAGE", 64)
    monkeypatch.setattr(container, "READ_AT_ONCE", 2**20 if request.param == "read" else 0)
    return request.param


@pytest.fixture
def path(tmp_path, way):
    path = tmp_path / "some.file"
    write_archive(path, KIND, HEADER, ARRAYS)
    return path


def test_round_trip(path, way):
    assert is_mapped(check(path)) == (way == "mapped")


def test_same_content_same_bytes(path, tmp_path):
    again = tmp_path / "again"
    write_archive(again, KIND, HEADER, ARRAYS)
    assert again.read_bytes() == path.read_bytes()


def test_other_orders_and_strides_are_written_as_what_they_hold(tmp_path, way):
    arrays = {"fortran": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)), "steps": np.arange(9)[::-2]}
    write_archive(tmp_path / "x", KIND, {}, arrays)
    read = read_archive(tmp_path / "x", KIND)[2]
    assert read["fortran"].tolist() == arrays["fortran"].tolist() and read["fortran"].dtype == np.dtype("i4")
    assert read["steps"].tolist() == [8, 6, 4, 2, 0]


def test_arrays_below_a_prefix(path):
    below = PrefixedArrays(read_archive(path, KIND)[2], "game/")
    assert list(below) == ["row_ptr"] and len(below) == 1 and "x" not in below
    assert below["row_ptr"].tolist() == [0, 2, 5]


def data_begin(path):
    with open(path, "rb") as file:
        return read_block(file, 0, "").begin


def test_truncation(path, tmp_path):
    whole, cut = path.read_bytes(), tmp_path / "cut"
    end = data_begin(path) + sum(-(-a.nbytes // 8) * 8 for a in ARRAYS.values())
    for length in range(end):
        cut.write_bytes(whole[:length])
        refused(cut)


def test_every_flipped_bit_is_found_or_means_nothing(path, tmp_path):
    """What means nothing is the room between the parts, which is zero."""
    whole, flipped, refusals = path.read_bytes(), tmp_path / "flipped", 0
    rng = np.random.default_rng(5)
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        flipped.write_bytes(damaged)
        try:
            check(flipped)
        except BadFile:
            refusals += 1
        else:
            assert whole[position] == 0
    assert refusals > len(whole) * 0.8


def test_damage_is_found_at_the_latest_when_an_array_is_used(path, way):
    """In a mapped file, arrays on other pages can be used until then."""
    content = bytearray(path.read_bytes())
    at = content.index(ARRAYS["x"].tobytes())
    content[at + 8] ^= 1
    path.write_bytes(content)
    if way == "read":
        with pytest.raises(BadFile, match="wrong checksum"):
            read_archive(path, KIND)
        return
    arrays = read_archive(path, KIND)[2]
    assert arrays["scalar"] == 7
    for _ in range(2):
        with pytest.raises(BadFile, match=r"some\.file: .* wrong checksum"):
            arrays["x"]


def test_opening_reads_no_data(path, way, monkeypatch):
    if way == "mapped":
        monkeypatch.setattr(container.zlib, "crc32", None)
        assert read_archive(path, KIND)[1]["n"] == 3


def test_a_mapping_outlives_the_name_of_its_file(path, way):
    arrays = read_archive(path, KIND)[2]
    x = arrays["x"]
    os.unlink(path)
    assert x.sum() == 66 and x.flags.writeable == (way == "read")


def rewritten(path, change):
    """Change the header and make its digest right again: what an enemy would do."""
    content = path.read_bytes()
    _, header_length, length, _ = container.HEAD.unpack(content[: container.HEAD.size])
    header = json.loads(content[container.HEAD.size :][:header_length])
    data = content[data_begin(path) :]
    checksums = content[container.HEAD.size + header_length :][: 4 * -(-length // container.PAGE)]
    text = change(header)
    text = (text if isinstance(text, str) else json.dumps(header)).encode()
    digest = container._digest(len(text), length, text + checksums)
    head = container.HEAD.pack(container.MAGIC, len(text), length, digest) + text + checksums
    path.write_bytes(head + bytes(-len(head) % 64) + data)


def test_rewriting_changes_nothing_by_itself(path):
    rewritten(path, lambda header: None)
    check(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: "{", "not valid JSON"),
        (lambda h: '{"format": "a", "format": "b"}', "'format' occurs twice"),
        (lambda h: '{"format": "acegames-test", "version": NaN}', "NaN"),
        (lambda h: "[" * 100_000, "not valid JSON"),
        (lambda h: "[]", "names no format"),
        (lambda h: h.update(format="acegames-policy"), "'acegames-policy'"),
        (lambda h: h.pop("arrays"), "describes arrays of 0 bytes"),
        (lambda h: h["arrays"].pop(0), "describes arrays of"),
        (lambda h: h.update(arrays=None), "NoneType"),
        (lambda h: h["arrays"].append(["x", "<f8", 0]), "described as ['x', '<f8', 0]"),
        (lambda h: h["arrays"][0].__setitem__(0, 7), "described as [7"),
        (lambda h: h["arrays"][0].__setitem__(1, "|O8"), "described as"),
        (lambda h: h["arrays"][0].__setitem__(1, "<U4"), "described as"),
        (lambda h: h["arrays"][0].__setitem__(1, "<f1"), "f1"),
        (lambda h: h["arrays"][0].__setitem__(2, -3), "described as"),
        (lambda h: h["arrays"][0].__setitem__(2, True), "described as"),
        (lambda h: h["arrays"][0].__setitem__(2, 10**15), "describes arrays of"),
        (lambda h: h["arrays"][0].__setitem__(2, 4), "describes arrays of"),
    ],
)
def test_hostile_headers(path, change, words):
    rewritten(path, change)
    assert words in refused(path)


def test_declared_lengths_take_no_memory(path):
    content = bytearray(path.read_bytes())
    for at, size in ((16, 2**40), (16, 2**28), (24, 2**60)):
        changed = content.copy()
        changed[at : at + 8] = size.to_bytes(8, "little")
        path.write_bytes(changed)
        assert "it declares" in refused(path)


def test_errors_of_the_system_pass_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none", KIND)
    with pytest.raises(IsADirectoryError):
        read_archive(tmp_path, KIND)


def test_what_cannot_be_stored_leaves_the_file_as_it_is(path, tmp_path, monkeypatch):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="numbers and bools"):
        write_archive(path, KIND, {}, {"x": np.array([None])})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_archive(path, KIND, {"x": float("nan")}, {})
    monkeypatch.setattr(npz, "HEADER", 10)
    with pytest.raises(BadFile, match="the limit is 10"):
        write_archive(path, KIND, {}, {})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_blocks_follow_each_other(tmp_path, way):
    with open(tmp_path / "x", "w+b") as file:
        starts = []
        for k in range(3):
            starts.append(file.tell())
            write_block(file, KIND, {"k": k}, {"x": np.arange(100 * k)})
        file.flush()
        at, content = 0, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for k, start in enumerate(starts):
            assert at == start and at % 64 == 0
            block = read_block(file, at, "x")
            block.check_in(file)
            block.map(content)
            assert block.header["k"] == k and block["x"].tolist() == list(range(100 * k))
            at = block.end
        with pytest.raises(BadFile):
            read_block(file, 8, "x")
