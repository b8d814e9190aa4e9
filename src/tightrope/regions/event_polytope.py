"""The polytope of the intervals of all events (paper, Section 3), and why one is empty.

*Grown data.* Rows R are enclosed by H within a frame around an earlier polytope, from a point inside. If H
stays strictly away from the frame's faces, R lies in the frame: a segment from the point inside to one
outside would leave through a face at a point of R that is not in H. Otherwise the region is built from
nothing.

*Why a region is empty*: the events that Farkas' multipliers use, thinned out until every one is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import UNIT, down, largest_over_box, up
from tightrope.regions.bounds import quotient_rows
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces, rows_between
from tightrope.regions.polytope import (
    MOST_DIMENSIONS,
    MOST_VERTICES,
    EnclosingVertices,
    Polytope,
    enclosing_vertices,
)
from tightrope.regions.region import Conflict, Emptiness, RegionKind, RegionTask, Relaxation
from tightrope.regions.tightening import Tightened, Tightening, tighten
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.estimates import EventIntervals, event_intervals

_WIDER = 0.25
"""How much of its width the frame exceeds the box of the region by, on each side."""

_FILLED = 0.4
"""The part of a frame that a region fills at least in every coordinate; below there is a new frame."""

_SMALLEST_DEPTH = 1e-3
"""Of the starting point in the frame scaled to [−1, 1]: much more than rounding, and good for Qhull."""


@dataclass(frozen=True, eq=False)
class Nearby:
    """A frame around an earlier region and a point well inside the region."""

    lower: FloatArray
    upper: FloatArray
    interior: FloatArray

    @staticmethod
    def around(region: Polytope, before: Nearby | None) -> Nearby | None:
        """Keep the frame `before` while the region fills most of it; None without vertices."""
        vertices, witness = region.vertices, region.emptiness.witness
        if vertices is None or region.coordinates.is_lifted:
            return None
        lower, upper = region.bounding_box
        width = upper - lower
        if before is not None and witness is before.interior:
            domain = region.coordinates
            frame = np.minimum(before.upper, domain.upper) - np.maximum(before.lower, domain.lower)
            if np.all(width >= _FILLED * frame):
                return before
        return Nearby(lower - _WIDER * width, upper + _WIDER * width, vertices.mean(axis=0))

    def state(self) -> dict[str, AnyArray]:
        """What `restored` needs: a run that goes on later must look from the same place."""
        return {"lower": self.lower, "upper": self.upper, "interior": self.interior}

    @staticmethod
    def restored(state: Mapping[str, AnyArray]) -> Nearby | None:
        return Nearby(state["lower"], state["upper"], state["interior"]) if state else None


def tighten_nearby(base: Halfspaces, near: Nearby) -> tuple[Tightened, EnclosingVertices] | None:
    """`base` in its tightened box with its vertices, as those of an earlier region suggest; or None."""
    if not 0 < base.size <= MOST_DIMENSIONS:
        return None
    lower, upper = np.maximum(base.lower, near.lower), np.minimum(base.upper, near.upper)
    if not np.all(lower < upper):
        return None
    system = base.with_box(lower, upper)
    system = system.take(largest_over_box(system.matrix, lower, upper) > system.bound)
    scaled = ScaledHalfspaces.of(system)
    eye = np.eye(base.size)
    matrix = np.concatenate([scaled.matrix, eye, -eye])
    bound = np.concatenate([scaled.bound, np.ones(2 * base.size)])
    interior = (near.interior - scaled.centre) / scaled.half
    depth = float(np.min((bound - matrix @ interior) / np.abs(matrix).sum(axis=1)))
    if depth < _SMALLEST_DEPTH:
        return None
    enclosure = enclosing_vertices(matrix, bound, interior, MOST_VERTICES)
    if enclosure is None:
        return None
    least, most = enclosure.points.min(axis=0), enclosure.points.max(axis=0)
    away = 1.0 - 2.0 * enclosure.error - 1e-9
    if np.any((upper < base.upper) & (most > away)) or np.any((lower > base.lower) & (least < -away)):
        return None
    reach = np.abs(enclosure.points).max(axis=0) * scaled.half + np.abs(scaled.centre)
    error = up(enclosure.error * scaled.half * (1.0 + 1e-12) + 4.0 * UNIT * reach)
    boxed = system.with_box(
        np.maximum(lower, down(down(scaled.to_x(least)) - error)),
        np.minimum(upper, up(up(scaled.to_x(most)) + error)),
    )
    before, after = (upper - lower).tolist(), (boxed.upper - boxed.lower).tolist()
    report = Tightening(1, True, tuple(before), tuple(after))
    everything = np.arange(len(base))
    return (
        Tightened(boxed, report, near.interior, depth, everything, False),
        _rescale(enclosure, scaled, ScaledHalfspaces.of(boxed)),
    )


def _rescale(
    enclosure: EnclosingVertices, scaled: ScaledHalfspaces, now: ScaledHalfspaces
) -> EnclosingVertices:
    """The vertices in the coordinates of the new box; rows and the box's faces keep their numbers."""
    points = (scaled.to_x(enclosure.points) - now.centre) / now.half
    reach = np.abs(enclosure.points).max(axis=0) * scaled.half + np.abs(scaled.centre) + np.abs(now.centre)
    error = enclosure.error * (scaled.half / now.half) * (1.0 + 1e-9) + 8.0 * UNIT * (reach / now.half)
    return replace(enclosure, points=points, error=float(up(error.max())))


