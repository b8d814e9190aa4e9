"""Values from observed returns beside the model's: `observe`, and how δ is split.

If the policy in question collected the log, each return has the value as its mean; episodes of another known
policy have importance weights, else they are put together from steps (`monitoring.episode_scores`). With J₁
from the model at δ₁ and J₂ from returns at δ₂ the value lies in both with probability at least 1 − δ₁ − δ₂
under the model; if they exclude each other it is contradicted, and J₂ remains. J₂ assumes independent
episodes under one policy, none missing or cut because of its outcome. `share` splits δ by forecasts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.special import gammaln

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.fold import EXCLUDED
from tightrope.errors import CannotCertify, InputError, TightropeError
from tightrope.io.coding import record_of
from tightrope.io.results import DEPENDENT, Interval, ModelFit, ObservedFacts, power_text
from tightrope.learning.bet_policy import question_of
from tightrope.learning.options import MOST_LIKELIHOOD_PARAMETERS, MOST_VERTEX_DIMENSIONS
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.structure import Structure
from tightrope.monitoring.episode_scores import Episodes, PathRules, Queues, Scores
from tightrope.monitoring.examination import is_planned
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.problem import Problem
from tightrope.provenance import Artefact, chosen_without
from tightrope.statistics.confidence_budget import Assumption, assumed_of
from tightrope.statistics.intervals import complement
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.returns import BETTING, Tally, frequency_interval, mean_interval
from tightrope.verdict import Assumed, AssumptionStatus
from tightrope_check.search.value_slopes import GraphQuestion, PolicyEquations

if TYPE_CHECKING:  # with automata, which few questions need
    from tightrope.logic.product_problem import ProductLift

REFUTES = 0.001
"""The probability with which a right behaviour is refused."""

UNIFORM = "uniform"
"""The behaviour that takes every choice of a state alike."""

Forecast = Callable[[FloatArray, int], float]
"""The width over the model's sets after so many episodes of these expected counts each."""

SEEN_POLICY = (
    "the given policy was made from these data: its bounds are those for all policies at once, without bets "
    "on it, importance weights and observed returns"
)


@dataclass(frozen=True)
class Unobserved:
    """No outcome of the log bounds the value, and why.

    >>> Unobserved("the data are counts, which have no episodes").text
    'not observed: the data are counts, which have no episodes'
    """

    reason: str

    @property
    def text(self) -> str:
        return f"not observed: {self.reason}"

    def record(self) -> ObservedFacts:
        """What is written of it."""
        return ObservedFacts(observed=False, text=self.text)


