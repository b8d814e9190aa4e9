"""What nature can do within a box of her own, decided without rounding: no remainder is too small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.game.nature import Vector, can_be_positive
from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.numerics.arrays import BoolArray

if TYPE_CHECKING:
    from tightrope.certificate.game.progress import Play


def strict_choices(play: Play) -> BoolArray:
    """Choices where the inequality for the bound is strict; of a mixture, where the mixture's is."""
    per_choice, of_choice = play.per_choice, play.value.take(play.state)
    if play.game.weight is not None:
        owner = np.repeat(np.arange(play.game.states), np.diff(play.game.choice_start))
        per_choice = play.game.mix(per_choice, play.upward).take(owner)
    return per_choice.below(of_choice) if play.upward else of_choice.below(per_choice)


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
