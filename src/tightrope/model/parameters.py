"""Parameters θ and their domain: a box, with optional linear constraints. All numbers are exact rationals.

    p=0.1:0.9,q=0:1                 a box           (--param)
    0.1<=p<=0.9, p+q<=1, p+q+r=1    a domain        (--domain)
    p=0.55,q=0.0004                 a point         (--at)

A chain of comparisons has one linear form in the middle. Vertices come from the double description method
(Motzkin et al. 1953): two vertices span an edge if no third one lies on all their common constraints. Beyond
`MOST_CORNERS` corners callers use linear programs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from itertools import product
from numbers import Rational
from typing import NoReturn

from tightrope.errors import InputError, Location, check_type
from tightrope.model.numbers import Number, exact_argument, show
from tightrope.model.polynomial import Function, FunctionReader, Polynomial
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

    def __post_init__(self) -> None:
        numbers: tuple[object, ...] = (*self.coefficients, self.bound)
        for number in numbers:
            if not isinstance(number, Rational):
                hint = 'tr.Parameters.box(…, where="p + q <= 1") takes text'
                raise InputError(f"a constraint holds {number!r}, not an exact number", hint=hint)

    def excess(self, point: Sequence[Fraction]) -> Fraction:
        """The left side minus the bound; negative if the constraint is satisfied."""
        return sum((a * x for a, x in zip(self.coefficients, point, strict=True)), Fraction(0)) - self.bound

    def holds(self, point: Sequence[Fraction]) -> bool:
        """Return whether `point` satisfies the constraint."""
        excess = self.excess(point)
        return excess == 0 if self.is_equality else excess <= 0

    def text(self, names: Sequence[str]) -> str:
        """Return the constraint as text, with parameters called `names`."""
        left = Polynomial((((i, 1),), a) for i, a in enumerate(self.coefficients))
        return f"{left.text(names)} {'=' if self.is_equality else '<='} {self.bound}"


@dataclass(frozen=True)
class FreeDistribution:
    """An unknown distribution: coordinates first, … are all outcomes but the last; `name` ties choices."""

    first: int
    outcomes: int
    name: str | None = None

    @property
    def coordinates(self) -> range:
        return range(self.first, self.first + self.outcomes - 1)

    @property
    def probabilities(self) -> tuple[Polynomial, ...]:
        """Of all outcomes, in order."""
        own = [Polynomial.variable(i) for i in self.coordinates]
        return (*own, Polynomial({(): Fraction(1)} | {((i, 1),): Fraction(-1) for i in self.coordinates}))


@dataclass(frozen=True, repr=False)
class Parameters(Record):
    """Names in order, a closed box, and constraints that cut it.

    Coordinates of `free` distributions follow the named parameters (`shown`).

    >>> parameters = Parameters.box(p=(0.1, 0.9), q=(0, "1/3"))
    >>> parameters.text(), parameters.contains({"p": 0.5, "q": 0})
    ('1/10<=p<=9/10, 0<=q<=1/3', True)
    """

    names: tuple[str, ...] = ()
    lower: tuple[Fraction, ...] = ()
    upper: tuple[Fraction, ...] = ()
    constraints: tuple[LinearConstraint, ...] = ()
    free: tuple[FreeDistribution, ...] = ()
    narrowed: str = field(default="", compare=False)
    """Words about a part of what was asked for that was left out, as no probability can lie there."""

    def __post_init__(self) -> None:
        for argument in ("names", "lower", "upper", "constraints"):
            check_type(argument, getattr(self, argument), tuple, "a tuple; `Parameters.box` is easier")
        for name, *ends in zip(self.names, self.lower, self.upper, strict=False):
            check_type("names", name, str, "the name of a parameter")
            for end in ends:
                check_type(name, end, Rational, "an exact number; `Parameters.box` takes any")
        for constraint in self.constraints:
            check_type(
                "constraints", constraint, LinearConstraint, 'one; write Parameters.box(…, where="p<=1")'
            )
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
    def box(cls, ranges: Ranges | None = None, /, **bounds: tuple[Number, Number] | str) -> Parameters:
        """Return parameters with an interval each.

        >>> Parameters.box(p=(0, 1), q=(0.1, "1/3")).text()
        '0<=p<=1, 1/10<=q<=1/3'
        >>> Parameters.box(p=(0, 1), q=(0, 1), where="p+q<=1").contains({"p": 0.6, "q": 0.5})
        False

        Parameters
        ----------
        ranges : mapping, optional
            The ends of each parameter's interval, by name.
        **bounds : (low, high) or str
            The same by keywords; `where="p+q<=1"` adds linear constraints.
        """
        if ranges is not None:
            check_type("ranges", ranges, Mapping, "a mapping from names to ranges; write box(p=(0, 1))")
        where = bounds.pop("where") if isinstance(bounds.get("where"), str) else None
        pairs: dict[str, object] = {**(ranges or {}), **bounds}
        ends = {str(name): check_range(str(name), pair) for name, pair in pairs.items()}
        lower, upper = (tuple(end[side] for end in ends.values()) for side in (0, 1))
        result = cls(tuple(ends), lower, upper)
        return result if where is None else result.cut(str(where))

    def cut(self, where: str) -> Parameters:
        """Return the part of the domain that satisfies `where`, such as "p+q<=1, q<=2*p"."""
        within = parse_domain(where, self.names, "`where`", self)
        sides = zip(self.names, self.lower, within.lower, self.upper, within.upper, strict=True)
        lower, upper = [], []
        for name, low, least, high, most in sides:
            lower.append(max(low, least))
            upper.append(min(high, most))
            if lower[-1] > upper[-1]:
                raise InputError(
                    f"`where` leaves nothing of the range of parameter '{name}', {low} to {high}"
                )
        result = replace(within, lower=tuple(lower), upper=tuple(upper))
        result.refuse_empty()
        return result

    def symbols(self) -> tuple[Polynomial, ...]:
        """Return polynomials to calculate with: `p, q = parameters.symbols()`."""
        return tuple(Polynomial.variable(i) for i in range(len(self.names)))

    @classmethod
    def unit_box(cls, names: Sequence[str]) -> Parameters:
        """Return parameters called `names` in [0, 1], the default interval."""
        zero, one = Fraction(0), Fraction(1)
        return cls(tuple(names), (zero,) * len(names), (one,) * len(names))

    def with_free(self, distributions: Sequence[tuple[int, str | None]]) -> Parameters:
        """These parameters, followed by unconstrained distributions, each (outcomes, name)."""
        if not distributions:
            return self
        names, lower, upper = list(self.names), list(self.lower), list(self.upper)
        free, zero, one = list(self.free), Fraction(0), Fraction(1)
        taken = set(names)
        for outcomes, name in distributions:
            free.append(FreeDistribution(len(names), outcomes, name))
            stem = f"free{len(free)}" if name is None else f"free_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
            while any(f"{stem}_{i}" in taken for i in range(1, outcomes)):
                stem += "_"
            own = [f"{stem}_{i}" for i in range(1, outcomes)]
            taken.update(own)
            names += own
            lower += [zero] * len(own)
            upper += [one] * len(own)
        size = len(names)
        constraints = [
            replace(each, coefficients=each.coefficients + (zero,) * (size - len(each.coefficients)))
            for each in self.constraints
        ]
        for each in free[len(self.free) :]:
            if each.outcomes > 2:
                row = [zero] * size
                row[each.first : each.first + each.outcomes - 1] = [one] * (each.outcomes - 1)
                constraints.append(LinearConstraint(tuple(row), one))
        return Parameters(tuple(names), tuple(lower), tuple(upper), tuple(constraints), tuple(free))

    @property
    def shown(self) -> Parameters:
        """Those that have names of their own."""
        if not self.free:
            return self
        size = self.free[0].first
        constraints = tuple(
            replace(each, coefficients=each.coefficients[:size])
            for each in self.constraints
            if any(each.coefficients[:size])
        )
        return Parameters(self.names[:size], self.lower[:size], self.upper[:size], constraints)

    def __len__(self) -> int:
        return len(self.names)

    def _title_(self) -> str:
        return f"Parameters: {', '.join(self.shown.names) or 'none'}"

    def _facts_(self) -> Facts:
        shown = self.shown
        ends = zip(shown.names, shown.lower, shown.upper, strict=True)
        boxed = [(name, f"{low} to {high}") for name, low, high in ends]
        where = [("where", constraint.text(shown.names)) for constraint in shown.constraints]
        return [*boxed, *where, *([("free distributions", str(len(self.free)))] if self.free else [])]

    def index(self, name: str) -> int:
        return self.names.index(name)

    def contains(self, point: Point) -> bool:
        """Return whether `point` (by name, or in the order of the names) lies in the domain."""
        theta = self.point(point)
        return all(
            low <= x <= high for low, x, high in zip(self.lower, theta, self.upper, strict=True)
        ) and all(constraint.holds(theta) for constraint in self.constraints)

    def point(self, values: Point) -> tuple[Fraction, ...]:
        """Return `values` (by name, or in the order of the names) as exact numbers in that order.

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
            if self.free and missing[0] in self.names[self.free[0].first :]:
                raise InputError(
                    f"no value for '{missing[0]}': the probabilities of {len(self.free)} free "
                    f"distribution{'' if len(self.free) == 1 else 's'} belong to a point, too",
                    hint="give all coordinates of `model.parameters.names`, or ask over the whole domain",
                )
            raise InputError(f"no value for parameter '{missing[0]}'", hint=self._list_bounds())
        return tuple(exact_argument(values[name], f"parameter '{name}'") for name in self.names)

    def _by_position(self, values: object) -> tuple[Fraction, ...]:
        example = "{" + ", ".join(f'"{name}": …' for name in self.names) + "}"
        if isinstance(values, str) or not isinstance(values, Collection):
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

    def inside(self, point: Point | None, values: Mapping[str, Number]) -> tuple[Fraction, ...]:
        """A point of the domain, given as a whole or by keywords; any other is refused."""
        if point is not None and values:
            raise InputError("the point is given twice: once as a whole and once by names")
        exact = self.point(values if point is None else point)
        if not self.contains(exact):
            raise InputError(
                f"the point {self.name_point(exact)} lies outside the domain {self.text()}",
                hint="choose a point inside, or state another domain with `params` and `domain`",
            )
        return exact

    def name_point(self, point: Sequence[Fraction]) -> str:
        """`p=0.5, q=1/3`: decimals where they are short, fractions otherwise."""
        return ", ".join(f"{name}={_short(x)}" for name, x in zip(self.names, point, strict=True))

    def refuse_empty(self) -> None:
        """Refuse constraints that contradict each other."""
        if any(domain_vertices(self.part(block)) == [] for block in self.blocks()):
            raise InputError(
                f"the domain is empty: no point satisfies {self.text()}", hint="loosen `params` or `domain`"
            )

    def blocks(self) -> list[list[int]]:
        """The parameters in groups that constraints link; the domain is the product of its parts."""
        group = {i: {i} for i in range(len(self.names))}
        for row in self._linked:
            joined = set[int]().union(*(group[i] for i in row))
            group.update(dict.fromkeys(joined, joined))
        return [sorted(one) for one in {id(one): one for one in group.values()}.values()]

    @cached_property
    def _linked(self) -> list[list[int]]:
        """The parameters in each constraint."""
        return [[i for i, a in enumerate(each.coefficients) if a] for each in self.constraints]

    def part(self, block: Sequence[int]) -> Parameters:
        """The domain of some blocks' parameters alone."""
        if len(block) == len(self.names):
            return self
        inside = set(block)
        constraints = tuple(
            replace(each, coefficients=tuple(each.coefficients[i] for i in block))
            for each, linked in zip(self.constraints, self._linked, strict=True)
            if linked and linked[0] in inside
        )
        lower, upper = (tuple(column[i] for i in block) for column in (self.lower, self.upper))
        return Parameters(tuple(self.names[i] for i in block), lower, upper, constraints)

    def text(self) -> str:
        """Return the domain in the syntax that `parse_domain` reads."""
        parts = [
            f"{low}<={name}<={high}"
            for name, low, high in zip(self.names, self.lower, self.upper, strict=True)
        ]
        return ", ".join([*parts, *(constraint.text(self.names) for constraint in self.constraints)])

    def _list_bounds(self) -> str:
        return f"the parameters are: {self.listed or 'none'}"

    @property
    def listed(self) -> str:
        """`p, q and 2 free distributions`."""
        names = ", ".join(self.shown.names)
        if not self.free:
            return names
        count = f"{len(self.free):,} free distribution{'' if len(self.free) == 1 else 's'}"
        return f"{names} and {count}" if names else count

    def example(self, separator: str) -> str:
        """`p=…,q=…`, the first of many."""
        names = self.names if len(self.names) <= _MOST_SHOWN else self.names[:_MOST_SHOWN]
        more = f"{separator}…" * (len(names) < len(self.names))
        return separator.join(f"{name}=…" for name in names) + more


