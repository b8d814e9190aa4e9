"""What `tightrope learn` prints for people: one result as facts, or several kinds of sets side by side.

Bars show intervals on one common scale; an end that is infinite, or off the scale, is drawn as an arrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tightrope.cli.output import group, memory_text, print_facts, print_table, shown_notes
from tightrope.io.results import Interval
from tightrope.learning.result import LearningResult
from tightrope.numerics.text import bound_text, interval_text, text_above, text_below
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.estimates import IntervalMethod
from tightrope.verdict import Word

BAR = 22
"""Characters of a bar: the table with it fits into 80 columns."""

SHOWN_DIGITS = 5
SHOWN_EVENTS = 3
SHOWN_SUSPECTS = 3


def print_result(
    title: str,
    result: LearningResult,
    true_value: Interval | None,
    files: str | None,
    certified: Mapping[str, Interval] | None = None,
) -> None:
    """One result, with the reasons for every default; where a certificate proves less, what it proves."""
    facts: list[tuple[str, str]] = []
    if result.contradiction is not None:
        facts += [("empty region", result.contradiction), ("fallback", "tied sets, which need no region")]
    facts.append(("guarantee", f"{_guarantee(result)}{confidence(result)}"))
    if result.breakdown is not None:
        facts.append(("breakdown", result.breakdown.text))
    facts.append(("robust policy", f"value in {result.robust.interval}"))
    if result.value is not None:
        facts.append(("given policy", f"value in {result.value.interval}"))
    facts += outcome_facts(result)
    facts += list_coupled_facts(result)
    facts += list_certified_facts(result, certified or {})
    if true_value is not None:
        facts.append(("at the true point", f"{_number(true_value.lower)} is the best value"))
    if result.robust_optimum is None:
        facts.append(("optimistic", f"{_optimistic(result)}: no policy does better"))
    else:
        robust = bound_text(result.robust_optimum, not result.objective.maximises, SHOWN_DIGITS)
        facts.append(("robust optimum", f"{robust}: over the region no controller guarantees more"))
        if result.robust_point is not None:
            at = ",".join(f"{name}={value}" for name, value in result.robust_point.items())
            facts.append(("found at", f"{at} (check --at … --certificate FILE proves it)"))
        facts.append(("true optimum", f"{_optimistic(result)}: at the true parameters none does better"))
    facts += _how(result)
    facts += [("seconds", _seconds(result)), ("memory", memory_text())]
    if files is not None:
        facts.append(("written", files))
    print_facts(title, facts)


def confidence(result: LearningResult) -> str:
    """How sure the guarantee is; nothing where it is none."""
    word = result.verdict.word
    if word in (Word.PROVED, Word.LIMIT) and result.ledger.holds:
        return f" with confidence {1 - result.ledger.delta:g}"
    return f": {word.value}, so with no confidence"


def outcome_facts(result: LearningResult) -> list[tuple[str, str]]:
    """What episodes returned beside what the model says of the same value, or why that does not show."""
    if result.outcomes is None:
        return []
    facts = [("outcomes", result.outcomes.text)]
    if result.seen is not None and result.seen.model is not None:
        words = f"by the model {result.seen.model}: the answer is what both allow"
        if result.seen.contradiction is not None:
            words = f"by the model {result.seen.model}: exclude each other"
        elif result.seen.alone:
            words = "the answer is the outcomes alone: the data refute the model"
        facts.append(("", words))
    return facts


def list_coupled_facts(result: LearningResult) -> list[tuple[str, str]]:
    """What the coupled set took away, how the search ended, and the instantiations next to both ends."""
    shown = result.robust if result.value is None else result.value
    value = shown.coupled
    if value is None or (result.seen is not None and result.seen.alone):
        return []
    whose = "robust" if result.value is None else "given"
    names = result.model.parameters.shown.names
    rectangular = Interval(value.rectangular_lower, value.rectangular_upper)
    lost = "which lose nothing here" if value.rectangular_lost_nothing else "a choice at a time"
    facts = [
        ("coupled", f"{value.status.value} ({whose} policy, {value.gap:.2g} of the width left open)"),
        ("", f"rectangular sets, {lost}: {rectangular}"),
    ]
    for name, witness in (("lowest at", value.lowest), ("highest at", value.highest)):
        if witness is not None:
            at = ", ".join(f"{n} = {x:.6g}" for n, x in zip(names, witness.theta, strict=False))
            at = at or "free distributions"
            facts.append((name, f"{at}: {_number(witness.lower)}"))
    if result.synthesis is not None:
        better = "more" if result.objective.maximises else "less"
        limit = bound_text(result.synthesis.limit, not result.objective.maximises, SHOWN_DIGITS)
        away = f"{result.synthesis.optimality_gap:.2g} away"
        facts.append(("limit", f"no policy guarantees {better} than {limit}, which is {away}"))
    return facts


def list_certified_facts(result: LearningResult, certified: Mapping[str, Interval]) -> list[tuple[str, str]]:
    """The certificate's own values, where they are wider than those of the result."""
    own = {"robust policy": result.robust.interval}
    if result.value is not None:
        own["given policy"] = result.value.interval
    return [
        ("certificate", f"proves {proved} of the {name}, moved outward to what can be checked")
        for name, proved in certified.items()
        if _falls_short(proved.lower, own[name].lower) or _falls_short(-proved.upper, -own[name].upper)
    ]


