"""The records behind `learn` of questions that are no single objective, `compare`, `improve`, `shield` and
planned draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.errors import InputError, describe
from tightrope.io import results
from tightrope.io.coding import DocumentFile, Real
from tightrope.numerics.record import Record

ANSWER_FILE = "answer.json"
ANSWER_FORMAT = "tightrope-answer"
ANSWER_VERSION = 1
DRAWS_FORMAT = "tightrope draws"
DRAWS_VERSION = 1


class ProvedFacts(msgspec.Struct, frozen=True):
    """The certificate that was asked for, the interval that it proves of each policy, and in words what it is
    not about."""

    digest: str
    file: str
    policies: dict[str, results.Interval]
    not_covered: list[str] | UnsetType = UNSET


class SignatureDraws(msgspec.Struct, kw_only=True, frozen=True):
    """How often choices of one signature are drawn altogether; `choices` and `example` say which they are."""

    signature: list[str]
    draws: int
    choices: int | UnsetType = UNSET
    example: str | UnsetType = UNSET


class DrawsDocument(msgspec.Struct, kw_only=True, frozen=True):
    """How many draws of which choice were planned (`tightrope.data.collection`)."""

    format: str = DRAWS_FORMAT
    version: int = DRAWS_VERSION
    model: str | None = None
    planned_from: str | None = None
    draws: list[SignatureDraws]


class StepFacts(msgspec.Struct, frozen=True):
    """A step of a chain, estimated from runs: its visits in a run, the chance of success from there, what its
    outcomes take from that chance in a run, and the most frequent of them."""

    name: str
    visits: Real
    chance: Real
    loss: Real
    outcomes: str


class AnswerDocument(results.Judged, kw_only=True):
    """What data say about the answer in the true model: a number lies in `value`, a property is `truth`.

    `robust_policy` is the interval of the policy that was found or given, `guarantee` the end of it that the
    agent dislikes, `optimistic` what no policy exceeds; null where the question has none."""

    format: str = ANSWER_FORMAT
    version: int = ANSWER_VERSION
    model: str
    model_hash: str
    question: str = msgspec.field(name="property")
    headline: str
    value: results.Interval | None = None
    truth: str | None = None
    robust_policy: results.Interval | None = None
    guarantee: float | None = None
    optimistic: float | None = None
    sets: str
    ledger: results.LedgerFacts
    outcomes: results.ObservedFacts | None = None
    fit: results.ModelFit | None = None
    status: str
    notes: list[str]
    peak_memory: int
    seconds: dict[str, float]
    certificate: ProvedFacts | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET
    files: list[str] | UnsetType = UNSET
    steps: list[StepFacts] = msgspec.field(default_factory=list)


class RateFacts(msgspec.Struct, frozen=True):
    """An unknown rate: its interval, how often it was seen, over which exposure, and the plain quotient."""

    rate: str
    lower: Real
    upper: Real
    events: int
    exposure: Real
    estimate: Real | None


class TimedLogFacts(msgspec.Struct, frozen=True):
    """How a log with times was read; `censored` counts sojourns that were cut off."""

    rows: int
    episodes: int
    jumps: int
    time: Real
    censored: int
    read_as: list[str]


class RateFinding(msgspec.Struct, frozen=True):
    """What a rate seems to depend on, in words and by a short name, and the evidence for it."""

    what: str
    feature: str
    e_value: Real


class RateAnswer(results.Judged, kw_only=True):
    """`learn` for a chain in continuous time: it has no choices, so both intervals are that of its value."""

    model: str
    question: str = msgspec.field(name="property")
    empty: bool
    fallback: bool
    value: results.Interval | None
    robust_policy: results.Interval | None
    widths: results.WidthFacts | None
    rates: list[RateFacts]
    findings: list[RateFinding]
    outcomes: results.ObservedFacts | None
    ledger: results.LedgerFacts
    status: str
    notes: list[str]
    data: TimedLogFacts
    peak_memory: int
    seconds: dict[str, float]
    certificate: ProvedFacts | UnsetType = UNSET


_FILES = DocumentFile(AnswerDocument, ANSWER_FILE, ANSWER_FORMAT, ANSWER_VERSION, "learn")
answer_file, read_answer = _FILES.find, _FILES.read


COMPARISON_FILE = "comparison.json"
COMPARISON_FORMAT = "tightrope-comparison"
COMPARISON_VERSION = 1
POLICY_FILES = {"today": "today.json", "new": "policy.json"}
"""Of both policies, where they are of the model itself."""


class CandidateAnswer(msgspec.Struct, frozen=True):
    """A policy: its value less the baseline's, by one parameter vector and by both intervals apart, and the
    parameters where the difference is smallest and largest."""

    name: str
    difference: results.Interval
    separate: results.Interval
    lowest: dict[str, Real] | None
    highest: dict[str, Real] | None


@dataclass(frozen=True, eq=False, repr=False)
class KeptProperty(Record):
    """A property that a policy must keep, and the certified interval of what is compared with the threshold:
    the difference to the baseline, or the policy's value."""

    text: str
    interval: results.Interval
    holds: bool


