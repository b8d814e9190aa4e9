"""Intervals of events at δ₁ and a likelihood or a slab at δ₂ hold together, δ₁ + δ₂ = δ: see the README."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tightrope_check.learned import Learned, Statements
from tightrope_check.statistics import intervals, likelihood, slab
from tightrope_check.verdict import Check


def former_share(events: int, free: int, bets: bool = False) -> Fraction:
    """What the second part has of δ in files from before; `bets`: a value slab."""
    few, many = events < 2 * free and not bets, events >= 4 * free or (bets and free <= 7)
    return Fraction(9 if many else 1 if few else 5, 10)


def prove(about: Learned, delta: Fraction) -> Statements:
    """Both statements, each at its share."""
    data = about.data
    assert data is not None
    second = data.method.partition("+")[2]
    events = intervals.EventCounts(about, data.shared_by == "events")
    share = former_share(len(events.polynomials), len(about.space.free), second.startswith("value"))
    rest = delta * (Fraction(second.split()[0]) if "/" in second else share)
    first = intervals.prove(about, delta - rest)
    then: Statements = (slab if "slab" in second else likelihood).prove(about, rest)
    words = "; ".join(one.check.detail for one in (first, then))
    check = Check(f"{first.check.name}; {then.check.name}", first.check.passed and then.check.passed, words)
    return replace(then, check=check, sources={**first.sources, **then.sources}, ends=first.ends)
