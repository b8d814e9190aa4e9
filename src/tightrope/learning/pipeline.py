"""The chain of learning: a question about a model and data becomes policies with certified intervals.

    question ──decide──▶ which region, which sets        (from model and design, never from outcomes)
    counts ──statistics──▶ event intervals ──▶ region ──▶ sets
    sets ──solve──▶ robust, optimistic and given policy ──couple──▶ the same over one parameter vector

With probability at least 1 − δ the true parameters lie in the region, so the true value of every policy lies
in its interval (paper, Theorem 1). An empty region has probability at most δ under the model, so falling back
to tied sets costs nothing. All data are tested at a separate level (`monitoring.examination`). Observed costs
get half of δ, or all of it if no probability is unknown, if a range or a deviation is stated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from tightrope.ambiguity import sets as uncertainty
from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.data.counts import Counts, expected_counts
from tightrope.data.reading import Reading, read_data
from tightrope.errors import CannotCertify, InputError, describe
from tightrope.io.results import Binding, ModelFit
from tightrope.learning import options as choosing
from tightrope.learning import outcomes as returns
from tightrope.learning import products
from tightrope.learning import result as answering
from tightrope.learning.bet_policy import PolicyBets, bets_of, why_no_bets
from tightrope.learning.options import Decisions, LearnOptions, OutcomesUse, Progress, decide
from tightrope.learning.policy_solver import OPTIMISTIC, PolicySolver, PolicyValue, are_solved_together
from tightrope.learning.result import LearningResult
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.monitoring.examination import weigh_fit
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.team import Aside, Team, count_threads
from tightrope.problem import AnyModel, Problem, learnable, require_discrete
from tightrope.provenance import union
from tightrope.regions.bounds import parameter_box
from tightrope.regions.costs import with_costs
from tightrope.regions.event_polytope import Nearby, domain_region, polytope_region
from tightrope.regions.joint import split
from tightrope.regions.region import Conflict, Region
from tightrope.regions.registry import build_region
from tightrope.solver.iteration.host import LEAST_TRANSITIONS
from tightrope.solver.solution import Solution
from tightrope.statistics.bets import Predictions
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.costs import CostIntervals
from tightrope.statistics.estimates import EventIntervals, check_delta, event_intervals
from tightrope.statistics.outcomes import Outcomes
from tightrope.verdict import Assessment, AssumptionStatus

if TYPE_CHECKING:  # loaded where they apply
    from tightrope.coupled.synthesis import CoupledSynthesis

T = TypeVar("T")


class EmptyRegion(CannotCertify):
    """The data contradict the model, and no fallback was wanted.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "a", {0: p, 1: 1 - p}), (0, "b", {0: p / 2, 1: 1 - p / 2}), (1, "", {1: 1})]
    >>> problem = tr.build_from_rows(rows, parameters, labels={"end": [1]}).problem('Pmin=? [ F "end" ]')
    >>> always = [[(0, "a", 0)] * 300 + [(0, "b", 0)] * 300]
    >>> try:
    ...     tr.learn(problem, always, delta=0.01, region="polytope", fallback=False)
    ... except tr.EmptyRegion as error:
    ...     print(error.conflict is not None)
    True
    """

    def __init__(self, contradiction: str, conflict: Conflict | None, ledger: ConfidenceBudget):
        super().__init__(f"{contradiction}\nhint: leave `fallback=False` out to use tied sets instead")
        self.contradiction = contradiction
        self.conflict = conflict
        self.ledger = ledger

    @property
    def verdict(self) -> Assessment:
        """The data refute the model."""
        return Assessment.of(self.ledger.assumptions, contradicted=self.contradiction)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Sets, and what they were made of; `contradiction` are words about an empty region, else None."""

    sets: Sets
    region: Region | None
    intervals: EventIntervals | None
    box: tuple[FloatArray, FloatArray] | None
    contradiction: str | None
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class Settled:
    """What earlier looks at growing data have settled, or a test that was made before."""

    predictions: Predictions | None = None
    intervals: EventIntervals | None = None
    near: Nearby | None = None
    bets: PolicyBets | None = None
    fit: ModelFit | None = None
    given: EventIntervals | None = None
    """Intervals that were made elsewhere, at all of δ."""