@dataclass(frozen=True, eq=False, repr=False)
class ObservedOutcomes(Record):
    """The value from the episodes of a log alone: in `interval` with probability at least 1 − `delta`.

    * `episodes` begin in the initial state, `elsewhere` others; `decided` show everything asked.
    * `successes`, `failures`: of decided episodes, for an unweighted probability.
    * `method`: clopper-pearson or beta-binomial of these numbers; betting on the returns.
    * `ends`: the range of returns; with betting, `returns` are lower bounds above and below it.
    * `planned`: the number of episodes fixed in advance, None for any stopping. `complement`: 1 − the count.
    * `policy`: whose value it is, and how the log was collected.
    * `from_steps`, `is_weighted`: assembled from steps, or collected by another policy; no certificate covers
      these.
    * `model`: the interval over the model's sets; `contradiction`: a message if the two exclude each other.
      `alone`: the model is refuted, so this interval is the answer. `total`: δ of both together.
    """

    interval: Interval
    delta: float
    episodes: int
    decided: int
    successes: int | None
    failures: int | None
    method: str
    policy: str
    ends: tuple[float, float] = (0.0, 1.0)
    planned: int | None = None
    complement: bool = False
    elsewhere: int = 0
    returns: tuple[Tally, Tally] | None = field(default=None, repr=False)
    model: Interval | None = None
    contradiction: str | None = None
    alone: bool = False
    total: float = 0.0
    from_steps: bool = False
    is_weighted: bool = False

    @property
    def text(self) -> str:
        """What was seen, in words."""
        seen = "1 episode" if self.episodes == 1 else f"{self.episodes:,} episodes"
        if self.successes is not None and self.failures is not None:
            happened = self.failures if self.complement else self.successes
            seen = f"in {happened:,} of {seen}"
        else:
            seen = f"{seen} of {self.policy}"
        left = self.episodes - self.decided
        open_ones = f", {left:,} undecided" if left else ""
        passed = f", {self.elsewhere:,} began elsewhere" if self.elsewhere else ""
        return f"{seen}{open_ones}{passed}: {self.interval} ({self.method}, δ = {self.delta:.3g})"

    @property
    def estimate(self) -> float:
        """The frequency of those decided, or the mean of what returned at least; NaN where there is none."""
        number = sum(self.returns[0].count) if self.returns else (self.successes or 0) + (self.failures or 0)
        if not number:
            return math.nan
        total: float = self.successes or 0
        if self.returns is not None:
            total = self.ends[0] * number + float(self.returns[0].value @ self.returns[0].count)
        return 1.0 - total / number if self.complement else total / number

    @property
    def tension(self) -> str | None:
        """Words where each of both intervals excludes the other's estimate."""
        if self.model is None or self.alone or math.isnan(self.estimate):
            return None
        middle = 0.5 * (self.model.lower + self.model.upper)
        if middle in self.interval or self.estimate in self.model:
            return None
        return (
            f"the answer depends on two intervals that hardly meet, {self.model} by the model and "
            f"{self.interval} by what episodes returned: each excludes the other's estimate "
            f"({middle:.5g} and {self.estimate:.5g}), so the model may be wrong"
        )

    @property
    def assumption(self) -> Assumed:
        """What is assumed of episodes beyond what every log must keep to."""
        if self.from_steps:
            why = "given its choice, the outcome of each step is a draw of its own; this is assumed"
            return Assumed.stated("episodes", why)
        fixed = "" if self.planned is None else ", their number was fixed in advance"
        why = f"episodes are independent draws of {self.policy}{fixed}; this is assumed and not tested"
        return Assumed.stated("episodes", why)

    def is_refuted_by(self, fit: ModelFit) -> bool:
        """Whether episodes (or the steps that they are assembled from) are no draws from one distribution."""
        kinds = (*DEPENDENT, "drift", *(("memory", "column", "unit") if self.from_steps else ()))
        needed = 2.0 * math.log(1.0 / fit.alpha)  # more than any weight takes away
        return any(one.kind in kinds and one.log_evidence >= needed for one in fit.suspects)

    def sampling(self, design: SamplingDesign) -> tuple[Assumption, tuple[Assumed, ...]]:
        """What the interval needs of the way the log was collected, and whether that holds."""
        if self.planned is None:
            return Assumption.ADAPTIVE_ANYTIME, assumed_of(Assumption.ADAPTIVE_ANYTIME, design, tied=False)
        planned = replace(design, kind=SamplingKind.TRAJECTORIES)
        return Assumption.TRAJECTORIES, assumed_of(Assumption.TRAJECTORIES, planned, tied=False)

    def record(self) -> ObservedFacts:
        """What is written of it."""
        return record_of(ObservedFacts, self, observed=True)

    def _title_(self) -> str:
        return f"ObservedOutcomes: {self.interval}"

    def _facts_(self) -> Facts:
        return [("seen", self.text), ("policy", self.policy)]


def refutation(counts: Counts | None, fit: ModelFit | None, *known: str | None) -> str | None:
    """Words about what refutes the model: what is `known`, rows of the log, or the test of the model."""
    missing = () if counts is None else counts.design.censored
    excluded = [text for text in missing if any(problem.words in text for problem in EXCLUDED)]
    seen = f"transitions were seen that the model excludes: {excluded[0]}" if excluded else None
    tested = fit.misfit if fit is not None and fit.is_refutation else None
    return next((words for words in (*known, seen, tested) if words), None)


def meet(model: Interval, seen: ObservedOutcomes, refuted: bool = False) -> tuple[Interval, ObservedOutcomes]:
    """The interval that both parts leave, and what was seen; a `refuted` model counts for nothing."""
    low, high = max(model.lower, seen.interval.lower), min(model.upper, seen.interval.upper)
    if low <= high:
        both = seen.interval if refuted else Interval.of(low, high)
        return both, replace(seen, model=model, alone=refuted)
    words = (
        f"the episodes contradict the model: by the model the value of {seen.policy} is in {model}, by what "
        f"episodes returned in {seen.interval}, which holds without it (both at once under the model with "
        f"probability at most {seen.total:g}); {seen.text}"
    )
    return seen.interval, replace(seen, model=model, contradiction=words, alone=True)


