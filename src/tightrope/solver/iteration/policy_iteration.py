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

from dataclasses import dataclass

from tightrope.solver.equations.equations import Equations, Meaning
from tightrope.solver.iteration.backend import BlockBackend, GroupVector, StateVector
from tightrope.solver.iteration.budget import Progress

MOST_ANSWERS = 20
"""How often nature is asked again while the agent's choices stay."""


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """Evaluation of the agent's choices that a block has kept."""

    block: BlockBackend
    equations: Equations
    progress: Progress
    nature_has_choices: bool

    def evaluate(self, values: StateVector, shift: GroupVector, unit: float, tolerance: float) -> bool:
        """Store the values of the choices kept against nature; False where they have none."""
        block = self.block
        for _ in range(MOST_ANSWERS):
            fill = block.factorise(values, shift)
            if fill <= 0:
                return False
            self.progress.note_fill(block.groups, fill)
            if not self.nature_has_choices or block.answer(values, shift, unit) <= tolerance:
                break
        return True

    def start_again(self, values: StateVector, shift: GroupVector, unit: float, tolerance: float) -> bool:
        """Like `evaluate`, for choices that make progress; False where there are none, or values so large
        that float64 does not carry their equations.
        """
        policy = self.block.find_progress(values)
        if policy is None:
            return False
        self.block.adopt(policy, values, shift, unit)
        return self.evaluate(values, shift, unit, tolerance)

    @property
    def can_start_again(self) -> bool:
        """Whether progress is the agent's alone, against nature."""
        owns = self.equations.agent_owns and not self.equations.nature_owns
        return owns and self.equations.meaning is Meaning.REWARD
