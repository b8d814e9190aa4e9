"""Bounds that miss 1 by a few units in the last place: what is left over is nature's, however little it is.

Every expected value is exact, in rationals, of the float64 bounds as they are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_cases import DEVICE
from exact_reference import INFINITE, TinyModel, brute_force, random_objective
from tightrope.ambiguity.o_maximization import ModelArrays, Scratch
from tightrope.certify.problem import to_problem
from tightrope.certify.solved import to_certificate
from tightrope.errors import InputError
from tightrope.model.graph.support import Support, can_stay, must_enter
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.numerics.rounding import difference, distil
from tightrope.prism.load import load_prism_text
from tightrope.prism.properties.query import parse_query
from tightrope.prism.properties.resolve import PropertyOptions
from tightrope.solver import Solution, solve
from tightrope.solver.bellman.backups import answers, optimal, safe_choice_values
from tightrope.solver.equations.system import SystemArrays
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL

FEW_ITERATIONS = 2000
UNIT = 2.0**-53
FINE = [0.0, UNIT, 3 * UNIT, 1e-17, 1e-15, 2.0**-60, 1e-40, 2.0**-1074]
COARSE = [1.0, 1 - UNIT, 1 - 2 * UNIT, 1 - 5 * UNIT, 0.7, 0.3, 0.5, 0.1, 0.9, 0.5 - UNIT / 2, 0.3 + UNIT]
NEAR = FINE + COARSE
NEAR_IN_MODELS = [x for x in NEAR if x == 0.0 or x > 1e-16]
"""Values beyond 10³⁰ would be taken for infinite."""


def exact(value: float) -> Fraction:
    return INFINITE if np.isinf(value) else min(Fraction(float(value)), INFINITE)


class Row(NamedTuple):
    """One choice: a distribution fits, in rationals."""

    lower: list[float]
    upper: list[float]

    @property
    def fits(self) -> bool:
        return sum(map(Fraction, self.lower)) <= 1 <= sum(map(Fraction, self.upper))


@st.composite
def rows(draw: st.DrawFn, most: int = 4) -> Row:
    k = draw(st.integers(1, most))
    upper = draw(st.lists(st.sampled_from(NEAR), min_size=k, max_size=k))
    lower = [draw(st.sampled_from([x for x in [0.0, *NEAR] if x <= high])) for high in upper]
    free = draw(st.integers(0, k - 1))
    if sum(map(Fraction, upper)) < 1:
        upper[free] = 1.0
    while sum(map(Fraction, lower)) > 1:
        lower[lower.index(max(lower))] = 0.0
    row = Row(lower, upper)
    assert row.fits
    return row


def interval_model(row: Row) -> IntervalMDP:
    """The row in state 0; its successors 1..k stay where they are."""
    k = len(row.lower)
    structure = Structure(
        choice_start=np.arange(k + 2),
        transition_start=np.concatenate([[0], k + np.arange(k + 1)]),
        successor=np.concatenate([np.arange(1, k + 1), np.arange(1, k + 1)]).astype(np.int32),
    )
    ones = np.ones(k)
    return IntervalMDP(structure, np.append(row.lower, ones), np.append(row.upper, ones))


def as_in_models(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arrays of models cannot be written to: kernels are compiled for such ones already."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def spread(row: Row, x: list[float], maximise: bool) -> list[Fraction]:
    """Nature's best distribution, equal values in the order of the row."""
    mass = [Fraction(v) for v in row.lower]
    rest = 1 - sum(mass)
    for i in sorted(range(len(x)), key=lambda i: (-x[i] if maximise else x[i], i)):
        take = min(rest, Fraction(row.upper[i]) - mass[i])
        mass[i], rest = mass[i] + take, rest - take
    assert rest == 0
    return mass


@given(st.lists(st.sampled_from([*NEAR, *(-x for x in NEAR)]), min_size=1, max_size=8))
def test_a_distilled_sum_has_the_sign_of_the_sum(terms: list[float]) -> None:
    total = sum(map(Fraction, terms), Fraction(0))
    found = Fraction(distil(terms[0], np.array(terms[1:]), len(terms) - 1))
    assert (found > 0) == (total > 0) and (found < 0) == (total < 0)
    assert abs(found - total) <= abs(total) * Fraction(1, 2**52)


