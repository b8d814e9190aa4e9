"""Models in a few facts, for what a notebook or a terminal shows of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tightrope.model.structure import Structure

MOST_NAMED = 8
"""So many names are listed."""


def sizes(structure: Structure) -> str:
    """`225 states, 400 choices, 1,012 transitions`."""
    counted = (
        (structure.states, "state"),
        (structure.choices, "choice"),
        (structure.transitions, "transition"),
    )
    return ", ".join(f"{number:,} {what}{'' if number == 1 else 's'}" for number, what in counted)


def structure_facts(structure: Structure) -> list[tuple[str, str]]:
    """Names of states, actions, labels and rewards."""
    facts = []
    if structure.valuations:
        facts.append(("variables", list_names(structure.valuations)))
    elif structure.own_states is not None:
        facts.append(("states", structure.own_states.listing()))
    starts = structure.initial_states
    shown = structure.state_name(starts[0])
    facts.append(("initial", shown if len(starts) == 1 else f"{len(starts):,} states, such as {shown}"))
    if names := [name for name in structure.action_names if name]:
        facts.append(("actions", list_names(names)))
    if structure.labels:
        held = ((name, int(np.count_nonzero(members))) for name, members in structure.labels.items())
        facts.append(("labels", list_names(f"{name} ({number:,})" for name, number in held)))
    if structure.rewards:
        facts.append(("rewards", list_names(name or '""' for name in structure.rewards)))
    return facts


def list_names(names: Iterable[str]) -> str:
    """The first few names."""
    every = list(names)
    more = f", … ({len(every)})" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more
