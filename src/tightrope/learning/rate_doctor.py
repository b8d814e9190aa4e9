"""`doctor` for chains in continuous time: tests of constant rates, and answers without them.

`rates=FEATURE`, at some states or everywhere, lets rates depend on `since-entry`, `since-start`, `clock` (in
three ranges or N), `prev` or `column:NAME`; `untie` separates rates, `phase=N` is `learning.phases`. A state
with a value is a separate state: a change of the value ends its observation at a stopping time, so all
guarantees of constant rates apply (`statistics.rates`).

Every rate lies in the hull of its values' intervals, and bounds over an interval chain hold for any change
within (`logic.timed`). Columns constant within episodes have one chain per value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tightrope.data.exposure import Exposure, Pieces, read_exposure
from tightrope.errors import CannotCertify, InputError
from tightrope.learning import phases as phasing
from tightrope.learning.amendments import UNKNOWN, UNPAID, Amendment, Diagnosed, divide, states_named
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnKwargs
from tightrope.learning.rates import RateResult, estimate, fixed_rewards, result_of
from tightrope.logic.timed import RateBounds, bound_over_rates
from tightrope.model.continuous import LARGEST_RATE, IntervalCTMC, ParametricCTMC
from tightrope.model.expressions import ExpressionTable
from tightrope.model.parameters import Parameters
from tightrope.model.ranges import ranges_over_box
from tightrope.model.structure import Structure
from tightrope.monitoring.examination import Examination, Finding
from tightrope.monitoring.rate_fit import examine_rates
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, offsets, ranges, stretches
from tightrope.problem import Problem
from tightrope.solver.solution import SolveOptions
from tightrope.verdict import Assumed, AssumptionStatus

TIMES = ("since-entry", "since-start", "clock")
BINS = (3, 6, 12)
"""Into so many parts times are cut, the fewest that leave no alarm; `rates=since-entry:6` says how many."""


@dataclass(frozen=True, eq=False)
class SplitRates:
    """A chain in which some rates depend on a feature, as a chain with a state per value, and its exposure.

    `behind` is the model's transition behind each, `value` the number of the feature's value. `is_apart`: an
    episode has one value, so values are separate chains. Its graph only serves counting.
    """

    amendment: Amendment
    model: ParametricCTMC
    exposure: Exposure
    behind: OffsetArray
    value: OffsetArray
    is_apart: bool
    claims: str


class DoctorTerms(NamedTuple):
    """What `doctor` is asked: question, levels, options of `learn`, and whom to tell what begins."""

    question: Problem | None
    delta: float
    alpha: float
    options: LearnKwargs
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Division:
    """How the choice of an amendment is paid for, as `doctor` takes it."""

    select_on: float | None = None
    select_by: str | None = None
    cluster: str | None = None
    seed: int = 0


class RateAnswers:
    """Examines a log of one chain, and answers one question about it and about amended ones."""

    counts = None

    def __init__(self, terms: DoctorTerms, model: ParametricCTMC, data: object, division: Division):
        if division.select_by is not None or division.cluster is not None:
            raise InputError("`select_by` and `cluster` cannot be used with chains in continuous time")
        self.question, self.delta, self.alpha, self.options, self.tell = terms
        self.model = model
        self.exposure = data if isinstance(data, Exposure) else read_exposure(data, model)
        if self.exposure.pieces is None:
            raise InputError(
                "`doctor` needs the rows of a log, and these data are totals", hint="give the log"
            )
        pieces = self.exposure.pieces()
        self.chosen, self.learned, self.selection = _divide(pieces, division.select_on, division.seed)
        self.on = phasing.exposure_from(model.structure, self.chosen, self.exposure)

    def examine(self) -> Examination:
        """What the part of the log to choose on says against constant rates."""
        return examine_rates(self.model, self.on, alpha=self.alpha)

    def learn(self) -> tuple[RateResult, float | None]:
        """The answer on the chain as it is, and its value at the best fit."""
        assert self.question is not None
        result = learn(self.question, self.exposure, delta=self.delta, **self.options)
        assert isinstance(result, RateResult)
        return result, _at_best_fit(self.question, self.model, self.on)

    def costs(self) -> list[Finding]:
        """Costs of chains are not tested."""
        return []

    def answer(self, change: Amendment, is_chosen: bool) -> tuple[Any, ...]:
        """The fields of the answer on an amended chain, from the part of the log to learn from."""
        unpaid = not is_chosen and self.selection.kept is AssumptionStatus.NO
        return self._follow(change, self.learned, UNKNOWN if unpaid else self.selection)

    def diagnose(self, finding: Finding, estimate: float | None, left: int) -> Diagnosed:
        """The smallest amendment that removes a finding, and the answer with it."""
        if finding.feature == "unit:episode":
            return Diagnosed(
                finding, why="episodes differ and no column says by what: what they returned holds"
            )
        kind, feature = ("untie", "") if finding.feature == "tie" else ("rates", finding.feature)
        made, why = None, ""
        several = [f"{feature}:{one}" for one in BINS] if feature in TIMES else [feature]
        places = (finding.contexts, None) if finding.contexts else (None,)
        changes = [Amendment(kind, one, choices) for choices in places for one in several]
        if feature == "since-entry":
            changes += [Amendment("phase", "fit", choices) for choices in places]
        for change in changes:
            try:
                _, _, again, result = self._follow(change, self.chosen, UNPAID)
            except (InputError, CannotCertify) as error:
                why = str(error).partition("\n")[0]
                continue
            value = None if result is None else result.interval
            effect = None
            if value is not None and estimate is not None:
                effect = min(value.upper - estimate, 0.0) + max(value.lower - estimate, 0.0)
            made = Diagnosed(finding, change, value, None, effect, again.log_e_value, not again.alarm)
            if made.mends:
                break
        return made or Diagnosed(finding, why=why)

    def _follow(
        self, change: Amendment, learned: Pieces, selection: Assumed
    ) -> tuple[SplitRates | phasing.PhasedRates, Assumed, Examination, RateResult | None]:
        """The amended chain, its test and its answer."""
        chosen, like = self.chosen, self.exposure
        model, question, delta = self.model, self.question, self.delta
        if change.kind == "phase":
            name = change.feature.partition(":")[2]
            named = states_named(model.structure, name) if name else np.ones(model.states, np.bool_)
            phases = phasing.choose_phases(model, chosen, change, named)
            phased = phasing.with_phases(model, learned, change, like, phases)
            tested = phasing.examine_phases(phased, self.alpha)
            return phased, selection, tested, phasing.learn_phases(question, phased, tested, delta)
        if change.kind not in ("rates", "untie"):
            raise InputError(
                f"`{change.text}` revises models in discrete time",
                hint="of chains in continuous time rates=…, phase=N or untie; rates=column:NAME has a chain "
                "for each value of a column",
            )
        split = split_rates(model, learned, change, like, _edges(model, chosen, change))
        tested = examine_rates(split.model, split.exposure, alpha=self.alpha)
        return split, selection, tested, _learn(question, split, tested, delta)


def _divide(pieces: Pieces, share: float | None, seed: int) -> tuple[Pieces, Pieces, Assumed]:
    """The part to choose on, the part to learn from, and what is said about it."""
    if share is None:
        return pieces, pieces, UNPAID
    picked, selection = divide(int(pieces.episode[-1]) + 1, share, seed, "episodes")
    rows: BoolArray = picked[pieces.episode]
    parts = [phasing.take(pieces, np.flatnonzero(side)) for side in (rows, ~rows)]
    return parts[0], parts[1], selection


# --- amended chains ------------------------------------------------------------------------


def split_rates(
    model: ParametricCTMC, pieces: Pieces, change: Amendment, like: Exposure, edges: FloatArray
) -> SplitRates:
    """The states of the model, those in question once per value of the feature, and the log for them."""
    structure, size = model.structure, model.states
    split = np.zeros(size, np.bool_)
    split[list(range(size) if change.choices is None else change.choices)] = True
    phasing.refuse_rewards(model, np.flatnonzero(split).tolist(), change)
    pieces, code, values = _values(structure, pieces, change, edges)
    possible = np.ones((size, values), np.bool_)
    if change.feature == "prev":
        owner = structure.choice_state[structure.transition_choice]
        possible[:, :size] = False
        possible[structure.successor, owner] = True
        possible[:, size] = np.isin(np.arange(size), [structure.initial, *pieces.state[pieces.before < 0]])
    possible &= split[:, None] | (np.arange(values) == 0)
    possible[~split, 0] = True
    copies, value = np.nonzero(possible)
    number = np.full((size, values), -1, np.int64)
    number[copies, value] = np.arange(len(copies))
    first = np.array([number[state][number[state] >= 0].min() for state in range(size)])
    behind, source = ranges(structure.transition_start, copies)
    to = structure.successor[behind]
    built = Structure(
        choice_start=np.arange(len(copies) + 1),
        transition_start=offsets(np.diff(structure.transition_start)[copies]),
        successor=np.where(to == copies[source], source, first[to]).astype(np.int32),
        initial_states=(int(first[structure.initial]),),
        valuations={"s": copies.astype(np.int32), "value": value.astype(np.int32)},
    )
    is_own = split[copies[source]] & (to != copies[source])
    chain = _with_own_rates(model, built, behind, is_own)
    state = number[pieces.state, np.where(split[pieces.state], code, 0)]
    if (state < 0).any():
        raise InputError(f"`{change.text}`: the log has a value that the model does not know")
    ended = built.transition_start[state] + pieces.transition - structure.transition_start[pieces.state]
    moved = replace(
        pieces,
        state=state,
        transition=np.where(pieces.transition >= 0, ended, -1),
        before=np.where(pieces.before >= 0, first[pieces.before], -1),
    )
    kind, _, name = change.feature.partition(":")
    code_of = pieces.columns[name].code if kind == "column" else None
    _, first_row, of_row = np.unique(pieces.episode, return_index=True, return_inverse=True)
    stays = code_of is not None and bool((code_of == code_of[first_row[of_row]]).all())
    return SplitRates(
        change,
        chain,
        phasing.exposure_from(built, moved, like),
        behind,
        value[source],
        stays and bool(split.all()),
        f"rates may depend on {change.feature or 'the transition'}, and are constant otherwise",
    )


def _values(
    structure: Structure, pieces: Pieces, change: Amendment, edges: FloatArray
) -> tuple[Pieces, OffsetArray, int]:
    """Stretches of time in which the feature has one value, which one, and how many there are."""
    kind, _, name = change.feature.partition(":")
    if change.kind == "untie":
        return pieces, np.zeros(len(pieces.state), np.int64), 1
    if kind in TIMES:
        pieces, code = _cut(pieces, _times(pieces, kind), edges)
        return pieces, code, len(edges) + 1
    if kind == "prev":
        return pieces, np.where(pieces.before < 0, structure.states, pieces.before), structure.states + 1
    if kind == "column" and name in pieces.columns:
        code = pieces.columns[name].code.astype(np.int64)
        size = len(pieces.columns[name].labels)
        return pieces, np.where(code < 0, size, code), size + bool((code < 0).any())
    known = ", ".join((*TIMES, "prev", *(f"column:{one}" for one in pieces.columns)))
    raise InputError(f"rates cannot depend on '{change.feature}' here", hint=f"known values: {known}")


def _times(pieces: Pieces, kind: str) -> FloatArray:
    if kind == "clock" and pieces.clock is None:
        raise InputError("the log has durations and no clock")
    times = {"since-entry": pieces.since_entry, "since-start": pieces.since_start, "clock": pieces.clock}[
        kind
    ]
    assert times is not None
    return times


def _cut(pieces: Pieces, since: FloatArray, edges: FloatArray) -> tuple[Pieces, OffsetArray]:
    """Cut stretches where their times pass an edge; what happens at an edge belongs to what was before."""
    until = since + pieces.duration
    low = np.searchsorted(edges, since, side="right")
    high = np.maximum(np.searchsorted(edges, until, side="left"), low)
    rows = np.repeat(np.arange(len(since)), high - low + 1)
    code = stretches(low, high - low + 1)
    ends = np.r_[edges, math.inf]
    begin = np.where(code == low[rows], since[rows], np.r_[-math.inf, edges][code])
    end = np.minimum(until[rows], ends[code])
    passed, is_last = begin - since[rows], code == high[rows]
    whole = phasing.take(pieces, rows)
    return replace(
        whole,
        duration=np.where(is_last, until[rows], end) - begin,
        transition=np.where(is_last, whole.transition, -1),
        since_entry=whole.since_entry + passed,
        since_start=whole.since_start + passed,
        clock=None if whole.clock is None else whole.clock + passed,
    ), code


def _edges(model: ParametricCTMC, pieces: Pieces, change: Amendment) -> FloatArray:
    """Equal parts of the times at which something happened in the states in question."""
    kind, _, number = change.feature.partition(":")
    if change.kind == "untie" or kind not in TIMES:
        return np.empty(0)
    if number and (not number.isdecimal() or not 2 <= int(number) <= 1000):
        raise InputError(f"`{change.text}`: '{number}' is not a number of parts from 2 to 1000")
    parts = int(number) if number else BINS[0]
    states = range(model.states) if change.choices is None else change.choices
    here = (pieces.transition >= 0) & np.isin(pieces.state, list(states))
    times = (_times(pieces, kind) + pieces.duration)[here]
    if not len(times):
        return np.empty(0)
    return np.unique(np.quantile(times, np.arange(1, parts) / parts))


def _with_own_rates(
    model: ParametricCTMC, structure: Structure, behind: OffsetArray, is_own: BoolArray
) -> ParametricCTMC:
    """The rates of the model, and unknown ones of their own at some transitions, in the same range."""
    old = model.parameters
    low, high = ranges_over_box(model.expressions, old.lower, old.upper)
    names: list[str] = []
    bounds: list[tuple[Fraction, Fraction]] = []
    table_row: list[int | None] = []
    for at, base in enumerate(model.expression[behind].tolist()):
        table_row.append(None if is_own[at] else base)
        if is_own[at]:
            names.append(f"rate_{len(names)}")
            while names[-1] in old.names:
                names[-1] += "_"
            least, most = Fraction(max(float(low[base]), 0.0)), Fraction(float(high[base]))
            if least == most:  # a number that the log may refute
                least, most = least / 1000, max(most * 1000, Fraction(LARGEST_RATE))
            bounds.append((least, most))
    nothing = (Fraction(0),) * len(names)
    parameters = Parameters(
        (*old.names, *names),
        (*old.lower, *(one for one, _ in bounds)),
        (*old.upper, *(one for _, one in bounds)),
        tuple(replace(one, coefficients=(*one.coefficients, *nothing)) for one in old.constraints),
    )
    table, symbols = ExpressionTable(parameters.names), iter(parameters.symbols()[len(old.names) :])
    rows = [table.add(next(symbols) if row is None else model.expressions.function(row)) for row in table_row]
    expressions, expression = table.freeze(np.array(rows, np.int32))
    return ParametricCTMC(structure, expression, expressions, parameters)


# --- answers -------------------------------------------------------------------------------


def _learn(
    question: Problem | None, made: SplitRates, tested: Examination, delta: float
) -> RateResult | None:
    """Bounds on the value where rates depend on the feature."""
    if question is None:
        return None
    base = question.model
    assert isinstance(base, ParametricCTMC)

    def bound(chain: IntervalCTMC) -> tuple[IntervalCTMC, RateBounds]:
        low, high = chain.lower[chain.expression], chain.upper[chain.expression]
        parts = [made.value == one for one in np.unique(made.value)] if made.is_apart else [slice(None)]
        ends = [_bound(question, base, made.behind[one], low[one], high[one]) for one in parts]
        lower, upper = min(one.lower for one in ends), max(one.upper for one in ends)
        missed = tuple(dict.fromkeys(text for one in ends for text in one.missed))
        return chain, RateBounds(lower, upper, sum(one.iterations for one in ends), missed)

    estimated = estimate(made.model, made.exposure, delta)
    return result_of(question, made.model, made.exposure, estimated, tested, bound)


def _bound(
    question: Problem, base: ParametricCTMC, behind: OffsetArray, low: FloatArray, high: FloatArray
) -> RateBounds:
    """Over all rates within the hull of the intervals that are given of each transition."""
    lower, upper = np.full(base.transitions, math.inf), np.zeros(base.transitions)
    np.minimum.at(lower, behind, low)
    np.maximum.at(upper, behind, high)
    number = np.arange(base.transitions, dtype=np.int32)
    chain = IntervalCTMC(base.structure, number, lower, upper, fixed_rewards(base))
    return bound_over_rates(chain, question.query, SolveOptions(1e-6))


def _at_best_fit(question: Problem, model: ParametricCTMC, exposure: Exposure) -> float | None:
    """The value at the rates that fit best, transition by transition: for comparison, no bound."""
    if any(not reward.expressions.is_constant.all() for reward in model.earned.values()):
        return None
    structure = model.structure
    waited = exposure.waited[structure.choice_state[structure.transition_choice]]
    low, high = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
    rate = np.where(waited > 0.0, exposure.jumps / np.where(waited > 0.0, waited, 1.0), 1.0)
    rate = np.clip(rate, low[model.expression], high[model.expression])
    value = _bound(question, model, np.arange(model.transitions), rate, rate)
    return 0.5 * (value.lower + value.upper) if math.isfinite(value.upper) else None
