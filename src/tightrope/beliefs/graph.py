"""Beliefs as reduced integers, and a finite outer model over some of them that bounds every controller.

A belief is an observation and integers without a common factor, in proportion to the probabilities of the
states. In the outer model a belief is expanded, cut (the state is revealed after it has acted) or split into
a mixture. Its optimum is at least that of every maximising controller, at most that of every minimising one.
Proof: docs/proofs/values.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from flint import fmpq_mat, fmpz_mat
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron
from scipy.sparse.linalg import splu

from tightrope.beliefs.question import Question, Row
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray, offsets
from tightrope_check.budget import spend

Belief = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Look, states and their integers."""

SUCCESS, STOP, BEFORE = 0, 1, 2
"""The first states of an outer model."""

CUT, EXPANDED, SPLIT = "cut", "expanded", "split"


@dataclass(frozen=True)
class Move:
    """What one action does: successors with integer weights, success, over `total`; the rest stops."""

    successor: tuple[int, ...]
    weight: tuple[int, ...]
    success: int
    total: int
    reward: Fraction


@dataclass(eq=False)
class BeliefGraph:
    """Beliefs by number, and what each does in the outer model."""

    question: Question
    number: dict[Belief, int] = field(default_factory=dict)
    belief: list[Belief] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    moves: list[tuple[Move, ...]] = field(default_factory=list)
    known: list[tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...]] = field(default_factory=list)
    """What each state's actions lead to where the state is known: numbers of beliefs, weights, success."""
    rounded: list[list[tuple[float, OffsetArray, FloatArray]]] = field(default_factory=list)
    by_look: list[list[int]] = field(default_factory=list)
    """The beliefs of every look."""
    history: list[str] = field(default_factory=list)
    """What has added beliefs, in its order: whoever repeats it has the same beliefs with the same numbers."""
    into: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    """What split beliefs were split into, and the states that are none of their parts."""
    width: list[int] = field(default_factory=list)
    """How many transitions each state has."""

    @staticmethod
    def of(question: Question) -> BeliefGraph:
        graph = BeliefGraph(question, by_look=[[] for _ in question.looks])
        first = question.first
        graph.add((question.look[first], (first,), (1,)))
        graph._close()
        graph.expand(0)
        return graph

    def __len__(self) -> int:
        return len(self.belief)

    def is_revealed(self, number: int) -> bool:
        """Whether a belief is told what it does not know."""
        return self.kind[number] != EXPANDED and len(self.belief[number][1]) > 1

    def add(self, belief: Belief) -> int:
        """The number of a belief; a new one is cut."""
        number = self.number.get(belief)
        if number is None:
            number = self.number[belief] = len(self.belief)
            self.belief.append(belief)
            self.by_look[belief[0]].append(number)
            self.kind.append(CUT)
            self.moves.append(())
            self.rounded.append([])
        return number

    def _close(self) -> None:
        """What every state leads to where it is known, and all beliefs in this, cut."""
        rows = self.question.rows
        self.width.extend(sum(len(row.successor) for row in own) for own in rows)
        for own in rows:
            self.known.append(tuple(self._behind([row], [1]) for row in own))
        for number in range(len(self)):
            self.cut(number)

    def corner(self, state: int) -> int:
        """The belief that knows a state; what it does is the same expanded and cut."""
        before = len(self)
        number = self.add((self.question.look[state], (state,), (1,)))
        if number == before:
            self.history.append(f"k{state}")
            self.cut(number)
        return number

    def _behind(self, rows: list[Row], weights: list[int]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """The beliefs behind each look, after these rows with these weights; masses, and that of success."""
        look = self.question.look
        mass: dict[int, dict[int, int]] = {}
        success = 0
        for row, own in zip(rows, weights, strict=True):
            success += own * row.success
            for successor, weight in zip(row.successor, row.weight, strict=True):
                at = mass.setdefault(look[successor], {})
                at[successor] = at.get(successor, 0) + own * weight
        numbers, masses = [], []
        for seen, at in mass.items():
            states = sorted(at)
            values = [at[state] for state in states]
            shared = math.gcd(*values)
            numbers.append(self.add((seen, tuple(states), tuple(value // shared for value in values))))
            masses.append(sum(values))
        return tuple(numbers), tuple(masses), success

    def expand(self, number: int) -> None:
        """Let a belief do what conditioning says."""
        if self.kind[number] == EXPANDED:
            return
        seen, states, weights = self.belief[number]
        before = len(self)
        moves = []
        for k in range(self.question.actions_of(seen)):
            rows = [self.question.rows[state][k] for state in states]
            numbers, masses, success = self._behind(rows, list(weights))
            total = rows[0].total * sum(weights)
            moves.append(Move(numbers, masses, success, total, self._reward(rows, weights)))
        self._set(number, EXPANDED, tuple(moves))
        self.into.pop(number, None)
        self.history.append(f"e{number}")
        for new in range(before, len(self)):
            self.cut(new)

    def _reward(self, rows: list[Row], weights: tuple[int, ...]) -> Fraction:
        if not self.question.earns or not any(row.reward for row in rows):
            return Fraction(0)
        summed = sum((own * row.reward for row, own in zip(rows, weights, strict=True)), Fraction(0))
        return summed / sum(weights)

    def cut(self, number: int) -> None:
        """Let a belief be told its state after it has acted."""
        seen, states, weights = self.belief[number]
        moves = []
        for k in range(self.question.actions_of(seen)):
            rows = [self.question.rows[state][k] for state in states]
            mass: dict[int, int] = {}
            success = 0
            for state, own in zip(states, weights, strict=True):
                numbers, masses, succeeded = self.known[state][k]
                success += own * succeeded
                for behind, weight in zip(numbers, masses, strict=True):
                    mass[behind] = mass.get(behind, 0) + own * weight
            total = rows[0].total * sum(weights)
            moves.append(Move(tuple(mass), tuple(mass.values()), success, total, self._reward(rows, weights)))
        self._set(number, CUT, tuple(moves))

    def split(self, number: int, points: Sequence[int], without: Sequence[int]) -> None:
        """Tell a belief which of `points` or which state it is, none of `without`; refuse no mixtures."""
        seen, states, weights = self.belief[number]
        if self.kind[number] == EXPANDED or any(self.kind[n] != EXPANDED for n in points):
            raise ValueError("only beliefs that are not expanded are split, and into expanded ones")
        if any(self.belief[point][0] != seen for point in points) or len(set(points)) < len(points):
            raise ValueError("a belief is split into different beliefs with its own observation")
        spend("the beliefs of its recipe", len(points) ** 3, len(points) * sum(weights).bit_length())
        whole = dict(zip(states, weights, strict=True))
        inside = [dict(zip(*self.belief[point][1:], strict=True)) for point in points]
        shares, total = _solved(
            [[own.get(s, 0) for own in inside] for s in without], [whole.get(s, 0) for s in without]
        )
        rest = {
            s: total * whole.get(s, 0) - sum(k * own.get(s, 0) for k, own in zip(shares, inside, strict=True))
            for s in dict.fromkeys([*states, *(s for own in inside for s in own)])
        }
        if min(shares) < 0 or min(rest.values()) < 0 or total <= 0:
            raise ValueError("a belief is not a mixture of these")
        parts = {n: k * sum(own.values()) for n, k, own in zip(points, shares, inside, strict=True) if k}
        parts |= {self.corner(s): left for s, left in rest.items() if left}
        common = math.gcd(total * sum(weights), *parts.values())
        masses = tuple(part // common for part in parts.values())
        self._set(
            number, SPLIT, (Move(tuple(parts), masses, 0, total * sum(weights) // common, Fraction(0)),)
        )
        self.into[number] = (tuple(points), tuple(without))

    def recipe(self) -> str:
        """How this graph was made, in a line: what `repeated` reads."""
        splits = [
            f"s{n}:{','.join(map(str, points))}:{','.join(map(str, without))}"
            for n, (points, without) in sorted(self.into.items())
        ]
        return " ".join([*self.history, *splits])

    @staticmethod
    def repeated(question: Question, recipe: str) -> BeliefGraph:
        """The graph of a recipe. Whatever the recipe says, the theorem holds for what comes out."""
        graph = BeliefGraph.of(question)
        for word in recipe.split()[1:]:
            number, *more = word[1:].split(":")
            if word[0] == "e":
                graph.expand(int(number))
            elif word[0] == "k":
                graph.corner(int(number))
            else:
                points, without = ([int(each) for each in text.split(",")] for text in more)
                graph.split(int(number), points, without)
        return graph

    def _set(self, number: int, kind: str, moves: tuple[Move, ...]) -> None:
        long = 6 + max(move.total for move in moves).bit_length() / 200
        spend("the beliefs of its recipe", long * sum(self.width[state] for state in self.belief[number][1]))
        self.kind[number], self.moves[number] = kind, moves
        upward = self.question.maximises
        rounded = []
        for move in moves:
            reward = safely_rounded(move.reward, upward) if move.reward else 0.0
            rest = move.total - sum(move.weight) - move.success
            successor = [BEFORE + each for each in move.successor]
            chance = [weight / move.total for weight in move.weight]
            for place, weight in ((SUCCESS, move.success), (STOP, rest)):
                if weight:
                    successor.append(place)
                    chance.append(weight / move.total)
            rounded.append((reward, np.array(successor, np.int64), np.array(chance)))
        self.rounded[number] = rounded

    def model(self) -> tuple[MDP, FloatArray]:
        """The outer model, and the reward of every choice."""
        counts, sizes, reward = [1, 1], [1, 1], [0.0, 0.0]
        successor: list[Sequence[int] | OffsetArray] = [[SUCCESS], [STOP]]
        chance: list[Sequence[float] | FloatArray] = [[1.0], [1.0]]
        for own in self.rounded:
            counts.append(len(own))
            for value, towards, likely in own:
                successor.append(towards)
                chance.append(likely)
                sizes.append(len(towards))
                reward.append(value)
        structure = Structure(
            offsets(counts),
            offsets(sizes),
            np.concatenate(successor),
            initial_states=(BEFORE,),
            declared_mdp=True,
        )
        return MDP(structure, np.concatenate(chance)), np.array(reward)

    def objective(self, model: MDP, reward: FloatArray) -> Objective:
        """What is asked of the outer model."""
        agent = self.question.objective.agent
        ends = np.zeros(model.states, np.bool_)
        ends[SUCCESS] = True
        if not self.question.earns:
            return Objective(ObjectiveKind.UNTIL, agent, agent, target=ends)
        earned = RewardStructure(None, reward)
        if self.question.must_reach:
            return Objective(ObjectiveKind.REACH_REWARD, agent, agent, target=ends, reward=earned)
        return Objective(ObjectiveKind.TOTAL, agent, agent, reward=earned)


def safely_rounded(value: Fraction, upward: bool) -> float:
    """A float64 on the safe side of a rational."""
    nearest = float(value)
    if (Fraction(nearest) < value) == upward and Fraction(nearest) != value:
        return math.nextafter(nearest, math.inf if upward else -math.inf)
    return nearest


def _solved(rows: list[list[int]], right: list[int]) -> tuple[list[int], int]:
    """Integers over a common positive denominator that solve a square system."""
    try:
        solution = fmpq_mat(fmpz_mat(rows)).solve(fmpq_mat(fmpz_mat([[own] for own in right])))
    except (ZeroDivisionError, ValueError) as error:  # singular, or not square
        raise ValueError("a belief is not a mixture of these") from error
    shares, total = solution.numer_denom()
    return [int(share) for share in shares.entries()], int(total)


# Finite controllers for the search: the values of their nodes in every state, in plain float64.
#
# No bound uses them; exported controllers are evaluated again with verified bounds. A node belongs to an
# observation. It has an action and a next node per observation; where none is given, the first controller
# found goes on, which knows only the observation (and a phase).

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


def first_of_best(worth: NDArray[np.floating], start: OffsetArray) -> OffsetArray:
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
    steps: dict[tuple[int, int], tuple[FloatArray, dict[int, csr_array]]] = field(default_factory=dict)

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

    def step(self, look: int, action: int) -> tuple[FloatArray, dict[int, csr_array]]:
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
