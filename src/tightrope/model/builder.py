"""Models written in Python, in discrete and continuous time: from a function of states, or from rows.

A probability is a number (0.1 is one tenth), text ("1/3"), a polynomial, a quotient, `free`
(`tightrope.model.free`), or a pair (lower, upper); one pair makes the model an interval model. Zeros are
dropped. Rates are such numbers ≥ 0, but no quotients; a state without events gets a self-loop with rate 1 and
the label "deadlock". A choice earns the rewards of its state, itself and, on average, its successors, Σ p·r:
a `ParametricReward` if one of these has parameters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypedDict, TypeVar, Unpack, cast

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, check_keywords, check_type, describe
from tightrope.model import authored
from tightrope.model import numbers as door
from tightrope.model.continuous import IntervalCTMC, ParametricCTMC, rate_box
from tightrope.model.expressions import tabulate
from tightrope.model.free import Free, FreeRows
from tightrope.model.mdp import IntervalMDP
from tightrope.model.numbers import Number, double, doubles, exact
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Function, Polynomial, RationalFunction, as_function, as_polynomial
from tightrope.model.structure import (
    START,
    UNLABELLED,
    NamedStates,
    ParametricReward,
    RewardStructure,
    Structure,
)
from tightrope.numerics.arrays import BoolArray, FloatArray, offsets
from tightrope.numerics.rationals import RationalArray

State = TypeVar("State", bound=Hashable)

Probability = Function | Number | tuple[Number, Number] | Free
Value = TypeVar("Value", bound=Probability)
Row = tuple[int, str, Mapping[int, Probability]]
"""(state, action, {successor: probability}); a state may have several rows with one action."""

T = TypeVar("T")
Words = dict[str, Any]
"""Arguments as they were given."""

Listed = tuple[Any, ...]
"""A row as it was given, with the values of its transitions read."""


def build_from_function(
    initial: State | Mapping[State, Probability],
    successors: Callable[[State], Mapping[str, Mapping[State, Probability]]]
    | Mapping[State, Mapping[str, Mapping[State, Probability]]]
    | authored.Given,
    parameters: Parameters | None = None,
    *,
    labels: Mapping[str, Callable[[State], bool] | Collection[State]] | None = None,
    state_rewards: Mapping[str, Callable[[State], Amount] | Mapping[State, Amount]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], Amount] | Mapping[Hashable, Amount]] | None = None,
    transition_rewards: Mapping[str, Callable[[State, str, State], Amount] | Mapping[Hashable, Amount]]
    | None = None,
    variables: Callable[[State], Mapping[str, int | bool]] | None = None,
) -> ParametricMDP | IntervalMDP:
    """Build a model by exploring successors from an initial state.

    Parameters
    ----------
    initial : state or mapping
        Any hashable value, which data and policies use as well, or a distribution {state: probability}.
    successors : function, mapping or table
        `successors(state)` returns {action: {next state: probability}}; or a mapping from states to such
        values, or a table with the columns `state`, `action`, `next_state` and `probability`.
    parameters : Parameters
        The unknown parameters.
    labels : mapping
        {name: function of a state, or collection of states}.
    state_rewards, choice_rewards, transition_rewards : mapping
        {name: function or mapping of a state, (state, action) or (state, action, next state)}.
    variables : function
        Returns the state variables of a state; by default the fields of a NamedTuple.

    Returns
    -------
    ParametricMDP or IntervalMDP
        An interval model if a probability is a pair of bounds.

    >>> import tightrope as tr
    >>> def successors(place):
    ...     return {"stay": {place: 1}} if place in (0, 4) else {"walk": {place + 1: 0.5, place - 1: 0.5}}
    >>> tr.build_from_function(2, successors, labels={"home": lambda place: place == 4}).states
    5
    >>> pump = {"up": {"run": {"up": "1 - p", "down": "p"}}, "down": {"repair": {"up": 1}}}
    >>> tr.build_from_function("up", pump, tr.Parameters.box(p=(0, 1)), labels={"broken": ["down"]}).states
    2
    """
    check_parameters(parameters)
    first = list(initial) if isinstance(initial, Mapping) else [initial]
    names = () if parameters is None else parameters.names
    states, rows = authored.explore(first, authored.successors_of(successors), names)
    choices = [(states[state], action) for state, action, _ in rows]
    moves = [(*place, states[s]) for place, (_, _, row) in zip(choices, rows, strict=True) for s in row]
    return build_from_rows(
        rows,
        parameters,
        choice_rewards=amounts("choice_rewards", choice_rewards, choices),
        transition_rewards=by_row(amounts("transition_rewards", transition_rewards, moves), rows),
        initial=dict(enumerate(initial.values())) if isinstance(initial, Mapping) else 0,
        **describe_states(states, labels, state_rewards, variables),
    )


def amounts(argument: str, rewards: object, places: Sequence[Listed]) -> dict[str, list[Amount]]:
    """What an author's rewards are at these places, as numbers or polynomials."""
    result: dict[str, list[Amount]] = {}
    for name, values in authored.rewards_of(argument, rewards, places).items():
        result[name] = []
        for place, value in zip(places, values, strict=True):
            try:
                result[name].append(value if isinstance(value, Polynomial) else number_of(value))
            except InputError as error:
                at = " and ".join(map(repr, place))
                raise InputError(
                    f"`{argument}[{name!r}]` at {at}: {error.message}", hint=error.hint
                ) from None
    return result


