"""What a policy would be worth if a parameter were known: values on a grid, for the slider of a report.

One parameter moves as far as the domain lets it; the others stay in the middle of what the data leave of
them (pulled towards the centre of the domain where constraints leave that point out). At each point the model
is an ordinary one, and every policy is solved there as elsewhere. Such a value is the middle of verified
bounds that are as close as `PRECISION`; where the solver does not come so close there is none. It is no
guarantee: nobody knows the parameters. What the data say is the interval of the parameter, which the page
marks.

A grid has points over the whole domain and over that interval, so that a narrow interval is seen, too. Work
is bounded by counts, never by seconds: a large model has fewer parameters shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from tightrope.errors import TightropeError
from tightrope.io.interval import Interval
from tightrope.late import dataclass
from tightrope.model.parameters import Parameters, domain_vertices
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.report.style import NumberTable, number
from tightrope.solver.solve import solve

MOST_TRANSITIONS = 200_000
MOST_PARAMETERS = 12
MOST_WORK = 20_000_000
"""Transitions of all models that are solved, together."""
OVER_DOMAIN, OVER_INTERVAL = 9, 7
PRECISION, MOST_ITERATIONS = 1e-5, 20_000
Values = list[float | str | None]


@dataclass(frozen=True)
class ValueCurve:
    """A parameter: its interval, the grid, and the values of each policy there ("inf" where one is
    infinite, None where there is no answer)."""

    name: str
    interval: Interval
    grid: list[float]
    values: dict[str, Values]

    @property
    def effect(self) -> float:
        """How much the value of some policy changes over the interval."""
        at = [i for i, x in enumerate(self.grid) if self.interval.lower <= x <= self.interval.upper]
        columns = [
            [value for i in at if isinstance(value := column[i], float)] for column in self.values.values()
        ]
        return max((max(column) - min(column) for column in columns if column), default=0.0)


@dataclass(frozen=True)
class WhatIf:
    """The curves of all parameters, where the others stay; or why there are none."""

    curves: tuple[ValueCurve, ...] = ()
    at: Mapping[str, float] | None = None
    remark: str = ""

    def tables(self) -> list[NumberTable]:
        """The numbers behind the picture, a table per parameter."""
        return [
            NumberTable(
                f"Values over {curve.name} as a table",
                [curve.name, *curve.values],
                [
                    [number(x), *(_shown(column[i]) for column in curve.values.values())]
                    for i, x in enumerate(curve.grid)
                ],
            )
            for curve in self.curves
        ]


def _shown(value: float | str | None) -> str:
    if value is None:
        return "no value"
    return "∞" if isinstance(value, str) else number(value)


def is_too_large(transitions: int) -> bool:
    """Whether a model is left out for its size."""
    return transitions > MOST_TRANSITIONS


TOO_LARGE = f"left out: the model has more than {MOST_TRANSITIONS:,} transitions"


def what_if(problem: Problem, policies: Mapping[str, Policy], known: Mapping[str, Interval]) -> WhatIf:
    """The values of `policies` around what is `known` of the parameters."""
    model = problem.model
    assert isinstance(model, ParametricMDP)
    if is_too_large(model.transitions):
        return WhatIf(remark=TOO_LARGE)
    if problem.lift is not None:
        return WhatIf(remark="left out: the policies have a memory")
    if model.parameters.free or any(name not in known for name in model.parameters.names):
        return WhatIf(remark="left out: whole distributions are unknown, and no single number moves alone")
    centre = _centre(model.parameters, known)
    if centre is None:
        return WhatIf(remark="left out: no point inside the domain is at hand to hold the others at")
    curves = []
    per_parameter = model.transitions * (OVER_DOMAIN + OVER_INTERVAL) * max(len(policies), 1)
    most = max(min(MOST_PARAMETERS, MOST_WORK // per_parameter), 1)
    for i, name in enumerate(model.parameters.names[:most]):
        low, high = _reach(model.parameters, centre, i)
        if low >= high:
            continue
        ends = known[name]
        over = np.linspace(float(low), float(high), OVER_DOMAIN)
        inside = np.clip(np.linspace(ends.lower, ends.upper, OVER_INTERVAL), over[0], over[-1])
        grid = np.union1d(over, inside)
        columns: dict[str, Values] = {policy: [] for policy in policies}
        for x in grid:
            moved = min(max(Fraction(float(x)), low), high)
            values = _values(problem, model, policies, (*centre[:i], moved, *centre[i + 1 :]))
            for policy, value in values.items():
                columns[policy].append(value)
        if any(isinstance(value, float) for column in columns.values() for value in column):
            curves.append(ValueCurve(name, ends, [float(x) for x in grid], columns))
    if not curves:
        return WhatIf(remark="left out: no parameter can move alone, or no value is finite where it moves")
    curves.sort(key=lambda curve: -curve.effect)
    at = {name: float(x) for name, x in zip(model.parameters.names, centre, strict=True)}
    hidden = len(model.parameters.names) - most
    verb = "parameter is" if hidden == 1 else "parameters are"
    return WhatIf(tuple(curves), at, f"{hidden} more {verb} not shown." if hidden > 0 else "")


def _values(
    problem: Problem,
    model: ParametricMDP,
    policies: Mapping[str, Policy],
    point: tuple[Fraction, ...],
) -> Mapping[str, float | str | None]:
    there = model.instantiate(point)
    values: dict[str, float | str | None] = {}
    for name, policy in policies.items():
        try:
            solution = solve(
                there, problem.objective, policy=policy, precision=PRECISION, iterations=MOST_ITERATIONS
            )
        except TightropeError:  # at an end of the domain the question may have no meaning
            values[name] = None
            continue
        low, high = float(solution.lower[there.initial]), float(solution.upper[there.initial])
        close = solution.is_certified or high - low <= PRECISION * max(abs(low), abs(high))
        values[name] = None if not close else 0.5 * (low + high) if math.isfinite(high) else "inf"
    return values


def _reach(parameters: Parameters, centre: tuple[Fraction, ...], i: int) -> tuple[Fraction, Fraction]:
    """How far parameter `i` can move in the domain while the others stay."""
    low, high = parameters.lower[i], parameters.upper[i]
    for constraint in parameters.constraints:
        slope, room = constraint.coefficients[i], -constraint.excess(centre)
        if slope > 0 or (slope and constraint.is_equality):
            high = min(high, centre[i] + room / slope)
        if slope < 0 or (slope and constraint.is_equality):
            low = max(low, centre[i] + room / slope)
    return low, high


def _centre(parameters: Parameters, known: Mapping[str, Interval]) -> tuple[Fraction, ...] | None:
    """The middle of what is known, or the nearest point of the domain towards its own centre."""
    middle = [Fraction(0.5 * (known[name].lower + known[name].upper)) for name in parameters.names]
    if parameters.contains(middle):
        return tuple(middle)
    vertices = domain_vertices(parameters)
    if not vertices:
        return None
    inner = [Fraction(sum(column), len(vertices)) for column in zip(*vertices, strict=True)]
    for share in range(15, -1, -1):
        point = tuple((share * m + (16 - share) * c) / 16 for m, c in zip(middle, inner, strict=True))
        if parameters.contains(point):
            return point
    return None
