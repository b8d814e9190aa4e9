"""Predictions of the model: logarithms of probabilities at an estimate, rounded down.

Any point of the domain is a sound estimate, as long as it was known before what it predicts.
"""

from __future__ import annotations

import numpy as np

from tightrope.monitoring.best_fit import BestFit
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import UNIT, error_factor

HOPELESS = -1e250
"""Below the logarithm of any positive probability, and finite however often it is added."""


def log_chances(fit: BestFit, point: FloatArray) -> FloatArray | None:
    """A lower bound on log f per expression at the free parameters `point`; None outside the domain."""
    if not fit.is_well_inside(point):
        return None
    functions, x = fit.functions, fit.maximiser.lifted(point)
    size = np.abs(functions.linear) @ np.abs(x) + np.abs(functions.constant)
    value = functions.linear @ x + functions.constant
    value = value - functions.slack - error_factor(3 * len(x) + 6) * size
    found = np.full(len(value), HOPELESS)
    positive = value > 0.0
    logs = np.log(value[positive])
    found[positive] = logs - 4.0 * UNIT * np.abs(logs)
    return found