def _falls_short(proved: float, shown: float) -> bool:
    return proved < shown and not math.isclose(proved, shown, rel_tol=1e-12, abs_tol=1e-15)


def print_comparison(
    title: str, results: Sequence[LearningResult], true_value: Interval | None, files: str | None
) -> None:
    """All kinds of sets in one table of at most 80 columns."""
    shown = [result.value.interval if result.value else result.robust.interval for result in results]
    low, high = _scale(shown, true_value)
    rows = [
        (
            result.decisions.sets.value
            + ("*" if result.fallback else "")
            + ("" if result.verdict.word is not Word.LIMIT else "!"),
            text_below(interval.lower, SHOWN_DIGITS),
            text_above(interval.upper, SHOWN_DIGITS),
            text_above(interval.width, SHOWN_DIGITS),
            bar(interval, low, high, true_value.lower if true_value else None),
            f"{sum(result.seconds.values()):.2f}",
        )
        for result, interval in zip(results, shown, strict=True)
    ]
    whose = "given policy" if results[0].value else "robust policy"
    print_table(title, (whose, "lower", "upper", "width", f"{_number(low)} … {_number(high)}", "s"), rows)
    last = results[-1]
    facts = [("confidence", held_together(results))]
    nominal = [result for result in results if not result.ledger.holds]
    if nominal:
        whose = "all rows" if len(nominal) == len(results) else ", ".join(r.kind.value for r in nominal)
        facts.append(("NOMINAL", f"{whose}: {'; '.join(nominal[0].verdict.doubts)}"))
    if true_value is not None:
        facts.append(("│", f"{_number(true_value.lower)}, the best value at the true point"))
    if any(result.fallback for result in results):
        verdict = next(result.contradiction for result in results if result.contradiction is not None)
        facts.append(("* empty region", f"{verdict} Tied sets were used instead."))
    facts += [
        (f"! {result.decisions.sets.value}", result.status)
        for result in results
        if result.verdict.word is Word.LIMIT
    ]
    facts += outcome_facts(last)
    facts += _how(last)
    if files is not None:
        facts.append(("written", files))
    print_facts("", facts)


