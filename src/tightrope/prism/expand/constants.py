"""Constants and what is left of expressions: values from the file and from `--const`, parameters, ready ones.

Constants may refer to each other in any order. An undefined double that `--const` leaves open is
a parameter; what is defined in terms of a parameter stays an expression and is written out where
it is used. Every other undefined constant that is used must be given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from tightrope.errors import InputError, Location
from tightrope.prism.expand import expressions
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Complaint,
    Conditional,
    Constant,
    Expression,
    Literal,
    Name,
    Type,
    Unary,
    children,
    names,
    position_of,
    suggestion,
)

_NUMBER = re.compile(r"([+-]?(?:[0-9]+|[0-9]*\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)((?:/[0-9]+)*)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_CHARACTERS = 400


@dataclass(frozen=True)
class Constants:
    """`values` of all constants but the parameters and what depends on them."""

    types: expressions.Scope
    values: Mapping[str, Literal]
    parameters: tuple[str, ...]
    symbolic: expressions.Inliner

    def plain(self) -> dict[str, expressions.Value]:
        """The values without their syntax."""
        return {name: value.value for name, value in self.values.items()}


def resolve_constants(
    declared: Sequence[Constant],
    given: Mapping[str, str],
    formulas: expressions.Inliner,
    variables: expressions.Scope,
    outer: Mapping[str, Literal] | None = None,
    parameters_allowed: bool = True,
    used: Collection[str] | None = None,
) -> Constants:
    """Values from definitions and `given` texts; `outer` are known, `used` ones (None: all) need one."""
    values = dict(outer or {})
    types = {name: value.type for name, value in values.items()}
    types.update({constant.name: constant.type for constant in declared})
    by_name = {constant.name: constant for constant in declared}
    _check_given(given, by_name)
    parameters = _check_missing(declared, given, parameters_allowed, used)
    definitions = {
        constant.name: formulas.inline(constant.value) for constant in declared if constant.value is not None
    }
    for name, text in given.items():
        values[name] = _read_given_value(by_name[name], text)
    symbolic: dict[str, Expression] = {}
    for name in expressions.dependency_order(definitions, "constants"):
        value = _definition(by_name[name], definitions[name], types, variables, values)
        if isinstance(value, Literal):
            values[name] = value
        else:
            symbolic[name] = value
    inliner = expressions.Inliner(symbolic, "constants")
    for name in symbolic:
        check_polynomial(inliner.definition(name), parameters, f"constant '{name}'", quotients=True)
    return Constants(types, values, parameters, inliner)


def parse_value(text: str, type_: Type) -> expressions.Value | None:
    """The value an option's text stands for, exactly; None where it is no value of the type."""
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        return None
    if type_ is Type.BOOL:
        return {"true": True, "false": False}.get(text)
    if type_ is Type.INT:
        return int(text) if _INTEGER.fullmatch(text) else None
    match = _NUMBER.fullmatch(text)
    divisor = prod(map(int, match[2].split("/")[1:])) if match else 0
    return Fraction(match[1]) / divisor if match and divisor else None


def _check_given(given: Mapping[str, str], declared: Mapping[str, Constant]) -> None:
    for name in given:
        if name not in declared:
            undefined = [constant.name for constant in declared.values() if constant.value is None]
            raise InputError(
                f"the model has no constant '{name}'",
                Location("`const`"),
                suggestion(name, undefined, "undefined constants"),
            )
        if declared[name].value is not None:
            raise InputError(
                f"constant '{name}' has a value in the file already (line {declared[name].position.line})",
                Location("`const`"),
                f"leave the value out there to give it here:  const {declared[name].type.value} {name};",
            )


def _check_missing(
    declared: Sequence[Constant],
    given: Mapping[str, str],
    parameters_allowed: bool,
    used: Collection[str] | None,
) -> tuple[str, ...]:
    """The parameters; complains about other constants without a value, all at once."""
    undefined = [c for c in declared if c.value is None and c.name not in given]
    missing = [
        c
        for c in undefined
        if not (parameters_allowed and c.type is Type.DOUBLE) and (used is None or c.name in used)
    ]
    if missing:
        listed = ", ".join(f"{c.type.value} {c.name}" for c in missing)
        raise Complaint(
            f"undefined constant{'s' if len(missing) > 1 else ''}: {listed}",
            missing[0].position,
            "give a value:  `const={" + ", ".join(f'"{c.name}": …' for c in missing) + "}`",
        )
    return tuple(c.name for c in undefined if c.type is Type.DOUBLE)


def _read_given_value(constant: Constant, text: str) -> Literal:
    value = parse_value(text, constant.type)
    if value is None:
        example = {Type.INT: "50", Type.DOUBLE: "0.1, 1e-3 or 1/3", Type.BOOL: "true or false"}
        raise InputError(
            f"'{text}' is not a value for the {constant.type.value} constant '{constant.name}'",
            Location("`const`"),
            f"write a value such as {example[constant.type]}",
        )
    return Literal(value, constant.type, constant.position)


