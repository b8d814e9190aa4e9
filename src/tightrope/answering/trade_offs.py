"""Several objectives at once: what one policy can achieve of all of them, with certified bounds.

Every objective is turned so that more is better. For weights w ≥ 0 one solve gives an upper bound U(w) on
Σ w·y over all policies, and a policy, whose objectives are then bounded one by one: a point y that it attains
at least. Mixtures of policies (drawn once, when a play begins) attain mixtures of points, and no policy lies
beyond w·y ≤ U(w); so points are an inner and weights an outer bound of what is achievable (Forejt,
Kwiatkowska, Parker, 2012). On interval models nature is against every objective on its own for points, and
against the sum for weights: what is said to be achieved holds whatever nature does, and what is said to be
impossible fails under some pick of nature.

Paths are safe or co-safe (`X F U G W R` without repetition), so what is achieved of them is settled by the
memory of their automata; rewards are total ones. A play may *stop* where it can stay for ever at no reward,
and then is worth what its memory says. Maximised rewards are sums of gains until then, minimised ones sums of
costs; both together have no order and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.automata.deterministic import Automaton, explored
from tightrope.automata.formula import FALSE, TRUE, Formula
from tightrope.automata.product import Letters, product_of, ranges
from tightrope.automata.translation import is_co_safe, is_safe, progression
from tightrope.errors import InputError
from tightrope.formats.controller import Controller, reached
from tightrope.formats.policy import Policy
from tightrope.model.graph.end_components import EndComponents, maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.solution import Solution

Solve = Callable[[MDP | IntervalMDP, Objective, Policy | None], Solution]


@dataclass(frozen=True, eq=False)
class Wish:
    """One objective: the probability of a `formula`, or a total `reward` (one number per choice)."""

    text: str
    is_maximised: bool
    formula: Formula | None = None
    reward: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Point:
    """What a policy attains at least of every objective, each turned so that more is better."""

    value: FloatArray
    policy: OffsetArray


class TradeOffs:
    """The objectives on one product, solved for any weights."""

    def __init__(
        self, model: MDP | IntervalMDP, wishes: Sequence[Wish], atoms: list[BoolArray], solve: Solve
    ):
        self.base, self.wishes, self._solve = model, wishes, solve
        rewards = [wish for wish in wishes if wish.reward is not None]
        self.counts_costs = any(not wish.is_maximised for wish in rewards)
        if self.counts_costs and any(wish.is_maximised for wish in rewards):
            raise InputError(
                "rewards that are to be large and rewards that are to be small do not go together in "
                "multi(…)",
                hint="ask for one of the two kinds beside probabilities",
            )
        if not Support.of(model).is_constant:
            raise InputError(
                "nature can cut transitions of this model (lower bounds of 0), and several objectives are "
                "answered where it cannot",
                hint="say that no transition vanishes: `assume_support`",
            )
        self.letters = Letters.of(atoms, model.states)
        parts = [
            None if wish.formula is None else progression(wish.formula, self.letters.bits) for wish in wishes
        ]
        self.automaton, states = _together([part[0] for part in parts if part is not None], self.letters)
        self.product = product_of(Support.of(model), self.letters, self.automaton, np.array([model.initial]))
        self.payoffs = _payoffs(wishes, [part[1] for part in parts if part is not None], states)
        self.model, self.own = self._with_stops()

    @property
    def count(self) -> int:
        return len(self.wishes)

    def upper(self, weights: FloatArray) -> tuple[float, Point]:
        """A bound on Σ w·y over all policies, and what the policy that was found attains."""
        total = sum(
            (w * part for w, part in zip(weights, self._parts, strict=True)), np.zeros(self.model.choices)
        )
        solution = self._solve(self.model, self._objective(total), None)
        policy = solution.policy
        if self.counts_costs:
            spared = sum(w for w, wish in zip(weights, self.wishes, strict=True) if wish.formula is not None)
            bound = float(np.nextafter(np.nextafter(spared, np.inf) - solution.lower[0], np.inf))
        else:
            bound = float(solution.upper[0])
        return bound, Point(np.array([self._attained(i, policy) for i in range(self.count)]), policy.choice)

    def controller(self, point: Point) -> Controller:
        """The policy of a point; where it stops it stays where nothing is earned or paid."""
        product, structure = self.product, self.product.structure
        own = self.own[point.policy[: structure.states]]
        stay = np.full(structure.states, -1, np.int64)
        kept = np.flatnonzero(self._resting.internal)
        stay[structure.choice_state[kept]] = kept
        choice = product.choice[np.where(own < 0, stay, own)]
        memory = product.memory.astype(np.int64)
        following = self.automaton.successor[memory, self.letters.letter[product.state]]
        state = product.state.astype(np.int64)
        found = Controller(self.base.structure, state, memory, choice, following.astype(np.int64))
        return reached(found, Support.of(self.base))

    def _attained(self, number: int, policy: Policy) -> float:
        solution = self._solve(self.model, self._objective(self._parts[number]), policy)
        if not self.counts_costs:
            return float(solution.lower[0])
        worst = float(solution.upper[0])
        return float(np.nextafter(1 - worst, -np.inf)) if self.wishes[number].formula is not None else -worst

    def _objective(self, reward: FloatArray) -> Objective:
        earned = RewardStructure(choice=reward)
        if not self.counts_costs:
            return Objective(ObjectiveKind.TOTAL, Direction.MAX, Direction.MIN, reward=earned)
        done = np.zeros(self.model.states, np.bool_)
        done[-1] = True
        return Objective(ObjectiveKind.REACH_REWARD, Direction.MIN, Direction.MAX, target=done, reward=earned)

    @cached_property
    def _running(self) -> list[FloatArray]:
        """The rewards of choices of the product; zero for probabilities."""
        nothing = np.zeros(self.product.structure.choices)
        return [nothing if w.reward is None else w.reward[self.product.choice] for w in self.wishes]

    @cached_property
    def _resting(self) -> EndComponents:
        """Where a play can stay for ever at no reward."""
        free = np.ones(self.product.structure.choices, np.bool_)
        for reward in self._running:
            free &= reward == 0
        return maximal_end_components(Support.of(self.product.model(self.base)), choices=free)

    @cached_property
    def _parts(self) -> list[FloatArray]:
        """What every choice of the model with stops gives to, or takes from, each objective."""
        found = []
        owner = self.model.structure.choice_state
        for wish, running, payoff in zip(self.wishes, self._running, self.payoffs, strict=True):
            part = np.where(self.own >= 0, running[np.maximum(self.own, 0)], 0.0)
            stops = (self.own < 0) & (owner < self.product.structure.states)
            if wish.formula is not None:
                gained = payoff[self.product.memory[owner[stops]]]
                gained = gained if wish.is_maximised else 1 - gained
                part[stops] = 1 - gained if self.counts_costs else gained
            found.append(part)
        return found

    def _with_stops(self) -> tuple[MDP | IntervalMDP, OffsetArray]:
        """The product with a choice to stop in resting places, and `done` behind; whose choices are the
        product's."""
        there = self.product.model(self.base)
        structure, states = there.structure, there.states
        stops = np.flatnonzero(self._resting.component >= 0)
        owner = np.concatenate([structure.choice_state, stops, [states]])
        own = np.concatenate([np.arange(structure.choices), np.full(len(stops) + 1, -1)])
        order = np.lexsort((own < 0, owner))
        sizes = np.concatenate([np.diff(structure.transition_start), np.ones(len(stops) + 1, np.int64)])
        taken, _ = ranges(np.concatenate([[0], np.cumsum(sizes)]), order)
        successor = np.concatenate([structure.successor, np.full(len(stops) + 1, states)])[taken]
        built = Structure(
            choice_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=states + 1))]),
            transition_start=np.concatenate([[0], np.cumsum(sizes[order])]),
            successor=successor.astype(np.int32),
            declared_mdp=True,
        )
        certain = np.ones(len(stops) + 1)
        if isinstance(there, MDP):
            return MDP(built, np.concatenate([there.probability, certain])[taken]), own[order]
        bounds = (np.concatenate([bound, certain])[taken] for bound in (there.lower, there.upper))
        return IntervalMDP(built, *bounds), own[order]


