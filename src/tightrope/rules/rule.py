"""A decision rule: what to do in a state, as a tree of tests or as a table, and the bound it guarantees.

A rule knows columns (variables of states), actions and a memory, and no model. A tree has inner nodes with a
test `left + sign * right <= bound` or `left = bound`, and leaves with an action. A table has a row per state
(and first step, or memory). The JSON of the record is the file that `DecisionRule.read` takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, Struct, UnsetType

from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.text import reading

RULE_FORMAT = "tightrope rule"

Value = int | bool | str
Columns = Mapping[str, npt.NDArray[np.generic]]


class RuleMemory(StrEnum):
    """What a rule needs beside the state."""

    NONE = "none"
    STEP = "step"
    MEMORY = "memory"


class Column(Struct, frozen=True, kw_only=True):
    """A variable of the state; `names` are texts of its values, where there are any."""

    name: str
    kind: str
    """`int`, `bool` or `text`."""
    names: dict[str, str] | UnsetType = UNSET

    def call(self, value: Value) -> str:
        """A value as people call it."""
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return shown if isinstance(self.names, UnsetType) else self.names.get(shown, shown)


class RuleTest(Struct, frozen=True, kw_only=True):
    """`left + sign * right <= bound`, or `left = bound` where `equal` is set."""

    left: str
    bound: Value
    right: str | UnsetType = UNSET
    sign: int = 0
    equal: bool = False

    def holds(self, columns: Columns) -> BoolArray:
        """In which rows it holds."""
        left = columns[self.left]
        if self.equal:
            return np.asarray(left == self.bound)
        assert isinstance(self.bound, int)
        total = left.astype(np.int64)
        if not isinstance(self.right, UnsetType):
            total = total + self.sign * columns[self.right].astype(np.int64)
        return np.asarray(total <= self.bound)

    def words(self, columns: Mapping[str, Column], holds: bool = True) -> str:
        """The test, or its negation, in words."""
        column, bound = columns[self.left], self.bound
        if self.equal:
            return f"{self.left} is {'' if holds else 'not '}{column.call(bound)}"
        assert isinstance(bound, int)
        if isinstance(self.right, UnsetType):
            if column.kind == "bool":
                return f"not {self.left}" if holds else self.left
            return (
                f"{self.left} is at most {column.call(bound)}"
                if holds
                else f"{self.left} is at least {column.call(bound + 1)}"
            )
        if self.sign < 0 and bound in (-1, 0):
            how = ("at most", "less than") if holds else ("greater than", "at least")
            return f"{self.left} is {how[bound]} {self.right}"
        total = f"{self.left} {'+' if self.sign > 0 else '-'} {self.right}"
        return f"{total} is at most {bound}" if holds else f"{total} is at least {bound + 1}"


class Leaf(Struct, frozen=True, tag="action"):
    """The end of a path through a tree."""

    action: str


class Branch(Struct, frozen=True, tag="test"):
    """An inner node."""

    test: RuleTest
    yes: Branch | Leaf
    no: Branch | Leaf


Tree = Branch | Leaf


class RuleRow(Struct, frozen=True, array_like=True):
    """A row of a table: the state, its action, and the first step or the memory with the next one."""

    state: list[Value]
    action: str
    memory: int = 0
    following: int = 0


class Guarantee(Struct, frozen=True, kw_only=True):
    """What the rule guarantees; `robust` is the guarantee of the best policy that was found."""

    question: str = msgspec.field(name="property")
    headline: str
    guarantee: float
    robust: float
    confidence: float


class DecisionRule(Struct, frozen=True, kw_only=True):
    """What to do in a state: a `tree`, or a `table`."""

    format: str = RULE_FORMAT
    version: int = 1
    columns: list[Column]
    actions: list[str]
    memory: RuleMemory = RuleMemory.NONE
    promise: Guarantee | None = None
    tree: Tree | None = None
    table: list[RuleRow] | None = None

    @staticmethod
    def read(path: Path) -> DecisionRule:
        """The rule in a JSON file."""
        try:
            with reading(path) as file:
                rule = msgspec.json.decode(file.read(), type=DecisionRule)
        except msgspec.DecodeError as error:
            raise InputError(f"this is not a decision rule: {error}", Location(str(path))) from error
        if rule.format != RULE_FORMAT or (rule.tree is None) == (rule.table is None):
            raise InputError("this is not a decision rule", Location(str(path)))
        return rule

    @property
    def by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @property
    def nodes(self) -> int:
        """The number of inner nodes of the tree."""
        return 0 if self.tree is None else sum(isinstance(node, Branch) for node in walk(self.tree))

    def decide(self, columns: Columns) -> OffsetArray:
        """What the tree does in every row, as an index among the actions."""
        assert self.tree is not None
        action = np.zeros(len(next(iter(columns.values()))), np.int64)
        self._decide(self.tree, columns, np.arange(len(action)), action)
        return action

    def _decide(self, tree: Tree, columns: Columns, rows: OffsetArray, action: OffsetArray) -> None:
        if isinstance(tree, Leaf):
            action[rows] = self.actions.index(tree.action)
            return
        holds = tree.test.holds({name: column[rows] for name, column in columns.items()})
        self._decide(tree.yes, columns, rows[holds], action)
        self._decide(tree.no, columns, rows[~holds], action)

    def words(self) -> list[tuple[int, str]]:
        """The tree as lines of text with their depth: `if wear is at most 1: run`, `otherwise: service`."""
        assert self.tree is not None
        return list(_words(self.tree, self.by_name, 0))

    def sentence(self) -> str:
        """A small tree in one sentence."""
        assert self.tree is not None
        return _sentence(self.tree, self.by_name) + "."


def walk(tree: Tree) -> Iterator[Tree]:
    """All nodes, parents first."""
    yield tree
    if isinstance(tree, Branch):
        yield from walk(tree.yes)
        yield from walk(tree.no)


def show_action(action: str) -> str:
    return action or "[]"


def _words(tree: Tree, columns: Mapping[str, Column], depth: int) -> Iterator[tuple[int, str]]:
    if isinstance(tree, Leaf):
        yield depth, show_action(tree.action)
        return
    for opening, side in ((f"if {tree.test.words(columns)}", tree.yes), ("otherwise", tree.no)):
        if isinstance(side, Leaf):
            yield depth, f"{opening}: {show_action(side.action)}"
        else:
            yield depth, f"{opening}:"
            yield from _words(side, columns, depth + 1)


def _sentence(tree: Tree, columns: Mapping[str, Column]) -> str:
    """The branch that ends at once comes first: `If wear is at least 2, service; otherwise run`."""
    if isinstance(tree, Leaf):
        return f"Always {show_action(tree.action)}"
    parts: list[str] = []
    while isinstance(tree, Branch):
        first, holds = (tree.yes, True) if isinstance(tree.yes, Leaf) else (tree.no, False)
        if not isinstance(first, Leaf):
            parts.append(f"see the tree ({sum(isinstance(node, Branch) for node in walk(tree))} tests)")
            break
        word = "If" if not parts else "if"
        parts.append(f"{word} {tree.test.words(columns, holds)}, {show_action(first.action)}")
        tree = tree.no if holds else tree.yes
    else:
        parts.append(show_action(tree.action))
    return "; otherwise ".join(parts)
