"""Forecasts of regions after more episodes; not a guarantee.

To second order the likelihood region is an ellipsoid around the estimate. Its size extrapolates the past cost
of prediction; points drawn from what the data leave give the change of widths with the estimate. Other
regions are forecast from drawn counts. All draws are seeded. Derivation: docs/planning.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from tightrope.data.counts import Counts, batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.design.directions import Directions, Information
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import ConeProgram
from tightrope.regions.region import Region
from tightrope.statistics.bets import count_planned_episodes, price_of_shares
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import PILOT_SHARE, PILOT_STEP, Evidence, mix_pilots

MOST_EPISODES = 10**9
"""Beyond so many episodes a forecast is not worth a number."""

DEVIATIONS = 2.0
LEAST_RATIO = 0.5
"""Between the gap of now and its formula."""

LESS_SMOOTHED = 2.0 / 3.0
"""The share of the smoothing's curvature that is not an error, if the truth may be anywhere in the domain."""

STEP = 4.0
"""Between two numbers of episodes for which it is looked elsewhere; what is between is interpolated."""

ROUGH_RATIO = 2.0
"""From here on the formula is far off, and a forecast rough."""


class Gap(NamedTuple):
    """What to expect, and the edges of what is likely."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Past:
    """The data batch by batch: visits, information, and the excess cost of plug-ins (nan where unknown)."""

    episodes: int
    visits: FloatArray
    matrices: FloatArray
    excess: FloatArray
    planned_pilot: int | None
    shares: FloatArray | None = None
    """Of pilots of 0, 10, 20, … batches, where the evidence of now mixes them."""

    @staticmethod
    def of(information: Information, counts: Counts, evidence: Evidence | None = None) -> Past:
        """What counts hold about the parameters at the point; `evidence` knows how its plug-ins did."""
        assert counts.batches is not None
        outcomes = Outcomes.of(information.model)
        seen = [outcomes.by_expression(one) for one in outcomes.pooled_batches(counts)]
        informative = ~information.model.expressions.is_constant
        excess = np.full(len(seen), np.nan)
        if evidence is not None:
            for place, plug_in in enumerate(evidence.plug_ins, start=evidence.pilot):
                count = seen[place] * informative
                excess[place] = _log_likelihood(information, information.point, count)
                excess[place] -= _log_likelihood(information, plug_in, count)
        plan, episodes = count_planned_episodes(counts), counts.design.episodes or 0
        pilot = None
        if plan is not None and plan > episodes:
            pilot = int(np.searchsorted(batch_ends(plan), PILOT_SHARE * plan, side="right"))
        matrices = [information.of_counts(count * informative) for count in seen]
        size = information.size
        return Past(
            episodes,
            np.array([float(count.sum()) for count in seen]),
            np.array(matrices).reshape(-1, size, size),
            excess,
            pilot,
            None if evidence is None else evidence.shares,
        )

    def pilot(self, visits: FloatArray) -> int:
        """The batches of the pilot of batches with so many visits, or of the one in tens within a tenth."""
        if self.planned_pilot is not None:
            return self.planned_pilot
        ends = np.cumsum(visits)
        number = int(np.searchsorted(ends, PILOT_SHARE * ends[-1], side="right")) // PILOT_STEP
        return number * PILOT_STEP

    def kept(self, visits: float) -> FloatArray:
        """The information that still counts after so many more visits: the pilot has grown by then."""
        pilot = self.pilot(np.append(self.visits, visits))
        result: FloatArray = self.matrices[min(pilot, len(self.visits)) :].sum(axis=0)
        return result

    @property
    def matrix(self) -> FloatArray:
        """The information of all data so far."""
        result: FloatArray = self.matrices.sum(axis=0)
        return result


class Forecast(Protocol):
    """The gap after so many more episodes, all three numbers or one of them."""

    def __call__(self, episodes: float) -> Gap: ...

    def edge(self, episodes: float, which: int) -> float: ...


class Curve:
    """The gap of a likelihood region against more episodes; `elsewhere` are other likely points with
    directions."""

    def __init__(
        self,
        information: Information,
        directions: Directions,
        past: Past,
        delta: float,
        matrix: FloatArray,
        steps: float,
        elsewhere: Sequence[tuple[FloatArray, Directions]] = (),
    ):
        self.elsewhere = elsewhere
        self._moves: dict[int, tuple[float, float]] = {}
        self.information, self.directions, self.past, self.delta = information, directions, past, delta
        self.matrix, self.steps = matrix, steps
        self._known: dict[tuple[int, int], float] = {}
        self._regions: dict[int, tuple[FloatArray, float, float]] = {}
        now = past.matrix + information.smoothing
        canonical = batch_ends(past.episodes + 2 * MOST_EPISODES).astype(np.float64)
        ends = np.append(past.episodes, canonical[canonical > past.episodes])
        self._ends = ends
        self._rates = np.zeros(len(ends) - 1)
        self._second = np.zeros(len(ends) - 1)
        for batch in range(len(ends) - 1):
            before = now + (ends[batch] - past.episodes) * matrix
            share = np.linalg.lstsq(before, matrix, rcond=None)[0]
            pulled = np.linalg.lstsq(before, information.smoothing, rcond=None)[0]
            self._rates[batch] = np.trace(share) - LESS_SMOOTHED * np.vdot(pulled, share.T)
            self._second[batch] = np.vdot(share, share.T)
        self._now = now

    def __call__(self, episodes: float) -> Gap:
        """The gap after so many more episodes."""
        return Gap(*(self.edge(episodes, which) for which in range(3)))

    def edge(self, episodes: float, which: int) -> float:
        """One of the three numbers: 0 is what to expect, 1 and 2 are the edges."""
        count = round(episodes)
        if (count, which) not in self._known:
            matrix, level, spread = self.region(count)
            away = (0.0, -1.0, 1.0)[which] * 2.0 * DEVIATIONS * spread
            level = max(level + away, 2.0 * math.log(1.0 / self.delta))
            width = total_width(self.information, self.directions, matrix, level)
            moved, apart = self._move(count)
            if which and width > 0.0:
                middle = self.edge(count, 0) / moved
                off = math.hypot(math.log(width / middle), DEVIATIONS * apart)
                width = middle * math.exp(off if which == 2 else -off)
            self._known[count, which] = width * moved
        return self._known[count, which]

    def _move(self, count: int) -> tuple[float, float]:
        """(factor of the width where the estimate will be, standard deviation of its logarithm)."""
        if not count or not self.elsewhere:
            return 1.0, 0.0
        step = math.log(count) / math.log(STEP)
        below = math.floor(step)
        low, high = self._move_at(below), self._move_at(below + 1)
        logarithm, spread = (a + (step - below) * (b - a) for a, b in zip(low, high, strict=True))
        return math.exp(logarithm), spread

    def _move_at(self, step: int) -> tuple[float, float]:
        """(mean, standard deviation) of the logarithm."""
        if step not in self._moves:
            information, count = self.information, round(STEP**step)
            matrix, level, _ = self.region(count)
            here = total_width(information, self.directions, matrix, level)
            more = count * self.matrix
            share = np.linalg.lstsq(self._now + more, more, rcond=None)[0]
            widths = []
            for point, directions in self.elsewhere:
                way = share @ (point - information.point)
                centre = information.point + information.room(way) * way
                widths.append(total_width(information, directions, matrix, level, centre))
            ratio = np.log(np.maximum(widths, 1e-300) / here) if here > 0.0 else np.zeros(1)
            self._moves[step] = float(ratio.mean()), float(ratio.std())
        return self._moves[step]

    def region(self, count: int) -> tuple[FloatArray, float, float]:
        """(information after the pilot, K, standard deviation of K/2) after so many more episodes."""
        if count not in self._regions:
            self._regions[count] = self._find_region(count)
        return self._regions[count]

    def _find_region(self, count: int) -> tuple[FloatArray, float, float]:
        past = self.past
        last = int(np.searchsorted(self._ends, past.episodes + count, side="left"))
        ends = np.append(self._ends[:last], past.episodes + count)
        episodes = np.diff(ends)
        visits = np.concatenate([past.visits, episodes * self.steps])
        usual = past.pilot(visits)
        certain = math.log(1.0 / self.delta)
        if past.planned_pilot is not None:
            total, bracket, variance = self._after(usual, count, episodes)
            return total, 2.0 * (bracket + certain), math.sqrt(max(variance, 0.0))
        if count == 0 and past.shares is not None:
            number = np.flatnonzero(past.shares)
            share = past.shares[number]
            price = price_of_shares(1.0 / ((number + 1.0) * (number + 2.0)), share)
            after = [self._after(PILOT_STEP * j, count, episodes) for j in number.tolist()]
        else:
            middle = usual // PILOT_STEP
            number = np.arange(max(middle - 2, 0), middle + 2)
            number = number[(number <= middle) | (PILOT_STEP * number < len(visits))]
            after = [self._after(PILOT_STEP * j, count, episodes) for j in number.tolist()]
            size = np.array([max(float(visits[PILOT_STEP * j :].sum()), 1e-9) for j in number.tolist()])
            share, price = mix_pilots(number, np.array([one[1] for one in after]), size, self.delta)
        matrix: FloatArray = np.tensordot(share, np.array([one[0] for one in after]), axes=1)
        bracket = float(share @ [one[1] for one in after])
        # Shares are chosen after looking: what batches of some pilots cost beyond expectation is passed over.
        variance = min(one[2] for one in after)
        return matrix, 2.0 * (bracket + certain + price), math.sqrt(max(variance, 0.0))

    def _after(self, pilot: int, count: int, episodes: FloatArray) -> tuple[FloatArray, float, float]:
        """(information, cost of plug-ins, its variance) of the batches after a pilot, `episodes` to come."""
        past, size = self.past, self.information.size
        old = slice(min(pilot, len(past.visits)), None)
        skipped = max(pilot - len(past.visits), 0)
        new = episodes[skipped:]
        before = past.matrices[old].sum(axis=0)
        rates, second = self._rates[: len(episodes)][skipped:], self._second[: len(episodes)][skipped:]
        cost, variance = self._past_cost(old)
        taken_back = np.linalg.lstsq(self._now, before, rcond=None)[0]
        cost += 0.5 * float(new @ rates)
        total = before + float(new.sum()) * self.matrix
        if count:
            gained = self._gain(total, self._now + count * self.matrix) - self._gain(before, self._now)
            cost += max(gained, 0.0)
        variance += float(new @ rates) + 0.5 * float(new**2 @ second)
        if count:
            variance += 0.5 * size + 0.5 * float(np.vdot(taken_back, taken_back.T))
        return total, cost, variance

    def _gain(self, matrix: FloatArray, known: FloatArray) -> float:
        """By how much the estimate from all that is known fits some data better than the truth does."""
        share = np.linalg.lstsq(known, matrix, rcond=None)[0]
        pulled = np.linalg.lstsq(known, self.information.smoothing, rcond=None)[0]
        return 0.5 * float(np.trace(share)) + 0.5 * LESS_SMOOTHED * float(np.vdot(pulled, share.T))

    def _past_cost(self, batches: slice) -> tuple[float, float]:
        """What the plug-ins of past batches cost, realised or expected, and the variance of the latter."""
        past = self.past
        cost = past.excess[batches]
        total, variance = float(np.nansum(cost)), 0.0
        unknown = np.flatnonzero(np.isnan(cost)) + (len(past.excess) - len(cost))
        for batch in unknown.tolist():
            before = self.information.smoothing + past.matrices[:batch].sum(axis=0)
            share = np.linalg.lstsq(before, past.matrices[batch], rcond=None)[0]
            total += 0.5 * float(np.trace(share))
            variance += float(np.trace(share)) + 0.5 * float(np.vdot(share, share.T))
        return total, variance


class Corrected:
    """A formula of first order in r that begins with the gap of now: 1 + c·r² (edges: r³, r) comes down."""

    def __init__(self, formula: Forecast, gap_now: float):
        self.formula = formula
        self.begin = formula.edge(0.0, 0)
        ratio = gap_now / self.begin if self.begin > 0.0 else 1.0
        self.missed = max(ratio, LEAST_RATIO) - 1.0

    def __call__(self, episodes: float) -> Gap:
        return Gap(*(self.edge(episodes, which) for which in range(3)))

    def edge(self, episodes: float, which: int) -> float:
        """One of the three numbers."""
        width = self.formula.edge(episodes, which)
        share = min(width / self.begin, 1.0) if self.begin > 0.0 else 0.0
        power = (2, 3, 1)[which] if self.missed > 0.0 else (2, 1, 3)[which]
        return float(width * (1.0 + self.missed * share**power))


def episodes_until(forecast: Forecast, gap: float) -> Gap:
    """More episodes until the gap is at most this, expected and at both edges; infinite beyond the most."""
    expected = smallest(lambda count: forecast.edge(count, 0) <= gap)
    low = smallest(lambda count: forecast.edge(count, 1) <= gap)
    high = smallest(lambda count: forecast.edge(count, 2) <= gap)
    return Gap(expected, min(low, expected), max(high, expected))


def smallest(holds: Callable[[int], bool]) -> float:
    """The smallest number of episodes from which on it holds, to 1 %; infinite beyond `MOST_EPISODES`."""
    if holds(0):
        return 0.0
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
        if high > MOST_EPISODES:
            return math.inf
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return float(high)


def _log_likelihood(information: Information, point: FloatArray, count: FloatArray) -> float:
    functions = information.maximiser.functions
    met = np.flatnonzero(count > 0.0)
    probability = functions.linear[met] @ information.maximiser.lifted(point) + functions.constant[met]
    return float(count[met] @ np.log(np.maximum(probability, 1e-300)))


MOST_DIRECTIONS = 40
ENOUGH = 0.95
"""Of the whole width: the heaviest directions that make it up stand for all."""

_LEAST = 1e-12
"""Relative eigenvalues below this are no information; the domain bounds what is not known."""


def total_width(
    information: Information,
    directions: Directions,
    matrix: FloatArray,
    level: float,
    centre: FloatArray | None = None,
) -> float:
    """Σ_k w_k·(h(u_k) + h(−u_k)) over {Δᵀ·matrix·Δ ≤ level} within the domain, around a centre."""
    if not len(directions):
        return 0.0
    root = _whitener(information, matrix) * np.sqrt(max(level, 0.0))
    flat = directions.vector @ root
    plain = 2.0 * np.linalg.norm(flat, axis=1)
    rows, bounds = information.maximiser.faces
    faces, room = rows @ root, bounds - rows @ (information.point if centre is None else centre)
    reach = np.linalg.norm(faces, axis=1)
    cutting = reach > room
    if not np.any(cutting):
        return float(directions.weight @ plain)
    size = directions.weight * plain
    order = np.argsort(-size, kind="stable")
    enough = int(np.searchsorted(np.cumsum(size[order]), ENOUGH * size.sum())) + 1
    chosen = order[: min(enough, MOST_DIRECTIONS)]
    ball = _CutBall(faces[cutting] / reach[cutting, None], np.maximum(room[cutting], 0.0) / reach[cutting])
    both = ball.most(flat[chosen]) + ball.most(-flat[chosen])
    cut = float(directions.weight[chosen] @ both)
    share = cut / max(float(size[chosen].sum()), 1e-300)
    return cut + share * (float(size.sum()) - float(size[chosen].sum()))


def _whitener(information: Information, matrix: FloatArray) -> FloatArray:
    """W with W·Wᵀ = matrix⁻¹, in the scale of the domain's box; what is not known is nearly unbounded."""
    extent = information.extent
    values, basis = np.linalg.eigh(matrix * np.outer(extent, extent))
    floor = max(_LEAST * float(values.max(initial=0.0)), 1e-9)
    result: FloatArray = extent[:, None] * basis / np.sqrt(np.maximum(values, floor))
    return result


