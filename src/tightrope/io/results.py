"""The records of files that are JSON: results, policies, draws and manifests.

`result.json` has all that reports, figures and loaded results need; an entry, for one kind of sets, has the
keys of `tightrope learn --json`. Long tables are thinned out evenly; `total` says how many rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.errors import InputError
from tightrope.io.coding import Interval as Interval
from tightrope.io.coding import Real, read_document, to_plain
from tightrope.model.policy_file import POLICY_FORMAT, POLICY_VERSION
from tightrope.numerics.record import Facts, Record
from tightrope.rules.rule import DecisionRule
from tightrope.verdict import Assessment, Assumed, Word


class Judged(msgspec.Struct, kw_only=True):
    """What every answer says of its worth: the word (proved, nominal, contradicted or limit), `why` it is no
    better, and what it rests on."""

    verdict: Word
    why: str
    assumptions: list[Assumed]

    @property
    def judged(self) -> Assessment:
        """The verdict; never better than what it rests on."""
        known = tuple(self.assumptions)
        return (
            Assessment.of(known) if self.verdict is Word.PROVED else Assessment(self.verdict, known, self.why)
        )


class DomainPart(msgspec.Struct, frozen=True):
    """A box, one interval per parameter, and whether a property holds there: true, false or not certified."""

    box: tuple[Interval, ...]
    truth: str

    @property
    def volume(self) -> float:
        """The product of its widths."""
        return math.prod(side.upper - side.lower for side in self.box)


class WidthFacts(msgspec.Struct, frozen=True):
    """How much the data leave open: over all unknown expressions, and of each parameter."""

    mean: float
    max: float
    expressions: int
    parameters: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class BindingEvent:
    """An event that touches the region with its `side`: upper, lower or both; in an L1 region a ball."""

    event: int
    side: str
    text: str


@dataclass(frozen=True)
class Binding:
    """The events that hold the region in place; of very many the first ones are listed."""

    total: int
    events: tuple[BindingEvent, ...]


class LedgerFacts(msgspec.Struct, frozen=True):
    """How δ is spent and what is assumed of the data; `lines` says it in words. `outcomes` is the part of δ
    that observed outcomes of episodes have."""

    delta: float
    holds: bool
    lines: list[str]
    events: int = 0
    gamma: Real = 0.0
    method: str = ""
    budget: str = ""
    assumption: str = ""
    censored: list[str] = []
    outcomes: float | UnsetType = UNSET


class WitnessFacts(msgspec.Struct, frozen=True):
    """A point of the region, and the value there."""

    at: dict[str, float]
    lower: Real
    upper: Real


class CoupledValueFacts(msgspec.Struct, frozen=True):
    """A value over one parameter vector for the whole run: how it ended, and points next to its ends."""

    lower: Real
    upper: Real
    rectangular: Interval
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


@dataclass(frozen=True)
class Seen:
    """One outcome of a choice: how often it was seen, and the frequency beside what the best fit expects."""

    outcome: str
    count: int
    observed: float
    expected: float


@dataclass(frozen=True)
class Moved:
    """A parameter before and after a change, and by how many standard errors it moved."""

    parameter: str
    before: float
    after: float
    standard_errors: float


@dataclass(frozen=True)
class Anomaly:
    """One way in which data depart from a model.

    `kind`: expression (all choices with one distribution), tie (one choice among several said to be equal),
    drift (parameters changed), excluded (probability 0 in the model), returns, copy (episodes repeat others),
    or what outcomes depend on beside the choice: memory, serial (earlier outcomes), column or unit.
    `log_e_value` is the natural logarithm of its own evidence, before it is weighed against the others; null
    where it is infinite. `since` are the events before a change.

    >>> Anomaly("tie", "choice 'a' of state 0", 3.5).kind
    'tie'
    """

    kind: str
    text: str
    log_e_value: Real | None
    outcomes: tuple[Seen, ...] = ()
    since: int | None = None
    moved: tuple[Moved, ...] = ()

    def __post_init__(self) -> None:
        if self.log_e_value == math.inf:
            object.__setattr__(self, "log_e_value", None)

    @property
    def log_evidence(self) -> float:
        """The same as a number."""
        return math.inf if self.log_e_value is None else self.log_e_value

    @property
    def details(self) -> str:
        """The frequencies seen beside those expected, or the parameters that moved."""
        shown = [
            f"{m.parameter}: {m.before:.4g} → {m.after:.4g} ({m.standard_errors:+.1f} standard errors)"
            for m in self.moved[:3]
        ] or [
            f"{seen.outcome}: {seen.count:,} times, {seen.observed:.4f} against {seen.expected:.4f}"
            for seen in self.outcomes[:4]
        ]
        return "; ".join(shown)

    @property
    def words(self) -> str:
        """What departs, with its details."""
        return f"{self.text}: {self.details}" if self.details else self.text


@dataclass(frozen=True)
class Look:
    """What the evidence was after so many events."""

    events: int
    log_e_value: Real


FITS, GROWING = "no evidence against it", "evidence growing"
CONTRADICTED, UNTESTED = "model contradicted", "not tested"
DEPENDENT = ("copy", "serial")
"""Kinds of anomalies of episodes that are no independent draws."""
REMEDY = "run 'tightrope doctor' for a diagnosis, or collect more data"


@dataclass(frozen=True, eq=False, repr=False)
class ModelFit(Record):
    """Model-fit test: an e-value at its own level `alpha`.

    `verdict` is "no evidence against it", "evidence growing" (half of the way to an alarm, on a logarithmic
    scale), "model contradicted" (an alarm) or "not tested"; `text` gives the numbers. Under the model, for
    all parameters, the e-value ever reaches 1/alpha with probability at most alpha, unless `nominal` names
    missing or unknown properties of the data. `first_alarm`: number of events at the first observed alarm.
    `ordered`: data are batched in time; otherwise the test is less sharp and cannot show a change.
    `suspects`: anomalies, strongest evidence first. `rows_tested`: log rows tested for dependence beyond
    state and action (None: counts).

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(1000, seed=1)
    >>> fit = tr.learn(bench.problem, data, sets="tied").fit
    >>> fit.verdict, fit.alarm, fit.e_value < 1
    ('no evidence against it', False, True)
    """

    verdict: str
    alarm: bool
    e_value: Real
    log_e_value: Real
    alpha: float
    events: int
    first_alarm: int | None
    ordered: bool
    nominal: tuple[str, ...]
    text: str
    looks: tuple[Look, ...]
    suspects: tuple[Anomaly, ...]
    rows_tested: int | None = None

    @property
    def is_refutation(self) -> bool:
        """Whether the model is refuted: by an alarm whose level holds, or by what it says is impossible."""
        return self.alarm and (not self.nominal or self.log_e_value == math.inf)

    @property
    def is_doubt(self) -> bool:
        """Whether the evidence is half of the way to an alarm: a right model gets there with probability
        at most √alpha."""
        return self.alarm or self.verdict == GROWING

    @property
    def dependence(self) -> str | None:
        """Words about episodes that are no independent draws, if that fits worst; else None."""
        worst = self.suspects[0] if self.alarm and self.suspects else None
        return worst.text if worst is not None and worst.kind in DEPENDENT else None

    @property
    def misfit(self) -> str | None:
        """Words about a model that is contradicted, with what fits worst; else None."""
        if not self.alarm:
            return None
        start, power = "the data contradict the model: ", power_text(self.log_e_value)
        if self.dependence is not None:
            return f"{start}{self.dependence} (e-value {power})"
        worst = f" Worst: {self.suspects[0].words}." if self.suspects else ""
        often = f"a correct model reaches {1.0 / self.alpha:,.0f} with probability at most {self.alpha:g}"
        return f"{start}e-value {power} after {self.events:,} events; {often}.{worst}"

    def _title_(self) -> str:
        return f"ModelFit: {self.text}"

    def _facts_(self) -> Facts:
        return [(anomaly.kind, anomaly.words) for anomaly in self.suspects]


class FindingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A departure of a log from a model, and what it does to the answer.

    `size` is how far frequencies are from what is expected, on average over rows (total variation). `effect`
    is by how much the value at the best fit changes where the assumption is dropped, `value_without` the
    answer then. `amendment` is what `doctor --amend` takes, `at` says where; `e_value_after` is the evidence
    against the amended model, and `mends` whether it is no alarm. Where there is none, `why` says so.
    """

    what: str
    kind: str
    feature: str
    e_value: Real
    log_e_value: Real
    size: Real | None
    effect: Real | None
    value_without: Interval | None
    amendment: str | None
    at: str | None
    e_value_after: Real | None
    mends: bool
    why: str


