"""A slab: what bettors leave of a guard region, enclosed by rows that are written from bounds.

C = { θ ∈ guard : Λ_s(θ) < log(1/α) for every side s that is bet on } misses the true parameters with
probability at most δ (`tightrope.certificate.statistics.bets`). Where l ≤ f ≤ u is proved of the expressions,
each term of Λ is bounded below by a line in f:

* a > 0: convex in f, so it is at least log(1 + a/φ) − s·(f − φ) − |s − a/(φ(φ + a))|·u for any slope s and
  0 < φ ≤ u;
* a < 0, and the group takes part wherever l ≤ f: concave, so for any slope s it is at least s·f plus the
  smaller of what is left at l and at u;
* other groups: all terms together are at least Σ_{a_o<0} K_o·log(1 − |a_o|/max(l_o, 2|a_o|)), whether the
  group takes part or not.

So Λ ≥ A + B·f, and Σ_j π_j·Λ_j < log(1/α) + Σ_j π_j·log(π_j/w_j) for any shares π of bets with weights w
(Jensen's inequality) gives a row. Bounds are proved stage by stage, each from the rows of those before it.
The points that the φ follow from, and the shares, are hints: bad ones give worse rows, never wrong ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.coordinates import Row
from tightrope.certificate.evidence import SlabHints
from tightrope.certificate.logarithms import log_below, log_units, log_up
from tightrope.certificate.numbers import RATIONAL, Numbers, as_fraction
from tightrope.certificate.rows import Origin, Statements
from tightrope.certificate.statistics.bets import Bets
from tightrope.certificate.statistics.likelihood import Forms, Likelihood
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from tightrope.certificate.learned import Learned

_Terms = tuple[Any, Numbers, Numbers]
"""(expressions, slopes, constants) of lines that are added up."""

_Line = tuple[Numbers, Numbers]
"""(slopes, constants)."""


def prove(about: Learned, delta: Fraction) -> Statements:
    """A guard and bets beside it, each at its share of δ; on the policy of the claims that is given."""
    data, choices, forms = about.data, about.problem.graph.choices, Forms(about)
    assert data is not None
    given = [claim.weights(choices) for claim in about.certificate.claims if claim.name == "given policy"]
    bets = Bets(forms, data, given[0] if given else None)
    guard, slab = Likelihood(forms, data, bets.guard), Slab(forms, bets)
    fair, whose = not bets.unfair(about.outcomes), "the given" if bets.given else "the best"
    words = f"placed {len(bets.schedule.placed)} times on {whose} policy, δ = {data.delta:g}"
    name = "every bet follows from the batches before it, and is no better than fair"
    check = Check(name, fair, words if fair else "stakes of a group of outcomes win on average")
    return Statements(check, {Origin.CUT: guard, Origin.SLAB: slab}, slab=slab, planned=guard.planned)


class Slab:
    """Rows by (stage, side), as far as bounds were proved."""

    def __init__(self, forms: Forms, bets: Bets, rows: Sequence[Sequence[Row]] = ()):
        self.forms, self.bets, self.rows = forms, bets, rows

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        if not (0 <= index < len(self.rows) and 0 <= part < len(self.rows[index])):
            raise ValueError("no such row of a slab")
        return self.rows[index][part]

    def narrowed(self, lower: FloatArray, upper: FloatArray, hints: SlabHints) -> Slab:
        """With the rows of one more stage, at which the expressions are within these bounds."""
        sides, scales = len(self.bets.sides), self.bets.schedule.scales
        if hints.point.shape != (sides, self.forms.space.size) or hints.share.shape != (sides, len(scales)):
            raise ValueError("the points or shares of a slab do not fit its bets")
        rows = [
            self._row(place, lower, upper, hints.point[place], hints.share[place].tolist())
            for place in range(sides)
        ]
        return Slab(self.forms, self.bets, [*self.rows, rows])

    def _row(
        self, place: int, lower: FloatArray, upper: FloatArray, point: FloatArray, share: list[int]
    ) -> Row:
        forms, total = self.forms, sum(share)
        if total == 0:
            raise ValueError("a row of a slab without shares")
        near = forms.doubles[0] @ point + forms.doubles[1]
        bound, slope = -log_below(self.bets.side), RATIONAL.zeros(len(forms.whole))
        for scale, (_, weight) in enumerate(self.bets.schedule.scales):
            if share[scale] == 0:
                continue
            part = RATIONAL.array([Fraction(share[scale], total)])
            bound = bound + (part * log_up(part / RATIONAL.array([weight])))[0]
            for where, slopes, constants in self._lines(self.bets.stake[place, scale], lower, upper, near):
                np.add.at(slope, where, part[0] * slopes)
                bound = bound - part[0] * constants.sum()
        *linear, constant = forms.combine(slope, np.arange(len(slope)))
        return [as_fraction(a) for a in linear], as_fraction(bound - constant)

    def _lines(
        self, stake: FloatArray, lower: FloatArray, upper: FloatArray, near: FloatArray
    ) -> list[_Terms]:
        """Lines below the terms of Λ, by bet and outcome, times how often each was seen."""
        outcomes, seen = self.forms.about.outcomes, self.bets.seen
        spend("rows of a slab", 20 * stake.size)
        spend("rows of a slab", 30 * int(np.count_nonzero((stake != 0) & (seen > 0))), 300)
        expression = np.broadcast_to(outcomes.expression, stake.shape)
        low, high = lower[expression], np.maximum(upper, lower)[expression]
        losing = stake < 0
        fails = np.logical_or.reduceat(losing & (low < -2 * stake), outcomes.start[:-1], axis=1)
        apart = np.repeat(fails, np.diff(outcomes.start), axis=1)
        low = np.where(apart, np.maximum(low, -2 * stake), low)  # the worst that such a group may add
        high = np.where(apart, low, high)
        found: list[_Terms] = []
        for met, line in (((stake > 0) & ~apart & (high > 0), _tangents), (losing, _chords)):
            which = np.nonzero(met & (seen > 0))
            if len(which[0]):
                a, least, most, touched = (of[which] for of in (stake, low, high, near[expression]))
                touched = np.clip(touched, np.maximum(least, 1e-9 * most), most)
                slope, constant = line(a, least, most, touched)
                found.append((expression[which], seen[which] * slope, seen[which] * constant))
        return found


def _log_of(a: Numbers, f: Numbers) -> Numbers:
    """Not above log(1 + a/f)."""
    units = log_units(1 + a / f, False)
    return units * RATIONAL.array([Fraction(1, 1 << 128)])


def _tangents(a: FloatArray, low: FloatArray, high: FloatArray, near: FloatArray) -> _Line:
    slope, stake, touched = (RATIONAL.array(of) for of in (a / (near * (near + a)), a, near))
    missed = np.abs(slope - stake / (touched * (touched + stake))) * RATIONAL.array(high)
    return -slope, RATIONAL.trim(_log_of(stake, touched) + slope * touched - missed, False)


def _chords(a: FloatArray, low: FloatArray, high: FloatArray, near: FloatArray) -> _Line:
    stake, least, most = (RATIONAL.array(of) for of in (a, low, high))
    left, right = _log_of(stake, least), _log_of(stake, most)
    width = np.where(high > low, high - low, 1.0)
    slope = RATIONAL.array(np.where(high > low, RATIONAL.floats(right - left) / width, 0.0))
    return slope, RATIONAL.trim(np.minimum(left - slope * least, right - slope * most), False)
