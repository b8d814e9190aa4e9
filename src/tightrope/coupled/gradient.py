"""How a policy's value changes with the parameters: ∇V at a point, from one solve and its transpose.

At probabilities p of the expressions the chain's values solve V = r + P(p)·V. With η the expected number of
visits of each row from the initial one, ηᵀ = e₀ᵀ(I − P)⁻¹,

    ∂V(initial)/∂p_e = Σ over entries of expression e of  η(row)·weight·V(successor),

and coordinates x follow by the chain rule, p = constant + linear·x. Step-bounded objectives are unrolled and
differentiated backwards, step by step. Everything is plain float64: a gradient only says where to look (which
cuts to make, which bets to place), and no bound rests on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.coupled.chain import Chain, chain_of
from tightrope.coupled.linear_systems import build_matrix
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.value_slopes import Solved
from tightrope.statistics.coordinates import AffineFunctions

_MOST_STORED = 50_000_000
"""Values kept while a step-bounded objective is unrolled; beyond that it has no gradient."""


@dataclass(frozen=True, eq=False)
class ValueGradient:
    """The value of a fixed policy as a function of coordinates, to first order at any point."""

    chain: Chain
    functions: AffineFunctions
    sign: float

    @staticmethod
    def of(
        model: ParametricMDP, objective: Objective, policy: Policy, functions: AffineFunctions
    ) -> ValueGradient | None:
        """None where the value is infinite whatever the parameters, too long to unroll, or of rewards with
        parameters."""
        if isinstance(objective.reward, ParametricReward):
            return None
        chain = chain_of(model, objective, policy)
        if isinstance(chain, str) or sum(p.steps for p in chain.phases) * chain.rows > _MOST_STORED:
            return None
        return ValueGradient(chain, functions, -1.0 if objective.complement else 1.0)

    def at(self, x: FloatArray) -> FloatArray | None:
        """∂V/∂x of the reported value at coordinates x; None where the equations are singular there."""
        terms = self.terms(x)
        if terms is None:
            return None
        slopes = np.zeros(len(self.functions))
        for visits, values in terms:
            slopes += self._spread(visits, values)
        gradient: FloatArray = self.sign * (slopes @ self.functions.linear)
        return gradient if bool(np.all(np.isfinite(gradient))) else None

    def terms(self, x: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]] | None:
        """What the slope by expressions is a sum of: (visits of every row, values where its entries lead),
        one pair per step of a step-bounded objective and one for the equations; None where these are
        singular at x.
        """
        chain = self.chain
        probability = np.clip(self.functions.linear @ x + self.functions.constant, 0.0, 1.0)
        matrix = build_matrix(chain, chain.weight * probability[chain.expression])
        base = None if chain.start is not None else _solve(chain, matrix)
        first = chain.start if base is None else base.values
        return None if first is None else self._terms(matrix, base, first)

    def _terms(
        self, matrix: Any, base: Solved | None, first: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        chain = self.chain
        values: list[FloatArray] = [first]
        for phase in chain.phases:
            for _ in range(phase.steps):
                values.append(np.where(phase.fixed, phase.value, chain.reward + matrix @ values[-1]))
        weight = np.zeros(chain.rows)
        weight[chain.initial] = 1.0
        step = len(values) - 1
        transposed = matrix.T.tocsr() if chain.phases else None
        for phase in reversed(chain.phases):
            for _ in range(phase.steps):
                step -= 1
                weight = np.where(phase.fixed, 0.0, weight)
                yield weight, values[step]
                assert transposed is not None
                weight = transposed @ weight
        if base is not None:
            yield base.visits(weight), values[0]

    def _spread(self, visits: FloatArray, values: FloatArray) -> FloatArray:
        """Σ visits(row)·weight·values(successor) over the entries of each expression."""
        chain = self.chain
        terms = visits[chain.row_of_entry] * chain.weight * values[chain.successor]
        found = np.bincount(chain.expression, weights=terms, minlength=len(self.functions))
        return found.astype(np.float64)


def _solve(chain: Chain, matrix: Any) -> Solved | None:
    known = np.where(chain.fixed, chain.value, 0.0)
    return Solved.of(matrix, chain.reward, known, np.flatnonzero(~chain.fixed), chain.acyclic)