def _together(automata: list[Automaton], letters: Letters) -> tuple[Automaton, list[tuple[int, ...]]]:
    """Automata that read the same letters beside each other, and the states that theirs stand for."""
    place = {letter: number for number, letter in enumerate(letters.bits)}

    def step(states: tuple[int, ...], letter: int) -> tuple[int, ...]:
        return tuple(int(a.successor[q, place[letter]]) for a, q in zip(automata, states, strict=True))

    return explored((0,) * len(automata), letters.bits, step)


def _payoffs(
    wishes: Sequence[Wish], left: list[list[Formula]], states: list[tuple[int, ...]]
) -> list[FloatArray]:
    """For every objective the probability that is won where a play stays with a memory; 0 for rewards."""
    rest = iter(range(len(left)))
    found = []
    for wish in wishes:
        if wish.formula is None:
            found.append(np.zeros(len(states)))
            continue
        if not is_co_safe(wish.formula) and not is_safe(wish.formula):
            raise InputError(
                f"{wish.text}: in multi(…) a path is safe or co-safe, without repetition such as G F",
                hint="paths such as F a, a U b, G a, and their combinations",
            )
        number = next(rest)
        co_safe = is_co_safe(wish.formula)
        wins = [formula == TRUE if co_safe else formula != FALSE for formula in left[number]]
        found.append(np.array([float(wins[state[number]]) for state in states]))
    return found


def exact_point(point: FloatArray) -> list[Fraction]:
    """The numbers that doubles are; −∞ is what no mixture may use."""
    return [Fraction(float(value)) for value in point]
