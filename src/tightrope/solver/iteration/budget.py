"""How to solve (`SolveOptions`), and what a solve has used and learned on the way (`Progress`).

How it ended is a result and travels with the bounds (`tightrope.solver.iteration.fixpoint.Fixpoint`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tightrope.numerics.arrays import FloatArray
from tightrope.solver.bellman.fixed_choices import LARGEST_FACTORISATION
from tightrope.solver.solution import Status

PATIENCE = 1500
"""Most sweeps after which a block that can be factorised is."""

LITTLE_FILL = 8.0
"""Entries of the factors per entry of the equations up to which large blocks are factorised, too."""

TELLING = 2
"""How many times as large a block must be for its fill to show how fill grows."""


@dataclass(frozen=True, eq=False)
class SolveOptions:
    """How close bounds are to come, when to give up refining (what is returned then is still verified), and
    values to start from, one per state, where some were given; where it is computed (`threads`, `device`),
    and which least probability is assumed of what can happen.

    For formulas: `translator` is a command that translates LTL to HOA, None ours; `controller` says that the
    policy of a temporal formula is wanted.
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
        """What the largest block factorised so far says of one of so many groups: fill grows with size, on a
        grid at most with its square root. Infinite where nothing is known.
        """
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
        """Sweeps after which a block is factorised: fewer where factors are known to be cheap. One with fill
        f costs about 2f² sweeps.
        """
        most = min(PATIENCE, groups // 20 + 60)
        return int(min(most, 60 + 4 * self._expect_fill(groups) ** 2))
