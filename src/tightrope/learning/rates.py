"""Bounds on the value of a chain in continuous time, from a log with times, at level 1 − δ.

Exposures and jumps give intervals of rates (`statistics.rates`) and a region (`regions.rate_box`), or the
likelihood of all rates both; these an interval chain, and that bounds on the value (`logic.timed`). A test at
a separate level checks that rates are constant. Episodes are draws of the chain in any case; those cut early
count against both ends. Their number is not fixed, so they have a beta-binomial interval at a tenth of δ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.exposure import Exposure, Pieces, read_exposure
from tightrope.errors import InputError, check_number
from tightrope.io.answers import AnswerDocument, RateAnswer, RateFacts, RateFinding, TimedLogFacts
from tightrope.io.coding import record_of, to_plain
from tightrope.io.results import Interval, WidthFacts, power_text
from tightrope.learning.options import LearnOptions, OutcomesUse, selection_of
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved, meet
from tightrope.learning.pipeline import DeltaSplit, Request
from tightrope.learning.result import CLOSE, NOT_TESTED, rests_on
from tightrope.logic.timed import RateBounds, TimeBound, bound_over_rates, time_bound, value_operator
from tightrope.model.continuous import IntervalCTMC, ParametricCTMC
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.monitoring.episode_scores import PathGraph
from tightrope.monitoring.examination import ALPHA, Examination
from tightrope.monitoring.rate_fit import examine_rates
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import claim_text, interval_text, sure_text, value_text
from tightrope.prism.parse.property_syntax import PathFormula, RewardFormula
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import path_objective
from tightrope.prism.properties.shape import without_negation
from tightrope.problem import Problem
from tightrope.provenance import of_counts
from tightrope.regions.rate_box import RateRegion, box_of, estimate_jointly, region_of_rates
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import own_kinds
from tightrope.solver.solution import SolveOptions
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget, assumed_of
from tightrope.statistics.intervals import complement
from tightrope.statistics.rates import MOST_PARAMETERS, RateClasses, RateEvents, estimate_rates, texts_of
from tightrope.statistics.returns import frequency_interval
from tightrope.verdict import Assessment, Assumed

METHOD = "gamma-Poisson confidence sequence"
JOINT_METHOD = "likelihood region of rates, by a mixture"
EMPTY = (
    "no rates of the domain explain the log at this confidence: the domain is too narrow, or the model is "
    "likely wrong"
)


@dataclass(frozen=True, eq=False, repr=False)
class RateResult(Record):
    """Bounds on the value of a chain whose rates are learned; `value` is None where the region is empty.

    With probability at least 1 − `ledger.delta` the true rates lie in their intervals, and then the chain's
    value lies in `value`, whatever fixed or changing rates within `chain` it has.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(lam=(0.01, 10))
    >>> (lam,) = parameters.symbols()
    >>> model = tr.build_ctmc_from_rows([(0, {1: lam}), (1, {0: 1})], parameters, labels={"on": [1]})
    >>> log = tr.simulate_times(model.instantiate(lam=2), 40, seed=1, time=50)
    >>> result = tr.learn(tr.Problem(model, 'S=? [ "on" ]'), log, delta=0.05)
    >>> [(text, round(low, 1), round(high, 1)) for text, low, high, *_ in result.rates]
    [('lam', 1.8, 2.2)]
    """

    question: str
    model: ParametricCTMC
    data: Exposure
    events: RateEvents
    region: RateRegion
    chain: IntervalCTMC | None
    value: RateBounds | None
    ledger: ConfidenceBudget
    seconds: Mapping[str, float] = field(compare=False)
    fit: Examination | None = field(default=None, repr=False)
    """Whether the log bears out that rates are constant (`tightrope.monitoring.rate_fit`)."""
    outcomes: ObservedOutcomes | Unobserved | None = field(default=None, repr=False)
    """The same probability in the episodes alone (`timed_outcomes`); `value` is within both parts."""
    problem: Problem | None = field(default=None, repr=False)
    """What was asked, of the model itself; None on revised models."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", MappingProxyType(dict(self.seconds)))

    @property
    def verdict(self) -> Assessment:
        """What the result is worth, in one word, with all that it rests on."""
        assumed = rests_on(self.ledger, LearnOptions(), None, self.problem)
        if self.fit is not None and self.fit.findings:
            tested = f"tested: {self.fit_text}"
            assumed = tuple(replace(one, why=one.why.replace(NOT_TESTED, tested)) for one in assumed)
        if self.value is None:
            return Assessment.of(assumed, contradicted=EMPTY)
        seen = self.outcomes
        if isinstance(seen, ObservedOutcomes):
            assumed = (*assumed, seen.assumption)
            if seen.contradiction is not None:
                return Assessment.of(assumed, contradicted=seen.contradiction)
        if (refuted := rates_refuted(self.fit)) is not None:
            return Assessment.of(assumed, contradicted=refuted)
        if self.fit is not None and self.fit.is_doubt:
            columns = self.fit.doubtful_columns
            doubt = Assumed.unverified("model", f"evidence that rates change is growing: {self.fit_text}")
            if columns is not None:
                doubt = Assumed.violated("model", f"{_shown(self.fit)}; {columns}")
            assumed = (*(one for one in assumed if one.name != doubt.name), doubt)
        return Assessment.of(assumed, limit="; ".join(self.value.missed) or None)

    def headline(self) -> str:
        """Return the verdict and the interval in one line."""
        claim = "" if self.value is None else value_text(self.value.lower, self.value.upper)
        return self.verdict.headline(claim_text(self.question, claim), sure_text(self.ledger.delta))

    def _title_(self) -> str:
        if self.value is None:
            return "RateResult: the region is empty"
        return f"RateResult: {interval_text(self.value.lower, self.value.upper, 6)}"

    def _facts_(self) -> Facts:
        return [
            ("asked", self.question),
            ("verdict", self.headline()),
            *([] if self.fit is None else [("constant rates", self.fit_text)]),
            *([] if self.outcomes is None else [("outcomes", self.outcomes.text)]),
            *self._rate_facts,
            *(("ledger", line) for line in self.ledger.lines),
        ]

    @property
    def fit_text(self) -> str:
        """The evidence against constant rates, in a line."""
        fit = self.fit
        if fit is None or not fit.findings:
            return "not tested: the log's rows are not at hand"
        word = "refuted" if fit.alarm else "not refuted"
        sure = f"constant rates reach {1.0 / fit.alpha:,.0f} with probability at most {fit.alpha:g}"
        return f"{word}: e-value {power_text(fit.log_e_value)} ({sure})"

    @property
    def interval(self) -> Interval:
        """The bounds on the value; where the region is empty what episodes show, or all numbers."""
        if self.value is not None:
            return Interval.of(self.value.lower, self.value.upper)
        seen = self.outcomes
        return seen.interval if isinstance(seen, ObservedOutcomes) else Interval(-math.inf, math.inf)

    def document(self, source: str) -> RateAnswer:
        """What is written of it; `source`: where the model came from."""
        value = self.interval if math.isfinite(self.interval.lower) else None
        widths, unknown = None, self.model.expressions.nonconstant
        if self.chain is not None and len(unknown):
            left = (self.chain.upper - self.chain.lower)[unknown]
            box = box_of(self.region, self.model.parameters.names)
            widths = WidthFacts(float(left.mean()), float(left.max()), len(unknown), box)
        data, findings = self.data, () if self.fit is None else self.fit.findings
        waited, jumps = float(data.waited.sum()), int(data.jumps.sum())
        return record_of(
            RateAnswer,
            self,
            model=source,
            empty=self.value is None,
            fallback=False,
            value=value,
            robust_policy=value,
            widths=widths,
            rates=[RateFacts(*rate, rate[3] / rate[4] if rate[4] > 0 else None) for rate in self.rates],
            findings=[
                RateFinding(one.text, one.feature, math.exp(min(one.log_e_value, 700.0))) for one in findings
            ],
            status="empty" if self.value is None else "limit" if self.value.missed else CLOSE,
            notes=[*([] if self.value is None else self.value.notes), f"constant rates {self.fit_text}"],
            data=TimedLogFacts(data.rows, data.episodes, jumps, waited, data.censored, [data.read_as]),
            peak_memory=peak_memory(),
            seconds={name: round(spent, 6) for name, spent in self.seconds.items()},
        )

    def answer(self, record: RateAnswer, about: Mapping[str, object]) -> AnswerDocument:
        """Return the `record` as an answer, of which `report` makes a page; `about` names the data."""
        return record_of(
            AnswerDocument,
            record,
            model_hash=self.model.hash(),
            headline=self.headline(),
            robust_policy=None,
            sets="expression",
            notes=[*(f"rate {name}: {text}" for name, text in self._rate_facts), *record.notes],
            data={**about, **to_plain(record.data)},
        )

    @property
    def _rate_facts(self) -> Facts:
        return [
            (text, f"{interval_text(low, high, 6)} from {k:,} events in {t:.6g}")
            for text, low, high, k, t in self.rates
        ]

    @property
    def rates(self) -> list[tuple[str, float, float, int, float]]:
        """Every unknown rate: its text, its interval, events and exposure."""
        seen, texts = self.events, texts_of(self.events.classes, self.model.parameters.names)
        columns = (
            texts,
            *(column.tolist() for column in (seen.lower, seen.upper, seen.events, seen.exposure)),
        )
        return list(zip(*columns, strict=True))


