"""Taylor models: the value of a policy, enclosed over a set of parameters.

W(y) = V + b·y + yᵀHy solves the Bellman equation of every y up to a cubic term. An error bound c ≥ defect +
P(y)c for all |y| ≤ R, verified, proves that the play stops and that the value lies within W ± c. Gradients
are plain float64 and enter no bound. Proof: docs/proofs/values.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.coupled.cells import affine_at
from tightrope.coupled.chain import Affine, Chain, Polynomials, apply_rows, chain_of, error_rows
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.late import linalg, sparse
from tightrope.statistics.coordinates import AffineFunctions
from tightrope_check.search.value_slopes import Matrix, SolvedEquations

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import SuperLU

_ERROR_ROUNDS = 60
_MOST_CURVATURES = 2**28


@dataclass(frozen=True, eq=False)
class TaylorModel:
    """|V_s(x) − (constant_s + slope_s·y + yᵀ curvature_s y)| ≤ error_s for all rows s and all |y| ≤ radius
    with x = centre + axes·y; order 0 is a single point, order 1 has no curvature ([N, 0, 0])."""

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
    largest value, for one who checks them with other roundings."""
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
    solved = polynomials.constant, polynomials.slope, polynomials.curvature
    return TaylorModel(centre, axes, radius, *solved, error)


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
    """A verified c ≥ defect + max P(y)c, approached from below, with an extrapolated step in each round."""
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
        step, last, before, guess = better - guess, guess - before, guess, better
        moving = last > 1e-12 * better
        growth = step[moving] / last[moving]
        if k > 2 and growth.size and growth.min() >= 1.0:
            return None  # c ↦ defect + max P(y)c is convex: steps that grow in every row do not end
        ratio = float(growth.max(initial=0.0))
        if ratio < 1.0:
            far = better + np.maximum(step, 0.0) * (ratio / (1.0 - ratio)) * (1.0 + 0.02 * k) + 1e-6 * better
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


_INFLATION = 1.0 + 1e-6
_ROOM = 1e-11


@dataclass(frozen=True, eq=False)
class ErrorSystem:
    """I − P₀ on the rows that are not fixed, factored; `matrix` is P₀ from these rows to all."""

    free: OffsetArray
    matrix: csr_array
    factor: SuperLU

    @staticmethod
    def of(chain: Chain, affine: Affine) -> ErrorSystem | None:
        """None where the matrix is singular in float64."""
        free = np.flatnonzero(~chain.fixed)
        matrix = build_matrix(chain, chain.weight * affine.middle[chain.expression])[free]
        inner = (sparse.eye_array(len(free), format="csc") - matrix[:, free]).tocsc()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return ErrorSystem(free, matrix, linalg.splu(inner))
            except (RuntimeError, Warning):
                return None

    def values(self, right: FloatArray) -> FloatArray:
        """(I − P₀)⁻¹ right, with one step of refinement; right [free, …]."""
        solution: FloatArray = self.factor.solve(right)
        inner = self.matrix[:, self.free]
        solution += self.factor.solve(right - solution + inner @ solution)
        return solution

    def solve(self, right: FloatArray, guess: FloatArray) -> FloatArray | None:
        """The next candidate for c ≥ F(c), a little inflated, with room for the rounding of the check."""
        known = right[self.free] - self.matrix @ guess + _ROOM * guess[self.free]
        solution = self.factor.solve(known) * _INFLATION
        largest = float(solution.max(initial=0.0))
        if not (largest < 1e30 and np.all(solution >= -1e-9 * largest)):
            return None
        solution = np.maximum(solution, known)  # the inverse is at least the identity
        result = np.zeros(len(guess))
        result[self.free] = solution
        return result


def build_matrix(chain: Chain, data: FloatArray) -> csr_array:
    """The entries of the chain as a sparse matrix over all rows."""
    return sparse.csr_array((data, chain.successor, chain.row_start), shape=(chain.rows, chain.rows))


