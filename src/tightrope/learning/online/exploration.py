"""The collecting policy of an online run, and its stopping rule.

| exploration | the policy that collects |
|---|---|
| `designed` | the mixture of policies whose data shrink the gap most (`tightrope.design`) |
| `optimistic` | the one that is best if nature is kind |
| `robust` | the one with the best guarantee |
| `uniform` | every choice of a state alike |

The regions hold under any of them. The *gap* is the width of the robust policy's certified interval. A run
that stops when the gap is small stops by its data. Time-uniform methods hold at all interim analyses
simultaneously, so the last guarantee is valid; methods for fixed designs guarantee nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tightrope.ambiguity.sets import Sets
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.model.policy import Policy
from tightrope.problem import Problem


class Exploration(Enum):
    """The ways to explore.

    >>> Exploration("robust").value
    'robust'
    """

    DESIGNED = "designed"
    OPTIMISTIC = "optimistic"
    ROBUST = "robust"
    UNIFORM = "uniform"

    @property
    def follows_choices(self) -> bool:
        """Whether the policy changes when single choices were taken more often."""
        return self in (Exploration.OPTIMISTIC, Exploration.ROBUST)


class StagePolicy(Protocol):
    """What a stage of designed exploration executes."""

    @property
    def policy(self) -> Policy: ...


class StageDesigner(Protocol):
    """Designs the next stage from the data so far, the last policies and the sets of the present region."""

    def design(
        self, counts: Counts, robust: Policy, optimistic: Policy, sets: Callable[[], Sets]
    ) -> StagePolicy: ...


class Explorer(Protocol):
    """Who collects; `designer` is None where the policies of updates do (`tightrope.design.exploration`)."""

    @property
    def kind(self) -> Exploration: ...

    def designer(self, problem: Problem, delta: float, coupled: bool) -> StageDesigner | None: ...


def exploration(given: Exploration | str) -> Exploration:
    """The way to explore that a word means."""
    if isinstance(given, Exploration):
        return given
    known = {one.value: one for one in Exploration}
    if not isinstance(given, str) or given not in known:
        raise InputError(f"`explore` is {given!r}", hint=f"known are {', '.join(known)}")
    return known[given]


@dataclass(frozen=True)
class GapTarget:
    """A gap to come down to: `size` itself, or that share of the value.

    The value of which it is a share is that end of the interval which is nearer to 0, so that the gap is at
    most that share of every value in the interval; where 0 lies in it no gap but 0 is small enough.

    >>> GapTarget.of("5%").is_reached(Interval(0.95, 0.99))
    True
    >>> GapTarget.of(0.03).is_reached(Interval(0.95, 0.99))
    False
    """

    size: float
    relative: bool = False

    @staticmethod
    def of(given: float | str | GapTarget) -> GapTarget:
        """From a number, or a text such as "0.05" or "5%"."""
        if isinstance(given, GapTarget):
            return given
        text = str(given).strip()
        relative = text.endswith("%")
        try:
            size = float(text.removesuffix("%"))
        except ValueError:
            size = math.nan
        if isinstance(given, bool) or not (math.isfinite(size) and size > 0.0):
            raise InputError(
                f"the gap to reach is {given!r}, not a positive number or percentage",
                hint='0.05 is a width, "5%" is relative to the value',
            )
        return GapTarget(size / 100 if relative else size, relative)

    @property
    def text(self) -> str:
        return f"{100 * self.size:.10g}%" if self.relative else f"{self.size:.10g}"

    def is_reached(self, interval: Interval) -> bool:
        """Whether the interval is narrow enough."""
        gap = interval.upper - interval.lower
        if not math.isfinite(gap):
            return False
        if not self.relative:
            return gap <= self.size
        inside = interval.lower <= 0.0 <= interval.upper
        nearest = 0.0 if inside else min(abs(interval.lower), abs(interval.upper))
        return gap <= self.size * nearest


def default_exploration(until_gap: float | str | GapTarget | None) -> Exploration:
    """Where nobody says: what narrows a gap fastest where one is waited for, else what the paper does."""
    return Exploration.OPTIMISTIC if until_gap is None else Exploration.DESIGNED
