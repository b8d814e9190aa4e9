"""The chain of learning, the only one: a question about a model and data becomes policies with intervals.

    question ──decide──▶ which region, which sets        (from model and design, never from outcomes)
    counts ──statistics──▶ event intervals ──▶ region ──▶ sets
    sets ──solve──▶ robust, optimistic and given policy ──couple──▶ the same over one parameter vector

`learn`, `learn_all`, `online`, `plan`, `solve` over a domain, campaigns, long-run averages and evaluations of
finite-memory policies walk it; what is no plain question is made one first (`tightrope.learning.products`).
Each stage is computed once, timed, and shared by all who need it.

*Why the result holds.* With probability at least 1 − δ the true parameters lie in the region, hence the true
model in the sets, hence for every policy its true value between the certified ends (paper, Theorem 1). Over a
domain, without data, the region is the domain itself and no confidence is involved.

*An empty region* is a verdict about the model. Whatever the true parameters are, an empty region misses them;
so under the model this happens with probability at most δ, and falling back to tied sets then costs no
further confidence. Where the model is wrong and the region is empty for that reason, the tied sets still
cover the truth with probability at least 1 − δ as long as transitions with the same expression have the same
probability, whatever it is: they use nothing else about the expressions.

Regions that compare parameters with each other are rarely empty even where the model is wrong, and no region
sees that the parameters have changed. So all data are tested apart, at a separate level α
(`tightrope.monitoring.model_fit`). It changes no result and no guarantee rests on it; a model that is
contradicted is a warning.

*Policies.* Let the agent maximise the reported value (minimising mirrors everything). Nature against the
agent gives the robust policy and g, a verified lower bound on what it attains against every nature in the
sets. Nature for the agent, with that policy fixed, gives h, a verified upper bound on what it can attain. So
[g, h] contains the policy's value under every nature in the sets, the true one among them with the ledger's
confidence. The robust policy of a property with a step bound depends on the step; it is fixed as it is, step
by step (`tightrope.model.policy_choices`).

*Coupled values.* The true system uses the same parameters at every choice. So the interval of a policy over
all instantiations of the region, one for the whole run, contains its true value; it is never wider than the
interval over rectangular sets, which it starts from. A region of many coordinates is cut along the gradients
of the policies that are evaluated (`tightrope.regions.likelihood`), which takes nothing away from the
statistical region and therefore costs no confidence, whatever the policies are.

*Costs of a log* are used where something is stated about them, a range or a bound on their standard
deviation: no confidence statement about a mean holds without. They are those of the rewards that the property
asks for. Half of δ is theirs, all of it where no probability is unknown; this is decided before looking.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from tightrope.ambiguity import sets as uncertainty
from tightrope.ambiguity.sets import Sets, SetsKind, rectangular
from tightrope.coupled import (
    CoupledLimits,
    CoupledSynthesis,
    CoupledValue,
    bound_coupled_value,
    find_coupled_policy,
)
from tightrope.coupled.taylor import ValueGradient
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError, describe
from tightrope.io.results import Binding, Interval, ModelFit
from tightrope.learning import products
from tightrope.learning.bet_policy import BetPolicy, why_no_bets
from tightrope.learning.options import Decisions, LearnOptions, decide, decide_over_domain
from tightrope.learning.result import NOTHING, LearningResult, PolicyValue, Widths, binding_events, widths_of
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.monitoring.model_fit import weigh_fit
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.team import Aside, Team, count_threads
from tightrope.problem import Problem, learnable
from tightrope.regions.bounds import parameter_box
from tightrope.regions.costs import reward_ends, with_costs
from tightrope.regions.event_polytope import Nearby, domain_region, polytope_region
from tightrope.regions.likelihood import cut_along, wants_value_cuts
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Conflict, Region
from tightrope.regions.registry import build_region
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.equations.system import assume_support
from tightrope.solver.iteration.host import LEAST_TRANSITIONS
from tightrope.solver.solution import Solution
from tightrope.solver.solve import operator_of, solve_sets
from tightrope.solver.workspace import Workspace
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.costs import CostIntervals, cost_intervals
from tightrope.statistics.estimates import EventIntervals, check_delta, event_intervals
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Predictions
from tightrope.verdict import Verdict

Progress = Callable[[str], None]
"""Called with what begins, in a few words."""

COUPLED_SECONDS = 60.0
"""For the search of each coupled value where no time limit is given: what it has found then is certified, and
the status says that it stopped.
"""

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
    def verdict(self) -> Verdict:
        """The data refute the model."""
        return Verdict.of(self.ledger.assumptions, contradicted=self.contradiction)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Sets, and what they were made of.

    `contradiction` are words about an empty region, else None.
    """

    sets: Sets
    region: Region | None
    intervals: EventIntervals | None
    box: tuple[FloatArray, FloatArray] | None
    contradiction: str | None
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class Settled:
    """What an earlier look at growing data has settled: its predictions, the intervals of events, where the
    region was, and the policy that a slab bets on.
    """

    predictions: Predictions | None = None
    intervals: EventIntervals | None = None
    near: Nearby | None = None
    bets: BetPolicy | None = None


