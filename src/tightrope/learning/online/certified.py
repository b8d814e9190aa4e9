"""What one look at growing data computes: the robust policy with its guarantee, the other end of its interval
where that is asked for, and what the next look may keep.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tightrope.learning.bet_policy import BetPolicy
from tightrope.learning.coupled import Coupler
from tightrope.learning.online.update import Update
from tightrope.learning.policies import PolicySolver, maximises
from tightrope.learning.result import Interval
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.nearby import Nearby
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Region, RegionKind
from tightrope.solver.kernels.kernel import Kernel
from tightrope.solver.solution import Solution
from tightrope.statistics.estimates import EventIntervals


@dataclass(frozen=True, eq=False)
class Robust:
    """A policy, its guarantee, values to look from next time, and what stopped short.

    `interval` is all that the sets leave of the policy's value; the guarantee is one end of it.
    """

    policy: Policy
    guarantee: float
    values: FloatArray
    stopped: tuple[str, ...]
    interval: Interval | None = None


@dataclass(frozen=True, eq=False)
class Computed:
    """An update, its values, digests of the intervals and sets it rests on, and where the region is."""

    update: Update
    values: dict[str, FloatArray]
    digest: str
    near: Nearby | None


def certify_robust(
    solver: PolicySolver,
    start: FloatArray | None,
    coupled_gap: float | None,
    with_interval: bool,
    betted: BetPolicy | None = None,
) -> Robust:
    """Solve for the robust policy from the values of an earlier look; `coupled_gap` where sets are coupled.

    Coupled sets have an interval in any case, others where it is asked for: it takes one more solve.
    """
    best = maximises(solver.objective)
    initial = solver.kernel.structure.initial
    if coupled_gap is None and not with_interval:
        found = solver.find_guaranteed(start)
        end = float((found.lower if best else found.upper)[initial])
        stopped = () if found.is_certified else (found.status.value,)
        return Robust(found.policy.at(0), end, middle(found), stopped)
    rectangular = solver.robust(start)
    values = middle(rectangular.solutions[0 if best else 1])
    value = rectangular
    if coupled_gap is not None:
        value, _ = Coupler(solver, coupled_gap).robust(rectangular, None if betted is None else betted.policy)
    interval = value.interval
    reasons = [s.status.value for s in value.solutions if not s.is_certified]
    reasons += [value.stopped] if coupled_gap is not None and value.stopped is not None else []
    guarantee = interval.lower if best else interval.upper
    return Robust(value.policy.at(0), guarantee, values, tuple(reasons), interval)


def middle(solution: Solution) -> FloatArray:
    """Values to look from: not finite where nothing is known."""
    with np.errstate(invalid="ignore"):
        found: FloatArray = 0.5 * (solution.lower + solution.upper)
    return found


def digest_of(bounds: Kernel | EventIntervals) -> str:
    """Stands for the intervals."""
    found = hashlib.sha256(np.ascontiguousarray(bounds.lower).tobytes())
    found.update(np.ascontiguousarray(bounds.upper).tobytes())
    return found.hexdigest()


def near_of(region: Region | None, before: Nearby | None) -> Nearby | None:
    if isinstance(region, Polytope) and region.kind is RegionKind.POLYTOPE:
        return Nearby.around(region, before)
    return None
