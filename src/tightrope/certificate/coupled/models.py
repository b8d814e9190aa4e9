"""Taylor models of a policy's value over a cell: is every polynomial as close to the value as its error says?

On x = centre + axes·y the policy's chain P(y) is affine, and V = r + γPV at open states. With W(y) = value +
slope·y + yᵀ·curve·y and e > 0, the residual r + γPW − W is a cubic, on the ball |y| ≤ ϱ of the cell's points
at most R in size. Checked: e ≥ R + γ max (P(y)e) and e > γ max (P(y)e). Then γP restricted to open states
has spectral radius below 1, so V is the only solution and |V − W| ≤ e (`docs/trust.md`). For a bounded number
of steps the steps are made here, the cubic part, rounding and γP(y)e becoming the error.

Coefficients of n terms are off by less than (n + 20)·ε times the sum of the terms' sizes (`rounding`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.certificate.claim import Claim
from tightrope.certificate.coupled.hints import packed_size
from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.certificate.problem import Objective, Problem
from tightrope.certificate.region.coordinates import Space
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Walk:
    """The policy's chain: transitions of the listed states, in their order, with the policy's weight.

    The expressions that occur are linear·x + constant; `label` is the number of each transition's.
    """

    n: Arithmetic
    state: OffsetArray
    start: OffsetArray
    weight: Numbers
    linear: Numbers
    constant: Numbers
    label: OffsetArray
    successor: OffsetArray
    reward: Numbers
    reward_size: Numbers
    discount: Any

    @staticmethod
    def of(n: Arithmetic, space: Space, problem: Problem, claim: Claim, state: OffsetArray) -> Walk:
        graph, objective = problem.graph, problem.objective
        assert problem.expression is not None and problem.polynomial is not None
        owner = np.repeat(np.arange(graph.states), np.diff(graph.choice_start))
        if claim.weight is not None:
            share = n.array(claim.weight)
            share = share / np.add.reduceat(share, graph.choice_start[:-1])[owner]
        elif claim.choice is not None:
            share = n.zeros(graph.choices)
            share[claim.choice] = 1
        else:
            raise ValueError("coupled bounds need a policy that is a table")
        wanted = np.zeros(graph.states, dtype=np.bool_)
        wanted[state] = True
        kept = wanted[owner] & np.asarray(share > 0, dtype=np.bool_)
        length = np.diff(graph.transition_start)
        taken = np.repeat(kept, length)
        count = np.bincount(owner[kept], length[kept], graph.states).astype(np.int64)[state]
        reward = n.zeros((2, graph.states))
        if objective.reward is not None:
            earned = share[kept] * n.array(objective.reward[kept])
            np.add.at(reward[0], owner[kept], earned)
            np.add.at(reward[1], owner[kept], np.abs(earned))
        used, label = np.unique(problem.expression[taken], return_inverse=True)
        forms = [space.affine(problem.polynomial[e]) for e in used.tolist()]
        linear = n.array([a for a, _ in forms]).reshape(len(forms), space.size)
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        discount = n.array([1.0 if objective.discount is None else objective.discount])[0]
        chain = linear, n.array([c for _, c in forms]), label.reshape(-1), graph.successor[taken]
        weight = np.repeat(share, length)[taken]
        return Walk(n, state, start, weight, *chain, reward[0, state], reward[1, state], discount)

    @property
    def longest(self) -> int:
        return int(np.diff(self.start).max(initial=1))


@dataclass(frozen=True, eq=False)
class Frame:
    """Expression number i of a walk is middle[i] + slope[i]·y, off by at most fuzz[i], on |y| ≤ radius."""

    middle: Numbers
    slope: Numbers
    fuzz: Numbers
    radius: Any

    @staticmethod
    def of(walk: Walk, centre: FloatArray, axes: FloatArray, points: FloatArray) -> Frame:
        """On x = centre + axes·y; each number of the walk's expressions is off by at most ε relatively."""
        n, linear, constant = walk.n, walk.linear, walk.constant
        x, along, y = n.array(centre), n.array(axes), n.array(points)
        radius = norm_up(n, y).max()
        size = np.abs(linear) @ (np.abs(x) + radius * np.abs(along).sum(axis=1)) + np.abs(constant)
        return Frame(linear @ x + constant, linear @ along, (len(x) + 6) * n.epsilon * size, radius)

    @property
    def size(self) -> int:
        return int(self.slope.shape[1])

    def reach(self) -> Numbers:
        """How large an expression's two parts can be together, in absolute terms."""
        result: Numbers = np.abs(self.middle) + self.radius * np.abs(self.slope).sum(axis=1)
        return result


