"""Write JANI files, from programs and from models of states and transitions.

Modules become automata with one location; constants have values, so only parameters remain. Labels are
transient variables of type bool, reward structures of type real. A model of states becomes a program of one
module, with the model's variables if they distinguish states, else the index; every choice is a command.
Numbers are exact; doubles as shortest decimals must sum to exactly 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from tightrope.atomic import atomic_write
from tightrope.errors import InputError
from tightrope.io.jani.nodes import CALLED, anywhere
from tightrope.io.output import JANI_MARK
from tightrope.io.rows import decimal_text, exit_rewards
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import UNLABELLED, ParametricReward, Structure
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program, StateVariable
from tightrope.prism.parse import syntax
from tightrope.prism.parse.parser import parse_model
from tightrope.provenance import CLOCK, named_lines, origin_lines

Json = dict[str, object]
"""An object of the file."""

_LOCATION = "here"
_OPERATORS = {"&": "∧", "|": "∨", "=>": "⇒", "<=>": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
_CALLS = {"mod": "%"}


def write_jani(program: Program, path: str | Path) -> None:
    """The file appears whole or not at all."""
    content = _ProgramWriter(program).content()
    with atomic_write(Path(path)) as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")


class _ProgramWriter:
    def __init__(self, program: Program):
        if program.is_interval:
            raise InputError("JANI has no interval probabilities", hint="write DRN or UMB, which have")
        if program.free:
            raise InputError(
                "JANI has no unconstrained distributions",
                hint="write DRN, which has them as parameters, and that as JANI",
            )
        if len(program.initial_values) > 1:
            raise InputError(
                "several initial states are not written as JANI", hint="write DRN or UMB, which have them"
            )
        self._program = program
        self._has_rates = program.type is syntax.ModelType.CTMC
        names = {variable.name for variable in program.variables} | set(program.parameters)
        self._labels = {label.name: _free(label.name, names) for label in program.labels}
        self._rewards = [_free(each.name or "reward", names) for each in program.rewards]

    def content(self) -> Json:
        program = self._program
        actions = dict.fromkeys(
            [name for one in program.synchronisations for _, name in one.parts if name]
            + [one.action for one in program.synchronisations if one.action]
        )
        clocks = named_lines(CLOCK, program.clocks)
        features = ["derived-operators"] + ["state-exit-rewards"] * (not self._has_rates)
        content: Json = {
            "jani-version": 1,
            "name": Path(program.file).stem or "model",
            "metadata": {"description": "\n".join([JANI_MARK, *origin_lines(program.source), *clocks])},
            "type": program.type.value,
            "features": features,
        }
        if actions:
            content["actions"] = [{"name": name} for name in actions]
        if program.parameters:
            content["constants"] = [{"name": name, "type": "real"} for name in program.parameters]
        content["variables"] = [
            *map(_variable, program.variables, program.initial_values[0]),
            *(_transient(name, "bool", False, title) for title, name in self._labels.items()),
            *(
                _transient(name, "real", 0, rewards.name or "")
                for name, rewards in zip(self._rewards, program.rewards, strict=True)
            ),
        ]
        content["automata"] = self._automata()
        content["system"] = self._system()
        if anywhere(content, lambda value: isinstance(value, dict) and value.get("op") == "aa"):
            features.append("arrays")
        return content

    def _automata(self) -> list[Json]:
        """The modules, in which the commands of an action that earns something stand for themselves."""
        result: list[Json] = []
        for number, module in enumerate(self._program.modules):
            location: Json = {"name": _LOCATION}
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

    def _in_state(self) -> list[Json]:
        values = [
            {"ref": self._labels[label.name], "value": json_expression(label.expression)}
            for label in self._program.labels
        ]
        for name, rewards in zip(self._rewards, self._program.rewards, strict=True):
            items = [item for item in rewards.items if not item.is_choice]
            if items:
                values.append({"ref": name, "value": _total(items)})
        return values

    def _edges(self, module: int, command: syntax.GuardedCommand) -> list[Json]:
        """One edge; in continuous time one for each update, as their rates compete."""
        action = {} if command.action is None else {"action": command.action}
        edge = {"location": _LOCATION, **action, "guard": {"exp": json_expression(command.guard)}}
        earned, edges = self._list_earnings(module, command), list[Json]()
        destinations: list[Json] = []
        for update in command.updates:
            weight: Json = {"exp": json_expression(update.probability)}
            assigned = [{"ref": a.name, "value": json_expression(a.value)} for a in update.assignments]
            changes = {"assignments": [*assigned, *earned]} if assigned or earned else {}
            if self._has_rates:
                edges.append({**edge, "destinations": [{"location": _LOCATION, **changes}], "rate": weight})
            destinations.append({"location": _LOCATION, "probability": weight, **changes})
        return edges or [{**edge, "destinations": destinations}]

    def _list_earnings(self, module: int, command: syntax.GuardedCommand) -> list[Json]:
        """What the synchronisations earn that a command takes part in, said by the first of their modules."""
        taking_part = [one for one in self._program.synchronisations if (module, command.action) in one.parts]
        actions = [one.action for one in taking_part if one.parts[0][0] == module]
        if not actions:
            return []
        earnings = []
        for name, rewards in zip(self._rewards, self._program.rewards, strict=True):
            sums = [[i for i in rewards.items if i.is_choice and i.action == action] for action in actions]
            if not any(sums):
                continue
            if (len(taking_part) > 1 and any(each != sums[0] for each in sums)) or len(actions) < len(
                taking_part
            ):
                raise InputError(
                    f"the reward structure '{rewards.name or ''}' goes by what renamed actions earn, which "
                    "is not written as JANI",
                    hint="write DRN or UMB, which hold every choice",
                )
            earnings.append({"ref": name, "value": _total(sums[0])})
        return earnings

    def _system(self) -> Json:
        size = len(self._program.modules)
        syncs = []
        for one in self._program.synchronisations:
            if len(one.parts) == 1 and one.parts[0][1] is None:
                continue
            taking_part: list[str | None] = [None] * size
            for number, action in one.parts:
                taking_part[number] = action
            sync: Json = {"synchronise": taking_part}
            if one.action is not None:
                sync["result"] = one.action
            syncs.append(sync)
        elements = [{"automaton": module.name} for module in self._program.modules]
        return {"elements": elements, "syncs": syncs}


def json_expression(expression: syntax.Expression) -> object:
    """An expression as JANI has it; what is checked is the only element of an array."""
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
            sides = {"left": json_expression(left), "right": json_expression(right)}
            return {"op": _OPERATORS.get(operator, operator), **sides}
        case syntax.Conditional(condition, then, otherwise):
            keys = ("if", "then", "else")
            parts = (json_expression(each) for each in (condition, then, otherwise))
            return {"op": "ite", **dict(zip(keys, parts, strict=True))}
        case syntax.Checked(condition, value):
            one = {"op": "av", "elements": [json_expression(value)]}
            inside = {"op": "ite", "if": json_expression(condition), "then": 0, "else": 1}
            return {"op": "aa", "exp": one, "index": inside}
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


def _number(value: int | Fraction | bool) -> object:
    if isinstance(value, bool | int):
        return value
    short = float(value)
    if Fraction(repr(short)) == value:
        return short
    return {"op": "/", "left": value.numerator, "right": value.denominator}


def _total(items: Sequence[syntax.RewardItem]) -> object:
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


def _variable(variable: StateVariable, start: int) -> Json:
    if variable.type is syntax.Type.BOOL:
        return {"name": variable.name, "type": "bool", "initial-value": bool(start)}
    kind: str | Json = "int"
    if not variable.is_unbounded:
        bounds: Mapping[str, int] = {"lower-bound": variable.low, "upper-bound": variable.high}
        kind = {"kind": "bounded", "base": "int", **bounds}
    return {"name": variable.name, "type": kind, "initial-value": start}


def _transient(name: str, kind: str, value: object, title: str) -> Json:
    made = {"name": name, "type": kind, "transient": True, "initial-value": value}
    return made if title == name else {**made, "comment": f"{CALLED}{title}"}


def _free(name: str, names: set[str]) -> str:
    """The name, or one near to it that nothing else has."""
    free = name
    while free in names:
        free += "_"
    names.add(free)
    return free


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POWER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\^([0-9]+)")


def as_program(
    model: ParametricMDP | MDP | IntervalMDP | ParametricCTMC,
    name: str,
    constants: Mapping[str, str] | None = None,
) -> Program:
    """The program; `name` is what messages call the model, `constants` are values of its parameters."""
    if isinstance(model, IntervalMDP):
        raise InputError("JANI has no interval probabilities", hint="write DRN or UMB, which have")
    text = "\n".join([*origin_lines(model.structure), program_text(model)])
    return expand(parse_model(text, name), constants or {})


def program_text(model: ParametricMDP | MDP | ParametricCTMC, notes: Sequence[str] = ()) -> str:
    """The model as a PRISM program of one module, a command per choice; `notes` are comments at its head."""
    comments = [f"// {line}" for note in notes for line in note.splitlines()]
    return "\n".join([*comments, *_ProgramText(model).lines()]) + "\n"


class _ProgramText:
    def __init__(self, model: ParametricMDP | MDP | ParametricCTMC):
        self.model, self.structure = model, model.structure
        if isinstance(model, ParametricCTMC):
            self.structure = replace(model.structure, rewards=exit_rewards(model))
        self.parameters = () if isinstance(model, MDP) else model.parameters.shown.names
        self.free = _free_outcomes(model) if isinstance(model, ParametricMDP) else {}
        self.columns = _columns(self.structure, self.parameters)
        for kind, names in (("action", self.structure.action_names), ("variable", tuple(self.columns))):
            for name in names:
                if name != UNLABELLED and not _NAME.fullmatch(name):
                    raise InputError(f"a program cannot have the {kind} name '{name}': it must be one word")
        deadlock = self.structure.labels.get("deadlock")
        self.deadlock = np.zeros(self.structure.states, dtype=np.bool_) if deadlock is None else deadlock

    def lines(self) -> Iterator[str]:
        structure = self.structure
        discrete = "dtmc" if structure.is_chain else "mdp"
        yield "ctmc" if isinstance(self.model, ParametricCTMC) else discrete
        yield from (f"const double {name};" for name in self.parameters)
        yield "module states"
        first = structure.initial
        for name, column in self.columns.items():
            if column.dtype == np.bool_:
                yield f"  {name} : bool init {_word(column[first])};"
            else:
                low, high = int(column.min()), int(column.max())
                yield f"  {name} : [{low}..{max(high, low + 1)}] init {int(column[first])};"
        yield from self.commands()
        yield "endmodule"
        for label, members in structure.labels.items():
            if label not in ("init", "deadlock"):
                where = [self.guard(state) for state in np.flatnonzero(members).tolist()]
                yield f'label "{label}" = {" | ".join(where) or "false"};'
        yield from self.rewards()

    def commands(self) -> Iterator[str]:
        structure = self.structure
        texts = self.probabilities()
        for choice, state in enumerate(structure.choice_state.tolist()):
            if self.deadlock[state]:
                continue
            begin, end = (int(structure.transition_start[choice + i]) for i in (0, 1))
            order = list(range(begin, end))
            if isinstance(self.model, ParametricMDP) and self.free and self.model.free[choice]:
                outcome = [self.free[row][0] for row in self.model.expression[begin:end].tolist()]
                order = [begin + place for place in np.argsort(outcome).tolist()]
            updates = [f"{texts[t]} : {self.update(int(structure.successor[t]))}" for t in order]
            yield f"  [{self.action(choice)}] {self.guard(state)} -> {' + '.join(updates)};"

    def probabilities(self) -> list[str]:
        model = self.model
        if isinstance(model, ParametricMDP | ParametricCTMC):
            texts = [f"({_powers(model.expressions.text(e))})" for e in range(len(model.expressions))]
            for row, (_, text) in self.free.items():
                texts[row] = text
            return [texts[e] for e in model.expression.tolist()]
        decimals = [decimal_text(value) for value in model.probability.tolist()]
        exact = [Fraction(text) for text in decimals]
        starts = self.structure.transition_start.tolist()
        for choice in range(self.structure.choices):
            total = sum(exact[starts[choice] : starts[choice + 1]])
            if total != 1:
                raise InputError(
                    f"{self.structure.choice_name(choice)}: the decimals of its probabilities sum to "
                    f"{float(total):.17g}, and probabilities of a program sum to exactly 1",
                    hint="write DRN, UMB or PRISM's explicit files",
                )
        return decimals

    def rewards(self) -> Iterator[str]:
        structure = self.structure
        for name, reward in structure.rewards.items():
            if isinstance(reward, ParametricReward):
                texts = [_powers(reward.expressions.text(e)) for e in range(len(reward.expressions))]
                of_choice = [texts[e] for e in reward.expression.tolist()]
                of_state: list[str] = []
            else:
                of_choice = [] if reward.choice is None else [_sign(v) for v in reward.choice.tolist()]
                of_state = [] if reward.state is None else [_sign(v) for v in reward.state.tolist()]
            yield f'rewards "{name}"' if name else "rewards"
            for state, text in enumerate(of_state):
                if text != "0":
                    yield f"  {self.guard(state)} : {text};"
            amounts: dict[tuple[int, str], str] = {}
            for choice, (state, text) in enumerate(
                zip(structure.choice_state.tolist(), of_choice, strict=False)
            ):
                key = state, self.action(choice)
                if amounts.setdefault(key, text) != text:
                    raise InputError(
                        f"two choices '{key[1]}' of one state earn different rewards '{name}': a program "
                        "cannot distinguish them",
                        hint="write DRN or PRISM's explicit files",
                    )
            for (state, action), text in amounts.items():
                if text != "0" and not self.deadlock[state]:
                    yield f"  [{action}] {self.guard(state)} : {text};"
            yield "endrewards"

    def action(self, choice: int) -> str:
        action = self.structure.action
        name = UNLABELLED if action is None else self.structure.action_names[int(action[choice])]
        return "" if name == UNLABELLED else name

    def guard(self, state: int) -> str:
        return "(" + " & ".join(f"{name}={_word(c[state])}" for name, c in self.columns.items()) + ")"

    def update(self, state: int) -> str:
        return " & ".join(f"({name}'={_word(c[state])})" for name, c in self.columns.items())


def _free_outcomes(model: ParametricMDP) -> dict[int, tuple[int, str]]:
    """Rows of the table that are outcomes of a free distribution: the outcome's number and text."""
    if not model.parameters.free:
        return {}
    result, hidden = dict[int, tuple[int, str]](), model.parameters.free[0].first
    first = model.expression[model.transition_start[:-1]][model.free]
    for number, one in enumerate(model.parameters.free):
        rows = [model.expressions.index_of(each) for each in one.probabilities]
        shared = one.name is not None or np.isin(first, [row for row in rows if row is not None]).sum() > 1
        text = f'free("{one.name or f"row{number}"}")' if shared else "free"
        result |= {row: (place, text) for place, row in enumerate(rows) if row is not None}
    for row in np.unique(model.expression).tolist():
        if row not in result and any(v >= hidden for v in model.expressions.function(row).variables):
            where = model.structure.name_at(int(np.argmax(model.expression == row)))
            raise InputError(
                f"{where} has numbers beside free probabilities, which are not written as a program",
                hint="write DRN, which has them as parameters",
            )
    return result


def _columns(structure: Structure, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Variables that tell all states apart."""
    given = {name: np.asarray(column) for name, column in structure.valuations.items()}
    if given:
        rows = np.stack([column.astype(np.int64) for column in given.values()], axis=1)
        if len(np.unique(rows, axis=0)) == structure.states:
            return given
    name = "state"
    while name in names:
        name += "_"
    return {name: np.arange(structure.states)}


def _powers(text: str) -> str:
    """p^2 as PRISM writes it."""
    return _POWER.sub(r"pow(\1,\2)", text)


def _word(value: object) -> str:
    return str(bool(value)).lower() if isinstance(value, np.bool_ | bool) else str(value)


def _sign(value: float) -> str:
    text = decimal_text(value)
    return text if value >= 0 else f"({text})"
