"""Linear programs over many half-spaces of which few ever bind: rows enter when they are violated.

Solve over the rows loaded so far, look for rows that the optimum violates, load the worst of them, repeat.
About 4 % of the rows of a typical region are ever loaded (METHODS §3). What is returned are multipliers,
which are turned into safe bounds by weak duality over the loaded rows alone; stopping early costs width,
never truth.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearOutcome, LinearProgram, LinearStatus, dual_bounds
from tightrope.regions.halfspaces import ScaledHalfspaces

_TOLERANCE = 1e-10
_LOADED_AT_ONCE = 8
_ROUNDS = 200


class LazyProgram:
    """max g·y over scaled half-spaces; bases and loaded rows are kept from one g to the next."""

    def __init__(self, system: ScaledHalfspaces, first: OffsetArray | None = None):
        self._system = system
        size = system.matrix.shape[1]
        self._program = LinearProgram(np.full(size, -1.0), np.full(size, 1.0))
        self.loaded = np.zeros(0, dtype=np.int64)
        if first is not None:
            self._load(first)

    def maximise(self, direction: FloatArray) -> LinearOutcome:
        """The outcome over all rows (within a tolerance); multipliers belong to the rows `loaded`."""
        for _ in range(_ROUNDS):
            outcome = self._program.maximise(direction)
            if outcome.status is not LinearStatus.OPTIMAL:
                return outcome
            violation = self._system.matrix @ outcome.point - self._system.bound
            violation[self.loaded] = -np.inf
            if not self._load_worst(violation):
                return outcome
        return outcome

    def _load_worst(self, violation: FloatArray) -> bool:
        over = np.flatnonzero(violation > _TOLERANCE)
        if len(over) > _LOADED_AT_ONCE:
            over = over[np.argpartition(-violation[over], _LOADED_AT_ONCE)[:_LOADED_AT_ONCE]]
        self._load(over)
        return len(over) > 0

    def _load(self, rows: OffsetArray) -> None:
        self._program.add_rows(self._system.matrix[rows], self._system.bound[rows])
        self.loaded = np.concatenate([self.loaded, rows])


def bound_by_programs(system: ScaledHalfspaces, directions: FloatArray) -> FloatArray:
    """Safe upper bounds of directions·y over the scaled system, by one lazy linear program each."""
    size = system.matrix.shape[1]
    program = LazyProgram(system)
    found: list[FloatArray] = []
    for direction in directions:
        norm = float(np.abs(direction).max(initial=0.0))
        outcome = program.maximise(direction / norm) if norm > 0.0 else None
        solved = outcome is not None and outcome.status is LinearStatus.OPTIMAL
        found.append(outcome.multipliers * norm if outcome is not None and solved else np.zeros(0))
    multipliers = np.zeros((len(directions), len(program.loaded)))
    for row, values in enumerate(found):
        multipliers[row, : len(values)] = values
    rows, ones = program.loaded, np.ones(size)
    return dual_bounds(system.matrix[rows], system.bound[rows], -ones, ones, directions, multipliers)


def deepest_point(
    system: ScaledHalfspaces,
) -> tuple[LinearStatus, FloatArray, float, OffsetArray, FloatArray]:
    """A point with the largest distance r (in the maximum norm of rows) to all half-spaces and to the box.

    One linear program answers three questions: r > 0 means interior, r < 0 means that the rows contradict
    each other and the multipliers say how, r ≈ 0 means a set without interior. Returns (status, point, r,
    rows, multipliers).
    """
    size = system.matrix.shape[1]
    norm = np.abs(system.matrix).sum(axis=1)
    box = np.vstack([np.eye(size), -np.eye(size)])
    matrix = np.vstack([system.matrix, box])
    deep = ScaledHalfspaces(
        np.column_stack([matrix, np.concatenate([norm, np.ones(2 * size)])]),
        np.concatenate([system.bound, np.ones(2 * size)]),
        np.ones(len(matrix)),
        np.zeros(size + 1),
        np.ones(size + 1),
    )
    program = LazyProgram(deep, np.arange(len(system.bound), len(matrix)))
    outcome = program.maximise(np.append(np.zeros(size), 1.0))
    if outcome.status is LinearStatus.INFEASIBLE:  # even r = −1 is too much: the ray is the proof
        outcome = LinearOutcome(outcome.status, np.full(size + 1, -1.0), outcome.multipliers)
    elif outcome.status is LinearStatus.FAILED:  # nothing is known: treated as a set without interior
        outcome = LinearOutcome(outcome.status, np.zeros(size + 1), outcome.multipliers)
    real = program.loaded < len(system.bound)
    return (
        outcome.status,
        outcome.point[:-1],
        float(outcome.point[-1]),
        program.loaded[real],
        outcome.multipliers[real],
    )
