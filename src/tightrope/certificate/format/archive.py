"""From the bytes of a file to a certificate: every cap is asked before memory is taken.

The file is a zip archive (stored or deflated members) of `header.json`, `digest`, and one member for every
array.

* `digest`: 64 hexadecimal digits, SHA-256 over all other members in the order of their names, each as its
  name, a line feed, its length in decimal digits, a line feed, and its bytes. It names the certificate and
  covers every byte in it.
* `header.json`: {"format": 4, "arrays": {member: [type, coding, [length, …]]}, "certificate": {…}}. The
  certificate is an object of the fields that are no arrays (`tightrope.certificate.claim`), parts within each
  other, exactly those that are declared; a field that may be missing is null. +∞ is the text "inf".
* an array: little-endian numbers of its type (int8, int16, int32, int64, float64; bool: bytes 0 and 1), rows
  first. With the coding "difference" (int8, int16 and int32 in one dimension) the array is the running sum of
  what is stored. Type "text": rationals, "p" or "p/q" in decimal digits, one a line.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.certificate.claim import Certificate, checked
from tightrope.certificate.format.fields import Field, declared
from tightrope.errors import InputError, Location

FORMAT = 4
MOST_MEMBERS = 1000
MOST_HEADER = 1 << 20
MOST_DIGITS = 4000
MOST_RATIONALS = 1_000_000
MOST_BYTES = 1 << 31
INFLATION = 40
"""A file may come to so many times its own size in memory, or to ROOM if that is more."""
ROOM = 1 << 28

TYPES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "float64": 8, "bool": 1, "text": 1}
"""The types of members, and the bytes of one entry."""

_RATIONAL = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(/[0-9]{{1,{MOST_DIGITS}}})?\Z")
_HEX = re.compile(r"[0-9a-f]{64}\Z")


class _Malformed(ValueError):
    """Why the bytes are no certificate."""


_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    LookupError,
    OverflowError,
)
"""What zipfile and zlib raise on files that are not what they should be."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A certificate whose fields are what they should be, and the digest of the file."""

    certificate: Certificate
    digest: str


def load(path: str | Path) -> Loaded:
    """Read a file; an `InputError` says why it is no certificate."""
    place = Location(str(path))
    try:
        if not Path(path).is_file() and Path(path).exists():
            raise InputError("this is not a certificate: it is no regular file", place)
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(f"this is not a certificate: it has more than {MOST_BYTES:,} bytes", place)
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place) from error
    try:
        return read(data)
    except InputError as error:
        raise InputError(error.message, place, error.hint) from error


def read(data: bytes) -> Loaded:
    """As `load`, from the bytes of a file."""
    try:
        members = _members(data)
        digest = _digest(members)
        return Loaded(checked(_certificate(members, len(data))), digest)
    except _DAMAGE as error:
        words = f": {error}" if isinstance(error, _Malformed) else ""
        raise InputError(f"this is not a certificate, or it is damaged{words}") from error


