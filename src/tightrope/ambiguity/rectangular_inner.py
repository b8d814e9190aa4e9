"""Nature's problem at one choice of rectangular sets: a linear function over the region, no linear program.

Values minus the first one make it the region's support function: walks between vertices, or a closed form for
an ellipsoid. Weak duality with multipliers clipped at 0 and all rounding added makes any walk safe
(`outer_value`); the tighter of region and intervals is taken (docs/proofs/values.md).

Layout, packed for compiled code: `rows[r]` = (a_r, b_r); `vertex[v]` = (point, columns of A_I⁻¹, error of the
point); `link[v]` = (I sorted, neighbours); `table` a hash table of bases; `used` = (vertices stored, vertices
without room, vertex of the last query); `affine[e]` = (middle, fuzz, slope …); `ball` holds G and two rows of
β, too large and too small, and is empty for a polytope.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.ambiguity.o_maximization import (
    ModelArrays,
    Row,
    o_maximize,
    o_maximize_masses,
    o_maximize_safely,
)
from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, invert
from tightrope.numerics.jit import inlined, kernel

MOST_VERTICES = 300_000
POOL_BYTES = 2**28


class Shape(NamedTuple):
    """What nature's problem needs of a region, made by `region_shape`; packed as said above.

    `joint[c]`: choice c goes beyond its intervals. `basis`: the rows of the first vertex of a polytope.
    """

    expression: IndexArray
    affine: FloatArray
    joint: BoolArray
    rows: FloatArray
    reach: FloatArray
    ball: FloatArray
    basis: IndexArray

    def open_pool(self, capacity: int | None = None) -> VertexPool:
        """A pool that knows the first vertex; its memory is touched only as it fills."""
        size = len(self.reach)
        most = int(min(MOST_VERTICES, POOL_BYTES // (8 * size * (size + 3)))) if len(self.rows) else 1
        room = most if capacity is None else capacity
        pool = VertexPool(
            np.full(len(self.joint), -1, np.int32),
            np.empty((room, size * (size + 1) + 1)),
            np.empty((room, 2 * size), np.int32),
            np.full(1 << (2 * room - 1).bit_length(), -1, np.int32),
            np.zeros(3, np.int64),
        )
        if len(self.rows) and (len(self.basis) < size or find_or_add(self.rows, pool, self.basis) != 0):
            raise CannotCertify("no vertex of the region could be computed in float64")
        return pool


class VertexPool(NamedTuple):
    """Vertices met so far (`walk`); `vertex_of[c]`: where choice c was last optimal, −1 at first."""

    vertex_of: IndexArray
    vertex: FloatArray
    link: IndexArray
    table: IndexArray
    used: OffsetArray


class RegionArrays(NamedTuple):
    """The region of rectangular sets, the vertices met so far, and room for one direction."""

    shape: Shape
    pool: VertexPool
    direction: FloatArray
    work: FloatArray


@inlined
def _direction(row: Row, shape: Shape, q: FloatArray) -> tuple[float, float]:
    """(Σ δ·middle, its error with q·z) and q for the maximum; of the mass on infinite values if any."""
    first, last, model, values, maximise, _ = row
    successor, expression, affine = model.successor, shape.expression, shape.affine
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
def _multipliers(vertex: FloatArray, v: int, q: FloatArray, out: FloatArray) -> tuple[float, float]:
    """λ = q·A_I⁻¹ at a vertex, the least of them (0 where none is negative) and the sum of their sizes."""
    size = len(q)
    least, total = 0.0, 0.0
    for i in range(size):
        value = 0.0
        for c in range(size):
            value += q[c] * vertex[v, size * (i + 1) + c]
        out[i] = value
        total += abs(value)
        least = min(least, value)
    return least, total


@inlined
def _climb(c: int, rows: FloatArray, pool: VertexPool, q: FloatArray, work: FloatArray) -> int:
    """The vertex that maximises q·z: mostly the one where the choice was last, else by a walk from there."""
    v = int(pool.vertex_of[c])
    if v < 0:
        v = int(pool.used[2])
    worst, total = _multipliers(pool.vertex, v, q, work)
    if worst < -1e-13 * total:
        v = walk(rows, pool, v, q, work)
    pool.vertex_of[c] = v
    return v


@inlined
def _distribution(
    first: int, last: int, model: ModelArrays, shape: Shape, point: FloatArray, mass: FloatArray
) -> bool:
    """Probabilities at a point of the region into mass[0:k]; whether they lie within the intervals."""
    total, within = 0.0, True
    for i in range(last - first):
        t = first + i
        e = shape.expression[t]
        p = shape.affine[e, 0]
        for j in range(len(point)):
            p += shape.affine[e, 2 + j] * point[j]
        within = within and model.lower[t] - 1e-12 <= p <= model.upper[t] + 1e-12
        mass[i] = p if p > 1e-15 else 0.0
        total += mass[i]
    for i in range(last - first):
        mass[i] /= max(total, 1e-300)
    return within


@inlined
def inner(c: int, row: Row, region: RegionArrays) -> float:
    """The optimum of p·values in plain floating point, and a distribution that attains it in mass[0:k].

    The distribution is nonnegative with sum 1. If all values are equal it is that of the region's origin,
    with full support; if some are infinite, one with most or least mass there. The intervals are used only
    where the region's optimum lies outside them.
    """
    first, last, model, values, maximise, scratch = row
    successor, mass = model.successor, scratch.mass
    shape, pool, q, work = region
    joint, ball = shape.joint, shape.ball
    size = len(q)
    k = last - first
    y, error, within = 0.0, 0.0, False
    if joint[c]:
        base, error = _direction(row, shape, q)
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
                v = _climb(c, shape.rows, pool, q, work)
                for i in range(size):
                    best += q[i] * pool.vertex[v, i]
                    q[i] = pool.vertex[v, i]
        y = values[successor[first]] + base + (best if maximise else -best)
        within = _distribution(first, last, model, shape, q, mass)
    if not joint[c]:
        o_maximize_masses(row)
        for i in range(k):
            if mass[i] > 0.0:
                y += mass[i] * values[successor[first + i]]
    elif not within or not error < np.inf:
        x = o_maximize(row)
        if not error < np.inf:
            y = x
        elif (y >= x) if maximise else (y <= x):
            o_maximize_masses(row)
            y = x
    return y


@inlined
def inner_safely(c: int, row: Row, upward: bool, region: RegionArrays) -> float:
    """The optimum of p·values, rounded up or down by a bound on all errors."""
    first, last, model, values, maximise, _ = row
    successor, upper = model.successor, model.upper
    shape, pool, q, work = region
    joint, ball = shape.joint, shape.ball
    x = o_maximize_safely(row, upward, True)
    if joint[c]:
        base, error = _direction(row, shape, q)
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
                v = _climb(c, shape.rows, pool, q, work)
                if outward:
                    best = outer_value(shape.rows, pool.link, shape.reach, v, q, work)
                else:
                    best = inner_value(pool.vertex, v, q)
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


UNKNOWN, BLOCKED = -1, -2
"""Neighbours not looked for yet, and edges without an end that could be stored."""

SINGULAR = 1e-13
"""Smaller pivots are taken for 0."""

MOST_STEPS = 500
"""Steps after which a walk stops where it is."""


@kernel
def _slot_of(link: IndexArray, table: IndexArray, basis: IndexArray) -> int:
    """The place of a basis in the hash table: where it is, or where it would go."""
    mask = len(table) - 1
    mixed = 17
    for r in basis:
        mixed = (mixed * 1_000_003 + int(r)) & 0x3FFFFFFFFFF
        mixed ^= mixed >> 17
    slot = mixed & mask
    while table[slot] >= 0:
        same = True
        for i in range(len(basis)):
            same = same and link[table[slot], i] == basis[i]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def find_or_add(rows: FloatArray, pool: VertexPool, basis: IndexArray) -> int:
    """The vertex of a basis (rows in increasing order), computed if it is new; BLOCKED where that fails."""
    _, vertex, link, table, used = pool
    slot = _slot_of(link, table, basis)
    if table[slot] >= 0:
        return int(table[slot])
    v = used[0]
    if v >= len(vertex):
        used[1] += 1
        return BLOCKED
    size = len(basis)
    matrix, inverse = np.empty((size, size)), np.empty((size, size))
    for i in range(size):
        for c in range(size):
            matrix[i, c] = rows[basis[i], c]
    if invert(matrix, inverse) < SINGULAR:
        return BLOCKED
    norm = 0.0
    for c in range(size):
        total, point = 0.0, 0.0
        for i in range(size):
            vertex[v, size * (i + 1) + c] = inverse[c, i]
            point += inverse[c, i] * rows[basis[i], size]
            total += abs(inverse[c, i])
        vertex[v, c] = point
        norm = max(norm, total)
    # ‖A⁻¹‖ ≤ ‖R‖/(1 − ‖1 − A·R‖): how far the point is from the vertex.
    defect, residual = 0.0, 0.0
    for i in range(size):
        row_defect, left, magnitude = 0.0, rows[basis[i], size], abs(rows[basis[i], size])
        for c in range(size):
            term = rows[basis[i], c] * vertex[v, c]
            left -= term
            magnitude += abs(term)
            entry = 1.0 if i == c else 0.0
            for j in range(size):
                entry -= rows[basis[i], j] * inverse[j, c]
            row_defect += abs(entry)
        residual = max(residual, abs(left) + (size + 4) * 2.0**-52 * magnitude)
        defect = max(defect, row_defect)
    defect += (size + 4) * size * 2.0**-52 * norm
    if not defect < 0.5:
        return BLOCKED
    vertex[v, size * (size + 1)] = norm * residual / (1.0 - defect) * (1.0 + 1e-9)
    for i in range(size):
        link[v, i] = basis[i]
        link[v, size + i] = UNKNOWN
    table[slot] = v
    used[0] += 1
    return int(v)


@kernel
def neighbour(rows: FloatArray, pool: VertexPool, v: int, leaving: int) -> int:
    """The vertex at the other end of the edge that leaves row link[v, leaving]."""
    vertex, link = pool.vertex, pool.link
    size = rows.shape[1] - 1
    column = size * (leaving + 1)
    length = 0.0
    for c in range(size):
        length = max(length, abs(vertex[v, column + c]))
    entering, step, steepness = -1, np.inf, 0.0
    for r in range(len(rows)):
        slope = 0.0
        for c in range(size):
            slope -= rows[r, c] * vertex[v, column + c]
        if slope <= 1e-11 * length:
            continue
        room = rows[r, size]
        for c in range(size):
            room -= rows[r, c] * vertex[v, c]
        member = False
        for i in range(size):
            member = member or link[v, i] == r
        ratio = max(room, 0.0) / slope
        if not member and (ratio < step or (ratio == step and slope > steepness)):
            entering, step, steepness = r, ratio, slope
    if entering < 0:
        return BLOCKED
    basis = np.empty(size, np.int32)
    filled = 0
    placed = False
    for i in range(size):
        r = link[v, i]
        if not placed and r > entering:
            basis[filled] = entering
            filled += 1
            placed = True
        if i != leaving:
            basis[filled] = r
            filled += 1
    if not placed:
        basis[filled] = entering
    w = find_or_add(rows, pool, basis)
    if w >= 0:
        for i in range(size):
            if link[w, i] == entering:
                link[w, size + i] = v
    return w


@kernel
def walk(rows: FloatArray, pool: VertexPool, start: int, q: FloatArray, multiplier: FloatArray) -> int:
    """Climb from vertex `start` to one that maximises q·z; leaves λ = q·A_I⁻¹ there in `multiplier`."""
    vertex, link = pool.vertex, pool.link
    size = len(q)
    v = int(start)
    steps = 0
    while True:
        _, total = _multipliers(vertex, v, q, multiplier)
        worst, leaving = 0.0, -1
        for i in range(size):
            if multiplier[i] < worst and link[v, size + i] != BLOCKED:
                worst, leaving = multiplier[i], i
        if worst >= -1e-13 * total or steps >= MOST_STEPS:
            break
        steps += 1
        w = int(link[v, size + leaving])
        if w == UNKNOWN:
            w = neighbour(rows, pool, v, leaving)
            link[v, size + leaving] = w
        if w >= 0:
            v = w
    pool.used[2] = v
    return v


@inlined
def outer_value(
    rows: FloatArray, link: IndexArray, reach: FloatArray, v: int, q: FloatArray, multiplier: FloatArray
) -> float:
    """An upper bound of q·z over the polytope, from the multipliers that `walk` left (weak duality)."""
    size = len(q)
    value, magnitude, weight = 0.0, 0.0, 0.0
    for i in range(size):
        if multiplier[i] > 0.0:
            term = multiplier[i] * rows[link[v, i], size]
            value += term
            magnitude += abs(term)
            weight += multiplier[i]
    for c in range(size):
        left = q[c]
        for i in range(size):
            if multiplier[i] > 0.0:
                left -= multiplier[i] * rows[link[v, i], c]
        value += abs(left) * reach[c]
        magnitude += (abs(q[c]) + weight) * reach[c]
    return value + (2 * size + 12) * 2.0**-52 * magnitude + 1e-300


@inlined
def inner_value(vertex: FloatArray, v: int, q: FloatArray) -> float:
    """A lower bound of q·z at the vertex v."""
    size = len(q)
    value, magnitude, length = 0.0, 0.0, 0.0
    for c in range(size):
        term = q[c] * vertex[v, c]
        value += term
        magnitude += abs(term)
        length += abs(q[c])
    off: float = length * vertex[v, size * (size + 1)] + (size + 8) * 2.0**-52 * magnitude + 1e-300
    return value - off
