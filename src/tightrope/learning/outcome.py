"""A result as plain data: the record that `tightrope learn --json` prints and `result.json` holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tightrope.ambiguity.sets import SetsKind
from tightrope.coupled import CoupledValue, Witness
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.results import (
    BindingFacts,
    BoundEvent,
    CandidateFacts,
    CoupledFacts,
    CoupledValueFacts,
    FitFacts,
    LedgerFacts,
    Outcome,
    Span,
    WidthFacts,
    WitnessFacts,
    assumed_facts,
)
from tightrope.statistics.ledger import Ledger

if TYPE_CHECKING:
    from tightrope.learning.result import Interval, LearningResult


def outcome_of(result: LearningResult) -> Outcome:
    """Everything that is said of a result."""
    verdict = result.verdict
    return Outcome(
        verdict=verdict.word,
        why=verdict.why,
        assumptions=assumed_facts(verdict),
        empty=result.contradiction is not None,
        fallback=result.fallback,
        contradiction=result.contradiction,
        conflict=list(result.conflict.texts) if result.conflict is not None else None,
        misfit=result.misfit,
        fit=None if result.fit is None else from_plain(to_plain(result.fit.to_json()), FitFacts),
        region=result.decisions.region.value if result.decisions.region else None,
        sets=result.kind.value,
        relaxation=result.sets.relaxation.value,
        value=None if result.value is None else span_of(result.value.interval),
        robust_policy=span_of(result.robust.interval),
        guarantee=result.guarantee,
        optimistic=result.optimistic_value,
        coupled=_describe_coupled(result),
        widths=_widths(result),
        binding=BindingFacts(
            result.binding.total, [BoundEvent(e.event, e.side, e.text) for e in result.binding.events]
        ),
        ledger=ledger_facts(result.ledger),
        reasons=list(result.decisions.reasons),
        notes=list(result.notes),
        status=result.status,
        seconds={phase: round(seconds, 6) for phase, seconds in result.seconds.items()},
    )


def span_of(interval: Interval) -> Span:
    return Span(interval.lower, interval.upper)


def ledger_facts(ledger: Ledger) -> LedgerFacts:
    """How δ was spent, with its lines in words."""
    return LedgerFacts(
        delta=ledger.delta,
        events=ledger.events,
        gamma=ledger.gamma,
        method=ledger.method,
        budget=ledger.budget,
        assumption=ledger.assumption.value,
        holds=ledger.holds,
        censored=list(ledger.censored),
        lines=list(ledger.lines),
    )


def describe_coupled_value(value: CoupledValue | None, names: Sequence[str]) -> CoupledValueFacts | None:
    """A coupled value: bounds, how it ended, and the instantiations next to its ends."""
    if value is None:
        return None
    return CoupledValueFacts(
        lower=value.lower,
        upper=value.upper,
        rectangular=Span(value.rectangular_lower, value.rectangular_upper),
        status=value.status.name.lower().replace("_", "-"),
        reason=value.reason or None,
        gap=value.gap,
        rectangular_lost_nothing=value.rectangular_lost_nothing,
        witness={"lowest": _witness(value.lowest, names), "highest": _witness(value.highest, names)},
        cells=len(value.cells),
    )


def _witness(witness: Witness | None, names: Sequence[str]) -> WitnessFacts | None:
    if witness is None:
        return None
    at = {name: float(x) for name, x in zip(names, witness.theta, strict=True)}
    return WitnessFacts(at, witness.lower, witness.upper)


def _widths(result: LearningResult) -> WidthFacts:
    widths, names = result.widths, result.model.parameters.names
    low, high = widths.parameter_lower, widths.parameter_upper
    parameters = {}
    if low is not None and high is not None:
        parameters = {name: (float(low[i]), float(high[i])) for i, name in enumerate(names)}
    return WidthFacts(widths.mean, widths.largest, len(widths.nonconstant), parameters)


def _describe_coupled(result: LearningResult) -> CoupledFacts | None:
    if result.kind is not SetsKind.COUPLED:
        return None
    names, synthesis = result.model.parameters.names, result.synthesis
    found = CoupledFacts(
        robust_policy=describe_coupled_value(result.robust.coupled, names),
        value=None if result.value is None else describe_coupled_value(result.value.coupled, names),
        limit=None if synthesis is None else synthesis.limit,
        optimality_gap=None if synthesis is None else synthesis.optimality_gap,
        candidates=[]
        if synthesis is None
        else [CandidateFacts(each.origin, each.guarantee) for each in synthesis.candidates],
    )
    return found
