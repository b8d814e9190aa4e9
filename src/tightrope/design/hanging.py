"""What a gap hangs on, in words: combinations of parameters, and those that no data tell anything about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.design.directions import Directions
from tightrope.design.episodes import Episodes
from tightrope.design.information import Information
from tightrope.numerics.arrays import FloatArray

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
    """The combinations that the gap hangs on, given this information.

    With u_k scaled to length √(w_k·‖u_k‖_{M⁻¹}), the principal axes in the norm of M⁻¹ are uncorrelated
    combinations, and their shares sum to 1.
    """
    if not len(directions):
        return ()
    values, basis = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 1e-300))
    flat = directions.vector @ basis / root
    length = np.linalg.norm(flat, axis=1)
    scatter = (flat * (directions.weight / np.maximum(length, 1e-300))[:, None]).T @ flat
    size, axes = np.linalg.eigh(scatter)
    found: list[Combination] = []
    for k in np.argsort(-size)[:MOST_COMBINATIONS].tolist():
        share = float(size[k] / max(size.sum(), 1e-300))
        if share >= LEAST_SHARE or not found:
            found.append(Combination(write_combination(information, basis @ (root * axes[:, k])), share))
    return tuple(found)


def without_information(
    episodes: Episodes, information: Information, directions: Directions
) -> tuple[str, ...]:
    """Combinations that the directions need and that no policy's episodes tell anything about."""
    reachable = episodes.reachable.astype(np.float64)
    return blind_combinations(information.of_visits(reachable), information, directions)


def blind_combinations(
    matrix: FloatArray, information: Information, directions: Directions
) -> tuple[str, ...]:
    """Combinations that the directions need and that data with this information tell nothing about."""
    coordinates = information.maximiser.coordinates
    extent = np.maximum((coordinates.upper - coordinates.lower)[: information.size], 1e-300)
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
    """A combination, the coefficient of what matters most being 1; what matters less than a hundredth of it,
    given the ranges of the domain, is left out.
    """
    coordinates = information.maximiser.coordinates
    extent = (coordinates.upper - coordinates.lower)[: information.size]
    matters = np.abs(combination) * extent
    largest = int(matters.argmax())
    terms = []
    scaled = combination / combination[largest]
    for name, weight, kept in zip(information.names, scaled, matters >= 0.01 * matters[largest], strict=True):
        if not kept:
            continue
        size = "" if abs(abs(weight) - 1.0) < 0.005 else f"{abs(weight):.2g}*"
        terms.append((f"{size}{name}", weight < 0))
    text = "".join(
        f"-{body}" if negative and not place else body if not place else f" {'-' if negative else '+'} {body}"
        for place, (body, negative) in enumerate(terms)
    )
    return text
