"""Exact references for regions: rational linear programs by enumeration, small models, counts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from tightrope.data.counts import Batches, Counts, batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.model.builder import build_from_rows
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget
from tightrope.statistics.estimates import Budget, EventIntervals, Events
from tightrope.statistics.outcomes import Outcomes

Row = tuple[list[Fraction], Fraction]
ONE = Polynomial.constant(1)


def simplex(*names: str) -> Parameters:
    """Non-negative parameters that sum to 1."""
    size = len(names)
    total = LinearConstraint((Fraction(1),) * size, Fraction(1), True)
    return Parameters(names, (Fraction(0),) * size, (Fraction(1),) * size, (total,))


def coins(parameters: Parameters, expressions: Sequence[Polynomial]) -> ParametricMDP:
    """One state a coin: expression f leads to the next state, 1 − f to a sink."""
    count = len(expressions)
    rows: list[tuple[int, str, dict[int, Polynomial]]] = []
    for i, f in enumerate(expressions):
        rows.append((i, "toss", {i + 1 if i + 1 < count else count: f, count + 1: ONE - f}))
    rows.append((count, "stay", {count: ONE}))
    rows.append((count + 1, "stay", {count + 1: ONE}))
    model = build_from_rows(rows, parameters)
    assert isinstance(model, ParametricMDP)
    return model


def counts_of(model: ParametricMDP, transition: Sequence[int], kind: SamplingKind) -> Counts:
    return Counts(
        np.array(transition, dtype=np.int64), model.transition_start, SamplingDesign(kind), model.hash()
    )


def generative(
    model: ParametricMDP, theta: Sequence[Fraction], samples: int, rng: np.random.Generator
) -> Counts:
    """`samples` draws of every choice in geometric batches: a fixed design."""
    probability = model.instantiate(theta).probability
    start = model.transition_start
    parts = []
    done = 0
    for end in batch_ends(samples).tolist():
        seen = np.concatenate(
            [rng.multinomial(end - done, probability[a:b]) for a, b in pairwise(start.tolist())]
        ).astype(np.int64)
        parts.append((np.flatnonzero(seen), seen[seen > 0]))
        done = end
    design = SamplingDesign(SamplingKind.GENERATIVE_FIXED)
    return Counts.from_batches(Batches.from_parts(parts), start, design, model.hash())


def with_intervals(
    model: ParametricMDP, lower: Sequence[float], upper: Sequence[float], budget: Budget = Budget.PAPER
) -> EventIntervals:
    """Event intervals as given, in the order of the events."""
    events = Events.tie(Outcomes.of(model), budget)
    zeros = np.zeros(len(events), dtype=np.int64)
    ledger = ConfidenceBudget(0.05, len(events), 0.05, "given", budget.value, Assumption.FIXED_DESIGN)
    return EventIntervals(events, zeros, zeros, np.array(lower), np.array(upper), ledger)


def region_rows(intervals: EventIntervals) -> list[Row]:
    """The exact rows of U over all parameters: event intervals, box, constraints (affine models)."""
    model = intervals.events.outcomes.model
    size = len(model.parameters)
    rows: list[Row] = []
    for event in range(len(intervals.events)):
        slope, constant = affine(intervals.events.function(event), size)
        rows.append((slope, Fraction(float(intervals.upper[event])) - constant))
        rows.append(([-a for a in slope], constant - Fraction(float(intervals.lower[event]))))
    for i in range(size):
        unit = [Fraction(int(j == i)) for j in range(size)]
        rows.append((unit, model.parameters.upper[i]))
        rows.append(([-a for a in unit], -model.parameters.lower[i]))
    for constraint in model.parameters.constraints:
        rows.append((list(constraint.coefficients), constraint.bound))
        if constraint.is_equality:
            rows.append(([-a for a in constraint.coefficients], -constraint.bound))
    return rows


def affine(polynomial: Polynomial, size: int) -> tuple[list[Fraction], Fraction]:
    assert polynomial.degree <= 1
    return [polynomial.terms.get(((i, 1),), Fraction(0)) for i in range(size)], polynomial.constant_term


def exact_vertices(rows: Sequence[Row]) -> list[list[Fraction]]:
    """All vertices of a bounded polytope, by solving every square subsystem."""
    size = len(rows[0][0])
    found: dict[tuple[Fraction, ...], None] = {}
    for subset in combinations(rows, size):
        point = _solve([list(a) for a, _ in subset], [b for _, b in subset])
        if point is not None and all(_dot(a, point) <= b for a, b in rows):
            found[tuple(point)] = None
    return [list(point) for point in found]


def exact_range(polynomial: Polynomial, vertices: Sequence[Sequence[Fraction]]) -> tuple[Fraction, Fraction]:
    values = [polynomial.evaluate(vertex) for vertex in vertices]
    return min(values), max(values)


def _dot(a: Sequence[Fraction], x: Sequence[Fraction]) -> Fraction:
    return sum((p * q for p, q in zip(a, x, strict=True)), Fraction(0))


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    size = len(right)
    for column in range(size):
        pivot = next((r for r in range(column, size) if matrix[r][column] != 0), None)
        if pivot is None:
            return None
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        right[column], right[pivot] = right[pivot], right[column]
        lead = matrix[column][column]
        matrix[column] = [a / lead for a in matrix[column]]
        right[column] /= lead
        for r in range(size):
            if r != column and (factor := matrix[r][column]) != 0:
                matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[column], strict=True)]
                right[r] -= factor * right[column]
    return right
