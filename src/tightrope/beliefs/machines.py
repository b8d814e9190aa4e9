"""Finite controllers for the search: the values of their nodes in every state, in plain float64.

No bound uses them; exported controllers are evaluated again with verified bounds. A node belongs to an
observation. It has an action and a next node per observation; where none is given, the first controller found
goes on, which knows only the observation (and a phase).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron
from scipy.sparse.linalg import splu

from tightrope.beliefs.question import Question
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray, offsets

FAR = 1e12
"""What stands for infinity in tables."""

LEAK = 1e-9
"""A play stops at every step with this probability, so that equations have one solution."""

SEARCH_LEAK = 1e-3
"""The same while controllers without memory are improved: what never ends is then not infinitely bad."""

EACH = 1000
"""What solving a system costs beside its transitions, in transitions."""

DENSE = 10_000
"""Matrices from one look to another with more entries are sparse ones."""


SMALL_SYSTEM = 100
"""States up to which equations are solved as full ones: to lay out a sparse factorisation takes longer."""

SURE = 1 - 1e-5
"""A target that is reached less surely is missed."""


@dataclass(eq=False)
class Work:
    """What a search may do: transitions read, the same on every machine, and a clock where one is given."""

    most: float
    deadline: float = math.inf
    done: int = 0

    def add(self, transitions: int) -> None:
        self.done += transitions

    @property
    def is_late(self) -> bool:
        return math.isfinite(self.deadline) and time.perf_counter() > self.deadline

    @property
    def is_over(self) -> bool:
        return self.done >= self.most or self.is_late


@dataclass(eq=False)
class Rows:
    """The question's rows as float64, one per state and action, all states' actions behind each other. A
    controller takes one of `offered` actions on each of its own looks: `look` of every state, `group` of
    every look of the question. It has `nodes`, by turns or, where it `steers`, as its actions say."""

    question: Question
    start: OffsetArray
    matrix: csr_array
    success: FloatArray
    reward: FloatArray
    look: IndexArray
    group: IndexArray
    offered: IndexArray
    nodes: int = 1
    steers: bool = False

    @staticmethod
    def of(question: Question) -> Rows:
        start = offsets([len(own) for own in question.rows])
        flat = [row for own in question.rows for row in own]
        ends = offsets([len(row.successor) for row in flat])
        index = np.array([s for row in flat for s in row.successor], np.int64)
        data = np.array([w / row.total for row in flat for w in row.weight])
        shape = (len(flat), len(question.rows))
        return Rows(
            question,
            start,
            csr_array((data, index, ends), shape=shape),
            np.array([row.success / row.total for row in flat]),
            np.array([float(row.reward) for row in flat]),
            np.array(question.look, np.int32),
            np.arange(len(question.looks), dtype=np.int32),
            np.array([question.actions_of(look) for look in range(len(question.looks))], np.int32),
        )

    @property
    def states(self) -> int:
        return len(self.start) - 1

    @property
    def gain(self) -> FloatArray:
        """What a row earns at once."""
        return self.reward if self.question.earns else self.success

    def without_steps(self) -> Rows:
        """The same where a controller does not know the number of steps."""
        seen = np.array([seen for seen, _ in self.question.looks])
        _, one, place = np.unique(seen, return_index=True, return_inverse=True)
        group: IndexArray = place.astype(np.int32)
        return replace(self, look=group[self.look], group=group, offered=self.offered[one])

    def in_phases(self, phases: int) -> Rows:
        """The same where a controller knows the number of steps taken, modulo `phases`."""
        turn = csr_array(np.roll(np.eye(phases), 1, axis=1))
        return self._in_nodes(phases, False, csr_array(kron(turn, self.matrix)))

    def in_nodes(self, nodes: int) -> Rows:
        """The same where an action also says which of some nodes follows."""
        entries, after = self.matrix.tocoo(), np.arange(nodes)
        row = (entries.row[:, None] * np.int64(nodes) + after).ravel()
        column = (entries.col[:, None] + after * np.int64(self.states)).ravel()
        shape = len(self.success) * nodes, self.states * nodes
        one = csr_array((np.repeat(entries.data, nodes), (row, column)), shape=shape)
        return self._in_nodes(nodes, True, csr_array(kron(np.ones((nodes, 1)), one)))

    def _in_nodes(self, nodes: int, steers: bool, matrix: csr_array) -> Rows:
        times = nodes if steers else 1
        start = offsets(np.tile(np.diff(self.start) * times, nodes))
        look = np.concatenate([self.look + len(self.offered) * node for node in range(nodes)])
        success, reward = (np.tile(np.repeat(own, times), nodes) for own in (self.success, self.reward))
        offered = np.tile(self.offered * times, nodes)
        return replace(
            self,
            start=start,
            matrix=matrix,
            success=success,
            reward=reward,
            look=look.astype(np.int32),
            offered=offered,
            nodes=nodes,
            steers=steers,
        )

    def table(self, policy: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Actions and nodes that follow, by node and look of the question."""
        own = policy.reshape(self.nodes, -1)[:, self.group]
        if self.steers:
            return own // self.nodes, own % self.nodes
        return own, np.tile(
            (np.arange(self.nodes, dtype=np.int32)[:, None] + 1) % self.nodes, len(self.group)
        )

    def evaluate(self, policy: IndexArray, leak: float = LEAK) -> tuple[FloatArray, FloatArray]:
        """Values of all states, and expected visits from the first one, of an action per look."""
        chosen = self.start[:-1] + policy[self.look]
        matrix = self.matrix[chosen]
        solve = solver_of(matrix, leak)
        value = solve(self.gain[chosen], False)
        if self.question.must_reach and leak == LEAK:
            reached = solve(self.success[chosen], False)
            value = np.where(reached < SURE, np.inf, value)
        first = np.zeros(self.states)
        first[self.question.first] = 1.0
        return value, np.maximum(solve(first, True), 0.0)