@dataclass(frozen=True, eq=False)
class Solved:
    """Policies over prepared sets; `robust` is None where a given policy was evaluated alone."""

    prepared: Prepared
    solver: PolicySolver
    robust: PolicyValue | None
    optimistic: Solution | None
    value: PolicyValue | None
    synthesis: CoupledSynthesis | None
    shape: _Shape


Fit = Aside[tuple[ModelFit, float]]
"""The test of the model and its seconds, on the way or done."""


class Pipeline:
    """One plain question about one model, one data set and one δ: results for any kind of sets, sharing what
    they can. Without counts the region is the domain.

    `evaluation` is the chain of a given policy that has a memory, `together` says that results over several
    kinds of sets are wanted, which share a region. `start` makes one of any question.
    """

    def __init__(
        self,
        problem: Problem,
        counts: Counts | None,
        delta: float,
        *,
        options: LearnOptions,
        policy: Policy | None = None,
        progress: Progress | bool | None = None,
        settled: Settled | None = None,
        together: bool = False,
    ):
        assert isinstance(problem.model, ParametricMDP)
        self.problem, self.model = problem, problem.model
        self.counts, self.policy, self.delta, self.options = counts, policy, delta, options
        self.progress: Progress = progress_of(progress) or silent
        self.settled = settled or Settled()
        self.bets = self.settled.bets
        self.costs: CostIntervals | None = None
        self.evaluation: Pipeline | None = None
        self._together = together
        self._made: dict[tuple[str, object], tuple[Any, float]] = {}
        self._preparing, self._weighing = Lock(), Lock()
        if counts is None:
            return
        check_delta(delta)
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
        together: bool = False,
    ) -> Pipeline:
        """The chain for a problem whose data speak of its base: counts are lifted to a product, and a given
        policy that needs a memory gets a chain of its own, over the same events with the same counts.
        """
        if problem.query.is_plain:
            problem = learnable(problem)
        steered = products.steered_question(problem, policy, counts)
        own = None if steered is not None else as_policy(problem.model, policy)
        lifted = None if counts is None else products.lift_counts(problem, counts)
        chain = Pipeline(
            problem,
            lifted,
            delta,
            options=options,
            policy=own,
            progress=progress,
            settled=settled,
            together=together,
        )
        if lifted is not None:
            chain.costs = learn_costs(chain.model, problem.query.plain_objective, lifted, delta, options)
        if steered is not None:
            product, own, lifted = steered
            part = chain.of_probabilities
            chain.evaluation = Pipeline(
                product, lifted, part, options=options, policy=own, progress=chain.progress
            )
        return chain

    @property
    def objective(self) -> Objective:
        """What is computed, on the states of the model."""
        return self.problem.objective

    @property
    def of_probabilities(self) -> float:
        """The part of δ that is left for probabilities, where observed costs have the other."""
        return self.delta if self.costs is None else self.delta - self.costs.delta

    @cached_property
    def outcomes(self) -> Outcomes:
        outcomes = Outcomes.of(self.model)
        outcomes.check(self._data)
        return outcomes

    @property
    def _data(self) -> Counts:
        assert self.counts is not None
        return self.counts

    # --- the whole chain -------------------------------------------------------------------

    def results(self, asked: Sequence[LearnOptions]) -> list[LearningResult]:
        """One result for each of these options. Large models are solved over several kinds of sets at a time.
        How the threads are shared out depends on their number alone, and so do the bits of the results.
        """
        threads = count_threads(self.options.threads)
        workers = min(threads, len(asked))
        is_small = self.model.structure.transitions < LEAST_TRANSITIONS
        if workers < 2 or is_small or self.options.device != "cpu":
            return [self.result(options) for options in asked]
        with Team(workers) as team:
            return team.run([partial(self._result_of, each, threads // workers) for each in asked])

    def _result_of(self, options: LearnOptions, threads: int, worker: int) -> LearningResult:
        return self.result(options, threads)

    def result(self, options: LearnOptions, threads: int | None = None) -> LearningResult:
        """The result for these options, which may differ from the chain's in the kind of sets; `threads`
        are for its solves, if not those of the chain. Several threads may ask at a time.
        """
        how = options if threads is None else replace(options, threads=threads)
        together = are_solved_together(self.model.structure, how.device, count_threads(how.threads))
        with Aside(self._weigh_fit, together and self.counts is not None) as fit:
            with self._preparing:
                decisions = self.decide(options)
                deadline = time.perf_counter() + options.seconds
                prepared = self.prepare(decisions, before_sets=fit.begin)
            begin = time.perf_counter()
            solved = self.solve(prepared, decisions, how, deadline, fit=fit)
            if self.evaluation is not None:
                with self._preparing:
                    solved = replace(solved, value=self.evaluation.evaluate(how))
            return self._lift(options, decisions, solved, time.perf_counter() - begin, fit)

    def evaluate(self, options: LearnOptions) -> PolicyValue:
        """The certified interval of the given policy alone, over one kind of sets."""
        decisions = self.decide(options)
        deadline = time.perf_counter() + options.seconds
        prepared = self.prepare(decisions, sets_only=True)
        value = self.solve(prepared, decisions, options, deadline, alone=True).value
        assert value is not None
        return value

    def _lift(
        self, options: LearnOptions, decisions: Decisions, solved: Solved, seconds: float, fit: Fit
    ) -> LearningResult:
        """All that was found out, as the record that is returned and written."""
        prepared, counts = solved.prepared, self.counts
        spent, tested = {**prepared.seconds}, None
        if counts is not None:
            tested, spent["fit"] = fit.get()
        region_notes = prepared.region.notes if prepared.region is not None else ()
        unused = () if counts is None else unused_costs(self.objective, counts, options)
        own = (*solved.solver.notes, *products.notes(self.problem))
        notes = (*prepared.sets.notes, *region_notes, *own, *unused)
        robust = solved.robust or solved.value
        assert robust is not None and solved.optimistic is not None
        return LearningResult(
            problem=self.problem,
            counts=counts,
            options=options,
            decisions=decisions,
            sets=prepared.sets,
            region=prepared.region,
            intervals=prepared.intervals,
            value=solved.value,
            robust=robust,
            optimistic=solved.optimistic,
            widths=solved.shape.widths,
            binding=solved.shape.binding,
            contradiction=prepared.contradiction,
            fit=tested,
            seconds={**spent, "solve": seconds},
            notes=tuple(dict.fromkeys(notes)),
            synthesis=solved.synthesis,
            refuted_costs=None if self.costs is None else self.costs.contradiction,
        )

    # --- decide ----------------------------------------------------------------------------

    def decide(self, options: LearnOptions) -> Decisions:
        """What the options leave open, filled in without a look at outcomes."""
        if self.counts is None:
            return decide_over_domain(options)
        decisions = decide(self.model, self.counts, options, self._no_bets(options))
        products.refuse_for_product(self.problem, decisions, self.policy)
        return decisions

    def _no_bets(self, options: LearnOptions) -> str | None:
        """Why a slab may not be chosen; None where it may."""
        if options.sets is not SetsKind.COUPLED or self._together:
            return "several kinds of sets share a region"
        if not self.problem.query.is_plain:
            return "bets are on values of policies over one objective"
        if self.evaluation is not None:
            return "a given finite-memory policy and the robust one share a region"
        return why_no_bets(self.model, self.objective, self.policy, self._data.design)

    # --- statistics, region, sets ----------------------------------------------------------

    def prepare(
        self, decisions: Decisions, sets_only: bool = False, before_sets: Callable[[], None] | None = None
    ) -> Prepared:
        """The sets that were decided on, or tied ones where their region is empty.

        `sets_only` leaves out what only explains a result: the box of the parameters. `before_sets` is called
        when the region is there; what follows are large arrays, and leaves other threads alone.
        """
        seconds = {"region": 0.0, "sets": 0.0}
        intervals = None
        if self.counts is not None:
            seconds = {"statistics": 0.0, **seconds}
            self._time("statistics", "outcomes", lambda: self.outcomes, seconds)
            if decisions.follows_from_intervals:
                intervals = self.intervals(decisions, seconds)
        region = self._region(decisions, intervals, seconds)
        contradiction = None
        if region is not None and region.emptiness.is_empty:
            if self.counts is None:
                raise CannotCertify("the domain is empty: its constraints contradict each other")
            contradiction = region.emptiness.text(self.delta)
            if not self.options.fallback:
                raise EmptyRegion(contradiction, region.emptiness.conflict, region.ledger)
            intervals = self.intervals(decisions, seconds)
        if before_sets is not None:
            before_sets()
        sets = self._sets(decisions, None if contradiction else region, intervals, seconds)
        box = None
        if region is not None and contradiction is None and not sets_only:
            box = self._time("sets", ("box", decisions.region), lambda: parameter_box(region), seconds)
        products.require_support(self.problem, sets, contradiction is not None, self.options)
        return Prepared(sets, region, intervals, box, contradiction, seconds)

    def intervals(self, decisions: Decisions, seconds: dict[str, float] | None = None) -> EventIntervals:
        """The intervals of the events, by the method that was decided on."""
        return self._time(
            "statistics",
            decisions.interval,
            lambda: event_intervals(
                self.model,
                self._data,
                self.of_probabilities,
                decisions.interval,
                self.options.budget,
                self.outcomes,
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
        if kind.bets and self.bets is None:
            self.bets = BetPolicy(self.model, self.objective, self.policy, self._data.design)

        def make() -> Region:
            region: Region
            if self.counts is None:
                region = domain_region(self.model)
            elif kind.is_of_intervals and intervals is not None:
                region = polytope_region(intervals, near=self.settled.near)
            else:
                region = build_region(
                    kind,
                    self.model,
                    self.counts,
                    self.of_probabilities,
                    decisions.region_options(self.options),
                    self.outcomes,
                    self.settled.predictions,
                    self.bets,
                )
            if self.costs is not None:
                region = with_costs(region, self.costs)
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
            if kind is SetsKind.UNTIED:
                return uncertainty.untied(model, self._data, self.delta, decisions.interval)
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

    def _weigh_fit(self) -> tuple[ModelFit, float]:
        """The test of the model and its seconds; it needs nothing but model and data."""
        seconds = {"fit": 0.0}
        with self._weighing:
            fit = self._time("fit", "fit", lambda: weigh_fit(self.model, self._data), seconds)
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
        result: T = made
        return result

    # --- solve and couple ------------------------------------------------------------------

    def solver(
        self, prepared: Prepared, options: LearnOptions, deadline: float, solves: int = 3
    ) -> PolicySolver:
        """For policies over the sets; `solves` share the time until the deadline."""
        return PolicySolver(prepared.sets, self.objective, options, deadline, self.progress, solves)

    def solve(
        self,
        prepared: Prepared,
        decisions: Decisions,
        options: LearnOptions,
        deadline: float,
        *,
        alone: bool = False,
        fit: Fit | None = None,
    ) -> Solved:
        """The robust and the optimistic policy, and the given one's value; `alone`: that value only. Over a
        domain the given policy takes the place of the robust one.
        """
        solved = self._solve_over(prepared, options, deadline, alone, fit)
        if decisions.sets is not SetsKind.COUPLED or prepared.contradiction is not None:
            return solved
        values = [one for one in (solved.robust, solved.optimistic, solved.value) if one is not None]
        cut = cut_along_values(prepared, self.objective, [one.policy for one in values])
        if cut is not None:
            solved = self._solve_over(cut, options, deadline, alone, fit)
        solver, robust, synthesis = solved.solver, solved.robust, None
        if robust is not None:
            robust, synthesis = solver.couple_robust(robust, None if self.bets is None else self.bets.policy)
        value = None if solved.value is None else solver.couple(solved.value)
        return replace(solved, robust=robust, synthesis=synthesis, value=value)

    def _solve_over(
        self, prepared: Prepared, options: LearnOptions, deadline: float, alone: bool, fit: Fit | None
    ) -> Solved:
        policy = self.policy
        synthesises = not alone and (policy is None or self.counts is not None)
        solves = 2 * synthesises + (not alone) + 2 * (policy is not None)
        solver = self.solver(prepared, options, deadline, solves)
        shape = _Shape(self, prepared)
        robust = optimistic = None
        if synthesises:
            waits = [] if fit is None else [fit.wait, shape.measure]
            robust, optimistic = solver.solve_both(*waits)
        value = None if policy is None else solver.evaluate(policy)
        if not alone and not synthesises:
            optimistic = solver.optimistic()
        return Solved(prepared, solver, robust, optimistic, value, None, shape)


class _Shape:
    """How wide the sets are, and which events hold their region in place."""

    def __init__(self, chain: Pipeline, prepared: Prepared) -> None:
        self._chain, self._prepared = chain, prepared

    def measure(self) -> None:
        """Both, where a thread has time."""
        _ = self.widths, self.binding

    @cached_property
    def widths(self) -> Widths:
        return widths_of(self._chain.model, self._prepared.sets, self._prepared.box)

    @cached_property
    def binding(self) -> Binding:
        if self._chain.counts is None:
            return NOTHING
        region = self._prepared.region if self._prepared.contradiction is None else None
        return binding_events(region, self._prepared.intervals, self._chain.outcomes)


def _nothing() -> None:
    """There is nothing else to be done."""


def are_solved_together(structure: Structure, device: str, threads: int) -> bool:
    """Whether the robust and the optimistic policy are looked for at the same time."""
    return device == "cpu" and threads > 1 and structure.transitions >= LEAST_TRANSITIONS


class PolicySolver:
    """Solves over one kind of sets; what came out at the deadline is verified all the same.

    The time that is left is shared evenly by the solves that are left: two for the robust policy, one for the
    optimistic one, two for a given one. `reward_ends` are what nature may make of rewards with parameters.
    """

    def __init__(
        self,
        sets: Sets,
        objective: Objective,
        options: LearnOptions,
        deadline: float,
        progress: Progress,
        solves: int = 3,
    ):
        smallest = options.assume_support
        self.notes: list[str] = []
        if smallest is not None:
            raised = assume_support(sets.interval_model(), smallest)
            assert isinstance(raised, IntervalMDP)
            sets = replace(sets, lower=raised.lower)
            self.notes.append(
                f"assumed: every transition that can happen has at least probability {smallest:g}"
            )
        self.sets, self.objective, self.options = sets, objective, options
        self.kernel = operator_of(sets)
        self.deadline, self.progress = deadline, progress
        self.workspace = Workspace(options.device, options.threads)
        self.solves_left = solves
        self.reward_ends: tuple[RewardStructure, RewardStructure] | None = None

    def robust(self, start: FloatArray | None = None) -> PolicyValue:
        """The policy with the best guarantee, and its interval."""
        return self._with_far_end(self.find_guaranteed(start))

    def _with_far_end(self, guarantee: Solution) -> PolicyValue:
        """The policy with the other end of its interval."""
        self.progress("solve: the other end of its interval")
        policy = guarantee.policy
        if self.objective.depends_on_step:
            self.notes.append("the robust policy depends on the step: one choice per state and step")
        far = self._solve(self.kernel, self.objective.agent, policy)
        low, high = (guarantee, far) if self.objective.maximises else (far, guarantee)
        return self._between(policy, low, high)

    def solve_both(
        self, before: Callable[[], None] = _nothing, after: Callable[[], None] = _nothing
    ) -> tuple[PolicyValue, Solution]:
        """The robust policy with its interval, and the optimistic one. With several threads half of them look
        for the optimistic policy while the others look for the robust one; what else there is to wait for or
        to do, whatever the policies are, comes `before` and `after` the optimistic one then.
        """
        threads = self.workspace.threads
        if not are_solved_together(self.kernel.structure, self.workspace.device, threads):
            return self.robust(), self.optimistic()
        half, rest = Workspace(threads=threads // 2), Workspace(threads=threads - threads // 2)

        def find_optimistic(worker: int) -> Solution:
            before()
            solution = self.optimistic(workspace=half)
            after()
            return solution

        with Team(2) as team:
            guarantee, optimistic = team.run(
                [lambda _: self.find_guaranteed(workspace=rest), find_optimistic]
            )
        return self._with_far_end(guarantee), optimistic

    def find_guaranteed(
        self, start: FloatArray | None = None, workspace: Workspace | None = None
    ) -> Solution:
        """The policy with the best guarantee; `start` are values to look from, say those of fewer data."""
        self.progress("solve: the robust policy")
        return self._solve(self.kernel, self.objective.agent.opposite, None, start, workspace)

    def optimistic(self, start: FloatArray | None = None, workspace: Workspace | None = None) -> Solution:
        """The policy that is best if nature is kind; its value bounds what any policy can reach."""
        self.progress("solve: the optimistic policy")
        return self._solve(self.kernel, self.objective.agent, None, start, workspace)

    def evaluate(self, policy: Policy) -> PolicyValue:
        """The interval of a given policy: nature against it, and for it."""
        self.progress("solve: the given policy")
        kernel = self.kernel
        if (
            not policy.is_deterministic
            and not isinstance(kernel, IntervalOperator)
            and not self.objective.is_bounded
        ):
            self.notes.append(
                "the given policy is randomised: it was evaluated over the expression sets, "
                "which enclose the rectangular ones"
            )
            kernel = IntervalOperator.of(self.sets.interval_model())
        natures = (Direction.MIN, Direction.MAX)
        if self.objective.complement:
            natures = (Direction.MAX, Direction.MIN)
        low, high = (self._solve(kernel, nature, policy) for nature in natures)
        return self._between(policy, low, high)

    def couple_robust(
        self, rectangular: PolicyValue, betted: Policy | None = None
    ) -> tuple[PolicyValue, CoupledSynthesis | None]:
        """The policy with the best coupled guarantee found; the rectangular-robust one is a candidate, and so
        is one that was bet on.
        """
        if self.objective.depends_on_step:
            self._note_steps("robust")
            return rectangular, None
        self.progress("solve: the robust policy over the coupled set")
        synthesis = find_coupled_policy(
            self.sets,
            self.objective,
            gap=self.options.coupled_gap,
            limits=self._coupled_limits(),
            robust=rectangular.policy,
            more=[] if betted is None or not betted.is_deterministic else [betted],
        )
        if synthesis.policy != rectangular.policy:
            rectangular = self.evaluate(synthesis.policy)
        return self._narrowed(rectangular, synthesis.value), synthesis

    def couple(self, rectangular: PolicyValue) -> PolicyValue:
        """A given policy's value over the coupled set."""
        if rectangular.policy.depends_on_step:
            self._note_steps("given")
            return rectangular
        self.progress("solve: the given policy over the coupled set")
        value = bound_coupled_value(
            self.sets,
            self.objective,
            rectangular.policy,
            gap=self.options.coupled_gap,
            limits=self._coupled_limits(),
            rectangular=rectangular.solutions,
        )
        return self._narrowed(rectangular, value)

    def _note_steps(self, which: str) -> None:
        self.notes.append(
            f"the {which} policy depends on the step, and coupled values are those of policies that do "
            "not: its interval is the one over rectangular sets"
        )

    def _narrowed(self, rectangular: PolicyValue, value: CoupledValue) -> PolicyValue:
        if value.reason:
            self.notes.append(f"coupled set: {value.status.value}; {value.reason}")
        lower = max(value.lower, rectangular.interval.lower)
        upper = min(value.upper, rectangular.interval.upper)
        return replace(rectangular, interval=Interval(lower, upper), coupled=value)

    def _coupled_limits(self) -> CoupledLimits:
        left = self.deadline - time.perf_counter()
        return CoupledLimits(seconds=max(left, 0.0) if math.isfinite(left) else COUPLED_SECONDS)

    def _between(self, policy: Policy, low: Solution, high: Solution) -> PolicyValue:
        initial = self.kernel.structure.initial
        interval = Interval(float(low.lower[initial]), float(high.upper[initial]))
        return PolicyValue(policy, interval, (low, high))

    def _reward(self, nature: Direction) -> RewardStructure | None:
        """Rewards that depend on parameters at their end for nature, over the region of the sets."""
        reward = self.objective.reward
        if not isinstance(reward, ParametricReward):
            return reward
        if self.reward_ends is None:
            self.reward_ends = reward_ends(reward, self.sets.model, self.sets.over)
        least, most = self.reward_ends
        return least if nature is Direction.MIN else most

    def _solve(
        self,
        kernel: BellmanOperator,
        nature: Direction,
        policy: Policy | None = None,
        start: FloatArray | None = None,
        workspace: Workspace | None = None,
    ) -> Solution:
        left = max(self.deadline - time.perf_counter(), 0.0) / max(self.solves_left, 1)
        self.solves_left -= 1
        return solve_sets(
            kernel,
            replace(self.objective, nature=nature, reward=self._reward(nature)),
            policy=policy,
            precision=self.options.precision,
            iterations=self.options.iterations,
            seconds=max(left, 0.0),
            start=start,
            workspace=workspace or self.workspace,
        )


def cut_along_values(prepared: Prepared, objective: Objective, policies: Sequence[Policy]) -> Prepared | None:
    """The region cut along the policies' values, with the rectangular sets of it; None where it needs none.

    A region that turns out empty only now is left as it was: the cuts show what was true before.
    """
    region, model = prepared.region, prepared.sets.model
    if not isinstance(region, Polytope) or not wants_value_cuts(region):
        return None
    functions = region.coordinates.functions(model.expressions)
    directions = _directions(region, functions, prepared.sets, objective, policies)
    if len(directions) == 0:
        return None
    cut = cut_along(region, functions, directions)
    if cut is region or cut.emptiness.is_empty:
        return None
    sets = rectangular(cut, model)
    return replace(prepared, region=cut, sets=sets, box=parameter_box(cut))


def _directions(
    region: Polytope,
    functions: AffineFunctions,
    sets: Sets,
    objective: Objective,
    policies: Sequence[Policy],
) -> FloatArray:
    """The gradients at the estimate, one per policy that takes a choice per state and has a finite value."""
    assert region.evidence is not None
    x = LikelihoodMaximiser.of(region.coordinates, functions).lifted(region.evidence.estimate)
    gradients: list[FloatArray] = []
    for policy in policies:
        if policy.depends_on_step:
            continue
        value = ValueGradient.of(sets.model, objective, policy, functions)
        gradient = None if value is None else value.at(x)
        if gradient is not None:
            gradients.append(gradient)
    return np.array(gradients).reshape(-1, region.coordinates.size)


#


def learn_costs(
    model: ParametricMDP, objective: Objective | None, counts: Counts, delta: float, options: LearnOptions
) -> CostIntervals | None:
    """The intervals of the rewards that are asked for, where costs are to be used."""
    assumed = options.cost_model
    if assumed is None:
        return None
    check_delta(delta)
    named = "`cost_range`" if assumed.bounds is not None else "`cost_sd`"
    reward = objective.reward if objective is not None and objective.is_reward else None
    if not isinstance(reward, ParametricReward):
        raise InputError(
            f"{named} speaks of costs, but the property asks for no reward that depends on parameters",
            hint=f"leave {named} out",
        )
    if counts.costs is None:
        raise InputError(
            f"{named} speaks of costs, but the data hold none",
            hint="give a log, one row per step, with a column 'cost' (or say which it is: "
            '`columns="cost=…"`); tables of counts, episodes as lists of steps and `since` or `window` keep '
            "no costs",
        )
    part = delta / 2 if len(model.expressions.nonconstant) else delta
    return cost_intervals(reward, model.structure, model.parameters, counts.costs, part, assumed)


def unused_costs(objective: Objective, counts: Counts, options: LearnOptions) -> tuple[str, ...]:
    """What to say of costs that are in the data and not used."""
    asked = isinstance(objective.reward, ParametricReward)
    if counts.costs is None or options.cost_model is not None or not asked:
        return ()
    return (
        "the costs in the data are not used: nothing is stated about them (a range that all keep to, or a "
        "bound on their standard deviation)",
    )


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


def silent(what: str) -> None:
    """Says nothing."""
