"""The difference of two policies' values: from the two intervals, and by coupled proofs about both at once.

Both claims are proved before. With the true coordinates x in the region both values are those at the same x,
so a proof about V_1(x) − V_2(x) holds where the region does (`tightrope_check.coupled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite

import numpy as np

from tightrope_check.arrays import OffsetArray
from tightrope_check.coupled import (
    Cells,
    CoupledCheck,
    CoupledHints,
    PolicyChain,
    Side,
    ValueEnds,
    coupled_ends,
)
from tightrope_check.learned import Learned
from tightrope_check.numbers import Arithmetic
from tightrope_check.problem import Certificate, ValueHints
from tightrope_check.verdict import Check, Contradiction


class DifferenceCheck(CoupledCheck):
    """The links of a proof about the difference of two policies' values.

    States are those of both policies' chains side by side, the second's numbered after the first's, whose
    values are negated: rewards, decided values, and so V itself. The two chains do not meet, so the models of
    both are enclosed as before, steps are made on both at once, each by what its policy does there, and the
    sum of V at the two initial states is the difference. Where the question is `complement`,
    1 − V_1 − (1 − V_2) = V_2 − V_1: the two change places.
    """

    def __init__(self, link: Learned, hints: CoupledHints):
        pair = link.certificate.claims[hints.claim].pair
        objective, states = link.problem.objective, link.problem.graph.states
        if pair is None or link.hints.region is None:
            raise ValueError("a coupled proof of a difference over no region")
        if objective.earned is not None or link.problem.denominator is not None:
            raise ValueError("a coupled proof about rewards with parameters, or quotients")
        self.hints, self.objective, self.graph = hints, objective, link.problem.graph
        self.n, self.steps, self.state = link.n, objective.lower_steps, hints.state
        self.cells = Cells(hints, link.projection.writer, link.projection.box)
        if hints.point.shape[1] != link.space.size or hints.state.max(initial=0) >= 2 * states:
            raise ValueError("a coupled proof does not fit the coordinates or the states")
        by_steps = objective.steps is not None
        if len(hints.value) != (0 if by_steps else len(hints.node)):
            raise ValueError("models do not fit the proofs")
        self.claim, self.initial = link.certificate.claims[hints.claim], [self.graph.initial]
        self.initial.append(states + self.graph.initial)
        sides = [int(one) for one in (pair[::-1] if objective.complement else pair)]
        self.sides = [(link.space, link.problem, link.certificate.claims[side]) for side in sides]
        self.signs = [1, -1]
        finite, decided, value = [], [], []
        for side, sign in zip(sides, self.signs, strict=True):
            if by_steps:
                reached = (
                    np.zeros(states) if objective.target is None else objective.target.astype(np.float64)
                )
                known = ValueHints(lower=reached, upper=reached)
            else:
                known = link.certificate.values[side]
            assert known.lower is not None and known.upper is not None
            finite.append(np.isfinite(known.upper))
            decided.append((known.lower == known.upper) & finite[-1])
            value.append(sign * np.where(decided[-1], known.lower, 0.0))
        self.finite, self.decided, self.value = (np.concatenate(part) for part in (finite, decided, value))
        if by_steps:
            self.steps, self.state = objective.steps or 0, hints.state[:0]
        self.begin()

    def chain(self, n: Arithmetic, states: OffsetArray, sides: Sequence[Side] | None = None) -> PolicyChain:
        count, (first, second) = self.graph.states, sides or self.sides
        one = PolicyChain.of(n, *first, states[states < count])
        two = PolicyChain.of(n, *second, states[states >= count] - count)
        return PolicyChain(
            n,
            states,
            np.concatenate([one.start, one.start[-1] + two.start[1:]]),
            np.concatenate([one.weight, two.weight]),
            np.concatenate([one.label, two.label + len(one.linear)]),
            np.concatenate([one.successor, two.successor + count]),
            np.concatenate([one.linear, two.linear]),
            np.concatenate([one.constant, two.constant]),
            np.concatenate([one.reward, -two.reward]),
            np.concatenate([one.reward_size, two.reward_size]),
        )

    @property
    def wanted(self) -> ValueEnds:
        low, high = (Fraction(end) if isfinite(end) else end for end in (self.claim.lower, self.claim.upper))
        return low, high


def coupled_check(link: Learned, hints: CoupledHints) -> CoupledCheck:
    """The links of a proof about a policy, or about a pair of them."""
    pair = link.certificate.claims[hints.claim].pair
    return CoupledCheck(link, hints) if pair is None else DifferenceCheck(link, hints)


def difference_ends(
    certificate: Certificate, number: int, link: Learned | None
) -> tuple[list[Check], ValueEnds]:
    """What is proved of claim `number`, a difference of two claims that were proved before."""
    pair = certificate.claims[number].pair
    assert pair is not None
    one, two = (certificate.claims[i] for i in pair)
    ends: ValueEnds = (
        Fraction(one.lower) - Fraction(two.upper) if isfinite(one.lower) and isfinite(two.upper) else -inf,
        Fraction(one.upper) - Fraction(two.lower) if isfinite(one.upper) and isfinite(two.lower) else inf,
    )
    checks: list[Check] = []
    if link is not None:
        checks, ends = coupled_ends(link, number, ends, DifferenceCheck)
    if ends[0] > ends[1] and all(one.passed for one in checks):
        raise Contradiction("no value is left for the difference")
    return checks, ends
