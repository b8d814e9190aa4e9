"""Random small parametric models with a policy and an objective, and their values by other means.

The reference shares nothing with what it checks: dense linear algebra on the instantiated chain, the
definition of every objective written out, points drawn densely from the domain and improved by a local
search.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize

from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import FloatArray

ONE = Polynomial.constant(1)
KINDS = (
    "reach", "until", "globally", "next", "bounded", "window", "late", "reward", "terminal", "cumulative",
    "total", "discounted",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Case:
    model: ParametricMDP
    objective: Objective
    policy: Policy
    box: tuple[FloatArray, FloatArray]


def random_case(seed: int, kind: str, *, cyclic: bool, products: bool, parameters: int = 2) -> Case:
    """Seven states; the last is the target, the one before it a trap unless rewards rule that out."""
    rng = np.random.default_rng([seed, KINDS.index(kind), cyclic, products])
    low = [Fraction(int(v), 20) for v in rng.integers(2, 9, parameters)]
    high = [a + Fraction(int(v), 20) for a, v in zip(low, rng.integers(1, 8, parameters), strict=True)]
    names = tuple("pqr"[:parameters])
    domain = Parameters.box(**dict(zip(names, zip(low, high, strict=True), strict=True)))
    states = 7
    trap = kind not in ("reward", "terminal")
    rows: list[tuple[int, str, dict[int, Polynomial]]] = []
    for state in range(states - 2):
        for action in "ab"[: 1 + int(rng.integers(2))]:
            rows.append(
                (state, action, _distribution(rng, state, states, cyclic, products, parameters, trap))
            )
    rows.append((states - 2, "stay", {states - 2 if trap else states - 1: ONE}))
    rows.append((states - 1, "stay", {states - 1: ONE}))
    model = build_from_rows(rows, domain)
    assert isinstance(model, ParametricMDP)
    box = np.array([float(v) for v in low]), np.array([float(v) for v in high])
    return Case(model, _objective(rng, model, kind), _policy(rng, model), box)


def _distribution(
    rng: np.random.Generator,
    state: int,
    states: int,
    cyclic: bool,
    products: bool,
    parameters: int,
    trap: bool,
) -> dict[int, Polynomial]:
    reachable = [s for s in range(0 if cyclic else state + 1, states) if trap or s != states - 2]
    count = min(int(rng.integers(2, 5)), len(reachable))
    chosen = [int(s) for s in rng.choice(reachable, count, replace=False)]
    if cyclic and states - 1 not in chosen:
        chosen[0] = states - 1
    coin = Polynomial.variable(int(rng.integers(parameters)))
    if products and rng.random() < 0.6:
        coin = coin * Polynomial.variable(int(rng.integers(parameters)))
    heads, tails = rng.integers(1, 7, count), rng.integers(1, 7, count)
    result = {}
    for j, successor in enumerate(chosen):
        yes = Polynomial.constant(Fraction(int(heads[j]), int(heads.sum())))
        no = Polynomial.constant(Fraction(int(tails[j]), int(tails.sum())))
        result[successor] = coin * yes + (ONE - coin) * no
    return result


def _objective(rng: np.random.Generator, model: ParametricMDP, kind: str) -> Objective:
    states = model.states
    target = np.zeros(states, np.bool_)
    target[-1] = True
    both = Direction.MAX, Direction.MIN
    allowed = np.ones(states, np.bool_)
    allowed[int(rng.integers(1, states - 1))] = False
    reward = RewardStructure(
        state=rng.integers(0, 4, states).astype(np.float64), choice=rng.integers(0, 3, model.choices) / 2
    )
    assert reward.state is not None and reward.choice is not None
    if kind == "total":
        reward.state[-2:] = 0.0
        reward.choice[-2:] = 0.0
    until, ahead = ObjectiveKind.UNTIL, {"target": target}
    made = {
        "reach": lambda: Objective(until, *both, **ahead),
        "until": lambda: Objective(until, *both, allowed=allowed, **ahead),
        "globally": lambda: Objective(until, Direction.MIN, Direction.MAX, complement=True, **ahead),
        "next": lambda: Objective(ObjectiveKind.NEXT, *both, **ahead),
        "bounded": lambda: Objective(until, *both, allowed=allowed, upper_steps=4, **ahead),
        "window": lambda: Objective(until, *both, lower_steps=2, upper_steps=5, **ahead),
        "late": lambda: Objective(until, *both, lower_steps=2, **ahead),
        "reward": lambda: Objective(ObjectiveKind.REACH_REWARD, *both, reward=reward, **ahead),
        "terminal": lambda: Objective(
            ObjectiveKind.REACH_REWARD, *both, reward=reward, terminal=-3.0 * target, **ahead
        ),
        "cumulative": lambda: Objective(ObjectiveKind.CUMULATIVE, *both, reward=reward, upper_steps=6),
        "total": lambda: Objective(ObjectiveKind.TOTAL, *both, reward=reward),
        "discounted": lambda: Objective(ObjectiveKind.DISCOUNTED, *both, reward=reward, discount=0.9),
    }
    return made[kind]()


def _policy(rng: np.random.Generator, model: ParametricMDP) -> Policy:
    start = model.structure.choice_start
    if rng.random() < 0.3:
        weight = rng.integers(1, 5, model.choices).astype(np.float64)
        total = np.add.reduceat(weight, start[:-1])
        return Policy(model, weight / np.repeat(total, np.diff(start)))
    return Policy(model, (rng.random(model.states) * np.diff(start)).astype(np.int64))


def value_at(case: Case, theta: FloatArray) -> float:
    """The policy's value at a point, by dense linear algebra."""
    model, objective = case.model, case.objective
    structure, states = model.structure, model.states
    probability = model.expressions.values_many(theta[None, :])[0][model.expression]
    weight = case.policy.probability
    chain, earned = np.zeros((states, states)), np.zeros(states)
    reward = np.zeros(model.choices) if objective.reward is None else objective.reward.per_choice(structure)
    for c in range(model.choices):
        s = int(structure.choice_state[c])
        earned[s] += weight[c] * reward[c]
        for t in range(int(structure.transition_start[c]), int(structure.transition_start[c + 1])):
            chain[s, int(structure.successor[t])] += weight[c] * probability[t]
    value = float(_values(objective, chain, earned)[structure.initial])
    return 1.0 - value if objective.complement else value


