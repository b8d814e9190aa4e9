"""`Anomaly`: one way in which data depart from a model, in words and numbers, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.monitoring.best_fit import BestFit
from tightrope.numerics.arrays import FloatArray


@dataclass(frozen=True)
class Seen:
    """One outcome of a choice: how often it was seen, beside what the best fit expects."""

    outcome: str
    count: int
    observed: float
    expected: float


@dataclass(frozen=True)
class Anomaly:
    """One departure.

    `kind` is 'expression' (all choices with one distribution), 'tie' (one choice among several that are said
    to be equal), 'drift' (parameters changed) or 'excluded' (the model gives the event probability 0).
    `log_e_value` is the natural logarithm of its own evidence, before it is weighed against the others.

    >>> Anomaly("tie", "choice 'a' of state 0", 3.5).kind
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
        result: dict[str, Any] = {"kind": self.kind, "text": self.text, "log_e_value": log_e}
        if self.outcomes:
            result["outcomes"] = [vars(seen) for seen in self.outcomes]
        if self.since is not None:
            result["since"] = self.since
            names = ("parameter", "before", "after", "standard_errors")
            result["moved"] = [dict(zip(names, row, strict=True)) for row in self.moved]
        return result


def moved_parameters(
    fit: BestFit, names: Sequence[str], past: FloatArray, since: FloatArray
) -> tuple[tuple[str, float, float, float], ...]:
    """Each free parameter before and after a change, and by how many standard errors it moved, most first.

    `past` and `since` are the events before and after the change, by expression.
    """
    before = fit.maximiser.estimate(past * fit.informative)
    after = fit.maximiser.estimate(since * fit.informative, before)
    spread = _covariance(fit, past, before) + _covariance(fit, since, after)
    rows = []
    for place, index in enumerate(fit.coordinates.free):
        errors = float(after[place] - before[place]) / math.sqrt(spread[place, place])
        rows.append((names[index], float(before[place]), float(after[place]), errors))
    return tuple(sorted(rows, key=lambda row: -abs(row[3])))


def _covariance(fit: BestFit, seen: FloatArray, point: FloatArray) -> FloatArray:
    """The inverse of the information about the free parameters, with a little added where there is none."""
    used = np.flatnonzero(seen * fit.informative > 0.0)
    x = fit.maximiser.lifted(point)
    chance = fit.functions.linear[used] @ x + fit.functions.constant[used]
    slope = (
        fit.functions.linear[used] @ fit.maximiser.jacobian(point) * (np.sqrt(seen[used]) / chance)[:, None]
    )
    width = fit.coordinates.upper[: len(point)] - fit.coordinates.lower[: len(point)]
    information = slope.T @ slope + np.diag(1.0 / np.maximum(width, 1e-12) ** 2)
    return np.linalg.inv(information).astype(np.float64, copy=False)
