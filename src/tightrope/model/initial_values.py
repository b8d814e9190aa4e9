"""Values at the initial states: one, or the least and the greatest where there are several.

PRISM answers a question about several initial states with the range of their values, and calls a property
true where it is true in all of them. From bounds lower ≤ v ≤ upper per state, over the initial states,

    min lower ≤ min v ≤ min upper      and      max lower ≤ max v ≤ max upper,

so both ends of the range are certified, and min lower ≤ v ≤ max upper holds for every initial state.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray

Span = tuple[float, float]

TRUE, FALSE, OPEN = "true", "false", "not certified"
"""The verdicts on a property that is true or false."""


@dataclass(frozen=True)
class InitialValues:
    """Bounds on the least and on the greatest value of the initial states; for one state they are equal."""

    states: int
    least: Span
    greatest: Span

    @classmethod
    def of(cls, structure: Structure, lower: FloatArray, upper: FloatArray) -> InitialValues:
        """From the bounds of all states."""
        at = list(structure.initial_states)
        low, high = lower[at], upper[at]
        least, greatest = (float(low.min()), float(high.min())), (float(low.max()), float(high.max()))
        return cls(len(at), least, greatest)

    @property
    def lower(self) -> float:
        """Below the values of all initial states."""
        return self.least[0]

    @property
    def upper(self) -> float:
        """Above the values of all initial states."""
        return self.greatest[1]


def verdict_of(structure: Structure, holds: BoolArray, fails: BoolArray) -> str:
    """'true' where a property holds in every initial state, 'false' where it fails in one of them."""
    at = list(structure.initial_states)
    return TRUE if holds[at].all() else FALSE if fails[at].any() else OPEN
