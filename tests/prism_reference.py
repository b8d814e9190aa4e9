"""A program explored state by state with `Fraction` and `Polynomial`: slow, short and obvious."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from tightrope.model.polynomial import Polynomial
from tightrope.prism.expand.program import Program
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    GuardedCommand,
    Literal,
    ModelType,
    Name,
    Type,
    Unary,
)

State = tuple[int, ...]
Distribution = dict[State, Polynomial]


class Undefined(Exception):
    """The expression has no value in this state."""


def value(expression: Expression, names: Mapping[str, Any]) -> Any:
    """bool, int, Fraction or Polynomial; `names` has variables and parameters."""
    match expression:
        case Literal(v, kind):
            return {Type.INT: int, Type.DOUBLE: Fraction, Type.BOOL: bool}[kind](v)
        case Name(name):
            return names[name]
        case Unary("-", operand):
            return -value(operand, names)
        case Unary("!", operand):
            return not value(operand, names)
        case Conditional(condition, then, otherwise):
            return value(then if value(condition, names) else otherwise, names)
        case Binary("&", left, right):
            return value(left, names) and value(right, names)
        case Binary("|", left, right):
            return value(left, names) or value(right, names)
        case Binary("=>", left, right):
            return not value(left, names) or value(right, names)
        case Binary(operator, left, right):
            return _binary(operator, value(left, names), value(right, names))
        case Call(function, arguments):
            return _call(function, [value(argument, names) for argument in arguments])
    raise AssertionError(expression)


def _binary(operator: str, a: Any, b: Any) -> Any:
    if operator in "+-*" and (isinstance(a, Polynomial) or isinstance(b, Polynomial)):
        a, b = _polynomial(a), _polynomial(b)
    if operator == "/":
        if b == 0:
            raise Undefined
        return a / Fraction(b) if isinstance(a, Polynomial) else Fraction(a) / Fraction(b)
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "=": lambda: a == b,
        "<=>": lambda: a == b,
        "!=": lambda: a != b,
        "<": lambda: a < b,
        "<=": lambda: a <= b,
        ">": lambda: a > b,
        ">=": lambda: a >= b,
    }[operator]()


def _call(function: str, values: list[Any]) -> Any:
    match function:
        case "min" | "max":
            best = min(values) if function == "min" else max(values)
            return Fraction(best) if any(isinstance(v, Fraction) for v in values) else best
        case "floor":
            return math.floor(values[0])
        case "ceil":
            return math.ceil(values[0])
        case "round":
            return math.floor(values[0] + Fraction(1, 2))
        case "mod":
            if values[1] <= 0:
                raise Undefined
            return values[0] % values[1]
        case "pow":
            if values[1] < 0 and (isinstance(values[0], int) or values[0] == 0):
                raise Undefined
            return values[0] ** values[1]
    raise AssertionError(function)


def _polynomial(a: Any) -> Polynomial:
    return a if isinstance(a, Polynomial) else Polynomial.constant(a)


@dataclass
class Reference:
    """Choices by state as a multiset of (action, distribution); labels and rewards by state."""

    choices: dict[State, Counter[Any]] = field(default_factory=dict)
    deadlocks: set[State] = field(default_factory=set)
    labels: dict[str, set[State]] = field(default_factory=dict)
    state_rewards: dict[str, dict[State, Fraction]] = field(default_factory=dict)


def explore_slowly(program: Program) -> Reference:
    names = [variable.name for variable in program.variables]
    parameters = {name: Polynomial.variable(i) for i, name in enumerate(program.parameters)}
    booleans = {v.name for v in program.variables if v.type is Type.BOOL}
    result = Reference()
    queue, seen = list(program.initial_values), set(program.initial_values)
    while queue:
        state = queue.pop()
        scope: dict[str, Any] = {
            name: bool(v) if name in booleans else v for name, v in zip(names, state, strict=True)
        }
        scope |= parameters
        choices = _choices(program, scope)
        if not choices:
            result.deadlocks.add(state)
            choices = [("", {state: Polynomial.constant(1)})]
        if program.type is ModelType.DTMC:
            mixed: Distribution = {}
            for _, distribution in choices:
                for successor, probability in distribution.items():
                    _add(mixed, successor, probability / len(choices))
            choices = [("", mixed)]
        result.choices[state] = Counter((a, frozenset(d.items())) for a, d in choices)
        for _, distribution in choices:
            for successor in distribution:
                if successor not in seen:
                    seen.add(successor)
                    queue.append(successor)
        for label in program.labels:
            if value(label.expression, scope):
                result.labels.setdefault(label.name, set()).add(state)
        for rewards in program.rewards:
            total = sum(
                Fraction(value(item.reward, scope))
                for item in rewards.items
                if not item.is_choice and value(item.guard, scope)
            )
            result.state_rewards.setdefault(rewards.name or "", {})[state] = Fraction(total)
    return result


def _choices(program: Program, scope: dict[str, Any]) -> list[tuple[str, Distribution]]:
    found: list[tuple[str, Distribution]] = []
    actions: list[str] = []
    for module in program.modules:
        for command in module.commands:
            if command.action is None:
                if value(command.guard, scope):
                    found.append(("", _joint(program, [command], scope)))
            elif command.action not in actions:
                actions.append(command.action)
    for action in actions:
        sides = [
            [c for c in module.commands if c.action == action and value(c.guard, scope)]
            for module in program.modules
            if any(c.action == action for c in module.commands)
        ]
        found += [(action, _joint(program, list(chosen), scope)) for chosen in product(*sides)]
    return found


def _joint(program: Program, commands: list[GuardedCommand], scope: dict[str, Any]) -> Distribution:
    result: Distribution = {}
    for updates in product(*(command.updates for command in commands)):
        probability = Polynomial.constant(1)
        for update in updates:
            probability = probability * _polynomial(value(update.probability, scope))
        if not probability.terms:
            continue
        new = {v.name: int(scope[v.name]) for v in program.variables}
        for update in updates:
            for assignment in update.assignments:
                new[assignment.name] = int(value(assignment.value, scope))
        _add(result, tuple(new.values()), probability)
    return result


def _add(distribution: Distribution, state: State, probability: Polynomial) -> None:
    distribution[state] = distribution.get(state, Polynomial({})) + probability


def choices_of(model: Any, action_names: bool = True) -> dict[State, Counter[Any]]:
    """The same view of an explored model."""
    structure = model.structure
    columns = [column.astype(int).tolist() for column in structure.valuations.values()]
    states: list[State] = list(zip(*columns, strict=True)) if columns else [()] * structure.states
    result: dict[State, Counter[Any]] = {}
    for s, state in enumerate(states):
        here: Counter[Any] = Counter()
        for c in range(structure.choice_start[s], structure.choice_start[s + 1]):
            row = range(structure.transition_start[c], structure.transition_start[c + 1])
            assert len({int(structure.successor[t]) for t in row}) == len(row)
            distribution = frozenset(
                (states[structure.successor[t]], model.expressions.polynomial(int(model.expression[t])))
                for t in row
            )
            here[(structure.action_name(c) if action_names else "", distribution)] += 1
        result[state] = here
    return result