def power_text(log_e: float) -> str:
    """An e-value as people read it: 10^3.2."""
    return "∞" if log_e == math.inf else f"10^{log_e / math.log(10.0):.1f}"


class ObservedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The value in the episodes of the log alone, without the model's probabilities.

    `observed` is false where there is nothing to observe; `text` says why, or what was seen. With probability
    at least 1 − `delta` the value lies in `interval`; `model` is the interval of the same value over the
    model's sets. `contradiction` are words where the two exclude each other, else null; `tension` where
    they hardly meet. `episodes` begin in the initial state, `elsewhere` others; `successes` and `failures`
    are null where returns are bounded.
    """

    observed: bool
    text: str
    interval: Interval | None = None
    model: Interval | None = None
    delta: float = 0.0
    episodes: int = 0
    decided: int = 0
    successes: int | None = None
    failures: int | None = None
    elsewhere: int = 0
    method: str = ""
    policy: str = ""
    contradiction: str | None = None
    tension: str | UnsetType = UNSET


class ExpressionBounds(msgspec.Struct, frozen=True):
    """The bounds of the listed expressions in the sets."""

    lower: list[float]
    upper: list[float]


@dataclass(frozen=True, eq=False, repr=False)
class Breakdown(Record):
    """Up to which misfit per step a guarantee `holds` that meets the `threshold`, and at which it `fails`.

    Both are verified: `holds` 0 is for the learned sets alone, −1 not even there; `fails` is null where no
    misfit below 1 loses it. `rows` is the parameter or action that was doubted alone.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).generative(1000, seed=1)
    >>> found = tr.learn(bench.problem, data, delta=0.01).find_breakdown_point()
    >>> 0 < found.holds < found.fails <= 1.03 * found.holds
    True
    """

    holds: Real
    fails: Real | None
    threshold: Real
    rows: str | None
    text: str

    def _title_(self) -> str:
        return f"Breakdown: {self.text}"

    def _facts_(self) -> Facts:
        return []


class Outcome(Judged, kw_only=True):
    """A result of `learn`. `value` is the given policy's interval, `robust_policy` the synthesised one's.

    `verdict`: proved, nominal, contradicted or limit, under the `assumptions`; `why` says why it is not
    proved. `contradiction` describes an empty region, `conflict` its contradictory observations, `misfit` an
    alarm of the model-fit test. `outcomes`: observed returns, without the model; for the same policy its
    interval is the intersection. `tried`: kind of sets, whose value, interval, seconds, why. Of controllers
    that act on observations, none guarantees more than `robust_optimum` over the region or exceeds
    `true_optimum` at the true parameters. `tree`: the tree whose interval is `value`.
    """

    empty: bool
    fallback: bool
    contradiction: str | None = None
    conflict: list[str] | None = None
    misfit: str | None = None
    fit: ModelFit | UnsetType | None = UNSET
    outcomes: ObservedFacts | UnsetType | None = UNSET
    region: str | None = None
    sets: str
    relaxation: str
    value: Interval | None = None
    robust_policy: Interval
    guarantee: Real
    optimistic: Real
    robust_optimum: Real | UnsetType = UNSET
    true_optimum: Real | UnsetType = UNSET
    coupled: CoupledFacts | None = None
    widths: WidthFacts
    binding: Binding
    ledger: LedgerFacts
    reasons: list[str]
    notes: list[str]
    status: str
    tried: list[tuple[str, str, Interval, float, str]] | UnsetType = UNSET
    breakdown: Breakdown | UnsetType = UNSET
    tree: DecisionRule | UnsetType = UNSET
    seconds: dict[str, float]

    @property
    def label(self) -> str:
        """The kind of sets, with a word where it is not the one asked for."""
        return f"{self.sets} (fallback)" if self.fallback else self.sets

    @property
    def seen(self) -> ObservedFacts | None:
        """What was observed of episodes, or why nothing was; None where nobody looked."""
        return None if self.outcomes is UNSET else self.outcomes

    @property
    def shown(self) -> Interval:
        """The given policy's interval where there is one, as `tightrope learn` prints it."""
        return self.value if self.value is not None else self.robust_policy


