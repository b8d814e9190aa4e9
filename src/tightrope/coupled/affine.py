"""The expressions of a chain around a centre: f(x) = middle + gradient·y ± fuzz where x = centre + axes·y.

`centre` and `axes` are float64 numbers and x = centre + axes·y holds exactly by definition. `fuzz` covers the
slack of the coordinates' float image and the rounding of middle and gradient for all |y| ≤ radius.
"""

from __future__ import annotations

import numpy as np

from tightrope.coupled.rows import Affine
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import error_factor
from tightrope.statistics.coordinates import AffineFunctions


def affine_at(functions: AffineFunctions, centre: FloatArray, axes: FloatArray, radius: float) -> Affine:
    """The functions in y; `axes` may have no column at all: then everything is a number."""
    middle = functions.constant + functions.linear @ centre
    gradient = np.ascontiguousarray(functions.linear @ axes)
    steepness = np.linalg.norm(gradient, axis=1) * (1.0 + 1e-12)
    steepness = np.maximum(steepness, np.abs(gradient).max(axis=1, initial=0.0))  # where squares underflow
    terms = error_factor(len(centre) + 4)
    extent = np.abs(functions.constant) + np.abs(functions.linear) @ np.abs(centre)
    swing = np.linalg.norm(np.abs(functions.linear) @ np.abs(axes), axis=1) * radius
    fuzz = (functions.slack + terms * (extent + swing)) * (1.0 + 1e-9)
    return Affine(middle, gradient, steepness, fuzz, radius)
