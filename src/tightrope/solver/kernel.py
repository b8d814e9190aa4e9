"""The face a kind of sets shows to the solver: sweeps over a block, safe backups, nature's answers.

Everything the iteration does goes through these few calls, so a new kind of sets (a polygon for each
signature, a walk on vertices, …) is one class with this face; `IntervalKernel` is the reference. Vectors
of values are over all states of the model. A call looks at the groups of a `Block` and leaves everything
else alone, so what lies outside the block is boundary.
"""

from __future__ import annotations

from typing import Protocol

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.system import Block, Rows, System


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


class Kernel(Backups, Protocol):
    """Backups that the iteration on the host is made of."""

    def sweep(
        self, system: System, block: Block, values: FloatArray, shift: FloatArray, unit: float, rows: Rows
    ) -> float:
        """One Gauss–Seidel pass x ← Φ(x) + shift over the groups, in order and in place, within floor and
        ceiling.

        Writes the choices it took, the agent's and nature's, into `rows`. Returns the largest change
        relative to max(|x|, unit)."""

    def backward(
        self, system: System, block: Block, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        """Safe backups of both bounds, in order and in place: all that an acyclic part needs.

        `policy` receives the choice that attains the agent's bound."""

    def safe(self, system: System, block: Block, values: FloatArray, upward: bool, out: FloatArray) -> None:
        """Φ(values) for every group into out[g], every error of rounding on the side of `upward`."""
