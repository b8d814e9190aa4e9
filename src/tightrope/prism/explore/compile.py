"""Compile checked expressions to nodes that run on every frame, and find the variables they read.

Expressions over variables become integer and boolean nodes. Polynomials have one number per monomial,
quotients are pairs of polynomials, reduced once the coefficients have values. Others are refused with their
place in the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, TypeGuard, TypeVar

import numpy as np

from tightrope.model.polynomial import Monomial, PolynomialArray, monomial_degree, multiply_monomials
from tightrope.numerics.arrays import BoolArray, ExactIntegers, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand.expressions import COMPARISONS, LOGIC, fold, literal
from tightrope.prism.expand.program import Program
from tightrope.prism.explore import nodes
from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import Complaint, Expression, Type, position_of

T = TypeVar("T")

Terms = dict[Monomial, nodes.Number]
"""A polynomial in the parameters: the coefficient of each monomial; a number is that of the constant one."""


@dataclass(frozen=True)
class Ratio:
    """A quotient of polynomials in the parameters."""

    numerator: Terms
    denominator: Terms


Compiled = nodes.Boolean | Terms | Ratio

_LARGEST_DEGREE = 1000
_LARGEST_SIZE = 12_000
"""Terms times degree of a product: beyond this, a single probability takes seconds to build and to prove."""

_CHAINS = ({"+", "-"}, {"*"}, {"&"}, {"|"})


@dataclass(frozen=True)
class Scope:
    """What names mean: the number of each variable, which of them are bools, and the parameters."""

    variables: Mapping[str, int]
    booleans: frozenset[str]
    parameters: Mapping[str, int]


class Compiler:
    """Compiles expressions of one scope into one graph."""

    def __init__(self, scope: Scope, ranges: Sequence[tuple[int, int]]):
        self.scope = scope
        self.graph = nodes.NodeGraph(ranges)
        self.arithmetic = nodes.NodeArithmetic(self.graph)

    def compile(self, expression: syntax.Expression) -> Compiled:
        match expression:
            case syntax.Literal():
                return self._literal(expression)
            case syntax.Name():
                return self._name(expression)
            case syntax.Unary("!", operand):
                return self.graph.negation(self.truth(operand))
            case syntax.Unary("-", operand):
                return self._negate(self.compile(operand))
            case syntax.Binary():
                return self._binary(expression)
            case syntax.Conditional():
                return self._conditional(expression)
            case syntax.Call():
                return self._call(expression)
            case syntax.Checked():
                return self._checked(expression)
        raise Complaint("this is not allowed here", position_of(expression))

    def truth(self, expression: syntax.Expression) -> nodes.Boolean:
        value = self.compile(expression)
        if not isinstance(value, nodes.Boolean):
            raise Complaint("a truth value is expected here, not a number", position_of(expression))
        return value

    def number(self, expression: syntax.Expression) -> nodes.Number:
        """A number that does not depend on parameters."""
        value = self.compile(expression)
        if isinstance(value, nodes.Boolean):
            raise Complaint("a number is expected here, not a truth value", position_of(expression))
        if not _is_number(value):
            names = {i: name for name, i in self.scope.parameters.items()}
            sides = (value.numerator, value.denominator) if isinstance(value, Ratio) else (value,)
            used = sorted({names[i] for side in sides for monomial in side for i, _ in monomial})
            raise Complaint(
                f"this depends on the parameter {', '.join(used)}, but must be a number",
                position_of(expression),
                "parameters may occur in probabilities, as polynomials and quotients of these",
            )
        return value[()]

    def terms(self, expression: syntax.Expression) -> Terms:
        """A polynomial in the parameters, of degree 0 where none occurs."""
        return self._terms(self.compile(expression), expression)

    def ratio(self, expression: syntax.Expression) -> Terms | Ratio:
        """A polynomial in the parameters, or a quotient of two."""
        value = self.compile(expression)
        return value if isinstance(value, Ratio) else self._terms(value, expression)

    # --- leaves ----------------------------------------------------------------------------

    def _literal(self, literal: syntax.Literal) -> Compiled:
        if literal.type is syntax.Type.BOOL:
            return self.graph.truth(bool(literal.value))
        return {(): self.arithmetic.literal(Fraction(literal.value), literal.type is syntax.Type.INT)}

    def _name(self, name: syntax.Name) -> Compiled:
        variable = self.scope.variables.get(name.name)
        if variable is not None:
            if name.name in self.scope.booleans:
                return self.graph.boolean_variable(variable)
            return {(): self.arithmetic.integer(self.graph.variable(variable))}
        parameter = self.scope.parameters.get(name.name)
        if parameter is None:
            raise Complaint(f"'{name.name}' is neither a variable nor a parameter", name.position)
        return {((parameter, 1),): self.arithmetic.literal(1, False)}

    # --- operators -------------------------------------------------------------------------

    def _binary(self, expression: syntax.Binary) -> Compiled:
        graph = self.graph
        match expression.operator:
            case "+" | "-" | "*":
                values = [(self.compile(operand), negative) for operand, negative in _chain(expression)]
                signed = [self._negate(value) if negative else value for value, negative in values]
                if expression.operator == "*":
                    return balance(signed, lambda a, b: self._product(a, b, expression.position))
                return balance(signed, self._sum)
            case "&" | "|" as junction:
                parts = [self.truth(operand) for operand, _ in _chain(expression)]
                return balance(parts, graph.both if junction == "&" else graph.either)
            case "/":
                return self._quotient(expression)
            case "=>":
                return graph.either(graph.negation(self.truth(expression.left)), self.truth(expression.right))
            case "<=>":
                return graph.same(self.truth(expression.left), self.truth(expression.right))
            case relation:
                return self._comparison(relation, expression)

    def _comparison(self, relation: str, expression: syntax.Binary) -> nodes.Boolean:
        left = self.compile(expression.left)
        if isinstance(left, nodes.Boolean):
            same = self.graph.same(left, self.truth(expression.right))
            return same if relation == "=" else self.graph.negation(same)
        right = self.number(expression.right)
        return self.arithmetic.compare(relation, self.number(expression.left), right)

    def _sum(self, left: Compiled, right: Compiled) -> Compiled:
        if isinstance(left, Ratio) or isinstance(right, Ratio):
            (a, b), (c, d) = self._parts(left), self._parts(right)
            if b == d:
                return Ratio(self._terms(self._sum(a, c)), b)
            top = self._sum(self._product(a, d, None), self._product(c, b, None))
            return Ratio(self._terms(top), self._terms(self._product(b, d, None)))
        total = dict(self._terms(left))
        for monomial, coefficient in self._terms(right).items():
            known = total.get(monomial)
            total[monomial] = self.arithmetic.add(known, coefficient) if known else coefficient
        return total

    def _product(self, left: Compiled, right: Compiled, place: syntax.Position | None) -> Compiled:
        if isinstance(left, Ratio) or isinstance(right, Ratio):
            (a, b), (c, d) = self._parts(left), self._parts(right)
            return Ratio(self._terms(self._product(a, c, place)), self._terms(self._product(b, d, place)))
        total: Terms = {}
        first, second = self._terms(left), self._terms(right)
        refuse_large(first, second, place)
        for m1, c1 in first.items():
            for m2, c2 in second.items():
                monomial = multiply_monomials(m1, m2)
                product = self.arithmetic.multiply(c1, c2)
                known = total.get(monomial)
                total[monomial] = self.arithmetic.add(known, product) if known else product
        return total

    def _negate(self, value: Compiled) -> Compiled:
        if isinstance(value, Ratio):
            return Ratio(self._terms(self._negate(value.numerator)), value.denominator)
        return {m: self.arithmetic.negate(c) for m, c in self._terms(value).items()}

    def _quotient(self, expression: syntax.Binary) -> Compiled:
        left = self.compile(expression.left)
        right = self.compile(expression.right)
        if isinstance(left, Ratio) or not (isinstance(right, nodes.Boolean) or _is_number(right)):
            place = expression.position
            (a, b), (c, d) = (self._parts(side, expression) for side in (left, right))
            return Ratio(self._terms(self._product(a, d, place)), self._terms(self._product(b, c, place)))
        divisor, top = self.number(expression.right), self._terms(left, expression.left)
        return {m: self.arithmetic.divide(c, divisor, expression.position) for m, c in top.items()}

    def _conditional(self, expression: syntax.Conditional) -> Compiled:
        condition = self.truth(expression.condition)
        then, otherwise = self.compile(expression.then), self.compile(expression.otherwise)
        if isinstance(then, nodes.Boolean):
            return self.graph.choose_truth(condition, then, self.truth(expression.otherwise))
        if isinstance(then, Ratio) or isinstance(otherwise, Ratio):
            (a, b), (c, d) = self._parts(then), self._parts(otherwise)
            return Ratio(self._choose(condition, a, c), self._choose(condition, b, d))
        left = self._terms(then, expression.then)
        right = self._terms(otherwise, expression.otherwise)
        return self._choose(condition, left, right)

    def _choose(self, condition: nodes.Boolean, left: Terms, right: Terms) -> Terms:
        zero = self.arithmetic.literal(0, True)
        return {
            m: self.arithmetic.choose(condition, left.get(m, zero), right.get(m, zero))
            for m in {**left, **right}
        }

    def _checked(self, expression: syntax.Checked) -> Terms:
        """The number, plus 0 where the condition holds and a complaint where it does not."""
        condition, value, graph = self.truth(expression.condition), self.number(expression.value), self.graph
        holds = graph.choose(condition, graph.constant(1), graph.constant(0))
        holds = graph.checked(holds, "<", 1, expression.message, expression.position)
        surplus = graph.add(holds, graph.constant(-1))
        return {(): self.arithmetic.integer(graph.add(value.numerator, surplus))}

    # --- functions -------------------------------------------------------------------------

    def _call(self, call: syntax.Call) -> Compiled:
        if call.function == "pow":
            return self._power(call)
        return {(): self._function(call, [self.number(argument) for argument in call.arguments])}

    def _function(self, call: syntax.Call, values: list[nodes.Number]) -> nodes.Number:
        arithmetic = self.arithmetic
        match call.function:
            case "min" | "max" as extreme:
                return balance(values, arithmetic.minimum if extreme == "min" else arithmetic.maximum)
            case "floor" | "ceil" | "round" as rounding:
                rounded: nodes.Number = getattr(arithmetic, rounding)(values[0])
                return rounded
            case "mod":
                return arithmetic.modulo(values[0], values[1], call.position)
            case "log":
                return arithmetic.row_by_row(call, values[0], values[1])
        raise Complaint(f"the function '{call.function}' is unknown", call.position)

    def _power(self, call: syntax.Call) -> Compiled:
        base = self.compile(call.arguments[0])
        exponent = self.number(call.arguments[1])
        if isinstance(base, nodes.Boolean) or _is_number(base):
            return {(): self.arithmetic.power(self.number(call.arguments[0]), exponent, call)}
        if exponent.denominator.constant != 1:
            raise Complaint("a power of parameters needs a whole exponent", call.position)
        graph, times = self.graph, exponent.numerator
        zero = graph.constant(0)
        up, down = graph.maximum(times, zero), graph.maximum(graph.negate(times), zero)
        if max(up.high, down.high) > _LARGEST_DEGREE:
            degree = max(up.high, down.high)
            raise Complaint(f"a polynomial of degree {degree} is beyond {_LARGEST_DEGREE}", call.position)
        if isinstance(base, dict) and times.low >= 0:
            return self._raise_to_power(base, times, call)
        one: Terms = {(): self.arithmetic.literal(1, False)}
        top, bottom = (base, one) if isinstance(base, dict) else (base.numerator, base.denominator)
        parts = [self._raise_to_power(terms, k, call) for terms in (top, bottom) for k in (up, down)]
        above = self._product(parts[0], parts[3], call.position)
        return Ratio(self._terms(above), self._terms(self._product(parts[1], parts[2], call.position)))

    def _raise_to_power(self, base: Terms, times: nodes.Integer, call: syntax.Call) -> Terms:
        power: Terms = {(): self.arithmetic.literal(1, False)}
        for _ in range(times.low):
            power = self._terms(self._product(power, base, call.position))
        result = power
        for k in range(times.low + 1, times.high + 1):
            power = self._terms(self._product(power, base, call.position))
            reached = self.graph.compare(">=", times, self.graph.constant(k))
            result = self._choose(reached, power, result)
        return result

    def _terms(self, value: Compiled, expression: syntax.Expression | None = None) -> Terms:
        if isinstance(value, nodes.Boolean):
            raise Complaint("a number is expected here, not a truth value", position_of(expression))
        if isinstance(value, Ratio):
            raise Complaint(
                "a polynomial in the parameters is expected here, not a quotient", position_of(expression)
            )
        return value

    def _parts(self, value: Compiled, expression: syntax.Expression | None = None) -> tuple[Terms, Terms]:
        if isinstance(value, Ratio):
            return value.numerator, value.denominator
        return self._terms(value, expression), {(): self.arithmetic.literal(1, False)}


class _BoxCompiler(Compiler):
    """Compiles expressions of parameters alone, which lie in a box: bounds of nodes are theirs."""

    def __init__(self, box: Mapping[str, tuple[Fraction, Fraction]]):
        self._below = {name: math.lcm(low.denominator, high.denominator) for name, (low, high) in box.items()}
        sides = zip(box.values(), self._below.values(), strict=True)
        ranges = [(int(low * below), int(high * below)) for (low, high), below in sides]
        super().__init__(Scope({name: i for i, name in enumerate(box)}, frozenset(), {}), ranges)

    def _name(self, name: syntax.Name) -> Compiled:
        whole = self._terms(super()._name(name))
        below = self.arithmetic.literal(self._below[name.name], False)
        return {(): self.arithmetic.divide(whole[()], below, name.position)}


def decide_guard(guard: Expression, box: Mapping[str, tuple[Fraction, Fraction]]) -> Expression:
    """The guard without parameters, which lie in `box`; complains where that does not decide it."""
    if not any(name.name in box for name in syntax.names(guard)):
        return guard
    decided = _decided(guard, _BoxCompiler(box))
    for name in syntax.names(decided):
        if name.name in box:
            low, high = box[name.name]
            raise Complaint(
                f"parameter '{name.name}' may not occur in a guard that its domain, [{low}, {high}], does "
                "not decide: which commands there are would depend on it",
                name.position,
                f'narrow the domain with `params`, or give it a value: `const={{"{name.name}": …}}`',
            )
    return decided


def _decided(guard: Expression, compiler: _BoxCompiler) -> Expression:
    is_logic = isinstance(guard, syntax.Unary | syntax.Binary) and guard.operator in ("!", *LOGIC)
    if not is_logic and not any(name.name in compiler.scope.variables for name in syntax.names(guard)):
        return guard
    if isinstance(guard, syntax.Binary) and guard.operator in COMPARISONS:
        try:
            holds = compiler.truth(guard).constant
        except Complaint:
            return guard
        return guard if holds is None else literal(holds, guard.position)
    parts = tuple(_decided(part, compiler) for part in syntax.children(guard))
    last = getattr(parts[-1], "value", None) if isinstance(parts[-1], syntax.Literal) else None
    if isinstance(guard, syntax.Binary) and last is {"&": False, "|": True, "=>": True}.get(
        guard.operator, ...
    ):
        return literal(bool(last), guard.position)  # whatever the left side is
    return fold(syntax.with_children(guard, parts), {})


def _is_number(value: Terms | Ratio) -> TypeGuard[Terms]:
    """Whether no parameter occurs."""
    return not isinstance(value, Ratio) and value.keys() == {()}


def refuse_large(
    left: Mapping[Monomial, object], right: Mapping[Monomial, object], place: syntax.Position | None
) -> None:
    """Complain about a product that would be too large to handle, before it is computed."""
    degree = sum(max(map(monomial_degree, each), default=0) for each in (left, right))
    variables = {index for each in (left, right) for monomial in each for index, _ in monomial}
    most = len(left) * len(right)
    terms = min(most, comb(degree + len(variables), len(variables)))  # so many monomials there are
    if most > 1 and terms * degree > _LARGEST_SIZE:
        raise Complaint(
            f"this product is a polynomial of degree {degree} with up to {terms} terms, which is more than "
            f"tightrope computes with (terms times degree may be {_LARGEST_SIZE})",
            place,
            "let a variable of the model count the steps that the factors stand for, or give a parameter "
            "a value with `const`",
        )


def _chain(expression: syntax.Binary) -> list[tuple[syntax.Expression, bool]]:
    """The operands of `a + b - c …`, flattened on the left; true where one is subtracted."""
    operators = next(group for group in _CHAINS if expression.operator in group)
    operands: list[tuple[syntax.Expression, bool]] = []
    rest: syntax.Expression = expression
    while isinstance(rest, syntax.Binary) and rest.operator in operators:
        operands.append((rest.right, rest.operator == "-"))
        rest = rest.left
    operands.append((rest, False))
    return operands[::-1]


def balance(values: Sequence[T], combine: Callable[[T, T], T]) -> T:
    """a ∘ b ∘ … from left to right; long chains as a balanced tree, to keep it shallow."""
    while len(values) > 8:
        pairs = [combine(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[len(pairs) * 2 :]]
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


Values = BoolArray | ExactIntegers | RationalArray | PolynomialArray


def evaluate(
    expression: Expression,
    columns: Mapping[str, nodes.Column],
    size: int,
    parameters: Mapping[str, int] | None = None,
) -> Any:
    """The exact value in each of `size` rows: bools, integers, `RationalArray` or `PolynomialArray`.

    `columns` has the values of every variable (bool or int64), `parameters` the number of every parameter.
    Integers are int64 (Python's own where they do not fit), reals are exact rationals, expressions with
    parameters are polynomials; `/` is division of reals, `log` and powers with broken exponents are the
    nearest double taken as an exact number. The branches of `? :`, `&`, `|` and `=>` are evaluated only
    in the rows where they count, so `x>0 & 1/x<y` is fine.

    >>> from tightrope.prism.parse.syntax import Binary, Literal, Name, Type
    >>> half = Binary("/", Name("x"), Literal(2, Type.INT))
    >>> evaluate(half, {"x": np.array([1, 4])}, 2).to_fractions()
    [Fraction(1, 2), Fraction(2, 1)]
    """
    names = list(columns)
    arrays = [np.asarray(column) for column in columns.values()]
    booleans = frozenset(name for name, array in zip(names, arrays, strict=True) if array.dtype == np.bool_)
    scope = Scope({name: i for i, name in enumerate(names)}, booleans, parameters or {})
    ranges = [(int(array.min()), int(array.max())) if size else (0, 1) for array in arrays]

    def describe(row: int) -> str:
        return "(" + ",".join(f"{name}={array[row]}" for name, array in zip(names, arrays, strict=True)) + ")"

    return run(Compiler(scope, ranges).compile(expression), nodes.StateFrame(arrays, size, describe))


def run(compiled: Compiled, frame: nodes.StateFrame) -> Values:
    """A compiled expression on a frame, with one entry per row."""
    if isinstance(compiled, nodes.Boolean):
        return frame.mask(compiled.value(frame))
    if isinstance(compiled, Ratio):
        raise Complaint("a polynomial is expected here, not a quotient of polynomials", None)
    if not _is_number(compiled):
        return polynomials(compiled, frame)
    number = compiled[()]
    return nodes.integers(number.numerator, frame) if number.is_integer else number.array(frame)


def polynomials(terms: Terms, frame: nodes.StateFrame) -> PolynomialArray:
    """The values of a polynomial in all rows."""
    return PolynomialArray({m: number.array(frame) for m, number in terms.items()}, frame.size)


# The variables of a program as the explorer sees them: numbers, ranges, keys and names.
#
# Values of variables packed into int64 words, by mixed radix.
#
# A variable with values low..high takes one digit of radix high−low+1. Digits fill a word as long as
# the product of the radices stays within 2^62, then the next word starts; models whose states need a
# second word are rare. Assigning a variable changes the key by (new − old)·stride in one word, so the
# key of a successor is the key of its source plus a sum of such steps.

_WORD = 2**62


@kernel
def _decode(
    keys: OffsetArray,
    word: OffsetArray,
    stride: OffsetArray,
    radix: OffsetArray,
    low: OffsetArray,
    out: OffsetArray,
) -> None:
    for variable in range(len(word)):
        at, divisor, modulus, lowest = word[variable], stride[variable], radix[variable], low[variable]
        for row in range(len(keys)):
            out[variable, row] = (keys[row, at] // divisor) % modulus + lowest


class KeyLayout:
    """Where each of several variables with known ranges sits in a key of `words` words."""

    def __init__(self, ranges: Sequence[tuple[int, int]]):
        self.word: OffsetArray = np.zeros(len(ranges), dtype=np.int64)
        self.stride: OffsetArray = np.ones(len(ranges), dtype=np.int64)
        self.low: OffsetArray = np.array([low for low, _ in ranges], dtype=np.int64)
        self.radix: OffsetArray = np.array([high - low + 1 for low, high in ranges], dtype=np.int64)
        used, word = 1, 0
        for variable, radix in enumerate(self.radix.tolist()):
            if used * radix > _WORD:
                used, word = 1, word + 1
            self.word[variable] = word
            self.stride[variable] = used
            used *= radix
        self.words = word + 1
        self.size = math.prod(self.radix.tolist())

    def encode(self, columns: Sequence[nodes.Column], size: int) -> OffsetArray:
        """The keys of `size` rows, one column per variable."""
        keys: OffsetArray = np.zeros((size, self.words), dtype=np.int64)
        for variable, column in enumerate(columns):
            digit = column - self.low[variable] if self.low[variable] else column
            keys[:, self.word[variable]] += digit * self.stride[variable]
        return keys

    def decode(self, keys: OffsetArray) -> OffsetArray:
        """The values behind the keys: one row per variable."""
        out: OffsetArray = np.empty((len(self.low), len(keys)), dtype=np.int64)
        _decode(keys, self.word, self.stride, self.radix, self.low, out)
        return out


_INT32 = 2**31


class StateSpace:
    """All states that the ranges allow; the explorer finds those that can be reached."""

    def __init__(self, program: Program):
        self.variables = program.variables
        self._initial_values = program.initial_values
        for variable in self.variables:
            if variable.low < -_INT32 or variable.high >= _INT32:
                raise Complaint(
                    f"the range {variable.low}..{variable.high} of '{variable.name}' exceeds 32-bit integers",
                    variable.position,
                )
        self.ranges = [(variable.low, variable.high) for variable in self.variables]
        self.number = {variable.name: i for i, variable in enumerate(self.variables)}
        self.is_boolean = [variable.type is Type.BOOL for variable in self.variables]
        self.layout = KeyLayout(self.ranges)
        self.scope = Scope(
            self.number,
            frozenset(v.name for v in self.variables if v.type is Type.BOOL),
            {name: i for i, name in enumerate(program.symbols)},
        )

    def compiler(self, ranges: list[tuple[int, int]] | None = None) -> Compiler:
        """A compiler for rows with these ranges, by default all states."""
        return Compiler(self.scope, self.ranges if ranges is None else ranges)

    @property
    def initial(self) -> OffsetArray:
        """The keys of the initial states, one row each."""
        values = np.array(self._initial_values, dtype=np.int64)
        return self.layout.encode(list(values.T), len(values))

    def frame(self, keys: OffsetArray) -> nodes.StateFrame:
        """The states with these keys, ready for evaluation."""
        values = self.layout.decode(keys)
        columns: list[nodes.Column | None] = [
            values[i] != 0 if is_boolean else values[i] for i, is_boolean in enumerate(self.is_boolean)
        ]
        return nodes.StateFrame(columns, len(keys), lambda row: self.describe(values[:, row]))

    def describe(self, values: OffsetArray) -> str:
        """`(x=1,b=true)`"""
        shown = (
            f"{variable.name}={str(bool(value)).lower() if variable.type is Type.BOOL else int(value)}"
            for variable, value in zip(self.variables, values, strict=True)
        )
        return f"({','.join(shown)})"
