"""The part of a certificate that speaks of an ellipsoid: tangents, boxes, bases.

An ellipsoid has no rows, but each of its tangents is one, and the certificate names them by their directions.
Tangents along the coordinates bound the box. For a bound that the domain does not cut, the tangent in its own
direction proves it; where the domain's rows (and McCormick's) have multipliers, what they leave of the
direction does, together with them. A basis over all of these proves at least what the cone program did.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.certificate.learning import LearningCertificate, RegionProof
from tightrope.certificate.learning_check import Chain
from tightrope.certificate.region_rows import Origin as Kind
from tightrope.learning.certificate_bases import BasisFinder
from tightrope.learning.certificate_proof import with_stages
from tightrope.learning.certificate_rows import domain_names, envelope_names
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import FloatArray
from tightrope.region.ellipsoid import Ellipsoid

_NOTHING_LEFT = 1e-12


def ellipsoid_proof(result: LearningResult, region: Ellipsoid, draft: LearningCertificate) -> Chain:
    """Tangents, the box and a basis for every bound that was projected from an ellipsoid.

    They are handed out in the certificate of the chain of checks that they were made for.
    """
    coordinates = region.coordinates
    size = coordinates.size
    names = [*domain_names(coordinates), *envelope_names(coordinates)]
    proof = RegionProof(
        row=np.array(names, dtype=np.int64).reshape(-1, 3),
        cut_point=np.zeros((0, size)),
        box_lower=np.zeros((0, size)),
        box_upper=np.zeros((0, size)),
        box_basis=np.zeros((0, 2 * size, size), dtype=np.int32),
        bound_expression=np.zeros(0, dtype=np.int32),
        bound_side=np.zeros(0, dtype=np.int8),
        bound_basis=np.zeros((0, size), dtype=np.int32),
        choice_basis=np.zeros((0, size), dtype=np.int32),
    )
    proof = _with_tangents(proof, np.concatenate([np.eye(size), -np.eye(size)]))
    chain = Chain(replace(draft, region=proof))
    chain.derive()
    proof = with_stages(chain, proof, 1)
    _show(chain, proof)
    chain.written()
    open_ends = chain.unproved()
    if not open_ends:
        return chain
    linear = coordinates.functions(result.model.expressions).linear
    directions = np.array([linear[e] if side else -linear[e] for e, side in open_ends])
    proof = _with_tangents(proof, _tangents(region, directions))
    _show(chain, proof)
    chain.written()
    assert chain.rows is not None
    proof = replace(
        proof,
        bound_expression=np.array([e for e, _ in open_ends], dtype=np.int32),
        bound_side=np.array([side for _, side in open_ends], dtype=np.int8),
        bound_basis=BasisFinder(chain.rows).all(directions),
    )
    _show(chain, proof)
    return chain


def _show(chain: Chain, proof: RegionProof) -> None:
    """A longer proof for the chain: tangents were added, the ellipsoid is the same."""
    assert chain.ellipsoid is not None
    chain.certificate = replace(chain.certificate, region=proof)
    chain.ellipsoid.directions = proof.cut_point


def _tangents(region: Ellipsoid, directions: FloatArray) -> FloatArray:
    """Distinct directions of length about 1 in which tangents are wanted."""
    left = region.remainders(directions)
    size = np.abs(left).max(axis=1)
    some = size > _NOTHING_LEFT * np.abs(directions).max(axis=1)
    wanted: FloatArray = np.unique(left[some] / size[some, None], axis=0)
    return wanted


def _with_tangents(proof: RegionProof, directions: FloatArray) -> RegionProof:
    known = len(proof.cut_point)
    number = np.arange(known, known + len(directions))
    kind = np.full(len(number), int(Kind.TANGENT))
    return replace(
        proof,
        row=np.concatenate([proof.row, np.stack([kind, number, 0 * number], axis=1)]),
        cut_point=np.concatenate([proof.cut_point, directions]),
    )
