"""Nature's problem at one choice of an interval model: sort the successors by value and pour.

Over { p : lower ≤ p ≤ upper, Σp = 1 } the optimum of p·x gives every successor its lower bound and pours the
rest, best successor first, up to the upper bounds. At most one successor, the *swing*, ends strictly between.

Rounding. The bounds are float64 images of exact numbers (relative error ≤ 2⁻⁵³ each), and sums of k bounds that equal 1 up to
(k+2)·2⁻⁵² are read as 1 (as in `tightrope.model.graph.support`), so a remainder no larger than that is none. Then the optimum has the support
computed here; its saturated masses carry their bound's relative error, and the swing's mass an absolute
error of at most (k+2)·2⁻⁵² from the running remainder. Hence |p·x − computed| ≤ (k+6)·2⁻⁵²·(Σ p|x| + |x(swing)|), with
room for the rounding of the products, of the sum and of the bound itself. And p·x lies between the smallest and the largest
x of the support, whatever the rounding: clamping to it keeps 0, 1 and constants exact. Ordinary probabilities
are the case without anything to pour, and without the swing's error.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.graph.support import SUM_UNIT
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import kernel

UNDERFLOW = 1e-300
"""Added to every error bound that is not 0: more than all products of a row can lose to underflow."""


@kernel
def sort_successors(
    first: int, last: int, successor: IndexArray, values: FloatArray, maximise: bool, order: IndexArray, key: FloatArray
) -> None:
    """order[0:k] = offsets of the transitions, best value first; key[0:k] their values (negated to maximise)."""
    for i in range(last - first):
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


@kernel
def pour(
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
) -> float:
    """The optimum of p·values, in plain floating point."""
    total = 0.0
    k = last - first
    if plain or k == 1:
        if k == 1:
            return values[successor[first]]
        for t in range(first, last):
            if lower[t] > 0.0:
                total += lower[t] * values[successor[t]]
        return total
    rest = 1.0
    if k == 2:
        a, b = first, first + 1
        if (values[successor[a]] > values[successor[b]]) != maximise:
            a, b = b, a  # a is the better one for nature
        p = min(upper[a], 1.0 - lower[b])
        rest = 1.0 - p
        total = p * values[successor[a]] if p > 0.0 else 0.0
        if rest > 4 * SUM_UNIT:
            total += rest * values[successor[b]]
        return total
    sort_successors(first, last, successor, values, maximise, order, key)
    for t in range(first, last):
        if lower[t] > 0.0:
            rest -= lower[t]
            total += lower[t] * values[successor[t]]
    tolerance = (k + 2) * SUM_UNIT
    for i in range(k):
        if rest <= tolerance:
            break
        t = first + order[i]
        take = min(upper[t] - lower[t], rest)
        if take > 0.0:
            total += take * values[successor[t]]
            rest -= take
    return total


@kernel
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
    if plain:
        for i in range(k):
            mass[i] = lower[first + i]
        return -1
    if k == 1:
        mass[0] = 1.0
        return -1
    sort_successors(first, last, successor, values, maximise, order, key)
    rest = 1.0
    for i in range(k):
        mass[i] = lower[first + i]
        rest -= mass[i]
    tolerance = (k + 2) * SUM_UNIT
    swing = -1
    for i in range(k):
        if rest <= tolerance:
            break
        t = first + order[i]
        take = min(upper[t] - lower[t], rest)
        if take > 0.0:
            mass[order[i]] += take
            rest -= take
            swing = order[i]
    return swing


@kernel
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
    if smallest == largest or np.isinf(total):
        return smallest if smallest == largest else total
    if swing >= 0:
        size += abs(values[successor[first + swing]])
    error = (k + 6) * SUM_UNIT * size + UNDERFLOW
    if upward:
        return min(total + error, largest)
    return max(total - error, smallest)
