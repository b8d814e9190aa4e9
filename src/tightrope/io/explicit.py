"""PRISM's explicit files: a model as text files with one base name.

| file | holds |
|---|---|
| `m.tra` | transitions, with probabilities or intervals, and actions |
| `m.lab` | labels, "init" among them |
| `m.sta` | the values of the variables in each state |
| `m.srew`, `m1.srew`, … | rewards of states |
| `m.trew`, `m1.trew`, … | rewards of transitions |

Numbers are doubles, so models are `MDP` or `IntervalMDP`. Models with parameters need DRN. In the files:

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
import json
import os
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from tightrope.atomic import atomic_write, check_target
from tightrope.errors import InputError, Location
from tightrope.io.output import OTHERWISE, file_digest, foreign, refuse_results
from tightrope.io.rows import (
    FileRows,
    NumberValues,
    RateValues,
    TextLine,
    Values,
    decimal_text,
    exit_rewards,
    fail_at_nth,
    first_true,
    labels_of,
    nearest_double,
    refuse,
    shorten,
    texts_of,
    truth_or_number,
    unknown_state,
    whole_number,
    with_numbers,
)
from tightrope.model import numbers as door
from tightrope.model.continuous import CTMC, ParametricCTMC, rate_box
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import exact_number
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading
from tightrope.provenance import origin_lines


def is_content(line: str) -> bool:
    """Neither blank nor a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def read_content(path: Path) -> tuple[str, Iterator[TextLine]]:
    """The comments before the first line of content, and the lines of content."""
    comments, lines = "", _lines(path)
    for line in lines:
        if is_content(line.text):
            rest = (each for each in lines if is_content(each.text))
            return comments, itertools.chain([line], rest)
        comments += line.text
    return comments, iter(())


def _lines(path: Path) -> Iterator[TextLine]:
    with reading(path) as file:
        for number, text in enumerate(file, 1):
            yield TextLine(path, number, text)


def _first(path: Path, line: TextLine | None, expected: str) -> tuple[TextLine, list[int]]:
    """The first line of content, which is some whole numbers."""
    if line is None:
        refuse(path, "the file is empty")
    words = line.text.split()
    counts = [count for word in words if (count := whole_number(word)) is not None]
    if len(counts) < len(words):
        line.fail(f"{expected} expected, found {shorten(line.text)}")
    return line, counts


def _index(line: TextLine, word: str) -> int:
    index = whole_number(word)
    if index is None:
        line.fail(f"{shorten(word)} is not a number of a state or choice", word)
    return index


CTMC_TYPE = "ctmc"
_HEADER = re.compile(r"#\s*Transitions?\b[^()]*\(([^()]*)\)", re.IGNORECASE)
_CHAINS = {"dtmc": True, "idtmc": True, CTMC_TYPE: True, "mdp": False, "imdp": False}
_REFUSED_TYPES = {
    "ctmdp": "continuous-time models",
    "ma": "Markov automata",
    **dict.fromkeys(("pomdp", "popta", "ipomdp"), "partially observable models"),
    "pta": "timed automata",
    "lts": "models without probabilities",
    **dict.fromkeys(("stpg", "smg", "tsg", "csg"), "games"),
}
_RATES = "rates of a CTMC need a first line '# Transitions (CTMC)'"
_READ = "tightrope reads DTMC, MDP and their interval versions, IDTMC and IMDP"


def _declared(path: Path, comments: str) -> tuple[TextLine, str] | None:
    """The comment that names a type, and the type."""
    for number, text in enumerate(comments.splitlines(), 1):
        if (header := _HEADER.match(text.strip())) is not None:
            return TextLine(path, number, text), header.group(1).strip()
    return None


def _is_chain(line: TextLine, name: str) -> bool:
    """Whether the type that a file names is a chain's; refuses types that are not read."""
    known = name.lower()
    if known in _REFUSED_TYPES:
        line.fail(f"{name}: {_REFUSED_TYPES[known]} are not supported; {_READ}", name)
    if known not in _CHAINS:
        line.fail(f"unknown model type {shorten(name)}; {_READ}", name)
    return _CHAINS[known]


