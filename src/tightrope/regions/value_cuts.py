"""More tangent cuts of a likelihood region: along the values of the policies that will be evaluated.

Beyond `MOST_CUT_DIMENSIONS` coordinates the enclosure is cut at the maximisers of coordinates and
expressions, and along any other direction it may exceed the region by much. A policy's value depends on the
parameters mostly through one direction, its gradient; cuts where the likelihood region itself ends along
±gradient make the enclosure tight there. They are tangents like all others
(`tightrope.regions.tangent_cuts`), so they cost no confidence, and directions may be chosen after a look: the
region is the same set, enclosed more tightly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.regions.halfspaces import Halfspaces, Origin
from tightrope.regions.likelihood import MOST_CUT_DIMENSIONS, maxima_along, with_cuts
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.tangent_cuts import LogLikelihood
from tightrope.regions.tightening import Tightened, tighten
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser

_ALIKE = 1.0 - 1e-6
"""Cosine above which two directions count as one."""

_ROUNDS = 2
"""Cuts are made again where the box has shrunk meanwhile: envelopes of products follow the box."""


def wants_value_cuts(region: Polytope) -> bool:
    """Whether the region was cut along chosen directions alone, and has evidence to cut by."""
    return (
        region.coordinates.size > MOST_CUT_DIMENSIONS
        and region.evidence is not None
        and region.cut_points is not None
        and not region.emptiness.is_empty
    )


def cut_along(region: Polytope, functions: AffineFunctions, directions: FloatArray) -> Polytope:
    """The region with tangents at its support points along ± the directions [n, coordinates]."""
    evidence = region.evidence
    assert evidence is not None and region.cut_points is not None
    likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
    centre = LikelihoodMaximiser.of(region.coordinates, functions).lifted(evidence.estimate)
    distinct = _distinct(directions, likelihood.curvature(centre))
    if len(distinct) == 0:
        return region
    normals = np.concatenate([distinct, -distinct])
    points = list(region.cut_points)
    rounds = _ROUNDS if region.coordinates.is_lifted else 1
    system, done, tightened = region.system, region.tightening.rounds, None
    for _ in range(rounds):
        maxima = maxima_along(system, likelihood, centre, normals)
        system = with_cuts(without_envelopes(system), likelihood, centre, maxima, points)
        tightened = tighten_further(region.coordinates, system, done)
        system, done = tightened.system, tightened.report.rounds
        if tightened.empty:
            break
    assert tightened is not None
    most = 0 if region.enclosure is None else MOST_VERTICES
    result = Polytope.of(region.kind, region.coordinates, region.ledger, tightened, region.relaxation, most)
    more = len(points) - len(region.cut_points)
    remark = f"{more} more tangent cuts along the values of {_policies(len(distinct))}"
    return replace(
        result,
        remarks=(*region.remarks, remark),
        evidence=evidence,
        cut_points=np.array(points).reshape(-1, region.coordinates.size),
        slab=region.slab,
    )


def tighten_further(coordinates: Coordinates, system: Halfspaces, rounds: int) -> Tightened:
    """A system that was tightened in so many rounds, with more rows since, tightened again."""
    found = tighten(coordinates, system)
    return replace(found, report=replace(found.report, rounds=rounds + found.report.rounds))


def without_envelopes(system: Halfspaces) -> Halfspaces:
    """Without the envelopes of products: tightening writes those of the smaller box."""
    return system.take(system.origin != Origin.ENVELOPE)


def _distinct(directions: FloatArray, bend: FloatArray) -> FloatArray:
    """Directions that differ as seen by the likelihood, whose curvature is `bend`."""
    values, basis = np.linalg.eigh(bend)
    root = np.sqrt(np.maximum(values, 1e-12 * max(float(values.max(initial=0.0)), 1e-300)))
    kept: list[FloatArray] = []
    seen: list[FloatArray] = []
    for direction in directions:
        image = (direction @ basis) / root
        size = float(np.linalg.norm(image))
        if not 0.0 < size < np.inf:
            continue
        image = image / size
        if all(abs(float(image @ other)) < _ALIKE for other in seen):
            kept.append(direction / float(np.abs(direction).max()))
            seen.append(image)
    return np.array(kept).reshape(-1, directions.shape[1])


def _policies(number: int) -> str:
    return "one policy" if number == 1 else f"{number} policies"
