"""Values of tiny models by brute force in exact rationals: every policy, every vertex of nature's sets.

Both players have optimal strategies that are memoryless and pure (nature: a vertex of its set at each
choice), so the value of a state is the agent's optimum over policies of nature's optimum over vertices,
taken state by state. Each pair is a Markov chain, solved exactly.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure

INFINITE = Fraction(10**30)
"""Stands for ∞ in comparisons."""

Row = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class TinyModel:
    """For each state a list of choices; a choice is a list of (successor, lower, upper)."""

    choices: tuple[tuple[tuple[tuple[int, Fraction, Fraction], ...], ...], ...]

    @property
    def states(self) -> int:
        return len(self.choices)

    @property
    def structure(self) -> Structure:
        flat = [c for state in self.choices for c in state]
        return Structure(
            choice_start=np.cumsum([0] + [len(state) for state in self.choices]),
            transition_start=np.cumsum([0] + [len(c) for c in flat]),
            successor=np.array([t for c in flat for t, _, _ in c], np.int32),
        )

    @property
    def is_plain(self) -> bool:
        return all(low == high for state in self.choices for c in state for _, low, high in c)

    def model(self) -> MDP | IntervalMDP:
        flat = [entry for state in self.choices for c in state for entry in c]
        lower = np.array([float(low) for _, low, _ in flat])
        if self.is_plain:
            return MDP(self.structure, lower)
        return IntervalMDP(self.structure, lower, np.array([float(high) for _, _, high in flat]))

    def interval_model(self) -> IntervalMDP:
        flat = [entry for state in self.choices for c in state for entry in c]
        return IntervalMDP(
            self.structure,
            np.array([float(low) for _, low, _ in flat]),
            np.array([float(high) for _, _, high in flat]),
        )


def random_model(
    rng: np.random.Generator,
    states: int,
    *,
    denominator: int = 8,
    intervals: bool = True,
    most_choices: int = 2,
) -> TinyModel:
    """A model with few successors a choice, so that end components, ties and cut transitions are common."""
    all_choices = []
    for _ in range(states):
        count = int(rng.integers(1, most_choices + 1))
        all_choices.append(tuple(_random_choice(rng, states, denominator, intervals) for _ in range(count)))
    return TinyModel(tuple(all_choices))


def _random_choice(
    rng: np.random.Generator, states: int, denominator: int, intervals: bool
) -> tuple[tuple[int, Fraction, Fraction], ...]:
    size = int(rng.choice([1, 2, 3], p=[0.3, 0.45, 0.25]))
    successors = rng.choice(states, size=min(size, states), replace=False)
    k = len(successors)
    cuts = (
        np.sort(rng.choice(np.arange(1, denominator), size=k - 1, replace=False))
        if k > 1
        else np.array([], int)
    )
    parts = np.diff(np.concatenate([[0], cuts, [denominator]]))
    row = []
    for s, part in zip(successors, parts, strict=True):
        p = Fraction(int(part), denominator)
        if not intervals or rng.random() < 0.3:
            row.append((int(s), p, p))
            continue
        low = Fraction(0) if rng.random() < 0.5 else p * int(rng.integers(0, 5)) / 4
        high = Fraction(1) if rng.random() < 0.4 else p + (1 - p) * int(rng.integers(0, 5)) / 4
        row.append((int(s), low, high))
    return tuple(row)


@cache
def vertices(choice: tuple[tuple[int, Fraction, Fraction], ...]) -> list[Row]:
    """All vertices of { p : lower ≤ p ≤ upper, Σp = 1 }: all but one entry at a bound."""
    found = set()
    k = len(choice)
    for free in range(k):
        others = [i for i in range(k) if i != free]
        for ends in itertools.product((1, 2), repeat=k - 1):
            mass = {i: choice[i][end] for i, end in zip(others, ends, strict=True)}
            rest = 1 - sum(mass.values(), Fraction(0))
            if choice[free][1] <= rest <= choice[free][2]:
                mass[free] = rest
                found.add(tuple((choice[i][0], mass[i]) for i in range(k) if mass[i] > 0))
    return sorted(found)


def brute_force(
    model: TinyModel, objective: Objective, *, weights: list[list[Fraction]] | None = None
) -> list[Fraction]:
    """The exact value of every state (before `complement`); `weights` fixes a randomised policy."""
    agent = max if objective.agent is Direction.MAX else min
    nature = max if objective.nature is Direction.MAX else min
    corner = [[vertices(c) for c in state] for state in model.choices]
    policies = (
        itertools.product(*[range(len(state)) for state in model.choices]) if weights is None else [None]
    )
    best: list[Fraction] | None = None
    for policy in policies:
        inner: list[Fraction] | None = None
        for rows, reward in _chains(model, corner, policy, weights, objective):
            values = chain_value(rows, reward, objective)
            inner = values if inner is None else [nature(a, b) for a, b in zip(inner, values, strict=True)]
        assert inner is not None
        best = inner if best is None else [agent(a, b) for a, b in zip(best, inner, strict=True)]
    assert best is not None
    return best


def _chains(model, corner, policy, weights, objective):
    """Every chain of a policy: rows (as dictionaries) and rewards per state."""
    start = np.cumsum([0] + [len(state) for state in model.choices])
    reward = [Fraction(0)] * int(start[-1])
    if objective.reward is not None:
        reward = [Fraction(float(x)) for x in objective.reward.per_choice(model.structure)]
    if policy is not None:
        options = [corner[s][c] for s, c in enumerate(policy)]
        rewards = [reward[start[s] + c] for s, c in enumerate(policy)]
        for rows in itertools.product(*options):
            yield [dict(row) for row in rows], rewards
        return
    flat = [c for state in corner for c in state]
    used = [w for state in weights for w in state]
    rewards = [
        sum((weights[s][i] * reward[start[s] + i] for i in range(len(weights[s]))), Fraction(0))
        for s in range(model.states)
    ]
    for picks in itertools.product(*[flat[i] if used[i] > 0 else [()] for i in range(len(flat))]):
        rows = []
        for s in range(model.states):
            row: dict[int, Fraction] = {}
            for i in range(len(weights[s])):
                for t, p in picks[start[s] + i]:
                    row[t] = row.get(t, Fraction(0)) + weights[s][i] * p
            rows.append({t: p for t, p in row.items() if p > 0})
        yield rows, rewards


def chain_value(
    rows: list[dict[int, Fraction]], reward: list[Fraction], objective: Objective
) -> list[Fraction]:
    """The value of every state of a Markov chain."""
    size = len(rows)
    if objective.kind is ObjectiveKind.UNTIL:
        target = set(np.flatnonzero(objective.target).tolist())
        barred = (
            set() if objective.allowed is None else set(np.flatnonzero(~objective.allowed).tolist()) - target
        )
        some = _backward(rows, target, barred)
        known = {s: Fraction(int(s in target)) for s in range(size) if s in target or s not in some}
        return _linear(rows, [Fraction(0)] * size, known)
    if objective.kind is ObjectiveKind.REACH_REWARD:
        target = set(np.flatnonzero(objective.target).tolist())
        lost = set(range(size)) - _backward(rows, target, set())
        missed = _backward(rows, lost, target) if lost else set()
        terminal = (
            [Fraction(0)] * size
            if objective.terminal is None
            else [Fraction(float(x)) for x in objective.terminal]
        )
        known = dict.fromkeys(missed, INFINITE) | {s: terminal[s] for s in target}
        return _linear(rows, reward, known)
    if objective.kind is ObjectiveKind.TOTAL:
        reach = [_forward(rows, s) for s in range(size)]
        recurrent = {s for s in range(size) if all(s in reach[t] for t in reach[s])}
        endless = {s for s in recurrent if any(reward[t] > 0 for t in reach[s])}
        missed = _backward(rows, endless, set()) if endless else set()
        known = dict.fromkeys(missed, INFINITE) | {s: Fraction(0) for s in recurrent - endless}
        return _linear(rows, reward, known)
    assert objective.kind is ObjectiveKind.DISCOUNTED and objective.discount is not None
    factor = Fraction(float(objective.discount))
    return _linear([{t: factor * p for t, p in row.items()} for row in rows], reward, {})


def _backward(rows: list[dict[int, Fraction]], goal: set[int], barred: set[int]) -> set[int]:
    found = set(goal)
    while True:
        more = {
            s
            for s in range(len(rows))
            if s not in found and s not in barred and any(t in found for t in rows[s])
        }
        if not more:
            return found
        found |= more


def _forward(rows: list[dict[int, Fraction]], source: int) -> set[int]:
    found, queue = {source}, [source]
    while queue:
        for t in rows[queue.pop()]:
            if t not in found:
                found.add(t)
                queue.append(t)
    return found


def _linear(
    rows: list[dict[int, Fraction]], reward: list[Fraction], known: dict[int, Fraction]
) -> list[Fraction]:
    """Solve x = reward + P x with some values known (Gauss–Jordan over the rationals)."""
    free = [s for s in range(len(rows)) if s not in known]
    place = {s: i for i, s in enumerate(free)}
    matrix = []
    for s in free:
        line = [Fraction(int(i == place[s])) for i in range(len(free))] + [reward[s]]
        for t, p in rows[s].items():
            if t in place:
                line[place[t]] -= p
            else:
                line[-1] += p * known[t]
        matrix.append(line)
    n = len(free)
    for i in range(n):
        pivot = next(j for j in range(i, n) if matrix[j][i] != 0)
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        scale = matrix[i][i]
        matrix[i] = [x / scale for x in matrix[i]]
        for j in range(n):
            if j != i and matrix[j][i] != 0:
                factor = matrix[j][i]
                matrix[j] = [x - factor * y for x, y in zip(matrix[j], matrix[i], strict=True)]
    values = [known.get(s, Fraction(0)) for s in range(len(rows))]
    for s in free:
        values[s] = matrix[place[s]][-1]
    return values


def random_objective(
    rng: np.random.Generator, model: TinyModel, kind: ObjectiveKind, agent: Direction, nature: Direction
) -> Objective:
    """Random targets and rewards (often 0) for a model."""
    states, choices = model.states, sum(len(state) for state in model.choices)
    target = np.zeros(states, np.bool_)
    target[rng.integers(states)] = True
    if kind is ObjectiveKind.UNTIL:
        allowed = rng.random(states) < 0.85 if rng.random() < 0.3 else None
        return Objective(kind, agent, nature, target=target, allowed=allowed)
    reward = RewardStructure(
        state=rng.choice([0.0, 0.0, 1.0, 2.5], size=states),
        choice=rng.choice([0.0, 0.0, 0.0, 0.5], size=choices),
    )
    if kind is ObjectiveKind.REACH_REWARD:
        terminal = np.where(target, 1.5, 0.0) if rng.random() < 0.3 else None
        return Objective(kind, agent, nature, target=target, reward=reward, terminal=terminal)
    if kind is ObjectiveKind.TOTAL:
        sparse = RewardStructure(choice=np.where(rng.random(choices) < 0.25, 1.0, 0.0))
        return Objective(kind, agent, nature, reward=sparse)
    signed = RewardStructure(state=rng.choice([-1.0, 0.0, 2.0], size=states))
    return Objective(kind, agent, nature, reward=signed, discount=float(rng.choice([0.5, 0.9])))