class StoredOutcome(Outcome, kw_only=True):
    """The same in a result's document, with the bounds of its expressions and the files beside it.

    `estimate`: values of policies at the best fit, and the certified interval of the `best` one there."""

    bounds: ExpressionBounds
    estimate: tuple[dict[str, Real], Interval] | UnsetType = UNSET
    files: list[str] | UnsetType = UNSET

    @property
    def spans(self) -> list[Interval]:
        """The bounds of the listed expressions, one by one."""
        return [
            Interval.of(low, high) for low, high in zip(self.bounds.lower, self.bounds.upper, strict=True)
        ]


RESULT_FORMAT = "tightrope result"
RESULT_VERSION = 2
RESULT_FILE = "result.json"
RECORDS = "records.jsonl"
"""The updates of an online run, a line each (`tightrope.learning.online.run.OnlineRecord`)."""

HINT = "write results with 'tightrope learn … -o DIR' or result.save(DIR), and name DIR or DIR/result.json"


class ParameterRange(msgspec.Struct, frozen=True):
    """A parameter and the range of it in the domain."""

    name: str
    lower: float
    upper: float


class ModelFacts(msgspec.Struct, frozen=True):
    """Which model it was: where it came from, its hash and its size."""

    source: str
    constants: dict[str, str]
    hash: str
    states: int
    choices: int
    transitions: int
    expressions: int
    domain: str
    parameters: list[ParameterRange]
    degree: int = 0

    @property
    def title(self) -> str:
        """The source with its constants."""
        given = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{self.source} with {given}" if given else self.source


