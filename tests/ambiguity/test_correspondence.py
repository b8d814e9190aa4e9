"""Uncertain models as parametric ones and back: the same sets, the same values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tightrope.ambiguity.sets import expression, rectangular
from tightrope.errors import InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.solver.solve import solve
from uncertain_as_parametric import (
    domain_region,
    from_halfspaces,
    from_intervals,
    from_vertices,
    is_rectangular,
)

F = Fraction
MIN, MAX = Direction.MIN, Direction.MAX


def interval_model(seed: int) -> IntervalMDP:
    """Five states, the last two absorbing; bounds are multiples of 1/64 around a distribution."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, str, dict[int, tuple[Fraction, Fraction]]]] = []
    for state in range(3):
        count = int(rng.integers(2, 5))
        successors = rng.choice(np.arange(state + 1, 5), min(count, 4 - state), replace=False)
        weights = rng.multinomial(64, np.full(len(successors), 1 / len(successors)))
        rows.append(
            (
                state,
                "go",
                {
                    int(s): (
                        F(max(0, int(w) - int(rng.integers(1, 12))), 64),
                        F(min(64, int(w) + int(rng.integers(1, 12))), 64),
                    )
                    for s, w in zip(successors, weights, strict=True)
                },
            )
        )
    rows += [(s, "stay", {s: (F(1), F(1))}) for s in (3, 4)]
    model = build_from_rows(rows)  # type: ignore[arg-type]
    assert isinstance(model, IntervalMDP)
    return model


def reach(states: int, nature: Direction) -> Objective:
    target = np.zeros(states, np.bool_)
    target[-1] = True
    return Objective(ObjectiveKind.UNTIL, MAX, nature, target=target)


@pytest.mark.parametrize("seed", range(6))
def test_intervals_survive_the_way_there_and_back(seed: int) -> None:
    given = interval_model(seed)
    model = from_intervals(given)
    assert is_rectangular(model) and model.structure is given.structure
    region = domain_region(model)
    sets = expression(region, model)
    for choice in range(given.choices):
        at = slice(int(given.transition_start[choice]), int(given.transition_start[choice + 1]))
        low, high = given.lower[at], given.upper[at]
        # the hull of { lower ≤ p ≤ upper, Σp = 1 }
        hull_low = np.maximum(low, 1.0 - (high.sum() - high))
        hull_high = np.minimum(high, 1.0 - (low.sum() - low))
        assert np.abs(sets.lower[at] - hull_low).max() < 1e-10
        assert np.abs(sets.upper[at] - hull_high).max() < 1e-10
        assert np.all(sets.lower[at] <= hull_low) and np.all(sets.upper[at] >= hull_high)
    back = rectangular(region, model)
    for nature in (MIN, MAX):
        ours = solve(back, reach(given.states, nature))
        theirs = solve(given, reach(given.states, nature))
        assert np.abs(ours.lower - theirs.lower).max() < 1e-9
        assert np.abs(ours.upper - theirs.upper).max() < 1e-9


def test_points_of_the_domain_are_kernels_of_the_intervals_and_no_others() -> None:
    given = interval_model(1)
    model = from_intervals(given)
    middle = [
        (low + high) / 2 for low, high in zip(model.parameters.lower, model.parameters.upper, strict=True)
    ]
    inside = model.parameters.contains(middle)
    values = model.expressions.values(middle)[model.expression]
    assert inside == bool(np.all((values >= given.lower) & (values <= given.upper)))
    corner = list(model.parameters.upper)
    values = model.expressions.values(corner)[model.expression]
    assert model.parameters.contains(corner) == bool(
        np.all((values >= given.lower) & (values <= given.upper))
    )


VERTICES = [
    [(F(1, 2), F(1, 4), F(1, 4)), (F(1, 4), F(1, 2), F(1, 4)), (F(1, 8), F(1, 8), F(3, 4))],
    [(F(1, 3), F(2, 3)), (F(2, 3), F(1, 3))],
    [(F(1),)],
    [(F(1),)],
]


