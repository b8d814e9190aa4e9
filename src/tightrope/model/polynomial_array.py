"""Many polynomials at once: one exact rational vector for every monomial.

Evaluating `p/2 + q*money` for a thousand values of `money` is two vector operations here. The
explorer computes every distinct expression of a model this way.
"""

from __future__ import annotations

from collections.abc import Mapping

from tightrope.model.polynomial import Monomial, Polynomial, multiply_monomials
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.rationals import RationalArray


class PolynomialArray:
    """`size` polynomials; monomials that are absent have coefficient 0 everywhere."""

    __slots__ = ("size", "terms")

    terms: Mapping[Monomial, RationalArray]
    size: int

    def __init__(self, terms: Mapping[Monomial, RationalArray], size: int):
        self.terms = terms or {(): RationalArray.constant(0, size)}
        self.size = size

    @classmethod
    def constant(cls, value: RationalArray) -> PolynomialArray:
        return cls({(): value}, len(value))

    @classmethod
    def variable(cls, index: int, size: int) -> PolynomialArray:
        return cls({((index, 1),): RationalArray.constant(1, size)}, size)

    def __len__(self) -> int:
        return self.size

    def __add__(self, other: PolynomialArray) -> PolynomialArray:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms[monomial] + coefficient if monomial in terms else coefficient
        return PolynomialArray(terms, self.size)

    def __neg__(self) -> PolynomialArray:
        return PolynomialArray({m: -c for m, c in self.terms.items()}, self.size)

    def __sub__(self, other: PolynomialArray) -> PolynomialArray:
        return self + (-other)

    def __mul__(self, other: PolynomialArray) -> PolynomialArray:
        terms: dict[Monomial, RationalArray] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                monomial = multiply_monomials(m1, m2)
                product = c1 * c2
                terms[monomial] = terms[monomial] + product if monomial in terms else product
        return PolynomialArray(terms, self.size)

    def divide(self, divisor: RationalArray) -> PolynomialArray:
        return PolynomialArray({m: c / divisor for m, c in self.terms.items()}, self.size)

    def power(self, exponent: int) -> PolynomialArray:
        result = PolynomialArray.constant(RationalArray.constant(1, self.size))
        for _ in range(exponent):
            result = result * self
        return result

    def take(self, index: OffsetArray | BoolArray | slice) -> PolynomialArray:
        terms = {m: c.take(index) for m, c in self.terms.items()}
        return PolynomialArray(terms, len(next(iter(terms.values()))))

    @classmethod
    def where(cls, mask: BoolArray, yes: PolynomialArray, no: PolynomialArray) -> PolynomialArray:
        zero = RationalArray.constant(0, len(mask))
        terms = {
            m: RationalArray.where(mask, yes.terms.get(m, zero), no.terms.get(m, zero))
            for m in {**yes.terms, **no.terms}
        }
        return cls(terms, len(mask))

    def polynomial(self, index: int) -> Polynomial:
        return Polynomial({m: c[index] for m, c in self.terms.items()})
