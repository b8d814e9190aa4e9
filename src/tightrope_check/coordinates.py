"""Coordinates of a parametric model: numbers x in which every expression, an exact polynomial, is affine.

They follow from domain and expressions alone:

* Free parameters. The domain's equalities, then lower = upper where a parameter is fixed, are solved one
  after the other in rationals, each for the last parameter that is left in it; one parameter always stays
  free. Every parameter is then an affine function of the free ones.
* Products. Every monomial of degree two or more that an expression has in the free parameters, and all its
  prefixes, is a coordinate: the product of an earlier coordinate with a free parameter.

Polynomials are dictionaries from monomials, ((parameter, exponent), …) in order, to rationals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from math import comb, prod

from tightrope_check.arrays import FloatArray, Number
from tightrope_check.budget import bits_of_sum, hold, spend, spend_product, spend_sums, spend_terms
from tightrope_check.evidence import Domain
from tightrope_check.fields import Polynomial, Polynomials
from tightrope_check.numbers import Arithmetic, Numbers, as_fraction, bits_of, quick
from tightrope_check.verdict import Contradiction

MOST_COORDINATES = 400

Affine = tuple[list[Fraction], Fraction]
"""linear·x + constant."""

Row = tuple[list[Fraction], Fraction]
"""a·x ≤ b."""

Put = Callable[[Polynomial], Polynomial]
Ends = tuple[Sequence[Fraction], Sequence[Fraction]]
Box = tuple[list[Fraction], list[Fraction]]
"""(lower, upper) of every coordinate."""


class Space:
    """Parameters with their domain, and the coordinates x built from the free ones."""

    def __init__(self, domain: Domain, polynomials: Polynomials):
        self.domain, self.parameters = domain, len(domain.lower)
        self.free, self.substitution = _solve(domain)
        self._known: dict[Monomial, Terms] = {}
        if any(sum(e for _, e in monomial) > MOST_COORDINATES for p in polynomials for monomial in p):
            raise ValueError(f"an expression has a degree beyond {MOST_COORDINATES}")
        wanted = {term for p in polynomials for monomial in p for term in self._in_free(monomial)}
        chain: set[Monomial] = set()
        for monomial in wanted:
            while sum(e for _, e in monomial) >= 2 and len(chain) <= MOST_COORDINATES:
                chain.add(monomial)
                monomial = _split(monomial)[0]
        self.monomials: list[Monomial] = [((position, 1),) for position in range(len(self.free))]
        self.monomials += sorted(chain, key=lambda m: (sum(e for _, e in m), m))
        self._number = {monomial: j for j, monomial in enumerate(self.monomials)}
        factors = map(_split, self.monomials[len(self.free) :])
        self.products = [(self._number[rest], self._number[last]) for rest, last in factors]
        self.size = len(self.monomials)
        if self.size > MOST_COORDINATES:
            raise ValueError(f"there are more than {MOST_COORDINATES} coordinates")

    def affine(self, polynomial: Polynomial) -> Affine:
        """A polynomial of the parameters in coordinates."""
        spend("expressions in coordinates", self.size // 4 + 4 * len(polynomial))
        linear, terms = [ZERO] * self.size, self.in_free(polynomial)
        constant = terms.pop((), ZERO)
        for monomial, coefficient in terms.items():
            linear[self._number[monomial]] = coefficient
        return linear, constant

    def table(self, n: Arithmetic, polynomials: Polynomials) -> tuple[Numbers, Numbers]:
        """(linear, constant) of all of them, each number to the nearest."""
        hold("expressions in coordinates", 32 * len(polynomials) * self.size)
        forms = [self.affine(polynomial) for polynomial in polynomials]
        spend_terms("expressions in coordinates", len(forms) * self.size, *(a for a, _ in forms))
        linear = n.array([a for a, _ in forms]).reshape(len(forms), self.size)
        return linear, n.array([c for _, c in forms])

    def form(self, polynomial: Polynomial, c: Fraction) -> Affine:
        """The expression less c in coordinates; of a quotient f/g, f − c·g."""
        return self.affine(add(polynomial, {(): ONE}, -c) if c else polynomial)

    def end(self, polynomial: Polynomial, c: Fraction, rest: Fraction, side: int) -> Fraction:
        """The end of an expression that follows from that of its `form`; side 1 is the upper one."""
        return c + rest

    def range(self, polynomial: Polynomial, box: Ends, is_reward: bool = False, put: Put = dict) -> Interval:
        """An enclosure of a probability or reward over a box, of the parameters or of what is put for
        them."""
        return polynomial_range(put(polynomial), *box, is_reward)

    def complement(self, polynomial: Polynomial) -> Terms:
        """1 less an expression, or less a sum of some, of which only matters whether that is 0."""
        return add({(): ONE}, polynomial, -1)

    def in_free(self, polynomial: Polynomial) -> Terms:
        """The same polynomial of the free parameters, by their positions."""
        if len(self.free) == self.parameters:
            return dict(polynomial)
        total: Terms = {}
        for monomial, coefficient in polynomial.items():
            _add_to(total, self._in_free(monomial), coefficient)
        return {monomial: c for monomial, c in total.items() if c}

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        row = self.domain_rows[2 * index + part] if part in (0, 1) else None
        if row is None:
            raise ValueError("no such row of the domain")
        return row

    @cached_property
    def domain_rows(self) -> list[Row | None]:
        """Rows a·x ≤ b by 2·number + part: parameters (upper, lower), then constraints (≤, ≥ if equal)."""
        hold("rows of the domain", 32 * (self.parameters + len(self.domain.bound)) * self.size, lasting=True)
        domain, rows = self.domain, list[Row | None]()
        sides: list[tuple[Polynomial, Fraction, Fraction | None]] = []
        for i, ends in enumerate(zip(domain.upper, domain.lower, strict=True)):
            sides.append(({((i, 1),): ONE}, *ends))
        for coefficients, bound, is_equality in domain.constraints:
            terms: Terms = {((i, 1),): c for i, c in enumerate(coefficients) if c}
            sides.append((terms, bound, bound if is_equality else None))
        for polynomial, high, low in sides:
            linear, constant = self.affine(polynomial)
            rows.append((linear, high - constant))
            rows.append(None if low is None else ([-a for a in linear], constant - low))
        return rows

    def start_box(self) -> Box:
        """Bounds of every coordinate over the domain's box."""
        ends = self.domain.lower, self.domain.upper
        return self.with_products(*([end[i] for i in self.free] for end in ends))

    def with_products(self, lower: list[Fraction], upper: list[Fraction]) -> Box:
        """A box of the free coordinates, or of all, met with what it says of the products."""
        lower, upper = list(lower), list(upper)
        for number, (left, right) in enumerate(self.products, start=len(self.free)):
            ends = [(min(lower[j], upper[j]), upper[j]) for j in (left, right)]
            spend_product("ranges of products", 8, ends[0], ends[1])
            corners = [a * b for a in ends[0] for b in ends[1]]
            low = ZERO if left == right and ends[0][0] <= 0 <= ends[0][1] else min(corners)
            high = max(corners)
            if number < len(lower):
                lower[number], upper[number] = max(lower[number], low), min(upper[number], high)
            else:
                lower.append(low)
                upper.append(high)
        return lower, upper

    def _in_free(self, monomial: Monomial) -> Terms:
        if monomial not in self._known:
            term: Terms = {(): ONE}
            for i, exponent in monomial:
                for _ in range(exponent):
                    term = multiply(term, self.substitution[i])
            self._known[monomial] = term
        return self._known[monomial]


