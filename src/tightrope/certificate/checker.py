"""The independent checker: does a certificate prove its claims?

It takes the problem in the certificate, derives from it alone all that the proof rests on, and uses the hints
for nothing but finding numbers. The theorem: if all checks pass, then for every claim

    lower ≤ value at the initial state ≤ upper

where the value is that of the problem (`tightrope.certificate.problem`): at the point, for every choice of
nature's within the intervals, for every instantiation in the domain, or with data for the true instantiation,
with probability at least 1 − δ over the data, under what `assumes` lists. Why stands in
`tightrope.certificate.theorem` for values, and for the way from data to sets in
`tightrope.certificate.learned`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.budget import WorkBudget
from tightrope.certificate.fields import validate
from tightrope.certificate.nature import BoundVector, Boxes
from tightrope.certificate.numbers import FLOAT64, RATIONAL, Arithmetic, OutOfRange, as_fraction
from tightrope.certificate.problem import Certificate, CertifiedProblem, Claim, misfit
from tightrope.certificate.theorem import prove
from tightrope.certificate.verdict import (
    BELIEVED,
    MEANING,
    Assumption,
    Check,
    Contradiction,
    Verdict,
    exactly,
)
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.certificate.learned import Learned

MOST_EXACT_WORK = 20_000_000
"""Transitions that --exact looks at, steps included; small models count as 500 transitions."""

_End = Fraction | float
"""A bound at the initial state, before `complement`; a float is infinite."""


def check(certificate: Certificate, n: Arithmetic = FLOAT64, budget: WorkBudget | None = None) -> Verdict:
    """All checks. An `InputError` where a field does not hold what it should, `OverBudget` where they would
    take more than a budget."""
    with (budget or WorkBudget.of(None, n.exact)).counting():
        return _check(certificate, n)


def _check(certificate: Certificate, n: Arithmetic) -> Verdict:
    validate(certificate)
    problem, n = certificate.problem, n if n.is_kept else RATIONAL
    if n.exact and _exact_work(problem) > MOST_EXACT_WORK:
        size = f"{problem.graph.transitions:,} transitions and {max(1, _steps(problem)):,} steps"
        hint = "leave `exact=True` out: the rounding of the check is on the safe side"
        raise InputError(f"{size} are too many for rationals", hint=hint)
    checks, learned, contradicted = list[Check](), None, None
    with np.errstate(all="ignore"):
        try:
            if problem.law == "domain":
                from tightrope.certificate.learned import Learned

                learned = Learned(certificate, n)
            _run(certificate, n, learned, checks)
        except Contradiction as finding:
            who = "the domain contradicts" if problem.data is None else "the data contradict"
            contradicted = f"{who} the model: {finding}"
        except OutOfRange:
            checks.append(Check("range", False, "a number left the range of the arithmetic"))
        except (ValueError, ArithmeticError, LookupError) as error:
            checks.append(Check("hints", False, f"they do not fit the problem: {error}"))
    values = {claim.name: (claim.lower, claim.upper) for claim in certificate.claims}
    whole = contradicted is None and all(one.passed for one in checks)
    planned = learned is not None and whole and learned.statements.planned
    assumed = tuple(assumptions(problem, planned, "given policy" in values))
    kind = "value" if problem.law != "domain" else "learning"
    return Verdict(tuple(checks), values, kind, assumed, unbound(certificate), contradicted)


def _steps(problem: CertifiedProblem) -> int:
    """Backups that are made."""
    return max(problem.objective.steps or 0, problem.objective.lower_steps)


def _exact_work(problem: CertifiedProblem) -> int:
    return max(1, _steps(problem)) * max(problem.graph.transitions, 500)


def _run(certificate: Certificate, n: Arithmetic, learned: Learned | None, checks: list[Check]) -> None:
    """What holds of the sets, then of every claim; nothing rests on a check that failed."""
    if learned is not None:
        checks += learned.checks()
        if not all(one.passed for one in checks):
            return
        boxes = learned.model_boxes()
    else:
        from tightrope.certificate.laws import boxes_of

        boxes, proper_sets = boxes_of(certificate.problem, n)
        checks += proper_sets
    if certificate.problem.automaton is not None and all(one.passed for one in checks):
        certificate, boxes, settled = _in_product(certificate, boxes)
        checks.append(settled)
    for number, claim in enumerate(certificate.claims):
        if all(one.passed for one in checks):
            proofs = _prove(certificate, number, boxes, learned)
            checks += [replace(one, name=f"{claim.name}: {one.name}") for one in proofs]


def _in_product(certificate: Certificate, boxes: Boxes) -> tuple[Certificate, Boxes, Check]:
    """The certificate as one about reaching, in the product of model and automaton."""
    from tightrope.certificate.product import product_of

    problem, values = certificate.problem, certificate.values
    most = max(0 if hints.lower is None else len(hints.lower) for hints in values)
    assert problem.automaton is not None
    product = product_of(problem.graph, problem.automaton, problem.objective.agent, boxes, most)
    objective = replace(problem.objective, kind="UNTIL", target=product.target)
    problem = replace(problem, graph=product.graph, objective=objective, automaton=None)
    for claim, hints in zip(certificate.claims, values, strict=True):
        if trouble := misfit(problem, claim, hints):
            raise ValueError(trouble)
    return replace(certificate, problem=problem), product.lift(boxes), product.check


def _prove(
    certificate: Certificate, number: int, boxes: Boxes, learned: Learned | None, exactly: bool = False
) -> list[Check]:
    """The proofs of a claim. Where steps are made, which add up what is rounded, and do not prove it in
    float64, they are made again in rationals."""
    problem, claim, hints = certificate.problem, certificate.claims[number], certificate.values[number]
    checks: list[Check] = []
    ends: list[BoundVector] = []
    for upward in (False, True):
        sets = boxes if learned is None else learned.boxes(boxes, number, upward)
        priced = problem if learned is None else learned.priced(problem, upward)
        if exactly:
            sets = sets.exactly(np.arange(problem.graph.choices))
        proofs, bound = prove(priced, sets, claim, hints, upward)
        checks += proofs
        ends.append(bound)
    passed = all(one.passed for one in checks)
    if passed and ends[1].below(ends[0]).any():
        raise Contradiction(f"no value of the {claim.name} is left at a state")
    low, high = (_at(bound, problem.graph.initial) for bound in ends)
    if learned is not None and learned.hints.coupled and passed:
        from tightrope.certificate.coupled import coupled_ends

        proofs, (low, high) = coupled_ends(learned, number, (low, high))
        checks += proofs
    if problem.objective.complement:
        low, high = 1 - high, 1 - low
    least, most = (problem if learned is None else learned.priced(problem, False)).objective.range
    low, high = max(low, least), min(high, most)
    if low > high and all(one.passed for one in checks):
        raise Contradiction(f"no value is left for the {claim.name}")
    last = _compare_claim(claim, low, high, least)
    if not last.passed and _steps(problem) and not exactly and not boxes.n.exact:
        if _exact_work(problem) <= MOST_EXACT_WORK:
            return _prove(certificate, number, boxes, learned, True)
        last = replace(last, detail=f"{last.detail} in float64, and the steps are too many for rationals")
    return [*checks, last]


def _at(vector: BoundVector, state: int) -> _End:
    number = inf if vector.infinite[state] else vector.number[state]
    return float(number) if number in (inf, -inf) else as_fraction(number)


def _compare_claim(claim: Claim, low: _End, high: _End, least: float) -> Check:
    """Is what the claim says no more than what was proved, and a value at all? Compared exactly."""
    if claim.lower < least:
        return Check("the claim", False, f"no value is below {least}")
    failed = [end for end, fails in (("lower", claim.lower > low), ("upper", claim.upper < high)) if fails]
    words = f"the {' and the '.join(failed)} end is not proved" if failed else "what was proved, or less"
    return Check("the claim", not failed, words)


def unbound(certificate: Certificate) -> dict[str, bool | None]:
    """What a certificate could be tied to, and is not yet; None where it speaks of no such thing."""
    data = None if certificate.problem.data is None else False
    policy = None if all(claim.policy == "free" for claim in certificate.claims) else False
    return {"model": False, "property": False, "data": data, "policy": policy}


def assumptions(problem: CertifiedProblem, planned: bool, given: bool) -> list[Assumption]:
    """What is assumed, derived from method and design; what is not kept makes the confidence nominal."""
    listed = [] if problem.data is None else problem.data.assumptions(planned, given)
    if problem.assumed_support is not None:
        words = f"a transition that can happen has at least probability {exactly(problem.assumed_support)}"
        listed.append(("support", "stated", words))
    if problem.automaton is not None:
        listed.append(("formula", "stated", BELIEVED if problem.automaton.believed else MEANING))
    return listed
