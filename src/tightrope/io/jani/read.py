"""Read JANI files as programs of the PRISM language. Unsupported parts are refused with their path.

Automata become modules, edges commands. A location is a variable of the module, unless there is only one.
Edges of one action with different rewards get separate actions, so every synchronisation has one reward;
destinations that earn different rewards count by their expectation, which determines all values. With one
initial state all filters agree. Properties that are not read are returned with a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Unpack

from tightrope.errors import InputError, Location
from tightrope.io.jani.nodes import (
    TRUE,
    Array,
    Declared,
    Index,
    JaniNode,
    JaniScope,
    Places,
    Transient,
    Value,
    anywhere,
    expression,
    global_scope,
    joined,
    leaves_of,
    read_functions,
    read_indices,
    read_value,
    read_variables,
    whole,
)
from tightrope.io.rows import shorten
from tightrope.model.polynomial import LONGEST, exact_number
from tightrope.numerics.text import reading
from tightrope.prism.expand.expressions import fold
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program, Synchronisation
from tightrope.prism.load import BuildWords, BuiltModel, build_model
from tightrope.prism.parse import syntax
from tightrope.prism.parse.digital_clocks import TIME, Clock, Invariant, as_mdp, with_digital_clocks
from tightrope.prism.parse.property_syntax import PropertyFile, spell
from tightrope.prism.parse.syntax import Complaint, children, names

Earned = tuple[tuple[str, syntax.Expression, bool], ...]
"""What an edge assigns to transient variables, by name, and whether that is a mean over destinations."""


@dataclass
class JaniAutomaton:
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


class _AutomatonReader:
    """An automaton under the name of its instance; `transients` are the global ones."""

    def __init__(
        self, node: JaniNode, name: str, scope: JaniScope, transients: Sequence[Transient], type_: str
    ):
        node.members(
            ("name", "variables", "functions", "restrict-initial", "locations", "initial-locations", "edges")
        )
        self.node, self.name, self.scope, self.type = node, name, scope, type_
        self.declared = read_variables(node.each("variables"), scope)
        read_functions(node, scope)
        self.transients = {each.name: each for each in (*transients, *self.declared.transients)}
        self.locations = {each.name(): i for i, each in enumerate(node.each("locations"))}
        self.location = f"{name}_location"

    def read(self, clocks: Sequence[Clock]) -> JaniAutomaton:
        """With the global clocks that are looked at here first."""
        node, position, variables = self.node, self.node.position, self.declared.variables
        if not self.locations:
            node.fail("an automaton needs a location")
        initial = []
        starts = [self._number(each) for each in node.each("initial-locations")]
        if not starts:
            node.fail("an automaton needs an initial location")
        if len(self.locations) > 1:
            low, high, first = (whole(k, position) for k in (0, len(self.locations) - 1, starts[0]))
            given = first if len(starts) == 1 else None
            variables = [
                syntax.VariableDeclaration(self.location, syntax.Type.INT, low, high, given, position),
                *variables,
            ]
            if given is None:
                initial.append(joined([self._is_at(start, position) for start in starts], position, "|"))
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
        progress, clocks = list(self._progress()), (*clocks, *self.declared.clocks)
        if clocks or progress:
            module = with_digital_clocks(module, clocks, Invariant(joined(progress, position)))
        in_state, transients = self._in_state(), self.declared.transients
        return JaniAutomaton(module, groups, in_state, transients, initial, written)

    def _progress(self) -> Iterator[syntax.Expression]:
        for number, location in enumerate(self.node.each("locations")):
            if location.has("time-progress"):
                if self.type != "pta":
                    location.fail("'time-progress' belongs to models of type pta")
                may_pass = expression(location.at("time-progress").at("exp"), self.scope)
                if len(self.locations) > 1:
                    here = self._is_at(number, location.position)
                    may_pass = syntax.Binary("=>", here, may_pass, location.position)
                yield may_pass

    def _number(self, node: JaniNode) -> int:
        number = self.locations.get(node.text())
        if number is None:
            node.fail(f"there is no location '{node.text()}'")
        return number

    def _is_at(self, number: int, position: syntax.Position) -> syntax.Expression:
        return syntax.Binary("=", syntax.Name(self.location, position), whole(number, position), position)

    def _command(
        self, edge: JaniNode, groups: dict[str | None, dict[Earned, str | None]]
    ) -> syntax.GuardedCommand:
        edge.members(("location", "action", "rate", "guard", "destinations", "assignments"))
        has_rates = edge.has("rate")
        if has_rates and self.type == "ma" and edge.has("action"):
            edge.fail("an edge with a rate moves alone in a Markov automaton, and has no action")
        if self.type != "ma" and has_rates != (self.type == "ctmc"):
            edge.fail(
                "rates belong to continuous time (ctmc, ma), and the model is of another type"
                if has_rates
                else "an edge of a model in continuous time needs a rate"
            )
        position = edge.position
        parts = []
        if len(self.locations) > 1:
            parts.append(self._is_at(self._number(edge.at("location")), position))
        if edge.has("guard"):
            parts.append(expression(edge.at("guard").at("exp"), self.scope))
        updates, earned = [], []
        for destination in edge.each("destinations"):
            destination.members(("location", "probability", "assignments"))
            probability: syntax.Expression = whole(1, position)
            if destination.has("probability"):
                probability = expression(destination.at("probability").at("exp"), self.scope)
            assignments, values = self._assignments(edge, destination)
            if len(self.locations) > 1:
                target = whole(self._number(destination.at("location")), position)
                assignments.append(syntax.Assignment(self.location, target, destination.position))
            weight = probability
            if has_rates:
                weight = expression(edge.at("rate").at("exp"), self.scope)
                if destination.has("probability"):
                    weight = syntax.Binary("*", weight, probability, position)
            updates.append(syntax.CommandUpdate(weight, None, tuple(assignments), destination.position))
            earned.append((probability, values))
        if not updates:
            edge.fail("an edge needs a destination")
        folded = [fold(probability, {}) for probability, _ in earned]
        shares = [Fraction(each.value) for each in folded if isinstance(each, syntax.Literal)]
        total_share = sum(shares, Fraction(0))
        if has_rates and len(shares) == len(folded) and abs(total_share - 1) > SUM_TOLERANCE:
            edge.fail(f"the probabilities of its destinations sum to {float(total_share):.9g}, not to 1")
        action = edge.at("action").text() if edge.has("action") else None
        known = groups.setdefault(action, {})
        total = _take_expectation(earned, position)
        if total not in known:
            known[total] = action if not known else f"{action or ''}#{len(known)}"
        guard, is_markovian = joined(parts, position), has_rates and self.type == "ma"
        return syntax.GuardedCommand(known[total], guard, tuple(updates), position, is_markovian)

    def _assignments(
        self, edge: JaniNode, destination: JaniNode
    ) -> tuple[list[syntax.Assignment], dict[str, syntax.Expression]]:
        """To variables, and to transient ones by name."""
        plain, earned, orders = list[_Reference](), dict[str, syntax.Expression](), set()
        for each in (*edge.each("assignments"), *destination.each("assignments")):
            each.members(("ref", "value", "index"))
            reference = self._reference(each)
            if reference.name in self.transients:
                if not self.transients[reference.name].is_label:
                    earned[reference.name] = expression(each.at("value"), self.scope)
                continue
            orders.add(each.at("index").value if each.has("index") else 0)
            plain.append(reference)
        if len(orders) > 1:
            destination.fail(
                "assignments one after the other (with different 'index') are not supported",
                "write what the later ones mean in terms of the values before the edge",
            )
        return _write_elements(plain), earned

    def _reference(self, node: JaniNode) -> _Reference:
        """What is assigned: a variable, or an element of an array by its indices, the outermost first."""
        inner, indices = read_indices(node.at("ref"), self.scope)
        if isinstance(inner.value, dict):
            inner.fail("only assignments to variables and elements of arrays are supported")
        name = self.scope.ours(inner.text())
        target = self.scope.declared.arrays.get(name) or syntax.Name(name, inner.position)
        if indices and not isinstance(target, Array):
            inner.fail(f"'{name}' is not an array")
        return _Reference(node, name, target, indices, read_value(node.at("value"), self.scope))

    def _in_state(self) -> dict[str, syntax.Expression]:
        values: dict[str, syntax.Expression] = {}
        for number, location in enumerate(self.node.each("locations")):
            location.members(("name", "transient-values", "time-progress", "x-momba-group"))
            for each in location.each("transient-values"):
                ref = each.at("ref")
                name = self.scope.ours(ref.text())
                if name not in self.transients:
                    ref.fail(f"'{name}' is not a transient variable")
                value = expression(each.at("value"), self.scope)
                if len(self.locations) > 1:
                    position = each.position
                    otherwise = values.get(name, self.transients[name].default)
                    value = syntax.Conditional(self._is_at(number, position), value, otherwise, position)
                values[name] = value
        return values


@dataclass(frozen=True)
class _Reference:
    """An assignment of `value` to a variable or to an element of it."""

    node: JaniNode
    name: str
    target: Value
    indices: list[Index]
    value: Value

    def check_apart(self, other: _Reference) -> syntax.Expression | None:
        """A condition for two assignments to be to different elements; None where they surely are."""
        position = self.node.position
        pairs = zip(self.indices, other.indices, strict=False)
        same: list[syntax.Expression] = [
            syntax.Binary("=", one.value, two.value, position) for one, two in pairs
        ]
        apart = fold(syntax.Unary("!", joined(same, position), position), {})
        if apart == syntax.Literal(False, syntax.Type.BOOL):
            self.node.fail(f"one update assigns '{self.name}' twice")
        return None if isinstance(apart, syntax.Literal) else apart

    def elements(
        self, conditions: Sequence[syntax.Expression]
    ) -> Iterator[tuple[syntax.Expression, syntax.Expression, syntax.Expression]]:
        """Elements that may be assigned, under which condition, and the value; `conditions` are checked."""
        yield from self._spread(self.target, 0, list(conditions), [])

    def _spread(
        self, target: Value, level: int, checks: list[syntax.Expression], met: list[syntax.Expression]
    ) -> Iterator[tuple[syntax.Expression, syntax.Expression, syntax.Expression]]:
        position = self.node.position
        if level == len(self.indices):
            if not _alike(target, self.value):
                self.node.fail(f"the value assigned to '{self.name}' has another length")
            for name, value in zip(leaves_of(target), leaves_of(self.value), strict=True):
                yield name, joined(met, position), value
            return
        index = self.indices[level]
        if not isinstance(target, Array):
            index.node.fail(f"'{self.name}' is not an array of so many levels")
        checked = index.checked(len(target.elements))
        for apart in checks:
            message = f"one update assigns an element of '{self.name}' twice"
            checked = syntax.Checked(apart, checked, message, position)
        for k in index.of(len(target.elements)):
            here = syntax.Binary("=", checked, whole(k, position), position)
            yield from self._spread(target.elements[k], level + 1, [], [*met, here])


def _alike(one: Value, other: Value) -> bool:
    if isinstance(one, Array) and isinstance(other, Array):
        pairs = zip(one.elements, other.elements, strict=False)
        return len(one.elements) == len(other.elements) and all(_alike(a, b) for a, b in pairs)
    return not isinstance(one, Array) and not isinstance(other, Array)


def _write_elements(references: list[_Reference]) -> list[syntax.Assignment]:
    """Assign to the variables behind references; other elements keep their values."""
    values: dict[str, syntax.Assignment] = {}
    for number, reference in enumerate(references):
        before = [each for each in references[:number] if each.name == reference.name]
        checks = [apart for each in before if (apart := reference.check_apart(each)) is not None]
        position = reference.node.position
        for element, condition, value in reference.elements(checks):
            assert isinstance(element, syntax.Name)
            otherwise = values[element.name].value if element.name in values else element
            if fold(condition, {}) != TRUE:
                value = syntax.Conditional(condition, value, otherwise, position)
            values[element.name] = syntax.Assignment(element.name, value, position)
    return list(values.values())


def _take_expectation(
    earned: Sequence[tuple[syntax.Expression, Mapping[str, syntax.Expression]]], position: syntax.Position
) -> Earned:
    """What an edge earns: the same at every destination, or Σ probability · value."""
    names = dict.fromkeys(name for _, values in earned for name in values)
    result = []
    for name in names:
        values = [each.get(name) for _, each in earned]
        if all(value == values[0] for value in values) and values[0] is not None:
            result.append((name, values[0], False))
            continue
        pairs = zip(earned, values, strict=True)
        terms: list[syntax.Expression] = [
            syntax.Binary("*", p, value, position) for (p, _), value in pairs if value is not None
        ]
        result.append((name, joined(terms, position, "+"), True))
    return tuple(result)


def synchronise(
    system: JaniNode, automata: Sequence[JaniAutomaton]
) -> tuple[tuple[Synchronisation, ...], dict[str, list[syntax.RewardItem]]]:
    """What moves together, and what is earned by it, by the names of transient variables."""
    vectors: list[tuple[list[str | None], str | None, JaniNode]] = []
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
    synchronisations: list[Synchronisation] = []
    rewards: dict[str, list[syntax.RewardItem]] = {}
    commands = [(number, command) for number, one in enumerate(automata) for command in one.module.commands]
    if timed := tuple((number, TIME) for number, command in commands if command.is_time):
        synchronisations.append(Synchronisation(TIME, timed, (TIME,)))
    for number, automaton in enumerate(automata):
        for earned, own in automaton.own_actions.get(None, {}).items():
            _add([(number, earned, own)], None, system, synchronisations, rewards)
    for taking_part, result, node in vectors:
        parts = [(i, action) for i, action in enumerate(taking_part) if action is not None]
        choices = [
            [(i, earned, own) for earned, own in automata[i].own_actions.get(action, {}).items()]
            for i, action in parts
        ]
        for chosen in product(*choices):
            writes = [name for i, _, own in chosen for name in automata[i].written.get(own, ())]
            if twice := sorted({name for name in writes if writes.count(name) > 1}):
                node.fail(
                    f"two automata that move together may both assign '{twice[0]}', which is not supported"
                )
            _add(list(chosen), result, node, synchronisations, rewards)
    return tuple(synchronisations), rewards


def _add(
    parts: list[tuple[int, Earned, str | None]],
    visible: str | None,
    node: JaniNode,
    synchronisations: list[Synchronisation],
    rewards: dict[str, list[syntax.RewardItem]],
) -> None:
    earned: dict[str, tuple[syntax.Expression, bool]] = {}
    for _, own, _ in parts:
        for name, value, is_mean in own:
            if name in earned:
                node.fail(f"two automata that move together both assign '{name}'")
            earned[name] = value, is_mean
    key = f"{visible or ''}#{len(synchronisations)}" if earned else visible
    synchronisations.append(Synchronisation(key, tuple((i, own) for i, _, own in parts), (visible,)))
    always = syntax.Literal(True, syntax.Type.BOOL, node.position)
    for name, (value, is_mean) in earned.items():
        item = syntax.RewardItem(True, key, always, value, node.position, is_mean)
        rewards.setdefault(name, []).append(item)


SUM_TOLERANCE = Fraction(1, 10**6)
"""Of the decimals beside a rate: only their products with it are rates, so no other check sees their sum."""

STEPS = "steps"
"""The reward structure that gives 1 for every step; TIME gives 1 per unit of time."""

TIMED = ("ctmc", "ma", "pta")

_COMPARISONS = {"≥": ">=", ">": ">", "≤": "<=", "<": "<", "=": "=", "≠": "!="}
_QUANTIFIERS = ("Pmin", "Pmax", "Emin", "Emax", "Smin", "Smax")
_TEMPORAL = ("U", "W", "R", "F", "G")
_SAME_FOR_ONE = ("min", "max", "avg", "sum", "values", "∀", "∃")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True)
class ReadProperty:
    """A property's name and text; without a text, the reason."""

    name: str
    text: str | None
    reason: str = ""