def held_together(results: Sequence[LearningResult]) -> str:
    """Which rows hold at once: those over one confidence statement do, whichever is chosen afterwards."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        groups.setdefault(result.ledger.lines, []).append(result.decisions.sets.value)
    level = f"{1 - results[-1].ledger.delta:g}"
    if len(groups) == 1:
        return f"{level} for all rows together"
    parts = [f"{', '.join(g)} {'together' if len(g) > 1 else 'on its own'}" for g in groups.values()]
    return f"{level} for {'; for '.join(parts)}; choose among these before looking"


def bar(interval: Interval, low: float, high: float, mark: float | None = None) -> str:
    """The interval on the scale from low to high, with a mark for a value."""
    span = high - low if high > low else 1.0

    def place(value: float) -> int:
        return round((min(max(value, low), high) - low) / span * (BAR - 1))

    first, last = place(interval.lower), place(interval.upper)
    cells = [" "] * BAR
    cells[first : last + 1] = ["━"] * (last - first + 1)
    if interval.lower < low:
        cells[0] = "◀"
    if interval.upper > high:
        cells[-1] = "▶"
    if mark is not None and low <= mark <= high:
        cells[place(mark)] = "│"
    return "".join(cells)


def _scale(intervals: Sequence[Interval], true_value: Interval | None) -> tuple[float, float]:
    """From the least to the largest end; ends a hundred times the median width away are left out."""
    finite = sorted(i.width for i in intervals if math.isfinite(i.width))
    typical = finite[len(finite) // 2] if finite else 1.0
    ends = [e for i in intervals if i.width <= 100 * typical for e in (i.lower, i.upper) if math.isfinite(e)]
    if true_value is not None and math.isfinite(true_value.lower):
        ends.append(true_value.lower)
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def _how(result: LearningResult) -> list[tuple[str, str]]:
    """How the numbers came about: choices with their reasons, the ledger, what binds, remarks."""
    chosen = [f"sets {result.decisions.sets.value}"]
    if result.decisions.region is not None:
        chosen.append(f"region {result.decisions.region.value}")
    facts = [("chosen", ", ".join(chosen))]
    facts += [("default", reason) for reason in result.decisions.reasons]
    facts += [
        ("" if i else "tried", f"{sets} sets, {whose}: {interval} in {seconds:.2g} s")
        for i, (sets, whose, interval, seconds, _) in enumerate(result.tried)
    ]
    facts += [("ledger" if i == 0 else "", line) for i, line in enumerate(result.ledger.lines)]
    widths = result.widths
    known = f"mean {widths.mean:.3g}, largest {widths.largest:.3g}"
    facts.append(("widths", f"{group(len(widths.nonconstant))} unknown expressions: {known}"))
    low, high = widths.parameter_lower, widths.parameter_upper
    names = result.model.parameters.shown.names
    if low is not None and high is not None and names:
        ends = [
            f"{n} in {interval_text(a, b, SHOWN_DIGITS)}" for n, a, b in zip(names, low, high, strict=False)
        ]
        facts.append(("parameters", ", ".join(ends)))
    if result.binding.total:
        named = [f"{e.text} ({e.side})" for e in result.binding.events[:SHOWN_EVENTS]]
        more = result.binding.total - len(named)
        facts.append(("binding", "; ".join(named) + (f"; and {more} more" if more > 0 else "")))
    facts += fit_facts(result)
    facts += shown_notes(result.notes)
    return facts


def fit_facts(result: LearningResult) -> list[tuple[str, str]]:
    """Whether the data fit the model; what fits worst, where there is reason to look."""
    fit = result.fit
    if fit is None:
        return []
    worst = fit.suspects[:SHOWN_SUSPECTS] if fit.is_doubt else ()
    worst = tuple(s for i, s in enumerate(worst) if i == 0 or s.log_evidence > 0.0)
    return [("model fit", fit.text), *(("", f"{suspect.kind}: {suspect.words}") for suspect in worst)]


def _guarantee(result: LearningResult) -> str:
    return bound_text(result.guarantee, result.objective.maximises, SHOWN_DIGITS)


def _optimistic(result: LearningResult) -> str:
    return bound_text(result.optimistic_value, not result.objective.maximises, SHOWN_DIGITS)


def _number(value: float) -> str:
    return f"{value:.{SHOWN_DIGITS}g}"


def _seconds(result: LearningResult) -> str:
    return ", ".join(f"{phase} {seconds:.3g}" for phase, seconds in result.seconds.items())


def options_that_hold(ledger: ConfidenceBudget) -> str:
    """The options to add where a method's assumption does not hold of the data, for data of any design.

    `--interval` chooses the intervals of events, so it helps where these are what the region is made of; the
    l1 region is made of balls that no interval changes.
    """
    anytime = f"--interval {IntervalMethod.BETA_BINOMIAL.value}"
    methods = {method.value for method in IntervalMethod}
    return anytime if ledger.method in methods else f"--region polytope {anytime}"
