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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations

import numpy as np

from tightrope.errors import InputError
from tightrope.model.product import Automaton, RabinPair, beside, explore
from tightrope.numerics.arrays import BoolArray

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


# From LTL to deterministic automata by the master theorem, without Safra's construction.
#
# (Esparza, Křetínský, Sickert: *One Theorem to Rule Them All*, LICS 2018.) Let μ be the subformulas F, U, M
# of φ (promises) and ν its subformulas G, W, R (bans). A word satisfies φ iff for some X ⊆ μ and Y ⊆ ν
#
# 1. from some position on, the rest of φ holds with promises in X read as kept for ever (U becomes W, F
#    true), others as false;
# 2. every promise in X holds infinitely often, with bans in Y read as true and the others as U or M;
# 3. every ban in Y holds from some position on for ever, with promises read by X.
#
# Parts 1 and 3 contain bans only: progression reaches `false` iff they fail, and may restart finitely often.
# Part 2 contains promises only: progression reaches `true` iff they hold, and must restart infinitely often.
# All parts are deterministic, and 2 and 3 do not depend on the beginning of a word; so `suffix_automaton` may
# start anywhere with the rest of φ.

MOST_OPERATORS = 12
Guess = tuple[frozenset[Elementary], frozenset[Elementary]]


def is_co_safe(formula: Formula) -> bool:
    """Whether it only promises: it holds iff progression reaches `true`."""
    return all(part.operator not in BANS for part in subformulas(formula))


def is_safe(formula: Formula) -> bool:
    """Whether it only bans: it holds iff progression never reaches `false`."""
    return all(part.operator not in PROMISES for part in subformulas(formula))


def progression(formula: Formula, letters: Sequence[int]) -> tuple[Automaton, list[Formula]]:
    """The automaton whose states are what is left of a formula."""
    return explore(formula, letters, after)


def refuse_large(formula: Formula) -> None:
    """A formula with more guesses than can be gone through is refused, in words."""
    count = sum(part.operator in PROMISES | BANS for part in subformulas(formula))
    if count > MOST_OPERATORS:
        raise InputError(
            f"this temporal formula has {count} different F, G, U, W and R; the translation supports at most "
            f"{MOST_OPERATORS}",
            hint="ask it in parts",
        )


def guesses(formula: Formula) -> Iterator[Guess]:
    """Every X and Y of the theorem that is not refuted by itself, small ones first."""
    inside = subformulas(formula)
    promises = sorted((part for part in inside if part.operator in PROMISES), key=repr_key)
    bans = sorted((part for part in inside if part.operator in BANS), key=repr_key)
    for remaining in _subsets(promises):
        for lasting in _subsets(bans):
            guess = remaining, lasting
            if all(assume_bans(part, lasting) != FALSE for part in remaining) and all(
                assume_promises(part, remaining) != FALSE for part in lasting
            ):
                yield guess


def can_begin(left: Iterable[Formula], guess: Guess) -> bool:
    """Whether some formula, read by the guess, is not refuted at once: else its first part never holds."""
    remaining, _ = guess
    return any(_read_by(formula, remaining) != FALSE for formula in left)


def suffix_automaton(
    formula: Formula, guess: Guess, letters: Sequence[int]
) -> tuple[Automaton, RabinPair] | None:
    """The three parts for one guess, as one automaton; None where the first one can never hold."""
    remaining, lasting = guess
    goals = tuple(sorted({eventually(assume_bans(part, lasting)) for part in remaining}, key=repr_key))
    rules = tuple(sorted({globally(assume_promises(part, remaining)) for part in lasting}, key=repr_key))
    goals = tuple(goal for goal in goals if goal != TRUE)
    rules = tuple(rule for rule in rules if rule != TRUE)
    State = tuple[Formula, Formula, tuple[Formula, ...], tuple[Formula, ...]]

    def step(state: State, letter: int) -> State:
        left, reading, promises, bans = state
        rest = after(left, letter)
        restarted = _read_by(rest, remaining) if reading == FALSE else after(reading, letter)
        return (
            rest,
            restarted,
            tuple(after(g if p == TRUE else p, letter) for g, p in zip(goals, promises, strict=True)),
            tuple(after(r if b == FALSE else b, letter) for r, b in zip(rules, bans, strict=True)),
        )

    first: State = (formula, _read_by(formula, remaining), goals, rules)
    automaton, states = explore(first, letters, step)
    avoided = np.array([reading == FALSE or FALSE in bans for _, reading, _, bans in states])
    if avoided.all():
        return None
    repeated = [np.array([promises[i] == TRUE for _, _, promises, _ in states]) for i in range(len(goals))]
    width = len(letters)
    return automaton, RabinPair(_wide(avoided, width), tuple(_wide(mask, width) for mask in repeated))


def assume_bans(part: Elementary, lasting: frozenset[Elementary]) -> Formula:
    """A promise with bans read by Y: it only promises then."""
    return _rewritten(part, lasting, keeps=False)


def assume_promises(part: Elementary, remaining: frozenset[Elementary]) -> Formula:
    """A ban with promises read by X: it only bans then."""
    return _rewritten(part, remaining, keeps=True)


