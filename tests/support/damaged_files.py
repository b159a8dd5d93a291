"""Files of policies and solutions with a changed header or damaged arrays, and what a policy that still loads must do."""

import io
import json
import math
import tempfile

import numpy as np

from acegames import UnknownPair
from acegames.system import container
from acegames.system.npz import array_types


def contents(content):
    """Header and arrays of a file."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        block = container.read_block(file, 0, "file")
        block.load(file)
    return block.header, {name: np.array(block[name]) for name in block}


def rewritten(content, change=None, arrays=None):
    """The file with a changed header or changed arrays, and checksums that are right."""
    header, held = contents(content)
    held |= {name: damage(held[name]) for name, damage in (arrays or {}).items() if name in held}
    header["arrays"] = array_types(held)
    if change:
        change(header)
    text = json.dumps(header).encode()
    length, out = sum(-(-array.nbytes // 8) * 8 for array in held.values()), io.BytesIO()
    out.write(bytes(container._before_data(len(text), length)))
    rest = text + np.fromiter(container._write_pages(out, held), "<u4").tobytes()
    out.write(bytes(-out.tell() % 64))
    out.seek(0)
    digest = container._digest(len(text), length, rest)
    out.write(container.HEAD.pack(container.MAGIC, len(text), length, digest) + rest)
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