@given(row=rows(), data=st.data())
def test_what_nature_can_and_must_do(row: Row, data: st.DataObject) -> None:
    k = len(row.lower)
    inside = data.draw(st.lists(st.booleans(), min_size=k, max_size=k))
    low, high = list(map(Fraction, row.lower)), list(map(Fraction, row.upper))
    leaves = sum(low) < 1
    possible = [h > 0 and (a > 0 or leaves) for a, h in zip(low, high, strict=True)]
    certain = [p and (low[i] > 0 or sum(high) - high[i] < 1) for i, p in enumerate(possible)]
    support = Support.of(interval_model(row))
    assert support.possible[:k].tolist() == possible
    assert support.certain[:k].tolist() == certain
    within = sum(h for h, here in zip(high, inside, strict=True) if here)
    beyond = sum(h for h, here in zip(high, inside, strict=True) if not here)
    forced = any(a > 0 for a, here in zip(low, inside, strict=True) if not here)
    drawn = any(a > 0 for a, here in zip(low, inside, strict=True) if here)
    states, rows = np.array([False, *inside]), support.arrays.rows
    assert can_stay(rows, 0, states, True) == (not forced and within >= 1)
    assert must_enter(rows, 0, states) == (drawn or beyond < 1)


@given(row=rows(), data=st.data(), maximise=st.booleans())
def test_the_optimum_is_enclosed_and_its_support_exact(row: Row, data: st.DataObject, maximise: bool) -> None:
    k = len(row.lower)
    values = st.sampled_from([0.0, 0.25, 1.0, 1.0, 3.0])
    x = data.draw(st.lists(values, min_size=k, max_size=k))
    mass = spread(row, x, maximise)
    value = sum((m * Fraction(v) for m, v in zip(mass, x, strict=True)), Fraction(0))
    start, successor, states = np.array([0, k]), np.arange(k, dtype=np.int32), np.array([0, 1])
    bounds = np.array(row.lower), np.array(row.upper)
    model = ModelArrays(*as_in_models(states, start, successor, *bounds), False)
    none, modes, leader = np.empty(0), np.zeros(1, np.int8), np.zeros(1, np.int32)
    system = SystemArrays(none, none, modes, leader, True, maximise, 0.0, np.inf, 0.0)

    def scratch() -> Scratch:
        return Scratch(np.arange(k, dtype=np.uint16), np.empty(k), np.empty(k))

    for upward in (False, True):
        out = np.empty(1)
        safe_choice_values((model, scratch()), None, system, np.array(x), upward, (0, 1), out, True)
        found = Fraction(float(out[0]))
        assert found >= value if upward else found <= value
        assert abs(found - value) <= Fraction(3 * (k + 8), 2**50)
        worth = [v for v, m in zip(x, mass, strict=True) if m > 0]
        assert min(worth) <= found <= max(worth)
    answer = np.empty(k)
    answers((model, scratch()), None, np.array(x), maximise, answer)
    assert (answer > 0).tolist() == [m > 0 for m in mass]
    best = np.empty(k, np.bool_)
    optimal(model, scratch(), np.array(row.upper) > 0, np.array(x), maximise, best)
    assert all(b for b, m in zip(best, mass, strict=True) if m > 0)


def random_near_one(rng: np.random.Generator, states: int) -> TinyModel:
    """Two or three successors a choice, bounds that nearly or exactly sum to 1 in every way."""
    choices = []
    for _ in range(states):
        own = []
        for _ in range(int(rng.integers(1, 3))):
            while True:
                k = int(rng.integers(1, min(3, states) + 1))
                upper = rng.choice(NEAR_IN_MODELS, k)
                lower = np.where(rng.random(k) < 0.5, 0.0, np.minimum(rng.choice(NEAR_IN_MODELS, k), upper))
                row = Row(lower.tolist(), upper.tolist())
                if row.fits:
                    break
            to = rng.choice(states, k, replace=False)
            entries = zip(to.tolist(), map(Fraction, row.lower), map(Fraction, row.upper), strict=True)
            own.append(tuple(entries))
        choices.append(tuple(own))
    return TinyModel(tuple(choices))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", [ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD, ObjectiveKind.TOTAL])
@pytest.mark.parametrize(("agent", "nature"), list(product(Direction, Direction)))
def test_random_models_near_one(kind: ObjectiveKind, agent: Direction, nature: Direction) -> None:
    decided = 0
    for seed in range(6):
        rng = np.random.default_rng([7, seed])
        model = random_near_one(rng, int(rng.integers(2, 4)))
        objective = random_objective(rng, model, kind, agent, nature)
        values = [min(value, INFINITE) for value in brute_force(model, objective)]
        solution = solve(model.interval_model(), objective, iterations=FEW_ITERATIONS)
        for s, value in enumerate(values):
            assert exact(solution.lower[s]) <= value <= exact(solution.upper[s]), (seed, s, float(value))
        decided += solution.is_certified
        if seed < 2:
            certificate = to_certificate(to_problem(model.interval_model(), objective), solution)
            for arithmetic in (FLOAT64, RATIONAL):
                assert check(certificate, arithmetic).valid, (seed, check(certificate, arithmetic).checks)
    assert decided >= 3  # most have values that float64 can tell


