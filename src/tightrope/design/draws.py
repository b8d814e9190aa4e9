"""Numbers of draws per choice for a generative model, in which every choice can be sampled.

Experiments are signatures; a draw has the information I_i = F_iᵀF_i, F_i = ∇p/√p. The design minimises Φ =
Σ_k w_k·‖v_k‖_{M⁻¹} over shares of the money. One direction without a past: Elfving's theorem, a cone program.
Otherwise multiplicative steps, within `optimality` of the best by the slope. A tenth is spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.design.directions import Criterion, Directions, Information
from tightrope.errors import InputError
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.linear_program import least_norms

EVENLY = 0.1
"""The share of draws that all signatures get alike."""

CLOSE = 0.005
"""Distance from the best at which steps end."""
STEPS = 4000
MOST_DIRECTIONS = 12
"""The heaviest, whose own best shares are what steps begin with."""
NEGLIGIBLE = 1e-12
"""Probabilities below this carry no finite information and are left out."""


@dataclass(frozen=True, eq=False)
class Experiments:
    """Signatures that tell something: `signature[i]` has the factor `factors[i]`, a draw costs `price[i]`."""

    signature: OffsetArray
    factors: tuple[FloatArray, ...]
    price: FloatArray

    @staticmethod
    def of(known: Information, price: FloatArray | None = None) -> Experiments:
        """Those of a model at an estimate; `price` is per signature, 1 by default."""
        signatures = known.model.signatures
        signatures_told: list[int] = []
        factors: list[FloatArray] = []
        for number in range(len(signatures)):
            rows = signatures.expression[signatures.start[number] : signatures.start[number + 1]]
            rows = rows[known.probability[rows] > NEGLIGIBLE]
            factor = _compact(known.slope[rows] / np.sqrt(known.probability[rows])[:, None])
            if len(factor):
                signatures_told.append(number)
                factors.append(factor)
        which = np.array(signatures_told, dtype=np.int64)
        cost = np.ones(len(which)) if price is None else np.asarray(price, dtype=np.float64)[which]
        return Experiments(which, tuple(factors), cost)

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def information(self) -> FloatArray:
        """I_i, one matrix per experiment."""
        return np.array([factor.T @ factor for factor in self.factors])


@dataclass(frozen=True, eq=False)
class DrawDesign:
    """Shares of draws; `best` lacks the even tenth and loses at most `optimality` of the least width."""

    experiments: Experiments
    share: FloatArray
    best: FloatArray
    matrix: FloatArray
    optimality: float
    steps: int

    def draws(self, total: int, signatures: int) -> OffsetArray:
        """Whole numbers of draws for all signatures of the model."""
        drawn = np.zeros(signatures, dtype=np.int64)
        drawn[self.experiments.signature] = whole_draws(self.share, total)
        return drawn


def design_draws(
    experiments: Experiments, criterion: Criterion, past: FloatArray, spend: float
) -> DrawDesign:
    """The shares of draws that make Φ(past + spend·information per money) smallest."""
    if len(experiments) == 0:
        raise InputError("no choice of the model depends on a parameter, so draws give no information")
    if np.any(experiments.price <= 0.0) or not np.all(np.isfinite(experiments.price)):
        raise InputError("the price of a draw must be a positive number")
    each = experiments.information
    even = np.full(len(experiments), 1.0 / len(experiments))
    heaviest = criterion.vector[:MOST_DIRECTIONS] if isinstance(criterion, Directions) else np.zeros((0, 0))
    apart = [elfving(experiments, direction) for direction in heaviest]
    known = [shares for shares in apart if shares is not None]
    if isinstance(criterion, Directions) and len(criterion) == 1 and not np.any(past):
        if not known:
            raise unidentifiable()
        money, distance = known[0]
        steps = 0
    else:
        first = np.mean([shares for shares, _ in known], axis=0) if known else even
        per_money = each / experiments.price[:, None, None]
        money, distance, steps = _improve(per_money, criterion, past, spend, 0.9 * first + 0.1 * even)
    draws = money / experiments.price
    best: FloatArray = draws / draws.sum()
    share: FloatArray = (1.0 - EVENLY) * best + EVENLY * even
    return DrawDesign(experiments, share, best, np.tensordot(share, each, 1), distance, steps)


def elfving(experiments: Experiments, direction: FloatArray) -> tuple[FloatArray, float] | None:
    """Best shares of money for one direction without a past, and their distance; None without information."""
    weight = np.sqrt(experiments.price)
    norms = least_norms(experiments.factors, weight, direction)
    if norms is None or norms.norm.sum() == 0.0:
        return None
    spent = weight * norms.norm
    spent = np.where(spent > 1e-9 * spent.sum(), spent, 0.0)
    share: FloatArray = spent / spent.sum()
    reached = _length(experiments, share, direction)
    return share, max(reached / norms.bound - 1.0, 0.0) if norms.bound > 0.0 else np.inf


def whole_draws(share: FloatArray, total: int) -> OffsetArray:
    """Whole numbers with these shares that sum to the total: the largest remainders get one more."""
    exact = share / share.sum() * total
    whole: OffsetArray = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def unidentifiable() -> InputError:
    """No draw tells anything about a direction that matters."""
    return InputError(
        "no choice depends on the parameters that the value depends on, so draws give no information",
        hint="'tightrope info' lists the expressions; a parameter that only constants meet cannot be learned",
    )


def _length(experiments: Experiments, money: FloatArray, direction: FloatArray) -> float:
    """‖v‖_{M⁻¹} for one unit of money, within the range of M (best shares are often singular)."""
    used: BoolArray = money > 0.0
    information = np.zeros((len(direction), len(direction)))
    for factor, share, price in zip(experiments.factors, money, experiments.price, strict=True):
        if share > 0.0:
            information += share / price * (factor.T @ factor)
    size, axes = np.linalg.eigh(information)
    seen = size > 1e-9 * size[-1]
    along = axes[:, seen].T @ direction
    missed = np.linalg.norm(direction - axes[:, seen] @ along)
    if not used.any() or missed > 1e-4 * np.linalg.norm(direction):
        return np.inf
    return float(np.sqrt((along**2 / size[seen]).sum()))


def _improve(
    each: FloatArray, criterion: Criterion, past: FloatArray, spend: float, share: FloatArray
) -> tuple[FloatArray, float, int]:
    """Multiplicative steps on shares of the money, until the distance from the best is small."""
    best, distance, steps = share, np.inf, 0
    for number in range(STEPS):
        total = past + spend * np.tensordot(share, each, 1)
        gain = np.einsum("iab,ab->i", each, criterion.slope(total))
        mean = float(share @ gain)
        unit = max(criterion.unit(criterion.value(total)), 1e-300)
        apart = spend * (float(gain.max()) - mean) / unit
        if apart < distance:
            best, distance, steps = share, apart, number
        if distance <= CLOSE or mean <= 0.0:
            break
        share = share * np.sqrt(np.maximum(gain, 0.0))
        share = share / share.sum()
    return best, float(distance), steps


def _compact(factor: FloatArray) -> FloatArray:
    """Fewest rows with the same FᵀF; none where the factor is zero."""
    if len(factor) == 0:
        return factor
    _, length, directions = np.linalg.svd(factor, full_matrices=False)
    seen: Sequence[bool] = (length > 1e-10 * max(length.max(initial=0.0), 1e-300)) & (length > 0.0)
    compact: FloatArray = length[seen, None] * directions[seen]
    return compact