@dataclass(frozen=True, eq=False)
class SolvedPolicies:
    """Policies over prepared sets; only `value` where a given policy was evaluated alone."""

    prepared: Prepared
    solver: PolicySolver
    robust: PolicyValue | None
    optimistic: Solution | None
    value: PolicyValue | None
    shape: Shape
    synthesis: CoupledSynthesis | None = None
    tried: tuple[answering.TriedSets, ...] = ()


Fit = Aside[tuple[ModelFit, float]]
"""The test of the model and its seconds, on the way or done."""


@dataclass(frozen=True, eq=False)
class DeltaSplit:
    """δ, split once before outcomes are looked at: observed costs, returns of episodes, probabilities."""

    delta: float
    costs: CostIntervals | None = None
    observation: returns.Observation | returns.Unobserved | None = None
    """How outcomes will be looked at, or why they will not; None where nobody asked."""
    of_outcomes: float = 0.0

    @property
    def of_probabilities(self) -> float:
        """The part that is left for probabilities."""
        return self.delta - self.of_outcomes - (0.0 if self.costs is None else self.costs.delta)

    def of_events(self, bets: bool) -> tuple[float, float]:
        """That part again: for intervals of events, and for a likelihood and bets beside them."""
        return split(self.of_probabilities, bets)


class Serves(Enum):
    """What a chain is for: one kind of sets, several that share a region, or sets that were left open."""

    ONE = "one kind of sets"
    SEVERAL = "several kinds of sets"
    REFINED = "sets that are left open"


