"""Typed records to JSON and back, from one definition.

The fields of a `msgspec.Struct` are the keys of the document: `to_plain` writes, `read_document` reads,
`json_schema` publishes. A `Real` that is not finite is one of the strings "inf", "-inf" and "nan". Files name
their format and version. Other versions are refused, unknown keys of the same version are ignored.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, get_args, get_origin

import msgspec

from tightrope.errors import InputError, Location, check_type, in_words
from tightrope.numerics.text import interval_text

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

NOT_FINITE = ("inf", "-inf", "nan")

if TYPE_CHECKING:
    Real = float
else:

    class Real(float):
        """A number that may be infinite, or not known ("nan")."""


class Head(msgspec.Struct, frozen=True):
    """How every file of ours begins."""

    format: str
    version: int | None = None


def to_plain(value: object) -> Any:
    """Records, numbers and containers as JSON has them; numpy's values by their own conversion."""
    match value:
        case None | bool() | bytes():
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case Mapping():
            return {str(key): to_plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [to_plain(entry) for entry in value]
        case msgspec.Struct():
            config = value.__struct_config__
            tag = {} if config.tag is None else {config.tag_field: config.tag}
            return tag | {
                key: to_plain(getattr(value, name))
                for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
                if getattr(value, name) is not msgspec.UNSET
            }
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: to_plain(getattr(value, entry.name)) for entry in fields(value)}
    if callable(convert := getattr(value, "tolist", None)):
        return to_plain(convert())
    if hasattr(value, "__fspath__") or hasattr(value, "numerator"):
        return str(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def record_of(kind: type[S], /, *sources: object, **given: object) -> S:
    """A record with these fields; the others are attributes of the first source that has one of that name,
    and what the verdict of the first source says. Tuples become lists, enumerations their values, paths
    texts, and objects the records that the field is of; None is left out where the record has no null."""
    types = _fields(kind)
    if "verdict" in types and "verdict" not in given:
        facts: dict[str, object] = getattr(getattr(sources[0], "verdict", None), "facts", {})
        given |= {name: facts[name] for name in facts if name in types}
    for name in [name for name in types if name not in given]:
        value = next((getattr(one, name) for one in sources if hasattr(one, name)), msgspec.UNSET)
        if not (value is msgspec.UNSET or callable(value) or (value is None and NoneType not in types[name])):
            given[name] = _as_field(value, types[name])
    return kind(**given)


def _as_field(value: object, types: tuple[object, ...]) -> object:
    if type(value) is tuple and tuple not in map(get_origin, types):
        inner = next((get_args(one) for one in types if get_origin(one) is list), ())
        return [_as_field(entry, inner) for entry in value]
    if isinstance(value, Enum) and type(value) not in types:
        return value.value
    if isinstance(value, Path):
        return str(value)
    record = next((one for one in types if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)
    if value is None or record is None or isinstance(value, msgspec.Struct):
        return value
    return value.record() if hasattr(value, "record") else record_of(record, value)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[object, ...]]:
    """The types that each field may have."""
    return {each.name: (each.type, *get_args(each.type)) for each in msgspec.structs.fields(kind)}


def to_text(value: object) -> str:
    """The JSON text of a document, on one line."""
    return msgspec.json.encode(to_plain(value)).decode()


def from_text(text: bytes | str, kind: type[T]) -> T:
    """The record in a JSON text; msgspec's errors, which name the place, for anything else."""
    return msgspec.json.decode(text, type=kind, dec_hook=_decode)


def from_plain(value: object, kind: type[T]) -> T:
    """The same for JSON that was read already."""
    return msgspec.convert(value, type=kind, dec_hook=_decode)


def read_document(path: Path, kind: type[T], form: str, version: int, hint: str | None = None) -> T:
    """The record in a file; an `InputError` for a file of another kind or version, or a damaged one."""
    place = Location(str(path))
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        _ = raw.decode()  # strings that are skipped as well
        head = msgspec.json.decode(raw, type=Head)
    except msgspec.ValidationError as error:
        _refuse(form, error, place, hint)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"this is not JSON: {error}", place, hint) from error
    if head.format != form:
        raise InputError(f"this is a '{head.format}', not a '{form}'", place, hint)
    if head.version is None:
        raise InputError(f"this '{form}' does not say its 'version'", place, hint)
    if head.version != version:
        newer = "a newer tightrope wrote it" if head.version > version else "write it again"
        raise InputError(
            f"this '{form}' has version {head.version}, and {version} is understood", place, hint=newer
        )
    try:
        return from_text(raw, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        _refuse(form, error, place, hint)


class DocumentFile(Generic[T]):
    """Documents of one kind in directories, under one name."""

    def __init__(self, kind: type[T], name: str, form: str, version: int, command: str):
        self.name, self._about = name, (kind, form, version, f"write one with 'tightrope {command} … -o DIR'")

    def find(self, path: str | Path) -> Path | None:
        """The document of a directory, or the file itself; None where it is none of these."""
        file = Path(path) / self.name if Path(path).is_dir() else Path(path)
        return file if file.name == self.name and file.is_file() else None

    def read(self, file: Path) -> T:
        """The document in a file."""
        return read_document(file, *self._about)


def json_schema(kind: type) -> dict[str, object]:
    """The JSON schema (draft 2020-12) of a document."""
    schema = msgspec.json.schema(kind, schema_hook=_schema_of)
    for record in schema.get("$defs", {}).values():
        if "description" in record:  # a docstring, which Python indents from 3.13 on otherwise; no examples
            record["description"] = cleandoc(record["description"]).split("\n\n>>>")[0]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _refuse(form: str, error: Exception, place: Location, hint: str | None) -> NoReturn:
    words = str(error).replace("`$.", "`").replace("`$[", "`[").replace("`$`", "the document")
    words = words.replace("Object missing required field", "missing:").replace("`", "'")
    raise InputError(f"this is no '{form}': {words}", place, hint) from error


def _decode(kind: type, value: object) -> object:
    assert kind is Real, kind
    if isinstance(value, str) and value in NOT_FINITE:
        return Real(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Real(value)
    raise ValueError(f"Expected a number, got {type(value).__name__}")


def _schema_of(kind: type) -> dict[str, object]:
    assert kind is Real, kind
    return {"anyOf": [{"type": "number"}, {"enum": list(NOT_FINITE)}]}


# Intervals, as results hold them and files write them.


class _TwoEnds(msgspec.StructMeta):
    """Users give the ends in order (`Interval`); crossed ends of results show a contradiction (`of`)."""

    @in_words
    def __call__(cls, lower: Any, upper: Any) -> Interval:
        for name, end in (("lower", lower), ("upper", upper)):
            if isinstance(end, bool) or not isinstance(end, numbers.Real) or math.isnan(end):
                raise InputError(f"`{name}` is {end!r}, not a number")
        if lower > upper:
            raise InputError(
                f"the lower end of the interval, {lower}, is above the upper one, {upper}",
                hint="give the smaller number first",
            )
        return Interval.of(lower, upper)

    def of(cls, lower: float, upper: float) -> Interval:
        """The interval of two ends as they were computed."""
        made: Interval = super().__call__(lower, upper)
        return made


class Interval(msgspec.Struct, frozen=True, metaclass=_TwoEnds):
    """lower ≤ value ≤ upper, with the confidence that is stated beside it.

    >>> 0.5 in Interval(0.25, 0.75), Interval(0.25, 0.75).width
    (True, 0.5)
    """

    lower: Real
    upper: Real

    @property
    def width(self) -> float:
        """The distance of the endpoints; 0 for a single value, also an infinite one."""
        return self.upper - self.lower if self.upper != self.lower else 0.0

    def within(self, lower: float, upper: float) -> Interval:
        """The part between these two numbers, or the whole interval if that part is empty.

        >>> Interval(-1e-14, 0.5).within(0.0, 1.0)
        Interval(lower=0.0, upper=0.5)
        """
        low, high = max(self.lower, lower), min(self.upper, upper)
        return Interval.of(low, high) if low <= high else self

    def __str__(self) -> str:
        return interval_text(self.lower, self.upper)

    def __iter__(self) -> Iterator[float]:
        """`lower, upper = interval`."""
        return iter((self.lower, self.upper))

    def __contains__(self, value: float) -> bool:
        check_type("value", value, numbers.Real, "a number")
        return self.lower <= value <= self.upper

    def __reduce__(self) -> tuple[object, ...]:
        return Interval.of, (self.lower, self.upper)

    def to_json(self) -> dict[str, float]:
        return {"lower": self.lower, "upper": self.upper}
