"""The array types of the house, so that signatures say what an array holds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Values: probabilities, bounds, rewards."""

IndexArray: TypeAlias = npt.NDArray[np.int32]
"""Indices of states, expressions, actions: one a transition or a choice."""

OffsetArray: TypeAlias = npt.NDArray[np.int64]
"""Starts of rows in a CSR layout, keys, counts."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""Sets of states, choices or transitions."""

ExactIntegers: TypeAlias = npt.NDArray[Any]
"""Integers that are int64 while they fit and Python's own (dtype object) beyond."""
