"""Progress: do the owners of a bound move on with positive probability, whatever the others do?

At a choice with box P(c) and a set A of transitions that count as progress:

* every p ∈ P(c) moves into A   iff  some lower bound in A is positive, or Σ_{not A} upper < 1;
* some p ∈ P(c) that keeps the bound inductive moves into A   if  some p moves into A at all and the
  inequality at c is strict (mix a little of that p in), or some optimal p does: there is weight left for a
  successor in A once all better ones have theirs.

Nature is asked the second way where she is an owner, the first way where she is not or where the box encloses
one distribution; likewise the agent: his witness where he owns the bound, all his choices where he does not.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.game.nature import Vector, signs_of_sums
from tightrope.certificate.game.operator import Game
from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.numerics.arrays import BoolArray, OffsetArray


class Progress:
    """Progress in a game under a ranking of its states."""

    def __init__(self, game: Game, ranking: OffsetArray):
        self.game, self.boxes, self.ranking = game, game.boxes, ranking
        self.state = np.repeat(np.arange(game.states), np.diff(game.choice_start))

    def towards(
        self,
        absorbed: BoolArray,
        owner: str,
        bound: Vector,
        per_choice: Vector,
        earns: BoolArray | None = None,
    ) -> BoolArray:
        """States where the owners move to `absorbed` or a smaller rank with positive probability.

        `per_choice` is what choices come to under `bound`; those that earn count as moving on.
        """
        n = self.boxes.n
        result = np.zeros(len(self.state), dtype=np.bool_) if earns is None else earns.copy()
        for rows, table, single in self.boxes.blocks():
            successor = self.boxes.successor[table]
            good = absorbed[successor] | (self.ranking[successor] < self.ranking[self.state[rows]][:, None])
            lower, upper = self.boxes.rows(table)
            if self.game.nature_owns(owner) and not single:
                from tightrope.certificate.game.freedom import moves_willingly, strict_choices

                strict = strict_choices(self.game, per_choice, bound, owner == "MIN")[rows]
                moves = moves_willingly(n, lower, upper, good, bound.take(successor), strict, owner)
            else:
                moves = moves_always(n, lower, upper, good, single)
            result[rows] |= moves
        return self.by_state(result, np.zeros(len(result), dtype=np.bool_), owner)

    def by_state(self, moves: BoolArray, stays: BoolArray, owner: str) -> BoolArray:
        """From choices to states: the witness's, all of an opponent's, or a mixture.

        A mixture moves if one of its choices does, and stays only if all of them do.
        """
        starts = self.game.choice_start[:-1]
        result: BoolArray
        if self.game.weight is not None:
            used = self.game.weight > 0
            result = np.logical_or.reduceat(moves & used, starts)
            result |= np.logical_and.reduceat(stays | ~used, starts)
        elif self.game.agent_owns(owner):
            assert self.game.witness is not None
            result = (moves | stays)[self.game.witness]
        else:
            result = np.logical_and.reduceat(moves | stays, starts)
        return result


def moves_always(n: Arithmetic, lower: Numbers, upper: Numbers, good: BoolArray, single: bool) -> BoolArray:
    """Every distribution of the box gives `good` a positive probability."""
    result: BoolArray = np.any(good & (lower > 0), axis=1)
    unsure = np.flatnonzero(~result)
    result[unsure] = signs_of_sums(n, np.where(good[unsure], 0, upper[unsure]), single) < 0
    return result
