"""One polynomial with exact rational coefficients.

The handful of operations a front end needs on single expressions. Batches of polynomials live in
`PolynomialArray`, the table of a whole model in `Expressions`; a computer-algebra system would be
far slower and a large dependency for sums and products of short polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, cast, overload

from tightrope.model.numbers import Number, exact

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
