"""What a certificate with observed costs may claim: nothing that a probability and a reward refute, both of
which the data allow.

The interval of the probability p is worked out from the counts, that of the reward h from the costs, each at
half of δ, by their definitions and in plain floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from adversary.archive import Forgery, rationals
from adversary.honest import Honest
from adversary.truth_learning import DELTA, SHRINK, WALK_SKETCH, Weights, interval_of, walk_at
from adversary.truth_values import Question, objective_of
from exact_reference import TinyModel

SCALES = 26


@cache
def costs_of(honest: Honest, weights: Weights | None) -> tuple[Fraction, Fraction]:
    """The least and the largest expected cost of a policy, or of the best one, over what the data allow."""
    forgery = Forgery.of(honest.certificate)
    seen = np.zeros(len(forgery["problem.expression"]))
    np.add.at(seen, forgery["problem.data.batch_transition"], forgery["problem.data.batch_count"])
    hits, misses = (float(seen[forgery["problem.expression"] == e].sum()) for e in (1, 2))
    rate = interval_of("anytime", int(hits), int(hits + misses), DELTA / 2)
    count = int(forgery["problem.data.costs.count"].sum())
    total, square = (float(sum(rationals(forgery[f"problem.data.costs.{of}"]))) for of in ("total", "square"))
    earned = _mean(count, total, square)
    rates = [_end(rate, hits / (hits + misses), way) for way in (-0.5, 0.4)]
    rewards = [_end(earned, total / count, way) for way in (-1.0, 3.0)]
    steps = [_steps(forgery, Fraction(p).limit_denominator(10**9), weights) for p in rates]
    values = [one * Fraction(h) for one in steps for h in rewards]
    return min(values), max(values)


def _end(inside: Callable[[float], bool], centre: float, way: float) -> float:
    """The farthest point towards centre + way that is inside, a little before it."""
    assert inside(centre)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(centre + middle * way) else (low, middle)
    return centre + low * (1 - SHRINK) * way


def _mean(count: int, total: float, square: float) -> Callable[[float], bool]:
    """Which means of costs within [0, 4] no supermartingale excludes: ψ without a bound for it."""

    def inside(q: float) -> bool:
        away, spread = total - count * q, square - 2 * q * total + count * q * q
        for k in range(SCALES):
            u, level = 0.5 ** (k + 1), math.log(4 * (k + 1) * (k + 2) / DELTA)
            penalty = (-math.log1p(-u) - u) / 16 * spread
            if abs(away) * u / 4 - penalty >= level:
                return False
        return 0 <= q <= 4

    return inside


def _steps(forgery: Forgery, p: Fraction, weights: Weights | None) -> Fraction:
    """Expected steps until the end."""
    probability = walk_at((p,))
    rows = tuple(
        tuple(tuple((t, probability[name], probability[name]) for t, name in one) for one in choices)
        for choices in WALK_SKETCH.choices
    )
    asked = forgery.copy()
    asked["problem.objective.reward"] = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    question = Question(TinyModel(rows), objective_of(asked), 0)
    return question.value(None if weights is None else [list(row) for row in weights])