def read_transitions(path: Path) -> FileRows:
    """The content of a `.tra` file."""
    comments, lines = read_content(path)
    declared = _declared(path, comments)
    is_chain = None if declared is None else _is_chain(*declared)
    if (head := next(lines, None)) is not None and (word := head.text.strip()).lower() in {
        **_CHAINS,
        **_REFUSED_TYPES,
    }:
        _is_chain(head, word)
        hint = "write the model as DRN in Storm, or as explicit files in PRISM"
        head.fail("this is Storm's own dialect of explicit files, which is not read", hint=hint)
    head, counts = _first(path, head, "the numbers of states, choices and transitions")
    if len(counts) not in (2, 3):
        head.fail("two numbers (a DTMC) or three (an MDP) expected on the first line")
    if declared is not None and is_chain != (len(counts) == 2):
        kind, form = ("a DTMC", "three numbers") if is_chain else ("an MDP", "two numbers")
        head.fail(
            f"{form} for {kind}, which line {declared[0].number} says this is",
            hint="a DTMC has the numbers of states and transitions, an MDP also that of choices between",
        )
    has_rates = declared is not None and declared[1].lower() == CTMC_TYPE
    values = RateValues(rate_box(()), per_time=True) if has_rates else NumberValues()
    rows = _TransitionRows(head, counts, values)
    rows.read(lines)
    return rows.finish(comments)


class _TransitionRows:
    """Grows column by column, in the order of the file."""

    def __init__(self, head: TextLine, counts: list[int], values: Values):
        self.head, self.counts, self.values = head, counts, values
        self.is_chain, self.states = len(counts) == 2, counts[0]
        self.known_values: dict[str, int] = {}
        self.actions: dict[str, int] = {}
        self.state, self.choice, self.target = array("i"), array("i"), array("i")
        self.code, self.action = array("i"), array("i")

    def read(self, lines: Iterator[TextLine]) -> None:
        known, actions, width = self.known_values, self.actions, 3 if self.is_chain else 4
        for line in lines:
            words = line.text.split()
            if "[" in line.text and len(words) > width and not words[width - 1].endswith("]"):
                words = line.text.replace(", ", ",").split()
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
                    code = known[value] = self.values.code(value)
            except (ValueError, OverflowError) as error:
                self.explain(line, words, error)
            if len(rest) > 1:
                line.fail(f"unexpected {shorten(rest[1])} at the end", rest[1])
            self.code.append(code)
            self.action.append(actions.setdefault(rest[0] if rest else "", len(actions)))

    def explain(self, line: TextLine, words: list[str], error: Exception) -> NoReturn:
        value = "rate" if isinstance(self.values, RateValues) else "probability"
        form = f"from to {value}" if self.is_chain else f"from choice to {value}"
        width = len(form.split())
        if len(words) < width:
            line.fail(f"'{form}' expected, found {shorten(line.text)}")
        for word in words[: width - 1]:
            _index(line, word)
        line.fail(f"{shorten(words[width - 1])}: {error}", words[width - 1])

    def finish(self, comments: str) -> FileRows:
        """Sorted by state and choice, and checked."""
        announced, present = self.counts[-1], len(self.code)
        if present != announced:
            hint = "the file may be cut off" if present < announced else None
            self.fail_at_header(
                f"the first line announces {announced} transitions, the file has {present}", hint
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
            met = state[first][np.r_[True, np.diff(state[first]) > 0]] if len(first) else state
            gaps = np.flatnonzero(met != np.arange(len(met)))
            self.fail_without_row(int(gaps[0]) if len(gaps) else len(met))
        choice_start = np.searchsorted(state[first], np.arange(self.states + 1)).astype(np.int64)
        self.check_choices(order, state[first], choice[first], first, choice_start)
        start = np.append(first, len(state))
        if (other := first_true(action != np.repeat(action[first], np.diff(start)))) is not None:
            self.fail_at(int(order[other]), "a second action name for the same choice")
        rows = FileRows(
            self.head.path,
            choice_start,
            start,
            target,
            code,
            self.values,
            action[first],
            tuple(self.actions),
            self.is_chain,
            "choice",
            lambda transition, what: self.fail_at(int(order[transition]), what),
            lambda choice, what: self.fail_at(int(order[start[choice]]), what),
            comments,
            _RATES * self.is_chain,
        )
        rows.check()
        return rows

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
    ) -> None:
        """Every state has choices, numbered without gaps, and as many as announced."""
        if (empty := first_true(np.diff(choice_start) == 0)) is not None:
            self.fail_without_row(empty)
        if (gap := first_true(choice != np.arange(len(first)) - choice_start[state])) is not None:
            row = int(order[first[gap]])
            self.fail_at(row, f"the choices of state {state[gap]} are not numbered 0, 1, …")
        announced = self.states if self.is_chain else self.counts[1]
        if len(first) != announced:
            self.fail_at_header(f"the first line announces {announced} choices, the file has {len(first)}")

    def fail_without_row(self, state: int) -> NoReturn:
        hint = "give deadlocks a self-loop; PRISM's own exports have one"
        refuse(self.head.path, f"state {state} has no transition", hint)

    def fail_at_header(self, message: str, hint: str | None = None) -> NoReturn:
        raise InputError(message, Location(str(self.head.path), self.head.number, 1), hint)

    def fail_at(self, row: int, message: str) -> NoReturn:
        """At the row with this number in the file."""
        fail_at_nth(self.head.path, row, is_content, message, after=self.head.number)


