"""Modules copied out: `module b = a [ x=y, go=stop ] endmodule`.

As in PRISM, formulas are written out first and the renaming applies to what they contain; it
applies to variables, constants and actions alike, and every variable of the base module needs a
new name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tightrope.prism.expand.inline import Inliner
from tightrope.prism.expand.traverse import rename
from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint, suggestion

Rewrite = Callable[[syntax.Expression], syntax.Expression]


def copy_out(model: syntax.Model, formulas: Inliner) -> tuple[syntax.Module, ...]:
    """All modules of a model in their order, formulas and renamings written out."""
    by_name = {module.name: module for module in model.modules}
    known = _renamable(model)
    done: dict[str, syntax.Module] = {}

    def module_of(name: str, path: tuple[str, ...]) -> syntax.Module:
        if name in done:
            return done[name]
        module = by_name[name]
        if isinstance(module, syntax.Module):
            result = _rewritten(module, formulas.inline)
        else:
            if module.base not in by_name:
                raise Complaint(
                    f"there is no module '{module.base}' to rename",
                    module.position,
                    suggestion(module.base, by_name, "modules"),
                )
            if module.base in (*path, name) or len(path) > 100:
                raise Complaint(f"module '{name}' is, through renamings, a copy of itself", module.position)
            result = _rename(module_of(module.base, (*path, name)), module, known, formulas)
        done[name] = result
        return result

    return tuple(module_of(module.name, ()) for module in model.modules)


def _renamable(model: syntax.Model) -> set[str]:
    """Every name a renaming may speak of: variables, constants and actions of the whole model."""
    plain = [module for module in model.modules if isinstance(module, syntax.Module)]
    found = {variable.name for variable in model.globals}
    found |= {constant.name for constant in model.constants}
    found |= {variable.name for module in plain for variable in module.variables}
    found |= {command.action for module in plain for command in module.commands if command.action}
    for module in model.modules:
        if isinstance(module, syntax.ModuleRenaming):
            found |= {new for _, new in module.renaming}
    return found


def _rename(
    base: syntax.Module, renaming: syntax.ModuleRenaming, known: set[str], formulas: Inliner
) -> syntax.Module:
    mapping: dict[str, str] = {}
    for old, new in renaming.renaming:
        if old in mapping:
            raise Complaint(f"'{old}' is renamed twice in module '{renaming.name}'", renaming.position)
        if old in formulas:
            raise Complaint(
                f"'{old}' is a formula and cannot be renamed in module '{renaming.name}'",
                renaming.position,
                "formulas are written out first; rename the variables and constants they contain",
            )
        if old not in known:
            raise Complaint(
                f"module '{renaming.name}' renames '{old}', which is no variable, constant or action",
                renaming.position,
                suggestion(old, known),
            )
        mapping[old] = new
    left_out = [variable.name for variable in base.variables if variable.name not in mapping]
    if left_out:
        raise Complaint(
            f"module '{renaming.name}' must rename all variables of '{renaming.base}';"
            f" without a new name: {', '.join(left_out)}",
            renaming.position,
        )
    copy = _rewritten(base, lambda expression: rename(expression, mapping))
    return syntax.Module(
        renaming.name,
        tuple(
            replace(variable, name=mapping[variable.name], position=renaming.position)
            for variable in copy.variables
        ),
        tuple(_with_new_names(command, mapping) for command in copy.commands),
        renaming.position,
    )


def _with_new_names(command: syntax.Command, mapping: dict[str, str]) -> syntax.Command:
    updates = tuple(
        replace(
            update,
            assignments=tuple(
                replace(assignment, name=mapping.get(assignment.name, assignment.name))
                for assignment in update.assignments
            ),
        )
        for update in command.updates
    )
    action = command.action if command.action is None else mapping.get(command.action, command.action)
    return replace(command, action=action, updates=updates)


def _rewritten(module: syntax.Module, rewrite: Rewrite) -> syntax.Module:
    """The module with every expression rewritten."""

    def optional(expression: syntax.Expression | None) -> syntax.Expression | None:
        return None if expression is None else rewrite(expression)

    def variable_of(variable: syntax.Variable) -> syntax.Variable:
        return replace(
            variable,
            low=optional(variable.low),
            high=optional(variable.high),
            initial=optional(variable.initial),
        )

    def update_of(update: syntax.Update) -> syntax.Update:
        assignments = tuple(
            syntax.Assignment(assignment.name, rewrite(assignment.value), assignment.position)
            for assignment in update.assignments
        )
        return syntax.Update(
            rewrite(update.probability), optional(update.upper), assignments, update.position
        )

    def command_of(command: syntax.Command) -> syntax.Command:
        updates = tuple(update_of(update) for update in command.updates)
        return syntax.Command(command.action, rewrite(command.guard), updates, command.position)

    return syntax.Module(
        module.name,
        tuple(variable_of(variable) for variable in module.variables),
        tuple(command_of(command) for command in module.commands),
        module.position,
    )
