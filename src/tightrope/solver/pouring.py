"""Nature's problem at one choice of an interval model: sort the successors by value and pour.

Over { p : lower ≤ p ≤ upper, Σp = 1 } the optimum of p·x gives every successor its lower bound and pours the
rest, best successor first, up to the upper bounds. At most one successor, the *swing*, ends strictly between.

Rounding. The bounds are float64 images of exact numbers (relative error ≤ 2⁻⁵³ each), and sums of k
bounds that equal 1 up to (k+2)·2⁻⁵² are read as 1 (as in `tightrope.model.graph.support`), so a remainder
no larger than that is none. Then the optimum has the support computed here; its saturated masses carry
their bound's relative error, and the swing's mass an absolute error of at most (k+2)·2⁻⁵² from the
running remainder. Hence |p·x − computed| ≤ (k+6)·2⁻⁵²·(Σ p|x| + |x(swing)|), with room for the rounding
of the products, of the sum and of the bound itself. And p·x lies between the smallest and the largest x
of the support, whatever the rounding: clamping to it keeps 0, 1 and constants exact. Ordinary
probabilities are the case without anything to pour, and without the swing's error.

These are the innermost steps of every sweep. Each has one exit and no array but its arguments: then the
compiler merges it into its caller and drops the bookkeeping of array references, which costs several
times the arithmetic.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.graph.support import SUM_UNIT
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined

UNDERFLOW = 1e-300
"""Added to every error bound that is not 0: more than all products of a row can lose to underflow."""


@inlined
def mean(first: int, last: int, successor: IndexArray, probability: FloatArray, values: FloatArray) -> float:
    """p·values of an ordinary choice, in plain floating point."""
    total = 0.0
    for t in range(first, last):
        if probability[t] > 0.0:
            total += probability[t] * values[successor[t]]
    return total


@inlined
def pour(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
    order: IndexArray,
    key: FloatArray,
) -> float:
    """The optimum of p·values, in plain floating point; `order` and `key` are scratch."""
    k = last - first
    total, rest = 0.0, 1.0
    for i in range(k):
        x = values[successor[first + i]]
        low = lower[first + i]
        if low > 0.0:
            rest -= low
            total += low * x
        if maximise:
            x = -x
        j = i
        while j > 0 and key[j - 1] > x:
            key[j] = key[j - 1]
            order[j] = order[j - 1]
            j -= 1
        key[j] = x
        order[j] = i
    tolerance = (k + 2) * SUM_UNIT
    i = 0
    while i < k and rest > tolerance:
        t = first + order[i]
        take = min(upper[t] - lower[t], rest)
        if take > 0.0:
            total += take * (-key[i] if maximise else key[i])
            rest -= take
        i += 1
    return total


@inlined
def pour_masses(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    plain: bool,
    values: FloatArray,
    maximise: bool,
    order: IndexArray,
    key: FloatArray,
    mass: FloatArray,
) -> int:
    """Nature's optimal distribution into mass[0:k]; returns the offset of the swing, −1 if there is none."""
    k = last - first
    rest = 1.0
    for i in range(k):
        mass[i] = lower[first + i]
        rest -= mass[i]
        if not plain:
            x = values[successor[first + i]]
            if maximise:
                x = -x
            j = i
            while j > 0 and key[j - 1] > x:
                key[j] = key[j - 1]
                order[j] = order[j - 1]
                j -= 1
            key[j] = x
            order[j] = i
    if plain:
        rest = 0.0
    tolerance = (k + 2) * SUM_UNIT
    swing = -1
    i = 0
    while i < k and rest > tolerance:
        t = first + order[i]
        take = min(upper[t] - lower[t], rest)
        if take > 0.0:
            mass[order[i]] += take
            rest -= take
            swing = order[i]
        i += 1
    return swing


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
    order: IndexArray,
    key: FloatArray,
    mass: FloatArray,
) -> float:
    """The optimum of p·values, rounded up or down by a bound on all errors."""
    k = last - first
    swing = pour_masses(first, last, successor, lower, upper, plain, values, maximise, order, key, mass)
    total, size = 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    for i in range(k):
        if mass[i] > 0.0:
            x = values[successor[first + i]]
            smallest = min(smallest, x)
            largest = max(largest, x)
            total += mass[i] * x
            size += abs(mass[i] * x)
    if swing >= 0:
        size += abs(values[successor[first + swing]])
    error = (k + 6) * SUM_UNIT * size + UNDERFLOW
    if smallest == largest:
        total = smallest
    elif not np.isinf(total):
        if upward:
            total = min(total + error, largest)
        else:
            total = max(total - error, smallest)
    return total