_NAME = re.compile(r'^\s*#\s*Reward structure\s*:?\s*"([^"]*)"', re.MULTILINE)


@dataclass(frozen=True)
class _FileReward:
    """The name in a file's comment, and the rewards, as doubles and as they are written."""

    name: str | None
    amount: FloatArray
    exact: Callable[[int], Fraction]
    is_mean: bool = False


class _RewardLines:
    """The entries of a reward file: whole numbers and a reward each, as many as announced."""

    def __init__(self, path: Path, widths: tuple[int, ...], expected: str, states: int):
        self.path = path
        comments, self.lines = read_content(path)
        names = _NAME.findall(comments)
        self.name: str | None = names[-1] if names else None
        head, counts = _first(path, next(self.lines, None), expected)
        if len(counts) not in widths:
            head.fail(f"{expected} expected, found {shorten(head.text)}")
        if counts[0] != states:
            head.fail(f"rewards for {counts[0]} states, but the model has {states}")
        self.announced = counts[-1]

    def read(self, width: int) -> Iterator[tuple[TextLine, list[int], float, str]]:
        count = 0
        for line in self.lines:
            count += 1
            words = line.text.split()
            if len(words) != width + 1:
                line.fail(f"{width} numbers and a reward expected, found {shorten(line.text)}")
            numbers, text = [_index(line, word) for word in words[:width]], words[width]
            try:
                yield line, numbers, nearest_double(text), text
            except ValueError as error:
                line.fail(f"{shorten(text)}: {error}", text)
        if count != self.announced:
            refuse(
                self.path,
                f"the first line announces {self.announced} rewards, the file has {count}",
                "the file may be cut off" if count < self.announced else None,
            )


def read_state_rewards(path: Path, states: int) -> _FileReward:
    """The rewards of states."""
    amount, texts = np.zeros(states), dict[int, str]()
    file = _RewardLines(path, (2,), "the numbers of states and entries", states)
    for line, (state,), reward, text in file.read(1):
        if state >= states:
            line.fail(unknown_state(state, states))
        if state in texts:
            line.fail(f"a second reward for state {state}")
        texts[state], amount[state] = text, reward
    return _FileReward(file.name, amount, lambda state: exact_number(texts.get(state, "0")))


