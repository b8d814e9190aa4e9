"""Predictions of the model: logarithms of probabilities at an estimate, rounded down.

Any point of the domain is a sound estimate, as long as it was known before what it predicts.
"""

from __future__ import annotations

import numpy as np

from tightrope.monitoring.best_fit import BestFit
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rounding import UNIT, error_factor

HOPELESS = -1e250
"""Below the logarithm of any positive probability, and finite however often it is added."""


def log_chances(fit: BestFit, point: FloatArray) -> FloatArray | None:
    """A lower bound on log f per expression at the free parameters `point`; None outside the domain."""
    inside, found = log_chances_of(fit, point[None, :])
    return found[0] if inside[0] else None


def log_chances_of(fit: BestFit, points: FloatArray) -> tuple[BoolArray, FloatArray]:
    """The same at many points [n, free]: which of them lie in the domain, and one row for each that does."""
    functions = fit.functions
    inside, x = fit.are_well_inside(points), fit.lift(points)
    size = np.abs(x) @ np.abs(functions.linear).T + np.abs(functions.constant)
    value = x @ functions.linear.T + functions.constant
    value = value - functions.slack - error_factor(3 * x.shape[1] + 6) * size
    if fit.coordinates.denominators:
        value = value - 1.01 * fit.coordinates.reciprocal_error(points)[:, None] * size
    logs = np.log(np.where(value > 0.0, value, 1.0))
    found: FloatArray = np.where(value > 0.0, logs - 4.0 * UNIT * np.abs(logs), HOPELESS)
    found[~inside] = HOPELESS
    return inside, found