def solve_polynomials(chain: Chain, affine: Affine, system: ErrorSystem, bend: int) -> Polynomials:
    """V, b and H by one solve for each column."""
    free, size = system.free, affine.gradient.shape[1]
    fixed: BoolArray = chain.fixed
    constant = np.where(fixed, chain.value, 0.0)
    constant[free] = system.values(chain.reward[free] + system.matrix @ constant)
    weight = chain.weight
    moves = [build_matrix(chain, weight * affine.gradient[chain.expression, j])[free] for j in range(size)]
    slope = np.zeros((chain.rows, size))
    if size:
        slope[free] = system.values(np.column_stack([move @ constant for move in moves]))
    curvature = np.zeros((chain.rows, bend, bend))
    if bend:
        pairs = [(i, j) for i in range(size) for j in range(i, size)]
        right = np.column_stack([0.5 * (moves[i] @ slope[:, j] + moves[j] @ slope[:, i]) for i, j in pairs])
        solution = system.values(right)
        for column, (i, j) in enumerate(pairs):
            curvature[free, i, j] = curvature[free, j, i] = solution[:, column]
    radius = affine.radius
    extent = np.abs(constant) + radius * np.linalg.norm(slope, axis=1)
    extent += radius**2 * np.linalg.norm(curvature.reshape(chain.rows, -1), axis=1)
    return Polynomials(constant, slope, curvature, extent * (1.0 + 1e-9))


_MOST_STORED = 50_000_000
"""Values kept while a step-bounded objective is unrolled; beyond that it has no gradient."""


@dataclass(frozen=True, eq=False)
class ValueGradient:
    """The value of a fixed policy as a function of coordinates, to first order at any point."""

    chain: Chain
    functions: AffineFunctions
    sign: float

    @staticmethod
    def of(
        model: ParametricMDP, objective: Objective, policy: Policy, functions: AffineFunctions
    ) -> ValueGradient | None:
        """None where the value is infinite, too long to unroll, or of rewards with parameters."""
        if isinstance(objective.reward, ParametricReward):
            return None
        chain = chain_of(model, objective, policy)
        if isinstance(chain, str) or sum(p.steps for p in chain.phases) * chain.rows > _MOST_STORED:
            return None
        return ValueGradient(chain, functions, -1.0 if objective.complement else 1.0)

    def at(self, x: FloatArray) -> FloatArray | None:
        """∂V/∂x of the reported value at coordinates x; None where the equations are singular there."""
        terms = self.terms(x)
        if terms is None:
            return None
        slopes, chain = np.zeros(len(self.functions)), self.chain
        for visits, values in terms:
            each = visits[chain.row_of_entry] * chain.weight * values[chain.successor]
            slopes += np.bincount(chain.expression, weights=each, minlength=len(slopes))
        gradient: FloatArray = self.sign * (slopes @ self.functions.linear)
        return gradient if bool(np.all(np.isfinite(gradient))) else None

    def value(self, x: FloatArray) -> float | None:
        """The reported value at coordinates x, in plain float64; None where the equations are singular."""
        values = self._values(x)[2]
        if values is None:
            return None
        value = float(values[-1][self.chain.initial])
        return 1.0 - value if self.sign < 0.0 else value

    def terms(self, x: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]] | None:
        """What the slope by expressions is a sum of: (visits of every row, values where its entries lead),
        one pair per step of a step-bounded objective and one for the equations; None where these are
        singular at x."""
        matrix, base, values = self._values(x)
        return None if values is None else self._terms(matrix, base, values)

    def _values(self, x: FloatArray) -> tuple[csr_array, SolvedEquations | None, list[FloatArray] | None]:
        """The chain at x, its equations where it has some, and its values after every step."""
        chain, probability = self.chain, self.functions.chances(x)
        matrix = build_matrix(chain, chain.weight * probability[chain.expression])
        base = None if chain.start is not None else _solve(chain, matrix)
        first = chain.start if base is None else base.values
        if first is None:
            return matrix, base, None
        values: list[FloatArray] = [first]
        for phase in chain.phases:
            for _ in range(phase.steps):
                values.append(np.where(phase.fixed, phase.value, chain.reward + matrix @ values[-1]))
        return matrix, base, values

    def _terms(
        self, matrix: csr_array, base: SolvedEquations | None, values: list[FloatArray]
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        chain = self.chain
        weight = np.zeros(chain.rows)
        weight[chain.initial] = 1.0
        step = len(values) - 1
        transposed = matrix.T.tocsr() if chain.phases else None
        for phase in reversed(chain.phases):
            for _ in range(phase.steps):
                step -= 1
                weight = np.where(phase.fixed, 0.0, weight)
                yield weight, values[step]
                assert transposed is not None
                weight = transposed @ weight
        if base is not None:
            yield base.visits(weight), values[0]


def _solve(chain: Chain, matrix: csr_array) -> SolvedEquations | None:
    known, entries = np.where(chain.fixed, chain.value, 0.0), matrix.tocoo()
    rows = Matrix(entries.row, entries.col, entries.data, chain.rows)
    return SolvedEquations.of(rows, chain.reward, known, np.flatnonzero(~chain.fixed), chain.acyclic)