def read_transition_rewards(path: Path, rows: FileRows) -> _FileReward:
    """The rewards of the choices; where numbers are rates, what they earn per unit of time."""
    start, are_rates = rows.transition_start, isinstance(rows.values, RateValues)
    owner = np.repeat(np.arange(len(rows.action)), np.diff(start))
    pairs = zip(owner.tolist(), rows.successor.tolist(), strict=True)
    index = {pair: transition for transition, pair in enumerate(pairs)}
    first_choice, rewards = rows.choice_start.tolist(), np.zeros(len(rows.successor))
    place: dict[int, tuple[TextLine, str]] = {}
    expected = "the numbers of states, choices and entries"
    file = _RewardLines(path, (2, 3), expected, rows.states)
    for line, numbers, reward, text in file.read(2 if rows.is_chain else 3):
        state, local = numbers[0], 0 if rows.is_chain else numbers[1]
        transition = None
        if state < rows.states and local < first_choice[state + 1] - first_choice[state]:
            transition = index.get((first_choice[state] + local, numbers[-1]))
        if transition is None:
            line.fail("a reward for a transition that the model does not have")
        if transition in place:
            line.fail("a second reward for the same transition")
        place[transition], rewards[transition] = (line, text), reward

    def exact(choice: int) -> Fraction:
        """Σ probability · reward: values depend on nothing else. A reward that all earn is that."""
        own = range(start[choice], start[choice + 1])
        earned = [exact_number(place[t][1] if t in place else "0") for t in own]
        if not are_rates and len(set(earned)) == 1:
            return earned[0]
        chances = (rows.values.number(int(rows.code[t])) for t in own)
        return sum((chance * r for chance, r in zip(chances, earned, strict=True)), Fraction(0))

    low, high = np.minimum.reduceat(rewards, start[:-1]), np.maximum.reduceat(rewards, start[:-1])
    differ = np.flatnonzero((low != 0) | (high != 0) if are_rates else low != high)
    for choice in differ.tolist():
        line = next(place[t][0] for t in range(start[choice], start[choice + 1]) if t in place)
        if rows.values.has_intervals:
            line.fail(
                "the transitions of this choice earn different rewards, so what it earns depends on "
                "probabilities that are intervals; that is not supported",
                hint="give the reward to the choice, or to states: the same number on all of its transitions",
            )
        try:
            low[choice] = door.double(exact(choice))
        except door.NotHeldError as error:
            line.fail(f"what this choice earns on average: {error.message}")
    return _FileReward(file.name, low, exact, len(differ) > 0)


_DECLARATION = re.compile(r'\s*([0-9]{1,9})="([^"]*)"')


def read_valuations(path: Path, states: int) -> dict[str, AnyArray]:
    """A column per variable, of booleans where the file says true and false."""
    _, lines = read_content(path)
    head = next(lines, TextLine(path, 1, ""))
    names = _read_parenthesised(head, head.text)
    if len(set(names)) < len(names) or not all(names):
        head.fail("two variables have one name")
    rows: list[list[int | bool] | None] = [None] * states
    known: dict[str, int | bool] = {}
    for line in lines:
        index, colon, values = line.text.partition(":")
        state = _state(line, index if colon else line.text, states)
        if rows[state] is not None:
            line.fail(f"state {state} is described twice")
        words = _read_parenthesised(line._replace(text=values), values)
        if len(words) != len(names):
            line.fail(f"{len(words)} values for {len(names)} variables")
        for word in words:
            if word not in known:
                if (value := truth_or_number(word)) is None:
                    line.fail(f"{shorten(word)} is neither a whole number nor true or false", word)
                known[word] = value
        rows[state] = [known[word] for word in words]
    if None in rows:
        refuse(path, f"state {rows.index(None)} is not described", "the file may be cut off")
    table = np.array(rows, dtype=object).reshape(states, len(names))
    columns = {}
    for k, name in enumerate(names):
        kinds = {isinstance(value, bool) for value in table[:, k]}
        if len(kinds) > 1:
            refuse(path, f"variable '{name}' is a number in some states only")
        columns[name] = table[:, k].astype(np.bool_ if kinds == {True} else np.int32)
    return columns


def read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    """The states with each label; the first line numbers the labels, `0="init" 1="goal"`."""
    _, lines = read_content(path)
    head = next(lines, TextLine(path, 1, ""))
    names, end, text = dict[str, str](), 0, head.text.rstrip()
    while end < len(text):
        match = _DECLARATION.match(text, end)
        if match is None:
            hint = (
                "PRISM's labels files begin so; Storm's dialect (#DECLARATION) is not read, its DRN files are"
            )
            head.fail('labels such as 0="init" 1="goal" expected on the first line', hint=hint)
        if match.group(1) in names or match.group(2) in names.values():
            head.fail(f"label {shorten(match.group(0))} is declared twice", match.group(0))
        names[match.group(1)], end = match.group(2), match.end()
    try:
        door.check_room(float(len(names)) * states, f"{len(names):,} labels")
    except InputError as error:
        head.fail(error.message, hint=error.hint)
    labels = {name: np.zeros(states, dtype=np.bool_) for name in names.values()}
    for line in lines:
        index, _, listed = line.text.partition(":")
        state = _state(line, index, states)
        for word in listed.split():
            if word not in names:
                line.fail(f"{shorten(word)} is not the number of a label", word)
            labels[names[word]][state] = True
    return labels


