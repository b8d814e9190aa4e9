"""Guarantees for units that differ: for most units, for the next one, and for the average one.

Units 1..G have values V_1, …, V_G, drawn independently from one unknown law. Each has a lower bound L_i from
its own rows, with P(L_i > V_i) ≤ m given the unit. Nothing is assumed about the law. (Upper bounds by signs.)

**Most units.** Let q be the ρ-quantile of the law: P(V ≤ q) ≥ ρ and P(V < q) ≤ ρ. A unit with V_i ≤ q and a
bound that holds has L_i ≤ q, so P(L_i ≤ q) ≥ ρ(1 − m), independently for all units. If the k-th smallest
bound L_(k) exceeds q, at most k − 1 bounds are ≤ q, which has probability at most P(Bin(G, ρ(1 − m)) ≤
k − 1). If that is at most δ then, with confidence 1 − δ, a share of at least 1 − ρ of all units has a value
of at least L_(k).

**The next unit.** Let its value be v, and u = P(V ≤ v) for another unit. Given v, each of the G units has
L_i ≤ v with probability at least u(1 − m), and u is stochastically at least uniform on [0, 1]. So

    P(v < L_(k)) ≤ ∫₀¹ P(Bin(G, u(1 − m)) ≤ k − 1) du ≤ (1/(1 − m)) ∫₀¹ P(Bin(G, x) ≤ k − 1) dx
                 = k / ((G + 1)(1 − m)).

**Predictions from other units.** L_i may use the rows of units before it, in an order that is fixed in
advance: given these, P(L_i ≤ q) ≥ ρ(1 − m) still holds, and a sequence of indicators whose conditional
probabilities are at least p has a sum that is stochastically at least Bin(G, p).

**A policy chosen on the same units.** Let B_i be a box that contains the parameters of unit i with
probability at least 1 − m, a function of the rows of that unit alone, and H the smallest box that contains
all B_i. Of the units that reach a side of H, the first ones by name determine H; let k be their number.
Removing others does not change them, and a further unit changes them only if its box leaves H. So (Campi and
Garatti 2023, preferent compression) with confidence 1 − δ a new unit's box leaves H with probability at most
ε(k), where (δ/G) Σ_{j=k}^{G−1} C(j, k)/C(G, k) (1 − ε)^{j−G} = 1. A unit with parameters outside of H whose
box holds has a box that leaves H: parameters are outside with probability at most ε(k)/(1 − m). Whatever is
chosen by H and bounded over H then holds for a share of at least 1 − ε(k)/(1 − m) of all units.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, gammaln

from tightrope.numerics.arrays import OffsetArray
from tightrope.verdict import Assumed

MISS = 0.2
"""m, the probability with which the bound of one unit may fail. Between 0.1 and 0.35 little depends on it."""

_SAFE = 1.0 + 1e-9
"""Above the relative error of the tails."""


def order_of_most(units: int, share: float, delta: float, miss: float = MISS) -> int:
    """The largest k whose k-th smallest bound holds for a share of all units with confidence 1 − delta; 0 if
    there are too few units.

    >>> order_of_most(100, 0.9, 0.1), order_of_most(20, 0.8, 0.1), order_of_most(20, 0.9, 0.1)
    (5, 1, 0)
    """
    tail = bdtr(np.arange(units, dtype=np.float64), units, (1.0 - share) * (1.0 - miss)) * _SAFE
    return int(np.count_nonzero(tail[:units] <= delta))


def units_for(share: float, delta: float, miss: float = MISS) -> int:
    """How many units a bound for a share of them needs at least.

    >>> units_for(0.9, 0.1)
    28
    """
    return math.ceil(math.log(delta) / math.log1p(-(1.0 - share) * (1.0 - miss)))


def order_of_next(units: int, delta: float, miss: float = MISS) -> int:
    """The largest k whose k-th smallest bound holds for the next unit with probability 1 − delta, or 0.

    >>> order_of_next(100, 0.1), order_of_next(20, 0.1), order_of_next(5, 0.1)
    (8, 1, 0)
    """
    return min(math.floor(delta * (units + 1) * (1.0 - miss) / _SAFE), units)


def chance_of_next(units: int, k: int, miss: float = MISS) -> float:
    """The probability, at least, with which the next unit satisfies the k-th smallest bound of G units."""
    return max(0.0, 1.0 - _SAFE * k / ((units + 1) * (1.0 - miss)))


def support_risk(units: int, support: int, delta: float) -> float:
    """ε(k): with confidence 1 − delta, the probability at most that a new unit changes what k = `support` of
    the units determine.

    >>> round(support_risk(100, 4, 0.1), 4), support_risk(5, 5, 0.1)
    (0.108, 1.0)
    """
    if support >= units:
        return 1.0
    j = np.arange(support, units, dtype=np.float64)
    logs = gammaln(j + 1.0) - gammaln(j - support + 1.0)
    logs -= gammaln(units + 1.0) - gammaln(units - support + 1.0)

    def excess(rate: float) -> float:
        """log of (δ/G) Σ … at 1 − ε = exp(−rate); rises in the rate."""
        terms = logs + (units - j) * rate
        top = float(terms.max())
        return math.log(delta / units) + top + math.log(float(np.exp(terms - top).sum()))

    if excess(0.0) >= 0.0:
        return 0.0
    rate = float(brentq(excess, 0.0, 60.0, xtol=1e-14))
    return min(1.0, -math.expm1(-rate) + 1e-9)


def all_have_a_unit(unit: OffsetArray, column: str) -> tuple[Assumed, ...]:
    """What is not known where episodes have no unit (−1) and are left out."""
    missing = int(np.count_nonzero(unit == -1))
    if not missing:
        return ()
    words = f"{missing:,} of {len(unit):,} episodes have no '{column}'; left out, perhaps for how they ended"
    return (Assumed.unverified("units of episodes", words),)
