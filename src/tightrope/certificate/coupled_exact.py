"""Coupled proofs in exact rationals, for models small enough: the conditions of `coupled_check` without
rounding.

The points' sides of their rows, residuals of Taylor models and Bernstein coefficients are rational; Euclidean
norms are rounded up from integer square roots. Cells of very many points keep the bounds of their pairs in
float64 with its error bound, and step-bounded values, whose exact denominators double with every step, the
steps in longdouble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from tightrope.certificate.coupled_check import CoupledCheck
from tightrope.certificate.coupled_models import Walk
from tightrope.certificate.coupled_values import Ends
from tightrope.certificate.inner import EPSILON, as_fraction
from tightrope.certificate.support_check import Rows, extended

MOST_POINTS = 300

_BITS = 160

Vector = list[Fraction]
ZERO = Fraction(0)


def root_up(square: Fraction) -> Fraction:
    """A rational at least the square root, close to it."""
    scaled = square.numerator * (1 << _BITS) // square.denominator + 1
    return Fraction(isqrt(scaled) + 1, 1 << (_BITS // 2))


def norm_up(vector: Sequence[Fraction]) -> Fraction:
    """A rational at least the Euclidean norm; 0 for nothing."""
    return root_up(sum((v * v for v in vector), ZERO)) if any(vector) else ZERO


@dataclass(frozen=True)
class Quadratic:
    """value + slope·y + yᵀ·curve·y, within error; `curve` is a full symmetric matrix."""

    value: Fraction
    slope: Vector
    curve: list[Vector]
    error: Fraction


class ExactCoupledCheck(CoupledCheck):
    """The links of one proof in rationals."""

    def own_ends(self, number: int) -> Ends | str:
        if self.by_steps or self.problem.lower_steps > 0 or len(self.proof.points_of(number)) == 0:
            return super().own_ends(number)
        trouble = self.hull(number)
        if trouble is not None:
            return trouble
        points = [[Fraction(float(v)) for v in point] for point in self.proof.points_of(number)]
        radius = max(norm_up(point) for point in points)
        chain = ExactChain(self, number)
        wrong = [s for s in chain.polynomial if not chain.fits(s, radius)]
        if wrong:
            return f"the error is too small at {len(wrong)} states, first at state {wrong[0]}, in rationals"
        if len(points) > MOST_POINTS:
            return super().own_ends(number)
        low, high = chain.ends(points)
        for side, dual in enumerate((self.proof.lower_dual[number], self.proof.upper_dual[number])):
            if dual >= 0:
                ends = chain.occupancy_ends(points, radius, self.proof.dual[dual])
                low, high = (max(low, ends[0]), high) if side == 0 else (low, min(high, ends[1]))
        near = extended([low, high])
        slack = 4 * EPSILON * np.abs(near)
        return near[0] - slack[0], near[1] + slack[1]

    def hull(self, number: int) -> str | None:
        """As in longdouble, and the points' sides of their rows once more in rationals."""
        trouble = super().hull(number)
        if trouble is not None:
            return trouble
        proof = self.proof
        centre, axes = proof.centre[number].tolist(), proof.axes[number].tolist()
        rows: Rows = self.cells.rows(number)
        matrix, bound = rows.full()
        place = rows.positions(proof.simplices_of(number))
        exact = {
            int(i): ([as_fraction(v) for v in matrix[i]], as_fraction(bound[i])) for i in np.unique(place)
        }
        for simplex, point in zip(place.tolist(), proof.points_of(number).tolist(), strict=True):
            x = [Fraction(c) + _dot(row, point) for c, row in zip(centre, axes, strict=True)]
            for i in simplex:
                row, end = exact[i]
                if sum((a * v for a, v in zip(row, x, strict=True)), ZERO) < end:
                    return "a point lies on the wrong side of a row of its simplex, in rationals"
        return None


def _dot(left: Sequence[float], right: Sequence[float]) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True)), ZERO)