@dataclass(frozen=True)
class Change:
    """A state where the new policy does something else: what the log has seen of it, and its share of what is
    gained at the estimate. The shares of all changes sum to 1 (the performance difference lemma); they are
    an estimate, and say what to change first."""

    state: str
    today: str
    new: str
    visits: int
    share: Real | None


class ComparisonAnswer(results.Judged, kw_only=True):
    """`compare` and `improve`: the difference is that of the best policy to the baseline."""

    difference: results.Interval
    improvement: Real
    policy: str
    baseline: str
    candidates: list[CandidateAnswer]
    order: list[tuple[str, str]]
    kept: list[KeptProperty]
    limit: Real | None
    changes: list[Change]
    sentence: str
    delta: float
    data: results.ReadingFacts
    seconds: float
    output: str | None = None


class ComparisonDocument(msgspec.Struct, kw_only=True):
    """An answer with what it is about, as it is written."""

    format: str = COMPARISON_FORMAT
    version: int = COMPARISON_VERSION
    model: str
    model_hash: str
    question: str = msgspec.field(name="property")
    headline: str
    answer: ComparisonAnswer

    @property
    def about(self) -> dict[str, str]:
        return {"model": self.model, "property": self.question, "model hash": self.model_hash}


_COMPARISONS = DocumentFile(
    ComparisonDocument, COMPARISON_FILE, COMPARISON_FORMAT, COMPARISON_VERSION, "improve"
)
comparison_file, read_comparison = _COMPARISONS.find, _COMPARISONS.read


class ShieldFacts(results.Judged, kw_only=True):
    """What a shield is about: the `range` of all values, the digest of the `certificate` that it rests on."""

    question: str
    confidence: float | None = None
    maximises: bool
    complement: bool
    range: tuple[Real, Real]
    needs_patience: bool
    made_from: str | None = None
    certificate: str | None = None


class RemovedAction(msgspec.Struct, frozen=True):
    """In how many states the slack of a whole episode does not allow an action."""

    action: str
    states: int


class ShieldAnswer(ShieldFacts, kw_only=True):
    """`shield`: the guaranteed bound, and how often the shield interferes."""

    promise: Real
    slack: float
    patience: int | None
    states: int
    free_states: int
    removed: list[RemovedAction]


class ShieldDocument(ShieldFacts, kw_only=True):
    """A shield in a file, with the tables that it runs on: the bytes of every array in base64."""

    format: str = "tightrope shield"
    version: int = 4
    slack: float
    patience: int | None
    action_names: list[str]
    state_names: list[int | str | bool | list[int | str | bool]] | None
    arrays: dict[str, bytes]


# The record of a plan: what it is to reach, the ways to collect data, and what they are forecast to give.
#
# A plan is to reach a width, a distance from the best or a guarantee, or says what a budget is good for.
# `plan.json` is what `tightrope plan --json` prints as well. Everything in it is a forecast, not a guarantee;
# the `verdict` is about `gap_now` and `interval`, which follow from the data so far.

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


class PlanDocument(results.Judged, kw_only=True):
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
    interval: results.Interval
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


_PLANS = DocumentFile(PlanDocument, PLAN_FILE, PLAN_FORMAT, PLAN_VERSION, "plan")
plan_file, read_plan = _PLANS.find, _PLANS.read
