"""The syntax tree of expressions and models, plain frozen data, and errors that point into their text.

The parser builds it, `check` gives it types, `expand` resolves formulas and renamings, and the
explorer evaluates it on arrays of states. Every node that an error message may point at carries
its `Position`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import TypeVar, cast

from tightrope.errors import InputError, Location

Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Position:
    """Where a node starts in its source text; line and column count from 1."""

    line: int
    column: int


class Type(Enum):
    """PRISM's three types. An int may stand where a double is expected, not the reverse."""

    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"


# --- expressions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """Base of all expressions. `position` does not take part in comparisons."""


@dataclass(frozen=True)
class Literal(Expression):
    """`3`, `0.25` (an exact rational) or `true`; `type` tells an int 2 from a double 2.0."""

    value: int | Fraction | bool
    type: Type
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Name(Expression):
    """A constant, variable, formula or parameter, told apart by `expand`."""

    name: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Label(Expression):
    """A quoted name; only properties may use it."""

    name: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Unary(Expression):
    """`operator` is `-` or `!`."""

    operator: str
    operand: Expression
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Binary(Expression):
    """`operator` is one of `+ - * / = != < <= > >= & | => <=>`."""

    operator: str
    left: Expression
    right: Expression
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Conditional(Expression):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Call(Expression):
    """`function` is one of `min max floor ceil round pow mod log`, or `free` of a label in an update."""

    function: str
    arguments: tuple[Expression, ...]
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Checked(Expression):
    """The whole number `value`; evaluating it where `condition` fails is the error `message`."""

    condition: Expression
    value: Expression
    message: str
    position: Position | None = field(default=None, compare=False)


# --- models --------------------------------------------------------------------------------


FREE = "free"
"""In place of a probability: nothing is known of it (`tightrope.model.free`)."""


class ModelType(Enum):
    """The kinds of model we build; the parser refuses the others by name."""

    DTMC = "dtmc"
    MDP = "mdp"
    POMDP = "pomdp"
    CTMC = "ctmc"
    MA = "ma"
    PTA = "pta"
    POPTA = "popta"
    """Timed automata, which the parser makes an MDP and a POMDP (`digital_clocks`)."""


@dataclass(frozen=True)
class Constant:
    """`const double p;` has no value: a double is then a parameter, others come from --const."""

    name: str
    type: Type
    value: Expression | None
    position: Position


@dataclass(frozen=True)
class Formula:
    """`formula name = expression;`"""

    name: str
    expression: Expression
    position: Position


@dataclass(frozen=True)
class LabelDefinition:
    """`label "name" = expression;`"""

    name: str
    expression: Expression
    position: Position


@dataclass(frozen=True)
class Observable:
    """`observable "name" = expression;`, or a variable between `observables` and `endobservables`."""

    name: str
    expression: Expression
    position: Position
    is_variable: bool = False


@dataclass(frozen=True)
class VariableDeclaration:
    """A bool or an int, bounded unless `low` and `high` are None; `initial` None means the default."""

    name: str
    type: Type
    low: Expression | None
    high: Expression | None
    initial: Expression | None
    position: Position


@dataclass(frozen=True)
class Assignment:
    """`(name' = value)`"""

    name: str
    value: Expression
    position: Position


@dataclass(frozen=True)
class CommandUpdate:
    """`probability : assignments` (1 where left out); `upper` is set for `[probability, upper] : …`."""

    probability: Expression
    upper: Expression | None
    assignments: tuple[Assignment, ...]
    position: Position


@dataclass(frozen=True)
class GuardedCommand:
    """`[action] guard -> updates;`  `action` is None for `[]`; `<> guard -> updates` has rates."""

    action: str | None
    guard: Expression
    updates: tuple[CommandUpdate, ...]
    position: Position
    has_rates: bool = False
    """A Markovian command of a Markov automaton."""
    is_time: bool = False
    """A unit of time passes in a timed automaton (`digital_clocks`)."""


@dataclass(frozen=True)
class Module:
    """Variables and commands; a renamed module has already been copied out by `expand`."""

    name: str
    variables: tuple[VariableDeclaration, ...]
    commands: tuple[GuardedCommand, ...]
    position: Position
    clocks: tuple[str, ...] = ()
    """Of a timed automaton: variables that the command `[time]` counts up (`digital_clocks`)."""


@dataclass(frozen=True)
class ModuleRenaming:
    """`module name = base [ old = new, … ] endmodule`"""

    name: str
    base: str
    renaming: tuple[tuple[str, str], ...]
    position: Position


@dataclass(frozen=True)
class RewardItem:
    """`guard : reward;` for states, `[action] guard : reward;` for choices (`[]`: the unlabelled)."""

    is_choice: bool
    action: str | None
    guard: Expression
    reward: Expression
    position: Position
    is_mean: bool = False
    """Of what the destinations of an edge earn (JANI)."""


@dataclass(frozen=True)
class Rewards:
    """`rewards "name" … endrewards`; the name may be missing."""

    name: str | None
    items: tuple[RewardItem, ...]
    position: Position


@dataclass(frozen=True)
class Composition:
    """How modules are put together, as `system … endsystem` says it."""

    position: Position


