"""Certified differences between policies over one region.

If the true parameters lie in the region, the difference of *all* pairs of policies lies in its range over the
region, at one parameter vector for both (`coupled.difference`). So candidates and properties to keep may come
from the same data without additional δ. Slabs bet along the gradient of the best difference by earlier data.
Long-run averages differ by cycles (`coupled.difference`), if a state is certainly met again.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tightrope.ambiguity.sets import SetsKind, rectangular
from tightrope.coupled import value as coupled_values
from tightrope.coupled.difference import AverageBounds, Cycle, CycleBounds, Side, bound_difference
from tightrope.coupled.result import CoupledValue, Witness
from tightrope.coupled.synthesis import Optimum
from tightrope.coupled.value import CoupledLimits
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError, describe
from tightrope.io.answers import Change, KeptProperty
from tightrope.io.results import Interval, ModelFit
from tightrope.learning import pipeline
from tightrope.learning.answers import find_reward
from tightrope.learning.bet_policy import PolicyBets, question_of
from tightrope.learning.coupling import COUPLED_SECONDS, couple, cut_along_gradient
from tightrope.learning.learn import plain_problem
from tightrope.learning.logged import ASSUMED, LoggedBaseline
from tightrope.learning.options import LearnOptions, OutcomesUse, Progress
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved, chosen_before, observe_done
from tightrope.learning.policy_solver import OPTIMISTIC
from tightrope.learning.products import steered_question
from tightrope.learning.result import CLOSE, LearningResult, assess, rests_on
from tightrope.logic.long_run import average_policy, bound_average
from tightrope.model.continuous import Continuous
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record, brief
from tightrope.numerics.rounding import difference
from tightrope.numerics.team import Aside
from tightrope.numerics.text import bound_text, bounded, interval_text, quantity_of, sure_text
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem, problem_of
from tightrope.provenance import union
from tightrope.regions.polytope import Polytope
from tightrope.regions.registry import region_kind
from tightrope.solver.solve import solve
from tightrope.statistics.bets import GUARD_SHARE, count_planned_episodes
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import check_delta
from tightrope.verdict import Assessment, AssumptionStatus
from tightrope_check.search.betting import PointsAround
from tightrope_check.search.value_slopes import PolicyEquations, value_slopes

FEWEST_BET = 100
"""Planned episodes below which all of δ is for the base region: the pilot does not show what to bet on."""

FEW_VISITS = (30, 300)
"""Choices with fewer visits are left as the baseline has them, in candidates that trust it there."""

UNIFORM, DO_NOTHING, LOGGED = "uniform", "do-nothing", "logged"
GIVEN, DONE = "the baseline", "the behaviour policy"
APART = (
    "the certificate of a difference to the behaviour policy combines two intervals, each at half of delta: "
    "the policy's value over the region, and the observed returns"
)


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Record):
    """The policy's value less the baseline's; `separate` is that of both intervals apart."""

    name: str
    policy: Policy | None
    interval: Interval
    separate: Interval
    value: CoupledValue | None = None

    def _title_(self) -> str:
        return f"Difference of {self.name}: {self.interval}"

    def _facts_(self) -> Facts:
        return [("apart", interval_text(self.separate.lower, self.separate.upper))]

    @property
    def lowest(self) -> Witness | None:
        """The parameters where the difference is smallest, as far as is known."""
        return None if self.value is None else self.value.lowest

    @property
    def highest(self) -> Witness | None:
        return None if self.value is None else self.value.highest


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Record):
    """Certified differences of policies to one baseline, all on one event.

    `order` are proved pairs (better, worse); `limit` bounds all certified improvements; `kept` are the
    properties that the best one satisfies; `changes` are its states that differ, most important first.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(2000, seed=1)
    >>> result = tr.improve(bench.problem, data, baseline="uniform", delta=0.05)
    >>> result.verdict.word.value, result.improvement > 0.0, result.improvement <= result.limit
    ('proved', True, True)
    """

    problem: Problem
    counts: Counts
    baseline: Policy | None
    baseline_name: str
    differences: tuple[Difference, ...]
    order: tuple[tuple[str, str], ...]
    ledger: ConfidenceBudget
    delta: float
    fit: ModelFit | None
    contradiction: str | None
    options: LearnOptions
    notes: tuple[str, ...] = ()
    kept: tuple[KeptProperty, ...] = ()
    limit: float | None = None
    changes: tuple[Change, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    table: Differences | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Everything but what it could be computed on from."""
        return {**vars(self), "table": None}

    def as_result(self) -> LearningResult:
        """Return the values of the best policy and of the baseline, each for itself."""
        if self.contradiction is not None or (self.baseline is not None and self.best.value is None):
            raise CannotCertify("the data contradict the model, or the region does not support differences")
        if self.policy is None or self.policy == self.baseline:
            raise CannotCertify("no improvement is proved, so there is nothing to certify")
        if self.table is None:
            raise CannotCertify("a stored comparison cannot be certified: compare again")
        return self.table.as_result(self.policy)

    def _title_(self) -> str:
        return f"Comparison: {self.best.name} against {self.baseline_name}, {self.sentence}"

    def _facts_(self) -> Facts:
        rows = [(one.name, str(one.interval)) for one in self.differences]
        limit = [] if self.limit is None else [("limit", bound_text(self.limit, True))]
        return [("verdict", self.verdict.word.value), *rows, *limit, ("policy", brief(self.policy))]

    @property
    def best(self) -> Difference:
        """The one with the largest certified improvement."""
        return max(self.differences, key=lambda one: _gain(one.interval, self.problem.maximises))

    @property
    def policy(self) -> Policy | None:
        """The policy with the largest certified improvement: the baseline itself where none is certified,
        None where that is what was done."""
        policy, counts = self.best.policy, self.counts
        if policy is None or policy == self.baseline:
            return policy
        known = [self.baseline, *(one.policy for one in self.differences)]
        seen = [self.problem.base.structure.made_from, *(one.made_from for one in known if one is not None)]
        return policy.made(lambda: union([counts.provenance, *seen]))

    @property
    def parameters(self) -> Parameters:
        """What the witnesses of differences are about."""
        model = self.problem.model
        assert isinstance(model, ParametricMDP)
        return model.parameters

    @property
    def controller(self) -> Policy | None:
        """The same as a policy of the model that data speak of: it has a memory where a formula needs one."""
        if self.policy is None:
            return None
        own = self.problem.model.structure is self.policy.structure
        return self.problem.controller(self.policy) if own else self.policy

    @property
    def interval(self) -> Interval:
        """The certified interval of the best policy's value less the baseline's."""
        return self.best.interval

    @property
    def improvement(self) -> float:
        """By how much the best policy is better than the baseline at least."""
        return _gain(self.interval, self.problem.maximises)

    @property
    def sentence(self) -> str:
        """What is proved, in a few words."""
        if self.improvement <= 0.0:
            return "no improvement is proved"
        return f"better by at least {bound_text(self.improvement, True)}"

    @property
    def verdict(self) -> Assessment:
        """What the result is worth, in one word, with all that it rests on."""
        known = rests_on(self.ledger, self.options, self.fit, self.problem)
        bets = self.options.region is not None and self.options.region.bets
        if bets and self.baseline_name == GIVEN and self.baseline is not None:
            chosen = chosen_before(self.baseline, self.counts)
            known = (*known, chosen) if chosen.kept is AssumptionStatus.STATED else known
        if self.baseline is None:
            known = (*known, ASSUMED)
        return assess(known, self.counts, self.fit, self.contradiction, self.status)

    @property
    def status(self) -> str:
        """Whether the best difference came as close as was asked, or why not; it is certified in any case."""
        value, interval = self.best.value, self.best.interval
        if not math.isfinite(interval.lower) and not math.isfinite(interval.upper):
            return "nothing is known of the difference"
        return CLOSE if value is None or value.status.is_reached else value.status.value

    def headline(self) -> str:
        """Return the verdict in one line."""
        claim = f"keep {self.baseline_name}, no improvement found"
        if self.improvement > 0.0:
            relation = bounded(self.improvement, is_lower=True)
            claim = f"improvement in {quantity_of(self.problem.text)} {relation} for {self.best.name}"
        return self.verdict.headline(claim, sure_text(self.delta))


