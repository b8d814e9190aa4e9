"""The ends of { p : −K log p − (n−K) log(1−p) ≤ limit } by bisection, each from outside.

The function is convex in p and least at K/n. Bisection between 0 or 1 and K/n keeps one point at which it was
found above the limit, and that point is the answer: a wrong last digit of a logarithm moves the limit, for
which the caller has allowed, never the logic.
"""

from __future__ import annotations

import math

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.jit import kernel

_STEPS = 56


@kernel
def outside(
    k: FloatArray, n: FloatArray, limit: FloatArray, rate: FloatArray, end: float, out: FloatArray
) -> None:
    """A point between `end` (0 or 1) and the set for each (k, n), its limit and its empirical rate k/n."""
    for i in range(len(k)):
        successes, failures = k[i], n[i] - k[i]
        outer, inner = end, rate[i]
        if (successes if end == 0.0 else failures) > 0.0:
            for _ in range(_STEPS):
                middle = 0.5 * (outer + inner)
                value = 0.0
                if successes > 0.0:
                    value -= successes * math.log(middle)
                if failures > 0.0:
                    value -= failures * math.log1p(-middle)
                if value > limit[i]:
                    outer = middle
                else:
                    inner = middle
        out[i] = outer
