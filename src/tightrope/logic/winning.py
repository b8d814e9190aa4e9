"""Where the agent satisfies a temporal formula with probability 1, for products under constant support.

A play ends, with probability 1, in an end component of the product of model and `progression`, and visits it
infinitely often whole. So the largest probability of φ is that of reaching an end component where some guess
of the master theorem can be met with probability 1. Inside a maximal end component every state reaches every
other one, whatever nature picks as long as it can cut no transition; so one state decides: the component
times the automaton of the guess is built from it, and holds an end component that avoids and repeats what the
guess says, or the guess fails there. The values of nature play no part: the set is the same for every pick,
hence for the worst and the best one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.logic.formula import FALSE, TRUE, Formula
from tightrope.logic.strategy import Won
from tightrope.logic.translation import Guess, can_begin, guesses, suffix_automaton
from tightrope.model.graph.components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.product import Automaton, Letters, Product, RabinPair, part_of, product_of
from tightrope.numerics.arrays import BoolArray


def winning_states(
    model: MDP | IntervalMDP,
    product: Product,
    left: list[Formula],
    letters: Letters,
    won: list[Won] | None = None,
    choices: BoolArray | None = None,
) -> BoolArray:
    """Product states in end components where what is `left` of the formula can be satisfied almost surely.

    `model` has the product's structure, and constant support. `won` takes the components, and how each is
    won; only `choices` may be used in them."""
    memory = product.memory
    winning: BoolArray = np.array([formula == TRUE for formula in left])[memory]
    lost = np.array([formula == FALSE for formula in left])[memory]
    components = maximal_end_components(Support.of(model), within=~winning & ~lost, choices=choices)
    order = np.argsort(components.component, kind="stable")
    ends = np.searchsorted(components.component[order], np.arange(components.count + 1))
    letter_of = letters.letter[product.state]
    single: dict[tuple[int, int], _Met | None] = {}
    suffixes = _Suffixes()
    for begin, end in pairwise(ends):
        members = order[begin:end]
        start = members[0]
        here, key = Letters(letter_of[members], letters.bits), (int(memory[start]), int(letter_of[start]))
        if len(members) > 1 or key not in single:
            seen = [left[q] for q in np.unique(memory[members])]
            part = part_of(model, members, components.internal)
            met = _satisfy(part, left[memory[start]], seen, here, suffixes)
            if len(members) == 1:  # one letter for ever
                single[key] = met
        else:
            met = single[key]
        winning[members] = met is not None
        if met is not None and won is not None:
            won.append(Won(members, model, components.internal, met.letters, met.automaton, met.pair))
    return winning


@dataclass(frozen=True, eq=False)
class _Met:
    """A guess that is met in a component: its automaton over the letters that occur there."""

    letters: Letters
    automaton: Automaton
    pair: RabinPair


class _Suffixes:
    """The automata of guesses; components often share formula and letters."""

    def __init__(self) -> None:
        self._found: dict[tuple[Formula, Guess, tuple[int, ...]], tuple[Automaton, RabinPair] | None] = {}

    def of(self, formula: Formula, guess: Guess, bits: tuple[int, ...]) -> tuple[Automaton, RabinPair] | None:
        key = formula, guess, bits
        if key not in self._found:
            self._found[key] = suffix_automaton(formula, guess, bits)
        return self._found[key]


def _satisfy(
    model: MDP | IntervalMDP,
    formula: Formula,
    seen: list[Formula],
    letters: Letters,
    suffixes: _Suffixes,
) -> _Met | None:
    """How an end component, given whole, satisfies a formula from its first state; None if it cannot.

    `seen` is all that is left of it in the component: progression reaches nothing else."""
    used, renumbered = np.unique(letters.letter, return_inverse=True)
    here = Letters(renumbered.astype(np.int32), tuple(letters.bits[i] for i in used))
    support = Support.of(model)
    for guess in guesses(formula):
        if not can_begin(seen, guess):
            continue
        found = suffixes.of(formula, guess, here.bits)
        if found is None:
            continue
        automaton, pair = found
        product = product_of(support, here, automaton, np.zeros(1, np.int64))
        if states_meeting(Support.of(product.model(model)), product, here, pair).any():
            return _Met(here, automaton, pair)
    return None


def states_meeting(support: Support, product: Product, letters: Letters, pair: RabinPair) -> BoolArray:
    """The states of end components that never meet what a pair avoids, and all that it repeats."""
    letter = letters.letter[product.state]
    components = maximal_end_components(support, within=~pair.avoided[product.memory, letter])
    meets = np.ones(components.count, np.bool_)
    for mask in pair.repeated:
        seen = components.component[mask[product.memory, letter]]
        hit = np.zeros(components.count, np.bool_)
        hit[seen[seen >= 0]] = True
        meets &= hit
    inside = components.component >= 0
    inside[inside] = meets[components.component[inside]]
    return inside
