"""Objects, expressions and declarations of JANI files, as syntax trees.

Errors name a path such as `automata[0].edges[3].guard`: a line of a generated text, at which later stages
point as at PRISM text. Real constants without a value are parameters. A location gives transient variables
their value in a state (labels are those of type bool), an edge's assignment is earned with it. Functions are
expanded at each call. An array is one variable per element, `a_at_0`, …; a variable index is found by
bisection and checked only where it is evaluated (`syntax.Checked`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NoReturn

from tightrope.prism.expand.constants import resolve_constants
from tightrope.prism.expand.expressions import Inliner, check_type, dependency_order, fold
from tightrope.prism.parse import syntax
from tightrope.prism.parse.digital_clocks import Clock
from tightrope.prism.parse.syntax import (
    Binary,
    Checked,
    Complaint,
    Constant,
    Expression,
    Literal,
    Type,
    VariableDeclaration,
    children,
    suggestion,
)


@dataclass
class Places:
    """The paths that were met; their numbers are the lines of positions."""

    paths: list[str] = field(default_factory=list)
    calls: int = 0
    """How many calls of functions were written out."""

    def position(self, path: str) -> syntax.Position:
        self.paths.append(path)
        return syntax.Position(len(self.paths), 1)


@dataclass(frozen=True)
class JaniNode:
    """A value of a JANI file. Methods complain where it is not what they want."""

    value: object
    path: str
    places: Places

    @property
    def position(self) -> syntax.Position:
        return self.places.position(self.path)

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise Complaint(message, self.position, hint)

    def members(self, known: Collection[str]) -> dict[str, object]:
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
        if not isinstance(self.value, dict) or key not in self.value:
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


@dataclass(frozen=True)
class Array:
    """The elements of an array, which may be arrays themselves."""

    elements: tuple[Value, ...]

    def leaves(self) -> list[Expression]:
        return [leaf for each in self.elements for leaf in leaves_of(each)]


Value = Expression | Array


def leaves_of(value: Value) -> list[Expression]:
    """The single values of an array, in order; a single value alone."""
    return value.leaves() if isinstance(value, Array) else [value]


@dataclass(frozen=True)
class Declarations:
    """What the whole model declares: types and arrays by the names that they have with us."""

    constants: Sequence[Constant]
    given: Mapping[str, str]
    types: dict[str, Type] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    has_clocks: bool = False

    @cached_property
    def values(self) -> Mapping[str, Literal]:
        """Constants that have a value; lengths of arrays may depend on them."""
        return resolve_constants(self.constants, self.given, Inliner({}, "formulas"), {}, used=()).values


@dataclass(frozen=True)
class JaniScope:
    """What names of the file mean."""

    declared: Declarations
    renamed: Mapping[str, str] = field(default_factory=dict)
    """What a name is called in our model; names that are not there keep theirs."""
    functions: dict[str, Function] = field(default_factory=dict)
    bound: Mapping[str, Value] = field(default_factory=dict)
    """Parameters of the function, and variables of array constructors."""

    def ours(self, name: str) -> str:
        return self.renamed.get(name, name)

    def value(self, name: str, position: syntax.Position) -> Value:
        if name in self.bound:
            return self.bound[name]
        ours = self.ours(name)
        return self.declared.arrays.get(ours) or syntax.Name(ours, position)

    def binding(self, bound: Mapping[str, Value]) -> JaniScope:
        return replace(self, bound={**self.bound, **bound})


@dataclass(frozen=True)
class Function:
    """A function as it is declared; its body belongs to the scope around it."""

    node: JaniNode
    parameters: Mapping[str, JaniNode]
    """Their types."""
    scope: JaniScope


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


def expression(node: JaniNode, scope: JaniScope) -> syntax.Expression:
    """An expression over the names in scope."""
    result = read_value(node, scope)
    if isinstance(result, Array):
        node.fail("a single value is expected here, and this is an array")
    return result


def read_value(node: JaniNode, scope: JaniScope) -> Value:
    """An expression, or an array of such."""
    value, position = node.value, node.position
    if isinstance(value, bool):
        return syntax.Literal(value, syntax.Type.BOOL, position)
    if isinstance(value, int):
        return whole(value, position)
    if isinstance(value, Fraction):
        return syntax.Literal(value, syntax.Type.DOUBLE, position)
    if isinstance(value, str):
        return scope.value(value, position)
    if not isinstance(value, dict):
        node.fail("this is not an expression")
    if "op" not in value:
        if "constant" in value:
            node.fail(f"the number {value['constant']} is irrational, and numbers are exact here")
        node.fail("this is not an expression: 'op' is missing")
    operator = node.at("op").text()
    make = _MAKERS.get(operator)
    if make is None:
        node.fail(f"the operator '{operator}' is not supported")
    return make(node, scope, operator, position)


def _binary(node: JaniNode, scope: JaniScope, operator: str, position: syntax.Position) -> syntax.Expression:
    left, right = expression(node.at("left"), scope), expression(node.at("right"), scope)
    if operator in _CALLS:
        return syntax.Call(_CALLS[operator], (left, right), position)
    return syntax.Binary(_BINARY[operator], left, right, position)


def _unary(node: JaniNode, scope: JaniScope, operator: str, position: syntax.Position) -> syntax.Expression:
    operand = expression(node.at("exp"), scope)
    zero = whole(0, position)
    negative = syntax.Binary("<", operand, zero, position)
    if operator == "¬":
        return syntax.Unary("!", operand, position)
    if operator == "abs":
        return syntax.Call("max", (operand, syntax.Unary("-", operand, position)), position)
    if operator == "sgn":
        positive = syntax.Binary(">", operand, zero, position)
        otherwise = syntax.Conditional(negative, whole(-1, position), zero, position)
        return syntax.Conditional(positive, whole(1, position), otherwise, position)
    if operator == "trc":
        ends = syntax.Call("ceil", (operand,), position), syntax.Call("floor", (operand,), position)
        return syntax.Conditional(negative, *ends, position)
    return syntax.Call(_ROUNDING[operator], (operand,), position)


def _choice(node: JaniNode, scope: JaniScope, operator: str, position: syntax.Position) -> Value:
    condition = expression(node.at("if"), scope)
    then, otherwise = (read_value(node.at(key), scope) for key in ("then", "else"))
    return _choose(condition, then, otherwise, node)


def _choose(condition: Expression, then: Value, otherwise: Value, node: JaniNode) -> Value:
    """One of two values, element by element where they are arrays."""
    if isinstance(then, Array) and isinstance(otherwise, Array):
        if len(then.elements) == len(otherwise.elements):
            pairs = zip(then.elements, otherwise.elements, strict=True)
            return Array(tuple(_choose(condition, one, other, node) for one, other in pairs))
    elif not isinstance(then, Array) and not isinstance(otherwise, Array):
        return syntax.Conditional(condition, then, otherwise, node.position)
    node.fail("arrays of different lengths cannot stand for each other here")


MOST_ELEMENTS = 10_000
MOST_PARTS = 20_000
MOST_CALLS = 100_000


def _elements(node: JaniNode, scope: JaniScope, operator: str, position: syntax.Position) -> Value:
    """`av`, an array by its elements, and `ac`, one by an expression for all of them."""
    if operator == "av":
        return _array(node, (read_value(each, scope) for each in node.each("elements")))
    length = fold(expression(node.at("length"), scope), scope.declared.values)
    if not isinstance(length, Literal) or length.type is not Type.INT or length.value < 0:
        node.at("length").fail("the length of an array must be a constant natural number")
    variable, content = node.at("var").text(), node.at("exp")
    indices = (whole(k, position) for k in range(int(length.value)))
    return _array(node, (read_value(content, scope.binding({variable: each})) for each in indices))


def _array(node: JaniNode, elements: Iterable[Value]) -> Array:
    result, count = list[Value](), 0
    for each in elements:
        result.append(each)
        count += len(leaves_of(each))
        if count > MOST_ELEMENTS:
            node.fail(f"an array may have at most {MOST_ELEMENTS:,} elements")
    return Array(tuple(result))


def _access(node: JaniNode, scope: JaniScope, operator: str, position: syntax.Position) -> Value:
    inner, indices = read_indices(node, scope)
    return _limited(_pick(read_value(inner, scope), inner, indices), node)


def read_indices(node: JaniNode, scope: JaniScope) -> tuple[JaniNode, list[Index]]:
    """What `a[i][j]` is an element of, and the indices from outside."""
    indices = list[Index]()
    while isinstance(node.value, dict) and node.value.get("op") == "aa":
        node.members(("op", "exp", "index"))
        at = node.at("index")
        index = expression(at, scope)
        check_type(index, scope.declared.types, Type.INT, "the index of an array")
        indices.insert(0, Index(at, fold(index, scope.declared.values)))
        node = node.at("exp")
    return node, indices


@dataclass(frozen=True)
class Index:
    """An index of an array, as a number where constants decide it."""

    node: JaniNode
    value: Expression

    def of(self, length: int) -> Sequence[int]:
        """Which of so many elements it may mean."""
        is_fixed = isinstance(self.value, Literal) and 0 <= self.value.value < length
        return [int(self.value.value)] if isinstance(self.value, Literal) and is_fixed else range(length)

    def checked(self, length: int) -> Expression:
        """The index, an error where it is none of an array of that length."""
        message = f"this index is outside of the array, whose {length} elements are 0..{length - 1}"
        return _within(self.value, whole(0), whole(length - 1), message, self.node.position)


def _pick(array: Value, node: JaniNode, indices: Sequence[Index]) -> Value:
    """An element, by halving where an index is open: no pass has to go deep."""
    if not indices:
        return array
    if not isinstance(array, Array):
        node.fail("an array is expected here")
    (index, *others), elements = indices, array.elements
    if not elements:
        node.fail("this array has no elements")
    position = index.node.position

    def halve(among: Sequence[int], at: Expression) -> Value:
        if len(among) == 1:
            return _pick(elements[among[0]], node, others)
        middle = len(among) // 2
        below = Binary("<", at, whole(among[middle], position), position)
        return _choose(below, halve(among[:middle], index.value), halve(among[middle:], index.value), node)

    among, checked = index.of(len(elements)), index.checked(len(elements))
    if len(elements) == 1 and checked != index.value:
        element = halve(among, checked)
        return _choose(Binary("=", checked, index.value, position), element, element, node)
    return halve(among, checked)


def _within(
    value: Expression, low: Expression, high: Expression, message: str, position: syntax.Position
) -> Expression:
    ends = Binary("<=", low, value, position), Binary("<=", value, high, position)
    return fold(Checked(Binary("&", *ends, position), value, message, position), {})


def _limited(value: Value, node: JaniNode) -> Value:
    """The value, unless it is too large written out: whatever passes over it walks all its parts."""
    stack, parts = list(leaves_of(value)), 0
    while stack:
        parts += 1
        stack.extend(children(stack.pop()))
        if parts > MOST_PARTS:
            node.fail(f"written out, this expression has more than {MOST_PARTS:,} parts")
    return value


def declare_functions(node: JaniNode, scope: JaniScope) -> list[JaniNode]:
    """Put the functions that a model or an automaton declares into its scope; none may call itself."""
    calls: dict[str, Expression] = {}
    declared = node.each("functions")
    for each in declared:
        each.members(("name", "type", "parameters", "body"))
        if each.name() in scope.functions:
            each.fail(f"the function '{each.name()}' is declared twice")
        parameters: dict[str, JaniNode] = {}
        for parameter in each.each("parameters"):
            parameter.members(("name", "type"))
            if parameter.name() in parameters:
                parameter.fail(f"the parameter '{parameter.name()}' is declared twice")
            parameters[parameter.name()] = parameter.at("type")
        scope.functions[each.name()] = Function(each, parameters, scope)
        calls[each.name()] = syntax.Call("", tuple(_called(each.at("body"))))
    dependency_order(calls, "functions")
    return declared


def read_functions(node: JaniNode, scope: JaniScope) -> None:
    """Declare functions and write each out once, so that mistakes show without a call."""
    for each in declare_functions(node, scope):
        function = scope.functions[each.name()]
        kinds = {key: read_type(type_, scope) for key, type_ in function.parameters.items()}
        if all(kind.levels == 0 for kind in kinds.values()):
            named = {key: syntax.Name(f"{each.name()}({key})", each.position) for key in kinds}
            known = {**scope.declared.types, **{named[key].name: kinds[key].type for key in kinds}}
            _write_out(each.name(), function, named, each, replace(scope.declared, types=known))


def _called(node: JaniNode) -> Iterable[syntax.Name]:
    if isinstance(node.value, dict):
        if node.value.get("op") == "call":
            yield syntax.Name(node.at("function").text(), node.position)
        for key in node.value:
            yield from _called(node.at(key))
            for each in node.each(key) if isinstance(node.value[key], list) else ():
                yield from _called(each)


def _call_function(node: JaniNode, scope: JaniScope, operator: str, position: syntax.Position) -> Value:
    name, given = node.at("function").text(), node.each("args")
    function = scope.functions.get(name)
    if function is None:
        node.fail(f"there is no function '{name}'", suggestion(name, scope.functions, "functions"))
    if len(given) != len(function.parameters):
        many = len(function.parameters)
        node.fail(f"'{name}' takes {many} argument{'' if many == 1 else 's'}, and {len(given)} are given")
    arguments = dict[str, Value]()
    for (key, type_), each in zip(function.parameters.items(), given, strict=True):
        what = f"the argument '{key}' of '{name}'"
        kind = read_type(type_, function.scope)
        arguments[key] = kind.fit(read_value(each, scope), what, each, scope.declared.types)
    return _write_out(name, function, arguments, node, scope.declared)


def _write_out(
    name: str, function: Function, arguments: Mapping[str, Value], node: JaniNode, declared: Declarations
) -> Value:
    scope = replace(function.scope, declared=declared, bound=arguments)
    node.places.calls += 1
    if node.places.calls > MOST_CALLS:
        node.fail(f"functions are called more than {MOST_CALLS:,} times, the calls inside of calls counted")
    body = _limited(read_value(function.node.at("body"), scope), node)
    kind = read_type(function.node.at("type"), scope)
    return kind.fit(body, f"what '{name}' gives", node, declared.types)


_MAKERS: dict[str, Callable[[JaniNode, JaniScope, str, syntax.Position], Value]] = {
    **dict.fromkeys([*_BINARY, *_CALLS], _binary),
    **dict.fromkeys(["¬", "abs", "sgn", "trc", *_ROUNDING], _unary),
    "ite": _choice,
    "av": _elements,
    "ac": _elements,
    "aa": _access,
    "call": _call_function,
}


def joined(
    parts: Sequence[syntax.Expression], position: syntax.Position, operator: str = "&"
) -> syntax.Expression:
    """All of them; true where there are none. Halved again and again, so that no pass has to go deep."""
    if not parts:
        return TRUE
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    left, right = (joined(part, position, operator) for part in (parts[:middle], parts[middle:]))
    return syntax.Binary(operator, left, right, position)


def whole(number: int, position: syntax.Position | None = None) -> Literal:
    """A whole number as an expression."""
    return Literal(number, Type.INT, position)


def anywhere(value: object, holds: Callable[[object], bool]) -> bool:
    """Whether something holds of a part of a JSON value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return holds(value) is True or any(anywhere(part, holds) for part in parts)


