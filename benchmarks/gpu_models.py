"""Large cyclic models for the GPU benchmark: trips on a torus that end at stations, with and without regions.

    python benchmarks/gpu_models.py     the sizes and layouts of small instances

A cell has four moves; each goes where it should or slips to a neighbour, with probabilities within intervals
that depend on the cell. Stations lie every so many cells, so values do not depend on how large the torus is,
and neither does the number of sweeps: what grows is the work of one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.ambiguity.region_shape import shape_of
from tightrope.ambiguity.sets import rectangular
from tightrope.model.builder import build_from_rows
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import RewardStructure, Structure
from tightrope.regions.event_polytope import polytope_region
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget
from tightrope.statistics.estimates import Budget, EventIntervals, Events
from tightrope.statistics.outcomes import Outcomes

STATION = 60
"""Cells from one station to the next."""

KINDS_OF_CELLS = 50
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))


def torus(transitions: int, successors: int) -> Structure:
    """Cells with four moves of `successors` outcomes each, about so many transitions in all."""
    side = max(round((transitions / (4 * successors)) ** 0.5 / STATION), 1) * STATION
    cell = np.arange(side * side, dtype=np.int32)
    x, y = cell % side, cell // side
    to = [((x + dx) % side) + side * ((y + dy) % side) for dx, dy in MOVES]
    table = np.empty((len(cell), 4, successors), np.int32)
    for move in range(4):
        outcomes = (to[move], to[(move + 1) % 4], to[move - 1], cell)
        for j in range(successors):
            table[:, move, j] = outcomes[j]
    return Structure(
        choice_start=4 * np.arange(len(cell) + 1, dtype=np.int64),
        transition_start=successors * np.arange(4 * len(cell) + 1, dtype=np.int64),
        successor=table.reshape(-1),
    )


def objective_on(structure: Structure) -> Objective:
    """The expected number of moves to a station."""
    side = round(structure.states**0.5)
    cell = np.arange(structure.states)
    station = (cell % side % STATION == 0) & (cell // side % STATION == 0)
    cost = RewardStructure(state=np.ones(structure.states))
    return Objective(ObjectiveKind.REACH_REWARD, Direction.MIN, Direction.MAX, target=station, reward=cost)


def interval_trips(transitions: int, successors: int) -> tuple[IntervalMDP, Objective]:
    """Each outcome's probability in an interval; KINDS_OF_CELLS kinds of ground."""
    structure = torus(transitions, successors)
    ground = np.arange(structure.states) % KINDS_OF_CELLS
    slip = (0.02 + 0.2 * ground / KINDS_OF_CELLS)[:, None] / (successors - 1)
    lower = np.empty((structure.states, successors))
    upper = np.empty((structure.states, successors))
    lower[:, 1:], upper[:, 1:] = 0.5 * slip, 1.5 * slip
    lower[:, :1] = 1.0 - (successors - 1) * 1.4 * slip
    upper[:, :1] = 1.0 - (successors - 1) * 0.6 * slip
    bounds = (np.repeat(bound, 4, axis=0).reshape(-1) for bound in (lower, upper))
    return IntervalMDP(structure, *bounds), objective_on(structure)


def polygon_trips(transitions: int) -> tuple[RectangularOperator, Objective]:
    """Three outcomes, affine in two parameters; nature picks one point of a polygon at each choice.

    The polygon and its shape come from a model with one choice for each kind of ground, whose rows the torus
    repeats."""
    small = _grounds()
    events = Events.tie(Outcomes.of(small), Budget.TIED)
    point = [Fraction(2, 5), Fraction(3, 7)]
    middle = np.array([float(events.function(e).evaluate(point)) for e in range(len(events))])
    reach = 0.02 * (1.0 + np.arange(len(events)) % 3)
    zeros = np.zeros(len(events), np.int64)
    ledger = ConfidenceBudget(0.05, len(events), 0.05, "given", Budget.TIED.value, Assumption.FIXED_DESIGN)
    intervals = EventIntervals(
        events, zeros, zeros, np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0), ledger
    )
    sets = rectangular(polytope_region(intervals), small, intervals.expression_bounds())
    shape = shape_of(sets)
    structure = torus(transitions, 3)
    ground = np.repeat(np.arange(structure.states) % GROUNDS, 4)
    rows = (3 * ground[:, None] + np.arange(3)).reshape(-1)
    placed = shape._replace(
        expression=shape.expression[rows],
        joint=np.ones(structure.choices, np.bool_),
    )
    kernel = RectangularOperator(structure, sets.lower[rows], sets.upper[rows], placed)
    return kernel, objective_on(structure)


GROUNDS = 12


def _grounds() -> ParametricMDP:
    """State g < GROUNDS moves to one of three sinks with probabilities affine in p and q."""
    p, q, one = Polynomial.variable(0), Polynomial.variable(1), Polynomial.constant(1)
    rows: list[tuple[int, str, dict[int, Polynomial]]] = []
    for g in range(GROUNDS):
        parts = [Polynomial.constant(Fraction(w, 64)) for w in (3 + g, 14 - g, 2 + g % 5, 4 + g % 7)]
        left = parts[0] * p + parts[2] * (one - q)
        right = parts[1] * q + parts[3] * (one - p)
        rows.append((g, "move", {GROUNDS: one - left - right, GROUNDS + 1: left, GROUNDS + 2: right}))
    rows += [(GROUNDS + i, "stay", {GROUNDS + i: one}) for i in range(3)]
    model = build_from_rows(rows, Parameters.unit_box(("p", "q")))
    assert isinstance(model, ParametricMDP)
    return model


def main() -> None:
    for successors in (2, 3, 4):
        model, _ = interval_trips(10_000, successors)
        print(f"intervals, {successors} successors: {model.states} cells, {model.transitions} transitions")
    kernel, _ = polygon_trips(10_000)
    print(f"polygon: {kernel.structure.transitions} transitions, {len(kernel.shape.rows)} rows")


if __name__ == "__main__":
    main()