def _split(monomial: Monomial) -> tuple[Monomial, Monomial]:
    """The monomial without one factor of its last parameter, and that parameter."""
    *head, (index, exponent) = monomial
    rest = (*head, (index, exponent - 1)) if exponent > 1 else tuple(head)
    return rest, ((index, 1),)


def _solve(domain: Domain) -> tuple[list[int], list[Terms]]:
    """The free parameters, and every parameter as an affine polynomial of these (by position)."""
    size = len(domain.lower)
    spend("parameters of the domain", size**2)
    equalities = [[*a, b] for a, b, is_equality in domain.constraints if is_equality]
    for i, (low, high) in enumerate(zip(domain.lower, domain.upper, strict=True)):
        if low > high:
            raise Contradiction(f"the domain of parameter {i} is empty")
        if low == high:
            spend("parameters that are fixed", 2 * size)
            equalities.append([ONE if j == i else ZERO for j in range(size)] + [low])
    solved: dict[int, list[Fraction]] = {}
    for row in equalities:
        spend("equalities of the domain", 4 * (len(solved) + size))
        for pivot, other in solved.items():
            row = _without(row, other, pivot) if row[pivot] else row
        left = [j for j in range(size) if row[j]]
        if row[size] and not left:
            raise Contradiction("the domain's equalities have no solution")
        if not left or len(solved) == size - 1:
            continue
        spend_product("equalities of the domain", size, row, (row[left[-1]],))
        row = [a / row[left[-1]] for a in row]
        for pivot, other in solved.items():
            solved[pivot] = _without(other, row, left[-1]) if other[left[-1]] else other
        solved[left[-1]] = row
    free = [i for i in range(size) if i not in solved]
    result: list[Terms] = []
    for i in range(size):
        if i in solved:
            terms: Terms = {((p, 1),): -solved[i][j] for p, j in enumerate(free)} | {(): solved[i][size]}
        else:
            terms = {((free.index(i), 1),): ONE}
        result.append({monomial: c for monomial, c in terms.items() if c})
    return free, result