def _gain(interval: Interval, maximises: bool) -> float:
    return interval.lower if maximises else -interval.upper


def baseline_policy(model: ParametricMDP, given: PolicyGiven | str) -> tuple[str, Policy]:
    """The policy that is to be improved, and its name."""
    if isinstance(given, str) and given in (UNIFORM, DO_NOTHING):
        if given == UNIFORM:
            return "the uniform policy", Policy.uniform(model)
        return "doing nothing", Policy.of_choices(model, model.structure.choice_start[:-1])
    policy = as_policy(model, given)
    if policy is None:
        raise InputError(f"`baseline` is {describe(given)}, not a policy")
    return GIVEN, policy


@dataclass(frozen=True, eq=False)
class KeptText:
    """A property to keep: `offset` from the baseline, or from 0, is what its value must not be beyond."""

    text: str
    objective: Objective
    at_least: bool
    relative: bool
    offset: float

    _SHAPE = re.compile(
        r"\s*(P|R\s*(?:\{[^}]*\})?)\s*(>=|<=)\s*(baseline)?\s*"
        r"([+-]?\s*[0-9.]+(?:[eE][+-]?[0-9]+)?)?\s*(\[.*\])\s*$",
        re.DOTALL,
    )

    @staticmethod
    def of(text: str, problem: Problem) -> KeptText:
        match = KeptText._SHAPE.match(text)
        if match is None or (match[3] is None and match[4] is None):
            raise InputError(
                f"{text!r} is not a property to keep",
                hint='for example \'P>=baseline [ F "goal" ]\' or \'R{"cost"}<=baseline+5 [ F "done" ]\'',
            )
        operator = match[1].replace(" ", "")
        try:
            asked = Problem(problem.base, f"{operator}max=? {match[5]}")
        except InputError as error:
            raise InputError(f"{text!r}, a property to keep: {error.message}", hint=error.hint) from None
        offset = Fraction(match[4].replace(" ", "")) if match[4] else Fraction(0)
        return KeptText(
            text, plain_problem(asked).objective, match[2] == ">=", match[3] is not None, float(offset)
        )

    def holds(self, interval: Interval) -> bool:
        return interval.lower >= self.offset if self.at_least else interval.upper <= self.offset

    def is_open(self, interval: Interval) -> bool:
        """Whether it may hold, and is not proved to."""
        may = interval.upper >= self.offset if self.at_least else interval.lower <= self.offset
        return may and not self.holds(interval)


