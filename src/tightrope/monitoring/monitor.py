"""`Monitor`: test whether the model fits, with a false-alarm probability that is time-uniform.

The e-process of `monitoring.e_process` raises an alarm at 1/α; the expected number of events to a false alarm
exceeds 1/α, too. The state has counts and some forty candidates for a change. Analyses come after numbers of
events fixed in advance: each weighs all evidence, renews estimates and begins a candidate. Glances in between
weigh candidates that may show a change.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import ORDER
from tightrope.data.steps import ObservationMap
from tightrope.errors import InputError, check_number, describe
from tightrope.io.results import Anomaly
from tightrope.model.authored import is_table
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.departures import held, log_sum, put_back
from tightrope.monitoring.e_process import FIRST_CHANGE, SHARES, EProcess
from tightrope.numerics.arrays import AnyArray, OffsetArray
from tightrope.verdict import Assessment, Assumed

DEFAULT_ALPHA = 0.001
_KEPT = ("seen", "total", "total_size", "point", "best", "log_chance", "estimated_at", "look_at", "begin_at")
_KINDS = ("signature", "choice")
MOST_PERIODS = 1_000_000
"""Of the model's own predictions, which change ever more rarely."""

_NOTHING: OffsetArray = np.empty(0, dtype=np.int64)

FLOOR = -2.0
"""Candidates for a change whose evidence stays below this (a logarithm) are not computed."""

NEARLY = 3.0
"""… unless they come so close to the level of a warning."""