def by_row(
    rewards: Mapping[str, Sequence[Amount]], rows: Sequence[Listed]
) -> dict[str, list[dict[int, Amount]]]:
    """Rewards of transitions, one after the other, as {successor: reward} for each row."""
    result = {}
    for name, values in rewards.items():
        each = iter(values)
        result[name] = [{successor: next(each) for successor in row[-1]} for row in rows]
    return result


def describe_states(
    states: Sequence[Hashable], labels: object, state_rewards: object, variables: object
) -> Words:
    """What an author says about all states, as arguments of `build_from_rows`."""
    return {
        "states": len(states),
        "labels": authored.label_states(states, labels),
        "state_rewards": amounts("state_rewards", state_rewards, [(state,) for state in states]),
        "valuations": authored.valuations_of(states, variables),
        "state_names": states,
    }


class ChainWords(TypedDict, total=False):
    """What is said beside the rows of a chain: the number of states, and all that is known of these."""

    states: int | None
    labels: Mapping[str, Sequence[int]] | None
    state_rewards: Named | None
    transition_rewards: BySuccessor | None
    valuations: Mapping[str, Sequence[int | bool]] | None
    state_names: Sequence[Hashable] | None
    own_states: Sequence[Hashable] | None


class RowWords(ChainWords, total=False):
    """The same of a model with choices."""

    choice_rewards: Named | None


def _words(function: str, kind: type, given: Mapping[str, object]) -> Words:
    """What is said beside rows, under one name each; None where nothing is said."""
    words = dict.fromkeys(kind.__annotations__)
    words |= check_keywords(function, kind, given, ("rows", "parameters", "initial"))
    own = words.pop("own_states")
    return words if words["state_names"] is not None else {**words, "state_names": own}


def build_from_rows(
    rows: Iterable[Row],
    parameters: Parameters | None = None,
    *,
    initial: int | Mapping[int, Probability] = 0,
    **words: Unpack[RowWords],
) -> ParametricMDP | IntervalMDP:
    """Build a model from explicit rows, in any order of states.

    Parameters
    ----------
    rows : iterable of (state, action, {successor: probability})
        States are numbers.
    initial : int or mapping
        The initial state, or the probability of each (numbers or `free`): a further state then draws it.
    states : int, optional
        The number of states.
    labels : mapping
        Lists of states; "init" and "deadlock" are added.
    state_rewards, choice_rewards, transition_rewards
        By state, by row, and {successor: reward} by row; they add up and may have parameters.
    state_names : sequence, optional
        Names of the states; `own_states` is its older name.

    Returns
    -------
    ParametricMDP or IntervalMDP
        The model.

    Examples
    --------
    >>> import tightrope as tr
    >>> tr.build_from_rows([(0, "go", {0: 1 / 3, 1: "2/3"}), (1, "stay", {1: 1})]).transitions
    3
    """
    given = _words("build_from_rows", RowWords, words)
    if isinstance(initial, Mapping):
        return build_from_rows(**_with_start(rows, parameters, initial, given))
    made = _Assembly.of(rows, 3, parameters, initial, given)
    return _discrete_model(made, parameters or Parameters(), given)