def property_of(root: JaniNode, node: JaniNode, given: Mapping[str, str]) -> ReadProperty:
    """One property of a file; `given` are values of constants."""
    name = node.name()
    try:
        return ReadProperty(name, _Translator(root, given).text(node.at("expression")))
    except Complaint as complaint:
        return ReadProperty(name, None, complaint.message)


def counts_steps(root: JaniNode) -> bool:
    """Whether a property counts steps, by an expected value of the constant 1."""
    return any(anywhere(node.value, _has_steps) for node in root.each("properties"))


def _has_steps(value: object) -> bool:
    if not isinstance(value, dict) or value.get("exp") != 1:
        return False
    return value.get("op") in ("Emin", "Emax") or "accumulate" in value


class _Translator:
    def __init__(self, root: JaniNode, given: Mapping[str, str]):
        self._root = root
        self._scope = global_scope(root, given)
        read_variables(root.each("variables"), self._scope)
        read_functions(root, self._scope)
        self._is_chain = root.at("type").value in ("dtmc", "ctmc")
        self._clock = "time" if root.at("type").value in TIMED else "step"

    def text(self, node: JaniNode) -> str:
        """A property as a whole."""
        operator = self._operator(node)
        if operator == "filter":
            return self._filter(node)
        if operator in _COMPARISONS:
            node.members(("op", "left", "right"))
            left, right = node.at("left"), node.at("right")
            if self._operator(left) in _QUANTIFIERS and not isinstance(right.value, dict):
                extreme = "min" if operator in "≥>" else "max"
                meant = self._is_chain or self._operator(left).endswith(extreme)
                if operator in "=≠" or not meant:  # no threshold for all policies: the number is compared
                    value = self._quantify(left, "=?", is_value=True)
                    return f"({value}) {_COMPARISONS[operator]} {self._state(right)}"
                return self._quantify(left, f"{_COMPARISONS[operator]}{self._state(right)}", is_value=False)
        if operator in _QUANTIFIERS:
            return self._quantify(node, "=?", is_value=True)
        node.fail(f"'{operator or node.value}' is not a property that is read")

    def _operator(self, node: JaniNode) -> str:
        return str(node.value.get("op", "")) if isinstance(node.value, dict) else ""

    def _filter(self, node: JaniNode) -> str:
        node.members(("op", "fun", "states", "values"))
        fun, states = node.at("fun").text(), node.at("states")
        inner = self.text(node.at("values"))
        if self._operator(states) == "initial" and fun in _SAME_FOR_ONE:
            return inner
        if fun not in ("min", "max", "avg", "sum", "count"):
            node.fail(f"the filter '{fun}' is not read")
        shown = '"init"' if self._operator(states) == "initial" else self._state(states)
        return f"filter({fun}, {inner}, {shown})"

    def _quantify(self, node: JaniNode, comparison: str, is_value: bool) -> str:
        operator = self._operator(node)
        ends = () if operator[0] == "S" else ("reach", f"{self._clock}-instant")
        node.members(("op", "exp") if operator[0] == "P" else ("op", "exp", "accumulate", *ends))
        letter, direction = ("P" if operator[0] == "P" else "R"), operator[1:]
        if self._is_chain or not is_value:
            direction = ""  # a threshold says itself which extreme decides
        if letter == "P":
            return f"P{direction}{comparison} [ {self._path(node.at('exp'))} ]"
        if operator[0] == "S":
            if not self._is_earned(node.at("exp")):
                return f"S{direction}{comparison} [ {self._state(node.at('exp'))} ]"
            return f'R{{"{self._reward(node)}"}}{direction}{comparison} [ S ]'
        return f'R{{"{self._reward(node)}"}}{direction}{comparison} [ {self._horizon(node)} ]'

    def _is_earned(self, node: JaniNode) -> bool:
        """Whether an average is one of a transient number, and not the share of time in some states."""
        return any(
            each.at("name").value == node.value and each.at("type").value != "bool"
            for each in self._root.each("variables")
            if each.has("transient") and each.at("transient").value is True
        )

    def _path(self, node: JaniNode) -> str:
        operator = self._operator(node)
        if operator not in _TEMPORAL:
            node.fail(f"the path formula '{operator or node.value}' is not read")
        own = f"{self._clock}-bounds"
        sides = ("exp",) if operator in ("F", "G") else ("left", "right")
        node.members(("op", own, "reward-bounds", *sides))
        bound = self._bound(node.at(own)) if node.has(own) else ""
        if earned := node.each("reward-bounds"):
            bounds = [f"{'steps' if self._clock == 'step' else 'time'}{bound}"] if bound else []
            for each in earned:
                each.members(("exp", "accumulate", "bounds"))
                bounds.append(f'rew{{"{self._reward(each)}"}}{self._bound(each.at("bounds"))}')
            bound = f"^{{{','.join(bounds)}}}"
        if operator in ("F", "G"):
            return f"{operator}{bound} ({self._state(node.at('exp'))})"
        return f"({self._state(node.at('left'))}) {operator}{bound} ({self._state(node.at('right'))})"

    def _bound(self, node: JaniNode) -> str:
        ends = {}
        node.members(("lower", "upper", "lower-exclusive", "upper-exclusive"))
        for key in ("lower", "upper"):
            if node.has(key):
                exclusive = node.has(f"{key}-exclusive") and node.at(f"{key}-exclusive").value is True
                ends[key] = self._state(node.at(key)), exclusive
        if len(ends) == 2:
            if any(exclusive for _, exclusive in ends.values()):
                node.fail("two bounds of which one is exclusive are not read")
            return f"[{ends['lower'][0]},{ends['upper'][0]}]"
        if not ends:
            node.fail("a bound is 'lower' or 'upper'")
        ((key, (text, exclusive)),) = ends.items()
        return f"{'<' if key == 'upper' else '>'}{'' if exclusive else '='}({text})"

    def _horizon(self, node: JaniNode) -> str:
        """What is accumulated until a state or an instant, or else what there is at the instant."""
        instant, is_sum = f"{self._clock}-instant", bool(node.each("accumulate"))
        if node.has("reach") == node.has(instant):
            node.fail(f"an expected value needs one of 'reach' and '{instant}'")
        if node.has(instant):
            return f"{'C<' if is_sum else 'I'}={self._state(node.at(instant))}"
        if not is_sum:
            node.fail("an expected value on reaching a state, without 'accumulate', is not read")
        return f"F ({self._state(node.at('reach'))})"

    def _reward(self, node: JaniNode) -> str:
        amount = node.at("exp").value
        given = {each.text() for each in node.each("accumulate")}
        if amount == 1 and not isinstance(amount, bool):
            counted = ({"time"},) if self._clock == "time" else ({"steps"}, {"exit"}, set())
            if given not in counted:
                node.fail("1 is accumulated over 'time' in continuous time, elsewhere over 'steps' or 'exit'")
            return TIME if self._clock == "time" else STEPS
        if not isinstance(amount, str):
            node.fail("an expected value is one of a transient variable, or of 1")
        if not given and node.has(f"{self._clock}-instant"):
            return amount
        on_states, on_edges = self._find_earnings(amount)
        if on_edges and "steps" not in given:
            node.fail(f"'{amount}' is earned by edges, and the property does not accumulate 'steps'")
        whole = "time" if self._clock == "time" else "exit"
        if on_states and whole not in given:
            node.fail(f"'{amount}' is earned in locations, and the property does not accumulate '{whole}'")
        if on_states and self._clock == "time" and "exit" in given:
            node.fail("rewards for leaving a location are not read of this type of model")
        return amount

    def _find_earnings(self, name: str) -> tuple[bool, bool]:
        """Whether locations, and whether edges, say what a transient variable is."""
        states = edges = False
        for automaton in self._root.each("automata"):
            for location in automaton.each("locations"):
                states |= any(each.at("ref").value == name for each in location.each("transient-values"))
            for edge in automaton.each("edges"):
                for place in (edge, *edge.each("destinations")):
                    edges |= any(each.at("ref").value == name for each in place.each("assignments"))
        return states, edges

    def _state(self, node: JaniNode) -> str:
        if self._operator(node) in ("initial", "deadlock"):
            return f'"{"init" if self._operator(node) == "initial" else "deadlock"}"'
        written = expression(node, self._scope)
        for name in names(written):
            if not _PLAIN.fullmatch(name.name):
                node.fail(f"the name '{name.name}' cannot be written in a property")
        if _has_checks(written):
            node.fail("an index that depends on the state, or an argument with bounds, is not read here")
        return spell(written, PropertyFile((), (), (), "", ""))


