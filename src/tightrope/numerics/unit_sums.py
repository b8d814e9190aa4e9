"""Whether numbers sum to less than 1, to 1, or to more: decided exactly.

Sums of float64 near 1 round, and what nature may do hangs on their side of 1. Adding with the error kept
(Knuth's two-sum: total + term = new + error, exactly) tells at the cost of five more additions whether a
sum was exact; most that come near 1 are (0.5 + 0.5, 1 − p + p). The rest is *distilled*: two-sums run along
the terms until nothing changes. Then each term is at most half a unit in the last place of the next, so
the last one has the sign of the whole sum, and is its nearest float64 up to one unit.

Additions of float64 neither underflow nor, with terms within [−1, 1], overflow.
"""

from __future__ import annotations

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.jit import inlined, kernel

SUM_UNIT = 2.0**-52


@inlined
def add(total: float, exact: bool, term: float) -> tuple[float, bool]:
    """total + term, and whether this sum is exact if `total` was."""
    new = total + term
    back = new - total
    return new, exact & (((total - (new - back)) + (term - back)) == 0.0)


@kernel
def distil(head: float, terms: FloatArray, size: int) -> float:
    """head + terms[0] + … + terms[size − 1], of the right sign (and 0 only if it is 0); the terms are
    overwritten.
    """
    moved = size > 0
    top = head
    while moved:
        moved = False
        below = head
        for i in range(size):
            top = terms[i] + below
            back = top - terms[i]
            error = (terms[i] - (top - back)) + (below - back)
            moved |= top != terms[i]
            if i > 0:
                terms[i - 1] = error
            else:
                head = error
            terms[i] = below = top
    return top
