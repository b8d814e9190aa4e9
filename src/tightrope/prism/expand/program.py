"""A PRISM program ready to explore, made by `expand` from a `syntax.ModelFile`.

Constants and formulas are substituted, renamed modules copied, types checked, constant subtrees folded.
Expressions consist of `Literal`, `Name` (of a state variable or a parameter), `Unary`, `Binary`,
`Conditional` and `Call`. Positions still point into the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tightrope.errors import InputError, Location
from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import SourceText
from tightrope.provenance import CLOCK, names_in

Value = int | Fraction | bool
"""What a constant can be: an int, an exact rational (type double) or a bool."""


@dataclass(frozen=True)
class StateVariable:
    """A variable with its range as integers; `module` is None for a global one."""

    name: str
    type: syntax.Type
    low: int
    high: int
    initial: int
    module: str | None
    position: syntax.Position
    is_unbounded: bool = False


@dataclass(frozen=True)
class Synchronisation:
    """Modules that move together by an action, each with its own; `shown` where rewards go by another."""

    action: str | None
    parts: tuple[tuple[int, str | None], ...]
    shown: tuple[str | None] | None = None

    @property
    def name(self) -> str | None:
        """The action as users see it."""
        return self.action if self.shown is None else self.shown[0]


@dataclass(frozen=True)
class FreeUpdates:
    """The free updates of one command: names that stand for the probabilities of all but the last of them."""

    names: tuple[str, ...]
    shared: str | None
    position: syntax.Position


@dataclass(frozen=True)
class Program:
    """Everything the explorer needs. `variables` are in declaration order, globals first.

    In `modules` only `name` and `commands` matter: their variables have moved to `variables`.
    `constants` are the values of all constants that do not depend on a parameter; `formulas` are kept
    for properties, which may use them.
    """

    type: syntax.ModelType
    parameters: tuple[str, ...]
    variables: tuple[StateVariable, ...]
    modules: tuple[syntax.Module, ...]
    labels: tuple[syntax.LabelDefinition, ...]
    rewards: tuple[syntax.Rewards, ...]
    constants: Mapping[str, Value]
    is_interval: bool
    source: str
    file: str
    synchronisations: tuple[Synchronisation, ...]
    initial_values: tuple[tuple[int, ...], ...]
    """The initial states, each as the values of all variables."""
    formulas: Mapping[str, syntax.Expression] = field(default_factory=dict)
    free: tuple[FreeUpdates, ...] = ()
    clocks: frozenset[str] = frozenset()
    """Of a timed automaton."""
    observables: tuple[syntax.Observable, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """The parameters, and behind them what stands for free probabilities until all states are known."""
        return (*self.parameters, *(name for each in self.free for name in each.names))

    def location(self, position: syntax.Position | None) -> Location:
        """The place in the source, with its line of text."""
        return SourceText(self.source, self.file).location(position)

    def error(self, message: str, position: syntax.Position | None, hint: str | None = None) -> InputError:
        """An error that points into the source."""
        return SourceText(self.source, self.file).error(message, position, hint)


@dataclass(frozen=True)
class Definitions:
    """What properties may use of a model's file: values of constants, and expanded formulas."""

    constants: Mapping[str, Value] = field(default_factory=dict)
    formulas: Mapping[str, syntax.Expression] = field(default_factory=dict)
    clocks: frozenset[str] = frozenset()
    """Of a timed automaton, whose properties speak neither of them nor of steps."""

    @classmethod
    def of(cls, program: Program) -> Definitions:
        clocks = program.clocks | names_in(program.source, CLOCK)
        return cls(dict(program.constants), dict(program.formulas), clocks)

    @classmethod
    def in_comments(cls, text: str) -> Definitions | None:
        """What a file that is no program says of variables that were clocks; None where nothing is."""
        clocks = names_in(text, CLOCK)
        return cls(clocks=clocks) if clocks else None
