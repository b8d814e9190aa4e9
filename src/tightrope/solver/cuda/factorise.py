"""Frozen equations of a small, slow block solved by sparse LU on the host, as `solver.kernels.frozen` does.

Sweeps need as many rounds as a play has steps, on a GPU as elsewhere; a block of some thousand states is
solved faster by one factorisation. The device says which choices were taken and what nature answers, the host
solves, and the solution goes back: a guess like every iterate, to be measured and verified there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray
from tightrope.solver.cuda.kernel import CudaKernel
from tightrope.solver.equations.system import EXIT, Block, Rows, System
from tightrope.solver.kernels.frozen import solve_frozen


class Factoriser:
    """Solves x = reward + extra + W·x for the groups of a block, W frozen at choices and answers."""

    def __init__(self, kernel: CudaKernel, system: System, active: BoolArray):
        self.kernel, self.system = kernel, system
        states = np.flatnonzero(active).astype(np.int32)
        lead = system.leader[states]
        order = np.argsort(lead, kind="stable")
        sizes = np.unique(lead, return_counts=True)[1]
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        self.block = Block(start, states[order])
        self.group = np.repeat(np.arange(len(sizes)), sizes)

    def solve(
        self, taken: IndexArray, x: FloatArray, extra: FloatArray, rewarded: bool
    ) -> tuple[FloatArray | None, float]:
        """The solution over all states, x itself outside the block, and the factors' entries per entry of the
        equations; None and 0 where there is none.

        Without rewards, what lies outside counts as 0 and the solution is not bounded."""
        rows = self._rows(taken, x)
        if rows is None:
            return None, 0.0
        system, values = self.system, x.copy()
        if not rewarded:
            system, values = replace(system, floor=0.0, ceiling=np.inf), np.zeros(len(x))
            rows = rows._replace(reward=np.zeros(len(self.block)))
        place = np.full(len(x), -1, np.int32)
        lead = self.block.member[self.block.group_start[:-1]]
        fill = solve_frozen(system, self.block, rows, extra[lead], values, place)
        return (values if fill > 0 else None), fill

    def _rows(self, taken: IndexArray, x: FloatArray) -> Rows | None:
        structure, system, member = self.kernel.structure, self.system, self.block.member
        acting = taken[member] >= 0
        states, group = member[acting], self.group[acting]
        choice = structure.choice_start[states] + taken[states]
        if len(group) != len(self.block) or np.any(system.mode[choice] == EXIT):
            return None
        first = structure.transition_start[choice]
        length = structure.transition_start[choice + 1] - first
        row = np.repeat(np.arange(len(choice)), length)
        entry = np.arange(len(row)) + np.repeat(first - (np.cumsum(length) - length), length)
        scale = system.discount[choice] if len(system.discount) else np.ones(len(choice))
        weight = self.kernel.answer(x, system.nature_maximises)[entry] * scale[row]
        column = structure.successor[entry]
        inside = system.leader[column] == system.leader[states][row]
        kept = ~inside & (weight > 0)
        ends = np.cumsum(np.bincount(row[kept], minlength=len(choice)))
        return Rows(
            np.concatenate([np.zeros(1, np.int64), ends]),
            ends.astype(np.int64),
            column[kept],
            weight[kept],
            np.bincount(row[inside], weight[inside], minlength=len(choice)).astype(np.float64),
            system.reward[choice] if len(system.reward) else np.zeros(len(choice)),
            choice,
            np.full(len(choice), -1, np.int64),
        )
