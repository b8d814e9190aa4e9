"""One deterministic automaton for a whole formula, with a generalised Rabin condition.

All guesses of the master theorem (`automata.translation`) run beside each other, one pair each: a word
satisfies the formula iff it meets one of them. Safe and co-safe formulas need no guesses: they are accepted
where what is left of them never becomes false, or becomes true. Pairs that another one makes superfluous are
left out, and states that no word tells apart by what it marks are one. The result depends on the formula and
the letters alone, so that an automaton can be compared with one that was made elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.logic.formula import FALSE, TRUE, Formula
from tightrope.logic.translation import (
    can_begin,
    guesses,
    is_co_safe,
    is_safe,
    progression,
    refuse_large,
    suffix_automaton,
)
from tightrope.model.product import Automaton, RabinPair, explore
from tightrope.numerics.arrays import BoolArray


def whole_automaton(formula: Formula, letters: Sequence[int]) -> tuple[Automaton, list[RabinPair]]:
    """The automaton of a formula over the letters that occur, and its pairs."""
    if is_co_safe(formula) or is_safe(formula):
        automaton, left = progression(formula, letters)
        lost = np.array([rest == FALSE for rest in left])
        done = np.array([rest == TRUE for rest in left])
        pair = RabinPair(
            _wide(lost, len(letters)), (_wide(done if is_co_safe(formula) else ~lost, len(letters)),)
        )
        return reduce_automaton(automaton, [pair])
    refuse_large(formula)
    _, left = progression(formula, letters)
    found = [
        suffix_automaton(formula, guess, letters) for guess in guesses(formula) if can_begin(left, guess)
    ]
    parts = [part for part in found if part is not None]
    place = {letter: number for number, letter in enumerate(letters)}

    def step(states: tuple[int, ...], letter: int) -> tuple[int, ...]:
        at = place[letter]
        return tuple(int(part.successor[state, at]) for (part, _), state in zip(parts, states, strict=True))

    together, states = explore((0,) * len(parts), letters, step)
    columns = np.array(states, np.int64).reshape(len(states), len(parts))
    pairs = [
        RabinPair(pair.avoided[columns[:, i]], tuple(mask[columns[:, i]] for mask in pair.repeated))
        for i, (_, pair) in enumerate(parts)
    ]
    return reduce_automaton(together, pairs)


def reduce_automaton(automaton: Automaton, pairs: list[RabinPair]) -> tuple[Automaton, list[RabinPair]]:
    """The same language with fewer pairs and states, which are numbered as they are first met."""
    kept: list[RabinPair] = []
    for place, pair in enumerate(pairs):
        others = [*kept, *pairs[place + 1 :]]
        if not any(_implies(pair, other) for other in others):
            kept.append(pair)
    marks = [mask for pair in kept for mask in (pair.avoided, *pair.repeated)]
    seen = np.array(marks, np.bool_).reshape(len(marks), *automaton.successor.shape)
    block = _renumber(np.moveaxis(seen, 0, -1).reshape(automaton.states, -1))
    while True:
        finer = _renumber(np.column_stack([block, block[automaton.successor]]))
        if finer.max() == block.max():
            break
        block = finer
    first, number = [0], {int(block[0]): 0}
    for state in first:
        for following in automaton.successor[state].tolist():
            if int(block[following]) not in number:
                number[int(block[following])] = len(first)
                first.append(following)
    name = np.array([number.get(b, 0) for b in range(int(block.max()) + 1)], np.int32)
    small = Automaton(name[block[automaton.successor[first]]])
    return small, [RabinPair(p.avoided[first], tuple(mask[first] for mask in p.repeated)) for p in kept]


def _implies(pair: RabinPair, other: RabinPair) -> bool:
    """Whether all that a pair accepts, the other one accepts, as their marks show at once."""
    return not np.any(other.avoided & ~pair.avoided) and all(
        any(not np.any(mine & ~mask) for mine in pair.repeated) for mask in other.repeated
    )


def _renumber(rows: BoolArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Equal rows by equal numbers."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _wide(mask: BoolArray, width: int) -> BoolArray:
    return np.repeat(mask[:, None], width, axis=1)