@dataclass(frozen=True, eq=False)
class Model:
    """W and e for every state of the graph: zero polynomials and errors where nothing is claimed."""

    value: Numbers
    slope: Numbers
    curve: Numbers
    error: Numbers

    @staticmethod
    def constant(n: Arithmetic, value: FloatArray, size: int) -> Model:
        count = len(value)
        return Model(
            n.array(value), n.zeros((count, size)), n.zeros((count, packed_size(size))), n.zeros(count)
        )

    def at(self, state: Any, *parts: Any) -> Model:
        """The same with these polynomials (value, slope, curve, error) at these states."""
        mine = [part.copy() for part in (self.value, self.slope, self.curve, self.error)]
        for part, new in zip(mine, parts, strict=True):
            part[state] = new
        return Model(*mine)

    def magnitude(self, radius: Any) -> Numbers:
        """A bound on |W| + e on the ball, and on the sum of its terms there."""
        twice = multiplicity(self.slope.shape[1])
        square = (np.abs(self.curve) * twice).sum(axis=1)
        result: Numbers = (
            np.abs(self.value) + radius * np.abs(self.slope).sum(axis=1) + radius * radius * square
        )
        return result + self.error


def backup(walk: Walk, frame: Frame, model: Model) -> tuple[Numbers, ...]:
    """r + γP(y)W(y) at a walk's states: (value, slope, curve, the cubic part's size, γ max P(y)e, rounding).

    The last bounds, on the ball, what rounding and fuzz may have changed. In blocks of states.
    """
    n, size, count = walk.n, frame.size, len(walk.state)
    per_state = max(1, len(walk.weight) // max(count, 1)) * (2 + 2 * size + packed_size(size) * (size + 1))
    step = max(1, _BLOCK // per_state)
    magnitude, reach = model.magnitude(frame.radius), frame.reach()
    spans = [(first, min(first + step, count)) for first in range(0, count, step)]
    parts = [_block(walk, frame, model, magnitude, reach, *span) for span in spans]
    empty = [n.zeros(0), n.zeros((0, size)), n.zeros((0, packed_size(size))), *[n.zeros(0)] * 3]
    return tuple(np.concatenate([empty[i], *(part[i] for part in parts)]) for i in range(6))


def _block(
    walk: Walk, frame: Frame, model: Model, magnitude: Numbers, reach: Numbers, first: int, last: int
) -> tuple[Numbers, ...]:
    n, span = walk.n, slice(int(walk.start[first]), int(walk.start[last]))
    starts = walk.start[first:last] - walk.start[first]
    e, to = walk.label[span], walk.successor[span]
    weight = walk.discount * walk.weight[span]
    middle, slope = weight * frame.middle[e], weight[:, None] * frame.slope[e]
    own, linear, square, error = model.value[to], model.slope[to], model.curve[to], model.error[to]
    left, right = np.triu_indices(frame.size)

    def total(terms: Numbers) -> Numbers:
        result: Numbers = np.add.reduceat(terms, starts, axis=0)
        return result

    first_order = total(middle[:, None] * linear + slope * own[:, None])
    mixed = (slope[:, left] * linear[:, right] + slope[:, right] * linear[:, left]) / 2
    second_order = total(middle[:, None] * square + mixed)
    third = total((slope[:, :, None] * square[:, None, :]).reshape(len(e), -1))
    cubic = _cubic_norm(n, third.reshape(len(starts), frame.size, -1), frame.size) * frame.radius**3
    carried = total(middle * error) + frame.radius * norm_up(n, total(slope * error[:, None]))
    size = total(weight * reach[e] * magnitude[to])
    rounding = (walk.longest + 20) * n.epsilon * (size + walk.reward_size[first:last])
    rounding = rounding + total(weight * frame.fuzz[e] * magnitude[to])
    safe = 1 + (walk.longest + 100) * n.epsilon
    value = total(middle * own) + walk.reward[first:last]
    return value, first_order, second_order, cubic * safe, carried * safe, rounding * safe


def model_misfit(walk: Walk, frame: Frame, model: Model) -> BoolArray:
    """States of the walk where the error is too small."""
    n, radius, state = walk.n, frame.radius, walk.state
    value, slope, curve, cubic, carried, rounding = backup(walk, frame, model)
    square = curve - model.curve[state]
    residual = np.abs(value - model.value[state]) + radius * norm_up(n, slope - model.slope[state]) + cubic
    residual = residual + radius**2 * n.root_up((square * square * multiplicity(frame.size)).sum(axis=1))
    needed = residual + 16 * n.epsilon * model.magnitude(radius)[state] + rounding + carried
    safe, error = 1 + (frame.size**2 + 100) * n.epsilon, model.error[state]
    fits = (error >= needed * safe) & (error > (carried + rounding) * safe)
    return ~np.asarray(fits, dtype=np.bool_)


def one_step(walk: Walk, frame: Frame, model: Model) -> Model:
    """r + γP(y)W(y) with an error that covers what is left out, also of digits."""
    n, radius = walk.n, frame.radius
    *exact, cubic, carried, rounding = backup(walk, frame, model)
    value, slope, curve = (n.trim(part) for part in exact)
    lost = np.abs(exact[0] - value) + radius * np.abs(exact[1] - slope).sum(axis=1)
    lost = lost + 2 * radius**2 * np.abs(exact[2] - curve).sum(axis=1)
    error = cubic + carried + rounding + lost
    size = Model(value, slope, curve, error).magnitude(radius)
    return Model(value, slope, curve, n.trim((error + 16 * n.epsilon * size) * (1 + 100 * n.epsilon), True))


def iterate_model(objective: Objective, walk: Walk, frame: Frame) -> Model:
    """The model after all steps; the walk is over all states."""
    states, steps = len(walk.state), objective.steps
    assert steps is not None
    none = np.zeros(states, dtype=np.bool_)
    target = none if objective.target is None else objective.target
    allowed = ~none if objective.allowed is None else objective.allowed
    model = Model.constant(walk.n, target.astype(np.float64), frame.size)
    for step in range(steps, 0, -1):
        model = one_step(walk, frame, model)
        if objective.kind == "UNTIL":
            counts = target & (step - 1 >= objective.lower_steps)
            model = _with_value(_with_value(model, counts, 1), ~counts & ~allowed, 0)
    return model


def after_steps(
    objective: Objective, walk: Walk, frame: Frame, model: Model, known: BoolArray
) -> tuple[Model, BoolArray]:
    """A model of the tail taken back by `lower_steps` steps, and where it is one."""
    allowed = np.ones(len(known), dtype=np.bool_) if objective.allowed is None else objective.allowed
    for _ in range(objective.lower_steps):
        model = _with_value(one_step(walk, frame, model), ~allowed, 0)
        known = np.logical_and.reduceat(known[walk.successor], walk.start[:-1]) | ~allowed
    return model, known


def _with_value(model: Model, where: BoolArray, value: int) -> Model:
    """The model with a constant at some states."""
    zero = model.error[:1] * 0
    return model.at(where, zero + value, zero, zero, zero)


def norm_up(n: Arithmetic, vectors: Numbers) -> Numbers:
    """Not below the Euclidean norms."""
    return n.root_up((vectors * vectors).sum(axis=-1) * (1 + (vectors.shape[-1] + 4) * n.epsilon))


def multiplicity(size: int) -> Any:
    """How often a packed entry stands in its symmetric matrix: once on the diagonal, else twice."""
    left, right = np.triu_indices(size)
    return np.where(left == right, 1, 2)


def _cubic_norm(n: Arithmetic, third: Numbers, size: int) -> Numbers:
    """‖sym T‖_F of T[j, (k, l)], symmetric in k and l: entries averaged over their three places."""
    place = np.zeros((size, size), dtype=np.int64)
    left, right = np.triu_indices(size)
    place[left, right] = place[right, left] = np.arange(len(left))
    total = n.zeros(len(third))
    for j in range(size):
        for k in range(j, size):
            for m in range(k, size):
                entry = (third[:, j, place[k, m]] + third[:, k, place[j, m]] + third[:, m, place[j, k]]) / 3
                total = total + (1, 3, 6)[len({j, k, m}) - 1] * entry * entry
    return n.root_up(total * (1 + (size**3 + 8) * n.epsilon))