class DifferenceBets(PolicyBets):
    """Bets along the gradient of what the policy that is best by the data gains over a baseline."""

    def __init__(self, model: ParametricMDP, objective: Objective, baseline: Policy):
        super().__init__(model, objective)
        self._baseline, self.guard_share = baseline.probability, GUARD_SHARE
        self.words = "bets are on how much better than the baseline the best policy by the data before is"

    def __call__(
        self, x: FloatArray, share: float | None, nearby: Callable[[], PointsAround] | None = None
    ) -> list[FloatArray] | None:
        """One betting strategy, on the best policy alone."""
        gradients = super().__call__(x, share)
        functions, expression = self.functions, self.model.expression
        probability = functions.chances(x)
        slopes = value_slopes(self._targets.question, self._baseline, probability[expression])
        if gradients is None or slopes is None:
            return gradients
        own = np.bincount(expression[slopes[0]], slopes[1], len(probability)) @ functions.linear
        return [one - own for one in gradients]


class Differences:
    """Differences of policies to one baseline over one region, each computed once."""

    def __init__(
        self,
        chain: pipeline.Pipeline,
        prepared: pipeline.Prepared,
        name: str,
        baseline: Policy | None,
        logged: LoggedBaseline | None = None,
    ):
        self.chain, self.prepared, self.problem = chain, prepared, chain.problem
        self.name, self.baseline, self.logged = name, baseline, logged
        self.began = time.perf_counter()
        self.deadline = self.began + min(chain.options.seconds, COUPLED_SECONDS)
        self._sides: dict[tuple[int, int, str], Side] = {}
        self._values: dict[tuple[int, bytes], float] = {}

    averages: ClassVar[bool] = False
    """Whether they are of long-run averages, and not of one plain objective."""

    @property
    def delta(self) -> float:
        """The level of everything together."""
        return self.chain.delta if self.logged is None else 2.0 * self.chain.delta

    @property
    def objective(self) -> Objective:
        return self.chain.objective

    @property
    def maximises(self) -> bool:
        return self.objective.maximises

    def cut(self, policies: Sequence[Policy]) -> None:
        """Cut the region along the differences, where it has many coordinates."""
        own = self.prepared.sets.model.structure
        known = policies if self.baseline is None else (self.baseline, *policies)
        plain = [one for one in known if one.structure is own and not one.has_memory]
        if self.prepared.contradiction is None:
            cut = cut_along_gradient(self.prepared, self.objective, plain, differences=True)
            self.prepared = self.prepared if cut is None else cut
            self._sides.clear()
            self._values.clear()

    def side(self, policy: Policy, objective: Objective | None = None) -> Side:
        """A policy with its certified interval over the sets, on a model that has its memory."""
        key = id(objective), id(policy.structure), policy.digest
        if key not in self._sides:
            self._sides[key] = self._side(policy, objective)
        return self._sides[key]

    def _side(self, policy: Policy, objective: Objective | None) -> Side:
        sets, asked, precision = self.prepared.sets, objective or self.objective, self.chain.options.precision
        if policy.structure is not sets.model.structure or policy.has_memory:
            if objective is not None:
                raise InputError(
                    "`keep` requires policies that depend on the state, or on state and step",
                    hint="leave `keep` out, or give a baseline without memory",
                )
            steered = steered_question(self.problem, policy, self.problem.to_base(self.chain.data))
            assert steered is not None
            product, policy, _ = steered
            asked = product.objective
            assert isinstance(product.model, ParametricMDP)
            if self.prepared.region is None or self.prepared.contradiction is not None:
                raise CannotCertify("the region is empty, so policies with a memory cannot be compared")
            sets = rectangular(self.prepared.region, product.model)
        low, high = coupled_values.rectangular_solutions(sets, asked, policy, precision)
        start = sets.model.initial
        return Side(sets.model, asked, policy, float(low.lower[start]), float(high.upper[start]))

    def difference(
        self,
        name: str,
        policy: Policy,
        baseline: Policy | None = None,
        objective: Objective | None = None,
        wanted: tuple[bool, bool] = (True, True),
        cells: int = CoupledLimits.cells,
        gap: float | None = None,
    ) -> Difference:
        """The certified difference to the baseline or another policy; `wanted` are the ends to be close."""
        other = self.baseline if baseline is None else baseline
        self.chain.progress(f"compare: {name}")
        one = self.side(policy, objective)
        if other is None:
            assert self.logged is not None
            region = self.prepared.sets.region if self.prepared.contradiction is None else None
            together, apart = self.logged.difference(region if isinstance(region, Polytope) else None, one)
            return Difference(name, policy, together, apart)
        two = self.side(other, objective)
        apart = (
            Interval(0.0, 0.0) if policy == other else separate(one.lower, one.upper, two.lower, two.upper)
        )
        if self.prepared.contradiction is not None or not isinstance(self.prepared.sets.region, Polytope):
            return Difference(name, policy, apart, apart)
        left = max(self.deadline - time.perf_counter(), 0.0)
        value = bound_difference(
            self.prepared.sets,
            one,
            two,
            gap=gap or self.chain.options.coupled_gap,
            limits=CoupledLimits(seconds=left, cells=cells, wanted=wanted),
        )
        return Difference(name, policy, Interval.of(value.lower, value.upper), apart, value)

    def order(self, rows: Sequence[Difference]) -> tuple[tuple[str, str], ...]:
        """Pairs (better, worse) that are proved, the baseline among them."""
        pairs = []
        for i, one in enumerate(rows):
            known = [(self.name, one.interval)]
            for two in rows[:i]:
                assert one.policy is not None and two.policy is not None
                between = self.difference(f"{one.name} and {two.name}", one.policy, two.policy)
                known.append((two.name, between.interval))
            for other, interval in known:
                if interval.lower > 0.0 or interval.upper < 0.0:
                    higher = interval.lower > 0.0
                    pairs.append((one.name, other) if higher == self.maximises else (other, one.name))
        return tuple(pairs)

    def gains_at_most(self, policy: Policy, points: Sequence[FloatArray]) -> float:
        """What the policy gains over the baseline where it gains least, of these points; in float64."""
        gains = [np.inf]
        for x in points:
            assert self.baseline is not None
            own, stays = self.value_at(policy, x), self.value_at(self.baseline, x)
            gains.append(own - stays if self.maximises else stays - own)
        return min(gains)

    def value_at(self, policy: Policy, x: FloatArray) -> float:
        """The value of a policy at a point, in float64: it certifies nothing."""
        side = self.side(policy)
        key = id(side), x.tobytes()
        if key not in self._values:
            functions = coupled_values.functions_of(self.coordinates, side.model, side.objective)
            within = self.chain.options.precision
            solution = coupled_values.solve_at(side.model, side.objective, functions, side.policy, within, x)
            end = solution.lower if self.maximises else solution.upper
            self._values[key] = float(end[side.model.initial])
        return self._values[key]

    def gain(self, row: Difference) -> float:
        return _gain(row.interval, self.maximises)

    def candidates(self) -> list[tuple[str, Policy]]:
        """The policies to begin with."""
        deadline = min(self.deadline, time.perf_counter() + self.chain.options.seconds)
        solved = self.chain.solver(self.prepared, self.chain.options, deadline, 1)
        result, optimum = [("the robust policy", solved.robust().policy)], self.optimum_over()
        if optimum is None:
            return result
        return self._mixed([*result, ("the policy best at the estimate", optimum.at(self.estimate())[1])])

    def _mixed(self, result: list[tuple[str, Policy]]) -> list[tuple[str, Policy]]:
        """With the last one where data are many, and the baseline elsewhere."""
        best, usual, structure = result[-1][1], self.baseline, self.chain.model.structure
        if usual is None or best.weight is None or usual.weight is None or usual.structure is not structure:
            return result
        visits = self.chain.data.visits
        for few in FEW_VISITS:
            rare = np.where(visits < few, best.probability, 0.0)
            seldom = np.add.reduceat(rare, structure.choice_start[:-1])[structure.choice_state] > 0.0
            mixed = Policy(structure, np.where(seldom, usual.probability, best.probability))
            result.append((f"the baseline below {few} visits, else the best", mixed))
        return result

    def promise(self) -> tuple[Policy, float] | None:
        """The best policy at the estimate, and what it gains over a known baseline there, in float64."""
        optimum = self.optimum_over()
        if optimum is None or self.baseline is None or self.prepared.contradiction is not None:
            return None
        x = self.estimate()
        policy = optimum.at(x)[1]
        return policy, self.gains_at_most(policy, [x])

    def keeps(self, policy: Policy, keep: Sequence[KeptText]) -> tuple[KeptProperty, ...]:
        """What is certified of the properties to keep."""
        result = []
        for one in keep:
            if one.relative:
                interval = self.difference(one.text, policy, objective=one.objective, cells=1).interval
                if one.is_open(interval):
                    interval = self.difference(one.text, policy, objective=one.objective).interval
            else:
                side = self.side(policy, one.objective)
                interval = Interval.of(side.lower, side.upper)
                if isinstance(self.prepared.sets.region, Polytope) and one.is_open(interval):
                    value = coupled_values.bound_coupled_value(
                        self.prepared.sets, one.objective, policy, limits=CoupledLimits(cells=200)
                    )
                    interval = Interval.of(value.lower, value.upper)
            result.append(KeptProperty(one.text, interval, one.holds(interval)))
        return tuple(result)

    def estimate(self) -> FloatArray:
        """The coordinates that fit the data best, in float64."""
        outcomes = self.chain.outcomes
        return outcomes.maximiser.lifted(outcomes.estimate(self.chain.data))

    def corners(self, most: int) -> FloatArray:
        """The corners of the region; none where they are many or products are relaxed."""
        region = self.prepared.sets.region
        known = region.vertices if isinstance(region, Polytope) else None
        if known is None or len(known) > most or self.coordinates.products:
            return np.zeros((0, self.coordinates.size))
        middle = known.mean(axis=0)
        inside: FloatArray = middle + (1.0 - 1e-9) * (known - middle)
        return inside

    def contains(self, x: FloatArray) -> bool:
        """Whether a point lies in the region."""
        region = self.prepared.sets.region
        point = self.coordinates.parameters_at(x[None, :])[0].tolist()
        return isinstance(region, Polytope) and region.contains(point)

    @property
    def coordinates(self) -> Coordinates:
        return self.chain.outcomes.coordinates

    def optimum_over(self) -> Optimum | AverageOptimum | None:
        region = self.prepared.sets.region
        if not isinstance(region, Polytope):
            return None
        return Optimum(self.prepared.sets, self.objective, self.chain.options.precision, region)

    def result(self, rows: tuple[Difference, ...], order: tuple[tuple[str, str], ...]) -> Comparison:
        fit, _ = self.chain.weigh_fit()
        prepared = self.prepared
        ledger = prepared.sets.ledger if prepared.region is None else prepared.region.ledger
        known = {row.name: row.policy for row in rows} | {self.name: self.baseline}
        notes = [
            f"{name} was made from these data: nothing is bet on it; bounds are for all policies at once"
            for name, one in known.items()
            if one is not None and chosen_before(one, self.chain.data).kept is AssumptionStatus.NO
        ]
        crossed = [row.name for row in rows if row.interval.lower > row.interval.upper]  # with confidence
        words = "what the episodes returned lies outside of what the model allows for the difference of"
        excluded = f"{words} '{crossed[0]}'" if crossed else None
        return Comparison(
            problem=self.problem,
            counts=self.chain.data,
            baseline=self.baseline,
            baseline_name=self.name,
            differences=rows,
            order=order,
            ledger=ledger,
            delta=self.delta,
            fit=fit,
            contradiction=prepared.contradiction or excluded,
            options=self.chain.options,
            notes=(*prepared.sets.notes, *notes),
            changes=self.changes(max(rows, key=self.gain).policy),
            seconds=time.perf_counter() - self.began,
            table=self,
        )

    def changes(self, policy: Policy | None) -> tuple[Change, ...]:
        """Where the policy differs from the baseline, by its gain Σ_s η(s)·(Q(s, new) − V(s)) at the
        estimate."""
        model, usual = self.chain.model, self.baseline
        structure = model.structure
        plain = [one for one in (policy, usual) if one is not None and one.structure is structure]
        if policy is None or usual is None or len(plain) < 2 or any(one.weight is None for one in plain):
            return ()
        gain = self._gained(policy, usual)
        other = np.abs(policy.probability - usual.probability) > 1e-12
        states = np.unique(structure.choice_state[other])
        share = gain / total if (total := float(gain[states].sum())) else np.full(structure.states, np.nan)
        visits = np.bincount(structure.choice_state, self.chain.data.visits, structure.states)
        order = np.lexsort((-visits[states], -np.nan_to_num(share[states])))
        return tuple(
            Change(
                structure.state_name(s),
                _done(structure, usual, s),
                _done(structure, policy, s),
                int(visits[s]),
                float(share[s]) if np.isfinite(share[s]) else None,
            )
            for s in states[order].tolist()
        )

    def _gained(self, policy: Policy, usual: Policy) -> FloatArray:
        """What each state adds to the gain at the estimate; not a number where there is no telling."""
        model, question = self.chain.model, question_of(self.chain.model, self.objective)
        functions, gain = self.coordinates.functions(model.expressions), np.full(model.states, np.nan)
        probability = functions.chances(self.estimate())[model.expression]
        old = PolicyEquations.of(question, usual.probability, everywhere=True)
        new = PolicyEquations.of(question, policy.probability, everywhere=False)
        if old is not None and new is not None and not self.objective.depends_on_step:
            before, passes = old.solved(old.matrix(probability)), new.passes(probability)
            if before is not None and passes is not None:
                worth = question.backup(probability, before.values) - before.values[question.owner]
                met = np.zeros(model.states)
                met[new.state] = passes[1][-1][0]
                gain = met * np.bincount(question.owner, policy.probability * worth, model.states)
        return gain

    def as_result(self, policy: Policy) -> LearningResult:
        """The policy in place of the robust one, the baseline as the given one, or the episodes' returns."""
        chain, options, own = self.chain, self.chain.options, self.prepared.sets.model.structure
        seen: ObservedOutcomes | None = None
        if self.baseline is None:
            done = observe_done(chain.problem, chain.problem.to_base(chain.data), self.delta - chain.delta)
            if isinstance(done, Unobserved):
                raise CannotCertify(f"the behaviour policy has no certificate: {done.reason}")
            seen = replace(done, total=self.delta)
            if policy.structure is not own or policy.has_memory or not chain.problem.query.is_plain:
                raise CannotCertify(
                    "certificates do not cover the difference between a policy with a memory and the "
                    "unknown behaviour policy"
                )
        solver = chain.solver(self.prepared, options, float("inf"))
        value = solver.evaluate(policy)
        usual = None if self.baseline is None else solver.evaluate(self.baseline)
        if usual is None and isinstance(self.prepared.sets.region, Polytope):
            value = couple(solver, value)
        solved = pipeline.SolvedPolicies(
            self.prepared, solver, value, solver.find(OPTIMISTIC), usual, pipeline.Shape(chain, self.prepared)
        )
        result = chain.lift(options, chain.decide(options), solved, 0.0, Aside(chain.weigh_fit, False))
        return result if seen is None else replace(result, outcomes=seen)