def _without(row: list[Fraction], other: list[Fraction], pivot: int) -> list[Fraction]:
    """The row minus the multiple of another one, whose entry at the pivot is 1, that cancels there."""
    factor = row[pivot]
    spend_product("equalities of the domain", 2 * len(row), row, other)
    return [a - factor * b for a, b in zip(row, other, strict=True)]


Monomial = tuple[tuple[int, int], ...]
Terms = dict[Monomial, Fraction]
Quick = dict[Monomial, Number]
Key = tuple[tuple[Monomial, Fraction], ...]
Interval = tuple[Fraction, Fraction]

ZERO, ONE = Fraction(0), Fraction(1)
MOST_TERMS = 20_000
MOST_CONTROLS = 4096
MOST_TABLE = 2 * 10**9
"""Of Bernstein coefficients: degree³ · bits of an end."""


def key(polynomial: Polynomial) -> Key:
    """The same for equal polynomials."""
    return tuple(sorted(polynomial.items()))


def is_constant(polynomial: Polynomial) -> bool:
    return all(not monomial for monomial in polynomial)


def add(left: Polynomial, right: Polynomial, factor: Fraction | int = 1) -> Terms:
    """left + factor·right."""
    spend("sums of polynomials", 8 * len(left))
    result = dict(left)
    _add_to(result, right, factor)
    return {monomial: c for monomial, c in result.items() if c}


def _add_to(total: Terms, right: Polynomial, factor: Fraction | int) -> None:
    """The same in place, where sums of zero stay."""
    met = (total[monomial] for monomial in right if monomial in total)
    spend_terms("sums of polynomials", 3 * len(right) + 5, right.values(), met, (factor,))
    for monomial, c in right.items():
        total[monomial] = total.get(monomial, ZERO) + factor * c


def product(left: Monomial, right: Monomial) -> Monomial:
    exponents = dict(left)
    for i, e in right:
        exponents[i] = exponents.get(i, 0) + e
    return tuple(sorted(exponents.items()))


def multiply(left: Polynomial, right: Polynomial) -> Terms:
    result: Terms = {}
    spend_product("products of polynomials", 2 * len(left) * len(right), left.values(), right.values())
    for first, a in left.items():
        for second, b in right.items():
            monomial = product(first, second)
            held = result.get(monomial, ZERO)
            spend_product("products of polynomials", 1, (a, b), (held,))
            result[monomial] = held + a * b
    if len(result) > MOST_TERMS:
        raise ValueError(f"an expression has more than {MOST_TERMS} terms in the free parameters")
    return {monomial: c for monomial, c in result.items() if c}


