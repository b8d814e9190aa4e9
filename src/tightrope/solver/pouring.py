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

Values move little between sweeps, and their order less: `order[first:last]` keeps the offsets of a choice's
successors as they were sorted last, a permutation of 0..k−1 before and after each call, and sorting what is
nearly sorted is cheap.

These are the innermost steps of every sweep. Each has one exit and no array but its arguments: then the
compiler merges it into its caller and drops the bookkeeping of array references, which costs several
times the arithmetic. Indices are unsigned where it matters: a signed one is first tested for being negative.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tightrope.model.graph.support import SUM_UNIT
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined, kernel

OrderArray = npt.NDArray[np.uint16] | npt.NDArray[np.int32]

UNDERFLOW = 1e-300
"""Added to every error bound that is not 0: more than all products of a row can lose to underflow."""


@inlined
def mean(first: int, last: int, successor: IndexArray, probability: FloatArray, values: FloatArray) -> float:
    """p·values of an ordinary choice, in plain floating point."""
    total = 0.0
    for t in range(np.uint64(first), np.uint64(last)):
        if probability[t] > 0.0:
            total += probability[t] * values[np.uint32(successor[t])]
    return total


@inlined
def sort_successors(
    first: int,
    last: int,
    successor: IndexArray,
    values: FloatArray,
    maximise: bool,
    order: OrderArray,
    key: FloatArray,
) -> None:
    """Sort order[first:last] by what nature prefers, ties by offset; `key` is scratch."""
    for i in range(last - first):
        offset = order[first + i]
        x = values[successor[first + offset]]
        if maximise:
            x = -x
        j = i
        while j > 0 and (key[j - 1] > x or (key[j - 1] == x and order[first + j - 1] > offset)):
            key[j] = key[j - 1]
            order[first + j] = order[first + j - 1]
            j -= 1
        key[j] = x
        order[first + j] = offset


@inlined
def keep_sorted(
    first: int,
    last: int,
    successor: IndexArray,
    values: FloatArray,
    maximise: bool,
    break_ties: bool,
    order: OrderArray,
    key: FloatArray,
) -> None:
    """Sort order[first:last] if it is not sorted; with `break_ties` the result does not depend on what was
    there before.
    """
    start = np.uint64(first)
    before, offset_before, is_sorted = -np.inf, np.uint64(0), True
    for i in range(start, np.uint64(last)):
        offset = np.uint64(order[i])
        x = values[np.uint32(successor[start + offset])]
        if maximise:
            x = -x
        if break_ties:
            is_sorted &= (x > before) | ((x == before) & (offset >= offset_before))
            offset_before = offset
        else:
            is_sorted &= x >= before
        before = x
    if not is_sorted:
        sort_successors(first, last, successor, values, maximise, order, key)


@inlined
def pour(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
    order: OrderArray,
    key: FloatArray,
) -> float:
    """The optimum of p·values, in plain floating point; `key` is scratch."""
    start, end = np.uint64(first), np.uint64(last)
    total, rest = 0.0, 1.0
    for t in range(start, end):
        rest -= lower[t]
    keep_sorted(first, last, successor, values, maximise, False, order, key)
    tolerance = (last - first + 2) * SUM_UNIT
    for i in range(start, end):
        best = start + np.uint64(order[i])
        mass = lower[best]
        if rest > tolerance:
            take = min(upper[best] - mass, rest)
            mass += take
            rest -= take
        if mass > 0.0:
            total += mass * values[np.uint32(successor[best])]
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
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
) -> int:
    """Nature's optimal distribution into mass[0:k]; returns the offset of the swing, −1 if there is none."""
    k = last - first
    rest = 1.0
    for i in range(k):
        mass[i] = lower[first + i]
        rest -= mass[i]
    if plain:
        rest = 0.0
    else:
        keep_sorted(first, last, successor, values, maximise, True, order, key)
    tolerance = (k + 2) * SUM_UNIT
    swing = -1
    i = 0
    while i < k and rest > tolerance:
        offset = order[first + i]
        take = min(upper[first + offset] - lower[first + offset], rest)
        if take > 0.0:
            mass[offset] += take
            rest -= take
            swing = offset
        i += 1
    return swing


