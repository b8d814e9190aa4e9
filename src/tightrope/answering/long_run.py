"""Long-run averages of plain and interval models, with certified bounds on both sides.

Inside a maximal end component the agent reaches every state from every other one, so the best average g is
the same for all of them. For any vector h, with T the optimal backup of one step,

    min (T h − h)  ≤  g  ≤  max (T h − h)

(the policy that is greedy for h attains the left side, whatever nature does; nature's answer to h, or nobody,
keeps every policy below the right one). Relative value iteration, damped so that periods do no harm, looks
for an h; what counts are one backup of it with safe rounding and these two ends. From outside, a play ends in
some component: every state of a component gets a choice to stop, which wins with the probability
(g − floor) / (largest − floor), and the largest probability of winning is the value, on that scale: with the
lower bounds of all g a lower bound, with the upper ones an upper bound. A minimum is the maximum of the
negated reward, negated.

On interval models nature must not be able to cut a transition. Then components are the same for all its
picks, the value v of stopping is constant on each, and choices that keep to a component have p·v = v for
every pick: nature may answer h there and v elsewhere, and no policy does better against both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from tightrope.answering.solving import Directions, Solve, opposite, reaching, require_constant
from tightrope.answering.values import Bounds
from tightrope.automata.product import part_of, ranges
from tightrope.model.graph.end_components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.rounding import down, up

MOST_ROUNDS = 100_000
_CHECK_EVERY = 16


@dataclass(frozen=True, eq=False)
class LongRun:
    """Bounds for every state; `missed` says why they are wide, where they are."""

    bounds: Bounds
    iterations: int
    missed: str | None


def bound_average(
    model: MDP | IntervalMDP,
    reward: FloatArray,
    directions: Directions,
    precision: float,
    solve: Solve,
) -> LongRun:
    """Bounds on the best long-run average of a reward per choice, for an agent and nature."""
    agent, nature = directions
    if agent is Direction.MIN:
        found = bound_average(model, -reward, opposite(directions), precision, solve)
        return LongRun(found.bounds.negated(), found.iterations, found.missed)
    require_constant(model, "long-run averages")
    structure, support = model.structure, Support.of(model)
    components = maximal_end_components(support)
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
        low[number], high[number], more = _gain(part, earned, nature, precision, solve)
        rounds += more
    value, iterations = _reached(model, components.component, (low, high), nature, solve)
    largest = float(np.abs(reward).max(initial=0.0))
    value = Bounds(value.lower, value.upper, largest)  # rewards cancel, or are met ever less often
    wide = float((high - low).max(initial=0.0)) > precision * max(1.0, largest)
    missed = "the averages of an end component were not found closely enough" if wide else None
    return LongRun(value, rounds + iterations, missed)


def _gain(
    part: MDP | IntervalMDP, reward: FloatArray, nature: Direction, precision: float, solve: Solve
) -> tuple[float, float, int]:
    """Bounds on the best average inside one end component, given whole."""
    structure = part.structure
    expected = _expectation(part, nature)
    values, starts = np.zeros(structure.states), structure.choice_start[:-1]
    rounds, scale = 0, max(1.0, float(np.abs(reward).max(initial=0.0)))
    while rounds < MOST_ROUNDS:
        step = np.maximum.reduceat(reward + expected(values), starts) - values
        rounds += 1
        if rounds % _CHECK_EVERY == 0 and np.ptp(step) <= precision * scale / 4:
            break
        values += step / 2
        values -= values[0]
    once = Objective(
        ObjectiveKind.CUMULATIVE,
        Direction.MAX,
        nature,
        upper_steps=1,
        reward=RewardStructure(choice=reward),
        terminal=values,
    )
    backed = solve(part, once)
    return float(down(backed.lower - values).min()), float(up(backed.upper - values).max()), rounds


def _expectation(part: MDP | IntervalMDP, nature: Direction) -> Callable[[FloatArray], FloatArray]:
    """What values are worth on average behind every choice, roughly: nothing rests on it."""
    structure = part.structure
    if isinstance(part, MDP):
        matrix = sparse.csr_matrix(
            (part.probability, structure.successor, structure.transition_start),
            shape=(structure.choices, structure.states),
        )
        return lambda values: matrix @ values
    owner, starts = structure.transition_choice, structure.transition_start[:-1]
    width, sign = part.upper - part.lower, 1.0 if nature is Direction.MIN else -1.0
    spare = 1 - np.add.reduceat(part.lower, starts)

    def poured(values: FloatArray) -> FloatArray:
        there = values[structure.successor]
        order = np.lexsort((sign * there, owner))
        room = width[order]
        before = np.cumsum(room) - room
        before -= before[starts][owner]
        taken = np.clip(spare[owner] - before, 0, room)
        return np.add.reduceat((part.lower[order] + taken) * there[order], starts)

    return poured


def _reached(
    model: MDP | IntervalMDP,
    component: IndexArray,
    gains: tuple[FloatArray, FloatArray],
    nature: Direction,
    solve: Solve,
) -> tuple[Bounds, int]:
    """The best mixture of averages that can be reached."""
    low, high = gains
    least, largest = float(low.min()), float(high.max())
    if least == largest:
        same = np.full(model.states, least)
        return Bounds(same, same), 0
    floor = least - (largest - least) / 2  # so that no state wins with a probability near 0
    wide, narrow = up(largest - floor), down(largest - floor)
    wins = np.clip(down(down(low - floor) / wide), 0, 1)
    may = np.clip(up(up(high - floor) / narrow), 0, 1) if narrow > 0 else np.ones(len(high))
    target = np.zeros(model.states + 2, np.bool_)
    target[model.states] = True
    objective = reaching((Direction.MAX, nature), target)
    below, above = (solve(_with_stops(model, component, share), objective) for share in (wins, may))
    share = Bounds(below.lower[: model.states], above.upper[: model.states])
    bottom, span = (_constant(value, model.states) for value in (floor, largest - floor))
    mixed = bottom.plus(Bounds(down(span.lower), up(span.upper)).times(share))
    lower, upper = np.maximum(mixed.lower, least), np.minimum(mixed.upper, largest)
    return Bounds(lower, upper), below.iterations + above.iterations


def _with_stops(model: MDP | IntervalMDP, component: IndexArray, wins: FloatArray) -> IntervalMDP:
    """The model with a choice to stop in every end component, and the states `won` and `lost` behind."""
    structure, states = model.structure, model.states
    won, lost = states, states + 1
    stops = np.flatnonzero(component >= 0)
    share = wins[component[stops]]
    # The choices of a state stay in their order; its stop comes behind them.
    owner = np.concatenate([structure.choice_state, stops, [won, lost]])
    behind = np.concatenate([np.zeros(structure.choices), np.ones(len(stops)), [0, 0]])
    order = np.lexsort((behind, owner))
    sizes = np.concatenate([np.diff(structure.transition_start), np.full(len(stops), 2), [1, 1]])
    begin = np.concatenate([[0], np.cumsum(sizes)])
    pairs = np.tile([won, lost], len(stops))
    successor = np.concatenate([structure.successor, pairs, [won, lost]])
    bounds = (model.probability,) * 2 if isinstance(model, MDP) else (model.lower, model.upper)
    rest = np.maximum(down(1 - share), 0), np.minimum(up(1 - share), 1)
    lower, upper = (
        np.concatenate([bound, _alternating(share, other), [1, 1]])
        for bound, other in zip(bounds, rest, strict=True)
    )
    taken, _ = ranges(begin, order)
    built = Structure(
        choice_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=states + 2))]),
        transition_start=np.concatenate([[0], np.cumsum(sizes[order])]),
        successor=successor[taken].astype(np.int32),
        initial_states=structure.initial_states,
        declared_mdp=True,
    )
    return IntervalMDP(built, lower[taken], upper[taken])


def _alternating(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.column_stack([first, second]).ravel()


def _constant(value: float, size: int) -> Bounds:
    return Bounds(np.full(size, value), np.full(size, value))