class DesignFacts(msgspec.Struct, frozen=True):
    """How the data were collected."""

    kind: str
    episodes: int | None = None
    steps: int = 0
    repeats: bool = True
    planned: int | UnsetType = UNSET
    censored: list[str] | UnsetType = UNSET
    open_end: bool | UnsetType = UNSET
    late_plan: bool | UnsetType = UNSET
    bet_on: list[str] | UnsetType = UNSET
    anytime: bool | UnsetType = UNSET
    planned_from: str | UnsetType = UNSET
    followed: str | UnsetType = UNSET


class FileDigest(msgspec.Struct, frozen=True):
    """A file of data with its digest."""

    file: str
    sha256: str


class KeptFacts(msgspec.Struct, frozen=True):
    """Which events were counted, where the first ones were left out.

    `chosen_at` events had been seen when that was decided, null where nobody said so; `holds`: they are all
    before `first`, so that what is kept is fresh.
    """

    first: int
    last: int
    left_out: int
    chosen_at: int | None
    holds: bool


class ReadingFacts(msgspec.Struct, kw_only=True, frozen=True):
    """How a log was read; `names`: what the log calls values of the model's variables."""

    rows: int
    read_as: list[str]
    notes: list[str]
    dropped: dict[str, int]
    censored: list[str]
    kept: KeptFacts | UnsetType = UNSET
    names: dict[str, dict[str, str]] | UnsetType = UNSET


