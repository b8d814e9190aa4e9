"""Another program as the translator of LTL: a formula in, a deterministic automaton in HOA out.

What it returns is believed: the value is that of the automaton, and the answer says whose it is.

The other way round, formulas are written as deterministic automata in the same format (Hanoi Omega-Automata).
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from tightrope.errors import InputError
from tightrope.logic.formula import FALSE, TRUE, Elementary, Formula
from tightrope.logic.hoa import read_hoa
from tightrope.logic.whole import whole_automaton
from tightrope.model.product import Automaton, RabinPair
from tightrope.numerics.arrays import BoolArray

PLACE = "{}"
"""Where the formula stands in a command; without it, the formula is written to its standard input."""
_SHOWN_LINES = 5


def translate(
    command: str, formula: Formula, atoms: int, letters: Sequence[int]
) -> tuple[Automaton, list[RabinPair]]:
    """Run a translator on a formula over the atoms a0, a1, … ."""
    text = ltl_text(formula)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"`ltl_translator` cannot be read as a command: {error}") from None
    if not words:
        raise InputError("`ltl_translator` is empty")
    given = None if any(PLACE in word for word in words) else text + "\n"
    try:
        done = subprocess.run(
            [word.replace(PLACE, text) for word in words], input=given, capture_output=True, text=True
        )
    except OSError as error:
        raise InputError(f"`ltl_translator`: {words[0]} cannot be run: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"`ltl_translator`: the output of {words[0]} is not a text in UTF-8") from None
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[:_SHOWN_LINES])
        raise InputError(
            f"`ltl_translator`: {words[0]} ended with exit code {done.returncode} for {text}\n{said}"
        )
    return read_hoa(done.stdout, atoms, letters, f"the output of {words[0]}")


def ltl_text(formula: Formula) -> str:
    """A formula as Spot, Owl and Rabinizer read it: `(a0 & X a1) | G F a2`, with every parenthesis.

    >>> from tightrope.logic.formula import atom, eventually, globally
    >>> ltl_text(globally(eventually(atom(0))))
    'G(F(a0))'
    """
    if formula in (TRUE, FALSE):
        return "true" if formula == TRUE else "false"
    clauses = sorted(" & ".join(sorted(_text(part) for part in clause)) for clause in formula)
    return clauses[0] if len(clauses) == 1 else " | ".join(f"({clause})" for clause in clauses)


def _text(part: Elementary) -> str:
    if not part.operator:
        return f"{'' if part.is_positive else '!'}a{part.atom}"
    if len(part.parts) == 1:
        return f"{part.operator}({ltl_text(part.parts[0])})"
    return f"(({ltl_text(part.parts[0])}) {part.operator} ({ltl_text(part.parts[1])}))"


MOST_ATOMS = 10
"""All letters are written out."""


def hoa_text(formula: Formula, atoms: int, names: Sequence[str] = ()) -> str:
    """The automaton of a formula over the atoms a0, a1, …; `names` say in a comment what these are.

    >>> from tightrope.logic.formula import atom, eventually, globally
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
