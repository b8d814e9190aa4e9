"""Deterministic automata as texts (Hanoi Omega-Automata, HOA v1): read, written, requested from other
programs.

Labels of edges and states, aliases, and marks of states or edges are read; any acceptance condition becomes
(Fin & Inf & … ) | …, one `RabinPair` each. Automata with two edges for one letter are refused: values of MDPs
need deterministic ones. A run with a missing edge is rejected.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.logic.formula import FALSE, TRUE, Elementary, Formula, whole_automaton
from tightrope.model.product import MOST_STATES, Automaton, RabinPair
from tightrope.numerics.arrays import BoolArray

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[A-Za-z_@][\w@-]*:?|\d+|--BODY--|--END--|[\[\](){}!&|]|/\*.*?\*/|\S', re.S
)
T = TypeVar("T")
Reads = Callable[[int], bool]
Marks = frozenset[int]
Disjunct = tuple[frozenset[int], frozenset[int]]
"""Sets that a run meets finitely often, and sets that it meets infinitely often."""


@dataclass(frozen=True, eq=False)
class _Edge:
    reads: Reads | None
    target: int
    marks: Marks


def read_hoa(
    text: str, atoms: int, letters: Sequence[int], source: str = "the automaton"
) -> tuple[Automaton, list[RabinPair]]:
    """The automaton of a text over atoms named a0, a1, …, restricted to the letters that occur."""
    return _HoaReader(text, source, atoms).read(letters)


class _HoaReader:
    def __init__(self, text: str, source: str, atoms: int):
        self._tokens: list[str] = [token for token in _TOKEN.findall(text) if not token.startswith("/*")]
        self._next = 0
        self._source = source
        self._names = [f"a{number}" for number in range(atoms)]
        self._bit: list[int] = []
        self._aliases: dict[str, Reads] = {}

    def read(self, letters: Sequence[int]) -> tuple[Automaton, list[RabinPair]]:
        if self._tokens[:2] != ["HOA:", "v1"]:
            raise self._error(
                "the text does not begin with  HOA: v1", "is it the output of a translator of LTL?"
            )
        self._next = 2
        start, disjuncts = self._header()
        states = self._body()
        return _restrict(states, start, disjuncts, letters, self._error)

    def _header(self) -> tuple[int, list[Disjunct]]:
        starts: list[int] = []
        disjuncts: list[Disjunct] | None = None
        while (key := self._take()) != "--BODY--":
            if key == "Start:":
                starts.append(self._number())
            elif key == "AP:":
                self._bit = [self._atom(self._take()) for _ in range(self._number())]
            elif key == "Acceptance:":
                self._number()
                disjuncts = self._condition()
            elif key == "Alias:":
                name = self._take()
                self._aliases[name] = self._label()
            elif not key.endswith(":"):
                raise self._error(f"unexpected '{key}' in the header")
            while not (self._peek().endswith(":") or self._peek() == "--BODY--"):
                self._take()
        if len(starts) != 1:
            raise self._error(f"it has {len(starts)} initial states, and one is required")
        if disjuncts is None:
            raise self._error("it has no Acceptance")
        return starts[0], disjuncts

    def _body(self) -> dict[int, list[_Edge]]:
        states: dict[int, list[_Edge]] = {}
        while self._take("State:", "--END--") == "State:":
            common = self._read_bracketed()
            number = self._number()
            if number in states or number > MOST_STATES:
                raise self._error(f"state {number} is given twice, or is beyond {MOST_STATES:,}")
            if self._peek().startswith('"'):
                self._take()
            of_state, edges = self._marks(), list[_Edge]()
            while self._peek() not in ("State:", "--END--"):
                own = self._read_bracketed()
                target = self._number()
                edges.append(_Edge(own or common, target, of_state | self._marks()))
            states[number] = edges
        return states

    # --- parts -----------------------------------------------------------------------------

    def _marks(self) -> Marks:
        result: set[int] = set()
        if self._peek() == "{":
            self._take()
            while self._peek() != "}":
                result.add(self._number())
            self._take()
        return frozenset(result)

    def _read_bracketed(self) -> Reads | None:
        if self._peek() != "[":
            return None
        self._take()
        label = self._label()
        self._take("]")
        return label

    def _parts(self, operator: str, part: Callable[[], T]) -> list[T]:
        """What an operator joins."""
        parts = [part()]
        while self._peek() == operator:
            self._take()
            parts.append(part())
        return parts

    def _label(self) -> Reads:
        parts = self._parts("|", self._conjunction)
        return lambda letter: any(part(letter) for part in parts)

    def _conjunction(self) -> Reads:
        parts = self._parts("&", self._literal)
        return lambda letter: all(part(letter) for part in parts)

    def _literal(self) -> Reads:
        token = self._take()
        if token == "!":
            inner = self._literal()
            return lambda letter: not inner(letter)
        if token == "(":
            grouped = self._label()
            self._take(")")
            return grouped
        if token in ("t", "f"):
            return lambda letter: token == "t"
        if token in self._aliases:
            return self._aliases[token]
        if not token.isdecimal() or len(token) > 9 or int(token) >= len(self._bit):
            raise self._error(f"unexpected '{token}' in a label")
        bit = self._bit[int(token)]
        return lambda letter: bool(letter >> bit & 1)

    def _condition(self) -> list[Disjunct]:
        """The acceptance condition as alternatives."""
        return list(chain.from_iterable(self._parts("|", self._conditions)))

    def _conditions(self) -> list[Disjunct]:
        result: list[Disjunct] = [(frozenset(), frozenset())]
        for others in self._parts("&", self._one_condition):
            result = [(a | c, b | d) for a, b in result for c, d in others]
        return result

    def _one_condition(self) -> list[Disjunct]:
        token = self._take()
        if token == "(":
            grouped = self._condition()
            self._take(")")
            return grouped
        if token in ("t", "f"):
            return [(frozenset(), frozenset())] if token == "t" else []
        if token not in ("Fin", "Inf"):
            raise self._error(f"unexpected '{token}' in the acceptance condition")
        self._take("(")
        if self._peek() == "!":
            raise self._error("complemented sets in the acceptance condition are not supported")
        marks = frozenset([self._number()])
        self._take(")")
        return [(marks, frozenset()) if token == "Fin" else (frozenset(), marks)]

    def _atom(self, quoted: str) -> int:
        name = quoted.strip('"')
        if name not in self._names:
            raise self._error(f"it refers to an atom '{name}' that it was not asked about")
        return self._names.index(name)

    # --- tokens ----------------------------------------------------------------------------

    def _peek(self) -> str:
        if self._next >= len(self._tokens):
            raise self._error("the text ends too early")
        return self._tokens[self._next]

    def _take(self, *wanted: str) -> str:
        token = self._peek()
        if wanted and token not in wanted:
            raise self._error(f"'{token}' stands where {' or '.join(wanted)} is required")
        self._next += 1
        return token

    def _number(self) -> int:
        token = self._take()
        if not token.isdecimal() or len(token) > 9:
            raise self._error(
                f"'{token[:20]}' stands where a number is required", "alternating automata are not read"
            )
        return int(token)

    def _error(self, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Location(self._source), hint)


def _restrict(
    states: dict[int, list[_Edge]],
    start: int,
    disjuncts: list[Disjunct],
    letters: Sequence[int],
    error: Callable[[str], InputError],
) -> tuple[Automaton, list[RabinPair]]:
    """The part that is reached with some letters; the first state is 0, the last one rejects for ever."""
    number, order, rows, marks = {start: 0}, [start], [], []
    for name in order:
        if name not in states:
            raise error(f"state {name} is not described")
        selected = [_find_edge(states[name], letter, name, error) for letter in letters]
        for edge in selected:
            if edge is not None and edge.target not in number:
                number[edge.target] = len(order)
                order.append(edge.target)
        rows.append([-1 if edge is None else number[edge.target] for edge in selected])
        marks.append([frozenset[int]() if edge is None else edge.marks for edge in selected])
    sink = len(rows)
    successor = np.array([*rows, [sink] * len(letters)], dtype=np.int32).reshape(sink + 1, len(letters))
    missing = successor < 0
    successor[missing] = sink
    missing[sink] = True

    def seen(mark: int) -> BoolArray:
        result = [[mark in here for here in row] for row in marks] + [[False] * len(letters)]
        return np.array(result, dtype=np.bool_).reshape(successor.shape)

    pairs = []
    for finite, infinite in disjuncts:
        avoided = missing.copy()
        for mark in finite:
            avoided |= seen(mark)
        pairs.append(RabinPair(avoided, tuple(seen(mark) for mark in sorted(infinite))))
    return Automaton(successor), pairs


def _find_edge(
    edges: list[_Edge], letter: int, name: int, error: Callable[[str], InputError]
) -> _Edge | None:
    if edges and all(edge.reads is None for edge in edges):
        raise error(f"state {name} has edges without labels, which are not supported: translate with labels")
    fitting = [edge for edge in edges if edge.reads is not None and edge.reads(letter)]
    if len(fitting) > 1:
        raise error(f"it is not deterministic: state {name} has {len(fitting)} edges for one letter")
    return fitting[0] if fitting else None


# Another program as the translator of LTL to deterministic HOA automata. Its automaton is trusted, and the
# answer names the program. Formulas are also written as HOA.

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
        wording = "\n".join(done.stderr.strip().splitlines()[:_SHOWN_LINES])
        raise InputError(
            f"`ltl_translator`: {words[0]} ended with exit code {done.returncode} for {text}\n{wording}"
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
