"""What to do in order to satisfy a temporal formula, as a finite-memory policy.

Outside of components in which the formula is won, a policy of the product is followed; its memory is the
automaton's state. Inside one, `Plan`: go to the component's first state, start the automaton of the guess
that is met there (`automata.winning`), and walk towards an end component that avoids and repeats what it
says; once there, visit what is to be repeated, one set after the other, for ever. If chance leads to where
no such component can be reached any more, go back to the first state and start again. Every attempt
succeeds with a probability that is bounded away from 0, so one of them does, almost surely, as long as
nature can cut no transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.model.graph.components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.policy_choices import FiniteMemoryChoices
from tightrope.model.product import Automaton, Letters, Product, RabinPair, choices_of, part_of, product_of
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Won:
    """An end component of a product `model`, its members with the first one in front, the choices that keep
    to it, and the guess met there."""

    members: OffsetArray
    model: MDP | IntervalMDP
    internal: BoolArray
    letters: Letters
    automaton: Automaton
    pair: RabinPair

    @cached_property
    def part(self) -> MDP | IntervalMDP:
        """The component as a model."""
        return part_of(self.model, self.members, self.internal)

    @property
    def choice(self) -> OffsetArray:
        """The choices of `part`, as the product numbers them."""
        return choices_of(self.model.structure, self.members, self.internal)[0]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done inside a component: `home[i]` is the choice of member i on the way to the first one.

    A row is a member with a state of the guess's automaton and the number of the set that is to be visited
    next; `choice` is −1 where all is begun anew."""

    home: OffsetArray
    product: Product
    choice: OffsetArray
    goal: OffsetArray
    goals: int


def towards(structure: Structure, target: BoolArray, choices: BoolArray) -> tuple[OffsetArray, OffsetArray]:
    """A choice per state that leads on to `target` with positive probability, −1 where there is none, and
    the least number of steps (−1: never)."""
    rank = np.where(target, 0, -1).astype(np.int64)
    chosen = np.full(structure.states, -1, np.int64)
    owner, at = structure.choice_state, structure.transition_choice
    usable = choices[at]
    distance = 0
    while True:
        hits = usable & (rank[structure.successor] == distance)
        found = np.unique(at[hits])
        found = found[rank[owner[found]] < 0]
        if not len(found):
            return chosen, rank
        state, first = np.unique(owner[found], return_index=True)
        distance += 1
        chosen[state], rank[state] = found[first], distance


def plan_inside(won: Won) -> Plan:
    """The plan of one component."""
    part, structure = won.part, won.part.structure
    every = np.ones(structure.choices, np.bool_)
    first = np.zeros(structure.states, np.bool_)
    first[0] = True
    home, _ = towards(structure, first, every)
    home[home < 0] = structure.choice_start[:-1][home < 0]
    product = product_of(Support.of(part), won.letters, won.automaton, np.zeros(1, np.int64))
    there = product.model(part)
    letter = won.letters.letter[product.state]
    inside = ~won.pair.avoided[product.memory, letter]
    components = maximal_end_components(Support.of(there), within=inside)
    marks = [mask[product.memory, letter] for mask in won.pair.repeated]
    meets = np.ones(components.count, np.bool_)
    for mark in marks:
        hit = np.zeros(components.count, np.bool_)
        seen = components.component[mark]
        hit[seen[seen >= 0]] = True
        meets &= hit
    good = components.component >= 0
    good[good] = meets[components.component[good]]
    built = there.structure
    approach, rank = towards(built, good, np.ones(built.choices, np.bool_))
    keeps = components.internal & good[built.choice_state]
    stay = np.full(built.states, -1, np.int64)
    kept = np.flatnonzero(keeps)[::-1]
    stay[built.choice_state[kept]] = kept
    goals = max(len(marks), 1)
    choice = np.repeat(approach[:, None], goals, axis=1)
    goal = np.repeat(np.arange(goals)[None, :], built.states, axis=0)
    for number in range(goals):
        aim = good & (marks[number] if marks else good)
        walk, _ = towards(built, aim, keeps)
        choice[good, number] = np.where(aim, stay, walk)[good]
    for number, mark in enumerate(marks):  # a visit is over when its state is left
        visit = good & mark
        following = (number + 1) % goals
        goal[visit, number] = following
        choice[visit, number] = choice[visit, following]
    choice[rank < 0] = -1
    return Plan(home, product, choice, goal, goals)


def finite_memory_choices(
    product: Product,
    automaton: Automaton,
    letters: Letters,
    policy: OffsetArray,
    won: list[Won],
) -> FiniteMemoryChoices:
    """All of it as one table; `policy` is a choice of the product per state."""
    automata = product.memory.astype(np.int64)
    following = automaton.successor[automata, letters.letter[product.state]].astype(np.int64)
    choice, state = product.choice[policy], product.state.astype(np.int64)
    parts = [(state, automata, choice.copy(), following.copy())]
    used = automaton.states
    for component in won:
        plan = plan_inside(component)
        members, inner = component.members, plan.product
        parts[0][2][members] = product.choice[component.choice[plan.home]]
        width = inner.memory.max(initial=0) + 1
        # A memory is the automaton's state, that of the guess's automaton, and the next set to visit.
        node = (automata[members[inner.state]] * width + inner.memory) * plan.goals
        numbers = np.unique(node[:, None] + np.arange(plan.goals))
        steps = component.automaton.successor[inner.memory, component.letters.letter[inner.state]]
        onward = (following[members[inner.state]] * width + steps) * plan.goals
        for number in range(plan.goals):
            taken, goal = plan.choice[:, number], plan.goal[:, number]
            again = taken < 0
            own = np.where(again, plan.home[inner.state], inner.choice[taken])
            behind = np.searchsorted(numbers, onward + goal) + used
            behind = np.where(again, following[members[inner.state]], behind)
            here = np.searchsorted(numbers, node + number) + used
            rows = (state[members[inner.state]], here, product.choice[component.choice[own]], behind)
            parts.append(rows)
            if number == 0:  # the first state of the component is the first one of its plan
                for column, value in zip(parts[0][2:], rows[2:], strict=True):
                    column[members[0]] = value[0]
        used += len(numbers)
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return FiniteMemoryChoices(*joined)
