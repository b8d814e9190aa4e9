"""Many polynomials at once: one exact rational vector for every monomial.

Evaluating `p/2 + q*money` for a thousand values of `money` is two vector operations here. The
explorer computes every distinct expression of a model this way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import SupportsIndex, overload

import numpy as np

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
    def from_polynomials(cls, polynomials: Sequence[Polynomial]) -> PolynomialArray:
        terms = {}
        for monomial in dict.fromkeys(m for polynomial in polynomials for m in polynomial.terms):
            terms[monomial] = RationalArray.from_fractions(p.terms.get(monomial, 0) for p in polynomials)
        return cls(terms, len(polynomials))

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

    def is_zero(self) -> BoolArray:
        """Which rows are the polynomial 0."""
        zero: BoolArray = np.ones(self.size, dtype=np.bool_)
        for coefficient in self.terms.values():
            zero &= np.equal(coefficient.numerator, 0).astype(np.bool_)
        return zero

    @classmethod
    def where(cls, mask: BoolArray, yes: PolynomialArray, no: PolynomialArray) -> PolynomialArray:
        zero = RationalArray.constant(0, len(mask))
        terms = {
            m: RationalArray.where(mask, yes.terms.get(m, zero), no.terms.get(m, zero))
            for m in {**yes.terms, **no.terms}
        }
        return cls(terms, len(mask))

    @classmethod
    def concatenate(cls, parts: Sequence[PolynomialArray]) -> PolynomialArray:
        """One after the other."""
        terms = {}
        for monomial in dict.fromkeys(m for part in parts for m in part.terms):
            columns = [part.terms.get(monomial) or RationalArray.constant(0, len(part)) for part in parts]
            terms[monomial] = RationalArray.concatenate(columns)
        return cls(terms, sum(map(len, parts)))

    def list_all(self) -> list[Polynomial]:
        """The polynomials one by one."""
        found: list[dict[Monomial, Fraction]] = [{} for _ in range(self.size)]
        for monomial, coefficient in self.terms.items():
            for terms, value in zip(found, coefficient.to_fractions(), strict=True):
                terms[monomial] = value
        return [Polynomial(terms) for terms in found]

    def polynomial(self, index: int) -> Polynomial:
        return Polynomial({m: c[index] for m, c in self.terms.items()})


class PolynomialList(Sequence[Polynomial]):
    """The polynomials of an array as objects, made when they are first asked for: a model may have 100,000
    denominators, and is built without looking at any of them alone.

    >>> found = PolynomialList.of([Polynomial.variable(0), Polynomial.variable(1) + 1])
    >>> len(found), found[1], found == (Polynomial.variable(0), Polynomial.variable(1) + 1)
    (2, Polynomial(x1 + 1), True)
    """

    def __init__(self, array: PolynomialArray):
        self.array = array

    @classmethod
    def of(cls, polynomials: Sequence[Polynomial]) -> PolynomialList:
        return cls(PolynomialArray.from_polynomials(polynomials))

    def take(self, index: OffsetArray) -> PolynomialList:
        return PolynomialList(self.array.take(index))

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Polynomial: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Polynomial, ...]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Polynomial | tuple[Polynomial, ...]:
        return self._listed[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolynomialList | tuple) and self._listed == tuple(other)

    def __hash__(self) -> int:
        return hash(self._listed)

    def __repr__(self) -> str:
        return repr(self._listed)

    @cached_property
    def _listed(self) -> tuple[Polynomial, ...]:
        return tuple(self.array.list_all())
