"""Taylor models of a policy's value over a cell: is every polynomial as close to the value as its error says?

The policy's chain at coordinates x = centre + axes·y is P(y) = Σ ω f(y), affine in y, and V(y) = r +
γP(y)V(y) at open states, V known at decided ones. A model gives W_s(y) = value + slope·y + yᵀ·curve·y and e_s
> 0 (at decided states the value itself and 0). Then q_s(y) = r_s + γ(P(y)W(y))_s − W_s(y) is a cubic whose
coefficients are worked out here, and on |y| ≤ ϱ, a ball that contains the cell's points,

    |q_s(y)| ≤ |q⁰| + ϱ‖q¹‖ + ϱ²‖q²‖_F + ϱ³‖q³‖_F =: R_s   (q² and q³ symmetric).

Checked: e_s ≥ R_s + γ max_{|y| ≤ ϱ} (P(y)e)_s, the maximum being Σω m e + ϱ‖Σω g e‖ for f = m + g·y, and e_s
> γ(P(y)e)_s.

*Why this suffices.* On the open states e > 0 and e > γP(y)e, so γP(y) restricted to them has spectral radius
below 1: the equation has one solution, which is the value (it is finite, by the guarantee over the sets, and
solves it). D = V − W − e satisfies D ≤ γP(y)D on open states and D ≤ 0 on decided ones, hence D ≤ (γP)ⁿD → 0;
likewise from below. So |V_s(x) − W_s(y)| ≤ e_s, at every x of the cell and every open state.

All is longdouble with error bounds for every sum: coefficients of n terms are off by less than (n + 20)·ε
times the sum of the terms' sizes, collected in `rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.certificate.certificate import Problem
from tightrope.certificate.old_coupled import Table, packed_size
from tightrope.certificate.inner import EPSILON, Extended
from tightrope.certificate.learning import Guarantee
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray

_BLOCK = 1 << 21
_SAFE = 1 + np.longdouble(1e-15)
"""Covers the rounding of norms of a few hundred numbers."""


@dataclass(frozen=True, eq=False)
class Walk:
    """The policy's chain: transitions of the listed states, in their order, with the policy's weight."""

    state: OffsetArray
    start: OffsetArray
    weight: Extended
    expression: IndexArray
    successor: IndexArray
    reward: Extended
    reward_size: Extended
    mixed: BoolArray
    discount: Any
    """A single longdouble."""

    @staticmethod
    def of(problem: Problem, guarantee: Guarantee, expression: IndexArray, state: OffsetArray) -> Walk:
        choices, states = len(problem.transition_start) - 1, len(problem.choice_start) - 1
        if guarantee.policy_kind == "randomised":
            assert guarantee.weight is not None
            weight: FloatArray = guarantee.weight
        else:
            if guarantee.policy_kind != "fixed" or guarantee.policy is None:
                raise ValueError("coupled bounds need a policy that is a table")
            weight = np.zeros(choices)
            weight[guarantee.policy] = 1.0
        wanted = np.zeros(states, dtype=np.bool_)
        wanted[state] = True
        owner = np.repeat(np.arange(states), np.diff(problem.choice_start))
        used = wanted[owner] & (weight > 0)
        length = np.diff(problem.transition_start)
        taken = np.repeat(used, length)
        count = np.bincount(owner[used], weights=length[used], minlength=states).astype(np.int64)[state]
        reward = np.zeros((2, states), dtype=np.longdouble)
        if problem.reward is not None:
            earned = weight[used].astype(np.longdouble) * problem.reward[used]
            np.add.at(reward[0], owner[used], earned)
            np.add.at(reward[1], owner[used], np.abs(earned))
        mixed = np.zeros(states, dtype=np.bool_)
        mixed[owner[used & (weight != 1)]] = True
        return Walk(
            state,
            np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
            np.repeat(weight, length)[taken].astype(np.longdouble),
            expression[taken],
            problem.successor[taken],
            reward[0, state],
            reward[1, state],
            mixed[state],
            np.longdouble(1 if problem.discount is None else problem.discount),
        )

    @property
    def longest(self) -> int:
        return int(np.diff(self.start).max(initial=1))


@dataclass(frozen=True, eq=False)
class Frame:
    """Expression e is middle[e] + slope[e]·y, off by at most fuzz[e], on |y| ≤ radius."""

    middle: Extended
    slope: Extended
    fuzz: Extended
    radius: Any

    @staticmethod
    def of(linear: Extended, constant: Extended, centre: Table, axes: Table, points: Table) -> Frame:
        """From expressions linear·x + constant in coordinates, each number off by at most ε relatively."""
        x, along = centre.astype(np.longdouble), axes.astype(np.longdouble)
        y = points.astype(np.longdouble)
        radius = np.sqrt((y * y).sum(axis=1)).max() * _SAFE
        middle = linear @ x + constant
        slope = linear @ along
        size = np.abs(linear) @ (np.abs(x) + radius * np.abs(along).sum(axis=1)) + np.abs(constant)
        return Frame(middle, slope, (len(x) + 6) * EPSILON * size, radius)

    @property
    def size(self) -> int:
        return int(self.slope.shape[1])

    def reach(self) -> Extended:
        """How large an expression's two parts can be together, in absolute terms."""
        result: Extended = np.abs(self.middle) + self.radius * np.abs(self.slope).sum(axis=1)
        return result


