"""PRISM's `.tra` files: the transitions.

    4 5 7                    states, choices, transitions (an MDP)
    0 0 1 0.4 go             from, choice, to, probability, action

    4 7                      states, transitions (a DTMC)
    0 1 0.4

A comment before the first line may name the type of the model, as PRISM writes it, "# Transitions (MDP)";
types that are not read are refused. Of a chain in continuous time (`rates`) it must say "(CTMC)", and rates
stand for probabilities. Storm's own dialect, whose first line is the type alone, is not read.

An interval model has `[0.1,0.3]` for a probability. Probabilities are read as the nearest doubles.
Rows may come in any order; the choices of a state are numbered from 0.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.number_text import NumberValues
from tightrope.io.text_file import (
    fail,
    fail_at_nth,
    first_duplicate,
    first_outside,
    first_unknown_state,
    first_wrong_sum,
    shorten,
)
from tightrope.model import door
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text_reading import reading


@dataclass(frozen=True)
class Transitions:
    """The content of a `.tra` file; `is_chain` is the form of the file, with no choices in its rows."""

    is_chain: bool
    has_intervals: bool
    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    lower: FloatArray
    upper: FloatArray
    action: IndexArray
    action_names: tuple[str, ...]
    are_rates: bool = False
    exact: Callable[[int], door.Bounds] | None = None
    """The numbers of a transition as they are written."""


def is_content(line: str) -> bool:
    """Neither blank nor a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def counts_line(path: Path, number: int, line: str, expected: str) -> list[int]:
    """The whole numbers on the first line of a file."""
    words = line.split()
    if not words or not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        fail(path, number, line, f"{expected} expected, found {shorten(line)}")
    return [int(word) for word in words]


_HEADER = re.compile(r"#\s*Transitions?\b[^()]*\(([^()]*)\)", re.IGNORECASE)
_CHAINS = {"dtmc": True, "idtmc": True, "mdp": False, "imdp": False}
_REFUSED_TYPES = {
    "ctmc": "continuous-time models",
    "ctmdp": "continuous-time models",
    "ma": "Markov automata",
    "pomdp": "partially observable models",
    "popta": "partially observable models",
    "ipomdp": "partially observable models",
    "pta": "timed automata",
    "lts": "models without probabilities",
    "stpg": "games",
    "smg": "games",
    "tsg": "games",
    "csg": "games",
}
_RATES = "rates of a CTMC need a first line '# Transitions (CTMC)'"
_READ = "tightrope reads DTMC, MDP and their interval versions, IDTMC and IMDP"


def declared_type(path: Path) -> str | None:
    """The type that a file names in a comment before its content, in lower case."""
    with reading(path) as file:
        for line in file:
            if is_content(line):
                return None
            if (found := _HEADER.match(line.strip())) is not None:
                return found.group(1).strip().lower()
    return None


def is_declared_chain(path: Path, number: int, line: str, name: str, continuous: bool = False) -> bool:
    """Whether the type that a file names is a chain's; refuses types that are not read."""
    known = name.strip().lower()
    if known == "ctmc":
        if not continuous:
            fail(path, number, line, f"{name.strip()}: models in discrete time are wanted here", name)
        return True
    if known in _REFUSED_TYPES:
        fail(path, number, line, f"{name.strip()}: {_REFUSED_TYPES[known]} are not supported; {_READ}", name)
    if known not in _CHAINS:
        fail(path, number, line, f"unknown model type {shorten(name)}; {_READ}", name)
    return _CHAINS[known]


