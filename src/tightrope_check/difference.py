"""The difference of two policies' values: from the two intervals, and by coupled proofs about both.

Both claims are proved before. With the true coordinates x in the region both values are those at the same x,
so a proof about V_1(x) − V_2(x) holds where the region does (`tightrope_check.coupled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite

import numpy as np

from tightrope_check.arrays import OffsetArray
from tightrope_check.coupled import CoupledCheck, CoupledHints, PolicyChain, Side, ValueEnds, coupled_ends
from tightrope_check.learned import Learned
from tightrope_check.numbers import Arithmetic
from tightrope_check.problem import Certificate
from tightrope_check.verdict import Check, Contradiction


class DifferenceCheck(CoupledCheck):
    """The links of a proof about the difference of two policies' values.

    States are those of both policies' chains side by side, the second's numbered after the first's, whose
    values are negated. The two chains do not meet, so the models of both are enclosed as before, steps are
    made on both at once, each by what its policy does there, and the sum of V at the two initial states is
    the difference. Where the question is `complement`, 1 − V_1 − (1 − V_2) = V_2 − V_1: they change places.
    """

    def __init__(self, link: Learned, hints: CoupledHints):
        pair, turned = link.certificate.claims[hints.claim].pair, link.problem.objective.complement
        if pair is None:
            raise ValueError("a coupled proof of a difference about no pair")
        super().__init__(link, hints, pair[:: -1 if turned else 1].tolist())

    def chain(self, n: Arithmetic, states: OffsetArray, sides: Sequence[Side] | None = None) -> PolicyChain:
        """The policies' chains from these states; `sides` where they are not what they are at last."""
        count = self.graph.states
        parts = [
            PolicyChain.of(n, *side, states[states // count == number] - number * count)
            for number, side in enumerate(sides or self.sides)
        ]
        return _beside(parts[0], parts[1], states, count)


def _beside(one: PolicyChain, two: PolicyChain, states: OffsetArray, count: int) -> PolicyChain:
    """Two chains on the same states, so many, side by side: the second's are numbered behind the first's, and
    what it earns is negated."""
    shifted = replace(
        two, label=two.label + len(one.linear), successor=two.successor + count, reward=-two.reward
    )
    names = ("weight", "label", "successor", "linear", "constant", "reward", "reward_size")
    both = (np.concatenate([getattr(part, name) for part in (one, shifted)]) for name in names)
    return PolicyChain(one.n, states, np.concatenate([one.start, one.start[-1] + two.start[1:]]), *both)


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
