"""Projections of a region: safe bounds on every expression and on every parameter.

P_Λ: for each expression the least and largest value over the region (paper, Section 3.1). Where the region
was built from event intervals the result is also cut with these, which changes nothing but rounding and
keeps the inclusion P_I ⊇ P_Λ exact. P_Θ: the box of the parameters, and the range of every expression over
it.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.parameters import Parameters
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.remember import remember
from tightrope.numerics.rounding import down, up
from tightrope.regions.region import Region
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.events import constant_values


def function_bounds(region: Region, functions: AffineFunctions) -> tuple[FloatArray, FloatArray]:
    """Safe bounds of affine functions over the region."""
    lower, upper = region.support(functions.linear)
    return (
        down(down(lower + functions.constant) - functions.slack),
        up(up(upper + functions.constant) + functions.slack),
    )


def expression_bounds(
    region: Region,
    expressions: Expressions,
    within: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Bounds on every expression of the table, within [0, 1] and within the given bounds.

    Each expression and its complement 1 − f are projected once.
    """
    functions = region.coordinates.functions(expressions)
    lower, upper = np.zeros(len(expressions)), np.ones(len(expressions))
    complement = expressions.complement
    number = np.arange(len(expressions))
    first = (complement < 0) | (number <= complement)
    index = np.flatnonzero(first & ~expressions.is_constant)
    low, high = function_bounds(region, functions.take(index))
    lower[index], upper[index] = np.maximum(low, 0.0), np.minimum(high, 1.0)
    second = np.flatnonzero(~first & ~expressions.is_constant)
    lower[second] = np.maximum(down(1.0 - upper[complement[second]]), 0.0)
    upper[second] = np.minimum(up(1.0 - lower[complement[second]]), 1.0)
    constant, value_lower, value_upper = constant_values(expressions)
    lower[constant], upper[constant] = value_lower, value_upper
    if within is not None:
        lower, upper = np.maximum(lower, within[0]), np.minimum(upper, within[1])
    return lower, upper


def parameter_box(region: Region) -> tuple[FloatArray, FloatArray]:
    """Safe bounds on every original parameter, eliminated ones included."""
    functions = region.coordinates.parameter_functions()
    lower, upper = function_bounds(region, functions)
    domain_lower, domain_upper = domain_box(region.coordinates.parameters)
    return np.maximum(lower, domain_lower), np.minimum(upper, domain_upper)


@remember
def domain_box(parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """The box of the domain, rounded outward."""
    lower, upper = (RationalArray.from_fractions(ends) for ends in (parameters.lower, parameters.upper))
    return lower.to_float_down(), upper.to_float_up()
