"""Learning about controllers that see observations.

A controller is given, or chosen at an estimate and where it does worst (`tightrope.beliefs`). Its value is
learned on the chain that it makes of the model, beside a copy that keeps the counts of other actions. The
bound holds for *every* controller, so a choice by the same data costs no confidence; slabs are refused.
Observations are assumed independent given the state, which every result notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from tightrope.beliefs.robust import Rivals, Value, weigh
from tightrope.beliefs.solve import evaluate
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.learning.options import LearnOptions
from tightrope.learning.pipeline import Pipeline, PlainQuestions, Request
from tightrope.logic.product_problem import ProductLift
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.pomdp import POMDP, Controller, controller_of
from tightrope.model.product import Product, chain_of, lift_objective
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.problem import Problem, require_value
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes

WORK = 30_000
"""What is looked for at each point ends after so much work (`tightrope.beliefs`), some seconds."""


@dataclass(frozen=True, eq=False, repr=False)
class ControllerLift(ProductLift):
    """The chain of a controller beside the model it was made of."""

    chosen: Controller | None = field(default=None, repr=False)
    rivals: Rivals | None = field(default=None, repr=False, compare=False)
    """What was found at the points at which the controller was chosen; None where it was given."""

    @property
    def free_state(self) -> int:
        """The initial state of the model beside the chain: no controller does better than who sees all."""
        return self.product.structure.states - self.base.states + self.base.initial

    @property
    def optima(self) -> Mapping[tuple[Fraction, ...], float]:
        solved = {} if self.rivals is None else self.rivals.solved
        return {p: one.upper if one.objective.maximises else one.lower for p, one in solved.items()}

    @property
    def cut(self) -> bool:
        return self.rivals is not None and self.rivals.cut

    def controller(self, policy: Policy) -> Policy:
        """The controller, as a policy with a memory: the chain has no other."""
        assert self.chosen is not None
        return self.chosen.policy


def controlled(problem: Problem, controller: Controller, rivals: Rivals | None = None) -> Problem:
    """The question about one controller of a partially observable model, on the chain that it makes."""
    pomdp = problem.model
    assert isinstance(pomdp, POMDP)
    if not isinstance(pomdp.model, ParametricMDP):
        raise InputError("learning requires parameters, and this model has intervals")
    base = pomdp.model
    product = _chain_beside(base.structure, controller.policy)
    query = problem.query.with_objective(lift_objective(problem.query.objective, product), product.structure)
    return Problem.lifted(ControllerLift(base, product, chosen=controller, rivals=rivals), query)


def _chain_beside(base: Structure, policy: Policy) -> Product:
    """The states that a policy with a memory reaches, with the choice it takes, then the model itself."""
    chain, rows = chain_of(base, policy), policy.memory
    assert rows is not None
    own = chain.structure
    built = Structure(
        choice_start=np.concatenate([own.choice_start[:-1], own.states + base.choice_start]),
        transition_start=np.concatenate([own.transition_start, own.transitions + base.transition_start[1:]]),
        successor=np.concatenate(
            [own.successor.astype(np.int64), base.successor.astype(np.int64) + own.states]
        ),
        action=np.concatenate([own.action_of_choice, base.action_of_choice]),
        action_names=base.action_names,
        declared_mdp=True,
    )
    return Product(
        built,
        np.concatenate([chain.state, np.arange(base.states)]).astype(np.int32),
        np.concatenate([chain.memory, np.full(base.states, rows.memories)]).astype(np.int32),
        np.concatenate([chain.choice, np.arange(base.choices)]),
        np.concatenate([chain.transition, np.arange(base.transitions)]),
    )


class ObservedControllers(PlainQuestions):
    """The reduction of partially observable models."""

    def apply(self, problem: Problem) -> Problem:
        if not problem.query.is_plain:
            raise problem.query.refusal()
        require_value(problem)
        return problem

    def start(self, problem: Problem, request: Request) -> Pipeline:
        pomdp, options = problem.model, request.options
        assert isinstance(pomdp, POMDP)
        counts = request.counts(pomdp.model)
        lifted = observed_problem(problem, counts, options, request.policy)
        return Pipeline.start(lifted, counts, request.delta, options=options, progress=request.progress)


def observed_problem(problem: Problem, counts: Counts, options: LearnOptions, policy: object) -> Problem:
    """The question about the given controller, or about the best one found at the estimate."""
    pomdp = problem.model
    assert isinstance(pomdp, POMDP)
    if options.region is not None and options.region.bets:
        raise InputError(
            "a slab (betting region) needs a policy that is chosen before the data, and the controller "
            "may depend on them",
            hint='use `region="likelihood"`',
        )
    if policy is not None:
        return controlled(problem, controller_of(pomdp, policy))
    rivals = choose_controller(problem, counts, options)
    return controlled(problem, rivals.chosen, rivals)


def choose_controller(problem: Problem, counts: Counts, options: LearnOptions) -> Rivals:
    """The controller that is best in its worst case over the estimate and rivals' worst points."""
    pomdp = problem.model
    assert isinstance(pomdp, POMDP) and isinstance(pomdp.model, ParametricMDP)
    places = _Places.of(pomdp.model, counts)

    def worst(controller: Controller, value: Value) -> tuple[Fraction, ...] | None:
        return tuple(places.worst(lambda point: value(controller, tuple(point)))) if places.is_open else None

    return weigh(
        pomdp,
        problem.query.objective,
        [tuple(places.estimate)],
        worst,
        rounds=ROUNDS,
        precision=1e-3,
        seconds=options.seconds / (1 + ROUNDS),
        work=WORK,
    )