class DataFacts(msgspec.Struct, kw_only=True, frozen=True):
    """Where the data came from, how they were read, and what is in them."""

    file: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    files: list[FileDigest] | UnsetType = UNSET
    rows: int | UnsetType = UNSET
    read_as: list[str] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    dropped: dict[str, int] | UnsetType = UNSET
    censored: list[str] | UnsetType = UNSET
    kept: KeptFacts | UnsetType = UNSET
    names: dict[str, dict[str, str]] | UnsetType = UNSET
    sampled: dict[str, Any] | UnsetType = UNSET
    source: str | UnsetType = UNSET
    seed: int | UnsetType | None = UNSET
    updates: int | UnsetType = UNSET
    forgotten_episodes: int | UnsetType = UNSET
    steps: int
    design: DesignFacts
    batches: int | None = None
    transitions_seen: int = 0
    choices_visited: int = 0
    provenance: str | UnsetType = UNSET
    """Digest and sketch of all rows that the result was made from, those behind its priors included."""


class OptionFacts(msgspec.Struct, kw_only=True, frozen=True):
    """The options of `learn`; None where the choice was left open."""

    region: str | None = None
    sets: str | None = None
    interval: str | None = None
    budget: str | None = None
    ellipsoid: str | None = None
    intersect: bool = False
    fallback: bool = True
    precision: float = 1e-6
    assume_support: float | None = None
    time_limit: Real | None = None
    iteration_limit: int | None = None
    coupled_gap: float | None = None
    cost_range: tuple[float, float] | UnsetType = UNSET
    cost_sd: float | UnsetType = UNSET
    outcomes: str | UnsetType = UNSET
    return_range: tuple[float, float] | UnsetType = UNSET
    effort: str | UnsetType = UNSET
    prior: list[str] | UnsetType = UNSET
    discount: float | UnsetType = UNSET
    terminal_reward: str | UnsetType = UNSET


class TruthFacts(msgspec.Struct, frozen=True):
    """The true point where it is known, and the best value there."""

    at: dict[str, str]
    value: Interval | None = None

    def __post_init__(self) -> None:
        for name, text in self.at.items():
            try:
                Fraction(text)
            except (ValueError, ZeroDivisionError):
                raise ValueError(f"Expected a number for {name}, got {text!r}") from None

    @property
    def point(self) -> dict[str, float]:
        return {name: float(Fraction(text)) for name, text in self.at.items()}


class ExpressionTexts(msgspec.Struct, frozen=True):
    """The unknown expressions: their numbers in the model, and their texts."""

    total: int
    index: list[int]
    text: list[str]


class EventTable(msgspec.Struct, frozen=True):
    """How often each event was seen, and its interval; one column per field."""

    total: int
    index: list[int]
    text: list[str]
    successes: list[int]
    trials: list[int]
    lower: list[float]
    upper: list[float]

    def __post_init__(self) -> None:
        sizes = {len(getattr(self, name)) for name in self.__struct_fields__ if name != "total"}
        if len(sizes) > 1:
            raise ValueError("Expected columns of one length")


class Projection(msgspec.Struct, frozen=True):
    """An outer polygon around a region's values of two parameters."""

    x: str
    y: str
    polygon: list[tuple[Real, Real]]


