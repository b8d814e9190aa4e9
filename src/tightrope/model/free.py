"""Unconstrained distributions (`free`): choices whose distribution is entirely unknown.

A distribution over k outcomes is k − 1 coordinates x ≥ 0 with Σ x ≤ 1 (`FreeDistribution`); the last outcome
has 1 − Σ x. The coordinates follow the parameters, in their box and constraints, so regions, sets, solvers
and certificates need no special case; corners of each simplex show that probabilities stay within [0, 1].
Distributions of one name are tied, outcome by outcome. A free command may synchronise with commands whose
probabilities are numbers: the result is affine. Other products are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tightrope.errors import InputError
from tightrope.model.expressions import Expressions, ExpressionTable, tabulate
from tightrope.model.parameters import FreeDistribution, Parameters, domain_vertices
from tightrope.model.polynomial import Function, Polynomial
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, offsets
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import remember

if TYPE_CHECKING:
    from tightrope.model.structure import Structure

MOST_COORDINATES = 5000
"""Of all free distributions of a model together: tables of parameters are dense. Beyond so many, a model
without numbers is a table (`without_numbers`)."""


@dataclass(frozen=True)
class Free:
    """A probability of which nothing is known; those of one name are one distribution.

    >>> import tightrope as tr
    >>> rows = [(0, "a", {1: tr.free, 2: tr.free}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"goal": [1]})
    >>> len(model.parameters.free), model.parameters.shown.names
    (1, ())
    >>> tr.free("die")
    free('die')
    """

    name: str | None = None

    def __call__(self, name: str) -> Free:
        if not isinstance(name, str) or not name:
            raise InputError(f"a free distribution is named by a text, not by {name!r}", hint='free("name")')
        return Free(name)

    def __repr__(self) -> str:
        return "free" if self.name is None else f"free({self.name!r})"


free = Free()


class FreeRows:
    """Gives coordinates to the free distributions of a model, in the order in which they come."""

    def __init__(self, parameters: Parameters):
        self._base = parameters
        self._next = len(parameters)
        self._asked: list[tuple[int, str | None]] = []
        self._named: dict[str, FreeDistribution] = {}

    def distribution(self, outcomes: int, name: str | None = None) -> FreeDistribution:
        """A new one, or that of the name."""
        if name is not None and name in self._named:
            known = self._named[name]
            if known.outcomes != outcomes:
                raise InputError(
                    f'free("{name}") has {known.outcomes} outcomes at one choice and {outcomes} at another',
                    hint="choices that share a free distribution have the same number of outcomes",
                )
            return known
        made = FreeDistribution(self._next, outcomes, name)
        self._next += outcomes - 1
        if self._next - len(self._base) > MOST_COORDINATES:
            raise InputError(
                f"the free distributions of this model have more than {MOST_COORDINATES:,} unknown "
                "probabilities: every choice has one of its own",
                hint='give those that are alike a name, free("name"), or use parameters',
            )
        self._asked.append((outcomes, name))
        if name is not None:
            self._named[name] = made
        return made

    def row(self, probabilities: Sequence[Function | Free], where: str) -> list[Function]:
        """The probabilities of one choice, with the free ones written out."""
        marks = [p for p in probabilities if isinstance(p, Free)]
        if not marks:
            return [p for p in probabilities if not isinstance(p, Free)]
        if any(mark != marks[0] for mark in marks):
            raise InputError(f"{where}: free probabilities of different names in one row")
        rest: Function = Polynomial.constant(1)
        for p in probabilities:
            if not isinstance(p, Free):
                rest = rest - p
        if not isinstance(rest, Polynomial) or not rest.is_constant:
            raise InputError(
                f"{where}: beside free probabilities there are parameters, and what is left is not a number",
                hint="write this row with parameters alone, or without any",
            )
        if rest.constant_term <= 0:
            raise InputError(
                f"{where}: the numbers sum to {1 - rest.constant_term}, nothing is left for free"
            )
        if len(marks) == 1:
            return [rest if isinstance(p, Free) else p for p in probabilities]
        own = iter(self.distribution(len(marks), marks[0].name).probabilities)
        return [next(own) * rest.constant_term if isinstance(p, Free) else p for p in probabilities]

    @property
    def parameters(self) -> Parameters:
        """With all that were given so far."""
        return self._base.with_free(self._asked)


@dataclass(frozen=True)
class FreeCommand:
    """Stand-ins of a command's free distribution: variables `first`, … for all outcomes but the last."""

    first: int
    outcomes: int
    name: str | None
    refuse: Callable[[str, str], NoReturn]


