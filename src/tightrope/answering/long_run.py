"""Long-run averages of plain models, with certified bounds on both sides.

Inside a maximal end component the agent reaches every state from every other one, so the best average g is
the same for all of them. For any vector h, with T the optimal backup of one step,

    min (T h − h)  ≤  g  ≤  max (T h − h)

(the policy that is greedy for h attains the left side; no policy beats the right one). Relative value
iteration, damped so that periods do no harm, looks for an h; what counts are one backup of it with safe
rounding and these two ends. From outside, a play ends in some component: every state of a component gets a
choice to stop, which wins with the probability (g − floor) / (largest − floor), and the largest probability
of winning is the value, on that scale. The bounds of g become an interval of that choice: nature against the
agent gives the lower, nature for it the upper bound. A minimum is the maximum of the negated reward, negated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from tightrope.answering.values import Bounds
from tightrope.automata.product import part_of, ranges
from tightrope.model.graph.end_components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.rounding import down, up
from tightrope.solver.solution import Solution

MOST_ROUNDS = 100_000
_CHECK_EVERY = 16

Solve = Callable[[MDP | IntervalMDP, Objective], Solution]


@dataclass(frozen=True, eq=False)
class LongRun:
    """Bounds for every state; `missed` says why they are wide, where they are."""

    bounds: Bounds
    iterations: int
    missed: str | None


def bound_average(
    model: MDP, reward: FloatArray, agent: Direction, precision: float, solve: Solve
) -> LongRun:
    """Bounds on the best long-run average of a reward per choice."""
    if agent is Direction.MIN:
        found = bound_average(model, -reward, Direction.MAX, precision, solve)
        return LongRun(found.bounds.negated(), found.iterations, found.missed)
    structure = model.structure
    components = maximal_end_components(Support.of(model))
    order = np.argsort(components.component, kind="stable")
    ends = np.searchsorted(components.component[order], np.arange(components.count + 1))
    low, high = np.empty(components.count), np.empty(components.count)
    rounds = 0
    for number, (begin, end) in enumerate(pairwise(ends)):
        members = order[begin:end]
        chosen, _ = ranges(structure.choice_start, members)
        earned = reward[chosen[components.internal[chosen]]]
        if len(members) == 1:  # the best choice for ever
            low[number] = high[number] = earned.max()
            continue
        part = part_of(model, members, components.internal)
        assert isinstance(part, MDP)
        low[number], high[number], more = _gain(part, earned, precision, solve)
        rounds += more
    value, iterations = _reached(model, components.component, low, high, solve)
    wide = float((high - low).max(initial=0.0)) > precision * max(1.0, float(np.abs(reward).max(initial=0.0)))
    missed = "the averages of an end component were not found closely enough" if wide else None
    return LongRun(value, rounds + iterations, missed)


def _gain(part: MDP, reward: FloatArray, precision: float, solve: Solve) -> tuple[float, float, int]:
    """Bounds on the best average inside one end component, given whole."""
    structure = part.structure
    matrix = sparse.csr_matrix(
        (part.probability, structure.successor, structure.transition_start),
        shape=(structure.choices, structure.states),
    )
    values, starts = np.zeros(structure.states), structure.choice_start[:-1]
    rounds, scale = 0, max(1.0, float(np.abs(reward).max(initial=0.0)))
    while rounds < MOST_ROUNDS:
        step = np.maximum.reduceat(reward + matrix @ values, starts) - values
        rounds += 1
        if rounds % _CHECK_EVERY == 0 and np.ptp(step) <= precision * scale / 4:
            break
        values += step / 2
        values -= values[0]
    once = Objective(
        ObjectiveKind.CUMULATIVE,
        Direction.MAX,
        Direction.MIN,
        upper_steps=1,
        reward=RewardStructure(choice=reward),
        terminal=values,
    )
    backed = solve(part, once)
    return float(down(backed.lower - values).min()), float(up(backed.upper - values).max()), rounds


def _reached(
    model: MDP, component: IndexArray, low: FloatArray, high: FloatArray, solve: Solve
) -> tuple[Bounds, int]:
    """The best mixture of averages that can be reached."""
    least, largest = float(low.min()), float(high.max())
    if least == largest:
        same = np.full(model.states, least)
        return Bounds(same, same), 0
    floor = least - (largest - least) / 2  # so that no state wins with a probability near 0
    stopping = _with_stops(model, component, (low, high), floor, largest)
    target = np.zeros(stopping.states, np.bool_)
    target[model.states] = True
    ends = []
    iterations = 0
    for nature in (Direction.MIN, Direction.MAX):
        solved = solve(stopping, Objective(ObjectiveKind.UNTIL, Direction.MAX, nature, target=target))
        ends.append(solved.lower if nature is Direction.MIN else solved.upper)
        iterations += solved.iterations
    share = Bounds(ends[0][: model.states], ends[1][: model.states])
    bottom, span = (_constant(value, model.states) for value in (floor, largest - floor))
    above = Bounds(down(span.lower), up(span.upper))
    mixed = bottom.plus(above.times(share))
    lower, upper = np.maximum(mixed.lower, least), np.minimum(mixed.upper, largest)
    return Bounds(lower, upper, max(abs(least), abs(largest))), iterations


def _with_stops(
    model: MDP, component: IndexArray, gains: tuple[FloatArray, FloatArray], floor: float, largest: float
) -> IntervalMDP:
    """The model with a choice to stop in every end component, and the states `won` and `lost` behind."""
    structure, states = model.structure, model.states
    low, high = gains
    won, lost = states, states + 1
    stops = np.flatnonzero(component >= 0)
    width = up(largest - floor)
    wins = np.clip(down(down(low - floor) / width), 0, 1)[component[stops]]
    narrow = down(largest - floor)
    may = (
        np.clip(up(up(high - floor) / narrow), 0, 1)[component[stops]] if narrow > 0 else np.ones(len(stops))
    )
    # The choices of a state stay in their order; its stop comes behind them.
    owner = np.concatenate([structure.choice_state, stops, [won, lost]])
    behind = np.concatenate([np.zeros(structure.choices), np.ones(len(stops)), [0, 0]])
    order = np.lexsort((behind, owner))
    sizes = np.concatenate([np.diff(structure.transition_start), np.full(len(stops), 2), [1, 1]])
    begin = np.concatenate([[0], np.cumsum(sizes)])
    pairs = np.tile([won, lost], len(stops))
    successor = np.concatenate([structure.successor, pairs, [won, lost]])
    lower = np.concatenate([model.probability, _alternating(wins, np.maximum(down(1 - may), 0)), [1, 1]])
    upper = np.concatenate([model.probability, _alternating(may, np.minimum(up(1 - wins), 1)), [1, 1]])
    taken, _ = ranges(begin, order)
    built = Structure(
        choice_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=states + 2))]),
        transition_start=np.concatenate([[0], np.cumsum(sizes[order])]),
        successor=successor[taken].astype(np.int32),
        initial=structure.initial,
        declared_mdp=True,
    )
    return IntervalMDP(built, lower[taken], upper[taken])


def _alternating(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.column_stack([first, second]).ravel()


def _constant(value: float, size: int) -> Bounds:
    return Bounds(np.full(size, value), np.full(size, value))
