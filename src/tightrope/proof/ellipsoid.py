"""The part of a certificate that speaks of an ellipsoid: tangents, boxes, bases.

An ellipsoid has no rows, but each of its tangents is one, and the certificate names them by their directions.
Tangents along the coordinates bound the box. For a bound that the domain does not cut, the tangent in its own
direction proves it; where the domain's rows (and McCormick's) have multipliers, what they leave of the
direction does, together with them. A basis over these, and over the rows that all share, proves at least what
the cone program did.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.certificate.hints import RegionHints
from tightrope.certificate.learned import Learned
from tightrope.certificate.region.projection import shrunk_box
from tightrope.certificate.region.rows import Origin as Kind
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.proof.bases import BasisFinder
from tightrope.proof.region import Wanted, name_rows, open_ends, shrink_box, with_bases, write_rows
from tightrope.proof.rows import domain_names, envelope_names
from tightrope.region.ellipsoid import Ellipsoid

_NOTHING_LEFT = 1e-12


def prove_ellipsoid(link: Learned, result: LearningResult, region: Ellipsoid, wanted: Wanted) -> RegionHints:
    """Tangents, the box and a basis for every bound that was projected from an ellipsoid."""
    coordinates = region.coordinates
    size = coordinates.size
    names = [*domain_names(coordinates), *envelope_names(coordinates)]
    proof = name_rows(link, coordinates, names, np.zeros((0, size)))
    proof = _with_tangents(proof, np.concatenate([np.eye(size), -np.eye(size)]))
    proof = shrink_box(link, proof, 1)
    writer = link.writer(proof)
    wide = open_ends(link, link.bounds({}, shrunk_box(writer, proof.row, proof)), wanted)
    if not wide:
        return proof
    linear = coordinates.functions(result.model.expressions).linear
    directions = np.array([linear[e] if side else -linear[e] for e, side in wide])
    tangents, own = _tangents(region, directions)
    common = 2 * size + len(proof.row)
    proof = _with_tangents(proof, tangents)
    own = np.where(own >= 0, common + own, -1)
    bases = BasisFinder(write_rows(link, proof)).find_each(directions, common, own)
    return with_bases(proof, wide, bases)


def _tangents(region: Ellipsoid, directions: FloatArray) -> tuple[FloatArray, OffsetArray]:
    """(distinct directions of length about 1 in which tangents are wanted, which of them each uses)."""
    left = region.remainders(directions)
    size = np.abs(left).max(axis=1)
    some = size > _NOTHING_LEFT * np.abs(directions).max(axis=1)
    wanted, number = np.unique(left[some] / size[some, None], axis=0, return_inverse=True)
    own = np.full(len(directions), -1, dtype=np.int64)
    own[some] = number.reshape(-1)
    return wanted, own


def _with_tangents(proof: RegionHints, directions: FloatArray) -> RegionHints:
    known = len(proof.point)
    number = np.arange(known, known + len(directions))
    kind = np.full(len(number), int(Kind.TANGENT))
    return replace(
        proof,
        row=np.concatenate([proof.row, np.stack([kind, number, 0 * number], axis=1)]),
        point=np.concatenate([proof.point, directions]),
    )
