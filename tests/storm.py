"""Storm's view of a PRISM file, and ours, in one plain form that `==` compares.

A model becomes a `PlainModel`: states are named by their valuation (else by number), a choice is its
action, its rewards and its distribution over states, and the choices of a state form a multiset. Neither
the order of states nor that of choices matters. Probabilities are exact (`Fraction`), at a given point
for a parametric model; rewards and interval bounds are compared to 12 digits.

Differences between the languages of PRISM and Storm are evened out in one place, here:

* Storm's parser does not know PRISM's `<=>`; on booleans `=` means the same.
* Storm gives a state whose deadlock it fixed no rewards; PRISM gives it its state rewards. State
  rewards of deadlocks are left out of the comparison.
* Storm takes mod(-5,5) for 5 and pow(-1,2) for -1, PRISM for 0 and 1; the models stay away from those.
* Storm lets the intervals of merged successors add up beyond 1; we stop at 1.
* In a DTMC an action name carries no meaning; names are compared for MDPs only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import stormpy

MODELS = Path(__file__).parent / "models"

Valuation = tuple[int, ...]
Choice = tuple[str, tuple[str, ...], frozenset[tuple[Valuation, Any]]]


@dataclass(frozen=True)
class Case:
    """A PRISM file of `tests/models` with constants, and the sizes it must have."""

    file: str
    constants: dict[str, str]
    kind: str  # "parametric", "plain" or "interval"
    parameters: tuple[str, ...]
    states: int
    choices: int
    transitions: int

    @property
    def path(self) -> Path:
        return MODELS / self.file

    def __str__(self) -> str:
        constants = ",".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{self.file.removesuffix('.prism')}({constants})"


def cases() -> list[Case]:
    rows = json.loads((MODELS / "cases.json").read_text(encoding="utf-8"))
    return [Case(**{**row, "parameters": tuple(row["parameters"])}) for row in rows]


@dataclass(frozen=True)
class PlainModel:
    """See the module's docstring. `labels` and `state_rewards` go by valuation."""

    variables: tuple[str, ...]
    initial: frozenset[Valuation]
    labels: Mapping[str, frozenset[Valuation]]
    state_rewards: Mapping[str, Mapping[Valuation, str]]
    choices: Mapping[Valuation, Counter[Choice]]
    counts: tuple[int, int, int]


def number_text(value: float | Fraction) -> str:
    """A reward or an interval bound, to 12 digits; negative zero is zero."""
    return f"{float(value) + 0.0:.12g}"


# --- Storm ------------------------------------------------------------------------------------------

_VALUE_TYPES = {
    "parametric": stormpy.RationalFunction,
    "plain": stormpy.Rational,
    "interval": stormpy.RationalInterval,
}


def build_with_storm(path: Path, constants: Mapping[str, str], kind: str, folder: Path) -> Any:
    """Storm's sparse model with all labels, rewards, choice labels and state valuations."""
    text = path.read_text(encoding="utf-8").replace("<=>", "=")
    copy = folder / path.name
    copy.write_text(text, encoding="utf-8")
    program = stormpy.parse_prism_program(str(copy), simplify=False)
    if constants:
        given = ",".join(f"{name}={value}" for name, value in constants.items())
        program, _ = stormpy.instantiate_constants(program, given)
    options = stormpy.BuilderOptions(build_full=True)
    return stormpy.build_model[_VALUE_TYPES[kind]](program, options=options)


def storm_parameters(model: Any) -> dict[str, Any]:
    if not model.has_parameters:
        return {}
    return {variable.name: variable for variable in model.collect_all_parameters()}


def plain_from_storm(
    model: Any, point: Mapping[str, Fraction], only: Sequence[str] | None = None
) -> PlainModel:
    """`only`: the variables that name states, by default all."""
    variables, valuations = _storm_valuations(model, only)
    is_chain = not model.is_nondeterministic_model
    probability, amount = _storm_values(model, point)
    names = sorted(model.reward_models)
    rewards = [model.reward_models[name] for name in names]
    on_states = [list(r.state_rewards) if r.has_state_rewards else None for r in rewards]
    on_choices = [list(r.state_action_rewards) if r.has_state_action_rewards else None for r in rewards]
    deadlocks = set(_members(model, "deadlock"))
    choices: dict[Valuation, Counter[Choice]] = {}
    row = 0
    for state in model.states:
        here: Counter[Choice] = Counter()
        for action in state.actions:
            labels = model.choice_labeling.get_labels_of_choice(row)
            name = "" if is_chain else "".join(sorted(labels))
            earned = tuple("0" if r is None else number_text(amount(r[row])) for r in on_choices)
            distribution = frozenset((valuations[t.column], probability(t.value)) for t in action.transitions)
            here[(name, earned, distribution)] += 1
            row += 1
        choices[valuations[state.id]] = here
    state_rewards = {
        name: {
            valuations[s]: "0" if reward is None else number_text(amount(reward[s]))
            for s in range(model.nr_states)
            if s not in deadlocks
        }
        for name, reward in zip(names, on_states, strict=True)
    }
    labels = {
        label: frozenset(valuations[s] for s in _members(model, label))
        for label in model.labeling.get_labels()
    }
    initial = frozenset(valuations[s] for s in model.initial_states)
    counts = (model.nr_states, model.nr_choices, model.nr_transitions)
    return PlainModel(variables, initial, labels, state_rewards, choices, counts)


