"""The values of a file's constants, from the file itself and from `--const`.

Constants may refer to each other in any order. An undefined double that `--const` leaves open is
a parameter; what is defined in terms of a parameter stays an expression and is written out where
it is used. Every other undefined constant that is used must be given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tightrope.errors import InputError, Location
from tightrope.prism.expand.arithmetic import Value
from tightrope.prism.expand.check import Scope, check_type
from tightrope.prism.expand.fold import fold, value_of
from tightrope.prism.expand.inline import Inliner, dependency_order
from tightrope.prism.expand.parametric import check_polynomial
from tightrope.prism.expand.traverse import names
from tightrope.prism.parse.diagnostics import Complaint, position_of, suggestion
from tightrope.prism.parse.syntax import Constant, Expression, Literal, Type

_NUMBER = re.compile(r"([+-]?(?:[0-9]+|[0-9]*\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)(?:/([0-9]+))?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_CHARACTERS = 400


@dataclass(frozen=True)
class Constants:
    """`values` of all constants but the parameters and what depends on them."""

    types: Scope
    values: Mapping[str, Literal]
    parameters: tuple[str, ...]
    symbolic: Inliner

    def plain(self) -> dict[str, Value]:
        """The values without their syntax."""
        return {name: value.value for name, value in self.values.items()}


def resolve_constants(
    declared: Sequence[Constant],
    given: Mapping[str, str],
    formulas: Inliner,
    variables: Scope,
    outer: Mapping[str, Literal] | None = None,
    parameters_allowed: bool = True,
    used: Collection[str] | None = None,
) -> Constants:
    """Values for `declared` from their definitions and `given` texts.

    `outer` are constants already known (those of the model, for a property file), `variables` the
    state variables, which no constant may depend on. Only constants in `used` need a value, if it is given.
    """
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
    for name in dependency_order(definitions, "constants"):
        value = _definition(by_name[name], definitions[name], types, variables, values)
        if isinstance(value, Literal):
            values[name] = value
        else:
            symbolic[name] = value
    inliner = Inliner(symbolic, "constants")
    for name in symbolic:
        check_polynomial(inliner.definition(name), parameters, f"constant '{name}'", quotients=True)
    return Constants(types, values, parameters, inliner)


def parse_value(text: str, type_: Type) -> Value | None:
    """The value an option's text stands for, exactly; None where it is no value of the type."""
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        return None
    if type_ is Type.BOOL:
        return {"true": True, "false": False}.get(text)
    if type_ is Type.INT:
        return int(text) if _INTEGER.fullmatch(text) else None
    match = _NUMBER.fullmatch(text)
    if not match or (match[2] and int(match[2]) == 0):
        return None
    return Fraction(match[1]) / int(match[2] or 1)


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
            f"'{text}' is no value for the {constant.type.value} constant '{constant.name}'",
            Location("`const`"),
            f"write a value such as {example[constant.type]}",
        )
    return Literal(value, constant.type, constant.position)


def _definition(
    constant: Constant,
    definition: Expression,
    types: Scope,
    variables: Scope,
    values: Mapping[str, Literal],
) -> Expression:
    """A literal, or an expression where the definition depends on a parameter."""
    for used in names(definition):
        if used.name in variables:
            raise Complaint(
                f"constant '{constant.name}' cannot depend on variable '{used.name}'", used.position
            )
    check_type(
        definition, types, constant.type, f"the value of {constant.type.value} constant '{constant.name}'"
    )
    folded = fold(definition, values)
    parameter = next(names(folded), None)
    if parameter is None:
        value = value_of(folded)
        exact = Fraction(value) if constant.type is Type.DOUBLE else value
        return Literal(exact, constant.type, position_of(definition))
    if constant.type is not Type.DOUBLE:
        raise Complaint(
            f"{constant.type.value} constant '{constant.name}' cannot depend on parameter '{parameter.name}'",
            parameter.position,
            f'only probabilities may; or give the parameter a value:  `const={{"{parameter.name}": …}}`',
        )
    return folded
