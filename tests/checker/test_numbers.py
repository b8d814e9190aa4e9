"""The contract of the checker's two arithmetics, asked of rationals over all magnitudes: on it every error
bound of the checker rests."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope_check import numbers
from tightrope_check.logarithms import log_below, log_down, log_up, root_up
from tightrope_check.numbers import FLOAT64, RATIONAL, OutOfRange, as_fraction, quick

BOTH = pytest.mark.parametrize("n", [FLOAT64, RATIONAL], ids=["float64", "rational"])
ETA = Fraction(2) ** -1074
LARGEST = Fraction(np.finfo(np.float64).max)
UNIT = Fraction(2) ** -53
RANGE = Fraction(2) ** 1023

fractions = st.fractions(max_denominator=10**40) | st.builds(
    lambda p, q, e: Fraction(p, q) * Fraction(10) ** e,
    st.integers(-(10**50), 10**50),
    st.integers(1, 10**50),
    st.sampled_from([-5000, -400, -330, -324, -320, -310, -308, -300, -150, -16, 0, 16, 150, 300, 307, 5000]),
)
doubles = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, 5e-324, -5e-324, 2.0**-1022, 2.0**-537, 2.0**-538, 1 + 2.0**-52, 1 - 2.0**-53, 1e308, -1.7e308]
)


@BOTH
@given(values=st.lists(fractions, min_size=1, max_size=5))
def test_fractions_become_numbers_next_to_them(n, values):
    for value, held in zip(values, n.array(values).tolist(), strict=True):
        if n.exact:
            assert as_fraction(held) == value
        elif abs(value) <= LARGEST:
            assert abs(Fraction(held) - value) <= UNIT * abs(value) + ETA
        else:
            assert held in (math.inf, -math.inf) or abs(Fraction(held)) == LARGEST
    low, high = n.enclose(values)
    for value, below, above in zip(values, low.tolist(), high.tolist(), strict=True):
        if n.exact:
            assert as_fraction(below) == value == as_fraction(above)
        else:
            assert below <= value <= above
            assert math.nextafter(below, math.inf) >= above


@BOTH
@given(value=doubles)
def test_doubles_are_exact(n, value):
    assert n.fractions(n.array(np.array([value])))[0] == Fraction(value)
    assert n.up(n.array([value]))[0] == value == n.down(n.array([value]))[0]


@given(values=st.lists(fractions, min_size=1, max_size=5))
def test_doubles_on_either_side(values):
    held = RATIONAL.array(values)
    for exact, up, down in zip(values, RATIONAL.up(held).tolist(), RATIONAL.down(held).tolist(), strict=True):
        assert down <= exact <= up
        assert up == down or math.nextafter(down, math.inf) == up


def test_what_is_too_small_is_between_nothing_and_the_least_double():
    tiny = Fraction(1, 10**5000)
    low, high = FLOAT64.enclose([tiny, -tiny, 1 - tiny, tiny + 1])
    assert low.tolist() == [0.0, -5e-324, 1 - 2.0**-53, 1.0]
    assert high.tolist() == [5e-324, 0.0, 1.0, 1 + 2.0**-52]
    low, high = FLOAT64.enclose([1 / tiny, -1 / tiny])
    assert low.tolist() == [float(LARGEST), -math.inf] and high.tolist() == [math.inf, -float(LARGEST)]


@given(a=doubles, b=doubles)
def test_one_operation_errs_by_what_is_said(a, b):
    """Lemmas 1 to 3 of the module."""
    with np.errstate(all="ignore"):
        x, y = np.array([a]), np.array([b])
        found = {"+": x + y, "-": x - y, "*": x * y, "/": x / y if b else None, "r": np.sqrt(np.abs(x))}
    p, q = Fraction(a), Fraction(b)
    exact = {"+": p + q, "-": p - q, "*": p * q, "/": p / q if b else None}
    for name, value in exact.items():
        if value is not None and abs(value) < RANGE:
            assert abs(Fraction(float(found[name][0])) - value) <= UNIT * abs(value) + (
                ETA if name in "*/" else 0
            )
    assert (found["-"][0] == 0) == (a == b)
    root = Fraction(float(found["r"][0]))
    assert (root / (1 + UNIT)) ** 2 <= abs(p) <= (root / (1 - UNIT)) ** 2


@given(
    pairs=st.lists(st.tuples(doubles, doubles), min_size=1, max_size=12),
    scale=st.sampled_from([1.0, 2.0**-500, 2.0**-1000]),
    order=st.randoms(use_true_random=False),
)
def test_sums_of_products_err_by_what_is_said(pairs, scale, order):
    """The lemma about `error`: any order, underflow and cancellation included."""
    with np.errstate(all="ignore"):
        a = np.array([p for p, _ in pairs]) * scale
        b = np.array([q for _, q in pairs])
        terms = a * b
        size = np.abs(terms).sum()
        if not np.isfinite(4 * size):
            return
        exact = sum(
            (Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0)
        )
        for _ in range(3):
            total, slack = 0.0, FLOAT64.error(len(pairs), size)
            for term in order.sample(terms.tolist(), len(pairs)):
                total += term
            assert abs(Fraction(total) - exact) <= Fraction(float(slack))


@pytest.mark.parametrize("scale", [1.0, 2.0**-1060, 1e300])
def test_sums_of_a_million_terms(scale):
    draw = np.random.default_rng(3)
    terms = draw.standard_normal(10**6) * scale
    terms = np.concatenate([terms, -terms[::-1], [scale]])
    exact = Fraction(math.fsum(terms.tolist()))  # correctly rounded, and the sum is `scale`
    slack = Fraction(float(FLOAT64.error(len(terms), np.abs(terms).sum())))
    assert exact == Fraction(scale)
    for total in (terms.sum(), np.add.reduceat(terms, [0])[0], np.cumsum(terms)[-1], terms[::-1].sum()):
        assert abs(Fraction(float(total)) - exact) <= slack


def test_nothing_is_free_of_error_by_underflow():
    product = np.array([2.0**-600]) * np.array([2.0**-600])
    assert product[0] == 0 and FLOAT64.error(1, np.abs(product))[0] >= 2.0**-1200
    assert RATIONAL.error(1, product) == 0


positive = fractions.map(abs).filter(bool)
_MORE = Context(prec=100, Emin=-(10**7), Emax=10**7)


@given(value=positive | st.integers(1, 400).map(lambda k: 1 + Fraction(1, 2**k)) | st.just(Fraction(1)))
def test_logarithms_and_roots_of_rationals_are_enclosed(value):
    held = RATIONAL.array([value])
    (low,), (high,) = RATIONAL.fractions(log_down(held)), RATIONAL.fractions(log_up(held))
    quotient = _MORE.divide(Decimal(value.numerator), Decimal(value.denominator))
    true, doubt = Fraction(_MORE.ln(quotient)), Fraction(1, 10**90)  # another program's, of more digits
    assert low - doubt <= true <= high + doubt and high - low <= Fraction(1, 2**120)
    assert value != 1 or low == high == 0
    (root,) = RATIONAL.fractions(root_up(RATIONAL, held))
    assert value <= root**2 <= value * (1 + Fraction(1, 2**120))


@given(value=doubles.map(abs).filter(bool))
def test_roots_of_doubles_are_enclosed(value):
    held = FLOAT64.array([value])
    root = Fraction(float(root_up(FLOAT64, held)[0]))
    assert Fraction(value) <= root**2 <= Fraction(value) * (1 + 8 * UNIT)


@given(values=st.lists(positive, min_size=1, max_size=4))
def test_numbers_are_the_same_without_flint(values):
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for kind in (numbers._rational, Fraction):
            patch.setattr(numbers, "_rational", kind)
            held = RATIONAL.array(values)
            made = (
                log_up(held),
                log_down(held),
                root_up(RATIONAL, held),
                RATIONAL.trim(held, True),
            )
            found.append([RATIONAL.fractions(part) for part in made])
    assert found[0] == found[1]


def test_known_digits():
    digits = Fraction("0.69314718055994530941723212145817656807550013436025525412068")
    two = RATIONAL.array([2])
    low, high = (RATIONAL.fractions(log(two))[0] for log in (log_down, log_up))
    assert low <= digits <= high
    assert log_below(Fraction(2)) <= quick(digits)
    assert root_up(RATIONAL, RATIONAL.array([49])).tolist() == [7]
    assert root_up(RATIONAL, RATIONAL.array([0, -3])).tolist() == [0, 0]


@BOTH
@given(value=fractions)
def test_trimming_goes_to_the_side_that_is_asked_for(n, value):
    if not n.exact and abs(value) > LARGEST:
        return
    held = n.array([value])
    (exact,) = n.fractions(held)
    (up,), (down,) = n.fractions(n.trim(held, True)), n.fractions(n.trim(held, False))
    assert down <= exact <= up
    assert up - down <= abs(exact) / 2**120
    power = Fraction(2) ** -3000
    assert RATIONAL.trim(RATIONAL.array([power]), True)[0] == RATIONAL.array([power])[0]


def test_what_is_no_number_proves_nothing():
    with np.errstate(all="ignore"):
        for wrong in (np.array([np.inf]), np.array([-np.inf]), np.array([np.nan])):
            assert not np.all(FLOAT64.finite(wrong))
            for ask in (FLOAT64.fractions, FLOAT64.up, FLOAT64.down, partial(root_up, FLOAT64)):
                with pytest.raises(OutOfRange):
                    ask(wrong)
    for value in (0, -1):
        with pytest.raises(OutOfRange):
            log_up(RATIONAL.array([value]))
