"""Guards and updates as instructions over int64 registers, for a compiled loop that runs them state by state.

NumPy runs a node on a whole frame in one call, which is best where frames are large; a frame of a few states
costs as many calls. Here the nodes of an expression become a short list of instructions
(operation, target, a, b, c), which `run` follows for one state. The first registers are the variables of
the program, constants have registers that are never written. Only what cannot fail and stays within int64 is
translated (`Node.origin`), so the instructions compute what the nodes do; anything else is `Untranslatable`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.jit import inlined
from tightrope.prism.explore.frame import VARIABLE, Boolean, Integer, Node

(ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, MINIMUM, MAXIMUM, CHOOSE) = range(8)
(EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, AND, OR, NOT, REQUIRE) = range(8, 18)
"""REQUIRE leaves the list, with the answer no, where register a is 0."""

_CODE = {
    "+": ADD,
    "-": SUBTRACT,
    "*": MULTIPLY,
    "//": DIVIDE,
    "mod": MODULO,
    "min": MINIMUM,
    "max": MAXIMUM,
    "choose": CHOOSE,
    "=": EQUAL,
    "<=>": EQUAL,
    "!=": UNEQUAL,
    "<": LESS,
    "<=": AT_MOST,
    ">": MORE,
    ">=": AT_LEAST,
    "&": AND,
    "|": OR,
    "!": NOT,
}


class Untranslatable(Exception):
    """A node that may fail, or whose numbers may exceed int64."""


class Instructions:
    """Grows list by list; `code` and `registers` are what `run` works on."""

    def __init__(self, variables: int):
        self._code: list[tuple[int, int, int, int, int]] = []
        self._initial = [0] * variables
        self._constants: dict[int, int] = {}

    @property
    def code(self) -> OffsetArray:
        return np.array(self._code, dtype=np.int64).reshape(-1, 5)

    @property
    def registers(self) -> OffsetArray:
        """A register per variable, and further ones, among them the constants."""
        return np.array(self._initial, dtype=np.int64)

    def condition(self, node: Boolean) -> tuple[int, int]:
        """A list that is left early where the condition does not hold; its begin and end."""
        begin = len(self._code)
        known: dict[int, int] = {}
        for conjunct in _conjuncts(node):
            self._code.append((REQUIRE, 0, self._translate(conjunct, known), 0, 0))
        return begin, len(self._code)

    def values(self, nodes: Sequence[Node]) -> tuple[int, int, list[int]]:
        """A list that computes the nodes: its begin, its end, and the registers of the results."""
        begin = len(self._code)
        known: dict[int, int] = {}
        found = [self._translate(node, known) for node in nodes]
        return begin, len(self._code), found

    def _translate(self, node: Node, known: dict[int, int]) -> int:
        """The register that holds the node's value once the instructions so far have run."""
        if node.uid in known:
            return known[node.uid]
        if isinstance(node, Integer | Boolean) and node.constant is not None:
            return self._constant(int(node.constant))
        if node.origin is None or (node.origin[0] != VARIABLE and node.origin[0] not in _CODE):
            raise Untranslatable
        name, children = node.origin
        if name == VARIABLE:
            (register,) = node.variables
            return register
        operands = [self._translate(child, known) for child in children]
        operands += [0] * (3 - len(operands))
        target = self._new(0)
        self._code.append((_CODE[name], target, operands[0], operands[1], operands[2]))
        known[node.uid] = target
        return target

    def _constant(self, value: int) -> int:
        if not -(2**63) <= value < 2**63:
            raise Untranslatable
        if value not in self._constants:
            self._constants[value] = self._new(value)
        return self._constants[value]

    def _new(self, value: int) -> int:
        self._initial.append(value)
        return len(self._initial) - 1


def _conjuncts(node: Boolean) -> list[Node]:
    """The conditions whose conjunction it is, from left to right."""
    found: list[Node] = []
    rest: list[Node] = [node]
    while rest:
        part = rest.pop()
        if part.origin is not None and part.origin[0] == "&":
            rest += reversed(part.origin[1])
        else:
            found.append(part)
    return found


@inlined
def run(code: OffsetArray, begin: int, end: int, registers: OffsetArray) -> bool:
    """Follow a list of instructions; whether all that it requires holds."""
    for at in range(begin, end):
        operation = code[at, 0]
        a = registers[code[at, 2]]
        if operation == REQUIRE:
            if a == 0:
                return False
            continue
        b = registers[code[at, 3]]
        if operation == EQUAL:
            value = np.int64(a == b)
        elif operation == ADD:
            value = a + b
        elif operation == SUBTRACT:
            value = a - b
        elif operation == MULTIPLY:
            value = a * b
        elif operation == DIVIDE:
            value = a // b
        elif operation == MODULO:
            value = a % b
        elif operation == MINIMUM:
            value = min(a, b)
        elif operation == MAXIMUM:
            value = max(a, b)
        elif operation == CHOOSE:
            value = b if a != 0 else registers[code[at, 4]]
        elif operation == UNEQUAL:
            value = np.int64(a != b)
        elif operation == LESS:
            value = np.int64(a < b)
        elif operation == AT_MOST:
            value = np.int64(a <= b)
        elif operation == MORE:
            value = np.int64(a > b)
        elif operation == AT_LEAST:
            value = np.int64(a >= b)
        elif operation == AND:
            value = a & b
        elif operation == OR:
            value = a | b
        else:
            value = np.int64(a == 0)
        registers[code[at, 1]] = value
    return True