def observe(
    problem: Problem,
    counts: Counts,
    delta: float,
    *,
    policy: PolicyGiven | None = None,
    behaviour: PolicyGiven | None = None,
    return_range: tuple[float, float] | None = None,
) -> ObservedOutcomes | Unobserved:
    """Bound the value of a problem by the episodes of a log alone, at level 1 − delta.

    `policy` is the one in question; `behaviour` states which policy collected the log ("uniform", or a
    policy), which must agree with the data. `return_range` states the range of all returns, if the model
    allows it.
    """
    plan = plan_observation(problem, counts, policy, behaviour, return_range)
    return plan if isinstance(plan, Unobserved) else plan.look(delta)


def observe_done(problem: Problem, counts: Counts, delta: float) -> ObservedOutcomes | Unobserved:
    """What was done in the episodes of a log was worth, by whatever policy, at level 1 − delta."""
    plan = _plan_episodes(problem, counts, None, None, None, None, done=True)
    return plan if isinstance(plan, Unobserved) else plan.look(delta)


@dataclass(frozen=True, eq=False)
class Observation:
    """How a log will be looked at: where its episodes begin is known, how they came out was not looked at."""

    problem: Problem
    counts: Counts
    log: Episodes
    rules: PathRules
    ratio: FloatArray
    policy: Policy | None
    whose: str
    behaviour: str | None
    queues: Queues | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """What returns lie between: what the model's paths return."""
        return self.rules.ends

    @property
    def is_weighted(self) -> bool:
        return self.behaviour is not None

    @property
    def objective(self) -> Objective:
        return self.problem.objective

    @property
    def planned(self) -> int | None:
        """The number of episodes that was fixed in advance."""
        design, number = self.counts.design, len(self.log)
        if self.queues is not None:
            return None
        fixed = design.kind is SamplingKind.TRAJECTORIES and not design.anytime and not design.late_plan
        known = fixed or is_planned(design)
        return number if known and design.episodes == number + self.log.elsewhere else None

    def forecast(self, value: float, variance: float, number: int, delta: float) -> float:
        """About how wide the interval will be if returns have this mean and variance."""
        if not self.objective.is_reward and not self.is_weighted:
            successes = min(max(round(value * number), 0), number)
            fixed = self.planned is not None
            low, high, _ = frequency_interval(successes, number - successes, number, delta, fixed)
            return high - low
        level = math.log(2.0 / delta) + 2.0
        width = 2.0 * math.sqrt(2.0 * level * variance / number)
        return min(width + level * (self.ends[1] - self.ends[0]) / number, self.ends[1] - self.ends[0])

    def look(self, delta: float) -> ObservedOutcomes | Unobserved:
        """Score the episodes and bound the value."""
        log = self.log
        if self.queues is not None and self.policy is not None:
            lift = cast("ProductLift | None", self.problem.lift)
            choices = np.arange(self.rules.structure.choices)
            base_choice = choices if lift is None else lift.product.choice
            log = self.queues.episodes(self.rules, self.policy.probability, base_choice)
            if not len(log):
                return Unobserved("the steps of the log make no whole episode of the given policy")
        scores = self.rules.score(log, self.ratio)
        if np.any(np.isnan(scores.weight)):
            raise InputError(
                "the log takes choices that the stated behaviour never takes",
                hint="leave `behaviour` out, or name the policy that the log was collected by",
            )
        if not self.is_weighted and np.any(scores.weight == 0.0):
            return Unobserved("the log takes choices that the given policy never takes")
        return self._bound(scores, delta, self.planned, log.elsewhere)

    def _bound(
        self, scores: Scores, delta: float, planned: int | None, elsewhere: int
    ) -> ObservedOutcomes | Unobserved:
        a, b = self.ends
        low, high = np.maximum(scores.low, a), np.minimum(scores.high, b)
        decided, number = int(np.count_nonzero(scores.low == scores.high)), len(low)
        if self.objective.is_reward:
            with np.errstate(invalid="ignore"):
                decided = int(np.count_nonzero(scores.high - scores.low <= 1e-9 * (1.0 + np.abs(scores.low))))
        successes = failures = None
        returns: tuple[Tally, Tally] | None = None
        if not self.objective.is_reward and not self.is_weighted:
            successes = int(np.count_nonzero(low == 1.0))
            failures = int(np.count_nonzero(high == 0.0))
            lower, upper, method = frequency_interval(successes, failures, number, delta, planned is not None)
        else:
            least = np.nextafter(low - a, -np.inf) * scores.weight
            most = np.zeros(number)
            if math.isfinite(b):
                most = np.nextafter(b - high, -np.inf) * scores.weight
            returns = Tally.of(least), Tally.of(most)
            method = BETTING
            lower, upper = mean_interval(*returns, self.ends, delta, planned)
        if self.objective.complement:
            lower, upper = map(float, complement(lower, upper))
        return ObservedOutcomes(
            Interval.of(lower, upper),
            delta,
            number,
            decided,
            successes,
            failures,
            method,
            self.whose,
            self.ends,
            planned,
            self.objective.complement,
            elsewhere,
            returns,
            from_steps=self.queues is not None,
            is_weighted=self.is_weighted,
        )


