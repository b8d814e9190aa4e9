"""The data of a statement as certificates speak of it: counts in batches, the design, δ and method."""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.certificate import evidence
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import OffsetArray
from tightrope.statistics.costs import CostModel

LIKELIHOOD, SLAB = "likelihood", "slab"


def to_data(
    counts: Counts, delta: float, method: str, shared_by: str, assumed: CostModel | None = None
) -> evidence.Data:
    """Batches in time order where the method uses the order; one batch of everything otherwise. Costs are a
    part of it where something is `assumed` of them."""
    design, batches = counts.design, counts.batches
    if evidence.METHODS[method].ordered and batches is not None:
        start, transition, count = batches.start, batches.transition, batches.count
    else:
        transition = np.flatnonzero(counts.transition)
        count = counts.transition[transition]
        start = np.array([0, len(transition)])
    return evidence.Data(
        delta=float(delta),
        method=method,
        shared_by=shared_by,
        design=design.kind.value,
        repeats=bool(design.repeats),
        censored=bool(design.censored),
        anytime=bool(design.anytime),
        batch_start=start.astype(np.int64),
        batch_transition=transition.astype(np.int64),
        batch_count=count.astype(np.int64),
        episodes=design.episodes if design.by_episodes else None,
        planned=None if design.late_plan else design.planned,
        costs=None if assumed is None else to_costs(counts, assumed),
        stated=_stated(design, method),
    )


def _stated(design: SamplingDesign, method: str) -> OffsetArray | None:
    """What is said of the ends of episodes, and of the order where the method needs it."""
    needed = (design.ends, design.order) if evidence.METHODS[method].ordered else (design.ends,)
    said = {(one.name, one.kept.value) for one in needed}
    numbers = [i for i, (name, kept, _) in enumerate(evidence.STATED) if (name, kept) in said]
    return np.array(numbers, dtype=np.int64) if numbers else None


def to_costs(counts: Counts, assumed: CostModel) -> evidence.Costs:
    """The sums of observed costs."""
    seen = {} if counts.costs is None else counts.costs.of
    listed = [seen[transition] for transition in sorted(seen)]
    low, high = (None, None) if assumed.bounds is None else assumed.bounds
    return evidence.Costs(
        transition=np.array(sorted(seen), dtype=np.int64),
        count=np.array([count for count, _, _ in listed], dtype=np.int64),
        total=tuple(total for _, total, _ in listed),
        square=tuple(square for _, _, square in listed),
        lower=low,
        upper=high,
        deviation=assumed.deviation,
    )


def data_of(result: LearningResult, counts: Counts) -> evidence.Data | None:
    """The data behind a result; None where it is about the whole domain."""
    ledger = result.ledger
    if ledger.delta == 0:
        return None
    region = result.region if result.contradiction is None else None
    method = ledger.method
    if region is not None and result.sets.kind not in (SetsKind.UNTIED, SetsKind.TIED):
        method = method if region.kind.is_of_intervals else region.kind.certificate or method
    assumed = result.options.cost_model if ledger.of_costs else None
    return to_data(counts, ledger.delta, method, _shared_by(result, method), assumed)


def _shared_by(result: LearningResult, method: str) -> str:
    """Whose intervals share δ."""
    if method not in ("clopper-pearson", "hoeffding", "beta-binomial"):
        return "events"
    if result.sets.kind is SetsKind.UNTIED:
        return "transitions"
    return "outcomes" if result.ledger.budget == "paper" else "events"
