"""Properties of JANI files as properties of ours, in text.

    {"op": "filter", "fun": "max", "states": {"op": "initial"}, "values": {"op": "Pmin", "exp": …}}

is `Pmin=? [ … ]`: over one initial state all filters say the same. Expected values become rewards: `exp`
names a transient variable, or is 1 where steps are counted. A property without such a form is given with the
reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tightrope.io.jani.nodes import Node, expression
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.property_syntax import PropertyFile
from tightrope.prism.parse.spelling import spell

STEPS = "steps"
"""The reward structure that gives 1 for every step."""

TIME = "time"
"""The reward structure that gives 1 per unit of time."""

_COMPARISONS = {"≥": ">=", ">": ">", "≤": "<=", "<": "<"}
_QUANTIFIERS = ("Pmin", "Pmax", "Emin", "Emax")
_TEMPORAL = ("U", "W", "R", "F", "G")
_SAME_FOR_ONE = ("min", "max", "avg", "sum", "values", "∀", "∃")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True)
class ReadProperty:
    """A property's name and text; without a text, the reason."""

    name: str
    text: str | None
    reason: str = ""


def property_of(root: Node, node: Node) -> ReadProperty:
    """One property of a file."""
    name = node.name()
    try:
        return ReadProperty(name, _Translator(root).text(node.at("expression")))
    except Complaint as complaint:
        return ReadProperty(name, None, complaint.message)


def counts_steps(root: Node) -> bool:
    """Whether a property counts steps, by an expected value of the constant 1."""
    return any(_has_steps(node.value) for node in root.each("properties"))


def _has_steps(value: Any) -> bool:
    if isinstance(value, dict):
        if value.get("op") in ("Emin", "Emax") and value.get("exp") == 1:
            return True
        return any(_has_steps(each) for each in value.values())
    return isinstance(value, list) and any(_has_steps(each) for each in value)


class _Translator:
    def __init__(self, root: Node):
        self._root = root
        self._is_chain = root.at("type").value in ("dtmc", "ctmc")
        self._clock = "time" if root.at("type").value == "ctmc" else "step"

    def text(self, node: Node) -> str:
        """A property as a whole."""
        operator = self._operator(node)
        if operator == "filter":
            return self._filter(node)
        if operator in _COMPARISONS:
            left, right = node.at("left"), node.at("right")
            if self._operator(left) in _QUANTIFIERS and not isinstance(right.value, dict):
                extreme = "min" if operator in "≥>" else "max"
                if not self._is_chain and not self._operator(left).endswith(extreme):
                    node.fail(f"whether {left.value['op']} {operator} {right.value} is not asked in this way")
                return self._quantify(left, f"{_COMPARISONS[operator]}{self._state(right)}", is_value=False)
        if operator in _QUANTIFIERS:
            return self._quantify(node, "=?", is_value=True)
        node.fail(f"'{operator or node.value}' is no property that is read")

    def _operator(self, node: Node) -> str:
        return str(node.value.get("op", "")) if isinstance(node.value, dict) else ""

    def _filter(self, node: Node) -> str:
        fun, states = node.at("fun").text(), node.at("states")
        inner = self.text(node.at("values"))
        if self._operator(states) == "initial" and fun in _SAME_FOR_ONE:
            return inner
        if fun not in ("min", "max", "avg", "sum", "count"):
            node.fail(f"the filter '{fun}' is not read")
        shown = '"init"' if self._operator(states) == "initial" else self._state(states)
        return f"filter({fun}, {inner}, {shown})"

    def _quantify(self, node: Node, asked: str, is_value: bool) -> str:
        operator = self._operator(node)
        letter, direction = ("P" if operator[0] == "P" else "R"), operator[1:]
        if self._is_chain or not is_value:
            direction = ""  # a threshold says itself which extreme decides
        if letter == "P":
            return f"P{direction}{asked} [ {self._path(node.at('exp'))} ]"
        return f'R{{"{self._reward(node)}"}}{direction}{asked} [ {self._horizon(node)} ]'

    def _path(self, node: Node) -> str:
        operator = self._operator(node)
        if operator not in _TEMPORAL:
            node.fail(f"the path formula '{operator or node.value}' is not read")
        own, other = f"{self._clock}-bounds", "step-bounds" if self._clock == "time" else "time-bounds"
        if node.has(other) or node.has("reward-bounds"):
            node.fail(f"bounds on rewards are not read, nor '{other}' of this type of model")
        bound = self._bound(node.at(own)) if node.has(own) else ""
        if operator in ("F", "G"):
            return f"{operator}{bound} ({self._state(node.at('exp'))})"
        return f"({self._state(node.at('left'))}) {operator}{bound} ({self._state(node.at('right'))})"

    def _bound(self, node: Node) -> str:
        ends = {}
        for key in ("lower", "upper"):
            if node.has(key):
                exclusive = node.has(f"{key}-exclusive") and node.at(f"{key}-exclusive").value is True
                ends[key] = self._state(node.at(key)), exclusive
        if len(ends) == 2:
            if any(exclusive for _, exclusive in ends.values()):
                node.fail("two bounds of which one is exclusive are not read")
            return f"[{ends['lower'][0]},{ends['upper'][0]}]"
        ((key, (text, exclusive)),) = ends.items()
        return f"{'<' if key == 'upper' else '>'}{'' if exclusive else '='}({text})"

    def _horizon(self, node: Node) -> str:
        if node.has("reach"):
            return f"F ({self._state(node.at('reach'))})"
        if node.has(instant := f"{self._clock}-instant"):
            return f"I={self._state(node.at(instant))}"
        node.fail(f"an expected value needs 'reach' or '{instant}'")

    def _reward(self, node: Node) -> str:
        amount = node.at("exp").value
        given = {each.text() for each in node.each("accumulate")}
        if amount == 1 and not isinstance(amount, bool):
            if self._clock == "time" and given != {"time"}:
                node.fail("of this type of model 1 is accumulated over time only")
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

    def _state(self, node: Node) -> str:
        if self._operator(node) in ("initial", "deadlock"):
            return f'"{"init" if self._operator(node) == "initial" else "deadlock"}"'
        for name in _names(node.value):
            if not _PLAIN.fullmatch(name):
                node.fail(f"the name '{name}' cannot be written in a property")
        return spell(expression(node, {}), PropertyFile((), (), (), "", ""))


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [name for key, each in value.items() if key != "op" for name in _names(each)]
    return []
