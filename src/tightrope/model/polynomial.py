"""Polynomials with exact rational coefficients: single ones, many at once, division and common divisors.

The handful of operations a front end needs on single expressions. Batches of polynomials live in
`PolynomialArray`, the table of a whole model in `Expressions`; a computer-algebra system would be
far slower and a large dependency for sums and products of short polynomials.

Many polynomials at once: one exact rational vector for every monomial.

Evaluating `p/2 + q*money` for a thousand values of `money` is two vector operations here. The
explorer computes every distinct expression of a model this way.

Exact division and greatest common divisors of polynomials over the rationals.

What rational functions need to come to lowest terms. Divisors are computed one variable at a time: the
content (the common divisor of the coefficients, polynomials in the other variables) is split off, and the
primitive parts go through Euclid's algorithm with pseudo-remainders (Knuth, The Art of Computer
Programming, vol. 2, 4.6.1). Denominators of models are short and mostly of degree 1, where one trial
division decides; for these this is faster than carrying polynomials over to a computer-algebra system and
back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, SupportsIndex, cast, overload

import numpy as np

from tightrope.model.numbers import Number, exact
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.rationals import RationalArray

Monomial = tuple[tuple[int, int], ...]
"""((parameter index, exponent ≥ 1), …) with increasing indices; `()` is the constant monomial."""


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    if not left:
        return right
    if not right:
        return left
    exponents = dict(left)
    for index, exponent in right:
        exponents[index] = exponents.get(index, 0) + exponent
    return tuple(sorted(exponents.items()))


def monomial_degree(monomial: Monomial) -> int:
    degree = 0
    for _, exponent in monomial:
        degree += exponent
    return degree


def monomial_order(monomial: Monomial) -> tuple[int, Monomial]:
    """Sort key: by degree, then by parameters."""
    return (monomial_degree(monomial), monomial)


def monomial_text(monomial: Monomial, names: Sequence[str]) -> str:
    return "*".join(
        names[index] if exponent == 1 else f"{names[index]}^{exponent}" for index, exponent in monomial
    )


class Quotient:
    """A quotient of polynomials (`tightrope.model.rational_function`): arithmetic with one is its own.

    `made` divides two polynomials; it is there once that file is imported, as it is with all of the model.
    """

    __slots__ = ()

    made: ClassVar[Callable[[Polynomial, Polynomial], Any]]


class Polynomial:
    """Immutable and hashable; equal when all coefficients are equal.

    Arithmetic takes plain numbers on either side: `0.5 * p + q / 3`.

    >>> import tightrope as tr
    >>> p, q = tr.Parameters.box(p=(0, 1), q=(0, 1)).symbols()
    >>> (0.5 * p + q / 3 - 1).text(["p", "q"])
    '1/2*p + 1/3*q - 1'
    """

    __slots__ = ("_hash", "terms")

    terms: Mapping[Monomial, Fraction]
    _hash: int | None

    def __init__(self, terms: Mapping[Monomial, Fraction] | Iterable[tuple[Monomial, Fraction]]):
        items = terms.items() if isinstance(terms, Mapping) else terms
        kept = {m: c if type(c) is Fraction else Fraction(c) for m, c in items if c}
        object.__setattr__(self, "terms", MappingProxyType(kept))
        object.__setattr__(self, "_hash", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a polynomial cannot be changed: {name} is fixed")

    @classmethod
    def constant(cls, value: Fraction | int) -> Polynomial:
        return cls([((), Fraction(value))])

    @classmethod
    def variable(cls, index: int) -> Polynomial:
        return cls([(((index, 1),), Fraction(1))])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(frozenset(self.terms.items())))
        return cast(int, self._hash)

    def __reduce__(self) -> tuple[Any, ...]:
        return Polynomial, (tuple(self.terms.items()),)

    def __add__(self, other: Polynomial | Number) -> Polynomial:
        if isinstance(other, Quotient):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, coefficient in as_polynomial(other).terms.items():
            terms[monomial] = terms.get(monomial, Fraction(0)) + coefficient
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Polynomial | Number) -> Polynomial:
        if isinstance(other, Quotient):
            return NotImplemented
        return self + (-as_polynomial(other))

    def __mul__(self, other: Polynomial | Number) -> Polynomial:
        if isinstance(other, Quotient):
            return NotImplemented
        terms: dict[Monomial, Fraction] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in as_polynomial(other).terms.items():
                product = multiply_monomials(m1, m2)
                terms[product] = terms.get(product, Fraction(0)) + c1 * c2
        return Polynomial(terms)

    def __rsub__(self, other: Number) -> Polynomial:
        return as_polynomial(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    @overload
    def __truediv__(self, divisor: Number) -> Polynomial: ...

    @overload
    def __truediv__(self, divisor: Polynomial) -> Any: ...

    def __truediv__(self, divisor: Polynomial | Number) -> Any:
        if isinstance(divisor, Quotient):
            return NotImplemented
        if isinstance(divisor, Polynomial):
            return Quotient.made(self, divisor)
        value = exact(divisor)
        return Polynomial({m: c / value for m, c in self.terms.items()})

    def __rtruediv__(self, dividend: Number) -> Any:
        return as_polynomial(dividend) / self

    def __pow__(self, exponent: int) -> Polynomial:
        result = Polynomial.constant(1)
        for _ in range(exponent):
            result = result * self
        return result

    @property
    def degree(self) -> int:
        return max((monomial_degree(m) for m in self.terms), default=0)

    @property
    def is_constant(self) -> bool:
        return all(not monomial for monomial in self.terms)

    @property
    def constant_term(self) -> Fraction:
        return self.terms.get((), Fraction(0))

    @property
    def variables(self) -> tuple[int, ...]:
        """Indices of the parameters that occur, increasing."""
        return tuple(sorted({index for monomial in self.terms for index, _ in monomial}))

    def evaluate(self, point: Sequence[Fraction]) -> Fraction:
        total = Fraction(0)
        for monomial, coefficient in self.terms.items():
            term = coefficient
            for index, exponent in monomial:
                term *= Fraction(point[index]) ** exponent
            total += term
        return total

    def text(self, names: Sequence[str]) -> str:
        """Readable and exact: `1/2*p + 1/2500*q`; parses back in PRISM and DRN files."""
        if not self.terms:
            return "0"
        parts: list[str] = []
        for monomial in sorted(self.terms, key=lambda m: (-monomial_degree(m), m)):
            coefficient = self.terms[monomial]
            sign = "-" if coefficient < 0 else "+"
            size = abs(coefficient)
            if not monomial:
                body = str(size)
            elif size == 1:
                body = monomial_text(monomial, names)
            else:
                body = f"{size}*{monomial_text(monomial, names)}"
            if not parts:
                parts.append(body if sign == "+" else f"-{body}")
            else:
                parts.append(f"{sign} {body}")
        return " ".join(parts)

    def __repr__(self) -> str:
        highest = max(self.variables, default=-1)
        return f"Polynomial({self.text([f'x{i}' for i in range(highest + 1)])})"


def as_polynomial(value: Polynomial | Number) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.constant(exact(value))


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


_ONE = Polynomial.constant(1)
_Column = dict[int, Polynomial]
"""A polynomial in one variable: the coefficient, a polynomial in the others, of every power."""


def common_divisor(left: Polynomial, right: Polynomial) -> Polynomial:
    """The greatest common divisor, as `normalise` writes it."""
    if not left.terms:
        return normalise(right)[0] if right.terms else right
    if not right.terms:
        return normalise(left)[0]
    if left.is_constant or right.is_constant:
        return _ONE
    for one, other in ((left, right), (right, left)):
        if one.degree == 1:
            return normalise(one)[0] if divide(other, one) is not None else _ONE
    first, second = set(left.variables), set(right.variables)
    if alone := first.symmetric_difference(second):
        variable = min(alone)
        with_it, without = (left, right) if variable in first else (right, left)
        return _common([*_column(with_it, variable).values(), without])
    variable = min(first, key=lambda v: max(_power(m, v) for m in (*left.terms, *right.terms)))
    contents = [_common(_column(side, variable).values()) for side in (left, right)]
    parts = [_exactly(side, content) for side, content in zip((left, right), contents, strict=True)]
    shared = common_divisor(*contents)
    return normalise(shared * _primitive_divisor(parts[0], parts[1], variable))[0]


def divide(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """left / right where that is a polynomial, None where it is not."""
    if right.is_constant:
        return left / right.constant_term
    lead = max(right.terms, key=_lexicographic)
    lead_coefficient = right.terms[lead]
    rest, quotient = dict(left.terms), dict[Monomial, Fraction]()
    while rest:
        highest = max(rest, key=_lexicographic)
        monomial = _without(highest, lead)
        if monomial is None:
            return None
        factor = rest[highest] / lead_coefficient
        quotient[monomial] = factor
        for m, c in (right * Polynomial({monomial: factor})).terms.items():
            value = rest.get(m, Fraction(0)) - c
            if value:
                rest[m] = value
            else:
                rest.pop(m, None)
    return Polynomial(quotient)


def normalise(polynomial: Polynomial) -> tuple[Polynomial, Fraction]:
    """(p, c) with polynomial = c·p: p has coprime whole coefficients, positive at its lowest monomial."""
    coefficients = polynomial.terms.values()
    shared = math.lcm(*(c.denominator for c in coefficients))
    size = Fraction(math.gcd(*(int(c * shared) for c in coefficients)), shared)
    lowest = min(polynomial.terms, key=monomial_order)
    factor = size if polynomial.terms[lowest] > 0 else -size
    return polynomial / factor, factor


def _primitive_divisor(left: Polynomial, right: Polynomial, variable: int) -> Polynomial:
    """Euclid's algorithm on two polynomials without content in the variable."""
    large, small = _column(left, variable), _column(right, variable)
    if max(large) < max(small):
        large, small = small, large
    while True:
        rest = _pseudo_remainder(large, small)
        if not rest:
            return _polynomial(small, variable)
        if max(rest) == 0:
            return _ONE
        content = _common(rest.values())
        large, small = small, {k: _exactly(c, content) for k, c in rest.items()}


