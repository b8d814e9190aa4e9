"""Plans for questions whose gap has no formula: the effect of more data of the same kind.

The question is answered again with c times the counts. The widths of these answers, scaled so that the first
is the current gap, make the curve. Frequencies change, so the range around it is a rule of thumb: a sixth of
the gap in both directions. A true-or-false property has the gap 1 until it is decided. No guarantee uses it.

*Improvements* over a baseline: at two, four, … times the episodes the region is built from counts that are as
many times as large, and `improve` certifies the gain of the policy that is best at the estimate. In between,
the logarithm of the number is interpolated.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts, expected_counts
from tightrope.design.plan import Plan, PlanStatus, Strategy
from tightrope.errors import CannotCertify, InputError, ReadingWarning
from tightrope.io.answers import AS_SO_FAR, Aim, Target
from tightrope.io.results import Interval
from tightrope.learning.compare import improve
from tightrope.learning.differences import LOGGED, UNIFORM, Comparison, differences
from tightrope.learning.learn import learn, plain_problem
from tightrope.learning.observed import choose_controller, estimated_value
from tightrope.learning.options import LearnKwargs, LearnOptions
from tightrope.learning.pipeline import counts_of
from tightrope.model.policy import PolicyGiven
from tightrope.model.pomdp import POMDP, Controller
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem, problem_of
from tightrope.regions.registry import region_kind
from tightrope.solver.solution import FALSE, TRUE

DOUBLINGS = 20
FOR_EVER = 30
SPREAD = 1 / 6
MOST_EPISODES = 1e9


def plan_more(
    problem: Problem,
    counts: Counts,
    delta: float,
    target: Target,
    options: LearnOptions,
    policy: PolicyGiven | Controller | None = None,
    estimate: float | None = None,
) -> Plan:
    """A plan of episodes like those so far; `estimate` is the value to which answers narrow."""
    if target.aim is Aim.OPTIMALITY:
        raise InputError(
            f"`plan` does not forecast the distance of the policy for {problem.text} from the optimum",
            hint="plan with `gap`",
        )
    if not counts.steps:
        raise InputError("the data hold no steps: a plan starts from a pilot", hint="collect episodes first")
    result = _answer(problem, counts, delta, options, policy)
    rough = replace(options, sets=SetsKind.EXPRESSION, region=region_kind("polytope"))
    several = problem.query.kind is QueryKind.MULTI_OBJECTIVE and result.guarantee is not None
    for_ever, limit = None, None
    if several or target.aim is Aim.ABOVE:
        for_ever = _answer(problem, counts.times(1 << FOR_EVER), delta, rough, policy)
        limit = for_ever.guarantee if several else None
    interval = _span(result, limit)
    gap_now, episodes = interval.upper - interval.lower, max(counts.design.episodes or 1, 1)
    value = 0.5 * (interval.lower + interval.upper) if math.isfinite(gap_now) else math.nan
    if estimate is not None and gap_now > 0 and interval.lower < estimate < interval.upper:
        value = estimate
    if target.aim is Aim.ABOVE:  # what such data come to promise
        value = guarantee_of(_span(for_ever, limit), target)
    begin, sought = _distance(interval, target, value), width_of(target, value)
    steps = counts.steps / episodes
    about = delta, result.decisions, interval, gap_now, sought, value, episodes, counts.steps
    plan = Plan(problem, target, PlanStatus.EXPLORE, *about, result.verdict)
    if not math.isfinite(gap_now):
        return plan
    if sought is not None and begin <= sought:
        return replace(plan, status=PlanStatus.REACHED)
    if sought is not None and sought <= 0:
        note = f"the value at the estimate is {value:.4g}: more data cannot raise the guarantee beyond it"
        return replace(plan, status=PlanStatus.UNLIKELY, notes=(note,))
    points = [(0.0, begin)]
    first: float | None = None
    for doubling in range(DOUBLINGS + 1):
        later = _span(_answer(problem, counts.times(1 << doubling), delta, rough, policy), limit)
        width = _distance(later, target, value)
        first = width if first is None else first
        if doubling:
            points.append((episodes * ((1 << doubling) - 1.0), begin * (width / first if first else 0.0)))
        if sought is not None and points[-1][1] * (1 + SPREAD) <= sought:
            break
        if target.aim is Aim.BUDGET and points[-1][0] >= target.amount:
            break
        if points[-1][0] > MOST_EPISODES:
            break
    at, gaps = np.array(points).T
    rows = np.stack([at, gaps, gaps * (1 - SPREAD), gaps * (1 + SPREAD)], axis=1)
    rows = np.maximum(rows, 1e-300 * np.array([0.0, 1.0, 1.0, 1.0]))
    needed = [target.amount] * 3
    if sought is not None:
        needed = [_until(rows[:, 0], rows[:, column], sought, episodes) for column in (1, 2, 3)]
    strategy = Strategy(AS_SO_FAR, needed[0], needed[1], needed[2], steps, 1.0, rows)
    status = PlanStatus.PLANNED if math.isfinite(needed[0]) else PlanStatus.BEYOND
    note = "the forecast is for more data of the same kind; no exploration is designed for this property"
    return replace(plan, status=status, strategies=(strategy,), notes=(note,))


def plan_controller(
    problem: Problem,
    data: object,
    delta: float,
    target: Target,
    options: LearnOptions,
    policy: PolicyGiven | Controller | None = None,
) -> Plan:
    """A plan of more data about one controller of a partially observable model."""
    pomdp = problem.model
    assert isinstance(pomdp, POMDP)
    counts = counts_of(data, pomdp.model)
    if counts.design.episodes is None:
        counts = replace(counts, design=replace(counts.design, episodes=counts.steps))
    chosen = policy if policy is not None else choose_controller(problem, counts, options).chosen
    value = estimated_value(problem, counts, chosen)
    return plan_more(problem, counts, delta, target, options, chosen, value)


def _answer(problem: Problem, counts: Counts, delta: float, options: LearnOptions, policy: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        return learn(problem, counts, delta=delta, policy=policy, **options.words)


def _span(result: Any, limit: float | None) -> Interval:
    """The interval whose width is the gap: truth counts 1 or 0; `limit` is the other end of a guarantee
    alone."""
    if limit is not None:
        return Interval(min(result.guarantee, limit), max(result.guarantee, limit))
    if result.interval is not None:
        return Interval.of(result.interval.lower, result.interval.upper)
    return Interval(float(result.truth == TRUE), float(result.truth != FALSE))


def guarantee_of(interval: Interval, target: Target) -> float:
    return interval.upper if target.falls else interval.lower


def _distance(interval: Interval, target: Target, value: float) -> float:
    """What is to become small: the interval's width, or twice the way of its guarantee to the value."""
    if target.aim is Aim.ABOVE:
        return max(2.0 * target.better(value, guarantee_of(interval, target)), 0.0)
    return interval.width


