"""The product of a model with its problem's automaton: a temporal question becomes one of reaching.

A product state (s, q) is the model in s with the automaton in q before it reads the letter of s. Targets are

* states with a `settled` memory, where every word is accepted. Where the automaton accepts a run only by
  settling, there are no others, for any agent and any nature;
* otherwise, for every pair, the largest set Z without what is avoided, in which the agent can stay and from
  all of which it can reach each of the sets that are to be repeated, without leaving Z.

The second kind needs a maximiser and constant support: nature either cannot take a transition or must give it
positive probability. Then the largest probability of an accepted run is that of reaching Z, against any
nature (`certificate-format.md`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import spend
from tightrope_check.nature import Boxes, Graph, rows_of
from tightrope_check.problem import (
    Certificate,
    CertifiedObjective,
    CertifiedProblem,
    Claim,
    ValueHints,
    misfit,
)
from tightrope_check.verdict import Check

MOST_ATOMS = 30
MOST_MARKS = 200_000
"""Memories times pairs and marks; there are at most a tenth as many memories."""

MOST_PAIRS = 2**28
"""Of a state and a memory."""


@dataclass(frozen=True, eq=False)
class RabinAutomaton:
    """A deterministic automaton that reads the letter of every state that is visited, beginning in 0.

    `atom[i, s]`: state formula i holds in s. Letters are the columns of it that occur, in the order of the
    numbers Σ atom[i, s]·2^i. Reading letter l in memory q, it goes on in successor[q, l]. It accepts a run
    that for some k marks avoided[k] finitely often, and every repeated[j] with pair[j] = k infinitely often.
    `believed`: another program made it of the formula.
    """

    atom: BoolArray = fields.truths("atoms", "STATES")
    successor: OffsetArray = fields.integers("memories", "letters")
    avoided: BoolArray = fields.truths("pairs", "memories", "letters")
    pair: OffsetArray = fields.integers("marks")
    repeated: BoolArray = fields.truths("marks", "memories", "letters")
    believed: bool = fields.truth()

    @cached_property
    def letters(self) -> OffsetArray:
        """The number of every state's letter."""
        weight = np.left_shift(1, np.arange(len(self.atom)))
        numbers: OffsetArray = np.unique(weight @ self.atom, return_inverse=True)[1].reshape(-1)
        return numbers

    @property
    def memories(self) -> int:
        return len(self.successor)

    def trouble(self) -> str | None:
        marked = self.memories * (len(self.avoided) + len(self.repeated))
        pairs = self.atom.shape[1] * self.memories
        if len(self.atom) > MOST_ATOMS or pairs > MOST_PAIRS or max(marked, 10 * self.memories) > MOST_MARKS:
            return "the automaton is larger than this program checks"
        if self.successor.size == 0 or self.successor.max() >= self.memories:
            return "the automaton leads nowhere"
        if self.letters.max() + 1 != self.successor.shape[1]:
            return "the automaton does not read the letters that occur"
        return "a mark of no pair" if self.pair.max(initial=-1) >= len(self.avoided) else None


@dataclass(frozen=True, eq=False)
class AutomatonProduct:
    """A graph in which `target` is to be reached; `choice` and `transition` are the model's behind its own.
    `key` of a product state is s·memories + q, rising."""

    graph: Graph
    target: BoolArray
    check: Check
    key: OffsetArray
    choice: OffsetArray
    transition: OffsetArray

    def lift(self, boxes: Boxes) -> Boxes:
        """The boxes of the model at the product's choices."""
        return replace(
            boxes,
            transition_start=self.graph.transition_start,
            successor=self.graph.successor,
            label=boxes.label[self.transition],
            single=boxes.single[self.choice],
        )


def in_product(certificate: Certificate, boxes: Boxes) -> tuple[Certificate, Boxes, Check]:
    """The certificate as one about reaching, in the product of model and automaton."""
    problem, values, claims = certificate.problem, certificate.values, certificate.claims
    most = max(0 if hints.lower is None else len(hints.lower) for hints in values)
    graph, weight = problem.graph, given_weights(problem, claims[0])
    if weight is not None:
        graph, boxes, weight = under_policy(graph, boxes, weight)
    product = product_of(graph, problem.automaton, problem.objective.agent, boxes, most, weight is not None)
    objective = replace(problem.objective, kind="UNTIL", target=product.target)
    problem = replace(problem, graph=product.graph, objective=objective, automaton=None)
    if weight is not None:
        claims = (replace(claims[0], policy="randomised", choice=None, weight=weight[product.choice]),)
    for claim, hints in zip(claims, values, strict=True):
        if trouble := misfit(problem, claim, hints):
            raise ValueError(trouble)
    return replace(certificate, problem=problem, claims=claims), product.lift(boxes), product.check


def given_weights(problem: CertifiedProblem, claim: Claim) -> FloatArray | None:
    """The weights of a given policy at the model's choices; None where the claim is about no such policy."""
    if claim.name != "given policy":
        return None
    if trouble := misfit(replace(problem, objective=NOWHERE), claim, ValueHints()):
        raise ValueError(trouble)
    return claim.weights(problem.graph.choices)


NOWHERE = CertifiedObjective("UNTIL", "MAX", "ANY", False, 0, 0, target=np.zeros(0, dtype=np.bool_))
"""An objective of no steps, which needs no vectors."""


def under_policy(model: Graph, boxes: Boxes, weight: FloatArray) -> tuple[Graph, Boxes, FloatArray]:
    """Graph, boxes and weights of the choices that a policy takes."""
    used = np.flatnonzero(weight > 0)
    first = np.searchsorted(used, model.choice_start)
    start, transition = rows_of(model.transition_start, used)
    graph = Graph(first, start, model.successor[transition], model.initial)
    return graph, boxes.only(used), weight[used]


