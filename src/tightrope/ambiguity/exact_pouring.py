"""Nature's problem at one choice where float64 sums do not tell who gets anything.

Whether a successor has positive mass hangs on the sign of 1 minus upper bounds of those before it in line
minus lower bounds of the others: `tightrope.numerics.unit_sums` finds it exactly. Everything else is as in
`tightrope.ambiguity.pouring`, with its error bound.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.pouring import UNDERFLOW, OrderArray, keep_sorted, pour_fast
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.unit_sums import SUM_UNIT, add, distil


@kernel
def spread_exactly(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
) -> int:
    """Nature's optimal distribution into mass[0:k], every remainder of the right sign and relatively exact;
    returns the offset of the swing, −1 if there is none.
    """
    keep_sorted(first, last, successor, values, maximise, True, order, key)
    k = last - first
    tolerance = (k + 2) * SUM_UNIT
    swing = -1
    for i in range(k):
        mass[i] = lower[first + i]
    rest = _measure_rest(first, k, 0, lower, upper, order, key)
    for i in range(k):
        t = first + order[first + i]
        room = upper[t] - lower[t]
        if rest > 0.0 and room > 0.0:
            after = rest - room
            if abs(after) <= 2.0 * tolerance:
                after = _measure_rest(first, k, i + 1, lower, upper, order, key)
            mass[t - first] = upper[t] if after >= 0.0 else lower[t] + rest
            swing = t - first
            rest = after
    return swing


@kernel
def _measure_rest(
    first: int,
    k: int,
    saturated: int,
    lower: FloatArray,
    upper: FloatArray,
    order: OrderArray,
    terms: FloatArray,
) -> float:
    """1 minus the upper bounds of the first successors in line, minus the lower bounds of the others."""
    total, exact = 1.0, True
    for i in range(k):
        t = first + order[first + i]
        terms[i] = -(upper[t] if i < saturated else lower[t])
        total, exact = add(total, exact, terms[i])
    return total if exact else distil(1.0, terms, k)


@kernel
def pour_exactly(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
    upward: bool,
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
) -> float:
    """`pour_fast` where it is not a number: over the support told exactly."""
    swing = spread_exactly(first, last, successor, lower, upper, values, maximise, order, key, mass)
    total, size = 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    for i in range(last - first):
        if mass[i] > 0.0:
            x = values[successor[first + i]]
            smallest, largest = min(smallest, x), max(largest, x)
            total += mass[i] * x
            size += abs(mass[i] * x)
    if swing >= 0:
        size += abs(values[successor[first + swing]])
    error = (last - first + 6) * SUM_UNIT * size + UNDERFLOW
    if smallest == largest:
        return smallest
    if np.isinf(total):
        return total
    return min(total + error, largest) if upward else max(total - error, smallest)


@inlined
def pour_safely(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    plain: bool,
    values: FloatArray,
    maximise: bool,
    upward: bool,
    exactly: bool | None,
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
) -> float:
    """The optimum of p·values, rounded up or down by a bound on all errors.

    Not a number where floating point does not tell the support and `exactly` is None. (None is a type of its
    own: kernels without a call of `pour_exactly` in them are several times as fast.)
    """
    x = pour_fast(first, last, successor, lower, upper, plain, values, maximise, upward, order, key, mass)
    if exactly is not None:
        unclear = np.isnan(x)
        if unclear:
            x = pour_exactly(first, last, successor, lower, upper, values, maximise, upward, order, key, mass)
    return x
