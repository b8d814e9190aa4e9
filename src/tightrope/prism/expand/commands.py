"""Commands: guards, probabilities and updates, and who may write which variable."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tightrope.prism.expand.expressions import Expander
from tightrope.prism.expand.program import StateVariable, Synchronisation
from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint, suggestion


class CommandExpander:
    """Expands the commands of all modules of one model."""

    def __init__(
        self,
        modules: Sequence[syntax.Module],
        variables: Sequence[StateVariable],
        expander: Expander,
        synchronisations: Sequence[Synchronisation],
    ):
        self._expander = expander
        self._variables = {variable.name: variable for variable in variables}
        self._moving_together: dict[tuple[str, str | None], list[str]] = {}
        for one in synchronisations:
            if len(one.parts) > 1:
                names = [modules[number].name for number, _ in one.parts]
                for number, action in one.parts:
                    self._moving_together.setdefault((modules[number].name, action), names)
        self._is_interval = any(
            update.upper is not None
            for module in modules
            for command in module.commands
            for update in command.updates
        )

    def module(self, module: syntax.Module) -> syntax.Module:
        """The module with expanded commands."""
        commands = tuple(self._command(command, module) for command in module.commands)
        return syntax.Module(module.name, module.variables, commands, module.position)

    def _command(self, command: syntax.Command, module: syntax.Module) -> syntax.Command:
        guard = self._expander.plain(command.guard, syntax.Type.BOOL, "a guard", "a guard")
        updates = tuple(self._update(update, command, module) for update in command.updates)
        return syntax.Command(command.action, guard, updates, command.position)

    def _update(self, update: syntax.Update, command: syntax.Command, module: syntax.Module) -> syntax.Update:
        probability = self._probability(update.probability)
        upper = None if update.upper is None else self._probability(update.upper)
        if isinstance(probability, syntax.Literal) and isinstance(upper, syntax.Literal):
            low, high = Fraction(probability.value), Fraction(upper.value)
            if low > high:
                raise Complaint(f"the interval [{low}, {high}] is empty", update.position)
        written: set[str] = set()
        for assignment in update.assignments:
            if assignment.name in written:
                raise Complaint(f"one update assigns '{assignment.name}' twice", assignment.position)
            written.add(assignment.name)
        assignments = tuple(
            self._assignment(assignment, command, module) for assignment in update.assignments
        )
        return syntax.Update(probability, upper, assignments, update.position)

    def _probability(self, expression: syntax.Expression) -> syntax.Expression:
        if not self._is_interval:
            return self._expander.polynomial(expression, "a probability", quotients=True)
        what = "a model with interval probabilities"
        return self._expander.plain(expression, syntax.Type.DOUBLE, "a probability", what)

    def _assignment(
        self, assignment: syntax.Assignment, command: syntax.Command, module: syntax.Module
    ) -> syntax.Assignment:
        variable = self._variables.get(assignment.name)
        if variable is None:
            raise Complaint(
                f"'{assignment.name}' is not a variable, so it cannot be assigned",
                assignment.position,
                suggestion(assignment.name, self._variables, "variables"),
            )
        if variable.module is None:
            self._check_global(variable, assignment, command, module)
        elif variable.module != module.name:
            raise Complaint(
                f"module '{module.name}' may not assign '{variable.name}', a variable of module"
                f" '{variable.module}'",
                assignment.position,
                "every module can read it; only its own module can write it, unless it is global",
            )
        what = f"the new value of {variable.type.value} variable '{variable.name}'"
        value = self._expander.plain(assignment.value, variable.type, what, "an update")
        return syntax.Assignment(assignment.name, value, assignment.position)

    def _check_global(
        self,
        variable: StateVariable,
        assignment: syntax.Assignment,
        command: syntax.Command,
        module: syntax.Module,
    ) -> None:
        sharing = self._moving_together.get((module.name, command.action))
        if sharing is not None:
            raise Complaint(
                f"global variable '{variable.name}' may not be assigned in a synchronised command: action"
                f" '{command.action}' belongs to modules {', '.join(sharing)}",
                assignment.position,
            )
