"""One name, one thing: what a model may declare only once."""

from __future__ import annotations

from collections.abc import Iterable

from tightrope.prism.diagnostics import Complaint
from tightrope.prism.syntax import LabelDefinition, Model, Module, Position

BUILT_IN_LABELS = ("init", "deadlock")


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