def solver_of(matrix: csr_array, leak: float) -> Callable[[FloatArray, bool], FloatArray]:
    """Solves (1 − (1 − leak)·matrix) x = b, transposed or not. What is found steers the search alone."""
    size = matrix.shape[0]
    if size <= SMALL_SYSTEM:
        dense = np.eye(size) - (1 - leak) * matrix.toarray()
        return lambda right, is_transposed: np.linalg.solve(dense.T if is_transposed else dense, right)
    system = splu((eye_array(size) - (1 - leak) * matrix).tocsc())
    return lambda right, is_transposed: system.solve(right, trans="T" if is_transposed else "N")


def improve(rows: Rows, policy: IndexArray, work: Work, rounds: int = 30) -> tuple[IndexArray, FloatArray]:
    """A controller of few nodes, changed look by look while that pays; with its values."""
    question = rows.question
    sign = 1.0 if question.maximises else -1.0
    first = question.first
    value, visits = rows.evaluate(policy, SEARCH_LEAK)
    begin = offsets(rows.offered)
    owner = np.repeat(rows.look, np.diff(rows.start))
    cell = begin[owner] + np.arange(len(owner)) - np.repeat(rows.start[:-1], np.diff(rows.start))
    for _ in range(rounds):
        worth = rows.gain + rows.matrix @ value
        weight = np.repeat(visits + 1e-12, np.diff(rows.start))
        table = sign * np.bincount(cell, weight * worth, begin[-1])
        best = first_of_best(table, begin) - begin[:-1]
        gain = table[begin[:-1] + best] - table[begin[:-1] + policy]
        gains = np.flatnonzero(gain > 1e-12)
        candidates = [np.where(gain > 1e-12, best, policy)] if len(gains) else []
        for look in gains[np.argsort(-gain[gains], kind="stable")[:4]]:
            one = policy.copy()
            one[look] = best[look]
            candidates.append(one)
        for candidate in candidates:
            new, seen = rows.evaluate(candidate, SEARCH_LEAK)
            work.add(EACH + rows.matrix.nnz)
            if sign * (new[first] - value[first]) > 1e-12:
                policy, value, visits = candidate, new, seen
                break
        else:
            break
        if work.is_over:
            break
    return policy, rows.evaluate(policy)[0]


