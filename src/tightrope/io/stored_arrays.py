"""Arrays on disk: a zip archive of .npy members, stored as they are. What checkpoints are made of.

Nothing in a file is believed before memory is taken for it: members are not compressed, so that all of them
together are no larger than the file, and each array is as large as its member.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from tightrope.atomic import atomic_write_bytes
from tightrope.numerics.arrays import AnyArray

MOST_ARRAYS = 10_000
MOST_HEAD = 1 << 24
KINDS = "biufU"
"""Of the entries: truths, integers, numbers, texts."""

HEAD = "head"

DAMAGE = (
    OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, EOFError,
    RuntimeError, MemoryError, RecursionError, SyntaxError, struct.error, zipfile.BadZipFile,
)  # fmt: skip
"""What reading such a file, and making something of its arrays, may raise where they are not what they should
be."""


def save_arrays(path: Path, head: Mapping[str, object], arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write arrays beside a JSON object that says what they are; the file appears in one step."""
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    with atomic_write_bytes(path) as file:
        np.savez(file, allow_pickle=True, **{HEAD: text, **arrays})


def load_arrays(path: Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The JSON object and the arrays of a file; a ValueError, or another of `DAMAGE`, where it is none."""
    if not path.is_file():
        raise ValueError("it is not a file")
    size, arrays = path.stat().st_size, dict[str, AnyArray]()
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_ARRAYS or sum(entry.file_size for entry in entries) > size:
            raise ValueError("it declares more than it holds")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or not entry.filename.endswith(".npy"):
                raise ValueError("a member is compressed, or no array")
            name = entry.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"there are two arrays '{name}'")
            with archive.open(entry) as member:
                arrays[name] = _array(member, entry.file_size)
    text = arrays.pop(HEAD)
    if text.nbytes > MOST_HEAD:
        raise ValueError("its head is too long")
    head = json.loads(text.tobytes())
    if not isinstance(head, dict):
        raise ValueError("its head is not an object")
    return head, arrays


def _array(member: IO[bytes], size: int) -> AnyArray:
    """One array, if its description fits its bytes."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, by_columns, dtype = read[npy.read_magic(member)](member)
    if dtype.kind not in KINDS or dtype.hasobject or any(n < 0 for n in shape):
        raise ValueError("an array of objects")
    content = member.read()
    count = 1
    for n in shape:
        count *= n
    if count * dtype.itemsize != len(content) or (dtype.itemsize == 0 and count > size):
        raise ValueError("an array is not as large as it says")
    values = np.frombuffer(content, dtype=dtype) if dtype.itemsize else np.zeros(count, dtype=dtype)
    result: AnyArray = values.reshape(shape[::-1]).T if by_columns else values.reshape(shape)
    return result.copy()
