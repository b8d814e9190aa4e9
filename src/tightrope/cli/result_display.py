"""What `tightrope learn` prints for people: one result, or several kinds of sets side by side.

Bars show intervals on one common scale; an end that is infinite, or off the scale, is drawn as an arrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

import tightrope as tr
from tightrope.cli.output import Content, Rows, Table, assumed_facts, count, shown_notes, spent
from tightrope.io.results import Interval, ModelFit, power_text
from tightrope.learning.robustness import refuted_rungs, what_to_do
from tightrope.model.structure import Structure
from tightrope.numerics import text as texts
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.late import sparse
from tightrope.rules.states import STATE, value_names
from tightrope.statistics.confidence_budget import SAMPLING, Assumption
from tightrope.statistics.estimates import IntervalMethod
from tightrope.verdict import Word

BAR = 22
"""Characters of a bar: the table with it fits into 80 columns."""

SHOWN_EVENTS = 3
SHOWN_ANOMALIES = 3
SHOWN_PARAMETERS = 4
SHOWN_ACTIONS = 2
SHOWN_STATES = 4
STEPS = 200
"""Steps over which the visits of states are added up."""

MOST_TRANSITIONS = 2_000_000
"""Above it no visits are computed, and the initial state is what is most important."""


def show_result(
    result: tr.LearningResult,
    true_value: Interval | None,
    files: str | None,
    certified: Mapping[str, Interval],
) -> Content:
    """One result; where a certificate proves less, what it proves."""
    value, point = result.value, result.robust_point
    rule = None if value is None else value.policy.rule
    tree = rule and f"{count(rule.nodes, 'test')}, value in {value and value.interval}"
    given = value is not None and rule is None
    at = point and ",".join(f"{name}={value}" for name, value in point.items())
    most, best = result.robust_optimum, true_value and texts.number_text(true_value.lower)
    optimum = None if most is None else texts.bounded(most, not result.objective.maximises)
    facts: Rows = [
        *hints_of(result),
        ("property", result.problem.text),
        ("value", value_of(result)),
        ("tree", tree),
        ("", rule and [f"{'  ' * depth}{line}" for depth, line in rule.words()]),
        ("given", f"the given policy has a value in {value.interval}" if value and given else None),
        *(outcome_facts(result) if result.seen is not None else []),
        ("breakdown", result.breakdown and result.breakdown.text),
        ("true", best and f"the best value at the true parameters is {best}"),
        ("limit", optimum and f"guarantee of any controller {optimum} over the region"),
        ("", at and f"found at {at}; check --at … --certificate FILE proves it"),
        *list_certified_facts(result, certified),
        *(policy_facts(result) if rule is None else []),
        ("written", files),
        *parameter_facts(result, SHOWN_PARAMETERS),
        *fit_facts(result),
        *assumed_facts(result.verdict),
    ]
    more = [*([] if result.seen is not None else outcome_facts(result)), *list_coupled_facts(result)]
    return Content(facts, [*more, *_how(result)])


def value_of(result: tr.LearningResult) -> str:
    """The interval of the robust policy, how it was found, and what no policy exceeds."""
    best = texts.bounded(result.optimistic_value, not result.objective.maximises)
    kinds = [] if result.decisions.region is None else [f"{result.decisions.region.value} region"]
    if result.fallback:
        kinds = ["the region is empty"]
    how = ", ".join([*kinds, f"{result.kind.value} sets"])
    if result.verdict.word is Word.CONTRADICTED and not result.fallback:
        return f"none; under the contradicted model {result.by_model} ({how})"
    if result.model.states == result.model.choices:
        return f"{result.robust.interval} ({how})"
    whose = "policy" if result.robust_optimum is None else "controller"
    return f"{result.robust.interval} ({how}); any {whose} {best}"


def hints_of(result: tr.LearningResult) -> Rows:
    """What to do about a result that is not proved, beyond what its assumptions say themselves."""
    hints, ledger = [], result.ledger
    if result.contradiction is not None:
        broken = None if result.counts is None else refuted_rungs(result.model, result.counts, None)
        if broken is not None and "tied" in broken:
            hints.append(f"--sets untied: a tie is broken as well, {broken['tied']}")
    if result.refuted_costs is not None:
        hints.append("state a wider range of costs (--cost-range), or a larger bound on deviations (sd=S)")
    if result.seen is not None and result.seen.contradiction is not None:
        hints.append("the observed returns hold; --sets untied needs less of the model")
    if result.seen is not None and result.seen.tension is not None:
        hints.append("'tightrope doctor' tests the model; --outcomes only does without it")
    if result.fit is not None and result.fit.misfit is not None:
        hints.append(what_to_do(result))
    broken_sampling = [one for one in ledger.assumptions if one.name == SAMPLING and not one.holds]
    if broken_sampling and ledger.assumption is not Assumption.NONE and not ledger.censored:
        anytime = f"--interval {IntervalMethod.BETA_BINOMIAL.value}"  # which the l1 region has no use for
        is_of_events = ledger.method in {method.value for method in IntervalMethod}
        hints.append(f"add {anytime}" if is_of_events else f"add --region polytope {anytime}")
    return [("hint", hint) for hint in hints]


def parameter_facts(result: tr.LearningResult, most: int | None = None) -> Rows:
    """What the data leave of each parameter."""
    low, high = result.widths.parameter_lower, result.widths.parameter_upper
    names = result.model.parameters.shown.names
    if low is None or high is None or not names:
        return []
    ends = [f"{n} {texts.interval_text(a, b)}" for n, a, b in zip(names, low, high, strict=False)]
    more = [] if most is None or len(ends) <= most else [f"{len(ends) - most:,} more (--verbose)"]
    return [("parameters", ", ".join([*ends[:most], *more]))]


def policy_facts(result: tr.LearningResult) -> Rows:
    """What to do in the states that the robust policy visits most, a line an action."""
    policy, structure = result.policy, result.policy.structure
    if not structure.has_choices:
        return []
    if result.problem.is_of_controller or policy.has_memory:
        return [("policy", "a controller with memory (-o DIR writes it)")]
    first = " at the first step" if policy.depends_on_step else ""
    policy = policy.at(0)
    visits = expected_visits(result, policy)
    deciding = np.flatnonzero(np.diff(structure.choice_start) > 1)
    reached = [s for s in deciding[np.argsort(-visits[deciding], kind="stable")].tolist() if visits[s] > 0]
    names = situations(structure, reached, result.counts.names if result.counts is not None else {})
    lines: dict[str, list[str]] = {}
    for state in reached:
        begin, end = structure.choice_start[state : state + 2]
        likely = [c for c in range(begin, end) if policy.probability[c] > 0]
        act = " or ".join(structure.action_name(c) or f"choice {c - begin + 1}" for c in likely)
        lines.setdefault(act if len(likely) == 1 else f"{act} at random", []).append(names[state])
    listed = [f"{act}{first} when {_listed(places)}" for act, places in lines.items()]
    more = [f"{len(listed) - SHOWN_ACTIONS} more actions (--verbose)"] if len(listed) > SHOWN_ACTIONS else []
    return [("policy", "\n".join([*listed[:SHOWN_ACTIONS], *more]))] if listed else []


def _listed(places: Sequence[str]) -> str:
    more = len(places) - SHOWN_STATES
    return " or ".join([*places[:SHOWN_STATES], *([count(more, "more state")] if more > 0 else [])])


def expected_visits(result: tr.LearningResult, policy: tr.Policy) -> FloatArray:
    """How often each state is visited in some steps under the policy, at the middle of the sets."""
    structure = policy.structure
    visits = np.zeros(structure.states)
    now = np.zeros(structure.states)
    now[result.problem.model.initial] = 1.0
    if structure.transitions > MOST_TRANSITIONS:
        return now
    sizes = np.diff(structure.transition_start)
    middle = np.clip((result.sets.lower + result.sets.upper) / 2, 0.0, None)
    total = np.add.reduceat(middle, structure.transition_start[:-1])
    middle = middle / np.repeat(np.where(total > 0, total, 1.0), sizes)
    state = np.repeat(np.arange(structure.states), np.diff(structure.choice_start))
    weight = np.repeat(policy.probability, sizes) * middle
    places = (structure.successor, np.repeat(state, sizes))
    step = sparse.csr_array((weight, places), shape=(structure.states, structure.states))
    for _ in range(STEPS):
        visits += now
        now = step @ now
    return np.asarray(visits)


def situations(
    structure: Structure, states: Sequence[int], names: Mapping[str, Mapping[str, str]]
) -> dict[int, str]:
    """Name states by the variables that differ between them, with values as the log calls them."""
    varying = {n: c for n, c in structure.valuations.items() if len(set(c[list(states)].tolist())) > 1}
    names = value_names(structure, names)
    if not varying:
        return {s: names.get(STATE, {}).get(str(s), structure.state_name(s).strip("()")) for s in states}

    def one(name: str, value: object) -> str:
        text = str(value).lower()
        shown = names.get(name, {}).get(text, text)
        return shown if name == STATE and shown != text else f"{name}={shown}"

    return {s: ",".join(one(name, column[s].item()) for name, column in varying.items()) for s in states}


def outcome_facts(result: tr.LearningResult) -> Rows:
    """What episodes returned beside what the model says of the same value, or why that does not show."""
    if result.outcomes is None:
        return []
    facts = [("returns", result.outcomes.text)]
    if result.seen is not None and result.seen.model is not None:
        words = f"by the model {result.seen.model}: the value is the intersection"
        if result.seen.contradiction is not None:
            words = f"by the model {result.seen.model}: the two exclude each other"
        elif result.seen.alone:
            words = "the value is that of the observed returns alone: the data refute the model"
        facts.append(("", words))
    return facts


def list_coupled_facts(result: tr.LearningResult) -> Rows:
    """What the coupled set took away, how the search ended, and the instantiations next to both ends."""
    value = (result.robust if result.value is None else result.value).coupled
    if value is None or (result.seen is not None and result.seen.alone):
        return []
    whose = "robust" if result.value is None else "given"
    names = result.model.parameters.shown.names
    rectangular = Interval.of(value.rectangular_lower, value.rectangular_upper)
    lost = "equally narrow" if value.rectangular_lost_nothing else "new parameters at every choice"
    facts = [
        ("coupled", f"{value.status.value} ({whose} policy, {value.gap:.2g} of the width without witness)"),
        ("", f"rectangular sets, {lost}: {rectangular}"),
    ]
    for name, witness in (("lowest at", value.lowest), ("highest at", value.highest)):
        if witness is not None:
            at = ", ".join(
                f"{n} = {texts.number_text(x)}" for n, x in zip(names, witness.theta, strict=False)
            )
            facts.append((name, f"{at or 'unconstrained distributions'}: {texts.number_text(witness.lower)}"))
    if result.synthesis is not None:
        limit = texts.bounded(result.synthesis.limit, not result.objective.maximises)
        facts.append(("limit", f"any policy {limit}, {result.synthesis.optimality_gap:.2g} from this one"))
    return facts


def list_certified_facts(result: tr.LearningResult, certified: Mapping[str, Interval]) -> Rows:
    """The certificate's own values, where they are wider than those of the result."""
    own = {"robust policy": result.robust.interval}
    if result.value is not None:
        own["given policy"] = result.value.interval
    return [
        ("certificate", f"proves {proved} for the {name}, slightly wider, with numbers that can be checked")
        for name, proved in certified.items()
        if _falls_short(proved.lower, own[name].lower) or _falls_short(-proved.upper, -own[name].upper)
    ]