def split_commands(
    functions: Sequence[Function],
    number: IndexArray,
    transition_start: OffsetArray,
    parameters: Parameters,
    commands: Sequence[FreeCommand],
) -> tuple[Expressions, IndexArray, Parameters]:
    """Every choice its own free distribution in place of its command's.

    `number[t]` is the function of transition t. A row that is affine in a command's outcomes has a column of
    numbers for each; equal columns are one outcome.
    """
    owner = {v: c for c in commands for v in range(c.first, c.first + c.outcomes - 1)}
    touched = np.array([any(v in owner for v in f.variables) for f in functions], dtype=np.bool_)
    rows, result = FreeRows(parameters), list[Function | None](None for _ in number)
    analysed: dict[tuple[int, ...], tuple[FreeCommand, list[list[Fraction]]]] = {}
    starts = transition_start.tolist()
    owners = np.repeat(np.arange(len(transition_start) - 1), np.diff(transition_start))
    for choice in np.unique(owners[touched[number]]).tolist():
        span = range(starts[choice], starts[choice + 1])
        key = tuple(number[span.start : span.stop].tolist())
        if key not in analysed:
            analysed[key] = _columns([functions[e] for e in key], owner)
        command, columns = analysed[key]
        try:
            distribution = rows.distribution(len(columns), command.name) if len(columns) > 1 else None
        except InputError as error:
            command.refuse(error.message, error.hint or "")
        weights = (Polynomial.constant(1),) if distribution is None else distribution.probabilities
        for place, t in enumerate(span):
            total = Polynomial({})
            for weight, column in zip(weights, columns, strict=True):
                total = total + weight * column[place]
            result[t] = total
    domain = rows.parameters
    table = ExpressionTable(domain.names)
    plain = {e: table.add(functions[e]) for e in np.unique(number[~touched[number]]).tolist()}
    used = [plain[e] if f is None else table.add(f) for e, f in zip(number.tolist(), result, strict=True)]
    return *table.freeze(np.array(used, dtype=np.int32)), domain


def _columns(
    row: Sequence[Function], owner: Mapping[int, FreeCommand]
) -> tuple[FreeCommand, list[list[Fraction]]]:
    """The command whose outcomes a row is affine in, and what the row is where each of them is certain."""
    found = {owner[v].first: owner[v] for f in row for v in f.variables if v in owner}
    command = next(iter(found.values()))
    if len(found) > 1:
        command.refuse(
            "two free commands form one choice, which is not a free distribution",
            "make one of them certain, or write one command for both",
        )
    columns: list[list[Fraction]] = []
    for i in range(command.outcomes):
        column = []
        for f in row:
            if not isinstance(f, Polynomial) or any(v not in owner for v in f.variables) or f.degree > 1:
                command.refuse(
                    "free probabilities and parameters form one choice, which is not a free distribution",
                    "let the other probabilities be numbers, or write this command with parameters",
                )
            terms = f.terms
            column.append(terms.get((), Fraction(0)) + terms.get(((command.first + i, 1),), Fraction(0)))
        if min(column) < 0:
            command.refuse("the numbers beside free sum to more than 1", "nothing is left for the free ones")
        if command.name is not None or column not in columns:
            columns.append(column)
    return command, columns


NUMBERS_UNUSED = "the numbers in the model are not used: of choices with several outcomes nothing is known"


def without_numbers(
    structure: Structure, start: Sequence[Fraction] = ()
) -> tuple[IndexArray, Expressions, Parameters]:
    """Return expressions that make every choice with several outcomes an unconstrained distribution.

    `start` are the probabilities of a drawn first state, which stay. With many coordinates the rows Σ x ≤ 1
    are not written: such a model is a table, whose box has points with negative 1 − Σ x. `instantiate`
    refuses these, and the only sets are intervals of single transitions within [0, 1] that sum to 1
    (`decide`); over the domain these are the simplices themselves.
    """
    width = np.diff(structure.transition_start)
    drawn = int(structure.choice_start[structure.initial]) if start else -1
    free = (width > 1) & (np.arange(len(width)) != drawn)
    if int((width[free] - 1).sum()) > MOST_COORDINATES:
        return _table(structure, free, start, drawn)
    rows = FreeRows(Parameters())
    one = Polynomial.constant(1)
    functions: list[Polynomial] = []
    for choice, size in enumerate(width.tolist()):
        if choice == drawn:
            functions += [Polynomial.constant(p) for p in start]
        else:
            functions += rows.distribution(size).probabilities if size > 1 else [one] * size
    expressions, used = tabulate(rows.parameters.names, functions)
    return used, expressions, rows.parameters


