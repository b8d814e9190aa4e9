"""Smoothed maximum likelihood inside the domain (`tightrope_check.search.smoothed_likelihood`).

The estimate stays strictly inside the domain, so that no possible outcome gets probability 0 (an expression
that is non-negative on the domain vanishes only on its boundary, up to degenerate polynomials). Where it ends
up matters for width only: any point of the domain is a sound plug-in.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.model.polynomial import Polynomial
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.linear_program import Block, find_blocks
from tightrope.numerics.record import remember
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope_check.search.smoothed_likelihood import SmoothedLikelihood


@dataclass(frozen=True, eq=False)
class LikelihoodMaximiser:
    """Finds estimates as free parameters t [len(free)]; lifted coordinates follow from them."""

    coordinates: Coordinates
    functions: AffineFunctions

    @staticmethod
    @remember
    def of(coordinates: Coordinates, functions: AffineFunctions) -> LikelihoodMaximiser:
        """The one maximiser of these coordinates; it looks for its start once."""
        return LikelihoodMaximiser(coordinates, functions)

    @cached_property
    def faces(self) -> tuple[FloatArray, FloatArray]:
        """Rows a·t ≤ b of the domain in the free parameters, box included."""
        size = len(self.coordinates.free)
        matrix, bound, _ = self.coordinates.domain_rows()
        eye = np.eye(size)
        rows = np.concatenate([matrix[:, :size], eye, -eye])
        bounds = np.concatenate([bound, self.coordinates.upper[:size], -self.coordinates.lower[:size]])
        return rows, bounds

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Free parameters that neither expressions nor faces link; () where they do not fall apart."""
        if self.coordinates.is_lifted:
            return ()
        return find_blocks(self.functions.linear, self.faces[0])

    @cached_property
    def parts(self) -> tuple[SmoothedLikelihood, ...]:
        """The search of each block."""
        linear, constant, (faces, bounds) = self.functions.linear, self.functions.constant, self.faces
        return tuple(
            SmoothedLikelihood((), linear[np.ix_(f, own)], constant[f], faces[np.ix_(r, own)], bounds[r])
            for own, (f, r) in ((block.columns, block.rows) for block in self.blocks)
        )

    @cached_property
    def start(self) -> FloatArray:
        """The analytic centre of the domain."""
        if self.blocks:
            middle = 0.5 * (self.coordinates.lower + self.coordinates.upper)
            for block, part in zip(self.blocks, self.parts, strict=True):
                own = block.columns
                low = self.coordinates.lower[own]
                middle[own] = part.interior(low + (middle[own] - low) * (2.0 / (len(own) + 1)))
            return self.estimate(np.zeros(len(self.functions)), middle)
        from tightrope.numerics.linear_program import LinearProgram, LinearStatus

        rows, bounds = self.faces
        size = rows.shape[1]
        norm = np.abs(rows).sum(axis=1)
        reach = float(np.abs(bounds).max(initial=1.0)) + 1.0
        program = LinearProgram(np.full(size + 1, -reach), np.full(size + 1, reach))
        program.add_rows(np.column_stack([rows, norm]), bounds)
        outcome = program.maximise(np.append(np.zeros(size), 1.0))
        middle = 0.5 * (self.coordinates.lower + self.coordinates.upper)[:size]
        deep = outcome.point[:-1] if outcome.status is LinearStatus.OPTIMAL else middle
        if np.all(rows @ deep < bounds):
            return self.estimate(np.zeros(len(self.functions)), deep)
        return deep

    def is_inside(self, t: FloatArray) -> bool:
        """Whether the exact point with these free parameters lies in the domain."""
        exact = [Fraction(float(value)) for value in t]
        theta = [polynomial.evaluate(exact) for polynomial in self.coordinates.substitution]
        return self.coordinates.parameters.contains(theta)

    def lifted(self, t: FloatArray) -> FloatArray:
        """All coordinates at the free parameters t, in plain float64."""
        return self.search.lifted(t)[0]

    def estimate(self, weight: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """The smoothed estimate for weights K_f (one per expression of the table)."""
        begin = self.start if start is None else start
        if not self.blocks:
            return self.search.maximise(begin, weight)
        result = begin.copy()
        for block, part in zip(self.blocks, self.parts, strict=True):
            result[block.columns] = part.maximise(begin[block.columns], weight[block.rows[0]])
        return result

    @cached_property
    def search(self) -> SmoothedLikelihood:
        linear, constant = self.functions.linear, self.functions.constant
        terms = [_terms(g, len(self.coordinates.free)) for g in self.coordinates.denominators]
        return SmoothedLikelihood(self.coordinates.products, linear, constant, *self.faces, terms)

    def smoothing_at(self, t: FloatArray) -> FloatArray:
        """Minus the Hessian of the smoothing at t."""
        return self.search.smoothing(t)

    def jacobian(self, t: FloatArray) -> FloatArray:
        """∂x/∂t at t."""
        return self.search.lifted(t)[1]


def _terms(polynomial: Polynomial, variables: int) -> list[tuple[float, FloatArray]]:
    """Coefficients and exponents, for evaluation in float64."""
    listed: list[tuple[float, FloatArray]] = []
    for monomial, coefficient in polynomial.terms.items():
        exponent = np.zeros(variables)
        for index, power in monomial:
            exponent[index] = power
        listed.append((float(coefficient), exponent))
    return listed
