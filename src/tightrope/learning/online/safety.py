"""Exploration whose probability of something bad is certified, over all that the data leave possible.

An episode *ends badly* when it meets one of the states to avoid before it ends otherwise. A design keeps
the bound at the estimate (`tightrope.design.safe`); what counts is the worst case over the present
region. So the randomised policy that is executed is evaluated over the expression sets of that region,
nature against it, as `learn --policy` does it: a verified upper bound that holds with the ledger's
confidence, the same δ, for whatever was designed. As long as it lies above what is allowed, the design is
repeated with a smaller bound at the estimate; then mixtures with the safest policy are tried, and at last
the safest policy itself. Where even that is not certified, exploration is refused.

Episodes that are cut off by a cap end badly less often than is bounded here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.design.design import Design
from tightrope.design.episodes import stationary
from tightrope.design.safe import NoPolicyKeepsBound
from tightrope.errors import CannotCertify, InputError
from tightrope.io.policy import Policy
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.problem import Problem
from tightrope.solver.kernels.interval_kernel import IntervalKernel
from tightrope.solver.solve import Limits
from tightrope.solver.solve_sets import solve_sets

REDESIGNS = 4
HALVINGS = 5
ITERATIONS = 20_000
PRECISION = 1e-4
ROUNDING = 1e-12
"""More than sums of shares lose."""

AS_GOOD = 0.01
"""Of the width: so near to the best the robust policy is as good to explore with."""

Designed = Callable[[float], Design]
"""A design that keeps a bound at the estimate; `NoPolicyKeepsBound` where there is none."""

Occupancy = Callable[[Policy], FloatArray]
"""How often a policy takes each choice in an episode, at the estimate."""


@dataclass(frozen=True, eq=False)
class Explored:
    """What is executed, the design it comes from, and its certified probability of ending badly, where that
    is bounded. `greedy` is the width that the robust policy's episodes would leave, relative to the
    design's.
    """

    design: Design | None
    policy: Policy
    certified: float | None = None
    greedy: float | None = None

    @property
    def greedy_is_as_good(self) -> bool:
        """Whether there is nothing to gain from a design."""
        return self.greedy is not None and self.greedy <= 1.0 + AS_GOOD


@dataclass(frozen=True, eq=False)
class Safety:
    """The states to avoid, where episodes end otherwise, and the bound on the probability."""

    text: str
    bad: BoolArray
    stop: BoolArray
    most: float

    @staticmethod
    def of(model: ParametricMDP, avoid: str, at_most: float, stop: BoolArray) -> Safety:
        """From a state formula such as '"crash"'."""
        if not 0.0 < at_most < 1.0:
            raise InputError(f"`at_most` is {at_most:g}, not a probability between 0 and 1")
        target = _states_of(model, avoid)
        if target[model.initial]:
            raise InputError(f"episodes begin in a state to avoid: {avoid} holds in the initial state")
        if not target.any():
            raise InputError(f"no state is to be avoided: {avoid} holds nowhere")
        return Safety(avoid, target, stop, at_most)

    @property
    def objective(self) -> Objective:
        """The worst probability of ending badly, kept small by the agent."""
        return Objective(
            ObjectiveKind.UNTIL, Direction.MIN, Direction.MAX, target=self.bad, allowed=~self.stop | self.bad
        )

    def certified(self, sets: Sets, policy: Policy | None) -> tuple[float, Policy]:
        """A verified upper bound for the policy, or for the best one where none is given, over the sets."""
        found = solve_sets(
            IntervalKernel.of(sets.interval_model()),
            self.objective,
            policy=policy,
            precision=PRECISION,
            limits=Limits(ITERATIONS),
        )
        return min(float(found.upper[sets.model.initial]), 1.0), policy or found.policy.at(0)

    def certified_drawn(self, sets: Sets, policies: Sequence[tuple[float, Policy]], cap: int | None) -> float:
        """A verified upper bound where one of the policies is drawn per episode, by its share: nature may do
        its worst against each. Elsewhere than at the estimate that is not what the one randomised policy
        meets. Policies that depend on the step are followed for `cap` steps.
        """
        kernel, total = IntervalKernel.of(sets.interval_model()), 0.0
        for share, policy in policies:
            objective = self.objective
            if policy.depends_on_step:
                assert cap is not None
                objective = replace(objective, upper_steps=cap)
            found = solve_sets(
                kernel, objective, policy=policy, precision=PRECISION, limits=Limits(ITERATIONS)
            )
            total += share * min(float(found.upper[sets.model.initial]), 1.0)
        weight = sum(share for share, _ in policies)
        return min(total / weight * (1.0 + ROUNDING), 1.0)

    def explore(self, sets: Sets, designed: Designed, occupancy: Occupancy) -> Explored:
        """The best exploration that is certified; `CannotCertify` where none is."""
        least, safest = self.certified(sets, None)
        if least > self.most:
            raise CannotCertify(
                f"no exploration is certified to meet {self.text} with probability at most {self.most:g}: "
                f"with the data so far the safest policy is certified at {least:.4g}\n"
                "hint: begin with data that were collected otherwise (`data`), or allow more with `at_most`"
            )
        bound, found = self.most, None
        for _ in range(REDESIGNS):
            try:
                found = designed(bound)
            except NoPolicyKeepsBound:
                break
            reached, _ = self.certified(sets, found.policy)
            if reached <= self.most:
                return Explored(found, found.policy, reached)
            bound -= 1.05 * (reached - self.most)
            if bound <= 0.0:
                break
        careful = occupancy(safest)
        low, high, best = 0.0, 1.0, Explored(found, safest, least)
        for _ in range(HALVINGS if found is not None else 0):
            assert found is not None
            share = 0.5 * (low + high)
            mixed = stationary(safest.structure, share * found.occupancy + (1.0 - share) * careful)
            reached, _ = self.certified(sets, mixed)
            if reached <= self.most:
                low, best = share, Explored(found, mixed, reached)
            else:
                high = share
        return best


def bad_states(objective: Objective, states: int) -> BoolArray:
    """States in which an objective is lost: what ties are broken against where nobody asked."""
    nothing: BoolArray = np.zeros(states, dtype=np.bool_)
    if objective.kind is not ObjectiveKind.UNTIL or objective.agent is not Direction.MAX:
        return nothing
    if objective.complement or objective.allowed is None or objective.target is None:
        return nothing
    return ~objective.allowed & ~objective.target


def _states_of(model: ParametricMDP, avoid: str) -> BoolArray:
    """The states of a formula; in brackets, so that no step bound or path is taken for one."""
    try:
        target = Problem(model, f"Pmax=? [ F ({avoid}) ]").objective.target
    except InputError as error:
        raise InputError(
            f"`avoid` is {avoid!r}, no formula of states: {error.message}",
            hint=error.hint or "a formula of states is '\"crash\"' or 'x=3 & !\"goal\"'",
        ) from error
    assert target is not None
    return target
