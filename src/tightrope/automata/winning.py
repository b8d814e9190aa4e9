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

from itertools import pairwise

import numpy as np

from tightrope.automata.deterministic import RabinPair
from tightrope.automata.formula import FALSE, TRUE, Formula
from tightrope.automata.product import Letters, Product, part_of, product_of
from tightrope.automata.translation import guesses, suffix_automaton
from tightrope.model.graph.end_components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.numerics.arrays import BoolArray


def winning_states(
    model: MDP | IntervalMDP, product: Product, left: list[Formula], letters: Letters
) -> BoolArray:
    """Product states in end components where what is `left` of the formula can be satisfied almost surely.

    `model` has the product's structure, and constant support."""
    memory = product.memory
    winning: BoolArray = np.array([formula == TRUE for formula in left])[memory]
    lost = np.array([formula == FALSE for formula in left])[memory]
    components = maximal_end_components(Support.of(model), within=~winning & ~lost)
    order = np.argsort(components.component, kind="stable")
    ends = np.searchsorted(components.component[order], np.arange(components.count + 1))
    letter_of = letters.letter[product.state]
    single: dict[tuple[int, int], bool] = {}
    for begin, end in pairwise(ends):
        members = order[begin:end]
        start = members[0]
        if len(members) > 1:
            part = part_of(model, members, components.internal)
            wins = _can_win(part, left[memory[start]], Letters(letter_of[members], letters.bits))
        else:  # one letter for ever
            key = int(memory[start]), int(letter_of[start])
            if key not in single:
                here = Letters(letter_of[members], letters.bits)
                single[key] = _can_win(part_of(model, members, components.internal), left[key[0]], here)
            wins = single[key]
        winning[members] = wins
    return winning


def _can_win(model: MDP | IntervalMDP, formula: Formula, letters: Letters) -> bool:
    """Whether an end component, given whole, has a way to satisfy a formula from its first state."""
    used, renumbered = np.unique(letters.letter, return_inverse=True)
    here = Letters(renumbered.astype(np.int32), tuple(letters.bits[i] for i in used))
    support = Support.of(model)
    for guess in guesses(formula):
        found = suffix_automaton(formula, guess, here.bits)
        if found is None:
            continue
        automaton, pair = found
        product = product_of(support, here, automaton, np.zeros(1, np.int64))
        if meets_pair(Support.of(product.model(model)), product, here, pair):
            return True
    return False


def meets_pair(support: Support, product: Product, letters: Letters, pair: RabinPair) -> bool:
    """Whether some end component of the product never meets what a pair avoids, and all that it repeats."""
    return bool(states_meeting(support, product, letters, pair).any())


def states_meeting(support: Support, product: Product, letters: Letters, pair: RabinPair) -> BoolArray:
    """The states of such end components."""
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
