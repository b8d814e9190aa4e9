"""Coordinates of a learned model's region, checked: every expression is affine in them.

The certificate names free parameters, says how the others follow from them, and lists products of two
earlier coordinates. All of it is checked in rationals: θ_i = substitution_i(free) must be a linear
consequence of the domain's equalities (and of lower = upper), and every expression, after substitution, must
be a combination of the coordinates. The box of a coordinate follows from the domain's box by exact interval
arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tightrope.certificate.polynomials import Monomial, Polynomial, added, is_constant, substituted

Affine = tuple[list[Fraction], Fraction]
"""linear·x + constant."""

Box = tuple[list[Fraction], list[Fraction]]

_MOST_CONTROL_POINTS = 4096


class Space:
    """Parameters with their domain, and the coordinates x built from the free ones."""

    def __init__(self, domain: Mapping[str, Any], coordinates: Mapping[str, Any]):
        self.lower = [Fraction(text) for text in domain["lower"]]
        self.upper = [Fraction(text) for text in domain["upper"]]
        self.parameters = len(self.lower)
        self.constraints = [
            ([Fraction(text) for text in a], Fraction(b), bool(is_equality))
            for a, b, is_equality in domain["constraints"]
        ]
        if len(self.upper) != self.parameters or any(
            len(a) != self.parameters for a, _, _ in self.constraints
        ):
            raise ValueError("the domain does not fit its parameters")
        self.free = [int(i) for i in coordinates["free"]]
        self.substitution = [self._affine_in_free(row) for row in coordinates["substitution"]]
        if len(self.substitution) != self.parameters or not self._substitution_follows():
            raise ValueError("the eliminated parameters do not follow from the domain's equalities")
        self.products = [(int(a), int(b)) for a, b in coordinates["products"]]
        self.monomials: list[Monomial] = [((position, 1),) for position in range(len(self.free))]
        for left, right in self.products:
            if not (0 <= left < len(self.monomials) and 0 <= right < len(self.monomials)):
                raise ValueError("a product of coordinates that are not there yet")
            exponents = dict(self.monomials[left])
            for i, e in self.monomials[right]:
                exponents[i] = exponents.get(i, 0) + e
            self.monomials.append(tuple(sorted(exponents.items())))
        self._number = {monomial: j for j, monomial in enumerate(self.monomials)}
        self._known: dict[Monomial, Polynomial] = {}

    @property
    def size(self) -> int:
        return len(self.monomials)

    def affine(self, polynomial: Polynomial) -> Affine:
        """A polynomial of the parameters in coordinates."""
        total: Polynomial = {}
        for monomial, coefficient in polynomial.items():
            if monomial not in self._known:
                self._known[monomial] = substituted({monomial: Fraction(1)}, self.substitution)
            total = added(total, self._known[monomial], coefficient)
        linear, constant = [Fraction(0)] * self.size, Fraction(0)
        for monomial, coefficient in total.items():
            if monomial:
                linear[self._number[monomial]] = coefficient
            else:
                constant = coefficient
        return linear, constant

    def parameter(self, i: int) -> Affine:
        return self.affine({((i, 1),): Fraction(1)})

    def start_box(self) -> Box:
        """Bounds of every coordinate over the domain's box."""
        lower = [self.lower[i] for i in self.free]
        upper = [self.upper[i] for i in self.free]
        for left, right in self.products:
            low, high = product_range((lower[left], upper[left]), (lower[right], upper[right]), left == right)
            lower.append(low)
            upper.append(high)
        return lower, upper

    def contains(self, free: Sequence[Fraction]) -> bool:
        """Whether the parameters with these free ones lie in the domain."""
        point = [
            sum((c * (free[m[0][0]] if m else 1) for m, c in polynomial.items()), Fraction(0))
            for polynomial in self.substitution
        ]
        inside = all(low <= x <= high for low, x, high in zip(self.lower, point, self.upper, strict=True))
        return inside and all(
            (total == b if is_equality else total <= b)
            for a, b, is_equality in self.constraints
            for total in [sum((c * x for c, x in zip(a, point, strict=True)), Fraction(0))]
        )

    def lifted(self, free: Sequence[Fraction]) -> list[Fraction]:
        """All coordinates of a point."""
        values = list(free)
        for left, right in self.products:
            values.append(values[left] * values[right])
        return values

    def _affine_in_free(self, row: Sequence[str]) -> Polynomial:
        if len(row) != len(self.free) + 1:
            raise ValueError("a substitution does not fit the free parameters")
        numbers = [Fraction(text) for text in row]
        polynomial: Polynomial = {((j, 1),): c for j, c in enumerate(numbers[:-1]) if c}
        return polynomial | ({(): numbers[-1]} if numbers[-1] else {})

    def _substitution_follows(self) -> bool:
        equalities = [[*a, b] for a, b, is_equality in self.constraints if is_equality]
        for i, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if low == high:
                equalities.append([*(Fraction(int(j == i)) for j in range(self.parameters)), low])
        solved = _echelon(equalities)
        for i, polynomial in enumerate(self.substitution):
            row = [Fraction(0)] * self.parameters + [polynomial.get((), Fraction(0))]
            row[i] += 1
            for monomial, c in polynomial.items():
                if monomial:
                    row[self.free[monomial[0][0]]] -= c
            if any(_reduced(row, solved)):
                return False
        return True


