"""Were the plug-ins of the likelihood region known before the batches they predict?

Ville's inequality needs that. What can be checked is that each plug-in is what the earlier batches alone
determine: the maximum of the smoothed log-likelihood

    Σ K_f·log f(t) + ½·Σ log(room to each face of the domain)

of all batches before it, in free parameters t. `distance` is Newton's decrement there, twice the
log-likelihood that is missing to the maximum (to second order). A small number leaves no room for a
choice made after looking: a plug-in moved that little changes the threshold by about as little.
Plain float64: a sanity check of how the evidence was made, not a link that bounds rest on.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tightrope.certificate.learning import Data
from tightrope.certificate.polynomials import Polynomial, is_constant
from tightrope.certificate.shape import Check
from tightrope.certificate.space import Space
from tightrope.numerics.arrays import FloatArray

FARTHEST = 1e-4


def plug_in_check(data: Data, space: Space, polynomials: Sequence[Polynomial]) -> Check:
    """Every plug-in is close to the smoothed estimate of the batches before it."""
    assert data.batch_counts is not None and data.plug_in is not None
    unknown = [e for e, polynomial in enumerate(polynomials) if not is_constant(polynomial)]
    forms = [space.affine(polynomials[e]) for e in unknown]
    linear = np.array([[float(v) for v in a] for a, _ in forms]).reshape(-1, space.size)
    constant = np.array([float(c) for _, c in forms])
    faces = _faces(space)
    before = np.cumsum(data.batch_counts[:, unknown], axis=0)
    worst = 0.0
    for number, point in enumerate(data.plug_in):
        place = data.pilot + number - 1
        seen = before[place] if place >= 0 else np.zeros(len(unknown))
        worst = max(worst, _distance(space, linear, constant, faces, seen.astype(np.float64), point))
    name = "plug-ins follow from the batches before them"
    return Check(name, worst <= FARTHEST, f"at most {worst:.2g} from the smoothed estimate")


def _faces(space: Space) -> tuple[FloatArray, FloatArray]:
    """Rows a·t ≤ b of the domain in the free parameters."""
    free = len(space.free)
    rows: list[list[Fraction]] = []
    bounds: list[Fraction] = []

    def add(linear: list[Fraction], bound: Fraction) -> None:
        if any(linear[:free]):
            rows.append(linear[:free])
            bounds.append(bound)

    for i in range(space.parameters):
        linear, constant = space.parameter(i)
        add(linear, space.upper[i] - constant)
        add([-a for a in linear], constant - space.lower[i])
    for coefficients, bound, is_equality in space.constraints:
        linear, constant = space.affine({((i, 1),): c for i, c in enumerate(coefficients) if c})
        add(linear, bound - constant)
        if is_equality:
            add([-a for a in linear], constant - bound)
    matrix = np.array([[float(v) for v in row] for row in rows]).reshape(-1, free)
    return matrix, np.array([float(b) for b in bounds])


def _distance(
    space: Space,
    linear: FloatArray,
    constant: FloatArray,
    faces: tuple[FloatArray, FloatArray],
    seen: FloatArray,
    point: FloatArray,
) -> float:
    values = list(point)
    jacobian: list[FloatArray] = list(np.eye(len(point)))
    for left, right in space.products:
        jacobian.append(jacobian[left] * values[right] + jacobian[right] * values[left])
        values.append(values[left] * values[right])
    used = seen > 0
    slope = linear[used] @ np.array(jacobian)
    probability = linear[used] @ np.array(values) + constant[used]
    rows, bounds = faces
    room = bounds - rows @ point
    if np.any(probability <= 0) or np.any(room <= 0):
        return np.inf
    gradient = slope.T @ (seen[used] / probability) - 0.5 * (rows.T @ (1.0 / room))
    bend = (slope * (seen[used] / probability**2)[:, None]).T @ slope
    bend += 0.5 * (rows * (1.0 / room**2)[:, None]).T @ rows
    step = np.linalg.lstsq(bend, gradient, rcond=None)[0]
    return float(gradient @ step)