@dataclass(frozen=True, eq=False)
class RateChain:
    """A chain in continuous time, a log of it, and how it is learned about: δ is split already."""

    problem: Problem
    exposure: Exposure
    split: DeltaSplit
    reach: TimedReach | Unobserved
    kind: RegionKind
    reading: float
    """The seconds that reading the log took."""

    def result(self, options: LearnOptions) -> RateResult:
        """Statistics → region → interval chain → bounds."""
        model, query, begin = self.problem.model, self.problem.query, time.perf_counter()
        assert isinstance(model, ParametricCTMC)
        split = self.split
        events, region, ledger = estimate(model, self.exposure, split.of_probabilities, self.kind)
        ledger = replace(ledger, delta=split.delta, of_outcomes=split.of_outcomes)
        learned = time.perf_counter()
        fit = examine_rates(model, self.exposure, alpha=ALPHA)
        tested = time.perf_counter()

        def bound(chain: IntervalCTMC) -> tuple[IntervalCTMC, RateBounds]:
            return chain, bound_over_rates(chain, query, SolveOptions(options.precision))

        made = result_of(self.problem, model, self.exposure, (events, region, ledger), fit, bound)
        value, seen = made.value, observe_times(self.reach, self.exposure, model.structure, split.of_outcomes)
        if isinstance(seen, ObservedOutcomes) and value is not None:
            seen = replace(seen, total=split.delta)
            known, refuted = Interval.of(value.lower, value.upper), rates_refuted(fit) is not None
            both, seen = meet(known, seen, refuted)
            value = replace(value, lower=both.lower, upper=both.upper)
        seconds = {"read": self.reading, "statistics": learned - begin, "fit": tested - learned}
        seconds["solve"] = time.perf_counter() - tested
        return replace(made, value=value, seconds=seconds, outcomes=seen, problem=self.problem)