_MOST_SHOWN = 12
"""Parameters in an example of a point."""

_LONG = 10**40
"""Fractions of larger numbers are shown as decimals, with a few digits."""


def _short(value: Fraction) -> str:
    if max(abs(value.numerator), value.denominator) > _LONG:
        return show(value)
    decimal = f"{float(value):.12g}"
    return decimal if Fraction(decimal) == value else str(value)


def check_range(name: str, pair: object) -> tuple[Fraction, Fraction]:
    """The two ends of a parameter's range, exact."""
    if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
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
    if _is_simplex(parameters):
        zero, one, size = Fraction(0), Fraction(1), len(parameters)
        return [tuple(one if i == j else zero for i in range(size)) for j in range(-1, size)]
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


def _is_simplex(parameters: Parameters) -> bool:
    """Whether the domain is that of a distribution: x ≥ 0, Σ x ≤ 1."""
    if len(parameters.constraints) != 1 or parameters.constraints[0].is_equality:
        return False
    (only,) = parameters.constraints
    return (
        only.bound == 1
        and all(a == 1 for a in only.coefficients)
        and not any(parameters.lower)
        and all(x >= 1 for x in parameters.upper)
    )


def _cut(active: dict[Vertex, int], constraint: LinearConstraint, bit: int) -> dict[Vertex, int]:
    excess = {vertex: constraint.excess(vertex) for vertex in active}
    vertices = {v: bits | bit if excess[v] == 0 else bits for v, bits in active.items() if excess[v] <= 0}
    inside = [v for v in active if excess[v] < 0]
    outside = [v for v in active if excess[v] > 0]
    for a in inside:
        for b in outside:
            shared = active[a] & active[b]
            if any(shared & bits == shared for v, bits in active.items() if v is not a and v is not b):
                continue
            weight = excess[b] / (excess[b] - excess[a])
            crossing = tuple(weight * x + (1 - weight) * y for x, y in zip(a, b, strict=True))
            vertices[crossing] = vertices.get(crossing, 0) | shared | bit
    return vertices


