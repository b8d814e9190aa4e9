"""The bias of a Markov chain, by linear systems: where long-run averages begin to be looked for.

In a chain that reaches all its states, average g and bias h solve h = r − g + P·h with h(0) = 0, one sparse
linear system. With intervals nature answers h by the best P within them, and the systems are repeated until
its answer no longer changes (policy iteration). Slow mixing, which makes value iteration take a round for
every step of it, costs nothing here. Nothing rests on the result: bounds come from a verified backup of it.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import MatrixRankWarning, splu

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction
from tightrope.numerics.arrays import FloatArray
from tightrope.solver.kernels.frozen import LARGEST_FACTORISATION

_MOST_ANSWERS = 50
_CLOSE = 1e-13


def bias_of_chain(part: MDP | IntervalMDP, reward: FloatArray, nature: Direction) -> FloatArray | None:
    """The bias of a chain given whole; None where there are choices, or where the system is not solved."""
    structure = part.structure
    if structure.has_choices or structure.states > LARGEST_FACTORISATION:
        return None
    if isinstance(part, MDP):
        return _bias(part, part.probability, reward)
    values: FloatArray = np.zeros(structure.states)
    for _ in range(_MOST_ANSWERS):
        found = _bias(part, _answer(part, values, nature), reward)
        if found is None:
            return None
        change = float(np.abs(found - values).max())
        values = found
        if change <= _CLOSE * max(1.0, float(np.abs(values).max())):
            break
    return values


def _bias(part: MDP | IntervalMDP, probability: FloatArray, reward: FloatArray) -> FloatArray | None:
    """h with h(0) = 0; the column of h(0) belongs to g."""
    structure = part.structure
    size = structure.states
    matrix = sparse.csr_matrix(
        (probability, structure.successor, structure.transition_start), shape=(size, size)
    )
    system = sparse.hstack(
        [np.ones((size, 1)), (sparse.identity(size) - matrix).tocsc()[:, 1:]], format="csc"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", MatrixRankWarning)
        try:
            solved: FloatArray = splu(system).solve(reward.astype(np.float64))
        except (RuntimeError, MatrixRankWarning):
            return None
    if not np.isfinite(solved).all():
        return None
    solved[0] = 0.0
    return solved


def _answer(part: IntervalMDP, values: FloatArray, nature: Direction) -> FloatArray:
    """The distribution within the intervals that is worst, or best, for the values."""
    structure = part.structure
    owner, starts = structure.transition_choice, structure.transition_start[:-1]
    there = values[structure.successor] * (1.0 if nature is Direction.MIN else -1.0)
    order = np.lexsort((there, owner))
    room = (part.upper - part.lower)[order]
    before = np.cumsum(room) - room
    before -= before[starts][owner]
    spare = 1 - np.add.reduceat(part.lower, starts)
    picked = np.empty(len(room))
    picked[order] = part.lower[order] + np.clip(spare[owner] - before, 0, room)
    return picked
