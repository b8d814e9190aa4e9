"""Steps of several draws: `passing` states in the middle of a step, where steps are counted.

The README of this package says what they are, and why a layer is backed up at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import BoolArray, OffsetArray
from tightrope_check.nature import BoundVector, Graph, rows_of

if TYPE_CHECKING:
    from tightrope_check.checker import Game
    from tightrope_check.problem import CertifiedProblem


def trouble_within(problem: CertifiedProblem, passing: BoolArray, most: int) -> str | None:
    """Why these states are not in the middle of a step that counts, or take more than the `most` work."""
    objective, graph = problem.objective, problem.graph
    counted = objective.steps is not None or objective.lower_steps > 0
    if problem.law != "interval" or problem.assumed_support is not None or not counted:
        return "states in the middle of a step are those of intervals, where steps are counted"
    if passing[graph.initial] or np.any(np.diff(graph.choice_start)[passing] != 1):
        return "a state in the middle of a step is the initial one, or has several choices"
    choices = graph.choice_start[:-1][passing]
    earns = objective.reward is not None and np.any(objective.reward[choices] != 0)
    ends = objective.target is not None and np.any(objective.target[passing])
    if earns or ends or (objective.allowed is not None and not np.all(objective.allowed[passing])):
        return "something is earned, reached or forbidden in the middle of a step"
    if np.any(_latest(graph, passing) >= np.arange(len(choices))):
        return "a state in the middle of a step leads to a later one"
    draws = (1 + len(_layer_ends(graph, passing))) * (objective.lower_steps + (objective.upper_steps or 0))
    few = draws * max(graph.transitions, 20_000) <= most
    return None if few else f"{draws} draws in layers are more than this program checks"


def _latest(graph: Graph, passing: BoolArray) -> OffsetArray:
    """Of every passing state the last passing one that it leads to, both by their places; −1 for none."""
    place = np.where(passing, np.cumsum(passing) - 1, -1)
    start, transitions = rows_of(graph.transition_start, graph.choice_start[:-1][passing])
    latest: OffsetArray = np.full(len(start) - 1, -1)
    if len(latest):
        latest = np.maximum.reduceat(place[graph.successor[transitions]], start[:-1])
    return latest


def _layer_ends(graph: Graph, passing: BoolArray) -> list[int]:
    """Where each layer ends, by places of passing states."""
    rising, ends = np.maximum.accumulate(_latest(graph, passing)), list[int]()
    first = 0
    while first < len(rising):
        first = int(np.searchsorted(rising, first))
        ends.append(first)
    return ends


def settling(
    whole: Game, graph: Graph, passing: BoolArray, upward: bool
) -> Callable[[BoundVector], BoundVector]:
    """What gives passing states the values that follow from those of the others: the draws of one step."""
    states = np.split(np.flatnonzero(passing), _layer_ends(graph, passing)[:-1])
    layers = [(layer, whole.boxes.only(graph.choice_start[layer])) for layer in states]
    maximise = whole.objective.nature == "MAX"

    def settle(values: BoundVector) -> BoundVector:
        number, infinite = values.number.copy(), values.infinite.copy()
        for layer, boxes in layers:
            drawn = boxes.bound(BoundVector(number, infinite), maximise, upward).within(boxes.n, upward)
            number[layer], infinite[layer] = boxes.n.trim(drawn.number, upward), drawn.infinite
        return BoundVector(number, infinite)

    return settle
