"""Numbers, polynomials and rows in the text files of other tools, and errors that point into them.

*Numbers* are `0.25`, `1e-3`, `3/10`; exactly, or as the nearest double. Python's own `float` and `Fraction`
accept more than the formats do (`nan`, `1_000`, digits of other scripts), and an exponent such as 1e999999999
would keep them busy for hours. Each distinct text of a probability or reward is understood once and gets a
small integer (`code`); the model is made of all of them at the end. Decimals become the nearest doubles; the
bounds of exact rational intervals, where they are no doubles, are rounded outwards so that nothing is lost.
Which numbers have no double, says `tightrope.model.numbers`.

*Polynomials* and quotients of these are read exactly:

    expression := term (('+' | '-') term)*
    term       := signed (('*' | '/') signed)*
    signed     := ('+' | '-')* power
    power      := atom ('^' digits)?
    atom       := number | parameter | '(' expression ')'

Storm writes `(-1/3 * (p+(-1)))/(2)`, people write `1/2*p + 3/10`; both are this, and so is `p/(p + q)`. Storm
reads `-p^2` as (−p)², everyone else as −(p²), so that text is refused rather than guessed.

*Rows* are checked on whole arrays (`RowCheck`). Readers go through a file once, line by line, and keep only
arrays. Where something turns out wrong later (a state that does not exist, probabilities that do not sum to
1), `fail_at_nth` goes through the file a second time for the place; a good file never pays for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model import numbers as door
from tightrope.model.mdp import MDP, SUM_TOLERANCE, IntervalMDP
from tightrope.model.polynomial import Function, Polynomial, RationalFunction, parts, quotient
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.text import reading

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
LONGEST = 4000
"""Characters, and decimal exponent, of the longest number read."""


def exact_number(text: str) -> Fraction:
    """The rational a decimal or a quotient of two decimals stands for; ValueError says what is wrong."""
    numerator, slash, denominator = text.strip().partition("/")
    value = _decimal(numerator)
    if not slash:
        return value
    divisor = _decimal(denominator)
    if divisor == 0:
        raise ValueError("division by 0")
    return value / divisor


def nearest_double(text: str) -> float:
    """The double nearest to the number; ValueError where none may stand for it."""
    stripped = text.strip()
    match = _DECIMAL.fullmatch(stripped)
    if match is None:
        return door.double(exact_number(stripped))
    value = float(stripped)
    if not math.isfinite(value):
        raise ValueError("too large for a double")
    if abs(value) < door.TINY and any(digit in "123456789" for digit in re.split("[eE]", stripped)[0]):
        raise ValueError("not 0, but too small for a double, of which the least is 2.3e-308")
    return value


def nearest_bound(text: str) -> float:
    """The same for a bound of an interval."""
    value = nearest_double(text)
    return door.bound(exact_number(text)) if value == 1 else value


def decimal_text(value: float) -> str:
    """The shortest decimal that is read back as this double; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _decimal(text: str) -> Fraction:
    stripped = text.strip()
    match = _DECIMAL.fullmatch(stripped)
    if match is None or len(stripped) > LONGEST or abs(int(match.group(1) or 0)) > LONGEST:
        raise ValueError("not a number")
    return Fraction(stripped)