def _table(
    structure: Structure, free: BoolArray, start: Sequence[Fraction], drawn: int
) -> tuple[IndexArray, Expressions, Parameters]:
    """The same for many coordinates: row 1, numbers of the draw, then x₁, …, 1 − Σ x of each choice."""
    width, transitions = np.diff(structure.transition_start), structure.transitions
    numbers = sorted(set(start) - {Fraction(1)})
    first = structure.transition_start[:-1][free]
    length = width[free]
    last = np.repeat(free, width) & False
    last[first + length - 1] = True
    unknown = np.repeat(free, width)
    coordinate = np.cumsum(unknown & ~last) - 1
    expression = np.zeros(transitions, dtype=np.int32)
    expression[unknown] = 1 + len(numbers) + np.arange(int(unknown.sum()))
    if drawn >= 0:
        place = {p: i + 1 for i, p in enumerate(numbers)}
        begin = int(structure.transition_start[drawn])
        expression[begin : begin + len(start)] = [place.get(p, 0) for p in start]
    ends = last[unknown]
    terms = np.where(ends, np.repeat(length, length), 1)
    row_start = np.concatenate([np.arange(1 + len(numbers)), 1 + len(numbers) + offsets(terms)])
    monomial = np.zeros(int(row_start[-1]), dtype=np.int32)
    numerator, denominator = np.ones(len(monomial), dtype=object), np.ones(len(monomial), dtype=object)
    for i, p in enumerate(numbers):
        numerator[i + 1], denominator[i + 1] = p.numerator, p.denominator
    at = row_start[1 + len(numbers) : -1]
    monomial[at[~ends]] = coordinate[unknown][~ends] + 1
    of_rest = np.concatenate([np.arange(1, k) for k in length.tolist()])
    rest = np.repeat(at[ends], length - 1) + of_rest
    monomial[rest] = np.repeat(coordinate[first], length - 1) + of_rest
    numerator[rest] = -1
    size = int(coordinate[-1]) + 1
    names = tuple(f"free_{i + 1}" for i in range(size))
    begins = (np.cumsum(length - 1) - (length - 1)).tolist()
    own = tuple(FreeDistribution(a, k, None) for a, k in zip(begins, length.tolist(), strict=True))
    if max((max(abs(p.numerator), p.denominator) for p in numbers), default=0) < 2**62:
        numerator, denominator = numerator.astype(np.int64), denominator.astype(np.int64)
    monomials = ((), *(((i, 1),) for i in range(size)))
    coefficient = RationalArray(numerator, denominator)
    table = Expressions(names, monomials, row_start.astype(np.int64), monomial, coefficient)
    zero, one = (Fraction(0),) * size, (Fraction(1),) * size
    return expression, table, Parameters(names, zero, one, (), own)


@remember
def unlinked_rows(model: Any) -> int:
    """The number of unknown distributions, if each is unconstrained with separate parameters; else 0.

    Each block of parameters then has one row's expressions, and one of them all mass at each vertex.
    """
    expressions, parameters, signatures = model.expressions, model.parameters, model.signatures
    if expressions.degree > 1 or expressions.denominators:
        return 0
    functions = {e: expressions.polynomial(e) for e in expressions.nonconstant.tolist()}
    blocks = parameters.blocks()
    block_of = {v: k for k, block in enumerate(blocks) for v in block}
    members: dict[int, set[int]] = {}
    owner: dict[int, int] = {}
    for e, f in functions.items():
        touched = {block_of[v] for v in f.variables}
        if len(touched) > 1:
            return 0
        owner[e] = touched.pop()
        members.setdefault(owner[e], set()).add(e)
    starts, listed = signatures.start.tolist(), signatures.expression.tolist()
    for first, last in pairwise(starts):
        row = [e for e in listed[first:last] if e in owner]
        if row and (len({owner[e] for e in row}) > 1 or len(row) != len(members[owner[row[0]]])):
            return 0
    for k, own in members.items():
        vertices = domain_vertices(parameters.part(blocks[k]))
        if vertices is None or len(vertices) != len(own):
            return 0
        place = {v: i for i, v in enumerate(blocks[k])}
        local = [
            Polynomial({tuple((place[v], n) for v, n in m): c for m, c in functions[e].terms.items()})
            for e in own
        ]
        table = [[f.evaluate(vertex) for vertex in vertices] for f in local]
        lines = [*table, *zip(*table, strict=True)]
        if any(sum(x != 0 for x in line) != 1 for line in lines):
            return 0
    return len(members)


def free_choices(
    parameters: Parameters, expressions: Expressions, start: OffsetArray, members: IndexArray
) -> BoolArray:
    """Which rows (members[start[k]:start[k + 1]]) are all outcomes of one free distribution."""
    owner: dict[int, int] = {}
    for n, each in enumerate(parameters.free):
        for f in each.probabilities:
            if (e := expressions.index_of(f)) is not None:
                owner[e] = n
    result = np.zeros(len(start) - 1, dtype=np.bool_)
    for k in range(len(result)):
        row = members[start[k] : start[k + 1]].tolist()
        own = {owner.get(e, -1) for e in row}
        result[k] = own != {-1} and len(own) == 1 and len(set(row)) == parameters.free[own.pop()].outcomes
    return result