@pytest.mark.thinned(2)
@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(2))
def test_the_gpu_reads_bounds_near_one_the_same_way(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    model = random_near_one(rng, 3)
    for kind in (ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD):
        for agent, nature in product(Direction, Direction):
            objective = random_objective(rng, model, kind, agent, nature)
            values = [min(value, INFINITE) for value in brute_force(model, objective)]
            found = solve(model.interval_model(), objective, iterations=FEW_ITERATIONS, device=DEVICE)
            for s, value in enumerate(values):
                assert exact(found.lower[s]) <= value <= exact(found.upper[s]), (s, float(value))


def solved(text: str, prop: str) -> Solution:
    """The property of a PRISM text."""
    model = load_prism_text(text, "near.prism")
    objective = parse_query(prop, model.structure, PropertyOptions(is_interval=True)).objective
    return solve(model, objective, iterations=FEW_ITERATIONS)


STAYING = """mdp
module m
  s : [0..2] init 0;
  [a] s=0 -> [1e-15,1e-15]:(s'=1) + [0,0.9999999999999982]:(s'=0) + [0,1]:(s'=2);
  [b] s>0 -> true;
endmodule
"""

LEAKING = """mdp
module m
  s : [0..2] init 0;
  [a] s=0 -> [0,0.9999999999999995]:(s'=1) + [0,1]:(s'=2);
  [b] s>0 -> true;
endmodule
rewards s=0 : 3; endrewards
"""


def test_a_remainder_is_not_dropped() -> None:
    """Two states exchange nothing but a remainder of 8·10⁻¹⁶: 5/9 in decimals."""
    solution = solved(STAYING, "Pmaxmax=? [ F s=1 ]")
    assert exact(solution.lower[0]) <= Fraction(5, 9) <= exact(solution.upper[0])
    assert not solution.is_certified


def test_a_remainder_that_is_lost_costs_infinitely_much() -> None:
    solution = solved(LEAKING, "Rminmin=? [ F s=1 ]")
    assert solution.lower[0] == np.inf and solution.is_certified


def test_decimals_that_sum_to_one_leave_nothing() -> None:
    """0.7 + 0.3 is 1 although float64(0.7) + float64(0.3) is less; nature can keep to s=0 and s=1."""
    text = """mdp
module m
  s : [0..2] init 0;
  [a] s=0 -> 0.7:(s'=0) + [0,0.3]:(s'=1) + [0,0.3]:(s'=2);
  [b] s=1 -> (s'=0);
  [c] s=2 -> true;
endmodule
rewards true : 1; endrewards
"""
    assert solved(text, "Pmaxmin=? [ F s=2 ]").upper[0] == 0.0
    text = text.replace("0.7:(s'=0) + [0,0.3]:(s'=1) + [0,0.3]", "[0.7,1]:(s'=0) + [0.3,1]:(s'=1) + [0,0.3]")
    assert solved(text, "Pmaxmax=? [ F s=2 ]").upper[0] == 0.0
    text = text.replace(
        "[0.7,1]:(s'=0) + [0.3,1]:(s'=1) + [0,0.3]", "[0,1/3]:(s'=0) + [0,2/3]:(s'=1) + [0,0.3]"
    )
    assert solved(text, "Pmaxmin=? [ F s=2 ]").upper[0] == 0.0


def test_bounds_that_float64_cannot_tell_from_one_are_refused() -> None:
    text = LEAKING.replace("0.9999999999999995", "0.99999999999999999999")
    with pytest.raises(InputError) as caught:
        solved(text, "Rminmin=? [ F s=1 ]")
    assert str(caught.value) == (
        "near.prism:4:14: upper bounds of this command miss 1 by 1e-20 in state (s=0), which is less than "
        "float64 can tell, and what nature can do depends on it\n"
        "      [a] s=0 -> [0,0.99999999999999999999]:(s'=1) + [0,1]:(s'=2);\n"
        "                 ^\n"
        "hint: write bounds that sum to 1 exactly, or that stay below it by 1e-15 or more"
    )


def test_differences_are_rounded_only_where_they_must_be() -> None:
    """Exactly the least double that is not below high − low; nothing is added to what is exact."""
    assert difference(1.0, 1.0) == 0.0 and difference(0.75, 0.25) == 0.5
    assert difference(1.0, 1e-300) == 1.0 and -difference(1e-300, 1.0) == math.nextafter(1.0, 0.0)
    assert difference(math.inf, 1.0) == difference(math.inf, math.inf) == math.inf
    rng = np.random.default_rng(3)
    for high, low in (rng.random((500, 2)) * 10.0 ** rng.integers(-20, 3, (500, 2))).tolist():
        exact, got = Fraction(high) - Fraction(low), difference(high, low)
        assert Fraction(got) >= exact > Fraction(math.nextafter(got, -math.inf))
