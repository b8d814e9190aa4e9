"""The independent checker: does a certificate prove its claims?

It takes the problem in the certificate, derives from it alone all that the proof rests on, and uses the hints for
nothing but finding numbers. The theorem: if all checks pass, then for every claim

    lower ≤ value at the initial state ≤ upper

where the value is that of the problem (`tightrope.certificate.problem`): at the point, for every choice of nature's
within the intervals, for every instantiation in the domain, or with data for the true instantiation, with probability
at least 1 − δ over the data, under what `assumes` lists. Why stands in `tightrope.certificate.game.theorem` for
values, and for the way from data to sets in `tightrope.certificate.learned`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.certificate.claim import Certificate, Claim, checked
from tightrope.certificate.game.nature import Vector
from tightrope.certificate.game.operator import OutOfRange
from tightrope.certificate.game.sets import boxes_of
from tightrope.certificate.game.theorem import prove
from tightrope.certificate.learned import Learned
from tightrope.certificate.numbers import LONGDOUBLE, Arithmetic, as_fraction
from tightrope.certificate.statistics.assumption import support_words
from tightrope.certificate.verdict import Check, Unproved, Verdict

_End = Fraction | None
"""A bound at the initial state, before `complement`; None is +∞."""


def check(certificate: Certificate, n: Arithmetic = LONGDOUBLE) -> Verdict:
    """All checks. An `InputError` where a field does not hold what it should."""
    checked(certificate)
    with np.errstate(all="ignore"):
        try:
            checks, assumes = _checks(certificate, n)
        except OutOfRange:
            checks, assumes = [Check("range", False, "a number left the range of the arithmetic")], []
        except Unproved as error:
            checks, assumes = [Check("hints", False, str(error))], []
    values = {claim.name: (claim.lower, claim.upper) for claim in certificate.claims}
    kind = "learning" if certificate.problem.law == "domain" else "value"
    return Verdict(tuple(checks), values, kind, tuple(assumes))


def _checks(certificate: Certificate, n: Arithmetic) -> tuple[list[Check], list[str]]:
    problem = certificate.problem
    learned = Learned(certificate, n) if problem.law == "domain" else None
    if learned is not None:
        checks, assumes = learned.checks(), learned.assumes()
    else:
        boxes, proper = boxes_of(problem, n)
        checks, assumes = [proper], []
        if problem.assumed_support is not None:
            assumes.append(support_words(problem.assumed_support))
    if not all(one.passed for one in checks):
        return checks, assumes
    for number, (claim, hints) in enumerate(zip(certificate.claims, certificate.values, strict=True)):
        ends: list[_End] = []
        proofs: list[Check] = []
        for upward in (False, True):
            if learned is not None:
                boxes = learned.boxes(number, upward)
            found, bound = prove(problem, boxes, claim, hints, upward)
            proofs += found
            ends.append(_at(bound, problem.graph.initial))
        low, high = ends
        if learned is not None and all(one.passed for one in proofs):
            found, (low, high) = learned.coupled(number, (low, high))
            proofs += found
        proofs.append(_claimed(claim, low, high, problem.objective.complement))
        checks += [replace(one, name=f"{claim.name}: {one.name}") for one in proofs]
    return checks, assumes


def _at(vector: Vector, state: int) -> _End:
    return None if vector.infinite[state] else as_fraction(vector.number[state])


def _claimed(claim: Claim, low: _End, high: _End, complement: bool) -> Check:
    """Is what the claim says no more than what was proved? Compared exactly."""
    if complement:
        low, high = None if high is None else 1 - high, None if low is None else 1 - low
        low = Fraction(0) if low is None else low
    below = low is None or (np.isfinite(claim.lower) and Fraction(claim.lower) <= low)
    above = np.isinf(claim.upper) or (high is not None and Fraction(claim.upper) >= high)
    words = "the bounds at the initial state are those claimed, or tighter"
    failed = [end for end, holds in (("lower", below), ("upper", above)) if not holds]
    return Check(
        "the claim", not failed, f"the {' and the '.join(failed)} end is not proved" if failed else words
    )


def tie(verdict: Verdict, bound: Mapping[str, bool | None]) -> Verdict:
    """The verdict, which says what was compared with the user's own files."""
    return replace(verdict, bound=dict(bound))