class NumberValues:
    """Doubles and intervals; `value_type` None lets the values decide."""

    def __init__(self, value_type: str | None):
        self.value_type = value_type
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.texts: list[tuple[str, str]] = []
        self.has_intervals = value_type in ("double-interval", "rational-interval")
        self._exact: dict[int, door.Bounds] = {}

    def code(self, text: str) -> int:
        is_interval = text.startswith("[")
        if is_interval:
            if self.value_type not in (None, "double-interval", "rational-interval"):
                raise ValueError(f"an interval in a model of value type {self.value_type}")
            low, high = split_interval(text)
            self.has_intervals = True
        else:
            low = high = text
        if self.value_type == "rational-interval":
            least, most = exact_number(low), exact_number(high)
            lower, upper = (
                door.bound(least, -math.inf),
                door.bound(min(most, max(least, Fraction(1))), math.inf),
            )
        elif is_interval:
            lower, upper = nearest_bound(low), nearest_bound(high)
        else:
            lower = upper = nearest_double(text)
        if is_interval and lower <= 1:
            upper = min(upper, 1.0)  # Storm adds up intervals of merged successors beyond 1
        self.lower.append(lower)
        self.upper.append(upper)
        self.texts.append((low, high))
        return len(self.lower) - 1

    def exact(self, code: int) -> door.Bounds:
        """The bounds as they are written."""
        if code not in self._exact:
            low, high = (exact_number(text) for text in self.texts[code])
            self._exact[code] = (low, min(high, max(low, Fraction(1))))
        return self._exact[code]

    def bounds(self, start: OffsetArray, codes: IndexArray) -> tuple[FloatArray, FloatArray]:
        """The numbers of all transitions of a model; in one of intervals bounds are settled (`door`)."""
        lower, upper = (np.array(ends, dtype=np.float64)[codes] for ends in (self.lower, self.upper))
        if not self.has_intervals:
            return lower, upper
        for code, value in enumerate(self.lower):
            if value == self.upper[code] == 1 and self.exact(code)[0] != 1 and (codes == code).any():
                index = int(np.argmax(codes == code))
                raise door.NotHeldError("not 1, and the double nearest to it is", index=index)
        return door.settle_rows(start, lower, upper, lambda t: self.exact(int(codes[t])))

    def model(self, structure: Structure, codes: IndexArray) -> MDP | IntervalMDP:
        lower, upper = self.bounds(structure.transition_start, codes)
        return IntervalMDP(structure, lower, upper) if self.has_intervals else MDP(structure, lower)


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


def reward_text(text: str) -> str:
    """The number of a reward, which may be written as an interval of one."""
    if not text.startswith("["):
        return text
    low, high = split_interval(text)
    if exact_number(low) != exact_number(high):
        raise ValueError("a reward known only up to an interval is not supported")
    return low


def split_interval(text: str) -> tuple[str, str]:
    """The two ends of `[0.1, 0.3]`, as texts."""
    inner = text.strip()
    low, comma, high = inner.removeprefix("[").removesuffix("]").partition(",")
    if not inner.startswith("[") or not inner.endswith("]") or not comma:
        raise ValueError("an interval such as [0.1, 0.3] expected")
    return low, high


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<operator>[-+*/^()]))"
)
_DEEPEST = 60
_HIGHEST_DEGREE = 64
_MOST_TERMS = 5000
_MOST_BITS = 20_000
"""Of a coefficient. Larger ones come from nested powers, not from models."""


class PolynomialSyntaxError(ValueError):
    """What is wrong, and how many characters into the text."""

    def __init__(self, message: str, offset: int):
        super().__init__(message)
        self.offset = offset


def parse_function(text: str, parameters: Mapping[str, int]) -> Function:
    """The polynomial or rational function of the parameters, which are given with their indices.

    >>> parse_function("(2*p)/(2*p + 4)", {"p": 0}).text(["p"])
    'p/(p + 2)'
    """
    reader = _FunctionReader(text, parameters)
    result = reader.expression()
    if reader.kind != "end":
        reader.fail(f"unexpected '{reader.token}'")
    return result


def parse_polynomial(text: str, parameters: Mapping[str, int]) -> Polynomial:
    """The polynomial in the parameters, which are given with their indices.

    >>> parse_polynomial("(-1 * (p+(-7)))/(10)", {"p": 0}).text(["p"])
    '-1/10*p + 7/10'
    """
    result = parse_function(text, parameters)
    if isinstance(result, RationalFunction):
        names = sorted(parameters, key=lambda name: parameters[name])
        raise PolynomialSyntaxError(
            f"{result.text(names)} is no polynomial: quotients are for probabilities only", 0
        )
    return result