def _read_parenthesised(line: TextLine, text: str) -> list[str]:
    stripped = text.strip()
    if not stripped.startswith("(") or not stripped.endswith(")"):
        line.fail(f"a list such as (0,true) expected, found {shorten(text)}")
    return [word.strip() for word in stripped[1:-1].split(",")]


def _state(line: TextLine, text: str, states: int) -> int:
    state = whole_number(text)
    if state is None:
        line.fail(f"the number of a state expected, found {shorten(text)}")
    if state >= states:
        line.fail(unknown_state(state, states), text.strip())
    return state


def read_explicit(path: str | Path) -> MDP | IntervalMDP | ParametricCTMC:
    """The model in `path.tra` and the files beside it."""
    base = explicit_base(path)
    rows = read_transitions(_with(base, ".tra"))
    labels, valuations = _labels(_with(base, ".lab"), rows.states), _with(base, ".sta")
    columns = read_valuations(valuations, rows.states) if valuations.exists() else {}
    model = rows.model(labels, _rewards(base, rows), columns)
    assert isinstance(model, MDP | IntervalMDP | ParametricCTMC)
    return model


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


def _labels(path: Path, states: int) -> dict[str, BoolArray]:
    if not path.exists():
        return {"init": np.arange(states) == 0, "deadlock": np.zeros(states, dtype=np.bool_)}
    labels = read_labels(path, states)
    if not np.any(labels.get("init", False)):
        refuse(path, "no state has the label 'init'")
    return labels


def _rewards(base: Path, rows: FileRows) -> dict[str, RewardStructure]:
    """The name of a structure stands in a comment of its files; else it is the number in the file's name."""
    rewards: dict[str, RewardStructure] = {}
    for number, files in reward_files(base).items():
        state = read_state_rewards(files[".srew"], rows.states) if ".srew" in files else None
        choice = read_transition_rewards(files[".trew"], rows) if ".trew" in files else None
        if state is not None and choice is not None:
            try:
                door.check_choice_totals(
                    rows.choice_start, state.amount, choice.amount, state.exact, choice.exact
                )
            except door.NotHeldError as error:
                refuse(files[".trew"], error.message)
            if state.name != choice.name:
                what = f"the files call their reward structure '{state.name}' and '{choice.name}'"
                refuse(files[".trew"], what)
        one = state or choice
        assert one is not None
        known = number if one.name is None else one.name
        if known in rewards:
            refuse(next(iter(files.values())), f"a second reward structure '{known}'")
        rewards[known] = RewardStructure(
            None if state is None else state.amount,
            None if choice is None else choice.amount,
            choice is not None and choice.is_mean,
        )
    return rewards


def declared_type(path: str | Path) -> str:
    """The type that a `.tra` file names in its first comment, in small letters; empty where it names none."""
    file = _with(explicit_base(path), ".tra")
    declared = _declared(file, read_content(file)[0])
    return "" if declared is None else declared[1].lower()


# Writing: doubles have the fewest digits that give the same double back. Rewards of a choice stand on each of
# its transitions. As PRISM accepts no leading comment, `m.tightrope.json` records the written files:
#
#     {"format": "tightrope explicit files", "version": 1, "files": {"m.tra": "9f2c…", "m.lab": "77ab…"}}
#
# Existing files are replaced only if they match their SHA-256 in the record, are empty, or with
# `--overwrite`. Recorded files that the new model lacks are removed, as they would be read as parts of it.
# Foreign ones of that kind are refused, also with `--overwrite`.

_LINES_AT_ONCE = 1 << 14


