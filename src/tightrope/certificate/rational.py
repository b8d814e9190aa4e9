"""The game of a certificate in exact rationals: nature's boxes by sorting and pouring, the agent's options.

Of the sets, `point` is exact to the end (the expressions' values are rationals); `plain` doubles stand
for numbers within their margin, `interval` bounds are taken as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.certificate.certificate import Claim, Problem
from tightrope.certificate.sets import exact_values, nearest_probabilities

Number = Fraction | float
"""A rational, or ±inf."""


@dataclass(frozen=True)
class RationalRow:
    """The box of one choice."""

    successor: list[int]
    lower: list[Fraction]
    upper: list[Fraction]
    reward: Fraction

    def optimum(self, x: Callable[[int], Number], maximise: bool) -> Number:
        values = [x(s) for s in self.successor]
        infinite = [v == np.inf for v in values]
        upper = list(self.upper)
        if maximise:
            if any(bad and self.can_be_positive(i) for i, bad in enumerate(infinite)):
                return np.inf
        else:
            forced = any(bad and low > 0 for low, bad in zip(self.lower, infinite, strict=True))
            if forced or self.falls_short([not bad for bad in infinite]):
                return np.inf
            upper = [Fraction(0) if bad else u for u, bad in zip(upper, infinite, strict=True)]
        finite = [Fraction(0) if bad else Fraction(v) for v, bad in zip(values, infinite, strict=True)]
        weight = self.pour(finite, upper, maximise, [False] * len(finite))
        return sum((w * v for w, v in zip(weight, finite, strict=True)), Fraction(0))

    def pour(
        self, values: list[Fraction], upper: list[Fraction], maximise: bool, preferred: list[bool]
    ) -> list[Fraction]:
        """An optimal distribution, with most weight on `preferred` among the optimal ones."""
        weight = [min(low, up) for low, up in zip(self.lower, upper, strict=True)]
        left = 1 - sum(weight, Fraction(0))
        sign = 1 if maximise else -1
        for i in sorted(range(len(values)), key=lambda i: (sign * values[i], preferred[i]), reverse=True):
            extra = max(min(left, upper[i] - weight[i]), Fraction(0))
            weight[i] += extra
            left -= extra
        return weight

    def can_be_positive(self, i: int) -> bool:
        return self.upper[i] > 0 and (self.lower[i] > 0 or sum(self.lower, Fraction(0)) < 1)

    def every(self, good: list[bool]) -> bool:
        if any(g and low > 0 for g, low in zip(good, self.lower, strict=True)):
            return True
        return self.falls_short([not g for g in good])

    def can_stay(self, level: list[bool]) -> bool:
        if any(not inside and low > 0 for inside, low in zip(level, self.lower, strict=True)):
            return False
        return not self.falls_short(level)

    def falls_short(self, kept: list[bool]) -> bool:
        """The `kept` upper bounds sum to less than 1, and others are positive."""
        total = sum((u for u, keep in zip(self.upper, kept, strict=True) if keep), Fraction(0))
        return total < 1 and any(u > 0 and not keep for u, keep in zip(self.upper, kept, strict=True))


class RationalGame:
    """The problem in rationals."""

    def __init__(self, problem: Problem, claim: Claim):
        self.problem, self.claim = problem, claim
        self.rows = list(_rows(problem))
        self.choices = [
            range(int(a), int(b))
            for a, b in zip(problem.choice_start, problem.choice_start[1:], strict=False)
        ]
        self.discount = Fraction(1) if problem.discount is None else Fraction(problem.discount)

    def with_claim(self, claim: Claim) -> RationalGame:
        """The same game, another claim about it."""
        other = copy(self)
        other.claim = claim
        return other

    def backed(self, choice: int, x: Callable[[int], Number], upward: bool) -> Number:
        row = self.rows[choice]
        maximise = upward if self.problem.sets == "plain" else self.problem.nature == "MAX"
        value = row.optimum(x, maximise)
        return value if value == np.inf else row.reward + self.discount * Fraction(value)

    def options(self, state: int, own: bool) -> list[tuple[Fraction, list[int]]]:
        """[(weight, choices)]: one entry for an optimum over choices, several for a mixture."""
        if self.claim.policy_kind == "randomised":
            assert self.claim.weight is not None
            weights = [(Fraction(float(self.claim.weight[c])), [c]) for c in self.choices[state]]
            total = sum((w for w, _ in weights), Fraction(0))
            return [(w / total, c) for w, c in weights if w > 0]
        if self.claim.policy_kind == "fixed" or own:
            assert self.claim.policy is not None
            return [(Fraction(1), [int(self.claim.policy[state])])]
        return [(Fraction(1), list(self.choices[state]))]

    def value(self, state: int, x: Callable[[int], Number], upward: bool, own: bool) -> Number:
        total: Number = Fraction(0)
        for weight, choices in self.options(state, own):
            values = [self.backed(c, x, upward) for c in choices]
            best = max(values) if self.problem.agent == "MAX" else min(values)
            total = np.inf if np.inf in (best, total) else total + weight * Fraction(best)
        return total


def _rows(problem: Problem) -> Iterator[RationalRow]:
    transitions = len(problem.successor)
    if problem.sets == "interval":
        assert problem.lower is not None and problem.upper is not None
        bounds = [
            (Fraction(float(problem.lower[t])), Fraction(float(problem.upper[t]))) for t in range(transitions)
        ]
    elif problem.sets == "point":
        assert problem.expression is not None and problem.expressions is not None
        value = exact_values(problem.expressions)
        bounds = [(value[e], value[e]) for e in problem.expression.tolist()]
    else:
        bounds = [(Fraction(float(p)), Fraction(float(p))) for p in nearest_probabilities(problem)]
    for choice in range(len(problem.transition_start) - 1):
        start, end = int(problem.transition_start[choice]), int(problem.transition_start[choice + 1])
        margin = Fraction(end - start + 2, 2**52) if problem.sets == "plain" else Fraction(0)
        reward = Fraction(0) if problem.reward is None else Fraction(float(problem.reward[choice]))
        yield RationalRow(
            problem.successor[start:end].tolist(),
            [low * (1 - margin) for low, _ in bounds[start:end]],
            [min(high * (1 + margin), Fraction(1)) for _, high in bounds[start:end]],
            reward,
        )


def number(value: float) -> Number:
    return float(value) if np.isinf(value) else Fraction(float(value))