def _done(structure: Structure, policy: Policy, state: int) -> str:
    """What a policy does in a state, in words."""
    first, last = structure.choice_start[state : state + 2].tolist()
    likely = [(100.0 * float(policy.probability[c]), structure.action_name(c)) for c in range(first, last)]
    names = [(f"{name} ({share:.3g}%)" if share < 100.0 else name) for share, name in likely if share > 0.0]
    return ", ".join(names)


def separate(low: float, high: float, least: float, most: float) -> Interval:
    """The difference of two intervals, on the safe side."""
    return Interval.of(0.0 - difference(most, low), difference(high, least))


MOST_CELLS = 8
"""Of the bounds of one policy's cycle, which come in at second order."""

_NOTHING = Interval(-np.inf, np.inf)


class AverageOptimum:
    """The best average at a point, in float64."""

    def __init__(self, table: AverageDifferences):
        self.table = table

    def at(self, x: FloatArray) -> tuple[float, Policy]:
        table = self.table
        model, agent = table.chain.model, table.directions[0]
        point = MDP(model.structure, table.values_at(x)[model.expression])
        precision = max(table.chain.options.precision, 1e-9)
        solved = partial(solve, precision=precision / 4, threads=1)
        choice = average_policy(point, table.reward, (agent, agent), precision, solved)
        best = bound_average(point, table.reward, (agent, agent), precision, solved).bounds
        end = best.upper if agent is Direction.MAX else best.lower
        return float(end[model.initial]), Policy.of_choices(model.structure, choice)