def _members(model: Any, label: str) -> list[int]:
    return list(model.labeling.get_states(label)) if model.labeling.contains_label(label) else []


def _storm_valuations(model: Any, only: Sequence[str] | None) -> tuple[tuple[str, ...], list[Valuation]]:
    if not model.has_state_valuations():
        return ("state",), [(state,) for state in range(model.nr_states)]
    stored = model.state_valuations
    named = [v for v in stored.get_all_variables() if only is None or v.name in only]
    columns = {v.name: [int(x) for x in stored.get_values_states(v)] for v in named}
    names = tuple(sorted(columns))
    return names, list(zip(*(columns[name] for name in names), strict=True))


def _storm_values(model: Any, point: Mapping[str, Fraction]) -> tuple[Any, Any]:
    """Two functions from Storm's numbers to ours: for probabilities and for rewards."""
    chosen = {
        variable: stormpy.RationalFunctionCoefficient(str(point[name]))
        for name, variable in storm_parameters(model).items()
    }
    seen: dict[Any, Fraction] = {}

    def at_point(value: Any) -> Fraction:
        if value not in seen:
            seen[value] = Fraction(str(value.evaluate(chosen)))
        return seen[value]

    def ends(value: Any) -> tuple[str, str]:
        upper = min(Fraction(str(value.upper())), Fraction(1))
        return number_text(Fraction(str(value.lower()))), number_text(upper)

    def lower_end(value: Any) -> Fraction:
        return Fraction(str(value.lower()))

    if model.supports_parameters:
        return at_point, at_point
    if model.supports_uncertainty:
        return ends, lower_end
    return (lambda value: Fraction(str(value))), (lambda value: Fraction(str(value)))


# --- tightrope --------------------------------------------------------------------------------------


def plain_from_tightrope(
    model: Any, point: Mapping[str, Fraction], action_names: bool, by_index: bool = False
) -> PlainModel:
    """The same form of a `ParametricMDP` (at the point), an `MDP` or an `IntervalMDP`.

    `by_index` names states by their number, as is done with a model of Storm without valuations.
    """
    structure = model.structure
    names = ("state",) if by_index else tuple(sorted(structure.valuations))
    columns = [
        list(range(structure.states)) if by_index else structure.valuations[name].astype(int).tolist()
        for name in names
    ]
    valuations: list[Valuation] = list(zip(*columns, strict=True))
    value = _our_values(model, point)
    rewards = [structure.rewards[name] for name in sorted(structure.rewards)]
    deadlocks = set(structure.labels["deadlock"].nonzero()[0].tolist())
    choice_rewards = [_texts(reward.choice, structure.choices) for reward in rewards]
    transition_start = structure.transition_start.tolist()
    choice_start = structure.choice_start.tolist()
    successor = structure.successor.tolist()
    choices: dict[Valuation, Counter[Choice]] = {}
    for state in range(structure.states):
        here: Counter[Choice] = Counter()
        for c in range(choice_start[state], choice_start[state + 1]):
            name = structure.action_name(c) if action_names else ""
            row = range(transition_start[c], transition_start[c + 1])
            distribution = frozenset((valuations[successor[t]], value[t]) for t in row)
            here[(name, tuple(texts[c] for texts in choice_rewards), distribution)] += 1
        choices[valuations[state]] = here
    state_rewards = {
        name: {
            valuations[s]: text
            for s, text in enumerate(_texts(reward.state, structure.states))
            if s not in deadlocks
        }
        for name, reward in structure.rewards.items()
    }
    labels = {
        name: frozenset(valuations[s] for s in members.nonzero()[0].tolist())
        for name, members in structure.labels.items()
    }
    counts = (structure.states, structure.choices, structure.transitions)
    initial = frozenset(valuations[s] for s in structure.initial_states)
    return PlainModel(names, initial, labels, state_rewards, choices, counts)


def _texts(rewards: Any, size: int) -> Sequence[str]:
    return ["0"] * size if rewards is None else [number_text(x) for x in rewards.tolist()]


def _our_values(model: Any, point: Mapping[str, Fraction]) -> Sequence[Any]:
    """The value of every transition: a `Fraction`, or the two ends of an interval."""
    if hasattr(model, "expressions"):
        theta = [point[name] for name in model.expressions.parameter_names]
        values = model.expressions.exact_values(theta).to_fractions()
        return [values[e] for e in model.expression.tolist()]
    if hasattr(model, "lower"):
        ends = zip(model.lower.tolist(), model.upper.tolist(), strict=True)
        return [(number_text(low), number_text(high)) for low, high in ends]
    return [Fraction(x) for x in model.probability.tolist()]