def result_of(
    question: Problem,
    model: ParametricCTMC,
    exposure: Exposure,
    estimated: tuple[RateEvents, RateRegion, ConfidenceBudget],
    fit: Examination,
    bound: Callable[[IntervalCTMC], tuple[IntervalCTMC, RateBounds]],
) -> RateResult:
    """The result over the chain of the intervals, or the one that `bound` makes of it."""
    events, region, ledger = estimated
    chain = None if region.is_empty else interval_chain(model, events, region)
    value = None
    if chain is not None:
        chain, value = bound(chain)
    return RateResult(question.text, model, exposure, events, region, chain, value, ledger, {}, fit)


def rates_refuted(fit: Examination | None) -> str | None:
    """Words about a rate that the log shows not to be constant."""
    if fit is None or not fit.alarm or fit.doubtful_columns is not None:
        return None
    return _shown(fit)


def _shown(fit: Examination) -> str:
    """What speaks against the model most."""
    first = fit.findings[0]
    return first.text if first.kind == "copy" else f"a rate is not constant: {first.text}"


class UnknownRates:
    """The reduction of chains in continuous time, with statistics and regions of their own."""

    def apply(self, problem: Problem) -> Problem:
        if not isinstance(problem.model, ParametricCTMC) or not problem.model.parameters.names:
            raise InputError(
                "the model has no parameters: there is nothing to learn about it",
                hint="'tightrope check' computes the values of such a model",
            )
        value_operator(problem.query)
        return problem

    def start(self, problem: Problem, request: Request) -> RateChain:
        data, delta, options = request.data, request.delta, request.options
        check_number("delta", delta, 0, 1)
        given = [*request.part, *(["policy"] if request.policy is not None else []), *options.words]
        for name in given:
            if name not in ("region", "precision", "seconds", "threads", "outcomes"):
                raise InputError(
                    f"`{name}` cannot be used with chains in continuous time", hint=f"leave `{name}` out"
                )
        if options.outcomes is OutcomesUse.ONLY:
            raise InputError(
                "chains in continuous time always use observed returns beside their rates",
                hint="leave `outcomes` out, or say 'none'",
            )
        model, begin = problem.model, time.perf_counter()
        assert isinstance(model, ParametricCTMC)
        kind = region_of_rates_kind(options.region, model)
        exposure = data if isinstance(data, Exposure) else read_exposure(data, model.structure)
        used = options.outcomes is not OutcomesUse.NONE
        reach = timed_reach(problem.query) if used else Unobserved("left out, as was asked")
        shows = isinstance(reach, TimedReach) and exposure.pieces is not None
        split = DeltaSplit(delta, of_outcomes=SHARE * delta if shows else 0.0)
        return RateChain(problem, exposure, split, reach, kind, time.perf_counter() - begin)

    def lift(self, chain: RateChain, options: LearnOptions) -> RateResult:
        return chain.result(options)