def _pseudo_remainder(large: _Column, small: _Column) -> _Column:
    """A multiple of `large`, less a multiple of `small`, of lower degree than `small`."""
    degree, lead = max(small), small[max(small)]
    rest = dict(large)
    while rest and max(rest) >= degree:
        shift, factor = max(rest) - degree, rest[max(rest)]
        lifted = {k: c * lead for k, c in rest.items()}
        for k, c in small.items():
            lifted[k + shift] = lifted.get(k + shift, Polynomial({})) - c * factor
        rest = {k: c for k, c in lifted.items() if c.terms}
    return rest


def _common(polynomials: Iterable[Polynomial]) -> Polynomial:
    result = Polynomial({})
    for polynomial in polynomials:
        result = common_divisor(result, polynomial)
        if result == _ONE:
            break
    return result


def _exactly(left: Polynomial, right: Polynomial) -> Polynomial:
    quotient = divide(left, right)
    assert quotient is not None
    return quotient


def _column(polynomial: Polynomial, variable: int) -> _Column:
    found: dict[int, dict[Monomial, Fraction]] = {}
    for monomial, coefficient in polynomial.terms.items():
        rest = tuple(factor for factor in monomial if factor[0] != variable)
        found.setdefault(_power(monomial, variable), {})[rest] = coefficient
    return {power: Polynomial(terms) for power, terms in found.items()}


def _polynomial(column: _Column, variable: int) -> Polynomial:
    total = Polynomial({})
    for power, coefficient in column.items():
        monomial: Monomial = ((variable, power),) if power else ()
        total = total + coefficient * Polynomial({monomial: Fraction(1)})
    return total


def _power(monomial: Monomial, variable: int) -> int:
    return next((exponent for index, exponent in monomial if index == variable), 0)


def _lexicographic(monomial: Monomial) -> tuple[tuple[int, int], ...]:
    """Sort key of the lexicographic order: a higher power of an earlier parameter is higher."""
    return tuple((-index, exponent) for index, exponent in monomial)


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """monomial / factor, or None where it is not divided by it."""
    left = dict(monomial)
    for index, exponent in factor:
        left[index] = left.get(index, 0) - exponent
        if left[index] < 0:
            return None
    return tuple(sorted((index, exponent) for index, exponent in left.items() if exponent))
