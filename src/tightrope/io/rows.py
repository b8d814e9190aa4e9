"""The assembler of model files: values and rows of any format, checked as a whole, become a model.

Each distinct text of a value is parsed once (`code`); bounds of exact rational intervals round outwards.
Rows are checked on whole arrays; the format says how an error points at a transition or a choice.

Rewards of CTMCs in files are those of states per unit of time, and of departures. Our chains hold `earned`
per state: Σ rate · reward, plus the state's own reward. `with_earnings` adds departure rewards at the exit
rate, `exit_rewards` gives the departure reward with the same expectation, which determines all values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model import numbers as door
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.expressions import ExpressionTable, tabulate
from tightrope.model.mdp import MDP, SUM_TOLERANCE, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import (
    DECIMAL,
    Polynomial,
    exact_number,
    parse_function,
    parse_polynomial,
    parts,
)
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading
from tightrope.prism.expand.program import Definitions
from tightrope.provenance import origin_in

# Numbers and lines of other tools' text files, and errors that point into them.


def nearest_double(text: str) -> float:
    """The double nearest to the number; ValueError where none may stand for it."""
    stripped = text.strip()
    if DECIMAL.fullmatch(stripped) is None:
        return door.double(exact_number(stripped))
    value = float(stripped)
    if not math.isfinite(value):
        raise ValueError("too large for a double")
    if abs(value) < door.TINY and any(digit in "123456789" for digit in re.split("[eE]", stripped)[0]):
        raise ValueError("not 0, but too small for a double, of which the least is 2.3e-308")
    return value


def decimal_text(value: float) -> str:
    """The shortest decimal that is read back as this double; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def distinct_texts(values: FloatArray) -> tuple[list[str], IndexArray]:
    """The texts of many numbers, equal ones once, and which of them each number has."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return [decimal_text(value) for value in distinct.tolist()], inverse.reshape(-1).astype(np.int32)


def texts_of(values: FloatArray) -> list[str]:
    """The text of each number."""
    texts, which = distinct_texts(values)
    return [texts[k] for k in which.tolist()]


def with_numbers(model: Any, files: str) -> Any:
    """A model with numbers on its transitions, for `files` that hold nothing else; parameters are refused."""
    parameters = getattr(model, "parameters", None)
    if parameters is None:
        return model
    if parameters.names:
        raise InputError(
            f"{files} hold numbers only, and this model has parameters ({parameters.listed})",
            hint='write the model at a point (`at={"p": 0.5}`), or write a .drn file',
        )
    return model.instantiate(())


class TextLine(NamedTuple):
    """A line of a file."""

    path: Path
    number: int
    text: str

    def fail(self, message: str, token: str | None = None, hint: str | None = None) -> NoReturn:
        """Raise the error here, at the column where `token` stands."""
        column = self.text.find(token) + 1 if token else 0
        shown = self.text.rstrip("\r\n")
        if column == 0:
            column = len(shown) - len(shown.lstrip()) + 1
        raise InputError(message, Location(str(self.path), self.number, column, shown), hint)


def refuse(path: str | Path, message: str, hint: str | None = None) -> NoReturn:
    """Raise an error about a whole file."""
    raise InputError(message, Location(str(path)), hint)


@contextmanager
def located(path: str | Path) -> Iterator[None]:
    """Errors without a place are those of a file."""
    try:
        yield
    except InputError as error:
        raise InputError(error.message, error.location or Location(str(path)), error.hint) from None


def fail_at_nth(
    path: Path, index: int, counts: Callable[[str], bool], message: str, after: int = 0
) -> NoReturn:
    """Raise the error at the `index`-th line after line `after` that `counts` says yes to."""
    with reading(path) as file:
        seen = 0
        for number, line in enumerate(file, 1):
            if number > after and counts(line):
                if seen == index:
                    TextLine(path, number, line).fail(message)
                seen += 1
    refuse(path, message)


def shorten(text: str, length: int = 60) -> str:
    """The text for a message: in quotes, long ones cut."""
    stripped = text.strip()
    return f"'{stripped if len(stripped) <= length else stripped[:length] + '…'}'"


def whole_number(text: str) -> int | None:
    """A number of at most nine digits; None where the text is none."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdecimal() and len(stripped) < 10 else None


