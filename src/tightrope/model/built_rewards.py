"""Rewards of models that are built in Python: numbers or polynomials, of states, choices and transitions.

A choice earns what its state, itself and on average its successors earn. Where that has parameters, the
reward structure is one of polynomials (`ParametricReward`); where none is in it, it is one of numbers.
Rewards that differ by successor make the expectation Σ p·r, a polynomial wherever p or r has parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.errors import InputError
from tightrope.model import door
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.numbers import Number, exact
from tightrope.model.polynomial import Polynomial, as_polynomial
from tightrope.model.rational_function import Function, RationalFunction
from tightrope.model.rewards import ParametricReward, RewardStructure
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray

Amount = Number | Polynomial
Named = Mapping[str, Sequence[Amount]]
BySuccessor = Mapping[str, Sequence[Mapping[int, Amount]]]
"""For every choice {successor: reward}; a successor that is not named earns nothing."""


def with_rewards(
    structure: Structure,
    names: tuple[str, ...],
    states: Named,
    choices: Named,
    successors: BySuccessor,
    probabilities: Sequence[Function] | None,
) -> Structure:
    """The structure with these rewards; `probabilities` of its transitions, None where they are intervals."""
    found: dict[str, RewardStructure] = {}
    for name in {**states, **choices, **successors}:
        own, chosen = states.get(name), choices.get(name)
        if name not in successors and not _has_parameters(own) and not _has_parameters(chosen):
            found[name] = RewardStructure(_floats(own), _floats(chosen))
            _check_totals(structure, name, own, chosen)
            continue
        if probabilities is None:
            raise InputError(
                f"the rewards '{name}' have parameters or differ by successor, and the model has intervals: "
                "what a choice earns is then no number",
                hint="give rewards of states and choices, as numbers",
            )
        found[name] = _polynomials(structure, names, name, own, chosen, successors.get(name), probabilities)
    return replace(structure, rewards=found)


def _polynomials(
    structure: Structure,
    names: tuple[str, ...],
    name: str,
    states: Sequence[Amount] | None,
    choices: Sequence[Amount] | None,
    successors: Sequence[Mapping[int, Amount]] | None,
    probabilities: Sequence[Function],
) -> RewardStructure:
    sizes = (structure.states, structure.choices, structure.choices)
    for given, size in zip((states, choices, successors), sizes, strict=True):
        if given is not None and len(given) != size:
            raise InputError(f"reward structure '{name}' has {len(given)} rewards, not {size}")
    table = ExpressionTable(names)
    base: list[Polynomial] = []
    for choice, state in enumerate(structure.choice_state.tolist()):
        amount = Polynomial({})
        for given, place in ((states, state), (choices, choice)):
            if given is not None:
                amount = amount + as_polynomial(given[place])
        base.append(amount)
    if successors is None:
        expressions, rows = table.freeze(np.array([table.add(amount) for amount in base], dtype=np.int32))
        return ParametricReward(name, expressions, rows)
    whole: list[int] = []
    single: list[int] = []
    for choice, amount in enumerate(base):
        first, last = (int(structure.transition_start[choice + i]) for i in (0, 1))
        reached = structure.successor[first:last].tolist()
        unknown = set(successors[choice]) - set(reached)
        if unknown:
            raise InputError(
                f"the rewards '{name}' name the successor {min(unknown)} of {structure.choice_name(choice)}, "
                "which does not lead there"
            )
        total: Function = Polynomial({})
        for transition, successor in enumerate(reached, start=first):
            earned = amount + as_polynomial(successors[choice].get(successor, 0))
            single.append(table.add(earned))
            total = total + probabilities[transition] * earned
        if isinstance(total, RationalFunction):
            raise InputError(
                f"the rewards '{name}' differ by successor at {structure.choice_name(choice)}, whose "
                "probabilities are quotients: what it earns on average is then no polynomial",
                hint="give rewards of states and choices",
            )
        whole.append(table.add(total))
    both, rows = table.freeze(np.array([*whole, *single], dtype=np.int32))
    size = len(whole)
    if both.is_constant.all():
        values = both.exact_values([0] * len(names))
        return RewardStructure(choice=door.doubles(values)[rows[:size]])
    return ParametricReward(name, both, rows[:size], rows[size:])


def _has_parameters(values: Sequence[Amount] | None) -> bool:
    return any(isinstance(value, Polynomial) and not value.is_constant for value in _list_values(values))


def _floats(values: Sequence[Amount] | None) -> FloatArray | None:
    if values is None:
        return None
    plain = [number_of(v.constant_term if isinstance(v, Polynomial) else v) for v in _list_values(values)]
    return np.asarray(plain, dtype=np.float64)


def number_of(value: Any) -> float:
    """The double of a reward; floats are what they are, and any other number becomes the nearest one."""
    if not isinstance(value, float):
        return door.double(exact(value))
    door.check_doubles(np.array([value]), "the reward")
    return float(value)


def _check_totals(
    structure: Structure, name: str, states: Sequence[Amount] | None, choices: Sequence[Amount] | None
) -> None:
    """What states and choices earn together, by the rule of the model's door."""
    if states is None or choices is None or len(states) != structure.states:
        return
    owner = structure.choice_state.astype(np.int64)
    own, chosen = _floats(states), _floats(choices)
    if own is None or chosen is None or len(chosen) != len(owner):
        return
    kept = [list(states), list(choices)]
    try:
        door.check_totals(
            own[owner],
            chosen,
            lambda c: [as_polynomial(v).constant_term for v in (kept[0][owner[c]], kept[1][c])],
        )
    except door.NotHeldError as error:
        named = structure.choice_name(error.index)
        raise InputError(f"{named}, the rewards '{name}': {error.message}") from None


def _list_values(values: Any) -> list[Any]:
    return [] if values is None else list(values)
