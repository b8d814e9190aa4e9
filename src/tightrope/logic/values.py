"""The value of a formula in every state: certified bounds of a number, or a three-valued truth.

Bounds follow interval arithmetic, rounded outward (a sum that is a double stays as it is); truths follow
Kleene's logic, open where neither is known. An undefined number (∞ − ∞) has the bounds −∞ and ∞.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.product import copy_onto
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, offsets, ranges
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.rounding import down, up
from tightrope.solver.solution import Solution


@dataclass(frozen=True, eq=False)
class StateTruth:
    """Where a formula holds, and where it fails; both masks are false where neither is certain."""

    holds: BoolArray
    fails: BoolArray

    @staticmethod
    def of(states: BoolArray) -> StateTruth:
        return StateTruth(states, ~states)

    @property
    def is_open(self) -> BoolArray:
        return ~(self.holds | self.fails)

    def negated(self) -> StateTruth:
        return StateTruth(self.fails, self.holds)

    def both(self, other: StateTruth) -> StateTruth:
        return StateTruth(self.holds & other.holds, self.fails | other.fails)

    def either(self, other: StateTruth) -> StateTruth:
        return StateTruth(self.holds | other.holds, self.fails & other.fails)

    def same(self, other: StateTruth) -> StateTruth:
        holds = (self.holds & other.holds) | (self.fails & other.fails)
        return StateTruth(holds, (self.holds & other.fails) | (self.fails & other.holds))


@dataclass(frozen=True, eq=False)
class StateBounds:
    """`lower ≤ value ≤ upper` in every state; `unit` is the size of what cancels, for widths."""

    lower: FloatArray
    upper: FloatArray
    unit: float = 0.0

    @staticmethod
    def constant(lower: float, upper: float, states: int) -> StateBounds:
        """The same bounds in every state."""
        return StateBounds(np.full(states, lower), np.full(states, upper))

    @property
    def size(self) -> float:
        """The largest finite magnitude."""
        ends = np.abs(np.concatenate([self.lower, self.upper]))
        return float(ends[np.isfinite(ends)].max(initial=0.0))

    def negated(self) -> StateBounds:
        return StateBounds(-self.upper, -self.lower, self.unit)

    def plus(self, other: StateBounds) -> StateBounds:
        unit = max(self.unit, other.unit, self.size, other.size)
        return _enclose(_sum(self.lower, other.lower, False), _sum(self.upper, other.upper, True), unit)

    def times(self, other: StateBounds) -> StateBounds:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            ends = [a * b for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)  # a NaN stays one
        simple = _is_simple(self) | _is_simple(other)
        unit = max(self.unit * other.size, other.unit * self.size)
        return _enclose(np.where(simple, low, down(low)), np.where(simple, high, up(high)), unit)

    def divided_by(self, other: StateBounds) -> StateBounds:
        """Where the divisor may be 0 nothing is known."""
        nonzero = (other.lower > 0) | (other.upper < 0)
        with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
            ends = [a / b for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
            low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        unit = self.unit / other.size if other.size else 0.0
        low, high = down(low), up(high)
        low = np.where((self.lower >= 0) & (other.lower > 0), np.maximum(low, 0.0), low)  # signs are exact
        high = np.where((self.upper <= 0) & (other.lower > 0), np.minimum(high, 0.0), high)
        return _enclose(np.where(nonzero, low, -np.inf), np.where(nonzero, high, np.inf), unit)

    def where(self, states: BoolArray, other: StateBounds) -> StateBounds:
        """These bounds in some states, those of another in the others."""
        lower, upper = np.where(states, self.lower, other.lower), np.where(states, self.upper, other.upper)
        return StateBounds(lower, upper, max(self.unit, other.unit))

    def smaller(self, other: StateBounds) -> StateBounds:
        return StateBounds(np.minimum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def larger(self, other: StateBounds) -> StateBounds:
        return StateBounds(np.maximum(self.lower, other.lower), np.maximum(self.upper, other.upper))

    def through(self, monotone: Callable[[FloatArray], FloatArray]) -> StateBounds:
        """Under a function that is exact on doubles and never falls: floor, ceil, round."""
        return StateBounds(monotone(self.lower), monotone(self.upper))

    def compare(self, comparison: str, other: StateBounds) -> StateTruth:
        """`self < other` and its like."""
        if comparison in (">", ">="):
            return other.compare("<" if comparison == ">" else "<=", self)
        if comparison == "<":
            return StateTruth(self.upper < other.lower, self.lower >= other.upper)
        if comparison == "<=":
            return StateTruth(self.upper <= other.lower, self.lower > other.upper)
        point = (self.lower == self.upper) & (other.lower == other.upper) & (self.lower == other.lower)
        equal = StateTruth(point, (self.upper < other.lower) | (other.upper < self.lower))
        return equal if comparison == "=" else equal.negated()

    def meets(self, comparison: str, threshold: Fraction) -> StateTruth:
        """Compared with an exact number: a double is ≥ it iff it is ≥ the least double above."""
        exact = RationalArray.from_fractions([threshold])
        above, below = exact.to_float_up()[0], exact.to_float_down()[0]
        if comparison == ">=":
            return StateTruth(self.lower >= above, self.upper < above)
        if comparison == "<":
            return StateTruth(self.upper < above, self.lower >= above)
        if comparison == ">":
            return StateTruth(self.lower > below, self.upper <= below)
        return StateTruth(self.upper <= below, self.lower > below)


@dataclass(frozen=True, eq=False)
class BoundedValue:
    """Bounds for every state; `missed` says why they are wide, where they are."""

    bounds: StateBounds
    iterations: int
    missed: str | None


def round_half_up(values: FloatArray) -> FloatArray:
    """To the nearest whole number, halves upward, as PRISM rounds."""
    whole = np.floor(values)
    with np.errstate(invalid="ignore"):
        return np.where(values - whole >= 0.5, whole + 1, whole)


def _sum(left: FloatArray, right: FloatArray, upward: bool) -> FloatArray:
    """left + right rounded outward; what rounding left over (Knuth) says whether that is needed."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = left + right
        back = total - left
        rest = (left - (total - back)) + (right - back)
    infinite = np.isinf(left) | np.isinf(right)
    needed = ~(rest <= 0) if upward else ~(rest >= 0)
    moved = up(total) if upward else down(total)
    return np.where(needed & ~infinite, moved, total)


