"""Files of policies and solutions with a changed header or damaged arrays, and what a policy that still loads must do."""

import io
import json
import math
import zipfile

import numpy as np

from acegames import UnknownPair


def rewritten(content, change=None, arrays=None):
    """The archive with a changed header or changed arrays, correct as a zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            if member == "header.json" and change:
                header = json.loads(data)
                change(header)
                data = json.dumps(header).encode()
            if arrays and member.removesuffix(".npy") in arrays:
                buffer = io.BytesIO()
                np.save(buffer, arrays[member.removesuffix(".npy")](np.load(io.BytesIO(data))))
                data = buffer.getvalue()
            new.writestr(member, data)
    return out.getvalue()


DAMAGES = {
    "shifted": lambda a: a + 2,
    "negated": lambda a: -a - 1,
    "reversed": lambda a: a[::-1].copy(),
    "doubled": lambda a: a * 2,
    "larger": lambda a: a.astype(np.int64) + 2**40,
    "as floats": lambda a: a.astype(float),
    "as small integers": lambda a: a.astype(np.int8),
    "as bools": lambda a: a.astype(bool),
    "NaN": lambda a: np.full(a.shape, np.nan),
    "zeros": np.zeros_like,
    "empty": lambda a: a[:0],
    "one too few": lambda a: a[:-1],
    "one too many": lambda a: np.concatenate([a, a[-1:]]),
    "a scalar": lambda a: np.array(1, dtype=a.dtype),
    "another axis": lambda a: a[..., None],
    "one axis": lambda a: a.ravel(),
}


def behaves(policy, asked):
    """A policy that was accepted answers with a distribution or with UnknownPair, and nothing else."""
    for where in asked:
        try:
            answer = policy.distribution(*where)
        except UnknownPair:
            continue
        assert 0 < min(answer.values()) <= math.fsum(answer.values()) <= 1 + 1e-5
        assert all(x in labels for a in answer for x, labels in zip(a, policy.actions, strict=True))
        assert policy.values(*where).shape == (2,)
        policy.act(*where, np.random.default_rng(0))
