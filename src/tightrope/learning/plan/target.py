"""What a plan is to reach: a width, a distance from the best, a guarantee; or what a budget is good for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tightrope.errors import InputError, describe


class Aim(Enum):
    """What is asked of a plan.

    >>> [aim.value for aim in Aim]
    ['gap', 'optimality', 'above', 'budget']
    """

    GAP = "gap"
    OPTIMALITY = "optimality"
    ABOVE = "above"
    BUDGET = "budget"


@dataclass(frozen=True)
class Target:
    """An aim and its number: a width of the policy's interval (`relative`: a share of its value), the
    distance between guarantee and what the best policy could reach, a guarantee, or a number of episodes.
    """

    aim: Aim
    amount: float
    relative: bool = False

    @staticmethod
    def of(
        gap: float | str | None, optimality: float | None, above: float | None, budget: int | None
    ) -> Target:
        """The one that is given."""
        given = {Aim.GAP: gap, Aim.OPTIMALITY: optimality, Aim.ABOVE: above, Aim.BUDGET: budget}
        named = [aim for aim, value in given.items() if value is not None]
        if len(named) != 1:
            raise InputError(
                "a plan has one aim: give one of `gap`, `optimality`, `above` and `budget`"
                if named
                else "nothing is asked for: give `gap`, `optimality`, `above` or `budget`"
            )
        aim = named[0]
        if aim is Aim.GAP:
            return _gap(gap)
        value = given[aim]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"`{aim.value}` is {describe(value)}, not a number")
        if aim is Aim.BUDGET and (value < 1 or value != int(value)):
            raise InputError(f"`budget` is {value:g}, not a whole number of episodes")
        if aim is Aim.OPTIMALITY and not value > 0.0:
            raise InputError(f"`optimality` is {value:g}, but a distance must be positive")
        return Target(aim, float(value))

    @property
    def text(self) -> str:
        """In words."""
        if self.aim is Aim.BUDGET:
            return f"what {self.amount:,.0f} more episodes are good for"
        if self.aim is Aim.ABOVE:
            return f"a guarantee of at least {self.amount:g}"
        if self.aim is Aim.OPTIMALITY:
            return f"guarantee and best possible value at most {self.amount:g} apart"
        return f"gap {100 * self.amount:g} % of the value" if self.relative else f"gap {self.amount:g}"


def _gap(given: float | str | None) -> Target:
    text = given.strip() if isinstance(given, str) else None
    try:
        if isinstance(given, bool):
            raise ValueError
        number = float(text.removesuffix("%")) if text is not None else float(given or 0.0)
    except (TypeError, ValueError):
        raise InputError(f"`gap` is {given!r}, neither a width nor a share such as '5%'") from None
    relative = text is not None and text.endswith("%")
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"`gap` is {given}, but a width must be positive")
    return Target(Aim.GAP, number / 100 if relative else number, relative)
