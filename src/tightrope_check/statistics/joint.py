"""Two statements that hold together: intervals of events at δ₁, a likelihood or a slab at δ₂, δ₁ + δ₂ = δ.

The README of this package has the shares, which follow from the model alone.
"""

from __future__ import annotations

from fractions import Fraction

from tightrope_check.learned import Learned, Statements
from tightrope_check.statistics import intervals, likelihood, slab
from tightrope_check.verdict import Check


def share_of(events: int, free: int, bets: bool = False) -> Fraction:
    """What the second part has of δ; `bets`: a value slab."""
    if events >= 4 * free or (bets and free <= 7):
        return Fraction(9, 10)
    return Fraction(1, 10) if events < 2 * free and not bets else Fraction(1, 2)


def prove(about: Learned, delta: Fraction) -> Statements:
    """Both statements, each at its share."""
    data = about.data
    assert data is not None
    second = data.method.partition("+")[2]
    events = intervals.EventCounts(about, data.shared_by == "events")
    rest = delta * share_of(len(events.polynomials), len(about.space.free), second.startswith("value"))
    first = intervals.prove(about, delta - rest)
    then = (likelihood if second == "likelihood" else slab).prove(about, rest)
    words = "; ".join(one.check.detail for one in (first, then))
    name = f"{first.check.name}; {then.check.name}"
    check = Check(name, first.check.passed and then.check.passed, words)
    sources = {**first.sources, **then.sources}
    return Statements(check, sources, first.ends, slab=then.slab, planned=then.planned)
