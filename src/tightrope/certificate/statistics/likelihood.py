"""The likelihood region: evidence from batches that earlier batches predicted, and its tangent cuts.

With probability at least 1 − δ the true parameters satisfy ℓ(θ) = Σ K_f·log f(θ) ≥ T, K_f being the counts
after the pilot and T = Σ_b ℓ_b(plug-in of b) − log(1/δ) − price (Ville's inequality). Each plug-in has to be
known before its batch, so it is computed here, from the batches before it and nothing else: no number of the
file enters. It is the smoothed maximum of their likelihood, found in float64; where that ends up matters for
the width of the region, never for its confidence. T is then worked out at the plug-in as it is, rounded down.
A plug-in outside of the domain, or at which an expression is negative, proves nothing.

*Pilot and price* follow from the sampling design. Where the amount of data was fixed in advance, or a number
of episodes was planned before the first one, the pilot is the batches within the first tenth of the plan;
otherwise pilots of 10·j batches, j = 0, 1, …, share δ at a price of log((j+1)(j+2)), and the one that covers
at most a tenth may be chosen after looking.

*Cuts.* log f ≤ log c + f/c − 1 for every c > 0, so with c_f = K_f/t_f any t_f > 0 give a valid row:

    Σ t_f·f(x) ≥ T − Σ K_f·log(K_f/t_f) + Σ K_f.

t_f = K_f/f(point) makes it the tangent at a point of the file; only its arithmetic matters.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.certificate.problem import Data, Polynomial
from tightrope.certificate.region.coordinates import Space
from tightrope.certificate.region.polynomials import is_constant
from tightrope.certificate.statistics.intervals import log_below
from tightrope.certificate.statistics.outcomes import Ints, totals
from tightrope.numerics.arrays import FloatArray

MOST_WORK = 10**8
_SMOOTHING = 0.5
_STEPS = 60
_PILOT_SHARE, _PILOT_STEP = 0.1, 10


def pilot_of(data: Data, sizes: list[int]) -> tuple[int, int | None]:
    """(batches of the pilot, j of the price): j is None where a plan decides on the pilot."""
    if data.design == "generative-fixed":
        return _within(np.cumsum(sizes)), None
    if data.design == "trajectories" and data.episodes is not None:
        ends = _planned_ends(data.episodes)
        if len(ends) == len(sizes):
            return _within(np.array(ends)), None
    if data.planned is not None and data.episodes is not None:
        ends = _planned_ends(data.planned)
        if len(_planned_ends(data.episodes)) == len(sizes):
            return min(_within(np.array(ends)), len(sizes)), None
    number = _within(np.cumsum(sizes)) // _PILOT_STEP
    return number * _PILOT_STEP, number


def _planned_ends(episodes: int) -> list[int]:
    """Where batches of so many episodes end: each end is 5/4 of the one before, at least one more."""
    ends = [0]
    while ends[-1] < episodes:
        ends.append(min(episodes, max(ends[-1] + 1, ends[-1] * 5 // 4)))
    return ends[1:]


def _within(ends: Any) -> int:
    return int(np.searchsorted(ends, _PILOT_SHARE * ends[-1], side="right")) if len(ends) else 0


class Likelihood:
    """T, the weights K_f, and the tangents at the given points."""

    def __init__(self, n: Arithmetic, space: Space, polynomials: list[Polynomial], data: Data):
        self.n, self.space, self.data, self.size = n, space, data, len(polynomials)
        self.unknown = np.array([e for e, p in enumerate(polynomials) if not is_constant(p)], dtype=np.int64)
        forms = [space.affine(polynomials[e]) for e in self.unknown.tolist()]
        self.forms = forms
        self.linear = n.array([a for a, _ in forms]).reshape(len(forms), space.size)
        self.constant = n.array([c for _, c in forms])
        self.points = np.zeros((0, space.size))

    def learn(self, expression: Ints) -> None:
        """Predict every batch after the pilot; `expression` is that of each transition."""
        n, data, unknown = self.n, self.data, self.unknown
        if data.batches * (self.linear.size + 1) > MOST_WORK:
            raise ValueError("there are more batches and expressions than this program checks")
        sizes = [int(data.batch_count[a:b].sum()) for a, b in pairwise(data.batch_start.tolist())]
        self.pilot, number = pilot_of(data, sizes)
        self.planned = number is None and data.design != "adaptive"
        terms: list[Numbers | None] = [n.zeros(1) + log_below(n, Fraction(data.delta))]
        if number is not None:
            terms.append(-n.log_up(n.array([(number + 1) * (number + 2)])))
        maximiser = Maximiser(self.space, n.floats(self.linear), n.floats(self.constant))
        so_far = totals(data, expression, self.size, 0, self.pilot)[unknown]
        weight = np.zeros(len(unknown), dtype=np.int64)
        self.plug_ins: list[FloatArray] = []
        for number in range(self.pilot, data.batches):
            batch = totals(data, expression, self.size, number, number + 1)[unknown]
            if batch.any():
                self.plug_ins.append(maximiser.estimate(so_far.astype(np.float64)))
                terms.append(self._score(self.plug_ins[-1], batch))
                so_far, weight = so_far + batch, weight + batch
        self.used = np.flatnonzero(weight)
        self.weight = weight[self.used]
        known = [term for term in terms if term is not None]
        self.threshold = -self._sum_up(-np.concatenate(known)) if len(known) == len(terms) else None

    def _score(self, plug_in: FloatArray, seen: Ints) -> Numbers | None:
        """The terms of a batch's log-likelihood at its plug-in, rounded down; None without a bound."""
        n, met = self.n, np.flatnonzero(seen)
        exact = [Fraction(float(value)) for value in plug_in]
        if not self.space.contains(exact):
            return None
        lifted = self.space.lifted(exact)
        x = n.array(lifted)
        size = np.abs(self.linear) @ np.abs(x) + np.abs(self.constant)
        value = self.linear @ x + self.constant - (len(x) + 8) * n.epsilon * size
        for e in np.flatnonzero(value < 0).tolist():  # all are probabilities there, seen or not
            linear, constant = self.forms[e]
            if constant + sum((a * v for a, v in zip(linear, lifted, strict=True)), Fraction(0)) < 0:
                return None
        value = value[met]
        return None if np.any(value <= 0) else n.trim(seen[met] * n.log_down(value), False)

    def row(self, index: int, part: int) -> tuple[list[Fraction], Fraction]:
        """−Σ t·f_linear·x ≤ Σ K·log(K/t) − Σ K − T + Σ t·f_constant."""
        n, linear, constant = self.n, self.linear[self.used], self.constant[self.used]
        if not 0 <= index < len(self.points) or part != 0 or self.threshold is None:
            raise ValueError("no such cut")
        chosen = n.floats(linear) @ self.points[index] + n.floats(constant)
        if not np.all(chosen > 0):
            raise ValueError("a cut at a point where something seen has no probability")
        tilt = n.array(self.weight / chosen)
        logs = self.weight * n.log_up(n.array(self.weight) / tilt)
        lower, upper = self.space.start_box()
        reach = n.array([max(abs(a), abs(b)) for a, b in zip(lower, upper, strict=True)])
        size = (tilt @ np.abs(linear)) @ reach + tilt @ np.abs(constant)
        total = n.array([int(self.weight.sum())])[0]
        bound = self._sum_up(logs) - self.threshold - total + tilt @ constant
        bound = bound + (len(tilt) + 16) * n.epsilon * (size + abs(bound) + abs(self.threshold) + 2 * total)
        return [-value for value in n.fractions(tilt @ linear)], n.fractions(np.array([bound]))[0]

    def _sum_up(self, terms: Numbers) -> Any:
        """An upper bound on a sum of terms that are off by a few units each."""
        return terms.sum() + (len(terms) + 16) * self.n.epsilon * np.abs(terms).sum()


