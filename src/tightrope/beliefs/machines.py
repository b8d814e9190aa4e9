"""Finite controllers for the search: what their nodes are worth in every state, in plain float64.

Nothing here ends in a bound: whoever exports a controller evaluates it once more, with verified bounds. A
node belongs to a look. It has an action and says which node follows on every look; where it does not, play
goes on with the first controller found, which knows only the look (and a phase).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, eye_array, kron
from scipy.sparse.linalg import splu

from tightrope.beliefs.question import Question
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

LEAK = 1e-9
"""A play stops at every step with this probability, so that equations have one solution."""

SEARCH_LEAK = 1e-3
"""The same while controllers without memory are improved: what never ends is then not infinitely bad."""

SURE = 1 - 1e-5
"""A target that is reached less surely is missed."""


@dataclass(eq=False)
class Rows:
    """The question's rows as float64, one per state and action, all states' actions behind each other."""

    question: Question
    start: OffsetArray
    matrix: csr_array
    success: FloatArray
    reward: FloatArray
    look: IndexArray

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
        )

    @property
    def states(self) -> int:
        return len(self.start) - 1

    @property
    def gain(self) -> FloatArray:
        """What a row earns at once."""
        return self.reward if self.question.earns else self.success

    def in_phases(self, phases: int) -> Rows:
        """The same where a controller knows the number of steps taken, modulo `phases`."""
        if phases == 1:
            return self
        turn = csr_array(np.roll(np.eye(phases), 1, axis=1))
        count, states = len(self.success), self.states
        matrix = csr_array(kron(turn, self.matrix))
        start = np.concatenate([[0], np.cumsum(np.tile(np.diff(self.start), phases))])
        look = np.concatenate([self.look + len(self.question.looks) * phase for phase in range(phases)])
        assert matrix.shape == (count * phases, states * phases)
        gains = np.tile(self.success, phases), np.tile(self.reward, phases)
        return Rows(self.question, start, matrix, *gains, look.astype(np.int32))

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


def improve(rows: Rows, policy: IndexArray, rounds: int = 30) -> tuple[IndexArray, FloatArray]:
    """A controller without memory, changed look by look while that pays; with its values."""
    question = rows.question
    sign = 1.0 if question.maximises else -1.0
    first, looks = question.first, len(question.looks)
    value, visits = rows.evaluate(policy, SEARCH_LEAK)
    members = [np.flatnonzero(rows.look == look) for look in range(len(policy))]
    for _ in range(rounds):
        worth = rows.gain + rows.matrix @ value
        better, gains = policy.copy(), []
        for look, own in enumerate(members):
            weight = visits[own] + 1e-12
            table = [
                float(weight @ worth[rows.start[own] + k]) for k in range(question.actions_of(look % looks))
            ]
            best = int(np.argmax(sign * np.array(table)))
            gain = sign * (table[best] - table[policy[look]])
            if gain > 1e-12:
                better[look] = best
                gains.append((gain, look, best))
        candidates = [better] if gains else []
        for _, look, best in sorted(gains, reverse=True)[:4]:
            one = policy.copy()
            one[look] = best
            candidates.append(one)
        for candidate in candidates:
            new, seen = rows.evaluate(candidate, SEARCH_LEAK)
            if sign * (new[first] - value[first]) > 1e-12:
                policy, value, visits = candidate, new, seen
                break
        else:
            break
    return policy, rows.evaluate(policy)[0]


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

    @staticmethod
    def of(rows: Rows) -> Machines:
        looks = len(rows.question.looks)
        members = [np.flatnonzero(rows.look == look) for look in range(looks)]
        place = np.zeros(rows.states, np.int32)
        for own in members:
            place[own] = np.arange(len(own))
        return Machines(rows, members=members, place=place, by_look=[[] for _ in range(looks)])

    def add_phased(self, policy: IndexArray, value: FloatArray, phases: int) -> None:
        """A node per look and phase; the first such controller is what nodes fall back on."""
        looks, begin = len(self.members), len(self.action)
        for phase in range(phases):
            after = begin + (phase + 1) % phases * looks
            following = {look: after + look for look in range(looks)}
            for look, own in enumerate(self.members):
                worth = value[phase * self.rows.states + own]
                self._add(int(policy[phase * looks + look]), look, following, worth)

    def _add(self, action: int, look: int, following: dict[int, int], value: FloatArray) -> int:
        self.action.append(action)
        self.look.append(look)
        self.following.append(following)
        self.value.append(value)
        self.by_look[look].append(len(self.action) - 1)
        return len(self.action) - 1

    def next_node(self, node: int, look: int) -> int:
        return self.following[node].get(look, look)

    def best(self, look: int, states: Sequence[int], weights: FloatArray) -> tuple[float, int]:
        """The best node of a look in a belief, and what it is worth there."""
        nodes = self.by_look[look]
        table = np.array([self.value[n] for n in nodes])[:, self.place[list(states)]]
        with np.errstate(invalid="ignore"):
            worth = table @ weights
        if np.isnan(worth).any():
            worth = np.where(np.isnan(worth), np.inf, worth)
        at = int(np.argmax(worth) if self.rows.question.maximises else np.argmin(worth))
        return float(worth[at]), nodes[at]

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
        inner_row, inner_column, inner_data = [], [], []
        table = [[links[n].get(seen, seen) for seen in range(len(self.members))] for n in range(count)]
        target = np.array(table)[owner[row], self.rows.look[part.indices]]
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
