"""Constant support by assumption: lower bounds of 0 raised, so that nature can cut no transition."""

from __future__ import annotations

import numpy as np

from tightrope.errors import InputError
from tightrope.model.mdp import MDP, IntervalMDP


def assume_support(model: MDP | IntervalMDP, smallest: float) -> MDP | IntervalMDP:
    """The model in which every transition with a positive upper bound has at least probability
    min(smallest, upper).
    """
    if not 0 < smallest < 1:
        raise InputError(f"the smallest probability assumed is {smallest}, not within (0, 1)")
    if isinstance(model, MDP):
        return model
    raised = np.where((model.lower == 0) & (model.upper > 0), np.minimum(smallest, model.upper), model.lower)
    total = np.add.reduceat(raised, model.transition_start[:-1])
    over = np.flatnonzero(total > 1 + 1e-12)
    if len(over):
        choice = int(over[0])
        raise InputError(
            f"{model.structure.choice_name(choice)}: with at least {smallest} for every transition "
            f"the lower bounds sum to {total[choice]:.6g} > 1",
            hint="assume a smaller probability",
        )
    return IntervalMDP(model.structure, raised, model.upper)
