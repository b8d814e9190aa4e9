"""Writing a program of the PRISM language as JANI: modules as automata of one location, nothing unfolded.

Constants have their values by then, so only parameters are left, with no domain: JANI has no place for one.
A label is a transient variable of type bool, a reward structure one of type real: a location says what a
state earns, edges what a choice earns, as Storm writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tightrope.errors import InputError
from tightrope.io.atomic import atomic_write
from tightrope.io.jani.declarations import name_in_comment
from tightrope.io.written_by import JANI_MARK
from tightrope.prism.expand.program import Program, StateVariable
from tightrope.prism.parse import syntax

_LOCATION = "here"
_OPERATORS = {"&": "∧", "|": "∨", "=>": "⇒", "<=>": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
_CALLS = {"mod": "%"}


def write_jani(program: Program, path: str | Path) -> None:
    """The file appears whole or not at all."""
    content = _Writer(program).content()
    with atomic_write(Path(path)) as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")


class _Writer:
    def __init__(self, program: Program):
        if program.is_interval:
            raise InputError("JANI has no interval probabilities", hint="write DRN or UMB, which have")
        if len(program.initial_values) > 1:
            raise InputError(
                "several initial states are not written as JANI", hint="write DRN or UMB, which have them"
            )
        self._program = program
        self._has_rates = program.type is syntax.ModelType.CTMC
        names = {variable.name for variable in program.variables} | set(program.parameters)
        self._labels = {label.name: _free(label.name, names) for label in program.labels}
        self._rewards = [_free(each.name or "reward", names) for each in program.rewards]

    def content(self) -> dict[str, Any]:
        program = self._program
        actions = dict.fromkeys(
            [name for one in program.synchronisations for _, name in one.parts if name]
            + [one.action for one in program.synchronisations if one.action]
        )
        content: dict[str, Any] = {
            "jani-version": 1,
            "name": Path(program.file).stem or "model",
            "metadata": {"description": JANI_MARK},
            "type": program.type.value,
            "features": ["derived-operators"],
        }
        if not self._has_rates:
            content["features"].append("state-exit-rewards")
        if actions:
            content["actions"] = [{"name": name} for name in actions]
        if program.parameters:
            content["constants"] = [{"name": name, "type": "real"} for name in program.parameters]
        content["variables"] = [
            *(_variable(each, start) for each, start in zip(program.variables, self._starts(), strict=True)),
            *(_transient(name, "bool", False, title) for title, name in self._labels.items()),
            *(
                _transient(name, "real", 0, rewards.name or "")
                for name, rewards in zip(self._rewards, program.rewards, strict=True)
            ),
        ]
        content["automata"] = self._automata()
        content["system"] = self._system()
        return content

    def _starts(self) -> Sequence[int]:
        return self._program.initial_values[0]

    def _automata(self) -> list[dict[str, Any]]:
        """The modules, in which the commands of an action that earns something stand for themselves."""
        result = []
        for number, module in enumerate(self._program.modules):
            location: dict[str, Any] = {"name": _LOCATION}
            if number == 0 and (values := self._in_state()):
                location["transient-values"] = values
            result.append(
                {
                    "name": module.name,
                    "locations": [location],
                    "initial-locations": [_LOCATION],
                    "edges": [e for command in module.commands for e in self._edges(number, command)],
                }
            )
        return result

    def _in_state(self) -> list[dict[str, Any]]:
        values = [
            {"ref": self._labels[label.name], "value": json_expression(label.expression)}
            for label in self._program.labels
        ]
        for name, rewards in zip(self._rewards, self._program.rewards, strict=True):
            items = [item for item in rewards.items if not item.is_choice]
            if items:
                values.append({"ref": name, "value": _total(items)})
        return values

    def _edges(self, module: int, command: syntax.Command) -> list[dict[str, Any]]:
        """One edge; in continuous time one for each update, as their rates compete."""
        if not self._has_rates:
            return [self._edge(module, command)]
        edges = []
        for update in command.updates:
            edge = self._edge(module, replace(command, updates=(update,)))
            (destination,) = edge["destinations"]
            edges.append({**edge, "rate": destination.pop("probability")})
        return edges

    def _edge(self, module: int, command: syntax.Command) -> dict[str, Any]:
        earned = self._list_earnings(module, command)
        edge: dict[str, Any] = {"location": _LOCATION}
        if command.action is not None:
            edge["action"] = command.action
        edge["guard"] = {"exp": json_expression(command.guard)}
        edge["destinations"] = []
        for update in command.updates:
            destination: dict[str, Any] = {
                "location": _LOCATION,
                "probability": {"exp": json_expression(update.probability)},
            }
            assignments = [{"ref": a.name, "value": json_expression(a.value)} for a in update.assignments]
            if assignments or earned:
                destination["assignments"] = [*assignments, *earned]
            edge["destinations"].append(destination)
        return edge

    def _list_earnings(self, module: int, command: syntax.Command) -> list[dict[str, Any]]:
        """What the synchronisations earn that a command takes part in, said by the first of their modules."""
        taking_part = [one for one in self._program.synchronisations if (module, command.action) in one.parts]
        told = [one.action for one in taking_part if one.parts[0][0] == module]
        if not told:
            return []
        found = []
        for name, rewards in zip(self._rewards, self._program.rewards, strict=True):
            sums = [[i for i in rewards.items if i.is_choice and i.action == action] for action in told]
            if not any(sums):
                continue
            if (len(taking_part) > 1 and any(each != sums[0] for each in sums)) or len(told) < len(
                taking_part
            ):
                raise InputError(
                    f"the reward structure '{rewards.name or ''}' goes by what renamed actions earn, which "
                    "is not written as JANI",
                    hint="write DRN or UMB, which hold every choice",
                )
            found.append({"ref": name, "value": _total(sums[0])})
        return found

    def _system(self) -> dict[str, Any]:
        size = len(self._program.modules)
        syncs = []
        for one in self._program.synchronisations:
            if len(one.parts) == 1 and one.parts[0][1] is None:
                continue
            taking_part: list[str | None] = [None] * size
            for number, action in one.parts:
                taking_part[number] = action
            sync: dict[str, Any] = {"synchronise": taking_part}
            if one.action is not None:
                sync["result"] = one.action
            syncs.append(sync)
        elements = [{"automaton": module.name} for module in self._program.modules]
        return {"elements": elements, "syncs": syncs}


def json_expression(expression: syntax.Expression) -> Any:
    """An expression as JANI has it; numbers are decimals where they are exact, else quotients."""
    match expression:
        case syntax.Literal(value):
            return _number(value)
        case syntax.Name(name):
            return name
        case syntax.Unary("!", operand):
            return {"op": "¬", "exp": json_expression(operand)}
        case syntax.Unary(_, operand):
            return {"op": "-", "left": 0, "right": json_expression(operand)}
        case syntax.Binary(operator, left, right):
            return _apply(_OPERATORS.get(operator, operator), left, right)
        case syntax.Conditional(condition, then, otherwise):
            keys = ("if", "then", "else")
            parts = (json_expression(each) for each in (condition, then, otherwise))
            return {"op": "ite", **dict(zip(keys, parts, strict=True))}
        case syntax.Call("round", (operand,)):
            half = syntax.Literal(Fraction(1, 2), syntax.Type.DOUBLE)
            return {"op": "floor", "exp": json_expression(syntax.Binary("+", operand, half))}
        case syntax.Call(function, (operand,)):
            return {"op": function, "exp": json_expression(operand)}
        case syntax.Call(function, arguments):
            result = json_expression(arguments[0])
            for each in arguments[1:]:
                result = {
                    "op": _CALLS.get(function, function),
                    "left": result,
                    "right": json_expression(each),
                }
            return result
    raise AssertionError(expression)


def _apply(operator: str, left: syntax.Expression, right: syntax.Expression) -> dict[str, Any]:
    return {"op": operator, "left": json_expression(left), "right": json_expression(right)}


def _number(value: int | Fraction | bool) -> Any:
    if isinstance(value, bool | int):
        return value
    short = float(value)
    if Fraction(repr(short)) == value:
        return short
    return {"op": "/", "left": value.numerator, "right": value.denominator}


def _total(items: Sequence[syntax.RewardItem]) -> Any:
    """Σ of the rewards whose guard holds."""
    total: syntax.Expression | None = None
    for item in items:
        zero = syntax.Literal(0, syntax.Type.INT)
        part = (
            item.reward
            if isinstance(item.guard, syntax.Literal) and item.guard.value is True
            else syntax.Conditional(item.guard, item.reward, zero)
        )
        total = part if total is None else syntax.Binary("+", total, part)
    assert total is not None
    return json_expression(total)


def _variable(variable: StateVariable, start: int) -> dict[str, Any]:
    if variable.type is syntax.Type.BOOL:
        return {"name": variable.name, "type": "bool", "initial-value": bool(start)}
    kind: Any = "int"
    if not variable.is_unbounded:
        bounds: Mapping[str, int] = {"lower-bound": variable.low, "upper-bound": variable.high}
        kind = {"kind": "bounded", "base": "int", **bounds}
    return {"name": variable.name, "type": kind, "initial-value": start}


def _transient(name: str, kind: str, value: Any, title: str) -> dict[str, Any]:
    made = {"name": name, "type": kind, "transient": True, "initial-value": value}
    return made if title == name else {**made, "comment": name_in_comment(title)}


def _free(name: str, taken: set[str]) -> str:
    """The name, or one near to it that nothing else has."""
    found = name
    while found in taken:
        found += "_"
    taken.add(found)
    return found
