"""Formulas as deterministic automata in the Hanoi Omega-Automata format, for other tools."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.automata.external import ltl_text
from tightrope.automata.formula import Formula
from tightrope.automata.whole import whole_automaton
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


def _label(letter: int, atoms: int) -> str:
    return "&".join(("" if letter >> atom & 1 else "!") + str(atom) for atom in range(atoms)) or "t"
