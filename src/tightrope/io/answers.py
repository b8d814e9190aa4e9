"""What the commands print with `--json`, one record each; with the JSON schemas of all records.

Keys that an answer has in some cases only are left out of the others (`UNSET`).

Schemas are made from the records themselves:

    python -m tightrope.io.answers docs/schemas

writes one file per document; a test keeps them current. The number in a name is the major version: within it
keys are added, never removed or given another meaning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.io.coding import Real, json_schema
from tightrope.io.plans import PlanDocument
from tightrope.io.results import (
    CoupledValueFacts,
    DesignFacts,
    DrawsDocument,
    Interval,
    KeptFacts,
    LedgerFacts,
    ManifestDocument,
    Outcome,
    PolicyDocument,
    ResultDocument,
    SuspectFacts,
    WidthFacts,
    WitnessFacts,
)
from tightrope.verdict import Assumed, Word


class InfoAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`info`: what is in a model.

    `expressions` counts the distinct ones, constants included; an interval model has none.
    `unproved_expressions` counts those that were not proved to stay within [0, 1] on the domain, though no
    point of it is known where they leave.
    """

    model: str
    type: str
    states: int
    choices: int
    transitions: int
    parameters: tuple[str, ...]
    domain: str
    expressions: int
    nonconstant_expressions: int
    degree: int
    unproved_expressions: int
    labels: tuple[str, ...]
    label_states: dict[str, int]
    rewards: tuple[str, ...]
    deadlocks: int
    seconds: float


class StateValue(msgspec.Struct, frozen=True):
    """A state with its bounds and what is done there."""

    state: str
    lower: Real
    upper: Real
    action: str


class InitialFacts(msgspec.Struct, frozen=True):
    """Several initial states: how many, and bounds on the least and on the greatest of their values."""

    states: int
    least: Interval
    greatest: Interval


class PropertyAnswer(msgspec.Struct, kw_only=True):
    """The value of one property; `answer` where it asks whether something is true.

    `verdict`: proved, or limit where the bounds are wider than was asked or leave it open; `why` says what
    is missing. `verdicts` are answers state by state, `notes` how the property was read, `points` what
    policies attain of several objectives. Where there are several `initial` states, the values of all of
    them lie between `lower` and `upper`.
    """

    verdict: Word
    why: str
    assumptions: list[Assumed]
    question: str | UnsetType = msgspec.field(default=UNSET, name="property")
    name: str | UnsetType = UNSET
    read_as: str | UnsetType = UNSET
    robust_form: str | UnsetType = UNSET
    lower: Real | UnsetType = UNSET
    upper: Real | UnsetType = UNSET
    initial: InitialFacts | UnsetType = UNSET
    status: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    iterations: int | UnsetType = UNSET
    states: list[StateValue] | UnsetType = UNSET
    verdicts: dict[str, str] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    points: list[list[Real]] | UnsetType = UNSET


class Built(msgspec.Struct, frozen=True):
    """How much of a model was built."""

    states: int
    all: bool


class CheckAnswer(PropertyAnswer, kw_only=True):
    """`check`: the one property's answer is the head; several are listed under `properties`."""

    model: str
    properties: list[PropertyAnswer] | UnsetType = UNSET
    built: Built
    seconds: dict[str, float]
    peak_memory: int


class DomainAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`check --sets`: the interval of a policy over the whole domain."""

    model: str
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    assumptions: list[Assumed]
    sets: str
    policy: str
    lower: Real
    upper: Real
    status: str
    witness: dict[str, WitnessFacts | None] | None
    gap: Real | None
    coupled: CoupledValueFacts | None
    limit: Real | None
    optimality_gap: Real | None
    certificate: Interval | None
    notes: list[str]
    peak_memory: int
    seconds: dict[str, float]


class SampleAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`sample`: what was simulated."""

    episodes: int | None
    steps: int
    seconds: float
    design: str
    cap: int | None
    batches: int
    transitions_seen: int
    file: str