class _FunctionReader:
    """A cursor: `kind`, `token` and `start` describe the token it stands on."""

    def __init__(self, text: str, parameters: Mapping[str, int]):
        self.text, self.parameters = text, parameters
        self.end, self.depth = 0, 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.end)
        if match is not None:
            self.kind = str(match.lastgroup)
            self.token = match.group(self.kind)
            self.start, self.end = match.start(self.kind), match.end()
            return
        rest = self.text[self.end :]
        self.start = self.end + len(rest) - len(rest.lstrip())
        self.kind, self.token = "end", ""
        if rest.strip():
            self.fail(f"unexpected character '{rest.strip()[0]}'")

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise PolynomialSyntaxError(message, self.start if offset is None else offset)

    def expression(self) -> Function:
        total = self.term()
        while self.token in ("+", "-"):
            operator, offset = self.token, self.start
            self.advance()
            right = self.term()
            total = self.sum(total, right if operator == "+" else -right, offset)
        return total

    def term(self) -> Function:
        product = self.signed()
        while self.token in ("*", "/"):
            operator, offset = self.token, self.start
            self.advance()
            right = self.signed()
            product = (
                self.product(product, right, offset)
                if operator == "*"
                else self.quotient(product, right, offset)
            )
        return product

    def quotient(self, numerator: Function, divisor: Function, offset: int) -> Function:
        top, bottom = parts(divisor)
        if not top.terms:
            self.fail("division by 0", offset)
        if divisor.is_constant:
            return numerator / top.constant_term
        return self.product(numerator, quotient(bottom, top), offset)

    def sum(self, left: Function, right: Function, offset: int) -> Function:
        if isinstance(left, Polynomial) and isinstance(right, Polynomial):
            return left + right
        (a, b), (c, d) = parts(left), parts(right)
        if b == d:
            return quotient(a + c, b)
        numerator = self.whole_product(a, d, offset) + self.whole_product(c, b, offset)
        return quotient(numerator, self.whole_product(b, d, offset))

    def product(self, left: Function, right: Function, offset: int) -> Function:
        if isinstance(left, Polynomial) and isinstance(right, Polynomial):
            return self.whole_product(left, right, offset)
        (a, b), (c, d) = parts(left), parts(right)
        return quotient(self.whole_product(a, c, offset), self.whole_product(b, d, offset))

    def whole_product(self, left: Polynomial, right: Polynomial, offset: int) -> Polynomial:
        if len(left.terms) * len(right.terms) > _MOST_TERMS:
            self.fail(f"this product has more than {_MOST_TERMS} terms", offset)
        if left.degree + right.degree > _HIGHEST_DEGREE:
            self.fail(f"the degree is above {_HIGHEST_DEGREE}", offset)
        if _bits(left) + _bits(right) > _MOST_BITS:
            self.fail("the coefficients have too many digits", offset)
        return left * right

    def signed(self) -> Function:
        negative, offset = False, self.start
        while self.token in ("+", "-"):
            negative ^= self.token == "-"
            self.advance()
        value, is_power = self.power()
        if negative and is_power:
            self.fail("a sign before a power is ambiguous: write -1*p^2 or (-p)^2", offset)
        return -value if negative else value

    def power(self) -> tuple[Function, bool]:
        base = self.atom()
        if self.token != "^":
            return base, False
        offset = self.start
        self.advance()
        if self.kind != "number" or not self.token.isdecimal():
            self.fail("an exponent must be a whole number such as 2")
        if len(self.token) > 3 or int(self.token) > _HIGHEST_DEGREE:
            self.fail(f"the exponent {self.token[:20]} is above {_HIGHEST_DEGREE}")
        exponent = int(self.token)
        self.advance()
        result: Function = Polynomial.constant(1)
        for _ in range(exponent):
            result = self.product(result, base, offset)
        return result, True

    def atom(self) -> Function:
        token, kind, offset = self.token, self.kind, self.start
        if token == "(":
            self.depth += 1
            if self.depth > _DEEPEST:
                self.fail(f"more than {_DEEPEST} nested parentheses")
            self.advance()
            inner = self.expression()
            if self.token != ")":
                self.fail("')' expected")
            self.depth -= 1
            self.advance()
            return inner
        if kind == "number":
            self.advance()
            return Polynomial.constant(self.constant(token, offset))
        if kind == "name":
            if token not in self.parameters:
                listed = ", ".join(self.parameters) or "none"
                self.fail(f"'{token}' is not a parameter of the model (they are: {listed})")
            self.advance()
            return Polynomial.variable(self.parameters[token])
        here = f"found '{token}'" if token else "but the text ends"
        self.fail(f"a number, a parameter or '(' expected, {here}")

    def constant(self, token: str, offset: int) -> Fraction:
        try:
            return exact_number(token)
        except ValueError as error:
            raise PolynomialSyntaxError(str(error), offset) from error


