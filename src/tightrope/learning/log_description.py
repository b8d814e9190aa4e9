"""Description of a log for a model: how it is read, what it contains, and estimates.

Rows that cannot be counted are left out and counted by reason; `refused` is the error of a reader that does
not skip them. Estimates have beta-binomial confidence sequences, δ shared by all, and the box around their
polytope for parameters: they hold simultaneously at all times. Point estimates have no guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tightrope.data.counts import Counts, Coverage, cover
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import Reading, plan_reading, read_tables
from tightrope.data.row_validation import Unknown, unknown_values
from tightrope.errors import InputError
from tightrope.io.results import LedgerFacts
from tightrope.io.table.data_table import DataTable
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structured
from tightrope.numerics.text import sure_text
from tightrope.regions.bounds import parameter_box
from tightrope.regions.event_polytope import polytope_region
from tightrope.statistics.estimates import IntervalMethod, event_intervals
from tightrope.statistics.outcomes import Outcomes
from tightrope.verdict import Assessment, Assumed, AssumptionStatus


@dataclass(frozen=True)
class LogDescription:
    """`columns` says which column was read as what; `estimates` are there for models with parameters."""

    reading: Reading
    columns: Mapping[str, str]
    bytes: int | None
    unknown: Unknown
    refused: str | None
    coverage: Coverage
    estimates: PointEstimates | None
    states: str | None = None

    @property
    def verdict(self) -> Assessment:
        """The best that a result from this log can be worth: intervals do not need its order in time."""
        design = self.reading.counts.design
        missing = "; ".join(design.censored) or ("rows cannot be counted" if self.refused else "")
        whole = Assumed(
            "complete data",
            AssumptionStatus.NO if missing else AssumptionStatus.YES,
            missing or "nothing is missing",
        )
        conflict = self.estimates.conflict if self.estimates is not None else ()
        return Assessment.of((design.ends, whole), contradicted="; ".join(conflict) or None)


def describe_log(
    tables: Sequence[DataTable], model: Structured, options: LogReadOptions, delta: float
) -> LogDescription:
    """Read tables for a model, whatever they hold, and say what was found."""
    options = replace(options, observers=())
    lenient = replace(options, skip_invalid=True)
    plan = plan_reading(tables, model.structure, lenient)
    try:
        reading = read_tables(tables, model, lenient)
    except InputError as error:
        raise _with_values(error, unknown_values(plan)) from None
    columns, sizes = plan.columns[0], [table.bytes for table in tables]
    estimates = None
    if isinstance(model, ParametricMDP) and model.parameters.names:
        estimates = estimate_points(model, reading.counts, delta)
    return LogDescription(
        reading,
        {**columns.state_roles, **columns.roles},
        None if None in sizes else sum(size or 0 for size in sizes),
        unknown_values(plan) if reading.dropped else {},
        _refusal(tables, model, options) if reading.dropped and not options.skip_invalid else None,
        cover(model.structure, reading.counts),
        estimates,
        columns.by.value,
    )


def _refusal(tables: Sequence[DataTable], model: Structured, options: LogReadOptions) -> str | None:
    """What reading says that does not skip the first bad row."""
    try:
        read_tables(tables, model, options)
    except InputError as error:
        place = f"{error.location}: " if error.location else ""
        return f"{place}{error.message}" + (f"; {error.hint}" if error.hint else "")
    return None


def _with_values(error: InputError, unknown: Unknown) -> InputError:
    """The error of a log of which nothing can be counted, with what stands in it instead."""
    if not unknown:
        return error
    shown = [
        f"{kind}: " + ", ".join(f"{entry.value} ({entry.rows:,})" for entry in entries)
        for kind, entries in unknown.items()
    ]
    hint = error.hint
    if hint is None or "`skip_invalid=True`" in hint:  # a description skips in any case
        hint = "mend the log, or its reading: `columns`, `maps`, `states`"
    message = f"{error.message}; unknown to the model, with rows: {'; '.join(shown)}"
    return InputError(message, error.location, hint)


MOST_PARAMETERS = 64
"""Beyond so many parameters a box takes longer than a description may."""


@dataclass(frozen=True)
class ExpressionEstimate:
    """An expression's outcome was seen so many times in so many visits."""

    expression: str
    seen: int
    visits: int
    estimate: float | None
    lower: float
    upper: float


@dataclass(frozen=True)
class ParameterEstimate:
    """The likeliest value, and the interval of values that the data leave."""

    parameter: str
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PointEstimates:
    """Estimates with intervals that hold all at once; `conflict` names contradicting observations."""

    expressions: tuple[ExpressionEstimate, ...]
    parameters: tuple[ParameterEstimate, ...]
    conflict: tuple[str, ...]
    ledger: LedgerFacts
    label: str

    @property
    def short(self) -> str:
        """What the intervals are worth, in a few words."""
        kind = "anytime-valid" if self.ledger.holds else "nominal: outcomes are missing"
        return f"at {sure_text(self.ledger.delta)} ({kind})"


def estimate_points(model: ParametricMDP, counts: Counts, delta: float) -> PointEstimates:
    """The estimates of all expressions that are not constant, and of all parameters."""
    outcomes = Outcomes.of(model)
    intervals = event_intervals(model, counts, delta, IntervalMethod.BETA_BINOMIAL)
    numbers = (intervals.successes, intervals.trials, intervals.lower, intervals.upper)
    expressions = tuple(
        ExpressionEstimate(
            intervals.events.text(event), seen, visits, seen / visits if visits else None, low, high
        )
        for event, (seen, visits, low, high) in enumerate(zip(*(n.tolist() for n in numbers), strict=True))
    )
    parameters: tuple[ParameterEstimate, ...] = ()
    conflict: tuple[str, ...] = ()
    if 0 < len(model.parameters.names) <= MOST_PARAMETERS:
        region = polytope_region(intervals)
        if region.emptiness.is_empty:
            shown = region.emptiness.conflict
            conflict = shown.texts if shown is not None else ("no parameter of the domain fits",)
        else:
            free, ends = [Fraction(float(t)) for t in outcomes.estimate(counts)], parameter_box(region)
            likeliest = [float(one.evaluate(free)) for one in outcomes.coordinates.substitution]
            rows = zip(model.parameters.shown.names, likeliest, *ends, strict=False)
            parameters = tuple(ParameterEstimate(n, float(t), float(a), float(b)) for n, t, a, b in rows)
    ledger, level = intervals.ledger.record(), sure_text(delta)
    label = f"{level} in name only (nominal): outcomes are missing from the data"
    if ledger.holds:
        label = f"simultaneous and time-uniform, {level}"
    return PointEstimates(expressions, parameters, conflict, ledger, label)
