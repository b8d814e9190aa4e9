"""Values of a policy if a parameter were known, at points of the region, for a slider.

Along a track (`tightrope.regions.bounds`) one parameter moves within the region, and the others follow the
best fit. A value is the middle of verified bounds that are within `PRECISION`, and absent otherwise. It is no
guarantee. It lies in the policy's certified interval if that follows from the region alone; points outside an
interval that returns or bets made narrower are left out. Work is bounded by counts, never by seconds: a large
model shows fewer parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tightrope.errors import TightropeError
from tightrope.io.coding import Interval
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.regions.bounds import MOST_TRACKED, MOST_TRACKS, POINTS, Tracks, point_of
from tightrope.report.style import NumberTable, number
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import solve_equalities

MOST_WORK = 20_000_000
"""Transitions of all models that are solved, together."""
PRECISION, MOST_ITERATIONS = 1e-5, 20_000
Values = list[float | str | None]


@dataclass(frozen=True)
class ValueCurve:
    """A parameter's values on a track, the others there, and each policy's values (None: no answer)."""

    name: str
    grid: list[float]
    others: list[dict[str, float]]
    values: dict[str, Values]

    @property
    def effect(self) -> float:
        """How much the value of some policy changes."""
        columns = [[value for value in column if isinstance(value, float)] for column in self.values.values()]
        return max((max(column) - min(column) for column in columns if column), default=0.0)


@dataclass(frozen=True)
class WhatIf:
    """The curves of all parameters, the one that matters most first; or why there are none."""

    curves: tuple[ValueCurve, ...] = ()
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
    return transitions > MOST_TRACKED


TOO_LARGE = f"left out: the model has more than {MOST_TRACKED:,} transitions"
NO_TRACKS = "left out: the region has no parameters to vary"
REFUTED = "left out: the data refute the model"


def what_if(
    problem: Problem, policies: Mapping[str, Policy], tracks: Tracks, certified: Mapping[str, Interval]
) -> WhatIf:
    """Values of `policies` at points of the region, without those outside of what is `certified`."""
    model = problem.model
    assert isinstance(model, ParametricMDP)
    if is_too_large(model.transitions):
        return WhatIf(remark=TOO_LARGE)
    if problem.lift is not None:
        return WhatIf(remark="left out: the policies have a memory")
    names, (free, substitution) = model.parameters.names, solve_equalities(model.parameters)
    if not tracks or not set(tracks) <= set(names):
        return WhatIf(remark=NO_TRACKS)
    curves = []
    per_parameter = model.transitions * POINTS * max(len(policies), 1)
    most = max(min(MOST_TRACKS, MOST_WORK // per_parameter), 1)
    for name in list(tracks)[:most]:
        columns: dict[str, Values] = {policy: [] for policy in policies}
        grid, others = [], []
        for t in tracks[name]:
            if len(t) != len(free) or not all(map(math.isfinite, t)):
                continue  # of a file that was changed
            point = point_of(substitution, t)
            if not model.parameters.contains(point):
                continue
            values = _values(problem, model, policies, point)
            if not all(_agrees(value, certified.get(policy)) for policy, value in values.items()):
                continue
            at = {other: float(x) for other, x in zip(names, point, strict=True)}
            grid.append(at.pop(name))
            others.append(at)
            for policy, value in values.items():
                columns[policy].append(_within(value, certified.get(policy)))
        if any(isinstance(value, float) for column in columns.values() for value in column):
            curves.append(ValueCurve(name, grid, others, columns))
    if not curves:
        return WhatIf(remark="left out: no value is finite where a parameter moves")
    curves.sort(key=lambda curve: -curve.effect)
    hidden = len(names) - most
    verb = "parameter is" if hidden == 1 else "parameters are"
    return WhatIf(tuple(curves), f"{hidden} more {verb} not shown." if hidden > 0 else "")


def _agrees(value: float | str | None, interval: Interval | None) -> bool:
    """Whether a value lies in what is certified, as far as it is known."""
    if not isinstance(value, float) or interval is None:
        return value is None or interval is None or interval.upper == math.inf
    slack = 2.0 * PRECISION * abs(value)
    return interval.lower - slack <= value <= interval.upper + slack


def _within(value: float | str | None, interval: Interval | None) -> float | str | None:
    """A value without the error of the solver beyond what is certified."""
    if not isinstance(value, float) or interval is None:
        return value
    return min(max(value, interval.lower), interval.upper)


def _values(
    problem: Problem, model: ParametricMDP, policies: Mapping[str, Policy], point: tuple[Fraction, ...]
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
