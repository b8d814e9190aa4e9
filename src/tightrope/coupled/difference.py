"""The difference of two policies' values as the value of one chain (docs/improve.md).

The rows of both chains stand side by side under one parameter vector, those of the baseline with negated
rewards and fixed values. The root has the entries of both initial rows, so its value is the difference.

No row leads to the root, weights are nonnegative, and the proofs of `taylor` and `vertex_proof` allow any
sign of rewards and values. If the region contains the true parameters, the bound holds for *all* pairs of
policies, also those chosen from the same data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.coupled.chain import Chain, Phase, chain_of, reached_from, unrolled_chain
from tightrope.coupled.result import CoupledStatus, CoupledValue
from tightrope.coupled.value import DEFAULT_GAP, CoupledLimits, enclose, functions_of, require_region
from tightrope.io.results import Interval
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import AnyArray, FloatArray, IndexArray
from tightrope.numerics.rounding import difference, down, up
from tightrope.regions.polytope import Polytope

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two policies: on the model that it is a policy of, with the question there and what it is
    worth over the sets on its own. A policy with a memory has a product of the model, which has the same
    expressions."""

    model: ParametricMDP
    objective: Objective
    policy: Policy
    lower: float
    upper: float


def bound_difference(
    sets: Sets, policy: Side, baseline: Side, *, gap: float = DEFAULT_GAP, limits: CoupledLimits | None = None
) -> CoupledValue:
    """The certified interval of the policy's value less the baseline's over rectangular `sets`."""
    begin = time.perf_counter()
    polytope = require_region(sets)
    objective = policy.objective
    floor, ceiling = 0.0 - difference(baseline.upper, policy.lower), difference(policy.upper, baseline.lower)
    functions = functions_of(polytope.coordinates, policy.model, objective)
    ends = floor, ceiling, floor, ceiling
    blank = CoupledValue(objective, policy.policy, *ends, functions, baseline=baseline.policy)
    if policy.policy == baseline.policy:
        return replace(blank, lower=0.0, upper=0.0, status=CoupledStatus.EXACT, gap=0.0)
    make = unrolled_chain if any(one.policy.depends_on_step for one in (policy, baseline)) else chain_of
    chains = [make(side.model, side.objective, side.policy) for side in (policy, baseline)]
    for chain in chains:
        if isinstance(chain, str):
            return replace(blank, reason=chain, seconds=time.perf_counter() - begin)
    first, second = (chain for chain in chains if isinstance(chain, Chain))
    if objective.complement:  # 1 − V_π less 1 − V_b
        first, second = second, first
    chain = difference_of(first, second)
    limits = limits or CoupledLimits()
    return enclose(replace(blank, chain=chain), polytope, (floor, ceiling), gap, limits, begin, False)


def difference_of(first: Chain, second: Chain) -> Chain:
    """The chain of the first value less the second; both answer the same question, with the same phases."""
    second = negative(second)
    rows = first.rows + second.rows
    ends = [(first, first.initial, 0), (second, second.initial, first.rows)]
    entries = [_entries(chain, row, shift) for chain, row, shift in ends]
    successor, expression, weight = (np.concatenate(part) for part in zip(*entries, strict=True))
    reward = slack = 0.0
    for chain, row, _ in ends:
        earned = float((chain.value if _is_fixed(chain, row) else chain.reward)[row])
        reward += earned
        slack += 2 * _UNIT * abs(earned) + (0.0 if _is_fixed(chain, row) else float(chain.reward_error[row]))
    start = np.concatenate([first.row_start, first.row_start[-1] + second.row_start[1:]])
    both = [first, second]
    return Chain(
        state=_joined(both, "state", first.state[first.initial]),
        initial=rows,
        row_start=np.append(start, start[-1] + len(successor)),
        successor=np.concatenate([first.successor, first.rows + second.successor, successor]).astype(
            np.int32
        ),
        expression=np.concatenate([first.expression, second.expression, expression]),
        weight=np.concatenate([first.weight, second.weight, weight]),
        reward=_joined(both, "reward", reward),
        reward_error=_joined(both, "reward_error", slack),
        fixed=_joined(both, "fixed", False),
        value=_joined(both, "value", 0.0),
        acyclic=first.acyclic and second.acyclic,
        start=None if first.start is None else _joined(both, "start", 0.0),
        second=first.rows,
        phases=tuple(
            Phase(
                one.steps,
                np.concatenate([one.fixed, other.fixed, [one.fixed[first.initial]]]),
                np.concatenate(
                    [one.value, other.value, [one.value[first.initial] + other.value[second.initial]]]
                ),
            )
            for one, other in zip(first.phases, second.phases, strict=True)
        ),
    )


