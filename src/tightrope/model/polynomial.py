"""Polynomials and quotients of polynomials with exact rational coefficients, single ones and many at once.

A computer-algebra system would be far slower, and a large dependency, for sums and products of short
polynomials. A `PolynomialArray` has one rational vector for every monomial: `p/2 + q*money` for a thousand
values of `money` is two vector operations. The table of a whole model is `Expressions`.

A quotient f/g is kept in lowest terms, so that equality is a comparison: numerator and denominator have no
common divisor, and the denominator has coprime whole coefficients with a positive one at its lowest monomial
(the constant where there is one). A quotient that comes out as a polynomial is a `Polynomial`, never a
`RationalFunction`. Common divisors are computed one variable at a time: the content (the common divisor of
the coefficients, polynomials in the other variables) is split off, and the primitive parts go through
Euclid's algorithm with pseudo-remainders (Knuth, The Art of Computer Programming, vol. 2, 4.6.1).
Denominators are mostly of degree 1, where one trial division decides.

Of many quotients at once denominators are normalised on arrays, and it is proved modulo a prime that nothing
is left to cancel. A common divisor h of F and G, taken primitive (integral F and G), divides both over the
integers (Gauss), hence modulo every prime. Put numbers for all parameters but v. If the leading coefficient
of G in v is not 0 there modulo the prime, neither is that of h, whose degree in v is then a lower bound of
that of the common divisors of the two univariate images. A resultant of these other than 0, modulo the prime,
therefore shows that h does not contain v; shown for every parameter of G, F and G have nothing in common. One
modulus and one point decide nearly always, by a determinant per quotient; whoever is not decided is left to
the exact algorithm, so that luck plays no part in what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, SupportsIndex, cast, overload

import numpy as np

from tightrope.errors import InputError
from tightrope.late import dataclass
from tightrope.model.numbers import Number, exact
from tightrope.numerics.arrays import BoolArray, ExactIntegers, OffsetArray
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
        nonzero = {m: c if type(c) is Fraction else Fraction(c) for m, c in items if c}
        object.__setattr__(self, "terms", MappingProxyType(nonzero))
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
        if isinstance(other, RationalFunction):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, coefficient in as_polynomial(other).terms.items():
            terms[monomial] = terms.get(monomial, Fraction(0)) + coefficient
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Polynomial | Number) -> Polynomial:
        if isinstance(other, RationalFunction):
            return NotImplemented
        return self + (-as_polynomial(other))

    def __mul__(self, other: Polynomial | Number) -> Polynomial:
        if isinstance(other, RationalFunction):
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
        if isinstance(divisor, RationalFunction):
            return NotImplemented
        if isinstance(divisor, Polynomial):
            return quotient(self, divisor)
        value = exact(divisor)
        if value == 0:
            raise InputError("a polynomial is divided by 0")
        return Polynomial({m: c / value for m, c in self.terms.items()})

    def __rtruediv__(self, dividend: Number) -> Any:
        return as_polynomial(dividend) / self

    def __pow__(self, exponent: int) -> Polynomial:
        if not isinstance(exponent, int | np.integer) or exponent < 0:
            raise InputError(f"the exponent of a polynomial is {exponent!r}, not a whole number such as 2")
        result = Polynomial.constant(1)
        for _ in range(exponent):
            result = result * self
        return result

    def __float__(self) -> float:
        if not self.is_constant:
            raise InputError("a polynomial in the parameters is no number", hint="evaluate it at a point")
        return float(self.constant_term)

    def __lt__(self, other: object) -> bool:
        raise InputError(
            "polynomials in the parameters are not compared: which is larger depends on the point",
            hint='constraints are written as text: tr.Parameters.box(p=(0, 1), q=(0, 1), where="p + q <= 1")',
        )

    __le__ = __gt__ = __ge__ = __lt__

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

    def text(self, names: Sequence[str], signed_number: bool = False) -> str:
        """Readable and exact: `1/2*p + 1/2500*q`; parses back in PRISM and DRN files.

        With `signed_number` a leading sign stands before a number: Storm takes `-p^2` for (−p)².
        """
        texts: list[str] = []
        for monomial in sorted(self.terms, key=lambda m: (-monomial_degree(m), m)):
            coefficient = self.terms[monomial]
            is_negative, size = coefficient < 0, abs(coefficient)
            needs_number = size != 1 or not monomial or (signed_number and is_negative and not texts)
            factors = [str(size)] * needs_number + [monomial_text(monomial, names)] * bool(monomial)
            sign = ("- " if is_negative else "+ ") if texts else "-" * is_negative
            texts.append(sign + "*".join(factors))
        return " ".join(texts) or "0"

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
        rows: list[dict[Monomial, Fraction]] = [{} for _ in range(self.size)]
        for monomial, coefficient in self.terms.items():
            for terms, value in zip(rows, coefficient.to_fractions(), strict=True):
                terms[monomial] = value
        return [Polynomial(terms) for terms in rows]

    def polynomial(self, index: int) -> Polynomial:
        return Polynomial({m: c[index] for m, c in self.terms.items()})


class PolynomialList(Sequence[Polynomial]):
    """The polynomials of an array as objects, made when they are first asked for: a model may have 100,000
    denominators, and is built without looking at any of them alone.

    >>> listed = PolynomialList.of([Polynomial.variable(0), Polynomial.variable(1) + 1])
    >>> len(listed), listed[1], listed == (Polynomial.variable(0), Polynomial.variable(1) + 1)
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
    columns: dict[int, dict[Monomial, Fraction]] = {}
    for monomial, coefficient in polynomial.terms.items():
        rest = tuple(factor for factor in monomial if factor[0] != variable)
        columns.setdefault(_power(monomial, variable), {})[rest] = coefficient
    return {power: Polynomial(terms) for power, terms in columns.items()}


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


