"""Long-run averages of plain and interval models, with certified bounds on both sides.

In an end component min (T h − h) ≤ g ≤ max (T h − h) for any vector h and the optimal backup T of one step;
one safe backup of a good h proves the bounds. Components become states of a quotient whose best probability
of winning is the value. On interval models nature must not be able to cut a transition. Averages of Markov
automata are per unit of time. Proofs: docs/proofs/values.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.logic.accepting import towards
from tightrope.logic.values import (
    BoundedValue,
    Directions,
    Solve,
    StateBounds,
    opposite,
    reaching,
    require_constant,
)
from tightrope.model.graph.components import EndComponents, maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.product import part_of
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray, offsets, ranges
from tightrope.numerics.late import linalg, sparse
from tightrope.numerics.rounding import down, up
from tightrope.prism.parse.property_syntax import RewardFormula
from tightrope.prism.parse.syntax import Complaint
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import reward_structure_of
from tightrope.solver.solution import LARGEST_FACTORISATION, Solution

_MOST_ANSWERS = 50
_CLOSE = 1e-13


def bias_of_chain(part: MDP | IntervalMDP, reward: FloatArray, nature: Direction) -> FloatArray | None:
    """The bias of a chain given whole; None where there are choices, or where the system is not solved."""
    structure = part.structure
    if structure.has_choices or structure.states > LARGEST_FACTORISATION:
        return None
    if isinstance(part, MDP):
        return _bias(part, part.probability, reward)
    values: FloatArray = np.zeros(structure.states)
    for _ in range(_MOST_ANSWERS):
        result = _bias(part, worst_distributions(part, values, nature), reward)
        if result is None:
            return None
        change = float(np.abs(result - values).max())
        values = result
        if change <= _CLOSE * max(1.0, float(np.abs(values).max())):
            break
    return values


def _bias(part: MDP | IntervalMDP, probability: FloatArray, reward: FloatArray) -> FloatArray | None:
    """h with h(0) = 0; the column of h(0) belongs to g."""
    structure = part.structure
    size = structure.states
    steps = sparse.eye_array(size) - structure.matrix(probability)
    system = sparse.hstack([np.ones((size, 1)), steps.tocsc()[:, 1:]], format="csc")
    with warnings.catch_warnings():
        warnings.simplefilter("error", linalg.MatrixRankWarning)
        try:
            solved: FloatArray = linalg.splu(system).solve(reward.astype(np.float64))
        except (RuntimeError, linalg.MatrixRankWarning):
            return None
    if not np.isfinite(solved).all():
        return None
    solved[0] = 0.0
    return solved


def worst_distributions(part: IntervalMDP, values: FloatArray, nature: Direction) -> FloatArray:
    """The distributions within the intervals, all choices', that are worst, or best, for the values."""
    structure = part.structure
    owner, starts = structure.transition_choice, structure.transition_start[:-1]
    there = values[structure.successor] * (1.0 if nature is Direction.MIN else -1.0)
    order = np.lexsort((there, owner))
    room = (part.upper - part.lower)[order]
    before = np.cumsum(room) - room
    before -= before[starts][owner]
    spare = 1 - np.add.reduceat(part.lower, starts)
    picked = np.empty(len(room))
    picked[order] = part.lower[order] + np.clip(spare[owner] - before, 0, room)
    return picked


MOST_ROUNDS = 100_000
_CHECK_EVERY = 16
_MOST_TRIALS = 60


Gain = tuple[float, float, FloatArray | float, int]
"""(low, high, bias, rounds) of one end component."""


@dataclass(frozen=True, eq=False)
class Gains:
    """The averages of maximal end components, each within [low, high]; `bias` is what shows it, per state."""

    components: EndComponents
    low: FloatArray
    high: FloatArray
    bias: FloatArray
    rounds: int

    @staticmethod
    def of(
        model: MDP | IntervalMDP, gain: Callable[[EndComponents, OffsetArray, OffsetArray], Gain]
    ) -> Gains:
        """`gain` is asked about the states and choices of each component."""
        components = maximal_end_components(Support.of(model))
        low, high = np.empty(components.count), np.empty(components.count)
        bias, rounds = np.zeros(model.states), 0
        for number, members in enumerate(components.members):
            chosen, _ = ranges(model.structure.choice_start, members)
            chosen = chosen[components.internal[chosen]]
            low[number], high[number], bias[members], more = gain(components, members, chosen)
            rounds += more
        return Gains(components, low, high, bias, rounds)


