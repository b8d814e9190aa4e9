"""What a log's values mean in the model: other names, other units.

    --map 'action: 0=repair, 1=run'      each value by its name; a value that is not listed is refused
    --map 'alarm: X=true, =false'        nothing before the sign: what an empty cell means
    --map 'wear: *10'                    in other units: factors and shifts, in order
    --map 'temperature: -32 /1.8 round'  `round` and `floor` make whole numbers of what is left

A map of a variable holds for its next value, too; one of `state` for next states. Arithmetic is exact: the
value 0.3 times 10 is 3. What is no whole number afterwards is refused like any fraction.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.data.column_names import ACTION, CHOICE, EPISODE, ROLES, STATE
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import distinct
from tightrope.io.table.problems import Problem, ProblemCodes, mark

_STEP = re.compile(r"\s*(?:(round|floor)|([*/+-])\s*([0-9.]+(?:[eE][+-]?[0-9]+)?(?:/[0-9]+)?))\s*")
HINT = "write `maps='action: 0=repair, 1=run'` or `maps='wear: *10'`"


@dataclass(frozen=True)
class ValueMap:
    """Either `names` (value in the log to value in the model) or `steps` of arithmetic."""

    names: Mapping[str, str] | None = None
    steps: tuple[tuple[str, Fraction], ...] = ()

    def apply(self, column: Any, problems: ProblemCodes) -> Any:
        """The column in the model's values, as text; values without a meaning are marked."""
        import pyarrow as pa

        values, codes = distinct(column)
        texts: list[str | None] = []
        wrong = np.zeros(len(values) + 1, dtype=np.int8)
        for i, value in enumerate(values):
            text, problem = self._meaning(value)
            texts.append(text)
            wrong[i] = problem
        for problem in (Problem.UNMAPPED_VALUE, Problem.NOT_A_NUMBER):
            mark(problems, wrong[codes] == problem, problem)
        if self.reads_blanks:
            codes = np.where(codes < 0, len(texts), codes)
            texts.append(self._meaning("")[0])
        indices = pa.array(codes.astype(np.int32), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(texts, type=pa.string())).dictionary_decode()

    def _meaning(self, value: Any) -> tuple[str | None, Problem]:
        text = plain_text(value)
        if self.names is not None:
            if text in self.names:
                return self.names[text], Problem.NONE
            return (text, Problem.UNMAPPED_VALUE) if text else (None, Problem.NONE)
        if not text:
            return None, Problem.NONE
        try:
            number = Fraction(text)
        except (ValueError, ZeroDivisionError):
            return text, Problem.NOT_A_NUMBER
        for sign, by in self.steps:
            match sign:
                case "*":
                    number *= by
                case "/":
                    number /= by
                case "+":
                    number += by
                case "-":
                    number -= by
                case "round":
                    number = Fraction(round(number))
                case _:
                    number = Fraction(math.floor(number))
        return str(number.numerator if number.denominator == 1 else float(number)), Problem.NONE

    @property
    def reads_blanks(self) -> bool:
        """Whether an empty cell has a meaning."""
        return self.names is not None and "" in self.names

    @property
    def text(self) -> str:
        """As the user would write it."""
        if self.names is not None:
            return ", ".join(f"{value}={meaning}" for value, meaning in self.names.items())
        return " ".join(sign if sign in ("round", "floor") else f"{sign}{by}" for sign, by in self.steps)


def plain_text(value: Any) -> str:
    """A value as a user writes it: 1.0 is 1, True is true, None is nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def parse_maps(
    texts: Sequence[str] | Mapping[str, Any] | None, variables: Collection[str], more: Collection[str] = ()
) -> dict[str, ValueMap]:
    """The maps by the role they belong to; some roles have maps only in some logs.

    >>> parse_maps(["action: 0=repair,1=run", "wear: *10 -1"], ["wear"])["wear"].text
    '*10 -1'
    """
    if texts is None:
        return {}
    if isinstance(texts, str):
        texts = [texts]
    if isinstance(texts, Mapping):
        entries = [(str(role), _value_map(meaning, f"{role}: {meaning}")) for role, meaning in texts.items()]
    else:
        entries = [_parse(text) for text in texts]
    maps: dict[str, ValueMap] = {}
    for role, value_map in entries:
        if role not in variables and role not in (STATE, ACTION, CHOICE, EPISODE, *more):
            own = (name for name in ROLES if name in (STATE, ACTION, CHOICE))
            known = ", ".join([*variables, *own, *more])
            raise InputError(
                f"`maps` speaks of '{role}', which has no values to map", hint=f"known are {known}"
            )
        if role in maps:
            raise InputError(f"`maps` gives the values of '{role}' twice")
        maps[role] = value_map
    return maps


def map_entries(texts: Sequence[str] | Mapping[str, Any]) -> dict[str, str]:
    """What a user's words say of values, as texts."""
    if isinstance(texts, Mapping):
        return {str(role): _value_map(meaning, f"{role}: {meaning}").text for role, meaning in texts.items()}
    listed = [texts] if isinstance(texts, str) else texts
    return {role: value_map.text for role, value_map in map(_parse, listed)}


def _parse(text: str) -> tuple[str, ValueMap]:
    role, colon, meaning = (part.strip() for part in text.partition(":"))
    if not colon or not meaning:
        raise InputError("a map is a name, a colon and values", Location("`maps`", 1, None, text), HINT)
    return role, _value_map(meaning, text)


def _value_map(meaning: Any, text: str) -> ValueMap:
    if isinstance(meaning, Mapping):
        return ValueMap({plain_text(value): plain_text(name) for value, name in meaning.items()})
    if "=" in str(meaning):
        names: dict[str, str] = {}
        for piece in next(csv.reader([str(meaning)], skipinitialspace=True), []):
            value, equals, name = (part.strip() for part in piece.partition("="))
            if not equals or not name:
                problem = f"{piece.strip()!r} does not give a value its meaning"
                raise InputError(problem, Location("`maps`", 1, None, text), HINT)
            if value in names:
                given = value or "of an empty cell"
                raise InputError(f"the value {given} is given twice", Location("`maps`", 1, None, text))
            names[value] = name
        return ValueMap(names)
    return ValueMap(steps=_steps(str(meaning), text))


def _steps(meaning: str, text: str) -> tuple[tuple[str, Fraction], ...]:
    steps: list[tuple[str, Fraction]] = []
    at = 0
    while at < len(meaning):
        found = _STEP.match(meaning, at)
        try:
            number = Fraction(found[3]) if found and found[3] else Fraction(0)
            if found is None or (found[2] in ("*", "/") and number == 0):
                raise ValueError
        except (ValueError, ZeroDivisionError):
            problem = f"{meaning[at:].strip()!r} is no arithmetic with a number"
            raise InputError(problem, Location("`maps`", 1, None, text), HINT) from None
        steps.append((found[1] or found[2], number))
        at = found.end()
    return tuple(steps)
