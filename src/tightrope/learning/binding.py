"""Which observations hold the region in place: more data about these, and it shrinks.

The events that bound a coordinate are those with a multiplier in the linear programs of the bounding box;
where the vertices of a polytope are known, the events whose rows carry one (facets) come in addition. Tangent
cuts of the likelihood region and ellipsoids come from all observations together; none of them binds alone.

This is an explanation, not a bound: plain float64, nothing rests on it.
"""

from __future__ import annotations

import numpy as np

from tightrope.io.results import Binding, BindingEvent
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.linear_program import LinearStatus
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Region
from tightrope.regions.walk import LazyProgram
from tightrope.statistics.estimates import EventIntervals
from tightrope.statistics.outcomes import Outcomes

MOST_NAMED = 200
"""So many are named at most; `total` counts all."""


NOTHING = Binding(0, ())


def binding_events(region: Region | None, intervals: EventIntervals | None, outcomes: Outcomes) -> Binding:
    """The events that bind in a region; none where it is empty or not made of events."""
    if not isinstance(region, Polytope) or region.emptiness.is_empty:
        return NOTHING
    if intervals is None and not np.any(region.system.origin == Origin.L1):
        return NOTHING
    sides: dict[int, set[str]] = {}
    for system, rows in ((region.system, _facets(region)), _bounding(region, intervals)):
        for row in rows.tolist():
            side = _SIDES.get(int(system.origin[row]))
            if side is not None:
                sides.setdefault(int(system.index[row]), set()).add(side)
    named = tuple(
        BindingEvent(event, " and ".join(sorted(sides[event])), _text(event, intervals, outcomes))
        for event in sorted(sides)[:MOST_NAMED]
    )
    return Binding(len(sides), named)


_SIDES = {int(Origin.EVENT_UPPER): "upper", int(Origin.EVENT_LOWER): "lower", int(Origin.L1): "ball"}


def _text(event: int, intervals: EventIntervals | None, outcomes: Outcomes) -> str:
    if intervals is not None:
        return intervals.describe(event)
    choice = outcomes.example_choice(int(outcomes.start[event]))
    return f"the distribution of {outcomes.model.structure.choice_name(choice)}"


def _facets(region: Polytope) -> OffsetArray:
    """Rows of the system that carry a vertex, where the vertices are known."""
    if region.enclosure is None:
        return np.zeros(0, dtype=np.int64)
    facets = region.enclosure.facets
    return facets[facets < len(region.system)].astype(np.int64)


def _bounding(region: Polytope, intervals: EventIntervals | None) -> tuple[Halfspaces, OffsetArray]:
    """A system and those of its rows that bound the coordinates.

    The region's own system has given up rows that its tightened box implies, so the rows of the events are
    written down again where their intervals are known; the box is widened so that rows are what binds.
    """
    system = region.system if intervals is None else _event_rows(region, intervals)
    scaled = ScaledHalfspaces.of(system, half=1.5 * np.maximum(0.5 * (system.upper - system.lower), 1e-200))
    program = LazyProgram(scaled)
    active: set[int] = set()
    for direction in np.vstack([np.eye(system.size), -np.eye(system.size)]):
        outcome = program.maximise(direction)
        if outcome.status is LinearStatus.OPTIMAL:
            active.update(program.loaded[np.flatnonzero(outcome.multipliers > 1e-9)].tolist())
    return system, np.array(sorted(active), dtype=np.int64)


def _event_rows(region: Polytope, intervals: EventIntervals) -> Halfspaces:
    events = intervals.events
    functions = region.coordinates.functions(events.outcomes.model.expressions).take(events.expression)
    times = events.multiplicity.astype(np.float64)
    linear, constant = functions.linear * times[:, None], functions.constant * times
    seen = np.flatnonzero((intervals.lower > 0.0) | (intervals.upper < 1.0))
    lifted = region.system.take(region.system.origin == Origin.ENVELOPE)
    system = Halfspaces.of_domain(region.coordinates).with_box(region.system.lower, region.system.upper)
    system = system.with_rows(lifted.matrix, lifted.bound, Origin.ENVELOPE)
    system = system.with_rows(linear[seen], (intervals.upper - constant)[seen], Origin.EVENT_UPPER, seen)
    return system.with_rows(-linear[seen], (constant - intervals.lower)[seen], Origin.EVENT_LOWER, seen)
