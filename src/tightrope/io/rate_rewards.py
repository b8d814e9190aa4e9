"""Rewards of CTMCs in files: of states per unit of time, and of departures.

Our chains hold `earned` per state: Σ rate · reward, plus the state's own reward. Both conversions are exact
in expectation, which determines all values: `with_earnings` adds departure rewards at the exit rate,
`exit_rewards` gives the departure reward with the same expectation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.expressions import ExpressionTable
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import FloatArray

_CANCELLED = Fraction(1, 2**40)


def with_earnings(
    chain: ParametricCTMC, rewards: dict[str, RewardStructure], flows: dict[str, FloatArray] | None = None
) -> ParametricCTMC:
    """The chain with rewards of files: what states earn per unit of time, what leaving them earns at their
    exit rates, and in `flows` what transitions earn per unit of time."""
    earned, states, rates_of = {}, {}, _rates_of(chain)
    nothing = np.zeros(chain.states)
    for name, reward in rewards.items():
        held, left = (nothing if part is None else part for part in (reward.state, reward.choice))
        table = ExpressionTable(chain.parameters.names)
        known: dict[tuple[float, float, float, tuple[int, ...]], int] = {}
        numbers = []
        flow = (flows or {}).get(name, nothing)
        for state, (own, leaving, gained) in enumerate(
            zip(held.tolist(), left.tolist(), flow.tolist(), strict=True)
        ):
            key = own, leaving, gained, rates_of(state) if leaving else ()
            if key not in known:
                total = _sum_of(chain, key[3]) * Fraction(leaving) + (Fraction(own) + Fraction(gained))
                _check_cancelling(total.constant_term, Fraction(own), name, state)
                known[key] = table.add(total)
            numbers.append(known[key])
        earned[name] = ParametricReward(name, *table.freeze(np.array(numbers, dtype=np.int32)))
        states[name] = RewardStructure(held)
    structure = replace(chain.structure, rewards=states)
    return ParametricCTMC(structure, chain.expression, chain.expressions, chain.parameters, earned)


def _check_cancelling(total: Fraction, held: Fraction, name: str, state: int) -> None:
    """Refuse what doubles cannot tell from 0, or from something else near it."""
    if abs(total) < _CANCELLED * abs(held):
        raise InputError(
            f"the rewards '{name}' of state {state} and of its transitions cancel in float64",
            hint="give one reward for both",
        )


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
    earned = model.earned.get(name)
    left = np.zeros(model.states)
    if earned is None:
        return left
    rates_of = _rates_of(model)
    known: dict[tuple[int, float, tuple[int, ...]], float] = {}
    for state in range(model.states):
        key = int(earned.expression[state]), float(held[state]), rates_of(state)
        if key not in known:
            gained = earned.expressions.polynomial(key[0]) - Polynomial.constant(Fraction(key[1]))
            exit_rate = _sum_of(model, key[2])
            leading = next(iter(exit_rate.terms))
            ratio = gained.terms.get(leading, Fraction(0)) / exit_rate.terms[leading]
            if gained != exit_rate * Polynomial.constant(ratio):
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


def _rates_of(chain: ParametricCTMC) -> Callable[[int], tuple[int, ...]]:
    start, expression = chain.transition_start.tolist(), chain.expression.tolist()
    return lambda state: tuple(expression[start[state] : start[state + 1]])


def _sum_of(chain: ParametricCTMC, row: tuple[int, ...]) -> Polynomial:
    return sum((chain.expressions.polynomial(e) for e in row), Polynomial({}))