def truth_or_number(text: str) -> int | bool | None:
    """The value of a variable: true, false or a whole number; None where the text is none."""
    if text in ("true", "false"):
        return text == "true"
    return None if whole_number(text.removeprefix("-")) is None else int(text)


def unknown_state(state: int, states: int) -> str:
    """What is wrong with the number of a state that there is not."""
    return f"there is no state {state}: the states are 0 to {states - 1}"


def first_true(wrong: BoolArray) -> int | None:
    """The index of the first offender, or None."""
    return int(np.argmax(wrong)) if wrong.any() else None


_CANCELLED = Fraction(1, 2**40)

Model = ParametricMDP | IntervalMDP | MDP
Amount = float | Polynomial
"""A reward. A number that no double holds is a polynomial, too, so that it stays exact beside others."""


class NumberValues:
    """Doubles and intervals; None lets the values decide. Wrong texts raise ValueError, in all kinds."""

    def __init__(self, value_type: str | None = None):
        self.value_type = value_type
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.texts: list[tuple[str, str]] = []
        self.has_intervals = value_type in ("double-interval", "rational-interval")
        self._exact: dict[int, door.Bounds] = {}

    def code(self, text: str) -> int:
        """The number of this value, the same for the same value."""
        is_interval = text.startswith("[")
        low, high = split_interval(text) if is_interval else (text, text)
        if is_interval and self.value_type not in (None, "double-interval", "rational-interval"):
            raise ValueError(f"an interval in a model of value type {self.value_type}")
        self.has_intervals |= is_interval
        if self.value_type == "rational-interval":
            least, most = exact_number(low), exact_number(high)
            lower = door.bound(least, -math.inf)
            upper = door.bound(min(most, max(least, Fraction(1))), math.inf)
        elif is_interval:
            lower, upper = _nearest_bound(low), _nearest_bound(high)
        else:
            lower = upper = nearest_double(text)
        if is_interval and lower <= 1:
            upper = min(upper, 1.0)  # Storm adds up intervals of merged successors beyond 1
        self.lower.append(lower)
        self.upper.append(upper)
        self.texts.append((low, high))
        return len(self.lower) - 1

    def reward(self, text: str) -> Amount:
        """A reward: a number, or a polynomial where there are parameters."""
        low, high = split_interval(text) if text.startswith("[") else (text, text)
        if low is not high and exact_number(low) != exact_number(high):
            raise ValueError("a reward known only up to an interval is not supported")
        return _exact_amount(exact_number(low))

    def number(self, code: int) -> Fraction:
        """A value as it is written."""
        return self._bounds(code)[0]

    def _bounds(self, code: int) -> door.Bounds:
        if code not in self._exact:
            low, high = (exact_number(text) for text in self.texts[code])
            self._exact[code] = (low, min(high, max(low, Fraction(1))))
        return self._exact[code]

    def check(self, rows: FileRows) -> None:
        """Check that bounds lie in [0, 1] and contain a distribution."""
        lower, upper = (np.array(ends, dtype=np.float64)[rows.code] for ends in (self.lower, self.upper))
        if (bad := first_true(~((lower >= 0) & (upper <= 1) & (lower <= upper)))) is not None:
            hint = f"; {rows.large_hint}" * bool(rows.large_hint and lower[bad] > 1)
            rows.fail_at_transition(bad, f"a probability lies within [0, 1], this one does not{hint}")
        low, high = (np.add.reduceat(bounds, rows.transition_start[:-1]) for bounds in (lower, upper))
        wrong = first_true((low > 1 + SUM_TOLERANCE) | (high < 1 - SUM_TOLERANCE))
        if wrong is None:
            return
        row = slice(rows.transition_start[wrong], rows.transition_start[wrong + 1])
        if (lower[row] == upper[row]).all():
            what = f"the probabilities of this {rows.choice} sum to {low[wrong]:.12g}, not 1"
        else:
            total = f"[{low[wrong]:.12g}, {high[wrong]:.12g}]"
            what = f"no distribution fits these intervals: their bounds sum to {total}"
        rows.fail_at_choice(wrong, what)

    def wrong_sum(self, rows: FileRows) -> int | None:
        """The first choice whose values do not sum to 1, where `check` has not seen to that."""
        return None

    def model(self, structure: Structure, codes: IndexArray) -> Model | ParametricCTMC:
        """The model of these values; in one of intervals bounds are settled (`model.numbers`)."""
        lower, upper = (np.array(ends, dtype=np.float64)[codes] for ends in (self.lower, self.upper))
        if not self.has_intervals:
            return MDP(structure, lower)
        for code, value in enumerate(self.lower):
            if value == self.upper[code] == 1 and self.number(code) != 1 and (codes == code).any():
                index = int(np.argmax(codes == code))
                raise door.NotHeldError("not 1, and the double nearest to it is", index=index)
        settled = door.settle_rows(
            structure.transition_start, lower, upper, lambda t: self._bounds(int(codes[t]))
        )
        return IntervalMDP(structure, *settled)


