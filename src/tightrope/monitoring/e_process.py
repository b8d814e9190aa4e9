"""The e-process against a model, for single events (`monitor`) and for batches (`BatchTest`) alike.

    E_n = Σ_k w_k·q_k(data) / max over the domain of p_θ(data),      Σ w_k ≤ 1,

with predictions q_k in which a signature or a choice (`departures`), or the parameters from some moment on
(`drift`), depart from the model. For the true θ* in the domain it is at most a non-negative supermartingale
from 1, so it ever reaches 1/α with probability at most α (Ville). Numerators are rounded down, the
denominator up. Batches: the first is predicted by mixtures, later ones by the model. Proof:
docs/proofs/statistics.md.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.io.results import Anomaly, Seen
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.best_fit import BestFit, log_chances_of, refit
from tightrope.monitoring.departures import SPARE, PartEvidence, Parts, free_prediction, log_sum
from tightrope.monitoring.drift import FEW, MANY, DriftEvidence
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.statistics.outcomes import Outcomes

SHARES = {"expression": 0.3, "tie": 0.2, "drift": 0.5}
"""How the mixture is divided among kinds of departures; what a model does not have is left unused."""

FIRST_CHANGE = 64
"""Events before which no change of the parameters is looked for."""


class EProcess:
    """The common state of all tests of a model: the events, the model's own prediction, and the best fit.

    `seen` counts events by expression. `log_chance` are log-probabilities of the expressions at `point`, the
    next prediction; `best` is the last best fit. `total` is the logarithm of predictions, `total_size` its
    error scale.
    """

    def __init__(
        self, model: ParametricMDP, visited: BoolArray | None = None, alone: bool = True, shift: float = MANY
    ):
        self.model = model
        self.outcomes = Outcomes.of(model)
        self.fit = BestFit.of(model)
        self.events = 0
        self.seen = np.zeros(len(model.expressions))
        self.best = self.fit.centre
        self.total, self.total_size = 0.0, 0.0
        self.point, self.log_chance = self.fit.maximiser.start, np.empty(0)
        if not self._predict(self.point):
            raise InputError("the domain of the parameters has no interior")
        self.departures = {
            "expression": PartEvidence(Parts.signatures(self.outcomes)),
            "tie": PartEvidence(Parts.choices(self.outcomes, visited)),
        }
        self.drift = DriftEvidence(self.fit, self.outcomes, alone, shift)

    def count(self, transition: OffsetArray, number: OffsetArray) -> None:
        """Take in events that the present prediction was fixed before: how often each transition was seen."""
        expression = self.outcomes.expression[self.outcomes.of_transition[transition]]
        seen = np.bincount(expression, weights=number, minlength=len(self.seen)).astype(np.float64)
        terms = seen * self.log_chance
        self.total += float(terms.sum())
        self.total_size += float(np.abs(terms).sum())
        self.seen += seen
        for evidence in self.departures.values():
            evidence.add(transition, number, self.log_chance)
        self.drift.compensation.add(transition, number)
        self.drift.add(seen)

    def renew_prediction(self) -> None:
        """Estimate the parameters anew from all that was seen; what comes next is predicted by them."""
        self.drift.close(self.log_chance)
        points = self.point.copy()[None, None, :]
        refit(self.fit, self.seen[None, :], points, np.array([0]), np.array([len(self.point)]))
        self._predict(points[0, 0])

    def _predict(self, point: FloatArray) -> bool:
        """Predict by these parameters, if they are in the domain."""
        inside, chances = log_chances_of(self.fit, point[None, :])
        if inside[0]:
            self.point, self.log_chance = point, chances[0]
        return bool(inside[0])

    def begin_change(self) -> None:
        """Let a change of the parameters begin here."""
        if self.events >= FIRST_CHANGE:
            self.drift.look(self.events, self._predicted, self.point, self.log_chance)

    @property
    def _predicted(self) -> float:
        """A lower bound on the logarithm of the model's predictions so far."""
        return self.total - SPARE * self.total_size

    def terms(self) -> dict[str, FloatArray]:
        """log(w_k·E_k) of departures of signatures and choices, rounded down."""
        self.best = self.fit.search(self.seen, self.best)
        surplus = self._predicted - self.fit.upper(self.seen, self.best)
        return {
            kind: surplus + evidence.gains() + evidence.log_weight(SHARES[kind])
            for kind, evidence in self.departures.items()
        }

    def fitted_point(self) -> FloatArray:
        """The coordinates that fit the data best."""
        maximiser = self.fit.maximiser
        return maximiser.lifted(maximiser.estimate(self.seen * self.fit.informative, self.point))

    def worst(self, most: int, when: str = "event") -> list[Anomaly]:
        """The departures with the most evidence of their own; ties go by the gain over the best fit."""
        if not self.seen.any():
            return []
        fitted = self.fit.functions.at(self.fitted_point())
        ranked = []
        for kind, terms in self.terms().items():
            evidence = self.departures[kind]
            log_e = terms - evidence.log_weight(SHARES[kind])
            met, gain = np.unique(evidence.parts.part[evidence.seen > 0.0]), evidence.over(fitted)
            for part in met[np.lexsort((-gain[met], -log_e[met]))[:most]].tolist():
                anomaly = self._anomaly(kind, evidence, part, float(log_e[part]), fitted)
                ranked.append((float(log_e[part]), float(gain[part]), anomaly))
        change = self.drift.best(self.log_chance, self.best)
        if change is not None:
            ranked.append((change[1], math.inf, self.drift.anomaly(self._names(), *change, when)))
        ranked.sort(key=lambda each: (-each[0], -each[1]))
        return [anomaly for _, _, anomaly in ranked[:most]]

    def _names(self) -> list[str]:
        names, row_of = list(self.model.parameters.names), self.model.expressions.index_of
        for one in self.model.parameters.free:  # by what happens
            for place, row in zip(one.coordinates, map(row_of, one.probabilities), strict=False):
                names[place] = names[place] if row is None else self.model.expression_text(row)
        return names

    def _anomaly(
        self, kind: str, evidence: PartEvidence, part: int, log_e: float, fitted: FloatArray
    ) -> Anomaly:
        """A signature or a choice: how often each outcome was seen, beside what the best fit expects."""
        parts, structure = evidence.parts, self.model.structure
        rows = np.flatnonzero(parts.part == part)
        total, shown = float(evidence.seen[rows].sum()), []
        for row in rows.tolist():
            expression, times = int(parts.expression[row]), int(parts.multiplicity[row])
            text = self.model.expression_text(expression)
            text = text if times == 1 else f"{times}·({text})"
            if kind == "tie":
                successor = structure.successor[int(np.flatnonzero(parts.outcome == row)[0])]
                text = f"to {structure.state_name(int(successor))} ({text})"
            seen = float(evidence.seen[row])
            shown.append(Seen(text, int(seen), seen / total, times * float(fitted[expression])))
        choice = structure.choice_name(int(parts.choice[part]))
        return Anomaly(kind, f"as in {choice}" if kind == "expression" else choice, log_e, tuple(shown))


