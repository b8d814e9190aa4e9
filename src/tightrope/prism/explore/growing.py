"""An array that grows at its end, by doubling."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """`values` is a view of what has been appended so far, valid until the next `append`."""

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None):
        self._array: npt.NDArray[Any] = np.empty((16,) if width is None else (16, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._array[: self._length]

    def append(self, values: npt.NDArray[Any]) -> None:
        length = self._length + len(values)
        if length > len(self._array):
            larger = np.empty((max(length, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            larger[: self._length] = self.values
            self._array = larger
        self._array[self._length : length] = values
        self._length = length
