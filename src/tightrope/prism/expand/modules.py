"""Modules: renamed copies, synchronisation and commands.

`module b = a [ x=y, go=stop ] endmodule` is a copy. As in PRISM, formulas are expanded before renaming, which
applies to variables, constants and actions. Every variable of the base module needs a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from tightrope.prism.expand.constants import Expander
from tightrope.prism.expand.expressions import Inliner, rename
from tightrope.prism.expand.program import FreeUpdates, StateVariable, Synchronisation
from tightrope.prism.parse import syntax

Rewrite = Callable[[syntax.Expression], syntax.Expression]


def copy_out(model: syntax.ModelFile, formulas: Inliner) -> tuple[syntax.Module, ...]:
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
                raise syntax.Complaint(
                    f"there is no module '{module.base}' to rename",
                    module.position,
                    syntax.suggestion(module.base, by_name, "modules"),
                )
            if module.base in (*path, name) or len(path) > 100:
                raise syntax.Complaint(
                    f"module '{name}' is, through renamings, a copy of itself", module.position
                )
            result = _rename(module_of(module.base, (*path, name)), module, known, formulas)
        done[name] = result
        return result

    return tuple(module_of(module.name, ()) for module in model.modules)


def _renamable(model: syntax.ModelFile) -> set[str]:
    """Every name a renaming may speak of: variables, constants and actions of the whole model."""
    plain = [module for module in model.modules if isinstance(module, syntax.Module)]
    result = {variable.name for variable in model.globals}
    result |= {constant.name for constant in model.constants}
    result |= {variable.name for module in plain for variable in module.variables}
    result |= {command.action for module in plain for command in module.commands if command.action}
    for module in model.modules:
        if isinstance(module, syntax.ModuleRenaming):
            result |= {new for _, new in module.renaming}
    return result


def _rename(
    base: syntax.Module, renaming: syntax.ModuleRenaming, known: set[str], formulas: Inliner
) -> syntax.Module:
    mapping: dict[str, str] = {}
    for old, new in renaming.renaming:
        if old in mapping:
            raise syntax.Complaint(f"'{old}' is renamed twice in module '{renaming.name}'", renaming.position)
        if old in formulas:
            raise syntax.Complaint(
                f"'{old}' is a formula and cannot be renamed in module '{renaming.name}'",
                renaming.position,
                "formulas are written out first; rename the variables and constants they contain",
            )
        if old not in known:
            raise syntax.Complaint(
                f"module '{renaming.name}' renames '{old}', which is not a variable, constant or action",
                renaming.position,
                syntax.suggestion(old, known),
            )
        mapping[old] = new
    left_out = [variable.name for variable in base.variables if variable.name not in mapping]
    if left_out:
        raise syntax.Complaint(
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
        _renamed_clocks(base, mapping, renaming.position),
    )


def _renamed_clocks(
    base: syntax.Module, mapping: Mapping[str, str], position: syntax.Position
) -> tuple[str, ...]:
    clocks = tuple(mapping[name] for name in base.clocks)
    for old, new in mapping.items():
        if new in clocks and old not in base.clocks:
            raise syntax.Complaint(
                f"'{old}' becomes the clock '{new}', and was not compared as one", position
            )
    return clocks


def _with_new_names(command: syntax.GuardedCommand, mapping: dict[str, str]) -> syntax.GuardedCommand:
    def change(node: object) -> syntax.Assignment | None:
        if not isinstance(node, syntax.Assignment):
            return None
        return replace(node, name=mapping.get(node.name, node.name))

    action = command.action and mapping.get(command.action, command.action)
    return replace(command, action=action, updates=syntax.rewritten(command.updates, change))


def _rewritten(module: syntax.Module, rewrite: Rewrite) -> syntax.Module:
    """The module with every expression rewritten."""

    def change(node: object) -> syntax.Expression | None:
        return rewrite(node) if isinstance(node, syntax.Expression) else None

    return syntax.rewritten(module, change)


# Which commands move together: `system … endsystem`, or all modules in parallel where nothing is said.
#
# A composition is a set of synchronisations, each a visible action (None where it has none) and the modules
# that take part, with the action that each of them knows it by. They follow from the syntax alone, as in
# PRISM:
#
#     module M            for every action a of M: (a, M by a); the unlabelled commands move alone
#     L || R              L and R together on actions that both have, else each alone
#     L |[a,b]| R         together on a and b only; an action that one of them lacks is blocked
#     L ||| R             each alone
#     L / {a}             a becomes unlabelled
#     L {a <- b}          a is called b from here on
#
# An action stays in the alphabet of a part that blocks it, so that others wait for it in vain. Where an
# action is possible in several ways on both sides, which renamings bring about, every pair is one.

Actions = frozenset[str]

_MOST = 100_000
"""Synchronisations beyond this number are a mistake: every further renaming may square them."""

_DEEPEST = 250


def compose(
    modules: Sequence[syntax.Module], system: syntax.Composition | None
) -> tuple[Synchronisation, ...]:
    """The synchronisations, in the order in which their first commands are written."""
    parts = _Parts(modules)
    if system is None:
        result = parts.of_module(0)
        for number in range(1, len(modules)):
            result = _parallel(result, parts.of_module(number), None)
    else:
        result = parts.of(system)
        left_out = [module for i, module in enumerate(modules) if i not in parts.used]
        if left_out:
            raise syntax.Complaint(
                f"module '{left_out[0].name}' does not stand in system … endsystem",
                left_out[0].position,
                "every module stands there once",
            )

    def first_command(one: Synchronisation) -> tuple[int, int]:
        module, action = min(one.parts, key=lambda part: part[0])
        return module, [command.action for command in modules[module].commands].index(action)

    return tuple(sorted(result.ways, key=first_command))


def actions_of(synchronisations: Sequence[Synchronisation]) -> Actions:
    """The visible actions."""
    return frozenset(one.action for one in synchronisations if one.action is not None)


@dataclass(frozen=True)
class _ComposedPart:
    """What a part of a composition can do, and the actions that others may wait for."""

    ways: tuple[Synchronisation, ...]
    alphabet: Actions


class _Parts:
    """The synchronisations of the parts of one composition."""

    def __init__(self, modules: Sequence[syntax.Module]):
        self._modules = modules
        self._number = {module.name: i for i, module in enumerate(modules)}
        self.used: set[int] = set()

    def of_module(self, number: int) -> _ComposedPart:
        self.used.add(number)
        actions = dict.fromkeys(command.action for command in self._modules[number].commands)
        ways = tuple(Synchronisation(action, ((number, action),)) for action in actions)
        return _ComposedPart(ways, actions_of(ways))

    def of(self, part: syntax.Composition, depth: int = 0) -> _ComposedPart:
        if depth > _DEEPEST:
            raise syntax.Complaint(f"this composition is nested more than {_DEEPEST} deep", part.position)
        if isinstance(part, syntax.ModuleName):
            return self._name_part(part)
        if isinstance(part, syntax.Parallel):
            left, right = self.of(part.left, depth + 1), self.of(part.right, depth + 1)
            if len(left.ways) * len(right.ways) > _MOST:
                raise syntax.Complaint(
                    f"this composition has more than {_MOST:,} ways to synchronise", part.position
                )
            return _parallel(left, right, part.actions)
        assert isinstance(part, syntax.ActionRenaming)
        inner = self.of(part.inner, depth + 1)
        mapping: dict[str, str | None] = {}
        for old, new in part.renaming:
            if old in mapping:
                raise syntax.Complaint(f"action '{old}' is renamed twice", part.position)
            mapping[old] = new
        return _rename_composed(inner, mapping)

    def _name_part(self, part: syntax.ModuleName) -> _ComposedPart:
        number = self._number.get(part.name)
        if number is None:
            raise syntax.Complaint(
                f"there is no module '{part.name}'",
                part.position,
                syntax.suggestion(part.name, self._number, "modules"),
            )
        if number in self.used:
            raise syntax.Complaint(
                f"module '{part.name}' stands twice in system … endsystem",
                part.position,
                f"a copy under another name:  module {part.name}2 = {part.name} [ … ] endmodule",
            )
        return self.of_module(number)


def _parallel(left: _ComposedPart, right: _ComposedPart, actions: tuple[str, ...] | None) -> _ComposedPart:
    shared = left.alphabet & right.alphabet if actions is None else frozenset(actions)
    alone = [one for one in left.ways + right.ways if one.action is None or one.action not in shared]
    together: list[Synchronisation] = []
    for action in sorted(shared):
        sides = ([one for one in side.ways if one.action == action] for side in (left, right))
        together += [Synchronisation(action, one.parts + other.parts) for one, other in product(*sides)]
    return _ComposedPart((*alone, *together), left.alphabet | right.alphabet)


def _rename_composed(inner: _ComposedPart, mapping: Mapping[str, str | None]) -> _ComposedPart:
    """With other names for actions; None hides them."""

    def name_of(action: str | None) -> str | None:
        return None if action is None else mapping.get(action, action)

    ways = tuple(Synchronisation(name_of(one.action), one.parts) for one in inner.ways)
    return _ComposedPart(
        ways, frozenset(name for action in inner.alphabet if (name := name_of(action)) is not None)
    )


# Commands: guards, probabilities and updates, and who may write which variable.


class CommandExpander:
    """Expands the commands of all modules of one model."""

    def __init__(
        self,
        modules: Sequence[syntax.Module],
        variables: Sequence[StateVariable],
        expander: Expander,
        synchronisations: Sequence[Synchronisation],
        allows_free: bool = True,
    ):
        self.free: list[FreeUpdates] = []
        self._allows_free = allows_free
        self._expander = expander
        self._variables = {variable.name: variable for variable in variables}
        self._moving_together: dict[tuple[str, str | None], list[str]] = {}
        for one in synchronisations:
            if len(one.parts) > 1:
                names = [modules[number].name for number, _ in one.parts]
                for number, action in one.parts:
                    self._moving_together.setdefault((modules[number].name, action), names)
        self.is_interval = any(
            update.upper is not None
            for module in modules
            for command in module.commands
            for update in command.updates
        )

    def module(self, module: syntax.Module) -> syntax.Module:
        """The module with expanded commands."""
        commands = tuple(self._command(command, module) for command in module.commands)
        return syntax.Module(module.name, module.variables, commands, module.position)

    def _command(self, command: syntax.GuardedCommand, module: syntax.Module) -> syntax.GuardedCommand:
        guard = self._expander.guard(command.guard)
        marks = [self._free_name(update) for update in command.updates]
        written = command.updates
        if any(mark is not None for mark in marks):
            written = self._without_free(command, marks)
        updates = tuple(self._update(update, command, module) for update in written)
        if any(mark is not None for mark in marks):
            updates = self._with_free(command, updates, marks)
        return replace(command, guard=guard, updates=updates)

    def _free_name(self, update: syntax.CommandUpdate) -> str | None:
        """The name of a free distribution, "" for one without; None for another probability."""
        match update.probability:
            case syntax.Name(name) if name == syntax.FREE and self._allows_free and update.upper is None:
                return ""
            case syntax.Call(function, (syntax.Label(name),)) if function == syntax.FREE:
                return name
        return None

    def _without_free(
        self, command: syntax.GuardedCommand, marks: Sequence[str | None]
    ) -> tuple[syntax.CommandUpdate, ...]:
        """The updates of a command with free ones, whose probabilities are still to come."""
        if self.is_interval:
            raise syntax.Complaint(
                "a model has free probabilities or intervals, not both",
                command.position,
                "[0, 1] in place of free says the same here",
            )
        if len({mark for mark in marks if mark is not None}) > 1:
            raise syntax.Complaint("free probabilities of different names in one command", command.position)
        one = syntax.Literal(1, syntax.Type.INT)
        return tuple(
            update if mark is None else replace(update, probability=one)
            for update, mark in zip(command.updates, marks, strict=True)
        )

    def _with_free(
        self,
        command: syntax.GuardedCommand,
        updates: tuple[syntax.CommandUpdate, ...],
        marks: Sequence[str | None],
    ) -> tuple[syntax.CommandUpdate, ...]:
        """Free updates share out what the others leave: all but the last by a name, the last has the rest."""
        places = [place for place, mark in enumerate(marks) if mark is not None]
        shared, at = next(mark for mark in marks if mark is not None) or None, updates[places[0]].position
        names: tuple[str, ...]
        if known := next((one for one in self.free if shared and one.shared == shared), None):
            names = known.names
            if len(names) != len(places) - 1:
                raise syntax.Complaint(
                    f'free("{shared}") has {len(places)} outcomes here and {len(names) + 1} elsewhere',
                    at,
                    f"the other is in line {known.position.line}; those that share one have as many outcomes",
                )
        else:
            names = tuple(f"free {len(self.free)}.{i}" for i in range(1, len(places)))
            self.free.append(FreeUpdates(names, shared, at))
        one: syntax.Expression = syntax.Literal(1, syntax.Type.INT)
        left = one
        for update, mark in zip(updates, marks, strict=True):
            if mark is None:
                left = syntax.Binary("-", left, update.probability)
        own: list[syntax.Expression] = [syntax.Name(name) for name in names]
        last = one
        for symbol in own:
            last = syntax.Binary("-", last, symbol)
        result = list(updates)
        for place, share in zip(places, [*own, last], strict=True):
            probability = share if left is one else syntax.Binary("*", left, share)
            result[place] = replace(updates[place], probability=probability)
        return tuple(result)

    def _update(
        self, update: syntax.CommandUpdate, command: syntax.GuardedCommand, module: syntax.Module
    ) -> syntax.CommandUpdate:
        probability = self._probability(update.probability)
        upper = None if update.upper is None else self._probability(update.upper)
        if isinstance(probability, syntax.Literal) and isinstance(upper, syntax.Literal):
            low, high = Fraction(probability.value), Fraction(upper.value)
            if low > high:
                raise syntax.Complaint(f"the interval [{low}, {high}] is empty", update.position)
        written: set[str] = set()
        for assignment in update.assignments:
            if assignment.name in written:
                raise syntax.Complaint(f"one update assigns '{assignment.name}' twice", assignment.position)
            written.add(assignment.name)
        assignments = tuple(
            self._assignment(assignment, command, module) for assignment in update.assignments
        )
        return syntax.CommandUpdate(probability, upper, assignments, update.position)

    def _probability(self, expression: syntax.Expression) -> syntax.Expression:
        if not self.is_interval:
            return self._expander.polynomial(expression, "a probability", quotients=True)
        what = "a model with interval probabilities"
        return self._expander.plain(expression, syntax.Type.DOUBLE, "a probability", what)

    def _assignment(
        self, assignment: syntax.Assignment, command: syntax.GuardedCommand, module: syntax.Module
    ) -> syntax.Assignment:
        variable = self._variables.get(assignment.name)
        if variable is None:
            raise syntax.Complaint(
                f"'{assignment.name}' is not a variable, so it cannot be assigned",
                assignment.position,
                syntax.suggestion(assignment.name, self._variables, "variables"),
            )
        sharing = self._moving_together.get((module.name, command.action))
        if variable.module is None and sharing is not None:
            raise syntax.Complaint(
                f"global variable '{variable.name}' may not be assigned in a synchronised command: action"
                f" '{command.action}' belongs to modules {', '.join(sharing)}",
                assignment.position,
            )
        if variable.module not in (None, module.name):
            raise syntax.Complaint(
                f"module '{module.name}' may not assign '{variable.name}', a variable of module"
                f" '{variable.module}'",
                assignment.position,
                "every module can read it; only its own module can write it, unless it is global",
            )
        what = f"the new value of {variable.type.value} variable '{variable.name}'"
        value = self._expander.plain(assignment.value, variable.type, what, "an update")
        return syntax.Assignment(assignment.name, value, assignment.position)