def read_transitions(path: Path, continuous: bool = False) -> Transitions:
    """The content of a file; `continuous`: of a chain in continuous time."""
    with reading(path) as file:
        declared: tuple[bool, int, str] | None = None
        numbered = enumerate(file, 1)
        number, line = 0, ""
        for number, line in numbered:
            if is_content(line):
                break
            if (found := _HEADER.match(line.strip())) is not None:
                declared = is_declared_chain(path, number, line, found.group(1), continuous), number, line
        else:
            raise InputError("the file is empty", Location(str(path)))
        lines = ((number, line) for number, line in numbered if is_content(line))
        word = line.strip()
        if word.lower() in _CHAINS or word.lower() in _REFUSED_TYPES:
            is_declared_chain(path, number, line, word)
            fail(
                path,
                number,
                line,
                "this is Storm's own dialect of explicit files, which is not read",
                hint="write the model as DRN in Storm, or as explicit files in PRISM",
            )
        counts = counts_line(path, number, line, "the numbers of states, choices and transitions")
        if len(counts) not in (2, 3):
            fail(path, number, line, "two numbers (a DTMC) or three (an MDP) expected on the first line")
        if declared is not None and declared[0] != (len(counts) == 2):
            kind, form = ("a DTMC", "three numbers") if declared[0] else ("an MDP", "two numbers")
            fail(
                path,
                number,
                line,
                f"{form} for {kind}, which line {declared[1]} says this is",
                hint="a DTMC has the numbers of states and transitions, an MDP also that of choices between",
            )
        rows = _Rows(path, number, is_chain=len(counts) == 2, states=counts[0], are_rates=continuous)
        rows.read(lines)
    return rows.finish(choices=counts[1] if len(counts) == 3 else counts[0], transitions=counts[-1])


