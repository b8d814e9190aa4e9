"""Link 1 for observed costs: are these intervals of rewards, at their part of δ?

The README of this package has events, the supermartingale and its exponent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import longest, spend, spend_terms
from tightrope_check.coordinates import ONE, ZERO, Key, polynomial_range
from tightrope_check.evidence import MOST_COUNTS
from tightrope_check.fields import Polynomial
from tightrope_check.learned import IntervalRows, Learned, RowOrigin, Statements
from tightrope_check.logarithms import log_below
from tightrope_check.numbers import as_fraction, bits_of
from tightrope_check.problem import CertifiedProblem
from tightrope_check.verdict import Check, Contradiction, exactly

SCALES, PASSES, HALVINGS = 26, 8, 30


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs that were seen at transitions: how many, their sum and that of their squares. They lie within
    [lower, upper], or their standard deviation given the past is at most `deviation`."""

    transition: OffsetArray = fields.integers("costs")
    count: OffsetArray = fields.integers("costs", least=1, most=MOST_COUNTS)
    total: tuple[Fraction, ...] = fields.rationals("costs")
    square: tuple[Fraction, ...] = fields.rationals("costs")
    lower: float | None = fields.real(optional=True)
    upper: float | None = fields.real(optional=True)
    deviation: float | None = fields.real(least=5e-324, optional=True)

    def trouble(self) -> str | None:
        if np.any(np.diff(self.transition) <= 0):
            return "the transitions of costs do not rise strictly"
        ranged = self.lower is not None and self.upper is not None and self.lower < self.upper
        bare = self.lower is None and self.upper is None and self.deviation is not None
        return None if (ranged and self.deviation is None) or bare else "costs need a range or a deviation"

    @property
    def words(self) -> str:
        """What is assumed of them."""
        if self.lower is not None:
            return f"costs lie within [{exactly(self.lower)}, {exactly(self.upper)}]"
        return f"the standard deviation of a cost given the past is at most {exactly(self.deviation)}"


_Group = tuple[Fraction, Fraction, int, Fraction, Fraction]
"""(slope α, shift β, number of costs, their sum, the sum of their squares)."""


_Curve = tuple[Fraction, Fraction, Fraction]
"""a + b·q + c·q²."""


def prove(about: Learned, delta: Fraction, of_counts: Callable[[Fraction], Statements]) -> Statements:
    """Are these intervals of the rewards at their part of δ? Beside what is found of probabilities: costs
    have half of δ, all where the probabilities are known."""
    data, hints, known = about.data, about.hints, not about.unknown[about.used].any()
    assert data is not None
    if known and not data.has_intervals:
        raise ValueError("a statement about probabilities that are all known")
    own = delta * (ONE if known else ONE / 2)
    statements = of_counts(delta - own)
    if not statements.check.passed:
        return statements
    if hints.cost_lower is None or hints.cost_upper is None:
        raise ValueError("costs without intervals")
    events = CostStatements(about.problem, data.costs)
    wrong = events.unproved(own, hints.cost_lower, hints.cost_upper)
    check = Check.everywhere("rewards' intervals follow from the costs", wrong, "reward")
    if check.passed:
        words = f"{len(wrong)} rewards share δ = {float(own):g}, {int(events.costs.count.sum())} costs"
        check = replace(statements.check, detail=f"{statements.check.detail}; {words}")
    ends = IntervalRows(about.space, events.polynomials, hints.cost_lower, hints.cost_upper)
    return replace(statements, check=check, sources={**statements.sources, RowOrigin.COST: ends})


def priced(about: Learned, problem: CertifiedProblem, upward: bool) -> CertifiedProblem:
    """The problem with rewards at their end for a bound."""
    objective = replace(problem.objective, reward=reward_ends(about)[upward], earned=None)
    return replace(problem, objective=objective)


@lru_cache(maxsize=1)
def reward_ends(about: Learned) -> tuple[FloatArray, FloatArray]:
    """What every choice earns at least, and at most, where rewards have parameters: a value is monotone in
    them, so that its lower bound follows from the least rewards and its upper one from the largest."""
    earned = about.problem.objective.earned
    assert earned is not None
    low, high = about.projection.bounds.doubles(np.unique(earned).tolist(), rewards=True)
    if np.any(low > high):
        raise Contradiction("no reward is left of an expression")
    return low[earned], high[earned]


def are_possible(costs: Costs, count: int, total: Fraction, square: Fraction) -> bool:
    """Whether costs can have these sums: no negative variance, and Σ(c − lower)(upper − c) ≥ 0."""
    if costs.lower is not None and costs.upper is not None:
        low, high = Fraction(costs.lower), Fraction(costs.upper)
        if (low + high) * total < low * high * count + square:
            return False
    return square * count >= total * total


