"""Models of coupled values on the cells of a file, for the problem that the file has now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from adversary.archive import Forgery
from tightrope_check.archive import load
from tightrope_check.arrays import FloatArray
from tightrope_check.coupled import CoupledCheck
from tightrope_check.difference import coupled_check
from tightrope_check.learned import Learned
from tightrope_check.numbers import FLOAT64


def with_own_models(forgery: Forgery, path: Path) -> Forgery:
    """The models of every cell are Taylor's of the problem, their errors the least of some that hold."""
    changed, link = forgery.copy(), Learned(load(path).certificate, FLOAT64)
    for number, hints in enumerate(link.hints.coupled):
        for proof in np.flatnonzero(np.diff(hints.point_start)).tolist():
            *parts, reach = expansion(coupled_check(link, hints), proof)
            for part, made in zip((hints.value, hints.slope, hints.curve), parts, strict=True):
                part[proof] = made
            for size in 10.0 ** np.arange(-14.0, 0.0, 0.05):
                hints.error[proof] = size * reach
                if not isinstance(coupled_check(link, replace(hints)).own_ends(proof), str):
                    break
        for name in ("value", "slope", "curve", "error"):
            changed[f"learned.coupled.{number}.{name}"] = getattr(hints, name)
    return changed


def expansion(check: CoupledCheck, proof: int) -> list[FloatArray]:
    """(value, slope, curve) of the open states in the frame of a cell, and how long plays from them last."""
    walk, hints = check.walk, check.hints
    centre, axes = hints.centre[proof], hints.axes[proof]
    owner, opened = np.repeat(np.arange(len(walk.state)), np.diff(walk.start)), len(walk.state)
    inner = np.isin(walk.successor, walk.state)
    to = np.searchsorted(walk.state, walk.successor[inner])
    weight = walk.weight.astype(np.float64)
    here = weight * (walk.linear @ centre + walk.constant)[walk.label]
    along = weight[:, None] * (walk.linear @ axes)[walk.label]

    known, left = np.where(inner, 0.0, check.value[walk.successor]), np.eye(opened)
    np.subtract.at(left, (owner[inner], to), here[inner])
    inverse = np.linalg.inv(left)

    def onward(moved: FloatArray, value: FloatArray, behind: FloatArray) -> FloatArray:
        whole = behind.copy()
        whole[inner] = value[to]
        result: FloatArray = inverse @ np.bincount(owner, moved * whole, opened)
        return result

    earned = walk.reward.astype(np.float64) + np.bincount(owner, here * known, opened)
    value, none = inverse @ earned, np.zeros(len(owner))
    slope = np.stack([onward(moved, value, known) for moved in along.T], axis=1)
    second = np.stack(
        [np.stack([onward(moved, one, none) for one in slope.T], axis=1) for moved in along.T], axis=1
    )
    upper = np.triu_indices(len(centre))
    curve = (0.5 * (second + second.transpose(0, 2, 1)))[:, upper[0], upper[1]]
    return [value, slope, curve, inverse @ np.ones(opened)]
