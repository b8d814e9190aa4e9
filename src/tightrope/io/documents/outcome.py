"""What one kind of sets gave: the keys of `tightrope learn --json`, and an entry of a result's document.

What `watch --json` prints: one record per report, the last one marked.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.io.documents.coding import Real
from tightrope.verdict import Assumed, Kept, Verdict, Word


class AssumedFacts(msgspec.Struct, frozen=True):
    """An assumption: whether it is kept (yes, stated, no, unknown), and how that is known."""

    name: str
    kept: Kept
    why: str


def assumed_facts(verdict: Verdict) -> list[AssumedFacts]:
    """What a verdict rests on."""
    return [AssumedFacts(one.name, one.kept, one.why) for one in verdict.assumptions]


def read_verdict(word: Word, assumptions: list[AssumedFacts], why: str) -> Verdict:
    """The verdict that was written; never better than what it rests on."""
    rests_on = tuple(Assumed(one.name, one.kept, one.why) for one in assumptions)
    return Verdict.of(rests_on) if word is Word.PROVED else Verdict(word, rests_on, why)


class Span(msgspec.Struct, frozen=True):
    """lower ≤ value ≤ upper."""

    lower: Real
    upper: Real

    @property
    def width(self) -> float:
        """How much is left open; 0 for a single value, ∞ included."""
        return self.upper - self.lower if self.upper != self.lower else 0.0


class WidthFacts(msgspec.Struct, frozen=True):
    """How much the data leave open: over all unknown expressions, and of each parameter."""

    mean: float
    max: float
    expressions: int
    parameters: dict[str, tuple[float, float]]


class BoundEvent(msgspec.Struct, frozen=True):
    """An event that holds the region in place, with the side that does."""

    event: int
    side: str
    text: str


class BindingFacts(msgspec.Struct, frozen=True):
    """The events that bind; of very many the first ones are listed."""

    total: int
    events: list[BoundEvent]


class LedgerFacts(msgspec.Struct, frozen=True):
    """How δ is spent and what is assumed of the data; `lines` says it in words."""

    delta: float
    holds: bool
    lines: list[str]
    events: int = 0
    gamma: Real = 0.0
    method: str = ""
    budget: str = ""
    assumption: str = ""
    censored: list[str] = []


class WitnessFacts(msgspec.Struct, frozen=True):
    """A point of the region, and the value there."""

    at: dict[str, float]
    lower: Real
    upper: Real


class CoupledValueFacts(msgspec.Struct, frozen=True):
    """A value over one parameter vector for the whole run: how it ended, and points next to its ends."""

    lower: Real
    upper: Real
    rectangular: Span
    status: str
    reason: str | None
    gap: Real
    rectangular_lost_nothing: bool
    witness: dict[str, WitnessFacts | None]
    cells: int


class CandidateFacts(msgspec.Struct, frozen=True):
    """A policy that was considered for coupled sets."""

    origin: str
    guarantee: Real


class CoupledFacts(msgspec.Struct, frozen=True):
    """How the robust policy over coupled sets was found, and how far from the best it can be."""

    robust_policy: CoupledValueFacts | None
    value: CoupledValueFacts | None
    limit: Real | None = None
    optimality_gap: Real | None = None
    candidates: list[CandidateFacts] = []


class SeenFacts(msgspec.Struct, frozen=True):
    """An outcome: how often it was seen, and the frequency beside what the best fit expects."""

    outcome: str
    count: int
    observed: float
    expected: float


class MovedFacts(msgspec.Struct, frozen=True):
    """A parameter before and after a change, and by how many standard errors it moved."""

    parameter: str
    before: float
    after: float
    standard_errors: float


class SuspectFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A departure from the model: `kind` is expression, tie, drift, excluded or returns.

    `log_e_value` is the natural logarithm of its own evidence, before it is weighed against the others; null
    where it is infinite. `since` are the events before a change.
    """

    kind: str
    text: str
    log_e_value: Real | None
    outcomes: list[SeenFacts] = []
    since: int | None = None
    moved: list[MovedFacts] = []


class LookFacts(msgspec.Struct, frozen=True):
    """What the evidence was after so many events."""

    events: int
    log_e_value: Real


