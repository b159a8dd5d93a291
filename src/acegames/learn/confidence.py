"""What N samples say about outcomes that they did not show (spec 8).

An outcome of probability p is missed by N independent samples with probability (1-p)^N. So after N
samples that did not show it, every

    p >= 1 - (1 - confidence)^(1/N)

is ruled out at that confidence. This is a statement about one given outcome.

The policy of an estimated game needs more: a bound for the set U of all outcomes that no seen
outcome *covers* (same next state, and a cost at least as large in every constraint). U is chosen by
the samples themselves, so (1 - Pr U)^N says nothing about it: of a thousand outcomes of probability
1/1000 nearly all are missing after N = 30. But U is determined by few samples, one of each of the k
largest outcomes seen, and W = n_1 ... n_k choices of k samples determine it alike, n_i being how
often the i-th was seen. Whichever k samples are looked at first, the other N - k all avoid the set
which these determine with probability (1 - its probability)^(N-k). Sum this over the C(N,k)
choices: on the event that k samples determine U, W / (1 - Pr U)^(N-k) has an expectation of at most
C(N,k). With the weight 2^-k for each k = 1, 2, ... and Markov's inequality, with probability 1 - d
over the samples, whatever the game,

    Pr U  <  1 - (d 2^-k W / C(N,k))^(1/(N-k)).

Both hold for independent samples whose number did not depend on what these samples showed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from acegames.approximate.rounding import read_number
from acegames.model.checks import check_count


def ruled_out(samples: int, confidence: float = 0.95, *, among: int = 1) -> float:
    """Return smallest probability that samples rule out for an outcome never seen; 1 without
    samples.

    Args:
        samples: number of samples.
        confidence: of the statement.
        among: k makes the statement hold for k state-action pairs at once (a union bound).
    """
    rest = _log_rest(confidence, among)
    return 1.0 if samples < 1 else -math.expm1(rest / samples)


def uncovered(largest: Sequence[int], samples: int, confidence: float = 0.95, *, among: int = 1) -> float:
    """Bound on Pr U; `largest` holds n_1 ... n_k, the counts of the k largest outcomes seen."""
    rest, k = _log_rest(confidence, among), len(largest)
    if samples <= k:
        return 1.0
    choices = math.log(math.comb(samples, k)) - sum(map(math.log, largest))
    return -math.expm1((rest - k * math.log(2) - choices) / (samples - k))


def samples_needed(probability: float, confidence: float = 0.95, *, among: int = 1) -> int:
    """Fewest samples that rule out an unseen outcome of this probability.

    Args:
        probability: of the outcome.
        confidence: of the statement.
        among: as in `ruled_out`.
    """
    rest = _log_rest(confidence, among)
    check_share("probability", probability)
    count = max(1, math.ceil(rest / math.log1p(-probability)))
    while ruled_out(count, confidence, among=among) > probability:  # the quotient of two logarithms was rounded
        count += 1
    return count


def _log_rest(confidence: float, among: int) -> float:
    """Return the logarithm of the part of 1 - confidence that one of `among` pairs has."""
    check_share("confidence", confidence)
    return math.log((1 - confidence) / check_count("among", among))


def check_share(what: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; InvalidOption otherwise."""
    return float(read_number(what, value, lambda x: 0 < x < 1, "a number between 0 and 1, both excluded"))
