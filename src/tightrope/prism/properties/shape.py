"""What kind of formula an expression is: about states, about paths, or one operator over simple ones.

A *simple path* is one of X F G U W R over state formulas, or the negation of one: it is an until problem
(`paths`). Any other formula with temporal operators is general LTL. A property is *plain* if it is one P or R
over a simple path or a reward, with state formulas that contain no further operators: it is an `Objective`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tightrope.prism.expand.traverse import children
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.property_syntax import (
    Branching,
    Filter,
    Multi,
    PathFormula,
    PathOperator,
    PropertyFile,
    Quantile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.syntax import Expression, Position, Unary

STATE_OPERATORS = (ValueOperator, Branching, Filter, Multi, Quantile)
"""Operators whose value belongs to a state: what they hold is evaluated on its own."""


def nodes(expression: Expression) -> Iterator[Expression]:
    """The expression and its parts, down to operators, which are not entered."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, PathFormula):
            stack.extend(part for part in (node.right, node.left) if part is not None)
        else:
            stack.extend(reversed(children(node)))


def is_path(expression: Expression) -> bool:
    """Whether it speaks of paths: a temporal operator stands outside of all P, A and E."""
    return any(isinstance(node, PathFormula) for node in nodes(expression))


def has_operators(expression: Expression) -> bool:
    """Whether P, R, A, E or filter is part of it."""
    return any(isinstance(node, STATE_OPERATORS) for node in nodes(expression))


def without_negation(path: Expression) -> tuple[Expression, bool]:
    """What stands behind negations, and whether their number is odd."""
    negated = False
    while isinstance(path, Unary) and path.operator == "!" and is_path(path):
        path, negated = path.operand, not negated
    return path, negated


def is_simple_path(expression: Expression) -> bool:
    """Whether a path formula is an until problem."""
    path, _ = without_negation(expression)
    if not isinstance(path, PathFormula) or (path.bound is not None and path.bound.reward is not None):
        return False
    return not is_path(path.right) and not (path.left is not None and is_path(path.left))


def is_plain(formula: Expression, file: PropertyFile) -> bool:
    """Whether a property is one objective."""
    if not isinstance(formula, ValueOperator) or any(
        has_operators(label.expression) for label in file.labels
    ):
        return False
    path = formula.path
    if formula.condition is not None or formula.tail is not None:
        return False
    if isinstance(path, Expression):
        return is_simple_path(path) and not has_operators(path)
    if path.operator not in (RewardOperator.REACH, RewardOperator.CUMULATIVE, RewardOperator.TOTAL):
        return False
    return path.target is None or not (has_operators(path.target) or is_path(path.target))


def co_safe_path(path: RewardFormula) -> Expression | None:
    """The path until which a reward is added up, where it is more than reaching a state."""
    if path.operator is RewardOperator.CO_SAFE:
        return path.target
    if path.operator is not RewardOperator.REACH or path.target is None or not is_path(path.target):
        return None
    return PathFormula(PathOperator.EVENTUALLY, None, path.target, None, path.position)


def check_is_path(path: Expression, where: str = "the brackets") -> None:
    """Complain about a state formula where a path formula is wanted."""
    if not is_path(path):
        raise Complaint(
            f"a path formula is wanted between {where}, not a state formula alone",
            position_of(path),
            "to reach such a state, write  F …; to stay in such states,  G …",
        )


def first_temporal(expression: Expression) -> Position | None:
    """Where the first temporal operator inside stands."""
    return next((node.position for node in nodes(expression) if isinstance(node, PathFormula)), None)
