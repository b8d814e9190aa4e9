"""A GPU as the place where a model is solved.

The acyclic part is backed up level by level on the device; all other states form one block. Sweeps are
Jacobi, so results do not depend on scheduling; under frozen choices of the agent nature still answers anew.
Small, slow blocks are factorised on the host. Every candidate is verified on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import (
    BoolArray,
    DeviceArray,
    FloatArray,
    IndexArray,
    OffsetArray,
    offsets,
    ranges,
)
from tightrope.solver.bellman.fixed_choices import factorise_fixed_choices
from tightrope.solver.bellman.operator import Backups, BellmanOperator
from tightrope.solver.cuda.kernel import CudaOperator, place
from tightrope.solver.cuda.model import DeviceArrays, DeviceSystem
from tightrope.solver.equations.system import EXIT, Block, Equations, Rows, System
from tightrope.solver.iteration.backend import (
    Backend,
    BlockBackend,
    BoundaryValues,
    Improvement,
    Judgement,
    Portion,
    SolveSchedule,
)
from tightrope.solver.iteration.host import LARGEST, find_progress

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CudaPortion:
    """States above level 0, level after level, or those below, which are on cycles or lead there."""

    level: IndexArray
    is_cyclic: bool
    is_large: bool = True


class CudaBackend:
    """The host's kernel, and the same on the device."""

    def __init__(self, kernel: BellmanOperator, there: CudaOperator) -> None:
        self.kernel, self.there, self._device = kernel, there, there.device
        self.xp = self._device.xp
        self._arrays: DeviceArrays | None = None

    def _arrays_of(self, system: System) -> DeviceArrays:
        """Sent once for steps that follow each other."""
        if self._arrays is None or self._arrays.system is not system:
            self._arrays = DeviceArrays(self._device, system)
        return self._arrays

    @property
    def backups(self) -> Backups:
        return self.there

    @property
    def support(self) -> Support:
        return self.there.support

    def upload(self, of_host: DeviceArray) -> DeviceArray:
        return self._device.upload(of_host)

    def download(self, values: DeviceArray) -> DeviceArray:
        return self._device.download(values)

    def beside(self, kernel: BellmanOperator) -> Backend:
        return CudaBackend(kernel, place(kernel, self._device))

    def run_together(self, tasks: Sequence[Callable[[int], T]]) -> list[T]:
        return [task(0) for task in tasks]

    def find_loops(self, system: System) -> BoolArray:
        return self.there.graph.only_loops(system.enabled)

    def schedule(self, system: System, settled: BoolArray) -> SolveSchedule:
        level = self.there.graph.levels(system.enabled, settled)
        lowest, last = int(level.min(initial=0)), int(level.max(initial=0))
        parts = [CudaPortion(level, False)] if last > 0 else []
        if lowest < 0:
            parts.append(CudaPortion(level, True))
        return SolveSchedule([[part] for part in parts], None if lowest < 0 else level.astype(np.int64))

    def schedule_acyclic(self, system: System, settled: BoolArray) -> SolveSchedule | None:
        whole = self.schedule(system, settled)
        return None if whole.ranking is None else whole

    def may_idle(self, system: System, settled: BoolArray) -> bool:
        if len(system.reward) and system.smallest_reward > 0:
            return False
        idle = system.enabled & (system.reward == 0) if len(system.reward) else system.enabled.copy()
        staying = ~settled
        self.there.graph.settle(None, (True, True), np.zeros(len(staying), np.bool_), staying, idle)
        return bool(staying.any())

    def back_up(
        self, system: System, portion: Portion, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        assert isinstance(portion, CudaPortion)
        device, model, level = self._device, self.there.model, portion.level
        last = int(level.max(initial=0))
        lone = replace(system, leader=np.arange(len(level), dtype=np.int32))
        equations = DeviceSystem(device, lone, None)
        low, high, chosen = device.upload(lower), device.upload(upper), device.upload(policy)
        queues = []
        for rows in model.layout.segments:
            of_row = level[rows.host_states(device)]
            order = np.argsort(of_row, kind="stable").astype(np.int32)
            ends = np.searchsorted(of_row[order], np.arange(last + 1), side="right")
            queues.append((device.upload(order), ends))
        for turn in range(1, last + 1):
            for index, (order, ends) in enumerate(queues):
                begin, end = int(ends[turn - 1]), int(ends[turn])
                if end > begin:
                    arguments = [order[begin:end], np.int64(end - begin), low, high, chosen]
                    while True:
                        model.one(index, "backward", equations, arguments)
                        if not model.expanded():
                            break
        lower[:], upper[:] = device.download(low), device.download(high)
        policy[:] = device.download(chosen)

    def open_block(
        self, equations: Equations, system: System, portion: Portion, lower: FloatArray, worker: int
    ) -> BlockBackend:
        assert isinstance(portion, CudaPortion)
        return CudaBlock(self.there, system, portion.level < 0, self._arrays_of(system))

    def judge(self, equations: Equations, lower: DeviceArray, upper: DeviceArray) -> Judgement:
        xp, system, structure = self.xp, equations.system, equations.system.structure
        enabled = None if system.enabled.all() else self.upload(system.enabled.view(np.uint8))
        good, slack = xp.empty(structure.choices, np.uint8), xp.empty(structure.choices, np.uint8)
        low_holds, high_holds = xp.empty(structure.states, np.bool_), xp.empty(structure.states, np.bool_)
        policy = xp.empty(structure.states, np.int64)
        owners_maximise = np.bool_(equations.owners_maximise)
        arguments = [lower, upper, enabled, owners_maximise, low_holds, high_holds, policy, good, slack]
        equations_there = DeviceSystem(self._device, system, None, arrays=self._arrays_of(system))
        self.there.repeat("judge", arguments, equations_there)
        return Judgement(low_holds, high_holds, self.download(policy), good, slack)

    def keep_transitions(
        self, values: DeviceArray, nature_maximises: bool, slack: DeviceArray
    ) -> DeviceArray:
        optimal = self.xp.empty(self.kernel.structure.transitions, np.uint8)
        self.there.repeat("optimal", [values, np.bool_(nature_maximises), slack.view(np.uint8), optimal])
        return optimal

    def attract(
        self,
        transitions: DeviceArray,
        within: DeviceArray,
        start: DeviceArray,
        open_choice: DeviceArray,
        joins: tuple[bool, bool],
    ) -> tuple[DeviceArray, DeviceArray]:
        level = self.xp.where(start, np.int32(0), np.int32(-1)).astype(np.int32)
        witness = self.xp.full(len(level), -1, np.int64)
        flags = within.view(np.uint8), open_choice.view(np.uint8)
        self.there.graph.draw(transitions, joins, *flags, (level, witness))
        return level, witness


MARGIN_SWEEPS = 16
"""Sweeps between two looks at how far margins have come."""


@dataclass(frozen=True, eq=False)
class Vector:
    """Values of all states, where a sweep from them goes, and recorded sweeps to and fro by their number."""

    now: DeviceArray
    after: DeviceArray
    recorded: dict[int, Callable[[], None]] = field(default_factory=dict)

    @property
    def back(self) -> Vector:
        return Vector(self.after, self.now)


class CudaBlock:
    """The equations of the active states of one system."""

    def __init__(
        self, kernel: CudaOperator, system: System, active: BoolArray, arrays: DeviceArrays | None = None
    ) -> None:
        self.kernel, self.model, self.device = kernel, kernel.model, kernel.device
        self.system = system
        self.equations = DeviceSystem(self.device, system, active, LARGEST, arrays)
        xp = self.xp = self.device.xp
        states = kernel.structure.states
        self._on_host = active
        self.active = self.device.upload(active)
        self.taken = xp.full(states, -1, np.int32)
        self.change = xp.zeros(1, np.uint64)
        self.lean = "false"
        self._spread_of: DeviceArray = None
        self._sent: dict[int, tuple[FloatArray, DeviceArray]] = {}

    # --- groups ------------------------------------------------------------------------------

    @cached_property
    def factoriser(self) -> Factoriser:
        return Factoriser(self.kernel, self.system, self._on_host)

    @cached_property
    def _is_everything(self) -> bool:
        return self.equations.groups is None and bool(self._on_host.all())

    @cached_property
    def _members(self) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """(lead of every group, states of the block, the group of each)."""
        if self.equations.groups is None:
            states = self.xp.flatnonzero(self.active)
            return states, states, self.xp.arange(len(states))
        block, upload = self.factoriser.block, self.device.upload
        lead = block.member[block.group_start[:-1]]
        return (
            upload(lead.astype(np.int64)),
            upload(block.member.astype(np.int64)),
            upload(self.factoriser.group),
        )

    @property
    def groups(self) -> int:
        return len(self._on_host) if self._is_everything else len(self._members[0])

    def _of_groups(self, of_states: DeviceArray) -> DeviceArray:
        return of_states.copy() if self._is_everything else of_states[self._members[0]]

    def _assign(self, of_states: DeviceArray, of_groups: DeviceArray) -> None:
        if self._is_everything:
            of_states[...] = of_groups
        else:
            _, member, group = self._members
            of_states[member] = of_groups[group]

    def take(self, values: Vector) -> DeviceArray:
        return self._of_groups(values.now)

    def put(self, values: Vector, of_groups: DeviceArray) -> None:
        self._assign(values.now, of_groups)

    def gather(self, of_states: FloatArray) -> DeviceArray:
        return self._of_groups(self.device.upload(of_states))

    def scatter(self, of_groups: DeviceArray, of_states: FloatArray) -> None:
        values = self._send(of_states)
        self._assign(values, of_groups)
        self.device.download(values, of_states)

    def state_vector(self, of_states: FloatArray) -> Vector:
        values = self._send(of_states)
        return Vector(values, values.copy())

    def _send(self, of_states: FloatArray) -> DeviceArray:
        """Once: outside the block a vector of the host does not change while the block is solved."""
        if id(of_states) not in self._sent:
            self._sent[id(of_states)] = of_states, self.device.upload(of_states)
        return self._sent[id(of_states)][1]

    @cached_property
    def _spread(self) -> DeviceArray:
        return self.xp.zeros(len(self._on_host))

    def spread(self, of_groups: DeviceArray) -> DeviceArray:
        """Over all states, always in the same place; sweeps that repeat the same are not kept waiting."""
        if self._spread_of is not of_groups:
            self._assign(self._spread, of_groups)
            self._spread_of = of_groups
        return self._spread

    # --- what lies around ----------------------------------------------------------------------

    def read_boundary(self, lower: FloatArray, upper: FloatArray, is_part: bool) -> BoundaryValues:
        """Of all states outside the block, whether it leads there or not."""
        xp, outside = self.xp, ~self.active
        low, high = self._send(lower), self._send(upper)
        if self.equations.lean and not bool((outside & (xp.isinf(low) | xp.isinf(high))).any()):
            self.lean = "true"
        smallest = float(xp.where(outside, low, np.inf).min())
        apart = outside & (low < high) & (high < np.inf)
        distance = xp.where(apart, high, 0.0) - xp.where(apart, low, 0.0)
        if is_part:
            has_size = low > 0
            part = xp.where(has_size, distance / xp.where(has_size, low, 1.0), np.inf)
            distance = xp.where(apart, part, 0.0)
        return BoundaryValues(smallest if np.isfinite(smallest) else 0.0, float(distance.max()), is_part)

    def guess_costs(self) -> DeviceArray:
        return self.xp.zeros(self.groups)

    # --- sweeps ------------------------------------------------------------------------------

    def improve(self, values: Vector, shift: DeviceArray, unit: float, backwards: bool) -> Improvement:
        before, spread = self.taken.copy(), self.spread(shift)
        while True:
            change = self.sweep(values, spread, unit, frozen=False, measure=True)
            if not self.model.expanded():
                break
        values.now[...] = values.after
        return Improvement(change, bool((before == self.taken).all()))

    def evaluate(self, values: Vector, shift: DeviceArray, unit: float, most: int, goal: float) -> int:
        """As many sweeps as may be, or one more: they go to and fro between two vectors."""
        spread, pairs = self.spread(shift), (most + 1) // 2
        if pairs not in values.recorded:
            there_and_back = Vector(values.now, values.after), values.back
            run = self.device.record(partial(self._sweep_frozen_pairs, there_and_back, spread, pairs))
            values.recorded[pairs] = run
        values.recorded[pairs]()
        return 2 * pairs

    def _sweep_frozen_pairs(
        self, there_and_back: tuple[Vector, Vector], shift: DeviceArray, pairs: int
    ) -> None:
        """Sweeps under the choices taken, every second one back to where the first began."""
        for _ in range(pairs):
            for turn in there_and_back:
                self.sweep(turn, shift, 1.0, frozen=True, measure=False)

    def answer(self, values: Vector, shift: DeviceArray, unit: float) -> float:
        change = self.sweep(values, self.spread(shift), unit, frozen=True, measure=True)
        values.now[...] = values.after
        return change

    def adopt(self, policy: OffsetArray, values: Vector, shift: DeviceArray, unit: float) -> None:
        structure = self.kernel.structure
        state = structure.choice_state[policy]
        chosen = np.full(structure.states, -1, np.int32)
        chosen[state] = policy - structure.choice_start[state]
        self.taken[...] = self.device.upload(chosen)
        self.answer(values, shift, unit)

    def sweep(self, values: Vector, shift: DeviceArray, unit: float, *, frozen: bool, measure: bool) -> float:
        """One sweep from `now` to `after`; its largest change where it is measured."""
        groups, x, y = self.equations.groups, values.now, values.after
        direct = measure and groups is None
        if measure:
            self.change[:] = 0
        arguments = [x, y, shift, self.taken, self.change if direct else None, np.float64(unit)]
        flags = f",{'true' if frozen else 'false'},{self.lean}"
        self.model.each("sweep", self.equations, arguments, flags)
        if groups is not None:
            self._join(y, None if frozen else self.taken, False)
            if measure:
                arguments = [np.int64(len(x)), self.equations.active, x, y, np.float64(unit), self.change]
                self.model.launch("largest_change", arguments)
        return self._measure() if measure else 0.0

    def _join(self, values: DeviceArray, keep: DeviceArray, by_keep: bool) -> None:
        assert self.equations.groups is not None
        start, member = self.equations.groups
        best = np.bool_(self.system.agent_maximises)
        arguments = [np.int64(len(start) - 1), start, member, values, keep, best, np.bool_(by_keep)]
        self.model.launch("join", arguments)

    def _measure(self) -> float:
        bits = self.device.download(self.change)
        return float(bits.view(np.float64)[0])

    # --- linear systems ------------------------------------------------------------------------

    def factorise(self, values: Vector, shift: DeviceArray) -> float:
        download = self.device.download
        solution, fill = self.factoriser.solve(
            download(self.taken), download(values.now), download(self.spread(shift)), rewarded=True
        )
        if solution is not None:
            values.now[...] = self.device.upload(solution)
        return fill

    def find_progress(self, values: Vector) -> OffsetArray | None:
        block, now = self.factoriser.block, self.device.download(values.now)
        return find_progress(self.kernel.support, self.system, block, now)

    @property
    def is_stuck(self) -> bool:
        return False

    def count_steps(
        self, values: Vector, weights: DeviceArray, reference: DeviceArray, most: int, tolerance: float
    ) -> tuple[DeviceArray, int, float]:
        spread = self.spread(reference)
        w, out = self.xp.zeros(len(self._on_host)), self.xp.zeros(len(self._on_host))
        self._assign(w, weights)
        used, change = 0, np.inf
        while used < most and change > tolerance:
            for _ in range(MARGIN_SWEEPS):
                self.change[:] = 0
                arguments = [values.now, w, out, spread, self.taken, self.change]
                self.model.each("margin", self.equations, arguments)
                if self.equations.groups is not None:
                    self._join(out, self.taken, True)
                w, out = out, w
            used, change = used + MARGIN_SWEEPS, self._measure()
        return self._of_groups(w), used, change

    def factorise_steps(self, values: Vector, reference: DeviceArray) -> DeviceArray:
        download = self.device.download
        solution, _ = self.factoriser.solve(
            download(self.taken), download(values.now), download(self.spread(reference)), rewarded=False
        )
        return None if solution is None else self.gather(solution)

    # --- what proofs rest on ---------------------------------------------------------------------

    def find_missing(self, values: Vector, upward: bool) -> DeviceArray:
        xp, backed = self.xp, self.xp.zeros(len(self._on_host))
        while True:
            self.model.each("safe_states", self.equations, [values.now, np.bool_(upward), backed])
            if not self.model.expanded():
                break
        if self.equations.groups is not None:
            self._join(backed, None, False)
        backed, own = self._of_groups(backed), self._of_groups(values.now)
        same = backed == own
        beyond, within = (backed, own) if upward else (own, backed)
        return xp.where(same, 0.0, beyond) - xp.where(same, 0.0, within)


class Factoriser:
    """Solves x = reward + extra + W·x for the groups of a block, W frozen at choices and answers."""

    def __init__(self, kernel: CudaOperator, system: System, active: BoolArray):
        self.kernel, self.system = kernel, system
        states = np.flatnonzero(active).astype(np.int32)
        lead = system.leader[states]
        order = np.argsort(lead, kind="stable")
        sizes = np.unique(lead, return_counts=True)[1]
        self.block = Block(offsets(sizes), states[order])
        self.group = np.repeat(np.arange(len(sizes)), sizes)

    def solve(
        self, chosen: IndexArray, x: FloatArray, extra: FloatArray, rewarded: bool
    ) -> tuple[FloatArray | None, float]:
        """The solution over all states, x itself outside the block, and the factors' entries per entry of the
        equations; None and 0 where there is none.

        Without rewards, what lies outside counts as 0 and the solution is not bounded."""
        rows = self._rows(chosen, x)
        if rows is None:
            return None, 0.0
        system, values = self.system, x.copy()
        if not rewarded:
            system, values = replace(system, floor=0.0, ceiling=np.inf), np.zeros(len(x))
            rows = rows._replace(reward=np.zeros(len(self.block)))
        place = np.full(len(x), -1, np.int32)
        lead = self.block.member[self.block.group_start[:-1]]
        factors = factorise_fixed_choices(self.block, rows, place)
        if factors is None or not factors.solve(system, self.block, rows, extra[lead], values):
            return None, 0.0
        return values, factors.fill

    def _rows(self, chosen: IndexArray, x: FloatArray) -> Rows | None:
        structure, system, member = self.kernel.structure, self.system, self.block.member
        acting = chosen[member] >= 0
        states, group = member[acting], self.group[acting]
        choice = structure.choice_start[states] + chosen[states]
        if len(group) != len(self.block) or np.any(system.mode[choice] == EXIT):
            return None
        entry, row = ranges(structure.transition_start, choice)
        scale = system.discount[choice] if len(system.discount) else np.ones(len(choice))
        weight = self.kernel.answer(x, system.nature_maximises)[entry] * scale[row]
        column = structure.successor[entry]
        inside = system.leader[column] == system.leader[states][row]
        outside = ~inside & (weight > 0)
        start = offsets(np.bincount(row[outside], minlength=len(choice)))
        return Rows(
            start,
            start[1:],
            column[outside],
            weight[outside],
            np.bincount(row[inside], weight[inside], minlength=len(choice)).astype(np.float64),
            system.reward[choice] if len(system.reward) else np.zeros(len(choice)),
            choice,
            np.full(len(choice), -1, np.int64),
        )
