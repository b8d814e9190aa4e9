"""Tangent cuts of the likelihood region, from batches and the plug-ins that predicted them.

With probability at least 1 − δ the true parameters satisfy ℓ(θ) = Σ K_f·log f(θ) ≥ T, K_f being the counts
after the pilot and T = Σ_b ℓ_b(plug-in of b) − log(1/δ) − price (Ville's inequality; the plug-in of a batch
has to be known before the batch). The price is 0 where the amount of data was fixed in advance, and
log((j+1)(j+2)) where pilots of 10·j batches, j = 0, 1, …, share δ. T is computed here, rounded down. A
plug-in must lie in the domain, where expressions are probabilities.

log f ≤ log c + f/c − 1 for every c > 0, so with c_f = K_f/t_f any t_f > 0 give a valid row:

    Σ t_f·f(x) ≥ T − Σ K_f·log(K_f/t_f) + Σ K_f.

t_f = K_f/f(point) makes it the tangent at a point; only its arithmetic matters, not where the point lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tightrope.certificate.inner import EPSILON, Extended, as_fraction
from tightrope.certificate.learning import Data, Table
from tightrope.certificate.polynomials import Polynomial, is_constant
from tightrope.certificate.space import Space
from tightrope.certificate.support_check import extended


class LikelihoodCuts:
    """The evidence of a certificate and its tangents."""

    def __init__(self, data: Data, space: Space, polynomials: Sequence[Polynomial], cut_point: Table):
        assert data.batch_counts is not None and data.plug_in is not None
        self.space, self.points = space, cut_point
        unknown = np.array([not is_constant(p) for p in polynomials])
        later = data.batch_counts[data.pilot :]
        weight = later.sum(axis=0)
        self.used = np.flatnonzero(unknown & (weight > 0))
        self.weight = weight[self.used]
        forms = [space.affine(polynomials[e]) for e in self.used.tolist()]
        self.linear = np.array([extended(a) for a, _ in forms], dtype=np.longdouble)
        self.linear = self.linear.reshape(len(self.used), space.size)
        self.constant = extended([c for _, c in forms])
        self.reach = extended([max(abs(a), abs(b)) for a, b in zip(*space.start_box(), strict=True)])
        self.threshold = self._threshold(data, later[:, self.used], data.plug_in)

    def row(self, index: int, part: int) -> tuple[list[Fraction], Fraction]:
        """−Σ t·f_linear·x ≤ Σ K·log(K/t) − Σ K − T + Σ t·f_constant."""
        if not 0 <= index < len(self.points) or part != 0:
            raise ValueError("no such cut")
        chosen = self.linear @ self.points[index].astype(np.longdouble) + self.constant
        if np.any(~(chosen > 0)):
            raise ValueError("a cut at a point where something seen has no probability")
        tilt = (self.weight / chosen).astype(np.float64)
        logs = self.weight * np.log(self.weight.astype(np.longdouble) / tilt)
        level = _sum_up(logs) - self.threshold
        level = level + 4 * EPSILON * np.abs(level)
        gradient = tilt @ self.linear
        shift = tilt @ self.constant
        # Rounding of both sums, over the whole domain.
        size = (np.abs(tilt) @ np.abs(self.linear)) @ self.reach + np.abs(tilt) @ np.abs(self.constant)
        bound = level - self.weight.sum() + shift
        bound = bound + (len(tilt) + 8) * EPSILON * (size + np.abs(bound) + self.weight.sum())
        return [-as_fraction(value) for value in gradient], as_fraction(bound)

    def _threshold(self, data: Data, later: Table, plug_in: Table) -> np.longdouble:
        """T, rounded down; −∞ where something seen had no probability at its plug-in."""
        terms: list[Extended] = [np.array([np.log(np.longdouble(data.delta))])]
        if not data.fixed_amount:
            if data.pilot % 10:
                raise ValueError("a pilot that is not a multiple of 10 batches")
            step = data.pilot // 10
            terms.append(np.array([-np.log(np.longdouble((step + 1) * (step + 2)))]))
        if plug_in.shape != (len(later), len(self.space.free)):
            raise ValueError("plug-ins and batches do not fit together")
        for seen, free in zip(later, plug_in, strict=True):
            met = np.flatnonzero(seen)
            if len(met) == 0:
                continue
            exact = [Fraction(float(value)) for value in free]
            if not self.space.contains(exact):
                raise ValueError("a plug-in lies outside the domain")
            x = extended(self.space.lifted(exact))
            linear = self.linear[met]
            size = np.abs(linear) @ np.abs(x) + np.abs(self.constant[met])
            value = linear @ x + self.constant[met] - (len(x) + 6) * EPSILON * size
            if np.any(value <= 0):
                return np.longdouble(-np.inf)
            terms.append(seen[met] * np.log(value))
        return -_sum_up(-np.concatenate(terms))


def _sum_up(terms: Extended) -> np.longdouble:
    """An upper bound on a sum of terms that are off by a few units each."""
    total = terms.sum()
    return np.longdouble(total + (len(terms) + 16) * EPSILON * np.abs(terms).sum())