class FitFacts(msgspec.Struct, frozen=True):
    """Do the data fit the model? An e-value, at a level `alpha` of its own.

    `verdict` is fits, evidence growing, model contradicted or not tested; `text` says it with its numbers.
    Under the model the e-value ever reaches 1/alpha with probability at most alpha; where `nominal` names
    what is missing from the data, in name only. `ordered`: whether the data are batched in time.
    """

    verdict: str
    alarm: bool
    e_value: Real
    log_e_value: Real
    alpha: float
    events: int
    first_alarm: int | None
    ordered: bool
    nominal: list[str]
    text: str
    looks: list[LookFacts]
    suspects: list[SuspectFacts]


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of the listed expressions in the sets."""

    lower: list[float]
    upper: list[float]


class Outcome(msgspec.Struct, kw_only=True):
    """A result of `learn`. `value` is the given policy's interval, `robust_policy` the synthesised one's.

    `verdict`: proved, nominal, contradicted or limit; it rests on the `assumptions`, and `why` says what
    keeps it from being proved. `contradiction` are words about an empty region, `conflict` the observations
    that contradict each other there, `misfit` words about a test of the model that has raised an alarm.
    """

    verdict: Word
    why: str
    assumptions: list[AssumedFacts]
    empty: bool
    fallback: bool
    contradiction: str | None = None
    conflict: list[str] | None = None
    misfit: str | None = None
    fit: FitFacts | UnsetType | None = UNSET
    region: str | None = None
    sets: str
    relaxation: str
    value: Span | None = None
    robust_policy: Span
    guarantee: Real
    optimistic: Real
    coupled: CoupledFacts | None = None
    widths: WidthFacts
    binding: BindingFacts
    ledger: LedgerFacts
    reasons: list[str]
    notes: list[str]
    status: str
    seconds: dict[str, float]

    @property
    def label(self) -> str:
        """The kind of sets, with a word where it is not the one asked for."""
        return f"{self.sets} (fallback)" if self.fallback else self.sets

    @property
    def judged(self) -> Verdict:
        """The verdict with what it rests on."""
        return read_verdict(self.verdict, self.assumptions, self.why)

    @property
    def shown(self) -> Span:
        """The given policy's interval where there is one, as `tightrope learn` prints it."""
        return self.value if self.value is not None else self.robust_policy


class StoredOutcome(Outcome, kw_only=True):
    """The same in a result's document, with the bounds of its expressions and the files beside it."""

    bounds: Bounds
    files: list[str] | UnsetType = UNSET

    @property
    def spans(self) -> list[Span]:
        """The bounds of the listed expressions, one by one."""
        return [Span(low, high) for low, high in zip(self.bounds.lower, self.bounds.upper, strict=True)]


class AverageAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`learn` for a long-run average: the robust policy's interval, and what no policy exceeds."""

    model: str
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    assumptions: list[AssumedFacts]
    robust_policy: Span
    guarantee: float
    optimistic: float
    sets: str
    ledger: LedgerFacts
    status: str
    notes: list[str]
    peak_memory: int
    seconds: dict[str, float]


class ReturnsFacts(msgspec.Struct, frozen=True):
    """A promise about a policy, beside the returns of its episodes.

    Of the `episodes` that were weighed some left the policy and some were cut off; what they do not show
    counts as good as it can be. Those that began `elsewhere` than in the initial state are not among them.
    `first_alarm` is the number of the event at which the evidence had reached 1/`alpha`.
    """

    policy: str
    promised: Real
    at_least: bool
    episodes: int
    left_policy: int
    cut_off: int
    elsewhere: int
    mean: float | None
    log_e_value: Real
    alpha: float
    alarm: bool
    first_alarm: int | None
    nominal: bool


class WatchRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A line of `watch --json`.

    With `--result` an `alarm` is one of the model or of the returns, each at half of `alpha`; `model_alpha`
    is the model's part. `e_value` and `log_e_value` are the evidence against the model, `first_alarm` the
    number of the event of the first alarm; `first_warning` that of the detector of changes, which has a rate
    of false alarms only. `nominal`: rows were left out, or their order or ends are not known, so that the
    level holds in name only. `verdict`: contradicted where there is an alarm, limit where nothing was read,
    nominal where the level holds in name only; proved says that the test is valid and raised no alarm.
    """

    verdict: Word
    why: str
    assumptions: list[AssumedFacts]
    alarm: bool
    e_value: Real
    log_e_value: Real
    alpha: float
    model_alpha: float
    events: int
    first_alarm: int | None
    first_warning: int | None
    suspects: list[SuspectFacts]
    parameters: dict[str, float]
    returns: ReturnsFacts | None
    read: dict[str, int]
    dropped: dict[str, int]
    nominal: bool
    final: bool
    seconds: float
