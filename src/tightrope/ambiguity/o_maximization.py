"""o-maximization: nature's problem at one choice of an interval model.

Over { p : lower ≤ p ≤ upper, Σp = 1 } the optimum of p·x gives every successor its lower bound and the rest,
best successor first, up to the upper bounds; at most one, the *pivot*, ends strictly between. The support is
decided exactly, errors are at most (k+6)·2⁻⁵²·(Σ p|x| + |x(pivot)|), and 0, 1 and constants stay exact
(docs/proofs/values.md). No proof uses sweeps (`o_maximize`, `o_maximize_again`, `o_maximize_masses`).

`order[first:last]` holds offsets of a choice's successors in their last order. For speed, each step has one
exit and uses only the arrays it is given, so that the compiler inlines it without counting references
(`numerics.jit.inlined`: up to 2.3 times faster); few successors are sorted by a network.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.rounding import SUM_UNIT, add, distil

OrderArray = npt.NDArray[np.uint16] | npt.NDArray[np.int32]


class ModelArrays(NamedTuple):
    """Choices, transitions and `lower ≤ p ≤ upper`; `plain`: both bounds are the same array."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    lower: FloatArray
    upper: FloatArray
    plain: bool


class Scratch(NamedTuple):
    """`order[first:last]`: a choice's successors as sorted last; `key`, `mass`: room for one choice."""

    order: OrderArray
    key: FloatArray
    mass: FloatArray


class Row(NamedTuple):
    """The transitions first, …, last − 1 of a choice, and what nature wants of p·values."""

    first: int
    last: int
    model: ModelArrays
    values: FloatArray
    maximise: bool
    scratch: Scratch


UNDERFLOW = 1e-300
"""Added to every error bound that is not 0: more than all products of a row can lose to underflow."""


@inlined
def _to_side(total: float, error: float, smallest: float, largest: float, upward: bool) -> float:
    """A sum rounded up or down by its error, between the smallest and the largest value that has mass."""
    if smallest == largest:
        total = smallest
    elif not (np.isinf(smallest) or np.isinf(largest)):
        total = min(max(total, smallest), largest)  # where a sum of these is beyond all doubles
        total = min(total + error, largest) if upward else max(total - error, smallest)
    return total


@inlined
def sort_successors(row: Row) -> None:
    """Sort order[first:last] by what nature prefers, ties by offset."""
    first, last, model, values, maximise, scratch = row
    successor, order, key = model.successor, scratch.order, scratch.key
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
def _is_sorted(row: Row, break_ties: bool) -> bool:
    """Whether order[first:last] is sorted by what nature prefers, with `break_ties` also by offset."""
    first, last, model, values, maximise, scratch = row
    start, successor, order = np.uint64(first), model.successor, scratch.order
    before, offset_before, result = -np.inf, np.uint64(0), True
    for i in range(start, np.uint64(last)):
        offset = np.uint64(order[i])
        x = values[np.uint32(successor[start + offset])]
        if maximise:
            x = -x
        if break_ties:
            result &= (x > before) | ((x == before) & (offset >= offset_before))
            offset_before = offset
        else:
            result &= x >= before
        before = x
    return result


@inlined
def keep_sorted(row: Row, break_ties: bool) -> None:
    """Sort order[first:last] if it is not sorted; with `break_ties` whatever was there before."""
    if not _is_sorted(row, break_ties):
        sort_successors(row)


@inlined
def o_maximize(row: Row) -> float:
    """The optimum of p·values, in plain floating point."""
    first, last, model, values, _, scratch = row
    successor, lower, upper, order = model.successor, model.lower, model.upper, scratch.order
    start, end = np.uint64(first), np.uint64(last)
    total, rest = 0.0, 1.0
    for t in range(start, end):
        rest -= lower[t]
    keep_sorted(row, False)
    tolerance = (last - first + 2) * SUM_UNIT
    for i in range(start, end):
        best = start + np.uint64(order[i])
        mass, x = lower[best], values[np.uint32(successor[best])]
        if rest > tolerance or (rest > 0.0 and abs(x) < np.inf):
            take = min(upper[best] - mass, rest)
            mass += take
            rest -= take
        if mass > 0.0:
            total += mass * x
    return total


