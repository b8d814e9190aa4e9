"""Nature's boxes at the choices of a model that is known: by doubles, by intervals, or at a point."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tightrope.certificate.format.fields import Polynomial
from tightrope.certificate.game.nature import Boxes, signs_of_sums
from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.certificate.problem import Problem
from tightrope.certificate.statistics.outcomes import Outcomes
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import OffsetArray

_UNIT = 2.0**-52


def boxes_of(problem: Problem, n: Arithmetic) -> tuple[Boxes, list[Check]]:
    """The boxes of a plain, point or interval problem, and whether there is a distribution in each.

    * plain: a double p stands for a number within p·(1 ± (k+2)·2⁻⁵²), k the successors of the choice.
    * point: the expressions are evaluated in rationals, and each value is enclosed as narrowly as it goes.
    * interval: exactly as written, after lower bounds of 0 were raised to an assumed support. Only where no
      distribution is within the bounds because their sum as a whole misses 1 by at most (k+2)·2⁻⁵², the row
      is read as one distribution: lower/Σlower where Σlower > 1, upper/Σupper where Σupper < 1.
    """
    graph, label = problem.graph, np.arange(problem.graph.transitions)
    single, checks = np.full(graph.choices, problem.law != "interval"), list[Check]()
    if problem.probability is not None:
        width = np.diff(graph.transition_start)
        margin, near = n.array(np.repeat((width + 2) * _UNIT, width)), n.array(problem.probability)
        slack = np.where(near > 0, n.error(4, near), 0)
        lower, upper = np.maximum(near * (1 - margin) - slack, 0), np.minimum(near * (1 + margin) + slack, 1)
    elif problem.lower is not None and problem.upper is not None:
        least = problem.lower
        if problem.assumed_support is not None:
            least = np.where(least == 0, np.minimum(problem.assumed_support, problem.upper), least)
        lower, upper = n.array(least), n.array(problem.upper)
    else:
        assert problem.polynomial is not None and problem.theta is not None and problem.expression is not None
        label, values = problem.expression, _values_at(problem.polynomial, problem.theta)
        checks, (lower, upper) = [_sums(problem, values)], n.enclose(values)
        proper = np.array([value <= 1 for value in values], dtype=np.bool_)
        upper = np.where(proper, np.minimum(upper, 1), upper)
    boxes = Boxes(n, graph.transition_start, graph.successor, label, lower, upper, single)
    return boxes, [_proper(boxes), *checks]


def _values_at(polynomials: Sequence[Polynomial], theta: Sequence[Fraction]) -> list[Fraction]:
    """Every polynomial at a point."""
    known: dict[Any, Fraction] = {}
    for monomial in {monomial for polynomial in polynomials for monomial in polynomial}:
        known[monomial] = prod((theta[i] ** e for i, e in monomial), start=Fraction(1))
    return [sum((c * known[m] for m, c in polynomial.items()), Fraction(0)) for polynomial in polynomials]


def _sums(problem: Problem, value: list[Fraction]) -> Check:
    """Are the probabilities of every choice at the point distributions, in rationals?"""
    groups = Outcomes.of(problem, np.zeros(problem.graph.transitions, dtype=np.int64))
    terms = [
        m * value[e] for e, m in zip(groups.expression.tolist(), groups.multiplicity.tolist(), strict=True)
    ]
    wrong = [sum(terms[a:b]) != 1 for a, b in pairwise(groups.start.tolist())]
    name = "probabilities of every choice sum to 1"
    return Check.everywhere(name, np.array(wrong, dtype=np.bool_), "kind of choice")


def _proper(boxes: Boxes) -> Check:
    """Is there a distribution in every box? Rows that miss one by rounding are read as one distribution.

    Boxes that enclose one distribution are asked up to rounding: that it is one was seen elsewhere.
    """
    n, wrong = boxes.n, np.zeros(len(boxes.transition_start) - 1, dtype=np.bool_)
    for rows, table, single in boxes.blocks():
        lower, upper = boxes.rows(table)
        bad = np.any(~((lower >= 0) & (lower <= upper) & (upper <= 1)), axis=1)
        over = (signs_of_sums(n, lower, single) > 0) & ~bad
        short = (signs_of_sums(n, upper, single) < 0) & ~bad
        for missed, bound in ((over, lower), (short, upper)):
            off = abs(bound[missed].sum(axis=1) - 1)
            near = np.flatnonzero(missed)[off <= n.array([(table.shape[1] + 2) * _UNIT])[0]]
            if not single:
                _read_as_one(boxes, rows[near], table[near], bound[near])
                missed[near] = False
        wrong[rows] = bad | over | short
    return Check.everywhere("the sets are sets of distributions", wrong, "choice")


def _read_as_one(boxes: Boxes, rows: OffsetArray, table: OffsetArray, bound: Numbers) -> None:
    """Replace the boxes of some choices by an enclosure of the distribution bound/Σbound."""
    if len(rows) == 0:
        return
    n = boxes.n
    share = bound / bound.sum(axis=1)[:, None]
    slack = np.where(bound > 0, n.error(table.shape[1] + 4, share), 0)
    boxes.lower[table], boxes.upper[table] = np.maximum(share - slack, 0), np.minimum(share + slack, 1)
    boxes.single[rows] = True
