"""Pictures of models: states, choices and probabilities, as a graph for Graphviz or drawn by matplotlib.

A large model is shown in part: the states that are fewest steps from the initial one. States behind them
are named "…". Choices that a policy takes are marked.
"""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InputError
from tightrope.model.continuous import CTMC, IntervalCTMC, MarkovAutomaton, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import Structure, Structured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK, LINE, HIDDEN = "#2a9d6f", "#6b7280", "…"
_COLUMN, _ROW = 2.6, 1.3
LONGEST = 28
"""Characters of a label in a drawing; the middle of a longer one is left out."""


@dataclass(frozen=True)
class ShownChoice:
    """A choice of a shown state: its action, whether a policy takes it, and (probability, successor)."""

    state: int
    action: str
    is_taken: bool
    branches: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class PicturePart:
    """The shown states with their number of steps from the initial one, and their choices."""

    structure: Structure
    steps: dict[int, int]
    choices: tuple[ShownChoice, ...]

    def name(self, state: int) -> str:
        """The state as the model names it, with its labels."""
        labels = [name for name, members in self.structure.labels.items() if members[state]]
        marks = [name for name in labels if name not in ("init", "deadlock")]
        variables = self.structure.state_name(state).strip("()'").replace(",", ", ")
        return "\n".join(textwrap.wrap(variables, 20)) + (f"\n{', '.join(marks)}" if marks else "")

    def is_branching(self, state: int) -> bool:
        """Whether a state has several choices."""
        start = self.structure.choice_start
        return bool(start[state + 1] - start[state] > 1)


def part_of(model: Structured, policy: PolicyGiven | None, most: int) -> PicturePart:
    """The `most` states that are fewest steps from the initial one."""
    if most < 1:
        raise InputError(f"`most` is {most}, not a positive number of states")
    if isinstance(model, POMDP):
        model = model.model
    structure = model.structure
    taken = np.zeros(structure.choices) if policy is None else Policy(model, policy).probability
    steps, waiting = {structure.initial: 0}, [structure.initial]
    for state in waiting:
        moves = slice(*structure.transition_start[structure.choice_start[state : state + 2]])
        for successor in structure.successor[moves].tolist():
            if successor not in steps and len(steps) < most:
                steps[successor] = steps[state] + 1
                waiting.append(successor)
    choices = []
    for state in steps:
        for choice in range(structure.choice_start[state], structure.choice_start[state + 1]):
            first, last = structure.transition_start[choice], structure.transition_start[choice + 1]
            branches = tuple(
                (probability_text(model, t), int(structure.successor[t])) for t in range(first, last)
            )
            choices.append(
                ShownChoice(state, structure.action_name(choice), bool(taken[choice] > 0), branches)
            )
    return PicturePart(structure, steps, tuple(choices))


def probability_text(model: Structured, place: int) -> str:
    """The probability of a transition, or its rate in continuous time."""
    match model:
        case ParametricMDP() | ParametricCTMC():
            return model.expressions.text(int(model.expression[place]))
        case IntervalMDP():
            return f"[{model.lower[place]:.4g}, {model.upper[place]:.4g}]"
        case IntervalCTMC():
            row = model.expression[place]
            return f"[{model.lower[row]:.4g}, {model.upper[row]:.4g}]"
        case CTMC():
            return f"{float(model.exact[int(model.expression[place])]):.4g}"
        case MDP() | MarkovAutomaton():
            return f"{model.probability[place]:.4g}"
    raise InputError(f"a picture is made of models, not of {type(model).__name__}")


