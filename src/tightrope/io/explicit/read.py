"""Read PRISM's explicit files: transitions, rewards, labels and states.

    4 5 7                    .tra of an MDP: states, choices, transitions; in any order, choices from 0
    0 0 1 0.4 go             from, choice, to, probability (or [0.1,0.3]), action

    4 7                      .tra of a DTMC: states, transitions
    0 1 0.4

    # Reward structure "steps"
    4 2                      .srew: states, entries    4 5 7            .trew: as in the `.tra` file
    0 1.5                    state, reward             0 0 1 2          from, choice, to, reward

    (x,busy)                 .sta                      0="init" 1="deadlock" 2="goal"        .lab
    0:(0,false)                                        0: 0
    1:(1,true)                                         3: 1 2

Probabilities are the nearest doubles. A first comment "# Transitions (CTMC)" is required for rates, which are
exact decimals. Storm's dialect, whose first line is the type alone, is refused. A choice earns the
expectation of its transitions' rewards, which determines all values; intervals with different rewards are
refused. In continuous time state rewards are per unit of time, transition rewards per event.
"""

from __future__ import annotations

import itertools
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.io.rate_rewards import with_earnings
from tightrope.io.text import (
    NumberValues,
    RowCheck,
    decimal_text,
    fail,
    fail_at_nth,
    first_true,
    nearest_double,
    shorten,
    unknown_state,
    whole_number,
)
from tightrope.model import numbers as door
from tightrope.model.continuous import ParametricCTMC, rate_box
from tightrope.model.expressions import ExpressionTable
from tightrope.model.function_text import exact_number
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading
from tightrope.prism.expand.program import Definitions
from tightrope.provenance import origin_in


@dataclass(frozen=True)
class Transitions:
    """The content of a `.tra` file; `is_chain` is the form of the file, with no choices in its rows."""

    is_chain: bool
    has_intervals: bool
    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    bounds: tuple[FloatArray, FloatArray]
    """The least and the largest number of every transition; the same where there are no intervals."""
    action: IndexArray
    action_names: tuple[str, ...]
    are_rates: bool = False
    exact: Callable[[int], door.Bounds] | None = None
    """The numbers of a transition as they are written."""
    comments: str = ""
    """Those before the content."""


def is_content(line: str) -> bool:
    """Neither blank nor a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def counts_line(path: Path, number: int, line: str, expected: str) -> list[int]:
    """The whole numbers on the first line of a file."""
    words = line.split()
    counts = [count for word in words if (count := whole_number(word)) is not None]
    if not words or len(counts) < len(words):
        fail(path, number, line, f"{expected} expected, found {shorten(line)}")
    return counts


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
            if (header := _HEADER.match(line.strip())) is not None:
                return header.group(1).strip().lower()
    return None


def is_declared_chain(path: Path, number: int, line: str, name: str, continuous: bool = False) -> bool:
    """Whether the type that a file names is a chain's; refuses types that are not read."""
    known = name.strip().lower()
    if known == "ctmc":
        if not continuous:
            fail(path, number, line, f"{name.strip()}: models in discrete time are required here", name)
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
        number, line, comments = 0, "", ""
        for number, line in numbered:
            if is_content(line):
                break
            comments += line
            if (header := _HEADER.match(line.strip())) is not None:
                declared = is_declared_chain(path, number, line, header.group(1), continuous), number, line
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
        rows = _TransitionRows(
            path, number, is_chain=len(counts) == 2, states=counts[0], are_rates=continuous
        )
        rows.read(lines)
    content = rows.finish(choices=counts[1] if len(counts) == 3 else counts[0], transitions=counts[-1])
    return replace(content, comments=comments)


