"""One block solved to a verified two-sided bound.

Let x be the block's solution for given boundary values. For a small shift d > 0 the solution of x = Φ(x)
− d lies below it and satisfies Φ(x) ≥ x + d: an approximation of it whose residual is less than d is
therefore *verifiably* a lower bound (L ≤ Φ(L)), and likewise x = Φ(x) + d from above. The distance
between the two is d times the expected number of steps in the block, so d starts from the precision asked
for and is made smaller until the bounds are close enough. It is proportional to x itself if the precision
is relative. With a large d a player may gain by lingering where that costs next to nothing; then the shifted
equations converge slowly, and d is made smaller as well.

Large blocks are first tried with `margins`: one approximate solution, and a distance from it that is as good
as proved before it is verified. Where that fails the shifted equations decide. Where float64 carries no
bounds as close as asked for, wider ones are verified: a limit of precision never costs more than it must.

The approximations come from modified policy iteration: a robust sweep, then sweeps with the choices
frozen, or one sparse factorisation where sweeps are slow. What is verified is Φ with all rounding errors
on the safe side; how the vectors were found plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tightrope.numerics.arrays import FloatArray
from tightrope.solver.equations.system import Equations, Meaning, System
from tightrope.solver.iteration.backend import (
    Backend,
    BlockBackend,
    BoundaryValues,
    GroupVector,
    Portion,
    StateVector,
)
from tightrope.solver.iteration.budget import Progress, SolveOptions
from tightrope.solver.iteration.modified_policy_iteration import (
    Measure,
    ModifiedPolicyIteration,
    PolicyIteration,
    find_margins,
)
from tightrope.solver.solution import Status

FIRST_SHIFT = 1 / 4096
"""The first shift, as a part of the precision."""

CLOSENESS = 0.25
"""Residual, as a part of the shift, at which an approximation is good enough to be verified."""

MARGIN_PART = 0.4
"""Each side's margin, as a part of the precision asked for."""

SMALLEST_PART = 1e-5
"""Part of its precision that a block must have to itself, beside what it inherits."""

RELAXED = 100.0
"""Factor by which the goal is relaxed where float64 does not carry it."""

COARSEST = 0.01
"""The widest goal there is use in."""


class Bounds(NamedTuple):
    """Verified bounds, what they lie boundary, and whether float64 allows for nothing closer."""

    lower: GroupVector
    upper: GroupVector
    middle: GroupVector
    is_closest: bool


@dataclass(frozen=True, eq=False)
class BlockSolver:
    """Solves the blocks of one system, wherever they are."""

    backend: Backend
    equations: Equations
    system: System
    goal: SolveOptions

    @cached_property
    def smallest_shift(self) -> float:
        """Relative shift below which rounding errors of one backup are of the same size."""
        return self.backend.kernel.backup_error(self.system)

    @property
    def is_plain(self) -> bool:
        """Whether nature has nothing to decide."""
        return self.backend.kernel.lower is self.backend.kernel.upper

    def solve(
        self,
        portion: Portion,
        bounds: tuple[FloatArray, FloatArray],
        goal: float,
        progress: Progress,
        worker: int = 0,
    ) -> Status | None:
        """Bounds of the portion's states within `goal` of each other, written into `bounds`; without success
        what was verified, else floor and ceiling, and the reason.
        """
        lower, upper = bounds
        block = self.backend.open_block(self.equations, self.system, portion, lower, worker)
        measure = Measure(self.system, self.goal.relative, progress, block.xp)
        boundary = block.read_boundary(lower, upper, self.goal.relative and self.system.unit == 0)
        policies = PolicyIteration(block, self.equations, progress, not self.is_plain)
        patience = progress.patience_for(block.groups)
        rounds = ModifiedPolicyIteration(block, self.system, measure, progress, policies, patience)
        ends = block.state_vector(lower), block.state_vector(upper)
        return _Refinement(self, block, measure, rounds, boundary, *ends).run(bounds, goal)

    def first_guess(self, block: BlockBackend, smallest: float) -> GroupVector:
        """The smallest value around the block, and for rewards what the way out may cost; values that were
        given, where they are finite. It decides how long a solve takes and nothing else.
        """
        xp = block.xp
        guess = xp.full(block.groups, smallest)
        if self.equations.meaning is Meaning.REWARD and self.system.unit == 0:
            guess = guess + block.guess_costs()
        if self.goal.start is not None:
            given = block.gather(self.goal.start)
            guess = xp.where(xp.isfinite(given), given, guess)
        return xp.clip(guess, self.system.floor, self.system.ceiling)


