"""What a Taylor model says of the value at the initial state, over the hull of a cell's points.

*By the polynomial.* A quadratic over a hull of points Y_k is bounded by its Bernstein coefficients: with y =
Σ μ_k Y_k,

    W(y) = Σ_kl μ_k μ_l B_kl,   B_kl = value + ½ slope·(Y_k + Y_l) + Y_kᵀ·curve·Y_l,

so W lies between the least and the largest B_kl, and V within the error of that.

*By an occupancy.* For any weights η of the open states and the true V at any x,

    V_0 = η·r + a(y)·V,   a(y) = 1_0 − η + γ ηP(y),

an identity, as V = r + γPV. With η the expected visits at one of the points, a vanishes there, and the value
at that point bounds the cell where a(y)·V does not change sign. V = W¹ ± d, where W¹ is the part of W up to
first order and d = |curve|·ϱ² + error; so a(y)·V ≥ Σ_kl μ_k μ_l ½[a_k·W¹_l + a_l·W¹_k − |a_k|·d − |a_l|·d]
over points k, l.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tightrope.certificate.old_coupled import Table
from tightrope.certificate.coupled_models import Frame, Model, Walk
from tightrope.certificate.inner import EPSILON, Extended

_BLOCK = 1 << 22

Ends = tuple[Any, Any]
"""(lower, upper), single longdouble numbers."""


def polynomial_ends(model: Model, state: int, points: Table, radius: Any) -> Ends:
    """Bounds of V at a state over the hull of the points."""
    y = points.astype(np.longdouble)
    size = y.shape[1]
    left, right = np.triu_indices(size)
    square = np.zeros((size, size), dtype=np.longdouble)
    square[left, right] = square[right, left] = model.curve[state]
    half = (y @ model.slope[state]) / 2
    low, high = _range_of_pairs(half, y @ square, y)
    magnitude = model.magnitude(radius)[state]
    slack = model.error[state] + (size * size + 30) * EPSILON * magnitude
    return model.value[state] + low - slack, model.value[state] + high + slack


def _range_of_pairs(half: Extended, first: Extended, second: Extended) -> Ends:
    """Bounds of half_k + half_l + first_k·second_l; there are many pairs, so float64 with an error bound."""
    size = 2 * np.abs(half).max() + np.abs(first).sum(axis=1).max() * np.abs(second).max()
    error = (second.shape[1] + 8) * np.longdouble(2.0**-52) * size
    half, first, second = (part.astype(np.float64) for part in (half, first, second))
    low, high = np.inf, -np.inf
    for rows in _blocks(len(half)):
        table = first[rows] @ second.T
        table += half[rows, None]
        table += half
        low, high = min(low, float(table.min())), max(high, float(table.max()))
    return np.longdouble(low) - error, np.longdouble(high) + error


def _blocks(count: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(count, 1))
    for begin in range(0, count, step):
        yield slice(begin, begin + step)


def occupancy_ends(
    walk: Walk, frame: Frame, model: Model, initial: int, points: Table, occupancy: Table
) -> Ends:
    """Bounds of V at the initial state from weights of the open states."""
    eta, y = occupancy.astype(np.longdouble), points.astype(np.longdouble)
    states, size = len(model.value), frame.size
    visits = np.repeat(eta, np.diff(walk.start)) * walk.weight * walk.discount
    base = np.zeros(states, dtype=np.longdouble)
    base[initial] += 1
    base[walk.state] -= eta
    np.add.at(base, walk.successor, visits * frame.middle[walk.expression])
    along = np.zeros((states, size), dtype=np.longdouble)
    np.add.at(along, walk.successor, visits[:, None] * frame.slope[walk.expression])
    # a_k·W¹_l = base·value + (along·Y_k)·value + base·(slope·Y_l) + (along·Y_k)·(slope·Y_l)
    start = (eta * walk.reward).sum() + base @ model.value
    half = (y @ (along.T @ model.value + base @ model.slope)) / 2
    cross = along.T @ model.slope
    first = y @ ((cross + cross.T) / 2)
    blur = _blurs(model, frame, base, along, y) / 2
    low, _ = _range_of_pairs(half - blur, first, y)
    _, high = _range_of_pairs(half + blur, first, y)
    slack = _rounding(walk, frame, model, initial, np.abs(eta), np.abs(visits))
    return start + low - slack, start + high + slack


def _blurs(model: Model, frame: Frame, base: Extended, along: Extended, y: Extended) -> Extended:
    """|a_k|·d at every point."""
    twice = np.where(np.equal(*np.triu_indices(frame.size)), 1, 2)
    doubt = frame.radius**2 * np.sqrt((model.curve**2 * twice).sum(axis=1)) + model.error
    step = max(1, _BLOCK // len(base))
    parts = [
        doubt @ np.abs(base[:, None] + along @ y[begin : begin + step].T) for begin in range(0, len(y), step)
    ]
    result: Extended = np.concatenate(parts) * (1 + np.longdouble(1e-12))
    return result


def _rounding(walk: Walk, frame: Frame, model: Model, initial: int, eta: Extended, visits: Extended) -> Any:
    """What rounding, fuzz and weights that miss 1 may have changed in the sums over all transitions."""
    magnitude = model.magnitude(frame.radius)
    there = magnitude[walk.successor]
    moved = visits * frame.reach()[walk.expression] * there
    mixed = np.repeat(walk.mixed, np.diff(walk.start))
    size = magnitude[initial] + eta @ (magnitude[walk.state] + walk.reward_size) + moved.sum()
    terms = len(walk.weight) + len(magnitude) + frame.size**2 + 40
    slack = terms * EPSILON * size + visits @ (frame.fuzz[walk.expression] * there)
    slack += np.longdouble(2.0**-49) * (moved[mixed].sum() + eta[walk.mixed] @ walk.reward_size[walk.mixed])
    return slack * (1 + np.longdouble(1e-12))
