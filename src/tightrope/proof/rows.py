"""The rows and events of a result by the names that certificates use (`tightrope.certificate.region.rows`).

The checker derives events of its own; `EventMap` says which of them is which. Event and domain rows and
tangent cuts carry their names. Rows of L1 balls are written down again in the same way, which gives the same
floats, and are recognised by them.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.region.polynomials import ONE, added, key
from tightrope.certificate.region.rows import Origin as Kind
from tightrope.certificate.statistics.outcomes import Events as CertifiedEvents
from tightrope.data.counts import Counts
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, up
from tightrope.region.halfspaces import Origin
from tightrope.region.l1 import MOST_OUTCOMES, l1_rows
from tightrope.region.polytope import Polytope
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import EventIntervals
from tightrope.statistics.outcomes import Outcomes

Name = tuple[int, int, int]


class EventMap:
    """Event e of a result is event number[e] of the checker, or where flipped[e] its opposite."""

    def __init__(self, intervals: EventIntervals, certified: CertifiedEvents):
        direct = {key(polynomial): i for i, polynomial in enumerate(certified.polynomials)}
        events = intervals.events
        own = [events.polynomial(e).terms for e in range(len(events))]
        opposite = [key(added({(): ONE}, terms, -1)) for terms in own]
        place = [direct.get(key(terms), -1) for terms in own]
        self.flipped = np.array([i < 0 for i in place], dtype=np.bool_)
        self.number = [i if i >= 0 else direct[other] for i, other in zip(place, opposite, strict=True)]
        self.intervals, self.size = intervals, len(certified)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The intervals in the checker's order."""
        lower, upper = np.zeros(self.size), np.ones(self.size)
        low, high = self.intervals.lower, self.intervals.upper
        lower[self.number] = np.where(self.flipped, np.maximum(down(1.0 - high), 0.0), low)
        upper[self.number] = np.where(self.flipped, np.minimum(up(1.0 - low), 1.0), high)
        return lower, upper

    def name(self, event: int, part: int) -> tuple[int, int]:
        """(event, part) of the checker's row for a bound of an event here; part 1 is the lower one."""
        return self.number[event], 1 - part if self.flipped[event] else part


def domain_names(coordinates: Coordinates) -> list[Name]:
    """The names of `Coordinates.domain_rows`, in its order."""
    parameters = coordinates.parameters
    names: list[Name] = []
    for i in range(len(parameters)):
        if i not in coordinates.free and not coordinates.substitution[i].is_constant:
            names += [(Kind.DOMAIN, i, 0), (Kind.DOMAIN, i, 1)]
    for j, constraint in enumerate(parameters.constraints):
        involved = [coordinates.substitution[i] * c for i, c in enumerate(constraint.coefficients) if c]
        total = sum(involved[1:], start=involved[0]) if involved else None
        if total is None or total.is_constant:
            continue
        names.append((Kind.DOMAIN, len(parameters) + j, 0))
        if constraint.is_equality:
            names.append((Kind.DOMAIN, len(parameters) + j, 1))
    return names


def envelope_names(coordinates: Coordinates) -> list[Name]:
    """All McCormick rows of all products."""
    return [
        (Kind.ENVELOPE, j, part)
        for j, (x, y) in enumerate(coordinates.products)
        for part in range(5 if x == y else 4)
    ]


def row_names(
    result: LearningResult, counts: Counts, region: Polytope, events: EventMap | None
) -> tuple[list[Name | None], FloatArray]:
    """The name of every row of the region's system (None where it has none), and the points of its cuts."""
    coordinates, system = region.coordinates, region.system
    domain = domain_names(coordinates)
    envelopes: list[Name] = []
    for j, (x, y) in enumerate(coordinates.products):
        envelopes += [(Kind.ENVELOPE, j, part) for part in ((0, 4, 1, 2) if x == y else (0, 1, 2, 3))]
    balls = _ball_names(result, counts) if np.any(system.origin == Origin.L1) else {}
    names: list[Name | None] = []
    for row, bound, origin, index in zip(
        system.matrix, system.bound, system.origin.tolist(), system.index.tolist(), strict=True
    ):
        name: Name | None = None
        if origin == Origin.DOMAIN:
            name = domain[index]
        elif origin in (Origin.EVENT_UPPER, Origin.EVENT_LOWER):
            assert events is not None
            name = (Kind.EVENT, *events.name(index, int(origin == Origin.EVENT_LOWER)))
        elif origin == Origin.ENVELOPE:
            name = envelopes[index]
        elif origin == Origin.CUT:
            name = (Kind.CUT, index, 0)
        elif origin == Origin.L1:
            name = balls.get(_fingerprint(row, bound))
        names.append(name)
    return names, np.zeros((0, coordinates.size)) if region.cut_points is None else region.cut_points


def _fingerprint(row: FloatArray, bound: float) -> bytes:
    return row.tobytes() + np.float64(bound).tobytes()


def _ball_names(result: LearningResult, counts: Counts) -> dict[bytes, Name]:
    assert result.region is not None
    coordinates = result.region.coordinates
    functions = coordinates.functions(result.model.expressions)
    reach = np.maximum(np.abs(coordinates.lower), np.abs(coordinates.upper))
    outcomes = Outcomes.of(result.model)
    seen = outcomes.pooled(counts)
    matrix, bound, owner = l1_rows(outcomes, functions, reach, seen, result.ledger.gamma)
    names: dict[bytes, Name] = {}
    position: dict[int, int] = {}
    for row, level, signature in zip(matrix, bound.tolist(), owner.tolist(), strict=True):
        width = int(outcomes.width[signature])
        number = position.get(signature, 0)
        position[signature] = number + 1
        if width <= MOST_OUTCOMES:
            mask = number + 1
        else:
            mask = 1 << number if number < width else (2**width - 1) ^ (1 << (number - width))
        if width <= 62:
            choice = outcomes.example_choice(int(outcomes.start[signature]))
            names[_fingerprint(row, level)] = (Kind.L1, choice, mask)
    return names
