"""From the bytes of a file to a certificate: every cap is checked before memory is taken.

The file is a zip archive of `header.json`, `digest` and one member per array (`certificate-format.md`). The
digest, SHA-256 over all other members, names the certificate; all bytes around the members follow from them.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from tightrope_check.budget import WorkBudget, allow_for, hold, spend
from tightrope_check.errors import InputError, Location
from tightrope_check.fields import DTYPES, Field, Polynomial, list_fields, validate
from tightrope_check.problem import Certificate

FORMAT = 6
MOST_MEMBERS = 60_000
MOST_HEADER = 1 << 20
MOST_LINES, MOST_PARTS = 1_000_000, 2_500_000
"""Of a text: lines; lines, terms and factors together."""
MOST_BYTES = 1 << 31
_PART, _TERM_BYTES = 100, 400
"""Work and memory of a term or factor."""

INFLATION = 40
"""A file may come to so many times its own size in memory, or to ROOM if that is more."""
ROOM = 1 << 28

TYPES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "float64": 8, "bool": 1, "text": 1}
"""The types of members, and the bytes of one entry."""

_STORED = {"integers": ("int8", "int16", "int32", "int64"), "reals": ("float64",), "truths": ("bool",)}
_NUMBER = "-?[0-9]{1,4000}(?:/[0-9]{1,4000})?"
_TERM = rf"{_NUMBER}(?:\*[0-9]{{1,5}}\^[0-9]{{1,4}})*"
_LINE = {"rationals": re.compile(rf"{_NUMBER}\Z"), "polynomials": re.compile(rf"(?:{_TERM}(?: {_TERM})*)?\Z")}

_COUPLED = "learned.coupled."
Part = TypeVar("Part")
Recipe = tuple[str, str, list[int]]  # type, coding, shape

_DAMAGE = (zlib.error, struct.error, ValueError, EOFError, LookupError, ArithmeticError)
"""What is raised on files that are not what they should be."""


class _Malformed(ValueError):
    """Why the bytes are no certificate."""


@dataclass(frozen=True, eq=False)
class LoadedCertificate:
    """A certificate whose fields are what they should be, and the digest of the file."""

    certificate: Certificate
    digest: str


def load(path: str | Path, budget: WorkBudget | None = None) -> LoadedCertificate:
    """Read a file, within a budget; an `InputError` says why it is no certificate."""
    place, file = Location(str(path)), Path(path)
    try:
        size = file.stat().st_size
        if not file.is_file():
            raise InputError("this is not a certificate: it is not a regular file")
        if size > MOST_BYTES:
            raise InputError(f"this is not a certificate: it has more than {MOST_BYTES:,} bytes")
        data, allowed = file.read_bytes(), budget or WorkBudget.of(None)
        with allowed.counting():
            return read(data)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place) from error
    except InputError as error:
        raise InputError(error.message, place, error.hint) from error


def read(data: bytes) -> LoadedCertificate:
    """As `load`, from the bytes of a file."""
    try:
        members = _members(data)
        digest = _digest(members)
        certificate = _certificate(members, len(data))
    except InputError:
        raise
    except _DAMAGE as error:
        words = f": {error}" if isinstance(error, _Malformed) else ""
        raise InputError(f"this is not a certificate, or it is damaged{words}") from error
    validate(certificate)
    return LoadedCertificate(certificate, digest)


def _members(data: bytes) -> dict[str, bytes]:
    """All members, one behind the other from the first byte on, then the directory that follows from them:
    no comments, no extra fields, no byte before, between or behind. Only how they are packed is free."""
    members: dict[str, bytes] = {}
    place, left, directory, coupled = 0, most_memory(len(data)), bytearray(), 0
    while data.startswith(b"PK\3\4", place):
        method, crc, packed, size, length = struct.unpack_from("<8xH4x3LH", data, place)
        about = 0, method, 0, 33, crc, packed, size, length, 0  # no flags; a fixed date; no extra field
        begin, left = place + 30 + length, left - size
        name, content = data[place + 30 : begin].decode("ascii"), data[begin : begin + packed]
        _require(left >= 0, f"it would take more than {INFLATION} times its own size in memory")
        hold("what it expands to", 2 * (most_memory(len(data)) - left))
        spend("what it expands to", size // 8)
        _require(name not in members and len(members) < MOST_MEMBERS, "too many members, or two of one name")
        plain = data.startswith(struct.pack("<4s5H3L2H", b"PK\3\4", 20, *about), place)
        _require(plain and method in (0, 8), "a member is encrypted or stored in another way")
        if method == 8:
            unpacker = zlib.decompressobj(-15)
            content = unpacker.decompress(content, size + 1)
            _require(unpacker.eof and not unpacker.unused_data, "a member has another length")
        _require(len(content) == size and zlib.crc32(content) == crc, "a member has another length or sum")
        members[name] = content
        coupled += packed if name.startswith(_COUPLED) else 0
        entry = b"PK\1\2", 788, 20, *about, 0, 0, 0, 0o600 << 16, place
        directory += struct.pack("<4s6H3L5H2L", *entry) + name.encode("ascii")
        place = begin + packed
    last = b"PK\5\6", 0, 0, len(members), len(members), len(directory), place, 0
    whole = data[place:] == directory + struct.pack("<4s4H2LH", *last)
    _require(whole, "its members do not fill the file, or its directory is wrong")
    allow_for(coupled)
    return members


def most_memory(size: int) -> int:
    """What a file of so many bytes may come to."""
    return max(ROOM, INFLATION * size)


def unpacked_size(arrays: dict[str, Recipe]) -> int:
    """What arrays come to in memory, by their descriptions."""
    return sum(prod(shape) * (1 if kind == "bool" else 8) for kind, _, shape in arrays.values())


def _digest(members: dict[str, bytes]) -> str:
    stated = members.pop("digest", b"").decode("ascii", "replace")
    whole = re.match(r"[0-9a-f]{64}\Z", stated) and "header.json" in members
    _require(bool(whole), "there is no header or no digest")
    if stated != digest_of(members):
        raise InputError("the file's contents do not match its digest: it was changed after it was written")
    return stated


def digest_of(members: dict[str, bytes]) -> str:
    """The digest of all members but `digest` itself."""
    hashed = hashlib.sha256()
    for name, content in sorted(members.items()):
        hashed.update(f"{name}\n{len(content)}\n".encode())
        hashed.update(content)
    return hashed.hexdigest()


def _certificate(members: dict[str, bytes], size: int) -> Certificate:
    content = members.pop("header.json")
    _require(len(content) <= MOST_HEADER, f"the header is longer than {MOST_HEADER} bytes")
    try:
        head = json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _Malformed("the header is not JSON text of ours") from error
    _require(isinstance(head, dict), "the header is not an object")
    if head.get("format") != FORMAT or type(head["format"]) is not int:
        words = f"a certificate of another format: this version reads format {FORMAT}"
        hint = "make the certificate again with this version, or verify it with the one that made it"
        raise InputError(words, hint=hint)
    _require(head.keys() == {"format", "arrays", "certificate"}, "the header has other fields")
    recipes = head["arrays"]
    _require(isinstance(recipes, dict) and recipes.keys() == members.keys(), "it lists other members")
    for name, recipe in recipes.items():
        _require(_describes(recipe, members[name]), f"the array '{_plain(name)}' is not as it is described")
    unpacked = unpacked_size(recipes)
    _require(unpacked <= most_memory(size), "it would take too much memory")
    hold("arrays", unpacked + sum(map(len, members.values())))
    hold("arrays", unpacked, lasting=True)
    arrays = {name: (members.pop(name), recipe) for name, recipe in recipes.items()}
    node = head["certificate"]
    name = "fleet.FleetCertificate" if isinstance(node, dict) and "unit" in node else "problem.Certificate"
    certificate: Certificate = _part(Field("part", of=name).load(), node, "", arrays)
    _require(not arrays, f"unknown member '{_plain(next(iter(arrays), ''))}'")
    return certificate


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    _require(len(result) == len(pairs), "a name is there twice")
    return result


def _no_constant(name: str) -> NoReturn:
    raise _Malformed(f"{name} is not a number")


def _describes(recipe: object, content: bytes) -> bool:
    """Whether [type, coding, shape] describes an array of these bytes."""
    if not (isinstance(recipe, list) and len(recipe) == 3 and isinstance(recipe[2], list)):
        return False
    kind, coding, shape = recipe
    known = type(kind) is str and kind in TYPES and 1 <= len(shape) <= 3
    if not known or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        return False
    narrow = kind in ("int8", "int16", "int32") and len(shape) == 1
    coded = coding == "plain" or (coding == "difference" and narrow)
    return coded and (kind == "text" or prod(shape) * TYPES[kind] == len(content))


def _part(of: type[Part], node: object, path: str, arrays: dict[str, tuple[bytes, Recipe]]) -> Part:
    """A dataclass of a certificate, which takes its members from those that are left."""
    wanted = {name for name, spec in list_fields(of) if not spec.is_array}
    if not isinstance(node, dict) or node.keys() != wanted:
        raise _Malformed(f"the fields of '{path[:-1]}' are others")
    return of(**{name: _value(spec, node.get(name), path + name, arrays) for name, spec in list_fields(of)})


def _value(spec: Field, node: object, path: str, arrays: dict[str, tuple[bytes, Recipe]]) -> object:
    if spec.is_array:
        return _array(spec, path, arrays) if path in arrays else None
    if spec.kind == "part" and node is not None:
        return _part(spec.load(), node, f"{path}.", arrays)
    if spec.kind == "parts":
        if not isinstance(node, list) or len(node) > spec.most:
            raise _Malformed(f"'{path}' is not a list, or too long")
        return tuple(_part(spec.load(), one, f"{path}.{i}.", arrays) for i, one in enumerate(node))
    return float("inf") if spec.kind == "real" and node == "inf" else node


def _array(spec: Field, path: str, arrays: dict[str, tuple[bytes, Recipe]]) -> object:
    content, (kind, coding, shape) = arrays.pop(path)
    _require(kind in _STORED.get(spec.kind, ("text",)), f"'{path}' is of another type")
    if kind == "text":
        return _lines(content, shape, spec.kind, path)
    held = np.dtype("uint8" if kind == "bool" else kind).newbyteorder("<")
    stored = np.frombuffer(content, dtype=held).reshape(shape)
    sure = kind != "bool" or stored.max(initial=0) <= 1
    _require(sure, f"'{path}' has an entry that is neither true nor false")
    stored = np.cumsum(stored, dtype=np.int64) if coding == "difference" else stored
    return stored.astype(DTYPES[spec.kind])


def _lines(content: bytes, shape: list[int], kind: str, path: str) -> tuple[object, ...]:
    """Rationals or polynomials, each on a line that ends with a line feed."""
    lines, *parts = map(content.count, (b"\n", b" ", b"*"))
    small = lines <= MOST_LINES and lines + sum(parts) <= MOST_PARTS
    _require(small, f"'{path}' has more than {MOST_LINES} lines, or {MOST_PARTS} lines, terms and factors")
    spend("texts", _PART * (lines + sum(parts)) + 2 * len(content))
    hold("texts", _TERM_BYTES * (lines + sum(parts)) + len(content), lasting=True)
    *texts, rest = content.decode("ascii", "replace").split("\n")
    fits = shape == [len(texts)] and rest == "" and all(map(_LINE[kind].match, texts))
    _require(fits, f"'{path}' is not a list of {kind}")
    return tuple(map(_rational if kind == "rationals" else _polynomial, texts))


def _rational(text: str) -> Fraction:
    """Fraction(text), which would take three times as long."""
    above, _, below = text.partition("/")
    return Fraction(int(above), int(below or 1))


def _polynomial(line: str) -> Polynomial:
    """Terms `c*i^e*…` between single spaces: c times the e-th power of parameter i, and so on."""
    terms = [term.split("*") for term in line.split(" ") if term]
    result: dict[tuple[tuple[int, int], ...], Fraction] = {}
    for coefficient, *factors in terms:
        pairs = [factor.split("^") for factor in factors]
        result[tuple((int(i), int(e)) for i, e in pairs)] = _rational(coefficient)
    _require(len(result) == len(terms), "a polynomial has a monomial twice")
    return result


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise _Malformed(words)


def _plain(text: str) -> str:
    """Text of a file as it may be shown: short, and nothing that a terminal would act on."""
    return text[:80].encode("unicode_escape").decode("ascii")