def region_of_rates_kind(region: RegionKind | None, model: ParametricCTMC) -> RegionKind:
    """The region that is meant, of the two that there are for rates; the model decides where none is."""
    known = [kind for kind in own_kinds() if kind.serves_rates]
    if region is None:
        affine = sum(base.degree <= 1 for base in RateClasses.of(model).base)
        free = sum(
            low < high for low, high in zip(model.parameters.lower, model.parameters.upper, strict=True)
        )
        return known[0 < free <= MOST_PARAMETERS and free < affine]
    if region in known:
        return region
    raise InputError(
        f"`region` is {region.value!r}, and for rates there are {' and '.join(repr(k.value) for k in known)}"
    )


def estimate(
    model: ParametricCTMC, exposure: Exposure, delta: float, kind: RegionKind | None = None
) -> tuple[RateEvents, RateRegion, ConfidenceBudget]:
    """Intervals and the region of all rates."""
    kind = kind or region_of_rates_kind(None, model)
    anytime = Assumption.ADAPTIVE_ANYTIME
    structure = model.structure
    seen = exposure.provenance or of_counts(structure, exposure.jumps)
    chosen = selection_of(structure, (), lambda: seen)
    design = SamplingDesign(SamplingKind.ADAPTIVE, ends=exposure.ends, chosen=chosen)
    assumed = assumed_of(anytime, design, tied=True)
    if kind.is_of_intervals:
        events = estimate_rates(model, exposure.jumps, exposure.waited, delta)
        ledger = ConfidenceBudget(delta, len(events.classes), events.gamma, METHOD, "tied", anytime, assumed)
        return events, region_of_rates(events, model.parameters), ledger
    events, region = estimate_jointly(model, exposure.jumps, exposure.waited, delta)
    alone = sum(base.degree > 1 for base in events.classes.base)
    joint = delta - alone * events.gamma
    note = f"{joint:.3g} of it for all affine rates together, the rest for {alone} that are not affine"
    notes = (note,) if alone else ()
    return events, region, ConfidenceBudget(delta, 1, delta, JOINT_METHOD, "tied", anytime, assumed, notes)


def interval_chain(model: ParametricCTMC, events: RateEvents, region: RateRegion) -> IntervalCTMC | None:
    """Intervals of all rates, from their classes and the region; None where a rate has none."""
    low, high = region.bounds(model.expressions)
    low = np.maximum(low, 0.0)
    exact = model.expressions.exact_values(tuple(Fraction(0) for _ in model.parameters.names))
    constant = model.expressions.is_constant
    low[constant], high[constant] = exact.to_float_down()[constant], exact.to_float_up()[constant]
    for e, number in enumerate(events.classes.of_expression.tolist()):
        if number >= 0:
            factor = float(events.classes.factor[e])
            low[e] = max(low[e], factor * events.lower[number] * (1 - 1e-15))
            high[e] = min(high[e], factor * events.upper[number] * (1 + 1e-15))
    if (low > high).any():  # both are safe bounds, so no parameters fit
        return None
    earned: dict[str, tuple[FloatArray, FloatArray]] = {}
    for name, reward in model.earned.items():
        least, most = region.bounds(reward.expressions)
        earned[name] = (least[reward.expression], most[reward.expression])
    return IntervalCTMC(model.structure, model.expression, low, high, earned)


