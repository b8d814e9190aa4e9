"""What predictions of the past give back: the part of their price that a power below 1 does not owe.

With q_i the model's own prediction of event i, fixed before it, and p_θ the truth,

    P_λ = Π_i (q_i/p_θ)^λ / A_i(θ),     A_i(θ) = Σ over outcomes of q_i^λ·p_θ^(1−λ) ≤ 1,

is a martingale that begins at 1 for every λ in (0, 1), because A_i is the expectation of (q_i/p_θ)^λ given
the past and the choice. Without its denominator it is the supermartingale of Jensen's inequality, which loses
−log A_i, (1 − λ) times a Rényi divergence, at every event. S_λ(θ) = −Σ log A_i(θ) gives that back: near the
truth about 1 − λ of the price of not knowing the parameters, and more the further θ is from what was
predicted.

A_i is a concave function of the probabilities f of the outcomes, which are affine in the coordinates, so S is
convex, and for any positive numbers c in the place of f

    −S(θ) ≤ Σ_i [ log A_i(c) + Σ h_i·(f(θ) − c) ],     h_i = (1 − λ)·q_i^λ·c^(−λ)/A_i(c),   Σ h_i·c = 1 − λ:

a tangent, which is all that a lower bound over the domain takes. Predictions change only now and then, so
that sums over events are sums over periods with one prediction each. Leaving periods out lowers P_λ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.monitoring.best_fit import BestFit
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.statistics.outcomes import Outcomes

POWERS: FloatArray = np.array([6.0, 3.0, 1.0]) / 8.0
"""The powers λ; their products with counts are exact."""

FIRMNESS: FloatArray = POWERS * (2.0 - POWERS)
"""How firmly a power ties parameters to the past, beside the likelihood itself."""

MOST = 4_000_000
"""Predictions that are kept, periods times outcomes: of the oldest periods nothing is given back."""

_LEAST = 1e-12
_SPARE = 1e-14


@dataclass(frozen=True)
class Tangent:
    """−S(θ) ≤ level + Σ tilt·f(θ) over the expressions f; `bend` is minus its curvature, times f."""

    level: float
    tilt: FloatArray
    bend: FloatArray


class Compensation:
    """Predictions of periods, and how often each distribution that depends on parameters was drawn from."""

    def __init__(self, fit: BestFit, outcomes: Outcomes):
        depends = fit.informative[outcomes.expression] > 0.0
        kept = np.logical_or.reduceat(depends, outcomes.start[:-1])
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        chosen = np.flatnonzero(kept[outcomes.signature])
        self.expression = outcomes.expression[chosen].astype(np.int64)
        self.multiplicity = outcomes.multiplicity[chosen].astype(np.float64)
        self.start = np.r_[0, np.cumsum(outcomes.width[kept])].astype(np.int64)
        self.expressions = len(fit.functions)
        self._part = number[outcomes.signature[outcomes.of_transition]]
        self.visits = np.zeros(int(kept.sum()))
        self.closed = 0
        self.seen = np.zeros((0, len(self.visits)))
        self.roots = np.zeros((0, len(self.expression)))

    def add(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Count transitions of the period that is not over yet."""
        part = self._part[transition]
        kept = part >= 0
        np.add.at(self.visits, part[kept], count[kept].astype(np.float64))

    def close(self, log_chance: FloatArray) -> None:
        """End a period, all of which was predicted with these logarithms of the probabilities."""
        self.closed += 1
        most = max(MOST // max(len(self.expression), 1), 8)
        self.seen = np.concatenate([self.seen, self.visits[None, :]])[-most:]
        roots = np.exp(log_chance[self.expression] / 8.0)
        self.roots = np.concatenate([self.roots, roots[None, :]])[-most:]
        self.visits = np.zeros(len(self.visits))

    def given_back(self, chance: FloatArray) -> FloatArray:
        """S of the first 0, 1, 2, … periods at these probabilities per expression, for every power, about."""
        found = np.zeros((self.closed + 1, len(POWERS)))
        if len(self.seen):
            each = _give_back(*self._arrays(chance))
            found[self.closed + 1 - len(each) :] = np.cumsum(each, axis=0)
        return found

    def shares(self, closed: OffsetArray, share: FloatArray) -> FloatArray:
        """How much of each period there is, if share[j] per power is of the first closed[j] periods."""
        first = self.closed - len(self.seen)
        within = np.arange(first, self.closed)[:, None] < closed[None, :]
        found: FloatArray = within.astype(np.float64) @ share
        return found

    def tangent(self, chance: FloatArray, share: FloatArray) -> Tangent:
        """The tangent of Σ share·S at these probabilities per expression, on the safe side."""
        tilt, bend = np.zeros(self.expressions), np.zeros(self.expressions)
        if not len(self.seen) or not len(self.expression):
            return Tangent(0.0, tilt, bend)
        level, size, slope, curve = _tangent(*self._arrays(chance), share)
        np.add.at(tilt, self.expression, slope)
        np.add.at(bend, self.expression, curve)
        level += _SPARE * size + (_SPARE + 2.0**-52 * share.size * len(self.visits)) * float(tilt.sum())
        return Tangent(level, tilt, bend)

    def _arrays(
        self, chance: FloatArray
    ) -> tuple[FloatArray, FloatArray, OffsetArray, FloatArray, FloatArray]:
        root = np.maximum(chance[self.expression], _LEAST) ** 0.125
        return self.seen, self.roots, self.start, self.multiplicity, root

    def state(self) -> dict[str, Any]:
        return {
            "past_closed": np.array(self.closed),
            "past_visits": self.visits.copy(),
            "past_seen": self.seen.copy(),
            "past_roots": self.roots.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.closed = int(state["past_closed"])
        for name in ("visits", "seen", "roots"):
            setattr(self, name, np.array(state[f"past_{name}"], dtype=np.float64))


@kernel
def _averages(
    roots: FloatArray, multiplicity: FloatArray, root: FloatArray, first: int, last: int
) -> tuple[float, float, float]:
    """Σ q^λ·c^(1−λ) over the outcomes first to last, from the eighth roots of q and c, for every power."""
    firm, middle, loose = 0.0, 0.0, 0.0
    for o in range(first, last):
        q, c = roots[o], root[o]
        square = c * c
        cube = q * q * q
        firm += multiplicity[o] * cube * cube * square
        middle += multiplicity[o] * cube * square * square * c
        loose += multiplicity[o] * q * square * square * square * c
    return firm, middle, loose


@kernel
def _give_back(
    seen: FloatArray, roots: FloatArray, start: OffsetArray, multiplicity: FloatArray, root: FloatArray
) -> FloatArray:
    found = np.zeros((len(seen), 3))
    for e in range(len(seen)):
        for s in range(len(start) - 1):
            visits = seen[e, s]
            if visits > 0.0:
                averages = _averages(roots[e], multiplicity, root, start[s], start[s + 1])
                for k in range(3):
                    if averages[k] > 0.0:
                        found[e, k] -= visits * np.log(averages[k])
    return found


@kernel
def _tangent(
    seen: FloatArray,
    roots: FloatArray,
    start: OffsetArray,
    multiplicity: FloatArray,
    root: FloatArray,
    share: FloatArray,
) -> tuple[float, float, FloatArray, FloatArray]:
    """The level without spare, what its rounding is in proportion to, and tilt and bend per outcome."""
    tilt, bend = np.zeros(len(root)), np.zeros(len(root))
    level, size = 0.0, 0.0
    slope = np.zeros(3)
    for e in range(len(seen)):
        if share[e, 0] + share[e, 1] + share[e, 2] == 0.0:
            continue
        for s in range(len(start) - 1):
            visits = seen[e, s]
            if visits == 0.0:
                continue
            averages = _averages(roots[e], multiplicity, root, start[s], start[s + 1])
            for k in range(3):
                weight = share[e, k] * visits
                slope[k] = 0.0
                if weight > 0.0 and averages[k] > 0.0:
                    logarithm = np.log(averages[k])
                    level += weight * (logarithm - (1.0 - POWERS[k]))
                    size += weight * (2.0 + abs(logarithm) + 2.0 * (start[s + 1] - start[s]))
                    slope[k] = weight * (1.0 - POWERS[k]) / averages[k]
            for o in range(start[s], start[s + 1]):
                ratio = roots[e, o] / root[o]
                cube = ratio * ratio * ratio
                firm = slope[0] * cube * cube
                middle = slope[1] * cube
                loose = slope[2] * ratio
                tilt[o] += multiplicity[o] * (firm + middle + loose)
                bend[o] += multiplicity[o] * (POWERS[0] * firm + POWERS[1] * middle + POWERS[2] * loose)
    return level, size, tilt, bend
