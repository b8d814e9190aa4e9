"""Reading DRN files, as Storm writes them.

In those of Markov automata (`@type: Markov Automaton`, or `MA`) behind every state stands its exit rate
(`!2.5`); `!0` marks those whose choices are immediate. Behind transitions stand probabilities, also of states
that wait. Numbers are doubles; parameters and intervals are refused.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.drn.assemble import assemble
from tightrope.io.drn.body import Body, Progress
from tightrope.io.drn.header import AUTOMATON_TYPES, Header, read_header
from tightrope.io.drn.values import ExactValues, Model, PlainValues, Values
from tightrope.io.number_text import nearest_double
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.markov_automaton import MarkovAutomaton
from tightrope.model.mdp import MDP
from tightrope.model.parameters import Parameters
from tightrope.model.region_text import narrow_domain, parse_domain
from tightrope.numerics.text_reading import reading


def read_drn(
    path: str | Path,
    *,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """The model in a DRN file; `values` says which kind comes out.

    `box` and `domain` (texts as on the command line) replace the domain of the parameters, which
    otherwise is the one noted in the file, or [0, 1] for each.
    """
    path = Path(path)
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = read_header(path, lines)
        body = Body(path, header, _values(path, header, box, domain))
        body.read(lines, progress)
    found = assemble(body)
    assert not isinstance(found, ParametricCTMC)
    return found


def _values(path: Path, header: Header, box: str | None, domain: str | None) -> Values:
    names = header.parameters
    parameters = narrow_domain(Parameters.unit_box(names), box, domain)
    if box is None and domain is None and header.notes is not None and header.notes.domain:
        try:
            parameters = parse_domain(header.notes.domain, names)
        except InputError as error:
            raise InputError(f"the noted domain is damaged: {error.message}", Location(str(path))) from None
    if header.value_type in ("parametric", "rational"):
        return ExactValues(parameters)
    return PlainValues(header.value_type)


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
        body = Body(path, header, PlainValues(None))
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
