"""PRISM's `.srew` and `.trew` files: rewards of states and of transitions.

    # Reward structure "steps"
    4 2                      states, entries           4 5 7            as in the `.tra` file
    0 1.5                    state, reward             0 0 1 2          from, choice, to, reward

States and transitions that are not listed earn 0. Our models hold rewards of choices, not of single
transitions: a `.trew` file is folded into them. Where the transitions of a choice earn different rewards, it
earns their expectation, on which alone values depend; that of an interval model depends on what nature picks,
and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.explicit.transitions import Transitions, counts_line, is_content
from tightrope.io.number_text import exact_number, nearest_double
from tightrope.io.text_file import fail, shorten
from tightrope.model import door
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.text_reading import reading

_NAME = re.compile(r'#\s*Reward structure\s*:?\s*"([^"]*)"')


Exact = Callable[[int], Fraction]
"""A reward as it is written, by the number of its state or choice."""


def read_state_rewards(path: Path, states: int) -> tuple[str | None, FloatArray, Exact]:
    """The name in the file's comment, and the rewards."""
    rewards = np.zeros(states)
    texts: dict[int, str] = {}
    with reading(path) as file:
        name, lines = _read_named_content(file)
        entries = _read_announced(path, lines, (2,), "the numbers of states and entries", states)[-1]
        for number, line in lines:
            (state,), reward, text = _row(path, number, line, 1)
            if state >= states:
                fail(path, number, line, f"there is no state {state}: the states are 0 to {states - 1}")
            if state in texts:
                fail(path, number, line, f"a second reward for state {state}")
            texts[state] = text
            rewards[state] = reward
    _check_entries(path, len(texts), entries)
    return name, rewards, lambda state: exact_number(texts.get(state, "0"))


def read_transition_rewards(path: Path, transitions: Transitions) -> tuple[str | None, FloatArray, Exact]:
    """The name in the file's comment, and the rewards of the choices; where numbers are rates, what they earn
    per unit of time.
    """
    width = 2 if transitions.is_chain else 3
    index = _TransitionIndex(transitions)
    rewards = np.zeros(len(transitions.successor))
    place: dict[int, tuple[int, str]] = {}
    texts: dict[int, str] = {}
    with reading(path) as file:
        name, lines = _read_named_content(file)
        expected = "the numbers of states, choices and entries"
        entries = _read_announced(path, lines, (2, 3), expected, index.states)[-1]
        for number, line in lines:
            numbers, reward, text = _row(path, number, line, width)
            transition = index.find(numbers[0], 0 if transitions.is_chain else numbers[1], numbers[-1])
            if transition is None:
                fail(path, number, line, "a reward for a transition that the model does not have")
            if transition in place:
                fail(path, number, line, "a second reward for the same transition")
            place[transition] = number, line
            texts[transition] = text
            rewards[transition] = reward
    _check_entries(path, len(place), entries)
    start = transitions.transition_start
    assert transitions.exact is not None
    numbers_of = transitions.exact

    def exact(choice: int) -> Fraction:
        """Σ probability · reward: values depend on nothing else. A reward that all earn is that."""
        own = range(start[choice], start[choice + 1])
        earned = [exact_number(texts.get(t, "0")) for t in own]
        if not transitions.are_rates and len(set(earned)) == 1:
            return earned[0]
        return sum((numbers_of(t)[0] * r for t, r in zip(own, earned, strict=True)), Fraction(0))

    low, high = np.minimum.reduceat(rewards, start[:-1]), np.maximum.reduceat(rewards, start[:-1])
    differ = np.flatnonzero((low != 0) | (high != 0) if transitions.are_rates else low != high)
    for choice in differ.tolist():
        own = range(start[choice], start[choice + 1])
        first = next(place[transition] for transition in own if transition in place)
        if transitions.has_intervals:
            fail(
                path,
                *first,
                "the transitions of this choice earn different rewards, so what it earns depends on "
                "probabilities that are intervals; that is not supported",
                hint="give the reward to the choice, or to states: the same number on all of its transitions",
            )
        try:
            low[choice] = door.double(exact(choice))
        except door.NotHeldError as error:
            fail(path, *first, f"what this choice earns on average: {error.message}")
    return name, low, exact


class _TransitionIndex:
    """Finds the transition (from, choice, to)."""

    def __init__(self, transitions: Transitions):
        self.states = len(transitions.choice_start) - 1
        self.choice_start = transitions.choice_start.tolist()
        start = transitions.transition_start
        choice = np.repeat(np.arange(len(start) - 1), np.diff(start))
        keys = zip(choice.tolist(), transitions.successor.tolist(), strict=True)
        self.transition = {key: t for t, key in enumerate(keys)}

    def find(self, state: int, choice: int, target: int) -> int | None:
        if state >= self.states or choice >= self.choice_start[state + 1] - self.choice_start[state]:
            return None
        return self.transition.get((self.choice_start[state] + choice, target))


def _read_named_content(file: Any) -> tuple[str | None, Iterator[tuple[int, str]]]:
    """The name in the comments before the first line of content, and the content."""
    name = None
    lines = enumerate(file, 1)
    for number, line in lines:
        if match := _NAME.match(line.strip()):
            name = match.group(1)
        if is_content(line):
            rest = (entry for entry in lines if is_content(entry[1]))
            return name, _chain((number, line), rest)
    return name, iter(())


def _chain(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


def _read_announced(
    path: Path, lines: Iterator[tuple[int, str]], widths: tuple[int, ...], expected: str, states: int
) -> list[int]:
    number, line = next(lines, (0, ""))
    if number == 0:
        raise InputError("the file is empty", Location(str(path)))
    counts = counts_line(path, number, line, expected)
    if len(counts) not in widths:
        fail(path, number, line, f"{expected} expected, found {shorten(line)}")
    if counts[0] != states:
        fail(path, number, line, f"rewards for {counts[0]} states, but the model has {states}")
    return counts


def _row(path: Path, number: int, line: str, width: int) -> tuple[list[int], float, str]:
    words = line.split()
    if len(words) != width + 1:
        fail(path, number, line, f"{width} numbers and a reward expected, found {shorten(line)}")
    for word in words[:width]:
        if not (word.isascii() and word.isdecimal()) or len(word) > 9:
            fail(path, number, line, f"{shorten(word)} is not a number of a state or choice", word)
    try:
        return [int(word) for word in words[:width]], nearest_double(words[width]), words[width]
    except ValueError as error:
        fail(path, number, line, f"{shorten(words[width])}: {error}", words[width])


def _check_entries(path: Path, found: int, announced: int) -> None:
    if found != announced:
        raise InputError(
            f"the first line announces {announced} rewards, the file has {found}",
            Location(str(path)),
            hint="the file may be cut off" if found < announced else None,
        )