def negative(chain: Chain) -> Chain:
    """The chain of the same policy with every reward and every fixed value negated."""
    return replace(
        chain,
        reward=-chain.reward,
        value=-chain.value,
        start=None if chain.start is None else -chain.start,
        phases=tuple(Phase(phase.steps, phase.fixed, -phase.value) for phase in chain.phases),
    )


def _is_fixed(chain: Chain, row: int) -> bool:
    return bool(chain.fixed[row]) and not chain.phases


def _entries(chain: Chain, row: int, shift: int) -> tuple[IndexArray, IndexArray, FloatArray]:
    """(successor, expression, weight) of one row; nothing where its value is fixed."""
    part = slice(0, 0) if _is_fixed(chain, row) else slice(chain.row_start[row], chain.row_start[row + 1])
    return chain.successor[part] + shift, chain.expression[part], chain.weight[part]


def _joined(chains: list[Chain], name: str, last: float) -> AnyArray:
    arrays = [getattr(chain, name) for chain in chains]
    return np.concatenate([*arrays, np.array([last], dtype=arrays[0].dtype)])


# The difference of two policies' long-run averages, by renewal rewards.
#
# Let z be a state to which a policy's chain returns almost surely from everywhere. For a number c let W be
# the expected sum of r − c from z until z is met again, and T the expected number of steps. From any initial
# state
#
#     g(x) = c + W(x) / T(x).
#
# W and T are values of a chain with the row of z as its root and z fixed at 0, enclosed by
# `tightrope.coupled`; success proves the return to z at every x of the region. For two policies, with any c
# and τ > 0 for each,
#
#     g₁ − g₂ = c₁ − c₂ + [W₁/τ₁ − W₂/τ₂] + W₁·(1/T₁ − 1/τ₁) − W₂·(1/T₂ − 1/τ₂).
#
# The bracket is the difference of two chains with rewards (r − c)/τ (`tightrope.coupled.difference`). With c
# = g and τ = T at the estimate, the rest is of second order; the ranges of W and T bound it.

MOST_ROWS = 3000
"""Larger chains are not looked at: their stationary distribution is found by dense linear algebra."""


@dataclass(frozen=True, eq=False)
class Cycle:
    """A policy's chain from a state to itself: `chain` has the rewards (r − c)/τ."""

    policy: Policy
    chain: Chain
    reward: FloatArray
    c: float
    tau: float

    @staticmethod
    def of(model: ParametricMDP, policy: Policy, reward: FloatArray, probability: FloatArray) -> Cycle | None:
        """With the state met most often at these probabilities; None without a single recurrent class."""
        structure, weight = model.structure, policy.probability
        owner = np.repeat(structure.choice_state, np.diff(structure.transition_start))
        share = np.repeat(weight, np.diff(structure.transition_start))
        possible = share > 0.0
        reached = reached_from(
            structure.initial, owner[possible], structure.successor[possible], structure.states
        )
        number = np.cumsum(reached) - 1
        used = np.flatnonzero(possible & reached[owner])
        used = used[np.argsort(number[owner[used]], kind="stable")]
        row, successor = number[owner[used]], number[structure.successor[used]]
        rows = int(reached.sum())
        if rows > MOST_ROWS:
            return None
        matrix = np.zeros((rows, rows))
        np.add.at(matrix, (row, successor), share[used] * probability[model.expression[used]])
        earned = np.bincount(structure.choice_state, weight * reward, structure.states)[reached]
        size = np.bincount(structure.choice_state, weight * np.abs(reward), structure.states)[reached]
        try:
            mostly = np.linalg.solve((np.eye(rows) - matrix + 1.0).T, np.ones(rows))
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(mostly)) or mostly.min() < -1e-9:
            return None
        z = int(mostly.argmax())
        start = np.searchsorted(row, np.arange(rows + 1))
        own = slice(start[z], start[z + 1])
        blank = Chain(
            state=np.append(np.flatnonzero(reached), np.flatnonzero(reached)[z]).astype(np.int32),
            initial=rows,
            row_start=np.append(start, start[-1] + start[z + 1] - start[z]).astype(np.int64),
            successor=np.concatenate([successor, successor[own]]).astype(np.int32),
            expression=model.expression[np.concatenate([used, used[own]])],
            weight=share[np.concatenate([used, used[own]])],
            reward=np.append(earned, earned[z]),
            reward_error=4.0 * _UNIT * len(reward) * np.append(size, size[z]),
            fixed=np.append(np.arange(rows) == z, False),
            value=np.zeros(rows + 1),
            acyclic=False,
        )
        c, tau = float(mostly @ earned), float(1.0 / mostly[z])
        return Cycle(policy, _scaled(blank, c, tau), reward, c, tau) if np.isfinite(c + tau) else None

    @cached_property
    def lengths(self) -> Chain:
        """The same chain with a reward of 1 a step."""
        one = np.ones_like(self.chain.reward)
        return replace(self.chain, reward=one, reward_error=np.zeros_like(one))


