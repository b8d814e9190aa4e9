"""Values of tiny random models in exact rationals, and how bounds are compared with them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from exact_reference import INFINITE, TinyModel, random_model
from tightrope.model.objective import ObjectiveKind
from tightrope.solver import Solution

KINDS = (ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD, ObjectiveKind.TOTAL, ObjectiveKind.DISCOUNTED)


def exact(value: float) -> Fraction:
    return INFINITE if np.isinf(value) else Fraction(float(value))


def assert_encloses(solution: Solution, values: list[Fraction], note: object = None) -> None:
    for s, value in enumerate(values):
        assert exact(solution.lower[s]) <= value <= exact(solution.upper[s]), (note, s, float(value))


def draw(seed: int) -> tuple[np.random.Generator, TinyModel]:
    rng = np.random.default_rng(seed)
    states, intervals = int(rng.integers(2, 5)), bool(rng.random() < 0.8)
    return rng, random_model(rng, states, intervals=intervals, denominator=int(rng.choice([8, 10])))
