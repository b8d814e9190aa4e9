"""The two arithmetics keep what they promise: on these promises every error bound of the checker rests."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.certificate.game.laws import enclose
from tightrope.certificate.numbers import LONGDOUBLE, RATIONAL

BOTH = pytest.mark.parametrize("n", [LONGDOUBLE, RATIONAL], ids=["longdouble", "rational"])
WIDE = st.builds(
    lambda top, bottom, scale: Fraction(top, bottom) * Fraction(10) ** scale,
    st.integers(-(2**300), 2**300),
    st.integers(1, 2**200),
    st.integers(-350, 350),
)


@BOTH
@given(value=WIDE)
def test_fractions_come_back_within_epsilon(n, value: Fraction) -> None:
    (near,) = n.fractions(n.array([value]))
    assert abs(near - value) <= Fraction(float(n.epsilon)) * abs(value)
    low, high = (n.fractions(end)[0] for end in enclose(n, [value]))
    assert low <= value <= high


@BOTH
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_exact(n, value: float) -> None:
    assert n.fractions(n.array(np.array([value])))[0] == Fraction(value)


@BOTH
@given(value=WIDE.filter(lambda value: abs(value) < 10**300))
def test_doubles_around_a_number(n, value: Fraction) -> None:
    exact = n.fractions(n.array([value]))[0]
    low, high = float(n.down(n.array([value]))[0]), float(n.up(n.array([value]))[0])
    assert (low == -math.inf or Fraction(low) <= exact) and (high == math.inf or exact <= Fraction(high))


@BOTH
@given(value=WIDE.map(abs))
def test_roots_are_not_too_small(n, value: Fraction) -> None:
    held = n.array([value])
    (root,) = n.fractions(n.root_up(held))
    (exact,) = n.fractions(held)
    assert root * root >= exact and root * root <= exact * (1 + Fraction(1, 10**15)) + Fraction(1, 10**300)


@BOTH
@given(value=WIDE.map(abs).filter(bool))
def test_logarithms_are_enclosed(n, value: Fraction) -> None:
    held = n.array([value])
    low, high = (n.fractions(end)[0] for end in (n.log_down(held), n.log_up(held)))
    assert low <= high and high - low <= Fraction(1, 10**12) * (1 + abs(high))
    near = math.log(value.numerator) - math.log(value.denominator)
    assert float(low) - 1e-9 <= near <= float(high) + 1e-9


@BOTH
@pytest.mark.parametrize("value", [1, 2, 3, Fraction(1, 2), Fraction(10**30 + 1, 10**30), 10**60])
def test_both_arithmetics_agree_on_logarithms(n, value: Fraction) -> None:
    ends = [
        e.fractions(log(e.array([Fraction(value)])))[0]
        for e in (LONGDOUBLE, RATIONAL)
        for log in (e.log_down, e.log_up)
    ]
    assert max(ends[0], ends[2]) <= min(ends[1], ends[3])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_is_refused(value: float) -> None:
    """A longdouble that overflowed must never turn into a fraction: any fraction would be wrong."""
    odd = np.array([np.longdouble(value)])
    with np.errstate(all="ignore"):
        for ask in (LONGDOUBLE.fractions, LONGDOUBLE.root_up, LONGDOUBLE.log_up, LONGDOUBLE.log_down):
            with pytest.raises(ArithmeticError):
                ask(odd)
        assert not LONGDOUBLE.is_finite(odd)


@BOTH
@pytest.mark.parametrize("value", [0, -1])
def test_logarithms_of_nothing_are_refused(n, value: int) -> None:
    with pytest.raises((ArithmeticError, ValueError)), np.errstate(all="ignore"):
        n.log_up(n.array([Fraction(value)]))
