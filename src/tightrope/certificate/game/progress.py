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

from collections.abc import Callable
from functools import cached_property

import numpy as np

from tightrope.certificate.game.nature import Vector, signs_of_sums
from tightrope.certificate.game.operator import Game
from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray


class Play:
    """A bound of a game's value under a ranking of the states, at the game's states: all, or some."""

    def __init__(self, game: Game, bound: FloatArray, ranking: OffsetArray, upward: bool):
        self.game, self.boxes, self.bound, self.ranking = game, game.boxes, bound, ranking
        self.upward, self.owner = upward, "MIN" if upward else "MAX"
        self.state = np.repeat(game.state, np.diff(game.choice_start))

    @cached_property
    def value(self) -> Vector:
        """The bound, as far as it is used here."""
        return Vector.of(self.game.n, self.bound, self.game.used)

    @cached_property
    def per_choice(self) -> Vector:
        """What choices come to under the bound."""
        return self.game.choices(self.value, self.upward)

    def everywhere(self, holds: Callable[[Play], BoolArray]) -> BoolArray:
        """At which states something holds: asked of all, and in rationals where that leaves it open."""
        sure = holds(self)
        if not self.game.n.exact and len(left := np.flatnonzero(~sure)):
            again = Play(self.game.exactly(left), self.bound, self.ranking, self.upward)
            sure[left] = holds(again)
        return sure

    def towards(self, absorbed: BoolArray, earns: bool = False) -> BoolArray:
        """States where the owners move to `absorbed` or a smaller rank with positive probability; choices
        that earn something count as moving on if `earns`."""
        n, game = self.boxes.n, self.game
        result = (game.reward > 0) & earns
        strict = None
        for rows, table, single in self.boxes.blocks():
            successor = self.boxes.successor[table]
            good = absorbed[successor] | (self.ranking[successor] < self.ranking[self.state[rows]][:, None])
            lower, upper = self.boxes.rows(table)
            if game.nature_owns(self.owner) and not single:
                from tightrope.certificate.game.freedom import moves_willingly, strict_choices

                strict = strict_choices(self) if strict is None else strict
                there = self.value.take(successor)
                moves = moves_willingly(n, lower, upper, good, there, strict[rows], self.owner)
            else:
                moves = moves_always(n, lower, upper, good)
            result[rows] |= moves
        return self.by_state(result, np.zeros(len(result), dtype=np.bool_))

    def by_state(self, moves: BoolArray, stays: BoolArray) -> BoolArray:
        """From choices to states: the witness's, all of an opponent's, or a mixture.

        A mixture moves if one of its choices does, and stays only if all of them do.
        """
        starts = self.game.choice_start[:-1]
        result: BoolArray
        if self.game.weight is not None:
            used = self.game.weight > 0
            result = np.logical_or.reduceat(moves & used, starts)
            result |= np.logical_and.reduceat(stays | ~used, starts)
        elif self.game.agent_owns(self.owner):
            assert self.game.witness is not None
            result = (moves | stays)[self.game.witness]
        else:
            result = np.logical_and.reduceat(moves | stays, starts)
        return result


def moves_always(n: Arithmetic, lower: Numbers, upper: Numbers, good: BoolArray) -> BoolArray:
    """Every distribution of the box gives `good` a positive probability."""
    result: BoolArray = np.any(good & (lower > 0), axis=1)
    unsure = np.flatnonzero(~result)
    result[unsure] = signs_of_sums(n, np.where(good[unsure], 0, upper[unsure])) < 0
    return result
