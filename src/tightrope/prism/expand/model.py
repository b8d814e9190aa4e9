"""From a model as written to a program ready to explore, with all that it declares.

Formulas and renamed modules are written out, constants get their values (from the file and from
`--const`), types are checked, and every expression is folded; parameters may remain in
probabilities and rewards, as polynomials. Every error says where in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from types import MappingProxyType

from tightrope.prism.expand.constants import Expander, resolve_constants
from tightrope.prism.expand.expressions import Inliner, fold, type_of, value_of
from tightrope.prism.expand.modules import CommandExpander, actions_of, compose, copy_out
from tightrope.prism.expand.program import Program, StateVariable, Synchronisation
from tightrope.prism.parse import syntax
from tightrope.prism.parse.digital_clocks import TIME, check_clocks, observe_clocks
from tightrope.prism.parse.syntax import Complaint, SourceText, names, position_of, suggestion


def expand(
    model: syntax.ModelFile,
    constants: Mapping[str, str] | None = None,
    synchronisations: tuple[Synchronisation, ...] | None = None,
) -> Program:
    """The program of a model; `constants` are the texts given by `--const`, by name.

    `synchronisations` are those of a model that comes from elsewhere, in place of what its text says; whoever
    makes them sees to it that no two modules that move together assign the same variable.
    """
    with SourceText(model.source, model.file).complaints():
        return _expand(model, constants or {}, synchronisations)


def _expand(
    model: syntax.ModelFile, given: Mapping[str, str], ready: tuple[Synchronisation, ...] | None
) -> Program:
    check_file(model)
    formulas = Inliner({formula.name: formula.expression for formula in model.formulas}, "formulas")
    modules = copy_out(model, formulas)
    if model.has_clocks:
        check_clocks(model, modules)
        model = observe_clocks(model, modules)
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
    if model.has_clocks:
        _check_time(modules, synchronisations)
    checked = synchronisations if ready is None else ()
    commands = CommandExpander(modules, variables, expander, checked, allows_free=syntax.FREE not in scope)
    expanded = _modules(model, modules, commands)
    return Program(
        type=model.type,
        parameters=constants.parameters,
        variables=variables,
        modules=expanded,
        labels=tuple(_label(label, expander) for label in model.labels),
        rewards=_rewards(model, actions_of(synchronisations), expander, commands.is_interval),
        constants=MappingProxyType(constants.plain()),
        is_interval=commands.is_interval,
        source=model.source,
        file=model.file,
        synchronisations=synchronisations,
        initial_values=_initial_values(model, variables, expander),
        formulas=MappingProxyType(expanded_formulas),
        free=tuple(commands.free),
        clocks=frozenset(name for module in modules for name in module.clocks),
        observables=tuple(_observable(each, expander, variable_types, scope) for each in model.observables),
    )


def _check_time(modules: Sequence[syntax.Module], ways: Sequence[Synchronisation]) -> None:
    """All modules in which time passes let it pass together, whatever `system … endsystem` says."""
    timed = [i for i, module in enumerate(modules) if any(command.is_time for command in module.commands)]
    passing = [way for way in ways if any(action == TIME for _, action in way.parts)]
    if [(way.action, sorted(number for number, _ in way.parts)) for way in passing] != [(TIME, timed)]:
        raise Complaint(
            "modules with clocks share the passage of time, and this composition does not",
            modules[timed[0]].position,
            "compose them by || and leave the action 'time' as it is",
        )


def _variables(
    model: syntax.ModelFile, modules: tuple[syntax.Module, ...], expander: Expander
) -> tuple[StateVariable, ...]:
    has_init = model.init is not None
    declared = [(None, model.globals), *((module.name, module.variables) for module in modules)]
    variables = [state_variable(one, name, expander, has_init) for name, own in declared for one in own]
    if not variables:
        raise Complaint("the model has no variables", modules[0].position)
    return tuple(variables)


def _initial_values(
    model: syntax.ModelFile, variables: tuple[StateVariable, ...], expander: Expander
) -> tuple[tuple[int, ...], ...]:
    if model.init is None:
        return (tuple(variable.initial for variable in variables),)
    predicate = expander.plain(
        model.init, syntax.Type.BOOL, "the condition between init and endinit", "init … endinit"
    )
    return initial_states(predicate, variables)


def _modules(
    model: syntax.ModelFile, modules: tuple[syntax.Module, ...], commands: CommandExpander
) -> tuple[syntax.Module, ...]:
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


def _observable(
    seen: syntax.Observable,
    expander: Expander,
    variables: Mapping[str, syntax.Type],
    scope: Mapping[str, syntax.Type],
) -> syntax.Observable:
    written = seen.expression
    if seen.is_variable and seen.name not in variables:
        raise Complaint(
            f"observable '{seen.name}' is not a variable",
            seen.position,
            suggestion(seen.name, variables, "variables"),
        )
    expanded, what = expander.formula(written), f"observable '{seen.name}'"
    kind = type_of(expanded, scope)
    if kind is syntax.Type.DOUBLE:
        raise Complaint(
            f"{what} is a real number: what is seen is true, false or a whole number", seen.position
        )
    return syntax.Observable(seen.name, expander.plain(expanded, kind, what, what), seen.position)


def _label(label: syntax.LabelDefinition, expander: Expander) -> syntax.LabelDefinition:
    expression = expander.plain(label.expression, syntax.Type.BOOL, f'label "{label.name}"', "a label")
    return syntax.LabelDefinition(label.name, expression, label.position)


def _rewards(
    model: syntax.ModelFile, actions: frozenset[str], expander: Expander, is_interval: bool
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
        return replace(item, guard=guard, reward=reward)

    return tuple(
        syntax.Rewards(rewards.name, tuple(item_of(item) for item in rewards.items), rewards.position)
        for rewards in model.rewards
    )


# What a model declares: one name for one thing, and the variables with their ranges and first values.
#
# First states may also be those that satisfy `init … endinit`. Conjuncts of the form `x = 3`, `b` or `!b` fix
# a variable at once; their values are put into the other conjuncts, again and again. What then remains is
# decided by trying all values of the variables it mentions, as long as they are not too many. Variables that
# nothing speaks of may have any value.

BUILT_IN_LABELS = ("init", "deadlock")

_LARGEST = 2**31 - 1
"""States keep their variables as 32-bit integers."""


def check_file(model: syntax.ModelFile) -> None:
    """Complain about double declarations that show before renamed modules are copied out."""
    _once([*model.constants, *model.formulas], "'{}' is declared twice")
    _once(model.modules, "there are two modules '{}'")
    check_labels(model.labels)
    _once(model.observables, "'{}' is observed twice")
    _once(model.rewards, 'there are two reward structures "{}"')


def check_variables(model: syntax.ModelFile, modules: Iterable[syntax.Module]) -> None:
    """Complain about variables that share a name with each other, a constant or a formula."""
    own = (variable for module in modules for variable in module.variables)
    _once([*model.constants, *model.formulas, *model.globals, *own], "'{}' is declared twice")


def find_used_names(model: syntax.ModelFile, modules: tuple[syntax.Module, ...]) -> frozenset[str]:
    """Every name that stands in an expression of the file, renamed modules copied out."""
    parts = syntax.parts_of((replace(model, modules=()), modules))
    return frozenset(part.name for part in parts if isinstance(part, syntax.Name))


def check_labels(labels: Iterable[syntax.LabelDefinition]) -> None:
    """Complain about labels defined twice, or that every model has anyway."""
    labels = list(labels)
    for label in labels:
        if label.name in BUILT_IN_LABELS:
            raise Complaint(
                f'label "{label.name}" cannot be defined: every model has it already', label.position
            )
    _once(labels, 'label "{}" is defined twice')


Declared = (
    syntax.Constant | syntax.Formula | syntax.VariableDeclaration | syntax.LabelDefinition
    | syntax.Observable | syntax.Rewards | syntax.Module | syntax.ModuleRenaming
)  # fmt: skip


def _once(declared: Iterable[Declared], message: str) -> None:
    """Complain about two of the same name, which are declared at some position each."""
    first: dict[str, syntax.Position] = {}
    for one in declared:
        name = one.name or ""
        if name in first:
            raise Complaint(message.format(name), one.position, f"the first is in line {first[name].line}")
        first[name] = one.position


def state_variable(
    variable: syntax.VariableDeclaration, module: str | None, expander: Expander, has_init: bool
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
    is_unbounded = variable.type is syntax.Type.INT and variable.low is None
    initial = low
    if is_unbounded:
        low, high = -_LARGEST, _LARGEST
    if variable.initial is not None:
        what = f"the initial value of '{name}'"
        if variable.type is syntax.Type.INT:
            initial = expander.whole(variable.initial, what, "an initial value")
        else:
            initial = int(expander.constant(variable.initial, variable.type, what, "an initial value"))
        if not low <= initial <= high:
            raise Complaint(
                f"the initial value {initial} of '{name}' is outside its range [{low}..{high}]",
                position_of(variable.initial),
            )
    return StateVariable(name, variable.type, low, high, initial, module, variable.position, is_unbounded)


def _bound(expression: syntax.Expression, name: str, expander: Expander) -> int:
    what = f"a bound of the range of '{name}'"
    value = expander.whole(expression, what, "the range of a variable")
    if abs(value) > _LARGEST:
        raise Complaint(f"{what} is {value}, beyond 32-bit integers", position_of(expression))
    return value


_MOST_CANDIDATES = 200_000
_MOST_STATES = 1_000_000


def initial_states(
    predicate: syntax.Expression, variables: Sequence[StateVariable]
) -> tuple[tuple[int, ...], ...]:
    """The values of all variables in every state in which the predicate holds, the smallest first."""
    by_name = {variable.name: variable for variable in variables}
    fixed = {v.name: _literal(v, v.low) for v in variables if v.low == v.high}
    conjuncts = _conjuncts(predicate)
    while True:
        conjuncts = [fold(conjunct, fixed) for conjunct in conjuncts]
        result = [pair for conjunct in conjuncts if (pair := _equation(conjunct))]
        if not result:
            break
        for name, value in result:
            variable = by_name[name]
            if not variable.low <= value <= variable.high:
                raise _none(predicate)
            fixed.setdefault(name, _literal(variable, value))
    open_conjuncts = [c for c in conjuncts if not (isinstance(c, syntax.Literal) and c.value is True)]
    if any(isinstance(conjunct, syntax.Literal) for conjunct in open_conjuncts):
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


def _conjuncts(predicate: syntax.Expression) -> list[syntax.Expression]:
    if isinstance(predicate, syntax.Binary) and predicate.operator == "&":
        return _conjuncts(predicate.left) + _conjuncts(predicate.right)
    return [predicate]


def _equation(conjunct: syntax.Expression) -> tuple[str, int] | None:
    """The variable and value of `x = 3`, `3 = x`, `b` or `!b`."""
    if isinstance(conjunct, syntax.Name):
        return conjunct.name, 1
    if isinstance(conjunct, syntax.Unary) and isinstance(conjunct.operand, syntax.Name):
        return conjunct.operand.name, 0
    if isinstance(conjunct, syntax.Binary) and conjunct.operator in ("=", "<=>"):
        for one, other in ((conjunct.left, conjunct.right), (conjunct.right, conjunct.left)):
            match one, other:
                case syntax.Name(name), syntax.Literal(value) if value == int(value):
                    return name, int(value)
    return None


def _try_values(
    conjuncts: list[syntax.Expression], variables: dict[str, StateVariable], predicate: syntax.Expression
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
    result = []
    for values in product(*(range(v.low, v.high + 1) for v in mentioned)):
        literals = {v.name: _literal(v, k) for v, k in zip(mentioned, values, strict=True)}
        if all(value_of(fold(conjunct, literals)) for conjunct in conjuncts):
            result.append(values)
    if not result:
        raise _none(predicate)
    return [variable.name for variable in mentioned], result


def _literal(variable: StateVariable, value: int) -> syntax.Literal:
    is_bool = variable.type is syntax.Type.BOOL
    return syntax.Literal(bool(value) if is_bool else value, variable.type, variable.position)


def _none(predicate: syntax.Expression) -> Complaint:
    return Complaint("no state satisfies init … endinit", position_of(predicate))
