"""Plans for questions whose gap has no formula: the effect of more data of the same kind.

The question is answered again with c times the counts. The widths of these answers, scaled so that the first
is the current gap, make the curve. Frequencies change, so the range around it is a rule of thumb: a sixth of
the gap in both directions. A true-or-false property has the gap 1 until it is decided. No guarantee uses it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.design.plan import Plan, PlanStatus, Strategy
from tightrope.errors import InputError, ReadingWarning
from tightrope.io.answers import AS_SO_FAR, Aim, Target
from tightrope.io.results import Interval
from tightrope.learning.learn import learn
from tightrope.learning.observed import choose_controller, estimated_value
from tightrope.learning.options import LearnOptions
from tightrope.learning.pipeline import counts_of
from tightrope.model.policy import PolicyGiven
from tightrope.model.pomdp import POMDP, Controller
from tightrope.numerics.arrays import FloatArray
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem
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
