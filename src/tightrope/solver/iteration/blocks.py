"""One block solved to a verified two-sided bound.

Approximate solutions of x = Φ(x) ∓ d are verifiably a lower and an upper bound; d starts from the requested
precision and shrinks until the bounds are close enough. Large blocks are first tried with `margins` around
one approximate solution. Only Φ with safe rounding is verified, however approximations were found (policy
iteration, factorisations). Derivation: docs/proofs/values.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tightrope.numerics.arrays import ArrayModule, FloatArray
from tightrope.solver.equations.system import Equations, Meaning, System
from tightrope.solver.iteration.backend import (
    Backend,
    BlockBackend,
    BoundaryValues,
    GroupVector,
    Portion,
    StateVector,
)
from tightrope.solver.solution import LARGEST_FACTORISATION, Progress, SolveOptions, Status

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


class Enclosure(NamedTuple):
    """Verified bounds, what they lie around, and whether float64 allows for nothing closer."""

    lower: GroupVector
    upper: GroupVector
    middle: GroupVector
    is_closest: bool = False


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
        """Bounds within `goal` of each other into `bounds`; else what was verified, and the reason."""
        lower, upper = bounds
        block = self.backend.open_block(self.equations, self.system, portion, lower, worker)
        measure = Measure(self.system, self.goal.relative, progress, block.xp)
        boundary = block.read_boundary(lower, upper, self.goal.relative and self.system.unit == 0)
        policies = PolicyIteration(block, self.equations, progress, not self.is_plain)
        patience = progress.patience_for(block.groups)
        rounds = ModifiedPolicyIteration(block, self.system, measure, progress, policies, patience)
        ends = block.state_vector(lower), block.state_vector(upper)
        refinement = _Refinement(self, block, measure, rounds, boundary, *ends)
        xp, within, status = block.xp, goal, None
        best = refinement.known(False), refinement.known(True)
        middle = self._first_guess(block, boundary.smallest)
        while True:  # towards goals that become coarser where float64 does not carry what was asked
            begin = progress.iterations
            enclosure = refinement.with_margins(middle, within)
            if enclosure is not None and (enclosure.is_closest or refinement.gap(enclosure) <= within):
                progress.largest = measure.unit(enclosure.middle)
            else:
                enclosure = refinement.by_shifts(middle, within, enclosure, begin)
            middle = enclosure.middle
            best = xp.maximum(best[0], enclosure.lower), xp.minimum(best[1], enclosure.upper)
            gap = refinement.gap(Enclosure(*best, middle))
            if gap <= goal or progress.is_exhausted:
                break
            status = Status.PRECISION_LIMIT
            within *= RELAXED
            if enclosure.is_closest or gap <= within or within > COARSEST:
                break
        for values, of_states in zip(best, bounds, strict=True):
            block.scatter(values, of_states)
        return status

    def _first_guess(self, block: BlockBackend, smallest: float) -> GroupVector:
        """Given finite values, else the smallest around, with the cost of the way out."""
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

    def by_shifts(self, middle: GroupVector, goal: float, best: Enclosure | None, begin: int) -> Enclosure:
        """The best bounds found towards `goal` by shifted equations, as patiently as before."""
        xp, block, progress, rounds = self.block.xp, self.block, self.progress, self.rounds
        best_lower, best_upper = self.known(False), self.known(True)
        still = xp.zeros(block.groups)
        if best is not None:
            best_lower, best_upper, middle, _ = best
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
                gap = self.gap(Enclosure(best_lower, best_upper, middle))
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
        return Enclosure(best_lower, best_upper, middle)

    def with_margins(self, start: GroupVector, goal: float) -> Enclosure | None:
        """Bounds at a margin around one approximate solution, as far as verified; None without any."""
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
        return Enclosure(low, high, middle, is_closest and max(below, above) <= farthest)

    def _inherit(self, middle: GroupVector, goal: float) -> tuple[GroupVector, float]:
        """By how much the upper bound exceeds `middle` in any case, and what is left of the goal."""
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
        """The closest verified bound at a multiple of `away` from `middle`; else what is known, ∞."""
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
                return self.known(upward), float("inf")

    def _shift(
        self,
        values: StateVector,
        middle: GroupVector,
        distance: GroupVector,
        shift_and_sweeps: tuple[float, int],
        *,
        upward: bool,
    ) -> tuple[GroupVector, float]:
        """Like `_move_away` where margins fail as choices are equally good: the shifted solution is near."""
        shift, allowed = shift_and_sweeps
        self.block.put(values, self._displace(middle, distance, upward))
        step = shift * self.measure.reference(middle)
        tolerance = self.measure.tolerance(shift * CLOSENESS, middle)
        if self.rounds.converge(values, step if upward else -step, tolerance, allowed) and self._holds(
            values, upward
        ):
            return self.block.take(values), shift
        return self.known(upward), float("inf")

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

    def known(self, upward: bool) -> GroupVector:
        """What is known without any solving."""
        return self.block.xp.full(self.block.groups, self.system.ceiling if upward else self.system.floor)

    def gap(self, bounds: Enclosure) -> float:
        return self.measure.gap(bounds.lower, bounds.upper, self.measure.unit(bounds.middle))

    def _holds(self, values: StateVector, upward: bool) -> bool:
        """Whether the values are verifiably an upper (a lower) bound, given those around the block."""
        return bool((self.block.find_missing(values, upward) <= 0.0).all())


FROZEN_SWEEPS = 16
"""Sweeps with the choices kept between two robust ones; even."""

FROZEN_GOAL = 0.1
"""Change of the robust sweep, as a part, at which sweeps with the choices kept stop."""

FIRST_BURST = 8
"""Robust sweeps in the first burst."""

MOST_BURST = 256
"""Length of a burst of robust sweeps after which policy iteration that gets no closer is at its end."""

IN_VAIN = 12
"""Rounds without getting closer after which robust sweeps are left to themselves for a while."""

CLOSER = 0.9
"""Part of the smallest change so far that counts as getting closer."""

MOST_RESTARTS = 3
"""How often policy iteration may start again from choices that make progress."""


@dataclass(eq=False)
class ModifiedPolicyIteration:
    """Rounds of sweeps over one block; `patience`: sweeps until it is factorised, 0 once it has been."""

    block: BlockBackend
    system: System
    measure: Measure
    progress: Progress
    policies: PolicyIteration
    patience: int

    def converge(
        self, values: StateVector, shift: GroupVector, tolerance: float, allowed: int | None = None
    ) -> bool:
        """Iterate x ← Φ(x) + shift until a robust sweep changes nothing by more than `tolerance`, relatively.

        Solves between robust sweeps may cycle: nature's answers may be frozen, or be no distributions
        (rectangular sets). Where they stop getting closer, bursts of robust sweeps alone follow, each longer
        than the last: value iteration. False if limits, or `allowed` iterations, end it before.
        """
        block, progress, policies = self.block, self.progress, self.policies
        start = progress.iterations
        closest, in_vain, pure, burst = 0.5, 0, 0, FIRST_BURST
        backwards, restarts = False, 0
        unit = 1e-300 if self.measure.is_relative else 1.0
        may_factorise, waiting = progress.may_factorise(block.groups), 0
        while not progress.is_exhausted and (allowed is None or progress.iterations - start < allowed):
            if self.system.unit > 0:
                unit = max(unit, self.measure.unit(block.take(values)))
            improvement = block.improve(values, shift, unit, backwards)
            change, backwards = improvement.change, not backwards
            progress.iterations += 1
            if change <= tolerance:
                return True
            in_vain = 0 if change < CLOSER * closest else in_vain + 1
            closest = min(closest, change)
            if in_vain >= IN_VAIN:
                if self.patience == 0 and burst > MOST_BURST:
                    break
                in_vain, pure, burst = 0, burst, 2 * burst
            impatient = may_factorise and progress.iterations - start > max(self.patience, waiting)
            if pure > 0 and not (impatient and self.patience > 0):
                pure -= 1
                continue
            if impatient:
                progress.iterations += 1
                if policies.evaluate(values, shift, unit, tolerance):
                    if self.patience > 0:
                        in_vain, pure, burst, self.patience = 0, 0, FIRST_BURST, 0
                    if not policies.nature_has_choices:  # sweeps do not run in circles, and are cheaper
                        waiting = progress.iterations - start + progress.sweeps_per_factorisation
                    continue
                if policies.can_start_again:
                    restarts += 1
                    if restarts > MOST_RESTARTS or not policies.start_again(values, shift, unit, tolerance):
                        break
                    continue
                waiting = 2 * (progress.iterations - start)  # choices that never stop may be given up later
            goal, most = max(min(change, 1.0) * FROZEN_GOAL, tolerance * 0.2), FROZEN_SWEEPS
            if improvement.is_same_policy:
                goal, most = tolerance * 0.2, 4 * FROZEN_SWEEPS
            elif improvement.is_settling:
                most = 4 * FROZEN_SWEEPS
            progress.iterations += block.evaluate(values, shift, unit, most, goal)
        return False


MOST_ANSWERS = 20
"""How often nature is asked again while the agent's choices stay."""


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """Evaluation of the agent's choices that a block has kept."""

    block: BlockBackend
    equations: Equations
    progress: Progress
    nature_has_choices: bool

    def evaluate(self, values: StateVector, shift: GroupVector, unit: float, tolerance: float) -> bool:
        """Store the values of the choices kept against nature; False where they have none."""
        block = self.block
        for _ in range(MOST_ANSWERS):
            fill = block.factorise(values, shift)
            if fill <= 0:
                return False
            self.progress.note_fill(block.groups, fill)
            if not self.nature_has_choices or block.answer(values, shift, unit) <= tolerance:
                break
        return True

    def start_again(self, values: StateVector, shift: GroupVector, unit: float, tolerance: float) -> bool:
        """Like `evaluate`, for choices that make progress; False without any that float64 carries."""
        policy = self.block.find_progress(values)
        if policy is None:
            return False
        self.block.adopt(policy, values, shift, unit)
        return self.evaluate(values, shift, unit, tolerance)

    @property
    def can_start_again(self) -> bool:
        """Whether progress is the agent's alone, against nature."""
        owns = self.equations.agent_owns and not self.equations.nature_owns
        return owns and self.equations.meaning is Meaning.REWARD