def _has_checks(expression: syntax.Expression) -> bool:
    return isinstance(expression, syntax.Checked) or any(map(_has_checks, children(expression)))


_KNOWN = (
    *("jani-version", "name", "metadata", "type", "features", "actions", "constants", "variables"),
    *("functions", "restrict-initial", "properties", "automata", "system"),
)
_TYPES = {
    "dtmc": syntax.ModelType.DTMC,
    "mdp": syntax.ModelType.MDP,
    "ctmc": syntax.ModelType.CTMC,
    "ma": syntax.ModelType.MA,
    "pta": syntax.ModelType.PTA,
}


def built(
    path: str | Path, constants: Mapping[str, str] | None = None, **words: Unpack[BuildWords]
) -> BuiltModel:
    """What a JANI file describes, as far as a question needs it."""
    file = Path(path)
    with _naming_paths(file) as places:
        return build_model(_program(_parse(file), places, str(file), constants or {}), **words)


def declared_type(path: str | Path) -> str:
    """The type of model that a file of JSON names; what else is wrong with it, reading it says."""
    with reading(Path(path)) as opened:
        return "".join(re.findall(r'"type"\s*:\s*"(ctmc|ma)"', opened.read())[:1])


def read_program(path: str | Path, constants: Mapping[str, str] | None = None) -> Program:
    """The program that a JANI file stands for."""
    file = Path(path)
    with _naming_paths(file) as places:
        return _program(_parse(file), places, str(file), constants or {})


