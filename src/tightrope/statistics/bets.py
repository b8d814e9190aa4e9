"""Bets against a parameter, and their wealth: a bound whose price does not grow with the dimension.

A bet is a number a(o) for every outcome of a signature, known before the visit, with Σ m_o·a(o) ≤ 0. The
wealth of bets from earlier batches is a nonnegative supermartingale at the true parameters, under any
adaptive policy and stopping rule. Bets of several sizes and on several policies share the initial wealth with
weights fixed in advance; shares chosen afterwards cost KL(π‖w). `Levels` splits δ between the base likelihood
region and the bets, before the data. Proofs and rules: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Protocol

import numpy as np

from tightrope.data.counts import Counts, batch_ends
from tightrope.data.design import SamplingKind
from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import UNIT, down, up
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.search.betting import SMOOTHED, BetTable, PointsAround
from tightrope_check.search.value_slopes import MOST_CYCLIC


class Ends(Enum):
    """Which ends of the value are bet on."""

    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


class Gradient(Protocol):
    """The gradient of the value that is bet on, asked for in the order in which data come."""

    @property
    def words(self) -> str:
        """What is bet on, in one line, with what that assumes."""

    @property
    def ends(self) -> Ends:
        """Which ends of the value count."""

    @property
    def guard_share(self) -> float | None:
        """The guard's share of δ; None where it follows from the dimension."""

    def __call__(
        self, x: FloatArray, share: float | None, nearby: Callable[[], PointsAround] | None = None
    ) -> list[FloatArray] | None:
        """∂V/∂x at x of every policy that is bet on, when this share of the plan has come; None: no bets."""


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets for one side, placed at the estimate t: from `batch` on, the stake on every outcome."""

    batch: int
    t: FloatArray
    stake: FloatArray


@dataclass(frozen=True, eq=False)
class Predictions:
    """What growing data of one model have settled: closed batches by outcome, plug-ins, scores and bets."""

    seen: list[OffsetArray] = field(default_factory=list)
    plug_ins: dict[int, FloatArray] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    estimates: dict[int, FloatArray] = field(default_factory=dict)
    bets: dict[tuple[int, float, float, bytes], Bets] = field(default_factory=dict)

    def pooled_batches(self, outcomes: Outcomes, counts: Counts) -> list[OffsetArray]:
        """How often each outcome was seen in each batch; only the last one may still grow."""
        outcomes.check(counts)
        batches = counts.batches
        if batches is None:
            raise InputError(
                "likelihood regions and slabs (betting regions) need data in time-ordered batches",
                hint="keep the batch column of the data file, or use --region polytope",
            )
        last = len(batches) - 1
        for number in range(len(self.seen), last):
            self.seen.append(outcomes.pooled_part(*batches[number]))
        return [*self.seen[:last], outcomes.pooled_part(*batches[last])] if last >= 0 else []


@dataclass(frozen=True, eq=False)
class Wagers:
    """All bets of one side and one scale, with how often each outcome came while they stood."""

    bets: tuple[Bets, ...]
    seen: tuple[OffsetArray, ...]

    def log_wealth(self, outcomes: Outcomes, probability: FloatArray) -> float:
        """Λ at a point where the expressions have these probabilities, in plain float64."""
        total = 0.0
        f = probability[outcomes.expression]
        for bets, seen in zip(self.bets, self.seen, strict=True):
            stands = (bets.stake >= 0.0) | (f >= -2.0 * bets.stake)
            part = np.logical_and.reduceat(stands, outcomes.start[:-1])[outcomes.signature]
            met = np.flatnonzero((seen > 0) & part & (bets.stake != 0.0))
            with np.errstate(divide="ignore"):
                total += float(seen[met] @ np.log1p(bets.stake[met] / f[met]))
        return total


PILOT_SHARE = 0.03
LEAST_PILOT = 5
"""Batches: the first ones hold an episode each."""

OPEN_PILOT = 10
RENEWED_AFTER = 1.5


@dataclass(frozen=True, eq=False)
class Schedule:
    """Bets are placed before batches `placed`; amounts are episodes with a plan, else visits."""

    pilot: int
    batches: int
    placed: tuple[int, ...]
    so_far: tuple[float, ...]
    planned: float | None
    middle: float | None = None

    def note(self) -> str:
        """One line for reports."""
        if self.middle is not None:
            return (
                f"bets: of several sizes, the middle one for the plan of {self.middle:,.0f} episodes; "
                f"a pilot of {self.pilot} batches"
            )
        if self.planned is None:
            return f"bets: nothing was planned, so bets of several sizes; a pilot of {self.pilot} batches"
        amount = self.planned + (self.so_far[0] if self.so_far else 0.0)
        return f"bets: sized for a plan of {amount:,.0f} episodes, of which {PILOT_SHARE:.0%} are the pilot"

    def part(self, number: int) -> range:
        """The batches that the bets placed as number `number` are on."""
        end = self.placed[number + 1] if number + 1 < len(self.placed) else self.batches
        return range(self.placed[number], end)


def schedule(counts: Counts, sizes: FloatArray) -> Schedule:
    """The schedule of counts with batches of so many visits each."""
    plan, middle = count_planned_episodes(counts), _middle(counts)
    ends, planned = np.cumsum(sizes), None
    pilot = OPEN_PILOT
    if plan is not None or middle is not None:
        assert counts.design.episodes is not None
        ends = batch_ends(counts.design.episodes).astype(np.float64)
    if plan is not None:
        pilot = max(int(np.searchsorted(batch_ends(plan), PILOT_SHARE * plan, side="right")), LEAST_PILOT)
        planned = max(float(plan - batch_ends(plan)[min(pilot, len(batch_ends(plan))) - 1]), 1.0)
    placed: list[int] = []
    so_far: list[float] = []
    for batch in range(pilot, len(ends)):
        before = float(ends[batch - 1])
        if before > 0.0 and (not placed or before >= RENEWED_AFTER * so_far[-1]):
            placed.append(batch)
            so_far.append(before)
    return Schedule(pilot, len(sizes), tuple(placed), tuple(so_far), planned, middle)


def _middle(counts: Counts) -> float | None:
    """The plan of data that are looked at while they come."""
    design = counts.design
    if not design.anytime or design.planned is None or not _has_episodes(counts):
        return None
    return float(design.planned)


def _has_episodes(counts: Counts) -> bool:
    """Whether batches tell how many episodes each holds, and nothing says that the plan came late."""
    design = counts.design
    if counts.batches is None or design.episodes is None or design.late_plan:
        return False
    return design.by_episodes and len(batch_ends(design.episodes)) == len(counts.batches)


def count_planned_episodes(counts: Counts) -> int | None:
    """The number of episodes planned before the first; trajectories of fixed number are their own plan."""
    design = counts.design
    if design.anytime or not _has_episodes(counts):
        return None
    if design.planned is not None:
        return design.planned
    return design.episodes if design.kind is SamplingKind.TRAJECTORIES else None


BASE = 4096.0
"""N where nothing was planned, in visits."""

_LOW, _HIGH = -4, 7
"""Scales from 16 to 67 million visits; the weights of the others are given away."""

_BELOW, _ABOVE = -7, 2
"""Scales around a plan, from a 16,384th of it to 16 times as much."""


@dataclass(frozen=True)
class Scale:
    """Bets for this amount of data, with this weight; `amount` is that of the plan where there is one."""

    amount: float
    weight: float


def scales(planned: float | None, middle: float | None = None) -> tuple[Scale, ...]:
    """One scale where the amount was planned, else all that share the stake, around `middle` where known."""
    if planned is not None:
        return (Scale(planned, 1.0),)
    if middle is not None:
        return tuple(Scale(middle * 4.0**j, _weight(j)) for j in range(_BELOW, _ABOVE + 1))
    return tuple(Scale(BASE * 4.0**j, _weight(j)) for j in range(_LOW, _HIGH + 1))


def _weight(j: int) -> float:
    return 0.5 if j == 0 else 1.0 / (4.0 * abs(j) * (abs(j) + 1.0))


GUARD_SHARE = 0.1
"""The guard's share of δ where both ends are bet on."""

