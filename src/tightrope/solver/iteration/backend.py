"""The interface between the iteration and its machine: a `Backend` per model, a `BlockBackend` per block,
implemented by the CPU (`host`) and a GPU (`cuda.backend`).

All decisions, constants and limits are in `fixpoint` and `blocks`; backends only compute. *Group vectors*
have one entry per group of the block and are arrays of the module `xp` (NumPy or CuPy). *State vectors* hold
values of all states and are opaque to all but the backend that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import ArrayModule, BoolArray, DeviceArray, FloatArray, OffsetArray
from tightrope.solver.bellman.operator import Backups, BellmanOperator
from tightrope.solver.equations.system import Equations, System

GroupVector = DeviceArray
"""An array of `xp` with one entry per group."""

StateVector = DeviceArray
"""Values of all states, wherever and however often they are kept."""

T = TypeVar("T")


class Improvement(NamedTuple):
    """A robust sweep: its largest relative change, whether all, or all but few, groups kept their choices."""

    change: float
    is_same_policy: bool
    is_settling: bool = False


class BoundaryValues(NamedTuple):
    """The states outside a block: the smallest finite lower bound (0 without one), and how far bounds are
    apart at most, absolutely or (`is_part`) as a part of the lower one."""

    smallest: float
    distance: float
    is_part: bool


class BlockBackend(Protocol):
    """Groups of states that are solved together. It keeps the choices, the agent's and nature's, of the last
    robust sweep: *the choices kept*, under which x = reward + W·x is a linear system."""

    @property
    def xp(self) -> ArrayModule: ...

    @property
    def groups(self) -> int: ...

    def read_boundary(self, lower: FloatArray, upper: FloatArray, is_part: bool) -> BoundaryValues: ...

    def guess_costs(self) -> GroupVector:
        """A guess at the reward on the way out of the block; 0 where there is none."""

    def gather(self, of_states: FloatArray) -> GroupVector:
        """The host's values of the groups."""

    def scatter(self, of_groups: GroupVector, of_states: FloatArray) -> None:
        """Write values of the groups into the host's vector."""

    def state_vector(self, of_states: FloatArray) -> StateVector:
        """A vector to iterate on; it may share memory with the host's."""

    def take(self, values: StateVector) -> GroupVector: ...

    def put(self, values: StateVector, of_groups: GroupVector) -> None: ...

    def improve(self, values: StateVector, shift: GroupVector, unit: float, backwards: bool) -> Improvement:
        """One robust sweep x ← Φ(x) + shift within floor and ceiling, both players free. Where groups are
        swept one after the other, `backwards` turns their order round. Changes are relative to
        max(|x|, unit)."""

    def evaluate(self, values: StateVector, shift: GroupVector, unit: float, most: int, goal: float) -> int:
        """Up to `most` sweeps under the choices kept, fewer once a sweep changes no more than `goal`: how
        many were done. Nature may answer anew where that is cheap. A device that does not look in between
        does them all."""

    def answer(self, values: StateVector, shift: GroupVector, unit: float) -> float:
        """One sweep under the agent's choices kept, nature free; its largest relative change."""

    def adopt(self, policy: OffsetArray, values: StateVector, shift: GroupVector, unit: float) -> None:
        """One sweep under the agent's choices `policy` (one per group), nature free; they are kept."""

    def factorise(self, values: StateVector, shift: GroupVector) -> float:
        """Solve x = reward + shift + W·x: the fill of the factors, 0 (nothing stored) without one."""

    def find_progress(self, values: StateVector) -> OffsetArray | None:
        """For every group a choice that leads closer to the way out, whatever nature does."""

    @property
    def is_stuck(self) -> bool:
        """Whether it is known that some group, under the choices kept, never moves."""

    def count_steps(
        self, values: StateVector, weights: GroupVector, reference: GroupVector, most: int, tolerance: float
    ) -> tuple[GroupVector, int, float]:
        """Sweeps w ← reference + W·w, W of the choices kept: (w, sweeps done, last change)."""

    def factorise_steps(self, values: StateVector, reference: GroupVector) -> GroupVector | None:
        """The solution of w = reference + W·w by factorisation; None without one."""

    def find_missing(self, values: StateVector, upward: bool) -> GroupVector:
        """By how much safe backups are beyond the values; nowhere positive: a bound of the block."""