Ranges = Mapping[str, tuple[Number, Number]]
"""A range for each parameter that has another one than [0, 1]."""


def box_text(params: object) -> str | None:
    """Ranges as the text `p=1/10:9/10`."""
    if params is None or isinstance(params, str):
        return params
    if not isinstance(params, Mapping):
        raise InputError(
            f"`params` is a {type(params).__name__}, not a mapping from names to ranges",
            hint='write params={"p": (0.1, 0.9)}',
        )
    ends = {name: check_range(str(name), pair) for name, pair in params.items()}
    return ",".join(f"{name}={low}:{high}" for name, (low, high) in ends.items())


def parse_box(text: str, names: Sequence[str], base: Parameters | None = None) -> Parameters:
    """`p=0.1:0.9,q=0:1`; what is not named stays as in `base` (the unit box where None is given)."""
    base = base or Parameters.unit_box(names)
    inherited = dict(zip(names, zip(base.lower, base.upper, strict=True), strict=True))
    ranges = inherited | _ranges(text, names)
    lower, upper = zip(*ranges.values(), strict=True) if names else ((), ())
    return Parameters(tuple(names), lower, upper, base.constraints, base.free)


def _ranges(text: str, names: Sequence[str]) -> dict[str, tuple[Fraction, Fraction]]:
    reader = _RegionReader(text, names, "`params`", "0.1:0.9")
    ranges: dict[str, tuple[Fraction, Fraction]] = {}
    for name in reader.names_given():
        low = reader.number()
        reader.expect(":")
        ranges[name] = low, (high := reader.number())
        if low > high:
            reader.fail(f"the range of '{name}' is empty: {_short(low)} > {_short(high)}", reader.before)
    return ranges


