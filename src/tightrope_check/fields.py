"""Types of the fields of a certificate: every dataclass of a certificate declares its fields with these.

    @dataclass(frozen=True, eq=False)
    class Graph:
        initial: int = whole()
        successor: OffsetArray = integers("TRANSITIONS")

A field holds exactly the declared type: arrays are int64, float64 or bool (never unsigned, never narrower),
numbers are within their range, texts are among the words listed. Lengths of arrays have names, and a name is
one length: within a part, or in capitals in the whole certificate. A dataclass' method `trouble` checks
fields together. `validate` checks all of it, of values read from a file and of values made in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from tightrope_check.errors import InputError

MOST = 2**62 - 1
"""No integer of a certificate is larger; sums are bounded where they are made."""

MOST_DEGREE = 4096
MOST_CODES = 2**31
"""Of rows, expressions, states: what hints number."""

MOST_ENTRIES = 5 * 10**7
"""Of what is made of hints."""

LARGEST = float(np.finfo(np.float64).max)
DTYPES = {"integers": np.int64, "reals": np.float64, "truths": np.bool_}
_TYPES = {"whole": int, "real": float, "truth": bool, "word": str}

Polynomial = Mapping[tuple[tuple[int, int], ...], Fraction]
"""{monomial: coefficient}; a monomial is ((parameter, exponent ≥ 1), …), parameters rising; () is 1."""

Polynomials = Sequence[Polynomial]


@dataclass(frozen=True)
class Field:
    """What one field may hold: a number, array or list within [least, most], one of the words that stand in
    the place of a shape, or parts `of` a class.

    A class that is named, by its place in this package, is loaded when a file has such a part.
    """

    kind: str
    shape: tuple[str, ...] = ()
    least: float = -LARGEST
    most: float = LARGEST
    optional: bool = False
    of: Any = None

    @property
    def is_array(self) -> bool:
        """Whether it is a member of the archive; everything else stands in the header."""
        return self.kind in (*DTYPES, "rationals", "polynomials")

    def load(self) -> Any:
        """The class of its parts."""
        if not isinstance(self.of, str):
            return self.of
        module, _, name = self.of.rpartition(".")
        return getattr(import_module(f"tightrope_check.{module}"), name)

    def wrong(self, value: Any, lengths: dict[str, int]) -> str | None:
        """Why it cannot hold the value, or None; lengths that are met first become known."""
        if value is None:
            return None if self.optional else "is missing"
        if self.kind in ("part", "parts"):
            listed = value if self.kind == "parts" else (value,)
            fits = isinstance(listed, tuple) and len(listed) <= self.most
            return None if fits and all(type(one) is self.load() for one in listed) else "is another part"
        if not self._is_of_kind(value):
            return f"is not of the kind '{self.kind}'"
        if self.is_array:
            given = np.shape(value) if self.kind in DTYPES else (len(value),)
            if len(given) != len(self.shape):
                return f"has {len(given)} dimensions, not {len(self.shape)}"
            for wanted, length in zip(self.shape, given, strict=True):
                name, more, _ = wanted.partition("+1")
                if lengths.setdefault(name, length - len(more) // 2) != length - len(more) // 2:
                    return f"has the length {length}, which does not fit the others"
        measured = self.kind in ("whole", "real", "integers", "reals") and np.size(value) > 0
        if measured and not (self.least <= np.min(value) and np.max(value) <= self.most):
            return "is out of range, or has an entry that is"
        return None

    def _is_of_kind(self, value: object) -> bool:
        if self.kind in DTYPES:
            return isinstance(value, np.ndarray) and value.dtype == DTYPES[self.kind]
        if self.kind == "rationals":
            return isinstance(value, tuple) and all(type(one) is Fraction for one in value)
        if self.kind == "polynomials":
            return isinstance(value, tuple) and all(map(_is_polynomial, value))
        if self.kind == "texts":
            return type(value) is dict and len(value) <= 64 and all(map(_is_text, value.items()))
        return type(value) is _TYPES[self.kind] and (self.kind != "word" or value in self.shape)


def _is_polynomial(value: object) -> bool:
    """No coefficient 0, no exponent 0, parameters rising: the one way to write it."""
    return type(value) is dict and all(
        type(c) is Fraction
        and c != 0
        and all(a < b for (a, _), (b, _) in pairwise(monomial))
        and all(i >= 0 and e >= 1 for i, e in monomial)
        and sum(e for _, e in monomial) <= MOST_DEGREE
        for monomial, c in value.items()
    )


def _is_text(entry: tuple[object, object]) -> bool:
    name, text = entry
    return type(name) is str and type(text) is str and len(name) <= 64 and len(text) <= 4096


def _declare(kind: str, *shape: str, **more: Any) -> Any:
    """A field of a dataclass."""
    metadata = {"spec": Field(kind, shape, **more)}
    if kind == "parts":
        return field(default=(), metadata=metadata)
    if kind == "texts":
        return field(default_factory=dict, metadata=metadata)
    return field(default=None, metadata=metadata) if more.get("optional") else field(metadata=metadata)


whole = partial(_declare, "whole", least=0, most=MOST)
real = partial(_declare, "real")
share = partial(_declare, "real", least=5e-324, most=1 - 2.0**-53)
"""Strictly between 0 and 1."""
truth = partial(_declare, "truth")
word = partial(_declare, "word")
texts = partial(_declare, "texts")
integers = partial(_declare, "integers", least=0, most=MOST)
reals = partial(_declare, "reals")
truths = partial(_declare, "truths")
rationals = partial(_declare, "rationals")
polynomials = partial(_declare, "polynomials")


def part(of: type | str, optional: bool = False) -> Any:
    return _declare("part", of=of, optional=optional)


def parts(of: type | str, most: int) -> Any:
    """At most so many parts, in a tuple."""
    return _declare("parts", of=of, most=most)


def list_fields(of: Any) -> Iterator[tuple[str, Field]]:
    """The fields of a dataclass of a certificate."""
    return ((one.name, one.metadata["spec"]) for one in fields(of))


def validate(value: Any, path: str = "", lengths: dict[str, int] | None = None) -> dict[str, int]:
    """The lengths that are known; an `InputError` names the first field that does not hold what it should."""
    lengths = {"2": 2, "3": 3} if lengths is None else lengths
    for name, spec in list_fields(value):
        held, here = getattr(value, name), f"{path}{name}"
        if wrong := spec.wrong(held, lengths):
            raise InputError(f"this is not a certificate: '{here}' {wrong}")
        if held is not None and spec.kind in ("part", "parts"):
            several = spec.kind == "parts"
            for number, one in enumerate(held if several else (held,)):
                shared = {key: length for key, length in lengths.items() if not key.islower()}
                known = validate(one, f"{here}.{number}." if several else f"{here}.", shared)
                lengths |= {key: length for key, length in known.items() if key.isupper()}
    if trouble := getattr(value, "trouble", lambda: None)():
        where = f"'{path[:-1]}': " if path else ""
        raise InputError(f"this is not a certificate: {where}{trouble}")
    return lengths


def is_offsets(start: Any, total: int, rising: bool = True) -> bool:
    """Whether an array of int64 says where rows start: from 0 to `total`, none of them empty if `rising`."""
    whole = len(start) >= 1 and start[0] == 0 and start[-1] == total
    return bool(whole and np.all(np.diff(start) >= (1 if rising else 0)))
