"""Parameters θ and the domain they may lie in: a box, with optional linear constraints.

All numbers are exact rationals. The texts a user writes are those of Storm's regions:
`0.1<=p<=0.9, p+q<=1` for a domain, `p=0.1:0.9,q=0:1` for a box, `p=0.55,q=0.0004` for a point.

The vertices of a domain, exactly: a box cut by linear constraints.

The double description method on rationals (Motzkin et al. 1953): start from the corners of the
box and cut by one half-space after the other; new vertices appear on edges between a vertex that
stays and one that goes. Two vertices span an edge when no third one lies on all constraints that
both lie on. Domains have a handful of parameters and constraints; beyond `MOST_CORNERS` corners
the answer is None and callers use linear programs. Qhull would be faster but works in floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from itertools import product
from typing import Any

from tightrope.errors import InputError
from tightrope.model.numbers import Number, exact_argument
from tightrope.model.polynomial import Polynomial
from tightrope.numerics.record import Facts, Record

Point = Mapping[str, Number] | Sequence[Number]
"""Values of all parameters, by name or in the order of the names."""


@dataclass(frozen=True)
class LinearConstraint:
    """Σ coefficients·θ ≤ bound, or = bound.

    >>> LinearConstraint((Fraction(1), Fraction(1)), Fraction(1)).text(["p", "q"])
    'p + q <= 1'
    """

    coefficients: tuple[Fraction, ...]
    bound: Fraction
    is_equality: bool = False

    def excess(self, point: Sequence[Fraction]) -> Fraction:
        """How far the left side is above the bound (negative: room left)."""
        return sum((a * x for a, x in zip(self.coefficients, point, strict=True)), Fraction(0)) - self.bound

    def holds(self, point: Sequence[Fraction]) -> bool:
        excess = self.excess(point)
        return excess == 0 if self.is_equality else excess <= 0

    def text(self, names: Sequence[str]) -> str:
        terms = [
            (f"{names[i]}" if abs(a) == 1 else f"{abs(a)}*{names[i]}", a < 0)
            for i, a in enumerate(self.coefficients)
            if a != 0
        ]
        left = "".join(
            (f"-{body}" if negative else body) if k == 0 else f" {'-' if negative else '+'} {body}"
            for k, (body, negative) in enumerate(terms)
        )
        return f"{left or '0'} {'=' if self.is_equality else '<='} {self.bound}"


@dataclass(frozen=True, repr=False)
class Parameters(Record):
    """Names in order, a closed box, and constraints that cut it.

    >>> parameters = Parameters.box(p=(0.1, 0.9), q=(0, "1/3"))
    >>> parameters.text(), parameters.contains({"p": 0.5, "q": 0})
    ('1/10<=p<=9/10, 0<=q<=1/3', True)
    """

    names: tuple[str, ...] = ()
    lower: tuple[Fraction, ...] = ()
    upper: tuple[Fraction, ...] = ()
    constraints: tuple[LinearConstraint, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise InputError(f"a parameter is named twice: {', '.join(self.names)}")
        if not len(self.names) == len(self.lower) == len(self.upper):
            raise InputError("every parameter needs a lower and an upper bound")
        for name, low, high in zip(self.names, self.lower, self.upper, strict=True):
            if low > high:
                raise InputError(f"the domain of parameter '{name}' is empty: {low} > {high}")
        for constraint in self.constraints:
            if len(constraint.coefficients) != len(self.names):
                raise InputError("a constraint needs one coefficient a parameter")

    @classmethod
    def box(cls, **bounds: tuple[Number, Number]) -> Parameters:
        """Each parameter between two numbers.

        >>> Parameters.box(p=(0, 1), q=(0.1, "1/3")).text()
        '0<=p<=1, 1/10<=q<=1/3'
        """
        ends = {name: check_range(name, pair) for name, pair in bounds.items()}
        return cls(
            tuple(ends),
            tuple(low for low, _ in ends.values()),
            tuple(high for _, high in ends.values()),
        )

    def symbols(self) -> tuple[Polynomial, ...]:
        """The parameters as polynomials to calculate with: `p, q = parameters.symbols()`."""
        return tuple(Polynomial.variable(i) for i in range(len(self.names)))

    @classmethod
    def unit_box(cls, names: Sequence[str]) -> Parameters:
        """Every parameter in [0, 1]: what a parameter is taken to be where nothing is said."""
        zero, one = Fraction(0), Fraction(1)
        return cls(tuple(names), (zero,) * len(names), (one,) * len(names))

    def __len__(self) -> int:
        return len(self.names)

    def _title_(self) -> str:
        return f"Parameters: {', '.join(self.names) or 'none'}"

    def _facts_(self) -> Facts:
        ends = zip(self.names, self.lower, self.upper, strict=True)
        boxed = [(name, f"{low} to {high}") for name, low, high in ends]
        return [*boxed, *(("where", constraint.text(self.names)) for constraint in self.constraints)]

    def index(self, name: str) -> int:
        return self.names.index(name)

    def contains(self, point: Point) -> bool:
        """Whether a point (by name, or in the order of the names) lies in the domain."""
        theta = self.point(point)
        return all(
            low <= x <= high for low, x, high in zip(self.lower, theta, self.upper, strict=True)
        ) and all(constraint.holds(theta) for constraint in self.constraints)

    def point(self, values: Point) -> tuple[Fraction, ...]:
        """A point, exact, in the order of the names: by name, or by position.

        >>> Parameters.box(p=(0, 1), q=(0, 1)).point({"q": "1/3", "p": 0.55})
        (Fraction(11, 20), Fraction(1, 3))
        """
        if not isinstance(values, Mapping):
            return self._by_position(values)
        if unknown := [name for name in values if name not in self.names]:
            close = get_close_matches(str(unknown[0]), self.names, 1)
            meant = f"did you mean '{close[0]}'? " if close else ""
            raise InputError(f"{unknown[0]!r} is not a parameter", hint=meant + self._list_bounds())
        if missing := [name for name in self.names if name not in values]:
            raise InputError(f"no value for parameter '{missing[0]}'", hint=self._list_bounds())
        return tuple(exact_argument(values[name], f"parameter '{name}'") for name in self.names)

    def _by_position(self, values: Any) -> tuple[Fraction, ...]:
        example = "{" + ", ".join(f'"{name}": …' for name in self.names) + "}"
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise InputError(
                f"a point is given by values of the parameters, not by {values!r}", hint=f"write {example}"
            )
        if len(values) != len(self.names):
            raise InputError(
                f"the point has {len(values)} values for {len(self.names)} "
                f"parameter{'' if len(self.names) == 1 else 's'}",
                hint=self._list_bounds(),
            )
        given = list(values)
        return tuple(
            exact_argument(x, f"parameter '{name}'") for name, x in zip(self.names, given, strict=True)
        )

    def text(self) -> str:
        """The domain in the syntax that `parse_domain` reads."""
        parts = [
            f"{low}<={name}<={high}"
            for name, low, high in zip(self.names, self.lower, self.upper, strict=True)
        ]
        return ", ".join([*parts, *(constraint.text(self.names) for constraint in self.constraints)])

    def _list_bounds(self) -> str:
        return f"the parameters are: {', '.join(self.names) or 'none'}"


def check_range(name: str, pair: Any) -> tuple[Fraction, Fraction]:
    """The two ends of a parameter's range, exact."""
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise InputError(
            f"the range of parameter '{name}' is {pair!r}, not a pair of numbers",
            hint=f"write {name}=(0.1, 0.9)",
        )
    low, high = (exact_argument(end, f"the range of parameter '{name}'") for end in pair)
    if low > high:
        raise InputError(f"the range of parameter '{name}' is empty: {low} > {high}")
    return low, high


