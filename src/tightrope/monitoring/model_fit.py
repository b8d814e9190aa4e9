"""`ModelFit`: what a test of the model says about the data of a result, in numbers and in words.

The test is that of `tightrope.monitoring.batch_test`, at its own level α: it changes no interval and
spends nothing of a guarantee's δ.

What fits worst is listed by its own evidence: signatures, choices and changes, with what was expected. Where
data have no order all signatures are free at once and have the same; then those come first that gain most by
being free, compared with the best fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.anomalies import Anomaly, Seen, moved_parameters
from tightrope.monitoring.batch_test import BatchTest, Change, weigh_batches
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record

ALPHA = 0.001
"""The probability of a false alarm of the test that `learn` makes."""

FITS, GROWING = "no evidence against it", "evidence growing"
CONTRADICTED, UNTESTED = "model contradicted", "not tested"
LISTED = 6


@dataclass(frozen=True, eq=False, repr=False)
class ModelFit(Record):
    """Whether data fit a model.

    * `verdict`: "no evidence against it", "evidence growing" (half of the way to an alarm, on a logarithmic
      scale), "model contradicted" (an alarm), or "not tested" with a `reason`.
    * `log_e_value`: the natural logarithm of the e-value in the end; under the model, whatever its parameters
      are, the e-value ever reaches 1/`alpha` with probability at most `alpha`.
    * `first_alarm`: after how many events it did, as far as it was looked at; None where it did not.
    * `looks`: (events, log e-value) at all looks, in the order of time.
    * `ordered`: whether the data are batched in time; else they were weighed all at once, which is less sharp
      and cannot show a change.
    * `nominal`: what is missing from the data, or not known of their order and ends, in words; the rate of
      false alarms then holds in name only.
    * `suspects`: what fits worst, the strongest evidence first.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(1000, seed=1)
    >>> fit = tr.learn(bench.problem, data, sets="tied").fit
    >>> fit.verdict, fit.alarm, fit.e_value < 1
    ('no evidence against it', False, True)
    """

    verdict: str
    log_e_value: float
    alpha: float
    events: int
    first_alarm: int | None
    looks: tuple[tuple[int, float], ...]
    ordered: bool
    nominal: tuple[str, ...]
    suspects: tuple[Anomaly, ...]
    reason: str | None = None

    @property
    def e_value(self) -> float:
        """How many times better departures from the model explain the data than the model at its best."""
        return math.inf if self.log_e_value > 700.0 else math.exp(self.log_e_value)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever reached 1/α."""
        return self.first_alarm is not None

    @property
    def is_refutation(self) -> bool:
        """Whether the model is refuted: by an alarm whose level holds, or by what it says is impossible."""
        return self.alarm and (not self.nominal or self.log_e_value == math.inf)

    @property
    def text(self) -> str:
        """The verdict with its numbers, in a line."""
        if self.verdict == UNTESTED:
            return f"{UNTESTED}: {self.reason}"
        how = "" if self.ordered else " of counts without order"
        text = f"e-value {power(self.log_e_value)} after {self.events:,} events{how}"
        rate = f"a right model reaches {1.0 / self.alpha:,.0f} with probability at most {self.alpha:g}"
        if self.nominal:
            rate += ", nominally: data are missing, or their order or ends are not known"
        when = f", alarm after {self.first_alarm:,}" if self.alarm else ""
        return f"{self.verdict}: {text}{when} ({rate})"

    @property
    def misfit(self) -> str | None:
        """Words about a model that is contradicted, with what fits worst; else None."""
        if not self.alarm:
            return None
        worst = f" Worst: {self.suspects[0].words}." if self.suspects else ""
        return (
            f"the data contradict the model (e-value {power(self.log_e_value)} after {self.events:,} events; "
            f"a right model reaches {1.0 / self.alpha:,.0f} with probability at most {self.alpha:g}): the "
            f"guarantee is worth no more than the model.{worst}"
        )

    def _title_(self) -> str:
        return f"ModelFit: {self.text}"

    def _facts_(self) -> Facts:
        return [(anomaly.kind, anomaly.words) for anomaly in self.suspects]

    def to_json(self) -> dict[str, Any]:
        """The keys of `fit` in `tightrope learn --json`."""
        return {
            "verdict": self.verdict,
            "alarm": self.alarm,
            "e_value": self.e_value,
            "log_e_value": self.log_e_value,
            "alpha": self.alpha,
            "events": self.events,
            "first_alarm": self.first_alarm,
            "ordered": self.ordered,
            "nominal": list(self.nominal),
            "text": self.text,
            "looks": [{"events": events, "log_e_value": log_e} for events, log_e in self.looks],
            "suspects": [anomaly.to_json() for anomaly in self.suspects],
        }


def power(log_e: float) -> str:
    """An e-value as people read it: 10^3.2."""
    return "∞" if log_e == math.inf else f"10^{log_e / math.log(10.0):.1f}"


def weigh_fit(model: ParametricMDP, counts: Counts, alpha: float = ALPHA) -> ModelFit:
    """Test whether the data fit the model."""
    batches = 0 if counts.batches is None else int(np.count_nonzero(np.diff(counts.batches.start)))
    ordered = batches > 1
    events, design = counts.steps, counts.design
    doubts = (one for one in (design.ends, *([design.order] if ordered else [])) if not one.holds)
    nominal = (*design.censored, *(f"{one.name}: {one.why}" for one in doubts))
    try:
        test = BatchTest(model, counts)
    except InputError as error:
        reason = error.message
        return ModelFit(UNTESTED, 0.0, alpha, events, None, (), ordered, nominal, (), reason)
    if events == 0:
        reason = "there are no data yet"
        return ModelFit(UNTESTED, 0.0, alpha, events, None, (), ordered, nominal, (), reason)
    looks = weigh_batches(test, counts)
    level = math.log(1.0 / alpha)
    first = next((event for event, log_e in looks if log_e >= level), None)
    now = looks[-1][1] if looks else 0.0
    verdict = CONTRADICTED if first is not None else GROWING if now >= 0.5 * level else FITS
    suspects = tuple(worst_fits(test, LISTED))
    return ModelFit(verdict, now, alpha, events, first, tuple(looks), ordered, nominal, suspects)


def worst_fits(test: BatchTest, most: int) -> list[Anomaly]:
    """The departures with the most evidence, of all kinds; not empty even where the model fits."""
    if test.events == 0:
        return []
    fitted = test.fitted_probabilities()
    surplus = test.surplus()
    result = _expressions(test, fitted, surplus, most) + _ties(test, fitted, surplus, most)
    change = test.strongest_change()
    if change is not None:
        result.append((change[0], math.inf, _change(test, *change)))
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


def _change(test: BatchTest, log_e: float, change: Change) -> Anomaly:
    """After which batch the parameters changed, and which of them by how many standard errors."""
    text = f"the parameters since about event {change.event + 1:,} are not those before"
    rows = moved_parameters(test.fit, test.model.parameters.names, change.past, change.seen)
    return Anomaly("drift", text, log_e, (), change.event, rows)
