"""Evidence that is a sum of many terms, bounded from below over all parameters at once.

Every term is exp(base_jk − g_jk(θ)) with the same unknown θ, where

    g_jk(θ) = λ_k·ℓ_past(θ) − S_k(θ) + ℓ_since(θ)

is concave in the coordinates (`compensation` says what S is). For any shares π that sum to 1,

    log Σ exp(base − g(θ)) ≥ Σ π·base − Σ π·log π − Σ π·g(θ)          (Gibbs)

and Σ π·g is a log-likelihood with mixed counts less a convex function: one upper bound over the domain for
all terms together. The sum of bounds of single terms is smaller, because each would take its own θ.
Whatever the shares are the bound holds; it is best where they are the terms' shares of the sum at the θ that
makes it least, towards which a few rounds go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.monitoring.best_fit import BARRIER, BestFit, longest_step, solve_step
from tightrope.monitoring.compensation import POWERS, Compensation, Tangent
from tightrope.numerics.arrays import FloatArray, OffsetArray

_ROUNDS = 3
_STEPS = 30
_CLOSE = 1e-10
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class JointTerms:
    """Term [j, k] has the power λ_k; `past` and `since` are events per expression, and S is over the first
    `closed[j]` periods.
    """

    fit: BestFit
    compensation: Compensation
    past: FloatArray
    since: FloatArray
    closed: OffsetArray

    def bound(
        self, base: FloatArray, guess: FloatArray, start: FloatArray
    ) -> tuple[FloatArray, float, FloatArray]:
        """Shares π [j, k] and a number u with log Σ exp(other − g) ≥ Σ π·(other − log π) − u for any `other`.

        `guess` are logarithms of the terms, up to a constant; `start` coordinates to search from. Also
        where the search ended.
        """
        best: tuple[float, FloatArray, float, FloatArray] | None = None
        logits = guess
        for number in range(_ROUNDS):
            shares = _shares(logits)
            x, most = self._most(shares, start)
            value = weigh_terms(shares, base, most)
            if best is None or value > best[0]:
                best = (value, shares, most, x)
            start = x
            renewed = base - self._explain(x)
            if np.abs(_shares(renewed) - shares).max() < 0.03 or number == _ROUNDS - 1:
                break
            logits = renewed if number == 0 else 0.5 * (logits + renewed)
            logits = np.where(np.isfinite(logits), logits, -np.inf)
        assert best is not None
        return best[1], best[2], best[3]

    def _most(self, shares: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
        """An upper bound on Σ π·g over the domain, and where it is nearly reached."""
        weight = (shares @ POWERS) @ self.past + shares.sum(axis=1) @ self.since
        periods = self.compensation.shares(self.closed, np.where(shares < _NEGLIGIBLE, 0.0, shares))
        x = self._search(weight, periods, start)
        tangent = self._tangent(x, periods)
        return x, self.fit.upper(weight, x, tangent.tilt, tangent.level)

    def _tangent(self, x: FloatArray, periods: FloatArray) -> Tangent:
        functions = self.fit.functions
        return self.compensation.tangent(functions.linear @ x + functions.constant, periods)

    def _explain(self, x: FloatArray) -> FloatArray:
        """g at x, about."""
        functions = self.fit.functions
        chance = functions.linear @ x + functions.constant
        logs = np.log(np.where(chance > 0.0, chance, 1.0))
        given = self.compensation.given_back(chance)[self.closed]
        found: FloatArray = POWERS * (self.past @ logs)[:, None] + (self.since @ logs)[:, None] - given
        return found

    def _search(self, weight: FloatArray, periods: FloatArray, start: FloatArray) -> FloatArray:
        """Where weight·log f − S with a barrier is largest, nearly, by damped Newton steps from `start`."""
        functions = self.fit.functions
        rows, bound = self.fit.rows
        used = np.flatnonzero(weight * self.fit.informative > 0.0)
        linear, constant, count = functions.linear[used], functions.constant[used], weight[used]
        x = start
        if not (np.all(linear @ x + constant > 0.0) and np.all(bound - rows @ x > 1e-14)):
            x = self.fit.centre
        tangent = self._tangent(x, periods)
        for _ in range(_STEPS):
            chance, room = linear @ x + constant, bound - rows @ x
            everywhere = np.maximum(functions.linear @ x + functions.constant, 1e-12)
            gradient = linear.T @ (count / chance) + functions.linear.T @ tangent.tilt
            gradient -= BARRIER * (rows.T @ (1.0 / room))
            scaled = linear * (np.sqrt(count) / chance)[:, None]
            bent = functions.linear * np.sqrt(tangent.bend / everywhere)[:, None]
            fenced = rows / room[:, None]
            step = solve_step(scaled.T @ scaled + bent.T @ bent + BARRIER * (fenced.T @ fenced), gradient)
            rise = float(gradient @ step)
            if not rise > _CLOSE:
                break
            length = longest_step(chance, linear @ step, room, rows @ step)
            before = self._objective(count, chance, room, tangent, everywhere)
            while length > 1e-6:
                moved = x + length * step
                new_chance, new_room = linear @ moved + constant, bound - rows @ moved
                if np.all(new_chance > 0.0) and np.all(new_room > 1e-14):
                    tried = self._tangent(moved, periods)
                    there = np.maximum(functions.linear @ moved + functions.constant, 1e-12)
                    after = self._objective(count, new_chance, new_room, tried, there)
                    if after >= before + 0.1 * length * rise or rise < 1e-4:
                        break
                length *= 0.5
            else:
                break
            x, tangent = moved, tried
        return x

    @staticmethod
    def _objective(
        count: FloatArray, chance: FloatArray, room: FloatArray, tangent: Tangent, everywhere: FloatArray
    ) -> float:
        fence = BARRIER * float(np.log(room).sum())
        return float(count @ np.log(chance)) + tangent.level + float(tangent.tilt @ everywhere) + fence


def weigh_terms(shares: FloatArray, base: FloatArray, most: float) -> float:
    """Σ π·(base − log π) − most, rounded down."""
    used = shares > 0.0
    terms = shares[used] * base[used]
    entropy = -float((shares[used] * np.log(shares[used])).sum())
    return float(terms.sum()) + entropy - most - 1e-9 - 1e-14 * (float(np.abs(terms).sum()) + abs(most))


def _shares(logits: FloatArray) -> FloatArray:
    """Shares in proportion to exp(logits); tiny ones are left out."""
    found: FloatArray = np.exp(logits - logits.max())
    found[found < 1e-6] = 0.0
    found /= found.sum()
    return found
