"""The records behind `learn` of questions that are no single objective, `compare`, `improve` and `shield`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.io.coding import DocumentFile, Real
from tightrope.io.results import (
    Interval,
    Judged,
    LedgerFacts,
    ModelFit,
    ObservedFacts,
    ReadingFacts,
    WidthFacts,
)
from tightrope.numerics.record import Record

ANSWER_FILE = "answer.json"
ANSWER_FORMAT = "tightrope-answer"
ANSWER_VERSION = 1


class ProvedFacts(msgspec.Struct, frozen=True):
    """The certificate that was asked for, the interval that it proves of each policy, and in words what it is
    not about."""

    digest: str
    file: str
    policies: dict[str, Interval]
    not_covered: list[str] | UnsetType = UNSET


class StepFacts(msgspec.Struct, frozen=True):
    """A step of a chain, estimated from runs: its visits in a run, the chance of success from there, what its
    outcomes take from that chance in a run, and the most frequent of them."""

    name: str
    visits: Real
    chance: Real
    loss: Real
    outcomes: str


class AnswerDocument(Judged, kw_only=True):
    """What data say about the answer in the true model: a number lies in `value`, a property is `truth`.

    `robust_policy` is the interval of the policy that was found or given, `guarantee` the end of it that the
    agent dislikes, `optimistic` what no policy exceeds; null where the question has none."""

    format: str = ANSWER_FORMAT
    version: int = ANSWER_VERSION
    model: str
    model_hash: str
    question: str = msgspec.field(name="property")
    headline: str
    value: Interval | None
    truth: str | None
    robust_policy: Interval | None
    guarantee: float | None
    optimistic: float | None
    sets: str
    ledger: LedgerFacts
    outcomes: ObservedFacts | None = None
    fit: ModelFit | None = None
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


class RateAnswer(Judged, kw_only=True):
    """`learn` for a chain in continuous time: it has no choices, so both intervals are that of its value."""

    model: str
    question: str = msgspec.field(name="property")
    empty: bool
    fallback: bool
    value: Interval | None
    robust_policy: Interval | None
    widths: WidthFacts | None
    rates: list[RateFacts]
    findings: list[RateFinding]
    outcomes: ObservedFacts | None
    ledger: LedgerFacts
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
    difference: Interval
    separate: Interval
    lowest: dict[str, Real] | None
    highest: dict[str, Real] | None


@dataclass(frozen=True, eq=False, repr=False)
class KeptProperty(Record):
    """A property that a policy must keep, and the certified interval of what is compared with the threshold:
    the difference to the baseline, or the policy's value."""

    text: str
    interval: Interval
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


class ComparisonAnswer(Judged, kw_only=True):
    """`compare` and `improve`: the difference is that of the best policy to the baseline."""

    difference: Interval
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
    data: ReadingFacts
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


class ShieldFacts(Judged, kw_only=True):
    """What a shield is about and rests on; `range` are the possible values of the question, `certificate`
    the digest of the certificate that its prices follow from, `made_from` the data that it has seen."""

    question: str
    confidence: float | None
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


class ShieldDocument(ShieldAnswer, kw_only=True):
    """A shield in a file: what `shield` prints, and the tables that it runs on. Of every array: numpy's name
    of its type, its shape, and its bytes in base64."""

    format: str = "tightrope shield"
    version: int = 1
    action_names: list[str]
    state_names: list[Any] | None
    arrays: dict[str, tuple[str, list[int], str]]
