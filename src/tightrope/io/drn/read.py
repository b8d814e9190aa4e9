"""Read DRN files: models in discrete time, POMDPs, Markov automata and CTMCs. Checks of the whole file.

* `@type: POMDP`: the number of the observation follows each state, `{3}`.
* `@type: Markov Automaton` or `MA`: the exit rate follows each state, `!2.5`; `!0` marks immediate choices.
  Transitions have probabilities. Parameters and intervals are refused.
* `@type: CTMC`: one action per state; transitions have rates, exact if written as fraction or decimal, or
  polynomials. The exit rate must equal their sum up to the rounding of six digits. Files with probabilities
  are refused. State rewards are per unit of time, action rewards per departure (`io.rate_rewards`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.drn import parse
from tightrope.io.rate_rewards import with_earnings
from tightrope.io.text import NumberValues, RowCheck, fail_at_nth, nearest_double, shorten
from tightrope.model import numbers as door
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC, rate_box
from tightrope.model.expressions import ExpressionTable
from tightrope.model.function_text import exact_number, parse_polynomial
from tightrope.model.mdp import MDP
from tightrope.model.parameters import Parameters, narrow_domain, parse_domain
from tightrope.model.polynomial import Polynomial
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading
from tightrope.prism.expand.program import Definitions
from tightrope.provenance import origin_in


class _BodyAssembly:
    def __init__(self, body: parse.Body):
        self.body = body
        self.states = len(body.state_entry)
        self.choice_start = _offsets(body.choice_start, len(body.choice_entry))
        self.transition_start = _offsets(body.transition_start, len(body.successor))
        self.successor: IndexArray = np.frombuffer(body.successor, dtype=np.int32).copy()
        self.code: IndexArray = np.frombuffer(body.code, dtype=np.int32).copy()
        self.state_entry: IndexArray = np.frombuffer(body.state_entry, dtype=np.int32)
        self.choice_entry: IndexArray = np.frombuffer(body.choice_entry, dtype=np.int32)

    def model(self) -> parse.Model | ParametricCTMC:
        self.check_counts()
        self.check_rows()
        labels = self.labels()
        action_of_entry = np.array([action for _, action in self.body.choice_entries], dtype=np.int32)
        try:
            structure = Structure(
                choice_start=self.choice_start,
                transition_start=self.transition_start,
                successor=self.successor,
                initial_states=self.initial_states(labels),
                action=action_of_entry[self.choice_entry],
                action_names=tuple(self.body.actions),
                labels=labels,
                rewards=self.rewards(),
                valuations=self.body.valuations.columns(self.states),
                declared_mdp=not self.body.header.is_chain,
                definitions=Definitions.in_comments(self.body.header.comments),
                **origin_in(self.body.header.comments, str(self.body.path)),
            )
            return self.body.values.model(structure, self.code)
        except InputError as error:
            self.fail_with_place(error)

    def check_counts(self) -> None:
        header = self.body.header
        for count, declared, what in (
            (self.states, header.states, "states"),
            (len(self.choice_entry), header.choices, "choices"),
        ):
            if declared is not None and count != declared:
                raise InputError(
                    f"the file declares {declared} {what} and has {count}",
                    Location(str(self.body.path)),
                    hint="it may be cut off" if count < declared else None,
                )
        if self.states == 0:
            raise InputError("the model has no state", Location(str(self.body.path)))

    def check_rows(self) -> None:
        rows = RowCheck(
            self.transition_start, self.successor, "action", self.fail_at_transition, self.fail_at_choice
        )
        rows.check_targets(self.states)
        values = self.body.values
        if isinstance(values, NumberValues):
            rows.check_probabilities(np.array(values.lower)[self.code], np.array(values.upper)[self.code])

    def labels(self) -> dict[str, BoolArray]:
        """Entry by entry: which labels the states with that text have."""
        named, rewards = len(self.body.labels), len(self.body.header.reward_names)
        size = named * self.states + 8 * rewards * (self.states + len(self.choice_entry))
        try:
            door.check_room(size, f"{named:,} labels and {rewards:,} reward models")
        except InputError as error:
            raise InputError(error.message, Location(str(self.body.path)), error.hint) from None
        entries = self.body.state_entries
        has = np.zeros((len(self.body.labels), len(entries)), dtype=np.bool_)
        for entry, (_, numbers) in enumerate(entries):
            has[list(numbers), entry] = True
        return {name: has[number][self.state_entry] for name, number in self.body.labels.items()}

    def initial_states(self, labels: dict[str, BoolArray]) -> tuple[int, ...]:
        starts = np.flatnonzero(labels["init"]) if "init" in labels else np.zeros(0, np.int64)
        if len(starts) == 0:
            raise InputError("no state has the label 'init', so the initial state is not known")
        return tuple(starts.tolist())

    def rewards(self) -> dict[str, RewardStructure]:
        """A part in which every number is 0 is left out, unless the file notes that it is there."""
        body, notes = self.body, self.body.header.notes
        names = body.header.reward_names
        of_states = [rewards or (0.0,) * len(names) for rewards, _ in body.state_entries]
        of_choices = [rewards or (0.0,) * len(names) for rewards, _ in body.choice_entries]
        on_state, on_choice = (_reward_table(rows, len(names)) for rows in (of_states, of_choices))
        structures: dict[str, RewardStructure] = {}
        for k, name in enumerate(names):
            if any(_has_parameters(row[k]) for row in (*of_states, *of_choices)):
                structures[name] = self.parametric(
                    name, [row[k] for row in of_states], [row[k] for row in of_choices]
                )
                continue
            state, choice = on_state[:, k][self.state_entry], on_choice[:, k][self.choice_entry]
            self.check_totals(state, choice, [row[k] for row in of_states], [row[k] for row in of_choices])
            noted = notes.rewards.get(name) if notes else None
            structures[name] = RewardStructure(
                state if state.any() or (noted is not None and "state" in noted) else None,
                choice if choice.any() or (noted is not None and "choice" in noted) else None,
            )
        return structures

    def check_totals(
        self,
        state: FloatArray,
        choice: FloatArray,
        states: Sequence[parse.Amount],
        choices: Sequence[parse.Amount],
    ) -> None:
        """What a state and its choice earn together, by the rule of the model's door."""
        try:
            door.check_choice_totals(
                self.choice_start,
                state,
                choice,
                lambda s: _polynomial(states[self.state_entry[s]]).constant_term,
                lambda c: _polynomial(choices[self.choice_entry[c]]).constant_term,
            )
        except door.NotHeldError as error:
            self.fail_at_choice(error.index, error.message)

    def parametric(
        self, name: str, of_states: Sequence[parse.Amount], of_choices: Sequence[parse.Amount]
    ) -> ParametricReward:
        """Polynomials of choices, those of their states included."""
        values = self.body.values
        assert isinstance(values, parse.ExactValues)
        table = ExpressionTable(values.parameters.names)
        owner = np.repeat(self.state_entry, np.diff(self.choice_start)).astype(np.int64)
        pairs, which = np.unique(owner * len(of_choices) + self.choice_entry, return_inverse=True)
        number = [
            table.add(
                _polynomial(of_states[pair // len(of_choices)])
                + _polynomial(of_choices[pair % len(of_choices)])
            )
            for pair in pairs.tolist()
        ]
        expressions, expression = table.freeze(np.array(number, dtype=np.int32)[which.reshape(-1)])
        return ParametricReward(name, expressions, expression)

    def fail_with_place(self, error: InputError) -> NoReturn:
        """An error of the model as a whole: say in which file, and in which line where that is known."""
        values = self.body.values
        if isinstance(error, door.NotHeldError) and isinstance(values, NumberValues):
            self.fail_at_transition(error.index, error.message)
        if isinstance(values, parse.ExactValues) and values.sum_to_one and not error.location:
            one, total = Polynomial.constant(1), values.table.sum
            for choice, (start, end) in enumerate(pairwise(self.transition_start.tolist())):
                if values.table.function(total(self.code[start:end].tolist())) != one:
                    self.fail_at_choice(choice, error.message)
        raise InputError(error.message, error.location or Location(str(self.body.path)), error.hint)

    def fail_at_choice(self, choice: int, message: str) -> NoReturn:
        """At the action's line, or at the state's where the file leaves action lines out."""
        body = self.body
        if body.has_unwritten_choices:
            state = int(np.searchsorted(self.choice_start, choice, side="right")) - 1
            fail_at_nth(body.path, state, parse.is_state_line, message, body.header.model_line)
        fail_at_nth(body.path, choice, parse.is_choice_line, message, body.header.model_line)

    def fail_at_transition(self, transition: int, message: str) -> NoReturn:
        body = self.body
        fail_at_nth(body.path, transition, parse.is_transition_line, message, body.header.model_line)


def _offsets(starts: array[int], total: int) -> OffsetArray:
    return np.append(np.frombuffer(starts, dtype=np.int64), total) if starts else np.zeros(1, np.int64)


def _reward_table(rows: list[tuple[parse.Amount, ...]], width: int) -> FloatArray:
    """One row per entry, in doubles; polynomials with parameters are left to `parametric`."""
    numbers = [[_number(amount) for amount in row] for row in rows]
    return np.array(numbers, dtype=np.float64).reshape(len(rows), width)


def _has_parameters(amount: parse.Amount) -> bool:
    return isinstance(amount, Polynomial) and not amount.is_constant


def _number(amount: parse.Amount) -> float:
    if not isinstance(amount, Polynomial):
        return amount
    return door.double(amount.constant_term) if amount.is_constant else 0.0


def _polynomial(amount: parse.Amount) -> Polynomial:
    return amount if isinstance(amount, Polynomial) else Polynomial.constant(Fraction(amount))


def read_drn(
    path: str | Path,
    *,
    box: str | None = None,
    domain: str | None = None,
    progress: parse.Progress | None = None,
) -> parse.Model | POMDP:
    """The model in a DRN file; `values` says which kind comes out.

    `box` and `domain` (texts as on the command line) replace the domain of the parameters, which
    otherwise is the one noted in the file, or [0, 1] for each.
    """
    place = Path(path)
    body, model = _read(place, lambda header: _values(place, header, box, domain), progress=progress)
    assert not isinstance(model, ParametricCTMC)
    return _observed(body, model) if body.header.is_observed else model


def _observed(body: parse.Body, model: parse.Model) -> POMDP:
    """The model with its observations."""
    missing = [state for state, entry in enumerate(body.state_entry) if entry not in body.observations]
    if missing:
        message = (
            f"state {missing[0]} has no observation: in a partially observable model all states have one"
        )
        fail_at_nth(body.path, missing[0], parse.is_state_line, message, body.header.model_line)
    number = np.array([body.observations[entry] for entry in body.state_entry])
    noted = () if body.header.notes is None else body.header.notes.observations
    used, look = np.unique(number, return_inverse=True)
    names = tuple(noted[k] if k < len(noted) else str(k) for k in used.tolist())
    try:
        return POMDP(model, look.reshape(-1).astype(np.int32), names)
    except InputError as error:
        raise InputError(error.message, Location(str(body.path)), error.hint) from None


def _read(
    path: Path,
    values_of: Callable[[parse.Header], parse.Values],
    continuous: bool = False,
    progress: parse.Progress | None = None,
) -> tuple[parse.Body, parse.Model | ParametricCTMC]:
    """What stands in a file, and its model; errors point at the line where something is wrong."""
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = parse.read_header(path, lines, continuous)
        body = parse.Body(path, header, values_of(header))
        body.read(lines, progress)
    return body, _BodyAssembly(body).model()


def _values(path: Path, header: parse.Header, box: str | None, domain: str | None) -> parse.Values:
    names = header.parameters
    parameters = narrow_domain(Parameters.unit_box(names), box, domain)
    if box is None and domain is None and header.notes is not None and header.notes.domain:
        try:
            parameters = parse_domain(header.notes.domain, names)
        except InputError as error:
            raise InputError(f"the noted domain is damaged: {error.message}", Location(str(path))) from None
    if header.value_type in ("parametric", "rational"):
        return parse.ExactValues(parameters)
    return parse.PlainValues(header.value_type)


_HEADER_LINES = 40


def declared_type(path: Path) -> str:
    """The type of model that a DRN file says it holds, in small letters; empty where it says none."""
    with reading(path) as file:
        head = [line.strip().lower() for _, line in zip(range(_HEADER_LINES), file, strict=False)]
    for line, following in pairwise([*head, ""]):
        if line.startswith("@type:"):
            return line.partition(":")[2].strip()
        if line == "@type":
            return following
    return ""


def is_automaton(path: Path) -> bool:
    """Whether a DRN file says that it holds a Markov automaton."""
    return declared_type(path) in parse.AUTOMATON_TYPES


def is_ctmc(path: Path) -> bool:
    """Whether a DRN file says that it holds a chain in continuous time."""
    return declared_type(path) == "ctmc"


def read_automaton_drn(path: str | Path) -> MarkovAutomaton:
    """The automaton in a DRN file."""
    path = Path(path)

    def values_of(header: parse.Header) -> parse.PlainValues:
        if header.value_type not in (None, "double", "rational"):
            raise InputError(
                f"a Markov automaton of value type {header.value_type} is not read: only plain ones are",
                Location(str(path)),
            )
        return parse.PlainValues(None)

    body, mdp = _read(path, values_of, continuous=True)
    if not isinstance(mdp, MDP):
        raise InputError("a Markov automaton with intervals is not read", Location(str(path)))
    missing = [state for state, entry in enumerate(body.state_entry) if entry not in body.exit_texts]
    if missing:
        raise InputError(
            f"state {missing[0]} has no exit rate",
            Location(str(path)),
            "write it behind the state: !2.5, or !0 where choices are immediate",
        )
    try:
        rates = np.array([nearest_double(body.exit_texts[entry]) for entry in body.state_entry])
        return MarkovAutomaton(mdp.structure, mdp.probability, rates)
    except ValueError as error:
        message = error.message if isinstance(error, InputError) else f"an exit rate: {error}"
        raise InputError(message, Location(str(path))) from None


_CLOSE = Fraction(5, 10**6)
"""How far, relatively, an exit rate may be from the sum of the rates: six digits, rounded, are as close."""


def read_rates_drn(path: str | Path, box: str | None = None, domain: str | None = None) -> ParametricCTMC:
    """Read a chain; parameters lie in [0, 1000] unless `box`, `domain` or a note states a range."""

    def values_of(header: parse.Header) -> RateValues:
        noted = header.notes.domain or None if header.notes is not None else None
        constraints = noted if box is None and domain is None else domain
        return RateValues(narrow_domain(rate_box(header.parameters), box, constraints))

    body, chain = _read(Path(path), values_of, continuous=True)
    assert isinstance(chain, ParametricCTMC)
    _check_exits(chain, body)
    return chain


class RateValues(parse.ExactValues):
    """Rates: numbers, or polynomials in the parameters."""

    sum_to_one = False

    def code(self, text: str) -> int:
        if text.lstrip().startswith("["):
            raise ValueError("an interval: intervals of rates are not read")
        rate = self.rate(text)
        parse.check_coefficients(rate)
        return self.table.add(rate)

    def rate(self, text: str) -> Polynomial:
        """The number or polynomial of a text."""
        if self.index:
            return parse_polynomial(text, self.index)
        return Polynomial.constant(exact_number(text))

    def reward(self, text: str) -> float:
        return nearest_double(text)

    def model(self, structure: Structure, codes: IndexArray) -> ParametricCTMC:
        expressions, expression = self.table.freeze(codes)
        alone = ParametricCTMC(replace(structure, rewards={}), expression, expressions, self.parameters)
        return with_earnings(alone, dict(structure.rewards))


def _check_exits(chain: ParametricCTMC, body: parse.Body) -> None:
    """Refuse files whose exit rates are not the sums of their rates."""
    values, start = body.values, chain.transition_start
    assert isinstance(values, RateValues)
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for state, entry in enumerate(body.state_entry):
        row = tuple(chain.expression[start[state] : start[state + 1]].tolist())
        if entry not in body.exit_texts or (entry, row) in seen:
            continue
        seen.add((entry, row))
        try:
            exit_rate = values.rate(body.exit_texts[entry])
        except ValueError as error:
            shown = shorten(body.exit_texts[entry])
            raise InputError(
                f"the exit rate {shown} of state {state}: {error}", Location(str(body.path))
            ) from None
        total = sum((chain.expressions.polynomial(e) for e in row), Polynomial({}))
        missed = (exit_rate - total).terms.values()
        size = max((abs(c) for c in total.terms.values()), default=Fraction(1))
        if any(abs(c) > _CLOSE * size for c in missed):
            raise InputError(
                f"state {state}: the exit rate is {body.exit_texts[entry]}, but the rates of its transitions "
                f"sum to {total.text(chain.parameters.names)}",
                Location(str(body.path)),
                "behind transitions stand rates, not probabilities",
            )