WIDER_SHARE = 0.25
"""The guard's share beside intervals of events, where another policy may be asked about."""

FEW = 120
"""Where fewer episodes per free parameter were planned, bets are on one policy, with all of the smoothing."""

LEAST_SHARE = 0.6
"""The guard's share of δ where one end is bet on is this or more."""

_LOSS = 0.025
_REGRET = 1.8
"""Nats per free parameter."""


@dataclass(frozen=True)
class Levels:
    """The levels of the base region and of the strategies for both ends of the value; at most δ together."""

    guard: float
    lower: float
    upper: float

    @staticmethod
    def of(delta: float, ends: Ends = Ends.BOTH, dimension: int = 1, guard: float | None = None) -> Levels:
        """The split for these ends, for so many free parameters; `guard` replaces the usual share."""
        if ends is Ends.BOTH:
            guard = guard or GUARD_SHARE
            side = down(0.5 * (1.0 - guard) * delta)
            return Levels(down(guard * delta), side, side)
        reach = ((1.0 + _LOSS) ** 2 - 1.0) * (_REGRET * dimension - math.log(delta))
        share = guard or max(round(math.exp(-reach), 2), LEAST_SHARE)
        one = down((1.0 - share) * delta * (1.0 - 2.0 * UNIT))
        return Levels(down(share * delta), *((one, 0.0) if ends is Ends.LOWER else (0.0, one)))

    @property
    def sides(self) -> tuple[float, float]:
        """The levels of both betting strategies."""
        return self.lower, self.upper

    def note(self) -> str:
        """One line for reports."""
        guard = f"δ is split: {self.guard:.3g} for the guard (a likelihood region)"
        if self.lower == self.upper:
            return f"{guard}, {self.lower:.3g} for each of the two betting strategies"
        return f"{guard}, {max(self.sides):.3g} for the betting strategy on the guaranteed endpoint"


