"""The CPU as the place where a model is solved: Gauss–Seidel sweeps, and sparse rows of frozen choices.

*Boundary of a block.* Let x solve a block for the lower boundary values. If the upper ones are larger by at
most h, x + h is at least its own backup with them, as rows sum to at most 1; if larger by at most a part η of
themselves, (1 + η)·x is, where no reward is negative.

*Over-relaxation* of sweeps with kept choices, x ← x + ω·(GS(x) − x), affects only the number of sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from tightrope.model.graph.components import Components, strongly_connected_components
from tightrope.model.graph.qualitative import engine_of
from tightrope.model.graph.support import Ranked, Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import (
    ArrayModule,
    BoolArray,
    DeviceArray,
    FloatArray,
    IndexArray,
    OffsetArray,
    ranges,
)
from tightrope.numerics.jit import kernel
from tightrope.numerics.team import Team
from tightrope.solver.bellman.fixed_choices import (
    Factors,
    Pace,
    factorise_fixed_choices,
    sweep_fixed_agent,
    sweep_fixed_choices,
)
from tightrope.solver.bellman.operator import Backups, BackupWorkspace, BellmanOperator
from tightrope.solver.equations import ordering
from tightrope.solver.equations.system import (
    CLOSED,
    Block,
    ChoiceModes,
    Equations,
    Meaning,
    Rows,
    System,
    best_choices,
    find_loops,
    longest_choices,
)
from tightrope.solver.iteration.backend import (
    Backend,
    BlockBackend,
    BoundaryValues,
    Improvement,
    Judgement,
    Portion,
    SolveSchedule,
)

LEAST_TRANSITIONS = 50_000
"""Transitions of a model below which one thread does everything."""

LEAST_OF_LEVEL = 512
"""Transitions of an acyclic level per worker: with fewer, meeting costs more than is gained."""

LEAST_CHOICES = 8192
"""Choices per worker where all are backed up at once."""

LEAST_GROUPS = 4096
"""Groups of a part of a block: with fewer, meeting costs more than is gained."""

DENSE = 32
"""Transitions per group from which on the order of sweeps is of no account."""

T = TypeVar("T")


class HostBackups:
    """A kernel's backups of all choices, with workspaces for calls that follow each other."""

    def __init__(self, kernel: BellmanOperator, scratch: Sequence[ThreadScratch], team: Team) -> None:
        self._kernel, self._scratch, self._team = kernel, scratch, team
        self.structure, self.lower, self.upper = kernel.structure, kernel.lower, kernel.upper

    def safe_choices(self, system: System, values: FloatArray, upward: bool) -> FloatArray:
        choices = self.structure.choices
        out = np.empty(choices)
        parts = min(self._team.workers, max(choices // LEAST_CHOICES, 1))
        cuts = [choices * i // parts for i in range(parts + 1)]

        def back_up(part: tuple[int, int], worker: int) -> None:
            workspace = self._scratch[worker].workspace
            self._kernel.safe_range(system, values, upward, part, out, workspace)

        self._team.run([partial(back_up, part) for part in pairwise(cuts)])
        return out

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        return self._kernel.optimal_transitions(values, maximise, self._scratch[0].workspace)

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        return self._kernel.answer(values, maximise, self._scratch[0].workspace)


class HostBackend:
    """A kernel, with what solving leaves behind for the next step; every worker has its own scratch."""

    xp: ArrayModule = np

    def __init__(self, kernel: BellmanOperator, team: Team | None = None) -> None:
        self.kernel, self._team = kernel, team or Team()
        if kernel.structure.transitions < LEAST_TRANSITIONS:
            self._team = Team()
        self.support = kernel.support
        self._shared: HostSystem | None = None

    @cached_property
    def _scratch(self) -> list[ThreadScratch]:
        size = self.kernel.structure.states, self.kernel.structure.choices
        first = self.kernel.open_workspace()
        others = [self.kernel.split_workspace(first) for _ in range(1, self._team.workers)]
        return [ThreadScratch(*size, workspace) for workspace in (first, *others)]

    @cached_property
    def _passing(self) -> list[BackupWorkspace]:
        """Workspaces for passes over states without cycles."""
        if "_scratch" in vars(self):
            return [scratch.workspace for scratch in self._scratch]
        first = self.kernel.open_workspace(for_passes=True)
        return [first, *(self.kernel.split_workspace(first) for _ in range(1, self._team.workers))]

    @cached_property
    def backups(self) -> Backups:
        return HostBackups(self.kernel, self._scratch, self._team)

    def upload(self, of_host: DeviceArray) -> DeviceArray:
        return of_host

    def download(self, values: DeviceArray) -> DeviceArray:
        return values

    def beside(self, kernel: BellmanOperator) -> Backend:
        return HostBackend(kernel, self._team)

    def run_together(self, tasks: Sequence[Callable[[int], T]]) -> list[T]:
        return self._team.run(tasks)

    def _usable(self, system: System) -> BoolArray:
        """Possible transitions of enabled choices."""
        if system.enabled.all():
            return self.support.possible
        return self.support.possible & system.enabled[system.structure.transition_choice]

    def find_loops(self, system: System) -> BoolArray:
        every = ordering.order_structure(system.structure)
        if every is not None:  # transitions of other states all lead elsewhere
            return every.settled
        return find_loops(system.structure, self._usable(system))

    def schedule(self, system: System, settled: BoolArray) -> SolveSchedule:
        components = strongly_connected_components(self.support, usable=self._usable(system), expand=~settled)
        return self._portion(components, system, settled)

    def schedule_acyclic(self, system: System, settled: BoolArray) -> SolveSchedule | None:
        order = ordering.order_acyclic(system.structure, partial(self._usable, system), settled)
        if order is None:
            return None
        levels = order.levels
        portion = ordering.HostPortion(Block.of_states(levels.states), False, False, levels=levels)
        return SolveSchedule([[portion]] if len(levels.states) else [], order.ranking.copy())

    def _portion(self, components: Components, system: System, settled: BoolArray) -> SolveSchedule:
        is_plain = self.kernel.lower is self.kernel.upper
        merged = ordering.MERGED_IN_PLAIN_ONES if is_plain else ordering.MERGED_IN_SMALL_ONES
        every = list(ordering.portions(components, system.leader, settled, merged))
        if self._team.workers == 1:
            return SolveSchedule([[portion] for portion in every], _ranking(components))
        if not is_plain:  # there, over-relaxed sweeps over a whole block gain more than parts of it
            every = [replace(each, is_large=len(each.block) >= 2 * LEAST_GROUPS) for each in every]
        levels = ordering.level_portions(every, system.structure, self._usable(system))
        return SolveSchedule(levels, _ranking(components))

    def may_idle(self, system: System, settled: BoolArray) -> bool:
        return True

    def back_up(
        self, system: System, portion: Portion, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        assert isinstance(portion, ordering.HostPortion)
        states, workers = portion.block.member, self._team.workers
        if workers > 1 and len(states) >= workers:
            levels = portion.levels or ordering.level_states(system.structure, self._usable(system), states)
            stages = ordering.cut_levels(levels, system.structure, workers, LEAST_OF_LEVEL)
            if len(stages) > 1 or stages[0, 1] < stages[0, -1]:
                from tightrope.solver.iteration.parallel_block import back_up_levels

                bounds = lower, upper, policy
                back_up_levels(
                    self.kernel, system, (levels.states, stages), bounds, self._passing, self._team
                )
                return
        self.kernel.backward(system, states, lower, upper, policy, self._passing[0])

    def open_block(
        self, equations: Equations, system: System, portion: Portion, lower: FloatArray, worker: int
    ) -> BlockBackend:
        """A connected block is put into an order of its own (`layers`)."""
        assert isinstance(portion, ordering.HostPortion)
        if self._shared is None or self._shared.system is not system:
            self._shared = HostSystem(self.kernel, self.support, system)
        scratch, block = self._scratch[worker], portion.block
        distance = np.zeros(len(block), np.int32)
        if portion.is_connected and not self._is_dense(block):
            is_reach = equations.meaning is Meaning.REACH
            ordered = ordering.layers(self.support, block, lower, scratch.place, is_reach)
            block, distance = ordered.block, ordered.distance
        whole = HostBlock.of(self._shared, block, distance, scratch)
        parts = min(self._team.workers, len(block) // LEAST_GROUPS) if portion.is_large else 1
        if parts <= 1:
            return whole
        from tightrope.solver.iteration.parallel_block import ParallelBlock

        return ParallelBlock(whole, self._scratch[:parts], self._team)

    def _is_dense(self, block: Block) -> bool:
        """Whether a group has so many transitions that any order carries values as far as another."""
        start = self.support.state_start
        entries = int((start[block.member + 1] - start[block.member]).sum())
        return entries >= DENSE * len(block)

    def judge(self, equations: Equations, lower: FloatArray, upper: FloatArray) -> Judgement:
        system, structure = equations.system, equations.system.structure
        owners_maximise = equations.owners_maximise
        holds: dict[bool, BoolArray] = {}
        policy: OffsetArray = np.zeros(0, np.int64)
        good, slack = np.empty(structure.choices, np.bool_), np.empty(structure.choices, np.bool_)
        for upward, values in ((False, lower), (True, upper)):
            each = self.backups.safe_choices(system, values, upward)
            best, choice = best_choices(system, each)
            holds[upward] = best <= values if upward else best >= values
            if upward != system.agent_maximises:
                policy = choice
            if upward != owners_maximise:
                _attaining(structure.choice_start, each, values, system.enabled, owners_maximise, good, slack)
        return Judgement(holds[False], holds[True], policy, good, slack)

    def keep_transitions(self, values: FloatArray, nature_maximises: bool, slack: BoolArray) -> BoolArray:
        optimal = self.backups.optimal_transitions(values, nature_maximises)
        return optimal | (self.support.possible & slack[self.kernel.structure.transition_choice])

    def attract(
        self,
        transitions: BoolArray | None,
        within: BoolArray,
        start: BoolArray,
        open_choice: BoolArray,
        joins: tuple[bool, bool],
    ) -> tuple[DeviceArray, OffsetArray]:
        support, ranked = self.support, Ranked.begin(start.copy())
        if transitions is not None:
            support = Support(support.structure, support.lower, support.upper, usable=transitions)
        engine_of(support).attract(support.usable, joins, within, open_choice, ranked)
        ranked.rank[~ranked.states] = -1
        return ranked.rank, ranked.witness


def _ranking(components: Components) -> OffsetArray | None:
    """The order of the states, successors first, where there is no cycle."""
    if not components.is_acyclic:
        return None
    ranking = np.empty(len(components.order), np.int64)
    ranking[components.order] = np.arange(len(ranking))
    return ranking


@kernel
def _attaining(
    choice_start: OffsetArray,
    each: FloatArray,
    bound: FloatArray,
    enabled: BoolArray,
    maximise: bool,
    good: BoolArray,
    slack: BoolArray,
) -> None:
    """Enabled choices that attain their state's bound, and those that are strictly better."""
    for s in range(len(bound)):
        for c in range(choice_start[s], choice_start[s + 1]):
            beyond = each[c] > bound[s] if maximise else each[c] < bound[s]
            slack[c] = enabled[c] and beyond
            good[c] = enabled[c] and (beyond or each[c] == bound[s])


LARGEST = 1e300
"""Where iterates are cut off: nothing within a block becomes infinite."""

FEW_CHANGES = 0.01
"""Part of the groups that may change their choice while the policy counts as settling."""


LEAST_SWEEPS = 64
"""Sweeps asked for at once from which on relaxation is tried: fewer are asked for while choices change."""

PROBE = 16
"""Sweeps at the end of these over which the rate is measured."""

SLOW = 0.9
"""Rate above which sweeps are slow."""

STEP = 0.1
MOST = 1.9


@dataclass(eq=False)
class OverRelaxation:
    """`factor` is ω; `rate` the change of a sweep as a part of the one before, with the best ω so far."""

    factor: float = 1.0
    rate: float = 1.0
    waits: int = 1
    is_settled: bool = False

    @property
    def accepted(self) -> float:
        """The best ω so far."""
        return self.factor if self.is_settled else max(1.0, self.factor - STEP)

    def sweep(
        self,
        sweep: Callable[[int, float], tuple[int, float]],
        keep: Callable[[], Callable[[], None]],
        most: int,
        goal: float,
    ) -> tuple[int, float]:
        """Up to `most` sweeps, fewer once one changes no more than `goal`: (sweeps done, last change).

        `sweep` takes a number of sweeps and ω; `keep` remembers the values and returns what restores them."""
        if most < LEAST_SWEEPS:
            return sweep(most, 1.0)
        restore = keep() if self.factor > 1.0 and not self.is_settled else None
        done, early = sweep(most - PROBE, self.factor)
        if early <= goal:
            return done, early
        more, late = sweep(PROBE, self.factor)
        if late > goal and not self._learn((late / early) ** (1.0 / more)) and restore is not None:
            restore()
        return done + more, late

    def _learn(self, rate: float) -> bool:
        """Choose the next factor after one has shown its rate; False where it was of no use."""
        if self.is_settled:
            if rate >= 1.0:
                self.factor = 1.0
            return True
        if self.factor > 1.0 and rate >= self.rate:
            self.factor, self.is_settled = self.factor - STEP, True
            return False
        self.rate = rate
        if self.waits > 0 or rate < SLOW:  # the first sweeps say little of those to come
            self.waits = max(self.waits - 1, 0)
        elif self.factor + STEP <= MOST:
            self.factor += STEP
        return True


@dataclass(eq=False)
class ThreadScratch:
    """What one thread writes to and leaves as it was: `place` −1, `zeros` 0; `workspace` is the kernel's."""

    states: int
    choices: int
    workspace: BackupWorkspace

    @cached_property
    def place(self) -> IndexArray:
        return np.full(self.states, -1, np.int32)

    @cached_property
    def zeros(self) -> FloatArray:
        return np.zeros(self.states)

    @cached_property
    def closed(self) -> ChoiceModes:
        """All choices closed; those of a policy are opened for as long as it is followed."""
        return np.full(self.choices, CLOSED, np.int8)


@dataclass(frozen=True, eq=False)
class HostSystem:
    """A system with what all its blocks share."""

    kernel: BellmanOperator
    support: Support
    system: System

    @cached_property
    def bounded(self) -> System:
        """The same equations, cut off where nothing sensible is."""
        floor, ceiling = max(self.system.floor, -LARGEST), min(self.system.ceiling, LARGEST)
        return replace(self.system, floor=floor, ceiling=ceiling)

    @cached_property
    def counting(self) -> System:
        """The system in which steps are counted: without bounds."""
        return replace(self.system, floor=0.0, ceiling=np.inf)

    @cached_property
    def longest_choices(self) -> OffsetArray:
        return longest_choices(self.kernel.structure)

    @cached_property
    def answers_are_cheap(self) -> bool:
        """Whether nature answers anew under frozen choices: players disagree, rows hold all."""
        opposed = self.system.agent_maximises != self.system.nature_maximises
        return opposed and self.kernel.o_maximizes_rows


@dataclass(frozen=True, eq=False)
class HostBlock:
    """`distance` is that of each group to the way out, or 0."""

    shared: HostSystem
    block: Block
    distance: IndexArray
    scratch: ThreadScratch
    rows: Rows
    relaxation: OverRelaxation = field(default_factory=OverRelaxation)
    factorised: list[tuple[OffsetArray, Factors]] = field(default_factory=list)
    """The choices kept when the block was last factorised, and their factors; empty or one."""
    xp: ArrayModule = field(default=np, repr=False)

    @staticmethod
    def of(shared: HostSystem, block: Block, distance: IndexArray, scratch: ThreadScratch) -> HostBlock:
        with_bounds = shared.kernel.o_maximizes_rows
        rows = Rows.room_for(shared.longest_choices, block, with_bounds=with_bounds)
        return HostBlock(shared, block, distance, scratch, rows)

    @property
    def groups(self) -> int:
        return len(self.block)

    @cached_property
    def _lead(self) -> IndexArray:
        return self.block.member[self.block.group_start[:-1]]

    @cached_property
    def _backwards(self) -> Block:
        return replace(self.block, backwards=True)

    @cached_property
    def _sizes(self) -> OffsetArray | None:
        """Members per group; None where every group is one state."""
        return None if len(self.block) == len(self.block.member) else np.diff(self.block.group_start)

    def read_boundary(self, lower: FloatArray, upper: FloatArray, is_part: bool) -> BoundaryValues:
        structure = self.shared.system.structure
        return read_boundary(structure, self.block, lower, upper, is_part, self.scratch.place)

    def guess_costs(self) -> FloatArray:
        """The distance, at twice the mean reward of the block's choices per step."""
        system, member = self.shared.system, self.block.member
        choice, _ = ranges(system.structure.choice_start, member)  # of these alone: blocks are many
        return self.distance.astype(np.float64) * (2.0 * float(system.reward[choice].mean()))

    def gather(self, of_states: FloatArray) -> FloatArray:
        return of_states[self._lead]

    def scatter(self, of_groups: FloatArray, of_states: FloatArray) -> None:
        sizes = self._sizes
        of_states[self.block.member] = of_groups if sizes is None else np.repeat(of_groups, sizes)

    def state_vector(self, of_states: FloatArray) -> FloatArray:
        return of_states

    def take(self, values: FloatArray) -> FloatArray:
        return values[self._lead]

    def put(self, values: FloatArray, of_groups: FloatArray) -> None:
        self.scatter(of_groups, values)

    def improve(self, values: FloatArray, shift: FloatArray, unit: float, backwards: bool) -> Improvement:
        before = self.rows.choice.copy()
        block = self._backwards if backwards else self.block
        bounded, workspace = self.shared.bounded, self.scratch.workspace
        change = self.shared.kernel.sweep(bounded, block, values, shift, unit, self.rows, workspace)
        structure = self.shared.system.structure
        is_chain = structure.choices == structure.states
        changed = 0 if is_chain else int(np.count_nonzero(before != self.rows.choice))
        return Improvement(change, changed == 0, changed <= FEW_CHANGES * len(before))

    def evaluate(self, values: FloatArray, shift: FloatArray, unit: float, most: int, goal: float) -> int:
        return self.sweep_kept(values, shift, unit, most, goal)[0]

    def sweep_kept(
        self, values: FloatArray, shift: FloatArray, unit: float, most: int, goal: float
    ) -> tuple[int, float]:
        """See `evaluate`; with the last change."""
        system, block, rows = self.shared.bounded.arrays, self.block.arrays, self.rows
        if self.shared.answers_are_cheap:
            return sweep_fixed_agent(system, block, rows, shift, values, most, Pace(unit, goal))

        def sweep(most: int, factor: float) -> tuple[int, float]:
            pace = Pace(unit, goal, factor)
            return sweep_fixed_choices(system, block, self.block.parts, rows, shift, values, most, pace)

        def keep() -> Callable[[], None]:
            return partial(self.put, values, self.take(values))

        return self.relaxation.sweep(sweep, keep, most, goal)

    def answer(self, values: FloatArray, shift: FloatArray, unit: float) -> float:
        return self._follow(self.rows.choice.copy(), values, shift, unit)

    def adopt(self, policy: OffsetArray, values: FloatArray, shift: FloatArray, unit: float) -> None:
        self._follow(policy, values, shift, unit)

    def _follow(self, policy: OffsetArray, values: FloatArray, shift: FloatArray, unit: float) -> float:
        mode, bounded = self.scratch.closed, self.shared.bounded
        mode[policy] = bounded.mode[policy]
        closed, workspace = replace(bounded, mode=mode), self.scratch.workspace
        change = self.shared.kernel.sweep(closed, self.block, values, shift, unit, self.rows, workspace)
        mode[policy] = CLOSED
        return change

    def factorise(self, values: FloatArray, shift: FloatArray) -> float:
        factors = self._factors()
        if factors is None or not factors.solve(self.shared.bounded, self.block, self.rows, shift, values):
            return 0.0
        return factors.fill

    def _factors(self) -> Factors | None:
        """Those of the choices kept; nature's answers are no choices of the rows, and may have changed."""
        if self.factorised and np.array_equal(self.factorised[0][0], self.rows.choice):
            return self.factorised[0][1]
        self.factorised.clear()
        factors = factorise_fixed_choices(self.block, self.rows, self.scratch.place)
        if factors is not None and self.shared.kernel.lower is self.shared.kernel.upper:
            self.factorised.append((self.rows.choice.copy(), factors))
        return factors

    def find_progress(self, values: FloatArray) -> OffsetArray | None:
        return find_progress(self.shared.support, self.shared.system, self.block, values)

    @property
    def is_stuck(self) -> bool:
        return bool(np.any(self.rows.self_weight >= 1.0))

    @cached_property
    def _unrewarded(self) -> Rows:
        return self.rows._replace(reward=np.zeros(len(self.block)))

    def count_steps(
        self, values: FloatArray, weights: FloatArray, reference: FloatArray, most: int, tolerance: float
    ) -> tuple[FloatArray, int, float]:
        counted = self.scratch.zeros
        self.scatter(weights, counted)
        done, change = self.sweep_steps(counted, reference, most, tolerance)
        steps = counted[self._lead]
        counted[self.block.member] = 0.0
        return steps, done, change

    def sweep_steps(
        self, counted: FloatArray, reference: FloatArray, most: int, tolerance: float
    ) -> tuple[int, float]:
        """See `count_steps`, in place: (sweeps done, last change)."""
        system, block, rows = self.shared.counting.arrays, self.block.arrays, self._unrewarded
        pace = Pace(1e-300, tolerance, self.relaxation.accepted if most > 1 else 1.0)
        return sweep_fixed_choices(system, block, self.block.parts, rows, reference, counted, most, pace)

    def factorise_steps(self, values: FloatArray, reference: FloatArray) -> FloatArray | None:
        counted, counting = self.scratch.zeros, self.shared.counting
        factors, rows = self._factors(), self._unrewarded
        solved = factors is not None and factors.solve(counting, self.block, rows, reference, counted)
        steps = counted[self._lead]
        counted[self.block.member] = 0.0
        return steps if solved else None

    def find_missing(self, values: FloatArray, upward: bool) -> FloatArray:
        shared, backed = self.shared, np.empty(len(self.block))
        shared.kernel.safe(shared.system, self.block, values, upward, backed, self.scratch.workspace)
        own = values[self._lead]
        beyond, within = (backed, own) if upward else (own, backed)
        return np.subtract(beyond, within, out=np.zeros(len(self.block)), where=backed != own)


def find_progress(support: Support, system: System, block: Block, values: FloatArray) -> OffsetArray | None:
    """For every group a choice that leads closer to the exits of the block, whatever nature does.

    Choices that idle within a group lead from its other states to the one by which it is left."""
    structure = system.structure
    within = np.zeros(structure.states, np.bool_)
    within[block.member] = True
    drawn = ~within & np.isfinite(values)
    harmful = support.possible & ~within[structure.successor] & np.isinf(values[structure.successor])
    open_choice = system.enabled & ~np.logical_or.reduceat(harmful, structure.transition_start[:-1])
    _, rank, witness = ranked = Ranked.begin(drawn)
    engine_of(support).attract(support.usable, (True, False), within, open_choice, ranked)
    of_member = np.where(witness[block.member] >= 0, rank[block.member], np.iinfo(np.int32).max)
    first = np.minimum.reduceat(of_member, block.group_start[:-1])
    if np.any(first == np.iinfo(np.int32).max):
        return None
    group = np.repeat(np.arange(len(block)), np.diff(block.group_start))
    best = np.flatnonzero(of_member == first[group])
    policy = np.empty(len(block), np.int64)
    policy[group[best]] = witness[block.member[best]]
    return None if np.any(system.mode[policy] == CLOSED) else policy


def read_boundary(
    structure: Structure, block: Block, lower: FloatArray, upper: FloatArray, is_part: bool, place: IndexArray
) -> BoundaryValues:
    """`place` is −1 on all states, before and after."""
    place[block.member] = 0
    starts = structure.choice_start, structure.transition_start, structure.successor
    smallest, distance = _look_around(starts, block.member, place, (lower, upper), is_part)
    place[block.member] = -1
    return BoundaryValues(smallest if np.isfinite(smallest) else 0.0, distance, is_part)


@kernel
def _look_around(
    graph: tuple[OffsetArray, OffsetArray, IndexArray],
    member: IndexArray,
    place: IndexArray,
    bounds: tuple[FloatArray, FloatArray],
    is_part: bool,
) -> tuple[float, float]:
    """Of successors outside the block: the smallest lower bound and the largest distance of finite bounds."""
    (choice_start, transition_start, successor), (lower, upper) = graph, bounds
    smallest, widest = np.inf, 0.0
    for s in member:
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            u = successor[t]
            if place[u] >= 0:
                continue
            smallest = min(smallest, lower[u])
            if lower[u] < upper[u] and upper[u] < np.inf:
                distance = upper[u] - lower[u]
                if is_part:
                    distance = distance / lower[u] if lower[u] > 0.0 else np.inf
                widest = max(widest, distance)
    return smallest, widest