@dataclass(frozen=True, eq=False)
class Model:
    """W and e for every state of the graph: zero polynomials and errors where nothing is claimed."""

    value: Extended
    slope: Extended
    curve: Extended
    error: Extended

    @staticmethod
    def constant(value: FloatArray, size: int) -> Model:
        states = len(value)
        return Model(
            value.astype(np.longdouble),
            np.zeros((states, size), dtype=np.longdouble),
            np.zeros((states, packed_size(size)), dtype=np.longdouble),
            np.zeros(states, dtype=np.longdouble),
        )

    def at(self, state: OffsetArray, value: Table, slope: Table, curve: Table, error: Table) -> Model:
        """The same with these polynomials at these states."""
        parts = []
        for mine, new in ((self.value, value), (self.slope, slope), (self.curve, curve), (self.error, error)):
            changed = mine.copy()
            changed[state] = new
            parts.append(changed)
        return Model(*parts)

    def magnitude(self, radius: Any) -> Extended:
        """A bound on |W| + e on the ball, and on the sum of its terms there."""
        twice = _multiplicity(self.slope.shape[1])
        result: Extended = (
            np.abs(self.value)
            + radius * np.abs(self.slope).sum(axis=1)
            + radius**2 * (np.abs(self.curve) * twice).sum(axis=1)
            + self.error
        )
        return result


@dataclass(frozen=True, eq=False)
class Backup:
    """r + γP(y)W(y) at the states of a walk: coefficients, the size of the cubic part, and γ max P(y)e.

    `rounding` bounds, on the ball, what rounding, fuzz and weights that miss 1 may have changed.
    """

    value: Extended
    slope: Extended
    curve: Extended
    cubic: Extended
    carried: Extended
    rounding: Extended


