"""Backward passes over acyclic models by several workers, level by level: see `Kernel.walk`.

A state's backup reads states of earlier stages only, so every worker's part of a stage is a plain backward
pass. Loaded where several threads are at work (`tightrope.numerics.lockstep`).
"""

from __future__ import annotations

from tightrope.ambiguity.records import ModelArrays, NatureArrays, Scratch
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.lockstep import ENDED, WAITING, publish, wait_for_all
from tightrope.solver.equations.system import SystemArrays
from tightrope.solver.kernels import backups, rectangular_backups
from tightrope.solver.kernels.kernel import WalkArrays

UNTOLD = 2
"""Some support could not be told (`solver.nature.exact_pouring.pour_safely`)."""

Bounds = tuple[FloatArray, FloatArray, OffsetArray]
"""Lower and upper bounds, and the policy."""

_pass_over_intervals = backups.backward_pass
_pass_over_regions = rectangular_backups.backward_pass


@kernel
def walk_intervals(
    model: ModelArrays,
    scratch: Scratch,
    system: SystemArrays,
    walk: WalkArrays,
    bounds: Bounds,
    exactly: bool | None,
) -> int:
    states, stages, progress, at, worker = walk
    low, high, policy = bounds
    while at[0] < len(stages):
        k = at[0]
        if not wait_for_all(progress, k):
            return WAITING
        part = states[stages[k, worker] + at[1] : stages[k, worker + 1]]
        done = _pass_over_intervals(model, scratch, system, part, low, high, policy, exactly)
        if done < len(part):
            at[1] += done
            return UNTOLD
        at[0], at[1] = k + 1, 0
        publish(progress, worker, k + 1)
    return ENDED


@kernel
def walk_regions(nature: NatureArrays, system: SystemArrays, walk: WalkArrays, bounds: Bounds) -> int:
    states, stages, progress, at, worker = walk
    low, high, policy = bounds
    while at[0] < len(stages):
        k = at[0]
        if not wait_for_all(progress, k):
            return WAITING
        part = states[stages[k, worker] : stages[k, worker + 1]]
        _pass_over_regions(nature, system, part, low, high, policy)
        at[0] = k + 1
        publish(progress, worker, k + 1)
    return ENDED