_LARGEST = 2**31 - 1
CALLED = "in tightrope called: "
"""How the comment of a variable begins that says what its label or reward structure is called."""

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


@dataclass(frozen=True)
class Declared:
    """What a model or an automaton declares, each kind in order."""

    variables: list[VariableDeclaration] = field(default_factory=list)
    transients: list[Transient] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)


def _read_variable(node: JaniNode, scope: JaniScope, name: str, made: Declared) -> None:
    """One variable under the name that it has with us; of an array, its elements."""
    node.members(("name", "type", "transient", "initial-value"))
    if node.at("type").value == "clock" and scope.declared.has_clocks:
        if node.has("initial-value") and node.at("initial-value").value != 0:
            node.fail(f"the clock '{name}' begins at 0")
        scope.declared.types[name] = Type.INT
        made.clocks.append(Clock(name, node.position))
        return
    kind = read_type(node.at("type"), scope)
    if kind.levels:
        made.variables.extend(_read_array(node, kind, scope, name))
        return
    scope.declared.types[name] = kind.type
    initial = expression(node.at("initial-value"), scope) if node.has("initial-value") else None
    if node.has("transient") and node.at("transient").value is True:
        if initial is None:
            node.fail(f"the transient variable '{name}' needs an initial value")
        made.transients.append(Transient(name, kind.type, initial, node, _title(node, name)))
        return
    if kind.type is Type.DOUBLE:
        node.fail(f"variable '{name}' cannot be real: a state has bool and integer variables only")
    position = node.position
    made.variables.append(VariableDeclaration(name, kind.type, kind.low, kind.high, initial, position))


