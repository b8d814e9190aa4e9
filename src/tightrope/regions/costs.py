"""Regions with rows from observed costs, and bounds of rewards over a region.

The interval of every cost event is a pair of half-spaces in the region's coordinates
(`tightrope.statistics.costs`). The rows hold with probability at least 1 − δ_costs and the rest with 1 −
δ_rest, so the region contains the true parameters with probability at least 1 − δ_costs − δ_rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.ranges import ranges_over_box
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.regions.bounds import domain_box, function_bounds, parameter_box
from tightrope.regions.halfspaces import Origin, rows_between
from tightrope.regions.likelihood import tighten_further, without_envelopes
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.region import Conflict, Emptiness, Region
from tightrope.statistics.costs import CostIntervals


def with_costs(region: Region, costs: CostIntervals) -> Polytope:
    """The region with the rows of costs, and both parts of δ in its ledger."""
    if not isinstance(region, Polytope):
        raise InputError(
            "costs need a region bounded by half-spaces, not an ellipsoid",
            hint='use `region="polytope"`, l1 or likelihood',
        )
    coordinates = region.coordinates
    index, functions = coordinates.affine_among(costs.table)
    if len(index) < len(costs.table):
        text = costs.table.text(int(np.setdiff1d(np.arange(len(costs.table)), index)[0]))
        raise InputError(
            f"the reward {text} has a product of parameters that occurs in no probability, so its costs "
            "cannot be learned",
            hint="write the product as one parameter, or leave `cost_range` and `cost_sd` out: its range is "
            "then that of the parameters",
        )
    ledger = replace(
        region.ledger,
        delta=region.ledger.delta + costs.delta,
        of_costs=costs.delta,
        notes=(*region.ledger.notes, *costs.lines),
    )
    if region.emptiness.is_empty:
        return replace(region, ledger=ledger)
    linear, above, below = rows_between(functions, costs.lower, costs.upper)
    number = np.flatnonzero(np.array(costs.observed) > 0)
    system = without_envelopes(region.system)
    system = system.with_rows(linear[number], above[number], Origin.COST_UPPER, number)
    system = system.with_rows(-linear[number], below[number], Origin.COST_LOWER, number)
    tightened = tighten_further(coordinates, system, region.tightening.rounds)
    most = MOST_VERTICES if region.enclosure is not None or region.kind.is_of_intervals else 0
    made = Polytope.of(region.kind, coordinates, ledger, tightened, region.relaxation, most)
    made = replace(
        made, remarks=region.remarks, evidence=region.evidence, cut_points=region.cut_points, slab=region.slab
    )
    if not tightened.empty:
        return made
    texts = tuple(costs.describe(event) for event in number.tolist())
    return made.with_emptiness(Emptiness(True, None, Conflict((), ("observed costs", *texts))))


def reward_ends(
    reward: ParametricReward, model: ParametricMDP, region: Region | None
) -> tuple[RewardStructure, RewardStructure]:
    """Bound rewards at each choice over the region (the domain where there is none)."""
    table = reward.expressions
    low, high = domain_box(model.parameters) if region is None else parameter_box(region)
    low, high = np.minimum(low, high), np.maximum(low, high)
    least, most = ranges_over_box(table, low.tolist(), high.tolist())
    if region is not None:
        index, functions = region.coordinates.affine_among(table)
        below, above = function_bounds(region, functions)
        least[index], most[index] = np.maximum(least[index], below), np.minimum(most[index], above)
        crossed = least > most  # by rounding alone: both enclose the value
        least[crossed], most[crossed] = most[crossed], least[crossed]
    at = reward.expression
    return RewardStructure(choice=least[at]), RewardStructure(choice=most[at])