class ExactValues:
    """Polynomials in the parameters and quotients of these; without parameters, rationals."""

    has_intervals = False

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self.index = {name: k for k, name in enumerate(parameters.names)}
        self.table = ExpressionTable(parameters.names)

    def code(self, text: str) -> int:
        if text.startswith("["):
            raise ValueError("an interval in a model of exact values")
        function = parse_function(text, self.index)
        for side in parts(function):
            _check_coefficients(side)
        return self.table.add(function)

    def reward(self, text: str) -> Amount:
        polynomial = parse_polynomial(text, self.index)
        _check_coefficients(polynomial)
        return polynomial if not polynomial.is_constant else _exact_amount(polynomial.constant_term)

    def number(self, code: int) -> Fraction:
        function = self.table.function(code)
        assert isinstance(function, Polynomial)
        return function.constant_term

    def check(self, rows: FileRows) -> None:
        """Sums and ranges are proved by the model."""

    def model(self, structure: Structure, codes: IndexArray) -> Model | ParametricCTMC:
        expressions, expression = self.table.freeze(codes)
        return ParametricMDP.within_probabilities(structure, expression, expressions, self.parameters)

    def wrong_sum(self, rows: FileRows) -> int | None:
        known: dict[tuple[int, ...], bool] = {}
        for choice, (start, end) in enumerate(pairwise(rows.transition_start.tolist())):
            row = tuple(sorted(rows.code[start:end].tolist()))
            if row not in known:
                zero = Polynomial({})
                known[row] = sum(map(self.table.function, row), start=zero) == Polynomial.constant(1)
            if not known[row]:
                return choice
        return None


class RateValues(ExactValues):
    """Numbers or polynomials; rewards of choices are earned on leaving, or `per_time`."""

    def __init__(self, parameters: Parameters, per_time: bool = False):
        super().__init__(parameters)
        self.per_time = per_time

    def code(self, text: str) -> int:
        if text.lstrip().startswith("["):
            raise ValueError("an interval: intervals of rates are not read")
        rate = self.rate(text)
        _check_coefficients(rate)
        return self.table.add(rate)

    def rate(self, text: str) -> Polynomial:
        """The number or polynomial of a text."""
        return parse_polynomial(text, self.index) if self.index else Polynomial.constant(exact_number(text))

    def reward(self, text: str) -> float:
        return nearest_double(text)

    def check(self, rows: FileRows) -> None:
        functions = map(self.table.function, range(len(self.table)))
        negative = [code for code, f in enumerate(functions) if f.is_constant and f.evaluate(()) < 0]
        if (wrong := first_true(np.isin(rows.code, negative))) is not None:
            rows.fail_at_transition(wrong, "a rate is a number of at least 0, this one is not")

    def model(self, structure: Structure, codes: IndexArray) -> ParametricCTMC:
        expressions, expression = self.table.freeze(codes)
        alone = ParametricCTMC(replace(structure, rewards={}), expression, expressions, self.parameters)
        return with_earnings(alone, structure.rewards, self.per_time)

    def wrong_sum(self, rows: FileRows) -> None:
        return None


