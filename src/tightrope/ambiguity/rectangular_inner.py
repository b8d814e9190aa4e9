"""Nature's problem at one choice of rectangular sets: a linear function over the region, no linear program.

Σ_j f_j = 1, so p·x = x_0 + Σ_{j≥1} f_j·δ_j with δ_j = x_j − x_0, and with f_j = middle_j + slope_j·z

    opt p·x = x_0 + Σ δ_j·middle_j + opt_z q·z,        q = Σ δ_j·slope_j,

the support function of the region (METHODS §5). Subtracting x_0 first keeps rounding proportional to the
differences of values: equal values give q = 0, and nothing moves. For a polytope opt q·z comes from
`tightrope.ambiguity.vertex_walk`; for an ellipsoid it is β·‖Gq‖ (`tightrope.ambiguity.region_shape`).

The intervals of the choice bound p·x too, and the tighter of the two is taken: the value of a game in which
nature has to respect whichever of the two sets is the harder on it. So P_R ⊆ P_Λ holds of computed values as
well. Where a value is infinite the intervals decide alone.

`affine[e]` = (middle, fuzz, slope …); `ball` holds G and in two more rows β, too large and too small, and is
empty for a polytope.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.exact_pouring import pour_safely
from tightrope.ambiguity.pouring import OrderArray, pour, pour_masses
from tightrope.ambiguity.vertex_walk import inner_value, outer_value, walk
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined


@inlined
def _direction(
    first: int,
    last: int,
    successor: IndexArray,
    values: FloatArray,
    maximise: bool,
    expression: IndexArray,
    affine: FloatArray,
    q: FloatArray,
) -> tuple[float, float]:
    """(Σ δ·middle, its error together with that of q·z) and q, turned round where nature minimises.

    With infinite values q is the direction of the mass on them, and the error infinite."""
    x = values[successor[first]]
    size = len(q)
    for i in range(size):
        q[i] = 0.0
    base, error = 0.0, 0.0
    finite = True
    for t in range(first, last):
        finite = finite and np.isfinite(values[successor[t]])
    for t in range(first + 1, last):
        delta = values[successor[t]] - x
        if not finite:
            delta = (0.0 if np.isfinite(values[successor[t]]) else 1.0) - (0.0 if np.isfinite(x) else 1.0)
        if delta != 0.0:
            e = expression[t]
            base += delta * affine[e, 0]
            error += abs(delta) * affine[e, 1]
            if not maximise:
                delta = -delta
            for i in range(size):
                q[i] += delta * affine[e, 2 + i]
    return base, error if finite else np.inf


@inlined
def _image(ball: FloatArray, q: FloatArray, out: FloatArray) -> tuple[float, float]:
    """out = G·q, its norm and a bound on the norm's error."""
    square, spread = 0.0, 0.0
    for i in range(len(q)):
        value, magnitude = 0.0, 0.0
        for c in range(len(q)):
            value += ball[i, c] * q[c]
            magnitude += abs(ball[i, c] * q[c])
        out[i] = value
        square += value * value
        spread += magnitude * magnitude
    return np.sqrt(square), (len(q) + 8) * 2.0**-52 * np.sqrt(spread) + 1e-150


@inlined
def _climb(
    c: int,
    vertex_of: IndexArray,
    rows: FloatArray,
    vertex: FloatArray,
    link: IndexArray,
    table: IndexArray,
    used: OffsetArray,
    q: FloatArray,
    work: FloatArray,
) -> int:
    """The vertex that maximises q·z: mostly the one where the choice was last, else by a walk from there."""
    v = int(vertex_of[c])
    if v < 0:
        v = int(used[2])
    size = len(q)
    worst, total = 0.0, 0.0
    for i in range(size):
        value = 0.0
        for j in range(size):
            value += q[j] * vertex[v, size * (i + 1) + j]
        work[i] = value
        total += abs(value)
        worst = min(worst, value)
    if worst < -1e-13 * total:
        v = walk(rows, vertex, link, table, used, v, q, work)
    vertex_of[c] = v
    return v


