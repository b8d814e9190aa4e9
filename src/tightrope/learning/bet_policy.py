"""Which policy a slab bets on, and the gradient of its value as data come in.

A given policy is bet on itself. Otherwise it is the policy that is optimal at the estimate each time bets are
renewed, until a share of the plan has come: from then on it stays, since bets on policies with different
gradients are narrow for none of them. The slab holds for all policies, whichever was bet on; the one that was
is evaluated beside the one that synthesis finds. Of a given policy both ends of the value are bet on, of a
policy that is still to be found the one that is guaranteed.
"""

from __future__ import annotations

import numpy as np

from tightrope.coupled.gradient import ValueGradient
from tightrope.data.design import SamplingDesign
from tightrope.errors import InputError
from tightrope.formats.policy import Policy
from tightrope.learning.policies import depends_on_step, maximises
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray
from tightrope.solver.solve import solve
from tightrope.statistics.bets import Ends
from tightrope.statistics.coordinates import AffineFunctions, Coordinates

FROZEN_FROM = 0.25
"""Of the plan."""


class BetPolicy:
    """The gradient of the policy that is bet on; asked for in the order in which data come."""

    def __init__(
        self,
        model: ParametricMDP,
        objective: Objective,
        given: Policy | None = None,
        design: SamplingDesign | None = None,
    ):
        by_step = given.depends_on_step if given is not None else depends_on_step(objective)
        if by_step:
            raise InputError(
                "a slab bets on a policy that takes one choice per state, and here it depends on the step",
                hint='use `region="likelihood"`',
            )
        self.model, self.objective = model, objective
        coordinates = Coordinates.of(model.expressions, model.parameters)
        self.functions: AffineFunctions = coordinates.functions(model.expressions)
        self.policy: Policy | None = None
        self._frozen = False
        self._known: dict[bytes, tuple[Policy, FloatArray | None]] = {}
        self._gradient: ValueGradient | None = None
        self._gradient_of: Policy | None = None
        if given is not None:
            self._take(given)
            self._frozen = True
        self.ends = Ends.BOTH if given is not None else Ends.LOWER if maximises(objective) else Ends.UPPER
        self.words = self._words(given is not None, () if design is None else design.bet_on)

    def __call__(self, x: FloatArray, share: float | None) -> FloatArray | None:
        """∂V/∂x at coordinates x when this share of the plan has come."""
        key = x.tobytes()
        if share is None and not self._frozen and key in self._known:  # growing data are looked at again
            self.policy, gradient = self._known[key]
            return gradient
        if not self._frozen and (self.policy is None or share is None or share < 1.0):
            self._take(self._optimal(x))
            self._frozen = share is not None and share >= FROZEN_FROM
        elif self._gradient is None or self._gradient_of is not self.policy:
            assert self.policy is not None
            self._take(self.policy)
        gradient = None if self._gradient is None else self._gradient.at(x)
        if share is None and self.policy is not None:
            self._known[key] = self.policy, gradient
        return gradient

    def _words(self, given: bool, planned: tuple[str, ...]) -> str:
        if not given:
            return "bets are on the policy that was best by the data before them"
        assert self.policy is not None
        if self.policy.digest in planned:
            return "bets are on the given policy, as was planned before the data came"
        return "bets are on the given policy: assumes that it was not chosen by looking at these data"

    def _take(self, policy: Policy) -> None:
        self.policy = policy
        if self._gradient_of != policy:
            self._gradient = ValueGradient.of(self.model, self.objective, policy, self.functions)
        self._gradient_of = policy

    def _optimal(self, x: FloatArray) -> Policy:
        probability = np.clip(self.functions.constant + self.functions.linear @ x, 0.0, 1.0)
        plain = MDP(self.model.structure, probability[self.model.expression])
        return solve(plain, self.objective, precision=1e-9).policy
