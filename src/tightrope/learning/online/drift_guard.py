"""Response of an online learner to a changing environment: a monitor and the consequences of its alarm.

The monitor sees every counted event in order; under a constant right model it ever alarms with probability at
most α. `warn` reports it, `stop` ends the run. `restart` discards everything before the alarm: its time is
determined by earlier events, so guarantees since then hold with probability at least 1 − δ each (1 − K·δ for
the first K), and the expected number that fails is at most δ times their number. Nothing is guaranteed
between change and alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec
import numpy as np

from tightrope.errors import choose
from tightrope.io.coding import Real, record_of
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.monitor import DEFAULT_ALPHA, Monitor
from tightrope.numerics.arrays import AnyArray, OffsetArray

STOPPED = "stopped: the data contradict the model"
"""The status of the last update of a run that an alarm ended."""

MEANINGS = {
    "warn": "the run goes on, and so do its guarantees, which are worth no more than the model",
    "stop": "the run stops here",
    "restart": "the run begins anew with the episodes that follow; what came before is forgotten",
}


class Answer(Enum):
    """What follows an alarm."""

    WARN = "warn"
    STOP = "stop"
    RESTART = "restart"


@dataclass(frozen=True)
class OnDrift:
    """What an online learner does when the data contradict the model: "warn", "stop" or "restart".

    A monitor runs along, which ever raises a false alarm with probability at most `alpha`.

    >>> import tightrope as tr
    >>> learner = tr.online(tr.benchmark("betting(5)").problem, on_drift=OnDrift("restart", alpha=0.01))
    >>> learner.guard.monitor.alpha
    0.01
    """

    answer: Answer
    alpha: float = DEFAULT_ALPHA

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", choose("on_drift", Answer, self.answer))


class DriftFacts(msgspec.Struct, kw_only=True, frozen=True):
    """What the monitor beside an online run says (`--on-drift`).

    `log_e_value` is the largest so far, a natural logarithm; `first_alarm` the event of the alarm, of the
    `events` seen since the last of the `restarts`; `since` are the episodes that were forgotten there.
    """

    alarm: bool
    first_alarm: int | None
    log_e_value: Real
    alpha: float
    events: int
    restarts: int
    since: int


class DriftGuard:
    """A monitor beside a learner, and what is done at its alarm; `restarts` counts those that were made."""

    def __init__(self, model: ParametricMDP, on_drift: OnDrift | str):
        on_drift = (
            on_drift if isinstance(on_drift, OnDrift) else OnDrift(choose("on_drift", Answer, on_drift))
        )
        self.mode = on_drift.answer
        self.monitor = Monitor(model, alpha=on_drift.alpha)
        self.restarts = 0
        self.is_answered = False

    def observe(self, transitions: OffsetArray) -> None:
        """Take in events in their order."""
        self.monitor.observe(transitions)

    def answer(self) -> Answer | None:
        """What is to be done now: once for every alarm."""
        if self.is_answered or not self.monitor.alarm:
            return None
        self.is_answered = True
        return self.mode

    @property
    def text(self) -> str:
        """The alarm in words."""
        suspects = self.monitor.explain(1)
        worst = f": {suspects[0].words}" if suspects else ""
        alarm = self.monitor.first_alarm or self.monitor.events
        words = f"the data contradict the model since event {alarm:,} at the latest{worst}"
        return f"{words}\n{MEANINGS[self.mode.value]}"

    def begin_anew(self) -> None:
        """Forget everything that was seen."""
        self.monitor = Monitor(self.monitor.model, alpha=self.monitor.alpha)
        self.restarts += 1
        self.is_answered = False

    def record(self, since: int) -> DriftFacts:
        """What a record of the run says; `since` are the episodes that were forgotten."""
        return record_of(DriftFacts, self.monitor, self, log_e_value=self.monitor.largest, since=since)

    def state(self) -> dict[str, AnyArray]:
        """Everything, as arrays."""
        arrays = {f"monitor_{name}": np.asarray(value) for name, value in self.monitor.state().items()}
        return {**arrays, "answered": np.array([self.restarts, int(self.is_answered)])}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Restore the guard from a `state`."""
        prefix = "monitor_"
        own = {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}
        self.monitor.restore(own)
        self.restarts, answered = state["answered"].tolist()
        self.is_answered = bool(answered)


def next_portion(episodes: int) -> int:
    """Where a run looks for alarms again: after a sixteenth more, at numbers that do not depend on the past.

    >>> [next_portion(n) for n in (0, 5, 31, 32, 1000, 1024)]
    [1, 6, 32, 34, 1024, 1088]
    """
    step = max(1, (1 << max(episodes, 1).bit_length() - 1) // 16)
    return (episodes // step + 1) * step