def _bits(polynomial: Polynomial) -> int:
    return max(
        (c.numerator.bit_length() + c.denominator.bit_length() for c in polynomial.terms.values()), default=0
    )


def fail(
    path: Path, line: int, text: str, message: str, token: str | None = None, hint: str | None = None
) -> NoReturn:
    """Raise the error at this line, at the column where `token` stands in it."""
    column = text.find(token) + 1 if token else 0
    shown = text.rstrip("\r\n")
    if column == 0:
        column = len(shown) - len(shown.lstrip()) + 1
    raise InputError(message, Location(str(path), line, column, shown), hint)


def fail_at_nth(
    path: Path,
    index: int,
    counts: Callable[[str], bool],
    message: str,
    after: int = 0,
    hint: str | None = None,
) -> NoReturn:
    """Raise the error at the `index`-th line after line `after` that `counts` says yes to."""
    with reading(path) as file:
        seen = 0
        for number, line in enumerate(file, 1):
            if number > after and counts(line):
                if seen == index:
                    fail(path, number, line, message, hint=hint)
                seen += 1
    raise InputError(message, Location(str(path)), hint)


def shorten(text: str, length: int = 60) -> str:
    """The text for a message: in quotes, long ones cut."""
    stripped = text.strip()
    return f"'{stripped if len(stripped) <= length else stripped[:length] + '…'}'"


def whole_number(text: str) -> int | None:
    """A number of at most nine digits; None where the text is none."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdecimal() and len(stripped) < 10 else None


@dataclass(frozen=True)
class RowCheck:
    """Refuses rows that are none of a model, at the place of the first that is wrong; `choice` is what the
    file calls one.
    """

    start: OffsetArray
    successor: IndexArray
    choice: str
    fail_at_transition: Callable[[int, str], NoReturn]
    fail_at_choice: Callable[[int, str], NoReturn]

    def check_targets(self, states: int) -> None:
        """Every choice leads to states of the model, and to none of them twice."""
        start, successor = self.start, self.successor
        if (empty := first_true(np.diff(start) == 0)) is not None:
            self.fail_at_choice(empty, f"this {self.choice} has no transition")
        if (bad := first_true((successor < 0) | (successor >= states))) is not None:
            self.fail_at_transition(bad, unknown_state(successor[bad], states))
        choice = np.repeat(np.arange(len(start) - 1), np.diff(start))
        if ((successor[1:] > successor[:-1]) | (choice[1:] != choice[:-1])).all():
            return
        order = np.lexsort((successor, choice))
        same = (successor[order[1:]] == successor[order[:-1]]) & (choice[order[1:]] == choice[order[:-1]])
        if same.any():
            again = int(order[1:][same].min())
            what = f"a second transition of this {self.choice} to state {successor[again]}"
            self.fail_at_transition(again, what)

    def check_probabilities(self, lower: FloatArray, upper: FloatArray, hint: str = "") -> None:
        """Bounds lie within [0, 1], and every choice has a distribution within its own; `hint` is for
        numbers above 1."""
        bad = first_true(~((lower >= 0) & (upper <= 1) & (lower <= upper)))
        if bad is not None:
            what = "a probability lies within [0, 1], this one does not"
            self.fail_at_transition(bad, what + hint * bool(lower[bad] > 1))
        low, high = (np.add.reduceat(bounds, self.start[:-1]) for bounds in (lower, upper))
        wrong = first_true((low > 1 + SUM_TOLERANCE) | (high < 1 - SUM_TOLERANCE))
        if wrong is None:
            return
        row = slice(self.start[wrong], self.start[wrong + 1])
        total = f"[{low[wrong]:.12g}, {high[wrong]:.12g}]"
        if (lower[row] == upper[row]).all():
            what = f"the probabilities of this {self.choice} sum to {low[wrong]:.12g}, not 1"
        else:
            what = f"no distribution fits these intervals: their bounds sum to {total}"
        self.fail_at_choice(wrong, what)


def unknown_state(state: int, states: int) -> str:
    """What is wrong with the number of a state that there is not."""
    return f"there is no state {state}: the states are 0 to {states - 1}"


def first_true(wrong: BoolArray) -> int | None:
    """The index of the first offender, or None."""
    return int(np.argmax(wrong)) if wrong.any() else None
