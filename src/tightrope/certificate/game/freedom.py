"""What nature can do within a box of her own, decided without rounding: no remainder is too small."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.numerics.arrays import BoolArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.game.nature import Vector
    from tightrope.certificate.game.operator import Game


def exact_signs(n: Arithmetic, entries: Numbers) -> OffsetArray:
    """The signs of Σ − 1 in every row: where adding lost something, sums close to 1 are worked out again."""
    total, exact = n.zeros(len(entries)), np.ones(len(entries), dtype=np.bool_)
    for term in entries.T:
        added = total + term
        back = added - total
        exact &= ((total - (added - back)) + (term - back)) == 0
        total = added
    signs = (total > 1).astype(np.int64) - (total < 1)
    near = abs(total - 1) <= 4 * (entries.shape[1] + 1) * n.epsilon
    for row in np.flatnonzero(~exact & near).tolist():
        whole = sum(n.fractions(entries[row]), Fraction(0))
        signs[row] = (whole > 1) - (whole < 1)
    return signs


def can_be_positive(
    n: Arithmetic, lower: Numbers, upper: Numbers, before: Callable[[int], BoolArray] | None = None
) -> BoolArray:
    """Entries that some distribution of the box gives a positive probability, after it gave as much as it can
    to those before(entry)."""
    result: BoolArray = upper > 0
    for i in range(lower.shape[1]):
        unsure = np.flatnonzero(result[:, i] & ~(lower[:, i] > 0))
        if len(unsure):
            taken = lower if before is None else np.where(before(i), upper, lower)
            result[unsure, i] = exact_signs(n, np.delete(taken[unsure], i, axis=1)) < 0
    return result


def strict_choices(game: Game, per_choice: Vector, bound: Vector, upward: bool) -> BoolArray:
    """Choices where the inequality for `bound` is strict; of a mixture, where the mixture's is."""
    state = np.repeat(np.arange(game.states), np.diff(game.choice_start))
    if game.weight is not None:
        per_choice = game.mix(per_choice, upward).take(state)
    of_choice = bound.take(state)
    return per_choice.below(of_choice) if upward else of_choice.below(per_choice)


def moves_willingly(
    n: Arithmetic,
    lower: Numbers,
    upper: Numbers,
    good: BoolArray,
    values: Vector,
    strict: BoolArray,
    owner: str,
) -> BoolArray:
    """Some distribution that keeps the bound inductive gives `good` a positive probability: any that can
    where the inequality is strict, else one that is optimal, which fills what is better first."""

    def before(i: int) -> BoolArray:
        own = values.take(np.s_[:, i : i + 1])
        return ~strict[:, None] & (values.below(own) if owner == "MIN" else own.below(values))

    if owner == "MIN":  # weight on an infinite value would make hers infinite
        upper = np.where(values.infinite, 0, upper)
    result: BoolArray = np.any(good & can_be_positive(n, lower, upper, before), axis=1)
    return result


def maximum_from_below(
    n: Arithmetic, lower: Numbers, upper: Numbers, x: Numbers, dual: Callable[[int], Numbers]
) -> Numbers:
    """Not above the maximum of p·x: the least of the dual's values at its kinks, dual(i) at x_i. If some
    distribution avoids everything below x_i, the maximum is at least x_i, which rounding may have missed."""
    best = dual(0)
    for i in range(1, x.shape[1]):
        best = np.minimum(best, dual(i))
    for i in range(0 if n.exact else x.shape[1]):
        under = x < x[:, i : i + 1]
        lost = np.flatnonzero((best < x[:, i]) & ~np.any(under & (lower > 0), axis=1))
        keeps = exact_signs(n, np.where(under[lost], 0, upper[lost])) >= 0
        best[lost[keeps]] = x[lost[keeps], i]
    return best
