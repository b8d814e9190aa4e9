"""Exact polynomials over the rationals and their quotients, single or in arrays.

A `PolynomialArray` has one rational vector per monomial. A quotient f/g is in lowest terms, so equality is a
comparison: g has coprime whole coefficients, positive at its lowest monomial. FLINT finds common divisors.

For arrays with g of degree 1, a test modulo a prime proves that nothing cancels: if g divides f, then f·L =
g·h with whole coefficients, L the common denominator of f (Gauss), hence modulo every prime that does not
divide L. So if f is not 0 at a zero of g modulo the prime, they have no common divisor. Other cases go to
FLINT.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import NoReturn, cast, overload

import numpy as np

from tightrope.errors import InputError
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
            exact = ((m, c.numerator, c.denominator) for m, c in self.terms.items())
            object.__setattr__(self, "_hash", hash(frozenset(exact)))
        return cast(int, self._hash)

    def __reduce__(self) -> tuple[object, ...]:
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
    def __truediv__(self, divisor: Polynomial) -> Function: ...

    def __truediv__(self, divisor: Polynomial | Number) -> Function:
        if isinstance(divisor, RationalFunction):
            return NotImplemented
        if isinstance(divisor, Polynomial):
            return quotient(self, divisor)
        value = exact(divisor)
        if value == 0:
            raise InputError("a polynomial is divided by 0")
        return Polynomial({m: c / value for m, c in self.terms.items()})

    def __rtruediv__(self, dividend: Number) -> Function:
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
            raise InputError("a polynomial in the parameters is not a number", hint="evaluate it at a point")
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
        """Readable and exact: `1/2*p + 1/2500*q`, `1 - p`; parses back in PRISM and DRN files.

        With `signed_number` a leading sign stands before a number: Storm takes `-p^2` for (−p)².
        """
        texts: list[str] = []
        flip = self.constant_term > 0 and all(c < 0 for m, c in self.terms.items() if m)
        for monomial in sorted(self.terms, key=lambda m: (flip and bool(m), -monomial_degree(m), m)):
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

    def __getitem__(self, index: int) -> Polynomial:  # type: ignore[override]  # no slices
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


def normalise(polynomial: Polynomial) -> tuple[Polynomial, Fraction]:
    """(p, c) with polynomial = c·p: p has coprime whole coefficients, positive at its lowest monomial."""
    coefficients = polynomial.terms.values()
    shared = math.lcm(*(c.denominator for c in coefficients))
    size = Fraction(math.gcd(*(int(c * shared) for c in coefficients)), shared)
    lowest = min(polynomial.terms, key=monomial_order)
    factor = size if polynomial.terms[lowest] > 0 else -size
    return polynomial / factor, factor


def cancel(left: Polynomial, right: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Both divided by their greatest common divisor; neither is 0."""
    from flint import fmpq, fmpq_mpoly, fmpq_mpoly_ctx

    variables = sorted({*left.variables, *right.variables})
    context = fmpq_mpoly_ctx.get([f"x{v}" for v in variables], "lex")

    def read(polynomial: Polynomial) -> fmpq_mpoly:
        powers = ((dict(monomial), c) for monomial, c in polynomial.terms.items())
        return context.from_dict(
            {tuple(p.get(v, 0) for v in variables): fmpq(c.numerator, c.denominator) for p, c in powers}
        )

    def written(polynomial: fmpq_mpoly) -> Polynomial:
        return Polynomial(
            (
                tuple((v, e) for v, e in zip(variables, map(int, powers), strict=True) if e),
                Fraction(int(c.p), int(c.q)),
            )
            for powers, c in polynomial.to_dict().items()
        )

    sides = read(left), read(right)
    shared = sides[0].gcd(sides[1])
    if shared.is_constant():
        return left, right
    return written(sides[0] / shared), written(sides[1] / shared)


