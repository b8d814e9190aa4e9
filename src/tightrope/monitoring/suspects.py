"""What fits worst of what the counts of a log say about a model: signatures, choices and changes.

They are listed by their own evidence, with what was expected. Where data have no order all signatures are
free at once and have the same; then those come first that gain most by being free, compared with the best
fit.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.io.results import Anomaly, Seen
from tightrope.monitoring.batch_test import BatchTest
from tightrope.numerics.arrays import FloatArray


def worst_fits(test: BatchTest, most: int) -> list[Anomaly]:
    """The departures with the most evidence, of all kinds; not empty even where the model fits."""
    if test.events == 0:
        return []
    fitted = test.fitted_probabilities()
    surplus = test.surplus()
    result = _expressions(test, fitted, surplus, most) + _ties(test, fitted, surplus, most)
    change = test.drift.best(test.log_chance, test.best)
    if change is not None:
        anomaly = test.drift.anomaly(test.model.parameters.words, *change, "about event")
        result.append((change[1], math.inf, anomaly))
    result.sort(key=lambda each: (-each[0], -each[1]))
    return [anomaly for _, _, anomaly in result[:most]]


Ranked = list[tuple[float, float, Anomaly]]
"""Evidence, then what is gained over the best fit, then the departure."""


def _expressions(test: BatchTest, fitted: FloatArray, surplus: float, most: int) -> Ranked:
    outcomes, model = test.outcomes, test.model
    size = len(outcomes.width)
    logs = test.pooled * np.log(np.maximum(fitted[outcomes.expression], 1e-300))
    gain: FloatArray = -np.bincount(outcomes.signature, logs, size).astype(np.float64)  # at the best fit
    visited = np.bincount(outcomes.signature, weights=test.pooled, minlength=size) > 0
    log_e = surplus + test.expression_departures()
    gain = np.where(visited & np.isfinite(log_e), gain + test.free(test.pooled), -math.inf)
    ranked: Ranked = []
    for signature in _largest(log_e, gain, most):
        rows = np.arange(outcomes.start[signature], outcomes.start[signature + 1])
        total = float(test.pooled[rows].sum())
        shown = []
        for row in rows.tolist():
            times = int(outcomes.multiplicity[row])
            text = model.expressions.function(int(outcomes.expression[row])).text(model.parameters.words)
            text, expected = f"{times}·({text})" if times > 1 else text, fitted[outcomes.expression[row]]
            shown.append(_describe_seen(text, test.pooled[row], total, times * expected))
        choice = int(np.argmax(model.signatures.of_choice == signature))
        text = f"as in {model.structure.choice_name(choice)}"
        anomaly = Anomaly("expression", text, float(log_e[signature]), tuple(shown))
        ranked.append((float(log_e[signature]), float(gain[signature]), anomaly))
    return ranked


def _ties(test: BatchTest, fitted: FloatArray, surplus: float, most: int) -> Ranked:
    choices, structure = test.choices, test.model.structure
    log_e = surplus + choices.departures()
    gain = np.zeros(len(log_e))
    ranked: Ranked = []
    for part in _largest(log_e, gain, most):
        choice, visits = int(choices.choice[part]), float(choices.visits[part])
        shown = []
        for transition in range(structure.transition_start[choice], structure.transition_start[choice + 1]):
            expression = int(test.model.expression[transition])
            to = structure.state_name(int(structure.successor[transition]))
            place = int(np.searchsorted(choices.seen, transition))
            is_met = place < len(choices.seen) and choices.seen[place] == transition
            number = float(choices.number[place]) if is_met else 0.0
            probability = test.model.expressions.function(expression).text(test.model.parameters.words)
            text = f"to {to} ({probability})"
            shown.append(_describe_seen(text, number, visits, fitted[expression]))
        anomaly = Anomaly("tie", structure.choice_name(choice), float(log_e[part]), tuple(shown))
        ranked.append((float(log_e[part]), float(gain[part]), anomaly))
    return ranked


def _largest(log_e: FloatArray, gain: FloatArray, most: int) -> list[int]:
    """The parts that come first, of those that were met."""
    met = np.flatnonzero(np.isfinite(gain))
    if len(met) > most:
        met = met[log_e[met] >= np.partition(log_e[met], -most)[-most]]
    order = np.lexsort((-gain[met], -log_e[met]))
    return [int(part) for part in met[order[:most]]]


def _describe_seen(text: str, number: float, total: float, expected: float) -> Seen:
    return Seen(text, int(number), float(number / total), float(expected))