def _discrete_model(made: _Assembly, parameters: Parameters, words: Words) -> ParametricMDP | IntervalMDP:
    structure, probabilities, exact_ones = made.structure, made.values, None
    if not any(isinstance(p, tuple) for p in probabilities):
        exact_ones, parameters = _write_out_free(structure, probabilities, parameters)
    by_choice, by_successor = (made.in_order(words[f"{what}_rewards"]) for what in ("choice", "transition"))
    by_state = words["state_rewards"] or {}
    structure = with_rewards(structure, parameters.names, by_state, by_choice, by_successor, exact_ones)
    if exact_ones is None:
        return _interval_model(structure, probabilities)
    expressions, used = tabulate(parameters.names, exact_ones)
    return ParametricMDP(structure, used, expressions, parameters)


def _with_start(
    rows: object, parameters: Parameters | None, initial: Mapping[int, Probability], words: Words
) -> Words:
    """The arguments with a further state, after all others, that draws the first state of a run."""
    listed: list[Row] = _list_rows(rows, 3, parameters)
    states, labels, names = words["states"], words["labels"] or {}, words["state_names"]
    start = states if states is not None else 1 + max((row[0] for row in listed), default=-1)
    wrong = [state for state in initial if not isinstance(state, int) or not 0 <= state < start]
    if wrong or not initial:
        shown = repr(wrong[0]) if wrong else "no state"
        raise InputError(f"`initial` refers to {shown}, and the states are 0..{start - 1}")
    label = START
    while label in labels:
        label += "_"
    nothing = {"state_rewards": 0, "choice_rewards": 0, "transition_rewards": {}}
    rewards = {
        argument: {name: [*values, none] for name, values in (words[argument] or {}).items()}
        for argument, none in nothing.items()
    }
    return {
        "rows": [*listed, (start, START, dict(initial))],
        "parameters": parameters,
        "states": start + 1,
        "initial": start,
        "labels": {**labels, label: [start]},
        **rewards,
        "valuations": _values_of_start(words["valuations"] or {}),
        "state_names": _names_with_start(range(start) if names is None else names),
    }


def _values_of_start(given: Mapping[str, Sequence[int | bool]]) -> dict[str, list[int | bool]]:
    """Values of the variables, and for the draw such that no other state has them."""
    columns = {name: list(np.asarray(values).tolist()) for name, values in given.items()}
    numbers = [name for name, values in columns.items() if not all(isinstance(v, bool) for v in values)]
    if columns and not numbers:
        raise InputError(
            "the state that draws the initial state cannot be distinguished from the others: all variables "
            "are true or false",
            hint="let one state be initial, or give the states names of their own",
        )
    for name, values in columns.items():
        values.append(max(values) + 1 if name in numbers[:1] else values[0])
    return columns


def _names_with_start(own: Sequence[Hashable]) -> list[Hashable]:
    """What the states are called; the draw is −1 among numbers and "start" elsewhere."""
    if all(isinstance(name, int) and not isinstance(name, bool) for name in own):
        return [*own, min(-1, min(int(str(name)) for name in own) - 1)]
    name = START
    while name in own:
        name += "_"
    return [*own, name]


def _write_out_free(
    structure: Structure, probabilities: Sequence[Probability], parameters: Parameters
) -> tuple[list[Function], Parameters]:
    """The probabilities as functions, free rows with coordinates of their own behind the parameters."""
    listed = [p if isinstance(p, Free) else as_function(cast(Function, p)) for p in probabilities]
    if not any(isinstance(p, Free) for p in listed):
        return cast(list[Function], listed), parameters
    rows, functions = FreeRows(parameters), list[Function]()
    for choice, (first, last) in enumerate(pairwise(structure.transition_start.tolist())):
        functions += rows.row(listed[first:last], structure.choice_name(choice))
    return functions, rows.parameters


