"""Λ: the distinct transition expressions of a model.

Exact rational coefficients over one shared list of monomials, row by row in CSR layout, with a
float64 image of the same shape. Expression e is Σ_j coefficient[j]·x^monomial[j] for j in
row_start[e]..row_start[e+1]. Frozen; builders grow an `ExpressionTable` first.

A rational function f/g is the polynomial f·r in one variable more, r = 1/g: variable d + k of monomials,
d the number of parameters, stands for 1/denominators[k]. With f/g in lowest terms, equal functions have
equal rows here, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InputError
from tightrope.model import door
from tightrope.model.polynomial import Monomial, Polynomial, monomial_degree
from tightrope.model.polynomial_array import PolynomialList
from tightrope.model.rational_function import Function, RationalFunction
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import MOST_LINES, Facts, Record, freeze_fields

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Point = Sequence[Fraction | float | int]
"""A value for each parameter, in order. A float stands for the exact value of that double."""


NO_DENOMINATORS = PolynomialList.of([])


@dataclass(frozen=True, eq=False, repr=False)
class Expressions(Record):
    """The table Λ. Rows are distinct functions; the constant monomial `()` comes first if used.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> [model.expressions.text(row) for row in range(len(model.expressions))]
    ['1', 'p', '-p + 1']
    """

    parameter_names: tuple[str, ...]
    monomials: tuple[Monomial, ...]
    row_start: OffsetArray
    monomial: IndexArray
    coefficient: RationalArray
    denominators: PolynomialList = NO_DENOMINATORS

    def __post_init__(self) -> None:
        freeze_fields(self)

    @classmethod
    def from_rows(
        cls,
        parameter_names: tuple[str, ...],
        monomials: tuple[Monomial, ...],
        rows: Sequence[Sequence[tuple[int, int, int]]],
        denominators: PolynomialList = NO_DENOMINATORS,
    ) -> Expressions:
        """From (monomial number, numerator, denominator) rows; drops monomials that no row uses."""
        flat = [entry for row in rows for entry in row]
        number = np.array([entry[0] for entry in flat], dtype=np.int64)
        used = np.zeros(len(monomials), dtype=np.bool_)
        used[number] = True
        renumber = np.cumsum(used) - 1
        row_start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=row_start[1:])
        fits = all(abs(n) < 2**62 and d < 2**62 for _, n, d in flat)
        coefficient = RationalArray(
            np.array([n for _, n, _ in flat], dtype=np.int64 if fits else object),
            np.array([d for _, _, d in flat], dtype=np.int64 if fits else object),
        )
        return cls(
            tuple(parameter_names),
            tuple(m for m, keep in zip(monomials, used, strict=True) if keep),
            row_start,
            renumber[number].astype(np.int32) if len(flat) else np.zeros(0, np.int32),
            coefficient,
            denominators,
        )

    def __len__(self) -> int:
        return len(self.row_start) - 1

    def _title_(self) -> str:
        return f"Expressions: {len(self):,} in {', '.join(self.parameter_names) or 'no parameters'}"

    def _facts_(self) -> Facts:
        shown = [(str(index), self.text(index)) for index in range(min(len(self), MOST_LINES - 2))]
        return shown + ([("…", f"{len(self) - len(shown):,} more")] if len(shown) < len(self) else [])

    # --- single expressions ----------------------------------------------------------------

    def polynomial(self, index: int) -> Polynomial:
        """The row, with 1/denominators[k] as variable d + k."""
        start, end = int(self.row_start[index]), int(self.row_start[index + 1])
        return Polynomial({self.monomials[self.monomial[j]]: self.coefficient[j] for j in range(start, end)})

    def function(self, index: int) -> Function:
        """The row as a function of the parameters alone."""
        polynomial = self.polynomial(index)
        if not self.denominators or not self.is_rational[index]:
            return polynomial
        numerator = Polynomial({monomial[:-1]: c for monomial, c in polynomial.terms.items()})
        return RationalFunction(numerator, self.denominators[self.denominator_of[index]])

    def text(self, index: int) -> str:
        return self.function(index).text(self.parameter_names)

    def index_of(self, function: Function) -> int | None:
        """The row of this function, or None where the table does not have it."""
        return self._index.get(function)

    @cached_property
    def _index(self) -> dict[Function, int]:
        return {self.function(e): e for e in range(len(self))}

    # --- quotients -------------------------------------------------------------------------

    @cached_property
    def denominator_of(self) -> IndexArray:
        """The number of every row's denominator; −1 for polynomials."""
        result: IndexArray = np.full(len(self), -1, dtype=np.int32)
        size = len(self.parameter_names)
        of_monomial = np.array([m[-1][0] - size if m and m[-1][0] >= size else -1 for m in self.monomials])
        if self.denominators:
            np.maximum.at(result, self.row_of_term, of_monomial[self.monomial].astype(np.int32))
        return result

    @cached_property
    def is_rational(self) -> BoolArray:
        return self.denominator_of >= 0

    def _extend(self, points: FloatArray) -> FloatArray:
        """Points [n, d] with the values of all 1/g behind them."""
        columns = [points]
        for g in self.denominators:
            value = np.zeros(len(points))
            for monomial, coefficient in g.terms.items():
                term = np.full(len(points), float(coefficient))
                for parameter, exponent in monomial:
                    term *= points[:, parameter] ** exponent
                value += term
            columns.append(1.0 / value[:, None])
        return np.hstack(columns)

    def check_held(self, what: str) -> None:
        """Refuse numbers in the table that no double may stand for (`tightrope.model.door`)."""
        below = (RationalArray.from_fractions(g.terms.values()) for g in self.denominators)
        for part in (self.coefficient, *below):
            if (wrong := door.first_not_held(part)) is not None:
                raise InputError(f"{what}: {door.why_not(part[wrong])}")

    # --- shape -----------------------------------------------------------------------------

    @cached_property
    def row_of_term(self) -> IndexArray:
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.row_start))

    @cached_property
    def monomial_degrees(self) -> OffsetArray:
        return np.array([monomial_degree(m) for m in self.monomials], dtype=np.int64)

    @cached_property
    def exponents(self) -> OffsetArray:
        """Exponent of each parameter and each 1/g (columns) in each monomial (row)."""
        columns = len(self.parameter_names) + len(self.denominators)
        table = np.zeros((len(self.monomials), columns), dtype=np.int64)
        for row, monomial in enumerate(self.monomials):
            for parameter, exponent in monomial:
                table[row, parameter] = exponent
        return table

    @cached_property
    def degrees(self) -> OffsetArray:
        degrees = np.zeros(len(self), dtype=np.int64)
        np.maximum.at(degrees, self.row_of_term, self.monomial_degrees[self.monomial])
        return degrees

    @property
    def degree(self) -> int:
        """The highest one; of a quotient that of its numerator or its denominator."""
        own = int((self.degrees - self.is_rational).max(initial=0))
        return max([own, *(g.degree for g in self.denominators)])

    @cached_property
    def is_constant(self) -> BoolArray:
        return np.equal(self.degrees, 0)

    @cached_property
    def nonconstant(self) -> IndexArray:
        return np.flatnonzero(~self.is_constant).astype(np.int32)

    @cached_property
    def complement(self) -> IndexArray:
        """For every f the row of 1 − f, or −1 where the table does not have it."""
        signed: dict[tuple[tuple[int, int, int], ...], int] = {}
        flipped: list[tuple[tuple[int, int, int], ...]] = []
        constant = self.monomials.index(()) if () in self.monomials else -1
        starts = self.row_start.tolist()
        monomial = self.monomial.tolist()
        numerator = self.coefficient.numerator.tolist()
        denominator = self.coefficient.denominator.tolist()
        for e in range(len(self)):
            row = {monomial[j]: (numerator[j], denominator[j]) for j in range(starts[e], starts[e + 1])}
            signed[tuple(sorted((m, n, d) for m, (n, d) in row.items()))] = e
            n, d = row.pop(constant, (0, 1))
            other = [(m, -n2, d2) for m, (n2, d2) in row.items()]
            if n != d:
                other.append((constant, d - n, d))
            flipped.append(tuple(sorted(other)))
        result = np.array([signed.get(row, -1) for row in flipped], dtype=np.int32)
        for e in np.flatnonzero(self.is_rational).tolist() if self.denominators else ():
            result[e] = self._index.get(1 - self.function(e), -1)
        return result

    # --- values ----------------------------------------------------------------------------

    @cached_property
    def float_coefficient(self) -> FloatArray:
        return self.coefficient.to_float()

    def image(self) -> csr_array:
        """The float64 coefficients as a sparse matrix: one row an expression, one column a monomial."""
        from scipy.sparse import csr_array

        shape = (len(self), len(self.monomials))
        return csr_array((self.float_coefficient, self.monomial, self.row_start), shape=shape)

    def monomial_values(self, theta: FloatArray) -> FloatArray:
        """x^m for every monomial; `theta` is one point [d] or many [n, d]."""
        points = np.atleast_2d(np.asarray(theta, dtype=np.float64))
        if self.denominators:
            points = self._extend(points)
        values = np.ones((len(points), len(self.monomials)))
        for column, monomial in enumerate(self.monomials):
            for parameter, exponent in monomial:
                values[:, column] *= points[:, parameter] ** exponent
        return values if np.ndim(theta) == 2 else values[0]

    def values_many(self, thetas: FloatArray) -> FloatArray:
        """All expressions at many points, in plain float64: result [n, E]."""
        result: FloatArray = (self.image() @ self.monomial_values(np.atleast_2d(thetas)).T).T
        return np.ascontiguousarray(result)

    def values(self, theta: Point) -> FloatArray:
        """All expressions at a point: the float64 nearest to the exact value."""
        return self.exact_values(theta).to_float()

    def exact_values(self, theta: Point) -> RationalArray:
        """All expressions at a point, exactly.

        The monomials' values are brought to one denominator first, so that a term costs one
        multiplication of integers and a row a single reduction to lowest terms.
        """
        point = self.checked_point(theta)
        point += [1 / g.evaluate(point) for g in self.denominators]
        value = [
            math.prod((point[i] ** exponent for i, exponent in monomial), start=Fraction(1))
            for monomial in self.monomials
        ]
        shared = math.lcm(*(v.denominator for v in value)) if value else 1
        scaled = np.empty(len(value), dtype=object)
        scaled[:] = [v.numerator * (shared // v.denominator) for v in value]
        terms = RationalArray(
            self.coefficient.numerator * scaled[self.monomial], self.coefficient.denominator.astype(object)
        )
        filled = np.flatnonzero(np.diff(self.row_start))
        sums = terms.segment_sums(self.row_start[filled])
        numerator = np.zeros(len(self), dtype=object)
        denominator = np.ones(len(self), dtype=object)
        numerator[filled] = sums.numerator
        denominator[filled] = sums.denominator.astype(object) * shared
        return RationalArray.ratio(numerator, denominator)

    def checked_point(self, theta: Point) -> list[Fraction]:
        """`theta` as exact rationals, refused where its length or an entry is wrong."""
        if len(theta) != len(self.parameter_names):
            expected = ", ".join(self.parameter_names) or "no parameter"
            raise InputError(
                f"the point has {len(theta)} values, the model has {len(self.parameter_names)} "
                f"parameters ({expected})"
            )
        for name, value in zip(self.parameter_names, theta, strict=True):
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"the value of parameter '{name}' is {value}, not a finite number")
        return [Fraction(value) for value in theta]
