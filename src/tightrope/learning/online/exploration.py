"""Who collects the data of an online run, and when it may stop.

| exploration | the policy that collects |
|---|---|
| `designed` | the mixture of policies whose data shrink the gap most (`tightrope.design`) |
| `optimistic` | the one that is best if nature is kind |
| `robust` | the one with the best guarantee |
| `uniform` | every choice of a state alike |

The regions hold under any of them: nothing of how a policy was found enters a guarantee.

*A gap* is the width of the robust policy's certified interval: its value under every nature that the data
leave. A run that stops as soon as the gap is small has looked many times, and stops by what it saw;
time-uniform methods hold at all looks at once with the confidence of one, so its last guarantee is worth
what it says. Where a method holds for fixed designs only, the ledger says that nothing is guaranteed,
however small the gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tightrope.design.priced import Cost
from tightrope.errors import InputError
from tightrope.learning.result import Interval
from tightrope.numerics.record import Record


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


@dataclass(frozen=True, eq=False, repr=False)
class Explore(Record):
    """A way to explore, with what a design must know.

    * `cap`: the steps after which an episode is ended; needed where one need not end.
    * `cost`: what an episode, a step or an action costs ("episode=1,step=0.01"); episodes by default.
    * `avoid`, `at_most`: episodes meet the states of this formula, such as '"crash"', with at most this
      probability, certified over all that the data leave possible.

    >>> Explore("designed", cost="episode=1,step=0.01").price.step
    0.01
    """

    way: Exploration | str = Exploration.OPTIMISTIC
    cap: int | None = None
    cost: Cost | str | None = None
    avoid: str | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "way", exploration(self.way))
        if (self.avoid is None) != (self.at_most is None):
            raise InputError("`avoid` and `at_most` go together: what to avoid, and how likely it may be")
        if self.kind is not Exploration.DESIGNED:
            for name in ("cost", "avoid"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"`{name}` goes with designed exploration, and {self.kind.value} was asked for",
                        hint='`explore="designed"`',
                    )

    @staticmethod
    def of(given: Explore | Exploration | str | None, until_gap: float | str | None) -> Explore:
        """What is asked for, or what is best for the question where nothing is."""
        if isinstance(given, Explore):
            return given
        return Explore(default_exploration(until_gap) if given is None else given)

    @property
    def kind(self) -> Exploration:
        assert isinstance(self.way, Exploration)
        return self.way

    @property
    def price(self) -> Cost:
        """What data cost."""
        if isinstance(self.cost, Cost):
            return self.cost
        return Cost() if self.cost is None else Cost.parse(self.cost)


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
