"""Finite controllers for the search: what their nodes are worth in every state, in plain float64.

Nothing here ends in a bound: whoever exports a controller evaluates it once more, with verified bounds. A
node belongs to a look. It has an action and says which node follows on every look; where it does not, play
goes on with the first controller found, which knows only the look (and a phase).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron
from scipy.sparse.linalg import splu

from tightrope.beliefs.question import Question
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

FAR = 1e12
"""What stands for infinity in tables."""

LEAK = 1e-9
"""A play stops at every step with this probability, so that equations have one solution."""

SEARCH_LEAK = 1e-3
"""The same while controllers without memory are improved: what never ends is then not infinitely bad."""

EACH = 1000
"""What solving a system costs beside its transitions, in transitions."""

SWEEPS = 20

SURE = 1 - 1e-5
"""A target that is reached less surely is missed."""


@dataclass(eq=False)
class Work:
    """What a search may do: so many transitions are read at most, and a clock where a user gave one. Counts
    are the same on every machine and under every load, so that what is found without a clock is too."""

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
    every look of the question. It has `nodes`, by turns or, where it `steers`, as its actions say.
    """

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
        start = np.concatenate([[0], np.cumsum([len(own) for own in question.rows])])
        flat = [row for own in question.rows for row in own]
        offsets = np.concatenate([[0], np.cumsum([len(row.successor) for row in flat])])
        index = np.array([s for row in flat for s in row.successor], np.int64)
        data = np.array([w / row.total for row in flat for w in row.weight])
        shape = (len(flat), len(question.rows))
        return Rows(
            question,
            start,
            csr_array((data, index, offsets), shape=shape),
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
        start = np.concatenate([[0], np.cumsum(np.tile(np.diff(self.start) * times, nodes))])
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
        system = splu((eye_array(self.states) - (1 - leak) * matrix).tocsc())
        value = system.solve(self.gain[chosen])
        if self.question.must_reach and leak == LEAK:
            reached = system.solve(self.success[chosen])
            value = np.where(reached < SURE, np.inf, value)
        first = np.zeros(self.states)
        first[self.question.first] = 1.0
        return value, np.maximum(system.solve(first, trans="T"), 0.0)


def improve(rows: Rows, policy: IndexArray, work: Work, rounds: int = 30) -> tuple[IndexArray, FloatArray]:
    """A controller of few nodes, changed look by look while that pays; with its values."""
    question = rows.question
    sign = 1.0 if question.maximises else -1.0
    first = question.first
    value, visits = rows.evaluate(policy, SEARCH_LEAK)
    begin = np.concatenate([[0], np.cumsum(rows.offered)])
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


def improve_backwards(
    rows: Rows, policy: IndexArray, rank: Sequence[int], work: Work
) -> tuple[IndexArray, FloatArray]:
    """Where no look comes again: the best action on every look, from the end of the play on, given how often
    its states are visited and what follows. No step makes a controller worse; sweeps while they pay."""
    sign = 1.0 if rows.question.maximises else -1.0
    rank_of_state = np.asarray(rank)[rows.look]
    levels = [np.flatnonzero(rank_of_state == level) for level in range(max(rank), -1, -1)]
    actions, width = np.diff(rows.start), int(rows.offered.max())
    value, visits = rows.evaluate(policy)
    for _ in range(SWEEPS):
        policy, before = policy.copy(), value[rows.question.first]
        for states in levels:
            count = actions[states]
            at = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            row = np.repeat(rows.start[states], count) + at
            worth = sign * (rows.gain[row] + rows.matrix[row] @ value)
            looks, own = np.unique(rows.look[states], return_inverse=True)
            table = np.zeros((len(looks), width))
            np.add.at(table, (np.repeat(own, count), at), np.repeat(visits[states] + 1e-12, count) * worth)
            table[np.arange(width) >= rows.offered[looks][:, None]] = -np.inf
            old, best = policy[looks], np.argmax(table, axis=1)
            each = np.arange(len(looks))
            policy[looks] = np.where(table[each, best] > table[each, old] + 1e-15, best, old)
            value[states] = sign * worth[np.cumsum(count) - count + policy[rows.look[states]]]
        value, visits = rows.evaluate(policy)
        work.add(len(levels) * EACH + rows.matrix.nnz)
        gained = sign * (value[rows.question.first] - before)
        if work.is_over or not gained > 1e-6 * abs(before):
            break
    return policy, value


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
    behind: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    steps: dict[tuple[int, int], tuple[FloatArray, list[tuple[int, int, int, float]]]] = field(
        default_factory=dict
    )
    """What an action does on a look: gains, and (row, look behind, place there, probability)."""

    @staticmethod
    def of(rows: Rows) -> Machines:
        looks = len(rows.question.looks)
        members = [np.flatnonzero(rows.look == look) for look in range(looks)]
        place = np.zeros(rows.states, np.int32)
        for own in members:
            place[own] = np.arange(len(own))
        return Machines(rows, members=members, place=place, by_look=[[] for _ in range(looks)])

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

    def back_up(self, look: int, action: int, following: dict[int, int]) -> int:
        """A new node that goes on with old ones."""
        key = (look, action)
        if key not in self.steps:
            chosen = self.rows.start[self.members[look]] + action
            part = self.rows.matrix[chosen].tocoo()
            seen = self.rows.look[part.col].tolist()
            places = self.place[part.col].tolist()
            listed = list(zip(part.row.tolist(), seen, places, part.data.tolist(), strict=True))
            self.steps[key] = self.rows.gain[chosen], listed
        gain, listed = self.steps[key]
        value = gain.copy()
        for at, seen, place, chance in listed:
            value[at] += chance * self.value[following.get(seen, seen)][place]
        return self._add(action, look, following, value)

    def looks_behind(self, look: int, action: int) -> list[int]:
        """What can be seen next."""
        key = (look, action)
        if key not in self.behind:
            part = self.rows.matrix[self.rows.start[self.members[look]] + action]
            self.behind[key] = np.unique(self.rows.look[part.indices]).tolist()
        return self.behind[key]

    def keep(self, look: int, nodes: set[int]) -> None:
        """Try only these nodes from now on, and the first one."""
        own = self.by_look[look]
        self.by_look[look] = [own[0], *(n for n in own[1:] if n in nodes)]
        self.tables.pop(look, None)

    def add_nodes(self, action: list[int], look: list[int], following: list[dict[int, int]]) -> list[int]:
        """New nodes that refer to each other by negative numbers −1, −2, … and to old ones by theirs."""
        count, begin = len(action), len(self.action)
        links = [{seen: begin - 1 - n if n < 0 else n for seen, n in own.items()} for own in following]
        offset = np.concatenate([[0], np.cumsum([len(self.members[o]) for o in look])]).astype(np.int64)
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
        where = np.concatenate([[0], np.cumsum(lengths)])
        values = flat[where[target[old]] + self.place[part.indices[old]]]
        must = self.rows.question.must_reach
        np.add.at(constant, row[old], part.data[old] * np.where(np.isfinite(values), values, 1e9))
        if must:
            np.add.at(reach, row[old], part.data[old] * np.isfinite(values))
        size = len(chosen)
        inner = csr_array((inner_data, (inner_row, inner_column)), shape=(size, size))
        system = splu((eye_array(size) - (1 - LEAK) * inner).tocsc())
        solved = system.solve(constant)
        if must:
            solved = np.where(system.solve(reach) < SURE, np.inf, solved)
        made = []
        for n in range(count):
            own = solved[offset[n] : offset[n + 1]]
            made.append(self._add(action[n], look[n], links[n], own))
        return made