def _falls_short(proved: float, shown: float) -> bool:
    return proved < shown and not math.isclose(proved, shown, rel_tol=1e-12, abs_tol=1e-15)


def show_comparison(
    question: str, results: Sequence[tr.LearningResult], true_value: Interval | None, files: str | None
) -> Content:
    """All kinds of sets in one table of at most 80 columns."""
    shown = [result.value.interval if result.value else result.robust.interval for result in results]
    low, high = _scale(shown, true_value)
    rows = [
        (
            result.decisions.sets.value
            + ("*" if result.fallback else "")
            + ("" if result.verdict.word is not Word.LIMIT else "!"),
            texts.text_below(interval.lower),
            texts.text_above(interval.upper),
            texts.text_above(interval.width),
            bar(interval, low, high, true_value.lower if true_value else None),
        )
        for result, interval in zip(results, shown, strict=True)
    ]
    whose = "given policy" if results[0].value else "robust policy"
    scale = f"{texts.number_text(low)} to {texts.number_text(high)}"
    table = Table((whose, "lower", "upper", "width", scale), rows)
    last, empty = (
        results[-1],
        [result.contradiction for result in results if result.contradiction is not None],
    )
    best = true_value and texts.number_text(true_value.lower)
    facts: Rows = [
        *hints_of(last),
        ("confidence", held_together(results)),
        ("true │", best and f"the best value at the true parameters is {best}"),
        ("* empty", f"{empty[0]} Tied sets were used instead." if empty else None),
        ("written", files),
    ]
    limited = [result for result in results if result.verdict.word is Word.LIMIT]
    more: Rows = [
        ("property", question),
        *((f"! {result.decisions.sets.value}", result.status) for result in limited),
        *outcome_facts(last),
        *policy_facts(last),
        *parameter_facts(last),
        *fit_facts(last),
        *_how(last),
    ]
    return Content(facts, more, table)