class Pipeline:
    """One plain question about one model, one data set and one δ: results for any kind of sets, sharing what
    they can. Without counts the region is the domain.

    `evaluation` is the chain of a given policy that has a memory. `start` makes one of any question.
    """

    def __init__(
        self,
        problem: Problem,
        counts: Counts | None,
        split: DeltaSplit,
        *,
        options: LearnOptions,
        policy: Policy | None = None,
        progress: Progress | bool | None = None,
        settled: Settled | None = None,
        serves: Serves = Serves.ONE,
    ):
        assert isinstance(problem.model, ParametricMDP)
        self.problem, self.model = problem, problem.model
        counts = None if counts is None else choosing.with_selection(counts, problem.base, options.prior)
        self.counts, self.policy, self.split, self.options = counts, policy, split, options
        self.progress: Progress = choosing.progress_of(progress) or choosing.silent
        self.settled = settled or Settled()
        self.bets = self.settled.bets
        self.evaluation: Pipeline | None = None
        self.steering: Policy | None = None
        self.tested = None if counts is None else (problem.model, counts)
        self._together, self._refines = serves is Serves.SEVERAL, serves is Serves.REFINED
        self._made: dict[tuple[str, object], tuple[object, float]] = {}
        self._preparing, self._weighing = Lock(), Lock()
        if counts is None:
            return
        check_delta(split.delta)
        if counts.model_hash != self.model.hash():
            raise InputError(
                "the counts belong to another model (their model hash differs)",
                hint="count transitions of this model: same file, constants and domain",
            )

    @staticmethod
    def start(
        problem: Problem,
        counts: Counts | None,
        delta: float,
        *,
        options: LearnOptions,
        policy: PolicyGiven | None = None,
        progress: Progress | bool | None = None,
        settled: Settled | None = None,
        serves: Serves = Serves.ONE,
    ) -> Pipeline:
        """The chain of a problem whose data speak of its base; a policy with a memory gets its own chain."""
        if problem.query.is_plain:
            problem = learnable(problem)
        steered = None
        if policy is not None and counts is not None:
            steered = products.steered_question(problem, policy, counts)
        own = None if steered is not None else as_policy(problem.model, policy)
        given = None if counts is None else as_policy(problem.base, policy)
        lifted = None if counts is None else problem.to_product(counts)
        make = partial(
            Pipeline,
            problem,
            lifted,
            options=options,
            policy=own,
            progress=progress,
            settled=settled,
            serves=serves,
        )
        chain = make(split := DeltaSplit(delta))
        if lifted is not None:
            costs = choosing.learn_costs(chain.model, problem.query.plain_objective, lifted, delta, options)
            chain = make(split := DeltaSplit(delta, costs))
        begin = time.perf_counter()
        if counts is not None and options.outcomes is not OutcomesUse.NONE:
            about = (problem, own) if steered is None else steered[:2]
            split = with_outcomes(chain, plan_outcomes(*about, counts, options, given))
            chain = make(split)
        chain._made["outcomes", "plan"] = split.observation, time.perf_counter() - begin
        if counts is not None and problem.lift is not None and isinstance(problem.base, ParametricMDP):
            chain.tested = problem.base, counts
        if steered is not None:
            product, own, counted = steered
            part, chain.steering = DeltaSplit(split.of_probabilities or delta), given
            chain.evaluation = Pipeline(
                product, counted, part, options=options, policy=own, progress=chain.progress
            )
        return chain

    @property
    def delta(self) -> float:
        """That of everything together."""
        return self.split.delta

    @property
    def objective(self) -> Objective:
        """The objective on the states of the model."""
        return self.problem.objective

    def has_seen(self, policy: Policy | None) -> bool:
        """Whether a policy was made from the data: then no statement may single it out."""
        return policy is not None and returns.chosen_before(policy, self.data).kept is AssumptionStatus.NO

    def made(self, policy: Policy) -> Policy:
        """A policy that was found with these data, which says so."""
        counts, known = self.counts, [prior.made_from for prior in self.options.prior]
        known.append(self.problem.base.structure.made_from)
        return policy if counts is None else policy.made(lambda: union([counts.provenance, *known]))

    def forecast(self, expected: FloatArray, episodes: int) -> float:
        """The width if so many episodes take each transition as often as `expected` of one."""
        made = expected_counts(self.data, expected, episodes)
        policy = self.policy or Policy.uniform(self.model)
        options = replace(self.options.without_outcomes, precision=1e-3)
        alone = Pipeline(self.problem, made, DeltaSplit(self.delta), options=options, policy=policy)
        return alone.evaluate(options).interval.width

    def _look(self, seconds: dict[str, float]) -> returns.ObservedOutcomes | returns.Unobserved | None:
        """What episodes returned; read once."""
        plan = self.split.observation
        if not isinstance(plan, returns.Observation):
            return plan
        seconds["outcomes"] = self._made["outcomes", "plan"][1]
        with self._weighing:
            return self._time("outcomes", "outcomes", lambda: plan.look(self.split.of_outcomes), seconds)

    @cached_property
    def outcomes(self) -> Outcomes:
        outcomes = Outcomes.of(self.model)
        outcomes.check(self.data)
        return outcomes

    @property
    def data(self) -> Counts:
        assert self.counts is not None
        return self.counts

    # --- the whole chain -------------------------------------------------------------------

    def results(self, several: Sequence[LearnOptions]) -> list[LearningResult]:
        """One result per options; threads are shared out by their number alone, and so are the bits."""
        threads = count_threads(self.options.threads)
        workers = min(threads, len(several))
        is_small = self.model.structure.transitions < LEAST_TRANSITIONS
        if workers < 2 or is_small or self.options.device != "cpu":
            return [self.result(options) for options in several]
        with Team(workers) as team:
            share = threads // workers

            def task(options: LearnOptions) -> Callable[[int], LearningResult]:
                return lambda worker: self.result(options, share)

            return team.run([task(options) for options in several])

    def result(self, options: LearnOptions, threads: int | None = None) -> LearningResult:
        """The result for options that may differ in the kind of sets; several threads may ask."""
        if options.outcomes is OutcomesUse.ONLY and self.counts is not None:
            return self._outcomes_only(options)
        how = options if threads is None else replace(options, threads=threads)
        together = are_solved_together(self.model.structure, how.device, count_threads(how.threads))
        with Aside(self.weigh_fit, together and self.counts is not None) as fit:
            with self._preparing:
                decisions = self.decide(options)
                deadline = time.perf_counter() + options.seconds
                prepared = self.prepare(decisions, before_sets=fit.begin)
            begin = time.perf_counter()
            solved = self.solve(prepared, how, deadline, fit=fit)
            if decisions.refines:
                spent = sum(prepared.seconds.values()) + time.perf_counter() - begin
                from tightrope.learning.coupling import refine

                decisions, solved = refine(self, solved, decisions, spent, fit)
            else:
                solved = self.couple(solved, decisions, fit)
            if self.evaluation is not None:
                with self._preparing:
                    solved = replace(solved, value=self.evaluation.evaluate(how))
            return self.lift(options, decisions, solved, time.perf_counter() - begin, fit)

    def _outcomes_only(self, options: LearnOptions) -> LearningResult:
        """What episodes returned with all of δ; the model says what is possible, over its whole domain."""
        seconds: dict[str, float] = {}
        seen = self._look(seconds)
        if not isinstance(seen, returns.ObservedOutcomes) or self.evaluation is not None:
            why = "the policy would need a memory" if isinstance(seen, returns.ObservedOutcomes) else seen
            raise InputError(f"there are no outcomes to learn from alone: {getattr(why, 'text', why)}")
        kind = options.sets if options.sets in choosing.OVER_THE_DOMAIN else SetsKind.EXPRESSION
        over = replace(options.without_outcomes, sets=kind, outcomes=OutcomesUse.AUTO)
        result = Pipeline(self.problem, None, DeltaSplit(0.0), options=over, policy=self.policy).result(over)
        need, assumed = seen.sampling(self.data.design)
        sets = replace(result.sets, ledger=replace(result.sets.ledger, assumption=need, assumptions=assumed))
        tested, about = self.weigh_fit()[0], result.value or result.robust
        seen = replace(seen, total=self.delta, model=about.interval)
        about = replace(about, interval=seen.interval)
        return replace(
            result,
            sets=sets,
            counts=self.counts,
            options=options,
            robust=about,
            value=None if self.policy is None else about,
            outcomes=seen,
            fit=tested if seen.is_refuted_by(tested) else None,
            seconds={**result.seconds, **seconds},
        )

    def evaluate(self, options: LearnOptions) -> PolicyValue:
        """The certified interval of the given policy alone, over one kind of sets."""
        decisions = self.decide(options)
        deadline = time.perf_counter() + options.seconds
        prepared = self.prepare(decisions, sets_only=True)
        value = self.couple(self.solve(prepared, options, deadline, alone=True), decisions).value
        assert value is not None
        return value

    def lift(
        self, options: LearnOptions, decisions: Decisions, solved: SolvedPolicies, seconds: float, fit: Fit
    ) -> LearningResult:
        """All that was found out, as the record that is returned and written."""
        prepared, counts = solved.prepared, self.counts
        spent, tested = {**prepared.seconds}, None
        if counts is not None:
            tested, spent["fit"] = fit.get()
        region_notes = prepared.region.notes if prepared.region is not None else ()
        unused = () if counts is None else choosing.unused_costs(self.objective, counts, options)
        of_product = () if self.problem.lift is None else products.notes(self.problem)
        notes = (*prepared.sets.notes, *region_notes, *solved.solver.notes, *of_product, *unused)
        if counts is not None and self.has_seen(self.steering or self.policy):
            notes += (returns.SEEN_POLICY,)
        robust = solved.robust or solved.value
        assert robust is not None and solved.optimistic is not None
        if solved.robust is not None:
            robust = replace(robust, policy=self.made(robust.policy))
        vars(solved.optimistic)["policy"] = self.made(solved.optimistic.policy)
        value, seen = solved.value, self._look(spent)
        dependence = None if tested is None else tested.dependence
        if isinstance(seen, returns.ObservedOutcomes) and dependence is not None:
            seen = returns.Unobserved(f"episodes are no independent draws: {dependence}")
        wrong_costs = None if self.split.costs is None else self.split.costs.contradiction
        if isinstance(seen, returns.ObservedOutcomes):
            is_chain = self.problem.base.structure.choices == self.problem.base.structure.states
            about = robust if is_chain or value is None else value
            refuted = returns.refutation(counts, tested, prepared.contradiction, wrong_costs) is not None
            interval, seen = returns.meet(about.interval, replace(seen, total=self.delta), refuted)
            if is_chain:
                robust = replace(robust, interval=interval)
            value = None if value is None else replace(value, interval=interval)
        return LearningResult(
            problem=self.problem,
            counts=counts,
            options=options,
            decisions=decisions,
            sets=prepared.sets.found(robust.policy),
            region=prepared.region,
            intervals=prepared.intervals,
            value=value,
            robust=robust,
            optimistic=solved.optimistic,
            widths=solved.shape.widths,
            binding=solved.shape.binding,
            contradiction=prepared.contradiction,
            fit=tested,
            seconds={**spent, "solve": seconds},
            notes=tuple(dict.fromkeys(notes)),
            synthesis=solved.synthesis,
            refuted_costs=wrong_costs,
            outcomes=seen,
            tried=solved.tried,
            given=self.steering,
        )

    def decide(self, options: LearnOptions) -> Decisions:
        """What the options leave open, filled in without a look at outcomes."""
        if self.counts is None:
            return choosing.decide_over_domain(self.model, options)
        joint = self._refines and self.evaluation is None
        plain = self.problem.lift is None
        decisions = decide(self.model, self.counts, options, self._no_bets(options), joint, plain)
        if self.problem.lift is not None:
            products.refuse_for_product(decisions, self.policy)
        return decisions

    def _no_bets(self, options: LearnOptions) -> str | None:
        """Why a slab may not be chosen; None where it may."""
        if self._together or (options.sets is not SetsKind.COUPLED and not self._refines):
            return "several kinds of sets share a region"
        if self.problem.is_of_controller:
            return "the controller may have been chosen by the data"
        if not self.problem.query.is_plain:
            return "bets are on values of policies over one objective"
        if self.evaluation is not None:
            return "a given finite-memory policy and the robust one share a region"
        given = None if self._refines else self.policy  # else the best one is bet on
        return why_no_bets(self.model, self.objective, given, self.data.design)

    def prepare(
        self, decisions: Decisions, sets_only: bool = False, before_sets: Callable[[], None] | None = None
    ) -> Prepared:
        """The sets that were decided on, or tied ones where their region is empty."""
        seconds, kind, intervals = {"region": 0.0, "sets": 0.0}, decisions.region, None
        plain = self.problem.query.is_plain and not self.problem.is_of_controller
        has_values = plain if self.problem.lift is None else self.policy is None
        if kind is not None and kind.bets and self.bets is None and has_values:
            given = None if self.has_seen(self.policy) else self.policy
            self.bets = bets_of(self.model, self.objective, given, self.data.design, kind.has_intervals)
        if self.counts is not None:
            seconds = {"statistics": 0.0, **seconds}
            self._time("statistics", "outcomes", lambda: self.outcomes, seconds)
            if decisions.has_intervals or not self.split.of_probabilities:
                intervals = self.intervals(decisions, seconds)
        region = self._region(decisions, intervals, seconds)
        contradiction = None
        if region is not None and region.emptiness.is_empty:
            if self.counts is None:
                raise CannotCertify("the domain is empty: its constraints contradict each other")
            contradiction = region.emptiness.text(region.ledger.delta)
            if not self.options.fallback:
                raise EmptyRegion(contradiction, region.emptiness.conflict, region.ledger)
            intervals = self.intervals(replace(decisions, region=None), seconds)
        if before_sets is not None:
            before_sets()
        sets = self._sets(decisions, None if contradiction else region, intervals, seconds)
        box = None
        if region is not None and contradiction is None and not sets_only:
            box = self._time("sets", ("box", decisions.region), lambda: parameter_box(region), seconds)
        if self.problem.lift is not None:
            products.require_support(self.problem, sets, contradiction is not None, self.options)
        return Prepared(sets, region, intervals, box, contradiction, seconds)

    def intervals(self, decisions: Decisions, seconds: dict[str, float] | None = None) -> EventIntervals:
        """The intervals of the events, by the method that was decided on, at their share of δ."""
        if self.settled.given is not None:
            return self.settled.given
        delta = self.split.of_probabilities
        if decisions.splits:
            delta = self.split.of_events(decisions.bets and self.bets is not None)[0]
        return self._time(
            "statistics",
            (decisions.interval, delta),
            lambda: event_intervals(
                self.model,
                self.data,
                delta,
                decisions.interval,
                self.options.budget,
                self.settled.intervals,
            ),
            {"statistics": 0.0} if seconds is None else seconds,
        )

    def _region(
        self, decisions: Decisions, intervals: EventIntervals | None, seconds: dict[str, float]
    ) -> Region | None:
        kind = decisions.region
        if kind is None:
            return None

        def make() -> Region:
            region: Region
            if self.counts is None:
                region = domain_region(self.model)
            elif intervals is not None and (kind.is_of_intervals or not self.split.of_probabilities):
                region = polytope_region(intervals, near=self.settled.near)
            else:
                region = build_region(
                    kind,
                    self.model,
                    self.counts,
                    self.split.of_probabilities,
                    decisions.region_options(self.options),
                    self.settled.predictions,
                    self.bets,
                )
            if self.split.costs is not None:
                region = with_costs(region, self.split.costs)
            _ = region.emptiness  # decided here, and timed as a part of building
            return region

        return self._time("region", (kind, decisions.interval), make, seconds)

    def _sets(
        self,
        decisions: Decisions,
        region: Region | None,
        intervals: EventIntervals | None,
        seconds: dict[str, float],
    ) -> Sets:
        model, kind = self.model, decisions.sets.at_each_choice
        intersect = self.options.intersect and kind.meets_intervals

        def make() -> Sets:
            misfit = self.options.misfit
            return uncertainty.widened(learned(), np.full(model.choices, misfit)) if misfit else learned()

        def learned() -> Sets:
            if kind is SetsKind.UNTIED:
                return uncertainty.untied(model, self.data, self.split.of_probabilities, decisions.interval)
            if region is None:
                assert intervals is not None
                return uncertainty.tied(intervals)
            within = None if intervals is None else intervals.expression_bounds()
            if kind is SetsKind.PARAMETER:
                return uncertainty.parameter(region, model, within if intersect else None)
            if kind is SetsKind.EXPRESSION:
                return uncertainty.expression(region, model, within)
            return uncertainty.rectangular(region, model, within)

        return self._time("sets", (kind, decisions.region, intersect), make, seconds)

    def weigh_fit(self) -> tuple[ModelFit, float]:
        """The test of the model and its seconds; it needs nothing but model and data."""
        seconds, known, tested = {"fit": 0.0}, self.settled.fit, self.tested
        assert tested is not None
        with self._weighing:
            fit = self._time("fit", "fit", lambda: known or weigh_fit(*tested), seconds)
        return fit, seconds["fit"]

    def _time(self, phase: str, key: object, make: Callable[[], T], seconds: dict[str, float]) -> T:
        """Make it, or take what was made before; either way its cost counts as that of the phase."""
        if (phase, key) not in self._made:
            self.progress(phase)
            begin = time.perf_counter()
            value = make()
            self._made[phase, key] = value, time.perf_counter() - begin
        made, spent = self._made[phase, key]
        seconds[phase] += spent
        return cast(T, made)

    # --- solve and couple ------------------------------------------------------------------

    def solver(
        self, prepared: Prepared, options: LearnOptions, deadline: float, solves: int = 3
    ) -> PolicySolver:
        """For policies over the sets; `solves` share the time until the deadline."""
        return PolicySolver(prepared.sets, self.objective, options, deadline, self.progress, solves)

    def solve(
        self,
        prepared: Prepared,
        options: LearnOptions,
        deadline: float,
        *,
        alone: bool = False,
        fit: Fit | None = None,
    ) -> SolvedPolicies:
        """The robust and the optimistic policy, and the given one's value (`alone`: only that)."""
        policy = self.policy
        synthesises = not alone and (policy is None or self.counts is not None)
        solves = 2 * synthesises + (not alone) + 2 * (policy is not None)
        solver = self.solver(prepared, options, deadline, solves)
        shape = Shape(self, prepared)
        robust = optimistic = None
        if synthesises:
            waits = [] if fit is None else [fit.wait, shape.measure]
            robust, optimistic = solver.solve_both(*waits)
        value = None if policy is None else solver.evaluate(policy)
        if not alone and not synthesises:
            optimistic = solver.find(OPTIMISTIC)
        return SolvedPolicies(prepared, solver, robust, optimistic, value, shape)

    def couple(self, solved: SolvedPolicies, decisions: Decisions, fit: Fit | None = None) -> SolvedPolicies:
        """The same over one parameter vector for the whole run, where coupled sets were decided on."""
        if solved.prepared.contradiction is not None or not (decisions.along or decisions.couples):
            return solved
        from tightrope.learning import coupling

        return coupling.narrow(self, solved) if decisions.along else coupling.couple_all(self, solved, fit)