def write_explicit(
    model: MDP | IntervalMDP | ParametricMDP | ParametricCTMC | CTMC,
    path: str | Path,
    *,
    check: Callable[[Iterable[Path]], None] | None = None,
    stale: Collection[Path] = (),
) -> list[Path]:
    """Writes `path.tra`, `.lab`, `.sta` and the reward files; returns what was written.

    Several reward structures are m1.srew, m1.trew, m2.srew, …, as in PRISM. `check` may refuse the names
    before anything is written; files among `stale` that would be read as parts of the model are removed.

    >>> import os, tempfile
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = model.save(os.path.join(folder, "m"))
    ...     tr.load(os.path.join(folder, "m.tra")).states
    2
    """
    plain = with_numbers(model, "PRISM's explicit files")
    base, structure = explicit_base(path), plain.structure
    if isinstance(plain, CTMC):
        structure = replace(structure, rewards=exit_rewards(plain))
    lines = _transition_lines(plain)
    _check_names(structure)
    files = {".tra": lines, ".lab": _label_lines(structure)}
    if structure.valuations:
        files[".sta"] = _valuation_lines(structure)
    for number, (name, reward) in enumerate(structure.rewards.items(), 1):
        infix = str(number) if len(structure.rewards) > 1 else ""
        if reward.state is not None or reward.choice is None:
            files[f"{infix}.srew"] = _state_reward_lines(name, reward, structure)
        if reward.choice is not None:
            files[f"{infix}.trew"] = _choice_reward_lines(name, reward.choice, structure)
    targets = {base.with_name(base.name + suffix): lines for suffix, lines in files.items()}
    if check is not None:
        check(targets)
    leftovers = _leftovers(base, set(targets))
    for file in (each for each in leftovers if each not in stale):
        raise InputError(
            f"{file} belongs to another model and would be read as a part of this one",
            hint="remove it or choose another name",
        )
    with ExitStack() as together:  # all take their places in the end, or none
        for target, content in targets.items():
            stream = together.enter_context(atomic_write(target))
            while chunk := list(islice(content, _LINES_AT_ONCE)):
                stream.write("\n".join(chunk) + "\n")
            stream.flush()
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return list(targets)


def _leftovers(base: Path, targets: set[Path]) -> list[Path]:
    """Files of an older model under the same name, which would be read as parts of this one."""
    rewards = reward_files(base, [target.name for target in targets])
    beside = [file for files in rewards.values() for file in files.values()]
    everything = [*beside, base.with_name(base.name + ".sta")]
    return [file for file in everything if file.exists() and file not in targets]


def _check_names(structure: Structure) -> None:
    for kind, names, forbidden in (
        ("label", structure.labels, '"\r\n'),
        ("reward structure", structure.rewards, '"\r\n'),
        ("action", structure.action_names, " \t\r\n"),
        ("variable", structure.valuations, "(),\r\n"),
    ):
        for name in names:
            if any(character in forbidden for character in name):
                raise InputError(f"explicit files cannot hold the {kind} name '{name}'")


def _transition_lines(model: MDP | IntervalMDP | CTMC) -> Iterator[str]:
    structure = model.structure
    if isinstance(model, CTMC):
        yield "# Transitions (CTMC)"
    yield from (f"# {line}" for line in origin_lines(structure))
    values = _value_texts(model)
    is_named = not isinstance(model, CTMC)
    names = [f" {name}" if name and is_named else "" for name in structure.action_names]
    suffix = [names[action] for action in structure.action_of_choice.tolist()]
    if structure.is_chain:
        yield f"{structure.states} {structure.transitions}"
    else:
        yield f"{structure.states} {structure.choices} {structure.transitions}"
    for head, choice, transition in _rows(structure):
        yield f"{head} {values[transition]}{suffix[choice]}"


def _rows(structure: Structure) -> Iterator[tuple[str, int, int]]:
    """(`from choice to` or `from to`, choice, transition) for every transition."""
    successor = structure.successor.tolist()
    choice_state = structure.choice_state.tolist()
    first_choice = structure.choice_start[structure.choice_state].tolist()
    starts = structure.transition_start.tolist()
    for choice, state in enumerate(choice_state):
        source = str(state) if structure.is_chain else f"{state} {choice - first_choice[choice]}"
        for transition in range(starts[choice], starts[choice + 1]):
            yield f"{source} {successor[transition]}", choice, transition


def _value_texts(model: MDP | IntervalMDP | CTMC) -> list[str]:
    if isinstance(model, MDP | CTMC):
        return texts_of(model.probability if isinstance(model, MDP) else model.rate)
    pairs = zip(texts_of(model.lower), texts_of(model.upper), strict=True)
    return [f"[{low},{high}]" for low, high in pairs]


def _label_lines(structure: Structure) -> Iterator[str]:
    """A model without the label "init" gets it, since the initial state is known by it."""
    labels = labels_of(structure)
    yield " ".join(f'{number}="{name}"' for number, name in enumerate(labels))
    members = np.stack(list(labels.values()), axis=1)
    for state in np.flatnonzero(members.any(axis=1)).tolist():
        yield f"{state}: {' '.join(str(number) for number in np.flatnonzero(members[state]))}"


