"""Constants and variables of a JANI file.

A constant of type real without a value is a parameter, as in the PRISM language. Transient variables have no
value of their own: what a location says is their value in a state (a `Formula` of ours; those of type bool
are labels), and what an edge assigns is earned with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tightrope.io.jani.nodes import Node, Scope, expression
from tightrope.prism.parse.syntax import Constant, Expression, Literal, Type, Variable

_LARGEST = 2**31 - 1
_CALLED = "in tightrope called: "
_TYPES = {"int": Type.INT, "real": Type.DOUBLE, "bool": Type.BOOL}


@dataclass(frozen=True)
class Transient:
    """A transient variable; `default` is its value where nothing says another."""

    name: str
    type: Type
    default: Expression
    node: Node
    title: str
    """What its label or reward structure is called."""

    @property
    def is_label(self) -> bool:
        return self.type is Type.BOOL


def read_constants(root: Node) -> list[Constant]:
    """All constants; the values of some come from `--const`."""
    found = []
    for node in root.each("constants"):
        node.members(("name", "type", "value"))
        value = expression(node.at("value"), {}) if node.has("value") else None
        found.append(Constant(node.name(), _type(node.at("type"))[0], value, node.position))
    return found


def read_variable(node: Node, scope: Scope, name: str) -> Variable | Transient:
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
    return Variable(name, type_, low, high, initial, node.position)


def name_in_comment(title: str) -> str:
    """The comment by which a variable says what its label or reward structure is called, if not as it is."""
    return f"{_CALLED}{title}"


def _title(node: Node, name: str) -> str:
    comment = node.value.get("comment")
    return comment[len(_CALLED) :] if isinstance(comment, str) and comment.startswith(_CALLED) else name


def read_variables(nodes: Iterable[Node], scope: Scope) -> tuple[list[Variable], list[Transient]]:
    """Variables and transient ones, each in order."""
    made = [read_variable(node, scope, scope.get(node.name(), node.name())) for node in nodes]
    plain = [each for each in made if isinstance(each, Variable)]
    return plain, [each for each in made if isinstance(each, Transient)]


def _type(node: Node, scope: Scope | None = None) -> tuple[Type, Expression | None, Expression | None]:
    """A type, and the bounds of an int that has some."""
    if isinstance(node.value, str):
        known = _TYPES.get(node.value)
        if known is None:
            node.fail(f"the type {node.value} is not supported", "int, bool, and real for constants, are")
        return known, None, None
    node.members(("kind", "base", "lower-bound", "upper-bound"))
    kind = node.at("kind").text()
    if kind != "bounded":
        node.fail(f"types of kind '{kind}' are not supported")
    base = _TYPES.get(node.at("base").text())
    if base is Type.DOUBLE:
        return Type.DOUBLE, None, None
    ends = []
    for key, sign in (("lower-bound", -1), ("upper-bound", 1)):
        unlimited = Literal(sign * _LARGEST, Type.INT, node.position)
        ends.append(expression(node.at(key), scope or {}) if node.has(key) else unlimited)
    return Type.INT, ends[0], ends[1]