def plan_observation(
    problem: Problem,
    counts: Counts,
    policy: PolicyGiven | None = None,
    behaviour: PolicyGiven | None = None,
    return_range: tuple[float, float] | None = None,
    given: Policy | None = None,
) -> Observation | Unobserved:
    """How the log would be looked at (steps are put together without episodes of the policy), or why not."""
    given = as_policy(problem.model, policy) if given is None else given
    if given is not None and (chosen := chosen_before(given, counts)).kept is AssumptionStatus.NO:
        return Unobserved(f"{chosen.why}; returns are of policies that were chosen without them")
    lift = cast("ProductLift | None", problem.lift)
    if given is not None and given.has_memory and lift is not None and lift.temporal is not None:
        return Unobserved("the given policy has a memory, and the temporal formula one of its own")
    plan = _plan_episodes(problem, counts, policy, behaviour, return_range, given)
    if isinstance(plan, Unobserved) and behaviour is None:
        return _plan_queues(problem, counts, policy, return_range) or plan
    return plan


def _plan_episodes(
    problem: Problem,
    counts: Counts,
    policy: PolicyGiven | None,
    behaviour: PolicyGiven | None,
    return_range: tuple[float, float] | None,
    given: Policy | None,
    done: bool = False,
) -> Observation | Unobserved:
    """How the episodes of the log would be looked at; `done`: for what they came to, whoever acted."""
    if problem.query.plain_objective is None:
        return Unobserved("long-run averages do not show in finitely many steps")
    if counts.log is None or counts.design.episodes is None:
        return Unobserved("the data are counts, and the value of the behaviour policy needs episodes")
    structure, lift = problem.model.structure, cast("ProductLift | None", problem.lift)
    own = as_policy(problem.model, policy)
    given = own if given is None else given
    base = structure if lift is None else lift.base.structure
    is_chain = base.choices == base.states
    ratio, known, whose = np.ones(structure.choices), None, "what was done" if done else "the chain"
    if not is_chain and not done:
        if own is None or given is None:
            return Unobserved("states have choices, and no policy is given that the log was collected by")
        if own.depends_on_step:
            return Unobserved("the given policy depends on the step")
        stated = behaviour if behaviour is not None else counts.design.followed
        if stated is None:
            return Unobserved("nothing says by which policy the log was collected; `behaviour` states it")
        whose = "the given policy"
        is_uniform = isinstance(stated, str) and stated == UNIFORM
        if behaviour is None:
            if not _is_named(given, str(stated), base):
                how = '; `behaviour="uniform"` weighs its episodes' if is_uniform else ""
                return Unobserved(f"the log was collected by another policy{how}")
            ratio = (own.probability > 0.0).astype(np.float64)
        else:
            collected = Policy.uniform(base) if is_uniform else as_policy(base, stated)
            assert collected is not None
            _refuse_behaviour(collected, counts, base)
            chance = collected.probability if lift is None else collected.probability[lift.product.choice]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(chance > 0.0, own.probability / chance, np.nan)
            taken = own.probability > 0.0
            if np.any(taken & ~(chance > 0.0)):
                return Unobserved("the given policy takes choices that the log's policy never takes")
            if np.all(ratio[taken] == 1.0):
                ratio = np.where(taken, 1.0, np.nan)
            else:
                known = "uniform" if is_uniform else "another policy"
                whose = f"the given policy, weighed from {known}"
    known_rules = _rules(problem, own, return_range)
    if isinstance(known_rules, Unobserved):
        return known_rules
    log = episodes_of(problem, counts)
    if not len(log):
        return Unobserved("no episode of the log begins in the initial state")
    return Observation(problem, counts, log, known_rules, ratio, own, whose, known)


