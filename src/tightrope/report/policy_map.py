"""Policies by state variables, and heat maps over any two of them.

A policy file lists every state with a choice. The values of each variable are numbered (many share a bin of
equal width), and each policy is a column of actions.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from msgspec import UnsetType

from tightrope.errors import InputError, Location
from tightrope.io.coding import from_text
from tightrope.io.results import PolicyDocument, PolicyEntry, TakenChoice
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.text import reading
from tightrope.report.style import ACTIONS, legend_below, name_axes, plain
from tightrope.rules.rule import Branch, Column, DecisionRule, Leaf, RuleTest
from tightrope.rules.states import STATE

MOST_BINS = 48
MOST_TESTS = 7
MOST_CELLS = 150_000
"""Numbers that are written into a page; beyond, a sample of the states is."""


@dataclass(frozen=True, eq=False)
class MapVariable:
    """A state variable: the texts of its bins, and the bin of every listed state."""

    name: str
    labels: tuple[str, ...]
    column: OffsetArray

    @property
    def is_coarse(self) -> bool:
        """Whether a bin holds several values."""
        return any(label.endswith("…") or "–" in label for label in self.labels)

    @property
    def kind(self) -> str:
        """The kind of its values in a rule."""
        if self.labels == ("false", "true"):
            return "bool"
        return "int" if all(re.fullmatch("-?[0-9]+", label) for label in self.labels) else "text"


@dataclass(frozen=True, eq=False)
class PolicyMap:
    """Policies (name → action of every listed state) over the same states."""

    variables: tuple[MapVariable, ...]
    actions: tuple[str, ...]
    policies: dict[str, OffsetArray]
    is_plain: bool = True
    """Whether the first one has one action in every state, at all steps."""

    def rule(self) -> DecisionRule | None:
        """The first policy as a small tree that agrees with it in every listed state, where one is found."""
        if not self.is_plain or any(v.is_coarse for v in self.variables):
            return None
        tree = self._split(np.arange(self.states), [MOST_TESTS])
        columns = [
            Column(name=v.name, kind=v.kind, names={str(i): label for i, label in enumerate(v.labels)})
            for v in self.variables
        ]
        return None if tree is None else DecisionRule(columns=columns, actions=list(self.actions), tree=tree)

    def _split(self, rows: OffsetArray, left: list[int]) -> Branch | Leaf | None:
        """Greedily by the least Gini impurity; None where more tests are needed than are `left`."""
        action = next(iter(self.policies.values()))[rows]
        if (action == action[0]).all():
            return Leaf(self.actions[int(action[0])])
        least, test, side = np.inf, None, rows >= 0
        for variable in self.variables:
            bins, equal = variable.column[rows], variable.kind == "text"
            table = np.zeros((len(variable.labels), len(self.actions)))
            np.add.at(table, (bins, action), 1.0)
            one = table if equal else np.cumsum(table, axis=0)
            other = table.sum(axis=0) - one
            here, there = one.sum(axis=1), other.sum(axis=1)
            pure = (one**2).sum(axis=1) / np.maximum(here, 1.0)
            pure += (other**2).sum(axis=1) / np.maximum(there, 1.0)
            mixed = np.where(here * there > 0, len(rows) - pure, np.inf)
            if mixed.min() < least:
                at = int(mixed.argmin())
                least, test = float(mixed[at]), RuleTest(left=variable.name, bound=at, equal=equal)
                side = bins == at if equal else bins <= at
        if test is None or not left[0]:
            return None
        left[0] -= 1
        yes = self._split(rows[side], left)
        no = None if yes is None else self._split(rows[~side], left)
        return None if yes is None or no is None else Branch(test, yes, no)

    def calling(self, names: Mapping[str, Mapping[str, str]]) -> PolicyMap:
        """The same with values by what the log calls them, where it has names for them."""
        variables = tuple(
            replace(v, labels=tuple(names[v.name].get(label, label) for label in v.labels))
            if v.name in names
            else v
            for v in self.variables
        )
        return replace(self, variables=variables)

    @property
    def states(self) -> int:
        return len(next(iter(self.policies.values())))

    @property
    def axes(self) -> tuple[int, int]:
        """The variables to begin with: the first two with more than two values, or what there is."""
        many = [i for i, v in enumerate(self.variables) if len(v.labels) > 2]
        some = [i for i, v in enumerate(self.variables) if len(v.labels) == 2]
        order = [*many, *some, *range(len(self.variables))]
        first = order[0]
        return first, next((i for i in order if i != first), first)

    def start(self) -> dict[int, int]:
        """Bins of other variables with half of the cells, where the first policy's actions vary most."""
        rows = np.ones(self.states, dtype=np.bool_)
        fixed: dict[int, int] = {}
        for i, variable in enumerate(self.variables):
            if i in self.axes or len(variable.labels) < 2:
                continue
            first, enough = int(variable.column[0]), self._cells(rows) / 2
            bins = [first, *(b for b in range(len(variable.labels)) if b != first)]
            within = {b: rows & (variable.column == b) for b in bins}
            usable = [b for b in bins if self._cells(within[b]) >= enough]
            if usable:
                best = max(usable, key=lambda b: self._variety(within[b]))
                rows, fixed[i] = within[best], best
        return fixed

    def _cells(self, rows: BoolArray) -> int:
        across, up = (self.variables[i] for i in self.axes)
        return len(np.unique(across.column[rows] * len(up.labels) + up.column[rows]))

    def _variety(self, rows: BoolArray) -> float:
        share = np.bincount(next(iter(self.policies.values()))[rows]) / max(int(rows.sum()), 1)
        return float(-np.sum(share[share > 0] * np.log(share[share > 0])))

    def to_json(self) -> dict[str, object]:
        """What the page's script draws from; of very many states a random sample."""
        rows, most = np.arange(self.states), MOST_CELLS // (len(self.variables) + len(self.policies))
        if self.states > most:
            rows = np.random.default_rng(0).choice(rows, most, replace=False)
        variables = [
            {"name": v.name, "labels": list(v.labels), "column": v.column[rows].tolist()}
            for v in self.variables
        ]
        return {
            "actions": list(self.actions),
            "states": self.states,
            "policies": list(self.policies),
            "variables": variables,
            "axes": list(self.axes),
            "fixed": {str(i): at for i, at in self.start().items()} if len(rows) == self.states else {},
            "rows": [column[rows].tolist() for column in self.policies.values()],
        }


