"""Certificates of chains in continuous time: at a point, over a domain, and with learned rates.

The problem is the chain itself with the question (`tightrope_check.rates`). Data are jumps and exposures, and
the statement is an interval for every class of rates. Vectors are searched over the interval chain that the
checker derives; where times are bounded the checker makes all steps, and the claim is what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from tightrope.certify import problem as problems
from tightrope.certify.learned import as_contradiction, met_with_episodes, stated_numbers, with_episodes
from tightrope.certify.solved import average_claim, to_words, value_hints
from tightrope.data.exposure import Exposure, read_exposure
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved
from tightrope.learning.rates import RateResult, observe_times, timed_path, timed_reach
from tightrope.logic.long_run import read_average
from tightrope.logic.timed import time_of
from tightrope.model.continuous import CTMC, TIME, ParametricCTMC
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Point
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.rounding import round_up
from tightrope.prism.parse.property_syntax import RewardFormula, RewardOperator
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import reward_structure_of
from tightrope.problem import AnyModel, Problem
from tightrope.solver.solve import solve
from tightrope.statistics.rates import gamma_poisson
from tightrope_check import problem as certified
from tightrope_check.budget import WorkBudget
from tightrope_check.checker import prove
from tightrope_check.evidence import Data, Domain, LearnedHints
from tightrope_check.fields import Polynomial
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate, CertifiedProblem, Claim, ValueHints
from tightrope_check.rates import PoissonWindow, RateSets
from tightrope_check.statistics.rates import RateClass, classes_of, excludes

_COVERED = (
    "certificates of chains in continuous time are about P over F, G, U or W, with bounds on time or without,"
    " about R with F, C<=t or I=t, and about averages",
    "leave the certificate out: the answer is proved without one, or ask for its parts",
)
_ENDS = (Direction.MIN, Direction.MAX)


def rate_problem(
    model: ParametricCTMC | CTMC,
    query: Query,
    theta: Sequence[Fraction] | None,
    data: Data | None = None,
) -> CertifiedProblem:
    """What is asked of a chain, at `theta` or over its domain; a chain of numbers has the point ()."""
    objective, time, earned = _question(model, query)
    domain: Domain | None = None
    point: tuple[Fraction, ...] | None = ()
    if isinstance(model, CTMC):
        exact = model.exact.to_fractions()
        polynomial: tuple[Polynomial, ...] = tuple({(): rate} if rate else {} for rate in exact)
    else:
        polynomial, domain = problems.to_polynomials(model.expressions), problems.to_domain(model.parameters)
        point = None if theta is None else tuple(Fraction(value) for value in theta)
    if isinstance(earned, ParametricReward):
        number = len(polynomial) + earned.expression.astype(np.int64)
        polynomial += problems.to_polynomials(earned.expressions)
        objective = replace(objective, earned=number)
    elif earned is not None:
        objective = replace(objective, reward=np.asarray(earned, dtype=np.float64))
    return CertifiedProblem(
        problems.to_graph(model.structure),
        objective,
        expression=model.expression.astype(np.int64),
        polynomial=polynomial,
        theta=point,
        domain=domain if point is None else None,
        data=data,
        time=time,
    )


def _question(
    model: ParametricCTMC | CTMC, query: Query
) -> tuple[certified.CertifiedObjective, tuple[Fraction, ...], object]:
    """The objective, its times, and what states earn per unit of time."""
    operator = query.operator
    path, plain = operator.path, query.kind in (QueryKind.PLAIN, QueryKind.INSTANTANEOUS)
    blank = certified.CertifiedObjective("AVERAGE", "MAX", "ANY", False, 0)
    if query.options.discount is not None or query.options.terminal_reward is not None:
        raise InputError(_COVERED[0], hint=_COVERED[1])
    if query.kind is QueryKind.LONG_RUN:
        share = None if operator.is_reward else read_average(query)[0].per_choice(model.structure)
        return blank, (), _earned(model, query) if share is None else share
    if plain and isinstance(path, RewardFormula):
        with query.source.complaints():
            formulas = query.state_formulas()
            if path.operator is RewardOperator.REACH and path.target is not None:
                target = formulas.states(path.target)
                return replace(blank, kind="REACH_REWARD", target=target), (), _earned(model, query)
            if path.bound is not None:
                moment = time_of(path.bound, formulas)
                if path.operator is RewardOperator.CUMULATIVE:
                    return replace(blank, kind="TOTAL"), (Fraction(0), moment), _earned(model, query)
                if _is_time(query):
                    return replace(blank, kind="TOTAL"), (moment,), np.ones(model.states)
                known = reward_structure_of(operator, query.structure)
                rate = known if isinstance(known, ParametricReward) else known.per_choice(model.structure)
                return replace(blank, kind="TOTAL"), (moment,), rate
    elif (simple := timed_path(query)) is not None:
        sought, bound, complement = simple
        late = bound is not None and bound.begin == 0 and bound.after_start
        if sought.kind is ObjectiveKind.UNTIL and not late:
            ends = () if bound is None else (bound.begin, bound.end)
            until = replace(blank, kind="UNTIL", target=sought.target, allowed=sought.allowed)
            return replace(until, complement=complement), tuple(end for end in ends if end is not None), None
    raise InputError(f"{query.text}: {_COVERED[0]}", hint=_COVERED[1])


def _earned(model: ParametricCTMC | CTMC, query: Query) -> object:
    """What states earn per unit of time, events included: expressions, or numbers."""
    if _is_time(query):
        return np.ones(model.states)
    reward = reward_structure_of(query.operator, query.structure)
    structure = query.structure
    name = next(name for name, known in structure.rewards.items() if known is reward)
    return model.earned[name]


def _is_time(query: Query) -> bool:
    """Whether the rewards are time itself, which every chain has."""
    return query.operator.reward_name == TIME and TIME not in query.structure.rewards


def to_rate_data(exposure: Exposure, delta: float) -> Data:
    """Jumps and exposures, in the words of a certificate."""
    transition = np.flatnonzero(exposure.jumps)
    return Data(
        delta=float(delta),
        method="gamma-poisson",
        shared_by="events",
        design="adaptive",
        repeats=False,
        censored=False,
        anytime=True,
        batch_start=np.array([0, len(transition)]),
        batch_transition=transition.astype(np.int64),
        batch_count=exposure.jumps[transition].astype(np.int64),
        stated=stated_numbers(exposure.ends),
        waited=exposure.waited.astype(np.float64),
    )


def learned_rate_certificate(result: RateResult, about: Mapping[str, object] | None = None) -> Certificate:
    """The certificate of a learned value."""
    if result.value is None or not result.verdict.is_proved:
        raise CannotCertify(
            f"no certificate is written: the result is {result.verdict.word.value}, so there is nothing to "
            f"certify: {result.verdict.why}"
        )
    if result.problem is None:
        raise InputError(
            "certificates do not cover answers on revised models in continuous time",
            hint="leave the certificate out, or certify the answer on the model itself",
        )
    seen = result.outcomes if isinstance(result.outcomes, ObservedOutcomes) else None
    data = to_rate_data(result.data, result.ledger.delta - (result.ledger.of_outcomes or 0.0))
    problem = rate_problem(result.model, result.problem.query, None, data)
    if seen is not None:
        problem = replace(problem, data=with_episodes(data, seen, problem))
    return rate_certificate(problem, about, seen=seen)


def rate_certificate(
    problem: CertifiedProblem,
    about: Mapping[str, object] | None = None,
    precision: float = 1e-6,
    seen: ObservedOutcomes | None = None,
) -> Certificate:
    """The claim that is proved of a problem in continuous time."""
    hints = None if problem.law == "point" else LearnedHints()
    if problem.data is not None:
        level = problem.data.delta
        classes, _ = classes_of(problem)
        ends = [_interval(one, Fraction(level) / len(classes)) for one in classes]
        lower, upper = (np.array([end[side] for end in ends]) for side in (0, 1))
        hints = LearnedHints(rate_lower=lower, rate_upper=upper)
    claim = Claim("value", "free", *problem.objective.range)
    draft = Certificate(problem, (claim,), (ValueHints(),), hints, to_words(about or {}))
    with as_contradiction(), WorkBudget.of(None, False).counting():  # what a check may take
        sets = RateSets(draft, prove)
        if problem.has_vectors:
            draft = replace(draft, values=(_vectors(sets, precision),))
        low, high = _claimed(draft)
        claim = replace(claim, lower=low, upper=high)
        draft = replace(draft, claims=(claim,))
        draft = replace(draft, claims=met_with_episodes(draft, seen))
    return draft


def _interval(one: RateClass, level: Fraction) -> tuple[float, float]:
    """Ends that the checker confirms, next to those of the confidence sequence."""
    if one.exposure <= 0:
        return 0.0, math.inf
    low, high = gamma_poisson(one.jumps, float(one.exposure), float(one.scale), float(level))
    for slack in (0.0, *(10.0**power for power in range(-15, -2))):
        lower, upper = low * (1 - slack), high * (1 + slack)
        fits = lower == 0 or excludes(one, Fraction(lower), level, False)
        if fits and excludes(one, Fraction(upper), level, True):
            return lower, upper
    raise CannotCertify("no certificate is written: an interval of a rate is not confirmed")


def _claimed(draft: Certificate) -> tuple[float, float]:
    """What is proved at the initial state, in doubles, with room for another order of adding."""
    problem, sets = draft.problem, RateSets(draft, prove)
    checks, (low, high) = sets.ends(FLOAT64)
    if failed := [one for one in checks if not one.passed]:
        raise CannotCertify(f"no certificate is written: {failed[0].name} ({failed[0].detail})")
    room = Fraction(0)
    if problem.time:
        steps = sum(PoissonWindow.of(sets.uniform * time).last + 1 for time in problem.time)
        width = int(np.diff(problem.graph.transition_start).max())
        room = Fraction((steps + 16) * (2 * width + 16), 1 << 51)
    if problem.objective.complement:
        low, high = 1 - high, 1 - low
    scale = 1 if problem.objective.is_probability else max(abs(low), abs(high)) if high != math.inf else 1
    least, most = problem.objective.range
    lower = math.inf if low == math.inf else -round_up(room * scale - low)
    upper = math.inf if high == math.inf else round_up(high + room * scale)
    return max(lower, least) + 0.0, min(upper, most) + 0.0


def _vectors(sets: RateSets, precision: float) -> ValueHints:
    """The vectors of both ends over the checker's own interval chain."""
    boxes, objective = sets.boxes(FLOAT64), sets.problem.objective
    keep = np.ones(len(boxes.successor), dtype=np.bool_)
    keep[np.flatnonzero(~sets.moves) + sets.owner[~sets.moves]] = False
    start = np.append(0, np.cumsum(np.add.reduceat(keep, boxes.transition_start[:-1])))
    bounds = boxes.lower[keep], np.minimum(boxes.upper[keep], 1.0)
    states = np.arange(sets.graph.states + 1)
    structure = Structure(states, start, boxes.successor[keep].astype(np.int32), (sets.graph.initial,))
    hull = IntervalMDP(structure, *bounds)
    solved = partial(solve, precision=precision / 4)
    if objective.kind == "AVERAGE":
        sides = []
        for upward in (False, True):
            priced = sets.priced(upward)
            claim = Claim("value", "free", *priced.objective.range)
            sides.append(average_claim(priced, boxes, claim, hull, _ENDS, precision / 4, solved)[1])
        low, high = sides
        return replace(low, upper=high.upper, upper_bias=high.upper_bias)
    solutions = []
    for direction in _ENDS:
        earned = sets.priced(direction is Direction.MAX).objective.reward
        reward = None if earned is None else RewardStructure(choice=earned)
        kind = ObjectiveKind.UNTIL if reward is None else ObjectiveKind.REACH_REWARD
        sought = Objective(
            kind,
            direction,
            direction,
            target=objective.target,
            allowed=objective.allowed,
            reward=reward,
        )
        solutions.append(solved(hull, sought))
    return value_hints(solutions[0], None, solutions[1])


