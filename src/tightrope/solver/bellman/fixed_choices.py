"""Accelerators for a block with frozen choices: cheap sweeps or one sparse factorisation.

With both players' choices frozen a block is a linear system x = reward + shift + W·x + boundary. Solving it
between robust sweeps is (modified) policy iteration; `solver.iteration.blocks` verifies the results. With
only the agent's choices frozen this cannot cycle: nature's answer in an interval model stays optimal as long
as no filled successor becomes worse for it than the pivot and no other one better. A row in nature's order
(`Rows.pivot`) is evaluated and tested in one pass, and spread again in place if needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.ambiguity.o_maximization import o_maximize_again
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray, stretches
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.late import linalg, sparse
from tightrope.solver.equations.system import Block, BlockArrays, Rows, System, SystemArrays

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import SuperLU


class Pace(NamedTuple):
    """When sweeps end: changes relative to max(|x|, unit) within `tolerance`; and their over-relaxation."""

    unit: float
    tolerance: float
    relaxation: float = 1.0


@kernel
def sweep_fixed_choices(
    system: SystemArrays,
    block: BlockArrays,
    parts: OffsetArray,
    rows: Rows,
    shift: FloatArray,
    values: FloatArray,
    most: int,
    pace: Pace,
) -> tuple[int, float]:
    """Up to `most` Gauss–Seidel sweeps, fewer once the change is within the tolerance: (sweeps, last change).
    The change is what it would be without relaxation. Parts are swept one after the other, each until it
    needs no more: those after it then find it solved."""
    floor, ceiling = system.floor, system.ceiling
    unit, tolerance, relaxation = pace
    group_start, member, _, _ = block
    row_start, row_end, column, weight, self_weight, reward = rows[:6]
    groups = len(group_start) - 1
    is_lone = len(member) == groups
    done, largest = 0, 0.0
    first = 0
    for part in range(max(len(parts), 1)):
        last = parts[part] if len(parts) > 0 else groups
        sweeps, change = 0, np.inf
        while sweeps < most and change > tolerance:
            change = 0.0
            for g in range(first, last):
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
                    if relaxation != 1.0:
                        x = min(max(old + relaxation * (x - old), floor), ceiling)
                    values[s] = x
                    if not is_lone:
                        for m in range(group_start[g] + 1, group_start[g + 1]):
                            values[member[m]] = x
            sweeps += 1
        done, largest, first = max(done, sweeps), max(largest, change), last
    return done, largest


@dataclass(frozen=True, eq=False)
class Factors:
    """The sparse LU factors of a block's equations under the choices kept."""

    matrix: csc_matrix
    factors: SuperLU
    row: IndexArray
    outer: OffsetArray
    """The group of every entry that leads out of the block, and where it is among the rows' entries."""

    @property
    def fill(self) -> float:
        """Entries of the factors per entry of the equations."""
        return float(self.factors.nnz / self.matrix.nnz)

    def solve(self, system: System, block: Block, rows: Rows, shift: FloatArray, values: FloatArray) -> bool:
        """Store the solution for the values around the block, where there is a sensible one."""
        right = rows.reward + shift
        np.add.at(right, self.row, rows.weight[self.outer] * values[rows.column[self.outer]])
        if not np.all(np.isfinite(right)):
            return False
        solution = self.factors.solve(right)
        scale = np.abs(solution).max(initial=0.0) + 1.0
        sensible = np.all(np.isfinite(solution)) and bool(
            np.all(np.abs(self.matrix @ solution - right) <= 1e-6 * scale)
        )
        if not sensible or solution.min(initial=0.0) < system.floor - scale * 1e-3:
            return False
        solution = np.clip(solution, system.floor, system.ceiling)
        values[block.member] = np.repeat(solution, np.diff(block.group_start))
        return True