class AverageDifferences(Differences):
    """Differences of long-run averages to one baseline over one region."""

    averages = True

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.reward, self.directions = find_reward(self.problem.query)
        region = self.prepared.sets.region
        self._bounds = None
        if self.prepared.contradiction is None and isinstance(region, Polytope):
            self._bounds = AverageBounds(
                self.chain.model, region, self.reward, self.chain.options.coupled_gap
            )
        self._cycles: dict[str, CycleBounds | None] = {}

    @property
    def maximises(self) -> bool:
        return self.directions[0] is Direction.MAX

    def values_at(self, x: FloatArray) -> FloatArray:
        """The probabilities of all expressions at a point."""
        return self.coordinates.functions(self.chain.model.expressions).chances(x)

    def cut(self, policies: object) -> None:
        """Regions of many coordinates are left as they are."""

    def cycle(self, policy: Policy) -> CycleBounds | None:
        """The bounds of a policy's cycle, each found once."""
        if policy.structure is not self.chain.model.structure or policy.has_memory or policy.depends_on_step:
            raise InputError(
                "long-run averages are compared only for policies that depend on the state alone",
                hint="give policies without a memory and without steps",
            )
        if self._bounds is None:
            return None
        if policy.digest not in self._cycles:
            made = Cycle.of(self.chain.model, policy, self.reward, self.values_at(self.estimate()))
            left = max(self.deadline - time.perf_counter(), 0.0)
            self._cycles[policy.digest] = (
                None if made is None else self._bounds.bounds(made, CoupledLimits(left, MOST_CELLS))
            )
        return self._cycles[policy.digest]

    def side(self, policy: Policy, objective: Objective | None = None) -> Side:
        if objective is not None:
            return super().side(policy, objective)
        assert self._bounds is not None
        known = self.cycle(policy)
        low, high = _NOTHING if known is None else known.average
        return Side(self.chain.model, self._bounds.objective, policy, low, high)

    def difference(
        self,
        name: str,
        policy: Policy,
        baseline: Policy | None = None,
        objective: Objective | None = None,
        wanted: tuple[bool, bool] = (True, True),
        cells: int = CoupledLimits.cells,
        gap: float | None = None,
    ) -> Difference:
        if objective is not None:
            return super().difference(name, policy, baseline, objective, wanted, cells, gap)
        other = self.baseline if baseline is None else baseline
        assert other is not None
        self.chain.progress(f"compare: {name}")
        if policy == other:
            nothing = Interval(0.0, 0.0)
            return Difference(name, policy, nothing, nothing)
        one, two = self.cycle(policy), self.cycle(other)
        if self._bounds is None or one is None or two is None:
            return Difference(name, policy, _NOTHING, _NOTHING)
        apart = separate(*one.average, *two.average)
        left = max(self.deadline - time.perf_counter(), 0.0)
        joint, value = self._bounds.difference(one, two, CoupledLimits(left, cells, wanted))
        both = Interval.of(max(joint.lower, apart.lower), min(joint.upper, apart.upper))
        return Difference(name, policy, both, apart, value)

    def candidates(self) -> list[tuple[str, Policy]]:
        """The best at the estimate, and the baseline where data are few."""
        if self._bounds is None:
            return []
        return self._mixed([("the policy best at the estimate", AverageOptimum(self).at(self.estimate())[1])])

    def value_at(self, policy: Policy, x: FloatArray) -> float:
        known = self.cycle(policy)
        return float("nan") if known is None or self._bounds is None else self._bounds.at(known.cycle, x)

    def optimum_over(self) -> AverageOptimum | None:
        return None if self._bounds is None else AverageOptimum(self)

    def _gained(self, policy: Policy, usual: Policy) -> FloatArray:
        return np.full(self.chain.model.states, np.nan)

    def as_result(self, policy: Policy) -> LearningResult:
        raise CannotCertify("certificates do not cover differences of long-run averages")