@dataclass(frozen=True, eq=False)
class SlabRow:
    """A row of an enclosure: its side, where it is tight, shares of scales, multiples of the guard's
    evidence."""

    side: int
    point: FloatArray
    share: FloatArray
    guard: float = 0.0


@dataclass(frozen=True, eq=False)
class Slab:
    """The betting strategies: their schedule, wagers by side and scale, and the price log(1/α) of each side.

    The sides are the lower and the upper end of the value; a side without bets has no wagers. `rows` are
    those of an enclosure, stage by stage. `without` counts how often bets were due and the value had no
    gradient; `given`: the bets are on a given policy; `events` are (origin, index) of the rows of events of
    the base region. `every`: the scales of one strategy after the other.
    """

    plan: Schedule
    every: tuple[Scale, ...]
    wagers: tuple[tuple[Wagers, ...], tuple[Wagers, ...]]
    price: tuple[float, float]
    levels: Levels
    rows: tuple[tuple[SlabRow, ...], ...] = ()
    strategies: int = 1
    without: int = 0
    given: bool = True
    events: tuple[tuple[int, int], ...] = ()

    @property
    def sides(self) -> tuple[int, ...]:
        """The sides that are bet on: 0 for the lower end, 1 for the upper one."""
        return tuple(side for side, wagers in enumerate(self.wagers) if wagers)

    @property
    def notes(self) -> tuple[str, ...]:
        """A line where there are several betting strategies, and one where bets are missing."""
        due, several = len(self.plan.placed), tuple[str, ...]()
        if self.strategies > 1:
            several = (
                f"{self.strategies} betting strategies split the initial wealth, one per candidate policy",
            )
        if not self.without:
            return several
        return (
            *several,
            f"no bets were placed {self.without} of the {due} times they were due, and the guard stands "
            "alone: the value to bet on is infinite there, or its equations are singular or too many (cycles "
            f"among more than {MOST_CYCLIC:,} states)",
        )


