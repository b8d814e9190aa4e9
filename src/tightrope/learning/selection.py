"""What choosing an amendment costs: dividing a log, what is said about it, and the verdict with it.

Clusters (units of a column, else episodes) are divided at random, by a seed that is said. One part chooses,
the other learns: given the choice, its episodes are as good as new. Without that, an answer on a model that
the same data chose is nominal; where the amendment was given, nobody knows how it came about, and the verdict
says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.errors import CannotCertify, InputError, check_number
from tightrope.learning.amendments import Amendment, Diagnosed, rank
from tightrope.numerics.arrays import BoolArray
from tightrope.verdict import Assumed, Kept, Word, Worth

SELECTION = "selection"
UNPAID = Assumed(
    SELECTION,
    Kept.NO,
    "the amendment was chosen on the data that it is learned from: --select-on divides them",
)
UNKNOWN = Assumed(
    SELECTION,
    Kept.UNKNOWN,
    "whether the amendment was chosen by looking at these data is not known: --select-on",
)


def divide(size: int, share: float, seed: int, what: str) -> tuple[BoolArray, Assumed]:
    """Which of so many clusters are there to choose on, and what is said about it."""
    check_number("select_on", share, 0.0, 1.0)
    if size < 2:
        raise InputError(f"`select_on` divides the {what} of the log, and there is one only")
    number = min(max(round(share * size), 1), size - 1)
    picked: BoolArray = np.zeros(size, np.bool_)
    picked[np.random.default_rng(seed).permutation(size)[:number]] = True
    why = f"the amendment was chosen on {number:,} of {size:,} {what} (seed {seed}), and learned from others"
    return picked, Assumed(SELECTION, Kept.YES, why)


def pick(findings: Sequence[Diagnosed]) -> Amendment:
    """The amendment that matters most among those that leave no alarm."""
    known = [one for one in findings if one.amendment is not None]
    if not known:
        raise CannotCertify("there is no finding that an amendment removes: the model stays as it is")
    best = min(known, key=rank).amendment
    assert best is not None
    return best


def with_selection(own: Worth, selection: Assumed) -> Worth:
    """A verdict with the selection among its assumptions."""
    words = {Word.CONTRADICTED: "contradicted", Word.LIMIT: "limit"}
    worst = {words[own.word]: own.why} if own.word in words else {}
    return Worth.of((*own.assumptions, selection), **worst)