def narrow_domain(base: Parameters, box: str | None, domain: str | None) -> Parameters:
    """The part of a domain that a box and constraints leave; given ranges replace those of the base."""
    if box is not None:
        base = parse_box(box, base.names, base=base)
    if domain is None:
        return base
    within = parse_domain(domain, base.names, base=base)
    named = {} if box is None else _ranges(box, base.names)
    lower, upper = list(within.lower), list(within.upper)
    for i, name in enumerate(base.names):
        if name in named:
            lower[i], upper[i] = max(lower[i], base.lower[i]), min(upper[i], base.upper[i])
            if lower[i] > upper[i]:
                raise InputError(
                    f"nothing is left of the range of '{name}': `params` says {base.lower[i]} to "
                    f"{base.upper[i]}, and `domain` {within.lower[i]} to {within.upper[i]}",
                    hint="give its range in one of the two places, or let both have a point in common",
                )
    return replace(within, lower=tuple(lower), upper=tuple(upper))


def parse_point(text: str, names: Sequence[str], option: str = "`at`") -> tuple[Fraction, ...]:
    """`p=0.55,q=0.0004`, every parameter exactly once."""
    reader = _RegionReader(text, names, option, "0.5")
    values = {name: reader.number() for name in reader.names_given()}
    if missing := [name for name in names if name not in values]:
        raise InputError(
            f"{option}: no value for parameter{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            hint=f"give {','.join(f'{name}=…' for name in names)}",
        )
    return tuple(values[name] for name in names)