def to_dot(model: Structured, policy: PolicyGiven | None = None, most: int = 40) -> str:
    """The part of a model around its initial state as a graph for Graphviz."""
    part = part_of(model, policy, most)
    lines = ["digraph model {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    lines.append(f"  start [shape=point]; start -> s{part.structure.initial};")
    lines += [
        f"  s{state} [label={json.dumps(part.name(state), ensure_ascii=False)}];" for state in part.steps
    ]
    for number, choice in enumerate(part.choices):
        mark = f", color={json.dumps(MARK)}, penwidth=2" if choice.is_taken else ""
        source = f"s{choice.state}"
        if choice.action or part.is_branching(choice.state):
            source = f"c{number}"
            label = f"label={json.dumps(choice.action, ensure_ascii=False)}"
            lines.append(
                f"  {source} [shape=point]; s{choice.state} -> {source} [{label}{mark}, arrowhead=none];"
            )
        for text, successor in choice.branches:
            target = f"s{successor}"
            if successor not in part.steps:
                target = f"h{successor}"
                lines.append(f'  {target} [label="{HIDDEN}", shape=plaintext];')
            lines.append(f"  {source} -> {target} [label={json.dumps(text, ensure_ascii=False)}{mark}];")
    return "\n".join([*dict.fromkeys(lines), "}", ""])


def draw(
    model: Structured, policy: PolicyGiven | None = None, most: int = 12, ax: Axes | None = None
) -> Axes:
    """Draw the part of a model around its initial state: layers by steps, a dot per choice."""
    from matplotlib import pyplot

    part = part_of(model, policy, most)
    places = _places(part)
    if ax is None:
        columns, rows = (int(np.ptp([place[axis] for place in places.values()])) + 1 for axis in (0, 1))
        ax = pyplot.subplots(figsize=(1.1 * columns + 2.2, 1.1 * rows + 1.6), layout="constrained")[1]
    ax.set_axis_off()
    for number, choice in enumerate(part.choices):
        colour, width = (MARK, 2.0) if choice.is_taken else (LINE, 1.0)
        x, y = places[choice.state]
        siblings = [each for each, other in enumerate(part.choices) if other.state == choice.state]
        if choice.action or part.is_branching(choice.state):
            offset = siblings.index(number) - 0.5 * (len(siblings) - 1)
            dot = (x + 1.1, y + 0.9 * offset / max(len(siblings) - 1, 1))
            ax.plot([x, dot[0]], [y, dot[1]], color=colour, linewidth=width, zorder=1)
            ax.plot(*dot, marker="o", markersize=4, color=colour, zorder=2)
            ax.annotate(
                _short(choice.action), dot, (0, 5), textcoords="offset points", fontsize=8, ha="center"
            )
            x, y = dot
        for text, successor in choice.branches:
            is_shown = successor in places
            end = places[successor] if is_shown else (x + 0.6, y + 0.05)
            label = _short(text) if is_shown and len(choice.branches) > 1 else ""
            room = 14 + 14 * part.name(successor).count("\n") if is_shown else 14
            _draw_arrow(ax, (x, y), end, label, {"color": colour, "linewidth": width, "shrinkB": room})
            if not is_shown:
                ax.annotate(HIDDEN, end, ha="center", va="center")
    for state, place in places.items():
        box: dict[str, object] = {"boxstyle": "round", "facecolor": "white", "edgecolor": "black"}
        box["linewidth"] = 2.0 if state == part.structure.initial else 1.0
        ax.annotate(_short(part.name(state)), place, fontsize=9, ha="center", va="center", bbox=box, zorder=3)
    across, down = zip(*places.values(), strict=True)
    ax.set_aspect("equal")
    ax.set_xlim(min(across) - 0.8, max(across) + 1.9)
    ax.set_ylim(min(down) - 0.8, max(down) + 0.9)
    return ax


def _draw_arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], text: str, style: dict[str, object]
) -> None:
    """An arrow with its label: straight to the right, bent backwards, and around a state to itself."""
    (x, y), bend = start, 0.0 if end[0] > start[0] else 0.3
    if start == end:
        start, end, bend, style = (x - 0.15, y + 0.2), (x + 0.15, y + 0.2), -1.6, {**style, "shrinkB": 0}
    away, up = end[0] - start[0], end[1] - start[1]
    middle = (start[0] + 0.5 * (away + bend * up), start[1] + 0.5 * (up - bend * away))
    arrow = {**style, "arrowstyle": "->", "shrinkA": 0, "connectionstyle": f"arc3,rad={bend}"}
    ax.annotate("", end, start, arrowprops=arrow, zorder=1)
    ax.annotate(text, middle, (0, 2), textcoords="offset points", fontsize=8, color=LINE, ha="center")


def _places(part: PicturePart) -> dict[int, tuple[float, float]]:
    """Columns by steps from the initial state; in a column, states are sorted by what leads to them."""
    layers: dict[int, list[int]] = defaultdict(list)
    for state, step in part.steps.items():
        layers[step].append(state)
    places: dict[int, tuple[float, float]] = {}
    for step in sorted(layers):
        above = {state: _height_above(part, state, places) for state in layers[step]}
        ordered = sorted(layers[step], key=lambda state: (-above[state], state))
        for rank, state in enumerate(ordered):
            places[state] = (_COLUMN * step, _ROW * (0.5 * (len(ordered) - 1) - rank))
    return places


def _height_above(part: PicturePart, state: int, places: dict[int, tuple[float, float]]) -> float:
    """The mean height of the placed states that lead to a state."""
    heights = [
        places[choice.state][1]
        for choice in part.choices
        if choice.state in places and any(successor == state for _, successor in choice.branches)
    ]
    return float(np.mean(heights)) if heights else 0.0


def _short(text: str) -> str:
    """A label without its middle where it is long; a dollar sign begins no formula."""
    lines = (f"{line[:13]}…{line[-13:]}" if len(line) > LONGEST else line for line in text.split("\n"))
    return "\n".join(lines).replace("$", r"\$")
