"""The collecting policy of an online run, its stopping rule, and what follows an alarm.

`designed` collects with the mixture of policies that shrinks the gap most (`tightrope.design`), `optimistic`
with the best policy if nature helps, `robust` with the best guarantee, `uniform` with all choices alike.
Time-uniform regions hold under each, and at any stopping time; those for fixed designs do not.

*A baseline.* A policy collects only if it loses at most the allowed loss over an update's region, at one
parameter vector (`tightrope.coupled.difference`), so all collecting policies are safe with the run's
confidence. Tried in order: the exploring policy, mixtures with the largest certified gain, that one, an
earlier one, the baseline.

*Drift.* The monitor sees every counted event in order; under a constant right model it ever alarms with
probability at most α. `warn` reports it, `stop` ends the run. `restart` discards everything before the alarm:
its time is determined by earlier events, so guarantees since then hold with probability at least 1 − δ each
(1 − K·δ for the first K), and the expected number that fails is at most δ times their number. Nothing is
guaranteed between change and alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import msgspec
import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind, rectangular
from tightrope.data.columns import StateForm
from tightrope.data.counts import Counts
from tightrope.errors import InputError, choose
from tightrope.io.coding import Real, record_of
from tightrope.io.results import Interval
from tightrope.learning.differences import LOGGED, Differences, baseline_policy
from tightrope.learning.options import Decisions
from tightrope.learning.pipeline import Pipeline, Prepared
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.monitoring.monitor import DEFAULT_ALPHA, Monitor
from tightrope.numerics.arrays import AnyArray, OffsetArray
from tightrope.problem import Problem
from tightrope.regions.polytope import Polytope

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


# --- who collects --------------------------------------------------------------------------


class Exploration(Enum):
    """The ways to explore.

    >>> Exploration("robust").value
    'robust'
    """

    DESIGNED = "designed"
    OPTIMISTIC = "optimistic"
    ROBUST = "robust"
    UNIFORM = "uniform"


class StagePolicy(Protocol):
    """What a stage of designed exploration executes."""

    @property
    def policy(self) -> Policy: ...


class StageDesigner(Protocol):
    """Designs the next stage from the data so far, the last policies and the sets of the present region."""

    def design(
        self, counts: Counts, robust: Policy, optimistic: Policy, sets: Callable[[], Sets]
    ) -> StagePolicy: ...


class Explorer(Protocol):
    """Who collects; `designer` is None where the policies of updates do (`tightrope.design.exploration`)."""

    @property
    def kind(self) -> Exploration: ...

    def designer(self, problem: Problem, delta: float, coupled: bool) -> StageDesigner | None: ...


@dataclass(frozen=True)
class Collecting:
    """How an online learner collects data, as `tightrope.online` takes it."""

    states: StateForm | str | None = None
    planned_episodes: int | None = None
    explore: Explorer | Exploration | str | None = None
    until_gap: float | str | None = None
    data: Counts | None = None
    on_drift: OnDrift | str | None = None
    baseline: PolicyGiven | str | None = None
    allow_loss: float = 0.0


@dataclass(frozen=True)
class GapTarget:
    """A gap to reach: `size` itself, or that share of the end of the interval nearer to 0.

    >>> [GapTarget.of(gap).is_reached(Interval(0.95, 0.99)) for gap in ("5%", 0.03)]
    [True, False]
    """

    size: float
    relative: bool = False

    @staticmethod
    def of(given: float | str | GapTarget) -> GapTarget:
        """From a number, or a text such as "0.05" or "5%"."""
        if isinstance(given, GapTarget):
            return given
        text = str(given).strip()
        relative = text.endswith("%")
        try:
            size = float(text.removesuffix("%"))
        except ValueError:
            size = math.nan
        if isinstance(given, bool) or not (math.isfinite(size) and size > 0.0):
            raise InputError(
                f"the gap to reach is {given!r}, not a positive number or percentage",
                hint='0.05 is a width, "5%" is relative to the value',
            )
        return GapTarget(size / 100 if relative else size, relative)

    @property
    def text(self) -> str:
        return f"{100 * self.size:.10g}%" if self.relative else f"{self.size:.10g}"

    def is_reached(self, interval: Interval) -> bool:
        """Whether the interval is narrow enough."""
        gap = interval.upper - interval.lower
        if not math.isfinite(gap):
            return False
        if not self.relative:
            return gap <= self.size
        inside = interval.lower <= 0.0 <= interval.upper
        nearest = 0.0 if inside else min(abs(interval.lower), abs(interval.upper))
        return gap <= self.size * nearest


def default_exploration(until_gap: float | str | GapTarget | None) -> Exploration:
    """Where nobody says: what narrows a gap fastest where one is waited for, else what the paper does."""
    return Exploration.OPTIMISTIC if until_gap is None else Exploration.DESIGNED


SHARES = (0.5, 0.25, 0.1)
"""Of what wants to explore, in mixtures."""


@dataclass(frozen=True, eq=False)
class Floor:
    """A baseline that no policy which collects is worse than, but for the loss that is allowed."""

    name: str
    policy: Policy
    loss: float

    @staticmethod
    def of(problem: Problem, given: PolicyGiven | str, loss: float, decisions: Decisions) -> Floor:
        """From what `online` takes."""
        if isinstance(given, str) and given == LOGGED:
            raise InputError(
                "the behaviour policy of a log is unknown, so it cannot be followed",
                hint="give the baseline as a policy",
            )
        if isinstance(loss, bool) or not (math.isfinite(loss) and loss >= 0.0):
            raise InputError(f"`allow_loss` is {loss!r}, not a number from 0 on")
        if problem.lift is not None:
            raise InputError(
                "a baseline cannot be used with temporal formulas while learning: the exploration policy "
                "has a memory",
                hint="collect with the baseline, and `improve` on its log",
            )
        if decisions.region is None or not decisions.region.has_facets:
            what = (
                f"the region {decisions.region.value}" if decisions.region else f"{decisions.sets.value} sets"
            )
            raise InputError(
                f"a baseline needs a region bounded by half-spaces, and {what} have none",
                hint="--sets expression, rectangular or coupled, with the region polytope or likelihood",
            )
        model = problem.model
        assert isinstance(model, ParametricMDP)
        name, policy = baseline_policy(model, given)
        if policy.has_memory or policy.depends_on_step:
            raise InputError(
                "a baseline for online learning must depend on the state alone",
                hint="give one without a memory and without steps",
            )
        return Floor(name, policy, float(loss))

    def guarded(
        self,
        chain: Pipeline,
        prepared: Prepared,
        wanted: Policy,
        others: tuple[Policy, ...],
        before: tuple[Policy, Interval] | None,
    ) -> tuple[Policy, Interval]:
        """The policy to collect with, and its certified difference to the baseline."""
        best = (self.policy, Interval(0.0, 0.0))
        if prepared.contradiction is not None or not isinstance(prepared.region, Polytope):
            return best
        if prepared.sets.kind is not SetsKind.RECTANGULAR:
            prepared = replace(prepared, sets=rectangular(prepared.region, chain.model))
        table = Differences(chain, prepared, self.name, self.policy)
        aim = table.promise()
        others = others if aim is None else (*others, aim[0])
        table.cut((wanted, *others))

        def certified(policy: Policy) -> tuple[Policy, Interval]:
            row = table.difference("what explores", policy, wanted=(table.maximises, not table.maximises))
            return policy, row.interval

        def gain(one: tuple[Policy, Interval]) -> float:
            return one[1].lower if table.maximises else -one[1].upper

        row = certified(wanted)
        if gain(row) >= -self.loss:
            return row
        best = max([best, *([] if before is None else [before]), *map(certified, others)], key=gain)
        for share in SHARES if gain(best) + self.loss > 0.0 else ():
            own = share * wanted.probability + (1.0 - share) * best[0].probability
            row = certified(Policy(chain.model.structure, own))
            if gain(row) >= -self.loss:
                return row
        return best
