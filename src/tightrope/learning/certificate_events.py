"""From the events of a result to those that a certificate's checker derives: intervals and numbers."""

from __future__ import annotations

import numpy as np

from tightrope.certificate.region.polynomials import ONE, added, key
from tightrope.certificate.statistics.outcomes import Events as CertifiedEvents
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, up
from tightrope.statistics.estimates import EventIntervals


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
