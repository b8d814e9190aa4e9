"""The Fisher information of visits about the free parameters, at one point.

One visit of choice c has I_c = Σ_j ∇p_j·∇p_jᵀ/p_j, whatever happened before. So an episode has M(ρ) = Σ_c
occupancy_ρ(c)·I_c = Aᵀ·diag(w_e/p_e)·A with A_e = ∇p_e and expected visits w_e, linear in the occupancy;
counts K have Σ_e K_e/p_e²·A_e·A_eᵀ. Expressions that are 0 at the point are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes

_LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True, eq=False)
class Information:
    """At free parameters `point`: `probability` of each expression and its `slope`, ∂p_e/∂t [E, d]."""

    model: ParametricMDP
    maximiser: LikelihoodMaximiser
    point: FloatArray
    probability: FloatArray
    slope: FloatArray

    @staticmethod
    def at(model: ParametricMDP, point: FloatArray) -> Information:
        """The information at free parameters (`Coordinates.free`), strictly inside the domain."""
        maximiser, functions = Outcomes.of(model).maximiser, Outcomes.of(model).functions
        t = np.asarray(point, dtype=np.float64)
        probability = functions.chances(maximiser.lifted(t))
        slope: FloatArray = functions.linear @ maximiser.jacobian(t).reshape(-1, len(t))
        return Information(model, maximiser, t, probability, slope)

    @property
    def size(self) -> int:
        """The number of free parameters."""
        return len(self.point)

    @property
    def names(self) -> tuple[str, ...]:
        """The free parameters."""
        parameters = self.model.parameters
        return tuple(parameters.names[i] for i in self.maximiser.coordinates.free)

    @cached_property
    def lifted(self) -> FloatArray:
        """All coordinates of the point."""
        return self.maximiser.lifted(self.point)

    @cached_property
    def smoothing(self) -> FloatArray:
        """The curvature that the smoothing of the estimate adds: ½·Σ_faces a·aᵀ/room²."""
        return self.maximiser.smoothing_at(self.point)

    def of_counts(self, count: FloatArray) -> FloatArray:
        """The observed information of outcomes, counted by expression."""
        return self._weigh(count / self._possible**2)

    def of_visits(self, occupancy: FloatArray) -> FloatArray:
        """The expected information of visits, one number of them per choice."""
        signatures = self.model.signatures
        visits = np.bincount(signatures.of_choice, weights=occupancy, minlength=len(signatures))
        slot = np.repeat(visits, np.diff(signatures.start))
        of_expression = np.bincount(signatures.expression, weights=slot, minlength=len(self.probability))
        return self._weigh(of_expression / self._possible)

    def rewards(self, curvature: FloatArray) -> FloatArray:
        """tr(C·I_c) per choice: what a visit is worth where information counts by C."""
        worth = np.einsum("ei,ij,ej->e", self.slope, curvature, self.slope) / self._possible
        signatures = self.model.signatures
        total: FloatArray = np.add.reduceat(worth[signatures.expression], signatures.start[:-1])
        return np.maximum(total, 0.0)[signatures.of_choice]

    def room(self, step: FloatArray) -> float:
        """The largest share of a step from the point that stays within the domain, at most 1."""
        rows, bounds = self.maximiser.faces
        along, left = rows @ step, bounds - rows @ self.point
        hits = along > 0.0
        return min(1.0, float(np.min(left[hits] / along[hits], initial=1.0)))

    @cached_property
    def _possible(self) -> FloatArray:
        return np.where(self.probability > _LEAST_PROBABILITY, self.probability, np.inf)

    def _weigh(self, weight: FloatArray) -> FloatArray:
        return (self.slope * weight[:, None]).T @ self.slope
