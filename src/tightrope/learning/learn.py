"""`learn`: from a parametric model and counts to a robust policy and its certified interval.

Soundness of the chain, also with an empty region: `tightrope.learning.pipeline`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack, cast

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.data.reading import Reading
from tightrope.errors import InputError, ReadingWarning, check_type, choose, describe
from tightrope.learning.options import LearnKwargs, LearnOptions, Progress, spell_out
from tightrope.learning.pipeline import Pipeline, PlainQuestions, Request, Serves, counts_of
from tightrope.learning.result import LearningResult, ResultTable
from tightrope.model.continuous import Continuous
from tightrope.model.free import NUMBERS_UNUSED
from tightrope.model.mdp import MDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import PolicyGiven
from tightrope.model.pomdp import POMDP
from tightrope.monitoring.examination import ALPHA, MOST_READ, asked_reward, cost_finding
from tightrope.prism.properties.capabilities import ModelKind, QueryKind
from tightrope.prism.properties.query import Query
from tightrope.problem import AnyModel, Problem, learnable, problem_of
from tightrope.regions.registry import region_kind
from tightrope.statistics.least_squares import EllipsoidVersion

if TYPE_CHECKING:
    from tightrope.learning.answers import LearnedAnswer
    from tightrope.learning.rates import RateResult

    Learned: TypeAlias = LearningResult | LearnedAnswer | RateResult

ALL_KINDS = (
    SetsKind.UNTIED,
    SetsKind.TIED,
    SetsKind.PARAMETER,
    SetsKind.EXPRESSION,
    SetsKind.RECTANGULAR,
    SetsKind.COUPLED,
)
"""From the widest sets to the tightest."""


@spell_out()
def learn(
    problem: Problem,
    data: object,
    *,
    delta: float = 0.001,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    since: int | None = None,
    window: int | None = None,
    chosen_at: int | None = None,
    **options: Unpack[LearnKwargs],
) -> Learned:
    """Compute the certified interval of the robust policy at level 1 − delta.

    Parameters
    ----------
    problem : Problem
        The model and the question.
    data
        The result of `read_data`, `Counts`, or anything that `read_data` reads.
    delta : float
        The probability that the guarantee may fail.
    policy : Policy, optional
        Bound this policy, too; it may have a memory.
    progress : bool or function
        True reports on stderr.
    since, window : int, optional
        Exclude the events before number `since`, or all but the last `window`, counted from 1.
    chosen_at : int, optional
        The number of events after which `since` or `window` was chosen: that of an alarm, or 0 for a plan.
        Without it the confidence is nominal.
    **options
        Those of `LearnOptions`, such as `region`, `sets`, `seconds`, `cost_range` and `misfit`. If open, they
        follow from the model and the sampling (`LearningResult.decisions`).

    Returns
    -------
    LearningResult, LearnedAnswer or RateResult
        A `RateResult` for a chain in continuous time, a `LearningResult` for one P or R over a simple path or
        a reward, otherwise a `LearnedAnswer`. A temporal formula has `result.controller`, with its memory.

    Raises
    ------
    EmptyRegion
        If the region is empty and `fallback` is False; otherwise tied sets are used.

    Examples
    --------
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).generative(1000, seed=1)
    >>> result = tr.learn(bench.problem, data, delta=0.01, sets="tied")
    >>> result.guarantee <= result.interval.upper
    True
    """
    chosen = LearnOptions.of("learn", options)
    question = problem_of(problem)
    events = {"since": since, "window": window, "chosen_at": chosen_at}
    part = {name: value for name, value in events.items() if value is not None}
    bounds = chosen.cost_range
    if bounds is not None and asked_reward(question) is not None:  # for the test of costs alone
        chosen = replace(chosen, cost_range=None)
    numeric = None
    if isinstance(question.model, ParametricMDP | MDP) and not getattr(question.model, "parameters", ()):
        if chosen.sets is not SetsKind.UNTIED:
            raise InputError(
                "the model has no parameters: there is nothing to learn about it",
                hint='`sets="untied"` takes its probabilities as unknown; `solve` computes its values',
            )
        numeric = question.model
        question = Problem(ParametricMDP.without_numbers(numeric), question.query)
        data = counted_anew(data, numeric, question.model)
    reduction = reduction_of(question)
    reduced = reduction.apply(question)
    chain = reduction.start(reduced, Request(data, delta, chosen, part, policy, progress))
    result = reduction.lift(chain, chosen)
    if isinstance(result, LearningResult):
        result = replace(result, wrong_costs=_wrong_costs(result, bounds))
    if numeric is not None and isinstance(result, LearningResult):
        return replace(result, notes=(NUMBERS_UNUSED, *result.notes))
    return result


def _wrong_costs(result: LearningResult, bounds: tuple[float, float] | None) -> str | None:
    """Words about costs of the log that are not those of the reward that was asked for; else None."""
    counts, about = result.counts, result.problem
    if counts is None or counts.log is None or not 0 < counts.steps <= MOST_READ or not asked_reward(about):
        return None
    log = counts.log()
    finding = None if log.model_hash != about.model.hash() else cost_finding(about, log, ALPHA, bounds)
    return None if finding is None else finding.text


def counted_anew(data: object, numeric: AnyModel, model: AnyModel) -> object:
    """Counts of a model of numbers as those of the model without them, which has the same transitions."""
    if isinstance(data, Reading):
        return replace(data, counts=cast(Counts, counted_anew(data.counts, numeric, model)))
    if not isinstance(data, Counts) or data.model_hash != numeric.hash():
        return data
    log = data.log
    again = None if log is None else lambda: replace(log(), model_hash=model.hash())
    return replace(data, model_hash=model.hash(), log=again, seen=lambda: data.provenance)


@spell_out()
def learn_all(
    problem: Problem,
    data: object,
    *,
    delta: float = 0.001,
    kinds: Sequence[SetsKind | str] | None = None,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnKwargs],
) -> dict[SetsKind, LearningResult]:
    """Learn over several kinds of sets with one region.

    Parameters
    ----------
    problem, data, delta, policy, progress, **options
        As for `learn`.
    kinds : sequence of SetsKind or str
        The kinds of sets; all by default.

    Returns
    -------
    dict of SetsKind to LearningResult
        Results over one region, and over a polytope with the tied ones, hold simultaneously with confidence
        1 − delta. The others hold on their own: choosing among them by the data costs confidence.

    Examples
    --------
    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> data = [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20
    >>> results = tr.learn_all(model.problem('Pmax=? [ F "heads" ]'), data, kinds=["untied", "tied"])
    >>> [kind.value for kind in results]
    ['untied', 'tied']
    >>> print(results)
    2 results for Pmax=? [ F "heads" ]
      sets    verdict  guarantee  interval            width
      untied  proved   ≥ 0.59532  0.59532 to 0.93289  0.338
      tied    proved   ≥ 0.59532  0.59532 to 0.93289  0.338
    """
    chosen = LearnOptions.of("learn_all", options)
    wanted, question = _wanted_kinds(chosen, kinds), problem_of(problem)
    refuse_others(question.query)
    reduced = plain_problem(question)
    chain = Pipeline.start(
        reduced,
        counts_of(data, reduced.base),
        delta,
        options=chosen,
        policy=policy,
        progress=progress,
        serves=Serves.SEVERAL,
    )
    results = chain.results([chosen.with_sets(kind) for kind in wanted])
    return ResultTable(zip(wanted, results, strict=True))


def _wanted_kinds(options: LearnOptions, kinds: Sequence[SetsKind | str] | None) -> Sequence[SetsKind]:
    if options.sets is not None:
        raise InputError("`sets` is the kind of one result; `learn_all` takes several `kinds`")
    if kinds is None:
        return comparable_kinds(options)
    check_type("kinds", kinds, Iterable, "a list of kinds of sets")
    wanted = [choose("kinds", SetsKind, kind) for kind in kinds]
    if not wanted:
        raise InputError("`kinds` is empty", hint="leave it out for all kinds of sets")
    return wanted


class Reduction(Protocol):
    """A kind of question that is learned about: a file with such an object, a line in `REDUCTIONS`."""

    def apply(self, problem: Problem) -> Problem: ...

    def start(self, problem: Problem, request: Request) -> Any: ...

    def lift(self, chain: Any, options: LearnOptions, /) -> Learned: ...


class TemporalFormulas(PlainQuestions):
    """LTL: reaching what satisfies a formula in the product with a deterministic automaton."""

    def apply(self, problem: Problem) -> Problem:
        """The product; a `ReadingWarning` says how the path is read."""
        from tightrope.logic.product_problem import product_problem

        model = problem.model
        if not isinstance(model, ParametricMDP):
            raise InputError(
                f"learning requires parameters, and {describe(model)} has none",
                hint="`solve` computes the values of such a model",
            )
        product, reading = product_problem(model, problem.query)
        warnings.warn(reading, ReadingWarning, stacklevel=3)
        return product


REDUCTIONS: dict[QueryKind | ModelKind, str] = {
    QueryKind.PLAIN: "pipeline.PlainQuestions",
    QueryKind.LTL: "learn.TemporalFormulas",
    QueryKind.LONG_RUN: "answers.LongRunAverages",
    ModelKind.CONTINUOUS: "rates.UnknownRates",
    ModelKind.OBSERVED: "observed.ObservedControllers",
}
"""By what is asked, or by the model: what is learned about it, a module of this package and its object."""


OTHERS = "answers.OtherQuestions"
"""What takes every other kind."""


def reduction_of(problem: Problem) -> Reduction:
    """The reduction that takes a question."""
    kind: QueryKind | ModelKind = problem.query.kind
    if isinstance(problem.model, Continuous | POMDP):
        kind = ModelKind.CONTINUOUS if isinstance(problem.model, Continuous) else ModelKind.OBSERVED
    module, _, name = REDUCTIONS.get(kind, OTHERS).partition(".")
    reduction: Reduction = getattr(import_module(f"tightrope.learning.{module}"), name)()
    return reduction


def refuse_others(query: Query) -> None:
    """Refuse what is no single objective."""
    if query.kind not in (QueryKind.PLAIN, QueryKind.LTL):
        raise query.refusal()


def plain_problem(problem: Problem) -> Problem:
    """The problem as one objective about a model: itself, or that of a product."""
    return reduction_of(problem).apply(problem) if problem.query.kind is QueryKind.LTL else learnable(problem)


def comparable_kinds(options: LearnOptions) -> tuple[SetsKind, ...]:
    """The kinds of sets that can be compared: those that have use for the region, or need none."""
    region = region_kind("ellipsoid") if options.ellipsoid is EllipsoidVersion.PAPER else options.region

    def is_possible(kind: SetsKind) -> bool:
        if options.misfit and kind in (SetsKind.RECTANGULAR, SetsKind.COUPLED):
            return False
        if not kind.has_region:
            return options.cost_model is None
        return region is None or kind.refusal(region) is None

    return tuple(kind for kind in ALL_KINDS if is_possible(kind))