def read_average(query: Query) -> tuple[RewardStructure, Directions]:
    """The reward whose average a query asks for, that of being in some states where it is a share of time."""
    operator, path, directions = query.operator, query.operator.path, query.directions
    assert directions is not None and isinstance(path, RewardFormula)
    with query.source.complaints():
        if query.options.discount is not None or query.options.terminal_reward is not None:
            raise Complaint("discounts and terminal rewards cannot be used with averages", operator.position)
        if operator.is_reward:
            return reward_structure_of(operator, query.structure), directions
        assert path.target is not None
        states = query.state_formulas().states(path.target)
        return RewardStructure(states.astype(np.float64)), directions


def bound_average(
    model: MDP | IntervalMDP, reward: FloatArray, directions: Directions, precision: float, solve: Solve
) -> BoundedValue:
    """Bounds on the best long-run average of a reward per choice, for an agent and nature."""
    agent, nature = directions
    if agent is Direction.MIN:
        turned = bound_average(model, -reward, opposite(directions), precision, solve)
        return BoundedValue(turned.bounds.negated(), turned.iterations, turned.missed)
    gains = gains_of(model, reward, nature, precision, solve)
    return _reached_value(model, gains, float(np.abs(reward).max(initial=0.0)), nature, precision, solve)


def _reached_value(
    model: MDP | IntervalMDP, gains: Gains, largest: float, nature: Direction, precision: float, solve: Solve
) -> BoundedValue:
    """The best mixture of averages; `largest` is the size of rewards that cancel, or are met ever less."""
    quotient = ComponentQuotient.of(model, gains.components)
    reached = reached_averages(quotient, gains, nature, solve)
    value = replace(reached.bounds(quotient.node), unit=largest)
    wide = float((gains.high - gains.low).max(initial=0.0)) > precision * max(1.0, largest)
    missed = "the averages of an end component were not found closely enough" if wide else None
    return BoundedValue(value, gains.rounds + reached.iterations, missed)


def bound_quotient_average(
    model: MDP, earned: FloatArray, spent: FloatArray, directions: Directions, precision: float, solve: Solve
) -> BoundedValue:
    """Bounds on the best long-run average of a reward per unit of time; no end component takes no time."""
    if directions[0] is Direction.MIN:
        turned = bound_quotient_average(model, -earned, spent, opposite(directions), precision, solve)
        return BoundedValue(turned.bounds.negated(), turned.iterations, turned.missed)

    def gain(components: EndComponents, members: OffsetArray, chosen: OffsetArray) -> Gain:
        part = part_of(model, members, components.internal)
        return _quotient(part, earned[chosen], spent[chosen], precision, solve)

    gains = Gains.of(model, gain)
    largest = float(np.abs(earned).max(initial=0.0) / spent.max())
    return _reached_value(model, gains, largest, Direction.MAX, precision, solve)


def _quotient(
    part: MDP | IntervalMDP, earned: FloatArray, spent: FloatArray, precision: float, solve: Solve
) -> Gain:
    """Bounds on the best quotient inside one end component, given whole."""
    longest = float(spent.max())
    _, most, _, rounds = _gain(part, -spent, Direction.MAX, precision * 1e-3, solve)
    shortest = -most * (1 - 2.0**-50)
    if shortest <= 0:  # mixing is so slow that nothing is known of the time that passes
        return -np.inf, np.inf, 0.0, rounds
    low, high = -np.inf, np.inf
    known: list[tuple[float, float]] = []
    trial = 0.0
    for _ in range(_MOST_TRIALS):
        reward = earned - trial * spent
        size = float((np.abs(earned) + abs(trial) * spent).max())
        fine = precision * shortest / max(1.0, size) * max(1.0, abs(trial)) / 8
        least, most, _, more = _gain(part, reward, Direction.MAX, fine, solve)
        rounds += more
        slack = 4 * size * 2.0**-52
        least, most = least - slack, most + slack
        low = max(low, down(trial + down(least / (longest if least > 0 else shortest))))
        high = min(high, up(trial + up(most / (shortest if most > 0 else longest))))
        if high - low <= precision * max(1.0, abs(trial)):
            break
        known.append((trial, (least + most) / 2))
        trial = _next_trial(known, low, high)
    return low, high, 0.0, rounds


def _next_trial(known: list[tuple[float, float]], low: float, high: float) -> float:
    """Where the line through the last two points is 0, or the middle where that is outside."""
    if len(known) > 1:
        (x, a), (y, b) = known[-2:]
        if a != b and low <= (crossing := y - b * (y - x) / (b - a)) <= high:
            return crossing
    return low + (high - low) / 2