@inlined
def o_maximize_masses(row: Row) -> int:
    """Nature's optimal distribution in float64 into mass[0:k]; the offset of the pivot, or −1."""
    first, lower, upper = row.first, row.model.lower, row.model.upper
    order, mass = row.scratch.order, row.scratch.mass
    k = row.last - first
    rest = 1.0
    for i in range(k):
        mass[i] = lower[first + i]
        rest -= mass[i]
    keep_sorted(row, True)
    tolerance = (k + 2) * SUM_UNIT
    pivot = -1
    i = 0
    while i < k and rest > tolerance:
        offset = order[first + i]
        take = min(upper[first + offset] - lower[first + offset], rest)
        if take > 0.0:
            mass[offset] += take
            rest -= take
            pivot = offset
        i += 1
    return pivot


@inlined
def o_maximize_again(
    start: np.uint64,
    end: np.uint64,
    entries: tuple[IndexArray, FloatArray, FloatArray, FloatArray],
    values: FloatArray,
    maximise: bool,
    group: tuple[IndexArray, int, float],
) -> tuple[int, int, float]:
    """Nature's optimal distribution as a sparse row (columns, weights, lower bounds and the room above them,
    in whatever order), in nature's order: (its end, the place of the pivot or −1, the weight on the group,
    which the row shows as 0).

    `group` are the leaders of all states, that of the row's group, and what weights are multiplied by.
    Successors of infinite value are left out where they have no mass."""
    column, weight, low, room = entries
    leader, home, scale = group
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
    last, pivot, inside = start, -1, 0.0
    for i in range(start, end):
        to, least, above = column[i], low[i], room[i]
        take = 0.0
        finite = np.isfinite(values[np.uint32(to)])
        if rest > tolerance or (rest > 0.0 and finite):
            take = min(above, rest)
            rest -= take
        mass = least + take
        if mass > 0.0 or finite:
            within = leader[np.uint32(to)] == home
            column[last], low[last], room[last] = to, least, above
            weight[last] = 0.0 if within else scale * mass
            inside += mass if within else 0.0
            if take > 0.0:
                pivot = int(last)
            last += one
    return int(last), pivot, scale * inside


@inlined
def _spread(row: Row) -> tuple[np.uint64, bool]:
    """Nature's distribution by the order into mass[0:k]: the pivot (or `last`), whether it may be full."""
    first, last, lower, upper = row.first, row.last, row.model.lower, row.model.upper
    order, mass = row.scratch.order, row.scratch.mass
    start, end = np.uint64(first), np.uint64(last)
    rest, exact = 1.0, True
    for t in range(start, end):
        rest, exact = add(rest, exact, -lower[t])
    tolerance = (last - first + 2) * SUM_UNIT
    pivot, spare = end, 0.0
    for i in range(start, end):
        best = start + np.uint64(order[i])
        share = lower[best]
        if rest > tolerance:
            room, exact = add(upper[best], exact, -share)
            take = min(room, rest)
            share += take
            rest, exact = add(rest, exact, -take)
            pivot = best if take > 0.0 else pivot
            spare = room - take if take > 0.0 else spare
        mass[best - start] = share
    return pivot, spare <= tolerance and not (exact and rest == 0.0)


@inlined
def _weigh(row: Row, upward: bool, pivot: tuple[np.uint64, bool]) -> float:
    """mass·values, rounded up or down by a bound on all errors; nan where the support is not told."""
    first, last, model, values, _, scratch = row
    successor, upper, mass = model.successor, model.upper, scratch.mass
    start, end = np.uint64(first), np.uint64(last)
    place, is_full = pivot
    total, size = 0.0, 0.0
    smallest, largest, empty = np.inf, -np.inf, False
    for t in range(start, end):
        share = mass[t - start]
        if share > 0.0:
            x = values[np.uint32(successor[t])]
            smallest = min(smallest, x)
            largest = max(largest, x)
            total += share * x
            size += abs(share * x)
        else:
            empty |= upper[t] > 0.0
    edge = abs(values[np.uint32(successor[place])]) if place < end else 0.0
    size += edge + 2.0 * max(abs(smallest), abs(largest)) if is_full else edge
    error = (last - first + 6) * SUM_UNIT * size + UNDERFLOW
    return np.nan if is_full and empty else _to_side(total, error, smallest, largest, upward)