@dataclass(frozen=True)
class ModuleName(Composition):
    """A module in `system … endsystem`."""

    name: str


@dataclass(frozen=True)
class SystemName(Composition):
    """`"name"` in `system … endsystem`: the composition `system "name" … endsystem`."""

    name: str


@dataclass(frozen=True)
class NamedSystem:
    """`system "name" … endsystem`; the main one has no name."""

    name: str | None
    composition: Composition
    position: Position


@dataclass(frozen=True)
class Parallel(Composition):
    """`left || right` (`actions` None: all that both have), `left ||| right` (none), `left |[a,b]| right`."""

    left: Composition
    right: Composition
    actions: tuple[str, ...] | None


@dataclass(frozen=True)
class ActionRenaming(Composition):
    """`inner {old <- new, …}`, or `inner / {old, …}`: these become unlabelled (None)."""

    inner: Composition
    renaming: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class ModelFile:
    """A model file as written."""

    type: ModelType
    constants: tuple[Constant, ...]
    formulas: tuple[Formula, ...]
    labels: tuple[LabelDefinition, ...]
    globals: tuple[VariableDeclaration, ...]
    modules: tuple[Module | ModuleRenaming, ...]
    rewards: tuple[Rewards, ...]
    init: Expression | None
    source: str
    file: str
    system: Composition | None = None
    has_clocks: bool = False
    """It was a timed automaton: time passes by the action `time`."""
    observables: tuple[Observable, ...] = ()


# Errors that point into a PRISM text: place, offending line, and a likely correction.


@dataclass(frozen=True)
class SourceText:
    """A text and the name it goes by in messages."""

    text: str
    file: str

    def location(self, position: Position | None) -> Location:
        """The place in the file, with its line where the position is known."""
        if position is None:
            return Location(self.file)
        lines = self.text.split("\n")
        line = lines[position.line - 1] if position.line <= len(lines) else None
        return Location(self.file, position.line, position.column, line)

    def error(self, message: str, position: Position | None, hint: str | None = None) -> InputError:
        """An `InputError` at a position of the text."""
        return InputError(message, self.location(position), hint)

    @contextmanager
    def complaints(self) -> Iterator[None]:
        """Complaints raised inside become the errors that a user sees."""
        try:
            yield
        except Complaint as complaint:
            raise self.error(complaint.message, complaint.position, complaint.hint) from None


class Complaint(Exception):
    """What is wrong with a text, raised where its `SourceText` is not at hand; never leaves the package."""

    def __init__(self, message: str, position: Position | None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.position = position
        self.hint = hint


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands of an expression, from left to right."""
    if isinstance(expression, Binary):
        return expression.left, expression.right
    if isinstance(expression, Unary):
        return (expression.operand,)
    if isinstance(expression, Conditional):
        return expression.condition, expression.then, expression.otherwise
    if isinstance(expression, Call):
        return expression.arguments
    if isinstance(expression, Checked):
        return expression.condition, expression.value
    return ()


def with_children(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    """The same node over other operands; the node itself where they are its own."""
    if all(ours is theirs for ours, theirs in zip(children(expression), new, strict=True)):
        return expression
    if isinstance(expression, Binary):
        return Binary(expression.operator, new[0], new[1], expression.position)
    if isinstance(expression, Unary):
        return Unary(expression.operator, new[0], expression.position)
    if isinstance(expression, Conditional):
        return Conditional(new[0], new[1], new[2], expression.position)
    if isinstance(expression, Checked):
        return Checked(new[0], new[1], expression.message, expression.position)
    assert isinstance(expression, Call)
    return Call(expression.function, new, expression.position)


def rewritten(node: Tree, change: Callable[[object], object]) -> Tree:
    """A tree with what `change` makes of a node in place of it, where that is not None."""
    if (new := change(node)) is not None:
        return cast(Tree, new)
    if isinstance(node, tuple):
        parts = tuple(rewritten(part, change) for part in node)
        return cast(Tree, parts) if any(a is not b for a, b in zip(parts, node, strict=True)) else node
    if not is_dataclass(node) or isinstance(node, type | Position):
        return node
    held = {name: getattr(node, name) for name in node.__dataclass_fields__}
    changed = {name: new for name, part in held.items() if (new := rewritten(part, change)) is not part}
    return replace(node, **changed) if changed else node


def parts_of(node: object) -> Iterator[object]:
    """The node and everything inside of it, but for positions."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple):
            stack.extend(one)
        elif is_dataclass(one) and not isinstance(one, type | Position):
            yield one
            stack.extend(getattr(one, name) for name in one.__dataclass_fields__)


def names(expression: Expression) -> Iterator[Name]:
    """All names in an expression, from left to right, with repetitions."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            yield node
        else:
            stack.extend(reversed(children(node)))


def position_of(expression: Expression | None) -> Position | None:
    """Where an expression starts; None for one that no text stands behind."""
    return getattr(expression, "position", None)


def suggestion(name: str, known: Iterable[str], kind: str = "names") -> str:
    """A hint for an unknown name: the nearest known one, else all of them (or that there are none)."""
    names = sorted(set(known))
    if not names:
        return f"there are no {kind}"
    folded = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"the {kind} are: {shown}"