def episodes_of(problem: Problem, counts: Counts) -> Episodes:
    """The episodes of a log, as those of the model in question."""
    assert counts.log is not None
    structure, lift = problem.model.structure, cast("ProductLift | None", problem.lift)
    base, rows = structure if lift is None else lift.base.structure, counts.log()
    log = Episodes.of(base, rows.transition, rows.previous, rows.episode, rows.episodes)
    return log if lift is None else log.within(base, structure, lift.product.transition)


def chosen_before(policy: Policy, counts: Counts) -> Assumed:
    """Whether a policy was chosen without these data: what collected them or was planned to be bet on was."""
    design = counts.design
    named = _is_named(policy, design.followed or "", policy.structure) or policy.digest in design.bet_on
    if named or policy.structure.choices == policy.structure.states:
        return Assumed.derived("policy", "the data name it")
    return chosen_without(Artefact.POLICY, [policy.made_from], lambda: counts.provenance)


def _refuse_behaviour(collected: Policy, counts: Counts, base: Structure) -> None:
    """Refuse another policy than the data record, one with a memory, and one that an e-value refutes
    (Krichevsky–Trofimov over the stated one)."""
    named = counts.design.followed
    if named is not None and not _is_named(collected, named, base):
        raise InputError(
            "the data record another policy than `behaviour` states", hint="leave `behaviour` out"
        )
    if collected.depends_on_step or collected.has_memory:
        raise InputError("`behaviour` is a policy with a memory, which is not supported")
    chance = collected.probability
    visits = np.add.reduceat(counts.transition, base.transition_start[:-1]).astype(np.float64)
    total, size = np.bincount(base.choice_state, visits), 0.5 * np.bincount(base.choice_state)
    free = np.sum(gammaln(visits + 0.5) - gammaln(0.5)) + np.sum(gammaln(size) - gammaln(total + size))
    taken = (visits > 0) & (chance > 0)  # what it never takes is refused as such
    log_e = float(free - visits[taken] @ np.log(chance[taken]))
    if log_e >= math.log(1.0 / REFUTES):
        raise InputError(
            f"the choices in the log refute the stated behaviour: e-value {power_text(log_e)} (the right one "
            f"reaches {1.0 / REFUTES:,.0f} with probability at most {REFUTES:g})",
            hint="leave `behaviour` out, or name the policy that the log was collected by",
        )


def _is_named(policy: Policy, name: str, base: Structure) -> bool:
    """Whether a policy is the one that the data name: "uniform", or a digest."""
    uniform = name == UNIFORM and not policy.has_memory and not policy.depends_on_step
    alike = uniform and np.array_equal(policy.probability, Policy.uniform(base).probability)
    return alike or policy.digest == name


def _plan_queues(
    problem: Problem, counts: Counts, policy: PolicyGiven | None, return_range: tuple[float, float] | None
) -> Observation | None:
    """How episodes are put together from steps, where a model has many parameters; else None."""
    model, base, own = problem.model, problem.base, as_policy(problem.model, policy)
    if not isinstance(model, ParametricMDP) or not isinstance(base, ParametricMDP):
        return None
    if problem.query.plain_objective is None or len(base.parameters) <= MOST_LIKELIHOOD_PARAMETERS:
        return None
    if own is None and base.choices == base.structure.states:
        own = Policy.uniform(model)
    if own is None or own.depends_on_step or not counts.design.order.holds:
        return None
    rules = _rules(problem, own, return_range)
    queues = None if isinstance(rules, Unobserved) else Queues.of(base, counts)
    if isinstance(rules, Unobserved) or queues is None:
        return None
    nothing = np.zeros(0, dtype=np.int64)
    log, ratio = Episodes(nothing, nothing, nothing, 0), np.ones(model.choices)
    whose = "the given policy, put together from steps of the log"
    return Observation(problem, counts, log, rules, ratio, own, whose, None, queues)


