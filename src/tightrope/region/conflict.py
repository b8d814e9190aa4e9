"""Why a region is empty: a smallest set of events that contradict each other.

The multipliers that prove emptiness (Farkas' lemma) rest on few rows: at most one more than there are
coordinates in an affine system. The events of these rows are candidates, which are then divided and
thinned out for as long as what remains is still provably empty. What is left is irreducible: every one of
its events is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.region.halfspaces import Halfspaces, Origin
from tightrope.region.tightening import Tightened, tighten
from tightrope.statistics.coordinates import Coordinates


def irreducible(candidates: Sequence[int], is_empty: Callable[[list[int]], bool]) -> tuple[int, ...]:
    """A smallest subset that is still empty, given that all candidates together are (QuickXplain).

    Halves are tried before single candidates: about k·log(n) questions for a conflict of k among n.
    """

    def explain(background: list[int], grown: bool, options: list[int]) -> list[int]:
        if grown and is_empty(background):
            return []
        if len(options) <= 1:
            return options
        first, second = options[: len(options) // 2], options[len(options) // 2 :]
        needed_second = explain(background + first, True, second)
        needed_first = explain(background + needed_second, bool(needed_second), first)
        return needed_first + needed_second

    return tuple(sorted(explain([], False, list(candidates))))


def conflicting_events(
    coordinates: Coordinates, base: Halfspaces, tightened: Tightened, rounds: int, tolerance: float
) -> tuple[int, ...]:
    """The events (or L1 balls) of an irreducible conflict in an empty system."""
    learned = base.origin >= Origin.EVENT_UPPER

    def is_empty(events: list[int]) -> bool:
        rows = ~learned | np.isin(base.index, events)
        return tighten(coordinates, base.take(rows), rounds, tolerance).empty

    candidates = _indices(base, tightened.used, learned)
    if not is_empty(candidates):
        candidates = _indices(base, np.arange(len(base)), learned)
    return irreducible(candidates, is_empty)


def _indices(base: Halfspaces, rows: OffsetArray, learned: BoolArray) -> list[int]:
    found: list[int] = np.unique(base.index[rows[learned[rows]]]).tolist()
    return found
