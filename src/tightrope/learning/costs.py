"""Costs of a log in learning: when they are used, of which rewards they speak, and which part of δ they get.

Costs are used where something is stated about them, a range or a bound on their standard deviation: no
confidence statement about a mean holds without. They are those of the rewards that the property asks for.
Half of δ is theirs, all of it where no probability is unknown; this is decided before looking.
"""

from __future__ import annotations

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.learning.options import LearnOptions
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.rewards import ParametricReward
from tightrope.statistics.costs import CostIntervals, cost_intervals
from tightrope.statistics.estimates import check_delta


def learn_costs(
    model: ParametricMDP, objective: Objective, counts: Counts, delta: float, options: LearnOptions
) -> CostIntervals | None:
    """The intervals of the rewards that are asked for, where costs are to be used."""
    assumed = options.cost_model
    if assumed is None:
        return None
    check_delta(delta)
    named = "`cost_range`" if assumed.bounds is not None else "`cost_sd`"
    reward = objective.reward if objective.is_reward else None
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
