"""Derivatives of a policy's value by probabilities, and the best policy at a point, in plain float64.

V = r + P·V. With expected visits ηᵀ = e₀ᵀ(I − P)⁻¹ a transition has ∂V(initial)/∂p =
η(state)·weight·V(successor). Step-bounded objectives are unrolled and differentiated backwards. The best
policy comes from one backward pass on acyclic models, otherwise from policy iteration. It starts at a policy
that terminates wherever one can, and makes only changes that gain: these preserve it (docs/proofs/values.md).

Nothing is rounded safely: slopes only guide cuts and bets. Results depend on the arguments alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, Indices, OffsetArray

MOST_STORED = 50_000_000
"""Values kept while a step-bounded objective is unrolled; beyond that it has no slopes."""

MOST_CYCLIC = 300_000
"""States of a chain with cycles whose equations are solved."""

_ROUNDS = 200
_CLOSE = 1e-9
"""Choices this near to the best one count as equal, relatively: the first of them is taken."""


NEVER = 1e150
"""The value of a state from which a reward without end is collected."""


@dataclass(frozen=True, eq=False)
class GraphQuestion:
    """A model's graph and what is asked of it. `kind` and all else as in `tightrope.model.objective`."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: Indices
    initial: int
    kind: str
    maximises: bool
    complement: bool
    lower_steps: int = 0
    upper_steps: int | None = None
    discount: float | None = None
    reward: FloatArray | None = None
    target: BoolArray | None = None
    allowed: BoolArray | None = None
    terminal: FloatArray | None = None

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    @cached_property
    def owner(self) -> OffsetArray:
        """The state of every choice."""
        return np.repeat(np.arange(self.states), np.diff(self.choice_start))

    @cached_property
    def origin(self) -> OffsetArray:
        """The state of every transition."""
        return np.repeat(self.owner, np.diff(self.transition_start))

    @cached_property
    def earned(self) -> FloatArray:
        return np.zeros(len(self.owner)) if self.reward is None else self.reward

    @property
    def rate(self) -> float:
        return 1.0 if self.discount is None else self.discount

    @property
    def is_bounded(self) -> bool:
        """Whether the best policy has a choice for every step, of which there are finitely many."""
        return self.upper_steps is not None and self.kind != "NEXT"

    @cached_property
    def fixed(self) -> BoolArray:
        """Where a value is known whatever is done: before any backup that a bound on the steps asks for."""
        if self.kind == "UNTIL" and self.target is not None:
            return self.target if self.allowed is None else self.target | ~self.allowed
        if self.kind == "REACH_REWARD" and self.target is not None:
            return self.target
        return np.zeros(self.states, dtype=np.bool_)

    @cached_property
    def value(self) -> FloatArray:
        """On `fixed`."""
        if self.kind == "UNTIL" and self.target is not None:
            return self.target.astype(np.float64)
        if self.kind == "REACH_REWARD" and self.terminal is not None:
            return np.where(self.fixed, self.terminal, 0.0)
        return np.zeros(self.states)

    @property
    def ends(self) -> OffsetArray:
        """The states that a play is to reach."""
        return np.flatnonzero(self.fixed & (self.value > 0.0) if self.kind == "UNTIL" else self.fixed)

    @cached_property
    def decided(self) -> tuple[BoolArray, FloatArray]:
        """States whose value no policy changes, with these values."""
        return self.known(self.origin, self.successor, self.owner[self.earned > 0.0])

    def known(
        self, origin: Indices, successor: Indices, earning: OffsetArray
    ) -> tuple[BoolArray, FloatArray]:
        """The same where only these transitions are left, and these states earn something."""
        fixed, value = self.fixed, self.value
        if self.kind == "DISCOUNTED":
            return fixed, value
        open_ended = ~fixed[origin]
        ends = earning if self.kind == "TOTAL" else self.ends
        back = find_reached(self.states, successor[open_ended], origin[open_ended], ends)
        if self.kind != "REACH_REWARD":
            return fixed | ~back, value
        return fixed | ~back, np.where(back | fixed, value, NEVER)

    @cached_property
    def layers(self) -> OffsetArray | None:
        """For every state the longest way to a decided one; None where there are cycles."""
        held = self.decided[0]
        moves = ~held[self.origin]
        return layers_of(self.states, self.origin[moves], self.successor[moves])

    def backup(self, probability: FloatArray, values: FloatArray) -> FloatArray:
        """r + P·V of every choice."""
        terms = np.add.reduceat(probability * values[self.successor], self.transition_start[:-1])
        return self.earned + self.rate * terms