@dataclass(frozen=True, eq=False)
class Measure:
    """How changes, residuals and distances of values are measured; `xp` is the module of their arrays."""

    system: System
    is_relative: bool
    progress: Progress
    xp: ArrayModule

    def tolerance(self, residual: float, values: GroupVector) -> float:
        """The relative change that stands for a residual in the measure asked for."""
        return residual if self.is_relative else residual / max(1.0, self._largest(values))

    def reference(self, values: GroupVector) -> GroupVector:
        """What the precision is measured against."""
        if not self.is_relative:
            return self.xp.ones(len(values))
        if self.system.unit > 0:
            return self.xp.full(len(values), self.unit(values))
        return self.xp.abs(values)

    def unit(self, values: GroupVector) -> float:
        """What signed values are measured against: the largest of unit, earlier blocks and `values`."""
        if self.system.unit <= 0:
            return 0.0
        return max(self.progress.largest, self.system.unit, self._largest(values))

    def gap(self, lower: GroupVector, upper: GroupVector, unit: float) -> float:
        """The largest distance of two bounds (`tightrope.solver.solution.width`)."""
        xp = self.xp
        apart = lower != upper
        gap = xp.where(apart, upper, 0.0) - xp.where(apart, lower, 0.0)
        if self.is_relative:
            scale = xp.maximum(xp.abs(upper), xp.abs(lower))
            is_finite = xp.isfinite(scale)
            if unit > 0:
                scale = xp.where(is_finite, max(unit, float(xp.where(is_finite, scale, 0.0).max())), scale)
            usable = (scale > 0) & is_finite
            gap = xp.where(usable, gap / xp.where(usable, scale, 1.0), gap)
        return float(gap.max())

    def _largest(self, values: GroupVector) -> float:
        return float(self.xp.abs(values).max())


ROUGHLY = 0.3
"""Largest change of the last sweep, as a part of ref."""

FIRST_CHANGE = 0.05
"""Change at which the size of w is looked at for the first time."""


def find_margins(
    block: BlockBackend, values: StateVector, reference: GroupVector, most: int
) -> tuple[GroupVector | None, int]:
    """(w, sweeps used) for the choices kept at `values`; None where neither `most` sweeps nor a factorisation
    find it: the choices may never leave the block. Without any sweep it is factorised whatever its size."""
    if block.is_stuck or not bool(((reference > 0.0) & (reference < float("inf"))).all()):
        return None, 0
    used, tolerance = 0, FIRST_CHANGE
    margins = block.xp.zeros(block.groups)
    while used < most:
        margins, done, change = block.count_steps(values, margins, reference, most - used, tolerance)
        used += done
        needed = ROUGHLY / float((margins / reference).max())
        if change <= needed:
            return margins, used
        tolerance = needed
    if most == 0 or block.groups <= LARGEST_FACTORISATION:
        return block.factorise_steps(values, reference), used + 1
    return None, used
