"""Beliefs as reduced integers, and a finite outer model over some of them that bounds every controller.

A belief is an observation and integers without a common factor, in proportion to the probabilities of the
states. In the outer model a belief is expanded, cut (the state is revealed after it has acted) or split into
a mixture. Its optimum is at least that of every maximising controller, at most that of every minimising one.
Proof: docs/proofs/values.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from flint import fmpq_mat, fmpz_mat

from tightrope.beliefs.question import Question, Row
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray, offsets
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