def repr_key(value: object) -> str:
    """An order for formulas that is the same in every process."""
    return _text(value)


@lru_cache(maxsize=100_000)
def _read_by(formula: Formula, chosen: frozenset[Elementary], keeps: bool = True) -> Formula:
    return either(*(both(*(_rewritten(part, chosen, keeps) for part in clause)) for clause in formula))


@lru_cache(maxsize=100_000)
def _rewritten(part: Elementary, chosen: frozenset[Elementary], keeps: bool) -> Formula:
    operator = part.operator
    if not operator:
        return frozenset([frozenset([part])])
    inner = [_read_by(formula, chosen, keeps) for formula in part.parts]
    if keeps and operator in PROMISES:
        if part not in chosen:
            return FALSE
        if operator == "F":
            return TRUE
        return weak_until(*inner) if operator == "U" else release(*inner)
    if not keeps and operator in BANS:
        if part in chosen:
            return TRUE
        if operator == "G":
            return FALSE
        return BUILD["U"](*inner) if operator == "W" else BUILD["M"](*inner)
    return BUILD[operator](*inner)


def _subsets(parts: Sequence[Elementary]) -> Iterator[frozenset[Elementary]]:
    for size in range(len(parts) + 1):
        for chosen in combinations(parts, size):
            yield frozenset(chosen)


def _text(value: object) -> str:
    if isinstance(value, Elementary):
        inner = ",".join(_text(part) for part in value.parts)
        sign = "" if value.is_positive else "!"
        return f"{value.operator or value.atom}{sign}({inner})"
    if isinstance(value, frozenset):
        return "{" + " ".join(sorted(_text(part) for part in value)) + "}"
    return repr(value)


# One deterministic automaton for a whole formula, with a generalised Rabin condition: one pair per guess of
# the master theorem. Safe (co-safe) formulas need no guesses: they are accepted where progression never
# reaches false (reaches true). Redundant pairs are dropped and states with equal future marks merged. The
# result depends only on formula and letters, so it can be compared with an automaton made elsewhere.


def whole_automaton(formula: Formula, letters: Sequence[int]) -> tuple[Automaton, list[RabinPair]]:
    """The automaton of a formula over the letters that occur, and its pairs."""
    if is_co_safe(formula) or is_safe(formula):
        automaton, left = progression(formula, letters)
        lost = np.array([rest == FALSE for rest in left])
        done = np.array([rest == TRUE for rest in left])
        pair = RabinPair(
            _wide(lost, len(letters)), (_wide(done if is_co_safe(formula) else ~lost, len(letters)),)
        )
        return reduce_automaton(automaton, [pair])
    refuse_large(formula)
    _, left = progression(formula, letters)
    result = [
        suffix_automaton(formula, guess, letters) for guess in guesses(formula) if can_begin(left, guess)
    ]
    parts = [part for part in result if part is not None]
    together, states = beside([part for part, _ in parts], letters)
    columns = np.array(states, np.int64).reshape(len(states), len(parts))
    pairs = [
        RabinPair(pair.avoided[columns[:, i]], tuple(mask[columns[:, i]] for mask in pair.repeated))
        for i, (_, pair) in enumerate(parts)
    ]
    return reduce_automaton(together, pairs)


def reduce_automaton(automaton: Automaton, pairs: list[RabinPair]) -> tuple[Automaton, list[RabinPair]]:
    """The same language with fewer pairs and states, which are numbered as they are first met."""
    remaining: list[RabinPair] = []
    for place, pair in enumerate(pairs):
        others = [*remaining, *pairs[place + 1 :]]
        if not any(_implies(pair, other) for other in others):
            remaining.append(pair)
    marks = [mask for pair in remaining for mask in (pair.avoided, *pair.repeated)]
    seen = np.array(marks, np.bool_).reshape(len(marks), *automaton.successor.shape)
    block = _renumber(np.moveaxis(seen, 0, -1).reshape(automaton.states, -1))
    while True:
        finer = _renumber(np.column_stack([block, block[automaton.successor]]))
        if finer.max() == block.max():
            break
        block = finer
    first, number = [0], {int(block[0]): 0}
    for state in first:
        for following in automaton.successor[state].tolist():
            if int(block[following]) not in number:
                number[int(block[following])] = len(first)
                first.append(following)
    name = np.array([number.get(b, 0) for b in range(int(block.max()) + 1)], np.int32)
    small = Automaton(name[block[automaton.successor[first]]])
    return small, [RabinPair(p.avoided[first], tuple(mask[first] for mask in p.repeated)) for p in remaining]


def _implies(pair: RabinPair, other: RabinPair) -> bool:
    """Whether all that a pair accepts, the other one accepts, as their marks show at once."""
    return not np.any(other.avoided & ~pair.avoided) and all(
        any(not np.any(mine & ~mask) for mine in pair.repeated) for mask in other.repeated
    )


def _renumber(rows: BoolArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Equal rows by equal numbers."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _wide(mask: BoolArray, width: int) -> BoolArray:
    return np.repeat(mask[:, None], width, axis=1)
