"""Bound tightening: the smallest provable box around a system, and with it tighter envelopes.

Two linear programs per coordinate give its range, rigorous by dual multipliers (paper, Section 3.2). In a
lifted system the new box gives new McCormick rows, and the process repeats. Envelopes hold for every true
point (x, y, x·y) within the bounds; a square also has the tangent in the middle. Bounds enter rows exactly,
constants are rounded up. Blocks of coordinates are tightened one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import Block, LinearStatus, find_blocks, proves_empty
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import down, error_factor, largest_over_box, up
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.walk import bound_by_programs, deepest_point
from tightrope.statistics.coordinates import Coordinates

_ROUNDS, _ROUNDS_OF_BOXES = 20, 2
"""At most so many: where products are coordinates, and elsewhere."""

_TOLERANCE = 1e-3


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


def tighten(coordinates: Coordinates, base: Halfspaces) -> Tightened:
    """Shrink the box of `base` and add envelopes; `used` are the rows of `base` that any proof rested on."""
    if not coordinates.free:  # no unknown parameters: the region is one point
        nothing = np.zeros(0, dtype=np.int64)
        return Tightened(base, Tightening(0, True, (), ()), base.lower.copy(), 0.0, nothing, False)
    if not coordinates.is_lifted and (blocks := find_blocks(base.matrix)):
        return _tighten_blocks(base, blocks)
    return _tighten_whole(coordinates if coordinates.is_lifted else None, base)


def _tighten_blocks(base: Halfspaces, blocks: tuple[Block, ...]) -> Tightened:
    """A product of systems, each tightened by itself."""
    lower, upper, interior = base.lower.copy(), base.upper.copy(), np.zeros(base.size)
    done, depth, used = 0, np.inf, list[OffsetArray]()
    empty, converged = False, True
    for block in blocks:
        part = _tighten_whole(None, base.within(block))
        columns = block.columns
        lower[columns], upper[columns] = part.system.lower, part.system.upper
        interior[columns], depth = part.interior, min(depth, part.depth)
        done, converged = max(done, part.report.rounds), converged and part.report.converged
        used.append(block.rows[0][part.used])
        if part.empty:
            empty, used = True, used[-1:]
            break
    before, after = (tuple(ends.tolist()) for ends in (base.upper - base.lower, upper - lower))
    system = base.with_box(lower, upper)
    system = system.take(np.flatnonzero(largest_over_box(system.matrix, lower, upper) > system.bound))
    report = Tightening(done, converged, before, after)
    return Tightened(system, report, interior, depth, np.sort(np.concatenate(used)), empty)


def _tighten_whole(lifted: Coordinates | None, base: Halfspaces) -> Tightened:
    lower, upper = base.lower, base.upper
    if lifted is not None:
        lower, upper = coordinate_boxes(lifted, lower, upper)
    before = tuple((upper - lower).tolist())
    number = np.arange(len(base))
    used: set[int] = set()
    limit = _ROUNDS_OF_BOXES if lifted is None else _ROUNDS
    done, converged = 0, False
    while True:
        system = base.with_box(lower, upper)
        keep = np.flatnonzero(largest_over_box(system.matrix, lower, upper) > system.bound)
        system, number_of = system.take(keep), number[keep]
        if lifted is not None:
            system = system.with_rows(*coordinate_envelopes(lifted, lower, upper), Origin.ENVELOPE)
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
        if lifted is not None:
            new_lower, new_upper = coordinate_boxes(lifted, new_lower, new_upper)
        if np.any(new_lower > new_upper):
            return _tighten(system, report, scaled, point, depth, used, True)
        width = np.maximum(upper - lower, 1e-300)
        gain = float(np.max(1.0 - (new_upper - new_lower) / width))
        lower, upper = new_lower, new_upper
        done += 1
        converged = gain <= _TOLERANCE


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
    best, rows = bound_by_programs(scaled, np.vstack([np.eye(size), -np.eye(size)]))
    reach_up, reach_down = best[:size], best[size:]
    rounding = error_factor(4) * (np.abs(scaled.centre) + scaled.half)
    new_upper = up(up(scaled.centre + up(scaled.half * reach_up)) + rounding)
    new_lower = down(down(scaled.centre - up(scaled.half * reach_down)) - rounding)
    return np.maximum(lower, new_lower), np.minimum(upper, new_upper), rows


def envelope_rows(
    products: tuple[tuple[int, int], ...], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rows a·x ≤ b for all products; coordinate len(lower) − len(products) + j is product j."""
    size = len(lower)
    first = size - len(products)
    rows: list[FloatArray] = []
    bounds: list[float] = []

    def add(z: int, sign: float, x: int, slope_x: float, y: int, slope_y: float, constant: float) -> None:
        """sign·z + slope_x·x + slope_y·y ≤ constant."""
        row = np.zeros(size)
        row[z] = sign
        row[x] += slope_x
        row[y] += slope_y
        rows.append(row)
        bounds.append(constant)

    for j, (x, y) in enumerate(products):
        z = first + j
        a, b, c, d = lower[x], upper[x], lower[y], upper[y]
        if x == y:
            middle = 0.5 * (a + b)
            for point in (a, middle, b):  # z ≥ 2·point·x − point²
                add(z, -1.0, x, 2.0 * point, y, 0.0, up(point * point))
            chord = a + b  # z ≤ (a+b)·x − a·b, with a+b rounded: z ≤ chord·x − a·b + |rounding|·|x|
            spare = abs(up(chord) - down(chord)) * max(abs(a), abs(b))
            add(z, 1.0, x, -chord, y, 0.0, up(up(-(a * b)) + up(spare)))
            continue
        add(z, -1.0, x, c, y, a, up(a * c))
        add(z, -1.0, x, d, y, b, up(b * d))
        add(z, 1.0, x, -c, y, -b, up(-(b * c)))
        add(z, 1.0, x, -d, y, -a, up(-(a * d)))
    return np.array(rows).reshape(-1, size), np.array(bounds)