def _echelon(rows: list[list[Fraction]]) -> list[tuple[int, list[Fraction]]]:
    """Independent rows, each with the column it was solved for (entry 1 there)."""
    solved: list[tuple[int, list[Fraction]]] = []
    for row in rows:
        rest = _reduced(row, solved)
        pivots = [j for j, value in enumerate(rest[:-1]) if value]
        if pivots:
            solved.append((pivots[0], [value / rest[pivots[0]] for value in rest]))
    return solved


def _reduced(row: list[Fraction], solved: list[tuple[int, list[Fraction]]]) -> list[Fraction]:
    for pivot, other in solved:
        if factor := row[pivot]:
            row = [a - factor * b for a, b in zip(row, other, strict=True)]
    return row


def product_range(
    left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction], square: bool
) -> tuple[Fraction, Fraction]:
    """The range of a product over two intervals; of a square where the factors are the same."""
    corners = [a * b for a in left for b in right]
    low = min(corners)
    if square:
        low = Fraction(0) if left[0] <= 0 <= left[1] else min(left[0] ** 2, left[1] ** 2)
    return low, max(corners)


def polynomial_range(
    polynomial: Polynomial, lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """An enclosure of a polynomial over a box of its parameters.

    Bernstein coefficients on the box: corners for multilinear polynomials, hence exact for these.
    """
    if is_constant(polynomial):
        value = polynomial.get((), Fraction(0))
        return value, value
    variables = sorted({i for monomial in polynomial for i, _ in monomial})
    degrees = {v: max(dict(m).get(v, 0) for m in polynomial) for v in variables}
    if all(len(m) <= 1 and all(e == 1 for _, e in m) for m in polynomial):
        constant = polynomial.get((), Fraction(0))
        slopes = [(c, m[0][0]) for m, c in polynomial.items() if m]
        return (
            constant + sum(c * (lower[v] if c > 0 else upper[v]) for c, v in slopes),
            constant + sum(c * (upper[v] if c > 0 else lower[v]) for c, v in slopes),
        )
    keys: list[tuple[int, ...]] = [()]
    for v in variables:
        keys = [(*k, j) for k in keys for j in range(degrees[v] + 1)]
        if len(keys) > _MOST_CONTROL_POINTS:
            return _term_by_term(polynomial, lower, upper)
    table = {v: _bernstein(degrees[v], lower[v], upper[v]) for v in variables}
    terms = [(dict(m), c) for m, c in polynomial.items()]
    controls = []
    for k in keys:
        value = Fraction(0)
        for exponents, c in terms:
            part = c
            for v, j in zip(variables, k, strict=True):
                part *= table[v][j][exponents.get(v, 0)]
            value += part
        controls.append(value)
    return min(controls), max(controls)


def _term_by_term(
    polynomial: Polynomial, lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    low = high = Fraction(0)
    for monomial, coefficient in polynomial.items():
        least = most = coefficient
        for v, exponent in monomial:
            for _ in range(exponent):
                least, most = product_range((least, most), (lower[v], upper[v]), False)
        low, high = low + least, high + most
    return low, high


def _bernstein(degree: int, low: Fraction, high: Fraction) -> list[list[Fraction]]:
    """[k][e]: the k-th Bernstein coefficient of x^e on [low, high], by the blossom of x^e."""
    result = []
    for k in range(degree + 1):
        points = [high] * k + [low] * (degree - k)
        sums = [Fraction(1)] + [Fraction(0)] * degree
        for point in points:  # elementary symmetric sums
            for e in range(degree, 0, -1):
                sums[e] += sums[e - 1] * point
        choose = [Fraction(1)]
        for e in range(1, degree + 1):
            choose.append(choose[-1] * (degree - e + 1) / e)
        result.append([sums[e] / choose[e] for e in range(degree + 1)])
    return result
