"""The arrays of a UMB archive, decoded at once.

The package `umbi` decodes an archive number by number, which takes minutes for a million states. Its decoder
is kept for the index, for names and for rare types (rationals, optional values); vectors of doubles,
integers, truth values and intervals of doubles, and valuations of states, are read here as whole arrays.
Bits of a valuation count from the lowest of its first byte, as everywhere in the format.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_WHOLE = (8, 16, 32, 64)


class Ends(NamedTuple):
    """An interval, with the names that umbi has for its ends."""

    left: float
    right: float


def decode_archive(path: str | Path) -> Any:
    """The archive as umbi has it, except that `valuations` are columns: {kind: {variable: array}}."""
    from umbi.umb.umb_to_tar import UmbDecoder

    class Decoder(UmbDecoder):  # type: ignore[misc,unused-ignore]
        def read_vector(self, filename: str, sized_type: Any, optional: bool = False) -> list[Any] | None:
            if (data := self.read_file(filename, optional)) is None:
                return None
            found = _decode_vector(data, sized_type)
            return super().read_vector(filename, sized_type, optional) if found is None else found

        def read_valuation_description(self, umb: Any, applies_to: str, valuation_desc: Any) -> None:
            if len(valuation_desc.classes) == 1 and valuation_desc.num_strings is None:
                data = self.read_file(f"valuations/{applies_to}/valuations.bin", optional=False)
                columns = _decode_structs(data, valuation_desc.classes[0])
                if columns is not None:
                    umb.valuations[applies_to] = columns
                    return
            super().read_valuation_description(umb, applies_to, valuation_desc)
            rows = umb.valuations[applies_to]
            names = rows[0] if rows else ()
            umb.valuations[applies_to] = {name: np.array([row[name] for row in rows]) for name in names}

    return Decoder(umbpath=path).decode()


def _decode_vector(data: bytes, sized_type: Any) -> list[Any] | None:
    """The numbers, or None where the type is left to umbi."""
    from umbi.binary import BOOL1
    from umbi.datatypes import IntervalType, NumericPrimitiveType

    kind, bits = sized_type.type, sized_type.size_bits
    if sized_type == BOOL1:
        members = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.bool_)
        return list(members.tolist())
    if isinstance(kind, IntervalType) and bits == 128 and kind.base_type == NumericPrimitiveType.DOUBLE:
        return [Ends(*pair) for pair in np.frombuffer(data, "<f8").reshape(-1, 2).tolist()]
    dtype = _dtype(kind, bits)
    return None if dtype is None else np.frombuffer(data, dtype).tolist()


def _dtype(kind: Any, bits: int) -> str | None:
    from umbi.datatypes import NumericPrimitiveType

    if bits not in _WHOLE:
        return None
    if kind == NumericPrimitiveType.DOUBLE and bits == 64:
        return "<f8"
    letters = {NumericPrimitiveType.UINT: "u", NumericPrimitiveType.INT: "i"}
    return f"<{letters[kind]}{bits // 8}" if kind in letters else None


def _decode_structs(data: bytes, struct: Any) -> dict[str, npt.NDArray[Any]] | None:
    """A column per attribute, or None where one of them is left to umbi."""
    from umbi.datatypes import NumericPrimitiveType, PrimitiveType

    rows = np.frombuffer(data, np.uint8).reshape(-1, struct.size_bytes)
    columns: dict[str, npt.NDArray[Any]] = {}
    begin = 0
    for field in struct:
        size = field.size_bits
        if hasattr(field, "name"):
            kind = field.sized_type.type
            if field.is_optional or field.offset:
                return None
            dtype = _dtype(kind, size)
            if dtype is not None and begin % 8 == 0:
                part = np.ascontiguousarray(rows[:, begin // 8 : (begin + size) // 8])
                columns[field.name] = part.view(dtype)[:, 0]
            elif kind == PrimitiveType.BOOL and size == 1:
                columns[field.name] = (rows[:, begin // 8] >> (begin % 8) & 1).astype(np.bool_)
            elif kind in (NumericPrimitiveType.UINT, NumericPrimitiveType.INT) and size < 63:
                columns[field.name] = _whole_numbers(rows, begin, size, kind == NumericPrimitiveType.INT)
            else:
                return None
        begin += size
    return columns


def _whole_numbers(rows: npt.NDArray[np.uint8], begin: int, size: int, signed: bool) -> npt.NDArray[np.int64]:
    """Integers of so many bits that begin anywhere."""
    total = np.zeros(len(rows), np.int64)
    for bit in range(size):
        place = begin + bit
        weight = -(1 << bit) if signed and bit == size - 1 else 1 << bit
        total += (rows[:, place // 8] >> (place % 8) & 1).astype(np.int64) * weight
    return total
