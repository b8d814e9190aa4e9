"""The kernel of interval models whose rows are trees of independent factors.

Such a row is a game with states in the middle of a step, which holds everything the factors can do together
(`tightrope.model.mdp`). Questions that count no steps are solved on that game (`game`). Backups that count
steps go through whole trees, layer by layer, each with safe rounding, so the value of a tree is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.model.mdp import FactoredRows, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.record import Record
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import BackupWorkspace
from tightrope.solver.equations.system import System


@dataclass(frozen=True, eq=False, repr=False)
class FactoredOperator(Record):
    """Backups of trees; `lower` and `upper` are the bounds of joint outcomes, which enclose them."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    rows: FactoredRows
    game: IntervalOperator

    @staticmethod
    def of(model: IntervalMDP) -> FactoredOperator:
        rows = model.factored
        assert rows is not None
        joint = IntervalOperator.of(model)
        game = IntervalOperator.of(IntervalMDP(rows.structure, rows.lower, rows.upper))
        return FactoredOperator(model.structure, joint.lower, joint.upper, rows, game)

    def safe_choices(self, system: System, values: FloatArray, upward: bool) -> FloatArray:
        """The safe value of every tree."""
        out, workspace = np.empty(self.structure.choices), self.game.open_workspace()
        every = self._values_within(system, values, upward, workspace)
        self.game.safe_range(system, every, upward, (0, len(out)), out, workspace)
        return out

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        """Nature's best answer in every tree, as probabilities of joint outcomes."""
        rows, game = self.rows, self.rows.structure
        workspace = self.game.open_workspace()
        enabled = np.ones(self.structure.choices, np.bool_)
        system = System.of(self.structure, (True, maximise), enabled)
        every = self._values_within(system, values, maximise, workspace)
        probability = self.game.answer(every, maximise, workspace)
        table = game.matrix(probability)
        reached, within = table[: rows.choices, : rows.states], table[: rows.choices, rows.states :]
        for _ in rows.layers:
            onward = within @ table[rows.choices :]
            reached, within = reached + onward[:, : rows.states], onward[:, rows.states :]
        joint = reached[self.structure.transition_choice, self.structure.successor]
        return np.asarray(joint, dtype=np.float64).reshape(-1)

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        """Those of one optimal answer."""
        return self.answer(values, maximise) > 0

    def _values_within(
        self, system: System, values: FloatArray, upward: bool, workspace: BackupWorkspace
    ) -> FloatArray:
        """The values of all states of the game: no step is taken, and nothing earned, within a tree."""
        rows, nothing = self.rows, np.zeros(0)
        resting = replace(system, reward=nothing, discount=nothing)
        every: FloatArray = np.append(values, np.zeros(rows.structure.states - rows.states))
        each = np.empty(rows.structure.choices)
        shift = rows.choices - rows.states
        for first, last in rows.layers:
            self.game.safe_range(resting, every, upward, (first + shift, last + shift), each, workspace)
            every[first:last] = each[first + shift : last + shift]
        return every
