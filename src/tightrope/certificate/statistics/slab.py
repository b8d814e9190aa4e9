"""A slab: bets against parameters, and rows that enclose what they leave of a guard region.

*Bets*, each derived here from the batches before it. A visit draws outcome o of its group c with probability
m_o·f_o(θ*). A bet is a number a(o) for every outcome, known before the visit, with Σ_{o∈c} m_o·a(o) ≤ 0 in
every group. At parameters θ a group *takes part* where f_o(θ) ≥ 2·|a(o)| for all of its outcomes with a(o) <
0, seen or not. Given the past, the factor 1 + a/f of a visit whose group takes part at θ* has the mean
1 + Σ_{f_o>0} m_o·a_o ≤ 1 (a ≥ 0 where f = 0), and it is at least ½. So exp Λ, Λ(θ) = Σ over visits that take
part at θ of log(1 + a/f(θ)), is at θ* a nonnegative supermartingale from 1, and by Ville's inequality
Λ(θ*) < log(1/α) at all times with probability 1 − α, whatever the policy and the stopping rule. A mixture
Σ w_j·exp Λ_j of several bets, Σ w_j ≤ 1, is one, too.

All that has to be believed of a bet is that it was known before its batch, and that it is no better than
fair. No bet is in a file. When bets are placed follows from the plan and from how much came before; what they
are, from `tightrope.numerics.betting`, which is handed the model, the question, a policy that is given, and
the counts before the batch, and nothing else: whatever it returns is predictable, and where its stakes are
fair, which is asked in integers, they are bets.

*Rows.* C = { θ ∈ guard : Λ_s(θ) < log(1/α) for every side s that is bet on } misses the true parameters with
probability at most δ. Where l ≤ f ≤ u is proved of the expressions, each term of Λ is bounded below by a line
in f:

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
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, prod
from typing import Any

import numpy as np

from tightrope.certificate import fields
from tightrope.certificate.budget import spend
from tightrope.certificate.coordinates import Row
from tightrope.certificate.evidence import Data, RegionHints
from tightrope.certificate.learned import Learned, RowOrigin, Statements
from tightrope.certificate.logarithms import log_below, log_up
from tightrope.certificate.numbers import RATIONAL, Numbers, as_fraction
from tightrope.certificate.problem import CertifiedProblem
from tightrope.certificate.statistics.likelihood import (
    Forms,
    Likelihood,
    Predictor,
    log_units,
    planned_ends,
    sizes_of,
)
from tightrope.certificate.statistics.outcomes import SeenOutcomes
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.betting import GRID, MOST_SUCCESSORS, BetTable, TargetPolicy
from tightrope.numerics.question import GraphQuestion
from tightrope.numerics.value_slopes import value_slopes

MOST_WORK = 3 * 10**7
PILOT_SHARE, LEAST_PILOT, OPEN_PILOT, RENEWED_AFTER = 0.03, 5, 10, 1.5

_Terms = tuple[Any, Numbers, Numbers]
"""(expressions, slopes, constants) of lines that are added up."""

_Line = tuple[Numbers, Numbers]
"""(slopes, constants)."""


@dataclass(frozen=True, eq=False)
class SlabHints:
    """A stage of a slab's rows: `region` proves bounds of expressions, with rows of earlier stages; each side
    that is bet on has a point near which its row shall be tight, and a share for every scale of its bets.
    """

    region: RegionHints = fields.part(RegionHints)
    point: FloatArray = fields.reals("sides", "SIZE")
    share: OffsetArray = fields.integers("sides", "scales", most=2**20)


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
    delta: Fraction, both: bool, free: int, best: bool = False, gains: bool = False
) -> tuple[Fraction, Fraction]:
    """(level of the guard, of each bettor): beside intervals a quarter where the best policy is bet on; else
    a tenth for both ends of a value and for a difference, and by dimension for one end of a value."""
    if best or both or gains:
        guard = delta / 4 if best else delta / 10
        return guard, (delta - guard) / (2 if both else 1)
    percent = max(round(100 * exp((1 - 1.025**2) * (1.8 * free - log(delta)))), 60)
    return delta * percent / 100, delta * (100 - percent) / 100


class PlacedBets:
    """stake[side, scale, number, outcome] stood while outcomes were seen[number, outcome] times.

    Side 0 looks for the lower end of the reported value, side 1 for the upper one; `sides` are bet on: both
    ends of a given policy's value, else the one that the agent wants to move, of the best policy's value or
    of what that gains over the given one.
    """

    def __init__(self, forms: Forms, data: Data, given: FloatArray | None, delta: Fraction):
        """`given`: the weights of the choices of a policy that is given; `delta`: of guard and bettors."""
        about, (linear, constant) = forms.about, forms.doubles
        problem, space, outcomes, expression = about.problem, about.space, about.outcomes, about.expression
        question = _question(problem)
        best = (given is None and data.has_intervals) or data.method.endswith("best")
        gains = data.method.endswith("difference")
        if gains and given is None:
            raise ValueError("bets on a difference to no policy")
        one = given is None or gains
        self.sides = (int(question.maximises == question.complement),) if one else (0, 1)
        usual, given = (given, None) if gains else (None, None if best else given)
        self.whose = "best" if given is None else "given"
        self.whose = f"the {self.whose} policy" + (", less the given one" if gains else "")
        self.schedule = BetSchedule.of(data, sizes_of(data))
        placed, scales = self.schedule.placed, self.schedule.scales
        self.guard, self.side = levels(delta, len(self.sides) == 2, len(space.free), best, gains)
        shape = len(self.sides), len(scales), len(placed), len(outcomes.expression)
        if max(prod(shape), len(placed) * problem.graph.transitions // 30) > MOST_WORK:
            raise ValueError("there are more bets than this program checks")
        self.stake, self.seen = np.zeros(shape), np.zeros(shape[2:], dtype=np.int64)
        predictor = Predictor(space, linear, constant)
        table = BetTable(predictor.search, outcomes.expression, outcomes.multiplicity, outcomes.start)
        policy, t = TargetPolicy(question, given), predictor.centre
        radix, group = len(linear), np.repeat(outcomes.of_choice, np.diff(problem.graph.transition_start))
        known = outcomes.owner * radix + outcomes.expression  # rises
        of_transition = np.searchsorted(known, group * radix + expression)
        unknown, level = linear.any(axis=1), -log(self.side)
        for number, batch in enumerate(placed):
            work = _work(question) + 4 * len(scales) * linear.size * len(space.free)
            spend("bets", work + 20 * len(data.batch_count))
            weight = data.totals(expression, len(linear), 0, batch) * unknown.astype(np.float64)
            t = table.estimate(t, weight)
            x, jacobian = predictor.search.lifted(t)
            probability = np.clip(linear @ x + constant, 0.0, 1.0)[expression]
            slopes = policy.slopes(probability, self.schedule.share(number))
            if slopes is not None:
                along = np.bincount(expression[slopes[0]], slopes[1], len(linear)) @ linear
                less = None if usual is None else value_slopes(question, usual, probability)
                if less is not None:
                    along = along - np.bincount(expression[less[0]], less[1], len(linear)) @ linear
                along = along @ jacobian
                for scale, (amount, _) in enumerate(scales):
                    information = table.information(t, weight, amount / self.schedule.so_far[number])
                    for place, side in enumerate(self.sides):
                        wanted = -along if side else along
                        self.stake[place, scale, number] = table.place(t, wanted, information, level)
            end = placed[number + 1] if number + 1 < len(placed) else data.batches
            self.seen[number] = data.totals(of_transition, len(outcomes.expression), batch, end)

    def unfair(self, outcomes: SeenOutcomes) -> bool:
        """Whether some group's stakes are better than fair, or are no whole multiples: asked in integers."""
        units = np.clip(self.stake / GRID, -(2.0**50), 2.0**50)
        if np.any(units * GRID != self.stake) or np.any(units != np.floor(units)):
            return True
        total = np.add.reduceat(outcomes.multiplicity * units.astype(np.int64), outcomes.start[:-1], axis=-1)
        many = np.add.reduceat(outcomes.multiplicity, outcomes.start[:-1]) > MOST_SUCCESSORS
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
    guard, slab = Likelihood(forms, data, bets.guard), SlabRows(forms, bets)
    fair = not bets.unfair(about.outcomes)
    words = f"placed {len(bets.schedule.placed)} times on {bets.whose}, δ = {float(delta):g}"
    name = "every bet follows from the batches before it, and is no better than fair"
    check = Check(name, fair, words if fair else "stakes of a group of outcomes win on average")
    return Statements(check, {RowOrigin.CUT: guard, RowOrigin.SLAB: slab}, slab=slab, planned=guard.planned)