class _TransitionRows:
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
            _index(self.path, number, line, word)
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
            bounds = self.values.bounds(np.append(first, len(state)), code)
        except door.NotHeldError as error:
            self.fail_at(int(order[error.index]), error.message)
        result = Transitions(
            self.is_chain,
            self.values.has_intervals,
            choice_start,
            np.append(first, len(state)),
            target,
            bounds,
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
            if (row := first_true((column < 0) | (column >= self.states))) is not None:
                self.fail_at(row, unknown_state(column[row], self.states))
        if len(choice) and choice.min() < 0:
            self.fail_at(int(np.argmin(choice)), "the choices of a state are numbered from 0")
        return np.lexsort((choice, state))

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
        start, (lower, upper) = rows.transition_start, rows.bounds
        if (other := first_true(action != np.repeat(rows.action, np.diff(start)))) is not None:
            self.fail_at(int(order[other]), "a second action name for the same choice")
        check = RowCheck(
            start,
            rows.successor,
            "choice",
            lambda transition, what: self.fail_at(int(order[transition]), what),
            lambda choice, what: self.fail_at(int(order[start[choice]]), what),
        )
        check.check_targets(self.states)
        if not self.are_rates:
            check.check_probabilities(lower, upper, f"; {_RATES}" * self.is_chain)
        elif (wrong := first_true(~((lower >= 0) & np.isfinite(upper)))) is not None:
            self.fail_at(int(order[wrong]), "a rate is a number of at least 0, this one is not")

    def fail_at_header(self, message: str, hint: str | None = None) -> NoReturn:
        raise InputError(message, Location(str(self.path), self.header_line, 1), hint)

    def fail_at(self, row: int, message: str) -> NoReturn:
        """At the row with this number in the file."""
        fail_at_nth(self.path, row, is_content, message, after=self.header_line)


_NAME = re.compile(r'#\s*Reward structure\s*:?\s*"([^"]*)"')


Exact = Callable[[int], Fraction]
"""A reward as it is written, by the number of its state or choice."""


def read_state_rewards(path: Path, states: int) -> tuple[str | None, FloatArray, Exact]:
    """The name in the file's comment, and the rewards."""
    rewards = np.zeros(states)
    texts: dict[int, str] = {}
    with reading(path) as file:
        name, lines = _read_named_content(file)
        entries = _read_announced(path, lines, (2,), "the numbers of states and entries", states)[-1]
        for number, line in lines:
            (state,), reward, text = _row(path, number, line, 1)
            if state >= states:
                fail(path, number, line, unknown_state(state, states))
            if state in texts:
                fail(path, number, line, f"a second reward for state {state}")
            texts[state] = text
            rewards[state] = reward
    _check_entries(path, len(texts), entries)
    return name, rewards, lambda state: exact_number(texts.get(state, "0"))


def read_transition_rewards(
    path: Path, transitions: Transitions
) -> tuple[str | None, FloatArray, Exact, bool]:
    """The name in the file's comment, and the rewards of the choices; where numbers are rates, what they earn
    per unit of time."""
    width = 2 if transitions.is_chain else 3
    owner = np.repeat(np.arange(len(transitions.action)), np.diff(transitions.transition_start))
    pairs = zip(owner.tolist(), transitions.successor.tolist(), strict=True)
    index = {pair: transition for transition, pair in enumerate(pairs)}
    first_choice, states = transitions.choice_start.tolist(), len(transitions.choice_start) - 1
    rewards = np.zeros(len(transitions.successor))
    place: dict[int, tuple[int, str]] = {}
    texts: dict[int, str] = {}
    with reading(path) as file:
        name, lines = _read_named_content(file)
        expected = "the numbers of states, choices and entries"
        entries = _read_announced(path, lines, (2, 3), expected, states)[-1]
        for number, line in lines:
            numbers, reward, text = _row(path, number, line, width)
            state, local = numbers[0], 0 if transitions.is_chain else numbers[1]
            transition = None
            if state < states and local < first_choice[state + 1] - first_choice[state]:
                transition = index.get((first_choice[state] + local, numbers[-1]))
            if transition is None:
                fail(path, number, line, "a reward for a transition that the model does not have")
            if transition in place:
                fail(path, number, line, "a second reward for the same transition")
            place[transition] = number, line
            texts[transition] = text
            rewards[transition] = reward
    _check_entries(path, len(place), entries)
    start = transitions.transition_start
    assert transitions.exact is not None
    numbers_of = transitions.exact

    def exact(choice: int) -> Fraction:
        """Σ probability · reward: values depend on nothing else. A reward that all earn is that."""
        own = range(start[choice], start[choice + 1])
        earned = [exact_number(texts.get(t, "0")) for t in own]
        if not transitions.are_rates and len(set(earned)) == 1:
            return earned[0]
        return sum((numbers_of(t)[0] * r for t, r in zip(own, earned, strict=True)), Fraction(0))

    low, high = np.minimum.reduceat(rewards, start[:-1]), np.maximum.reduceat(rewards, start[:-1])
    differ = np.flatnonzero((low != 0) | (high != 0) if transitions.are_rates else low != high)
    for choice in differ.tolist():
        own = range(start[choice], start[choice + 1])
        first = next(place[transition] for transition in own if transition in place)
        if transitions.has_intervals:
            fail(
                path,
                *first,
                "the transitions of this choice earn different rewards, so what it earns depends on "
                "probabilities that are intervals; that is not supported",
                hint="give the reward to the choice, or to states: the same number on all of its transitions",
            )
        try:
            low[choice] = door.double(exact(choice))
        except door.NotHeldError as error:
            fail(path, *first, f"what this choice earns on average: {error.message}")
    return name, low, exact, len(differ) > 0


def _read_named_content(file: Any) -> tuple[str | None, Iterator[tuple[int, str]]]:
    """The name in the comments before the first line of content, and the content."""
    name = None
    lines = enumerate(file, 1)
    for number, line in lines:
        if match := _NAME.match(line.strip()):
            name = match.group(1)
        if is_content(line):
            rest = (entry for entry in lines if is_content(entry[1]))
            return name, itertools.chain([(number, line)], rest)
    return name, iter(())


def _read_announced(
    path: Path, lines: Iterator[tuple[int, str]], widths: tuple[int, ...], expected: str, states: int
) -> list[int]:
    number, line = next(lines, (0, ""))
    if number == 0:
        raise InputError("the file is empty", Location(str(path)))
    counts = counts_line(path, number, line, expected)
    if len(counts) not in widths:
        fail(path, number, line, f"{expected} expected, found {shorten(line)}")
    if counts[0] != states:
        fail(path, number, line, f"rewards for {counts[0]} states, but the model has {states}")
    return counts


def _row(path: Path, number: int, line: str, width: int) -> tuple[list[int], float, str]:
    words = line.split()
    if len(words) != width + 1:
        fail(path, number, line, f"{width} numbers and a reward expected, found {shorten(line)}")
    numbers = [_index(path, number, line, word) for word in words[:width]]
    try:
        return numbers, nearest_double(words[width]), words[width]
    except ValueError as error:
        fail(path, number, line, f"{shorten(words[width])}: {error}", words[width])


def _index(path: Path, number: int, line: str, word: str) -> int:
    index = whole_number(word)
    if index is None:
        fail(path, number, line, f"{shorten(word)} is not a number of a state or choice", word)
    return index


def _check_entries(path: Path, entries: int, announced: int) -> None:
    if entries != announced:
        raise InputError(
            f"the first line announces {announced} rewards, the file has {entries}",
            Location(str(path)),
            hint="the file may be cut off" if entries < announced else None,
        )


_DECLARATION = re.compile(r'\s*([0-9]{1,9})="([^"]*)"')
_BOOLEAN = {"true": True, "false": False}


def read_valuations(path: Path, states: int) -> dict[str, npt.NDArray[Any]]:
    """A column per variable, of booleans where the file says true and false."""
    with reading(path) as file:
        lines = _content(file)
        number, line = next(lines, (0, ""))
        names = _read_parenthesised(path, number or 1, line)
        if len(set(names)) < len(names) or not all(names):
            fail(path, number or 1, line, "two variables have one name")
        rows: list[list[int] | None] = [None] * states
        known: dict[str, int | bool] = {}
        for number, line in lines:
            index, colon, values = line.partition(":")
            state = _state(path, number, line, index if colon else line, states)
            if rows[state] is not None:
                fail(path, number, line, f"state {state} is described twice")
            words = _read_parenthesised(path, number, values)
            if len(words) != len(names):
                fail(path, number, line, f"{len(words)} values for {len(names)} variables")
            row = []
            for word in words:
                if word not in known:
                    known[word] = _value(path, number, line, word)
                row.append(known[word])
            rows[state] = row
    if None in rows:
        raise InputError(
            f"state {rows.index(None)} is not described", Location(str(path)), hint="the file may be cut off"
        )
    table = np.array(rows, dtype=object).reshape(states, len(names))
    columns = {}
    for k, name in enumerate(names):
        kinds = {isinstance(value, bool) for value in table[:, k]}
        if len(kinds) > 1:
            raise InputError(f"variable '{name}' is a number in some states only", Location(str(path)))
        columns[name] = table[:, k].astype(np.bool_ if kinds == {True} else np.int32)
    return columns


def read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    with reading(path) as file:
        lines = _content(file)
        number, line = next(lines, (0, ""))
        names = _read_declared(path, number or 1, line)
        try:
            door.check_room(float(len(names)) * states, f"{len(names):,} labels")
        except InputError as error:
            fail(path, number, line, error.message, hint=error.hint)
        labels = {name: np.zeros(states, dtype=np.bool_) for name in names.values()}
        for number, line in lines:
            index, _, listed = line.partition(":")
            state = _state(path, number, line, index, states)
            for word in listed.split():
                name = names.get(word)
                if name is None:
                    fail(path, number, line, f"{shorten(word)} is not the number of a label", word)
                labels[name][state] = True
    return labels


def _read_declared(path: Path, number: int, line: str) -> dict[str, str]:
    """{number: name} of `0="init" 1="goal"`."""
    names: dict[str, str] = {}
    known: set[str] = set()
    end = 0
    text = line.rstrip()
    while end < len(text):
        match = _DECLARATION.match(text, end)
        if match is None:
            hint = (
                "PRISM's labels files begin so; Storm's dialect (#DECLARATION) is not read, its DRN files are"
            )
            fail(path, number, line, 'labels such as 0="init" 1="goal" expected on the first line', hint=hint)
        if match.group(1) in names or match.group(2) in known:
            fail(path, number, line, f"label {shorten(match.group(0))} is declared twice", match.group(0))
        names[match.group(1)] = match.group(2)
        known.add(match.group(2))
        end = match.end()
    return names


def _content(file: Any) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(file, 1) if is_content(line))