class Monitor(EProcess):
    """Watch whether data fit a model; a false alarm ever occurs with probability at most `alpha`.

    >>> import tightrope as tr
    >>> monitor = tr.Monitor(tr.load("bench:betting(5)"), alpha=0.01)
    >>> monitor.events, monitor.alarm
    (0, False)
    """

    def __init__(self, model: object, *, alpha: float = DEFAULT_ALPHA):
        result = getattr(model, "model", model)
        if not isinstance(result, ParametricMDP):
            raise InputError("a monitor watches a model with parameters", hint="tr.load reads one")
        check_number("alpha", alpha, 0, 1)
        super().__init__(result)
        self.alpha = float(alpha)
        self.first_alarm: int | None = None
        self.first_warning: int | None = None
        self.impossible: tuple[int, str] | None = None
        """The first event that the model excludes: no parameters give it a positive probability."""
        self.largest = 0.0
        self.estimated_at = 0
        self.look_at = next_look(0)
        self.begin_at = self.look_at
        self._waiting: list[OffsetArray] = []
        self._reader: ObservationMap | None = None
        self.order = Assumed.derived(ORDER, "events are weighed in the order in which they come")

    @property
    def evidence(self) -> float:
        """The e-value now: how many times better the data are explained by departures than by the model."""
        return math.inf if self.log_evidence > 700.0 else math.exp(self.log_evidence)

    @property
    def log_evidence(self) -> float:
        """Its natural logarithm; −∞ is no evidence, ∞ an event that the model excludes."""
        if self.impossible is not None:
            return math.inf
        return self._up_to_now()._weigh()[0] if self.events else 0.0

    @property
    def alarm(self) -> bool:
        """Whether the evidence has reached 1/α."""
        return self.first_alarm is not None

    @property
    def verdict(self) -> Assessment:
        """What the watch has come to: `contradicted` where there is an alarm, `limit` where nothing was seen.

        `proved` says that the test is valid and has found no evidence; it does not say that the model fits.
        """
        return self.assess([self.order])

    def assess(self, assumptions: Iterable[Assumed]) -> Assessment:
        """The verdict under these assumptions: an alarm refutes the model if they are satisfied, and an
        event that the model excludes always does."""
        known = tuple(assumptions)
        if self.alarm and (self.impossible is not None or all(one.holds for one in known)):
            when = f"the data contradict the model, by event {self.first_alarm:,}"
            return Assessment.of(known, contradicted=when)
        if not self.events:
            return Assessment.of(known, limit="no events were read, so nothing was tested")
        return Assessment.of(known)

    @property
    def warning(self) -> bool:
        """Whether there is an early warning of a change, with a rate of false warnings instead of a level.

        If the model is right, it comes within the first t interim analyses with probability at most α·t.
        """
        return self.first_warning is not None

    def update(self, data: object) -> Monitor:
        """Process data in the order of time.

        Parameters
        ----------
        data : object
            What `learn` takes; an episode is a list of (state, action, next state). If the order of a log is
            in doubt, the verdict says so.

        Returns
        -------
        Monitor
            The same monitor.

        Raises
        ------
        InputError
            If counts no longer contain the order of their rows.
        """
        counts = data if isinstance(data, Counts) else getattr(data, "counts", None)
        places = data if isinstance(data, list | tuple) and data else (data,)
        if all(isinstance(one, str | Path) or is_table(one) for one in places):
            from tightrope.data.reading import read_data

            counts = read_data(data, self.model).counts
        if isinstance(counts, Counts):
            self._update_by_log(counts)
            return self
        if isinstance(data, Mapping) or not isinstance(data, Iterable):
            raise InputError(
                f"`data` is {describe(data)}, neither episodes nor a log",
                hint="an episode is a list of steps (state, action, next state)",
            )
        self._reader = self._reader or ObservationMap(self.model.structure)
        for number, episode in enumerate(data):
            self.observe(self._reader.transitions(episode, f"episode {number}"))
        return self

    def _update_by_log(self, counts: Counts) -> None:
        """Take in the rows that were counted."""
        if counts.model_hash != self.model.hash():
            raise InputError("`data` were counted for another model than the one that is watched")
        if counts.log is None:
            raise InputError(
                "`data` are counts, which do not record the order of events",
                hint="give the log itself, one row per step",
            )
        log = counts.log()
        if log.rows_left_out:
            raise InputError(
                f"the log exceeds the largest part by {log.rows_left_out:,} rows", hint="give it in parts"
            )
        done = 0
        for excluded in log.excluded:
            self.observe(log.transition[done : excluded.row])
            self.exclude(excluded.text)
            done = excluded.row
        self.observe(log.transition[done:])
        if not counts.design.order.holds:
            self.order = counts.design.order

    def observe(self, transition: OffsetArray) -> None:
        """Process transitions in the order of time; `transition` has their indices in the model."""
        if len(transition) and not 0 <= np.min(transition) <= np.max(transition) < self.model.transitions:
            raise InputError(f"transitions of this model are 0..{self.model.transitions - 1}")
        position = 0
        while position < len(transition):
            end = min(len(transition), position + self.look_at - self.events)
            self._waiting.append(np.array(transition[position:end], dtype=np.int64))
            self.events += end - position
            position = end
            if self.events == self.look_at:
                self._take_waiting()
                if self.events >= self.begin_at:
                    self._look()
                else:
                    self._glance()

    def look(self) -> bool:
        """Make an additional interim analysis now. Return whether there is an alarm."""
        if self.events and self.impossible is None:
            self._judge(*self._up_to_now()._weigh())
        return self.alarm

    @property
    def _level(self) -> float:
        return math.log(1.0 / self.alpha)

    def _judge(self, log_evidence: float, detected: float) -> None:
        """Take notice of the evidence, and of what the detector of changes says."""
        self.largest = max(self.largest, log_evidence)
        if log_evidence >= self._level and self.first_alarm is None:
            self.first_alarm = self.events
        if detected >= self._level and self.first_warning is None:
            self.first_warning = self.events

    def exclude(self, text: str) -> None:
        """Process an event that the model excludes; `text` describes it and its place in the log."""
        self.events += 1
        if self.impossible is None:
            self.impossible = self.events, text
        self.first_alarm = self.first_alarm or self.events
        self.largest = math.inf
        self.look_at = max(self.look_at, self.events + 1)
        self.begin_at = max(self.begin_at, self.look_at)

    def explain(self, most: int = 5) -> list[Anomaly]:
        """Return at most `most` anomalies, strongest evidence first, even if the model fits.

        >>> import tightrope as tr
        >>> tr.Monitor(tr.load("bench:betting(5)")).explain()
        []
        """
        if self.events == 0:
            return []
        anomalies: list[Anomaly] = []
        if self.impossible is not None:
            anomalies.append(Anomaly("excluded", self.impossible[1], math.inf, since=None))
        now = self._up_to_now()
        if now.seen.any():
            anomalies += now.worst(most)
        return anomalies[:most]

    def _up_to_now(self) -> Monitor:
        """This monitor, or a copy that has taken in what waits for the next look."""
        if not self._waiting:
            return self
        copied = copy.copy(self)
        copied._take_waiting()
        return copied

    def parameters(self) -> dict[str, float]:
        """Return the parameters that fit the data best."""
        values = self.fit.coordinates.parameters_at(self.fitted_point()[None, :])[0]
        return dict(zip(self.model.parameters.names, map(float, values), strict=True))

    def _take_waiting(self) -> None:
        """Count what came since the last look, all at once, so that portions do not matter."""
        self.count(*_count(np.concatenate([_NOTHING, *self._waiting]), self.model.transitions))
        self._waiting.clear()

    def _look(self) -> None:
        """Judge the evidence (until an alarm), renew predictions, and begin a candidate for a change."""
        if not self.alarm and self._may_matter():
            self._judge(*self._weigh())
        if self.events >= 1.1 * self.estimated_at:
            self.renew_prediction()
            self.estimated_at = self.events
        self.begin_at = next_look(self.events)
        self.look_at = next_glance(self.events, self.begin_at)
        self.begin_change()

    def _glance(self) -> None:
        """Judge the evidence if a change seems to be about to be found."""
        if not self.alarm:
            evidence, detected = self.drift.promise(self.log_chance)
            is_warned = self.first_warning is not None
            if max(evidence, -math.inf if is_warned else detected) > self._level - NEARLY:
                self._judge(*self._weigh())
        self.look_at = next_glance(self.events, self.begin_at)

    def _may_matter(self) -> bool:
        """Whether the evidence can be worth computing; not looking is always allowed."""
        surplus = self.total - float(self.seen @ self.log_chance)
        for evidence in self.departures.values():
            if surplus + log_sum(evidence.gains()) + evidence.log_weight(1.0) > FLOOR:
                return True
        weighed, detected = self.drift.promise(self.log_chance)
        return weighed > FLOOR or (self.first_warning is None and detected > self._level - NEARLY)

    def _weigh(self) -> tuple[float, float]:
        """log E_n and the detector's log R_n, on the safe side."""
        terms = self.terms().values()
        drift, detected = self.drift.weigh(self.log_chance, self.best)
        return log_sum(np.concatenate([*terms, [drift + math.log(SHARES["drift"])]])), detected

    def state(self) -> dict[str, AnyArray]:
        """Return what the monitor has learned, as arrays and numbers for `restore`."""
        message = [] if self.impossible is None else [*map(str, self.impossible)]
        parts: dict[str, AnyArray] = {}
        for kind, evidence in zip(_KINDS, self.departures.values(), strict=True):
            parts |= held(evidence, evidence.KEPT, f"{kind}_")
        return {
            **held(self, (*_KEPT, "largest")),
            "progress": np.array(
                [self.events, self.first_alarm or 0, self.first_warning or 0], dtype=np.int64
            ),
            "waiting": np.concatenate([_NOTHING, *self._waiting]),
            "impossible": np.array(message),
            **parts,
            **self.drift.state(),
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from the `state` of a monitor of the same model; any other raises a ValueError."""
        self._require_fit(state)
        put_back(self, (*_KEPT, "largest"), state)
        self.events, alarm, warning = (int(number) for number in state["progress"])
        self.first_alarm, self.first_warning = alarm or None, warning or None
        self._waiting = [np.array(state["waiting"], dtype=np.int64)] if len(state["waiting"]) else []
        message = [str(text) for text in state["impossible"]]
        self.impossible = (int(message[0]), message[1]) if message else None
        for kind, evidence in zip(_KINDS, self.departures.values(), strict=True):
            evidence.restore(state, f"{kind}_")
        self.drift.restore(state)

    def _require_fit(self, state: Mapping[str, AnyArray]) -> None:
        """Arrays have the shapes of this model's, and whatever points somewhere points into them."""
        mine, slots = self.state(), np.shape(state["drift_number"])[:1]
        for name, own in mine.items():
            given, shape = np.asarray(state[name]), np.shape(own)
            if name.startswith("drift_") and name not in ("drift_total", "drift_order"):
                shape = (*slots, *shape[1:])
            elif name in ("waiting", "impossible", "drift_order", "past_seen", "past_roots"):
                shape = (*given.shape[:1], *shape[1:])
            kind = "U" if name == "impossible" and given.size else np.asarray(own).dtype.kind
            if given.shape != shape or (given.size and given.dtype.kind != kind):
                raise ValueError(f"'{name}' has another shape")
            if given.dtype.kind == "f" and np.isnan(given).any():
                raise ValueError(f"'{name}' has an entry that is not a number")
        closed, order = int(state["past_closed"]), np.asarray(state["drift_order"])[1:]
        within = (
            (state["waiting"], self.model.structure.transitions),
            (order, slots[0]),
            (state["drift_closed"], closed + 1),
            ([closed], MOST_PERIODS),
        )
        if (
            any(np.any((np.asarray(part) < 0) | (np.asarray(part) >= most)) for part, most in within)
            or len(np.unique(order)) != len(order)
            or len(state["past_seen"]) != len(state["past_roots"]) > closed
        ):
            raise ValueError("a number points to what is not there")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Monitor):
            return NotImplemented
        mine, theirs = self.state(), other.state()
        same = self.alpha == other.alpha and self.model.hash() == other.model.hash()
        return same and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __repr__(self) -> str:
        result = f"alarm at event {self.first_alarm}" if self.alarm else "no alarm"
        return f"Monitor({self.events} events, alpha={self.alpha:g}, {result})"

    def __getstate__(self) -> tuple[ParametricMDP, float, dict[str, AnyArray]]:
        return self.model, self.alpha, self.state()

    def __setstate__(self, retained: tuple[ParametricMDP, float, dict[str, AnyArray]]) -> None:
        model, alpha, state = retained
        Monitor.__init__(self, model, alpha=alpha)
        self.restore(state)


def _count(transition: OffsetArray, transitions: int) -> tuple[OffsetArray, OffsetArray]:
    """Which transitions there are, and how often each."""
    if 16 * len(transition) < transitions:
        return np.unique(transition, return_counts=True)
    counts = np.bincount(transition, minlength=transitions)
    index = np.flatnonzero(counts)
    return index, counts[index]


def next_look(events: int) -> int:
    """Return the number of events at the next analysis.

    >>> [next_look(n) for n in (0, 3, 40, 1000, 10**6, 10**8)]
    [4, 7, 50, 1064, 1003906, 100065536]
    """
    if events < 256:
        return events + max(4, events // 4)
    return events + min(max(events // 256, 64), 65536)


GLANCES = 4
"""Where looks are far apart the evidence for a change is glanced at in between: so many steps to a look."""


def next_glance(events: int, look_at: int) -> int:
    """Return the number of events at the next analysis or glance.

    >>> [next_glance(n, next_look(n)) for n in (40, 1000, 10**6)], next_glance(1_000_976, 1_003_906)
    ([50, 1064, 1000976], 1001953)
    """
    gap = (next_look(events) - events) // GLANCES
    return min(events + gap, look_at) if gap >= FIRST_CHANGE else look_at
