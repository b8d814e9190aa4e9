"""The expression table: interning, exact values, complements and ranges against brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError
from tightrope.model.expressions import ExpressionTable
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box

NAMES = ("p", "q", "r")
p, q, r = (Polynomial.variable(i) for i in range(3))

coefficients = st.fractions(min_value=-3, max_value=3, max_denominator=20)
monomials = st.dictionaries(st.integers(0, 2), st.integers(1, 3), max_size=2).map(
    lambda d: tuple(sorted(d.items()))
)
polynomials = st.dictionaries(monomials, coefficients, max_size=4).map(Polynomial)
points = st.tuples(*[st.fractions(min_value=-2, max_value=2, max_denominator=16)] * 3)


def table_of(*given_polynomials):
    table = ExpressionTable(NAMES)
    indices = np.array([table.add(f) for f in given_polynomials], dtype=np.int32)
    return table.freeze(indices)


@given(polynomials, polynomials, points)
def test_polynomial_arithmetic_commutes_with_evaluation(f, g, theta):
    assert (f + g).evaluate(theta) == f.evaluate(theta) + g.evaluate(theta)
    assert (f - g).evaluate(theta) == f.evaluate(theta) - g.evaluate(theta)
    assert (f * g).evaluate(theta) == f.evaluate(theta) * g.evaluate(theta)
    assert (2 - f / 3).evaluate(theta) == 2 - f.evaluate(theta) / 3


@given(st.lists(polynomials, min_size=1, max_size=6), points)
def test_values_are_exact_and_floats_nearest(fs, theta):
    expressions, index = table_of(*fs)
    exact = expressions.exact_values(theta).to_fractions()
    assert [exact[i] for i in index] == [f.evaluate(theta) for f in fs]
    assert expressions.values(theta).tolist() == [v.numerator / v.denominator for v in exact]
    many = expressions.values_many(np.array([[float(x) for x in theta]] * 2))
    np.testing.assert_allclose(many, [[float(v) for v in exact]] * 2, rtol=1e-12, atol=1e-12)


@given(st.lists(polynomials, min_size=1, max_size=6))
def test_equal_polynomials_share_an_index_and_others_do_not(fs):
    expressions, index = table_of(*fs, *fs)
    assert len(expressions) == len(set(fs))
    assert index[: len(fs)].tolist() == index[len(fs) :].tolist()
    for f, i in zip(fs, index, strict=False):
        assert expressions.polynomial(int(i)) == f
        assert expressions.index_of(f) == i
        assert expressions.degrees[i] == f.degree
        assert expressions.is_constant[i] == f.is_constant


@given(st.lists(polynomials, min_size=1, max_size=5))
def test_complements_are_found(fs):
    expressions, index = table_of(*fs, *(1 - f for f in fs))
    for k in range(len(fs)):
        assert expressions.complement[index[k]] == index[len(fs) + k]
        assert expressions.complement[index[len(fs) + k]] == index[k]


def test_complement_is_minus_one_where_the_table_has_none():
    expressions, _ = table_of(p, Polynomial.constant(Fraction(1, 2)))
    assert expressions.complement.tolist() == [-1, 1]


def test_sums_products_and_unused_rows():
    table = ExpressionTable(NAMES)
    a, b = table.add(p), table.add(1 - p)
    assert table.add(table.function(a) + table.function(b)) == ExpressionTable.ONE
    assert table.function(table.add(table.function(a) * table.function(b))) == p - p * p
    expressions, index = table.freeze(np.array([b, b]))
    assert (len(expressions), index.tolist()) == (1, [0, 0])
    assert expressions.text(0) == "1 - p"
    assert len(expressions.monomials) == 2


@given(st.lists(polynomials, min_size=1, max_size=4), points, points)
def test_ranges_enclose_the_values_on_the_box(fs, first, second):
    lower = [min(a, b) for a, b in zip(first, second, strict=True)]
    upper = [max(a, b) for a, b in zip(first, second, strict=True)]
    expressions, _ = table_of(*fs)
    low, high = ranges_over_box(expressions, lower, upper)
    steps = [Fraction(0), Fraction(1, 3), Fraction(1)]
    for weights in product(steps, repeat=3):
        theta = [a + w * (b - a) for a, b, w in zip(lower, upper, weights, strict=True)]
        for e, value in enumerate(expressions.exact_values(theta).to_fractions()):
            assert Fraction(low[e]) <= value <= Fraction(high[e])


@given(st.lists(st.tuples(coefficients, coefficients, coefficients, coefficients), min_size=1, max_size=4))
def test_ranges_of_multilinear_expressions_are_tight(rows):
    fs = [a + b * p + c * q + d * p * q for a, b, c, d in rows]
    expressions, index = table_of(*fs)
    box = (Fraction(-1, 3), Fraction(2, 7), Fraction(0)), (Fraction(1, 2), Fraction(5, 7), Fraction(0))
    low, high = ranges_over_box(expressions, *box)
    corners = list(product(*zip(*box, strict=True)))
    for f, e in zip(fs, index, strict=True):
        values = [f.evaluate(corner) for corner in corners]
        assert low[e] == pytest.approx(float(min(values)), abs=1e-13)
        assert high[e] == pytest.approx(float(max(values)), abs=1e-13)


@pytest.mark.parametrize(
    ("theta", "message"),
    [([0.5], "the point has 1 values, the model has 3 parameters"), ([0.5, float("nan"), 0], "'q' is nan")],
)
def test_wrong_points_are_refused(theta, message):
    expressions, _ = table_of(p)
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        expressions.values(theta)