def _rules(
    problem: Problem, own: Policy | None, return_range: tuple[float, float] | None
) -> PathRules | Unobserved:
    """How paths of a policy are scored; a stated range is checked against what they return."""
    structure = problem.model.structure
    taken = np.ones(structure.choices, np.bool_) if own is None else own.probability > 0.0
    if return_range is not None and not problem.objective.is_reward:
        raise InputError("`return_range` requires a reward, and the property asks for a probability")
    try:
        rules = PathRules.of(structure, problem.objective, taken)
    except CannotCertify as error:
        return Unobserved(str(error))
    if rules.at_once:
        return Unobserved("it is decided before the first step")
    if return_range is not None:
        rules.refuse_range(return_range)
    if not math.isfinite(rules.ends[0]) or not rules.ends[0] < rules.ends[1]:
        what = "have no lower limit" if rules.ends[0] == -math.inf else "are the same on every path"
        return Unobserved(f"returns {what}")
    return rules


MOST_OF_IT = 0.9
"""The part of δ for what is forecast to be better."""

MANY_PARAMETERS = 400
"""Beyond so many the model's part is not forecast: its sets hold one distribution at a time."""

REFERENCE = 1000
"""Episodes that a forecast is for where their number was not fixed in advance."""

POINTS = 3
_CLEAR = 3.0
"""Forecasts farther apart than e³ count as so far apart."""

CHEAP_TRANSITIONS = 2000
"""Up to so many, and few coordinates, the model's part is forecast by learning from expected counts."""


def share(seen: Observation, delta: float, coupled: bool, forecast: Forecast) -> float:
    """The part of δ for outcomes; `coupled`: the model's part is over coupled sets."""
    number = seen.planned or REFERENCE
    model = seen.problem.model
    assert isinstance(model, ParametricMDP)
    if len(model.parameters) > MANY_PARAMETERS:
        return MOST_OF_IT
    ahead = sum(_forecasts(seen, delta, coupled, forecast, number))
    return MOST_OF_IT if ahead >= 0.0 else 1.0 - MOST_OF_IT


def _forecasts(
    seen: Observation, delta: float, coupled: bool, forecast: Forecast, number: int
) -> Iterator[float]:
    """At some points of the domain: the logarithm of the model's width over that of the outcomes."""
    model, objective = seen.problem.model, seen.objective
    assert isinstance(model, ParametricMDP)
    maximiser, coordinates = Outcomes.of(model).maximiser, Outcomes.of(model).coordinates
    policy = Policy.uniform(model) if seen.policy is None else seen.policy
    equations = PolicyEquations.of(question_of(model, objective), policy.probability, everywhere=False)
    if equations is None:
        return
    for point in _points(maximiser):
        x, jacobian = maximiser.search.lifted(point)
        probability = maximiser.functions.chances(x)
        spread = _spread_of(equations, probability[model.expression])
        if spread is None or not math.isfinite(spread.variance):
            return
        cheap = coordinates.size <= MOST_VERTEX_DIMENSIONS and model.transitions <= CHEAP_TRANSITIONS
        if cheap and not coupled:
            outcomes = seen.forecast(spread.value, spread.variance, number, delta)
            total = np.zeros(model.transitions)
            total[spread.transition] = spread.count
            try:
                width = forecast(total, number)
            except TightropeError:  # there, not with the data at hand
                continue
        else:
            outcomes = 2.0 * math.sqrt(2.0 * math.log(2.0 / delta) * spread.variance / number)
            slope = maximiser.functions.linear @ jacobian.reshape(-1, len(point))
            width = _formula(spread, probability, slope, model.expression, number, delta, coupled)
        if seen.is_weighted:
            outcomes *= math.sqrt(_weighed(seen, equations.question, probability, spread))
        if width > 0.0 and outcomes > 0.0 and min(width, outcomes) < math.inf:
            yield min(max(math.log(width) - math.log(outcomes), -_CLEAR), _CLEAR)


