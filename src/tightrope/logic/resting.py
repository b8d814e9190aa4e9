"""Where plays of several objectives come to rest, and what they satisfy there.

In an end component in which nothing is earned or paid a play can stay for ever. Of formulas that only promise
or only ban its memory says whether they are satisfied. Of the others (`G F a`, `F G b`, …) one policy inside
satisfies almost surely each of the sets whose conjunction is won there (`automata.winning`); whatever a play
does there, it satisfies one of these sets, or less. So the largest of them are all that matters: each is a
choice to stop.

From every state of such a component every other one is reached almost surely, at no reward and whatever
nature does, so one state stands for all of it: with their choices that lead out, and the stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from tightrope.errors import InputError
from tightrope.logic import formula as ltl
from tightrope.logic.formula import FALSE, TRUE, Formula
from tightrope.logic.strategy import Won, finite_memory_choices, towards
from tightrope.logic.translation import is_co_safe, is_safe, refuse_large
from tightrope.logic.winning import winning_states
from tightrope.model.graph.components import EndComponents, maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.policy_choices import FiniteMemoryChoices
from tightrope.model.product import Automaton, Letters, Product, ranges
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray

MOST_REPEATED = 5
"""Formulas about what happens for ever, whose sets are tried one by one."""


@dataclass(frozen=True, eq=False)
class Stop:
    """A way to rest in a component: `satisfied` of all formulas, and how the repeated ones are won."""

    component: int
    satisfied: tuple[bool, ...]
    won: Won | None


@dataclass(frozen=True, eq=False)
class Resting:
    """The `model` that is solved, and what its choices are: `own[c]` is a choice of the product, −1 − i the
    i-th stop; the last state is where plays have stopped. `place` is the state of the model for a product
    state."""

    product: Product
    components: EndComponents
    model: MDP | IntervalMDP
    own: OffsetArray
    place: OffsetArray
    found: list[Stop]

    @property
    def stops(self) -> int:
        return len(self.found)

    @property
    def satisfied(self) -> list[BoolArray]:
        """For every formula whether each stop satisfies it."""
        return [
            np.array(column, np.bool_)
            for column in zip(*(stop.satisfied for stop in self.found), strict=True)
        ]

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
            kept = np.flatnonzero(self.components.internal & members[structure.choice_state])[::-1]
            choice[structure.choice_state[kept]] = kept
            how = self.found[-1 - decided].won
            if how is not None:
                won.append(how)
        return finite_memory_choices(self.product, automaton, letters, choice, won)


def rest_of(
    model: MDP | IntervalMDP,
    product: Product,
    formulas: Sequence[Formula],
    lefts: Sequence[list[Formula]],
    letters: Letters,
    free: BoolArray,
) -> Resting:
    """`model` is the product with its probabilities, `lefts` what its memories leave of every formula, and
    `free` are the choices that earn and pay nothing."""
    components = maximal_end_components(Support.of(model), choices=free)
    found = _find_stops(model, product, formulas, lefts, letters, free, components)
    stopping = np.array([stop.component for stop in found], np.int64)
    smaller, own, place = _join_components(model, components, stopping)
    return Resting(product, components, smaller, own, place, found)


def _find_stops(
    model: MDP | IntervalMDP,
    product: Product,
    formulas: Sequence[Formula],
    lefts: Sequence[list[Formula]],
    letters: Letters,
    free: BoolArray,
    components: EndComponents,
) -> list[Stop]:
    repeated = [i for i, one in enumerate(formulas) if not is_co_safe(one) and not is_safe(one)]
    if len(repeated) > MOST_REPEATED:
        raise InputError(
            f"multi(…) takes up to {MOST_REPEATED} formulas about what happens for ever, such as G F a",
            hint="join some of them by &",
        )
    settled = [
        [left == TRUE if is_co_safe(one) else left != FALSE for left in rest]
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
                refuse_large(joint[0])
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
    """The model with one state for every component, a stop in each of `stopping`, and the state behind them;
    whose choices its own are, and where the states went."""
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
    taken, _ = ranges(structure.transition_start, out)
    certain = np.ones(len(stops) + 1)
    sizes = np.concatenate([np.diff(structure.transition_start)[out], certain.astype(np.int64)])
    successor = np.concatenate([place[structure.successor[taken]], np.full(len(certain), done)])
    order = np.argsort(owner, kind="stable")
    moved, _ = ranges(np.concatenate([[0], np.cumsum(sizes)]), order)
    built = Structure(
        choice_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=done + 1))]),
        transition_start=np.concatenate([[0], np.cumsum(sizes[order])]),
        successor=successor[moved].astype(np.int32),
        declared_mdp=True,
    )
    if isinstance(model, MDP):
        return MDP(built, np.concatenate([model.probability[taken], certain])[moved]), own[order], place
    ends = (np.concatenate([end[taken], certain])[moved] for end in (model.lower, model.upper))
    return IntervalMDP(built, *ends), own[order], place
