"""Backups under one kind of sets: sweeps over a block, safe backups, nature's answers.

Everything the iteration does goes through these calls. A new kind of sets (a polygon per signature, …) is
a class below `BellmanOperator`; `IntervalOperator` is the reference. Vectors of values are over all states of
the model. A call looks at the groups of a `Block` and leaves everything else alone, so what lies outside the
block is boundary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tightrope.ambiguity.o_maximization import ModelArrays, Scratch
from tightrope.ambiguity.rectangular_inner import RegionArrays
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.solver.bellman import backups
from tightrope.solver.bellman.gauss_seidel import sweep_groups, sweep_plain
from tightrope.solver.equations.system import Block, Rows, System


class Backups(Protocol):
    """What can be asked of a model under one kind of sets, wherever it is answered."""

    @property
    def structure(self) -> Structure: ...

    @property
    def lower(self) -> FloatArray:
        """Smallest probability of each transition.

        Graph analysis and checks of progress read the sets through `lower` and `upper`. That is exact for
        boxes cut with Σp = 1, and for any sets whose lower bounds are positive wherever the upper ones
        are.
        """

    @property
    def upper(self) -> FloatArray:
        """Largest probability of each transition; the same array as `lower` where nature has no choice."""

    def safe_choices(self, system: System, values: FloatArray, upward: bool) -> FloatArray:
        """Φ_c(values) for every choice, modes and groups aside, rounded to the side of `upward`."""

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        """Transitions that have positive probability in some optimal answer of nature to `values`."""

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        """Nature's optimal distribution at every choice, as probabilities per transition."""


@dataclass(eq=False)
class BackupWorkspace:
    """What calls leave behind for later ones: the order of every choice's successors as sorted last, room for
    one choice (see `ambiguity.o_maximization`), the region of rectangular sets with the vertices met so far,
    and whether sums of bounds that float64 does not tell from 1 have been met (`o_maximize_safely`): then
    backups take care from the start."""

    scratch: Scratch
    region: RegionArrays | None = None
    care: bool | None = None

    @property
    def vertices_met(self) -> int:
        """Vertices of the region that were optimal, or next to one, so far."""
        return 0 if self.region is None else int(self.region.pool.used[0])

    def repeat(self, attempt: Callable[[bool | None], bool]) -> None:
        """Call until all supports could be told, which over a region they always can."""
        while not attempt(self.care) and self.region is None:
            assert self.care is None
            self.care = True


@dataclass(frozen=True, eq=False, repr=False)
class BellmanOperator(Record):
    """Backups for the iteration on the host. Operators never change; workspaces, the caller's, do."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray

    @property
    def is_plain(self) -> bool:
        """Whether nature has no choice."""
        return self.lower is self.upper

    @cached_property
    def support(self) -> Support:
        """The graph as `lower` and `upper` make it."""
        return Support(self.structure, self.lower, self.upper)

    @cached_property
    def arrays(self) -> ModelArrays:
        """What compiled loops take of the model."""
        s = self.structure
        start, successor = s.transition_start, s.successor
        return ModelArrays(s.choice_start, start, successor, self.lower, self.upper, self.is_plain)

    @property
    def o_maximizes_rows(self) -> bool:
        """Whether the rows that sweeps leave hold all that a new answer of nature takes (`Rows.pivot`)."""
        return False

    @property
    def encloses_graph(self) -> bool:
        """Whether `lower` and `upper` may let nature change the graph where the sets would not."""
        return False

    @abstractmethod
    def backup_error(self, system: System) -> float:
        """A bound on the relative error of one safe backup, with a little room."""

    @abstractmethod
    def open_workspace(self, for_passes: bool = False) -> BackupWorkspace:
        """A new workspace for calls that follow each other; `for_passes`: for `backward` and `walk` alone."""

    @abstractmethod
    def split_workspace(self, workspace: BackupWorkspace) -> BackupWorkspace:
        """Another one for a thread that looks at other choices; the order is shared."""

    @abstractmethod
    def optimal_transitions(
        self, values: FloatArray, maximise: bool, workspace: BackupWorkspace | None = None
    ) -> BoolArray:
        """Transitions that have positive probability in some optimal answer of nature to `values`."""

    def sweep(
        self,
        system: System,
        block: Block,
        values: FloatArray,
        shift: FloatArray,
        unit: float,
        rows: Rows,
        workspace: BackupWorkspace,
    ) -> float:
        """One Gauss–Seidel pass x ← Φ(x) + shift over the groups, in order and in place, within floor and
        ceiling.

        Writes the choices it took, the agent's and nature's, into `rows`. Returns the largest change
        relative to max(|x|, unit)."""
        about = system.arrays, block.arrays, rows, values, shift, unit
        if self.is_plain and not system.has_exits:
            return sweep_plain(self.arrays, *about)
        return sweep_groups((self.arrays, workspace.scratch), workspace.region, *about)

    def backward(
        self,
        system: System,
        states: IndexArray,
        lower: FloatArray,
        upper: FloatArray,
        policy: OffsetArray,
        workspace: BackupWorkspace,
    ) -> None:
        """Safe backups of both bounds, in order and in place; `policy` attains the agent's bound."""
        arrays, left = (self.arrays, workspace.scratch), states

        def attempt(care: bool | None) -> bool:
            nonlocal left
            done = backups.backward_pass(
                arrays, workspace.region, system.arrays, left, lower, upper, policy, care
            )
            left = left[done:]
            return len(left) == 0

        if len(states):
            workspace.repeat(attempt)

    def safe(
        self,
        system: System,
        block: Block,
        values: FloatArray,
        upward: bool,
        out: FloatArray,
        workspace: BackupWorkspace,
    ) -> None:
        """Φ(values) for every group into out[g], every error of rounding on the side of `upward`."""
        arrays, region = (self.arrays, workspace.scratch), workspace.region
        workspace.repeat(
            lambda care: backups.safe_groups(
                arrays, region, system.arrays, block.arrays, values, upward, out, care
            )
        )

    def safe_range(
        self,
        system: System,
        values: FloatArray,
        upward: bool,
        choices: tuple[int, int],
        out: FloatArray,
        workspace: BackupWorkspace,
    ) -> None:
        """Φ_c(values) for the choices of a range into out[c], rounded to the side of `upward`."""
        values = values if values.flags.writeable else values.copy()  # as in `safe`: compiled once
        arrays, region = (self.arrays, workspace.scratch), workspace.region
        workspace.repeat(
            lambda care: backups.safe_choice_values(
                arrays, region, system.arrays, values, upward, choices, out, care
            )
        )

    def safe_choices(
        self, system: System, values: FloatArray, upward: bool, workspace: BackupWorkspace | None = None
    ) -> FloatArray:
        """Φ_c(values) for every choice (`Backups`)."""
        out = np.empty(self.structure.choices)
        self.safe_range(system, values, upward, (0, len(out)), out, workspace or self.open_workspace())
        return out

    def answer(
        self, values: FloatArray, maximise: bool, workspace: BackupWorkspace | None = None
    ) -> FloatArray:
        """Nature's optimal distribution at every choice, as probabilities per transition."""
        out = np.empty(self.structure.transitions)
        room = workspace or self.open_workspace()
        backups.answers((self.arrays, room.scratch), room.region, values, maximise, out)
        return out