@inlined
def inner(
    c: int,
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
    expression: IndexArray,
    affine: FloatArray,
    joint: BoolArray,
    vertex_of: IndexArray,
    rows: FloatArray,
    reach: FloatArray,
    vertex: FloatArray,
    link: IndexArray,
    table: IndexArray,
    used: OffsetArray,
    ball: FloatArray,
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
    q: FloatArray,
    work: FloatArray,
) -> float:
    """The optimum of p·values in plain floating point, and a distribution that attains it in mass[0:k].

    The distribution has no negative entries and sum 1. Where all values are equal it is that of the region's
    origin, which has all the support there is; where some are infinite, one with most or least mass there.
    The intervals are asked only where the region's optimum lies outside them."""
    size = len(q)
    k = last - first
    y, error, within = 0.0, 0.0, False
    if joint[c]:
        base, error = _direction(first, last, successor, values, maximise, expression, affine, q)
        best = 0.0
        if error > 0.0:
            if len(ball) > 0:  # the optimal point β·GᵀGq/‖Gq‖
                norm, _ = _image(ball, q, work)
                best = ball[size, 0] * norm
                for i in range(size):
                    q[i] = 0.0
                    for j in range(size):
                        q[i] += ball[j, i] * work[j]
                    q[i] *= ball[size, 0] / max(norm, 1e-300)
            else:
                v = _climb(c, vertex_of, rows, vertex, link, table, used, q, work)
                for i in range(size):
                    best += q[i] * vertex[v, i]
                    q[i] = vertex[v, i]
        y = values[successor[first]] + base + (best if maximise else -best)
        total, within = 0.0, True
        for i in range(k):
            e = expression[first + i]
            p = affine[e, 0]
            for j in range(size):
                p += affine[e, 2 + j] * q[j]
            within = within and lower[first + i] - 1e-12 <= p <= upper[first + i] + 1e-12
            mass[i] = p if p > 1e-15 else 0.0
            total += mass[i]
        for i in range(k):
            mass[i] /= max(total, 1e-300)
    if not joint[c]:
        pour_masses(first, last, successor, lower, upper, False, values, maximise, order, key, mass)
        for i in range(k):
            if mass[i] > 0.0:
                y += mass[i] * values[successor[first + i]]
    elif not within or not error < np.inf:
        x = pour(first, last, successor, lower, upper, values, maximise, order, key)
        if not error < np.inf:
            y = x
        elif (y >= x) if maximise else (y <= x):
            pour_masses(first, last, successor, lower, upper, False, values, maximise, order, key, mass)
            y = x
    return y


@inlined
def inner_safely(
    c: int,
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
    upward: bool,
    expression: IndexArray,
    affine: FloatArray,
    joint: BoolArray,
    vertex_of: IndexArray,
    rows: FloatArray,
    reach: FloatArray,
    vertex: FloatArray,
    link: IndexArray,
    table: IndexArray,
    used: OffsetArray,
    ball: FloatArray,
    order: OrderArray,
    key: FloatArray,
    mass: FloatArray,
    q: FloatArray,
    work: FloatArray,
) -> float:
    """The optimum of p·values, rounded up or down by a bound on all errors."""
    x = pour_safely(
        first, last, successor, lower, upper, False, values, maximise, upward, True, order, key, mass
    )
    if joint[c]:
        base, error = _direction(first, last, successor, values, maximise, expression, affine, q)
        if 0.0 < error < np.inf:
            outward = maximise == upward
            best = 0.0
            if len(ball) > 0:
                norm, off = _image(ball, q, work)
                if outward:
                    best = ball[len(q), 0] * (norm + off)
                else:
                    best = ball[len(q) + 1, 0] * max(norm - off, 0.0)
            else:
                v = _climb(c, vertex_of, rows, vertex, link, table, used, q, work)
                if outward:
                    best = outer_value(rows, link, reach, v, q, work)
                else:
                    best = inner_value(vertex, v, q)
            start = values[successor[first]]
            error = error * (1.0 + 1e-9) + 2.0**-51 * (abs(start) + abs(base) + abs(best)) + 1e-300
            y = start + base + (best if maximise else -best)
            y = y + error if upward else y - error
            # p·x lies between the smallest and the largest value, which keeps 0 and 1 exact.
            smallest, largest = np.inf, -np.inf
            for t in range(first, last):
                if upper[t] > 0.0:
                    smallest = min(smallest, values[successor[t]])
                    largest = max(largest, values[successor[t]])
            y = min(max(y, smallest), largest)
            x = min(x, y) if maximise else max(x, y)
    return x
