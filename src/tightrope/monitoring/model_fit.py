"""A test of the model on the data of a result, in numbers and in words (`tightrope.io.results.ModelFit`).

The test is that of `tightrope.monitoring.batch_test`, at its own level α: it changes no interval and
spends nothing of a guarantee's δ.

What fits worst is listed by its own evidence: signatures, choices and changes, with what was expected. Where
data have no order all signatures are free at once and have the same; then those come first that gain most by
being free, compared with the best fit.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.io.results import (
    CONTRADICTED,
    FITS,
    GROWING,
    UNTESTED,
    Anomaly,
    Look,
    ModelFit,
    Seen,
    power_text,
)
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.batch_test import BatchTest, weigh_batches
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

ALPHA = 0.001
"""The probability of a false alarm of the test that `learn` makes."""

LISTED = 6


def weigh_fit(model: ParametricMDP, counts: Counts, alpha: float = ALPHA) -> ModelFit:
    """Test whether the data fit the model."""
    batches = 0 if counts.batches is None else int(np.count_nonzero(np.diff(counts.batches.start)))
    ordered = batches > 1
    events, design = counts.steps, counts.design
    doubts = (one for one in (design.ends, *([design.order] if ordered else [])) if not one.holds)
    nominal = (*design.censored, *(f"{one.name}: {one.why}" for one in doubts))
    reason, test = None if events else "there are no data yet", None
    try:
        test = BatchTest(model, counts)
    except InputError as error:
        reason = error.message
    looks = weigh_batches(test, counts) if test is not None and reason is None else []
    level = math.log(1.0 / alpha)
    first = next((event for event, log_e in looks if log_e >= level), None)
    log_e = looks[-1][1] if looks else 0.0
    if reason is not None:
        verdict, text = UNTESTED, f"{UNTESTED}: {reason}"
    else:
        verdict = CONTRADICTED if first is not None else GROWING if log_e >= 0.5 * level else FITS
        how = "" if ordered else " of counts without order"
        rate = f"a right model reaches {1.0 / alpha:,.0f} with probability at most {alpha:g}"
        if nominal:
            rate += ", nominally: data are missing, or their order or ends are not known"
        when = "" if first is None else f", alarm after {first:,}"
        text = f"{verdict}: e-value {power_text(log_e)} after {events:,} events{how}{when} ({rate})"
    return ModelFit(
        verdict=verdict,
        alarm=first is not None,
        e_value=math.inf if log_e > 700.0 else math.exp(log_e),
        log_e_value=log_e,
        alpha=alpha,
        events=events,
        first_alarm=first,
        ordered=ordered,
        nominal=nominal,
        text=text,
        looks=tuple(Look(*look) for look in looks),
        suspects=() if test is None or reason is not None else tuple(worst_fits(test, LISTED)),
    )


def worst_fits(test: BatchTest, most: int) -> list[Anomaly]:
    """The departures with the most evidence, of all kinds; not empty even where the model fits."""
    if test.events == 0:
        return []
    fitted = test.fitted_probabilities()
    surplus = test.surplus()
    result = _expressions(test, fitted, surplus, most) + _ties(test, fitted, surplus, most)
    change = test.drift.best(test.log_chance, test.best)
    if change is not None:
        anomaly = test.drift.anomaly(test.model.parameters.names, *change, "about event")
        result.append((change[1], math.inf, anomaly))
    result.sort(key=lambda each: (-each[0], -each[1]))
    return [anomaly for _, _, anomaly in result[:most]]


Ranked = list[tuple[float, float, Anomaly]]
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
            text = test.model.expressions.text(int(outcomes.expression[row]))
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
                Anomaly("expression", text, float(log_e[signature]), tuple(shown)),
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
            text = f"to {to} ({test.model.expressions.text(expression)})"
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


def _gain(
    number: FloatArray,
    part: IndexArray | OffsetArray,
    expression: IndexArray,
    fitted: FloatArray,
    parts: int,
) -> FloatArray:
    """Minus the log-likelihood of each part at the best fit."""
    logs = number * np.log(np.maximum(fitted[expression], 1e-300))
    result: FloatArray = -np.bincount(part, weights=logs, minlength=parts).astype(np.float64)
    return result


def _describe_seen(text: str, number: float, total: float, expected: float) -> Seen:
    return Seen(text, int(number), float(number / total), float(expected))
