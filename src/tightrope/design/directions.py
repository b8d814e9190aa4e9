"""Directions in parameter space that make up a gap, and their weights.

With visits η and values V of a policy let v_c = Σ_s' ∇p(s'|c)·V(s'), so ∇V = Σ_c η(c)·v_c. With the support
function h of a small region, the policy's interval has to first order the width Σ_c η(c)·(h(v_c) + h(−v_c))
if nature picks per choice, h(∇V) + h(−∇V) if it picks once, and the sum over expressions if each probability
has an interval. Over {Δᵀ·M·Δ ≤ K} that is 2·√K·Φ(M), Φ(M) = Σ_k w_k·‖u_k‖_{M⁻¹}, which is convex in M.

*Information*, Fisher's, of visits about the free parameters at one point. One visit of choice c has I_c = Σ_j
∇p_j·∇p_jᵀ/p_j, whatever happened before. So an episode has M(ρ) = Σ_c occupancy_ρ(c)·I_c = Aᵀ·diag(w_e/p_e)·A
with A_e = ∇p_e and expected visits w_e, linear in the occupancy; counts K have Σ_e K_e/p_e²·A_e·A_eᵀ.
Expressions that are 0 at the point are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from tightrope.coupled.chain import Chain
from tightrope.coupled.taylor import ValueGradient
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray, OffsetArray, offsets, stretches
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
    def extent(self) -> FloatArray:
        """The widths of the domain."""
        coordinates = self.maximiser.coordinates
        return np.maximum((coordinates.upper - coordinates.lower)[: self.size], 1e-300)

    @property
    def names(self) -> tuple[str, ...]:
        """The free parameters."""
        return tuple(self.model.parameters.names[i] for i in self.maximiser.coordinates.free)

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


# --- directions --------------------------------------------------------------------------

_COLLINEAR = 1e-7
_NEGLIGIBLE = 1e-7
"""Of the total weight: directions that carry less are left out, all of them together."""


class Criterion(Protocol):
    """A convex function of the information matrix that a design makes small."""

    def value(self, matrix: FloatArray) -> float: ...

    def slope(self, matrix: FloatArray) -> FloatArray:
        """−∇ at the matrix: positive semidefinite."""
        ...

    def unit(self, value: float) -> float:
        """What a distance from the best is measured by."""
        ...


@dataclass(frozen=True, eq=False)
class Directions:
    """Unit vectors in the free parameters [n, d], none collinear with another, heaviest first."""

    vector: FloatArray
    weight: FloatArray

    @staticmethod
    def merged(vectors: FloatArray, weight: FloatArray) -> Directions:
        """Σ weight·‖·‖ over these vectors, collinear ones as one."""
        length = np.linalg.norm(vectors, axis=1)
        size = weight * length
        nonzero = size > 0.0
        size, unit = size[nonzero], vectors[nonzero] / length[nonzero, None]
        if not len(size):
            return Directions(np.zeros((0, vectors.shape[1])), np.zeros(0))
        leading = np.take_along_axis(unit, np.abs(unit).argmax(axis=1)[:, None], axis=1)
        unit = unit * np.sign(leading)
        _, first, group = np.unique(
            np.rint(unit / _COLLINEAR), axis=0, return_index=True, return_inverse=True
        )
        total = np.bincount(group.reshape(-1), weights=size)
        order = np.argsort(-total, kind="stable")
        share = np.cumsum(total[order][::-1])[::-1] / total.sum()
        order = order[share > _NEGLIGIBLE]
        return Directions(unit[first[order]], total[order])

    @staticmethod
    def together(*parts: tuple[float, Directions]) -> Directions:
        """A weighted sum of the widths of several sets of directions."""
        vectors = np.concatenate([part.vector for _, part in parts])
        return Directions.merged(vectors, np.concatenate([factor * part.weight for factor, part in parts]))

    def __len__(self) -> int:
        return len(self.weight)

    def lengths(self, matrix: FloatArray) -> FloatArray:
        """‖u_k‖ in the norm of the matrix's inverse; infinite where the matrix knows nothing of u_k."""
        solved, known = _solve(matrix, self.vector)
        square = np.einsum("kd,kd->k", self.vector, solved)
        return np.where(known, np.sqrt(np.maximum(square, 0.0)), np.inf)

    def value(self, matrix: FloatArray) -> float:
        """Φ = Σ w_k·‖u_k‖_{M⁻¹}."""
        return float(self.weight @ self.lengths(matrix)) if len(self) else 0.0

    def slope(self, matrix: FloatArray) -> FloatArray:
        """½·M⁻¹·(Σ w_k·u_k·u_kᵀ/‖u_k‖)·M⁻¹."""
        solved, _ = _solve(matrix, self.vector)
        length = np.sqrt(np.maximum(np.einsum("kd,kd->k", self.vector, solved), 1e-300))
        result: FloatArray = 0.5 * (solved * (self.weight / length)[:, None]).T @ solved
        return result

    def unit(self, value: float) -> float:
        return value


