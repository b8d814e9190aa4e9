"""Events, which pool the outcomes of choices, with successes and trials; checks of their intervals.

An *event* is a polynomial g that is the probability of an outcome, where `paired` also that of 1 − g. A visit
to a choice with an outcome of probability g is a trial of g; each visit is at most one, chosen by the model
alone. Every outcome of unknown probability belongs to an event, seen or not, so the data do not decide how δ
is shared. Intervals are checked by `binomial.py`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tightrope_check.arrays import FloatArray
from tightrope_check.budget import spend
from tightrope_check.coordinates import Key, Terms, add, key
from tightrope_check.learned import IntervalRows, Learned, RowOrigin, Statements
from tightrope_check.statistics.binomial import Intervals
from tightrope_check.verdict import Check


class EventCounts:
    """The events of a model, in the order of their first expression, with successes and trials."""

    def __init__(self, about: Learned, paired: bool):
        outcomes, polynomials = about.outcomes, about.polynomials
        pairs = np.stack([outcomes.expression, outcomes.multiplicity], axis=1)
        distinct, of_pair = np.unique(pairs, axis=0, return_inverse=True)
        number: dict[Key, tuple[int, bool]] = {}
        self.polynomials: list[Terms] = []
        self.links: dict[int, list[tuple[int, int, bool]]] = {}
        event, flipped = np.full(len(distinct), -1), np.zeros(len(distinct), dtype=np.bool_)
        for i, (e, m) in enumerate(distinct.tolist()):
            if not about.unknown[e]:
                continue
            polynomial = add({}, polynomials[e], m)
            spend("events", 400 + 40 * len(polynomial))
            if key(polynomial) not in number:
                if paired:
                    number[key(about.space.complement(polynomial))] = len(self.polynomials), True
                number[key(polynomial)] = len(self.polynomials), False
                self.polynomials.append(polynomial)
            event[i], flipped[i] = number[key(polynomial)]
            self.links.setdefault(e, []).append((int(event[i]), m, bool(flipped[i])))
        self.successes, self.trials = np.zeros((2, len(self.polynomials)), dtype=np.int64)
        event, flipped, owner = event[of_pair.reshape(-1)], flipped[of_pair.reshape(-1)], outcomes.owner
        order = np.lexsort((outcomes.expression, flipped, event, owner))
        order = order[event[order] >= 0]
        # One trial a visit and event: by an outcome of probability g where there is one, else 1 − g.
        _, first = np.unique(owner[order] * (len(self.polynomials) + 1) + event[order], return_index=True)
        order = order[first]
        visits, seen = outcomes.visits[owner[order]], outcomes.seen[order]
        np.add.at(self.trials, event[order], visits)
        np.add.at(self.successes, event[order], np.where(flipped[order], visits - seen, seen))

    def ends_of_expressions(self, lower: FloatArray, upper: FloatArray) -> dict[tuple[int, int], Fraction]:
        """The best of what the events' intervals say of every expression: f = g/m, or (1 − g)/m."""
        result: dict[tuple[int, int], Fraction] = {}
        for e, links in self.links.items():
            for (event, times, flipped), side in product(links, (0, 1)):
                end = Fraction(float((lower, upper)[side != flipped][event]))
                end = (1 - end if flipped else end) / times
                known = result.get((e, side), end)
                result[e, side] = min(known, end) if side else max(known, end)
        return result


def prove(about: Learned, delta: Fraction) -> Statements:
    """Are these intervals of the events, or of the transitions of unknown probability, which share δ?"""
    data, hints, problem = about.data, about.hints, about.problem
    assert data is not None and hints.lower is not None and hints.upper is not None
    if not about.is_untied:
        events, ends = EventCounts(about, data.shared_by == "events"), (hints.lower, hints.upper)
        if len(hints.lower) != len(events.polynomials):
            raise ValueError("the intervals do not fit the model's events")
        method = data.method.partition("+")[0]
        check = _prove(method, "event", (events.successes, events.trials, *ends), delta)
        rows = IntervalRows(about.space, events.polynomials, *ends)
        return Statements(check, {RowOrigin.EVENT: rows}, events.ends_of_expressions(*ends))
    start, size = problem.graph.transition_start, problem.graph.transitions
    if len(hints.lower) != size:
        raise ValueError("the intervals do not fit the model's transitions")
    counts = data.totals(np.arange(size), size)
    trials = np.repeat(np.add.reduceat(counts, start[:-1]), np.diff(start))
    unknown = about.unknown[about.expression]
    counted = tuple(of[unknown] for of in (counts, trials, hints.lower, hints.upper))
    return Statements(_prove(data.method, "transition", counted, delta))


def _prove(method: str, what: str, counted: tuple[Any, ...], delta: Fraction) -> Check:
    """Of (successes, trials, lower, upper)."""
    wrong = Intervals(method, (delta or Fraction(1)) / max(len(counted[0]), 1)).unproved(*counted)
    check = Check.everywhere(f"{what}s' intervals follow from the counts by {method}", wrong, what)
    words = f"{len(wrong)} {what}s share δ = {float(delta):g}, {int(counted[1].sum())} trials"
    return replace(check, detail=words) if check.passed else check
