"""The confidence ellipsoid of least squares, worked out from counts and exact expressions.

The README of this package has the theorem: a bad factor gives a larger ellipsoid, never a wrong one.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction

import numpy as np

from tightrope_check.arrays import FloatArray, Number
from tightrope_check.budget import longest, spend_on, spend_sums, spend_terms
from tightrope_check.coordinates import ZERO, Row, add
from tightrope_check.learned import Learned, RowOrigin, Statements, point_of
from tightrope_check.logarithms import log_below, log_down, log_up, root_up
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers, as_fraction
from tightrope_check.verdict import Check

_RIDGE = Fraction(1, 10)
_NO_WIDTH = Fraction(1, 2**600)
"""Stands for half the width of a coordinate that the domain fixes."""


def prove(about: Learned, delta: Fraction) -> Statements:
    """The ellipsoid of all visits."""
    ellipsoid = EllipsoidRows(about, delta)
    words = f"{ellipsoid.size} coordinates, β = {float(ellipsoid.beta):.6f}, δ = {float(delta):g}"
    check = Check("the ellipsoid follows from the counts", True, words)
    return Statements(check, {RowOrigin.TANGENT: ellipsoid}, support=ellipsoid)


class EllipsoidRows:
    """{ x : ‖(x − origin)/half − centre‖_V ≤ β }: g·x ≤ g·middle + ‖image·g‖ in every direction g.

    All is rational; `within` float64 the bounds at the choices of a model have their rounding added.
    """

    def __init__(self, about: Learned, delta: Fraction):
        self.n: Arithmetic = RATIONAL
        self.size = about.space.size
        lower, upper = about.space.start_box()
        self.origin = [(a + b) / 2 for a, b in zip(lower, upper, strict=True)]
        self.half = [(b - a) / 2 or _NO_WIDTH for a, b in zip(lower, upper, strict=True)]
        matrix, vector = self._normal_equations(about)
        factor, log_determinant, stretch = _factorise(matrix)
        centre, missed = _find_centre(matrix, vector, factor)
        growth = log_determinant - self.size * log_below(_RIDGE)
        beta = _root_up(growth / 2 - log_below(delta)) + _root_up(_RIDGE * self.size)
        self.beta, self.radius, self.centre = as_fraction(beta), (beta + missed * stretch) * stretch, centre
        half = RATIONAL.array(self.half)
        self.middle, self.image = RATIONAL.array(self.origin) + half * centre, self.radius * factor * half

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        """The bound in a direction that is a point of the file."""
        exact = RATIONAL.array(point_of(points, index, part).reshape(1, -1))
        return RATIONAL.fractions(exact), RATIONAL.fractions(self.upper_bounds(exact, None))[0]

    def within(self, n: Arithmetic) -> EllipsoidRows:
        """The same, with bounds in an arithmetic."""
        copied = copy(self)
        copied.n, copied.middle, copied.image = n, n.array(self.middle), n.array(self.image)
        return copied

    def upper_bounds(self, directions: Numbers, which: object) -> Numbers:
        """Upper bounds of directions·x, whichever choice they belong to."""
        spend_on("the ellipsoid", 6 * directions.size * self.size, self.n, directions, self.image)
        n, terms, value = self.n, self.size + 8, directions @ self.middle
        length = directions @ self.image.T
        square = (length * length).sum(axis=1)
        if n.exact:
            return np.asarray(value + root_up(n, square), dtype=object)
        size, image = np.abs(directions), np.abs(self.image).T + n.tiny  # 0 may stand for less than that
        norm = root_up(n, square + n.error(terms, square)) + 2 * n.error(terms, size @ image).sum(axis=1)
        total = value + norm + n.error(terms, size @ (np.abs(self.middle) + n.tiny) + norm)
        return np.where(np.any(directions != 0, axis=1), np.where(np.isfinite(total), total, np.inf), 0)

    def _normal_equations(self, about: Learned) -> tuple[Numbers, Numbers]:
        """V and Σ Bᵀ(Y − c): outcomes are pooled by expression and multiplicity first."""
        outcomes, polynomials = about.outcomes, about.polynomials
        named = np.stack([outcomes.expression, outcomes.multiplicity], axis=1)
        kinds, number = np.unique(named, axis=0, return_inverse=True)
        times, hits = np.zeros((2, len(kinds)), dtype=np.int64)
        np.add.at(times, number.reshape(-1), outcomes.visits[outcomes.owner])
        np.add.at(hits, number.reshape(-1), outcomes.seen)
        matrix = [[_RIDGE * (i == j) for j in range(self.size)] for i in range(self.size)]
        vector = [ZERO] * self.size
        for (e, m), tried, hit in zip(kinds.tolist(), times.tolist(), hits.tolist(), strict=True):
            if tried == 0 or not about.unknown[e]:
                continue
            linear, level = about.space.affine(add({}, polynomials[e], m))
            slope = [(j, a * self.half[j]) for j, a in enumerate(linear) if a]
            level += sum((linear[j] * self.origin[j] for j, _ in slope), ZERO)
            held = [matrix[i][i] for i, _ in slope] + [vector[i] for i, _ in slope]
            spend_terms("the ellipsoid", 4 * len(slope) ** 2, held, (a * a for _, a in slope), (level,))
            for i, a in slope:
                vector[i] += a * (hit - tried * level)
                for j, b in slope:
                    matrix[i][j] += tried * a * b
        return RATIONAL.array(matrix), RATIONAL.array(vector)


def _factorise(matrix: Numbers) -> tuple[Numbers, Number, Number]:
    """(G, an upper bound of log det V, 1/√(1 − ε) rounded up): by elimination, in about 128 bits."""
    size = len(matrix)
    work, eye = np.concatenate([matrix, RATIONAL.array(np.eye(size))], axis=1), RATIONAL.array(np.eye(size))
    for j in range(size):
        if not work[j, j] > 0:
            raise ValueError("the ellipsoid is too flat to be bounded")
        spend_terms("the ellipsoid", 6 * (size - j) * size, work[j:].flat)
        below = work[j + 1 :, j] / work[j, j]
        work[j + 1 :] = RATIONAL.trim(work[j + 1 :] - below[:, None] * work[j])
    scale = root_up(RATIONAL, 1 / np.diag(work))
    factor = RATIONAL.trim(scale[:, None] * work[:, size:])
    spend_sums("the ellipsoid", 3 * matrix.size, matrix.tolist(), 2 * longest(factor.flat))
    image = factor @ matrix @ factor.T
    rest = (image - eye).reshape(-1)
    epsilon = _root_up(rest @ rest)
    if not (2 * epsilon < 1 and np.all(np.diag(factor) > 0)):
        raise ValueError("the ellipsoid is too flat to be bounded")
    logs = log_up(np.diag(image)) - 2 * log_down(np.diag(factor))
    return factor, logs.sum(), _root_up(1 / (1 - epsilon))


def _find_centre(matrix: Numbers, vector: Numbers, factor: Numbers) -> tuple[Numbers, Number]:
    """A centre close to V⁻¹ times the vector, and ‖G·(what it misses)‖ rounded up."""
    spend_terms("the ellipsoid", 16 * matrix.size, matrix.flat, vector.flat)
    centre = RATIONAL.trim(factor.T @ (factor @ vector))
    missed = factor @ (vector - matrix @ centre)
    return centre, _root_up(missed @ missed)


def _root_up(value: Number) -> Number:
    return root_up(RATIONAL, RATIONAL.array([value]))[0]