def check_parameters(parameters: object) -> None:
    if parameters is not None:
        check_type("parameters", parameters, Parameters, "Parameters, such as tr.Parameters.box(p=(0, 1))")


_SINGLE: dict[str, tuple[type, str]] = {
    "states": (int, "a number of states"),
    "state_names": (Sequence, "a list of states"),
}


def _checked_rows(
    rows: object, width: int, parameters: Parameters | None, initial: object, words: Words
) -> list[Listed]:
    """The rows, once everything that is given has the right type, and there are as many rewards as rows."""
    check_parameters(parameters)
    check_type("initial", initial, int, "the number of a state")
    for argument, given in words.items():
        if given is not None:
            check_type(argument, given, *_SINGLE.get(argument, (Mapping, "a mapping from names")))
        if argument in _SINGLE:
            continue
        for name, values in (given or {}).items():
            check_type(f"{argument}[{name!r}]", values, Sequence | np.ndarray, "a list")
            if argument == "labels":
                authored.refuse_truths(f"labels[{name!r}]", values)
            if argument in ("labels", "valuations"):
                for value in np.asarray(values).ravel().tolist():
                    if not isinstance(value, int | np.integer):
                        raise InputError(
                            f"`{argument}[{name!r}]` holds {value!r}, which is not a whole number"
                        )
            if argument == "transition_rewards":
                for value in values:
                    check_type(f"{argument}[{name!r}]", value, Mapping, "a list of {successor: reward}")
    listed = _list_rows(rows, width, parameters)
    if width == 2 and (twice := [s for s, times in Counter(row[0] for row in listed).items() if times > 1]):
        raise InputError(f"state {twice[0]} has two rows", hint="write all its rates in one row")
    for argument in ("choice_rewards", "transition_rewards"):
        for name, values in (words.get(argument) or {}).items():
            if len(values) != len(listed):
                raise InputError(
                    f"`{argument}[{name!r}]` has {len(values)} rewards for {len(listed)} rows",
                    hint="give one for each row, in the order of the rows",
                )
    return listed


FORMS = {
    3: ("a model", "(state, action, {successor: probability})", "build_from_function"),
    2: ("a chain in continuous time", "(state, {successor: rate})", "build_ctmc_from_function"),
}
"""Rows of so many parts: of what, how they are written, and who takes mappings and tables instead."""


def _list_rows(rows: authored.Given, width: int, parameters: Parameters | None) -> list[Listed]:
    """The rows, each a state and what else it has, with a mapping from successors to functions at the end."""
    what, form, builder = FORMS[width]
    if isinstance(rows, Mapping) or authored.is_table(rows):
        raise InputError(
            f"`rows` is {describe(rows)}, not a list of rows",
            hint=f"`{builder}(initial, …)` takes mappings and tables",
        )
    check_type("rows", rows, Iterable, "a list of rows")
    names = () if parameters is None else parameters.names
    listed = []
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != width or not isinstance(row[-1], Mapping):
            raise InputError(f"{row!r} is not a row of {what}", hint=f"write {form}")
        check_type("rows", row[0], int | np.integer, "a row that begins with the number of a state")
        state, *action, given = row
        here = f"the row of state {state}" + (f" and action {action[0]!r}" if action else "")
        values = {}
        for successor, value in given.items():
            if isinstance(successor, bool) or not isinstance(successor, int | np.integer):
                raise InputError(
                    f"{here} leads to {successor!r}, which is not a number of a state", hint=f"write {form}"
                )
            values[successor] = authored.read_value(value, names, lambda s=successor, h=here: f"{h}, to {s}")  # type: ignore[misc]
        listed.append((state, *(authored.name_action(name, here) for name in action), values))
    return listed


