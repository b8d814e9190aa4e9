"""The syntax tree of properties: operators and path formulas are expressions, as in PRISM.

What may stand where is not a matter of the grammar: `properties` says which formulas are about states, which
about paths, and which have a number for a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

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
    """`lower <= steps <= upper`, inclusive; `upper` None means unbounded. With the name of a `reward` it is
    what was earned that is bounded, not the number of steps."""

    lower: Expression | None
    upper: Expression | None
    lower_strict: bool = False
    upper_strict: bool = False
    reward: str | None = None


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
    INSTANTANEOUS = "I="
    CO_SAFE = "until a path formula is satisfied"
    LONG_RUN = "on average in the long run"
    WINDOW = "C[a,b]"


@dataclass(frozen=True)
class RewardFormula:
    """`F target`, `C<=k` and `I=k` (then `bound`) or `C`; `target` is also the path of a co-safe reward,
    and the states whose share of time is asked for; `window` are the steps of `C>=k` and `C[a,b]`."""

    operator: RewardOperator
    target: Expression | None
    bound: Expression | None
    bound_strict: bool
    position: Position
    window: StepBound | None = None


@dataclass(frozen=True)
class ValueOperator(Expression):
    """`Pmaxmin=? [ … ]`, `R{"cost"}min<=3 [ … ]`.

    `agent` and `nature` are "max", "min" or None (not said); `comparison` is None for `=?`, else
    one of `< <= > >=` with its `threshold`. `condition` is the path behind `||`, `tail` the level of
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
    tail: Expression | None = None


@dataclass(frozen=True)
class Branching(Expression):
    """`A [ path ]`: on every path, `E [ path ]`: on some path."""

    is_universal: bool
    path: Expression
    position: Position = field(compare=False)


@dataclass(frozen=True)
class Filter(Expression):
    """`filter(kind, operand, states)`; `states` None: as the kind has it, all or the initial one."""

    kind: str
    operand: Expression
    states: Expression | None
    position: Position = field(compare=False)


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

    def text_of(self, operator: ValueOperator) -> str:
        """An operator as it is written in the file."""
        return " ".join(self.source[slice(*operator.span)].split())