class CostStatements:
    """The events of the rewards, in the order of their polynomials, and the costs that speak of each."""

    def __init__(self, problem: CertifiedProblem, costs: Costs):
        assert problem.polynomial is not None and problem.domain is not None
        earned, graph = problem.objective.earned, problem.graph
        if earned is None:
            raise ValueError("costs of rewards without parameters")
        self.costs, self.domain = costs, problem.domain
        spend_terms("costs", 12 * len(costs.total), costs.total, costs.square)
        if not all(map(partial(are_possible, costs), costs.count.tolist(), costs.total, costs.square)):
            raise ValueError("costs do not lie within the range that is assumed of them")
        of_transition = np.repeat(earned, np.diff(graph.transition_start))[costs.transition]
        by_shape: dict[Key, list[tuple[int, Fraction, Fraction]]] = {}
        for number in np.unique(earned).tolist():
            rest = {m: c for m, c in problem.polynomial[number].items() if m}
            if rest:
                factor = rest[min(rest, key=lambda m: (sum(e for _, e in m), m))]
                shape = tuple(sorted((m, c / factor) for m, c in rest.items()))
                shift = problem.polynomial[number].get((), ZERO)
                by_shape.setdefault(shape, []).append((number, factor, shift))
        self.polynomials: list[Polynomial] = []
        self.groups: list[list[_Group]] = []
        for shape, members in by_shape.items():
            largest = max(abs(factor) for _, factor, _ in members)
            self.polynomials.append({m: c * largest for m, c in shape})
            groups = []
            for number, factor, shift in members:
                spend("costs of rewards", 200 + len(of_transition) // 8)
                own = np.flatnonzero(of_transition == number).tolist()
                added = sum(bits_of(of[i]) for i in own for of in (costs.total, costs.square))
                spend("sums of costs", 2 * len(own), 1 + added)
                count = sum(costs.count[own].tolist())
                total, square = (sum((of[i] for i in own), ZERO) for of in (costs.total, costs.square))
                if count:
                    groups.append((factor / largest, shift, count, total, square))
            self.groups.append(groups)

    def unproved(self, delta: Fraction, lower: FloatArray, upper: FloatArray) -> BoolArray:
        """Which of these intervals do not follow from the costs."""
        if not len(lower) == len(upper) == len(self.groups):
            raise ValueError("the intervals of costs do not fit the rewards")
        shares = [delta / (len(lower) * 2 * (k + 1) * (k + 2)) for k in range(SCALES)]
        levels = [-as_fraction(log_below(share)) for share in shares]
        wrong = np.zeros(len(lower), dtype=np.bool_)
        for event, groups in enumerate(self.groups):
            low, high = self._possible(event)
            ends = Fraction(float(lower[event])), Fraction(float(upper[event]))
            bits = sum(longest(group) for group in groups) + longest((low, high, *ends))
            spend("intervals of costs", 2 * SCALES * 20 * len(groups), 200 + bits)
            mirrored = [(a, -b, count, -total, square) for a, b, count, total, square in groups]
            wrong[event] = not (
                _excludes(self._curves(groups), levels, low, ends[0])
                and _excludes(self._curves(mirrored), levels, -high, -ends[1])
            )
        return wrong

    def _possible(self, event: int) -> tuple[Fraction, Fraction]:
        """What g can be in the domain, with means of the costs that were seen within their range."""
        low, high = polynomial_range(self.polynomials[event], self.domain.lower, self.domain.upper, True)
        if self.costs.lower is not None and self.costs.upper is not None:
            for slope, shift, *_ in self.groups[event]:
                ends = sorted((Fraction(end) - shift) / slope for end in (self.costs.lower, self.costs.upper))
                low, high = max(low, ends[0]), min(high, ends[1])
        return low, high

    def _curves(self, groups: list[_Group]) -> list[_Curve]:
        """The exponents of all λ_k."""
        curves = []
        for k in range(SCALES):
            constant = linear = bend = ZERO
            for slope, shift, count, total, square in groups:
                step, squared, fixed = self._terms(slope, k)
                centred = total - count * shift
                spread = square - 2 * shift * total + count * shift * shift
                constant += step * centred - squared * spread - count * fixed
                linear += 2 * squared * slope * centred - step * count * slope
                bend -= squared * count * slope * slope
            curves.append((constant, linear, bend))
        return curves

    def _terms(self, slope: Fraction, k: int) -> tuple[Fraction, Fraction, Fraction]:
        """(λ·α, c, d)."""
        if self.costs.deviation is not None:
            step = 4 * slope / (2**k * Fraction(self.costs.deviation))
            return step, step * step / 6, (step * Fraction(self.costs.deviation)) ** 2 / 3
        assert self.costs.lower is not None and self.costs.upper is not None
        reach, u = Fraction(self.costs.upper) - Fraction(self.costs.lower), abs(slope) / 2 ** (k + 1)
        excess = u**2 / 2 + u**3 / 3 + u**4 / (4 * (1 - u))
        return slope / (2 ** (k + 1) * reach), excess / reach**2, ZERO


def _at(curve: _Curve, q: Fraction) -> Fraction:
    return curve[0] + (curve[1] + curve[2] * q) * q


def _excludes(curves: list[_Curve], levels: list[Fraction], start: Fraction, end: Fraction) -> bool:
    """Whether all q from `start` up to `end` are excluded, in steps that one exponent proves each."""
    for _ in range(PASSES):
        spend_terms("intervals of costs", 6 * len(curves), (start, end), *curves)
        for curve, level in zip(curves, levels, strict=True):
            _, linear, bend = curve
            if linear + 2 * bend * start > 0 or _at(curve, start) < level:
                continue
            if end <= start or _at(curve, end) >= level:
                return True
            outside, inside = start, end
            spend_terms("intervals of costs", 6 * HALVINGS, curve, (start, end))
            for _ in range(HALVINGS):
                middle = Fraction(float((outside + inside) / 2))
                outside, inside = (middle, inside) if _at(curve, middle) >= level else (outside, middle)
            start = max(start, outside)
    return end <= start
