"""`learn`: from a parametric model and counts to a robust policy and its certified interval.

    counts ──statistics──▶ event intervals, region ──▶ sets ──solve──▶ policies and values

With probability at least 1 − δ the true parameters lie in the region, hence the true model in the
sets, hence for every policy its true value between the certified ends (paper, Theorem 1). Why falling
back to tied sets where the region is empty keeps the confidence: `tightrope.learning.stages`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from types import MappingProxyType
from typing import Any, Unpack, cast

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.data.reading import Reading, ReadWords, read_data
from tightrope.errors import InputError, check_type, choose, describe
from tightrope.learning.bet_policy import BetPolicy, why_no_bets
from tightrope.learning.binding import Binding, binding_events
from tightrope.learning.costs import learn_costs, unused_costs
from tightrope.learning.coupled import Coupler
from tightrope.learning.options import WITHOUT_REGION, Decisions, LearnOptions, LearnWords, decide
from tightrope.learning.policies import PolicySolver, are_solved_together
from tightrope.learning.products import (
    Evaluation,
    base_of,
    product_notes,
    refuse_for_product,
    require_support,
)
from tightrope.learning.result import LearningResult, PolicyValue, Widths, widths_of
from tightrope.learning.stages import Prepared, Progress, Stages
from tightrope.learning.value_directions import cut_along_values
from tightrope.logic.product_problem import ProductProblem
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import PolicyGiven, as_policy
from tightrope.monitoring.model_fit import ModelFit
from tightrope.numerics.team import Aside, Team, count_threads
from tightrope.problem import Model, Problem, learnable
from tightrope.regions.region import RegionKind
from tightrope.solver.iteration.host import LEAST_TRANSITIONS
from tightrope.solver.solution import Solution
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.prequential import Predictions

ALL_KINDS = (
    SetsKind.UNTIED,
    SetsKind.TIED,
    SetsKind.PARAMETER,
    SetsKind.EXPRESSION,
    SetsKind.RECTANGULAR,
    SetsKind.COUPLED,
)
"""From the widest sets to the tightest."""


def learn(
    problem: Problem,
    data: Any,
    *,
    delta: float = 0.001,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    since: int | None = None,
    window: int | None = None,
    chosen_at: int | None = None,
    **options: Unpack[LearnWords],
) -> LearningResult:
    """The certified interval of the robust policy, and of a given `policy`, at level 1 − delta.

    * `data`: what `read_data` returns, `Counts`, or anything that `read_data` reads: files, tables, episodes.
    * `region`, `sets`, `interval`: names or members of `RegionKind`, `SetsKind`, `IntervalMethod`. What is
      left open is decided from the model and the way the data were sampled, with its reason in
      `LearningResult.decisions`.
    * `policy`: a policy, also one with a memory, to bound beside the robust one.
    * `seconds` limits the refinement of all values together, `iterations` that of each; `precision` is how
      closely they are computed, `device` and `threads` where. `progress=True` says on stderr what is done.
    * `cost_range=(low, high)` or `cost_sd=s` states what is known of observed costs (a column `cost` of the
      log): parameters in rewards are then learned from them, with a part of delta of their own.
    * `fallback=False` raises `EmptyRegion` where the region is empty, instead of using tied sets.
    * `since=n` leaves out the events before number n, `window=n` all but the last n: after a change, counted
      from 1 as `watch` prints them. The confidence is nominal unless `chosen_at` says that this was decided
      when only events before had been seen: their number, e.g. that of an alarm, or 0 for a plan.

    The other options are those of `LearnOptions`.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).generative(1000, seed=1)
    >>> result = tr.learn(bench.problem, data, delta=0.01, sets="tied")
    >>> result.guarantee <= result.interval.upper
    True
    """
    asked = LearnOptions.of("learn", options)
    found = learnable(problem)
    given = {"since": since, "window": window, "chosen_at": chosen_at}
    kept = {name: value for name, value in given.items() if value is not None}
    counts = counts_of(data, base_of(found), kept)
    return Learner(found, counts, delta, options=asked, policy=policy, progress=progress).result(asked)


def learn_all(
    problem: Problem,
    data: Any,
    *,
    delta: float = 0.001,
    kinds: Sequence[SetsKind | str] | None = None,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnWords],
) -> dict[SetsKind, LearningResult]:
    """The same for several `kinds` of sets (all) over one region; statistics and region are computed once.
    With several threads large models are solved over several kinds at a time.

    Results over one region hold together with confidence 1 − delta, and so do those over a polytope with the
    tied ones, which are made of the same intervals. Untied ones, and tied ones beside another region, hold on
    their own: picking among such statements after looking costs confidence.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> data = [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20
    >>> found = tr.learn_all(model.problem('Pmax=? [ F "heads" ]'), data, kinds=["untied", "tied"])
    >>> [kind.value for kind in found]
    ['untied', 'tied']
    """
    asked = LearnOptions.of("learn_all", options)
    if asked.sets is not None:
        raise InputError("`sets` is the kind of one result; `learn_all` takes several `kinds`")
    if kinds is not None:
        check_type("kinds", kinds, Iterable, "a list of kinds of sets")
    wanted = comparable_kinds(asked) if kinds is None else [choose("kinds", SetsKind, kind) for kind in kinds]
    found = learnable(problem)
    counts = counts_of(data, base_of(found))
    learner = Learner(found, counts, delta, options=asked, policy=policy, progress=progress, together=True)
    return dict(zip(wanted, learner.results([asked.with_sets(kind) for kind in wanted]), strict=True))


def counts_of(data: Any, model: Model, kept: Mapping[str, int] = MappingProxyType({})) -> Counts:
    """The counts that data hold, in whatever form they are given; `kept` says which events are."""
    if isinstance(data, Counts | Reading):
        if kept:
            raise InputError(
                f"`{next(iter(kept))}` leaves out events, and counts do not know their order any more",
                hint="give the log itself, or read it so: tr.read_data(log, model, since=…)",
            )
        return data if isinstance(data, Counts) else data.counts
    if data is None or isinstance(data, bool | int | float):
        raise InputError(
            f"`data` is {describe(data)}, not data", hint="tr.read_data reads files, tables and episodes"
        )
    return read_data(data, model, **cast(ReadWords, dict(kept))).counts


def comparable_kinds(options: LearnOptions) -> tuple[SetsKind, ...]:
    """The kinds of sets that can be compared: an ellipsoid has no coupled ones, a slab none of parameters."""
    round_one = options.region is RegionKind.ELLIPSOID or options.ellipsoid is EllipsoidVersion.PAPER
    without = {SetsKind.COUPLED} if round_one else set[SetsKind]()
    if options.cost_model is not None:
        without.update(WITHOUT_REGION)
    if options.region is RegionKind.SLAB:
        without.add(SetsKind.PARAMETER)
    return tuple(kind for kind in ALL_KINDS if kind not in without)


Fit = Aside[tuple[ModelFit, float]]
"""The test of the model and its seconds, on the way or done."""


class Learner:
    """One model, one data set, one property: results for any kind of sets, sharing what they can."""

    def __init__(
        self,
        problem: Problem,
        counts: Counts,
        delta: float,
        *,
        options: LearnOptions,
        policy: PolicyGiven | None = None,
        progress: Progress | bool | None = None,
        predictions: Predictions | None = None,
        together: bool = False,
    ):
        """`together`: results over several kinds of sets are wanted, and share a region."""
        model = parametric(problem)
        self.problem, self.objective = problem, problem.objective
        told = progress_of(progress)
        self.evaluation: Evaluation | None = None
        is_product = isinstance(problem, ProductProblem)
        given = as_policy(problem.base if isinstance(problem, ProductProblem) else model, policy)
        if given is not None and (is_product or given.has_memory):
            self.evaluation = Evaluation(problem, given, counts, delta, options, told)
            given = None
        if isinstance(problem, ProductProblem):
            counts = problem.lift(counts)
        self.policy = given
        self.stages = Stages(model, counts, delta, options, told, predictions)
        self.stages.costs = learn_costs(model, self.objective, counts, delta, options)
        self.betted: BetPolicy | None = None
        self._together = together
        self._preparing, self._weighing = Lock(), Lock()

    def bet_on(self, policy: BetPolicy | None) -> None:
        """What a slab bets on, where that is known from an earlier look at the same data."""
        self.betted = self.stages.gradient = policy

    def results(self, asked: Sequence[LearnOptions]) -> list[LearningResult]:
        """One result for each of these options. Large models are solved over several kinds of sets at a time.
        How the threads are shared out depends on their number alone, and so do the bits of the results.
        """
        threads = count_threads(self.stages.options.threads)
        workers = min(threads, len(asked))
        is_small = self.stages.model.structure.transitions < LEAST_TRANSITIONS
        if workers < 2 or is_small or self.stages.options.device != "cpu":
            return [self.result(options) for options in asked]
        with Team(workers) as team:
            return team.run([partial(self._result_of, each, threads // workers) for each in asked])

    def _result_of(self, options: LearnOptions, threads: int, worker: int) -> LearningResult:
        return self.result(options, threads)

    def result(self, options: LearnOptions, threads: int | None = None) -> LearningResult:
        """The result for these options, which may differ from the learner's in the kind of sets; `threads`
        are for its solves, if not those of the learner. Several threads may ask at a time.
        """
        how = options if threads is None else replace(options, threads=threads)
        structure = self.stages.model.structure
        together = are_solved_together(structure, how.device, count_threads(how.threads))
        with Aside(self._weigh_fit, together) as fit:
            return self._result(options, how, fit)

    def _weigh_fit(self) -> tuple[ModelFit, float]:
        """The test of the model and its seconds; it needs nothing but model and data."""
        with self._weighing:
            return self.stages.weigh_fit()

    def _result(self, options: LearnOptions, how: LearnOptions, fit: Fit) -> LearningResult:
        """The result, solved as `how` says; the test of the model is begun on the way."""
        with self._preparing:
            decisions, prepared, deadline = self._prepare(options, fit)
        stages = self.stages
        begin = time.perf_counter()
        coupled = decisions.sets is SetsKind.COUPLED and prepared.contradiction is None
        shape = _Shape(stages, prepared)
        solver, robust, optimistic, value = self._solved(prepared, how, deadline, shape, fit)
        if coupled:
            policies = [robust.policy, optimistic.policy, *([] if self.policy is None else [self.policy])]
            along = cut_along_values(prepared, self.objective, policies)
            if along is not None:
                prepared, shape = along, _Shape(stages, along)
                solver, robust, optimistic, value = self._solved(prepared, how, deadline, shape, fit)
        synthesis = None
        if coupled:
            coupler = Coupler(solver, options.coupled_gap)
            robust, synthesis = coupler.robust(robust, None if self.betted is None else self.betted.policy)
            value = None if value is None else coupler.evaluated(value)
        if self.evaluation is not None:
            with self._preparing:
                value = self.evaluation.value(how)
        solved = time.perf_counter() - begin
        found, spent = fit.get()
        seconds = {**prepared.seconds, "fit": spent, "solve": solved}
        region_notes = prepared.region.notes if prepared.region is not None else ()
        told = (*product_notes(self.problem), *unused_costs(self.objective, stages.counts, options))
        notes = tuple(dict.fromkeys((*prepared.sets.notes, *region_notes, *solver.notes, *told)))
        return LearningResult(
            problem=self.problem,
            counts=stages.counts,
            options=options,
            decisions=decisions,
            sets=prepared.sets,
            region=prepared.region,
            intervals=prepared.intervals,
            value=value,
            robust=robust,
            optimistic=optimistic,
            widths=shape.widths,
            binding=shape.binding,
            contradiction=prepared.contradiction,
            fit=found,
            seconds=seconds,
            notes=notes,
            synthesis=synthesis,
            refuted_costs=None if stages.costs is None else stages.costs.contradiction,
        )

    def _prepare(self, options: LearnOptions, fit: Fit) -> tuple[Decisions, Prepared, float]:
        """What is decided, the sets, and the time at which solving has to end."""
        stages = self.stages
        decisions = decide(stages.model, stages.counts, options, self._no_bets(options))
        deadline = time.perf_counter() + options.seconds
        if decisions.region is RegionKind.SLAB and self.betted is None:
            self.bet_on(BetPolicy(stages.model, self.objective, self.policy, stages.counts.design))
        refuse_for_product(self.problem, decisions.sets)
        prepared = stages.prepare(decisions, before_sets=fit.begin)
        require_support(self.problem, prepared, options)
        return decisions, prepared, deadline

    def _no_bets(self, options: LearnOptions) -> str | None:
        """Why a slab may not be chosen; None where it may."""
        if options.sets is not SetsKind.COUPLED or self._together:
            return "several kinds of sets share a region"
        if self.evaluation is not None:
            return "a given finite-memory policy and the robust one share a region"
        return why_no_bets(self.stages.model, self.objective, self.policy, self.stages.counts.design)

    def _solved(
        self, prepared: Prepared, options: LearnOptions, deadline: float, shape: _Shape, fit: Fit
    ) -> tuple[PolicySolver, PolicyValue, Solution, PolicyValue | None]:
        """A solver over the sets, the robust and the optimistic policy, and the given one's value."""
        solves = 3 if self.policy is None else 5
        solver = PolicySolver(prepared.sets, self.objective, options, deadline, self.stages.progress, solves)
        robust, optimistic = solver.solve_both(fit.wait, shape.measure)
        value = None if self.policy is None else solver.evaluate(self.policy)
        return solver, robust, optimistic, value


class _Shape:
    """How wide the sets are, and which events hold their region in place."""

    def __init__(self, stages: Stages, prepared: Prepared) -> None:
        self._stages, self._prepared = stages, prepared

    def measure(self) -> None:
        """Both, where a thread has time."""
        _ = self.widths, self.binding

    @cached_property
    def widths(self) -> Widths:
        return widths_of(self._stages.model, self._prepared.sets, self._prepared.box)

    @cached_property
    def binding(self) -> Binding:
        region = self._prepared.region if self._prepared.contradiction is None else None
        return binding_events(region, self._prepared.intervals, self._stages.outcomes)


def parametric(problem: Problem) -> ParametricMDP:
    """The model of a problem that can be learned about."""
    model = learnable(problem).model
    assert isinstance(model, ParametricMDP)
    return model


def progress_of(progress: Progress | bool | None) -> Progress | None:
    """What to call with what begins: True writes it to stderr, a line each."""
    if progress is None or isinstance(progress, bool):
        return _say if progress else None
    if not callable(progress):
        raise InputError(f"`progress` is {describe(progress)}, neither True nor a function of a text")
    return progress


def _say(what: str) -> None:
    sys.stderr.write(f"tightrope: {what}\n")
    sys.stderr.flush()
