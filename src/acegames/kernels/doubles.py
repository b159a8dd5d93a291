"""Numbers of twice the digits: pairs of floats, high and low, whose sum is meant.

Sums and products are exact up to a share of ROUNDING (Dekker, Knuth), without fused operations, so
that all machines find the same bits. `residue` says what floats are modulo a prime: a whole number
below the product of some primes is zero if all its residues are.
"""

from __future__ import annotations

import math

import numpy as np

from acegames.system.compiled import inlined, inner

ROUNDING = 2.0**-100  # how far an operation on pairs is off, as a share of its terms; 2^-102 at most
CANCELLED, SURELY_CANCELLED = 2.0**-74, 2.0**-86  # what is left of a sum where it is likely to be rounding
SPLIT = 2.0**27 + 1.0
PRIMES = tuple(
    2**31 - k
    for k in (
        1, 19, 61, 69, 85, 99, 105, 151, 159, 171, 225, 249, 295, 325, 379, 399, 411, 469, 477, 511, 525, 571, 579, 589,
    )
)  # fmt: skip
PRIME_BITS = 30.99  # at least, of each


@inlined
def two_sum(a, b):
    """Return a + b exactly."""
    high = a + b
    c = high - a
    return high, (a - (high - c)) + (b - c)


@inlined
def renormalised(a, b):
    """Return a + b exactly, where a is the larger."""
    high = a + b
    return high, b - (high - a)


@inlined
def two_product(a, b):
    """Return a b exactly."""
    high = a * b
    c = SPLIT * a
    a1 = c - (c - a)
    c = SPLIT * b
    b1 = c - (c - b)
    a2, b2 = a - a1, b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@inlined
def add(a, a0, b, b0):
    """Return a sum of pairs."""
    high, low = two_sum(a, b)
    c, c0 = two_sum(a0, b0)
    high, low = renormalised(high, low + c)
    return renormalised(high, low + c0)


@inlined
def multiply(a, a0, b, b0):
    """Return a product of pairs."""
    high, low = two_product(a, b)
    return renormalised(high, low + (a * b0 + a0 * b))


@inlined
def add_product(s, s0, a, a0, b, b0):
    """Return s + a b."""
    p, p0 = multiply(a, a0, b, b0)
    return add(s, s0, p, p0)


@inlined
def cancelled(a, a0, size, doubt):
    """Return a sum of terms of a size, or zero if what is left is likely to be rounding.

    doubt[0] is set where it may not be.
    """
    if abs(a) > CANCELLED * size:
        return a, a0
    if abs(a) > SURELY_CANCELLED * size:
        doubt[0] = 1
    return 0.0, 0.0


@inlined
def add_or_cancel(s, s0, a, a0, b, b0, doubt):
    """Return s + a b, or zero if that is likely to be all rounding."""
    p, p0 = multiply(a, a0, b, b0)
    high, low = add(s, s0, p, p0)
    return cancelled(high, low, abs(p), doubt)


@inner
def inverse(a, a0):
    """Return 1 / a."""
    x = 1.0 / a
    p, p0 = multiply(-x, 0.0, a, a0)
    r, r0 = add(1.0, 0.0, p, p0)
    y = r / a
    p, p0 = multiply(-y, 0.0, a, a0)
    r, r0 = add(r, r0, p, p0)
    high, low = renormalised(x, y)
    return add(high, low, r / a, 0.0)


@inner
def power_of_two(x):
    """Return a power of two that is larger than x > 0, and at most twice as large."""
    return math.ldexp(1.0, math.frexp(x)[1])


@inner
def lowest_bit(x):
    """Return the largest exponent of two, in whole multiples of which x is."""
    part, exponent = math.frexp(x)
    whole = np.int64(math.ldexp(part, 53))
    zeros = 0
    while whole != 0 and whole % 2 == 0:
        whole //= 2
        zeros += 1
    return exponent - 53 + zeros if whole != 0 else 1024


@inner
def last_place(x):
    """Return an exponent of two, in whole multiples of which x is."""
    return math.frexp(x)[1] - 53 if x != 0.0 else 1024


@inner
def residue(x, p):
    """Return a whole number, which is a float, modulo p."""
    factor = np.int64(1)
    while abs(x) >= 2.0**62:
        x *= 2.0**-9  # it has more zeros than that
        factor = times(factor, np.int64(512), p)
    rest = _reduced(np.int64(x), x, p)
    return rest if factor == 1 else times(rest, factor, p)


@inlined
def times(a, b, p):
    """Return a b modulo p, for 0 <= a, b < p < 2^31."""
    return _reduced(a * b, float(a) * float(b), p)


@inlined
def _reduced(whole, x, p):
    """Return a whole number, about x, modulo p; a division of whole numbers takes far longer."""
    rest = whole - np.int64(math.floor(x * (1.0 / p))) * p
    return rest + p if rest < 0 else rest - p if rest >= p else rest


@inner
def power(x, exponent, p):
    """Return x ** exponent modulo p."""
    value = np.int64(1)
    while exponent > 0:
        if exponent & 1:
            value = times(value, x, p)
        x = times(x, x, p)
        exponent >>= 1
    return value
