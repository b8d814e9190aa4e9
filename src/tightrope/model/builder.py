"""Models written in Python: from a successor function, or from rows.

    parameters = Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()

    def successors(position):
        if position in (0, 4):
            return {"stay": {position: 1}}
        return {"walk": {position + 1: p, position - 1: 1 - p}}

    model = build_from_function(2, successors, parameters, labels={"home": lambda x: x == 4})

A probability is a number, text ("1/3"), a polynomial in the parameters, a quotient of two (`p / (p +
q)`), or a pair (lower, upper); one pair anywhere makes the model an interval model. Numbers are exact:
0.1 is one tenth. Probabilities of 0 are dropped. Equal keys of a distribution cannot occur, so nothing
merges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from tightrope.errors import InputError, check_type
from tightrope.model import door
from tightrope.model.built_rewards import Amount, BySuccessor, Named, number_of, with_rewards
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.mdp import IntervalMDP
from tightrope.model.numbers import Number, exact
from tightrope.model.own_states import OwnStates
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial, as_polynomial
from tightrope.model.rational_function import Function, RationalFunction, as_function
from tightrope.model.structure import Structure

State = TypeVar("State", bound=Hashable)

Probability = Function | Number | tuple[Number, Number]
Value = TypeVar("Value", bound=Probability)
Row = tuple[int, str, Mapping[int, Probability]]
"""(state, action, {successor: probability}); a state may have several rows with one action."""


def build_from_function(
    initial: State,
    successors: Callable[[State], Mapping[str, Mapping[State, Probability]]],
    parameters: Parameters | None = None,
    *,
    labels: Mapping[str, Callable[[State], bool]] | None = None,
    state_rewards: Mapping[str, Callable[[State], Amount]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], Amount]] | None = None,
    transition_rewards: Mapping[str, Callable[[State, str, State], Amount]] | None = None,
    variables: Callable[[State], Mapping[str, int | bool]] | None = None,
) -> ParametricMDP | IntervalMDP:
    """Explore from `initial`; `successors(state)` gives {action: {next state: probability}}.

    States are any hashable values; the model keeps them (`structure.own_states`), and data, environments and
    policies find its states by them. A NamedTuple's fields become the model's state variables,
    others say theirs through `variables`. Rewards of states, choices and (state, action, next state) add up;
    they may have parameters.

    >>> import tightrope as tr
    >>> def successors(place):
    ...     return {"stay": {place: 1}} if place in (0, 4) else {"walk": {place + 1: 0.5, place - 1: 0.5}}
    >>> tr.build_from_function(2, successors, labels={"home": lambda place: place == 4}).states
    5
    """
    states, rows = explore(initial, successors)
    choice_of_row = [(states[state], action) for state, action, _ in rows]
    return build_from_rows(
        rows,
        parameters,
        choice_rewards={
            name: [amount_of(reward(x, a)) for x, a in choice_of_row]
            for name, reward in (choice_rewards or {}).items()
        },
        transition_rewards={
            name: [{s: reward(states[at], a, states[s]) for s in row} for at, a, row in rows]
            for name, reward in (transition_rewards or {}).items()
        },
        **describe_states(states, labels, state_rewards, variables),
    )


def explore(
    initial: State, successors: Callable[[State], Mapping[str, Mapping[State, Value]]]
) -> tuple[list[State], list[tuple[int, str, Mapping[int, Value]]]]:
    """All states that can be reached, in the order in which they are met, and their rows."""
    number: dict[State, int] = {initial: 0}
    states: list[State] = [initial]
    rows: list[tuple[int, str, Mapping[int, Value]]] = []
    at = 0
    while at < len(states):
        for action, distribution in successors(states[at]).items():
            row: dict[int, Value] = {}
            for successor, probability in distribution.items():
                if is_zero(probability):
                    continue
                if successor not in number:
                    number[successor] = len(states)
                    states.append(successor)
                row[number[successor]] = probability
            rows.append((at, action, row))
        at += 1
    return states, rows


def describe_states(
    states: Sequence[State],
    labels: Mapping[str, Callable[[State], bool]] | None,
    state_rewards: Mapping[str, Callable[[State], Amount]] | None,
    variables: Callable[[State], Mapping[str, int | bool]] | None,
) -> dict[str, Any]:
    """What functions of states say about all of them, as arguments of `build_from_rows`."""
    rewards = (state_rewards or {}).items()
    return {
        "states": len(states),
        "labels": {
            name: [s for s, x in enumerate(states) if test(x)] for name, test in (labels or {}).items()
        },
        "state_rewards": {name: [amount_of(reward(x)) for x in states] for name, reward in rewards},
        "valuations": valuations_of(states, variables),
        "own_states": states,
    }


def build_from_rows(
    rows: Iterable[Row],
    parameters: Parameters | None = None,
    *,
    states: int | None = None,
    initial: int = 0,
    labels: Mapping[str, Sequence[int]] | None = None,
    state_rewards: Named | None = None,
    choice_rewards: Named | None = None,
    transition_rewards: BySuccessor | None = None,
    valuations: Mapping[str, Sequence[int | bool]] | None = None,
    own_states: Sequence[Hashable] | None = None,
) -> ParametricMDP | IntervalMDP:
    """From explicit rows in any order of states; labels list their states.

    The numbers of the rows are the model's own states, unless `own_states` gives what to call each of them.

    Choice rewards are given in the order of the rows, and so are `transition_rewards`, {successor: reward}
    for each row; all may have parameters, and add up. The labels "init" and "deadlock" are added
    where they are missing.

    >>> import tightrope as tr
    >>> tr.build_from_rows([(0, "go", {0: 1 / 3, 1: "2/3"}), (1, "stay", {1: 1})]).transitions
    3
    """
    named = (labels, state_rewards, choice_rewards, transition_rewards, valuations)
    check_arguments(parameters, initial, *named)
    if states is not None:
        check_type("states", states, int, "a number of states")
    if own_states is not None:
        check_type("own_states", own_states, Sequence, "a list of states")
    listed = _list_rows(rows)
    order = sorted(range(len(listed)), key=lambda i: listed[i][0])
    total = states if states is not None else 1 + max((row[0] for row in listed), default=-1)
    parameters = parameters or Parameters()
    skeleton = Skeleton()
    probabilities: list[Probability] = []
    for i in order:
        state, action, distribution = listed[i]
        kept = {s: p for s, p in distribution.items() if not is_zero(p)}
        skeleton.add(state, action, list(kept))
        probabilities.extend(kept.values())
    structure = skeleton.structure(
        total,
        initial,
        labels or {},
        valuations or {},
        OwnStates(range(total) if own_states is None else own_states),
    )
    has_intervals = any(isinstance(p, tuple) for p in probabilities)
    exact_ones = None if has_intervals else [as_function(_scalar(p)) for p in probabilities]
    structure = with_rewards(
        structure,
        parameters.names,
        state_rewards or {},
        {name: [values[i] for i in order] for name, values in (choice_rewards or {}).items()},
        {name: [values[i] for i in order] for name, values in (transition_rewards or {}).items()},
        exact_ones,
    )
    if exact_ones is None:
        return _interval_model(structure, probabilities)
    table = ExpressionTable(parameters.names)
    used = np.array([table.add(p) for p in exact_ones], dtype=np.int32)
    expressions, renumbered = table.freeze(used)
    return ParametricMDP(structure, renumbered, expressions, parameters)


def check_arguments(parameters: object, initial: object, *named: Mapping[str, Any] | None) -> None:
    """Types of what both kinds of builders take."""
    if parameters is not None:
        check_type("parameters", parameters, Parameters, "Parameters, such as tr.Parameters.box(p=(0, 1))")
    check_type("initial", initial, int, "the number of a state")
    for argument, given in zip(
        ("labels", "state_rewards", "choice_rewards", "transition_rewards", "valuations"), named, strict=True
    ):
        if given is not None:
            check_type(argument, given, Mapping, "a mapping from names")
            for name, values in given.items():
                check_type(f"{argument}[{name!r}]", values, Sequence | np.ndarray, "a list")


def _list_rows(rows: Any) -> list[Row]:
    """The rows, each with its three parts."""
    check_type("rows", rows, Iterable, "a list of rows")
    listed = list(rows)
    for row in listed:
        if not isinstance(row, tuple | list) or len(row) != 3 or not isinstance(row[2], Mapping):
            raise InputError(
                f"{row!r} is no row of a model", hint="write (state, action, {successor: probability})"
            )
        check_type("rows", row[0], int | np.integer, "a row that begins with the number of a state")
    return listed


@dataclass
class Skeleton:
    """Rows on their way to CSR arrays."""

    choice_state: list[int] = field(default_factory=list)
    action: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    successor: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def add(self, state: int, action: str, successors: list[int]) -> None:
        self.choice_state.append(state)
        self.action.append(self.names.setdefault(action, len(self.names)))
        self.successor.extend(successors)
        self.size.append(len(successors))

    def structure(
        self,
        states: int,
        initial: int,
        labels: Mapping[str, Sequence[int]],
        valuations: Mapping[str, Sequence[int | bool]],
        own_states: OwnStates,
    ) -> Structure:
        if states <= 0:
            raise InputError("a model needs at least one state")
        if self.choice_state and not 0 <= min(self.choice_state) <= max(self.choice_state) < states:
            raise InputError(f"a row speaks of a state outside 0..{states - 1}")
        members = {"init": [initial], "deadlock": [], **labels}
        bitmaps = {}
        for name, listed in members.items():
            bitmap = np.zeros(states, dtype=np.bool_)
            index = np.array(listed, dtype=np.int64)
            if len(index) and not 0 <= index.min() <= index.max() < states:
                raise InputError(f"label '{name}' names a state outside 0..{states - 1}")
            bitmap[index] = True
            bitmaps[name] = bitmap
        count = np.bincount(np.array(self.choice_state, dtype=np.int64), minlength=states)
        return Structure(
            np.r_[0, np.cumsum(count)],
            np.r_[0, np.cumsum(self.size, dtype=np.int64)],
            np.array(self.successor, dtype=np.int32),
            (initial,),
            np.array(self.action, dtype=np.int32),
            tuple(self.names) or ("",),
            bitmaps,
            {},
            {name: np.asarray(column) for name, column in valuations.items()},
            own_states,
        )


def _interval_model(structure: Structure, probabilities: Sequence[Probability]) -> IntervalMDP:
    """Bounds rounded outward to float64: the model holds every distribution that was meant."""
    lower: list[Fraction] = []
    upper: list[Fraction] = []
    for p in probabilities:
        if isinstance(p, RationalFunction) or (isinstance(p, Polynomial) and not p.is_constant):
            raise InputError("a model cannot have both intervals and parameters on its transitions")
        low, high = p if isinstance(p, tuple) else (p, p)
        lower.append(as_polynomial(low).constant_term)
        upper.append(as_polynomial(high).constant_term)
    return settled_model(structure, list(zip(lower, upper, strict=True)))


def settled_model(structure: Structure, bounds: Sequence[door.Bounds]) -> IntervalMDP:
    """The model of exact bounds, by the rule of the model's door."""
    lower, upper = np.empty(len(bounds)), np.empty(len(bounds))
    at = 0
    try:
        for at, (low, high) in enumerate(bounds):
            lower[at], upper[at] = door.bound(low, -math.inf), door.bound(high, math.inf)
        lower, upper = door.settle_rows(structure.transition_start, lower, upper, bounds.__getitem__)
    except door.NotHeldError as error:
        choice = int(np.searchsorted(structure.transition_start, error.index or at, side="right")) - 1
        raise InputError(f"{structure.choice_name(choice)}: {error.message}") from None
    return IntervalMDP(structure, lower, upper)


def _scalar(probability: Probability) -> Function | Number:
    assert not isinstance(probability, tuple)
    return probability


def is_zero(probability: Probability) -> bool:
    """Whether a transition cannot happen, so that the model does not have it."""
    if isinstance(probability, tuple):
        return exact(probability[1]) == 0
    return as_function(probability) == Polynomial({})


def amount_of(value: Any) -> Amount:
    """A reward: a polynomial, or a number."""
    return value if isinstance(value, Polynomial) else number_of(value)


def valuations_of(
    states: Sequence[Any], variables: Callable[[Any], Mapping[str, int | bool]] | None
) -> dict[str, list[int | bool]]:
    """The values of the state variables: what `variables` says, or the fields of a NamedTuple."""
    if variables is None:
        names = getattr(states[0], "_fields", None)
        if names is None:
            return {}
        return {name: [getattr(state, name) for state in states] for name in names}
    columns: dict[str, list[int | bool]] = {}
    for state in states:
        for name, value in variables(state).items():
            columns.setdefault(name, []).append(value)
    return columns
