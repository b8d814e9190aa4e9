"""Values by elimination of states, where iteration cannot separate the bounds.

Elimination never subtracts (Grassmann, Taksar and Heyman, 1985). With w the probabilities among unknown
states, e those of leaving, and b the value earned by leaving,

    d(k) = e(k) + Σ_{j≠k} w(k,j),    w(i,j) += w(i,k)·w(k,j)/d(k),    likewise b and e,

and backwards h(k) = (b(k) + Σ w(k,j)·h(j)) / d(k), in intervals rounded outward. With choices, policy
iteration continues: its value h bounds the optimum on the agent's side, and h = Φ(h) if every other choice is
strictly worse at h. A maximum is at most any h ≥ Φ(h) ≥ 0; a minimum is at least h, as plays end almost
surely in known states under any policy, or the reward is infinite.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace

import numpy as np

from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.solution import Solution, Status, widest

MOST_STATES = 20_000
MOST_ROUNDS = 50
"""Of policy iteration."""
MOST_WORK = 3_000_000
"""Updates of one entry each, in all rounds together."""
DENSE, MOST_DENSE = 100, 700
"""Updates of one state, and the most states that are left, beyond which these are solved in dense arrays."""
SMALLEST = 1e-280
"""Smaller numbers are not rounded relatively."""
DOWN, UP = 1 - 2.0**-51, 1 + 2.0**-51
"""Outward of one operation on positive doubles, and of the rounding that multiplying by them does."""
MEANT = 2.0**-52
"""The part of itself by which a double may differ from the probability meant, a scaled one too."""

Interval = tuple[float, float]
NOTHING: Interval = (0.0, 0.0)


def refine(solution: Solution, is_free: bool) -> Solution:
    """The solution with bounds by elimination where float64 carried no closer ones; itself where that is not
    possible. Its fixpoints stay as they are: these bounds are not inductive, and no certificate holds them.

    `is_free`: no policy was given, so other choices count as well."""
    objective, kernel = solution.objective, solution.kernel
    if solution.status is not Status.PRECISION_LIMIT or not isinstance(kernel, IntervalOperator):
        return solution
    known = solution.fixpoint_lower == solution.fixpoint_upper
    unknown = np.flatnonzero(~known)
    reward = None if objective.reward is None else objective.reward.per_choice(kernel.structure)
    kinds = [ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD]
    if not kernel.structure.has_choices:
        kinds.append(ObjectiveKind.TOTAL)
    if (
        objective.kind not in kinds
        or objective.is_bounded
        or objective.lower_steps > 0
        or not kernel.is_plain
        or solution.weight is not None
        or len(unknown) > MOST_STATES
        or (solution.choice[unknown] < 0).any()
        or (reward is not None and (reward < 0).any())
        or solution.fixpoint_lower[known].min(initial=0.0) < 0
    ):
        return solution
    attains_most = objective.agent is Direction.MAX
    chain = _Chain(kernel, solution, unknown, reward)
    values, is_optimal = chain.solve(), not is_free
    for _ in range(MOST_ROUNDS if is_free else 0):
        is_optimal, is_better = (False, False) if values is None else chain.improve(values, attains_most)
        if not is_better:
            break
        values = chain.solve()
    if values is None:
        return solution
    inner_lower, inner_upper = solution.fixpoint_lower.copy(), solution.fixpoint_upper.copy()
    for state in unknown.tolist():
        low, high = values[state]
        if is_optimal or attains_most:
            inner_lower[state] = max(inner_lower[state], low)
        if is_optimal or not attains_most:
            inner_upper[state] = min(inner_upper[state], high)
    lower, upper = inner_lower, inner_upper
    if objective.complement:
        lower = np.maximum(np.nextafter(1 - inner_upper, -np.inf), solution.lower)
        upper = np.minimum(np.nextafter(1 - inner_lower, np.inf), solution.upper)
    gap = widest(lower, upper, solution.relative, solution.unit)
    status = Status.CERTIFIED if gap <= solution.precision else solution.status
    return replace(
        solution, lower=lower, upper=upper, choice=chain.choice, gap=gap, status=status, is_eliminated=True
    )


class _Chain:
    """The chain of the policy that was found, on the states that are not known."""

    def __init__(
        self, kernel: IntervalOperator, solution: Solution, unknown: OffsetArray, reward: FloatArray | None
    ):
        self._kernel, self._reward, self.choice = kernel, reward, solution.choice.copy()
        self._value = solution.fixpoint_lower
        self._unknown = set(unknown.tolist())
        self._work = 0

    def solve(self) -> dict[int, Interval] | None:
        """The value of every unknown state; None where that takes too long, or plays may never end."""
        weights: dict[int, dict[int, Interval]] = {}
        leaving: dict[int, Interval] = {}
        earned: dict[int, Interval] = {}
        before: dict[int, set[int]] = {state: set() for state in self._unknown}
        for state in self._unknown:
            row = self._row(int(self.choice[state]))
            if row is None:
                return None
            weights[state], leaving[state], earned[state] = row
            weights[state].pop(state, None)
            for successor in weights[state]:
                before[successor].add(state)
        done: list[tuple[int, dict[int, Interval], Interval, Interval]] = []
        queue = [(len(weights[s]) * len(before[s]), s) for s in self._unknown]
        heapq.heapify(queue)
        values: dict[int, Interval] = {}
        while queue:
            size, state = heapq.heappop(queue)
            if state not in weights:
                continue
            current = len(weights[state]) * len(before[state])
            if current > size:
                heapq.heappush(queue, (current, state))
                continue
            if current > DENSE and len(weights) <= MOST_DENSE:
                rest = _solve_densely(weights, leaving, earned)
                if rest is None:
                    return None
                values = rest
                break
            row_, sources = weights.pop(state), before.pop(state)
            out = leaving[state]
            for weight in row_.values():
                out = _plus(out, weight)
            if out[0] < SMALLEST:
                return None
            done.append((state, row_, earned[state], out))
            for successor in row_:
                before[successor].discard(state)
            self._work += (len(row_) + 2) * len(sources)
            if self._work > MOST_WORK:
                return None
            for source in sources:
                share = _over(weights[source].pop(state), out)
                if share[0] < SMALLEST:
                    return None
                earned[source] = _plus(earned[source], _times(share, earned[state]))
                leaving[source] = _plus(leaving[source], _times(share, leaving[state]))
                own = weights[source]
                for successor, weight in row_.items():
                    if successor != source:
                        own[successor] = _plus(own.get(successor, NOTHING), _times(share, weight))
                        before[successor].add(source)
        for state, row_, total, out in reversed(done):
            for successor, weight in row_.items():
                total = _plus(total, _times(weight, values[successor]))
            values[state] = _over(total, out)
        return values if all(0 <= low <= high < math.inf for low, high in values.values()) else None

    def improve(self, values: dict[int, Interval], maximises: bool) -> tuple[bool, bool]:
        """Take strictly better choices: (whether all others are strictly worse, whether some were better)."""
        is_settled, is_better = True, False
        for state, here in values.items():
            first, last = self._kernel.structure.choice_start[state : state + 2].tolist()
            own = int(self.choice[state])
            for choice in range(first, last):
                row = None if choice == own else self._row(choice)
                if row is None:
                    is_settled &= choice == own
                    continue
                weights, _, value = row
                for successor, weight in weights.items():
                    value = _plus(value, _times(weight, values[successor]))
                if not (value[1] < here[0] if maximises else value[0] > here[1]):
                    is_settled = False
                if value[0] > here[1] if maximises else value[1] < here[0]:
                    self.choice[state], is_better = choice, True
                    here = value
        return is_settled, is_better

    def _row(self, choice: int) -> tuple[dict[int, Interval], Interval, Interval] | None:
        """Probabilities among unknown states, that of leaving, and what is earned at once."""
        structure = self._kernel.structure
        begin, end = structure.transition_start[choice : choice + 2].tolist()
        reward = 0.0 if self._reward is None else float(self._reward[choice])
        weights: dict[int, Interval] = {}
        leaving, earned = NOTHING, (reward * (1 - MEANT), reward * (1 + MEANT))
        for transition in range(begin, end):
            probability = float(self._kernel.lower[transition])
            if probability == 0:
                continue
            mass = (probability * DOWN * DOWN, probability * UP * UP)
            successor = int(structure.successor[transition])
            if successor in self._unknown:
                weights[successor] = _plus(weights.get(successor, NOTHING), mass)
                continue
            value = float(self._value[successor])
            if not math.isfinite(value):
                return None
            leaving, earned = _plus(leaving, mass), _plus(earned, _times(mass, (value, value)))
        return weights, leaving, earned


def _solve_densely(
    weights: dict[int, dict[int, Interval]], leaving: dict[int, Interval], earned: dict[int, Interval]
) -> dict[int, Interval] | None:
    """The values of the states that are left, by the same elimination on arrays: the last state first."""
    states = list(weights)
    place, size = {state: k for k, state in enumerate(states)}, len(states)
    among, ends = np.zeros((2, size, size)), np.zeros((2, size, 2))  # ends: what leaves, what is earned
    for k, state in enumerate(states):
        for successor, weight in weights[state].items():
            among[:, k, place[successor]] = weight
        ends[:, k, 0], ends[:, k, 1] = leaving[state], earned[state]
    outward = np.array([DOWN, UP])
    out = np.zeros((2, size))
    for k in range(size - 1, -1, -1):
        rounding = (k + 4) * 2.0**-51
        out[:, k] = (among[:, k, :k].sum(axis=1) + ends[:, k, 0]) * (1 - rounding, 1 + rounding)
        share = among[:, :k, k] / out[::-1, k, None] * outward[:, None]
        if out[0, k] < SMALLEST or np.any((among[1, :k, k] > 0) & (share[0] < SMALLEST)):
            return None
        for block, row in ((among[:, :k, :k], among[:, k, :k]), (ends[:, :k], ends[:, k])):
            moved = share[:, :, None] * row[:, None, :] * outward[:, None, None]
            moved[0][moved[0] <= SMALLEST] = 0.0
            possible = (share[1, :, None] > 0) & (row[1, None, :] > 0)
            np.maximum(moved[1], SMALLEST, out=moved[1], where=possible)
            block += moved
            block *= outward[:, None, None]
    solution = np.zeros((2, size))
    for k in range(size):
        rounding = (k + 6) * 2.0**-51
        total = (among[:, k, :k] * solution[:, :k]).sum(axis=1) + ends[:, k, 1]
        low, high = total / out[::-1, k] * (1 - rounding, 1 + rounding)
        is_some = ends[1, k, 1] > 0 or np.any((among[1, k, :k] > 0) & (solution[1, :k] > 0))
        solution[:, k] = max(low - SMALLEST, 0.0), high + SMALLEST * is_some
    return {state: (float(solution[0, k]), float(solution[1, k])) for k, state in enumerate(states)}


def _plus(a: Interval, b: Interval) -> Interval:
    if a[1] == 0:
        return b
    return a if b[1] == 0 else ((a[0] + b[0]) * DOWN, (a[1] + b[1]) * UP)


def _times(a: Interval, b: Interval) -> Interval:
    low = a[0] * b[0] * DOWN
    high = max(a[1] * b[1] * UP, SMALLEST) if a[1] > 0 and b[1] > 0 else 0.0
    return (low if low > SMALLEST else 0.0), high


def _over(a: Interval, b: Interval) -> Interval:
    return a[0] / b[1] * DOWN, a[1] / b[0] * UP
