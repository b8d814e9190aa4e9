"""Commands: guards, probabilities and updates, and who may write which variable."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tightrope.prism.expand.expressions import Expander
from tightrope.prism.expand.program import StateVariable, Synchronisation
from tightrope.prism.parse.diagnostics import Complaint, suggestion
from tightrope.prism.parse.syntax import (
    Assignment,
    Command,
    Expression,
    Literal,
    Module,
    Type,
    Update,
)


class CommandExpander:
    """Expands the commands of all modules of one model."""

    def __init__(
        self,
        modules: Sequence[Module],
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

    def module(self, module: Module) -> Module:
        """The module with expanded commands."""
        commands = tuple(self._command(command, module) for command in module.commands)
        return Module(module.name, module.variables, commands, module.position)

    def _command(self, command: Command, module: Module) -> Command:
        guard = self._expander.plain(command.guard, Type.BOOL, "a guard", "a guard")
        updates = tuple(self._update(update, command, module) for update in command.updates)
        return Command(command.action, guard, updates, command.position)

    def _update(self, update: Update, command: Command, module: Module) -> Update:
        probability = self._probability(update.probability)
        upper = None if update.upper is None else self._probability(update.upper)
        if isinstance(probability, Literal) and isinstance(upper, Literal):
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
        return Update(probability, upper, assignments, update.position)

    def _probability(self, expression: Expression) -> Expression:
        if not self._is_interval:
            return self._expander.polynomial(expression, "a probability", quotients=True)
        what = "a model with interval probabilities"
        return self._expander.plain(expression, Type.DOUBLE, "a probability", what)

    def _assignment(self, assignment: Assignment, command: Command, module: Module) -> Assignment:
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
        return Assignment(assignment.name, value, assignment.position)

    def _check_global(
        self, variable: StateVariable, assignment: Assignment, command: Command, module: Module
    ) -> None:
        sharing = self._moving_together.get((module.name, command.action))
        if sharing is not None:
            raise Complaint(
                f"global variable '{variable.name}' may not be assigned in a synchronised command: action"
                f" '{command.action}' belongs to modules {', '.join(sharing)}",
                assignment.position,
            )
