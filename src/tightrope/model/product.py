"""The product of a model with a deterministic automaton that reads the letters of its states.

A product state (s, q) is the model in s with the automaton in q before it reads the letter of s. All choices
of s lead on with the same memory, so what an automaton marks when it reads is a mark of product states. Only
what can be reached from the given states is built, through transitions that are possible.

Products of interval models whose rows are trees of independent factors (`tightrope.model.factored`).

The automaton reads the letter of the state that a step begins in, so all that a step leads to has one memory:
the tree of a product's choice is that of the model's, with that memory behind every state in the middle of
the step and behind the states it ends in. Nothing is read on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.errors import InputError
from tightrope.model.automaton import Automaton
from tightrope.model.factored import FactoredRows
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

MOST_PAIRS = 200_000_000


@dataclass(frozen=True, eq=False)
class Letters:
    """The sets of atoms that occur: `bits[letter[s]]` is that of state s."""

    letter: IndexArray
    bits: tuple[int, ...]

    @staticmethod
    def of(atoms: list[BoolArray], states: int) -> Letters:
        packed = np.zeros(states, np.int64)
        for number, members in enumerate(atoms):
            packed |= members.astype(np.int64) << number
        bits, letter = np.unique(packed, return_inverse=True)
        return Letters(letter.astype(np.int32).reshape(states), tuple(int(b) for b in bits))


@dataclass(frozen=True, eq=False)
class Product:
    """`state` and `memory` of every product state; `choice`, `transition` are the model's behind its own."""

    structure: Structure
    state: IndexArray
    memory: IndexArray
    choice: OffsetArray
    transition: OffsetArray

    def model(self, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
        """With the probabilities of the model it was made of."""
        if isinstance(model, MDP):
            return MDP(self.structure, model.probability[self.transition])
        return IntervalMDP(self.structure, model.lower[self.transition], model.upper[self.transition])


def product_of(
    support: Support,
    letters: Letters,
    automaton: Automaton,
    starts: OffsetArray,
    memory: OffsetArray | None = None,
) -> Product:
    """What is reachable from `starts`, each with a `memory` (None: the automaton's first state); its first
    states are those."""
    structure, memories = support.structure, automaton.states
    if structure.states * memories > MOST_PAIRS:
        raise InputError(
            f"the automaton has {memories:,} states, the model {structure.states:,}: too many pairs",
            hint="ask the temporal formula in parts",
        )
    number = np.full(structure.states * memories, -1, np.int32)
    queue = np.empty(structure.states * memories, np.int64)
    queue[: len(starts)] = starts.astype(np.int64) * memories + (0 if memory is None else memory)
    size = _explore(
        support.state_start,
        structure.successor,
        support.possible,
        letters.letter,
        automaton.successor,
        queue,
        len(starts),
        number,
    )
    keys = queue[:size].copy()
    step = _Steps(structure, support.possible, letters, automaton).of(keys)
    built = Structure(
        choice_start=_offsets(step.owner, len(keys)),
        transition_start=_offsets(step.of_choice, len(step.choice)),
        successor=number[step.key],
        action=structure.action_of_choice[step.choice],
        action_names=structure.action_names,
        declared_mdp=structure.declared_mdp,
    )
    state, behind = (keys // memories).astype(np.int32), (keys % memories).astype(np.int32)
    return Product(built, state, behind, step.choice, step.transition)


@kernel
def _explore(
    state_start: OffsetArray,
    successor: IndexArray,
    possible: BoolArray,
    letter: IndexArray,
    following: IndexArray,
    queue: OffsetArray,
    size: int,
    number: IndexArray,
) -> int:
    """Breadth-first from the pairs that the queue begins with; how many there are in the end."""
    memories = following.shape[0]
    for i in range(size):
        number[queue[i]] = i
    done = 0
    while done < size:
        state, memory = queue[done] // memories, queue[done] % memories
        done += 1
        behind = following[memory, letter[state]]
        for t in range(state_start[state], state_start[state + 1]):
            if possible[t]:
                key = successor[t] * memories + behind
                if number[key] < 0:
                    number[key] = size
                    queue[size] = key
                    size += 1
    return size


def part_of(model: MDP | IntervalMDP, states: OffsetArray, choices: BoolArray) -> MDP | IntervalMDP:
    """The model of some states with some of their choices, which keep to them; states in the order given."""
    structure, support = model.structure, Support.of(model)
    chosen, owner = choices_of(structure, states, choices)
    transition, of_choice = ranges(structure.transition_start, chosen)
    possible = support.possible[transition]
    transition, of_choice = transition[possible], of_choice[possible]
    number = np.full(structure.states, -1, np.int64)
    number[states] = np.arange(len(states))
    built = Structure(
        choice_start=_offsets(owner, len(states)),
        transition_start=_offsets(of_choice, len(chosen)),
        successor=number[structure.successor[transition]].astype(np.int32),
    )
    if isinstance(model, MDP):
        return MDP(built, model.probability[transition])
    return IntervalMDP(built, model.lower[transition], model.upper[transition])


def choices_of(
    structure: Structure, states: OffsetArray, choices: BoolArray
) -> tuple[OffsetArray, OffsetArray]:
    """Those of `choices` that some states have, in their order, and the place of the state of each."""
    place, owner = ranges(structure.choice_start, states)
    return place[choices[place]], owner[choices[place]]


@dataclass(frozen=True, eq=False)
class _Step:
    """All choices and possible transitions out of some product states, and the pairs they lead to."""

    choice: OffsetArray
    owner: OffsetArray
    transition: OffsetArray
    of_choice: OffsetArray
    key: OffsetArray


@dataclass(frozen=True, eq=False)
class _Steps:
    structure: Structure
    possible: BoolArray
    letters: Letters
    automaton: Automaton

    def of(self, keys: OffsetArray) -> _Step:
        structure, memories = self.structure, self.automaton.states
        state, memory = keys // memories, keys % memories
        following = self.automaton.successor[memory, self.letters.letter[state]].astype(np.int64)
        choice, owner = ranges(structure.choice_start, state)
        transition, of_choice = ranges(structure.transition_start, choice)
        kept = self.possible[transition]
        transition, of_choice = transition[kept], of_choice[kept]
        key = structure.successor[transition] * np.int64(memories) + following[owner[of_choice]]
        return _Step(choice, owner, transition, of_choice, key)


def _offsets(owner: OffsetArray, count: int) -> OffsetArray:
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))])


