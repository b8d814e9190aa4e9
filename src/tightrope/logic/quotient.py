"""A model whose end components are single states, each with a choice to stop there.

Inside a maximal end component the agent reaches every state from every other one, so what it is worth to get
there is the same everywhere in it. What is left are the choices that leave components: the states of the
quotient are the components and all other states, and after finitely many of its choices, on average, a play
has come to rest: no policy takes them for ever. `stopping` gives every component a choice to stop, which wins
with its own probability, and the states `won` and `lost` behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.logic.solving import reaching
from tightrope.model.graph.components import EndComponents
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.product import ranges
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import down, up


@dataclass(frozen=True, eq=False)
class Quotient:
    """`node[s]` is the state of the quotient that stands for s: components first. `choice` are the model's
    choices behind those of the quotient, −1 for stops and at the two last states."""

    model: MDP | IntervalMDP
    components: int
    node: OffsetArray
    owner: OffsetArray
    choice: OffsetArray

    @staticmethod
    def of(model: MDP | IntervalMDP, found: EndComponents) -> Quotient:
        structure, count = model.structure, found.count
        outside = found.component < 0
        node = np.where(outside, count + np.cumsum(outside) - 1, found.component).astype(np.int64)
        nodes = count + int(outside.sum())
        leaves = np.flatnonzero(~found.internal)
        owner = np.concatenate([node[structure.choice_state[leaves]], np.arange(count), [nodes, nodes + 1]])
        behind = np.concatenate([leaves, np.full(count + 2, -1)])
        order = np.lexsort((np.where(behind < 0, structure.choices, behind), owner))
        return Quotient(model, count, node, owner[order], behind[order])

    @property
    def nodes(self) -> int:
        """Without the two states behind stops."""
        return int(self.owner[-1]) - 1

    def stopping(self, wins: FloatArray) -> IntervalMDP:
        """The model of the quotient in which to stop in component i wins with probability wins[i]."""
        model, structure, nodes = self.model, self.model.structure, self.nodes
        is_stop = (self.choice < 0) & (self.owner < nodes)
        sizes = np.ones(len(self.owner), np.int64)
        kept = self.choice >= 0
        sizes[kept] = np.diff(structure.transition_start)[self.choice[kept]]
        sizes[is_stop] = 2
        start = np.concatenate([[0], np.cumsum(sizes)])
        taken, _ = ranges(structure.transition_start, self.choice[kept])
        place, _ = ranges(start, np.flatnonzero(kept))
        stop = start[:-1][is_stop]
        successor = np.empty(start[-1], np.int32)
        successor[place] = self.node[structure.successor[taken]]
        successor[stop], successor[stop + 1] = nodes, nodes + 1
        successor[-2:] = nodes, nodes + 1
        share = wins[self.owner[is_stop]]
        rest = np.maximum(down(1 - share), 0), np.minimum(up(1 - share), 1)
        given = (model.probability,) * 2 if isinstance(model, MDP) else (model.lower, model.upper)
        bounds = []
        for bound, other in zip(given, rest, strict=True):
            made = np.ones(start[-1])
            made[place], made[stop], made[stop + 1] = bound[taken], share, other
            bounds.append(made)
        built = Structure(
            choice_start=np.concatenate([[0], np.cumsum(np.bincount(self.owner, minlength=nodes + 2))]),
            transition_start=start,
            successor=successor,
            initial_states=tuple(sorted({int(self.node[s]) for s in structure.initial_states})),
            declared_mdp=True,
        )
        return IntervalMDP(built, *bounds)

    def winning(self, nature: Direction) -> Objective:
        """To stop and win, for a maximiser."""
        return reaching((Direction.MAX, nature), np.arange(self.nodes + 2) == self.nodes)

    def walking(self) -> Objective:
        """The largest number of choices before a stop, on average."""
        steps = RewardStructure(choice=(self.choice >= 0).astype(np.float64))
        target = np.arange(self.nodes + 2) >= self.nodes
        return Objective(
            ObjectiveKind.REACH_REWARD, Direction.MAX, Direction.MAX, target=target, reward=steps
        )