def factorise_fixed_choices(block: Block, rows: Rows, place: IndexArray) -> Factors | None:
    """The factors of the frozen equations; None if these never stop. `place` is scratch over all states."""
    if np.any(rows.self_weight >= 1.0):  # a group that stays for certain: singular, and SuperLU would print
        return None
    groups = len(block)
    place[block.member] = np.repeat(np.arange(groups, dtype=np.int32), np.diff(block.group_start))
    length = rows.row_end - rows.row_start[:-1]
    row = np.repeat(np.arange(groups, dtype=np.int32), length)
    entry = stretches(rows.row_start[:-1], length)
    target = place[rows.column[entry]]
    place[block.member] = -1
    inside = target >= 0
    diagonal = np.arange(groups, dtype=np.int32)
    matrix = sparse.csc_matrix(
        (
            np.concatenate([1.0 - rows.self_weight, -rows.weight[entry[inside]]]),
            (np.concatenate([diagonal, row[inside]]), np.concatenate([diagonal, target[inside]])),
        ),
        shape=(groups, groups),
    )
    try:
        return Factors(matrix, linalg.splu(matrix, relax=1, panel_size=4), row[~inside], entry[~inside])
    except RuntimeError:  # exactly singular
        return None


@inlined
def _weigh_row(
    start: np.uint64, end: np.uint64, column: IndexArray, weight: FloatArray, values: FloatArray
) -> float:
    x = 0.0
    for i in range(start, end):
        x += weight[i] * values[np.uint32(column[i])]
    return x


@kernel
def sweep_fixed_agent(
    system: SystemArrays,
    block: BlockArrays,
    rows: Rows,
    shift: FloatArray,
    values: FloatArray,
    most: int,
    pace: Pace,
) -> tuple[int, float]:
    """The same under the agent's choices alone, unrelaxed; answers in `rows` stay nature's best."""
    unit, tolerance, _ = pace
    _, discount, _, leader, _, nature_maximises, floor, ceiling, _ = system
    group_start, member, _, _ = block
    row_start, row_end, column, weight, self_weight, reward, choice, row_pivot = rows[:8]
    entries = column, weight, rows.low, rows.room
    groups = len(group_start) - 1
    is_lone = len(member) == groups  # every group one state: one array less to read
    done, change = 0, 0.0
    for _ in range(most):
        change = 0.0
        for g in range(groups):
            s = np.uint32(member[g if is_lone else group_start[g]])
            start, end = np.uint64(row_start[g]), np.uint64(row_end[g])
            if row_pivot[g] < 0:
                x = _weigh_row(start, end, column, weight, values)
            else:
                x = 0.0
                pivot = np.uint64(row_pivot[g])
                pivot_value = values[np.uint32(column[pivot])]
                wrong = 0.0  # one loop of a length that is easily foreseen, whatever the pivot
                for i in range(start, end):
                    y = values[np.uint32(column[i])]
                    x += weight[i] * y
                    ahead = y - pivot_value
                    wrong = max(wrong, ahead if (i < pivot) != nature_maximises else -ahead)
                if wrong > 0.0:
                    scale = discount[choice[g]] if len(discount) > 0 else 1.0
                    row_end[g], row_pivot[g], self_weight[g] = o_maximize_again(
                        start, end, entries, values, nature_maximises, (leader, leader[s], scale)
                    )
                    x = _weigh_row(start, np.uint64(row_end[g]), column, weight, values)
            x += reward[g] + shift[g]
            if self_weight[g] > 0.0:
                if self_weight[g] >= 1.0:
                    continue
                x /= 1.0 - self_weight[g]
            x = min(max(x, floor), ceiling)
            old = values[s]
            if x != old:
                scale = max(abs(x), unit)
                if abs(x - old) > change * scale:  # rarely true, and divisions are slow
                    change = abs(x - old) / scale
                values[s] = x
                if not is_lone:
                    for m in range(group_start[g] + 1, group_start[g + 1]):
                        values[member[m]] = x
        done += 1
        if change <= tolerance:
            break
    return done, change