@dataclass(frozen=True)
class EveryDirection:
    """−log det M: all directions alike (D-optimality), where no policy has a finite guarantee yet."""

    size: int

    def value(self, matrix: FloatArray) -> float:
        sign, logarithm = np.linalg.slogdet(matrix)
        return -float(logarithm) if sign > 0 else np.inf

    def slope(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)

    def unit(self, value: float) -> float:
        return float(self.size)


def find_directions(
    information: Information, objective: Objective, policy: Policy, *, coupled: bool
) -> Directions | None:
    """The directions of a policy's interval at the point; None where its value is infinite there."""
    functions = information.maximiser.functions
    value = ValueGradient.of(information.model, objective, policy, functions)
    if value is None:
        return None
    jacobian = information.maximiser.jacobian(information.point).reshape(-1, information.size)
    if coupled:
        gradient = value.at(information.lifted)
        return None if gradient is None else Directions.merged((gradient @ jacobian)[None], np.ones(1))
    terms = value.terms(information.lifted)
    if terms is None:
        return None
    place, count = _places(value.chain, policy)
    parts = [_by_choice(value, information.slope, place, count, *term) for term in terms]
    return Directions.merged(
        np.concatenate([np.zeros((0, information.size)), *(vector for vector, _ in parts)]),
        np.concatenate([np.zeros(0), *(weight for _, weight in parts)]),
    )


def expression_directions(
    information: Information, objective: Objective, policy: Policy, matrix: FloatArray
) -> Directions | None:
    """Directions where nature picks each probability in its own interval: those of the expressions."""
    functions = information.maximiser.functions
    value = ValueGradient.of(information.model, objective, policy, functions)
    terms = None if value is None else value.terms(information.lifted)
    if value is None or terms is None:
        return None
    slope, chain = information.slope, value.chain
    solved, _ = _solve(matrix, slope)
    width = np.sqrt(np.maximum(np.einsum("ed,ed->e", slope, solved), 0.0))[chain.expression]
    place, _ = _places(chain, policy)
    total = np.zeros(len(slope))
    for visits, values in terms:
        there = values[chain.successor]
        away = np.abs(there - _medians(place, there, width)[place])
        weight = visits[chain.row_of_entry] * chain.weight * away
        total += np.bincount(chain.expression, weights=weight, minlength=len(slope))
    return Directions.merged(slope, total)


def _medians(group: OffsetArray, values: FloatArray, weight: FloatArray) -> FloatArray:
    """The weighted median of the values of every group."""
    order = np.lexsort((values, group))
    sums = np.cumsum(weight[order])
    ends = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 1), side="right")
    first, total = np.append(0, ends[:-1]), np.append(0.0, sums)
    middle = np.searchsorted(sums, 0.5 * (total[first] + total[ends]))
    result: FloatArray = values[order][np.clip(middle, first, np.maximum(ends - 1, first))]
    return result


