"""LTL formulas in a canonical form, and their progression by a letter.

Negations stand at atoms only. A formula is a disjunction of conjunctions of *elementary* ones, without
redundant clauses. It is monotone in its elementary parts, so this form is unique, and progression (`after`)
reaches finitely many formulas.

    F a, a U b, a M b   promise something      (a M b is b U (a & b))
    G a, a W b, a R b   forbid something       (a W b is (a U b) | G a;  a R b is !(!a U !b))
    X a                 is about the next step

A *letter* is the set of atoms that hold in a state, as bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce

from tightrope.errors import InputError

MOST_CLAUSES = 2_000
PROMISES = frozenset("FUM")
BANS = frozenset("GWR")


@dataclass(frozen=True, slots=True)
class Elementary:
    """`operator` is one of X F G U W R M over `parts`, or "" for an atom, which `is_positive` or negated."""

    operator: str
    parts: tuple[Formula, ...] = ()
    atom: int = 0
    is_positive: bool = True
    key: int = 0
    """The hash, computed once: formulas are nested."""

    def __hash__(self) -> int:
        return self.key


Clause = frozenset[Elementary]
Formula = frozenset[Clause]

FALSE: Formula = frozenset()
TRUE: Formula = frozenset([frozenset()])


def atom(number: int, is_positive: bool = True) -> Formula:
    """An atom, or its negation."""
    return _single(Elementary("", (), number, is_positive, hash(("", number, is_positive))))


def either(*formulas: Formula) -> Formula:
    """The disjunction."""
    return _least(frozenset().union(*formulas))


def both(*formulas: Formula) -> Formula:
    """The conjunction."""
    return reduce(_both, formulas, TRUE)


def next_(formula: Formula) -> Formula:
    """X formula"""
    return formula if formula in (TRUE, FALSE) else _make("X", formula)


def eventually(formula: Formula) -> Formula:
    """F formula"""
    return formula if formula in (TRUE, FALSE) else _make("F", formula)


def globally(formula: Formula) -> Formula:
    """G formula"""
    return formula if formula in (TRUE, FALSE) else _make("G", formula)


def until(left: Formula, right: Formula) -> Formula:
    """left U right"""
    if right in (TRUE, FALSE) or left in (FALSE, right):
        return right
    return eventually(right) if left == TRUE else _make("U", left, right)


def weak_until(left: Formula, right: Formula) -> Formula:
    """left W right"""
    if right == TRUE or left in (TRUE, FALSE) or left == right:
        return TRUE if left == TRUE else right
    return globally(left) if right == FALSE else _make("W", left, right)


def release(left: Formula, right: Formula) -> Formula:
    """left R right"""
    if right in (TRUE, FALSE) or left in (TRUE, right):
        return right
    return globally(right) if left == FALSE else _make("R", left, right)


def strong_release(left: Formula, right: Formula) -> Formula:
    """left M right"""
    if right == FALSE or left in (TRUE, FALSE) or left == right:
        return FALSE if left == FALSE else right
    return eventually(left) if right == TRUE else _make("M", left, right)


BUILD: dict[str, Callable[..., Formula]] = {
    "X": next_,
    "F": eventually,
    "G": globally,
    "U": until,
    "W": weak_until,
    "R": release,
    "M": strong_release,
}
"""The function that makes an elementary formula of its parts."""


@lru_cache(maxsize=200_000)
def after(formula: Formula, letter: int) -> Formula:
    """What must hold from the next position on for `formula` to hold at one with this letter."""
    return either(*(both(*(_after(part, letter) for part in clause)) for clause in formula))


def subformulas(formula: Formula) -> frozenset[Elementary]:
    """All elementary formulas inside, atoms left out."""
    result: set[Elementary] = set()
    stack = [formula]
    while stack:
        for clause in stack.pop():
            for part in clause:
                if part.operator and part not in result:
                    result.add(part)
                    stack.extend(part.parts)
    return frozenset(result)


def _after(part: Elementary, letter: int) -> Formula:
    operator = part.operator
    if operator == "":
        return TRUE if bool(letter >> part.atom & 1) == part.is_positive else FALSE
    if operator == "X":
        return part.parts[0]
    again = _single(part)
    if operator == "F":
        return either(after(part.parts[0], letter), again)
    if operator == "G":
        return both(after(part.parts[0], letter), again)
    left, right = after(part.parts[0], letter), after(part.parts[1], letter)
    if operator in "UW":
        return either(right, both(left, again))
    return both(right, either(left, again))


def _single(part: Elementary) -> Formula:
    return frozenset([frozenset([part])])


def _make(operator: str, *parts: Formula) -> Formula:
    return _single(Elementary(operator, parts, key=hash((operator, parts))))


def _both(left: Formula, right: Formula) -> Formula:
    if len(left) * len(right) > MOST_CLAUSES**2:
        raise InputError(
            "this temporal formula is too large: its parts combine in millions of ways",
            hint="ask it in parts",
        )
    return _least(frozenset(a | b for a in left for b in right))


def _least(clauses: Formula) -> Formula:
    """Without clauses that contain others, and without contradictions of atoms."""
    remaining: list[Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(smaller <= clause for smaller in remaining) and not _contradicts(clause):
            remaining.append(clause)
    if len(remaining) > MOST_CLAUSES:
        raise InputError(
            f"this temporal formula is too large: more than {MOST_CLAUSES:,} clauses", hint="ask it in parts"
        )
    return frozenset(remaining)


def _contradicts(clause: Clause) -> bool:
    atoms = {(part.atom, part.is_positive) for part in clause if not part.operator}
    return any((number, not is_positive) in atoms for number, is_positive in atoms)