class Portion(Protocol):
    """States solved together; `is_cyclic`: one pass is not enough; `is_large`: all threads work on it."""

    @property
    def is_cyclic(self) -> bool: ...

    @property
    def is_large(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class SolveSchedule:
    """Portions level by level, independent within one; `ranking`: a topological order without cycles."""

    levels: Sequence[Sequence[Portion]]
    ranking: OffsetArray | None


@dataclass(frozen=True, eq=False)
class Judgement:
    """Both bounds backed up once more, safely.

    Per state: whether each bound holds (arrays of `xp`), and the choice that attains the agent's. Per choice,
    for the bound that the owners of progress have to attain: whether the choice attains it (`good`) and
    whether it is strictly better (`slack`), arrays of `xp`.
    """

    low_holds: DeviceArray
    high_holds: DeviceArray
    policy: OffsetArray
    good: DeviceArray
    slack: DeviceArray


class Backend(Protocol):
    """A model in the place where it is solved. Bounds are vectors of the host, unless it says otherwise."""

    @property
    def kernel(self) -> BellmanOperator: ...

    @property
    def backups(self) -> Backups:
        """Backups of all choices at once, computed there."""

    @property
    def support(self) -> Support: ...

    @property
    def xp(self) -> ArrayModule: ...

    def upload(self, of_host: DeviceArray) -> DeviceArray:
        """As an array of `xp`; the same one where that is the host's."""

    def download(self, values: DeviceArray) -> DeviceArray:
        """As an array of the host."""

    def beside(self, kernel: BellmanOperator) -> Backend:
        """Another model in the same place."""

    def run_together(self, tasks: Sequence[Callable[[int], T]]) -> list[T]:
        """The results of tasks that do not depend on each other; each is told which worker runs it."""

    def find_loops(self, system: System) -> BoolArray:
        """States without a way out."""

    def schedule(self, system: System, settled: BoolArray) -> SolveSchedule: ...

    def schedule_acyclic(self, system: System, settled: BoolArray) -> SolveSchedule | None:
        """The schedule of a system without cycles; None, as early as possible, where there is one."""

    def may_idle(self, system: System, settled: BoolArray) -> bool:
        """False where no end component without rewards is left among the states that are not settled."""

    def back_up(
        self, system: System, portion: Portion, lower: FloatArray, upper: FloatArray, policy: OffsetArray
    ) -> None:
        """Safe backups of both bounds of states without cycles; `policy` attains the agent's bound."""

    def open_block(
        self, equations: Equations, system: System, portion: Portion, lower: FloatArray, worker: int
    ) -> BlockBackend:
        """The groups of a cyclic portion; `lower` has the values around it."""

    def judge(self, equations: Equations, lower: DeviceArray, upper: DeviceArray) -> Judgement:
        """The bounds are arrays of `xp` here."""

    def keep_transitions(
        self, values: DeviceArray, nature_maximises: bool, slack: DeviceArray
    ) -> DeviceArray:
        """Transitions of some optimal answer of nature, and all possible ones at choices with slack."""

    def attract(
        self,
        transitions: DeviceArray,
        within: DeviceArray,
        start: DeviceArray,
        open_choice: DeviceArray,
        joins: tuple[bool, bool],
    ) -> tuple[DeviceArray, DeviceArray]:
        """(rank, witness) per state: those in `within` that the agent and nature, as far as they join, draw
        to `start` through open choices and `transitions` (None: all possible ones). Rank −1: never."""
