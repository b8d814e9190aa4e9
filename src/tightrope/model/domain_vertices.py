"""The vertices of a domain, exactly: a box cut by linear constraints.

The double description method on rationals (Motzkin et al. 1953): start from the corners of the
box and cut by one half-space after the other; new vertices appear on edges between a vertex that
stays and one that goes. Two vertices span an edge when no third one lies on all constraints that
both lie on. Domains have a handful of parameters and constraints; beyond `MOST_CORNERS` corners
the answer is None and callers use linear programs. Qhull would be faster but works in floats.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from tightrope.model.parameters import LinearConstraint, Parameters

MOST_CORNERS = 256

Vertex = tuple[Fraction, ...]


def domain_vertices(parameters: Parameters) -> list[Vertex] | None:
    """All vertices ([] for an empty domain), or None where there would be too many."""
    sides = [
        (low,) if low == high else (low, high)
        for low, high in zip(parameters.lower, parameters.upper, strict=True)
    ]
    free = sum(len(side) == 2 for side in sides)
    if 2**free > MOST_CORNERS:
        return None
    active: dict[Vertex, int] = {}
    for corner in product(*sides):
        bits = 0
        for i, x in enumerate(corner):
            bits |= (x == parameters.lower[i]) << (2 * i) | (x == parameters.upper[i]) << (2 * i + 1)
        active[corner] = bits
    next_bit = 2 * len(parameters)
    for constraint in parameters.constraints:
        active = _cut(active, constraint, 1 << next_bit)
        next_bit += 1
        if constraint.is_equality:
            opposite = LinearConstraint(tuple(-a for a in constraint.coefficients), -constraint.bound)
            active = _cut(active, opposite, 1 << next_bit)
            next_bit += 1
        if not active or len(active) > 16 * MOST_CORNERS:
            break
    return list(active) if len(active) <= 16 * MOST_CORNERS else None


def _cut(active: dict[Vertex, int], constraint: LinearConstraint, bit: int) -> dict[Vertex, int]:
    excess = {vertex: constraint.excess(vertex) for vertex in active}
    kept = {v: bits | bit if excess[v] == 0 else bits for v, bits in active.items() if excess[v] <= 0}
    inside = [v for v in active if excess[v] < 0]
    outside = [v for v in active if excess[v] > 0]
    for a in inside:
        for b in outside:
            shared = active[a] & active[b]
            if any(shared & bits == shared for v, bits in active.items() if v is not a and v is not b):
                continue
            weight = excess[b] / (excess[b] - excess[a])
            crossing = tuple(weight * x + (1 - weight) * y for x, y in zip(a, b, strict=True))
            kept[crossing] = kept.get(crossing, 0) | shared | bit
    return kept
