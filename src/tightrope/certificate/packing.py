"""Integers in few bytes: as they are or by their differences, in the narrowest type that holds them.

Offsets and successors rise in small steps and counts are mostly small, so that a certificate is hashed,
compressed and read several times as fast. Nothing is lost: differences are taken and added up again in the
array's own type, where both wrap around alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

Recipe = list[str]
"""["plain" or "difference", the type that the array had]."""

_NARROW = (np.int8, np.int16, np.int32)


def packed(array: Array) -> tuple[Array, Recipe | None]:
    """(what is stored, how it was made); None where the array is stored as it is.

    >>> packed(np.array([0, 300, 301, 303]))
    (array([  0, 300,   1,   2], dtype=int16), ['difference', '<i8'])
    >>> packed(np.array([0.5]))
    (array([0.5]), None)
    """
    if array.dtype.kind != "i" or array.ndim != 1 or len(array) == 0:
        return array, None
    steps = np.diff(array, prepend=array.dtype.type(0))
    plain, difference = _narrowest(array), _narrowest(steps)
    if plain.itemsize < difference.itemsize:
        return array.astype(plain), ["plain", array.dtype.newbyteorder("<").str]
    return steps.astype(difference), ["difference", array.dtype.newbyteorder("<").str]


def unpacked(stored: Array, recipe: Recipe | None) -> Array:
    """The array as it was."""
    if recipe is None:
        return stored
    how, name = recipe
    kind = np.dtype(name)
    if how not in ("plain", "difference") or kind.kind != "i" or stored.dtype.kind != "i" or stored.ndim != 1:
        raise ValueError(f"unknown packing {recipe}")
    return stored.astype(kind) if how == "plain" else np.cumsum(stored, dtype=kind)


def _narrowest(array: Array) -> np.dtype[Any]:
    least, most = int(array.min()), int(array.max())
    for kind in _NARROW:
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return np.dtype(kind)
    return array.dtype