class _CutBall:
    """The unit ball within faces·y ≤ room, whose rows have unit length."""

    def __init__(self, faces: FloatArray, room: FloatArray):
        self.faces, self.room = faces, room
        self._program: ConeProgram | None = None

    def most(self, directions: FloatArray) -> FloatArray:
        """max direction·y, per direction."""
        length = np.linalg.norm(directions, axis=1)
        unit = directions / np.maximum(length, 1e-300)[:, None]
        along = unit @ self.faces.T
        violated = along > self.room
        aside = np.sqrt(np.maximum(1.0 - along**2, 0.0))
        with_one = np.where(
            violated, self.room * along + np.sqrt(np.maximum(1.0 - self.room**2, 0.0)) * aside, 1.0
        )
        face = with_one.argmin(axis=1)
        row = np.arange(len(unit))
        best = with_one[row, face]
        level, cosine = self.room[face], along[row, face]
        rest = (unit - cosine[:, None] * self.faces[face]) / np.maximum(aside[row, face], 1e-300)[:, None]
        point = level[:, None] * self.faces[face] + np.sqrt(np.maximum(1.0 - level**2, 0.0))[:, None] * rest
        settled = ~violated.any(axis=1) | np.all(point @ self.faces.T <= self.room + 1e-9, axis=1)
        for k in np.flatnonzero(~settled).tolist():
            best[k] = min(best[k], self._by_program(unit[k]))
        result: FloatArray = best * length
        return result

    def _by_program(self, direction: FloatArray) -> float:
        if self._program is None:
            size = len(direction)
            self._program = ConeProgram(np.eye(size), np.zeros(size), 1.0, self.faces, self.room)
        multiplier = self._program.multipliers(direction)
        return float(multiplier @ self.room) + float(np.linalg.norm(direction - self.faces.T @ multiplier))


