"""Path formulas as until problems.

With a for `left` and b for `right`, and bounds on the step at which the formula is decided:

* `F b` is `true U b`; `G b` is the complement of `F !b`, with the same bounds;
* `a W b` is the complement of `(a & !b) U (!a & !b)`, and so is `a W<=k b` of the bounded one;
* `<k` is `<=k-1`, `>k` is `>=k+1`, `=k` is `[k,k]`: time is discrete.

The complement of a maximum is a minimum, so the caller turns both directions round.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.model.objective import ObjectiveKind
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Expression, PathFormula, PathOperator, Position, StepBound, Type
from tightrope.prism.properties.state_formulas import StateFormulas


@dataclass(frozen=True)
class PathProblem:
    """The fields of an `Objective` that a path formula determines."""

    kind: ObjectiveKind
    target: BoolArray
    allowed: BoolArray | None
    lower_steps: int
    upper_steps: int | None
    complement: bool


def path_problem(path: PathFormula, formulas: StateFormulas) -> PathProblem:
    """The problem whose value, or whose complement's, is the probability of a path formula."""
    right = formulas.states(path.right)
    lower, upper = _steps(path.bound, formulas, path.position)
    if path.operator is PathOperator.NEXT:
        return PathProblem(ObjectiveKind.NEXT, right, None, 0, None, False)
    if path.operator is PathOperator.EVENTUALLY:
        return PathProblem(ObjectiveKind.UNTIL, right, None, lower, upper, False)
    if path.operator is PathOperator.GLOBALLY:
        return PathProblem(ObjectiveKind.UNTIL, ~right, None, lower, upper, True)
    assert path.left is not None
    left = formulas.states(path.left)
    if path.operator is PathOperator.UNTIL:
        return PathProblem(ObjectiveKind.UNTIL, right, left, lower, upper, False)
    if lower > 0:
        raise Complaint(
            "W with a lower bound on its steps is not supported",
            path.position,
            "it has no agreed meaning; say it with U and G",
        )
    return PathProblem(ObjectiveKind.UNTIL, ~left & ~right, left & ~right, 0, upper, True)


def whole_steps(expression: Expression, formulas: StateFormulas, is_strict: bool) -> int:
    """An upper bound on steps, inclusive."""
    steps = int(formulas.number(expression, Type.INT, "a step bound")) - is_strict
    if steps < 0:
        raise Complaint(
            f"no step is {'<' if is_strict else '<='} {steps + is_strict}", position_of(expression)
        )
    return steps


def _steps(bound: StepBound | None, formulas: StateFormulas, position: Position) -> tuple[int, int | None]:
    if bound is None:
        return 0, None
    lower, upper = 0, None
    if bound.lower is not None:
        lower = int(formulas.number(bound.lower, Type.INT, "a step bound")) + bound.lower_strict
        if lower - bound.lower_strict < 0:
            raise Complaint("a step bound cannot be negative", position_of(bound.lower))
    if bound.upper is not None:
        upper = whole_steps(bound.upper, formulas, bound.upper_strict)
        if upper < lower:
            raise Complaint(
                f"the step bound [{lower},{upper}] is empty", position_of(bound.upper) or position
            )
    return lower, upper
