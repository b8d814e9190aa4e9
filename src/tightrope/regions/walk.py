"""Maxima of linear functions over a polytope: walks from vertex to vertex, and programs that load few rows.

A dual simplex finds the first maximum, a few primal steps each next one; bounds are raised a little to break
ties. Linear programs load the rows that the optimum violates most. Only multipliers leave this module, and
any λ ≥ 0 is safe: g·y ≤ λ·bound + (rest over the box).
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, invert
from tightrope.numerics.jit import kernel
from tightrope.numerics.linear_program import LinearOutcome, LinearProgram, LinearStatus, dual_bounds
from tightrope.numerics.rounding import error_factor, largest_over_box, product_error, up
from tightrope.regions.halfspaces import ScaledHalfspaces

_RAISE = 1e-10
_MOST_STEPS = 10_000
_REFRESH = 40


def bound_by_walks(system: ScaledHalfspaces, directions: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Safe upper bounds of directions·y, and which come from a maximum that was reached."""
    size = system.matrix.shape[1]
    eye = np.eye(size)
    matrix = np.concatenate([eye, -eye, system.matrix])
    bound = np.concatenate([np.ones(2 * size), system.bound])
    raised = bound + _RAISE * (0.5 + np.random.default_rng(23).random(len(bound)))
    norm = np.abs(directions).max(axis=1, initial=0.0)
    unit = directions / np.where(norm > 0.0, norm, 1.0)[:, None]
    basis = np.zeros((len(directions), size), dtype=np.int32)
    reached = np.zeros(len(directions), dtype=np.bool_)
    walk(np.ascontiguousarray(matrix.T), raised, np.ascontiguousarray(unit), basis, reached)
    rows = matrix[basis]
    try:
        multipliers = np.linalg.solve(rows.transpose(0, 2, 1), directions[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        multipliers = np.zeros_like(directions)
    multipliers = np.where(np.isfinite(multipliers), np.maximum(multipliers, 0.0), 0.0)
    return _weak_duality(rows, bound[basis], directions, multipliers), reached


def _weak_duality(
    rows: FloatArray, bound: FloatArray, directions: FloatArray, multipliers: FloatArray
) -> FloatArray:
    """λ·b + the most that g − Aᵀλ can add on |y| ≤ 1, one direction a row, rounded up."""
    image = (multipliers[:, :, None] * rows).sum(axis=1)
    size = (np.abs(multipliers)[:, :, None] * np.abs(rows)).sum(axis=1)
    terms = rows.shape[1] + 4
    rest = directions - image
    slack = error_factor(terms) * (size + np.abs(directions) + np.abs(rest)) + 1e-300
    value = (multipliers * bound).sum(axis=1)
    spread = error_factor(terms) * (multipliers * np.abs(bound)).sum(axis=1)
    ones = np.ones(directions.shape[1])
    total: FloatArray = value + largest_over_box(rest, -ones, ones)
    total = total + (spread + slack.sum(axis=1)) * (1.0 + 1e-9)
    return up(up(total) + product_error(total[:, None], np.ones((1, 1)))[:, 0])


@kernel
def walk(
    columns: FloatArray, bound: FloatArray, directions: FloatArray, basis: IndexArray, reached: BoolArray
) -> None:
    """Find the rows of an optimal basis for each direction; `columns` [d, rows] begin with the box's."""
    count, size = directions.shape
    current = np.zeros(size, dtype=np.int64)
    is_basic = np.zeros(len(bound), dtype=np.bool_)
    inverse = np.zeros((size, size))
    room = np.zeros(len(bound))
    speed = np.zeros(len(bound))
    started = False
    for i in range(count):
        if not started:
            started = _first_maximum(columns, bound, directions[i], current, is_basic, inverse, room)
        if started:
            reached[i] = _climb(columns, bound, directions[i], current, is_basic, inverse, room, speed)
            started = reached[i]
        for k in range(size):
            basis[i, k] = current[k]


@kernel
def _refresh(
    columns: FloatArray, bound: FloatArray, current: OffsetArray, inverse: FloatArray, room: FloatArray
) -> None:
    """The inverse of the basis and the room of every row at its vertex, from scratch."""
    size = len(current)
    square = np.empty((size, size))
    for k in range(size):
        for j in range(size):
            square[k, j] = columns[j, current[k]]
    invert(square, inverse)
    for r in range(len(bound)):
        room[r] = bound[r]
    for j in range(size):
        coordinate = 0.0
        for k in range(size):
            coordinate += inverse[j, k] * bound[current[k]]
        for r in range(len(bound)):
            room[r] -= columns[j, r] * coordinate


@kernel
def _first_maximum(
    columns: FloatArray,
    bound: FloatArray,
    goal: FloatArray,
    current: OffsetArray,
    is_basic: BoolArray,
    inverse: FloatArray,
    room: FloatArray,
) -> bool:
    """Dual simplex: the corner of the box that is best for the goal, then the rows that it violates."""
    size = len(goal)
    for r in range(len(bound)):
        is_basic[r] = False
    for j in range(size):
        current[j] = j if goal[j] >= 0.0 else size + j
        is_basic[current[j]] = True
    for _ in range(_MOST_STEPS):
        _refresh(columns, bound, current, inverse, room)
        worst, entering = -1e-11, -1
        for r in range(len(bound)):
            if room[r] < worst and not is_basic[r]:
                worst, entering = room[r], r
        if entering < 0:
            return True
        leaving, best = -1, np.inf
        for k in range(size):
            weight, price = 0.0, 0.0
            for j in range(size):
                weight += columns[j, entering] * inverse[j, k]
                price += goal[j] * inverse[j, k]
            if weight > 1e-9 and max(price, 0.0) / weight < best:
                best, leaving = max(price, 0.0) / weight, k
        if leaving < 0:
            return False
        is_basic[current[leaving]] = False
        is_basic[entering] = True
        current[leaving] = entering
    return False


@kernel
def _climb(
    columns: FloatArray,
    bound: FloatArray,
    goal: FloatArray,
    current: OffsetArray,
    is_basic: BoolArray,
    inverse: FloatArray,
    room: FloatArray,
    speed: FloatArray,
) -> bool:
    """Primal simplex from the current vertex along edges that rise."""
    size = len(goal)
    _refresh(columns, bound, current, inverse, room)
    for step in range(_MOST_STEPS):
        leaving, lowest = -1, -1e-11
        for k in range(size):
            price = 0.0
            for j in range(size):
                price += goal[j] * inverse[j, k]
            if price < lowest:
                lowest, leaving = price, k
        if leaving < 0:
            return True
        # The edge that leaves row `leaving` is minus its column of the inverse.
        for r in range(len(bound)):
            speed[r] = 0.0
        for j in range(size):
            pace = inverse[j, leaving]
            for r in range(len(bound)):
                speed[r] -= columns[j, r] * pace
        length, entering = np.inf, -1
        for r in range(len(bound)):
            if speed[r] > 1e-10 and room[r] < length * speed[r] and not is_basic[r]:
                length, entering = max(room[r], 0.0) / speed[r], r
        if entering < 0:
            return False
        is_basic[current[leaving]] = False
        is_basic[entering] = True
        current[leaving] = entering
        along = speed[entering]
        if step % _REFRESH == _REFRESH - 1 or along < 1e-6:
            _refresh(columns, bound, current, inverse, room)
            continue
        for r in range(len(bound)):
            room[r] -= length * speed[r]
        for k in range(size):
            if k != leaving:
                weight = 0.0
                for j in range(size):
                    weight += columns[j, entering] * inverse[j, k]
                for j in range(size):
                    inverse[j, k] += inverse[j, leaving] * weight / along
        for j in range(size):
            inverse[j, leaving] /= -along
    return False


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
        bound = np.maximum(self._system.bound[rows], -1e9)  # HiGHS takes what is below −1e20 for no bound
        self._program.add_rows(self._system.matrix[rows], bound)
        self.loaded = np.concatenate([self.loaded, rows])


def bound_by_programs(system: ScaledHalfspaces, directions: FloatArray) -> tuple[FloatArray, OffsetArray]:
    """Safe upper bounds of directions·y by a lazy linear program each, and the rows that they rest on."""
    size = system.matrix.shape[1]
    program = LazyProgram(system)
    duals: list[FloatArray] = []
    for direction in directions:
        norm = float(np.abs(direction).max(initial=0.0))
        outcome = program.maximise(direction / norm) if norm > 0.0 else None
        solved = outcome is not None and outcome.status is LinearStatus.OPTIMAL
        duals.append(outcome.multipliers * norm if outcome is not None and solved else np.zeros(0))
    multipliers = np.zeros((len(directions), len(program.loaded)))
    for row, values in enumerate(duals):
        multipliers[row, : len(values)] = values
    rows, ones = program.loaded, np.ones(size)
    best = dual_bounds(system.matrix[rows], system.bound[rows], -ones, ones, directions, multipliers)
    return best, rows[(multipliers > 0.0).any(axis=0)]


def deepest_point(
    system: ScaledHalfspaces,
) -> tuple[LinearStatus, FloatArray, float, OffsetArray, FloatArray]:
    """(status, point, r, rows, multipliers): r > 0 is interior; with r < 0 the multipliers refute."""
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