@dataclass(frozen=True, eq=False)
class OwnChain:
    """What the user has of a chain in continuous time: the model, at a point or over its domain, what is
    asked of it, and a log."""

    model: ParametricCTMC | CTMC
    query: Query | None = None
    theta: Sequence[Fraction] | None = None
    exposure: Exposure | None = None
    policy: None = None

    @property
    def limit(self) -> tuple[str, Fraction] | None:
        """The comparison and the threshold of the property, where it has one."""
        return None if self.query is None else self.query.limit

    def differences(self, certificate: Certificate) -> Iterator[tuple[str, str | None]]:
        """What was given, part by part, each with what the certificate is about instead."""
        problem = certificate.problem
        query = self.query or Problem(self.model, 'P=? [ F "init" ]').query
        mine = rate_problem(self.model, query, self.theta)
        yield from problems.compare_problems(problem, mine, self.query is not None)
        if self.exposure is not None:
            yield "data", self._data_difference(problem)

    def _data_difference(self, problem: CertifiedProblem) -> str | None:
        statement = problem.data
        if statement is None or self.exposure is None:
            return "no data"
        rebuilt = to_rate_data(self.exposure, statement.delta)
        if statement.seen is not None and statement.seen_delta is not None:
            if self.query is None:
                return "what episodes came to, which is counted by the property: give yours as well"
            reach = timed_reach(self.query)
            if isinstance(reach, Unobserved):
                return "episodes, which say nothing of your property"
            share = float(statement.seen_delta[0])
            seen = observe_times(reach, self.exposure, self.model.structure, share)
            if isinstance(seen, Unobserved):
                return f"episodes of other data: {seen.reason}"
            rebuilt = with_episodes(rebuilt, seen, problem)
        return problems.name_difference("other data", problems.first_difference(statement, rebuilt))


def own_chain(
    model: AnyModel, property: Objective | Query | str | None, at: Point | None, data: object, law: str
) -> OwnChain:
    """The user's chain, at a point where the certificate is about one."""
    if not isinstance(model, ParametricCTMC | CTMC):
        raise CannotCertify("this certificate is about a chain in continuous time, and your model is none")
    query = None if property is None else Problem(model, property).query
    if data is not None and not isinstance(data, Exposure):
        data = read_exposure(data, model.structure)
    theta: Sequence[Fraction] | None = None
    if law == "point":
        theta = () if isinstance(model, CTMC) else model.parameters.point(at or {})
    return OwnChain(model, query, theta, data)
