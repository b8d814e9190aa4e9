"""Bound tightening: the smallest provable box around a system, and with it tighter envelopes.

For each coordinate two linear programs over the current relaxation give its least and largest value
(optimisation-based bound tightening; paper, Section 3.2). The bounds are rigorous (dual multipliers), so
every point of the true set stays inside. In a lifted system the new box gives new McCormick rows and the
process repeats, to a tolerance or a limit of rounds; without products one round is exact and a second one
only re-scales the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus, dual_bounds, proves_empty
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import down, error_factor, largest_over_box, up
from tightrope.regions.envelopes import coordinate_boxes, coordinate_envelopes
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.lazy_program import LazyProgram, deepest_point
from tightrope.statistics.coordinates import Coordinates

DEFAULT_ROUNDS = 20
DEFAULT_TOLERANCE = 1e-3


@dataclass(frozen=True, repr=False)
class Tightening(Record):
    """What bound tightening did: rounds, and the widths of the coordinates before and after."""

    rounds: int
    converged: bool
    before: tuple[float, ...]
    after: tuple[float, ...]

    def text(self) -> str:
        """One line for reports."""
        ratios = [b / a for a, b in zip(self.before, self.after, strict=True) if a > 0]
        mean = sum(ratios) / len(ratios) if ratios else 1.0
        end = "converged" if self.converged else "stopped at the limit"
        widths = f"coordinates at {mean:.3g} of their width before"
        return f"bound tightening: {self.rounds} rounds, {end}, {widths}"


@dataclass(frozen=True, eq=False)
class Tightened:
    """A system in its tightened box, or the proof (rows and multipliers of `system`) that it is empty."""

    system: Halfspaces
    report: Tightening
    interior: FloatArray
    depth: float
    used: OffsetArray
    empty: bool


def tighten(
    coordinates: Coordinates,
    base: Halfspaces,
    rounds: int = DEFAULT_ROUNDS,
    tolerance: float = DEFAULT_TOLERANCE,
) -> Tightened:
    """Shrink the box of `base` and add envelopes; `used` are the rows of `base` that any proof rested on."""
    if coordinates.size == 0:  # no parameters: the region is the one empty point
        nothing = np.zeros(0, dtype=np.int64)
        return Tightened(base, Tightening(0, True, (), ()), np.zeros(0), 0.0, nothing, False)
    lower, upper = coordinate_boxes(coordinates, base.lower, base.upper)
    before = tuple((upper - lower).tolist())
    number = np.arange(len(base))
    used: set[int] = set()
    limit = rounds if coordinates.is_lifted else min(rounds, 2)
    done, converged = 0, False
    while True:
        system = base.with_box(lower, upper)
        keep = np.flatnonzero(largest_over_box(system.matrix, lower, upper) > system.bound)
        system, number_of = system.take(keep), number[keep]
        if coordinates.is_lifted:
            system = system.with_rows(*coordinate_envelopes(coordinates, lower, upper), Origin.ENVELOPE)
        scaled = ScaledHalfspaces.of(system)
        status, point, depth, rows, multipliers = deepest_point(scaled)
        used.update(_base_rows(rows[multipliers > 0.0], number_of))
        after = tuple((upper - lower).tolist())
        report = Tightening(done, converged, before, after)
        everything = np.ones(system.size)
        if (depth < 0.0 or status is LinearStatus.INFEASIBLE) and proves_empty(
            scaled.matrix[rows], scaled.bound[rows], -everything, everything, multipliers
        ):
            return _tighten(system, report, scaled, point, depth, used, True)
        if converged or done >= limit:
            return _tighten(system, report, scaled, point, depth, used, False)
        new_lower, new_upper, proof_rows = _shrunk(scaled, lower, upper)
        used.update(_base_rows(proof_rows, number_of))
        new_lower, new_upper = coordinate_boxes(coordinates, new_lower, new_upper)
        if np.any(new_lower > new_upper):
            return _tighten(system, report, scaled, point, depth, used, True)
        width = np.maximum(upper - lower, 1e-300)
        gain = float(np.max(1.0 - (new_upper - new_lower) / width))
        lower, upper = new_lower, new_upper
        done += 1
        converged = gain <= tolerance


def _tighten(
    system: Halfspaces,
    report: Tightening,
    scaled: ScaledHalfspaces,
    point: FloatArray,
    depth: float,
    used: set[int],
    empty: bool,
) -> Tightened:
    interior = scaled.to_x(np.clip(point, -1.0, 1.0))
    return Tightened(system, report, interior, depth, np.array(sorted(used), dtype=np.int64), empty)


def _base_rows(rows: OffsetArray, number_of: OffsetArray) -> list[int]:
    result: list[int] = number_of[rows[rows < len(number_of)]].tolist()
    return result


def _shrunk(
    scaled: ScaledHalfspaces, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, OffsetArray]:
    """Rigorous bounds of every coordinate over the scaled system, never wider than the box it came with."""
    size = len(lower)
    program = LazyProgram(scaled)
    directions = np.vstack([np.eye(size), -np.eye(size)])
    found: list[FloatArray] = []
    for direction in directions:
        outcome = program.maximise(direction)
        found.append(outcome.multipliers if outcome.status is LinearStatus.OPTIMAL else np.zeros(0))
    multipliers = np.zeros((2 * size, len(program.loaded)))
    for row, values in enumerate(found):
        multipliers[row, : len(values)] = values
    best = dual_bounds(
        scaled.matrix[program.loaded],
        scaled.bound[program.loaded],
        np.full(size, -1.0),
        np.full(size, 1.0),
        directions,
        multipliers,
    )
    reach_up, reach_down = best[:size], best[size:]
    rounding = error_factor(4) * (np.abs(scaled.centre) + scaled.half)
    new_upper = up(up(scaled.centre + up(scaled.half * reach_up)) + rounding)
    new_lower = down(down(scaled.centre - up(scaled.half * reach_down)) - rounding)
    rows = program.loaded[np.flatnonzero((multipliers > 0.0).any(axis=0))]
    return np.maximum(lower, new_lower), np.minimum(upper, new_upper), rows
