"""The data of a statement as certificates speak of it: counts in batches, the design, δ and method."""

from __future__ import annotations

import numpy as np

from tightrope.certificate import problem as certified
from tightrope.data.counts import Counts
from tightrope.learning.result import LearningResult
from tightrope.region.region import RegionKind
from tightrope.uncertainty.sets import SetsKind

LIKELIHOOD = "likelihood"


def to_data(counts: Counts, delta: float, method: str, budget: str, sets: str) -> certified.Data:
    """Batches in time order where the method uses the order; one batch of everything otherwise."""
    design, batches = counts.design, counts.batches
    if method == LIKELIHOOD and batches is not None:
        start, transition, count = batches.start, batches.transition, batches.count
    else:
        transition = np.flatnonzero(counts.transition)
        count = counts.transition[transition]
        start = np.array([0, len(transition)])
    return certified.Data(
        delta=float(delta),
        method=method,
        budget=budget,
        sets=sets,
        design=design.kind.value,
        repeats=bool(design.repeats),
        censored=bool(design.censored),
        batch_start=start.astype(np.int64),
        batch_transition=transition.astype(np.int64),
        batch_count=count.astype(np.int64),
        episodes=design.episodes,
        planned=None if design.late_plan else design.planned,
    )


def domain_data(sets: str) -> certified.Data:
    """No data: what is said holds for every instantiation in the domain."""
    none = np.zeros(0, dtype=np.int64)
    return certified.Data(
        delta=0.0,
        method="domain",
        budget="tied",
        sets=sets,
        design="adaptive",
        repeats=True,
        censored=False,
        batch_start=np.zeros(1, dtype=np.int64),
        batch_transition=none,
        batch_count=none,
    )


def data_of(result: LearningResult, counts: Counts, sets: str) -> certified.Data:
    """The data behind a result, whose sets are called `sets`."""
    ledger = result.ledger
    if ledger.delta == 0:
        return domain_data(sets)
    region = result.region if result.verdict is None else None
    method = ledger.method
    if region is not None and result.sets.kind not in (SetsKind.UNTIED, SetsKind.TIED):
        named = {RegionKind.LIKELIHOOD: LIKELIHOOD, RegionKind.ELLIPSOID: "ellipsoid"}
        method = named.get(region.kind, method)
    budget = ledger.budget if ledger.budget in ("tied", "paper") else "tied"
    return to_data(counts, ledger.delta, method, budget, sets)