class RationalFunction:
    """Immutable and hashable; made by dividing polynomials, and equal exactly where the functions are equal.

    >>> import tightrope as tr
    >>> p, q = tr.Parameters.box(p=(0.1, 1), q=(0.1, 1)).symbols()
    >>> (p / (p + q)).text(["p", "q"]), p / (p + q) + q / (p + q) == 1 * p / p
    ('p/(p + q)', True)
    """

    __slots__ = ("denominator", "numerator")

    numerator: Polynomial
    denominator: Polynomial

    def __init__(self, numerator: Polynomial, denominator: Polynomial):
        """From a pair in canonical form; `quotient` brings any pair into it."""
        object.__setattr__(self, "numerator", numerator)
        object.__setattr__(self, "denominator", denominator)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a rational function cannot be changed: {name} is fixed")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RationalFunction)
            and self.numerator == other.numerator
            and self.denominator == other.denominator
        )

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    def __reduce__(self) -> tuple[Any, ...]:
        return RationalFunction, (self.numerator, self.denominator)

    def __add__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        if bottom == self.denominator:
            return quotient(self.numerator + top, bottom)
        return quotient(self.numerator * bottom + top * self.denominator, self.denominator * bottom)

    def __neg__(self) -> RationalFunction:
        return RationalFunction(-self.numerator, self.denominator)

    def __sub__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return self + quotient(-top, bottom)

    def __rsub__(self, other: Function | Number) -> Function:
        return -self + other

    def __mul__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return quotient(self.numerator * top, self.denominator * bottom)

    def __truediv__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return quotient(self.numerator * bottom, self.denominator * top)

    def __rtruediv__(self, other: Function | Number) -> Function:
        top, bottom = parts(other)
        return quotient(top * self.denominator, bottom * self.numerator)

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Function:
        return quotient(self.numerator**exponent, self.denominator**exponent)

    is_constant = False

    @property
    def degree(self) -> int:
        """Of numerator or denominator, whichever is higher."""
        return max(self.numerator.degree, self.denominator.degree)

    @property
    def variables(self) -> tuple[int, ...]:
        """Indices of the parameters that occur, increasing."""
        return tuple(sorted({*self.numerator.variables, *self.denominator.variables}))

    def evaluate(self, point: Sequence[Fraction]) -> Fraction:
        return self.numerator.evaluate(point) / self.denominator.evaluate(point)

    def text(self, names: Sequence[str]) -> str:
        """Readable and exact, `p/(p + q)`, with whole coefficients; parses back in DRN files."""
        shared = math.lcm(*(c.denominator for c in self.numerator.terms.values()))
        top, bottom = self.numerator * shared, self.denominator * shared
        above, below = top.text(names), bottom.text(names)
        if len(top.terms) > 1:
            above = f"({above})"
        return f"{above}/{below}" if below in names else f"{above}/({below})"

    def __repr__(self) -> str:
        return f"RationalFunction({self.text([f'x{i}' for i in range(max(self.variables) + 1)])})"


