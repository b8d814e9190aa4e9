"""The face a kind of sets shows to the solver: backups over states, nature's answers, safe backups.

Everything the iteration does goes through these few calls, so a new kind of sets (a polygon for each
signature, a walk on vertices, …) is one class with this face. `IntervalKernel` is the reference.

A call works on `plan`, a list of groups of states: a group is one state, or the states of a collapsed end
component, which share one value. Values are vectors over all states of the model, updated in place where
the call says so, so what lies outside the plan is boundary. See `tightrope.solver.plan`.
"""

from __future__ import annotations

from typing import Protocol

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.solver.plan import Plan


class Kernel(Protocol):
    """Backups under one kind of sets. `maximise` flags: True = maximises, False = minimises."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    """Smallest and largest probability of each transition: the graph analysis and the checks of progress
    read the sets through them, which is exact when P(c) is a box cut with Σ = 1, or when no lower bound is 0."""

    def sweep(self, plan: Plan, values: FloatArray, shift: FloatArray) -> float:
        """One Gauss–Seidel pass x(s) ← Φ(x)(s) + shift(s) over the plan's groups, in order and in place.

        Returns the largest change relative to |x|."""

    def freeze(
        self,
        plan: Plan,
        values: FloatArray,
        row_start: OffsetArray,
        column: IndexArray,
        probability: FloatArray,
        reward: FloatArray,
        choice: OffsetArray,
    ) -> None:
        """The agent's best choice and nature's best answer at `values`, one sparse row a group."""

    def backward(
        self, plan: Plan, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        """Safe backups of both bounds over the plan, in order and in place: all an acyclic part needs."""

    def safe(self, plan: Plan, values: FloatArray, upward: bool, out: FloatArray, choice: OffsetArray) -> None:
        """Φ(values) rounded up or down with every error on the safe side, per group into `out`, and the choice
        that attains it. Reads `values`, writes nothing else."""

    def safe_choices(self, values: FloatArray, upward: bool, maximise: bool) -> FloatArray:
        """p·values at nature's optimum for every choice of the model, rounded up or down."""

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        """Nature's optimal distribution at every choice, as probabilities per transition."""