def _read_parenthesised(path: Path, number: int, text: str) -> list[str]:
    stripped = text.strip()
    if not stripped.startswith("(") or not stripped.endswith(")"):
        fail(path, number, text, f"a list such as (0,true) expected, found {shorten(text)}")
    return [word.strip() for word in stripped[1:-1].split(",")]


def _state(path: Path, number: int, line: str, text: str, states: int) -> int:
    state = whole_number(text)
    if state is None:
        fail(path, number, line, f"the number of a state expected, found {shorten(text)}")
    if state >= states:
        fail(path, number, line, unknown_state(state, states), text.strip())
    return state


def _value(path: Path, number: int, line: str, word: str) -> int | bool:
    if word in _BOOLEAN:
        return _BOOLEAN[word]
    if whole_number(word.removeprefix("-")) is None:
        fail(path, number, line, f"{shorten(word)} is neither a whole number nor true or false", word)
    return int(word)


def read_explicit(path: str | Path) -> MDP | IntervalMDP:
    """The model in `path.tra` and the files beside it that share its base name.

    The labels file names the initial states; without one it is state 0.
    """
    base = explicit_base(path)
    transitions = read_transitions(_with(base, ".tra"))
    structure = structure_of(base, transitions)
    if transitions.has_intervals:
        return IntervalMDP(structure, *transitions.bounds)
    return MDP(structure, transitions.bounds[0])


