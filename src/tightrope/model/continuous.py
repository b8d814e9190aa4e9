"""Continuous time: Markov chains with rates, and Markov automata.

A state waits an exponential time with exit rate E(s) = Σ_t rate(t), then takes t with probability
rate(t)/E(s). There is one choice per state; self-loops count as events. State rewards are earned per unit of
time, transition rewards per event: with rate r and reward c, c·r per unit of time in expectation (`earned`).

A *Markov automaton* has Markovian states, which wait and jump, and states with immediate choices. Untimed
questions are answered on the MDP of jumps (`untimed`), where a Markovian state earns its reward for 1/exit on
average and the structure "time" that duration. Its numbers are the nearest float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tightrope.errors import InputError
from tightrope.model import numbers as door
from tightrope.model.expressions import Expressions, Signatures
from tightrope.model.mdp import MDP
from tightrope.model.numbers import Number, double, doubles
from tightrope.model.parameters import Parameters, Point
from tightrope.model.ranges import NOT_NEGATIVE, prove_ranges, ranges_over_box
from tightrope.model.structure import (
    Durations,
    ParametricReward,
    RewardStructure,
    Structure,
    Structured,
    freeze,
    frozen_array,
)
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Facts, remember

LARGEST_RATE = 1000
"""Parameters of rates lie in [0, LARGEST_RATE] where nothing else is said."""


def rate_box(names: tuple[str, ...]) -> Parameters:
    """The domain of parameters of rates of which nothing is said."""
    return Parameters.box(**dict.fromkeys(names, (0, LARGEST_RATE)))


@dataclass(frozen=True, eq=False, repr=False)
class ParametricCTMC(Structured):
    """`expression[t]` is the row of `expressions` that is the rate of transition t.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(lam=(0.5, 2))
    >>> (lam,) = parameters.symbols()
    >>> model = tr.build_ctmc_from_rows([(0, {1: 2 * lam}), (1, {0: 3})], parameters)
    >>> model.instantiate(lam=1).rate.tolist()
    [2.0, 3.0]
    """

    structure: Structure
    expression: IndexArray
    expressions: Expressions
    parameters: Parameters
    earned: Mapping[str, ParametricReward] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self, np.int32, "expression")
        object.__setattr__(self, "earned", MappingProxyType(dict(self.earned)))
        _check_chain(self.structure)
        if self.expression.shape != (self.transitions,):
            raise InputError(f"{len(self.expression)} rates for {self.transitions} transitions")
        self.parameters.refuse_empty()
        self.expressions.check_held("a rate")
        self._check_signs()

    def _check_signs(self) -> None:
        proof = prove_ranges(self.expressions, self.parameters, wanted=NOT_NEGATIVE)
        if proof.witness is not None:
            wrong = proof.witness.expression
            where = f"at {self.parameters.name_point(proof.witness.point) or 'every point'}"
        elif proof.unproved:
            wrong = proof.unproved[0]
            where = "somewhere on the domain (no proof was found that it is not)"
        else:
            return
        transition = int(np.argmax(self.expression == wrong))
        state = self.structure.state_name(int(self.structure.transition_choice[transition]))
        raise InputError(
            f"state {state}: the rate {self.expressions.text(wrong)} is negative {where}",
            hint="narrow the domain with `params` or `domain`, or fix the model",
        )

    def _facts_(self) -> Facts:
        table = self.expressions
        distinct = f"{len(table):,} distinct, {len(table.nonconstant):,} with parameters"
        domain = [("domain", self.parameters.text())] if self.parameters.names else []
        return [*domain, ("rates", distinct), *self.structure._facts_()]

    def instantiate(self, point: Point | None = None, /, **values: Number) -> CTMC:
        """Return the chain at a `point` of the domain (by name or in order), or at the keywords `values`."""
        exact = self.parameters.inside(point, values)
        earned = {name: reward.at(exact).per_choice(self.structure) for name, reward in self.earned.items()}
        return CTMC(
            self.structure.at_point(exact), self.expression, self.expressions.exact_values(exact), earned
        )

    @remember
    def hash(self) -> str:
        """Return the identity of structure, exact rates and domain."""
        texts = [self.expressions.text(row) for row in range(len(self.expressions))]
        exact = f"{texts}{self.parameters.text()}".encode() + self.expression.tobytes()
        earned = (
            name.encode() + b"".join(self.earned[name].identity_parts()) for name in sorted(self.earned)
        )
        return self.structure.identity(b"parametric ctmc", exact, *earned)


@dataclass(frozen=True, eq=False, repr=False)
class CTMC(Structured):
    """The rate of transition t is `exact[expression[t]]`; `earned` is per state and unit of time, among it
    "time" itself where the model has no such rewards.

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: "1/3"}), (1, {0: 2, 1: 1})]).instantiate()
    >>> chain.exit_rate.tolist(), tr.solve(chain, 'P=? [ X "init" ]').bounds
    ([0.3333333333333333, 3.0], (0.0, 0.0))
    """

    structure: Structure
    expression: IndexArray
    exact: RationalArray
    earned: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self, np.int32, "expression")
        _check_chain(self.structure)
        earned = {name: reward.per_choice(self.structure) for name, reward in self.structure.rewards.items()}
        earned.update((name, frozen_array(values, np.float64)) for name, values in self.earned.items())
        earned.setdefault(TIME, np.ones(self.states))
        object.__setattr__(self, "earned", MappingProxyType(earned))
        for rates in (self.exact, self.exit_exact):
            if (wrong := door.first_not_held(rates)) is not None:
                raise InputError(f"a rate: {door.why_not(rates[wrong])}")
        if np.less(self.exact.numerator, 0).any():
            raise InputError("a rate is negative")
        empty = np.flatnonzero(np.equal(self.exit_exact.numerator, 0)[self.signatures.of_choice])
        if len(empty):
            raise InputError(
                f"at this point nothing happens in state {self.structure.state_name(int(empty[0]))}: all its "
                "rates are 0",
                hint="give absorbing states a self-loop of their own, or look at a point with positive rates",
            )

    @cached_property
    def rate(self) -> FloatArray:
        """The float64 nearest to each rate."""
        return self.exact.to_float()[self.expression]

    @cached_property
    def signatures(self) -> Signatures:
        """The distinct rows of the rate matrix, by their rates."""
        return Signatures.of(self.transition_start, self.expression, len(self.exact))

    @cached_property
    def exit_exact(self) -> RationalArray:
        """The exit rate of every signature."""
        return self.exact.take(self.signatures.expression.astype(np.int64)).segment_sums(
            self.signatures.start[:-1]
        )

    @cached_property
    def exit_rate(self) -> FloatArray:
        """The exit rate of every state: the float64 nearest to it."""
        return self.exit_exact.to_float()[self.signatures.of_choice]

    @remember
    def hash(self) -> str:
        """Return the identity of the model."""
        earned = (name.encode() + self.earned[name].tobytes() for name in sorted(self.structure.rewards))
        return self.structure.identity(b"ctmc", self.rate.tobytes(), *earned)


@dataclass(frozen=True, eq=False, repr=False)
class IntervalCTMC(Structured):
    """The rate of transition t lies in [lower[e], upper[e]] for its expression e = `expression[t]`.

    Within a state transitions with one expression have one rate. `earned` are the lowest and the highest
    rewards per state and unit of time.

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: (1, 2)})], labels={"end": [1]})
    >>> low, high = (tr.solve(chain, f'P{way}=? [ F<=1 "end" ]').bounds for way in ("min", "max"))
    >>> round(low[0], 4), round(high[1], 4)
    (0.6321, 0.8647)
    """

    structure: Structure
    expression: IndexArray
    lower: FloatArray
    upper: FloatArray
    earned: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self, np.int32, "expression")
        freeze(self, np.float64, "lower", "upper")
        earned = {name: tuple(frozen_array(a) for a in pair) for name, pair in self.earned.items()}
        earned.setdefault(TIME, (np.ones(self.states), np.ones(self.states)))
        object.__setattr__(self, "earned", MappingProxyType(earned))
        _check_chain(self.structure)
        wrong = np.flatnonzero(~((self.lower >= 0) & (self.lower <= self.upper) & np.isfinite(self.upper)))
        if len(wrong):
            low, high = self.lower[wrong[0]], self.upper[wrong[0]]
            raise InputError(f"[{low:.12g}, {high:.12g}] is not an interval of rates")

    def _facts_(self) -> Facts:
        known = int(np.count_nonzero(self.lower == self.upper))
        return [("rates", f"{len(self.lower):,} distinct, {known:,} known"), *self.structure._facts_()]

    @remember
    def hash(self) -> str:
        arrays = self.expression, self.lower, self.upper
        return self.structure.identity(b"interval ctmc", *(array.tobytes() for array in arrays))


Continuous = ParametricCTMC | CTMC | IntervalCTMC
"""Any model in continuous time."""


def over_box(model: ParametricCTMC, lower: Sequence[Fraction], upper: Sequence[Fraction]) -> IntervalCTMC:
    """The interval chain of all points of a box of the parameters, with bounds rounded outward."""
    low, high = ranges_over_box(model.expressions, lower, upper)
    constant = model.expressions.is_constant
    if constant.any():
        exact = model.expressions.exact_values(tuple(Fraction(0) for _ in model.parameters.names))
        low[constant], high[constant] = exact.to_float_down()[constant], exact.to_float_up()[constant]
    earned = {}
    for name, reward in model.earned.items():
        least, most = ranges_over_box(reward.expressions, lower, upper)
        earned[name] = (least[reward.expression], most[reward.expression])
    return IntervalCTMC(model.structure, model.expression, np.maximum(low, 0.0), high, earned)


def _check_chain(structure: Structure) -> None:
    if structure.choices != structure.states:
        raise InputError("a continuous-time Markov chain has one choice per state")


TIME = "time"
"""The reward structure that earns the duration of every visit."""


@dataclass(frozen=True, eq=False, repr=False)
class MarkovAutomaton(Structured):
    """`exit_rate[s]` is 0 where choices are immediate; state rewards are earned per unit of time.

    >>> import numpy as np
    >>> import tightrope as tr
    >>> rows = [(0, "a", {1: 1}), (0, "b", {0: 0.5, 1: 0.5}), (1, "", {1: 1})]
    >>> mdp = tr.build_from_rows(rows).instantiate()
    >>> automaton = tr.MarkovAutomaton(mdp.structure, mdp.probability, np.array([0.0, 4.0]))
    >>> automaton.untimed.rewards["time"].choice.tolist()
    [0.0, 0.0, 0.25]
    """

    structure: Structure
    probability: FloatArray
    exit_rate: FloatArray

    def __post_init__(self) -> None:
        freeze(self, np.float64, "probability", "exit_rate")
        if self.exit_rate.shape != (self.states,):
            raise InputError(f"{len(self.exit_rate)} exit rates for {self.states} states")
        wrong = np.flatnonzero(~((self.exit_rate >= 0) & np.isfinite(self.exit_rate)))
        if len(wrong):
            state, rate = self.structure.state_name(int(wrong[0])), self.exit_rate[wrong[0]]
            raise InputError(f"the exit rate of state {state} is {rate:g}, not a number of at least 0")
        several = np.flatnonzero((self.exit_rate > 0) & (np.diff(self.structure.choice_start) > 1))
        if len(several):
            raise InputError(
                f"state {self.structure.state_name(int(several[0]))} waits, and has several choices: they "
                "are immediate, so that it cannot wait",
                hint="give it the exit rate 0, and leave out its Markovian transitions",
            )

    @staticmethod
    def of_rates(structure: Structure, number: RationalArray, waiting: BoolArray) -> MarkovAutomaton:
        """From the number of every transition: a rate in states that are `waiting`, else a probability."""
        owner = structure.transition_choice
        rated = waiting[structure.choice_state[owner]]
        total = number.segment_sums(structure.transition_start[:-1])
        ones = RationalArray.constant(1, structure.choices)
        rate = RationalArray.where(waiting[structure.choice_state], total, ones)
        exits = np.zeros(structure.states)
        choice = structure.choice_start[:-1][waiting]
        exits[waiting] = doubles(total.take(choice), "an exit rate")
        share = RationalArray.where(rated, number / rate.take(owner.astype(np.int64)), number)
        return MarkovAutomaton(structure, doubles(share, "a probability"), exits)

    @property
    def is_markovian(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which states wait."""
        return self.exit_rate > 0

    def _facts_(self) -> Facts:
        waiting = int(np.count_nonzero(self.exit_rate))
        return [("waiting", f"{waiting:,} of {self.states:,} states"), *self.structure._facts_()]

    @cached_property
    def spent(self) -> FloatArray:
        """How long every choice takes on average."""
        duration = np.array([double(1 / Fraction(r)) if r else 0.0 for r in self.exit_rate.tolist()])
        return duration[self.structure.choice_state]

    @cached_property
    def untimed(self) -> MDP:
        """The MDP of jumps, with rewards per visit and the durations of visits as "time"."""
        structure = self.structure
        duration = [1 / Fraction(rate) if rate else Fraction(0) for rate in self.exit_rate.tolist()]
        rewards = {
            name: RewardStructure(choice=self._per_visit(reward, duration))
            for name, reward in structure.rewards.items()
        }
        rewards.setdefault(TIME, Durations(choice=self.spent))
        return MDP(replace(structure, rewards=rewards), self.probability)

    def _per_visit(self, reward: RewardStructure, duration: list[Fraction]) -> FloatArray:
        choices = self.structure.choices
        per_time = np.zeros(self.states) if reward.state is None else reward.state
        at_once = np.zeros(choices) if reward.choice is None else reward.choice
        held = [Fraction(r) * d for r, d in zip(per_time.tolist(), duration, strict=True)]
        pairs = zip(self.structure.choice_state.tolist(), at_once.tolist(), strict=True)
        return np.array([double(held[state] + Fraction(gained)) for state, gained in pairs])

    @remember
    def hash(self) -> str:
        """Return the identity of the model."""
        arrays = self.probability, self.exit_rate
        return self.structure.identity(b"markov automaton", *(array.tobytes() for array in arrays))
