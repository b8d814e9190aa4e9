"""Coupled values: the interval of a policy over one parameter vector for the whole run.

The true system uses the same parameters at every choice. So the interval of a policy over all instantiations
of the region, one for the whole run, contains its true value; it is never wider than the interval over
rectangular sets, which it starts from. A region of many coordinates is cut along the gradients of the
policies that are evaluated (`tightrope.regions.likelihood`), which takes nothing away from the statistical
region and therefore costs no confidence, whatever the policies are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tightrope.ambiguity.sets import Sets, rectangular
from tightrope.coupled.result import CoupledValue
from tightrope.coupled.synthesis import CoupledSynthesis, find_coupled_policy
from tightrope.coupled.taylor import ValueGradient
from tightrope.coupled.value import CoupledLimits, bound_coupled_value
from tightrope.io.results import Interval
from tightrope.learning.result import PolicyValue
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.bounds import parameter_box
from tightrope.regions.likelihood import cut_along, wants_value_cuts
from tightrope.regions.polytope import Polytope
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser

if TYPE_CHECKING:
    from tightrope.learning.pipeline import PolicySolver, Prepared

COUPLED_SECONDS = 60.0
"""For the search of each coupled value where no time limit is given: what it has found then is certified, and
the status says that it stopped.
"""


def couple_robust(
    solver: PolicySolver, rectangular: PolicyValue, betted: Policy | None = None
) -> tuple[PolicyValue, CoupledSynthesis | None]:
    """The policy with the best coupled guarantee found; the rectangular-robust one is a candidate, and so
    is one that was bet on.
    """
    if solver.objective.depends_on_step:
        _note_steps(solver, "robust")
        return rectangular, None
    solver.progress("solve: the robust policy over the coupled set")
    synthesis = find_coupled_policy(
        solver.sets,
        solver.objective,
        gap=solver.options.coupled_gap,
        limits=_limits(solver),
        robust=rectangular.policy,
        more=[] if betted is None or not betted.is_deterministic else [betted],
    )
    if synthesis.policy != rectangular.policy:
        rectangular = solver.evaluate(synthesis.policy)
    return _narrowed(solver, rectangular, synthesis.value), synthesis


def couple(solver: PolicySolver, rectangular: PolicyValue) -> PolicyValue:
    """A given policy's value over the coupled set."""
    if rectangular.policy.depends_on_step:
        _note_steps(solver, "given")
        return rectangular
    solver.progress("solve: the given policy over the coupled set")
    value = bound_coupled_value(
        solver.sets,
        solver.objective,
        rectangular.policy,
        gap=solver.options.coupled_gap,
        limits=_limits(solver),
        rectangular=rectangular.solutions,
    )
    return _narrowed(solver, rectangular, value)


def _note_steps(solver: PolicySolver, which: str) -> None:
    solver.notes.append(
        f"the {which} policy depends on the step, and coupled values are those of policies that do "
        "not: its interval is the one over rectangular sets"
    )


def _narrowed(solver: PolicySolver, rectangular: PolicyValue, value: CoupledValue) -> PolicyValue:
    if value.reason:
        solver.notes.append(f"coupled set: {value.status.value}; {value.reason}")
    lower = max(value.lower, rectangular.interval.lower)
    upper = min(value.upper, rectangular.interval.upper)
    return replace(rectangular, interval=Interval(lower, upper), coupled=value)


def _limits(solver: PolicySolver) -> CoupledLimits:
    left = solver.deadline - time.perf_counter()
    return CoupledLimits(seconds=max(left, 0.0) if math.isfinite(left) else COUPLED_SECONDS)


def cut_along_values(
    prepared: Prepared, objective: Objective, policies: Sequence[Policy], differences: bool = False
) -> Prepared | None:
    """The region cut along the policies' values, and along their `differences` from the first, with the
    rectangular sets of it; None where it needs none.

    A region that turns out empty only now is left as it was: the cuts show what was true before.
    """
    region, model = prepared.region, prepared.sets.model
    if not isinstance(region, Polytope) or not wants_value_cuts(region):
        return None
    functions = region.coordinates.functions(model.expressions)
    directions = _directions(region, functions, prepared.sets, objective, policies)
    if differences:
        directions = np.concatenate([directions, directions[1:] - directions[:1]])
    if len(directions) == 0:
        return None
    cut = cut_along(region, functions, directions)
    if cut is region or cut.emptiness.is_empty:
        return None
    sets = rectangular(cut, model)
    return replace(prepared, region=cut, sets=sets, box=parameter_box(cut))


def _directions(
    region: Polytope,
    functions: AffineFunctions,
    sets: Sets,
    objective: Objective,
    policies: Sequence[Policy],
) -> FloatArray:
    """The gradients at the estimate, one per policy that takes a choice per state and has a finite value."""
    assert region.evidence is not None
    x = LikelihoodMaximiser.of(region.coordinates, functions).lifted(region.evidence.estimate)
    gradients: list[FloatArray] = []
    for policy in policies:
        if policy.depends_on_step:
            continue
        value = ValueGradient.of(sets.model, objective, policy, functions)
        gradient = None if value is None else value.at(x)
        if gradient is not None:
            gradients.append(gradient)
    return np.array(gradients).reshape(-1, region.coordinates.size)