def structure_of(base: Path, transitions: Transitions) -> Structure:
    """The structure of a model, with what the files beside its transitions say."""
    states = len(transitions.choice_start) - 1
    labels, initial = _labels(_with(base, ".lab"), states)
    valuations = _with(base, ".sta")
    return Structure(
        choice_start=transitions.choice_start,
        transition_start=transitions.transition_start,
        successor=transitions.successor,
        initial_states=initial,
        action=transitions.action,
        action_names=transitions.action_names,
        labels=labels,
        rewards=_rewards(base, transitions),
        valuations=read_valuations(valuations, states) if valuations.exists() else {},
        declared_mdp=not transitions.is_chain,
        definitions=Definitions.in_comments(transitions.comments),
        **origin_in(transitions.comments, str(_with(base, ".tra"))),
    )


def explicit_base(path: str | Path) -> Path:
    """`m.tra` and `m` both stand for the files m.tra, m.lab, …"""
    given = Path(path)
    return given.with_suffix("") if given.suffix == ".tra" else given


def reward_files(base: Path, coming: Iterable[str] = ()) -> dict[str, dict[str, Path]]:
    """{number: {".srew": file, ".trew": file}} in order; the number is empty where there is only one.

    Files of exactly the base name, m.srew and m.trew. Where there are none, those that PRISM numbers: m1, m2,
    … from 1 without a gap, up to the first that are another model's (there is an m2.tra, m2.lab or m2.sta).
    `coming` are names of files that will be there.
    """
    parent = base.parent
    names = {file.name for file in parent.iterdir()} if parent.is_dir() else set()
    names.update(coming)
    by_number: dict[str, dict[str, Path]] = {}
    for number in itertools.chain([""], map(str, itertools.count(1))):
        stem = base.name + number
        files = {suffix: parent / (stem + suffix) for suffix in (".srew", ".trew") if stem + suffix in names}
        if number and (not files or any(stem + suffix in names for suffix in (".tra", ".lab", ".sta"))):
            break
        if files:
            by_number[number] = files
            if not number:
                break
    return by_number


