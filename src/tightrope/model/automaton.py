"""Deterministic automata over the letters that occur in a model.

`successor[q, l]` is the state after state q has read letter l. A `RabinPair` accepts a run that marks
`avoided` finitely often and each of `repeated` infinitely often; marks belong to a state and the letter it
reads. An automaton accepts if one of its pairs does (a generalised Rabin condition).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import BoolArray, IndexArray

MOST_STATES = 50_000
S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, eq=False)
class RabinPair:
    """Masks over states and letters."""

    avoided: BoolArray
    repeated: tuple[BoolArray, ...]


@dataclass(frozen=True, eq=False)
class Automaton:
    """See the module's docstring; state 0 is the first one."""

    successor: IndexArray

    @property
    def states(self) -> int:
        return len(self.successor)


def beside(automata: Sequence[Automaton], letters: Sequence[int]) -> tuple[Automaton, list[tuple[int, ...]]]:
    """Automata that read the same letters side by side, and the states that those of the whole stand for."""
    place = {letter: number for number, letter in enumerate(letters)}

    def step(states: tuple[int, ...], letter: int) -> tuple[int, ...]:
        return tuple(int(a.successor[q, place[letter]]) for a, q in zip(automata, states, strict=True))

    return explore((0,) * len(automata), letters, step)


def explore(first: S, letters: Sequence[int], step: Callable[[S, int], S]) -> tuple[Automaton, list[S]]:
    """The automaton of all that `step` reaches from `first`, and what its states stand for."""
    number: dict[S, int] = {first: 0}
    found, rows = [first], []
    for state in found:
        row = []
        for letter in letters:
            following = step(state, letter)
            if following not in number:
                number[following] = len(found)
                found.append(following)
                if len(found) > MOST_STATES:
                    raise InputError(
                        f"the automaton of this temporal formula has more than {MOST_STATES:,} states",
                        hint="ask it in parts",
                    )
            row.append(number[following])
        rows.append(row)
    return Automaton(np.array(rows, dtype=np.int32).reshape(len(found), len(letters))), found
