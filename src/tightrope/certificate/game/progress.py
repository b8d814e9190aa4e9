"""Progress: do the owners of a bound move on with positive probability, whatever the others do?

At a choice with box P(c) and a set A of transitions that count as progress:

* every p ∈ P(c) moves into A   iff  some lower bound in A is positive, or Σ_{not A} upper < 1;
* some p ∈ P(c) that keeps the bound inductive moves into A   if  some p moves into A at all and the
  inequality at c is strict (mix a little of that p in), or all values nature can give weight to are
  equal (every p is optimal), or the optimal p with most weight on A does (worked out in rationals).

Nature is asked the second way where she is an owner, the first way where she is not or where the box encloses
one distribution; likewise the agent: his witness where he owns the bound, all his choices where he does not.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.certificate.game.nature import Vector, can_be_positive, sums_below_one
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
        strict: BoolArray,
        earns: BoolArray | None = None,
    ) -> BoolArray:
        """States where the owners move to `absorbed` or a smaller rank with positive probability.

        `strict` marks the choices at which the inequality for `bound` is strict; choices that earn count as
        moving on.
        """
        n = self.boxes.n
        result = np.zeros(len(self.state), dtype=np.bool_) if earns is None else earns.copy()
        for rows, table, single in self.boxes.blocks():
            successor = self.boxes.successor[table]
            good = absorbed[successor] | (self.ranking[successor] < self.ranking[self.state[rows]][:, None])
            lower, upper = self.boxes.rows(table)
            if self.game.nature_owns(owner) and not single:
                moves = _some(n, lower, upper, good, bound.take(successor), strict[rows], owner)
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
    result[unsure] = sums_below_one(n, np.where(good[unsure], 0, upper[unsure]), exactly=not single)
    return result


def _some(
    n: Arithmetic,
    lower: Numbers,
    upper: Numbers,
    good: BoolArray,
    values: Vector,
    strict: BoolArray,
    owner: str,
) -> BoolArray:
    """Some distribution that keeps the bound inductive gives `good` a positive probability."""
    if owner == "MIN":  # weight on an infinite value would make hers infinite
        upper = np.where(values.infinite, 0, upper)
    possible = np.any(good & can_be_positive(n, lower, upper), axis=1)
    first = (upper > 0).argmax(axis=1)[:, None]
    alike = np.take_along_axis(values.number, first, 1) == values.number
    alike &= np.take_along_axis(values.infinite, first, 1) == values.infinite
    result: BoolArray = possible & (strict | np.all(alike | ~(upper > 0), axis=1))
    for row in np.flatnonzero(possible & ~result).tolist():
        value = [
            (bool(infinite), number)
            for infinite, number in zip(values.infinite[row], n.fractions(values.number[row]), strict=True)
        ]
        bounds = n.fractions(lower[row]), n.fractions(upper[row])
        result[row] = _optimal_weight(*bounds, good[row].tolist(), value, owner) > 0
    return result


def _optimal_weight(
    lower: list[Fraction],
    upper: list[Fraction],
    good: list[bool],
    value: list[tuple[bool, Fraction]],
    owner: str,
) -> Fraction:
    """The largest weight on `good` among optimal distributions: pour by value, `good` first among equals."""
    entries = [i for i in range(len(value)) if upper[i] > 0]
    order = sorted(entries, key=lambda i: not good[i])
    order.sort(key=lambda i: value[i], reverse=owner == "MAX")
    left = 1 - sum((lower[i] for i in entries), Fraction(0))
    weight = Fraction(0)
    for i in order:
        extra = min(left, upper[i] - lower[i])
        left -= extra
        weight += lower[i] + extra if good[i] else 0
    return weight
