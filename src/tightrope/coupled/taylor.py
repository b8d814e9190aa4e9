"""Taylor models: the value of a policy, enclosed over a whole set of parameters at once (METHODS §5b).

Let x = centre + axes·y, |y| ≤ R, and P(y) = P₀ + Σ y_j P_j the chain's matrix. The polynomial

    W(y) = V + b·y + yᵀHy,   V = (I−P₀)⁻¹r,  b_j = (I−P₀)⁻¹P_j V,  H_ij = (I−P₀)⁻¹ ½(P_i b_j + P_j b_i)

solves the Bellman equation of every y up to a cubic term (in first order, without H, a quadratic one). Let
`defect` bound that term and all rounding (`tightrope.coupled.rows`), and let c ≥ 0 satisfy

    c(s) ≥ defect(s) + Σ w m c + R‖Σ w g c‖  ≥  defect(s) + (P(y)c)(s)       for all |y| ≤ R.

*Enclosure.* As defect > 0, P(y)c < c with c > 0 on all rows that are not fixed, so the spectral radius of
P(y) is below 1 and (I−P(y))⁻¹ exists and is not negative: the play stops for every parameter of the ball that
is a distribution. And (I−P(y))(W+c−V(y)) = W + c − r − P(y)(W+c) ≥ c − defect − P(y)c ≥ 0, hence V(y) ≤ W +
c, and V(y) ≥ W − c in the same way. Nothing about the solve is trusted: for any V, b, H the residual is part
of the defect, and c is verified.

Only the cubic term is made rectangular, so c is of third order in the size of the set.

Chains without a cycle take one pass; elsewhere one sparse LU factorisation serves 1 + n + n(n+1)/2 right-hand
sides. Step-bounded objectives are as many passes as there are steps, with no equation to solve: there
c is the exact recursion, and needs no argument.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.coupled.chain import Chain
from tightrope.coupled.frame import affine_at
from tightrope.coupled.linear_systems import ErrorSystem, solve_polynomials
from tightrope.coupled.rows import Affine, Polynomials, apply_rows, error_rows
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.statistics.coordinates import AffineFunctions

_ERROR_ROUNDS = 60
_MOST_CURVATURES = 2**28


@dataclass(frozen=True, eq=False)
class TaylorModel:
    """|V_s(x) − (constant_s + slope_s·y + yᵀ curvature_s y)| ≤ error_s for all rows s and all |y| ≤ radius
    with x = centre + axes·y; order 0 is a single point, order 1 has no curvature ([N, 0, 0]).
    """

    centre: FloatArray
    axes: FloatArray
    radius: float
    constant: FloatArray
    slope: FloatArray
    curvature: FloatArray
    error: FloatArray

    @property
    def order(self) -> int:
        if self.slope.shape[1] == 0:
            return 0
        return 1 if self.curvature.shape[1] == 0 else 2

    def at(self, row: int) -> tuple[float, FloatArray, FloatArray]:
        """(constant, slope, curvature) of one row; a curvature of zeros in first order."""
        slope = self.slope[row]
        curvature = self.curvature[row] if self.order == 2 else np.zeros((len(slope), len(slope)))
        return float(self.constant[row]), slope, curvature


def order_for(chain: Chain, axes: FloatArray) -> int:
    """Second order unless the curvatures of all rows would take too much memory."""
    return 2 if chain.rows * axes.shape[1] ** 2 <= _MOST_CURVATURES else 1


def expand(
    chain: Chain,
    functions: AffineFunctions,
    centre: FloatArray,
    axes: FloatArray,
    radius: float,
    order: int = 2,
    spare: float = 0.0,
) -> TaylorModel | None:
    """The model of a ball, or None where no error bound could be verified: a play need not stop for all of
    its parameters, or float64 does not carry the proof. Defects are raised by so many times (`spare`) the
    largest value, for one who checks them with other roundings.
    """
    affine = affine_at(functions, centre, axes, radius)
    size = axes.shape[1]
    bend = size if order >= 2 else 0
    if chain.start is not None:
        error: FloatArray | None = np.zeros(chain.rows)
        polynomials = _constants(chain.start, size, bend)
    else:
        polynomials, error = _equations(chain, affine, size, bend, spare)
    if error is None:
        return None
    for phase in chain.phases:
        for _ in range(phase.steps):
            out = _constants(np.zeros(chain.rows), size, bend)
            defect = _apply(chain, affine, True, polynomials, out, phase.fixed, phase.value)
            error = _error(chain, affine, phase.fixed, defect, error, np.empty(chain.rows))
            polynomials = out
    if not bool(np.all(np.isfinite(error)) and np.all(np.isfinite(polynomials.size))):
        return None
    return TaylorModel(
        centre,
        axes,
        radius,
        polynomials.constant,
        polynomials.slope,
        polynomials.curvature,
        error,
    )


def _equations(
    chain: Chain, affine: Affine, size: int, bend: int, spare: float
) -> tuple[Polynomials, FloatArray | None]:
    """The solution of the equations without a step bound, with its verified error."""
    if chain.acyclic:
        polynomials = _constants(chain.value, size, bend)
        defect = _apply(chain, affine, True, polynomials, polynomials, chain.fixed, chain.value)
        defect += spare * polynomials.size.max(initial=0.0)
        error = np.zeros(chain.rows)
        return polynomials, _error(chain, affine, chain.fixed, defect, error, error)
    system = ErrorSystem.of(chain, affine)
    if system is None:
        return _constants(chain.value, size, bend), None
    polynomials = solve_polynomials(chain, affine, system, bend)
    defect = _apply(chain, affine, False, polynomials, polynomials, chain.fixed, chain.value)
    defect += spare * polynomials.size.max(initial=0.0)
    if not np.all(np.isfinite(defect)):
        return polynomials, None
    return polynomials, _inductive_error(chain, affine, system, defect)


def _inductive_error(
    chain: Chain, affine: Affine, system: ErrorSystem, defect: FloatArray
) -> FloatArray | None:
    """A verified c ≥ defect + max P(y)c. Its limit from below is approached geometrically, so now and then a
    step goes as far as the ratio of the last two steps promises, and a little further.
    """
    # Next to large defects the factorisation cannot resolve tiny ones; raising them costs nothing.
    defect = np.where(chain.fixed, 0.0, np.maximum(defect, 1e-12 * float(defect.max())))
    guess, before = np.zeros(chain.rows), np.zeros(chain.rows)
    for k in range(_ERROR_ROUNDS):
        right = _error(chain, affine, chain.fixed, defect, guess, np.empty(chain.rows))
        if np.all(right <= guess):
            return guess
        better = system.solve(right, guess)
        if better is None:
            return None
        step, last = better - guess, guess - before
        before, guess = guess, better
        if k % 4 == 3:
            moving = last > 1e-12 * better
            ratio = float((step[moving] / last[moving]).max(initial=0.0))
            if ratio < 1.0:
                far = better + np.maximum(step, 0.0) * (ratio / (1.0 - ratio)) * 1.02 + 1e-6 * better
                right = _error(chain, affine, chain.fixed, defect, far, np.empty(chain.rows))
                if np.all(right <= far):
                    return far
    return None


def _apply(
    chain: Chain,
    affine: Affine,
    solve: bool,
    source: Polynomials,
    target: Polynomials,
    fixed: BoolArray,
    value: FloatArray,
) -> FloatArray:
    defect = np.empty(chain.rows)
    apply_rows(solve, chain.arrays, affine, source, target, fixed, value, defect)
    return defect


def _error(
    chain: Chain, affine: Affine, fixed: BoolArray, defect: FloatArray, error: FloatArray, out: FloatArray
) -> FloatArray:
    error_rows(chain.arrays, affine, fixed, defect, error, out)
    return out


def _constants(value: FloatArray, size: int, bend: int) -> Polynomials:
    rows = len(value)
    return Polynomials(
        value.astype(np.float64), np.zeros((rows, size)), np.zeros((rows, bend, bend)), np.abs(value)
    )