@dataclass(frozen=True)
class _Assembly:
    """Rows in CSR arrays: the value of every transition, the row of every choice (−1: an idle loop)."""

    structure: Structure
    values: list[Probability]
    rows: list[int]

    @staticmethod
    def of(rows: object, width: int, parameters: Parameters | None, initial: int, words: Words) -> _Assembly:
        """From rows of so many parts (`FORMS`), once everything that is given has the right type."""
        listed = _checked_rows(rows, width, parameters, initial, words)
        states, names = words["states"], words["state_names"]
        timed = width == 2
        met = [s for row in listed for s in (row[0], *(row[-1] if timed else ()))]
        total = states if states is not None else 1 + max(met, default=-1)
        if total <= 0:
            raise InputError("a model needs at least one state")
        if listed and not 0 <= min(row[0] for row in listed) <= max(row[0] for row in listed) < total:
            raise InputError(f"a row refers to a state outside 0..{total - 1}")
        choices = [
            (row[0], i, row[1:-1], {s: v for s, v in row[-1].items() if not authored.is_zero(v)})
            for i, row in enumerate(listed)
        ]
        labels = dict(words["labels"] or {})
        if timed:
            choices = [choice for choice in choices if choice[-1]]
            stuck = sorted(set(range(total)) - {choice[0] for choice in choices})
            choices += [(state, -1, (), {state: 1}) for state in stuck]
            labels = {"deadlock": stuck, **labels}
        choices.sort(key=lambda choice: choice[0])
        actions: dict[str, int] = {}
        action = [
            actions.setdefault(name[0] if name else UNLABELLED, len(actions)) for _, _, name, _ in choices
        ]
        structure = Structure(
            offsets(np.bincount(np.array([choice[0] for choice in choices], np.int64), minlength=total)),
            offsets([len(choice[-1]) for choice in choices]),
            np.array([s for choice in choices for s in choice[-1]], dtype=np.int32),
            (initial,),
            np.array(action, dtype=np.int32),
            tuple(actions) or (UNLABELLED,),
            label_bitmaps({"init": [initial], "deadlock": [], **labels}, total),
            {},
            {name: np.asarray(column) for name, column in (words["valuations"] or {}).items()},
            NamedStates(range(total) if names is None else names),
        )
        values = [value for choice in choices for value in choice[-1].values()]
        return _Assembly(structure, values, [choice[1] for choice in choices])

    def in_order(self, rewards: Mapping[str, Sequence[T]] | None) -> dict[str, list[T]]:
        """Rewards that are given by rows, by choices; nothing is earned in loops that no row has."""
        nothing = cast(T, {})
        return {
            name: [values[i] if i >= 0 else nothing for i in self.rows]
            for name, values in (rewards or {}).items()
        }


def label_bitmaps(labels: Mapping[str, npt.ArrayLike], states: int) -> dict[str, BoolArray]:
    """Labels by state, of lists of states or of masks."""
    bitmaps = {}
    for name, given in labels.items():
        listed = np.asarray(given)
        if listed.dtype == np.bool_:
            if listed.shape != (states,):
                raise InputError(
                    f"label '{name}' has the shape {listed.shape}, but there are {states} states"
                )
            bitmaps[name] = listed
            continue
        if listed.size and (listed.dtype.kind not in "iu" or not 0 <= listed.min() <= listed.max() < states):
            raise InputError(f"label '{name}' names a state outside 0..{states - 1}")
        bitmaps[name] = np.zeros(states, np.bool_)
        bitmaps[name][listed.astype(np.int64)] = True
    return bitmaps


def _interval_model(structure: Structure, probabilities: Sequence[Probability]) -> IntervalMDP:
    """Bounds rounded outward to float64: the model holds every distribution that was meant."""
    bounds: list[door.Bounds] = []
    for p in probabilities:
        if isinstance(p, Free):
            raise InputError(
                "a model cannot have both intervals and unconstrained distributions",
                hint="write (0, 1) in place of free",
            )
        if isinstance(p, RationalFunction) or (isinstance(p, Polynomial) and not p.is_constant):
            raise InputError("a model cannot have both intervals and parameters on its transitions")
        low, high = (as_polynomial(end).constant_term for end in (p if isinstance(p, tuple) else (p, p)))
        bounds.append((low, high))
    return settled_model(structure, bounds)


