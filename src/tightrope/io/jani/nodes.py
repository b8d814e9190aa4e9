"""The objects, expressions and declarations of JANI files.

Expressions become our syntax trees, and every object knows the path that leads to it. Places in a file of
JSON are paths such as `automata[0].edges[3].guard`: what is wrong is said there. A path is kept as a line
of a made-up text, so that everything behind the reader can point at it as at a PRISM text.

A constant of type real without a value is a parameter, as in the PRISM language. Transient variables have no
value of their own: what a location says is their value in a state (a `Formula` of ours; those of type bool
are labels), and what an edge assigns is earned with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import Complaint, Constant, Expression, Literal, Type, VariableDeclaration


@dataclass
class Places:
    """The paths that were met; their numbers are the lines of positions."""

    paths: list[str] = field(default_factory=list)

    def position(self, path: str) -> syntax.Position:
        self.paths.append(path)
        return syntax.Position(len(self.paths), 1)


@dataclass(frozen=True)
class JaniNode:
    """A value of a JANI file. Methods complain where it is not what they want."""

    value: Any
    path: str
    places: Places

    @property
    def position(self) -> syntax.Position:
        return self.places.position(self.path)

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise Complaint(message, self.position, hint)

    def members(self, known: Collection[str]) -> dict[str, Any]:
        """The value as an object with no other keys than these: what is not understood is not passed over."""
        if not isinstance(self.value, dict):
            self.fail("an object {…} is expected here")
        for key in self.value:
            if key not in known and key != "comment":
                self.fail(f"'{key}' is not understood here")
        return self.value

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def at(self, key: str) -> JaniNode:
        if not self.has(key):
            self.fail(f"'{key}' is missing")
        return JaniNode(self.value[key], f"{self.path}.{key}" if self.path else key, self.places)

    def each(self, key: str) -> list[JaniNode]:
        """The members of a list; none where it is missing."""
        if not self.has(key):
            return []
        listed = self.at(key)
        if not isinstance(listed.value, list):
            listed.fail("a list […] is expected here")
        return [JaniNode(v, f"{listed.path}[{i}]", self.places) for i, v in enumerate(listed.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("a name is expected here")
        return self.value

    def name(self) -> str:
        return self.at("name").text()


Scope = Mapping[str, str]
"""What a name of the file is called in our model; names that are not there keep theirs."""

TRUE = syntax.Literal(True, syntax.Type.BOOL)

_BINARY = {
    "∨": "|",
    "∧": "&",
    "⇒": "=>",
    "=": "=",
    "≠": "!=",
    "<": "<",
    "≤": "<=",
    ">": ">",
    "≥": ">=",
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
}
_CALLS = {"%": "mod", "pow": "pow", "log": "log", "min": "min", "max": "max"}
_ROUNDING = {"floor": "floor", "ceil": "ceil"}


def expression(node: JaniNode, scope: Scope) -> syntax.Expression:
    """An expression over the names in scope."""
    value, position = node.value, node.position
    if isinstance(value, bool):
        return syntax.Literal(value, syntax.Type.BOOL, position)
    if isinstance(value, int):
        return syntax.Literal(value, syntax.Type.INT, position)
    if isinstance(value, Fraction):
        return syntax.Literal(value, syntax.Type.DOUBLE, position)
    if isinstance(value, str):
        return syntax.Name(scope.get(value, value), position)
    if not isinstance(value, dict):
        node.fail("this is no expression")
    if "op" not in value:
        if "constant" in value:
            node.fail(f"the number {value['constant']} is irrational, and numbers are exact here")
        node.fail("this is no expression: 'op' is missing")
    operator = node.at("op").text()
    make = _MAKERS.get(operator)
    if make is None:
        node.fail(f"the operator '{operator}' is not supported")
    return make(node, scope, operator, position)


def _binary(node: JaniNode, scope: Scope, operator: str, position: syntax.Position) -> syntax.Expression:
    left, right = expression(node.at("left"), scope), expression(node.at("right"), scope)
    if operator in _CALLS:
        return syntax.Call(_CALLS[operator], (left, right), position)
    return syntax.Binary(_BINARY[operator], left, right, position)


def _unary(node: JaniNode, scope: Scope, operator: str, position: syntax.Position) -> syntax.Expression:
    operand = expression(node.at("exp"), scope)
    zero = syntax.Literal(0, syntax.Type.INT, position)
    negative = syntax.Binary("<", operand, zero, position)
    if operator == "¬":
        return syntax.Unary("!", operand, position)
    if operator == "abs":
        return syntax.Call("max", (operand, syntax.Unary("-", operand, position)), position)
    if operator == "sgn":
        positive = syntax.Binary(">", operand, zero, position)
        ones = syntax.Literal(1, syntax.Type.INT, position), syntax.Literal(-1, syntax.Type.INT, position)
        return syntax.Conditional(
            positive, ones[0], syntax.Conditional(negative, ones[1], zero, position), position
        )
    if operator == "trc":
        ends = syntax.Call("ceil", (operand,), position), syntax.Call("floor", (operand,), position)
        return syntax.Conditional(negative, *ends, position)
    return syntax.Call(_ROUNDING[operator], (operand,), position)


def _choice(node: JaniNode, scope: Scope, operator: str, position: syntax.Position) -> syntax.Expression:
    condition, then, otherwise = (expression(node.at(key), scope) for key in ("if", "then", "else"))
    return syntax.Conditional(condition, then, otherwise, position)


_MAKERS: dict[str, Callable[[JaniNode, Scope, str, syntax.Position], syntax.Expression]] = {
    **dict.fromkeys([*_BINARY, *_CALLS], _binary),
    **dict.fromkeys(["¬", "abs", "sgn", "trc", *_ROUNDING], _unary),
    "ite": _choice,
}


def conjunction(parts: list[syntax.Expression], position: syntax.Position) -> syntax.Expression:
    """All of them; true where there are none. Halved again and again, so that no pass has to go deep."""
    if not parts:
        return TRUE
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    left, right = (conjunction(part, position) for part in (parts[:middle], parts[middle:]))
    return syntax.Binary("&", left, right, position)


_LARGEST = 2**31 - 1
_CALLED = "in tightrope called: "
_TYPES = {"int": Type.INT, "real": Type.DOUBLE, "bool": Type.BOOL}


@dataclass(frozen=True)
class Transient:
    """A transient variable; `default` is its value where nothing says another."""

    name: str
    type: Type
    default: Expression
    node: JaniNode
    title: str
    """What its label or reward structure is called."""

    @property
    def is_label(self) -> bool:
        return self.type is Type.BOOL


def read_constants(root: JaniNode) -> list[Constant]:
    """All constants; the values of some come from `--const`."""
    constants = []
    for node in root.each("constants"):
        node.members(("name", "type", "value"))
        value = expression(node.at("value"), {}) if node.has("value") else None
        constants.append(Constant(node.name(), _type(node.at("type"))[0], value, node.position))
    return constants


def read_variable(node: JaniNode, scope: Scope, name: str) -> VariableDeclaration | Transient:
    """One variable under the name that it has with us."""
    node.members(("name", "type", "transient", "initial-value"))
    type_, low, high = _type(node.at("type"), scope)
    initial = expression(node.at("initial-value"), scope) if node.has("initial-value") else None
    if node.has("transient") and node.at("transient").value is True:
        if initial is None:
            node.fail(f"the transient variable '{name}' needs an initial value")
        return Transient(name, type_, initial, node, _title(node, name))
    if type_ is Type.DOUBLE:
        node.fail(f"variable '{name}' cannot be real: a state has bool and integer variables only")
    return VariableDeclaration(name, type_, low, high, initial, node.position)


def name_in_comment(title: str) -> str:
    """The comment by which a variable says what its label or reward structure is called, if not as it is."""
    return f"{_CALLED}{title}"


def _title(node: JaniNode, name: str) -> str:
    comment = node.value.get("comment")
    return comment[len(_CALLED) :] if isinstance(comment, str) and comment.startswith(_CALLED) else name


def read_variables(
    nodes: Iterable[JaniNode], scope: Scope
) -> tuple[list[VariableDeclaration], list[Transient]]:
    """Variables and transient ones, each in order."""
    made = [read_variable(node, scope, scope.get(node.name(), node.name())) for node in nodes]
    plain = [each for each in made if isinstance(each, VariableDeclaration)]
    return plain, [each for each in made if isinstance(each, Transient)]


def _type(node: JaniNode, scope: Scope | None = None) -> tuple[Type, Expression | None, Expression | None]:
    """A type, and the bounds of an int that has some."""
    if isinstance(node.value, str):
        known = _TYPES.get(node.value)
        if known is None:
            node.fail(f"the type {node.value} is not supported", "int, bool, and real for constants, are")
        return known, None, None
    node.members(("kind", "base", "lower-bound", "upper-bound"))
    kind = node.at("kind").text()
    if kind != "bounded":
        node.fail(f"types of kind '{kind}' are not supported", "let every element be a variable of its own")
    base = _TYPES.get(node.at("base").text())
    if base is Type.DOUBLE:
        return Type.DOUBLE, None, None
    ends = []
    for key, sign in (("lower-bound", -1), ("upper-bound", 1)):
        unlimited = Literal(sign * _LARGEST, Type.INT, node.position)
        ends.append(expression(node.at(key), scope or {}) if node.has(key) else unlimited)
    return Type.INT, ends[0], ends[1]
