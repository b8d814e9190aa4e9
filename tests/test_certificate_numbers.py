"""The two arithmetics of the checker: what is rounded is rounded to the side that was asked for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.certificate.game.laws import enclose
from tightrope.certificate.numbers import LONGDOUBLE, RATIONAL, OutOfRange

BOTH = pytest.mark.parametrize("n", [LONGDOUBLE, RATIONAL], ids=["longdouble", "rational"])
fractions = st.fractions(max_denominator=10**40) | st.builds(
    lambda p, q, e: Fraction(p, q) * Fraction(10) ** e,
    st.integers(-(10**50), 10**50),
    st.integers(1, 10**50),
    st.integers(-280, 280),
)


@BOTH
@given(values=st.lists(fractions, min_size=1, max_size=5))
def test_fractions_become_numbers_next_to_them(n, values):
    epsilon = Fraction(0) if n.exact else Fraction(float(n.epsilon))
    for value, held in zip(values, n.fractions(n.array(values)), strict=True):
        assert abs(held - value) <= epsilon * abs(value)
    low, high = (n.fractions(end) for end in enclose(n, values))
    for value, below, above in zip(values, low, high, strict=True):
        assert below <= value <= above
        assert above - below <= 8 * epsilon * abs(value) + Fraction(1, 10**4000)


@BOTH
@given(values=st.lists(fractions, min_size=1, max_size=5))
def test_doubles_on_either_side(n, values):
    held = n.array(values)
    for exact, up, down in zip(n.fractions(held), n.up(held).tolist(), n.down(held).tolist(), strict=True):
        assert down <= exact <= up
        assert up == down or math.nextafter(down, math.inf) == up


@BOTH
@given(value=st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_logarithms_and_roots_are_enclosed(n, value):
    held = n.array([value])
    (exact,) = n.fractions(held)
    (low,), (high,) = n.fractions(n.log_down(held)), n.fractions(n.log_up(held))
    assert low <= high and high - low < Fraction(1, 10**15)
    near = math.log(exact.numerator) - math.log(exact.denominator)
    assert float(low) - 1e-9 <= near <= float(high) + 1e-9
    (root,) = n.fractions(n.root_up(held))
    assert root**2 >= exact and root**2 <= exact * (1 + Fraction(1, 10**15))


def test_logarithms_in_rationals_are_those_of_more_digits():
    two = RATIONAL.array([2])
    digits = Fraction("0.69314718055994530941723212145817656807550013436025525412068")
    assert (
        RATIONAL.fractions(RATIONAL.log_down(two))[0] <= digits <= RATIONAL.fractions(RATIONAL.log_up(two))[0]
    )
    assert LONGDOUBLE.fractions(LONGDOUBLE.log_down(LONGDOUBLE.array([2])))[0] <= digits


@BOTH
@given(value=fractions)
def test_trimming_goes_to_the_side_that_is_asked_for(n, value):
    held = n.array([value])
    (exact,) = n.fractions(held)
    (up,), (down,) = n.fractions(n.trim(held, True)), n.fractions(n.trim(held, False))
    assert down <= exact <= up
    assert up - down <= abs(exact) / 2**100


def test_what_is_no_number_proves_nothing():
    with np.errstate(all="ignore"):
        for wrong in (np.array([np.inf]), np.array([np.nan])):
            for ask in (LONGDOUBLE.fractions, LONGDOUBLE.up, LONGDOUBLE.down, LONGDOUBLE.root_up):
                with pytest.raises(OutOfRange):
                    ask(wrong.astype(np.longdouble))
    for n in (LONGDOUBLE, RATIONAL):
        for value in (0, -1):
            with pytest.raises(OutOfRange):
                n.log_up(n.array([value]))
