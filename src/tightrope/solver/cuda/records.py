"""The structures that kernels read, as words of eight bytes: pointers, integers and float64.

Field by field the same lists as `Segment`, `Model` and `System` in kernels.cu. Launches pass them by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.solver.cuda.device import Device

SEGMENT = ("states", "choices", "row", "first", "successor", "id", "table", "slot_start", "scratch")
MODEL = (
    "choice_start",
    "transition_start",
    "joint",
    "vertex_of",
    "rows",
    "reach",
    "vertex",
    "ball",
    "link",
    "request",
    "request_room",
    "row_count",
)
SYSTEM = (
    "reward",
    "discount",
    "reward_all",
    "discount_all",
    "rewarded",
    "discounted",
    "agent_maximises",
    "nature_maximises",
    "floor",
    "ceiling",
    "slack",
    "mode",
    "leader",
    "active",
)


class Record:
    """A structure as a launch passes it (`words`, one structured scalar); holds on to what it points to."""

    def __init__(self, device: Device, fields: tuple[str, ...], values: Mapping[str, Any]):
        assert set(values) <= set(fields)
        self._device, self._fields = device, fields
        self._values = dict(values)
        self.words = self._pack()

    def update(self, **values: Any) -> None:
        """Later launches see these fields instead."""
        self._values |= values
        self.words = self._pack()

    def _pack(self) -> npt.NDArray[np.void]:
        words = np.zeros(len(self._fields), np.int64)
        for i, name in enumerate(self._fields):
            value = self._values.get(name)
            if isinstance(value, float):
                words[i : i + 1].view(np.float64)[0] = value
            elif isinstance(value, int | np.integer):
                words[i] = int(value)
            elif value is not None:
                words[i] = self._device.pointer(value)
        return words.view(np.dtype([("words", np.int64, (len(words),))]))