def polynomial_range(
    polynomial: Polynomial, lower: Sequence[Fraction], upper: Sequence[Fraction], is_reward: bool = False
) -> Interval:
    """An enclosure of a probability over a box of the parameters: by the least and the largest Bernstein
    coefficient, which for multilinear polynomials are values at corners; [0, 1] where there are too many,
    of a reward or a denominator a ValueError."""
    if all(sum(e for _, e in monomial) <= 1 for monomial in polynomial):
        spend_sums("ranges of expressions", 6 * len(polynomial), [polynomial.values()])
        low = high = polynomial.get((), ZERO)
        for monomial, c in polynomial.items():
            for v, _ in monomial:
                least, most = (lower, upper) if c > 0 else (upper, lower)
                low, high = low + c * least[v], high + c * most[v]
        return low, high
    degrees = common_degrees(polynomial)
    if degrees is None and is_reward:
        raise ValueError("a reward or a denominator has too many terms to be bounded")
    if degrees is None:
        return ZERO, ONE
    values = bernstein_coefficients(polynomial, degrees, lower, upper)
    return as_fraction(min(values)), as_fraction(max(values))


def common_degrees(*polynomials: Polynomial) -> dict[int, int] | None:
    """The degree of some polynomials in every parameter; None where they have too many coefficients."""
    degrees: dict[int, int] = {}
    for i, e in (factor for polynomial in polynomials for monomial in polynomial for factor in monomial):
        degrees[i] = max(e, degrees.get(i, 0))
    return degrees if prod(degree + 1 for degree in degrees.values()) <= MOST_CONTROLS else None


def bernstein_coefficients(
    polynomial: Polynomial, degrees: dict[int, int], lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> list[Number]:
    """The Bernstein coefficients on a box, written with these degrees."""
    controls: list[Quick] = [{monomial: quick(c) for monomial, c in polynomial.items()}]
    bits = bits_of_sum("Bernstein coefficients", polynomial.values())
    for i, degree in degrees.items():
        own = degree * max(bits_of(lower[i]), bits_of(upper[i]))
        bits += own
        spend("Bernstein coefficients", 4 * sum(map(len, controls)) * (degree + 1), bits)
        # What a table takes counts once in a check, whether or not an earlier one left it behind.
        spend("Bernstein coefficients", 6 * (degree + 1) ** 2, own, once=(degree, lower[i], upper[i]))
        hold("Bernstein coefficients", (degree + 1) ** 2 * (100 + own // 8))
        table = bernstein_table(degree, lower[i], upper[i])
        controls = [_put_powers(control, i, powers) for control in controls for powers in table]
    return [control.get((), 0) for control in controls]


def _put_powers(polynomial: Quick, v: int, powers: Sequence[Number]) -> Quick:
    """The polynomial with powers[e] in place of v^e."""
    result: Quick = {}
    for monomial, c in polynomial.items():
        rest = tuple(factor for factor in monomial if factor[0] != v)
        result[rest] = result.get(rest, 0) + c * powers[dict(monomial).get(v, 0)]
    return result


@lru_cache(maxsize=1 << 10)
def bernstein_table(degree: int, low: Fraction, high: Fraction) -> list[list[Number]]:
    """[k][e]: the k-th Bernstein coefficient of x^e on [low, high], a mean of products of e of its points.

    Sums of such products are the coefficients of (1 + high·t)^k·(1 + low·t)^(degree − k); from one k to the
    next, a factor 1 + low·t is divided out.
    """
    if degree**3 * max(bits_of(low), bits_of(high)) > MOST_TABLE:
        raise ValueError("an expression has too high a degree to be bounded")
    below, above, table = quick(low), quick(high), []
    sums = [comb(degree, e) * below**e for e in range(degree + 1)]
    for _ in range(degree + 1):
        table.append([total / comb(degree, e) for e, total in enumerate(sums)])
        rest = sums[0]
        for e in range(1, degree + 1):
            sums[e], rest = sums[e] + (above - below) * rest, sums[e] - below * rest
    return table
