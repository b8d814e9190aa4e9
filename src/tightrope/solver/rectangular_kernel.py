"""The kernel of rectangular sets: nature picks p = f(x), x in the region, within the choice's intervals.

**Which side is a theorem about the truth.** With probability 1 − δ the true distributions p* lie in the sets
of all choices at once. `safe` rounds nature's optimum outward over a superset of its set (weak duality,
`tightrope.solver.vertex_walk`), so L ≤ Φ(L), verified, implies L ≤ Φ*(L) for the true operator Φ* when nature
minimises, and Φ(U) ≤ U implies Φ*(U) ≤ U when nature maximises. These are the bounds a guarantee is made of:
the lower one against a minimising, the upper one against a maximising nature.

**Why graph analysis may read the intervals.** `lower` and `upper` are the bounds of P_Λ ⊇ P_R: a nature with
more power. On the side of the guarantee nature never owns progress: owners maximise a probability or a total
reward, and there the lower bound needs a ranking, against a nature that minimises; owners minimise a
reward until a target, and there the upper bound needs one, against a nature that maximises. So every
statement about graphs that a guarantee rests on is of the form "whatever nature does":

* lower bound, nature minimises: a positive value, 1 or ∞ is only claimed where *every* p within the intervals
  makes progress, hence every p of P_R. Where the intervals let nature cut an edge that P_R would not let it
  cut, 0 (or a finite reward) is claimed: safe.
* upper bound, nature maximises: 0, or a finite reward, is only claimed where *no* p within the intervals can
  do harm. Where they let nature idle and P_R would not, 1 or ∞ is claimed: safe.

The other side says how closely the sets were solved. There the two readings agree on acyclic models, and
wherever no interval contains 0 below a positive upper bound; elsewhere `tightrope.solver.solve_sets`
replaces that side by the value against nature's own answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.solver import rectangular_backups as backups
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.pouring import OrderArray, natural_order
from tightrope.solver.region_shape import Shape, shape_of
from tightrope.solver.system import Block, Rows, System
from tightrope.uncertainty.sets import Sets

_Model = tuple[
    OffsetArray,
    IndexArray,
    FloatArray,
    FloatArray,
    IndexArray,
    FloatArray,
    BoolArray,
    IndexArray,
    FloatArray,
    FloatArray,
    FloatArray,
    IndexArray,
    IndexArray,
    OffsetArray,
    FloatArray,
    OrderArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
]
"""Graph and intervals (4), the shape (11), scratch (5)."""


@dataclass(frozen=True, eq=False)
class RectangularKernel:
    """Backups of rectangular sets; `lower` and `upper` are the intervals around them."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    shape: Shape

    @cached_property
    def _scratch(self) -> tuple[OrderArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        start, size = self.structure.transition_start, len(self.shape.reach)
        width = int(np.diff(start).max(initial=1))
        return natural_order(start), np.empty(width), np.empty(width), np.empty(size), np.empty(size)

    @staticmethod
    def of(sets: Sets) -> RectangularKernel:
        return RectangularKernel(sets.model.structure, sets.lower, sets.upper, shape_of(sets))

    @property
    def vertices_met(self) -> int:
        """Vertices of the region that were optimal, or next to one, so far."""
        return int(self.shape.used[0])

    @cached_property
    def intervals(self) -> IntervalKernel:
        """The same model with its intervals alone."""
        return IntervalKernel(self.structure, self.lower, self.upper)

    def _model(self) -> _Model:
        s = self.structure
        return (s.transition_start, s.successor, self.lower, self.upper, *self.shape, *self._scratch)

    def sweep(
        self, system: System, block: Block, values: FloatArray, shift: FloatArray, unit: float, rows: Rows
    ) -> float:
        return backups.sweep_groups(
            self.structure.choice_start,
            *self._model(),
            system.reward,
            system.discount,
            system.mode,
            system.leader,
            system.agent_maximises,
            system.nature_maximises,
            system.floor,
            system.ceiling,
            unit,
            block.group_start,
            block.member,
            shift,
            values,
            rows.row_start,
            rows.row_end,
            rows.column,
            rows.weight,
            rows.self_weight,
            rows.reward,
            rows.choice,
        )

    def backward(
        self, system: System, block: Block, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        backups.backward_pass(
            self.structure.choice_start,
            *self._model(),
            system.reward,
            system.discount,
            system.mode,
            system.agent_maximises,
            system.nature_maximises,
            system.floor,
            system.ceiling,
            system.slack,
            block.member,
            lower,
            upper,
            policy,
        )

    def safe(self, system: System, block: Block, values: FloatArray, upward: bool, out: FloatArray) -> None:
        """The choices of the block one by one, then the agent's best of every group."""
        structure = self.structure
        first, last = structure.choice_start[block.member], structure.choice_start[block.member + 1]
        count = last - first
        end = np.cumsum(count)
        choices = np.arange(int(end[-1])) + np.repeat(first - (end - count), count)
        each = self._safe_values(system, values, upward, choices)
        nothing = -np.inf if system.agent_maximises else np.inf
        backups.exit_values(
            structure.transition_start,
            structure.successor,
            self.upper,
            system.reward,
            system.discount,
            system.mode,
            system.leader,
            system.nature_maximises,
            values,
            upward,
            choices,
            system.leader[np.repeat(block.member, count)],
            nothing,
            each,
        )
        start = np.concatenate([np.zeros(1, np.int64), end])[block.group_start[:-1]]
        best = np.maximum if system.agent_maximises else np.minimum
        best.reduceat(each, start, out=out)

    def safe_choices(self, system: System, values: FloatArray, upward: bool) -> FloatArray:
        return self._safe_values(system, values, upward, np.arange(self.structure.choices))

    def _safe_values(
        self, system: System, values: FloatArray, upward: bool, choices: OffsetArray
    ) -> FloatArray:
        out = np.empty(len(choices))
        backups.safe_values(
            *self._model(),
            system.reward,
            system.discount,
            system.nature_maximises,
            values,
            upward,
            choices,
            out,
        )
        return out

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        """Those of one optimal answer; at choices that intervals describe, those of all."""
        kept = self.intervals.optimal_transitions(values, maximise)
        joint = self.shape.joint[self.structure.transition_choice]
        some: BoolArray = np.where(joint, self.answer(values, maximise) > 0.0, kept)
        return some & self.intervals.support.possible

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        out = np.empty(self.structure.transitions)
        backups.answers(*self._model(), values, maximise, out)
        return out
