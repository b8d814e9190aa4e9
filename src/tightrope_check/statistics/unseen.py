"""Choices with outcomes that were never seen: these lead to states of their own, `unseen` of the problem.

Named outcomes, and the choices themselves, may have been found in the same data. Choices with the same
outcomes are one *row*. The row that is visited as the r-th for the first time is known before its first
outcome and has δ/(r(r + 1)); all R visited rows get the least of these.
Events of other choices share δ/2 where there are both (README, `proofs/statistics.md`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import spend
from tightrope_check.learned import IntervalRows, Learned, RowOrigin, Statements
from tightrope_check.statistics.binomial import Intervals
from tightrope_check.statistics.intervals import EventCounts
from tightrope_check.verdict import Check


def prove(about: Learned, delta: Fraction) -> Statements:
    """Do the intervals of events follow, those of rows with unseen outcomes by draws of the row?"""
    data, hints, seen = about.data, about.hints, about.outcomes
    assert data is not None and hints.lower is not None and hints.upper is not None
    events, ends = EventCounts(about, data.shared_by == "events"), (hints.lower, hints.upper)
    if about.is_untied or len(hints.lower) != len(events.polynomials):
        raise ValueError("the intervals do not fit the model's events")
    away = _unseen_expressions(about)
    owners = np.unique(seen.owner[away[seen.expression]]).tolist()
    at = [slice(*seen.start[row : row + 2].tolist()) for row in owners]
    event = {e: links[0][0] for e, links in events.links.items() if len(links) == 1}
    own = [[event.get(e, -1) for e in seen.expression[span].tolist()] for span in at]
    linked = Counter(link[0] for links in events.links.values() for link in links)
    is_open = np.zeros(len(hints.lower), dtype=np.bool_)
    spend("rows with unseen outcomes", 2000 * len(at) + 20 * len(seen.expression))
    for span, names in zip(at, own, strict=True):
        if any(e < 0 or is_open[e] or linked[e] != 1 for e in names) or seen.multiplicity[span].max() > 1:
            raise ValueError("a row with unseen outcomes shares some of them, or knows their probability")
        is_open[names] = True
    closed = ~is_open
    share = delta / 2 if closed.any() and at else delta
    level = share / max(int(closed.sum()), 1)
    wrong = np.zeros(len(is_open), dtype=np.bool_)
    counted = events.successes[closed], events.trials[closed]
    wrong[closed] = Intervals("beta-binomial", level).unproved(*counted, *(end[closed] for end in ends))
    visited = sum(bool(seen.seen[span].any()) for span in at)
    gamma = share / max(visited * (visited + 1), 1)
    for span, names in zip(at, own, strict=True):
        low, high = (end[names] for end in ends)
        wrong[names] = _unproved(seen.seen[span], away[seen.expression[span]], low, high, gamma)
    check = Check.everywhere("intervals follow from the counts by unseen mass", wrong, "event")
    if check.passed:
        words = f"{visited} of {len(at)} rows were visited and have {float(gamma):.3g} each"
        check = replace(check, detail=f"{words} of δ = {float(delta):g}")
    rows = IntervalRows(about.space, events.polynomials, *ends)
    return Statements(check, {RowOrigin.EVENT: rows}, events.ends_of_expressions(*ends))


def _unseen_expressions(about: Learned) -> BoolArray:
    """Which expressions are the probabilities of unseen outcomes: these are of nothing else."""
    graph, unseen = about.problem.graph, about.problem.unseen
    assert unseen is not None
    state = np.repeat(np.arange(graph.states), np.diff(graph.choice_start))
    choice = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start))
    leads, inside = unseen[graph.successor], unseen[state[choice]]
    away = np.zeros(len(about.polynomials), dtype=np.bool_)
    away[about.expression[leads & ~inside]] = True
    if np.any(inside & ~leads) or np.any(away[about.expression] & (inside | ~leads)):
        raise ValueError("unseen states are left, or their probability is that of a named outcome")
    return away


def _unproved(
    seen: OffsetArray, away: BoolArray, low: FloatArray, high: FloatArray, gamma: Fraction
) -> BoolArray:
    """Where the ends of a row's outcomes do not follow from how often each was seen."""
    draws, others = int(seen.sum()), int(seen[away].sum())
    named, wrong = (seen > 0) & ~away, ~((low >= 0) & (low <= high) & (high <= 1))
    wrong |= ~named & ((low > 0) | (high < 1) & ((draws == 0) | away & (others > 0)))
    if draws:
        kinds = int(named.sum()) + others
        k, n = np.where(named, seen, kinds - 1), np.where(named, draws, draws - 1)
        mass = Intervals("clopper-pearson", gamma / (kinds * (kinds + 1)))
        for part, method in ((named, Intervals("named outcomes", gamma / 2)), (~named, mass)):
            wrong[part] |= method.unproved(k[part], n[part], low[part], high[part])
    return wrong
