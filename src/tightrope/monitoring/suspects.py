"""What the data contradict most: departures in the order of their evidence, in words and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.monitoring.departures import PartEvidence
from tightrope.monitoring.drift import DriftEvidence
from tightrope.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from tightrope.monitoring.monitor import Monitor


@dataclass(frozen=True)
class Seen:
    """One outcome of a choice: how often it was seen, beside what the best fit expects."""

    outcome: str
    count: int
    observed: float
    expected: float


@dataclass(frozen=True)
class Suspect:
    """One departure.

    `kind` is 'expression' (all choices with one distribution), 'tie' (one choice among several that are said
    to be equal), 'drift' (parameters changed) or 'excluded' (the model gives the event probability 0).
    `log_e_value` is the natural logarithm of its own evidence, before it is weighed against the others.

    >>> Suspect("tie", "choice 'a' of state 0", 3.5).kind
    'tie'
    """

    kind: str
    text: str
    log_e_value: float
    outcomes: tuple[Seen, ...] = ()
    since: int | None = None
    moved: tuple[tuple[str, float, float, float], ...] = ()

    @property
    def words(self) -> str:
        """What departs, with the frequencies seen beside those expected, or the parameters that moved."""
        shown = [
            f"{name}: {before:.4g} → {after:.4g} ({errors:+.1f} standard errors)"
            for name, before, after, errors in self.moved[:3]
        ] or [
            f"{seen.outcome}: {seen.count:,} times, {seen.observed:.4f} against {seen.expected:.4f}"
            for seen in self.outcomes[:4]
        ]
        return f"{self.text}: {'; '.join(shown)}" if shown else self.text

    def to_json(self) -> dict[str, Any]:
        """Plain data; infinite evidence is None."""
        log_e = self.log_e_value if math.isfinite(self.log_e_value) else None
        found: dict[str, Any] = {"kind": self.kind, "text": self.text, "log_e_value": log_e}
        if self.outcomes:
            found["outcomes"] = [vars(seen) for seen in self.outcomes]
        if self.since is not None:
            found["since"] = self.since
            names = ("parameter", "before", "after", "standard_errors")
            found["moved"] = [dict(zip(names, row, strict=True)) for row in self.moved]
        return found


def part_suspects(
    monitor: Monitor, kind: str, evidence: PartEvidence, log_e: FloatArray, most: int
) -> list[Suspect]:
    """The parts with the most evidence against them."""
    fitted = monitor.fit_probabilities()
    parts = evidence.parts
    structure = monitor.model.structure
    names = monitor.model.parameters.names
    found = []
    for part in np.argsort(-log_e, kind="stable")[:most].tolist():
        rows = np.flatnonzero(parts.part == part)
        total = float(evidence.seen[rows].sum())
        if total == 0.0:
            continue
        outcomes = []
        for row in rows.tolist():
            times = int(parts.multiplicity[row])
            polynomial = monitor.model.expressions.function(int(parts.expression[row])).text(names)
            text = polynomial if times == 1 else f"{times}·({polynomial})"
            if kind == "tie":
                text = f"{_successor(monitor, evidence, row)} ({polynomial})"
            expected = times * float(fitted[parts.expression[row]])
            seen = float(evidence.seen[row])
            outcomes.append(Seen(text, int(seen), seen / total, expected))
        choice = structure.choice_name(int(parts.choice[part]))
        what = f"as in {choice}" if kind == "expression" else choice
        found.append(Suspect(kind, what, float(log_e[part]), tuple(outcomes)))
    return found


def _successor(monitor: Monitor, evidence: PartEvidence, row: int) -> str:
    """Where the outcome of a single choice leads."""
    transition = int(np.flatnonzero(evidence.parts.outcome == row)[0])
    structure = monitor.model.structure
    return f"to {structure.state_name(int(structure.successor[transition]))}"


def drift_suspect(monitor: Monitor, drift: DriftEvidence, slot: int, log_e: float) -> Suspect:
    """When the parameters changed, and which of them by how many standard errors."""
    fit = monitor.best_fit
    past = drift.past[slot]
    seen = drift.total - past
    before = fit.maximiser.estimate(past * fit.informative)
    after = fit.maximiser.estimate(seen * fit.informative, before)
    spread = _covariance(monitor, past, before) + _covariance(monitor, seen, after)
    names = monitor.model.parameters.names
    rows = []
    for place, index in enumerate(fit.coordinates.free):
        moved = float(after[place] - before[place])
        rows.append(
            (names[index], float(before[place]), float(after[place]), moved / math.sqrt(spread[place, place]))
        )
    rows.sort(key=lambda row: -abs(row[3]))
    since = int(drift.event[slot])
    alone = drift.moved_alone(slot)
    text = f"the parameters since event {since + 1:,} are not those before"
    if alone is not None:
        name = names[fit.coordinates.free[alone]]
        text = f"parameter {name} since event {since + 1:,} is not what it was before"
    return Suspect("drift", text, log_e, (), since, tuple(rows))


def _covariance(monitor: Monitor, seen: FloatArray, point: FloatArray) -> FloatArray:
    """The inverse of the information about the free parameters, with a little added where there is none."""
    fit = monitor.best_fit
    used = np.flatnonzero(seen * fit.informative > 0.0)
    x = fit.maximiser.lifted(point)
    chance = fit.functions.linear[used] @ x + fit.functions.constant[used]
    slope = fit.functions.linear[used][:, : len(point)] * (np.sqrt(seen[used]) / chance)[:, None]
    width = fit.coordinates.upper[: len(point)] - fit.coordinates.lower[: len(point)]
    information = slope.T @ slope + np.diag(1.0 / np.maximum(width, 1e-12) ** 2)
    return np.linalg.inv(information).astype(np.float64, copy=False)