def first_of_best(worth: NDArray[np.floating[Any]], start: OffsetArray) -> OffsetArray:
    """The first of the largest entries of every part, by its place."""
    most = np.repeat(np.maximum.reduceat(worth, start[:-1]), np.diff(start))
    place = np.where(worth >= most, np.arange(len(worth)), len(worth))
    best: OffsetArray = np.minimum.reduceat(place, start[:-1])
    return best


@dataclass(eq=False)
class Machines:
    """All nodes found so far: the memoryless ones first, one per look and memoryless controller."""

    rows: Rows
    action: list[int] = field(default_factory=list)
    look: list[int] = field(default_factory=list)
    following: list[dict[int, int]] = field(default_factory=list)
    value: list[FloatArray] = field(default_factory=list)
    """Per node, the values of the states with its look, in the order of `members`."""
    members: list[OffsetArray] = field(default_factory=list)
    place: IndexArray = field(default_factory=lambda: np.zeros(0, np.int32))
    by_look: list[list[int]] = field(default_factory=list)
    """The nodes of every look that are worth trying."""
    tables: dict[int, tuple[int, FloatArray]] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    steps: dict[tuple[int, int], tuple[FloatArray, dict[int, Any]]] = field(default_factory=dict)

    @staticmethod
    def of(rows: Rows) -> Machines:
        looks = len(rows.question.looks)
        members = [np.flatnonzero(rows.look == look) for look in range(looks)]
        place = np.zeros(rows.states, np.int32)
        for own in members:
            place[own] = np.arange(len(own))
        return Machines(
            rows, members=members, place=place, seen=rows.look.tolist(), by_look=[[] for _ in range(looks)]
        )

    def add_controller(self, rows: Rows, policy: IndexArray, value: FloatArray) -> None:
        """A node per look and node; the first such controller is what nodes fall back on."""
        looks, begin = len(self.members), len(self.action)
        action, after = rows.table(policy)
        behind = [{look: begin + k * looks + look for look in range(looks)} for k in range(rows.nodes)]
        for node in range(rows.nodes):
            for look, own in enumerate(self.members):
                worth = value[node * self.rows.states + own]
                self._add(int(action[node, look]), look, behind[int(after[node, look])], worth)

    def _add(self, action: int, look: int, following: dict[int, int], value: FloatArray) -> int:
        self.action.append(action)
        self.look.append(look)
        self.following.append(following)
        self.value.append(value)
        self.by_look[look].append(len(self.action) - 1)
        return len(self.action) - 1

    def next_node(self, node: int, look: int) -> int:
        return self.following[node].get(look, look)

    def best(self, look: int, weights: FloatArray) -> tuple[FloatArray, OffsetArray]:
        """The best node of a look in each of some beliefs (rows, over the look's states), and its worth."""
        nodes = self.by_look[look]
        count, table = self.tables.get(look, (0, np.zeros((0, 0))))
        if count != len(nodes):
            table = np.minimum(np.array([self.value[n] for n in nodes]), FAR)
            self.tables[look] = len(nodes), table
        worth = weights @ table.T
        at = np.argmax(worth, axis=1) if self.rows.question.maximises else np.argmin(worth, axis=1)
        value = worth[np.arange(len(worth)), at]
        return np.where(value > FAR / 1e3, np.inf, value), np.array(nodes, np.int64)[at]

    def improve(self, look: int, weights: FloatArray) -> tuple[FloatArray, OffsetArray]:
        """A new node for each of some beliefs where one that goes on with old nodes is better: as `best`."""
        sign = 1.0 if self.rows.question.maximises else -1.0
        value, node = self.best(look, weights)
        plans = []
        for action in range(int(self.rows.offered[look])):
            gain, behind = self.step(look, action)
            worth, links = weights @ gain, []
            for seen, matrix in behind.items():
                own, following = self.best(seen, weights @ matrix)
                worth = worth + own
                links.append(following)
            plans.append((sign * worth, links))
        table = np.array([worth for worth, _ in plans])
        chosen = np.argmax(table, axis=0)
        most = table[chosen, np.arange(len(weights))]
        made = set()
        for n in np.flatnonzero(most > sign * value + 1e-9 * np.maximum(1.0, np.abs(most))).tolist():
            action = int(chosen[n])
            behind = self.step(look, action)[1]
            after = tuple(int(following[n]) for following in plans[action][1])
            if (action, after) not in made:
                made.add((action, after))
                worth = self.step(look, action)[0].copy()
                for matrix, next_node in zip(behind.values(), after, strict=True):
                    worth += matrix @ np.minimum(self.value[next_node], FAR)
                worth = np.where(worth > FAR / 1e3, np.inf, worth)
                self._add(action, look, dict(zip(behind, after, strict=True)), worth)
        return self.best(look, weights) if made else (value, node)

    def step(self, look: int, action: int) -> tuple[FloatArray, dict[int, Any]]:
        """What an action earns at once in the states of a look, and its matrix to each look behind."""
        key = (look, action)
        if key not in self.steps:
            chosen = self.rows.start[self.members[look]] + action
            part = self.rows.matrix
            entries: dict[int, list[tuple[float, int, int]]] = {}
            for at, row in enumerate(chosen.tolist()):
                span = slice(part.indptr[row], part.indptr[row + 1])
                for state, chance in zip(part.indices[span].tolist(), part.data[span].tolist(), strict=True):
                    entries.setdefault(self.seen[state], []).append((chance, at, int(self.place[state])))
            behind = {}
            for seen, own in entries.items():
                data, row, column = zip(*own, strict=True)
                shape = len(chosen), len(self.members[seen])
                matrix = csr_array((data, (row, column)), shape=shape)
                behind[seen] = matrix if shape[0] * shape[1] > DENSE else matrix.toarray()
            self.steps[key] = self.rows.gain[chosen], behind
        return self.steps[key]

    def keep(self, look: int, nodes: set[int]) -> None:
        """Try only these nodes from now on, and the first one."""
        own = self.by_look[look]
        self.by_look[look] = [own[0], *(n for n in own[1:] if n in nodes)]
        self.tables.pop(look, None)

    def add_nodes(self, action: list[int], look: list[int], following: list[dict[int, int]]) -> list[int]:
        """New nodes that refer to each other by negative numbers −1, −2, … and to old ones by theirs."""
        count, begin = len(action), len(self.action)
        links = [{seen: begin - 1 - n if n < 0 else n for seen, n in own.items()} for own in following]
        offset = offsets([len(self.members[o]) for o in look]).astype(np.int64)
        chosen = np.concatenate(
            [self.rows.start[self.members[o]] + k for o, k in zip(look, action, strict=True)]
        )
        owner = np.repeat(np.arange(count), np.diff(offset))
        part = self.rows.matrix[chosen]
        row = np.repeat(np.arange(len(chosen)), np.diff(part.indptr))
        constant = self.rows.gain[chosen].copy()
        reach = self.rows.success[chosen].copy()
        width = np.int64(len(self.members))
        pairs, back = np.unique(owner[row] * width + self.rows.look[part.indices], return_inverse=True)
        nodes = [links[pair // width].get(pair % width, pair % width) for pair in pairs.tolist()]
        target = np.array(nodes, np.int64)[back]
        new = target >= begin
        inner_row, inner_data = row[new], part.data[new]
        inner_column = offset[target[new] - begin] + self.place[part.indices[new]]
        old = np.flatnonzero(~new)
        lengths = np.array([len(v) for v in self.value])
        flat = np.concatenate(self.value)
        where = offsets(lengths)
        values = flat[where[target[old]] + self.place[part.indices[old]]]
        must = self.rows.question.must_reach
        np.add.at(constant, row[old], part.data[old] * np.where(np.isfinite(values), values, 1e9))
        if must:
            np.add.at(reach, row[old], part.data[old] * np.isfinite(values))
        size = len(chosen)
        inner = csr_array((inner_data, (inner_row, inner_column)), shape=(size, size))
        solve = solver_of(inner, LEAK)
        solved = solve(constant, False)
        if must:
            solved = np.where(solve(reach, False) < SURE, np.inf, solved)
        made = []
        for n in range(count):
            own = solved[offset[n] : offset[n + 1]]
            made.append(self._add(action[n], look[n], links[n], own))
        return made
