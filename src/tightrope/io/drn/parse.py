"""Lines of DRN files: header, comments, values, states and choices.

Sections before `@model` come in any order, as `@name` with content below or `@name: content`. A comment that
other readers skip holds what DRN cannot express. A comment below a state is Storm's valuation; Storm writes
`!busy` for a false variable and nothing for a true one:

    //@tightrope {"version": 1, "domain": "1/10<=p<=9/10", "labels": ["init", "goal"], …}
    state 3 goal
    //[x=1	& busy=true]

| value type | model |
|---|---|
| `double` (default without parameters) | `MDP` of the nearest doubles |
| `double-interval` (default with brackets) | `IntervalMDP` of the nearest doubles |
| `rational-interval` | `IntervalMDP`, bounds rounded outwards to doubles |
| `rational` | `ParametricMDP` without parameters, exact |
| `parametric` | `ParametricMDP` |

Each distinct text after a line's first number is parsed once (`code`); `model` is called at the end.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

import msgspec
import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.rows import Amount, Values
from tightrope.io.text import TextLine, fail_at_nth, refuse, shorten, truth_or_number, whole_number
from tightrope.model.function_text import PolynomialSyntaxError
from tightrope.model.structure import UNLABELLED
from tightrope.numerics.arrays import AnyArray
from tightrope.provenance import origin_lines

VALUE_TYPES = ("double", "rational", "double-interval", "rational-interval", "parametric")
AUTOMATON_TYPES = ("ma", "markov automaton", "markovautomaton")
_REFUSED_TYPES = {
    "ctmc": "continuous-time models are not supported",
    **dict.fromkeys(AUTOMATON_TYPES, "Markov automata are not supported here"),
    "smg": "games are not supported",
    "s2pg": "games are not supported",
}


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
    placeholders: dict[str, tuple[str, TextLine]] = field(default_factory=dict)
    """Name without the dollar → (text, where it stands)."""
    reward_names: tuple[str, ...] = ()
    states: int | None = None
    choices: int | None = None
    notes: Notes | None = None
    comments: str = ""
    model_line: int = 0


_SECTIONS = ("type", "value_type", "parameters", "placeholders", "reward_models", "nr_states", "nr_choices")


def read_header(path: Path, lines: Iterator[tuple[int, str]], continuous: bool = False) -> Header:
    """Reads up to and including the line `@model`; `continuous`: of a chain in continuous time."""
    header, seen, section, here = Header(), set[str](), "", TextLine(path, 1, "")
    for number, line in lines:
        text, here = line.strip(), TextLine(path, number, line)
        if section and section != "@placeholders":
            _read_section(header, section, line, here, continuous)
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
                here.fail(f"unknown section {shorten(section)}", section)
            seen.add(section)
            if inline.strip() and section != "@placeholders":
                _read_section(header, section, inline, here, continuous)
                section = ""
        elif section:
            _read_placeholder(header, here)
        else:
            hint = "a DRN file begins with sections such as @type, @parameters, @nr_states and @model"
            here.fail(f"{shorten(text)} is not expected before @model", hint=hint)
    if section and section != "@placeholders":
        here.fail(f"the file ends within its section {section}")
    refuse(path, "the file ends before its @model section", "is this a DRN file? It may be cut off")


def _read_section(header: Header, name: str, text: str, here: TextLine, continuous: bool) -> None:
    """The content of a section of one line."""
    match name:
        case "@type":
            _read_type(header, text, here, continuous)
        case "@value_type":
            header.value_type = text.strip()
            if header.value_type not in VALUE_TYPES:
                here.fail(
                    f"unknown value type {shorten(text)}", hint=f"it is one of {', '.join(VALUE_TYPES)}"
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
                here.fail(f"the number of {what} expected, found {shorten(text)}")
            setattr(header, what, int(stripped))


def _read_type(header: Header, text: str, here: TextLine, continuous: bool) -> None:
    name = text.strip().lower()
    if continuous and (name == "ctmc" or name in AUTOMATON_TYPES):
        header.is_chain, header.is_continuous = name == "ctmc", True
        return
    if name in _REFUSED_TYPES:
        here.fail(f"{_REFUSED_TYPES[name]}; tightrope reads MDP and DTMC", text.strip())
    if name not in ("mdp", "dtmc", "pomdp"):
        here.fail(f"unknown model type {shorten(text)}; tightrope reads MDP, DTMC and POMDP")
    header.is_observed, header.is_chain = name == "pomdp", name == "dtmc"


def _read_placeholder(header: Header, here: TextLine) -> None:
    name, colon, value = here.text.strip().partition(":")
    if not name.startswith("$") or not colon:
        here.fail(f"a placeholder such as '$0 : 1/2*p' expected, found {shorten(here.text)}")
    key = name[1:].strip()
    if key in header.placeholders:
        here.fail(f"the placeholder ${key} is defined twice", name)
    header.placeholders[key] = (value, here)


def _complete(header: Header, here: TextLine) -> None:
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


def parse_notes(here: TextLine) -> Notes:
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
        number = truth_or_number(value)
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

    def __init__(self, path: Path, header: Header, values: Values):
        self.path, self.header, self.values, self.here = path, header, values, TextLine(path, 0, "")
        notes = header.notes
        self.labels = {name: k for k, name in enumerate(notes.labels if notes else ("init", "deadlock"))}
        self.actions = {name: k for k, name in enumerate(notes.actions if notes else ())}
        self.state_entries: list[tuple[tuple[Amount, ...], tuple[int, ...]]] = []
        self.choice_entries: list[tuple[tuple[Amount, ...], int]] = []
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
                    self.here = TextLine(self.path, number, line)
                    self.new_transition(target, colon, value)
                continue
            self.here = TextLine(self.path, number, line)
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
                    f"{shorten(text)} is not a line of a model",
                    hint="expected 'state …', 'action …' or a transition such as '3 : 0.5'",
                )
        self.close_state()

    def new_state(self, text: str) -> None:
        self.close_state()
        identifier, rest = [*text.split(None, 1), "", ""][:2]
        index = len(self.state_entry)
        if identifier.strip() != str(index):
            self.fail(f"state {index} expected here, found {shorten(identifier)}", identifier.strip())
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
            fail_at_nth(
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
            self.fail(
                "a second action in a state of a DTMC", hint="a model with several actions a state is an MDP"
            )
        self.open_choice(self.choice(text), len(self.successor))

    def choice(self, text: str) -> int:
        entry = self._known_choices.get(text)
        if entry is None:
            name, rest = [*text.split(None, 1), "", ""][:2]
            if not name or name.startswith("["):
                self.fail(f"an action needs a name; {NO_LABEL} stands for none")
            rewards, behind = self.split_rewards(rest)
            if behind.strip():
                self.fail(f"unexpected {shorten(behind)} behind the action", behind.strip())
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
            self.fail(f"a transition such as '3 : 0.5' expected, found {shorten(target)}")
        state = whole_number(target)
        if state is None:
            self.fail(f"{shorten(target)} is not the number of a state", target.strip())
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
                self.fail(f"the placeholder {shorten(value)} is not defined", value)
            value = self._placeholders[value[1:]]
        try:
            return understand(value)
        except ValueError as error:
            offset = error.offset if isinstance(error, PolynomialSyntaxError) else 0
            start, shown = max(self.here.text.find(value), 0), self.here.text.rstrip("\r\n")
            place = Location(str(self.path), self.here.number, start + offset + 1, shown)
            raise InputError(f"{shorten(value)}: {error}", place) from None

    def split_rewards(self, text: str) -> tuple[tuple[Amount, ...], str]:
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

    def rewards_and_labels(self, text: str) -> tuple[tuple[Amount, ...], list[str]]:
        """Read rewards, once, and labels, those with spaces or brackets in quotation marks."""
        rewards: tuple[Amount, ...] | None = None
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
                self.fail(f"a space is missing before {shorten(rest.split()[0])}", rest)
            rest = rest.strip()
        return rewards or (), names

    def observe(self, word: str) -> None:
        """The number of an observation, `{3}`, once for a state."""
        number = whole_number(word[1:-1]) if word.endswith("}") else None
        if number is None:
            self.fail(f"{shorten(word)} is not the number of an observation", word, "it is written as {3}")
        if self.observations.setdefault(len(self.state_entries), number) != number:
            self.fail("a second observation for this state", word)

    def check_label(self, word: str, rest: str) -> None:
        """Refuse what is no label: exit rates, observations, brackets, comments."""
        if word.startswith("!"):
            self.fail(
                f"{shorten(word)} is an exit rate, which states of continuous-time models have",
                rest,
                "tightrope reads DTMCs and MDPs; write the model's embedded or uniformised chain",
            )
        if word.startswith("{"):
            self.fail(
                f"{shorten(word)} is an observation, which states of partially observable models have",
                rest,
                "their files say '@type: POMDP'",
            )
        if word.startswith("//"):
            self.fail("a comment behind a state", rest, "comments stand on lines of their own")
        if wrong := next((c for c in word if c in '[]{}"'), None):
            self.fail(
                f"{shorten(word)} is neither a label nor rewards: it has {wrong!r} within",
                rest,
                'rewards stand apart, [1, 2], and a label with such a character in quotes, "a[1]"',
            )


def is_state_line(line: str) -> bool:
    return line.lstrip().startswith("state ")


def is_choice_line(line: str) -> bool:
    return line.lstrip().startswith("action ")


def is_transition_line(line: str) -> bool:
    return line.lstrip()[:1].isdecimal()


def _number(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers))
