"""Rewards of CTMCs in files: of states per unit of time, and of departures.

Our chains hold `earned` per state: Σ rate · reward, plus the state's own reward. Both conversions are exact
in expectation, which determines all values: `with_earnings` adds departure rewards at the exit rate,
`exit_rewards` gives the departure reward with the same expectation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.expressions import tabulate
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import FloatArray

_CANCELLED = Fraction(1, 2**40)


class ExitRates:
    """The exit rate of each state of a chain as a polynomial; equal rows are added up once."""

    def __init__(self, chain: ParametricCTMC):
        self._start, self._row = chain.transition_start.tolist(), chain.expression.tolist()
        self._polynomial = chain.expressions.polynomial
        self._known: dict[tuple[int, ...], Polynomial] = {}

    def __getitem__(self, state: int) -> Polynomial:
        row = tuple(sorted(self._row[self._start[state] : self._start[state + 1]]))
        if row not in self._known:
            self._known[row] = sum(map(self._polynomial, row), start=Polynomial({}))
        return self._known[row]


def with_earnings(
    chain: ParametricCTMC, rewards: Mapping[str, RewardStructure], per_time: bool
) -> ParametricCTMC:
    """The chain with rewards of files: of states per unit of time, of choices `per_time` or on leaving."""
    earned, states, exits = {}, {}, ExitRates(chain)
    nothing = np.zeros(chain.states)
    for name, reward in rewards.items():
        held, gained = (nothing if part is None else part for part in (reward.state, reward.choice))
        known: dict[tuple[float, float, Polynomial], Polynomial] = {}
        totals = []
        for state, (own, more) in enumerate(zip(held.tolist(), gained.tolist(), strict=True)):
            rate = Polynomial.constant(1) if per_time or not more else exits[state]
            if (own, more, rate) not in known:
                total = rate * Fraction(more) + Fraction(own)
                if abs(total.constant_term) < _CANCELLED * abs(Fraction(own)):
                    raise InputError(
                        f"the rewards '{name}' of state {state} and of its transitions cancel in float64",
                        hint="give one reward for both",
                    )
                known[own, more, rate] = total
            totals.append(known[own, more, rate])
        earned[name] = ParametricReward(name, *tabulate(chain.parameters.names, totals))
        states[name] = RewardStructure(held)
    structure = replace(chain.structure, rewards=states)
    return ParametricCTMC(structure, chain.expression, chain.expressions, chain.parameters, earned)


def exit_rewards(model: ParametricCTMC | CTMC) -> dict[str, RewardStructure]:
    """What states earn per unit of time, and where transitions earn, too, what leaving the state earns."""
    rewards: dict[str, RewardStructure] = {}
    for name, reward in model.structure.rewards.items():
        if isinstance(reward, ParametricReward):
            raise _refusal(name)
        held = np.zeros(model.states) if reward.state is None else reward.state
        if isinstance(model, CTMC):
            left: FloatArray = (model.earned[name] - held) / model.exit_rate
        else:
            left = _left(model, name, held)
        rewards[name] = RewardStructure(held, left if left.any() else None)
    return rewards


def _left(model: ParametricCTMC, name: str, held: FloatArray) -> FloatArray:
    left, earned, exits = np.zeros(model.states), model.earned.get(name), ExitRates(model)
    known: dict[tuple[int, float, Polynomial], float] = {}
    for state in range(model.states) if earned is not None else ():
        assert earned is not None
        key = int(earned.expression[state]), float(held[state]), exits[state]
        if key not in known:
            gained = earned.expressions.polynomial(key[0]) - Fraction(key[1])
            leading = next(iter(key[2].terms))
            ratio = gained.terms.get(leading, Fraction(0)) / key[2].terms[leading]
            if gained != key[2] * ratio:
                raise _refusal(name)
            known[key] = float(ratio)
        left[state] = known[key]
    return left


def _refusal(name: str) -> InputError:
    return InputError(
        f"the rewards '{name}' have parameters, or single transitions earn them whose rates have parameters: "
        "files have no place for that",
        hint="write the chain at a point (`at`)",
    )