def read_properties(path: str | Path, constants: Mapping[str, str] | None = None) -> list[ReadProperty]:
    """The properties of a JANI file in our own words, or why there are none for one of them."""
    file = Path(path)
    with _naming_paths(file) as places:
        root = JaniNode(_parse(file), "", places)
        return [property_of(root, node, constants or {}) for node in root.each("properties")]


@contextmanager
def _naming_paths(file: Path) -> Iterator[Places]:
    """What is wrong inside is said with the path of the place in the file."""
    places = Places()
    try:
        yield places
    except Complaint as complaint:
        where = "" if complaint.position is None else places.paths[complaint.position.line - 1]
        raise _at_path(complaint.message, where, file, complaint.hint) from None
    except InputError as error:
        if error.location is None or error.location.line is None or error.location.file != str(file):
            raise
        if error.location.text is None:  # a place in the text of the file itself
            raise
        where = places.paths[error.location.line - 1]
        raise _at_path(error.message, where, file, error.hint) from None
    except RecursionError:
        raise InputError("its expressions are nested too deeply", Location(str(file))) from None


def _at_path(message: str, where: str, file: Path, hint: str | None) -> InputError:
    return InputError(f"{where}: {message}" if where else message, Location(str(file)), hint)


def _parse(file: Path) -> object:
    """The content, with decimals as the exact numbers that are written."""
    with reading(file) as opened:
        text = opened.read()
    try:
        return json.loads(
            text.removeprefix("\ufeff"), parse_float=_decimal, parse_int=_integer, parse_constant=_no_number
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"this is not JSON: {error.msg}", Location(str(file), error.lineno, error.colno)
        ) from None
    except RecursionError:
        raise InputError("it is nested too deeply", Location(str(file))) from None
    except ValueError as error:
        raise InputError(f"this is not JSON that can be read: {error}", Location(str(file))) from None