def spread(start: OffsetArray, groups: Indices) -> tuple[OffsetArray, OffsetArray]:
    """(the members of these groups, where each group starts among them)."""
    length = start[groups + 1] - start[groups]
    begin = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    return np.arange(int(begin[-1])) + np.repeat(start[groups] - begin[:-1], length), begin


def find_reached(states: int, origin: Indices, successor: Indices, begin: OffsetArray) -> BoolArray:
    """The states on a way along these transitions from where one begins; SciPy is ten times as fast."""
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order
    except ImportError:
        return np.asarray(breadth_first(states, origin, successor, begin) >= 0)
    rows = np.concatenate([origin, np.full(len(begin), states)])
    columns = np.concatenate([successor, begin])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(states + 1, states + 1))
    reached = np.zeros(states + 1, dtype=np.bool_)
    reached[breadth_first_order(graph, states, return_predecessors=False)] = True
    return reached[:-1]


def breadth_first(states: int, origin: Indices, successor: Indices, begin: OffsetArray) -> OffsetArray:
    """Of every state the one before it on a shortest way from where one begins, where it is itself; −1 where
    there is no way."""
    order = np.lexsort((successor, origin))
    after, start = successor[order], np.searchsorted(origin[order], np.arange(states + 1))
    before = np.full(states, -1, dtype=np.int64)
    front: Indices = np.unique(begin)
    before[front] = front
    while len(front):
        moves, begins = spread(start, front)
        into, whence = after[moves], np.repeat(front, np.diff(begins))
        new = np.flatnonzero(before[into] < 0)
        new = new[np.sort(np.unique(into[new], return_index=True)[1])]
        front = into[new]
        before[front] = whence[new]
    return before


def layers_of(states: int, origin: Indices, successor: Indices) -> OffsetArray | None:
    """The length of the longest way from each state along these transitions; None where one has no end."""
    left, layer = np.bincount(origin, minlength=states), np.zeros(states, dtype=np.int64)
    back = np.argsort(successor, kind="stable")
    origin, start = origin[back], np.searchsorted(successor[back], np.arange(states + 1))
    ended, number, done = np.flatnonzero(left == 0), 0, 0
    while len(ended):
        layer[ended] = number
        number, done = number + 1, done + len(ended)
        before = origin[spread(start, ended)[0]]
        np.subtract.at(left, before, 1)
        ended = np.unique(before[left[before] == 0])
    return layer if done == states else None


def best_policy(
    question: GraphQuestion, probability: FloatArray, start: OffsetArray | None = None
) -> OffsetArray | None:
    """A choice for every state, best at these probabilities of transitions; None where none was found.

    Policy iteration begins with `start` where it is given.
    """
    if question.layers is not None:
        only: OffsetArray = best_at_points(question, probability[None, :])[0]
        return only
    sign = 1.0 if question.maximises else -1.0
    policy = _ending(question) if start is None else start
    for _ in range(_ROUNDS):
        chain = PolicyEquations.of(question, _take(question, policy), everywhere=True)
        solved = None if chain is None else chain.solved(chain.matrix(probability))
        if chain is None or solved is None:
            return None
        values = sign * solved.values
        best, first = _best(sign * question.backup(probability, solved.values), question.choice_start)
        better = (best > values + _CLOSE * (1.0 + np.abs(best))) & ~question.decided[0]
        if not better.any():
            break
        policy = np.where(better, first, policy)
    return policy


