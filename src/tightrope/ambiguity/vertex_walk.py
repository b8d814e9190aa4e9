"""Linear functions maximised over a polytope by walking from vertex to vertex; what was found is remembered.

The polytope is { z : rows·z ≤ bound, |z| ≤ reach }, its box being among the rows. A vertex is a *basis*: d
rows I with regular A_I, the point A_I⁻¹ b_I and one neighbour for each row of I, reached by leaving that
row and moving along the edge until another row blocks. For a direction q let λ = q·A_I⁻¹. If λ ≥ 0 the
vertex is optimal; else leaving a row with λ_i < 0 climbs. That is the simplex method; what makes it cheap
here is that inverses and neighbours stay in a *pool*: in the iterations of a solver the same few vertices
come up again and again, a query costs d² operations, and every choice starts where it ended the last time.
Nothing is enumerated in advance, so neither the dimension nor the number of vertices is limited.

**Safe whatever the walk did.** For any λ ≥ 0, weak duality gives, for every z of the polytope,

    q·z ≤ Σ λ_i b_i + Σ_c |q_c − Σ_i λ_i a_ic|·reach_c

`outer_value` evaluates it with λ clipped at 0 and all rounding errors added. A pool that is full, a walk that
stops early or an inaccurate inverse cost tightness, never truth.

Bounds are raised by tiny different amounts beforehand (`solver.nature.region_shape`), so that vertices
where more than d rows meet come apart and every step climbs.

Layout, packed because compiled code pays for every array it is handed: `rows[r]` = (a_r, b_r); `vertex[v]` =
(point, columns of A_I⁻¹ one after the other, how far the point may be off); `link[v]` = (I sorted,
neighbours); `table` a hash table of bases; `used` = (vertices stored, vertices that found no room, the vertex
of the last query).
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined, kernel

UNKNOWN, BLOCKED = -1, -2
"""Neighbours not looked for yet, and edges without an end that could be stored."""

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
def _invert(matrix: FloatArray, inverse: FloatArray) -> bool:
    """Gauss–Jordan with row pivoting, in place of `matrix`; False where it is singular."""
    size = len(matrix)
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 1.0 if i == j else 0.0
    for column in range(size):
        pivot = column
        for i in range(column + 1, size):
            if abs(matrix[i, column]) > abs(matrix[pivot, column]):
                pivot = i
        if abs(matrix[pivot, column]) < 1e-13:
            return False
        scale = 1.0 / matrix[pivot, column]
        for j in range(size):
            a, b = matrix[pivot, j] * scale, inverse[pivot, j] * scale
            matrix[pivot, j], inverse[pivot, j] = matrix[column, j], inverse[column, j]
            matrix[column, j], inverse[column, j] = a, b
        for i in range(size):
            factor = matrix[i, column]
            if i != column and factor != 0.0:
                for j in range(size):
                    matrix[i, j] -= factor * matrix[column, j]
                    inverse[i, j] -= factor * inverse[column, j]
    return True


@kernel
def find_or_add(
    rows: FloatArray,
    vertex: FloatArray,
    link: IndexArray,
    table: IndexArray,
    used: OffsetArray,
    basis: IndexArray,
) -> int:
    """The vertex of a basis (rows in increasing order), computed if it is new; BLOCKED where that fails."""
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
    if not _invert(matrix, inverse):
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
def neighbour(
    rows: FloatArray,
    vertex: FloatArray,
    link: IndexArray,
    table: IndexArray,
    used: OffsetArray,
    v: int,
    leaving: int,
) -> int:
    """The vertex at the other end of the edge that leaves row link[v, leaving]."""
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
    w = find_or_add(rows, vertex, link, table, used, basis)
    if w >= 0:
        for i in range(size):
            if link[w, i] == entering:
                link[w, size + i] = v
    return w


@kernel
def walk(
    rows: FloatArray,
    vertex: FloatArray,
    link: IndexArray,
    table: IndexArray,
    used: OffsetArray,
    start: int,
    q: FloatArray,
    multiplier: FloatArray,
) -> int:
    """Climb from vertex `start` to one that maximises q·z; leaves λ = q·A_I⁻¹ there in `multiplier`."""
    size = len(q)
    v = int(start)
    steps = 0
    while True:
        worst, leaving, total = 0.0, -1, 0.0
        for i in range(size):
            value = 0.0
            for c in range(size):
                value += q[c] * vertex[v, size * (i + 1) + c]
            multiplier[i] = value
            total += abs(value)
            if value < worst and link[v, size + i] != BLOCKED:
                worst, leaving = value, i
        if worst >= -1e-13 * total or steps >= MOST_STEPS:
            break
        steps += 1
        w = int(link[v, size + leaving])
        if w == UNKNOWN:
            w = neighbour(rows, vertex, link, table, used, v, leaving)
            link[v, size + leaving] = w
        if w >= 0:
            v = w
    used[2] = v
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