PAIRS = 6
_MOVES = 60
"""Of hit-and-run between two points, times the dimension."""

_SEED = 20
_INSIDE = 0.999
"""Of the way to a face."""


def plausible_points(information: Information, matrix: FloatArray) -> FloatArray:
    """Free parameters that are likely given so much information, inside the domain, one per row."""
    rows, bounds = information.maximiser.faces
    extent, size = information.extent, information.size
    values, basis = np.linalg.eigh(matrix * np.outer(extent, extent) + np.eye(size))
    axes = extent[:, None] * basis / np.sqrt(values)
    rng = np.random.default_rng(_SEED)
    point, room = np.zeros(size), bounds - rows @ information.point
    points_inside = []
    for _ in range(PAIRS):
        for _ in range(_MOVES * size):
            point = point + _move(rng, axes @ rng.normal(size=size), point, matrix, rows, room)
        points_inside += [point, -information.room(-point) * point]
    return information.point + _INSIDE * np.array(points_inside)


def _move(
    rng: np.random.Generator,
    along: FloatArray,
    point: FloatArray,
    matrix: FloatArray,
    rows: FloatArray,
    room: FloatArray,
) -> FloatArray:
    """A step on the line: a normal variable between the faces."""
    slope, left = rows @ along, np.maximum(room - rows @ point, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = left / np.abs(slope)
    high = float(np.min(reach[slope > 0.0], initial=np.inf))
    low = -float(np.min(reach[slope < 0.0], initial=np.inf))
    curvature = float(along @ matrix @ along)
    if curvature * (high - low) ** 2 < 1e-6:
        return along * rng.uniform(low, high)
    middle, deviation = -float(along @ matrix @ point) / curvature, 1.0 / np.sqrt(curvature)
    begin, end = ndtr((low - middle) / deviation), ndtr((high - middle) / deviation)
    step = middle + deviation * float(ndtri(rng.uniform(begin, end)))
    moved: FloatArray = along * min(max(step, low), high)
    return moved


DRAWS = 4
RATIO = 4.0
"""Between two numbers of episodes for which regions are built; gaps in between are interpolated."""

LEAST_SPREAD = 0.15
"""Relative: the edges of a forecast are at least so far from it."""

_COUNTS_SEED = 20


class SampledCurve:
    """The gap against more episodes, all with this occupancy."""

    def __init__(
        self,
        information: Information,
        directions: Directions,
        counts: Counts,
        build: Callable[[Counts], Region],
        occupancy: FloatArray,
    ):
        self.information, self.directions, self.counts, self.build = information, directions, counts, build
        model = information.model
        self.outcomes = Outcomes.of(model)
        signatures = model.signatures
        self.visits = np.bincount(signatures.of_choice, weights=occupancy, minlength=len(signatures))
        self.place = np.unique(self.outcomes.of_transition, return_index=True)
        self._known: dict[int, Gap] = {}
        self._points = [self._draw_point(draw) for draw in range(DRAWS)]

    def __call__(self, episodes: float) -> Gap:
        """The gap after so many more episodes."""
        if episodes < 1.0:
            return self._at(-1)
        step = min(math.log(episodes) / math.log(RATIO), math.log(2.0 * MOST_EPISODES) / math.log(RATIO))
        below = math.floor(step)
        low, high, share = self._at(below), self._at(below + 1), step - below
        return Gap(
            *(a ** (1.0 - share) * b**share if a > 0 and b > 0 else a for a, b in zip(low, high, strict=True))
        )

    def edge(self, episodes: float, which: int) -> float:
        """One of the three numbers."""
        return self(episodes)[which]

    def _at(self, step: int) -> Gap:
        if step not in self._known:
            more = 0.0 if step < 0 else RATIO**step
            widths = [self._width(more, draw) for draw in range(DRAWS if more else 1)]
            middle = float(np.mean(widths))
            spread = max(DEVIATIONS * float(np.std(widths)) / max(middle, 1e-300), LEAST_SPREAD)
            self._known[step] = Gap(middle, middle / (1.0 + spread), middle * (1.0 + spread))
        return self._known[step]

    def _width(self, episodes: float, draw: int) -> float:
        """Σ w·(largest − smallest) over the region of drawn counts."""
        region = self.build(self._draw(episodes, draw))
        vector = np.zeros((len(self.directions), region.coordinates.size))
        vector[:, : self.information.size] = self.directions.vector
        if region.emptiness.is_empty:
            return 0.0
        lower, upper = region.support(vector)
        return float(self.directions.weight @ np.maximum(upper - lower, 0.0))

    def _draw_point(self, draw: int) -> Information:
        """Parameters that are likely after the data so far; mirrored for every second draw."""
        information, outcomes = self.information, self.outcomes
        seen = outcomes.pooled(self.counts)
        weight = np.bincount(outcomes.expression, weights=seen, minlength=len(information.probability))
        known = information.of_counts(weight.astype(np.float64) * ~information.model.expressions.is_constant)
        values, basis = np.linalg.eigh(known + information.smoothing)
        rng = np.random.default_rng([_COUNTS_SEED, draw // 2])
        step = basis @ (rng.normal(size=len(values)) / np.sqrt(np.maximum(values, 1e-300)))
        step = step if draw % 2 else -step
        return Information.at(information.model, information.point + 0.99 * information.room(step) * step)

    def _draw(self, episodes: float, draw: int) -> Counts:
        seen = np.zeros(len(self.counts.transition), np.int64)
        rng = np.random.default_rng([_COUNTS_SEED, draw, round(episodes)])
        outcomes, where = self.outcomes, np.zeros(len(self.outcomes), np.int64)
        where[self.place[0]] = self.place[1]
        share = self._points[draw].probability[outcomes.expression] * outcomes.multiplicity
        visits: OffsetArray = np.rint(self.visits * episodes).astype(np.int64)
        for width in np.unique(outcomes.width).tolist():
            chosen = np.flatnonzero((outcomes.width == width) & (visits > 0))
            if not len(chosen):
                continue
            cells = outcomes.start[chosen][:, None] + np.arange(width)
            chance = share[cells]
            drawn = rng.multinomial(visits[chosen], chance / chance.sum(axis=1, keepdims=True))
            seen[where[cells]] += drawn
        total = self.counts.transition + seen
        design = SamplingDesign(SamplingKind.ADAPTIVE, None, int(total.sum()), self.counts.design.repeats)
        return Counts(total, self.counts.transition_start, design, self.counts.model_hash)
