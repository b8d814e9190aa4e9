"""ParametricMDP: what construction proves, what it refuses, and instantiation."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import repeats
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function, build_from_rows
from tightrope.model.expressions import Signatures
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters, parse_domain
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import bernstein, halves, prove_ranges
from tightrope.model.structure import Structure

BOX = Parameters.box(p=(0.1, 0.9))
(p,) = BOX.symbols()
STAY = (1, "stay", {1: 1})


class Place(NamedTuple):
    x: int
    lucky: bool


def walk(place):
    if place.x in (0, 3):
        return {"stay": {place: 1}}
    right, left = Place(place.x + 1, True), Place(place.x - 1, place.lucky)
    return {"walk": {right: p, left: 1 - p}, "rest": {place: 1, right: 0}}


def test_a_model_from_a_successor_function():
    model = build_from_function(
        Place(1, False),
        walk,
        BOX,
        labels={"home": lambda place: place.x == 3},
        state_rewards={"time": lambda place: 1.0},
        choice_rewards={"effort": lambda place, action: 2.5 if action == "walk" else 0.0},
    )
    assert (model.states, model.choices, model.transitions) == (6, 9, 12)
    assert model.structure.action_names == ("walk", "rest", "stay")
    assert model.structure.state_name(0) == "(x=1,lucky=false)"
    assert [model.expressions.text(e) for e in range(3)] == ["1", "p", "1 - p"]
    assert np.flatnonzero(model.labels["home"]).tolist() == [
        s for s in range(6) if model.valuations["x"][s] == 3
    ]
    assert model.rewards["effort"].choice.tolist() == [2.5, 0, 2.5, 0, 0, 0, 2.5, 0, 0]
    assert model.rewards["time"].per_choice(model.structure).tolist() == [1.0] * 9
    assert model.labels["init"].tolist() == [True] + [False] * 5
    instance = model.instantiate(BOX.point({"p": 0.3}))
    assert isinstance(instance, MDP)
    assert instance.probability[:2].tolist() == [0.3, 0.7]


REFUSED = [
    (
        [(0, "a", {0: p, 1: 1 - p + 0.1 * p}), STAY],
        BOX,
        "choice 'a' of state 0: probabilities sum to 1/10*p + 1, not 1",
    ),
    ([(0, "a", {0: p}), STAY], BOX, "probabilities sum to p, not 1"),
    ([(0, "a", {0: p, 1: 0.5 - p}), STAY], BOX, "probabilities sum to 1/2, not 1"),
    (
        [(0, "a", {0: 2 * p, 1: 1 - 2 * p}), STAY],
        BOX,
        "the probability 2*p is 1.8 at p=0.9, not within [0, 1]",
    ),
    ([(0, "a", {0: 1.5, 1: -0.5}), STAY], BOX, "the probability 3/2 is 1.5"),
    ([(0, "a", {0: 3 * p * p, 1: 1 - 3 * p * p}), STAY], BOX, "the probability 3*p^2 is 2.43 at p=0.9"),
    ([(0, "a", {0: 1}), (2, "b", {0: 1})], BOX, "state 1 has no choice"),
    ([(0, "a", {1: 0}), STAY], BOX, "choice 'a' of state 0 has no transition"),
    ([(0, "a", {7: 1})], BOX, "leads to state 7, but the states are 0..0"),
    ([(0, "a", {0: (0.1, 0.3), 1: (0.1, 0.6)}), STAY], None, "upper bounds sum to 0.9 < 1"),
    ([(0, "a", {0: (0.6, 1), 1: (0.6, 1)}), STAY], None, "lower bounds sum to 1.2 > 1"),
    ([(0, "a", {0: (0.6, 0.5), 1: 1}), STAY], None, "bounds the wrong way round"),
    ([(0, "a", {0: p, 1: (0, 1)}), STAY], BOX, "both intervals and parameters"),
    ([], None, "at least one state"),
]


@pytest.mark.parametrize(("rows", "parameters", "message"), REFUSED)
def test_what_is_not_a_model_is_refused(rows, parameters, message):
    with pytest.raises(InputError) as caught:
        build_from_rows(rows, parameters)
    assert message in str(caught.value)


def test_an_empty_domain_is_refused():
    domain = parse_domain("p+q<=1/2, p>=0.3, q>=0.3", ["p", "q"])
    with pytest.raises(InputError, match="the domain is empty"):
        build_from_rows([(0, "a", {0: 1})], domain)


def test_the_range_is_that_of_the_domain_not_of_the_box():
    domain = parse_domain("a+b<=1", ["a", "b"])
    a, b = domain.symbols()
    rows = [(0, "go", {0: a + b, 1: 1 - a - b}), STAY]
    assert build_from_rows(rows, domain).unproved == ()
    with pytest.raises(InputError, match=r"the probability a \+ b is 2 at a=1, b=1"):
        build_from_rows(rows, Parameters.unit_box(["a", "b"]))


def test_affine_ranges_over_many_parameters_go_through_linear_programs():
    names = [f"w{i}" for i in range(12)]
    domain = parse_domain("+".join(names) + "<=1", names)
    total = sum(domain.symbols()[1:], domain.symbols()[0])
    assert build_from_rows([(0, "go", {0: total, 1: 1 - total}), STAY], domain).unproved == ()
    with pytest.raises(InputError, match="not within"):
        build_from_rows([(0, "go", {0: 1.5 * total, 1: 1 - 1.5 * total}), STAY], domain)


def test_a_square_that_touches_zero_inside_is_not_called_proved():
    touching = (1 - 3 * p) * (1 - 3 * p)
    box = Parameters.box(p=(0, 0.6))
    model = build_from_rows([(0, "go", {0: touching, 1: 1 - touching}), STAY], box)
    assert {model.expressions.text(e) for e in model.unproved} == {"9*p^2 - 6*p + 1", "-9*p^2 + 6*p"}


@settings(max_examples=repeats(16))
@given(st.integers(0, 10**6))
def test_range_proofs_agree_with_sampling(seed):
    rng = np.random.default_rng(seed)
    domain = parse_domain("p+q<=1", ["p", "q"]) if rng.random() < 0.5 else Parameters.unit_box(["p", "q"])
    x, y = domain.symbols()
    monomials = [x, y, x * y, x * x, x * x * y, y * y * y]
    f = sum((Fraction(int(c), 4) * m for c, m in zip(rng.integers(-2, 4, 6), monomials, strict=True)), 0 * x)
    f = f + Fraction(int(rng.integers(0, 4)), 4)
    model_rows = [(0, "go", {0: f, 1: 1 - f}), STAY]
    try:
        unproved = build_from_rows(model_rows, domain).unproved
    except InputError as error:
        assert "not within [0, 1]" in str(error)
        return
    grid = [(Fraction(i, 8), Fraction(j, 8)) for i in range(9) for j in range(9)]
    values = [f.evaluate(theta) for theta in grid if domain.contains(theta)]
    assert unproved or all(0 <= v <= 1 for v in values)


def test_halves_of_a_cell_have_its_bernstein_coefficients():
    x, y, z = Parameters.unit_box(["p", "q", "r"]).symbols()
    f = Fraction(1, 3) * x * x * y - 2 * y * y * y + x * z + Fraction(1, 7)
    low = (Fraction(1, 3), Fraction(0), Fraction(1, 5))
    high = (Fraction(1, 2), Fraction(1), Fraction(3, 4))
    whole = bernstein(f, low, high)
    for axis in range(3):
        middle = (low[axis] + high[axis]) / 2
        left, right = halves(whole, axis)
        ends = tuple(middle if i == axis else v for i, v in enumerate(high))
        starts = tuple(middle if i == axis else v for i, v in enumerate(low))
        assert left.shape == right.shape == whole.shape == (3, 4, 2)
        assert np.array_equal(left, bernstein(f, low, ends))
        assert np.array_equal(right, bernstein(f, starts, high))


def test_bernstein_coefficients_of_a_high_power_are_products_of_the_ends():
    power = Polynomial({((0, 300),): Fraction(1)})
    low, high = Fraction(1, 10), Fraction(9, 10)
    shifted = bernstein(Fraction(2, 3) - power, (low,), (high,))
    assert shifted.tolist() == [Fraction(2, 3) - low ** (300 - k) * high**k for k in range(301)]


def test_the_witness_lies_in_the_domain_and_shows_the_violation():
    domain = parse_domain("p+q<=1", ["p", "q"])
    x, y = domain.symbols()
    f = 5 * x * y
    narrow = parse_domain("0<=p<=0.4, 0<=q<=0.4", ["p", "q"])
    table = build_from_rows([(0, "go", {0: f, 1: 1 - f}), STAY], narrow).expressions
    witness = prove_ranges(table, domain).witness
    assert domain.contains(witness.point)
    assert table.polynomial(witness.expression).evaluate(witness.point) == witness.value
    assert not 0 <= witness.value <= 1


def test_instantiation_outside_the_domain_is_refused():
    model = build_from_rows([(0, "go", {0: p, 1: 1 - p}), STAY], BOX)
    with pytest.raises(InputError, match=r"the point p=0\.95 lies outside the domain"):
        model.instantiate([Fraction(95, 100)])


def test_interval_bounds_are_rounded_outward():
    model = build_from_rows([(0, "a", {0: (0.1, 0.3), 1: ("0.7", "9/10")}), STAY])
    assert isinstance(model, IntervalMDP)
    for low, high, meant in zip(model.lower, model.upper, [("0.1", "0.3"), ("0.7", "0.9")], strict=False):
        assert Fraction(low) <= Fraction(meant[0]) and Fraction(high) >= Fraction(meant[1])
        assert low == pytest.approx(float(meant[0])) and high == pytest.approx(float(meant[1]))


@given(st.integers(0, 10**6))
def test_signatures_are_the_distinct_tuples(seed):
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 4, size=30)
    start = np.r_[0, np.cumsum(length)]
    expression = rng.integers(0, 3, size=start[-1]).astype(np.int32)
    signatures = Signatures.of(start, expression, 3)
    tuples = [tuple(expression[start[c] : start[c + 1]].tolist()) for c in range(30)]
    shown = [
        tuple(signatures.expression[signatures.start[k] : signatures.start[k + 1]].tolist())
        for k in signatures.of_choice
    ]
    assert shown == tuples
    assert len(signatures) == len(set(tuples))


def test_the_hash_is_that_of_the_content():
    rows = [(0, "go", {0: p, 1: 1 - p}), STAY]
    same = build_from_rows(rows, BOX).hash()
    assert build_from_rows(rows, BOX).hash() == same
    assert build_from_rows([(0, "go", {0: p / 2, 1: 1 - p / 2}), STAY], BOX).hash() != same
    assert build_from_rows(rows, Parameters.box(p=(0.1, 0.8))).hash() != same
    assert build_from_rows(rows, BOX, labels={"x": [1]}).hash() != same


def test_structures_are_read_only_and_checked():
    structure = Structure(np.array([0, 1]), np.array([0, 1]), np.array([0]))
    with pytest.raises(ValueError, match="read-only"):
        structure.successor[0] = 1
    with pytest.raises(InputError, match="choice_start must rise from 0"):
        Structure(np.array([0, 2]), np.array([0, 1]), np.array([0]))
    with pytest.raises(InputError, match="initial state is 3"):
        Structure(np.array([0, 1]), np.array([0, 1]), np.array([0]), initial_states=(3,))
    with pytest.raises(InputError, match="label 'x' has 2 entries"):
        Structure(np.array([0, 1]), np.array([0, 1]), np.array([0]), labels={"x": np.ones(2, bool)})
