"""Episodes at given probabilities, and how often a policy takes each choice in one.

An episode starts in the initial state and ends in a stopping state or after `cap` steps. PASS: without cycles
before stopping states, one topological pass is exact; a cap that could cut the longest path needs sweeps, if
affordable (else `uncut`). SWEEPS: with a cap, one per step. EQUATIONS: with cycles and no cap, by sparse LU;
episodes must end under every policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from tightrope.data.design import absorbing_states
from tightrope.design.directions import Information
from tightrope.errors import InputError
from tightrope.model.graph.components import acyclic_components, forward_reachable, maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.policy import Policy
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel

MOST_SWEEP_WORK = 4_000_000_000
"""Transitions looked at by the sweeps of one capped solve."""

MOST_DECISIONS = 400_000_000
"""States times steps of a policy that depends on the step."""


class Way(Enum):
    PASS = "one pass"
    SWEEPS = "a sweep per step"
    EQUATIONS = "linear equations"


class EpisodeArrays(NamedTuple):
    """What kernels take of episodes."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    expression: IndexArray
    probability: FloatArray
    stop: BoolArray


@dataclass(frozen=True, eq=False)
class Episodes:
    """Episodes in a model with a probability per expression; `order`: successors first, where the way is
    PASS."""

    structure: Structure
    expression: IndexArray
    probability: FloatArray
    stop: BoolArray
    cap: int | None
    way: Way
    order: IndexArray
    uncut: str | None = None

    @staticmethod
    def of(information: Information, stop: BoolArray, cap: int | None = None) -> Episodes:
        """Decide how to compute; demands a cap where an episode could go on for ever."""
        model = information.model
        structure = model.structure
        ends = stop | absorbing_states(structure)
        possible = (information.probability > 0.0)[model.expression]
        number = possible.astype(np.float64)
        support = Support(structure, number, number, usable=possible)
        acyclic = acyclic_components(support, expand=~ends)
        nothing = np.zeros(0, np.int32)
        common = (structure, model.expression, information.probability, ends)
        work, memory = structure.transitions * (cap or 0), structure.states * (cap or 0)
        affordable = cap is not None and work <= MOST_SWEEP_WORK and memory <= MOST_DECISIONS
        if acyclic is not None:
            steps, edges = np.zeros(structure.states, np.int64), (support.state_start, structure.successor)
            _longest_paths(acyclic.order, *edges, support.possible, ends, steps)
            longest = int(steps[structure.initial])
            if cap is None or longest <= cap:
                return Episodes(*common, None, Way.PASS, acyclic.order)
            if affordable:
                return Episodes(*common, cap, Way.SWEEPS, nothing)
            longer = f"episodes count whole: some take up to {longest:,} steps, beyond the cap of {cap:,}"
            return Episodes(*common, None, Way.PASS, acyclic.order, longer)
        if affordable:
            return Episodes(*common, cap, Way.SWEEPS, nothing)
        begin = np.zeros(structure.states, np.bool_)
        begin[structure.initial] = True
        reached = forward_reachable(support, begin, through=~ends)
        if maximal_end_components(support, within=reached & ~ends).count:
            if cap is None:
                raise InputError(
                    "an episode need not end in this model, so information could be collected forever",
                    hint="say how many steps an episode may take: `within_cap`",
                )
            raise InputError(
                f"a cap of {cap:,} steps on {structure.transitions:,} transitions is too much to plan for",
                hint="plan with a smaller `within_cap`",
            )
        words = None if cap is None else f"episodes count whole: the cap of {cap:,} steps is not minded"
        return Episodes(*common, None, Way.EQUATIONS, nothing, words)

    @cached_property
    def inner(self) -> OffsetArray:
        """The states that do not end an episode."""
        return np.flatnonzero(~self.stop)

    @cached_property
    def reachable(self) -> BoolArray:
        """The choices that some policy takes in an episode."""
        structure = self.structure
        if self.way is Way.SWEEPS:
            return self.occupancy(Policy.uniform(structure)) > 0.0
        possible = (self.probability > 0.0)[self.expression]
        number = possible.astype(np.float64)
        begin = np.zeros(structure.states, np.bool_)
        begin[structure.initial] = True
        support = Support(structure, number, number, usable=possible)
        met = forward_reachable(support, begin, through=~self.stop) & ~self.stop
        return met[structure.choice_state]

    def occupancy(self, policy: Policy) -> FloatArray:
        """The expected number of times each choice is taken in an episode."""
        structure = self.structure
        if policy.depends_on_step and self.way is not Way.SWEEPS:
            raise InputError("a policy that depends on the step is planned with under a cap only")
        result = np.zeros(structure.choices)
        if self.way is Way.PASS:
            mass = np.zeros(structure.states)
            mass[structure.initial] = 1.0
            _pass_forward(self.arrays, self.order, policy.probability, mass, result)
        elif self.way is Way.SWEEPS:
            self._sweep_forward(policy, result)
        else:
            result = self._solve_forward(policy)
        return result

    @property
    def arrays(self) -> EpisodeArrays:
        structure = self.structure
        return EpisodeArrays(
            structure.choice_start,
            structure.transition_start,
            structure.successor,
            self.expression,
            self.probability,
            self.stop,
        )

    def matrix(self, weight: FloatArray) -> tuple[csr_array, OffsetArray]:
        """(transition matrix among inner states under a policy's probabilities per choice, inner states)."""
        structure = self.structure
        number = np.full(structure.states, -1, np.int64)
        number[self.inner] = np.arange(len(self.inner))
        source = number[structure.choice_state[structure.transition_choice]]
        target = number[structure.successor]
        entry = weight[structure.transition_choice] * self.probability[self.expression]
        used = (source >= 0) & (target >= 0) & (entry > 0.0)
        shape = (len(self.inner), len(self.inner))
        return csr_array((entry[used], (source[used], target[used])), shape=shape), self.inner

    def _sweep_forward(self, policy: Policy, result: FloatArray) -> None:
        assert self.cap is not None
        structure = self.structure
        mass, following = np.zeros(structure.states), np.zeros(structure.states)
        mass[structure.initial] = 1.0
        if policy.steps is None:
            _sweep_steps(self.arrays, read_only(policy.probability), mass, following, result, self.cap)
            return
        weight = np.zeros(structure.choices)
        for step in range(self.cap):
            if step <= policy.steps.horizon:
                weight[:] = 0.0
                weight[policy.steps.at(step)] = 1.0
            _sweep_steps(self.arrays, read_only(weight), mass, following, result, 1)

    def _solve_forward(self, policy: Policy) -> FloatArray:
        matrix, inner = self.matrix(policy.probability)
        system = (eye_array(len(inner)) - matrix).tocsc()
        begin = (inner == self.structure.initial).astype(np.float64)
        visits = np.zeros(self.structure.states)
        visits[inner] = np.maximum(splu(system).solve(begin, trans="T"), 0.0)
        return visits[self.structure.choice_state] * policy.probability


