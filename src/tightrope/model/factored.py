"""Interval rows of commands that move together, factor by factor: a tree of intervals in place of one row.

Where the modules of a synchronisation draw independently, what they do together is a product: the outcome
(i, j) of two commands with sets P and Q (intervals that meet Σ = 1 each) has probability p_i·q_j with p ∈ P
and q ∈ Q. Three sets of distributions over joint outcomes, each within the next:

    products   { p_i·q_j     : p ∈ P, q ∈ Q }
    nested     { p_i·q_j^(i) : p ∈ P, every q^(i) ∈ Q }
    boxes      { r : l_i·m_j ≤ r_ij ≤ u_i·n_j, Σ r = 1 }   l ≤ p ≤ u and m ≤ q ≤ n the bounds of P and Q

The first is in the second: take q^(i) = q for every i. The second is in the third: l_i ≤ p_i ≤ u_i and m_j ≤
q_j^(i) ≤ n_j multiply, and Σ_ij p_i·q_j^(i) = Σ_i p_i = 1. With more factors both hold by induction, the
second factor being what the others do together. Both steps are strict in general: boxes forget that each
factor is a distribution, the nested set lets later factors look at the outcomes of earlier ones.

The products are no convex set, and their optimum is a multilinear program. The nested set is a polytope over
which a linear function has its optimum by recursion: the best q^(i) for each i, then the best p against what
these are worth. That recursion is a game on more states, one for each outcome of the factors before: nature
picks the distribution of one factor, moves, and picks the next. So the rows here are those of an ordinary
interval model with states behind the model's own that take no step, earn nothing and are called nothing.
Whatever is asked without counting steps is asked of that model, and steps are counted by backups of whole
trees (`tightrope.solver.kernels.factored_kernel`).

Every order of the factors gives a set that holds all products, and none is the smallest for every question.
The first factor looks at nothing, so the one with most freedom comes first and those without any last: with
one factor that is not a point the nested set is the set of products itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure, frozen_array
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record

JOINT_BOUNDS = (
    "synchronised intervals are read as the products of their bounds, which enclose what the commands allow "
    "together, and more"
)
"""What a reader is told where factors are known but not used."""


@dataclass(frozen=True, eq=False, repr=False)
class FactoredRows(Record):
    """A game of `structure.states` states: those of a model, the same choices in the same order, and behind
    them states in the middle of a step, with one choice each.

    Layer k of these is layer_start[k]..layer_start[k+1], the first begins where the model's own states end; a
    row leads to the model's own states and to layers before its own.
    """

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    layer_start: OffsetArray

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64))
        object.__setattr__(self, "layer_start", frozen_array(self.layer_start, np.int64))
        s, own = self.structure, self.states
        if self.layer_start[-1] != s.states or np.any(np.diff(s.choice_start)[own:] != 1):
            raise InputError("states in the middle of a step have one choice each")
        for first, last in self.layers:
            begin, end = s.transition_start[[self.choices + first - own, self.choices + last - own]]
            if s.successor[begin:end].max(initial=0) >= first:
                raise InputError("states in the middle of a step lead to layers before their own")

    def _facts_(self) -> Facts:
        return [("states in the middle of a step", f"{self.structure.states - self.states:,}")]

    @property
    def states(self) -> int:
        """Those of the model itself."""
        return int(self.layer_start[0])

    @property
    def choices(self) -> int:
        """Those of the model itself."""
        return int(self.structure.choice_start[self.states])

    @property
    def layers(self) -> list[tuple[int, int]]:
        """The first state of each layer, and the one behind its last."""
        return list(pairwise(self.layer_start.tolist()))

    def lift(self, objective: Objective) -> Objective:
        """The same question about the game, where no steps are counted: states in the middle of a step are
        no targets, and never forbidden."""
        more = self.structure.states - self.states
        truth, number = np.zeros(more, np.bool_), np.zeros(more)
        target, allowed, terminal = objective.target, objective.allowed, objective.terminal
        reward = objective.reward
        if reward is not None:
            parts = [
                None if part is None else np.append(part, number) for part in (reward.state, reward.choice)
            ]
            reward = RewardStructure(*parts)
        return replace(
            objective,
            target=None if target is None else np.append(target, truth),
            allowed=None if allowed is None else np.append(allowed, ~truth),
            terminal=None if terminal is None else np.append(terminal, number),
            reward=reward,
        )

    def lift_choices(self, choice: OffsetArray) -> OffsetArray:
        """A choice per state, with the only ones of states in the middle of a step."""
        return np.append(choice, np.arange(self.choices, self.structure.choices))

    def lift_weights(self, weight: FloatArray) -> FloatArray:
        """The same for probabilities of choices."""
        return np.append(weight, np.ones(self.structure.choices - self.choices))


def counts_steps(objective: Objective) -> bool:
    """Whether an answer depends on how many steps a play takes."""
    timed = (ObjectiveKind.NEXT, ObjectiveKind.CUMULATIVE, ObjectiveKind.DISCOUNTED)
    return objective.kind in timed or objective.lower_steps > 0 or objective.upper_steps is not None