def estimated_value(problem: Problem, counts: Counts, given: object) -> float:
    """What a controller is worth at the estimate, for forecasts."""
    pomdp = problem.model
    assert isinstance(pomdp, POMDP) and isinstance(pomdp.model, ParametricMDP)
    point = _Places.of(pomdp.model, counts).estimate
    controller = controller_of(pomdp, given)
    return sum(evaluate(pomdp, problem.query.objective, controller, point, 1e-6).bounds) / 2


ROUNDS = 2
"""So often a rival is looked for where the best controller so far does worst."""

FAR = 3.0
"""How many standard deviations away the worst parameters are looked for."""

STEP = 1e-4

ROUNDED = 0.25
"""A rounded probability is at most so far from itself, relatively."""


@dataclass(frozen=True, eq=False)
class _Places:
    """Points of the domain: an estimate, and those as far from it as the data allow, by the normal law."""

    model: ParametricMDP
    coordinates: Coordinates
    maximiser: LikelihoodMaximiser
    t: FloatArray
    covariance: FloatArray
    estimate: list[Fraction]

    @staticmethod
    def of(model: ParametricMDP, counts: Counts) -> _Places:
        outcomes = Outcomes.of(model)
        functions, maximiser, t = outcomes.functions, outcomes.maximiser, outcomes.estimate(counts)
        weight = outcomes.by_expression(outcomes.pooled(counts))
        chance = np.clip(functions.at(maximiser.lifted(t)), 1e-6, 1.0)
        slope = functions.linear @ maximiser.jacobian(t)
        information = (slope * (weight / chance**2)[:, None]).T @ slope
        covariance: FloatArray = np.linalg.pinv(information + 1e-6 * np.eye(len(t)), hermitian=True).astype(
            np.float64
        )
        made = _Places(model, outcomes.coordinates, maximiser, t, covariance, [])
        enough = (digits for digits in (2, 3, 4, 5, 6) if made.keeps(chance, t, digits))
        near = [point for digits in enough if (point := made.point(t, digits)) is not None]
        return replace(made, estimate=near[0] if near else made.exactly(t))

    @property
    def is_open(self) -> bool:
        return len(self.t) > 0

    def keeps(self, chance: FloatArray, t: FloatArray, digits: int) -> bool:
        """Whether so many digits leave every probability about as it is."""
        short = self.maximiser.functions.at(self.maximiser.lifted(np.round(t, digits)))
        return bool((np.abs(short - chance) <= ROUNDED * np.minimum(chance, 1 - chance) + 2e-6).all())

    def exactly(self, t: FloatArray) -> list[Fraction]:
        values = [Fraction(value) for value in t.tolist()]
        return [polynomial.evaluate(values) for polynomial in self.coordinates.substitution]

    def point(self, t: FloatArray, digits: int) -> list[Fraction] | None:
        """The point with so many digits, where it is one of the domain."""
        short = np.round(t, digits)
        if not self.maximiser.is_inside(short):
            return None
        exact = [Fraction(round(value * 10**digits), 10**digits) for value in short.tolist()]
        theta = [polynomial.evaluate(exact) for polynomial in self.coordinates.substitution]
        return theta if self.model.parameters.contains(theta) else None

    def worst(self, value: Callable[[Sequence[Fraction]], float]) -> list[Fraction]:
        """Where a value is smallest, to first order, within the data's reach."""
        here, slope = value(self.point(self.t, 6) or self.estimate), np.zeros(len(self.t))
        for k in range(len(self.t)):
            for step in (STEP, -STEP):
                moved = self.t.copy()
                moved[k] += step
                if (near := self.point(moved, 6)) is not None:
                    slope[k] = (value(near) - here) / step
                    break
        down = self.covariance @ slope
        size = math.sqrt(max(float(slope @ down), 0.0))
        for part in (FAR, FAR / 2, FAR / 4, FAR / 8):
            point = None if size == 0 else self.point(self.t - part * down / size, 6)
            if point is not None:
                return point
        return self.estimate
