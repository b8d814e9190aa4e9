"""Which commands move together: `system … endsystem`, or all modules in parallel where nothing is said.

A composition is a set of synchronisations, each a visible action (None where it has none) and the modules
that take part, with the action that each of them knows it by. They follow from the syntax alone, as in PRISM:

    module M            for every action a of M: (a, M by a); the unlabelled commands move alone
    L || R              L and R together on actions that both have, else each alone
    L |[a,b]| R         together on a and b only; an action that one of them lacks is blocked
    L ||| R             each alone
    L / {a}             a becomes unlabelled
    L {a <- b}          a is called b from here on

An action stays in the alphabet of a part that blocks it, so that others wait for it in vain. Where an action
is possible in several ways on both sides, which renamings bring about, every pair is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tightrope.prism.expand.program import Synchronisation
from tightrope.prism.parse.diagnostics import Complaint, suggestion
from tightrope.prism.parse.syntax import Composition, Hiding, Module, ModuleName, Parallel

Actions = frozenset[str]

_MOST = 100_000
"""Synchronisations beyond this number are a mistake: every further renaming may square them."""

_DEEPEST = 250


def compose(modules: Sequence[Module], system: Composition | None) -> tuple[Synchronisation, ...]:
    """The synchronisations, in the order in which their first commands are written."""
    parts = _Parts(modules)
    if system is None:
        found = parts.of_module(0)
        for number in range(1, len(modules)):
            found = _parallel(found, parts.of_module(number), None)
    else:
        found = parts.of(system)
        left_out = [module for i, module in enumerate(modules) if i not in parts.used]
        if left_out:
            raise Complaint(
                f"module '{left_out[0].name}' does not stand in system … endsystem",
                left_out[0].position,
                "every module stands there once",
            )
    return tuple(sorted(found.ways, key=lambda one: _first_command(one, modules)))


def actions_of(synchronisations: Sequence[Synchronisation]) -> Actions:
    """The visible actions."""
    return frozenset(one.action for one in synchronisations if one.action is not None)


@dataclass(frozen=True)
class _Part:
    """What a part of a composition can do, and the actions that others may wait for."""

    ways: tuple[Synchronisation, ...]
    alphabet: Actions


class _Parts:
    """The synchronisations of the parts of one composition."""

    def __init__(self, modules: Sequence[Module]):
        self._modules = modules
        self._number = {module.name: i for i, module in enumerate(modules)}
        self.used: set[int] = set()

    def of_module(self, number: int) -> _Part:
        self.used.add(number)
        actions = dict.fromkeys(command.action for command in self._modules[number].commands)
        ways = tuple(Synchronisation(action, ((number, action),)) for action in actions)
        return _Part(ways, actions_of(ways))

    def of(self, part: Composition, depth: int = 0) -> _Part:
        if depth > _DEEPEST:
            raise Complaint(f"this composition is nested more than {_DEEPEST} deep", part.position)
        if isinstance(part, ModuleName):
            return self._name_part(part)
        if isinstance(part, Parallel):
            left, right = self.of(part.left, depth + 1), self.of(part.right, depth + 1)
            if len(left.ways) * len(right.ways) > _MOST:
                raise Complaint(
                    f"this composition has more than {_MOST:,} ways to synchronise", part.position
                )
            return _parallel(left, right, part.actions)
        inner = self.of(part.inner, depth + 1)
        if isinstance(part, Hiding):
            return _rename(inner, dict.fromkeys(part.actions))
        mapping: dict[str, str | None] = {}
        for old, new in part.renaming:
            if old in mapping:
                raise Complaint(f"action '{old}' is renamed twice", part.position)
            mapping[old] = new
        return _rename(inner, mapping)

    def _name_part(self, part: ModuleName) -> _Part:
        number = self._number.get(part.name)
        if number is None:
            raise Complaint(
                f"there is no module '{part.name}'",
                part.position,
                suggestion(part.name, self._number, "modules"),
            )
        if number in self.used:
            raise Complaint(
                f"module '{part.name}' stands twice in system … endsystem",
                part.position,
                f"a copy under another name:  module {part.name}2 = {part.name} [ … ] endmodule",
            )
        return self.of_module(number)


def _parallel(left: _Part, right: _Part, actions: tuple[str, ...] | None) -> _Part:
    shared = left.alphabet & right.alphabet if actions is None else frozenset(actions)
    alone = [one for one in left.ways + right.ways if one.action is None or one.action not in shared]
    together: list[Synchronisation] = []
    for action in sorted(shared):
        sides = ([one for one in side.ways if one.action == action] for side in (left, right))
        together += [Synchronisation(action, one.parts + other.parts) for one, other in product(*sides)]
    return _Part((*alone, *together), left.alphabet | right.alphabet)


def _rename(inner: _Part, mapping: Mapping[str, str | None]) -> _Part:
    """With other names for actions; None hides them."""

    def name_of(action: str | None) -> str | None:
        return None if action is None else mapping.get(action, action)

    ways = tuple(Synchronisation(name_of(one.action), one.parts) for one in inner.ways)
    return _Part(ways, frozenset(name for action in inner.alphabet if (name := name_of(action)) is not None))


def _first_command(one: Synchronisation, modules: Sequence[Module]) -> tuple[int, int]:
    module, action = min(one.parts, key=lambda part: part[0])
    commands = modules[module].commands
    return module, next(i for i, command in enumerate(commands) if command.action == action)
