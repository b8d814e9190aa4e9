"""Policy iteration by sparse factorisation, for blocks in which sweeps are slow.

The agent's choices are evaluated exactly: nature's answers frozen, one linear system solved, nature asked
again, until it has nothing to change. Between two such evaluations the agent improves: Hoffman and Karp's
method, and how far values have to travel plays no part in it: with hardly any data an expected reward may be
10¹⁰, which sweeps would approach by one step at a time.

Equations of choices that never stop have no solution. Where the agent minimises a reward until a target and
has come to such choices, because everything unknown looks cheap from below, it starts again from choices that
make progress whatever nature does; from there improvement keeps to such choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.model.graph.qualitative import attract_into
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.frozen import factorised
from tightrope.solver.kernel import Kernel
from tightrope.solver.meter import Meter
from tightrope.solver.system import CLOSED, Block, ChoiceModes, Rows, System

MOST_ANSWERS = 20
"""How often nature is asked again while the agent's choices stay."""


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """Evaluation of the agent's choices in `rows`."""

    kernel: Kernel
    support: Support
    equations: Equations
    system: System
    meter: Meter

    @cached_property
    def _closed(self) -> ChoiceModes:
        """All choices closed; those of a policy are opened for as long as it is evaluated."""
        return np.full(self.system.structure.choices, CLOSED, np.int8)

    def evaluate(
        self, block: Block, rows: Rows, shift: FloatArray, values: FloatArray, unit: float, tolerance: float
    ) -> bool:
        """Store the values of the choices in `rows` against nature; False where they have none."""
        policy = rows.choice.copy()
        mode = self._closed
        mode[policy] = self.system.mode[policy]
        alone = replace(self.system, mode=mode)
        solved = False
        for _ in range(MOST_ANSWERS):
            fill = factorised(self.system, block, rows, shift, values, self.meter.place)
            solved = fill > 0
            if solved:
                self.meter.note_fill(len(block), fill)
            if not solved or self.kernel.lower is self.kernel.upper:
                break
            if self.kernel.sweep(alone, block, values, shift, unit, rows) <= tolerance:
                break
        mode[policy] = CLOSED
        return solved

    def start_again(
        self, block: Block, rows: Rows, shift: FloatArray, values: FloatArray, unit: float, tolerance: float
    ) -> bool:
        """Like `evaluate`, for choices that make progress; False where there are none, or values so large
        that float64 does not carry their equations.
        """
        policy = self._progressing(block, values)
        if policy is None:
            return False
        mode = self._closed
        mode[policy] = self.system.mode[policy]
        self.kernel.sweep(replace(self.system, mode=mode), block, values, shift, unit, rows)
        mode[policy] = CLOSED
        return self.evaluate(block, rows, shift, values, unit, tolerance)

    @property
    def can_start_again(self) -> bool:
        """Whether progress is the agent's alone, against nature."""
        owns = self.equations.agent_owns and not self.equations.nature_owns
        return owns and self.equations.meaning is Meaning.REWARD

    def _progressing(self, block: Block, values: FloatArray) -> OffsetArray | None:
        """For every group a choice that leads closer to the exits, whatever nature does."""
        structure, support = self.system.structure, self.support
        within = np.zeros(structure.states, np.bool_)
        within[block.member] = True
        drawn = ~within & np.isfinite(values)
        harmful = support.possible & ~within[structure.successor] & np.isinf(values[structure.successor])
        open_choice = (self.system.mode != CLOSED) & ~np.logical_or.reduceat(
            harmful, structure.transition_start[:-1]
        )
        rank = np.zeros(structure.states, np.int32)
        witness = np.full(structure.states, -1, np.int64)
        attract_into(support, within, open_choice, True, False, drawn, rank, witness)
        of_member = np.where(witness[block.member] >= 0, rank[block.member], np.iinfo(np.int32).max)
        first = np.minimum.reduceat(of_member, block.group_start[:-1])
        if np.any(first == np.iinfo(np.int32).max):
            return None
        group = np.repeat(np.arange(len(block)), np.diff(block.group_start))
        best = np.flatnonzero(of_member == first[group])
        policy = np.empty(len(block), np.int64)
        policy[group[best]] = witness[block.member[best]]
        return policy
