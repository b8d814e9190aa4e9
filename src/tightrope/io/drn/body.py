"""The part of a DRN file behind `@model`, read in one pass.

Almost all lines of a large file repeat a few texts behind their first number, so everything behind
`state 17`, `action ` and `23 :` is looked up in a dictionary and parsed once for each distinct text.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn, TypeVar

from tightrope.errors import InputError, Location
from tightrope.io.drn.header import Header
from tightrope.io.drn.notes import VALUATION_MARK, ValuationColumns
from tightrope.io.drn.values import Amount, Values
from tightrope.io.polynomial_text import PolynomialSyntaxError
from tightrope.io.text_file import fail, fail_at_nth, shorten
from tightrope.model.structure import UNLABELLED

NO_LABEL = "__NOLABEL__"
"""What DRN calls the action of a choice without a name."""

Progress = Callable[[int, int], None]
"""Called now and then with the states and transitions so far."""

_REPORT_EVERY = 1 << 14
_Meaning = TypeVar("_Meaning")


class Body:
    """The arrays of the model, growing line by line.

    States and choices are kept as indices into `state_entries` (rewards, labels) and
    `choice_entries` (rewards, action): the distinct texts behind `state 17` and `action`.
    """

    def __init__(self, path: Path, header: Header, values: Values):
        self.path, self.header, self.values = path, header, values
        self.number, self.line = 0, ""
        notes = header.notes
        self.labels = {name: k for k, name in enumerate(notes.labels if notes else ("init", "deadlock"))}
        self.actions = {name: k for k, name in enumerate(notes.actions if notes else ())}
        self.state_entries: list[tuple[tuple[Amount, ...], tuple[int, ...]]] = []
        self.choice_entries: list[tuple[tuple[Amount, ...], int]] = []
        self.exit_texts: dict[int, str] = {}
        """Of chains in continuous time: the exit rates that are written behind states, by entry."""
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
        fail(self.path, self.number, self.line, message, token, hint)

    def read(self, lines: Iterator[tuple[int, str]], progress: Progress | None) -> None:
        """All lines behind `@model`."""
        for name, (text, number, line) in self.header.placeholders.items():
            self.number, self.line = number, line
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
                    self.number, self.line = number, line
                    self.new_transition(target, colon, value)
                continue
            self.number, self.line = number, line
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
                    f"{shorten(text)} is no line of a model",
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
        stripped = target.strip()
        if not colon:
            self.fail(f"a transition such as '3 : 0.5' expected, found {shorten(target)}")
        if not (stripped.isascii() and stripped.isdecimal()) or len(stripped) > 9:
            self.fail(f"{shorten(target)} is not the number of a state", stripped)
        if value not in self._known_values:
            self._known_values[value] = self.meaning(self.values.code, value)
        del self.successor[len(self.code) :]
        self.successor.append(int(stripped))
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
            start = max(self.line.find(value), 0)
            shown = self.line.rstrip("\r\n")
            raise InputError(
                f"{shorten(value)}: {error}",
                Location(str(self.path), self.number, start + offset + 1, shown),
            ) from None

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
        """What stands behind the number of a state, in any order: rewards `[1, 2/3]`, once, and labels, of
        which one with a space or bracket within stands in quotation marks. Nothing else does.
        """
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
                else:
                    self.check_label(word, rest)
                    names.append(word)
                rest = rest[len(word) :]
            if rest and not rest[0].isspace() and rest[0] not in '["':
                self.fail(f"a space is missing before {shorten(rest.split()[0])}", rest)
            rest = rest.strip()
        return rewards or (), names

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
                "tightrope reads DTMCs and MDPs",
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