Values = NumberValues | ExactValues


@dataclass(frozen=True, eq=False)
class FileRows:
    """The transitions of a file; `code` is each value, `large_hint` what values above 1 may be."""

    path: Path
    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    code: IndexArray
    values: Values
    action: IndexArray
    action_names: tuple[str, ...]
    is_chain: bool
    choice: str
    fail_at_transition: Callable[[int, str], NoReturn]
    fail_at_choice: Callable[[int, str], NoReturn]
    comments: str = ""
    large_hint: str = ""

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    def check(self) -> None:
        """Every choice leads to states of the model, to none of them twice, with values that are right."""
        start, successor = self.transition_start, self.successor
        if (empty := first_true(np.diff(start) == 0)) is not None:
            self.fail_at_choice(empty, f"this {self.choice} has no transition")
        if (bad := first_true((successor < 0) | (successor >= self.states))) is not None:
            self.fail_at_transition(bad, unknown_state(successor[bad], self.states))
        choice = np.repeat(np.arange(len(start) - 1), np.diff(start))
        if not ((successor[1:] > successor[:-1]) | (choice[1:] != choice[:-1])).all():
            order = np.lexsort((successor, choice))
            same = (successor[order[1:]] == successor[order[:-1]]) & (choice[order[1:]] == choice[order[:-1]])
            if same.any():
                again = int(order[1:][same].min())
                what = f"a second transition of this {self.choice} to state {successor[again]}"
                self.fail_at_transition(again, what)
        self.values.check(self)

    def model(
        self,
        labels: Mapping[str, BoolArray],
        rewards: Mapping[str, RewardStructure],
        valuations: Mapping[str, AnyArray],
    ) -> Model | ParametricCTMC:
        """The model; an error about it as a whole names the file, and the line where that is known."""
        starts = np.flatnonzero(labels.get("init", False))
        if not len(starts):
            refuse(self.path, "no state has the label 'init', so the initial state is not known")
        try:
            structure = Structure(
                choice_start=self.choice_start,
                transition_start=self.transition_start,
                successor=self.successor,
                initial_states=tuple(starts.tolist()),
                action=self.action,
                action_names=self.action_names,
                labels=labels,
                rewards=rewards,
                valuations=valuations,
                declared_mdp=not self.is_chain,
                definitions=Definitions.in_comments(self.comments),
                **origin_in(self.comments, str(self.path)),
            )
            return self.values.model(structure, self.code)
        except InputError as error:
            if isinstance(error, door.NotHeldError) and isinstance(self.values, NumberValues):
                self.fail_at_transition(error.index, error.message)
            wrong = None if error.location else self.values.wrong_sum(self)
            if wrong is not None:
                self.fail_at_choice(wrong, error.message)
            raise InputError(error.message, error.location or Location(str(self.path)), error.hint) from None


def labels_of(structure: Structure) -> dict[str, BoolArray]:
    """The model's, and always "init", by which a file names the initial state."""
    start = np.zeros(structure.states, dtype=np.bool_)
    start[list(structure.initial_states)] = True
    return {**structure.labels, "init": start}


def split_interval(text: str) -> tuple[str, str]:
    """The two ends of `[0.1, 0.3]`, as texts."""
    inner = text.strip()
    low, comma, high = inner.removeprefix("[").removesuffix("]").partition(",")
    if not inner.startswith("[") or not inner.endswith("]") or not comma:
        raise ValueError("an interval such as [0.1, 0.3] expected")
    return low, high


def _nearest_bound(text: str) -> float:
    """The double nearest to an interval's bound."""
    value = nearest_double(text)
    return door.bound(exact_number(text)) if value == 1 else value


def _exact_amount(value: Fraction) -> Amount:
    """A reward that is a number: its double, where it is one."""
    number = door.double(value)
    return number if Fraction(number) == value else Polynomial.constant(value)


def _check_coefficients(polynomial: Polynomial) -> None:
    for coefficient in polynomial.terms.values():
        door.double(coefficient)


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
        held = reward.per_choice(model.structure)
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
