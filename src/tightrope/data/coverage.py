"""Which choices of a model the data have visited, and how often.

A choice that was never taken says nothing about its probabilities, and guarantees about policies that take it
rest on the other choices with the same expressions, or on the domain alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.data.counts import Counts
from tightrope.model.structure import Structure

LISTED = 5
"""How many choices are named among those with the fewest visits, and among those with none."""


@dataclass(frozen=True)
class ActionCoverage:
    """The choices of one action: how many there are, how many were taken, and how often altogether."""

    action: str
    choices: int
    visited: int
    visits: int

    def to_json(self) -> dict[str, object]:
        return {
            "action": self.action,
            "choices": self.choices,
            "visited": self.visited,
            "visits": self.visits,
        }


@dataclass(frozen=True)
class Coverage:
    """What was visited. `open` are the choices with more than one outcome, about which data can say more.

    `fewest` are the choices taken least often, `never` some open ones that were not taken at all.
    """

    states: int
    states_visited: int
    choices: int
    visited: int
    open: int
    open_visited: int
    actions: tuple[ActionCoverage, ...]
    fewest: tuple[tuple[str, int], ...]
    never: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "states": self.states,
            "states_visited": self.states_visited,
            "choices": self.choices,
            "visited": self.visited,
            "open_choices": self.open,
            "open_visited": self.open_visited,
            "actions": [action.to_json() for action in self.actions],
            "fewest_visits": [{"choice": name, "visits": visits} for name, visits in self.fewest],
            "never_visited": list(self.never),
        }


def cover(structure: Structure, counts: Counts) -> Coverage:
    """The coverage of a model's choices by counts; actions with the most visits come first."""
    visits = counts.visits
    taken = visits > 0
    action = structure.action_of_choice
    size = len(structure.action_names)
    choices = np.bincount(action, minlength=size)
    visited = np.bincount(action[taken], minlength=size)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, action, visits)
    order = [a for a in np.lexsort((np.arange(size), -total)).tolist() if choices[a]]
    several = np.diff(structure.transition_start) > 1
    rare = np.flatnonzero(taken)
    rare = rare[np.argsort(visits[rare], kind="stable")[:LISTED]]
    return Coverage(
        states=structure.states,
        states_visited=len(np.unique(structure.choice_state[taken])),
        choices=structure.choices,
        visited=int(taken.sum()),
        open=int(several.sum()),
        open_visited=int((several & taken).sum()),
        actions=tuple(
            ActionCoverage(structure.action_names[a], int(choices[a]), int(visited[a]), int(total[a]))
            for a in order
        ),
        fewest=tuple((structure.choice_name(int(c)), int(visits[c])) for c in rare),
        never=tuple(structure.choice_name(int(c)) for c in np.flatnonzero(several & ~taken)[:LISTED]),
    )