def read_policy_map(files: dict[str, Path]) -> PolicyMap | None:
    """The policies in files over the states they share; None where no state has a choice."""
    contents = {}
    for name, file in files.items():
        with reading(file) as opened:
            contents[name] = opened.read()
    return policy_map(contents, {name: str(file) for name, file in files.items()})


def map_policies(policies: Mapping[str, Policy]) -> PolicyMap | None:
    """The same for policies in memory, by way of the text of their files."""
    contents = {}
    for name, policy in policies.items():
        stream = io.StringIO()
        policy.write(stream)
        contents[name] = stream.getvalue()
    return policy_map(contents, {name: f"the {name} policy" for name in policies})


def policy_map(contents: Mapping[str, str], places: Mapping[str, str]) -> PolicyMap | None:
    """The policies in texts of policy files (by name); `places` say where they come from."""
    texts: dict[str, int] = {}
    listed = [_read(content, places[name], texts) for name, content in contents.items()]
    first = listed[0]
    if any(one.names != first.names for one in listed):
        raise InputError("the policies have different variables", Location(next(iter(places.values()))))
    states, choices = first.states, [one.actions for one in listed]
    if any(not np.array_equal(one.states, states) for one in listed[1:]):
        rows = [dict(zip(map(tuple, one.states.tolist()), one.actions, strict=True)) for one in listed]
        shared = [state for state in rows[0] if all(state in each for each in rows)]
        states = np.array(shared, dtype=np.int64).reshape(len(shared), len(first.names))
        choices = [tuple(each[state] for state in shared) for each in rows]
    if not len(states):
        return None
    actions = {name: i for i, name in enumerate(dict.fromkeys(name for each in choices for name in each))}
    policies = {
        name: np.array([actions[action] for action in each], dtype=np.int64)
        for name, each in zip(contents, choices, strict=True)
    }
    variables = tuple(
        _find_named(name, states[:, i], list(texts))
        if texts
        else _variable(name, states[:, i], first.flags[i])
        for i, name in enumerate(first.names)
    )
    return PolicyMap(variables, tuple(actions), policies, first.is_plain)


@dataclass(frozen=True, eq=False)
class _Listed:
    """A policy file: the variables (and which are true or false), a row of values per state, the actions."""

    names: tuple[str, ...]
    flags: tuple[bool, ...]
    states: OffsetArray
    actions: tuple[str, ...]
    is_plain: bool


def _read(content: str, place: str, texts: dict[str, int]) -> _Listed:
    """The entries of a file; own states that are no numbers are numbered in `texts`."""
    try:
        document = from_text(content, PolicyDocument)
        entries = [_entry(entry) for entry in document.policy]
        states = [state for state, _ in entries]
        variables = None if isinstance(document.variables, UnsetType) else document.variables
        if variables is None and states and isinstance(states[0], dict):
            variables = list(states[0])
        if variables is not None:
            shown = [s if type(s) is list else [s[name] for name in variables] for s in states]
        elif texts or not all(isinstance(state, int) for state in states):
            shown = [[texts.setdefault(json.dumps(state).strip('"'), len(texts))] for state in states]
        else:
            shown = [[state] for state in states]
        names = tuple(variables) if variables is not None else (STATE,)
        table = np.array(shown, dtype=np.int64).reshape(len(shown), len(names))
        flags = tuple(isinstance(value, bool) for value in shown[0]) if shown else ()
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"this is not a policy: {error}", Location(place)) from error
    plain = all(map(_is_plain, document.policy))
    return _Listed(names, flags, table, tuple(action for _, action in entries), plain)