class _Rows:
    """Grows column by column, in the order of the file."""

    def __init__(self, path: Path, header_line: int, is_chain: bool, states: int, are_rates: bool = False):
        self.path, self.header_line, self.is_chain, self.states = path, header_line, is_chain, states
        self.are_rates = are_rates
        self.values = NumberValues(None)
        self.known_values: dict[str, int] = {}
        self.actions: dict[str, int] = {}
        self.state, self.choice, self.target = array("i"), array("i"), array("i")
        self.code, self.action = array("i"), array("i")

    def read(self, lines: Iterator[tuple[int, str]]) -> None:
        known, actions, width = self.known_values, self.actions, 3 if self.is_chain else 4
        for number, line in lines:
            words = line.split()
            if "[" in line and len(words) > width and not words[width - 1].endswith("]"):
                words = line.replace(", ", ",").split()
            try:
                if self.is_chain:
                    state, target, value, *rest = words
                    choice = "0"
                else:
                    state, choice, target, value, *rest = words
                self.state.append(int(state))
                self.choice.append(int(choice))
                self.target.append(int(target))
                code = known.get(value)
                if code is None:
                    if self.are_rates and value.startswith("["):
                        raise ValueError("intervals of rates are not read")
                    code = known[value] = self.values.code(value)
            except (ValueError, OverflowError) as error:
                self.explain(number, line, words, error)
            if len(rest) > 1:
                fail(self.path, number, line, f"unexpected {shorten(rest[1])} at the end", rest[1])
            self.code.append(code)
            self.action.append(actions.setdefault(rest[0] if rest else "", len(actions)))

    def explain(self, number: int, line: str, words: list[str], error: Exception) -> NoReturn:
        value = "rate" if self.are_rates else "probability"
        form = f"from to {value}" if self.is_chain else f"from choice to {value}"
        width = len(form.split())
        if len(words) < width:
            fail(self.path, number, line, f"'{form}' expected, found {shorten(line)}")
        for word in words[: width - 1]:
            if not (word.isascii() and word.isdecimal()) or len(word) > 9:
                fail(self.path, number, line, f"{shorten(word)} is not a number of a state or choice", word)
        fail(self.path, number, line, f"{shorten(words[width - 1])}: {error}", words[width - 1])

    def finish(self, choices: int, transitions: int) -> Transitions:
        """Sorted by state and choice, and checked."""
        if len(self.code) != transitions:
            hint = "the file may be cut off" if len(self.code) < transitions else None
            self.fail_at_header(
                f"the first line announces {transitions} transitions, the file has {len(self.code)}", hint
            )
        if self.states == 0:
            self.fail_at_header("the model has no state")
        order = self.sorted_rows()
        state, choice, target, code, action = (
            np.frombuffer(column, dtype=np.int32)[order]
            for column in (self.state, self.choice, self.target, self.code, self.action)
        )
        begins = np.ones(len(state), dtype=np.bool_)
        begins[1:] = (state[1:] != state[:-1]) | (choice[1:] != choice[:-1])
        first = np.flatnonzero(begins)
        if self.states > len(first):  # before anything is made as long as there are states
            present = state[first][np.r_[True, np.diff(state[first]) > 0]] if len(first) else state
            gaps = np.flatnonzero(present != np.arange(len(present)))
            self.fail_without_row(int(gaps[0]) if len(gaps) else len(present))
        choice_start = np.searchsorted(state[first], np.arange(self.states + 1)).astype(np.int64)
        self.check_choices(order, state[first], choice[first], first, choice_start, choices)
        try:
            lower, upper = self.values.bounds(np.append(first, len(state)), code)
        except door.NotHeldError as error:
            self.fail_at(int(order[error.index]), error.message)
        result = Transitions(
            self.is_chain,
            self.values.has_intervals,
            choice_start,
            np.append(first, len(state)),
            target,
            lower,
            upper,
            action[first],
            tuple(self.actions),
            self.are_rates,
            lambda transition: self.values.exact(int(code[transition])),
        )
        self.check_rows(order, action, result)
        return result

    def sorted_rows(self) -> OffsetArray:
        """The order by state and choice, once the numbers are those of states and choices."""
        state, choice, target = (
            np.frombuffer(column, dtype=np.int32) for column in (self.state, self.choice, self.target)
        )
        for column in (state, target):
            if (row := first_unknown_state(column, self.states)) is not None:
                self.fail_at(row, f"there is no state {column[row]}: the states are 0 to {self.states - 1}")
        if len(choice) and choice.min() < 0:
            self.fail_at(int(np.argmin(choice)), "the choices of a state are numbered from 0")
        order: OffsetArray = np.lexsort((choice, state))
        return order

    def check_choices(
        self,
        order: OffsetArray,
        state: IndexArray,
        choice: IndexArray,
        first: OffsetArray,
        choice_start: OffsetArray,
        announced: int,
    ) -> None:
        """Every state has choices, numbered without gaps, and as many as announced."""
        empty = np.flatnonzero(np.diff(choice_start) == 0)
        if len(empty):
            self.fail_without_row(int(empty[0]))
        gaps = np.flatnonzero(choice != np.arange(len(first)) - choice_start[state])
        if len(gaps):
            row = int(order[first[gaps[0]]])
            self.fail_at(row, f"the choices of state {state[gaps[0]]} are not numbered 0, 1, …")
        if len(first) != announced:
            self.fail_at_header(f"the first line announces {announced} choices, the file has {len(first)}")

    def fail_without_row(self, state: int) -> NoReturn:
        raise InputError(
            f"state {state} has no transition",
            Location(str(self.path)),
            hint="give deadlocks a self-loop; PRISM's own exports have one",
        )

    def check_rows(self, order: OffsetArray, action: IndexArray, rows: Transitions) -> None:
        """One action a choice, no transition twice, probabilities that are some."""
        start, lower, upper = rows.transition_start, rows.lower, rows.upper
        other = np.flatnonzero(action != np.repeat(rows.action, np.diff(start)))
        if len(other):
            self.fail_at(int(order[other[0]]), "a second action name for the same choice")
        if (row := first_duplicate(start, rows.successor)) is not None:
            self.fail_at(
                int(order[row]), f"a second transition of this choice to state {rows.successor[row]}"
            )
        if self.are_rates:
            wrong_rate = np.flatnonzero(~((lower >= 0) & np.isfinite(upper)))
            if len(wrong_rate):
                self.fail_at(int(order[wrong_rate[0]]), "a rate is a number of at least 0, this one is not")
            return
        if (row := first_outside(lower, upper)) is not None:
            hint = f"; {_RATES}" if self.is_chain and lower[row] > 1 else ""
            self.fail_at(int(order[row]), f"a probability lies within [0, 1], this one does not{hint}")
        if (wrong := first_wrong_sum(start, lower, upper)) is not None:
            within = slice(start[wrong], start[wrong + 1])
            self.fail_at(int(order[within.start]), _sum_message(lower[within], upper[within]))

    def fail_at_header(self, message: str, hint: str | None = None) -> NoReturn:
        raise InputError(message, Location(str(self.path), self.header_line, 1), hint)

    def fail_at(self, row: int, message: str) -> NoReturn:
        """At the row with this number in the file."""
        fail_at_nth(self.path, row, is_content, message, after=self.header_line)


def _sum_message(lower: FloatArray, upper: FloatArray) -> str:
    if (lower == upper).all():
        return f"the probabilities of this choice sum to {lower.sum():.12g}, not 1"
    return f"no distribution fits these intervals: they sum to [{lower.sum():.12g}, {upper.sum():.12g}]"
