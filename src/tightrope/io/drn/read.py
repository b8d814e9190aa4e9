"""Read DRN files: models in discrete time, POMDPs, Markov automata and CTMCs. Checks of the whole file.

* `@type: POMDP`: the number of the observation follows each state, `{3}`.
* `@type: Markov Automaton` or `MA`: the exit rate follows each state, `!2.5`; `!0` marks immediate choices.
  Transitions have probabilities. Parameters and intervals are refused.
* `@type: CTMC`: one action per state; transitions have rates, exact if written as fraction or decimal, or
  polynomials. The exit rate must equal their sum up to the rounding of six digits. Files with probabilities
  are refused. State rewards are per unit of time, action rewards per departure (`io.rows`).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

import msgspec
import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io import rows
from tightrope.model import numbers as door
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC, rate_box
from tightrope.model.expressions import tabulate
from tightrope.model.mdp import MDP
from tightrope.model.parameters import Parameters, narrow_domain, parse_domain
from tightrope.model.polynomial import Polynomial, PolynomialSyntaxError
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import UNLABELLED, ParametricReward, RewardStructure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading
from tightrope.provenance import origin_lines

# Lines of DRN files: header, comments, values, states and choices.
#
# Sections before `@model` come in any order, as `@name` with content below or `@name: content`. A comment
# that other readers skip holds what DRN cannot express. A comment below a state is Storm's valuation; Storm
# writes `!busy` for a false variable and nothing for a true one:
#
#     //@tightrope {"version": 1, "domain": "1/10<=p<=9/10", "labels": ["init", "goal"], …}
#     state 3 goal
#     //[x=1	& busy=true]
#
# | value type | model |
# |---|---|
# | `double` (default without parameters) | `MDP` of the nearest doubles |
# | `double-interval` (default with brackets) | `IntervalMDP` of the nearest doubles |
# | `rational-interval` | `IntervalMDP`, bounds rounded outwards to doubles |
# | `rational` | `ParametricMDP` without parameters, exact |
# | `parametric` | `ParametricMDP` |
#
# Each distinct text after a line's first number is parsed once (`code`); `model` is called at the end.

VALUE_TYPES = ("double", "rational", "double-interval", "rational-interval", "parametric")
AUTOMATON_TYPES = ("ma", "markov automaton", "markovautomaton")


@dataclass
class Header:
    """Filled section by section; complete once `@model` is reached (`model_line`)."""

    is_chain: bool | None = None
    is_continuous: bool = False
    """Rates stand where probabilities stand in other models."""
    is_observed: bool = False
    """States have observations, `{3}`."""
    value_type: str | None = None
    parameters: tuple[str, ...] = ()
    placeholders: dict[str, tuple[str, rows.TextLine]] = field(default_factory=dict)
    """Name without the dollar → (text, where it stands)."""
    reward_names: tuple[str, ...] = ()
    states: int | None = None
    choices: int | None = None
    notes: Notes | None = None
    comments: str = ""
    model_line: int = 0


_SECTIONS = ("type", "value_type", "parameters", "placeholders", "reward_models", "nr_states", "nr_choices")


def read_header(path: Path, lines: Iterator[tuple[int, str]]) -> Header:
    """Reads up to and including the line `@model`."""
    header, seen, section, here = Header(), set[str](), "", rows.TextLine(path, 1, "")
    for number, line in lines:
        text, here = line.strip(), rows.TextLine(path, number, line)
        if section and section != "@placeholders":
            _read_section(header, section, line, here)
            section = ""
            continue
        if text.startswith(NOTES_MARK):
            header.notes = parse_notes(here)
        if not text or text.startswith("//"):
            header.comments += "".join(f"{one}\n" for one in origin_lines(text))
            continue
        if text == "@model":
            header.model_line = number
            _complete(header, here)
            return header
        if text.startswith("@"):
            section, _, inline = text.partition(":")
            if section in seen:
                here.fail(f"the section {section} occurs twice")
            if section[1:] not in _SECTIONS:
                here.fail(f"unknown section {rows.shorten(section)}", section)
            seen.add(section)
            if inline.strip() and section != "@placeholders":
                _read_section(header, section, inline, here)
                section = ""
        elif section:
            _read_placeholder(header, here)
        else:
            hint = "a DRN file begins with sections such as @type, @parameters, @nr_states and @model"
            here.fail(f"{rows.shorten(text)} is not expected before @model", hint=hint)
    if section and section != "@placeholders":
        here.fail(f"the file ends within its section {section}")
    rows.refuse(path, "the file ends before its @model section", "is this a DRN file? It may be cut off")


def _read_section(header: Header, name: str, text: str, here: rows.TextLine) -> None:
    """The content of a section of one line."""
    match name:
        case "@type":
            _read_type(header, text, here)
        case "@value_type":
            header.value_type = text.strip()
            if header.value_type not in VALUE_TYPES:
                here.fail(
                    f"unknown value type {rows.shorten(text)}", hint=f"it is one of {', '.join(VALUE_TYPES)}"
                )
        case "@parameters":
            header.parameters = tuple(text.split())
            if len(set(header.parameters)) < len(header.parameters):
                here.fail("a parameter is named twice")
        case "@reward_models":
            header.reward_names = split_reward_names(text)
            if len(set(header.reward_names)) < len(header.reward_names):
                here.fail("a reward model is named twice")
        case _:
            what, stripped = name.removeprefix("@nr_"), text.strip()
            if not (stripped.isascii() and stripped.isdecimal()) or len(stripped) > 18:
                here.fail(f"the number of {what} expected, found {rows.shorten(text)}")
            setattr(header, what, int(stripped))


def _read_type(header: Header, text: str, here: rows.TextLine) -> None:
    name = text.strip().lower()
    if name in ("smg", "s2pg"):
        here.fail("games are not supported; tightrope reads MDP and DTMC", text.strip())
    header.is_continuous = name == "ctmc" or name in AUTOMATON_TYPES
    if name not in ("mdp", "dtmc", "pomdp") and not header.is_continuous:
        here.fail(f"unknown model type {rows.shorten(text)}; tightrope reads MDP, DTMC and POMDP")
    header.is_observed, header.is_chain = name == "pomdp", name in ("dtmc", "ctmc")


def _read_placeholder(header: Header, here: rows.TextLine) -> None:
    name, colon, value = here.text.strip().partition(":")
    if not name.startswith("$") or not colon:
        here.fail(f"a placeholder such as '$0 : 1/2*p' expected, found {rows.shorten(here.text)}")
    key = name[1:].strip()
    if key in header.placeholders:
        here.fail(f"the placeholder ${key} is defined twice", name)
    header.placeholders[key] = (value, here)


def _complete(header: Header, here: rows.TextLine) -> None:
    if header.is_chain is None:
        here.fail("the section @type is missing before @model", hint="add a line '@type: MDP'")
    if header.states is None:
        here.fail("the section @nr_states is missing before @model")
    if header.value_type is None and header.parameters:
        header.value_type = "parametric"
    if header.parameters and header.value_type != "parametric":
        here.fail(f"a model of value type {header.value_type} has no parameters")


def split_reward_names(line: str) -> tuple[str, ...]:
    """Names are separated by single spaces, each may be followed by one; '' is the unnamed structure."""
    text = line.rstrip("\r\n").replace("\t", " ")
    if not text:
        return ()
    return tuple(text.removesuffix(" ").split(" "))


NOTES_MARK = "//@tightrope"
VALUATION_MARK = "//["
VERSION = 1

Part = Literal["state", "choice"]


class Notes(msgspec.Struct, frozen=True):
    """The content of the comment."""

    version: int
    domain: str
    labels: tuple[str, ...]
    actions: tuple[str, ...]
    rewards: dict[str, tuple[Part, ...]]
    observations: tuple[str, ...] = ()

    def text(self) -> str:
        return f"{NOTES_MARK} {json.dumps(msgspec.to_builtins(self), ensure_ascii=False)}"


def parse_notes(here: rows.TextLine) -> Notes:
    notes: Notes | None = None
    try:
        content = msgspec.json.decode(here.text.strip()[len(NOTES_MARK) :])
        if isinstance(content, dict) and (version := content.get("version")) != VERSION:
            here.fail(f"notes of version {version}, not {VERSION}")
        notes = msgspec.convert(content, type=Notes)
    except (msgspec.DecodeError, RecursionError):
        pass
    if notes is None or any(len(set(names)) < len(names) for names in (notes.labels, notes.actions)):
        here.fail(f"the comment {NOTES_MARK} is damaged", hint="remove it to go without")
    return notes


def valuation_text(names: Sequence[str], values: Sequence[object]) -> str:
    """The comment for one state; booleans are Python's."""
    items = (
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in zip(names, values, strict=True)
    )
    return f"{VALUATION_MARK}{chr(9).join('& ' * (k > 0) + item for k, item in enumerate(items))}]"


