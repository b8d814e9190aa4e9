"""Progress: do the owners of a bound move on with positive probability, whatever the others do?

At a choice with box P(c) and a set A of transitions that count as progress:

* every p ∈ P(c) moves into A   iff  some lower bound in A is positive, or Σ_{not A} upper < 1;
* some p ∈ P(c) that keeps the bound inductive moves into A   if  some p moves into A at all and the
  inequality at c is strict (mix a little of that p in), or all values nature can give weight to are
  equal (every p is optimal), or the optimal p with most weight on A does (worked out in rationals).

Nature is asked the second way where she is an owner, the first way where she is not; likewise the
agent: his policy's choice where he owns the bound, all his choices where he does not.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.certificate.certificate import Claim, Problem
from tightrope.certificate.inner import Box, Extended, as_fraction, can_be_positive, falls_short
from tightrope.numerics.arrays import BoolArray, FloatArray


class Progress:
    """Progress under the ranking of a claim."""

    def __init__(self, problem: Problem, claim: Claim, box: Box):
        assert claim.ranking is not None
        self.problem, self.claim, self.box = problem, claim, box
        self.ranking = claim.ranking
        self.choice_state = np.repeat(np.arange(len(problem.choice_start) - 1), np.diff(problem.choice_start))

    def towards(
        self,
        absorbed: BoolArray,
        owner: str,
        bound: FloatArray,
        strict: BoolArray,
        reward: FloatArray | None = None,
    ) -> BoolArray:
        """States where the owners surely move to `absorbed` or a smaller rank with positive probability.

        `strict` marks the choices at which the inequality for `bound` is strict. With `reward`, earning
        one counts as moving on.
        """
        result = np.zeros(len(strict), dtype=np.bool_)
        for rows, table in self.box.blocks():
            state = self.choice_state[rows]
            successor = self.problem.successor[table]
            good = absorbed[successor] | (self.ranking[successor] < self.ranking[state][:, None])
            lower, upper = self.box.lower[table], self.box.upper[table]
            if self._nature_owns(owner):
                result[rows] = _some(lower, upper, good, bound[successor], strict[rows], owner)
            else:
                result[rows] = _every(lower, upper, good)
        if reward is not None:
            result |= reward > 0
        return self._by_state(result, np.zeros(len(result), dtype=np.bool_), owner)

    def misses(self, endless: BoolArray) -> BoolArray:
        """States from which maximisers stay within `endless`, or reach a smaller rank of it."""
        down = np.zeros(len(self.choice_state), dtype=np.bool_)
        stay = np.zeros(len(self.choice_state), dtype=np.bool_)
        for rows, table in self.box.blocks():
            state = self.choice_state[rows]
            successor = self.problem.successor[table]
            smaller = endless[successor] & (self.ranking[successor] < self.ranking[state][:, None])
            level = endless[successor] & (self.ranking[successor] <= self.ranking[state][:, None])
            lower, upper = self.box.lower[table], self.box.upper[table]
            if self._nature_owns("MAX"):
                down[rows] = np.any(smaller & can_be_positive(lower, upper), axis=1)
                stay[rows] = _can_stay(lower, upper, level)
            else:
                down[rows] = _every(lower, upper, smaller)
                stay[rows] = ~np.any(~level & (upper > 0), axis=1)
        return self._by_state(down, stay, "MAX")

    def earns_forever(self, endless: BoolArray, reward: FloatArray) -> BoolArray:
        """States from which maximisers reach a smaller layer, or stay in theirs and earn again and again."""
        layer = self.ranking // (len(self.ranking) + 1)
        sooner = np.zeros(len(self.choice_state), dtype=np.bool_)
        stay = np.zeros(len(self.choice_state), dtype=np.bool_)
        moves = reward > 0
        for rows, table in self.box.blocks():
            state = self.choice_state[rows]
            successor = self.problem.successor[table]
            lower, upper = self.box.lower[table], self.box.upper[table]
            smaller = endless[successor] & (layer[successor] < layer[state][:, None])
            level = endless[successor] & (layer[successor] <= layer[state][:, None])
            closer = level & (self.ranking[successor] < self.ranking[state][:, None])
            if self._nature_owns("MAX"):
                sooner[rows] = np.any(smaller & can_be_positive(lower, upper), axis=1)
                stay[rows] = _can_stay(lower, upper, level)
                # She must stay within the level and come closer with one distribution.
                moves[rows] |= np.any(closer & can_be_positive(lower, np.where(level, upper, 0)), axis=1)
            else:
                sooner[rows] = _every(lower, upper, smaller)
                stay[rows] = ~np.any(~level & (upper > 0), axis=1)
                moves[rows] |= _every(lower, upper, closer)
        if self.claim.policy_kind == "randomised":
            starts = self.problem.choice_start[:-1]
            used = self._weight > 0
            return np.logical_or.reduceat(sooner & used, starts) | (
                np.logical_and.reduceat(stay | ~used, starts) & np.logical_or.reduceat(moves & used, starts)
            )
        return self._by_state(sooner | (stay & moves), np.zeros(len(stay), dtype=np.bool_), "MAX")

    @property
    def _weight(self) -> FloatArray:
        assert self.claim.weight is not None
        return self.claim.weight

    def _nature_owns(self, owner: str) -> bool:
        """Whether nature, where she has a say at all, is on the owners' side."""
        return self.problem.sets == "interval" and self.problem.nature == owner

    def _by_state(self, moves: BoolArray, stays: BoolArray, owner: str) -> BoolArray:
        """From choices to states: the witness policy's, all of an opponent's, or a mixture.

        A mixture moves if one of its choices does, and stays only if all of them do.
        """
        starts = self.problem.choice_start[:-1]
        if self.claim.policy_kind == "randomised":
            used = self._weight > 0
            return np.logical_or.reduceat(moves & used, starts) | np.logical_and.reduceat(
                stays | ~used, starts
            )
        either = moves | stays
        if self.claim.policy_kind == "fixed" or self.problem.agent == owner:
            assert self.claim.policy is not None
            chosen: BoolArray = either[self.claim.policy]
            return chosen
        result: BoolArray = np.logical_and.reduceat(either, starts)
        return result