def _by_choice(
    value: ValueGradient,
    slope: FloatArray,
    place: OffsetArray,
    count: int,
    visits: FloatArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """(v_c, η(c)) of every choice that the chain takes; the policy's probability is part of v_c."""
    chain = value.chain
    entry = chain.weight * values[chain.successor]
    matrix = csr_array((entry, (place, chain.expression)), shape=(count, len(slope)))
    row = np.zeros(count, np.int64)
    row[place] = chain.row_of_entry
    vector: FloatArray = matrix @ slope
    scale = visits[row]
    # ΣΔp = 0 at a choice, so that sums of equal values cancel: what is left of rounding is no direction.
    noise = 1e-13 * float(np.abs(values).max(initial=0.0)) * float(np.abs(slope).max(initial=0.0))
    real = (scale > 0.0) & (np.abs(vector).max(axis=1, initial=0.0) > noise)
    return vector[real], scale[real]


def _places(chain: Chain, policy: Policy) -> tuple[OffsetArray, int]:
    """For every entry of the chain the number of the choice it belongs to, among those that are taken."""
    structure = policy.structure
    used = np.flatnonzero(policy.probability > 0)
    lengths = np.diff(structure.transition_start)[used]
    of_state = np.searchsorted(structure.choice_state[used], np.arange(structure.states + 1))
    entry = stretches(offsets(lengths)[of_state[:-1]][chain.state], np.diff(chain.row_start))
    return np.repeat(np.arange(len(used)), lengths)[entry], len(used)


def _solve(matrix: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(M⁻¹·u per vector, whether u lies in the range of M)."""
    values, basis = np.linalg.eigh(matrix)
    largest = float(values.max(initial=0.0))
    usable = values > 1e-13 * largest
    along = vectors @ basis
    solved: FloatArray = (along * np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)) @ basis.T
    known = np.linalg.norm(along[:, ~usable], axis=1) <= 1e-7
    return solved, known


MOST_COMBINATIONS = 3
LEAST_SHARE = 0.05
_NO_INFORMATION = 1e-11
"""Relative eigenvalue, in the scale of the domain's box."""


@dataclass(frozen=True)
class Combination:
    """A linear combination of free parameters, and its share of the gap.

    >>> Combination("p + 0.5*q", 0.9).text
    'p + 0.5*q'
    """

    text: str
    share: float


def main_combinations(
    information: Information, directions: Directions, matrix: FloatArray
) -> tuple[Combination, ...]:
    """Uncorrelated combinations that the gap hangs on (axes in the norm of M⁻¹), with their shares."""
    if not len(directions):
        return ()
    values, basis = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 1e-300))
    flat = directions.vector @ basis / root
    length = np.linalg.norm(flat, axis=1)
    scatter = (flat * (directions.weight / np.maximum(length, 1e-300))[:, None]).T @ flat
    size, axes = np.linalg.eigh(scatter)
    combinations: list[Combination] = []
    for k in np.argsort(-size)[:MOST_COMBINATIONS].tolist():
        share = float(size[k] / max(size.sum(), 1e-300))
        if share >= LEAST_SHARE or not combinations:
            combinations.append(
                Combination(write_combination(information, basis @ (root * axes[:, k])), share)
            )
    return tuple(combinations)


def blind_combinations(
    matrix: FloatArray, information: Information, directions: Directions
) -> tuple[str, ...]:
    """Combinations that the directions need and that data with this information tell nothing about."""
    extent = information.extent
    values, basis = np.linalg.eigh(matrix * np.outer(extent, extent))
    blind = basis[:, values <= _NO_INFORMATION * max(float(values.max(initial=0.0)), 1e-300)]
    if not blind.shape[1]:
        return ()
    scaled = directions.vector * extent
    seen = scaled @ blind
    missed = np.linalg.norm(seen, axis=1) > 1e-6 * np.linalg.norm(scaled, axis=1)
    if not np.any(missed):
        return ()
    _, _, axes = np.linalg.svd(seen[missed] * directions.weight[missed, None], full_matrices=False)
    return tuple(write_combination(information, (blind @ axis) / extent) for axis in axes[:MOST_COMBINATIONS])


def write_combination(information: Information, combination: FloatArray) -> str:
    """A combination with leading coefficient 1, without what matters less than a hundredth of it."""
    matters = np.abs(combination) * information.extent
    largest = int(matters.argmax())
    terms = []
    scaled = combination / combination[largest]
    for name, weight, matters_enough in zip(
        information.names, scaled, matters >= 0.01 * matters[largest], strict=True
    ):
        if not matters_enough:
            continue
        size = "" if abs(abs(weight) - 1.0) < 0.005 else f"{abs(weight):.2g}*"
        terms.append((f"{size}{name}", weight < 0))
    text = "".join(
        f"-{body}" if negative and not place else body if not place else f" {'-' if negative else '+'} {body}"
        for place, (body, negative) in enumerate(terms)
    )
    return text