class SlabRows:
    """Rows by (stage, side), as far as bounds were proved."""

    def __init__(self, forms: Forms, bets: PlacedBets, rows: Sequence[Sequence[Row]] = ()):
        self.forms, self.bets, self.rows = forms, bets, rows

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        if not (0 <= index < len(self.rows) and 0 <= part < len(self.rows[index])):
            raise ValueError("no such row of a slab")
        return self.rows[index][part]

    def narrowed(self, lower: FloatArray, upper: FloatArray, hints: SlabHints) -> SlabRows:
        """With the rows of one more stage, at which the expressions are within these bounds."""
        sides, scales = len(self.bets.sides), self.bets.schedule.scales
        if hints.point.shape != (sides, self.forms.space.size) or hints.share.shape != (sides, len(scales)):
            raise ValueError("the points or shares of a slab do not fit its bets")
        rows = [
            self._row(place, lower, upper, hints.point[place], hints.share[place].tolist())
            for place in range(sides)
        ]
        return SlabRows(self.forms, self.bets, [*self.rows, rows])

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
        lines: list[_Terms] = []
        for met, line in (((stake > 0) & ~apart & (high > 0), _tangents), (losing, _chords)):
            which = np.nonzero(met & (seen > 0))
            if len(which[0]):
                a, least, most, touched = (of[which] for of in (stake, low, high, near[expression]))
                touched = np.clip(touched, np.maximum(least, 1e-9 * most), most)
                slope, constant = line(a, least, most, touched)
                lines.append((expression[which], seen[which] * slope, seen[which] * constant))
        return lines


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
