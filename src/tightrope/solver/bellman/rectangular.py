"""The kernel of rectangular sets: nature picks p = f(x), x in the region, within the choice's intervals.

*Guaranteed side.* With probability 1 − δ all sets contain the true distributions. `safe` rounds nature's
optimum outward over a superset (docs/proofs/values.md), so verified bounds bound the true value.

*Graph analysis* reads the intervals P_Λ ⊇ P_R, a stronger nature. On the guaranteed side nature never owns
progress: a positive value, 1 or ∞ below, and 0 or a finite reward above, are claimed only where they hold for
every p within the intervals. The other side shows how closely the sets were solved; where the two readings
differ, `solver.solve` replaces it by the value against nature's own answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.ambiguity.o_maximization import OrderArray, Scratch, natural_order
from tightrope.ambiguity.rectangular_inner import RegionArrays, Shape
from tightrope.ambiguity.region_shape import shape_of
from tightrope.ambiguity.sets import Sets
from tightrope.model.graph.components import strongly_connected_components
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import BackupWorkspace, BellmanOperator
from tightrope.solver.equations.system import System

SMALLEST_SHIFT = 1e-13
"""What rounding adds to a backup is taken to be of this size, relatively."""


@dataclass(frozen=True, eq=False, repr=False)
class RectangularOperator(BellmanOperator):
    """Backups of rectangular sets; `lower` and `upper` are the intervals around them."""

    shape: Shape

    @staticmethod
    def of(sets: Sets) -> RectangularOperator:
        return RectangularOperator(sets.model.structure, sets.lower, sets.upper, shape_of(sets))

    @cached_property
    def intervals(self) -> IntervalOperator:
        """The same model with its intervals alone."""
        return IntervalOperator(self.structure, self.lower, self.upper)

    @property
    def encloses_graph(self) -> bool:
        return not (self.support.is_constant or strongly_connected_components(self.support).is_acyclic)

    def backup_error(self, system: System) -> float:
        return SMALLEST_SHIFT

    def open_workspace(self, for_passes: bool = False) -> BackupWorkspace:
        return self._workspace(natural_order(self.structure.transition_start, self.structure.longest_choice))

    def split_workspace(self, workspace: BackupWorkspace) -> BackupWorkspace:
        return self._workspace(workspace.scratch.order)

    def _workspace(self, order: OrderArray) -> BackupWorkspace:
        size, width = len(self.shape.reach), self.structure.longest_choice
        scratch = Scratch(order, np.empty(width), np.empty(width))
        region = RegionArrays(self.shape, self.shape.open_pool(), np.empty(size), np.empty(size))
        return BackupWorkspace(scratch, region)

    def optimal_transitions(
        self, values: FloatArray, maximise: bool, workspace: BackupWorkspace | None = None
    ) -> BoolArray:
        """Those of one optimal answer; at choices that intervals describe, those of all."""
        of_intervals = self.intervals.optimal_transitions(values, maximise)
        joint = self.shape.joint[self.structure.transition_choice]
        some: BoolArray = np.where(joint, self.answer(values, maximise, workspace) > 0.0, of_intervals)
        return some & self.support.possible
