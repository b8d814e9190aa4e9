"""The CPU as the place where a model is solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from tightrope.model.graph.components import Components, strongly_connected_components
from tightrope.model.graph.qualitative import Ranked, attract_into
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel as compiled
from tightrope.numerics.team import Team
from tightrope.solver.bellman.operator import Backups, BellmanOperator, Walk
from tightrope.solver.equations.ordering import (
    MERGED_IN_PLAIN_ONES,
    MERGED_IN_SMALL_ONES,
    HostPortion,
    cut_levels,
    layers,
    level_portions,
    level_states,
    order_acyclic,
    order_structure,
    portions,
)
from tightrope.solver.equations.system import Block, Equations, Meaning, System, find_loops
from tightrope.solver.iteration.backend import Backend, BlockBackend, Judgement, Portion, Schedule
from tightrope.solver.iteration.host_block import HostBlock, HostSystem, Scratch
from tightrope.solver.iteration.parallel_block import LEAST_GROUPS, ParallelBlock, count_parts

LEAST_TRANSITIONS = 50_000
"""Transitions of a model below which one thread does everything."""

LEAST_OF_LEVEL = 512
"""Transitions of an acyclic level per worker: with fewer, meeting costs more than is gained."""

LEAST_CHOICES = 8192
"""Choices per worker where all are backed up at once."""

DENSE = 32
"""Transitions per group from which on the order of sweeps is of no account."""

T = TypeVar("T")


class HostBackups:
    """A kernel's backups of all choices, with workspaces for calls that follow each other."""

    def __init__(self, kernel: BellmanOperator, scratch: Sequence[Scratch], team: Team) -> None:
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
    """A kernel, and what solving with it leaves behind for the next step of the same solve; every worker of
    the team has its own scratch.
    """

    xp: Any = np

    def __init__(self, kernel: BellmanOperator, team: Team | None = None) -> None:
        self.kernel, self._team = kernel, team or Team()
        if kernel.structure.transitions < LEAST_TRANSITIONS:
            self._team = Team()
        self.support = kernel.support
        self._shared: HostSystem | None = None

    @cached_property
    def _scratch(self) -> list[Scratch]:
        size = self.kernel.structure.states, self.kernel.structure.choices
        first = self.kernel.open_workspace()
        others = [self.kernel.split_workspace(first) for _ in range(1, self._team.workers)]
        return [Scratch(*size, workspace) for workspace in (first, *others)]

    @cached_property
    def _passing(self) -> list[Any]:
        """Workspaces for passes over states without cycles."""
        if "_scratch" in vars(self):
            return [scratch.workspace for scratch in self._scratch]
        first = self.kernel.open_workspace(for_passes=True)
        return [first, *(self.kernel.split_workspace(first) for _ in range(1, self._team.workers))]

    @cached_property
    def backups(self) -> Backups:
        return HostBackups(self.kernel, self._scratch, self._team)

    def upload(self, of_host: Any) -> Any:
        return of_host

    def download(self, values: Any) -> Any:
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
        every = order_structure(system.structure)
        if every is not None:  # transitions of other states all lead elsewhere
            return every.settled
        return find_loops(self.support, system.enabled)

    def schedule(self, system: System, settled: BoolArray) -> Schedule:
        components = strongly_connected_components(self.support, usable=self._usable(system), expand=~settled)
        return self._portion(components, system, settled)

    def schedule_acyclic(self, system: System, settled: BoolArray) -> Schedule | None:
        order = order_acyclic(system.structure, partial(self._usable, system), settled)
        if order is None:
            return None
        levels = order.levels
        portion = HostPortion(Block.of_states(levels.states), False, False, levels=levels)
        return Schedule([[portion]] if len(levels.states) else [], order.ranking.copy())

    def _portion(self, components: Components, system: System, settled: BoolArray) -> Schedule:
        is_plain = self.kernel.lower is self.kernel.upper
        merged = MERGED_IN_PLAIN_ONES if is_plain else MERGED_IN_SMALL_ONES
        found = list(portions(components, system.leader, settled, merged))
        if self._team.workers == 1:
            return Schedule([[portion] for portion in found], _ranking(components))
        if not is_plain:  # there, over-relaxed sweeps over a whole block gain more than parts of it
            found = [replace(each, is_large=len(each.block) >= 2 * LEAST_GROUPS) for each in found]
        levels = level_portions(found, system.structure, self._usable(system))
        return Schedule(levels, _ranking(components))

    def may_idle(self, system: System, settled: BoolArray) -> bool:
        return True

    def back_up(
        self, system: System, portion: Portion, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        assert isinstance(portion, HostPortion)
        states, workers = portion.block.member, self._team.workers
        if workers > 1 and len(states) >= workers:
            levels = portion.levels or level_states(system.structure, self._usable(system), states)
            stages = cut_levels(levels, system.structure, workers, LEAST_OF_LEVEL)
            if len(stages) > 1 or stages[0, 1] < stages[0, -1]:
                self._walk(system, Walk.begin(levels.states, stages, workers), (lower, upper, policy))
                return
        self.kernel.backward(system, states, lower, upper, policy, self._passing[0])

    def _walk(self, system: System, walk: Walk, bounds: tuple[FloatArray, FloatArray, OffsetArray]) -> None:
        """All workers go through the levels in step."""
        from tightrope.numerics.lockstep import go_through

        workspaces = self._passing

        def follow(worker: int) -> None:
            step = partial(self.kernel.walk, system, walk.of(worker), *bounds, workspaces[worker])
            go_through(step, walk.progress, worker)

        self._team.run([follow] * self._team.workers)

    def open_block(
        self, equations: Equations, system: System, portion: Portion, lower: FloatArray, worker: int
    ) -> BlockBackend:
        """A connected block is put into an order of its own (`layers`)."""
        assert isinstance(portion, HostPortion)
        if self._shared is None or self._shared.system is not system:
            self._shared = HostSystem(self.kernel, self.support, system)
        scratch, block = self._scratch[worker], portion.block
        distance = np.zeros(len(block), np.int32)
        if portion.is_connected and not self._is_dense(block):
            is_reach = equations.meaning is Meaning.REACH
            ordered = layers(self.support, block, lower, scratch.place, is_reach)
            block, distance = ordered.block, ordered.distance
        whole = HostBlock.of(self._shared, block, distance, scratch)
        parts = count_parts(len(block), self._team.workers) if portion.is_large else 1
        return whole if parts == 1 else ParallelBlock(whole, self._scratch[:parts], self._team)

    def _is_dense(self, block: Block) -> bool:
        """Whether a group has so many transitions that any order carries values as far as another."""
        start = self.support.state_start
        entries = int((start[block.member + 1] - start[block.member]).sum())
        return entries >= DENSE * len(block)

    def judge(self, equations: Equations, lower: FloatArray, upper: FloatArray) -> Judgement:
        system, structure = equations.system, equations.system.structure
        maximises, enabled, owners_maximise = (
            system.agent_maximises,
            system.enabled,
            equations.owners_maximise,
        )
        holds: dict[bool, BoolArray] = {}
        policy: OffsetArray = np.zeros(0, np.int64)
        good, slack = np.empty(structure.choices, np.bool_), np.empty(structure.choices, np.bool_)
        for upward, values in ((False, lower), (True, upper)):
            each = self.backups.safe_choices(system, values, upward)
            best, choice = _best_of(structure, each, enabled, maximises, with_choice=upward != maximises)
            holds[upward] = best <= values if upward else best >= values
            if choice is not None:
                policy = choice
            if upward != owners_maximise:
                _attaining(structure.choice_start, each, values, enabled, owners_maximise, good, slack)
        return Judgement(holds[False], holds[True], policy, good, slack)

    def keep_transitions(self, values: FloatArray, nature_maximises: bool, slack: BoolArray) -> BoolArray:
        kept = self.backups.optimal_transitions(values, nature_maximises)
        return kept | (self.support.possible & slack[self.kernel.structure.transition_choice])

    def attract(
        self,
        kept: BoolArray | None,
        within: BoolArray,
        start: BoolArray,
        open_choice: BoolArray,
        joins: tuple[bool, bool],
    ) -> tuple[Any, OffsetArray]:
        support, found = self.support, Ranked.begin(start.copy())
        if kept is not None:
            support = Support(support.structure, support.lower, support.upper, usable=kept)
        attract_into(support, within, open_choice, *joins, found)
        found.rank[~found.states] = -1
        return found.rank, found.witness


def _ranking(components: Components) -> OffsetArray | None:
    """The order of the states, successors first, where there is no cycle."""
    if not components.is_acyclic:
        return None
    ranking = np.empty(len(components.order), np.int64)
    ranking[components.order] = np.arange(len(ranking))
    return ranking


def _best_of(
    structure: Structure, each: FloatArray, enabled: BoolArray, maximises: bool, *, with_choice: bool
) -> tuple[FloatArray, OffsetArray | None]:
    """The best of every state's enabled choices and, if wanted, the first choice that attains it; without one
    nothing (−∞ for a maximum) and −1.
    """
    if structure.is_chain and enabled.all():
        return each, np.arange(structure.states, dtype=np.int64) if with_choice else None
    best, first = np.empty(structure.states), np.empty(structure.states, np.int64)
    _best_choices(structure.choice_start, each, enabled, maximises, best, first)
    return best, first if with_choice else None


@compiled
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


@compiled
def _best_choices(
    choice_start: OffsetArray,
    each: FloatArray,
    enabled: BoolArray,
    maximises: bool,
    best: FloatArray,
    first: OffsetArray,
) -> None:
    for s in range(len(best)):
        found, taken = -np.inf if maximises else np.inf, -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if enabled[c] and (taken < 0 or (each[c] > found if maximises else each[c] < found)):
                found, taken = each[c], c
        best[s], first[s] = found, taken