@inlined
def o_maximize_fast(row: Row, upward: bool) -> float:
    """The optimum of p·values, rounded by a bound on all errors; nan where the support is not told."""
    keep_sorted(row, True)
    pivot = _spread(row)
    return _weigh(row, upward, pivot)


def empty_order(transition_start: OffsetArray, width: int) -> OrderArray:
    """Room for the order of every choice's successors, at most `width`."""
    size = int(transition_start[-1])
    return np.empty(size, np.uint16) if width <= 1 << 16 else np.empty(size, np.int32)


def natural_order(transition_start: OffsetArray, width: int) -> OrderArray:
    """Every choice's successors, at most `width`, in the order of the model: where `order` starts from."""
    order = empty_order(transition_start, width)
    _number(transition_start, order)
    return order


@kernel
def _number(transition_start: OffsetArray, order: OrderArray) -> None:
    for c in range(len(transition_start) - 1):
        for t in range(transition_start[c], transition_start[c + 1]):
            order[t] = t - transition_start[c]


@kernel
def spread_exactly(row: Row) -> int:
    """The optimal distribution into mass[0:k], remainders exact in sign; the pivot's offset, or −1."""
    first, lower, upper = row.first, row.model.lower, row.model.upper
    order, mass = row.scratch.order, row.scratch.mass
    keep_sorted(row, True)
    k = row.last - first
    tolerance = (k + 2) * SUM_UNIT
    pivot = -1
    for i in range(k):
        mass[i] = lower[first + i]
    rest = _measure_rest(row, 0)
    for i in range(k):
        t = first + order[first + i]
        room = upper[t] - lower[t]
        if rest > 0.0 and room > 0.0:
            after = rest - room
            if abs(after) <= 2.0 * tolerance:
                after = _measure_rest(row, i + 1)
            mass[t - first] = upper[t] if after >= 0.0 else lower[t] + rest
            pivot = t - first
            rest = after
    return pivot


@kernel
def _measure_rest(row: Row, saturated: int) -> float:
    """1 minus the upper bounds of the first successors in line, minus the lower bounds of the others."""
    first, lower, upper = row.first, row.model.lower, row.model.upper
    order, terms, k = row.scratch.order, row.scratch.key, row.last - row.first
    total, exact = 1.0, True
    for i in range(k):
        t = first + order[first + i]
        terms[i] = -(upper[t] if i < saturated else lower[t])
        total, exact = add(total, exact, terms[i])
    return total if exact else distil(1.0, terms, k)


@kernel
def o_maximize_exactly(row: Row, upward: bool) -> float:
    """`o_maximize_fast` where it is not a number: over the support told exactly."""
    pivot = spread_exactly(row)
    place = np.uint64(row.first + pivot if pivot >= 0 else row.last)
    return _weigh(row, upward, (place, False))


@inlined
def o_maximize_safely(row: Row, upward: bool, exactly: bool | None) -> float:
    """The optimum of p·values, rounded up or down by a bound on all errors.

    Not a number where floating point does not tell the support and `exactly` is None. (None is a type of its
    own: kernels without a call of `o_maximize_exactly` in them are several times as fast.)
    """
    x = o_maximize_fast(row, upward)
    if exactly is not None:
        unclear = np.isnan(x)
        if unclear:
            x = o_maximize_exactly(row, upward)
    return x


