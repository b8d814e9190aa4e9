"""The kernel of rectangular sets: nature picks p = f(x), x in the region, within the choice's intervals.

**Which side is a theorem about the truth.** With probability 1 − δ the true distributions p* lie in the sets
of all choices at once. `safe` rounds nature's optimum outward over a superset of its set (weak duality,
`solver.nature.vertex_walk`), so L ≤ Φ(L), verified, implies L ≤ Φ*(L) for the true operator Φ* when nature
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

from tightrope.ambiguity.pouring import OrderArray, natural_order
from tightrope.ambiguity.records import NatureArrays, RegionArrays, Scratch, Shape
from tightrope.ambiguity.region_shape import shape_of
from tightrope.ambiguity.sets import Sets
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.solver.equations.system import Block, Rows, System
from tightrope.solver.kernels import rectangular_backups as backups
from tightrope.solver.kernels.interval_kernel import IntervalKernel
from tightrope.solver.kernels.kernel import Walk

SMALLEST_SHIFT = 1e-13
"""What rounding adds to a backup is taken to be of this size, relatively."""


@dataclass(frozen=True, eq=False)
class RectangularWorkspace:
    """The order of every choice's successors as sorted last, the vertices met so far, and room for one choice
    and one direction.
    """

    nature: NatureArrays

    @property
    def vertices_met(self) -> int:
        """Vertices of the region that were optimal, or next to one, so far."""
        return int(self.nature.region.pool.used[0])


@dataclass(frozen=True, eq=False, repr=False)
class RectangularKernel(Record):
    """Backups of rectangular sets; `lower` and `upper` are the intervals around them."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    shape: Shape

    @staticmethod
    def of(sets: Sets) -> RectangularKernel:
        return RectangularKernel(sets.model.structure, sets.lower, sets.upper, shape_of(sets))

    @cached_property
    def intervals(self) -> IntervalKernel:
        """The same model with its intervals alone."""
        return IntervalKernel(self.structure, self.lower, self.upper)

    @property
    def support(self) -> Support:
        return self.intervals.support

    @property
    def pours_rows(self) -> bool:
        return False

    def backup_error(self, system: System) -> float:
        return SMALLEST_SHIFT

    def open_workspace(self, for_passes: bool = False) -> RectangularWorkspace:
        return self._workspace(natural_order(self.structure.transition_start, self.structure.longest_choice))

    def split_workspace(self, workspace: RectangularWorkspace) -> RectangularWorkspace:
        """The order is shared: that of a choice is touched by the thread that looks at it alone."""
        return self._workspace(workspace.nature.scratch.order)

    def _workspace(self, order: OrderArray) -> RectangularWorkspace:
        size, width = len(self.shape.reach), self.structure.longest_choice
        scratch = Scratch(order, np.empty(width), np.empty(width))
        region = RegionArrays(self.shape, self.shape.open_pool(), np.empty(size), np.empty(size))
        return RectangularWorkspace(NatureArrays(self.intervals.arrays, scratch, region))

    def sweep(
        self,
        system: System,
        block: Block,
        values: FloatArray,
        shift: FloatArray,
        unit: float,
        rows: Rows,
        workspace: RectangularWorkspace,
    ) -> float:
        return backups.sweep_groups(workspace.nature, system.arrays, block.arrays, rows, values, shift, unit)

    def backward(
        self,
        system: System,
        states: IndexArray,
        lower: FloatArray,
        upper: FloatArray,
        policy: OffsetArray,
        workspace: RectangularWorkspace,
    ) -> None:
        backups.backward_pass(workspace.nature, system.arrays, states, lower, upper, policy)

    def walk(
        self,
        system: System,
        walk: Walk,
        lower: FloatArray,
        upper: FloatArray,
        policy: OffsetArray,
        workspace: RectangularWorkspace,
    ) -> int:
        from tightrope.solver.kernels.walks import walk_regions

        return walk_regions(workspace.nature, system.arrays, walk.arrays, (lower, upper, policy))

    def safe(
        self,
        system: System,
        block: Block,
        values: FloatArray,
        upward: bool,
        out: FloatArray,
        workspace: RectangularWorkspace,
    ) -> None:
        """The choices of the block one by one, then the agent's best of every group."""
        structure = self.structure
        first, last = structure.choice_start[block.member], structure.choice_start[block.member + 1]
        count = last - first
        end = np.cumsum(count)
        choices = np.arange(int(end[-1])) + np.repeat(first - (end - count), count)
        each = np.empty(len(choices))
        self._safe_values(system, values, upward, choices, each, workspace)
        nothing = -np.inf if system.agent_maximises else np.inf
        home = system.leader[np.repeat(block.member, count)]
        model = workspace.nature.model
        backups.exit_values(model, system.arrays, values, upward, choices, home, nothing, each)
        start = np.concatenate([np.zeros(1, np.int64), end])[block.group_start[:-1]]
        best = np.maximum if system.agent_maximises else np.minimum
        best.reduceat(each, start, out=out)

    def safe_range(
        self,
        system: System,
        values: FloatArray,
        upward: bool,
        choices: tuple[int, int],
        out: FloatArray,
        workspace: RectangularWorkspace,
    ) -> None:
        numbers = np.arange(*choices)
        self._safe_values(system, values, upward, numbers, out[slice(*choices)], workspace)

    def safe_choices(
        self,
        system: System,
        values: FloatArray,
        upward: bool,
        workspace: RectangularWorkspace | None = None,
    ) -> FloatArray:
        out = np.empty(self.structure.choices)
        workspace = workspace or self.open_workspace()
        self.safe_range(system, values, upward, (0, len(out)), out, workspace)
        return out

    def _safe_values(
        self,
        system: System,
        values: FloatArray,
        upward: bool,
        choices: OffsetArray,
        out: FloatArray,
        workspace: RectangularWorkspace,
    ) -> None:
        backups.safe_values(workspace.nature, system.arrays, values, upward, choices, out)

    def optimal_transitions(
        self, values: FloatArray, maximise: bool, workspace: RectangularWorkspace | None = None
    ) -> BoolArray:
        """Those of one optimal answer; at choices that intervals describe, those of all."""
        kept = self.intervals.optimal_transitions(values, maximise)
        joint = self.shape.joint[self.structure.transition_choice]
        some: BoolArray = np.where(joint, self.answer(values, maximise, workspace) > 0.0, kept)
        return some & self.intervals.support.possible

    def answer(
        self, values: FloatArray, maximise: bool, workspace: RectangularWorkspace | None = None
    ) -> FloatArray:
        out = np.empty(self.structure.transitions)
        backups.answers((workspace or self.open_workspace()).nature, values, maximise, out)
        return out
