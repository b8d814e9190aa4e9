"""Which way to bet: the least favourable direction for a linear function, with the domain's help.

A bet along h narrows n·θ, n = I·h up to its length, to a half width √(2L·nᵀI⁻¹n) around the estimate t̂ (I the
information that the data will hold, L = log(1/α)). For a bound on c·θ from above, any n = −c + Rᵀν with ν ≥ 0
will do where R·θ ≤ r holds on the domain:

    c·θ = ν·Rθ − n·θ ≤ ν·r − n·t̂ + half width  =  c·t̂ + ν·(r − R·t̂) + √(2L·nᵀI⁻¹n).

The best ν minimises the right side, a convex function; one ν at a time has its minimum in closed form, and a
few rounds over the faces end near the best of all. Where no face is near, ν = 0 and n = ∓c. Whatever comes
out is a sound direction: it decides where the region is narrow, never whether it holds.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import FloatArray

_ROUNDS = 400
_CLOSE = 1e-13
_BITS = 12
"""Significant bits of every component of a bet: few, so that rational arithmetic stays short."""


def with_the_domains_help(
    wanted: FloatArray, inverse: FloatArray, faces: FloatArray, room: FloatArray, level: float
) -> FloatArray:
    """n = wanted + facesᵀ·ν with ν ≥ 0 that minimises √(2·level·nᵀ·inverse·n) + ν·room."""
    scale = math.sqrt(2.0 * level)
    bent = inverse @ faces.T
    square = np.einsum("kj,jk->k", faces, bent)
    useful = np.flatnonzero((square > 0.0) & (room < scale * np.sqrt(np.maximum(square, 0.0))))
    share = np.zeros(len(room))
    normal = wanted.copy()
    for _ in range(_ROUNDS):
        before = share.copy()
        for k in useful.tolist():
            own = share[k]
            rest = normal - own * faces[k]
            middle = float(rest @ bent[:, k]) / square[k]
            spread = max(float(rest @ inverse @ rest) / square[k] - middle**2, 0.0)
            slope = float(room[k]) / (scale * math.sqrt(square[k]))
            best = max(0.0, -middle - math.sqrt(spread) * slope / math.sqrt(1.0 - slope**2))
            if best != own:
                share[k] = best
                normal = rest + best * faces[k]
        if np.all(np.abs(share - before) <= _CLOSE * (1.0 + np.abs(share))):
            break
    return normal


def shortened(vector: FloatArray) -> FloatArray:
    """Every component rounded to 12 significant bits."""
    mantissa, exponent = np.frexp(vector)
    result: FloatArray = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return result