def _values(objective: Objective, chain: FloatArray, earned: FloatArray) -> FloatArray:
    states = len(earned)
    target = np.zeros(states, np.bool_) if objective.target is None else objective.target
    goal = target.astype(np.float64)
    allowed = np.ones(states, np.bool_) if objective.allowed is None else objective.allowed
    if objective.kind is ObjectiveKind.NEXT:
        return chain @ goal
    if objective.kind is ObjectiveKind.CUMULATIVE:
        value = np.zeros(states)
        for _ in range(objective.upper_steps or 0):
            value = earned + chain @ value
        return value
    if objective.kind is ObjectiveKind.DISCOUNTED:
        return np.linalg.solve(np.eye(states) - (objective.discount or 0.0) * chain, earned)
    if objective.kind is ObjectiveKind.TOTAL:
        inner = np.flatnonzero(np.arange(states) < states - 2)
        value = np.zeros(states)
        value[inner] = np.linalg.solve(np.eye(len(inner)) - chain[np.ix_(inner, inner)], earned[inner])
        return value
    fixed = target if objective.kind is ObjectiveKind.REACH_REWARD else target | ~allowed
    if objective.upper_steps is not None:
        value = goal
        for _ in range(objective.upper_steps - objective.lower_steps):
            value = np.where(target, 1.0, np.where(allowed, chain @ value, 0.0))
    else:
        if objective.kind is ObjectiveKind.UNTIL:
            fixed = fixed | (np.arange(states) == states - 2)  # the trap
        inner = np.flatnonzero(~fixed)
        value = goal if objective.kind is ObjectiveKind.UNTIL else np.zeros(states)
        if objective.terminal is not None:
            value = np.where(target, objective.terminal, 0.0)
        known = earned[inner] + chain[np.ix_(inner, np.flatnonzero(fixed))] @ value[fixed]
        value[inner] = np.linalg.solve(np.eye(len(inner)) - chain[np.ix_(inner, inner)], known)
    for _ in range(objective.lower_steps):
        value = np.where(allowed, chain @ value, 0.0)
    return value


def brute_force(case: Case, seed: int, drawn: int = 120) -> tuple[float, float]:
    """The smallest and the largest value found: corners, many points, and a local search from the best."""
    low, high = case.box
    rng = np.random.default_rng(seed)
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(len(low), -1).T
    points = np.vstack([corners, low + (high - low) * rng.random((drawn, len(low)))])
    values = np.array([value_at(case, point) for point in points])
    found = []
    for sign in (1.0, -1.0):
        best = int((sign * values).argmin())
        improved = minimize(
            lambda theta, sign=sign: sign * value_at(case, np.clip(theta, low, high)),
            points[best],
            method="Nelder-Mead",
            options={"maxiter": 60},
        )
        found.append(sign * min(float(improved.fun), float((sign * values)[best])))
    return found[0], found[1]
