"""Reading Markov automata from DRN files (`@type: Markov Automaton`, or `MA`), as Storm writes them.

Behind every state stands its exit rate (`!2.5`); `!0` marks those whose choices are immediate. Behind
transitions stand probabilities, also of states that wait. Numbers are doubles; parameters and intervals are
refused.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.formats.drn.assemble import assemble
from tightrope.formats.drn.body import Body
from tightrope.formats.drn.header import AUTOMATON_TYPES, read_header
from tightrope.formats.number_text import nearest_double
from tightrope.formats.number_values import NumberValues
from tightrope.model.markov_automaton import MarkovAutomaton
from tightrope.model.mdp import MDP
from tightrope.numerics.text_reading import reading

_HEADER_LINES = 40


def is_automaton(path: Path) -> bool:
    """Whether a DRN file says that it holds a Markov automaton."""
    with reading(path) as file:
        head = [line.strip().lower() for _, line in zip(range(_HEADER_LINES), file, strict=False)]
    types = [line.partition(":")[2].strip() for line in head if line.startswith("@type:")]
    types += [b for a, b in pairwise(head) if a == "@type"]
    return any(name in AUTOMATON_TYPES for name in types)


def read_automaton_drn(path: str | Path) -> MarkovAutomaton:
    """The automaton in a DRN file."""
    path = Path(path)
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = read_header(path, lines, continuous=True)
        if header.value_type not in (None, "double", "rational"):
            raise InputError(
                f"a Markov automaton of value type {header.value_type} is not read: only plain ones are",
                Location(str(path)),
            )
        body = Body(path, header, NumberValues(None))
        body.read(lines, None)
    found = assemble(body)
    if not isinstance(found, MDP):
        raise InputError("a Markov automaton with intervals is not read", Location(str(path)))
    missing = [state for state, entry in enumerate(body.state_entry) if entry not in body.exit_texts]
    if missing:
        raise InputError(
            f"state {missing[0]} has no exit rate",
            Location(str(path)),
            "write it behind the state: !2.5, or !0 where choices are immediate",
        )
    try:
        rates = np.array([nearest_double(body.exit_texts[entry]) for entry in body.state_entry])
        return MarkovAutomaton(found.structure, found.probability, rates)
    except ValueError as error:
        message = error.message if isinstance(error, InputError) else f"an exit rate: {error}"
        raise InputError(message, Location(str(path))) from None
