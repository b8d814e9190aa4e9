"""Exact parser for numbers, polynomials and quotients, in other tools' files and in Python models.

*Numbers* are `0.25`, `1e-3`, `3/10`. `nan`, `1_000`, digits of other scripts and huge exponents, which
Python's `float` and `Fraction` accept, are refused.

    expression := term (('+' | '-') term)*
    term       := signed (('*' | '/') signed)*
    signed     := ('+' | '-')* power
    power      := atom ('^' digits)?
    atom       := number | parameter | '(' expression ')'

`-p^2` is refused: Storm reads it as (−p)², others as −(p²).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import NoReturn

from tightrope.model.polynomial import Function, Monomial, Polynomial, RationalFunction, parts

DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
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


def _decimal(text: str) -> Fraction:
    stripped = text.strip()
    match = DECIMAL.fullmatch(stripped)
    if match is None or len(stripped) > LONGEST or abs(int(match.group(1) or 0)) > LONGEST:
        raise ValueError("not a number")
    return Fraction(stripped)


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
    plain = _plain_sum(text, parameters)
    return read_function(text, parameters) if plain is None else plain


def read_function(text: str, parameters: Mapping[str, int]) -> Function:
    """As `parse_function`, by the grammar alone."""
    reader = FunctionReader(text, parameters)
    result = reader.expression()
    if reader.kind != "end":
        reader.fail(f"unexpected '{reader.token}'")
    return result


_SIGN = re.compile(r" ?([+-]) ?")
_RATIONAL = re.compile(r"([0-9]{1,15})(?:/([1-9][0-9]{0,14}))?")
_EXPONENT = re.compile(r"[0-9]{1,2}")


def _plain_sum(text: str, parameters: Mapping[str, int]) -> Polynomial | None:
    """The polynomial of a sum such as `3/10*p^2*q - p + 1`; None for anything else."""
    pieces = ["+", *_SIGN.split(text.strip())]
    if pieces[1] == "":  # the text begins with a sign, which binds closer than a power
        del pieces[:2]
        if len(pieces) < 2 or "^" in pieces[1].partition("*")[0]:
            return None
    terms: dict[Monomial, Fraction] = {}
    for sign, piece in zip(pieces[::2], pieces[1::2], strict=True):
        factors = piece.split("*")
        number = _RATIONAL.fullmatch(factors[0])
        top, bottom = (1, 1) if number is None else (int(number.group(1)), int(number.group(2) or 1))
        powers: dict[int, int] = {}
        for factor in factors if number is None else factors[1:]:
            name, power, exponent = factor.partition("^")
            if name not in parameters or (power and _EXPONENT.fullmatch(exponent) is None):
                return None
            powers[parameters[name]] = powers.get(parameters[name], 0) + (int(exponent) if power else 1)
        if sum(powers.values()) > _HIGHEST_DEGREE:
            return None
        monomial = tuple(sorted((index, exponent) for index, exponent in powers.items() if exponent))
        value = Fraction(top if sign == "+" else -top, bottom)
        terms[monomial] = terms[monomial] + value if monomial in terms else value
    return Polynomial(terms)


def parse_polynomial(text: str, parameters: Mapping[str, int]) -> Polynomial:
    """The polynomial in the parameters, which are given with their indices.

    >>> parse_polynomial("(-1 * (p+(-7)))/(10)", {"p": 0}).text(["p"])
    '-1/10*p + 7/10'
    """
    result = parse_function(text, parameters)
    if isinstance(result, RationalFunction):
        names = sorted(parameters, key=lambda name: parameters[name])
        raise PolynomialSyntaxError(
            f"{result.text(names)} is not a polynomial: quotients are for probabilities only", 0
        )
    return result


class FunctionReader:
    """A cursor: `kind`, `token` and `start` describe the token it stands on."""

    TOKEN = _TOKEN

    def __init__(self, text: str, parameters: Mapping[str, int]):
        self.text, self.parameters = text, parameters
        self.end, self.depth = 0, 0
        self.advance()

    def advance(self) -> None:
        match = self.TOKEN.match(self.text, self.end)
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
        if divisor == Polynomial({}):
            self.fail("division by 0", offset)
        return self.product(numerator, 1 / divisor, offset)

    def sum(self, left: Function, right: Function, offset: int) -> Function:
        (_, b), (_, d) = parts(left), parts(right)
        if b != d:
            self.check_sizes(left, right, offset)
        return left + right

    def product(self, left: Function, right: Function, offset: int) -> Function:
        self.check_sizes(left, right, offset)
        return left * right

    def check_sizes(self, left: Function, right: Function, offset: int) -> None:
        """Refuse what would be too large before it is computed."""
        for one, other in product(parts(left), parts(right)):
            if len(one.terms) * len(other.terms) > _MOST_TERMS:
                self.fail(f"this product has more than {_MOST_TERMS} terms", offset)
            if one.degree + other.degree > _HIGHEST_DEGREE:
                self.fail(f"the degree is above {_HIGHEST_DEGREE}", offset)
            if _bits(one) + _bits(other) > _MOST_BITS:
                self.fail("the coefficients have too many digits", offset)

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
            return Polynomial.variable(self.parameters[self.parameter()])
        here = f"found '{token}'" if token else "but the text ends"
        self.fail(f"a number, a parameter or '(' expected, {here}")

    def parameter(self) -> str:
        """The name that it stands on."""
        name = self.token
        if name not in self.parameters:
            listed = ", ".join(self.parameters) or "none"
            self.fail(f"'{name}' is not a parameter of the model (they are: {listed})")
        self.advance()
        return name

    def constant(self, token: str, offset: int) -> Fraction:
        try:
            return exact_number(token)
        except ValueError as error:
            self.fail(str(error), offset)


def _bits(polynomial: Polynomial) -> int:
    return max(
        (c.numerator.bit_length() + c.denominator.bit_length() for c in polynomial.terms.values()), default=0
    )