def backup(walk: Walk, frame: Frame, model: Model) -> Backup:
    """One backup of a model, in blocks of states."""
    size, count = frame.size, len(walk.state)
    width = 2 + 2 * size + packed_size(size) * (size + 1)
    per_state = max(1, len(walk.weight) // max(count, 1)) * width
    step = max(1, _BLOCK // per_state)
    magnitude = model.magnitude(frame.radius)
    reach = frame.reach()
    parts = [
        _block(walk, frame, model, magnitude, reach, first, min(first + step, count))
        for first in range(0, count, step)
    ]
    if not parts:
        nothing = np.zeros(0, dtype=np.longdouble)
        return Backup(nothing, np.zeros((0, size)), np.zeros((0, packed_size(size))), *([nothing] * 3))
    return Backup(*(np.concatenate([part[i] for part in parts]) for i in range(6)))


def _block(
    walk: Walk, frame: Frame, model: Model, magnitude: Extended, reach: Extended, first: int, last: int
) -> tuple[Extended, ...]:
    span = slice(int(walk.start[first]), int(walk.start[last]))
    starts = walk.start[first:last] - walk.start[first]
    e, to = walk.expression[span], walk.successor[span]
    weight = walk.discount * walk.weight[span]
    middle = weight * frame.middle[e]
    slope = weight[:, None] * frame.slope[e]
    own, linear, square, error = model.value[to], model.slope[to], model.curve[to], model.error[to]
    left, right = np.triu_indices(frame.size)

    def total(terms: Extended) -> Extended:
        result: Extended = np.add.reduceat(terms, starts, axis=0)
        return result

    value = total(middle * own)
    first_order = total(middle[:, None] * linear + slope * own[:, None])
    second = middle[:, None] * square
    second += (slope[:, left] * linear[:, right] + slope[:, right] * linear[:, left]) / 2
    second_order = total(second)
    third = total((slope[:, :, None] * square[:, None, :]).reshape(len(e), -1))
    cubic = _cubic_norm(third.reshape(len(starts), frame.size, -1), frame.size) * frame.radius**3
    pushed = total(slope * error[:, None])
    carried = total(middle * error) + frame.radius * _norm(pushed)
    size = total(weight * reach[e] * magnitude[to])
    rounding = (walk.longest + 20) * EPSILON * size + total(weight * frame.fuzz[e] * magnitude[to])
    rounding += np.where(walk.mixed[first:last], np.longdouble(2.0**-49) * size, 0)
    mixed = np.where(walk.mixed[first:last], np.longdouble(2.0**-49), 0) + (walk.longest + 4) * EPSILON
    rounding += walk.reward_size[first:last] * mixed
    covered = cubic * _SAFE, carried * _SAFE, rounding * _SAFE
    return value + walk.reward[first:last], first_order, second_order, *covered


def model_misfit(walk: Walk, frame: Frame, model: Model) -> BoolArray:
    """States of the walk where the error is too small."""
    backed = backup(walk, frame, model)
    twice = _multiplicity(frame.size)
    square = backed.curve - model.curve[walk.state]
    residual = (
        np.abs(backed.value - model.value[walk.state])
        + frame.radius * _norm(backed.slope - model.slope[walk.state])
        + frame.radius**2 * np.sqrt((square * square * twice).sum(axis=1))
        + backed.cubic
    ) * _SAFE
    own = 8 * EPSILON * model.magnitude(frame.radius)[walk.state]
    needed = residual + own + backed.rounding + backed.carried
    error = model.error[walk.state]
    fits: BoolArray = (error >= needed * _SAFE) & (error > backed.carried + backed.rounding)
    return ~fits


def _norm(vectors: Extended) -> Extended:
    result: Extended = np.sqrt((vectors * vectors).sum(axis=-1))
    return result


def _multiplicity(size: int) -> Extended:
    """How often a packed entry stands in its symmetric matrix: once on the diagonal, else twice."""
    left, right = np.triu_indices(size)
    return np.where(left == right, 1, 2).astype(np.longdouble)


def _cubic_norm(third: Extended, size: int) -> Extended:
    """‖sym T‖_F of T[j, (k, l)], symmetric in k and l: entries averaged over their three places."""
    place = np.zeros((size, size), dtype=np.int64)
    left, right = np.triu_indices(size)
    place[left, right] = place[right, left] = np.arange(len(left))
    total = np.zeros(len(third), dtype=np.longdouble)
    for j in range(size):
        for k in range(j, size):
            for m in range(k, size):
                entry = (third[:, j, place[k, m]] + third[:, k, place[j, m]] + third[:, m, place[j, k]]) / 3
                distinct = len({j, k, m})
                total += (1, 3, 6)[distinct - 1] * entry * entry
    result: Extended = np.sqrt(total)
    return result