def _decimal(text: str) -> Fraction:
    """A decimal exactly; its exponent is looked at before anything is built of it."""
    try:
        return exact_number(text)
    except ValueError:
        raise ValueError(f"a number has more than {LONGEST} digits: {shorten(text, 20)}") from None


def _integer(text: str) -> int:
    if len(text) > LONGEST:
        raise ValueError(f"a number has more than {LONGEST} digits: {shorten(text, 20)}")
    return int(text)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _program(content: object, places: Places, file: str, given: Mapping[str, str]) -> Program:
    root = JaniNode(content, "", places)
    root.members(_KNOWN)
    kind = root.at("type").text()
    if kind not in _TYPES:
        root.at("type").fail(f"models of type {kind} are not supported: only {', '.join(_TYPES)} are")
    scope = global_scope(root, given)
    declared = read_variables(root.each("variables"), scope)
    transients = declared.transients
    read_functions(root, scope)
    automata = _automata(root, declared, scope)
    for automaton in automata:
        transients += automaton.transients
    synchronisations, earned = synchronise(root.at("system"), automata)
    in_state = _in_state(automata, transients)
    init, variables, modules = _initial(root, declared.variables, automata, scope)
    position, metadata = root.position, content.get("metadata") if isinstance(content, dict) else None
    about = metadata.get("description", "") if isinstance(metadata, dict) else ""
    model = syntax.ModelFile(
        type=_TYPES[kind],
        constants=tuple(scope.declared.constants),
        formulas=tuple(
            syntax.Formula(t.name, in_state.get(t.name, t.default), t.node.position) for t in transients
        ),
        labels=tuple(
            syntax.LabelDefinition(t.title, syntax.Name(t.name, position), t.node.position)
            for t in transients
            if t.is_label and t.title not in ("init", "deadlock")
        ),
        globals=tuple(variables),
        modules=modules,
        rewards=(*_rewards(transients, in_state, earned), *_steps(root)),
        init=init,
        source="\n".join([*places.paths, str(about)]),
        file=file,
    )
    return expand(as_mdp(model) if kind == "pta" else model, given, synchronisations)


