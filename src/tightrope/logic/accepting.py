"""States where the agent satisfies a temporal formula almost surely, for products under constant support.

A play ends almost surely in an end component of the product of model and `progression`, and visits all of it
infinitely often. So the largest probability of φ is that of reaching an end component where some guess of the
master theorem can be met almost surely. Inside a maximal end component every state reaches every other one,
as nature can cut no transition; so one state decides: its product with the automaton of the guess holds an
end component that avoids and repeats what the guess says, or the guess fails. The set is the same for every
nature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from itertools import combinations

import numpy as np

from tightrope.errors import InputError
from tightrope.logic import formula as ltl
from tightrope.logic.values import rearranged
from tightrope.model.graph.components import EndComponents, maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.product import Automaton, Letters, Product, RabinPair, choices_of, part_of, product_of
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.solver.equations.system import first_choices


def winning_states(
    model: MDP | IntervalMDP,
    product: Product,
    left: list[ltl.Formula],
    letters: Letters,
    won: list[Won] | None = None,
    choices: BoolArray | None = None,
) -> BoolArray:
    """Product states in end components where what is `left` of the formula can be satisfied almost surely.

    `model` has the product's structure, and constant support. `won` takes the components, and how each is
    won; only `choices` may be used in them."""
    memory = product.memory
    winning: BoolArray = np.array([formula == ltl.TRUE for formula in left])[memory]
    lost = np.array([formula == ltl.FALSE for formula in left])[memory]
    components = maximal_end_components(Support.of(model), within=~winning & ~lost, choices=choices)
    letter_of = letters.letter[product.state]
    single: dict[tuple[int, int], _Met | None] = {}
    suffixes = cache(ltl.suffix_automaton)  # components often share formula and letters
    for members in components.members:
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


def _satisfy(
    model: MDP | IntervalMDP,
    formula: ltl.Formula,
    seen: list[ltl.Formula],
    letters: Letters,
    suffixes: Callable[[ltl.Formula, ltl.Guess, tuple[int, ...]], tuple[Automaton, RabinPair] | None],
) -> _Met | None:
    """How an end component satisfies a formula from its first state, or None; `seen`: what is left there."""
    used, renumbered = np.unique(letters.letter, return_inverse=True)
    here = Letters(renumbered.astype(np.int32), tuple(letters.bits[i] for i in used))
    support = Support.of(model)
    for guess in ltl.guesses(formula):
        if not ltl.can_begin(seen, guess):
            continue
        result = suffixes(formula, guess, here.bits)
        if result is None:
            continue
        automaton, pair = result
        product = product_of(support, here, automaton, np.zeros(1, np.int64))
        if states_meeting(Support.of(product.model(model)), product, here, pair).any():
            return _Met(here, automaton, pair)
    return None


def states_meeting(support: Support, product: Product, letters: Letters, pair: RabinPair) -> BoolArray:
    """The states of end components that never meet what a pair avoids, and all that it repeats."""
    return _meeting(support, product, letters, pair)[0]


def _meeting(
    support: Support, product: Product, letters: Letters, pair: RabinPair
) -> tuple[BoolArray, EndComponents, list[BoolArray]]:
    """These states, the end components among them and others, and where each set is met that is repeated."""
    letter = letters.letter[product.state]
    components = maximal_end_components(support, within=~pair.avoided[product.memory, letter])
    marks = [mask[product.memory, letter] for mask in pair.repeated]
    meets = np.ones(components.count, np.bool_)
    for mark in marks:
        seen = components.component[mark]
        meets &= np.isin(np.arange(components.count), seen)
    inside = components.component >= 0
    inside[inside] = meets[components.component[inside]]
    return inside, components, marks


# The finite-memory policy of a temporal formula. Outside won components it is a policy of the product; its
# memory is the automaton's state. Inside one (`ComponentPlan`) it goes to the first state, starts the
# automaton of the guess met there (`winning_states`), walks to an end component that avoids and repeats what
# the guess says, and visits the sets to repeat in turn. If no such component can be reached any more, it
# starts again. Every attempt succeeds with a probability bounded away from 0, so one does almost surely if
# nature can cut no transition.


@dataclass(frozen=True, eq=False)
class Won:
    """A product's end component, first member in front, the choices that keep to it, the guess met there."""

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
class ComponentPlan:
    """What is done inside a component: `home[i]` is the choice of member i on the way to the first one.

    A row is a member with a state of the guess's automaton and the number of the set that is to be visited
    next; `choice` is −1 where all is begun anew."""

    home: OffsetArray
    product: Product
    choice: OffsetArray
    goal: OffsetArray
    goals: int


