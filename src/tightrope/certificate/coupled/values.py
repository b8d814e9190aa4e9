"""What a Taylor model says of the value at the initial state, over the hull of a cell's points Y_k.

*By the polynomial.* With y = Σ μ_k Y_k, W(y) = Σ_kl μ_k μ_l B_kl, B_kl = value + ½ slope·(Y_k + Y_l) +
Y_kᵀ·curve·Y_l: W lies between the least and the largest B_kl, and V within the error of that.

*By an occupancy.* For any weights η of the open states V_0 = η·r + a(y)·V, a(y) = 1_0 − η + γ ηP(y), as V =
r + γPV. With η the expected visits at one of the points, a vanishes there. V = W¹ ± d, W¹ being W up to first
order and d = |curve|·ϱ² + error; so a(y)·V ≥ Σ_kl μ_k μ_l ½[a_k·W¹_l + a_l·W¹_k − |a_k|·d − |a_l|·d].

Both are (1, Y_k)·T·(1, Y_l) with a table T of numbers, up to what is known to be small.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.coupled.models import Ball, Model, Walk, is_tame, rounding
from tightrope.certificate.numbers import RATIONAL, Arithmetic, Numbers, OutOfRange
from tightrope.numerics.arrays import FloatArray

_BLOCK, _BITS = 1 << 20, 200

Ends = tuple[Fraction | float, Fraction | float]
"""(lower, upper); a float is an infinity."""


def polynomial_ends(ball: Ball, model: Model, state: int, points: FloatArray) -> Ends:
    """Bounds of V at a state over the hull of the points."""
    n, size, own = ball.n, ball.size, ball.n.array(model.coefficient[[state]])
    table, (left, right) = n.zeros((size + 1, size + 1)), np.triu_indices(size + 1)
    table[left, right] = own[0]
    doubt = n.array(model.error[[state]])[0]
    if not is_tame(n, own, doubt, ball.radius):
        raise OutOfRange
    slack = doubt + rounding(n, size * size + 40, ball.magnitude(own)[0] + doubt)
    return _bilinear_ends(n, table, n.array(points), 0, slack)


def occupancy_ends(
    walk: Walk, ball: Ball, model: Model, initial: int, points: FloatArray, occupancy: FloatArray
) -> Ends:
    """Bounds of V at the initial state from weights of the open states."""
    n, eta, y = walk.n, walk.n.array(occupancy), walk.n.array(points)
    coefficient, error = n.array(model.coefficient), n.array(model.error)
    visits = np.repeat(eta, np.diff(walk.start)) * walk.weight
    form = n.zeros((len(error), ball.size + 1))
    form[initial, 0] += 1
    form[walk.state, 0] -= eta
    np.add.at(form, walk.successor, visits[:, None] * ball.form[walk.label])
    step = isqrt(len(form)) + 1  # few at a time, so that few roundings lie on the way to the sum
    first = coefficient[:, : ball.size + 1]
    parts = [form[i : i + step].T @ first[i : i + step] for i in range(0, len(form), step)]
    table, earned = np.sum(parts, axis=0), eta * walk.reward
    table[0, 0] += np.sum([earned[i : i + step].sum() for i in range(0, len(earned), step)])
    doubt = ball.largest(coefficient, 2) + error
    blur = total_doubt(n, doubt, form[:, 0], form[:, 1:], y) / 2
    slack: Any = 0
    if not n.exact:
        magnitude, reach = ball.magnitude(coefficient) + error, ball.magnitude(ball.form) + ball.fuzz
        there = np.abs(visits) * magnitude[walk.successor]
        size = magnitude[initial] + (np.abs(eta) * (magnitude[walk.state] + walk.reward_size)).sum()
        size = size + (there * reach[walk.label]).sum()
        if not is_tame(n, eta, magnitude, reach, ball.radius, size):
            raise OutOfRange
        longest = int(np.diff(walk.start).max(initial=1)) + int(np.bincount(walk.successor).max(initial=0))
        operations = longest + step + len(parts) + ball.size**2 + 90
        slack = rounding(n, 2 * operations, size) + 2 * (there * ball.fuzz[walk.label]).sum()
        blur = blur + n.error(4, blur)
    return _bilinear_ends(n, table, y, blur, slack)


def _bilinear_ends(n: Arithmetic, table: Numbers, y: Numbers, blur: Any, slack: Any) -> Ends:
    """Bounds of (1, Y_k)·table·(1, Y_l), up to blur_k + blur_l and the slack, over all pairs of points."""
    half, cross = y @ (table[0, 1:] + table[1:, 0]) / 2, table[1:, 1:]
    low, high = _range_of_pairs(n, half - blur, half + blur, y @ ((cross + cross.T) / 2), y)
    low, high = n.fractions(np.array([table[0, 0] + low - slack, table[0, 0] + high + slack]))
    return low, high


def total_doubt(n: Arithmetic, doubt: Numbers, base: Numbers, along: Numbers, y: Numbers) -> Numbers:
    """Upper bounds of Σ doubt·|base + along·Y_k| over the states, one for every point Y_k; doubt ≥ 0.

    In float64 with its error bound. Of rationals in whole multiples of u = 2^−200, each |base + along·Y_k|
    being off by at most u·(1 + Σ (|along| + |Y| + 1)).
    """
    unsure = doubt > 0
    if not unsure.any():
        return n.zeros(len(y))
    spend("occupancies", np.count_nonzero(unsure) * len(y) * (4 + y.shape[1] // 4), 600 if n.exact else 0)
    doubt, base, along = doubt[unsure], base[unsure], along[unsure]
    widest, largest = (np.abs(part).max(axis=0, initial=0) for part in (along, y))
    if n.exact:
        from tightrope.certificate.coupled.whole import whole_multiples

        unit = RATIONAL.array([Fraction(1, 1 << _BITS)])[0]
        off = unit * (1 + (widest + largest + 1).sum())
        size = off + np.abs(base).max(initial=0) + widest @ largest
        error, scale = off * doubt.sum() + unit * len(base) * size, unit**3
        base = whole_multiples(base, 2 * _BITS)
        doubt, along, y = (whole_multiples(part, _BITS) for part in (doubt, along, y))
    else:
        if not is_tame(n, doubt, base, along, y):
            raise OutOfRange
        scale, error = 1, 2 * rounding(n, y.shape[1] + 8, doubt @ (np.abs(base) + np.abs(along) @ largest))
    step = max(1, _BLOCK // max(len(base), 1))
    parts = [doubt @ np.abs(base[:, None] + along @ y[i : i + step].T) for i in range(0, len(y), step)]
    total: Numbers = n.array(np.concatenate(parts)) * scale + error
    total = total + rounding(n, len(base) + 16, total)
    return total


def _range_of_pairs(
    n: Arithmetic, low_half: Numbers, high_half: Numbers, first: Numbers, second: Numbers
) -> tuple[Any, Any]:
    """Bounds of half_k + half_l + first_k·second_l over all pairs, which are symmetric in k and l.

    There are many, so where numbers are float64 these are doubles with their error bound, and where they
    are rational, whole numbers.
    """
    spend("pairs of points", len(first) ** 2 * (3 + first.shape[1] // 4) * (4 if n.exact else 1))
    if n.exact:
        from tightrope.certificate.coupled.whole import range_of_pairs

        return range_of_pairs(low_half, high_half, first, second)
    sizes = np.maximum(np.abs(low_half), np.abs(high_half))
    size = 2 * sizes.max() + np.abs(first).sum(axis=1).max() * np.abs(second).max()
    error = rounding(n, second.shape[1] + 8, size)
    ends = []
    step = max(1, _BLOCK // len(first))
    for begin in range(0, len(first), step):
        rows = slice(begin, begin + step)
        table = first[rows] @ second[begin:].T
        low = (table + low_half[rows, None] + low_half[begin:]).min()
        ends.append((low, (table + high_half[rows, None] + high_half[begin:]).max()))
    return min(low for low, _ in ends) - error, max(high for _, high in ends) + error
