"""Where parameters may stand: in probabilities, so that a polynomial or a quotient of polynomials
results, and in rewards, so that a polynomial does.

The check is static: sums, differences, products, natural powers, division (in rewards by what has no
parameter), and conditionals on what has none. Powers with an exponent that depends on the state
are left to the explorer.
"""

from __future__ import annotations

from collections.abc import Collection

from tightrope.prism.expand.traverse import children, names
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Binary, Call, Conditional, Expression, Literal, Name, Unary


def refuse_parameters(expression: Expression, parameters: Collection[str], where: str) -> None:
    """Complain about a parameter in a place that must not depend on one."""
    if not parameters:
        return
    for name in names(expression):
        if name.name in parameters:
            raise Complaint(
                f"parameter '{name.name}' may not occur in {where}: only probabilities and "
                "rewards depend on parameters",
                name.position,
                f"'{name.name}' is a parameter because it has no value; "
                f'`const={{"{name.name}": …}}` gives it one',
            )


def check_polynomial(
    expression: Expression, parameters: Collection[str], what: str, quotients: bool = False
) -> None:
    """Complain unless the expression is a polynomial in the parameters, whatever the state; `quotients` of
    polynomials may be allowed, too.
    """
    if parameters:
        _Check(frozenset(parameters), what, quotients).polynomial(expression)


class _Check:
    def __init__(self, parameters: frozenset[str], what: str, quotients: bool):
        self.parameters = parameters
        self.what = what
        self.quotients = quotients

    def polynomial(self, expression: Expression) -> bool:
        """Whether the expression has parameters at all, if it is a polynomial in them."""
        if isinstance(expression, Name):
            return expression.name in self.parameters
        inside = [self.polynomial(child) for child in children(expression)]
        if not any(inside):
            return False
        if isinstance(expression, Unary) and expression.operator == "-":
            return True
        if isinstance(expression, Binary) and expression.operator in "+-*":
            return True
        if (
            isinstance(expression, Binary)
            and expression.operator == "/"
            and (self.quotients or not inside[1])
        ):
            return True
        if isinstance(expression, Conditional) and not inside[0]:
            return True
        if isinstance(expression, Call) and expression.function == "pow" and not inside[1]:
            return self._natural(expression)
        raise self._complaint(expression, inside)

    def _natural(self, power: Call) -> bool:
        exponent = power.arguments[1]
        if isinstance(exponent, Literal) and (exponent.value < 0 or exponent.value != int(exponent.value)):
            raise Complaint(
                f"{self.what} is not {self._wanted}: the exponent {exponent.value} is not a natural number",
                position_of(exponent),
            )
        return True

    def _complaint(self, expression: Expression, inside: list[bool]) -> Complaint:
        culprit = children(expression)[inside.index(True)]
        if isinstance(expression, Conditional):
            reason = "a condition depends on a parameter"
        elif isinstance(expression, Call):
            reason = f"{expression.function}(…) of a parameter"
        else:
            assert isinstance(expression, Unary | Binary)
            reason = f"'{expression.operator}' of a parameter"
            if expression.operator == "/":
                culprit, reason = children(expression)[1], "division by a parameter"
        also = "" if self.quotients else "quotients and "
        return Complaint(
            f"{self.what} is not {self._wanted} in the parameters: {reason}",
            position_of(culprit),
            f"{also}case distinctions over parameters are not supported here",
        )

    @property
    def _wanted(self) -> str:
        return "a polynomial or a quotient of polynomials" if self.quotients else "a polynomial"
