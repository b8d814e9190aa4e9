"""Automata of a JANI file as modules, and what moves together as synchronisations.

A location is a variable of the module, unless there is only one. An edge is a command; edges of one action
that earn different things get their own actions inside the module, so that every synchronisation earns one
thing. Where the destinations of an edge earn different things, it earns their expectation, on which alone
values depend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tightrope.io.jani.declarations import Transient, read_variables
from tightrope.io.jani.nodes import Node, Scope, conjunction, expression
from tightrope.prism.expand.program import Synchronisation
from tightrope.prism.parse import syntax

Earned = tuple[tuple[str, syntax.Expression], ...]
"""What an edge assigns to transient variables, by name."""


@dataclass
class Automaton:
    """An instance of an automaton: its module, and what edges and locations say of transient variables."""

    module: syntax.Module
    own_actions: dict[str | None, dict[Earned, str | None]]
    in_state: dict[str, syntax.Expression]
    """The value of a transient variable in a state, where this automaton has a say in it."""
    transients: list[Transient]
    initial: list[syntax.Expression]
    """Conditions on the initial states: locations, and what the automaton restricts."""
    written: dict[str | None, set[str]] = field(default_factory=dict)
    """Which variables the edges of an own action assign."""


def read_automaton(
    node: Node, name: str, scope: Scope, transients: Mapping[str, Transient], has_rates: bool = False
) -> Automaton:
    """An automaton under the name of its instance; `transients` are the global ones."""
    node.members(("name", "variables", "restrict-initial", "locations", "initial-locations", "edges"))
    variables, own = read_variables(node.each("variables"), scope)
    known = {**transients, **{each.name: each for each in own}}
    return _Reader(node, name, scope, known, has_rates).read(variables, own)


class _Reader:
    def __init__(
        self, node: Node, name: str, scope: Scope, transients: Mapping[str, Transient], has_rates: bool
    ):
        self.node = node
        self.has_rates = has_rates
        self.name = name
        self.scope = scope
        self.transients = transients
        self.locations = {each.name(): i for i, each in enumerate(node.each("locations"))}
        self.location = f"{name}_location"

    def read(self, variables: list[syntax.Variable], own: list[Transient]) -> Automaton:
        node, position = self.node, self.node.position
        if not self.locations:
            node.fail("an automaton needs a location")
        initial = []
        starts = [self._number(each) for each in node.each("initial-locations")]
        if not starts:
            node.fail("an automaton needs an initial location")
        if len(self.locations) > 1:
            low, high = (syntax.Literal(k, syntax.Type.INT, position) for k in (0, len(self.locations) - 1))
            first = syntax.Literal(starts[0], syntax.Type.INT, position) if len(starts) == 1 else None
            variables = [
                syntax.Variable(self.location, syntax.Type.INT, low, high, first, position),
                *variables,
            ]
            if len(starts) > 1:
                initial.append(_any([self._is_at(start, position) for start in starts], position))
        if node.has("restrict-initial"):
            initial.append(expression(node.at("restrict-initial").at("exp"), self.scope))
        groups: dict[str | None, dict[Earned, str | None]] = {}
        commands = []
        written: dict[str | None, set[str]] = {}
        for edge in node.each("edges"):
            command = self._command(edge, groups)
            commands.append(command)
            assigned = {a.name for update in command.updates for a in update.assignments}
            written.setdefault(command.action, set()).update(assigned)
        module = syntax.Module(self.name, tuple(variables), tuple(commands), position)
        return Automaton(module, groups, self._in_state(), own, initial, written)

    def _number(self, node: Node) -> int:
        found = self.locations.get(node.text())
        if found is None:
            node.fail(f"there is no location '{node.text()}'")
        return found

    def _is_at(self, number: int, position: syntax.Position) -> syntax.Expression:
        return syntax.Binary(
            "=",
            syntax.Name(self.location, position),
            syntax.Literal(number, syntax.Type.INT, position),
            position,
        )

    def _command(self, edge: Node, groups: dict[str | None, dict[Earned, str | None]]) -> syntax.Command:
        edge.members(("location", "action", "rate", "guard", "destinations", "assignments"))
        if edge.has("rate") != self.has_rates:
            edge.fail(
                "an edge of a model in continuous time needs a rate"
                if self.has_rates
                else "rates belong to continuous time (ctmc), and the model is of another type"
            )
        position = edge.position
        parts = []
        if len(self.locations) > 1:
            parts.append(self._is_at(self._number(edge.at("location")), position))
        if edge.has("guard"):
            parts.append(expression(edge.at("guard").at("exp"), self.scope))
        before, earned_before = self._assignments(edge)
        updates, earned = [], []
        for destination in edge.each("destinations"):
            destination.members(("location", "probability", "assignments"))
            probability: syntax.Expression = syntax.Literal(1, syntax.Type.INT, position)
            if destination.has("probability"):
                probability = expression(destination.at("probability").at("exp"), self.scope)
            assignments, mine = self._assignments(destination)
            if len(self.locations) > 1:
                target = syntax.Literal(self._number(destination.at("location")), syntax.Type.INT, position)
                assignments.append(syntax.Assignment(self.location, target, destination.position))
            weight = probability
            if self.has_rates:
                weight = expression(edge.at("rate").at("exp"), self.scope)
                if destination.has("probability"):
                    weight = syntax.Binary("*", weight, probability, position)
            updates.append(syntax.Update(weight, None, (*before, *assignments), destination.position))
            earned.append((probability, {**earned_before, **mine}))
        if not updates:
            edge.fail("an edge needs a destination")
        action = edge.at("action").text() if edge.has("action") else None
        known = groups.setdefault(action, {})
        total = _take_expectation(earned, position)
        if total not in known:
            known[total] = action if not known else f"{action or ''}#{len(known)}"
        return syntax.Command(known[total], conjunction(parts, position), tuple(updates), position)

    def _assignments(self, node: Node) -> tuple[list[syntax.Assignment], dict[str, syntax.Expression]]:
        """To variables, and to transient ones by name."""
        plain, earned, orders = [], {}, set()
        for each in node.each("assignments"):
            each.members(("ref", "value", "index"))
            ref = each.at("ref")
            if not isinstance(ref.value, str):
                ref.fail("only assignments to variables are supported")
            name = self.scope.get(ref.value, ref.value)
            value = expression(each.at("value"), self.scope)
            if name in self.transients:
                if not self.transients[name].is_label:
                    earned[name] = value
                continue
            orders.add(each.at("index").value if each.has("index") else 0)
            plain.append(syntax.Assignment(name, value, each.position))
        if len(orders) > 1:
            node.fail(
                "assignments one after the other (with different 'index') are not supported",
                "write what the later ones mean in terms of the values before the edge",
            )
        return plain, earned

    def _in_state(self) -> dict[str, syntax.Expression]:
        found: dict[str, syntax.Expression] = {}
        for number, location in enumerate(self.node.each("locations")):
            location.members(("name", "transient-values", "x-momba-group"))
            for each in location.each("transient-values"):
                ref = each.at("ref")
                name = self.scope.get(ref.text(), ref.text())
                if name not in self.transients:
                    ref.fail(f"'{name}' is no transient variable")
                value = expression(each.at("value"), self.scope)
                if len(self.locations) > 1:
                    position = each.position
                    otherwise = found.get(name, self.transients[name].default)
                    value = syntax.Conditional(self._is_at(number, position), value, otherwise, position)
                found[name] = value
        return found


def _take_expectation(
    earned: Sequence[tuple[syntax.Expression, Mapping[str, syntax.Expression]]], position: syntax.Position
) -> Earned:
    """What an edge earns: the same at every destination, or Σ probability · value."""
    names = dict.fromkeys(name for _, values in earned for name in values)
    result = []
    for name in names:
        values = [each.get(name) for _, each in earned]
        if all(value == values[0] for value in values) and values[0] is not None:
            result.append((name, values[0]))
            continue
        pairs = zip(earned, values, strict=True)
        terms = [syntax.Binary("*", p, value, position) for (p, _), value in pairs if value is not None]
        total: syntax.Expression = terms[0]
        for term in terms[1:]:
            total = syntax.Binary("+", total, term, position)
        result.append((name, total))
    return tuple(result)


def _any(parts: list[syntax.Expression], position: syntax.Position) -> syntax.Expression:
    result = parts[0]
    for part in parts[1:]:
        result = syntax.Binary("|", result, part, position)
    return result


def synchronise(
    system: Node, automata: Sequence[Automaton]
) -> tuple[tuple[Synchronisation, ...], dict[str, list[syntax.RewardItem]]]:
    """What moves together, and what is earned by it, by the names of transient variables."""
    vectors: list[tuple[list[str | None], str | None, Node]] = []
    for sync in system.each("syncs"):
        sync.members(("synchronise", "result"))
        taking_part = [None if each.value is None else each.text() for each in sync.each("synchronise")]
        if len(taking_part) != len(automata):
            sync.fail(f"{len(taking_part)} actions for {len(automata)} automata")
        vectors.append((taking_part, sync.at("result").text() if sync.has("result") else None, sync))
    if not system.has("syncs"):
        for number, automaton in enumerate(automata):
            for action in automaton.own_actions:
                if action is not None:
                    alone = [action if i == number else None for i in range(len(automata))]
                    vectors.append((alone, action, system))
    found: list[Synchronisation] = []
    rewards: dict[str, list[syntax.RewardItem]] = {}
    for number, automaton in enumerate(automata):
        for earned, own in automaton.own_actions.get(None, {}).items():
            _add([(number, earned, own)], None, system, found, rewards)
    for taking_part, result, node in vectors:
        parts = [(i, action) for i, action in enumerate(taking_part) if action is not None]
        choices = [
            [(i, earned, own) for earned, own in automata[i].own_actions.get(action, {}).items()]
            for i, action in parts
        ]
        for chosen in product(*choices):
            _check_writes([automata[i].written.get(own, set()) for i, _, own in chosen], node)
            _add(list(chosen), result, node, found, rewards)
    return tuple(found), rewards


def _check_writes(written: Sequence[set[str]], node: Node) -> None:
    seen: set[str] = set()
    for names in written:
        for name in sorted(names & seen):
            node.fail(f"two automata that move together may both assign '{name}', which is not supported")
        seen |= names


def _add(
    parts: list[tuple[int, Earned, str | None]],
    visible: str | None,
    node: Node,
    found: list[Synchronisation],
    rewards: dict[str, list[syntax.RewardItem]],
) -> None:
    earned: dict[str, syntax.Expression] = {}
    for _, own, _ in parts:
        for name, value in own:
            if name in earned:
                node.fail(f"two automata that move together both assign '{name}'")
            earned[name] = value
    key = f"{visible or ''}#{len(found)}" if earned else visible
    found.append(Synchronisation(key, tuple((i, own) for i, _, own in parts), (visible,)))
    always = syntax.Literal(True, syntax.Type.BOOL, node.position)
    for name, value in earned.items():
        rewards.setdefault(name, []).append(syntax.RewardItem(True, key, always, value, node.position))
