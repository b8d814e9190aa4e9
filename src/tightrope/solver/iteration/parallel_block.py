"""Several cores: a large block in a fixed partition of its groups, and passes level by level.

Each worker sweeps its part on its own vector and reads the other parts as they were before the sweep. Values
are exchanged through two boards, one written while the other is read, so one barrier per sweep is enough. The
result depends on the partition, never on scheduling. Verification is the same; a few more sweeps are needed.

In a pass over an acyclic model a state's backup reads states of earlier stages only, so every worker's part
of a stage is a plain backward pass. This file, and with it numba, is loaded only for several threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tightrope.ambiguity.rectangular_inner import RegionArrays
from tightrope.numerics.arrays import ArrayModule, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.lockstep import ENDED, WAITING, go_through, open_progress, publish, wait_for_all
from tightrope.numerics.team import Team
from tightrope.solver.bellman.backups import LoopArrays, backward_pass
from tightrope.solver.bellman.operator import BackupWorkspace, BellmanOperator
from tightrope.solver.equations.system import Block, System, SystemArrays
from tightrope.solver.iteration.backend import BoundaryValues, Improvement

if TYPE_CHECKING:
    from tightrope.solver.iteration.host import HostBlock, HostSystem, ThreadScratch


T = TypeVar("T")

_OF_GROUPS = ("row_end", "self_weight", "reward", "choice", "pivot")
"""The fields of rows that have an entry per group."""


@dataclass(eq=False)
class PartVector:
    """A vector of all states per part, and the two boards; the parts read board `turn` next."""

    copies: list[FloatArray]
    boards: tuple[FloatArray, FloatArray]
    turn: int = 0


class ParallelBlock:
    """A block whose groups are cut into parts; `whole` is the same block in one piece, with the same rows."""

    xp: ArrayModule = np

    def __init__(self, whole: HostBlock, scratch: list[ThreadScratch], team: Team) -> None:
        self.whole, self.team = whole, team
        cuts = _cut(whole, len(scratch))
        self.parts = [
            _part(whole, int(first), int(last), own)
            for first, last, own in zip(cuts[:-1], cuts[1:], scratch, strict=True)
        ]
        self._cuts = cuts
        self._seen, self._shown = _exchanges(whole.shared, self.parts)

    @property
    def groups(self) -> int:
        return self.whole.groups

    def read_boundary(self, lower: FloatArray, upper: FloatArray, is_part: bool) -> BoundaryValues:
        return self.whole.read_boundary(lower, upper, is_part)

    def guess_costs(self) -> FloatArray:
        return self.whole.guess_costs()

    def gather(self, of_states: FloatArray) -> FloatArray:
        return self.whole.gather(of_states)

    def scatter(self, of_groups: FloatArray, of_states: FloatArray) -> None:
        self.whole.scatter(of_groups, of_states)

    def state_vector(self, of_states: FloatArray) -> PartVector:
        copies = [of_states, *(of_states.copy() for _ in self.parts[1:])]
        return PartVector(copies, (of_states.copy(), of_states.copy()))

    def take(self, values: PartVector) -> FloatArray:
        own = [part.take(copy) for part, copy in zip(self.parts, values.copies, strict=True)]
        return np.concatenate(own)

    def put(self, values: PartVector, of_groups: FloatArray) -> None:
        for copy in (*values.copies, values.boards[values.turn]):
            self.whole.scatter(of_groups, copy)

    def improve(self, values: PartVector, shift: FloatArray, unit: float, backwards: bool) -> Improvement:
        each = self._sweep(values, lambda part, copy, own: part.improve(copy, shift[own], unit, backwards))
        return Improvement(max(one.change for one in each), all(one.is_same_policy for one in each))

    def evaluate(self, values: PartVector, shift: FloatArray, unit: float, most: int, goal: float) -> int:
        for done in range(most):
            changes = self._sweep(
                values, lambda part, copy, own: part.sweep_kept(copy, shift[own], unit, 1, 0.0)[1]
            )
            if max(changes) <= goal:
                return done + 1
        return most

    def answer(self, values: PartVector, shift: FloatArray, unit: float) -> float:
        changes = self._sweep(values, lambda part, copy, own: part.answer(copy, shift[own], unit))
        return float(max(changes))

    def adopt(self, policy: OffsetArray, values: PartVector, shift: FloatArray, unit: float) -> None:
        self._sweep(values, lambda part, copy, own: part.adopt(policy[own], copy, shift[own], unit))

    def _sweep(self, values: PartVector, call: Callable[[HostBlock, FloatArray, slice], T]) -> list[T]:
        """What every part answers after it has read the board; afterwards it writes onto the other one."""
        read, write = values.boards[values.turn], values.boards[1 - values.turn]
        values.turn = 1 - values.turn

        def task(i: int) -> Callable[[int], T]:
            def run(_: int) -> T:
                copy = values.copies[i]
                _copy(self._seen[i], read, copy)
                answer = call(self.parts[i], copy, slice(self._cuts[i], self._cuts[i + 1]))
                _copy(self._shown[i], copy, write)
                return answer

            return run

        return self.team.run([task(i) for i in range(len(self.parts))])

    def _meet(self, values: PartVector) -> FloatArray:
        """All parts read the board; the first copy gets all values of the block."""
        for i, copy in enumerate(values.copies):
            _copy(self._seen[i], values.boards[values.turn], copy)
        first = values.copies[0]
        self.whole.scatter(self.take(values), first)
        return first

    def factorise(self, values: PartVector, shift: FloatArray) -> float:
        first = self._meet(values)
        fill = self.whole.factorise(first, shift)
        if fill > 0:
            self.put(values, self.whole.take(first))
        return fill

    def find_progress(self, values: PartVector) -> OffsetArray | None:
        return self.whole.find_progress(self._meet(values))

    @property
    def is_stuck(self) -> bool:
        return self.whole.is_stuck

    def count_steps(
        self, values: PartVector, weights: FloatArray, reference: FloatArray, most: int, tolerance: float
    ) -> tuple[FloatArray, int, float]:
        counted = self.state_vector(np.zeros(self.whole.shared.system.structure.states))
        self.put(counted, weights)
        done, change = 0, np.inf
        while done < most and change > tolerance:
            changes = self._sweep(
                counted, lambda part, copy, own: part.sweep_steps(copy, reference[own], 1, 0.0)[1]
            )
            done, change = done + 1, max(changes)
        return self.take(counted), done, change

    def factorise_steps(self, values: PartVector, reference: FloatArray) -> FloatArray | None:
        return self.whole.factorise_steps(values.copies[0], reference)

    def find_missing(self, values: PartVector, upward: bool) -> FloatArray:
        self._meet(values)
        tasks = [
            lambda _, part=part, copy=copy: part.find_missing(copy, upward)
            for part, copy in zip(self.parts, values.copies, strict=True)
        ]
        return np.concatenate(self.team.run(tasks))


def _cut(whole: HostBlock, parts: int) -> OffsetArray:
    """Where the groups are cut: about as many transitions in each part."""
    structure, block = whole.shared.system.structure, whole.block
    start = structure.transition_start[structure.choice_start]
    size = (start[block.member + 1] - start[block.member]).astype(np.int64)
    work = np.cumsum(np.add.reduceat(size, block.group_start[:-1]))
    inner = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts)
    return np.concatenate([[0], np.maximum(inner, np.arange(1, parts)), [len(block)]])


def _part(whole: HostBlock, first: int, last: int, scratch: ThreadScratch) -> HostBlock:
    """Groups first..last−1; its rows are a view of the whole block's."""
    block, rows = whole.block, whole.rows
    start, end = int(block.group_start[first]), int(block.group_start[last])
    member = block.member[start:end]
    group_start = block.group_start[first : last + 1] - start
    visit = np.zeros(0, np.int32)
    if len(block.visit):
        visit = np.argsort(member[group_start[:-1]])[::-1].astype(np.int32)
    of_groups = {name: getattr(rows, name)[first:last] for name in _OF_GROUPS}
    own = rows._replace(row_start=rows.row_start[first : last + 1], **of_groups)
    part = Block(group_start, member, visit)
    return type(whole)(whole.shared, part, whole.distance[first:last], scratch, own)


