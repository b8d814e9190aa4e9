"""The one state that satisfies `init … endinit`.

Conjuncts of the form `x = 3`, `b` or `!b` fix a variable at once; their values are put into the
other conjuncts, again and again. What then remains is decided by trying all values of the
variables it mentions, as long as they are not too many. PRISM allows several initial states; a
model of ours has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod

from tightrope.prism.expand.fold import fold, value_of
from tightrope.prism.expand.program import StateVariable
from tightrope.prism.expand.traverse import names
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Binary, Expression, Literal, Name, Type, Unary

_MOST_CANDIDATES = 200_000


def initial_state(predicate: Expression, variables: Sequence[StateVariable]) -> tuple[StateVariable, ...]:
    """The variables with the initial values that the predicate determines."""
    by_name = {variable.name: variable for variable in variables}
    fixed = {v.name: _literal(v, v.low) for v in variables if v.low == v.high}
    conjuncts = _conjuncts(predicate)
    while True:
        conjuncts = [fold(conjunct, fixed) for conjunct in conjuncts]
        found = [pair for conjunct in conjuncts if (pair := _equation(conjunct))]
        if not found:
            break
        for name, value in found:
            variable = by_name[name]
            if not variable.low <= value <= variable.high:
                raise _none(predicate)
            fixed.setdefault(name, _literal(variable, value))
    open_conjuncts = [c for c in conjuncts if not (isinstance(c, Literal) and c.value is True)]
    if any(isinstance(conjunct, Literal) for conjunct in open_conjuncts):
        raise _none(predicate)
    fixed.update(_tried(open_conjuncts, by_name, predicate))
    for variable in variables:
        if variable.name not in fixed:
            raise _several(f"'{variable.name}' can have any value", predicate)
    return tuple(replace(v, initial=int(fixed[v.name].value)) for v in variables)


def _conjuncts(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Binary) and predicate.operator == "&":
        return _conjuncts(predicate.left) + _conjuncts(predicate.right)
    return [predicate]


def _equation(conjunct: Expression) -> tuple[str, int] | None:
    """The variable and value of `x = 3`, `3 = x`, `b` or `!b`."""
    if isinstance(conjunct, Name):
        return conjunct.name, 1
    if isinstance(conjunct, Unary) and isinstance(conjunct.operand, Name):
        return conjunct.operand.name, 0
    if isinstance(conjunct, Binary) and conjunct.operator in ("=", "<=>"):
        for one, other in ((conjunct.left, conjunct.right), (conjunct.right, conjunct.left)):
            if isinstance(one, Name) and isinstance(other, Literal) and other.value == int(other.value):
                return one.name, int(other.value)
    return None


def _tried(
    conjuncts: list[Expression], variables: dict[str, StateVariable], predicate: Expression
) -> dict[str, Literal]:
    """The only values of the variables in the conjuncts that satisfy them all."""
    mentioned = [variables[n] for n in dict.fromkeys(name.name for c in conjuncts for name in names(c))]
    if not mentioned:
        return {}
    candidates = prod(variable.high - variable.low + 1 for variable in mentioned)
    if candidates > _MOST_CANDIDATES:
        raise Complaint(
            f"init … endinit leaves {candidates} states to try for {', '.join(v.name for v in mentioned)}",
            position_of(predicate),
            "fix the variables one by one: x=3 & y=0 & !b",
        )
    choices = product(*([_literal(v, k) for k in range(v.low, v.high + 1)] for v in mentioned))
    assignments = (dict(zip((v.name for v in mentioned), choice, strict=True)) for choice in choices)
    solutions = (a for a in assignments if all(value_of(fold(conjunct, a)) for conjunct in conjuncts))
    first_two = list(islice(solutions, 2))
    if not first_two:
        raise _none(predicate)
    if len(first_two) > 1:
        shown = " and ".join(
            "(" + ",".join(f"{name}={_text(value)}" for name, value in solution.items()) + ")"
            for solution in first_two
        )
        raise _several(f"{shown} both satisfy it", predicate)
    return first_two[0]


def _literal(variable: StateVariable, value: int) -> Literal:
    is_bool = variable.type is Type.BOOL
    return Literal(bool(value) if is_bool else value, variable.type, variable.position)


def _text(value: Literal) -> str:
    return str(value.value).lower()


def _none(predicate: Expression) -> Complaint:
    return Complaint("no state satisfies init … endinit", position_of(predicate))


def _several(reason: str, predicate: Expression) -> Complaint:
    return Complaint(
        f"several initial states are not supported: {reason}",
        position_of(predicate),
        "make the condition between init and endinit true for one state only",
    )