def value_slopes(
    question: GraphQuestion, weight: FloatArray, probability: FloatArray
) -> tuple[OffsetArray, FloatArray] | None:
    """(transitions, ∂value/∂probability of each) of the policy that takes choices with these weights.

    None where the value is infinite, the equations are singular, or the steps too many.
    """
    chain = PolicyEquations.of(question, weight, everywhere=False)
    return None if chain is None else chain.slopes(probability)


def met_choices(question: GraphQuestion, weight: FloatArray) -> OffsetArray:
    """The choices that a policy with these weights may come to take before values are decided."""
    used = np.flatnonzero(weight > 0.0)
    move, _ = spread(question.transition_start, used)
    if not question.lower_steps:
        move = move[~question.decided[0][question.origin[move]]]
    begin = np.array([question.initial])
    met = find_reached(question.states, question.origin[move], question.successor[move], begin)
    return used[met[question.owner[used]]]


def best_steps(question: GraphQuestion, probability: FloatArray) -> tuple[OffsetArray, ...] | None:
    """A choice for every state and step, the last step first, where steps are bounded; None where those of
    all states are too many."""
    phases, values = phases_of(question, np.arange(question.states)), first_values(question)
    if values is None or sum(steps for steps, _, _ in phases) * question.states > MOST_STORED:
        return None
    sign, choices = 1.0 if question.maximises else -1.0, list[OffsetArray]()
    for steps, held, value in phases:
        for _ in range(steps):
            best, first = _best(sign * question.backup(probability, values), question.choice_start)
            values = np.where(held, value, sign * best)
            choices.append(first)
    return tuple(choices)


def step_slopes(
    question: GraphQuestion, choices: tuple[OffsetArray, ...], probability: FloatArray
) -> tuple[OffsetArray, FloatArray] | None:
    """(transitions, ∂value/∂probability of each) of a policy of such choices."""
    phases, first = phases_of(question, np.arange(question.states)), first_values(question)
    if first is None:
        return None
    held = [phase for phase in phases for _ in range(phase[0])]
    values, every = [first], np.arange(question.states)
    for choice, (_, fixed, value) in zip(choices, held, strict=True):
        gain = question.backup(probability, values[-1])[choice]
        values.append(np.where(fixed, value, gain))
    visits, slope = np.zeros(question.states), np.zeros(len(probability))
    visits[question.initial] = 1.0
    for step in range(len(choices) - 1, -1, -1):
        met = every[(visits > 0.0) & ~held[step][1]]
        moves, start = spread(question.transition_start, choices[step][met])
        weight = np.repeat(visits[met] * question.rate, np.diff(start))
        slope[moves] += weight * values[step][question.successor[moves]]
        into, flow = question.successor[moves], weight * probability[moves]
        visits = np.bincount(into, flow, question.states).astype(np.float64)
    slope = -slope if question.complement else slope
    return (np.arange(len(slope)), slope) if bool(np.all(np.isfinite(slope))) else None


Phase = tuple[int, BoolArray, FloatArray]
"""(backups, where the value is then set, to what)."""


def first_values(question: GraphQuestion) -> FloatArray | None:
    """What a bounded number of steps begins with, in every state; None where an equation says that."""
    if question.kind == "CUMULATIVE":
        return np.zeros(question.states)
    if question.target is None or (question.kind != "NEXT" and question.upper_steps is None):
        return None
    return question.target.astype(np.float64)


def phases_of(question: GraphQuestion, state: OffsetArray) -> list[Phase]:
    """The phases of a bounded number of steps, on these states."""
    nowhere, zero = np.zeros(len(state), dtype=np.bool_), np.zeros(len(state))
    if question.kind == "CUMULATIVE" and question.upper_steps is not None:
        return [(question.upper_steps, nowhere, zero)]
    if question.kind == "NEXT":
        return [(1, nowhere, zero)]
    phases: list[Phase] = []
    if question.kind == "UNTIL" and question.target is not None:
        barred = nowhere if question.allowed is None else ~question.allowed[state]
        target = question.target[state]
        if question.upper_steps is not None:
            last = question.upper_steps - question.lower_steps
            phases.append((last, barred | target, target.astype(np.float64)))
        if question.lower_steps:
            phases.append((question.lower_steps, barred, zero))
    return phases


