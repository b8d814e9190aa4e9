"""One expression, from as written to ready: names written out, types checked, constants folded."""

from __future__ import annotations

from fractions import Fraction

from tightrope.prism.expand.arithmetic import Value
from tightrope.prism.expand.check import Scope, check_type, type_of
from tightrope.prism.expand.constants import Constants
from tightrope.prism.expand.fold import fold, value_of
from tightrope.prism.expand.inline import Inliner
from tightrope.prism.expand.parametric import check_polynomial, refuse_parameters
from tightrope.prism.expand.traverse import names
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Expression, Type


class Expander:
    """Expands the expressions of one file. `what` names the expression in messages."""

    def __init__(self, formulas: Inliner, constants: Constants, scope: Scope):
        self._formulas = formulas
        self._constants = constants
        self._scope = scope

    def plain(self, expression: Expression, type_: Type, what: str, where: str) -> Expression:
        """An expression over the variables, without parameters."""
        expanded = self._expand(expression, type_, what)
        refuse_parameters(expanded, self._constants.parameters, where)
        return expanded

    def polynomial(self, expression: Expression, what: str, quotients: bool = False) -> Expression:
        """An expression over the variables that is a polynomial in the parameters."""
        expanded = self._expand(expression, Type.DOUBLE, what)
        check_polynomial(expanded, self._constants.parameters, what, quotients)
        return expanded

    def constant(self, expression: Expression, type_: Type, what: str, where: str) -> Value:
        """The value of an expression that must not depend on variables."""
        expanded = self.plain(expression, type_, what, where)
        for name in names(expanded):
            raise Complaint(f"{what} must be constant, but depends on variable '{name.name}'", name.position)
        value = value_of(expanded)
        return Fraction(value) if type_ is Type.DOUBLE else value

    def whole(self, expression: Expression, what: str, where: str) -> int:
        """The value of an expression that must be a constant whole number, such as N/2 for an even N."""
        if type_of(self._formulas.inline(expression), self._scope) is not Type.DOUBLE:
            return int(self.constant(expression, Type.INT, what, where))
        value = Fraction(self.constant(expression, Type.DOUBLE, what, where))
        if value.denominator != 1:
            raise Complaint(
                f"{what} must be whole, but this is {value}",
                position_of(expression),
                "floor(…), ceil(…) and round(…) turn a double into an int",
            )
        return int(value)

    def formula(self, expression: Expression) -> Expression:
        """The content of a formula, of whatever type it is."""
        written_out = self._formulas.inline(expression)
        type_of(written_out, self._scope)
        return self._fold(written_out)

    def _expand(self, expression: Expression, type_: Type, what: str) -> Expression:
        written_out = self._formulas.inline(expression)
        check_type(written_out, self._scope, type_, what)
        return self._fold(written_out)

    def _fold(self, expression: Expression) -> Expression:
        return fold(self._constants.symbolic.inline(expression), self._constants.values)
