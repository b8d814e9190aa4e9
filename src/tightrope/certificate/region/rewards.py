"""Rewards with parameters: what every choice earns at least, and at most, over the region."""

from __future__ import annotations

import numpy as np

from tightrope.certificate.numbers import RATIONAL
from tightrope.certificate.region.polynomials import Interval, polynomial_range
from tightrope.certificate.region.projection import Bounds
from tightrope.numerics.arrays import FloatArray, OffsetArray


def reward_ends(bounds: Bounds, earned: OffsetArray) -> tuple[FloatArray, FloatArray]:
    """(least, largest) reward of every choice, which earns the polynomial that is named."""
    which, place = np.unique(earned, return_inverse=True)
    ends = [_range(bounds, e) for e in which.tolist()]
    least = RATIONAL.down(RATIONAL.array([low for low, _ in ends]))
    return least[place], RATIONAL.up(RATIONAL.array([high for _, high in ends]))[place]


def _range(bounds: Bounds, expression: int) -> Interval:
    """The ends of a polynomial that is no probability: its range over the boxes, and what bases prove."""
    polynomial, domain = bounds.polynomials[expression], bounds.space.domain
    low, high = polynomial_range(polynomial, domain.lower, domain.upper, True)
    if bounds.box is not None:
        least, most = polynomial_range(bounds.space.in_free(polynomial), *bounds.box, True)
        low, high = max(low, least), min(high, most)
    low = max(low, bounds.bases.get((expression, 0), low))
    high = min(high, bounds.bases.get((expression, 1), high))
    return min(low, high), max(low, high)