def _take(question: GraphQuestion, choice: OffsetArray) -> FloatArray:
    weight = np.zeros(len(question.owner))
    weight[choice] = 1.0
    return weight


def _best(gain: FloatArray, start: OffsetArray) -> tuple[FloatArray, OffsetArray]:
    """The largest gain of each group of choices, and the first that has it or nearly so; choices are the last
    axis."""
    best = np.maximum.reduceat(gain, start[:-1], axis=-1)
    floor = np.repeat(best - _CLOSE * (1.0 + np.abs(best)), np.diff(start), axis=-1)
    near = np.where(gain >= floor, np.arange(gain.shape[-1]), gain.shape[-1])
    return best, np.minimum(np.minimum.reduceat(near, start[:-1], axis=-1), start[1:] - 1)


def best_at_points(question: GraphQuestion, probability: FloatArray) -> OffsetArray:
    """A choice for every point and state of a model without cycles, best at probabilities [points,
    transitions]: in one pass over its layers."""
    layers, (held, value) = question.layers, question.decided
    assert layers is not None
    sign, points = 1.0 if question.maximises else -1.0, len(probability)
    values = np.tile(np.where(held, value, 0.0), (points, 1))
    policy = np.tile(question.choice_start[:-1], (points, 1))
    order = np.argsort(layers, kind="stable")
    order = order[~held[order]]
    ends = np.flatnonzero(np.diff(layers[order], append=-1)) + 1
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False):
        states = order[begin:end]
        choices, choice_start = spread(question.choice_start, states)
        moves, move_start = spread(question.transition_start, choices)
        terms = probability[:, moves] * values[:, question.successor[moves]]
        gain = question.earned[choices] + question.rate * np.add.reduceat(terms, move_start[:-1], axis=1)
        best, first = _best(sign * gain, choice_start)
        values[:, states], policy[:, states] = sign * best, choices[first]
    return policy


def _ending(question: GraphQuestion) -> OffsetArray:
    """A policy that from every state takes a choice on a shortest way to where values are decided."""
    held = question.decided[0]
    policy = question.choice_start[:-1].copy()
    if not held.any():
        return policy
    ends = np.flatnonzero(held) if question.kind == "TOTAL" else question.ends
    moves = np.flatnonzero(~held[question.origin])
    towards = breadth_first(question.states, question.successor[moves], question.origin[moves], ends)
    on_way = moves[question.successor[moves] == towards[question.origin[moves]]]
    choice = np.repeat(np.arange(len(question.owner)), np.diff(question.transition_start))
    policy[question.origin[on_way][::-1]] = choice[on_way][::-1]
    return policy