class Maximiser:
    """Maximises Σ K_f·log f(t) + ½·Σ log(room to each face of the domain) over the free parameters t.

    Damped Newton steps from the analytic centre of the domain, and a last one where the next would change
    nothing any more; all in float64.
    """

    def __init__(self, space: Space, linear: FloatArray, constant: FloatArray):
        size = len(space.free)
        rows = [row for row in space.domain_rows() if row is not None and any(row[0][:size])]
        self.products = space.products
        self.linear, self.constant = linear, constant
        self.faces = np.array([[float(a) for a in row[:size]] for row, _ in rows]).reshape(-1, size)
        self.bounds = np.array([float(b) for _, b in rows])
        lower, upper = space.start_box()
        middle = [float(low + high) / 2 for low, high in zip(lower[:size], upper[:size], strict=True)]
        self.centre = self._interior(np.array(middle))
        self.centre = self.estimate(np.zeros(len(constant)))

    def estimate(self, weight: FloatArray) -> FloatArray:
        used = np.flatnonzero(weight > 0)
        return self._climb(self.centre.copy(), self.linear[used], self.constant[used], weight[used])

    def _interior(self, middle: FloatArray) -> FloatArray:
        """A point off all faces: push down, from where it is large, a slack that all faces are given."""
        scale = np.maximum(np.abs(self.faces).max(axis=1, initial=0.0), 1e-300)
        slack = float(((self.faces @ middle - self.bounds) / scale).max(initial=-1.0))
        if slack < 0:
            return middle
        helper = object.__new__(Maximiser)
        helper.products, helper.bounds = [], self.bounds
        helper.faces = np.column_stack([self.faces, -scale])
        push = np.append(np.zeros(len(middle)), -1.0)[None, :]
        weight = np.array([1e6 * len(scale)])
        found = helper._climb(np.append(middle, 1.01 * slack + 1), push, np.array([2 * slack + 3]), weight)
        return found[:-1]

    def _climb(
        self, t: FloatArray, linear: FloatArray, constant: FloatArray, count: FloatArray
    ) -> FloatArray:
        value = self._objective(t, linear, constant, count)
        for _ in range(_STEPS if np.isfinite(value) else 0):
            x, jacobian = self._lifted(t)
            slope, probability = linear @ jacobian, linear @ x + constant
            room = self.bounds - self.faces @ t
            gradient = slope.T @ (count / probability) - _SMOOTHING * (self.faces.T @ (1.0 / room))
            bend = (slope * (count / probability**2)[:, None]).T @ slope
            bend += _SMOOTHING * (self.faces * (1.0 / room**2)[:, None]).T @ self.faces
            step = np.linalg.lstsq(bend, gradient, rcond=None)[0]
            decrement = float(gradient @ step)
            length = 1.0
            while length > 1e-12:
                trial = t + length * step
                reached = self._objective(trial, linear, constant, count)
                if reached >= value + 0.1 * length * decrement or (decrement <= 1e-8 and reached > -np.inf):
                    break
                length *= 0.5
            else:
                break
            t, value = trial, reached
            if not decrement > 1e-8:
                break
        return t

    def _lifted(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(all coordinates, their derivatives)."""
        values, rows = list(t), list(np.eye(len(t)))
        for left, right in self.products:
            rows.append(rows[left] * values[right] + rows[right] * values[left])
            values.append(values[left] * values[right])
        return np.array(values), np.array(rows)

    def _objective(self, t: FloatArray, linear: FloatArray, constant: FloatArray, count: FloatArray) -> float:
        room = self.bounds - self.faces @ t
        probability = linear @ self._lifted(t)[0] + constant
        if np.any(room <= 1e-13 * (1.0 + np.abs(self.bounds))) or np.any(probability <= 0.0):
            return -np.inf
        return float(count @ np.log(probability) + _SMOOTHING * np.log(room).sum())