def plan_outcomes(
    about: Problem, own: Policy | None, counts: Counts, options: LearnOptions, given: Policy | None
) -> returns.Observation | returns.Unobserved:
    """How returns will be looked at: `about` is asked of `own`, which is `given` in the base."""
    seen = returns.plan_observation(about, counts, own, options.behaviour, options.return_range, given)
    if options.misfit:  # the log is not of the process that is asked about
        seen = returns.Unobserved("episodes are those of the process without a misfit")
    if options.outcomes is OutcomesUse.ONLY and isinstance(seen, returns.Unobserved):
        raise InputError(f"there are no outcomes to learn from alone: {seen.text}")
    return seen


def with_outcomes(chain: Pipeline, seen: returns.Observation | returns.Unobserved) -> DeltaSplit:
    """The split of a chain, which forecasts what outcomes are worth, with their part."""
    if isinstance(seen, returns.Unobserved):
        return replace(chain.split, observation=seen)
    alone, coupled = chain.options.outcomes is OutcomesUse.ONLY, chain.options.sets is SetsKind.COUPLED
    part = 1.0 if alone else returns.share(seen, chain.delta, coupled, chain.forecast)
    return replace(chain.split, observation=seen, of_outcomes=part * chain.delta)


class Shape:
    """How wide the sets are, and which events hold their region in place."""

    def __init__(self, chain: Pipeline, prepared: Prepared) -> None:
        self._chain, self._prepared = chain, prepared

    def measure(self) -> None:
        """Both, where a thread has time."""
        _ = self.widths, self.binding

    @cached_property
    def widths(self) -> answering.Widths:
        model, sets, box = self._chain.model, self._prepared.sets, self._prepared.box
        width = np.zeros(len(model.expressions))  # of each the widest transition
        np.maximum.at(width, model.expression, sets.upper - sets.lower)
        return answering.Widths(width, width[model.expressions.nonconstant], *(box or (None, None)))

    @cached_property
    def binding(self) -> Binding:
        if self._chain.counts is None:
            return answering.NOTHING
        region = self._prepared.region if self._prepared.contradiction is None else None
        return answering.binding_events(region, self._prepared.intervals, self._chain.outcomes)