def held_together(results: Sequence[tr.LearningResult]) -> str:
    """Which rows hold simultaneously: those over one confidence statement, whichever is chosen later."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        groups.setdefault(result.ledger.lines, []).append(result.decisions.sets.value)
    level = texts.confidence_text(results[-1].ledger.delta)
    if len(groups) == 1:
        return f"{level} for all rows simultaneously"
    *others, _ = sorted(groups.values(), key=len)
    alone = ", ".join(name for names in others for name in names)
    return f"{level} for all rows simultaneously, except {alone}: choose such a row before you see results"


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


def _how(result: tr.LearningResult) -> Rows:
    """How the numbers came about: reasons for defaults, the confidence budget, limiting data, remarks."""
    several = len(result.model.parameters.shown.names) > SHOWN_PARAMETERS
    tried = (
        f"{sets} sets, {whose}: {interval} in {seconds:.2g} s"
        for sets, whose, interval, seconds, _ in result.tried
    )
    widths, hidden = result.widths, result.binding.total - SHOWN_EVENTS
    known = f"mean {widths.mean:.3g}, largest {widths.largest:.3g}"
    named = [f"{e.text} ({e.side} bound active)" for e in result.binding.events[:SHOWN_EVENTS]]
    return [
        *(parameter_facts(result) if several else []),
        ("default", result.decisions.reasons),
        ("tried", tried),
        ("budget", result.ledger.lines),
        ("widths", f"{count(len(widths.nonconstant), 'unknown expression')}: {known}"),
        ("limiting data", [*named, *([f"{hidden:,} more"] if hidden > 0 else [])]),
        *shown_notes(result.notes),
        *spent(result.seconds),
    ]


def fit_facts(result: tr.LearningResult | tr.LearnedAnswer) -> Rows:
    """Whether the data fit the model, unless the reason says it, and what fits worst."""
    fit = result.fit
    if fit is None:
        return []
    worst = fit.suspects[:SHOWN_ANOMALIES] if fit.is_doubt else ()
    worst = tuple(s for i, s in enumerate(worst) if i == 0 or s.log_evidence > 0.0)
    is_reason = any(one.name == "model" and not one.holds for one in result.verdict.assumptions)
    rows = [] if is_reason or fit.misfit is not None else [("model fit", fit_text(fit))]
    return [*rows, *(("anomaly", f"{suspect.kind}: {suspect.words}") for suspect in worst)]


def fit_text(fit: ModelFit) -> str:
    """`no evidence against the model (e-value 10^-4.7, alarm at 1,000)`."""
    word = fit.verdict.replace("against it", "against the model")
    nominal = ", nominal" if fit.nominal else ""
    return f"{word} (e-value {power_text(fit.log_e_value)}, alarm at {1 / fit.alpha:,.0f}{nominal})"
