"""RationalArray agrees with fractions.Fraction, whatever the size of the numbers."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.numerics.rationals import RationalArray

small = st.fractions(min_value=-50, max_value=50, max_denominator=60)
huge = st.fractions(min_value=-(10**25), max_value=10**25, max_denominator=10**22)
pairs = st.lists(st.tuples(small | huge, small | huge), min_size=1, max_size=6)


@given(pairs, st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv]))
def test_arithmetic_is_that_of_fractions(values, operation):
    if operation is operator.truediv:
        values = [(a, b or Fraction(1, 7)) for a, b in values]
    left = RationalArray.from_fractions(a for a, _ in values)
    right = RationalArray.from_fractions(b for _, b in values)
    result = operation(left, right)
    assert result.to_fractions() == [operation(a, b) for a, b in values]
    terms = zip(result.numerator, result.denominator, strict=True)
    assert all(math.gcd(int(n), int(d)) == 1 and d > 0 for n, d in terms)


@given(st.lists(small | huge, min_size=1, max_size=6))
def test_rounding_to_floats_is_nearest_down_and_up(values):
    array = RationalArray.from_fractions(values)
    assert array.to_float().tolist() == [v.numerator / v.denominator for v in values]
    down, up = array.to_float_down(), array.to_float_up()
    for value, low, high in zip(values, down, up, strict=True):
        assert Fraction(low) <= value <= Fraction(high)
        assert low == high or high == math.nextafter(low, math.inf)


@given(st.lists(st.lists(small | huge, min_size=1, max_size=4), min_size=1, max_size=5))
def test_segment_sums(segments):
    array = RationalArray.from_fractions(v for segment in segments for v in segment)
    starts = np.cumsum([0, *(len(segment) for segment in segments)])[:-1]
    assert array.segment_sums(starts).to_fractions() == [sum(segment, Fraction(0)) for segment in segments]


def test_numbers_that_fit_stay_int64_and_return_to_it():
    big = RationalArray.from_fractions([Fraction(3 * 10**20)])
    assert big.numerator.dtype == object
    back = big * RationalArray.from_fractions([Fraction(1, 10**20)])
    assert back.numerator.dtype == np.int64
    assert back.to_fractions() == [3]


def test_division_by_zero_is_an_error():
    with pytest.raises(ZeroDivisionError):
        RationalArray.constant(1, 2) / RationalArray.from_integers(np.array([1, 0]))


def test_a_value_beyond_the_floats_rounds_to_infinity_on_the_safe_side_only():
    array = RationalArray.from_fractions([Fraction(10) ** 400])
    assert array.to_float_up().tolist() == [math.inf]
    assert array.to_float_down().tolist() == [np.finfo(np.float64).max]
