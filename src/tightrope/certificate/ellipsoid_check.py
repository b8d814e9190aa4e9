"""The confidence ellipsoid of least squares, worked out again from counts and exact expressions.

A visit to a choice is one observation: the indicators Y of its outcomes, with mean c + B·y at the true
coordinates y = (x − origin)/half of the domain's box, |y| ≤ 1. With λ = 1/10, V = λ·1 + Σ BᵀB and
V·ŷ = Σ Bᵀ(Y − c) over all visits, at all times together with probability at least 1 − δ,

    ‖y − ŷ‖_V ≤ β = √(½·log(det V/λᵈ) + log(1/δ)) + √(λ·d)

(Abbasi-Yadkori, Pál and Szepesvári 2011; z·Bᵀ(Y − c − By) has range at most √2·‖Bz‖, so that Hoeffding's
lemma gives noise R = 1/√2). V and Σ Bᵀ(Y − c) are sums of rationals weighted by counts, and exact.

Whatever the lower triangular G, M = G·V·Gᵀ is worked out exactly. With ε ≥ ‖M − 1‖ in Frobenius' norm and
Hadamard's inequality,

    det V ≤ ∏ M_ii / ∏ G_ii²,        ‖q‖²_{V⁻¹} = (Gq)ᵀM⁻¹(Gq) ≤ ‖Gq‖²/(1 − ε),

and a centre that misses V·ŷ by ρ is off by ‖ρ‖_{V⁻¹}, which is added to β. G is the inverse Cholesky factor
with more digits than float64 has; a worse one would give a larger ellipsoid, never a wrong one.

So g·x ≤ g·origin + q·ŷ + β·‖q‖_{V⁻¹}, q = g·half, for every direction g: rows of the region (TANGENT) for the
directions in the file, and nature's problem at every choice of rectangular sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.certificate.events_check import outcomes
from tightrope.certificate.inner import EPSILON, Extended, as_fraction
from tightrope.certificate.learning import Data, Table
from tightrope.certificate.polynomials import Polynomial, is_constant, scaled
from tightrope.certificate.signatures import Signatures
from tightrope.certificate.space import Space
from tightrope.certificate.support_check import Indices, extended

RIDGE = Fraction(1, 10)
_NO_WIDTH = Fraction(1, 2**600)
"""Stands for half the width of a coordinate that the domain fixes."""

_BITS = 160
_BLOCK = 1 << 14

Exact = npt.NDArray[Any]
"""Object arrays of rationals or integers."""


class Ellipsoid:
    """{ x : ‖(x − origin)/half − centre‖_V ≤ β }, and tangents in the given directions."""

    def __init__(
        self,
        data: Data,
        space: Space,
        polynomials: Sequence[Polynomial],
        signatures: Signatures,
        directions: Table,
    ):
        if not 0 < data.delta < 1:
            raise ValueError("δ is not a level")
        if directions.ndim != 2 or directions.shape[1] != space.size:
            raise ValueError("directions that do not fit the coordinates")
        lower, upper = space.start_box()
        self.directions = directions
        self.origin = [(a + b) / 2 for a, b in zip(lower, upper, strict=True)]
        self.half = [(b - a) / 2 or _NO_WIDTH for a, b in zip(lower, upper, strict=True)]
        matrix, vector = self._normal_equations(space, polynomials, signatures)
        self._factored(matrix)
        self._centred(matrix, vector)
        growth = self._log_determinant() - space.size * np.log(extended([RIDGE])[0])
        level = growth / 2 - np.log(np.longdouble(data.delta))
        level = level + 64 * (space.size + 1) * EPSILON * (1 + np.abs(level))
        self.beta = _root_up(as_fraction(level)) + _root_up(RIDGE * space.size)
        self.radius = (self.beta + self.off) * self.stretch
        self._in_floats()

    def row(self, index: int, part: int) -> tuple[list[Fraction], Fraction]:
        """The tangent in direction `index`."""
        if not 0 <= index < len(self.directions) or part != 0:
            raise ValueError("no such tangent")
        direction = [Fraction(float(value)) for value in self.directions[index]]
        scaled_by_half = _exact([g * h for g, h in zip(direction, self.half, strict=True)])
        image = self.factor @ scaled_by_half
        bound = sum((g * o for g, o in zip(direction, self.origin, strict=True)), Fraction(0))
        bound += scaled_by_half @ self.centre + self.radius * _root_up(Fraction(image @ image))
        return direction, Fraction(bound)

    def upper_bounds(self, directions: Extended, which: Indices) -> Extended:
        """Upper bounds of directions·x, whichever choice they belong to."""
        result = np.empty(len(directions), dtype=np.longdouble)
        for start in range(0, len(directions), _BLOCK):
            result[start : start + _BLOCK] = self._bounds(directions[start : start + _BLOCK])
        return result

    def _bounds(self, directions: Extended) -> Extended:
        size = directions.shape[1]
        factor, magnitude = self._factor, np.abs(self._factor)
        q = directions * self._half
        image = q @ factor.T
        blur = (size + 4) * EPSILON * (np.abs(q) @ magnitude.T)
        norm = np.sqrt((image * image).sum(axis=1)) + np.sqrt((blur * blur).sum(axis=1)) * (1 + 1e-6)
        norm = norm * (1 + (size + 8) * EPSILON) + np.where(np.any(q != 0, axis=1), 1e-150, 0)
        value = directions @ self._origin + q @ self._centre
        weight = np.abs(directions) @ np.abs(self._origin) + np.abs(q) @ (np.abs(self._centre) + 1)
        total = value + self._radius * norm
        error = 2 * (size + 8) * EPSILON * weight + 4 * EPSILON * (np.abs(value) + self._radius * norm)
        return np.asarray(total + error)

    def _normal_equations(
        self, space: Space, polynomials: Sequence[Polynomial], signatures: Signatures
    ) -> tuple[Exact, Exact]:
        """V and Σ Bᵀ(Y − c): outcomes are pooled by expression and multiplicity first."""
        start, counts = signatures.start, signatures.counts
        owner, expression, multiplicity, seen = outcomes(start, signatures.expression, counts)
        visits = np.add.reduceat(counts, start[:-1])[owner]
        kinds, number = np.unique(np.stack([expression, multiplicity], axis=1), axis=0, return_inverse=True)
        times, hits = np.zeros(len(kinds), dtype=np.int64), np.zeros(len(kinds), dtype=np.int64)
        np.add.at(times, number.reshape(-1), visits)
        np.add.at(hits, number.reshape(-1), seen)
        size = space.size
        matrix = [[RIDGE * (i == j) for j in range(size)] for i in range(size)]
        vector = [Fraction(0)] * size
        for (e, m), tried, hit in zip(kinds.tolist(), times.tolist(), hits.tolist(), strict=True):
            if tried == 0 or is_constant(polynomials[e]):
                continue
            linear, level = space.affine(scaled(polynomials[e], m))
            slope = [(j, a * self.half[j]) for j, a in enumerate(linear) if a]
            level += sum((linear[j] * self.origin[j] for j, _ in slope), Fraction(0))
            for i, a in slope:
                vector[i] += a * (hit - tried * level)
                for j, b in slope:
                    matrix[i][j] += tried * a * b
        return _exact(matrix), _exact(vector)

    def _factored(self, matrix: Exact) -> None:
        """G, the diagonal of M, and 1/√(1 − ε)."""
        rough = np.linalg.inv(np.linalg.cholesky(matrix.astype(np.float64)))
        rough = np.tril(rough).astype(np.longdouble)
        size = len(rough)
        rest = _nearest(_congruent(_fractions(rough), matrix) - _identity(size))
        fine = rough - (np.tril(rest, -1) + np.diag(np.diag(rest) / 2)) @ rough
        self.factor = _fractions(np.tril(fine))
        image = _congruent(self.factor, matrix)
        rest = (image - _identity(size)).reshape(-1)
        epsilon = _root_up(Fraction(rest @ rest))
        if not (epsilon < Fraction(1, 2) and all(value > 0 for value in np.diag(self.factor))):
            raise ValueError("the ellipsoid is too flat to be bounded")
        self.image_diagonal = [Fraction(value) for value in np.diag(image)]
        self.stretch = _root_up(1 / (1 - epsilon))

    def _centred(self, matrix: Exact, vector: Exact) -> None:
        """A centre close to V⁻¹ times the vector, and by how much it is off."""
        centre = np.zeros(len(vector), dtype=np.longdouble)
        factor = _nearest(self.factor)
        for _ in range(3):
            rest = vector - matrix @ _fractions(centre)
            centre = centre + factor.T @ (factor @ _nearest(rest))
        self.centre = _fractions(centre)
        missed = self.factor @ (vector - matrix @ self.centre)
        self.off = _root_up(Fraction(missed @ missed)) * self.stretch

    def _log_determinant(self) -> np.longdouble:
        """An upper bound of log det V."""
        image = np.log(extended(self.image_diagonal))
        factor = np.log(extended(list(np.diag(self.factor))))
        size = np.abs(image).sum() + 2 * np.abs(factor).sum() + 3 * len(image)
        return np.longdouble(image.sum() - 2 * factor.sum() + (2 * len(image) + 16) * EPSILON * size)

    def _in_floats(self) -> None:
        self._factor, self._centre = _nearest(self.factor), _nearest(self.centre)
        self._origin, self._half = extended(self.origin), extended(self.half)
        self._radius = extended([self.radius])[0] * (1 + 4 * EPSILON)


def _root_up(value: Fraction) -> Fraction:
    """An upper bound of a root, to about 80 digits in base 2."""
    if value <= 0:
        if value < 0:
            raise ValueError("the root of a negative number")
        return Fraction(0)
    square = value.numerator * value.denominator
    shift = max(0, _BITS - square.bit_length() + 1) // 2
    return Fraction(isqrt(square << (2 * shift)) + 1, value.denominator << shift)


def _congruent(factor: Exact, matrix: Exact) -> Exact:
    """G·V·Gᵀ exactly, in integers over common denominators."""
    left, left_unit = _integers(factor)
    middle, middle_unit = _integers(matrix)
    product = left @ middle @ left.T
    unit = left_unit * left_unit * middle_unit
    return _exact([[Fraction(value, unit) for value in row] for row in product])


def _integers(values: Exact) -> tuple[Exact, int]:
    unit = lcm(*(value.denominator for value in values.reshape(-1)))
    return _exact([[int(value * unit) for value in row] for row in values]), unit


def _exact(values: Sequence[Any]) -> Exact:
    return np.array(values, dtype=object)


def _identity(size: int) -> Exact:
    return _exact([[Fraction(int(i == j)) for j in range(size)] for i in range(size)])


def _fractions(values: Extended) -> Exact:
    flat = _exact([as_fraction(value) for value in values.reshape(-1)])
    return np.asarray(flat.reshape(values.shape))


def _nearest(values: Exact) -> Extended:
    return np.asarray(extended(list(values.reshape(-1))).reshape(values.shape))