def _members(data: bytes) -> dict[str, bytes]:
    """All members, none of them larger than its directory says, all together within the cap."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if len(entries) > MOST_MEMBERS or len(set(names)) != len(names):
            raise _Malformed("too many members, or two of one name")
        if sum(entry.file_size for entry in entries) > most_memory(len(data)):
            raise _Malformed(f"it would take more than {INFLATION} times its own size in memory")
        result = {}
        for entry in entries:
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
                raise _Malformed("a member is encrypted or compressed in another way")
            with archive.open(entry) as file:
                result[entry.filename] = file.read(entry.file_size + 1)
            if len(result[entry.filename]) != entry.file_size:
                raise _Malformed("a member has another length than it says")
    return result


def most_memory(size: int) -> int:
    """What a file of so many bytes may come to."""
    return max(ROOM, INFLATION * size)


def unpacked_size(arrays: dict[str, Any]) -> int:
    """What arrays come to in memory, by their descriptions."""
    return sum(prod(shape) * (1 if kind == "bool" else 8) for kind, _, shape in arrays.values())


def _digest(members: dict[str, bytes]) -> str:
    found = members.pop("digest", b"").decode("ascii", "replace")
    if not _HEX.match(found) or "header.json" not in members:
        if "header.npy" in members:
            raise InputError(
                "a certificate of an earlier format, this version reads format 4",
                hint="make the certificate again with this version, or verify it with the one that made it",
            )
        raise _Malformed("there is no header or no digest")
    if found != digest_of(members):
        raise InputError("the file's contents do not match its digest: it was changed after it was written")
    return found


def digest_of(members: dict[str, bytes]) -> str:
    """The digest of all members but `digest` itself."""
    hashed = hashlib.sha256()
    for name, content in sorted(members.items()):
        hashed.update(f"{name}\n{len(content)}\n".encode())
        hashed.update(content)
    return hashed.hexdigest()


def _certificate(members: dict[str, bytes], size: int) -> Certificate:
    head = _header(members.pop("header.json"))
    if head.get("format") != FORMAT or type(head["format"]) is not int:
        raise InputError(
            f"the certificate's format is not {FORMAT}, the one that this version reads",
            hint="make the certificate again with this version, or verify it with the one that made it",
        )
    if head.keys() != {"format", "arrays", "certificate"} or not isinstance(head["arrays"], dict):
        raise _Malformed("the header has other fields")
    if head["arrays"].keys() != members.keys():
        raise _Malformed("the header lists other members")
    recipes = {name: _recipe(name, recipe, members[name]) for name, recipe in head["arrays"].items()}
    if unpacked_size(head["arrays"]) > most_memory(size):
        raise _Malformed("it would take too much memory")
    reader = _Reader(members, recipes)
    certificate = reader.part(Certificate, head["certificate"], "")
    if reader.members:
        raise _Malformed(f"nobody asked for the member '{_plain(next(iter(reader.members)))}'")
    assert isinstance(certificate, Certificate)
    return certificate


def _header(content: bytes) -> dict[str, Any]:
    if len(content) > MOST_HEADER:
        raise _Malformed(f"the header is longer than {MOST_HEADER} bytes")
    try:
        head = json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _Malformed("the header is no JSON text of ours") from error
    if not isinstance(head, dict):
        raise _Malformed("the header is no object")
    return head


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is there twice")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


_Recipe = tuple[str, str, tuple[int, ...]]


def _recipe(name: str, recipe: Any, content: bytes) -> _Recipe:
    """(type, coding, shape) of an array, which its bytes fit."""
    if not isinstance(recipe, list) or len(recipe) != 3 or not isinstance(recipe[2], list):
        raise _Malformed(f"the array '{_plain(name)}' is not described")
    kind, coding, shape = recipe
    if type(kind) is not str or type(coding) is not str:
        raise _Malformed(f"the array '{_plain(name)}' is not described")
    if kind not in TYPES or coding not in ("plain", "difference") or not 1 <= len(shape) <= 3:
        raise _Malformed(f"the array '{_plain(name)}' is of another type")
    if coding == "difference" and (kind not in ("int8", "int16", "int32") or len(shape) != 1):
        raise _Malformed(f"the array '{_plain(name)}' cannot be stored by differences")
    if not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise _Malformed(f"the shape of '{_plain(name)}' is none")
    if kind != "text" and prod(shape) * TYPES[kind] != len(content):
        raise _Malformed(f"the array '{_plain(name)}' has another length")
    return kind, coding, tuple(shape)


class _Reader:
    """Takes the members one by one, as the dataclasses of a certificate ask for them."""

    def __init__(self, members: dict[str, bytes], recipes: dict[str, _Recipe]):
        self.members, self.recipes = members, recipes

    def part(self, of: type, node: Any, path: str) -> Any:
        specs = dict(declared(of))
        wanted = {name for name, spec in specs.items() if not spec.is_array}
        if not isinstance(node, dict) or node.keys() != wanted:
            raise _Malformed(f"the fields of '{path[:-1]}' are others" if path else "the fields are others")
        values = {
            name: self._array(spec, path + name)
            if spec.is_array
            else self._value(spec, node[name], path + name)
            for name, spec in specs.items()
        }
        return of(**values)

    def _value(self, spec: Field, node: Any, path: str) -> Any:
        if spec.kind == "part" and node is not None:
            assert spec.of is not None
            return self.part(spec.of, node, f"{path}.")
        if spec.kind == "parts":
            assert spec.of is not None
            if not isinstance(node, list) or len(node) > spec.most:
                raise _Malformed(f"'{path}' is no list, or too long")
            return tuple(self.part(spec.of, one, f"{path}.{i}.") for i, one in enumerate(node))
        return float("inf") if spec.kind == "real" and node == "inf" else node

    def _array(self, spec: Field, path: str) -> Any:
        if path not in self.members:
            return None
        content, (kind, coding, shape) = self.members.pop(path), self.recipes[path]
        if (spec.kind == "rationals") != (kind == "text"):
            raise _Malformed(f"'{path}' is of another type")
        if spec.kind == "rationals":
            return _rationals(content, shape, path)
        fits = kind == {"reals": "float64", "truths": "bool"}.get(spec.kind, kind) and kind in _OF[spec.kind]
        if not fits:
            raise _Malformed(f"'{path}' is of another type")
        if kind == "bool":
            raw = np.frombuffer(content, dtype=np.uint8).reshape(shape)
            if raw.max(initial=0) > 1:
                raise _Malformed(f"'{path}' has an entry that is neither true nor false")
            return raw.astype(np.bool_)
        stored = np.frombuffer(content, dtype=np.dtype(kind).newbyteorder("<")).reshape(shape)
        if spec.kind == "reals":
            return stored.astype(np.float64)
        return np.cumsum(stored, dtype=np.int64) if coding == "difference" else stored.astype(np.int64)


_OF = {"integers": ("int8", "int16", "int32", "int64"), "reals": ("float64",), "truths": ("bool",)}


def _rationals(content: bytes, shape: tuple[int, ...], path: str) -> tuple[Fraction, ...]:
    if content.count(b"\n") >= MOST_RATIONALS:
        raise _Malformed(f"'{path}' has more than {MOST_RATIONALS} rationals")
    lines = content.decode("ascii", "replace").split("\n") if content else []
    if shape != (len(lines),) or not all(_RATIONAL.match(line) for line in lines):
        raise _Malformed(f"'{path}' is no list of rationals")
    try:
        return tuple(Fraction(line) for line in lines)
    except ZeroDivisionError:
        raise _Malformed(f"'{path}' divides by 0") from None


def _plain(text: str) -> str:
    """Text of a file as it may be shown: short, and nothing that a terminal would act on."""
    return text[:80].encode("unicode_escape").decode("ascii")
