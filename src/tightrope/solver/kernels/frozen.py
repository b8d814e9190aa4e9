"""Solving a block while the agent's and nature's choices are frozen: cheap sweeps, or one sparse
factorisation.

With choices frozen a block is a linear system x = reward + shift + W·x + boundary. Solving it, exactly or
roughly, between robust sweeps is (modified) policy iteration. It is an accelerator and nothing more: what
comes out is a candidate until `tightrope.solver.iteration.blocks` has verified it.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import Block, BlockArrays, Rows, System

LARGEST_FACTORISATION = 40_000
"""Groups in a block beyond which sweeps are the only accelerator."""


def sweep_frozen(
    system: System,
    block: Block,
    rows: Rows,
    shift: FloatArray,
    values: FloatArray,
    unit: float,
    most: int,
    tolerance: float,
) -> tuple[int, float]:
    """Up to `most` Gauss–Seidel sweeps, fewer once the relative change is within `tolerance`: (sweeps,
    last change).
    """
    within = float(system.floor), float(system.ceiling)
    return _sweep_rows(within, block.arrays, rows, shift, values, unit, most, tolerance)


@kernel
def _sweep_rows(
    within: tuple[float, float],
    block: BlockArrays,
    rows: Rows,
    shift: FloatArray,
    values: FloatArray,
    unit: float,
    most: int,
    tolerance: float,
) -> tuple[int, float]:
    floor, ceiling = within
    group_start, member, _, _ = block
    row_start, row_end, column, weight, self_weight, reward = rows[:6]
    groups = len(group_start) - 1
    is_lone = len(member) == groups
    change = 0.0
    for sweep in range(most):
        change = 0.0
        for g in range(groups):
            if self_weight[g] >= 1.0:
                continue
            x = reward[g] + shift[g]
            for i in range(np.uint64(row_start[g]), np.uint64(row_end[g])):
                x += weight[i] * values[np.uint32(column[i])]
            if self_weight[g] > 0.0:
                x /= 1.0 - self_weight[g]
            x = min(max(x, floor), ceiling)
            s = np.uint32(member[g if is_lone else group_start[g]])
            old = values[s]
            if x != old:
                scale = max(abs(x), unit)
                if abs(x - old) > change * scale:  # rarely true, and divisions are slow
                    change = abs(x - old) / scale
                values[s] = x
                if not is_lone:
                    for m in range(group_start[g] + 1, group_start[g + 1]):
                        values[member[m]] = x
        if change <= tolerance:
            return sweep + 1, change
    return most, change


def solve_frozen(
    system: System, block: Block, rows: Rows, shift: FloatArray, values: FloatArray, place: IndexArray
) -> float:
    """Solve the frozen equations by sparse LU and store the solution; 0 (and nothing stored) if they have
    none, else the factors' entries per entry of the equations.

    `place` is scratch over all states. Equations without a solution belong to a frozen policy that never
    stops."""
    from scipy import sparse
    from scipy.sparse.linalg import splu

    if np.any(rows.self_weight >= 1.0):  # a group that stays for certain: singular, and SuperLU would print
        return 0.0
    groups = len(block)
    place[block.member] = np.repeat(np.arange(groups, dtype=np.int32), np.diff(block.group_start))
    length = rows.row_end - rows.row_start[:-1]
    row = np.repeat(np.arange(groups, dtype=np.int32), length)
    entry = (
        np.arange(len(row))
        - np.repeat(np.cumsum(length) - length, length)
        + np.repeat(rows.row_start[:-1], length)
    )
    target = place[rows.column[entry]]
    place[block.member] = -1
    weight = rows.weight[entry]
    inside = target >= 0
    right = rows.reward + shift
    outer = ~inside
    np.add.at(right, row[outer], weight[outer] * values[rows.column[entry[outer]]])
    diagonal = np.arange(groups, dtype=np.int32)
    matrix = sparse.csc_matrix(
        (
            np.concatenate([1.0 - rows.self_weight, -weight[inside]]),
            (np.concatenate([diagonal, row[inside]]), np.concatenate([diagonal, target[inside]])),
        ),
        shape=(groups, groups),
    )
    if not np.all(np.isfinite(right)):
        return 0.0
    try:
        factors = splu(matrix)
        solution = factors.solve(right)
    except RuntimeError:  # exactly singular
        return 0.0
    scale = np.abs(solution).max(initial=0.0) + 1.0
    sensible = np.all(np.isfinite(solution)) and bool(
        np.all(np.abs(matrix @ solution - right) <= 1e-6 * scale)
    )
    if not sensible or solution.min(initial=0.0) < system.floor - scale * 1e-3:
        return 0.0
    solution = np.clip(solution, system.floor, system.ceiling)
    values[block.member] = np.repeat(solution, np.diff(block.group_start))
    return float(factors.nnz / matrix.nnz)
