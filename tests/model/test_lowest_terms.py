"""Quotients by the array in lowest terms: what is settled there is what the exact algorithm says."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from tightrope.model.polynomial import Polynomial, PolynomialArray, parts, quotient, reduce_quotients
from tightrope.model.ranges import denominators, numerators
from tightrope.prism.load import load_prism_text

P, Q, S = (Polynomial.variable(i) for i in range(3))


def drawn(generator: random.Random, degree: int, size: int = 6) -> Polynomial:
    """A random polynomial in three variables that is not 0, of a few terms."""
    found = Polynomial({})
    while not found.terms:
        for _ in range(3):
            exponents = [generator.randint(0, degree) for _ in range(3)]
            monomial = tuple((i, e) for i, e in enumerate(exponents) if e)
            found += Polynomial({monomial: Fraction(generator.randint(-size, size), generator.randint(1, 4))})
    return found


def settled_as_exact(pairs: list[tuple[Polynomial, Polynomial]]) -> np.ndarray:
    """Which pairs were settled, all of them as `quotient` writes them."""
    tops, bottoms = (PolynomialArray.from_polynomials(side) for side in zip(*pairs, strict=True))
    reduced = reduce_quotients(tops, bottoms)
    found = zip(reduced.tops.list_all(), reduced.bottoms.list_all(), strict=True)
    for settled, got, (top, bottom) in zip(reduced.settled, found, pairs, strict=True):
        if settled:
            assert got == parts(quotient(top, bottom))
    return reduced.settled


def test_coprime_pairs_are_settled_and_others_left_over() -> None:
    generator = random.Random(11)
    pairs, shared, linear = [], [], []
    for i in range(150):
        a, b, c = drawn(generator, 2), drawn(generator, 1 + i % 2), drawn(generator, 1)
        line = P * generator.randint(1, 6) - Q * generator.randint(0, 5) / 7 + generator.randint(0, 4)
        pairs.append([(a * c, b * c), (a, line), (a * line, line), (a, b)][i % 4])
        _, bottom = parts(quotient(*pairs[-1]))
        shared.append(bottom.degree < pairs[-1][1].degree)
        linear.append(pairs[-1][1].degree <= 1)
    settled = settled_as_exact(pairs)
    assert not settled[shared].any()
    assert settled[np.array(linear) & ~np.array(shared)].all()
    assert sum(shared) > 60
    assert sum(linear) > 60


@pytest.mark.parametrize(
    "pair",
    [
        (Polynomial({}), P + Q),  # 0
        (P + Q, Polynomial.constant(Fraction(-2, 3))),  # a polynomial
        (P, -3 * P / 7 - 3 * Q / 7),  # a sign and a factor
        (P * 10**30 + 1, 7 * P * 10**25 - Q / 3**40),  # beyond 64 bits
        (Polynomial.constant(5), 10 * P + 15),
        (P**3 + S, P * 2 + Q / 3 - S),
    ],
)
def test_forms(pair: tuple[Polynomial, Polynomial]) -> None:
    assert settled_as_exact([pair]).all()


@pytest.mark.parametrize("prime", [2**31 - 1])
def test_what_the_prime_divides_is_left_to_the_exact_algorithm(prime: int) -> None:
    """Modulo the prime the numerator is 0, or the leading coefficient of the denominator."""
    assert not settled_as_exact([(prime * P + prime, P + 2)]).any()
    assert not settled_as_exact([(P + Q, prime * P + 2)]).any()


def test_states_with_something_to_cancel_among_others() -> None:
    """(x·p + q)/(p + q) is 1 at x = 1; (x·p + x·q)/(p + 2q + (x-2)·q) a constant at x = 1 alone."""
    text = """
    dtmc const double p; const double q;
    module m
      x : [0..9] init 0;
      [] x<9 -> (x*p+q)/(10*p+10*q) : (x'=x+1) + 1-(x*p+q)/(10*p+10*q) : (x'=0);
      [] x=9 -> (p*p-q*q)/((p+q)*(p+x*q)) : (x'=9) + ((x+1)*q)/(p+x*q) : (x'=0);
    endmodule"""
    model = load_prism_text(text, box="p=0.5:0.9,q=0.1:0.4")
    texts = [model.expressions.text(e) for e in range(len(model.expressions))]
    assert "1/10" in texts
    assert "9/10" in texts
    assert "(p - q)/(p + 9*q)" in texts
    assert "(3*p + q)/(10*p + 10*q)" in texts
    assert len(model.expressions.denominators) == 2
    tops, bottoms = numerators(model.expressions), denominators(model.expressions)
    for e in range(len(texts)):
        top, bottom = parts(model.expressions.function(e))
        assert tops.polynomial(e) == top
        assert bottom.is_constant or bottoms.polynomial(model.expressions.denominator_of[e]) == bottom


def test_mixed_updates_sum_to_one() -> None:
    """Polynomials beside quotients, and quotients over different denominators, x of them a factor."""
    text = """
    dtmc const double p; const double q;
    module m
      x : [1..4] init 1;
      [] x<4 -> 0.5 : (x'=x+1) + 0.5*p/(p+x*q) : (x'=1) + 0.5*x*q/(p+x*q) : (x'=x);
      [] x=4 -> p/(p+q) : (x'=1) + x*q/(x*p+x*q) : (x'=2);
    endmodule"""
    model = load_prism_text(text, box="p=0.1:0.9,q=0.1:0.9")
    assert len(model.expressions.denominators) == 3