class ValuationColumns:
    """Collects the comments of all states; `columns` makes arrays of them where they are complete."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...] | None] = []
        self.names: list[str | None] = []
        self.is_bool: list[bool] = []
        self.items: dict[str, tuple[str | None, int, bool]] = {}
        self.broken = False

    def add(self, state: int, line: str) -> None:
        """The comment that follows the line of this state; a second one for a state is ignored."""
        if self.broken or len(self.rows) > state:
            return
        text = line.strip()
        if len(self.rows) < state or not text.endswith("]"):
            self.broken = True
            return
        entries = [self._item(item.strip()) for item in text[len(VALUATION_MARK) : -1].split("\t& ")]
        if not self.rows:
            self.names = [None] * len(entries)
            self.is_bool = [False] * len(entries)
        if len(entries) != len(self.names):
            self.broken = True
            return
        for position, (name, _, is_bool) in enumerate(entries):
            if name is not None:
                if self.names[position] not in (None, name):
                    self.broken = True
                self.names[position] = name
                self.is_bool[position] |= is_bool
        self.rows.append(tuple(value for _, value, _ in entries))

    def _item(self, item: str) -> tuple[str | None, int, bool]:
        if item not in self.items:
            self.items[item] = self._parse(item)
        return self.items[item]

    def _parse(self, item: str) -> tuple[str | None, int, bool]:
        if not item:
            return None, 1, True
        name, equals, value = item.partition("=")
        if not equals:
            return (item[1:].strip(), 0, True) if item.startswith("!") else (item, 1, True)
        number = rows.truth_or_number(value)
        self.broken |= number is None
        return name, int(number or 0), isinstance(number, bool)

    def columns(self, states: int) -> dict[str, AnyArray]:
        """{variable: values}; empty where a state lacks its comment, as comments may be dropped."""
        named = [name for name in self.names if name is not None]
        if self.broken or len(self.rows) != states or len(set(named)) < len(named):
            return {}
        table = np.array(self.rows, dtype=np.int32).reshape(states, len(self.names))
        return {
            name: table[:, k].astype(np.bool_ if self.is_bool[k] else np.int32)
            for k, name in enumerate(self.names)
            if name is not None
        }


NO_LABEL = "__NOLABEL__"
"""What DRN calls the action of a choice without a name."""

Progress = Callable[[int, int], None]
"""Called now and then with the states and transitions so far."""

_REPORT_EVERY = 1 << 14
_Meaning = TypeVar("_Meaning")


class Body:
    """The arrays of the model, growing line by line; entries are the distinct texts of states and actions."""

    def __init__(self, path: Path, header: Header, values: rows.Values):
        self.path, self.header, self.values, self.here = path, header, values, rows.TextLine(path, 0, "")
        notes = header.notes
        self.labels = {name: k for k, name in enumerate(notes.labels if notes else ("init", "deadlock"))}
        self.actions = {name: k for k, name in enumerate(notes.actions if notes else ())}
        self.state_entries: list[tuple[tuple[rows.Amount, ...], tuple[int, ...]]] = []
        self.choice_entries: list[tuple[tuple[rows.Amount, ...], int]] = []
        self.exit_texts: dict[int, str] = {}
        """Of chains in continuous time: the exit rates that are written behind states, by entry."""
        self.observations: dict[int, int] = {}
        """Of partially observable models: what states look like, by entry."""
        self.state_entry, self.choice_entry = array("i"), array("i")
        self.choice_start, self.transition_start = array("q"), array("q")
        self.successor, self.code = array("i"), array("i")
        self.valuations = ValuationColumns()
        self._placeholders: dict[str, str] = {}
        self._known_states: dict[str, int] = {}
        self._known_choices: dict[str, int] = {}
        self._known_values: dict[str, int] = {}
        self._first_transition = 0
        self.has_unwritten_choices = False

    def fail(self, message: str, token: str | None = None, hint: str | None = None) -> NoReturn:
        self.here.fail(message, token, hint)

    def read(self, lines: Iterator[tuple[int, str]], progress: Progress | None) -> None:
        """All lines behind `@model`."""
        for name, (text, here) in self.header.placeholders.items():
            self.here = here
            self._placeholders[name] = text.strip()
            self._known_values[f" ${name}\n"] = self.meaning(self.values.code, text)
        known, successor, code = self._known_values, self.successor, self.code
        for number, line in lines:
            text = line.lstrip()
            if text[:1].isdecimal():
                target, colon, value = text.partition(":")
                try:
                    successor.append(int(target))
                    code.append(known[value])
                except (ValueError, OverflowError, KeyError):
                    self.here = rows.TextLine(self.path, number, line)
                    self.new_transition(target, colon, value)
                continue
            self.here = rows.TextLine(self.path, number, line)
            if text.startswith("action "):
                self.new_choice(text[7:])
            elif text.startswith("state "):
                self.new_state(text[6:])
                if progress is not None and len(self.state_entry) % _REPORT_EVERY == 0:
                    progress(len(self.state_entry), len(successor))
            elif text.startswith(VALUATION_MARK):
                self.valuations.add(len(self.state_entry) - 1, text)
            elif text.strip() and not text.startswith("//"):
                self.fail(
                    f"{rows.shorten(text)} is not a line of a model",
                    hint="expected 'state …', 'action …' or a transition such as '3 : 0.5'",
                )
        self.close_state()

    def new_state(self, text: str) -> None:
        self.close_state()
        identifier, rest = [*text.split(None, 1), "", ""][:2]
        index = len(self.state_entry)
        if identifier.strip() != str(index):
            self.fail(f"state {index} expected here, found {rows.shorten(identifier)}", identifier.strip())
        entry = self._known_states.get(rest)
        if entry is None:
            rewards, names = self.rewards_and_labels(rest)
            labels = tuple(_number(self.labels, name) for name in names)
            entry = len(self.state_entries)
            self.state_entries.append((rewards, labels))
            self._known_states[rest] = entry
        self.choice_start.append(len(self.choice_entry))
        self.state_entry.append(entry)
        self._first_transition = len(self.successor)

    def close_state(self) -> None:
        """A state without an action line has one choice without a name (old DTMC files)."""
        if len(self.successor) > self._first_transition and not self.state_entry:
            self.fail("a transition before the first state")
        if not self.state_entry or len(self.choice_entry) > self.choice_start[-1]:
            return
        if len(self.successor) == self._first_transition:
            index = len(self.state_entry) - 1
            rows.fail_at_nth(
                self.path, index, is_state_line, f"state {index} has no transition", self.header.model_line
            )
        self.has_unwritten_choices = True
        self.open_choice(self.choice(NO_LABEL), self._first_transition)

    def new_choice(self, text: str) -> None:
        if not self.state_entry:
            self.fail("an action before the first state")
        is_first = len(self.choice_entry) == self.choice_start[-1]
        if is_first and len(self.successor) > self._first_transition:
            self.fail("an action behind transitions that belong to none")
        if self.header.is_chain and not is_first:
            kind = "CTMC" if self.header.is_continuous else "DTMC"
            hint = "a model with several actions a state is an MDP"
            self.fail(f"a second action in a state of a {kind}", hint=hint)
        self.open_choice(self.choice(text), len(self.successor))

    def choice(self, text: str) -> int:
        entry = self._known_choices.get(text)
        if entry is None:
            name, rest = [*text.split(None, 1), "", ""][:2]
            if not name or name.startswith("["):
                self.fail(f"an action needs a name; {NO_LABEL} stands for none")
            rewards, behind = self.split_rewards(rest)
            if behind.strip():
                self.fail(f"unexpected {rows.shorten(behind)} behind the action", behind.strip())
            entry = len(self.choice_entries)
            action = _number(self.actions, UNLABELLED if name == NO_LABEL else name)
            self.choice_entries.append((rewards, action))
            self._known_choices[text] = entry
        return entry

    def open_choice(self, entry: int, first_transition: int) -> None:
        self.transition_start.append(first_transition)
        self.choice_entry.append(entry)

    def new_transition(self, target: str, colon: str, value: str) -> None:
        """The careful way, for a line with a new value or with an error."""
        if not colon:
            self.fail(f"a transition such as '3 : 0.5' expected, found {rows.shorten(target)}")
        state = rows.whole_number(target)
        if state is None:
            self.fail(f"{rows.shorten(target)} is not the number of a state", target.strip())
        if value not in self._known_values:
            self._known_values[value] = self.meaning(self.values.code, value)
        del self.successor[len(self.code) :]
        self.successor.append(state)
        self.code.append(self._known_values[value])

    def meaning(self, understand: Callable[[str], _Meaning], text: str) -> _Meaning:
        """What a value says, with an error that points at it where it says nothing."""
        value = text.strip()
        if value.startswith("$"):
            if value[1:] not in self._placeholders:
                self.fail(f"the placeholder {rows.shorten(value)} is not defined", value)
            value = self._placeholders[value[1:]]
        try:
            return understand(value)
        except ValueError as error:
            offset = error.offset if isinstance(error, PolynomialSyntaxError) else 0
            start, shown = max(self.here.text.find(value), 0), self.here.text.rstrip("\r\n")
            place = Location(str(self.path), self.here.number, start + offset + 1, shown)
            raise InputError(f"{rows.shorten(value)}: {error}", place) from None

    def split_rewards(self, text: str) -> tuple[tuple[rows.Amount, ...], str]:
        """The rewards `[1, 2/3]` at the beginning, one for each structure, and what follows."""
        stripped = text.lstrip()
        if not stripped.startswith("["):
            return (), stripped
        depth, end = 0, -1
        cuts = [0]
        for position, character in enumerate(stripped):
            depth += (character == "[") - (character == "]")
            if character == "," and depth == 1:
                cuts.append(position)
            if depth == 0:
                end = position
                break
        if end < 0:
            self.fail("']' is missing behind the rewards", stripped.strip())
        pieces = [stripped[a + 1 : b] for a, b in zip(cuts, [*cuts[1:], end], strict=True)]
        names = self.header.reward_names
        if len(pieces) != len(names):
            self.fail(f"{len(pieces)} rewards for {len(names)} reward models", stripped.strip())
        return tuple(self.meaning(self.values.reward, piece) for piece in pieces), stripped[end + 1 :]

    def rewards_and_labels(self, text: str) -> tuple[tuple[rows.Amount, ...], list[str]]:
        """Read rewards, once, and labels, those with spaces or brackets in quotation marks."""
        rewards: tuple[rows.Amount, ...] | None = None
        names: list[str] = []
        rest = text.strip()
        while rest:
            if rest.startswith("["):
                if rewards is not None:
                    self.fail(
                        "a second list of rewards for this state",
                        rest,
                        "one list holds the rewards of all reward models: [1, 2]",
                    )
                rewards, rest = self.split_rewards(rest)
            elif rest.startswith('"'):
                name, mark, behind = rest[1:].partition('"')
                if not mark:
                    self.fail("a quotation mark is not closed", rest)
                names.append(name)
                rest = behind
            else:
                word = rest.split(None, 1)[0]
                if word.startswith("!") and self.header.is_continuous:
                    self.exit_texts[len(self.state_entries)] = word[1:]
                elif word.startswith("{") and self.header.is_observed:
                    self.observe(word)
                else:
                    self.check_label(word, rest)
                    names.append(word)
                rest = rest[len(word) :]
            if rest and not rest[0].isspace() and rest[0] not in '["':
                self.fail(f"a space is missing before {rows.shorten(rest.split()[0])}", rest)
            rest = rest.strip()
        return rewards or (), names

    def observe(self, word: str) -> None:
        """The number of an observation, `{3}`, once for a state."""
        number = rows.whole_number(word[1:-1]) if word.endswith("}") else None
        if number is None:
            self.fail(
                f"{rows.shorten(word)} is not the number of an observation", word, "it is written as {3}"
            )
        if self.observations.setdefault(len(self.state_entries), number) != number:
            self.fail("a second observation for this state", word)

    def check_label(self, word: str, rest: str) -> None:
        """Refuse what is no label: exit rates, observations, brackets, comments."""
        if word.startswith("!"):
            self.fail(
                f"{rows.shorten(word)} is an exit rate, which states of continuous-time models have",
                rest,
                "tightrope reads DTMCs and MDPs; write the model's embedded or uniformised chain",
            )
        if word.startswith("{"):
            self.fail(
                f"{rows.shorten(word)} is an observation, which states of partially observable models have",
                rest,
                "their files say '@type: POMDP'",
            )
        if word.startswith("//"):
            self.fail("a comment behind a state", rest, "comments stand on lines of their own")
        if wrong := next((c for c in word if c in '[]{}"'), None):
            self.fail(
                f"{rows.shorten(word)} is neither a label nor rewards: it has {wrong!r} within",
                rest,
                'rewards stand apart, [1, 2], and a label with such a character in quotes, "a[1]"',
            )


def is_state_line(line: str) -> bool:
    return line.lstrip().startswith("state ")


def _number(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers))


class _BodyAssembly:
    """The rows, labels and rewards of a file that has been read."""

    def __init__(self, body: Body):
        self.body, header = body, body.header
        self.states = len(body.state_entry)
        self.state_entry: IndexArray = np.frombuffer(body.state_entry, dtype=np.int32)
        self.choice_entry: IndexArray = np.frombuffer(body.choice_entry, dtype=np.int32)
        self._check_counts()
        action_of_entry = np.array([action for _, action in body.choice_entries], dtype=np.int32)
        self.rows = rows.FileRows(
            body.path,
            _offsets(body.choice_start, len(body.choice_entry)),
            _offsets(body.transition_start, len(body.successor)),
            np.frombuffer(body.successor, dtype=np.int32).copy(),
            np.frombuffer(body.code, dtype=np.int32).copy(),
            body.values,
            action_of_entry[self.choice_entry],
            tuple(body.actions),
            bool(header.is_chain),
            "action",
            lambda transition, what: self._fail(transition, lambda line: line.lstrip()[:1].isdecimal(), what),
            self._fail_at_choice,
            header.comments,
        )

    def model(self) -> rows.Model | ParametricCTMC:
        self.rows.check()
        with rows.located(self.body.path):
            labels, rewards = self._labels(), self._rewards()
        return self.rows.model(labels, rewards, self.body.valuations.columns(self.states))

    def _check_counts(self) -> None:
        header, path = self.body.header, self.body.path
        for count, declared, what in (
            (self.states, header.states, "states"),
            (len(self.choice_entry), header.choices, "choices"),
        ):
            if declared is not None and count != declared:
                hint = "it may be cut off" if count < declared else None
                rows.refuse(path, f"the file declares {declared} {what} and has {count}", hint)
        if self.states == 0:
            rows.refuse(path, "the model has no state")

    def _labels(self) -> dict[str, BoolArray]:
        """Entry by entry: which labels the states with that text have."""
        named, rewards = len(self.body.labels), len(self.body.header.reward_names)
        size = named * self.states + 8 * rewards * (self.states + len(self.choice_entry))
        door.check_room(size, f"{named:,} labels and {rewards:,} reward models")
        entries = self.body.state_entries
        has = np.zeros((named, len(entries)), dtype=np.bool_)
        for entry, (_, numbers) in enumerate(entries):
            has[list(numbers), entry] = True
        return {name: has[number][self.state_entry] for name, number in self.body.labels.items()}

    def _rewards(self) -> dict[str, RewardStructure]:
        """A part in which every number is 0 is left out, unless the file notes that it is there."""
        notes, names = self.body.header.notes, self.body.header.reward_names
        nothing = (0.0,) * len(names)
        structures: dict[str, RewardStructure] = {}
        for k, name in enumerate(names):
            of_states = [(rewards or nothing)[k] for rewards, _ in self.body.state_entries]
            of_choices = [(rewards or nothing)[k] for rewards, _ in self.body.choice_entries]
            if any(isinstance(each, Polynomial) and not each.is_constant for each in of_states + of_choices):
                structures[name] = self._parametric(name, of_states, of_choices)
                continue
            state, choice = _doubles(of_states)[self.state_entry], _doubles(of_choices)[self.choice_entry]
            try:
                door.check_choice_totals(
                    self.rows.choice_start,
                    state,
                    choice,
                    lambda s, own=of_states: _polynomial(own[self.state_entry[s]]).constant_term,  # type: ignore[misc]
                    lambda c, own=of_choices: _polynomial(own[self.choice_entry[c]]).constant_term,  # type: ignore[misc]
                )
            except door.NotHeldError as error:
                self._fail_at_choice(error.index, error.message)
            noted = (notes.rewards.get(name) if notes else None) or ()
            structures[name] = RewardStructure(
                state if state.any() or "state" in noted else None,
                choice if choice.any() or "choice" in noted else None,
            )
        return structures

    def _parametric(
        self, name: str, of_states: Sequence[rows.Amount], of_choices: Sequence[rows.Amount]
    ) -> ParametricReward:
        """Polynomials of choices, those of their states included."""
        values = self.body.values
        assert isinstance(values, rows.ExactValues)
        owner = np.repeat(self.state_entry, np.diff(self.rows.choice_start)).astype(np.int64)
        pairs, which = np.unique(owner * len(of_choices) + self.choice_entry, return_inverse=True)
        places = (divmod(pair, len(of_choices)) for pair in pairs.tolist())
        sums = (_polynomial(of_states[s]) + _polynomial(of_choices[c]) for s, c in places)
        expressions, expression = tabulate(values.parameters.names, sums)
        return ParametricReward(name, expressions, expression[which.reshape(-1)])

    def _fail(self, index: int, counts: Callable[[str], bool], message: str) -> NoReturn:
        rows.fail_at_nth(self.body.path, index, counts, message, self.body.header.model_line)

    def _fail_at_choice(self, choice: int, message: str) -> NoReturn:
        """At the action's line, or at the state's where the file leaves action lines out."""
        if self.body.has_unwritten_choices:
            state = int(np.searchsorted(self.rows.choice_start, choice, side="right")) - 1
            self._fail(state, is_state_line, message)
        self._fail(choice, lambda line: line.lstrip().startswith("action "), message)


def _offsets(starts: array[int], total: int) -> OffsetArray:
    return np.append(np.frombuffer(starts, dtype=np.int64), total) if starts else np.zeros(1, np.int64)


def _doubles(amounts: Sequence[rows.Amount]) -> FloatArray:
    plain = [door.double(a.constant_term) if isinstance(a, Polynomial) else a for a in amounts]
    return np.array(plain, dtype=np.float64)


def _polynomial(amount: rows.Amount) -> Polynomial:
    return amount if isinstance(amount, Polynomial) else Polynomial.constant(Fraction(amount))


def read_drn(
    path: str | Path, *, box: str | None = None, domain: str | None = None, progress: Progress | None = None
) -> rows.Model | POMDP | ParametricCTMC | MarkovAutomaton:
    """Read a model; `box` and `domain` replace the noted domain of the parameters.

    Parameters of rates lie in [0, 1000] unless `box`, `domain` or a note states a range."""
    place = Path(path)
    with reading(place) as file:
        lines = enumerate(file, 1)
        header = read_header(place, lines)
        body = Body(place, header, _values(place, header, box, domain))
        body.read(lines, progress)
    model = _BodyAssembly(body).model()
    if isinstance(model, ParametricCTMC):
        _check_exits(model, body)
        return model
    if header.is_continuous:
        return _automaton(body, model)
    return _observed(body, model) if header.is_observed else model


def _observed(body: Body, model: rows.Model) -> POMDP:
    """The model with its observations."""
    missing = [state for state, entry in enumerate(body.state_entry) if entry not in body.observations]
    if missing:
        message = (
            f"state {missing[0]} has no observation: in a partially observable model all states have one"
        )
        rows.fail_at_nth(body.path, missing[0], is_state_line, message, body.header.model_line)
    number = np.array([body.observations[entry] for entry in body.state_entry])
    noted = () if body.header.notes is None else body.header.notes.observations
    used, look = np.unique(number, return_inverse=True)
    names = tuple(noted[k] if k < len(noted) else str(k) for k in used.tolist())
    with rows.located(body.path):
        return POMDP(model, look.reshape(-1).astype(np.int32), names)


def _values(path: Path, header: Header, box: str | None, domain: str | None) -> rows.Values:
    if header.is_continuous and not header.is_chain:
        if header.value_type not in (None, "double", "rational"):
            kind = header.value_type
            rows.refuse(path, f"a Markov automaton of value type {kind} is not read: only plain ones are")
        return rows.NumberValues()
    names = header.parameters
    known = (rate_box if header.is_continuous else Parameters.unit_box)(names)
    parameters = narrow_domain(known, box, domain)
    if box is None and domain is None and header.notes is not None and header.notes.domain:
        try:
            parameters = parse_domain(header.notes.domain, names, base=known)
        except InputError as error:
            rows.refuse(path, f"the noted domain is damaged: {error.message}")
    if header.is_continuous:
        return rows.RateValues(parameters)
    exact = header.value_type in ("parametric", "rational")
    return rows.ExactValues(parameters) if exact else rows.NumberValues(header.value_type)


_HEADER_LINES = 40


def declared_type(path: Path) -> str:
    """The type of model that a DRN file says it holds, in small letters; empty where it says none."""
    with reading(path) as file:
        head = [line.strip().lower() for _, line in zip(range(_HEADER_LINES), file, strict=False)]
    for line, following in pairwise([*head, ""]):
        if line.startswith("@type:") or line == "@type":
            name = line.partition(":")[2].strip() or following
            return "ma" if name in AUTOMATON_TYPES else name
    return ""


def _automaton(body: Body, model: rows.Model) -> MarkovAutomaton:
    """The model with the exit rates of its states."""
    path = body.path
    if not isinstance(model, MDP):
        rows.refuse(path, "a Markov automaton with intervals is not read")
    missing = [state for state, entry in enumerate(body.state_entry) if entry not in body.exit_texts]
    if missing:
        rows.refuse(
            path,
            f"state {missing[0]} has no exit rate",
            "write it behind the state: !2.5, or !0 where choices are immediate",
        )
    try:
        rates = np.array([rows.nearest_double(body.exit_texts[entry]) for entry in body.state_entry])
        return MarkovAutomaton(model.structure, model.probability, rates)
    except ValueError as error:
        rows.refuse(path, error.message if isinstance(error, InputError) else f"an exit rate: {error}")


_CLOSE = Fraction(5, 10**6)
"""How far, relatively, an exit rate may be from the sum of the rates: six digits, rounded, are as close."""


def _check_exits(chain: ParametricCTMC, body: Body) -> None:
    """Refuse files whose exit rates are not the sums of their rates."""
    values, exits = body.values, rows.ExitRates(chain)
    assert isinstance(values, rows.RateValues)
    seen: set[tuple[int, Polynomial]] = set()
    for state, entry in enumerate(body.state_entry):
        if entry not in body.exit_texts or (entry, total := exits[state]) in seen:
            continue
        seen.add((entry, total))
        text = body.exit_texts[entry]
        try:
            missed = (values.rate(text) - total).terms.values()
        except ValueError as error:
            rows.refuse(body.path, f"the exit rate {rows.shorten(text)} of state {state}: {error}")
        size = max((abs(c) for c in total.terms.values()), default=Fraction(1))
        if any(abs(c) > _CLOSE * size for c in missed):
            raise InputError(
                f"state {state}: the exit rate is {text}, but the rates of its transitions sum to "
                f"{total.text(chain.parameters.names)}",
                Location(str(body.path)),
                "behind transitions stand rates, not probabilities",
            )
