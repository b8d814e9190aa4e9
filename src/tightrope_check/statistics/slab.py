"""A slab: bets against parameters, and rows that enclose what they leave of a base likelihood region.

*Bets.* The theorem of bets, its proof and mixtures are in `proofs/statistics.md`. A bet must be known before
its batch and no better than fair. No bet is in a file. When bets are placed follows from the plan and from
how much came before. `search.betting` computes them from the model, the question, a given policy and the
counts before the batch, so they are predictable; whether they are fair is checked in integers.

The README of this package has the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, prod

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import FloatArray, Number, OffsetArray
from tightrope_check.budget import spend
from tightrope_check.coordinates import Row
from tightrope_check.evidence import Data, RegionHints
from tightrope_check.learned import Learned, RowOrigin, Statements
from tightrope_check.logarithms import log_below, log_up
from tightrope_check.numbers import RATIONAL, Numbers, as_fraction
from tightrope_check.problem import CertifiedProblem
from tightrope_check.search import betting
from tightrope_check.search.betting import GRID, MOST_TARGETS
from tightrope_check.search.value_slopes import GraphQuestion, value_slopes
from tightrope_check.statistics.likelihood import (
    Forms,
    Likelihood,
    Predictor,
    log_units,
    planned_ends,
    sizes_of,
)
from tightrope_check.statistics.outcomes import SeenOutcomes
from tightrope_check.verdict import Check

MOST_WORK = 3 * 10**7
PILOT_SHARE, LEAST_PILOT, OPEN_PILOT, RENEWED_AFTER, FEW = 0.03, 5, 10, 1.5, 120
"""FEW is of episodes that were planned for every free parameter."""

MOST_ROWS, MOST_TIMES = 64, 2.0**20
"""Of a stage, and of the guard's evidence."""


@dataclass(frozen=True, eq=False)
class SlabHints:
    """A stage of a slab's rows: `region` proves bounds of expressions, with rows of earlier stages. Each row
    has a point near which it shall be tight, a share for every scale of its bets, the place of its side among
    those that are bet on, and the multiple of the base region's evidence; without the last two there is one
    row for every side, of the log-wealth alone."""

    region: RegionHints = fields.part(RegionHints)
    point: FloatArray = fields.reals("rows", "SIZE")
    share: OffsetArray = fields.integers("rows", "scales", most=2**20)
    side: OffsetArray | None = fields.integers("rows", most=1, optional=True)
    guard: FloatArray | None = fields.reals("rows", least=0.0, most=MOST_TIMES, optional=True)


def weight_of(j: int) -> Fraction:
    """Of bets for 4^j times a base amount; over all j they sum to 1."""
    return Fraction(1, 4 * abs(j) * (abs(j) + 1)) if j else Fraction(1, 2)


@dataclass(frozen=True)
class BetSchedule:
    """Bets are placed before batches `placed`, after so much data. `planned` is what a plan leaves after the
    pilot: None where there is none, or where data are looked at while they come; then `middle` is the plan.
    """

    placed: tuple[int, ...]
    so_far: tuple[float, ...]
    planned: float | None
    middle: float | None

    @staticmethod
    def of(data: Data, sizes: list[int]) -> BetSchedule:
        """Amounts are episodes by a plan, and visits without one; each decision looks at earlier batches."""
        plan, ends, pilot, planned, middle = None, np.cumsum(sizes).tolist(), OPEN_PILOT, None, None
        if data.episodes is not None and len(own := planned_ends(data.episodes)) == len(sizes):
            plan = data.episodes if data.planned is None and data.design == "trajectories" else data.planned
            ends = ends if plan is None else own
        if plan is not None and data.anytime:
            middle = float(plan)
        elif plan is not None:
            stated = planned_ends(plan)
            pilot = max(sum(end <= PILOT_SHARE * plan for end in stated), LEAST_PILOT)
            planned = max(float(plan - stated[min(pilot, len(stated)) - 1]), 1.0) if stated else 1.0
        placed: list[int] = []
        for batch in range(pilot, len(sizes)):
            before = ends[batch - 1]
            if before > 0 and (not placed or before >= RENEWED_AFTER * ends[placed[-1] - 1]):
                placed.append(batch)
        return BetSchedule(tuple(placed), tuple(float(ends[batch - 1]) for batch in placed), planned, middle)

    @property
    def scales(self) -> list[tuple[float, Fraction]]:
        """(amount of data, weight) of bets that share a stake."""
        if self.planned is not None:
            return [(self.planned, Fraction(1))]
        if self.middle is not None:
            return [(self.middle * 4.0**j, weight_of(j)) for j in range(-7, 3)]
        return [(4096.0 * 4.0**j, weight_of(j)) for j in range(-4, 8)]

    def share(self, number: int) -> float | None:
        """The share of the plan that has come when bets are placed."""
        return None if self.planned is None else self.so_far[number] / (self.planned + self.so_far[0])


