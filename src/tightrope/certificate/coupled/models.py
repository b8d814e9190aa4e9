"""Taylor models of a policy's value over a cell: is every polynomial as close to the value as its error says?

On x = centre + axes·y the policy's chain P(y) is affine, and V = r + γPV at open states. With W(y) of degree
two and e > 0, the residual r + γPW − W is a cubic, on the ball |y| ≤ ϱ of the cell's points at most R in
size. Checked: e ≥ R + γ max (P(y)e) and e > γ max (P(y)e). Then γP restricted to open states has spectral
radius below 1, so V is the only solution and |V − W| ≤ e (`docs/trust.md`). For a bounded number of steps the
steps are made here, the cubic part, rounding and γP(y)e becoming the error.

A polynomial is a row of coefficients of the monomials 1, y_j, y_j·y_k, y_j·y_k·y_l in the order of degrees.
Those of degree d are a symmetric tensor of norm √(Σ c²/m), m being the number of orders of a monomial's
factors: on the ball they are at most ϱᵈ times that.

In float64 this is a filter: coefficients of n terms are off by less than (n + 20)·ε times the sum of the
terms' sizes, and where all numbers are at most 2²⁰⁰, underflow in products of four hides less than 2⁻⁴⁰⁰ in a
sum of 2⁶⁰. States at which that leaves the inequality open are asked again in rationals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np

from tightrope.certificate.budget import hold, spend
from tightrope.certificate.claim import Claim
from tightrope.certificate.game.nature import rows_of
from tightrope.certificate.numbers import Arithmetic, Numbers, OutOfRange
from tightrope.certificate.problem import Objective, Problem
from tightrope.certificate.region.coordinates import Space
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

_BLOCK = 1 << 20


def rounding(n: Arithmetic, operations: int, size: Any) -> Any:
    """What so many operations may change, on tame numbers with terms whose absolute values sum to `size`."""
    return 0 if n.exact else n.error(operations, size) + 2.0**-400


def is_tame(n: Arithmetic, *arrays: Any) -> bool:
    return n.exact or all(bool(np.all(np.abs(array) <= 2.0**200)) for array in arrays)


@lru_cache(maxsize=8)
def monomials(size: int) -> tuple[Any, Any, Any]:
    """(degree, orders of the factors) of the monomials up to degree 3, and [j]: where y_j times each of those
    up to degree 2 stands among them; [0] is where they stand themselves, [j + 1] the products with y_j."""
    listed = [m for degree in range(4) for m in combinations_with_replacement(range(size), degree)]
    place = {monomial: number for number, monomial in enumerate(listed)}
    low = [monomial for monomial in listed if len(monomial) < 3]
    shifted = [[place[tuple(sorted((*m, j)))] for m in low] for j in range(size)]
    orders = [len(set(permutations(monomial))) for monomial in listed]
    return np.array([len(m) for m in listed]), np.array(orders), np.array([range(len(low)), *shifted])


@dataclass(frozen=True, eq=False)
class Walk:
    """The policy's chain: transitions of the listed states, in their order, with the policy's weight and the
    discount.

    The expressions that occur are linear·x + constant; `label` is the number of each transition's.
    """

    n: Arithmetic
    state: OffsetArray
    start: OffsetArray
    weight: Numbers
    label: OffsetArray
    successor: OffsetArray
    linear: Numbers
    constant: Numbers
    reward: Numbers
    reward_size: Numbers

    @staticmethod
    def of(n: Arithmetic, space: Space, problem: Problem, claim: Claim, state: OffsetArray) -> Walk:
        graph, objective, weight = problem.graph, problem.objective, claim.weights(problem.graph.choices)
        assert problem.expression is not None and problem.polynomial is not None
        if weight is None:
            raise ValueError("coupled bounds need a policy that is a table")
        first, choice = rows_of(graph.choice_start, state)
        part = n.array(weight[choice])
        owner = np.repeat(np.arange(len(state)), np.diff(first))
        share = part / np.add.reduceat(part, first[:-1])[owner] if len(state) else part
        used = np.flatnonzero(weight[choice] > 0)
        choice, owner, share = choice[used], owner[used], share[used]
        reward = np.zeros(graph.choices) if objective.reward is None else objective.reward
        earned, first = share * n.array(reward[choice]), np.searchsorted(owner, np.arange(len(state) + 1))
        offset, taken = rows_of(graph.transition_start, choice)
        start = offset[first]
        discount = n.array([1.0 if objective.discount is None else objective.discount])[0]
        labels, label = np.unique(problem.expression[taken], return_inverse=True)
        forms = space.table(n, [problem.polynomial[e] for e in labels.tolist()])
        chain = np.repeat(discount * share, np.diff(offset)), label.reshape(-1), graph.successor[taken]
        rewards = (
            np.add.reduceat(each, first[:-1]) if len(state) else each for each in (earned, np.abs(earned))
        )
        return Walk(n, state, start, *chain, *forms, *rewards)


@dataclass(frozen=True, eq=False)
class Ball:
    """Expression i of a walk is form[i, 0] + form[i, 1:]·y, off by at most fuzz[i], on |y| ≤ radius."""

    n: Arithmetic
    form: Numbers
    fuzz: Numbers
    radius: Any

    @staticmethod
    def of(walk: Walk, points: FloatArray, centre: FloatArray, axes: FloatArray) -> Ball:
        """On x = centre + axes·y; the numbers of the walk's expressions are the nearest."""
        n, linear, constant = walk.n, walk.linear, walk.constant
        x, along, y = n.array(centre), n.array(axes), n.array(points)
        radius = norm_up(n, y).max()
        size = np.abs(linear) @ (np.abs(x) + radius * np.abs(along).sum(axis=1)) + np.abs(constant)
        form = np.concatenate([(linear @ x + constant)[:, None], linear @ along], axis=1)
        return Ball(n, form, rounding(n, len(x) + 8, size) + n.zeros(len(form)), radius)

    @property
    def size(self) -> int:
        return int(self.form.shape[1]) - 1

    def magnitude(self, coefficient: Numbers) -> Numbers:
        """Bounds of the sums of the terms' absolute values."""
        power = np.array([self.radius**d for d in range(4)], dtype=self.n.dtype)
        total: Numbers = np.abs(coefficient) @ power[monomials(self.size)[0][: coefficient.shape[1]]]
        total = total + rounding(self.n, coefficient.shape[1] + 8, total)
        return total

    def largest(self, coefficient: Numbers, least: int = 0) -> Numbers:
        """Bounds of the absolute values of what is at least of a degree."""
        degree, orders, _ = monomials(self.size)
        total: Numbers = np.abs(coefficient[:, 0]) * (least == 0)
        for d in range(max(least, 1), int(degree[coefficient.shape[1] - 1]) + 1):
            part = coefficient[:, degree[: coefficient.shape[1]] == d]
            total = total + self.radius**d * norm_up(self.n, part, orders[degree == d])
        total = total + rounding(self.n, 16, total)
        return total