Function = Polynomial | RationalFunction
"""What a probability may be."""


def quotient(numerator: Polynomial, denominator: Polynomial) -> Function:
    """numerator / denominator in canonical form: a polynomial where the division leaves nothing."""
    if not denominator.terms:
        raise ZeroDivisionError("division by 0")
    if denominator.is_constant:
        return numerator / denominator.constant_term
    if not numerator.is_constant:
        whole = divide(numerator, denominator)
        if whole is not None:
            return whole
        # What is of degree 1 has no divisor but itself.
        shared = _ONE if denominator.degree == 1 else common_divisor(numerator, denominator)
        if not shared.is_constant:
            numerator, denominator = _exactly(numerator, shared), _exactly(denominator, shared)
    elif not numerator.terms:
        return numerator
    bottom, factor = normalise(denominator)
    return RationalFunction(numerator / factor, bottom)


def parts(value: Function | Number) -> tuple[Polynomial, Polynomial]:
    """Numerator and denominator."""
    if isinstance(value, RationalFunction):
        return value.numerator, value.denominator
    return as_polynomial(value), Polynomial.constant(1)


def as_function(value: Function | Number) -> Function:
    return value if isinstance(value, RationalFunction) else as_polynomial(value)


_PRIME = 2**31 - 1
_ROOT = 48271
"""Its powers are the numbers that are put for the parameters."""

_LARGEST_RESULTANT = 12
"""Rows of a determinant: beyond that the exact algorithm is the better one."""

_BITS = 61.0


@dataclass(frozen=True)
class Reduced:
    """Quotients in lowest terms, where `settled`; polynomials have the denominator 1."""

    tops: PolynomialArray
    bottoms: PolynomialArray
    settled: BoolArray


def reduce_quotients(tops: PolynomialArray, bottoms: PolynomialArray) -> Reduced:
    """tops / bottoms, row by row; no denominator may be 0."""
    zero = tops.is_zero()
    if zero.any():
        one = PolynomialArray.constant(RationalArray.constant(1, len(tops)))
        bottoms = PolynomialArray.where(zero, one, bottoms)
    monomials = sorted(bottoms.terms, key=monomial_order)
    whole, factor = _normalise_columns([bottoms.terms[m] for m in monomials])
    below = {m: RationalArray.from_integers(whole[j]) for j, m in enumerate(monomials)}
    divided = tops.divide(factor)
    return Reduced(divided, PolynomialArray(below, len(tops)), _coprime(divided, monomials, whole))