def _is_plain(entry: list[object] | PolicyEntry) -> bool:
    if isinstance(entry, list):
        return type(entry[1]) is not list
    return isinstance(entry.choices, UnsetType) and isinstance(entry.steps, UnsetType)


def _entry(entry: list[Any] | PolicyEntry) -> tuple[Any, str]:
    """The state and the action of an entry; of a mixed one the most probable, of several steps the first."""
    if isinstance(entry, list):
        if type(entry[1]) is list:
            entry = [entry[0], *entry[1][0][1:]]
        return entry[0], entry[1] or f"choice {entry[2]}"
    choice: TakenChoice = entry
    if not isinstance(entry.choices, UnsetType):
        choice = max(entry.choices, key=lambda each: each.probability)
    elif not isinstance(entry.steps, UnsetType):
        choice = entry.steps[0]
    number = 0 if isinstance(choice.choice, UnsetType) else choice.choice
    named = None if isinstance(choice.action, UnsetType) else choice.action
    return entry.state, named or f"choice {number}"


def _find_named(name: str, column: OffsetArray, labels: list[str]) -> MapVariable:
    """States with names, in the order of the file."""
    size = -(-len(labels) // MOST_BINS)
    if size == 1:
        return MapVariable(name, tuple(labels), column)
    groups = [labels[i : i + size] for i in range(0, len(labels), size)]
    return MapVariable(name, tuple(f"{group[0]} …" for group in groups), column // size)


def _variable(name: str, values: OffsetArray, boolean: bool) -> MapVariable:
    low, high = int(values.min()), int(values.max())
    if boolean:
        return MapVariable(name, ("false", "true"), values)
    size = -(-(high - low + 1) // MOST_BINS)
    if size == 1:
        return MapVariable(name, tuple(str(v) for v in range(low, high + 1)), values - low)
    bins = range(low, high + 1, size)
    labels = tuple(f"{start}–{min(start + size - 1, high)}" for start in bins)
    return MapVariable(name, labels, (values - low) // size)


def draw_policy(
    policies: PolicyMap, axes: Axes, x: str | None = None, y: str | None = None, name: str = "robust"
) -> None:
    """Colour each cell by its most frequent action, paler where states differ."""
    if name not in policies.policies:
        raise InputError(f"there is no policy {name!r}", hint=f"there are {', '.join(policies.policies)}")
    first, second = policies.axes
    across, up = _variable_named(policies, x, first), _variable_named(policies, y, second)
    held = policies.start() if x is None and y is None else {}
    rows, fixed = np.ones(policies.states, dtype=np.bool_), list[str]()
    for variable, at in ((policies.variables[i], at) for i, at in held.items()):
        rows &= variable.column == at
        fixed.append(f"{variable.name}={variable.labels[at]}")
    action = policies.policies[name][rows]
    counts = np.zeros((len(up.labels), len(across.labels), len(policies.actions)))
    np.add.at(counts, (up.column[rows], across.column[rows], action), 1.0)
    edges = (np.arange(len(one.labels) + 1) - 0.5 for one in (across, up))
    axes.pcolormesh(*edges, _image(counts))  # in cells: pages show no images
    axes.grid(False)
    _ticks(axes, across, up)
    name_axes(axes, f"{across.name} (state variable)", f"{up.name} (state variable)")
    used = np.unique(counts.argmax(axis=2)[counts.sum(axis=2) > 0])
    keys = [Patch(color=ACTIONS[int(a) % len(ACTIONS)], label=plain(policies.actions[int(a)])) for a in used]
    legend_below(axes, keys)
    legend = axes.get_legend()
    assert legend is not None
    legend.set_title(plain(fill(f"action where {', '.join(fixed)}" if fixed else "action", 30)))


def _variable_named(policies: PolicyMap, name: str | None, place: int) -> MapVariable:
    for number, variable in enumerate(policies.variables):
        if variable.name == name or (name is None and number == place):
            return variable
    known = ", ".join(variable.name for variable in policies.variables)
    raise InputError(f"there is no state variable {name!r}", hint=f"there are {known}")


def _image(counts: FloatArray) -> FloatArray:
    palette = np.array([to_rgb(ACTIONS[i % len(ACTIONS)]) for i in range(counts.shape[2])])
    total = counts.sum(axis=2)
    share = counts.max(axis=2) / np.maximum(total, 1.0)
    alpha = np.where(total > 0, 0.25 + 0.75 * share, 0.0)[..., None]
    image: FloatArray = np.concatenate([palette[counts.argmax(axis=2)], alpha], axis=2)
    return image


def _ticks(axes: Axes, across: MapVariable, up: MapVariable) -> None:
    for labels, put in ((across.labels, axes.set_xticks), (up.labels, axes.set_yticks)):
        step = -(-len(labels) // 12)
        put(range(0, len(labels), step), labels[::step])
