"""The part of a DRN file before `@model`: kind of model, numbers, parameters, placeholders, sizes.

Sections come in any order, one line `@name` and the content below it, or `@name: content`. DRN cannot
say everything a model of ours holds (the domain of the parameters, labels that no state has, …), so
what we write carries one comment `//@tightrope {JSON}`, which other readers skip; see `notes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from tightrope.errors import InputError, Location
from tightrope.io.drn.notes import NOTES_MARK, Notes, parse_notes
from tightrope.io.text_file import fail, shorten

VALUE_TYPES = ("double", "rational", "double-interval", "rational-interval", "parametric")
AUTOMATON_TYPES = ("ma", "markov automaton", "markovautomaton")
_REFUSED_TYPES = {
    "ctmc": "continuous-time models are not supported",
    **dict.fromkeys(AUTOMATON_TYPES, "Markov automata are not supported here"),
    "pomdp": "partially observable models are not supported",
    "smg": "games are not supported",
    "s2pg": "games are not supported",
}


@dataclass
class Header:
    """Filled section by section; complete once `@model` is reached (`model_line`)."""

    is_chain: bool | None = None
    is_continuous: bool = False
    """Rates stand where probabilities stand in other models."""
    value_type: str | None = None
    parameters: tuple[str, ...] = ()
    placeholders: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    """Name without the dollar → (text, line number, line)."""
    reward_names: tuple[str, ...] = ()
    states: int | None = None
    choices: int | None = None
    notes: Notes | None = None
    model_line: int = 0


def read_header(path: Path, lines: Iterator[tuple[int, str]], continuous: bool = False) -> Header:
    """Reads up to and including the line `@model`; `continuous`: of a chain in continuous time."""
    return _HeaderReader(path, lines, continuous).read()


class _HeaderReader:
    def __init__(self, path: Path, lines: Iterator[tuple[int, str]], continuous: bool):
        self.path, self.lines, self.continuous = path, lines, continuous
        self.header = Header()
        self.number, self.line = 0, ""
        self.seen: set[str] = set()

    def advance(self) -> bool:
        entry = next(self.lines, None)
        if entry is None:
            return False
        self.number, self.line = entry
        return True

    def fail(self, message: str, token: str | None = None, hint: str | None = None) -> NoReturn:
        fail(self.path, self.number, self.line, message, token, hint)

    def read(self) -> Header:
        pending = self.advance()
        while pending:
            section = self.line.strip()
            if section.startswith(NOTES_MARK):
                self.header.notes = parse_notes(self.path, self.number, self.line)
            if not section or section.startswith("//"):
                pending = self.advance()
            elif section == "@model":
                self.header.model_line = self.number
                self.finish()
                return self.header
            elif section.startswith("@"):
                pending = self.section(section)
            else:
                self.fail(
                    f"{shorten(section)} is not expected before @model",
                    hint="a DRN file begins with sections such as @type, @parameters, @nr_states and @model",
                )
        raise InputError(
            "the file ends before its @model section",
            Location(str(self.path)),
            hint="is this a DRN file? It may be cut off",
        )

    def section(self, text: str) -> bool:
        """Reads one section and moves on; False at the end of the file."""
        name, _, inline = text.partition(":")
        if name in self.seen:
            self.fail(f"the section {name} occurs twice")
        self.seen.add(name)
        match name:
            case "@type":
                self.model_type(inline or self.content(name))
            case "@value_type":
                self.value_type(inline or self.content(name))
            case "@parameters":
                self.header.parameters = tuple(self.content(name).split())
                if len(set(self.header.parameters)) < len(self.header.parameters):
                    self.fail("a parameter is named twice")
            case "@placeholders":
                return self.placeholders()
            case "@reward_models":
                self.header.reward_names = split_reward_names(self.content(name))
                if len(set(self.header.reward_names)) < len(self.header.reward_names):
                    self.fail("a reward model is named twice")
            case "@nr_states":
                self.header.states = self.count(self.content(name), "states")
            case "@nr_choices":
                self.header.choices = self.count(self.content(name), "choices")
            case _:
                self.fail(f"unknown section {shorten(name)}", name)
        return self.advance()

    def content(self, name: str) -> str:
        if not self.advance():
            self.fail(f"the file ends within its section {name}")
        return self.line

    def model_type(self, text: str) -> None:
        name = text.strip().lower()
        if name == "ctmc" and self.continuous:
            self.header.is_chain = self.header.is_continuous = True
            return
        if name in AUTOMATON_TYPES and self.continuous:
            self.header.is_chain, self.header.is_continuous = False, True
            return
        if name in _REFUSED_TYPES:
            self.fail(f"{_REFUSED_TYPES[name]}; tightrope reads MDP and DTMC", text.strip())
        if name not in ("mdp", "dtmc"):
            self.fail(f"unknown model type {shorten(text)}; tightrope reads MDP and DTMC")
        self.header.is_chain = name == "dtmc"

    def value_type(self, text: str) -> None:
        name = text.strip()
        if name not in VALUE_TYPES:
            self.fail(f"unknown value type {shorten(text)}", hint=f"it is one of {', '.join(VALUE_TYPES)}")
        self.header.value_type = name

    def count(self, text: str, what: str) -> int:
        stripped = text.strip()
        if not (stripped.isascii() and stripped.isdecimal()) or len(stripped) > 18:
            self.fail(f"the number of {what} expected, found {shorten(text)}")
        return int(stripped)

    def placeholders(self) -> bool:
        while self.advance():
            stripped = self.line.strip()
            if stripped.startswith("@"):
                return True
            if not stripped or stripped.startswith("//"):
                continue
            name, colon, value = stripped.partition(":")
            if not name.startswith("$") or not colon:
                self.fail(f"a placeholder such as '$0 : 1/2*p' expected, found {shorten(stripped)}")
            key = name[1:].strip()
            if key in self.header.placeholders:
                self.fail(f"the placeholder ${key} is defined twice", name)
            self.header.placeholders[key] = (value, self.number, self.line)
        return False

    def finish(self) -> None:
        header = self.header
        if header.is_chain is None:
            self.fail("the section @type is missing before @model", hint="add a line '@type: MDP'")
        if header.states is None:
            self.fail("the section @nr_states is missing before @model")
        if header.value_type is None and header.parameters:
            header.value_type = "parametric"
        if header.parameters and header.value_type != "parametric":
            self.fail(f"a model of value type {header.value_type} has no parameters")


def split_reward_names(line: str) -> tuple[str, ...]:
    """Names are separated by single spaces, each may be followed by one; '' is the unnamed structure."""
    text = line.rstrip("\r\n").replace("\t", " ")
    if not text:
        return ()
    return tuple(text.removesuffix(" ").split(" "))
