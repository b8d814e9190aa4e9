"""A small face of HiGHS for linear programs over a box with rows a·x ≤ b, and what makes its answers safe.

HiGHS works in floating point with tolerances: neither its optimal value nor its "infeasible" is a proof.
Both come with multipliers λ ≥ 0 of the rows, and these prove something whatever their accuracy. For every
x in the box with A·x ≤ b,

    g·x = λ·(A·x) + (g − Aᵀλ)·x  ≤  λ·b + max over the box of (g − Aᵀλ)·x          (weak duality)

`dual_bounds` evaluates the right-hand side with a running error bound: a rigorous upper bound on the
maximum of g·x, equal to the optimum up to rounding when λ is optimal. With g = 0 a negative right-hand
side proves that no such x exists (`proves_empty`): that is Farkas' lemma with rounding accounted for.
Leaving rows out keeps both statements true.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import error_factor, largest_over_box, product_error, up


class LinearStatus(Enum):
    """What HiGHS says; a claim, not a proof."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@dataclass(frozen=True)
class LinearOutcome:
    """A claimed optimum (`point`) or infeasibility, with non-negative multipliers of the rows for the
    proof.
    """

    status: LinearStatus
    point: FloatArray
    multipliers: FloatArray


class LinearProgram:
    """max g·x over lower ≤ x ≤ upper and rows a·x ≤ b, for many g; rows may be added, bases are kept."""

    def __init__(self, lower: FloatArray, upper: FloatArray):
        import highspy

        self._highspy: Any = highspy  # its stubs know less than the package
        self._size = len(lower)
        self._rows = 0
        self._solver = self._highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("threads", 1),
            ("primal_feasibility_tolerance", 1e-9),
            ("dual_feasibility_tolerance", 1e-9),
        ):
            self._solver.setOptionValue(option, value)
        self._solver.addVars(self._size, np.ascontiguousarray(lower), np.ascontiguousarray(upper))
        self._solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._columns = np.arange(self._size, dtype=np.int32)

    @property
    def rows(self) -> int:
        return self._rows

    def add_rows(self, matrix: FloatArray, bound: FloatArray) -> None:
        """Append the rows matrix·x ≤ bound."""
        count = len(bound)
        if count == 0:
            return
        start = np.arange(0, count * self._size, self._size, dtype=np.int32)
        self._solver.addRows(
            count,
            np.full(count, -self._highspy.kHighsInf),
            np.ascontiguousarray(bound),
            count * self._size,
            start,
            np.tile(self._columns, count),
            np.ascontiguousarray(matrix).ravel(),
        )
        self._rows += count

    def maximise(self, direction: FloatArray) -> LinearOutcome:
        """One run; `FAILED` where HiGHS stops for another reason than optimality or infeasibility."""
        self._solver.changeColsCost(self._size, self._columns, np.ascontiguousarray(direction))
        self._solver.run()
        status = self._solver.getModelStatus()
        known = self._highspy.HighsModelStatus
        if status == known.kOptimal:
            solution = self._solver.getSolution()
            multipliers = np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0)
            return LinearOutcome(LinearStatus.OPTIMAL, np.array(solution.col_value), multipliers)
        nowhere = np.full(self._size, np.nan)
        if status == known.kInfeasible:
            found = self._solver.getDualRay()
            if found[1]:
                ray = np.maximum(-np.array(found[2], dtype=np.float64), 0.0)
                return LinearOutcome(LinearStatus.INFEASIBLE, nowhere, ray)
            return LinearOutcome(LinearStatus.INFEASIBLE, nowhere, np.zeros(self._rows))
        return LinearOutcome(LinearStatus.FAILED, nowhere, np.zeros(self._rows))


def dual_bounds(
    matrix: FloatArray,
    bound: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    directions: FloatArray,
    multipliers: FloatArray,
) -> FloatArray:
    """Rigorous upper bounds of directions·x over {matrix·x ≤ bound, lower ≤ x ≤ upper}.

    `multipliers` [n, rows] must not be negative; row i serves direction i. Any values are safe, good ones
    are tight.
    """
    reduced = directions - multipliers @ matrix
    slack = product_error(multipliers, matrix) + error_factor(2) * (np.abs(directions) + np.abs(reduced))
    reach = np.maximum(np.abs(lower), np.abs(upper))
    value = multipliers @ bound
    error = product_error(multipliers, bound[:, None])[:, 0]
    error += (slack @ reach) * (1.0 + error_factor(4 + len(reach)))
    return up(up(value + largest_over_box(reduced, lower, upper)) + up(error))


def proves_empty(
    matrix: FloatArray, bound: FloatArray, lower: FloatArray, upper: FloatArray, multipliers: FloatArray
) -> bool:
    """Whether these multipliers prove that no x of the box satisfies matrix·x ≤ bound."""
    if len(multipliers) == 0 or not np.all(np.isfinite(multipliers)):
        return False
    direction = np.zeros((1, len(lower)))
    return bool(dual_bounds(matrix, bound, lower, upper, direction, multipliers[None, :])[0] < 0.0)
