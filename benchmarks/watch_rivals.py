"""What others would put in the place of a watch, for `watch_experiment.py`: χ² tests, ADWIN, and oracles."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2

from tightrope.monitoring.monitor import Monitor
from watch_streams import Jump, walk

BESIDE = ("betting(25)", 0)
ALPHA, PAST = 0.05, 50.0
WINDOWS = (400, 1600, 6400)
"""Events of a window of the χ² tests."""

LEVELS = (0.5, 0.2, 0.05, 0.01, 0.002)
DELTAS = (0.3, 0.05, 0.002, 1e-5, 1e-8, 1e-12)


def cusum(ratio: np.ndarray, threshold: float) -> int | None:
    """The number of events after which the CUSUM of log-likelihood ratios reaches a threshold."""
    total = np.cumsum(ratio)
    least = np.minimum.accumulate(np.minimum(np.r_[0.0, total[:-1]], 0.0))
    above = np.flatnonzero(total - least >= threshold)
    return int(above[0]) + 1 if len(above) else None


def chi_squares(jump: Jump, past: np.ndarray, after: np.ndarray, window: int) -> dict[str, int | None]:
    """Events until a window's counts of some choice differ from the past's, at corrected levels."""
    model = jump.model
    owner = model.structure.transition_choice
    before = np.bincount(past, minlength=model.transitions).astype(float)
    visits = np.bincount(owner, weights=before)
    frequency = before / np.maximum(visits[owner], 1.0)
    tests = len(after) // window * model.choices
    found: dict[str, int | None] = {f"{level} ({window:,} events)": None for level in LEVELS}
    for end in range(window, len(after) + 1, window):
        seen = np.bincount(after[end - window : end], minlength=model.transitions)
        here = np.bincount(owner, weights=seen)
        mean = frequency * here[owner]
        usable = (mean >= 5.0).astype(float)
        terms = np.where(usable > 0, (seen - mean) ** 2 / np.maximum(mean, 1e-9), 0.0)
        outcomes = np.bincount(owner, weights=usable)
        statistic = np.bincount(owner, weights=terms)
        tail = chi2.sf(statistic, np.maximum(outcomes - 1, 1))[outcomes > 1]
        least = float(tail.min(initial=1.0))
        for level in LEVELS:
            name = f"{level} ({window:,} events)"
            if found[name] is None and least < level / tests:
                found[name] = end
    return found


def adaptive_window(jump: Jump, past: np.ndarray, after: np.ndarray, level: float) -> int | None:
    """Events until ADWIN sees the mean of residuals change: 1 for a choice's likeliest outcome, less its
    frequency in the past.
    """
    from river.drift import ADWIN

    model = jump.model
    owner = model.structure.transition_choice
    before = np.bincount(past, minlength=model.transitions).astype(float)
    frequency = before / np.maximum(np.bincount(owner, weights=before)[owner], 1.0)
    top = np.maximum.reduceat(frequency, model.transition_start[:-1])
    residual = 0.5 + 0.5 * ((frequency >= top[owner]).astype(float) - top[owner])
    window = ADWIN(delta=level)
    known = min(len(past), len(after))
    for number, transition in enumerate(np.concatenate([past[-known:], after]).tolist()):
        window.update(float(residual[transition]))
        if window.drift_detected and number >= known:
            return number - known + 1
    return None


def beside(method: str, run: int, is_null: bool) -> dict[str, object]:
    """Events until one method finds the jump of `BESIDE`, per level; or finds one where there is none."""
    jump = Jump.of(*BESIDE)
    scale = math.log(1 / ALPHA) / jump.information
    past = walk(jump.before, int(PAST * scale), 20_000 + run)
    after = walk(jump.before if is_null else jump.after, int(20 * scale), 30_000 + run)
    found: dict[str, int | None] = {}
    if method == "monitor":
        monitor = Monitor(jump.model, alpha=ALPHA)
        monitor.observe(past)
        monitor.observe(after)
        for name, first in (("alarm", monitor.first_alarm), ("warning", monitor.first_warning)):
            found[name] = None if first is None else first - len(past)
    elif method == "oracle":
        found[str(ALPHA)] = cusum(jump.ratio[after], math.log(len(past) * jump.information / ALPHA))
    elif method == "chi-square":
        for window in WINDOWS:
            found |= chi_squares(jump, past, after, window)
    else:
        found = {str(level): adaptive_window(jump, past, after, level) for level in DELTAS}
    return {"delays": found}