def polytopic() -> ParametricMDP:
    rows: list[tuple[int, str, dict[int, Polynomial]]] = [
        (0, "a", dict.fromkeys((1, 2, 3), Polynomial.constant(F(1, 3)))),
        (1, "a", dict.fromkeys((2, 3), Polynomial.constant(F(1, 2)))),
        (2, "stay", {2: Polynomial.constant(1)}),
        (3, "stay", {3: Polynomial.constant(1)}),
    ]
    plain = build_from_rows(rows, Parameters())
    assert isinstance(plain, ParametricMDP)
    return from_vertices(plain.structure, VERTICES)


def test_polytopes_keep_their_values() -> None:
    model = polytopic()
    assert is_rectangular(model) and len(model.parameters) == 3
    sets = rectangular(domain_region(model), model)
    for nature, pick in ((MIN, min), (MAX, max)):
        later = pick(v[1] for v in VERTICES[1])
        exact = pick(v[0] * later + v[2] for v in VERTICES[0])
        solution = solve(sets, reach(4, nature))
        assert abs(solution.lower[0] - float(exact)) < 1e-9 and abs(solution.upper[0] - float(exact)) < 1e-9
        if nature is MIN:
            assert F(float(solution.lower[0])) <= exact
        else:
            assert F(float(solution.upper[0])) >= exact


def test_half_spaces_cut_the_intervals() -> None:
    given = interval_model(2)
    choice = int(np.argmax(np.diff(given.transition_start)))
    start, end = int(given.transition_start[choice]), int(given.transition_start[choice + 1])
    ceiling = F(float(given.lower[start])) + F(1, 64)
    row = [F(1)] + [F(0)] * (end - start - 1)
    model = from_halfspaces(given, {choice: [(row, ceiling)]})
    sets = expression(domain_region(model), model)
    assert abs(sets.upper[start] - float(ceiling)) < 1e-10
    with pytest.raises(InputError, match="coefficients"):
        from_halfspaces(given, {choice: [([F(1)] * (end - start + 1), F(1))]})


def test_shared_parameters_and_shared_constraints_are_not_rectangular() -> None:
    p, q = Polynomial.variable(0), Polynomial.variable(1)
    one = Polynomial.constant(1)
    ends: list[tuple[int, str, dict[int, Polynomial]]] = [(s, "stay", {s: one}) for s in (2, 3)]
    both = build_from_rows(
        [(0, "a", {1: p, 2: one - p}), (1, "a", {2: q, 3: one - q}), *ends], Parameters.unit_box(("p", "q"))
    )
    assert isinstance(both, ParametricMDP) and is_rectangular(both)
    shared = build_from_rows(
        [(0, "a", {1: p, 2: one - p}), (1, "a", {2: p, 3: one - p}), *ends], Parameters.unit_box(("p", "q"))
    )
    assert isinstance(shared, ParametricMDP) and not is_rectangular(shared)
    domain = Parameters.unit_box(("p", "q"))
    tied = Parameters(domain.names, domain.lower, domain.upper, (LinearConstraint((F(1), F(1)), F(1)),))
    bound = build_from_rows([(0, "a", {1: p, 2: one - p}), (1, "a", {2: q, 3: one - q}), *ends], tied)
    assert isinstance(bound, ParametricMDP) and not is_rectangular(bound)


@pytest.mark.parametrize(
    ("vertices", "message"),
    [
        (VERTICES[:3], "vertices are given for 3 of 4 choices"),
        ([VERTICES[0], [(F(1, 2), F(1, 3))], *VERTICES[2:]], "is not a distribution"),
        ([VERTICES[0], [], *VERTICES[2:]], "has no vertex"),
    ],
)
def test_what_is_no_polytope_of_distributions_is_refused(
    vertices: list[list[tuple[Fraction, ...]]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        from_vertices(polytopic().structure, vertices)