def _normalise_columns(columns: list[RationalArray]) -> tuple[ExactIntegers, RationalArray]:
    """Coprime whole coefficients (a row per monomial), positive at the first that is not 0, and the factor
    that was taken out."""
    top = np.stack([column.numerator for column in columns])
    below = np.stack([column.denominator for column in columns])
    if not _fits(top, below):
        top, below = top.astype(object), below.astype(object)
    shared = np.lcm.reduce(below, axis=0)
    whole = top * (shared // below)
    divisor = np.gcd.reduce(whole, axis=0)
    first = np.argmax(np.not_equal(whole, 0), axis=0)
    lead = np.take_along_axis(whole, first[None], axis=0)[0]
    signed = np.where(np.less(lead, 0), -divisor, divisor)
    return whole // signed, RationalArray.ratio(signed, shared)


def _fits(top: ExactIntegers, below: ExactIntegers) -> bool:
    """Do the coefficients fit int64 once they are multiplied by all denominators of their row?"""
    if top.dtype == object or below.dtype == object:
        return False
    size = np.log2(np.maximum(np.abs(top), 1)).max(axis=0) + np.log2(below).sum(axis=0)
    return bool((size < _BITS).all())


def _coprime(tops: PolynomialArray, monomials: list[Monomial], whole: ExactIntegers) -> BoolArray:
    """Where it is proved that numerator and denominator have no common divisor."""
    above = sorted(tops.terms, key=monomial_order)
    images = np.stack([_modulo(tops.terms[m].numerator) for m in above])
    scales = np.stack([_modulo(tops.terms[m].denominator) for m in above])
    for j in range(len(above)):  # every coefficient times the other ones' denominators
        for i in range(len(above)):
            if i != j:
                images[j] = images[j] * scales[i] % _PRIME
    below = _modulo(whole)
    present = np.concatenate(
        [
            np.stack([np.not_equal(tops.terms[m].numerator, 0).astype(np.bool_) for m in above]),
            np.not_equal(whole, 0).astype(np.bool_),
        ]
    )
    proved: BoolArray = np.zeros(len(tops), dtype=np.bool_)
    group = np.zeros(len(tops), dtype=np.int64)
    for byte in np.packbits(present, axis=0):
        _, group = np.unique(group * 256 + byte, return_inverse=True)
    for k in range(int(group.max(initial=-1)) + 1):
        rows = np.flatnonzero(group == k)
        has = present[:, rows[0]]
        f = {m: images[j, rows] for j, m in enumerate(above) if has[j]}
        g = {m: below[j, rows] for j, m in enumerate(monomials) if has[len(above) + j]}
        proved[rows] = _without_common(f, g, len(rows))
    return proved


def _without_common(f: dict[Monomial, OffsetArray], g: dict[Monomial, OffsetArray], size: int) -> BoolArray:
    """As `_coprime`, of polynomials modulo the prime that have the same monomials in all rows."""
    proved: BoolArray = np.ones(size, dtype=np.bool_)
    for variable in sorted({v for monomial in g for v, _ in monomial}):
        above, below = _image(f, variable, size), _image(g, variable, size)
        if len(above) + len(below) - 2 > _LARGEST_RESULTANT:
            return np.zeros(size, dtype=np.bool_)
        proved &= below[-1] != 0
        proved &= _is_regular(_sylvester(above, below))
    return proved


def _image(polynomial: dict[Monomial, OffsetArray], variable: int, size: int) -> OffsetArray:
    """[power, row]: the coefficients in one parameter, with numbers for all others."""
    degree = max(dict(monomial).get(variable, 0) for monomial in polynomial) if polynomial else 0
    image: OffsetArray = np.zeros((degree + 1, size), dtype=np.int64)
    for monomial, coefficient in polynomial.items():
        power, factor = 0, 1
        for index, exponent in monomial:
            if index == variable:
                power = exponent
            else:
                factor = factor * pow(_ROOT, (index + 1) * exponent, _PRIME) % _PRIME
        image[power] = (image[power] + coefficient * factor) % _PRIME
    return image


def _sylvester(f: OffsetArray, g: OffsetArray) -> OffsetArray:
    """[row, :, :]: the matrices whose determinants are the resultants."""
    size, first, second = f.shape[1], len(f) - 1, len(g) - 1
    matrix: OffsetArray = np.zeros((size, first + second, first + second), dtype=np.int64)
    for shift in range(second):
        matrix[:, shift, shift : shift + first + 1] = f[::-1].T
    for shift in range(first):
        matrix[:, second + shift, shift : shift + second + 1] = g[::-1].T
    return matrix


def _is_regular(matrix: OffsetArray) -> BoolArray:
    """Whose determinant is not 0 modulo the prime: elimination without division."""
    size, order = matrix.shape[:2]
    rows, regular = np.arange(size), np.ones(size, dtype=np.bool_)
    for k in range(order):
        pivot = k + np.argmax(matrix[:, k:, k] != 0, axis=1)
        chosen = matrix[rows, pivot].copy()
        matrix[rows, pivot] = matrix[:, k]
        regular &= chosen[:, k] != 0
        rest = matrix[:, k + 1 :]
        left = rest * chosen[:, None, k, None] % _PRIME
        matrix[:, k + 1 :] = (left - rest[:, :, k, None] * chosen[:, None, :]) % _PRIME
    return regular


def _modulo(values: ExactIntegers) -> OffsetArray:
    return (values % _PRIME).astype(np.int64)