def ranges(start: OffsetArray, which: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    """start[i]..start[i+1] for every i of `which` one behind the other, and the places of these i."""
    counts = start[which + 1] - start[which]
    owner = np.repeat(np.arange(len(which)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return start[which][owner] + within, owner


def factored_model(product: Product, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    """The product with the probabilities of a model, and with its factors where it has some."""
    made = product.model(model)
    if isinstance(model, MDP) or isinstance(made, MDP) or model.factored is None:
        return made
    return replace(made, factored=lift_factors(model.factored, product))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of the model's game, taken with a memory each: their transitions, and where these lead as pairs
    of a state and a memory."""

    length: OffsetArray
    transition: OffsetArray
    key: OffsetArray

    @staticmethod
    def of(rows: FactoredRows, which: OffsetArray, memory: OffsetArray, memories: int) -> _Rows:
        transition, owner = ranges(rows.structure.transition_start, which)
        key = rows.structure.successor[transition] * np.int64(memories) + memory[owner]
        return _Rows(np.bincount(owner, minlength=len(which)), transition, key)


def lift_factors(rows: FactoredRows, product: Product) -> FactoredRows | None:
    """The trees of a product's choices; None where one leads to a pair that the product does not have, as
    joint bounds rule it out."""
    built, memories = product.structure, int(product.memory.max()) + 1
    first = built.transition_start[built.choice_start[:-1]]
    following = product.memory[built.successor[first]].astype(np.int64)
    taken = [_Rows.of(rows, product.choice, following[built.choice_state], memories)]
    layers: list[OffsetArray] = []
    for begin, end in reversed(rows.layers):
        met = np.unique(np.concatenate([one.key for one in taken]))
        met = met[(met >= begin * memories) & (met < end * memories)]
        layers.append(met)
        shift = rows.choices - rows.states
        taken.append(_Rows.of(rows, met // memories + shift, met % memories, memories))
    own = product.state * np.int64(memories) + product.memory
    keys = np.concatenate([own, *reversed(layers)])
    order = np.argsort(keys)
    taken = [taken[0], *reversed(taken[1:])]
    wanted = np.concatenate([one.key for one in taken])
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    if not np.array_equal(keys[place], wanted):
        return None
    transition = np.concatenate([one.transition for one in taken])
    start = np.append(0, np.cumsum(np.concatenate([one.length for one in taken])))
    more = len(keys) - len(own)
    game = Structure(
        np.append(built.choice_start, built.choices + np.arange(1, more + 1)),
        start,
        place.astype(np.int32),
        built.initial_states,
    )
    layer_start = len(own) + np.append(0, np.cumsum([len(met) for met in reversed(layers)], dtype=np.int64))
    return FactoredRows(game, rows.lower[transition], rows.upper[transition], layer_start)
