"""Small systems of ordinary models solved by dense policy iteration: a few matrix factorisations, no sweeps.

For a shift d > 0 the solution of x = Φ(x) − d·ref lies below the value and that of x = Φ(x) + d·ref above
it, and both satisfy their inequality with room to spare (see `solver.iteration.blocks`). Howard's policy
iteration finds them in a handful of rounds. No proof rests on it: `solver.iteration.certify` checks
every inequality with safe rounding afterwards, and where one does not hold the system is solved block by
block as larger ones are.

What is left to solve has one solution once idle end components are collapsed, and policies that leave the
open states; improvement starts from one of those and keeps to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.equations.system import CLOSED, EXIT, System
from tightrope.solver.kernels.kernel import Kernel

LARGEST = 400
"""Most equations that are solved densely."""

FIRST_SHIFT = 1e-4
"""The first shift, as a part of the precision."""

SMALLEST_SHIFT = 1e-12
"""Below this, rounding errors of a solution are of the same size."""

MOST_ROUNDS = 100
GAIN = 1e-13
"""Relative gain for which a choice is exchanged."""


@dataclass(frozen=True, eq=False)
class _Choices:
    """The open choices in order of their equations: x(owner) = opt_c [constant(c) + matrix(c)·x]."""

    first: OffsetArray
    owner: OffsetArray
    constant: FloatArray
    matrix: FloatArray
    maximise: bool

    def solve(self, shift: FloatArray, policy: OffsetArray) -> tuple[FloatArray, OffsetArray] | None:
        """The solution of x = opt_c [constant + matrix·x] + shift and its choices; None without success."""
        sign = 1.0 if self.maximise else -1.0
        identity = np.eye(len(self.first))
        for _ in range(MOST_ROUNDS):
            try:
                open_rows = identity - self.matrix[policy]
                x: FloatArray = np.linalg.solve(open_rows, self.constant[policy] + shift).astype(np.float64)
            except np.linalg.LinAlgError:
                return None
            if not np.all(np.isfinite(x)):
                return None
            each = sign * (self.constant + self.matrix @ x + shift[self.owner])
            best = np.maximum.reduceat(each, self.first)
            better = best > each[policy] + GAIN * np.abs(each[policy])
            if not better.any():
                return x, policy
            at = np.flatnonzero(each == best[self.owner])
            found = np.empty(len(self.first), np.int64)
            found[self.owner[at[::-1]]] = at[::-1]
            policy = np.where(better, found, policy)
        return None

    def leaving(self) -> OffsetArray | None:
        """A policy that leaves the open states almost surely: every choice leads closer to the way out."""
        inside = self.matrix > 0.0
        drawn = np.zeros(len(self.first), np.bool_)
        policy = np.full(len(self.first), -1, np.int64)
        exits = np.isfinite(self.constant) & (self.matrix.sum(axis=1) < 1.0 - 1e-9)
        usable = np.isfinite(self.constant)
        while not drawn.all():
            leads = usable & (exits | inside[:, drawn].any(axis=1)) & ~drawn[self.owner]
            now = np.flatnonzero(leads)[::-1]
            if not len(now):
                return None
            policy[self.owner[now]] = now
            drawn[self.owner[now]] = True
        return policy


def solve_densely(
    kernel: Kernel,
    system: System,
    settled: BoolArray,
    values: FloatArray,
    precision: float,
    relative: bool,
) -> tuple[FloatArray, FloatArray] | None:
    """Bounds of all states, those that are `settled` as in `values`; None where this is not the way."""
    open_states = np.flatnonzero(~settled)
    is_leader = np.zeros(len(settled), np.bool_)
    is_leader[system.leader[open_states]] = True
    leaders = np.flatnonzero(is_leader)
    if kernel.lower is not kernel.upper or len(leaders) > LARGEST or system.unit > 0:
        return None
    choices = _open_choices(kernel, system, settled, values, leaders)
    if choices is None:
        return None
    policy = choices.leaving()
    found = None if policy is None else choices.solve(np.zeros(len(leaders)), policy)
    if found is None:
        return None
    middle, policy = found
    reference = np.abs(middle) if relative else np.ones(len(middle))
    if not np.all(reference > 0.0):
        return None
    shift = max(precision * FIRST_SHIFT, SMALLEST_SHIFT)
    number = np.searchsorted(leaders, system.leader[open_states])
    for _ in range(4):
        low = choices.solve(-shift * reference, policy)
        high = choices.solve(shift * reference, policy)
        if low is None or high is None:
            return None
        gap = float(((high[0] - low[0]) / reference).max())
        if gap <= 0.9 * precision:
            lower, upper = values.copy(), values.copy()
            lower[open_states] = np.maximum(low[0], system.floor)[number]
            upper[open_states] = np.minimum(high[0], system.ceiling)[number]
            return lower, upper
        shift *= 0.5 * precision / gap
        if shift < SMALLEST_SHIFT:
            return None
    return None


def _open_choices(
    kernel: Kernel, system: System, settled: BoolArray, values: FloatArray, leaders: OffsetArray
) -> _Choices | None:
    structure = system.structure
    open_choice = ~settled[structure.choice_state] & (system.mode != CLOSED)
    if np.any(system.mode[open_choice] == EXIT):
        return None
    choice = np.flatnonzero(open_choice)
    owner = np.searchsorted(leaders, system.leader[structure.choice_state[choice]])
    order = np.argsort(owner, kind="stable")
    choice, owner = choice[order], owner[order]
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    if len(first) < len(leaders):
        return None
    row = np.full(structure.choices, -1, np.int64)
    row[choice] = np.arange(len(choice))
    used = np.flatnonzero(open_choice[structure.transition_choice] & (kernel.upper > 0.0))
    source, target = row[structure.transition_choice[used]], structure.successor[used]
    weight = kernel.upper[used]
    if len(system.discount):
        weight = weight * system.discount[choice[source]]
    outside = settled[target]
    constant = system.reward[choice].copy() if len(system.reward) else np.zeros(len(choice))
    np.add.at(constant, source[outside], weight[outside] * values[target[outside]])
    matrix = np.zeros((len(choice), len(leaders)))
    inner = np.searchsorted(leaders, system.leader[target[~outside]])
    np.add.at(matrix, (source[~outside], inner), weight[~outside])
    return _Choices(first, owner, constant, matrix, system.agent_maximises)
