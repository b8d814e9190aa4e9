"""The texts by which a user names boxes, domains and points; Storm's region syntax.

    p=0.1:0.9,q=0:1                 a box           (--param)
    0.1<=p<=0.9, p+q<=1, p+q+r=1    a domain        (--domain)
    p=0.55,q=0.0004                 a point         (--at)

Numbers are exact: `0.1`, `1e-3` and `1/3` are the rationals they look like. A comparison chain has
one linear form in the middle, or one comparison between two linear forms; both sides may hold
parameters. A comparison of a single parameter with numbers narrows the box, anything else becomes
a linear constraint.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.model.numbers import Number
from tightrope.model.parameters import LinearConstraint, Parameters, check_range

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<operator><=|>=|==|=|<|>|[-+*/():,]))"
)

_MOST_DIGITS = 400
"""Digits, and decimal exponent, of the longest number read: 1e999999999 would keep us busy for hours."""

_DEEPEST = 100
"""Parentheses and signs within each other."""

Ranges = Mapping[str, tuple[Number, Number]]
"""A range for each parameter that has another one than [0, 1]."""

_Linear = tuple[dict[str, Fraction], Fraction]
"""({parameter: coefficient}, constant)."""


def box_text(params: Any) -> str | None:
    """Ranges as the text `p=1/10:9/10`."""
    if params is None or isinstance(params, str):
        return params
    if not isinstance(params, Mapping):
        raise InputError(
            f"`params` is a {type(params).__name__}, not a mapping from names to ranges",
            hint='write params={"p": (0.1, 0.9)}',
        )
    ends = {name: check_range(str(name), pair) for name, pair in params.items()}
    return ",".join(f"{name}={low}:{high}" for name, (low, high) in ends.items())


def parse_box(
    text: str, names: Sequence[str], option: str = "`params`", base: Parameters | None = None
) -> Parameters:
    """`p=0.1:0.9,q=0:1`; what is not named stays as in `base` (the unit box where None is given)."""
    reader = _Reader(text, names, option)
    base = base or Parameters.unit_box(names)
    bounds: dict[str, tuple[Fraction, Fraction]] = {}
    while not reader.at_end():
        name = reader.parameter()
        if name in bounds:
            reader.fail(f"parameter '{name}' is given twice", back=1)
        reader.expect("=")
        low = reader.number()
        reader.expect(":")
        high = reader.number()
        if low > high:
            reader.fail(f"the range of '{name}' is empty: {low} > {high}", back=1)
        bounds[name] = (low, high)
        reader.separator()
    inherited = dict(zip(names, zip(base.lower, base.upper, strict=True), strict=True))
    lower, upper = zip(*(inherited | bounds).values(), strict=True) if names else ((), ())
    return Parameters(tuple(names), lower, upper, base.constraints)


def narrow_domain(base: Parameters, box: str | None, domain: str | None) -> Parameters:
    """The part of a domain that a box and constraints leave, where they are given."""
    if box is not None:
        base = parse_box(box, base.names, base=base)
    if domain is not None:
        base = parse_domain(domain, base.names, base=base)
    return base


def parse_point(text: str, names: Sequence[str], option: str = "`at`") -> tuple[Fraction, ...]:
    """`p=0.55,q=0.0004`, every parameter exactly once."""
    reader = _Reader(text, names, option)
    values: dict[str, Fraction] = {}
    while not reader.at_end():
        name = reader.parameter()
        if name in values:
            reader.fail(f"parameter '{name}' is given twice", back=1)
        reader.expect("=")
        values[name] = reader.number()
        reader.separator()
    if missing := [name for name in names if name not in values]:
        raise InputError(
            f"{option}: no value for parameter{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            hint=f"give {','.join(f'{name}=…' for name in names)}",
        )
    return tuple(values[name] for name in names)


def parse_domain(
    text: str, names: Sequence[str], option: str = "`domain`", base: Parameters | None = None
) -> Parameters:
    """`0.1<=p<=0.9, p+q<=1`, cutting `base` (the unit box where None is given)."""
    reader = _Reader(text, names, option)
    base = base or Parameters.unit_box(names)
    lower: dict[str, Fraction] = {}
    upper: dict[str, Fraction] = {}
    constraints = list(base.constraints)
    while not reader.at_end():
        start = reader.position
        forms = [reader.linear()]
        comparisons: list[str] = []
        while reader.peek() in ("<=", ">=", "<", ">", "=", "=="):
            comparisons.append(reader.take())
            forms.append(reader.linear())
        if not comparisons:
            reader.fail("a comparison is missing here: write 0.1<=p<=0.9 or p+q<=1")
        if len(comparisons) > 2:
            reader.fail("at most two comparisons in a row, as in 0.1<=p<=0.9", at=start)
        for left, comparison, right in zip(forms, comparisons, forms[1:], strict=False):
            if comparison in (">", ">="):
                left, right = right, left
            equality = comparison in ("=", "==")
            coefficients = {
                name: left[0].get(name, Fraction(0)) - right[0].get(name, Fraction(0))
                for name in {**left[0], **right[0]}
            }
            coefficients = {name: a for name, a in coefficients.items() if a != 0}
            bound = right[1] - left[1]
            if not coefficients:
                reader.fail("this comparison has no parameter in it", at=start)
            if len(coefficients) == 1:
                ((name, a),) = coefficients.items()
                value = bound / a
                if equality or a > 0:
                    upper[name] = min(value, upper.get(name, value))
                if equality or a < 0:
                    lower[name] = max(value, lower.get(name, value))
            else:
                row = tuple(coefficients.get(name, Fraction(0)) for name in names)
                constraints.append(LinearConstraint(row, bound, equality))
        reader.separator()
    return Parameters(
        tuple(names),
        tuple(lower.get(name, low) for name, low in zip(names, base.lower, strict=True)),
        tuple(upper.get(name, high) for name, high in zip(names, base.upper, strict=True)),
        tuple(constraints),
    )


class _Reader:
    """A cursor over the tokens of one option's text; errors point at the token."""

    def __init__(self, text: str, names: Sequence[str], option: str):
        self.text, self.names, self.option = text, names, option
        self.tokens: list[tuple[str, str, int]] = []
        self.position = 0
        self.depth = 0
        at = 0
        end = len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                column = at + len(text[at:]) - len(text[at:].lstrip())
                raise InputError(
                    f"unexpected character '{text[column]}'", Location(option, 1, column + 1, text)
                )
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            at = match.end()

    def at_end(self) -> bool:
        return self.position >= len(self.tokens)

    def peek(self) -> str:
        return "" if self.at_end() else self.tokens[self.position][1]

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def fail(self, message: str, back: int = 0, at: int | None = None) -> None:
        index = (self.position if at is None else at) - back
        column = self.tokens[index][2] if index < len(self.tokens) else len(self.text.rstrip())
        listed = f"the parameters are: {', '.join(self.names) or 'none'}"
        raise InputError(message, Location(self.option, 1, column + 1, self.text), hint=listed)

    def expect(self, token: str) -> None:
        if self.peek() != token:
            self.fail(f"'{token}' expected, found {repr(self.peek()) if self.peek() else 'the end'}")
        self.take()

    def separator(self) -> None:
        """A comma between entries; a trailing one is an error."""
        if self.at_end():
            return
        self.expect(",")
        if self.at_end():
            self.fail("an entry is missing after the last comma")

    def parameter(self) -> str:
        if self.at_end() or self.tokens[self.position][0] != "name":
            self.fail(f"a parameter's name expected, found {repr(self.peek()) if self.peek() else 'the end'}")
        name = self.peek()
        if name not in self.names:
            close = difflib.get_close_matches(name, self.names, 1)
            suggestion = f"; did you mean '{close[0]}'?" if close else ""
            self.fail(f"'{name}' is not a parameter of the model{suggestion}")
        return self.take()

    def number(self) -> Fraction:
        """A signed number or quotient of numbers."""
        coefficients, constant = self.linear()
        if coefficients:
            self.fail("a number expected here, not a parameter", back=1)
        return constant

    def linear(self) -> _Linear:
        total, constant = self._product()
        total = dict(total)
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            right, offset = self._product()
            constant += sign * offset
            for name, a in right.items():
                total[name] = total.get(name, Fraction(0)) + sign * a
        return total, constant

    def _product(self) -> _Linear:
        left, constant = self._factor()
        while self.peek() in ("*", "/"):
            operator = self.take()
            right, other = self._factor()
            if operator == "/":
                if right or other == 0:
                    self.fail("a domain is linear: divide by numbers other than 0 only", back=1)
                right, other = {}, 1 / other
            if left and right:
                self.fail("a domain is linear: a product of parameters cannot be used", back=1)
            scale, form, number = (constant, right, other) if not left else (other, left, constant)
            left, constant = {name: a * scale for name, a in form.items()}, number * scale
        return left, constant

    def _factor(self) -> _Linear:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail("too many parentheses or signs within each other")
        factor = self._read_signed_factor()
        self.depth -= 1
        return factor

    def _read_signed_factor(self) -> _Linear:
        if self.peek() in ("-", "+"):
            sign = -1 if self.take() == "-" else 1
            form, constant = self._factor()
            return {name: sign * a for name, a in form.items()}, sign * constant
        if self.peek() == "(":
            self.take()
            inner = self.linear()
            self.expect(")")
            return inner
        if not self.at_end() and self.tokens[self.position][0] == "number":
            mantissa, _, exponent = self.peek().lower().partition("e")
            if len(mantissa) > _MOST_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > _MOST_DIGITS:
                self.fail("this number is too long or its exponent too large")
            return {}, Fraction(self.take())
        return {self.parameter(): Fraction(1)}, Fraction(0)