@inlined
def pour_row(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    plain: bool,
    values: FloatArray,
    maximise: bool,
    order: OrderArray,
    key: FloatArray,
    leader: IndexArray,
    home: int,
    scale: float,
    at: int,
    column: IndexArray,
    weight: FloatArray,
) -> tuple[int, int, float]:
    """Nature's optimal distribution times `scale` as a sparse row from `at` on, in the order of pouring:
    (its end, the place of the swing or −1, the weight on the group `home`, which the row shows as 0).

    Successors of infinite value are left out where they have no mass."""
    rest = 1.0
    for t in range(np.uint64(first), np.uint64(last)):
        rest -= lower[t]
    if plain:
        rest = 0.0
    else:
        keep_sorted(first, last, successor, values, maximise, True, order, key)
    tolerance = (last - first + 2) * SUM_UNIT
    end, swing, inside = at, -1, 0.0
    for i in range(last - first):
        t = first + i if plain else first + order[first + i]
        mass, take = lower[t], 0.0
        if rest > tolerance:
            take = min(upper[t] - mass, rest)
            rest -= take
        s = successor[t]
        if upper[t] > 0.0 and (mass + take > 0.0 or np.isfinite(values[s])):
            within = leader[s] == home
            column[end] = s
            weight[end] = 0.0 if within else scale * (mass + take)
            inside += mass + take if within else 0.0
            if take > 0.0:
                swing = end
            end += 1
    return end, swing, scale * inside


@inlined
def pour_again(
    start: np.uint64,
    end: np.uint64,
    column: IndexArray,
    weight: FloatArray,
    low: FloatArray,
    room: FloatArray,
    values: FloatArray,
    maximise: bool,
    leader: IndexArray,
    home: int,
    scale: float,
) -> tuple[int, int, float]:
    """`pour_row` for a row that holds its successors already, in whatever order, with their lower bounds and
    the room above them.
    """
    sign = -1.0 if maximise else 1.0
    one = np.uint64(1)
    rest = 1.0
    for i in range(start, end):
        to, least, above = column[i], low[i], room[i]
        rest -= least
        x = sign * values[np.uint32(to)]
        j = np.uint64(i)
        while j > start and sign * values[np.uint32(column[j - one])] > x:
            column[j], low[j], room[j] = column[j - one], low[j - one], room[j - one]
            j -= one
        column[j], low[j], room[j] = to, least, above
    tolerance = (np.int64(end - start) + 2) * SUM_UNIT
    last, swing, inside = start, -1, 0.0
    for i in range(start, end):
        to, least, above = column[i], low[i], room[i]
        take = 0.0
        if rest > tolerance:
            take = min(above, rest)
            rest -= take
        mass = least + take
        if mass > 0.0 or np.isfinite(values[np.uint32(to)]):
            within = leader[np.uint32(to)] == home
            column[last], low[last], room[last] = to, least, above
            weight[last] = 0.0 if within else scale * mass
            inside += mass if within else 0.0
            if take > 0.0:
                swing = int(last)
            last += one
    return int(last), swing, scale * inside


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
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
) -> float:
    """The optimum of p·values, rounded up or down by a bound on all errors."""
    start, end = np.uint64(first), np.uint64(last)
    rest = 1.0
    for t in range(start, end):
        rest -= lower[t]
    if plain:
        rest = 0.0
    else:
        keep_sorted(first, last, successor, values, maximise, True, order, key)
    tolerance = (last - first + 2) * SUM_UNIT
    swing = 0.0
    for i in range(start, end):
        best = np.uint64(i) if plain else start + np.uint64(order[i])
        share = lower[best]
        if rest > tolerance:
            take = min(upper[best] - share, rest)
            share += take
            rest -= take
            swing = abs(values[np.uint32(successor[best])]) if take > 0.0 else swing
        mass[best - start] = share
    total, size = 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    for t in range(start, end):
        share = mass[t - start]
        if share > 0.0:
            x = values[np.uint32(successor[t])]
            smallest = min(smallest, x)
            largest = max(largest, x)
            total += share * x
            size += abs(share * x)
    size += swing
    error = (last - first + 6) * SUM_UNIT * size + UNDERFLOW
    if smallest == largest:
        total = smallest
    elif not np.isinf(total):
        if upward:
            total = min(total + error, largest)
        else:
            total = max(total - error, smallest)
    return total


def natural_order(transition_start: OffsetArray) -> OrderArray:
    """Every choice's successors in the order of the model: where `order` starts from."""
    width = int(np.diff(transition_start).max(initial=1))
    size = int(transition_start[-1])
    order: OrderArray = np.empty(size, np.uint16) if width <= 1 << 16 else np.empty(size, np.int32)
    _number(transition_start, order)
    return order


@kernel
def _number(transition_start: OffsetArray, order: OrderArray) -> None:
    for c in range(len(transition_start) - 1):
        for t in range(transition_start[c], transition_start[c + 1]):
            order[t] = t - transition_start[c]