GROWTH = 1.4
"""Estimates are renewed, and evidence is looked at, when events have grown by this factor, and in the end."""

PROMISING = -2.0
"""Evidence for changes that is not expected to exceed this, a logarithm, is not computed."""


class BatchTest(EProcess):
    """The evidence against a model, batch by batch of `counts`."""

    def __init__(self, model: ParametricMDP, counts: Counts):
        super().__init__(model, counts.visits > 0, alone=False, shift=FEW)

    def add(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Take in a batch: how often each transition was seen in it."""
        if len(transition) == 0:
            return
        self.count(transition, count)
        if self.events == 0:
            self._predict_freely(transition, count)
        self.events += int(count.sum())

    def _predict_freely(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Let mixtures predict the first batch of signatures that depend on parameters."""
        self.drift.compensation.visits[:] = 0.0
        outcomes, by_signature, by_choice = self.outcomes, *self.departures.values()
        informative = self.fit.informative[outcomes.expression]
        is_free = np.bincount(outcomes.signature, weights=informative, minlength=len(outcomes.width)) > 0.0
        owner, free = self.model.signatures.of_choice, by_signature.free()
        mine = is_free[owner[by_signature.parts.choice]]
        self.total += float((free - by_signature.model)[mine].sum())
        self.total_size += float(np.abs(free[mine]).sum())
        by_signature.model[mine], by_signature.model_size[mine] = free[mine], np.abs(free[mine])
        pooled, parts = outcomes.pooled_part(transition, count).astype(np.float64), by_choice.parts
        place = parts.outcome[transition]
        rows = np.flatnonzero(place >= 0)
        rows = rows[is_free[owner[parts.choice[parts.part[place[rows]]]]]]
        met, number = np.unique(parts.part[place[rows]], return_inverse=True)
        signature, count = owner[parts.choice[met]], count[rows]
        own = outcomes.of_transition[transition[rows]]
        width, start = outcomes.width[signature], outcomes.start[signature]
        first, each = np.cumsum(width) - width, np.repeat(np.arange(len(met)), width).astype(np.int32)
        whole = pooled[start[each] + np.arange(len(each)) - first[each]]
        used = np.zeros(len(each))
        np.add.at(used, first[number] + own - start[number], count)
        all_of_it, rest = (free_prediction(x, each, len(met), width) for x in (whole, whole - used))
        alike = np.bincount(number, count * np.log(outcomes.multiplicity[own]), len(met))
        by_choice.model[met] = all_of_it - rest - alike
        by_choice.model_size[met] = np.abs(all_of_it) + np.abs(rest) + alike + 1.0

    def log_evidence(self) -> float:
        """log E now, rounded down."""
        if self.events == 0:
            return 0.0
        drift, terms = -math.inf, self.terms()
        if self.drift.order and self.drift.promise(self.log_chance)[0] > PROMISING:
            drift = math.log(SHARES["drift"]) + self.drift.weigh(self.log_chance, self.best)[0]
        return log_sum(np.array([*map(log_sum, terms.values()), drift]))


def weigh_batches(test: BatchTest, counts: Counts) -> list[tuple[int, float]]:
    """Take in all data; (events, log E) at each look. Predictions are renewed as events grow."""
    if counts.batches is None:
        seen = np.flatnonzero(counts.transition)
        batches = [(seen, counts.transition[seen])]
    else:
        batches = [batch for batch in counts.batches if len(batch[0])]
    looks: list[tuple[int, float]] = []
    looked = 0
    for number, (transition, count) in enumerate(batches, start=1):
        test.add(transition, count)
        is_last = number == len(batches)
        if is_last or test.events >= GROWTH * looked:
            looked = test.events
            if is_last or looked >= FIRST_CHANGE:
                looks.append((looked, test.log_evidence()))
            test.renew_prediction()
        if not is_last:
            if test.events >= FIRST_CHANGE:
                test.drift.close(test.log_chance)
            test.begin_change()
    return looks
