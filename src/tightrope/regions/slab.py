"""The slab region: what bets leave of a base likelihood region, narrow along one policy's value.

    C = { θ ∈ base region : Λ⁺(θ) < log(1/α⁺), Λ⁻(θ) < log(1/α⁻) }

The levels sum to at most δ (`tightrope.statistics.bets`), so C misses the true parameters with probability at
most δ. It holds for all policies; the bets decide along which direction it is narrow. Rounds add rows of each
side (`tightrope.regions.slab_rows`) and tighten, until the width along the value falls by less than 1 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.linear_program import LinearStatus
from tightrope.numerics.rounding import UNIT, up
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.halfspaces import Origin, ScaledHalfspaces
from tightrope.regions.likelihood import (
    LIKELIHOOD,
    LogLikelihood,
    cut_along,
    tighten_further,
    wants_value_cuts,
    with_cuts,
)
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.region import RegionKind, RegionTask
from tightrope.regions.slab_rows import (
    SlabConstraints,
    Terms,
    line_below,
    pool_terms,
    row_of,
    support_of_slab,
)
from tightrope.regions.walk import LazyProgram
from tightrope.statistics.bets import (
    Gradient,
    Levels,
    Slab,
    SlabRow,
    best_shares,
    place_bets,
    price_of_shares,
)
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.outcomes import Outcomes

_ROUNDS = 4
_ENOUGH = 0.01
_DEEP = 1e-3
"""A row is kept if it cuts off this part of the region's width across it."""

_MOST_STAGES = 7
_SPARE = 1e-7
"""Share of its width by which the range of an expression is widened, so that proofs need not be exact."""


def enclose_slab(
    guard: Polytope, ledger: ConfidenceBudget, outcomes: Outcomes, slab: Slab, gradient: Gradient
) -> Polytope:
    """The guard's polytope with rows of the betting strategies, tight where the value that is bet on ends."""
    assert guard.evidence is not None
    centre = outcomes.maximiser.lifted(guard.evidence.estimate)
    directions = np.array(gradient(centre, 1.0) or [np.zeros(guard.coordinates.size)])
    region = guard
    if wants_value_cuts(region) and np.any(directions != 0.0):
        region = cut_along(region, outcomes, directions)
    width, rounds = np.inf, 0
    while rounds < _ROUNDS and slab.plan.placed and not region.emptiness.is_empty:
        stage = _Stage(region, outcomes, slab)
        stage.add_all(centre, directions)
        region = stage.narrowed()
        slab, rounds = region.slab or slab, rounds + 1
        if region.emptiness.is_empty:
            break
        low, high = region.support(directions)
        before, width = width, float((high - low).sum())
        if width >= (1.0 - _ENOUGH) * before:
            break
    remark = f"bets were placed {len(slab.plan.placed) - slab.without} times; {rounds} rounds of rows"
    if not slab.plan.placed:
        remark = "no data after the pilot of the bets: the guard alone"
    return replace(region, kind=SLAB, ledger=ledger, remarks=(*guard.remarks, remark), slab=slab)


