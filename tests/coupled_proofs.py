"""Hand-made proofs of coupled bounds over boxes of parameters, by dense linear algebra, to feed a checker.

Nothing here is careful about rounding; errors are inflated a little, and the checker decides.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from tightrope.certify.problem import to_problem
from tightrope.certify.solved import to_claim, value_hints
from tightrope.model.builder import build_from_rows
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.policy import Policy
from tightrope.model.ranges import ranges_over_box
from tightrope.solver.solve import solve
from tightrope_check.coupled import CoupledHints
from tightrope_check.evidence import LearnedHints, RegionHints
from tightrope_check.learned import RowOrigin
from tightrope_check.problem import Certificate


def loop_model():
    """A cyclic chain with two actions in state 1; 3 is the goal, 4 a trap."""
    parameters = Parameters.box(p=("0.3", "0.5"), q=("0.1", "0.2"))
    p, q = parameters.symbols()
    rows = [
        (0, "go", {1: p, 2: 1 - p}),
        (1, "a", {0: q, 3: p, 4: 1 - p - q}),
        (1, "b", {0: "1/2", 3: "1/4", 4: "1/4"}),
        (2, "go", {0: 1 - q, 4: q}),
        (3, "stay", {3: 1}),
        (4, "stay", {4: 1}),
    ]
    return build_from_rows(rows, parameters, labels={"goal": [3]})


def objective_of(model, kind=ObjectiveKind.UNTIL, **fields):
    target = np.zeros(model.states, dtype=np.bool_)
    target[3] = True
    return Objective(kind, Direction.MAX, Direction.MIN, target=target, **fields)


def value_at(model, objective, policy, theta):
    solution = solve(model.instantiate(theta), objective, policy=policy, precision=1e-9)
    return float(solution.lower[model.initial]), float(solution.upper[model.initial])


def base_certificate(model, objective, policy):
    """The certificate over the expression sets of the domain, without coupled bounds."""
    policy = Policy(model, policy)
    low, high = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
    lower, upper = np.clip(low, 0, 1), np.clip(high, 0, 1)
    sets = IntervalMDP(model.structure, lower[model.expression], upper[model.expression])
    ends = [
        solve(sets, replace(objective, nature=nature), policy=policy)
        for nature in (Direction.MIN, Direction.MAX)
    ]
    size = len(model.parameters)
    nothing = np.zeros((0, size), dtype=np.int64)
    region = RegionHints(
        row=np.zeros((0, 3), dtype=np.int64),
        point=np.zeros((0, size)),
        box_basis=nothing,
        bound_expression=nothing[:, 0],
        bound_side=nothing[:, 0],
        bound_basis=nothing,
        choice_basis=nothing,
    )
    initial = model.initial
    bounds = float(ends[0].fixpoint_lower[initial]), float(ends[1].fixpoint_upper[initial])
    problem = to_problem(model, objective)
    return Certificate(
        problem,
        (to_claim("robust policy", bounds, policy, problem.objective),),
        (value_hints(ends[0], policy, ends[1]),),
        LearnedHints(region=region),
    )


class Prover:
    """Proofs for the cells of a tree; the coordinates are the parameters themselves."""

    def __init__(self, model, certificate, splits=()):
        self.model, self.certificate, self.splits = model, certificate, splits
        parameters = model.parameters
        self.low = np.array([float(v) for v in parameters.lower])
        self.high = np.array([float(v) for v in parameters.upper])
        self.size = len(parameters)
        claim, vectors = certificate.claims[0], certificate.values[0]
        decided = np.isin(np.arange(model.states), [3, 4])  # for steps, where the checker needs no models
        self.decided = np.zeros(model.states)
        if vectors.lower is not None:
            decided = vectors.lower == vectors.upper
            self.decided = np.where(decided, vectors.lower, 0.0)
        self.open = np.flatnonzero(~decided)
        weight = claim.weight
        if weight is None:
            weight = np.zeros(model.choices)
            weight[claim.choice] = 1.0
        self.weight = weight
        self.reward = np.zeros(model.states)
        self.objective = certificate.problem.objective
        if self.objective.reward is not None:
            np.add.at(self.reward, model.structure.choice_state, weight * self.objective.reward)

    def matrix(self, theta):
        values = self.model.expressions.values(theta)[self.model.expression]
        result = np.zeros((self.model.states, self.model.states))
        choice = np.repeat(np.arange(self.model.choices), np.diff(self.model.transition_start))
        state = self.model.structure.choice_state[choice]
        np.add.at(result, (state, self.model.structure.successor), values * self.weight[choice])
        return result * (self.objective.discount or 1.0)

    def cell(self, node):
        """The box of a node, and the names of its rows."""
        low, high, names = self.low.copy(), self.high.copy(), []
        while node > 0:
            split, side = divmod(node - 1, 2)
            parent, direction, value = self.splits[split]
            along = int(np.argmax(direction))
            names.append((int(RowOrigin.SPLIT), split, side))
            if side == 0:
                high[along] = min(high[along], value)
            else:
                low[along] = max(low[along], value)
            node = parent
        return low, high, names

    def model_of(self, low, high):
        centre, half = (low + high) / 2, (high - low) / 2 * (1 + 1e-9)
        axes = np.diag(half * np.sqrt(self.size))
        base = self.matrix(centre)
        along = [(self.matrix(centre + axes[:, j]) - base) for j in range(self.size)]
        o = self.open
        system = np.eye(len(o)) - base[np.ix_(o, o)]
        value = self.decided.copy()
        value[o] = np.linalg.solve(system, self.reward[o] + (base @ self.decided)[o])
        slope = np.zeros((len(value), self.size))
        for j in range(self.size):
            slope[o, j] = np.linalg.solve(system, (along[j] @ value)[o])
        square = np.zeros((len(value), self.size, self.size))
        for j in range(self.size):
            for k in range(self.size):
                mixed = (along[j] @ slope[:, k] + along[k] @ slope[:, j]) / 2
                square[o, j, k] = np.linalg.solve(system, mixed[o])
        cubic = sum(np.abs(along[j] @ square[:, k, m]) for j, k, m in product(range(self.size), repeat=3))
        worst = np.abs(base) + sum(np.abs(part) for part in along)
        error = np.linalg.solve(np.eye(len(o)) - worst[np.ix_(o, o)], cubic[o] + 1e-12)
        upper = np.triu_indices(self.size)
        return centre, axes, value[o], slope[o], square[o][:, upper[0], upper[1]], error, base

    def proof(self, nodes, duals=False):
        parts = []
        for node in nodes:
            low, high, names = self.cell(node)
            centre, axes, value, slope, curve, error, _ = self.model_of(low, high)
            signs = np.array(list(product((1, -1), repeat=self.size)))
            simplex = 2 * np.arange(self.size) + (signs < 0)
            points = signs / np.sqrt(self.size)
            eta = []
            for corner in (points[0], points[-1]):
                at = self.matrix(centre + axes @ corner)[np.ix_(self.open, self.open)]
                start = (self.open == self.model.initial).astype(float)
                eta.append(np.linalg.solve((np.eye(len(self.open)) - at).T, start))
            parts.append((node, names, simplex, points, centre, axes, value, slope, curve, error, eta))
        count = len(parts)
        rows = [np.array(part[1], dtype=np.int64).reshape(-1, 3) for part in parts]
        number = np.arange(count)
        return CoupledHints(
            claim=0,
            split_node=np.array([s[0] for s in self.splits], dtype=np.int64),
            split_direction=np.array([s[1] for s in self.splits], dtype=float).reshape(-1, self.size),
            split_value=np.array([s[2] for s in self.splits], dtype=float),
            node=np.array([part[0] for part in parts], dtype=np.int64),
            lower_dual=2 * number if duals else np.full(count, -1),
            upper_dual=2 * number + 1 if duals else np.full(count, -1),
            row_start=_starts(rows),
            row=np.concatenate(rows),
            multiplier=np.zeros(sum(len(part) for part in rows)),
            simplex=np.concatenate([part[2] for part in parts]),
            point_start=_starts([part[3] for part in parts]),
            point=np.concatenate([part[3] for part in parts]),
            centre=np.array([part[4] for part in parts]),
            axes=np.array([part[5] for part in parts]),
            state=self.open.astype(np.int64),
            value=np.array([part[6] for part in parts]),
            slope=np.array([part[7] for part in parts]),
            curve=np.array([part[8] for part in parts]),
            error=np.array([part[9] for part in parts]),
            dual=np.concatenate([part[10] for part in parts]) if duals else np.zeros((0, len(self.open))),
        )


def _starts(parts):
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
