"""Over-relaxation of sweeps under the choices kept: x ← x + ω·(GS(x) − x), ω ≥ 1.

With choices frozen a block is a linear system, and where Gauss–Seidel sweeps creep towards its solution,
going further in the same direction saves most of them (Young's successive over-relaxation). How far is found
by trying: ω is raised by steps as long as the change per sweep shrinks faster than before, and a step that
does not help is taken back, values and all. It decides how many sweeps a solve takes and nothing else: bounds
are verified as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LEAST_SWEEPS = 64
"""Sweeps asked for at once from which on relaxation is tried: fewer are asked for while choices change."""

PROBE = 16
"""Sweeps at the end of these over which the rate is measured."""

SLOW = 0.9
"""Rate above which sweeps are slow."""

STEP = 0.1
MOST = 1.9


@dataclass(eq=False)
class Relaxation:
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


def keep_values(take: Callable[[], Any], put: Callable[[Any], None]) -> Callable[[], None]:
    """Remember values; what is returned puts them back."""
    kept = take()
    return lambda: put(kept)