def irreducible(candidates: Sequence[int], is_empty: Callable[[list[int]], bool]) -> tuple[int, ...]:
    """Find a smallest subset that is still empty (QuickXplain: about k·log(n) questions)."""

    def explain(background: list[int], grown: bool, options: list[int]) -> list[int]:
        if grown and is_empty(background):
            return []
        if len(options) <= 1:
            return options
        first, second = options[: len(options) // 2], options[len(options) // 2 :]
        needed_second = explain(background + first, True, second)
        needed_first = explain(background + needed_second, bool(needed_second), first)
        return needed_first + needed_second

    return tuple(sorted(explain([], False, list(candidates))))


def conflicting_events(coordinates: Coordinates, base: Halfspaces, tightened: Tightened) -> tuple[int, ...]:
    """The events (or L1 balls) of an irreducible conflict in an empty system."""
    learned = base.origin >= Origin.EVENT_UPPER

    def is_empty(events: list[int]) -> bool:
        rows = ~learned | np.isin(base.index, events)
        return tighten(coordinates, base.take(rows)).empty

    candidates = _indices(base, tightened.used, learned)
    if not is_empty(candidates):
        candidates = _indices(base, np.arange(len(base)), learned)
    return irreducible(candidates, is_empty)


def _indices(base: Halfspaces, rows: OffsetArray, learned: BoolArray) -> list[int]:
    events: list[int] = np.unique(base.index[rows[learned[rows]]]).tolist()
    return events


def event_rows(base: Halfspaces, coordinates: Coordinates, intervals: EventIntervals) -> Halfspaces:
    """A system with the rows of all events whose intervals say something."""
    events = intervals.events
    model = events.outcomes.model
    functions = coordinates.functions(model.expressions).take(events.expression)
    times = events.multiplicity.astype(np.float64)
    if np.any(times > 1.0):
        functions = _scale(functions, times, coordinates)
    linear, above, below = rows_between(functions, intervals.lower, intervals.upper)
    informative = np.flatnonzero((intervals.lower > 0.0) | (intervals.upper < 1.0))
    base = base.with_rows(linear[informative], above[informative], Origin.EVENT_UPPER, informative)
    base = base.with_rows(-linear[informative], below[informative], Origin.EVENT_LOWER, informative)
    if model.expressions.denominators:
        quotients = informative[model.expressions.is_rational[events.expression[informative]]]
        upper_rows, lower_rows = quotient_rows(coordinates, intervals, quotients)
        base = base.with_rows(*upper_rows, Origin.EVENT_UPPER, quotients)
        base = base.with_rows(*lower_rows, Origin.EVENT_LOWER, quotients)
    return base


def polytope_region(intervals: EventIntervals, near: Nearby | None = None) -> Polytope:
    """U: the parameters that satisfy all event intervals; `near` is where an earlier region was."""
    model = intervals.events.outcomes.model
    coordinates = Coordinates.of(model.expressions, model.parameters)
    base = event_rows(Halfspaces.of_domain(coordinates), coordinates, intervals)
    relaxation = Relaxation.OUTER if coordinates.is_lifted else Relaxation.EXACT
    kind, ledger = POLYTOPE, intervals.ledger
    if near is not None and not coordinates.is_lifted:
        moved = tighten_nearby(base, near)
        if moved is not None:
            return Polytope.of(kind, coordinates, ledger, moved[0], relaxation, enclosure=moved[1])
    tightened = tighten(coordinates, base)
    region = Polytope.of(kind, coordinates, ledger, tightened, relaxation)
    if not tightened.empty:
        return region
    contradicting = conflicting_events(coordinates, base, tightened)
    conflict = Conflict(contradicting, tuple(intervals.describe(event) for event in contradicting))
    return region.with_emptiness(Emptiness(True, None, conflict))


def domain_region(model: ParametricMDP) -> Polytope:
    """The domain itself: what is known without any data, with certainty."""
    coordinates = Coordinates.of(model.expressions, model.parameters)
    tightened = tighten(coordinates, Halfspaces.of_domain(coordinates))
    relaxation = Relaxation.OUTER if coordinates.is_lifted else Relaxation.EXACT
    ledger = ConfidenceBudget(0.0, 0, 0.0, "the domain, without data", "none", Assumption.ADAPTIVE_ANYTIME)
    return Polytope.of(POLYTOPE, coordinates, ledger, tightened, relaxation)


def _scale(functions: AffineFunctions, times: FloatArray, coordinates: Coordinates) -> AffineFunctions:
    """m·f for small whole m; the products are rounded, so the slack grows by a few units."""
    reach = np.maximum(np.abs(coordinates.lower), np.abs(coordinates.upper))
    linear = functions.linear * times[:, None]
    constant = functions.constant * times
    slack = functions.slack * times + 2.0**-51 * (np.abs(linear) @ reach + np.abs(constant))
    return AffineFunctions(linear, constant, slack * (1.0 + 1e-9))


class EventPolytope(RegionKind):
    """U: all parameters of the domain within the intervals of all events."""

    value = "polytope"
    is_of_intervals = True
    serves_rates = True
    is_compared = True
    certificate = "intervals"
    certifies_quotients = True

    def build(self, task: RegionTask) -> Polytope:
        options = task.options
        intervals = event_intervals(task.model, task.counts, task.delta, options.interval, options.budget)
        return polytope_region(intervals)


POLYTOPE = EventPolytope()
