"""Backward passes over acyclic models by several workers, level by level.

A state's backup reads states of earlier stages only, so every worker's part of a stage is a plain backward
pass. `BellmanOperator.walk` loads this file, and numba, only for several threads.
"""

from __future__ import annotations

from tightrope.ambiguity.rectangular_inner import RegionArrays
from tightrope.numerics.jit import kernel
from tightrope.numerics.lockstep import ENDED, WAITING, publish, wait_for_all
from tightrope.solver.bellman.backups import UNTOLD, Bounds, LoopArrays, Walk, backward_pass
from tightrope.solver.equations.system import SystemArrays


@kernel
def walk_stages(
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    walk: Walk,
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
        done = backward_pass(arrays, region, system, part, low, high, policy, exactly)
        if done < len(part):
            at[1] += done
            return UNTOLD
        at[0], at[1] = k + 1, 0
        publish(progress, worker, k + 1)
    return ENDED
