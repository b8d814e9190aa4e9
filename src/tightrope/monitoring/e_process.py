"""The e-process against a model, for single events (`monitor`) and for batches (`batch_test`) alike.

The evidence against a model after n events is

    E_n = Σ_k w_k·q_k(data) / max over the domain of p_θ(data),      Σ w_k ≤ 1,

with predictions q_k in which one signature, one choice or, from some moment on, the parameters depart from
the model; everything else they predict as the model's own estimate does, which is fixed before the events
that it predicts. For the true θ* in the domain E_n is at most Σ w_k·q_k/p_θ*, a non-negative supermartingale
that begins at 1, under any policy that looks at the past; by Ville's inequality it ever reaches 1/α with
probability at most α. Numerators are rounded down and the denominator up (`best_fit`).
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.best_fit import BestFit, estimate, log_chances
from tightrope.numerics.arrays import FloatArray
from tightrope.statistics.outcomes import Outcomes

SHARES = {"expression": 0.3, "tie": 0.2, "drift": 0.5}
"""How the mixture is divided among kinds of departures; what a model does not have is left unused."""

FIRST_CHANGE = 64
"""Events before which no change of the parameters is looked for."""


class EProcess:
    """What every test of a model keeps: the events so far, the model's own prediction, and the best fit.

    `seen` counts events by expression. `log_chance` are the log-probabilities of the expressions at `point`,
    by which what comes next is predicted; `best` is where the best fit was last found.
    """

    def __init__(self, model: ParametricMDP):
        self.model = model
        self.outcomes = Outcomes.of(model)
        self.fit = BestFit.of(model)
        self.events = 0
        self.seen = np.zeros(len(model.expressions))
        self.point = self.fit.maximiser.start
        self.best = self.fit.centre
        chances = log_chances(self.fit, self.point)
        if chances is None:
            raise InputError("the domain of the parameters has no interior")
        self.log_chance: FloatArray = chances

    def renew_prediction(self) -> None:
        """Estimate the parameters anew from all that was seen; what comes next is predicted by them."""
        point = estimate(self.fit, self.seen, self.point)
        chances = log_chances(self.fit, point)
        if chances is not None:
            self.point, self.log_chance = point, chances

    def surplus_of(self, predicted: float) -> float:
        """log of (the model's own predictions / the best fit), rounded down: what every departure pays.

        `predicted` is a lower bound on the logarithm of the predictions."""
        self.best = self.fit.search(self.seen, self.best)
        return predicted - self.fit.upper(self.seen, self.best)

    def fitted_point(self) -> FloatArray:
        """The coordinates that fit the data best."""
        maximiser = self.fit.maximiser
        return maximiser.lifted(maximiser.estimate(self.seen * self.fit.informative, self.point))

    def fitted_probabilities(self) -> FloatArray:
        """Probabilities of all expressions at the parameters that fit the data best."""
        return self.fit.functions.linear @ self.fitted_point() + self.fit.functions.constant


def log_weight(kind: str, parts: int) -> float:
    """The logarithm of the weight of one of so many parts in the mixture."""
    return math.log(SHARES[kind] / max(parts, 1))


def log_sum(terms: FloatArray) -> float:
    """log Σ exp, rounded down; terms that are next to nothing are left out."""
    largest = float(terms.max(initial=-math.inf))
    if not math.isfinite(largest):
        return math.inf if largest == math.inf else -math.inf
    total = largest + math.log(float(np.exp(terms[terms > largest - 40.0] - largest).sum()))
    return total - 1e-9 - 4e-16 * abs(total)


def bet_on_all(log_e: FloatArray, size: int) -> float:
    """Bets on `size` units at once, without paying for each: ½ Π(1 − 1/S + E/S) + ½ Π(½ + E/2).

    No two units move at the same event, so the products are e-processes. Units that are not in `log_e` have
    no evidence (E = 1).
    """
    few = np.logaddexp(math.log1p(-1.0 / size), log_e - math.log(size)) if size > 1 else log_e
    half = np.logaddexp(0.0, log_e) - math.log(2.0)
    return float(np.logaddexp(few.sum(), half.sum())) - math.log(2.0)