def settled_model(structure: Structure, bounds: Sequence[door.Bounds]) -> IntervalMDP:
    """The model of exact bounds, by the rule of the model's door."""
    lower, upper = np.empty(len(bounds)), np.empty(len(bounds))
    at = 0
    try:
        for at, (low, high) in enumerate(bounds):
            lower[at], upper[at] = door.bound(low, -math.inf), door.bound(high, math.inf)
        lower, upper = door.settle_rows(structure.transition_start, lower, upper, bounds.__getitem__)
    except door.NotHeldError as error:
        raise InputError(f"{structure.name_at(error.index or at)}: {error.message}") from None
    return IntervalMDP(structure, lower, upper)


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
    rewards: dict[str, RewardStructure] = {}
    for name in {**states, **choices, **successors}:
        own, chosen = states.get(name), choices.get(name)
        if name not in successors and not _has_parameters(own) and not _has_parameters(chosen):
            rewards[name] = RewardStructure(_floats(own), _floats(chosen))
            _check_totals(structure, name, own, chosen)
            continue
        if probabilities is None:
            raise InputError(
                f"the rewards '{name}' have parameters or differ by successor, and the model has intervals: "
                "what a choice earns is then no number",
                hint="give rewards of states and choices, as numbers",
            )
        rewards[name] = _polynomials(structure, names, name, own, chosen, successors.get(name), probabilities)
    return replace(structure, rewards=rewards)


def _polynomials(
    structure: Structure,
    names: tuple[str, ...],
    name: str,
    states: Sequence[Amount] | None,
    choices: Sequence[Amount] | None,
    successors: Sequence[Mapping[int, Amount]] | None,
    probabilities: Sequence[Function],
) -> RewardStructure:
    base = _amounts(structure, name, states, choices)
    if successors is None:
        return _as_reward(name, base, names)
    size = len(base)
    gained = _gained(structure, name, successors)
    single = [base[c] + g for c, g in zip(structure.transition_choice.tolist(), gained, strict=True)]
    whole = _flows(structure, base, probabilities, gained)
    for choice, total in enumerate(whole):
        if isinstance(total, RationalFunction):
            raise InputError(
                f"the rewards '{name}' differ by successor at {structure.choice_name(choice)}, whose "
                "probabilities are quotients: what it earns on average is then no polynomial",
                hint="give rewards of states and choices",
            )
    both, rows = tabulate(names, (*whole, *single))
    if both.is_constant.all():
        values = both.exact_values([0] * len(names))
        return RewardStructure(None, door.doubles(values)[rows[:size]], True, states is not None)
    return ParametricReward(name, both, rows[:size], rows[size:])


def _amounts(
    structure: Structure, name: str, states: Sequence[Amount] | None, choices: Sequence[Amount] | None = None
) -> list[Polynomial]:
    """What every choice earns, with its state."""
    for given, size in ((states, structure.states), (choices, structure.choices)):
        if given is not None and len(given) != size:
            raise InputError(f"reward structure '{name}' has {len(given)} rewards, not {size}")
    zero = Polynomial({})
    own = [zero] * structure.states if states is None else [as_polynomial(amount) for amount in states]
    held = [own[state] for state in structure.choice_state.tolist()]
    if choices is None:
        return held
    return [a + as_polynomial(b) for a, b in zip(held, choices, strict=True)]


def _gained(
    structure: Structure, name: str, successors: Sequence[Mapping[int, Amount]] | None
) -> list[Polynomial]:
    """What every transition earns by itself; `successors` are rewards by choice."""
    if successors is None:
        return [Polynomial({})] * structure.transitions
    gained: list[Polynomial] = []
    for choice, (first, last) in enumerate(pairwise(structure.transition_start.tolist())):
        reached = structure.successor[first:last].tolist()
        if unknown := set(successors[choice]) - set(reached):
            raise InputError(
                f"the rewards '{name}' name the successor {min(unknown)} of {structure.choice_name(choice)}, "
                "which does not lead there"
            )
        gained += [as_polynomial(successors[choice].get(successor, 0)) for successor in reached]
    return gained


def _flows(
    structure: Structure, base: Sequence[Function], weights: Sequence[Function], gained: Sequence[Polynomial]
) -> list[Function]:
    """base + Σ weight · what the transition earns, of every choice: Σ p = 1, so that `base` counts once."""
    totals = list(base)
    for choice, weight, earned in zip(structure.transition_choice.tolist(), weights, gained, strict=True):
        if earned.terms:
            totals[choice] = totals[choice] + weight * earned
    return totals