class RegionShape(msgspec.Struct, frozen=True):
    """A region: the box of its parameters, and polygons around its shadows on pairs of them. `tracks`: for a
    parameter points of the region along which it rises, while the others follow the best fit; as the values
    of the parameters that equalities of the domain leave free."""

    kind: str
    relaxation: str
    empty: bool
    box: dict[str, tuple[Real, Real]]
    projections: list[Projection]
    notes: list[str] = []
    tracks: dict[str, list[list[float]]] | UnsetType = UNSET

    @property
    def polygons(self) -> dict[tuple[str, str], list[tuple[float, float]]]:
        return {(shadow.x, shadow.y): shadow.polygon for shadow in self.projections}


class CertificateFacts(msgspec.Struct, frozen=True):
    """The certificate that was written with the result."""

    digest: str
    file: str


class ObservedEvent(msgspec.Struct, frozen=True):
    """How often an event was seen, and its interval."""

    event: int
    text: str
    successes: int
    trials: int
    interval: Interval


BESIDE = ("file", "others", "about_certificate")
"""What is no part of a document, and is known of the run."""


class ResultDocument(msgspec.Struct, kw_only=True, dict=True):
    """A learning run: all that is written of it, read back, drawn and reported.

    The answer is that of the last entry of `results`. What is no part of the file lies beside the fields:
    the `file` it was read from, results of other runs `beside` it, and words about a `certificate`.
    """

    format: str = RESULT_FORMAT
    version: int = RESULT_VERSION
    versions: dict[str, str]
    command: list[str]
    model: ModelFacts
    question: str = msgspec.field(name="property")
    maximises: bool
    delta: float
    data: DataFacts
    options: OptionFacts
    policy: str | None = None
    truth: TruthFacts | None = None
    expressions: ExpressionTexts
    events: EventTable | None = None
    regions: list[RegionShape]
    results: list[StoredOutcome]
    certificate: CertificateFacts | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not self.results:
            raise ValueError("Expected at least one entry in 'results'")
        size = len(self.expressions.text)
        for outcome in self.results:
            if not len(outcome.bounds.lower) == len(outcome.bounds.upper) == size:
                raise ValueError(f"Expected the bounds of {size} expressions in 'bounds' of 'results'")

    @property
    def file(self) -> Path | None:
        """Where it was read from; None where it was never written."""
        return self.__dict__.get("file")

    @property
    def others(self) -> tuple[tuple[str, StoredOutcome], ...]:
        """Results of other runs with their labels, for comparison."""
        return tuple(self.__dict__.get("others", ()))

    @property
    def about_certificate(self) -> dict[str, str]:
        """What is known of the certificate, in words."""
        if "about_certificate" in self.__dict__:
            return dict(self.__dict__["about_certificate"])
        return {} if isinstance(self.certificate, UnsetType) else in_words(to_plain(self.certificate))

    def having(self, **changes: object) -> ResultDocument:
        """The same run with something `BESIDE` it, or with other regions or results."""
        beside = {name: changes.pop(name, self.__dict__.get(name)) for name in BESIDE}
        again = msgspec.structs.replace(self, **changes)
        again.__dict__.update({name: value for name, value in beside.items() if value is not None})
        return again

    @property
    def main(self) -> StoredOutcome:
        """The outcome that the answer is taken from: the last one, as `tightrope learn` does."""
        return self.results[-1]

    @property
    def shown(self) -> tuple[tuple[str, StoredOutcome], ...]:
        """All outcomes with their labels, the main one last."""
        return (*self.others, *((outcome.label, outcome) for outcome in self.results))

    @cached_property
    def parameters(self) -> dict[str, Interval]:
        """The range of every parameter in the domain."""
        return {each.name: Interval.of(each.lower, each.upper) for each in self.model.parameters}

    @property
    def true_point(self) -> dict[str, float]:
        """The true parameters, where they are known."""
        return {} if self.truth is None else self.truth.point

    @property
    def true_value(self) -> Interval | None:
        """The best value at the true point, where it is known."""
        return None if self.truth is None else self.truth.value

    @cached_property
    def observed(self) -> tuple[ObservedEvent, ...]:
        """The events, one by one."""
        table = self.events
        if table is None:
            return ()
        columns = (table.index, table.text, table.successes, table.trials, table.lower, table.upper)
        rows = zip(*columns, strict=True)
        return tuple(
            ObservedEvent(i, text, k, n, Interval.of(low, high)) for i, text, k, n, low, high in rows
        )

    def beside(self, other: ResultDocument) -> ResultDocument:
        """This run with another one's regions and outcomes added: same model, same property."""
        if (other.model.hash, other.question) != (self.model.hash, self.question):
            raise InputError(
                f"{other.file} is about another model or property than {self.file}",
                hint="results shown together need the same model, domain and property",
            )
        known = {label for label, _ in self.shown}
        more = []
        for plain, outcome in other.shown:
            label = f"{plain} · {outcome.region}" if outcome.region else plain
            if label not in known and not (outcome.region is None and plain in known):
                more.append((label, outcome))
        kinds = {region.kind for region in self.regions}
        regions = [*self.regions, *(region for region in other.regions if region.kind not in kinds)]
        return self.having(others=(*more, *self.others), regions=regions)