@dataclass(eq=False)
class _Refinement:
    """Bounds of one block; `low` and `high` are vectors to iterate on, with the bounds around the block."""

    solver: BlockSolver
    block: BlockBackend
    measure: Measure
    rounds: ModifiedPolicyIteration
    boundary: BoundaryValues
    low: StateVector
    high: StateVector
    system: System = field(init=False)
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.system, self.progress = self.solver.system, self.measure.progress

    def run(self, bounds: tuple[FloatArray, FloatArray], asked: float) -> Status | None:
        """Refine towards goals that become coarser where float64 does not carry what was asked."""
        xp, goal, status = self.block.xp, asked, None
        lower, upper = self._nothing(False), self._nothing(True)
        middle = self.solver.first_guess(self.block, self.boundary.smallest)
        while True:
            found = self._refine(middle, goal)
            middle = found.middle
            lower, upper = xp.maximum(lower, found.lower), xp.minimum(upper, found.upper)
            gap = self._gap(lower, upper, middle)
            if gap <= asked or self.progress.is_exhausted:
                break
            status = Status.PRECISION_LIMIT
            goal *= RELAXED
            if found.is_closest or gap <= goal or goal > COARSEST:
                break
        self.block.scatter(lower, bounds[0])
        self.block.scatter(upper, bounds[1])
        return status

    def _refine(self, middle: GroupVector, goal: float) -> Bounds:
        """The best bounds found on the way to `goal`."""
        xp, block, progress, rounds = self.block.xp, self.block, self.progress, self.rounds
        best_lower, best_upper = self._nothing(False), self._nothing(True)
        still = xp.zeros(block.groups)
        begin = progress.iterations
        found = self._with_margins(middle, goal)
        if found is not None:
            best_lower, best_upper, middle, _ = found
            if self._gap(best_lower, best_upper, middle) <= goal or found.is_closest:
                progress.largest = self.measure.unit(middle)
                return found
        smallest = self.solver.smallest_shift
        shift, closeness = max(goal * FIRST_SHIFT, smallest), CLOSENESS
        below = above = still  # last distances of the bounds from the middle
        patience, gap, holds = 0, float("inf"), False
        while True:
            block.put(self.low, middle)
            tolerance = self.measure.tolerance(shift * closeness, middle)
            if not rounds.converge(self.low, still, tolerance, 10 * patience or None):
                break
            patience = max(patience, progress.iterations - begin + 100)
            begin = progress.iterations
            allowed = patience if shift > smallest else 4 * patience
            middle = block.take(self.low)
            step = shift * self.measure.reference(middle)
            tolerance = self.measure.tolerance(shift * closeness, middle)
            block.put(self.low, middle - below)
            settled = rounds.converge(self.low, -step, tolerance, allowed)
            low = high = block.take(self.low)
            if settled:
                away = xp.where(above > 0, above, middle - low)
                block.put(self.high, xp.minimum(middle + away, self.system.ceiling))
                settled = rounds.converge(self.high, step, tolerance, allowed)
            if progress.is_exhausted:
                break
            if settled:
                high = block.take(self.high)
                low_holds, high_holds = self._holds(self.low, False), self._holds(self.high, True)
                best_lower = xp.maximum(best_lower, low) if low_holds else best_lower
                best_upper = xp.minimum(best_upper, high) if high_holds else best_upper
                gap = self._gap(best_lower, best_upper, middle)
                if gap <= goal:
                    progress.largest = self.measure.unit(middle)
                    break
                holds = low_holds and high_holds
            if shift <= smallest:
                break
            below = above = still
            factor = 1 / 16
            if settled and holds:
                factor = min(0.5, max(0.5 * goal / gap, 1e-4))
                below, above = factor * (middle - low), factor * (high - middle)
            elif settled:
                factor, closeness = 0.5, closeness / 2
            shift = max(shift * factor, smallest)
        return Bounds(best_lower, best_upper, middle, False)

    def _with_margins(self, start: GroupVector, goal: float) -> Bounds | None:
        """Bounds at the distance of its margins from one approximate solution, as far as they are verified;
        None where there are no margins or a limit was met.
        """
        block, progress, rounds = self.block, self.progress, self.rounds
        still, smallest = block.xp.zeros(block.groups), self.solver.smallest_shift
        shift = max(goal * FIRST_SHIFT, smallest)
        block.put(self.low, start)
        before = progress.iterations
        tolerance = self.measure.tolerance(shift * CLOSENESS, start)
        settled = rounds.converge(self.low, still, tolerance)
        middle = block.take(self.low)
        if progress.is_exhausted:
            return None
        reference = self.measure.reference(middle)
        most = max(2 * (progress.iterations - before), 100)
        if progress.may_factorise(block.groups):
            most = min(most, progress.patience_for(block.groups))
        is_cheap = self.rounds.patience == 0 and self.solver.is_plain
        away, used = find_margins(block, self.low, reference, 0 if is_cheap else most)
        progress.iterations += used
        if away is None:
            return None
        over, own = self._inherit(middle, goal)
        farthest = 1.0 / float((away / reference).max())
        fitting = MARGIN_PART * own * farthest
        if fitting < shift:
            shift = max(fitting, smallest)
            allowed = 4 * (progress.iterations - before) + 200
            rounds.converge(self.low, still, self.measure.tolerance(shift * CLOSENESS, middle), allowed)
            middle = block.take(self.low)
        highest = middle + over
        is_hard = fitting < 8 * smallest or not settled
        farthest = farthest if is_hard else fitting
        low, below = self._move_away(self.low, middle, away, (shift, farthest), upward=False)
        high, above = self._move_away(self.high, highest, away, (shift, farthest), upward=True)
        allowed = progress.iterations - before + 100
        if not below <= farthest:
            low, below = self._shift(self.low, middle, shift * away, (shift, allowed), upward=False)
        if not above <= farthest:
            high, above = self._shift(self.high, highest, shift * away, (shift, allowed), upward=True)
        is_closest = fitting * (goal / own) < smallest or not settled
        return Bounds(low, high, middle, is_closest and max(below, above) <= farthest)

    def _inherit(self, middle: GroupVector, goal: float) -> tuple[GroupVector, float]:
        """By how much the upper bound must exceed `middle` in any case (`solver.iteration.around`), and what
        of the goal is left then; nothing and all of it where that would be too little.
        """
        xp, boundary = self.block.xp, self.boundary
        if boundary.distance < float("inf"):
            over = boundary.distance * middle if boundary.is_part else xp.full(len(middle), boundary.distance)
            own = goal - float((over / self.measure.reference(middle)).max())
            if own > SMALLEST_PART * goal:
                return over, own
        return xp.zeros(len(middle)), goal

    def _move_away(
        self,
        values: StateVector,
        middle: GroupVector,
        away: GroupVector,
        multiples: tuple[float, float],
        *,
        upward: bool,
    ) -> tuple[GroupVector, float]:
        """The closest verified bound whose distance from `middle` is a multiple of `away`: the first of
        `multiples` or, as often as need be, half as much again, up to the second. With the multiple; else
        ceiling or floor, and ∞.
        """
        multiple, farthest = multiples
        reference = self.measure.reference(middle)
        while True:
            bound = self._displace(middle, multiple * away, upward)
            self.block.put(values, bound)
            worst = float((self.block.find_missing(values, upward) / reference).max())
            if worst <= 0.0:
                return bound, multiple
            multiple = max(1.5 * multiple, multiple + 1.5 * worst)  # a step of 1 gains about `reference`
            if not multiple <= farthest:
                return self._nothing(upward), float("inf")

    def _shift(
        self,
        values: StateVector,
        middle: GroupVector,
        distance: GroupVector,
        shift_and_sweeps: tuple[float, int],
        *,
        upward: bool,
    ) -> tuple[GroupVector, float]:
        """Like `_move_away` where margins fail, since a choice that is equally good in the middle gains by
        what they add: from there it is not far to the solution of the shifted equations, which knows.
        """
        shift, allowed = shift_and_sweeps
        self.block.put(values, self._displace(middle, distance, upward))
        step = shift * self.measure.reference(middle)
        tolerance = self.measure.tolerance(shift * CLOSENESS, middle)
        if self.rounds.converge(values, step if upward else -step, tolerance, allowed) and self._holds(
            values, upward
        ):
            return self.block.take(values), shift
        return self._nothing(upward), float("inf")

    def _displace(self, middle: GroupVector, distance: GroupVector, upward: bool) -> GroupVector:
        """`middle` moved by a distance, within what is known; what is positive stays positive."""
        xp, floor, ceiling = self.block.xp, self.system.floor, self.system.ceiling
        if upward:
            return xp.minimum(middle + distance, ceiling)
        if floor >= 0.0:
            is_far = distance > 0.5 * middle
            sum_ = xp.where(is_far, middle + distance, 1.0)
            return xp.where(is_far, middle * (middle / sum_), middle - distance)
        return xp.maximum(middle - distance, floor)

    def _nothing(self, upward: bool) -> GroupVector:
        """What is known without any solving."""
        return self.block.xp.full(self.block.groups, self.system.ceiling if upward else self.system.floor)

    def _gap(self, lower: GroupVector, upper: GroupVector, middle: GroupVector) -> float:
        return self.measure.gap(lower, upper, self.measure.unit(middle))

    def _holds(self, values: StateVector, upward: bool) -> bool:
        """Whether the values are verifiably an upper (a lower) bound, given those around the block."""
        return bool((self.block.find_missing(values, upward) <= 0.0).all())
