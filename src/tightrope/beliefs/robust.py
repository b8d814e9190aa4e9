"""Controllers over observations for uncertain models: a guarantee and two bounds.

Let V(c, m) be the value of controller c (maximised) in model m. It guarantees the minimum over m of V(c, m).
The *robust optimum*, max over c of that, is at most the optimum at any one point m₀, which beliefs there
bound (`tightrope.beliefs.graph`). The *true optimum* at the unknown m* is at least this, and at most the
value of a fully observing policy with nature helping.

With intervals nature picks at every step; a point is a fixed pick, of rationals that round into the bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from tightrope.beliefs.graph import FAR
from tightrope.beliefs.solve import LATE, PartialSolution, evaluate, solve_partial
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, Controller
from tightrope.model.product import chain_of, lift_model, lift_objective
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import interval_text
from tightrope.solver.solve import solve

ROUNDS = 3
"""So often a rival is looked for where the best controller so far does worst."""

MOST_CORNERS = 64

ENOUGH = 1e-3
"""A controller with more nodes is chosen where it is better by more than this part."""

DIGITS = (2, 3, 4, 6, 9)
"""So many digits the probabilities of a point have, where that many keep it within the bounds."""

Point = tuple[Fraction, ...]
Value = Callable[[Controller, Point], float]


@dataclass(frozen=True, eq=False, repr=False)
class RobustController(Record):
    """A controller and the `interval` of its value over all points. `guarantee` is its worst end,
    `helped` what it certainly attains when nature helps. No controller guarantees more than `robust_optimum`
    or exceeds `true_optimum` at the true point. `result` is the evaluation; `cut`: a clock ended the search.
    """

    controller: Controller
    objective: Objective
    interval: Interval
    guarantee: float
    helped: float
    robust_optimum: float
    true_optimum: float
    points: tuple[Point, ...]
    cut: bool
    result: object = field(repr=False)
    truth: str | None = None
    solved: Mapping[Point, PartialSolution] = field(default_factory=dict, repr=False, compare=False)

    @property
    def bounds(self) -> tuple[float, float]:
        """The best guarantee, or with a helping nature the best value; one end is attained."""
        helped = self.objective.nature is self.objective.agent
        if self.objective.maximises:
            return (self.helped, self.true_optimum) if helped else (self.guarantee, self.robust_optimum)
        return (self.true_optimum, self.helped) if helped else (self.robust_optimum, self.guarantee)

    @property
    def where(self) -> Point | None:
        """The point of the bound on the robust optimum; None where that is the one on the true optimum."""
        if self.robust_optimum == self.true_optimum:
            return None
        ends = {
            point: one.upper if self.objective.maximises else one.lower for point, one in self.solved.items()
        }
        return next((point for point, end in ends.items() if end == self.robust_optimum), None)

    def _title_(self) -> str:
        return f"RobustController: {interval_text(*self.interval)}"

    def _facts_(self) -> Facts:
        return [
            ("guarantee", f"{self.guarantee:.6g}"),
            ("robust optimum", f"not beyond {self.robust_optimum:.6g} ({len(self.points)} points looked at)"),
            ("true optimum", f"not beyond {self.true_optimum:.6g}"),
            ("controller", f"{self.controller.nodes:,} nodes"),
            *([("status", LATE)] if self.cut else []),
        ]


@dataclass(frozen=True, eq=False)
class Rivals:
    """The best of the controllers that were looked for at some points, and what was found at each."""

    chosen: Controller
    solved: dict[Point, PartialSolution]

    @property
    def cut(self) -> bool:
        """Whether a clock ended a search."""
        return any(one.status == LATE for one in self.solved.values())


def weigh(
    pomdp: POMDP,
    objective: Objective,
    points: Sequence[Point],
    worst: Callable[[Controller, Value], Point | None],
    worth: Callable[[Controller], float] | None = None,
    *,
    rounds: int = ROUNDS,
    **limits: Any,
) -> Rivals:
    """Search controllers at the first point, then where the best does `worst`; simple ones win if as good."""
    weighed = list(points)
    solved: dict[Point, PartialSolution] = {}
    rivals: dict[tuple[bytes, bytes], Controller] = {}

    @cache
    def value(controller: Controller, point: Point) -> float:
        low, high = evaluate(pomdp, objective, controller, point, 1e-6).bounds
        return (low + high) / 2 if objective.maximises else -(low + high) / 2

    own = cache(worth) if worth is not None else lambda one: min(value(one, point) for point in weighed)
    point: Point | None = weighed[0]
    while point is not None and point not in solved:
        solved[point] = best = solve_partial(pomdp, objective, point=point, **limits)
        for controller in (*best.simple, best.controller):
            rivals.setdefault((controller.following.tobytes(), controller.action.tobytes()), controller)
        most = max(own(one) for one in rivals.values())
        enough = most - ENOUGH * abs(most) if math.isfinite(most) else most
        chosen = next(one for one in rivals.values() if own(one) >= enough)
        point = worst(chosen, value) if len(solved) <= rounds else None
        if point is not None and point not in weighed:
            weighed.append(point)
    return Rivals(chosen, solved)


def over_domain(
    pomdp: POMDP,
    objective: Objective,
    result_of: Callable[[Controller], Any],
    precision: float,
    seconds: float,
) -> RobustController:
    """The controller with the best guarantee found; `result_of` evaluates its chain over the domain."""
    assert isinstance(pomdp.model, ParametricMDP)
    corners = corners_of(pomdp.model.parameters)

    def worst(controller: Controller, value: Value) -> Point:
        return min(corners, key=lambda point: value(controller, point))

    rivals = weigh(pomdp, objective, corners, worst, precision=precision, seconds=seconds / (1 + ROUNDS))
    result = result_of(rivals.chosen)
    there = [evaluate(pomdp, objective, rivals.chosen, point).bounds for point in rivals.solved]
    helped = max(low for low, _ in there) if objective.maximises else min(high for _, high in there)
    return _robust(objective, rivals, result.interval, helped, result.optimistic_value, result)


def over_intervals(pomdp: POMDP, objective: Objective, precision: float, seconds: float) -> RobustController:
    """The same within the bounds of an interval model."""
    model = pomdp.model
    assert isinstance(model, IntervalMDP)
    agent, plain = objective.agent, model.without_factors
    adverse, kind = replace(objective, nature=agent.opposite), replace(objective, nature=agent)
    seen = _finite(solve(plain, adverse, precision=1e-6).lower)
    total, met = np.zeros((2, model.states))

    def values(controller: Controller) -> tuple[FloatArray, FloatArray]:
        """What states are worth in the chain against an adverse nature, over all nodes, and how many met."""
        product = chain_of(plain.structure, controller.policy)
        chain, question = lift_model(plain, product), lift_objective(adverse, product)
        own = _finite(solve(chain, question, precision=1e-6).lower)
        count = np.bincount(product.state, minlength=model.states).astype(np.float64)
        return np.bincount(product.state, own, model.states).astype(np.float64), count

    def worth(controller: Controller) -> float:
        for known, more in zip((total, met), values(controller), strict=True):
            known += more
        low, high = evaluate(pomdp, objective, controller, precision=1e-6).bounds
        return (low + high) / 2 if objective.maximises else -(low + high) / 2

    def worst(controller: Controller, value: Value) -> Point | None:
        """The worst for the controller; elsewhere, and where it does not care, for all rivals so far."""
        if model.factored is not None:
            return None
        own, count = values(controller)
        rest = np.where(met > 0, total / np.maximum(met, 1), seen)
        mean = np.where(count > 0, own / np.maximum(count, 1), rest) + 1e-6 * rest
        return point_of(plain, mean if objective.maximises else -mean)

    rivals = weigh(
        pomdp, objective, [point_of(model)], worst, worth, precision=precision, seconds=seconds / (1 + ROUNDS)
    )
    ends = [evaluate(pomdp, each, rivals.chosen) for each in (adverse, kind)]
    low = min(one.bounds[0] for one in ends)
    high = max(one.bounds[1] for one in ends)
    best = solve(plain, kind, precision=1e-6).bounds[1 if objective.maximises else 0]
    helped = ends[1].bounds[0 if objective.maximises else 1]
    return _robust(objective, rivals, Interval.of(low, high), helped, best, ends[0])


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, FAR)


def _robust(
    objective: Objective, rivals: Rivals, interval: Interval, helped: float, best: float, result: object
) -> RobustController:
    """The controller with its bounds, kept before what is attained; `best` is of a policy that sees all."""
    solved, ends = rivals.solved, rivals.solved.values()
    if objective.maximises:
        near, true = interval.lower, max(best, interval.lower, helped)
        robust = max(near, min(true, *(one.upper for one in ends)))
    else:
        near, true = interval.upper, min(best, interval.upper, helped)
        robust = min(near, max(true, *(one.lower for one in ends)))
    bounds = near, helped, robust, true
    return RobustController(
        rivals.chosen, objective, interval, *bounds, tuple(solved), rivals.cut, result, solved=solved
    )


def corners_of(parameters: Parameters) -> list[Point]:
    """Points of the domain: its middle, and corners of its box that it holds, so many as are looked at."""
    bounds = zip(parameters.lower, parameters.upper, strict=True)
    ends = [sorted({Fraction(low), Fraction(high)}) for low, high in bounds]
    middle = tuple((own[0] + own[-1]) / 2 for own in ends)
    corners: Sequence[Point] = ()
    if math.prod(len(own) for own in ends) <= MOST_CORNERS:
        corners = list(itertools.product(*ends))
    points = [point for point in (middle, *corners) if parameters.contains(point)]
    if not points:
        raise InputError(
            "neither the middle nor a corner of the parameters' box lies in the domain",
            hint="evaluate a controller, `policy`",
        )
    return list(dict.fromkeys(points))


def point_of(model: IntervalMDP, value: FloatArray | None = None) -> Point:
    """A probability per transition within the bounds: in the middle, or worst for values of states."""
    rows = model if model.factored is None else model.factored
    chance = _chances(rows.structure, rows.lower, rows.upper, value)
    if model.factored is None:
        return tuple(chance)
    own, game = model.structure, rows.structure
    joint: list[Fraction] = []
    for choice in range(own.choices):
        ends: dict[int, Fraction] = {}
        queue = [(choice, Fraction(1))]
        for row, mass in queue:
            for t in range(int(game.transition_start[row]), int(game.transition_start[row + 1])):
                after = int(game.successor[t])
                if after >= own.states:
                    queue.append((int(game.choice_start[after]), mass * chance[t]))
                else:
                    ends[after] = ends.get(after, Fraction(0)) + mass * chance[t]
        span = slice(own.transition_start[choice], own.transition_start[choice + 1])
        joint += [ends.pop(after, Fraction(0)) for after in own.successor[span].tolist()]
        if any(ends.values()):
            raise InputError(f"{own.choice_name(choice)}: no distribution of its commands fits the bounds")
    return tuple(joint)


def _chances(
    structure: Structure, lower: FloatArray, upper: FloatArray, value: FloatArray | None
) -> list[Fraction]:
    chance: list[Fraction] = []
    for begin, end in itertools.pairwise(structure.transition_start.tolist()):
        low, high = lower[begin:end], upper[begin:end]
        room = high - low
        rest = max(1.0 - float(low.sum()), 0.0)
        if value is None:
            wanted = low + room * min(rest / max(float(room.sum()), 1e-300), 1.0)
        else:
            wanted = low.copy()
            for t in np.argsort(value[structure.successor[begin:end]], kind="stable"):
                step = min(rest, float(room[t]))
                wanted[t] += step
                rest -= step
        chance += _short(low, high, wanted)
    return chance


def _short(low: FloatArray, high: FloatArray, wanted: FloatArray) -> list[Fraction]:
    """A distribution within the bounds next to the one that is wanted, with few digits where that goes."""
    last = int(np.argmax(high - low))
    for digits in DIGITS:
        row = [Fraction(round(value * 10**digits), 10**digits) for value in wanted.tolist()]
        row[last] = 1 - (sum(row) - row[last])
        if all(a <= float(p) <= b for a, p, b in zip(low.tolist(), row, high.tolist(), strict=True)):
            return row
    ends = [(Fraction(repr(a)), Fraction(repr(b))) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    least, most = sum(a for a, _ in ends), sum(b for _, b in ends)
    if least >= 1 or most <= 1:  # by rounding alone, or the model was refused
        total = least if least >= 1 else most
        return [(a if least >= 1 else b) / total for a, b in ends]
    return [a + (b - a) * (1 - least) / (most - least) for a, b in ends]