def width_of(target: Target, value: float) -> float | None:
    """The aim as a width; None where a budget is given."""
    if target.aim is Aim.BUDGET:
        return None
    if target.aim is Aim.ABOVE:
        return 2.0 * target.better(value, target.amount)
    return target.amount * abs(value) if target.relative else target.amount


def _until(at: FloatArray, gaps: FloatArray, sought: float, so_far: float) -> float:
    """The first number of episodes with so small a gap, interpolated in logarithms; infinite without one."""
    below = np.flatnonzero(gaps <= sought)
    if not len(below):
        return math.inf
    i = int(below[0])
    if i == 0:
        return 0.0
    share = (math.log(gaps[i - 1]) - math.log(sought)) / (math.log(gaps[i - 1]) - math.log(gaps[i]))
    low, high = math.log(so_far + at[i - 1]), math.log(so_far + at[i])
    return float(math.exp(low + share * (high - low)) - so_far)


# --- improvements ----------------------------------------------------------------------

SHARE = 0.8


@dataclass(frozen=True, eq=False, repr=False)
class ImprovementPlan(Record):
    """A forecast of episodes until an improvement is `proved`, and until `share` of what is `possible`."""

    now: Comparison
    possible: float
    episodes: int
    proved: float
    most: float
    share: float
    curve: tuple[tuple[int, float], ...]

    def _title_(self) -> str:
        return f"About {self.proved:,.0f} more episodes until an improvement is proved; a forecast"

    def _facts_(self) -> Facts:
        return [
            ("episodes so far", f"{self.episodes:,}"),
            ("proved now", f"{self.now.improvement:.4g}"),
            ("possible, estimated", f"{self.possible:.4g}"),
            (f"more until {self.share:.0%} of it", f"{self.most:,.0f}"),
        ]


def plan_improvement(
    problem: Problem,
    data: object,
    baseline: PolicyGiven | str = UNIFORM,
    *,
    delta: float = 0.001,
    share: float = SHARE,
    **options: Unpack[LearnKwargs],
) -> ImprovementPlan:
    """How many more episodes until an improvement over the baseline is proved, to all appearance."""
    if isinstance(baseline, str) and baseline == LOGGED:
        raise InputError(
            "a forecast needs a known baseline, and the behaviour policy of the log is unknown",
            hint="give the policy that collected the data, or run `improve` on the data you have",
        )
    question = plain_problem(problem_of(problem))
    counts = counts_of(data, question.base)
    episodes = counts.design.episodes
    if episodes is None or not episodes:
        raise InputError("the data contain no episodes, and the plan is for more episodes")
    now = improve(problem, counts, baseline=baseline, delta=delta, **options)
    table = now.table
    assert table is not None and table.baseline is not None
    aim = table.promise()
    if aim is None:
        raise CannotCertify("the data contradict the model, or the region does not support differences")
    policy, possible = aim
    sign, curve = (1.0 if table.maximises else -1.0), [(episodes, now.improvement)]
    words = LearnOptions.of("improve", options)
    for doubling in range(1, DOUBLINGS + 1):
        if possible <= 0.0 or curve[-1][1] >= share * possible:
            break
        number = episodes << doubling
        later = expected_counts(counts, counts.transition / episodes, number)
        there = differences(problem, later, table.baseline, delta, words)
        there.cut([policy])
        interval = there.difference("", policy, wanted=(table.maximises, not table.maximises)).interval
        curve.append((number, interval.lower if sign > 0 else -interval.upper))
    return ImprovementPlan(
        now,
        possible,
        episodes,
        _crossing(curve, 0.0),
        _crossing(curve, share * possible) if possible > 0.0 else math.inf,
        share,
        tuple(curve),
    )


def _crossing(curve: list[tuple[int, float]], level: float) -> float:
    """More episodes until the improvement is above a level, interpolated in the logarithm of their number."""
    first = curve[0][0]
    if curve[0][1] > level:
        return 0.0
    for (before, low), (after, high) in pairwise(curve):
        if high > level:
            part = (level - low) / (high - low)
            return float(np.ceil(before * (after / before) ** part)) - first
    return math.inf
