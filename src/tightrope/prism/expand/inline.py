"""Named expressions written out wherever their name stands: formulas, and constants of parameters.

PRISM inlines formulas before it renames modules: it is the content of a formula that a renaming
changes, not its name. Inlining is the first pass over every expression, so it also bounds what
the later passes meet: they may recurse, and they may copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tightrope.prism.expand.traverse import children, names, with_children
from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.syntax import Expression, Name, Position

MOST_LEVELS = 250
MOST_NODES = 200_000


@dataclass
class _Inlined:
    """An expression written out, with its number of nodes and levels."""

    expression: Expression
    nodes: int
    levels: int


class Inliner:
    """Definitions that may use each other in any order, but not in a circle."""

    def __init__(self, definitions: Mapping[str, Expression], kind: str):
        self._inlined: dict[str, _Inlined] = {}
        for name in dependency_order(definitions, kind):
            self._inlined[name] = self._inline(definitions[name], 1)

    def __contains__(self, name: str) -> bool:
        return name in self._inlined

    def definition(self, name: str) -> Expression:
        """What a name stands for, written out."""
        return self._inlined[name].expression

    def inline(self, expression: Expression) -> Expression:
        """The expression with every defined name replaced by what it stands for."""
        return self._inline(expression, 1).expression

    def _inline(self, expression: Expression, level: int) -> _Inlined:
        if isinstance(expression, Name):
            known = self._inlined.get(expression.name) or _Inlined(expression, 1, 1)
            _check(expression, level + known.levels - 1, known.nodes)
            return known
        _check(expression, level, 0)
        parts = [self._inline(child, level + 1) for child in children(expression)]
        if not parts:
            return _Inlined(expression, 1, 1)
        nodes = 1 + sum(part.nodes for part in parts)
        _check(expression, level, nodes)
        new = with_children(expression, tuple(part.expression for part in parts))
        return _Inlined(new, nodes, 1 + max(part.levels for part in parts))


def dependency_order(definitions: Mapping[str, Expression], kind: str) -> list[str]:
    """The names so that each comes after those it uses; complains about circles."""
    places: dict[tuple[str, str], Position | None] = {}
    uses: dict[str, list[str]] = {}
    for name, expression in definitions.items():
        uses[name] = []
        for used in names(expression):
            if used.name in definitions:
                places.setdefault((name, used.name), used.position)
                uses[name].append(used.name)
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]
        raise Complaint(
            f"{kind} refer to each other in a circle: {' → '.join(circle)}", places[circle[0], circle[1]]
        ) from None


def _check(place: Expression, levels: int, nodes: int) -> None:
    if levels > MOST_LEVELS:
        raise Complaint(f"this expression is nested more than {MOST_LEVELS} deep", position_of(place))
    if nodes > MOST_NODES:
        raise Complaint(f"written out, this expression has more than {MOST_NODES} parts", position_of(place))
