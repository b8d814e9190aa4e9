"""Systems of half-spaces a·x ≤ b inside a box, with the origin of each row.

Every region that is (or is enclosed by) a polytope is such a system. A row's float coefficients are exact by
definition, and its bound was rounded up so that the true constraint implies the row. Dropping a row
(`without_redundant`) or raising a bound (`scaled`) only enlarges the set, which is sound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.linear_program import Block
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import down, error_factor, product_error, up
from tightrope.statistics.coordinates import AffineFunctions, Coordinates


class Origin(IntEnum):
    """Where a row comes from; `Halfspaces.index` says which one of its kind, `parts` which of its rows."""

    DOMAIN = 0
    EVENT_UPPER = 1
    EVENT_LOWER = 2
    ENVELOPE = 3
    CUT = 4
    L1 = 5
    SLAB = 6
    COST_UPPER = 7
    COST_LOWER = 8


@dataclass(frozen=True, eq=False, repr=False)
class Halfspaces(Record):
    """{ x : matrix·x ≤ bound, lower ≤ x ≤ upper }."""

    matrix: FloatArray
    bound: FloatArray
    origin: IndexArray
    index: IndexArray
    lower: FloatArray
    upper: FloatArray
    part: OffsetArray | None = None

    @property
    def parts(self) -> OffsetArray:
        """The set of outcomes of an L1 row, in bits; 0 for rows that need no third name."""
        return np.zeros(len(self.bound), dtype=np.int64) if self.part is None else self.part

    @staticmethod
    def of_domain(coordinates: Coordinates) -> Halfspaces:
        """The box and the linear constraints of the domain."""
        matrix, bound, _ = coordinates.domain_rows()
        number = np.arange(len(bound), dtype=np.int32)
        return Halfspaces(
            matrix,
            bound,
            np.full(len(bound), Origin.DOMAIN, np.int32),
            number,
            coordinates.lower,
            coordinates.upper,
        )

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def size(self) -> int:
        return len(self.lower)

    def with_rows(
        self,
        matrix: FloatArray,
        bound: FloatArray,
        origin: Origin,
        index: IndexArray | OffsetArray | None = None,
        part: OffsetArray | None = None,
    ) -> Halfspaces:
        """This system and more rows."""
        number = np.arange(len(bound)) if index is None else index
        parts = np.zeros(len(bound), dtype=np.int64) if part is None else part
        return Halfspaces(
            np.concatenate([self.matrix, matrix]),
            np.concatenate([self.bound, bound]),
            np.concatenate([self.origin, np.full(len(bound), origin, np.int32)]),
            np.concatenate([self.index, number.astype(np.int32)]),
            self.lower,
            self.upper,
            np.concatenate([self.parts, parts]),
        )

    def with_box(self, lower: FloatArray, upper: FloatArray) -> Halfspaces:
        """The same rows in another box."""
        return replace(self, lower=lower, upper=upper)

    def take(self, rows: BoolArray | IndexArray | OffsetArray) -> Halfspaces:
        """Some of the rows."""
        return Halfspaces(
            self.matrix[rows],
            self.bound[rows],
            self.origin[rows],
            self.index[rows],
            self.lower,
            self.upper,
            self.parts[rows],
        )

    def within(self, block: Block) -> Halfspaces:
        """The part of one block of coordinates (`tightrope.numerics.linear_program`)."""
        rows, columns = block.rows[0], block.columns
        taken = self.take(rows)
        return replace(
            taken, matrix=taken.matrix[:, columns], lower=self.lower[columns], upper=self.upper[columns]
        )

    def excess(self, x: FloatArray) -> FloatArray:
        """A lower bound on matrix·x − bound at the exact float point x: positive proves x outside."""
        value = self.matrix @ x
        error = product_error(self.matrix, x[:, None])[:, 0]
        return down(down(value - self.bound) - error)


@dataclass(frozen=True, eq=False)
class ScaledHalfspaces:
    """{ y : matrix·y ≤ bound, −1 ≤ y ≤ 1 }, x = centre + half·y; rows have coefficients up to [½, 1]."""

    matrix: FloatArray
    bound: FloatArray
    factor: FloatArray
    centre: FloatArray
    half: FloatArray

    @staticmethod
    def of(
        system: Halfspaces, centre: FloatArray | None = None, half: FloatArray | None = None
    ) -> ScaledHalfspaces:
        """Scale by the system's own box, or by a given centre and half-width of each coordinate."""
        if centre is None:
            centre = 0.5 * (system.lower + system.upper)
        if half is None:
            half = np.maximum(up(system.upper - centre), up(centre - system.lower))
            half = np.maximum(half, 1e-200)
        matrix = system.matrix * half
        reach = np.maximum(np.abs(system.upper - centre), np.abs(system.lower - centre)) / half
        rounding = error_factor(3) * np.abs(matrix) @ np.maximum(reach, 1.0) * (1.0 + 1e-9)
        shift = system.matrix @ centre
        rounding += product_error(system.matrix, centre[:, None])[:, 0]
        bound = up(up(system.bound - shift) + up(rounding))
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        factor = np.ldexp(1.0, np.frexp(np.where(largest > 0.0, largest, 1.0))[1])
        return ScaledHalfspaces(matrix / factor[:, None], bound / factor, factor, centre, half)

    def to_x(self, y: FloatArray) -> FloatArray:
        """Points back in the coordinates of the system (plain float64)."""
        return self.centre + self.half * y


def rows_between(
    functions: AffineFunctions, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(linear, bound of +linear·x, bound of −linear·x) for lower ≤ f(x) ≤ upper, with f's slack."""
    above = up(up(upper - functions.constant) + functions.slack)
    below = up(up(functions.constant - lower) + functions.slack)
    return functions.linear, above, below