def _is_simple(bounds: StateBounds) -> BoolArray:
    """A factor that loses nothing: 0, 1 or −1."""
    simple: BoolArray = (bounds.lower == bounds.upper) & np.isin(bounds.lower, (-1.0, 0.0, 1.0))
    return simple


def _enclose(lower: FloatArray, upper: FloatArray, unit: float) -> StateBounds:
    return StateBounds(
        np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper), unit
    )


# Shared parts of questions: directions, and the model's values from a product's solution.
#
# A question names the directions of the requested *value*. If that is the complement of a problem, `reaching`
# reverses both, here and nowhere else: the complement of a maximum is a minimum.

Solve = Callable[[MDP | IntervalMDP, Objective], Solution]
Directions = tuple[Direction, Direction]
"""The agent's and nature's."""


def reaching(
    directions: Directions, target: BoolArray, allowed: BoolArray | None = None, complement: bool = False
) -> Objective:
    """The probability of `allowed U target`, or of its complement, for the directions of that value."""
    agent, nature = opposite(directions) if complement else directions
    return Objective(ObjectiveKind.UNTIL, agent, nature, target, allowed, complement=complement)


def opposite(directions: Directions) -> Directions:
    """Who wants a value to be large wants its complement to be small."""
    return directions[0].opposite, directions[1].opposite


def from_starts(
    solution: Solution, starts: OffsetArray, states: int, outside: tuple[float, float]
) -> StateBounds:
    """The values of a product's first states as those of its starts; `outside` bounds all others."""
    lower, upper = (np.full(states, end) for end in outside)
    lower[starts], upper[starts] = solution.lower[: len(starts)], solution.upper[: len(starts)]
    return StateBounds(lower, upper)


PROBABILITY = (0.0, 1.0)
ANYTHING = (-np.inf, np.inf)


def require_constant(model: MDP | IntervalMDP, what: str) -> None:
    """Refuse models of which nature can cut a transition, where an answer rests on which ones there are."""
    if not Support.of(model).is_constant:
        raise InputError(
            f"nature can remove transitions of this model (lower bounds of 0), and {what} are supported "
            "only if it cannot",
            hint="say that no transition vanishes: `assume_support`; of intervals of rates ask at a point",
        )


def rearranged(
    model: MDP | IntervalMDP,
    owner: OffsetArray,
    rows: OffsetArray,
    place: OffsetArray | None = None,
    initial_states: tuple[int, ...] = (0,),
) -> tuple[MDP | IntervalMDP, OffsetArray]:
    """A model with rows of another one, and the order in which its choices stand.

    The state owner[i] has the choice rows[i] of the model, or, where that is −1 − s, one that leads to the
    state s for certain. Successors s become place[s]."""
    structure, order = model.structure, np.argsort(owner, kind="stable")
    rows = rows[order]
    copied = rows >= 0
    sizes = np.ones(len(rows), np.int64)
    sizes[copied] = np.diff(structure.transition_start)[rows[copied]]
    start = offsets(sizes)
    selected, _ = ranges(structure.transition_start, rows[copied])
    at, _ = ranges(start, np.flatnonzero(copied))
    successor = np.empty(int(start[-1]), np.int32)
    successor[start[:-1][~copied]] = -1 - rows[~copied]
    reached = structure.successor[selected]
    successor[at] = reached if place is None else place[reached]
    built = Structure(
        choice_start=offsets(np.bincount(owner)),
        transition_start=start,
        successor=successor,
        initial_states=initial_states,
        declared_mdp=True,
    )

    def spread(values: FloatArray) -> FloatArray:
        made = np.ones(len(successor))
        made[at] = values[selected]
        return made

    if isinstance(model, MDP):
        return MDP(built, spread(model.probability)), order
    return IntervalMDP(built, spread(model.lower), spread(model.upper)), order


def under(model: MDP | IntervalMDP, choice: OffsetArray) -> MDP | IntervalMDP:
    """What a policy leaves of a model: one choice per state, with its labels and rewards."""
    structure = model.structure
    followed, _ = ranges(structure.transition_start, choice)
    rewards = {
        name: replace(reward, choice=None if reward.choice is None else reward.choice[choice])
        for name, reward in structure.rewards.items()
    }
    built = replace(
        structure,
        choice_start=np.arange(structure.states + 1),
        transition_start=offsets(np.diff(structure.transition_start)[choice]),
        successor=structure.successor[followed],
        action=structure.action_of_choice[choice],
        rewards=rewards,
        declared_mdp=False,
    )
    return copy_onto(model, built, followed)
