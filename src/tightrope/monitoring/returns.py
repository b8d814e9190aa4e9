"""Does a policy still perform as promised? A test on its returns alone, without any model.

Returns X₁, X₂, … of episodes under the policy lie in [0, 1] after scaling, and a promise says that their mean
is at least m. Betting against it, the capital

    K_n = Π (1 + λ_i·(m − X_i)),    0 ≤ λ_i ≤ c/(1 − m), known before X_i,

is a non-negative supermartingale as long as every mean given the past is at least m (Waudby-Smith and Ramdas
2024), so that it ever reaches 1/α with probability at most α. Bets follow the mean and the variance seen so
far; an upper promise on costs is the same for 1 − X.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray

BOLDNESS = 0.75
"""The largest part c of the capital that a bet may lose."""


class ReturnsWatch:
    """Watches whether returns agree with a promised bound on their mean.

    `least` says that the mean is promised to be at least `promised`, else at most; returns lie between `low`
    and `high`.

    >>> watch = ReturnsWatch(0.9, low=0.0, high=1.0, alpha=0.01)
    >>> for _ in range(8):
    ...     watch.add(0.0)
    >>> watch.alarm, watch.episodes, round(watch.mean, 3)
    (True, 8, 0.0)
    """

    def __init__(self, promised: float, *, low: float, high: float, alpha: float, least: bool = True):
        if not low < high or not math.isfinite(low) or not math.isfinite(high):
            raise InputError(
                f"returns between {low:g} and {high:g} cannot be watched",
                hint="say what they lie between; both ends are finite",
            )
        self.promised, self.low, self.high, self.alpha, self.least = promised, low, high, alpha, least
        scaled = (promised - low) / (high - low)
        self._bound = scaled if least else 1.0 - scaled
        self.episodes = 0
        self.log_capital = 0.0
        self.first_alarm: int | None = None
        self._sum = 0.0
        self._squares = 0.25
        self._mean = 0.5

    def state(self) -> FloatArray:
        """Everything that it has learned, as numbers; `restore` puts it back."""
        kept = (self.episodes, self.first_alarm or 0, self.log_capital, self._sum, self._squares, self._mean)
        return np.array(kept, dtype=np.float64)

    def restore(self, state: FloatArray) -> None:
        """Go on from what `state` said of a watch of the same promise."""
        episodes, alarm, self.log_capital, self._sum, self._squares, self._mean = map(float, state)
        self.episodes, self.first_alarm = int(episodes), int(alarm) or None

    @property
    def alarm(self) -> bool:
        return self.first_alarm is not None

    @property
    def mean(self) -> float:
        """The mean return so far."""
        return self._sum / self.episodes if self.episodes else math.nan

    def add(self, value: float) -> None:
        """The return of the next episode."""
        if not self.low <= value <= self.high:
            raise InputError(
                f"episode {self.episodes + 1} returned {value:g}, outside of {self.low:g} to {self.high:g}",
                hint="say what returns lie between; nothing can be promised about unbounded ones",
            )
        x = (value - self.low) / (self.high - self.low)
        x = x if self.least else 1.0 - x
        bet = self._bet()
        self.episodes += 1
        self._sum += value
        if self._bound > 0.0:
            self.log_capital += math.log1p(bet * (self._bound - x)) - 1e-15
        old = self._mean
        self._mean += (x - old) / (self.episodes + 1)
        self._squares += (x - old) * (x - self._mean)
        if self.first_alarm is None and self.log_capital >= math.log(1.0 / self.alpha):
            self.first_alarm = self.episodes

    def _bet(self) -> float:
        """About the growth-optimal bet for the mean and the variance so far; 0 while the promise is kept."""
        gap = self._bound - self._mean
        variance = self._squares / (self.episodes + 1)
        most = BOLDNESS / max(1.0 - self._bound, 1e-9)
        return min(max(gap / (variance + gap * gap), 0.0), most) if gap > 0.0 else 0.0