def _definition(
    constant: Constant,
    definition: Expression,
    types: expressions.Scope,
    variables: expressions.Scope,
    values: Mapping[str, Literal],
) -> Expression:
    """A literal, or an expression where the definition depends on a parameter."""
    for used in names(definition):
        if used.name in variables:
            raise Complaint(
                f"constant '{constant.name}' cannot depend on variable '{used.name}'", used.position
            )
    expressions.check_type(
        definition, types, constant.type, f"the value of {constant.type.value} constant '{constant.name}'"
    )
    folded = expressions.fold(definition, values)
    parameter = next(names(folded), None)
    if parameter is None:
        value = expressions.value_of(folded)
        exact = Fraction(value) if constant.type is Type.DOUBLE else value
        return Literal(exact, constant.type, position_of(definition))
    if constant.type is not Type.DOUBLE:
        raise Complaint(
            f"{constant.type.value} constant '{constant.name}' cannot depend on parameter '{parameter.name}'",
            parameter.position,
            f'only probabilities may; or give the parameter a value:  `const={{"{parameter.name}": …}}`',
        )
    return folded


# Where parameters may stand: in probabilities, so that a polynomial or a quotient of polynomials
# results, and in rewards, so that a polynomial does.
#
# The check is static: sums, differences, products, natural powers, division and negative powers (in
# rewards of what has no parameter), and conditionals on what has none. Powers with an exponent that
# depends on the state are left to the explorer.


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


# Parameters in guards: which commands there are must not depend on where in the domain a model lies. So a
# comparison of parameters and numbers may stand in a guard, and the domain has to decide it.


def check_guard(guard: Expression, parameters: Collection[str]) -> None:
    """Complain about parameters outside of comparisons that no variable has a part in."""
    if isinstance(guard, Binary) and guard.operator in expressions.COMPARISONS:
        if all(name.name in parameters for name in names(guard)):
            return
    elif isinstance(guard, Unary | Binary) and guard.operator in ("!", "&", "|", "=>", "<=>"):
        for part in children(guard):
            check_guard(part, parameters)
        return
    refuse_parameters(guard, parameters, "a guard")


def check_polynomial(
    expression: Expression, parameters: Collection[str], what: str, quotients: bool = False
) -> None:
    """Complain unless it is a polynomial in the parameters, or one of the allowed `quotients`."""
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
        match expression:
            case Unary("-") | Binary("+" | "-" | "*"):
                return True
            case Binary("/") if self.quotients or not inside[1]:
                return True
            case Conditional() if not inside[0]:
                return True
            case Call("pow") if not inside[1]:
                return self._natural(expression)
        raise self._complaint(expression, inside)

    def _natural(self, power: Call) -> bool:
        exponent = power.arguments[1]
        if isinstance(exponent, Literal) and (
            (exponent.value < 0 and not self.quotients) or exponent.value != int(exponent.value)
        ):
            kind = "whole" if self.quotients else "natural"
            raise Complaint(
                f"{self.what} is not {self._wanted}: the exponent {exponent.value} is not a {kind} number",
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


# One expression, from as written to ready: names written out, types checked, constants folded.


class Expander:
    """Expands the expressions of one file. `what` names the expression in messages."""

    def __init__(self, formulas: expressions.Inliner, constants: Constants, scope: expressions.Scope):
        self._formulas = formulas
        self._constants = constants
        self._scope = scope

    def plain(self, expression: Expression, type_: Type, what: str, where: str) -> Expression:
        """An expression over the variables, without parameters."""
        expanded = self._expand(expression, type_, what)
        refuse_parameters(expanded, self._constants.parameters, where)
        return expanded

    def guard(self, expression: Expression) -> Expression:
        """A condition over the variables; the domain decides comparisons of parameters in it."""
        expanded = self._expand(expression, Type.BOOL, "a guard")
        if self._constants.parameters:
            check_guard(expanded, self._constants.parameters)
        return expanded

    def polynomial(self, expression: Expression, what: str, quotients: bool = False) -> Expression:
        """An expression over the variables that is a polynomial in the parameters."""
        expanded = self._expand(expression, Type.DOUBLE, what)
        check_polynomial(expanded, self._constants.parameters, what, quotients)
        return expanded

    def constant(self, expression: Expression, type_: Type, what: str, where: str) -> expressions.Value:
        """The value of an expression that must not depend on variables."""
        expanded = self.plain(expression, type_, what, where)
        for name in names(expanded):
            raise Complaint(f"{what} must be constant, but depends on variable '{name.name}'", name.position)
        value = expressions.value_of(expanded)
        return Fraction(value) if type_ is Type.DOUBLE else value

    def whole(self, expression: Expression, what: str, where: str) -> int:
        """The value of an expression that must be a constant whole number, such as N/2 for an even N."""
        if expressions.type_of(self._formulas.inline(expression), self._scope) is not Type.DOUBLE:
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
        expressions.type_of(written_out, self._scope)
        return self._fold(written_out)

    def _expand(self, expression: Expression, type_: Type, what: str) -> Expression:
        written_out = self._formulas.inline(expression)
        expressions.check_type(written_out, self._scope, type_, what)
        return self._fold(written_out)

    def _fold(self, expression: Expression) -> Expression:
        return expressions.fold(self._constants.symbolic.inline(expression), self._constants.values)
