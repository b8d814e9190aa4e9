"""Vectorised evaluation agrees with one exact value after the other, and fails only where it must."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_reference import Undefined, value
from prism_text import parse_expression
from tightrope.model.polynomial import Polynomial, PolynomialArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.compile import evaluate
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Complaint,
    Conditional,
    Expression,
    Literal,
    Name,
    Type,
    Unary,
)


def parse(text: str) -> Expression:
    return parse_expression(text, "test")


X = np.array([-3, 0, 2, 7])
B = np.array([True, False, True, False])


def test_types_of_results() -> None:
    columns = {"x": X, "b": B}
    assert evaluate(parse("x+1"), columns, 4).tolist() == [-2, 1, 3, 8]
    assert evaluate(parse("b | x=7"), columns, 4).tolist() == [True, False, True, True]
    halves = evaluate(parse("x/2"), columns, 4)
    assert isinstance(halves, RationalArray)
    assert halves.to_fractions() == [Fraction(x, 2) for x in X.tolist()]
    polynomials = evaluate(parse("p*x/10 + (b ? q : 1-q)"), columns, 4, {"p": 0, "q": 1})
    assert isinstance(polynomials, PolynomialArray)
    p, q, one = Polynomial.variable(0), Polynomial.variable(1), Polynomial.constant(1)
    assert polynomials.polynomial(0) == p * Polynomial.constant(Fraction(-3, 10)) + q
    assert polynomials.polynomial(1) == one - q


def test_constants_fill_all_rows() -> None:
    assert evaluate(parse("3"), {}, 2).tolist() == [3, 3]
    assert evaluate(parse("true"), {}, 3).tolist() == [True] * 3
    assert evaluate(parse("0.1+0.2"), {}, 1).to_fractions() == [Fraction(3, 10)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("round(x/2)", [-1, 0, 1, 4]),
        ("floor(x/2)", [-2, 0, 1, 3]),
        ("ceil(x/2)", [-1, 0, 1, 4]),
        ("mod(x,5)", [2, 0, 2, 2]),
        ("pow(x,3)", [-27, 0, 8, 343]),
        ("pow(2,max(x,0))", [1, 1, 4, 128]),
        ("min(x,1,2*x)", [-6, 0, 1, 1]),
        ("max(-x,x)", [3, 0, 2, 7]),
        ("x>0 ? (x>5 ? 1 : 2) : 3", [3, 3, 2, 1]),
        ("-x-1", [2, -1, -3, -8]),
        ("floor(log(max(x,1),2))", [0, 0, 1, 2]),
        ("floor(pow(9,0.5))+x", [0, 3, 5, 10]),
    ],
)
def test_integers(text: str, expected: list[int]) -> None:
    assert evaluate(parse(text), {"x": X}, 4).tolist() == expected


def test_shielded_failures_do_not_fail() -> None:
    columns = {"x": X}
    assert evaluate(parse("x!=0 & 1/x>0.2"), columns, 4).tolist() == [False, False, True, False]
    assert evaluate(parse("x=0 | 1/x>0.2"), columns, 4).tolist() == [False, True, True, False]
    assert evaluate(parse("x!=0 => 1/x>0.2"), columns, 4).tolist() == [False, True, True, False]
    quotients = evaluate(parse("x=0 ? 5 : 1/x"), columns, 4).to_fractions()
    assert quotients == [Fraction(-1, 3), 5, Fraction(1, 2), Fraction(1, 7)]
    assert evaluate(parse("x>0 ? mod(10,x) : 0"), columns, 4).tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/x", "1:1: division by zero in state (x=0)"),
        ("mod(4,x)", "the divisor of 'mod' is not positive in state (x=-3)"),
        ("pow(2,x)", "'pow' of integers with a negative exponent in state (x=-3)"),
        ("pow(0.0*x,-1)", "division by zero in state (x=-3)"),
        ("log(x,2)", "in state (x=-3)"),
        ("p/p", "a polynomial is expected here, not a quotient of polynomials"),
        ("min(p,1)", "depends on the parameter p"),
        ("pow(p,x)", "a polynomial is expected here, not a quotient of polynomials"),
        ("y+1", "'y' is neither a variable nor a parameter"),
        ("x & true", "a truth value is expected"),
        ("(x>1)+1", "a number is expected"),
    ],
)
def test_errors_name_place_and_state(text: str, message: str) -> None:
    with pytest.raises(Complaint) as caught:
        evaluate(parse(text), {"x": X}, 4, {"p": 0})
    place = caught.value.position
    assert message in (f"{place.line}:{place.column}: " if place else "") + caught.value.message


def test_integers_beyond_64_bits_stay_exact() -> None:
    x = np.array([2**40, -(2**41), 3])
    result = evaluate(parse("x*x*x - x*x*x + x"), {"x": x}, 3)
    assert result.tolist() == x.tolist()
    assert evaluate(parse("pow(x,4)"), {"x": x}, 3).tolist() == [v**4 for v in x.tolist()]
    assert evaluate(parse("mod(pow(x,4),97)"), {"x": x}, 3).tolist() == [v**4 % 97 for v in x.tolist()]
    assert evaluate(parse("pow(x,4) > 1000000*pow(x,3)"), {"x": x}, 3).tolist() == [True, True, False]
    big = evaluate(parse("pow(x,4)/7"), {"x": x}, 3).to_fractions()
    assert big == [Fraction(v**4, 7) for v in x.tolist()]


def test_powers_of_parameters_with_an_exponent_of_the_state() -> None:
    x = np.array([0, 1, 3])
    result = evaluate(parse("pow(1-p,x)"), {"x": x}, 3, {"p": 0})
    base = Polynomial.constant(1) - Polynomial.variable(0)
    assert [result.polynomial(i) for i in range(3)] == [base**0, base, base**3]


def test_long_chains_do_not_exhaust_the_stack() -> None:
    total: Expression = Name("x")
    anywhere: Expression = Binary("=", Name("x"), Literal(0, Type.INT))
    for k in range(3000):
        total = Binary("+", total, Literal(k, Type.INT))
        anywhere = Binary("|", anywhere, Binary("=", Name("x"), Literal(k, Type.INT)))
    assert evaluate(total, {"x": X}, 4).tolist() == [int(x) + 3000 * 2999 // 2 for x in X]
    assert evaluate(anywhere, {"x": X}, 4).tolist() == [False, True, True, True]


# --- random expressions -----------------------------------------------------------------------------

_VALUES = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=6)


def _integer(value: int) -> Expression:
    return Literal(value, Type.INT)


def _integers(depth: int) -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from([Name("x"), Name("y"), *map(_integer, (-2, 0, 1, 3, 10))])
    if depth == 0:
        return leaves
    inner, reals, truths = _integers(depth - 1), _reals(depth - 1), _truths(depth - 1)
    return st.one_of(
        leaves,
        st.builds(Binary, st.sampled_from("+-*"), inner, inner),
        st.builds(Unary, st.just("-"), inner),
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["min", "max", "mod"]), inner, inner),
        st.builds(lambda a, k: Call("pow", (a, _integer(k))), inner, st.integers(0, 3)),
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["floor", "ceil", "round"]), reals),
        st.builds(Conditional, truths, inner, inner),
    )


def _reals(depth: int) -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from([Literal(Fraction(1, 4), Type.DOUBLE), Literal(Fraction(-3, 5), Type.DOUBLE)])
    if depth == 0:
        return leaves
    numbers = st.one_of(_reals(depth - 1), _integers(depth - 1))
    real = _reals(depth - 1)
    return st.one_of(
        leaves,
        st.builds(Binary, st.just("/"), numbers, numbers),
        st.builds(Binary, st.sampled_from("+-*"), real, numbers),
        st.builds(Binary, st.sampled_from("+-*"), numbers, real),
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["min", "max"]), real, numbers),
        st.builds(Conditional, _truths(depth - 1), real, real),
    )


def _truths(depth: int) -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from([Name("b"), Literal(True, Type.BOOL)])
    if depth == 0:
        return leaves
    inner = _truths(depth - 1)
    numbers = st.one_of(_reals(depth - 1), _integers(depth - 1))
    return st.one_of(
        leaves,
        st.builds(Binary, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), numbers, numbers),
        st.builds(Binary, st.sampled_from(["&", "|", "=>", "<=>", "=", "!="]), inner, inner),
        st.builds(Unary, st.just("!"), inner),
        st.builds(Conditional, inner, inner, inner),
    )


@given(st.one_of(_integers(3), _reals(3), _truths(3)), _VALUES)
def test_random_expressions_agree_with_single_values(
    expression: Expression, rows: list[tuple[int, int, bool]]
) -> None:
    columns = {
        "x": np.array([x for x, _, _ in rows]),
        "y": np.array([y for _, y, _ in rows]),
        "b": np.array([b for _, _, b in rows]),
    }
    expected = []
    for x, y, b in rows:
        try:
            expected.append(value(expression, {"x": x, "y": y, "b": b}))
        except Undefined:
            with pytest.raises(Complaint):
                evaluate(expression, columns, len(rows))
            return
    found = evaluate(expression, columns, len(rows))
    listed = found.to_fractions() if isinstance(found, RationalArray) else found.tolist()
    assert listed == expected
