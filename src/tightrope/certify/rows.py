"""The rows and events of a result by the names that certificates use (`tightrope.certificate.rows`).

The checker derives events of its own; `EventMap` says which of them is which. Rows of a region carry where
they come from (`tightrope.regions.halfspaces`), and their names follow from that.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.coordinates import Space, add, key
from tightrope.certificate.learned import Learned
from tightrope.certificate.rows import Origin as Kind
from tightrope.certificate.statistics.intervals import Events
from tightrope.learning.result import LearningResult
from tightrope.logic.product_problem import ProductProblem
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, up
from tightrope.regions.halfspaces import Origin
from tightrope.regions.polytope import Polytope
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import EventIntervals

Name = tuple[int, int, int]


class EventMap:
    """Event e of a result is event number[e] of the checker, or where flipped[e] its opposite."""

    def __init__(self, intervals: EventIntervals, link: Learned):
        data = link.problem.data
        certified = Events(link, data is not None and data.shared_by == "events")
        events = intervals.events
        direct = {key(polynomial): i for i, polynomial in enumerate(certified.polynomials)}
        pairs = zip(events.expression.tolist(), events.multiplicity.tolist(), strict=True)
        own = [add({}, link.polynomials[e], m) for e, m in pairs]
        opposite = [key(link.space.complement(terms)) for terms in own]
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


def envelope_names(coordinates: Coordinates | Space) -> list[Name]:
    """All McCormick rows of all products."""
    return [
        (Kind.ENVELOPE, j, part)
        for j, (x, y) in enumerate(coordinates.products)
        for part in range(5 if x == y else 4)
    ]


def row_names(
    result: LearningResult, region: Polytope, events: EventMap | None
) -> tuple[list[Name | None], FloatArray]:
    """The name of every row of the region's system (None where it has none), and the points of its cuts."""
    coordinates, system = region.coordinates, region.system
    domain = domain_names(coordinates)
    envelopes: list[Name] = []
    for j, (x, y) in enumerate(coordinates.products):
        envelopes += [(Kind.ENVELOPE, j, part) for part in ((0, 4, 1, 2) if x == y else (0, 1, 2, 3))]
    _, example = np.unique(result.model.signatures.of_choice, return_index=True)
    if isinstance(result.problem, ProductProblem):  # certificates number the choices of the model
        example = result.problem.product.choice[example]
    sides = 1 if region.slab is None else max(len(region.slab.sides), 1)
    names: list[Name | None] = []
    for origin, index, part in zip(
        system.origin.tolist(), system.index.tolist(), system.parts.tolist(), strict=True
    ):
        name: Name | None = None
        if origin == Origin.DOMAIN:
            name = domain[index]
        elif origin in (Origin.EVENT_UPPER, Origin.EVENT_LOWER):
            assert events is not None
            name = (Kind.EVENT, *events.name(index, int(origin == Origin.EVENT_LOWER)))
        elif origin == Origin.ENVELOPE:
            name = envelopes[index] if index < len(envelopes) else None  # products with reciprocals
        elif origin in (Origin.COST_UPPER, Origin.COST_LOWER):
            name = (Kind.COST, index, int(origin == Origin.COST_LOWER))
        elif origin == Origin.CUT:
            name = (Kind.CUT, index, 0)
        elif origin == Origin.SLAB:
            name = (Kind.SLAB, *divmod(index, sides))
        elif origin == Origin.L1 and part > 0:
            name = (Kind.L1, int(example[index]), part)
        names.append(name)
    return names, np.zeros((0, coordinates.size)) if region.cut_points is None else region.cut_points
