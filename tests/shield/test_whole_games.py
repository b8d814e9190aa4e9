"""Whole games against shields: the worst agent and nature, until the fallback policy acts for ever, and the
promise of the start. Plays of temporal formulas are judged by their words, without an automaton.
"""

from __future__ import annotations

import copy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from exact_reference import TinyModel, random_model, vertices
from tightrope.logic.product_problem import product_problem
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure
from tightrope.shield import Shield
from tightrope.solver.solve import solve

STATES = 4
MAX, MIN = Direction.MAX, Direction.MIN
UNTIL, NEXT = ObjectiveKind.UNTIL, ObjectiveKind.NEXT
TARGET, ALLOWED = np.arange(STATES) == STATES - 1, np.arange(STATES) != 1

KINDS: dict[str, Any] = {
    "reach": partial(Objective, UNTIL, MAX, MIN, TARGET),
    "until": partial(Objective, UNTIL, MAX, MIN, TARGET, ALLOWED),
    "from step 2 on": partial(Objective, UNTIL, MAX, MIN, TARGET, ALLOWED, lower_steps=2),
    "target not allowed": partial(Objective, UNTIL, MAX, MIN, TARGET, ALLOWED & ~TARGET, lower_steps=1),
    "in 1 to 3": partial(Objective, UNTIL, MAX, MIN, TARGET, lower_steps=1, upper_steps=3),
    "avoid at step 2": partial(
        Objective, UNTIL, MIN, MAX, TARGET, lower_steps=2, upper_steps=2, complement=True
    ),
    "next": partial(Objective, NEXT, MAX, MIN, TARGET),
    "cost": partial(Objective, ObjectiveKind.REACH_REWARD, MIN, MAX, TARGET),
    "cost of 3 steps": partial(Objective, ObjectiveKind.CUMULATIVE, MIN, MAX, upper_steps=3),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_the_worst_agent_and_nature_keep_the_promise(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, STATES, most_choices=3, intervals=bool(seed % 3))
    earned = RewardStructure(None, rng.integers(0, 4, model.structure.choices) / 4.0)
    objective = KINDS[name](reward=earned if "cost" in name else None)
    slack, patience = float(rng.choice([0.0, 0.1, 0.7])), int(rng.integers(0, 3))
    shield = Shield.of(solve(model.model(), objective), slack=slack, patience=patience)
    for state in range(STATES):
        shield.start().allowed(state)
        promise, game = shield.promise, Game(model, objective, shield)
        worst = game.worst(shield.fresh(), state)
        worst = 1.0 - worst if objective.complement else worst
        least = shield.table.facts.maximises != objective.complement
        room = 1e-9 * max(1.0, abs(promise)) if np.isfinite(promise) else 0.0
        assert worst >= promise - room if least else worst <= promise + room


class Game:
    """The shield's agent against it: doubles, summed over few plays; cycles of the fallback are repeated."""

    def __init__(self, model: TinyModel, objective: Objective, shield: Shield):
        self.objective, self.table = objective, shield.table
        self.opt, self.rows = min if self.table.facts.maximises else max, len(self.table.value) // STATES
        self.memo: dict[Any, Any] = {}
        reward, structure = objective.reward, shield.table.structure
        earned = np.zeros(structure.choices) if reward is None else reward.per_choice(structure)
        self.earned: list[float] = earned.tolist()
        every = [vertices(choice) for choices in model.choices for choice in choices]
        self.corners = [[[(t, float(p)) for t, p in row if p > 0] for row in rows] for rows in every]
        self.later = self._fallback()

    def worst(self, shield: Shield, state: int) -> Any:
        """What the worst agent and nature leave of the value, from a state on."""
        offered, row = shield.allowed(state), int(self.table.fallback.memory[shield._here])
        if shield.is_decided or shield.is_committed:
            return self.later[row][state]
        key = (state, shield.slack, shield.patience, row)
        if key not in self.memo:
            self.memo[key] = self.opt(
                self._after(shield, state, action) for action in {*offered, shield.fallback(state)}
            )
        return self.memo[key]

    def _after(self, shield: Shield, state: int, action: Any) -> float:
        after = copy.copy(shield)
        after.take(state, action)
        first = int(self.table.structure.choice_start[state])
        return self._mean(state, after._by - first, lambda there: self.worst(copy.copy(after), there))

    def _mean(self, state: int, number: int, value: Any) -> Any:
        """The worst mean over nature's vertices, with what is earned now."""
        at = int(self.table.structure.choice_start[state]) + number
        return self.earned[at] + self.opt(sum(p * value(t) for t, p in row) for row in self.corners[at])

    def _fallback(self) -> list[list[float]]:
        """The value of the fallback policy by row and state."""
        rows, start, last = self.rows, self.table.structure.choice_start, [0.0] * STATES
        if self.objective.target is not None and not self.objective.is_reward:
            last = self.objective.target.astype(float).tolist()

        def back(later: list[float], row: int) -> list[float]:
            values = []
            for state in range(STATES):
                number = int(self.table.fallback.choice[row * STATES + state] - start[state])
                known = self._known(state, row == rows - 1 or row >= self.objective.lower_steps)
                values.append(self._mean(state, number, later.__getitem__) if known is None else known)
            return values

        if not self.objective.is_bounded:
            last = [
                np.inf if np.isinf(value) else end for value, end in zip(self._endless(), last, strict=True)
            ]
            for _ in range(20_000):
                before, last = last, back(last, rows - 1)
                if before == last:
                    break
        table = [last]
        for row in range(rows - 2, -1, -1):
            table.insert(0, back(table[0], row))
        return table

    def _endless(self) -> list[float]:
        """∞ where costs never end, for a player who may miss the target."""
        rewarded = self.objective.kind is ObjectiveKind.REACH_REWARD
        return [
            float("inf") if rewarded and np.isinf(v) else 0.0 for v in self.table.value[-STATES:].tolist()
        ]

    def _known(self, state: int, counts: bool) -> float | None:
        objective = self.objective
        if objective.target is not None and objective.target[state] and objective.is_reward:
            return 0.0
        if objective.kind is not UNTIL or objective.target is None:
            return None
        if objective.target[state] and counts:
            return 1.0
        return 0.0 if objective.allowed is not None and not objective.allowed[state] else None


# Temporal formulas: the models have layers, and every play ends in a state for ever.


def formula(rng: np.random.Generator, depth: int) -> Any:
    kind = str(rng.choice(["X", "F", "G", "U", "&", "|", "GF"])) if depth else "letter"
    if kind == "letter":
        return (str(rng.choice(["a", "b", "!a", "!b"])),)
    if kind == "GF":
        return ("G", ("F", formula(rng, 0)))
    parts = 1 if kind in "XFG" else 2
    return (kind, *(formula(rng, depth - 1) for _ in range(parts)))


def text(asked: Any) -> str:
    if len(asked) == 1:
        return ("!" if asked[0][0] == "!" else "") + f'"{asked[0][-1]}"'
    parts = [text(part) for part in asked[1:]]
    return f"({asked[0]} {parts[0]})" if len(parts) == 1 else f"({parts[0]} {asked[0]} {parts[1]})"


def holds(asked: Any, word: list[frozenset[str]], begin: int = 0) -> bool:
    """Whether a word whose last letter is repeated for ever satisfies a formula."""
    begin = min(begin, len(word) - 1)
    rest = range(begin, len(word))
    match asked:
        case (letter,):
            return (letter[-1] in word[begin]) == (len(letter) == 1)
        case ("X", inner):
            return holds(inner, word, begin + 1)
        case ("F", inner):
            return any(holds(inner, word, at) for at in rest)
        case ("G", inner):
            return all(holds(inner, word, at) for at in rest)
        case ("&", one, other):
            return holds(one, word, begin) and holds(other, word, begin)
        case ("|", one, other):
            return holds(one, word, begin) or holds(other, word, begin)
        case (_, one, other):
            ends = [at for at in rest if holds(other, word, at)]
            return bool(ends) and all(holds(one, word, at) for at in range(begin, ends[0]))
    raise AssertionError


@pytest.mark.filterwarnings("ignore")
@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(60))
def test_the_worst_agent_keeps_the_promise_of_a_formula(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    layers, share = [[0], [1, 2, 3], [4, 5, 6], [7, 8, 9]], 0.25 * int(rng.integers(1, 4))
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows: list[Any] = [(state, "", {state: 1}) for state in layers[-1]]
    outcome: dict[Any, dict[int, float]] = {}
    for here, following in pairwise(layers):
        for state in here:
            for action in ("x", "y")[: int(rng.integers(1, 3))]:
                one, two = (int(other) for other in rng.choice(following, 2, replace=False))
                rows.append((state, action, {one: p, two: 1 - p}))
                outcome[state, action] = {one: share, two: 1 - share}
    labels = {name: [state for state in range(10) if rng.random() < 0.4] or [0] for name in "ab"}
    model = tr.build_from_rows(rows, parameters, labels=labels)
    asked, way = formula(rng, 2), str(rng.choice(["max", "min"]))
    assert isinstance(model, tr.ParametricMDP)
    query = tr.Problem(model, f"P{way}=? [ {text(asked)} ]").query
    if query.is_plain:
        return
    problem, _ = product_problem(model, query)
    slack, patience = float(rng.choice([0.0, 0.1, 0.4])), int(rng.integers(0, 3))
    shield = Shield.of(solve(problem.at(p=share)), problem, slack=slack, patience=patience)
    if seed % 2:
        shield.save(tmp_path / "shield.json")
        shield = Shield.load(tmp_path / "shield.json")

    def worst(now: Shield, state: int, before: list[frozenset[str]]) -> float:
        word, values = [*before, frozenset(name for name in "ab" if state in labels[name])], []
        if state in layers[-1]:
            return float(holds(asked, word))
        for action in {*now.allowed(state), now.fallback(state)}:
            after = copy.copy(now)
            after.take(state, action)
            parts = outcome[state, action].items()
            values.append(sum(q * worst(copy.copy(after), there, word) for there, q in parts))
        return min(values) if way == "max" else max(values)

    found = worst(shield.fresh(), 0, [])
    assert found >= shield.promise - 1e-9 if way == "max" else found <= shield.promise + 1e-9