def parametric(problem: Problem) -> ParametricMDP:
    """The model of a problem that can be learned about."""
    model = learnable(problem).model
    assert isinstance(model, ParametricMDP)
    return model


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be learned from: data, the events of them that count (`part`), δ, options, a policy."""

    data: object
    delta: float
    options: LearnOptions
    part: Mapping[str, int]
    policy: PolicyGiven | None = None
    progress: Progress | bool | None = None

    def counts(self, model: AnyModel) -> Counts:
        return counts_of(self.data, model, self.part)


class PlainQuestions:
    """One objective: the chain's own question."""

    def apply(self, problem: Problem) -> Problem:
        return learnable(problem)

    def start(self, problem: Problem, request: Request) -> Pipeline:
        return Pipeline.start(
            problem,
            request.counts(problem.base),
            request.delta,
            options=request.options,
            policy=request.policy,
            progress=request.progress,
            serves=Serves.REFINED,
        )

    lift: Callable[[Any, LearnOptions], Any] = staticmethod(Pipeline.result)


def counts_of(data: object, model: AnyModel, part: Mapping[str, int] = MappingProxyType({})) -> Counts:
    """The counts that data hold, in whatever form they are given; `part` says which events count."""
    if isinstance(data, Counts | Reading):
        if part:
            raise InputError(
                f"`{next(iter(part))}` excludes events, and counts do not record their order",
                hint="give the log itself, or read it so: tr.read_data(log, model, since=…)",
            )
        return data if isinstance(data, Counts) else data.counts
    if data is None or isinstance(data, bool | int | float):
        raise InputError(
            f"`data` is {describe(data)}, not data", hint="tr.read_data reads files, tables and episodes"
        )
    return read_data(data, require_discrete(model), **dict[str, Any](part)).counts