def _read_array(node: JaniNode, kind: JaniType, scope: JaniScope, name: str) -> list[VariableDeclaration]:
    if node.has("transient") and node.at("transient").value is True:
        node.fail(f"the array '{name}' cannot be transient", "make every element a variable")
    if kind.type is Type.DOUBLE:
        node.fail(f"array '{name}' cannot be of reals: a state has bool and integer variables only")
    if not node.has("initial-value"):
        node.fail(f"array '{name}' needs an initial value, which says how many elements it has")
    at, of_elements = node.at("initial-value"), replace(kind, low=None, high=None)
    what = f"the initial value of '{name}'"
    initial = of_elements.fit(read_value(at, scope), what, at, scope.declared.types)

    def elements(value: Value, name: str) -> Value:
        if isinstance(value, Array):
            return Array(tuple(elements(each, f"{name}_at_{k}") for k, each in enumerate(value.elements)))
        declared.append(VariableDeclaration(name, kind.type, kind.low, kind.high, value, node.position))
        scope.declared.types[name] = kind.type
        return syntax.Name(name, node.position)

    declared: list[VariableDeclaration] = []
    array = elements(initial, name)
    assert isinstance(array, Array)
    if not declared:
        node.fail(f"array '{name}' has no elements")
    scope.declared.arrays[name] = array
    return declared


