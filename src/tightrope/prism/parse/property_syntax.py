"""The syntax tree of properties, and how they are written out; operators and paths are expressions.

What may stand where is not a matter of the grammar: `properties` says which formulas are about states, which
about paths, and which have a number for a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction

from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import Constant, Expression, LabelDefinition, Position


class PathOperator(Enum):
    """The temporal operators; `F a` is `true U a` and stays apart for display."""

    NEXT = "X"
    EVENTUALLY = "F"
    GLOBALLY = "G"
    UNTIL = "U"
    WEAK_UNTIL = "W"
    RELEASE = "R"


@dataclass(frozen=True)
class StepBound:
    """`lower <= steps <= upper`, None: unbounded; of a `reward` what was earned; `also` hold as well."""

    lower: Expression | None
    upper: Expression | None
    lower_strict: bool = False
    upper_strict: bool = False
    reward: str | None = None
    also: tuple[StepBound, ...] = ()


@dataclass(frozen=True)
class PathFormula(Expression):
    """`left OP right` for the binary ones, `OP right` for the unary ones (`left` is None)."""

    operator: PathOperator
    left: Expression | None
    right: Expression
    bound: StepBound | None
    position: Position = field(compare=False)


class RewardOperator(Enum):
    """What a reward property accumulates."""

    REACH = "F"
    CUMULATIVE = "C<="
    TOTAL = "C"
    DISCOUNTED = "Cdiscount="
    INSTANTANEOUS = "I="
    CO_SAFE = "until a path formula is satisfied"
    LONG_RUN = "on average in the long run"
    WINDOW = "C[a,b]"


@dataclass(frozen=True)
class RewardFormula:
    """`F target`, `C<=k`, `I=k` and `Cdiscount=d` (then `bound`) or `C`; `target` is also the path of a
    co-safe reward, and the states whose share of time is asked for; `window` are the steps of `C>=k` and
    `C[a,b]`."""

    operator: RewardOperator
    position: Position
    target: Expression | None = None
    bound: Expression | None = None
    bound_strict: bool = False
    window: StepBound | None = None


@dataclass(frozen=True)
class ValueOperator(Expression):
    """`Pmaxmin=? [ … ]`, `R{"cost"}min<=3 [ … ]`.

    `agent` and `nature` are "max", "min" or None (not said); `comparison` is None for `=?`, else
    one of `< <= > >=` with its `threshold`. `condition` is the path behind `||`, `cvar_level` that of
    `CVaR{"cost",0.9}`. `span` is where it begins and ends in its text.
    """

    is_reward: bool
    reward_name: str | None
    agent: str | None
    nature: str | None
    comparison: str | None
    threshold: Expression | None
    path: Expression | RewardFormula
    position: Position = field(compare=False)
    span: tuple[int, int] = field(compare=False)
    condition: Expression | None = None
    cvar_level: Expression | None = None


@dataclass(frozen=True)
class Branching(Expression):
    """`A [ path ]`: on every path, `E [ path ]`: on some path."""

    is_universal: bool
    path: Expression
    position: Position = field(compare=False)


@dataclass(frozen=True)
class Filter(Expression):
    """`filter(kind, operand, states)`; `states` None: all or the initial one, as the kind has it."""

    kind: str
    operand: Expression
    states: Expression | None
    position: Position = field(compare=False)
    in_braces: bool = False


@dataclass(frozen=True)
class Quantile(Expression):
    """`quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])`: the least or the largest k for which it holds."""

    is_least: bool
    variable: str
    operand: Expression
    position: Position = field(compare=False)


@dataclass(frozen=True)
class Multi(Expression):
    """`multi(Pmax=? [ … ], P>=0.9 [ … ], …)`: several objectives of one policy."""

    objectives: tuple[Expression, ...]
    position: Position = field(compare=False)


StateOperator = ValueOperator | Branching | Filter | Multi | Quantile
"""Operators whose value belongs to a state: what they hold is evaluated on its own."""


@dataclass(frozen=True)
class Property:
    """A formula of a property file; most often a `ValueOperator`."""

    name: str | None
    formula: Expression
    text: str
    position: Position | None
    ends: bool = True
    """A semicolon stands behind it."""


@dataclass(frozen=True)
class PropertyFile:
    """Constants, labels and properties of a `.props` file, in their order."""

    constants: tuple[Constant, ...]
    labels: tuple[LabelDefinition, ...]
    properties: tuple[Property, ...]
    source: str
    file: str
    chosen: tuple[int, ...] | None = None
    """The places of those that are required, where not all are."""

    @property
    def wanted(self) -> tuple[Property, ...]:
        """The properties that are wanted; others may be referred to."""
        return self.properties if self.chosen is None else tuple(self.properties[i] for i in self.chosen)

    def text_of(self, operator: ValueOperator) -> str:
        """An operator as it is written in the file."""
        return " ".join(self.source[slice(*operator.span)].split())


def is_infinite(threshold: Expression | None) -> bool:
    """`1.0/0.0`"""
    match threshold:
        case syntax.Binary("/", syntax.Literal(numerator, above), syntax.Literal(0, below)):
            return numerator > 0 and syntax.Type.DOUBLE in (above, below)
    return False


def with_infinite_constants(file: PropertyFile) -> PropertyFile:
    """The same with constants that are `1.0/0.0` written out: thresholds alone can be infinite."""
    infinite = {one.name: one.value for one in file.constants if is_infinite(one.value)}
    if not infinite:
        return file

    def change(node: object) -> Expression | None:
        return infinite.get(node.name) if isinstance(node, syntax.Name) else None

    others = tuple(one for one in file.constants if one.name not in infinite)
    properties = tuple(replace(one, formula=syntax.rewritten(one.formula, change)) for one in file.properties)
    return replace(file, constants=others, properties=properties)


# Properties written out again, with every pair of parentheses that a reader may miss.
#
# What is written is read back as the same tree; it also says how a text was read, where tools differ
# (`F "a" & (G "b")` is `F ("a" & (G "b"))`, as in PRISM).


def spell(expression: syntax.Expression, file: PropertyFile) -> str:
    """The text of a formula of a file; its operators P and R as they stand there."""
    return _Speller(file).text(expression)


class _Speller:
    def __init__(self, file: PropertyFile):
        self._file = file

    def text(self, expression: syntax.Expression) -> str:
        match expression:
            case ValueOperator():
                return self._file.text_of(expression)
            case Branching(is_universal, path):
                return f"{'A' if is_universal else 'E'} [ {self.text(path)} ]"
            case Filter(_, operand, _) if expression.in_braces:
                return self.text(operand)
            case Filter(kind, operand, states):
                parts = [kind, self.text(operand), *([] if states is None else [self.text(states)])]
                return f"filter({', '.join(parts)})"
            case Multi(objectives):
                return f"multi({', '.join(self.text(part) for part in objectives)})"
            case Quantile(is_least, variable, operand):
                return f"quantile({'min' if is_least else 'max'} {variable}, {self.text(operand)})"
            case PathFormula(operator, left, right, bound):
                begin = "" if left is None else f"{self.inner(left)} "
                return f"{begin}{operator.value}{self._bound(bound)} {self.inner(right)}"
            case syntax.Literal(value):
                return _number(value)
            case syntax.Name(name):
                return name
            case syntax.Label(name):
                return f'"{name}"'
            case syntax.Unary(operator, operand):
                return f"{operator}{self.inner(operand)}"
            case syntax.Binary(operator, left, right):
                return f"{self._operand(left, operator)} {operator} {self._operand(right, operator)}"
            case syntax.Conditional(condition, then, otherwise):
                return f"{self.inner(condition)} ? {self.inner(then)} : {self.inner(otherwise)}"
            case syntax.Call(function, arguments):
                return f"{function}({', '.join(self.text(argument) for argument in arguments)})"
        raise AssertionError(expression)

    def inner(self, expression: syntax.Expression) -> str:
        """The same as part of something larger."""
        text = self.text(expression)
        return (
            f"({text})" if isinstance(expression, PathFormula | syntax.Binary | syntax.Conditional) else text
        )

    def _operand(self, expression: syntax.Expression, operator: str) -> str:
        """Comparisons stand in & and | without parentheses, and chains of & or | too."""
        tight = (operator, "=", "!=", "<", "<=", ">", ">=") if operator in "&|" else ()
        is_clear = isinstance(expression, syntax.Binary) and expression.operator in tight
        return self.text(expression) if is_clear else self.inner(expression)

    def _bound(self, bound: StepBound | None) -> str:
        if bound is None:
            return ""
        if bound.also:
            every = [replace(bound, also=()), *bound.also]
            words = ["steps" if one.reward is None else f'rew{{"{one.reward}"}}' for one in every]
            ends = [self._bound(replace(one, reward=None)) for one in every]
            return f"^{{{','.join(map(''.join, zip(words, ends, strict=True)))}}}"
        if bound.reward is not None:
            return f'{{"{bound.reward}"}}{self._bound(replace(bound, reward=None))}'
        if bound.lower is not None and bound.upper is not None:
            if bound.lower == bound.upper:
                return f"={self.inner(bound.lower)}"
            return f"[{self.text(bound.lower)},{self.text(bound.upper)}]"
        if bound.upper is not None:
            return f"<{'' if bound.upper_strict else '='}{self.inner(bound.upper)}"
        assert bound.lower is not None
        return f">{'' if bound.lower_strict else '='}{self.inner(bound.lower)}"


def _number(value: int | Fraction | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    short = repr(float(value))
    return short if Fraction(short) == value else f"({value.numerator}/{value.denominator})"