def gains_of(
    model: MDP | IntervalMDP, reward: FloatArray, nature: Direction, precision: float, solve: Solve
) -> Gains:
    """The best average of every end component, for a maximiser."""
    require_constant(model, "long-run averages")

    def gain(components: EndComponents, members: OffsetArray, chosen: OffsetArray) -> Gain:
        if len(members) == 1:  # the best choice for ever
            return reward[chosen].max(), reward[chosen].max(), 0.0, 0
        part = part_of(model, members, components.internal)
        return _gain(part, reward[chosen], nature, precision, solve)

    return Gains.of(model, gain)


def _gain(
    part: MDP | IntervalMDP, reward: FloatArray, nature: Direction, precision: float, solve: Solve
) -> Gain:
    """Bounds on the best average inside one end component, given whole, and the vector behind them."""
    structure = part.structure
    expected = expectation(part, nature)
    solved = bias_of_chain(part, reward, nature)
    values = np.zeros(structure.states) if solved is None else solved
    starts = structure.choice_start[:-1]
    rounds, scale = 0, max(1.0, float(np.abs(reward).max(initial=0.0)))
    while rounds < MOST_ROUNDS:
        step = np.maximum.reduceat(reward + expected(values), starts) - values
        rounds += 1
        looks = rounds % _CHECK_EVERY == 0 or (rounds == 1 and solved is not None)
        if looks and np.ptp(step) <= precision * scale / 4:
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
    low, high = float(down(backed.lower - values).min()), float(up(backed.upper - values).max())
    return max(low, float(reward.min())), min(high, float(reward.max())), values, rounds


def expectation(part: MDP | IntervalMDP, nature: Direction) -> Callable[[FloatArray], FloatArray]:
    """What values are worth on average behind every choice, roughly: nothing rests on it."""
    structure = part.structure
    if isinstance(part, MDP):
        matrix = structure.matrix(part.probability)
        return lambda values: matrix @ values
    starts = structure.transition_start[:-1]
    return lambda values: np.add.reduceat(
        worst_distributions(part, values, nature) * values[structure.successor], starts
    )


@dataclass(frozen=True, eq=False)
class Reached:
    """floor + span·(probability of winning) within two solutions; None where all averages are the floor."""

    floor: float
    least: float
    largest: float
    below: Solution | None
    above: Solution | None

    @property
    def iterations(self) -> int:
        return sum(part.iterations for part in (self.below, self.above) if part is not None)

    def bounds(self, node: OffsetArray) -> StateBounds:
        """Of every state of the model."""
        if self.below is None or self.above is None:
            return StateBounds.constant(self.least, self.least, len(node))
        share = StateBounds(self.below.lower[node], self.above.upper[node])
        span = self.largest - self.floor
        bottom = StateBounds.constant(self.floor, self.floor, len(node))
        mixed = bottom.plus(StateBounds.constant(down(span), up(span), len(node)).times(share))
        lower, upper = np.maximum(mixed.lower, self.least), np.minimum(mixed.upper, self.largest)
        return StateBounds(lower, upper)


def reached_averages(quotient: ComponentQuotient, gains: Gains, nature: Direction, solve: Solve) -> Reached:
    """The best mixture of averages that can be reached, for a maximiser."""
    least, largest = float(gains.low.min()), float(gains.high.max())
    if least == largest:
        return Reached(least, least, largest, None, None)
    floor = least - (largest - least) / 2  # so that no state wins with a probability near 0
    wide, narrow = up(largest - floor), down(largest - floor)
    wins = np.clip(down(down(gains.low - floor) / wide), 0, 1)
    may = np.ones(len(gains.high))
    if narrow > 0:
        may = np.clip(up(up(gains.high - floor) / narrow), 0, 1)
    below, above = (solve(quotient.stopping(share), quotient.winning(nature)) for share in (wins, may))
    return Reached(floor, least, largest, below, above)


