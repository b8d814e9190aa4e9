"""Nature's problem at one choice for both bounds of a value at once.

Both bounds put the successors into the same order, but for few choices, and what is poured is then the same:
it is poured once, for the order of the lower bounds, and weighed twice. Where the upper bounds are in another
order, the caller solves for them alone. `tightrope.ambiguity.pouring` says how, and bounds the rounding;
a pass over a model without cycles meets every choice once, so that no order is kept from before.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.pouring import UNDERFLOW, OrderArray, keep_sorted
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined
from tightrope.numerics.unit_sums import SUM_UNIT, add


@inlined
def pour_both(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    low: FloatArray,
    high: FloatArray,
    maximise: bool,
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
) -> tuple[float, float, bool]:
    """`pour_fast` of `low`, rounded down, and of `high`, rounded up, and whether the latter holds.

    `order` may hold anything before, and is a permutation afterwards."""
    start, end = np.uint64(first), np.uint64(last)
    rest, exact = 1.0, True
    for t in range(start, end):
        rest, exact = add(rest, exact, -lower[t])
    for i in range(start, end):
        order[i] = i - start
    keep_sorted(first, last, successor, low, maximise, True, order, key)
    tolerance = (last - first + 2) * SUM_UNIT
    swing, swing_high, spare = 0.0, 0.0, 0.0
    before, offset_before, is_sorted = -np.inf, np.uint64(0), True
    for i in range(start, end):
        offset = np.uint64(order[i])
        best = start + offset
        share = lower[best]
        to = np.uint32(successor[best])
        x = -high[to] if maximise else high[to]
        is_sorted &= (x > before) | ((x == before) & (offset >= offset_before))
        before, offset_before = x, offset
        if rest > tolerance:
            room, exact = add(upper[best], exact, -share)
            take = min(room, rest)
            share += take
            rest, exact = add(rest, exact, -take)
            swing = abs(low[to]) if take > 0.0 else swing
            swing_high = abs(x) if take > 0.0 else swing_high
            spare = room - take if take > 0.0 else spare
        mass[offset] = share
    full, empty = spare <= tolerance and not (exact and rest == 0.0), False
    total, size = 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    total_high, size_high = 0.0, 0.0
    smallest_high, largest_high = np.inf, -np.inf
    for t in range(start, end):
        share = mass[t - start]
        if share > 0.0:
            x = low[np.uint32(successor[t])]
            smallest, largest = min(smallest, x), max(largest, x)
            total += share * x
            size += abs(share * x)
            y = high[np.uint32(successor[t])]
            smallest_high, largest_high = min(smallest_high, y), max(largest_high, y)
            total_high += share * y
            size_high += abs(share * y)
        else:
            empty |= upper[t] > 0.0
    size += swing + 2.0 * max(abs(smallest), abs(largest)) if full else swing
    size_high += swing_high + 2.0 * max(abs(smallest_high), abs(largest_high)) if full else swing_high
    unit = (last - first + 6) * SUM_UNIT
    if full and empty:
        total = total_high = np.nan
    else:
        if smallest == largest:
            total = smallest
        elif not np.isinf(total):
            total = max(total - (unit * size + UNDERFLOW), smallest)
        if smallest_high == largest_high:
            total_high = smallest_high
        elif not np.isinf(total_high):
            total_high = min(total_high + (unit * size_high + UNDERFLOW), largest_high)
    return total, total_high, is_sorted