def parse_domain(
    text: str, names: Sequence[str], option: str = "`domain`", base: Parameters | None = None
) -> Parameters:
    """`0.1<=p<=0.9, p+q<=1`, cutting `base` (the unit box where None is given)."""
    reader = _RegionReader(text, names, option)
    base = base or Parameters.unit_box(names)
    lower: dict[str, Fraction] = {}
    upper: dict[str, Fraction] = {}
    constraints = list(base.constraints)
    while reader.token:
        start = reader.start
        forms = [reader.expression()]
        comparisons: list[str] = []
        while reader.token in ("<=", ">=", "<", ">", "=", "=="):
            comparisons.append(reader.token)
            reader.advance()
            forms.append(reader.expression())
        if not comparisons:
            reader.fail("a comparison is missing here: write 0.1<=p<=0.9 or p+q<=1")
        if len(comparisons) > 2:
            reader.fail("at most two comparisons in a row, as in 0.1<=p<=0.9", start)
        for left, comparison, right in zip(forms, comparisons, forms[1:], strict=False):
            difference = right - left if comparison in (">", ">=") else left - right
            assert isinstance(difference, Polynomial)
            equality, bound = comparison in ("=", "=="), -difference.constant_term
            coefficients = {names[m[0][0]]: c for m, c in difference.terms.items() if m}
            if not coefficients:
                reader.fail("this comparison has no parameter in it", start)
            if len(coefficients) == 1:
                ((name, a),) = coefficients.items()
                value = bound / a
                if equality or a > 0:
                    upper[name] = min(value, upper.get(name, value))
                if equality or a < 0:
                    lower[name] = max(value, lower.get(name, value))
            else:
                row = tuple(coefficients.get(name, Fraction(0)) for name in names)
                constraints.append(LinearConstraint(row, bound, equality))
        reader.separator()
    for name, low, high in zip(names, base.lower, base.upper, strict=True):
        if (name in lower) != (name in upper) and lower.get(name, low) > upper.get(name, high):
            end = f"at least {lower[name]}" if name in lower else f"at most {upper[name]}"
            raise InputError(
                f"nothing is left of the range of '{name}': `params`, or else the model, says {low} to "
                f"{high}, and {option} {end}",
                hint="let both have a point in common",
            )
    return Parameters(
        tuple(names),
        tuple(lower.get(name, low) for name, low in zip(names, base.lower, strict=True)),
        tuple(upper.get(name, high) for name, high in zip(names, base.upper, strict=True)),
        tuple(constraints),
        base.free,
    )


