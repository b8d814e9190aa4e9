"""What a certificate may hold, field by field: every dataclass of a certificate declares its fields with
these.

    @dataclass(frozen=True, eq=False)
    class Graph:
        initial: int = whole(0)
        successor: OffsetArray = integers(least=0)

A field holds exactly the type declared: arrays are int64, float64 or bool (never unsigned, never narrower),
numbers are within their range, texts are among the words listed. Whatever else is asked of fields together, a
dataclass says in its method `trouble`. `validate` asks all of it, of values read from a file and of values
made in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.errors import InputError

MOST = 2**62
"""No integer of a certificate is larger; sums are bounded where they are made."""


@dataclass(frozen=True)
class Field:
    """What one field may hold; `shape` is a number of dimensions, `of` the dataclass of a part."""

    kind: str
    optional: bool
    least: float = -float("inf")
    most: float = float("inf")
    dimensions: int = 1
    infinite: bool = False
    words: tuple[str, ...] = ()
    of: type | None = None

    @property
    def is_array(self) -> bool:
        """Whether it is a member of the archive; everything else stands in the header."""
        return self.kind in ("integers", "reals", "truths", "rationals")

    def wrong(self, value: Any) -> str | None:
        """Why it cannot hold the value, or None."""
        if value is None:
            return None if self.optional else "is missing"
        if self.kind in _DTYPES:
            return self._wrong_array(value)
        if self.kind == "rationals":
            fits = isinstance(value, tuple) and all(type(one) is Fraction for one in value)
            return None if fits else "is no list of rationals"
        if self.kind == "word":
            return None if type(value) is str and value in self.words else "is none of its words"
        if self.kind == "texts":
            fits = isinstance(value, dict) and len(value) <= 64 and all(map(_is_text, value.items()))
            return None if fits else "is no short list of texts"
        if self.kind in ("part", "parts"):
            listed = value if self.kind == "parts" else (value,)
            if not isinstance(listed, tuple) or len(listed) > self.most:
                return "is no list of parts, or too long"
            return None if all(type(one) is self.of for one in listed) else "is another part"
        wanted: type = {"whole": int, "real": float, "truth": bool}[self.kind]
        if type(value) is not wanted:
            return f"is no {self.kind} number" if self.kind != "truth" else "is not true or false"
        number = float(value) if self.kind == "real" else int(value)
        return None if self.least <= number <= self.most else "is out of range"

    def _wrong_array(self, value: Any) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype != _DTYPES[self.kind]:
            return f"is no array of {np.dtype(_DTYPES[self.kind])}"
        if value.ndim != self.dimensions:
            return f"has {value.ndim} dimensions, not {self.dimensions}"
        if self.kind == "truths" or value.size == 0:
            return None
        if self.kind == "reals":
            finite = np.isfinite(value)
            if not (finite | (value == np.inf) if self.infinite else finite).all():
                return "has an entry that is no number, or infinite"
        if value.min() < self.least or value.max() > self.most:
            return "has an entry that is out of range"
        return None


_DTYPES = {"integers": np.int64, "reals": np.float64, "truths": np.bool_}


def word(*words: str) -> Any:
    return _field(Field("word", False, words=words))


def whole(least: int = 0, most: int = MOST, optional: bool = False) -> Any:
    return _field(Field("whole", optional, least, most))


def real(
    least: float = -1.7e308, most: float = 1.7e308, optional: bool = False, infinite: bool = False
) -> Any:
    """A double; `infinite` allows +∞."""
    return _field(Field("real", optional, least, np.inf if infinite else most))


def truth() -> Any:
    return _field(Field("truth", False))


def integers(least: int = 0, most: int = MOST, dimensions: int = 1, optional: bool = False) -> Any:
    return _field(Field("integers", optional, least, most, dimensions))


def reals(
    least: float = -np.inf,
    most: float = np.inf,
    dimensions: int = 1,
    optional: bool = False,
    infinite: bool = False,
) -> Any:
    """Doubles, none of them NaN or −∞; +∞ only where `infinite`."""
    return _field(Field("reals", optional, least, most, dimensions, infinite))


def truths(optional: bool = False) -> Any:
    return _field(Field("truths", optional))


def rationals(optional: bool = False) -> Any:
    """Exact numbers, a tuple of fractions."""
    return _field(Field("rationals", optional))


def part(of: type, optional: bool = False) -> Any:
    return _field(Field("part", optional, of=of))


def parts(of: type, most: int) -> Any:
    """At most so many parts, in a tuple."""
    return _field(Field("parts", False, most=most, of=of))


def texts() -> Any:
    """A few words for people, by name."""
    return field(default_factory=dict, metadata={"spec": Field("texts", False)})


def _is_text(entry: tuple[Any, Any]) -> bool:
    name, text = entry
    return type(name) is str and type(text) is str and len(name) <= 64 and len(text) <= 4096


def _field(spec: Field) -> Any:
    if spec.kind == "parts":
        return field(default=(), metadata={"spec": spec})
    return field(default=None, metadata={"spec": spec}) if spec.optional else field(metadata={"spec": spec})


def declared(of: type) -> Iterator[tuple[str, Field]]:
    """The fields of a dataclass of a certificate."""
    for one in fields(of):
        yield one.name, one.metadata["spec"]


def validate(value: Any, path: str = "") -> None:
    """Raise an `InputError` that names the first field which does not hold what it should."""
    assert is_dataclass(value) and not isinstance(value, type)
    for name, spec in declared(type(value)):
        here = f"{path}{name}"
        held = getattr(value, name)
        wrong = spec.wrong(held)
        if wrong:
            raise InputError(f"this is no certificate: '{here}' {wrong}")
        if held is not None and spec.kind in ("part", "parts"):
            several = spec.kind == "parts"
            for number, one in enumerate(held if several else (held,)):
                validate(one, f"{here}.{number}." if several else f"{here}.")
    trouble = getattr(value, "trouble", lambda: None)()
    if trouble:
        where = f"'{path[:-1]}': " if path else ""
        raise InputError(f"this is no certificate: {where}{trouble}")


def require_shapes(owner: Any, **shapes: tuple[int, ...]) -> str | None:
    """Why one of these arrays of `owner`, where it is there, has another shape; None where all fit."""
    for name, shape in shapes.items():
        array = getattr(owner, name)
        if array is not None and np.shape(array) != shape:
            return f"'{name}' has the shape {np.shape(array)}, not {shape}"
    return None


def is_offsets(start: Any, total: int, rising: bool = True) -> bool:
    """Whether an array of int64 says where rows start: from 0 to `total`, none of them empty if `rising`."""
    if len(start) < 1 or start[0] != 0 or start[-1] != total:
        return False
    steps = np.diff(start)
    return bool(np.all(steps > 0) if rising else np.all(steps >= 0))