def _automata(root: JaniNode, model: Declared, outer: JaniScope) -> list[JaniAutomaton]:
    """One instance per element of the system; local variables whose names clash get its name in front."""
    declared = {each.name(): each for each in root.each("automata")}
    in_use = {each.name() for key in ("constants", "variables") for each in root.each(key)}
    clocks = list(model.clocks)
    root.at("system").members(("elements", "syncs"))
    used: dict[str, int] = {}
    automata = []
    for element in root.at("system").each("elements"):
        element.members(("automaton", "input-enable"))
        if element.has("input-enable") and element.at("input-enable").value:
            element.fail("'input-enable' is not supported")
        name = element.at("automaton").text()
        if name not in declared:
            element.fail(f"there is no automaton '{name}'")
        used[name] = used.get(name, 0) + 1
        instance = name if used[name] == 1 else f"{name}_{used[name]}"
        renamed: dict[str, str] = {}
        for each in declared[name].each("variables"):
            own = each.name()
            while renamed.get(each.name(), own) in in_use:
                renamed[each.name()] = f"{instance}_{renamed.get(each.name(), own)}"
            in_use.add(renamed.get(each.name(), own))
        scope = replace(outer, renamed=renamed, functions=dict(outer.functions))
        node, kind = declared[name], root.at("type").text()
        looked_at = [clock for clock in clocks if anywhere(node.value, clock.name.__eq__)]
        clocks = [clock for clock in clocks if clock not in looked_at]
        reader = _AutomatonReader(node, instance, scope, model.transients, kind)
        automata.append(reader.read(looked_at))
    if not automata:
        root.at("system").fail("the system has no automaton")
    return automata


