"""The confidence ellipsoid of least squares, worked out from counts and exact expressions.

With y = (x − origin)/half in the domain's box and λ = 1/10, V = λ·1 + Σ BᵀB and V·ŷ = Σ Bᵀ(Y − c) over all
visits, Y the outcomes with mean c + B·y: ‖y − ŷ‖_V ≤ β = √(½·log(det V/λᵈ) + log(1/δ)) + √(λ·d) at all times
with probability at least 1 − δ (Abbasi-Yadkori, Pál and Szepesvári 2011; noise 1/√2). V is exact. Whatever
the lower triangular G, M = G·V·Gᵀ bounds det V ≤ ∏ M_ii / ∏ G_ii² (Hadamard) and ‖q‖²_{V⁻¹} ≤ ‖Gq‖²/(1 − ε)
with ε ≥ ‖M − 1‖: a bad G gives a larger ellipsoid, never a wrong one, and a centre that misses V·ŷ by ρ adds
‖ρ‖_{V⁻¹} to β. So g·x ≤ g·origin + q·ŷ + β·‖q‖_{V⁻¹}, q = g·half: rows (TANGENT), and nature's problem.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.certificate.budget import longest, spend_on, spend_sums, spend_terms
from tightrope.certificate.numbers import FLOAT64, RATIONAL, Arithmetic, Numbers, as_fraction, log_below
from tightrope.certificate.region.coordinates import Row
from tightrope.certificate.region.polynomials import ZERO, add
from tightrope.certificate.region.rows import Origin, Statements, point_of
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from tightrope.certificate.learned import Learned

_RIDGE = Fraction(1, 10)
_NO_WIDTH = Fraction(1, 2**600)
"""Stands for half the width of a coordinate that the domain fixes."""


def prove(about: Learned, delta: Fraction) -> Statements:
    """The ellipsoid of all visits."""
    found = Ellipsoid(about, delta)
    words = f"{found.size} coordinates, β = {float(found.beta):.6f}, δ = {float(delta):g}"
    check = Check("the ellipsoid follows from the counts", True, words)
    return Statements(check, {Origin.TANGENT: found}, support=found)


class Ellipsoid:
    """{ x : ‖(x − origin)/half − centre‖_V ≤ β }.

    What is worked out once is rational; bounds at the choices of a model are in the given arithmetic.
    """

    def __init__(self, about: Learned, delta: Fraction):
        self.size = about.space.size
        lower, upper = about.space.start_box()
        self.origin = [(a + b) / 2 for a, b in zip(lower, upper, strict=True)]
        self.half = [(b - a) / 2 or _NO_WIDTH for a, b in zip(lower, upper, strict=True)]
        matrix, vector = self._normal_equations(about)
        factor, log_determinant, stretch = _factorise(matrix)
        centre, missed = _find_centre(matrix, vector, factor)
        growth = log_determinant - self.size * log_below(RATIONAL, _RIDGE)
        beta = _root_up(growth / 2 - log_below(RATIONAL, delta)) + _root_up(_RIDGE * self.size)
        self.beta, self.radius = as_fraction(beta), as_fraction((beta + missed * stretch) * stretch)
        self._exact = factor, centre
        self._put(about.n)

    def within(self, n: Arithmetic) -> Ellipsoid:
        """The same in another arithmetic."""
        result = copy(self)
        result._put(n)
        return result

    def _put(self, n: Arithmetic) -> None:
        self.n, (self.factor, self.centre) = n, (n.array(part) for part in self._exact)
        self._radius = n.array([self.radius])[0] * (1 + 4 * n.epsilon)
        self._origin, self._half = n.array(self.origin), n.array(self.half)

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        """The bound in a direction that is a point of the file."""
        exact = self.n.array(point_of(points, index, part).reshape(1, -1))
        return self.n.fractions(exact), self.n.fractions(self.upper_bounds(exact, None))[0]

    def upper_bounds(self, directions: Numbers, which: Any) -> Numbers:
        """Upper bounds of directions·x, whichever choice they belong to."""
        n, size = self.n, self.size
        spend_on("the ellipsoid", 6 * directions.size * size, n, directions, self.factor, self._half)
        q = directions * self._half
        image = q @ self.factor.T
        blur = (size + 4) * n.epsilon * (np.abs(q) @ np.abs(self.factor).T)
        norm = n.root_up((image * image).sum(axis=1)) + 2 * blur.sum(axis=1)
        norm = norm * (1 + (size + 8) * n.epsilon) + np.where(np.any(q != 0, axis=1), n.tiny, 0)
        value = directions @ self._origin + q @ self.centre
        weight = np.abs(directions) @ np.abs(self._origin) + np.abs(q) @ (np.abs(self.centre) + 1)
        error = 2 * (size + 8) * n.epsilon * weight + 4 * n.epsilon * (np.abs(value) + self._radius * norm)
        total: Numbers = value + self._radius * norm + error
        return total

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


def _factorise(matrix: Numbers) -> tuple[Numbers, Any, Any]:
    """(G, an upper bound of log det V, 1/√(1 − ε) rounded up)."""
    rough = np.tril(np.linalg.inv(np.linalg.cholesky(RATIONAL.floats(matrix)))).astype(np.float64)
    rest = FLOAT64.array(_congruent(rough, matrix)[1] - RATIONAL.array(np.eye(len(matrix))))
    rough = rough - (np.tril(rest, -1) + np.diag(np.diag(rest) / 2)) @ rough
    factor, image = _congruent(np.tril(rough), matrix)
    rest = (image - RATIONAL.array(np.eye(len(matrix)))).reshape(-1)
    epsilon = _root_up(rest @ rest)
    if not (2 * epsilon < 1 and np.all(np.diag(factor) > 0)):
        raise ValueError("the ellipsoid is too flat to be bounded")
    logs = RATIONAL.log_up(np.diag(image)) - 2 * RATIONAL.log_down(np.diag(factor))
    return factor, logs.sum(), _root_up(1 / (1 - epsilon))


def _find_centre(matrix: Numbers, vector: Numbers, factor: Numbers) -> tuple[Numbers, Any]:
    """A centre close to V⁻¹ times the vector, and ‖G·(what it misses)‖ rounded up."""
    centre, near = np.zeros(len(vector)), FLOAT64.array(factor)
    spend_terms("the ellipsoid", 16 * matrix.size, matrix.flat, vector.flat)
    for _ in range(3):
        rest = vector - matrix @ RATIONAL.array(centre)
        centre = centre + near.T @ (near @ FLOAT64.array(rest))
    missed = factor @ (vector - matrix @ RATIONAL.array(centre))
    return RATIONAL.array(centre), _root_up(missed @ missed)


def _congruent(factor: Numbers, matrix: Numbers) -> tuple[Numbers, Numbers]:
    """(G, G·V·Gᵀ), exactly."""
    exact = RATIONAL.array(factor)
    spend_sums("the ellipsoid", 3 * matrix.size, matrix.tolist(), 2 * longest(exact.flat))
    return exact, exact @ matrix @ exact.T


def _root_up(value: Any) -> Any:
    return RATIONAL.root_up(RATIONAL.array([as_fraction(value)]))[0]
