"""The joint region: the intervals of events and a slab, or a likelihood region, each at its share of δ.

    J = { θ : all events lie in their intervals (δ₁) } ∩ { θ in the slab, or in the likelihood region (δ₂) }

misses the true parameters with probability at most δ₁ + δ₂ = δ, however the two depend on each other. The
split follows from the model alone (`split`). Everything is one system of half-spaces.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.numerics.rounding import down, largest_over_box
from tightrope.regions.event_polytope import event_rows
from tightrope.regions.halfspaces import Origin
from tightrope.regions.likelihood import LIKELIHOOD, tighten_further, without_envelopes
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.region import RegionKind, RegionTask
from tightrope.regions.slab import slab_region
from tightrope.statistics.confidence_budget import SAMPLING, Assumption, ConfidenceBudget
from tightrope.statistics.estimates import EventIntervals, event_intervals


def split(delta: float, bets: bool) -> tuple[float, float]:
    """(δ of the intervals of events, δ of the rest): nine tenths for a slab, six for a likelihood."""
    share = 0.9 if bets else 0.6
    return down((1.0 - share) * delta * (1.0 - 1e-15)), down(share * delta)


def _with_events(region: Polytope, intervals: EventIntervals) -> Polytope:
    """The region with the rows of events that cut into its box."""
    if region.emptiness.is_empty:
        return region
    rows = event_rows(region.system.take(np.zeros(0, dtype=np.int64)), region.coordinates, intervals)
    system = region.system
    cuts = np.flatnonzero(largest_over_box(rows.matrix, system.lower, system.upper) > rows.bound)
    rows = rows.take(cuts)
    if len(rows):
        rows = rows.take(np.flatnonzero(region.support(rows.matrix)[1] > rows.bound))
    if not len(rows):
        return region
    bare = without_envelopes(system)
    for origin in (Origin.EVENT_UPPER, Origin.EVENT_LOWER):
        own = rows.take(rows.origin == origin)
        bare = bare.with_rows(own.matrix, own.bound, origin, own.index)
    tightened = tighten_further(region.coordinates, bare, region.tightening.rounds)
    most = 0 if region.enclosure is None else MOST_VERTICES
    met = Polytope.of(region.kind, region.coordinates, region.ledger, tightened, region.relaxation, most)
    remark = f"{len(rows)} rows of intervals of events"
    return replace(
        met,
        remarks=(*region.remarks, remark),
        evidence=region.evidence,
        cut_points=region.cut_points,
        slab=region.slab,
    )


def join_ledgers(delta: float, events: ConfidenceBudget, rest: ConfidenceBudget) -> ConfidenceBudget:
    """One statement of two parts, under what both assume."""
    notes = (
        f"δ is split: {events.delta:.3g} for {events.events} events ({events.method}), "
        f"{rest.delta:.3g} for the rest ({rest.method})",
        *rest.notes,
    )
    most = min(events.assumption, rest.assumption, key=list(Assumption).index)
    parts = [(ledger.assumption is most, one) for ledger in (rest, events) for one in ledger.assumptions]
    assumed = tuple(dict.fromkeys(one for needs, one in parts if needs or one.name != SAMPLING))
    method, budget = f"{events.method} and {rest.method}", "events and evidence"
    return ConfidenceBudget(delta, 1, delta, method, budget, most, assumed, notes)


class JointRegion(RegionKind):
    """Intervals of events, and a slab or a likelihood region, each at a share of δ."""

    value = "joint"
    needs_order = True
    bets = True
    has_intervals = True
    certificate = "joint"

    def build(self, task: RegionTask) -> Polytope:
        options, bets = task.options, task.gradient is not None
        of_events, rest = split(task.delta, bets)
        intervals = event_intervals(task.model, task.counts, of_events, options.interval, options.budget)

        def meet(region: Polytope) -> Polytope:
            return _with_events(region, intervals)

        beside = replace(task, delta=rest)
        region = slab_region(beside, meet) if bets else meet(LIKELIHOOD.build(beside))
        return replace(region, kind=JOINT, ledger=join_ledgers(task.delta, intervals.ledger, region.ledger))


JOINT = JointRegion()
