"""No certificate is written that the checker refuses, or that contradicts the answer beside it.

Both are proved intervals of the same quantity, so they meet; each may be the wider one, at either end. If
they do not meet, one of them is wrong: nothing is written, and the internal error asks for a report.

* A true or false answer places its value on one side of the threshold.
* A certificate of a learned temporal formula is about the most robust policy of its own product, perhaps
  another one than the answer's. Its lower bound is compared with what no policy exceeds.
* A certificate of a temporal formula or an average about synchronised intervals is about the products of
  their bounds, which allow nature more than the answer's factors do: one side is compared.
* Two different statements about the same data, such as a likelihood region of rates and an interval for every
  rate, each fail with probability δ. If they exclude each other, nothing is certified, in words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tightrope.certificate.budget import OverBudget, WorkBudget
from tightrope.certificate.checker import check
from tightrope.certificate.numbers import FLOAT64
from tightrope.certificate.problem import Certificate
from tightrope.certify.certificate_file import CertificateFile, as_file
from tightrope.errors import CannotCertify
from tightrope.io.results import Interval
from tightrope.model.objective import Direction
from tightrope.prism.properties.query import Query

SMALL = 2.0
"""Seconds of work, as a check counts them, up to which every certificate is checked before it is written."""

ANYTHING = Interval(-math.inf, math.inf)


class Disagreement(Exception):
    """A certificate and the answer beside it exclude each other: one of them is wrong."""


@dataclass(frozen=True)
class Shown:
    """The answer: an interval for each claim that it speaks of. `apart`: it rests on other statements about
    the data than the certificate does, so that data alone can make the two exclude each other. `notes` are
    words about that."""

    intervals: Mapping[str, Interval]
    apart: bool = False
    notes: tuple[str, ...] = ()

    def beyond(self, nature: Direction) -> Shown:
        """Where the certificate allows nature more, its value may lie further where nature wants it."""
        if nature is Direction.MIN:
            ends = {name: Interval(-math.inf, one.upper) for name, one in self.intervals.items()}
        else:
            ends = {name: Interval(one.lower, math.inf) for name, one in self.intervals.items()}
        return replace(self, intervals=ends)


def shown_value(
    bounds: tuple[float, float] | None, truth: str | None = None, query: Query | None = None
) -> Shown:
    """The answer to one question, of the best policy or of a given one: `bounds`, and on which side of its
    threshold the value of a query lies that is `truth`."""
    low, high = ANYTHING if bounds is None else bounds
    if truth in ("true", "false") and query is not None and query.threshold is not None:
        threshold = float(query.threshold)
        if (query.comparison in (">", ">=")) == (truth == "true"):
            low = max(low, math.nextafter(threshold, -math.inf))
        else:
            high = min(high, math.nextafter(threshold, math.inf))
    return Shown(dict.fromkeys(("value", "given policy"), Interval(low, high)))


def answered_file(certificate: Certificate, shown: Shown | None, verify: bool = True) -> CertificateFile:
    """The certificate as it is written, if it agrees with the answer (where there is one) and the checker
    confirms it; without `verify` a large one is not checked."""
    if shown is not None:
        require_agreement(certificate, shown)
    require_proved(certificate, verify)
    return replace(as_file(certificate), notes=() if shown is None else shown.notes)


def require_proved(certificate: Certificate, verify: bool = True) -> None:
    """Refuse to write what the checker would refuse; without `verify` it is not asked about large files."""
    try:
        verdict = check(certificate, FLOAT64, WorkBudget(math.inf if verify else SMALL))
    except OverBudget:
        return
    failed = [f"{one.name} ({one.detail})" for one in verdict.checks if not one.passed]
    if verdict.contradicted is not None or failed:
        why = verdict.contradicted or failed[0]
        raise CannotCertify(f"no certificate is written, since the checker would refuse it: {why}")


def require_agreement(certificate: Certificate, shown: Shown) -> None:
    """Raise where a claim and the answer exclude each other, and where no claim is answered at all."""
    if not any(claim.name in shown.intervals for claim in certificate.claims):
        raise Disagreement(
            f"the certificate claims {', '.join(one.name for one in certificate.claims)}, and the answer is "
            f"about {', '.join(shown.intervals)}"
        )
    for claim in certificate.claims:
        answer, proved = shown.intervals.get(claim.name, ANYTHING), Interval(claim.lower, claim.upper)
        if proved.lower <= answer.upper and answer.lower <= proved.upper:
            continue
        both = f"the certificate proves a {claim.name} in {proved}, and the answer is {answer}"
        if shown.apart:
            raise CannotCertify(
                f"no certificate is written: {both}. They rest on different statements about the data, which "
                "hold together in a right model nearly always: the model is likely wrong"
            )
        raise Disagreement(f"{both}. One of them is wrong: no certificate is written, trust neither")