def average_policy(
    model: MDP | IntervalMDP, reward: FloatArray, directions: Directions, precision: float, solve: Solve
) -> OffsetArray:
    """A good choice per state: greedy for the bias where the best mixture stops, else towards the exits."""
    agent, nature = directions
    if agent is Direction.MIN:
        return average_policy(model, -reward, opposite(directions), precision, solve)
    structure, gains = model.structure, gains_of(model, reward, nature, precision, solve)
    components, quotient = gains.components, ComponentQuotient.of(model, gains.components)
    reached = reached_averages(quotient, gains, nature, solve)
    worth = reward + expectation(model, nature)(gains.bias)
    best = np.lexsort((np.where(components.internal, worth, -np.inf), structure.choice_state))
    chosen: OffsetArray = best[structure.choice_start[1:] - 1]
    if reached.below is None:
        return chosen
    selected = quotient.choice[reached.below.policy.choice[: quotient.nodes]]
    for node, choice in enumerate(selected.tolist()):
        if choice < 0:
            continue  # it stops here
        aim = np.arange(structure.states) == structure.choice_state[choice]
        members = quotient.node == node
        walk, _ = towards(structure, aim, components.internal)
        chosen[members] = np.where(aim, choice, walk)[members]
    return chosen


# A model whose end components are single states. Inside a maximal end component the agent reaches every state
# from every other one, so all have one value. States of the quotient are the components and all other states;
# no policy takes its choices for ever. `stopping` gives every component a choice to stop, which wins with its
# own probability, and the states `won` and `lost` behind.


@dataclass(frozen=True, eq=False)
class ComponentQuotient:
    """`node[s]` is the state of the quotient that stands for s: components first. `choice` are the model's
    choices behind those of the quotient, −1 for stops and at the two last states."""

    model: MDP | IntervalMDP
    components: int
    node: OffsetArray
    owner: OffsetArray
    choice: OffsetArray

    @staticmethod
    def of(model: MDP | IntervalMDP, components: EndComponents) -> ComponentQuotient:
        structure, count = model.structure, components.count
        outside = components.component < 0
        node = np.where(outside, count + np.cumsum(outside) - 1, components.component).astype(np.int64)
        nodes = count + int(outside.sum())
        leaves = np.flatnonzero(~components.internal)
        owner = np.concatenate([node[structure.choice_state[leaves]], np.arange(count), [nodes, nodes + 1]])
        behind = np.concatenate([leaves, np.full(count + 2, -1)])
        order = np.lexsort((np.where(behind < 0, structure.choices, behind), owner))
        return ComponentQuotient(model, count, node, owner[order], behind[order])

    @property
    def nodes(self) -> int:
        """Without the two states behind stops."""
        return int(self.owner[-1]) - 1

    def stopping(self, wins: FloatArray) -> IntervalMDP:
        """The model of the quotient in which to stop in component i wins with probability wins[i]."""
        model, structure, nodes = self.model, self.model.structure, self.nodes
        is_stop = (self.choice < 0) & (self.owner < nodes)
        sizes = np.ones(len(self.owner), np.int64)
        remaining = self.choice >= 0
        sizes[remaining] = np.diff(structure.transition_start)[self.choice[remaining]]
        sizes[is_stop] = 2
        start = offsets(sizes)
        selected, _ = ranges(structure.transition_start, self.choice[remaining])
        place, _ = ranges(start, np.flatnonzero(remaining))
        stop = start[:-1][is_stop]
        successor = np.empty(start[-1], np.int32)
        successor[place] = self.node[structure.successor[selected]]
        successor[stop], successor[stop + 1] = nodes, nodes + 1
        successor[-2:] = nodes, nodes + 1
        share = wins[self.owner[is_stop]]
        rest = np.maximum(down(1 - share), 0), np.minimum(up(1 - share), 1)
        given = (model.probability,) * 2 if isinstance(model, MDP) else (model.lower, model.upper)
        bounds = []
        for bound, other in zip(given, rest, strict=True):
            made = np.ones(start[-1])
            made[place], made[stop], made[stop + 1] = bound[selected], share, other
            bounds.append(made)
        built = Structure(
            choice_start=offsets(np.bincount(self.owner, minlength=nodes + 2)),
            transition_start=start,
            successor=successor,
            initial_states=tuple(sorted({int(self.node[s]) for s in structure.initial_states})),
            declared_mdp=True,
        )
        return IntervalMDP(built, *bounds)

    def winning(self, nature: Direction) -> Objective:
        """To stop and win, for a maximiser."""
        return reaching((Direction.MAX, nature), np.arange(self.nodes + 2) == self.nodes)

    def walking(self) -> Objective:
        """The largest number of choices before a stop, on average."""
        steps = RewardStructure(choice=(self.choice >= 0).astype(np.float64))
        target = np.arange(self.nodes + 2) >= self.nodes
        return Objective(
            ObjectiveKind.REACH_REWARD, Direction.MAX, Direction.MAX, target=target, reward=steps
        )
