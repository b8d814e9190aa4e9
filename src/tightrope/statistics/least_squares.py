"""Self-normalised least squares: a time-uniform confidence ellipsoid in coordinate space.

‖y* − ŷ‖_V ≤ β = R·√(log(det(V)/λᵈ) + 2·log(1/δ)) + √λ·S at all times with probability at least 1 − δ, R =
1/√2 and S = √d (Abbasi-Yadkori, Pál and Szepesvári 2011). `PAPER` is the published version, without a
guarantee. Errors of `matrix` and `vector` enter `radius`: V ≤ (1 + spectral/λ)·V*. Proof:
docs/proofs/statistics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import error_factor, product_error
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.outcomes import Outcomes


class EllipsoidVersion(Enum):
    """Which constants.

    >>> [one.value for one in EllipsoidVersion]
    ['sound', 'paper']
    """

    SOUND = "sound"
    PAPER = "paper"


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(Record):
    """{ x : ‖(x − origin)/scale − centre‖_matrix ≤ radius }; eigenvalues of `matrix` are at least `floor`."""

    matrix: FloatArray
    centre: FloatArray
    radius: float
    floor: float
    origin: FloatArray
    scale: FloatArray


def least_squares(
    coordinates: Coordinates,
    outcomes: Outcomes,
    seen: OffsetArray,
    delta: float,
    version: EllipsoidVersion = EllipsoidVersion.SOUND,
) -> LeastSquares:
    """The ellipsoid from pooled counts, in these coordinates of the model."""
    size, functions = coordinates.size, coordinates.functions(outcomes.model.expressions)
    if version is EllipsoidVersion.SOUND:
        origin = 0.5 * (coordinates.lower + coordinates.upper)
        scale = np.maximum(coordinates.upper - origin, origin - coordinates.lower) * (1.0 + 1e-15)
        scale = np.maximum(scale, 1e-200)
        noise, ridge, reach = np.sqrt(0.5), 0.1, np.sqrt(float(size))
    else:
        origin, scale = np.zeros(size), np.ones(size)
        noise, ridge, reach = 0.5, 0.01, np.sqrt(float(len(coordinates.parameters)))
    visits = outcomes.visits(seen)[outcomes.signature].astype(np.float64)
    times = outcomes.multiplicity.astype(np.float64)
    expression = outcomes.expression
    slope = functions.linear[expression] * times[:, None] * scale
    level = (functions.constant[expression] + functions.linear[expression] @ origin) * times
    # What a slope or a level may be off by, relative to the whole function on the box.
    extent = np.abs(functions.linear) @ (np.abs(origin) + scale) + np.abs(functions.constant)
    fuzz = (functions.slack + error_factor(size + 6) * extent)[expression] * times
    counted = seen.astype(np.float64)
    largest = np.abs(slope).max(axis=1, initial=0.0)

    gram, gram_error = _sum_products(slope * visits[:, None], slope)
    matrix = ridge * np.eye(size) + gram
    spectral = float(gram_error.sum() + size * (visits * fuzz * (2.0 * largest + fuzz)).sum() * 1.01 + 1e-15)
    if version is EllipsoidVersion.PAPER:  # nothing is guaranteed, so nothing is lost
        spectral = min(spectral, 0.01 * ridge)
    if spectral > 0.25 * ridge:
        raise CannotCertify("the ellipsoid cannot be bounded in float64: there are too many observations")

    target = counted - visits * level
    vector, vector_error = _sum_products(slope, target[:, None])
    vector = vector[:, 0]
    weight = counted + visits * np.abs(level)
    drift = float(vector_error.sum())
    drift += size * float((largest * weight * error_factor(4)).sum()) * 1.01
    drift += size * float((visits * fuzz * (largest + fuzz) + fuzz * np.abs(target)).sum()) * 1.01

    centre = np.linalg.solve(matrix, vector).astype(np.float64)
    residual = np.abs(vector - matrix @ centre) + product_error(matrix, centre[:, None], 2)[:, 0]
    off = float(np.linalg.norm(residual)) + drift + spectral * float(np.linalg.norm(centre))
    sign, log_determinant = np.linalg.slogdet(matrix)
    assert sign > 0
    spare = 2.0 * size * (spectral + 1e-14 * float(np.trace(matrix))) / ridge
    growth = float(log_determinant) - size * np.log(ridge) + spare
    beta = noise * np.sqrt(growth + 2.0 * np.log(1.0 / delta)) + np.sqrt(ridge) * reach
    radius = float((beta + off / np.sqrt(ridge) * 1.01) * np.sqrt(1.0 + spectral / ridge) * (1.0 + 1e-12))
    return LeastSquares(matrix, centre, radius, ridge - spectral, origin, scale)


def _sum_products(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """leftᵀ·right in two levels of √rows summands, and a bound on its error."""
    rows = len(left)
    block = int(np.ceil(np.sqrt(max(rows, 1))))
    padding = block * block - rows
    left = np.pad(left, ((0, padding), (0, 0))).reshape(block, block, -1)
    right = np.pad(right, ((0, padding), (0, 0))).reshape(block, block, -1)
    value: FloatArray = np.einsum("bki,bkj->bij", left, right).sum(axis=0)
    size = np.einsum("bki,bkj->bij", np.abs(left), np.abs(right)).sum(axis=0)
    error: FloatArray = error_factor(2 * block + 8) * size + 1e-300
    return value, error
