"""What a model declares: one name for one thing, and the variables with their ranges and first values."""

from __future__ import annotations

from collections.abc import Iterable

from tightrope.prism.expand.expressions import Expander
from tightrope.prism.expand.program import StateVariable
from tightrope.prism.expand.traverse import names
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Expression, LabelDefinition, Model, Module, Position, Type, Variable

BUILT_IN_LABELS = ("init", "deadlock")

_LARGEST = 2**31 - 1
"""States keep their variables as 32-bit integers."""


def check_file(model: Model) -> None:
    """Complain about double declarations that show before renamed modules are copied out."""
    _once(
        [
            *((constant.name, constant.position) for constant in model.constants),
            *((formula.name, formula.position) for formula in model.formulas),
        ],
        "'{}' is declared twice",
    )
    _once(((module.name, module.position) for module in model.modules), "there are two modules '{}'")
    check_labels(model.labels)
    _once(
        ((rewards.name or "", rewards.position) for rewards in model.rewards),
        'there are two reward structures "{}"',
    )


def check_variables(model: Model, modules: Iterable[Module]) -> None:
    """Complain about variables that share a name with each other, a constant or a formula."""
    _once(
        [
            *((constant.name, constant.position) for constant in model.constants),
            *((formula.name, formula.position) for formula in model.formulas),
            *((variable.name, variable.position) for variable in model.globals),
            *((variable.name, variable.position) for module in modules for variable in module.variables),
        ],
        "'{}' is declared twice",
    )


def find_used_names(model: Model, modules: Iterable[Module]) -> frozenset[str]:
    """Every name that stands in an expression of the file, renamed modules copied out."""
    written: list[Expression | None] = [
        *(constant.value for constant in model.constants),
        *(formula.expression for formula in model.formulas),
        *(label.expression for label in model.labels),
        *(part for each in model.rewards for item in each.items for part in (item.guard, item.reward)),
        model.init,
    ]
    for variables in (model.globals, *(module.variables for module in modules)):
        written += [part for each in variables for part in (each.low, each.high, each.initial)]
    for command in (command for module in modules for command in module.commands):
        written.append(command.guard)
        for update in command.updates:
            written += [update.probability, update.upper, *(a.value for a in update.assignments)]
    return frozenset(name.name for each in written if each is not None for name in names(each))


def check_labels(labels: Iterable[LabelDefinition]) -> None:
    """Complain about labels defined twice, or that every model has anyway."""
    labels = list(labels)
    for label in labels:
        if label.name in BUILT_IN_LABELS:
            raise Complaint(
                f'label "{label.name}" cannot be defined: every model has it already', label.position
            )
    _once(((label.name, label.position) for label in labels), 'label "{}" is defined twice')


def _once(declared: Iterable[tuple[str, Position]], message: str) -> None:
    first: dict[str, Position] = {}
    for name, position in declared:
        if name in first:
            raise Complaint(message.format(name), position, f"the first is in line {first[name].line}")
        first[name] = position


def state_variable(
    variable: Variable, module: str | None, expander: Expander, has_init: bool
) -> StateVariable:
    """The variable with its range and initial value; by default it starts at its lowest value, or at 0."""
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
    is_unbounded = variable.type is Type.INT and variable.low is None
    initial = low
    if is_unbounded:
        low, high = -_LARGEST, _LARGEST
    if variable.initial is not None:
        what = f"the initial value of '{name}'"
        if variable.type is Type.INT:
            initial = expander.whole(variable.initial, what, "an initial value")
        else:
            initial = int(expander.constant(variable.initial, variable.type, what, "an initial value"))
        if not low <= initial <= high:
            raise Complaint(
                f"the initial value {initial} of '{name}' is outside its range [{low}..{high}]",
                position_of(variable.initial),
            )
    return StateVariable(name, variable.type, low, high, initial, module, variable.position, is_unbounded)


def _bound(expression: Expression, name: str, expander: Expander) -> int:
    what = f"a bound of the range of '{name}'"
    value = expander.whole(expression, what, "the range of a variable")
    if abs(value) > _LARGEST:
        raise Complaint(f"{what} is {value}, beyond 32-bit integers", position_of(expression))
    return value
