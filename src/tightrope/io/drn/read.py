"""Read DRN files: models in discrete time, POMDPs, Markov automata and CTMCs. Checks of the whole file.

* `@type: POMDP`: the number of the observation follows each state, `{3}`.
* `@type: Markov Automaton` or `MA`: the exit rate follows each state, `!2.5`; `!0` marks immediate choices.
  Transitions have probabilities. Parameters and intervals are refused.
* `@type: CTMC`: one action per state; transitions have rates, exact if written as fraction or decimal, or
  polynomials. The exit rate must equal their sum up to the rounding of six digits. Files with probabilities
  are refused. State rewards are per unit of time, action rewards per departure (`io.rows`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io import rows
from tightrope.io.drn import parse
from tightrope.io.text import fail_at_nth, located, nearest_double, refuse, shorten
from tightrope.model import numbers as door
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC, rate_box
from tightrope.model.expressions import tabulate
from tightrope.model.mdp import MDP
from tightrope.model.parameters import Parameters, narrow_domain, parse_domain
from tightrope.model.polynomial import Polynomial
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading


class _BodyAssembly:
    """The rows, labels and rewards of a file that has been read."""

    def __init__(self, body: parse.Body):
        self.body, header = body, body.header
        self.states = len(body.state_entry)
        self.state_entry: IndexArray = np.frombuffer(body.state_entry, dtype=np.int32)
        self.choice_entry: IndexArray = np.frombuffer(body.choice_entry, dtype=np.int32)
        self._check_counts()
        action_of_entry = np.array([action for _, action in body.choice_entries], dtype=np.int32)
        self.rows = rows.FileRows(
            body.path,
            _offsets(body.choice_start, len(body.choice_entry)),
            _offsets(body.transition_start, len(body.successor)),
            np.frombuffer(body.successor, dtype=np.int32).copy(),
            np.frombuffer(body.code, dtype=np.int32).copy(),
            body.values,
            action_of_entry[self.choice_entry],
            tuple(body.actions),
            bool(header.is_chain),
            "action",
            lambda transition, what: self._fail(transition, parse.is_transition_line, what),
            self._fail_at_choice,
            header.comments,
        )

    def model(self) -> rows.Model | ParametricCTMC:
        self.rows.check()
        with located(self.body.path):
            labels, rewards = self._labels(), self._rewards()
        return self.rows.model(labels, rewards, self.body.valuations.columns(self.states))

    def _check_counts(self) -> None:
        header, path = self.body.header, self.body.path
        for count, declared, what in (
            (self.states, header.states, "states"),
            (len(self.choice_entry), header.choices, "choices"),
        ):
            if declared is not None and count != declared:
                hint = "it may be cut off" if count < declared else None
                refuse(path, f"the file declares {declared} {what} and has {count}", hint)
        if self.states == 0:
            refuse(path, "the model has no state")

    def _labels(self) -> dict[str, BoolArray]:
        """Entry by entry: which labels the states with that text have."""
        named, rewards = len(self.body.labels), len(self.body.header.reward_names)
        size = named * self.states + 8 * rewards * (self.states + len(self.choice_entry))
        door.check_room(size, f"{named:,} labels and {rewards:,} reward models")
        entries = self.body.state_entries
        has = np.zeros((named, len(entries)), dtype=np.bool_)
        for entry, (_, numbers) in enumerate(entries):
            has[list(numbers), entry] = True
        return {name: has[number][self.state_entry] for name, number in self.body.labels.items()}

    def _rewards(self) -> dict[str, RewardStructure]:
        """A part in which every number is 0 is left out, unless the file notes that it is there."""
        notes, names = self.body.header.notes, self.body.header.reward_names
        nothing = (0.0,) * len(names)
        structures: dict[str, RewardStructure] = {}
        for k, name in enumerate(names):
            of_states = [(rewards or nothing)[k] for rewards, _ in self.body.state_entries]
            of_choices = [(rewards or nothing)[k] for rewards, _ in self.body.choice_entries]
            if any(isinstance(each, Polynomial) and not each.is_constant for each in of_states + of_choices):
                structures[name] = self._parametric(name, of_states, of_choices)
                continue
            state, choice = _doubles(of_states)[self.state_entry], _doubles(of_choices)[self.choice_entry]
            self.rows.check_totals(
                state,
                choice,
                lambda s, own=of_states: _polynomial(own[self.state_entry[s]]).constant_term,  # type: ignore[misc]
                lambda c, own=of_choices: _polynomial(own[self.choice_entry[c]]).constant_term,  # type: ignore[misc]
            )
            noted = (notes.rewards.get(name) if notes else None) or ()
            structures[name] = RewardStructure(
                state if state.any() or "state" in noted else None,
                choice if choice.any() or "choice" in noted else None,
            )
        return structures

    def _parametric(
        self, name: str, of_states: Sequence[rows.Amount], of_choices: Sequence[rows.Amount]
    ) -> ParametricReward:
        """Polynomials of choices, those of their states included."""
        values = self.body.values
        assert isinstance(values, rows.ExactValues)
        owner = np.repeat(self.state_entry, np.diff(self.rows.choice_start)).astype(np.int64)
        pairs, which = np.unique(owner * len(of_choices) + self.choice_entry, return_inverse=True)
        places = (divmod(pair, len(of_choices)) for pair in pairs.tolist())
        sums = (_polynomial(of_states[s]) + _polynomial(of_choices[c]) for s, c in places)
        expressions, expression = tabulate(values.parameters.names, sums)
        return ParametricReward(name, expressions, expression[which.reshape(-1)])

    def _fail(self, index: int, counts: Callable[[str], bool], message: str) -> NoReturn:
        fail_at_nth(self.body.path, index, counts, message, self.body.header.model_line)

    def _fail_at_choice(self, choice: int, message: str) -> NoReturn:
        """At the action's line, or at the state's where the file leaves action lines out."""
        if self.body.has_unwritten_choices:
            state = int(np.searchsorted(self.rows.choice_start, choice, side="right")) - 1
            self._fail(state, parse.is_state_line, message)
        self._fail(choice, parse.is_choice_line, message)


def _offsets(starts: array[int], total: int) -> OffsetArray:
    return np.append(np.frombuffer(starts, dtype=np.int64), total) if starts else np.zeros(1, np.int64)


def _doubles(amounts: Sequence[rows.Amount]) -> FloatArray:
    plain = [door.double(a.constant_term) if isinstance(a, Polynomial) else a for a in amounts]
    return np.array(plain, dtype=np.float64)


def _polynomial(amount: rows.Amount) -> Polynomial:
    return amount if isinstance(amount, Polynomial) else Polynomial.constant(Fraction(amount))


def read_drn(
    path: str | Path,
    *,
    box: str | None = None,
    domain: str | None = None,
    progress: parse.Progress | None = None,
) -> rows.Model | POMDP:
    """Read a model; `box` and `domain` replace the noted domain of the parameters."""
    place = Path(path)
    body, model = _read(place, lambda header: _values(place, header, box, domain), progress=progress)
    assert not isinstance(model, ParametricCTMC)
    return _observed(body, model) if body.header.is_observed else model


def _observed(body: parse.Body, model: rows.Model) -> POMDP:
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
    with located(body.path):
        return POMDP(model, look.reshape(-1).astype(np.int32), names)


def _read(
    path: Path,
    values_of: Callable[[parse.Header], rows.Values],
    continuous: bool = False,
    progress: parse.Progress | None = None,
) -> tuple[parse.Body, rows.Model | ParametricCTMC]:
    """What stands in a file, and its model; errors point at the line where something is wrong."""
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = parse.read_header(path, lines, continuous)
        body = parse.Body(path, header, values_of(header))
        body.read(lines, progress)
    return body, _BodyAssembly(body).model()


def _values(path: Path, header: parse.Header, box: str | None, domain: str | None) -> rows.Values:
    names = header.parameters
    parameters = narrow_domain(Parameters.unit_box(names), box, domain)
    if box is None and domain is None and header.notes is not None and header.notes.domain:
        try:
            parameters = parse_domain(header.notes.domain, names)
        except InputError as error:
            refuse(path, f"the noted domain is damaged: {error.message}")
    exact = header.value_type in ("parametric", "rational")
    return rows.ExactValues(parameters) if exact else rows.NumberValues(header.value_type)


_HEADER_LINES = 40


def declared_type(path: Path) -> str:
    """The type of model that a DRN file says it holds, in small letters; empty where it says none."""
    with reading(path) as file:
        head = [line.strip().lower() for _, line in zip(range(_HEADER_LINES), file, strict=False)]
    for line, following in pairwise([*head, ""]):
        if line.startswith("@type:") or line == "@type":
            name = line.partition(":")[2].strip() or following
            return "ma" if name in parse.AUTOMATON_TYPES else name
    return ""


def read_automaton_drn(path: str | Path) -> MarkovAutomaton:
    """The automaton in a DRN file."""
    path = Path(path)

    def values_of(header: parse.Header) -> rows.NumberValues:
        if header.value_type not in (None, "double", "rational"):
            kind = header.value_type
            refuse(path, f"a Markov automaton of value type {kind} is not read: only plain ones are")
        return rows.NumberValues()

    body, mdp = _read(path, values_of, continuous=True)
    if not isinstance(mdp, MDP):
        refuse(path, "a Markov automaton with intervals is not read")
    missing = [state for state, entry in enumerate(body.state_entry) if entry not in body.exit_texts]
    if missing:
        refuse(
            path,
            f"state {missing[0]} has no exit rate",
            "write it behind the state: !2.5, or !0 where choices are immediate",
        )
    try:
        rates = np.array([nearest_double(body.exit_texts[entry]) for entry in body.state_entry])
        return MarkovAutomaton(mdp.structure, mdp.probability, rates)
    except ValueError as error:
        refuse(path, error.message if isinstance(error, InputError) else f"an exit rate: {error}")


_CLOSE = Fraction(5, 10**6)
"""How far, relatively, an exit rate may be from the sum of the rates: six digits, rounded, are as close."""


def read_rates_drn(path: str | Path, box: str | None = None, domain: str | None = None) -> ParametricCTMC:
    """Read a chain; parameters lie in [0, 1000] unless `box`, `domain` or a note states a range."""

    def values_of(header: parse.Header) -> rows.RateValues:
        noted = header.notes.domain or None if header.notes is not None else None
        constraints = noted if box is None and domain is None else domain
        return rows.RateValues(narrow_domain(rate_box(header.parameters), box, constraints))

    body, chain = _read(Path(path), values_of, continuous=True)
    assert isinstance(chain, ParametricCTMC)
    _check_exits(chain, body)
    return chain


def _check_exits(chain: ParametricCTMC, body: parse.Body) -> None:
    """Refuse files whose exit rates are not the sums of their rates."""
    values, exits = body.values, rows.ExitRates(chain)
    assert isinstance(values, rows.RateValues)
    seen: set[tuple[int, Polynomial]] = set()
    for state, entry in enumerate(body.state_entry):
        if entry not in body.exit_texts or (entry, total := exits[state]) in seen:
            continue
        seen.add((entry, total))
        text = body.exit_texts[entry]
        try:
            missed = (values.rate(text) - total).terms.values()
        except ValueError as error:
            refuse(body.path, f"the exit rate {shorten(text)} of state {state}: {error}")
        size = max((abs(c) for c in total.terms.values()), default=Fraction(1))
        if any(abs(c) > _CLOSE * size for c in missed):
            raise InputError(
                f"state {state}: the exit rate is {text}, but the rates of its transitions sum to "
                f"{total.text(chain.parameters.names)}",
                Location(str(body.path)),
                "behind transitions stand rates, not probabilities",
            )