def refuse_chains(why: str = "a chain in continuous time has no choices") -> InputError:
    """Why models without choices are not compared."""
    return InputError(
        f"{why}: there is only one policy",
        hint=(
            "learn a model for each design; if the model has decisions, write the jumps as an mdp with "
            "choices"
        ),
    )


def differences(
    problem: Problem,
    data: object,
    baseline: PolicyGiven | str,
    delta: float,
    options: LearnOptions,
    progress: Progress | bool | None = None,
) -> Differences:
    """All differences to a baseline over one region; of long-run averages by cycles."""
    question, is_logged = problem_of(problem), isinstance(baseline, str) and baseline == LOGGED
    if isinstance(question.model, Continuous):
        raise refuse_chains()
    if isinstance(question.base, ParametricMDP) and question.base.choices == question.base.states:
        raise refuse_chains("the model has one choice in every state")
    kind = AverageDifferences if question.query.kind is QueryKind.LONG_RUN else Differences
    if is_logged and kind.averages:
        raise InputError("episodes show no long-run average: give the baseline as a policy")
    question = question if kind.averages else plain_problem(question)
    model, options = question.base, _coupled(options)
    assert isinstance(model, ParametricMDP)
    name, policy = (DONE, None) if is_logged else baseline_policy(model, baseline)
    logged: LoggedBaseline | None = None
    counts = pipeline.counts_of(data, model)
    bets, plan = options.region is not None and options.region.bets, count_planned_episodes(counts)
    few = plan is not None and plan < FEWEST_BET  # known before the data
    has_seen = policy is not None and chosen_before(policy, counts).kept is AssumptionStatus.NO
    if bets and (few or has_seen):
        options = replace(options, region=region_kind("likelihood"))
    part, several = 0.5 * delta if is_logged else delta, pipeline.Serves.SEVERAL
    chain = pipeline.Pipeline.start(
        question, counts, part, options=options, progress=progress, serves=several
    )
    if is_logged:
        check_delta(delta)
        logged = LoggedBaseline(chain.problem, counts, part)
    elif policy is not None and options.region is not None and options.region.bets:
        chain.bets = DifferenceBets(chain.model, chain.objective, policy)
    prepared = chain.prepare(chain.decide(options), sets_only=True)
    return kind(chain, prepared, name, policy, logged)


def _coupled(options: LearnOptions) -> LearnOptions:
    """The options over coupled sets; those that have no meaning for differences are refused."""
    if options.sets is not None and options.sets is not SetsKind.COUPLED:
        raise InputError(
            "differences use coupled sets (one parameter vector for the whole run), and `sets` is "
            f"{options.sets.value}",
            hint="leave `sets` out",
        )
    for name in ("misfit", "behaviour", "return_range", "outcomes"):
        if getattr(options, name) and (name != "outcomes" or options.outcomes is OutcomesUse.ONLY):
            raise InputError(
                f"`{name}` cannot be used with differences of policies", hint=f"leave `{name}` out"
            )
    return replace(options.without_outcomes, sets=SetsKind.COUPLED)
