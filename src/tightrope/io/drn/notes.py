"""What DRN has no place for, kept in comments that other readers skip.

    //@tightrope {"version": 1, "domain": "1/10<=p<=9/10", "labels": ["init", "goal"], …}
    state 3 goal
    //[x=1	& busy=true]

The first holds the domain, the names of labels (also those no state has), which parts each reward
structure has, and the actions in order. The second is Storm's comment for the valuation of a state.
Storm itself writes `!busy` for a false variable and nothing at all for a true one: such a gap is
filled from the states in which the variable is false.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.io.text_file import fail

NOTES_MARK = "//@tightrope"
VALUATION_MARK = "//["
VERSION = 1

_BOOLEAN = {"true": 1, "false": 0}


@dataclass(frozen=True)
class Notes:
    """The content of the comment, checked for its form."""

    domain: str = ""
    labels: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    rewards: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def text(self) -> str:
        content = {
            "version": VERSION,
            "domain": self.domain,
            "labels": list(self.labels),
            "actions": list(self.actions),
            "rewards": {name: list(parts) for name, parts in self.rewards.items()},
        }
        return f"{NOTES_MARK} {json.dumps(content, ensure_ascii=False)}"


def parse_notes(path: Path, number: int, line: str) -> Notes:
    try:
        content = json.loads(line.strip()[len(NOTES_MARK) :])
        if content["version"] != VERSION:
            fail(path, number, line, f"notes of version {content['version']}, not {VERSION}")
        rewards = {_text(name): _texts(parts) for name, parts in dict(content["rewards"]).items()}
        if any(part not in ("state", "choice") for parts in rewards.values() for part in parts):
            raise ValueError
        return Notes(_text(content["domain"]), _texts(content["labels"]), _texts(content["actions"]), rewards)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fail(path, number, line, f"the comment {NOTES_MARK} is damaged", hint="remove it to go without")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError
    texts = tuple(_text(value) for value in values)
    if len(set(texts)) < len(texts):
        raise ValueError
    return texts


def valuation_text(names: Sequence[str], values: Sequence[Any]) -> str:
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
        known = self.items.get(item)
        if known is None:
            known = self._parse(item)
            self.items[item] = known
        return known

    def _parse(self, item: str) -> tuple[str | None, int, bool]:
        if not item:
            return None, 1, True
        name, equals, value = item.partition("=")
        if not equals:
            return (item[1:].strip(), 0, True) if item.startswith("!") else (item, 1, True)
        if value in _BOOLEAN:
            return name, _BOOLEAN[value], True
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
            self.broken = True
            return name, 0, False
        return name, int(value), False

    def columns(self, states: int) -> dict[str, npt.NDArray[Any]]:
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