def _valuation_lines(structure: Structure) -> Iterator[str]:
    yield f"({','.join(structure.valuations)})"
    columns: Iterable[list[int | bool]] = (column.tolist() for column in structure.valuations.values())
    for state, row in enumerate(zip(*columns, strict=True)):
        yield f"{state}:({','.join(str(value).lower() for value in row)})"


def _state_reward_lines(name: str, reward: RewardStructure, structure: Structure) -> Iterator[str]:
    rewards = np.zeros(structure.states) if reward.state is None else reward.state
    entries = np.flatnonzero(rewards).tolist()
    yield f'# Reward structure "{name}"'
    yield "# State rewards"
    yield f"{structure.states} {len(entries)}"
    for state in entries:
        yield f"{state} {decimal_text(float(rewards[state]))}"


def _choice_reward_lines(name: str, rewards: FloatArray, structure: Structure) -> Iterator[str]:
    texts = [decimal_text(value) for value in rewards.tolist()]
    entries = int(np.diff(structure.transition_start)[rewards != 0].sum())
    choices = "" if structure.is_chain else f" {structure.choices}"
    yield f'# Reward structure "{name}"'
    yield "# Transition rewards"
    yield f"{structure.states}{choices} {entries}"
    for head, choice, _ in _rows(structure):
        if rewards[choice] != 0:
            yield f"{head} {texts[choice]}"


FORMAT = "tightrope explicit files"
VERSION = 1
RECORD = ".tightrope.json"


@dataclass(frozen=True)
class ExplicitOutput:
    """The files of a base name, and whether foreign ones may be replaced."""

    base: Path
    overwrite: bool = False

    @property
    def record(self) -> Path:
        """The file that says which others are ours."""
        return self.base.with_name(self.base.name + RECORD)

    def check(self, targets: Iterable[Path] = ()) -> None:
        """Refuse if one of the files must not or cannot be written."""
        main = [self.base.with_name(self.base.name + suffix) for suffix in (".tra", ".lab", ".sta")]
        rewards = [file for files in reward_files(self.base).values() for file in files.values()]
        known = self._read_record()
        for file in dict.fromkeys((*main, *rewards, *targets)):
            check_target(file)
            if self.overwrite or not os.path.lexists(file):
                continue
            refuse_results(file, Path(os.path.realpath(file)))
            if not _is_known(file, known):
                raise foreign(file, "no file that tightrope is known to have written")

    def write(self, model: MDP | IntervalMDP | ParametricMDP | ParametricCTMC | CTMC) -> list[Path]:
        """Write the model; all files that were written, the record last."""
        known = self._read_record()
        own = {self.base.with_name(name) for name in known if _is_known(self.base.with_name(name), known)}
        written = write_explicit(model, self.base, check=self.check, stale=own)
        content = {
            "format": FORMAT,
            "version": VERSION,
            "files": {file.name: file_digest(file) for file in written},
        }
        with atomic_write(self.record) as file:
            file.write(json.dumps(content, indent=1) + "\n")
        return [*written, self.record]

    def _read_record(self) -> dict[str, str]:
        """{name: digest} of the files that were written before."""
        check_target(self.record)
        if not os.path.lexists(self.record):
            return {}
        try:
            content = json.loads(self.record.read_text(encoding="utf-8"))
            if content["format"] == FORMAT and content["version"] == VERSION:
                return {
                    str(name): str(digest)
                    for name, digest in content["files"].items()
                    if str(name).startswith(self.base.name) and "/" not in str(name)
                }
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass
        if self.overwrite:
            return {}
        raise foreign(self.record, "not a record of explicit files that tightrope wrote")


def claim_explicit(path: str | Path, overwrite: bool = False) -> ExplicitOutput:
    """Refuse files that must not be written, before anything is computed."""
    claimed = ExplicitOutput(explicit_base(path), overwrite)
    claimed.check()
    return claimed


def _is_known(file: Path, known: dict[str, str]) -> bool:
    try:
        return file.stat().st_size == 0 or (file.name in known and file_digest(file) == known[file.name])
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{file} exists and cannot be read ({error.strerror or error}); it was not changed",
            hint=OTHERWISE,
        ) from error
