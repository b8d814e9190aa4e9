"""The face a kind of sets shows to the solver: sweeps over a block, safe backups, nature's answers.

Everything the iteration does goes through these few calls, so a new kind of sets (a polygon for each
signature, a walk on vertices, …) is one class with this face; `IntervalOperator` is the reference. Vectors
of values are over all states of the model. A call looks at the groups of a `Block` and leaves everything
else alone, so what lies outside the block is boundary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from tightrope.late import dataclass
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.solver.equations.system import Block, Rows, System


class WalkArrays(NamedTuple):
    """What compiled loops take of a `Walk`; `at` holds the stage and how many states of it are done."""

    states: IndexArray
    stages: OffsetArray
    progress: OffsetArray
    at: OffsetArray
    worker: int


@dataclass(frozen=True, eq=False)
class Walk:
    """Stages of states (`solver.equations.levels.cut_levels`) that workers go through in step
    (`numerics.lockstep`), and where one of them is.
    """

    arrays: WalkArrays

    @staticmethod
    def begin(states: IndexArray, stages: OffsetArray, workers: int) -> Walk:
        from tightrope.numerics.lockstep import open_progress

        return Walk(WalkArrays(states, stages, open_progress(workers), np.zeros(2, np.int64), 0))

    def of(self, worker: int) -> Walk:
        """The walk of this worker, from the beginning."""
        return replace(self, arrays=self.arrays._replace(at=np.zeros(2, np.int64), worker=worker))

    @property
    def progress(self) -> OffsetArray:
        return self.arrays.progress


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
        """Φ_c(values) for every choice of the model, modes and groups aside, rounded to the side of
        `upward`.
        """

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        """Transitions that have positive probability in some optimal answer of nature to `values`."""

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        """Nature's optimal distribution at every choice, as probabilities per transition."""


class BellmanOperator(Backups, Protocol):
    """Backups that the iteration on the host is made of. A kernel never changes; what calls leave behind for
    later ones, and room for intermediate results, is a workspace, and the caller's.
    """

    @property
    def support(self) -> Support:
        """The graph as `lower` and `upper` make it."""

    @property
    def o_maximizes_rows(self) -> bool:
        """Whether the rows that sweeps leave hold all that a new answer of nature takes (`Rows.pivot`)."""

    @property
    def encloses_graph(self) -> bool:
        """Whether `lower` and `upper` may let nature change the graph where the sets would not."""

    def backup_error(self, system: System) -> float:
        """A bound on the relative error of one safe backup, with a little room."""

    def open_workspace(self, for_passes: bool = False) -> Any:
        """A new workspace for calls that follow each other; `for_passes`: for `backward` and `walk` alone."""

    def split_workspace(self, workspace: Any) -> Any:
        """Another one, for a second thread that looks at other choices."""

    def optimal_transitions(self, values: FloatArray, maximise: bool, workspace: Any = None) -> BoolArray: ...

    def answer(self, values: FloatArray, maximise: bool, workspace: Any = None) -> FloatArray: ...

    def sweep(
        self,
        system: System,
        block: Block,
        values: FloatArray,
        shift: FloatArray,
        unit: float,
        rows: Rows,
        workspace: Any,
    ) -> float:
        """One Gauss–Seidel pass x ← Φ(x) + shift over the groups, in order and in place, within floor and
        ceiling.

        Writes the choices it took, the agent's and nature's, into `rows`. Returns the largest change
        relative to max(|x|, unit)."""

    def backward(
        self,
        system: System,
        states: IndexArray,
        lower: FloatArray,
        upper: FloatArray,
        policy: OffsetArray,
        workspace: Any,
    ) -> None:
        """Safe backups of both bounds, in order and in place: all that an acyclic part needs.

        `policy` receives the choice that attains the agent's bound."""

    def walk(
        self,
        system: System,
        walk: Walk,
        lower: FloatArray,
        upper: FloatArray,
        policy: OffsetArray,
        workspace: Any,
    ) -> int:
        """`backward` of one worker's part of all stages, from where the walk is, as far as the others let it
        go on: `numerics.lockstep.ENDED` or `WAITING`."""

    def safe(
        self,
        system: System,
        block: Block,
        values: FloatArray,
        upward: bool,
        out: FloatArray,
        workspace: Any,
    ) -> None:
        """Φ(values) for every group into out[g], every error of rounding on the side of `upward`."""

    def safe_range(
        self,
        system: System,
        values: FloatArray,
        upward: bool,
        choices: tuple[int, int],
        out: FloatArray,
        workspace: Any,
    ) -> None:
        """Φ_c(values), rounded to the side of `upward`, into out[c] for the choices c from the first number
        up to the second."""