def stationary(structure: Structure, occupancy: FloatArray) -> Policy:
    """The randomised policy with the shares of an occupancy (Kallenberg): its own, without a cap."""
    starts = structure.choice_start[:-1]
    total = np.add.reduceat(occupancy, starts)
    choices = np.diff(structure.choice_start)
    met = total > 0.0
    share = occupancy / np.repeat(np.where(met, total, 1.0), choices)
    weight = np.where(np.repeat(met, choices), share, np.repeat(1.0 / choices, choices))
    again = np.add.reduceat(weight, starts)
    return Policy(structure, np.minimum(weight / np.repeat(again, choices), 1.0))


@kernel
def _longest_paths(
    order: IndexArray,
    state_start: OffsetArray,
    successor: IndexArray,
    possible: BoolArray,
    stop: BoolArray,
    length: OffsetArray,
) -> None:
    for i in range(len(order)):
        s = order[i]
        if stop[s]:
            continue
        best = 0
        for t in range(state_start[s], state_start[s + 1]):
            if possible[t] and length[successor[t]] > best:
                best = length[successor[t]]
        length[s] = best + 1


@kernel
def take(
    arrays: EpisodeArrays, choice: int, amount: float, following: FloatArray, result: FloatArray
) -> None:
    """Count a choice that is taken so often, and move on to its successors."""
    _, transition_start, successor, expression, probability, _ = arrays
    if amount <= 0.0:
        return
    result[choice] += amount
    for t in range(transition_start[choice], transition_start[choice + 1]):
        following[successor[t]] += amount * probability[expression[t]]


@kernel
def _pass_forward(
    arrays: EpisodeArrays, order: IndexArray, weight: FloatArray, mass: FloatArray, result: FloatArray
) -> None:
    for i in range(len(order) - 1, -1, -1):
        s = order[i]
        if arrays.stop[s] or mass[s] <= 0.0:
            continue
        for c in range(arrays.choice_start[s], arrays.choice_start[s + 1]):
            take(arrays, c, mass[s] * weight[c], mass, result)


@kernel
def _sweep_steps(
    arrays: EpisodeArrays,
    weight: FloatArray,
    mass: FloatArray,
    following: FloatArray,
    result: FloatArray,
    steps: int,
) -> None:
    """So many steps of all that is under way, which is `mass` before and after."""
    for _ in range(steps):
        following[:] = 0.0
        for s in range(len(mass)):
            if arrays.stop[s] or mass[s] <= 0.0:
                continue
            for c in range(arrays.choice_start[s], arrays.choice_start[s + 1]):
                take(arrays, c, mass[s] * weight[c], following, result)
        for s in range(len(mass)):
            mass[s] = following[s]
