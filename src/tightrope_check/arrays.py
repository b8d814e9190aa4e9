"""The array types, so that signatures say what an array holds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Values: probabilities, bounds, rewards."""

OffsetArray: TypeAlias = npt.NDArray[np.int64]
"""Starts of rows in a CSR layout, keys, counts."""

Indices: TypeAlias = npt.NDArray[np.integer]
"""Whole numbers of any type."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""Sets of states, choices or transitions."""

Number: TypeAlias = Any
"""One of either arithmetic, or what it is made of; flint's carry no types."""
