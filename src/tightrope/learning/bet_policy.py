"""The policy that a slab (betting region) bets on, and the gradient of its value as data come in.

It is the given policy, otherwise the best one at the estimate or several candidates
(`search.betting` of the checker), which are then evaluated. The slab holds for all policies. Bets are on
both ends of a given policy's value, on the guaranteed end otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tightrope.data.design import SamplingDesign
from tightrope.errors import InputError
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import remember
from tightrope.statistics.bets import WIDER_SHARE, Ends
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.search import betting
from tightrope_check.search.value_slopes import MOST_CYCLIC, GraphQuestion


def why_no_bets(
    model: ParametricMDP,
    objective: Objective,
    given: Policy | None = None,
    design: SamplingDesign | None = None,
) -> str | None:
    """Say why no slab is chosen, by model, question and design; a given policy must precede the data."""
    if isinstance(objective.reward, ParametricReward):
        return "the rewards depend on parameters"
    if _is_unrolled(given, objective):
        return "the policy depends on the step"
    if given is not None and (design is None or given.digest not in design.bet_on):
        return "it was not planned to bet on the given policy"
    if model.states > MOST_CYCLIC and not has_layers(model, objective):
        return f"the model has cycles and more than {MOST_CYCLIC:,} states"
    return None


def _is_unrolled(given: Policy | None, objective: Objective) -> bool:
    """Whether what would be bet on depends on the step, and cannot be."""
    if given is not None:
        return given.depends_on_step
    return objective.depends_on_step and not objective.is_bounded


def bets_of(
    model: ParametricMDP, objective: Objective, given: Policy | None, design: SamplingDesign, unasked: bool
) -> PolicyBets | None:
    """Bets on a given policy (if `unasked`, only one that was there before the data), or on the best one."""
    if not unasked:
        if given is not None and design.bet_on and given.digest not in (*design.bet_on, design.followed):
            raise InputError(
                "the data were collected for bets on other policies than the given one",
                hint='use another region, such as `region="likelihood"`',
            )
        return PolicyBets(model, objective, given, design)
    if why_no_bets(model, objective) is not None:
        return None
    known = given is not None and given.digest in (*design.bet_on, design.followed)
    own = given if known and given is not None and not given.depends_on_step else None
    bets = PolicyBets(model, objective, own, design, both=given is not None)
    bets.guard_share = WIDER_SHARE if own is None else None
    return bets


class PolicyBets:
    """The gradient of the policy that is bet on; asked for in the order in which data come."""

    def __init__(
        self,
        model: ParametricMDP,
        objective: Objective,
        given: Policy | None = None,
        design: SamplingDesign | None = None,
        both: bool = False,
    ):
        """`both`: both ends of the value count, also of a policy that is still to be found."""
        if _is_unrolled(given, objective):
            raise InputError(
                "a slab (betting region) supports policies with one choice per state, or the optimal "
                "policy of a step-bounded property; this policy depends on the step",
                hint='use `region="likelihood"`',
            )
        self.model, self.objective = model, objective
        self.functions = Outcomes.of(model).functions
        self.given = given
        self._targets = betting.TargetPolicies(
            question_of(model, objective), None if given is None else given.probability
        )
        self._known: dict[tuple[bytes, float | None], tuple[Any, bool, list[FloatArray] | None]] = {}
        self.ends = Ends.LOWER if objective.maximises else Ends.UPPER
        if given is not None or both:
            self.ends = Ends.BOTH
        self.guard_share: float | None = None
        self.words = self._words(() if design is None else design.bet_on)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies that are bet on now, unless they depend on the step."""
        if self.given is not None:
            return (self.given,)
        held = self._targets.held
        return tuple(Policy(self.model.structure, one) for one in held if isinstance(one, np.ndarray))

    def __call__(
        self, x: FloatArray, share: float | None, nearby: Callable[[], betting.PointsAround] | None = None
    ) -> list[FloatArray] | None:
        """∂V/∂x at coordinates x when this share of the plan has come, of every policy that is bet on."""
        targets, key = self._targets, (x.tobytes(), share)
        if key in self._known:  # growing data are looked at again: what was bet on then is bet on now
            targets.held, targets.frozen, gradients = self._known[key]
            return gradients
        functions, expression = self.functions, self.model.expression
        probability = functions.chances(x)
        looks = nearby is not None and not targets.frozen
        every = targets.slopes(probability[expression], share, nearby() if looks and nearby else None)
        gradients = None
        if every is not None:
            sums = (np.bincount(expression[move], slope, len(probability)) for move, slope in every)
            gradients = [each @ functions.linear for each in sums]
        self._known[key] = targets.held, targets.frozen, gradients
        return gradients

    def _words(self, planned: tuple[str, ...]) -> str:
        if self.given is None:
            return "bets are on the policy that was best by the data before them"
        if self.given.digest in planned:
            return "bets are on the given policy, as was planned before the data came"
        return "bets are on the given policy: assumes that it was not chosen by looking at these data"


@remember
def has_layers(model: ParametricMDP, objective: Objective) -> bool:
    """Whether no play of undecided states comes back; it takes as long as solving, and is found once."""
    return question_of(model, objective).layers is not None


def question_of(model: ParametricMDP, objective: Objective) -> GraphQuestion:
    """The plain arrays of a question about a model."""
    structure, reward = model.structure, objective.reward
    return GraphQuestion(
        structure.choice_start,
        structure.transition_start,
        structure.successor,
        structure.initial,
        objective.kind.name,
        objective.agent is Direction.MAX,
        objective.complement,
        objective.lower_steps,
        objective.upper_steps,
        objective.discount,
        None if reward is None else reward.per_choice(structure),
        objective.target,
        objective.allowed,
        objective.terminal,
    )