@dataclass(frozen=True, eq=False)
class Model:
    """W, by coefficients, and e for every state of the graph, zeros where nothing is claimed.

    They are doubles as in the file, or numbers of the arithmetic that steps were made in.
    """

    coefficient: Numbers
    error: Numbers

    @staticmethod
    def constant(value: FloatArray, size: int) -> Model:
        width = (size + 1) * (size + 2) // 2
        spend("models of the value", 40 * (size + 1) ** 4)
        hold("models of the value", 24 * len(value) * width * (1 + size // 3))
        coefficient = np.zeros((len(value), monomials(size)[2].shape[1]))
        coefficient[:, 0] = value
        return Model(coefficient, np.zeros(len(value)))


def backup(walk: Walk, ball: Ball, model: Model) -> tuple[Numbers, Numbers, Any]:
    """r + γP(y)W(y) at a walk's states: (coefficients up to degree 3, γ max P(y)e, rounding).

    The last bounds, on the ball, what rounding and fuzz may have changed. In blocks of states.
    """
    work = len(walk.weight) * model.coefficient.shape[1] * (ball.size + 2)
    spend("models of the value", 2 * work, 320 if walk.n.exact else 0)
    n, count = walk.n, len(walk.state)
    sizes = None
    if not n.exact:
        sizes = ball.magnitude(model.coefficient) + model.error, ball.magnitude(ball.form) + ball.fuzz
        if not is_tame(n, *sizes, ball.radius, walk.reward_size):
            raise OutOfRange
    step = max(1, _BLOCK * count // (model.coefficient.shape[1] * max(len(walk.weight), 1)))
    spans = [(first, min(first + step, count)) for first in range(0, max(count, 1), step)]
    parts = [_block(walk, ball, model, sizes, *span) for span in spans]
    found, carried, doubt = (np.concatenate(part) for part in zip(*parts, strict=True))
    return found, carried, doubt


def _block(
    walk: Walk, ball: Ball, model: Model, sizes: tuple[Numbers, Numbers] | None, first: int, last: int
) -> tuple[Numbers, Numbers, Numbers]:
    n, size, span = walk.n, ball.size, slice(int(walk.start[first]), int(walk.start[last]))
    starts, longest = walk.start[first:last] - span.start, int(np.diff(walk.start).max(initial=1))
    e, to, weight = walk.label[span], walk.successor[span], walk.weight[span]
    own, error = n.array(model.coefficient[to]), n.array(model.error[to])
    form, (degree, _, shifted) = weight[:, None] * ball.form[e], monomials(size)
    found = n.zeros((len(starts), len(degree)))
    for j in range(size + 1):
        found[:, shifted[j]] += np.add.reduceat(form[:, j, None] * own, starts, axis=0)
    found[:, 0] += walk.reward[first:last]
    carried = ball.largest(np.add.reduceat(form * error[:, None], starts, axis=0))
    if sizes is None:
        return found, carried, n.zeros(len(starts))
    magnitude, reach = sizes
    terms = np.add.reduceat(weight * reach[e] * magnitude[to], starts) + walk.reward_size[first:last]
    fuzz = np.add.reduceat(weight * ball.fuzz[e] * magnitude[to], starts)
    carried = carried + 2 * rounding(n, longest + size + 20, carried)
    return found, carried, 2 * (rounding(n, longest + size + 20, terms) + fuzz)


def model_misfit(walk: Walk, ball: Ball, model: Model) -> BoolArray:
    """States of the walk where the error is too small."""
    n, own, error = walk.n, model.coefficient[walk.state], walk.n.array(model.error[walk.state])
    found, carried, doubt = backup(walk, ball, model)
    found[:, : own.shape[1]] -= n.array(own)
    if not n.exact:
        doubt = doubt + rounding(n, 16, ball.magnitude(own) + ball.magnitude(found))
    needed = ball.largest(found) + doubt + carried
    fits = (error >= needed + rounding(n, 8, needed)) & (error > carried + 2 * doubt)
    return ~np.asarray(fits, dtype=np.bool_)


def take_steps(
    objective: Objective, walk: Walk, ball: Ball, model: Model, known: BoolArray, steps: int
) -> tuple[Model, BoolArray]:
    """The model so many steps earlier, and where it is one; the walk is over all states.

    A state visited after `step` steps counts as a target from lower_steps on, where steps are bounded.
    """
    target = None if objective.steps is None else objective.target
    for step in range(steps - 1, -1, -1):
        model = _one_step(walk, ball, model)
        known = np.logical_and.reduceat(known[walk.successor], walk.start[:-1])
        decided = []
        if objective.kind == "UNTIL" and objective.allowed is not None:
            decided.append((~objective.allowed, 0))
        if objective.kind == "UNTIL" and target is not None and step >= objective.lower_steps:
            decided.append((target, 1))
        for where, value in decided:
            model.coefficient[where], model.error[where], known[where] = 0, 0, True
            model.coefficient[where, 0] = value
    return model, known


def _one_step(walk: Walk, ball: Ball, model: Model) -> Model:
    """r + γP(y)W(y) with an error that covers what is left out, also of digits."""
    n, width = walk.n, model.coefficient.shape[1]
    found, carried, doubt = backup(walk, ball, model)
    kept = n.trim(found[:, :width])
    error = ball.largest(found, 3) + carried + doubt
    if n.exact:
        error = error + ball.magnitude(found[:, :width] - kept)
    return Model(kept, n.trim(error + rounding(n, 16, error), True))


def norm_up(n: Arithmetic, vectors: Numbers, divided: Any = 1) -> Numbers:
    """Not below the Euclidean norms √(Σ c²/divided)."""
    square = (vectors * vectors / divided).sum(axis=-1)
    return n.root_up(square + n.error(vectors.shape[-1] + 8, square))
