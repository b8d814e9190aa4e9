"""Do the statistics hold together with probability at least 1 − δ? From counts to the ledger.

Every method spends shares γ of δ on statements that the model alone determines, so that what was seen cannot
decide which of them count:

* tied and polytope: one interval an event; untied: one a transition of unknown probability;
* l1: one ball a signature with an outcome of unknown probability;
* likelihood and ellipsoid: one region, γ = δ.

The shares must not add up to more than δ; the statements themselves are derived again.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.certificate.events_check import Unexplained, tally
from tightrope.certificate.interval_check import METHODS, unproved
from tightrope.certificate.learning import Data
from tightrope.certificate.polynomials import Polynomial, is_constant, scaled
from tightrope.certificate.shape import Check
from tightrope.certificate.signatures import Signatures
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray


def budget_check(delta: float, gamma: float, statements: int, what: str) -> Check:
    """γ each, at most δ together."""
    name = "the confidence adds up"
    if not (0 < delta < 1 and 0 < gamma <= delta):
        return Check(name, False, f"δ = {delta} and γ = {gamma} are not levels")
    spent = Fraction(gamma) * statements
    if spent > Fraction(delta):
        return Check(
            name, False, f"{statements} {what} at γ = {gamma:.6g} cost {float(spent):.6g} > δ = {delta:g}"
        )
    return Check(name, True, f"{statements} {what} at γ = {gamma:.6g}, δ = {delta:g}")


def event_check(
    data: Data, signatures: Signatures, polynomials: list[Polynomial], exactly: bool
) -> list[Check]:
    """Counts of events, the budget, and every interval."""
    name = "event intervals follow from the counts"
    if (
        data.event_expression is None
        or data.event_multiplicity is None
        or data.event_lower is None
        or data.event_upper is None
        or data.method not in METHODS
    ):
        return [Check(name, False, "there are no events, or no known method")]
    events = [
        scaled(polynomials[int(e)], int(m))
        for e, m in zip(data.event_expression, data.event_multiplicity, strict=True)
    ]
    try:
        successes, trials = tally(
            signatures.start, signatures.expression, signatures.counts, polynomials, events
        )
    except Unexplained as error:
        return [Check(name, False, str(error))]
    wrong = unproved(data.method, successes, trials, data.gamma, data.event_lower, data.event_upper, exactly)
    return [
        budget_check(data.delta, data.gamma, len(events), "events"),
        _verdict(name, wrong, f"{len(wrong)} events by {data.method}, {int(trials.sum())} trials"),
    ]


def transition_check(
    data: Data,
    transition_start: OffsetArray,
    polynomials: list[Polynomial],
    lower: FloatArray,
    upper: FloatArray,
    exactly: bool,
) -> tuple[list[Check], BoolArray]:
    """Untied: the intervals of transitions; which of them do not follow from their counts alone."""
    constant = np.array([is_constant(p) for p in polynomials])[data.expression]
    unknown = np.flatnonzero(~constant)
    visits = np.add.reduceat(data.counts, transition_start[:-1])
    trials = np.repeat(visits, np.diff(transition_start))
    wrong = np.zeros(len(constant), dtype=np.bool_)
    if data.method not in METHODS:
        return [Check("the confidence adds up", False, f"unknown method '{data.method}'")], wrong
    wrong[unknown] = unproved(
        data.method,
        data.counts[unknown],
        trials[unknown],
        data.gamma,
        lower[unknown],
        upper[unknown],
        exactly,
    )
    return [budget_check(data.delta, data.gamma, len(unknown), "transitions")], wrong


def _verdict(name: str, wrong: BoolArray, detail: str) -> Check:
    if not wrong.any():
        return Check(name, True, detail)
    return Check(name, False, f"fails for {int(wrong.sum())}, first for number {int(np.argmax(wrong))}")
