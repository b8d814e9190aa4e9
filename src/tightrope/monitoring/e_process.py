"""The e-process against a model, for single events (`monitor`) and for batches (`batch_test`) alike.

The evidence against a model after n events is

    E_n = Σ_k w_k·q_k(data) / max over the domain of p_θ(data),      Σ w_k ≤ 1,

with predictions q_k in which one signature, one choice (`departures`) or, from some moment on, the parameters
(`drift`) depart from the model; everything else they predict as the model's own estimate does, which is fixed
before the events that it predicts. For the true θ* in the domain E_n is at most Σ w_k·q_k/p_θ*, a
non-negative supermartingale that begins at 1, under any policy that looks at the past; by Ville's inequality
it ever reaches 1/α with probability at most α. Numerators are rounded down and the denominator up
(`best_fit`).
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.errors import InputError
from tightrope.io.results import Anomaly, Seen
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.best_fit import BestFit, estimate, log_chances
from tightrope.monitoring.departures import SPARE, PartEvidence, Parts
from tightrope.monitoring.drift import MANY, DriftEvidence
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.statistics.outcomes import Outcomes

SHARES = {"expression": 0.3, "tie": 0.2, "drift": 0.5}
"""How the mixture is divided among kinds of departures; what a model does not have is left unused."""

FIRST_CHANGE = 64
"""Events before which no change of the parameters is looked for."""


class EProcess:
    """What every test of a model keeps: the events so far, the model's own prediction, and the best fit.

    `seen` counts events by expression. `log_chance` are the log-probabilities of the expressions at `point`,
    by which what comes next is predicted; `best` is where the best fit was last found. `total` is the
    logarithm of the model's predictions so far, `total_size` what its rounding is in proportion to.
    """

    def __init__(
        self,
        model: ParametricMDP,
        visited: BoolArray | None = None,
        alone: bool = True,
        shift: float = MANY,
    ):
        self.model = model
        self.outcomes = Outcomes.of(model)
        self.fit = BestFit.of(model)
        self.events = 0
        self.seen = np.zeros(len(model.expressions))
        self.point = self.fit.maximiser.start
        self.best = self.fit.centre
        self.total, self.total_size = 0.0, 0.0
        chances = log_chances(self.fit, self.point)
        if chances is None:
            raise InputError("the domain of the parameters has no interior")
        self.log_chance: FloatArray = chances
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
        point = estimate(self.fit, self.seen, self.point)
        chances = log_chances(self.fit, point)
        if chances is not None:
            self.point, self.log_chance = point, chances

    def begin_change(self) -> None:
        """Let a change of the parameters begin here."""
        if self.events >= FIRST_CHANGE:
            self.drift.look(self.events, self._predicted, self.point, self.log_chance)

    @property
    def _predicted(self) -> float:
        """A lower bound on the logarithm of the model's predictions so far."""
        return self.total - SPARE * self.total_size

    def terms(self) -> dict[str, FloatArray]:
        """log(w_k·E_k) of the departures of signatures and choices, rounded down: what they gain over the
        model's predictions, less what these lack of the best fit."""
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
        """The departures with the most evidence of their own, of all kinds; not empty even where the model
        fits. Where data have no order all signatures are free at once and have the same: then those come
        first that gain most over the best fit."""
        if not self.seen.any():
            return []
        fitted = self.fit.functions.linear @ self.fitted_point() + self.fit.functions.constant
        ranked = []
        for kind, terms in self.terms().items():
            evidence = self.departures[kind]
            log_e = terms - evidence.log_weight(SHARES[kind])
            met, gain = evidence.met, evidence.over(fitted)
            for part in met[np.lexsort((-gain[met], -log_e[met]))[:most]].tolist():
                anomaly = self._anomaly(kind, evidence, part, float(log_e[part]), fitted)
                ranked.append((float(log_e[part]), float(gain[part]), anomaly))
        change = self.drift.best(self.log_chance, self.best)
        if change is not None:
            anomaly = self.drift.anomaly(self.model.parameters.words, *change, when)
            ranked.append((change[1], math.inf, anomaly))
        ranked.sort(key=lambda each: (-each[0], -each[1]))
        return [anomaly for _, _, anomaly in ranked[:most]]

    def _anomaly(
        self, kind: str, evidence: PartEvidence, part: int, log_e: float, fitted: FloatArray
    ) -> Anomaly:
        """A signature or a choice: how often each outcome was seen, beside what the best fit expects."""
        parts, structure = evidence.parts, self.model.structure
        rows = np.flatnonzero(parts.part == part)
        total, shown = float(evidence.seen[rows].sum()), []
        for row in rows.tolist():
            expression, times = int(parts.expression[row]), int(parts.multiplicity[row])
            text = self.model.expressions.function(expression).text(self.model.parameters.words)
            text = text if times == 1 else f"{times}·({text})"
            if kind == "tie":
                successor = structure.successor[int(np.flatnonzero(parts.outcome == row)[0])]
                text = f"to {structure.state_name(int(successor))} ({text})"
            seen = float(evidence.seen[row])
            shown.append(Seen(text, int(seen), seen / total, times * float(fitted[expression])))
        choice = structure.choice_name(int(parts.choice[part]))
        return Anomaly(kind, f"as in {choice}" if kind == "expression" else choice, log_e, tuple(shown))
