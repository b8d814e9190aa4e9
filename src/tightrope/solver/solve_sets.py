"""`solve_sets`: the value of learned sets, whatever their kind, with the kernel that fits.

Rectangular sets in which no choice has three unknown successors are their intervals, exactly: with two, p is
a number in an interval (METHODS §5). They are solved as such.

The bound that carries the guarantee is verified by the kernel. The one on the other side says how closely
the sets were solved; for rectangular sets of a cyclic model whose graph nature could change, graph analysis
may have read it from a nature with more power (`solver.kernels.rectangular_kernel`). It is then computed
anew as the value against nature's own answer to the guaranteed bound, fixed: whatever nature commits to
bounds what it can achieve.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.ambiguity.region_shape import joint_choices
from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.model.graph.components import strongly_connected_components
from tightrope.model.objective import Direction, Objective
from tightrope.model.policy import PolicyGiven
from tightrope.numerics.arrays import FloatArray
from tightrope.solver.kernels.factored_kernel import FactoredKernel
from tightrope.solver.kernels.interval_kernel import IntervalKernel
from tightrope.solver.kernels.kernel import Kernel
from tightrope.solver.kernels.rectangular_kernel import RectangularKernel
from tightrope.solver.solution import Solution, Status, widest
from tightrope.solver.solve import Limits, solve
from tightrope.solver.workspace import Workspace


def kernel_of(sets: Sets) -> Kernel:
    """The kernel of any sets; build it once and solve with it as often as needed."""
    if sets.kind is SetsKind.RECTANGULAR and joint_choices(sets).any():
        return RectangularKernel.of(sets)
    return IntervalKernel.of(sets.interval_model())


def solve_sets(
    sets: Sets | Kernel | FactoredKernel,
    objective: Objective,
    *,
    policy: PolicyGiven | None = None,
    precision: float = 1e-6,
    relative: bool = True,
    limits: Limits | None = None,
    device: str = "cpu",
    threads: int | None = 1,
    start: FloatArray | None = None,
    workspace: Workspace | None = None,
) -> Solution:
    """Verified bounds over the sets (or their kernel); options as for `solve`, on one thread unless said."""
    kernel = kernel_of(sets) if isinstance(sets, Sets) else sets
    workspace = workspace or Workspace(device, threads)
    solution = solve(
        kernel,
        objective,
        policy=policy,
        precision=precision,
        relative=relative,
        limits=limits,
        start=start,
        workspace=workspace,
    )
    if not isinstance(kernel, RectangularKernel) or objective.is_bounded:
        return solution
    support = kernel.intervals.support
    if support.is_constant or strongly_connected_components(support).is_acyclic:
        return solution
    return _against_answers(solution, kernel, policy, limits, workspace)


def _against_answers(
    solution: Solution,
    kernel: RectangularKernel,
    policy: PolicyGiven | None,
    limits: Limits | None,
    workspace: Workspace,
) -> Solution:
    """The side without guarantee replaced by the value of the model that nature's answers fix."""
    objective = solution.objective
    minimises = objective.nature is Direction.MIN
    guaranteed = solution.fixpoint_lower if minimises else solution.fixpoint_upper
    fixed = IntervalKernel.plain(kernel.structure, kernel.answer(guaranteed.copy(), not minimises))
    other = solve(
        fixed,
        objective,
        policy=policy,
        precision=solution.precision,
        relative=solution.relative,
        limits=limits,
        workspace=workspace,
    )
    if minimises != objective.complement:
        lower, upper = solution.lower, other.upper
    else:
        lower, upper = other.lower, solution.upper
    inner = replace(solution, fixpoint_upper=other.fixpoint_upper) if minimises else solution
    inner = inner if minimises else replace(solution, fixpoint_lower=other.fixpoint_lower)
    gap = widest(np.minimum(lower, upper), upper, solution.relative)
    failed = Status.PRECISION_LIMIT if solution.is_certified else solution.status
    status = Status.CERTIFIED if gap <= solution.precision else failed
    return replace(
        inner, lower=lower, upper=upper, gap=gap, status=status, seconds=solution.seconds + other.seconds
    )
