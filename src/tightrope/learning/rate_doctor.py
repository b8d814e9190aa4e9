"""`doctor` for chains in continuous time: tests of constant rates, and answers without them.

`rates=FEATURE`, at some states or everywhere, lets rates depend on `since-entry`, `since-start`, `clock` (in
three ranges or N), `prev` or `column:NAME`; `untie` separates rates. A state
with a value is a separate state: a change of the value ends its observation at a stopping time, so all
guarantees of constant rates apply (`statistics.rates`).

Every rate lies in the hull of its values' intervals, and bounds over an interval chain hold for any change
within (`logic.timed`). Columns constant within episodes have one chain per value.

`phase=N`: a state is left after N unobserved phases of one rate λ, then by transition t with probability
r(t), independently of the time. λ has a mixture likelihood ratio's interval, r beta-binomial ones, and other
rates are learned without the time in these states. All statements share δ. The test mixes Gamma and Weibull
laws; `phase=fit` takes the likeliest N. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincc, gammaln, logsumexp

from tightrope.data.exposure import Exposure, Pieces, read_exposure
from tightrope.errors import CannotCertify, InputError
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
from tightrope.statistics.intervals import beta_binomial
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
        self.on = exposure_from(model.structure, self.chosen, self.exposure)

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
    ) -> tuple[SplitRates | PhasedRates, Assumed, Examination, RateResult | None]:
        """The amended chain, its test and its answer."""
        chosen, like = self.chosen, self.exposure
        model, question, delta = self.model, self.question, self.delta
        if change.kind == "phase":
            name = change.feature.partition(":")[2]
            named = states_named(model.structure, name) if name else np.ones(model.states, np.bool_)
            phases = choose_phases(model, chosen, change, named)
            phased = with_phases(model, learned, change, like, phases)
            tested = examine_phases(phased, self.alpha)
            return phased, selection, tested, learn_phases(question, phased, tested, delta)
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
    parts = [take(pieces, np.flatnonzero(side)) for side in (rows, ~rows)]
    return parts[0], parts[1], selection


# --- amended chains ------------------------------------------------------------------------


def split_rates(
    model: ParametricCTMC, pieces: Pieces, change: Amendment, like: Exposure, edges: FloatArray
) -> SplitRates:
    """The states of the model, those in question once per value of the feature, and the log for them."""
    structure, size = model.structure, model.states
    split = np.zeros(size, np.bool_)
    split[list(range(size) if change.choices is None else change.choices)] = True
    refuse_rewards(model, np.flatnonzero(split).tolist(), change)
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
        exposure_from(built, moved, like),
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
    whole = take(pieces, rows)
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


# --- phases --------------------------------------------------------------------------------

MOST_PHASES = 32
STEPS, NEAR = (0.02, 0.001), 60
"""Of the lattices of log λ, and how far from the best rate their terms are taken."""

SHAPES = (0.25, 0.5, 0.7, 1.5, 2.0, 4.0)
"""Of Gamma laws, by N, and of Weibull laws: what the test looks for."""


@dataclass(frozen=True)
class Sojourns:
    """Times in one state: complete ones, with the transitions that ended them, and those cut off."""

    lasted: FloatArray
    ended: OffsetArray
    cut: FloatArray

    @staticmethod
    def of(pieces: Pieces, state: int) -> Sojourns:
        total = pieces.since_entry + pieces.duration
        follows = np.r_[
            (np.diff(pieces.episode) == 0) & (np.diff(pieces.state) == 0) & (np.diff(pieces.since_entry) > 0),
            False,
        ]
        here, done = pieces.state == state, pieces.transition >= 0
        cut = total[here & ~done & ~follows]
        return Sojourns(total[here & done], pieces.transition[here & done], cut[cut > 0.0])

    def log_likelihood(self, rate: FloatArray, phases: int) -> FloatArray:
        """Of rates, up to what is free of them."""
        x = rate[:, None] * self.cut
        tails = gammaincc(phases, x)
        far = tails < 1e-280  # here Σ is at most N times its last term
        bound = math.log(phases) + (phases - 1) * np.log(np.maximum(x, 1.0)) - gammaln(phases) - x
        tails = np.where(far, bound, np.log(np.where(far, 1.0, tails)))
        result: FloatArray = (
            phases * len(self.lasted) * np.log(rate) - rate * self.lasted.sum() + tails.sum(axis=1)
        )
        return result

    def best(self, phases: int) -> float:
        """About the rate with the largest likelihood."""
        time = float(self.lasted.sum() + self.cut.sum())
        low, high = math.log(0.1 / time), math.log(10.0 * phases * (len(self.lasted) + 1) / time)
        for _ in range(50):
            a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
            first, second = self.log_likelihood(np.exp([a, b]), phases)
            low, high = (a, high) if first < second else (low, b)
        return math.exp(0.5 * (low + high))

    def interval(self, phases: int, gamma: float) -> tuple[float, float]:
        """Bounds on the rate of the phases at level 1 − gamma, at all times."""
        best = self.best(phases)
        log_q = _mixed(best, phases, lambda rates: self.log_likelihood(rates, phases))
        least = log_q - math.log(1.0 / gamma)
        least -= 1e-9 * (1.0 + abs(least) + phases * len(self.lasted) + len(self.cut))
        ends = []
        for sign in (-1.0, 1.0):
            inner, outer = math.log(best), math.log(best) + sign
            while self._at(outer, phases) > least and abs(outer) < 600.0:
                outer += sign * (1.0 + abs(outer - math.log(best)))
            if self._at(outer, phases) > least:
                ends.append(0.0 if sign < 0.0 else math.inf)
                continue
            for _ in range(60):
                middle = 0.5 * (inner + outer)
                inner, outer = (middle, outer) if self._at(middle, phases) > least else (inner, middle)
            ends.append(math.exp(outer) * (1.0 + sign * 1e-12))
        return ends[0], ends[1]

    def _at(self, log_rate: float, phases: int) -> float:
        return float(self.log_likelihood(np.exp([log_rate]), phases)[0])

    def evidence(self, phases: int) -> float:
        """The logarithm of an e-value against phases."""
        if not len(self.lasted):
            return 0.0
        best, logs = self.best(phases), np.log(self.lasted)
        own = (phases - 1) * logs.sum() - gammaln(phases) * len(logs)
        null = float(self.log_likelihood(np.array([best]), phases)[0] + own) + 1e-6
        terms = []
        for shape in SHAPES:
            a, middle = shape * phases, shape * best

            def gamma_law(rates: FloatArray, a: float = a) -> FloatArray:
                with np.errstate(divide="ignore"):
                    tails = np.log(gammaincc(a, rates[:, None] * self.cut)).sum(axis=1)
                whole = a * np.log(rates) * len(logs) - rates * self.lasted.sum() + tails
                result: FloatArray = whole + (a - 1.0) * logs.sum() - gammaln(a) * len(logs)
                return result

            def weibull_law(rates: FloatArray, k: float = shape) -> FloatArray:
                every = np.r_[self.lasted, self.cut]
                result: FloatArray = (
                    len(logs) * (math.log(k) + k * np.log(rates))
                    + (k - 1.0) * logs.sum()
                    - ((rates[:, None] * every) ** k).sum(axis=1)
                )
                return result

            slow = float((len(logs) / (np.r_[self.lasted, self.cut] ** shape).sum()) ** (1.0 / shape))
            terms += [_mixed(middle, phases, gamma_law), _mixed(slow, phases, weibull_law)]
        return float(logsumexp(terms)) - math.log(len(terms)) - null


def _mixed(best: float, phases: int, log_likelihood: Callable[[FloatArray], FloatArray]) -> float:
    """The log of a mixture over two lattices of rates, weights h/(3π)/(1 + (kh/3)²); terms near `best` are
    taken."""
    total = []
    for step in STEPS:
        nearest = round(math.log(best / phases) / step)
        place = (nearest + np.arange(-NEAR, NEAR + 1)) * step
        weight = math.log(step / (3.0 * math.pi) / 1.01) - np.log1p((place / 3.0) ** 2)
        total.append(float(logsumexp(weight + log_likelihood(phases * np.exp(place)))))
    return float(logsumexp(total)) - math.log(2.0)


@dataclass(frozen=True, eq=False)
class PhasedRates:
    """A chain with phases at some states: their numbers, and the log of the states without them."""

    amendment: Amendment
    model: ParametricCTMC
    exposure: Exposure
    phases: Mapping[int, int]
    sojourns: Mapping[int, Sojourns]
    rest: Exposure
    claims: str


def choose_phases(
    model: ParametricCTMC, pieces: Pieces, change: Amendment, named: BoolArray
) -> dict[int, int]:
    """How many phases each state in question has, by the log that amendments are chosen on."""
    word = change.feature.partition(":")[0]
    if word != "fit" and not (word.isdecimal() and 2 <= int(word) <= MOST_PHASES):
        raise InputError(
            f"`{change.text}`: '{word}' is not a number of phases from 2 to {MOST_PHASES}, nor 'fit'",
            hint="phase=3, phase=fit, or of one state phase=3:STATE",
        )
    structure = model.structure
    leaves = np.zeros(model.states, np.bool_)
    owner = structure.choice_state[structure.transition_choice]
    leaves[owner[structure.successor != owner]] = True
    states = np.flatnonzero(named & leaves).tolist()
    if change.choices is not None:
        states = [state for state in states if state in change.choices]
    result = {}
    for state in states:
        seen = Sojourns.of(pieces, state)
        number = _fitting(seen) if word == "fit" else int(word)
        if len(seen.lasted) and number > 1:
            result[state] = number
    if not result:
        raise InputError(f"`{change.text}`: the log shows no phases in these states")
    return result


def _fitting(seen: Sojourns) -> int:
    """The number of phases with the largest likelihood."""
    if not len(seen.lasted):
        return 1
    logs = np.log(seen.lasted).sum()

    def value(phases: int) -> float:
        own = (phases - 1) * logs - gammaln(phases) * len(seen.lasted)
        return float(seen.log_likelihood(np.array([seen.best(phases)]), phases)[0] + own)

    return max(range(1, MOST_PHASES + 1), key=value)


def with_phases(
    model: ParametricCTMC, pieces: Pieces, change: Amendment, like: Exposure, phases: Mapping[int, int]
) -> PhasedRates:
    """The sojourns of the states in question, and the log without the time in them."""
    refuse_rewards(model, list(phases), change)
    sojourns = {state: Sojourns.of(pieces, state) for state in phases}
    if empty := [state for state, seen in sojourns.items() if not len(seen.lasted)]:
        name = model.structure.state_name(empty[0])
        raise InputError(f"`{change.text}`: the part of the log to learn from never leaves {name}")
    if any((seen.lasted <= 0.0).any() for seen in sojourns.values()):
        raise InputError(f"`{change.text}`: the log has sojourns of length 0, which no phases explain")
    others = np.flatnonzero(~np.isin(pieces.state, list(phases)))
    structure, left = model.structure, take(pieces, others)
    rest = exposure_from(structure, left, like)
    shown = ", ".join(f"{number} in {structure.state_name(state)}" for state, number in phases.items())
    claims = f"sojourns are sums of exponential ones ({shown}), what follows does not depend on how long"
    return PhasedRates(change, model, exposure_from(structure, pieces, like), phases, sojourns, rest, claims)


def refuse_rewards(model: ParametricCTMC, states: Sequence[int], change: Amendment) -> None:
    """Refuse rewards that are, or may be, earned by events whose rates are amended."""
    structure = model.structure
    owner = structure.choice_state[structure.transition_choice]
    number = model.expressions.is_constant[model.expression] & np.isin(owner, states)
    fixed = np.unique(owner[number & (structure.successor != owner)])
    for reward in model.earned.values():
        is_known = reward.expressions.is_constant
        amount = reward.expressions.values_many(np.zeros((1, len(model.parameters))))[0][reward.expression]
        if not is_known.all() or (amount[fixed] != 0.0).any():
            raise InputError(f"`{change.text}`: rewards that depend on rates cannot be revised yet")


def take(pieces: Pieces, rows: OffsetArray) -> Pieces:
    """Some stretches of time; episodes are numbered anew."""
    return Pieces(
        pieces.state[rows],
        pieces.duration[rows],
        pieces.transition[rows],
        np.unique(pieces.episode[rows], return_inverse=True)[1].astype(np.int64),
        pieces.since_entry[rows],
        pieces.since_start[rows],
        pieces.before[rows],
        None if pieces.clock is None else pieces.clock[rows],
        {name: column.select(rows) for name, column in pieces.columns.items()},
    )


def exposure_from(structure: Structure, pieces: Pieces, like: Exposure) -> Exposure:
    """The totals of some stretches of time."""
    ended = pieces.transition[pieces.transition >= 0]
    return replace(
        like,
        jumps=np.bincount(ended, minlength=structure.transitions).astype(np.int64),
        waited=np.bincount(pieces.state, weights=pieces.duration, minlength=structure.states).astype(
            np.float64
        ),
        rows=len(pieces.state),
        episodes=int(pieces.episode.max(initial=-1)) + 1,
        censored=0,
        pieces=lambda: pieces,
    )


def examine_phases(made: PhasedRates, alpha: float) -> Examination:
    """Test the sojourns of the states in question, and all other rates."""
    beside = examine_rates(made.model, made.rest, alpha=alpha)
    weight = -math.log(len(made.phases) + 1)
    findings = [
        Finding(
            "rate",
            "phase",
            f"sojourns in {made.model.structure.state_name(state)} are not sums of {number} exponential ones",
            made.sojourns[state].evidence(number),
            contexts=(state,),
            log_weight=weight,
        )
        for state, number in made.phases.items()
    ]
    findings += [replace(one, log_weight=one.log_weight + weight) for one in beside.findings]
    own = [one.weighed for one in findings[: len(made.phases)]]
    total, stated = (
        float(logsumexp([log_e + weight, *own])) for log_e in (beside.log_e_value, beside.log_e_stated)
    )
    rows = made.exposure.rows
    listed = tuple(sorted(findings, key=lambda one: -one.weighed))
    first = rows if total >= math.log(1.0 / alpha) else None
    return Examination(listed, total, alpha, first, rows, log_e_stated=stated)


def learn_phases(
    question: Problem | None, made: PhasedRates, tested: Examination, delta: float
) -> RateResult | None:
    """Bounds on the value of the chain with phases."""
    if question is None:
        return None
    model, structure = made.model, made.model.structure
    owner = structure.choice_state[structure.transition_choice]
    exits = {s: np.flatnonzero((owner == s) & (structure.successor != s)) for s in made.phases}
    own = sum(1 + (len(one) if len(one) > 1 else 0) for one in exits.values())
    gamma = delta / (own + 1)
    events, region, ledger = estimate(model, made.rest, gamma)
    note = f"{own} statements about phases and what follows them, at {gamma:.3g} each"
    ledger = replace(ledger, delta=delta, notes=(*ledger.notes, note))

    def bound(plain: IntervalCTMC) -> tuple[IntervalCTMC, RateBounds]:
        chain = _expanded(model, plain, made, exits, gamma)
        return chain, bound_over_rates(chain, question.query.on(chain.structure), SolveOptions(1e-6))

    return result_of(question, model, made.exposure, (events, region, ledger), tested, bound)


def _expanded(
    model: ParametricCTMC,
    plain: IntervalCTMC,
    made: PhasedRates,
    exits: Mapping[int, OffsetArray],
    gamma: float,
) -> IntervalCTMC:
    """N states in a row for each with phases, and intervals of all rates."""
    structure = model.structure
    first, copies = [], list[int]()
    for state in range(model.states):
        first.append(len(copies))
        copies += [state] * made.phases.get(state, 1)
    lists: list[list[tuple[int, float, float]]] = [[] for _ in copies]
    starts, to = structure.transition_start.tolist(), structure.successor.tolist()
    for state in range(model.states):
        if state not in made.phases:
            for at in range(starts[state], starts[state + 1]):
                e = int(plain.expression[at])
                lists[first[state]].append((first[to[at]], float(plain.lower[e]), float(plain.upper[e])))
            continue
        seen, number = made.sojourns[state], made.phases[state]
        low, high = seen.interval(number, gamma)
        if not math.isfinite(high):
            raise InputError(f"`{made.amendment.text}`: too little was seen of {structure.state_name(state)}")
        last = first[state] + number - 1
        for at in range(first[state], last):
            lists[at].append((at + 1, low, high))
        ways = exits[state]
        came = np.array([np.count_nonzero(seen.ended == way) for way in ways.tolist()], np.int64)
        least, most = np.ones(1), np.ones(1)
        if len(ways) > 1:
            least, most = beta_binomial(came, np.full(len(ways), len(seen.lasted)), gamma)
        for way, down, up in zip(ways.tolist(), least.tolist(), most.tolist(), strict=True):
            bounds = low * down * (1.0 - 1e-15), high * up * (1.0 + 1e-15)
            lists[last].append((first[to[way]], *bounds))
    behind = np.array(copies)
    flat = [one for each in lists for one in each]
    start = np.r_[0, np.cumsum([len(one) for one in lists])]
    built = Structure(
        choice_start=np.arange(len(copies) + 1),
        transition_start=start,
        successor=np.array([one[0] for one in flat], np.int32),
        initial_states=tuple(first[state] for state in structure.initial_states),
        labels={name: members[behind] for name, members in structure.labels.items() if name != "init"},
        valuations={name: column[behind] for name, column in structure.valuations.items()},
        definitions=structure.definitions,
    )
    earned = fixed_rewards(model, behind)
    lower, upper = (np.array([one[end] for one in flat]) for end in (1, 2))
    return IntervalCTMC(built, np.arange(len(flat), dtype=np.int32), lower, upper, earned)