@dataclass(frozen=True, eq=False)
class PolicyEquations:
    """A policy's equations: entry i leads from row[i] to column[i] (−1: where it no longer matters)."""

    question: GraphQuestion
    row: OffsetArray
    column: OffsetArray
    transition: OffsetArray
    chance: FloatArray
    reward: FloatArray
    fixed: BoolArray
    value: FloatArray
    state: OffsetArray
    initial: int

    @staticmethod
    def of(question: GraphQuestion, weight: FloatArray, everywhere: bool) -> PolicyEquations | None:
        """On all states, or on those that the policy meets; None where one of these has no value."""
        used = np.flatnonzero(weight > 0.0)
        transition, _ = spread(question.transition_start, used)
        chance = np.repeat(weight[used], np.diff(question.transition_start)[used])
        origin, successor = question.origin[transition], question.successor[transition]
        reward: FloatArray = np.zeros(question.states)
        np.add.at(reward, question.owner[used], weight[used] * question.earned[used])
        if question.upper_steps is not None or question.kind == "NEXT":
            fixed, value = np.zeros(question.states, dtype=np.bool_), np.zeros(question.states)
        else:
            fixed, value = question.known(origin, successor, np.flatnonzero(reward > 0.0))
        stops = fixed & (question.lower_steps == 0)
        met = np.ones(question.states, dtype=np.bool_)
        if not everywhere:
            moves = ~stops[origin]
            met = find_reached(question.states, origin[moves], successor[moves], np.array([question.initial]))
            if np.any(value[met] >= NEVER):
                return None
        number = np.cumsum(met) - 1
        inside = met[origin]
        column = np.where(met[successor], number[successor], -1)[inside]
        return PolicyEquations(
            question,
            number[origin[inside]],
            column,
            transition[inside],
            chance[inside] * question.rate,
            reward[met],
            fixed[met],
            value[met],
            np.flatnonzero(met),
            int(number[question.initial]),
        )

    def matrix(self, probability: FloatArray) -> Matrix:
        inside, data = self.column >= 0, self.chance * probability[self.transition]
        return Matrix(self.row[inside], self.column[inside], data[inside], len(self.reward))

    def solved(self, matrix: Matrix) -> SolvedEquations | None:
        """The values where nothing bounds the steps; None where the equations are singular, or too many."""
        free = np.flatnonzero(~self.fixed)
        moves = ~self.fixed[self.row] & (self.column >= 0)
        layer = layers_of(len(self.fixed), self.row[moves], self.column[moves])
        if layer is None and len(free) > MOST_CYCLIC:
            return None
        if layer is not None:
            free = free[np.argsort(layer[free], kind="stable")]
        known = np.where(self.fixed, self.value, 0.0)
        return SolvedEquations.of(matrix, self.reward, known, free, layer is not None)

    def slopes(self, probability: FloatArray) -> tuple[OffsetArray, FloatArray] | None:
        """∂value/∂probability of every transition that is met."""
        solved = self.passes(probability)
        if solved is None:
            return None
        slope = np.zeros(len(self.row))
        for visits, values in solved[1]:
            slope += visits[self.row] * values[self.column]
        slope = np.where(self.column >= 0, slope * self.chance, 0.0)
        slope = -slope if self.question.complement else slope
        return (self.transition, slope) if bool(np.all(np.isfinite(slope))) else None

    def passes(self, probability: FloatArray) -> tuple[float, list[tuple[FloatArray, FloatArray]]] | None:
        """The value, and pairs (expected visits of each row, values of what follows them) that make it up."""
        phases, begin = phases_of(self.question, self.state), first_values(self.question)
        first, matrix = None if begin is None else begin[self.state], self.matrix(probability)
        if sum(steps for steps, _, _ in phases) * len(self.reward) > MOST_STORED:
            return None
        base = self.solved(matrix) if first is None else None
        if first is None:
            if base is None:
                return None
            first = base.values
        values = [first]
        for steps, held, value in phases:
            for _ in range(steps):
                values.append(np.where(held, value, self.reward + matrix.times(values[-1])))
        visits, pairs = np.zeros(len(self.reward)), []
        visits[self.initial] = 1.0
        step, transposed = len(values) - 1, matrix.transposed
        for steps, held, _ in reversed(phases):
            for _ in range(steps):
                step -= 1
                visits = np.where(held, 0.0, visits)
                pairs.append((visits, values[step]))
                visits = transposed.times(visits)
        if base is not None:
            pairs.append((base.visits(visits), values[0]))
        return float(values[-1][self.initial]), pairs