class _Stage:
    """The rows that are added to a region in one round, with a record of them, and the guard's cuts."""

    def __init__(self, region: Polytope, outcomes: Outcomes, slab: Slab):
        self.region, self.outcomes, self.functions, self.slab = region, outcomes, outcomes.functions, slab
        lower, upper = expression_bounds(region, outcomes.model.expressions)
        spare = _SPARE * (upper - lower)
        self.bounds = np.maximum(lower - spare, 0.0), np.minimum(upper + spare, 1.0)
        self.system = region.system.take(region.system.origin != Origin.ENVELOPE)
        assert region.evidence is not None
        self.evidence, self.points = region.evidence, list[FloatArray]()
        if region.cut_points is not None:
            self.points += list(region.cut_points)
        self.rows, self.ends, self.made = list[FloatArray](), list[float](), list[SlabRow]()
        self.terms: dict[int, tuple[Terms, float, FloatArray]] = {}

    def add_all(self, centre: FloatArray, directions: FloatArray) -> None:
        """Add rows of all sides along each direction; several strategies have the best shares of each."""
        parts = directions[:, None, :] if len(self.slab.every) > 1 else directions[None, :, :]
        for part in parts:
            for side in self.slab.sides:
                self.add_chords(side, _end(self.region, part[0] if side else -part[0]))
            aims = [one if side else -one for one in part for side in self.slab.sides if np.any(one != 0.0)]
            if aims:
                self.add_tangents(centre, np.array(aims))

    def _add(self, side: int, point: FloatArray, times: float) -> None:
        """A row of a side, tight at a point, less so many times the guard's evidence; kept if it cuts."""
        terms, level, share = self.terms[side]
        near = self.functions.at(point)
        line = line_below(terms, *self.bounds, near, self.evidence.weight, times)
        if times > 0.0:
            off = times * self.evidence.threshold
            level = up(up(level - off) + 4.0 * UNIT * abs(off))
        normal, bound = row_of(line, self.functions, level, self.system.lower, self.system.upper)
        low, high = (float(end[0]) for end in self.region.support(normal[None, :]))
        if high - bound > _DEEP * (high - low):
            self.rows.append(normal)
            self.ends.append(bound)
            self.made.append(SlabRow(side, point, share, times))

    def add_chords(self, side: int, point: FloatArray) -> None:
        """A row of the log-wealth alone, whose scales have the shares that are best at the point."""
        slab, share, level = self.slab, np.ones(1), self.slab.price[side]
        if len(slab.wagers[side]) > 1:
            near = self.functions.at(point)
            wealth = np.array([one.log_wealth(self.outcomes, near) for one in slab.wagers[side]])
            weight = np.array([scale.weight for scale in slab.every])
            share = best_shares(weight, np.where(np.isnan(wealth), -np.inf, wealth))
            level = up(level + price_of_shares(weight, share))
        pairs = [(part, one) for part, one in zip(share.tolist(), slab.wagers[side], strict=True) if part]
        self.terms[side] = pool_terms(pairs, self.outcomes, *self.bounds), level, share
        self._add(side, point, 0.0)

    def add_tangents(self, centre: FloatArray, aims: FloatArray) -> None:
        """Add rows where each aim is largest, and the base region's tangents there."""
        evidence, system, sides = self.evidence, self.region.system, list(self.terms)
        if not np.isfinite(evidence.threshold):
            return
        plain = ScaledHalfspaces.of(system.take(~np.isin(system.origin, (Origin.CUT, Origin.SLAB))))
        eye = np.eye(len(centre))
        room = np.concatenate([plain.bound, np.full(2 * len(centre), 1.0 + 1e-9)])
        about = SlabConstraints(
            [self.terms[side][:2] for side in sides],
            (evidence.weight, evidence.threshold),
            self.functions,
            self.bounds,
            (plain.centre, plain.half),
            (np.concatenate([plain.matrix, eye, -eye]), room),
        )
        ends = support_of_slab(about, centre, aims)
        for end, matter in ends:
            for place, times in matter:
                self._add(sides[place], end, times)
        points = np.array([end for end, _ in ends]).reshape(-1, len(centre))
        likelihood = LogLikelihood(self.functions, evidence.weight, evidence.threshold)
        self.system = with_cuts(self.system, likelihood, centre, points, self.points)

    def narrowed(self) -> Polytope:
        """The region with all rows of the stage, tightened."""
        before, size = self.region, self.functions.linear.shape[1]
        number = np.full(len(self.rows), len(self.slab.rows))
        matrix, which = np.array(self.rows).reshape(-1, size), np.arange(len(self.rows))
        system = self.system.with_rows(matrix, np.array(self.ends), Origin.SLAB, number, which)
        tightened = tighten_further(before.coordinates, system, before.tightening.rounds)
        most = MOST_VERTICES if before.enclosure is not None else 0
        kind, ledger = before.kind, before.ledger
        region = Polytope.of(kind, before.coordinates, ledger, tightened, before.relaxation, most)
        made = (tuple(self.made),) if self.made else ()
        return replace(
            region,
            remarks=before.remarks,
            evidence=before.evidence,
            cut_points=np.array(self.points).reshape(-1, size) if self.points else before.cut_points,
            slab=replace(self.slab, rows=(*self.slab.rows, *made)),
        )


def narrow_along(region: Polytope, model: ParametricMDP, directions: FloatArray) -> Polytope:
    """Add rows of the slab where values with these gradients end; they cost no confidence."""
    slab, evidence = region.slab, region.evidence
    if slab is None or evidence is None or not slab.plan.placed or len(slab.rows) >= _MOST_STAGES:
        return region
    outcomes = Outcomes.of(model)
    stage = _Stage(region, outcomes, slab)
    stage.add_all(outcomes.maximiser.lifted(evidence.estimate), directions)
    narrowed = stage.narrowed() if stage.made else region
    return region if narrowed.emptiness.is_empty else narrowed


def _end(region: Polytope, direction: FloatArray) -> FloatArray:
    """A point of the polytope where direction·x is largest, in plain float64."""
    corners = region.vertices
    if corners is not None:
        corner: FloatArray = corners[int((corners @ direction).argmax())]
        return corner
    scaled = ScaledHalfspaces.of(region.system)
    aim = direction * scaled.half
    size = float(np.abs(aim).max(initial=0.0))
    outcome = LazyProgram(scaled).maximise(aim / size) if size > 0.0 else None
    if outcome is None or outcome.status is not LinearStatus.OPTIMAL:
        assert region.emptiness.witness is not None
        return region.emptiness.witness
    return scaled.to_x(np.clip(outcome.point, -1.0, 1.0))


class ValueSlab(RegionKind):
    """A likelihood region and what betting strategies on one policy's value leave of it."""

    value = "slab"
    needs_order = True
    bets = True
    certificate = "value slab"

    def build(self, task: RegionTask) -> Polytope:
        return slab_region(task, lambda guard: guard)


def slab_region(task: RegionTask, narrow: Callable[[Polytope], Polytope]) -> Polytope:
    """A base region, made smaller by `narrow`, and bets along the value with the task's gradient."""
    gradient, outcomes, counts = task.gradient, task.outcomes, task.counts
    if gradient is None:
        raise InputError("a slab (betting region) needs a policy to bet on")
    levels = Levels.of(task.delta, gradient.ends, len(outcomes.coordinates.free), gradient.guard_share)
    guard = narrow(LIKELIHOOD.build(replace(task, delta=levels.guard)))
    slab = place_bets(outcomes, counts, gradient, levels, task.predictions)
    met = np.isin(guard.system.origin, (Origin.EVENT_UPPER, Origin.EVENT_LOWER))
    names = zip(guard.system.origin[met].tolist(), guard.system.index[met].tolist(), strict=True)
    slab = replace(slab, given=gradient.guard_share is None, events=tuple(names))
    notes = levels.note(), slab.plan.note(), gradient.words, *slab.notes
    ledger = replace(
        guard.ledger,
        delta=task.delta,
        gamma=task.delta,
        method="value slab",
        budget="base region and bets",
        notes=(*notes, *(f"guard, {note}" for note in guard.ledger.notes)),
    )
    return enclose_slab(guard, ledger, outcomes, slab, gradient)


SLAB = ValueSlab()