class _RegionReader(FunctionReader):
    """The text of one option; errors point at the token."""

    TOKEN = re.compile(
        r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
        r"|(?P<name>[A-Za-z_]\w*)|(?P<operator><=|>=|==|=|<|>|[-+*/^():,]))"
    )

    def __init__(self, text: str, names: Sequence[str], option: str, form: str = ""):
        self.option, self.start, self.form = option, 0, form
        super().__init__(text, {name: i for i, name in enumerate(names)})

    def advance(self) -> None:
        self.before = self.start
        super().advance()

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        column = (self.start if offset is None else offset) + 1
        hint = f"the parameters are: {', '.join(self.parameters) or 'none'}"
        if self.form and self.parameters:
            hint += f"; write {next(iter(self.parameters))}={self.form}"
        raise InputError(message, Location(self.option, 1, column, self.text), hint)

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(f"'{token}' expected, found {repr(self.token) if self.token else 'the end'}")
        self.advance()

    def names_given(self) -> Iterator[str]:
        """The names before `=`, each once; what stands behind is read before the next is asked for."""
        seen: set[str] = set()
        while self.token:
            name = self.parameter()
            if name in seen:
                self.fail(f"parameter '{name}' is given twice", self.before)
            seen.add(name)
            self.expect("=")
            yield name
            self.separator()

    def separator(self) -> None:
        """A comma between entries; a trailing one is an error."""
        if self.token:
            self.expect(",")
            if not self.token:
                self.fail("an entry is missing after the last comma")

    def parameter(self) -> str:
        if self.kind != "name":
            self.fail(f"a parameter's name expected, found {repr(self.token) if self.token else 'the end'}")
        if self.token not in self.parameters:
            close = get_close_matches(self.token, self.parameters, 1)
            suggestion = f"; did you mean '{close[0]}'?" if close else ""
            self.fail(f"'{self.token}' is not a parameter of the model{suggestion}")
        return super().parameter()

    def number(self) -> Fraction:
        """A signed number or quotient of numbers."""
        form = self.expression()
        if not isinstance(form, Polynomial) or not form.is_constant:
            self.fail("a number expected here, not a parameter", self.before)
        return form.constant_term

    def quotient(self, numerator: Function, divisor: Function, offset: int) -> Function:
        if not divisor.is_constant or divisor == Polynomial({}):
            self.fail("a domain is linear: divide by numbers other than 0 only", offset)
        return super().quotient(numerator, divisor, offset)

    def product(self, left: Function, right: Function, offset: int) -> Function:
        if not left.is_constant and not right.is_constant:
            self.fail("a domain is linear: a product of parameters cannot be used", offset)
        return super().product(left, right, offset)