def _in_state(automata: list[JaniAutomaton], transients: list[Transient]) -> dict[str, syntax.Expression]:
    """What transient variables are in a state, where locations say so."""
    values: dict[str, syntax.Expression] = {}
    for automaton in automata:
        for name, value in automaton.in_state.items():
            if name in values:
                node = next(each.node for each in transients if each.name == name)
                node.fail(f"two automata define '{name}' is in a state")
            values[name] = value
    return values


def _initial(
    root: JaniNode,
    variables: list[syntax.VariableDeclaration],
    automata: list[JaniAutomaton],
    scope: JaniScope,
) -> tuple[syntax.Expression | None, list[syntax.VariableDeclaration], tuple[syntax.Module, ...]]:
    """A condition on the initial states where values alone do not say it, and variables to go with it."""
    restricted = [each for automaton in automata for each in automaton.initial]
    if root.has("restrict-initial"):
        restricted.append(expression(root.at("restrict-initial").at("exp"), scope))
    modules = tuple(automaton.module for automaton in automata)
    everything = [*variables, *(each for module in modules for each in module.variables)]
    if not everything:
        root.fail("the model has no variables and one location only: it has a single state")
    if not restricted and all(each.initial is not None for each in everything):
        return None, variables, modules
    position = root.position
    given = [
        syntax.Binary("=", syntax.Name(each.name, each.position), each.initial, each.position)
        for each in everything
        if each.initial is not None
    ]
    freed = [replace(each, initial=None) for each in variables]
    modules = tuple(
        replace(one, variables=tuple(replace(each, initial=None) for each in one.variables))
        for one in modules
    )
    return joined([*given, *restricted], position), freed, modules


def _steps(root: JaniNode) -> tuple[syntax.Rewards, ...]:
    """One for every step, or per unit of time, where a property counts that."""
    position = root.position
    always = syntax.RewardItem(False, None, TRUE, whole(1, position), position)
    name = TIME if root.at("type").value in TIMED else STEPS
    return (syntax.Rewards(name, (always,), position),) if counts_steps(root) else ()


def _rewards(
    transients: list[Transient],
    in_state: Mapping[str, syntax.Expression],
    earned: Mapping[str, list[syntax.RewardItem]],
) -> tuple[syntax.Rewards, ...]:
    """Numbers that are said of states or earned by edges, under the names of their variables."""
    structures = []
    for each in transients:
        if each.is_label or (each.name not in in_state and each.name not in earned):
            continue
        position = each.node.position
        if getattr(each.default, "value", None) != 0:
            each.node.fail(f"'{each.name}' is earned, so its initial value must be 0")
        items = list(earned.get(each.name, ()))
        if each.name in in_state:
            items.insert(0, syntax.RewardItem(False, None, TRUE, syntax.Name(each.name, position), position))
        structures.append(syntax.Rewards(each.title or None, tuple(items), position))
    return tuple(structures)
