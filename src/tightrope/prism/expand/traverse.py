"""Walking and rebuilding expressions: the one place that knows every node's children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tightrope.prism.parse.syntax import Binary, Call, Conditional, Expression, Name, Unary


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands of an expression, from left to right."""
    if isinstance(expression, Binary):
        return expression.left, expression.right
    if isinstance(expression, Unary):
        return (expression.operand,)
    if isinstance(expression, Conditional):
        return expression.condition, expression.then, expression.otherwise
    if isinstance(expression, Call):
        return expression.arguments
    return ()


def with_children(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    """The same node over other operands; the node itself where they are its own."""
    if all(ours is theirs for ours, theirs in zip(children(expression), new, strict=True)):
        return expression
    if isinstance(expression, Binary):
        return Binary(expression.operator, new[0], new[1], expression.position)
    if isinstance(expression, Unary):
        return Unary(expression.operator, new[0], expression.position)
    if isinstance(expression, Conditional):
        return Conditional(new[0], new[1], new[2], expression.position)
    assert isinstance(expression, Call)
    return Call(expression.function, new, expression.position)


def names(expression: Expression) -> Iterator[Name]:
    """All names in an expression, from left to right, with repetitions."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            yield node
        else:
            stack.extend(reversed(children(node)))


def rename(expression: Expression, renaming: Mapping[str, str]) -> Expression:
    """The expression with names replaced."""
    if isinstance(expression, Name):
        new = renaming.get(expression.name)
        return expression if new is None else Name(new, expression.position)
    return with_children(expression, tuple(rename(child, renaming) for child in children(expression)))