@dataclass(frozen=True, repr=False)
class RationalFunction:
    """Made by dividing polynomials (`quotient` brings any pair into canonical form), and equal exactly where
    the functions are equal.

    >>> import tightrope as tr
    >>> p, q = tr.Parameters.box(p=(0.1, 1), q=(0.1, 1)).symbols()
    >>> (p / (p + q)).text(["p", "q"]), p / (p + q) + q / (p + q) == 1 * p / p
    ('p/(p + q)', True)
    """

    numerator: Polynomial
    denominator: Polynomial

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
    if not numerator.terms:
        return numerator
    if not numerator.is_constant:
        numerator, denominator = cancel(numerator, denominator)
        if denominator.is_constant:
            return numerator / denominator.constant_term
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
    """Coprime whole coefficients, a row per monomial, the first of them positive; and the factor."""
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
    if monomials == [()]:
        return np.ones(len(tops), dtype=np.bool_)
    listed = [*tops.terms, *monomials]
    names = sorted({v for monomial in listed for v, _ in monomial})
    rows = np.arange(len(tops))
    slope: OffsetArray = np.zeros((len(names), len(tops)), dtype=np.int64)
    value: OffsetArray = np.zeros(len(tops), dtype=np.int64)
    linear: BoolArray = np.ones(len(tops), dtype=np.bool_)
    for monomial, column in zip(monomials, whole, strict=True):
        if not monomial:
            value = _modulo(column)
        elif monomial_degree(monomial) == 1:
            slope[names.index(monomial[0][0])] = _modulo(column)
        else:
            linear &= np.equal(column, 0).astype(np.bool_)
    point = np.array([pow(_ROOT, v + 1, _PRIME) for v in names])[:, None] * np.ones_like(value)
    solved = np.argmax(slope != 0, axis=0)  # for this parameter, at numbers for the others
    lead = slope[solved, rows]
    point[solved, rows] = 0
    for one, at in zip(slope, point, strict=True):
        value = (value + one * at) % _PRIME
    point[solved, rows] = (_PRIME - value) * _power(lead, _PRIME - 2) % _PRIME
    total = np.zeros_like(value)
    for monomial, coefficient in tops.terms.items():
        below = _modulo(coefficient.denominator)
        linear &= below != 0
        term = _modulo(coefficient.numerator) * _power(below, _PRIME - 2) % _PRIME
        for v, exponent in monomial:
            term = term * _power(point[names.index(v)], exponent) % _PRIME
        total = (total + term) % _PRIME
    no_parameter = np.logical_and.reduce([np.equal(c, 0) for m, c in zip(monomials, whole, strict=True) if m])
    result: BoolArray = no_parameter.astype(np.bool_) | (linear & (lead != 0) & (total != 0))
    return result


