"""Controllers that see observations, over a domain of parameters: one with a guarantee, and two bounds.

Let V(c, θ) be the value of controller c at θ (maximised; for minima all turns round). Three numbers differ:

* what one controller guarantees, min over θ of V(c, θ): it is evaluated over the whole domain on its chain;
* the *robust optimum*, the best guarantee: max over c of min over θ of V(c, θ). It is at most the optimum
  at any one point, max over c of V(c, θ₀), which is bounded by beliefs at θ₀ (`tightrope.beliefs`);
* the *true optimum*, max over c of V(c, θ*) at the unknown true θ*. No bound at another point holds for it,
  as beliefs depend on θ. It is at most what a policy that sees everything reaches when nature helps it,
  over all of the domain.

The second is at most the third, and their bounds must not be mistaken for each other: the better sensor may
be the true one. The search decides which controller it is, and at which points is looked; nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tightrope.beliefs.solve import evaluate, solve_partial
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.learning.observed import controlled
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, Controller
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import interval_text
from tightrope.problem import Problem

ROUNDS = 3
"""So often a rival is looked for where the best controller so far does worst."""

MOST_CORNERS = 64


@dataclass(frozen=True, eq=False, repr=False)
class RobustController(Record):
    """A controller and what it is worth at every parameter vector of the domain, `interval`; `guarantee` is
    its near end. No controller guarantees more than `robust_optimum`, and none does better than
    `true_optimum` at the true parameters, whatever they are. `result` is the evaluation.
    """

    controller: Controller
    interval: Interval
    guarantee: float
    robust_optimum: float
    true_optimum: float
    points: tuple[tuple[Fraction, ...], ...]
    result: Any = field(repr=False)

    def _title_(self) -> str:
        return f"RobustController: {interval_text(*self.interval)}"

    def _facts_(self) -> Facts:
        return [
            ("guarantee", f"{self.guarantee:.6g}"),
            ("robust optimum", f"not beyond {self.robust_optimum:.6g} ({len(self.points)} points looked at)"),
            ("true optimum", f"not beyond {self.true_optimum:.6g}"),
            ("controller", f"{self.controller.nodes:,} nodes"),
        ]


def robust_controller(
    problem: Problem, over_domain: Callable[[Problem], Any], precision: float, seconds: float
) -> RobustController:
    """The controller with the best guarantee found; `over_domain` evaluates a chain over the domain."""
    pomdp, objective = problem.model, problem.query.objective
    assert isinstance(pomdp, POMDP) and isinstance(pomdp.model, ParametricMDP)
    corners = corners_of(pomdp.model.parameters)
    sign = 1.0 if objective.maximises else -1.0
    tried: dict[tuple[Fraction, ...], Any] = {}

    def worth(controller: Controller, point: tuple[Fraction, ...]) -> float:
        low, high = evaluate(pomdp, objective, controller, point, 1e-6).bounds
        return sign * (low + high) / 2

    chosen, guaranteed = None, {corners[0]: -math.inf}
    for _ in range(1 + ROUNDS):
        worst = min(guaranteed, key=lambda point: guaranteed[point])
        if worst in tried:
            break
        tried[worst] = solved = solve_partial(
            pomdp, objective, point=worst, precision=precision, seconds=seconds / (1 + ROUNDS)
        )
        before = min(guaranteed.values())
        for rival in (*solved.simple, solved.controller):
            theirs = {point: worth(rival, point) for point in corners}
            if chosen is None or min(theirs.values()) > min(guaranteed.values()):
                chosen, guaranteed = rival, theirs
        if not min(guaranteed.values()) > before:
            break
    assert chosen is not None
    result = over_domain(controlled(problem, chosen))
    interval = result.interval
    if objective.maximises:
        robust = min(solved.upper for solved in tried.values())
        near, true = interval.lower, max(result.optimistic_value, interval.lower)
    else:
        robust = max(solved.lower for solved in tried.values())
        near, true = interval.upper, min(result.optimistic_value, interval.upper)
    return RobustController(chosen, interval, near, robust, true, tuple(tried), result)


def corners_of(parameters: Parameters) -> list[tuple[Fraction, ...]]:
    """Points of the domain: its middle, and corners of its box that it holds, so many as are looked at."""
    bounds = zip(parameters.lower, parameters.upper, strict=True)
    ends = [sorted({Fraction(low), Fraction(high)}) for low, high in bounds]
    middle = tuple((own[0] + own[-1]) / 2 for own in ends)
    corners: Sequence[tuple[Fraction, ...]] = ()
    if math.prod(len(own) for own in ends) <= MOST_CORNERS:
        corners = list(itertools.product(*ends))
    points = [point for point in (middle, *corners) if parameters.contains(point)]
    if not points:
        raise InputError(
            "neither the middle nor a corner of the parameters' box lies in the domain",
            hint="evaluate a controller, `policy`",
        )
    return list(dict.fromkeys(points))
