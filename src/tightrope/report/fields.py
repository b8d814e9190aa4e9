"""Typed access to the fields of a JSON document; what is missing or of the wrong kind is an `InputError`.

Numbers that JSON does not know are strings that `float()` reads ("inf"), as in all JSON of this program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from tightrope.errors import InputError, Location

T = TypeVar("T")


@dataclass(frozen=True)
class Fields:
    """An object of the document; `path` says where in `file` it stands."""

    content: dict[str, object]
    file: str
    path: str = ""

    @staticmethod
    def of(value: object, file: str, path: str = "") -> Fields:
        if not isinstance(value, dict):
            _fail(file, path, "is no object")
        return Fields(value, file, path)

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.content.get(key) is not None

    def inner(self, key: str) -> Fields:
        return Fields.of(self._value(key), self.file, self._at(key))

    def entries(self, key: str) -> list[Fields]:
        return [Fields.of(v, self.file, f"{self._at(key)}[{i}]") for i, v in enumerate(self._list(key))]

    def text(self, key: str) -> str:
        value = self._value(key)
        return value if isinstance(value, str) else self._wrong(key, "no text")

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(
            v if isinstance(v, str) else self._wrong(key, "no list of texts") for v in self._list(key)
        )

    def flag(self, key: str) -> bool:
        value = self._value(key)
        return value if isinstance(value, bool) else self._wrong(key, "neither true nor false")

    def number(self, key: str) -> float:
        return self._number(self._value(key), key)

    def integer(self, key: str) -> int:
        value = self._value(key)
        whole = isinstance(value, int) and not isinstance(value, bool)
        return int(str(value)) if whole else self._wrong(key, "no whole number")

    def numbers(self, key: str) -> tuple[float, ...]:
        return tuple(self._number(v, key) for v in self._list(key))

    def points(self, key: str) -> tuple[tuple[float, float], ...]:
        """A list of pairs of numbers."""
        result = []
        for value in self._list(key):
            if not isinstance(value, list) or len(value) != 2:
                self._wrong(key, "no list of points")
            result.append((self._number(value[0], key), self._number(value[1], key)))
        return tuple(result)

    def each(self, key: str, read: Callable[[Fields, str], T]) -> dict[str, T]:
        """The entries of an object, each read under its own name."""
        inner = self.inner(key)
        return {name: read(inner, name) for name in inner}

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def _value(self, key: str) -> object:
        if key not in self.content:
            self._wrong(key, "missing")
        return self.content[key]

    def _list(self, key: str) -> list[object]:
        value = self._value(key)
        return value if isinstance(value, list) else self._wrong(key, "no list")

    def _number(self, value: object, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            self._wrong(key, "no number")
        try:
            return float(value)
        except ValueError:
            self._wrong(key, "no number")

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _wrong(self, key: str, what: str) -> NoReturn:
        _fail(self.file, self._at(key), f"is {what}")


def _fail(file: str, path: str, problem: str) -> NoReturn:
    raise InputError(
        f"'{path or 'the document'}' {problem}: this is no result of a learning run",
        Location(file),
        "write results with 'tightrope learn … -o DIR', and name DIR or DIR/result.json",
    )
