"""The record of a plan: what it is to reach, the ways to collect data, and what they are forecast to give.

A plan is to reach a width, a distance from the best or a guarantee, or says what a budget is good for.
`plan.json` is what `tightrope plan --json` prints as well. Everything in it is a forecast, not a guarantee;
the `verdict` is about `gap_now` and `interval`, which follow from the data so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.errors import InputError, describe
from tightrope.io.coding import DocumentFile, Real
from tightrope.io.results import Interval, Judged, SignatureDraws

DESIGNED, ROBUST, GIVEN, OPTIMISTIC, UNIFORM = "designed", "robust", "given", "optimistic", "uniform"
AS_SO_FAR = "as so far"
EVEN = "even"
"""As many draws of every signature, where draws are planned."""


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
    `falls`: small values are good ones, so that a guarantee is an upper bound."""

    aim: Aim
    amount: float
    relative: bool = False
    falls: bool = False

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
                else "a plan needs an aim: give `gap`, `optimality`, `above` or `budget`"
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

    def better(self, one: float, other: float) -> float:
        """By how much the first value is better than the second."""
        return other - one if self.falls else one - other

    @property
    def text(self) -> str:
        """In words."""
        if self.aim is Aim.BUDGET:
            return f"what {self.amount:,.0f} more episodes are good for"
        if self.aim is Aim.ABOVE:
            return f"a guarantee of at {'most' if self.falls else 'least'} {self.amount:g}"
        if self.aim is Aim.OPTIMALITY:
            return f"guarantee and best possible value at most {self.amount:g} apart"
        return f"gap {100 * self.amount:g}% of the value" if self.relative else f"gap {self.amount:g}"


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


def round_forecast(number: float) -> str:
    """Three digits are more than a forecast knows."""
    if not math.isfinite(number):
        return "> 1,000,000,000"
    if number < 1000:
        return f"{number:,.0f}"
    return f"{round(number, 2 - math.floor(math.log10(number))):,.0f}"


PLAN_FORMAT = "tightrope plan"
PLAN_VERSION = 2
PLAN_FILE = "plan.json"
LABEL = "a forecast, not a guarantee: `learn` on the new data gives the guarantee"


class StrategyFacts(msgspec.Struct, kw_only=True, frozen=True):
    """One way to collect data: more episodes until the aim, with a likely range, the steps they take, and the
    curve (more episodes, gap, low, high). Infinite numbers mean more than can be forecast."""

    name: str
    episodes: Real
    low: Real
    high: Real
    steps: Real
    steps_per_episode: float
    cost: Real
    gap: Real
    curve: list[tuple[float, Real, Real, Real]]


class DesignedFacts(msgspec.Struct, kw_only=True, frozen=True):
    """The exploration of the next stage: certified to lose at most the share `optimality` against the best at
    the estimate; `shares` of episodes belong to the policies 01, 02, … of the directory. `certified` bounds
    the probability of what is to be avoided, `certified_drawn` that where one of the policies is drawn per
    episode."""

    optimality: Real
    solves: int
    shares: list[float]
    policy: str
    steps_per_episode: float
    loss: float
    certified: float | UnsetType = UNSET
    certified_drawn: float | UnsetType = UNSET


class CombinationFacts(msgspec.Struct, frozen=True):
    """A combination of parameters and its share of the gap."""

    combination: str
    share: float


class NextFacts(msgspec.Struct, frozen=True):
    """What to run next."""

    episodes: int
    policy: str


class PlanDocument(Judged, kw_only=True):
    """What a plan says; `design` and `next` are null where there is nothing to collect. Where `unit` is
    "draws", what is said of episodes is about draws of single choices, and `draws` says how many of which."""

    format: str = PLAN_FORMAT
    version: int = PLAN_VERSION
    model: str
    model_hash: str
    question: str = msgspec.field(name="property")
    delta: float
    region: str
    sets: str
    aim: str
    asked: float
    relative: bool
    status: str
    forecast: bool = True
    label: str
    interval: Interval
    value: Real
    gap_now: Real
    gap_asked: Real | None
    episodes_so_far: int
    steps_so_far: int
    strategies: list[StrategyFacts]
    design: DesignedFacts | None
    directions: list[CombinationFacts]
    unidentifiable: list[str]
    next: NextFacts | None
    notes: list[str]
    unit: str = "episodes"
    draws: list[SignatureDraws] | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    output: str | UnsetType = UNSET


_FILES = DocumentFile(PlanDocument, PLAN_FILE, PLAN_FORMAT, PLAN_VERSION, "plan")
plan_file, read_plan = _FILES.find, _FILES.read