def product_boxes(
    products: tuple[tuple[int, int], ...], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The box, with every product also bounded by interval arithmetic on its factors."""
    lower, upper = lower.copy(), upper.copy()
    first = len(lower) - len(products)
    for j, (x, y) in enumerate(products):
        corners = np.array(
            [lower[x] * lower[y], lower[x] * upper[y], upper[x] * lower[y], upper[x] * upper[y]]
        )
        low = max(down(float(corners.min())), 0.0) if x == y else down(float(corners.min()))
        lower[first + j] = max(lower[first + j], low)
        upper[first + j] = min(upper[first + j], up(float(corners.max())))
    return lower, upper


def coordinate_envelopes(
    coordinates: Coordinates, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The rows of all products, those among them that are no coordinates (`Coordinates.hinged`) included."""
    rows, bounds = envelope_rows(coordinates.products, lower, upper)
    if not coordinates.denominators:
        return rows, bounds
    pairs, products = coordinates.list_hinges()
    size, count = len(lower), len(pairs)
    wider_lower, wider_upper = (np.concatenate([end, np.zeros(count)]) for end in (lower, upper))
    above, ends = envelope_rows(pairs, wider_lower, wider_upper)
    on_product = above[:, size:]  # one entry ±1 in each row
    linear = above[:, :size] + on_product @ products.linear
    rounding = np.abs(above[:, :size]) + np.abs(on_product) @ np.abs(products.linear)
    spare = rounding @ np.maximum(np.abs(lower), np.abs(upper)) + np.abs(on_product) @ np.abs(
        products.constant
    )
    slack = np.abs(on_product) @ products.slack + error_factor(4) * (spare + np.abs(ends)) * (1.0 + 1e-9)
    moved = up(up(ends - on_product @ products.constant) + up(slack))
    return np.concatenate([rows, linear]), np.concatenate([bounds, moved])


def coordinate_boxes(
    coordinates: Coordinates, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The box, with reciprocals bounded by the range of their denominators and products by their factors."""
    if coordinates.denominators:
        lower, upper = lower.copy(), upper.copy()
        first = len(coordinates.free)
        functions = coordinates.denominator_functions()
        most = largest_over_box(functions.linear, lower, upper)
        least = -largest_over_box(-functions.linear, lower, upper)
        high = up(up(most + functions.constant) + functions.slack)
        low = down(down(least + functions.constant) - functions.slack)
        for k in np.flatnonzero((low > 0.0) | (high < 0.0)).tolist():
            lower[first + k] = max(lower[first + k], down(1.0 / high[k]))
            upper[first + k] = min(upper[first + k], up(1.0 / low[k]))
    return product_boxes(coordinates.products, lower, upper)
