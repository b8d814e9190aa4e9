"""Formulas as deterministic automata in the Hanoi Omega-Automata format, for other tools.

All guesses of the master theorem (`automata.translation`) run beside each other, one pair of a generalised
Rabin condition each: a word satisfies the formula iff it meets one of them. Safe and co-safe formulas need no
guesses: they are accepted where what is left of them never becomes false, or becomes true.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.automata.deterministic import Automaton, RabinPair, explored
from tightrope.automata.external import ltl_text
from tightrope.automata.formula import FALSE, TRUE, Formula
from tightrope.automata.translation import (
    guesses,
    is_co_safe,
    is_safe,
    progression,
    refuse_large,
    suffix_automaton,
)
from tightrope.errors import InputError
from tightrope.numerics.arrays import BoolArray

MOST_ATOMS = 10
"""All letters are written out."""


def hoa_text(formula: Formula, atoms: int, names: Sequence[str] = ()) -> str:
    """The automaton of a formula over the atoms a0, a1, …; `names` say in a comment what these are.

    >>> from tightrope.automata.formula import atom, eventually, globally
    >>> print(hoa_text(globally(eventually(atom(0))), 1).splitlines()[0])
    HOA: v1
    """
    if atoms > MOST_ATOMS:
        raise InputError(f"a formula over {atoms} atoms is not written as an automaton: at most {MOST_ATOMS}")
    letters = range(1 << atoms)
    automaton, pairs = whole_automaton(formula, letters)
    marks: list[BoolArray] = []
    clauses = []
    for pair in pairs:
        parts = []
        for mask, word in [(pair.avoided, "Fin"), *((mask, "Inf") for mask in pair.repeated)]:
            parts.append(f"{word}({len(marks)})")
            marks.append(mask)
        clauses.append("&".join(parts))
    condition = " | ".join(f"({clause})" for clause in clauses) or "f"
    lines = [
        "HOA: v1",
        f'name: "{ltl_text(formula)}"',
        f"States: {automaton.states}",
        "Start: 0",
        f"AP: {atoms}" + "".join(f' "a{number}"' for number in range(atoms)),
        f"Acceptance: {len(marks)} {condition}",
        "properties: trans-labels explicit-labels trans-acc complete deterministic",
        *(f"/* a{number}: {name.replace('*/', '* /')} */" for number, name in enumerate(names)),
        "--BODY--",
    ]
    for state in range(automaton.states):
        lines.append(f"State: {state}")
        for place, letter in enumerate(letters):
            seen = [str(number) for number, mask in enumerate(marks) if mask[state, place]]
            shown = f" {{{' '.join(seen)}}}" if seen else ""
            lines.append(f"[{_label(letter, atoms)}] {automaton.successor[state, place]}{shown}")
    return "\n".join([*lines, "--END--", ""])


def whole_automaton(formula: Formula, letters: Sequence[int]) -> tuple[Automaton, list[RabinPair]]:
    """One deterministic automaton for a formula, with its generalised Rabin condition."""
    if is_co_safe(formula) or is_safe(formula):
        automaton, left = progression(formula, letters)
        lost = np.array([rest == FALSE for rest in left])
        done = np.array([rest == TRUE for rest in left])
        pair = RabinPair(
            _wide(lost, len(letters)), (_wide(done if is_co_safe(formula) else ~lost, len(letters)),)
        )
        return automaton, [pair]
    refuse_large(formula)
    found = [suffix_automaton(formula, guess, letters) for guess in guesses(formula)]
    parts = [part for part in found if part is not None]
    place = {letter: number for number, letter in enumerate(letters)}

    def step(states: tuple[int, ...], letter: int) -> tuple[int, ...]:
        at = place[letter]
        return tuple(int(part.successor[state, at]) for (part, _), state in zip(parts, states, strict=True))

    together, states = explored((0,) * len(parts), letters, step)
    columns = np.array(states, np.int64).reshape(len(states), len(parts))
    pairs = [
        RabinPair(pair.avoided[columns[:, i]], tuple(mask[columns[:, i]] for mask in pair.repeated))
        for i, (_, pair) in enumerate(parts)
    ]
    return together, pairs


def _label(letter: int, atoms: int) -> str:
    return "&".join(("" if letter >> atom & 1 else "!") + str(atom) for atom in range(atoms)) or "t"


def _wide(mask: BoolArray, width: int) -> BoolArray:
    return np.repeat(mask[:, None], width, axis=1)