def _weighed(seen: Observation, question: GraphQuestion, probability: FloatArray, spread: Spread) -> float:
    """By which factor weights raise the variance of a frequency; large where that is not known."""
    assert seen.policy is not None
    own, model = seen.policy.probability, seen.problem.model
    assert isinstance(model, ParametricMDP)
    weight = np.where(own > 0.0, own * np.nan_to_num(seen.ratio), 0.0)
    equations = PolicyEquations.of(question, weight, everywhere=False)
    solved = None if equations is None else equations.passes(probability[model.expression])
    if seen.objective.is_reward or solved is None or not solved[0] >= spread.value:
        return math.exp(2.0 * _CLEAR)
    return max(solved[0] - spread.value**2, 1e-12) / max(spread.variance, 1e-12)


def _points(maximiser: LikelihoodMaximiser) -> list[FloatArray]:
    """The middle of the domain, and points on both sides of it, half of the way to its faces."""
    middle, (faces, bounds) = maximiser.start, maximiser.faces
    if not len(middle):
        return [middle]
    result = [middle]
    random = np.random.default_rng(0)
    for _ in range((POINTS - 1) // 2):
        way = random.standard_normal(len(middle)) * np.sqrt(1.0 / np.diag(maximiser.smoothing_at(middle)))
        for sign in (1.0, -1.0):
            rise = faces @ (sign * way)
            room = np.maximum(bounds - faces @ middle, 0.0)
            with np.errstate(divide="ignore"):
                reach = float(np.where(rise > 0.0, room / rise, np.inf).min(initial=1.0))
            result.append(middle + 0.5 * reach * sign * way)
    return result


def _formula(
    spread: Spread,
    probability: FloatArray,
    slope: FloatArray,
    expression: IndexArray,
    number: int,
    delta: float,
    coupled: bool,
) -> float:
    """About the width over a likelihood region: at one parameter vector, or at the end of every interval."""
    size, events = slope.shape[1], expression[spread.transition]
    met = np.bincount(events, spread.count, len(probability))
    possible = np.maximum(probability, 1e-12)
    information = (slope * (met / possible**2)[:, None]).T @ slope
    inverse = np.linalg.pinv(information, hermitian=True)
    level = 2.0 * (math.log(1.0 / delta) + 1.15 * size + 1.5)
    gradient = np.bincount(events, spread.leverage, len(probability)) @ slope
    together = 2.0 * math.sqrt(max(level * float(gradient @ inverse @ gradient), 0.0) / number)
    if coupled:
        return together
    half = np.sqrt(np.maximum(level * np.einsum("ei,ij,ej->e", slope, inverse, slope), 0.0) / number)
    most = np.minimum(half, np.maximum(probability, 1.0 - probability))
    return max(float(np.abs(spread.leverage) @ most[events]), together)


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean and variance of returns, expected counts of transitions, what more of each adds to the value."""

    value: float
    variance: float
    transition: OffsetArray
    count: FloatArray
    leverage: FloatArray


def _spread_of(equations: PolicyEquations, probability: FloatArray) -> Spread | None:
    """How what a play brings varies; None where that cannot be told."""
    solved = equations.passes(probability)
    if solved is None:
        return None
    size, variance, met = len(equations.reward), 0.0, np.zeros(len(equations.reward))
    leverage = np.zeros(len(equations.row))
    chance, rate = equations.chance * probability[equations.transition], equations.question.rate
    for visits, values in solved[1]:
        met += visits
        following = np.where(equations.column >= 0, values[equations.column], 0.0)
        mean = np.bincount(equations.row, chance * following, size)
        square = np.bincount(equations.row, chance * following**2, size) * rate
        variance += float(visits @ np.maximum(square - mean**2, 0.0))
        leverage += visits[equations.row] * equations.chance * (following - mean[equations.row] / rate)
    count = met[equations.row] * chance / rate
    variance /= 1.0 if rate == 1.0 else 1.0 + rate
    return Spread(solved[0], variance, equations.transition, count, leverage)
