"""Kernels: the Bellman operator of a chain on polynomials of degree ≤ 2, and on bounds of their error.

Write every expression as f(x) = m + g·y ± fuzz on |y| ≤ R. Applied to W_t(y) = V_t + b_t·y + yᵀH_t y the
right-hand side of row s is

    [r + Σ w m V_t]  +  y·[Σ w (m b_t + g V_t)]  +  yᵀ[Σ w (m H_t + sym g⊗b_t)]y  +  Σ w (g·y)(yᵀH_t y)

The last, cubic term is at most R³·‖sym Σ w g⊗H_t‖ (Frobenius) on the ball, as |T(y,y,y)| ≤ ‖T‖·|y|³; the
norm of the symmetric part of T_ijk = Σ w g_i H_jk follows from ‖sym T‖² = ⅓‖T‖² + ⅔ Σ T_ijk T_jik. In
first order (b alone) the quadratic term Σ w g⊗b_t is what is left over.

`defect[s]` bounds the difference between that right-hand side, for the exact expressions, and W_s on the
ball: what is left over, the residual of the lower terms (0 where the row was just solved), and everything
that was rounded or is fuzzy. With size_t ≥ |V_t| + R‖b_t‖ + R²‖H_t‖ ≥ |W_t| a row of k entries in n
dimensions rounds by at most γ(2k + 2n + 24)·(|r| + Σ w(|m| + R‖g‖) size_t + size_s): every product above has
at most that many roundings, weights are off by 8 units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

_UNIT = 2.0**-52
_SPARE = 1.0 + 1e-10
_TINY = 1e-290


class ChainArrays(NamedTuple):
    """What compiled loops over the rows of a chain take."""

    row_start: OffsetArray
    successor: IndexArray
    expression: IndexArray
    weight: FloatArray
    reward: FloatArray
    reward_error: FloatArray


class Affine(NamedTuple):
    """middle + gradient·y ± fuzz per expression; `steepness` ≥ ‖gradient‖, and 0 exactly where it is."""

    middle: FloatArray
    gradient: FloatArray
    steepness: FloatArray
    fuzz: FloatArray
    radius: float


class Polynomials(NamedTuple):
    """One polynomial per row: constant [N], slope [N, n], curvature [N, n, n] (symmetric; [N, 0, 0] in first
    order), and size [N] ≥ its absolute value on the ball.
    """

    constant: FloatArray
    slope: FloatArray
    curvature: FloatArray
    size: FloatArray


@kernel
def apply_rows(
    solve: bool,
    rows: ChainArrays,
    affine: Affine,
    source: Polynomials,
    target: Polynomials,
    fixed: BoolArray,
    value: FloatArray,
    defect: FloatArray,
) -> None:
    """Rows in order. `solve`: write the right-hand side's polynomial to `target` (`source` itself, or other
    arrays for a step in time); else compare it with `source`. Fixed rows get their value.
    """
    row_start, successor, expression, weight, reward, reward_error = rows
    middle, gradient, steepness, fuzz, radius = affine
    constant, slope, curvature, size = source
    constant_out, slope_out, curvature_out, size_out = target
    n = slope.shape[1]
    second = curvature.shape[1] == n
    b = np.zeros(n)
    q = np.zeros((n, n))
    t3 = np.zeros((n, n, n))
    for s in range(len(fixed)):
        if fixed[s]:
            constant_out[s] = value[s]
            size_out[s] = abs(value[s])
            defect[s] = 0.0
            for i in range(n):
                slope_out[s, i] = 0.0
                if second:
                    for j in range(n):
                        curvature_out[s, i, j] = 0.0
            continue
        v = reward[s]
        scale = abs(reward[s])
        blurred = 0.0
        for i in range(n):
            b[i] = 0.0
            for j in range(n):
                q[i, j] = 0.0
                if second:
                    for k in range(n):
                        t3[i, j, k] = 0.0
        first, last = row_start[s], row_start[s + 1]
        for entry in range(first, last):
            e = expression[entry]
            t = successor[entry]
            w = weight[entry]
            wm = w * middle[e]
            v += wm * constant[t]
            scale += w * (abs(middle[e]) + radius * steepness[e]) * size[t]
            blurred += w * fuzz[e] * size[t]
            steep = steepness[e] > 0.0
            for i in range(n):
                b[i] += wm * slope[t, i]
                if second:
                    for j in range(n):
                        q[i, j] += wm * curvature[t, i, j]
                if steep:
                    wg = w * gradient[e, i]
                    b[i] += wg * constant[t]
                    for j in range(n):
                        half = 0.5 * wg * slope[t, j]
                        q[i, j] += half
                        q[j, i] += half
                        if second:
                            for k in range(n):
                                t3[i, j, k] += wg * curvature[t, j, k]
        if solve:
            constant_out[s] = v
            flat, bent = 0.0, 0.0
            for i in range(n):
                slope_out[s, i] = b[i]
                flat += b[i] * b[i]
                if second:
                    for j in range(n):
                        even = 0.5 * (q[i, j] + q[j, i])
                        curvature_out[s, i, j] = even
                        bent += even * even
            size_out[s] = (abs(v) + radius * (np.sqrt(flat) + radius * np.sqrt(bent))) * _SPARE
            gap = 0.0
        else:
            flat, bent = 0.0, 0.0
            for i in range(n):
                flat += (b[i] - slope[s, i]) ** 2
                if second:
                    for j in range(n):
                        bent += (q[i, j] - curvature[s, i, j]) ** 2
            gap = abs(v - constant[s]) + radius * (np.sqrt(flat) + radius * np.sqrt(bent))
        square, crossed = 0.0, 0.0
        if second:
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        square += t3[i, j, k] * t3[i, j, k]
                        crossed += t3[i, j, k] * t3[j, i, k]
            # The two may cancel; their rounding is at most 2·n³ units of the first.
            symmetric = max(square + 2.0 * crossed, 0.0) + (8 * n**3 + 64) * _UNIT * square
            left = np.sqrt(symmetric / 3.0) * radius**3
        else:
            for i in range(n):
                for j in range(n):
                    square += q[i, j] * q[i, j]
            left = np.sqrt(square) * radius**2
        rounding = (2 * (last - first) + 2 * n + 24) * _UNIT * (scale + size_out[s])
        defect[s] = (gap + left + rounding + blurred + reward_error[s]) * _SPARE + _TINY


@kernel
def error_rows(
    rows: ChainArrays,
    affine: Affine,
    fixed: BoolArray,
    defect: FloatArray,
    error: FloatArray,
    error_out: FloatArray,
) -> None:
    """defect + Σ w |m| c + R‖Σ w g c‖ + Σ w fuzz c for every row, in order, rounded up: at least defect +
    P(x)c for every x of the ball. In place for chains without a cycle.
    """
    row_start, successor, expression, weight, _, _ = rows
    middle, gradient, steepness, fuzz, radius = affine
    n = gradient.shape[1]
    drift = np.zeros(n)
    for s in range(len(fixed)):
        if fixed[s]:
            error_out[s] = 0.0
            continue
        total = 0.0
        moved = 0.0
        for i in range(n):
            drift[i] = 0.0
        first, last = row_start[s], row_start[s + 1]
        for entry in range(first, last):
            e = expression[entry]
            wc = weight[entry] * error[successor[entry]]
            total += wc * (abs(middle[e]) + fuzz[e])
            if steepness[e] > 0.0:
                moved += wc * steepness[e]
                for i in range(n):
                    drift[i] += wc * gradient[e, i]
        length = 0.0
        for i in range(n):
            length += drift[i] * drift[i]
        units = (last - first + 2 * n + 24) * _UNIT
        bound = total + radius * (np.sqrt(length) + units * moved)
        error_out[s] = (defect[s] + bound) * (1.0 + units) * (1.0 + 1e-12)


@kernel
def visits(
    row_start: OffsetArray,
    successor: IndexArray,
    probability: FloatArray,
    fixed: BoolArray,
    initial: int,
    out: FloatArray,
) -> None:
    """Expected visits of every row from the initial one, in a chain without a cycle."""
    out[initial] = 1.0
    for s in range(len(fixed) - 1, -1, -1):
        if fixed[s] or out[s] == 0.0:
            continue
        for entry in range(row_start[s], row_start[s + 1]):
            t = successor[entry]
            out[t] += out[s] * probability[entry]
