"""Models of coupled values on the cells of a file, for the problem that the file has now."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from adversary.archive import Forgery
from tightrope.coupled.cells import Rows, frame_of
from tightrope_check.archive import load
from tightrope_check.arrays import FloatArray
from tightrope_check.coupled import CoupledCheck, CoupledHints
from tightrope_check.difference import coupled_check
from tightrope_check.learned import Learned
from tightrope_check.numbers import FLOAT64, RATIONAL


def with_own_models(forgery: Forgery, path: Path) -> Forgery:
    """Hulls of all cells are found for the problem; models are Taylor's, their errors the least of some that
    hold."""
    changed, link = forgery.copy(), Learned(load(path).certificate, FLOAT64)
    for number, hints in enumerate(link.hints.coupled):
        hints = with_own_hulls(link, hints)
        for proof in np.flatnonzero(np.diff(hints.point_start)).tolist():
            *parts, reach = expansion(coupled_check(link, hints), proof)
            for part, made in zip((hints.value, hints.slope, hints.curve), parts, strict=True):
                part[proof] = made
            for size in 10.0 ** np.arange(-14.0, 0.0, 0.05):
                hints.error[proof] = size * reach
                if not isinstance(coupled_check(link, replace(hints)).own_ends(proof), str):
                    break
        for name in ("simplex", "point", "point_start", "centre", "axes", "value", "slope", "curve", "error"):
            changed[f"learned.coupled.{number}.{name}"] = getattr(hints, name)
    return changed


def with_own_hulls(link: Learned, hints: CoupledHints) -> CoupledHints:
    """What encloses a cell grows with the domain; a cell for which no hull is found keeps its own."""
    check, simplices, points, size = coupled_check(link, hints), [], [], link.space.size
    centres, axes = hints.centre.copy(), hints.axes.copy()
    for proof, ((first, last), (begin, end)) in enumerate(
        zip(pairwise(hints.row_start.tolist()), pairwise(hints.point_start.tolist()), strict=True)
    ):
        simplices.append(hints.simplex[begin:end])
        points.append(hints.point[begin:end])
        if begin == end:
            continue
        rows = check.cells.rows(int(hints.node[proof]), hints.row[first:last])
        number = np.roll(np.arange(len(rows.bound)), -2 * size)  # the faces of the box come last
        matrix, bound = RATIONAL.floats(rows.matrix[number]), RATIONAL.floats(rows.bound[number])
        known = centres[proof] + points[-1] @ axes[proof].T
        system = Rows(matrix, np.nextafter(bound, np.inf), number)
        found = frame_of(system, known.mean(axis=0), np.ptp(known, axis=0))
        if found is not None:
            frame = found[0]
            middle = frame.points.mean(axis=0)
            simplices[-1], points[-1] = (
                frame.simplices.astype(np.int64),
                middle + (frame.points - middle) * (1 + 1e-7),
            )
            centres[proof], axes[proof] = frame.centre, frame.axes
    start = np.concatenate([[0], np.cumsum([len(one) for one in points])]).astype(np.int64)
    return replace(
        hints,
        simplex=np.concatenate(simplices),
        point=np.concatenate(points),
        point_start=start,
        centre=centres,
        axes=axes,
    )


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
