"""The states that satisfy `init … endinit`.

Conjuncts of the form `x = 3`, `b` or `!b` fix a variable at once; their values are put into the
other conjuncts, again and again. What then remains is decided by trying all values of the
variables it mentions, as long as they are not too many. Variables that nothing speaks of may have any value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from tightrope.prism.expand.fold import fold, value_of
from tightrope.prism.expand.program import StateVariable
from tightrope.prism.expand.traverse import names
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Binary, Expression, Literal, Name, Type, Unary

_MOST_CANDIDATES = 200_000
_MOST_STATES = 1_000_000


def initial_states(predicate: Expression, variables: Sequence[StateVariable]) -> tuple[tuple[int, ...], ...]:
    """The values of all variables in every state in which the predicate holds, the smallest first."""
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
    mentioned, tried = _try_values(open_conjuncts, by_name, predicate)
    free = [v for v in variables if v.name not in fixed and v.name not in mentioned]
    number = len(tried) * prod(variable.high - variable.low + 1 for variable in free)
    if number > _MOST_STATES:
        raise Complaint(
            f"init … endinit holds in {number:,} states: "
            f"{', '.join(v.name for v in free)} can have any value",
            position_of(predicate),
            f"at most {_MOST_STATES:,} initial states are read; fix variables: x=3 & !b",
        )
    known = [fixed[v.name].value if v.name in fixed else None for v in variables]
    spans = [range(v.low, v.high + 1) for v in free]
    place = {variable.name: i for i, variable in enumerate(variables)}
    open_places = [place[name] for name in mentioned] + [place[v.name] for v in free]
    states = []
    for some in tried:
        for others in product(*spans):
            values = list(known)
            for at, value in zip(open_places, (*some, *others), strict=True):
                values[at] = value
            states.append(tuple(int(value or 0) for value in values))
    return tuple(sorted(states))


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


def _try_values(
    conjuncts: list[Expression], variables: dict[str, StateVariable], predicate: Expression
) -> tuple[list[str], list[tuple[int, ...]]]:
    """The variables in the conjuncts, and their values that satisfy them all."""
    mentioned = [variables[n] for n in dict.fromkeys(name.name for c in conjuncts for name in names(c))]
    candidates = prod(variable.high - variable.low + 1 for variable in mentioned)
    if candidates > _MOST_CANDIDATES:
        raise Complaint(
            f"init … endinit leaves {candidates} states to try for {', '.join(v.name for v in mentioned)}",
            position_of(predicate),
            "fix the variables one by one: x=3 & y=0 & !b",
        )
    found = []
    for values in product(*(range(v.low, v.high + 1) for v in mentioned)):
        literals = {v.name: _literal(v, k) for v, k in zip(mentioned, values, strict=True)}
        if all(value_of(fold(conjunct, literals)) for conjunct in conjuncts):
            found.append(values)
    if not found:
        raise _none(predicate)
    return [variable.name for variable in mentioned], found


def _literal(variable: StateVariable, value: int) -> Literal:
    is_bool = variable.type is Type.BOOL
    return Literal(bool(value) if is_bool else value, variable.type, variable.position)


def _none(predicate: Expression) -> Complaint:
    return Complaint("no state satisfies init … endinit", position_of(predicate))
