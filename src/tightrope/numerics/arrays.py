"""The array types of this package, so that signatures say what an array holds."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tightrope_check.arrays import BoolArray as BoolArray
from tightrope_check.arrays import FloatArray as FloatArray
from tightrope_check.arrays import OffsetArray as OffsetArray

IndexArray: TypeAlias = npt.NDArray[np.int32]
"""Indices of states, expressions, actions: one per transition or choice."""

ExactIntegers: TypeAlias = npt.NDArray[Any]
"""Integers that are int64 while they fit and Python's own (dtype object) beyond."""

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The array itself if it cannot be written to, or a view of it that cannot.

    numba compiles a kernel once for arrays that can be written to and once for those that cannot: where a
    kernel only reads an array that may be either, its caller passes this one.
    """
    if not array.flags.writeable:
        return array
    seen = array.view()
    seen.setflags(write=False)
    return seen