MOST_CORNERS = 256

Vertex = tuple[Fraction, ...]


def domain_vertices(parameters: Parameters) -> list[Vertex] | None:
    """All vertices ([] for an empty domain), or None where there would be too many."""
    sides = [
        (low,) if low == high else (low, high)
        for low, high in zip(parameters.lower, parameters.upper, strict=True)
    ]
    free = sum(len(side) == 2 for side in sides)
    if 2**free > MOST_CORNERS:
        return None
    active: dict[Vertex, int] = {}
    for corner in product(*sides):
        bits = 0
        for i, x in enumerate(corner):
            bits |= (x == parameters.lower[i]) << (2 * i) | (x == parameters.upper[i]) << (2 * i + 1)
        active[corner] = bits
    next_bit = 2 * len(parameters)
    for constraint in parameters.constraints:
        active = _cut(active, constraint, 1 << next_bit)
        next_bit += 1
        if constraint.is_equality:
            opposite = LinearConstraint(tuple(-a for a in constraint.coefficients), -constraint.bound)
            active = _cut(active, opposite, 1 << next_bit)
            next_bit += 1
        if not active or len(active) > 16 * MOST_CORNERS:
            break
    return list(active) if len(active) <= 16 * MOST_CORNERS else None


def _cut(active: dict[Vertex, int], constraint: LinearConstraint, bit: int) -> dict[Vertex, int]:
    excess = {vertex: constraint.excess(vertex) for vertex in active}
    kept = {v: bits | bit if excess[v] == 0 else bits for v, bits in active.items() if excess[v] <= 0}
    inside = [v for v in active if excess[v] < 0]
    outside = [v for v in active if excess[v] > 0]
    for a in inside:
        for b in outside:
            shared = active[a] & active[b]
            if any(shared & bits == shared for v, bits in active.items() if v is not a and v is not b):
                continue
            weight = excess[b] / (excess[b] - excess[a])
            crossing = tuple(weight * x + (1 - weight) * y for x, y in zip(a, b, strict=True))
            kept[crossing] = kept.get(crossing, 0) | shared | bit
    return kept
