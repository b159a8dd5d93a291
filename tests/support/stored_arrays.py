"""What tests of archives and blocks store, and how they see that a file is refused."""

import numpy as np
import pytest

from acegames.errors import BadFile
from acegames.system.container import read_archive

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


def check(path):
    """The content is as it was written."""
    kind, read, arrays = read_archive(path, [KIND, "other"])
    assert kind == KIND
    assert read == {"format": KIND, "version": 1, **HEADER}
    assert list(arrays) == list(ARRAYS) and len(arrays) == len(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name] is arrays[name]
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(arrays[name], array)
    return arrays


def refused(path, kinds=KIND):
    """What is said of a file that is refused."""
    with pytest.raises(BadFile) as caught:
        dict(read_archive(path, kinds)[2])
    assert str(path) in str(caught.value)
    return str(caught.value)
