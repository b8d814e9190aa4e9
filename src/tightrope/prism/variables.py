"""State variables: ranges and initial values as integers."""

from __future__ import annotations

from tightrope.prism.diagnostics import Complaint, position_of
from tightrope.prism.expressions import Expander
from tightrope.prism.program import StateVariable
from tightrope.prism.syntax import Expression, Type, Variable

_LARGEST = 2**31 - 1
"""States keep their variables as 32-bit integers."""


def state_variable(
    variable: Variable, module: str | None, expander: Expander, has_init: bool
) -> StateVariable:
    """The variable with its range and initial value; by default it starts at its lowest value."""
    name = variable.name
    if has_init and variable.initial is not None:
        raise Complaint(
            f"variable '{name}' has an initial value, and the model has init … endinit as well",
            position_of(variable.initial),
            "PRISM takes one or the other",
        )
    low, high = 0, 1
    if variable.low is not None and variable.high is not None:
        low = _bound(variable.low, name, expander)
        high = _bound(variable.high, name, expander)
        if low > high:
            raise Complaint(f"the range [{low}..{high}] of '{name}' is empty", position_of(variable.low))
    initial = low
    if variable.initial is not None:
        what = f"the initial value of '{name}'"
        initial = int(expander.constant(variable.initial, variable.type, what, "an initial value"))
        if not low <= initial <= high:
            raise Complaint(
                f"the initial value {initial} of '{name}' is outside its range [{low}..{high}]",
                position_of(variable.initial),
            )
    return StateVariable(name, variable.type, low, high, initial, module, variable.position)


def _bound(expression: Expression, name: str, expander: Expander) -> int:
    what = f"a bound of the range of '{name}'"
    value = int(expander.constant(expression, Type.INT, what, "the range of a variable"))
    if abs(value) > _LARGEST:
        raise Complaint(f"{what} is {value}, beyond 32-bit integers", position_of(expression))
    return value
