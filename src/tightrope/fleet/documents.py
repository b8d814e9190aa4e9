"""The records of fleets and of comparisons of two logs, as they are printed and written."""

from __future__ import annotations

import msgspec

from tightrope.io.coding import Real
from tightrope.io.results import Interval, Judged


class UnitFacts(msgspec.Struct, kw_only=True):
    """One unit: each end fails with the probability `miss` of the answer at most."""

    unit: str
    episodes: int
    bounds: Interval


class FleetFacts(Judged, kw_only=True):
    """One of the three answers; no bounds where the data allow none."""

    text: str
    bounds: Interval | None


class FleetDocument(Judged, kw_only=True):
    """`learn --unit`."""

    unit: str
    delta: float
    share: float
    most: FleetFacts
    next_unit: FleetFacts
    average: FleetFacts
    units: list[UnitFacts]
    chosen_on: list[str]


class ChangeFacts(msgspec.Struct, kw_only=True):
    """One quantity before and after, and bounds on the difference after − before."""

    name: str
    before: Real
    after: Real
    interval: Interval


class VersionsAnswer(Judged, kw_only=True):
    """`compare --before --after`: success, cost, and the contributions of steps, the worst first."""

    headline: str
    question: str
    success: ChangeFacts
    cost: ChangeFacts | None
    steps: list[ChangeFacts]
    runs: tuple[int, int]
    undecided: tuple[int, int]
    pairs: int
    proved_after: int | None
    unit: str | None
    delta: float
    margin: float | None
