"""What N samples say about outcomes that they did not show (spec 8).

An outcome of probability p is missed by N independent samples with probability (1-p)^N. So after N samples that did not
show it, every

    p >= 1 - (1 - confidence)^(1/N)

is ruled out at that confidence. The same holds for a cost larger than every cost seen: if its probability were at least
p, all N samples would have stayed below with probability at most (1-p)^N. It is exact where N did not depend on what
the samples of the pair showed.
"""

from __future__ import annotations

import math
from typing import Any

from acegames.errors import InvalidOption


def ruled_out(samples: int, confidence: float = 0.95, *, among: int = 1) -> float:
    """Smallest probability that an outcome never seen in `samples` samples can no longer have, at the confidence; 1 without samples.

    `among`: for a statement that holds for so many pairs at once (a union bound: each has its share of 1 - confidence).
    """
    check_share("confidence", confidence)
    if samples < 1:
        return 1.0
    return -math.expm1(math.log((1 - confidence) / among) / samples)


def samples_needed(probability: float, confidence: float = 0.95, *, among: int = 1) -> int:
    """Fewest samples that rule out an unseen outcome of this probability, at the confidence."""
    check_share("confidence", confidence)
    check_share("probability", probability)
    count = max(1, math.ceil(math.log((1 - confidence) / among) / math.log1p(-probability)))
    while ruled_out(count, confidence, among=among) > probability:  # the quotient of two logarithms was rounded
        count += 1
    return count


def check_share(what: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; InvalidOption otherwise."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = math.nan
    if isinstance(value, bool) or not 0 < share < 1:
        raise InvalidOption(f"{what}: got {value!r}, must be a number between 0 and 1, both excluded")
    return share


def check_count(what: str, value: Any) -> int:
    """Return a whole number of at least 1; InvalidOption otherwise."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise InvalidOption(f"{what}: got {value!r}, must be a whole number of at least 1")
    return int(value)
