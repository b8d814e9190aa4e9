"""The mean p·x of an ordinary choice: nature has nothing to decide.

`tightrope.ambiguity.pouring` says why the error bound holds; without anything to pour it is
(k+6)·2⁻⁵²·Σ p|x| for k successors. What is written there of constants holds here, too: p·x lies between the
smallest and the largest x that has a positive probability, so 0, 1 and certain successors stay exact.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.pouring import UNDERFLOW
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined
from tightrope.numerics.unit_sums import SUM_UNIT


@inlined
def mean_safely(
    first: int,
    last: int,
    successor: IndexArray,
    probability: FloatArray,
    values: FloatArray,
    upward: bool,
) -> float:
    """p·values, rounded up or down by a bound on all errors."""
    total, size = 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    for t in range(np.uint64(first), np.uint64(last)):
        share = probability[t]
        if share > 0.0:
            x = values[np.uint32(successor[t])]
            smallest = x if x < smallest else smallest
            largest = x if x > largest else largest
            total += share * x
            size += abs(share * x)
    error = (last - first + 6) * SUM_UNIT * size + UNDERFLOW
    if smallest == largest:
        total = smallest
    elif not np.isinf(total):
        if upward:
            total = min(total + error, largest)
        else:
            total = max(total - error, smallest)
    return total