def _power(values: OffsetArray, exponent: int) -> OffsetArray:
    """Modulo the prime; to the power of the prime less 2 it is the inverse."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values % _PRIME
        values, exponent = values * values % _PRIME, exponent >> 1
    return result


def _modulo(values: ExactIntegers) -> OffsetArray:
    return (values % _PRIME).astype(np.int64)


# Exact parser for numbers, polynomials and quotients, in other tools' files and in Python models.
#
# *Numbers* are `0.25`, `1e-3`, `3/10`. `nan`, `1_000`, digits of other scripts and huge exponents, which
# Python's `float` and `Fraction` accept, are refused.
#
#     expression := term (('+' | '-') term)*
#     term       := signed (('*' | '/') signed)*
#     signed     := ('+' | '-')* power
#     power      := atom ('^' digits)?
#     atom       := number | parameter | '(' expression ')'
#
# `-p^2` is refused: Storm reads it as (−p)², others as −(p²).

DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
LONGEST = 4000
"""Characters, and decimal exponent, of the longest number read."""


def exact_number(text: str) -> Fraction:
    """The rational a decimal or a quotient of two decimals stands for; ValueError says what is wrong."""
    numerator, slash, denominator = text.strip().partition("/")
    value = _decimal(numerator)
    if not slash:
        return value
    divisor = _decimal(denominator)
    if divisor == 0:
        raise ValueError("division by 0")
    return value / divisor


def _decimal(text: str) -> Fraction:
    stripped = text.strip()
    match = DECIMAL.fullmatch(stripped)
    if match is None or len(stripped) > LONGEST or abs(int(match.group(1) or 0)) > LONGEST:
        raise ValueError("not a number")
    return Fraction(stripped)


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<operator>[-+*/^()]))"
)
_DEEPEST = 60
_HIGHEST_DEGREE = 64
_MOST_TERMS = 5000
_MOST_BITS = 20_000
"""Of a coefficient. Larger ones come from nested powers, not from models."""


class PolynomialSyntaxError(ValueError):
    """What is wrong, and how many characters into the text."""

    def __init__(self, message: str, offset: int):
        super().__init__(message)
        self.offset = offset


def parse_function(text: str, parameters: Mapping[str, int]) -> Function:
    """The polynomial or rational function of the parameters, which are given with their indices.

    >>> parse_function("(2*p)/(2*p + 4)", {"p": 0}).text(["p"])
    'p/(p + 2)'
    """
    plain = _plain_sum(text, parameters)
    return read_function(text, parameters) if plain is None else plain


def read_function(text: str, parameters: Mapping[str, int]) -> Function:
    """As `parse_function`, by the grammar alone."""
    reader = FunctionReader(text, parameters)
    result = reader.expression()
    if reader.kind != "end":
        reader.fail(f"unexpected '{reader.token}'")
    return result


_SIGN = re.compile(r" ?([+-]) ?")
_RATIONAL = re.compile(r"([0-9]{1,15})(?:/([1-9][0-9]{0,14}))?")
_EXPONENT = re.compile(r"[0-9]{1,2}")


def _plain_sum(text: str, parameters: Mapping[str, int]) -> Polynomial | None:
    """The polynomial of a sum such as `3/10*p^2*q - p + 1`; None for anything else."""
    pieces = ["+", *_SIGN.split(text.strip())]
    if pieces[1] == "":  # the text begins with a sign, which binds closer than a power
        del pieces[:2]
        if len(pieces) < 2 or "^" in pieces[1].partition("*")[0]:
            return None
    terms: dict[Monomial, Fraction] = {}
    for sign, piece in zip(pieces[::2], pieces[1::2], strict=True):
        factors = piece.split("*")
        number = _RATIONAL.fullmatch(factors[0])
        top, bottom = (1, 1) if number is None else (int(number.group(1)), int(number.group(2) or 1))
        powers: dict[int, int] = {}
        for factor in factors if number is None else factors[1:]:
            name, power, exponent = factor.partition("^")
            if name not in parameters or (power and _EXPONENT.fullmatch(exponent) is None):
                return None
            powers[parameters[name]] = powers.get(parameters[name], 0) + (int(exponent) if power else 1)
        if sum(powers.values()) > _HIGHEST_DEGREE:
            return None
        monomial = tuple(sorted((index, exponent) for index, exponent in powers.items() if exponent))
        value = Fraction(top if sign == "+" else -top, bottom)
        terms[monomial] = terms[monomial] + value if monomial in terms else value
    return Polynomial(terms)


def parse_polynomial(text: str, parameters: Mapping[str, int]) -> Polynomial:
    """The polynomial in the parameters, which are given with their indices.

    >>> parse_polynomial("(-1 * (p+(-7)))/(10)", {"p": 0}).text(["p"])
    '7/10 - 1/10*p'
    """
    result = parse_function(text, parameters)
    if isinstance(result, RationalFunction):
        names = sorted(parameters, key=lambda name: parameters[name])
        raise PolynomialSyntaxError(
            f"{result.text(names)} is not a polynomial: quotients are for probabilities only", 0
        )
    return result


class FunctionReader:
    """A cursor: `kind`, `token` and `start` describe the token it stands on."""

    TOKEN = _TOKEN

    def __init__(self, text: str, parameters: Mapping[str, int]):
        self.text, self.parameters = text, parameters
        self.end, self.depth = 0, 0
        self.advance()

    def advance(self) -> None:
        match = self.TOKEN.match(self.text, self.end)
        if match is not None:
            self.kind = str(match.lastgroup)
            self.token = match.group(self.kind)
            self.start, self.end = match.start(self.kind), match.end()
            return
        rest = self.text[self.end :]
        self.start = self.end + len(rest) - len(rest.lstrip())
        self.kind, self.token = "end", ""
        if rest.strip():
            self.fail(f"unexpected character '{rest.strip()[0]}'")

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise PolynomialSyntaxError(message, self.start if offset is None else offset)

    def expression(self) -> Function:
        total = self.term()
        while self.token in ("+", "-"):
            operator, offset = self.token, self.start
            self.advance()
            right = self.term()
            total = self.sum(total, right if operator == "+" else -right, offset)
        return total

    def term(self) -> Function:
        product = self.signed()
        while self.token in ("*", "/"):
            operator, offset = self.token, self.start
            self.advance()
            right = self.signed()
            product = (
                self.product(product, right, offset)
                if operator == "*"
                else self.quotient(product, right, offset)
            )
        return product

    def quotient(self, numerator: Function, divisor: Function, offset: int) -> Function:
        if divisor == Polynomial({}):
            self.fail("division by 0", offset)
        return self.product(numerator, 1 / divisor, offset)

    def sum(self, left: Function, right: Function, offset: int) -> Function:
        (_, b), (_, d) = parts(left), parts(right)
        if b != d:
            self.check_sizes(left, right, offset)
        return left + right

    def product(self, left: Function, right: Function, offset: int) -> Function:
        self.check_sizes(left, right, offset)
        return left * right

    def check_sizes(self, left: Function, right: Function, offset: int) -> None:
        """Refuse what would be too large before it is computed."""
        for one, other in product(parts(left), parts(right)):
            if len(one.terms) * len(other.terms) > _MOST_TERMS:
                self.fail(f"this product has more than {_MOST_TERMS} terms", offset)
            if one.degree + other.degree > _HIGHEST_DEGREE:
                self.fail(f"the degree is above {_HIGHEST_DEGREE}", offset)
            if _bits(one) + _bits(other) > _MOST_BITS:
                self.fail("the coefficients have too many digits", offset)

    def signed(self) -> Function:
        negative, offset = False, self.start
        while self.token in ("+", "-"):
            negative ^= self.token == "-"
            self.advance()
        value, is_power = self.power()
        if negative and is_power:
            self.fail("a sign before a power is ambiguous: write -1*p^2 or (-p)^2", offset)
        return -value if negative else value

    def power(self) -> tuple[Function, bool]:
        base = self.atom()
        if self.token != "^":
            return base, False
        offset = self.start
        self.advance()
        if self.kind != "number" or not self.token.isdecimal():
            self.fail("an exponent must be a whole number such as 2")
        if len(self.token) > 3 or int(self.token) > _HIGHEST_DEGREE:
            self.fail(f"the exponent {self.token[:20]} is above {_HIGHEST_DEGREE}")
        exponent = int(self.token)
        self.advance()
        result: Function = Polynomial.constant(1)
        for _ in range(exponent):
            result = self.product(result, base, offset)
        return result, True

    def atom(self) -> Function:
        token, kind, offset = self.token, self.kind, self.start
        if token == "(":
            self.depth += 1
            if self.depth > _DEEPEST:
                self.fail(f"more than {_DEEPEST} nested parentheses")
            self.advance()
            inner = self.expression()
            if self.token != ")":
                self.fail("')' expected")
            self.depth -= 1
            self.advance()
            return inner
        if kind == "number":
            self.advance()
            return Polynomial.constant(self.constant(token, offset))
        if kind == "name":
            return Polynomial.variable(self.parameters[self.parameter()])
        here = f"found '{token}'" if token else "but the text ends"
        self.fail(f"a number, a parameter or '(' expected, {here}")

    def parameter(self) -> str:
        """The name that it stands on."""
        name = self.token
        if name not in self.parameters:
            listed = ", ".join(self.parameters) or "none"
            self.fail(f"'{name}' is not a parameter of the model (they are: {listed})")
        self.advance()
        return name

    def constant(self, token: str, offset: int) -> Fraction:
        try:
            return exact_number(token)
        except ValueError as error:
            self.fail(str(error), offset)


def _bits(polynomial: Polynomial) -> int:
    return max(
        (c.numerator.bit_length() + c.denominator.bit_length() for c in polynomial.terms.values()), default=0
    )