def _title(node: JaniNode, name: str) -> str:
    comment = node.at("comment").value if node.has("comment") else None
    return comment[len(CALLED) :] if isinstance(comment, str) and comment.startswith(CALLED) else name


def read_variables(nodes: Iterable[JaniNode], scope: JaniScope) -> Declared:
    """Variables, transient ones and clocks."""
    made = Declared()
    for node in nodes:
        _read_variable(node, scope, scope.ours(node.name()), made)
    return made


def global_scope(root: JaniNode, given: Mapping[str, str]) -> JaniScope:
    """The scope of a model, with its constants and their `given` values; variables come into it when read."""
    types: dict[str, Type] = {}
    bare = JaniScope(Declarations((), {}, types))
    declare_functions(root, bare)
    for node in root.each("constants"):
        node.members(("name", "type", "value"))
        kind = read_type(node.at("type"), bare)
        if kind.levels:
            node.at("type").fail("a constant cannot be an array")
        types[node.name()] = kind.type
    constants = [
        Constant(
            node.name(),
            types[node.name()],
            expression(node.at("value"), bare) if node.has("value") else None,
            node.position,
        )
        for node in root.each("constants")
    ]
    return JaniScope(Declarations(constants, given, types, has_clocks=root.at("type").value == "pta"))


@dataclass(frozen=True)
class JaniType:
    """A single type, and the bounds of an int that has some; `levels` of arrays around it."""

    type: Type
    low: Expression | None = None
    high: Expression | None = None
    levels: int = 0

    def fit(self, value: Value, what: str, node: JaniNode, types: Mapping[str, Type]) -> Value:
        """The value, if it is of this type; whether it is within the bounds shows when it is evaluated."""
        if isinstance(value, Array) != (self.levels > 0):
            node.fail(f"{what} must be {'an array' if self.levels else 'a single value, and is an array'}")
        if isinstance(value, Array):
            inner = replace(self, levels=self.levels - 1)
            return Array(tuple(inner.fit(each, what, node, types) for each in value.elements))
        try:
            check_type(value, types, self.type, what)
        except Complaint as complaint:
            node.fail(complaint.message, complaint.hint)
        if self.low is None or self.high is None:
            return value
        low, high = (fold(each, {}) for each in (self.low, self.high))
        return _within(value, low, high, f"{what} is outside of its bounds", node.position)


def read_type(node: JaniNode, scope: JaniScope) -> JaniType:
    """A type of the file."""
    if isinstance(node.value, str):
        known = _TYPES.get(node.value)
        if known is None:
            node.fail(f"the type {node.value} is not supported", "int, bool, and real for constants, are")
        return JaniType(known)
    node.members(("kind", "base", "lower-bound", "upper-bound"))
    kind = node.at("kind").text()
    if kind == "array":
        base = read_type(node.at("base"), scope)
        return replace(base, levels=base.levels + 1)
    if kind != "bounded":
        node.fail(f"types of kind '{kind}' are not supported", "int, bool, and arrays of these are")
    if _TYPES.get(node.at("base").text()) is Type.DOUBLE:
        return JaniType(Type.DOUBLE)
    ends = []
    for key, sign in (("lower-bound", -1), ("upper-bound", 1)):
        unlimited = whole(sign * _LARGEST, node.position)
        ends.append(expression(node.at(key), scope) if node.has(key) else unlimited)
    return JaniType(Type.INT, ends[0], ends[1])