@inlined
def o_maximize_both(one: Row, other: Row) -> tuple[float, float, bool]:
    """`o_maximize_fast` of one choice for two values: down, and up, and whether the latter is the optimum."""
    first, last, model, low, _, scratch = one
    high, successor, order = other.values, model.successor, scratch.order
    start = np.uint64(first)
    for i in range(start, np.uint64(last)):
        order[i] = i - start
    keep_sorted(one, True)
    is_same = _is_sorted(other, True)
    place, is_full = _spread(one)
    upper, mass, end, empty = model.upper, scratch.mass, np.uint64(last), False
    below, size_low, least_low, most_low = 0.0, 0.0, np.inf, -np.inf
    above, size_high, least_high, most_high = 0.0, 0.0, np.inf, -np.inf
    for t in range(start, end):  # as `_weigh` twice, which takes a twentieth longer
        share = mass[t - start]
        if share > 0.0:
            to = np.uint32(successor[t])
            x, y = low[to], high[to]
            least_low, most_low = min(least_low, x), max(most_low, x)
            least_high, most_high = min(least_high, y), max(most_high, y)
            below += share * x
            above += share * y
            size_low += abs(share * x)
            size_high += abs(share * y)
        else:
            empty |= upper[t] > 0.0
    at = np.uint32(successor[place if place < end else start])
    edge_low, edge_high = (abs(low[at]), abs(high[at])) if place < end else (0.0, 0.0)
    size_low += edge_low + 2.0 * max(abs(least_low), abs(most_low)) if is_full else edge_low
    size_high += edge_high + 2.0 * max(abs(least_high), abs(most_high)) if is_full else edge_high
    unit = (last - first + 6) * SUM_UNIT
    below = _to_side(below, unit * size_low + UNDERFLOW, least_low, most_low, False)
    above = _to_side(above, unit * size_high + UNDERFLOW, least_high, most_high, True)
    if is_full and empty:
        below = above = np.nan
    return below, above, is_same


@inlined
def mean_safely(
    first: int, last: int, successor: IndexArray, probability: FloatArray, values: FloatArray, upward: bool
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
    return _to_side(total, error, smallest, largest, upward)


FEW = 5


@inlined
def _exchange(x: float, room: float, y: float, other: float) -> tuple[float, float, float, float]:
    """Two successors, the smaller value first."""
    swap = y < x
    return (y if swap else x, other if swap else room, x if swap else y, room if swap else other)


@inlined
def _o_maximize(total: float, rest: float, x: float, room: float) -> tuple[float, float]:
    """The sum with what of `rest` a successor has room for, and what is left."""
    take = min(room, rest)
    return total + take * x, rest - take


@inlined
def _successor(
    t: np.uint64, last: np.uint64, model: ModelArrays, values: FloatArray, sign: float
) -> tuple[float, float, float]:
    """Its value times `sign`, its lower bound and its room; without either beyond the choice's end."""
    inside = t < last
    at = t if inside else last - np.uint64(1)
    low = model.lower[at]
    value = sign * values[np.uint32(model.successor[at])]
    return value, low if inside else 0.0, model.upper[at] - low if inside else 0.0


@inlined
def o_maximize_few(first: int, last: int, model: ModelArrays, values: FloatArray, maximise: bool) -> float:
    """The optimum of p·values over at most FEW successors in float64; not finite where a value is not."""
    start, end = np.uint64(first), np.uint64(last)
    sign = -1.0 if maximise else 1.0
    a, low_a, room_a = _successor(start, end, model, values, sign)
    b, low_b, room_b = _successor(start + np.uint64(1), end, model, values, sign)
    c, low_c, room_c = _successor(start + np.uint64(2), end, model, values, sign)
    d, low_d, room_d = _successor(start + np.uint64(3), end, model, values, sign)
    e, low_e, room_e = _successor(start + np.uint64(4), end, model, values, sign)
    total = (low_a * a + low_b * b) + (low_c * c + low_d * d) + low_e * e
    rest = max(1.0 - ((low_a + low_b) + (low_c + low_d) + low_e), 0.0)
    # nine comparisons sort five
    a, room_a, d, room_d = _exchange(a, room_a, d, room_d)
    b, room_b, e, room_e = _exchange(b, room_b, e, room_e)
    a, room_a, c, room_c = _exchange(a, room_a, c, room_c)
    b, room_b, d, room_d = _exchange(b, room_b, d, room_d)
    a, room_a, b, room_b = _exchange(a, room_a, b, room_b)
    c, room_c, e, room_e = _exchange(c, room_c, e, room_e)
    b, room_b, c, room_c = _exchange(b, room_b, c, room_c)
    d, room_d, e, room_e = _exchange(d, room_d, e, room_e)
    c, room_c, d, room_d = _exchange(c, room_c, d, room_d)
    total, rest = _o_maximize(total, rest, a, room_a)
    total, rest = _o_maximize(total, rest, b, room_b)
    total, rest = _o_maximize(total, rest, c, room_c)
    total, rest = _o_maximize(total, rest, d, room_d)
    total, rest = _o_maximize(total, rest, e, room_e)
    return sign * total
