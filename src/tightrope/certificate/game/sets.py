"""From a problem to boxes: what nature may pick at every choice, or what encloses the one distribution there.

* plain: a double p stands for a number within p·(1 ± (k+2)·2⁻⁵²), k the successors of the choice: the nearest
  double of an exact number is, and so are rows whose sum was brought to 1.
* point: the expressions are evaluated in rationals, and each value is enclosed as narrowly as numbers allow.
* interval: exactly as written, after lower bounds of 0 were raised to an assumed support. Only where no
  distribution is within the bounds because their sum as a whole misses 1 by at most (k+2)·2⁻⁵², the row is
  read as one distribution: lower/Σlower where Σlower > 1, upper/Σupper where Σupper < 1.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.game.nature import Boxes, sums_beside_one
from tightrope.certificate.numbers import Arithmetic, Numbers
from tightrope.certificate.problem import Problem
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import OffsetArray

UNIT = 2.0**-52


def boxes_of(problem: Problem, n: Arithmetic) -> tuple[Boxes, Check]:
    """The boxes of a plain, point or interval problem, and whether there is a distribution in each."""
    graph = problem.graph
    label = np.arange(graph.transitions)
    single = np.full(graph.choices, problem.law != "interval")
    if problem.law == "plain":
        assert problem.probability is not None
        lower, upper = _plain(n, problem)
    elif problem.law == "point":
        assert problem.table is not None and problem.theta is not None and problem.expression is not None
        label, values = problem.expression, problem.table.values(problem.theta)
        lower, upper = n.enclose(values)
        upper = np.where(
            np.array([value <= 1 for value in values], dtype=np.bool_), np.minimum(upper, 1), upper
        )
    else:
        assert problem.lower is not None and problem.upper is not None
        least = problem.lower
        if problem.assumed_support is not None:
            raised = np.minimum(problem.assumed_support, problem.upper)
            least = np.where(least == 0, raised, least)
        lower, upper = n.array(least), n.array(problem.upper)
    boxes = Boxes(n, graph.transition_start, graph.successor, label, lower, upper, single)
    return boxes, proper(boxes)


def proper(boxes: Boxes) -> Check:
    """Is there a distribution in every box? Rows that miss one by rounding are read as one distribution.

    Boxes that enclose one distribution are asked up to rounding: that it is one was seen elsewhere.
    """
    n, wrong = boxes.n, np.zeros(len(boxes.transition_start) - 1, dtype=np.bool_)
    for rows, table, single in boxes.blocks():
        lower, upper = boxes.rows(table)
        bad = np.any(~((lower >= 0) & (lower <= upper) & (upper <= 1)), axis=1)
        over = sums_beside_one(n, lower, not single)[1] & ~bad
        short = sums_beside_one(n, upper, not single)[0] & ~bad
        for missed, bound in ((over, lower), (short, upper)):
            off = abs(bound[missed].sum(axis=1) - 1)
            near = np.flatnonzero(missed)[off <= n.array([(table.shape[1] + 2) * UNIT])[0]]
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
    slack = n.error(table.shape[1] + 4, share)
    boxes.lower[table], boxes.upper[table] = share - slack, np.minimum(share + slack, 1)
    boxes.single[rows] = True


def _plain(n: Arithmetic, problem: Problem) -> tuple[Numbers, Numbers]:
    assert problem.probability is not None
    width = np.diff(problem.graph.transition_start)
    margin = n.array(np.repeat((width + 2) * UNIT, width))
    near = n.array(problem.probability)
    slack = n.error(4, near)
    return near * (1 - margin) - slack, np.minimum(near * (1 + margin) + slack, 1)
