"""Chains in continuous time written in Python: from a function, or from rows.

    parameters = Parameters.box(lam=(0.01, 1), mu=(0.1, 10))
    lam, mu = parameters.symbols()

    def rates(up):
        return {k: rate for k, rate in ((up - 1, lam * up), (up + 1, mu)) if 0 <= k <= 3}

    farm = build_ctmc_from_function(3, rates, parameters, labels={"down": lambda up: up == 0})

A rate is a number of at least 0, text ("1/3"), a polynomial in the parameters, or a pair (lower, upper); one
pair anywhere makes the chain one of intervals. Rates of 0 are dropped, and a state that nothing leaves gets a
self-loop with rate 1 and the label "deadlock".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.errors import InputError, check_type
from tightrope.model.builder import Skeleton, State, check_arguments, describe_states, explore, is_zero
from tightrope.model.built_rewards import Amount, BySuccessor, Named
from tightrope.model.continuous import IntervalCTMC, ParametricCTMC, rate_box
from tightrope.model.door import double, doubles
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.numbers import Number
from tightrope.model.own_states import OwnStates
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial, as_polynomial
from tightrope.model.rational_function import RationalFunction
from tightrope.model.rewards import ParametricReward, RewardStructure
from tightrope.model.structure import UNLABELLED, Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rationals import RationalArray

Rate = Polynomial | Number | tuple[Number, Number]
RateRow = tuple[int, Mapping[int, Rate]]
"""(state, {successor: rate}); a state has one row at most."""


def build_ctmc_from_function(
    initial: State,
    rates: Callable[[State], Mapping[State, Rate]],
    parameters: Parameters | None = None,
    *,
    labels: Mapping[str, Callable[[State], bool]] | None = None,
    state_rewards: Mapping[str, Callable[[State], Amount]] | None = None,
    transition_rewards: Mapping[str, Callable[[State, State], Amount]] | None = None,
    variables: Callable[[State], Mapping[str, int | bool]] | None = None,
) -> ParametricCTMC | IntervalCTMC:
    """Explore from `initial`; `rates(state)` gives {next state: rate}.

    States are any hashable values; a NamedTuple's fields become the model's state variables, others say
    theirs through `variables`. State rewards are earned per unit of time, those of (state, next state)
    whenever that happens; they add up and may have parameters.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(lam=(0.01, 1), mu=(0.1, 10))
    >>> lam, mu = parameters.symbols()
    >>> def rates(up):
    ...     return {0: {1: mu}, 1: {0: lam, 2: mu}, 2: {1: 2 * lam}}[up]
    >>> farm = tr.build_ctmc_from_function(2, rates, parameters, labels={"down": lambda up: up == 0})
    >>> low, high = tr.answer(farm.instantiate(lam=0.1, mu=1), 'P=? [ F<=10 "down" ]').bounds
    >>> round(low, 4), round(high, 4)
    (0.1337, 0.1337)
    """
    states, found = explore(initial, lambda state: {UNLABELLED: rates(state)})
    rows = [(at, row) for at, _, row in found]
    return build_ctmc_from_rows(
        rows,
        parameters,
        transition_rewards={
            name: [{s: reward(states[at], states[s]) for s in row} for at, row in rows]
            for name, reward in (transition_rewards or {}).items()
        },
        **describe_states(states, labels, state_rewards, variables),
    )


def build_ctmc_from_rows(
    rows: Iterable[RateRow],
    parameters: Parameters | None = None,
    *,
    states: int | None = None,
    initial: int = 0,
    labels: Mapping[str, Sequence[int]] | None = None,
    state_rewards: Named | None = None,
    transition_rewards: BySuccessor | None = None,
    valuations: Mapping[str, Sequence[int | bool]] | None = None,
    own_states: Sequence[Hashable] | None = None,
) -> ParametricCTMC | IntervalCTMC:
    """From explicit rows in any order of states; labels list their states.

    `transition_rewards` are given in the order of the rows, {successor: reward} for each. With intervals of
    rates, rewards are numbers.

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: "1/2"})], labels={"on": [1]})
    >>> low, high = tr.answer(chain, 'S=? [ "on" ]').bounds
    >>> round(low, 6), round(high, 6)
    (0.8, 0.8)
    """
    check_arguments(parameters, initial, labels, state_rewards, None, transition_rewards, valuations)
    if states is not None:
        check_type("states", states, int, "a number of states")
    if own_states is not None:
        check_type("own_states", own_states, Sequence, "a list of states")
    listed = _list_rows(rows)
    reached = [s for state, row in listed for s in (state, *row)]
    total = states if states is not None else 1 + max(reached, default=-1)
    of_state = {state: number for number, (state, _) in enumerate(listed)}
    skeleton, rates, stuck = Skeleton(), list[Rate](), list[int]()
    earning: list[Mapping[str, Mapping[int, Amount]]] = []
    for state in range(total):
        number = of_state.get(state)
        given = {} if number is None else {s: r for s, r in listed[number][1].items() if not is_zero(r)}
        stuck += [] if given else [state]
        skeleton.add(state, UNLABELLED, list(given) or [state])
        rates.extend(given.values() or [1])
        named = (transition_rewards or {}).items()
        earning.append({} if number is None else {name: values[number] for name, values in named})
    structure = skeleton.structure(
        total,
        initial,
        {"deadlock": stuck, **(labels or {})},
        valuations or {},
        OwnStates(range(total) if own_states is None else own_states),
    )
    earned = _Earned(structure, state_rewards or {}, earning)
    if any(isinstance(rate, tuple) for rate in rates):
        return _interval_chain(structure, rates, earned)
    parameters = parameters or rate_box(())
    exact = [_polynomial(rate) for rate in rates]
    table = ExpressionTable(parameters.names)
    expressions, expression = table.freeze(np.array([table.add(rate) for rate in exact], dtype=np.int32))
    names, rewards = earned.names, dict[str, ParametricReward]()
    for name in names:
        flows = [rate * gained for rate, gained in zip(exact, earned.gained(name), strict=True)]
        rewards[name] = _as_reward(name, earned.per_time(name, flows), parameters.names)
    return ParametricCTMC(
        replace(structure, rewards={name: earned.of_states(name, parameters.names) for name in names}),
        expression,
        expressions,
        parameters,
        rewards,
    )


def _list_rows(rows: Any) -> list[RateRow]:
    check_type("rows", rows, Iterable, "a list of rows")
    listed = list(rows)
    seen: set[int] = set()
    for row in listed:
        if not isinstance(row, tuple | list) or len(row) != 2 or not isinstance(row[1], Mapping):
            raise InputError(
                f"{row!r} is no row of a chain in continuous time", hint="write (state, {successor: rate})"
            )
        check_type("rows", row[0], int | np.integer, "a row that begins with the number of a state")
        if row[0] in seen:
            raise InputError(f"state {row[0]} has two rows", hint="write all its rates in one row")
        seen.add(row[0])
    return listed


class _Earned:
    """What states earn per unit of time, and what transitions earn when they happen."""

    def __init__(
        self,
        structure: Structure,
        states: Named,
        transitions: Sequence[Mapping[str, Mapping[int, Amount]]],
    ):
        self.structure, self._states, self._transitions = structure, states, transitions
        named = {name for row in transitions for name in row}
        self.names = [*states, *sorted(named - set(states))]
        for name, values in states.items():
            if len(values) != structure.states:
                raise InputError(
                    f"reward structure '{name}' has {len(values)} rewards, not {structure.states}"
                )
        for state, row in enumerate(transitions):
            first, last = structure.transition_start[state : state + 2]
            for name, gained in row.items():
                if unknown := set(gained) - set(structure.successor[first:last].tolist()):
                    raise InputError(
                        f"the rewards '{name}' name the successor {min(unknown)} of state {state}, which "
                        "does not lead there"
                    )

    def held(self, name: str) -> list[Polynomial]:
        """What states earn alone."""
        values = self._states.get(name)
        return [Polynomial({})] * self.structure.states if values is None else [*map(as_polynomial, values)]

    def of_states(self, name: str, names: tuple[str, ...]) -> RewardStructure:
        held = self.held(name)
        if all(value.is_constant for value in held):
            return RewardStructure(state=np.array([double(value.constant_term) for value in held]))
        return _as_reward(name, held, names)

    def gained(self, name: str) -> list[Polynomial]:
        """What every transition earns when it happens."""
        pairs = zip(self.structure.transition_choice.tolist(), self.structure.successor.tolist(), strict=True)
        return [as_polynomial(self._transitions[state].get(name, {}).get(s, 0)) for state, s in pairs]

    def per_time(self, name: str, flows: Sequence[Polynomial]) -> list[Polynomial]:
        """What states earn per unit of time; `flows` are rate times reward of every transition."""
        totals = self.held(name)
        for state, flow in zip(self.structure.transition_choice.tolist(), flows, strict=True):
            totals[state] = totals[state] + flow
        return totals


def _as_reward(name: str, values: Sequence[Polynomial], names: tuple[str, ...]) -> ParametricReward:
    table = ExpressionTable(names)
    return ParametricReward(name, *table.freeze(np.array([table.add(v) for v in values], dtype=np.int32)))


def _interval_chain(structure: Structure, rates: Sequence[Rate], earned: _Earned) -> IntervalCTMC:
    """Bounds rounded outward; every transition has its own rate within its interval."""
    pairs = [rate if isinstance(rate, tuple) else (rate, rate) for rate in rates]
    ends = [[_constant(_polynomial(pair[side]), "rates") for pair in pairs] for side in (0, 1)]
    rewards, spans = {}, {}
    for name in earned.names:
        held = [_constant(value, "rewards") for value in earned.held(name)]
        rewards[name] = RewardStructure(state=np.array([double(value) for value in held]))
        gained = [_constant(value, "rewards") for value in earned.gained(name)]
        flows = [sorted((low * g, high * g)) for low, high, g in zip(*ends, gained, strict=True)]
        least, most = (
            [value.constant_term for value in earned.per_time(name, [as_polynomial(f[side]) for f in flows])]
            for side in (0, 1)
        )
        spans[name] = (_round(least, False), _round(most, True))
    own = np.arange(len(rates), dtype=np.int32)
    structure = replace(structure, rewards=rewards)
    return IntervalCTMC(structure, own, _round(ends[0], False), _round(ends[1], True), spans)


def _round(values: Sequence[Fraction], upwards: bool) -> FloatArray:
    exact = RationalArray.from_fractions(list(values))
    doubles(exact)
    return exact.to_float_up() if upwards else exact.to_float_down()


def _polynomial(rate: Any) -> Polynomial:
    if isinstance(rate, RationalFunction):
        raise InputError("a rate is a number or a polynomial in the parameters, not a quotient")
    return as_polynomial(rate)


def _constant(value: Polynomial, what: str) -> Fraction:
    if not value.is_constant:
        raise InputError(f"a chain of intervals cannot have parameters in its {what}")
    return value.constant_term
