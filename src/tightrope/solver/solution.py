"""Options, working state and results of a solve: verified bounds, a policy, and the data of a checker.

With Φ one backup, nature inside and the agent outside, a solution holds U with Φ(U) ≤ U, L with L ≤ Φ(L), and
a `ranking` that shows that plays stop where needed, all rounded safely (docs/proofs/values.md). Readings of
bounds and probabilities: `tightrope.solver.bellman.interval`. Several initial states have the range of their
values, certified at both ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np

from tightrope.model.objective import Direction, Objective
from tightrope.model.policy import Policy, policy_of
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.states import Table, action_column, to_pandas, with_nulls, with_states
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.numerics.text import interval_text
from tightrope.solver.bellman.factored import FactoredOperator
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.verdict import Assessment


class Status(Enum):
    """How a solve ended. The bounds are bounds in every case; only CERTIFIED ones are as close as was
    asked.

    >>> Status.CERTIFIED.value
    'certified: the bounds are verified and within the precision asked for'
    """

    CERTIFIED = "certified: the bounds are verified and within the precision asked for"
    ITERATION_LIMIT = (
        "the iteration limit was reached; the bounds are verified but wider. Try a coarser precision."
    )
    TIME_LIMIT = "the time limit was reached, so the verified bounds are wider. Try a larger limit."
    PRECISION_LIMIT = (
        "float64 carries the bounds no closer; they are verified but wider. Try a coarser precision."
    )


LARGEST_FACTORISATION = 40_000
"""Groups in a block beyond which sweeps are the only accelerator."""

PATIENCE = 1500
"""Most sweeps after which a block that can be factorised is."""

LITTLE_FILL = 8.0
"""Entries of the factors per entry of the equations up to which large blocks are factorised, too."""

TELLING = 2
"""How many times as large a block must be for its fill to show how fill grows."""


@dataclass(frozen=True, eq=False)
class SolveOptions:
    """Precision, limits of refinement (results are verified in any case), initial values (one per state),
    where to compute (`threads`, `device`), and the least probability assumed of possible transitions.

    For formulas: `translator` is a command that translates LTL to HOA, None the built-in one; `controller`:
    the policy of a temporal formula is wanted.
    """

    precision: float = 1e-6
    relative: bool = True
    iterations: int = 1_000_000
    seconds: float = math.inf
    start: FloatArray | None = None
    threads: int | None = None
    device: str = "cpu"
    assume_support: float | None = None
    translator: str | None = None
    controller: bool = False

    def within(self, precision: float) -> SolveOptions:
        return replace(self, precision=precision)


@dataclass
class Progress:
    """Iterations used, and what the blocks solved so far say about those to come.

    `largest` is the largest absolute value so far; it matters where values are signed. `fill` is the number
    of entries of the factors per entry of the equations, in the largest block factorised so far, which had
    `filled_groups` groups; `growth` the power of the size with which it has grown up to there.
    """

    most_iterations: int = SolveOptions.iterations
    deadline: float = math.inf
    """In seconds of `time.perf_counter`."""
    iterations: int = 0
    largest: float = 0.0
    fill: float = 0.0
    filled_groups: int = 0
    growth: float = 0.5
    precision: float = SolveOptions.precision
    """The relative one asked for; 0 where it is absolute."""

    @property
    def limit(self) -> Status | None:
        """The limit that has been reached, if any."""
        if self.iterations >= self.most_iterations:
            return Status.ITERATION_LIMIT
        return Status.TIME_LIMIT if time.perf_counter() > self.deadline else None

    @property
    def is_exhausted(self) -> bool:
        return self.limit is not None

    def fork(self) -> Progress:
        """A copy for a block that is solved beside others."""
        return replace(self)

    def join(self, begin: Progress, forks: Iterable[Progress]) -> None:
        """Add what blocks solved beside each other, all from `begin` on, have used and learned."""
        for fork in forks:
            self.iterations += fork.iterations - begin.iterations
            self.largest = max(self.largest, fork.largest)
            if fork.filled_groups:
                self.note_fill(fork.filled_groups, fork.fill)

    def note_fill(self, groups: int, fill: float) -> None:
        """A block of so many groups has been factorised, with `fill` entries of the factors per entry."""
        if self.filled_groups > 0 and groups >= TELLING * self.filled_groups:
            grown = math.log(fill / self.fill) / math.log(groups / self.filled_groups)
            self.growth = min(max(grown, 0.0), 0.5)
        if groups >= self.filled_groups:
            self.fill, self.filled_groups = fill, groups

    def _expect_fill(self, groups: int) -> float:
        """The fill expected of so many groups, which grows with size; infinite where nothing is known."""
        if self.filled_groups == 0:
            return float("inf")
        return self.fill * math.pow(max(1.0, groups / self.filled_groups), self.growth)

    @property
    def sweeps_per_factorisation(self) -> int:
        """How many sweeps one costs, roughly."""
        return int(4 * self.fill**2)

    def may_factorise(self, groups: int) -> bool:
        if groups <= LARGEST_FACTORISATION:
            return True
        return groups <= 10 * LARGEST_FACTORISATION and self._expect_fill(groups) <= LITTLE_FILL

    def patience_for(self, groups: int) -> int:
        """Sweeps after which a block is factorised: fewer where factors are known to be cheap."""
        most = min(PATIENCE, groups // 20 + 60)
        return int(min(most, 60 + 4 * self._expect_fill(groups) ** 2))


@dataclass(frozen=True, eq=False, repr=False)
class Fixpoint(Record):
    """Bounds of the equations' value, a policy that attains the agent's one, and the ranking that certifies
    the owners'; `steps` is the policy by step where it depends on it. `shortfall` says why bounds may be
    wider than asked."""

    lower: FloatArray
    upper: FloatArray
    policy: OffsetArray
    ranking: OffsetArray
    unit: float
    steps: TimeVaryingChoices | None = None
    shortfall: Status | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Record):
    """Verified bounds for every state, and the policy that attains the agent's bound.

    * `lower ≤ value ≤ upper`, after `objective.complement`; ∞ is a value.
    * `choice[s]` is the index of a choice of s (choice_start[s] ≤ choice[s] < choice_start[s+1]). With it a
      maximising agent attains at least `fixpoint_lower`, a minimising one at most `fixpoint_upper`, against
      nature. With a step bound it is the first decision, and `steps` (a choice per state and step) attains
      the bound. Under a fixed policy it repeats a deterministic one; where a randomised one mixes it is −1,
      and `weight` is that policy.
    * `policy` is all of this as a `Policy`.
    * `fixpoint_lower`, `fixpoint_upper`, `ranking`: see the module's docstring.
    * `gap` is the largest width among the states, relative or absolute as requested.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})], labels={"end": [1]})
    >>> solution = tr.solve(model, 'Pmin=? [ F "end" ]')
    >>> solution.lower.tolist(), solution.upper.tolist(), solution.is_certified
    ([1.0, 1.0], [1.0, 1.0], True)
    """

    objective: Objective
    lower: FloatArray
    upper: FloatArray
    choice: OffsetArray
    ranking: OffsetArray
    fixpoint_lower: FloatArray
    fixpoint_upper: FloatArray
    status: Status
    gap: float
    precision: float
    relative: bool
    iterations: int
    seconds: float = field(compare=False)
    kernel: BellmanOperator | FactoredOperator = field(repr=False)
    steps: TimeVaryingChoices | None = field(default=None, repr=False)
    unit: float = 0.0
    """What widths are measured against at least (`width`)."""
    weight: FloatArray | None = field(default=None, repr=False)
    game: Fixpoint | None = field(default=None, repr=False)
    """What was solved of independent factors, where no steps are counted: all states of the game that they
    make, the model's own and those in the middle of a step (`tightrope.model.mdp`)."""
    is_eliminated: bool = False
    """Bounds come from `tightrope.solver.elimination`: they are closer than the fixpoints, which are what
    certificates hold."""
    truth: str | None = None
    """Of a property with a threshold: 'true', 'false' or 'not certified' for all initial states."""

    @cached_property
    def policy(self) -> Policy:
        """The policy that attains the agent's bound; the given one where one was given."""
        structure = self.kernel.structure
        if self.weight is not None:
            return Policy(structure, self.weight).made(lambda: structure.made_from)
        return policy_of(structure, self.choice, self.steps).made(lambda: structure.made_from)

    @property
    def is_factored(self) -> bool:
        """Whether nature picked from what independent factors allow together, not from joint bounds."""
        return isinstance(self.kernel, FactoredOperator)

    @property
    def verdict(self) -> Assessment:
        """`proved`, or `limit` where the bounds of some state are verified but wider than was asked."""
        return Assessment.of(limit=None if self.status is Status.CERTIFIED else self.status.value)

    @property
    def is_certified(self) -> bool:
        """Whether the bounds of every state are as close as was asked: the verdict is `proved`."""
        return self.verdict.is_proved

    @property
    def initial_status(self) -> Status:
        """The status of the bounds of initial states alone: other states may be the ones that miss."""
        at = list(self.kernel.structure.initial_states)
        gap = float(width(self.lower[at], self.upper[at], self.relative, self.unit).max())
        return Status.CERTIFIED if gap <= self.precision else self.status

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the initial state, or over all of several."""
        return self.at_initial_states.lower, self.at_initial_states.upper

    @property
    def at_initial_states(self) -> InitialValues:
        """The bounds of the initial state, or of the least and the greatest value where there are several."""
        return InitialValues.of(self.kernel.structure, self.lower, self.upper)

    @property
    def is_initial_certified(self) -> bool:
        return self.initial_status is Status.CERTIFIED

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _title_(self) -> str:
        initial = self.at_initial_states
        where = "at the initial state" if initial.states == 1 else f"over {initial.states:,} initial states"
        return f"Solution: {interval_text(initial.lower, initial.upper)} {where}"

    def _facts_(self) -> Facts:
        objective, kind = self.objective, "relative" if self.relative else "absolute"
        players = f"the agent {objective.agent.value}, nature {objective.nature.value}"
        widths = f"none wider than {self.gap:.3g} ({kind}, {self.precision:g} asked)"
        return [
            ("asked", f"{objective.kind.value}; {players}"),
            ("verdict", self.verdict.word.value),
            *([] if self.is_certified else [("why", self.status.value)]),
            ("states", f"{len(self.lower):,}, {widths}"),
            ("policy", repr(self.policy).partition(": ")[2].partition("\n")[0]),
            ("effort", f"{self.iterations:,} iterations, {self.seconds:.3g} s"),
            *([("synchronised intervals", "factor by factor")] if self.is_factored else []),
        ]

    def to_arrow(self) -> Table:
        """Return a table with a row per state: bounds of its value, and the choice there.

        `action` and `choice` are the first decision of a policy that depends on the step, null if random.
        """
        structure = self.kernel.structure
        states, certain = np.arange(structure.states), self.choice >= 0
        chosen = np.maximum(self.choice, 0)
        columns = {
            "lower": self.lower,
            "upper": self.upper,
            "action": with_nulls(action_column(structure, chosen), certain),
            "choice": with_nulls(chosen - structure.choice_start[:-1], certain),
        }
        return with_states(structure, states, columns)

    def to_dataframe(self) -> Table:
        """Return `to_arrow` as a data frame."""
        return to_pandas(self.to_arrow())

    def witness(self) -> FloatArray:
        """Return nature's best answer: the distribution of every choice.

        Returns
        -------
        array of float
            Per transition. It certifies `fixpoint_upper` if nature minimises, else `fixpoint_lower`.
        """
        minimises = self.objective.nature is Direction.MIN
        values = self.fixpoint_upper if minimises else self.fixpoint_lower
        return self.kernel.answer(values.copy(), not minimises)


def widest(lower: FloatArray, upper: FloatArray, relative: bool, unit: float = 0.0) -> float:
    """The largest `width`, without an array of them where bounds are finite and not negative."""
    if unit > 0 or not lower.min(initial=0.0) >= 0 or not upper.max(initial=0.0) < np.inf:
        return float(width(lower, upper, relative, unit).max(initial=0.0))
    gap = upper - lower
    if relative:
        with np.errstate(invalid="ignore"):  # 0/0: both bounds are 0
            np.divide(gap, upper, out=gap)
    return float(np.fmax.reduce(gap, initial=0.0))


def width(lower: FloatArray, upper: FloatArray, relative: bool, unit: float = 0.0) -> FloatArray:
    """upper − lower, divided by the value where `relative`; 0 where both are the same (∞ included).

    Where values may cancel, `unit` > 0 is the size of what they are made of, and they are measured
    against the largest of it and them instead of each against itself."""
    same: BoolArray = lower == upper
    gap = np.subtract(upper, lower, out=np.zeros(len(lower)), where=~same)
    if relative:
        scale = np.maximum(np.abs(upper), np.abs(lower))
        if unit > 0:
            scale[np.isfinite(scale)] = scale[np.isfinite(scale)].max(initial=unit)
        np.divide(gap, scale, out=gap, where=~same & (scale > 0) & np.isfinite(scale))
    return gap


Span = tuple[float, float]

TRUE, FALSE, OPEN = "true", "false", "not certified"
"""The verdicts on a property that is true or false."""


@dataclass(frozen=True)
class InitialValues:
    """Bounds on the least and on the greatest value of the initial states; for one state they are equal."""

    states: int
    least: Span
    greatest: Span

    @classmethod
    def of(cls, structure: Structure, lower: FloatArray, upper: FloatArray) -> InitialValues:
        """From the bounds of all states."""
        at = list(structure.initial_states)
        low, high = lower[at], upper[at]
        least, greatest = (float(low.min()), float(high.min())), (float(low.max()), float(high.max()))
        return cls(len(at), least, greatest)

    @property
    def lower(self) -> float:
        """Below the values of all initial states."""
        return self.least[0]

    @property
    def upper(self) -> float:
        """Above the values of all initial states."""
        return self.greatest[1]


def verdict_of(structure: Structure, holds: BoolArray, fails: BoolArray) -> str:
    """'true' where a property holds in every initial state, 'false' where it fails in one of them."""
    at = list(structure.initial_states)
    return TRUE if holds[at].all() else FALSE if fails[at].any() else OPEN