def _exchanges(shared: HostSystem, parts: list[HostBlock]) -> tuple[list[IndexArray], list[IndexArray]]:
    """For every part the states of other parts that it reads, and its own that others read."""
    structure = shared.system.structure
    owner = np.full(structure.states, -1, np.int32)
    for i, part in enumerate(parts):
        owner[part.block.member] = i
    seen = []
    for i, part in enumerate(parts):
        mark = np.zeros(structure.states, np.bool_)
        _mark_read(
            structure.choice_start, structure.transition_start, structure.successor, part.block.member, mark
        )
        seen.append(np.flatnonzero(mark & (owner >= 0) & (owner != i)).astype(np.int32))
    shared_states = np.unique(np.concatenate(seen)) if seen else np.zeros(0, np.int32)
    shown = [shared_states[owner[shared_states] == i] for i in range(len(parts))]
    return seen, shown


@kernel
def _mark_read(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    member: IndexArray,
    mark: BoolArray,
) -> None:
    for s in member:
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            mark[successor[t]] = True


@kernel
def _copy(states: IndexArray, source: FloatArray, target: FloatArray) -> None:
    for s in states:
        target[s] = source[s]


UNTOLD = 2
"""Some support could not be told (`o_maximize_safely`)."""

Bounds = tuple[FloatArray, FloatArray, OffsetArray]
"""Lower and upper bounds, and the policy."""


class Walk(NamedTuple):
    """Stages that workers go through in step; `at`: the stage, and how many of its states are done."""

    states: IndexArray
    stages: OffsetArray
    progress: OffsetArray
    at: OffsetArray
    worker: int


@kernel
def _walk_stages(
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    walk: Walk,
    bounds: Bounds,
    exactly: bool | None,
) -> int:
    states, stages, progress, at, worker = walk
    low, high, policy = bounds
    while at[0] < len(stages):
        k = at[0]
        if not wait_for_all(progress, k):
            return WAITING
        part = states[stages[k, worker] + at[1] : stages[k, worker + 1]]
        done = backward_pass(arrays, region, system, part, low, high, policy, exactly)
        if done < len(part):
            at[1] += done
            return UNTOLD
        at[0], at[1] = k + 1, 0
        publish(progress, worker, k + 1)
    return ENDED


def back_up_levels(
    kernel: BellmanOperator,
    system: System,
    levels: tuple[IndexArray, OffsetArray],
    bounds: Bounds,
    workspaces: list[BackupWorkspace],
    team: Team,
) -> None:
    """`BellmanOperator.backward` of states in their stages (`cut_levels`), which all workers go through."""
    progress = open_progress(team.workers)

    def step(walk: Walk, workspace: BackupWorkspace) -> int:
        state, arrays = UNTOLD, (kernel.arrays, workspace.scratch)

        def attempt(care: bool | None) -> bool:
            nonlocal state
            state = _walk_stages(arrays, workspace.region, system.arrays, walk, bounds, care)
            return state != UNTOLD

        workspace.repeat(attempt)
        return state

    def follow(worker: int) -> None:
        walk = Walk(*levels, progress, np.zeros(2, np.int64), worker)
        go_through(partial(step, walk, workspaces[worker]), progress, worker)

    team.run([follow] * team.workers)
