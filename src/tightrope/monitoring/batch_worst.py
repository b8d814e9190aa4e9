"""What fits worst in data that come in batches: signatures, choices and changes, with what was expected.

Departures are listed by their own evidence. Where data have no order all signatures are free at once and have
the same; then those come first that gain most by being free, compared with the best fit.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.monitoring.batch_changes import Change
from tightrope.monitoring.batch_test import BatchTest
from tightrope.monitoring.suspects import Seen, Suspect
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray


def worst_fits(test: BatchTest, most: int) -> list[Suspect]:
    """The departures with the most evidence, of all kinds; not empty even where the model fits."""
    if test.events == 0:
        return []
    fit = test.fit
    x = fit.maximiser.lifted(fit.maximiser.estimate(test.seen * fit.informative, test.point))
    fitted = fit.functions.linear @ x + fit.functions.constant
    surplus = test.surplus()
    found = _expressions(test, fitted, surplus, most) + _ties(test, fitted, surplus, most)
    change = test.strongest_change()
    if change is not None:
        found.append((change[0], math.inf, _change(test, *change)))
    found.sort(key=lambda each: (-each[0], -each[1]))
    return [suspect for _, _, suspect in found[:most]]


Ranked = list[tuple[float, float, Suspect]]
"""Evidence, then what is gained over the best fit, then the departure."""


def _expressions(test: BatchTest, fitted: FloatArray, surplus: float, most: int) -> Ranked:
    outcomes, model = test.outcomes, test.model
    size = len(outcomes.width)
    gain = _gain(test.pooled, outcomes.signature, outcomes.expression, fitted, size)
    visited = np.bincount(outcomes.signature, weights=test.pooled, minlength=size) > 0
    log_e = surplus + test.expression_departures()
    gain = np.where(visited & np.isfinite(log_e), gain + test.free_of_signatures(), -math.inf)
    ranked: Ranked = []
    for signature in _largest(log_e, gain, most):
        rows = np.arange(outcomes.start[signature], outcomes.start[signature + 1])
        total = float(test.pooled[rows].sum())
        shown = []
        for row in rows.tolist():
            times = int(outcomes.multiplicity[row])
            text = _polynomial(test, int(outcomes.expression[row]))
            shown.append(
                _describe_seen(
                    text if times == 1 else f"{times}·({text})",
                    test.pooled[row],
                    total,
                    times * fitted[outcomes.expression[row]],
                )
            )
        choice = int(np.argmax(model.signatures.of_choice == signature))
        text = f"as in {model.structure.choice_name(choice)}"
        ranked.append(
            (
                float(log_e[signature]),
                float(gain[signature]),
                Suspect("expression", text, float(log_e[signature]), tuple(shown)),
            )
        )
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
            text = f"to {to} ({_polynomial(test, expression)})"
            shown.append(_describe_seen(text, number, visits, fitted[expression]))
        suspect = Suspect("tie", structure.choice_name(choice), float(log_e[part]), tuple(shown))
        ranked.append((float(log_e[part]), float(gain[part]), suspect))
    return ranked


def _largest(log_e: FloatArray, gain: FloatArray, most: int) -> list[int]:
    """The parts that come first, of those that were met."""
    met = np.flatnonzero(np.isfinite(gain))
    if len(met) > most:
        met = met[log_e[met] >= np.partition(log_e[met], -most)[-most]]
    order = np.lexsort((-gain[met], -log_e[met]))
    return [int(part) for part in met[order[:most]]]


def _gain(
    number: FloatArray,
    part: IndexArray | OffsetArray,
    expression: IndexArray,
    fitted: FloatArray,
    parts: int,
) -> FloatArray:
    """Minus the log-likelihood of each part at the best fit."""
    logs = number * np.log(np.maximum(fitted[expression], 1e-300))
    found: FloatArray = -np.bincount(part, weights=logs, minlength=parts).astype(np.float64)
    return found


def _describe_seen(text: str, number: float, total: float, expected: float) -> Seen:
    return Seen(text, int(number), float(number / total), float(expected))


def _polynomial(test: BatchTest, expression: int) -> str:
    return test.model.expressions.text(expression)


def _change(test: BatchTest, log_e: float, change: Change) -> Suspect:
    """After which batch the parameters changed, and which of them by how many standard errors."""
    fit = test.fit
    before = fit.maximiser.estimate(change.past * fit.informative)
    after = fit.maximiser.estimate(change.seen * fit.informative, before)
    spread = _covariance(test, change.past, before) + _covariance(test, change.seen, after)
    names = test.model.parameters.names
    rows = []
    for place, index in enumerate(fit.coordinates.free):
        errors = float(after[place] - before[place]) / math.sqrt(spread[place, place])
        rows.append((names[index], float(before[place]), float(after[place]), errors))
    rows.sort(key=lambda row: -abs(row[3]))
    text = f"the parameters since about event {change.event + 1:,} are not those before"
    return Suspect("drift", text, log_e, (), change.event, tuple(rows))


def _covariance(test: BatchTest, seen: FloatArray, point: FloatArray) -> FloatArray:
    """The inverse of the information about the free parameters, with a little added where there is none."""
    fit = test.fit
    used = np.flatnonzero(seen * fit.informative > 0.0)
    x = fit.maximiser.lifted(point)
    chance = fit.functions.linear[used] @ x + fit.functions.constant[used]
    slope = (
        fit.functions.linear[used] @ fit.maximiser.jacobian(point) * (np.sqrt(seen[used]) / chance)[:, None]
    )
    width = fit.coordinates.upper[: len(point)] - fit.coordinates.lower[: len(point)]
    information = slope.T @ slope + np.diag(1.0 / np.maximum(width, 1e-12) ** 2)
    return np.linalg.inv(information).astype(np.float64, copy=False)