def place_bets(
    outcomes: Outcomes, counts: Counts, gradient: Gradient, levels: Levels, known: Predictions | None = None
) -> Slab:
    """All bets, each from the batches before it alone; `known` are those of an earlier look."""
    maximiser, known = outcomes.maximiser, known or Predictions()
    batches = known.pooled_batches(outcomes, counts)
    plan = schedule(counts, np.array([float(seen.sum()) for seen in batches]))
    every = scales(plan.planned, plan.middle)
    price = tuple(up(-math.log(one) * (1.0 + 1e-14)) if one > 0.0 else math.inf for one in levels.sides)
    few = plan.planned is not None and plan.planned < FEW * len(maximiser.start)
    tied = outcomes.expression, outcomes.multiplicity, outcomes.start
    table = BetTable(maximiser.search, *tied, 1.0 if few else SMOOTHED)
    due, without = _estimate_directions(outcomes, batches, plan, table, gradient, known.estimates)
    strategies = max((len(slopes) for _, _, slopes in due), default=0) or 1
    every = tuple(Scale(one.amount, one.weight / strategies) for _ in range(strategies) for one in every)
    bets: list[list[list[Bets]]] = [[[] for _ in every] for _ in range(2)]
    for batch, so_far, (t, weight, slopes) in zip(plan.placed, plan.so_far, due, strict=True):
        slopes = slopes or [np.zeros(len(t))] * strategies
        for number, scale in enumerate(every):
            slope = slopes[number * strategies // len(every)]
            for side, wanted in enumerate((slope, -slope)):
                if not math.isfinite(price[side]):
                    continue
                key = batch, scale.amount, price[side], wanted.tobytes()
                if key not in known.bets:
                    information = table.information(t, weight, scale.amount / so_far)
                    known.bets[key] = Bets(batch, t, table.place(t, wanted, information, price[side]))
                bets[side][number].append(known.bets[key])
    parts = map(plan.part, range(len(plan.placed)))  # while each of the bets stood
    seen: tuple[OffsetArray, ...] = tuple(
        np.sum([batches[b] for b in part], axis=0, dtype=np.int64) for part in parts
    )
    low, high = (
        tuple(Wagers(tuple(placed), seen) for placed in side) if math.isfinite(cost) else ()
        for side, cost in zip(bets, price, strict=True)
    )
    return Slab(
        plan, every, (low, high), (price[0], price[1]), levels, strategies=strategies, without=without
    )


def _estimate_directions(
    outcomes: Outcomes,
    batches: list[OffsetArray],
    plan: Schedule,
    table: BetTable,
    gradient: Gradient,
    estimates: dict[int, FloatArray],
) -> tuple[list[tuple[FloatArray, FloatArray, list[FloatArray]]], int]:
    """(estimate, weights, directions) whenever bets are due, and how often there are no directions."""
    maximiser = outcomes.maximiser
    few = plan.planned is not None and plan.planned < FEW * len(maximiser.start)
    weight, done, without = np.zeros(len(maximiser.functions)), 0, 0
    due: list[tuple[FloatArray, FloatArray, list[FloatArray]]] = []
    t = maximiser.start
    for batch, so_far in zip(plan.placed, plan.so_far, strict=True):
        for past in batches[done:batch]:
            weight = weight + outcomes.informative * outcomes.by_expression(past)
        done = batch
        if batch not in estimates:
            estimates[batch] = table.estimate(t, weight)
        t = estimates[batch]
        share, nearby = None, None
        if plan.planned is not None:
            share = so_far / (plan.planned + plan.so_far[0])
            nearby = None if few else partial(table.around, t, weight, outcomes.model.expression)
        along = gradient(maximiser.lifted(t), share, nearby)
        without += along is None
        due.append((t, weight, [one @ maximiser.jacobian(t) for one in along or ()]))
    return due, without


PARTS = 1024
"""Shares are whole numbers of these parts, so that they are exact and sum to 1."""


def best_shares(weight: FloatArray, wealth: FloatArray) -> FloatArray:
    """π nearly in proportion to w·exp(wealth); shares that hardly count are none."""
    log = np.log(weight) + wealth
    share = np.exp(log - log.max())
    share /= share.sum()
    parts = np.floor(share * PARTS)
    parts[int(share.argmax())] += PARTS - parts.sum()
    result: FloatArray = parts / PARTS
    return result


def price_of_shares(weight: FloatArray, share: FloatArray) -> float:
    """KL(π‖w) = Σ π·log(π/w), rounded up."""
    terms = [
        part * math.log(part / one)
        for part, one in zip(share.tolist(), weight.tolist(), strict=True)
        if part > 0.0
    ]
    return math.fsum(terms) + 1e-12 * (1.0 + math.fsum(abs(term) for term in terms))