def towards(structure: Structure, target: BoolArray, choices: BoolArray) -> tuple[OffsetArray, OffsetArray]:
    """A choice per state that leads on to `target`, −1 where there is none, and the least number of steps."""
    rank = np.where(target, 0, -1).astype(np.int64)
    chosen = np.full(structure.states, -1, np.int64)
    owner, at = structure.choice_state, structure.transition_choice
    usable = choices[at]
    distance = 0
    while True:
        hits = usable & (rank[structure.successor] == distance)
        result = np.unique(at[hits])
        result = result[rank[owner[result]] < 0]
        if not len(result):
            return chosen, rank
        state, first = np.unique(owner[result], return_index=True)
        distance += 1
        chosen[state], rank[state] = result[first], distance


def plan_inside(won: Won) -> ComponentPlan:
    """The plan of one component."""
    part, structure = won.part, won.part.structure
    every = np.ones(structure.choices, np.bool_)
    first = np.zeros(structure.states, np.bool_)
    first[0] = True
    home, _ = towards(structure, first, every)
    home[home < 0] = structure.choice_start[:-1][home < 0]
    product = product_of(Support.of(part), won.letters, won.automaton, np.zeros(1, np.int64))
    there = product.model(part)
    good, components, marks = _meeting(Support.of(there), product, won.letters, won.pair)
    built = there.structure
    approach, rank = towards(built, good, np.ones(built.choices, np.bool_))
    keeps = components.internal & good[built.choice_state]
    stay = first_choices(built, keeps)
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
    return ComponentPlan(home, product, choice, goal, goals)