class ReadingFacts(msgspec.Struct, kw_only=True, frozen=True):
    """How a log was read."""

    rows: int
    read_as: list[str]
    notes: list[str]
    dropped: dict[str, int]
    censored: list[str]
    kept: KeptFacts | UnsetType = UNSET


class ProvedFacts(msgspec.Struct, frozen=True):
    """The certificate that was asked for, the interval that it proves of each policy, and in words what it is
    not about."""

    digest: str
    file: str
    policies: dict[str, Interval]
    not_covered: list[str] | UnsetType = UNSET


class LearnAnswer(Outcome, kw_only=True):
    """`learn`: with `--sets all` that of the last kind, and all of them under `all`."""

    peak_memory: int
    true_value: Interval | None = None
    output: str | None = None
    all: list[Outcome] | UnsetType = UNSET
    data: ReadingFacts
    certificate: ProvedFacts | UnsetType = UNSET


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


class RateAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`learn` for a chain in continuous time: it has no choices, so both intervals are that of its value."""

    model: str
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    assumptions: list[Assumed]
    empty: bool
    fallback: bool
    value: Interval | None
    robust_policy: Interval | None
    widths: WidthFacts | None
    rates: list[RateFacts]
    ledger: LedgerFacts
    status: str
    notes: list[str]
    data: TimedLogFacts
    peak_memory: int
    seconds: dict[str, float]


class EmptyAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`learn --no-fallback` where the region is empty: no parameters fit the data."""

    verdict: Word
    why: str
    assumptions: list[Assumed]
    empty: bool
    fallback: bool
    contradiction: str
    conflict: list[str] | None
    value: None
    robust_policy: None
    widths: None
    ledger: LedgerFacts
    seconds: dict[str, float]


class DriftFacts(msgspec.Struct, kw_only=True, frozen=True):
    """What the monitor beside an online run says (`--on-drift`).

    `log_e_value` is the largest so far, a natural logarithm; `first_alarm` the event of the alarm, of the
    `events` seen since the last of the `restarts`; `since` are the episodes that were forgotten there.
    """

    alarm: bool
    first_alarm: int | None
    log_e_value: Real
    alpha: float
    events: int
    restarts: int
    since: int


class OnlineRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A line of `online --json` and of `records.jsonl`: one update.

    `verdict` is about the guarantee, and in the last line about the gap where one was asked for. `gap` is
    the width of the robust policy's interval, and `reached` whether it is as small as was asked; both only
    where a gap was asked for.
    """

    verdict: Word
    why: str
    assumptions: list[Assumed]
    update: int
    episode: int
    steps: int
    guarantee: Real
    best_guarantee: Real | UnsetType | None = UNSET
    optimistic: Real
    width: Real
    gap: Real | UnsetType = UNSET
    reached: bool | UnsetType = UNSET
    status: str
    fallback: bool
    seconds: float
    performance: Real | None
    holds: bool | None
    final: bool
    elapsed: float
    drift: DriftFacts | UnsetType = UNSET
    peak_memory: int | UnsetType = UNSET


class UnknownValue(msgspec.Struct, frozen=True):
    """A value of a log that the model does not know, and in how many rows."""

    value: str
    rows: int


class ActionFacts(msgspec.Struct, frozen=True):
    """The choices of an action: how many there are, were taken, and how often altogether."""

    action: str
    choices: int
    visited: int
    visits: int


class ChoiceVisits(msgspec.Struct, frozen=True):
    """How often a choice was taken."""

    choice: str
    visits: int


class CoverageFacts(msgspec.Struct, kw_only=True, frozen=True):
    """Which choices of a model a log has visited."""

    states: int
    states_visited: int
    choices: int
    visited: int
    open_choices: int
    open_visited: int
    actions: list[ActionFacts]
    fewest_visits: list[ChoiceVisits]
    never_visited: list[str]


class ExpressionEstimateFacts(msgspec.Struct, frozen=True):
    """What a log says about an expression."""

    expression: str
    seen: int
    visits: int
    estimate: float | None
    lower: float
    upper: float


class ParameterEstimateFacts(msgspec.Struct, frozen=True):
    """What a log says about a parameter."""

    parameter: str
    estimate: float
    lower: float
    upper: float


class EstimateFacts(msgspec.Struct, kw_only=True, frozen=True):
    """Estimates with intervals that hold all at once; `label` says what they are worth."""

    expressions: list[ExpressionEstimateFacts]
    parameters: list[ParameterEstimateFacts]
    conflict: list[str]
    ledger: LedgerFacts
    label: str


class DataAnswer(ReadingFacts, kw_only=True, frozen=True):
    """`data`: how a log is read for a model, and what it holds; `verdict` is the best that a result from it
    can be worth."""

    verdict: str
    order: Assumed
    ends: Assumed
    episodes: int | None
    steps: int
    bytes: int | None
    files: list[str]
    columns: dict[str, str]
    design: DesignFacts
    refused: str | None
    unknown: dict[str, list[UnknownValue]]
    coverage: CoverageFacts
    estimates: EstimateFacts | None
    plot: str | None
    seconds: float


class CheckedFacts(msgspec.Struct, frozen=True):
    """A check of a certificate."""

    name: str
    passed: bool
    detail: str


class ProvedCheckFacts(msgspec.Struct, frozen=True):
    """What the proved checker said: accepts, refuses or does not cover; theorems by their names in Coq."""

    verdict: str
    theorems: list[str]
    words: str | UnsetType = UNSET


class VerifyAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`verify`: whether a certificate proves its claims; `bound` says what of one's own it is about.

    `verdict` is what it is worth in one word, `headline` the same for people, `answer` whether a property
    with a threshold is true, false or not certified.
    """

    verdict: str
    headline: str
    valid: bool
    bound: dict[str, bool | None]
    assumes: list[str]
    assumptions: list[dict[str, str]]
    checked: list[CheckedFacts]
    seconds: float
    digest: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    nominal: bool | UnsetType = UNSET
    lower: Real | UnsetType = UNSET
    upper: Real | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    policies: dict[str, Interval] | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    method: str | UnsetType = UNSET
    sets: str | UnsetType = UNSET
    proved: ProvedCheckFacts | UnsetType = UNSET
    about: dict[str, Any] | UnsetType = UNSET


class ExportAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`export`: what was written. A program that is written as JANI is not explored, so it has no sizes."""

    files: list[str]
    states: int | UnsetType = UNSET
    choices: int | UnsetType = UNSET
    transitions: int | UnsetType = UNSET
    seconds: dict[str, float]


class ReportAnswer(msgspec.Struct, frozen=True):
    """`report`: what was written."""

    report: str
    files: list[str]


class AverageAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`learn` for a long-run average: the robust policy's interval, and what no policy exceeds."""

    model: str
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    assumptions: list[Assumed]
    robust_policy: Interval
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
    assumptions: list[Assumed]
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


DOCUMENTS: dict[str, type] = {
    "result-2": ResultDocument,
    "policy-2": PolicyDocument,
    "draws-1": DrawsDocument,
    "manifest-1": ManifestDocument,
    "plan-2": PlanDocument,
    "check-1": CheckAnswer,
    "check-domain-1": DomainAnswer,
    "data-1": DataAnswer,
    "export-1": ExportAnswer,
    "info-1": InfoAnswer,
    "learn-2": LearnAnswer,
    "learn-average-1": AverageAnswer,
    "learn-empty-2": EmptyAnswer,
    "learn-rates-1": RateAnswer,
    "online-1": OnlineRecord,
    "report-1": ReportAnswer,
    "sample-1": SampleAnswer,
    "verify-1": VerifyAnswer,
    "watch-1": WatchRecord,
}
"""By the name of the schema: files first, then the answers of commands."""


def schema_texts() -> dict[str, str]:
    """The files of schemas by name."""
    return {
        f"{name}.schema.json": json.dumps(json_schema(kind), indent=1, ensure_ascii=False) + "\n"
        for name, kind in DOCUMENTS.items()
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write all schemas into a folder; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schemas"))
