"""Numbers and polynomials as model files write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.io.drn.write import drn_function
from tightrope.io.rows import decimal_text, nearest_double
from tightrope.model.polynomial import (
    Polynomial,
    PolynomialSyntaxError,
    exact_number,
    parse_function,
    parse_polynomial,
    read_function,
)

NAMES = ("p", "q_1", "r")
INDEX = {name: k for k, name in enumerate(NAMES)}
P, Q, R = (Polynomial.variable(k) for k in range(3))


def constant(value: str) -> Polynomial:
    return Polynomial.constant(Fraction(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Polynomial({})),
        ("1/3", constant("1/3")),
        ("0.25", constant("1/4")),
        (".5*p", P / 2),
        ("1e-3", constant("1/1000")),
        ("(p+3)/(10)", P / 10 + constant("3/10")),
        ("(-1 * (p+(-7)))/(10)", constant("7/10") - P / 10),
        ("((p) * (q_1))/(1)", P * Q),
        ("(-1/3 * (p+(-1)))/(2)", (constant("1") - P) / 6),
        ("((p)^2 * (q_1))/(1)", P * P * Q),
        ("1 - p", constant("1") - P),
        ("1 - p^2", constant("1") - P * P),
        ("-p + 1", constant("1") - P),
        ("(-p)^2", P * P),
        ("-1*p^3", -(P * P * P)),
        ("2*-p", -(P + P)),
        ("p - -1", P + constant("1")),
        ("1/2/2*p*p", P * P / 4),
        ("p^0", constant("1")),
        ("  p  *  r ", P * R),
    ],
)
def test_polynomials(text: str, expected: Polynomial) -> None:
    assert parse_polynomial(text, INDEX) == expected


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "a number, a parameter or '(' expected, but the text ends", 0),
        ("p +", "a number, a parameter or '(' expected, but the text ends", 3),
        ("p q_1", "unexpected 'q_1'", 2),
        ("(p", "')' expected", 2),
        ("p)", "unexpected ')'", 1),
        ("p % 2", "unexpected character '%'", 2),
        ("x", "'x' is not a parameter of the model (they are: p, q_1, r)", 0),
        ("1/p", "1/p is not a polynomial: quotients are for probabilities only", 0),
        ("p/(1+r)", "p/(r + 1) is not a polynomial", 0),
        ("1/(p-p)", "division by 0", 1),
        ("p/0", "division by 0", 1),
        ("p/(1-1)", "division by 0", 1),
        ("p^r", "an exponent must be a whole number such as 2", 2),
        ("p^0.5", "an exponent must be a whole number such as 2", 2),
        ("p^65", "the exponent 65 is above 64", 2),
        ("1 + -p^2", "a sign before a power is ambiguous: write -1*p^2 or (-p)^2", 4),
        ("(" * 61 + "p" + ")" * 61, "more than 60 nested parentheses", 60),
        ("((1+p+q_1+r)^9)^8", "terms", 15),
        ("(p^60)^2", "the degree is above 64", 6),
        ("((2^64)^64)^64", "too many digits", 11),
        ("1e5000", "not a number", 0),
    ],
)
def test_what_is_wrong_and_where(text: str, message: str, offset: int) -> None:
    with pytest.raises(PolynomialSyntaxError) as caught:
        parse_polynomial(text, INDEX)
    assert message in str(caught.value)
    assert caught.value.offset == offset


coefficients = st.fractions(min_value=-10, max_value=10, max_denominator=10**6)
monomials = st.dictionaries(st.integers(0, 2), st.integers(1, 4)).map(lambda d: tuple(sorted(d.items())))
polynomials = st.dictionaries(monomials, coefficients, max_size=6).map(Polynomial)


@given(polynomials)
def test_what_is_written_is_read_back(polynomial: Polynomial) -> None:
    text = drn_function(polynomial, NAMES)
    assert parse_polynomial(text, INDEX) == polynomial
    assert not text.startswith("-p")  # which Storm would read as a base with its sign


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_written_so_that_they_come_back(value: float) -> None:
    assert nearest_double(decimal_text(value)) == value


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "1_000", "0x10", "1e", "1/0", "1/", "--1", "٣", "1e9999999999"]
)
def test_no_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a number|division by 0"):
        exact_number(text)


def test_numbers_beyond_the_doubles() -> None:
    assert exact_number("1e400") == 10**400
    with pytest.raises(ValueError, match="too large for a double"):
        nearest_double("1e400")


ATOMS = (
    "p",
    "q_1",
    "r",
    "1",
    "3/10",
    "0",
    "p^2",
    "r^0",
    "q_1^3",
    "2",
    "1/2",
    "1e-3",
    "(p+1)",
    "p^65",
    "x",
    "1/0",
    "",
)
ODD = (
    "",
    "-",
    "p-",
    "--p",
    "-p^2",
    "- p^2*r",
    "-p*r^2",
    "p*-1",
    "p^",
    "p^٢",
    "٣*p",
    "p - p",
    " p\n+ r",
    "-3*p^2",
    "p*3",
)


def outcome(read: Callable[[str, Mapping[str, int]], object], text: str) -> object:
    try:
        return read(text, INDEX)
    except PolynomialSyntaxError as error:
        return str(error), error.offset


def test_sums_that_are_read_fast_are_what_the_grammar_says() -> None:
    """Texts of every kind, wrong ones included; a fifth of them are plain sums."""
    random = Random(3)
    texts = list(ODD)
    for _ in range(1500):
        text = random.choice(("", "", "-", "+", "- "))
        for part in range(random.randint(1, 4)):
            text += random.choice((" + ", " - ", "+", "-", "*", "  + ")) if part else ""
            atoms = ATOMS[:11] if random.random() < 0.93 else ATOMS
            text += "*".join(random.choices(atoms, k=random.randint(1, 3)))
        texts.append(text)
    for text in texts:
        assert outcome(parse_function, text) == outcome(read_function, text), text
    assert sum(isinstance(outcome(parse_function, text), Polynomial) for text in texts) > 500
