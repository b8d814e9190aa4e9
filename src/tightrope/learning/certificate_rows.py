"""The rows of a region by the names that certificates use (`tightrope.certificate.region_rows`).

Event and domain rows carry their names. Rows of L1 balls and tangent cuts are written down again in the
same way, which gives the same floats, and are recognised by them.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.region_rows import Origin as Kind
from tightrope.data.counts import Counts
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import FloatArray
from tightrope.region.halfspaces import Halfspaces, Origin
from tightrope.region.l1 import MOST_OUTCOMES, l1_rows
from tightrope.region.likelihood import enclose_likelihood
from tightrope.region.tangent_cuts import LogLikelihood
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential

Name = tuple[int, int, int]


def domain_names(coordinates: Coordinates) -> list[Name]:
    """The names of `Coordinates.domain_rows`, in its order."""
    parameters = coordinates.parameters
    names: list[Name] = []
    for i in range(len(parameters)):
        if i not in coordinates.free and not coordinates.substitution[i].is_constant:
            names += [(Kind.DOMAIN, i, 0), (Kind.DOMAIN, i, 1)]
    for j, constraint in enumerate(parameters.constraints):
        involved = [coordinates.substitution[i] * c for i, c in enumerate(constraint.coefficients) if c]
        total = sum(involved[1:], start=involved[0]) if involved else None
        if total is None or total.is_constant:
            continue
        names.append((Kind.DOMAIN, len(parameters) + j, 0))
        if constraint.is_equality:
            names.append((Kind.DOMAIN, len(parameters) + j, 1))
    return names


def envelope_names(coordinates: Coordinates) -> list[Name]:
    """All McCormick rows of all products."""
    return [
        (Kind.ENVELOPE, j, part)
        for j, (x, y) in enumerate(coordinates.products)
        for part in range(5 if x == y else 4)
    ]


class Recorded(LogLikelihood):
    """A log-likelihood that remembers where it was cut."""

    def __init__(self, likelihood: LogLikelihood):
        self.linear, self.constant, self.slack = likelihood.linear, likelihood.constant, likelihood.slack
        self.weight, self.level = likelihood.weight, likelihood.level
        self.points: dict[bytes, FloatArray] = {}

    def cut(self, point: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, float]:
        row, bound = super().cut(point, lower, upper)
        self.points[_fingerprint(row, bound)] = point
        return row, bound


def row_names(
    result: LearningResult, counts: Counts, system: Halfspaces
) -> tuple[list[Name | None], FloatArray]:
    """The name of every row of a region's system (None where it has none), and the points of its cuts."""
    assert result.region is not None
    coordinates = result.region.coordinates
    domain = domain_names(coordinates)
    envelopes: list[Name] = []
    for j, (x, y) in enumerate(coordinates.products):
        envelopes += [(Kind.ENVELOPE, j, part) for part in ((0, 4, 1, 2) if x == y else (0, 1, 2, 3))]
    points: list[FloatArray] = []
    cuts = _cut_points(result, counts) if np.any(system.origin == Origin.CUT) else {}
    balls = _ball_names(result, counts) if np.any(system.origin == Origin.L1) else {}
    names: list[Name | None] = []
    for row, bound, origin, index in zip(
        system.matrix, system.bound, system.origin.tolist(), system.index.tolist(), strict=True
    ):
        name: Name | None = None
        if origin == Origin.DOMAIN:
            name = domain[index]
        elif origin in (Origin.EVENT_UPPER, Origin.EVENT_LOWER):
            name = (Kind.EVENT, index, int(origin == Origin.EVENT_LOWER))
        elif origin == Origin.ENVELOPE:
            name = envelopes[index]
        elif origin == Origin.CUT and (point := cuts.get(_fingerprint(row, bound))) is not None:
            name = (Kind.CUT, len(points), 0)
            points.append(point)
        elif origin == Origin.L1:
            name = balls.get(_fingerprint(row, bound))
        names.append(name)
    return names, np.array(points, dtype=np.float64).reshape(-1, coordinates.size)


def _fingerprint(row: FloatArray, bound: float) -> bytes:
    return row.tobytes() + np.float64(bound).tobytes()


def _cut_points(result: LearningResult, counts: Counts) -> dict[bytes, FloatArray]:
    """Build the likelihood region again and watch where it cuts."""
    assert result.region is not None
    coordinates, model = result.region.coordinates, result.model
    functions = coordinates.functions(model.expressions)
    evidence = prequential(coordinates, functions, Outcomes.of(model), counts, result.ledger.delta)
    recorded = Recorded(LogLikelihood(functions, evidence.weight, evidence.threshold))
    centre = LikelihoodMaximiser(coordinates, functions).lifted(evidence.estimate)
    directions = functions.linear[model.expressions.nonconstant]
    enclose_likelihood(coordinates, result.ledger, recorded, centre, directions)
    return recorded.points


def _ball_names(result: LearningResult, counts: Counts) -> dict[bytes, Name]:
    assert result.region is not None
    coordinates = result.region.coordinates
    functions = coordinates.functions(result.model.expressions)
    reach = np.maximum(np.abs(coordinates.lower), np.abs(coordinates.upper))
    outcomes = Outcomes.of(result.model)
    seen = outcomes.pooled(counts)
    matrix, bound, owner = l1_rows(outcomes, functions, reach, seen, result.ledger.gamma)
    names: dict[bytes, Name] = {}
    position: dict[int, int] = {}
    for row, level, signature in zip(matrix, bound.tolist(), owner.tolist(), strict=True):
        width = int(outcomes.width[signature])
        number = position.get(signature, 0)
        position[signature] = number + 1
        if width <= MOST_OUTCOMES:
            mask = number + 1
        else:
            mask = 1 << number if number < width else (2**width - 1) ^ (1 << (number - width))
        if width <= 62:
            choice = outcomes.example_choice(int(outcomes.start[signature]))
            names[_fingerprint(row, level)] = (Kind.L1, choice, mask)
    return names