def in_words(content: Mapping[str, object]) -> dict[str, str]:
    """Fields as words: nested ones by their dotted names, empty ones and lists left out."""
    result: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            result.update({f"{name}.{key}": text for key, text in in_words(value).items()})
        elif isinstance(value, bool):
            result[name] = "yes" if value else "no"
        elif value is not None and not isinstance(value, list):
            result[name] = str(value)
    return result


def result_file(path: str | Path) -> Path:
    """The document of a result directory, or the file itself; refused where there is none."""
    file = Path(path) / RESULT_FILE if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise InputError(f"there is no result {file}", hint=f"{HINT}; 'tightrope demo' makes an example")
    return file


def read_result(path: str | Path) -> ResultDocument:
    """The document of a result directory, or of a `result.json`."""
    file = result_file(path)
    return read_document(file, ResultDocument, RESULT_FORMAT, RESULT_VERSION, HINT).having(file=file)


class CertifiedFacts(msgspec.Struct, kw_only=True, frozen=True):
    """What the policy of a file attains, and what it speaks of."""

    question: str = msgspec.field(name="property")
    lower: Real
    upper: Real
    over: str
    status: str
    confidence: float | UnsetType | None = UNSET
    holds: bool | UnsetType = UNSET


class PolicyHead(msgspec.Struct, kw_only=True, frozen=True):
    """How a policy file begins: the model's hash, and how states are named.

    `variables` are those whose values name a state; `states` is "index" where numbers are indices.
    `made_from` says from which data the policy was made.
    """

    format: str = POLICY_FORMAT
    version: int = POLICY_VERSION
    model: str | None = None
    variables: list[str] | UnsetType = UNSET
    states: str | UnsetType = UNSET
    certified: CertifiedFacts | UnsetType = UNSET
    made_from: str | UnsetType = UNSET


class TakenChoice(msgspec.Struct, kw_only=True, frozen=True):
    """A choice by its action, and by its number within the state where several have the same action."""

    action: str | UnsetType = UNSET
    choice: int | UnsetType = UNSET


class LikelyChoice(TakenChoice, kw_only=True, frozen=True):
    """One of the choices that are taken at random."""

    probability: float


class LaterChoice(TakenChoice, kw_only=True, frozen=True):
    """What is done from a step on."""

    since: int = msgspec.field(name="from")


class PolicyEntry(TakenChoice, kw_only=True, frozen=True):
    """A state and what is done there: one choice, several at random, or one per step."""

    state: Any
    choices: list[LikelyChoice] | UnsetType = UNSET
    steps: list[LaterChoice] | UnsetType = UNSET


class PolicyDocument(PolicyHead, kw_only=True, frozen=True):
    """A policy file. An entry is an object, or a list: [state, action, number of the choice], or
    [state, [[from step, action, number], …]]."""

    policy: list[list[Any] | PolicyEntry]
