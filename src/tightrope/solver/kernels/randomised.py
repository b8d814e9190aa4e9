"""A randomised policy as a chain: a state that mixes moves, by the policy's probabilities, to one new
state for each choice.

The new state then makes that choice. Values of the old states are those of the policy; rewards are
earned, and steps discounted, on the new states. With one choice per state, everything the solver does for
chains applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.kernels.interval_kernel import IntervalKernel


@dataclass(frozen=True, eq=False)
class Mixture:
    """The chain's kernel; `origin[c']` is the choice that choice c' of the chain makes, −1 where it mixes."""

    kernel: IntervalKernel
    origin: OffsetArray


def check_weights(structure: Structure, policy: FloatArray) -> FloatArray:
    """The policy's probabilities per choice, validated."""
    if policy.shape != (structure.choices,):
        raise InputError(
            f"a randomised policy has one probability per choice: {structure.choices}, not {len(policy)}"
        )
    if not np.all((policy >= 0) & (policy <= 1)):
        raise InputError("the probabilities of a randomised policy must lie within [0, 1]")
    total = np.add.reduceat(policy, structure.choice_start[:-1])
    off = np.flatnonzero(np.abs(total - 1) > 1e-9)
    if len(off):
        state = int(off[0])
        raise InputError(
            f"the policy's probabilities at state {structure.state_name(state)} "
            f"sum to {total[state]:.12g}, not 1"
        )
    scaled: FloatArray = policy / np.repeat(total, np.diff(structure.choice_start))
    return scaled


def check_choices(structure: Structure, policy: OffsetArray) -> OffsetArray:
    """A deterministic policy's choice indices, validated."""
    if policy.shape != (structure.states,):
        raise InputError(f"a policy has one choice per state: {structure.states}, not {len(policy)}")
    wrong = np.flatnonzero((policy < structure.choice_start[:-1]) | (policy >= structure.choice_start[1:]))
    if len(wrong):
        state = int(wrong[0])
        first, end = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        raise InputError(
            f"the policy's choice {int(policy[state])} is none of state {structure.state_name(state)}, "
            f"whose choices are {first}..{end - 1}"
        )
    return policy.astype(np.int64)


def mix(kernel: IntervalKernel, weights: FloatArray) -> Mixture:
    """The chain of a randomised policy."""
    structure = kernel.structure
    used: BoolArray = weights > 0
    count = np.add.reduceat(used.astype(np.int64), structure.choice_start[:-1])
    choices = np.flatnonzero(used)
    owner = structure.choice_state[choices]
    mixes = count > 1
    new = choices[mixes[owner]]
    sole = np.full(structure.states, -1, np.int64)
    sole[owner] = choices
    sole[mixes] = -1
    origin = np.concatenate([sole, new])
    place = np.full(structure.choices, -1, np.int64)
    place[new] = structure.states + np.arange(len(new))

    own = np.diff(structure.transition_start)
    lengths = np.concatenate([np.where(mixes, count, own[np.maximum(sole, 0)]), own[new]])
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    successor = np.empty(int(start[-1]), np.int32)
    lower, upper = np.empty(int(start[-1])), np.empty(int(start[-1]))
    rows = np.flatnonzero(origin >= 0)
    entry = _ranges(start[rows], lengths[rows])
    source = _ranges(structure.transition_start[origin[rows]], lengths[rows])
    successor[entry], lower[entry], upper[entry] = (
        structure.successor[source],
        kernel.lower[source],
        kernel.upper[source],
    )
    entry = _ranges(start[np.flatnonzero(mixes)], count[mixes])
    successor[entry], lower[entry], upper[entry] = place[new], weights[new], weights[new]
    chain = Structure(
        choice_start=np.arange(len(origin) + 1, dtype=np.int64),
        transition_start=start,
        successor=successor,
        initial_states=structure.initial_states,
    )
    lower.flags.writeable = upper.flags.writeable = False
    if kernel.is_plain:
        return Mixture(IntervalKernel(chain, lower, lower), origin)
    return Mixture(IntervalKernel(chain, lower, upper), origin)


def _ranges(start: OffsetArray, length: OffsetArray) -> OffsetArray:
    """start[0], …, start[0]+length[0]−1, start[1], …"""
    total = int(length.sum())
    result: OffsetArray = np.arange(total) + np.repeat(start - (np.cumsum(length) - length), length)
    return result