def _as_reward(name: str, values: Sequence[Function], names: tuple[str, ...]) -> ParametricReward:
    return ParametricReward(name, *tabulate(names, values))


def _has_parameters(values: Sequence[Amount] | None) -> bool:
    return values is not None and any(isinstance(v, Polynomial) and not v.is_constant for v in values)


def _floats(values: Sequence[Amount] | None) -> FloatArray | None:
    if values is None:
        return None
    plain = [number_of(v.constant_term if isinstance(v, Polynomial) else v) for v in values]
    return np.asarray(plain, dtype=np.float64)


def number_of(value: Number) -> float:
    """The double of a reward; floats are what they are, and any other number becomes the nearest one."""
    if not isinstance(value, float):
        return door.double(exact(value))
    door.check_doubles(np.array([value]), "the reward")
    return float(value)


def _check_totals(
    structure: Structure, name: str, states: Sequence[Amount] | None, choices: Sequence[Amount] | None
) -> None:
    """What states and choices earn together, by the rule of the model's door."""
    own, chosen = _floats(states), _floats(choices)
    if states is None or choices is None or own is None or chosen is None:
        return
    if len(own) == structure.states and len(chosen) == structure.choices:
        try:
            door.check_choice_totals(
                structure.choice_start,
                own,
                chosen,
                lambda state: as_polynomial(states[state]).constant_term,
                lambda choice: as_polynomial(choices[choice]).constant_term,
            )
        except door.NotHeldError as error:
            named = structure.choice_name(error.index)
            raise InputError(f"{named}, the rewards '{name}': {error.message}") from None


Rate = Polynomial | Number | tuple[Number, Number]
RateRow = tuple[int, Mapping[int, Rate]]
"""(state, {successor: rate}); a state has one row at most."""


def build_ctmc_from_function(
    initial: State,
    rates: Callable[[State], Mapping[State, Rate]] | Mapping[State, Mapping[State, Rate]] | authored.Given,
    parameters: Parameters | None = None,
    *,
    labels: Mapping[str, Callable[[State], bool] | Collection[State]] | None = None,
    state_rewards: Mapping[str, Callable[[State], Amount] | Mapping[State, Amount]] | None = None,
    transition_rewards: Mapping[str, Callable[[State, State], Amount] | Mapping[tuple[State, State], Amount]]
    | None = None,
    variables: Callable[[State], Mapping[str, int | bool]] | None = None,
) -> ParametricCTMC | IntervalCTMC:
    """Explore a chain in continuous time from its initial state.

    Parameters
    ----------
    initial, parameters, labels, variables
        As for `build_from_function`.
    rates
        A function from states to {next state: rate}, a mapping, or a table of state, next_state, rate.
    state_rewards, transition_rewards
        Earned per unit of time, and at each jump; they add up and may have parameters.

    Returns
    -------
    ParametricCTMC or IntervalCTMC
        The chain.

    Examples
    --------
    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(lam=(0.01, 1), mu=(0.1, 10))
    >>> lam, mu = parameters.symbols()
    >>> def rates(up):
    ...     return {0: {1: mu}, 1: {0: lam, 2: mu}, 2: {1: 2 * lam}}[up]
    >>> farm = tr.build_ctmc_from_function(2, rates, parameters, labels={"down": lambda up: up == 0})
    >>> low, high = tr.solve(farm.instantiate(lam=0.1, mu=1), 'P=? [ F<=10 "down" ]').bounds
    >>> round(low, 4), round(high, 4)
    (0.1337, 0.1337)
    """
    check_parameters(parameters)
    names = () if parameters is None else parameters.names
    given = authored.successors_of(rates, "rates", timed=True)
    states, explored = authored.explore([initial], given, names, "rates", timed=True)
    rows = [(at, cast("dict[int, Rate]", row)) for at, _, row in explored]
    moves = [(states[at], states[s]) for at, row in rows for s in row]
    return build_ctmc_from_rows(
        rows,
        parameters,
        transition_rewards=by_row(amounts("transition_rewards", transition_rewards, moves), rows),
        **describe_states(states, labels, state_rewards, variables),
    )