def levels(
    delta: Fraction, both: bool, free: int, best: bool = False, gains: bool = False, few: bool = False
) -> tuple[Fraction, Fraction]:
    """(level of the base region, of each strategy): beside intervals a quarter with bets on the best policy;
    else a tenth for both ends of a value, three with few data, a tenth for a difference, and by dimension
    for one end of a value."""
    if best or both or gains:
        guard = delta / 4 if best else delta * 3 / 10 if few else delta / 10
        return guard, (delta - guard) / (2 if both else 1)
    percent = max(round(100 * exp((1 - 1.025**2) * (1.8 * free - log(delta)))), 60)
    return delta * percent / 100, delta * (100 - percent) / 100


class PlacedBets:
    """stake[side, scale, number, outcome] stood while outcomes were seen[number, outcome] times.

    Scales are those of one strategy after the other. Side 0 looks for the lower end of the reported value,
    side 1 for the upper one; `sides` are bet on: both ends of a given policy's value, else the one that the
    agent wants to move, of the best policy's value or of what that gains over the given one.
    """

    def __init__(self, forms: Forms, data: Data, given: FloatArray | None, delta: Fraction):
        """`given`: the weights of the choices of a policy that is given; `delta`: of base region and bets."""
        about, (linear, constant) = forms.about, forms.doubles
        problem, space, outcomes, expression = about.problem, about.space, about.outcomes, about.expression
        question = _question(problem)
        best = (given is None and data.has_intervals) or data.method.endswith("best")
        gains, few = data.method.endswith("difference"), data.method.endswith("few data")
        if gains and given is None:
            raise ValueError("bets on a difference to no policy")
        one = given is None or gains
        self.sides = (int(question.maximises == question.complement),) if one else (0, 1)
        usual, given = (given, None) if gains else (None, None if best else given)
        former = "value slab" not in data.method  # by the rule of files from before
        self.whose = "best" if given is None else "given"
        self.whose = f"the {self.whose} policy" + (", less the given one" if gains else "")
        self.schedule = BetSchedule.of(data, sizes_of(data))
        placed, scales, free = self.schedule.placed, self.schedule.scales, len(space.free)
        planned_few = self.schedule.planned is not None and self.schedule.planned < FEW * free
        alone = given is not None or gains or former or planned_few or self.schedule.planned is None
        if few and (one or not planned_few):
            raise ValueError("bets of few data on one end, or on data that were not planned to be few")
        self.guard, self.side = levels(delta, len(self.sides) == 2, free, best, gains, few)
        strategies = 1 if alone else MOST_TARGETS
        shape = len(self.sides), strategies * len(scales), len(placed), len(outcomes.expression)
        if max(prod(shape), len(placed) * problem.graph.transitions // 30) > MOST_WORK:
            raise ValueError("there are more bets than this program checks")
        self.stake, self.seen = np.zeros(shape), np.zeros(shape[2:], dtype=np.int64)
        predictor = Predictor(space, linear, constant)
        tied = outcomes.expression, outcomes.multiplicity, outcomes.start
        table = betting.BetTable(predictor.search, *tied, 1.0 if former or planned_few else betting.SMOOTHED)
        targets, t = betting.TargetPolicies(question, given), predictor.centre
        radix, group = len(linear), np.repeat(outcomes.of_choice, np.diff(problem.graph.transition_start))
        known = outcomes.owner * radix + outcomes.expression  # rises
        of_transition = np.searchsorted(known, group * radix + expression)
        unknown, level = linear.any(axis=1), -log(self.side)
        for number, batch in enumerate(placed):
            looks = not (alone or targets.frozen)
            work = (1 + targets.points * looks) * _work(question) + 4 * shape[1] * linear.size * free
            spend("bets", work + 20 * len(data.batch_count))
            weight = data.totals(expression, len(linear), 0, batch) * unknown.astype(np.float64)
            t = table.estimate(t, weight)
            x, jacobian = predictor.search.lifted(t)
            probability = np.clip(linear @ x + constant, 0.0, 1.0)[expression]
            nearby = table.around(t, weight, expression) if looks else None
            every = targets.slopes(probability, self.schedule.share(number), nearby) or []
            less = None if usual is None else value_slopes(question, usual, probability)
            off = np.zeros(linear.shape[1])
            if less is not None:
                off = np.bincount(expression[less[0]], less[1], len(linear)) @ linear
            seen = [table.information(t, weight, a / self.schedule.so_far[number]) for a, _ in scales]
            for strategy, (moves, slope) in enumerate(every):
                along = (np.bincount(expression[moves], slope, len(linear)) @ linear - off) @ jacobian
                for scale, information in enumerate(seen, strategy * len(scales)):
                    for place, side in enumerate(self.sides):
                        wanted = -along if side else along
                        self.stake[place, scale, number] = table.place(t, wanted, information, level)
            end = placed[number + 1] if number + 1 < len(placed) else data.batches
            self.seen[number] = data.totals(of_transition, len(outcomes.expression), batch, end)
        strategies = len(targets.held) or 1
        self.stake = self.stake[:, : strategies * len(scales)]
        self.weight = [weight / strategies for _ in range(strategies) for _, weight in scales]

    def unfair(self, outcomes: SeenOutcomes) -> bool:
        """Whether some group's stakes are better than fair, or are no whole multiples: asked in integers."""
        units = np.clip(self.stake / GRID, -(2.0**50), 2.0**50)
        if np.any(units * GRID != self.stake) or np.any(units != np.floor(units)):
            return True
        total = np.add.reduceat(outcomes.multiplicity * units.astype(np.int64), outcomes.start[:-1], axis=-1)
        many = np.add.reduceat(outcomes.multiplicity, outcomes.start[:-1]) > betting.MOST_SUCCESSORS
        wins = np.logical_or.reduceat(self.stake != 0, outcomes.start[:-1], axis=-1)
        return bool(np.any(total > 0) or np.any(wins[..., many]))


def _work(question: GraphQuestion) -> int:
    """Steps of the budget for a policy and its slopes: 290 ns a transition were measured in one pass, twice
    that is counted; 8 steps are taken to cost as much (estimated), and equations with cycles are solved,
    several times."""
    each = 12 if question.is_bounded or question.layers is not None else 40
    return each * len(question.successor) * (1 + (question.upper_steps or 0) // 8)


def _question(problem: CertifiedProblem) -> GraphQuestion:
    objective = dict(vars(problem.objective))
    del objective["nature"], objective["earned"]  # bets are not placed on rewards with parameters
    return GraphQuestion(**vars(problem.graph), maximises=objective.pop("agent") == "MAX", **objective)


def prove(about: Learned, delta: Fraction) -> Statements:
    """A guard and bets beside it, each at its share of δ; on the policy of the claims that is given."""
    data, choices, forms = about.data, about.problem.graph.choices, Forms(about)
    assert data is not None
    given = [claim.weights(choices) for claim in about.certificate.claims if claim.name == "given policy"]
    bets = PlacedBets(forms, data, given[0] if given else None, delta)
    guard = Likelihood(forms, data, bets.guard)
    slab = SlabRows(forms, bets, guard)
    fair = not bets.unfair(about.outcomes)
    words = f"placed {len(bets.schedule.placed)} times on {bets.whose}, δ = {float(delta):g}"
    name = "every bet follows from the batches before it, and is no better than fair"
    check = Check(name, fair, words if fair else "stakes of a group of outcomes win on average")
    return Statements(check, {RowOrigin.CUT: guard, RowOrigin.SLAB: slab}, slab=slab, planned=guard.planned)


class SlabRows:
    """Rows by (stage, number), as far as bounds were proved."""

    def __init__(self, forms: Forms, bets: PlacedBets, guard: Likelihood, rows: Sequence[Sequence[Row]] = ()):
        self.forms, self.bets, self.guard, self.rows = forms, bets, guard, rows

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        if not (0 <= index < len(self.rows) and 0 <= part < len(self.rows[index])):
            raise ValueError("no such row of a slab")
        return self.rows[index][part]

    def narrowed(self, lower: FloatArray, upper: FloatArray, hints: SlabHints) -> SlabRows:
        """With the rows of one more stage, at which the expressions are within these bounds."""
        sides, count = len(self.bets.sides), len(hints.point)
        place = np.arange(sides) if hints.side is None else hints.side
        times = np.zeros(count) if hints.guard is None else hints.guard
        shape = (count, self.forms.space.size), (count, len(self.bets.weight)), (count,)
        fits = (hints.point.shape, hints.share.shape, place.shape) == shape and times.shape == shape[2]
        if not fits or place.max(initial=0) >= sides or count > MOST_ROWS:
            raise ValueError("the points or shares of a slab do not fit its bets")
        ends, hinted = (lower, np.maximum(upper, lower)), zip(hints.point, hints.share.tolist(), strict=True)
        rows = [
            self._row(int(side), ends, point, share, Fraction(mu))
            for side, mu, (point, share) in zip(place, times.tolist(), hinted, strict=True)
        ]
        return SlabRows(self.forms, self.bets, self.guard, [*self.rows, rows])

    def _row(self, place: int, ends: _Ends, point: FloatArray, share: list[int], mu: Fraction) -> Row:
        forms, guard, total = self.forms, self.guard, sum(share)
        if total == 0 or (mu and guard.threshold is None):
            raise ValueError("a row of a slab without shares, or nothing to take off")
        near = forms.doubles[0] @ point + forms.doubles[1]
        near = np.clip(near, np.maximum(ends[0], 1e-9 * ends[1]), ends[1])
        bound, line = -log_below(self.bets.side), LineBelow(ends, near)
        if mu:
            times = RATIONAL.array([mu])
            bound = bound - times[0] * guard.threshold
            line.off[guard.used] = times * guard.weight.astype(object)
        for scale, weight in enumerate(self.bets.weight):
            if share[scale]:
                part = RATIONAL.array([Fraction(share[scale], total)])
                bound = bound + (part * log_up(part / RATIONAL.array([weight])))[0]
                line.add(self.forms.about.outcomes, self.bets.stake[place, scale], self.bets.seen, part[0])
        slope, height = line.total()
        *linear, constant = forms.combine(slope, np.arange(len(slope)))
        return [as_fraction(a) for a in linear], as_fraction(bound - height - constant)


_Ends = tuple[FloatArray, FloatArray]
"""(lower, upper) of the expressions, the upper ones not below the lower."""


class LineBelow:
    """A line in the expressions below Λ − μ·ℓ, between their bounds: see above. `near` lies between them;
    `off` are μ·K by expression."""

    def __init__(self, ends: _Ends, near: FloatArray):
        self.ends, self.near, size = ends, near, len(near)
        self.slope, self.height, self.off = RATIONAL.zeros(size), RATIONAL.zeros(1)[0], RATIONAL.zeros(size)
        none = np.zeros(0, dtype=np.int64), np.zeros(0), RATIONAL.zeros(0)
        self.losing: list[tuple[OffsetArray, FloatArray, Numbers]] = [none]

    def add(self, outcomes: SeenOutcomes, stake: FloatArray, seen: OffsetArray, part: Number) -> None:
        """The terms of a scale, by bet and outcome, times how often each was seen, times its share."""
        spend("rows of a slab", 20 * stake.size)
        spend("rows of a slab", 80 * int(np.count_nonzero((stake != 0) & (seen > 0))), 300)
        e = np.broadcast_to(outcomes.expression, stake.shape)
        low, high = (end[e] for end in self.ends)
        fails = np.logical_or.reduceat((stake < 0) & (low < -2 * stake), outcomes.start[:-1], axis=1)
        apart, met = np.repeat(fails, np.diff(outcomes.start), axis=1), seen > 0
        which = met & apart & (stake < 0)
        worst = _log_of(stake[which], np.maximum(low, -2 * stake)[which])
        self.height = self.height + part * (seen[which] * worst).sum()
        which = met & ~apart & (stake > 0) & (high > 0)
        a, at, often = stake[which], self.near[e[which]], part * seen[which].astype(object)
        with np.errstate(all="ignore"):
            slope = _finite(a / (at * (at + a)))
        stakes, touched, slopes = (RATIONAL.array(of) for of in (a, at, slope))
        missed = np.abs(slopes - stakes / (touched * (touched + stakes))) * RATIONAL.array(high[which])
        np.add.at(self.slope, e[which], -often * slopes)
        heights = RATIONAL.trim(_log_of(a, at) + slopes * touched - missed, False)
        self.height = self.height + (often * heights).sum()
        which = met & ~apart & (stake < 0)
        self.losing.append((e[which], stake[which], part * seen[which].astype(object)))

    def total(self) -> tuple[Numbers, Number]:
        """(slopes by expression, constant) of all of it."""
        e, stake, often = (np.concatenate(of) for of in zip(*self.losing, strict=True))
        own, of = np.unique(e, return_inverse=True)
        if len(own):
            pooled = _Pooled(of, stake, often, self.off[own], self.ends[0][own], self.ends[1][own])
            slopes, heights = pooled.lines(self.near[own])
            self.slope[own] = self.slope[own] + slopes
            self.height = self.height + heights.sum()
            self.off[own] = RATIONAL.zeros(len(own))
        left = np.flatnonzero(self.off != 0)
        with np.errstate(all="ignore"):
            tilt = _finite(RATIONAL.floats(self.off[left]) / self.near[left])
        left, tilt = left[tilt > 0], RATIONAL.array(tilt[tilt > 0])  # of the rest −log f ≥ 0 will do
        logs = log_up(self.off[left] / tilt)
        self.slope[left] = self.slope[left] - tilt
        self.height = self.height + (self.off[left] * (1 - logs)).sum()
        return self.slope, self.height


@dataclass(frozen=True, eq=False)
class _Pooled:
    """g = Σ often·log(1 + stake/f) − off·log f by expression, `of` the terms', stake < 0; 2·|stake| ≤ low."""

    of: OffsetArray
    stake: FloatArray
    often: Numbers
    off: Numbers
    low: FloatArray
    high: FloatArray

    def lines(self, near: FloatArray) -> tuple[Numbers, Numbers]:
        """(slopes, constants) of lines below g from `low` to `high`, tight near these points if possible."""
        low, high = RATIONAL.array(self.low), RATIONAL.array(self.high)
        at = np.maximum(near, self._touched())
        tangent = (at < self.high) & (self._bend(at) >= 0)
        at = np.where(tangent, at, self.high)
        touched, from_low, there = RATIONAL.array(at), self._value(self.low), self._value(at)
        with np.errstate(all="ignore"):
            width = np.where(self.high > self.low, self.high - self.low, np.inf)
            chord = _finite((RATIONAL.floats(there) - RATIONAL.floats(from_low)) / width)
        least, most = self._slope(at, False), self._slope(at, True)
        steepest = RATIONAL.up(most)
        slope = RATIONAL.array(np.where(tangent, steepest, np.maximum(chord, steepest)))
        missed = np.where(tangent, np.maximum(abs(slope - least), abs(slope - most)) * high, 0)
        constant = np.minimum(from_low - slope * low, there - slope * touched - missed)
        return slope, RATIONAL.trim(constant, False)

    def _sum(self, terms: Numbers) -> Numbers:
        result = RATIONAL.zeros(len(self.low))
        np.add.at(result, self.of, self.often * terms)
        return result

    def _value(self, f: FloatArray) -> Numbers:
        """Not above g."""
        logs = np.where(self.off != 0, log_units(f, True), 0) * RATIONAL.array([_UNIT])
        total: Numbers = self._sum(_log_of(self.stake, f[self.of])) - self.off * logs
        return total

    def _slope(self, f: FloatArray, upward: bool) -> Numbers:
        """A bound of g' on a side."""
        at, a = RATIONAL.array(f)[self.of], RATIONAL.array(self.stake)
        return self._sum(RATIONAL.trim(-a / (at * (at + a)), upward)) - RATIONAL.trim(
            self.off / RATIONAL.array(f), not upward
        )

    def _bend(self, f: FloatArray) -> Numbers:
        """Not above f²·g''."""
        at, a = RATIONAL.array(f)[self.of], RATIONAL.array(self.stake)
        return self.off + self._sum(RATIONAL.trim(a * (2 * at + a) / (at + a) ** 2, False))

    def _touched(self) -> FloatArray:
        """From where on tangents lie below g at `low`, in float64: `high` where there is no such point."""
        often, off = RATIONAL.floats(self.often), RATIONAL.floats(self.off)
        of, a, size, least, most = self.of, self.stake, len(self.low), self.low, self.high

        def value(f: FloatArray) -> Number:
            return np.bincount(of, often * np.log1p(a / f[of]), size) - off * np.log(f)

        first = value(self.low)
        for _ in range(40):
            middle = 0.5 * (least + most)
            rise = np.bincount(of, -often * a / (middle[of] * (middle[of] + a)), size) - off / middle
            fits = value(middle) + rise * (self.low - middle) <= first
            least, most = np.where(fits, least, middle), np.where(fits, middle, most)
        return most


_UNIT = Fraction(1, 1 << 128)


def _log_of(a: FloatArray, f: FloatArray) -> Numbers:
    """Not above log(1 + a/f)."""
    return log_units(1 + RATIONAL.array(a) / RATIONAL.array(f), False) * RATIONAL.array([_UNIT])


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, 0.0)
