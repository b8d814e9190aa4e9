"""Deterministic automata over the letters of a model's states, and products of models with them.

`successor[q, l]` follows state q and letter l. A `RabinPair` accepts a run that marks `avoided` finitely
often and each of `repeated` infinitely often; marks belong to a state and the letter it reads. One accepting
pair suffices (generalised Rabin condition).

A product state (s, q) is s with the automaton in q before it reads the letter of s. All choices of s lead to
the same memory, so marks belong to product states. Only reachable states are built. For factored rows
(`tightrope.model.mdp`) all states within and at the end of a step have this memory.

Choices keep the model's expressions, so ties and facts about transitions hold for all copies. `first_copy`
names the copy that takes a transition's counts, so pooling counts every observation once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from tightrope.errors import InputError
from tightrope.model.graph.components import Edges
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, FactoredRows, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward, RewardStructure, Structure, Structured
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, offsets, ranges
from tightrope.numerics.jit import kernel

MOST_PAIRS = 200_000_000
MOST_STATES = 50_000
MEMORY = "memory"
STATE = "state"
S = TypeVar("S", bound=Hashable)
M = TypeVar("M", bound=ParametricMDP | MDP | IntervalMDP)


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
    states, rows = [first], []
    for state in states:
        row = []
        for letter in letters:
            following = step(state, letter)
            if following not in number:
                number[following] = len(states)
                states.append(following)
                if len(states) > MOST_STATES:
                    raise InputError(
                        f"the automaton of this temporal formula has more than {MOST_STATES:,} states",
                        hint="ask it in parts",
                    )
            row.append(number[following])
        rows.append(row)
    return Automaton(np.array(rows, dtype=np.int32).reshape(len(states), len(letters))), states


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

    def model(self, model: M) -> M:
        """With the probabilities of the model it was made of."""
        return copy_onto(model, self.structure, self.transition)


def copy_onto(model: M, structure: Structure, transition: OffsetArray) -> M:
    """A model on another structure, whose transitions are copies of these of its own."""
    copied: ParametricMDP | MDP | IntervalMDP
    if isinstance(model, ParametricMDP):
        copied = ParametricMDP(structure, model.expression[transition], model.expressions, model.parameters)
    elif isinstance(model, MDP):
        copied = MDP(structure, model.probability[transition])
    else:
        copied = IntervalMDP(structure, model.lower[transition], model.upper[transition])
    return cast(M, copied)


def product_of(
    support: Support,
    letters: Letters,
    automaton: Automaton,
    starts: OffsetArray,
    memory: OffsetArray | None = None,
) -> Product:
    """What is reachable from `starts`, each with a `memory` (None: 0); its first states are those."""
    structure, memories = support.structure, automaton.states
    if structure.states * memories > MOST_PAIRS:
        raise InputError(
            f"the automaton has {memories:,} states, the model {structure.states:,}: too many pairs",
            hint="ask the temporal formula in parts",
        )
    number = np.full(structure.states * memories, -1, np.int32)
    queue = np.empty(structure.states * memories, np.int64)
    queue[: len(starts)] = starts.astype(np.int64) * memories + (0 if memory is None else memory)
    edges = Edges(support.state_start, structure.successor, support.possible)
    size = _explore(edges, letters.letter, automaton.successor, queue, len(starts), number)
    state, behind = queue[:size] // memories, queue[:size] % memories
    following = automaton.successor[behind, letters.letter[state]].astype(np.int64)
    choice, owner = ranges(structure.choice_start, state)
    transition, of_choice = ranges(structure.transition_start, choice)
    possible = support.possible[transition]
    transition, of_choice = transition[possible], of_choice[possible]
    key = structure.successor[transition] * np.int64(memories) + following[owner[of_choice]]
    starts_of = _offsets(owner, size), _offsets(of_choice, len(choice))
    built = _with_choices(structure, *starts_of, number[key], choice, structure.declared_mdp)
    return Product(built, state.astype(np.int32), behind.astype(np.int32), choice, transition)


@kernel
def _explore(
    edges: Edges, letter: IndexArray, following: IndexArray, queue: OffsetArray, size: int, number: IndexArray
) -> int:
    """Breadth-first from the pairs that the queue begins with; how many there are in the end."""
    state_start, successor, possible = edges
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
    return copy_onto(model, built, transition)


def choices_of(
    structure: Structure, states: OffsetArray, choices: BoolArray
) -> tuple[OffsetArray, OffsetArray]:
    """Those of `choices` that some states have, in their order, and the place of the state of each."""
    place, owner = ranges(structure.choice_start, states)
    return place[choices[place]], owner[choices[place]]


def _with_choices(
    structure: Structure,
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    choice: OffsetArray,
    declared_mdp: bool,
) -> Structure:
    """A structure whose choices are copies of these."""
    action, names = structure.action_of_choice[choice], structure.action_names
    starts = choice_start, transition_start
    return Structure(*starts, successor, action=action, action_names=names, declared_mdp=declared_mdp)


def _offsets(owner: OffsetArray, count: int) -> OffsetArray:
    return offsets(np.bincount(owner, minlength=count))


def factored_model(product: Product, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    """The product with the probabilities of a model, and with its factors where it has some."""
    made = product.model(model)
    if isinstance(model, MDP) or isinstance(made, MDP) or model.factored is None:
        return made
    return replace(made, factored=lift_factors(model.factored, product))


def lift_factors(rows: FactoredRows, product: Product) -> FactoredRows | None:
    """The trees of a product's choices; None where one leads to a pair that joint bounds rule out."""
    built, memories = product.structure, int(product.memory.max()) + 1

    def take_rows(which: OffsetArray, memory: OffsetArray) -> tuple[OffsetArray, OffsetArray, OffsetArray]:
        """Rows of the model's game, with a memory each: (lengths, transitions, pairs these lead to)."""
        transition, owner = ranges(rows.structure.transition_start, which)
        key = rows.structure.successor[transition] * np.int64(memories) + memory[owner]
        return np.bincount(owner, minlength=len(which)), transition, key

    first = built.transition_start[built.choice_start[:-1]]
    following = product.memory[built.successor[first]].astype(np.int64)
    own_rows = take_rows(product.choice, following[built.choice_state])
    inner_rows: list[tuple[OffsetArray, OffsetArray, OffsetArray]] = []
    layers: list[OffsetArray] = []
    reached = own_rows[2]
    for begin, end in reversed(rows.layers):
        met = np.unique(reached)
        met = met[(met >= begin * memories) & (met < end * memories)]
        layers.insert(0, met)
        inner_rows.insert(0, take_rows(met // memories + rows.choices - rows.states, met % memories))
        reached = np.concatenate([reached, inner_rows[0][2]])
    own = product.state * np.int64(memories) + product.memory
    keys = np.concatenate([own, *layers])
    order = np.argsort(keys)
    columns = zip(own_rows, *inner_rows, strict=True)
    length, transition, wanted = (np.concatenate(column) for column in columns)
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    if not np.array_equal(keys[place], wanted):
        return None
    more = len(keys) - len(own)
    game = Structure(
        np.append(built.choice_start, built.choices + np.arange(1, more + 1)),
        offsets(length),
        place.astype(np.int32),
        built.initial_states,
    )
    layer_start = len(own) + offsets([len(met) for met in layers])
    return FactoredRows(game, rows.lower[transition], rows.upper[transition], layer_start)


def lift_model(model: M, product: Product) -> M:
    """The product with all that the model carries: probabilities, labels, rewards, variables."""
    return copy_onto(model, _lift_structure(model.structure, product), product.transition)


def lift_reward(reward: RewardStructure, product: Product) -> RewardStructure:
    """A reward of the model, on the states and choices of the product."""
    if isinstance(reward, ParametricReward):
        lifted = reward.expression[product.choice]
        return ParametricReward(reward.name, reward.expressions, lifted, is_mean=reward.is_mean)
    return replace(
        reward,
        state=None if reward.state is None else reward.state[product.state],
        choice=None if reward.choice is None else reward.choice[product.choice],
    )


def lift_objective(objective: Objective, product: Product) -> Objective:
    """The same question about the product."""
    reward = None if objective.reward is None else lift_reward(objective.reward, product)
    return objective.moved(lambda held, _: held[product.state], reward)


def first_copy(product: Product, transitions: int) -> OffsetArray:
    """For every transition of the model one of the product that is a copy of it; −1 where there is none."""
    copy = np.full(transitions, -1, np.int64)
    copy[product.transition[::-1]] = np.arange(len(product.transition))[::-1]
    return copy


def every_transition(structure: Structure) -> MDP:
    """A model in which every transition is possible: what graph questions under full support are asked of."""
    sizes = np.diff(structure.transition_start)
    return MDP(structure, np.repeat(1.0 / sizes, sizes))


def _lift_structure(base: Structure, product: Product) -> Structure:
    state, built = product.state, product.structure
    variables = {name: column[state] for name, column in base.valuations.items()} or {STATE: state}
    memory = MEMORY
    while memory in variables:
        memory += "_"
    return replace(
        built,
        labels={name: members[state] for name, members in base.labels.items()},
        rewards={name: lift_reward(reward, product) for name, reward in base.rewards.items()},
        valuations={**variables, memory: product.memory},
        declared_mdp=base.declared_mdp,
        definitions=base.definitions,
    )


def chain_of(structure: Structure, policy: Policy) -> Product:
    """The pairs that a policy with a memory can meet, the first one first, each with its choice."""
    rows = policy.memory
    assert rows is not None
    width = np.int64(rows.memories)
    key = rows.state * width + rows.memory
    begins = int(np.flatnonzero(key == structure.initial * width)[0])
    order = np.argsort(np.arange(len(key)) != begins, kind="stable")
    key, choice, following = key[order], rows.choice[order], rows.following[order]
    transition, of_choice = ranges(structure.transition_start, choice)
    after = structure.successor[transition] * width + following[of_choice]
    by_key = np.argsort(key)
    successor = by_key[np.searchsorted(key, after, sorter=by_key)].astype(np.int32)
    starts = np.arange(len(key) + 1), _offsets(of_choice, len(key))
    built = _with_choices(structure, *starts, successor, choice, True)
    state, memory = (key // width).astype(np.int32), (key % width).astype(np.int32)
    return Product(built, state, memory, choice, transition)


def product_with_memory(model: Structured, policy: Policy, support: Support) -> tuple[Product, Policy]:
    """The model with a policy's memory, all choices open, and the policy; elsewhere the first choice."""
    structure, rows = model.structure, policy.memory
    assert rows is not None
    lost = rows.memories
    if structure.states * (lost + 1) > MOST_PAIRS:
        raise InputError(
            f"the policy has {lost:,} memories, the model {structure.states:,} states: too many pairs"
        )
    successor = np.full((lost + 1, structure.states), lost, np.int32)
    successor[rows.memory, rows.state] = rows.following
    letters = Letters(np.arange(structure.states, dtype=np.int32), tuple(range(structure.states)))
    product = product_of(support, letters, Automaton(successor), np.array([structure.initial]))
    table = np.full((lost + 1, structure.states), -1, np.int64)
    table[rows.memory, rows.state] = rows.choice
    wanted = table[product.memory, product.state]
    first = product.structure.choice_start[:-1]
    own = np.where(wanted < 0, first, first + wanted - structure.choice_start[product.state])
    return product, Policy.of_choices(product.structure, own)
