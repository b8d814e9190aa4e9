"""What a certificate of a learned result covers, in words."""

from __future__ import annotations

from tightrope.certificate.learning import LearningCertificate
from tightrope.learning.result import LearningResult
from tightrope.uncertainty.sets import SetsKind


def covered(certificate: LearningCertificate, result: LearningResult) -> tuple[str, ...]:
    """Lines for people; no check relies on them."""
    data = certificate.data
    lines = _origin(certificate, result)
    if data.method == "likelihood":
        lines.append(
            "not covered: that batches were cut without looking at outcomes; plug-ins are checked to be the "
            "estimates of earlier batches up to a small distance"
        )
    if data.sets != result.sets.kind.value:
        lines.append(
            f"the sets of the result are {result.sets.kind.value}; the {data.sets} sets enclose them"
        )
    if result.kind is SetsKind.COUPLED:
        lines += _coupled(certificate)
    if data.assumed_support is not None:
        lines.append(f"assumed: what can happen has at least probability {data.assumed_support:g}")
    return tuple(lines)


def _origin(certificate: LearningCertificate, result: LearningResult) -> list[str]:
    data, chosen = certificate.data, result.decisions.region
    if data.method == "domain":
        return [f"every instantiation in the domain, without data; {data.sets} sets"]
    region = "no region" if certificate.region is None or chosen is None else f"the {chosen.value} region"
    return [
        f"counts of {len(data.counts)} transitions, {data.method} at δ = {data.delta:g}, "
        f"{data.sets} sets, {region}",
        "the confidence level assumes that the model is right and that the data were collected as the "
        f"ledger says ({data.assumption})",
    ]


def _coupled(certificate: LearningCertificate) -> list[str]:
    """Which intervals are coupled."""
    cells = {proof.guarantee: proof.proofs for proof in certificate.coupled}
    return [
        f"the {guarantee.name}'s interval holds for every instantiation of the region, one for the whole run "
        f"(coupled): {cells[number]} cells"
        if number in cells
        else f"the {guarantee.name}'s interval is the one over {certificate.data.sets} sets"
        for number, guarantee in enumerate(certificate.guarantees)
    ]
