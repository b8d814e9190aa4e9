"""Certificates taken apart and put together again, under a digest that fits: what a forger works with.

Written from the description of the format, not with the package's own writer: he may store what that would
not.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Stored:
    """An array as the forger wants it stored: what the header says of it, and bytes that need not fit."""

    recipe: Any
    content: bytes


@dataclass
class Forgery:
    """`node`: the certificate's object in the header; `arrays` by member: NumPy arrays, lists of rationals
    as text, or `Stored`. `extra`: members that the header may not know, `head` more fields of it.
    """

    node: dict[str, Any]
    arrays: dict[str, Any]
    extra: dict[str, bytes] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Forgery:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        head = json.loads(members["header.json"])
        arrays = {name: _decoded(recipe, members[name]) for name, recipe in head["arrays"].items()}
        return cls(head["certificate"], arrays)

    def copy(self) -> Forgery:
        return copy.deepcopy(self)

    def __getitem__(self, path: str) -> Any:
        if path in self.arrays:
            return self.arrays[path]
        node: Any = self.node
        for step in path.split("."):
            node = node[int(step)] if isinstance(node, list) else node[step]
        return node

    def __setitem__(self, path: str, value: Any) -> None:
        if path in self.arrays or isinstance(value, np.ndarray | Stored):
            self.arrays[path] = value
            return
        *steps, last = path.split(".")
        node: Any = self.node
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        node[int(last) if isinstance(node, list) else last] = value

    def __contains__(self, path: str) -> bool:
        try:
            return self[path] is not None
        except (KeyError, IndexError, TypeError, ValueError):
            return False

    def drop(self, path: str) -> None:
        """Without an array, or with null for a field of the header."""
        if self.arrays.pop(path, None) is None:
            self[path] = None

    def scalars(self) -> Iterator[str]:
        """The paths of all fields in the header that are no objects."""
        yield from _leaves(self.node, "")

    def fields(self) -> list[str]:
        return sorted([*self.scalars(), *self.arrays])

    def part(self, prefix: str) -> bytes:
        """All that is said below a path, for comparison."""
        held = {path: self[path] for path in self.fields() if path.startswith(prefix)}
        return repr(
            {
                path: (value.dtype.str, value.shape, value.tobytes())
                if isinstance(value, np.ndarray)
                else value
                for path, value in held.items()
            }
        ).encode()

    def members(self) -> dict[str, bytes]:
        """Everything but the digest."""
        stored = {
            name: value if isinstance(value, Stored) else _encoded(value)
            for name, value in self.arrays.items()
        }
        head = {
            "format": 6,
            "arrays": {name: one.recipe for name, one in stored.items()},
            "certificate": self.node,
            **self.head,
        }
        header = json.dumps(head).encode()
        return {"header.json": header, **{name: one.content for name, one in stored.items()}, **self.extra}

    def save(self, path: Path) -> Path:
        return write_archive(path, self.members())


def digest_of(members: dict[str, bytes]) -> str:
    hashed = hashlib.sha256()
    for name, content in sorted(members.items()):
        hashed.update(f"{name}\n{len(content)}\n".encode("utf-8", "surrogateescape"))
        hashed.update(content)
    return hashed.hexdigest()


def write_archive(path: Path, members: dict[str, bytes], digest: str | None = None, level: int = 1) -> Path:
    """A zip archive of the members and their digest."""
    whole = {"digest": (digest_of(members) if digest is None else digest).encode(), **members}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, content in whole.items():
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression, level)
    return path


def archive_bytes(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in {"digest": digest_of(members).encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression, 1)
    return buffer.getvalue()


_KINDS = {"i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f8": "float64", "b1": "bool"}


def _encoded(value: Any) -> Stored:
    if isinstance(value, list):
        return Stored(["text", "plain", [len(value)]], "".join(f"{one}\n" for one in value).encode())
    array = np.asarray(value)
    kind = _KINDS.get(array.dtype.str[1:], array.dtype.name)
    return Stored([kind, "plain", list(array.shape)], np.ascontiguousarray(array).tobytes())


def _decoded(recipe: list[Any], content: bytes) -> Any:
    kind, coding, shape = recipe
    if kind == "text":
        return content.decode().split("\n")[:-1]
    array = np.frombuffer(content, dtype=np.dtype(kind).newbyteorder("<")).reshape(shape)
    if kind.startswith("int"):
        return np.cumsum(array, dtype=np.int64) if coding == "difference" else array.astype(np.int64)
    return array.copy()


def _leaves(node: Any, path: str) -> Iterator[str]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if inner is None:
        yield path
        return
    for name, value in inner:
        yield from _leaves(value, f"{path}.{name}" if path else str(name))


def rationals(texts: list[str]) -> list[Fraction]:
    return [Fraction(text) for text in texts]