def build_ctmc_from_rows(
    rows: Iterable[RateRow],
    parameters: Parameters | None = None,
    *,
    initial: int = 0,
    **words: Unpack[ChainWords],
) -> ParametricCTMC | IntervalCTMC:
    """Build a chain in continuous time from explicit rows, in any order of states.

    Parameters
    ----------
    rows : iterable of (state, {successor: rate})
        States are numbers. With intervals of rates, rewards are numbers.
    transition_rewards
        {successor: reward} by row; the other arguments are those of `build_from_rows`.

    Returns
    -------
    ParametricCTMC or IntervalCTMC
        The chain.

    Examples
    --------
    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: "1/2"})], labels={"on": [1]})
    >>> low, high = tr.solve(chain, 'S=? [ "on" ]').bounds
    >>> round(low, 6), round(high, 6)
    (0.8, 0.8)
    """
    given = _words("build_ctmc_from_rows", ChainWords, words)
    made = _Assembly.of(rows, 2, parameters, initial, given)
    return _chain_of(made, parameters or rate_box(()), given)


def _chain_of(made: _Assembly, parameters: Parameters, words: Words) -> ParametricCTMC | IntervalCTMC:
    structure, rates, gained = made.structure, made.values, made.in_order(words["transition_rewards"])
    by_state = words["state_rewards"] or {}
    held = {name: _amounts(structure, name, by_state.get(name)) for name in {**by_state, **gained}}
    earned = {name: (own, _gained(structure, name, gained.get(name))) for name, own in held.items()}
    if any(isinstance(rate, tuple) for rate in rates):
        return _interval_chain(structure, rates, earned)
    exact, names = [_polynomial(rate) for rate in rates], parameters.names
    expressions, expression = tabulate(names, exact)
    of_states = {
        name: RewardStructure(state=np.array([double(value.constant_term) for value in own]))
        if all(value.is_constant for value in own)
        else _as_reward(name, own, names)
        for name, own in held.items()
    }
    per_time = {
        name: _as_reward(name, _flows(structure, own, exact, each), names)
        for name, (own, each) in earned.items()
    }
    return ParametricCTMC(
        replace(structure, rewards=of_states), expression, expressions, parameters, per_time
    )


def _interval_chain(
    structure: Structure,
    rates: Sequence[Probability],
    earned: Mapping[str, tuple[list[Polynomial], list[Polynomial]]],
) -> IntervalCTMC:
    """Bounds rounded outward; every transition has its own rate within its interval."""
    pairs = [rate if isinstance(rate, tuple) else (rate, rate) for rate in rates]
    ends = [[_constant(_polynomial(pair[side]), "rates") for pair in pairs] for side in (0, 1)]
    rewards, spans = {}, {}
    for name, amounts in earned.items():
        held, gained = ([_constant(value, "rewards") for value in each] for each in amounts)
        rewards[name] = RewardStructure(state=np.array([double(value) for value in held]))
        least, most = list(held), list(held)
        for state, low, high, gain in zip(structure.transition_choice.tolist(), *ends, gained, strict=True):
            least[state] += min(low * gain, high * gain)
            most[state] += max(low * gain, high * gain)
        spans[name] = (_round(least, False), _round(most, True))
    own = np.arange(len(rates), dtype=np.int32)
    structure = replace(structure, rewards=rewards)
    return IntervalCTMC(structure, own, _round(ends[0], False), _round(ends[1], True), spans)


def _round(values: Sequence[Fraction], upwards: bool) -> FloatArray:
    exact = RationalArray.from_fractions(list(values))
    doubles(exact)
    return exact.to_float_up() if upwards else exact.to_float_down()


def _polynomial(rate: authored.Given) -> Polynomial:
    if isinstance(rate, RationalFunction):
        raise InputError("a rate is a number or a polynomial in the parameters, not a quotient")
    return as_polynomial(rate)


def _constant(value: Polynomial, what: str) -> Fraction:
    if not value.is_constant:
        raise InputError(f"a chain of intervals cannot have parameters in its {what}")
    return value.constant_term