@dataclass(frozen=True, eq=False)
class Matrix:
    """The entries of a square matrix; those at one place are added up."""

    row: OffsetArray
    column: OffsetArray
    value: FloatArray
    size: int

    def times(self, vector: FloatArray) -> FloatArray:
        return np.bincount(self.row, self.value * vector[self.column], self.size).astype(np.float64)

    @property
    def transposed(self) -> Matrix:
        return Matrix(self.column, self.row, self.value, self.size)

    def within(self, rows: OffsetArray) -> Matrix:
        """These rows and columns, in their order."""
        place = np.full(self.size, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        row, column = place[self.row], place[self.column]
        inside = (row >= 0) & (column >= 0)
        return Matrix(row[inside], column[inside], self.value[inside], len(rows))


@dataclass(frozen=True, eq=False)
class SolvedEquations:
    """V = r + P·V on the rows that are not fixed, solved."""

    free: OffsetArray
    factor: Any
    values: FloatArray

    @staticmethod
    def of(
        matrix: Matrix, reward: FloatArray, known: FloatArray, free: OffsetArray, ordered: bool
    ) -> SolvedEquations | None:
        """The rows `free`, the others being `known`; None where the equations are singular.

        `ordered`: every row leads to fixed ones and to earlier ones of `free`.
        """
        values = known.copy()
        try:
            factor = _factorised(matrix.within(free), ordered)
        except (ArithmeticError, RuntimeError, Warning):
            return None
        if len(free):
            values[free] = factor.solve((reward + matrix.times(known))[free])
        return SolvedEquations(free, factor, values)

    def visits(self, weight: FloatArray) -> FloatArray:
        """Expected visits of every row where the rows are begun from with these weights; fixed ones end."""
        result = np.zeros(len(weight))
        if len(self.free):
            result[self.free] = self.factor.solve(weight[self.free], trans="T")
        return result


def _factorised(matrix: Matrix, ordered: bool) -> Any:
    """1 − matrix, ready to be solved with: by SciPy where it is installed, which is many times as fast."""
    try:
        from scipy.sparse import coo_array, eye_array
        from scipy.sparse.linalg import splu
    except ImportError:
        return Elimination(matrix, ordered)
    entries = coo_array((matrix.value, (matrix.row, matrix.column)), shape=(matrix.size, matrix.size))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system = (eye_array(matrix.size, format="csc") - entries.tocsc()).tocsc()
        return splu(system, permc_spec="NATURAL" if ordered else "COLAMD")


class Elimination:
    """1 − matrix = L·U, a row and a column eliminated after the other, those of few entries first. There is
    no pivoting: rows of probabilities are diagonally dominant."""

    def __init__(self, matrix: Matrix, ordered: bool):
        size = range(matrix.size)
        self.upper: list[dict[int, float]] = [{i: 1.0} for i in size]
        self.lower: list[list[tuple[int, float]]] = [[] for _ in size]
        self.pivot, self.order = [1.0] * matrix.size, list[int]()
        below: list[set[int]] = [set() for _ in size]
        entries = zip(matrix.row.tolist(), matrix.column.tolist(), matrix.value.tolist(), strict=True)
        for i, j, value in entries:
            self.upper[i][j] = self.upper[i].get(j, 0.0) - value
            below[j].add(i)
        waiting = [(0 if ordered else len(self.upper[i]) * len(below[i]), i) for i in size]
        heapify(waiting)
        done = [False] * matrix.size
        while waiting:
            work, k = heappop(waiting)
            now = 0 if ordered else len(self.upper[k]) * len(below[k])
            if done[k] or now > 2 * work:
                if not done[k]:
                    heappush(waiting, (now, k))
                continue
            done[k] = True
            self._eliminate(k, below)

    def _eliminate(self, k: int, below: list[set[int]]) -> None:
        row = self.upper[k]
        self.pivot[k] = pivot = row.pop(k)
        if pivot == 0.0:
            raise ZeroDivisionError("singular equations")
        self.order.append(k)
        for j in row:
            below[j].discard(k)
        for i in below[k] - {k}:
            other = self.upper[i]
            factor = other.pop(k) / pivot
            self.lower[k].append((i, factor))
            for j, value in row.items():
                other[j] = other.get(j, 0.0) - factor * value
                below[j].add(i)

    def solve(self, right: FloatArray, trans: str = "N") -> FloatArray:
        """x with (1 − matrix)·x = right, or of the transposed matrix ("T")."""
        x = right.tolist()
        if trans == "N":
            for k in self.order:
                for i, factor in self.lower[k]:
                    x[i] -= factor * x[k]
            for k in reversed(self.order):
                x[k] = (x[k] - sum(value * x[j] for j, value in self.upper[k].items())) / self.pivot[k]
        else:
            for k in self.order:
                x[k] /= self.pivot[k]
                for j, value in self.upper[k].items():
                    x[j] -= value * x[k]
            for k in reversed(self.order):
                x[k] -= sum(factor * x[i] for i, factor in self.lower[k])
        return np.array(x)
