"""Nature's boxes at the choices of a model that is known: by doubles, by intervals, or at a point.

* plain: a double p stands for a number within p·(1 ± (k+2)·2⁻⁵²), k the successors of the choice.
* point: the expressions are evaluated in rationals.
* interval: exactly as written, after lower bounds of 0 were raised to an assumed support. Only where no
  distribution is within the bounds because their sum as a whole misses 1 by at most (k+2)·2⁻⁵², the row is
  read as one distribution: lower/Σlower where Σlower > 1, upper/Σupper where Σupper < 1.

Whether there is a distribution in each is decided in rationals, wherever float64 is not sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, Number, OffsetArray
from tightrope_check.budget import spend, spend_sums
from tightrope_check.fields import Polynomial
from tightrope_check.nature import Boxes, excess, signs_of_sums
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers, bits_of
from tightrope_check.verdict import Check

if TYPE_CHECKING:
    from tightrope_check.problem import CertifiedProblem

_UNIT = 2.0**-52


def boxes_of(problem: CertifiedProblem, n: Arithmetic) -> tuple[Boxes, list[Check]]:
    """The boxes of a plain, point or interval problem, and whether there is a distribution in each."""
    graph, label, checks = problem.graph, np.arange(problem.graph.transitions), list[Check]()
    box = partial(Boxes, n, graph.transition_start, graph.successor)
    single = np.full(graph.choices, problem.law != "interval")
    if problem.probability is not None:
        width = np.diff(graph.transition_start)
        around = partial(_around, problem.probability, np.repeat((width + 2) * _UNIT, width))
        boxes = box(label, *around(n, label), single, partial(around, RATIONAL))
        wrong = _misses_one(boxes, n.array(problem.probability))
    elif problem.lower is not None and problem.upper is not None:
        least = problem.lower
        if problem.assumed_support is not None:
            least = np.where(least == 0, np.minimum(problem.assumed_support, problem.upper), least)
        boxes, wrong = _read(box(label, n.array(least), n.array(problem.upper), single))
    else:
        assert problem.polynomial is not None and problem.theta is not None and problem.expression is not None
        values = values_at(problem.polynomial, problem.theta)
        exact = RATIONAL.array(values)
        boxes = box(problem.expression, *n.enclose(values), single, lambda at: (exact[at], exact[at]))
        improper = np.array([not 0 <= value <= 1 for value in values], dtype=np.bool_)
        wrong = np.logical_or.reduceat(improper[problem.expression], graph.transition_start[:-1])
        checks = [Check.everywhere("probabilities of every choice sum to 1", _no_sum(boxes, exact), "choice")]
    return boxes, [Check.everywhere("the sets of distributions are valid", wrong, "choice"), *checks]


def _around(
    probability: FloatArray, margin: FloatArray, n: Arithmetic, at: OffsetArray
) -> tuple[Numbers, Numbers]:
    """What the doubles at some transitions stand for; 1 ± margin are numbers."""
    near, off = n.array(probability[at]), n.array(margin[at])
    slack = np.where(near > 0, n.error(2, near), 0)
    return np.maximum(near * (1 - off) - slack, 0), np.minimum(near * (1 + off) + slack, 1)


def _misses_one(boxes: Boxes, near: Numbers) -> BoolArray:
    """Choices without Σp·(1 − m) ≤ 1 ≤ Σp·(1 + m), m their margin."""
    n, wrong = boxes.n, np.zeros(len(boxes.single), dtype=np.bool_)
    for rows, table, _ in boxes.blocks():
        margin = (table.shape[1] + 2) * _UNIT
        rest, doubt = excess(n, near[table])
        unsure = np.flatnonzero(~(abs(rest) + doubt < n.array([margin * (0.999 - margin)])[0]))
        total = RATIONAL.array(near[table[unsure]]).sum(axis=1)
        low, high = (total * end for end in RATIONAL.array([1 - margin, 1 + margin]))
        wrong[rows[unsure]] = ~((low <= 1) & (high >= 1))
    return wrong


def _read(boxes: Boxes) -> tuple[Boxes, BoolArray]:
    """The boxes with rows that miss 1 by rounding read as one distribution, and choices without any."""
    n, wrong, ones = boxes.n, np.zeros(len(boxes.single), dtype=np.bool_), dict[int, Number]()
    for rows, table, _ in boxes.blocks():
        lower, upper = boxes.rows(table)
        bad = np.any(~((lower >= 0) & (lower <= upper) & (upper <= 1)), axis=1)
        for bound, missed in ((lower, signs_of_sums(n, lower) > 0), (upper, signs_of_sums(n, upper) < 0)):
            out = np.flatnonzero(missed & ~bad)
            total = RATIONAL.array(bound[out]).sum(axis=1)
            near = abs(total - 1) <= RATIONAL.array([(table.shape[1] + 2) * _UNIT])
            bad[out[~near]] = True
            read, share = out[near], RATIONAL.array(bound[out[near]]) / total[near, None]
            boxes.lower[table[read]], boxes.upper[table[read]] = n.enclose(share)
            boxes.single[rows[read]] = True
            ones.update(zip(table[read].reshape(-1).tolist(), share.reshape(-1).tolist(), strict=True))
        wrong[rows] = bad

    def law(at: OffsetArray) -> tuple[Numbers, Numbers]:
        ends = RATIONAL.array(boxes.lower[at]), RATIONAL.array(boxes.upper[at])
        for place, label in enumerate(at.tolist() if ones else ()):
            if label in ones:
                ends[0][place] = ends[1][place] = ones[label]
        return ends

    return replace(boxes, law=law), wrong


def values_at(polynomials: Sequence[Polynomial], theta: Sequence[Fraction]) -> list[Fraction]:
    """Every polynomial at a point."""
    known: dict[object, Fraction] = {}
    for monomial in {monomial for polynomial in polynomials for monomial in polynomial}:
        bits = sum(bits_of(theta[i]) * e for i, e in monomial)
        spend("expressions at the point", 2, 1 + bits)
        known[monomial] = prod((theta[i] ** e for i, e in monomial), start=Fraction(1))
    return [_sum([(c, known[m]) for m, c in polynomial.items()]) for polynomial in polynomials]


def _no_sum(boxes: Boxes, values: Numbers) -> BoolArray:
    """Choices whose probabilities at the point do not sum to 1, in rationals; equal ones are summed once."""
    wrong = np.zeros(len(boxes.single), dtype=np.bool_)
    mark = np.random.default_rng(0).integers(1 << 62, size=len(values))
    for rows, table, _ in boxes.blocks():
        label = np.sort(boxes.label[table], axis=1)
        _, first, kind = np.unique(mark[label].sum(axis=1), return_index=True, return_inverse=True)
        spend_sums("sums at the point", table.shape[1], values[label[first]].tolist())
        wrong[rows] = (values[label[first]].sum(axis=1) != 1)[kind]
        other = np.flatnonzero(np.any(label != label[first][kind], axis=1))  # marks may coincide
        spend_sums("sums at the point", table.shape[1], values[label[other]].tolist())
        wrong[rows[other]] = values[label[other]].sum(axis=1) != 1
    return wrong


def _sum(products: list[tuple[Fraction, Fraction]]) -> Fraction:
    total = Fraction(0)
    for factor, value in products:
        spend("expressions at the point", 3, bits_of(factor) + bits_of(value) + bits_of(total))
        total += factor * value
    return total
