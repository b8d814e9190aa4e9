"""Policies of a model: memoryless ones, deterministic or randomised, and those that depend on the step.

Their files: `tightrope.formats.policy_write` and `tightrope.formats.policy_read`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.find_state import find_state
from tightrope.model.step_choices import StepChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Policy:
    """`probability[c]`: how likely choice c is taken in its state."""

    probability: FloatArray
    structure: Structure

    def __post_init__(self) -> None:
        probability = np.ascontiguousarray(self.probability, dtype=np.float64).view()
        probability.flags.writeable = False
        object.__setattr__(self, "probability", probability)
        structure = self.structure
        if probability.shape != (structure.choices,):
            raise InputError(f"the policy has {len(probability)} entries for {structure.choices} choices")
        wrong = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
        if len(wrong):
            raise InputError(
                f"the policy takes {structure.choice_name(int(wrong[0]))} with probability "
                f"{probability[wrong[0]]:.12g}, not within [0, 1]"
            )
        total = np.add.reduceat(probability, structure.choice_start[:-1])
        wrong = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
        if len(wrong):
            state = int(wrong[0])
            raise InputError(
                f"the policy's probabilities in state {structure.state_name(state)} sum to "
                f"{total[state]:.12g}, not 1"
            )

    @staticmethod
    def uniform(structure: Structure) -> Policy:
        """Every choice of a state alike."""
        choices = np.diff(structure.choice_start)
        return Policy(np.repeat(1 / choices, choices), structure)

    @staticmethod
    def deterministic(structure: Structure, choice: npt.NDArray[np.integer]) -> Policy:
        """Takes `choice[s]`, the index of a choice of the model, in state s."""
        taken = np.asarray(choice)
        if taken.shape != (structure.states,):
            raise InputError(f"the policy names {len(taken)} choices for {structure.states} states")
        wrong = np.flatnonzero((taken < structure.choice_start[:-1]) | (taken >= structure.choice_start[1:]))
        if len(wrong):
            state = int(wrong[0])
            raise InputError(
                f"the policy takes choice {taken[state]} in state {structure.state_name(state)}, "
                f"whose choices are {structure.choice_start[state]}..{structure.choice_start[state + 1] - 1}"
            )
        probability = np.zeros(structure.choices)
        probability[taken] = 1.0
        return Policy(probability, structure)

    @cached_property
    def is_deterministic(self) -> bool:
        return bool(np.all((self.probability == 0) | (self.probability == 1)))

    @cached_property
    def choice(self) -> IndexArray:
        """The choice taken in each state by a deterministic policy."""
        if not self.is_deterministic:
            raise ValueError("a randomised policy does not take one choice a state")
        return np.flatnonzero(self.probability).astype(np.int32)

    def actions(self, state: Any) -> dict[str, float]:
        """What the policy does in a state, as its author or its variables call it: actions, how likely each.

        Choices of one action count together.
        """
        number = find_state(self.structure, state)
        taken: dict[str, float] = {}
        for choice in range(*self.structure.choice_start[number : number + 2].tolist()):
            if self.probability[choice] > 0:
                name = self.structure.action_name(choice)
                taken[name] = taken.get(name, 0.0) + float(self.probability[choice])
        return taken

    @property
    def digest(self) -> str:
        """A name for what the policy does."""
        return sha256(self.probability.tobytes()).hexdigest()

    @property
    def for_solver(self) -> OffsetArray | FloatArray:
        """As `solve` takes it: a choice per state, or a probability per choice."""
        return self.choice.astype(np.int64) if self.is_deterministic else self.probability


@dataclass(frozen=True, eq=False)
class StepPolicy:
    """A choice per state and step; the step counts from 0 at the beginning of a play."""

    choices: StepChoices
    structure: Structure

    def __post_init__(self) -> None:
        self.choices.refuse_for(self.structure)

    def actions(self, state: Any, step: int) -> dict[str, float]:
        """What the policy does in a state at a step: the one action."""
        runs, number = self.choices, find_state(self.structure, state)
        if step < 0:
            raise InputError(f"steps count from 0, and {step} is before")
        first, last = runs.start[number : number + 2].tolist()
        run = first + int(np.searchsorted(runs.step[first:last], step, side="right")) - 1
        return {self.structure.action_name(int(runs.choice[run])): 1.0}

    @property
    def digest(self) -> str:
        """A name for what the policy does."""
        runs = self.choices
        return sha256(runs.start.tobytes() + runs.step.tobytes() + runs.choice.tobytes()).hexdigest()

    @property
    def for_solver(self) -> StepChoices:
        return self.choices


AnyPolicy = Policy | StepPolicy


def solver_policy(policy: Any, structure: Structure) -> OffsetArray | FloatArray | StepChoices:
    """A policy in any form that users have it in, as `solve` takes it."""
    if isinstance(policy, Policy | StepPolicy):
        return policy.for_solver
    if isinstance(policy, StepChoices):
        return policy
    array = np.asarray(policy)
    if array.dtype.kind in "iuf":
        return array
    raise InputError(
        f"`policy` is a {type(policy).__name__}, not a policy",
        hint="give a tr.Policy, or an array: a choice per state, or a probability per choice",
    )


def policy_of(structure: Structure, choice: npt.NDArray[np.generic], steps: StepChoices | None) -> AnyPolicy:
    """The policy that a solve found: `steps` where it depends on the step, else a choice per state."""
    if steps is not None and steps.horizon > 0:
        return StepPolicy(steps, structure)
    return Policy.deterministic(structure, np.asarray(choice, dtype=np.int64))