class ExactChain:
    """The policy's chain with exact expressions in one cell's frame."""

    def __init__(self, check: CoupledCheck, number: int):
        proof, ground = check.proof, check.ground
        assert check.walk is not None
        walk: Walk = check.walk
        centre, axes = proof.centre[number].tolist(), proof.axes[number].tolist()
        self.initial = check.problem.initial
        self.size = len(centre)
        self.expression: dict[int, tuple[Fraction, Vector]] = {}
        for e in np.unique(walk.expression).tolist():
            linear, constant = ground.space.affine(ground.polynomials[e])
            middle = constant + sum((a * Fraction(c) for a, c in zip(linear, centre, strict=True)), ZERO)
            slope = [
                sum((a * Fraction(axes[i][j]) for i, a in enumerate(linear)), ZERO) for j in range(self.size)
            ]
            self.expression[e] = middle, slope
        discount = Fraction(check.problem.discount) if check.problem.discount is not None else Fraction(1)
        self.reward: dict[int, Fraction] = {}
        self.steps: dict[int, list[tuple[Fraction, int, int]]] = {}
        self._read(check, walk, discount)
        flat = np.triu_indices(self.size)
        self.polynomial = {
            s: self._quadratic(proof, number, i, flat) for i, s in enumerate(proof.state.tolist())
        }
        self.decided = check.decided_value

    def _read(self, check: CoupledCheck, walk: Walk, discount: Fraction) -> None:
        """Weights of the policy, normalised, and expected rewards."""
        problem, guarantee = check.problem, check.guarantee
        for i, s in enumerate(walk.state.tolist()):
            span = range(int(walk.start[i]), int(walk.start[i + 1]))
            choices = range(int(problem.choice_start[s]), int(problem.choice_start[s + 1]))
            if guarantee.weight is not None:
                weights = {c: Fraction(float(guarantee.weight[c])) for c in choices}
            else:
                assert guarantee.policy is not None
                weights = {c: Fraction(int(c == int(guarantee.policy[s]))) for c in choices}
            total = sum(weights.values(), ZERO)
            if problem.reward is not None:
                earned = (w * Fraction(float(problem.reward[c])) for c, w in weights.items())
                self.reward[s] = sum(earned, ZERO) / total
            self.steps[s] = [
                (
                    discount * as_fraction(walk.weight[t]) / total,
                    int(walk.expression[t]),
                    int(walk.successor[t]),
                )
                for t in span
            ]

    def _quadratic(self, proof: Any, number: int, i: int, flat: tuple[Any, Any]) -> Quadratic:
        curve = [[ZERO] * self.size for _ in range(self.size)]
        for (j, k), entry in zip(zip(*flat, strict=True), proof.curve[number, i].tolist(), strict=True):
            curve[j][k] = curve[k][j] = Fraction(entry)
        return Quadratic(
            Fraction(float(proof.value[number, i])),
            [Fraction(v) for v in proof.slope[number, i].tolist()],
            curve,
            Fraction(float(proof.error[number, i])),
        )

    def at(self, state: int) -> Quadratic:
        """The polynomial of an open state, or the value of a decided one."""
        found = self.polynomial.get(state)
        if found is not None:
            return found
        none = [ZERO] * self.size
        return Quadratic(Fraction(float(self.decided[state])), none, [none] * self.size, ZERO)

    def fits(self, state: int, radius: Fraction) -> bool:
        """Whether the error of an open state covers the residual and what the errors carry on."""
        size, own = range(self.size), self.at(state)
        value = self.reward.get(state, ZERO) - own.value
        slope = [-v for v in own.slope]
        curve = [[-v for v in row] for row in own.curve]
        cubic = [[[ZERO for _ in size] for _ in size] for _ in size]
        carried, pushed = ZERO, [ZERO] * self.size
        for weight, e, to in self.steps[state]:
            there = self.at(to)
            middle, along = self.expression[e]
            middle, along = weight * middle, [weight * g for g in along]
            value += middle * there.value
            carried += middle * there.error
            for j in size:
                slope[j] += middle * there.slope[j] + along[j] * there.value
                pushed[j] += along[j] * there.error
                for k in size:
                    mixed = (along[j] * there.slope[k] + along[k] * there.slope[j]) / 2
                    curve[j][k] += middle * there.curve[j][k] + mixed
                    for m in size:
                        cubic[j][k][m] += along[j] * there.curve[k][m]
        symmetric = [
            (cubic[j][k][m] + cubic[k][j][m] + cubic[m][j][k]) / 3 for j in size for k in size for m in size
        ]
        carried += radius * norm_up(pushed)
        residual = abs(value) + radius * norm_up(slope)
        residual += radius**2 * norm_up([v for row in curve for v in row]) + radius**3 * norm_up(symmetric)
        return own.error >= residual + carried and own.error > carried

    def ends(self, points: list[Vector]) -> tuple[Fraction, Fraction]:
        """Bernstein coefficients of the initial state's polynomial."""
        own = self.at(self.initial)
        half = [_product(own.slope, y) / 2 for y in points]
        bent = [[_product(row, y) for row in own.curve] for y in points]
        pairs = ((k, m) for k in range(len(points)) for m in range(k + 1))
        table = [half[k] + half[m] + _product(bent[k], points[m]) for k, m in pairs]
        return own.value + min(table) - own.error, own.value + max(table) + own.error

    def occupancy_ends(
        self, points: list[Vector], radius: Fraction, occupancy: Any
    ) -> tuple[Fraction, Fraction]:
        """Bounds from weights of the open states; see `tightrope.certificate.coupled_values`."""
        size = range(self.size)
        base: dict[int, Fraction] = {self.initial: Fraction(1)}
        along: dict[int, Vector] = {}
        start = ZERO
        for s, eta in zip(self.polynomial, (Fraction(float(v)) for v in occupancy), strict=True):
            base[s] = base.get(s, ZERO) - eta
            start += eta * self.reward.get(s, ZERO)
            for weight, e, to in self.steps[s]:
                middle, slope = self.expression[e]
                base[to] = base.get(to, ZERO) + eta * weight * middle
                old = along.get(to, [ZERO] * self.size)
                along[to] = [a + eta * weight * g for a, g in zip(old, slope, strict=True)]
        there = {s: self.at(s) for s in base}
        nothing = [ZERO] * self.size
        start += sum((b * there[s].value for s, b in base.items()), ZERO)
        line = [
            sum((along.get(s, nothing)[j] * w.value + base[s] * w.slope[j] for s, w in there.items()), ZERO)
            for j in size
        ]
        cross = [
            [sum((a[j] * there[s].slope[k] for s, a in along.items()), ZERO) for k in size] for j in size
        ]
        even = [[(cross[j][k] + cross[k][j]) / 2 for k in size] for j in size]
        doubt = {
            s: radius**2 * norm_up([v for row in w.curve for v in row]) + w.error for s, w in there.items()
        }
        half = [_product(line, y) / 2 for y in points]
        blur = [
            sum((abs(b + _product(along.get(s, nothing), y)) * doubt[s] for s, b in base.items()), ZERO) / 2
            for y in points
        ]
        bent = [[_product(row, y) for row in even] for y in points]
        pairs = [(k, m, _product(bent[k], points[m])) for k in range(len(points)) for m in range(k + 1)]
        low = min(half[k] + half[m] - blur[k] - blur[m] + v for k, m, v in pairs)
        high = max(half[k] + half[m] + blur[k] + blur[m] + v for k, m, v in pairs)
        return start + low, start + high


def _product(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), ZERO)