def _scaled(chain: Chain, c: float, tau: float) -> Chain:
    """Rewards (r − c)/τ."""
    error = chain.reward_error + 4.0 * _UNIT * (np.abs(chain.reward) + abs(c))
    return replace(chain, reward=(chain.reward - c) / tau, reward_error=1.01 * error / tau)


@dataclass(frozen=True, eq=False)
class CycleBounds:
    """A policy's chain with W/τ, T and the average itself over a region; nothing where these are infinite."""

    cycle: Cycle
    scaled: Interval
    length: Interval

    @property
    def average(self) -> Interval:
        """c + W/T."""
        c, tau = self.cycle.c, self.cycle.tau
        ends = [w * tau / t for w in self.scaled for t in self.length]
        if not np.all(np.isfinite(ends)):
            return Interval(-np.inf, np.inf)
        slack = 16 * _UNIT * (abs(c) + max(map(abs, ends)))
        return Interval.of(down(c + min(ends) - slack), up(c + max(ends) + slack))

    @property
    def left(self) -> float:
        """|W·(1/T − 1/τ)| is at most this."""
        tau = self.cycle.tau
        most = max(abs(tau / t - 1.0) for t in self.length)
        return max(map(abs, self.scaled)) * most * (1.0 + 1e-9)


class AverageBounds:
    """Averages of policies and their differences over one region, in closed form for one parameter vector."""

    def __init__(self, model: ParametricMDP, polytope: Polytope, reward: FloatArray, gap: float):
        self.model, self.polytope, self.reward, self.gap = model, polytope, reward, gap
        target = np.zeros(model.states, np.bool_)
        words = RewardStructure(choice=reward)
        self.objective = Objective(
            ObjectiveKind.REACH_REWARD, Direction.MAX, Direction.MIN, target=target, reward=words
        )
        self.functions = functions_of(polytope.coordinates, model, self.objective)

    def enclose(self, chain: Chain, policy: Policy, limits: CoupledLimits) -> CoupledValue:
        """The value of a chain over the region."""
        free = -np.inf, np.inf
        blank = CoupledValue(self.objective, policy, *free, *free, self.functions, chain=chain)
        return enclose(blank, self.polytope, free, self.gap, limits, time.perf_counter(), False)

    def bounds(self, cycle: Cycle, limits: CoupledLimits) -> CycleBounds:
        """What is known of one policy."""
        parts = [self.enclose(chain, cycle.policy, limits) for chain in (cycle.chain, cycle.lengths)]
        scaled, length = (Interval.of(one.lower, one.upper) for one in parts)
        return CycleBounds(cycle, scaled, Interval.of(max(length.lower, 1.0), length.upper))

    def difference(
        self, one: CycleBounds, two: CycleBounds, limits: CoupledLimits
    ) -> tuple[Interval, CoupledValue | None]:
        """The average of the first less that of the second; nothing where that of one is not known."""
        middle, left = one.cycle.c - two.cycle.c, one.left + two.left
        slack = left + 16 * _UNIT * (abs(one.cycle.c) + abs(two.cycle.c) + left)
        if not np.isfinite(slack):
            return Interval(-np.inf, np.inf), None
        value = self.enclose(difference_of(one.cycle.chain, two.cycle.chain), one.cycle.policy, limits)
        return Interval.of(down(middle + value.lower - slack), up(middle + value.upper + slack)), value

    def at(self, cycle: Cycle, x: FloatArray) -> float:
        """The average at a point, in float64: it certifies nothing."""
        values = self.functions.chances(x)
        chain, inner = cycle.chain, ~cycle.chain.fixed
        rows = chain.rows
        matrix = np.zeros((rows, rows))
        np.add.at(matrix, (chain.row_of_entry, chain.successor), chain.weight * values[chain.expression])
        system = np.eye(int(inner.sum())) - matrix[np.ix_(inner, inner)]
        try:
            sums = np.linalg.solve(system, np.stack([chain.reward[inner], np.ones(len(system))], axis=1))
        except np.linalg.LinAlgError:
            return float("nan")
        return cycle.c + cycle.tau * float(sums[-1, 0] / sums[-1, 1])
