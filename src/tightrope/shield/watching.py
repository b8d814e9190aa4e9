"""Shields against logs: each step's price, the slack, and a time-uniform test of the success rate.

Episodes that take a forbidden action or are cut off count as successes from there; those that begin with one
do not count.
"""

from __future__ import annotations

import numpy as np

from tightrope.errors import InputError
from tightrope.model.policy import Policy
from tightrope.model.states import show_state
from tightrope.monitoring.promise import Promise, PromiseWatch
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.problem import Problem
from tightrope.shield import Shield

ROUNDING = 1e-9
"""Prices up to this may be rounding."""


class ShieldWatch(PromiseWatch):
    """Check whether the agents of a log use a shield, and whether its bound holds for them.

    `steps` were followed, `priced` had a price beyond rounding, `spent` is the total slack used, `least` the
    smallest slack left, `forbidden` counts steps that the shield does not allow.
    """

    def __init__(self, problem: Problem, shield: Shield, alpha: float):
        structure, facts = problem.model.structure, shield.table.facts
        if not shield.table.is_about(structure):
            raise InputError("the shield is about another model")
        self.shield, self.follows = shield.fresh(), False
        least, anything = facts.maximises != facts.complement, Policy.uniform(structure)
        promise = Promise(problem.objective, anything, self.shield.promise, least, "the shielded agent")
        super().__init__(structure, promise, alpha)
        self.steps = self.priced = self.forbidden = 0
        self.spent, self.least = 0.0, shield.initial_slack

    def observe(self, transition: OffsetArray, begins: BoolArray, event: int) -> None:
        """Take in events in order; one that the shield does not allow ends the promise of its episode."""
        shield, structure = self.shield, self.shield.table.structure
        followed, left = transition.astype(np.int64), 0
        for place, choice in enumerate(structure.transition_choice[transition].tolist()):
            state = int(structure.choice_state[choice])
            if begins[place]:
                shield.start()
                self.follows = state == structure.initial
            if not self.follows:
                continue
            shown, before = show_state(structure, state), shield.slack
            try:
                shield.allowed(shown)
                shield.take(shown, shield.choices[choice])
            except InputError:
                followed[place], self.follows = -1, False
                self.forbidden, left = self.forbidden + 1, left + (not begins[place])
                continue
            self.steps, self.priced = self.steps + 1, self.priced + (shield.slack < before - ROUNDING)
            self.spent, self.least = self.spent + before - shield.slack, min(self.least, shield.slack)
        super().observe(followed, begins, event)
        self.left, self.cut = self.left + left, self.cut - left
