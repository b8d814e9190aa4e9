"""Path formulas as until problems.

With a for `left` and b for `right`, and bounds on the step at which the formula is decided:

* `F b` is `true U b`; `G b` is the complement of `F !b`, with the same bounds;
* `a W b` is the complement of `(a & !b) U (!a & !b)`, and so is `a W<=k b` of the bounded one;
* `a R b` is the complement of `!a U !b`, with the same bounds; `!` is the complement of what follows it;
* `<k` is `<=k-1`, `>k` is `>=k+1`, `=k` is `[k,k]`: time is discrete.

The complement of a maximum is a minimum, so the caller turns both directions round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tightrope.model.objective import ObjectiveKind
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.property_syntax import PathFormula, PathOperator, StepBound
from tightrope.prism.parse.syntax import Expression, Position, Type
from tightrope.prism.properties.shape import check_is_path, first_temporal, is_simple_path, without_negation
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


def path_problem(expression: Expression, formulas: StateFormulas) -> PathProblem:
    """The problem whose value, or whose complement's, is the probability of a simple path formula."""
    check_is_path(expression)
    path, negated = without_negation(expression)
    if isinstance(path, PathFormula) and path.bound is not None and path.bound.reward is not None:
        raise Complaint(
            "bounds on rewards are not supported here", path.position, "`check` and tr.answer take them"
        )
    if not isinstance(path, PathFormula) or not is_simple_path(path):
        raise Complaint(
            "general LTL (temporal operators inside others, or combined) is not supported here",
            first_temporal(expression),
            "`check` and tr.answer take it; elsewhere one of F G U X W R stands over formulas without "
            "temporal operators",
        )
    problem = _problem(path, formulas)
    return replace(problem, complement=not problem.complement) if negated else problem


def _problem(path: PathFormula, formulas: StateFormulas) -> PathProblem:
    right = formulas.states(path.right)
    lower, upper = steps_of(path.bound, formulas, path.position)
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
    if path.operator is PathOperator.RELEASE:
        return PathProblem(ObjectiveKind.UNTIL, ~right, ~left, lower, upper, True)
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


def steps_of(bound: StepBound | None, formulas: StateFormulas, position: Position) -> tuple[int, int | None]:
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