def finite_memory_choices(
    product: Product, automaton: Automaton, letters: Letters, policy: OffsetArray, won: list[Won]
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
            selected, goal = plan.choice[:, number], plan.goal[:, number]
            again = selected < 0
            own = np.where(again, plan.home[inner.state], inner.choice[selected])
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


# Stops of plays with several objectives. In an end component without rewards a play can stay for ever. Its
# memory decides safe and co-safe formulas. Of the others (`G F a`, `F G b`, …) one policy satisfies almost
# surely each set whose conjunction is won there (`winning_states`), and every play satisfies one of these
# sets, or less. So each largest set is a choice to stop. All states of the component reach each other almost
# surely, without reward and whatever nature does, so one state stands for them: with their choices that lead
# out, and the stops.

MOST_REPEATED = 5
"""Formulas about what happens forever, whose sets are tried one by one."""


@dataclass(frozen=True, eq=False)
class Stop:
    """A way to rest in a component: `satisfied` of all formulas, and how the repeated ones are won."""

    component: int
    satisfied: tuple[bool, ...]
    won: Won | None


@dataclass(frozen=True, eq=False)
class AcceptingComponents:
    """The `model` that is solved, and what its choices are: `own[c]` is a choice of the product, −1 − i the
    i-th stop; the last state is where plays have stopped. `place` is the state of the model for a product
    state."""

    product: Product
    components: EndComponents
    model: MDP | IntervalMDP
    own: OffsetArray
    place: OffsetArray
    ways: list[Stop]
    formulas: int

    @property
    def stops(self) -> int:
        return len(self.ways)

    @property
    def satisfied(self) -> list[BoolArray]:
        """For every formula whether each stop satisfies it."""
        table = np.array([stop.satisfied for stop in self.ways], np.bool_)
        return list(table.reshape(self.stops, self.formulas).T)

    def rows(self, policy: OffsetArray, automaton: Automaton, letters: Letters) -> FiniteMemoryChoices:
        """A policy of the model as a table with its memory."""
        structure, component = self.product.structure, self.components.component
        own = self.own[policy][self.place]
        choice = np.where(own >= 0, own, 0)
        won = []
        for number in range(self.components.count):
            members = component == number
            decided = int(own[np.argmax(members)])
            if decided >= 0:  # walk to the state whose choice it is
                aim = np.zeros(structure.states, np.bool_)
                aim[structure.choice_state[decided]] = True
                walk, _ = towards(structure, aim, self.components.internal)
                choice[members] = np.where(aim, decided, walk)[members]
                continue
            inside = first_choices(structure, self.components.internal & members[structure.choice_state])
            choice = np.where(inside >= 0, inside, choice)
            how = self.ways[-1 - decided].won
            if how is not None:
                won.append(how)
        return finite_memory_choices(self.product, automaton, letters, choice, won)


def accepting_components(
    model: MDP | IntervalMDP,
    product: Product,
    formulas: Sequence[ltl.Formula],
    lefts: Sequence[list[ltl.Formula]],
    letters: Letters,
    free: BoolArray,
) -> AcceptingComponents:
    """The model with stops; `lefts`: what memories leave of every formula, `free` choices earn nothing."""
    components = maximal_end_components(Support.of(model), choices=free)
    stops = _find_stops(model, product, formulas, lefts, letters, free, components)
    stopping = np.array([stop.component for stop in stops], np.int64)
    smaller, own, place = _join_components(model, components, stopping)
    return AcceptingComponents(product, components, smaller, own, place, stops, len(formulas))


def _find_stops(
    model: MDP | IntervalMDP,
    product: Product,
    formulas: Sequence[ltl.Formula],
    lefts: Sequence[list[ltl.Formula]],
    letters: Letters,
    free: BoolArray,
    components: EndComponents,
) -> list[Stop]:
    repeated = [i for i, one in enumerate(formulas) if not ltl.is_co_safe(one) and not ltl.is_safe(one)]
    if len(repeated) > MOST_REPEATED:
        raise InputError(
            f"multi(…) takes up to {MOST_REPEATED} formulas about what happens forever, such as G F a",
            hint="join some of them by &",
        )
    settled = [
        [left == ltl.TRUE if ltl.is_co_safe(one) else left != ltl.FALSE for left in rest]
        for one, rest in zip(formulas, lefts, strict=True)
    ]
    first = [int(np.argmax(components.component == number)) for number in range(components.count)]
    together: list[list[frozenset[int]]] = [[] for _ in first]
    stops = []
    for size in range(len(repeated), -1, -1):
        for chosen in combinations(repeated, size):
            won: list[Won] = []
            wins = np.ones(product.structure.states, np.bool_)
            if chosen:
                joint = [reduce(ltl.both, parts) for parts in zip(*(lefts[i] for i in chosen), strict=True)]
                ltl.refuse_large(joint[0])
                wins = winning_states(model, product, joint, letters, won, free)
            how = {int(components.component[one.members[0]]): one for one in won}
            for number, state in enumerate(first):
                if not wins[state] or any(set(chosen) <= larger for larger in together[number]):
                    continue
                together[number].append(frozenset(chosen))
                memory = product.memory[state]
                satisfied = tuple(
                    i in chosen if i in repeated else bool(settled[i][memory]) for i in range(len(formulas))
                )
                stops.append(Stop(number, satisfied, how.get(number)))
    return stops


def _join_components(
    model: MDP | IntervalMDP, components: EndComponents, stopping: OffsetArray
) -> tuple[MDP | IntervalMDP, OffsetArray, OffsetArray]:
    """The model with one state per component, and stops; whose choices its own are, and places."""
    structure = model.structure
    alone = components.count + np.arange(structure.states)
    label = np.where(components.component >= 0, components.component, alone)
    labels, begins, group = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(begins), np.int64)
    rank[np.argsort(begins, kind="stable")] = np.arange(len(begins))
    place, done = rank[group], len(rank)  # the first state stays the first
    inside = components.internal & (components.component[structure.choice_state] >= 0)
    out = np.flatnonzero(~inside)
    stops = rank[np.searchsorted(labels, stopping)]
    owner = np.concatenate([place[structure.choice_state[out]], stops, [done]])
    own = np.concatenate([out, -1 - np.arange(len(stops) + 1)])
    joined, order = rearranged(model, owner, np.where(own < 0, -1 - done, own), place)
    return joined, own[order], place
