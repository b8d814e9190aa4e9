"""From a model as written to a program ready to explore.

Formulas and renamed modules are written out, constants get their values (from the file and from
`--const`), types are checked, and every expression is folded; parameters may remain in
probabilities and rewards, as polynomials. Every error says where in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tightrope.prism.expand.commands import CommandExpander
from tightrope.prism.expand.composition import actions_of, compose
from tightrope.prism.expand.constants import resolve_constants
from tightrope.prism.expand.declarations import (
    check_file,
    check_variables,
    find_used_names,
    initial_states,
    state_variable,
)
from tightrope.prism.expand.expressions import Expander
from tightrope.prism.expand.inline import Inliner
from tightrope.prism.expand.program import Program, StateVariable, Synchronisation
from tightrope.prism.expand.renaming import copy_out
from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint, Source, suggestion


def expand(
    model: syntax.Model,
    constants: Mapping[str, str] | None = None,
    synchronisations: tuple[Synchronisation, ...] | None = None,
) -> Program:
    """The program of a model; `constants` are the texts given by `--const`, by name.

    `synchronisations` are those of a model that comes from elsewhere, in place of what its text says; whoever
    makes them sees to it that no two modules that move together assign the same variable.
    """
    try:
        return _expand(model, constants or {}, synchronisations)
    except Complaint as complaint:
        raise complaint.in_source(Source(model.source, model.file)) from None


def _expand(
    model: syntax.Model, given: Mapping[str, str], ready: tuple[Synchronisation, ...] | None
) -> Program:
    check_file(model)
    formulas = Inliner({formula.name: formula.expression for formula in model.formulas}, "formulas")
    modules = copy_out(model, formulas)
    check_variables(model, modules)
    variable_types = {
        variable.name: variable.type
        for variables in (model.globals, *(module.variables for module in modules))
        for variable in variables
    }
    used = find_used_names(model, modules)
    constants = resolve_constants(model.constants, given, formulas, variable_types, used=used)
    scope = {**constants.types, **variable_types}
    expander = Expander(formulas, constants, scope)
    expanded_formulas = {formula.name: expander.formula(formula.expression) for formula in model.formulas}
    variables = _variables(model, modules, expander)
    synchronisations = compose(modules, model.system) if ready is None else ready
    checked = synchronisations if ready is None else ()
    expanded = _modules(model, modules, variables, expander, checked)
    is_interval = any(
        update.upper is not None
        for module in expanded
        for command in module.commands
        for update in command.updates
    )
    return Program(
        type=model.type,
        parameters=constants.parameters,
        variables=variables,
        modules=expanded,
        labels=tuple(_label(label, expander) for label in model.labels),
        rewards=_rewards(model, actions_of(synchronisations), expander, is_interval),
        constants=MappingProxyType(constants.plain()),
        is_interval=is_interval,
        source=model.source,
        file=model.file,
        synchronisations=synchronisations,
        initial_values=_initial_values(model, variables, expander),
        formulas=MappingProxyType(expanded_formulas),
    )


def _variables(
    model: syntax.Model, modules: tuple[syntax.Module, ...], expander: Expander
) -> tuple[StateVariable, ...]:
    has_init = model.init is not None
    variables = [state_variable(variable, None, expander, has_init) for variable in model.globals]
    for module in modules:
        variables += [
            state_variable(variable, module.name, expander, has_init) for variable in module.variables
        ]
    if not variables:
        raise Complaint("the model has no variables", modules[0].position)
    return tuple(variables)


def _initial_values(
    model: syntax.Model, variables: tuple[StateVariable, ...], expander: Expander
) -> tuple[tuple[int, ...], ...]:
    if model.init is None:
        return (tuple(variable.initial for variable in variables),)
    predicate = expander.plain(
        model.init, syntax.Type.BOOL, "the condition between init and endinit", "init … endinit"
    )
    return initial_states(predicate, variables)


def _modules(
    model: syntax.Model,
    modules: tuple[syntax.Module, ...],
    variables: tuple[StateVariable, ...],
    expander: Expander,
    synchronisations: tuple[Synchronisation, ...],
) -> tuple[syntax.Module, ...]:
    commands = CommandExpander(modules, variables, expander, synchronisations)
    result = []
    for written, module in zip(model.modules, modules, strict=True):
        try:
            result.append(commands.module(module))
        except Complaint as complaint:
            if not isinstance(written, syntax.ModuleRenaming):
                raise
            note = f" (in module '{written.name}', renamed from '{written.base}')"
            raise Complaint(complaint.message + note, complaint.position, complaint.hint) from None
    return tuple(result)


def _label(label: syntax.LabelDefinition, expander: Expander) -> syntax.LabelDefinition:
    expression = expander.plain(label.expression, syntax.Type.BOOL, f'label "{label.name}"', "a label")
    return syntax.LabelDefinition(label.name, expression, label.position)


def _rewards(
    model: syntax.Model, actions: frozenset[str], expander: Expander, is_interval: bool
) -> tuple[syntax.Rewards, ...]:
    def item_of(item: syntax.RewardItem) -> syntax.RewardItem:
        if item.action is not None and item.action not in actions:
            raise Complaint(
                f"no command has the action '{item.action}'",
                item.position,
                suggestion(item.action, actions, "actions"),
            )
        guard = expander.plain(
            item.guard, syntax.Type.BOOL, "the condition of a reward", "a reward's condition"
        )
        if is_interval:
            reward = expander.plain(
                item.reward, syntax.Type.DOUBLE, "a reward", "a reward of an interval model"
            )
        else:
            reward = expander.polynomial(item.reward, "a reward")
        return syntax.RewardItem(item.is_choice, item.action, guard, reward, item.position)

    return tuple(
        syntax.Rewards(rewards.name, tuple(item_of(item) for item in rewards.items), rewards.position)
        for rewards in model.rewards
    )
