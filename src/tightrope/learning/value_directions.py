"""Along which directions of the parameters the values of policies change: where a region should be tight.

The gradients of the policies that are evaluated, at the estimate of the region's evidence. A region of many
coordinates is cut along them (`tightrope.regions.value_cuts`), which takes nothing away from the statistical
region and therefore costs no confidence, whatever the policies are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tightrope.ambiguity.sets import Sets, rectangular
from tightrope.coupled.gradient import ValueGradient
from tightrope.learning.stages import Prepared
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.bounds import parameter_box
from tightrope.regions.polytope import Polytope
from tightrope.regions.value_cuts import cut_along, wants_value_cuts
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser


def cut_along_values(prepared: Prepared, objective: Objective, policies: Sequence[Policy]) -> Prepared | None:
    """The region cut along the policies' values, with the rectangular sets of it; None where it needs none.

    A region that turns out empty only now is left as it was: the cuts show what was true before.
    """
    region, model = prepared.region, prepared.sets.model
    if not isinstance(region, Polytope) or not wants_value_cuts(region):
        return None
    functions = region.coordinates.functions(model.expressions)
    directions = _directions(region, functions, prepared.sets, objective, policies)
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
    found: list[FloatArray] = []
    for policy in policies:
        if policy.depends_on_step:
            continue
        value = ValueGradient.of(sets.model, objective, policy, functions)
        gradient = None if value is None else value.at(x)
        if gradient is not None:
            found.append(gradient)
    return np.array(found).reshape(-1, region.coordinates.size)
