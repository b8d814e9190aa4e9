"""What a Taylor model says of the value at the initial state, over the hull of a cell's points Y_k.

*By the polynomial.* With y = Σ μ_k Y_k, W(y) = Σ_kl μ_k μ_l B_kl, B_kl = value + ½ slope·(Y_k + Y_l) +
Y_kᵀ·curve·Y_l: W lies between the least and the largest B_kl, and V within the error of that.

*By an occupancy.* For any weights η of the open states V_0 = η·r + a(y)·V, a(y) = 1_0 − η + γ ηP(y), as V =
r + γPV. With η the expected visits at one of the points, a vanishes there. V = W¹ ± d, W¹ being W up to first
order and d = |curve|·ϱ² + error; so a(y)·V ≥ Σ_kl μ_k μ_l ½[a_k·W¹_l + a_l·W¹_k − |a_k|·d − |a_l|·d].
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.certificate.coupled.models import Frame, Model, Walk, multiplicity
from tightrope.certificate.numbers import Arithmetic, Numbers, OutOfRange
from tightrope.numerics.arrays import FloatArray

_BLOCK = 1 << 20

Ends = tuple[Fraction | float, Fraction | float]
"""(lower, upper); a float is an infinity."""


def polynomial_ends(n: Arithmetic, model: Model, state: int, points: FloatArray, radius: Any) -> Ends:
    """Bounds of V at a state over the hull of the points."""
    y, size = n.array(points), points.shape[1]
    left, right = np.triu_indices(size)
    square = n.zeros((size, size))
    square[left, right] = model.curve[state]
    square[right, left] = model.curve[state]
    half = (y @ model.slope[state]) / 2
    slack = model.error[state] + (size * size + 40) * n.epsilon * model.magnitude(radius)[state]
    return _ends(n, model.value[state], _range_of_pairs(n, half, half, y @ square, y), slack)


def occupancy_ends(
    walk: Walk, frame: Frame, model: Model, initial: int, points: FloatArray, occupancy: FloatArray
) -> Ends:
    """Bounds of V at the initial state from weights of the open states."""
    n, eta, y = walk.n, walk.n.array(occupancy), walk.n.array(points)
    visits = np.repeat(eta, np.diff(walk.start)) * walk.weight * walk.discount
    base, along = n.zeros(len(model.value)), n.zeros((len(model.value), frame.size))
    base[initial] += 1
    base[walk.state] -= eta
    np.add.at(base, walk.successor, visits * frame.middle[walk.label])
    np.add.at(along, walk.successor, visits[:, None] * frame.slope[walk.label])
    # a_k·W¹_l = base·value + (along·Y_k)·value + base·(slope·Y_l) + (along·Y_k)·(slope·Y_l)
    start = (eta * walk.reward).sum() + (base * model.value).sum()
    half = (y @ (along.T @ model.value + base @ model.slope)) / 2
    cross = along.T @ model.slope
    doubt = n.root_up((model.curve * model.curve * multiplicity(frame.size)).sum(axis=1))
    doubt = doubt * frame.radius * frame.radius + model.error
    blur = total_doubt(n, doubt, base, along, y) / 2 * (1 + (len(base) + 100) * n.epsilon)
    pairs = _range_of_pairs(n, half - blur, half + blur, y @ ((cross + cross.T) / 2), y)
    magnitude = model.magnitude(frame.radius)
    there = magnitude[walk.successor]
    moved = (np.abs(visits) * frame.reach()[walk.label] * there).sum()
    size = magnitude[initial] + (np.abs(eta) * (magnitude[walk.state] + walk.reward_size)).sum() + moved
    terms = len(walk.weight) + len(magnitude) + frame.size**2 + 100
    slack = 2 * terms * n.epsilon * size + 2 * (np.abs(visits) * frame.fuzz[walk.label] * there).sum()
    return _ends(n, start, pairs, slack)


def total_doubt(n: Arithmetic, doubt: Numbers, base: Numbers, along: Numbers, y: Numbers) -> Numbers:
    """Upper bounds of Σ doubt·|base + along·Y_k| over the states, one for every point Y_k; doubt ≥ 0.

    States times points are many, so where numbers are longdouble these are doubles with their error bound,
    and where they are rational, whole numbers.
    """
    unsure = doubt > 0
    doubt, base, along = doubt[unsure], base[unsure], along[unsure]
    if n.exact:
        from tightrope.certificate.coupled import whole

        return whole.total_doubt(doubt, base, along, y)
    doubt, base, along, y = map(n.floats, (doubt, base, along, y))
    if not max(np.abs(part).max(initial=0.0) for part in (doubt, base, along, y)) < 1e60:
        raise OutOfRange  # what is too small for a double shall stay small
    size = np.abs(base) + np.abs(along) @ np.abs(y).max(axis=0, initial=0.0)
    error = (y.shape[1] + 8) * 2.0**-52 * (doubt @ size) + len(base) * 1e-200
    step = max(1, _BLOCK // max(len(base), 1))
    parts = [doubt @ np.abs(base[:, None] + along @ y[i : i + step].T) for i in range(0, len(y), step)]
    slack = 1 + (len(base) + y.shape[1] + 100) * 2.0**-52
    total: Numbers = n.array(np.concatenate(parts) + error) * slack
    return total


def _ends(n: Arithmetic, start: Any, pairs: tuple[Any, Any], slack: Any) -> Ends:
    low, high = n.fractions(np.array([start + pairs[0] - slack, start + pairs[1] + slack]))
    return low, high


def _range_of_pairs(
    n: Arithmetic, low_half: Numbers, high_half: Numbers, first: Numbers, second: Numbers
) -> tuple[Any, Any]:
    """Bounds of half_k + half_l + first_k·second_l over all pairs, which are symmetric in k and l.

    There are many, so where numbers are longdouble these are doubles with their error bound, and where they
    are rational, whole numbers.
    """
    if n.exact:
        from tightrope.certificate.coupled import whole

        return whole.range_of_pairs(low_half, high_half, first, second)
    sizes = np.maximum(np.abs(low_half), np.abs(high_half))
    size = 2 * sizes.max() + np.abs(first).sum(axis=1).max() * np.abs(second).max()
    error = (second.shape[1] + 8) * 2.0**-52 * size
    low_half, high_half, first, second = map(n.floats, (low_half, high_half, first, second))
    ends = []
    step = max(1, _BLOCK // len(first))
    for begin in range(0, len(first), step):
        rows = slice(begin, begin + step)
        table = first[rows] @ second[begin:].T
        low = (table + low_half[rows, None] + low_half[begin:]).min()
        ends.append((low, (table + high_half[rows, None] + high_half[begin:]).max()))
    return min(low for low, _ in ends) - error, max(high for _, high in ends) + error
