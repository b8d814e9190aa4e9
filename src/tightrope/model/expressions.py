"""Λ: the table of a model's distinct transition expressions.

Exact rational coefficients over a shared list of monomials, in CSR layout with a float64 image: expression e
is Σ_j coefficient[j]·x^monomial[j] for j in row_start[e]..row_start[e+1]. Builders grow an `ExpressionTable`,
in which two functions have the same index exactly when they are equal. A quotient f/g is the polynomial f·r
in an additional variable: d + k, d the number of parameters, stands for 1/denominators[k]. In lowest terms
equal functions have equal rows, so evaluation, ties and coordinates need no special case.

*Signatures* are the distinct tuples of expressions of choices. Properties of a choice that depend only on
these are computed once per signature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model import numbers as door
from tightrope.model.polynomial import (
    Function,
    Monomial,
    Polynomial,
    PolynomialList,
    RationalFunction,
    monomial_order,
)
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, Scalar, offsets
from tightrope.numerics.jit import kernel
from tightrope.numerics.late import sparse
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
    >>> model = tr.load("bench:betting(5)")
    >>> [model.expressions.text(row) for row in range(4)]
    ['1', 'p', '1 - p', 'p + 1/500']
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
    def of_terms(
        cls,
        names: Sequence[str],
        monomials: Sequence[Monomial],
        size: int,
        row: OffsetArray,
        monomial: OffsetArray | IndexArray,
        coefficient: RationalArray,
        denominators: PolynomialList = NO_DENOMINATORS,
    ) -> Expressions:
        """From terms in any order, of `size` rows; monomials that no term has are dropped."""
        used = np.flatnonzero(np.bincount(monomial, minlength=1)).tolist() if len(monomial) else []
        remaining = sorted(used, key=lambda m: monomial_order(monomials[m]))
        place = np.zeros(len(monomials), dtype=np.int32)
        place[remaining] = np.arange(len(remaining))
        order = np.lexsort((place[monomial], row))
        return cls(
            tuple(names),
            tuple(monomials[m] for m in remaining),
            offsets(np.bincount(row, minlength=size)),
            place[monomial[order]],
            coefficient.take(order),
            denominators,
        )

    def __len__(self) -> int:
        return len(self.row_start) - 1

    def _title_(self) -> str:
        return f"Expressions: {len(self):,} in {', '.join(self.parameter_names) or 'no parameters'}"

    def _facts_(self) -> Facts:
        shown = [(str(index), self.text(index)) for index in range(min(len(self), MOST_LINES - 2))]
        return shown + ([("…", f"{len(self) - len(shown):,} more")] if len(shown) < len(self) else [])

    def polynomial(self, index: int) -> Polynomial:
        """The row, with 1/denominators[k] as variable d + k."""
        start, end = int(self.row_start[index]), int(self.row_start[index + 1])
        return Polynomial({self.monomials[self.monomial[j]]: self.coefficient[j] for j in range(start, end)})

    def function(self, index: int) -> Function:
        """The row as a function of the parameters alone."""
        return _function(self.polynomial(index), len(self.parameter_names), self.denominators)

    def text(self, index: int) -> str:
        return self.function(index).text(self.parameter_names)

    def index_of(self, function: Function) -> int | None:
        """The row of this function, or None where the table does not have it."""
        return self._index.get(function)

    @cached_property
    def _index(self) -> dict[Function, int]:
        return {self.function(e): e for e in range(len(self))}

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
        """Refuse numbers in the table that no double may stand for (`tightrope.model.numbers`)."""
        below = (RationalArray.from_fractions(g.terms.values()) for g in self.denominators)
        for part in (self.coefficient, *below):
            if (wrong := door.first_not_held(part)) is not None:
                raise InputError(f"{what}: {door.why_not(part[wrong])}")

    @cached_property
    def row_of_term(self) -> IndexArray:
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.row_start))

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
        np.maximum.at(degrees, self.row_of_term, self.exponents.sum(axis=1)[self.monomial])
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

    @cached_property
    def float_coefficient(self) -> FloatArray:
        return self.coefficient.to_float()

    def image(self) -> csr_array:
        """The float64 coefficients as a sparse matrix: one row an expression, one column a monomial."""
        shape = (len(self), len(self.monomials))
        return sparse.csr_array((self.float_coefficient, self.monomial, self.row_start), shape=shape)

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
        """All expressions at a point, exactly; the monomials are brought to one denominator first."""
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


def _function(row: Polynomial, parameters: int, denominators: Sequence[Polynomial]) -> Function:
    """The function behind a row, in which the variable d + k stands for 1/denominators[k]."""
    number = max((m[-1][0] for m in row.terms if m), default=-1) - parameters
    if number < 0:
        return row
    return RationalFunction(Polynomial({m[:-1]: c for m, c in row.terms.items()}), denominators[number])


def without_unused(expressions: Expressions) -> Expressions:
    """The same table without denominators that no row has, the others in the order of the rows."""
    if not expressions.denominators:
        return expressions
    used, first = np.unique(expressions.denominator_of[expressions.is_rational], return_index=True)
    order_of_use = used[np.argsort(first)].astype(np.int64)
    if np.array_equal(order_of_use, np.arange(len(expressions.denominators))):
        return expressions
    size = len(expressions.parameter_names)
    renumber = {size + old: size + new for new, old in enumerate(order_of_use.tolist())}
    monomials = [tuple((renumber.get(i, i), e) for i, e in monomial) for monomial in expressions.monomials]
    terms = expressions.row_of_term.astype(np.int64), expressions.monomial, expressions.coefficient
    left = expressions.denominators.take(order_of_use)
    return Expressions.of_terms(expressions.parameter_names, monomials, len(expressions), *terms, left)


class ExpressionTable:
    """Index 0 is the polynomial 0 and index 1 the polynomial 1; `freeze` drops what is unused."""

    ZERO = 0
    ONE = 1

    def __init__(self, parameter_names: Sequence[str]):
        self.parameter_names = tuple(parameter_names)
        self._functions: list[Function] = [Polynomial({}), Polynomial.constant(1)]
        self._index = {function: index for index, function in enumerate(self._functions)}

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: Function) -> int:
        index = self._index.setdefault(function, len(self._functions))
        if index == len(self._functions):
            self._functions.append(function)
        return index

    def function(self, index: int) -> Function:
        return self._functions[index]

    def freeze(self, used: IndexArray) -> tuple[Expressions, IndexArray]:
        """The expressions in `used`, in order of first interning, and `used` renumbered."""
        present = np.zeros(len(self), dtype=np.bool_)
        present[used] = True
        number: dict[Monomial, int] = {}
        denominators: dict[Polynomial, int] = {}
        terms: list[tuple[int, int, int, int]] = []
        rows = [self._functions[index] for index in np.flatnonzero(present).tolist()]
        for e, function in enumerate(rows):
            if isinstance(function, Polynomial):
                own = function.terms
            else:
                below = denominators.setdefault(function.denominator, len(denominators))
                factor = (len(self.parameter_names) + below, 1)
                own = {(*monomial, factor): c for monomial, c in function.numerator.terms.items()}
            for monomial, c in own.items():
                place = number.setdefault(monomial, len(number))
                terms.append((e, place, c.numerator, c.denominator))
        fits = all(abs(n) < 2**62 and d < 2**62 for _, _, n, d in terms)
        columns = np.array(terms, dtype=np.int64 if fits else object).reshape(-1, 4).T
        row, monomials = (column.astype(np.int64) for column in columns[:2])
        exact = RationalArray(np.ascontiguousarray(columns[2]), np.ascontiguousarray(columns[3]))
        frozen = Expressions.of_terms(
            self.parameter_names,
            list(number),
            len(rows),
            row,
            monomials,
            exact,
            PolynomialList.of([*denominators]),
        )
        return frozen, (np.cumsum(present) - 1)[used].astype(np.int32)


def tabulate(names: Sequence[str], functions: Iterable[Function]) -> tuple[Expressions, IndexArray]:
    """The table of functions, and the row of each."""
    table = ExpressionTable(names)
    return table.freeze(np.array([table.add(function) for function in functions], dtype=np.int32))


@dataclass(frozen=True, eq=False)
class Signatures:
    """Signature k is the tuple expression[start[k]:start[k+1]], in the order of the transitions."""

    of_choice: IndexArray
    start: OffsetArray
    expression: IndexArray

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def of_member(self) -> OffsetArray:
        """The signature that every entry of `expression` belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.start))

    @cached_property
    def example(self) -> OffsetArray:
        """The first choice of every signature."""
        first = np.empty(len(self), dtype=np.int64)
        first[self.of_choice[::-1]] = np.arange(len(self.of_choice) - 1, -1, -1)
        return first

    def spread(self, transition_start: OffsetArray, of_member: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """What every transition gets where each entry of `expression` has something."""
        out = np.empty(int(transition_start[-1]), of_member.dtype)
        _spread(transition_start, self.of_choice, self.start, of_member, out)
        return out

    @classmethod
    def of(cls, transition_start: OffsetArray, expression: IndexArray, expressions: int) -> Signatures:
        """Group choices by length, then fold their columns into one number, a column at a time."""
        length = np.diff(transition_start)
        of_choice = np.zeros(len(length), dtype=np.int32)
        sizes: list[OffsetArray] = []
        members: list[IndexArray] = []
        count = 0
        for k in np.flatnonzero(np.bincount(length)).tolist():
            rows = np.flatnonzero(length == k)
            first = transition_start[rows]
            number = expression[first].astype(np.int64)
            bound = expressions
            for j in range(1, k):
                number = number * expressions + expression[first + j]
                number, bound = _compact_numbers(number, bound * expressions)
            number, bound = _compact_numbers(number, bound)
            of_choice[rows] = number + count
            example = np.zeros(bound, dtype=np.int64)
            example[number] = first
            members.append(expression[example[:, None] + np.arange(k)].reshape(-1))
            sizes.append(np.full(bound, k, dtype=np.int64))
            count += bound
        return cls(of_choice, offsets(np.concatenate(sizes)), np.concatenate(members))


@kernel
def _spread(
    transition_start: OffsetArray,
    of_choice: IndexArray,
    start: OffsetArray,
    of_member: npt.NDArray[np.generic],
    out: npt.NDArray[np.generic],
) -> None:
    for c in range(len(of_choice)):
        first, source = transition_start[c], start[of_choice[c]]
        for t in range(first, transition_start[c + 1]):
            out[t] = of_member[source + t - first]


def _compact_numbers(number: OffsetArray, bound: int) -> tuple[OffsetArray, int]:
    """Distinct values to 0, 1, … in increasing order: by a table where it is small, else by sorting."""
    if bound <= 4 * len(number) + 2**20:
        present = np.zeros(bound, dtype=np.bool_)
        present[number] = True
        rank = np.cumsum(present) - 1
        return rank[number], int(rank[-1]) + 1
    values, inverse = np.unique(number, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64), len(values)
