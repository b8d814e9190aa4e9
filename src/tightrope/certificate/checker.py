"""The independent checker: does a certificate prove its claims?

It takes the problem in the certificate, derives from it alone all that the proof rests on, and uses the hints
for nothing but finding numbers. The theorem: if all checks pass, then for every claim

    lower ≤ value at the initial state ≤ upper

where the value is that of the problem (`tightrope.certificate.problem`): at the point, for every choice of
nature's within the intervals, for every instantiation in the domain, or with data for the true instantiation,
with probability at least 1 − δ over the data, under what `assumes` lists. Why stands in
`tightrope.certificate.game.theorem` for values, and for the way from data to sets in
`tightrope.certificate.learned`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.certificate.claim import Certificate, Claim, checked
from tightrope.certificate.game.nature import Boxes, Vector
from tightrope.certificate.game.sets import boxes_of
from tightrope.certificate.game.theorem import prove
from tightrope.certificate.learned import Learned
from tightrope.certificate.numbers import LONGDOUBLE, Arithmetic, OutOfRange, as_fraction
from tightrope.certificate.problem import Problem
from tightrope.certificate.statistics.outcomes import Outcomes
from tightrope.certificate.verdict import Check, Verdict
from tightrope.errors import InputError

MOST_EXACT_WORK = 20_000_000
"""Transitions that --exact looks at, steps included."""

_End = Fraction | float
"""A bound at the initial state, before `complement`; a float is +∞."""


def check(certificate: Certificate, n: Arithmetic = LONGDOUBLE) -> Verdict:
    """All checks. An `InputError` where a field does not hold what it should."""
    _require_small(checked(certificate).problem, n)
    run = _Run(certificate, n)
    with np.errstate(all="ignore"):
        try:
            run.all()
        except OutOfRange:
            run.checks.append(Check("range", False, "a number left the range of the arithmetic"))
        except (ValueError, ArithmeticError, LookupError) as error:
            run.checks.append(Check("hints", False, f"they do not fit the problem: {error}"))
    values = {claim.name: (claim.lower, claim.upper) for claim in certificate.claims}
    kind = "value" if certificate.learned is None else "learning"
    return Verdict(tuple(run.checks), values, kind, tuple(run.assumes), run.nominal, unbound(certificate))


def _require_small(problem: Problem, n: Arithmetic) -> None:
    steps = max(1, problem.objective.steps or 0, problem.objective.lower_steps)
    if n.exact and steps * problem.graph.transitions > MOST_EXACT_WORK:
        raise InputError(
            f"{problem.graph.transitions:,} transitions and {steps:,} steps are too many for rationals",
            hint="leave `exact=True` out: the rounding of the check is on the safe side",
        )


class _Run:
    """One check of a certificate: what has been found so far."""

    def __init__(self, certificate: Certificate, n: Arithmetic):
        self.certificate, self.problem, self.n = certificate, certificate.problem, n
        self.checks: list[Check] = []
        self.assumes: list[str] = []
        self.nominal = False

    def all(self) -> None:
        self.assumes = assumed_of_values(self.problem)
        learned, boxes = None, None
        if self.problem.law == "domain":
            learned = Learned(self.certificate, self.n)
            self.checks += learned.checks()
            self.assumes, self.nominal = learned.assumes()
        else:
            boxes, proper_sets = boxes_of(self.problem, self.n)
            self.checks += [proper_sets, *_sums_at_the_point(self.problem)]
        for number in range(len(self.certificate.claims)):
            if all(one.passed for one in self.checks):
                self._claim(number, boxes, learned)

    def _claim(self, number: int, boxes: Boxes | None, learned: Learned | None) -> None:
        claim, hints = self.certificate.claims[number], self.certificate.values[number]
        found: list[Check] = []
        ends: list[_End] = []
        for upward in (False, True):
            if learned is not None:
                boxes = learned.boxes(number, upward)
            assert boxes is not None
            proofs, bound = prove(self.problem, boxes, claim, hints, upward)
            found += proofs
            ends.append(_at(bound, self.problem.graph.initial))
        if learned is not None and all(one.passed for one in found):
            coupled, (ends[0], ends[1]) = learned.coupled(number, (ends[0], ends[1]))
            found += coupled
        found.append(_claimed(claim, ends[0], ends[1], self.problem.objective.complement))
        self.checks += [replace(one, name=f"{claim.name}: {one.name}") for one in found]


def _sums_at_the_point(problem: Problem) -> list[Check]:
    """Are the probabilities of every choice at the point distributions, in rationals?"""
    if problem.theta is None or problem.table is None:
        return []
    value = problem.table.values(problem.theta)
    groups = Outcomes.of(problem, np.zeros(problem.graph.transitions, dtype=np.int64))
    terms = [
        m * value[e] for e, m in zip(groups.expression.tolist(), groups.multiplicity.tolist(), strict=True)
    ]
    wrong = [sum(terms[a:b]) != 1 for a, b in pairwise(groups.start.tolist())]
    name = "probabilities of every choice sum to 1"
    return [Check.everywhere(name, np.array(wrong, dtype=np.bool_), "kind of choice")]


def assumed_of_values(problem: Problem) -> list[str]:
    """What a value of this problem rests on beside the model, in words."""
    if problem.assumed_support is None:
        return []
    return [f"a transition that can happen has at least probability {problem.assumed_support:g}"]


def _at(vector: Vector, state: int) -> _End:
    return float("inf") if vector.infinite[state] else as_fraction(vector.number[state])


def _claimed(claim: Claim, low: _End, high: _End, complement: bool) -> Check:
    """Is what the claim says no more than what was proved? Compared exactly."""
    if complement:
        low, high = 1 - high, 1 - low
    failed = [end for end, fails in (("lower", claim.lower > low), ("upper", claim.upper < high)) if fails]
    words = "the bounds at the initial state are those claimed, or tighter"
    return Check(
        "the claim", not failed, f"the {' and the '.join(failed)} end is not proved" if failed else words
    )


def unbound(certificate: Certificate) -> dict[str, bool | None]:
    """What a certificate could be tied to, and is not yet; None where it speaks of no such thing."""
    data = certificate.problem.data
    return {
        "model": False,
        "property": False,
        "data": None if data is None or data.method == "domain" else False,
        "policy": None if all(claim.policy == "free" for claim in certificate.claims) else False,
    }
