"""Observed costs: which rewards they inform about together, time-uniform intervals, a test of statements.

Rewards that are one polynomial up to a factor and a constant pool their costs. The intervals rest on one of
two assumptions, a range or a bound on the conditional variance, and hold under any sampling. A cost outside
of a stated range refutes it at once; a stated deviation is tested on pairs of costs, at a level of its own
(0.001) that spends nothing of δ. Comparisons are made in rationals. Proofs: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.data.costs import CostSums
from tightrope.errors import InputError
from tightrope.model.expressions import Expressions
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial, PolynomialArray, monomial_order
from tightrope.model.ranges import ranges_over_box, table_of
from tightrope.model.structure import ParametricReward, Structure
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.rounding import down, up
from tightrope.numerics.text import interval_text
from tightrope.statistics.estimates import share


@dataclass(frozen=True)
class CostModel:
    """What is assumed of costs: they lie within `bounds`, or `deviation` bounds their standard deviation.

    >>> CostModel(bounds=(0.0, 5.0)).text
    'costs lie within [0, 5]'
    """

    bounds: tuple[float, float] | None = None
    deviation: float | None = None

    @property
    def spread(self) -> Spread:
        if self.bounds is not None:
            return Spread(reach=Fraction(self.bounds[1]) - Fraction(self.bounds[0]))
        assert self.deviation is not None
        return Spread(deviation=Fraction(self.deviation))

    @property
    def text(self) -> str:
        if self.bounds is not None:
            return f"costs lie within [{self.bounds[0]:g}, {self.bounds[1]:g}]"
        return f"the standard deviation of a cost given the past is at most {self.deviation:g}"

    def outlier(self, costs: CostSums) -> str | None:
        """Words about a cost outside of the range that is stated, else None."""
        if self.bounds is None or costs.number == 0:
            return None
        low, high = self.bounds
        wrong = costs.least if costs.least < low else costs.most
        if low <= wrong <= high:
            return None
        return f"a cost in the data is {wrong:g}, outside of the range [{low:g}, {high:g}] that is stated"

    def check(self, costs: CostSums) -> None:
        """Refuse data that contradict the range."""
        if (words := self.outlier(costs)) is not None:
            raise InputError(
                words,
                hint="state a range that all costs keep to, whatever is seen (`cost_range`), or a bound on "
                "their standard deviation (`cost_sd`)",
            )

    def contradiction(self, costs: CostSums, rows: IndexArray) -> str | None:
        """Words about costs that refute what is stated; `rows` are polynomials by transition."""
        if self.deviation is None:
            return self.outlier(costs)
        log_e, pairs = spread_evidence(costs, rows, self.deviation)
        if log_e < math.log(1.0 / ALPHA):
            return None
        return (
            f"the costs contradict that {self.text}: e-value 10^{log_e / math.log(10.0):.1f} from {pairs:,} "
            f"pairs of costs (a true bound reaches {1.0 / ALPHA:,.0f} with probability at most {ALPHA:g})"
        )


ALPHA = 0.001
"""The probability that costs which keep to the stated spread are said to contradict it."""

SHARES = tuple(0.5**k for k in range(1, 7))
"""λ·s² of the bets on a spread that is too large, with equal weights."""


def spread_evidence(costs: CostSums, rows: IndexArray, deviation: float) -> tuple[float, int]:
    """(log e-value against a standard deviation of at most `deviation`, pairs of costs used)."""
    waiting: dict[int, float] = {}
    apart: list[float] = []
    for transition, cost in costs.first:
        row = int(rows[transition])
        if row in waiting:
            apart.append((cost - waiting.pop(row)) / deviation)
        else:
            waiting[row] = cost
    with np.errstate(over="ignore"):
        excess = 0.5 * np.square(np.array(apart)) - 1.0
        logs = [
            float(np.log1p(share * excess).sum()) + len(waiting) * math.log1p(-0.5 * share)
            for share in SHARES
        ]
    return float(np.logaddexp.reduce(logs)) - math.log(len(SHARES)), len(apart)


def mean_evidence(
    cost: FloatArray, expected: FloatArray, unit: IndexArray, bounds: tuple[float, float]
) -> dict[int, float]:
    """By unit, log of an e-value against costs within `bounds` with the mean `expected`: Π (1 + λ·(X − r)),
    mixed."""
    low, high = bounds
    result = {}
    for one in np.unique(unit).tolist():
        here = unit == one
        mean, seen = float(expected[here][0]), cost[here]
        if not low <= mean <= high or (seen < low).any() or (seen > high).any():
            result[one] = math.inf
            continue
        ends = [1.0 / end for end in (mean - low, mean - high) if end != 0.0]
        with np.errstate(divide="ignore"):
            logs = [float(np.log1p(share * end * (seen - mean)).sum()) for end in ends for share in SHARES]
        result[one] = float(np.logaddexp.reduce(logs)) - math.log(2 * len(SHARES))
    return result


def checked_range(value: Iterable[float] | None, name: str = "cost_range") -> tuple[float, float] | None:
    """A range of costs as two numbers; `name` is the option."""
    if value is None:
        return None
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low = high = 0.0
    if not float("-inf") < low < high < float("inf"):
        raise InputError(
            f"`{name}` is {value!r}, not two numbers, the smaller one first", hint=f"e.g. `{name}=(0, 5)`"
        )
    return low, high


@dataclass(frozen=True, eq=False)
class CostEvents:
    """The events g of a reward structure, and for every one of its polynomials (event, α, β); |α| ≤ 1."""

    polynomials: tuple[Polynomial, ...]
    parts: Mapping[int, tuple[int, Fraction, Fraction]]
    rows: IndexArray

    @staticmethod
    def of(reward: ParametricReward, structure: Structure) -> CostEvents:
        rows = reward.of_transitions(structure)
        directions: dict[Polynomial, int] = {}
        member: dict[int, tuple[int, Fraction, Fraction]] = {}
        for row in np.unique(rows).tolist():
            polynomial = reward.expressions.polynomial(row)
            shift = polynomial.constant_term
            rest = polynomial - Polynomial.constant(shift)
            if rest.is_constant:
                continue
            factor = rest.terms[min(rest.terms, key=monomial_order)]
            event = directions.setdefault(rest * Polynomial.constant(1 / factor), len(directions))
            member[row] = (event, factor, shift)
        largest = [Fraction(0)] * len(directions)
        for event, factor, _ in member.values():
            largest[event] = max(largest[event], abs(factor))
        scaled = tuple(g * Polynomial.constant(largest[event]) for g, event in directions.items())
        parts = {row: (e, factor / largest[e], shift) for row, (e, factor, shift) in member.items()}
        return CostEvents(scaled, parts, rows)

    def __len__(self) -> int:
        return len(self.polynomials)

    def expressions(self, names: tuple[str, ...]) -> Expressions:
        """The events as a table."""
        return table_of(names, PolynomialArray.from_polynomials(self.polynomials))

    def groups(self, costs: CostSums, apart: Sequence[int] | None = None) -> list[list[Group]]:
        """For every event the costs that speak of it, by polynomial, and where given by what is `apart`."""
        total: dict[tuple[int, int], tuple[int, Fraction, Fraction]] = {}
        for transition, (count, sum_, square) in costs.of.items():
            kind = int(self.rows[transition]), 0 if apart is None else apart[transition]
            if kind[0] in self.parts:
                before = total.get(kind, (0, Fraction(0), Fraction(0)))
                total[kind] = (before[0] + count, before[1] + sum_, before[2] + square)
        result: list[list[Group]] = [[] for _ in self.polynomials]
        for (row, _), sums in sorted(total.items()):
            event, slope, shift = self.parts[row]
            result[event].append(Group(slope, shift, *sums))
        return result


@dataclass(frozen=True, eq=False)
class CostIntervals:
    """lower ≤ g(θ) ≤ upper for every event g of `table`, all at once with probability at least 1 − delta."""

    events: CostEvents
    table: Expressions
    observed: tuple[int, ...]
    lower: FloatArray
    upper: FloatArray
    delta: float
    gamma: float
    model: CostModel
    contradiction: str | None = None
    """Words about costs that refute what is stated of them, else None."""

    @property
    def lines(self) -> tuple[str, ...]:
        """For the ledger."""
        number = len(self.events)
        shared = "one event" if number == 1 else f"{number} events: γ = {self.gamma:.3g} each"
        head = (
            f"costs: δ = {self.delta:g} for {shared}, {sum(self.observed):,} observed; holds for any policy "
            f"and at all times, assuming that {self.model.text}"
        )
        shown = [self.describe(event) for event in range(min(number, 4))]
        more = [f"and {number - 4} more events of costs"] if number > 4 else []
        return (head, *shown, *more)

    def describe(self, event: int) -> str:
        return (
            f"cost {self.table.text(event)}: {self.observed[event]:,} observed, "
            f"so in {interval_text(self.lower[event], self.upper[event], 6)}"
        )


def cost_intervals(
    reward: ParametricReward,
    structure: Structure,
    parameters: Parameters,
    costs: CostSums,
    delta: float,
    model: CostModel,
) -> CostIntervals:
    """The intervals of all events of a reward structure at level 1 − delta together."""
    events = CostEvents.of(reward, structure)
    table = events.expressions(parameters.names)
    gamma = share(delta, len(events))
    least, most = ranges_over_box(table, parameters.lower, parameters.upper)
    lower, upper = np.empty(len(events)), np.empty(len(events))
    observed: list[int] = []
    by_choice = events.groups(costs, structure.transition_choice.tolist())
    level = Fraction(ALPHA) / max(sum(map(len, by_choice)), 1)
    refuted = model.contradiction(costs, events.rows)
    for event, groups in enumerate(events.groups(costs)):
        known = Fraction(float(least[event])), Fraction(float(most[event]))
        within = _possible(known, groups, model)
        if within[0] > within[1]:
            raise InputError(
                f"{model.text}, but no parameters of the domain give {table.text(event)} such a mean",
                hint="widen the range of costs, or the domain of the parameters",
            )
        low, high = interval(groups, model.spread, Fraction(gamma), within)
        lower[event], upper[event] = down(float(low)), up(float(high))
        if groups and _disagree(by_choice[event], model.spread, level, within, (low + high) / 2):
            refuted = f"the costs of two choices contradict each other: both depend on {table.text(event)}"
        observed.append(sum(group.count for group in groups))
    return CostIntervals(events, table, tuple(observed), lower, upper, delta, gamma, model, refuted)


def _disagree(
    groups: list[Group], spread: Spread, level: Fraction, within: tuple[Fraction, Fraction], middle: Fraction
) -> bool:
    """Whether costs refute that they share an event: the intervals of two choices alone are disjoint.

    If the rewards are right, all intervals at level ALPHA/m, m the number of choices with costs, contain the
    value of the event with probability at least 1 − ALPHA. The two that are farthest apart are compared.
    """

    def lead(one: Group) -> float:
        mean = (one.total / one.count - one.shift) / one.slope
        return float((mean - middle) * abs(one.slope)) * math.sqrt(one.count)

    last, first = (interval([end(groups, key=lead)], spread, level, within) for end in (max, min))
    return last[0] > first[1]


def _possible(
    known: tuple[Fraction, Fraction], groups: list[Group], model: CostModel
) -> tuple[Fraction, Fraction]:
    """Values of g in the domain for which the means of costs that were seen keep to the stated range."""
    low, high = known
    if model.bounds is not None:
        ends = [Fraction(end) for end in model.bounds]
        for group in groups:
            first, last = sorted((end - group.shift) / group.slope for end in ends)
            low, high = max(low, first), min(high, last)
    return low, high


SCALES = 26
"""λ_k = λ_0 / 2^k: fine enough for 10¹⁵ costs."""

_PASSES = 8
_UNIT = 2.0**-40


@dataclass(frozen=True)
class Group:
    """Costs of one kind of step, whose mean is slope·q + shift: their number, sum and sum of squares."""

    slope: Fraction
    shift: Fraction
    count: int
    total: Fraction
    square: Fraction

    @property
    def mirrored(self) -> Group:
        """The same costs with the opposite sign, about −q."""
        return Group(self.slope, -self.shift, self.count, -self.total, self.square)


@dataclass(frozen=True)
class Spread:
    """Costs stay within `reach` of their mean, or `deviation` bounds their standard deviation."""

    reach: Fraction | None = None
    deviation: Fraction | None = None

    def terms(self, slope: Fraction, scale: int) -> tuple[Fraction, Fraction, Fraction]:
        """(λ·α, c, d) for λ number `scale`; λ·α·reach ≤ 1/2 for the largest slope, which is 1."""
        if self.reach is not None:
            u = abs(slope) / 2 ** (scale + 1)
            excess = u * u / 2 + u**3 / 3 + u**4 / (4 * (1 - u))  # at least −log(1 − u) − u
            return slope / (2 ** (scale + 1) * self.reach), excess / self.reach**2, Fraction(0)
        assert self.deviation is not None
        step = 4 * slope / (2**scale * self.deviation)
        return step, step * step / 6, (step * self.deviation) ** 2 / 3


def interval(
    groups: Sequence[Group], spread: Spread, gamma: Fraction, within: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """(lower, upper) for q, known to lie `within`; slopes are at most 1. Crossed where nothing is left."""
    low, high = within
    lower = lower_end(groups, spread, gamma, low, high)
    upper = -lower_end([group.mirrored for group in groups], spread, gamma, -high, -low)
    return (lower, upper) if low < upper and lower < high else (high, low)


def lower_end(
    groups: Sequence[Group], spread: Spread, gamma: Fraction, low: Fraction, high: Fraction
) -> Fraction:
    """A bound L ≥ low: every q in [low, L) is excluded at level γ/2, and `high` itself where L is that."""
    seen = [group for group in groups if group.count and group.slope]
    if not seen or low >= high:
        return low
    curves = [_curve(seen, spread, scale) for scale in range(SCALES)]
    limits = [log_above(2 * (k + 1) * (k + 2) / gamma) for k in range(SCALES)]
    for _ in range(_PASSES):
        before = low
        for curve, limit in zip(curves, limits, strict=True):
            low = max(low, _exclude(curve, limit, low, high))
        if (low - before) * 1000 <= high - low:
            break
    return low


def log_above(value: Fraction) -> Fraction:
    """A number not below log(value), for value ≥ 1: two logarithms of doubles, with more than their error."""
    nearest = math.log(value.numerator) - math.log(value.denominator)
    return Fraction(nearest + (abs(nearest) + math.log(value.denominator) + 2.0) * _UNIT)


Curve = tuple[Fraction, Fraction, Fraction]


def _curve(groups: Sequence[Group], spread: Spread, scale: int) -> Curve:
    """The exponent a + b·q + c·q² of λ number `scale`."""
    constant = linear = bend = Fraction(0)
    for group in groups:
        step, squared, fixed = spread.terms(group.slope, scale)
        n, alpha, beta = group.count, group.slope, group.shift
        centred = group.total - n * beta
        constant += step * centred - squared * (group.square - 2 * beta * group.total + n * beta * beta)
        constant -= n * fixed
        linear += 2 * squared * alpha * centred - step * n * alpha
        bend -= squared * n * alpha * alpha
    return constant, linear, bend


def _exclude(curve: Curve, limit: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Up to where values from `low` on are excluded by this exponent; `low` where it does not say."""
    constant, linear, bend = curve
    if linear + 2 * bend * low > 0 or constant + (linear + bend * low) * low < limit:
        return low  # it still rises at `low`, or does not exclude it
    if constant + (linear + bend * high) * high >= limit:
        return high
    inside, outside = high, low
    # The root of a concave quadratic by doubles, then a point proved to be excluded close to it.
    middle = (low + high) / 2
    level = constant + (linear + bend * middle) * middle - limit
    slope, half = float(linear + 2 * bend * middle), float(bend)
    root = math.sqrt(max(slope * slope - 4.0 * half * float(level), 0.0))
    guess = middle + Fraction(2.0 * float(level) / (root - slope)) if root > slope else middle
    for step in range(1, 60):
        width = (high - low) / 2 ** (60 - step)
        tried = Fraction(float(guess - width))
        if low < tried < inside and constant + (linear + bend * tried) * tried >= limit:
            outside = tried
            break
    return outside