def product_of(
    model: Graph, automaton: RabinAutomaton, agent: str, boxes: Boxes, most: int, chain: bool = False
) -> AutomatonProduct:
    """What the model's initial state reaches, of at most so many states; `chain`: all choices of a state are
    taken."""
    key, reached = np.array([model.initial * automaton.memories]), 0
    seen = np.zeros(model.states * automaton.memories, dtype=np.bool_)
    while len(key):
        seen[key], reached = True, reached + len(key)
        if reached > most:
            raise ValueError("the vectors are shorter than the product of model and automaton")
        behind = _step(model, automaton, key)[-1]
        spend("the product with the automaton", 4000 + 20 * len(key) + 10 * len(behind))
        key = np.unique(behind[~seen[behind]])
    key = np.flatnonzero(seen)
    choice_start, choice, start, transition, behind = _step(model, automaton, key)
    first = int(np.searchsorted(key, model.initial * automaton.memories))
    graph = Graph(choice_start, start, np.searchsorted(key, behind), first)
    memory, letter = key % automaton.memories, automaton.letters[key // automaton.memories]
    label, settled = boxes.label[transition], _settled(automaton)
    possible, target = boxes.upper[label] > 0, settled[memory]
    check = Check("the automaton settles what it accepts", True, f"a product of {len(key)} states")
    if not _only_settles(automaton, settled):
        if agent != "MAX" and not chain:
            raise ValueError("only a maximum is that of reaching what such an automaton accepts")
        cut = possible & ~(boxes.lower[label] > 0)
        cut[cut] = boxes.bounds(label[cut])[0] <= 0  # a positive number may be too small for a double
        check = Check.everywhere("no transition of the product can vanish", cut, "transition")
        one = Graph(np.arange(len(key) + 1), start[choice_start], graph.successor, first)
        arena = _Arena(one if chain else graph, possible)
        for number, avoided in enumerate(automaton.avoided):
            marks = [mark[memory, letter] for mark in automaton.repeated[automaton.pair == number]]
            target |= arena.won(~avoided[memory, letter], marks)
    return AutomatonProduct(graph, target, check, key, choice, transition)


def _step(graph: Graph, automaton: RabinAutomaton, key: OffsetArray) -> tuple[OffsetArray, ...]:
    """Offsets and numbers of the choices of pairs, of their transitions, and the pairs these lead to."""
    state, memory = key // automaton.memories, key % automaton.memories
    choice_start, choice = rows_of(graph.choice_start, state)
    start, transition = rows_of(graph.transition_start, choice)
    following = automaton.successor[memory, automaton.letters[state]]
    following = np.repeat(np.repeat(following, np.diff(choice_start)), np.diff(start))
    behind = graph.successor[transition] * automaton.memories + following
    return choice_start, choice, start, transition, behind


def _settled(automaton: RabinAutomaton) -> BoolArray:
    """Memories from which every word is accepted: for one pair, all there is from now on is marked well."""
    result = np.zeros(automaton.memories, dtype=np.bool_)
    for number, avoided in enumerate(automaton.avoided):
        good = ~avoided & automaton.repeated[automaton.pair == number].all(axis=0)
        inside = good.all(axis=1)
        while not np.array_equal(inside, closed := inside & inside[automaton.successor].all(axis=1)):
            spend("the automaton", 1000 + automaton.successor.size // 4)
            inside = closed
        result |= inside
    return result


def _only_settles(automaton: RabinAutomaton, settled: BoolArray) -> bool:
    """Whether only settled runs are accepted: every pair repeats something that is marked nowhere else."""
    bound = automaton.pair[~np.any(automaton.repeated[:, ~settled], axis=(1, 2))]
    return set(range(len(automaton.avoided))) <= set(bound.tolist())


class _Arena:
    """A product's graph, backwards: who leads into a set?"""

    def __init__(self, graph: Graph, possible: BoolArray):
        self.graph, self.possible = graph, possible
        self.owner = np.repeat(np.arange(graph.states), np.diff(graph.choice_start))
        self.of_choice = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start))
        self.order = np.argsort(graph.successor, kind="stable")
        self.start = np.searchsorted(graph.successor[self.order], np.arange(graph.states + 1))

    def choices_into(self, states: OffsetArray, among: BoolArray) -> OffsetArray:
        """Choices `among` some that can lead to one of the states."""
        into = self.order[rows_of(self.start, states)[1]]
        spend("what the automaton accepts", 2000 + 4 * len(into))
        choices = np.unique(self.of_choice[into[self.possible[into]]])
        return choices[among[choices]]

    def won(self, inside: BoolArray, marks: list[BoolArray]) -> BoolArray:
        """The largest set within `inside` where he can stay and, from all of it, reach each of the marks."""
        inside, stays = inside.copy(), np.ones(self.graph.choices, dtype=np.bool_)
        left, out = np.diff(self.graph.choice_start), np.flatnonzero(~inside)
        while True:
            while len(out):  # who has no choice left that stays is out, too
                inside[out] = False
                gone = self.choices_into(out, stays)
                stays[gone] = False
                np.subtract.at(left, self.owner[gone], 1)
                out = np.unique(self.owner[gone])
                out = out[inside[out] & (left[out] == 0)]
            spend("what the automaton accepts", len(inside) * (1 + len(marks)))
            lost = np.zeros(len(inside), dtype=np.bool_)
            for mark in marks:
                reaching = inside & mark
                front = np.flatnonzero(reaching)
                while len(front):
                    front = np.unique(self.owner[self.choices_into(front, stays)])
                    front = front[inside[front] & ~reaching[front]]
                    reaching[front] = True
                lost |= inside & ~reaching
            if not lost.any():
                return inside
            out = np.flatnonzero(lost)
