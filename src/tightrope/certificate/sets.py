"""The sets of a certificate as boxes: bounds on every transition, read safely.

* interval: as written. Bounds whose sums miss 1 by rounding are read as reaching it.
* plain: every double stands for a probability within p·(1 ± (k+2)·2⁻⁵²), k the choice's successors: the
  nearest double of an exact number is, and so are rows whose sum was brought to 1.
* point: the expressions are evaluated here, in rationals, at the point; the box is the double nearest to
  each value with the same margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.certificate.certificate import Problem
from tightrope.certificate.inner import Box
from tightrope.certificate.shape import Check
from tightrope.numerics.arrays import FloatArray


def box_of(problem: Problem) -> Box:
    if problem.sets == "interval":
        assert problem.lower is not None and problem.upper is not None
        lower = problem.lower.astype(np.longdouble)
        upper = problem.upper.astype(np.longdouble)
    else:
        nearest = nearest_probabilities(problem).astype(np.longdouble)
        width = np.diff(problem.transition_start)
        margin = np.repeat((width + 2) * np.longdouble(2.0**-52), width)
        lower, upper = nearest * (1 - margin), np.minimum(nearest * (1 + margin), 1)
    return Box(problem.transition_start, problem.successor, lower, upper)


def proper_sets(box: Box) -> Check:
    """Every choice has a distribution within its bounds: 0 ≤ lower ≤ upper ≤ 1, Σ lower ≤ 1 ≤ Σ upper."""
    wrong = ~((box.lower >= 0) & (box.lower <= box.upper) & (box.upper <= 1))
    starts = box.transition_start[:-1]
    bad = np.logical_or.reduceat(wrong, starts)
    tolerance = (np.diff(box.transition_start) + 2) * 2.0**-52
    bad |= np.add.reduceat(box.lower, starts) > 1 + tolerance
    bad |= np.add.reduceat(box.upper, starts) < 1 - tolerance
    name = "the sets are sets of distributions"
    if bad.any():
        return Check(name, False, f"fails at {int(bad.sum())} choices, first at choice {int(np.argmax(bad))}")
    return Check(name, True, f"at all {len(bad)} choices")


def nearest_probabilities(problem: Problem) -> FloatArray:
    if problem.sets == "plain":
        assert problem.probability is not None
        return problem.probability
    assert problem.expression is not None and problem.expressions is not None
    values = exact_values(problem.expressions)
    return np.array([float(value) for value in values])[problem.expression]


def exact_values(expressions: Mapping[str, Any]) -> list[Fraction]:
    """Every expression at the point: rows of [monomial, "coefficient"], monomials of [parameter, power]."""
    theta = [Fraction(value) for value in expressions["theta"]]
    monomials = []
    for monomial in expressions["monomials"]:
        value = Fraction(1)
        for parameter, exponent in monomial:
            value *= theta[parameter] ** exponent
        monomials.append(value)
    return [
        sum((Fraction(coefficient) * monomials[m] for m, coefficient in row), Fraction(0))
        for row in expressions["rows"]
    ]