def fixed_rewards(
    model: ParametricCTMC, of_transition: OffsetArray | slice = slice(None)
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Rewards without parameters, by transition, rounded outward."""
    nothing, earned = np.zeros((1, len(model.parameters))), {}
    for name, one in model.earned.items():
        reward = one.expressions.values_many(nothing)[0][one.expression][of_transition]
        earned[name] = reward - 1e-15 * np.abs(reward), reward + 1e-15 * np.abs(reward)
    return earned


SHARE = 0.1
"""The part of δ that is for outcomes."""


@dataclass(frozen=True)
class TimedReach:
    """To reach `target` within `end` (None: ever) through `allowed` states; `complement`: not to."""

    target: BoolArray
    allowed: BoolArray
    end: Fraction | None
    complement: bool


def timed_path(query: Query) -> tuple[Objective, TimeBound | None, bool] | None:
    """The path of a plain P, its bound on time, and whether its complement is asked; else None."""
    operator = query.operator
    if (
        query.kind is not QueryKind.PLAIN
        or operator.condition is not None
        or isinstance(operator.path, RewardFormula)
    ):
        return None
    path, negated = without_negation(operator.path)
    if not isinstance(path, PathFormula):
        return None
    with query.source.complaints():
        formulas = query.state_formulas()
        sought = path_objective(replace(path, bound=None), formulas, Direction.MAX, Direction.MAX)
        bound = None if path.bound is None else time_bound(path.bound, formulas)
    return sought, bound, bool(sought.complement) != negated


def timed_reach(query: Query) -> TimedReach | Unobserved:
    """The question, where episodes can answer it."""
    if (known := timed_path(query)) is None:
        return Unobserved("only whether a state is reached, or when, shows in single episodes")
    sought, bound, complement = known
    late = bound is not None and (bound.begin > 0 or bound.after_start)
    if sought.kind is not ObjectiveKind.UNTIL or late:
        return Unobserved("what is asked begins later than the episode")
    assert sought.target is not None
    allowed = np.ones(len(sought.target), np.bool_) if sought.allowed is None else sought.allowed
    return TimedReach(sought.target, allowed, None if bound is None else bound.end, complement)


def observe_times(
    reach: TimedReach | Unobserved, exposure: Exposure, structure: Structure, delta: float
) -> ObservedOutcomes | Unobserved:
    """The probability in the episodes of a log alone, at level 1 − delta."""
    if isinstance(reach, Unobserved) or exposure.pieces is None:
        return reach if isinstance(reach, Unobserved) else Unobserved("the rows of the log are not at hand")
    pieces = exposure.pieces()
    begins = np.flatnonzero(np.diff(pieces.episode, prepend=-1))
    chosen = pieces.state[begins] == structure.initial
    won, lost = _score(reach, pieces, structure, begins)
    number = int(chosen.sum())
    if not number:
        return Unobserved("no episode begins in the initial state")
    successes, failures = int((won & chosen).sum()), int((lost & chosen).sum())
    lower, upper, method = frequency_interval(successes, failures, number, delta, planned=False)
    if reach.complement:
        lower, upper = map(float, complement(lower, upper))
    seen = number, successes + failures, successes, failures
    ends, elsewhere = Interval.of(lower, upper), len(begins) - number
    return ObservedOutcomes(
        ends, delta, *seen, method, "the chain", complement=reach.complement, elsewhere=elsewhere
    )


def _score(
    reach: TimedReach, pieces: Pieces, structure: Structure, begins: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> tuple[BoolArray, BoolArray]:
    """Which episodes reach the target in time, and which do not whatever comes."""
    graph = PathGraph.of(structure, np.ones(structure.choices, np.bool_), np.zeros(structure.choices))
    hopeless = ~graph.may_and_must(reach.target, reach.allowed)[0]
    late = math.inf if reach.end is None else float(reach.end)
    first = []
    for states in (reach.target, hopeless):
        time = np.where(states[pieces.state], pieces.since_start, math.inf)
        first.append(np.minimum.reduceat(time, begins))
    hit, doomed = first
    watched = np.maximum.reduceat(pieces.since_start + pieces.duration, begins)
    won: BoolArray = (hit <= late) & (hit <= doomed) & np.isfinite(hit)
    never: BoolArray = ~won & ((np.isfinite(doomed) & (doomed <= late)) | (watched > late) | np.isfinite(hit))
    return won, never