def _can_stay(lower: Extended, upper: Extended, level: BoolArray) -> BoolArray:
    """Some distribution of the box gives `level` probability 1."""
    result: BoolArray = ~falls_short(upper, level) & ~np.any(~level & (lower > 0), axis=1)
    return result


def _some(
    lower: Extended, upper: Extended, good: BoolArray, values: FloatArray, strict: BoolArray, owner: str
) -> BoolArray:
    """Some distribution that keeps the bound inductive gives `good` a positive probability."""
    if owner == "MIN":  # weight on an infinite value would make hers infinite
        upper = np.where(np.isinf(values), 0, upper)
    possible = np.any(good & can_be_positive(lower, upper), axis=1)
    weighted = upper > 0
    highest = np.where(weighted, values, -np.inf).max(axis=1)
    lowest = np.where(weighted, values, np.inf).min(axis=1)
    result: BoolArray = possible & (strict | (highest == lowest))
    for row in np.flatnonzero(possible & ~result).tolist():
        result[row] = _optimal_weight(lower[row], upper[row], good[row], values[row], owner) > 0
    return result


def _every(lower: Extended, upper: Extended, good: BoolArray) -> BoolArray:
    """Every distribution of the box gives `good` a positive probability."""
    surely = np.any(good & (lower > 0), axis=1)
    result: BoolArray = surely | falls_short(upper, ~good)
    return result


def _optimal_weight(
    lower: Extended, upper: Extended, good: BoolArray, values: FloatArray, owner: str
) -> Fraction:
    """The largest weight on `good` among optimal distributions: pour in the order of (value, good)."""
    sign = 1 if owner == "MAX" else -1
    entries = [i for i in range(len(values)) if upper[i] > 0]
    order = sorted(entries, key=lambda i: (sign * values[i], bool(good[i])), reverse=True)
    least = {i: as_fraction(lower[i]) for i in entries}
    left = 1 - sum(least.values(), Fraction(0))
    weight = Fraction(0)
    for i in order:
        extra = min(left, as_fraction(upper[i]) - least[i])
        left -= extra
        if good[i]:
            weight += least[i] + extra
    return weight
