"""Outcomes that were never seen: the checker accepts ends exactly as far as the proof goes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, nextafter

import numpy as np
import pytest

from tightrope_check.statistics.unseen import _unproved

GAMMA = Fraction(1, 60)
ROWS = [([12, 0], 0), ([5, 3, 0], 0), ([1, 1, 9, 0], 0), ([40, 2, 0, 0], 0), ([7, 0, 2], 3), ([6, 6, 0], 1)]
"""How often the named outcomes of a row were seen, and how many draws led to unseen states."""


def named_ends(seen: int, draws: int) -> tuple[float, float]:
    """The ends at which p^(K−1)·(1−p)^(n−K) = q·γ/2, by bisection in rationals, rounded inward."""
    own = comb(2 * seen, seen) * comb(2 * (draws - seen), draws - seen)
    limit = Fraction(own, comb(draws, seen) * 4**draws) * GAMMA / 2

    def is_out(p: Fraction) -> bool:
        return p ** (seen - 1) * (1 - p) ** (draws - seen) <= limit

    return bisect(is_out, Fraction(0), seen / draws), bisect(is_out, Fraction(1), seen / draws)


def most_unseen(kinds: int, draws: int) -> float:
    """The mass at which P(Bin(n−1, u) ≤ k−1) = γ/(2k(k+1)), in the same way."""
    level = GAMMA / (2 * kinds * (kinds + 1))

    def is_left(u: Fraction) -> bool:
        tail = sum(comb(draws - 1, i) * u**i * (1 - u) ** (draws - 1 - i) for i in range(kinds))
        return tail <= level

    return bisect(is_left, Fraction(1), (kinds - 1) / (draws - 1))


def bisect(is_out: Callable[[Fraction], bool], outer: Fraction, inside: float) -> float:
    """The last number that is out, towards one that is not; `outer` where none is."""
    inner = Fraction(inside)
    assert not is_out(inner)
    if not is_out(outer):
        return float(outer)
    for _ in range(60):
        middle = Fraction(float((outer + inner) / 2))
        outer, inner = (middle, inner) if is_out(middle) else (outer, middle)
    return float(outer)


@pytest.mark.parametrize(("named", "others"), ROWS)
def test_ends_are_accepted_as_far_as_they_follow(named: list[int], others: int) -> None:
    seen = np.array([*named, others, 0])
    away = np.arange(len(seen)) >= len(named)
    draws, kinds = int(seen.sum()), int(np.count_nonzero(named)) + others
    low, high = np.zeros(len(seen)), np.ones(len(seen))
    for i, count in enumerate(named):
        if count:
            low[i], high[i] = named_ends(count, draws)
    rest = most_unseen(kinds, draws)
    high[(seen == 0) & ~(away & (others > 0))] = rest
    assert not _unproved(seen, away, low, high, GAMMA).any()
    for i in range(len(seen)):
        for ends, nearer in ((low, max(low[i] * (1 + 1e-12), 1e-12)), (high, high[i] * (1 - 1e-12))):
            before, ends[i] = ends[i], nearer
            assert np.flatnonzero(_unproved(seen, away, low, high, GAMMA)).tolist() == [i]
            ends[i] = before


def test_twelve_equal_outcomes_leave_what_can_be_computed_by_hand() -> None:
    assert most_unseen(1, 12) == pytest.approx(1 - float(GAMMA / 4) ** (1 / 11), abs=1e-12)
    assert most_unseen(2, 3) == pytest.approx((1 - float(GAMMA) / 12) ** 0.5, abs=1e-12)


def test_a_row_without_draws_says_nothing() -> None:
    seen, away = np.zeros(3, dtype=np.int64), np.array([False, True, True])
    assert not _unproved(seen, away, np.zeros(3), np.ones(3), GAMMA).any()
    for low, high in ((1e-300, 1.0), (0.0, nextafter(1.0, 0.0))):
        assert _unproved(seen, away, np.full(3, low), np.full(3, high), GAMMA).all()
    once = np.array([1, 0, 0])
    assert not _unproved(once, away, np.zeros(3), np.ones(3), GAMMA).any()
    assert _unproved(once, away, np.zeros(3), np.array([1.0, 0.999999, 1.0]), GAMMA).tolist() == [0, 1, 0]