def _with(base: Path, suffix: str) -> Path:
    return base.with_name(base.name + suffix)


def _labels(path: Path, states: int) -> tuple[dict[str, BoolArray], tuple[int, ...]]:
    nowhere = np.zeros(states, dtype=np.bool_)
    if not path.exists():
        first = nowhere.copy()
        first[0] = True
        return {"init": first, "deadlock": nowhere}, (0,)
    labels = read_labels(path, states)
    starts = np.flatnonzero(labels.get("init", nowhere))
    if len(starts) == 0:
        raise InputError("no state has the label 'init'", Location(str(path)))
    return labels, tuple(starts.tolist())


def _rewards(base: Path, transitions: Transitions) -> dict[str, RewardStructure]:
    """The name of a structure stands in a comment of its files; else it is the number in the file's name."""
    rewards: dict[str, RewardStructure] = {}
    for number, files in reward_files(base).items():
        names: list[str | None] = []
        state, choice, is_mean = None, None, False
        if ".srew" in files:
            name, state, held = read_state_rewards(files[".srew"], len(transitions.choice_start) - 1)
            names.append(name)
        if ".trew" in files:
            name, choice, earned, is_mean = read_transition_rewards(files[".trew"], transitions)
            names.append(name)
        if state is not None and choice is not None:
            try:
                door.check_choice_totals(transitions.choice_start, state, choice, held, earned)
            except door.NotHeldError as error:
                raise InputError(error.message, Location(str(files[".trew"]))) from None
        if len(set(names)) > 1:
            raise InputError(
                f"the files call their reward structure '{names[0]}' and '{names[1]}'",
                Location(str(files[".trew"])),
            )
        known = number if names[0] is None else names[0]
        if known in rewards:
            raise InputError(
                f"a second reward structure '{known}'", Location(str(next(iter(files.values()))))
            )
        rewards[known] = RewardStructure(state, choice, is_mean)
    return rewards


def is_explicit_ctmc(path: str | Path) -> bool:
    """Whether a `.tra` file says in its first comment that it holds a chain in continuous time."""
    base = explicit_base(path)
    return declared_type(base.with_name(f"{base.name}.tra")) == "ctmc"


def read_explicit_rates(path: str | Path) -> ParametricCTMC:
    """The chain in `path.tra` and the files beside it, without parameters."""
    base = explicit_base(path)
    transitions = read_transitions(base.with_name(f"{base.name}.tra"), continuous=True)
    structure = structure_of(base, transitions)
    table = ExpressionTable(())
    distinct, place = np.unique(transitions.bounds[0], return_inverse=True)
    codes = [table.add(Polynomial.constant(Fraction(decimal_text(rate)))) for rate in distinct.tolist()]
    expressions, expression = table.freeze(np.array(codes, dtype=np.int32)[place.reshape(-1)])
    rewards: dict[str, RewardStructure] = {}
    flows: dict[str, FloatArray] = {}
    for name, reward in structure.rewards.items():
        rewards[name] = RewardStructure(state=reward.state)
        if reward.choice is not None:
            flows[name] = reward.choice
    bare = replace(structure, rewards={})
    return with_earnings(ParametricCTMC(bare, expression, expressions, rate_box(())), rewards, flows)
