"""The kernel of ordinary and interval models, and the reading of their numbers.

An ordinary model is an interval model whose bounds are the same array.

* A probability or bound is the float64 nearest to the exact number meant.
* Rows of an ordinary model whose sum differs from 1 by more than (k+2)·2⁻⁵² stand for their multiple with sum
  1. So do lower bounds with a sum above 1, and upper bounds with a sum below 1, by that much: the row is then
  that one distribution.
* Nature's possible and forced moves follow exactly from the float64 bounds (`tightrope.model.graph.support`).

A randomised policy becomes a chain: a mixing state moves, by the policy's probabilities, to one new state per
choice. Rewards are earned, and steps discounted, on the new states; old states keep the policy's values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.ambiguity.o_maximization import OrderArray, Scratch, empty_order, natural_order
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure, frozen_array, release
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, offsets, stretches
from tightrope.numerics.jit import kernel
from tightrope.numerics.rounding import SUM_UNIT
from tightrope.solver.bellman import backups
from tightrope.solver.bellman.operator import BackupWorkspace, BellmanOperator
from tightrope.solver.equations.system import System


@dataclass(frozen=True, eq=False, repr=False)
class IntervalOperator(BellmanOperator):
    """Backups of a model with bounds `lower ≤ p ≤ upper`; `lower is upper` for an ordinary one."""

    @staticmethod
    def of(model: MDP | IntervalMDP) -> IntervalOperator:
        structure = model.structure
        if isinstance(model, MDP):
            probability = _scale(structure, model.probability, above=True, below=True)
            return IntervalOperator(structure, probability, probability)
        if model.sums_admit_one:
            return IntervalOperator(structure, model.lower, model.upper)
        lower = _scale(structure, model.lower, above=True, below=False)
        upper = _scale(structure, model.upper, above=False, below=True)
        # Scaled bounds are a point: what rounding leaves between it and 1 is no freedom of nature's.
        points = (lower != model.lower) if lower is not model.lower else None
        if upper is not model.upper:
            lower = np.where(_rows_with(structure, upper != model.upper), upper, lower)
        if points is not None:
            upper = np.where(_rows_with(structure, points), lower, upper)
        return IntervalOperator(structure, lower, upper)

    @staticmethod
    def plain(structure: Structure, probability: FloatArray) -> IntervalOperator:
        frozen = frozen_array(probability, np.float64)
        return IntervalOperator(structure, frozen, frozen)

    @property
    def o_maximizes_rows(self) -> bool:
        return not self.is_plain

    def backup_error(self, system: System) -> float:
        """What rounding adds to a backup (`tightrope.ambiguity.o_maximization`), and a little more."""
        error = (self.structure.longest_choice + 6) * SUM_UNIT * (1 if self.is_plain else 2)
        return 1.0625 * error + (backups.STEP_ERROR if len(system.reward) or len(system.discount) else 0.0)

    def open_workspace(self, for_passes: bool = False) -> BackupWorkspace:
        start, width = self.structure.transition_start, self.structure.longest_choice
        if self.is_plain:
            order: OrderArray = np.empty(0, np.uint16)
        else:
            order = empty_order(start, width) if for_passes else natural_order(start, width)
        return BackupWorkspace(Scratch(order, np.empty(width), np.empty(width)))

    def split_workspace(self, workspace: BackupWorkspace) -> BackupWorkspace:
        order, key, mass = workspace.scratch
        scratch = Scratch(order, np.empty_like(key), np.empty_like(mass))
        return BackupWorkspace(scratch, care=workspace.care)

    def optimal_transitions(
        self, values: FloatArray, maximise: bool, workspace: BackupWorkspace | None = None
    ) -> BoolArray:
        if self.is_plain:
            return self.support.possible
        out = np.empty(self.structure.transitions, np.bool_)
        scratch = (workspace or self.open_workspace()).scratch
        backups.optimal(self.arrays, scratch, self.support.possible, values, maximise, out)
        return out


def _scale(structure: Structure, bound: FloatArray, *, above: bool, below: bool) -> FloatArray:
    """`bound` with rows scaled to sum 1 that miss it on the wrong side; the same array without any."""
    start = structure.transition_start
    if not _may_miss(start, bound, above, below):
        return bound
    total = np.add.reduceat(bound, start[:-1])
    tolerance = (np.diff(start) + 2) * SUM_UNIT
    wrong = np.zeros(len(total), np.bool_)
    if above:
        wrong |= total > 1 + tolerance
    if below:
        wrong |= total < 1 - tolerance
    if not wrong.any():
        return bound
    factor = np.where(wrong, total, 1.0)
    scaled: FloatArray = np.minimum(bound / np.repeat(factor, np.diff(start)), 1.0)
    release(scaled)
    return scaled


def _rows_with(structure: Structure, moved: BoolArray) -> BoolArray:
    """The transitions of choices with one that moved."""
    some = np.logical_or.reduceat(moved, structure.transition_start[:-1])
    return np.repeat(some, np.diff(structure.transition_start))


@kernel
def _may_miss(start: OffsetArray, bound: FloatArray, above: bool, below: bool) -> bool:
    """Whether some sum is off by half of what is tolerated: more than the order of adding can make up."""
    misses = False
    for c in range(len(start) - 1):
        total = 0.0
        for t in range(np.uint64(start[c]), np.uint64(start[c + 1])):
            total += bound[t]
        slack = 0.5 * (start[c + 1] - start[c] + 2) * SUM_UNIT
        misses |= (above and total > 1.0 + slack) or (below and total < 1.0 - slack)
    return misses


@dataclass(frozen=True, eq=False)
class Mixture:
    """The chain's kernel; `origin[c']` is the choice that choice c' of the chain makes, −1 where it mixes."""

    kernel: IntervalOperator
    origin: OffsetArray


def mix(kernel: IntervalOperator, weights: FloatArray) -> Mixture:
    """The chain of a randomised policy."""
    structure = kernel.structure
    used: BoolArray = weights > 0
    count = np.add.reduceat(used.astype(np.int64), structure.choice_start[:-1])
    choices = np.flatnonzero(used)
    owner = structure.choice_state[choices]
    mixes = count > 1
    new = choices[mixes[owner]]
    sole = np.full(structure.states, -1, np.int64)
    sole[owner] = choices
    sole[mixes] = -1
    origin = np.concatenate([sole, new])
    place = np.full(structure.choices, -1, np.int64)
    place[new] = structure.states + np.arange(len(new))

    own = np.diff(structure.transition_start)
    lengths = np.concatenate([np.where(mixes, count, own[np.maximum(sole, 0)]), own[new]])
    start = offsets(lengths)
    successor = np.empty(int(start[-1]), np.int32)
    lower, upper = np.empty(int(start[-1])), np.empty(int(start[-1]))
    rows = np.flatnonzero(origin >= 0)
    entry = stretches(start[rows], lengths[rows])
    source = stretches(structure.transition_start[origin[rows]], lengths[rows])
    successor[entry], lower[entry], upper[entry] = (
        structure.successor[source],
        kernel.lower[source],
        kernel.upper[source],
    )
    entry = stretches(start[np.flatnonzero(mixes)], count[mixes])
    successor[entry], lower[entry], upper[entry] = place[new], weights[new], weights[new]
    chain = Structure(
        choice_start=np.arange(len(origin) + 1, dtype=np.int64),
        transition_start=start,
        successor=successor,
        initial_states=structure.initial_states,
    )
    lower.flags.writeable = upper.flags.writeable = False
    if kernel.is_plain:
        return Mixture(IntervalOperator(chain, lower, lower), origin)
    return Mixture(IntervalOperator(chain, lower, upper), origin)
